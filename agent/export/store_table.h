/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_EXPORT_STORE_TABLE_H
#define PODPROF_EXPORT_STORE_TABLE_H

/* The store's index of its files: folders by name, profiles by age. Memory only; the store performs
 * the same changes on disk. */

#include <stddef.h>
#include <stdint.h>

#include "export/store.h"

/* Minimum space of a file on the usual file systems. */
#define STORE_BLOCK_BYTES 4096u

static inline uint64_t store_table_disk_bytes(uint64_t size)
{
	return (size + STORE_BLOCK_BYTES - 1) / STORE_BLOCK_BYTES * STORE_BLOCK_BYTES;
}

struct store_table_folder;

/**
 * struct store_table - {0} is empty
 * @profiles: [first, end) are in use, the oldest first
 * @bytes:    of disk, all profiles together
 */
struct store_table {
	struct store_table_folder *folders;
	struct store_profile *profiles;
	size_t first, end, cap;
	uint64_t bytes;
};

void store_table_deinit(struct store_table *t);

static inline size_t store_table_n(const struct store_table *t)
{
	return t->end - t->first;
}

/* NULL if there is none. */
struct store_folder *store_table_folder(const struct store_table *t, const char *name);
/* NULL to start, and at the end. */
const struct store_folder *store_table_next_folder(const struct store_table *t,
						   const struct store_folder *folder);
/* Takes the contents of @labels on success. 0, STORE_FOLDERS, -ENOMEM. */
int store_table_add_folder(struct store_table *t, const char *name, struct labels *labels,
			   struct store_folder **ret);
/* @folder must have no profiles. */
void store_table_drop_folder(struct store_table *t, struct store_folder *folder);

/* Make room for @n more profiles. 0 or -ENOMEM. */
int store_table_reserve(struct store_table *t, size_t n) __attribute__((warn_unused_result));
/* Requires room. @profile: all members but the id. Replaces a profile of the same file. */
void store_table_insert(struct store_table *t, const struct store_profile *profile);
/* NULL if there is none. */
struct store_profile *store_table_find(const struct store_table *t, uint64_t id);
/* Require a profile. Return the profile's folder, which stays. */
struct store_folder *store_table_remove_oldest(struct store_table *t);
struct store_folder *store_table_remove_newest(struct store_table *t);

/* For many profiles in any order: append each, then sort once. Profiles beyond @max are left out. 0
 * or -ENOMEM. */
int store_table_append(struct store_table *t, const struct store_profile *profile, size_t max)
	__attribute__((warn_unused_result));
void store_table_sort(struct store_table *t);

/* The name of a profile's file; @ret has STORE_NAME_MAX bytes. */
void store_table_file(const struct store_profile *profile, char *ret);

#endif
