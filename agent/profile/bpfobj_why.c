// SPDX-License-Identifier: Apache-2.0
/*
 * Capabilities: CAP_BPF for maps and programs, CAP_PERFMON for memory reads in programs and for
 * events on all CPUs (both since 5.8). Nothing requires CAP_SYS_ADMIN.
 */
#include "profile/bpfobj_why.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/capability.h"
#include "base/root.h"

static const char *const step_what[BPFOBJ_STEP_MAX] = {
	[BPFOBJ_LOAD] = "loading the BPF programs",
	[BPFOBJ_EVENT] = "opening a clock event on each CPU",
	[BPFOBJ_ATTACH] = "attaching the BPF program to a clock event",
	[BPFOBJ_FOLLOW] = "following child processes",
	[BPFOBJ_SWITCH] = "attaching the BPF program to task switches",
	[BPFOBJ_CGROUP_EVENTS] = "attaching the BPF program to the creation of cgroups",
};

const struct bpfobj_fault *bpfobj_unfit(const struct bpfobj_facts *facts, enum bpfobj_unfit what)
{
	static const struct bpfobj_fault faults[BPFOBJ_UNFIT_MAX] = {
		[BPFOBJ_TOO_OLD] = {"is older than 5.10", "use a newer one"},
		[BPFOBJ_NO_TYPES] = {"has no type information (/sys/kernel/btf/vmlinux)",
				     "use one built with CONFIG_DEBUG_INFO_BTF"},
		[BPFOBJ_CONFIDENTIALITY] = {"is locked down in confidentiality mode",
					    "boot with lockdown=integrity or none"},
	};
	const bool is[BPFOBJ_UNFIT_MAX] = {
		[BPFOBJ_TOO_OLD] = facts->version.major && kernel_is_before(&facts->version, 5, 10),
		[BPFOBJ_NO_TYPES] = !facts->has_btf,
		[BPFOBJ_CONFIDENTIALITY] = facts->confidentiality,
	};

	return is[what] ? &faults[what] : NULL;
}

static const char refused[] =
	"the kernel refuses the programs: please report this with the output of "
	"'uname -a' and 'clang --version'";

static const char *load_not_permitted(const struct bpfobj_facts *facts)
{
	if (facts->no_bpf || facts->no_perfmon)
		return facts->no_bpf && facts->no_perfmon
			       ? "grant CAP_BPF and CAP_PERFMON (or run as root)"
		       : facts->no_bpf ? "CAP_BPF is missing: grant it (or run as root)"
				       : "CAP_PERFMON is missing: grant it (or run as root)";
	/* the verifier has looked at them, so bpf(2) is allowed */
	if (facts->complaint && *facts->complaint)
		return refused;
	if (facts->version.major && kernel_is_before(&facts->version, 5, 11))
		return "before Linux 5.11 locked memory must be unlimited: grant CAP_SYS_RESOURCE "
		       "or raise the limit; or a seccomp profile forbids bpf(2): allow bpf(2)";
	return "CAP_BPF and CAP_PERFMON are in force, so a seccomp profile or a security module "
	       "forbids bpf(2): allow bpf(2)";
}

static const char *reason(enum bpfobj_step step, int err, const struct bpfobj_facts *facts)
{
	switch (err) {
	case -EPERM:
	case -EACCES:
		if (step == BPFOBJ_LOAD)
			return load_not_permitted(facts);
		/* level 3, of Debian's and Ubuntu's kernels, asks for more than CAP_PERFMON */
		return "grant CAP_PERFMON, and where kernel.perf_event_paranoid is above 2 lower "
		       "it to 2 or grant CAP_SYS_ADMIN; allow perf_event_open(2) if a seccomp "
		       "profile forbids it";
	case -ENOSYS:
		return "the kernel lacks CONFIG_BPF_SYSCALL or CONFIG_PERF_EVENTS, or a seccomp "
		       "profile hides the system call";
	case -ENOENT:
	case -EOPNOTSUPP:
		return "this kernel has no such event: enable CONFIG_PERF_EVENTS";
	case -EMFILE:
	case -ENFILE:
		return "raise the limit of open files (one is needed for each CPU)";
	case -ENOMEM:
		return "not enough memory in the agent's cgroup: raise its memory limit "
		       "or lower --cpu-rate";
	default:
		return step == BPFOBJ_LOAD ? refused : "see perf_event_open(2)";
	}
}

