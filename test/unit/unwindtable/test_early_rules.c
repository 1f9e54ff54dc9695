// SPDX-License-Identifier: Apache-2.0
/* Real files: this program, which is large with sanitizers, and a small one. */
#include "support/test.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/loop.h"
#include "procmap/image.h"
#include "support/allocfail.h"
#include "support/fixture.h"
#include "support/metrics.h"
#include "unwind/ehframe.h"
#include "unwind/rows.h"
#include "unwind/synthetic.h"
#include "unwindtable/early_rules.h"

#define NUMBER 7
#define OWNER  1001

struct bench {
	struct loop *loop;
	struct early_rules *rules;
	struct image *image;
	struct rows *all;
	size_t n_ready;
	uint32_t round; /* of the last */
};

static bool more;

static void on_ready(void *ctx, uint16_t number, uint32_t round)
{
	struct bench *b = ctx;

	assert_int_equal(number, NUMBER);
	b->n_ready++;
	b->round = round;
	loop_stop(b->loop);
}

static struct image *open_image(const char *path)
{
	struct image *image = NULL;
	int elf, fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(image_new_file(fd, path, &image, &elf), 0);
	assert_non_null(image->file);
	return image;
}

/* A program with more code than synthetic.c searches: the compiler's own, or another one that is
 * always there. */
static struct image *open_large(void)
{
	char path[FIXTURE_PATH_MAX] = "";
	FILE *out = popen("gcc -print-prog-name=cc1plus", "re");

	assert_non_null(out);
	assert_non_null(fgets(path, sizeof(path), out));
	assert_int_equal(pclose(out), 0);
	path[strcspn(path, "\n")] = '\0';
	return open_image(path);
}

static struct rows *all_rows(const struct elffile *file)
{
	struct ehframe_stats stats = {0};
	struct rows *rows;
	uint64_t start, end;

	assert_int_equal(ehframe_text(file, &start, &end), 0);
	assert_true(end - start > SYNTHETIC_SCAN_MAX);
	assert_int_equal(rows_new(start, end, &rows), 0);
	assert_int_equal(ehframe_add(file, rows, &stats), 0);
	assert_int_equal(rows_finish(rows), 0);
	return rows;
}

static int setup(void **state)
{
	struct bench *b = calloc(1, sizeof(*b));
	struct early_rules_opts opts = {.ready = on_ready, .ctx = b};

	assert_non_null(b);
	assert_int_equal(loop_new(&b->loop), 0);
	opts.loop = b->loop;
	assert_int_equal(early_rules_new(&opts, &b->rules), 0);
	b->image = open_large();
	b->all = all_rows(b->image->file);
	*state = b;
	return 0;
}

static int teardown(void **state)
{
	struct bench *b = *state;

	early_rules_free(b->rules);
	rows_free(b->all);
	image_unref(b->image);
	loop_free(b->loop);
	free(b);
	return 0;
}

static uint64_t row_vaddr(const struct bench *b, size_t i)
{
	return rows_at(b->all, i * (rows_count(b->all) / 64)).vaddr;
}

/* The rules of a request are the table's; addresses without a function are known, too. */
static void test_request(void **state)
{
	struct bench *b = *state;
	uint64_t vaddrs[64 + 2];
	struct unwind_rule rule;
	size_t n_rules = 0;

	for (size_t i = 0; i < 64; i++)
		vaddrs[i] = row_vaddr(b, 63 - i);
	vaddrs[64] = vaddrs[0];
	vaddrs[65] = 1;
	assert_true(early_rules_serve(b->rules, NUMBER, b->image));
	assert_false(early_rules_find(b->rules, NUMBER, vaddrs[0], &rule));
	assert_true(early_rules_want(b->rules, OWNER, NUMBER, vaddrs, array_size(vaddrs), &more));
	assert_true(early_rules_want(b->rules, OWNER, NUMBER, vaddrs, 1, &more)); /* under way */
	assert_int_equal(loop_run(b->loop), 0);
	assert_int_equal(b->n_ready, 1);
	for (size_t i = 0; i < 64; i++) {
		const size_t at = rows_find(b->all, vaddrs[i]);
		const struct unwind_rule *want = rows_rule(b->all, rows_at(b->all, at).rule);

		if (!rows_at(b->all, at).rule)
			continue;
		n_rules++;
		assert_true(early_rules_find(b->rules, NUMBER, vaddrs[i], &rule));
		assert_memory_equal(&rule, want, sizeof(rule));
	}
	assert_true(n_rules > 32);
	assert_false(early_rules_find(b->rules, NUMBER, 1, &rule));
	assert_false(early_rules_want(b->rules, OWNER, NUMBER, vaddrs, array_size(vaddrs), &more));
	early_rules_drop(b->rules, NUMBER);
	assert_false(early_rules_find(b->rules, NUMBER, vaddrs[0], &rule));
}

