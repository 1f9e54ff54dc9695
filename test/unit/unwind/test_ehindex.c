// SPDX-License-Identifier: Apache-2.0
/* The truth comes from readelf, over all FDEs of real files. */
#include "support/test.h"

#include <fcntl.h>
#include <string.h>

#include "support/allocfail.h"
#include "support/fixture.h"
#include "unwind/ehindex.h"

struct truth {
	struct ehrange *items;
	size_t n;
	size_t cap;
};

static void truth_deinit(struct truth *t)
{
	free(t->items);
}

/* "OFFSET LENGTH POINTER FDE cie=... pc=START..END" */
static void ask_readelf(const char *path, struct truth *t)
{
	char command[FIXTURE_PATH_MAX + 64], line[4096];
	FILE *out;

	snprintf(command, sizeof(command), "LC_ALL=C readelf --debug-dump=frames '%s' 2>/dev/null",
		 path);
	out = popen(command, "re");
	assert_non_null(out);
	while (fgets(line, sizeof(line), out)) {
		const char *pc = strstr(line, " FDE ") ? strstr(line, " pc=") : NULL;
		struct ehrange range;

		// NOLINTNEXTLINE(cert-err34-c): readelf writes numbers
		if (!pc || sscanf(pc, " pc=%lx..%lx", &range.start, &range.end) != 2 ||
		    range.start == range.end)
			continue;
		if (t->n == t->cap) {
			t->cap = t->cap ? 2 * t->cap : 64;
			t->items = reallocarray(t->items, t->cap, sizeof(*t->items));
			assert_non_null(t->items);
		}
		t->items[t->n++] = range;
	}
	assert_int_equal(pclose(out), 0);
}

static struct elffile *open_file(const char *path)
{
	struct elffile *file;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(elffile_open(fd, &file), 0);
	return file;
}

static bool is_in_one(const struct truth *truth, uint64_t vaddr)
{
	for (size_t i = 0; i < truth->n; i++)
		if (vaddr >= truth->items[i].start && vaddr < truth->items[i].end)
			return true;
	return false;
}

static void check_range(struct ehindex *x, const struct ehrange *want, uint64_t vaddr)
{
	struct ehrange got;
	uint64_t start;

	assert_int_equal(ehindex_start(x, vaddr, &start), 0);
	assert_int_equal(start, want->start);
	assert_int_equal(ehindex_find(x, vaddr, &got), 0);
	assert_int_equal(got.start, want->start);
	assert_int_equal(got.end, want->end);
}

static void check_file(const char *path, size_t n_min)
{
	_cleanup_(truth_deinit) struct truth truth = {0};
	struct elffile *file = open_file(path);
	struct ehrange range;
	struct ehindex *x;
	size_t n_gaps = 0;
	uint64_t start;

	row_begin(path);
	ask_readelf(path, &truth);
	assert_true(truth.n >= n_min);
	assert_int_equal(ehindex_open(file, &x), 0);
	for (size_t i = 0; i < truth.n; i++) {
		const struct ehrange *want = &truth.items[i];

		check_range(x, want, want->start);
		check_range(x, want, want->start + (want->end - want->start) / 2);
		check_range(x, want, want->end - 1);
	}
	for (size_t i = 0; i < truth.n; i++) { /* with jumps to other functions and their CIEs */
		const struct ehrange *want = &truth.items[i * 7919 % truth.n];

		check_range(x, want, want->start);
	}
	for (size_t i = 0; i < truth.n && n_gaps < 200; i++) {
		if (is_in_one(&truth, truth.items[i].end))
			continue;
		n_gaps++;
		assert_int_equal(ehindex_find(x, truth.items[i].end, &range), ELFFILE_ABSENT);
	}
	assert_int_equal(ehindex_find(x, 0, &range), ELFFILE_ABSENT);
	assert_int_equal(ehindex_start(x, 0, &start), ELFFILE_ABSENT);
	assert_int_equal(ehindex_find(x, UINT64_MAX, &range), ELFFILE_ABSENT);
	print_message("%zu functions, %zu gaps, %zu bytes\n", truth.n, n_gaps, ehindex_bytes(x));
	ehindex_free(x);
	elffile_free(file);
}

static void test_real_files(void **state)
{
	static const char library[] = "libstdc++.so.6";
	char path[FIXTURE_PATH_MAX], command[64];
	FILE *out;

	(void)state;
	check_file(fixture_path("plain-pie", path), 3);
	check_file(fixture_path("plain-stripped", path), 3);
	check_file(fixture_path("cxx", path), 4);
	check_file(fixture_path("zoo-pie", path), 10);
	snprintf(command, sizeof(command), "g++ -print-file-name=%s", library);
	out = popen(command, "re");
	assert_non_null(out);
	assert_non_null(fgets(path, sizeof(path), out));
	assert_int_equal(pclose(out), 0);
	path[strcspn(path, "\n")] = '\0';
	check_file(path, 3000);
}

/* The linker makes none for a static C program. */
static void test_without_index(void **state)
{
	char path[FIXTURE_PATH_MAX];

	(void)state;
	check_file(fixture_path("zoo-static", path), 1000);
}

static void test_without_table(void **state)
{
	char path[FIXTURE_PATH_MAX];
	struct elffile *file = open_file(fixture_path("zoo-nocfi", path));
	struct ehindex *x;

	(void)state;
	assert_int_equal(ehindex_open(file, &x), ELFFILE_ABSENT);
	elffile_free(file);
}

static int open_and_find(void *ctx)
{
	struct ehrange range;
	struct ehindex *x;
	int r = ehindex_open(ctx, &x);

	if (r)
		return r;
	r = ehindex_find(x, elffile_entry(ctx), &range);
	ehindex_free(x);
	return r;
}

static void test_without_memory(void **state)
{
	char path[FIXTURE_PATH_MAX];
	struct elffile *file = open_file(fixture_path("plain-pie", path));

	(void)state;
	allocfail_each(open_and_find, file);
	elffile_free(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_real_files),
		cmocka_unit_test(test_without_index),
		cmocka_unit_test(test_without_table),
		cmocka_unit_test(test_without_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
