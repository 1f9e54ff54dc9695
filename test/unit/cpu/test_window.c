// SPDX-License-Identifier: Apache-2.0
/* Stacks of a window that wait for names. */
#include "support/test.h"

#include <errno.h>
#include <string.h>

#include "base/nsec.h"
#include "cpu/window.h"
#include "discovery/entity.h"
#include "cpu/fold.h"
#include "support/allocfail.h"

struct fixture {
	struct entity_table *entities;
	struct entity *a, *b, *c;
	char told[256]; /* the output */
};

static struct entity *container(struct fixture *f, const char *id)
{
	struct cgroup_id cgroup = {.kind = CGROUP_KIND_CONTAINER};
	struct entity *entity;

	snprintf(cgroup.container_id, sizeof(cgroup.container_id), "%s", id);
	assert_int_equal(entity_container(f->entities, &cgroup, &entity), 0);
	return entity;
}

static void name(struct entity *entity, const char *pod)
{
	_cleanup_(labels_deinit) struct labels labels = {0}, settings = {0};

	assert_int_equal(labels_set(&labels, "pod", pod), 0);
	entity_set_labels(entity, &labels, &settings);
	entity->named = true;
	entity->pending = false;
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	assert_int_equal(entity_table_new("n", &f->entities), 0);
	f->a = container(f, "a");
	f->b = container(f, "b");
	f->c = container(f, "c");
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	entity_unref(f->a);
	entity_unref(f->b);
	entity_unref(f->c);
	entity_table_free(f->entities);
	free(f);
	return 0;
}

/* ---------------------------------------------------------------- windows */

static void add(struct cpu_window *w, struct entity *entity, enum profile_kind kind, uint64_t n)
{
	struct cpu_window_part part = {.entity = entity, .kind = kind, .n = n, .value = 10 * n};

	assert_int_equal(fold_new(&part.fold), 0);
	assert_int_equal(cpu_window_add(w, &part), 0);
	assert_null(part.fold);
}

static void tell(struct fixture *f, const char *what, const struct cpu_window_part *parts, size_t n)
{
	const char *pod = labels_get(&parts->entity->labels, "pod");
	size_t len = strlen(f->told);
	uint64_t samples = 0;

	for (size_t i = 0; i < n; i++)
		samples += parts[i].n;
	snprintf(f->told + len, sizeof(f->told) - len, "%s%s:%s=%d ", what,
		 profile_kind_name(parts->kind), pod ? pod : "-", (int)samples);
}

static void on_series(void *ctx, const struct cpu_window *w, struct cpu_window_part *parts,
		      size_t n)
{
	assert_int_equal(cpu_window_start_ns(w), 5);
	assert_int_equal(cpu_window_duration_ns(w), 6);
	tell(ctx, "", parts, n);
	fold_free(take_ptr(parts[0].fold)); /* the others stay the window's */
}

static void on_dropped(void *ctx, const struct cpu_window *w, struct cpu_window_part *parts,
		       size_t n)
{
	(void)w;
	tell(ctx, "!", parts, n);
}

/* Two runs of a container are a single series for each kind; excluded entities are not in the
 * series. */
static void window_by_labels(void **state)
{
	struct fixture *f = *state;
	struct cpu_window *w;

	assert_int_equal(cpu_window_new(5, 6, UINT64_MAX, &w), 0);
	name(f->a, "web");
	name(f->c, "out");
	f->b->pending = true;
	add(w, f->a, PROFILE_CPU, 1);
	add(w, f->b, PROFILE_CPU, 2);
	add(w, f->c, PROFILE_CPU, 4);
	add(w, f->b, PROFILE_OFF_CPU, 8);
	assert_false(cpu_window_ready(w));
	name(f->b, "web");
	assert_int_equal(entity_leave_out(f->c, "rule"), 0);
	assert_true(cpu_window_ready(w));
	cpu_window_report(w, on_series, on_dropped, f);
	assert_string_equal(f->told, "cpu:web=3 !cpu:out=4 offcpu:web=8 ");
	cpu_window_free(w);
}

/* The wait is bounded, and the entities stay for the duration. */
static void window_expires(void **state)
{
	struct fixture *f = *state;
	struct cpu_window *w;

	f->a->pending = true;
	assert_int_equal(cpu_window_new(5, 6, nsec_monotonic(), &w), 0);
	add(w, f->a, PROFILE_CPU, 1);
	assert_true(cpu_window_ready(w));
	entity_unref(take_ptr(f->a));
	cpu_window_report(w, on_series, on_dropped, f);
	assert_string_equal(f->told, "cpu:-=1 ");
	cpu_window_free(w);
	f->told[0] = '\0';

	assert_int_equal(cpu_window_new(5, 6, UINT64_MAX, &w), 0);
	assert_true(cpu_window_ready(w));
	cpu_window_report(w, on_series, on_dropped, f);
	assert_string_equal(f->told, "");
	cpu_window_free(w);
}

static int build_window(void *ctx)
{
	struct fixture *f = ctx;
	struct cpu_window_part part = {.entity = f->a, .kind = PROFILE_CPU, .n = 1};
	struct cpu_window *w = NULL;
	int r = fold_new(&part.fold);

	if (!r)
		r = cpu_window_new(5, 6, 0, &w);
	if (!r)
		r = cpu_window_add(w, &part);
	fold_free(part.fold);
	cpu_window_free(w);
	return r;
}

static void without_memory(void **state)
{
	struct fixture *f = *state;

	assert_true(allocfail_each(build_window, f) > 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(window_by_labels),
		TEST(window_expires),
		TEST(without_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
