// SPDX-License-Identifier: Apache-2.0
#include "profile/stack_dump.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/metric.h"

struct stack_dumps {
	struct bpfobj_stack_dumps maps;
	struct ring_buffer *ring;
	stack_dumps_fn fn; /* while draining */
	void *ctx;
	int n_possible;
	uint64_t *cpu_values; /* one per possible CPU */
};

DEFINE_CLEANUP(struct stack_dumps *, stack_dumps_freep, stack_dumps_free);

uint32_t stack_dumps_per_cpu(size_t n_cpus)
{
	size_t n = n_cpus ? STACK_DUMPS_PER_SECOND / n_cpus : 0;

	return n < STACK_DUMPS_PER_CPU ? STACK_DUMPS_PER_CPU : (uint32_t)n;
}

/* As sample_decode(): our own programs wrote it, it is checked once. */
int stack_dump_decode(const void *record, size_t size, struct stack_dump *ret)
{
	const struct stack_dump_head *h = record;
	const struct stack_dump_record *c = record;

	if (size < sizeof(*h) || !h->key.tgid || h->head.n_user || h->head.count != 1 ||
	    h->head.n_kernel > SAMPLE_KERNEL_FRAMES_MAX || h->n_bytes > STACK_DUMP_BYTES ||
	    h->kind >= STACK_DUMP_KIND_MAX || h->at % 8)
		return STACK_DUMP_ODD;
	/* the kernel's records have a multiple of 8 bytes */
	if (size < sizeof(*h) + (size_t)h->head.n_kernel * 8 + h->n_bytes)
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
		.regs = &h->regs,
		.at = h->at,
		.bytes = c->data + (size_t)h->head.n_kernel * 8,
		.n_bytes = h->n_bytes,
	};
	memcpy(ret->sample.comm, h->head.comm, PID_COMM_MAX - 1);
	return STACK_DUMP_OK;
}

/* ---------------------------------------------------------------- the ring */

static int on_record(void *ctx, void *data, size_t size)
{
	struct stack_dumps *c = ctx;

	c->fn(c->ctx, data, size);
	return 0;
}

int stack_dumps_new(const struct bpfobj_stack_dumps *maps, struct stack_dumps **ret)
{
	_cleanup_(stack_dumps_freep) struct stack_dumps *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->maps = *maps;
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

void stack_dumps_free(struct stack_dumps *c)
{
	if (!c)
		return;
	ring_buffer__free(c->ring);
	free(c->cpu_values);
	free(c);
}

int stack_dumps_fd(const struct stack_dumps *c)
{
	return ring_buffer__epoll_fd(c->ring);
}

int stack_dumps_drain(struct stack_dumps *c, stack_dumps_fn fn, void *ctx)
{
	int r;

	c->fn = fn;
	c->ctx = ctx;
	r = ring_buffer__consume(c->ring);
	return r < 0 ? r : 0;
}

/* ---------------------------------------------------------------- telling */

void stack_dumps_collect(void *stack_dumps, struct metric_sink *sink)
{
	static const struct metric_family_desc family = {"podprof_stack_dumps", METRIC_COUNTER,
							 "Stack dumps by outcome.", NULL};
	static const char *const names[STACK_DUMP_STAT_MAX] = {
		[STACK_DUMP_TAKEN] = "ok",
		[STACK_DUMP_OVER_CPU] = "rate_limited",
		[STACK_DUMP_OVER_PROCESS] = "rate_limited_process",
		[STACK_DUMP_UNREADABLE] = "unreadable",
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
