// SPDX-License-Identifier: Apache-2.0
/*
 * A stack dump goes from the ring into a list. After the sideband records of all earlier events,
 * the agent finds the address space (for an ended process: the last) and walks the dump. At an
 * image with an unfinished table, the dump stays in the list. The walk repeats when the table is
 * ready, or once with early rules, and may reach the next missing table. A walk takes some
 * microseconds, so no state of it is kept.
 *
 * The dump of an off-CPU wait (STACK_DUMP_OFFCPU) takes the same path. The result is words of
 * frames, kept by the dump's id until the end of the wait. If the wait ends first, the time waits
 * with the dump.
 *
 * A dump of names alone (STACK_DUMP_NAMES) waits for files: the names belong to the runtime of a
 * mapped file. A dump of which the names are taken has no outcome.
 *
 * A dump of several parts (stack_dump_join()) waits for the next part, which the same run of the
 * program sends. A part is lost if the ring is full: the dump is walked without it.
 *
 * A dump waits for files and tables only, and the agent knows those that will never be there. So a
 * process waits some milliseconds for its files (procmap/opener.h). Only images new to the node
 * cause another wait, for the time of the table's compilation.
 * If the dumps take too much memory, the process with the most bytes loses the oldest dump: many
 * dumps of one process do not push out the few of others.
 */
#include "cpu/deferred_unwind.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/metric.h"
#include "base/nsec.h"
#include "base/share.h"
#include "discovery/discovery.h"
#include "procmap/address_space.h"
#include "unwindtable/unwind_publisher.h"

enum deferred_outcome {
	DEFERRED_WALKED,
	DEFERRED_EXPIRED,
	DEFERRED_FULL,
	DEFERRED_FLUSHED,
	DEFERRED_OFF_CPU, /* the thread has not come back yet */
	DEFERRED_ODD,	  /* malformed: not written by our programs */
	DEFERRED_LOST,	  /* no memory */
	DEFERRED_OUTCOME_MAX,
};

static const char *const outcome_names[DEFERRED_OUTCOME_MAX] = {
	[DEFERRED_WALKED] = "unwound",	[DEFERRED_EXPIRED] = "expired", [DEFERRED_FULL] = "full",
	[DEFERRED_FLUSHED] = "flushed", [DEFERRED_ODD] = "invalid",	[DEFERRED_LOST] = "lost",
	[DEFERRED_OFF_CPU] = "off_cpu",
};

/* Bytes of dumps that leave together when there is no room. Reached: -. */
#define DEFERRED_UNWIND_SPARE (DEFERRED_UNWIND_BYTES_MAX / 16)

/* The longest time between two walks of a stack that waits for files: the announcement of their
 * opening is for a process, and another process's may be the reason. */
#define DEFERRED_UNWIND_FILES_NS (5 * NSEC_PER_SEC)

/* The longest time between two parts of a dump. The program sends them within 100 us, and the
 * hypervisor may stop the CPU in between. Reached: the dump is walked without the rest. */
#define DEFERRED_UNWIND_PARTS_NS NSEC_PER_SEC

struct deferred_stack {
	TAILQ_ENTRY(deferred_stack) in_list;
	struct share_holder *holder; /* of bytes, by process */
	uint64_t since_ns;	     /* monotonic */
	uint64_t walked_ns;	     /* monotonic; 0: not yet */
	uint64_t time_ns;	     /* of the sample, boot clock */
	uint64_t pid;
	struct unwind_publisher_wait wait; /* of no executable: not walked yet, or waits for files
					    */
	bool opens;			   /* waits for files of the process */
	bool opened;			   /* some files are open */
	bool ready;			   /* the table or the rules are there */
	bool more;			   /* waits for its next part */
	uint64_t id;			   /* of a wait; 0: of no wait */
	uint64_t count;			   /* of an ended wait; else 0 */
	uint64_t total_ns;		   /* the same */
	struct stack_dump_copy *copy;
};

TAILQ_HEAD(deferred_list, deferred_stack);

