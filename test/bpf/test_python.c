// SPDX-License-Identifier: Apache-2.0
/*
 * Frames of real CPython interpreters: Debian's and all of pyenv's. The functions of
 * test/data/python/recursion.py and their lines are in each sample, in order, with C functions
 * where Python was called by C and nowhere else.
 */
#include "support/test.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/loop.h"
#include "base/nsec.h"
#include "base/root.h"
#include "cpu/report.h"
#include "procmap/address_space.h"
#include "runtimes/runtimes.h"
#include "shared/sample.h"
#include "support/metrics.h"
#include "support/pythons.h"
#include "support/sampling.h"
#include "support/until.h"

#define RATE   997
#define WANT   300
#define SCRIPT "test/data/python/recursion.py"

struct bench {
	struct sampling on;
	struct goprocess process;
	char *answer;
	const char *source; /* of the script */
	bool sleeps;
	bool exact;	   /* 3.11 and later */
	uint64_t n;	   /* samples with frames of Python */
	uint64_t n_known;  /* ... after the process was known */
	uint64_t n_native; /* samples without, before the process was known */
	uint64_t late;	   /* ... and after: stack dumps, walked natively */
	uint64_t first;	   /* the drain with the first frames of Python ... */
	uint64_t n_before; /* ... and the stack dumps walked before these */
	uint64_t n_dumped;
	uint64_t odd;
	uint64_t n_marked; /* frames are missing, and a mark says so */
	uint64_t whole;
	uint64_t early; /* with frames of Python, cut before an image's unwind table was there */
};

/* From leaf() outwards. by_c: the caller is a C function. */
struct want {
	const char *name;
	const char *called; /* the comment in the line of the call */
	bool by_c;
};

static const struct want wants[] = {
	{"leaf", NULL, false},
	{"key", "# in key", false},
	{"<lambda>", "# in sorter", true},
	{"sorter", "# in sorter", false},
	{"deep", "# in deep", false},
	{"<lambda>", "# in sorter", true},
	{"sorter", "# in sorter", false},
	{"deep", "# in deep", false},
	{"main", "# in main", false},
	{"<module>", "# in <module>", true},
};

static bool is_function(const struct cpu_stack *stack, size_t i, const char *name)
{
	const struct image *image = stack->frames[i].image;
	const char *dot;

	if (image->kind != IMAGE_RUNTIME)
		return false;
	dot = strrchr(image->function.name, '.'); /* of the qualified name */
	return strcmp(dot ? dot + 1 : image->function.name, name) == 0;
}

/* Whether the stack from frame @at on is as in wants[]. */
static bool is_right(const struct bench *b, const struct cpu_stack *stack, size_t at)
{
	for (size_t i = 0; i < array_size(wants); i++) {
		size_t n_between = 0;

		if (at >= stack->n || !is_function(stack, at, wants[i].name))
			return false;
		if (!strstr(stack->frames[at].image->function.file, "recursion.py"))
			return false;
		if (wants[i].called &&
		    stack->frames[at].vaddr != pythons_line_of(b->source, wants[i].called))
			return false;
		for (at++; at < stack->n && stack->frames[at].image->kind != IMAGE_RUNTIME; at++)
			n_between++;
		if (wants[i].by_c != (n_between > 0) && (b->exact || wants[i].by_c))
			return false;
	}
	return at == stack->n;
}

static void show(const struct cpu_stack *stack)
{
	for (size_t i = 0; i < stack->n; i++) {
		const struct image *image = stack->frames[i].image;

		print_message(" %s", image->function.name ? image->function.name : "-");
		if (image->kind == IMAGE_RUNTIME)
			print_message(":%" PRIu64, stack->frames[i].vaddr);
	}
	print_message("\n");
}

static bool is_marked(const struct cpu_stack *stack)
{
	for (size_t i = 0; i < stack->n; i++)
		if (stack->frames[i].image->kind == IMAGE_BROKEN)
			return true;
	return false;
}

static uint64_t n_dumped(struct bench *b)
{
	return metrics_get(cpu_sampler_collect, b->on.sampler, "podprof_deferred_stacks",
			   "unwound");
}

/* The samples of a drain come in no order: with the first frames of Python come samples from before
 * the process was known. A drain can end between two slices of another one. */
static bool is_known(const struct bench *b)
{
	return b->n && cpu_sampler_drains(b->on.sampler) > b->first + 1;
}

static void look(struct bench *b, const struct sample *sample, const struct cpu_stack *stack)
{
	size_t leaf = 0;

	if (!sample->n_runtime) {
		*(is_known(b) ? &b->late : &b->n_native) += sample->count;
		return;
	}
	if (sample->end == SAMPLE_END_NO_TABLE) {
		b->early += sample->count;
		return;
	}
	while (leaf < stack->n && !is_function(stack, leaf, "leaf"))
		leaf++;
	if (!b->n) {
		b->first = cpu_sampler_drains(b->on.sampler);
		b->n_before = n_dumped(b);
	}
	b->n += sample->count;
	b->n_known += is_known(b) ? sample->count : 0;
	b->whole += sample->end == SAMPLE_END_COMPLETE ? sample->count : 0;
	/* further in there is tiny() at most */
	if (leaf < stack->n && is_right(b, stack, leaf))
		return;
	if (is_marked(stack)) {
		b->n_marked += sample->count;
		return;
	}
	b->odd += sample->count;
	print_message("odd, %s:", sample_stat_name(sample->end));
	show(stack);
}

