// SPDX-License-Identifier: Apache-2.0
/* The walks of language runtimes are loaded after what stacks wait for, and not too late. */
#include "support/test.h"

#include <dlfcn.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/resource.h>

#include <bpf/libbpf.h>
#include <unistd.h>

#include "base/loop.h"
#include "profile/oncpu.h"
#include "profile/runtime_loader.h"
#include "shared/frame.h"
#include "support/sampling.h"
#include "support/threads.h"
#include "support/until.h"

/* libbpf's, to hold up a load. */
static atomic_bool is_held;
static sem_t held, go_on;

__attribute__((visibility("default"))) int
bpf_object__open_skeleton(struct bpf_object_skeleton *s, const struct bpf_object_open_opts *opts)
{
	typedef int fn(struct bpf_object_skeleton *, const struct bpf_object_open_opts *);
	fn *next = (fn *)dlsym(RTLD_NEXT, "bpf_object__open_skeleton");

	if (is_held) {
		sem_post(&held);
		sem_wait(&go_on);
	}
	return next(s, opts);
}

struct bench {
	struct sampling on;
	struct runtime_loader *loader;
};

static struct bench bench;

static int setup_with(void **state, bool urgent)
{
	/* no process is selected: no sample wants a walk */
	const struct cpu_sampler_opts opts = {.rate_hz = 97, .scope = SETTINGS_SCOPE_PROCESSES};
	const struct oncpu *oncpu;

	*state = &bench;
	while (threads_named("bpf-load")) /* joined, and not yet gone from /proc */
		usleep(1000);
	assert_int_equal(sampling_open(&bench.on), 0);
	sampling_start(&bench.on, opts);
	oncpu = cpu_sampler_oncpu(bench.on.sampler);
	assert_int_equal(
		runtime_loader_new(bench.on.loop, oncpu_object(oncpu), urgent, &bench.loader), 0);
	return 0;
}

static int setup(void **state)
{
	return setup_with(state, false);
}

static int setup_urgent(void **state)
{
	return setup_with(state, true);
}

static int teardown(void **state)
{
	struct bench *b = *state;

	runtime_loader_free(b->loader);
	sampling_close(&b->on);
	return 0;
}

static bool is_loaded(void *ctx)
{
	const struct bench *b = ctx;

	return !runtime_loader_pending(b->loader);
}

static bool is_one_loaded(void *ctx)
{
	const struct bench *b = ctx;

	return runtime_loader_pending(b->loader) == 1;
}

static int nice_of_thread(const char *name)
{
	return getpriority(PRIO_PROCESS, (id_t)threads_find(name));
}

static void test_idle(void **state)
{
	struct bench *b = *state;

	runtime_loader_tick(b->loader, false, 1);
	assert_int_equal(threads_named("bpf-load"), 0);
	runtime_loader_want(b->loader, FRAME_RUNTIME_PYTHON, 1);
	assert_int_equal(runtime_loader_pending(b->loader), 1);
	runtime_loader_tick(b->loader, false, 1);
	assert_int_equal(threads_named("bpf-load"), 1);
	loop_until(b->on.loop, is_loaded, b);
	assert_int_equal(nice_of_thread("bpf-load"), getpriority(PRIO_PROCESS, 0));
	runtime_loader_want(b->loader, FRAME_RUNTIME_PYTHON, 2); /* is there */
	assert_int_equal(runtime_loader_pending(b->loader), 0);
}

/* The load begins with the first tick without other work. */
static void test_busy(void **state)
{
	struct bench *b = *state;

	runtime_loader_want(b->loader, FRAME_RUNTIME_V8, 1);
	runtime_loader_tick(b->loader, true, 1);
	runtime_loader_tick(b->loader, true, RUNTIME_LOADER_WAIT_NS);
	assert_int_equal(threads_named("bpf-load"), 0);
	assert_int_equal(runtime_loader_pending(b->loader), 1);
	runtime_loader_tick(b->loader, false, RUNTIME_LOADER_WAIT_NS);
	assert_int_equal(threads_named("bpf-load"), 1);
	loop_until(b->on.loop, is_loaded, b);
}

/* An agent that always has other work loads the walk after a while. */
static void test_always_busy(void **state)
{
	struct bench *b = *state;

	runtime_loader_want(b->loader, FRAME_RUNTIME_PYTHON, 1);
	runtime_loader_tick(b->loader, true, RUNTIME_LOADER_WAIT_NS);
	assert_int_equal(threads_named("bpf-load"), 0);
	runtime_loader_tick(b->loader, true, RUNTIME_LOADER_WAIT_NS + 1);
	assert_int_equal(threads_named("bpf-load"), 1);
	loop_until(b->on.loop, is_loaded, b);
	assert_true(nice_of_thread("bpf-load") > getpriority(PRIO_PROCESS, 0));
}

/* Stacks wait for this walk, too. */
static void test_cut(void **state)
{
	struct bench *b = *state;

	runtime_loader_want(b->loader, FRAME_RUNTIME_V8, 1);
	runtime_loader_want(b->loader, FRAME_RUNTIME_HOTSPOT, 2);
	runtime_loader_tick(b->loader, true, 2);
	assert_int_equal(threads_named("bpf-load"), 1);
	assert_int_equal(runtime_loader_pending(b->loader), 2);
	loop_until(b->on.loop, is_one_loaded, b);
	assert_int_equal(nice_of_thread("bpf-load"), getpriority(PRIO_PROCESS, 0));
}

/* A caller that waits for the load does not wait for other work first. */
static void test_urgent(void **state)
{
	struct bench *b = *state;

	runtime_loader_want(b->loader, FRAME_RUNTIME_PYTHON, 1);
	runtime_loader_tick(b->loader, true, 1);
	assert_int_equal(threads_named("bpf-load"), 1);
	loop_until(b->on.loop, is_loaded, b);
}

/* A load of which no end is in sight is left behind, with what it needs. */
static void test_end(void **state)
{
	struct bench *b = *state;

	sem_init(&held, 0, 0);
	sem_init(&go_on, 0, 0);
	is_held = true;
	runtime_loader_want(b->loader, FRAME_RUNTIME_PYTHON, 1);
	runtime_loader_tick(b->loader, false, 1);
	sem_wait(&held);
	runtime_loader_free(b->loader);
	b->loader = NULL;
	assert_int_equal(threads_named("bpf-load"), 1);
	sampling_close(&b->on);
	is_held = false;
	sem_post(&go_on);
	threads_wait();
	b->on = (struct sampling){0};
	assert_int_equal(sampling_open(&b->on), 0);
}

/* After the end of sampling no load begins. */
static void test_ended(void **state)
{
	struct bench *b = *state;

	runtime_loader_want(b->loader, FRAME_RUNTIME_PYTHON, 1);
	runtime_loader_end(b->loader);
	assert_int_equal(runtime_loader_pending(b->loader), 0);
	runtime_loader_want(b->loader, FRAME_RUNTIME_V8, 1);
	assert_int_equal(runtime_loader_pending(b->loader), 0);
	runtime_loader_tick(b->loader, false, 1);
	assert_int_equal(threads_named("bpf-load"), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_idle),
		TEST(test_busy),
		TEST(test_always_busy),
		TEST(test_cut),
		TEST(test_end),
		TEST(test_ended),
		cmocka_unit_test_setup_teardown(test_urgent, setup_urgent, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
