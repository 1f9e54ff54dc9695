/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_EXPORT_STORE_DISK_H
#define PODPROF_EXPORT_STORE_DISK_H

/*
 * The store's files. The functions may block as long as the disk does, so the store calls them on
 * its thread; a comment names the exceptions. Outcomes are those of enum store_outcome.
 */

#include <stddef.h>
#include <sys/types.h>

#include "base/root.h"
#include "export/store.h"

struct store_table;

/* Files examined at opening; the newest STORE_PROFILES_MAX are kept. More files cannot be ours.
 * Reached: they stay where they are. */
#define SCAN_PROFILES_MAX ((size_t)4 * STORE_PROFILES_MAX)

/* @root: fd is -1 if not open. @holder: after STORE_BUSY, as of lockdir_open(). */
struct store_disk {
	char *path;
	struct root root;
	pid_t holder;
};

/* Does not touch the disk. 0 or -ENOMEM. */
int store_disk_new(const char *path, struct store_disk **ret);
void store_disk_free(struct store_disk *disk); /* NULL is fine */

/**
 * store_disk_open() - make, open, lock and read the directory
 * @alive: called after each folder and each file
 * @table: {0}; on success the caller owns the contents
 *
 * Removes leftovers of a crash. May be called again after a failure. 0, STORE_BUSY, another
 * outcome, -ENOMEM.
 */
int store_disk_open(struct store_disk *disk, void (*alive)(void *ctx), void *ctx,
		    struct store_table *table);

/* Write a profile; makes the folder and its labels if missing. The file appears under its name
 * completely or not at all. 0, an outcome, -ENOMEM. */
int store_disk_write(const struct store_disk *disk, const struct store_file *file,
		     const struct labels *labels, const void *data, size_t n);
/* After a failure a file remains, and the next start finds the file again. */
void store_disk_remove(const struct store_disk *disk, const struct store_file *file);
/* Only for a folder without profiles. */
void store_disk_remove_folder(const struct store_disk *disk, const char *folder);

#endif
