// SPDX-License-Identifier: Apache-2.0
/*
 * A copy's way: out of the ring into a list; when the kernel has told all that happened before it,
 * its process's space is looked up (of one that has gone: what it was) and it is walked. If the
 * walk came upon an image whose table is being made it stays in the list and is walked again when
 * that table is there, which may lead to the next one that is missing. A walk takes some
 * microseconds, so nothing of it is kept.
 *
 * A wait's copy (COPY_OFFCPU) goes the same way, but what comes out of it is pcs, which are kept by
 * its id until the wait is over. Should it be over first, its time waits with the copy.
 *
 * A copy waits for tables only, and tables that will not come are known not to, so that only what
 * was never seen before on the node waits, and for as long as it takes to compile.
 */
#include "cpu/latestacks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/metric.h"
#include "base/nsec.h"
#include "procmap/space.h"
#include "unwindtable/unwinder.h"

enum late_outcome {
	LATE_WALKED,
	LATE_EXPIRED,
	LATE_FULL,
	LATE_FLUSHED,
	LATE_AWAY, /* the thread had not come back */
	LATE_ODD,  /* no program of ours can have written it */
	LATE_LOST, /* no memory */
	LATE_OUTCOME_MAX,
};

static const char *const outcome_names[LATE_OUTCOME_MAX] = {
	[LATE_WALKED] = "walked",   [LATE_EXPIRED] = "expired", [LATE_FULL] = "full",
	[LATE_FLUSHED] = "flushed", [LATE_ODD] = "odd",		[LATE_LOST] = "lost",
	[LATE_AWAY] = "away",
};

struct late {
	TAILQ_ENTRY(late) in_list;
	uint64_t since_ns; /* monotonic */
	uint64_t time_ns;  /* of the sample, boot clock */
	uint16_t waits;	   /* for this executable's table; 0: not walked yet */
	uint64_t id;	   /* of a wait; 0: of no wait */
	uint64_t count;	   /* of a wait that is over; else 0 */
	uint64_t total_ns; /* the same */
	size_t size;
	uint64_t record[];
};

TAILQ_HEAD(late_list, late);

/* A wait that is not over, walked. */
struct away {
	uint64_t id;
	uint64_t time_ns;
	uint32_t end;
	uint32_t flags;
	size_t n_rows;
	size_t n;
	TAILQ_ENTRY(away) in_list;
	UT_hash_handle hh;
	uint64_t pcs[];
};

TAILQ_HEAD(away_list, away);

struct late_stacks {
	struct late_stacks_opts opts;
	struct copies *copies;
	struct late_list list; /* the oldest first */
	size_t n;
	size_t n_waits; /* of them, that are not over */
	size_t bytes;
	struct away_list aways; /* the oldest first */
	struct away *by_id;
	size_t away_bytes;
	uint64_t outcomes[LATE_OUTCOME_MAX];
};

DEFINE_CLEANUP(struct late_stacks *, late_stacks_freep, late_stacks_free);

/* ---------------------------------------------------------------- the list */

static void drop(struct late_stacks *ls, struct late *late)
{
	TAILQ_REMOVE(&ls->list, late, in_list);
	ls->n--;
	ls->n_waits -= late->id && !late->count;
	ls->bytes -= sizeof(*late) + late->size;
	free(late);
}

/* Walk it. UNWINDER_OK, UNWINDER_WAITS, -ENOMEM. */
static int walk(struct late_stacks *ls, struct late *late, struct sample *ret, struct copy *copy)
{
	struct space_who who;
	struct space *space;
	int r;

	if (copy_decode(late->record, late->size, copy))
		return -EBADMSG; /* it was looked at when it came */
	who = (struct space_who){
		.pid = copy->sample.pid,
		.start_ns = copy->sample.start_boottime_ns,
		.exec_id = copy->sample.exec_id,
	};
	space_cache_at(ls->opts.spaces, copy->time_ns);
	r = space_cache_get(ls->opts.spaces, &who, &space);
	return r ? r : unwinder_walk(ls->opts.unwinder, copy, space, ret, &late->waits);
}

static size_t away_size(const struct away *away)
{
	return sizeof(*away) + away->n * sizeof(away->pcs[0]);
}

