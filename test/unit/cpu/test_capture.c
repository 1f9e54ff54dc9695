// SPDX-License-Identifier: Apache-2.0
/* Span, entities and ceilings of a capture. */
#include "support/test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/capture.h"
#include "cpu/fold.h"
#include "cpu/sampler.h"
#include "discovery/entity.h"
#include "discovery/selection.h"
#include "support/allocfail.h"

#define NOW (1000 * NSEC_PER_SEC)

/* The test keeps the last reference, as in test_fold.c. */
static struct image image = {.kind = IMAGE_UNKNOWN, .refs = 1};

struct fixture {
	struct entity_table *entities;
	struct entity *a, *b;
};

static struct entity *container(struct fixture *f, const char *id, const char *service)
{
	_cleanup_(labels_deinit) struct labels labels = {0}, settings = {0};
	struct cgroup_id cgroup = {.kind = CGROUP_KIND_CONTAINER};
	struct entity *entity;

	snprintf(cgroup.container_id, sizeof(cgroup.container_id), "%s", id);
	assert_int_equal(entity_container(f->entities, &cgroup, &entity), 0);
	assert_int_equal(labels_set(&labels, "service_name", service), 0);
	entity_set_labels(entity, &labels, &settings);
	entity->pending = false;
	return entity;
}

static void init(struct fixture *f)
{
	assert_int_equal(entity_table_new("n", &f->entities), 0);
	f->a = container(f, "a", "cart");
	f->b = container(f, "b", "web");
}

static void deinit(struct fixture *f)
{
	entity_unref(f->a);
	entity_unref(f->b);
	entity_table_free(f->entities);
}

static struct capture *begin(const char *service, bool off_cpu, uint64_t duration_ns)
{
	struct selection selection = {.service = service ? strdup(service) : NULL};
	struct capture *c;

	assert_int_equal(capture_new(&selection, off_cpu, NOW, duration_ns, &c), 0);
	assert_null(selection.service);
	return c;
}

static void add(struct capture *c, bool off_cpu, struct entity *entity, uint64_t vaddr, uint64_t n)
{
	struct cpu_stack stack = {.frames = {{&image, vaddr}}, .n = 1};

	capture_add(c, off_cpu, entity, &stack, n, 10 * n);
}

/* Only samples between the drains that begin and end the span count, of the right kind. */
static void span(void **state)
{
	struct capture_result result;
	struct capture *c;
	struct fixture f;

	(void)state;
	init(&f);
	for (int off_cpu = 0; off_cpu < 2; off_cpu++) {
		c = begin(NULL, off_cpu, 2 * NSEC_PER_SEC);
		add(c, off_cpu, f.a, 1, 1);
		/* a drain from before the request, by more than the slack; the other kind's */
		assert_int_equal(capture_drained(c, off_cpu, NOW - CAPTURE_SLACK_NS - 1),
				 CAPTURE_WAITING);
		assert_int_equal(capture_drained(c, !off_cpu, NOW + NSEC_PER_SEC), CAPTURE_WAITING);
		add(c, off_cpu, f.a, 1, 2);
		assert_int_equal(capture_drained(c, off_cpu, NOW - CAPTURE_SLACK_NS),
				 CAPTURE_RUNNING);
		assert_int_equal(capture_rest_ns(c, NOW), 2 * NSEC_PER_SEC - CAPTURE_SLACK_NS);
		assert_int_equal(capture_rest_ns(c, NOW + 3 * NSEC_PER_SEC), 0);
		add(c, off_cpu, f.a, 1, 4);
		add(c, !off_cpu, f.a, 1, 8);
		assert_int_equal(capture_drained(c, off_cpu, NOW + NSEC_PER_SEC), CAPTURE_RUNNING);
		add(c, off_cpu, f.a, 1, 16);
		add(c, off_cpu, f.a, 2, 32);
		assert_int_equal(capture_drained(c, off_cpu, NOW + 2 * NSEC_PER_SEC),
				 CAPTURE_ENDED);
		add(c, off_cpu, f.a, 1, 64);
		assert_int_equal(capture_drained(c, off_cpu, NOW + 9 * NSEC_PER_SEC),
				 CAPTURE_ENDED);
		assert_int_equal(capture_finish(c, &result), 0);
		assert_int_equal(result.since_ns, NOW - CAPTURE_SLACK_NS);
		assert_int_equal(result.duration_ns, 2 * NSEC_PER_SEC + CAPTURE_SLACK_NS);
		assert_int_equal(result.n, 4 + 16 + 32);
		assert_int_equal(result.value, 10 * (4 + 16 + 32));
		assert_int_equal(result.n_lost, 0);
		assert_int_equal(result.n_parts, 1);
		assert_int_equal(result.parts->off_cpu, off_cpu);
		assert_int_equal(fold_n(result.parts->fold), 2);
		capture_settle(c);
		capture_free(c);
	}
	deinit(&f);
}

