// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <string.h>

#include "profile/sample.h"
#include "shared/sample.h"

struct decode_row {
	const char *name;
	size_t value_size;
	uint64_t count;
	uint32_t tgid, end, n_kernel, n_user;
	int want;
};

#define SMALL sizeof(struct sample_small)
#define LARGE sizeof(struct sample_large)
#define DEEP  sizeof(struct sample_deep)
#define HEAD  sizeof(struct sample_head)

static const struct decode_row decode_rows[] = {
	{"usual", SMALL, 3, 42, SAMPLE_END_COMPLETE, 2, 5, SAMPLE_OK},
	{"small, full", SMALL, 1, 42, SAMPLE_END_FP_LOW, 0, 40, SAMPLE_OK},
	{"small, full of both", SMALL, 1, 42, SAMPLE_END_FP_LOW, 39, 1, SAMPLE_OK},
	{"small, one over", SMALL, 1, 42, SAMPLE_END_COMPLETE, 20, 21, SAMPLE_ODD},
	{"the same, large", LARGE, 1, 42, SAMPLE_END_COMPLETE, 20, 21, SAMPLE_OK},
	{"large, full", LARGE, 1, 42, SAMPLE_END_MAX_FRAMES, 80, 80, SAMPLE_OK},
	{"large, one over", LARGE, 1, 42, SAMPLE_END_COMPLETE, 80, 81, SAMPLE_ODD},
	{"the same, deep", DEEP, 1, 42, SAMPLE_END_COMPLETE, 80, 81, SAMPLE_OK},
	{"deep, as full as can be", DEEP, 1, 42, SAMPLE_END_MAX_FRAMES, 127, 512, SAMPLE_OK},
	{"too many user frames", DEEP, 1, 42, SAMPLE_END_COMPLETE, 0, 513, SAMPLE_ODD},
	{"too many kernel frames", LARGE, 1, 42, SAMPLE_END_COMPLETE, 128, 0, SAMPLE_ODD},
	{"lengths that wrap", LARGE, 1, 42, SAMPLE_END_COMPLETE, UINT16_MAX, 2, SAMPLE_ODD},
	{"no samples", SMALL, 0, 42, SAMPLE_END_COMPLETE, 0, 1, SAMPLE_ODD},
	{"no process", SMALL, 1, 0, SAMPLE_END_COMPLETE, 0, 1, SAMPLE_ODD},
	{"last end", SMALL, 1, 42, SAMPLE_END_MAX - 1, 0, 1, SAMPLE_OK},
	{"no such end", SMALL, 1, 42, SAMPLE_END_MAX, 0, 1, SAMPLE_ODD},
	{"without a stack", HEAD, 1, 42, SAMPLE_END_NO_USER, 0, 0, SAMPLE_OK},
	{"no room for a frame", HEAD, 1, 42, SAMPLE_END_COMPLETE, 0, 1, SAMPLE_ODD},
	{"largest process", SMALL, UINT64_MAX, UINT32_MAX, 0, 1, 0, SAMPLE_OK},
};

static void test_decode(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(decode_rows); i++) {
		const struct decode_row *row = &decode_rows[i];
		struct sample_key key = {.start_boottime_ns = 12345678901234ull,
					 .cgroup_id = 11,
					 .cgroup_v1_id = 22,
					 .exec_id = 33,
					 .tgid = row->tgid,
					 .end = row->end,
					 .stack_hash = 44,
					 .flags = SAMPLE_FLAG_NO_TABLE};
		struct sample_deep value = {.head = {.count = row->count,
						     .n_kernel = row->n_kernel,
						     .n_user = row->n_user}};
		struct sample got = {.count = 77};

		row_begin(row->name);
		memset(value.head.comm, 'x', sizeof(value.head.comm)); /* no NUL */
		assert_int_equal(sample_decode(&key, &value, row->value_size, &got), row->want);
		if (row->want != SAMPLE_OK) {
			assert_int_equal(got.count, 77);
			continue;
		}
		assert_true(got.count == row->count);
		assert_int_equal(got.pid.pid, row->tgid);
		assert_true(got.pid.start_ticks == pid_ticks_of_ns(12345678901234ull));
		assert_int_equal(got.cgroup_id, 11);
		assert_int_equal(got.cgroup_v1_id, 22);
		assert_int_equal(got.exec_id, 33);
		assert_true(got.start_boottime_ns == 12345678901234ull);
		assert_int_equal(got.end, row->end);
		assert_int_equal(got.flags, SAMPLE_FLAG_NO_TABLE);
		assert_int_equal(got.dump_id, 0);
		assert_int_equal(got.n_kernel, row->n_kernel);
		assert_int_equal(got.n_user, row->n_user);
		assert_int_equal(got.n_native, row->n_user);
		assert_int_equal(got.n_runtime, 0);
		assert_ptr_equal(got.kernel, value.frames);
		assert_ptr_equal(got.user, value.frames + row->n_kernel);
		assert_string_equal(got.comm, "xxxxxxxxxxxxxxx");

		key.flags |= SAMPLE_FLAG_DUMPED;
		assert_int_equal(sample_decode(&key, &value, row->value_size, &got), SAMPLE_OK);
		assert_int_equal(got.dump_id, 44);
	}
}

