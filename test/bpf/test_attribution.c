// SPDX-License-Identifier: Apache-2.0
/*
 * No sample has another program's frames. Similar programs (test/fixtures/attribution) run in
 * sequence under a handful of pids, reused within milliseconds. The programs execute each other,
 * fork without exec, and change libraries at one address. Meanwhile the sampler runs. Each function
 * of a sample must belong to the program with the sample's name.
 *
 * The test runs in a pid namespace of its own, to choose the pids.
 *
 * PODPROF_TEST_PROGRAMS is the number of programs in each test: 1,500; 100,000 by `make
 * check-attribution`.
 */
#include "support/test.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/queue.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/loop.h"
#include "base/nsec.h"
#include "procmap/image.h"
#include "shared/sample.h"
#include "support/fixture.h"
#include "support/metrics.h"
#include "support/pidns.h"
#include "support/sampling.h"
#include "support/until.h"
#include "symbolize/symbolizer.h"

#define RATE	    1997
#define PROGRAMS    "1500"
/* Smaller than the events of the programs during a stall. */
#define SMALL_QUEUE 8192
#define STALL_US    100000
/* Looks between two stalls, so some programs get names in between. */
#define STALL_LOOKS 20
#define SHOWN	    20 /* wrong samples printed in full */
#define WINDOW_NS   (5 * NSEC_PER_SEC)

static const char *const animals[] = {"ape", "bat", "cat", "cow", "dog"};

/* A stack whose files may not be open yet. */
struct held {
	STAILQ_ENTRY(held) in_list;
	struct sample sample; /* without the words of its stack */
	size_t n;
	struct {
		struct frame frame;
		bool is_return;
	} frames[];
};

STAILQ_HEAD(held_list, held);

struct bench {
	struct sampling on;
	struct symbolizer *symbolizer;
	pid_t spawner;
	uint64_t sweep_ns;
	struct held_list held; /* of a window */
	bool stalls;	       /* stall the reader repeatedly, so events are lost */
	size_t n_looks;
	uint64_t n;	/* samples with a user half */
	uint64_t named; /* with a function of an animal */
	uint64_t whole; /* walked to the end by the program's own tables */
	uint64_t wrong;
};

static bool is_animal(const char *name)
{
	for (size_t i = 0; i < array_size(animals); i++)
		if (strcmp(name, animals[i]) == 0)
			return true;
	return false;
}

/* ---------------------------------------------------------------- samples */

/* The meaning of a frame: a function of an animal, or another one. */
struct said {
	char animal[PID_COMM_MAX];
	char function[64];
};

static void name_frame(struct bench *b, const struct cpu_stack *stack, size_t i, struct said *ret)
{
	struct frame frame = stack->frames[i];
	struct symbol symbol;

	*ret = (struct said){.animal = ""};
	if (frame.image->kind != IMAGE_FILE)
		return;
	frame.vaddr -= stack->return_address[i];
	assert_int_equal(symbolizer_find(b->symbolizer, &frame, &symbol), 0);
	snprintf(ret->function, sizeof(ret->function), "%s", symbol.lines[0].function);
	for (size_t a = 0; a < array_size(animals); a++)
		if (strncmp(ret->function, animals[a], 3) == 0 && ret->function[3] == '_')
			strcpy(ret->animal, animals[a]);
	if (is_animal(image_name(frame.image)))
		strcpy(ret->animal, image_name(frame.image));
}

static void show(struct bench *b, const char *what, const struct sample *sample,
		 const struct cpu_stack *stack)
{
	struct said said;

	if (b->wrong >= SHOWN)
		return;
	print_message("%s: %s[%llu], exec %llu, %llu kernel frames, end %s, flags %x:", what,
		      sample->comm, (unsigned long long)sample->pid.pid,
		      (unsigned long long)sample->exec_id, (unsigned long long)sample->n_kernel,
		      sample_stat_name(sample->end), sample->flags);
	for (size_t i = sample->n_kernel; i < stack->n; i++) {
		name_frame(b, stack, i, &said);
		print_message(" %s:%s", image_name(stack->frames[i].image), said.function);
	}
	print_message("\n");
}

/* The animals' own functions are called in this order. */
static bool in_order(const struct said *said, const char *animal, size_t i)
{
	static const char *const calls[] = {"inner", "middle", "outer"};
	char name[64];

	snprintf(name, sizeof(name), "%s_%s", animal, calls[i]);
	return strcmp(said->function, name) == 0;
}

static const char *fault(struct bench *b, const struct sample *sample,
			 const struct cpu_stack *stack)
{
	bool inside = false, computes = false;
	const size_t first = sample->n_kernel;
	struct said said;

	for (size_t i = first; i < stack->n; i++) {
		name_frame(b, stack, i, &said);
		if (said.animal[0] && strcmp(said.animal, sample->comm) != 0)
			return "another program's";
		if (strcmp(said.function, "plugin_ant_idle") == 0 ||
		    strcmp(said.function, "plugin_bee_idle") == 0)
			return "another library's";
		if (i == first)
			computes = in_order(&said, sample->comm, 0);
		if (computes && !sample->flags && sample->end == SAMPLE_END_COMPLETE &&
		    i - first < 3 && !in_order(&said, sample->comm, i - first))
			return "led astray";
		inside |= said.animal[0] != 0;
	}
	b->named += inside ? sample->count : 0;
	b->whole += sample->end == SAMPLE_END_COMPLETE && !sample->flags ? sample->count : 0;
	return NULL;
}

