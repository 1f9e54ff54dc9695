// SPDX-License-Identifier: Apache-2.0
/*
 * The naming module asks for each container once a second during its life. Unknown containers are
 * tried again after 0.25 s, 0.5 s, 1 s and so on, at most 10 s, as long as requests arrive. The
 * number of attempts has no ceiling: a kubelet may learn of a container some seconds late, and a
 * fixed number would leave such a container without a name for ever. The runtimes' state on disk is
 * read at growing intervals up to 10 minutes: a node may have any number of containers that no
 * runtime knows.
 */
#include "metadata/lookup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

static void lookup_free(struct lookup *lookup)
{
	if (!lookup)
		return;
	container_free(lookup->state);
	free(lookup);
}
DEFINE_CLEANUP(struct lookup *, lookup_freep, lookup_free);

void lookups_deinit(struct lookups *lookups)
{
	struct lookup *lookup, *next;

	HASH_ITER(hh, lookups->by_id, lookup, next) {
		HASH_DELETE(hh, lookups->by_id, lookup);
		lookup_free(lookup);
	}
}

static int lookup_new(const char *id, const char *pod_uid, uint64_t now_ns, struct lookup **ret)
{
	size_t n = strlen(id) + 1, m = strlen(pod_uid) + 1;
	struct lookup *lookup = calloc(1, sizeof(*lookup) + n + m);

	if (!lookup)
		return -ENOMEM;
	memcpy(lookup->text, id, n);
	memcpy(lookup->text + n, pod_uid, m);
	lookup->id = lookup->text;
	lookup->pod_uid = lookup->text + n;
	lookup->missing = true;
	lookup->first_ns = now_ns;
	lookup->asked_ns = now_ns;
	lookup->due_ns = now_ns;
	lookup->read_ns = now_ns;
	lookup->wait_ns = LOOKUP_FIRST_NS;
	lookup->read_wait_ns = LOOKUP_FIRST_NS;
	*ret = lookup;
	return 0;
}

const struct lookup *lookups_find(const struct lookups *lookups, const char *id)
{
	const struct lookup *lookup;

	HASH_FIND(hh, lookups->by_id, id, strlen(id), lookup);
	return lookup;
}

/* @fresh is of the same container as @old, with its pod: @old leaves the table. */
static void succeed(struct lookups *lookups, struct lookup *old, struct lookup *fresh)
{
	fresh->state = take_ptr(old->state);
	fresh->outcome = old->outcome;
	fresh->first_ns = old->first_ns;
	fresh->round = old->round;
	HASH_DELETE(hh, lookups->by_id, old);
	lookup_free(old);
}

int lookups_ask(struct lookups *lookups, const char *id, const char *pod_uid, uint64_t now_ns,
		struct lookup **ret)
{
	/* Without an id, the pod's UID is the key. */
	const char *key = *id ? id : pod_uid;
	_cleanup_(lookup_freep) struct lookup *fresh = NULL;
	struct lookup *lookup;
	bool hash_oom = false, is_new;
	int r;

	HASH_FIND(hh, lookups->by_id, key, strlen(key), lookup);
	is_new = !lookup;
	if (lookup && (*lookup->pod_uid || !*pod_uid)) {
		lookup->asked_ns = now_ns;
		*ret = lookup;
		return 0;
	}
	if (is_new && HASH_COUNT(lookups->by_id) >= LOOKUPS_MAX)
		return LOOKUP_FULL;
	r = lookup_new(id, pod_uid, now_ns, &fresh);
	if (r)
		return r;
	if (!is_new)
		succeed(lookups, lookup, fresh);
	key = *id ? fresh->id : fresh->pod_uid;
	HASH_ADD_KEYPTR(hh, lookups->by_id, key, strlen(key), fresh);
	if (hash_oom)
		return -ENOMEM;
	*ret = take_ptr(fresh);
	return is_new ? LOOKUP_NEW : 0;
}

static uint64_t doubled(uint64_t wait_ns, uint64_t longest_ns)
{
	return wait_ns * 2 < longest_ns ? wait_ns * 2 : longest_ns;
}

void lookup_tried(struct lookup *lookup, uint64_t now_ns)
{
	lookup->due_ns = now_ns + lookup->wait_ns;
	lookup->wait_ns = doubled(lookup->wait_ns, LOOKUP_LONGEST_NS);
}

void lookup_read(struct lookup *lookup, uint64_t now_ns)
{
	lookup->read_ns = now_ns + lookup->read_wait_ns;
	lookup->read_wait_ns = doubled(lookup->read_wait_ns, LOOKUP_READ_LONGEST_NS);
}

bool lookup_due(const struct lookup *lookup, uint64_t now_ns)
{
	return lookup->missing && lookup->due_ns <= now_ns;
}

void lookups_sweep(struct lookups *lookups, uint64_t now_ns)
{
	struct lookup *lookup, *next;

	HASH_ITER(hh, lookups->by_id, lookup, next) {
		if (now_ns - lookup->asked_ns < LOOKUP_GONE_NS)
			continue;
		HASH_DELETE(hh, lookups->by_id, lookup);
		lookup_free(lookup);
	}
}
