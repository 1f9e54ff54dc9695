/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_EXPORT_REWRITE_H
#define PODPROF_EXPORT_REWRITE_H

/* A queued profile in the form of one backend: for the encoders of kinds. All functions return 0,
 * -ENOMEM, or -EBADMSG for a damaged or too large profile. */

#include <stdbool.h>
#include <stddef.h>

struct buf;
struct destination_profile;
struct pprof_tables;
struct projection;
struct reader;

/* Bytes of a profile before and after. Reached: the profile is dropped as rejected. */
#define REWRITE_BYTES_MAX (8u << 20)

int rewrite_read(const struct destination_profile *p, struct reader **ret);
/* Append a projection. */
int rewrite_project(const struct pprof_tables *t, const struct projection *projection,
		    struct buf *ret);
/**
 * struct rewrite - the parts to leave out
 * @placeholders: "libx.so+0x12", of frames that a server may name: their locations have no line
 *                then, and a mapping with a build id
 * @whole_mappings: such a mapping becomes the whole address space, 0 to 0
 * @thread_names: the labels PROFILE_THREAD and PROFILE_TASK. Samples that are equal then become one
 */
struct rewrite {
	bool placeholders;
	bool whole_mappings;
	bool thread_names;
};

/* Append the profile without these parts. Appends nothing if there are none. */
int rewrite_without(const struct destination_profile *p, const struct rewrite *what,
		    struct buf *ret);

#endif
