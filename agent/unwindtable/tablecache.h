/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_UNWINDTABLE_TABLECACHE_H
#define PODPROF_UNWINDTABLE_TABLECACHE_H

/*
 * Packed tables on disk, so that an agent that starts again does not compile what it had compiled:
 *
 *	DIR/BUILDID-CONTENTS.table	("none" where there is no build id)
 *	DIR/secret
 *
 * A file is used if it is whole, by this very program, and for an image with the same contents
 * (contents.h); else the table is made again and takes its place. Only files named like this are
 * ever touched. One thread at a time; may be opened on another one.
 */

#include <stddef.h>
#include <stdint.h>

#include "elf/elffile.h"
#include "unwindtable/table.h"

/* Files kept whatever the ceiling of bytes says: 200 bytes of memory each. The least recently used
 * go first. Reached: `podprof_unwind_cache_removed_total`. */
#define TABLECACHE_FILES_MAX 16384

struct tablecache;

/* @maker: what program this is; NULL: told by its own build id. */
struct tablecache_opts {
	const char *dir; /* made if it is not there, with its parents */
	uint64_t max_bytes;
	const char *maker;
};

enum tablecache_outcome {
	TABLECACHE_OK = 0,
	TABLECACHE_MISS,       /* reading: there is none */
	TABLECACHE_DAMAGED,    /* reading: cut or changed; removed */
	TABLECACHE_FOREIGN,    /* reading: by another program, or in another form; removed */
	TABLECACHE_UNREADABLE, /* reading: no regular file of ours, or the disk fails */
	TABLECACHE_DISK_FULL,  /* writing: ENOSPC, EDQUOT */
	TABLECACHE_READ_ONLY,  /* writing, opening: EROFS, EACCES, EPERM */
	TABLECACHE_TOO_LARGE,  /* writing: larger than all may be */
	TABLECACHE_CHANGED,    /* writing: the image was being written to */
	TABLECACHE_FAILED,     /* any other error of the file system */
	TABLECACHE_UNSAFE,     /* opening: others own the directory or may write to it */
	TABLECACHE_BUSY,       /* opening: another podprof has it */
	TABLECACHE_OUTCOME_MAX,
};

/* 0; TABLECACHE_UNSAFE, TABLECACHE_BUSY, TABLECACHE_READ_ONLY, TABLECACHE_FAILED, and then errno
 * says why; -ENOMEM. */
int tablecache_open(const struct tablecache_opts *opts, struct tablecache **ret);
void tablecache_free(struct tablecache *cache);

/* Which file an image has. */
struct tablecache_key {
	uint64_t contents;
	uint64_t changed_ns; /* of the image's file */
	char name[64];
};

/**
 * tablecache_get() - the table of an image, if it is there
 * @ret_key: for tablecache_put(); set unless the result is negative
 *
 * Return: 0, an outcome of reading (counted), -errno if the image cannot be read.
 */
int tablecache_get(struct tablecache *cache, const struct elffile *image,
		   struct tablecache_key *ret_key, struct table **ret);

/* Keep what was made of @image after a tablecache_get(); others are removed for it. Borrows all. 0,
 * an outcome of writing (counted), -ENOMEM. */
int tablecache_put(struct tablecache *cache, const struct elffile *image,
		   const struct tablecache_key *key, const struct table *table);

struct tablecache_stats {
	uint64_t reads[TABLECACHE_OUTCOME_MAX];
	uint64_t writes[TABLECACHE_OUTCOME_MAX];
	uint64_t removed; /* to make room */
	uint64_t bytes;	  /* of disk, in whole blocks */
	uint64_t n_files;
};
struct tablecache_stats tablecache_stats(const struct tablecache *cache);
const char *tablecache_outcome_name(int outcome);

#endif
