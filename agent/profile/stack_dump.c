// SPDX-License-Identifier: Apache-2.0
/*
 * The ring is small, and each sample of a process unknown to the agent needs 16 KiB of it. So two
 * threads empty the ring into one list: the thread that takes the dumps and, between its turns, the
 * drain thread.
 */
#include "profile/stack_dump.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/metric.h"

STAILQ_HEAD(copy_list, stack_dump_copy);

struct stack_dumps {
	struct bpfobj_stack_dumps maps;
	pthread_mutex_t ring_lock; /* guards the ring's reading end */
	struct ring_buffer *ring;
	pthread_mutex_t lock; /* guards the next three */
	struct copy_list list;
	size_t n;
	size_t bytes;
	_Atomic uint64_t n_lost;
	int n_possible;
	uint64_t *cpu_values; /* one per possible CPU */
};

DEFINE_CLEANUP(struct stack_dumps *, stack_dumps_freep, stack_dumps_free);

uint32_t stack_dumps_per_cpu(size_t n_cpus)
{
	size_t n = n_cpus ? STACK_DUMPS_PER_SECOND / n_cpus : 0;

	return n < STACK_DUMPS_PER_CPU ? STACK_DUMPS_PER_CPU : (uint32_t)n;
}

static bool are_pieces(const struct stack_dump_head *h)
{
	const size_t n =
		(h->n_before + h->n_bytes + STACK_DUMP_READ_BYTES - 1) / STACK_DUMP_READ_BYTES;

	for (size_t i = 0; i < n; i++)
		if (i ? h->pieces[i] <= h->pieces[i - 1] : h->pieces[0] != 0)
			return false;
	return true;
}

/* Of a record of the ring, or of joined ones. */
static bool are_bytes(const struct stack_dump_head *h)
{
	return h->n_bytes % 8 == 0 && h->n_bytes <= STACK_DUMP_DEEP_BYTES &&
	       h->n_before % STACK_DUMP_BYTES == 0 &&
	       h->n_before <= STACK_DUMP_DEEP_BYTES - h->n_bytes && h->n_excerpt % 8 == 0 &&
	       h->n_excerpt <= STACK_DUMP_EXCERPT_BYTES &&
	       (!h->n_excerpt || h->n_bytes + h->n_excerpt <= STACK_DUMP_SHARED_BYTES);
}

/* As sample_decode(): our own programs wrote the record, so it is checked once. */
int stack_dump_decode(const void *record, size_t size, struct stack_dump *ret)
{
	const struct stack_dump_head *h = record;
	const struct stack_dump_record *c = record;

	if (size < sizeof(*h) || !h->key.tgid || h->head.n_user || h->head.count != 1 ||
	    h->head.n_kernel > SAMPLE_KERNEL_FRAMES_MAX || h->kind >= STACK_DUMP_KIND_MAX ||
	    h->at % 8 || h->runtime >= FRAME_RUNTIME_MAX || !are_bytes(h) || !are_pieces(h))
		return STACK_DUMP_ODD;
	/* the kernel's records have a multiple of 8 bytes */
	if (size < sizeof(*h) + (size_t)h->head.n_kernel * 8 + h->n_bytes + h->n_excerpt)
		return STACK_DUMP_ODD;
	*ret = (struct stack_dump){
		.sample =
			{
				.pid = {.pid = h->key.tgid,
					.start_ticks = pid_ticks_of_ns(h->key.start_boottime_ns)},
				.cgroup_id = h->key.cgroup_id,
				.cgroup_v1_id = h->key.cgroup_v1_id,
				.exec_id = h->key.exec_id,
				.start_boottime_ns = h->key.start_boottime_ns,
				.dump_id = h->key.stack_hash,
				.count = 1,
				.total = h->head.total,
				.n_kernel = h->head.n_kernel,
				.kernel = (const uint64_t *)(const void *)c->data,
			},
		.kind = h->kind,
		.time_ns = h->time_ns,
		.awaits = h->head.pad,
		.regs = &h->regs,
		.at = h->at,
		.bytes = c->data + (size_t)h->head.n_kernel * 8,
		.n_bytes = h->n_bytes,
		.n_before = h->n_before,
		.more = h->more,
		.pieces = h->pieces,
		.exe = &h->exe,
		.runtime = h->runtime,
		.excerpt = c->data + (size_t)h->head.n_kernel * 8 + h->n_bytes,
		.n_excerpt = h->n_excerpt,
	};
	memcpy(ret->sample.comm, h->head.comm, PID_COMM_MAX - 1);
	sample_set_names(&ret->sample,
			 h->key.flags & (SAMPLE_FLAG_THREAD | SAMPLE_FLAG_OTHER_THREAD),
			 (const uint64_t *)h->thread);
	return STACK_DUMP_OK;
}

