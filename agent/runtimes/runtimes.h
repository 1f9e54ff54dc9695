/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_RUNTIMES_RUNTIMES_H
#define PODPROF_RUNTIMES_RUNTIMES_H

/*
 * Language runtimes: the runtime of a process, and the function of a runtime's frame
 * (bpf/shared/frame.h), read while the process lives. Each runtime has a reader. The loop owns the
 * readers. A function is an image, shared with the report thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "procmap/image.h"
#include "shared/frame.h"

struct address_space;
struct address_space_who;
struct loop;
struct metric_sink;
struct root;
struct runtime_budget;
struct runtimes;

/* Bytes of the functions of all processes in profiles, and of places with inlined functions, 700
 * bytes each. An owner may take the last quarter by its share alone (base/share.h). Reached: a new
 * function is "[python: too many functions]"; `podprof_runtime_frames_total{outcome="full"}`. */
#define RUNTIMES_FUNCTIONS_BYTES_MAX ((size_t)20 << 20)
/* Bytes of a function's name. Reached: cut. */
#define RUNTIMES_NAME_MAX	     256
/* Bytes of the name of a function's file. Reached: cut. */
#define RUNTIMES_FILE_MAX	     512

/* Functions that are inlined into one another at one place. HotSpot inlines 15 levels (9 before
 * 14), and more by annotations. Reached: the reader leaves out the middle. */
#define RUNTIMES_PLACES_MAX 32

/* The reader's answer for a frame. Strings and places are borrowed until the next call of the
 * reader. Strings may have any bytes: utf8_make_printable() repairs a copy. @inlined: @n_inlined
 * functions (below RUNTIMES_PLACES_MAX) that are inlined into @function, innermost first; @inlined
 * of each is NULL. An empty name: the frame is the runtime's own, and not shown. */
struct runtime_place {
	struct image_function function;
	uint32_t line; /* 0 if not known */
	const struct runtime_place *inlined;
	size_t n_inlined;
	uint64_t until_ns; /* monotonic: the answer counts until then; 0: for ever */
};

enum runtime_outcome {
	RUNTIME_OK = 0,
	RUNTIME_NO_PLACE, /* the function is known, its line and the inlined functions are not */
	RUNTIME_GONE,	  /* the function was freed, moved or replaced since the sample */
};

/**
 * struct runtime_host - the callbacks and the loop for readers; outlives the readers
 * @loop:  for threads; NULL in tests without them
 * @budget: of the names of all runtimes; runtimes_new() sets it
 * @task_names: the walker also wants the tasks of runtimes that have them
 * @expected: called on the loop: a process has mapped the runtime (enum frame_runtime) and is about
 *         to run it; NULL: not called
 * @found: called on the loop: a process has the runtime (enum frame_runtime), and record() has the
 *         value for the process
 * @named: called on the loop: frames of the process @pid have names, or will have none
 */
struct runtime_host {
	const struct root *proc;
	struct loop *loop;
	struct runtime_budget *budget;
	bool task_names;
	void (*expected)(void *ctx, uint32_t runtime);
	void (*found)(void *ctx, uint32_t runtime, const struct address_space_who *who);
	void (*named)(void *ctx, uint64_t pid);
	void *ctx;
};

/* Metrics of a reader, a family each. */
enum runtime_family {
	RUNTIME_FAMILY_PROCESSES,
	RUNTIME_FAMILY_REFUSED,
	RUNTIME_FAMILY_BYTES,
	RUNTIME_FAMILY_EVICTED,
	RUNTIME_FAMILY_MAX,
};

/**
 * struct runtime - the reader of one language runtime. Nothing here but @wait may block
 * @name:       "python": functions are in the mapping "[python]"
 * @new:        make the reader's state; NULL: the reader has no state. 0 or -errno
 * @free:       free this state; NULL if @new is NULL
 * @runs:       whether a process has this runtime; called for each record of a process. May be
 *              false at first, and host.found() called later
 * @record:     the value for the process in the runtime's own map (bpf/lib/), borrowed until the
 *              next call of the reader; NULL: none. A NULL function: the runtime has no map
 * @frame_name: the function of a FRAME_RUNTIME. 0; RUNTIME_NO_PLACE; RUNTIME_GONE; -ENOMEM; any
 *              other -errno counts as RUNTIME_GONE. A result of 0 is cached by program and words
 *
 * For a runtime with excerpts (bpf/shared/stack_dump.h), else NULL:
 *
 * @has_excerpts: excerpts have the names of processes that end soon
 * @exe:     the value of *@ret_n bytes for the walker's map of programs with the runtime, if a
 *           mapped file of the address space has it; NULL: not known. Borrowed
 * @excerpt: takes the functions in an excerpt. The record of the process for the walk over the
 *           dump, borrowed until the next call; NULL: not known
 *
 * For a reader that reads names on a thread of its own; NULL for other readers:
 *
 * @saw:     the program of a process that was sampled: the process's earlier programs are forgotten
 *           with the next sweep
 * @wants:   whether the thread is reading or will read the name of a frame; host.named() follows.
 * Of a frame whose result is cached, called once a window
 * @flush:   starts reading the names for which wants() was true
 * @pending: number of tasks with the thread
 * @wait:    wait for one of these tasks, at most @timeout_ns. For the end of a program
 * @sweep:   once a window: forget ended processes
 * @collect: the reader's rows of a family, labelled with the runtime
 */
