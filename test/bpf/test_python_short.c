// SPDX-License-Identifier: Apache-2.0
/*
 * Processes with CPython that end before the agent reads them, on Debian's interpreter and all of
 * pyenv's: their functions and lines come with the stack dumps. Only the first processes of a
 * program, from which the agent learns it, have native frames.
 */
#include "support/test.h"

#include <bpf/bpf.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/loop.h"
#include "base/nsec.h"
#include "base/root.h"
#include "procmap/address_space.h"
#include "profile/oncpu.h"
#include "shared/sample.h"
#include "shared/stack_dump.h"
#include "support/pythons.h"
#include "support/sampling.h"
#include "support/until.h"

/* Below the rate of stack dumps of a process. */
#define RATE	 197
#define WANT	 60
#define SCRIPT	 "test/data/python/short.py"
/* On a busy machine the scripts take longer than the dumps of a new process, and end before their
 * names are read. */
#define ATTEMPTS 3

struct bench {
	struct sampling on;
	const char *source; /* of the script */
	pid_t child;
	uint64_t n;	   /* samples with frames of Python */
	uint64_t n_burn;   /* ... in burn() */
	uint64_t n_right;  /* ... with its callers and lines */
	uint64_t n_gone;   /* ... with frames without a name */
	uint64_t n_native; /* samples without, after the first with */
	uint64_t n_first;  /* ... before it */
};

static bool is_function(const struct cpu_stack *stack, size_t i, const char *name)
{
	const struct image *image = stack->frames[i].image;

	return image->kind == IMAGE_RUNTIME && strcmp(image->function.name, name) == 0;
}

/* Whether the Python functions from @at on are burn() and its callers. To 3.10 a loop's native
 * frame lies between them. */
static bool is_right(const struct bench *b, const struct cpu_stack *stack, size_t at)
{
	static const struct {
		const char *name;
		const char *called;
	} wants[] = {{"burn", NULL},
		     {"middle", "# in middle"},
		     {"outer", "# in outer"},
		     {"<module>", "# in <module>"}};

	for (size_t i = 0; i < array_size(wants); i++, at++) {
		while (at < stack->n && stack->frames[at].image->kind != IMAGE_RUNTIME)
			at++;
		if (at >= stack->n || !is_function(stack, at, wants[i].name) ||
		    !strstr(stack->frames[at].image->function.file, "short.py"))
			return false;
		if (wants[i].called &&
		    stack->frames[at].vaddr != pythons_line_of(b->source, wants[i].called))
			return false;
	}
	return true;
}

static void look(struct bench *b, const struct sample *sample, const struct cpu_stack *stack)
{
	bool gone = false;
	size_t burn = 0;

	if (!sample->n_runtime) {
		*(b->n ? &b->n_native : &b->n_first) += sample->count;
		return;
	}
	for (size_t i = 0; i < stack->n; i++)
		gone |= stack->frames[i].image->kind == IMAGE_BROKEN;
	while (burn < stack->n && !is_function(stack, burn, "burn"))
		burn++;
	b->n += sample->count;
	b->n_gone += gone ? sample->count : 0;
	if (burn == stack->n)
		return;
	b->n_burn += sample->count;
	b->n_right += is_right(b, stack, burn) ? sample->count : 0;
}

static void take(void *ctx, const struct sample *sample)
{
	struct cpu_stack stack = {.n = 0};
	struct bench *b = ctx;

	if (!sample->n_user || strncmp(sample->comm, "python", 6) != 0)
		return;
	assert_int_equal(cpu_sampler_resolve(b->on.sampler, sample, &stack), 0);
	look(b, sample, &stack);
	cpu_stack_deinit(&stack);
}

static bool enough(void *ctx)
{
	const struct bench *b = ctx;

	return b->n_burn >= WANT;
}

static void spawn_for_ever(const char *path)
{
	for (;;) {
		pid_t pid = fork();

		if (pid == 0) {
			execl(path, "python", SCRIPT, NULL);
			_exit(127);
		}
		waitpid(pid, NULL, 0);
	}
}

static void start(struct bench *b)
{
	assert_int_equal(sampling_open(&b->on), 0);
	sampling_start(&b->on, (struct cpu_sampler_opts){
				       .rate_hz = RATE,
				       .scope = SETTINGS_SCOPE_PROCESSES,
				       .interval_ns = NSEC_PER_SEC,
				       .fn = take,
				       .ctx = b,
			       });
}

static void run(struct bench *b, const char *path)
{
	pid_t spawner;

	start(b);
	spawner = fork();
	if (spawner == 0)
		spawn_for_ever(path);
	sampling_want(&b->on, spawner);
	loop_until(b->on.loop, enough, b);
	kill(spawner, SIGKILL);
	waitpid(spawner, NULL, 0);
	sampling_close(&b->on);
	print_message("%s: %" PRIu64 " samples, %" PRIu64 " in burn(), %" PRIu64 " right, %" PRIu64
		      " without a name; %" PRIu64 " and %" PRIu64 " native\n",
		      path, b->n, b->n_burn, b->n_right, b->n_gone, b->n_first, b->n_native);
}

static bool has_names(const struct bench *b)
{
	return b->n_gone * 100 <= b->n * 5 && b->n_native <= b->n;
}

/* 3.15 has the pointer to a thread's state in a place that only a longer process shows. Native
 * frames: the start of the interpreter, and its end. */
