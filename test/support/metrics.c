// SPDX-License-Identifier: Apache-2.0
#include "support/metrics.h"

#include "support/test.h"

#include <string.h>

struct search {
	struct metric_sink sink;
	const char *family;
	const char *labels;
	bool in_family;
	bool found;
	double value;
	uint64_t whole;
};

static void on_family(struct metric_sink *sink, const struct metric_family_desc *family)
{
	struct search *search = (struct search *)sink;

	search->in_family = strcmp(family->name, search->family) == 0;
}

static void on_value(struct metric_sink *sink, const struct metric_value *value)
{
	struct search *search = (struct search *)sink;
	char labels[256] = "";

	for (size_t i = 0; i < value->n_labels; i++)
		snprintf(labels + strlen(labels), sizeof(labels) - strlen(labels), "%s%s",
			 i ? "," : "", value->labels[i].value);
	if (!search->in_family || strcmp(labels, search->labels) != 0)
		return;
	search->found = true;
	search->value = value->is_double ? value->d : (double)value->u;
	search->whole = value->is_double ? (uint64_t)value->d : value->u;
}

static struct search search_for(metric_collect_fn collect, void *ctx, const char *family,
				const char *labels)
{
	struct search search = {
		.sink = {.family = on_family, .value = on_value},
		.family = family,
		.labels = labels,
	};

	collect(ctx, &search.sink);
	if (!search.found)
		fail_msg("no metric %s{%s}", family, labels);
	return search;
}

uint64_t metrics_get(metric_collect_fn collect, void *ctx, const char *family, const char *labels)
{
	return search_for(collect, ctx, family, labels).whole;
}

double metrics_get_double(metric_collect_fn collect, void *ctx, const char *family,
			  const char *labels)
{
	return search_for(collect, ctx, family, labels).value;
}
