// SPDX-License-Identifier: Apache-2.0
/*
 * The whole way of a language runtime's frames in the real kernel: process record, walk, sample,
 * fold, report, profile. With the test runtime (runtime_test.h).
 */
#include "support/test.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/loop.h"
#include "base/nsec.h"
#include "bpf/runtime_agent.h"
#include "cpu/fold.h"
#include "cpu/report.h"
#include "pprof/reader.h"
#include "procmap/address_space.h"
#include "profile/oncpu.h"
#include "profile/stacks.h"
#include "profile/verifier.h"
#include "runtimes/runtimes.h"
#include "shared/sample.h"
#include "support/burn.h"
#include "support/metrics.h"
#include "support/sampling.h"
#include "support/until.h"
#include "symbolize/symbolizer.h"

#define RATE		   997
#define WANT		   200
#define PPROF_MAX	   (16u << 20)
/* Of the walks with the step. Seen on 6.18: 22,000; in parts 88,000. */
#define VERIFIED_INSNS_MAX 150000

/* ---------------------------------------------------------------- the process */

/* A section for each function: the linker defines symbols for the bounds. */
#define SECTION(name) __attribute__((noinline, section(#name "_text")))
extern const char __start_rt_loop_text[], __stop_rt_loop_text[];

static volatile bool stop; /* never */
static volatile uint64_t sink;

SECTION(rt_inner) static void rt_inner(bool sleeps)
{
	const struct timespec nap = {.tv_nsec = 5000000};

	while (!stop) {
		if (sleeps)
			nanosleep(&nap, NULL);
		for (int i = 0; i < 1000; i++)
			sink = sink * 3 + 1;
	}
}

SECTION(rt_middle) static void rt_middle(bool sleeps);

/* The interpreter's loop: twice on the stack. */
SECTION(rt_loop) static void rt_loop(int depth, bool sleeps)
{
	if (depth)
		rt_middle(sleeps);
	else
		rt_inner(sleeps);
	sink++;
}

SECTION(rt_middle) static void rt_middle(bool sleeps)
{
	rt_loop(0, sleeps);
	sink++;
}

SECTION(rt_outer) static void rt_outer(bool sleeps)
{
	rt_loop(1, sleeps);
	sink++;
}

enum { ALPHA = 0x1001, BETA, GAMMA, DELTA };

/* The process's frames, innermost first; bytes outside of UTF-8 become '?'. */
static const char *const want[] = {
	"rt_inner", "rt_loop", "alpha",	       "b\xc3\xa9ta",	     "rt_middle",
	"rt_loop",  "gamma?",  "[test: gone]", "[test: unreadable]", "rt_outer",
};

/* The same without the runtime. */
static const char *const want_native[] = {"rt_inner", "rt_loop", "rt_middle", "rt_loop",
					  "rt_outer"};

/* ---------------------------------------------------------------- the test's reader */

struct bench {
	struct sampling on;
	struct runtime_host host; /* of the reader */
	struct symbolizer *symbolizer;
	struct fold *fold;
	struct runtime_test_frame frames[4];
	pid_t child;
	bool sleeps;
	bool refused;	    /* the runtime's program */
	uint64_t n;	    /* samples of the child with rt_inner() */
	uint64_t whole;	    /* ended at the outermost function */
	uint64_t n_runtime; /* runtime frames in the samples */
	uint64_t odd;
};

static struct bench *bench_now;

static int reader_new_(const struct runtime_host *host, void **ret)
{
	assert_non_null(host->proc);
	bench_now->host = *host;
	*ret = bench_now;
	return 0;
}

static void reader_free_(void *reader)
{
	assert_ptr_equal(reader, bench_now);
}

static bool runs(void *reader, const struct address_space_who *who,
		 const struct address_space *space)
{
	const struct bench *b = reader;
	size_t n;

	return (pid_t)who->pid.pid == b->child && address_space_mappings(space, &n);
}

static int frame_name(void *reader, const struct address_space_who *who,
		      const struct frame_record *frame, struct runtime_place *ret)
{
	static const char *const names[] = {"alpha", "b\xc3\xa9ta", "gamma\xff"};
	const struct bench *b = reader;

	assert_int_equal(who->pid.pid, b->child);
	assert_int_equal(frame->kind, FRAME_RUNTIME);
	if (frame->words[0] >= DELTA)
		return RUNTIME_GONE;
	*ret = (struct runtime_place){
		.function = {.name = names[frame->words[0] - ALPHA],
			     .file = "lib/test.src",
			     .start_line = 10},
		.line = (uint32_t)frame->words[1],
	};
	return 0;
}

