// SPDX-License-Identifier: Apache-2.0
/*
 * "go tool pprof" finds no difference between a program's own heap profile and podprof's. -base
 * subtracts sample by sample, so samples cancel only with equal stack, addresses within the files,
 * lines, labels and units. -diff_base compares functions.
 *
 * Nothing is scaled (rate 1), since the last bit of exp() may differ (goheap/goheap.c); "make
 * check-go" has the default rate too.
 */
#include "support/test.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "support/gofixture.h"
#include "support/heapoutside.h"

static const char *const variants[] = {"default", "pie-stripped", "cgo-pie-stripped", "c-shared",
				       "plugin"};
static const char *const types[] = {"alloc_objects", "alloc_space", "inuse_objects", "inuse_space"};

struct files {
	char own[64];
	char ours[64];
};

static void write_file(const char *path, const struct buf *bytes)
{
	FILE *f = fopen(path, "we");

	assert_non_null(f);
	assert_int_equal(fwrite(bytes->data, 1, bytes->len, f), bytes->len);
	assert_int_equal(fclose(f), 0);
}

/* Both profiles of a program at rest. */
static void make_profiles(const char *path, const char *env, const struct files *files)
{
	_cleanup_(heapoutside_deinit) struct heapoutside o = HEAPOUTSIDE_INIT;
	_cleanup_(buf_deinit) struct buf ours = BUF_INIT(HEAPOUTSIDE_BYTES_MAX);
	const char *const args[] = {files->own, NULL};
	struct go_profile_report_stats stats;
	struct goheap_totals totals;

	heapoutside_start(&o, path, args, env);
	assert_int_equal(
		heapoutside_read(&o, &heapoutside_cumulative, false, &ours, &stats, &totals), 0);
	write_file(files->ours, &ours);
}

/* The test fails if the output has a line between the lines beginning with @first and @last; NULL
 * is the end. */
static void run_pprof(const char *options, const struct files *files, const char *first,
		      const char *last)
{
	char command[512], line[65536];
	bool inside = false, done = false;
	FILE *out;

	snprintf(command, sizeof(command),
		 "test/go.sh tool pprof -symbolize=none %s=%s %s 2>/dev/null", options, files->own,
		 files->ours);
	out = popen(command, "r"); // NOLINT(bugprone-command-processor,cert-env33-c)
	assert_non_null(out);
	while (fgets(line, sizeof(line), out)) {
		if (inside && !done && last && strncmp(line, last, strlen(last)) == 0)
			done = true;
		else if (inside && !done)
			fail_msg("%s: a difference:\n%s", options, line);
		if (strncmp(line, first, strlen(first)) == 0)
			inside = true;
	}
	assert_int_equal(pclose(out), 0);
	assert_true(inside);
	assert_true(done || !last);
}

static void compare(const struct files *files)
{
	char options[160];

	run_pprof("-raw -base", files, "alloc_objects/count alloc_space/bytes", "Locations");
	for (size_t i = 0; i < array_size(types); i++) {
		snprintf(options, sizeof(options),
			 "-top -nodefraction=0 -nodecount=1000000 -sample_index=%s -diff_base",
			 types[i]);
		run_pprof(options, files, "      flat  flat%", NULL);
	}
}

static void no_difference(void **state)
{
	static const char *const envs[] = {"HEAP_RATE=1", NULL};
	const char *gos[GOFIXTURE_GOS_MAX] = {NULL};
	size_t n = gofixture_gos(gos), n_envs = getenv("PODPROF_TEST_GO") ? 2 : 1;
	struct files files;

	(void)state;
	snprintf(files.own, sizeof(files.own), "/tmp/test_gopprof.%d.own", (int)getpid());
	snprintf(files.ours, sizeof(files.ours), "/tmp/test_gopprof.%d.ours", (int)getpid());
	for (size_t i = 0; i < n * array_size(variants); i++) {
		_cleanup_(freep) char *path =
			gofixture_build("test/fixtures/go/heap", gos[i / array_size(variants)],
					variants[i % array_size(variants)]);

		for (size_t k = 0; k < n_envs; k++) {
			row_begin(path);
			make_profiles(path, envs[k], &files);
			compare(&files);
		}
	}
	unlink(files.own);
	unlink(files.ours);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_difference),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
