// SPDX-License-Identifier: Apache-2.0
/*
 * The goroutines of a process, as in runtime/pprof's goroutine profile: without the runtime's own
 * and without compiler-made functions. In addition, labels give the state of each goroutine.
 */
#include "goprofile/goroutines.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/vec.h"
#include "goprofile/gobuild.h"
#include "goprofile/gowalk.h"

/* Different wait reasons; a release has below 50. Reached: no reason. */
#define GOROUTINE_REASONS_MAX 256

/* ---------------------------------------------------------------- a snapshot */

struct making {
	struct goroutinesnap *snap;
	const struct stacksnap_space *space;
	struct gowalk *walk;
	size_t max_bytes;
	uint64_t n_no_room;
	uint64_t pcs[GOWALK_FRAMES_MAX];
};

DEFINE_CLEANUP(struct gowalk *, gowalk_freep, gowalk_free);
DEFINE_CLEANUP(struct goroutinesnap *, goroutinesnap_freep, goroutinesnap_free);

void goroutinesnap_free(struct goroutinesnap *s)
{
	if (!s)
		return;
	stacksnap_deinit(&s->stacks);
	for (size_t i = 0; i < s->n_reasons; i++)
		free(s->reasons[i]);
	free(s->reasons);
	free(s->records);
	free(s);
}

size_t goroutinesnap_bytes(const struct goroutinesnap *s)
{
	return sizeof(*s) + s->cap * sizeof(*s->records) + stacksnap_bytes(&s->stacks);
}

static int number_of_reason(struct goroutinesnap *s, const char *reason, uint16_t *ret)
{
	int r;

	for (size_t i = 0; i < s->n_reasons; i++) {
		if (strcmp(s->reasons[i], reason) == 0) {
			*ret = (uint16_t)i;
			return 0;
		}
	}
	r = vec_grow(&s->reasons, &s->reasons_cap, s->n_reasons + 1, sizeof(*s->reasons),
		     GOROUTINE_REASONS_MAX);
	*ret = 0; /* the first one is "" */
	if (r)
		return r < 0 ? r : 0;
	s->reasons[s->n_reasons] = strdup(reason);
	if (!s->reasons[s->n_reasons])
		return -ENOMEM;
	*ret = (uint16_t)s->n_reasons++;
	return 0;
}

static int add(struct goroutinesnap *s, const struct stacksnap_space *space,
	       const struct goroutine *g, const uint64_t *pcs, size_t n)
{
	struct goroutinesnap_record record = {.status = g->status, .n_pcs = n};
	int r = vec_grow(&s->records, &s->cap, s->n_records + 1, sizeof(*s->records),
			 (size_t)GOROUTINES_MAX);

	if (!r)
		r = number_of_reason(s, g->wait_reason, &record.reason);
	if (!r)
		r = stacksnap_add(&s->stacks, space, pcs, n, &record.first_pc);
	if (r)
		return r < 0 ? r : -ENOMEM;
	s->records[s->n_records++] = record;
	return 0;
}

static int on_goroutine(void *ctx, const struct goroutine *g)
{
	struct making *making = ctx;
	struct goroutinesnap *s = making->snap;
	bool system, whole = true;
	size_t n = 0;
	int r = gowalk_is_system(making->walk, g->start_pc, &system);

	if (r || system) {
		s->n_system += !r;
		return r;
	}
	if (goroutinesnap_bytes(s) > making->max_bytes) {
		making->n_no_room++;
		return 0;
	}
	if (g->pc)
		r = gowalk(making->walk, g, making->pcs, &n, &whole);
	else
		making->pcs[n++] = g->start_pc + 1;
	s->n_cut += !whole;
	return r ? r : add(s, making->space, g, making->pcs, n);
}

int goroutinesnap_new(const struct goruntime *rt, struct memory *m,
		      const struct stacksnap_space *space, size_t max_bytes,
		      struct goroutinesnap **ret)
{
	_cleanup_(goroutinesnap_freep) struct goroutinesnap *s = calloc(1, sizeof(*s));
	_cleanup_(gowalk_freep) struct gowalk *walk = NULL;
	struct making making = {.snap = s, .space = space, .max_bytes = max_bytes};
	uint16_t none;
	int r = s ? gowalk_new(space, &walk) : -ENOMEM;

	if (!r)
		r = number_of_reason(s, "", &none);
	making.walk = walk;
	if (!r)
		r = goroutines_read(rt, m, on_goroutine, &making, &s->stats);
	if (r)
		return r;
	s->stats.n_left_out += making.n_no_room;
	stacksnap_seal(&s->stacks);
	*ret = take_ptr(s);
	return 0;
}

/* ---------------------------------------------------------------- a profile */

static int enter_record(struct gobuild *b, const struct goroutinesnap *snap,
			const struct goroutinesnap_record *record)
{
	const struct pprof_label labels[] = {
		{.key = "state", .str = goroutine_status_name(record->status)},
		{.key = "wait_reason", .str = snap->reasons[record->reason]},
	};
	const struct gobuild_record sample = {
		.pcs = snap->stacks.pcs + record->first_pc,
		.n_pcs = record->n_pcs,
		.rule = GOSTACK_WALKED,
		.values = (const int64_t[]){1},
		.labels = labels,
		.n_labels = record->reason ? 2 : 1,
	};

	return gobuild_record(b, &sample);
}

/* Note missing goroutines in the profile, for later readers. */
static int enter_missing(struct gobuild *b, const struct goroutines_stats *stats)
{
	char comment[128];
	int r;

	if (!stats->n_changed && !stats->n_left_out)
		return 0;
	snprintf(comment, sizeof(comment),
		 "missing: %" PRIu64 " goroutines changed during the read, %" PRIu64 " had no room",
		 stats->n_changed, stats->n_left_out);
	r = pprof_comment(b->pprof, comment);
	return r < 0 ? r : 0;
}

static int enter_snap(struct gobuild *b, const struct goroutinesnap *snap)
{
	int r = gobuild_begin(b, &snap->stacks);

	for (size_t i = 0; !r && i < snap->n_records; i++)
		r = enter_record(b, snap, &snap->records[i]);
	if (!r)
		r = enter_missing(b, &snap->stats);
	return r;
}

int goroutine_report(struct goroutinesnap *const *snaps, size_t n_snaps,
		     struct symbolizer *symbolizer, const struct go_profile_report_opts *opts,
		     struct buf *ret, struct go_profile_report_stats *ret_stats)
{
	static const struct pprof_opts types = {
		.types = {{"goroutine", "count"}},
		.n_types = 1,
		.period_type = {"goroutine", "count"},
		.period = 1,
	};
	_cleanup_(gobuild_deinit) struct gobuild b = {0};
	int r = gobuild_init(&b, symbolizer, &types, opts);

	for (size_t i = 0; !r && i < n_snaps; i++)
		r = enter_snap(&b, snaps[i]);
	return r ? r : gobuild_encode(&b, ret, ret_stats);
}