static const struct runtime test_runtime = {
	.name = "test",
	.new = reader_new_,
	.free = reader_free_,
	.runs = runs,
	.frame_name = frame_name,
};

static const struct runtime *const runtimes[] = {[RUNTIME_AGENT_TEST] = &test_runtime};

/* ---------------------------------------------------------------- samples */

/* The name of a frame, depending on the frame's kind. */
static const char *name_of(struct bench *b, const struct cpu_stack *stack, size_t i)
{
	struct frame frame = stack->frames[i];
	struct symbol symbol;

	if (frame.image->kind == IMAGE_RUNTIME || frame.image->kind == IMAGE_BROKEN)
		return frame.image->function.name;
	frame.vaddr -= stack->return_address[i];
	assert_int_equal(symbolizer_find(b->symbolizer, &frame, &symbol), 0);
	return symbol.lines[symbol.n_lines - 1].function;
}

static void look(struct bench *b, const struct sample *sample, const struct cpu_stack *stack)
{
	const char *const *list = b->refused ? want_native : want;
	const struct fold_sample folded = cpu_stack_folded(stack);
	const size_t n_list = b->refused ? array_size(want_native) : array_size(want);
	size_t from = 0, n = 0;

	while (from < stack->n && strcmp(name_of(b, stack, from), list[0]) != 0)
		from++;
	if (from == stack->n) /* not in rt_inner() yet */
		return;
	while (n < n_list && from + n < stack->n &&
	       strcmp(name_of(b, stack, from + n), list[n]) == 0)
		n++;
	b->n += sample->count;
	b->whole += sample->end == SAMPLE_END_COMPLETE ? sample->count : 0;
	b->n_runtime += sample->n_runtime * sample->count;
	if (n < n_list) {
		b->odd += sample->count;
		for (size_t i = from; i < stack->n; i++)
			print_message(" %s", name_of(b, stack, i));
		print_message(" (%s, flags %x)\n", sample_stat_name(sample->end), sample->flags);
	}
	assert_int_equal(fold_add(b->fold, &folded, sample->count, sample->count), 0);
}

static void take(void *ctx, const struct sample *sample)
{
	struct cpu_stack stack = {.n = 0};
	struct bench *b = ctx;

	/* without a record and above the budget for copies, the kernel walks native frames only */
	if ((pid_t)sample->pid.pid != b->child || !sample->n_user ||
	    (sample->flags & SAMPLE_FLAG_NO_PROCESS))
		return;
	/* on a loaded machine the tables come late, and a deferred stack does not wait for ever */
	if (sample->end == SAMPLE_END_NO_TABLE)
		return;
	/* copied, and walked by the agent */
	if (b->refused && sample->n_runtime)
		return;
	assert_int_equal(cpu_sampler_resolve(b->on.sampler, sample, &stack), 0);
	cpu_sampler_settle(b->on.sampler, &stack);
	look(b, sample, &stack);
	symbolizer_release(b->symbolizer);
	cpu_stack_deinit(&stack);
}

static void take_none(void *ctx, const struct sample *sample)
{
	(void)ctx;
	(void)sample;
}

static int setup(void **state)
{
	struct bench *b = calloc(1, sizeof(*b));
	const struct symbolizer_opts symbols = {.proc = &b->on.proc, .cache_bytes = 16u << 20};

	assert_non_null(b);
	*state = bench_now = b;
	return sampling_open(&b->on) || symbolizer_new(&symbols, &b->symbolizer) ||
	       fold_new(&b->fold);
}

static int teardown(void **state)
{
	struct bench *b = *state;

	if (b->child) {
		kill(b->child, SIGKILL);
		waitpid(b->child, NULL, 0);
	}
	sampling_close(&b->on);
	fold_free(b->fold);
	symbolizer_free(b->symbolizer);
	runtime_agent_in_parts(false);
	runtime_agent_refused(false);
	free(b);
	return 0;
}

/* The runtime's frames are on the process's stack, and so in a copy of the stack, too. From GCC 13
 * on, ASan keeps variables outside of the stack, to find their use after the return. */
