// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <errno.h>
#include <string.h>

#include "goheap/buckets.h"
#include "goheap/memory_windows.h"
#include "support/allocfail.h"
#include "support/heapimage.h"

#define CHUNK	    0x7f0000020000ull
#define CHUNK_BYTES 0x40000
#define MAX_BYTES   (1u << 20)

static const uint64_t pcs[] = {0x401000, 0x402000, 0x403000, 0x404000};
static const heapimage_counts some_counts = {{5, 2}, {1, 0}, {0, 1}, {3, 0}};

/* The later rows are from records of real processes of Go 1.26.8 and 1.27.3. */
struct hash_row {
	const char *name;
	uint64_t pcs[6];
	size_t n;
	uint64_t size;
	uint64_t hash;
};

static const struct hash_row hash_rows[] = {
	{"no stack, no size", {0}, 0, 0, 0},
	/* worked out by hand: h = 1; h += h<<10 -> 0x401; h ^= h>>6 -> 0x411; h += h<<3 -> 0x2499;
	 * h ^= h>>11 -> 0x249d */
	{"size one", {0}, 0, 1, 0x249d},
	{"1.26",
	 {0x47c60c, 0x47f689, 0x4dc4e6, 0x4dc4e7, 0x4dc4cc, 0x4845c1},
	 6,
	 9472,
	 0x9e51d527be0f0ad},
	{"1.27",
	 {0x47c393, 0x47f289, 0x4e1e26, 0x4e1e27, 0x4e1e0c, 0x483aa1},
	 6,
	 9728,
	 0x7fbc978680777f55},
	{"1.27, another size",
	 {0x47c393, 0x47f289, 0x4e1e26, 0x4e1e27, 0x4e1e0c, 0x483aa1},
	 6,
	 9472,
	 0x7fbc97868013eafa},
};

static void test_hash(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(hash_rows); i++) {
		const struct hash_row *row = &hash_rows[i];

		row_begin(row->name);
		assert_true(bucket_hash(row->pcs, row->n, row->size) == row->hash);
	}
}

/* ---------------------------------------------------------------- sound lists */

/* At once. */
static int update(struct buckets *b, struct memory *m, uint64_t head, unsigned int go_minor)
{
	size_t budget = SIZE_MAX;

	return buckets_update(b, m, head, go_minor, &budget);
}

static int refresh(struct buckets *b, struct memory *m, size_t n)
{
	size_t budget = SIZE_MAX;

	return buckets_refresh(b, m, n, &budget);
}

static uint64_t pc_of(const struct buckets *b, size_t i, size_t k)
{
	return b->pcs.pcs[b->stacks[b->items[i].first_pc + k]];
}

static void check_counts(const struct bucket *b, const heapimage_counts counts)
{
	for (size_t i = 0; i < BUCKETS_SLOTS; i++) {
		assert_int_equal(b->allocs[i], counts[i][HEAPIMAGE_ALLOCS]);
		assert_int_equal(b->frees[i], counts[i][HEAPIMAGE_FREES]);
	}
}

static void check_layout(bool wide)
{
	_cleanup_(heapimage_deinit) struct heapimage image;
	_cleanup_(buckets_deinit) struct buckets b;
	uint64_t first, second;

	heapimage_init(&image);
	heapimage_map(&image, CHUNK, CHUNK_BYTES);
	first = CHUNK + 8;
	heapimage_bucket(&image, first, 0, wide, pcs, 4, 48, some_counts);
	second = first + heapimage_bucket_bytes(wide, 4);
	heapimage_bucket(&image, second, first, wide, pcs, 1, 96, some_counts);

	buckets_init(&b, BUCKETS_MEMORY, MAX_BYTES);
	assert_int_equal(update(&b, &image.memory, second, 0), 0);
	assert_int_equal(b.layout, wide ? BUCKETS_LAYOUT_WIDE : BUCKETS_LAYOUT_NARROW);
	assert_int_equal(b.n, 2);
	assert_int_equal(b.items[0].addr, second);
	assert_int_equal(b.items[0].size, 96);
	assert_int_equal(b.items[0].n_pcs, 1);
	assert_int_equal(b.items[1].addr, first);
	for (size_t i = 0; i < array_size(pcs); i++)
		assert_int_equal(pc_of(&b, 1, i), pcs[i]);
	assert_int_equal(pc_of(&b, 0, 0), pcs[0]);
	assert_int_equal(b.pcs.n, array_size(pcs));
	check_counts(&b.items[0], some_counts);
	check_counts(&b.items[1], some_counts);
	assert_int_equal(bucket_allocs(&b.items[0]), 9);
	assert_int_equal(b.n_torn, 0);
	/* a record at the head, another behind, and the rest of the chunk: all in the same window
	 */
	assert_int_equal(image.memory.n_calls, 1);
}

