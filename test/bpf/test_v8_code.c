// SPDX-License-Identifier: Apache-2.0
/*
 * Code of real Node programs that is no function of JavaScript: regular expressions and
 * WebAssembly. The frames have a name by their type, or, with a perf map, the name in the map.
 */
#include "support/test.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/loop.h"
#include "base/nsec.h"
#include "cpu/report.h"
#include "runtimes/runtimes.h"
#include "shared/sample.h"
#include "support/nodes.h"
#include "support/sampling.h"
#include "support/until.h"

#define RATE 997
#define WANT 300

/* Which code a place is. */
enum place {
	PLACE_FUNCTION,
	PLACE_REGEXP,
	PLACE_WASM,
	PLACE_ANON, /* made at run time, and native */
	PLACE_OTHER,
	PLACE_MAX,
};

struct bench {
	struct sampling on;
	struct goprocess process;
	uint64_t n;		       /* samples of the main thread */
	uint64_t innermost[PLACE_MAX]; /* of these, by the innermost user frame */
	uint64_t n_through;	       /* with add(), which WebAssembly calls */
	uint64_t odd;
	bool has_map;
	bool ended; /* no more names can be read */
};

static enum place place_of(const struct image *image)
{
	if (image->kind == IMAGE_ANON)
		return PLACE_ANON;
	if (image->kind != IMAGE_RUNTIME)
		return PLACE_OTHER;
	if (strcmp(image->function.name, "(regular expression)") == 0)
		return PLACE_REGEXP;
	return strncmp(image->function.name, "(WebAssembly", 12) == 0 ||
			       strstr(image->function.name, "to WebAssembly)")
		       ? PLACE_WASM
		       : PLACE_FUNCTION;
}

/* The outermost function from @i inwards with the name, in place or inlined; SIZE_MAX: none. */
static size_t find(const struct cpu_stack *stack, const char *name)
{
	for (size_t i = stack->n; i-- > 0;) {
		const struct image *image = stack->frames[i].image;

		if (image->kind != IMAGE_RUNTIME)
			continue;
		if (strcmp(image->function.name, name) == 0)
			return i;
		for (size_t k = 0; k < image->n_places; k++)
			if (strcmp(image->places[k].image->function.name, name) == 0)
				return i;
	}
	return SIZE_MAX;
}

/* Regular expressions are called by match(), WebAssembly by wasm(), and add() by WebAssembly. */
static bool is_right(const struct cpu_stack *stack)
{
	const size_t match = find(stack, "match"), wasm = find(stack, "wasm");
	const size_t add = find(stack, "add");
	bool called = false;

	for (size_t i = 0; i < stack->n; i++) {
		const enum place place = place_of(stack->frames[i].image);

		if (place == PLACE_REGEXP && (match == SIZE_MAX || match < i))
			return false;
		if (place == PLACE_WASM && (wasm == SIZE_MAX || wasm < i))
			return false;
		called |= place == PLACE_WASM && add != SIZE_MAX && i > add;
	}
	return add == SIZE_MAX || called;
}

static void look(struct bench *b, const struct sample *sample, const struct cpu_stack *stack)
{
	b->n += sample->count;
	b->innermost[place_of(stack->frames[sample->n_kernel].image)] += sample->count;
	b->n_through += find(stack, "add") != SIZE_MAX ? sample->count : 0;
	if (b->has_map || is_right(stack))
		return;
	b->odd += sample->count;
	for (size_t i = 0; i < stack->n; i++)
		print_message(" %s;", stack->frames[i].image->function.name
					      ? stack->frames[i].image->function.name
					      : stack->frames[i].image->path);
	print_message("\n");
}

static void take(void *ctx, const struct sample *sample)
{
	struct cpu_stack stack = {.n = 0};
	struct bench *b = ctx;

	if (b->ended || sample->pid.pid != b->process.id.pid || !sample->n_user)
		return;
	assert_int_equal(cpu_sampler_resolve(b->on.sampler, sample, &stack), 0);
	if (find(&stack, "forever") != SIZE_MAX && stack.n > sample->n_kernel)
		look(b, sample, &stack);
	cpu_stack_deinit(&stack);
}