static uint32_t want(struct bench *b, uint64_t vaddr)
{
	return early_rules_want(b->rules, OWNER, NUMBER, &vaddr, 1, &more);
}

/* Addresses beside a request under way are in the next one. */
static void test_rounds(void **state)
{
	struct bench *b = *state;
	uint64_t many[EARLY_RULES_BATCH_MAX];

	assert_true(early_rules_serve(b->rules, NUMBER, b->image));
	assert_int_equal(want(b, 1), 1);
	assert_int_equal(want(b, 2), 2);
	assert_int_equal(want(b, 1), 1);
	row_begin("no room in the next one");
	for (size_t i = 0; i < array_size(many); i++)
		many[i] = 3 + i;
	more = false;
	assert_int_equal(early_rules_want(b->rules, OWNER, NUMBER, many, array_size(many), &more),
			 2);
	assert_true(more);
	assert_int_equal(loop_run(b->loop), 0);
	assert_int_equal(b->round, 1);
	assert_int_equal(want(b, 1), 0);
	assert_int_equal(want(b, 2), 2);
	more = false;
	assert_int_equal(early_rules_want(b->rules, OWNER, NUMBER, many, array_size(many), &more),
			 3);
	assert_false(more);
	for (uint32_t round = 2; round <= 3; round++) {
		assert_int_equal(loop_run(b->loop), 0);
		assert_int_equal(b->round, round);
	}
	assert_int_equal(early_rules_want(b->rules, OWNER, NUMBER, many, array_size(many), &more),
			 0);
	assert_false(more);
}

/* Of a number's next image nothing is known. */
static void test_sweep(void **state)
{
	struct bench *b = *state;
	const uint64_t vaddr = row_vaddr(b, 1);
	bool used[NUMBER + 1] = {false};
	struct unwind_rule rule;

	assert_true(early_rules_serve(b->rules, NUMBER, b->image));
	assert_true(early_rules_want(b->rules, OWNER, NUMBER, &vaddr, 1, &more));
	assert_int_equal(loop_run(b->loop), 0);
	assert_true(early_rules_find(b->rules, NUMBER, vaddr, &rule));
	used[NUMBER] = true;
	early_rules_sweep(b->rules, used, array_size(used));
	assert_true(early_rules_find(b->rules, NUMBER, vaddr, &rule));
	used[NUMBER] = false;
	early_rules_sweep(b->rules, used, array_size(used));
	assert_false(early_rules_find(b->rules, NUMBER, vaddr, &rule));
}

static void test_reused_number(void **state)
{
	struct bench *b = *state;
	const uint64_t vaddr = row_vaddr(b, 1);
	char path[FIXTURE_PATH_MAX];
	struct image *small = open_image(fixture_path("plain-pie", path));
	struct unwind_rule rule;

	assert_true(early_rules_serve(b->rules, NUMBER, b->image));
	assert_true(early_rules_want(b->rules, OWNER, NUMBER, &vaddr, 1, &more));
	assert_int_equal(loop_run(b->loop), 0);
	/* a small image has none: its table is made soon */
	assert_false(early_rules_serve(b->rules, NUMBER, small));
	assert_false(early_rules_find(b->rules, NUMBER, vaddr, &rule));
	assert_false(early_rules_want(b->rules, OWNER, NUMBER, &vaddr, 1, &more));
	image_unref(small);
}

/* An image may go while its request is under way. */
static void test_end_under_way(void **state)
{
	struct bench *b = *state;
	const uint64_t vaddr = row_vaddr(b, 1);

	assert_true(early_rules_serve(b->rules, NUMBER, b->image));
	assert_true(early_rules_want(b->rules, OWNER, NUMBER, &vaddr, 1, &more));
	early_rules_drop(b->rules, NUMBER);
	early_rules_free(b->rules);
	b->rules = NULL;
	assert_int_equal(b->n_ready, 0);
}

/* The end of the owner while a request is under way, or done and not taken yet: nobody is told, as
 * the owner's other parts are gone. */
static void test_end_with_request(void **state)
{
	struct bench *b = *state;
	const struct early_rules_opts opts = {.loop = b->loop, .ready = on_ready, .ctx = b};
	const uint64_t vaddr = row_vaddr(b, 1);

	for (useconds_t i = 0; i < 50; i++) {
		assert_true(early_rules_serve(b->rules, NUMBER, b->image));
		assert_true(early_rules_want(b->rules, OWNER, NUMBER, &vaddr, 1, &more));
		usleep(i * 200); /* the thread works meanwhile */
		early_rules_free(b->rules);
		assert_int_equal(early_rules_new(&opts, &b->rules), 0);
	}
	assert_int_equal(b->n_ready, 0);
}

