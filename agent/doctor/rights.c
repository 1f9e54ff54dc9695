// SPDX-License-Identifier: Apache-2.0
/*
 * docs/security.md has the purpose of each capability. A missing capability does not always have a
 * consequence (the sysctl kernel.kptr_restrict may be 0, all processes may be our own), but an
 * agent without it will sooner or later omit something.
 *
 * Seccomp and security modules refuse in their own ways, and their rules are not visible in
 * advance: this check only reports their presence. The checks with a trial report actual failures.
 */
#include "doctor/rights.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/buf.h"
#include "base/capability.h"
#include "base/cleanup.h"
#include "base/root.h"
#include "base/strview.h"
#include "config/config.h"
#include "doctor/file.h"
#include "doctor/finding.h"
#include "doctor/probe_results.h"
#include "profile/kernel.h"
#include "symbolize/ksyms.h"

/* Open files; with fewer, programs with files kept open may be too many: a node has some thousand
 * images. */
#define OPEN_FILES_WANTED 8192

/* ---------------------------------------------------------------- looking */

/* "Seccomp:	2" */
static bool filters_calls(const struct root *proc)
{
	_cleanup_(buf_deinit) struct buf b = BUF_INIT(65536);
	struct strview all, line;

	if (root_read(proc, "self/status", &b) || !b.data)
		return false;
	all = strview_of_bytes(b.data, b.len);
	while (strview_line(&all, &line))
		if (strview_prefix(&line, "Seccomp:")) {
			strview_skip_blanks(&line);
			return !strview_is(&line, "0");
		}
	return false;
}

/* The first namespace maps all users to themselves: "0 0 4294967295". */
static bool in_user_namespace(const struct root *proc)
{
	_cleanup_(buf_deinit) struct buf b = BUF_INIT(4096);
	struct strview all, line, word;
	uint64_t n[3] = {0};

	if (root_read(proc, "self/uid_map", &b))
		return false;
	all = strview_of_bytes(b.data, b.len);
	if (!strview_line(&all, &line))
		return true; /* no user is mapped */
	for (int i = 0; i < 3; i++)
		if (!strview_word(&line, &word) || !strview_only_u64(word, 10, &n[i]))
			return false;
	return n[0] != 0 || n[1] != 0 || n[2] != UINT32_MAX;
}

static uint64_t hard_limit(int resource)
{
	struct rlimit limit;

	return getrlimit(resource, &limit) < 0 ? 0 : limit.rlim_max;
}

void rights_look(const struct root *proc, const struct root *sys, struct rights *ret)
{
	uint64_t yama, enforce;

	*ret = (struct rights){
		.in_namespace = in_user_namespace(proc),
		.seccomp = filters_calls(proc),
		.yama = -1,
		.open_files = hard_limit(RLIMIT_NOFILE),
		.locked_bytes = hard_limit(RLIMIT_MEMLOCK),
	};
	ret->known = capabilities_here(&ret->capabilities);
	file_line(proc, "self/attr/current", ret->label, sizeof(ret->label));
	ret->selinux = file_number(sys, "fs/selinux/enforce", &enforce) && enforce == 1;
	if (file_number(proc, "sys/kernel/yama/ptrace_scope", &yama) && yama <= 3)
		ret->yama = (int)yama;
}

bool rights_has(const struct rights *rights, unsigned int capability)
{
	bool by_admin = capability == CAP_BPF || capability == CAP_PERFMON ||
			capability == CAP_CHECKPOINT_RESTORE;

	return capability_in(rights->capabilities, capability) ||
	       (by_admin && capability_in(rights->capabilities, CAP_SYS_ADMIN));
}

bool rights_apparmor(const struct rights *rights)
{
	return *rights->label && !strchr(rights->label, ':') &&
	       strncmp(rights->label, "unconfined", strlen("unconfined")) != 0;
}

/* ---------------------------------------------------------------- capabilities */

enum need { NEED_ALWAYS, NEED_CPU, NEED_KERNEL_STACKS };

static const struct {
	unsigned int capability;
	const char *check;
	enum need need;
	enum finding_outcome without;
	const char *means;
} wanted[] = {
	{CAP_BPF, "CAP_BPF", NEED_CPU, FINDING_MISSING, "no CPU profiles"},
	{CAP_PERFMON, "CAP_PERFMON", NEED_CPU, FINDING_MISSING, "no CPU profiles"},
	{CAP_SYS_PTRACE, "CAP_SYS_PTRACE", NEED_ALWAYS, FINDING_MISSING,
	 "other users' programs have no names in profiles; their Go heaps and the container "
	 "runtimes' files are not read"},
	{CAP_DAC_READ_SEARCH, "CAP_DAC_READ_SEARCH", NEED_ALWAYS, FINDING_MISSING,
	 "other users' private programs and files have no names, and their Go heaps are not "
	 "read"},
	{CAP_CHECKPOINT_RESTORE, "CAP_CHECKPOINT_RESTORE", NEED_ALWAYS, FINDING_DEGRADED,
	 "running programs whose files were replaced or deleted have no names"},
	{CAP_SYSLOG, "CAP_SYSLOG", NEED_KERNEL_STACKS, FINDING_MISSING,
	 "kernel functions have no names"},
};

