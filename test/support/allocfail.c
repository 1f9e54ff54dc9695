// SPDX-License-Identifier: Apache-2.0
#include "support/allocfail.h"

#include <errno.h>
#include <string.h>

#include "support/test.h"

/* A function with more failing allocations never succeeds. */
#define ALLOCFAIL_ROUNDS_MAX 100000

/* Allocations until the failing one; 0: no failure. Per thread: a worker beside the test neither
 * fails nor counts. */
static _Thread_local size_t allocfail_left;
static _Thread_local bool allocfail_hit;

void allocfail_arm(size_t n)
{
	allocfail_hit = false;
	allocfail_left = n;
}

bool allocfail_disarm(void)
{
	allocfail_left = 0;
	return allocfail_hit;
}

static bool fails_now(void)
{
	if (!allocfail_left || --allocfail_left)
		return false;
	allocfail_hit = true;
	errno = ENOMEM;
	return true;
}

static size_t allocfail_loop(int (*run)(void *ctx), void *ctx, bool strict)
{
	for (size_t n = 1; n <= ALLOCFAIL_ROUNDS_MAX; n++) {
		int r;

		allocfail_arm(n);
		r = run(ctx);
		if (!allocfail_disarm()) {
			assert_int_equal(r, 0);
			assert_true(n > 1);
			return n - 1;
		}
		if (strict && r != -ENOMEM)
			fail_msg("allocation %zu failed and the result is %d", n, r);
	}
	fail_msg("still failing after %d rounds", ALLOCFAIL_ROUNDS_MAX);
	return 0;
}

size_t allocfail_each(int (*run)(void *ctx), void *ctx)
{
	return allocfail_loop(run, ctx, true);
}

size_t allocfail_survive(int (*run)(void *ctx), void *ctx)
{
	return allocfail_loop(run, ctx, false);
}

/* The linker turns a call of malloc() into __wrap_malloc(), and __real_malloc() into malloc(). */
#define WRAP(type, name, params, args)                          \
	type __real_##name params;                              \
	type __wrap_##name params;                              \
	type __wrap_##name params                               \
	{                                                       \
		return fails_now() ? NULL : __real_##name args; \
	}                                                       \
	_Static_assert(sizeof(type) == sizeof(void *), "allocators return pointers")

WRAP(void *, malloc, (size_t n), (n));
WRAP(void *, calloc, (size_t n, size_t size), (n, size));
WRAP(void *, realloc, (void *p, size_t n), (p, n));
WRAP(void *, reallocarray, (void *p, size_t n, size_t size), (p, n, size));
WRAP(char *, strdup, (const char *s), (s));
WRAP(char *, strndup, (const char *s, size_t n), (s, n));
