/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_PROFILE_KERNEL_H
#define PODPROF_PROFILE_KERNEL_H

/* The kernel's version, and what BPF programs cannot safely do there. */

#include <stdbool.h>
#include <stdint.h>

struct root;

/* The upstream version of the kernel's sources, without patches of the distribution: 6.1.36. */
struct kernel_version {
	uint32_t major;
	uint32_t minor;
	uint32_t patch;
	bool realtime; /* PREEMPT_RT */
};

/**
 * kernel_version_parse() - the upstream version from the kernel's version strings
 * @release:   uname -r: "6.1.0-9-amd64"
 * @version:   uname -v: "#1 SMP PREEMPT_DYNAMIC Debian 6.1.27-1 (2023-05-08)"
 * @signature: /proc/version_signature of Ubuntu: "Ubuntu 6.2.0-39.40-generic 6.2.16"; or ""
 *
 * Debian and Ubuntu put 0 in place of the patch level in @release.
 *
 * Return: false if @release does not begin with two numbers.
 */
bool kernel_version_parse(const char *release, const char *version, const char *signature,
			  struct kernel_version *ret);
/* The same for the running kernel. @proc: /proc; NULL: Ubuntu's signature is not read. */
bool kernel_version_here(const struct root *proc, struct kernel_version *ret);

bool kernel_is_before(const struct kernel_version *v, uint32_t major, uint32_t minor);

/* Whether a read of user memory in an interrupt can hang a CPU (kernel.c). */
bool kernel_may_hang(const struct kernel_version *v);
/* Whether a write to a BPF ring buffer may sleep in an interrupt (kernel.c). */
bool kernel_ring_may_sleep(const struct kernel_version *v);

#endif