static bool is_missing(const struct probe_results *results, size_t i)
{
	const struct config *c = results->config;

	if (rights_has(&results->rights, wanted[i].capability))
		return false;
	/* with kernel.kptr_restrict 0 everybody may read addresses */
	if (wanted[i].need == NEED_KERNEL_STACKS)
		return c->cpu_rate && c->kernel_stacks && results->reading.ksyms == KSYMS_HIDDEN;
	return wanted[i].need == NEED_ALWAYS || c->cpu_rate;
}

/* One remedy for all missing capabilities: one line of a manifest, or of a unit. */
static void make_remedy(const struct probe_results *results, char *ret, size_t size)
{
	size_t n = (size_t)snprintf(ret, size, "%s",
				    results->in_cluster ? "securityContext.capabilities.add, as in "
							  "the chart:"
							: "run as root, or grant");

	for (size_t i = 0; i < array_size(wanted); i++)
		if (is_missing(results, i))
			n += (size_t)snprintf(ret + n, size - n, " %s",
					      wanted[i].check + strlen("CAP_"));
}

static void check_capabilities(const struct probe_results *results, struct findings *ret)
{
	char has[256] = "", remedy[FINDING_TEXT_MAX];
	size_t n = 0;

	for (size_t i = 0; i < array_size(wanted); i++)
		if (rights_has(&results->rights, wanted[i].capability))
			n += (size_t)snprintf(has + n, sizeof(has) - n, "%s%s", n ? " " : "",
					      wanted[i].check + strlen("CAP_"));
	if (n)
		findings_add(ret, "capabilities", FINDING_OK, "%s", has);
	make_remedy(results, remedy, sizeof(remedy));
	for (size_t i = 0; i < array_size(wanted); i++)
		if (is_missing(results, i))
			finding_say(findings_add(ret, wanted[i].check, wanted[i].without,
						 "not in force"),
				    wanted[i].means, remedy);
}

/* ---- checks */

static void check_confinement(const struct rights *rights, struct findings *ret)
{
	char yama[32] = "";

	if (rights->yama >= 0)
		snprintf(yama, sizeof(yama), ", Yama %d", rights->yama);
	findings_add(ret, "confinement", FINDING_OK, "seccomp %s, %s%s%s",
		     rights->seccomp ? "on" : "off",
		     *rights->label ? rights->label : "no security module",
		     rights->selinux ? " (SELinux enforcing)" : "", yama);
}

/* Kernels before 5.11 charge BPF maps to RLIMIT_MEMLOCK. */
static void check_locked(const struct probe_results *results, struct findings *ret)
{
	const struct rights *rights = &results->rights;
	struct finding *finding;

	if (!results->config->cpu_rate || !results->kernel.known.version.major ||
	    !kernel_is_before(&results->kernel.known.version, 5, 11))
		return;
	if (rights->locked_bytes == UINT64_MAX ||
	    capability_in(rights->capabilities, CAP_SYS_RESOURCE)) {
		findings_add(ret, "locked memory", FINDING_OK, "may be raised");
		return;
	}
	finding = findings_add(ret, "locked memory", FINDING_MISSING,
			       "limited to %llu bytes; this kernel counts BPF maps in it",
			       (unsigned long long)rights->locked_bytes);
	finding_say(finding, "no CPU profiles",
		    "add CAP_SYS_RESOURCE (in the chart: capabilities), or raise the limit");
}

void rights_check(const struct probe_results *results, struct findings *ret)
{
	check_capabilities(results, ret);
	if (results->rights.in_namespace)
		finding_say(
			findings_add(ret, "user namespace", FINDING_MISSING,
				     "podprof runs in one: its capabilities do not apply to the "
				     "node"),
			"no CPU profiles, and other users' programs are not seen",
			"run podprof as the node's root: no hostUsers: false, no rootless runtime");
	check_confinement(&results->rights, ret);
	check_locked(results, ret);
	if (results->rights.open_files < OPEN_FILES_WANTED)
		finding_say(findings_add(ret, "open files", FINDING_DEGRADED, "at most %llu",
					 (unsigned long long)results->rights.open_files),
			    "on a busy node, programs beyond this number have no names",
			    "raise the hard limit of open files to 65536 (systemd: LimitNOFILE=)");
}
