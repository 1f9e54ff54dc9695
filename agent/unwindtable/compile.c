// SPDX-License-Identifier: Apache-2.0
#include "unwindtable/compile.h"

#include <errno.h>

#include "base/cleanup.h"
#include "codescan/codescan.h"
#include "unwind/gorows.h"
#include "unwind/synthetic.h"

DEFINE_CLEANUP(struct rows *, rows_freep, rows_free);

static int add_described(const struct elffile *file, struct ehframe_stats *stats, struct rows *rows)
{
	int r;

	rows_watch(rows, elffile_entry(file));
	r = ehframe_add(file, rows, stats);
	if (!r)
		r = synthetic_add(file, rows);
	if (!r) {
		r = gorows_add_file(file, rows, NULL);
		r = r < 0 ? r : 0; /* not Go's, or its tables are invalid */
	}
	if (!r && !rows_watched(rows))
		r = synthetic_add_entry(file, rows);
	return r ? r : rows_finish(rows);
}

/* Copies the known rows, to stand before the rows from scanning code. */
static int copy_rows(const struct rows *known, struct rows *rows)
{
	int r = 0;

	for (size_t i = 0; i + 1 < rows_count(known) && !r; i++) {
		struct row row = rows_at(known, i);

		if (row.rule == 0 ||
		    rows_begin(rows, ROWS_EH_FRAME, row.vaddr, rows_at(known, i + 1).vaddr))
			continue;
		r = rows_add(rows, row.vaddr, rows_rule(known, row.rule));
		if (!r)
			r = rows_end(rows);
	}
	return r == ROWS_FULL ? -ENOSPC : r;
}

/* Extends @*rows by the rows from scanning the code in the gaps. */
static int fill_gaps(const struct elffile *file, uint64_t text_start, uint64_t text_end,
		     struct rows **rows)
{
	_cleanup_(rows_freep) struct rows *filled = NULL;
	struct codescan_stats stats;
	int r = rows_new(text_start, text_end, &filled);

	if (!r)
		r = copy_rows(*rows, filled);
	if (!r)
		r = codescan_add(file, *rows, filled, &stats);
	if (!r)
		r = rows_finish(filled);
	if (r)
		return r;
	rows_free(*rows);
	*rows = take_ptr(filled);
	return 0;
}

int compile_image(const struct elffile *file, struct ehframe_stats *stats, struct rows **ret)
{
	_cleanup_(rows_freep) struct rows *rows = NULL;
	uint64_t text_start, text_end, undescribed;
	int r = ehframe_text(file, &text_start, &text_end);

	*stats = (struct ehframe_stats){0};
	if (!r)
		r = rows_new(text_start, text_end, &rows);
	if (!r)
		r = add_described(file, stats, rows);
	if (!r)
		r = codescan_wanted(file, rows, &undescribed);
	if (!r && undescribed)
		r = fill_gaps(file, text_start, text_end, &rows);
	if (r)
		return r;
	*ret = take_ptr(rows);
	return 0;
}
