// SPDX-License-Identifier: Apache-2.0
#include "unwind/described.h"

#include <elf.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/keysort.h"
#include "elf/elffile.h"
#include "unwind/rows.h"

/* Bytes between functions that are more than padding: compilers align to 64 at most. */
#define CODE_MIN   64u
#define LEFT_SHARE 16u
/* Units of work for a range of a section. */
#define RANGE_COST 2u

_Static_assert(sizeof(struct described_range) == KEYSORT_BYTES &&
		       offsetof(struct described_range, start) == 0,
	       "sorted by start");

/* Joins ranges that touch or overlap. */
static void join(struct described *d)
{
	size_t n = 0;

	for (size_t i = 0; i < d->n; i++) {
		const struct described_range range = d->items[i];

		if (n && range.start <= d->items[n - 1].end) {
			if (range.end > d->items[n - 1].end)
				d->items[n - 1].end = range.end;
		} else {
			d->items[n++] = range;
		}
	}
	d->n = n;
}

int described_init(struct described *ret, const struct rows *rows)
{
	const size_t n = rows_n_spans(rows);

	/* half of it is room for the sort */
	*ret = (struct described){.memory = calloc(2 * n + 1, sizeof(*ret->memory)), .n = n};
	if (!ret->memory)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		rows_span(rows, i, &ret->memory[i].start, &ret->memory[i].end);
	ret->items = keysort(ret->memory, ret->memory + n, n);
	join(ret);
	return 0;
}

void described_deinit(struct described *d)
{
	free(d->memory);
}

/* The first range that ends after @vaddr; n if there is none. */
static size_t range_at(const struct described *d, uint64_t vaddr)
{
	size_t low = 0, high = d->n;

	while (low < high) {
		const size_t mid = low + (high - low) / 2;

		if (d->items[mid].end <= vaddr)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

bool described_has(const struct described *d, uint64_t start, uint64_t end)
{
	const size_t i = range_at(d, start);

	/* all of a function this short can be in the padding between two others */
	if (i == d->n || end - start <= ROWS_PADDING_MAX)
		return false;
	return d->items[i].start <= start && end <= d->items[i].end;
}

/* Bytes of the sections of code, and of the code there outside of all ranges. */
struct left {
	uint64_t code;
	uint64_t outside; /* counted up to DESCRIBED_LEFT_MIN */
};

static void add_outside(struct left *left, uint64_t start, uint64_t end)
{
	if (end > start && end - start >= CODE_MIN)
		left->outside += end - start;
}

static int add_section(const struct described *d, const struct elffile *file,
		       const struct elffile_section *section, struct left *left)
{
	uint64_t at = section->vaddr, end;
	size_t i;

	if (!(section->flags & SHF_EXECINSTR) || __builtin_add_overflow(at, section->size, &end))
		return 0;
	left->code += section->size;
	for (i = range_at(d, at); i < d->n && d->items[i].start < end; i++) {
		if (left->outside >= DESCRIBED_LEFT_MIN)
			return 0;
		/* false sections overlap */
		if (!elffile_spend(file, RANGE_COST))
			return ELFFILE_ABANDONED;
		add_outside(left, at, d->items[i].start);
		at = d->items[i].end;
	}
	add_outside(left, at, end);
	return 0;
}

int described_leaves(const struct described *d, const struct elffile *file, bool *ret)
{
	struct elffile_section section;
	struct left left = {0};
	int r = 0;

	for (uint32_t i = 0; !r && !elffile_section_at(file, i, &section); i++)
		r = add_section(d, file, &section, &left);
	*ret = left.outside >= DESCRIBED_LEFT_MIN || left.outside >= left.code / LEFT_SHARE;
	return r;
}