/* A walked stack whose wait has not ended. */
struct off_cpu {
	uint64_t id;
	uint64_t time_ns;
	uint32_t end;
	uint32_t flags;
	size_t n_rows;
	size_t n;
	TAILQ_ENTRY(off_cpu) in_list;
	UT_hash_handle hh;
	uint64_t words[]; /* in the form of struct sample */
};

TAILQ_HEAD(off_cpu_list, off_cpu);

struct deferred_unwind {
	struct deferred_unwind_opts opts;
	struct stack_dumps *dumps;
	struct deferred_list list; /* the oldest first */
	size_t n;
	size_t n_waits; /* of unended waits */
	size_t n_more;	/* that wait for a part */
	size_t bytes;
	struct share_holder *holders;
	struct off_cpu_list off_cpus; /* the oldest first */
	struct off_cpu *by_id;
	size_t off_cpu_bytes;
	uint64_t outcomes[DEFERRED_OUTCOME_MAX];
};

DEFINE_CLEANUP(struct deferred_unwind *, deferred_unwind_freep, deferred_unwind_free);

/* ---------------------------------------------------------------- the list */

static size_t bytes_of(const struct stack_dump_copy *copy)
{
	return sizeof(struct deferred_stack) + sizeof(*copy) + copy->size;
}

static void drop(struct deferred_unwind *du, struct deferred_stack *stack)
{
	const size_t bytes = bytes_of(stack->copy);
	struct share_holder *h = stack->holder;

	TAILQ_REMOVE(&du->list, stack, in_list);
	du->n--;
	du->n_waits -= stack->id && !stack->count;
	du->n_more -= stack->more;
	du->bytes -= bytes;
	h->held -= bytes;
	share_holder_put(&du->holders, h);
	free(stack->copy);
	free(stack);
}

/* Whether the walk needs files that the opener has not opened yet. */
static bool want_files(struct deferred_unwind *du, struct address_space *space,
		       const struct sample *sample)
{
	bool opening = address_space_opening(space);
	struct frame_record frame;
	size_t at = 0;

	if (sample_lost_caller(sample))
		opening |= address_space_seek_memory(du->opts.spaces, space);
	while (sample_user_next(sample, &at, &frame))
		if (frame.kind == FRAME_NATIVE)
			opening |= address_space_want(du->opts.spaces, space,
						      frame.words[0] - (at > 1));
	return opening;
}

/* After a stack that is larger than its dump: opens the process's large files, whose tables come
 * before a sample is in them (unwind_publisher_walk()). */
static void want_ahead(struct deferred_unwind *du, struct address_space *space)
{
	const struct address_space_mapping *items;
	size_t n_items, n = 0;

	items = address_space_mappings(space, &n_items);
	for (size_t i = 0; i < n_items && n < UNWIND_PUBLISHER_AHEAD; i++) {
		if (items[i].limit - items[i].start < UNWIND_PUBLISHER_AHEAD_BYTES)
			continue;
		n++;
		(void)address_space_want(du->opts.spaces, space, items[i].start);
		items = address_space_mappings(space, &n_items);
	}
}

static int walk_in(struct deferred_unwind *du, struct deferred_stack *stack, struct sample *ret,
		   const struct stack_dump *dump, struct address_space *space)
{
	int r;

	stack->opens = stack->opened = false;
	if (dump->kind == STACK_DUMP_NAMES) {
		stack->opens = !unwind_publisher_names(du->opts.publisher, dump, space) &&
			       address_space_opening(space);
		return UNWIND_PUBLISHER_OK;
	}
	r = unwind_publisher_walk(du->opts.publisher, dump, space, ret, &stack->wait);
	stack->opens = r >= 0 && want_files(du, space, ret);
	if (r >= 0 && ret->end == SAMPLE_END_DUMP)
		want_ahead(du, space);
	return r;
}

/* Walk the dump, or take its names. UNWIND_PUBLISHER_OK, UNWIND_PUBLISHER_WAITS, -ENOMEM. */
static int walk(struct deferred_unwind *du, struct deferred_stack *stack, struct sample *ret,
		struct stack_dump *dump)
{
	struct address_space_who who;
	struct address_space *space;
	uint64_t version;
	int r;