static uint64_t outcome(const struct bench *b, const char *name)
{
	return metrics_get(early_rules_collect, b->rules, "podprof_unwind_early_rules", name);
}

/* Requests addresses of the code from the @first on, until the owner gets no more. Returns their
 * number. */
static size_t request_all(struct bench *b, uint64_t owner, size_t first)
{
	const uint64_t start = row_vaddr(b, 1), before = outcome(b, "ok") + outcome(b, "no_rows");
	const uint64_t refused = outcome(b, "over_share");
	size_t n = first;

	while (outcome(b, "over_share") == refused) {
		uint64_t vaddrs[EARLY_RULES_BATCH_MAX];

		for (size_t i = 0; i < array_size(vaddrs); i++)
			vaddrs[i] = start + n++;
		if (early_rules_want(b->rules, owner, NUMBER, vaddrs, array_size(vaddrs), &more))
			assert_int_equal(loop_run(b->loop), 0);
	}
	return outcome(b, "ok") + outcome(b, "no_rows") - before;
}

/* A container's share is a quarter of what is free, and comes back with the image's table. */
static void test_share(void **state)
{
	struct bench *b = *state;
	struct unwind_rule rule;
	const size_t fifth = 65536 / 5 + 1;

	assert_true(early_rules_serve(b->rules, NUMBER, b->image));
	assert_int_equal(request_all(b, OWNER, 0), fifth);
	assert_int_equal(request_all(b, OWNER, 0), 0);
	assert_int_equal(request_all(b, OWNER, fifth), 0);
	assert_int_equal(outcome(b, "full"), 0);
	/* what the first holds counts for the first; the second has a quarter of the rest as well
	 */
	assert_int_equal(request_all(b, OWNER + 1, fifth), (65536 - fifth) / 5 + 1);
	early_rules_drop(b->rules, NUMBER);
	assert_false(early_rules_find(b->rules, NUMBER, row_vaddr(b, 1), &rule));
	assert_true(early_rules_serve(b->rules, NUMBER, b->image));
	assert_int_equal(request_all(b, OWNER, 0), fifth);
}

/* ---- memory */

static int make(void *ctx)
{
	const struct bench *b = ctx;
	const struct early_rules_opts opts = {.loop = b->loop, .ready = on_ready};
	struct early_rules *rules;
	int r = early_rules_new(&opts, &rules);

	if (!r)
		early_rules_free(rules);
	return r;
}

/* Each allocation of a request fails once: what was refused can be requested again, and no rule is
 * another one than the table's. */
static void test_without_memory(void **state)
{
	struct bench *b = *state;
	uint64_t vaddrs[64];
	bool has_failed = true;
	size_t n = 0;

	assert_in_range(allocfail_each(make, b), 5, 20);
	for (size_t i = 0; i < array_size(vaddrs); i++)
		vaddrs[i] = row_vaddr(b, i);
	while (has_failed) {
		bool under_way;

		allocfail_arm(++n);
		under_way = early_rules_serve(b->rules, NUMBER, b->image) &&
			    early_rules_want(b->rules, OWNER, NUMBER, vaddrs, array_size(vaddrs),
					     &more);
		has_failed = allocfail_disarm();
		assert_true(under_way || has_failed);
		assert_true(early_rules_serve(b->rules, NUMBER, b->image));
		while (early_rules_want(b->rules, OWNER, NUMBER, vaddrs, array_size(vaddrs), &more))
			assert_int_equal(loop_run(b->loop), 0);
		for (size_t i = 0; i < array_size(vaddrs); i++) {
			const uint32_t want = rows_at(b->all, rows_find(b->all, vaddrs[i])).rule;
			struct unwind_rule rule;

			if (!want)
				continue;
			assert_true(early_rules_find(b->rules, NUMBER, vaddrs[i], &rule));
			assert_memory_equal(&rule, rows_rule(b->all, want), sizeof(rule));
		}
		early_rules_drop(b->rules, NUMBER);
	}
	assert_true(n > array_size(vaddrs));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_request, setup, teardown),
		cmocka_unit_test_setup_teardown(test_rounds, setup, teardown),
		cmocka_unit_test_setup_teardown(test_sweep, setup, teardown),
		cmocka_unit_test_setup_teardown(test_reused_number, setup, teardown),
		cmocka_unit_test_setup_teardown(test_end_under_way, setup, teardown),
		cmocka_unit_test_setup_teardown(test_end_with_request, setup, teardown),
		cmocka_unit_test_setup_teardown(test_share, setup, teardown),
		cmocka_unit_test_setup_teardown(test_without_memory, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