static void test_layouts(void **state)
{
	(void)state;
	check_layout(true);
	check_layout(false);
}

/* The narrow form may end with its mapping. */
static void test_narrow_at_the_end(void **state)
{
	_cleanup_(heapimage_deinit) struct heapimage image;
	_cleanup_(buckets_deinit) struct buckets b;
	uint64_t addr = CHUNK + CHUNK_BYTES - heapimage_bucket_bytes(false, 2);

	(void)state;
	heapimage_init(&image);
	heapimage_map(&image, CHUNK, CHUNK_BYTES);
	heapimage_bucket(&image, addr, 0, false, pcs, 2, 16, some_counts);
	buckets_init(&b, BUCKETS_MEMORY, MAX_BYTES);
	assert_int_equal(update(&b, &image.memory, addr, 0), 0);
	assert_int_equal(b.layout, BUCKETS_LAYOUT_NARROW);
	check_counts(&b.items[0], some_counts);
}

/* A chunk may begin anywhere in a window, with unmapped memory before and after. */
static void test_holes(void **state)
{
	_cleanup_(heapimage_deinit) struct heapimage image;
	_cleanup_(buckets_deinit) struct buckets b;
	const uint64_t chunks[] = {CHUNK + 0x3000, CHUNK + 0x18000, CHUNK - 0x7000};
	uint64_t older = 0;

	(void)state;
	heapimage_init(&image);
	for (size_t i = 0; i < array_size(chunks); i++) {
		uint64_t last = chunks[i] + 0x4000 - heapimage_bucket_bytes(true, 4);

		heapimage_map(&image, chunks[i], 0x4000);
		heapimage_bucket(&image, chunks[i], older, true, pcs, 4, 48, some_counts);
		heapimage_bucket(&image, last, chunks[i], true, pcs, 4, 48, some_counts);
		older = last;
	}
	buckets_init(&b, BUCKETS_MEMORY, MAX_BYTES);
	assert_int_equal(update(&b, &image.memory, older, 0), 0);
	assert_int_equal(b.n, 2 * array_size(chunks));
	for (size_t i = 0; i < b.n; i++)
		check_counts(&b.items[i], some_counts);
}

/* Without counts the layout is undetermined: the version decides, if known. */
static void test_layout_by_version(void **state)
{
	static const struct {
		unsigned int minor;
		int outcome;
		enum buckets_layout layout;
	} rows[] = {
		{0, BUCKETS_UNKNOWN_LAYOUT, BUCKETS_LAYOUT_UNKNOWN},
		{16, 0, BUCKETS_LAYOUT_WIDE},
		{26, 0, BUCKETS_LAYOUT_WIDE},
		{27, 0, BUCKETS_LAYOUT_NARROW},
		{28, 0, BUCKETS_LAYOUT_NARROW},
	};
	const heapimage_counts none = {{0}};

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		_cleanup_(heapimage_deinit) struct heapimage image;
		_cleanup_(buckets_deinit) struct buckets b;

		heapimage_init(&image);
		heapimage_map(&image, CHUNK, CHUNK_BYTES);
		heapimage_bucket(&image, CHUNK, 0, true, pcs, 4, 48, none);
		buckets_init(&b, BUCKETS_MEMORY, MAX_BYTES);
		assert_int_equal(update(&b, &image.memory, CHUNK, rows[i].minor), rows[i].outcome);
		assert_int_equal(b.layout, rows[i].layout);
	}
}

