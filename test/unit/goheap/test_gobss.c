// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <stdlib.h>
#include <string.h>

#include "goheap/gobss.h"
#include "goheap/goheap.h"
#include "goheap/goimages.h"
#include "goheap/goruntimes.h"
#include "procmap/maps.h"
#include "support/allocfail.h"
#include "support/gofixture.h"
#include "support/goprocess.h"
#include "support/heapimage.h"

/* ---------------------------------------------------------------- made-up processes */

#define MODULE	  0x600000ull
#define BSS	  0x601000ull
#define BSS_BYTES 0x1000u
#define CHUNK	  0x7f0000000000ull
#define SIZE	  64

static const uint64_t pcs[] = {0x401001, 0x402002};

struct made {
	struct heapimage image;
	struct goruntime rt;
	struct maps maps;
};

static void made_init(struct made *m)
{
	static const char text[] = "00600000-00602000 rw-p 00000000 00:00 0\n"
				   "00700000-00701000 r--p 00000000 00:00 0\n"
				   "7f0000000000-7f0000010000 rw-p 00000000 00:00 0\n";

	heapimage_init(&m->image);
	heapimage_map(&m->image, MODULE, 0x2000);
	heapimage_map(&m->image, 0x700000, 0x1000);
	heapimage_map(&m->image, CHUNK, 0x10000);
	heapimage_u64(&m->image, MODULE + 224, BSS);
	heapimage_u64(&m->image, MODULE + 232, BSS + BSS_BYTES);
	heapimage_bucket(&m->image, CHUNK + 0x100, 0, true, pcs, 2, SIZE,
			 (const heapimage_counts){{10, 4}});
	m->rt = (struct goruntime){.file.data = MODULE};
	m->maps = (struct maps){0};
	assert_int_equal(maps_parse(text, strlen(text), &m->maps), 0);
}

static void made_deinit(struct made *m)
{
	heapimage_deinit(&m->image);
	maps_deinit(&m->maps);
}

static void only_what_is_hashed(void **state)
{
	static const struct {
		const char *name;
		uint64_t words[3]; /* in .bss */
		uint64_t change;   /* a changed word of the record */
		int want;
	} rows[] = {
		{"nothing", {0}, 0, GOBSS_ABSENT},
		{"the head", {0, CHUNK + 0x100}, 0, GOBSS_OK},
		{"among others", {CHUNK + 0x200, CHUNK + 0x100, 0x12345678}, 0, GOBSS_OK},
		{"not aligned", {0, CHUNK + 0x101}, 0, GOBSS_ABSENT},
		{"not mapped", {0, 0x10000}, 0, GOBSS_ABSENT},
		{"beyond the mapping's end", {0, CHUNK + 0x10000 - 40}, 0, GOBSS_ABSENT},
		{"may not be written", {0, 0x700000}, 0, GOBSS_ABSENT},
		{"a variable of its own", {0, BSS + 0x100}, 0, GOBSS_ABSENT},
		{"twice", {CHUNK + 0x100, CHUNK + 0x100}, 0, GOBSS_AMBIGUOUS},
		{"of another kind", {0, CHUNK + 0x100}, 16, GOBSS_ABSENT},
		{"another hash", {0, CHUNK + 0x100}, 24, GOBSS_ABSENT},
		{"another size", {0, CHUNK + 0x100}, 32, GOBSS_ABSENT},
		{"another number of PCs", {0, CHUNK + 0x100}, 40, GOBSS_ABSENT},
		{"another PC", {0, CHUNK + 0x100}, 48, GOBSS_ABSENT},
	};

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		_cleanup_(made_deinit) struct made m;
		uint64_t found = 0;

		row_begin(rows[i].name);
		made_init(&m);
		heapimage_write(&m.image, BSS + 0x800, rows[i].words, sizeof(rows[i].words));
		if (rows[i].change)
			heapimage_u64(&m.image, CHUNK + 0x100 + rows[i].change, 3);
		assert_int_equal(gobss_find(&m.rt, &m.image.memory, &m.maps, &found), rows[i].want);
		assert_true(found == (rows[i].want == GOBSS_OK ? BSS + 0x808 : 0));
	}
}

