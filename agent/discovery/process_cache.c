// SPDX-License-Identifier: Apache-2.0
#include "discovery/process_cache.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/nsec.h"
#include "discovery/entity.h"

/* Processes: a large node has 9,000, and as many again may have ended in the last two minutes. At
 * 210 bytes each this is 13 MiB. Beyond: PROCESS_CACHE_TOO_MANY, and each lookup starts afresh.
 * Reached: `podprof_targets`; looked up each time instead. */
#define PROCESS_CACHE_MAX 65536

struct process_cache {
	struct cached_process *processes;
	struct cached_process *by_pid;
};

int process_cache_new(struct process_cache **ret)
{
	struct process_cache *cache = calloc(1, sizeof(*cache));

	if (!cache)
		return -ENOMEM;
	*ret = cache;
	return 0;
}

struct cached_process *process_cache_of_pid(struct process_cache *cache, uint64_t pid)
{
	struct cached_process *process;

	HASH_FIND(by_pid, cache->by_pid, &pid, sizeof(pid), process);
	return process;
}

static void process_cache_drop(struct process_cache *cache, struct cached_process *process)
{
	HASH_DELETE(hh, cache->processes, process);
	if (process_cache_of_pid(cache, process->id.pid) == process)
		HASH_DELETE(by_pid, cache->by_pid, process);
	entity_unref(process->entity);
	free(process);
}

void process_cache_free(struct process_cache *cache)
{
	struct cached_process *process, *next;

	if (!cache)
		return;
	HASH_ITER(hh, cache->processes, process, next)
		process_cache_drop(cache, process);
	free(cache);
}

struct cached_process *process_cache_find(struct process_cache *cache, const struct pid_id *id)
{
	struct cached_process *process;

	HASH_FIND(hh, cache->processes, id, sizeof(*id), process);
	return process;
}

static int process_cache_add(struct process_cache *cache, const struct pid_id *id,
			     struct cached_process **ret)
{
	_cleanup_(freep) struct cached_process *process = NULL;
	struct cached_process *former;
	bool hash_oom = false;

	if (HASH_COUNT(cache->processes) >= PROCESS_CACHE_MAX)
		return PROCESS_CACHE_TOO_MANY;
	process = calloc(1, sizeof(*process));
	if (!process)
		return -ENOMEM;
	process->id = *id;
	HASH_ADD(hh, cache->processes, id, sizeof(process->id), process);
	if (hash_oom)
		return -ENOMEM;
	/* the newest entry of its pid */
	former = process_cache_of_pid(cache, process->id.pid);
	if (former)
		HASH_DELETE(by_pid, cache->by_pid, former);
	HASH_ADD(by_pid, cache->by_pid, id.pid, sizeof(process->id.pid), process);
	if (hash_oom) {
		HASH_DELETE(hh, cache->processes, process);
		return -ENOMEM;
	}
	*ret = take_ptr(process);
	return 0;
}

int process_cache_set(struct process_cache *cache, const struct pid_id *id, struct entity *entity,
		      struct cached_process **ret)
{
	struct cached_process *process = process_cache_find(cache, id);
	struct entity *old;
	int r;

	if (!process) {
		r = process_cache_add(cache, id, &process);
		if (r)
			return r;
	}
	old = process->entity;
	process->entity = entity ? entity_ref(entity) : NULL;
	entity_unref(old);
	process->used_ns = nsec_monotonic();
	*ret = process;
	return 0;
}

void process_cache_expire(struct process_cache *cache, uint64_t age_ns)
{
	uint64_t now = nsec_monotonic();
	struct cached_process *process, *next;

	HASH_ITER(hh, cache->processes, process, next)
		if (now - process->used_ns > age_ns)
			process_cache_drop(cache, process);
}

struct cached_process *process_cache_next(struct process_cache *cache,
					  const struct cached_process *process)
{
	return process ? process->hh.next : cache->processes;
}
