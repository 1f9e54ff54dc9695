// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <stdlib.h>
#include <string.h>

#include "profile/stack_dump.h"

struct decode_row {
	const char *name;
	uint32_t tgid, n_kernel, n_user, n_bytes, kind;
	uint64_t count, at;
	size_t cut; /* missing bytes of the record */
	int want;
};

#define AT 0x7ffc00001000

static const struct decode_row decode_rows[] = {
	{"usual", 42, 0, 0, 5000, STACK_DUMP_ONCPU, 1, AT, 0, STACK_DUMP_OK},
	{"with a kernel half", 42, 9, 0, 5000, STACK_DUMP_ONCPU, 1, AT, 0, STACK_DUMP_OK},
	{"as much as there can be", 42, SAMPLE_KERNEL_FRAMES_MAX, 0, STACK_DUMP_BYTES,
	 STACK_DUMP_ONCPU, 1, AT, 0, STACK_DUMP_OK},
	{"four parts", 42, 9, 0, STACK_DUMP_DEEP_BYTES, STACK_DUMP_ONCPU, 1, AT, 0, STACK_DUMP_OK},
	{"too many bytes", 42, 0, 0, STACK_DUMP_DEEP_BYTES + 8, STACK_DUMP_ONCPU, 1, AT, 0,
	 STACK_DUMP_ODD},
	{"too many kernel frames", 42, SAMPLE_KERNEL_FRAMES_MAX + 1, 0, 8, STACK_DUMP_ONCPU, 1, AT,
	 0, STACK_DUMP_ODD},
	{"no bytes", 42, 0, 0, 0, STACK_DUMP_ONCPU, 1, AT, 0, STACK_DUMP_OK},
	{"user frames", 42, 0, 1, 8, STACK_DUMP_ONCPU, 1, AT, 0, STACK_DUMP_ODD},
	{"nobody's", 0, 0, 0, 8, STACK_DUMP_ONCPU, 1, AT, 0, STACK_DUMP_ODD},
	{"no such kind", 42, 0, 0, 8, STACK_DUMP_KIND_MAX, 1, AT, 0, STACK_DUMP_ODD},
	{"no count", 42, 0, 0, 8, STACK_DUMP_ONCPU, 0, AT, 0, STACK_DUMP_ODD},
	{"not aligned", 42, 0, 0, 8, STACK_DUMP_ONCPU, 1, AT + 4, 0, STACK_DUMP_ODD},
	{"one byte short", 42, 3, 0, 4096, STACK_DUMP_ONCPU, 1, AT, 1, STACK_DUMP_ODD},
	{"no head", 42, 0, 0, 0, STACK_DUMP_ONCPU, 1, AT, 1, STACK_DUMP_ODD},
	{"nothing", 42, 0, 0, 0, STACK_DUMP_ONCPU, 1, AT, sizeof(struct stack_dump_head),
	 STACK_DUMP_ODD},
};

static void test_decode(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(decode_rows); i++) {
		static struct stack_dump_record record;
		const struct decode_row *row = &decode_rows[i];
		struct stack_dump dump;
		size_t size = sizeof(record.head) + (size_t)row->n_kernel * 8 + row->n_bytes;

		row_begin(row->name);
		memset(&record, 0, sizeof(record));
		record.head.key.tgid = row->tgid;
		record.head.key.exec_id = 3;
		record.head.head = (struct sample_head){.count = row->count,
							.comm = "sixteen letters!",
							.n_kernel = (__u16)row->n_kernel,
							.n_user = (__u16)row->n_user};
		record.head.time_ns = 77;
		record.head.at = row->at;
		record.head.n_bytes = row->n_bytes;
		for (size_t k = 0; k < STACK_DUMP_DEEP_PIECES; k++)
			record.head.pieces[k] = (uint16_t)k;
		record.head.kind = row->kind;
		assert_int_equal(stack_dump_decode(&record, size - row->cut, &dump), row->want);
		if (row->want)
			continue;
		assert_int_equal(dump.sample.pid.pid, 42);
		assert_int_equal(dump.sample.exec_id, 3);
		assert_string_equal(dump.sample.comm, "sixteen letters");
		assert_int_equal(dump.sample.n_kernel, row->n_kernel);
		assert_int_equal(dump.sample.n_user, 0);
		assert_ptr_equal(dump.sample.kernel, record.data);
		assert_ptr_equal(dump.bytes, record.data + (size_t)row->n_kernel * 8);
		assert_int_equal(dump.n_bytes, row->n_bytes);
		assert_int_equal(dump.time_ns, 77);
		assert_string_equal(dump.sample.thread, "");

		memcpy(record.head.thread, "a thread's name", PID_COMM_MAX);
		record.head.key.flags = SAMPLE_FLAG_THREAD;
		assert_int_equal(stack_dump_decode(&record, size, &dump), STACK_DUMP_OK);
		assert_string_equal(dump.sample.thread, "a thread's name");
		record.head.key.flags = SAMPLE_FLAG_OTHER_THREAD;
		assert_int_equal(stack_dump_decode(&record, size, &dump), STACK_DUMP_OK);
		assert_string_equal(dump.sample.thread, SAMPLE_OTHER_THREAD);
	}
}

