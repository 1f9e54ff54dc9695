// SPDX-License-Identifier: Apache-2.0
#include "base/metric.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/vec.h"

/* Collectors, at most as many as modules; the number has no outside cause. Reached: the agent does
 * not start. */
#define METRIC_COLLECTORS_MAX 64

void metric_family(struct metric_sink *sink, const struct metric_family_desc *family)
{
	sink->family(sink, family);
}

void metric_u64(struct metric_sink *sink, uint64_t value, const struct metric_label *labels,
		size_t n_labels)
{
	sink->value(sink,
		    &(struct metric_value){.labels = labels, .n_labels = n_labels, .u = value});
}

void metric_double(struct metric_sink *sink, double value, const struct metric_label *labels,
		   size_t n_labels)
{
	sink->value(sink,
		    &(struct metric_value){
			    .labels = labels, .n_labels = n_labels, .is_double = 1, .d = value});
}

void metric_by_name(struct metric_sink *sink, const struct metric_family_desc *family,
		    const char *label, const uint64_t *values, const char *const *names, size_t n)
{
	metric_family(sink, family);
	for (size_t i = 0; i < n; i++)
		metric_u64(sink, values[i], &(struct metric_label){label, names[i]}, 1);
}

static void put_suffixed(struct metric_sink *sink, const char *suffix, uint64_t value,
			 const struct metric_label *label)
{
	sink->value(sink,
		    &(struct metric_value){
			    .suffix = suffix, .labels = label, .n_labels = !!label, .u = value});
}

void metric_histogram(struct metric_sink *sink, const struct metric_family_desc *family,
		      const struct metric_histogram *histogram)
{
	uint64_t n = 0;

	metric_family(sink, family);
	for (size_t i = 0; i <= histogram->n_bounds; i++) {
		char bound[32] = "+Inf";

		/* OpenMetrics wants a point in the bound, and Prometheus takes it */
		if (i < histogram->n_bounds)
			snprintf(bound, sizeof(bound), "%g%s", histogram->bounds[i],
				 histogram->bounds[i] == floor(histogram->bounds[i]) ? ".0" : "");
		n += histogram->counts[i];
		put_suffixed(sink, "_bucket", n, &(struct metric_label){"le", bound});
	}
	sink->value(sink,
		    &(struct metric_value){.suffix = "_sum", .is_double = 1, .d = histogram->sum});
	put_suffixed(sink, "_count", n, NULL);
}

static int add_collector(struct metric_list *list, const struct metric_collector *collector)
{
	int r = vec_grow(&list->items, &list->cap, list->n + 1, sizeof(*list->items),
			 METRIC_COLLECTORS_MAX);

	if (r)
		return r < 0 ? r : -ENOSPC;
	list->items[list->n++] = *collector;
	return 0;
}

int metric_list_add(struct metric_list *list, metric_collect_fn collect, void *ctx)
{
	return add_collector(
		list, &(struct metric_collector){.collect = collect, .n_parts = 1, .ctx = ctx});
}

int metric_list_add_parts(struct metric_list *list, metric_collect_part_fn collect_part,
			  size_t n_parts, void *ctx)
{
	return add_collector(list, &(struct metric_collector){.collect_part = collect_part,
							      .n_parts = n_parts,
							      .ctx = ctx});
}

bool metric_list_collect_next(const struct metric_list *list, struct metric_place *place,
			      struct metric_sink *sink)
{
	const struct metric_collector *c;

	if (place->collector >= list->n)
		return false;
	c = &list->items[place->collector];
	if (c->collect)
		c->collect(c->ctx, sink);
	else
		c->collect_part(c->ctx, sink, place->part);
	if (++place->part == c->n_parts)
		*place = (struct metric_place){.collector = place->collector + 1};
	return true;
}

void metric_list_collect(const struct metric_list *list, struct metric_sink *sink)
{
	struct metric_place place = {0};

	while (metric_list_collect_next(list, &place, sink))
		;
}

void metric_list_deinit(struct metric_list *list)
{
	free(list->items);
	*list = (struct metric_list){0};
}
