// SPDX-License-Identifier: Apache-2.0
/*
 * Mutex and block profiles, as runtime/pprof writes them (pprof.go there, printCountCycleProfile):
 * two values a stack, no labels, no hidden functions. Since Go 1.23 the stacks are mostly return
 * addresses. Before, the stacks are logical, and the rule for return addresses finds nothing to
 * add.
 */
#include "goprofile/contention.h"

#include <errno.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "goheap/contention.h"
#include "goprofile/gobuild.h"

/* ---------------------------------------------------------------- a snapshot */

void contentionsnap_free(struct contentionsnap *s)
{
	if (!s)
		return;
	stacksnap_deinit(&s->stacks);
	free(s->records);
	free(s);
}

size_t contentionsnap_bytes(const struct contentionsnap *s)
{
	return sizeof(*s) + s->n_records * sizeof(*s->records) + stacksnap_bytes(&s->stacks);
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
	const struct go_profile_report_opts *opts;
	struct gobuild go;
};

static void contention_build_deinit(struct contention_build *b)
{
	gobuild_deinit(&b->go);
}

static int enter_record(struct contention_build *b, const struct contentionsnap *snap,
			const struct contentionsnap_record *record)
{
	bool delta = b->opts->delta;
	const int64_t values[] = {
		record->contentions - (delta ? record->before_contentions : 0),
		record->delay_ns - (delta ? record->before_delay_ns : 0),
	};
	const struct gobuild_record sample = {
		.pcs = snap->stacks.pcs + record->first_pc,
		.n_pcs = record->n_pcs,
		.rule = GOSTACK_PHYSICAL,
		.values = values,
	};

	if (delta && !values[0] && !values[1]) {
		b->go.stats.n_empty++;
		return 0;
	}
	return gobuild_record(&b->go, &sample);
}

static int enter_snap(struct contention_build *b, const struct contentionsnap *snap)
{
	int r = gobuild_begin(&b->go, &snap->stacks);

	for (size_t i = 0; !r && i < snap->n_records; i++)
		r = enter_record(b, snap, &snap->records[i]);
	if (!r && snap->measured)
		r = pprof_comment(b->go.pprof,
				  "podprof has measured how long a tick of the processor "
				  "is: this program has not done so yet");
	return r < 0 ? r : 0;
}

int contention_report(struct contentionsnap *const *snaps, size_t n_snaps,
		      struct symbolizer *symbolizer, const struct go_profile_report_opts *opts,
		      struct buf *ret, struct go_profile_report_stats *ret_stats)
{
	_cleanup_(contention_build_deinit) struct contention_build b = {.opts = opts};
	const struct pprof_opts types = {
		.types = {{"contentions", "count"}, {"delay", "nanoseconds"}},
		.n_types = 2,
		.period_type = {"contentions", "count"},
		.period = 1,
		.duration_ns = (int64_t)opts->duration_ns,
	};
	int r = gobuild_init(&b.go, symbolizer, &types, opts);

	for (size_t i = 0; !r && i < n_snaps; i++)
		r = enter_snap(&b, snaps[i]);
	return r ? r : gobuild_encode(&b.go, ret, ret_stats);
}
