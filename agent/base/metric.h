/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_BASE_METRIC_H
#define PODPROF_BASE_METRIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/labels.h"

/*
 * Metrics are plain numbers in the counting module. Each module adds one collector to the list. For
 * each scrape the list calls the collectors, and each emits its families:
 *
 *	static const struct metric_family_desc samples = {
 *		"podprof_samples", METRIC_COUNTER, "Stack samples by outcome.", NULL
 *	};
 *	metric_family(sink, &samples);
 *	metric_u64(sink, o->ok, &(struct metric_label){ "outcome", "ok" }, 1);
 *
 * A family belongs to exactly one collector, and its samples follow at once. The server turns the
 * metrics into text; the modules do not know the format.
 */

enum metric_type {
	METRIC_COUNTER, /* named without "_total"; the text form adds the suffix */
	METRIC_GAUGE,
	METRIC_INFO,	  /* name without "_info"; value 1, the labels are the message */
	METRIC_HISTOGRAM, /* by metric_histogram() */
};

/* The texts are constants of the program; the struct may be temporary. */
struct metric_family_desc {
	const char *name;
	enum metric_type type;
	const char *help;
	const char *unit; /* "seconds", "bytes": also the suffix of @name; or NULL */
};

/* Labels of one sample: a container's, and the family's own. Reached:
 * `podprof_exposition_samples_total{outcome="bad_name"}`. */
#define METRIC_LABELS_MAX (LABELS_MAX + 3)

struct metric_label {
	const char *name;
	const char *value;
};

/* One number of the current family. @suffix: a constant, instead of the type's suffix of
 * the name, or NULL. */
struct metric_value {
	const char *suffix;
	const struct metric_label *labels;
	size_t n_labels;
	int is_double;
	union {
		uint64_t u;
		double d;
	};
};

struct metric_sink {
	void (*family)(struct metric_sink *sink, const struct metric_family_desc *family);
	void (*value)(struct metric_sink *sink, const struct metric_value *value);
};

void metric_family(struct metric_sink *sink, const struct metric_family_desc *family);
void metric_u64(struct metric_sink *sink, uint64_t value, const struct metric_label *labels,
		size_t n_labels);
void metric_double(struct metric_sink *sink, double value, const struct metric_label *labels,
		   size_t n_labels);
/* A family of counters with one label, from an array indexed by outcome. */
void metric_by_name(struct metric_sink *sink, const struct metric_family_desc *family,
		    const char *label, const uint64_t *values, const char *const *names, size_t n);

/**
 * struct metric_histogram - observations in buckets
 * @bounds:   upper bounds in the family's unit, ascending, inclusive
 * @counts:   of each bucket alone; one more than @bounds, for observations above the last bound
 * @sum:      of all observations
 */
struct metric_histogram {
	const double *bounds;
	const uint64_t *counts;
	size_t n_bounds;
	double sum;
};

/* A family of one histogram without labels. */
void metric_histogram(struct metric_sink *sink, const struct metric_family_desc *family,
		      const struct metric_histogram *histogram);

typedef void (*metric_collect_fn)(void *ctx, struct metric_sink *sink);

/* The same for a collector of many samples, for one of its parts. A part has whole families. */
typedef void (*metric_collect_part_fn)(void *ctx, struct metric_sink *sink, size_t part);

/* The list of collectors. {0} is empty; owns nothing of theirs. */
struct metric_list {
	struct metric_collector {
		metric_collect_fn collect; /* NULL: in parts */
		metric_collect_part_fn collect_part;
		size_t n_parts;
		void *ctx;
	} * items;
	size_t n;
	size_t cap;
};

/* 0 or -ENOMEM. @ctx must outlive the list. */
int metric_list_add(struct metric_list *list, metric_collect_fn collect, void *ctx)
	__attribute__((warn_unused_result));
/* The same for the parts 0 to @n_parts - 1. */
int metric_list_add_parts(struct metric_list *list, metric_collect_part_fn collect_part,
			  size_t n_parts, void *ctx) __attribute__((warn_unused_result));
void metric_list_collect(const struct metric_list *list, struct metric_sink *sink);

/* A place between two parts. {0}: before the first one. */
struct metric_place {
	size_t collector;
	size_t part;
};

/* The same for a step of the loop: only the part at @place, which moves on. False: there was none
 * any more. */
bool metric_list_collect_next(const struct metric_list *list, struct metric_place *place,
			      struct metric_sink *sink);
void metric_list_deinit(struct metric_list *list);

#endif