static void forget_away(struct late_stacks *ls, struct away *away)
{
	HASH_DEL(ls->by_id, away);
	TAILQ_REMOVE(&ls->aways, away, in_list);
	ls->away_bytes -= away_size(away);
	free(away);
}

/* Keep what was found until the thread comes back. */
static enum late_outcome keep_away(struct late_stacks *ls, const struct late *late,
				   const struct sample *sample)
{
	struct away *away = malloc(sizeof(*away) + sample->n_user * sizeof(away->pcs[0]));
	bool hash_oom = false;

	if (!away)
		return LATE_LOST;
	*away = (struct away){.id = late->id,
			      .time_ns = late->time_ns,
			      .end = sample->end,
			      .flags = sample->flags,
			      .n_rows = sample->n_rows,
			      .n = sample->n_user};
	memcpy(away->pcs, sample->user, sample->n_user * sizeof(away->pcs[0]));
	HASH_ADD(hh, ls->by_id, id, sizeof(away->id), away);
	if (hash_oom) {
		free(away);
		return LATE_LOST;
	}
	TAILQ_INSERT_TAIL(&ls->aways, away, in_list);
	ls->away_bytes += away_size(away);
	while (ls->away_bytes > LATE_STACKS_AWAY_MAX) {
		ls->outcomes[LATE_AWAY]++;
		forget_away(ls, TAILQ_FIRST(&ls->aways));
	}
	return LATE_WALKED;
}

/* It was walked, and it is to be had as it is. */
static enum late_outcome deliver(struct late_stacks *ls, const struct late *late,
				 const struct copy *copy, struct sample *sample)
{
	if (late->id && !late->count)
		return keep_away(ls, late, sample);
	if (late->id) {
		sample->count = late->count;
		sample->total = late->total_ns;
	}
	ls->opts.fn(ls->opts.ctx, copy->kind, sample);
	return LATE_WALKED;
}

/* Hand it over if that is possible, or whatever there is if @force says why (LATE_WALKED: no
 * force). Whether it has left the list. */
static bool pass_on(struct late_stacks *ls, struct late *late, enum late_outcome force)
{
	struct sample sample;
	struct copy copy;
	int r = walk(ls, late, &sample, &copy);

	if (r == UNWINDER_WAITS && force == LATE_WALKED)
		return false;
	if (r < 0) {
		ls->outcomes[LATE_LOST]++;
	} else {
		enum late_outcome outcome = deliver(ls, late, &copy, &sample);

		if (outcome == LATE_WALKED && r == UNWINDER_WAITS)
			outcome = force;
		ls->outcomes[outcome]++;
	}
	drop(ls, late);
	return true;
}

static void on_record(void *ctx, const void *record, size_t size)
{
	struct late_stacks *ls = ctx;
	struct copy copy;
	struct late *late;

	if (copy_decode(record, size, &copy)) {
		ls->outcomes[LATE_ODD]++;
		return;
	}
	while (ls->n && ls->bytes + sizeof(*late) + size > LATE_STACKS_BYTES_MAX)
		(void)pass_on(ls, TAILQ_FIRST(&ls->list), LATE_FULL);
	late = malloc(sizeof(*late) + size);
	if (!late) {
		ls->outcomes[LATE_LOST]++;
		return;
	}
	*late = (struct late){.since_ns = nsec_monotonic(),
			      .time_ns = copy.time_ns,
			      .id = copy.sample.copy_id,
			      .size = size};
	memcpy(late->record, record, size);
	TAILQ_INSERT_TAIL(&ls->list, late, in_list);
	ls->n++;
	ls->n_waits += late->id != 0;
	ls->bytes += sizeof(*late) + size;
}

int late_stacks_tick(struct late_stacks *ls, uint64_t until_ns)
{
	struct late *late, *next;
	int r = copies_drain(ls->copies, on_record, ls);
	const uint64_t now_ns = nsec_monotonic();

	for (late = TAILQ_FIRST(&ls->list); late; late = next) {
		next = TAILQ_NEXT(late, in_list);
		if (late->time_ns < until_ns)
			(void)pass_on(ls, late,
				      now_ns - late->since_ns > LATE_STACKS_WAIT_NS ? LATE_EXPIRED
										    : LATE_WALKED);
	}
	unwinder_rest(ls->opts.unwinder);
	return r;
}