/* Samples without a stack are in the result, as values without room. */
static void lost(void **state)
{
	const struct cpu_stack stack = {.is_lost = true};
	struct capture *c = begin(NULL, false, NSEC_PER_SEC);
	struct capture_result result;
	struct fixture f;

	(void)state;
	init(&f);
	assert_int_equal(capture_drained(c, false, NOW), CAPTURE_RUNNING);
	add(c, false, f.a, 1, 2);
	capture_add(c, false, f.a, &stack, 3, 30);
	assert_int_equal(capture_drained(c, false, NOW + NSEC_PER_SEC), CAPTURE_ENDED);
	assert_int_equal(capture_finish(c, &result), 0);
	assert_int_equal(result.n, 2 + 3);
	assert_int_equal(result.value, 10 * (2 + 3));
	assert_int_equal(result.n_lost, 0);
	assert_int_equal(fold_n(result.parts->fold), 1);
	assert_int_equal(fold_totals(result.parts->fold).n_refused, 3);
	assert_int_equal(fold_totals(result.parts->fold).refused_value, 30);
	capture_settle(c);
	capture_free(c);
	deinit(&f);
}

/* Without a drain the span ends when its owner says so. */
static void no_drain(void **state)
{
	struct capture_result result;
	struct capture *c = begin(NULL, false, NSEC_PER_SEC);

	(void)state;
	capture_end(c, NOW + 5);
	assert_int_equal(capture_state(c), CAPTURE_ENDED);
	assert_int_equal(capture_finish(c, &result), 0);
	assert_int_equal(result.since_ns, NOW + 5);
	assert_int_equal(result.duration_ns, 0);
	assert_int_equal(result.n_parts, 0);
	capture_free(c);
}

/* Entities are chosen by their labels, at the latest at the end of the span. */
static void entities(void **state)
{
	static const struct {
		const char *name, *service;
		bool b_pending, b_left_out;
		const char *later; /* service of b, which has its names at the end */
		uint64_t n;
	} rows[] = {
		{"all", NULL, false, false, NULL, 3},
		{"one", "cart", false, false, NULL, 1},
		{"the other one", "web", false, false, NULL, 2},
		{"none", "db", false, false, NULL, 0},
		{"named in time", "db", true, false, "db", 2},
		{"named otherwise", "db", true, false, "cache", 0},
		{"excluded in the meantime", NULL, false, true, NULL, 1},
	};

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		struct capture *c = begin(rows[i].service, false, NSEC_PER_SEC);
		_cleanup_(labels_deinit) struct labels labels = {0}, settings = {0};
		struct capture_result result;
		struct fixture f;

		row_begin(rows[i].name);
		init(&f);
		f.b->pending = rows[i].b_pending;
		assert_int_equal(capture_drained(c, false, NOW), CAPTURE_RUNNING);
		add(c, false, f.a, 1, 1);
		add(c, false, f.b, 1, 2);
		if (rows[i].later) {
			assert_int_equal(labels_set(&labels, "service_name", rows[i].later), 0);
			entity_set_labels(f.b, &labels, &settings);
		}
		f.b->pending = false;
		if (rows[i].b_left_out)
			assert_int_equal(entity_leave_out(f.b, "test"), 0);
		assert_int_equal(capture_drained(c, false, NOW + NSEC_PER_SEC), CAPTURE_ENDED);
		assert_int_equal(capture_finish(c, &result), 0);
		assert_int_equal(result.n, rows[i].n);
		for (size_t j = 0; j < result.n_parts; j++)
			assert_non_null(labels_get(result.parts[j].labels, "service_name"));
		deinit(&f); /* the capture does not need its entities any more */
		capture_free(c);
	}
}

/* Distinct stacks beyond the ceiling are lost and counted; memory stays below twice the ceiling,
 * because an array doubles. */
static void full(void **state)
{
	struct capture *c = begin(NULL, false, NSEC_PER_SEC);
	struct capture_result result;
	struct fixture f;
	size_t bytes = 0;
	const uint64_t n = 400000;

	(void)state;
	init(&f);
	assert_int_equal(capture_drained(c, false, NOW), CAPTURE_RUNNING);
	for (uint64_t i = 0; i < n; i++)
		add(c, false, i % 2 ? f.a : f.b, i, 1);
	capture_end(c, NOW + 1);
	assert_int_equal(capture_finish(c, &result), 0);
	assert_true(result.n_lost > 0 && result.n > 0);
	assert_int_equal(result.n + result.n_lost, n);
	for (size_t i = 0; i < result.n_parts; i++)
		bytes += fold_bytes(result.parts[i].fold);
	assert_true(bytes < 2 * CAPTURE_BYTES_MAX);
	capture_free(c);
	deinit(&f);
}

static int all_of_it(void *ctx)
{
	struct selection selection = {.id = ""};
	struct capture_result result;
	struct fixture *f = ctx;
	struct capture *c;
	int r = capture_new(&selection, false, NOW, NSEC_PER_SEC, &c);

	if (r)
		return r;
	(void)capture_drained(c, false, NOW);
	add(c, false, f->a, 1, 1);
	capture_end(c, NOW + 1);
	r = capture_finish(c, &result);
	if (!r && result.n_lost)
		r = -ENOMEM;
	capture_free(c);
	return r;
}

static void no_memory(void **state)
{
	struct fixture f;

	(void)state;
	init(&f);
	assert_true(allocfail_each(all_of_it, &f) >= 6);
	deinit(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(span),	    cmocka_unit_test(no_drain), cmocka_unit_test(lost),
		cmocka_unit_test(entities), cmocka_unit_test(full),	cmocka_unit_test(no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
