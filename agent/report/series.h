/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_REPORT_SERIES_H
#define PODPROF_REPORT_SERIES_H

/* The series of the current window: one owner's stacks, folded, and how much it used. */

#include <stddef.h>
#include <stdint.h>

#include "base/labels.h"
#include "procmap/image.h"

struct fold;
struct metric_sink;
struct series_table;

/* Owners with samples in one window: containers, units and names of host processes. */
#define SERIES_MAX	    8192
/* Windows after which a series that got no sample is forgotten. */
#define SERIES_KEEP_WINDOWS 2

/**
 * struct series - borrowed from the table until the window ends
 * @owner:        the owner's id; unique
 * @fold:         NULL until the first sample of the window
 * @n_window:     samples of this window so far; @n_last of the one before
 * @n_lost:       samples that a ceiling kept out, in this window
 */
struct series {
	const char *owner;
	struct labels labels;
	struct fold *fold;
	uint64_t n_window;
	uint64_t n_last;
	uint64_t n_lost;
	unsigned int windows_unseen;
};

enum series_outcome {
	SERIES_OK = 0,
	SERIES_FULL, /* a ceiling: the samples are counted as lost */
};

int series_table_new(struct series_table **ret);
void series_table_free(struct series_table *t);

/* Add @count samples of one stack that stand for @value (see fold_add()) to the owner's series.
 * Copies the labels where they are new. 0, SERIES_FULL, -ENOMEM. */
int series_add(struct series_table *t, const char *owner, const struct labels *labels,
	       const struct frame *frames, const uint8_t *return_address, size_t n_frames,
	       uint64_t count, uint64_t value);

/* Calls @fn for each series that has samples; it takes the fold (and leaves NULL) or leaves it to
 * be dropped. Then a new window begins. */
void series_end_window(struct series_table *t, void (*fn)(void *ctx, struct series *series),
		       void *ctx);
/* Calls @fn for each series that has samples in this window. */
void series_for_each(const struct series_table *t,
		     void (*fn)(void *ctx, const struct series *series), void *ctx);
/* NULL if the owner has none. */
const struct series *series_find(const struct series_table *t, const char *owner);
/* A metric_collect_fn. */
void series_collect(void *ctx, struct metric_sink *sink);

#endif
