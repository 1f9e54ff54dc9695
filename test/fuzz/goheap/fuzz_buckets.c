// SPDX-License-Identifier: Apache-2.0
/*
 * A heap profile read from memory that somebody else has made up, twice, with a change in between.
 *
 * The input is a memory image: one byte with the number of segments, then for each its address
 * (8 bytes) and length (4 bytes), then the bytes of the segments one after the other; what the
 * input does not have is zero. The first segment begins with the profiler's variables: mbuckets,
 * rate, cycle, flag (8 bytes each). The last byte of the input says which byte of the first
 * segments changes for the second read.
 */
#include "fuzz/fuzz.h"

#include <assert.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/cursor.h"
#include "goheap/goheap.h"
#include "support/heapimage.h"

#define FUZZ_MAX_BYTES	   (1u << 16)
#define FUZZ_SEGMENT_BYTES (1u << 16)

static volatile uint64_t sink;

/* The segments' table, then their bytes. The first one lies where the variables are. */
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct heapimage image;
	struct goheap *heap = NULL;
	struct goheap_profile profile;
	struct goruntime rt;
	struct cursor c;
	int r;

	cursor_init(&c, data, size);
	heapimage_init(&image);
	build(&image, &c);
	heapimage_runtime(size % 2 ? "go1.26" : "", &rt);
	assert(goheap_new_of_memory(&rt, &image.memory, FUZZ_MAX_BYTES, &heap) == 0);
	for (int i = 0; i < 2; i++) {
		r = goheap_read(heap, &profile);
		assert(r >= 0);
		if (r == GORUNTIME_OK)
			read_all(&profile);
		if (size && image.n_segments > 1) {
			struct heapimage_segment *s = &image.segments[1];

			s->bytes[data[size - 1] % s->n] ^= data[size / 2];
		}
	}
	goheap_free(heap);
	heapimage_deinit(&image);
	return 0;
}
