/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_GOPROFILE_MODE_H
#define PODPROF_GOPROFILE_MODE_H

/*
 * Whether a process's Go heap is read, and whether sampling is turned on in it: by
 * --go-heap-profiler and by what its pod asks for, in the annotation podprof.io/go-heap.
 */

#include <stdbool.h>

/* The setting. */
enum heap_mode {
	HEAP_MODE_DISABLED,
	HEAP_MODE_ENABLED, /* read where the runtime samples already; no process is changed */
	HEAP_MODE_FORCE_ANNOTATED, /* turn sampling on in pods that ask for it */
	HEAP_MODE_FORCE,	   /* and in all others, unless they refuse */
	HEAP_MODE_MAX,
};

/* The annotation's name, podprof.io/go-heap, as owners have it among their settings. */
#define HEAP_WISH_SETTING "go_heap"

/* And what it says. */
enum heap_wish {
	HEAP_WISH_NONE,	   /* no such annotation, no pod, or a word that we do not know */
	HEAP_WISH_PENDING, /* nothing is known of the pod yet: it may refuse */
	HEAP_WISH_DISABLED,
	HEAP_WISH_ENABLED,
	HEAP_WISH_FORCE,
	HEAP_WISH_MAX,
};

/* "disabled", "enabled", "force"; NULL and all others are HEAP_WISH_NONE. */
enum heap_wish heap_wish_parse(const char *annotation);

struct heap_want {
	bool read;
	bool force;
};

struct heap_want heap_mode_want(enum heap_mode mode, enum heap_wish wish);

struct owner;

/* What an owner's pod asks for. */
typedef enum heap_wish (*heap_wish_fn)(void *ctx, const struct owner *owner);

/* Of one that is left out nothing is wanted. @wish: NULL: nobody asks for anything. */
struct heap_want heap_mode_want_of(enum heap_mode mode, heap_wish_fn wish, void *ctx,
				   const struct owner *owner);

#endif
