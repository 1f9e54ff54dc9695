// SPDX-License-Identifier: Apache-2.0
#include "support/heapoutside.h"

#include "procmap/address_space.h"
#include "goprofile/heapsnap.h"
#include "support/test.h"
#include "symbolize/symbolizer.h"

const struct go_profile_report_opts heapoutside_cumulative = {
	.time_ns = 1,
	.max_samples = 1u << 20,
	.max_bytes = HEAPOUTSIDE_BYTES_MAX,
};

void heapoutside_deinit(struct heapoutside *o)
{
	goheap_free(o->heap);
	symbolizer_free(o->symbolizer);
	address_space_cache_free(o->space);
	goprocess_stop(&o->process);
}

void heapoutside_start(struct heapoutside *o, const char *path, const char *const *args,
		       const char *env)
{
	struct symbolizer_opts symbols = {.cache_bytes = HEAPOUTSIDE_BYTES_MAX};
	struct goheap_opts heap = {0};

	goprocess_start(&o->process, path, args, env);
	symbols.proc = heap.proc = &o->process.proc;
	heap.id = o->process.id;
	assert_int_equal(address_space_cache_new(&o->process.proc, &o->space), 0);
	assert_int_equal(symbolizer_new(&symbols, &o->symbolizer), 0);
	assert_int_equal(goheap_new(&heap, &o->heap), 0);
	assert_string_equal(goruntime_state_name(goheap_state(o->heap)), "ok");
}

static int resolve(void *ctx, uint64_t pc, struct frame *ret)
{
	struct heapoutside *o = ctx;

	if (goheap_resolve(o->heap, pc, ret))
		return 0;
	return address_space_cache_resolve(o->space, &o->process.id, pc, ret);
}

int heapoutside_read(struct heapoutside *o, const struct go_profile_report_opts *opts,
		     bool since_start, struct buf *ret, struct go_profile_report_stats *ret_stats,
		     struct goheap_totals *ret_totals)
{
	const struct heapsnap_opts snap_opts = {
		.space = {resolve, o},
		.since_start = since_start,
	};
	struct goheap_profile profile = {0};
	struct heapsnap *snap = NULL;
	int r = goheap_read(o->heap, &profile);

	if (r)
		return r;
	goheap_totals(&profile, ret_totals);
	r = heapsnap_new(&profile, &snap_opts, &snap);
	if (r)
		return r;
	r = heap_report(&snap, 1, o->symbolizer, opts, ret, ret_stats);
	heapsnap_free(snap);
	symbolizer_release(o->symbolizer);
	return r;
}
