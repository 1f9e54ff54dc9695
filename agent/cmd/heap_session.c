// SPDX-License-Identifier: Apache-2.0
/*
 * A runtime becomes a snapshot at once, so that its reader can go before the next one is read.
 */
#include "cmd/heap_session.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/nsec.h"
#include "cmd/cmd.h"
#include "base/cleanup.h"
#include "goheap/contention.h"
#include "goheap/gocore.h"
#include "goheap/goimages.h"
#include "goheap/goruntimes.h"
#include "goheap/gostate.h"
#include "goheap/memory.h"
#include "pprof/pprof.h"
#include "procmap/space.h"
#include "report/contention.h"
#include "report/goroutines.h"
#include "report/heap.h"
#include "report/heapsnap.h"
#include "symbolize/symbolizer.h"

/* Memory that one reading may take. It is read on somebody's demand. */
#define HEAP_RECORDS_BYTES (512u << 20)
#define HEAP_SYMBOLS_BYTES (64u << 20)

const char *heap_kind_name(enum heap_kind kind)
{
	static const char *const names[HEAP_KIND_MAX] = {
		[HEAP_KIND_HEAP] = "heap",
		[HEAP_KIND_MUTEX] = "mutex",
		[HEAP_KIND_BLOCK] = "block",
		[HEAP_KIND_GOROUTINE] = "goroutine",
	};

	return names[kind];
}

/* ---------------------------------------------------------------- session */

int heap_session_init(struct heap_session *s)
{
	const struct symbolizer_opts symbols = {
		.proc = &s->proc,
		.cache_bytes = HEAP_SYMBOLS_BYTES,
	};
	int r = space_cache_new(&s->proc, &s->space);

	s->state = GORUNTIME_NO_RUNTIME;
	if (!r)
		r = goimages_new(&s->images);
	return r ? r : symbolizer_new(&symbols, &s->symbolizer);
}

static void snap_free(enum heap_kind kind, void *snap)
{
	switch (kind) {
	case HEAP_KIND_HEAP:
		heapsnap_free(snap);
		break;
	case HEAP_KIND_GOROUTINE:
		goroutinesnap_free(snap);
		break;
	default:
		contentionsnap_free(snap);
	}
}

void heap_session_deinit(struct heap_session *s)
{
	for (size_t i = 0; i < s->n_snaps; i++)
		snap_free(s->kind, s->snaps[i]);
	symbolizer_free(s->symbolizer);
	goimages_free(s->images);
	space_cache_free(s->space);
	root_deinit(&s->proc);
}

/* ---------------------------------------------------------------- one process */

/* One runtime while it is read. */
struct reading {
	struct heap_session *session;
	struct stacksnap_space space;
	struct goheap *heap;
};

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
	struct heap_session *s = reading->session;
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
	*ret = snap;
	return 0;
}

static int read_contention(struct reading *reading, void **ret)
{
	struct heap_session *s = reading->session;
	enum contention_kind kind =
		s->kind == HEAP_KIND_MUTEX ? CONTENTION_MUTEX : CONTENTION_BLOCK;
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
	*ret = snap;
	return 0;
}

static int read_goroutines(struct reading *reading, void **ret)
{
	struct heap_session *s = reading->session;
	struct memory *memory = goheap_memory(reading->heap);
	struct goroutinesnap *snap = NULL;
	int r;

	if (!memory)
		return (int)goheap_state(reading->heap);
	r = goroutinesnap_new(goheap_runtime(reading->heap), memory, &reading->space, &snap);
	if (r)
		return r;
	s->n_records += snap->n_records;
	s->n_changed += snap->stats.n_changed;
	s->n_more += snap->stats.n_left_out;
	*ret = snap;
	return 0;
}

static int read_kind(struct reading *reading, void **ret)
{
	switch (reading->session->kind) {
	case HEAP_KIND_HEAP:
		return read_heap(reading, ret);
	case HEAP_KIND_GOROUTINE:
		return read_goroutines(reading, ret);
	default:
		return read_contention(reading, ret);
	}
}

/* The first runtime without a profile is the one that is spoken of if there is none at all. */
static void note(struct heap_session *s, const char *version, int state)
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
	struct heap_session *s = reading->session;
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
	struct heap_session *session;
	const struct pid_id *id;
	const struct reading *reading;
};

static int resolve(void *ctx, uint64_t pc, struct frame *ret)
{
	const struct process_space *space = ctx;

	if (goheap_resolve(space->reading->heap, pc, ret))
		return 0;
	return space_cache_resolve(space->session->space, space->id, pc, ret);
}

/* All runtimes, each by a reader of its own. */
static int read_process(struct heap_session *s, const struct pid_id *id,
			const struct goruntimes *found)
{
	struct reading reading = {.session = s};
	struct process_space space = {s, id, &reading};
	int r = 0;

	reading.space = (struct stacksnap_space){resolve, &space};
	for (size_t i = 0; !r && i < found->n; i++) {
		const struct goheap_opts opts = {
			.proc = &s->proc,
			.id = *id,
			.runtime = &found->items[i],
			.force = s->force,
			.max_bytes = HEAP_RECORDS_BYTES,
		};

		r = goheap_new(&opts, &reading.heap);
		if (!r)
			r = read_runtime(&reading);
		goheap_free(reading.heap);
		reading.heap = NULL;
	}
	return r;
}

