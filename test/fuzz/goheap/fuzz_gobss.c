// SPDX-License-Identifier: Apache-2.0
/*
 * A runtime's description of itself, and the search for its list of heap records, in hostile
 * memory. The input is the bytes of moduledata (640), then the variables that moduledata points to,
 * then the targets of the variables: a segment of 8 KiB and one of 64 KiB. Missing bytes are zero.
 */
#include "fuzz/fuzz.h"

#include <assert.h>
#include <string.h>

#include "goheap/gobss.h"
#include "goheap/goruntime.h"
#include "procmap/maps.h"
#include "support/heapimage.h"

#define MODULE 0x600000ull
#define VARS   0x601000ull
#define CHUNK  0x7f0000000000ull

static const struct segment {
	uint64_t addr;
	size_t mapped;
	size_t n; /* bytes of the input */
} segments[] = {
	{MODULE, 0x1000, 640},
	{VARS, 0x2000, 0x2000},
	{CHUNK, 0x10000, 0x10000},
};

static void build(struct heapimage *image, const uint8_t *data, size_t size)
{
	for (size_t i = 0; i < sizeof(segments) / sizeof(segments[0]); i++) {
		size_t n = size < segments[i].n ? size : segments[i].n;

		heapimage_map(image, segments[i].addr, segments[i].mapped);
		if (n)
			heapimage_write(image, segments[i].addr, data, n);
		data += n;
		size -= n;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char text[] = "00600000-00603000 rw-p 00000000 00:00 0\n"
				   "7f0000000000-7f0000010000 rw-p 00000000 00:00 0\n";
	struct goruntime rt = {.file = {.data = MODULE, .table = 0x500000, .n_funcs = 3}};
	struct goruntime other = {.file = {.data = VARS}};
	struct maps maps = {0};
	struct heapimage image;
	uint64_t found = 0;
	int r;

	heapimage_init(&image);
	build(&image, data, size);
	assert(maps_parse(text, strlen(text), &maps) == 0);
	rt.file.vars[GORUNTIME_RATE] = (struct goruntime_place){VARS, GORUNTIME_FROM_CODE, ""};
	r = goruntime_check(&rt, &image.memory);
	assert(r == GORUNTIME_OK || (r == GORUNTIME_UNKNOWN_LAYOUT && !rt.certain));
	(void)goruntime_has_plugin(&rt, &image.memory, &other);
	r = gobss_find(&rt, &image.memory, &maps, &found);
	assert(r >= 0 && (r == GOBSS_OK || !found));
	assert(found % 8 == 0);
	maps_deinit(&maps);
	heapimage_deinit(&image);
	return 0;
}
