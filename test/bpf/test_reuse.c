// SPDX-License-Identifier: Apache-2.0
/*
 * Programs that make, run and drop functions all the time, so that later ones take the addresses of
 * earlier ones: no sample has the name of another function than the one that ran. The program gives
 * its process the number of this function as a name, and each sample has that name. Functions whose
 * names podprof read too late have none.
 *
 * Arguments for a longer run: the samples that each program must have, and a test's name.
 */
#include "support/test.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/loop.h"
#include "base/nsec.h"
#include "cpu/report.h"
#include "procmap/address_space.h"
#include "runtimes/runtimes.h"
#include "support/javas.h"
#include "support/nodes.h"
#include "support/pythons.h"
#include "support/sampling.h"
#include "support/until.h"

#define RATE   997
/* Functions with the name that they should have, and samples with numbers. */
#define WANT   100
#define ENOUGH 1000

/* Samples instead of WANT. */
static uint64_t n_asked;

struct bench {
	struct sampling on;
	struct goprocess process;
	uint64_t n;	/* samples during a function with a number */
	uint64_t right; /* ... functions in these with the number */
	uint64_t wrong; /* ... with another one */
	uint64_t gone;	/* ... without a name */
	char why[64];	/* the last reason of these */
};

static void look_at(struct bench *b, const struct image *image, const char *number, uint64_t count)
{
	const char *name = image->kind == IMAGE_RUNTIME ? image->function.name : NULL;
	const char *at;

	if (image->kind == IMAGE_BROKEN) {
		if (strcmp(image->function.name, b->why) != 0) {
			snprintf(b->why, sizeof(b->why), "%s", image->function.name);
			print_message("%s in %s\n", b->why, number);
		}
		b->gone += count;
	}
	if (!name)
		return;
	at = strstr(name, "outer");
	if (!at)
		at = strstr(name, "inner");
	if (!at || strspn(at + strlen("outer"), "0123456789") != strlen(number))
		return;
	if (strncmp(at + strlen("outer"), number, strlen(number)) == 0) {
		b->right += count;
		return;
	}
	if (!b->wrong)
		print_message("%s in %s\n", name, number);
	b->wrong += count;
}

static void take(void *ctx, const struct sample *sample)
{
	struct cpu_stack stack = {.n = 0};
	struct bench *b = ctx;

	if (sample->pid.pid != b->process.id.pid || !sample->n_user)
		return;
	assert_int_equal(cpu_sampler_resolve(b->on.sampler, sample, &stack), 0);
	if (sample->n_runtime && sample->comm[0] == 'g') {
		b->n += sample->count;
		for (size_t i = 0; i < stack.n; i++) {
			const struct image *image = stack.frames[i].image;

			look_at(b, image, sample->comm + 1, sample->count);
			for (size_t k = 0; k + 1 < image->n_places; k++)
				look_at(b, image->places[k].image, sample->comm + 1, sample->count);
		}
	}
	cpu_stack_deinit(&stack);
}

static bool enough(void *ctx)
{
	const struct bench *b = ctx;

	if (n_asked)
		return b->right + b->wrong >= n_asked && b->n >= n_asked;
	return (b->right >= WANT && b->n >= WANT) || b->n >= ENOUGH;
}

static void run(struct bench *b, uint32_t runtime, const char *path)
{
	assert_int_equal(sampling_open(&b->on), 0);
	sampling_start(&b->on, (struct cpu_sampler_opts){
				       .rate_hz = RATE,
				       .scope = SETTINGS_SCOPE_PROCESSES,
				       .interval_ns = 50 * NSEC_PER_MSEC,
				       .fn = take,
				       .ctx = b,
			       });
	sampling_load(&b->on, runtime);
	sampling_want(&b->on, (pid_t)b->process.id.pid);
	loop_until(b->on.loop, enough, b);
	goprocess_stop(&b->process);
	sampling_close(&b->on);
	print_message("%s: %" PRIu64 " samples; functions: %" PRIu64 " right, %" PRIu64
		      " wrong, %" PRIu64 " without a name\n",
		      path, b->n, b->right, b->wrong, b->gone);
	assert_int_equal(b->wrong, 0);
	assert_true(b->right >= WANT / 4);
}

static void test_python(void **state)
{
	struct pythons pythons;

	(void)state;
	pythons_find(&pythons);
	for (size_t i = 0; i < pythons.n; i++) {
		const char *args[] = {"test/data/python/reuse.py", NULL};
		struct bench b = {.n = 0};

		goprocess_start(&b.process, pythons.paths[i], args, NULL);
		run(&b, FRAME_RUNTIME_PYTHON, pythons.paths[i]);
	}
	pythons_deinit(&pythons);
}

static void run_java(const char *const *options)
{
	struct javas javas;

	javas_find(&javas);
	for (size_t i = 0; i < javas.n; i++) {
		struct bench b = {.n = 0};

		javas_run(&javas, javas.paths[i], options, "Reuse", NULL, &b.process);
		run(&b, FRAME_RUNTIME_HOTSPOT, javas.paths[i]);
	}
	javas_deinit(&javas);
}

static void test_java(void **state)
{
	static const char *const options[] = {
		"-Xcomp",
		"-Xmx32m",
		"-XX:+UseSerialGC",
		"-XX:CompileCommand=quiet",
		"-XX:CompileCommand=compileonly,Reuse*.*",
		NULL,
	};

	(void)state;
	run_java(options);
}

static void test_java_interpreted(void **state)
{
	static const char *const options[] = {"-Xint", "-Xmx32m", "-XX:+UseSerialGC", NULL};

	(void)state;
	run_java(options);
}

static void test_v8(void **state)
{
	static const char *const options[] = {"--expose-gc", NULL};
	struct nodes nodes;

	(void)state;
	nodes_find(&nodes);
	for (size_t i = 0; i < nodes.n; i++) {
		struct bench b = {.n = 0};

		nodes_run(nodes.paths[i], options, "test/data/v8/reuse.js", NULL, &b.process);
		run(&b, FRAME_RUNTIME_V8, nodes.paths[i]);
	}
	nodes_deinit(&nodes);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_python),
		cmocka_unit_test(test_java),
		cmocka_unit_test(test_java_interpreted),
		cmocka_unit_test(test_v8),
	};

	n_asked = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
	if (argc > 2)
		cmocka_set_test_filter(argv[2]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
