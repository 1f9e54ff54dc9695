// SPDX-License-Identifier: Apache-2.0
/*
 * Some kernels may hang when a BPF program reads user memory. A copy from user space checks its
 * destination (CONFIG_HARDENED_USERCOPY, set in all distributions). Since 5.19 (0aef499f3172) the
 * check looks up a destination in vmalloc memory, under a spin lock taken with interrupts on. A
 * sample is an interrupt: if the interrupted code holds the lock, the CPU hangs. Fixed in 6.4
 * (d319f344561d: no lookup with page faults off), 6.3.10 and 6.1.36; 5.19, 6.0 and 6.2 had no
 * further release.
 *
 * Our programs read into kmalloc memory (bpf/lib/stack.bpf.h), for which the check takes no lock.
 * The hang becomes unlikely but not impossible: without room for kmalloc, the kernel silently uses
 * vmalloc memory for a map. So podprof refuses these kernels unless the user insists.
 *
 * A write to a ring buffer takes a spin lock. With PREEMPT_RT the lock sleeps, which is forbidden
 * in the sample's interrupt. Since 8b62645b09f8 the lock spins there, too: certainly in 6.13.
 *
 * The decision is by version, so a kernel that a distribution has fixed by its own patch is
 * refused, too. The fix is one condition inside a function, and is not visible from outside.
 */
#include "profile/kernel.h"

#include <string.h>
#include <sys/utsname.h>

#include "base/buf.h"
#include "base/root.h"
#include "base/strview.h"

/* "6.1.27-1" and the like: two numbers or three, and then anything. */
static bool take_version(struct strview t, struct kernel_version *ret)
{
	uint64_t major, minor, patch = 0;

	if (!strview_u64(&t, 10, &major) || !strview_char(&t, '.') || !strview_u64(&t, 10, &minor))
		return false;
	if (strview_char(&t, '.') && !strview_u64(&t, 10, &patch))
		return false;
	if (major > UINT32_MAX || minor > UINT32_MAX || patch > UINT32_MAX)
		return false;
	*ret = (struct kernel_version){(uint32_t)major, (uint32_t)minor, (uint32_t)patch, false};
	return true;
}

/* The word after "Debian". */
static bool debian_version(const char *version, struct kernel_version *ret)
{
	struct strview t = strview_of(version), word;

	while (strview_word(&t, &word))
		if (strview_is(&word, "Debian"))
			return strview_word(&t, &word) && take_version(word, ret);
	return false;
}

/* The third and last word. */
static bool ubuntu_version(const char *signature, struct kernel_version *ret)
{
	struct strview all = strview_of(signature), line, word;

	return strview_line(&all, &line) && strview_word(&line, &word) &&
	       strview_is(&word, "Ubuntu") && strview_word(&line, &word) &&
	       strview_word(&line, &word) && take_version(word, ret);
}

bool kernel_version_parse(const char *release, const char *version, const char *signature,
			  struct kernel_version *ret)
{
	struct kernel_version base, other;

	if (!take_version(strview_of(release), &base))
		return false;
	base.realtime = strstr(version, "PREEMPT_RT") || strstr(version, "PREEMPT RT");
	*ret = base;
	if ((debian_version(version, &other) || ubuntu_version(signature, &other)) &&
	    other.major == base.major && other.minor == base.minor)
		ret->patch = other.patch;
	return true;
}

bool kernel_version_here(const struct root *proc, struct kernel_version *ret)
{
	struct buf signature = BUF_INIT(256);
	struct utsname name;
	bool ok;

	if (uname(&name) < 0)
		return false;
	if (proc)
		(void)root_read(proc, "version_signature", &signature); /* only Ubuntu has it */
	ok = kernel_version_parse(name.release, name.version, signature.data ? signature.data : "",
				  ret);
	buf_deinit(&signature);
	return ok;
}

bool kernel_is_before(const struct kernel_version *v, uint32_t major, uint32_t minor)
{
	return v->major < major || (v->major == major && v->minor < minor);
}

bool kernel_may_hang(const struct kernel_version *v)
{
	if (kernel_is_before(v, 5, 19) || !kernel_is_before(v, 6, 4))
		return false;
	if (v->major == 6 && v->minor == 1)
		return v->patch < 36;
	if (v->major == 6 && v->minor == 3)
		return v->patch < 10;
	return true;
}

bool kernel_ring_may_sleep(const struct kernel_version *v)
{
	return v->realtime && kernel_is_before(v, 6, 13);
}
