/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_EXPORT_UPLOAD_H
#define PODPROF_EXPORT_UPLOAD_H

/*
 * Offers one program file to a server that names frames by it, Parca's DebuginfoService: asks
 * whether the server wants the file of a build id, and if so, sends the file.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/nsec.h"

struct destination;

/* Bytes of a file; 342 MiB as base64. Reached: not sent,
 * `podprof_debuginfo_uploads_total{outcome="too_large"}`. */
#define UPLOAD_FILE_MAX (256ull << 20)

/* Time of reading the bytes of a file: the largest file of a disk with 4.3 MiB/s. Without it a
 * file system that answers each read after seconds would hold the thread for ten minutes. Reached:
 * `podprof_debuginfo_uploads_total{outcome="slow"}`. */
#define UPLOAD_READ_MAX_NS (60 * NSEC_PER_SEC)

enum upload_end {
	UPLOAD_DONE,
	UPLOAD_UNWANTED,  /* the server has the file, or finds it elsewhere */
	UPLOAD_NO_NAMES,  /* the file has no symbols, Go tables or DWARF */
	UPLOAD_TOO_LARGE, /* above UPLOAD_FILE_MAX */
	UPLOAD_DAY_FULL,  /* above the ceiling of a day */
	UPLOAD_CHANGED,	  /* the file is another one by now, or became shorter */
	UPLOAD_ELSEWHERE, /* the server names an address that is not the destination's storage */
	UPLOAD_REFUSED,	  /* the server does not take this file */
	UPLOAD_FAILED,	  /* no connection, an error of the server, a malformed reply */
	UPLOAD_SLOW,	  /* reading the file took too long; the caller's end, if a read blocks */
	UPLOAD_QUEUE_FULL,
	UPLOAD_STOPPED, /* by @go_on */
	UPLOAD_END_MAX,
};
extern const char *const upload_end_names[UPLOAD_END_MAX];

/* Bytes of an error message, with the NUL. Reached: cut. */
#define UPLOAD_ERROR_MAX 256

/**
 * struct upload - an offer
 * @destination: its kind is another kind's @files
 * @build_id:    hexadecimal
 * @fd:          the file, or its debug file; taken, and closed, which may block
 * @day_bytes:   what the day's ceiling leaves
 * @bytes:       sent of the file so far; another thread may read it
 * @total_ns:    longest time of a call but Upload; 0: a minute
 * @read_ns:     longest time of reading the bytes of the file; 0: UPLOAD_READ_MAX_NS
 * @go_on:       called every quarter of a second while a server is awaited, and before the file is
 *               read; false ends the upload
 */
struct upload {
	const struct destination *destination;
	const char *build_id;
	int fd;
	uint64_t day_bytes;
	atomic_ullong *bytes;
	uint64_t total_ns;
	uint64_t read_ns;
	bool (*go_on)(void *ctx);
	void *ctx;
};

/* Blocks. @ret_error: for people, foreign; "" without one. 0 with @ret, or -errno. */
int upload_run(const struct upload *u, enum upload_end *ret, char ret_error[UPLOAD_ERROR_MAX]);

#endif
