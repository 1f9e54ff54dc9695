/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_LATEPROFILES_H
#define PODPROF_LATEPROFILES_H

/* Finished profiles without labels, until their owners have their names. */

#include <stddef.h>
#include <stdint.h>

#include "export/export.h"

struct late_profiles;
struct loop;
struct owner;

/* Bytes of profiles that wait: one more, and the one that has waited longest goes as it is. */
#define LATE_PROFILES_BYTES_MAX ((size_t)8 << 20)

/* What is borrowed must outlive it. @out takes a profile with its owner's labels. */
struct late_profiles_opts {
	struct loop *loop;
	void (*out)(void *ctx, struct profile *profile);
	void *ctx;
};

int late_profiles_new(const struct late_profiles_opts *opts, struct late_profiles **ret);
/* Those that wait are dropped. */
void late_profiles_free(struct late_profiles *late);

/* Takes @profile, which has no labels; a reference to the owner is its own. Out at once if the
 * owner is not pending; dropped if it is not to be profiled. 0 or -ENOMEM: it is dropped. */
int late_profiles_add(struct late_profiles *late, struct owner *owner, struct profile *profile);
/* From now on nothing waits longer than this. */
void late_profiles_hurry(struct late_profiles *late, uint64_t wait_ns);
size_t late_profiles_pending(const struct late_profiles *late);

#endif
