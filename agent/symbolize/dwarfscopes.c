// SPDX-License-Identifier: Apache-2.0
#include "symbolize/dwarfscopes.h"

#include <dwarf.h>
#include <stdlib.h>

#include "base/vec.h"

bool dwarfscope_is_one(const struct dwarfentry *entry)
{
	return entry->abbrev->has_code && entry->abbrev->tag != DW_TAG_subprogram;
}

bool dwarfscope_is_open(const struct dwarfentry *entry)
{
	return entry->abbrev->tag != DW_TAG_inlined_subroutine && !entry->low_pc.form &&
	       !entry->ranges.form;
}

/* 0, DWARFSCOPES_PARTIAL, -ENOMEM. */
static int add_range(struct dwarfscopes *s, uint64_t start, uint64_t end)
{
	int r = 0;

	if (s->n_ranges == s->cap_ranges)
		r = vec_grow(&s->ranges, &s->cap_ranges, s->n_ranges + 1, sizeof(*s->ranges),
			     DWARFSCOPES_RANGES_MAX);
	if (r)
		return r < 0 ? r : DWARFSCOPES_PARTIAL;
	s->ranges[s->n_ranges++] = (struct dwarfscope_range){start, end};
	return 0;
}

/* *@ret_kept is false for a scope without code, such as removed code: none of its children
 * counts. */
static int add(struct dwarfscopes *s, struct dwarffile *f, const struct dwarfunit *unit,
	       const struct dwarfentry *entry, bool *ret_kept)
{
	struct dwarfscope scope = {
		.off = entry->off,
		.first_range = (uint32_t)s->n_ranges,
		.is_inlined = entry->abbrev->tag == DW_TAG_inlined_subroutine,
		.is_open = dwarfscope_is_open(entry),
	};
	struct dwarfrange_reader ranges;
	uint64_t start, end;
	int r = 0;

	if (!scope.is_open) {
		dwarfrange_begin(&ranges, f, unit, entry);
		while (!r && dwarfrange_next(&ranges, &start, &end))
			if (start < end)
				r = add_range(s, start, end);
		if (!r && dwarfranges_exhausted(f))
			r = DWARFSCOPES_PARTIAL;
	}
	scope.n_ranges = (uint32_t)s->n_ranges - scope.first_range;
	*ret_kept = scope.is_open || scope.n_ranges;
	if (r || !*ret_kept)
		return r;
	if (s->n == s->cap)
		r = vec_grow(&s->items, &s->cap, s->n + 1, sizeof(*s->items), DWARFSCOPES_MAX);
	if (r)
		return r < 0 ? r : DWARFSCOPES_PARTIAL;
	scope.next = (uint32_t)s->n + 1;
	s->items[s->n++] = scope;
	return 0;
}

/* @c is behind the function's entry, which has children. */
static int read_children(struct dwarfscopes *s, struct dwarffile *f, const struct dwarfunit *unit,
			 struct cursor *c)
{
	uint32_t parents[DWARFSCOPES_DEPTH_MAX];
	size_t depth = 0;
	struct dwarfentry entry;

	while (dwarfentry_next(f, unit, c, &entry)) {
		bool is_kept = false;
		int r;

		if (!entry.abbrev) {
			if (!depth)
				return 0;
			s->items[parents[--depth]].next = (uint32_t)s->n;
			continue;
		}
		r = dwarfscope_is_one(&entry) ? add(s, f, unit, &entry, &is_kept) : 0;
		if (r)
			return r;
		if (!is_kept) {
			if (!dwarfentry_skip_children(f, unit, c, &entry))
				break;
		} else if (entry.abbrev->has_children) {
			if (depth == DWARFSCOPES_DEPTH_MAX)
				break;
			parents[depth++] = (uint32_t)s->n - 1;
		}
	}
	return DWARFSCOPES_PARTIAL;
}

int dwarfscopes_read(struct dwarfscopes *scopes, struct dwarffile *f, const struct dwarfunit *unit,
		     uint64_t function)
{
	struct cursor c = dwarfentry_cursor(f, unit, function);
	struct dwarfentry entry;

	scopes->n = scopes->n_ranges = 0;
	f->n_list_entries = 0;
	if (!dwarfentry_next(f, unit, &c, &entry) || !entry.abbrev)
		return DWARFSCOPES_PARTIAL;
	return entry.abbrev->has_children ? read_children(scopes, f, unit, &c) : 0;
}

void dwarfscopes_deinit(struct dwarfscopes *scopes)
{
	free(scopes->items);
	free(scopes->ranges);
	*scopes = (struct dwarfscopes){.n = 0};
}

static bool holds(const struct dwarfscopes *s, const struct dwarfscope *scope, uint64_t vaddr)
{
	for (uint32_t i = 0; i < scope->n_ranges; i++) {
		const struct dwarfscope_range *range = &s->ranges[scope->first_range + i];

		if (range->start <= vaddr && vaddr < range->end)
			return true;
	}
	return scope->is_open;
}

/* Below an inlined function that holds @vaddr, only its children count; below a block also the
 * scopes behind it. */
size_t dwarfscopes_find(const struct dwarfscopes *scopes, struct dwarffile *f, uint64_t vaddr,
			uint64_t *ret, size_t max)
{
	size_t i = 0, end = scopes->n, n = 0;

	while (i < end && n < max) {
		const struct dwarfscope *scope = &scopes->items[i];

		if (!dwarffile_spend(f, 1 + scope->n_ranges))
			break;
		if (!holds(scopes, scope, vaddr)) {
			i = scope->next;
			continue;
		}
		if (scope->is_inlined) {
			ret[n++] = scope->off;
			end = scope->next;
		}
		i++;
	}
	return n;
}
