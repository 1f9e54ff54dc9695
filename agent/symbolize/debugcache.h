/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_SYMBOLIZE_DEBUGCACHE_H
#define PODPROF_SYMBOLIZE_DEBUGCACHE_H

/*
 * A directory of debug files, "BUILD-ID.debug". A complete file appears under the name.
 * The time of the last write is the time of the last use. Empty files "BUILD-ID.absent" mark build
 * ids that no server has. debugcache_get() and debugcache_is_absent() are for any thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Files in the directory. Reached: the least recently used are removed. */
#define DEBUGCACHE_FILES_MAX  4096
/* Bytes of a file. Reached: the file is not kept;
 * `podprof_debuginfod_requests_total{outcome="too_large"}`. */
#define DEBUGCACHE_FILE_MAX   (2ull << 30)
/* Marks of build ids that no server has. Reached: all are removed, and the servers asked again. */
#define DEBUGCACHE_ABSENT_MAX 16384

struct debugcache;

enum debugcache_outcome {
	DEBUGCACHE_OK = 0,
	DEBUGCACHE_ABSENT,
	DEBUGCACHE_TOO_LARGE,
};

/* Makes the directory, if necessary, and removes the unfinished files of an earlier process, and
 * the marks older than @absent_ns or of servers other than @servers.
 * @max_bytes: of all files. @servers: a text. 0 or -errno. */
int debugcache_new(const char *dir, uint64_t max_bytes, const char *servers, uint64_t absent_ns,
		   struct debugcache **ret);
/* NULL is fine. */
void debugcache_free(struct debugcache *c);

/* Lower-case hex of 8 to 64 bytes, as linkers write. */
bool debugcache_id_ok(const char *build_id);

/* The file of @build_id. 0 with a descriptor of the caller's, DEBUGCACHE_ABSENT, -errno. */
int debugcache_get(const struct debugcache *c, const char *build_id, int *ret_fd);

/* Whether @build_id has a mark that is not too old. */
bool debugcache_is_absent(const struct debugcache *c, const char *build_id);
/* Marks @build_id, which has the form of debugcache_id_ok(). 0 or -errno. */
int debugcache_set_absent(struct debugcache *c, const char *build_id);

/* An unfinished file. */
struct debugcache_file;
/* 0 or -errno. */
int debugcache_begin(struct debugcache *c, const char *build_id, struct debugcache_file **ret);
/* 0, DEBUGCACHE_TOO_LARGE, -errno. */
int debugcache_write(struct debugcache_file *file, const void *data, size_t n);
/* Takes @file. The file gets the final name, and the least recently used of the others are removed
 * down to the ceilings. 0 or -errno. */
int debugcache_commit(struct debugcache_file *file);
/* Removes the file. NULL is fine. */
void debugcache_abandon(struct debugcache_file *file);

#endif
