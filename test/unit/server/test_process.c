// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <string.h>
#include <time.h>

#include "base/metric.h"
#include "server/process.h"

static const char *const wanted[] = {
	"podprof_build",
	"process_cpu_seconds",
	"process_start_time_seconds",
	"process_virtual_memory_bytes",
	"process_resident_memory_bytes",
	"process_open_fds",
	"process_max_fds",
};

struct catcher {
	struct metric_sink sink;
	const char *family;
	size_t seen[array_size(wanted)];
	double start_s;
	uint64_t n_fds;
};

static void catch_family(struct metric_sink *sink, const struct metric_family_desc *family)
{
	((struct catcher *)sink)->family = family->name;
}

static void catch_value(struct metric_sink *sink, const struct metric_value *value)
{
	struct catcher *c = (struct catcher *)sink;

	for (size_t i = 0; i < array_size(wanted); i++)
		c->seen[i] += strcmp(c->family, wanted[i]) == 0;
	if (strcmp(c->family, "process_start_time_seconds") == 0)
		c->start_s = value->d;
	if (strcmp(c->family, "process_open_fds") == 0)
		c->n_fds = value->u;
}

static struct catcher collect(void)
{
	struct catcher c = {.sink = {catch_family, catch_value}};
	struct process_metrics *p;

	assert_int_equal(process_metrics_new(&p), 0);
	process_metrics_collect(p, &c.sink);
	process_metrics_free(p);
	return c;
}

static void test_all_there(void **state)
{
	struct catcher c = collect();

	(void)state;
	for (size_t i = 0; i < array_size(wanted); i++) {
		row_begin(wanted[i]);
		assert_int_equal(c.seen[i], 1);
	}
	/* this process is not older than the machine's day, nor from the future */
	assert_true(c.start_s <= (double)time(NULL) + 1 && c.start_s > (double)time(NULL) - 86400);
}

static void test_counts_descriptors(void **state)
{
	uint64_t before = collect().n_fds;
	int fd = dup(0);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(collect().n_fds, before + 1);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_there),
		cmocka_unit_test(test_counts_descriptors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