static bool come_back(struct late_stacks *ls, const struct sample *sample)
{
	struct sample whole = *sample;
	struct away *away;
	struct late *late;

	HASH_FIND(hh, ls->by_id, &sample->copy_id, sizeof(away->id), away);
	if (away) {
		whole.end = away->end;
		whole.flags = away->flags;
		whole.n_rows = away->n_rows;
		whole.n_user = away->n;
		whole.user = away->pcs;
		space_cache_at(ls->opts.spaces, away->time_ns);
		ls->opts.fn(ls->opts.ctx, COPY_OFFCPU, &whole);
		forget_away(ls, away);
		return true;
	}
	TAILQ_FOREACH(late, &ls->list, in_list)
	if (late->id == sample->copy_id && !late->count) {
		late->count = sample->count;
		late->total_ns = sample->total;
		ls->n_waits--;
		return true;
	}
	return false;
}

/* What began before it ended is in the ring, if it is not here. */
bool late_stacks_back(struct late_stacks *ls, const struct sample *sample)
{
	if (come_back(ls, sample))
		return true;
	return copies_drain(ls->copies, on_record, ls) >= 0 && come_back(ls, sample);
}

void late_stacks_ready(struct late_stacks *ls, uint16_t exe)
{
	struct late *late, *next;

	for (late = TAILQ_FIRST(&ls->list); late; late = next) {
		next = TAILQ_NEXT(late, in_list);
		if (late->waits && (late->waits == exe || !exe))
			(void)pass_on(ls, late, LATE_WALKED);
		else if (late->waits) /* there was no room for it before, maybe */
			unwinder_want(ls->opts.unwinder, late->waits);
	}
	unwinder_rest(ls->opts.unwinder);
}

void late_stacks_flush(struct late_stacks *ls)
{
	while (ls->n)
		(void)pass_on(ls, TAILQ_FIRST(&ls->list), LATE_FLUSHED);
	while (!TAILQ_EMPTY(&ls->aways)) {
		ls->outcomes[LATE_AWAY]++;
		forget_away(ls, TAILQ_FIRST(&ls->aways));
	}
	unwinder_rest(ls->opts.unwinder);
}

size_t late_stacks_pending(const struct late_stacks *ls)
{
	return ls->n - ls->n_waits;
}

int late_stacks_fd(const struct late_stacks *ls)
{
	return copies_fd(ls->copies);
}

/* ---------------------------------------------------------------- life */

int late_stacks_new(const struct late_stacks_opts *opts, struct late_stacks **ret)
{
	_cleanup_(late_stacks_freep) struct late_stacks *ls = calloc(1, sizeof(*ls));
	int r;

	if (!ls)
		return -ENOMEM;
	ls->opts = *opts;
	TAILQ_INIT(&ls->list);
	TAILQ_INIT(&ls->aways);
	r = copies_new(&opts->maps, &ls->copies);
	if (r)
		return r;
	*ret = take_ptr(ls);
	return 0;
}

void late_stacks_free(struct late_stacks *ls)
{
	if (!ls)
		return;
	while (ls->n)
		drop(ls, TAILQ_FIRST(&ls->list));
	while (!TAILQ_EMPTY(&ls->aways))
		forget_away(ls, TAILQ_FIRST(&ls->aways));
	copies_free(ls->copies);
	free(ls);
}

void late_stacks_collect(void *ctx, struct metric_sink *sink)
{
	static const struct metric_family_desc late = {
		"podprof_late_stacks", METRIC_COUNTER,
		"Copied stacks by how their walk came about.", NULL};
	static const struct metric_family_desc waiting = {
		"podprof_late_stacks_waiting", METRIC_GAUGE,
		"Copied stacks that wait for an unwind table.", NULL};
	struct late_stacks *ls = ctx;

	copies_collect(ls->copies, sink);
	metric_by_name(sink, &late, "outcome", ls->outcomes, outcome_names, LATE_OUTCOME_MAX);
	metric_family(sink, &waiting);
	metric_u64(sink, ls->n, NULL, 0);
}
