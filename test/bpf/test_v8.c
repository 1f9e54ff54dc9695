// SPDX-License-Identifier: Apache-2.0
/*
 * Frames of real programs of Node and Deno: interpreted code, code of each compiler and of all of
 * them, with inlined functions. The functions of test/data/v8/recursion.cjs are in each sample, in
 * order, from forever() on, each with the line of the call.
 */
#include "support/test.h"

#include <inttypes.h>
#include <string.h>

#include "base/loop.h"
#include "base/nsec.h"
#include "cpu/report.h"
#include "procmap/address_space.h"
#include "runtimes/runtimes.h"
#include "shared/sample.h"
#include "support/metrics.h"
#include "support/nodes.h"
#include "support/sampling.h"
#include "support/until.h"

#define RATE 997
#define WANT 250

/* As in test_hotspot: at one cut stack of 1,000, by chance, an attempt fails with a probability of
 * 0.2 %, and three in a row with 1e-8. */
#define ATTEMPTS 3

#define NO_INLINING "--no-turbo-inlining"

struct mode {
	const char *name;
	const char *options[4];
	const char *arg;
	bool sleeps;
	bool optimises;
	bool inlines; /* some functions, in most samples */
};

static const struct mode modes[] = {
	{.name = "interpreted", {"--jitless"}, "burn"},
	{.name = "interpreted calls", {"--no-opt", "--no-sparkplug"}, "calls,plain"},
	{.name = "copied interpreter",
	 {"--interpreted-frames-native-stack", "--no-opt", "--no-sparkplug"},
	 "burn,plain"},
	{.name = "baseline", {"--always-sparkplug", "--no-opt"}, "burn,plain"},
	{.name = "baseline calls", {"--always-sparkplug", "--no-opt"}, "calls,plain"},
	{.name = "optimised", {NO_INLINING}, "burn,plain", .optimises = true},
	{.name = "optimised calls", {NO_INLINING}, "calls,plain", .optimises = true},
	{.name = "inlined", {NULL}, "burn,plain", .optimises = true, .inlines = true},
	{.name = "inlined calls", {NULL}, "calls,plain", .optimises = true, .inlines = true},
	/* in releases with one; baseline code in the others */
	{.name = "fast compiler", {NULL}, "calls,maglev", .optimises = true},
	{.name = "defaults", {NULL}, "calls", .optimises = true, .inlines = true},
};

static const struct mode sleeping[] = {
	{.name = "interpreted", {"--jitless"}, "sleep", .sleeps = true},
	{.name = "defaults", {NULL}, "sleep", .sleeps = true, .optimises = true},
};

struct bench {
	struct sampling on;
	struct goprocess process;
	const char *path;
	const struct mode *mode;
	uint64_t n;	   /* samples of the main thread with frames of JavaScript */
	uint64_t n_native; /* samples without, before the process was known */
	uint64_t late;	   /* ... and after */
	uint64_t n_dumped;
	uint64_t odd;
	uint64_t n_marked; /* frames are missing, and a mark says so */
	uint64_t whole;
	uint64_t
		early; /* with frames of JavaScript, cut before an image's unwind table was there */
	uint64_t n_leaf;    /* with leaf() */
	uint64_t n_inlined; /* with inlined functions */
	uint64_t n_lines;   /* callers with the right line */
	uint64_t n_unlined; /* ... without a line */
	uint64_t n_moved;   /* with an instruction of an inlined function that is not called */
	uint64_t n_other;   /* with frames of JavaScript, but not the program's: of other threads */
	bool ended;	    /* no more names can be read */
};

/* From forever() inwards, with the line that calls the next one; 0: a builtin. The fast compiler of
 * V8 13 and later notes the beginning of the loop for an inlined call. */
static const struct want {
	const char *name;
	uint32_t line, other_line;
} wants[] = {
	{"forever", 60, 59}, {"pass", 52, 0},  {"outer", 48, 0}, {"deep", 44, 0},  {"deep", 44, 0},
	{"deep", 44, 0},     {"deep", 44, 0},  {"deep", 44, 0},	 {"deep", 43, 0},  {"each", 35, 0},
	{"forEach", 0, 0},   {"visit", 36, 0}, {"run", 26, 30},	 {"leaf", 18, 21}, {"tiny", 0, 0},
};
#define FOR_EACH 10
#define LEAF	 13

struct called {
	const char *name;
	uint32_t line;
	bool is_guess; /* inlined in the innermost frame */
};

/* No further frame of JavaScript is inside of the @i'th. */
static bool is_innermost(const struct cpu_stack *stack, size_t i)
{
	while (i-- > 0)
		if (stack->frames[i].image->kind == IMAGE_RUNTIME)
			return false;
	return true;
}

