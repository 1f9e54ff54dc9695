// SPDX-License-Identifier: Apache-2.0
/*
 * inotify reports a new directory, but the directory may be gone before the read, and its id with
 * it. The kernel's tracepoint has path and id. A new directory does not wake the agent: the ring is
 * mapped memory, and the agent searches it for a sample with an unknown id.
 *
 * BPF may overwrite an element during a read. The overwriting element is CGROUP_EVENTS younger, and
 * the kernel takes and releases a lock between any two elements. If far fewer elements follow until
 * the end of the read, the element was whole, for any order of the visible stores.
 */
#include "profile/cgroup_events.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/cleanup.h"
#include "base/metric.h"
#include "profile/bpfobj.h"

_Static_assert((int)CGROUP_TREE_V2 == HIERARCHY_V2 && (int)CGROUP_TREE_V1 == HIERARCHY_V1,
	       "the same trees");

/* The oldest elements are left alone. */
#define CGROUP_EVENTS_TRUSTED (CGROUP_EVENTS - 16)

struct cgroup_events {
	struct bpfobj_cgroup_events bpf;
	const struct cgroup_event *entries;
	int link;
};

DEFINE_CLEANUP(struct cgroup_events *, cgroup_events_freep, cgroup_events_free);

int cgroup_events_new(const struct bpfobj_cgroup_events *bpf, struct cgroup_events **ret)
{
	_cleanup_(cgroup_events_freep) struct cgroup_events *m = calloc(1, sizeof(*m));
	void *entries;

	if (!m)
		return -ENOMEM;
	m->bpf = *bpf;
	m->link = -1;
	entries = mmap(NULL, CGROUP_EVENTS * sizeof(*m->entries), PROT_READ, MAP_SHARED, bpf->ring,
		       0);
	if (entries == MAP_FAILED)
		return -errno;
	m->entries = entries;
	m->link = bpf_raw_tracepoint_open("cgroup_mkdir", bpf->program);
	if (m->link < 0)
		return m->link;
	*ret = take_ptr(m);
	return 0;
}

void cgroup_events_free(struct cgroup_events *m)
{
	if (!m)
		return;
	close_fdp(&m->link);
	if (m->entries)
		munmap((void *)m->entries, CGROUP_EVENTS * sizeof(*m->entries));
	free(m);
}

static bool read_entry(const struct cgroup_events *m, const struct cgroup_event *e, char *ret,
		       size_t size)
{
	const uint64_t n = e->n;
	const size_t len = strnlen(e->path, sizeof(e->path));

	if (len >= sizeof(e->path) || len >= size)
		return false;
	memcpy(ret, e->path, len);
	ret[len] = '\0';
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return *m->bpf.n - n <= CGROUP_EVENTS_TRUSTED && ret[0] == '/';
}

bool cgroup_events_find(void *cgroup_events, enum hierarchy hierarchy, uint64_t id, char *ret,
			size_t size)
{
	const struct cgroup_events *m = cgroup_events;

	for (size_t i = 0; m && i < CGROUP_EVENTS; i++) {
		const struct cgroup_event *e = &m->entries[i];

		if (e->id == id && e->tree == hierarchy)
			return read_entry(m, e, ret, size);
	}
	return false;
}

void cgroup_events_collect(void *cgroup_events, struct metric_sink *sink)
{
	static const struct metric_family_desc made = {
		"podprof_cgroup_mkdir_events", METRIC_COUNTER,
		"New cgroup directories reported by the kernel.", NULL};
	const struct cgroup_events *m = cgroup_events;

	metric_family(sink, &made);
	metric_u64(sink, *m->bpf.n, NULL, 0);
}
