// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "goheap/buckets.h"
#include "goheap/contention.h"
#include "goheap/goheap.h"
#include "support/allocfail.h"
#include "support/heapimage.h"

#define CHUNK	    0x7f0000020000ull
#define CHUNK_BYTES 0x10000
#define SIZE	    64

static const uint64_t pcs[] = {0x401000, 0x402000};

/* ---------------------------------------------------------------- published slots */

struct publish_row {
	const char *name;
	uint32_t cycle;
	bool flushed;
	heapimage_counts counts;
	uint64_t allocs;
	uint64_t frees;
	uint64_t fresh_allocs;
};

static const struct publish_row publish_rows[] = {
	{"after a collection", 4, true, {{5, 2}, {1, 0}, {0, 0}, {3, 1}}, 5, 2, 9},
	{"between mark and addition: cycle 3", 3, false, {{5, 2}, {1, 1}, {0, 0}, {3, 1}}, 6, 3, 9},
	{"between mark and addition: cycle 4",
	 4,
	 false,
	 {{5, 2}, {1, 0}, {7, 2}, {3, 1}},
	 12,
	 4,
	 16},
	{"between mark and addition: cycle 5", 5, false, {{5, 2}, {1, 0}, {0, 0}, {3, 1}}, 8, 3, 9},
	{"addition is on its way", 4, true, {{5, 2}, {0, 0}, {7, 2}, {3, 1}}, 12, 4, 15},
	{"the largest cycle", 100663295, true, {{5, 2}, {0, 0}, {0, 0}, {1, 0}}, 6, 2, 6},
	{"nothing published yet", 0, false, {{0, 0}, {0, 0}, {1, 0}, {3, 1}}, 4, 1, 4},
	{"nothing published but what is next", 0, false, {{0, 0}, {2, 0}, {1, 0}, {3, 1}}, 2, 0, 6},
	{"2^64 allocations",
	 0,
	 true,
	 {{UINT64_MAX, 2}, {0, 0}, {0, 0}, {3, 1}},
	 UINT64_MAX,
	 2,
	 UINT64_MAX},
};

static void test_published(void **state)
{
	(void)state;
	for (size_t i = 0; i < 2 * array_size(publish_rows); i++) {
		const struct publish_row *row = &publish_rows[i / 2];
		const heapimage_counts none = {{0}};
		_cleanup_(heapimage_deinit) struct heapimage image;
		struct goheap_profile profile;
		struct goheap_record record;
		struct goruntime rt;
		struct goheap *heap;
		bool wide = i % 2;

		row_begin(row->name);
		if (wide && row->allocs == UINT64_MAX)
			continue; /* 2^64 times the size adds up to nothing */
		heapimage_init(&image);
		heapimage_map(&image, CHUNK, CHUNK_BYTES);
		heapimage_bucket(&image, CHUNK, 0, wide, pcs, 2, SIZE, none);
		heapimage_bucket(&image, CHUNK + 0x1000, CHUNK, wide, pcs, 1, SIZE, row->counts);
		heapimage_head(&image, CHUNK + 0x1000);
		heapimage_cycle(&image, row->cycle, row->flushed);
		heapimage_runtime(wide ? "go1.26" : "go1.27", &rt);
		assert_int_equal(goheap_new_of_memory(&rt, &image.memory, 0, &heap), 0);
		if (row->allocs == UINT64_MAX) {
			assert_int_equal(goheap_read(heap, &profile), GORUNTIME_UNKNOWN_LAYOUT);
			goheap_free(heap);
			continue;
		}
		assert_int_equal(goheap_read(heap, &profile), GORUNTIME_OK);
		assert_int_equal(profile.n_records, 2);
		assert_int_equal(profile.rate, 524288);
		assert_true(profile.first && profile.settled);
		assert_int_equal(profile.blank_label, wide);
		goheap_record(&profile, 0, &record);
		assert_int_equal(record.n_pcs, 1);
		assert_int_equal(record.size, SIZE);
		assert_int_equal(record.allocs, row->allocs);
		assert_int_equal(record.frees, row->frees);
		assert_int_equal(record.fresh_allocs, row->fresh_allocs);
		assert_int_equal(record.before_allocs, 0);
		goheap_free(heap);
	}
}

/* ---------------------------------------------------------------- states */