static void take(void *ctx, const struct sample *sample)
{
	struct cpu_stack stack = {.n = 0};
	struct bench *b = ctx;
	struct held *held;

	if (!sample->n_user)
		return;
	assert_int_equal(cpu_sampler_resolve(b->on.sampler, sample, &stack), 0);
	held = malloc(sizeof(*held) + stack.n * sizeof(held->frames[0]));
	assert_non_null(held);
	*held = (struct held){.sample = *sample, .n = stack.n};
	for (size_t i = 0; i < stack.n; i++) {
		held->frames[i].frame = stack.frames[i];
		held->frames[i].is_return = stack.return_address[i];
	}
	STAILQ_INSERT_TAIL(&b->held, held, in_list);
}

static void judge(struct bench *b, const struct held *held)
{
	struct cpu_stack stack = {.n = held->n};
	const char *why;

	for (size_t i = 0; i < held->n; i++) {
		stack.frames[i] = held->frames[i].frame;
		stack.return_address[i] = held->frames[i].is_return;
	}
	cpu_sampler_settle(b->on.sampler, &stack);
	b->n += held->sample.count;
	why = fault(b, &held->sample, &stack);
	if (why) {
		show(b, why, &held->sample, &stack);
		b->wrong += held->sample.count;
	}
	cpu_stack_deinit(&stack);
}

/* The end of a window: as in the agent, frames get their names here. */
static void judge_all(struct bench *b)
{
	struct held *held;

	while ((held = STAILQ_FIRST(&b->held))) {
		STAILQ_REMOVE_HEAD(&b->held, in_list);
		judge(b, held);
		free(held);
	}
	symbolizer_release(b->symbolizer);
}

/* ---------------------------------------------------------------- the test */

static int setup(void **state)
{
	struct bench *b = calloc(1, sizeof(*b));
	struct symbolizer_opts opts = {.cache_bytes = 16u << 20};

	assert_non_null(b);
	*state = b;
	STAILQ_INIT(&b->held);
	if (sampling_open(&b->on))
		return -1;
	opts.proc = &b->on.proc;
	return symbolizer_new(&opts, &b->symbolizer);
}

static int teardown(void **state)
{
	struct bench *b = *state;

	if (b->spawner) {
		kill(b->spawner, SIGKILL);
		waitpid(b->spawner, NULL, 0);
	}
	sampling_close(&b->on);
	symbolizer_free(b->symbolizer);
	free(b);
	return 0;
}

static void look(void *ctx)
{
	struct bench *b = ctx;
	int status;

	if (waitpid(b->spawner, &status, WNOHANG) == b->spawner) {
		assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
		b->spawner = 0;
		loop_stop(b->on.loop);
	}
	if (b->stalls && ++b->n_looks % STALL_LOOKS == 0)
		usleep(STALL_US);
	if (nsec_monotonic() > b->sweep_ns) {
		b->sweep_ns = nsec_monotonic() + WINDOW_NS;
		judge_all(b);
		cpu_sampler_sweep(b->on.sampler);
	}
}

/* Found before there are mounts of our own: behind a chroot our program would have another path. */
static char keeper[FIXTURE_PATH_MAX];

static void spawn(const char *programs)
{
	char dir[FIXTURE_PATH_MAX];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	strcpy(dir, keeper);
	*strrchr(dir, '/') = '\0';
	execl(keeper, keeper, dir, programs, NULL);
	_exit(127);
}

/* How many events were lost. @queue_bytes: 0 for the usual queue, read as usual. */
static uint64_t watch(struct bench *b, size_t queue_bytes)
{
	const char *programs = getenv("PODPROF_TEST_PROGRAMS");
	struct loop_source *timer;
	uint64_t lost;

	b->sweep_ns = nsec_monotonic() + WINDOW_NS;
	b->stalls = queue_bytes != 0;
	sampling_start(&b->on, (struct cpu_sampler_opts){
				       .rate_hz = RATE,
				       .kernel_stacks = true,
				       .interval_ns = 200 * NSEC_PER_MSEC,
				       .event_queue_bytes = queue_bytes,
				       .fn = take,
				       .ctx = b,
			       });
	b->spawner = fork();
	if (b->spawner == 0)
		spawn(programs ? programs : PROGRAMS);
	assert_int_equal(loop_add_timer(b->on.loop, look, b, &timer), 0);
	assert_int_equal(loop_arm(timer, 0, 20 * NSEC_PER_MSEC), 0);
	assert_int_equal(loop_run(b->on.loop), 0);
	loop_remove(timer);
	cpu_sampler_finish(b->on.sampler);
	judge_all(b);
	lost = metrics_get(cpu_sampler_collect, b->on.sampler, "podprof_process_events_lost",
			   "queue_full");
	print_message("%s programs, %llu samples, %llu named, %llu whole, %llu wrong, %llu events "
		      "lost\n",
		      programs ? programs : PROGRAMS, (unsigned long long)b->n,
		      (unsigned long long)b->named, (unsigned long long)b->whole,
		      (unsigned long long)b->wrong, (unsigned long long)lost);
	assert_true(b->named > 0);
	assert_int_equal(b->wrong, 0);
	return lost;
}

static void test_attribution(void **state)
{
	watch(*state, 0);
}

/* Events are lost all the time. Unknown programs have no name, and never a wrong name. */
static void test_lost(void **state)
{
	assert_true(watch(*state, SMALL_QUEUE) > 0);
}

static int run_inside(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_attribution, setup, teardown),
		cmocka_unit_test_setup_teardown(test_lost, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
	fixture_path("keeper", keeper);
	return pidns_run(run_inside);
}
