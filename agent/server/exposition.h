/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_SERVER_EXPOSITION_H
#define PODPROF_SERVER_EXPOSITION_H

/*
 * The metric list as text for a scraper. The page stays readable for every output of a module: a
 * sample that would break the page is left out and counted.
 */

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#include "server/accept.h"

struct buf;
struct metric_list;
struct metric_sink;

/* Bytes of one page. A series takes some 250 bytes, so a page has 60,000 series. Reached:
 * `podprof_exposition_samples_total{outcome="page_full"}`. */
#define EXPOSITION_PAGE_MAX (16u << 20)

/* Bytes of the collectors' values, copied for one page: 100,000 series. Reached:
 * `podprof_exposition_samples_total{outcome="page_full"}`. */
#define EXPOSITION_ITEMS_MAX (32u << 20)

enum exposition_outcome {
	EXPOSITION_OK = 0,
	EXPOSITION_BAD_NAME,  /* of a metric or label */
	EXPOSITION_BAD_VALUE, /* a negative or NaN counter */
	EXPOSITION_DUPLICATE, /* the family already has a sample with these labels */
	EXPOSITION_REOPENED,  /* a family of this name was there before */
	EXPOSITION_NO_FAMILY, /* a sample before any family */
	EXPOSITION_PAGE_FULL,
	EXPOSITION_OUTCOME_MAX,
};

/* Samples since the start, by outcome. The owner keeps the struct; {0} at the start. */
struct exposition_stats {
	uint64_t samples[EXPOSITION_OUTCOME_MAX];
};

/* Append the page to @ret. 0 or -ENOMEM. */
int exposition_render(const struct metric_list *list, enum accept_format format,
		      struct exposition_stats *stats, struct buf *ret);

/*
 * The same in slices, for a step of the loop: the values of a family are of one moment, and the
 * text is made later. @list, @stats and @text are borrowed until exposition_free().
 */
struct exposition;

/* Of exposition_step(): call again. */
#define EXPOSITION_MORE INT_MAX

/* *@ret: owned. 0 or -errno. */
int exposition_new(const struct metric_list *list, enum accept_format format,
		   struct exposition_stats *stats, struct buf *text, struct exposition **ret);
void exposition_free(struct exposition *page);
/* Collects a part of the values, or appends some samples. EXPOSITION_MORE, or the result of
 * exposition_render(). */
int exposition_step(struct exposition *page);

/* A metric_collect_fn over struct exposition_stats: omitted samples. */
void exposition_collect(void *ctx, struct metric_sink *sink);

#endif
