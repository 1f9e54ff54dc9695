// SPDX-License-Identifier: Apache-2.0
/*
 * Version numbers say little about a distribution's kernel. The probe therefore loads and attaches
 * the programs as the agent does, and the result counts. Other probes only cover facts that an
 * errno does not show. Their findings appear with the failure, or without a trial.
 *
 * There is no check of kernel.unprivileged_bpf_disabled, because the setting does not apply to a
 * process with CAP_BPF. There is none of tracefs either: task switches are followed through BTF,
 * and perf events by their numbers.
 */
#include "doctor/kernelside.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/capability.h"
#include "base/cleanup.h"
#include "base/nsec.h"
#include "base/root.h"
#include "config/config.h"
#include "doctor/file.h"
#include "doctor/finding.h"
#include "doctor/probe_results.h"
#include "profile/sideband.h"

#define CPU_LOST "no CPU profiles"

/* ---------------------------------------------------------------- looking */

static int paranoid_of(const struct root *proc)
{
	char line[16], *end;
	long n;

	file_line(proc, "sys/kernel/perf_event_paranoid", line, sizeof(line));
	n = strtol(line, &end, 10);
	if (end == line || n > INT_MAX)
		return -2;
	return n < 0 ? -1 : (int)n;
}

static int try_events(const struct root *sys)
{
	const struct sideband_opts opts = {.sys = sys};
	struct sideband *sideband;
	int r = sideband_new(&opts, &sideband);

	if (!r)
		sideband_free(sideband);
	return r;
}

void kernelside_look(const struct root *proc, const struct root *sys, struct kernelside *ret)
{
	*ret = (struct kernelside){
		.known = bpfobj_facts_here(proc, sys),
		.paranoid = paranoid_of(proc),
		.events = try_events(sys),
	};
}

/* ---------------------------------------------------------------- checks */

static void check_version(const struct probe_results *results, struct findings *ret)
{
	const struct bpfobj_facts *known = &results->kernel.known;
	const struct bpfobj_fault *old = bpfobj_unfit(known, BPFOBJ_TOO_OLD);
	const struct kernel_version *v = &known->version;
	struct bpfobj_why why = {""};
	char name[40];

	snprintf(name, sizeof(name), "Linux %u.%u.%u", v->major, v->minor, v->patch);
	if (old)
		finding_say(findings_add(ret, "kernel", FINDING_MISSING, "%s %s", name, old->is),
			    CPU_LOST, old->remedy);
	else if (bpfobj_permit(known, results->config->allow_unsafe_kernel, &why))
		finding_say(findings_add(ret, "kernel", FINDING_MISSING, "%s: %s", name, why.text),
			    CPU_LOST, "use a kernel with the fix: 6.1.36, 6.3.10, or 6.4");
	else
		findings_add(ret, "kernel", FINDING_OK, "%s", name);
}

static void check_types(const struct bpfobj_facts *known, struct findings *ret)
{
	const struct bpfobj_fault *fault = bpfobj_unfit(known, BPFOBJ_NO_TYPES);

	if (fault)
		finding_say(findings_add(ret, "BTF", FINDING_MISSING, "the kernel %s", fault->is),
			    CPU_LOST, fault->remedy);
	else
		findings_add(ret, "BTF", FINDING_OK, "/sys/kernel/btf/vmlinux");
}

/* An addition of Debian and Ubuntu. */
static void check_paranoid(const struct probe_results *results, struct findings *ret)
{
	const struct kernelside *k = &results->kernel;
	struct finding *finding;

	if (k->paranoid <= 2 || capability_in(results->rights.capabilities, CAP_SYS_ADMIN) ||
	    (k->tried && !k->result))
		return;
	finding = findings_add(ret, "perf events", FINDING_MISSING,
			       "kernel.perf_event_paranoid is %d: Debian's and Ubuntu's kernels "
			       "require CAP_SYS_ADMIN",
			       k->paranoid);
	finding_say(finding, CPU_LOST,
		    "sysctl -w kernel.perf_event_paranoid=2 on the node, or add CAP_SYS_ADMIN");
}

