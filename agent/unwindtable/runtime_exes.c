// SPDX-License-Identifier: Apache-2.0
/*
 * Each process that the walker does not know brings the key of its program with a dump, so a lost
 * entry comes back with the next process. A file's inode number may be another file's later: the
 * agent uses an excerpt only if the process has mapped a file with the runtime, so a stale entry
 * costs some reads.
 */
#include "unwindtable/runtime_exes.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "shared/stack_dump.h"

struct exe {
	struct exe_key key;
	UT_hash_handle hh;
	uint32_t runtime;
	size_t n;
	uint8_t value[];
};

struct runtime_exes {
	const int *maps;
	size_t n_maps;
	struct exe *exes;
};

static void forget(struct runtime_exes *exes, struct exe *exe, bool in_map)
{
	if (in_map)
		(void)bpf_map_delete_elem(exes->maps[exe->runtime], &exe->key);
	HASH_DEL(exes->exes, exe);
	free(exe);
}

static void forget_all(struct runtime_exes *exes, bool in_map)
{
	struct exe *exe, *next;

	HASH_ITER(hh, exes->exes, exe, next)
		forget(exes, exe, in_map);
}

void runtime_exes_learn(struct runtime_exes *exes, const struct exe_key *key, uint32_t runtime,
			const void *value, size_t n)
{
	struct exe *exe;
	bool hash_oom = false;

	if (!key->inode || runtime >= exes->n_maps || exes->maps[runtime] < 0)
		return;
	HASH_FIND(hh, exes->exes, key, sizeof(*key), exe);
	if (exe && exe->runtime == runtime && exe->n == n && memcmp(exe->value, value, n) == 0)
		return;
	if (exe)
		forget(exes, exe, true);
	if (HASH_COUNT(exes->exes) >= RUNTIME_EXES_MAX)
		forget_all(exes, true);
	exe = calloc(1, sizeof(*exe) + n);
	if (!exe)
		return;
	exe->key = *key;
	exe->runtime = runtime;
	exe->n = n;
	memcpy(exe->value, value, n);
	HASH_ADD(hh, exes->exes, key, sizeof(exe->key), exe);
	if (hash_oom)
		free(exe);
	else if (bpf_map_update_elem(exes->maps[runtime], key, value, BPF_ANY))
		forget(exes, exe, false);
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
	if (!exes)
		return;
	forget_all(exes, false);
	free(exes);
}
