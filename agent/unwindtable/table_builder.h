/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_UNWINDTABLE_TABLE_BUILDER_H
#define PODPROF_UNWINDTABLE_TABLE_BUILDER_H

/*
 * Images and their unwind tables: each image that is mapped by a process the walker knows has a
 * number; when the walker comes upon its code, or somebody else wants it, its rows are compiled on
 * a worker and its table is put where the walker finds it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct image;
struct loop;
struct metric_sink;
struct table_builder;
struct tables;

/**
 * struct table_builder_opts - what is borrowed must outlive it
 * @tables: the kernel's side
 * @ready:  called when a table that was made is there, or is known not to come; NULL: nobody asks
 */
struct table_builder_opts {
	struct loop *loop;
	struct tables *tables;
	void (*ready)(void *ctx, uint16_t number);
	void *ctx;
};

/* Whether an executable has a table. */
enum table_builder_state {
	TABLE_BUILDER_LIVE,
	TABLE_BUILDER_COMING, /* or it is to be asked for again */
	TABLE_BUILDER_NEVER,
};

int table_builder_new(const struct table_builder_opts *opts, struct table_builder **ret);
/* Waits for the table that is being compiled. */
void table_builder_free(struct table_builder *x);

/* The number of an image, 0 if it cannot have any (no ELF file, or no number is left: counted). The
 * image is referred to until its number is given up. */
uint16_t table_builder_number(struct table_builder *x, struct image *image);

/* The image's table is wanted, whatever the walker has counted. */
void table_builder_want(struct table_builder *x, struct image *image);
/* The same by its number. */
enum table_builder_state table_builder_want_number(struct table_builder *x, uint16_t number);

/* Every second or so: have compiled what is wanted, what is wanted most first. */
void table_builder_tick(struct table_builder *x);

/* Every minute or so: give up the numbers that are not in @used, which has @n, by number. Their
 * tables stay for a while (tables.h). */
void table_builder_sweep(struct table_builder *x, const bool *used, size_t n);

/* Wait for a table that is being made, at most so long. False if none was. */
bool table_builder_wait(struct table_builder *x, uint64_t timeout_ns);
/* Tables waiting for the worker or being compiled. */
size_t table_builder_pending(const struct table_builder *x);
/* A metric_collect_fn: podprof_unwind_compiled, _compile_seconds, _numbers_full. */
void table_builder_collect(void *x, struct metric_sink *sink);

#endif
