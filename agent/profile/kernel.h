/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_PROFILE_KERNEL_H
#define PODPROF_PROFILE_KERNEL_H

/* Which kernel this is, and whether BPF programs may read user memory in it. */

#include <stdbool.h>
#include <stdint.h>

struct root;

/* Of the sources it was built from, distributions' own patches aside: 6.1.36. */
struct kernel_version {
	uint32_t major;
	uint32_t minor;
	uint32_t patch;
};

/**
 * kernel_version_parse() - out of what a kernel says of itself
 * @release:   uname -r: "6.1.0-9-amd64"
 * @version:   uname -v: "#1 SMP PREEMPT_DYNAMIC Debian 6.1.27-1 (2023-05-08)"
 * @signature: /proc/version_signature, which Ubuntu has: "Ubuntu 6.2.0-39.40-generic 6.2.16"; or ""
 *
 * Debian's and Ubuntu's releases have a 0 where others have the patch level.
 *
 * Return: false if @release does not begin with two numbers.
 */
bool kernel_version_parse(const char *release, const char *version, const char *signature,
			  struct kernel_version *ret);
/* The same for the running one. @proc: /proc; NULL, and Ubuntu's signature is not read. */
bool kernel_version_here(const struct root *proc, struct kernel_version *ret);

bool kernel_is_before(const struct kernel_version *v, uint32_t major, uint32_t minor);

/* Whether reading user memory in an interrupt may hang a CPU (kernel.c). */
bool kernel_may_hang(const struct kernel_version *v);

#endif
