// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <errno.h>
#include <string.h>

#include "cpu/fold.h"
#include "profile/sample.h"
#include "support/allocfail.h"

DEFINE_CLEANUP(struct fold *, fold_freep, fold_free);

/* Enough of an image for a table that only compares and counts references. The images are on the
 * test's stack, so the test keeps the last reference. */
static struct image image_a = {.kind = IMAGE_UNKNOWN, .refs = 1};
static struct image image_b = {.kind = IMAGE_UNKNOWN, .refs = 1};

struct stack_row {
	const char *name;
	struct frame frames[3];
	uint8_t marks[3];
	size_t n;
	uint64_t count;
	size_t want; /* index of the expected stack */
};

static const struct stack_row stack_rows[] = {
	{"first", {{&image_a, 16}, {&image_a, 32}}, {0, 1}, 2, 5, 0},
	{"the same", {{&image_a, 16}, {&image_a, 32}}, {0, 1}, 2, 7, 0},
	{"other address", {{&image_a, 16}, {&image_a, 33}}, {0, 1}, 2, 1, 1},
	{"other image", {{&image_a, 16}, {&image_b, 32}}, {0, 1}, 2, 1, 2},
	{"other order", {{&image_a, 32}, {&image_a, 16}}, {0, 1}, 2, 1, 3},
	{"other mark", {{&image_a, 16}, {&image_a, 32}}, {1, 1}, 2, 1, 4},
	{"a frame more", {{&image_a, 16}, {&image_a, 32}, {&image_a, 48}}, {0, 1, 1}, 3, 1, 5},
	{"a frame less", {{&image_a, 16}}, {0}, 1, 1, 6},
	{"no frames", {{0}}, {0}, 0, 2, 7},
	{"no frames again", {{0}}, {0}, 0, 3, 7},
	{"first again", {{&image_a, 16}, {&image_a, 32}}, {0, 1}, 2, 1, 0},
};

static int add(struct fold *fold, const struct frame *frames, const uint8_t *marks, size_t n,
	       uint64_t count)
{
	const struct fold_sample sample = {
		.frames = frames, .return_address = marks, .n_frames = n};

	return fold_add(fold, &sample, count, 3 * count);
}

static uint64_t n_samples(const struct fold *fold)
{
	uint64_t n = 0;

	for (size_t i = 0; i < fold_n(fold); i++)
		n += fold_get(fold, i).count;
	return n;
}

static void test_equal_stacks_are_one(void **state)
{
	_cleanup_(fold_freep) struct fold *fold = NULL;
	uint64_t counts[8] = {0}, total = 0;

	(void)state;
	assert_int_equal(fold_new(&fold), 0);
	for (size_t i = 0; i < array_size(stack_rows); i++) {
		const struct stack_row *row = &stack_rows[i];
		struct fold_stack got;

		row_begin(row->name);
		assert_int_equal(add(fold, row->frames, row->marks, row->n, row->count), 0);
		counts[row->want] += row->count;
		total += row->count;
		assert_true(fold_n(fold) > row->want);
		got = fold_get(fold, row->want);
		assert_int_equal(got.count, counts[row->want]);
		assert_int_equal(got.value, 3 * counts[row->want]);
		assert_int_equal(got.n_frames, row->n);
		if (row->n) {
			assert_memory_equal(got.frames, row->frames, row->n * sizeof(struct frame));
			assert_memory_equal(got.return_address, row->marks, row->n);
		}
	}
	assert_int_equal(fold_n(fold), array_size(counts));
	assert_int_equal(n_samples(fold), total);
}

static void test_references(void **state)
{
	struct frame frames[] = {{&image_a, 1}, {&image_a, 2}, {&image_b, 3}};
	static const uint8_t marks[3];
	struct fold *fold = NULL;

	(void)state;
	assert_int_equal(fold_new(&fold), 0);
	assert_int_equal(add(fold, frames, marks, 3, 1), 0);
	assert_int_equal(image_a.refs, 3);
	assert_int_equal(image_b.refs, 2);
	assert_int_equal(add(fold, frames, marks, 3, 1), 0);
	assert_int_equal(image_a.refs, 3);
	fold_free(fold);
	assert_int_equal(image_a.refs, 1);
	assert_int_equal(image_b.refs, 1);
}