struct excerpt_row {
	const char *name;
	uint32_t n, runtime, n_bytes;
	size_t cut;
	int want;
};

static const struct excerpt_row excerpt_rows[] = {
	{"usual", 560, FRAME_RUNTIME_PYTHON, 4096, 0, STACK_DUMP_OK},
	{"as much as there can be", STACK_DUMP_EXCERPT_BYTES, FRAME_RUNTIME_PYTHON,
	 STACK_DUMP_SHARED_BYTES - STACK_DUMP_EXCERPT_BYTES, 0, STACK_DUMP_OK},
	{"as much as there can be, too much stack", STACK_DUMP_EXCERPT_BYTES, FRAME_RUNTIME_PYTHON,
	 STACK_DUMP_SHARED_BYTES - STACK_DUMP_EXCERPT_BYTES + 8, 0, STACK_DUMP_ODD},
	{"behind the largest stack", STACK_DUMP_EXCERPT_LEAST, FRAME_RUNTIME_PYTHON,
	 STACK_DUMP_BYTES, 0, STACK_DUMP_OK},
	{"too much", STACK_DUMP_EXCERPT_BYTES + 8, FRAME_RUNTIME_PYTHON, 0, 0, STACK_DUMP_ODD},
	{"one byte short", 560, FRAME_RUNTIME_PYTHON, 4096, 1, STACK_DUMP_ODD},
	{"no such runtime", 560, FRAME_RUNTIME_MAX, 4096, 0, STACK_DUMP_ODD},
	{"not whole words", 564, FRAME_RUNTIME_PYTHON, 4096, 0, STACK_DUMP_ODD},
	{"behind a stack without whole words", 560, FRAME_RUNTIME_PYTHON, 4092, 0, STACK_DUMP_ODD},
};

static void test_excerpt(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(excerpt_rows); i++) {
		static struct stack_dump_record record;
		const struct excerpt_row *row = &excerpt_rows[i];
		struct stack_dump dump;

		row_begin(row->name);
		record.head = (struct stack_dump_head){.key = {.tgid = 42},
						       .head = {.count = 1, .n_kernel = 3},
						       .at = AT,
						       .n_bytes = row->n_bytes,
						       .n_excerpt = row->n,
						       .runtime = row->runtime,
						       .exe = {.inode = 7}};
		for (uint16_t k = 0; k < STACK_DUMP_PIECES; k++)
			record.head.pieces[k] = k;
		assert_int_equal(stack_dump_decode(&record,
						   sizeof(record.head) + 3 * 8 + row->n_bytes +
							   row->n - row->cut,
						   &dump),
				 row->want);
		if (row->want)
			continue;
		assert_int_equal(dump.runtime, row->runtime);
		assert_int_equal(dump.n_excerpt, row->n);
		assert_ptr_equal(dump.excerpt, record.data + 3 * 8 + row->n_bytes);
		assert_int_equal(dump.exe->inode, 7);
	}
}

/* Pieces ascend from the first on; the others are not looked at. */
static void test_pieces(void **state)
{
	static const struct {
		const char *name;
		uint32_t n_bytes;
		uint16_t pieces[3];
		int want;
	} rows[] = {
		{"no hole", 3072, {0, 1, 2}, STACK_DUMP_OK},
		{"a hole", 3072, {0, 9, 200}, STACK_DUMP_OK},
		{"twice the same", 3072, {0, 9, 9}, STACK_DUMP_ODD},
		{"back", 3072, {0, 9, 8}, STACK_DUMP_ODD},
		{"a hole at the begin", 3072, {1, 2, 3}, STACK_DUMP_ODD},
		{"two pieces and a word", 2056, {0, 9, 9}, STACK_DUMP_ODD},
		{"two pieces", 2048, {0, 9, 9}, STACK_DUMP_OK},
		{"none", 0, {7, 7, 7}, STACK_DUMP_OK},
	};
	static struct stack_dump_record record;
	struct stack_dump dump;

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		row_begin(rows[i].name);
		record.head = (struct stack_dump_head){.key = {.tgid = 42},
						       .head = {.count = 1},
						       .at = AT,
						       .n_bytes = rows[i].n_bytes};
		memcpy(record.head.pieces, rows[i].pieces, sizeof(rows[i].pieces));
		assert_int_equal(stack_dump_decode(&record, sizeof(record), &dump), rows[i].want);
		if (!rows[i].want)
			assert_ptr_equal(dump.pieces, record.head.pieces);
	}
}

