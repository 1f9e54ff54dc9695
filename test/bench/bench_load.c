// SPDX-License-Identifier: Apache-2.0
/*
 * The cost of loading the BPF programs (run as root): wall clock and CPU time, nearly all of it the
 * kernel's verifier, the lowest of several.
 */
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/nsec.h"
#include "base/root.h"
#include "profile/oncpu.h"
#include "profile/verifier.h"

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

static int load(const struct root *proc, const struct root *sys, const struct kind *kind,
		uint64_t *wall_ns, uint64_t *cpu_ns, bool tell)
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
	for (size_t i = 0; tell && i < verifier->n; i++)
		printf("    %-16s %6u instructions checked\n", verifier->programs[i].name,
		       verifier->programs[i].insns);
	oncpu_free(oc);
	return 0;
}

int main(void)
{
	struct root proc = ROOT_INIT, sys = ROOT_INIT;
	int r = root_open("/proc", &proc) || root_open("/sys", &sys);

	for (size_t k = 0; !r && k < array_size(kinds); k++) {
		uint64_t wall = 0, cpu = 0;

		for (int i = 0; !r && i < ROUNDS; i++)
			r = load(&proc, &sys, &kinds[k], &wall, &cpu, i == ROUNDS - 1);
		printf("%-36s %6.0f ms, %6.0f ms of CPU time\n", kinds[k].name, (double)wall / 1e6,
		       (double)cpu / 1e6);
	}
	root_deinit(&proc);
	root_deinit(&sys);
	return r;
}
