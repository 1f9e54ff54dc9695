/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_DISCOVERY_PROCESS_CACHE_H
#define PODPROF_DISCOVERY_PROCESS_CACHE_H

/* Processes and whose they are, for those where that took more than a look into the table of
 * cgroups, or that were listed. */

#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "discovery/pid.h"

struct entity;
struct process_cache;

/**
 * struct cached_process - one process
 * @entity:      a reference; NULL for a process whose samples are left out
 * @comm:        its name when the entity was found
 * @cgroup:      ids by enum hierarchy that this answer is for; 0 where it was listed
 * @used_ns:     monotonic; when it was last asked for or listed
 * @list_number: number of the last listing that had it
 * @inode:       pid_inode() then; 0 where it is not known
 */
struct cached_process {
	struct pid_id id;
	struct entity *entity;
	char comm[PID_COMM_MAX];
	uint64_t cgroup[2];
	uint64_t used_ns;
	uint32_t list_number;
	uint64_t inode;
	UT_hash_handle hh;
	UT_hash_handle by_pid; /* of those with the same number the last one */
};

int process_cache_new(struct process_cache **ret);
void process_cache_free(struct process_cache *cache);

/* NULL if there is none. */
struct cached_process *process_cache_find(struct process_cache *cache, const struct pid_id *id);

/* The one that had this number last; NULL if there is none. */
struct cached_process *process_cache_of_pid(struct process_cache *cache, uint64_t pid);

enum process_cache_outcome {
	PROCESS_CACHE_OK = 0,
	PROCESS_CACHE_TOO_MANY, /* the cache's ceiling; counted by the cache */
};

/* Set the entity of a process (a reference is taken). 0, PROCESS_CACHE_TOO_MANY, -ENOMEM. */
int process_cache_set(struct process_cache *cache, const struct pid_id *id, struct entity *entity,
		      struct cached_process **ret);

/* Drop what was not used for @age_ns. */
void process_cache_expire(struct process_cache *cache, uint64_t age_ns);

/* @process is NULL to start; NULL at the end. */
struct cached_process *process_cache_next(struct process_cache *cache,
					  const struct cached_process *process);
uint64_t process_cache_n_refused(const struct process_cache *cache);

#endif