static void test_states(void **state)
{
	static const struct {
		const char *name;
		int64_t rate;
		bool flag;
		bool has_records;
		int outcome; /* of the memory */
		enum goruntime_state want;
	} rows[] = {
		{"ok", 524288, false, true, 0, GORUNTIME_OK},
		{"no samples", 524288, false, false, 0, GORUNTIME_NO_SAMPLES_YET},
		{"linker", 0, true, false, 0, GORUNTIME_DISABLED_BY_LINKER},
		{"linker, with the record of the start", 0, true, true, 0,
		 GORUNTIME_DISABLED_BY_LINKER},
		{"program", 0, false, true, 0, GORUNTIME_DISABLED_BY_PROGRAM},
		{"program, negative", -1, false, true, 0, GORUNTIME_DISABLED_BY_PROGRAM},
		{"on in spite of the linker", 4096, true, true, 0, GORUNTIME_OK},
		{"turned on in an earlier life of the agent", 524288, true, true, 0,
		 GORUNTIME_FORCED},
		{"gone", 524288, false, true, MEMORY_GONE, GORUNTIME_GONE},
		{"denied", 524288, false, true, MEMORY_DENIED, GORUNTIME_DENIED},
	};

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		_cleanup_(heapimage_deinit) struct heapimage image;
		struct goheap_profile profile;
		struct goruntime rt;
		struct goheap *heap;

		row_begin(rows[i].name);
		heapimage_init(&image);
		heapimage_map(&image, CHUNK, CHUNK_BYTES);
		heapimage_bucket(&image, CHUNK, 0, true, pcs, 2, SIZE,
				 (const heapimage_counts){{1, 0}});
		heapimage_head(&image, rows[i].has_records ? CHUNK : 0);
		heapimage_rate(&image, rows[i].rate);
		heapimage_u64(&image, HEAPIMAGE_VARS + 24, rows[i].flag);
		heapimage_runtime("go1.26", &rt);
		assert_int_equal(goheap_new_of_memory(&rt, &image.memory, 0, &heap), 0);
		image.outcome = rows[i].outcome;
		assert_int_equal(goheap_read(heap, &profile), rows[i].want);
		assert_int_equal(goheap_state(heap), rows[i].want);
		goheap_free(heap);
	}
}

/* ---------------------------------------------------------------- several reads */

static uint64_t counters;
static uint64_t changes_until;

/* A collection ends between the reads of the first few passes. */
static void collect(struct heapimage *image, uint64_t n)
{
	if (n <= changes_until)
		heapimage_cycle(image, (uint32_t)n, true);
}

static void test_reads(void **state)
{
	_cleanup_(heapimage_deinit) struct heapimage image;
	struct goheap_profile profile;
	struct goheap_record record;
	struct goheap_totals totals;
	struct goruntime rt;
	struct goheap *heap;

	(void)state;
	heapimage_init(&image);
	heapimage_map(&image, CHUNK, CHUNK_BYTES);
	counters = heapimage_bucket(&image, CHUNK, 0, false, pcs, 2, SIZE,
				    (const heapimage_counts){{10, 4}, {0, 0}, {0, 0}, {5, 0}});
	heapimage_head(&image, CHUNK);
	heapimage_rate(&image, 1);
	heapimage_runtime("go1.27", &rt);
	assert_int_equal(goheap_new_of_memory(&rt, &image.memory, 0, &heap), 0);
	assert_int_equal(goheap_read(heap, &profile), GORUNTIME_OK);
	assert_true(profile.first);
	/* the variables, the record, the variables again */
	assert_int_equal(profile.n_calls, 3);
	goheap_totals(&profile, &totals);
	assert_int_equal(totals.alloc.objects, 15);
	assert_int_equal(totals.alloc.bytes, 15 * SIZE);
	assert_int_equal(totals.inuse.objects, 6);

	heapimage_counters(&image, counters, false, SIZE,
			   (const heapimage_counts){{15, 4}, {0, 0}, {2, 0}, {0, 3}});
	heapimage_bucket(&image, CHUNK + 0x100, CHUNK, false, pcs, 1, SIZE,
			 (const heapimage_counts){{0, 0}, {0, 0}, {7, 0}});
	heapimage_head(&image, CHUNK + 0x100);
	assert_int_equal(goheap_read(heap, &profile), GORUNTIME_OK);
	assert_false(profile.first);
	assert_int_equal(profile.n_records, 2);
	goheap_record(&profile, 0, &record);
	assert_int_equal(record.before_allocs, 15);
	assert_int_equal(record.fresh_allocs, 17);
	goheap_record(&profile, 1, &record);
	assert_int_equal(record.before_allocs, 0);
	assert_int_equal(record.fresh_allocs, 7);

	/* unsettled once, then quiet */
	image.on_read = collect;
	changes_until = image.memory.n_calls + 3;
	assert_int_equal(goheap_read(heap, &profile), GORUNTIME_OK);
	assert_true(profile.settled);
	/* permanent changes: accepted as read */
	changes_until = UINT64_MAX;
	assert_int_equal(goheap_read(heap, &profile), GORUNTIME_OK);
	assert_false(profile.settled);
	goheap_record(&profile, 1, &record);
	assert_int_equal(record.before_allocs, 7);
	goheap_free(heap);
}