/* Part @i of a dump with as many kernel frames, of full parts but for the last. */
static struct stack_dump_copy *part_of(uint32_t i, uint32_t n_parts, uint16_t n_kernel)
{
	const uint32_t n_bytes = i + 1 < n_parts ? STACK_DUMP_BYTES : 2 * STACK_DUMP_READ_BYTES;
	const size_t size = sizeof(struct stack_dump_head) + n_kernel * 8u + n_bytes;
	struct stack_dump_copy *copy = calloc(1, sizeof(*copy) + size);
	struct stack_dump_record *record;

	assert_non_null(copy);
	copy->size = size;
	record = (void *)copy->record;
	record->head = (struct stack_dump_head){
		.key = {.tgid = 42, .start_boottime_ns = 7},
		.head = {.count = 1, .n_kernel = n_kernel},
		.time_ns = 77,
		.at = AT,
		.n_bytes = n_bytes,
		.n_before = i * STACK_DUMP_BYTES,
		.more = i + 1 < n_parts,
	};
	/* a hole between parts */
	for (size_t k = 0; k < STACK_DUMP_DEEP_PIECES; k++)
		record->head.pieces[k] = (uint16_t)(k + k / STACK_DUMP_PIECES * 8);
	memset(record->data, 'k', n_kernel * 8u);
	memset(record->data + n_kernel * 8u, (int)('a' + i), n_bytes);
	return copy;
}

static void test_join(void **state)
{
	(void)state;
	for (uint32_t n = 2; n <= STACK_DUMP_PARTS; n++) {
		struct stack_dump_copy *copy = part_of(0, n, 3), *joined;
		struct stack_dump dump;

		for (uint32_t i = 1; i < n; i++) {
			struct stack_dump_copy *part = part_of(i, n, 3);

			assert_int_equal(stack_dump_join(copy, part, &joined), STACK_DUMP_OK);
			free(copy);
			free(part);
			copy = joined;
		}
		assert_int_equal(stack_dump_decode(copy->record, copy->size, &dump), STACK_DUMP_OK);
		assert_int_equal(dump.n_bytes,
				 (n - 1) * STACK_DUMP_BYTES + 2 * STACK_DUMP_READ_BYTES);
		assert_int_equal(dump.n_before, 0);
		assert_false(dump.more);
		assert_int_equal(dump.sample.n_kernel, 3);
		assert_memory_equal(dump.sample.kernel, "kkkkkkkk", 8);
		for (uint32_t i = 0; i < n; i++) {
			assert_int_equal(dump.bytes[i * STACK_DUMP_BYTES], 'a' + i);
			assert_int_equal(dump.pieces[i * STACK_DUMP_PIECES],
					 i * (STACK_DUMP_PIECES + 8));
		}
		assert_int_equal(dump.bytes[dump.n_bytes - 1], 'a' + n - 1);
		free(copy);
	}
}

/* Parts of other dumps, and behind a lost part. */
static void test_join_odd(void **state)
{
	struct stack_dump_copy *copy = part_of(0, 4, 3), *part, *joined = NULL;
	struct stack_dump_head *head;

	(void)state;
	for (int i = 0; i < 8; i++) {
		part = part_of(i == 0 ? 2 : 1, 4, i == 1 ? 2 : 3);
		head = (void *)part->record;
		head->key.tgid += i == 2;
		head->key.start_boottime_ns += i == 3;
		head->key.stack_hash += i == 4;
		head->time_ns += i == 5;
		head->at += i == 6 ? STACK_DUMP_READ_BYTES : 0;
		head->pieces[1] += i == 7;
		assert_int_equal(stack_dump_join(copy, part, &joined), STACK_DUMP_ODD);
		free(part);
	}
	part = part_of(1, 4, 3);
	((struct stack_dump_head *)(void *)copy->record)->more = 0;
	assert_int_equal(stack_dump_join(copy, part, &joined), STACK_DUMP_ODD);
	assert_null(joined);
	free(part);
	free(copy);
}

static void test_rates(void **state)
{
	(void)state;
	assert_int_equal(stack_dumps_per_cpu(0), STACK_DUMPS_PER_CPU);
	assert_int_equal(stack_dumps_per_cpu(1), STACK_DUMPS_PER_SECOND);
	assert_int_equal(stack_dumps_per_cpu(2), STACK_DUMPS_PER_SECOND / 2);
	assert_int_equal(stack_dumps_per_cpu(STACK_DUMPS_PER_SECOND / STACK_DUMPS_PER_CPU),
			 STACK_DUMPS_PER_CPU);
	assert_int_equal(stack_dumps_per_cpu(8192), STACK_DUMPS_PER_CPU);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_decode),	 cmocka_unit_test(test_excerpt),
		cmocka_unit_test(test_pieces),	 cmocka_unit_test(test_join),
		cmocka_unit_test(test_join_odd), cmocka_unit_test(test_rates),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
