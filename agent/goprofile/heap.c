// SPDX-License-Identifier: Apache-2.0
/*
 * Converts heap records as runtime/pprof does (protomem.go there).
 */
#include "goprofile/heap.h"

#include <errno.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "goheap/goheap.h"
#include "goprofile/gobuild.h"
#include "goprofile/heapsnap.h"

struct heap_build {
	const struct go_profile_report_opts *opts;
	const struct heapsnap *snap; /* the current snapshot */
	struct gobuild go;
};

static void heap_build_deinit(struct heap_build *b)
{
	gobuild_deinit(&b->go);
}

/* A delta is the difference of two estimates, each of all allocations up to a read, so the sum of
 * the windows equals the last estimate. The value since the start has the published allocations
 * alone, as in Go's own profile. */
static struct unsampled alloc_value(const struct heap_build *b, const struct heapsnap_record *r)
{
	struct unsampled now, before;

	if (!b->opts->delta)
		return unsample(r->allocs, r->size, b->snap->rate);
	now = unsample(r->fresh, r->size, b->snap->rate);
	before = unsample(r->before, r->size, b->snap->rate);
	return (struct unsampled){now.objects - before.objects, now.bytes - before.bytes};
}

static int enter_record(struct heap_build *b, const struct heapsnap_record *record)
{
	struct unsampled alloc = alloc_value(b, record);
	struct unsampled inuse = unsample(record->inuse, record->size, b->snap->rate);
	const int64_t values[] = {alloc.objects, alloc.bytes, inuse.objects, inuse.bytes};
	const struct pprof_label label = {
		.key = "bytes",
		.num = record->size > INT64_MAX ? INT64_MAX : (int64_t)record->size,
	};
	const struct gobuild_record sample = {
		.pcs = b->snap->stacks.pcs + record->first_pc,
		.n_pcs = record->n_pcs,
		.rule = GOSTACK_HEAP,
		.values = values,
		.labels = &label,
		.n_labels = b->opts->delta || record->allocs || !b->snap->blank_label,
	};

	if (b->opts->delta && !alloc.objects && !inuse.objects) {
		b->go.stats.n_empty++;
		return 0;
	}
	return gobuild_record(&b->go, &sample);
}

static int enter_snap(struct heap_build *b, const struct heapsnap *snap)
{
	int r = gobuild_begin(&b->go, &snap->stacks);

	b->snap = snap;
	for (size_t i = 0; !r && i < snap->n_records; i++)
		r = enter_record(b, &snap->records[i]);
	if (!r && snap->forced)
		r = pprof_comment(b->go.pprof,
				  "podprof has turned sampling on in this process: earlier "
				  "allocations are missing");
	return r < 0 ? r : 0;
}

int heap_report(struct heapsnap *const *snaps, size_t n_snaps, struct symbolizer *symbolizer,
		const struct go_profile_report_opts *opts, struct buf *ret,
		struct go_profile_report_stats *ret_stats)
{
	_cleanup_(heap_build_deinit) struct heap_build b = {.opts = opts};
	const struct pprof_opts types = {
		.types = {{"alloc_objects", "count"},
			  {"alloc_space", "bytes"},
			  {"inuse_objects", "count"},
			  {"inuse_space", "bytes"}},
		.n_types = 4,
		.period_type = {"space", "bytes"},
		.period = n_snaps ? snaps[0]->rate : 0,
		.duration_ns = (int64_t)opts->duration_ns,
	};
	int r = gobuild_init(&b.go, symbolizer, &types, opts);

	for (size_t i = 0; !r && i < n_snaps; i++)
		r = enter_snap(&b, snaps[i]);
	return r ? r : gobuild_encode(&b.go, ret, ret_stats);
}