/* Samples without a stack are in the totals only. */
static void test_lost(void **state)
{
	static const struct fold_sample lost = {
		.thread = "main", .is_truncated = true, .is_lost = true};
	_cleanup_(fold_freep) struct fold *fold = NULL;

	(void)state;
	assert_int_equal(fold_new(&fold), 0);
	assert_int_equal(fold_add(fold, &lost, 3, 30), 0);
	assert_int_equal(fold_add(fold, &lost, 4, 40), 0);
	assert_int_equal(fold_n(fold), 0);
	assert_int_equal(fold_totals(fold).n_refused, 7);
	assert_int_equal(fold_totals(fold).refused_value, 70);
	assert_int_equal(fold_totals(fold).n_truncated, 0);
}

/* The samples of whole stacks and of truncated ones are one stack if the frames are equal. */
static void test_truncated(void **state)
{
	static const struct frame frames[] = {{&image_a, 16}};
	static const uint8_t marks[] = {0};
	_cleanup_(fold_freep) struct fold *fold = NULL;
	struct fold_sample sample = {.frames = frames, .return_address = marks, .n_frames = 1};

	(void)state;
	assert_int_equal(fold_new(&fold), 0);
	assert_int_equal(fold_add(fold, &sample, 3, 30), 0);
	sample.is_truncated = true;
	assert_int_equal(fold_add(fold, &sample, 4, 40), 0);
	assert_int_equal(fold_n(fold), 1);
	assert_int_equal(fold_get(fold, 0).count, 7);
	assert_int_equal(fold_totals(fold).n_truncated, 4);
}

static void add_numbered(struct fold *fold, uint64_t i, int want)
{
	const struct frame frames[] = {{&image_a, i}, {&image_a, i * 0x10000}};
	static const uint8_t marks[] = {0, 1};

	assert_int_equal(add(fold, frames, marks, 2, i + 1), want);
}

static void test_ceiling(void **state)
{
	_cleanup_(fold_freep) struct fold *fold = NULL;
	uint64_t total;

	(void)state;
	assert_int_equal(fold_new(&fold), 0);
	for (uint64_t i = 0; i < FOLD_STACKS_MAX; i++)
		add_numbered(fold, i, 0);
	assert_int_equal(fold_n(fold), FOLD_STACKS_MAX);
	total = n_samples(fold);
	add_numbered(fold, FOLD_STACKS_MAX, FOLD_FULL);
	assert_int_equal(n_samples(fold), total);
	assert_int_equal(fold_totals(fold).n_refused, FOLD_STACKS_MAX + 1);
	assert_true(fold_totals(fold).refused_value > 0);
	assert_int_equal(fold_totals(fold).n_truncated, 0);
	/* known stacks still count, at the same place */
	add_numbered(fold, 77, 0);
	assert_int_equal(fold_get(fold, 77).count, 2 * 78);
	assert_int_equal(fold_get(fold, 77).frames[1].vaddr, 77 * 0x10000);
	/* 2 frames of 17 bytes, an entry of 24, up to 4 slots of 4; arrays are doubled */
	assert_in_range(fold_bytes(fold) / FOLD_STACKS_MAX, 2 * 17 + 24 + 8,
			2 * (2 * 17 + 24 + 16));
}

struct thread_row {
	const char *name;
	const char *thread;
	const char *label; /* NULL: none */
	size_t want;	   /* index of the expected stack */
};

static const struct thread_row thread_rows[] = {
	{"a name", "main", "main", 0},
	{"the same", "main", "main", 0},
	{"another", "worker", "worker", 1},
	{"none", "", NULL, 2},
	{"the first again", "main", "main", 0},
	{"none again", "", NULL, 2},
	{"as long as it can be", "fifteen-bytes-x", "fifteen-bytes-x", 3},
	{"not UTF-8", "a\xff", "a?", 4},
	{"repaired to the same", "a\xfe", "a?", 4},
	{"half a character", "fifteen-bytes-\xc3", "fifteen-bytes-?", 5},
	{"a control character", "a\033b", "a?b", 6},
	{"the name of all others", SAMPLE_OTHER_THREAD, SAMPLE_OTHER_THREAD, 7},
};