/* The program turns sampling off between two attempts of a read. */
static void turn_off(struct heapimage *image, uint64_t n)
{
	if (n != changes_until)
		return;
	heapimage_cycle(image, 1, true);
	heapimage_rate(image, 0);
}

static void test_turned_off(void **state)
{
	_cleanup_(heapimage_deinit) struct heapimage image;
	struct goheap_profile profile;
	struct goruntime rt;
	struct goheap *heap;

	(void)state;
	heapimage_init(&image);
	heapimage_map(&image, CHUNK, CHUNK_BYTES);
	heapimage_bucket(&image, CHUNK, 0, false, pcs, 2, SIZE, (const heapimage_counts){{10, 4}});
	heapimage_head(&image, CHUNK);
	heapimage_runtime("go1.27", &rt);
	assert_int_equal(goheap_new_of_memory(&rt, &image.memory, 0, &heap), 0);
	image.on_read = turn_off;
	changes_until = 2; /* after the variables */
	assert_int_equal(goheap_read(heap, &profile), GORUNTIME_OK);
	assert_true(profile.settled);
	/* 1 would be no scaling at all */
	assert_int_equal(profile.rate, 524288);
	assert_int_equal(goheap_read(heap, &profile), GORUNTIME_DISABLED_BY_PROGRAM);
	goheap_free(heap);
}

/* A runtime without a record so far: all that the first record has is of the time since. */
static void test_none_before(void **state)
{
	static const int64_t rates[] = {524288, 0};

	(void)state;
	for (size_t i = 0; i < array_size(rates); i++) {
		_cleanup_(heapimage_deinit) struct heapimage image;
		struct goheap_profile profile;
		struct goheap_record record;
		struct goruntime rt;
		struct goheap *heap;

		heapimage_init(&image);
		heapimage_map(&image, CHUNK, CHUNK_BYTES);
		heapimage_rate(&image, rates[i]);
		heapimage_runtime("go1.27", &rt);
		assert_int_equal(goheap_new_of_memory(&rt, &image.memory, 0, &heap), 0);
		assert_int_equal(goheap_read(heap, &profile),
				 rates[i] ? GORUNTIME_NO_SAMPLES_YET
					  : GORUNTIME_DISABLED_BY_PROGRAM);
		heapimage_bucket(&image, CHUNK, 0, false, pcs, 2, SIZE,
				 (const heapimage_counts){{10, 4}});
		heapimage_head(&image, CHUNK);
		heapimage_rate(&image, 4096);
		assert_int_equal(goheap_read(heap, &profile), GORUNTIME_OK);
		assert_false(profile.first);
		goheap_record(&profile, 0, &record);
		assert_int_equal(record.fresh_allocs, 10);
		assert_int_equal(record.before_allocs, 0);
		goheap_free(heap);
	}
}

/* The same for contention, also if the program turns the profiler on later. */
static void test_no_contention_before(void **state)
{
	const uint64_t head = CHUNK + 0x8000, rate = head + 8;
	const uint64_t words[] = {0, 0, 3, bucket_hash(pcs, 2, 0), 0, 2, pcs[0], pcs[1]};
	const double values[] = {5, 1e6};
	_cleanup_(heapimage_deinit) struct heapimage image;
	struct contention_profile profile;
	struct contention_record record;
	struct goruntime rt;
	struct goheap *heap;

	(void)state;
	heapimage_init(&image);
	heapimage_map(&image, CHUNK, CHUNK_BYTES);
	heapimage_runtime("go1.27", &rt);
	rt.file.vars[GORUNTIME_XBUCKETS] =
		(struct goruntime_place){head, GORUNTIME_FROM_SYMTAB, ".bss"};
	rt.file.vars[GORUNTIME_MUTEX_RATE] =
		(struct goruntime_place){rate, GORUNTIME_FROM_SYMTAB, ".bss"};
	assert_int_equal(goheap_new_of_memory(&rt, &image.memory, 0, &heap), 0);
	assert_int_equal(goheap_contention(heap, GO_PROFILE_MUTEX, &profile),
			 GORUNTIME_DISABLED_BY_PROGRAM);
	heapimage_write(&image, CHUNK, words, sizeof(words));
	heapimage_write(&image, CHUNK + sizeof(words), values, sizeof(values));
	heapimage_u64(&image, head, CHUNK);
	heapimage_u64(&image, rate, 1);
	assert_int_equal(goheap_contention(heap, GO_PROFILE_MUTEX, &profile), GORUNTIME_OK);
	assert_int_equal(profile.n_records, 1);
	assert_false(profile.first);
	contention_record(&profile, 0, &record);
	assert_int_equal(record.contentions, 5);
	assert_int_equal(record.before_contentions, 0);
	goheap_free(heap);
}

