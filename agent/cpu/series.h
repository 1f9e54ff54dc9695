/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_CPU_SERIES_H
#define PODPROF_CPU_SERIES_H

/* The series of the current window: the folded stacks of an entity, and the total value. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/labels.h"

struct entity;
struct fold;
struct fold_sample;
struct metric_sink;
struct series_table;

/* Entities with samples in a window: containers, units and names of host processes. Reached:
 * `podprof_profiled_samples_total{outcome="lost"}`. */
#define SERIES_MAX	    8192
/* Windows without samples until a series is freed. */
#define SERIES_KEEP_WINDOWS 2

/**
 * struct series - borrowed from the table until the window ends
 * @id:           the unique id of struct series_of
 * @entity:       the samples' entity; a reference, or NULL
 * @labels:       the labels of struct series_of; empty if @entity has labels
 * @fold:         NULL until the first sample of the window
 * @n_window:     samples of this window so far
 * @n_last:       samples of the previous window
 * @value:        total value of this window's added samples
 * @value_last:   the same of the previous window
 * @n_lost:       samples of this window lost by a ceiling
 */
struct series {
	const char *id;
	struct entity *entity;
	struct labels labels;
	struct fold *fold;
	uint64_t n_window;
	uint64_t n_last;
	uint64_t value;
	uint64_t value_last;
	uint64_t n_lost;
	unsigned int windows_unseen;
};

enum series_outcome {
	SERIES_OK = 0,
	SERIES_FULL, /* a ceiling: the samples are counted as lost */
};

int series_table_new(struct series_table **ret);
void series_table_free(struct series_table *t);

/* The series of a sample. @id: an entity's key or any other
 * text. The table keeps a reference to @entity. A new series copies @labels; without them the
 * present labels of its entity apply. All but @id may be NULL. */
struct series_of {
	const char *id;
	struct entity *entity;
	const struct labels *labels;
};

/* As fold_add(). 0, SERIES_FULL, -ENOMEM. */
int series_add(struct series_table *t, const struct series_of *of, const struct fold_sample *sample,
	       uint64_t count, uint64_t value);

/* Calls @fn for each series with samples, then starts a new window. @fn takes the fold (and leaves
 * NULL), or the table drops the fold. */
void series_end_window(struct series_table *t, void (*fn)(void *ctx, struct series *series),
		       void *ctx);
/* Calls @fn for each series with samples in this window. */
void series_for_each(const struct series_table *t,
		     void (*fn)(void *ctx, const struct series *series), void *ctx);
/* NULL: no such series. */
const struct series *series_find(const struct series_table *t, const char *id);
/* Samples above the limit of names of threads. */
uint64_t series_n_other_threads(const struct series_table *t);
/* A metric_collect_fn. */
void series_collect(void *ctx, struct metric_sink *sink);

#endif
