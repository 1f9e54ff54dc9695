// SPDX-License-Identifier: Apache-2.0
#include "codescan/codegaps.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/vec.h"
#include "unwind/coderanges.h"

/* Units of work for a row. */
#define ROW_COST      2u
/* Bytes of a part, as a power of 2, if there are no more than PARTS_AT_MOST parts. Most questions
 * are about described code, and the answer is one bit. */
#define PART_SHIFT    8u
#define PARTS_AT_MOST (1u << 19)

static int add_gap(struct codegaps *gaps, uint64_t start, uint64_t end, uint32_t segment)
{
	int r = vec_grow(&gaps->items, &gaps->cap, gaps->n + 1, sizeof(*gaps->items), ROWS_MAX);

	if (!r)
		gaps->items[gaps->n++] =
			(struct codegap){.start = start, .end = end, .segment = segment};
	return r < 0 ? r : 0;
}

/* Adds the gaps in [@at, @end). */
static int add_gaps(struct codegaps *gaps, const struct rows *known, uint64_t at, uint64_t end,
		    uint32_t segment)
{
	size_t n = rows_count(known), i = rows_find(known, at), next;
	int r = 0;

	for (; !r && at < end; i = next) {
		/* before the first row is a gap, too */
		bool is_gap = i == (size_t)-1 || i == n || !rows_at(known, i).rule;
		uint64_t to = end;

		next = is_gap ? i + 1 : rows_next_gap(known, i);
		if (next < n && rows_at(known, next).vaddr < end)
			to = rows_at(known, next).vaddr;
		if (is_gap && to > at)
			r = add_gap(gaps, at, to, segment);
		at = to;
	}
	return r;
}

static int make_parts(struct codegaps *gaps)
{
	uint64_t span, last;

	if (!gaps->n)
		return 0;
	gaps->low = gaps->items[0].start;
	span = gaps->items[gaps->n - 1].end - gaps->low;
	for (gaps->shift = PART_SHIFT; span >> gaps->shift >= PARTS_AT_MOST; gaps->shift++)
		;
	gaps->parts = calloc((span >> gaps->shift) / CODEGAPS_WORD_BITS + 1, sizeof(*gaps->parts));
	if (!gaps->parts)
		return -ENOMEM;
	for (size_t i = 0; i < gaps->n; i++) {
		last = (gaps->items[i].end - 1 - gaps->low) >> gaps->shift;
		for (uint64_t part = (gaps->items[i].start - gaps->low) >> gaps->shift;
		     part <= last; part++)
			gaps->parts[part / CODEGAPS_WORD_BITS] |= 1ull << part % CODEGAPS_WORD_BITS;
	}
	return 0;
}

int codegaps_find(const struct elffile *file, const struct rows *known, struct codegaps *ret)
{
	_cleanup_(coderanges_deinit) struct coderanges code = {0};
	int r;

	if (!elffile_spend(file, ROW_COST * rows_count(known)))
		return ELFFILE_ABANDONED;
	r = coderanges_find(file, &code);
	for (size_t i = 0; i < code.n && !r; i++)
		r = add_gaps(ret, known, code.items[i].start, code.items[i].end,
			     code.items[i].segment);
	ret->code = code.bytes;
	return r ? r : make_parts(ret);
}

void codegaps_deinit(struct codegaps *gaps)
{
	free(gaps->items);
	free(gaps->parts);
}

size_t codegaps_at(const struct codegaps *gaps, uint64_t vaddr)
{
	size_t low = 0, high = gaps->n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (gaps->items[mid].end <= vaddr)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

bool codegaps_has(const struct codegaps *gaps, uint64_t vaddr)
{
	size_t i;

	if (!gaps->n || vaddr - gaps->low >= gaps->items[gaps->n - 1].end - gaps->low ||
	    !codegaps_near(gaps, vaddr - gaps->low))
		return false;
	i = codegaps_at(gaps, vaddr);
	return i < gaps->n && vaddr >= gaps->items[i].start;
}