static bool is_next_part(const struct stack_dump_head *h, const struct stack_dump_head *part)
{
	return h->more && h->key.tgid == part->key.tgid &&
	       h->key.start_boottime_ns == part->key.start_boottime_ns &&
	       h->key.stack_hash == part->key.stack_hash && h->kind == part->kind &&
	       h->time_ns == part->time_ns && h->at == part->at &&
	       h->head.n_kernel == part->head.n_kernel && !h->n_excerpt && !part->n_excerpt &&
	       !h->n_before && h->n_bytes == part->n_before &&
	       memcmp(h->pieces, part->pieces,
		      h->n_bytes / STACK_DUMP_READ_BYTES * sizeof(h->pieces[0])) == 0;
}

int stack_dump_join(const struct stack_dump_copy *copy, const struct stack_dump_copy *part,
		    struct stack_dump_copy **ret)
{
	const struct stack_dump_head *h = (const void *)copy->record;
	const struct stack_dump_head *next = (const void *)part->record;
	const size_t n_kernel = (size_t)next->head.n_kernel * 8;
	struct stack_dump_head *head;
	struct stack_dump_copy *joined;
	uint8_t *to;

	if (!is_next_part(h, next))
		return STACK_DUMP_ODD;
	joined = malloc(sizeof(*joined) + sizeof(*h) + n_kernel + h->n_bytes + next->n_bytes);
	if (!joined)
		return -ENOMEM;
	joined->size = sizeof(*h) + n_kernel + h->n_bytes + next->n_bytes;
	to = (uint8_t *)joined->record;
	memcpy(to, next, sizeof(*h) + n_kernel);
	to += sizeof(*h) + n_kernel;
	memcpy(to, (const uint8_t *)h + sizeof(*h) + n_kernel, h->n_bytes);
	memcpy(to + h->n_bytes, (const uint8_t *)next + sizeof(*h) + n_kernel, next->n_bytes);
	head = (void *)joined->record;
	head->n_bytes += head->n_before;
	head->n_before = 0;
	*ret = joined;
	return STACK_DUMP_OK;
}

/* ---------------------------------------------------------------- the ring */

/* A result below 0 leaves the rest in the ring. */
static int on_record(void *ctx, void *data, size_t size)
{
	struct stack_dumps *c = ctx;
	struct stack_dump_copy *f = malloc(sizeof(*f) + size);
	bool full;

	if (!f) {
		c->n_lost++;
		return -ENOMEM;
	}
	f->size = size;
	memcpy(f->record, data, size);
	pthread_mutex_lock(&c->lock);
	STAILQ_INSERT_TAIL(&c->list, f, in_list);
	c->n++;
	c->bytes += sizeof(*f) + size;
	full = c->bytes >= STACK_DUMPS_FETCHED_MAX;
	pthread_mutex_unlock(&c->lock);
	return full ? -ENOSPC : 0;
}

int stack_dumps_new(const struct bpfobj_stack_dumps *maps, struct stack_dumps **ret)
{
	_cleanup_(stack_dumps_freep) struct stack_dumps *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->maps = *maps;
	pthread_mutex_init(&c->ring_lock, NULL);
	pthread_mutex_init(&c->lock, NULL);
	STAILQ_INIT(&c->list);
	c->n_possible = libbpf_num_possible_cpus();
	if (c->n_possible < 0)
		return c->n_possible;
	c->cpu_values = calloc((size_t)c->n_possible, sizeof(*c->cpu_values));
	if (!c->cpu_values)
		return -ENOMEM;
	c->ring = ring_buffer__new(maps->ring, on_record, c, NULL);
	if (!c->ring)
		return -errno;
	*ret = take_ptr(c);
	return 0;
}

static struct stack_dump_copy *pop(struct stack_dumps *c)
{
	struct stack_dump_copy *f;

