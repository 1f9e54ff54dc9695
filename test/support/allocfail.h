/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_TEST_SUPPORT_ALLOCFAIL_H
#define PODPROF_TEST_SUPPORT_ALLOCFAIL_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Allocations fail on demand. Every test program is linked with --wrap for the allocating functions
 * (ALLOC_WRAP in the Makefile), so calls from podprof's own code come here. Calls inside shared
 * libraries do not.
 *
 *	static int build(void *ctx)
 *	{
 *		_cleanup_(labels_deinit) struct labels l = {0};
 *
 *		return labels_set(&l, "pod", ctx);
 *	}
 *	...
 *	allocfail_each(build, "web-0");
 */

/* The @n-th allocation of this thread from now on fails, once; 1 is the next one. */
void allocfail_arm(size_t n);
/* Back to normal. True if the failure has happened. */
bool allocfail_disarm(void);

/* Call @run with its first, second, ... allocation failing, until @run succeeds. After a failure
 * @run must return -ENOMEM, and 0 the last time; ASan finds leaks. Returns the number of
 * allocations, never 0. */
size_t allocfail_each(int (*run)(void *ctx), void *ctx);
/* The same for a function with a fallback: any result is right, a crash is not. */
size_t allocfail_survive(int (*run)(void *ctx), void *ctx);

#endif
