// SPDX-License-Identifier: Apache-2.0
#include "unwind/compile.h"

#include "base/cleanup.h"
#include "unwind/synthetic.h"

DEFINE_CLEANUP(struct rows *, rows_freep, rows_free);

/* What is not told by the file's own tables. */
static int add_others(const struct elffile *file, const struct compile_opts *opts,
		      struct rows *rows)
{
	struct rowfile_report report = {0};
	int r = opts->more ? opts->more(opts->ctx, rows) : 0;

	if (!r && opts->rows_dir)
		r = rowfile_add(opts->rows_dir, file, rows, &report);
	if (opts->rowfile)
		*opts->rowfile = report;
	return r;
}

int compile_image(const struct elffile *file, const struct compile_opts *opts,
		  struct ehframe_stats *stats, struct rows **ret)
{
	_cleanup_(rows_freep) struct rows *rows = NULL;
	uint64_t text_start, text_end;
	int r = ehframe_text(file, &text_start, &text_end);

	*stats = (struct ehframe_stats){0};
	if (!r)
		r = rows_new(text_start, text_end, &rows);
	if (!r)
		rows_watch(rows, elffile_entry(file));
	if (!r)
		r = ehframe_add(file, rows, stats);
	if (!r)
		r = synthetic_add(file, rows);
	if (!r && opts)
		r = add_others(file, opts, rows);
	if (!r && !(opts && opts->described_only) && !rows_watched(rows))
		r = synthetic_add_entry(file, rows);
	if (r)
		return r;
	r = rows_finish(rows);
	if (r)
		return r;
	*ret = take_ptr(rows);
	return 0;
}
