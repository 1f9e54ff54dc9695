// SPDX-License-Identifier: Apache-2.0
/*
 * Frames of real Node programs: interpreted code, code of each compiler and of all of them. The
 * functions of test/data/v8/recursion.js are in each sample, in order, from forever() on.
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

/* Inlined functions have no frames of their own. */
#define NO_INLINING "--no-turbo-inlining"

struct mode {
	const char *name;
	const char *options[4];
	const char *arg;
	bool sleeps;
	bool optimises;
	bool inlines; /* functions may be missing */
};

static const struct mode modes[] = {
	{.name = "interpreted", {"--jitless"}, "burn"},
	{.name = "interpreted calls", {"--no-opt", "--no-sparkplug"}, "calls,plain"},
	{.name = "baseline", {"--always-sparkplug", "--no-opt"}, "burn,plain"},
	{.name = "baseline calls", {"--always-sparkplug", "--no-opt"}, "calls,plain"},
	{.name = "optimised", {NO_INLINING}, "burn,plain", .optimises = true},
	{.name = "optimised calls", {NO_INLINING}, "calls,plain", .optimises = true},
	{.name = "defaults", {NULL}, "calls", .inlines = true},
};

static const struct mode sleeping[] = {
	{.name = "interpreted", {"--jitless"}, "sleep", .sleeps = true},
	{.name = "defaults", {NULL}, "sleep", .sleeps = true, .inlines = true},
};

struct bench {
	struct sampling on;
	struct goprocess process;
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
	uint64_t n_leaf;  /* with leaf() */
	uint64_t n_other; /* with frames of JavaScript, but not the program's: of other threads */
	bool ended;	  /* no more names can be read */
};

/* From forever() inwards. */
static const char *const wants[] = {
	"forever", "outer", "deep",    "deep",	"deep", "deep", "deep",
	"deep",	   "each",  "forEach", "visit", "run",	"leaf", "",
};
#define LEAF 12

static bool is_of_script(const struct frame *frame)
{
	return frame->image->kind == IMAGE_RUNTIME &&
	       (strstr(frame->image->function.file, "recursion.js") ||
		strcmp(frame->image->function.name, "forEach") == 0);
}

/* The compiler for optimised code has a builtin's loop in place of the builtin. */
static bool may_miss(const struct bench *b, const char *name)
{
	return b->mode->inlines || (b->mode->optimises && strcmp(name, "forEach") == 0);
}

/* Whether the functions are as in wants[], up to any of these. */
static bool is_right(struct bench *b, const struct cpu_stack *stack, uint64_t count)
{
	size_t k = 0;

	for (size_t i = stack->n; i-- > 0;) {
		const char *name = stack->frames[i].image->function.name;

		if (!is_of_script(&stack->frames[i]) || (!k && strcmp(name, wants[0]) != 0))
			continue;
		while (*wants[k] && strcmp(name, wants[k]) != 0 && may_miss(b, wants[k]))
			k++;
		if (*wants[k] ? strcmp(name, wants[k]) != 0 : strcmp(name, "tiny") != 0)
			return false;
		if (k == LEAF)
			b->n_leaf += count;
		k += *wants[k] != 0;
	}
	return k > 0;
}

static void show(const struct cpu_stack *stack)
{
	for (size_t i = 0; i < stack->n; i++) {
		const struct image *image = stack->frames[i].image;

		print_message(" %s;", image->function.name ? image->function.name : image->path);
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

static void run(struct bench *b, const char *path)
{
	const bool sleeps = b->mode->sleeps;

	nodes_run(path, b->mode->options, "test/data/v8/recursion.js", b->mode->arg, &b->process);
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
	print_message("%s, %s: %" PRIu64 " samples, %" PRIu64 " with leaf(), %" PRIu64
		      " odd, %" PRIu64 " marked, %" PRIu64 " whole; %" PRIu64
		      " before the tables, %" PRIu64 " and %" PRIu64 " without JavaScript\n",
		      path, b->mode->name, b->n, b->n_leaf, b->odd, b->n_marked, b->whole, b->early,
		      b->n_native, b->late);
	sampling_close(&b->on);
}

static void check(const struct bench *b)
{
	/* threads of the virtual machine are sampled too; only when they wait, often */
	assert_true(b->mode->sleeps || b->n_other * 20 <= b->n);
	assert_true(b->n_marked * 100 <= b->n);
	assert_true(b->whole * 100 >= b->n * 99);
	assert_int_equal(b->odd, 0);
	if (strncmp(b->mode->arg, "calls", 5) != 0 && !b->mode->inlines)
		assert_true(b->n_leaf * 100 >= b->n * 90);
}

static void check_all(const struct mode *first, size_t n)
{
	struct nodes nodes;

	nodes_find(&nodes);
	for (size_t i = 0; i < nodes.n; i++)
		for (size_t k = 0; k < n; k++) {
			struct bench b = {.mode = &first[k]};

			run(&b, nodes.paths[i]);
			check(&b);
		}
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
