// SPDX-License-Identifier: Apache-2.0
#include "goprofile/oneshot.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/vec.h"
#include "goprofile/contention.h"
#include "goprofile/goroutines.h"
#include "goprofile/heap.h"
#include "goprofile/heapsnap.h"
#include "goprofile/reader.h"
#include "procmap/memory.h"

int go_profile_oneshot_init(struct go_profile_oneshot *s)
{
	const struct go_profile_reader_opts opts = {
		.proc = s->proc,
		.kinds = 1u << s->kind,
		.record_bytes = s->max_bytes,
		.symbol_bytes = s->symbol_bytes,
	};

	s->state = GORUNTIME_NO_RUNTIME;
	return go_profile_reader_new(&opts, &s->reader);
}

void go_profile_oneshot_deinit(struct go_profile_oneshot *s)
{
	for (size_t i = 0; i < s->n_targets; i++)
		go_profile_target_deinit(&s->targets[i]);
	for (size_t i = 0; i < s->n_before; i++)
		go_profile_target_deinit(&s->before[i]);
	for (size_t i = 0; i < s->n_held; i++)
		process_memory_deinit(&s->held[i]);
	free(s->targets);
	free(s->before);
	free(s->held);
	go_profile_reader_free(s->reader);
}

static void add_up(int64_t *sum, int64_t value)
{
	if (__builtin_add_overflow(*sum, value, sum))
		*sum = INT64_MAX;
}

static void add_heap(struct go_profile_oneshot *s, const struct go_profile_found *found)
{
	const struct heapsnap *snap = found->snaps[GO_PROFILE_HEAP];

	s->n_records += snap->n_records;
	add_up(&s->totals.alloc.objects, found->totals.alloc.objects);
	add_up(&s->totals.alloc.bytes, found->totals.alloc.bytes);
	add_up(&s->totals.inuse.objects, found->totals.inuse.objects);
	add_up(&s->totals.inuse.bytes, found->totals.inuse.bytes);
}

static void add_goroutines(struct go_profile_oneshot *s, const struct goroutinesnap *snap)
{
	s->n_records += snap->n_records;
	s->n_changed += snap->stats.n_changed;
	s->n_more += snap->stats.n_left_out;
}

static void add_contention(struct go_profile_oneshot *s, const struct contentionsnap *snap)
{
	s->n_records += snap->n_records;
	for (size_t i = 0; i < snap->n_records; i++) {
		add_up(&s->contentions, snap->records[i].contentions);
		add_up(&s->delay_ns, snap->records[i].delay_ns);
	}
}

/* Without any profile, the first runtime gives the reason. */
static void note(struct go_profile_oneshot *s, const char *version, enum goruntime_state state)
{
	bool first = s->n_snaps == 0 && s->state == GORUNTIME_NO_RUNTIME;

	if (first && *version)
		snprintf(s->version, sizeof(s->version), "%s", version);
	if (first && state != GORUNTIME_OK)
		s->state = state;
}

static void take_found(struct go_profile_oneshot *s, struct go_profile_found *found)
{
	const struct heapsnap *heap = found->snaps[GO_PROFILE_HEAP];

	/* sampling is on from now: there is nothing to show yet */
	if (heap && !heap->n_records && found->state == GORUNTIME_FORCED)
		go_profile_found_drop(found, GO_PROFILE_HEAP);
	note(s, found->go_version, found->snaps[s->kind] ? GORUNTIME_OK : found->state);
	if (!found->snaps[s->kind])
		return;
	s->n_snaps++;
	if (s->kind == GO_PROFILE_HEAP)
		add_heap(s, found);
	else if (s->kind == GO_PROFILE_GOROUTINE)
		add_goroutines(s, found->snaps[s->kind]);
	else
		add_contention(s, found->snaps[s->kind]);
}

/* Hold the address space of the next target, if there is a second read. 0 or -errno. */
static int hold(struct go_profile_oneshot *s, const struct pid_id *id)
{
	int r;

	if (!s->is_twice || s->before)
		return 0;
	r = vec_grow(&s->held, &s->cap_held, s->n_held + 1, sizeof(*s->held),
		     GO_PROFILE_ONESHOT_PROCESSES_MAX);
	if (r)
		return r < 0 ? r : 0;
	r = process_memory_init(&s->held[s->n_held], s->proc, id);
	if (r) /* then the process cannot be read, either */
		s->held[s->n_held] = (struct process_memory){.fd = -1};
	s->n_held++;
	return r < 0 ? r : 0;
}

/* Whether a target of the second read has run one program since the first. Another one has other
 * records at the same addresses. */
static bool is_same_program(struct go_profile_oneshot *s, size_t target)
{
	return target < s->n_held && s->held[target].fd >= 0 &&
	       memory_check(&s->held[target].memory) == 0;
}

/* @core: NULL for a process. */
static int read_target(struct go_profile_oneshot *s, const struct pid_id *id, struct gocore *core)
{
	struct go_profile_target *target;
	int r = core ? 0 : hold(s, id);

	if (r)
		return r;
	r = vec_grow(&s->targets, &s->cap_targets, s->n_targets + 1, sizeof(*s->targets),
		     GO_PROFILE_ONESHOT_PROCESSES_MAX);

	if (r)
		return r < 0 ? r : 0;
	target = &s->targets[s->n_targets++];
	*target = (struct go_profile_target){.pid = *id, .force = s->force};
	r = core ? go_profile_reader_read_core(s->reader, core, target)
		 : go_profile_reader_read(s->reader, 0, target);
	if (r)
		return r;
	if (s->before && target->n_found && !is_same_program(s, s->n_targets - 1)) {
		go_profile_target_deinit(target);
		target->state = GORUNTIME_GONE;
	}
	if (!target->n_found)
		note(s, "", target->state);
	for (size_t i = 0; i < target->n_found; i++)
		take_found(s, &target->found[i]);
	return 0;
}

int go_profile_oneshot_process(struct go_profile_oneshot *s, const struct pid_id *id)
{
	return read_target(s, id, NULL);
}

int go_profile_oneshot_core(struct go_profile_oneshot *s, struct gocore *core)
{
	const struct pid_id nobody = {0};

	return read_target(s, &nobody, core);
}

void go_profile_oneshot_again(struct go_profile_oneshot *s)
{
	s->before = s->targets;
	s->n_before = s->n_targets;
	s->targets = NULL;
	s->n_targets = s->cap_targets = 0;
	s->n_snaps = s->n_records = 0;
	s->totals = (struct goheap_totals){0};
	s->contentions = s->delay_ns = 0;
	s->n_changed = s->n_more = 0;
	s->state = GORUNTIME_NO_RUNTIME;
}

int go_profile_oneshot_encode(struct go_profile_oneshot *s,
			      const struct go_profile_report_opts *opts, struct buf *ret,
			      uint64_t *ret_n_left_out)
{
	struct go_profile_report_stats stats;
	int r;

	if (s->before && s->n_before != s->n_targets)
		return -EINVAL;
	if (s->before)
		r = go_profile_reader_encode_difference(s->reader, s->kind, s->before, s->targets,
							s->n_targets, opts, ret, &stats);
	else
		r = go_profile_reader_encode(s->reader, s->kind, s->targets, s->n_targets, opts,
					     ret, &stats);
	if (!r)
		*ret_n_left_out = stats.n_left_out;
	return r;
}
