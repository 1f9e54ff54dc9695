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
 *
 * Values are copied first, because a collector gives all of a part at once, and the text takes
 * longer than the copy.
 */
#include "server/exposition.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/hash.h"
#include "base/labels.h"
#include "base/metric.h"
#include "base/strview.h"
#include "base/utf8.h"

/* Families and values of a step, some 0.1 ms. */
#define EXPOSITION_STEP 64

static const char openmetrics_end[] = "# EOF\n";

/* A name already used: of a family on the page, or of a sample (name and labels) in the family. */
struct seen {
	UT_hash_handle hh;
	char key[];
};

/**
 * struct item - a family, or a value of the family before, copied from a collector
 * @value: without its labels, whose names and values follow as @n_text bytes
 */
struct item {
	bool is_family;
	struct metric_family_desc family;
	struct metric_value value;
	size_t n_text;
};

/* @items: copied, up to @place of @list; @at: the next for the page */
struct exposition {
	struct metric_sink sink;
	const struct metric_list *list;
	struct metric_place place;
	bool collected;
	struct buf items;
	size_t at;
	struct buf *text;
	bool openmetrics;
	struct exposition_stats *stats;
	struct metric_family_desc last_family;
	const struct metric_family_desc *family; /* that one; NULL: no valid family */
	enum exposition_outcome no_family;	 /* why */
	bool head_written;
	struct seen *families;
	struct seen *samples;
	size_t text_max; /* of @text */
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

static const char *type_name(const struct exposition *page)
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
	const char *special = quote ? "\\\n\"" : "\\\n";
	size_t start = b->len, n;
	int r;

	for (;;) {
		n = strcspn(s, special);
		r = buf_append(b, s, n);
		s += n;
		if (r || !*s)
			break;
		r = buf_putc(b, '\\');
		if (!r)
			r = buf_putc(b, *s == '\n' ? 'n' : *s);
		if (r)
			break;
		s++;
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

static int put_head(struct exposition *page)
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
		r = buf_putc(b, i ? ',' : '{') || buf_puts(b, sorted[i].name) ||
		    buf_puts(b, "=\"") || put_escaped(b, sorted[i].value, true) || buf_putc(b, '"');
	}
	if (!r && n)
		r = buf_putc(b, '}');
	return r ? EXPOSITION_PAGE_FULL : 0;
}

static int put_number(struct buf *b, const struct metric_value *value)
{
	char text[sizeof(" 18446744073709551615\n")];

	if (!value->is_double)
		return buf_append(b, text,
				  (size_t)snprintf(text, sizeof(text), " %" PRIu64 "\n", value->u));
	if (isnan(value->d))
		return buf_puts(b, " NaN\n");
	if (isinf(value->d))
		return buf_puts(b, value->d > 0 ? " +Inf\n" : " -Inf\n");
	return buf_printf(b, " %.17g\n", value->d);
}

static bool value_ok(const struct exposition *page, const struct metric_value *value)
{
	if (!value->is_double || page->family->type == METRIC_GAUGE)
		return true;
	return page->family->type == METRIC_INFO ? value->d == 1
						 : value->d >= 0 && !isinf(value->d);
}

/* 0, an outcome, -ENOMEM; after a failure the caller cuts off the partial sample. */
static int put_sample(struct exposition *page, const struct metric_value *value)
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
	if (buf_puts(b, page->family->name) ||
	    buf_puts(b, value->suffix ? value->suffix : sample_suffix(page->family)))
		return EXPOSITION_PAGE_FULL;
	r = put_labels(b, value);
	if (r)
		return r;
	r = seen_add(&page->samples, b->data + start, b->len - start);
	if (r)
		return r;
	return put_number(b, value) ? EXPOSITION_PAGE_FULL : 0;
}

static void page_family(struct exposition *page, const struct metric_family_desc *family)
{
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
	if (r)
		return;
	page->last_family = *family;
	page->family = &page->last_family;
}

