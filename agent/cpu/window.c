// SPDX-License-Identifier: Apache-2.0
/*
 * The metadata of a container started at the end of a window arrives in the next window. The
 * container may be a restart of one that ended in this window: equal labels, another entity. So a
 * window leaves as a whole, and parts with equal labels are sorted together.
 */
#include "cpu/window.h"

#include <errno.h>
#include <stdlib.h>

#include "base/nsec.h"
#include "base/vec.h"
#include "cpu/fold.h"
#include "cpu/series.h"
#include "discovery/entity.h"

struct cpu_window {
	uint64_t start_ns;
	uint64_t duration_ns;
	uint64_t deadline_ns;
	struct cpu_window_part *parts;
	size_t n;
	size_t cap;
	size_t bytes;
};

int cpu_window_new(uint64_t start_ns, uint64_t duration_ns, uint64_t deadline_ns,
		   struct cpu_window **ret)
{
	struct cpu_window *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	w->start_ns = start_ns;
	w->duration_ns = duration_ns;
	w->deadline_ns = deadline_ns;
	*ret = w;
	return 0;
}

void cpu_window_free(struct cpu_window *w)
{
	if (!w)
		return;
	for (size_t i = 0; i < w->n; i++) {
		fold_free(w->parts[i].fold);
		entity_unref(w->parts[i].entity);
	}
	free(w->parts);
	free(w);
}

uint64_t cpu_window_start_ns(const struct cpu_window *w)
{
	return w->start_ns;
}

uint64_t cpu_window_duration_ns(const struct cpu_window *w)
{
	return w->duration_ns;
}

int cpu_window_add(struct cpu_window *w, struct cpu_window_part *part)
{
	int r = vec_grow(&w->parts, &w->cap, w->n + 1, sizeof(*w->parts), (size_t)2 * SERIES_MAX);

	if (r)
		return -ENOMEM;
	w->bytes += fold_bytes(part->fold);
	w->parts[w->n] = *part;
	entity_ref(w->parts[w->n++].entity);
	part->fold = NULL;
	return 0;
}

bool cpu_window_ready(const struct cpu_window *w)
{
	if (w->bytes > CPU_WINDOW_BYTES_MAX || nsec_monotonic() >= w->deadline_ns)
		return true;
	for (size_t i = 0; i < w->n; i++)
		if (w->parts[i].entity->pending)
			return false;
	return true;
}

static int part_order(const void *a, const void *b)
{
	const struct cpu_window_part *x = a, *y = b;

	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	if (!x->entity->left_out != !y->entity->left_out)
		return x->entity->left_out ? 1 : -1;
	return labels_compare(&x->entity->labels, &y->entity->labels);
}

void cpu_window_report(struct cpu_window *w, cpu_window_fn fn, cpu_window_fn left_out, void *ctx)
{
	size_t end;

	if (w->n)
		qsort(w->parts, w->n, sizeof(*w->parts), part_order);
	for (size_t i = 0; i < w->n; i = end) {
		struct cpu_window_part *first = &w->parts[i];

		for (end = i + 1; end < w->n && part_order(first, &w->parts[end]) == 0; end++)
			;
		(first->entity->left_out ? left_out : fn)(ctx, w, first, end - i);
	}
}
