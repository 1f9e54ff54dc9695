// SPDX-License-Identifier: Apache-2.0
#include "support/sampling.h"

#include "base/loop.h"
#include "profile/oncpu.h"
#include "profile/pid_filter.h"
#include "support/test.h"

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

void sampling_want(struct sampling *s, pid_t pid)
{
	assert_true(pid > 0);
	assert_int_equal(pid_filter_add(oncpu_pid_filter(cpu_sampler_oncpu(s->sampler)), pid), 0);
}
