/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_PPROF_UNNAMED_H
#define PODPROF_PPROF_UNNAMED_H

/*
 * Why functions of a profile have no names: a comment for each image,
 *
 *	unnamed 34.1% stripped_no_debug /usr/lib/libfoo.so
 *
 * with the share of the value of samples that have a frame without a name there, the reason, and
 * the path. pprof shows comments as they are.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/strview.h"

struct buf;

/* Such comments of one profile, the largest shares. Reached: left out. */
#define UNNAMED_COMMENTS_MAX 8
/* Bytes of a reason with the NUL. Reached: the comment is an ordinary one. */
#define UNNAMED_REASON_MAX   32

/* @per_mille: the share. @reason, @path: borrowed. */
struct unnamed {
	uint32_t per_mille;
	struct strview reason;
	struct strview path;
};

/* Appends the comment. 0, BUF_FULL, -ENOMEM. */
int unnamed_format(const struct unnamed *u, struct buf *ret);
/* False for any other comment. @ret borrows. */
bool unnamed_parse(const char *comment, struct unnamed *ret);

#endif
