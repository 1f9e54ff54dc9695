// SPDX-License-Identifier: Apache-2.0
#include "unwindtable/goimage.h"

#include <errno.h>

#include "base/cleanup.h"
#include "gofile/gocode.h"
#include "gofile/gopcsp.h"

DEFINE_CLEANUP(struct gopcsp *, gopcsp_freep, gopcsp_free);
DEFINE_CLEANUP(struct gorows *, gorows_freep, gorows_free);

int goimage_rows(const struct elffile *file, struct rows *rows, struct gorows_stats *ret_stats)
{
	_cleanup_(gopcsp_freep) struct gopcsp *tables = NULL;
	_cleanup_(gorows_freep) struct gorows *g = NULL;
	struct gocode_func func;
	uint64_t n_malformed = 0;
	int r;

	if (!gorows_supports(file))
		return GOPCSP_UNSUPPORTED;
	r = gopcsp_open(file, &tables);
	if (!r)
		r = gorows_new(file, rows, &g);
	if (r)
		return r;
	while ((r = gopcsp_next(tables, &func)) != GOPCSP_END) {
		if (r < 0)
			return r;
		if (r > 0) {
			n_malformed++;
			continue;
		}
		r = gorows_add(g, &func);
		if (r)
			return r < 0 ? r : -ENOSPC;
	}
	if (ret_stats) {
		*ret_stats = *gorows_stats(g);
		ret_stats->n_funcs += n_malformed;
		ret_stats->n_odd += n_malformed;
	}
	return 0;
}

int goimage_more(void *file, struct rows *rows)
{
	int r = goimage_rows(file, rows, NULL);

	return r < 0 ? r : 0;
}
