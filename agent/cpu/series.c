// SPDX-License-Identifier: Apache-2.0
#include "cpu/series.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/metric.h"
#include "cpu/fold.h"
#include "discovery/entity.h"

struct series_entry {
	struct series series;
	UT_hash_handle hh;
	char id[];
};

struct series_table {
	struct series_entry *entries;
	uint64_t n_lost;
	uint64_t n_other; /* above the limit of names of threads */
};

int series_table_new(struct series_table **ret)
{
	*ret = calloc(1, sizeof(**ret));
	return *ret ? 0 : -ENOMEM;
}

static void entry_free(struct series_entry *e)
{
	fold_free(e->series.fold);
	labels_deinit(&e->series.labels);
	entity_unref(e->series.entity);
	free(e);
}

static void entry_remove(struct series_table *t, struct series_entry *e)
{
	HASH_DEL(t->entries, e);
	entry_free(e);
}

void series_table_free(struct series_table *t)
{
	struct series_entry *e, *next;

	if (!t)
		return;
	HASH_ITER(hh, t->entries, e, next)
		entry_remove(t, e);
	free(t);
}

static struct series_entry *entry_find(const struct series_table *t, const char *id)
{
	struct series_entry *e;

	HASH_FIND(hh, t->entries, id, strlen(id), e);
	return e;
}

static int entry_add(struct series_table *t, const struct series_of *of, struct series_entry **ret)
{
	size_t n = strlen(of->id) + 1;
	struct series_entry *e;
	bool hash_oom = false;

	if (HASH_COUNT(t->entries) >= SERIES_MAX)
		return SERIES_FULL;
	e = calloc(1, sizeof(*e) + n);
	if (!e)
		return -ENOMEM;
	memcpy(e->id, of->id, n);
	e->series.id = e->id;
	e->series.entity = of->entity ? entity_ref(of->entity) : NULL;
	hash_oom = of->labels && labels_copy(of->labels, &e->series.labels);
	if (!hash_oom)
		HASH_ADD(hh, t->entries, id[0], n - 1, e);
	if (hash_oom) {
		entry_free(e);
		return -ENOMEM;
	}
	*ret = e;
	return 0;
}

/* Enter the stack into the fold of @e. */
static int fold_in(struct series_table *t, const struct series_entry *e,
		   const struct fold_sample *sample, uint64_t count, uint64_t value)
{
	const uint64_t n_other = fold_totals(e->series.fold).n_other;
	int r = fold_add(e->series.fold, sample, count, value);

	t->n_other += fold_totals(e->series.fold).n_other - n_other;
	return r;
}

int series_add(struct series_table *t, const struct series_of *of, const struct fold_sample *sample,
	       uint64_t count, uint64_t value)
{
	struct series_entry *e = entry_find(t, of->id);
	int r = e ? 0 : entry_add(t, of, &e);

	if (!r && !e->series.fold)
		r = fold_new(&e->series.fold);
	if (!r) {
		r = fold_in(t, e, sample, count, value);
		*(r ? &e->series.n_lost : &e->series.n_window) += count;
		e->series.value += r ? 0 : value;
	}
	if (r)
		t->n_lost += count;
	return r > 0 ? SERIES_FULL : r;
}

void series_end_window(struct series_table *t, void (*fn)(void *ctx, struct series *series),
		       void *ctx)
{
	struct series_entry *e, *next;

	HASH_ITER(hh, t->entries, e, next) {
		struct series *s = &e->series;

		if (s->n_window)
			fn(ctx, s);
		fold_free(s->fold);
		s->fold = NULL;
		s->windows_unseen = s->n_window ? 0 : s->windows_unseen + 1;
		s->n_last = s->n_window;
		s->n_window = 0;
		s->value_last = s->value;
		s->value = 0;
		s->n_lost = 0;
		if (s->windows_unseen >= SERIES_KEEP_WINDOWS)
			entry_remove(t, e);
	}
}

void series_for_each(const struct series_table *t,
		     void (*fn)(void *ctx, const struct series *series), void *ctx)
{
	for (const struct series_entry *e = t->entries; e; e = e->hh.next)
		if (e->series.n_window)
			fn(ctx, &e->series);
}

const struct series *series_find(const struct series_table *t, const char *id)
{
	const struct series_entry *e = entry_find(t, id);

	return e ? &e->series : NULL;
}

uint64_t series_n_other_threads(const struct series_table *t)
{
	return t->n_other;
}

void series_collect(void *ctx, struct metric_sink *sink)
{
	static const struct metric_family_desc count = {
		"podprof_series", METRIC_GAUGE, "Series with samples in the last windows.", NULL};
	static const struct metric_family_desc bytes = {"podprof_fold_bytes", METRIC_GAUGE,
							"Memory of the current window's stacks.",
							"bytes"};
	static const struct metric_family_desc lost = {"podprof_fold_lost_samples", METRIC_COUNTER,
						       "Samples beyond a limit of the window.",
						       NULL};
	const struct series_table *t = ctx;
	uint64_t n_bytes = 0;

	for (const struct series_entry *e = t->entries; e; e = e->hh.next)
		if (e->series.fold)
			n_bytes += fold_bytes(e->series.fold);
	metric_family(sink, &count);
	metric_u64(sink, HASH_COUNT(t->entries), NULL, 0);
	metric_family(sink, &bytes);
	metric_u64(sink, n_bytes, NULL, 0);
	metric_family(sink, &lost);
	metric_u64(sink, t->n_lost, NULL, 0);
}
