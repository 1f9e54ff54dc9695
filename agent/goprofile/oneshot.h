/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_GOPROFILE_ONESHOT_H
#define PODPROF_GOPROFILE_ONESHOT_H

/*
 * One Go profile, read on demand: one process after the other, until it is one profile. Nothing is
 * kept between two of them.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "goheap/goheap.h"
#include "goheap/kind.h"

struct buf;
struct go_profile_reader;
struct go_profile_report_opts;
struct go_profile_target;
struct gocore;
struct root;

/* Processes of one container that are read; more are left out, which is said. Reached: the command
 * says how many are left out. */
#define GO_PROFILE_ONESHOT_PROCESSES_MAX 1024

/**
 * struct go_profile_oneshot - where what was read gathers
 * @proc: borrowed
 * @max_bytes: of the records and stacks of all together; what has no room is left out
 * @symbol_bytes: of symbol tables
 * @n_snaps: runtimes of which there is a profile
 * @version: of Go, of the first process that was read, or that would have been
 * @state: of the first process of which there was no profile, why; GORUNTIME_NO_RUNTIME while there
 *         was no Go program at all
 */
struct go_profile_oneshot {
	const struct root *proc;
	enum go_profile_kind kind;
	bool force;
	size_t max_bytes;
	size_t symbol_bytes;
	struct go_profile_reader *reader;
	struct go_profile_target *targets;
	size_t n_targets;
	size_t cap_targets;
	size_t n_snaps;
	size_t n_records;
	struct goheap_totals totals; /* of GO_PROFILE_HEAP */
	int64_t contentions;	     /* of the two after it */
	int64_t delay_ns;
	uint64_t n_changed; /* goroutines that were not taken: they changed while they were read, */
	uint64_t n_more;    /* or there was no room for them */
	char version[GORUNTIME_VERSION_MAX];
	enum goruntime_state state;
};

/* With proc, kind, force and the ceilings set. 0 or -errno. {0} may be deinited. */
int go_profile_oneshot_init(struct go_profile_oneshot *s);
void go_profile_oneshot_deinit(struct go_profile_oneshot *s);

/* Read one process, or a core. 0, also if there is nothing; -errno. */
int go_profile_oneshot_process(struct go_profile_oneshot *s, const struct pid_id *id);
int go_profile_oneshot_core(struct go_profile_oneshot *s, struct gocore *core);

/* All that was read, as one profile; *@ret_n_left_out records had no room. 0, BUF_FULL, -errno. */
int go_profile_oneshot_encode(struct go_profile_oneshot *s,
			      const struct go_profile_report_opts *opts, struct buf *ret,
			      uint64_t *ret_n_left_out);

#endif
