// SPDX-License-Identifier: Apache-2.0
/*
 * A heap profile read twice from hostile memory, with a change in between.
 *
 * The input is a memory image: a byte with the number of segments, then address (8 bytes) and
 * length (4 bytes) of each segment, then the bytes of all segments in this order; missing bytes are
 * zero. The first segment begins with the profiler's variables: mbuckets, rate, cycle, flag (8
 * bytes each). The last byte of the input selects a byte of the first segments to change before the
 * second read, and the size of pieces for another reader, which must have the same result. The
 * allocator's counters are in the second segment, and the list is also read as a list of mutexes.
 */
#include "fuzz/fuzz.h"

#include <assert.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/cursor.h"
#include "goheap/contention.h"
#include "goheap/goheap.h"
#include "support/heapimage.h"

#define FUZZ_MAX_BYTES	   (1u << 16)
#define FUZZ_SEGMENT_BYTES (1u << 16)

static volatile uint64_t sink;

/* The segments' table, then their bytes. The first segment is at the variables' address. */
static void build(struct heapimage *image, struct cursor *c)
{
	struct {
		uint64_t addr;
		uint32_t n;
	} table[HEAPIMAGE_SEGMENTS_MAX];
	uint8_t n = 0;

	(void)!cursor_u8(c, &n);
	if (n >= HEAPIMAGE_SEGMENTS_MAX)
		n = HEAPIMAGE_SEGMENTS_MAX - 1;
	for (size_t i = 0; i < n; i++) {
		table[i].addr = 0;
		table[i].n = 0;
		(void)!cursor_u64(c, &table[i].addr);
		(void)!cursor_u32(c, &table[i].n);
	}
	for (size_t i = 0; i < n; i++) {
		size_t size = table[i].n % FUZZ_SEGMENT_BYTES + 1;
		size_t have = cursor_left(c) < size ? cursor_left(c) : size;
		const void *bytes;

		if (i > 0)
			heapimage_map(image, table[i].addr, size);
		else if (have > image->segments[0].n)
			have = image->segments[0].n;
		if (cursor_bytes(c, have, &bytes) && have)
			memcpy(image->segments[i].bytes, bytes, have);
	}
}

static void read_all(const struct goheap_profile *p)
{
	struct goheap_totals totals;
	uint64_t sum = 0;

	for (size_t i = 0; i < p->n_records; i++) {
		struct goheap_record record;

		goheap_record(p, i, &record);
		assert(record.fresh_allocs >= record.before_allocs);
		for (size_t k = 0; k < record.n_pcs; k++)
			sum += p->pcs[record.stack[k]];
		sum += record.size + record.allocs + record.frees + goheap_record_inuse(&record);
	}
	goheap_totals(p, &totals);
	assert(totals.alloc.objects >= 0 && totals.alloc.bytes >= 0);
	assert(totals.inuse.objects >= 0 && totals.inuse.bytes >= 0);
	sink = sum;
}

/* Reading in pieces must have the same result. */
static void read_in_pieces(struct goheap *heap, size_t piece, int want,
			   const struct goheap_profile *whole)
{
	struct goheap_profile sliced;
	unsigned int n = 0;
	int r;

	do {
		r = goheap_step(heap, piece, &sliced);
		assert(n++ < 4 * FUZZ_MAX_BYTES); /* each step gets on */
	} while (r == (int)GOHEAP_UNFINISHED);
	assert(r == want);
	if (r != GORUNTIME_OK)
		return;
	assert(sliced.n_records == whole->n_records && sliced.n_pcs == whole->n_pcs);
	read_all(&sliced);
}

static void read_others(const struct goruntime *rt, struct heapimage *image, struct goheap *heap)
{
	struct contention_profile profile;
	struct contention *mutexes = NULL;
	struct gototals totals;
	uint64_t cycles;

	(void)!goheap_exact(heap, &totals);
	(void)!goheap_cycles(heap, &cycles);
	assert(contention_new(GO_PROFILE_MUTEX, rt, &image->memory, FUZZ_MAX_BYTES, &mutexes) == 0);
	for (int i = 0; i < 2; i++) {
		if (contention_read(mutexes, &profile) != GORUNTIME_OK)
			continue;
		for (size_t k = 0; k < profile.n_records; k++) {
			struct contention_record record;

			contention_record(&profile, k, &record);
			sink += (uint64_t)record.delay_ns + record.n_pcs;
		}
	}
	contention_free(mutexes);
}

static void change(struct heapimage *image, const uint8_t *data, size_t size)
{
	if (size && image->n_segments > 1) {
		struct heapimage_segment *s = &image->segments[1];

		s->bytes[data[size - 1] % s->n] ^= data[size / 2];
	}
}

static void prepare(struct heapimage *image, struct goruntime *rt, size_t size)
{
	heapimage_runtime(size % 2 ? "go1.26" : "", rt);
	rt->file.vars[GORUNTIME_XBUCKETS] = rt->file.vars[GORUNTIME_MBUCKETS];
	rt->file.vars[GORUNTIME_MUTEX_RATE] = rt->file.vars[GORUNTIME_RATE];
	rt->file.vars[GORUNTIME_TICKS] = rt->file.vars[GORUNTIME_RATE]; /* so no tick is measured */
	if (image->n_segments > 1) {
		rt->file.heap_stats = image->segments[1].addr;
		rt->file.total_alloc = image->segments[1].addr + 8;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct heapimage image;
	struct goheap *whole = NULL, *sliced = NULL;
	struct goheap_profile profile;
	struct goruntime rt;
	struct cursor c;

	cursor_init(&c, data, size);
	heapimage_init(&image);
	build(&image, &c);
	prepare(&image, &rt, size);
	assert(goheap_new_of_memory(&rt, &image.memory, FUZZ_MAX_BYTES, &whole) == 0);
	assert(goheap_new_of_memory(&rt, &image.memory, FUZZ_MAX_BYTES, &sliced) == 0);
	for (int i = 0; i < 2; i++) {
		int r = goheap_read(whole, &profile);

		assert(r >= 0);
		if (r == GORUNTIME_OK)
			read_all(&profile);
		read_in_pieces(sliced, size ? (size_t)data[size - 1] * 64 : 0, r, &profile);
		read_others(&rt, &image, whole);
		change(&image, data, size);
	}
	goheap_free(whole);
	goheap_free(sliced);
	heapimage_deinit(&image);
	return 0;
}
