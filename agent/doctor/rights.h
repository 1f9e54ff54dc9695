/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_DOCTOR_RIGHTS_H
#define PODPROF_DOCTOR_RIGHTS_H

/* The rights of this process: capabilities, and other restrictions. */

#include <stdbool.h>
#include <stdint.h>

struct findings;
struct probe_results;
struct root;

/* Bytes of a security module's label with its NUL. Reached: cut. */
#define RIGHTS_LABEL_MAX 128

/**
 * struct rights
 * @known:          the kernel reports @capabilities
 * @in_namespace:   in a user namespace, where capabilities have little effect
 * @seccomp:        system calls are filtered
 * @label:          of AppArmor ("docker-default (enforce)") or SELinux ("u:r:t:s0"); "" for none
 * @selinux:        the label is of SELinux in enforcing mode
 * @yama:           kernel.yama.ptrace_scope; -1 without Yama
 * @open_files:     highest possible limit of open files
 * @locked_bytes:   highest possible RLIMIT_MEMLOCK
 */
struct rights {
	bool known;
	uint64_t capabilities;
	bool in_namespace;
	bool seccomp;
	char label[RIGHTS_LABEL_MAX];
	bool selinux;
	int yama;
	uint64_t open_files;
	uint64_t locked_bytes;
};

/* @proc is our own /proc, and not the node's. */
void rights_look(const struct root *proc, const struct root *sys, struct rights *ret);

/* CAP_SYS_ADMIN stands for some others. */
bool rights_has(const struct rights *rights, unsigned int capability);
/* By AppArmor, not as "unconfined". */
bool rights_apparmor(const struct rights *rights);

void rights_check(const struct probe_results *results, struct findings *ret);

#endif
