/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_GOPROFILE_POLICY_H
#define PODPROF_GOPROFILE_POLICY_H

/*
 * Decides whether podprof reads a process's Go heap and turns sampling on in the process: by
 * --go-heap-profiler and by the pod's annotation podprof.io/go-heap.
 */

#include <stdbool.h>

/* The setting. */
enum go_profile_mode {
	GO_PROFILE_MODE_DISABLED,
	GO_PROFILE_MODE_ENABLED,	 /* read runtimes with sampling on; change no process */
	GO_PROFILE_MODE_FORCE_ANNOTATED, /* turn sampling on in pods with the annotation "force" */
	GO_PROFILE_MODE_FORCE,		 /* also in all others, unless they refuse */
	GO_PROFILE_MODE_MAX,
};

/* The name of the annotation podprof.io/go-heap in the settings of an entity. */
#define GO_PROFILE_WISH_SETTING "go_heap"

/* The value of the annotation. */
enum go_profile_wish {
	GO_PROFILE_WISH_NONE,	 /* no annotation, no pod, or an unknown word */
	GO_PROFILE_WISH_PENDING, /* the pod is still unknown and may refuse */
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

/* The annotation of an entity's pod. */
typedef enum go_profile_wish (*go_profile_wish_fn)(void *ctx, const struct entity *entity);

/* Neither read nor force for an excluded entity. @wish: NULL: no annotations. */
struct go_profile_want go_profile_policy_of(enum go_profile_mode mode, go_profile_wish_fn wish,
					    void *ctx, const struct entity *entity);

#endif
