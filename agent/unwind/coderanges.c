// SPDX-License-Identifier: Apache-2.0
#include "unwind/coderanges.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>

#include "base/vec.h"

/* Units of work for a section. */
#define SECTION_COST 16u
/* Ranges of a file: more than all of its sections and segments. Reached: the file has no table. */
#define RANGES_MAX   16384u

/* Adds [@start, @end), which is behind all ranges, or extends the last range, of the same segment.
 */
static int add(struct coderanges *ranges, uint64_t start, uint64_t end, uint32_t segment)
{
	struct coderange *last = ranges->n ? &ranges->items[ranges->n - 1] : NULL;

	if (last && last->segment == segment && start - last->end <= CODERANGES_PADDING) {
		ranges->bytes += end - last->end;
		last->end = end;
		return 0;
	}
	if (vec_grow(&ranges->items, &ranges->cap, ranges->n + 1, sizeof(*ranges->items),
		     RANGES_MAX))
		return -ENOMEM;
	ranges->items[ranges->n++] =
		(struct coderange){.start = start, .end = end, .segment = segment};
	ranges->bytes += end - start;
	return 0;
}

static int ascending(const void *a, const void *b)
{
	const struct coderange *left = a, *right = b;

	return left->start < right->start ? -1 : left->start > right->start;
}

/* The executable sections, unordered. */
static int read_sections(const struct elffile *file, struct coderanges *ret)
{
	struct elffile_section section;
	uint64_t end;

	for (uint32_t i = 0; !elffile_section_at(file, i, &section); i++) {
		if (!elffile_spend(file, SECTION_COST))
			return ELFFILE_ABANDONED;
		if (!(section.flags & SHF_EXECINSTR) || !section.size ||
		    __builtin_add_overflow(section.vaddr, section.size, &end))
			continue;
		if (vec_grow(&ret->items, &ret->cap, ret->n + 1, sizeof(*ret->items), RANGES_MAX))
			return -ENOMEM;
		ret->items[ret->n++] = (struct coderange){.start = section.vaddr, .end = end};
	}
	return 0;
}

/* Ascending and without overlaps: tools that rewrite a program append sections. */
static int find_sections(const struct elffile *file, struct coderanges *ret)
{
	int r = read_sections(file, ret);
	size_t n = 0;

	if (r || !ret->n)
		return r;
	qsort(ret->items, ret->n, sizeof(*ret->items), ascending);
	for (size_t i = 0; i < ret->n; i++) {
		struct coderange *last = n ? &ret->items[n - 1] : NULL;

		if (!last || ret->items[i].start > last->end)
			ret->items[n++] = ret->items[i];
		else if (ret->items[i].end > last->end)
			last->end = ret->items[i].end;
	}
	ret->n = n;
	return 0;
}

/* @at: the first section that can be in this segment or in a later one. */
static int add_segment(const struct coderanges *sections, const struct elffile_segment *segment,
		       uint32_t index, size_t *at, struct coderanges *ret)
{
	const uint64_t done = ret->n ? ret->items[ret->n - 1].end : 0;
	const uint64_t start = segment->vaddr > done ? segment->vaddr : done;
	uint64_t end;
	size_t i;
	int r = 0;

	if (!(segment->flags & PF_X) ||
	    __builtin_add_overflow(segment->vaddr, segment->filesz, &end) || end <= start)
		return 0;
	while (*at < sections->n && sections->items[*at].end <= start)
		++*at;
	for (i = *at; i < sections->n && sections->items[i].start < end && !r; i++) {
		const struct coderange *s = &sections->items[i];

		r = add(ret, s->start > start ? s->start : start, s->end < end ? s->end : end,
			index);
	}
	return r || i > *at ? r : add(ret, start, end, index);
}

int coderanges_find(const struct elffile *file, struct coderanges *ret)
{
	_cleanup_(coderanges_deinit) struct coderanges sections = {0};
	const struct elffile_segment *segments;
	size_t n, at = 0;
	int r = find_sections(file, &sections);

	*ret = (struct coderanges){0};
	segments = elffile_segments(file, &n);
	for (size_t i = 0; i < n && !r; i++)
		r = add_segment(&sections, &segments[i], (uint32_t)i, &at, ret);
	return r;
}

void coderanges_deinit(struct coderanges *ranges)
{
	free(ranges->items);
}
