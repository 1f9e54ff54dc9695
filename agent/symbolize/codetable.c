// SPDX-License-Identifier: Apache-2.0
/*
 * Ranges are kept sorted and disjoint. New ones collect behind them. code_table_settle() sorts the
 * ends of all ranges, and paints the ranges from the newest to the oldest onto the pieces between
 * these ends, each piece once. Painted pieces point to the next free piece, as in a union-find
 * structure. Names are copied with their ranges, so names of replaced functions take no memory.
 */
#include "symbolize/codetable.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/vec.h"
#include "base/work_budget.h"

/* Work of a range each time the ranges are sorted. */
#define CODE_RANGE_COST 256u

struct code_range {
	uint64_t start;
	uint32_t size;
	uint32_t name; /* offset of the entry in names: the name; with details their length, and the
			* details */
};
_Static_assert(sizeof(struct code_range) == 16, "16 bytes a function");

void code_table_init(struct code_table *t, bool has_details)
{
	*t = (struct code_table){.has_details = has_details};
	buf_init(&t->names, CODE_TABLE_NAMES_MAX);
}

void code_table_deinit(struct code_table *t)
{
	free(t->ranges);
	buf_deinit(&t->names);
}

void code_table_clear(struct code_table *t)
{
	t->n = t->n_settled = 0;
	buf_reset(&t->names);
}

/* ---------------------------------------------------------------- entries */

/* The entry at @off, which the table has written. */
static void read_entry(const struct code_table *t, uint32_t off, struct code_function *ret)
{
	size_t n = strlen(t->names.data + off) + 1;
	uint32_t n_details = 0;

	ret->name = t->names.data + off;
	if (t->has_details) {
		memcpy(&n_details, t->names.data + off + n, sizeof(n_details));
		n += sizeof(n_details);
	}
	ret->details = t->names.data + off + n;
	ret->n_details = n_details;
}

static int append_entry(struct code_table *t, const struct code_function *f, const char *name,
			size_t n_name)
{
	const uint32_t n_details = (uint32_t)f->n_details;
	int r;

	n_name = strnlen(name, n_name < CODE_TABLE_NAME_MAX ? n_name : CODE_TABLE_NAME_MAX);
	r = buf_append(&t->names, name, n_name);
	if (!r)
		r = buf_append(&t->names, "", 1);
	if (!r && t->has_details)
		r = buf_append(&t->names, &n_details, sizeof(n_details));
	if (!r && t->has_details)
		r = buf_append(&t->names, f->details, n_details);
	return r;
}

static int append(struct code_table *t, const struct code_function *f, const char *name,
		  size_t n_name)
{
	const size_t at = t->names.len;
	int r = append_entry(t, f, name, n_name);

	if (!r)
		r = vec_grow(&t->ranges, &t->cap, t->n + 1, sizeof(*t->ranges),
			     CODE_TABLE_RANGES_MAX);
	if (r)
		t->names.len = at;
	else
		t->ranges[t->n++] = (struct code_range){
			.start = f->start, .size = f->size, .name = (uint32_t)at};
	return r < 0 ? r : r ? CODE_TABLE_FULL : 0;
}

/* A full table is settled once for each quarter of new ranges: the replaced ones make room. */
int code_table_add(struct code_table *t, const struct code_function *f, const char *name,
		   size_t n_name, struct work_budget *work)
{
	int r = append(t, f, name, n_name);

	if (r <= 0 || t->n - t->n_settled < CODE_TABLE_RANGES_MAX / 4)
		return r;
	r = code_table_settle(t, work);
	return r ? r : append(t, f, name, n_name);
}

/* ---------------------------------------------------------------- the newest wins */

/* A piece between two neighbouring ends of ranges. */
struct piece {
	uint64_t start;
	uint32_t next;	/* itself, or a piece before the next one without @range */
	uint32_t range; /* number plus one; 0: none */
};

