/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_UNWINDTABLE_TABLE_BUILDER_H
#define PODPROF_UNWINDTABLE_TABLE_BUILDER_H

/*
 * Images and their unwind tables. Each mapped ELF image of a process in the walker's records has a
 * number. A walk through the image's code, or another request, makes its table wanted. A worker
 * then compiles the rows of the image with the most requests per byte of its file, and the builder
 * publishes the table to the walker.
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
 * struct table_builder_opts - borrowed pointers must outlive the builder
 * @tables: the kernel's side
 * @ready:  called when a table is in place, or is not expected any more; may be NULL
 */
struct table_builder_opts {
	struct loop *loop;
	struct tables *tables;
	void (*ready)(void *ctx, uint16_t number);
	void *ctx;
};

/* Whether an executable has a table now or soon. */
enum table_builder_state {
	TABLE_BUILDER_LIVE,
	TABLE_BUILDER_COMING, /* requested, being compiled, or waiting for a slab */
	TABLE_BUILDER_NEVER,  /* not expected: no number, a blocking file, no room, or a cooldown */
};

int table_builder_new(const struct table_builder_opts *opts, struct table_builder **ret);
/* Ends the compilation in progress at the next check of the work budget, within milliseconds.
 * Abandons the worker soon if the file blocks. */
void table_builder_free(struct table_builder *x);

/* The number of an image, 0 if it is not ELF or no number is left (counted). The builder holds a
 * reference to the image until the number is released. */
uint16_t table_builder_number(struct table_builder *x, struct image *image);

/* The image of a number; borrowed until the next sweep. NULL: none. */
struct image *table_builder_image(const struct table_builder *x, uint16_t number);

/* Requests the image's table, regardless of the walker's counts. */
void table_builder_want(struct table_builder *x, struct image *image);
/* The same by number. Each call counts as a stack that lacks the table. */
enum table_builder_state table_builder_want_number(struct table_builder *x, uint16_t number);
/* A stack is larger than its dump, so only a walk in the kernel with this table can complete it: a
 * wanted table counts as lacked by TABLE_BUILDER_HURRY stacks, and a compilation in progress gives
 * way to it. Most other stacks are whole without their tables, by dumps. */
void table_builder_hurry(struct table_builder *x, uint16_t number);
#define TABLE_BUILDER_HURRY 16

/* Every second or so: starts compiling wanted tables, highest score first. */
void table_builder_tick(struct table_builder *x);

/* Every minute or so: releases the numbers outside @used, an array of @n entries by number. Their
 * tables stay for a grace period (tables.h). */
void table_builder_sweep(struct table_builder *x, const bool *used, size_t n);

/* Waits for a table in progress, at most so long. False if there was none. */
bool table_builder_wait(struct table_builder *x, uint64_t timeout_ns);
/* Tables wanted or being compiled. */
size_t table_builder_pending(const struct table_builder *x);
/* A metric_collect_fn: podprof_unwind_compiled, _compile_seconds, _numbers_full. */
void table_builder_collect(void *x, struct metric_sink *sink);

#endif