static void test_short(void **state)
{
	struct buf source = BUF_INIT(1 << 16);
	struct pythons pythons;
	struct root here;

	(void)state;
	assert_int_equal(root_open(".", &here), 0);
	assert_int_equal(root_read(&here, SCRIPT, &source), 0);
	pythons_find(&pythons);
	for (size_t i = 0; i < pythons.n; i++) {
		struct bench b;
		int attempts = 0;

		do {
			b = (struct bench){.source = source.data};
			run(&b, pythons.paths[i]);
			assert_true(b.n_right * 100 >= b.n_burn * 95);
		} while (!has_names(&b) && ++attempts < ATTEMPTS);
		assert_true(has_names(&b));
	}
	pythons_deinit(&pythons);
	buf_deinit(&source);
	root_deinit(&here);
}

/* Whether the walk of the child has frames of Python. */
static bool is_walked(void *ctx)
{
	struct bench *b = ctx;

	return !sampling_forgot(&b->on, FRAME_RUNTIME_PYTHON, b->child);
}

/* The process that teaches the agent the program may end before its names are read. So its dumps
 * have names from its first frame of Python on. */
static void test_first(void **state)
{
	struct pythons pythons;

	(void)state;
	pythons_find(&pythons);
	for (size_t i = 0; i < pythons.n; i++) {
		struct bench b = {.source = ""};
		struct exe_key key;

		start(&b);
		b.child = fork();
		if (b.child == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			execl(pythons.paths[i], "python", "-c", "while True: pass", NULL);
			_exit(127);
		}
		sampling_want(&b.on, b.child);
		loop_until(b.on.loop, is_walked, &b);
		assert_int_equal(bpf_map_get_next_key(oncpu_unwind(cpu_sampler_oncpu(b.on.sampler))
							      .runtime_exes[FRAME_RUNTIME_PYTHON],
						      NULL, &key),
				 0);
		kill(b.child, SIGKILL);
		waitpid(b.child, NULL, 0);
		sampling_close(&b.on);
	}
	pythons_deinit(&pythons);
}

/* ---------------------------------------------------------------- entries of the stack maps */

#define ENTRY_WORDS 64
#define ENTRIES	    512
#define ENTRIES_FOR 300 /* samples */

/* Ends of intervals until all stack dumps from before the first walk are samples. */
#define ENTRIES_DUMPED 2

/* Stacks of one process without a kernel half, since the last drain. */
struct entries {
	struct sampling on;
	pid_t child;
	bool is_walked;	      /* podprof knows the process */
	unsigned int n_ended; /* intervals since then */
	uint64_t words[ENTRIES][ENTRY_WORDS];
	size_t n_words[ENTRIES];
	size_t n;
	uint64_t n_samples;
	uint64_t n_repeated; /* entries with the stack of another one */
};

static void next_interval(void *ctx, bool off_cpu, uint64_t until_ns)
{
	struct entries *e = ctx;

	(void)off_cpu;
	(void)until_ns;
	e->n = 0;
	e->n_ended += e->is_walked;
}

static void take_entry(void *ctx, const struct sample *sample)
{
	const size_t bytes = sample->n_user * sizeof(sample->user[0]);
	struct entries *e = ctx;

	/* dumps are no entries */
	if (sample->pid.pid != (uint32_t)e->child || e->n_ended < ENTRIES_DUMPED ||
	    sample->n_kernel || !sample->n_runtime || sample->n_user > ENTRY_WORDS ||
	    e->n == ENTRIES || (sample->flags & (SAMPLE_FLAG_NO_PROCESS | SAMPLE_FLAG_AWAITS)))
		return;
	for (size_t i = 0; i < e->n; i++)
		e->n_repeated += e->n_words[i] == sample->n_user &&
				 memcmp(e->words[i], sample->user, bytes) == 0;
	memcpy(e->words[e->n], sample->user, bytes);
	e->n_words[e->n++] = sample->n_user;
	e->n_samples += sample->count;
}

static bool entries_walked(void *ctx)
{
	struct entries *e = ctx;

	return !sampling_forgot(&e->on, FRAME_RUNTIME_PYTHON, e->child);
}

static bool entries_enough(void *ctx)
{
	const struct entries *e = ctx;

	return e->n_samples >= ENTRIES_FOR;
}

static void entries_run(struct entries *e, const char *path, bool (*until)(void *ctx))
{
	e->is_walked = false;
	e->n_ended = 0;
	e->child = fork();
	if (e->child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execl(path, "python", "-c", "while True: pass", NULL);
		_exit(127);
	}
	sampling_want(&e->on, e->child);
	loop_until(e->on.loop, entries_walked, e);
	e->is_walked = true;
	loop_until(e->on.loop, until, e);
	kill(e->child, SIGKILL);
	waitpid(e->child, NULL, 0);
}

/* The samples of a young process have excerpts beside their walks, and equal stacks are one entry
 * all the same, wherever in the loop's code they were interrupted. */
static void test_entries(void **state)
{
	static struct entries e;
	struct pythons pythons;

	(void)state;
	pythons_find(&pythons);
	assert_true(pythons.n > 0);
	assert_int_equal(sampling_open(&e.on), 0);
	sampling_start(&e.on, (struct cpu_sampler_opts){
				      .rate_hz = RATE,
				      .scope = SETTINGS_SCOPE_PROCESSES,
				      .interval_ns = NSEC_PER_SEC,
				      .fn = take_entry,
				      .drained = next_interval,
				      .ctx = &e,
			      });
	/* the agent learns the program from the first process */
	entries_run(&e, pythons.paths[0], entries_walked);
	e.n = e.n_samples = e.n_repeated = 0;
	entries_run(&e, pythons.paths[0], entries_enough);
	sampling_close(&e.on);
	print_message("%ju samples, %ju entries repeated\n", (uintmax_t)e.n_samples,
		      (uintmax_t)e.n_repeated);
	assert_int_equal(e.n_repeated, 0);
	pythons_deinit(&pythons);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_entries),
		cmocka_unit_test(test_first),
		cmocka_unit_test(test_short),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