	if (stack_dump_decode(stack->copy->record, stack->copy->size, dump))
		return -EBADMSG; /* looked up on arrival */
	who = (struct address_space_who){
		.pid = dump->sample.pid,
		.start_ns = dump->sample.start_boottime_ns,
		.exec_id = dump->sample.exec_id,
		.owner = discovery_owner(du->opts.discovery, dump->sample.cgroup_id,
					 dump->sample.cgroup_v1_id),
	};
	address_space_cache_between(du->opts.spaces, dump->time_ns, dump->time_ns);
	stack->opens = stack->opened = stack->ready = false;
	stack->walked_ns = nsec_monotonic();
	r = address_space_cache_get(du->opts.spaces, &who, &space);
	if (r)
		return r;
	version = address_space_version(space);
	r = walk_in(du, stack, ret, dump, space);
	/* the search for a pc can find mappings and files at once: without these, the walk had
	 * neither the rows nor the runtime, and an excerpt with names comes once */
	if (r >= 0 && !stack->opens &&
	    (address_space_version(space) != version ||
	     (dump->kind != STACK_DUMP_NAMES && dump->runtime && !ret->n_runtime)))
		r = walk_in(du, stack, ret, dump, space);
	return r >= 0 && stack->opens ? UNWIND_PUBLISHER_WAITS : r;
}

static size_t off_cpu_size(const struct off_cpu *off_cpu)
{
	return sizeof(*off_cpu) + off_cpu->n * sizeof(off_cpu->words[0]);
}

static void forget_off_cpu(struct deferred_unwind *du, struct off_cpu *off_cpu)
{
	HASH_DEL(du->by_id, off_cpu);
	TAILQ_REMOVE(&du->off_cpus, off_cpu, in_list);
	du->off_cpu_bytes -= off_cpu_size(off_cpu);
	free(off_cpu);
}

/* Keep the result until the thread comes back. */
static enum deferred_outcome keep_off_cpu(struct deferred_unwind *du,
					  const struct deferred_stack *stack,
					  const struct sample *sample)
{
	struct off_cpu *off_cpu =
		malloc(sizeof(*off_cpu) + sample->n_user * sizeof(off_cpu->words[0]));
	bool hash_oom = false;

	if (!off_cpu)
		return DEFERRED_LOST;
	*off_cpu = (struct off_cpu){.id = stack->id,
				    .time_ns = stack->time_ns,
				    .end = sample->end,
				    .flags = sample->flags,
				    .n_rows = sample->n_rows,
				    .n = sample->n_user};
	memcpy(off_cpu->words, sample->user, sample->n_user * sizeof(off_cpu->words[0]));
	HASH_ADD(hh, du->by_id, id, sizeof(off_cpu->id), off_cpu);
	if (hash_oom) {
		free(off_cpu);
		return DEFERRED_LOST;
	}
	TAILQ_INSERT_TAIL(&du->off_cpus, off_cpu, in_list);
	du->off_cpu_bytes += off_cpu_size(off_cpu);
	while (du->off_cpu_bytes > DEFERRED_UNWIND_OFF_CPU_MAX) {
		du->outcomes[DEFERRED_OFF_CPU]++;
		forget_off_cpu(du, TAILQ_FIRST(&du->off_cpus));
	}
	return DEFERRED_WALKED;
}

/* The dump has been walked: deliver the result. */
static enum deferred_outcome deliver(struct deferred_unwind *du, const struct deferred_stack *stack,
				     const struct stack_dump *dump, struct sample *sample)
{
	if (stack->id && !stack->count)
		return keep_off_cpu(du, stack, sample);
	if (stack->id) {
		sample->count = stack->count;
		sample->total = stack->total_ns;
	}
	du->opts.fn(du->opts.ctx, dump->kind, sample, dump->time_ns);
	return DEFERRED_WALKED;
}

/* Deliver the stack if complete. With a reason in @force (DEFERRED_WALKED: none), deliver
 * whatever was found. Returns whether the stack has left the list. */
