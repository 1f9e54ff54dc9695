// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/root.h"
#include "profile/event.h"
#include "profile/perf_events.h"

struct list_row {
	const char *name;
	const char *list;
	bool ok;
	unsigned int n;	  /* CPUs in the text */
	unsigned int sum; /* of their numbers */
};

static const struct list_row list_rows[] = {
	{"one", "0", true, 1, 0},
	{"range", "0-3", true, 4, 6},
	{"range of one", "2-2", true, 1, 2},
	{"mixed", "0-1,4,6-7", true, 5, 18},
	{"highest", "8191", true, 1, 8191},
	{"one over", "8192", false, 0, 0},
	{"range over", "0-8192", false, 0, 0},
	{"huge range", "0-18446744073709551615", false, 0, 0},
	{"backwards", "3-1", false, 0, 0},
	{"no number", "a", false, 0, 0},
	{"half a range", "1-", false, 0, 0},
	{"rubbish behind", "1x", false, 0, 0},
	{"rubbish behind a range", "0-1x", false, 0, 0},
	{"empty", "", true, 0, 0},
};

struct seen {
	unsigned int n;
	unsigned int sum;
};

static void see(void *ctx, unsigned int cpu)
{
	struct seen *seen = ctx;

	seen->n++;
	seen->sum += cpu;
}

static void test_list(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(list_rows); i++) {
		const struct list_row *row = &list_rows[i];
		struct seen seen = {0};

		row_begin(row->name);
		assert_int_equal(perf_events_parse_list(strview_of(row->list), see, &seen),
				 row->ok);
		if (!row->ok)
			continue;
		assert_int_equal(seen.n, row->n);
		assert_int_equal(seen.sum, row->sum);
	}
}

/* A /sys of the test chooses the online CPUs. No program is attached (there is none): the test only
 * looks at opened and refused events. */
struct sys {
	char path[32];
	struct root root;
};

static void sys_init(struct sys *sys)
{
	strcpy(sys->path, "/tmp/test-sys-XXXXXX");
	assert_non_null(mkdtemp(sys->path));
	assert_int_equal(root_open(sys->path, &sys->root), 0);
	assert_int_equal(mkdirat(sys->root.fd, "devices", 0700), 0);
	assert_int_equal(mkdirat(sys->root.fd, "devices/system", 0700), 0);
	assert_int_equal(mkdirat(sys->root.fd, "devices/system/cpu", 0700), 0);
}

static void sys_online(struct sys *sys, const char *list)
{
	int fd = openat(sys->root.fd, "devices/system/cpu/online", O_CREAT | O_TRUNC | O_WRONLY,
			0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, list, strlen(list)), strlen(list));
	close(fd);
}

static void sys_deinit(struct sys *sys)
{
	unlinkat(sys->root.fd, "devices/system/cpu/online", 0);
	unlinkat(sys->root.fd, "devices/system/cpu", AT_REMOVEDIR);
	unlinkat(sys->root.fd, "devices/system", AT_REMOVEDIR);
	unlinkat(sys->root.fd, "devices", AT_REMOVEDIR);
	root_deinit(&sys->root);
	rmdir(sys->path);
}

static void test_odd_lists(void **state)
{
	struct perf_events perf_events;
	struct sys sys;

	(void)state;
	sys_init(&sys);
	perf_events_init(&perf_events, event_clock(), 10000000, -1, &sys.root);
	assert_int_equal(perf_events_follow(&perf_events), PERF_EVENTS_NO_LIST);
	sys_online(&sys, "0-99999999\n");
	assert_int_equal(perf_events_follow(&perf_events), PERF_EVENTS_ODD_LIST);
	sys_online(&sys, "");
	assert_int_equal(perf_events_follow(&perf_events), PERF_EVENTS_ODD_LIST);
	assert_int_equal(perf_events_n_open(&perf_events), 0);
	perf_events_deinit(&perf_events);
	sys_deinit(&sys);
}

/* An event with a refused program is counted, and its descriptor closed. */
static void test_refused(void **state)
{
	struct perf_events perf_events;
	struct sys sys;

	(void)state;
	sys_init(&sys);
	sys_online(&sys, "0\n");
	perf_events_init(&perf_events, event_clock(), 10000000, -1, &sys.root);
	assert_int_equal(perf_events_follow(&perf_events), 0);
	assert_int_equal(perf_events_n_open(&perf_events), 0);
	assert_int_equal(perf_events.failed, 1);
	assert_int_equal(perf_events.opened, 0);
	assert_true(perf_events.error < 0);
	perf_events_deinit(&perf_events);
	sys_deinit(&sys);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_list),
		cmocka_unit_test(test_odd_lists),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