static int add_of(struct fold *fold, const char *thread, uint64_t count)
{
	static const struct frame frames[] = {{&image_a, 16}, {&image_a, 32}};
	static const uint8_t marks[] = {0, 1};

	const struct fold_sample sample = {
		.frames = frames, .return_address = marks, .n_frames = 2, .thread = thread};

	return fold_add(fold, &sample, count, count);
}

static void test_threads(void **state)
{
	_cleanup_(fold_freep) struct fold *fold = NULL;

	(void)state;
	assert_int_equal(fold_new(&fold), 0);
	for (size_t i = 0; i < array_size(thread_rows); i++) {
		const struct thread_row *row = &thread_rows[i];
		struct fold_stack got;

		row_begin(row->name);
		assert_int_equal(add_of(fold, row->thread, 1), 0);
		assert_true(fold_n(fold) > row->want);
		got = fold_get(fold, row->want);
		if (row->label)
			assert_string_equal(got.thread, row->label);
		else
			assert_null(got.thread);
	}
	assert_int_equal(fold_n(fold), 8);
	assert_int_equal(n_samples(fold), array_size(thread_rows));
	assert_int_equal(fold_totals(fold).n_other, 0);
}

/* Above the limit a known name counts as before, and all others have one stack. */
static void test_threads_ceiling(void **state)
{
	_cleanup_(fold_freep) struct fold *fold = NULL;
	char name[PID_COMM_MAX];
	struct fold_stack got;

	(void)state;
	assert_int_equal(fold_new(&fold), 0);
	for (size_t i = 0; i < FOLD_NAMES_MAX; i++) {
		snprintf(name, sizeof(name), "%zu", i);
		assert_int_equal(add_of(fold, name, 1), 0);
	}
	assert_int_equal(fold_n(fold), FOLD_NAMES_MAX);
	assert_int_equal(fold_totals(fold).n_other, 0);
	assert_int_equal(add_of(fold, "one more", 5), 0);
	assert_int_equal(add_of(fold, "and another", 6), 0);
	assert_int_equal(fold_n(fold), FOLD_NAMES_MAX + 1);
	got = fold_get(fold, FOLD_NAMES_MAX);
	assert_string_equal(got.thread, SAMPLE_OTHER_THREAD);
	assert_int_equal(got.count, 11);
	assert_int_equal(fold_totals(fold).n_other, 11);
	assert_int_equal(add_of(fold, "77", 2), 0);
	assert_int_equal(fold_get(fold, 77).count, 3);
	assert_int_equal(add_of(fold, SAMPLE_OTHER_THREAD, 1), 0);
	assert_int_equal(fold_get(fold, FOLD_NAMES_MAX).count, 12);
	assert_int_equal(fold_totals(fold).n_other, 11);
	/* names of 48 bytes and an entry of 32 with its slots */
	assert_in_range(fold_bytes(fold) / FOLD_NAMES_MAX, 48, 2 * (48 + 2 * 17 + 32 + 16));
}

static int add_task(struct fold *fold, const char *thread, const char *task)
{
	static const struct frame frames[] = {{&image_a, 16}};
	static const uint8_t marks[] = {0};

	const struct fold_sample sample = {.frames = frames,
					   .return_address = marks,
					   .n_frames = 1,
					   .thread = thread,
					   .task = task};

	return fold_add(fold, &sample, 1, 1);
}

/* A stack of one thread in two tasks is two stacks; above the limit, only names that there are
 * become "(other)". */