static bool pass_on(struct deferred_unwind *du, struct deferred_stack *stack,
		    enum deferred_outcome force)
{
	struct sample sample;
	struct stack_dump dump;
	int r = walk(du, stack, &sample, &dump);

	if (r == UNWIND_PUBLISHER_WAITS && force == DEFERRED_WALKED)
		return false;
	if (r < 0) {
		du->outcomes[DEFERRED_LOST]++;
	} else if (dump.kind == STACK_DUMP_NAMES) {
		du->outcomes[force] += r == UNWIND_PUBLISHER_WAITS;
	} else {
		enum deferred_outcome outcome = deliver(du, stack, &dump, &sample);

		if (outcome == DEFERRED_WALKED && r == UNWIND_PUBLISHER_WAITS)
			outcome = force;
		du->outcomes[outcome]++;
	}
	drop(du, stack);
	return true;
}

/* Makes room for @size bytes. The process with the most bytes loses its oldest dumps: at least one,
 * and up to half of them, because each search takes as long as there are dumps. */
static void make_room(struct deferred_unwind *du, size_t size)
{
	const struct share_holder *h, *most = NULL;
	struct deferred_stack *stack, *next;
	size_t spare, n = 0;
	uint64_t pid = 0;

	for (h = du->holders; h; h = h->hh.next)
		if (!most || h->held > most->held)
			most = h;
	if (!most) /* each dump has one */
		return;
	spare = most->held / 2 < DEFERRED_UNWIND_SPARE ? most->held / 2 : DEFERRED_UNWIND_SPARE;
	for (stack = TAILQ_FIRST(&du->list); stack; stack = next) {
		next = TAILQ_NEXT(stack, in_list);
		if (!n && stack->holder == most)
			pid = stack->pid; /* the holder goes with its last dump */
		if (!pid || stack->pid != pid)
			continue;
		if (n++ && du->bytes + size + spare <= DEFERRED_UNWIND_BYTES_MAX)
			return;
		(void)pass_on(du, stack, DEFERRED_FULL);
	}
}

/* Takes @copy on success. */
static int keep(struct deferred_unwind *du, struct stack_dump_copy *copy,
		const struct stack_dump *dump)
{
	struct deferred_stack *stack = malloc(sizeof(*stack));
	struct share_holder *h =
		stack ? share_holder_get(&du->holders, dump->sample.pid.pid) : NULL;

	if (!h) {
		free(stack);
		return -ENOMEM;
	}
	*stack = (struct deferred_stack){.holder = h,
					 .since_ns = nsec_monotonic(),
					 .time_ns = dump->time_ns,
					 .pid = dump->sample.pid.pid,
					 .id = dump->sample.dump_id,
					 .more = dump->more,
					 .copy = copy};
	TAILQ_INSERT_TAIL(&du->list, stack, in_list);
	h->held += bytes_of(copy);
	du->n++;
	du->n_waits += stack->id != 0;
	du->n_more += stack->more;
	du->bytes += bytes_of(copy);
	return 0;
}

static void set_copy(struct deferred_unwind *du, struct deferred_stack *stack,
		     struct stack_dump_copy *copy)
{
	const size_t before = bytes_of(stack->copy), now = bytes_of(copy);

	stack->holder->held += now - before;
	du->bytes += now - before;
	free(stack->copy);
	stack->copy = copy;
}

/* Add the part to its dump, the youngest that waits for one. Without room the dump stays as it is.
 */
static void take_part(struct deferred_unwind *du, const struct stack_dump_copy *part, bool more)
{
	struct stack_dump_copy *joined = NULL;
	struct deferred_stack *stack;
	int r = STACK_DUMP_ODD;

	if (!du->n_more)
		return;
	TAILQ_FOREACH_REVERSE(stack, &du->list, deferred_list, in_list)
	{
		if (stack->more)
			r = stack_dump_join(stack->copy, part, &joined);
		if (r != STACK_DUMP_ODD)
			break;
	}
	if (r == STACK_DUMP_ODD)
		return;
	if (r == STACK_DUMP_OK)
		set_copy(du, stack, joined);
	stack->more = more && r == STACK_DUMP_OK;
	du->n_more -= !stack->more;
}