struct thread_row {
	const char *name;
	size_t value_size;
	uint32_t flags, n_kernel, n_user;
	char words[PID_COMM_MAX + 1];
	int want;
	const char *thread;
	char task_words[SAMPLE_TASK_BYTES + 1];
	const char *task;
};

#define NAMED SAMPLE_FLAG_THREAD
#define OTHER SAMPLE_FLAG_OTHER_THREAD
#define TASK  SAMPLE_FLAG_TASK

static const struct thread_row thread_rows[] = {
	{"no name", SMALL, 0, 1, 2, "main", SAMPLE_OK, "", "", NULL},
	{"a name", SMALL, NAMED, 1, 2, "main", SAMPLE_OK, "main", "", NULL},
	{"an empty name", SMALL, NAMED, 1, 2, "", SAMPLE_OK, "", "", NULL},
	{"any bytes", SMALL, NAMED, 1, 2, "\xff\x01", SAMPLE_OK, "\xff\x01", "", NULL},
	{"without its NUL", SMALL, NAMED, 1, 2, "sixteen letters!", SAMPLE_OK, "sixteen letters",
	 "", NULL},
	{"above the limit", SMALL, OTHER, 1, 2, "main", SAMPLE_OK, SAMPLE_OTHER_THREAD, "", NULL},
	{"small, full", SMALL, NAMED, 8, 30, "main", SAMPLE_OK, "main", "", NULL},
	{"small, one over", SMALL, NAMED, 8, 31, "main", SAMPLE_ODD, NULL, "", NULL},
	{"the same, above the limit", SMALL, OTHER, 8, 32, "main", SAMPLE_OK, SAMPLE_OTHER_THREAD,
	 "", NULL},
	{"deep, full", DEEP, NAMED, 126, 512, "main", SAMPLE_OK, "main", "", NULL},
	{"deep, one over", DEEP, NAMED, 127, 512, "main", SAMPLE_ODD, NULL, "", NULL},
	{"a task", SMALL, TASK, 1, 2, "", SAMPLE_OK, "", "a task", "a task"},
	{"both", SMALL, NAMED | TASK, 1, 2, "main", SAMPLE_OK, "main", "a task", "a task"},
	{"a task without its NUL", SMALL, TASK, 1, 2, "", SAMPLE_OK, "",
	 "thirty-two letters are too many!", "thirty-two letters are too many"},
	{"a task above the limit", SMALL, NAMED | SAMPLE_FLAG_OTHER_TASK, 1, 2, "main", SAMPLE_OK,
	 "main", "x", SAMPLE_OTHER_THREAD},
	{"small with both, full", SMALL, NAMED | TASK, 8, 26, "main", SAMPLE_OK, "main", "t", "t"},
	{"small with both, one over", SMALL, NAMED | TASK, 8, 27, "main", SAMPLE_ODD, NULL, "",
	 NULL},
};

static void test_thread(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(thread_rows); i++) {
		const struct thread_row *row = &thread_rows[i];
		struct sample_key key = {.tgid = 42, .flags = (__u16)row->flags};
		struct sample_deep value = {.head = {.count = 1,
						     .n_kernel = (__u16)row->n_kernel,
						     .n_user = (__u16)row->n_user}};
		size_t at = row->n_kernel + row->n_user;
		struct sample got;

		row_begin(row->name);
		if (at + SAMPLE_THREAD_WORDS <= array_size(value.frames))
			memcpy(&value.frames[at], row->words, PID_COMM_MAX);
		at += row->flags & NAMED ? SAMPLE_THREAD_WORDS : 0;
		if (row->task)
			memcpy(&value.frames[at], row->task_words, SAMPLE_TASK_BYTES);
		assert_int_equal(sample_decode(&key, &value, row->value_size, &got), row->want);
		if (row->want)
			continue;
		assert_string_equal(got.thread, row->thread);
		assert_string_equal(got.task, row->task ? row->task : "");
	}
}

