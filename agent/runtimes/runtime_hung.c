// SPDX-License-Identifier: Apache-2.0
#include "runtimes/runtime_hung.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/root.h"
#include "discovery/pid.h"

struct runtime_hung {
	_Atomic unsigned int n_refs;
	struct root proc;
	bool is_ours;				   /* pid_is_ours() of @proc */
	_Atomic uint64_t owners[RUNTIME_HUNG_MAX]; /* 0: free; else the id + 1 */
};

int runtime_hung_new(const struct root *proc, struct runtime_hung **ret)
{
	struct runtime_hung *h = calloc(1, sizeof(*h));
	int r = h ? root_dup(proc, &h->proc) : -ENOMEM;

	if (r) {
		free(h);
		return r;
	}
	h->n_refs = 1;
	h->is_ours = pid_is_ours(&h->proc);
	*ret = h;
	return 0;
}

struct runtime_hung *runtime_hung_ref(struct runtime_hung *h)
{
	atomic_fetch_add(&h->n_refs, 1);
	return h;
}

void runtime_hung_unref(struct runtime_hung *h)
{
	if (!h || atomic_fetch_sub(&h->n_refs, 1) != 1)
		return;
	root_deinit(&h->proc);
	free(h);
}

const struct root *runtime_hung_proc(const struct runtime_hung *h)
{
	return &h->proc;
}

bool runtime_hung_proc_is_ours(const struct runtime_hung *h)
{
	return h->is_ours;
}

bool runtime_hung_refuses(const struct runtime_hung *h, uint64_t owner)
{
	unsigned int n = 0;

	for (size_t i = 0; i < RUNTIME_HUNG_MAX; i++)
		n += atomic_load(&h->owners[i]) == owner + 1;
	return n >= RUNTIME_HUNG_OWNER_MAX;
}

size_t runtime_hung_take(struct runtime_hung *h, uint64_t owner)
{
	size_t i = 0;

	while (i < RUNTIME_HUNG_MAX - 1 && atomic_load(&h->owners[i]))
		i++;
	atomic_store(&h->owners[i], owner + 1);
	return i;
}

void runtime_hung_put(struct runtime_hung *h, size_t slot)
{
	atomic_store(&h->owners[slot], 0);
}