static void take(void *ctx, const struct sample *sample)
{
	struct cpu_stack stack = {.n = 0};
	struct bench *b = ctx;

	if (sample->pid.pid != b->process.id.pid || !sample->n_user)
		return;
	assert_int_equal(cpu_sampler_resolve(b->on.sampler, sample, &stack), 0);
	look(b, sample, &stack);
	cpu_stack_deinit(&stack);
}

static void take_none(void *ctx, const struct sample *sample)
{
	(void)ctx;
	(void)sample;
}

static bool enough(void *ctx)
{
	const struct bench *b = ctx;

	return b->n_known >= WANT;
}

/* Whether the walker has no record of the process's interpreter. */
static bool is_forgotten(void *ctx)
{
	struct bench *b = ctx;

	return sampling_forgot(&b->on, FRAME_RUNTIME_PYTHON, (pid_t)b->process.id.pid);
}

static void run(struct bench *b, const char *path)
{
	char walked[40];

	pythons_run_with(path, "recursion.py", b->sleeps ? "sleep" : "burn", &b->process,
			 &b->answer);
	assert_int_equal(sampling_open(&b->on), 0);
	sampling_start(&b->on, (struct cpu_sampler_opts){
				       .rate_hz = RATE,
				       .scope = SETTINGS_SCOPE_PROCESSES,
				       .interval_ns = 100 * NSEC_PER_MSEC,
				       .off_cpu = b->sleeps,
				       .off_fn = take,
				       .fn = b->sleeps ? take_none : take,
				       .ctx = b,
			       });
	sampling_load(&b->on, FRAME_RUNTIME_PYTHON);
	sampling_want(&b->on, (pid_t)b->process.id.pid);
	loop_until(b->on.loop, enough, b);
	assert_false(is_forgotten(b));
	snprintf(walked, sizeof(walked), "python,3.%u,walked", pythons_minor(path));
	assert_int_equal(metrics_get(cpu_sampler_collect, b->on.sampler,
				     "podprof_runtime_processes", walked),
			 1);
	goprocess_stop(&b->process);
	loop_until(b->on.loop, is_forgotten, b);
	cpu_sampler_finish(b->on.sampler);
	b->n_dumped = n_dumped(b);
	print_message("%s: %" PRIu64 " samples, %" PRIu64 " odd, %" PRIu64 " marked, %" PRIu64
		      " whole; %" PRIu64 " before the tables, %" PRIu64 " and %" PRIu64
		      " without Python\n",
		      path, b->n, b->odd, b->n_marked, b->whole, b->early, b->n_native, b->late);
	sampling_close(&b->on);
	free(b->answer);
}

/* Without a test on the stack (to 3.10), a loop that is just called, or about to return, takes the
 * frames of its caller. In 3.11 and 3.12 the thread's state points to a new cframe for some
 * instructions before the cframe points to the one before: the list cannot be found, which is
 * marked.
 *
 * A stack is cut where a sample finds a place without a row: seldom, but twice in one interpreter's
 * samples now and then. So each interpreter has room for chance, and check_all() has none. */
static void check(const struct bench *b)
{
	assert_true(b->late <= b->n_dumped - b->n_before + b->n_known / 50);
	assert_true(b->n_marked * 100 <= b->n * 3);
	assert_true(b->whole * 100 >= b->n * 95);
	assert_true(b->exact ? b->odd == 0 : b->odd * 100 <= b->n * 10);
}

static void check_all(bool sleeps)
{
	struct buf source = BUF_INIT(1 << 16);
	uint64_t n = 0, whole = 0;
	struct pythons pythons;
	struct root here;

	assert_int_equal(root_open(".", &here), 0);
	assert_int_equal(root_read(&here, SCRIPT, &source), 0);
	pythons_find(&pythons);
	for (size_t i = 0; i < pythons.n; i++) {
		struct bench b = {.sleeps = sleeps,
				  .source = source.data,
				  .exact = pythons_minor(pythons.paths[i]) >= 11};

		run(&b, pythons.paths[i]);
		check(&b);
		n += b.n;
		whole += b.whole;
	}
	assert_true(whole * 100 >= n * 99);
	pythons_deinit(&pythons);
	buf_deinit(&source);
	root_deinit(&here);
}

static void test_on_cpu(void **state)
{
	(void)state;
	check_all(false);
}

/* time.sleep() gives the interpreter's lock away. */
static void test_off_cpu(void **state)
{
	(void)state;
	check_all(true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_on_cpu),
		cmocka_unit_test(test_off_cpu),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
