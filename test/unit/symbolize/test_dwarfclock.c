// SPDX-License-Identifier: Apache-2.0
/*
 * The times of the reader of DWARF, with a simulated clock. This program is also the process that
 * reads DWARF, without the sandbox: each look at the clock takes a second there, so a request ends
 * after a known number of addresses.
 */
#include "support/test.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/nsec.h"
#include "base/sandbox.h"
#include "support/fixture.h"
#include "support/threads.h"
#include "symbolize/dwarfchild.h"
#include "symbolize/dwarfreader.h"
#include "symbolize/symbolizer.h"

/* ---------------------------------------------------------------- the clock and the process */

/* Nanoseconds that each look adds to the clock. */
static uint64_t look_ns;
static uint64_t offset_ns;

// NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name)
__attribute__((visibility("default"))) int clock_gettime(clockid_t clock, struct timespec *ret)
{
	const int r = (int)syscall(SYS_clock_gettime, clock, ret);
	uint64_t ns;

	if (r || clock != CLOCK_MONOTONIC)
		return r;
	if (look_ns)
		*ret = (struct timespec){0};
	offset_ns += look_ns;
	ns = nsec_of(ret) + offset_ns;
	*ret = (struct timespec){.tv_sec = (time_t)(ns / NSEC_PER_SEC),
				 .tv_nsec = (long)(ns % NSEC_PER_SEC)};
	return 0;
}

/* The sandbox's limits leave no room for the address sanitizer. test_sandbox.c has the sandbox. */
int sandbox_enter(const struct sandbox_opts *opts)
{
	(void)opts;
	return 0;
}

/* ---------------------------------------------------------------- symbolizers */

#define CACHE_BYTES (16u << 20)
/* Longer than a busy machine needs; the tests jump over this time. */
#define DEADLINE    (600 * NSEC_PER_SEC)
/* Of the seconds of a request, a quarter of the deadline: the first look is its begin. */
#define ADDRESSES   (DWARFREADER_DEADLINE_NS / 4 / NSEC_PER_SEC + 1)
#define PATIENCE    (20 * NSEC_PER_MSEC)

static struct symbolizer *new_symbolizer(uint64_t patience_ns)
{
	const struct dwarfreader_opts dwarf = {.patience_ns = patience_ns, .deadline_ns = DEADLINE};
	const struct symbolizer_opts opts = {.cache_bytes = CACHE_BYTES, .dwarf = &dwarf};
	struct symbolizer *s;

	assert_int_equal(symbolizer_new(&opts, &s), 0);
	return s;
}

static uint64_t count(const struct symbolizer *s, enum dwarfreader_outcome outcome)
{
	uint64_t counts[DWARFREADER_OUTCOME_MAX];

	symbolizer_dwarf_counts(s, counts);
	return counts[outcome];
}

static uint64_t work_vaddr(const struct image *image)
{
	struct elffile_section text;

	assert_int_equal(elffile_section(image->file, ".text", &text), 0);
	return text.vaddr + text.size / 2;
}

static bool has_lines(struct symbolizer *s, struct image *image, uint64_t vaddr)
{
	struct symbol symbol;

	assert_int_equal(symbolizer_find(s, &(struct frame){image, vaddr}, &symbol), 0);
	assert_true(symbol.found);
	return symbol.lines[symbol.n_lines - 1].line > 0;
}

/* ---------------------------------------------------------------- addresses that are left out */

struct counted {
	size_t n, n_lines;
	bool lines_first; /* no address with lines comes behind one without */
};

static int count_lines(void *ctx, size_t i, const struct symbol *symbol)
{
	struct counted *c = ctx;

	(void)i;
	assert_true(symbol->found);
	if (symbol->lines[symbol->n_lines - 1].line) {
		c->lines_first = c->lines_first && c->n == c->n_lines;
		c->n_lines++;
	}
	c->n++;
	return 0;
}

/* A process that is out of time leaves out the rest of a request. The rest is asked for once more
 * at once, and what is left out again, by the next profile. */
static void test_left_out(void **state)
{
	static const struct {
		size_t n_lines;
		uint64_t requests;
	} profiles[] = {{2 * ADDRESSES, 2},
			{4 * ADDRESSES, 4},
			{4 * ADDRESSES + 3, 5},
			{4 * ADDRESSES + 3, 5}};
	uint64_t vaddrs[4 * ADDRESSES + 3];
	struct symbolizer *s = new_symbolizer(0);
	struct image *image = fixture_image("inline-gcc4");

	(void)state;
	for (size_t i = 0; i < array_size(vaddrs); i++)
		vaddrs[i] = work_vaddr(image) + i;
	for (size_t i = 0; i < array_size(profiles); i++) {
		struct counted c = {.lines_first = true};

		assert_int_equal(
			symbolizer_find_all(s, image, vaddrs, array_size(vaddrs), count_lines, &c),
			0);
		assert_int_equal(c.n, array_size(vaddrs));
		assert_int_equal(c.n_lines, profiles[i].n_lines);
		assert_true(c.lines_first);
		assert_int_equal(count(s, DWARFREADER_OK), profiles[i].requests);
		symbolizer_release(s);
	}
	symbolizer_free(s);
	image_unref(image);
}

/* ---------------------------------------------------------------- the deadline */

/* Until the process has answered. */
static void await_lines(struct symbolizer *s, struct image *image, uint64_t vaddr)
{
	while (!has_lines(s, image, vaddr))
		symbolizer_release(s);
}

/* Until the killed process has ended. */
static void await_end(struct symbolizer *s)
{
	while (threads_child())
		symbolizer_release(s);
}

/* A process that does not answer is killed at the deadline, and the file is refused for half an
 * hour. Meanwhile the symbol table names the function, and other files have lines. */
static void test_hang(void **state)
{
	struct image *image = fixture_image("inline-gcc4"), *other = fixture_image("inline-gcc5");
	struct image *again = fixture_image("inline-gcc4"), *later = fixture_image("inline-gcc4");
	const uint64_t vaddr = work_vaddr(image);
	struct symbolizer *s = new_symbolizer(PATIENCE);

	(void)state;
	await_lines(s, image, vaddr);
	assert_true(threads_child() > 0);
	assert_int_equal(kill(threads_child(), SIGSTOP), 0);
	assert_true(has_lines(s, image, vaddr)); /* known */
	symbolizer_release(s);
	assert_false(has_lines(s, again, vaddr));
	offset_ns += DEADLINE - 60 * NSEC_PER_SEC;
	symbolizer_release(s);
	assert_false(has_lines(s, again, vaddr));
	assert_int_equal(count(s, DWARFREADER_TIMEOUT), 0);
	offset_ns += 60 * NSEC_PER_SEC;
	symbolizer_release(s);
	assert_int_equal(count(s, DWARFREADER_TIMEOUT), 1);
	await_end(s);
	assert_false(has_lines(s, again, vaddr));
	await_lines(s, other, work_vaddr(other));
	assert_true(threads_child() > 0);
	assert_false(has_lines(s, again, vaddr + 1)); /* refused for a while */
	offset_ns += 30 * 60 * NSEC_PER_SEC;
	await_lines(s, later, vaddr);
	assert_int_equal(count(s, DWARFREADER_TIMEOUT), 1);
	symbolizer_free(s);
	image_unref(image);
	image_unref(other);
	image_unref(again);
	image_unref(later);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_left_out),
		cmocka_unit_test(test_hang),
	};

	if (argc > 1 && strcmp(argv[1], DWARFCHILD_COMMAND) == 0) {
		look_ns = NSEC_PER_SEC;
		return dwarfchild_main(argc - 1, argv + 1);
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
