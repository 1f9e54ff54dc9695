/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_GOPROFILE_POLICY_H
#define PODPROF_GOPROFILE_POLICY_H

/*
 * Whether a process's Go heap is read, and whether sampling is turned on in it: by
 * --go-heap-profiler and by what its pod asks for, in the annotation podprof.io/go-heap.
 */

#include <stdbool.h>

/* The setting. */
enum go_profile_mode {
	GO_PROFILE_MODE_DISABLED,
	GO_PROFILE_MODE_ENABLED, /* read where the runtime samples already; no process is changed */
	GO_PROFILE_MODE_FORCE_ANNOTATED, /* turn sampling on in pods that ask for it */
	GO_PROFILE_MODE_FORCE,		 /* and in all others, unless they refuse */
	GO_PROFILE_MODE_MAX,
};

/* The annotation's name, podprof.io/go-heap, as entities have it among their settings. */
#define GO_PROFILE_WISH_SETTING "go_heap"

/* And what it says. */
enum go_profile_wish {
	GO_PROFILE_WISH_NONE,	 /* no such annotation, no pod, or a word that we do not know */
	GO_PROFILE_WISH_PENDING, /* nothing is known of the pod yet: it may refuse */
	GO_PROFILE_WISH_DISABLED,
	GO_PROFILE_WISH_ENABLED,
	GO_PROFILE_WISH_FORCE,
	GO_PROFILE_WISH_MAX,
};

/* "disabled", "enabled", "force"; NULL and all others are GO_PROFILE_WISH_NONE. */
enum go_profile_wish go_profile_wish_parse(const char *annotation);

struct go_profile_want {
	bool read;
	bool force;
};

struct go_profile_want go_profile_policy(enum go_profile_mode mode, enum go_profile_wish wish);

struct entity;

/* What an entity's pod asks for. */
typedef enum go_profile_wish (*go_profile_wish_fn)(void *ctx, const struct entity *entity);

/* Of one that is left out nothing is wanted. @wish: NULL: nobody asks for anything. */
struct go_profile_want go_profile_policy_of(enum go_profile_mode mode, go_profile_wish_fn wish,
					    void *ctx, const struct entity *entity);

#endif
