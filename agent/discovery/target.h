/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_DISCOVERY_TARGET_H
#define PODPROF_DISCOVERY_TARGET_H

/* Processes and whose they are, for those where that took more than a look into the table of
 * cgroups, or that were listed. */

#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "discovery/pid.h"

struct entity;
struct target_table;

/**
 * struct target - one process
 * @entity:  a reference; NULL for a process whose samples are left out
 * @comm:    its name when the entity was found
 * @cgroup:  ids by enum hierarchy that this answer is for; 0 where it was listed
 * @used_ns: monotonic; when it was last asked for or listed
 * @listing: number of the last listing that had it
 * @inode:   pid_inode() then; 0 where it is not known
 */
struct target {
	struct pid_id id;
	struct entity *entity;
	char comm[PID_COMM_MAX];
	uint64_t cgroup[2];
	uint64_t used_ns;
	uint32_t listing;
	uint64_t inode;
	UT_hash_handle hh;
	UT_hash_handle by_pid; /* of those with the same number the last one */
};

int target_table_new(struct target_table **ret);
void target_table_free(struct target_table *table);

/* NULL if there is none. */
struct target *target_find(struct target_table *table, const struct pid_id *id);

/* The one that had this number last; NULL if there is none. */
struct target *target_of_pid(struct target_table *table, uint64_t pid);

enum target_outcome {
	TARGET_OK = 0,
	TARGET_TOO_MANY, /* the table's ceiling; counted by the table */
};

/* Set the entity of a process (a reference is taken). 0, TARGET_TOO_MANY, -ENOMEM. */
int target_set(struct target_table *table, const struct pid_id *id, struct entity *entity,
	       struct target **ret);

/* Drop what was not used for @age_ns. */
void target_expire(struct target_table *table, uint64_t age_ns);

/* @target is NULL to start; NULL at the end. */
struct target *target_next(struct target_table *table, const struct target *target);
uint64_t target_n_refused(const struct target_table *table);

#endif
