/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_UNWINDTABLE_EXECUTABLES_H
#define PODPROF_UNWINDTABLE_EXECUTABLES_H

/*
 * Images and their unwind tables: each image that is mapped by a process the walker knows has a
 * number; when the walker comes upon its code, or somebody else wants it, its rows are compiled on
 * a worker and its table is put where the walker finds it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct executables;
struct image;
struct loop;
struct metric_sink;
struct tablecache;
struct tables;

/**
 * struct executables_opts - what is borrowed must outlive it
 * @tables:   the kernel's side
 * @rows_dir: the folder with the user's row files (unwindtable/rowfile.h); NULL for none
 * @cache:    tables on disk, for the worker alone from now on; NULL: none
 * @ready:    called when a table that was made is there, or is known not to come; NULL: nobody asks
 */
struct executables_opts {
	struct loop *loop;
	struct tables *tables;
	const char *rows_dir;
	struct tablecache *cache;
	void (*ready)(void *ctx, uint16_t number);
	void *ctx;
};

/* Whether an executable has a table. */
enum executables_state {
	EXECUTABLES_LIVE,
	EXECUTABLES_COMING, /* or it is to be asked for again */
	EXECUTABLES_NEVER,
};

int executables_new(const struct executables_opts *opts, struct executables **ret);
/* Waits for the table that is being compiled. */
void executables_free(struct executables *x);

/* The number of an image, 0 if it cannot have any (no ELF file, or no number is left: counted). The
 * image is referred to until its number is given up. */
uint16_t executables_number(struct executables *x, struct image *image);

/* The image's table is wanted, whatever the walker has counted. */
void executables_want(struct executables *x, struct image *image);
/* The same by its number. */
enum executables_state executables_want_number(struct executables *x, uint16_t number);

/* Every second or so: have compiled what is wanted, what is wanted most first. */
void executables_tick(struct executables *x);

/* Every minute or so: give up the numbers that are not in @used, which has @n, by number. Their
 * tables stay for a while (tables.h). Images whose row file has changed are compiled again. */
void executables_sweep(struct executables *x, const bool *used, size_t n);

/* Wait for a table that is being made, at most so long. False if none was. */
bool executables_wait(struct executables *x, uint64_t timeout_ns);
/* Tables waiting for the worker or being compiled. */
size_t executables_pending(const struct executables *x);
/* A metric_collect_fn: podprof_unwind_compiled, _compile_seconds, _numbers_full, _row_files, and
 * with a cache _cache_*. */
void executables_collect(void *x, struct metric_sink *sink);

#endif
