/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_RUNTIMES_RUNTIMES_H
#define PODPROF_RUNTIMES_RUNTIMES_H

/*
 * Language runtimes: the runtime of a process, and the function of a runtime's frame
 * (bpf/shared/frame.h), read while the process lives. Each runtime has a reader. The loop owns
 * this; a function is an image, shared with the report thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "procmap/image.h"
#include "shared/frame.h"

struct address_space;
struct address_space_who;
struct metric_sink;
struct root;
struct runtimes;

/* Functions of all processes in memory, 400 bytes each with their names: 20 MB. Reached: a new
 * function is "[python: too many functions]"; `podprof_runtime_frames_total{outcome="full"}`. */
#define RUNTIMES_FUNCTIONS_MAX 50000
/* Bytes of a function's name. Reached: cut. */
#define RUNTIMES_NAME_MAX      256
/* Bytes of the name of its file. Reached: cut. */
#define RUNTIMES_FILE_MAX      512

/* The reader's answer for a frame. Strings are borrowed until the next call of the reader, and may
 * have any bytes: utf8_make_printable() repairs a copy. */
struct runtime_place {
	struct image_function function;
	uint32_t line; /* 0 if not known */
};

enum runtime_outcome {
	RUNTIME_OK = 0,
	RUNTIME_GONE, /* the function was freed, moved or replaced since the sample */
};

/**
 * struct runtime - the reader of one language runtime
 * @name:       "python": functions are in the mapping "[python]"
 * @new:        make the reader's state; NULL: none. 0 or -errno
 * @free:       free that state; NULL together with @new
 * @runs:       whether a process has this runtime; called for each record of a process
 * @frame_name: the function of a FRAME_RUNTIME. 0; RUNTIME_GONE; -ENOMEM; any other -errno counts
 *              as RUNTIME_GONE
 */
struct runtime {
	const char *name;
	int (*new)(const struct root *proc, void **ret);
	void (*free)(void *reader);
	bool (*runs)(void *reader, const struct address_space_who *who,
		     const struct address_space *space);
	int (*frame_name)(void *reader, const struct address_space_who *who,
			  const struct frame_record *frame, struct runtime_place *ret);
};

/**
 * struct runtimes_opts - borrowed until runtimes_free()
 * @proc:  for the readers
 * @table: @n readers by enum frame_runtime, NULL for a runtime without reader; NULL: podprof's own
 */
struct runtimes_opts {
	const struct root *proc;
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
/**
 * runtimes_resolve() - the function of a frame
 * @frame: FRAME_RUNTIME or FRAME_BROKEN
 * @ret:   owns a reference to an IMAGE_RUNTIME, or to an IMAGE_BROKEN named by its reason. Counted
 *         by outcome
 *
 * Return: 0 or -ENOMEM.
 */
int runtimes_resolve(struct runtimes *rs, const struct address_space_who *who,
		     const struct frame_record *frame, struct frame *ret);
/* Once a window: free functions without references. */
void runtimes_sweep(struct runtimes *rs);
/* A metric_collect_fn: podprof_runtime_frames by outcome, podprof_runtime_functions. */
void runtimes_collect(void *runtimes, struct metric_sink *sink);

#endif
