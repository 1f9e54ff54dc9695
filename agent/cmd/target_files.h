/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_CMD_TARGET_FILES_H
#define PODPROF_CMD_TARGET_FILES_H

/*
 * The mapped files of processes that do not answer: 'podprof inspect targets' opens them as the
 * agent does, on a thread that can be abandoned. A process may be left behind with a blocked
 * thread, so the caller runs under supervise().
 */

#include <stddef.h>
#include <stdint.h>

#include "base/nsec.h"
#include "discovery/pid.h"
#include "procmap/address_space.h"

struct loop;
struct root;
struct target_files;

/* The longest look at all files. A silent file system takes OPENER_STUCK_NS of it, a thousand
 * programs a second. Reached: the other files are not looked at, and the command says so. */
#define TARGET_FILES_MAX_NS (20 * NSEC_PER_SEC)

/* @proc is borrowed. 0 or -errno. */
int target_files_new(struct loop *loop, const struct root *proc, struct target_files **ret);
/* NULL is fine. */
void target_files_free(struct target_files *files);
/* Before the look. @owner: as in struct address_space_who. 0 or -ENOMEM. */
int target_files_add(struct target_files *files, const struct pid_id *pid, uint64_t owner);
/* Runs the loop until each file is open, has failed or is slow, or for TARGET_FILES_MAX_NS. @ret_n:
 * lists and files that were not looked at. 0 or -errno. */
int target_files_look(struct target_files *files, size_t *ret_n);
/* Calls @fn for each process in which something does not answer. */
void target_files_slow(const struct target_files *files, address_space_slow_fn fn, void *ctx);

#endif
