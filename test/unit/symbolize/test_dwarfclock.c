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
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
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

/* ---------------------------------------------------------------- processes that do not end */

/* The process of the reader: the newest child. */
static pid_t newest_child(void)
{
	char path[64];
	int pid = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)gettid());
	f = fopen(path, "re");
	assert_non_null(f);
	while (fscanf(f, "%d", &pid) == 1)
		continue;
	fclose(f);
	assert_true(pid > 0);
	return pid;
}

/* A killed process is there until its tracer has seen its end: as one in a read that blocks. The
 * tracer is no child of this process, and ends when the returned descriptor is closed. */
static int trace(pid_t pid)
{
	pid_t between, tracer;
	int says[2], holds[2];
	char byte;

	assert_int_equal(pipe2(says, O_CLOEXEC), 0);
	assert_int_equal(pipe2(holds, O_CLOEXEC), 0);
	between = fork();
	if (between == 0) {
		tracer = fork();
		if (tracer)
			_exit(0);
		tracer = ptrace(PTRACE_SEIZE, pid, 0, 0) ? -1 : getpid();
		(void)!write(says[1], &tracer, sizeof(tracer));
		close(holds[1]);
		(void)!read(holds[0], &byte, 1);
		_exit(0);
	}
	assert_int_equal(waitpid(between, NULL, 0), between);
	assert_int_equal(read(says[0], &tracer, sizeof(tracer)), sizeof(tracer));
	close(says[0]);
	close(says[1]);
	close(holds[0]);
	assert_true(tracer > 0);
	return holds[1];
}

/* The reader's process is asked for @image, and neither answers nor ends before the returned
 * descriptor is closed. */
static int block(struct symbolizer *s, struct image *image)
{
	const uint64_t timeouts = count(s, DWARFREADER_TIMEOUT), vaddr = work_vaddr(image);
	pid_t pid;
	int hold;

	await_lines(s, image, vaddr);
	pid = newest_child();
	hold = trace(pid);
	assert_int_equal(kill(pid, SIGSTOP), 0);
	symbolizer_release(s);
	assert_false(has_lines(s, image, vaddr + 1));
	offset_ns += DEADLINE;
	symbolizer_release(s);
	assert_int_equal(count(s, DWARFREADER_TIMEOUT), timeouts + 1);
	return hold;
}

/* Of another file system than the fixtures. */
static struct image *image_elsewhere(void)
{
	char from[FIXTURE_PATH_MAX], to[] = "/dev/shm/test_dwarfclock.XXXXXX", bytes[65536];
	const int in = open(fixture_path("inline-gcc3", from), O_RDONLY | O_CLOEXEC);
	const int out = mkostemp(to, O_CLOEXEC);
	struct image *image;
	ssize_t n;

	assert_true(in >= 0 && out >= 0);
	while ((n = read(in, bytes, sizeof(bytes))) > 0)
		assert_int_equal(write(out, bytes, (size_t)n), n);
	close(in);
	close(out);
	image = fixture_image_at(to);
	assert_int_equal(unlink(to), 0);
	return image;
}

/* A file system without an answer takes the lines from its own files, and from no others. */
static void test_blocked(void **state)
{
	struct image *images[] = {fixture_image("inline-gcc4"), fixture_image("inline-gcc5"),
				  fixture_image("inline-clang4")};
	struct image *elsewhere = image_elsewhere();
	struct symbolizer *s = new_symbolizer(PATIENCE);
	int holds[DWARFREADER_DYING_DEVICE_MAX];

	(void)state;
	for (size_t i = 0; i < array_size(holds); i++)
		holds[i] = block(s, images[i]);
	assert_false(has_lines(s, images[2], work_vaddr(images[2])));
	await_lines(s, elsewhere, work_vaddr(elsewhere));
	symbolizer_release(s);
	assert_false(has_lines(s, images[2], work_vaddr(images[2])));
	assert_int_equal(count(s, DWARFREADER_NO_PROCESS), 0);
	for (size_t i = 0; i < array_size(holds); i++)
		close(holds[i]);
	await_lines(s, images[2], work_vaddr(images[2]));
	symbolizer_free(s);
	image_unref(elsewhere);
	for (size_t i = 0; i < array_size(images); i++)
		image_unref(images[i]);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_left_out),
		cmocka_unit_test(test_hang),
		cmocka_unit_test(test_blocked),
	};

	if (argc > 1 && strcmp(argv[1], DWARFCHILD_COMMAND) == 0) {
		look_ns = NSEC_PER_SEC;
		return dwarfchild_main(argc - 1, argv + 1);
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
