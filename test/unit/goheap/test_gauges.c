// SPDX-License-Identifier: Apache-2.0
/* What the runtime counts, read from outside, against what the program reads itself, while nothing
 * happens in it. */
#include "support/test.h"

#include <inttypes.h>
#include <string.h>

#include "goheap/goheap.h"
#include "support/gofixture.h"
#include "support/goprocess.h"

#define COUNTS "test/fixtures/go/counts"

/* As the fixture writes them. */
struct truth {
	uint64_t goroutines;
	uint64_t next_gc;
	uint64_t live;
	uint64_t inuse;
	uint64_t sys;
	uint64_t released;
	uint64_t cycles;
};

static void read_truth(const char *path, struct truth *ret)
{
	FILE *f = fopen(path, "re");

	assert_non_null(f);
	// NOLINTNEXTLINE(cert-err34-c): our own fixture's
	assert_int_equal(fscanf(f,
				"%" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
				" %" SCNu64 " %" SCNu64,
				&ret->goroutines, &ret->next_gc, &ret->live, &ret->inuse, &ret->sys,
				&ret->released, &ret->cycles),
			 7);
	fclose(f);
}

/* Writing the file takes a page or two, and goroutines that come to wait some bytes each. What is
 * given back to the system goes on in the background.
 */
static void assert_near(uint64_t now, uint64_t then, uint64_t slack)
{
	assert_true((now > then ? now - then : then - now) <= slack);
}

static void assert_pacer(const struct gopacer *now, const struct truth *then, unsigned int minor,
			 bool limited)
{
	/* a goal by the memory limit moves with what is given back to the system */
	assert_near(now->next_gc, then->next_gc,
		    then->next_gc > 1ull << 40 ? 64 << 20
		    : limited		       ? 4 << 20
					       : 0);
	if (then->live)
		assert_int_equal(now->marked, then->live);
	assert_int_equal(now->has_memory, minor >= 19);
	if (minor < 19)
		return;
	assert_near(now->inuse, then->inuse, 1 << 20);
	assert_near(now->sys, then->sys, 1 << 20); /* stacks are not in it */
	assert_true(now->released <= now->sys - now->inuse);
}

static void compare(struct goheap *h, const char *file, unsigned int minor, bool limited)
{
	struct goheap_profile profile;
	struct goheap_gauges gauges;
	struct truth truth;
	uint64_t cycles;

	read_truth(file, &truth);
	goheap_read(h, &profile);
	assert_int_equal(goheap_gauges(h, &gauges), 0);
	assert_int_equal(gauges.has_pacer, minor >= 17);
	assert_int_equal(gauges.has_goroutines, minor >= 17);
	assert_int_equal(goheap_cycles(h, &cycles), 0);
	assert_int_equal(cycles, truth.cycles);
	if (minor < 17)
		return;
	assert_pacer(&gauges.pacer, &truth, minor, limited);
	assert_int_equal(gauges.goroutines, truth.goroutines);
}

static void one_program(const char *path, const char *env)
{
	static const char *const orders[] = {
		"go 1",	      "hold 4096", "gc",   "gogc 400", "go 5000", "end",      "gc", "go 70",
		"hold 40000", "gogc 20",   "drop", "gc",       "gogc -1", "gogc 100", "gc",
	};
	_cleanup_(goprocess_stop) struct goprocess p = {.to = -1};
	char file[] = "/tmp/podprof-counts-XXXXXX";
	const char *const args[] = {file, NULL};
	struct goheap_opts opts = {.proc = &p.proc};
	unsigned int minor = gofixture_minor(path);
	struct goheap *h;

	close(mkstemp(file));
	goprocess_start(&p, path, args, env);
	opts.id = p.id;
	assert_int_equal(goheap_new(&opts, &h), 0);
	compare(h, file, minor, env);
	for (size_t i = 0; i < array_size(orders); i++) {
		row_begin(orders[i]);
		goprocess_order(&p, orders[i]);
		compare(h, file, minor, env);
	}
	goheap_free(h);
	unlink(file);
}

static void as_the_program_says(void **state)
{
	static const char *const variants[] = {"default", "stripped", "pie-stripped",
					       "cgo-pie-stripped"};
	const char *gos[GOFIXTURE_GOS_MAX];
	size_t n = gofixture_gos(gos);

	(void)state;
	for (size_t i = 0; i < n * array_size(variants); i++) {
		char *path = gofixture_build(COUNTS, gos[i / array_size(variants)],
					     variants[i % array_size(variants)]);

		row_begin(path);
		one_program(path, NULL);
		row_begin(path);
		one_program(path, "GOMEMLIMIT=96MiB");
		free(path);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_the_program_says),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
