/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_TEST_SUPPORT_ALLOCFAIL_H
#define PODPROF_TEST_SUPPORT_ALLOCFAIL_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Memory that runs out on demand. Every test program is linked with --wrap for the allocating
 * functions (ALLOC_WRAP in the Makefile), so calls made by our own code come through here; calls
 * made inside shared libraries do not.
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

/* Call @run with its first, second, ... allocation failing until it gets through. Each time one
 * fails @run must return -ENOMEM, the last time 0; leaks are ASan's to find. Returns the number of
 * allocations, which is never 0. */
size_t allocfail_each(int (*run)(void *ctx), void *ctx);
/* The same for a function that may also make do without: any result is right, crashing is not. */
size_t allocfail_survive(int (*run)(void *ctx), void *ctx);

#endif