static void test_new_in_front(void **state)
{
	const heapimage_counts more = {{6, 2}, {1, 0}, {0, 1}, {3, 0}};
	_cleanup_(heapimage_deinit) struct heapimage image;
	_cleanup_(buckets_deinit) struct buckets b;
	uint64_t first = CHUNK, second = CHUNK + 0x1000, counters;

	(void)state;
	heapimage_init(&image);
	heapimage_map(&image, CHUNK, CHUNK_BYTES);
	counters = heapimage_bucket(&image, first, 0, true, pcs, 4, 48, some_counts);
	buckets_init(&b, BUCKETS_MEMORY, MAX_BYTES);
	assert_int_equal(update(&b, &image.memory, first, 0), 0);

	heapimage_bucket(&image, second, first, true, pcs, 2, 48, some_counts);
	heapimage_counters(&image, counters, true, 48, more);
	buckets_begin(&b);
	assert_int_equal(update(&b, &image.memory, second, 0), 0);
	assert_int_equal(b.n, 2);
	assert_int_equal(b.items[0].addr, first);
	check_counts(&b.items[0], some_counts); /* an update does not read known records */
	assert_int_equal(refresh(&b, &image.memory, 1), 0);
	check_counts(&b.items[0], more);
	assert_int_equal(b.items[0].before, 9);
	assert_int_equal(b.items[1].before, 0);
	buckets_begin(&b);
	assert_int_equal(b.items[0].before, 10);
	assert_int_equal(b.items[1].before, 9);
	/* nothing new costs nothing */
	image.memory.n_calls = 0;
	assert_int_equal(update(&b, &image.memory, second, 0), 0);
	assert_int_equal(image.memory.n_calls, 0);
}

/* Neighbours are read together; distant ones or other orders are not. Each record gets its own
 * counters. */
static void test_refresh_ranges(void **state)
{
	static const uint64_t at[] = {0x0, 0x200, 0x600, 0x8000, 0x1000, 0x1200, 0x12000, 0x11e00};
	uint64_t counters[array_size(at)];
	_cleanup_(heapimage_deinit) struct heapimage image;
	_cleanup_(buckets_deinit) struct buckets b;
	uint64_t older = 0;

	(void)state;
	heapimage_init(&image);
	heapimage_map(&image, CHUNK, CHUNK_BYTES);
	for (size_t i = 0; i < array_size(at); i++) {
		counters[i] = heapimage_bucket(&image, CHUNK + at[i], older, true, pcs, 4, 48,
					       some_counts);
		older = CHUNK + at[i];
	}
	buckets_init(&b, BUCKETS_MEMORY, MAX_BYTES);
	assert_int_equal(update(&b, &image.memory, older, 0), 0);
	for (size_t i = 0; i < array_size(at); i++)
		heapimage_counters(&image, counters[i], true, 48,
				   (const heapimage_counts){{100 + i, 50 + i}});
	image.memory.n_calls = 0;
	assert_int_equal(refresh(&b, &image.memory, b.n), 0);
	assert_int_equal(image.memory.n_calls, 1);
	for (size_t i = 0; i < array_size(at); i++) {
		const struct bucket *bucket = &b.items[array_size(at) - 1 - i];

		assert_int_equal(bucket->addr, CHUNK + at[i]);
		assert_int_equal(bucket->allocs[0], 100 + i);
		assert_int_equal(bucket->frees[0], 50 + i);
	}
	assert_int_equal(b.n_torn, 0);
}

/* ---------------------------------------------------------------- caught while changing */

static uint64_t torn_addr;
static const heapimage_counts later = {{9, 2}, {0, 0}, {0, 1}, {3, 0}};

static void mend(struct heapimage *image, uint64_t n)
{
	if (n == 2)
		heapimage_counters(image, torn_addr, true, 48, later);
}

static void test_torn(void **state)
{
	_cleanup_(heapimage_deinit) struct heapimage image;
	_cleanup_(buckets_deinit) struct buckets b;

	(void)state;
	heapimage_init(&image);
	heapimage_map(&image, CHUNK, CHUNK_BYTES);
	torn_addr = heapimage_bucket(&image, CHUNK, 0, true, pcs, 4, 48, some_counts);
	buckets_init(&b, BUCKETS_MEMORY, MAX_BYTES);
	assert_int_equal(update(&b, &image.memory, CHUNK, 0), 0);

	/* allocs are written, their bytes are not yet */
	heapimage_u64(&image, torn_addr, 6);
	image.memory.n_calls = 0;
	image.on_read = mend;
	assert_int_equal(refresh(&b, &image.memory, 1), 0);
	check_counts(&b.items[0], later);
	assert_int_equal(b.n_torn, 1);

	/* a record in a constant state keeps its values */
	image.on_read = NULL;
	heapimage_u64(&image, torn_addr, 100);
	assert_int_equal(refresh(&b, &image.memory, 1), 0);
	check_counts(&b.items[0], later);
	assert_true(b.n_torn > 2);
}

