// SPDX-License-Identifier: Apache-2.0
/*
 * The agent reads names for stacks and Go heaps from other processes; the probe tries the same
 * accesses. If an access fails despite the capability, a security module refuses: AppArmor's
 * profile of most container runtimes forbids tracing processes outside of the container.
 */
#include "doctor/reading.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "base/capability.h"
#include "base/cleanup.h"
#include "base/root.h"
#include "config/config.h"
#include "discovery/pid.h"
#include "doctor/finding.h"
#include "doctor/probe_results.h"
#include "procmap/mapped.h"
#include "procmap/maps.h"
#include "procmap/memory.h"
#include "symbolize/ksyms.h"

_Static_assert(STRIPPED_PROGRAMS_MAX >= READING_PROCESSES_MAX, "a place for each program");

/* ---------------------------------------------------------------- looking */

struct attempt {
	const struct config *config;
	const struct root *proc;
	uint64_t own;
	struct reading *reading;
};

/* Code of a file, as found in stacks. */
static const struct maps_entry *find_code(const struct maps *maps)
{
	for (size_t i = 0; i < maps->n; i++)
		if (maps->items[i].kind == MAPS_FILE && maps->items[i].prot & MAPS_X &&
		    maps->items[i].prot & MAPS_R)
			return &maps->items[i];
	return NULL;
}

/* 0 or -ENOMEM. */
static int try_file(const struct attempt *a, const struct pid_id *id, const struct maps *maps,
		    const struct maps_entry *entry, bool *ret_refused)
{
	_cleanup_(close_fdp) int path_fd = -1;
	int fd, r = mapped_find(a->proc, maps->via_pid, entry, &path_fd);

	if (!r)
		r = mapped_open(path_fd, &fd);
	*ret_refused = r == MAPPED_DENIED;
	if (r)
		return 0;
	if (!a->config->cpu_rate) {
		close(fd);
		return 0;
	}
	return stripped_add(&a->reading->stripped, a->proc, id, entry, fd);
}

static bool memory_refused(const struct root *proc, const struct pid_id *id,
			   const struct maps_entry *entry)
{
	struct process_memory memory = {.fd = -1};
	char bytes[8];
	int r = process_memory_init(&memory, proc, id);

	if (!r)
		r = memory_read(&memory.memory, entry->start, bytes, sizeof(bytes));
	process_memory_deinit(&memory);
	return r == MEMORY_DENIED;
}

static bool note(const struct attempt *a, const struct pid_id *id, const bool refused[READING_MAX])
{
	struct reading *reading = a->reading;
	bool any = false;

	for (size_t i = 0; i < READING_MAX; i++) {
		reading->refused[i] += refused[i];
		any |= refused[i];
	}
	if (any && !reading->example.pid) {
		reading->example.pid = id->pid;
		if (pid_read_comm(a->proc, id, reading->example.comm))
			*reading->example.comm = '\0';
	}
	return ++reading->n == READING_PROCESSES_MAX;
}

static int try_process(void *ctx, pid_t pid)
{
	_cleanup_(maps_deinit) struct maps maps = {0};
	const struct attempt *a = ctx;
	const struct maps_entry *code;
	bool refused[READING_MAX] = {true, true, true};
	struct pid_id id;
	int r = (uint64_t)pid == a->own ? PID_GONE : pid_read(a->proc, pid, &id);

	if (!r)
		r = maps_read(a->proc, &id, &maps);
	if (r == -ENOMEM)
		return r;
	if (r)
		return r == MAPS_DENIED ? note(a, &id, refused) : 0;
	code = find_code(&maps);
	if (!code) /* a kernel thread, or an ended process */
		return 0;
	refused[READING_MAPPINGS] = false;
	r = try_file(a, &id, &maps, code, &refused[READING_FILES]);
	if (r)
		return r;
	refused[READING_MEMORY] = memory_refused(a->proc, &id, code);
	return note(a, &id, refused);
}

int reading_look(const struct config *config, const struct root *proc, struct reading *ret)
{
	struct attempt attempt = {
		.config = config, .proc = proc, .own = pid_self(proc), .reading = ret};
	struct ksyms *ksyms;
	int r;

	*ret = (struct reading){0};
	r = pid_for_each(proc, try_process, &attempt);
	if (r == -ENOMEM || !config->cpu_rate || !config->kernel_stacks)
		return r == -ENOMEM ? r : 0;
	ret->ksyms = ksyms_load(proc, &ksyms);
	if (ret->ksyms)
		return ret->ksyms == -ENOMEM ? -ENOMEM : 0;
	ret->n_ksyms = ksyms_n(ksyms);
	ret->text_start = ksyms_text_start(ksyms);
	ksyms_free(ksyms);
	return 0;
}

