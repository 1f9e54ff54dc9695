/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_UNWINDTABLE_UNWINDER_H
#define PODPROF_UNWINDTABLE_UNWINDER_H

/*
 * What the walker in the kernel goes by: the mappings of the processes that are sampled, and the
 * unwind tables of the images in them. Told of each sample, it publishes the process that the
 * walker did not know, and has tables made for what the walker came upon.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile/bpfobj.h"

struct copy;
struct loop;
struct metric_sink;
struct root;
struct sample;
struct space;
struct tablecache;
struct unwinder;

/**
 * struct unwinder_opts - what is borrowed must outlive it
 * @kernel:      the kernel's maps
 * @table_bytes: ceiling of kernel memory for tables
 * @rows_dir:    the folder with the user's row files; NULL for none
 * @cache:       tables on disk; NULL: none
 * @mode:        how copied stacks are walked
 * @ready:       called when a table that unwinder_walk() waits for is there, or will not
 *               come; 0: some have found their places
 */
struct unwinder_opts {
	struct loop *loop;
	const struct root *proc;
	struct bpfobj_unwind kernel;
	size_t table_bytes;
	const char *rows_dir;
	struct tablecache *cache;
	enum settings_unwind mode;
	void (*ready)(void *ctx, uint16_t exe);
	void *ctx;
};

enum unwinder_outcome {
	UNWINDER_OK = 0,
	UNWINDER_WAITS, /* what it came upon is on the way: again later, or as it is */
};

/* 0 or -errno. */
int unwinder_new(const struct unwinder_opts *opts, struct unwinder **ret);
/* No program of the kernel's may use the maps any more. */
void unwinder_free(struct unwinder *u);

/* A sample is handed over; @space is its process's address space. */
void unwinder_sample(struct unwinder *u, const struct sample *sample, const struct space *space);
/**
 * unwinder_walk() - walk a stack that was copied out
 * @space:     of the process, as it was then
 * @ret:       the sample; its user frames are borrowed until the next walk
 * @ret_waits: with UNWINDER_WAITS: the executable whose table is on the way
 *
 * Also tells the walker in the kernel of the process, if that is needed and it lives.
 *
 * Return: 0 or UNWINDER_WAITS; @ret is set with both.
 */
int unwinder_walk(struct unwinder *u, const struct copy *copy, const struct space *space,
		  struct sample *ret, uint16_t *ret_waits);
/* What one waits for is still wanted. */
void unwinder_want(struct unwinder *u, uint16_t exe);
/* After some walks. */
void unwinder_rest(struct unwinder *u);
/* Wait for a table that is being made, at most so long. False if none was. */
bool unwinder_wait(struct unwinder *u, uint64_t timeout_ns);

/* A process's leader has ended. */
void unwinder_exit(struct unwinder *u, uint32_t tgid);
/* After samples were handed over, every second or so. */
void unwinder_tick(struct unwinder *u);
/* Every minute or so: forget what has gone. */
void unwinder_sweep(struct unwinder *u);

/* Tables that are wanted and not there yet. */
size_t unwinder_pending(const struct unwinder *u);
/* A metric_collect_fn: podprof_unwind_*. */
void unwinder_collect(void *unwinder, struct metric_sink *sink);

#endif
