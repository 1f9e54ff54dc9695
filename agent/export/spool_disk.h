/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_EXPORT_SPOOL_DISK_H
#define PODPROF_EXPORT_SPOOL_DISK_H

/*
 * The spool's files: DIR/NUMBER.segment, the number with 16 hexadecimal digits. Only these names
 * are touched. The functions may block as long as the disk does; the spool calls all but those
 * named otherwise on its own thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "export/spool_index.h"

struct buf;
struct spool_disk;

enum spool_outcome {
	SPOOL_OK = 0,
	SPOOL_DISK_FULL, /* ENOSPC, EDQUOT */
	SPOOL_READ_ONLY, /* EROFS, EACCES, EPERM */
	SPOOL_FAILED,	 /* any other error of the file system, or no memory */
	SPOOL_TOO_LARGE, /* a profile above SPOOL_RECORD_MAX, or a quarter of --spool-bytes */
	SPOOL_BLOCKED,	 /* the disk does not answer, or too much waits for it */
	SPOOL_COUNTED,	 /* number of outcomes of a profile */
	SPOOL_BUSY = SPOOL_COUNTED, /* opening: another process has the lock */
	SPOOL_OUTCOME_MAX,
};
const char *spool_outcome_name(int outcome);

/* Does not touch the disk. 0 or -ENOMEM. */
int spool_disk_new(const char *dir, struct spool_disk **ret);
void spool_disk_free(struct spool_disk *disk); /* NULL is fine */
/* Makes the directory (0700, parents 0755), opens and locks it. May be called again after a
 * failure. 0; SPOOL_BUSY with @ret_holder as of lockdir_open(); SPOOL_READ_ONLY, SPOOL_DISK_FULL or
 * SPOOL_FAILED if the directory cannot be made or opened; -ENOMEM, -EMFILE, -ENFILE. */
int spool_disk_open(struct spool_disk *disk, pid_t *ret_holder);

/**
 * struct spool_contents - the result of reading all segments
 * @index:       with all profiles that a destination waits for; the caller owns the index
 * @next_number: above the number of every file
 * @n_damaged:   segments with an unreadable end
 */
struct spool_contents {
	struct spool_index index;
	uint64_t next_number;
	uint64_t n_damaged;
};

/* @destinations: the ids of the present destinations; @deltas: as in the index. 0, SPOOL_FAILED, or
 * -ENOMEM, -EMFILE or -ENFILE, after which the files are as before. */
int spool_disk_read_all(struct spool_disk *disk, const uint64_t *destinations,
			unsigned int n_destinations, uint8_t deltas, struct spool_contents *ret);
/* Append the @len bytes from @off on. 0, an outcome (SPOOL_FAILED for fewer bytes) or -ENOMEM. */
int spool_disk_read(const struct spool_disk *disk, uint64_t number, uint32_t off, size_t len,
		    struct buf *ret);
/* Begin a segment; closes the earlier one after fdatasync(). 0, an outcome, or -ENOMEM, -EMFILE or
 * -ENFILE; without success there is no open segment. */
int spool_disk_begin(struct spool_disk *disk, uint64_t number);
/* Write @n bytes at @off of the open segment: all, or none that a reader would accept. */
int spool_disk_write(struct spool_disk *disk, uint64_t off, const void *data, size_t n);
/* Both: 0, an outcome or -ENOMEM. */
int spool_disk_sync(struct spool_disk *disk);
/* Undo the writes from @off on. If that fails, the segment is closed. */
void spool_disk_cut(struct spool_disk *disk, uint64_t off);
bool spool_disk_is_open(const struct spool_disk *disk);
/* A missing file is a success. */
int spool_disk_remove(struct spool_disk *disk, uint64_t number);

#endif
