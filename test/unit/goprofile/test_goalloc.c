// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <string.h>

#include "base/metric.h"
#include "goprofile/goalloc.h"

/* Keeps the last value of a family, and the number of values. */
struct catcher {
	struct metric_sink sink;
	const char *wanted;
	bool on;
	uint64_t value;
	size_t n;
	size_t n_states; /* labels of this name in the last value */
	char state[32];
};

static void catch_family(struct metric_sink *sink, const struct metric_family_desc *family)
{
	struct catcher *c = (struct catcher *)sink;

	c->on = strcmp(family->name, c->wanted) == 0;
}

static void catch_value(struct metric_sink *sink, const struct metric_value *value)
{
	struct catcher *c = (struct catcher *)sink;

	if (!c->on)
		return;
	c->n++;
	c->value = value->u;
	c->n_states = 0;
	for (size_t i = 0; i < value->n_labels; i++)
		if (strcmp(value->labels[i].name, "state") == 0 && ++c->n_states)
			snprintf(c->state, sizeof(c->state), "%s", value->labels[i].value);
}

static struct catcher collect(struct goalloc *g, const char *family)
{
	struct catcher c = {.sink = {catch_family, catch_value}, .wanted = family};

	for (size_t part = 0; part < GOALLOC_PARTS; part++)
		goalloc_collect(g, &c.sink, part);
	return c;
}

static void update(struct goalloc *g, const char *container, uint64_t pid, uint64_t bytes)
{
	_cleanup_(labels_deinit) struct labels labels = {0};
	const struct goalloc_who id = {.pid = {.start_ticks = 7, .pid = pid}, .number = 1};
	struct goalloc_reading reading = {
		.go_version = "go1.26.8",
		.source = "profile",
		.state = bytes ? "ok" : "no_samples_yet",
	};

	if (bytes) {
		goalloc_set(&reading, GOALLOC_ALLOC_BYTES, bytes);
		goalloc_set(&reading, GOALLOC_ALLOC_OBJECTS, bytes / 10);
		goalloc_set(&reading, GOALLOC_INUSE_BYTES, bytes / 2);
	}
	assert_int_equal(labels_set(&labels, "container", container), 0);
	assert_int_equal(goalloc_update(g, container, &labels, &id, &reading), 0);
}

/* Process 1 of container "a" has allocated 1,000 bytes, process 2 500. */
static struct goalloc *two_processes(void)
{
	struct goalloc *g;

	assert_int_equal(goalloc_new(&g), 0);
	update(g, "a", 1, 1000);
	update(g, "a", 2, 500);
	goalloc_end_round(g, 2);
	return g;
}

static void test_counters(void **state)
{
	struct goalloc *g = two_processes();

	(void)state;
	assert_int_equal(collect(g, "container_go_alloc_bytes").value, 1500);
	assert_int_equal(collect(g, "container_go_inuse_bytes").value, 750);

	/* one process ends: its part stays, its heap does not */
	update(g, "a", 1, 1100);
	goalloc_end_round(g, 2);
	assert_int_equal(collect(g, "container_go_alloc_bytes").value, 1600);
	assert_int_equal(collect(g, "container_go_inuse_bytes").value, 550);

	/* a reading below the last one is skipped and counted */
	update(g, "a", 1, 900);
	goalloc_end_round(g, 2);
	assert_int_equal(collect(g, "container_go_alloc_bytes").value, 1600);
	assert_int_equal(collect(g, "podprof_go_decreases").value, 1);

	/* all gone: the sum stays until the container is dropped */
	goalloc_end_round(g, 2);
	assert_int_equal(collect(g, "container_go_alloc_bytes").value, 1600);
	goalloc_end_round(g, 2);
	goalloc_end_round(g, 2);
	assert_int_equal(collect(g, "container_go_alloc_bytes").n, 0);
	goalloc_free(g);
}

