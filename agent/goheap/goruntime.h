/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_GOHEAP_GORUNTIME_H
#define PODPROF_GOHEAP_GORUNTIME_H

/*
 * Go's runtime in a process: at which addresses it keeps what its profilers have recorded, and how
 * they are set at one moment.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "discovery/pid.h"
#include "goheap/goruntime_file.h"

struct memory;
struct root;

/* What there is to say about one process's heap profile, one word for each; the name is the value
 * of the label "state" and of inspect's "state". */
enum goruntime_state {
	GORUNTIME_OK = 0,
	GORUNTIME_NO_SAMPLES_YET,
	GORUNTIME_DISABLED_BY_LINKER,  /* nothing in the program asks for heap profiles */
	GORUNTIME_DISABLED_BY_PROGRAM, /* it has set runtime.MemProfileRate to 0 */
	GORUNTIME_FORCED,	       /* was off; podprof has turned it on */
	GORUNTIME_DENIED,
	GORUNTIME_NO_RUNTIME,	  /* not a Go program */
	GORUNTIME_UNKNOWN_LAYOUT, /* a Go program, not shaped as those of Go 1.16 to 1.27 */
	GORUNTIME_GONE,
	GORUNTIME_TOO_LARGE, /* more records than the ceilings allow */
	GORUNTIME_STATE_MAX,
};

const char *goruntime_state_name(int state);

/**
 * struct goruntime - one Go program in one process
 * @bias: run-time address minus ELF virtual address, the same for the whole file
 */
struct goruntime {
	struct goruntime_file file;
	uint64_t bias;
};

/**
 * goruntime_find() - the Go runtime of a process's executable
 * @ret: set on GORUNTIME_OK; on GORUNTIME_UNKNOWN_LAYOUT too, for its version
 *
 * Return: GORUNTIME_OK; GORUNTIME_NO_RUNTIME, _GONE, _DENIED; _UNKNOWN_LAYOUT as above, and when
 * the mappings do not fit the file; -errno.
 */
int goruntime_find(const struct root *proc, const struct pid_id *id, struct goruntime *ret);

/* The run-time address of a variable, 0 if it was not found. */
uint64_t goruntime_addr(const struct goruntime *rt, enum goruntime_var var);

/* The profiler's variables at one moment. */
struct goruntime_now {
	uint64_t mbuckets;
	int64_t rate;
	uint32_t cycle;	     /* counts garbage collections */
	uint64_t cycle_word; /* as it lies in memory, flag and all: differs if anything moved */
	bool disabled_by_linker;
};

/* One call. 0, an outcome of memory_read(), -errno. */
int goruntime_read_now(const struct goruntime *rt, struct memory *m, struct goruntime_now *ret);
/* GORUNTIME_OK, _NO_SAMPLES_YET, _DISABLED_BY_LINKER, _DISABLED_BY_PROGRAM. */
enum goruntime_state goruntime_state_now(const struct goruntime_now *now);

#endif