static void moved(struct heapimage *image, uint64_t n)
{
	/* empty the slot after adding the slot to the first */
	if (n == 2)
		heapimage_counters(image, torn_addr, true, 48,
				   (const heapimage_counts){{8, 2}, {1, 0}, {0, 1}});
}

/* A read between the two steps of a slot's publication, and a real decrease. */
static void test_doubtful(void **state)
{
	const heapimage_counts twice = {{8, 2}, {1, 0}, {0, 1}, {3, 0}};
	const heapimage_counts fewer = {{1, 0}};
	_cleanup_(heapimage_deinit) struct heapimage image;
	_cleanup_(buckets_deinit) struct buckets b;

	(void)state;
	heapimage_init(&image);
	heapimage_map(&image, CHUNK, CHUNK_BYTES);
	torn_addr = heapimage_bucket(&image, CHUNK, 0, true, pcs, 4, 48, some_counts);
	buckets_init(&b, BUCKETS_MEMORY, MAX_BYTES);
	assert_int_equal(update(&b, &image.memory, CHUNK, 0), 0);

	heapimage_counters(&image, torn_addr, true, 48, twice);
	image.memory.n_calls = 0;
	image.on_read = moved;
	assert_int_equal(refresh(&b, &image.memory, 1), 0);
	assert_int_equal(b.items[0].allocs[0], 8);
	assert_int_equal(b.items[0].allocs[3], 0);
	assert_int_equal(bucket_allocs(&b.items[0]), 9);
	assert_int_equal(image.memory.n_calls, 2);

	/* may be chance: then the read is accepted */
	image.on_read = NULL;
	heapimage_counters(&image, torn_addr, true, 48,
			   (const heapimage_counts){{11, 2}, {0, 0}, {0, 1}, {3, 0}});
	assert_int_equal(refresh(&b, &image.memory, 1), 0);
	assert_int_equal(bucket_allocs(&b.items[0]), 14);

	/* fewer, for good: the counters are taken, and the sum stays */
	buckets_begin(&b);
	heapimage_counters(&image, torn_addr, true, 48, fewer);
	assert_int_equal(refresh(&b, &image.memory, 1), 0);
	check_counts(&b.items[0], fewer);
	assert_int_equal(bucket_allocs(&b.items[0]), 14);
	buckets_begin(&b);
	assert_int_equal(bucket_allocs(&b.items[0]), 14);
}

static const heapimage_counts moved_fully = {{8, 3}, {6, 0}, {0, 0}, {0, 0}};

static void move_fully(struct heapimage *image, uint64_t n)
{
	if (n == 2)
		heapimage_counters(image, torn_addr, true, 48, moved_fully);
}

/* Counts missing from a slot and not in the first slot yet, while another slot has grown by more.
 */
static void test_lost(void **state)
{
	_cleanup_(heapimage_deinit) struct heapimage image;
	_cleanup_(buckets_deinit) struct buckets b;

	(void)state;
	heapimage_init(&image);
	heapimage_map(&image, CHUNK, CHUNK_BYTES);
	torn_addr = heapimage_bucket(&image, CHUNK, 0, true, pcs, 4, 48, some_counts);
	buckets_init(&b, BUCKETS_MEMORY, MAX_BYTES);
	assert_int_equal(update(&b, &image.memory, CHUNK, 0), 0);
	heapimage_counters(&image, torn_addr, true, 48,
			   (const heapimage_counts){{5, 2}, {6, 0}, {0, 1}, {0, 0}});
	image.memory.n_calls = 0;
	image.on_read = move_fully;
	assert_int_equal(refresh(&b, &image.memory, 1), 0);
	check_counts(&b.items[0], moved_fully);
	assert_int_equal(b.n_torn, 1);
}

/* ---------------------------------------------------------------- in pieces */

/* Like a program with several processors: each allocates in its own chunk, and the list alternates
 * between chunks. Returns the head. */
static uint64_t interleave(struct heapimage *image, uint64_t first, size_t n, uint64_t older)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t addr = CHUNK + (first + i) % 4 * CHUNK_BYTES + (first + i) / 4 * 0x140;

		heapimage_bucket(image, addr, older, true, pcs, 1 + i % 4, 48 + 8 * i, some_counts);
		older = addr;
	}
	return older;
}

