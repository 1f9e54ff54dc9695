// SPDX-License-Identifier: Apache-2.0
/*
 * Profiles arrive nearly in order of time and are removed from the oldest on, so an array with a
 * gap in front suffices: inserting searches from the end, removing moves the front. A click on the
 * page or a write of a profile searches the whole array, some 100 microseconds for a full table.
 *
 * A profile's id is the hash of its name, and so the same after a restart. Containers choose parts
 * of the names and may provoke equal hashes. The later profile then gets the next free number.
 */
#include "export/store_table.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/vec.h"
#include "export/store_name.h"

struct store_table_folder {
	struct store_folder pub; /* its name points to @name */
	UT_hash_handle hh;
	char name[STORE_NAME_MAX];
};

/* ---- folders */

struct store_folder *store_table_folder(const struct store_table *t, const char *name)
{
	struct store_table_folder *folder;

	HASH_FIND_STR(t->folders, name, folder);
	return folder ? &folder->pub : NULL;
}

const struct store_folder *store_table_next_folder(const struct store_table *t,
						   const struct store_folder *folder)
{
	const struct store_table_folder *next = t->folders;

	if (folder)
		next = container_of(folder, const struct store_table_folder, pub)->hh.next;
	return next ? &next->pub : NULL;
}

int store_table_add_folder(struct store_table *t, const char *name, struct labels *labels,
			   struct store_folder **ret)
{
	struct store_table_folder *folder;
	bool hash_oom = false;

	if (HASH_COUNT(t->folders) >= STORE_FOLDERS_MAX)
		return STORE_FOLDERS;
	folder = calloc(1, sizeof(*folder));
	if (!folder)
		return -ENOMEM;
	snprintf(folder->name, sizeof(folder->name), "%s", name);
	HASH_ADD_STR(t->folders, name, folder);
	if (hash_oom) {
		free(folder);
		return -ENOMEM;
	}
	folder->pub.name = folder->name;
	folder->pub.labels = *labels;
	*labels = (struct labels){0};
	*ret = &folder->pub;
	return 0;
}

void store_table_drop_folder(struct store_table *t, struct store_folder *folder)
{
	struct store_table_folder *entry = container_of(folder, struct store_table_folder, pub);

	HASH_DEL(t->folders, entry);
	labels_deinit(&entry->pub.labels);
	free(entry);
}

/* Profiles refer to a const folder; the table may change the folder's count. */
static void count_in(const struct store_folder *folder, int n)
{
	((struct store_folder *)folder)->n_profiles += (size_t)n;
}

void store_table_deinit(struct store_table *t)
{
	while (t->folders)
		store_table_drop_folder(t, &t->folders->pub);
	free(t->profiles);
	*t = (struct store_table){0};
}

/* ---- profiles */

void store_table_file(const struct store_profile *profile, char *ret)
{
	const struct store_name name = {profile->kind, profile->start_ns, profile->duration_ns};

	store_name_file(&name, ret);
}

static uint64_t id_of(const struct store_profile *profile)
{
	char file[STORE_NAME_MAX];

	store_table_file(profile, file);
	return store_name_id(profile->folder->name, file);
}

static bool older(const struct store_profile *a, const struct store_profile *b)
{
	return a->start_ns != b->start_ns ? a->start_ns < b->start_ns : a->id < b->id;
}

struct store_profile *store_table_find(const struct store_table *t, uint64_t id)
{
	for (size_t i = t->first; i < t->end; i++)
		if (t->profiles[i].id == id)
			return &t->profiles[i];
	return NULL;
}

/* Close the gap in front when removals have made half of the array a gap. */
static void compact(struct store_table *t)
{
	if (t->first < 64 || t->first < t->end / 2)
		return;
	memmove(t->profiles, t->profiles + t->first, store_table_n(t) * sizeof(*t->profiles));
	t->end -= t->first;
	t->first = 0;
}

int store_table_reserve(struct store_table *t, size_t n)
{
	compact(t);
	return vec_grow(&t->profiles, &t->cap, t->end + n, sizeof(*t->profiles), SIZE_MAX);
}

static void remove_at(struct store_table *t, size_t at)
{
	const struct store_profile *profile = &t->profiles[at];

	t->bytes -= profile->bytes;
	count_in(profile->folder, -1);
	t->end--;
	memmove(&t->profiles[at], &t->profiles[at + 1], (t->end - at) * sizeof(*t->profiles));
}

static void remove_same(struct store_table *t, const struct store_profile *profile)
{
	for (size_t i = t->end; i-- > t->first;) {
		if (t->profiles[i].folder == profile->folder &&
		    t->profiles[i].kind == profile->kind &&
		    t->profiles[i].start_ns == profile->start_ns &&
		    t->profiles[i].duration_ns == profile->duration_ns) {
			remove_at(t, i);
			return;
		}
	}
}

static void insert_at(struct store_table *t, size_t at, const struct store_profile *profile)
{
	memmove(&t->profiles[at + 1], &t->profiles[at], (t->end - at) * sizeof(*t->profiles));
	t->profiles[at] = *profile;
	t->end++;
	t->bytes += profile->bytes;
	count_in(profile->folder, 1);
}

void store_table_insert(struct store_table *t, const struct store_profile *profile)
{
	struct store_profile row = *profile;
	size_t at;

	remove_same(t, profile);
	row.id = id_of(profile);
	while (!row.id || store_table_find(t, row.id))
		row.id++;
	for (at = t->end; at > t->first && older(&row, &t->profiles[at - 1]); at--)
		;
	insert_at(t, at, &row);
}

static struct store_folder *removed(struct store_table *t, const struct store_profile *profile)
{
	t->bytes -= profile->bytes;
	count_in(profile->folder, -1);
	return (struct store_folder *)profile->folder;
}

struct store_folder *store_table_remove_oldest(struct store_table *t)
{
	return removed(t, &t->profiles[t->first++]);
}

struct store_folder *store_table_remove_newest(struct store_table *t)
{
	return removed(t, &t->profiles[--t->end]);
}

/* ---- many at once */

int store_table_append(struct store_table *t, const struct store_profile *profile, size_t max)
{
	struct store_profile row = *profile;
	int r = vec_grow(&t->profiles, &t->cap, t->end + 1, sizeof(*t->profiles), max);

	if (r)
		return r < 0 ? r : 0;
	row.id = id_of(profile);
	insert_at(t, t->end, &row);
	return 0;
}

static int by_id(const void *a, const void *b)
{
	const struct store_profile *x = a, *y = b;

	return x->id != y->id ? (x->id < y->id ? -1 : 1) : older(x, y) ? -1 : 1;
}

static int by_age(const void *a, const void *b)
{
	return older(a, b) ? -1 : 1;
}

void store_table_sort(struct store_table *t)
{
	struct store_profile *p = t->profiles + t->first;
	size_t n = store_table_n(t);

	if (!n)
		return;
	qsort(p, n, sizeof(*p), by_id);
	for (size_t i = 1; i < n; i++)
		if (p[i].id <= p[i - 1].id)
			p[i].id = p[i - 1].id + 1;
	qsort(p, n, sizeof(*p), by_age);
}
