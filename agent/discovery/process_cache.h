/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_DISCOVERY_PROCESS_CACHE_H
#define PODPROF_DISCOVERY_PROCESS_CACHE_H

/* The table from a process to its entity, for processes from listings, and for processes whose
 * lookup needed more than the table of cgroups. */

#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "discovery/pid.h"

struct entity;
struct process_cache;

/**
 * struct cached_process - one process
 * @entity:      a reference; NULL for a process whose samples are filtered out
 * @comm:        the name at the time of the lookup
 * @cgroup:      the cgroup ids of the lookup, by enum hierarchy; 0 for an entry from a listing
 * @used_ns:     monotonic; time of the last lookup or listing
 * @list_number: number of the last listing with this process
 * @inode:       pid_inode() at that time; 0 if unknown
 * @program:     hash of the path of its program at that time, for a process outside of containers;
 *               else 0
 */
struct cached_process {
	struct pid_id id;
	struct entity *entity;
	char comm[PID_COMM_MAX];
	uint64_t cgroup[2];
	uint64_t used_ns;
	uint32_t list_number;
	uint64_t inode;
	uint64_t program;
	UT_hash_handle hh;
	UT_hash_handle by_pid; /* of several entries with the same pid, the newest */
};

int process_cache_new(struct process_cache **ret);
void process_cache_free(struct process_cache *cache);

/* NULL: not in the cache. */
struct cached_process *process_cache_find(struct process_cache *cache, const struct pid_id *id);

/* The newest entry with this pid; NULL for none. */
struct cached_process *process_cache_of_pid(struct process_cache *cache, uint64_t pid);

enum process_cache_outcome {
	PROCESS_CACHE_OK = 0,
	PROCESS_CACHE_TOO_MANY, /* the cache is full; counted by the cache */
};

/* Sets the entity of a process; the cache takes a reference of its own. *@ret: borrowed from the
 * cache. 0, PROCESS_CACHE_TOO_MANY, -ENOMEM. */
int process_cache_set(struct process_cache *cache, const struct pid_id *id, struct entity *entity,
		      struct cached_process **ret);

/* Drops entries without use for @age_ns. */
void process_cache_expire(struct process_cache *cache, uint64_t age_ns);

/* @process is NULL to start; NULL at the end. */
struct cached_process *process_cache_next(struct process_cache *cache,
					  const struct cached_process *process);

#endif