static void recount(struct heapimage *image, const struct buckets *b, uint64_t add)
{
	for (size_t i = 0; i < b->n; i++)
		heapimage_counters(
			image, b->items[i].addr + BUCKETS_HEADER_BYTES + 8 * b->items[i].n_pcs,
			true, b->items[i].size, (const heapimage_counts){{100 + add + i, 50 + i}});
}

static void in_pieces(size_t budget)
{
	enum { FIRST = 400, MORE = 40 };
	_cleanup_(heapimage_deinit) struct heapimage image;
	_cleanup_(buckets_deinit) struct buckets b;
	uint64_t head, more;
	unsigned int n_steps = 0;
	size_t left;
	int r;

	heapimage_init(&image);
	heapimage_map(&image, CHUNK, (size_t)4 * CHUNK_BYTES);
	head = interleave(&image, 0, FIRST, 0);
	buckets_init(&b, BUCKETS_MEMORY, MAX_BYTES);
	/* records added to the front in the meantime wait for the next update */
	more = interleave(&image, FIRST, MORE, head);
	do {
		left = budget;
		r = buckets_update(&b, &image.memory, n_steps++ ? more : head, 0, &left);
		assert_true(r == 0 || (r == BUCKETS_UNFINISHED && left == 0));
	} while (r);
	assert_int_equal(b.n, FIRST);
	assert_int_equal(b.head, head);
	assert_int_equal(update(&b, &image.memory, more, 0), 0);
	assert_int_equal(b.n, FIRST + MORE);
	for (uint64_t again = 0; again < 2; again++) {
		recount(&image, &b, 1000 * again);
		n_steps = 0;
		do {
			left = budget;
			n_steps++;
			r = buckets_refresh(&b, &image.memory, again ? b.n : FIRST, &left);
			assert_true(r == 0 || (r == BUCKETS_UNFINISHED && left == 0));
		} while (r);
		for (size_t i = 0; i < (again ? b.n : FIRST); i++)
			assert_int_equal(b.items[i].allocs[0], 100 + 1000 * again + i);
	}
	assert_int_equal(b.n_torn, 0);
	assert_true(budget == SIZE_MAX || n_steps > 1);
	/* merge the known records into the new ones */
	for (size_t i = 1; i < b.n; i++)
		assert_true(b.items[b.order[i - 1]].addr < b.items[b.order[i]].addr);
}

static void test_in_pieces(void **state)
{
	(void)state;
	in_pieces(1);
	in_pieces(20000);
	in_pieces(SIZE_MAX);
}

/* An update that fails in a later piece leaves the records unchanged. */
static void test_piece_fails(void **state)
{
	_cleanup_(heapimage_deinit) struct heapimage image;
	_cleanup_(buckets_deinit) struct buckets b;
	uint64_t head, more;
	size_t budget = 1;

	(void)state;
	heapimage_init(&image);
	heapimage_map(&image, CHUNK, (size_t)4 * CHUNK_BYTES);
	head = interleave(&image, 0, 10, 0);
	buckets_init(&b, BUCKETS_MEMORY, MAX_BYTES);
	assert_int_equal(update(&b, &image.memory, head, 0), 0);
	more = interleave(&image, 10, 10, head);
	/* the older links of the new records lead past the known records */
	heapimage_u64(&image, CHUNK + 10 % 4 * CHUNK_BYTES + 10 / 4 * 0x140 + 8, 0);
	assert_int_equal(buckets_update(&b, &image.memory, more, 0, &budget), BUCKETS_UNFINISHED);
	assert_int_equal(b.n, 11);
	budget = SIZE_MAX;
	assert_int_equal(buckets_update(&b, &image.memory, more, 0, &budget), BUCKETS_MALFORMED);
	assert_int_equal(b.n, 10);
	assert_int_equal(b.head, head);
	assert_null(b.walk);
}

/* ---------------------------------------------------------------- hostile images */

struct hostile_row {
	const char *name;
	size_t word; /* of the second record of the list, counted from the record's start */
	uint64_t value;
	int outcome;
};

