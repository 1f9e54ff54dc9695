// SPDX-License-Identifier: Apache-2.0
/* Programs with names, stripped ones, and ones with a debug file; what doctor says about them. */
#include "support/test.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/root.h"
#include "config/config.h"
#include "discovery/pid.h"
#include "doctor/finding.h"
#include "doctor/probe_results.h"
#include "procmap/maps.h"
#include "support/allocfail.h"
#include "support/fixture.h"

struct fixture {
	struct root proc;
	struct pid_id own;
};

static int setup(void **state)
{
	static struct fixture f;

	assert_int_equal(root_open("/proc", &f.proc), 0);
	assert_int_equal(pid_read(&f.proc, getpid(), &f.own), 0);
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	root_deinit(&f->proc);
	return 0;
}

static int add(const struct fixture *f, struct stripped *s, char *path)
{
	const struct maps_entry entry = {.path = path};
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	return stripped_add(s, &f->proc, &f->own, &entry, fd);
}

static void test_programs(void **state)
{
	static const struct {
		const char *name;
		size_t n, n_stripped; /* so far */
	} rows[] = {
		{"plain-pie", 1, 0},	  {"plain-stripped", 2, 1},
		{"plain-stripped", 2, 1}, /* of another process */
		{"cxx-linked", 3, 1},	  /* a debug file beside it */
		{"cxx-mini", 4, 1},	  /* .gnu_debugdata */
		{"cxx-other", 5, 2},	  /* the debug file beside it is of another build */
		{"inline-gcc5", 6, 2},
	};
	const struct fixture *f = *state;
	struct stripped s = {.n = 0};
	char path[FIXTURE_PATH_MAX];

	for (size_t i = 0; i < array_size(rows); i++) {
		(void)fixture_path(rows[i].name, path);
		row_begin(rows[i].name);
		assert_int_equal(add(f, &s, path), 0);
		assert_int_equal(s.n, rows[i].n);
		assert_int_equal(s.n_stripped, rows[i].n_stripped);
	}
	assert_non_null(strstr(s.example, "plain-stripped"));
	assert_int_equal(add(f, &s, strcpy(path, "/etc/passwd")), 0);
	assert_int_equal(s.n, 6);
	s.n = STRIPPED_PROGRAMS_MAX;
	assert_int_equal(add(f, &s, strcpy(path, "/proc/self/exe")), 0);
	assert_int_equal(s.n, STRIPPED_PROGRAMS_MAX);
}

struct attempt {
	const struct fixture *f;
	char path[FIXTURE_PATH_MAX];
};

static int add_one(void *ctx)
{
	struct attempt *a = ctx;
	struct stripped s = {.n = 0};

	return add(a->f, &s, a->path); /* another root may have the debug file, too */
}

static void test_without_memory(void **state)
{
	struct attempt a = {.f = *state};

	(void)fixture_path("cxx-linked", a.path);
	allocfail_survive(add_one, &a);
}

static void test_finding(void **state)
{
	static const struct {
		size_t n, n_stripped;
		unsigned int rate;
		size_t n_servers;
		const char *found; /* NULL: no finding */
	} rows[] = {
		{0, 0, 97, 0, NULL},
		{3, 2, 0, 0, NULL}, /* no CPU profiles */
		{3, 0, 97, 0, "all 3 programs have symbols"},
		{3, 2, 97, 0,
		 "2 of 3 programs are stripped, /bin/x the first: static functions are shown as "
		 "NAME+0xSTART; packages of debug symbols or --debuginfod name them"},
		{3, 2, 97, 1,
		 "2 of 3 programs are stripped, /bin/x the first: static functions are shown as "
		 "NAME+0xSTART; the servers of --debuginfod are asked"},
	};

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		static struct findings findings;
		const struct config config = {.cpu_rate = rows[i].rate,
					      .debuginfod = {.n = rows[i].n_servers}};
		struct probe_results results = {
			.config = &config,
			.reading.stripped = {.n = rows[i].n,
					     .n_stripped = rows[i].n_stripped,
					     .example = "/bin/x"},
		};

		findings.n = 0;
		stripped_check(&results, &findings);
		assert_int_equal(findings.n, rows[i].found != NULL);
		if (!rows[i].found)
			continue;
		assert_string_equal(findings.items[0].found, rows[i].found);
		assert_int_equal(findings.items[0].outcome, FINDING_OK);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_programs),
		cmocka_unit_test(test_without_memory),
		cmocka_unit_test(test_finding),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
