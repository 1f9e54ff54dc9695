// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

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
	{"too many bytes", 42, 0, 0, STACK_DUMP_BYTES + 1, STACK_DUMP_ONCPU, 1, AT, 0,
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
		for (uint16_t k = 0; k < STACK_DUMP_PIECES; k++)
			record.head.pieces[k] = k;
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
		cmocka_unit_test(test_decode),
		cmocka_unit_test(test_excerpt),
		cmocka_unit_test(test_pieces),
		cmocka_unit_test(test_rates),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
