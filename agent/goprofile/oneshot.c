// SPDX-License-Identifier: Apache-2.0
/*
 * A runtime becomes a snapshot at once, so that its reader can go before the next one is read.
 */
#include "goprofile/oneshot.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "goheap/contention.h"
#include "goheap/gocore.h"
#include "goheap/goimages.h"
#include "goheap/goruntimes.h"
#include "goheap/gostate.h"
#include "goheap/memory.h"
#include "procmap/address_space.h"
#include "goprofile/contention.h"
#include "goprofile/goroutines.h"
#include "goprofile/heap.h"
#include "goprofile/heapsnap.h"
#include "symbolize/symbolizer.h"

const char *go_profile_kind_name(enum go_profile_kind kind)
{
	static const char *const names[GO_PROFILE_KIND_MAX] = {
		[GO_PROFILE_HEAP] = "heap",
		[GO_PROFILE_MUTEX] = "mutex",
		[GO_PROFILE_BLOCK] = "block",
		[GO_PROFILE_GOROUTINE] = "goroutine",
	};

	return names[kind];
}

enum go_profile_kind go_profile_kind_parse(const char *name)
{
	for (int i = 0; i < GO_PROFILE_KIND_MAX; i++)
		if (strcmp(name, go_profile_kind_name((enum go_profile_kind)i)) == 0)
			return (enum go_profile_kind)i;
	return GO_PROFILE_KIND_MAX;
}

/* ---------------------------------------------------------------- session */

int go_profile_oneshot_init(struct go_profile_oneshot *s)
{
	const struct symbolizer_opts symbols = {
		.proc = s->proc,
		.cache_bytes = s->symbol_bytes,
	};
	int r = address_space_cache_new(s->proc, &s->space);

	s->state = GORUNTIME_NO_RUNTIME;
	if (!r)
		r = goimages_new(&s->images);
	return r ? r : symbolizer_new(&symbols, &s->symbolizer);
}

static void snap_free(enum go_profile_kind kind, void *snap)
{
	switch (kind) {
	case GO_PROFILE_HEAP:
		heapsnap_free(snap);
		break;
	case GO_PROFILE_GOROUTINE:
		goroutinesnap_free(snap);
		break;
	default:
		contentionsnap_free(snap);
	}
}

void go_profile_oneshot_deinit(struct go_profile_oneshot *s)
{
	for (size_t i = 0; i < s->n_snaps; i++)
		snap_free(s->kind, s->snaps[i]);
	symbolizer_free(s->symbolizer);
	goimages_free(s->images);
	address_space_cache_free(s->space);
}

/* ---------------------------------------------------------------- one process */

/* One runtime while it is read. */
struct reading {
	struct go_profile_oneshot *session;
	struct stacksnap_space space;
	struct goheap *heap;
};

/* What is left of the ceiling. */
static size_t room(const struct go_profile_oneshot *s)
{
	return s->max_bytes > s->bytes ? s->max_bytes - s->bytes : 1;
}

static void add_up(int64_t *sum, int64_t value)
{
	if (__builtin_add_overflow(*sum, value, sum))
		*sum = INT64_MAX;
}

static void add_unsampled(struct unsampled *sum, struct unsampled value)
{
	add_up(&sum->objects, value.objects);
	add_up(&sum->bytes, value.bytes);
}

/* A goruntime_state or -errno, and the snapshot on GORUNTIME_OK. */
static int read_heap(struct reading *reading, void **ret)
{
	struct go_profile_oneshot *s = reading->session;
	struct goheap_profile profile = {0};
	struct heapsnap_opts opts = {.space = reading->space};
	struct goheap_totals totals;
	struct heapsnap *snap = NULL;
	int r = goheap_read(reading->heap, &profile);

	if (r == GORUNTIME_FORCED && profile.n_records)
		r = GORUNTIME_OK;
	opts.forced = goheap_was_forced(reading->heap);
	if (!r)
		r = heapsnap_new(&profile, &opts, &snap);
	if (r)
		return r;
	goheap_totals(&profile, &totals);
	add_unsampled(&s->totals.alloc, totals.alloc);
	add_unsampled(&s->totals.inuse, totals.inuse);
	s->n_records += profile.n_records;
	s->bytes += heapsnap_bytes(snap);
	*ret = snap;
	return 0;
}

static int read_contention(struct reading *reading, void **ret)
{
	struct go_profile_oneshot *s = reading->session;
	enum contention_kind kind =
		s->kind == GO_PROFILE_MUTEX ? CONTENTION_MUTEX : CONTENTION_BLOCK;
	struct contention_profile profile;
	struct contentionsnap *snap = NULL;
	int r = goheap_contention(reading->heap, kind, &profile);

	if (!r)
		r = contentionsnap_new(&profile, &reading->space, true, &snap);
	if (r)
		return r;
	for (size_t i = 0; i < snap->n_records; i++) {
		add_up(&s->contentions, snap->records[i].contentions);
		add_up(&s->delay_ns, snap->records[i].delay_ns);
	}
	s->n_records += snap->n_records;
	s->bytes += contentionsnap_bytes(snap);
	*ret = snap;
	return 0;
}

static int read_goroutines(struct reading *reading, void **ret)
{
	struct go_profile_oneshot *s = reading->session;
	struct memory *memory = goheap_memory(reading->heap);
	struct goroutinesnap *snap = NULL;
	int r;

	if (!memory)
		return (int)goheap_state(reading->heap);
	r = goroutinesnap_new(goheap_runtime(reading->heap), memory, &reading->space, room(s),
			      &snap);
	if (r)
		return r;
	s->n_records += snap->n_records;
	s->n_changed += snap->stats.n_changed;
	s->n_more += snap->stats.n_left_out;
	s->bytes += goroutinesnap_bytes(snap);
	*ret = snap;
	return 0;
}

