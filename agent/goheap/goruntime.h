/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_GOHEAP_GORUNTIME_H
#define PODPROF_GOHEAP_GORUNTIME_H

/*
 * Go's runtime in a process: the addresses of the profilers' records, and the profilers' settings
 * at one moment.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/file_id.h"
#include "goheap/goruntime_file.h"

struct memory;

/* The state of a process's heap profile. The name is the value of the label "state" and of
 * inspect's "state". */
enum goruntime_state {
	GORUNTIME_OK = 0,
	GORUNTIME_NO_SAMPLES_YET,
	GORUNTIME_DISABLED_BY_LINKER,  /* no code of the program reads heap profiles */
	GORUNTIME_DISABLED_BY_PROGRAM, /* the program has set runtime.MemProfileRate to 0 */
	GORUNTIME_FORCED,	       /* was off; podprof has turned it on */
	GORUNTIME_DENIED,
	GORUNTIME_NO_RUNTIME,	  /* not a Go program */
	GORUNTIME_UNKNOWN_LAYOUT, /* a Go program without the shape of a known release */
	GORUNTIME_GONE,
	GORUNTIME_TOO_LARGE,	/* more records than the ceilings allow */
	GORUNTIME_UNRESPONSIVE, /* reads of it block: left alone for a while */
	GORUNTIME_STATE_MAX,
};

const char *goruntime_state_name(int state);

/* Kept bytes of a file's name, for people. Reached: cut. */
#define GORUNTIME_NAME_MAX 64

/**
 * struct goruntime - a Go runtime in a process
 * @file: read from its file
 * @id: the file
 * @name: the last component of the file's path
 * @state: GORUNTIME_OK, or _UNKNOWN_LAYOUT: nothing can be read
 * @is_unpacked: @file is of the process's memory; @id and @name are of the packed executable
 * @bias: run-time address minus ELF virtual address, the same for the whole file
 * @certain: the runtime's own description in the process's memory agrees with the file and the
 *           mappings, and runtime.MemProfileRate is in its data. Reading does not need this, since
 *           all data is checked; writing does.
 */
struct goruntime {
	struct goruntime_file file;
	struct file_id id;
	char name[GORUNTIME_NAME_MAX];
	enum goruntime_state state;
	bool is_unpacked;
	uint64_t bias;
	bool certain;
};

/**
 * goruntime_check() - compare with the process's memory; sets @rt->certain
 *
 * Return: GORUNTIME_OK; _UNKNOWN_LAYOUT where the memory says something else; _GONE; _DENIED;
 * -errno.
 */
int goruntime_check(struct goruntime *rt, struct memory *m);

/* Whether @other is a plugin in @rt's process: a plugin has its own tables but uses the runtime
 * @rt. */
bool goruntime_has_plugin(const struct goruntime *rt, struct memory *m,
			  const struct goruntime *other);

/* The run-time address of a variable, 0 if not found. */
uint64_t goruntime_addr(const struct goruntime *rt, enum goruntime_var var);

/* The profiler's variables at one moment. */
struct goruntime_now {
	uint64_t mbuckets;
	int64_t rate;
	uint32_t cycle;	     /* counts garbage collections */
	uint64_t cycle_word; /* as in memory, with the flag: differs after any change */
	bool disabled_by_linker;
	bool was_on; /* sampling is on, or has been */
};

/* 1 call, 2 if sampling is off. mbuckets stays unset if the address is unknown. 0, an
 * outcome of memory_read(), -errno. */
int goruntime_read_now(const struct goruntime *rt, struct memory *m, struct goruntime_now *ret);
/* GORUNTIME_OK, _NO_SAMPLES_YET, _DISABLED_BY_LINKER, _DISABLED_BY_PROGRAM, _FORCED. */
enum goruntime_state goruntime_state_now(const struct goruntime_now *now);

/* Translate results of reads into the state of a Go runtime. 0 and -errno stay unchanged. */
int gostate_of_memory(int r);
int gostate_of_buckets(int r);
int gostate_of_maps(int r);

#endif
