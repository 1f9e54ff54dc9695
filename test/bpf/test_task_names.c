// SPDX-License-Identifier: Apache-2.0
/*
 * Names of asyncio tasks on samples, in the real kernel, on Debian's interpreter and all of pyenv's
 * that have names: each function of tasks.py runs in one task. The names of tasks that start and
 * end at full speed are never another's.
 */
#include "support/test.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/loop.h"
#include "base/nsec.h"
#include "base/root.h"
#include "profile/oncpu.h"
#include "profile/sample.h"
#include "support/pythons.h"
#include "support/sampling.h"
#include "support/until.h"

#define RATE	 997
/* Samples of each function. */
#define WANT	 20
/* Stacks of the process's first second come from dumps, without names of tasks. The last of them
 * are delivered within this time from the first name on. */
#define DUMPS_NS (2 * NSEC_PER_SEC)
#define SCRIPT	 "test/data/python/tasks.py"
/* The same, imported when podprof has known the process for some seconds. */
#define LATE                                   \
	"import time\n"                        \
	"while time.thread_time() < 3: pass\n" \
	"exec(open('" SCRIPT "').read())"

/* The task of a function; "": it has none. */
static const struct row {
	const char *function;
	const char *task;
} rows[] = {
	{"named", "named"},
	{"second", "second"},
	{"unnamed", SAMPLE_TASK_UNNAMED},
	{"almost_unnamed", "Task-7-b"},
	{"foreign", SAMPLE_TASK_UNKNOWN},
	{"very_long", "a-name-of-more-than-thirty-one-"},
	{"no_task", ""},
	{"in_executor", ""},
	{"renamed_0", "renamed_0"},
	{"renamed_1", "renamed_1"},
	{"renamed_2", "renamed_2"},
};

struct bench {
	struct sampling on;
	pid_t child;
	uint64_t named_ns; /* monotonic: the first name of a task; 0: none */
	uint64_t n[array_size(rows)];
	uint64_t n_missing;
	uint64_t n_wrong;
	uint64_t n_renamed;
	uint64_t n_other; /* above the limit of names */
};

/* The row of the innermost function that has one. None in starts(): to make a coroutine, it runs
 * the beginning of the coroutine's function (3.11 and later). */
static size_t row_of(const struct cpu_stack *stack)
{
	size_t found = array_size(rows);

	for (size_t i = 0; i < stack->n; i++) {
		const struct image *image = stack->frames[i].image;

		if (image->kind != IMAGE_RUNTIME)
			continue;
		if (strcmp(image->function.name, "starts") == 0)
			return array_size(rows);
		for (size_t k = 0; found == array_size(rows) && k < array_size(rows); k++)
			if (strcmp(image->function.name, rows[k].function) == 0)
				found = k;
	}
	return found;
}

static void take(void *ctx, const struct sample *sample)
{
	struct cpu_stack stack = {.n = 0};
	struct bench *b = ctx;
	size_t row;

	assert_int_equal(cpu_sampler_resolve(b->on.sampler, sample, &stack), 0);
	row = row_of(&stack);
	if (!b->named_ns && *stack.task)
		b->named_ns = nsec_monotonic();
	if (b->named_ns && nsec_monotonic() - b->named_ns >= DUMPS_NS && row < array_size(rows)) {
		b->n[row] += sample->count;
		if (*rows[row].task && !*stack.task)
			b->n_missing += sample->count;
		else if (strcmp(stack.task, rows[row].task) != 0) {
			b->n_wrong += sample->count;
			print_message("%s: \"%s\" in place of \"%s\"\n", rows[row].function,
				      stack.task, rows[row].task);
		}
	}
	cpu_stack_deinit(&stack);
}

/* Each step of the task has another name. */
static void take_renamed(void *ctx, const struct sample *sample)
{
	struct bench *b = ctx;

	b->n_renamed += strncmp(sample->task, "name-", 5) == 0;
	b->n_other += strcmp(sample->task, SAMPLE_OTHER_THREAD) == 0;
}

