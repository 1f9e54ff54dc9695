// SPDX-License-Identifier: Apache-2.0
/* The runtime's counters read from outside, compared with the program's own reading, while the
 * program is idle. */
#include "support/test.h"

#include <inttypes.h>
#include <string.h>

#include "goheap/goheap.h"
#include "goheap/gototals.h"
#include "support/gofixture.h"
#include "support/goprocess.h"
#include "support/heapimage.h"

#define COUNTS "test/fixtures/go/counts"

/* In the fixture's format. */
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

/* Writing the file takes a page or two, and parked goroutines some bytes each. The runtime returns
 * memory to the system in the background. */
static void assert_near(uint64_t now, uint64_t then, uint64_t slack)
{
	assert_true((now > then ? now - then : then - now) <= slack);
}

static void assert_pacer(const struct gopacer *now, const struct truth *then, unsigned int minor,
			 bool limited)
{
	/* a goal from the memory limit moves with the returned memory */
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
	assert_near(now->sys, then->sys, 1 << 20); /* without stacks */
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

/* ---------------------------------------------------------------- damaged memory */

#define VARS  0x600000ull
#define PROCS 0x610000ull /* pointers to processors */
#define PROC  0x620000ull
#define FREE  0x998 /* of gFree in a processor */

/* A synthetic scheduler with one processor: 20 descriptions, 4 of the runtime's own, 3 and 2 free.
 */
static void scheduler_init(struct heapimage *image, struct goruntime *rt)
{
	heapimage_init(image);
	heapimage_runtime("go1.26.8", rt);
	heapimage_map(image, VARS, 4096);
	heapimage_map(image, PROCS, 4096);
	heapimage_map(image, PROC, 8192);
	rt->file.sched = (struct govars_sched){
		.allglen = VARS - rt->bias,
		.allp = VARS + 8 - rt->bias,
		.system = VARS + 32 - rt->bias,
		.free = VARS + 64 - rt->bias,
		.split = true,
	};
	heapimage_u64(image, VARS, 20);
	heapimage_u64(image, VARS + 8, PROCS);
	heapimage_u64(image, VARS + 16, 1);
	heapimage_u64(image, VARS + 32, 4);
	heapimage_u64(image, VARS + 64 + 16, 3);
	heapimage_u64(image, PROCS, PROC);
	heapimage_u64(image, PROC + FREE, 0xc000001000);
	heapimage_u64(image, PROC + FREE + 8, 2);
	heapimage_u64(image, PROC + FREE + 16, PROC + FREE + 40);
	heapimage_u64(image, PROC + FREE + 32, 128);
}

static void odd_schedulers(void **state)
{
	static const struct {
		const char *name;
		uint64_t addr;
		uint64_t value;
		int want;
		uint64_t n;
	} rows[] = {
		{"as it should be", VARS, 20, GOTOTALS_OK, 11},
		{"all are free", VARS, 9, GOTOTALS_OK, 1},
		{"more free than there are", VARS, 8, GOTOTALS_ODD, 0},
		{"2^63 descriptions", VARS, 1ull << 63, GOTOTALS_ODD, 0},
		{"no processor", VARS + 16, 0, GOTOTALS_ODD, 0},
		{"too many processors", VARS + 16, GOSCHED_PROCS_MAX + 1, GOTOTALS_ODD, 0},
		{"processors nowhere", VARS + 8, 0x1000, GOTOTALS_ODD, 0},
		{"a processor nowhere", PROCS, 0x1000, GOTOTALS_ODD, 0},
		{"another struct", PROC + FREE + 16, PROC, GOTOTALS_ABSENT, 0},
		{"another length", PROC + FREE + 32, 129, GOTOTALS_ABSENT, 0},
		{"a longer list", PROC + FREE + 8, 64, GOTOTALS_ODD, 0},
		{"a list too long", PROC + FREE + 8, 65, GOTOTALS_ODD, 0},
		{"a list without a head", PROC + FREE, 0, GOTOTALS_ODD, 0},
	};

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		_cleanup_(heapimage_deinit) struct heapimage image;
		struct gosched sched = {0};
		struct goruntime rt;
		uint64_t n = 0;

		row_begin(rows[i].name);
		scheduler_init(&image, &rt);
		heapimage_u64(&image, rows[i].addr, rows[i].value);
		assert_int_equal(gosched_read(&rt, &image.memory, &sched, &n), rows[i].want);
		assert_int_equal(n, rows[i].n);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(odd_schedulers),
		cmocka_unit_test(as_the_program_says),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
