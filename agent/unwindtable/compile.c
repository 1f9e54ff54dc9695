// SPDX-License-Identifier: Apache-2.0
#include "unwindtable/compile.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/work_budget.h"
#include "codescan/codescan.h"
#include "unwind/described.h"
#include "unwind/gorows.h"
#include "unwind/synthetic.h"

/* Work on one file: units, and more for each byte of the file. Node's of 99 MB takes 103 * 10^6. */
#define COMPILE_WORK	  ((uint64_t)1 << 29)
#define COMPILE_BYTE_WORK 8u
/* The maximum of these units. Reached: `podprof_unwind_compiled_total{outcome="abandoned"}`: walked
 * by frame pointers, and tried again after half an hour. */
#define COMPILE_WORK_MAX  ((uint64_t)1 << 32)

/* Compilers write .debug_frame beside .eh_frame or beside Go's tables. Most of the time it says the
 * same once more, and Go's is compressed. */
static int add_debug_frame(const struct elffile *file, struct ehframe_stats *stats,
			   struct rows *rows)
{
	_cleanup_(described_deinit) struct described described = {0};
	bool leaves;
	int r;

	if (!ehframe_has_debug(file))
		return 0;
	r = described_init(&described, rows);
	if (!r)
		r = described_leaves(&described, file, &leaves);
	return r || !leaves ? r : ehframe_add_debug(file, &described, rows, stats);
}

static int add_described(const struct elffile *file, struct ehframe_stats *stats, struct rows *rows)
{
	int r;

	rows_watch(rows, elffile_entry(file));
	r = ehframe_add(file, rows, stats);
	if (!r)
		r = synthetic_add(file, rows);
	if (!r)
		r = synthetic_add_linkage(file, rows);
	if (!r) {
		r = gorows_add_file(file, rows, NULL);
		r = r < 0 ? r : 0; /* not Go's, or its tables are invalid */
	}
	if (!r)
		r = add_debug_frame(file, stats, rows);
	if (!r && !rows_watched(rows))
		r = synthetic_add_entry(file, rows);
	return r ? r : rows_finish(rows);
}

/* Extends @*rows by the rows from scanning the code in the gaps. */
static int fill_gaps(const struct elffile *file, uint64_t text_end, struct rows **rows)
{
	_cleanup_(rows_freep) struct rows *filled = NULL;
	struct codescan_stats stats;
	int r = rows_copy(*rows, text_end, &filled);

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

static int compile(const struct elffile *file, struct ehframe_stats *stats, struct rows **ret)
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
		r = fill_gaps(file, text_end, &rows);
	if (r)
		return r;
	*ret = take_ptr(rows);
	return 0;
}

int compile_image(const struct elffile *file, struct ehframe_stats *stats, struct rows **ret)
{
	_cleanup_(rows_freep) struct rows *rows = NULL;
	uint64_t units = COMPILE_WORK + COMPILE_BYTE_WORK * elffile_size(file);
	struct elffile *budgeted;
	struct work_budget work;
	int r;

	work_budget_init(&work, units < COMPILE_WORK_MAX ? units : COMPILE_WORK_MAX, COMPILE_CPU_NS,
			 NULL);
	r = elffile_budgeted(file, &work, &budgeted);
	if (r)
		return r;
	r = compile(budgeted, stats, &rows);
	elffile_free(budgeted);
	if (r >= 0 && work.end) /* parsers take an ended budget for the end of the file */
		return ELFFILE_ABANDONED;
	if (!r)
		*ret = take_ptr(rows);
	return r;
}
