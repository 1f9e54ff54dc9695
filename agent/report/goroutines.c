// SPDX-License-Identifier: Apache-2.0
/*
 * The goroutines of a process, as runtime/pprof's goroutine profile has them: the runtime's own are
 * left out, and functions that the compiler made. Beside that, what each of them does is a label.
 */
#include "report/goroutines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/vec.h"
#include "pprof/pprof.h"
#include "report/gostack.h"
#include "report/gowalk.h"

/* Different reasons to wait; a release has below 50. Beyond, they have none. */
#define GOROUTINE_REASONS_MAX 256

/* ---------------------------------------------------------------- a snapshot */

struct making {
	struct goroutinesnap *snap;
	const struct stacksnap_space *space;
	struct gowalk *walk;
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
	if (g->pc)
		r = gowalk(making->walk, g, making->pcs, &n, &whole);
	else
		making->pcs[n++] = g->start_pc + 1;
	s->n_cut += !whole;
	return r ? r : add(s, making->space, g, making->pcs, n);
}

int goroutinesnap_new(const struct goruntime *rt, struct memory *m,
		      const struct stacksnap_space *space, struct goroutinesnap **ret)
{
	_cleanup_(goroutinesnap_freep) struct goroutinesnap *s = calloc(1, sizeof(*s));
	_cleanup_(gowalk_freep) struct gowalk *walk = NULL;
	struct making making = {.snap = s, .space = space};
	uint16_t none;
	int r = s ? gowalk_new(space, &walk) : -ENOMEM;

	if (!r)
		r = number_of_reason(s, "", &none);
	making.walk = walk;
	if (!r)
		r = goroutines_read(rt, m, on_goroutine, &making, &s->stats);
	if (r)
		return r;
	stacksnap_seal(&s->stacks);
	*ret = take_ptr(s);
	return 0;
}

/* ---------------------------------------------------------------- a profile */

struct goroutine_build {
	struct pprof *pprof;
	struct gostack *stacks;
	struct heap_report_stats stats;
};

static void goroutine_build_deinit(struct goroutine_build *b)
{
	gostack_free(b->stacks);
	pprof_free(b->pprof);
}

static int enter_record(struct goroutine_build *b, const struct goroutinesnap *snap,
			const struct goroutinesnap_record *record)
{
	const struct pprof_label labels[] = {
		{.key = "state", .str = goroutine_status_name(record->status)},
		{.key = "wait_reason", .str = snap->reasons[record->reason]},
	};
	const int64_t values[] = {1};
	uint32_t locations[GOSTACK_LOCATIONS_MAX];
	size_t n = 0;
	int r = gostack_locations(b->stacks, snap->stacks.pcs + record->first_pc, record->n_pcs,
				  GOSTACK_WALKED, locations, &n);

	if (!r)
		r = pprof_sample(b->pprof, locations, n, values, labels, record->reason ? 2 : 1);
	if (r < 0)
		return r;
	*(r ? &b->stats.n_left_out : &b->stats.n_records) += 1;
	return 0;
}

static int enter_snap(struct goroutine_build *b, const struct goroutinesnap *snap)
{
	int r = gostack_name(b->stacks, &snap->stacks);

	if (r > 0) { /* the profile has no room for more names */
		b->stats.n_left_out += snap->n_records;
		return 0;
	}
	for (size_t i = 0; !r && i < snap->n_records; i++)
		r = enter_record(b, snap, &snap->records[i]);
	return r < 0 ? r : 0;
}

static int goroutine_build_init(struct goroutine_build *b, struct symbolizer *symbolizer,
				const struct heap_report_opts *opts)
{
	const struct pprof_opts pprof_opts = {
		.types = {{"goroutine", "count"}},
		.n_types = 1,
		.period_type = {"goroutine", "count"},
		.period = 1,
		.time_ns = (int64_t)opts->time_ns,
		.max_samples = opts->max_samples,
		.max_bytes = opts->max_bytes,
	};
	int r = pprof_new(&pprof_opts, &b->pprof);

	return r ? r : gostack_new(symbolizer, b->pprof, &b->stacks);
}

int goroutine_report(struct goroutinesnap *const *snaps, size_t n_snaps,
		     struct symbolizer *symbolizer, const struct heap_report_opts *opts,
		     struct buf *ret, struct heap_report_stats *ret_stats)
{
	_cleanup_(goroutine_build_deinit) struct goroutine_build b = {0};
	struct gostack_stats stacks;
	int r = goroutine_build_init(&b, symbolizer, opts);

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
