/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_GOPROFILE_PROCESS_H
#define PODPROF_GOPROFILE_PROCESS_H

/*
 * One process of the node: the Go runtimes, each with a reader of the heap.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/file_id.h"
#include "discovery/pid.h"
#include "goheap/goruntime.h"

struct goheap;
struct goimages;
struct root;

/**
 * struct go_process_runtime - a runtime
 * @number: of the runtime in the process; from 1, never reused
 * @heap:   the reader, owned; NULL if freed for lack of room: the next look makes another reader
 * @bytes:  of the reader's records, as counted by the owner
 * @exact:  the allocator's own counters have been read: no estimates from then on
 * @told:   the last reported state; GORUNTIME_STATE_MAX at first
 */
struct go_process_runtime {
	struct file_id id;
	uint64_t bias;
	unsigned int number;
	struct goheap *heap;
	size_t bytes;
	bool exact;
	enum goruntime_state told;
};

/**
 * struct go_process - owns its arrays
 * @exe:       the present program
 * @state:     of the last look: GORUNTIME_OK with runtimes
 * @told:      the state was reported
 * @mappings:  as in goruntimes_find()
 * @wait:      present number of rounds between two looks
 * @next_look: the round of the next look
 * @is_cut:    some runtimes are not read, above the ceiling
 * @forced:    files with a runtime in which podprof turned sampling on in this process: never
 *             again, also after an exec
 */
struct go_process {
	struct pid_id pid;
	struct file_id exe;
	enum goruntime_state state;
	bool told;
	struct go_process_runtime *runtimes;
	size_t n_runtimes;
	unsigned int n_numbers;
	uint64_t mappings;
	bool is_cut;
	unsigned int wait;
	unsigned int next_look;
	struct file_id *forced;
	size_t n_forced;
	size_t cap_forced;
};

struct go_process_opts {
	const struct root *proc;
	struct goimages *images;
	size_t max_bytes; /* of records of a runtime */
	unsigned int round;
};

void go_process_init(struct go_process *p, const struct pid_id *pid);
void go_process_deinit(struct go_process *p);

/* Update the list of runtimes if a look is due. 0 or -errno. */
int go_process_look(struct go_process *p, const struct go_process_opts *opts);
/* Call after a read. A process that has left the program may run another program, or the same
 * program again. True if another read makes sense. */
bool go_process_left(struct go_process *p);
/* Free a reader, for lack of room. */
void go_process_shed(struct go_process *p, struct go_process_runtime *runtime);
/* Remember that podprof turned sampling on in @runtime. 0 or -errno. */
int go_process_forced(struct go_process *p, const struct go_process_runtime *runtime);
/* Whether podprof may turn sampling on in another runtime of the process. */
bool go_process_may_force(const struct go_process *p);

#endif