static int by_start(const void *a, const void *b)
{
	const struct piece *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* All ends, ascending, each once. */
static size_t cut(const struct code_table *t, struct piece *pieces)
{
	size_t n = 0, kept = 0;

	for (size_t i = 0; i < t->n; i++) {
		pieces[n++].start = t->ranges[i].start;
		pieces[n++].start = t->ranges[i].start + t->ranges[i].size;
	}
	qsort(pieces, n, sizeof(*pieces), by_start);
	for (size_t i = 0; i < n; i++)
		if (!kept || pieces[i].start != pieces[kept - 1].start)
			pieces[kept++].start = pieces[i].start;
	for (size_t i = 0; i < kept; i++) {
		pieces[i].next = (uint32_t)i;
		pieces[i].range = 0;
	}
	return kept;
}

/* The first piece from @i on that is not painted; the last piece never is. */
static uint32_t first_free(struct piece *pieces, uint32_t i)
{
	while (pieces[i].next != i) {
		pieces[i].next = pieces[pieces[i].next].next;
		i = pieces[i].next;
	}
	return i;
}

static uint32_t piece_at(const struct piece *pieces, size_t n, uint64_t start)
{
	const struct piece key = {.start = start};
	const struct piece *at = bsearch(&key, pieces, n, sizeof(*pieces), by_start);

	return (uint32_t)(at - pieces); /* every start is there */
}

static void paint(const struct code_table *t, struct piece *pieces, size_t n)
{
	for (size_t k = t->n; k-- > 0;) {
		const struct code_range *range = &t->ranges[k];
		const uint64_t limit = range->start + range->size;
		uint32_t i = first_free(pieces, piece_at(pieces, n, range->start));

		while (pieces[i].start < limit) {
			pieces[i].range = (uint32_t)k + 1;
			pieces[i].next = i + 1;
			i = first_free(pieces, i + 1);
		}
	}
}

/* A range for each run of pieces with the same colour. */
static int collect(const struct code_table *t, const struct piece *pieces, size_t n,
		   struct code_table *ret)
{
	int r = 0;

	for (size_t i = 0, end; i < n && !r; i = end) {
		struct code_function f;

		for (end = i + 1; end < n && pieces[end].range == pieces[i].range;)
			end++;
		if (!pieces[i].range)
			continue;
		read_entry(t, t->ranges[pieces[i].range - 1].name, &f);
		f.start = pieces[i].start;
		f.size = (uint32_t)(pieces[end].start - pieces[i].start);
		r = append(ret, &f, f.name, CODE_TABLE_NAME_MAX);
	}
	return r;
}

int code_table_settle(struct code_table *t, struct work_budget *work)
{
	_cleanup_(freep) struct piece *pieces = NULL;
	struct code_table settled;
	size_t n;
	int r;

	if (t->n == t->n_settled)
		return 0;
	(void)work_budget_spend(work, t->n * CODE_RANGE_COST);
	pieces = calloc(2 * t->n, sizeof(*pieces));
	if (!pieces)
		return -ENOMEM;
	code_table_init(&settled, t->has_details);
	n = cut(t, pieces);
	paint(t, pieces, n);
	r = collect(t, pieces, n, &settled);
	if (r < 0) {
		code_table_deinit(&settled);
		return r;
	}
	code_table_deinit(t);
	*t = settled;
	t->n_settled = t->n;
	return r;
}

/* ---------------------------------------------------------------- find */

static void read_range(const struct code_table *t, const struct code_range *range,
		       struct code_function *ret)
{
	read_entry(t, range->name, ret);
	ret->start = range->start;
	ret->size = range->size;
}

bool code_table_find(const struct code_table *t, uint64_t pc, struct code_function *ret)
{
	size_t low = 0, high = t->n_settled;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		const struct code_range *range = &t->ranges[mid];

		if (pc < range->start) {
			high = mid;
		} else if (pc - range->start >= range->size) {
			low = mid + 1;
		} else {
			read_range(t, range, ret);
			return true;
		}
	}
	return false;
}

bool code_table_newest(const struct code_table *t, uint64_t pc, struct code_function *ret)
{
	for (size_t i = t->n; i-- > t->n_settled;) {
		const struct code_range *range = &t->ranges[i];

		if (pc < range->start || pc - range->start >= range->size)
			continue;
		read_range(t, range, ret);
		return true;
	}
	return code_table_find(t, pc, ret);
}

size_t code_table_bytes(const struct code_table *t)
{
	return sizeof(*t) + t->cap * sizeof(*t->ranges) + t->names.cap;
}