	pthread_mutex_lock(&c->lock);
	f = STAILQ_FIRST(&c->list);
	if (f) {
		STAILQ_REMOVE_HEAD(&c->list, in_list);
		c->n--;
		c->bytes -= sizeof(*f) + f->size;
	}
	pthread_mutex_unlock(&c->lock);
	return f;
}

void stack_dumps_free(struct stack_dumps *c)
{
	struct stack_dump_copy *f;

	if (!c)
		return;
	while ((f = pop(c)))
		free(f);
	ring_buffer__free(c->ring);
	pthread_mutex_destroy(&c->ring_lock);
	pthread_mutex_destroy(&c->lock);
	free(c->cpu_values);
	free(c);
}

int stack_dumps_fd(const struct stack_dumps *c)
{
	return ring_buffer__epoll_fd(c->ring);
}

bool stack_dumps_full(struct stack_dumps *c)
{
	bool full;

	pthread_mutex_lock(&c->lock);
	full = c->bytes >= STACK_DUMPS_FETCHED_MAX;
	pthread_mutex_unlock(&c->lock);
	return full;
}

bool stack_dumps_waiting(struct stack_dumps *c)
{
	bool waiting;

	pthread_mutex_lock(&c->lock);
	waiting = !STAILQ_EMPTY(&c->list);
	pthread_mutex_unlock(&c->lock);
	return waiting;
}

int stack_dumps_fetch(struct stack_dumps *c)
{
	int r = 0;

	pthread_mutex_lock(&c->ring_lock);
	if (!stack_dumps_full(c))
		r = ring_buffer__consume(c->ring);
	pthread_mutex_unlock(&c->ring_lock);
	return r == -ENOSPC || r >= 0 ? 0 : r;
}

static size_t n_fetched(struct stack_dumps *c, bool *ret_full)
{
	size_t n;

	pthread_mutex_lock(&c->lock);
	n = c->n;
	*ret_full = c->bytes >= STACK_DUMPS_FETCHED_MAX;
	pthread_mutex_unlock(&c->lock);
	return n;
}

/* Deliver the contents of the ring at the start of the call, and no later ones: dumps can come
 * faster than @fn takes them, and another thread fetches meanwhile. A full list is delivered in two
 * rounds: the first one makes room for the rest of the ring. */
int stack_dumps_drain(struct stack_dumps *c, stack_dumps_fn fn, void *ctx)
{
	bool full = true;
	int r = 0;

	for (int round = 0; round < 2 && full && !r; round++) {
		struct stack_dump_copy *f;
		size_t n;

		r = stack_dumps_fetch(c);
		for (n = n_fetched(c, &full); n && (f = pop(c)); n--)
			fn(ctx, f);
	}
	return r;
}

uint64_t stack_dumps_n_lost(const struct stack_dumps *c)
{
	return c->n_lost;
}

/* ---------------------------------------------------------------- telling */

void stack_dumps_collect(void *stack_dumps, struct metric_sink *sink)
{
	static const struct metric_family_desc family = {"podprof_stack_dumps", METRIC_COUNTER,
							 "Stack dumps by outcome.", NULL};
	static const char *const names[STACK_DUMP_STAT_MAX] = {
		[STACK_DUMP_TAKEN] = "ok",
		[STACK_DUMP_NAMED] = "names",
		[STACK_DUMP_OVER_CPU] = "rate_limited",
		[STACK_DUMP_OVER_PROCESS] = "rate_limited_process",
		[STACK_DUMP_UNREADABLE] = "unreadable",
		[STACK_DUMP_CONTINUED] = "continued",
		[STACK_DUMP_RING_FULL] = "ring_full",
	};
	const struct stack_dumps *c = stack_dumps;
	uint64_t sums[STACK_DUMP_STAT_MAX] = {0};

	for (uint32_t stat = 0; stat < STACK_DUMP_STAT_MAX; stat++) {
		if (bpf_map_lookup_elem(c->maps.stats, &stat, c->cpu_values) < 0)
			continue;
		for (int cpu = 0; cpu < c->n_possible; cpu++)
			sums[stat] += c->cpu_values[cpu];
	}
	metric_by_name(sink, &family, "outcome", sums, names, STACK_DUMP_STAT_MAX);
}
