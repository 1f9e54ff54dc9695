// SPDX-License-Identifier: Apache-2.0
/*
 * The cost of loading the BPF programs (run as root): wall clock and CPU time, nearly all of it the
 * kernel's verifier, the lowest of several. At the start of the agent, and with the first process
 * of each language runtime.
 */
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/nsec.h"
#include "base/root.h"
#include "profile/bpfobj.h"
#include "profile/oncpu.h"
#include "profile/verifier.h"
#include "shared/frame.h"
#include "support/figure.h"

#define ROUNDS 10

struct kind {
	const char *name;
	enum settings_scope scope;
	bool offcpu;
};

/* As the agent loads them, and as 'podprof record' does for processes and their children. */
static const struct kind kinds[] = {
	{"all processes", SETTINGS_SCOPE_ALL, false},
	{"all processes, time off the CPU", SETTINGS_SCOPE_ALL, true},
	{"children followed", SETTINGS_SCOPE_PROCESSES, false},
	{"children followed, time off the CPU", SETTINGS_SCOPE_PROCESSES, true},
};

static uint64_t lowest(uint64_t a, uint64_t b)
{
	return a && a < b ? a : b;
}

static void tell_verified(const struct verifier *v)
{
	for (size_t i = 0; i < v->n; i++)
		printf("    %-19s %6u instructions checked\n", v->programs[i].name,
		       v->programs[i].insns);
}

static int load(const struct root *proc, const struct root *sys, const struct kind *kind,
		uint64_t *wall_ns, uint64_t *cpu_ns, uint64_t runtimes_ns[FRAME_RUNTIME_MAX],
		bool tell)
{
	const struct oncpu_opts opts = {.rate_hz = 97,
					.scope = kind->scope,
					.kernel_stacks = true,
					.unwind = SETTINGS_UNWIND_AUTO,
					.stack_dumps = true,
					.offcpu = kind->offcpu,
					.proc = proc,
					.sys = sys};
	const uint64_t cpu = nsec_read(CLOCK_PROCESS_CPUTIME_ID);
	struct bpfobj_why why = {""};
	const struct verifier *verifier;
	struct oncpu *oc;

	if (oncpu_new(&opts, &why, &oc)) {
		fprintf(stderr, "bench_load: %s\n", why.text);
		return 1;
	}
	*cpu_ns = lowest(*cpu_ns, nsec_read(CLOCK_PROCESS_CPUTIME_ID) - cpu);
	*wall_ns = lowest(*wall_ns, bpfobj_load_ns(oncpu_object(oc)));
	verifier = bpfobj_verifier(oncpu_object(oc));
	if (tell)
		tell_verified(verifier);
	for (uint32_t i = FRAME_RUNTIME_NONE + 1; i < FRAME_RUNTIME_MAX; i++) {
		const uint64_t begin = nsec_read(CLOCK_PROCESS_CPUTIME_ID);
		struct bpfobj_runtime loaded;

		if (bpfobj_load_runtime(oncpu_object(oc), i, &loaded)) {
			fprintf(stderr, "bench_load: runtime %u is not loaded\n", i);
			oncpu_free(oc);
			return 1;
		}
		runtimes_ns[i] =
			lowest(runtimes_ns[i], nsec_read(CLOCK_PROCESS_CPUTIME_ID) - begin);
		if (tell)
			tell_verified(&loaded.verifier);
		bpfobj_runtime_deinit(&loaded);
	}
	oncpu_free(oc);
	return 0;
}

int main(void)
{
	struct root proc = ROOT_INIT, sys = ROOT_INIT;
	int r = root_open("/proc", &proc) || root_open("/sys", &sys);

	for (size_t k = 0; !r && k < array_size(kinds); k++) {
		uint64_t wall = 0, cpu = 0, runtimes[FRAME_RUNTIME_MAX] = {0};

		for (int i = 0; !r && i < ROUNDS; i++)
			r = load(&proc, &sys, &kinds[k], &wall, &cpu, runtimes, i == ROUNDS - 1);
		printf("%-36s %6.0f ms, %6.0f ms of CPU time\n", kinds[k].name, (double)wall / 1e6,
		       (double)cpu / 1e6);
		figure((double)cpu / 1e6, "ms", "CPU of %s", kinds[k].name);
		for (uint32_t i = FRAME_RUNTIME_NONE + 1; i < FRAME_RUNTIME_MAX; i++)
			printf("    runtime %u, with its first process  %6.0f ms of CPU time\n", i,
			       (double)runtimes[i] / 1e6);
	}
	root_deinit(&proc);
	root_deinit(&sys);
	return r;
}