__attribute__((no_sanitize("address"))) static void
start(struct bench *b, const struct runtime *const *readers, size_t n_readers)
{
	struct runtime_test_frame frames[] = {
		{(uintptr_t)&frames[1], ALPHA, 11, 0},
		{(uintptr_t)&frames[2], BETA, 22, 1},
		{(uintptr_t)&frames[3], GAMMA, 33, 0},
		{0x10, DELTA, 44, 0}, /* nothing is there */
	};
	const struct runtime_test where = {
		.loop_start = (uintptr_t)__start_rt_loop_text,
		.loop_bytes = (uintptr_t)(__stop_rt_loop_text - __start_rt_loop_text),
		.frames = (uintptr_t)frames,
	};

	sampling_start(&b->on, (struct cpu_sampler_opts){
				       .rate_hz = RATE,
				       .scope = SETTINGS_SCOPE_PROCESSES,
				       .kernel_stacks = true,
				       .interval_ns = 100 * NSEC_PER_MSEC,
				       .off_cpu = b->sleeps,
				       .off_fn = take,
				       .fn = b->sleeps ? take_none : take,
				       .runtimes = readers,
				       .n_runtimes = n_readers,
				       .ctx = b,
			       });
	assert_int_equal(runtime_agent_set(oncpu_object(cpu_sampler_oncpu(b->on.sampler)), &where),
			 0);
	b->child = fork();
	if (b->child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		rt_outer(b->sleeps);
		sink += frames[0].function;
		_exit(0);
	}
	sampling_want(&b->on, b->child);
}

/* Copied stacks, walked by the agent. */
static uint64_t n_late(struct bench *b)
{
	return metrics_get(cpu_sampler_collect, b->on.sampler, "podprof_deferred_stacks",
			   "unwound");
}

/* WANT stacks walked by the kernel. */
static bool enough(void *ctx)
{
	struct bench *b = ctx;

	return b->n >= n_late(b) + WANT;
}

static bool enough_native(void *ctx)
{
	const struct bench *b = ctx;

	return b->n >= WANT;
}

/* ---------------------------------------------------------------- the profile */

/* Each sample has the functions in order. The runtime's have lines, and a mapping of their own. */
static void check_profile(struct bench *b)
{
	_cleanup_(buf_deinit) struct buf bytes = BUF_INIT(PPROF_MAX);
	const struct cpu_report_part part = {.fold = b->fold};
	const struct cpu_report_opts opts = {.kind = CPU_REPORT_TIME, .period = 1};
	struct cpu_report_stats stats;
	const struct pprof_tables *t;
	struct reader *reader;
	const char *why;
	size_t n_mappings = 0;

	assert_int_equal(cpu_report(&part, 1, b->symbolizer, &opts, &bytes, &stats), 0);
	assert_int_equal(reader_new(bytes.data, bytes.len, PPROF_MAX, &reader, &why), 0);
	t = reader_tables(reader);
	assert_true(t->n_samples > 0);
	for (size_t i = 0; i < t->n_samples; i++) {
		const struct pprof_sample_row *s = &t->samples[i];
		size_t n = 0;

		for (size_t k = 0; k < s->n_locations && n < array_size(want); k++) {
			const struct pprof_location_row *at = &t->locations[s->locations[k] - 1];
			const struct pprof_line *line = &at->lines[at->n_lines - 1];
			const struct pprof_function_row *f = &t->functions[line->function - 1];
			const char *path = t->strings[t->mappings[at->mapping - 1].path];

			if (strcmp(t->strings[f->name], want[n]) != 0) {
				assert_int_equal(n, 0);
				continue;
			}
			assert_int_equal(strcmp(path, "[test]") == 0, !strchr(want[n], '_'));
			if (strcmp(want[n], "gamma?") == 0) {
				assert_int_equal(line->line, 33);
				assert_int_equal(f->start_line, 10);
				assert_string_equal(t->strings[f->file], "lib/test.src");
				assert_int_equal(at->address, 0);
			}
			n++;
		}
		assert_int_equal(n, array_size(want));
	}
	for (size_t i = 0; i < t->n_mappings; i++)
		n_mappings += strcmp(t->strings[t->mappings[i].path], "[test]") == 0;
	assert_int_equal(n_mappings, 1);
	reader_free(reader);
}

static void check(struct bench *b)
{
	loop_until(b->on.loop, enough, b);
	cpu_sampler_finish(b->on.sampler);
	print_message("%llu samples, %llu whole, %llu odd; %llu walked here\n",
		      (unsigned long long)b->n, (unsigned long long)b->whole,
		      (unsigned long long)b->odd, (unsigned long long)n_late(b));
	assert_int_equal(b->odd, 0);
	assert_true(b->whole * 100 >= b->n * 95);
	assert_int_equal(b->n_runtime, 5 * b->n);
	check_profile(b);
}

