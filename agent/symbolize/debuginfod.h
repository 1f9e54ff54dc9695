/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_SYMBOLIZE_DEBUGINFOD_H
#define PODPROF_SYMBOLIZE_DEBUGINFOD_H

/*
 * Debug files of debuginfod servers, by build id (debuginfod(8)). A thread downloads the files into
 * a directory, for this start and the next; no call waits for a download. The directory also has
 * the build ids that no server knows.
 *
 * The servers learn the build ids of the node's programs. A container can invent build ids.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/nsec.h"

struct debuginfod;
struct metric_sink;

/* Build ids waiting for a download. Reached: a later window asks again;
 * `podprof_debuginfod_requests_total{outcome="queue_full"}`. */
#define DEBUGINFOD_QUEUE_MAX   256
/* Build ids unknown to all servers, kept in memory for DEBUGINFOD_ABSENT_NS. Reached: all are
 * forgotten there. */
#define DEBUGINFOD_ABSENT_MAX  16384
/* Downloads at the same time: a large file does not delay the small ones. Reached: the others wait
 * in the queue. */
#define DEBUGINFOD_RUNNING_MAX 4
/* In memory and in the directory. A server may get the debug file of a new release. */
#define DEBUGINFOD_ABSENT_NS   (3600 * NSEC_PER_SEC)

enum debuginfod_outcome {
	DEBUGINFOD_OK = 0,
	DEBUGINFOD_NOT_FOUND, /* on no server */
	DEBUGINFOD_LATER,     /* the download runs or waits */
};

/* Ends of downloads, and labels of a metric. */
enum debuginfod_end {
	DEBUGINFOD_END_OK,
	DEBUGINFOD_END_NOT_FOUND,
	DEBUGINFOD_END_FAILED, /* no connection, a server's error, a broken transfer */
	DEBUGINFOD_END_TOO_LARGE,
	DEBUGINFOD_END_NOT_STORED, /* the directory has no room or is not writable */
	DEBUGINFOD_END_QUEUE_FULL, /* not asked */
	DEBUGINFOD_END_MAX,
};

/**
 * struct debuginfod_opts - copied
 * @urls:      of servers, without "/buildid"; asked in this order
 * @dir:       made if absent; for podprof alone
 * @max_bytes: of the files in @dir; the least recently used are removed. At least one stays
 * @retry_ns:  after a server's failure, until the next request for a file; 0: a minute
 * @total_ns:  of a download; 0: ten minutes
 */
struct debuginfod_opts {
	const char *const *urls;
	size_t n_urls;
	const char *dir;
	uint64_t max_bytes;
	uint64_t retry_ns;
	uint64_t total_ns;
};

/* With a reference. 0 or -errno: of the directory, or of a thread. */
int debuginfod_new(const struct debuginfod_opts *opts, struct debuginfod **ret);
/* NULL is fine. */
struct debuginfod *debuginfod_ref(struct debuginfod *d);
/* The last call ends the thread and unfinished downloads. NULL is fine. */
void debuginfod_unref(struct debuginfod *d);

/* The debug file of @build_id, lower-case hex. From any thread. 0 with a descriptor of the
 * caller's, an outcome, or -ENOMEM. A build id of a strange form is DEBUGINFOD_NOT_FOUND. */
int debuginfod_get(struct debuginfod *d, const char *build_id, int *ret_fd);

/* A number that changes when an answer LATER may have changed: a download has ended, or a
 * server that was not reached may be asked again. Read the number before debuginfod_get(). From any
 * thread, without a system call. */
uint64_t debuginfod_news(struct debuginfod *d);

/* Downloads that run, or wait for another's end; none while no server can be reached. From any
 * thread. */
size_t debuginfod_pending(struct debuginfod *d);
/* Ends so far: DEBUGINFOD_END_MAX numbers. From any thread. */
void debuginfod_counts(struct debuginfod *d, uint64_t *ret);
/* A metric_collect_fn: podprof_debuginfod_requests. */
void debuginfod_collect(void *d, struct metric_sink *sink);

#endif
