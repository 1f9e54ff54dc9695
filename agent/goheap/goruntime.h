/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_GOHEAP_GORUNTIME_H
#define PODPROF_GOHEAP_GORUNTIME_H

/*
 * Where a Go program keeps what its runtime's memory profiler has recorded: which Go it is, the
 * addresses of the profiler's variables in the file and in a process, and how the profiler is set.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "discovery/pid.h"

struct elffile;
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

/* The variables, by their names in Go's package runtime. */
enum goruntime_var {
	GORUNTIME_MBUCKETS,    /* head of the list of heap records */
	GORUNTIME_RATE,	       /* MemProfileRate, int */
	GORUNTIME_CYCLE,       /* mProfCycle, uint32: cycle << 1 | flushed; Go 1.19 and later */
	GORUNTIME_OLD_CYCLE,   /* mProf, starts with the cycle as uint32; before Go 1.19 */
	GORUNTIME_LINKER_FLAG, /* disableMemoryProfiling, bool; Go 1.17 and later */
	GORUNTIME_VAR_MAX,
};

enum goruntime_source {
	GORUNTIME_FROM_NOWHERE = 0,
	GORUNTIME_FROM_SYMTAB,
	GORUNTIME_FROM_CODE,
	GORUNTIME_SOURCE_MAX,
};

/* One variable. The section holds all of it; "" where the file has no such section. */
struct goruntime_place {
	uint64_t vaddr;
	enum goruntime_source source;
	char section[32];
};

/* Bytes of a version that are kept; "go1.27.3 X:boringcrypto" is a long one. */
#define GORUNTIME_VERSION_MAX 64

/**
 * struct goruntime_file - what an ELF file says
 * @version: as the linker stored it ("go1.26.8"), "" if it did not; printable ASCII, cut. A hint:
 *           it may carry a suffix, be "devel ...", or be what somebody made up.
 * @unread:  nothing in the program reads heap profiles, so its linker has turned them off. Where
 *           there is GORUNTIME_LINKER_FLAG that tells.
 * @heap_stats, @total_alloc: vaddrs of the allocator's counters (gototals.h), 0 where not known
 */
struct goruntime_file {
	char version[GORUNTIME_VERSION_MAX];
	struct goruntime_place vars[GORUNTIME_VAR_MAX];
	bool unread;
	uint64_t heap_stats;
	uint64_t total_alloc;
};

/**
 * goruntime_file_read() - look at one file
 *
 * Return: GORUNTIME_OK; GORUNTIME_NO_RUNTIME for what is not Go, which costs nothing but the
 * section headers if there are any; GORUNTIME_UNKNOWN_LAYOUT if the list of records or the rate was
 * not found, with the version in *@ret all the same; -errno.
 */
int goruntime_file_read(const struct elffile *ef, struct goruntime_file *ret);

/* The second number of the version: 26 for "go1.26.8"; 0 if there is none to be seen. */
unsigned int goruntime_minor(const struct goruntime_file *file);

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

const char *goruntime_var_name(enum goruntime_var var); /* "runtime.mbuckets" */
const char *goruntime_source_name(enum goruntime_source source);

#endif