int heap_session_process(struct heap_session *s, const struct pid_id *id)
{
	_cleanup_(process_memory_deinit) struct process_memory pm = {.fd = -1};
	_cleanup_(freep) struct goruntimes *found = calloc(1, sizeof(*found));
	int denied, r;

	if (!found)
		return -ENOMEM;
	denied = gostate_of_memory(process_memory_init(&pm, &s->proc, id));
	if (denied < 0)
		return denied;
	r = goruntimes_find(s->images, &s->proc, id, denied ? NULL : &pm.memory, 0, found);
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

int heap_session_core(struct heap_session *s, struct gocore *core)
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
		r = goheap_new_of_memory(rt, gocore_memory(core), HEAP_RECORDS_BYTES,
					 &reading.heap);
		if (!r)
			r = read_runtime(&reading);
		goheap_free(reading.heap);
		reading.heap = NULL;
	}
	return r < 0 ? r : 0;
}

/* ---------------------------------------------------------------- all of them */

int heap_session_encode(struct heap_session *s, struct buf *ret, uint64_t *ret_n_left_out)
{
	const struct heap_report_opts opts = {
		.time_ns = nsec_wall(),
		.max_samples = PPROF_SAMPLES_MAX,
		.max_bytes = PPROF_BYTES_MAX,
	};
	struct heap_report_stats stats = {0};
	int r;

	if (s->kind == HEAP_KIND_HEAP)
		r = heap_report((struct heapsnap *const *)s->snaps, s->n_snaps, s->symbolizer,
				&opts, ret, &stats);
	else if (s->kind == HEAP_KIND_GOROUTINE)
		r = goroutine_report((struct goroutinesnap *const *)s->snaps, s->n_snaps,
				     s->symbolizer, &opts, ret, &stats);
	else
		r = contention_report((struct contentionsnap *const *)s->snaps, s->n_snaps,
				      s->symbolizer, &opts, ret, &stats);
	if (!r)
		*ret_n_left_out = stats.n_left_out;
	return r;
}

/* What is off, and how to turn it on. Exit status. */
static int explain_off(const struct heap_session *s, const char *who, const char *version)
{
	switch (s->kind) {
	case HEAP_KIND_MUTEX:
		cmd_error("heap: %s (Go %s) records no mutex contention; it would have to call "
			  "runtime.SetMutexProfileFraction()",
			  who, version);
		break;
	case HEAP_KIND_BLOCK:
		cmd_error("heap: %s (Go %s) records no blocking; it would have to call "
			  "runtime.SetBlockProfileRate()",
			  who, version);
		break;
	default:
		cmd_error("heap: %s (Go %s) has set runtime.MemProfileRate to 0; turn sampling on "
			  "there, or with --force",
			  who, version);
	}
	return CMD_NOTHING;
}

int heap_session_explain(const struct heap_session *s, const char *who)
{
	const char *version = s->version[0] ? s->version : "of an unknown version";

	switch (s->state) {
	case GORUNTIME_NO_RUNTIME:
		cmd_error("heap: %s is not a Go program; only Go keeps a profile of itself that "
			  "can be read",
			  who);
		return CMD_NOTHING;
	case GORUNTIME_DISABLED_BY_LINKER:
		cmd_error("heap: %s (Go %s) has its memory profiler off, since nothing in it asks "
			  "for heap profiles; import net/http/pprof, or turn it on with --force",
			  who, version);
		return CMD_NOTHING;
	case GORUNTIME_DISABLED_BY_PROGRAM:
		return explain_off(s, who, version);
	case GORUNTIME_NO_SAMPLES_YET:
		cmd_error("heap: %s (Go %s) has recorded nothing yet; try again when it has worked "
			  "for a while",
			  who, version);
		return CMD_NOTHING;
	case GORUNTIME_FORCED:
		cmd_error("heap: sampling in %s (Go %s) is on from now; run the command again when "
			  "it has worked for a while",
			  who, version);
		return CMD_NOTHING;
	case GORUNTIME_DENIED:
		cmd_error("heap: reading %s is not permitted; run as root, or with CAP_SYS_PTRACE",
			  who);
		return CMD_FAILED;
	case GORUNTIME_GONE:
		cmd_error("heap: %s has ended or started another program", who);
		return CMD_FAILED;
	case GORUNTIME_TOO_LARGE:
		cmd_error("heap: %s has more than %u MiB of records", who,
			  HEAP_RECORDS_BYTES >> 20);
		return CMD_FAILED;
	default:
		cmd_error("heap: %s (Go %s) keeps its profile in a form that is not known here; "
			  "see 'podprof inspect goruntime'",
			  who, version);
		return CMD_FAILED;
	}
}