static void check_verified(struct bench *b, const char *const names[2])
{
	const struct bpfobj *object = oncpu_object(cpu_sampler_oncpu(b->on.sampler));
	struct bpfobj_runtime loaded;
	size_t n = 0;

	assert_int_equal(bpfobj_load_runtime(object, RUNTIME_AGENT_TEST, &loaded), 0);
	for (size_t i = 0; i < loaded.verifier.n; i++)
		for (size_t k = 0; k < 2 && names[k]; k++)
			if (strcmp(loaded.verifier.programs[i].name, names[k]) == 0) {
				print_message("%s: %u instructions verified\n", names[k],
					      loaded.verifier.programs[i].insns);
				assert_in_range(loaded.verifier.programs[i].insns, 1,
						VERIFIED_INSNS_MAX);
				n++;
			}
	assert_int_equal(n, 1 + (names[1] != NULL));
	bpfobj_runtime_deinit(&loaded);
}

static void test_on_cpu(void **state)
{
	const uint64_t before = runtime_agent_copied();
	struct bench *b = *state;

	start(b, runtimes, array_size(runtimes));
	check_verified(b, (const char *const[2]){"oncpu_walk_test"});
	check(b);
	/* the first interval's stacks are copied: the process has no record yet */
	assert_true(runtime_agent_copied() > before);
}

static void test_in_parts(void **state)
{
	struct bench *b = *state;

	runtime_agent_in_parts(true);
	start(b, runtimes, array_size(runtimes));
	check_verified(b, (const char *const[2]){"oncpu_part_test"});
	check(b);
}

static void test_off_cpu(void **state)
{
	struct bench *b = *state;

	b->sleeps = true;
	start(b, runtimes, array_size(runtimes));
	check_verified(b, (const char *const[2]){"oncpu_walk_test", "offcpu_walk_test"});
	check(b);
}

static void test_off_cpu_in_parts(void **state)
{
	struct bench *b = *state;

	b->sleeps = true;
	runtime_agent_in_parts(true);
	start(b, runtimes, array_size(runtimes));
	check_verified(b, (const char *const[2]){"oncpu_part_test", "offcpu_part_test"});
	check(b);
}

static bool is_refused(void *ctx)
{
	struct bench *b = ctx;

	return metrics_get(cpu_sampler_collect, b->on.sampler, "podprof_bpf_refused_runtimes",
			   "") == 1;
}

/* All others are loaded, and the runtime's processes have native frames. */
static void test_refused(void **state)
{
	struct bpfobj_runtime loaded;
	struct bench *b = *state;

	b->refused = true;
	runtime_agent_refused(true);
	start(b, runtimes, array_size(runtimes));
	assert_int_equal(bpfobj_load_runtime(oncpu_object(cpu_sampler_oncpu(b->on.sampler)),
					     RUNTIME_AGENT_TEST, &loaded),
			 BPFOBJ_RUNTIME_REFUSED);
	print_message("%s\n", loaded.why);
	assert_int_equal(strncmp(loaded.why, "oncpu_walk_test: ", 17), 0);
	bpfobj_runtime_deinit(&loaded);
	loop_until(b->on.loop, enough_native, b);
	loop_until(b->on.loop, is_refused, b);
	cpu_sampler_finish(b->on.sampler);
	assert_int_equal(b->odd, 0);
	assert_true(b->whole * 100 >= b->n * 95);
	assert_int_equal(b->n_runtime, 0);
}

static bool is_drained(void *ctx)
{
	const struct bench *b = ctx;

	return cpu_sampler_drains(b->on.sampler) > 0;
}

/* A process that has just begun may end before its names are read: with its runtime the samples
 * come soon, and not after the interval of an hour. */
static void test_soon(void **state)
{
	struct bench *b = *state;
	struct address_space_who who = {.exec_id = 1, .start_ns = 1};

	assert_int_equal(pid_read(&b->on.proc, getpid(), &who.pid), 0);
	sampling_start(&b->on, (struct cpu_sampler_opts){
				       .rate_hz = 1, /* the maps have room for the interval */
				       .scope = SETTINGS_SCOPE_PROCESSES,
				       .interval_ns = 3600 * NSEC_PER_SEC,
				       .fn = take_none,
				       .runtimes = runtimes,
				       .n_runtimes = array_size(runtimes),
				       .ctx = b,
			       });
	b->host.found(b->host.ctx, RUNTIME_AGENT_TEST, &who);
	loop_until(b->on.loop, is_drained, b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_soon, setup, teardown),
		cmocka_unit_test_setup_teardown(test_on_cpu, setup, teardown),
		cmocka_unit_test_setup_teardown(test_in_parts, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(test_off_cpu, setup, teardown),
		cmocka_unit_test_setup_teardown(test_off_cpu_in_parts, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
