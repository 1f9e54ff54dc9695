/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_SERVER_EXPOSITION_H
#define PODPROF_SERVER_EXPOSITION_H

/*
 * The metric list as text for a scraper. The page stays readable for every output of a module: a
 * sample that would break the page is left out and counted.
 */

#include <stddef.h>
#include <stdint.h>

#include "server/accept.h"

struct buf;
struct metric_list;
struct metric_sink;

/* Bytes of one page. A series takes some 250 bytes, so a page has 60,000 series. Reached:
 * `podprof_exposition_samples_total{outcome="page_full"}`. */
#define EXPOSITION_PAGE_MAX (16u << 20)

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
/* A metric_collect_fn over struct exposition_stats: omitted samples. */
void exposition_collect(void *ctx, struct metric_sink *sink);

const char *exposition_outcome_name(int outcome);

#endif