static int read_kind(struct reading *reading, void **ret)
{
	switch (reading->session->kind) {
	case GO_PROFILE_HEAP:
		return read_heap(reading, ret);
	case GO_PROFILE_GOROUTINE:
		return read_goroutines(reading, ret);
	default:
		return read_contention(reading, ret);
	}
}

/* The first runtime without a profile is the one that is spoken of if there is none at all. */
static void note(struct go_profile_oneshot *s, const char *version, int state)
{
	bool first = s->n_snaps == 0 && s->state == GORUNTIME_NO_RUNTIME;

	if (first && version)
		snprintf(s->version, sizeof(s->version), "%s", version);
	if (first && state != GORUNTIME_OK)
		s->state = (enum goruntime_state)state;
}

/* 0 or -errno. */
static int read_runtime(struct reading *reading)
{
	struct go_profile_oneshot *s = reading->session;
	const struct goruntime *rt = goheap_runtime(reading->heap);
	void *snap = NULL;
	int r;

	if (s->n_snaps == array_size(s->snaps))
		return 0;
	r = read_kind(reading, &snap);
	if (r < 0)
		return r;
	note(s, rt ? rt->file.version : NULL, r);
	if (snap)
		s->snaps[s->n_snaps++] = snap;
	return 0;
}

/* ---------------------------------------------------------------- a process */

struct process_space {
	struct go_profile_oneshot *session;
	const struct pid_id *id;
	const struct reading *reading;
};

static int resolve(void *ctx, uint64_t pc, struct frame *ret)
{
	const struct process_space *space = ctx;

	if (goheap_resolve(space->reading->heap, pc, ret))
		return 0;
	return address_space_cache_resolve(space->session->space, space->id, pc, ret);
}

/* All runtimes, each by a reader of its own. */
static int read_process(struct go_profile_oneshot *s, const struct pid_id *id,
			const struct goruntimes *found)
{
	struct reading reading = {.session = s};
	struct process_space space = {s, id, &reading};
	int r = 0;

	reading.space = (struct stacksnap_space){resolve, &space};
	for (size_t i = 0; !r && i < found->n; i++) {
		const struct goheap_opts opts = {
			.proc = s->proc,
			.id = *id,
			.runtime = &found->items[i],
			.force = s->force,
			.max_bytes = room(s),
		};

		r = goheap_new(&opts, &reading.heap);
		if (!r)
			r = read_runtime(&reading);
		goheap_free(reading.heap);
		reading.heap = NULL;
	}
	return r;
}

int go_profile_oneshot_process(struct go_profile_oneshot *s, const struct pid_id *id)
{
	_cleanup_(process_memory_deinit) struct process_memory pm = {.fd = -1};
	_cleanup_(freep) struct goruntimes *found = calloc(1, sizeof(*found));
	int denied, r;

	if (!found)
		return -ENOMEM;
	denied = gostate_of_memory(process_memory_init(&pm, s->proc, id));
	if (denied < 0)
		return denied;
	r = goruntimes_find(s->images, s->proc, id, denied ? NULL : &pm.memory, 0, found);
	if (r < 0)
		return r;
	if (r == GORUNTIME_OK && denied)
		r = denied;
	if (r == GORUNTIME_OK || r == GORUNTIME_UNKNOWN_LAYOUT)
		return read_process(s, id, found);
	note(s, NULL, r);
	return 0;
}

/* ---------------------------------------------------------------- a core */

int go_profile_oneshot_core(struct go_profile_oneshot *s, struct gocore *core)
{
	_cleanup_(freep) struct goruntimes *found = calloc(1, sizeof(*found));
	struct reading reading = {.session = s, .space = {gocore_resolve, core}};
	int r = found ? gocore_runtimes(core, found) : -ENOMEM;

	for (size_t i = 0; r >= 0 && i < found->n; i++) {
		const struct goruntime *rt = &found->items[i];

		if (rt->state != GORUNTIME_OK) {
			note(s, rt->file.version, (int)rt->state);
			continue;
		}
		r = goheap_new_of_memory(rt, gocore_memory(core), room(s), &reading.heap);
		if (!r)
			r = read_runtime(&reading);
		goheap_free(reading.heap);
		reading.heap = NULL;
	}
	return r < 0 ? r : 0;
}

/* ---------------------------------------------------------------- all of them */

int go_profile_oneshot_encode(struct go_profile_oneshot *s,
			      const struct go_profile_report_opts *opts, struct buf *ret,
			      uint64_t *ret_n_left_out)
{
	struct go_profile_report_stats stats = {0};
	int r;

	if (s->kind == GO_PROFILE_HEAP)
		r = heap_report((struct heapsnap *const *)s->snaps, s->n_snaps, s->symbolizer, opts,
				ret, &stats);
	else if (s->kind == GO_PROFILE_GOROUTINE)
		r = goroutine_report((struct goroutinesnap *const *)s->snaps, s->n_snaps,
				     s->symbolizer, opts, ret, &stats);
	else
		r = contention_report((struct contentionsnap *const *)s->snaps, s->n_snaps,
				      s->symbolizer, opts, ret, &stats);
	if (!r)
		*ret_n_left_out = stats.n_left_out;
	return r;
}
