/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_GOPROFILE_ONESHOT_H
#define PODPROF_GOPROFILE_ONESHOT_H

/*
 * One Go profile on demand: reads processes in sequence for a single profile.
 * Nothing is kept between two profiles, except for their difference.
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
struct process_memory;
struct root;

/* Processes read of a container. Reached: the command says how many are left out. */
#define GO_PROFILE_ONESHOT_PROCESSES_MAX 1024

/**
 * struct go_profile_oneshot - a profile under construction
 * @proc: borrowed
 * @max_bytes: of all records and stacks together; the rest is left out
 * @symbol_bytes: of symbol tables
 * @is_twice: go_profile_oneshot_again() follows
 * @held: the address space of each target before the first read of two
 * @n_snaps: runtimes with a profile
 * @version: of Go, of the first Go process, readable or not
 * @state: of the first process without a profile, as the reason; GORUNTIME_NO_RUNTIME without any
 *         Go program
 */
struct go_profile_oneshot {
	const struct root *proc;
	enum go_profile_kind kind;
	bool force;
	size_t max_bytes;
	size_t symbol_bytes;
	bool is_twice;
	struct go_profile_reader *reader;
	struct go_profile_target *targets;
	size_t n_targets;
	size_t cap_targets;
	struct go_profile_target *before; /* of the first read of two; NULL: there is one */
	size_t n_before;
	struct process_memory *held;
	size_t n_held;
	size_t cap_held;
	size_t n_snaps;
	size_t n_records;
	struct goheap_totals totals; /* of GO_PROFILE_HEAP */
	int64_t contentions;	     /* of GO_PROFILE_MUTEX and GO_PROFILE_BLOCK */
	int64_t delay_ns;
	uint64_t n_changed; /* goroutines left out because of changes during the read */
	uint64_t n_more;    /* goroutines left out for lack of room */
	char version[GORUNTIME_VERSION_MAX];
	enum goruntime_state state;
};

/* Set proc, kind, force, is_twice and the ceilings before. 0 or -errno. Deinit accepts {0}. */
int go_profile_oneshot_init(struct go_profile_oneshot *s);
void go_profile_oneshot_deinit(struct go_profile_oneshot *s);

/* Read one process, or a core. 0, also without a profile; -errno. */
int go_profile_oneshot_process(struct go_profile_oneshot *s, const struct pid_id *id);
int go_profile_oneshot_core(struct go_profile_oneshot *s, struct gocore *core);

/* Keep what was read, for a difference: the same processes are read once more, in the same order. A
 * process that runs another program by then has no profile. Results and totals count from here. */
void go_profile_oneshot_again(struct go_profile_oneshot *s);

/* Encode everything read as one profile, or the difference of both reads; *@ret_n_left_out records
 * had no room. 0, BUF_FULL, -errno. */
int go_profile_oneshot_encode(struct go_profile_oneshot *s,
			      const struct go_profile_report_opts *opts, struct buf *ret,
			      uint64_t *ret_n_left_out);

#endif