static bool has_others(void *ctx)
{
	const struct bench *b = ctx;

	return b->n_other > 0 && b->n_renamed > 0;
}

static bool enough(void *ctx)
{
	const struct bench *b = ctx;

	for (size_t i = 0; i < array_size(rows); i++)
		if (b->n[i] < WANT)
			return false;
	return true;
}

struct run {
	const char *path;
	const char *const *args; /* of the interpreter */
	bool task_names;
	sample_fn take;
	bool (*enough)(void *ctx);
};

static const char *const usual[] = {"python", SCRIPT, NULL};

static void run(struct bench *b, const struct run *run)
{
	assert_int_equal(sampling_open(&b->on), 0);
	sampling_start(&b->on, (struct cpu_sampler_opts){
				       .rate_hz = RATE,
				       .scope = SETTINGS_SCOPE_PROCESSES,
				       .interval_ns = NSEC_PER_SEC,
				       .task_names = run->task_names,
				       .fn = run->take,
				       .ctx = b,
			       });
	b->named_ns = run->task_names ? 0 : 1;
	b->child = fork();
	if (b->child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execv(run->path, (char *const *)(uintptr_t)run->args);
		_exit(127);
	}
	sampling_want(&b->on, b->child);
	loop_until(b->on.loop, run->enough, b);
	kill(b->child, SIGKILL);
	waitpid(b->child, NULL, 0);
	sampling_close(&b->on);
}

/* Tasks have names from 3.8 on. */
static bool has_names(const char *path)
{
	return !strstr(path, "/3.6") && !strstr(path, "/3.7");
}

static void test_names(void **state)
{
	struct pythons pythons;

	(void)state;
	pythons_find(&pythons);
	for (size_t i = 0; i < pythons.n; i++) {
		struct bench b = {.child = 0};
		uint64_t n = 0;

		if (!has_names(pythons.paths[i]))
			continue;
		row_begin(pythons.paths[i]);
		run(&b, &(struct run){pythons.paths[i], usual, true, take, enough});
		for (size_t k = 0; k < array_size(rows); k++)
			n += b.n[k];
		print_message("%s: %" PRIu64 " samples, %" PRIu64 " without the name of their "
			      "task, %" PRIu64 " wrong\n",
			      pythons.paths[i], n, b.n_missing, b.n_wrong);
		assert_int_equal(b.n_wrong, 0);
		assert_true(b.n_missing * 50 <= n);
	}
	pythons_deinit(&pythons);
}

/* asyncio is found by a later attempt; the walk has the frames meanwhile. */
static void test_late(void **state)
{
	static const char *const late[] = {"python", "-c", LATE, NULL};
	struct bench b = {.child = 0};
	struct pythons pythons;

	(void)state;
	pythons_find(&pythons);
	run(&b, &(struct run){pythons.paths[0], late, true, take, enough});
	assert_int_equal(b.n_wrong, 0);
	pythons_deinit(&pythons);
}

/* A process has a limit of names. */
static void test_limit(void **state)
{
	static const char *const renames[] = {"python", SCRIPT, "renames", NULL};
	struct bench b = {.child = 0};
	struct pythons pythons;

	(void)state;
	pythons_find(&pythons);
	run(&b, &(struct run){pythons.paths[0], renames, true, take_renamed, has_others});
	assert_true(b.n_renamed > 0);
	pythons_deinit(&pythons);
}

/* Without the option no sample has a name. */
static void test_not_requested(void **state)
{
	struct bench b = {.child = 0};
	struct pythons pythons;
	uint64_t n_named = 0;

	(void)state;
	pythons_find(&pythons);
	run(&b, &(struct run){pythons.paths[0], usual, false, take, enough});
	for (size_t i = 0; i < array_size(rows); i++)
		n_named += *rows[i].task ? b.n[i] : 0;
	assert_int_equal(b.n_wrong, 0);
	assert_int_equal(b.n_missing, n_named);
	pythons_deinit(&pythons);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_late),
		cmocka_unit_test(test_limit),
		cmocka_unit_test(test_not_requested),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