/* A runtime without a reading for some rounds is no new one. */
static void test_return(void **state)
{
	struct goalloc *g = two_processes();

	(void)state;
	for (int i = 0; i < 2; i++) {
		update(g, "a", 1, 1000);
		goalloc_end_round(g, 2);
	}
	assert_int_equal(collect(g, "container_go_alloc_bytes").value, 1500);
	assert_int_equal(collect(g, "container_go_inuse_bytes").value, 500);
	update(g, "a", 1, 1000);
	update(g, "a", 2, 600);
	goalloc_end_round(g, 2);
	assert_int_equal(collect(g, "container_go_alloc_bytes").value, 1600);
	assert_int_equal(collect(g, "container_go_alloc_objects").value, 160);
	assert_int_equal(collect(g, "container_go_inuse_bytes").value, 800);

	/* the same a second time, and the part stays once the process has ended */
	update(g, "a", 1, 1000);
	goalloc_end_round(g, 2);
	update(g, "a", 1, 1000);
	update(g, "a", 2, 700);
	goalloc_end_round(g, 2);
	update(g, "a", 1, 1000);
	goalloc_end_round(g, 2);
	assert_int_equal(collect(g, "container_go_alloc_bytes").value, 1700);
	/* without a counter in the new reading the earlier one stays */
	update(g, "a", 1, 1000);
	update(g, "a", 2, 0);
	goalloc_end_round(g, 2);
	assert_int_equal(collect(g, "container_go_alloc_bytes").value, 1700);
	goalloc_free(g);
}

static void update_number(struct goalloc *g, uint64_t pid, unsigned int number, uint64_t bytes)
{
	const struct goalloc_who who = {.pid = {.start_ticks = 7, .pid = pid}, .number = number};
	struct goalloc_reading reading = {.go_version = "", .source = "profile", .state = "ok"};
	_cleanup_(labels_deinit) struct labels labels = {0};

	if (bytes)
		goalloc_set(&reading, GOALLOC_ALLOC_BYTES, bytes);
	assert_int_equal(labels_set(&labels, "container", "a"), 0);
	assert_int_equal(goalloc_update(g, "a", &labels, &who, &reading), 0);
}

/* A reader that has forgotten a process counts on from the runtimes that the process had last. */
static void test_first_number(void **state)
{
	const struct pid_id one = {.start_ticks = 7, .pid = 1}, two = {.start_ticks = 7, .pid = 2};
	const struct pid_id again = {.start_ticks = 8, .pid = 1};
	struct goalloc *g;

	(void)state;
	assert_int_equal(goalloc_new(&g), 0);
	assert_int_equal(goalloc_first_number(g, "a", &one), 1);
	update_number(g, 1, 1, 100);
	update_number(g, 2, 0, 0); /* denied */
	goalloc_end_round(g, 9);
	assert_int_equal(goalloc_first_number(g, "a", &one), 1);
	assert_int_equal(goalloc_first_number(g, "a", &two), 1);
	/* another program, with two runtimes */
	update_number(g, 1, 3, 30);
	update_number(g, 1, 2, 20);
	goalloc_end_round(g, 9);
	assert_int_equal(goalloc_first_number(g, "a", &one), 2);
	assert_int_equal(goalloc_first_number(g, "b", &one), 1);
	assert_int_equal(goalloc_first_number(g, "a", &again), 1);
	/* no reading for two rounds */
	goalloc_end_round(g, 9);
	goalloc_end_round(g, 9);
	assert_int_equal(goalloc_first_number(g, "a", &one), 2);
	update_number(g, 1, 2, 25);
	update_number(g, 1, 3, 35);
	goalloc_end_round(g, 9);
	assert_int_equal(collect(g, "container_go_alloc_bytes").value, 100 + 25 + 35);
	assert_int_equal(collect(g, "podprof_go_decreases").value, 0);
	goalloc_free(g);
}

/* More ended processes than a container remembers: the last ones are known again. */
static void test_many_returns(void **state)
{
	struct goalloc *g;

	(void)state;
	assert_int_equal(goalloc_new(&g), 0);
	for (uint64_t pid = 1; pid <= 200; pid++) {
		update(g, "a", pid, 10);
		goalloc_end_round(g, 2);
	}
	goalloc_end_round(g, 2);
	assert_int_equal(collect(g, "container_go_alloc_bytes").value, 2000);
	update(g, "a", 200, 15);
	goalloc_end_round(g, 2);
	assert_int_equal(collect(g, "container_go_alloc_bytes").value, 2005);
	goalloc_free(g);
}

static void test_state_without_values(void **state)
{
	struct goalloc *g;
	struct catcher info;

	(void)state;
	assert_int_equal(goalloc_new(&g), 0);
	update(g, "a", 1, 0);
	assert_int_equal(collect(g, "container_go_alloc_bytes").n, 0);
	info = collect(g, "container_go_heap_profile");
	assert_int_equal(info.n, 1);
	assert_string_equal(info.state, "no_samples_yet");
	goalloc_free(g);
}

