// SPDX-License-Identifier: Apache-2.0
/*
 * Each process that the walker does not know brings the key of its program with a dump, so a lost
 * entry comes back with the next process. A file's inode number may be another file's later: the
 * agent uses an excerpt only if the process has mapped a file with the runtime, so a stale entry
 * costs some reads.
 *
 * A container can have any number of copies of an interpreter, so the entries are shared out: an
 * owner above the share loses its own oldest entry. Nothing tells that a program is gone. So at the
 * ceiling, an owner without entries takes the place of the oldest entry of all.
 */
#include "unwindtable/runtime_exes.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/share.h"
#include "shared/stack_dump.h"

struct exe {
	struct exe_key key;
	UT_hash_handle hh; /* the table's order is that of learning */
	struct share_holder *owner;
	uint32_t runtime;
	size_t n;
	uint8_t value[];
};

struct runtime_exes {
	const int *maps;
	size_t n_maps;
	struct exe *exes;
	struct share_holder *owners;
};

static void forget(struct runtime_exes *exes, struct exe *exe, bool in_map)
{
	if (in_map)
		(void)bpf_map_delete_elem(exes->maps[exe->runtime], &exe->key);
	HASH_DEL(exes->exes, exe);
	exe->owner->held--;
	share_holder_put(&exes->owners, exe->owner);
	free(exe);
}

/* Forget the oldest entry of the owner, or of all if the owner has none, unless the owner may have
 * one more. */
static void make_room(struct runtime_exes *exes, uint64_t owner)
{
	const struct share_holder *holder = share_holder_find(exes->owners, owner);
	struct exe *exe, *next;

	if (share_allows(RUNTIME_EXES_MAX, HASH_COUNT(exes->exes), holder ? holder->held : 0))
		return;
	HASH_ITER(hh, exes->exes, exe, next)
		if (!holder || exe->owner == holder)
			break;
	forget(exes, exe, true);
}

static struct exe *add(struct runtime_exes *exes, struct share_holder *owner,
		       const struct exe_key *key, uint32_t runtime, const void *value, size_t n)
{
	struct exe *exe = calloc(1, sizeof(*exe) + n);
	bool hash_oom = false;

	if (!exe)
		return NULL;
	exe->key = *key;
	exe->owner = owner;
	exe->runtime = runtime;
	exe->n = n;
	memcpy(exe->value, value, n);
	HASH_ADD(hh, exes->exes, key, sizeof(exe->key), exe);
	if (hash_oom) {
		free(exe);
		return NULL;
	}
	owner->held++;
	return exe;
}

void runtime_exes_learn(struct runtime_exes *exes, uint64_t owner, const struct exe_key *key,
			uint32_t runtime, const void *value, size_t n)
{
	struct share_holder *holder;
	struct exe *exe;

	if (!key->inode || runtime >= exes->n_maps || exes->maps[runtime] < 0)
		return;
	HASH_FIND(hh, exes->exes, key, sizeof(*key), exe);
	if (exe && exe->runtime == runtime && exe->n == n && memcmp(exe->value, value, n) == 0)
		return;
	if (exe)
		forget(exes, exe, true);
	make_room(exes, owner);
	holder = share_holder_get(&exes->owners, owner);
	if (!holder)
		return;
	exe = add(exes, holder, key, runtime, value, n);
	share_holder_put(&exes->owners, holder);
	if (exe && bpf_map_update_elem(exes->maps[runtime], key, value, BPF_ANY))
		forget(exes, exe, false);
}

const void *runtime_exes_find(const struct runtime_exes *exes, const struct exe_key *key,
			      uint32_t *ret_runtime)
{
	const struct exe *exe;

	HASH_FIND(hh, exes->exes, key, sizeof(*key), exe);
	if (!exe)
		return NULL;
	*ret_runtime = exe->runtime;
	return exe->value;
}

size_t runtime_exes_n(const struct runtime_exes *exes)
{
	return HASH_COUNT(exes->exes);
}

int runtime_exes_new(const int *maps, size_t n, struct runtime_exes **ret)
{
	*ret = calloc(1, sizeof(**ret));
	if (!*ret)
		return -ENOMEM;
	(*ret)->maps = maps;
	(*ret)->n_maps = n;
	return 0;
}

void runtime_exes_free(struct runtime_exes *exes)
{
	struct exe *exe, *next;

	if (!exes)
		return;
	HASH_ITER(hh, exes->exes, exe, next)
		forget(exes, exe, false);
	free(exes);
}