static bool enough(void *ctx)
{
	const struct bench *b = ctx;

	return b->n >= WANT;
}

static void run(struct bench *b, const char *path)
{
	/* with a map comes a log: in a file without a name */
	static const char *const map[] = {"--perf-basic-prof", "--no-logfile-per-isolate",
					  "--logfile=+", NULL};
	static const char *const none[] = {NULL};
	char name[64];

	nodes_run(path, b->has_map ? map : none, "test/data/v8/code.js", NULL, &b->process);
	assert_int_equal(sampling_open(&b->on), 0);
	sampling_start(&b->on, (struct cpu_sampler_opts){
				       .rate_hz = RATE,
				       .scope = SETTINGS_SCOPE_PROCESSES,
				       .interval_ns = 100 * NSEC_PER_MSEC,
				       .fn = take,
				       .ctx = b,
			       });
	sampling_load(&b->on, FRAME_RUNTIME_V8);
	sampling_want(&b->on, (pid_t)b->process.id.pid);
	loop_until(b->on.loop, enough, b);
	b->ended = true;
	snprintf(name, sizeof(name), "/tmp/perf-%" PRIu64 ".map", (uint64_t)b->process.id.pid);
	goprocess_stop(&b->process);
	unlink(name);
	cpu_sampler_finish(b->on.sampler);
	sampling_close(&b->on);
	print_message("%s: %" PRIu64 " samples, %" PRIu64 " in regular expressions, %" PRIu64
		      " in WebAssembly, %" PRIu64 " [anon], %" PRIu64 " through add(), %" PRIu64
		      " odd\n",
		      path, b->n, b->innermost[PLACE_REGEXP], b->innermost[PLACE_WASM],
		      b->innermost[PLACE_ANON], b->n_through, b->odd);
}

/* Regular expressions have a type from Node 20 (V8 11) on. */
static bool has_regexp(const char *path)
{
	char command[PATH_MAX + 16], line[64] = "";
	FILE *f;
	int major = 0;

	snprintf(command, sizeof(command), "%s --version", path);
	f = popen(command, "r");
	assert_non_null(f);
	assert_non_null(fgets(line, sizeof(line), f));
	assert_int_equal(pclose(f), 0);
	assert_int_equal(sscanf(line, "v%d", &major), 1);
	return major >= 20;
}

static void test_types(void **state)
{
	struct nodes nodes;

	(void)state;
	nodes_find(&nodes);
	for (size_t i = 0; i < nodes.n; i++) {
		const bool regexp = has_regexp(nodes.paths[i]);
		struct bench b = {.n = 0};

		run(&b, nodes.paths[i]);
		assert_int_equal(b.odd, 0);
		assert_true(b.innermost[PLACE_WASM] * 10 >= b.n);
		assert_true(b.n_through > 0);
		if (regexp) {
			assert_true(b.innermost[PLACE_REGEXP] * 10 >= b.n);
			assert_true(b.innermost[PLACE_ANON] * 50 <= b.n);
		}
	}
	nodes_deinit(&nodes);
}

/* The map has the expression itself, and the number of the function. */
static void test_perf_map(void **state)
{
	struct nodes nodes;

	(void)state;
	nodes_find(&nodes);
	for (size_t i = 0; i < nodes.n; i++) {
		struct bench b = {.has_map = true};

		run(&b, nodes.paths[i]);
		assert_int_equal(b.innermost[PLACE_WASM] + b.innermost[PLACE_REGEXP], 0);
		assert_true(b.innermost[PLACE_ANON] * 2 >= b.n);
	}
	nodes_deinit(&nodes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_types),
		cmocka_unit_test(test_perf_map),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
