// SPDX-License-Identifier: Apache-2.0
/*
 * Mutex and block profiles, as runtime/pprof writes them (pprof.go there, printCountCycleProfile):
 * two values a stack, no labels, no function hidden. Since Go 1.23 their stacks are return
 * addresses for the most part; before they are logical, where the rule for the others finds nothing
 * to put in.
 */
#include "report/contention.h"

#include <errno.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "goheap/contention.h"
#include "pprof/pprof.h"
#include "report/gostack.h"

/* ---------------------------------------------------------------- a snapshot */

void contentionsnap_free(struct contentionsnap *s)
{
	if (!s)
		return;
	stacksnap_deinit(&s->stacks);
	free(s->records);
	free(s);
}

DEFINE_CLEANUP(struct contentionsnap *, contentionsnap_freep, contentionsnap_free);

static int add(struct contentionsnap *s, const struct stacksnap_space *space,
	       const struct contention_record *record, bool none_before)
{
	struct contentionsnap_record *to = &s->records[s->n_records++];

	*to = (struct contentionsnap_record){
		.contentions = record->contentions,
		.delay_ns = record->delay_ns,
		.before_contentions =
			none_before ? record->contentions : record->before_contentions,
		.before_delay_ns = none_before ? record->delay_ns : record->before_delay_ns,
		.n_pcs = record->n_pcs,
	};
	return stacksnap_add(&s->stacks, space, record->pcs, record->n_pcs, &to->first_pc);
}

int contentionsnap_new(const struct contention_profile *profile,
		       const struct stacksnap_space *space, bool since_start,
		       struct contentionsnap **ret)
{
	_cleanup_(contentionsnap_freep) struct contentionsnap *s = calloc(1, sizeof(*s));
	bool none_before = profile->first && !since_start;
	int r = 0;

	if (!s)
		return -ENOMEM;
	s->records = calloc(profile->n_records + 1, sizeof(*s->records));
	if (!s->records)
		return -ENOMEM;
	s->measured = profile->measured;
	for (size_t i = 0; !r && i < profile->n_records; i++) {
		struct contention_record record;

		contention_record(profile, i, &record);
		r = add(s, space, &record, none_before);
	}
	if (r)
		return r;
	stacksnap_seal(&s->stacks);
	*ret = take_ptr(s);
	return 0;
}

/* ---------------------------------------------------------------- a profile */

struct contention_build {
	const struct heap_report_opts *opts;
	struct pprof *pprof;
	struct gostack *stacks;
	struct heap_report_stats stats;
};

static void contention_build_deinit(struct contention_build *b)
{
	gostack_free(b->stacks);
	pprof_free(b->pprof);
}

static int enter_record(struct contention_build *b, const struct contentionsnap *snap,
			const struct contentionsnap_record *record)
{
	bool delta = b->opts->delta;
	const int64_t values[] = {
		record->contentions - (delta ? record->before_contentions : 0),
		record->delay_ns - (delta ? record->before_delay_ns : 0),
	};
	uint32_t locations[GOSTACK_LOCATIONS_MAX];
	size_t n = 0;
	int r;

	if (delta && !values[0] && !values[1]) {
		b->stats.n_empty++;
		return 0;
	}
	r = gostack_locations(b->stacks, snap->stacks.pcs + record->first_pc, record->n_pcs,
			      GOSTACK_PHYSICAL, locations, &n);
	if (!r)
		r = pprof_sample(b->pprof, locations, n, values, NULL, 0);
	if (r < 0)
		return r;
	*(r ? &b->stats.n_left_out : &b->stats.n_records) += 1;
	return 0;
}

static int enter_snap(struct contention_build *b, const struct contentionsnap *snap)
{
	int r = gostack_name(b->stacks, &snap->stacks);

	if (r > 0) { /* the profile has no room for more names */
		b->stats.n_left_out += snap->n_records;
		return 0;
	}
	for (size_t i = 0; !r && i < snap->n_records; i++)
		r = enter_record(b, snap, &snap->records[i]);
	if (!r && snap->measured)
		r = pprof_comment(b->pprof, "podprof has measured how long a tick of the processor "
					    "is: this program has not done so yet");
	return r < 0 ? r : 0;
}

static int contention_build_init(struct contention_build *b, struct symbolizer *symbolizer)
{
	const struct heap_report_opts *opts = b->opts;
	const struct pprof_opts pprof_opts = {
		.types = {{"contentions", "count"}, {"delay", "nanoseconds"}},
		.n_types = 2,
		.period_type = {"contentions", "count"},
		.period = 1,
		.time_ns = (int64_t)opts->time_ns,
		.duration_ns = (int64_t)opts->duration_ns,
		.max_samples = opts->max_samples,
		.max_bytes = opts->max_bytes,
	};
	int r = pprof_new(&pprof_opts, &b->pprof);

	return r ? r : gostack_new(symbolizer, b->pprof, &b->stacks);
}

int contention_report(struct contentionsnap *const *snaps, size_t n_snaps,
		      struct symbolizer *symbolizer, const struct heap_report_opts *opts,
		      struct buf *ret, struct heap_report_stats *ret_stats)
{
	_cleanup_(contention_build_deinit) struct contention_build b = {.opts = opts};
	struct gostack_stats stacks;
	int r = contention_build_init(&b, symbolizer);

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