static void on_record(void *ctx, struct stack_dump_copy *taken)
{
	_cleanup_(freep) struct stack_dump_copy *copy = taken;
	struct deferred_unwind *du = ctx;
	struct stack_dump dump;

	if (stack_dump_decode(copy->record, copy->size, &dump)) {
		du->outcomes[DEFERRED_ODD]++;
		return;
	}
	while (du->n && du->bytes + bytes_of(copy) > DEFERRED_UNWIND_BYTES_MAX)
		make_room(du, bytes_of(copy));
	if (dump.n_before) {
		take_part(du, copy, dump.more);
		return;
	}
	if (keep(du, copy, &dump))
		du->outcomes[DEFERRED_LOST]++;
	else
		(void)take_ptr(copy);
}

/* Whether a walk can find more than the last one. Files announce themselves: on a starved node the
 * walks of each tick would take the time in which these are opened. */
static bool is_due(struct deferred_unwind *du, const struct deferred_stack *stack, uint64_t now_ns)
{
	if (stack->more && now_ns - stack->since_ns < DEFERRED_UNWIND_PARTS_NS)
		return false;
	if (stack->ready)
		return true;
	if (stack->opens && !stack->opened && now_ns - stack->walked_ns < DEFERRED_UNWIND_FILES_NS)
		return false;
	return !stack->wait.exe || !unwind_publisher_want(du->opts.publisher, stack->wait.exe);
}

int deferred_unwind_tick(struct deferred_unwind *du, uint64_t until_ns, uint64_t end_ns)
{
	struct deferred_stack *stack, *next;
	int r = stack_dumps_drain(du->dumps, on_record, du);
	const uint64_t now_ns = nsec_monotonic();
	bool more = false;
	size_t n = 0;

	for (stack = TAILQ_FIRST(&du->list); stack && !more; stack = next) {
		const bool expired = now_ns - stack->since_ns > DEFERRED_UNWIND_WAIT_NS;

		next = TAILQ_NEXT(stack, in_list);
		if (stack->time_ns >= until_ns || (!expired && !is_due(du, stack, now_ns)))
			continue;
		more = n++ && nsec_monotonic() >= end_ns;
		if (!more)
			(void)pass_on(du, stack, expired ? DEFERRED_EXPIRED : DEFERRED_WALKED);
	}
	unwind_publisher_rest(du->opts.publisher);
	return r < 0 ? r : more ? DEFERRED_UNWIND_MORE : DEFERRED_UNWIND_OK;
}

static bool come_back(struct deferred_unwind *du, const struct sample *sample)
{
	struct sample whole = *sample;
	struct off_cpu *off_cpu;
	struct deferred_stack *stack;

	HASH_FIND(hh, du->by_id, &sample->dump_id, sizeof(off_cpu->id), off_cpu);
	if (off_cpu) {
		whole.end = off_cpu->end;
		whole.flags = off_cpu->flags;
		(void)sample_set_user(&whole, off_cpu->words, off_cpu->n,
				      off_cpu->n_rows); /* it was one */
		address_space_cache_between(du->opts.spaces, off_cpu->time_ns, off_cpu->time_ns);
		du->opts.fn(du->opts.ctx, STACK_DUMP_OFFCPU, &whole, off_cpu->time_ns);
		forget_off_cpu(du, off_cpu);
		return true;
	}
	TAILQ_FOREACH(stack, &du->list, in_list)
	if (stack->id == sample->dump_id && !stack->count) {
		stack->count = sample->count;
		stack->total_ns = sample->total;
		du->n_waits--;
		return true;
	}
	return false;
}

/* The dump was written before the wait ended, so it is in the list or still in the ring. */
bool deferred_unwind_back(struct deferred_unwind *du, const struct sample *sample)
{
	if (come_back(du, sample))
		return true;
	return stack_dumps_drain(du->dumps, on_record, du) >= 0 && come_back(du, sample);
}