static const struct hostile_row hostile_rows[] = {
	{"nothing wrong", 0, 0, 0},
	{"hash chain not aligned", 0, 1, BUCKETS_MALFORMED},
	{"list leads nowhere", 1, 0xdead0000, BUCKETS_MALFORMED},
	{"list leads to the last page", 1, UINT64_MAX - 7, BUCKETS_MALFORMED},
	{"list not aligned", 1, CHUNK + 4, BUCKETS_MALFORMED},
	{"a ring of one", 1, CHUNK + 0x1000, BUCKETS_MALFORMED},
	{"a ring of two", 1, CHUNK + 0x2000, BUCKETS_MALFORMED},
	{"a mutex record", 2, 3, BUCKETS_MALFORMED},
	{"hash", 3, 42, BUCKETS_MALFORMED},
	{"no size", 4, 0, BUCKETS_MALFORMED},
	{"size", 4, 49, BUCKETS_MALFORMED},
	{"huge size", 4, 1ull << 40, BUCKETS_MALFORMED},
	{"no PCs", 5, 0, BUCKETS_MALFORMED},
	{"one PC less", 5, 3, BUCKETS_MALFORMED},
	{"one PC more than there may be", 5, 1027, BUCKETS_MALFORMED},
	{"2^61 PCs", 5, 1ull << 61, BUCKETS_MALFORMED},
	{"a PC", 6, 0x401001, BUCKETS_MALFORMED},
};

static void test_hostile(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(hostile_rows); i++) {
		const struct hostile_row *row = &hostile_rows[i];
		_cleanup_(heapimage_deinit) struct heapimage image;
		_cleanup_(buckets_deinit) struct buckets b;

		row_begin(row->name);
		heapimage_init(&image);
		heapimage_map(&image, CHUNK, CHUNK_BYTES);
		heapimage_bucket(&image, CHUNK, 0, true, pcs, 4, 48, some_counts);
		heapimage_bucket(&image, CHUNK + 0x1000, CHUNK, true, pcs, 4, 48, some_counts);
		heapimage_bucket(&image, CHUNK + 0x2000, CHUNK + 0x1000, true, pcs, 4, 48,
				 some_counts);
		/* with a good layout known, the walk itself meets the error */
		buckets_init(&b, BUCKETS_MEMORY, MAX_BYTES);
		b.layout = BUCKETS_LAYOUT_WIDE;
		heapimage_u64(&image, CHUNK + 0x1000 + 8 * row->word, row->value);
		assert_int_equal(update(&b, &image.memory, CHUNK + 0x2000, 0), row->outcome);
		assert_int_equal(b.n, row->outcome ? 0 : 3);
		assert_int_equal(b.n_stacks, row->outcome ? 0 : 12);
		assert_int_equal(b.head, row->outcome ? 0 : CHUNK + 0x2000);
	}
}

/* Records closer together than their counters cannot be valid. */
static void test_overlap(void **state)
{
	_cleanup_(heapimage_deinit) struct heapimage image;
	_cleanup_(buckets_deinit) struct buckets b;
	uint64_t second = CHUNK + heapimage_bucket_bytes(false, 4);

	(void)state;
	heapimage_init(&image);
	heapimage_map(&image, CHUNK, CHUNK_BYTES);
	heapimage_bucket(&image, CHUNK, 0, false, pcs, 4, 48, some_counts);
	heapimage_bucket(&image, second, CHUNK, false, pcs, 4, 48, some_counts);
	buckets_init(&b, BUCKETS_MEMORY, MAX_BYTES);
	b.layout = BUCKETS_LAYOUT_WIDE;
	assert_int_equal(update(&b, &image.memory, second, 0), BUCKETS_UNKNOWN_LAYOUT);
	assert_int_equal(b.n, 0);
}

/* Counters with features of both layouts. */
static void test_undecided(void **state)
{
	_cleanup_(heapimage_deinit) struct heapimage image;
	_cleanup_(buckets_deinit) struct buckets b;

	(void)state;
	heapimage_init(&image);
	heapimage_map(&image, CHUNK, CHUNK_BYTES);
	heapimage_bucket(&image, CHUNK, 0, true, pcs, 4, 48, some_counts);
	heapimage_bucket(&image, CHUNK + 0x1000, CHUNK, false, pcs, 4, 48, some_counts);
	buckets_init(&b, BUCKETS_MEMORY, MAX_BYTES);
	assert_int_equal(update(&b, &image.memory, CHUNK + 0x1000, 26), BUCKETS_UNKNOWN_LAYOUT);
}

