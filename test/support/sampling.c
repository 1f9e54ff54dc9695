// SPDX-License-Identifier: Apache-2.0
#include "support/sampling.h"

#include <bpf/bpf.h>
#include <signal.h>

#include "base/loop.h"
#include "base/nsec.h"
#include "profile/oncpu.h"
#include "profile/pid_filter.h"
#include "support/test.h"

/* The event of a process's end comes within a second or two. */
#define LOST_NS (10 * NSEC_PER_SEC)

int sampling_open(struct sampling *s)
{
	return root_open("/proc", &s->proc) || root_open("/sys", &s->sys) || loop_new(&s->loop);
}

void sampling_close(struct sampling *s)
{
	cpu_sampler_free(s->sampler);
	loop_free(s->loop);
	root_deinit(&s->proc);
	root_deinit(&s->sys);
}

void sampling_start(struct sampling *s, struct cpu_sampler_opts opts)
{
	struct bpfobj_why why = {""};

	opts.loop = s->loop;
	opts.proc = &s->proc;
	opts.sys = &s->sys;
	if (cpu_sampler_new(&opts, &why, &s->sampler))
		fail_msg("no sampler: %s", why.text);
}

void sampling_load(struct sampling *s, uint32_t runtime)
{
	struct bpfobj_runtime loaded;

	assert_int_equal(
		bpfobj_load_runtime(oncpu_object(cpu_sampler_oncpu(s->sampler)), runtime, &loaded),
		0);
	bpfobj_runtime_deinit(&loaded);
}

void sampling_want(struct sampling *s, pid_t pid)
{
	assert_true(pid > 0);
	assert_int_equal(pid_filter_add(oncpu_pid_filter(cpu_sampler_oncpu(s->sampler)), pid), 0);
}

bool sampling_forgot(struct sampling *s, uint32_t runtime, pid_t pid)
{
	const struct bpfobj_unwind maps = oncpu_unwind(cpu_sampler_oncpu(s->sampler));
	const uint32_t tgid = (uint32_t)pid;
	uint8_t record[4096]; /* of any runtime */

	if (bpf_map_lookup_elem(maps.runtimes[runtime], &tgid, record))
		return true;
	if (kill(pid, 0) == 0)
		return false;
	if (!s->gone_ns)
		s->gone_ns = nsec_monotonic();
	if (nsec_monotonic() - s->gone_ns > LOST_NS) /* the last samples have their names */
		cpu_sampler_sweep(s->sampler);
	return false;
}