/* Explain if the kernel itself cannot load the programs, whatever the error. False: the kernel can.
 */
static bool say_unfit(const struct bpfobj_facts *facts, char *ret, size_t size)
{
	const struct kernel_version *v = &facts->version;
	const struct bpfobj_fault *fault = NULL;
	char kernel[40] = "the kernel";

	for (int what = 0; what < BPFOBJ_UNFIT_MAX && !fault; what++)
		fault = bpfobj_unfit(facts, (enum bpfobj_unfit)what);
	if (!fault)
		return false;
	if (v->major)
		snprintf(kernel, sizeof(kernel), "Linux %u.%u.%u", v->major, v->minor, v->patch);
	snprintf(ret, size, "%s %s: %s", kernel, fault->is, fault->remedy);
	return true;
}

void bpfobj_explain(enum bpfobj_step step, int err, const struct bpfobj_facts *facts,
		    struct bpfobj_why *ret)
{
	const char *complaint = facts->complaint ? facts->complaint : "";
	int n = snprintf(ret->text, sizeof(ret->text), "%s failed (%s); ", step_what[step],
			 strerror(-err));
	size_t room = sizeof(ret->text) - (size_t)n;

	if (step != BPFOBJ_LOAD || !say_unfit(facts, ret->text + n, room))
		snprintf(ret->text + n, room, "%s%s%s", reason(step, err, facts),
			 *complaint ? "; the verifier says: " : "", complaint);
}

int bpfobj_permit(const struct bpfobj_facts *facts, bool unsafe_kernel, struct bpfobj_why *ret)
{
	const struct kernel_version *v = &facts->version;

	if (unsafe_kernel || !kernel_may_hang(v))
		return 0;
	snprintf(
		ret->text, sizeof(ret->text),
		"sampling could hang this machine: Linux %u.%u.%u has a fault in copying from user "
		"memory, fixed in 6.1.36, 6.3.10 and 6.4; update the kernel, or set "
		"--allow-unsafe-kernel if your distributor has fixed it",
		v->major, v->minor, v->patch);
	return -EPERM;
}

static bool lockdown_confidentiality(const struct root *sys)
{
	struct buf b = BUF_INIT(256);
	bool in = false;

	/* "none [integrity] confidentiality": the brackets mark the present mode. The file is
	 * missing without the lockdown module. */
	if (root_read(sys, "kernel/security/lockdown", &b) == 0 && b.data)
		in = strstr(b.data, "[confidentiality]");
	buf_deinit(&b);
	return in;
}

/* CAP_SYS_ADMIN stands for either. */
static void note_capabilities(struct bpfobj_facts *facts)
{
	uint64_t has;

	if (!capabilities_here(&has))
		return;
	facts->no_bpf = !capability_in(has, CAP_BPF) && !capability_in(has, CAP_SYS_ADMIN);
	facts->no_perfmon = !capability_in(has, CAP_PERFMON) && !capability_in(has, CAP_SYS_ADMIN);
}

struct bpfobj_facts bpfobj_facts_here(const struct root *proc, const struct root *sys)
{
	struct bpfobj_facts facts = {.has_btf = true};
	struct stat st;

	if (sys) {
		facts.has_btf = fstatat(sys->fd, "kernel/btf/vmlinux", &st, 0) == 0;
		facts.confidentiality = lockdown_confidentiality(sys);
	}
	kernel_version_here(proc, &facts.version);
	note_capabilities(&facts);
	return facts;
}

void bpfobj_explain_here(enum bpfobj_step step, int err, const struct root *sys,
			 struct bpfobj_why *ret)
{
	const struct bpfobj_facts facts = bpfobj_facts_here(NULL, sys);

	bpfobj_explain(step, err, &facts, ret);
}