/* The process executes another program; the counters start at zero. */
static void test_restart(void **state)
{
	_cleanup_(labels_deinit) struct labels none = {0};
	struct goalloc_who id = {.pid = {.start_ticks = 7, .pid = 1}, .number = 1};
	struct goalloc_reading reading = {.go_version = "", .source = "", .state = ""};
	struct goalloc *g;

	(void)state;
	assert_int_equal(goalloc_new(&g), 0);
	goalloc_set(&reading, GOALLOC_ALLOC_BYTES, 1000);
	goalloc_set(&reading, GOALLOC_HEAP_BYTES, 600);
	assert_int_equal(goalloc_update(g, "a", &none, &id, &reading), 0);
	goalloc_end_round(g, 2);
	id.number = 2;
	goalloc_set(&reading, GOALLOC_ALLOC_BYTES, 10);
	goalloc_set(&reading, GOALLOC_HEAP_BYTES, 5);
	assert_int_equal(goalloc_update(g, "a", &none, &id, &reading), 0);
	goalloc_end_round(g, 2);
	assert_int_equal(collect(g, "container_go_alloc_bytes").value, 1010);
	assert_int_equal(collect(g, "container_go_heap_alloc_bytes").value, 5);
	assert_int_equal(collect(g, "podprof_go_decreases").value, 0);
	/* no values here */
	assert_int_equal(collect(g, "container_go_inuse_bytes").n, 0);
	assert_int_equal(collect(g, "container_go_gc_cycles").n, 0);
	goalloc_free(g);
}

static void update_mark(struct goalloc *g, uint64_t mark, uint64_t bytes)
{
	_cleanup_(labels_deinit) struct labels none = {0};
	const struct goalloc_who who = {.pid = {.start_ticks = 7, .pid = 1}, .number = 1};
	struct goalloc_reading reading = {
		.mark = mark, .go_version = "", .source = "", .state = ""};

	if (bytes)
		goalloc_set(&reading, GOALLOC_ALLOC_BYTES, bytes);
	assert_int_equal(goalloc_update(g, "a", &none, &who, &reading), 0);
	goalloc_end_round(g, 9);
}

/* A reader that has forgotten the process gives the next program the number of the one before. */
static void test_exec_unseen(void **state)
{
	struct goalloc *g;

	(void)state;
	assert_int_equal(goalloc_new(&g), 0);
	update_mark(g, 1, 1000);
	update_mark(g, 0, 0); /* left alone */
	update_mark(g, 2, 10);
	assert_int_equal(collect(g, "container_go_alloc_bytes").value, 1010);
	update_mark(g, 2, 30);
	assert_int_equal(collect(g, "container_go_alloc_bytes").value, 1030);
	/* without a reading meanwhile */
	goalloc_end_round(g, 9);
	update_mark(g, 3, 5);
	assert_int_equal(collect(g, "container_go_alloc_bytes").value, 1035);
	goalloc_end_round(g, 9);
	update_mark(g, 3, 6);
	assert_int_equal(collect(g, "container_go_alloc_bytes").value, 1036);
	assert_int_equal(collect(g, "podprof_go_decreases").value, 0);
	goalloc_free(g);
}

/* A program and a library, each with a runtime. */
static void test_runtimes_of_a_process(void **state)
{
	_cleanup_(labels_deinit) struct labels none = {0};
	struct goalloc_who id = {.pid = {.start_ticks = 7, .pid = 1}};
	struct goalloc *g;

	(void)state;
	assert_int_equal(goalloc_new(&g), 0);
	for (int round = 1; round < 3; round++) {
		for (id.number = 1; id.number < 3; id.number++) {
			struct goalloc_reading reading = {
				.go_version = "", .source = "", .state = ""};

			goalloc_set(&reading, GOALLOC_ALLOC_BYTES, 1000u * id.number * round);
			assert_int_equal(goalloc_update(g, "a", &none, &id, &reading), 0);
		}
		goalloc_end_round(g, 2);
		assert_int_equal(collect(g, "container_go_alloc_bytes").value, 3000u * round);
	}
	goalloc_free(g);
}

