/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_UNWINDTABLE_UNWIND_PUBLISHER_H
#define PODPROF_UNWINDTABLE_UNWIND_PUBLISHER_H

/*
 * Gives the walker in the kernel its data: the mappings of sampled processes, and the unwind tables
 * of their images. The publisher gets each sample, publishes unknown processes, and requests the
 * tables that the walker missed.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile/bpfobj.h"

struct address_space;
struct address_space_who;
struct loop;
struct metric_sink;
struct root;
struct runtimes;
struct sample;
struct stack_dump;
struct unwind_publisher;

/* Bytes of code from which the table of a file is made before a sample is in the file, if a stack
 * of the process was larger than its dump. Files of a process that count, by address. */
#define UNWIND_PUBLISHER_AHEAD_BYTES ((uint64_t)4 << 20)
#define UNWIND_PUBLISHER_AHEAD	     4

/**
 * struct unwind_publisher_opts - borrowed pointers must outlive the publisher
 * @kernel:      the kernel's maps
 * @table_bytes: ceiling of kernel memory for tables
 * @runtimes:    which runtimes processes have
 * @all_tables:  request the table of each mapped file of a process, not only of those in stacks
 * @wanted:      called when a record names a runtime, so that the kernel needs its walk; NULL: not
 *               called
 * @mode:        how stack dumps are walked
 * @ready:       called when a table for which unwind_publisher_walk() waits is in place or will not
 *               come; @exe 0: one or more tables that waited for a slab are in place. With @round
 *               not 0: early rules of @exe (early_rules.h) are known up to this round
 */
struct unwind_publisher_opts {
	struct loop *loop;
	const struct root *proc;
	struct bpfobj_unwind kernel;
	size_t table_bytes;
	bool all_tables;
	const struct runtimes *runtimes;
	void (*wanted)(void *ctx, uint32_t runtime);
	enum settings_unwind mode;
	void (*ready)(void *ctx, uint16_t exe, uint32_t round);
	void *ctx;
};

enum unwind_publisher_outcome {
	UNWIND_PUBLISHER_OK = 0,
	UNWIND_PUBLISHER_WAITS, /* a table is being made: walk again later, or accept the stack */
};

/**
 * struct unwind_publisher_wait - the wait of a stack dump; all 0 before the first walk
 * @exe:   executable of the missing table; 0: none is missing
 * @asked: executable whose early rules were requested for the whole dump; 0: none
 * @round: of the early rules of @exe, the one with the last rules for this dump; 0: none is on the
 * way
 */
struct unwind_publisher_wait {
	uint16_t exe;
	uint16_t asked;
	uint32_t round;
};

/* 0 or -errno. */
int unwind_publisher_new(const struct unwind_publisher_opts *opts, struct unwind_publisher **ret);
/* No program of the kernel's may use the maps any more. */
void unwind_publisher_free(struct unwind_publisher *u);

/* Publishes the sample's process if its mappings are new to the walker, and requests the table that
 * the walk has missed. @space: the process's address space. */
void unwind_publisher_sample(struct unwind_publisher *u, const struct sample *sample,
			     const struct address_space *space);
/* Takes the names in a dump of kind STACK_DUMP_NAMES. False if no mapped file is known to have the
 * runtime. */
bool unwind_publisher_names(struct unwind_publisher *u, const struct stack_dump *dump,
			    const struct address_space *space);
/**
 * unwind_publisher_walk() - walk a stack dump
 * @space:     the process's address space at the time of the dump
 * @ret:       the sample; its user frames are borrowed until the next walk
 * @wait:      as the walk before left it; updated
 *
 * Also publishes the process to the walker in the kernel, if necessary and if the process lives.
 *
 * Return: 0 or UNWIND_PUBLISHER_WAITS; @ret is set with both.
 */
int unwind_publisher_walk(struct unwind_publisher *u, const struct stack_dump *dump,
			  const struct address_space *space, struct sample *ret,
			  struct unwind_publisher_wait *wait);
/* Requests a missing table again, with the weight of one more stack. False if the table is in
 * place, or will not come. */
bool unwind_publisher_want(struct unwind_publisher *u, uint16_t exe);
/* After a group of walks: unmaps the table pages that were mapped for the walks. */
void unwind_publisher_rest(struct unwind_publisher *u);
/* Waits for a table in progress, at most so long. False if there was none. */
bool unwind_publisher_wait(struct unwind_publisher *u, uint64_t timeout_ns);

/* A runtime was found in a process with this address space: later walks of the process have the
 * runtime's step, and dumps of its program have excerpts. */
void unwind_publisher_runtime(struct unwind_publisher *u, uint32_t runtime,
			      const struct address_space_who *who,
			      const struct address_space *space);
/* A process's leader has ended. */
void unwind_publisher_exit(struct unwind_publisher *u, uint32_t tgid);
/* After samples were handed over, every second or so. */
void unwind_publisher_tick(struct unwind_publisher *u);
/* Every minute or so: drops unused executable numbers. @check: also withdraws processes that are no
 * longer in /proc and had no unwind_publisher_exit(). */
void unwind_publisher_sweep(struct unwind_publisher *u, bool check);

/* Count of wanted tables that are not in place. */
size_t unwind_publisher_pending(const struct unwind_publisher *u);
/* A metric_collect_fn: podprof_unwind_*. */
void unwind_publisher_collect(void *publisher, struct metric_sink *sink);

#endif