/* A heap that is too large or broken is dropped, and read from the start after it has recovered. */
static void test_again_after_failure(void **state)
{
	_cleanup_(heapimage_deinit) struct heapimage image;
	struct goheap_profile profile;
	struct goruntime rt;
	struct goheap *heap;

	(void)state;
	heapimage_init(&image);
	heapimage_map(&image, CHUNK, CHUNK_BYTES);
	heapimage_bucket(&image, CHUNK, 0, false, pcs, 2, SIZE, (const heapimage_counts){{10, 4}});
	heapimage_bucket(&image, CHUNK + 0x100, 0, false, pcs, 2, SIZE,
			 (const heapimage_counts){{10, 4}});
	heapimage_head(&image, CHUNK);
	heapimage_runtime("go1.27", &rt);
	assert_int_equal(goheap_new_of_memory(&rt, &image.memory, 0, &heap), 0);
	assert_int_equal(goheap_read(heap, &profile), GORUNTIME_OK);
	heapimage_head(&image, CHUNK + 0x100);
	assert_int_equal(goheap_read(heap, &profile), GORUNTIME_UNKNOWN_LAYOUT);
	assert_int_equal(goheap_read(heap, &profile), GORUNTIME_OK);
	assert_true(profile.first);
	assert_int_equal(profile.n_records, 1);
	image.outcome = MEMORY_GONE;
	assert_int_equal(goheap_read(heap, &profile), GORUNTIME_GONE);
	image.outcome = 0;
	assert_int_equal(goheap_read(heap, &profile), GORUNTIME_GONE); /* for good */
	image.outcome = -EIO;
	goheap_free(heap);

	assert_int_equal(goheap_new_of_memory(&rt, &image.memory, 0, &heap), 0);
	assert_int_equal(goheap_read(heap, &profile), -EIO); /* our side: passed up */
	goheap_free(heap);
}

static void test_names(void **state)
{
	(void)state;
	assert_string_equal(goruntime_state_name(GORUNTIME_OK), "ok");
	assert_string_equal(goruntime_state_name(GORUNTIME_TOO_LARGE), "too_large");
	for (int i = 0; i < GORUNTIME_STATE_MAX; i++)
		assert_string_not_equal(goruntime_state_name(i), "error");
	assert_string_equal(goruntime_state_name(GORUNTIME_STATE_MAX), "error");
	assert_string_equal(goruntime_state_name(-ENOMEM), "error");
}

/* The length of a tick is that of the machine: many processes that have not measured it take no
 * time. */
static unsigned int n_sleeps;

__attribute__((visibility("default"))) int nanosleep(const struct timespec *requested_time,
						     struct timespec *remaining)
{
	n_sleeps++;
	return (int)syscall(SYS_nanosleep, requested_time, remaining);
}

static void test_ticks_once(void **state)
{
	const uint64_t head = CHUNK + 0x8000, rate = head + 8;
	const uint64_t words[] = {0, 0, 3, bucket_hash(pcs, 2, 0), 0, 2, pcs[0], pcs[1]};
	_cleanup_(heapimage_deinit) struct heapimage image;
	struct goruntime rt;

	(void)state;
	heapimage_init(&image);
	heapimage_map(&image, CHUNK, CHUNK_BYTES);
	heapimage_runtime("go1.27", &rt);
	rt.file.vars[GORUNTIME_XBUCKETS] =
		(struct goruntime_place){head, GORUNTIME_FROM_SYMTAB, ".bss"};
	rt.file.vars[GORUNTIME_MUTEX_RATE] =
		(struct goruntime_place){rate, GORUNTIME_FROM_SYMTAB, ".bss"};
	heapimage_write(&image, CHUNK, words, sizeof(words));
	heapimage_u64(&image, head, CHUNK);
	n_sleeps = 0;
	for (int i = 0; i < 20; i++) {
		struct contention_profile profile;
		struct goheap *heap;

		assert_int_equal(goheap_new_of_memory(&rt, &image.memory, 0, &heap), 0);
		assert_int_equal(goheap_contention(heap, GO_PROFILE_MUTEX, &profile), GORUNTIME_OK);
		assert_true(profile.measured);
		goheap_free(heap);
	}
	assert_true(n_sleeps <= 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_published),
		cmocka_unit_test(test_states),
		cmocka_unit_test(test_reads),
		cmocka_unit_test(test_turned_off),
		cmocka_unit_test(test_again_after_failure),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_none_before),
		cmocka_unit_test(test_no_contention_before),
		cmocka_unit_test(test_ticks_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