static bool is_of_script(const struct image *image)
{
	return image->kind == IMAGE_RUNTIME && (strstr(image->function.file, "recursion.cjs") ||
						strcmp(image->function.name, "forEach") == 0);
}

/* The functions of the script, from forever() inwards, with the inlined ones. */
static size_t list_called(const struct cpu_stack *stack, struct called *ret)
{
	size_t n = 0;

	for (size_t i = stack->n; i-- > 0;) {
		const struct frame *frame = &stack->frames[i];
		const struct frame *places = frame->image->n_places ? frame->image->places : frame;
		const size_t n_places = frame->image->n_places ? frame->image->n_places : 1;
		const bool innermost = is_innermost(stack, i);
		size_t k = n_places;

		while (k-- > 0) {
			const struct image *image = places[k].image;

			if (!is_of_script(image) ||
			    (!n && strcmp(image->function.name, wants[0].name) != 0))
				continue;
			assert_true(n < CPU_STACK_FRAMES_MAX);
			ret[n++] = (struct called){image->function.name, (uint32_t)places[k].vaddr,
						   innermost && k < n_places - 1};
		}
	}
	return n;
}

/* The line of a caller. */
static bool is_line_right(struct bench *b, const struct called *called, const struct want *want,
			  uint64_t count)
{
	if (!want->line)
		return true;
	*(called->line ? &b->n_lines : &b->n_unlined) += count;
	return !called->line || called->line == want->line || called->line == want->other_line;
}

/* Whether the functions are as in wants[], up to any of these. */
static bool is_right(struct bench *b, const struct cpu_stack *stack, uint64_t count)
{
	struct called called[CPU_STACK_FRAMES_MAX];
	const size_t n = list_called(stack, called);
	size_t k = 0;

	for (size_t i = 0; i < n; i++, k++) {
		/* the compiler for optimised code has a builtin's loop in place of the builtin */
		if (k == FOR_EACH && b->mode->optimises && strcmp(called[i].name, "visit") == 0)
			k++;
		if (k == array_size(wants) || strcmp(called[i].name, wants[k].name) != 0) {
			/* the compiler executes instructions before it is known that they are due
			 */
			b->n_moved += called[i].is_guess ? count : 0;
			return called[i].is_guess;
		}
		if (i < n - 1 && !called[i + 1].is_guess &&
		    !is_line_right(b, &called[i], &wants[k], count))
			return false;
		if (k == LEAF)
			b->n_leaf += count;
	}
	return n > 0;
}

static bool is_inlined(const struct cpu_stack *stack)
{
	for (size_t i = 0; i < stack->n; i++)
		if (stack->frames[i].image->n_places)
			return true;
	return false;
}