static void page_value(struct exposition *page, const struct metric_value *value)
{
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

/* ---- copies of the collectors' values ---- */

/* An overfull copy is as a full page. */
static void item_add(struct exposition *page, const struct item *item,
		     const struct metric_label *labels, size_t n_labels)
{
	const size_t before = page->items.len;
	struct item head = *item;
	int r = buf_append(&page->items, &head, sizeof(head));

	for (size_t i = 0; i < n_labels && !r; i++) {
		const char *name = labels[i].name, *value = labels[i].value;

		if (!value || !*value)
			continue;
		r = buf_append(&page->items, name, strlen(name) + 1);
		if (!r)
			r = buf_append(&page->items, value, strlen(value) + 1);
	}
	if (!r) {
		head.n_text = page->items.len - before - sizeof(head);
		memcpy(page->items.data + before, &head, sizeof(head));
		return;
	}
	page->items.len = before;
	if (r < 0)
		page->error = r;
	else
		page->stats->samples[EXPOSITION_PAGE_FULL]++;
}

static void copy_family(struct metric_sink *sink, const struct metric_family_desc *family)
{
	struct exposition *page = container_of(sink, struct exposition, sink);

	item_add(page, &(struct item){.is_family = true, .family = *family}, NULL, 0);
}

static void copy_value(struct metric_sink *sink, const struct metric_value *value)
{
	struct exposition *page = container_of(sink, struct exposition, sink);

	item_add(page, &(struct item){.value = *value}, value->labels, value->n_labels);
}

/* The next item. */
static void page_item(struct exposition *page)
{
	/* one more than allowed is refused as it would be in the collector's own order */
	struct metric_label labels[METRIC_LABELS_MAX + 1];
	const char *text;
	struct item item;
	size_t n = 0, at = 0;

	memcpy(&item, page->items.data + page->at, sizeof(item));
	text = page->items.data + page->at + sizeof(item);
	page->at += sizeof(item) + item.n_text;
	if (item.is_family) {
		page_family(page, &item.family);
		return;
	}
	while (at < item.n_text && n < array_size(labels)) {
		labels[n].name = text + at;
		at += strlen(text + at) + 1;
		labels[n++].value = text + at;
		at += strlen(text + at) + 1;
	}
	item.value.labels = labels;
	item.value.n_labels = n;
	page_value(page, &item.value);
}

int exposition_new(const struct metric_list *list, enum accept_format format,
		   struct exposition_stats *stats, struct buf *text, struct exposition **ret)
{
	const bool openmetrics = format != ACCEPT_TEXT;
	const size_t end = openmetrics ? sizeof(openmetrics_end) - 1 : 0;
	struct exposition *page;

	if (text->max < end)
		return -ENOSPC;
	page = calloc(1, sizeof(*page));
	if (!page)
		return -ENOMEM;
	page->sink = (struct metric_sink){copy_family, copy_value};
	buf_init(&page->items, EXPOSITION_ITEMS_MAX);
	page->text = text;
	page->text_max = text->max;
	page->openmetrics = openmetrics;
	page->stats = stats;
	page->no_family = EXPOSITION_NO_FAMILY;
	text->max -= end;
	page->list = list;
	*ret = page;
	return 0;
}

void exposition_free(struct exposition *page)
{
	if (!page)
		return;
	page->text->max = page->text_max;
	seen_clear(&page->samples);
	seen_clear(&page->families);
	buf_deinit(&page->items);
	free(page);
}

int exposition_step(struct exposition *page)
{
	int r;

	if (!page->collected && !page->error) {
		page->collected = !metric_list_collect_next(page->list, &page->place, &page->sink);
		return page->error ? page->error : EXPOSITION_MORE;
	}
	for (int i = 0; i < EXPOSITION_STEP && page->at < page->items.len && !page->error; i++)
		page_item(page);
	if (page->error)
		return page->error;
	if (page->at < page->items.len)
		return EXPOSITION_MORE;
	page->text->max = page->text_max;
	r = buf_puts(page->text, page->openmetrics ? openmetrics_end : "");
	return r > 0 ? -ENOSPC : r;
}

int exposition_render(const struct metric_list *list, enum accept_format format,
		      struct exposition_stats *stats, struct buf *ret)
{
	struct exposition *page;
	int r = exposition_new(list, format, stats, ret, &page);

	if (r)
		return r;
	do
		r = exposition_step(page);
	while (r == EXPOSITION_MORE);
	exposition_free(page);
	return r;
}

void exposition_collect(void *ctx, struct metric_sink *sink)
{
	static const struct metric_family_desc family = {
		"podprof_exposition_samples", METRIC_COUNTER,
		"Samples of this page by outcome; all but ok were left out.", NULL};
	static const char *const names[EXPOSITION_OUTCOME_MAX] = {
		[EXPOSITION_OK] = "ok",
		[EXPOSITION_BAD_NAME] = "bad_name",
		[EXPOSITION_BAD_VALUE] = "bad_value",
		[EXPOSITION_DUPLICATE] = "duplicate",
		[EXPOSITION_REOPENED] = "reopened",
		[EXPOSITION_NO_FAMILY] = "no_family",
		[EXPOSITION_PAGE_FULL] = "page_full",
	};
	const struct exposition_stats *stats = ctx;

	metric_by_name(sink, &family, "outcome", stats->samples, names, EXPOSITION_OUTCOME_MAX);
}
