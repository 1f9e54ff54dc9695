// SPDX-License-Identifier: Apache-2.0
/*
 * Two formats with one skeleton, https://prometheus.io/docs/instrumenting/exposition_formats/ and
 * the OpenMetrics 1.0.0 specification:
 *
 *	                     text 0.0.4                      OpenMetrics
 *	family of a counter  # TYPE podprof_x_total counter  # TYPE podprof_x counter
 *	its sample           podprof_x_total{...} 1          podprof_x_total{...} 1
 *	a histogram's are    podprof_h_seconds_bucket        the same
 *	family of an info    # TYPE podprof_y_info gauge     # TYPE podprof_y info
 *	unit                 -                               # UNIT podprof_z_bytes bytes
 *	HELP escapes         \ and newline                   also "
 *	at the end           -                               # EOF
 *
 * The head of a family is written with its first sample; a family without samples is left out.
 * Labels are sorted, so equal sets are equal text, and duplicates are found by the text.
 *
 * A sample beyond the ceiling is cut off again, so a full page still ends correctly.
 */
#include "server/exposition.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/hash.h"
#include "base/labels.h"
#include "base/metric.h"
#include "base/strview.h"
#include "base/utf8.h"

static const char openmetrics_end[] = "# EOF\n";

/* A name already used: of a family on the page, or of a sample (name and labels) in the family. */
struct seen {
	UT_hash_handle hh;
	char key[];
};

struct page {
	struct metric_sink sink;
	struct buf *text;
	bool openmetrics;
	struct exposition_stats *stats;
	const struct metric_family_desc *family; /* NULL: no valid family */
	enum exposition_outcome no_family;	 /* why */
	bool head_written;
	struct seen *families;
	struct seen *samples;
	int error;
};

static void seen_clear(struct seen **table)
{
	struct seen *item, *next;

	HASH_ITER(hh, *table, item, next) {
		HASH_DEL(*table, item);
		free(item);
	}
}

/* 0 if @key is new, EXPOSITION_DUPLICATE, -ENOMEM. */
static int seen_add(struct seen **table, const char *key, size_t n)
{
	struct seen *item;
	bool hash_oom = false;

	HASH_FIND(hh, *table, key, n, item);
	if (item)
		return EXPOSITION_DUPLICATE;
	item = malloc(sizeof(*item) + n);
	if (!item)
		return -ENOMEM;
	memcpy(item->key, key, n);
	HASH_ADD_KEYPTR(hh, *table, item->key, n, item);
	if (!hash_oom)
		return 0;
	free(item);
	return -ENOMEM;
}

static const char *sample_suffix(const struct metric_family_desc *family)
{
	switch (family->type) {
	case METRIC_COUNTER:
		return "_total";
	case METRIC_INFO:
		return "_info";
	case METRIC_GAUGE:
	case METRIC_HISTOGRAM:
		break;
	}
	return "";
}

static const char *type_name(const struct page *page)
{
	switch (page->family->type) {
	case METRIC_COUNTER:
		return "counter";
	case METRIC_INFO:
		return page->openmetrics ? "info" : "gauge";
	case METRIC_HISTOGRAM:
		return "histogram";
	case METRIC_GAUGE:
		break;
	}
	return "gauge";
}

/* @s with backslash, newline and, if @quote, the quotation mark escaped. */
static int put_escaped(struct buf *b, const char *s, bool quote)
{
	size_t start = b->len;
	int r = 0;

	for (; *s && !r; s++) {
		if (*s == '\n')
			r = buf_puts(b, "\\n");
		else if (*s == '\\' || (*s == '"' && quote))
			r = buf_printf(b, "\\%c", *s);
		else
			r = buf_putc(b, *s);
	}
	if (b->data)
		utf8_repair(b->data + start, b->len - start);
	return r;
}

/* OpenMetrics requires the unit as the end of the name, and no unit on an info. */
static bool has_unit(const struct metric_family_desc *family)
{
	struct strview name = strview_of(family->name);

	return family->unit && *family->unit && family->type != METRIC_INFO &&
	       strview_suffix(&name, family->unit) && strview_suffix(&name, "_");
}

static int put_head(struct page *page)
{
	const struct metric_family_desc *family = page->family;
	const char *suffix = page->openmetrics ? "" : sample_suffix(family);
	struct buf *b = page->text;
	int r;

	r = buf_printf(b, "# TYPE %s%s %s\n", family->name, suffix, type_name(page));
	if (!r && page->openmetrics && has_unit(family))
		r = buf_printf(b, "# UNIT %s %s\n", family->name, family->unit);
	if (!r)
		r = buf_printf(b, "# HELP %s%s ", family->name, suffix);
	if (!r)
		r = put_escaped(b, family->help ? family->help : "", page->openmetrics);
	return r ? r : buf_putc(b, '\n');
}

static int label_order(const void *a, const void *b)
{
	const struct metric_label *x = a, *y = b;

	return strcmp(x->name, y->name);
}