static void show(const struct cpu_stack *stack)
{
	for (size_t i = 0; i < stack->n; i++) {
		const struct image *image = stack->frames[i].image;

		for (size_t k = 0; k + 1 < image->n_places; k++)
			print_message(" {%s:%" PRIu64 "}", image->places[k].image->function.name,
				      image->places[k].vaddr);
		print_message(" %s:%" PRIu64 ";",
			      image->function.name ? image->function.name : image->path,
			      stack->frames[i].vaddr);
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

static void look(struct bench *b, const struct sample *sample, const struct cpu_stack *stack)
{
	if (!sample->n_runtime) {
		*(b->n ? &b->late : &b->n_native) += sample->count;
		return;
	}
	if (sample->end == SAMPLE_END_NO_TABLE) {
		b->early += sample->count;
		return;
	}
	b->n += sample->count;
	b->whole += sample->end == SAMPLE_END_COMPLETE ? sample->count : 0;
	b->n_inlined += is_inlined(stack) ? sample->count : 0;
	if (is_right(b, stack, sample->count))
		return;
	if (is_marked(stack)) {
		b->n_marked += sample->count;
		return;
	}
	if (sample->end != SAMPLE_END_COMPLETE) /* not from main() on: b->whole counts */
		return;
	b->odd += sample->count;
	print_message("odd:");
	show(stack);
}

/* Node has other threads, and the start of Node runs other functions. */
static bool is_main(const struct cpu_stack *stack)
{
	for (size_t i = 0; i < stack->n; i++)
		if (stack->frames[i].image->kind == IMAGE_RUNTIME &&
		    strcmp(stack->frames[i].image->function.name, "forever") == 0)
			return true;
	return false;
}

static void take(void *ctx, const struct sample *sample)
{
	struct cpu_stack stack = {.n = 0};
	struct bench *b = ctx;

	if (b->ended || sample->pid.pid != b->process.id.pid || !sample->n_user)
		return;
	assert_int_equal(cpu_sampler_resolve(b->on.sampler, sample, &stack), 0);
	if (is_main(&stack) || !sample->n_runtime)
		look(b, sample, &stack);
	else
		b->n_other += sample->count;
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

	return b->n >= WANT;
}

/* Whether the walker has no record of the process's virtual machine. */
static bool is_forgotten(void *ctx)
{
	struct bench *b = ctx;

	return sampling_forgot(&b->on, FRAME_RUNTIME_V8, (pid_t)b->process.id.pid);
}

static void run(struct bench *b)
{
	const bool sleeps = b->mode->sleeps;

	nodes_run(b->path, b->mode->options, "test/data/v8/recursion.cjs", b->mode->arg,
		  &b->process);
	assert_int_equal(sampling_open(&b->on), 0);
	sampling_start(&b->on, (struct cpu_sampler_opts){
				       .rate_hz = RATE,
				       .scope = SETTINGS_SCOPE_PROCESSES,
				       .interval_ns = 100 * NSEC_PER_MSEC,
				       .off_cpu = sleeps,
				       .off_fn = take,
				       .fn = sleeps ? take_none : take,
				       .ctx = b,
			       });
	sampling_load(&b->on, FRAME_RUNTIME_V8);
	sampling_want(&b->on, (pid_t)b->process.id.pid);
	loop_until(b->on.loop, enough, b);
	assert_false(is_forgotten(b));
	b->ended = true;
	goprocess_stop(&b->process);
	loop_until(b->on.loop, is_forgotten, b);
	cpu_sampler_finish(b->on.sampler);
	b->n_dumped = metrics_get(cpu_sampler_collect, b->on.sampler, "podprof_deferred_stacks",
				  "unwound");
	print_message(
		"%s, %s: %" PRIu64 " samples, %" PRIu64 " with leaf(), %" PRIu64 " odd, %" PRIu64
		" marked, %" PRIu64 " whole, %" PRIu64 " with inlined functions, %" PRIu64
		" moved; %" PRIu64 " lines, %" PRIu64 " unknown; %" PRIu64
		" before the tables, %" PRIu64 " and %" PRIu64 " without JavaScript\n",
		b->path, b->mode->name, b->n, b->n_leaf, b->odd, b->n_marked, b->whole,
		b->n_inlined, b->n_moved, b->n_lines, b->n_unlined, b->early, b->n_native, b->late);
	sampling_close(&b->on);
}

/* Deno has V8 record no positions of inlined calls: functions that are inlined at an interrupted
 * instruction are not known, and those at calls are. */
static bool are_interrupted_known(const struct bench *b)
{
	const char *option = b->mode->options[0];

	return !nodes_is_deno(b->path) || !b->mode->optimises ||
	       (option && strcmp(option, NO_INLINING) == 0);
}

static void check(const struct bench *b)
{
	/* threads of the virtual machine are sampled too; only when they wait, often */
	assert_true(b->mode->sleeps || b->n_other * 20 <= b->n);
	assert_true(b->n_marked * 100 <= b->n);
	assert_int_equal(b->odd, 0);
	if (strncmp(b->mode->arg, "calls", 5) != 0 && are_interrupted_known(b))
		assert_true(b->n_leaf * 100 >= b->n * 90);
	assert_true(!b->mode->inlines || b->n_inlined * 2 >= b->n);
	assert_true(b->n_moved * 8 <= b->n);
}

static bool is_whole(const struct bench *b)
{
	return b->whole * 100 >= b->n * 99;
}

/* A function that is wrong fails each attempt. */
static void attempt(const char *path, const struct mode *mode)
{
	struct bench b;
	int attempts = 0;

	do {
		b = (struct bench){.path = path, .mode = mode};
		run(&b);
		check(&b);
	} while (!is_whole(&b) && ++attempts < ATTEMPTS);
	assert_true(is_whole(&b));
}

static void check_all(const struct mode *first, size_t n)
{
	struct nodes nodes;

	nodes_find(&nodes);
	nodes_add_deno(&nodes);
	for (size_t i = 0; i < nodes.n; i++)
		for (size_t k = 0; k < n; k++)
			attempt(nodes.paths[i], &first[k]);
	nodes_deinit(&nodes);
}

static void test_on_cpu(void **state)
{
	(void)state;
	check_all(modes, array_size(modes));
}

static void test_off_cpu(void **state)
{
	(void)state;
	check_all(sleeping, array_size(sleeping));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_on_cpu),
		cmocka_unit_test(test_off_cpu),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
