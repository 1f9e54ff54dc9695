// SPDX-License-Identifier: Apache-2.0
/*
 * Programs with Node or Java that end soon: once podprof has seen a process of the program, the
 * stack dumps of later ones wake the agent, because their names are in memory alone.
 */
#include "support/test.h"

#include <bpf/bpf.h>

#include "base/loop.h"
#include "base/nsec.h"
#include "profile/oncpu.h"
#include "shared/sample.h"
#include "shared/stack_dump.h"
#include "support/javas.h"
#include "support/nodes.h"
#include "support/sampling.h"
#include "support/until.h"

#define RATE 997

struct bench {
	struct sampling on;
	struct goprocess process;
	uint32_t runtime;
};

static void take(void *ctx, const struct sample *sample)
{
	(void)ctx;
	(void)sample;
}

static bool is_walked(void *ctx)
{
	struct bench *b = ctx;

	return !sampling_forgot(&b->on, b->runtime, (pid_t)b->process.id.pid);
}

/* The only program that is sampled. */
static bool wakes(const struct bench *b)
{
	const int map = oncpu_unwind(cpu_sampler_oncpu(b->on.sampler)).runtime_exes[0];
	struct exe_dumps dumps;
	struct exe_key key;

	return !bpf_map_get_next_key(map, NULL, &key) && !bpf_map_lookup_elem(map, &key, &dumps) &&
	       dumps.wakes && dumps.n_parts;
}

static void check(struct bench *b)
{
	assert_int_equal(sampling_open(&b->on), 0);
	sampling_start(&b->on, (struct cpu_sampler_opts){
				       .rate_hz = RATE,
				       .scope = SETTINGS_SCOPE_PROCESSES,
				       .interval_ns = 100 * NSEC_PER_MSEC,
				       .fn = take,
				       .ctx = b,
			       });
	sampling_want(&b->on, (pid_t)b->process.id.pid);
	loop_until(b->on.loop, is_walked, b);
	assert_true(wakes(b));
	goprocess_stop(&b->process);
	sampling_close(&b->on);
}

static void test_node(void **state)
{
	static const char *const options[] = {NULL};
	struct nodes nodes;

	(void)state;
	nodes_find(&nodes);
	assert_true(nodes.n > 0);
	for (size_t i = 0; i < nodes.n; i++) {
		struct bench b = {.runtime = FRAME_RUNTIME_V8};

		nodes_run(nodes.paths[i], options, "test/data/v8/recursion.cjs", "burn",
			  &b.process);
		check(&b);
	}
	nodes_deinit(&nodes);
}

static void test_java(void **state)
{
	static const char *const options[] = {NULL};
	struct javas javas;

	(void)state;
	javas_find(&javas);
	assert_true(javas.n > 0);
	for (size_t i = 0; i < javas.n; i++) {
		struct bench b = {.runtime = FRAME_RUNTIME_HOTSPOT};

		javas_run(&javas, javas.paths[i], options, "Recursion", "burn", &b.process);
		check(&b);
	}
	javas_deinit(&javas);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_node),
		cmocka_unit_test(test_java),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
