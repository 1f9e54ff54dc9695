/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_EXPORT_UPLOADS_H
#define PODPROF_EXPORT_UPLOADS_H

/* The program files that are offered to one destination: each build id once, one file at a time. A
 * thread of its own reads and sends them; profiles do not wait for it. */

#include <stdbool.h>
#include <stdint.h>

#include "export/upload.h"

struct loop;
struct uploads;

/* Files that wait; each keeps a descriptor. Shared out by owner (base/share.h). Reached: a later
 * window offers the file again, `podprof_debuginfo_uploads_total{outcome="queue_full"}`. */
#define UPLOADS_QUEUE_MAX  64
/* Build ids whose outcome is remembered. Reached: all are forgotten, and the server is asked
 * again. */
#define UPLOADS_KNOWN_MAX  16384
/* Bytes of files in 24 hours; an owner may use a quarter of what is free. Reached: not sent,
 * `podprof_debuginfo_uploads_total{outcome="day_full"}`. */
#define UPLOADS_DAY_MAX	   (2ull << 30)
/* Owners whose bytes and time of the day are remembered. Reached: all are forgotten; the bytes of
 * all together are not. */
#define UPLOADS_OWNERS_MAX 4096

/**
 * struct uploads_opts - copied; @loop is borrowed
 * @spec:       the destination as in --destination
 * @name:       of the destination, for the log
 * @blocked_ns: blocked time of a read; 0: the watchdog's default
 * @call_ns:    as upload.total_ns
 * @read_ns:    as upload.read_ns
 * @day_max:    bytes of files in 24 hours; 0: UPLOADS_DAY_MAX
 */
struct uploads_opts {
	struct loop *loop;
	const char *spec;
	const char *name;
	uint64_t blocked_ns;
	uint64_t call_ns;
	uint64_t read_ns;
	uint64_t day_max;
};

/* 0 or -errno. */
int uploads_new(const struct uploads_opts *opts, struct uploads **ret);
/* Ends the upload under way. No uploads_offer() afterwards. */
void uploads_free(struct uploads *u);

/* A frame of the program with this build id has no name; @fd is its file or its debug file.
 * Duplicates @fd unless the build id is known. @owner: of the program, for its share. Any thread;
 * does not block. */
void uploads_offer(struct uploads *u, uint64_t owner, const char *build_id, int fd);

/* So far, UPLOAD_END_MAX numbers to @ret. */
void uploads_count(struct uploads *u, uint64_t *ret);
/* Bytes of files sent so far. */
uint64_t uploads_bytes(struct uploads *u);
/* No file waits or is under way. On the loop. */
bool uploads_is_idle(struct uploads *u);

#endif