void deferred_unwind_ready(struct deferred_unwind *du, uint16_t exe, uint32_t round)
{
	struct deferred_stack *stack;

	TAILQ_FOREACH(stack, &du->list, in_list)
	{
		if (!stack->wait.exe || (exe && stack->wait.exe != exe) ||
		    (!exe && unwind_publisher_want(du->opts.publisher, stack->wait.exe)) ||
		    (round && (!stack->wait.round || stack->wait.round > round)))
			continue;
		if (round)
			stack->wait.round = 0;
		stack->ready = true;
	}
}

void deferred_unwind_opened(struct deferred_unwind *du, uint64_t pid)
{
	struct deferred_stack *stack;

	TAILQ_FOREACH(stack, &du->list, in_list)
	stack->opened |= stack->opens && stack->pid == pid;
}

bool deferred_unwind_retry(struct deferred_unwind *du, uint64_t end_ns)
{
	struct deferred_stack *stack, *next;
	bool more = false;
	size_t n = 0;

	for (stack = TAILQ_FIRST(&du->list); stack && !more; stack = next) {
		next = TAILQ_NEXT(stack, in_list);
		if (!stack->opened && !stack->ready)
			continue;
		more = n++ && nsec_monotonic() >= end_ns;
		if (!more)
			(void)pass_on(du, stack, DEFERRED_WALKED);
	}
	unwind_publisher_rest(du->opts.publisher);
	return more;
}

void deferred_unwind_flush(struct deferred_unwind *du)
{
	while (du->n)
		(void)pass_on(du, TAILQ_FIRST(&du->list), DEFERRED_FLUSHED);
	while (!TAILQ_EMPTY(&du->off_cpus)) {
		du->outcomes[DEFERRED_OFF_CPU]++;
		forget_off_cpu(du, TAILQ_FIRST(&du->off_cpus));
	}
	unwind_publisher_rest(du->opts.publisher);
}

size_t deferred_unwind_pending(const struct deferred_unwind *du)
{
	return du->n - du->n_waits;
}

struct stack_dumps *deferred_unwind_dumps(const struct deferred_unwind *du)
{
	return du->dumps;
}

/* ---------------------------------------------------------------- life */

int deferred_unwind_new(const struct deferred_unwind_opts *opts, struct deferred_unwind **ret)
{
	_cleanup_(deferred_unwind_freep) struct deferred_unwind *du = calloc(1, sizeof(*du));
	int r;

	if (!du)
		return -ENOMEM;
	du->opts = *opts;
	TAILQ_INIT(&du->list);
	TAILQ_INIT(&du->off_cpus);
	r = stack_dumps_new(&opts->maps, &du->dumps);
	if (r)
		return r;
	*ret = take_ptr(du);
	return 0;
}

void deferred_unwind_free(struct deferred_unwind *du)
{
	if (!du)
		return;
	while (du->n)
		drop(du, TAILQ_FIRST(&du->list));
	while (!TAILQ_EMPTY(&du->off_cpus))
		forget_off_cpu(du, TAILQ_FIRST(&du->off_cpus));
	stack_dumps_free(du->dumps);
	free(du);
}

void deferred_unwind_collect(void *ctx, struct metric_sink *sink)
{
	static const struct metric_family_desc stacks = {
		"podprof_deferred_stacks", METRIC_COUNTER,
		"Deferred unwinds of stack dumps, by outcome.", NULL};
	static const struct metric_family_desc waiting = {
		"podprof_deferred_stacks_pending", METRIC_GAUGE,
		"Stack dumps waiting for an unwind table.", NULL};
	struct deferred_unwind *du = ctx;
	uint64_t outcomes[DEFERRED_OUTCOME_MAX];

	memcpy(outcomes, du->outcomes, sizeof(outcomes));
	outcomes[DEFERRED_LOST] += stack_dumps_n_lost(du->dumps);
	stack_dumps_collect(du->dumps, sink);
	metric_by_name(sink, &stacks, "outcome", outcomes, outcome_names, DEFERRED_OUTCOME_MAX);
	metric_family(sink, &waiting);
	metric_u64(sink, deferred_unwind_pending(du), NULL, 0);
}