/* ---------------------------------------------------------------- checks */

/* The probable reason and its remedy. */
static const char *remedy(const struct probe_results *results)
{
	const struct rights *rights = &results->rights;

	if (!rights_has(rights, CAP_SYS_PTRACE))
		return "see CAP_SYS_PTRACE";
	if (!rights_has(rights, CAP_DAC_READ_SEARCH))
		return "see CAP_DAC_READ_SEARCH";
	if (rights->in_namespace)
		return "see user namespace";
	if (rights_apparmor(rights))
		return "AppArmor forbids this: appArmorProfile: {type: Unconfined} (chart: "
		       "appArmorUnconfined; docker: --security-opt apparmor=unconfined)";
	if (rights->selinux)
		return "SELinux forbids this: seLinuxOptions: {type: spc_t} (the chart's default)";
	if (rights->yama == 3)
		return "sysctl kernel.yama.ptrace_scope is 3: boot the node with a lower value";
	return "a security module or a seccomp profile forbids this: allow ptrace and "
	       "process_vm_readv";
}

static void check_processes(const struct probe_results *results, struct findings *ret)
{
	static const char *const lost[READING_MAX] = {
		[READING_MAPPINGS] = "their functions have no names, and Go heaps are not read",
		[READING_FILES] = "their functions have no names",
		[READING_MEMORY] = "their Go heaps are not read",
	};
	static const char *const names[READING_MAX] = {
		[READING_MAPPINGS] = "mappings",
		[READING_FILES] = "programs",
		[READING_MEMORY] = "memory",
	};
	const bool heaps = results->config->go_heap != CONFIG_GO_HEAP_DISABLED;
	const struct reading *reading = &results->reading;

	for (size_t i = 0; i < READING_MAX; i++) {
		const bool all = reading->refused[i] == reading->n;

		if (!reading->refused[i] || (i == READING_MEMORY && !heaps))
			continue;
		finding_say(findings_add(ret, "reading processes",
					 all ? FINDING_MISSING : FINDING_DEGRADED,
					 "cannot read the %s of %zu of %zu processes, %" PRIu64
					 " %s the first",
					 names[i], reading->refused[i], reading->n,
					 reading->example.pid, reading->example.comm),
			    lost[i], remedy(results));
		return;
	}
	findings_add(ret, "reading processes", FINDING_OK, "%s of %zu others",
		     heaps ? "mappings, programs and memory" : "mappings and programs", reading->n);
}

#ifdef __x86_64__
/* The usual link address: __START_KERNEL_map and CONFIG_PHYSICAL_START. */
#define KERNEL_LINK_ADDRESS 0xffffffff81000000ull
#endif

/* Profiles have the kernel's addresses as they are. Other tools' addresses of the same kernel
 * differ by this. */
static const char *place_of(uint64_t text_start)
{
#ifdef __x86_64__
	if (text_start)
		return text_start == KERNEL_LINK_ADDRESS ? ", at their link addresses (no KASLR)"
							 : ", moved by KASLR";
#endif
	return "";
}

static void check_kernel(const struct probe_results *results, struct findings *ret)
{
	const struct reading *reading = &results->reading;
	const bool may = rights_has(&results->rights, CAP_SYSLOG);
	struct finding *finding;

	if (!results->config->cpu_rate || !results->config->kernel_stacks)
		return;
	if (!reading->ksyms) {
		findings_add(ret, "kernel symbols", FINDING_OK, "%zu%s", reading->n_ksyms,
			     place_of(reading->text_start));
		return;
	}
	if (reading->ksyms == KSYMS_HIDDEN && !may)
		return; /* rights.c reports CAP_SYSLOG */
	finding = findings_add(ret, "kernel symbols", FINDING_MISSING, "/proc/kallsyms: %s",
			       ksyms_outcome_name(reading->ksyms));
	finding_say(finding, "kernel functions have no names",
		    reading->ksyms == KSYMS_HIDDEN ? "sysctl -w kernel.kptr_restrict=1 on the node"
						   : "let podprof read /proc/kallsyms, or set "
						     "--kernel-stacks false");
}

void reading_check(const struct probe_results *results, struct findings *ret)
{
	check_processes(results, ret);
	stripped_check(results, ret);
	check_kernel(results, ret);
}