static void test_tasks(void **state)
{
	static const struct {
		const char *name, *thread, *task, *want_thread, *want_task;
		size_t want;
	} rows[] = {
		{"neither", "", "", NULL, NULL, 0},
		{"both", "main", "a", "main", "a", 1},
		{"another task", "main", "b", "main", "b", 2},
		{"no task", "main", "", "main", NULL, 3},
		{"a task alone", "", "a", NULL, "a", 4},
		{"the first again", "main", "a", "main", "a", 1},
		{"as long as it can be", "", "a-name-of-thirty-one-bytes-1234", NULL,
		 "a-name-of-thirty-one-bytes-1234", 5},
		{"not UTF-8", "", "\xff", NULL, "?", 6},
	};
	_cleanup_(fold_freep) struct fold *fold = NULL;
	char name[SAMPLE_TASK_BYTES];
	struct fold_stack got;

	(void)state;
	assert_int_equal(fold_new(&fold), 0);
	for (size_t i = 0; i < array_size(rows); i++) {
		row_begin(rows[i].name);
		assert_int_equal(add_task(fold, rows[i].thread, rows[i].task), 0);
		got = fold_get(fold, rows[i].want);
		if (rows[i].want_thread)
			assert_string_equal(got.thread, rows[i].want_thread);
		else
			assert_null(got.thread);
		if (rows[i].want_task)
			assert_string_equal(got.task, rows[i].want_task);
		else
			assert_null(got.task);
	}
	for (size_t i = fold_n(fold) - 1; i < FOLD_NAMES_MAX; i++) {
		snprintf(name, sizeof(name), "%zu", i);
		assert_int_equal(add_task(fold, "", name), 0);
	}
	assert_int_equal(fold_n(fold), FOLD_NAMES_MAX + 1);
	assert_int_equal(add_task(fold, "", "one more"), 0);
	assert_int_equal(add_task(fold, "x", "one more"), 0);
	assert_int_equal(add_task(fold, "x", ""), 0);
	assert_int_equal(add_task(fold, "y", SAMPLE_OTHER_THREAD), 0);
	assert_int_equal(fold_n(fold), FOLD_NAMES_MAX + 4);
	got = fold_get(fold, FOLD_NAMES_MAX + 1);
	assert_null(got.thread);
	assert_string_equal(got.task, SAMPLE_OTHER_THREAD);
	got = fold_get(fold, FOLD_NAMES_MAX + 2);
	assert_string_equal(got.thread, SAMPLE_OTHER_THREAD);
	assert_string_equal(got.task, SAMPLE_OTHER_THREAD);
	assert_int_equal(got.count, 2);
	assert_int_equal(fold_totals(fold).n_other, 4);
}

static void test_frames_ceiling(void **state)
{
	_cleanup_(fold_freep) struct fold *fold = NULL;
	static struct frame frames[256];
	static const uint8_t marks[256];
	uint64_t i;

	(void)state;
	assert_int_equal(fold_new(&fold), 0);
	for (i = 0; i < FOLD_FRAMES_MAX / 256; i++) {
		for (size_t f = 0; f < 256; f++)
			frames[f] = (struct frame){&image_a, i};
		assert_int_equal(add(fold, frames, marks, 256, 1), 0);
	}
	for (size_t f = 0; f < 256; f++)
		frames[f].vaddr = i;
	assert_int_equal(add(fold, frames, marks, 1, 1), FOLD_FULL);
	assert_int_equal(fold_n(fold), FOLD_FRAMES_MAX / 256);
}

static int fill(void *ctx)
{
	_cleanup_(fold_freep) struct fold *fold = NULL;
	static const uint8_t marks[] = {0, 1};
	char name[PID_COMM_MAX];
	int r;

	(void)ctx;
	r = fold_new(&fold);
	for (uint64_t i = 0; r == 0 && i < 200; i++) {
		const struct frame frames[] = {{&image_a, i}, {&image_b, i}};
		const struct fold_sample sample = {
			.frames = frames, .return_address = marks, .n_frames = 2, .thread = name};
		const size_t n = fold_n(fold);

		snprintf(name, sizeof(name), "%zu", n);
		r = fold_add(fold, &sample, 1, 3);
		/* all or nothing */
		assert_int_equal(fold_n(fold), r ? n : n + 1);
		assert_int_equal(n_samples(fold), fold_n(fold));
		assert_int_equal(fold_totals(fold).n_refused, r ? 1 : 0);
		assert_int_equal(image_a.refs, 1 + fold_n(fold));
	}
	return r;
}

static void test_no_memory(void **state)
{
	(void)state;
	allocfail_each(fill, NULL);
	assert_int_equal(image_a.refs, 1);
	assert_int_equal(image_b.refs, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_equal_stacks_are_one),
		cmocka_unit_test(test_references),
		cmocka_unit_test(test_lost),
		cmocka_unit_test(test_truncated),
		cmocka_unit_test(test_ceiling),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_threads_ceiling),
		cmocka_unit_test(test_tasks),
		cmocka_unit_test(test_frames_ceiling),
		cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