static void bounds_that_are_none(void **state)
{
	static const uint64_t rows[][2] = {
		{BSS + 8, BSS}, {BSS, BSS}, {UINT64_MAX - 3, UINT64_MAX}, {BSS, BSS + (1ull << 40)},
		{0, 0},
	};
	_cleanup_(made_deinit) struct made m;
	uint64_t found;

	(void)state;
	made_init(&m);
	heapimage_u64(&m.image, BSS, CHUNK + 0x100);
	for (size_t i = 0; i < array_size(rows); i++) {
		heapimage_u64(&m.image, MODULE + 224, rows[i][0]);
		heapimage_u64(&m.image, MODULE + 232, rows[i][1]);
		assert_int_equal(gobss_find(&m.rt, &m.image.memory, &m.maps, &found), GOBSS_ABSENT);
	}
	/* .noptrbss, as before Go 1.19 */
	heapimage_u64(&m.image, MODULE + 240, BSS);
	heapimage_u64(&m.image, MODULE + 248, BSS + BSS_BYTES);
	assert_int_equal(gobss_find(&m.rt, &m.image.memory, &m.maps, &found), GOBSS_OK);
	m.image.outcome = MEMORY_GONE;
	assert_int_equal(gobss_find(&m.rt, &m.image.memory, &m.maps, &found), GOBSS_GONE);
	m.rt.file.data = 0;
	assert_int_equal(gobss_find(&m.rt, &m.image.memory, &m.maps, &found), GOBSS_ABSENT);
}

static int attempt(void *arg)
{
	struct made *m = arg;
	uint64_t found;

	return gobss_find(&m->rt, &m->image.memory, &m->maps, &found);
}

static void out_of_memory(void **state)
{
	_cleanup_(made_deinit) struct made m;

	(void)state;
	made_init(&m);
	heapimage_u64(&m.image, BSS, CHUNK + 0x100);
	allocfail_each(attempt, &m);
}

/* ---------------------------------------------------------------- real programs */

/* The scan agrees with symbols and code, in all releases. */
static void as_the_others_say(void **state)
{
	static const char *const variants[] = {"default", "cgo-pie-stripped", "c-shared-stripped"};
	static const char *const args[] = {"/dev/null", "large", NULL};
	const char *gos[GOFIXTURE_GOS_MAX];
	size_t n = gofixture_gos(gos);

	(void)state;
	for (size_t i = 0; i < n * array_size(variants); i++) {
		_cleanup_(goprocess_stop) struct goprocess p = {.to = -1};
		char *path = gofixture_build("test/fixtures/go/heap", gos[i / array_size(variants)],
					     variants[i % array_size(variants)]);
		struct goheap_opts opts = {.proc = &p.proc};
		struct goheap_profile profile;
		struct goheap *known, *scanned;
		struct goruntime rt;
		uint64_t addr;

		row_begin(path);
		goprocess_start(&p, path, args, NULL);
		opts.id = p.id;
		assert_int_equal(goheap_new(&opts, &known), 0);
		assert_non_null(goheap_runtime(known));
		rt = *goheap_runtime(known);
		addr = goruntime_addr(&rt, GORUNTIME_MBUCKETS);
		rt.file.vars[GORUNTIME_MBUCKETS] = (struct goruntime_place){0};
		opts.runtime = &rt;
		assert_int_equal(goheap_new(&opts, &scanned), 0);
		assert_int_equal(goheap_read(scanned, &profile), GORUNTIME_OK);
		assert_true(goruntime_addr(goheap_runtime(scanned), GORUNTIME_MBUCKETS) == addr);
		assert_true(profile.n_records > 0);
		goheap_free(known);
		goheap_free(scanned);
		free(path);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_what_is_hashed),
		cmocka_unit_test(bounds_that_are_none),
		cmocka_unit_test(out_of_memory),
		cmocka_unit_test(as_the_others_say),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
