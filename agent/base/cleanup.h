/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_BASE_CLEANUP_H
#define PODPROF_BASE_CLEANUP_H

/*
 * Scope guards: a variable declared with _cleanup_(f) is passed to f(&variable) at the end of its
 * scope, on every path. take_ptr() and take_fd() return the value and empty the variable, so the
 * guard finds nothing to do.
 */

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define _cleanup_(f) __attribute__((cleanup(f)))

/* Define @name(), a guard for variables of the pointer type @type. @fn must accept NULL. */
#define DEFINE_CLEANUP(type, name, fn)                           \
	static inline __attribute__((unused)) void name(type *p) \
	{                                                        \
		fn(*p);                                          \
	}                                                        \
	_Static_assert(sizeof(type) == sizeof(void *), "a guard holds a pointer")

#define take_ptr(p)                          \
	({                                   \
		__typeof__(p) *_take = &(p); \
		__typeof__(p) _was = *_take; \
		*_take = NULL;               \
		_was;                        \
	})

#define take_fd(fd)                 \
	({                          \
		int *_take = &(fd); \
		int _was = *_take;  \
		*_take = -1;        \
		_was;               \
	})

static inline void freep(void *p)
{
	free(*(void **)p);
}

static inline void close_fdp(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

static inline void closedirp(DIR **dir)
{
	if (*dir)
		closedir(*dir);
}

static inline void fclosep(FILE **file)
{
	if (*file)
		fclose(*file);
}

#define array_size(a) (sizeof(a) / sizeof((a)[0]))

#define container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

#endif
