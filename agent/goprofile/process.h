/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_GOPROFILE_PROCESS_H
#define PODPROF_GOPROFILE_PROCESS_H

/*
 * One process of the node: the Go runtimes that it has, each with a reader of its heap.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "discovery/pid.h"
#include "goheap/goruntime.h"

struct goheap;
struct goimages;
struct root;

/**
 * struct go_process_runtime - one runtime
 * @number: of it in the process; from 1, never given twice
 * @heap:   its reader, owned; NULL where there is none for want of room: made anew by the next look
 * @bytes:  of the reader's records, as its owner counts them
 * @exact:  the allocator's own counters have been read: no estimate from then on
 * @told:   the state that was told last; GORUNTIME_STATE_MAX at first
 */
struct go_process_runtime {
	struct goruntime_id id;
	uint64_t bias;
	unsigned int number;
	struct goheap *heap;
	size_t bytes;
	bool exact;
	enum goruntime_state told;
};

/**
 * struct go_process - owns all it has
 * @exe:       the program that it runs
 * @state:     of the last look: GORUNTIME_OK where there are runtimes
 * @told:      the state was told
 * @mappings:  as goruntimes_find() has them
 * @wait:      rounds between two looks now
 * @next_look: the round of the next one
 * @is_cut:    it has more runtimes than are read
 * @forced:    files in whose runtimes sampling was turned on in this process: never again, whatever
 *             it executes
 */
struct go_process {
	struct pid_id pid;
	struct pid_exe exe;
	enum goruntime_state state;
	bool told;
	struct go_process_runtime *runtimes;
	size_t n_runtimes;
	unsigned int n_numbers;
	uint64_t mappings;
	bool is_cut;
	unsigned int wait;
	unsigned int next_look;
	struct goruntime_id *forced;
	size_t n_forced;
	size_t cap_forced;
};

struct go_process_opts {
	const struct root *proc;
	struct goimages *images;
	size_t max_bytes; /* of records of one runtime */
	unsigned int round;
};

void go_process_init(struct go_process *p, const struct pid_id *pid);
void go_process_deinit(struct go_process *p);

/* See which runtimes it has, if it is time for that. 0 or -errno. */
int go_process_look(struct go_process *p, const struct go_process_opts *opts);
/* After a read that has found that the process has left the program: it may run another one, or the
 * same one anew. True if there is reason to read again. */
bool go_process_left(struct go_process *p);
/* Free a reader, for want of room. */
void go_process_shed(struct go_process *p, struct go_process_runtime *runtime);
/* Remember that sampling was turned on in it. 0 or -errno. */
int go_process_forced(struct go_process *p, const struct go_process_runtime *runtime);
/* Whether that may be done to one more of its runtimes. */
bool go_process_may_force(const struct go_process *p);
bool go_process_was_forced(const struct go_process *p, const struct goruntime_id *id);

#endif