/* The list must still lead to the known records. */
static void test_known_are_gone(void **state)
{
	_cleanup_(heapimage_deinit) struct heapimage image;
	_cleanup_(buckets_deinit) struct buckets b;

	(void)state;
	heapimage_init(&image);
	heapimage_map(&image, CHUNK, CHUNK_BYTES);
	heapimage_bucket(&image, CHUNK, 0, true, pcs, 4, 48, some_counts);
	heapimage_bucket(&image, CHUNK + 0x1000, 0, true, pcs, 4, 48, some_counts);
	buckets_init(&b, BUCKETS_MEMORY, MAX_BYTES);
	assert_int_equal(update(&b, &image.memory, CHUNK, 0), 0);
	assert_int_equal(update(&b, &image.memory, CHUNK + 0x1000, 0), BUCKETS_MALFORMED);
	assert_int_equal(b.n, 1);
	assert_int_equal(b.head, CHUNK);
}

static uint64_t fill_chunk(struct heapimage *image)
{
	uint64_t older = 0, addr = CHUNK;

	for (; addr + 0x100 <= CHUNK + CHUNK_BYTES; addr += 0x100) {
		heapimage_bucket(image, addr, older, false, pcs, 4, 48, some_counts);
		older = addr;
	}
	return older;
}

static void test_ceiling(void **state)
{
	_cleanup_(heapimage_deinit) struct heapimage image;
	uint64_t head;
	size_t n = CHUNK_BYTES / 0x100;
	/* a set allocates four distinct PCs first */
	size_t exact = n * (sizeof(struct bucket) + 4 * sizeof(uint32_t)) +
		       1024 * sizeof(uint32_t) + 8 * sizeof(uint64_t);

	(void)state;
	heapimage_init(&image);
	heapimage_map(&image, CHUNK, CHUNK_BYTES);
	head = fill_chunk(&image);
	for (size_t max = exact - 1; max <= exact; max++) {
		_cleanup_(buckets_deinit) struct buckets b;

		buckets_init(&b, BUCKETS_MEMORY, max);
		assert_int_equal(update(&b, &image.memory, head, 0),
				 max == exact ? 0 : BUCKETS_TOO_LARGE);
		assert_int_equal(b.n, max == exact ? n : 0);
	}
}

/* A list with wide jumps: each record needs a separate window. */
static void test_costly(void **state)
{
	enum { N = 25 };
	_cleanup_(heapimage_deinit) struct heapimage image;
	_cleanup_(buckets_deinit) struct buckets b;
	uint64_t older = 0;

	(void)state;
	heapimage_init(&image);
	for (uint64_t i = 0; i < N; i++) {
		uint64_t addr = CHUNK + i * 2 * MEMORY_WINDOW_BYTES;

		heapimage_map(&image, addr, MEMORY_WINDOW_BYTES);
		heapimage_bucket(&image, addr, older, false, pcs, 4, 48, some_counts);
		older = addr;
	}
	buckets_init(&b, BUCKETS_MEMORY, (size_t)N * 500);
	assert_int_equal(update(&b, &image.memory, older, 0), BUCKETS_TOO_LARGE);
	buckets_deinit(&b);
	buckets_init(&b, BUCKETS_MEMORY, (size_t)2 * MAX_BYTES);
	assert_int_equal(update(&b, &image.memory, older, 0), 0);
}

static int update_all(void *ctx)
{
	struct heapimage *image = ctx;
	_cleanup_(buckets_deinit) struct buckets b;
	int r;

	buckets_init(&b, BUCKETS_MEMORY, MAX_BYTES);
	r = update(&b, &image->memory, CHUNK + CHUNK_BYTES - 0x100, 0);
	return r ? r : refresh(&b, &image->memory, b.n);
}

static void test_no_memory(void **state)
{
	_cleanup_(heapimage_deinit) struct heapimage image;

	(void)state;
	heapimage_init(&image);
	heapimage_map(&image, CHUNK, CHUNK_BYTES);
	fill_chunk(&image);
	assert_true(allocfail_each(update_all, &image) > 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hash),
		cmocka_unit_test(test_layouts),
		cmocka_unit_test(test_narrow_at_the_end),
		cmocka_unit_test(test_holes),
		cmocka_unit_test(test_layout_by_version),
		cmocka_unit_test(test_new_in_front),
		cmocka_unit_test(test_refresh_ranges),
		cmocka_unit_test(test_torn),
		cmocka_unit_test(test_doubtful),
		cmocka_unit_test(test_lost),
		cmocka_unit_test(test_in_pieces),
		cmocka_unit_test(test_piece_fails),
		cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_overlap),
		cmocka_unit_test(test_undecided),
		cmocka_unit_test(test_known_are_gone),
		cmocka_unit_test(test_ceiling),
		cmocka_unit_test(test_costly),
		cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
