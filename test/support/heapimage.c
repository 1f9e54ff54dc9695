// SPDX-License-Identifier: Apache-2.0
#include "support/heapimage.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "goheap/buckets.h"

#define VAR_MBUCKETS (HEAPIMAGE_VARS + 0)
#define VAR_RATE     (HEAPIMAGE_VARS + 8)
#define VAR_CYCLE    (HEAPIMAGE_VARS + 16)
#define VAR_FLAG     (HEAPIMAGE_VARS + 24)
#define VARS_BYTES   32

static struct heapimage_segment *find(struct heapimage *image, uint64_t addr)
{
	for (size_t i = 0; i < image->n_segments; i++)
		if (addr >= image->segments[i].addr &&
		    addr - image->segments[i].addr < image->segments[i].n)
			return &image->segments[i];
	return NULL;
}

/* Bytes copied, up to the first unmapped one. */
static size_t copy(struct heapimage *image, const struct memory_range *range)
{
	size_t done = 0;

	while (done < range->n) {
		uint64_t addr = range->addr + done;
		struct heapimage_segment *s = find(image, addr);
		size_t step;

		if (!s)
			break;
		step = s->n - (size_t)(addr - s->addr);
		if (step > range->n - done)
			step = range->n - done;
		memcpy((uint8_t *)range->to + done, s->bytes + (addr - s->addr), step);
		done += step;
	}
	return done;
}

static int image_read(struct memory *m, const struct memory_range *ranges, size_t n_ranges,
		      size_t *ret)
{
	struct heapimage *image = container_of(m, struct heapimage, memory);
	size_t total = 0;

	if (image->on_read)
		image->on_read(image, m->n_calls);
	if (image->outcome)
		return image->outcome;
	for (size_t i = 0; i < n_ranges; i++) {
		size_t n = copy(image, &ranges[i]);

		total += n;
		if (n < ranges[i].n)
			break;
	}
	*ret = total;
	return 0;
}

static int image_check(struct memory *m)
{
	return container_of(m, struct heapimage, memory)->outcome;
}

void heapimage_init(struct heapimage *image)
{
	*image = (struct heapimage){.memory = {.read = image_read, .check = image_check}};
	heapimage_map(image, HEAPIMAGE_VARS, VARS_BYTES);
	heapimage_rate(image, 524288);
}

void heapimage_deinit(struct heapimage *image)
{
	for (size_t i = 0; i < image->n_segments; i++)
		free(image->segments[i].bytes);
	image->n_segments = 0;
}

void heapimage_map(struct heapimage *image, uint64_t addr, size_t n)
{
	struct heapimage_segment *s = &image->segments[image->n_segments];

	assert(image->n_segments < HEAPIMAGE_SEGMENTS_MAX);
	*s = (struct heapimage_segment){addr, n, calloc(1, n)};
	assert(s->bytes);
	image->n_segments++;
}

void heapimage_write(struct heapimage *image, uint64_t addr, const void *data, size_t n)
{
	struct heapimage_segment *s = find(image, addr);

	assert(s && s->n - (size_t)(addr - s->addr) >= n);
	memcpy(s->bytes + (addr - s->addr), data, n);
}

void heapimage_u64(struct heapimage *image, uint64_t addr, uint64_t value)
{
	heapimage_write(image, addr, &value, sizeof(value));
}

static struct goruntime_place place(uint64_t vaddr)
{
	return (struct goruntime_place){vaddr, GORUNTIME_FROM_SYMTAB, ".bss"};
}

void heapimage_runtime(const char *version, struct goruntime *ret)
{
	*ret = (struct goruntime){0};
	snprintf(ret->file.version, sizeof(ret->file.version), "%s", version);
	ret->file.vars[GORUNTIME_MBUCKETS] = place(VAR_MBUCKETS);
	ret->file.vars[GORUNTIME_RATE] = place(VAR_RATE);
	ret->file.vars[GORUNTIME_CYCLE] = place(VAR_CYCLE);
	ret->file.vars[GORUNTIME_LINKER_FLAG] = place(VAR_FLAG);
}

void heapimage_head(struct heapimage *image, uint64_t addr)
{
	heapimage_u64(image, VAR_MBUCKETS, addr);
}

void heapimage_rate(struct heapimage *image, int64_t rate)
{
	heapimage_u64(image, VAR_RATE, (uint64_t)rate);
}

void heapimage_cycle(struct heapimage *image, uint32_t cycle, bool flushed)
{
	heapimage_u64(image, VAR_CYCLE, (uint64_t)cycle << 1 | flushed);
}

size_t heapimage_bucket_bytes(bool wide, size_t n)
{
	return 48 + 8 * n + (wide ? 128 : 64);
}

void heapimage_counters(struct heapimage *image, uint64_t addr, bool wide, uint64_t size,
			const heapimage_counts counts)
{
	uint64_t words[16] = {0};

	for (size_t i = 0; i < 4; i++) {
		uint64_t *slot = words + i * (wide ? 4 : 2);

		slot[0] = counts[i][HEAPIMAGE_ALLOCS];
		slot[1] = counts[i][HEAPIMAGE_FREES];
		if (wide) {
			slot[2] = slot[0] * size;
			slot[3] = slot[1] * size;
		}
	}
	heapimage_write(image, addr, words, wide ? 128 : 64);
}

uint64_t heapimage_bucket(struct heapimage *image, uint64_t addr, uint64_t older, bool wide,
			  const uint64_t *pcs, size_t n, uint64_t size,
			  const heapimage_counts counts)
{
	const uint64_t header[] = {0, older, 1, bucket_hash(pcs, n, size), size, n};

	heapimage_write(image, addr, header, sizeof(header));
	heapimage_write(image, addr + sizeof(header), pcs, n * sizeof(*pcs));
	heapimage_counters(image, addr + sizeof(header) + n * sizeof(*pcs), wide, size, counts);
	return addr + sizeof(header) + n * sizeof(*pcs);
}