struct user_row {
	const char *name;
	uint64_t words[6];
	size_t n, n_rows;
	int want;
	size_t n_native, n_runtime;
};

#define RUNTIME frame_head(1, 1, FRAME_REASON_NONE, 0x7f0000001000)
#define BROKEN	frame_head(1, 0, FRAME_REASON_UNREADABLE, 0)

/* The words of user halves: permitted places of a runtime's frames, and their exclusion from other
 * counts. */
static void test_user(void **state)
{
	const struct user_row rows[] = {
		{"native", {1, 2, 3}, 3, 2, SAMPLE_OK, 3, 0},
		{"nothing", {0}, 0, 0, SAMPLE_OK, 0, 0},
		{"a row led to the innermost", {1, 2, 3}, 3, 3, SAMPLE_ODD, 0, 0},
		{"both kinds", {1, RUNTIME, 77, 2, BROKEN, 3}, 6, 2, SAMPLE_OK, 3, 2},
		{"a row led to a runtime's frame", {1, RUNTIME, 77, 2}, 4, 2, SAMPLE_ODD, 0, 0},
		{"a runtime's is the last", {1, RUNTIME, 77}, 3, 0, SAMPLE_OK, 1, 1},
		{"its second word is not there", {1, 2, RUNTIME, 77}, 3, 1, SAMPLE_ODD, 0, 0},
		{"a broken one is the last", {1, BROKEN}, 2, 0, SAMPLE_OK, 1, 1},
		{"a runtime's is the first", {RUNTIME, 77, 1, 2}, 4, 2, SAMPLE_OK, 2, 1},
		{"with a row too many", {RUNTIME, 77, 1, 2}, 4, 3, SAMPLE_ODD, 0, 0},
		{"a word that is no frame", {1, FRAME_PC_LIMIT}, 2, 0, SAMPLE_ODD, 0, 0},
	};

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		const struct user_row *row = &rows[i];
		struct sample got = {.n_user = 99};
		struct frame_record frame;
		size_t at = 0, n = 0;

		row_begin(row->name);
		assert_int_equal(sample_set_user(&got, row->words, row->n, row->n_rows), row->want);
		if (row->want) {
			assert_int_equal(got.n_user, 99);
			continue;
		}
		assert_int_equal(got.n_user, row->n);
		assert_int_equal(got.n_rows, row->n_rows);
		assert_int_equal(got.n_native, row->n_native);
		assert_int_equal(got.n_runtime, row->n_runtime);
		for (; sample_user_next(&got, &at, &frame); n++)
			assert_int_equal(frame.kind == FRAME_NATIVE,
					 !(row->words[at - frame.n_words] >> 63));
		assert_int_equal(at, row->n);
		assert_int_equal(n, row->n_native + row->n_runtime);
	}
}

/* A value of the maps with words that are not frames is dropped. */
static void test_user_of_value(void **state)
{
	const struct sample_key key = {.tgid = 42};
	struct sample_small value = {.head = {.count = 1, .n_kernel = 1, .n_user = 3}};
	struct sample got;

	(void)state;
	value.frames[0] = 0xffffffff81000000ull;
	value.frames[1] = 0x401000;
	value.frames[2] = RUNTIME;
	value.frames[3] = 77;
	assert_int_equal(sample_decode(&key, &value, sizeof(value), &got), SAMPLE_OK);
	assert_int_equal(got.n_runtime, 1);
	value.head.n_user = 2;
	assert_int_equal(sample_decode(&key, &value, sizeof(value), &got), SAMPLE_ODD);
}

static void test_names(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < SAMPLE_STAT_MAX; i++) {
		assert_non_null(sample_stat_name(i));
		for (unsigned int j = 0; j < i; j++)
			assert_string_not_equal(sample_stat_name(i), sample_stat_name(j));
		assert_int_equal(sample_stat_delivered(i), i < SAMPLE_END_MAX);
	}
	assert_string_equal(sample_stat_name(SAMPLE_END_COMPLETE), "ok");
	assert_string_equal(sample_stat_name(SAMPLE_STAT_LOST_FULL), "lost_full");
	assert_string_equal(sample_stat_name(SAMPLE_STAT_MAX), "unknown");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_decode), cmocka_unit_test(test_thread),
		cmocka_unit_test(test_user),   cmocka_unit_test(test_user_of_value),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