struct runtime {
	const char *name;
	int (*new)(const struct runtime_host *host, void **ret);
	void (*free)(void *reader);
	bool (*runs)(void *reader, const struct address_space_who *who,
		     const struct address_space *space);
	const void *(*record)(void *reader, const struct address_space_who *who);
	int (*frame_name)(void *reader, const struct address_space_who *who,
			  const struct frame_record *frame, struct runtime_place *ret);
	bool has_excerpts;
	const void *(*exe)(void *reader, const struct address_space *space, size_t *ret_n);
	const void *(*excerpt)(void *reader, const struct address_space_who *who,
			       const struct address_space *space, const uint8_t *bytes, size_t n);
	void (*saw)(void *reader, const struct address_space_who *who);
	bool (*wants)(void *reader, const struct address_space_who *who,
		      const struct frame_record *frame);
	void (*flush)(void *reader);
	size_t (*pending)(void *reader);
	void (*wait)(void *reader, uint64_t timeout_ns);
	void (*sweep)(void *reader);
	void (*collect)(void *reader, enum runtime_family family, struct metric_sink *sink);
};

/* CPython (python.c). */
extern const struct runtime runtime_python;
/* HotSpot, the virtual machine of Java (hotspot.c). */
extern const struct runtime runtime_hotspot;
/* V8, the virtual machine of Node (v8.c). */
extern const struct runtime runtime_v8;

/**
 * struct runtimes_opts - borrowed until runtimes_free()
 * @host:  for the readers; copied
 * @table: @n readers by enum frame_runtime, NULL for a runtime without reader; NULL: podprof's own
 */
struct runtimes_opts {
	struct runtime_host host;
	const struct runtime *const *table;
	size_t n;
};

/* 0 or -errno. */
int runtimes_new(const struct runtimes_opts *opts, struct runtimes **ret);
void runtimes_free(struct runtimes *rs);

/* The first runtime of the table in a process, for the walker; or FRAME_RUNTIME_NONE.
 */
uint32_t runtimes_of(const struct runtimes *rs, const struct address_space_who *who,
		     const struct address_space *space);
/* The value for the process in the map of the runtime @number; NULL: none. Borrowed. */
const void *runtimes_record(const struct runtimes *rs, uint32_t number,
			    const struct address_space_who *who);
/* The runtime in the mapped files of an address space that has excerpts, with the value for its map
 * of programs; FRAME_RUNTIME_NONE: none is known. Borrowed. */
uint32_t runtimes_exe(const struct runtimes *rs, const struct address_space *space,
		      const void **ret, size_t *ret_n);
/* Whether names of the runtime @number come with excerpts, and not only from living processes. */
bool runtimes_has_excerpts(const struct runtimes *rs, uint32_t number);
/* Takes the functions in an excerpt of the runtime @number. The record of the process, for the walk
 * over its dump; NULL: not known. Borrowed. */
const void *runtimes_excerpt(const struct runtimes *rs, uint32_t number,
			     const struct address_space_who *who, const struct address_space *space,
			     const uint8_t *bytes, size_t n);
/* Whether the name of a frame is being read, or will be after runtimes_flush(). */
bool runtimes_wants(const struct runtimes *rs, const struct address_space_who *who,
		    const struct frame_record *frame);
void runtimes_flush(const struct runtimes *rs);
/* Number of tasks of the readers' threads. */
size_t runtimes_pending(const struct runtimes *rs);
/* Waits for one task of each thread, at most @timeout_ns. For the end of a program, after the loop.
 */
void runtimes_wait(const struct runtimes *rs, uint64_t timeout_ns);
/**
 * runtimes_resolve() - the function of a frame
 * @frame: FRAME_RUNTIME or FRAME_BROKEN
 * @ret:   owns a reference to an IMAGE_RUNTIME, with the functions inlined there, or to an
 *         IMAGE_BROKEN named by its reason. Counted by outcome
 *
 * Return: 0 or -ENOMEM.
 */
int runtimes_resolve(struct runtimes *rs, const struct address_space_who *who,
		     const struct frame_record *frame, struct frame *ret);
/* Once a window: free functions without references that were not seen since the last time, and
 * forget ended processes. */
void runtimes_sweep(struct runtimes *rs);
/* A metric_collect_fn: podprof_runtime_frames by outcome, podprof_runtime_functions, and each enum
 * runtime_family. */
void runtimes_collect(void *runtimes, struct metric_sink *sink);

#endif
