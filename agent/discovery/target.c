// SPDX-License-Identifier: Apache-2.0
#include "discovery/target.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/nsec.h"
#include "discovery/entity.h"

/* Processes: a large node has 9000, and as many again may have left in the last two minutes. At 210
 * bytes each this is 13 MiB. One more is TARGET_TOO_MANY: it is looked up each time instead.
 * Reached: `podprof_targets`; looked up each time instead. */
#define TARGETS_MAX 65536

struct target_table {
	struct target *targets;
	struct target *by_pid;
	uint64_t n_refused;
};

int target_table_new(struct target_table **ret)
{
	struct target_table *table = calloc(1, sizeof(*table));

	if (!table)
		return -ENOMEM;
	*ret = table;
	return 0;
}

struct target *target_of_pid(struct target_table *table, uint64_t pid)
{
	struct target *target;

	HASH_FIND(by_pid, table->by_pid, &pid, sizeof(pid), target);
	return target;
}

static void target_drop(struct target_table *table, struct target *target)
{
	HASH_DELETE(hh, table->targets, target);
	if (target_of_pid(table, target->id.pid) == target)
		HASH_DELETE(by_pid, table->by_pid, target);
	entity_unref(target->entity);
	free(target);
}

void target_table_free(struct target_table *table)
{
	struct target *target, *next;

	if (!table)
		return;
	HASH_ITER(hh, table->targets, target, next)
		target_drop(table, target);
	free(table);
}

struct target *target_find(struct target_table *table, const struct pid_id *id)
{
	struct target *target;

	HASH_FIND(hh, table->targets, id, sizeof(*id), target);
	return target;
}

/* From now on it is the one with its number. */
static int target_index(struct target_table *table, struct target *target)
{
	struct target *former = target_of_pid(table, target->id.pid);
	bool hash_oom = false;

	if (former)
		HASH_DELETE(by_pid, table->by_pid, former);
	HASH_ADD(by_pid, table->by_pid, id.pid, sizeof(target->id.pid), target);
	return hash_oom ? -ENOMEM : 0;
}

static int target_new(struct target_table *table, const struct pid_id *id, struct target **ret)
{
	_cleanup_(freep) struct target *target = NULL;
	bool hash_oom = false;

	if (HASH_COUNT(table->targets) >= TARGETS_MAX) {
		table->n_refused++;
		return TARGET_TOO_MANY;
	}
	target = calloc(1, sizeof(*target));
	if (!target)
		return -ENOMEM;
	target->id = *id;
	HASH_ADD(hh, table->targets, id, sizeof(target->id), target);
	if (hash_oom)
		return -ENOMEM;
	if (target_index(table, target)) {
		HASH_DELETE(hh, table->targets, target);
		return -ENOMEM;
	}
	*ret = take_ptr(target);
	return 0;
}

int target_set(struct target_table *table, const struct pid_id *id, struct entity *entity,
	       struct target **ret)
{
	struct target *target = target_find(table, id);
	struct entity *old;
	int r;

	if (!target) {
		r = target_new(table, id, &target);
		if (r)
			return r;
	}
	old = target->entity;
	target->entity = entity ? entity_ref(entity) : NULL;
	entity_unref(old);
	target->used_ns = nsec_monotonic();
	*ret = target;
	return 0;
}

void target_expire(struct target_table *table, uint64_t age_ns)
{
	uint64_t now = nsec_monotonic();
	struct target *target, *next;

	HASH_ITER(hh, table->targets, target, next)
		if (now - target->used_ns > age_ns)
			target_drop(table, target);
}

struct target *target_next(struct target_table *table, const struct target *target)
{
	return target ? target->hh.next : table->targets;
}

uint64_t target_n_refused(const struct target_table *table)
{
	return table->n_refused;
}
