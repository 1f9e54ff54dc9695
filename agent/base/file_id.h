/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_BASE_FILE_ID_H
#define PODPROF_BASE_FILE_ID_H

/*
 * The identity of a file, as stat() gives it. A file system reuses the inode of a deleted file, a
 * program overwrites a library in place, and both can set the time of the last write (utimensat(),
 * `touch -r`). The time of the last status change comes from the kernel's clock; no call sets it.
 *
 * A chmod, a rename and an unlink change that time too. A cache then reads one file twice.
 */

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

#include "base/nsec.h"

/* A key of hash tables: compared as bytes, without padding. Zeros: no file. */
struct file_id {
	uint64_t device;
	uint64_t inode;
	uint64_t size;
	uint64_t mtime_ns; /* of the last write, as the owner likes it */
	uint64_t ctime_ns; /* of the last status change */
};

static inline struct file_id file_id_of_stat(const struct stat *st)
{
	return (struct file_id){
		.device = st->st_dev,
		.inode = st->st_ino,
		.size = (uint64_t)st->st_size,
		.mtime_ns = nsec_of(&st->st_mtim),
		.ctime_ns = nsec_of(&st->st_ctim),
	};
}

/* Whether @a and @b are one file with one content. */
static inline bool file_id_equal(const struct file_id *a, const struct file_id *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

/* Whether @a and @b have one inode, whatever was written since. Sufficient for a file in use from
 * @a to @b: its inode is not reused. */
static inline bool file_id_same_inode(const struct file_id *a, const struct file_id *b)
{
	return a->inode == b->inode && a->device == b->device;
}

#endif
