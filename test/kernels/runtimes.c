// SPDX-License-Identifier: Apache-2.0
/*
 * Frames of a language runtime on each kernel, run by guest.c. Loads the programs with the test
 * runtime (bpf/runtime_test.h) and samples a child with this runtime. Prints one line for the
 * guest's result, and exits with 0 if at least 90 % of the stacks are right:
 *
 *	oncpu_part_test:88044,offcpu_part_test:86865 runtime_samples=99 right=98.9%
 */
#include <bpf/bpf.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/nsec.h"
#include "base/root.h"
#include "bpf/runtime_agent.h"
#include "profile/oncpu.h"
#include "profile/pid_filter.h"
#include "profile/verifier.h"
#include "shared/process.h"
#include "shared/sample.h"
#include "support/burn.h"

#define RATE	    199
#define BURN_CPU_NS (NSEC_PER_SEC / 2)
#define PATIENCE_NS (120 * NSEC_PER_SEC)

struct run {
	struct root proc, sys;
	struct oncpu *oc;
	struct bpfobj_runtime loaded;
	pid_t child;
	bool known;	/* the walker has a record of the child */
	uint64_t n;	/* samples since then */
	uint64_t right; /* with the runtime's frames in place */
	bool odd;
};

/* The frames of burn_middle(), the loop. */
static struct runtime_test_frame frames[] = {
	{(uintptr_t)&frames[1], 0x1001, 11, 0},
	{0, 0x1002, 22, 1},
};

static bool is_runtime(const struct sample *s, size_t *at, const struct runtime_test_frame *want)
{
	struct frame_record frame;

	return sample_user_next(s, at, &frame) && frame.kind == FRAME_RUNTIME &&
	       frame.runtime == RUNTIME_AGENT_TEST && frame.words[0] == want->function &&
	       frame.words[1] == want->place;
}

static bool is_native(const struct sample *s, size_t *at, struct burn_range in)
{
	struct frame_record frame;

	return sample_user_next(s, at, &frame) && frame.kind == FRAME_NATIVE &&
	       burn_in(in, frame.words[0]);
}

static bool is_right(const struct sample *s)
{
	size_t at = 0;

	return is_native(s, &at, burn_inner_range()) && is_native(s, &at, burn_middle_range()) &&
	       is_runtime(s, &at, &frames[0]) && is_runtime(s, &at, &frames[1]) &&
	       is_native(s, &at, burn_outer_range());
}

/* Without mappings: the walk is by frame pointer. */
static void record(struct run *run, const struct sample *s)
{
	const uint32_t tgid = (uint32_t)run->child;
	const struct process p = {.start_boottime_ns = s->start_boottime_ns,
				  .exec_id = s->exec_id,
				  .runtime = RUNTIME_AGENT_TEST};

	run->known = bpf_map_update_elem(oncpu_unwind(run->oc).records, &tgid, &p, BPF_ANY) == 0;
}

static void take(void *ctx, const struct sample *s)
{
	struct run *run = ctx;

	if ((pid_t)s->pid.pid != run->child)
		return;
	if (!run->known) {
		record(run, s);
		return;
	}
	if (s->flags & SAMPLE_FLAG_NO_PROCESS) /* taken before the record */
		return;
	run->n += s->count;
	run->right += is_right(s) ? s->count : 0;
}

/* Until the child, once known, has used BURN_CPU_NS of a CPU. */
static bool burn(struct run *run)
{
	const uint64_t until_ns = nsec_monotonic() + PATIENCE_NS;
	uint64_t from_ns = 0;
	clockid_t clock;

	if (clock_getcpuclockid(run->child, &clock))
		return false;
	burn_go(run->child);
	while (!run->known || nsec_read(clock) < from_ns + BURN_CPU_NS) {
		if (!run->known)
			from_ns = nsec_read(clock);
		usleep(20000);
		if (oncpu_tick(run->oc, take, run))
			return false;
		if (nsec_monotonic() > until_ns)
			break; /* an emulated processor: the samples so far count */
	}
	return true;
}

static void report(const struct run *run)
{
	const struct verifier *v = &run->loaded.verifier;
	const char *between = "";

	for (size_t i = 0; i < v->n; i++)
		if (strstr(v->programs[i].name, "_test")) {
			printf("%s%s:%u", between, v->programs[i].name, v->programs[i].insns);
			between = ",";
		}
	printf(" runtime_samples=%" PRIu64 " right=%.1f%%\n", run->n,
	       100.0 * (double)run->right / (double)(run->n ? run->n : 1));
}

int main(void)
{
	const struct runtime_test where = {
		.loop_start = burn_middle_range().start,
		.loop_bytes = burn_middle_range().limit - burn_middle_range().start,
		.frames = (uintptr_t)frames,
	};
	struct run run = {0};
	struct oncpu_opts opts = {.rate_hz = RATE,
				  .scope = SETTINGS_SCOPE_PROCESSES,
				  .unwind = SETTINGS_UNWIND_AUTO,
				  .offcpu = true,
				  .proc = &run.proc,
				  .sys = &run.sys};
	struct bpfobj_why why = {""};
	int r;

	if (root_open("/proc", &run.proc) || root_open("/sys", &run.sys))
		return 1;
	if (oncpu_new(&opts, &why, &run.oc)) {
		printf("no sampler: %s\n", why.text);
		return 1;
	}
	if (bpfobj_load_runtime(oncpu_object(run.oc), RUNTIME_AGENT_TEST, &run.loaded)) {
		printf("no walk of the runtime: %s\n", run.loaded.why);
		return 1;
	}
	run.child = burn_start(BURN_USER);
	r = runtime_agent_set(oncpu_object(run.oc), &where) ||
	    pid_filter_add(oncpu_pid_filter(run.oc), run.child) || !burn(&run);
	burn_end(run.child);
	if (oncpu_finish(run.oc, take, &run))
		r = 1;
	report(&run);
	bpfobj_runtime_deinit(&run.loaded);
	oncpu_free(run.oc);
	return r || !run.n || run.right * 10 < run.n * 9;
}
