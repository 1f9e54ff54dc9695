/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_CPU_SERIES_H
#define PODPROF_CPU_SERIES_H

/* The series of the current window: one entity's stacks, folded, and how much it used. */

#include <stddef.h>
#include <stdint.h>

#include "base/labels.h"
#include "procmap/image.h"

struct entity;
struct fold;
struct metric_sink;
struct series_table;

/* Entities with samples in one window: containers, units and names of host processes. Reached:
 * `podprof_profiled_samples_total{outcome="lost"}`. */
#define SERIES_MAX	    8192
/* Windows after which a series that got no sample is forgotten. */
#define SERIES_KEEP_WINDOWS 2

/**
 * struct series - borrowed from the table until the window ends
 * @id:           as given; unique
 * @entity:       whose; a reference, or NULL
 * @labels:       as given; empty where @entity has them
 * @fold:         NULL until the first sample of the window
 * @n_window:     samples of this window so far; @n_last of the one before
 * @value:        what those of this window stand for, of all that were added; @value_last likewise
 * @n_lost:       samples that a ceiling kept out, in this window
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

/* Whose samples they are, by an entity's key or any other text; a reference to the entity is kept.
 * The labels are copied when the series is new: it has those, or its entity's of the time they are
 * asked for. Each may be NULL. */
struct series_of {
	const char *id;
	struct entity *entity;
	const struct labels *labels;
};

/* Add @count samples of one stack that stand for @value (see fold_add()). 0, SERIES_FULL,
 * -ENOMEM. */
int series_add(struct series_table *t, const struct series_of *of, const struct frame *frames,
	       const uint8_t *return_address, size_t n_frames, uint64_t count, uint64_t value);

/* Calls @fn for each series that has samples; it takes the fold (and leaves NULL) or leaves it to
 * be dropped. Then a new window begins. */
void series_end_window(struct series_table *t, void (*fn)(void *ctx, struct series *series),
		       void *ctx);
/* Calls @fn for each series that has samples in this window. */
void series_for_each(const struct series_table *t,
		     void (*fn)(void *ctx, const struct series *series), void *ctx);
/* NULL if there is none. */
const struct series *series_find(const struct series_table *t, const char *id);
/* A metric_collect_fn. */
void series_collect(void *ctx, struct metric_sink *sink);

#endif
