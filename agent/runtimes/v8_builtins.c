// SPDX-License-Identifier: Apache-2.0
/*
 * V8 keeps four variables one after the other: address and size of the builtins' code, address and
 * size of their data; gcc places them in the opposite order. In the file they are zeros, so they
 * are in the zeroed part of the image's memory. The code begins with a page. Where the linker
 * optimises (Node's build of 26), the variables are apart, and the search does not find them.
 */
#include "runtimes/v8_builtins.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "elf/elffile.h"
#include "procmap/memory.h"
#include "runtimes/v8_layout.h"
#include "shared/frame.h"

/* Bytes of the builtins; Node 20 has 1.5 MB. Reached: `odd`, native frames only. */
#define CODE_BYTES_MAX (64u << 20)
/* Bytes of the builtins' data; Deno has 0.1 MB. Reached: the search does not find the builtins. */
#define DATA_BYTES_MAX (16u << 20)
/* Smaller values are other variables. */
#define CODE_BYTES_MIN (64u << 10)
#define DATA_BYTES_MIN (4u << 10)
#define CODE_ALIGN     4096u

/* Read at a time. */
#define PIECE ((size_t)64 << 10)

struct variables {
	uint64_t code, data;
	uint32_t code_bytes, data_bytes;
};

/* The variables in memory; on 64-bit machines a pointer is at a multiple of 8. There may be another
 * variable behind the last size. */
struct ascending {
	uint64_t code;
	uint32_t code_bytes, pad;
	uint64_t data;
	uint32_t data_bytes, other;
};
struct descending {
	uint32_t data_bytes, other;
	uint64_t data;
	uint32_t code_bytes, pad;
	uint64_t code;
};
_Static_assert(sizeof(struct ascending) == sizeof(struct descending), "the same bytes");
#define VARIABLES_BYTES sizeof(struct ascending)

int v8_builtins_prepare(const struct elffile *ef, struct v8_image *ret)
{
	const struct elffile_segment *segments;
	struct elffile_section section;
	size_t n;

	if (elffile_section(ef, ".bss", &section) || section.size > V8_BUILTINS_SEARCH_MAX ||
	    section.vaddr > UINT64_MAX - section.size)
		return V8_BUILTINS_UNKNOWN;
	ret->zeroed[0] = section.vaddr;
	ret->zeroed[1] = section.vaddr + section.size;
	segments = elffile_segments(ef, &n);
	for (size_t i = 0; i < n; i++) {
		const struct elffile_segment *s = &segments[i];

		if (!(s->flags & PF_X) || s->memsz < ret->code[1] - ret->code[0] ||
		    s->vaddr > UINT64_MAX - s->memsz)
			continue;
		ret->code[0] = s->vaddr;
		ret->code[1] = s->vaddr + s->memsz;
	}
	return ret->code[0] < ret->code[1] ? 0 : V8_BUILTINS_UNKNOWN;
}

/* Whether these are the four variables, by the image's own addresses. The data is in front of the
 * variables, and it is no code. */
static bool is_match(const struct v8_image *image, uint64_t bias, const struct variables *v)
{
	const uint64_t code = v->code - bias, data = v->data - bias;

	return code % CODE_ALIGN == 0 && code >= image->code[0] && code < image->code[1] &&
	       v->code_bytes >= CODE_BYTES_MIN && v->code_bytes <= CODE_BYTES_MAX &&
	       v->code_bytes <= image->code[1] - code && v->data_bytes >= DATA_BYTES_MIN &&
	       v->data_bytes <= DATA_BYTES_MAX && data < image->zeroed[0] &&
	       (data < code || data >= code + v->code_bytes);
}

struct search {
	const struct v8_image *image;
	uint64_t bias;
	struct variables found;
	unsigned int n_found;
};

static void take(struct search *s, struct variables v)
{
	if (!is_match(s->image, s->bias, &v) || (s->n_found && v.code == s->found.code))
		return;
	s->found = v;
	s->n_found++;
}

static void search_piece(struct search *s, const uint8_t *bytes, size_t n)
{
	for (size_t at = 0; at + VARIABLES_BYTES <= n; at += sizeof(uint64_t)) {
		struct ascending a;
		struct descending d;

		memcpy(&a, bytes + at, sizeof(a));
		memcpy(&d, bytes + at, sizeof(d));
		if (!a.pad)
			take(s, (struct variables){a.code, a.data, a.code_bytes, a.data_bytes});
		if (!d.pad)
			take(s, (struct variables){d.code, d.data, d.code_bytes, d.data_bytes});
	}
}

/* Pieces overlap by the variables. */
static int search(struct memory *m, struct search *s)
{
	_cleanup_(freep) uint8_t *piece = malloc(PIECE);
	const uint64_t limit = s->image->zeroed[1];

	if (!piece)
		return -ENOMEM;
	for (uint64_t at = s->image->zeroed[0]; at < limit; at += PIECE - VARIABLES_BYTES) {
		const size_t n = limit - at < PIECE ? (size_t)(limit - at) : PIECE;
		int r = v8_outcome_of_memory(memory_read(m, at + s->bias, piece, n));

		if (r)
			return r;
		search_piece(s, piece, n);
	}
	if (s->n_found)
		return s->n_found == 1 ? 0 : V8_ODD;
	return s->image->is_described ? V8_BUILTINS_UNKNOWN : V8_NOT_READY;
}

static int read_variables(struct memory *m, const struct v8_image *image, uint64_t bias,
			  uint64_t *ret_first, uint32_t *ret_bytes)
{
	const struct memory_range ranges[] = {
		{image->builtins[0] + bias, ret_first, sizeof(*ret_first)},
		{image->builtins[1] + bias, ret_bytes, sizeof(*ret_bytes)},
	};

	return v8_outcome_of_memory(memory_read_ranges(m, ranges, array_size(ranges)));
}

int v8_builtins_find(struct memory *m, const struct v8_image *image, uint64_t bias,
		     uint64_t *ret_first, uint32_t *ret_bytes)
{
	struct search s = {.image = image, .bias = bias};
	uint64_t first = 0;
	uint32_t bytes = 0;
	uint8_t last;
	int r;

	if (image->builtins[0]) {
		r = read_variables(m, image, bias, &first, &bytes);
	} else {
		r = search(m, &s);
		first = s.found.code;
		bytes = s.found.code_bytes;
	}
	if (r)
		return r;
	if (!first || !bytes)
		return V8_NOT_READY;
	if (bytes > CODE_BYTES_MAX || first >= FRAME_FIRST_LIMIT - bytes)
		return V8_ODD;
	r = v8_outcome_of_memory(memory_read(m, first + bytes - 1, &last, sizeof(last)));
	if (r)
		return r == V8_UNREADABLE ? V8_ODD : r;
	*ret_first = first;
	*ret_bytes = bytes;
	return 0;
}