/* {a="1",b="2"}; nothing without labels. An empty value equals a missing label and is left out. */
static int put_labels(struct buf *b, const struct metric_value *value)
{
	struct metric_label sorted[METRIC_LABELS_MAX];
	size_t n = 0;
	int r = 0;

	for (size_t i = 0; i < value->n_labels; i++) {
		if (!value->labels[i].value || !*value->labels[i].value)
			continue;
		if (n == METRIC_LABELS_MAX || !labels_valid_name(value->labels[i].name))
			return EXPOSITION_BAD_NAME;
		sorted[n++] = value->labels[i];
	}
	qsort(sorted, n, sizeof(sorted[0]), label_order);
	for (size_t i = 0; i < n && !r; i++) {
		if (i && strcmp(sorted[i].name, sorted[i - 1].name) == 0)
			return EXPOSITION_BAD_NAME;
		r = buf_printf(b, "%s%s=\"", i ? "," : "{", sorted[i].name) ||
		    put_escaped(b, sorted[i].value, true) || buf_putc(b, '"');
	}
	if (!r && n)
		r = buf_putc(b, '}');
	return r ? EXPOSITION_PAGE_FULL : 0;
}

static int put_number(struct buf *b, const struct metric_value *value)
{
	if (!value->is_double)
		return buf_printf(b, " %" PRIu64 "\n", value->u);
	if (isnan(value->d))
		return buf_puts(b, " NaN\n");
	if (isinf(value->d))
		return buf_puts(b, value->d > 0 ? " +Inf\n" : " -Inf\n");
	return buf_printf(b, " %.17g\n", value->d);
}

static bool value_ok(const struct page *page, const struct metric_value *value)
{
	if (!value->is_double || page->family->type == METRIC_GAUGE)
		return true;
	return page->family->type == METRIC_INFO ? value->d == 1
						 : value->d >= 0 && !isinf(value->d);
}

/* 0, an outcome, -ENOMEM; after a failure the caller cuts off the partial sample. */
static int put_sample(struct page *page, const struct metric_value *value)
{
	struct buf *b = page->text;
	size_t start;
	int r;

	if (!page->family)
		return page->no_family;
	if (!value_ok(page, value))
		return EXPOSITION_BAD_VALUE;
	if (!page->head_written && put_head(page))
		return EXPOSITION_PAGE_FULL;
	start = b->len;
	if (buf_printf(b, "%s%s", page->family->name,
		       value->suffix ? value->suffix : sample_suffix(page->family)))
		return EXPOSITION_PAGE_FULL;
	r = put_labels(b, value);
	if (r)
		return r;
	r = seen_add(&page->samples, b->data + start, b->len - start);
	if (r)
		return r;
	return put_number(b, value) ? EXPOSITION_PAGE_FULL : 0;
}

static void page_family(struct metric_sink *sink, const struct metric_family_desc *family)
{
	struct page *page = container_of(sink, struct page, sink);
	int r;

	page->family = NULL;
	page->head_written = false;
	seen_clear(&page->samples);
	page->no_family = EXPOSITION_BAD_NAME;
	if (!labels_valid_name(family->name))
		return;
	r = seen_add(&page->families, family->name, strlen(family->name));
	if (r < 0)
		page->error = r;
	page->no_family = EXPOSITION_REOPENED;
	if (r == 0)
		page->family = family;
}

static void page_value(struct metric_sink *sink, const struct metric_value *value)
{
	struct page *page = container_of(sink, struct page, sink);
	size_t before = page->text->len;
	int r = put_sample(page, value);

	if (r < 0)
		page->error = r;
	else
		page->stats->samples[r]++;
	if (r == 0)
		page->head_written = true;
	else if (page->text->data) {
		page->text->len = before;
		page->text->data[before] = '\0';
	}
}

int exposition_render(const struct metric_list *list, enum accept_format format,
		      struct exposition_stats *stats, struct buf *ret)
{
	struct page page = {
		.sink = {page_family, page_value},
		.text = ret,
		.openmetrics = format != ACCEPT_TEXT,
		.stats = stats,
		.no_family = EXPOSITION_NO_FAMILY,
	};
	size_t max = ret->max, end = page.openmetrics ? sizeof(openmetrics_end) - 1 : 0;
	int r;

	if (max < end)
		return -ENOSPC;
	ret->max = max - end;
	metric_list_collect(list, &page.sink);
	ret->max = max;
	seen_clear(&page.samples);
	seen_clear(&page.families);
	if (page.error)
		return page.error;
	r = buf_puts(ret, page.openmetrics ? openmetrics_end : "");
	return r > 0 ? -ENOSPC : r;
}

void exposition_collect(void *ctx, struct metric_sink *sink)
{
	static const struct metric_family_desc family = {
		"podprof_exposition_samples", METRIC_COUNTER,
		"Samples of this page by outcome; all but ok were left out.", NULL};
	const struct exposition_stats *stats = ctx;
	const char *names[EXPOSITION_OUTCOME_MAX];

	for (int i = 0; i < EXPOSITION_OUTCOME_MAX; i++)
		names[i] = exposition_outcome_name(i);
	metric_by_name(sink, &family, "outcome", stats->samples, names, EXPOSITION_OUTCOME_MAX);
}

const char *exposition_outcome_name(int outcome)
{
	static const char *const names[EXPOSITION_OUTCOME_MAX] = {
		[EXPOSITION_OK] = "ok",
		[EXPOSITION_BAD_NAME] = "bad_name",
		[EXPOSITION_BAD_VALUE] = "bad_value",
		[EXPOSITION_DUPLICATE] = "duplicate",
		[EXPOSITION_REOPENED] = "reopened",
		[EXPOSITION_NO_FAMILY] = "no_family",
		[EXPOSITION_PAGE_FULL] = "page_full",
	};

	return outcome >= 0 && outcome < EXPOSITION_OUTCOME_MAX ? names[outcome] : "error";
}