static void test_ceiling(void **state)
{
	const struct goalloc_reading reading = {.go_version = "", .source = "", .state = ""};
	const struct labels none = {0};
	struct goalloc *g;
	struct goalloc_who id = {.pid = {.start_ticks = 1}};

	(void)state;
	assert_int_equal(goalloc_new(&g), 0);
	for (id.pid.pid = 1; id.pid.pid <= GOALLOC_PROCESSES_MAX; id.pid.pid++)
		assert_int_equal(goalloc_update(g, "a", &none, &id, &reading), 0);
	assert_int_equal(goalloc_update(g, "a", &none, &id, &reading), GOALLOC_FULL);
	assert_int_equal(collect(g, "podprof_go_processes_over_limit").value, 1);
	goalloc_free(g);
}

static void update_one(struct goalloc *g, const struct goalloc_who *who, const char *state,
		       uint64_t bytes)
{
	_cleanup_(labels_deinit) struct labels none = {0};
	struct goalloc_reading reading = {.go_version = "go1.26.8", .source = "runtime"};

	reading.state = state;
	goalloc_set(&reading, GOALLOC_ALLOC_BYTES, bytes);
	goalloc_set(&reading, GOALLOC_NEXT_GC_BYTES, UINT64_MAX - bytes);
	assert_int_equal(goalloc_update(g, "a", &none, who, &reading), 0);
}

/* One series for each state, and "gone" without processes; the survivors keep their counters. */
static void test_states(void **state)
{
	struct goalloc_who who = {.pid = {.start_ticks = 7, .pid = 1}};
	struct goalloc_view view;
	struct catcher info;
	struct goalloc *g;

	(void)state;
	assert_int_equal(goalloc_new(&g), 0);
	update_one(g, &who, "ok", 5);
	who.pid.pid++;
	update_one(g, &who, "forced", 6);
	who.pid.pid++;
	update_one(g, &who, "ok", 7);
	goalloc_end_round(g, 2);
	assert_int_equal(collect(g, "container_go_heap_profile").n, 2);
	/* goals of GOGC=off */
	assert_true(collect(g, "container_go_next_gc_bytes").value == UINT64_MAX);
	/* the same process number, another process */
	who.pid.start_ticks++;
	update_one(g, &who, "ok", 3);
	goalloc_end_round(g, 2);
	assert_int_equal(collect(g, "container_go_alloc_bytes").value, 5 + 6 + 7 + 3);
	assert_int_equal(collect(g, "podprof_go_decreases").value, 0);
	for (int i = 0; i < 5; i++) {
		goalloc_keep(g, "a");
		goalloc_keep(g, "nobody");
		goalloc_end_round(g, 2);
		info = collect(g, "container_go_heap_profile");
		assert_int_equal(info.n, 1);
		assert_string_equal(info.state, "gone");
		assert_int_equal(collect(g, "container_go_alloc_bytes").value, 5 + 6 + 7 + 3);
		assert_int_equal(collect(g, "container_go_next_gc_bytes").n, 0);
		assert_true(goalloc_view(g, "a", &view));
		assert_string_equal(view.state, "gone");
	}
	goalloc_end_round(g, 2);
	goalloc_end_round(g, 2);
	assert_false(goalloc_view(g, "a", &view));
	goalloc_free(g);
}

/* A container with the largest number of labels, among them a name of the family's own labels. */
static void test_labels(void **state)
{
	const struct goalloc_who who = {.pid = {.start_ticks = 7, .pid = 1}};
	const struct goalloc_reading reading = {
		.go_version = "go1.26.8", .source = "", .state = "ok"};
	_cleanup_(labels_deinit) struct labels labels = {0};
	struct catcher info;
	struct goalloc *g;

	(void)state;
	assert_int_equal(goalloc_new(&g), 0);
	assert_int_equal(labels_set(&labels, "state", "of mind"), 0);
	for (char name[] = "a"; labels.n < LABELS_MAX; name[0]++)
		assert_int_equal(labels_set(&labels, name, "x"), 0);
	assert_int_equal(goalloc_update(g, "a", &labels, &who, &reading), 0);
	info = collect(g, "container_go_heap_profile");
	assert_int_equal(info.n, 1);
	assert_int_equal(info.n_states, 1);
	assert_string_equal(info.state, "ok");
	goalloc_free(g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_counters),     cmocka_unit_test(test_return),
		cmocka_unit_test(test_many_returns), cmocka_unit_test(test_state_without_values),
		cmocka_unit_test(test_restart),	     cmocka_unit_test(test_runtimes_of_a_process),
		cmocka_unit_test(test_states),	     cmocka_unit_test(test_ceiling),
		cmocka_unit_test(test_labels),	     cmocka_unit_test(test_first_number),
		cmocka_unit_test(test_exec_unseen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
