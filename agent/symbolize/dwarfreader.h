/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_SYMBOLIZE_DWARFREADER_H
#define PODPROF_SYMBOLIZE_DWARFREADER_H

/*
 * DWARF of foreign files, read by a process of its own (dwarfchild.h). The process starts with the
 * first request. When the process crashes, needs too much memory or has not answered at the
 * deadline, it is killed, and the file is refused for half an hour. The next request starts a new
 * process.
 *
 * The functions may be called on any thread. The caller waits for the process, but no longer than
 * the reader's patience; an answer that comes later is kept for the next call.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/file_id.h"
#include "base/nsec.h"
#include "symbolize/dwarfwire.h"

/* Processes that are killed and have not ended, as in a read that blocks. Reached: no file is asked
 * for DWARF until a process ends: `podprof_dwarf_requests_total{outcome="no_process"}`. */
#define DWARFREADER_DYING_MAX	     4
/* Of these, processes with files of one file system. Reached: no file of this file system is asked
 * for DWARF until one of them ends; the other places are for the others. */
#define DWARFREADER_DYING_DEVICE_MAX 2

/* Ends of requests, and labels of a metric. */
enum dwarfreader_outcome {
	DWARFREADER_OK,
	DWARFREADER_UNREADABLE, /* libdw finds no DWARF */
	DWARFREADER_CRASHED,	/* the process ended by itself, or by its limit of CPU time */
	DWARFREADER_MEMORY,
	DWARFREADER_TIMEOUT,	/* no answer at the deadline */
	DWARFREADER_MALFORMED,	/* an answer without the form of dwarfwire.h */
	DWARFREADER_NO_PROCESS, /* no process can be started */
	DWARFREADER_OUTCOME_MAX,
};
extern const char *const dwarfreader_outcome_names[DWARFREADER_OUTCOME_MAX];

/**
 * struct dwarfreader_opts - copied
 * @program:     NULL: this program
 * @patience_ns: waiting time of all calls until the first dwarfreader_renew(); 0: no limit, ever
 * @deadline_ns: from a request to the end of the process; 0: DWARFREADER_DEADLINE_NS
 */
struct dwarfreader_opts {
	const char *program;
	uint64_t patience_ns;
	uint64_t deadline_ns;
};

/* 3,000 addresses of CPython with 24 MB take 0.3 s of CPU time, and a pod may have a tenth of a
 * CPU. */
#define DWARFREADER_DEADLINE_NS (20 * NSEC_PER_SEC)

struct dwarfreader;
struct dwarfreader_request;

/* With a reference. Call before a foreign file is opened (base/launcher.h). 0 or -errno. */
int dwarfreader_new(const struct dwarfreader_opts *opts, struct dwarfreader **ret);
/* NULL is fine. */
struct dwarfreader *dwarfreader_ref(struct dwarfreader *reader);
/* The last call ends the process. NULL is fine. */
void dwarfreader_unref(struct dwarfreader *reader);
/* How long the callers have waited with the present patience; 0 without a limit. */
uint64_t dwarfreader_waited(struct dwarfreader *reader);
/* New patience, unless there is no limit. Kills a process that is past its deadline, and reaps an
 * idle process. */
void dwarfreader_renew(struct dwarfreader *reader, uint64_t patience_ns);
/* By outcome, so far: DWARFREADER_OUTCOME_MAX numbers. */
void dwarfreader_counts(struct dwarfreader *reader, uint64_t *ret);
/* The file made a process fail not long ago. */
bool dwarfreader_refuses(struct dwarfreader *reader, const struct file_id *id);

/**
 * struct dwarfreader_file - a file with DWARF
 * @number: 0 at first; set by the first request, and kept by the caller
 * @id:     of the program, for refusals
 * @fds:    borrowed during the call; the process gets duplicates
 * @split_fds: the same, of split DWARF for the units with the numbers @units
 */
struct dwarfreader_file {
	uint64_t number;
	struct file_id id;
	int fds[DWARFWIRE_FILES_MAX];
	size_t n_fds;
	int split_fds[DWARFWIRE_SPLITS_MAX];
	uint32_t units[DWARFWIRE_SPLITS_MAX];
	size_t n_splits;
};

/* Send a request, when the process has answered the one before. *@ret is a reference; NULL if the
 * patience ends first, or the request is refused. 0 or -ENOMEM. */
int dwarfreader_ask(struct dwarfreader *reader, struct dwarfreader_file *file,
		    const uint64_t *vaddrs, size_t n, struct dwarfreader_request **ret);
/* Wait for the end of the request. False before the end. */
bool dwarfreader_wait(struct dwarfreader *reader, struct dwarfreader_request *request);
/* An ended request: outcome, addresses, and with DWARFREADER_OK the bytes for
 * dwarfwire_reader_init(). All is borrowed. */
enum dwarfreader_outcome dwarfreader_answer(const struct dwarfreader_request *request,
					    const uint64_t **ret_vaddrs, size_t *ret_n,
					    const void **ret_bytes, size_t *ret_n_bytes);
/* The answer of an ended request had not the form of dwarfwire.h: ends the process. */
void dwarfreader_reject(struct dwarfreader *reader, const struct dwarfreader_request *request);
/* NULL is fine. */
void dwarfreader_request_unref(struct dwarfreader_request *request);

#endif