/* The sentence is "problem; remedy". */
static void say_refused(const struct probe_results *results, struct findings *ret)
{
	const struct kernelside *k = &results->kernel;
	const char *what = *k->why.text ? k->why.text : strerror(-k->result);
	const char *todo = strstr(what, "; ");
	struct finding *finding = findings_add(ret, "CPU profiles", FINDING_MISSING, "%.*s",
					       todo ? (int)(todo - what) : (int)strlen(what), what);

	if (k->known.no_bpf || k->known.no_perfmon)
		todo = "; see the capabilities";
	finding_say(finding,
		    results->config->off_cpu > 0 ? "no CPU and off-CPU profiles" : CPU_LOST,
		    todo ? todo + 2 : "see the line above");
}

static void say_begun(const struct probe_results *results, struct findings *ret)
{
	const struct kernelside *k = &results->kernel;
	const char *what = results->config->off_cpu > 0 ? "on and off the CPUs" : "on the CPUs";
	struct finding *finding;

	if (k->has_loop && !*k->cpu_why) {
		findings_add(ret, "CPU profiles", FINDING_OK,
			     "sampling works %s, %zu of them; the kernel verified the programs in "
			     "%" PRIu64 " ms",
			     what, k->n_cpus, (uint64_t)(k->load_ns / NSEC_PER_MSEC));
		return;
	}
	if (*k->cpu_why) {
		finding = findings_add(ret, "CPU profiles", FINDING_DEGRADED,
				       "no clock on some CPU: %s", k->cpu_why);
		finding_say(finding, "programs on that CPU are not sampled", "see the line above");
		return;
	}
	finding = findings_add(ret, "CPU profiles", FINDING_DEGRADED,
			       "sampling works %s, with stack walks in parts: the kernel lacks "
			       "bpf_loop() (5.17), or net.core.bpf_jit_enable is 0",
			       what);
	finding_say(finding, "each sample costs more", "nothing");
}

static void say_lacks(const struct kernelside *k, struct findings *ret)
{
	if (k->lacks_dumps)
		finding_say(findings_add(ret, "stack dumps", FINDING_DEGRADED,
					 "before Linux 6.13 they could sleep in an interrupt of a "
					 "real-time kernel (PREEMPT_RT)"),
			    "stacks of a process's first second may be cut",
			    "use a newer kernel, or one without PREEMPT_RT");
	if (k->n_refused)
		finding_say(
			findings_add(ret, "language runtimes", FINDING_DEGRADED,
				     "the kernel refuses the programs of %zu; the verifier says: "
				     "%s",
				     k->n_refused, k->runtime_why),
			"their processes have native frames only",
			"please report it, with what 'uname -a' prints");
}

static void check_events(const struct probe_results *results, struct findings *ret)
{
	const struct kernelside *k = &results->kernel;

	/* a failure of all CPU profiling is reported once */
	if (!k->events || (k->tried && k->result))
		return;
	finding_say(findings_add(ret, "short-lived processes", FINDING_DEGRADED,
				 "the kernel refuses perf events of mappings (%s)",
				 strerror(-k->events)),
		    "programs that end within a second have no names in profiles",
		    "grant CAP_PERFMON, and allow perf_event_open(2)");
}

void kernelside_check(const struct probe_results *results, struct findings *ret)
{
	const struct bpfobj_fault *locked =
		bpfobj_unfit(&results->kernel.known, BPFOBJ_CONFIDENTIALITY);

	if (!results->config->cpu_rate) {
		findings_add(ret, "CPU profiles", FINDING_OK, "turned off (--cpu-rate 0)");
		return;
	}
	check_version(results, ret);
	check_types(&results->kernel.known, ret);
	if (locked)
		finding_say(
			findings_add(ret, "lockdown", FINDING_MISSING, "the kernel %s", locked->is),
			CPU_LOST, locked->remedy);
	check_paranoid(results, ret);
	/* without a trial, the running agent has reported the result */
	if (results->kernel.tried && results->kernel.result)
		say_refused(results, ret);
	else if (results->kernel.tried) {
		say_begun(results, ret);
		say_lacks(&results->kernel, ret);
	}
	check_events(results, ret);
}
