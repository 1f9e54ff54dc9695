// SPDX-License-Identifier: Apache-2.0
#include "cpusampler.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/nsec.h"
#include "procmap/space.h"
#include "profile/oncpu.h"

struct cpu_sampler {
	struct cpu_sampler_opts opts;
	struct oncpu *oncpu;
	struct space_cache *spaces;
	struct loop_source *tick;
	struct log_limit tick_log;
};

void cpu_stack_deinit(struct cpu_stack *stack)
{
	for (size_t i = 0; i < stack->n; i++)
		image_unref(stack->frames[i].image);
}

/* Takes the frame's reference. Frames of which nothing is known are one, at no address: stacks that
 * differ only there are the same to whoever reads them. */
static void cpu_stack_push(struct cpu_stack *stack, struct frame *frame, bool is_return)
{
	if (frame->image->kind == IMAGE_UNKNOWN) {
		frame->vaddr = 0;
		is_return = false;
		if (stack->n && stack->frames[stack->n - 1].image == frame->image) {
			image_unref(frame->image);
			return;
		}
	}
	stack->frames[stack->n] = *frame;
	stack->return_address[stack->n++] = is_return;
}

/* Only the innermost pc of each part is where the task was; behind a system call's instruction it
 * is still in the function that made the call. */
int cpu_sampler_resolve(struct cpu_sampler *s, const struct sample *sample, struct cpu_stack *ret)
{
	for (size_t i = 0; i < sample->n_kernel && ret->n < CPU_STACK_FRAMES_MAX; i++) {
		ret->return_address[ret->n] = i > 0;
		space_cache_kernel(s->spaces, sample->kernel[i], &ret->frames[ret->n++]);
	}
	for (size_t i = 0; i < sample->n_user && ret->n < CPU_STACK_FRAMES_MAX; i++) {
		struct frame frame;
		int r = space_cache_resolve(s->spaces, &sample->pid, sample->user[i], &frame);

		if (r)
			return r;
		cpu_stack_push(ret, &frame, i > 0);
	}
	return 0;
}

static void on_tick(void *ctx)
{
	struct cpu_sampler *s = ctx;
	uint64_t suppressed;
	int r = oncpu_tick(s->oncpu, s->opts.fn, s->opts.ctx);

	if (r < 0 && log_limit_ok(&s->tick_log, &suppressed))
		log_warn("cannot read all samples, trying again", log_err(r),
			 log_uint("suppressed", suppressed));
	(void)loop_arm(s->tick, oncpu_interval_ns(s->oncpu), 0);
}

void cpu_sampler_finish(struct cpu_sampler *s)
{
	int r;

	(void)loop_disarm(s->tick);
	r = oncpu_finish(s->oncpu, s->opts.fn, s->opts.ctx);
	if (r < 0)
		log_warn("cannot read the last samples, leaving them out", log_err(r));
}

void cpu_sampler_sweep(struct cpu_sampler *s)
{
	space_cache_sweep(s->spaces);
}

/* The kernel side's name for the hierarchy that discovery walks. */
static enum settings_v1 v1_of_controller(enum controller controller)
{
	static const enum settings_v1 map[CONTROLLER_MAX] = {
		[CONTROLLER_NONE] = SETTINGS_V1_NONE,
		[CONTROLLER_MEMORY] = SETTINGS_V1_MEMORY,
		[CONTROLLER_CPU] = SETTINGS_V1_CPU,
		[CONTROLLER_CPUACCT] = SETTINGS_V1_CPUACCT,
		[CONTROLLER_PIDS] = SETTINGS_V1_PIDS,
		[CONTROLLER_CPUSET] = SETTINGS_V1_CPUSET,
		[CONTROLLER_BLKIO] = SETTINGS_V1_BLKIO,
		[CONTROLLER_DEVICES] = SETTINGS_V1_DEVICES,
		[CONTROLLER_FREEZER] = SETTINGS_V1_FREEZER,
		[CONTROLLER_PERF_EVENT] = SETTINGS_V1_PERF_EVENT,
		/* net_cls, net_prio and hugetlb: no container is in those alone */
	};

	return map[controller];
}

static int cpu_sampler_init(struct cpu_sampler *s, struct bpfobj_why *ret_why)
{
	const struct cpu_sampler_opts *o = &s->opts;
	const struct oncpu_opts oncpu_opts = {
		.rate_hz = o->rate_hz,
		.kernel_stacks = o->kernel_stacks,
		.interval_ns = o->interval_ns,
		.v1 = v1_of_controller(o->v1),
		.proc = o->proc,
		.sys = o->sys,
	};
	int r = space_cache_new(o->proc, &s->spaces);

	if (!r)
		r = loop_add_timer(o->loop, on_tick, s, &s->tick);
	if (!r)
		r = oncpu_new(&oncpu_opts, ret_why, &s->oncpu);
	if (!r)
		r = loop_arm(s->tick, oncpu_interval_ns(s->oncpu), 0);
	return r;
}

int cpu_sampler_new(const struct cpu_sampler_opts *opts, struct bpfobj_why *ret_why,
		    struct cpu_sampler **ret)
{
	struct cpu_sampler *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->opts = *opts;
	s->tick_log.interval_ns = 60 * NSEC_PER_SEC;
	r = cpu_sampler_init(s, ret_why);
	if (r)
		cpu_sampler_free(s);
	else
		*ret = s;
	return r;
}

void cpu_sampler_free(struct cpu_sampler *s)
{
	if (!s)
		return;
	loop_remove(s->tick);
	oncpu_free(s->oncpu);
	space_cache_free(s->spaces);
	free(s);
}

const struct oncpu *cpu_sampler_oncpu(const struct cpu_sampler *s)
{
	return s->oncpu;
}

size_t cpu_sampler_space_bytes(const struct cpu_sampler *s)
{
	return space_cache_bytes(s->spaces);
}

void cpu_sampler_collect(void *ctx, struct metric_sink *sink)
{
	struct cpu_sampler *s = ctx;

	oncpu_collect(s->oncpu, sink);
	space_cache_collect(s->spaces, sink);
}
