// SPDX-License-Identifier: Apache-2.0
/*
 * Heap records to what runtime/pprof writes of them (protomem.go there).
 */
#include "report/heap.h"

#include <errno.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "goheap/unsample.h"
#include "pprof/pprof.h"
#include "report/gostack.h"
#include "report/heapsnap.h"

struct heap_build {
	const struct heap_report_opts *opts;
	struct pprof *pprof;
	struct gostack *stacks;
	const struct heapsnap *snap; /* the one at hand */
	struct heap_report_stats stats;
};

static void heap_build_deinit(struct heap_build *b)
{
	gostack_free(b->stacks);
	pprof_free(b->pprof);
}

/* The difference of what two profiles show, so that the windows' sum is the last one's number. */
static struct unsampled alloc_value(const struct heap_build *b, const struct heapsnap_record *r)
{
	struct unsampled now, before;

	if (!b->opts->delta)
		return unsample(r->allocs, r->size, b->snap->rate);
	now = unsample(r->fresh, r->size, b->snap->rate);
	before = unsample(r->before, r->size, b->snap->rate);
	return (struct unsampled){now.objects - before.objects, now.bytes - before.bytes};
}

static int enter_sample(struct heap_build *b, const struct heapsnap_record *record,
			const int64_t values[4])
{
	uint32_t locations[GOSTACK_LOCATIONS_MAX];
	const struct pprof_label label = {
		.key = "bytes",
		.num = record->size > INT64_MAX ? INT64_MAX : (int64_t)record->size,
	};
	bool has_label = b->opts->delta || record->allocs || !b->snap->blank_label;
	size_t n = 0;
	int r = gostack_locations(b->stacks, b->snap->stacks.pcs + record->first_pc, record->n_pcs,
				  GOSTACK_HEAP, locations, &n);

	return r ? r : pprof_sample(b->pprof, locations, n, values, &label, has_label);
}

static int enter_record(struct heap_build *b, const struct heapsnap_record *record)
{
	struct unsampled alloc = alloc_value(b, record);
	struct unsampled inuse = unsample(record->inuse, record->size, b->snap->rate);
	const int64_t values[] = {alloc.objects, alloc.bytes, inuse.objects, inuse.bytes};
	int r;

	if (b->opts->delta && !alloc.objects && !inuse.objects) {
		b->stats.n_empty++;
		return 0;
	}
	r = enter_sample(b, record, values);
	if (r < 0)
		return r;
	*(r ? &b->stats.n_left_out : &b->stats.n_records) += 1;
	return 0;
}

static int enter_snap(struct heap_build *b, const struct heapsnap *snap)
{
	int r;

	b->snap = snap;
	r = gostack_name(b->stacks, &snap->stacks);
	if (r > 0) { /* the profile has no room for more names */
		b->stats.n_left_out += snap->n_records;
		return 0;
	}
	for (size_t i = 0; !r && i < snap->n_records; i++)
		r = enter_record(b, &snap->records[i]);
	if (!r && snap->forced)
		r = pprof_comment(b->pprof, "podprof has turned sampling on in this process: what "
					    "it had allocated before is not in here");
	return r < 0 ? r : 0;
}

static int heap_build_init(struct heap_build *b, const struct heapsnap *first,
			   struct symbolizer *symbolizer)
{
	const struct heap_report_opts *opts = b->opts;
	const struct pprof_opts pprof_opts = {
		.types = {{"alloc_objects", "count"},
			  {"alloc_space", "bytes"},
			  {"inuse_objects", "count"},
			  {"inuse_space", "bytes"}},
		.n_types = 4,
		.period_type = {"space", "bytes"},
		.period = first ? first->rate : 0,
		.time_ns = (int64_t)opts->time_ns,
		.duration_ns = (int64_t)opts->duration_ns,
		.max_samples = opts->max_samples,
		.max_bytes = opts->max_bytes,
	};
	int r = pprof_new(&pprof_opts, &b->pprof);

	return r ? r : gostack_new(symbolizer, b->pprof, &b->stacks);
}

int heap_report(struct heapsnap *const *snaps, size_t n_snaps, struct symbolizer *symbolizer,
		const struct heap_report_opts *opts, struct buf *ret,
		struct heap_report_stats *ret_stats)
{
	_cleanup_(heap_build_deinit) struct heap_build b = {.opts = opts};
	struct gostack_stats stacks;
	int r = heap_build_init(&b, n_snaps ? snaps[0] : NULL, symbolizer);

	for (size_t i = 0; !r && i < n_snaps; i++)
		r = enter_snap(&b, snaps[i]);
	if (!r)
		r = pprof_encode(b.pprof, ret);
	if (r)
		return r;
	stacks = gostack_stats(b.stacks);
	b.stats.n_places = stacks.n_places;
	b.stats.n_unnamed = stacks.n_unnamed;
	*ret_stats = b.stats;
	return 0;
}
