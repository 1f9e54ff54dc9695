// SPDX-License-Identifier: Apache-2.0
/*
 * The common part of the readers, with a runtime of the test: each process has it, and the function
 * at STUCK is read from a file system that does not answer.
 */
#include "support/test.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/loop.h"
#include "base/root.h"
#include "discovery/pid.h"
#include "procmap/address_space.h"
#include "procmap/memory.h"
#include "runtimes/runtime_budget.h"
#include "runtimes/runtime_files.h"
#include "runtimes/runtime_hung.h"
#include "runtimes/runtime_job.h"
#include "runtimes/runtime_reader.h"
#include "support/metrics.h"
#include "support/ownspace.h"
#include "support/threads.h"
#include "support/until.h"

#define STUCK	    16
#define ANSWERING   32
#define HUNG	    6 /* processes with a function at STUCK */
#define LARGE	    (1ull << 40)
#define LARGE_BYTES (64 << 10)

/* What the file system answers: nothing, until the test closes its end. */
static int stuck[2];
/* The next job is stuck before it looks at anything. */
static _Atomic bool is_late;

/* Reads that were answered. Read after the end of their threads, it orders all that they did
 * before, also for ThreadSanitizer. */
static _Atomic unsigned int n_answered;

static void read_stuck(void)
{
	char byte;

	assert_int_equal(read(stuck[0], &byte, 1), 0);
	n_answered++;
}

static bool refuses(const struct runtime_hung *hung, uint64_t owner)
{
	if (atomic_exchange(&is_late, false))
		read_stuck();
	return runtime_hung_refuses(hung, owner);
}

#define runtime_hung_refuses refuses
#include "runtimes/runtime_job.c" // NOLINT(bugprone-suspicious-include)
#undef runtime_hung_refuses

struct fixture {
	struct root proc;
	struct loop *loop;
	struct address_space_cache *spaces;
	struct pid_id self;
	struct runtime_budget budget;
	void *reader;
	void *other;   /* of another runtime */
	void *more[2]; /* of a test alone */
	uint64_t n_found;
	uint64_t n_expected;
	uint64_t start_ns; /* of the process to wait for */
	uint64_t function;
};

/* ---------------------------------------------------------------- the runtime */

enum { OUTCOME_OK, OUTCOME_ABSENT, OUTCOME_ODD, OUTCOME_EARLY, OUTCOME_MAX };

/* Each file may have the runtime, so that find() is called. */
static int any_probe(const struct elffile *ef, void *ret)
{
	(void)ef;
	(void)ret;
	return OUTCOME_ODD;
}

static const struct runtime_probe probe = {.probe = any_probe,
					   .bytes = 1,
					   .malformed = OUTCOME_ODD,
					   .gone = OUTCOME_ODD,
					   .denied = OUTCOME_ODD};

static const char *name_of(int outcome)
{
	return outcome ? "odd" : "walked";
}

static bool never(int outcome)
{
	(void)outcome;
	return false;
}

static int find(struct runtime_files *files, const struct root *proc, const struct pid_id *id,
		void *ret)
{
	(void)files;
	(void)proc;
	(void)id;
	memset(ret, 1, 1);
	return OUTCOME_OK;
}

static const void *record(const void *target)
{
	return target;
}

static void version(const void *target, char ret[RUNTIME_VERSION_BYTES])
{
	(void)target;
	strcpy(ret, "1");
}

static int read_function(struct memory *m, const void *target, const uint64_t words[2], void *ret)
{
	(void)m;
	(void)target;
	if (words[0] == STUCK)
		read_stuck();
	memset(ret, words[0] >= LARGE ? 2 : 1, 1);
	return 0;
}

static void deinit(void *function)
{
	(void)function;
}

static size_t size_of(const void *function)
{
	return *(const char *)function == 2 ? LARGE_BYTES : 0;
}

static void place(const void *function, uint32_t at, struct runtime_place *ret)
{
	(void)function;
	*ret = (struct runtime_place){.function = {.name = "f", .file = ""}, .line = at};
}

static const struct runtime_reader_kind kind = {
	.name = "test",
	.runtime = FRAME_RUNTIME_PYTHON,
	.records = 1 << 16,
	.states = OUTCOME_MAX,
	.unreadable = OUTCOME_ODD,
	.state_name = name_of,
	.may_change = never,
	.probe = &probe,
	.target_bytes = 1,
	.find = find,
	.record = record,
	.version = version,
	.function_bytes = 1,
	.read = read_function,
	.function_deinit = deinit,
	.function_size = size_of,
	.place = place,
};

/* ---------------------------------------------------------------- life */

static void on_found(void *ctx, uint32_t runtime, const struct address_space_who *who)
{
	struct fixture *f = ctx;

	(void)runtime;
	(void)who;
	f->n_found++;
}

static void on_expected(void *ctx, uint32_t runtime)
{
	struct fixture *f = ctx;

	assert_int_equal(runtime, kind.runtime);
	f->n_expected++;
}

static void on_named(void *ctx, uint64_t pid)
{
	(void)ctx;
	(void)pid;
}

static struct runtime_host host_of(struct fixture *f)
{
	return (struct runtime_host){.proc = &f->proc,
				     .loop = f->loop,
				     .budget = &f->budget,
				     .found = on_found,
				     .expected = on_expected,
				     .named = on_named,
				     .ctx = f};
}

/* One more reader, until the end of the test: its thread ends if the test fails, too. */
static void *another(struct fixture *f, const struct runtime_reader_kind *of)
{
	static struct runtime_reader_kind kinds[array_size(f->more)];
	const struct runtime_host host = host_of(f);
	const size_t i = f->more[0] ? 1 : 0;

	assert_null(f->more[i]);
	kinds[i] = *of;
	assert_int_equal(runtime_reader_new(&kinds[i], &host, &f->more[i]), 0);
	return f->more[i];
}

static void free_more(struct fixture *f)
{
	for (size_t i = 0; i < array_size(f->more); i++) {
		runtime_reader_free(f->more[i]);
		f->more[i] = NULL;
	}
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct runtime_host host;

	assert_non_null(f);
	assert_int_equal(pipe(stuck), 0);
	assert_int_equal(root_open("/proc", &f->proc), 0);
	assert_int_equal(loop_new(&f->loop), 0);
	assert_int_equal(address_space_cache_new(&f->proc, &f->spaces), 0);
	assert_int_equal(pid_read(&f->proc, getpid(), &f->self), 0);
	host = host_of(f);
	assert_int_equal(runtime_reader_new(&kind, &host, &f->reader), 0);
	assert_int_equal(runtime_reader_new(&kind, &host, &f->other), 0);
	*state = f;
	return 0;
}

static void answer(void)
{
	if (stuck[1] >= 0)
		close(stuck[1]);
	stuck[1] = -1;
}

/* Abandoned threads go on after the end of all that the reader borrows. */
static int teardown(void **state)
{
	struct fixture *f = *state;

	runtime_reader_free(f->reader);
	runtime_reader_free(f->other);
	free_more(f);
	assert_int_equal(f->budget.n_bytes, 0);
	assert_null(f->budget.owners);
	assert_null(f->budget.members);
	runtime_budget_deinit(&f->budget);
	address_space_cache_free(f->spaces);
	loop_free(f->loop);
	root_deinit(&f->proc);
	free(f);
	answer();
	threads_wait();
	(void)atomic_load(&n_answered);
	close(stuck[0]);
	return 0;
}

static struct address_space_who who_of(const struct fixture *f, uint64_t start_ns, uint64_t exec_id)
{
	return (struct address_space_who){.pid = f->self, .start_ns = start_ns, .exec_id = exec_id};
}

static bool is_idle(void *ctx)
{
	struct fixture *f = ctx;

	return !runtime_reader_pending(f->reader);
}

static void collect(void *reader, struct metric_sink *sink)
{
	static const struct metric_family_desc desc = {"processes", METRIC_GAUGE, "", NULL};

	metric_family(sink, &desc);
	runtime_reader_collect(reader, RUNTIME_FAMILY_PROCESSES, sink);
}

static uint64_t n_of(const struct fixture *f, const char *labels)
{
	return metrics_get(collect, f->reader, "processes", labels);
}

/* ---------------------------------------------------------------- programs */

static bool is_swept(void *ctx)
{
	struct fixture *f = ctx;

	if (n_of(f, "test,1,walked") == 1)
		return true;
	runtime_reader_sweep(f->reader);
	return false;
}

struct turns {
	size_t n;
};

static bool are_over(void *ctx)
{
	struct turns *turns = ctx;

	return !turns->n || !--turns->n;
}

/* A process that executes one program after the other: the earlier ones are forgotten, though the
 * process lives, also if the last program has another runtime. */
static void test_exec(void **state)
{
	struct fixture *f = *state;
	struct address_space *space = ownspace(f->spaces, 1);
	struct address_space_who who;

	for (uint64_t i = 1; i <= 100; i++) {
		who = who_of(f, 1, i);
		runtime_reader_saw(f->reader, &who);
		assert_false(runtime_reader_runs(f->reader, &who, space));
		loop_until(f->loop, is_idle, f);
		assert_true(runtime_reader_runs(f->reader, &who, space));
	}
	assert_int_equal(n_of(f, "test,1,walked"), 100);
	runtime_reader_sweep(f->reader);
	loop_until(f->loop, are_over, &(struct turns){200});
	who = who_of(f, 1, 99);
	assert_non_null(runtime_reader_record(f->reader, &who)); /* for its last samples */
	loop_until(f->loop, is_swept, f);
	assert_null(runtime_reader_record(f->reader, &who));
	who = who_of(f, 1, 100);
	assert_non_null(runtime_reader_record(f->reader, &who));

	/* a second process, and the first executes a program that this reader never sees */
	who = who_of(f, 2, 7);
	assert_false(runtime_reader_runs(f->reader, &who, space));
	loop_until(f->loop, is_idle, f);
	assert_int_equal(n_of(f, "test,1,walked"), 2);
	who = who_of(f, 1, 101);
	runtime_reader_saw(f->reader, &who);
	loop_until(f->loop, is_swept, f);
	who = who_of(f, 2, 7);
	assert_non_null(runtime_reader_record(f->reader, &who));
}

/* ---------------------------------------------------------------- attempts */

/* Calls of find(), on the readers' threads. */
static _Atomic unsigned int n_late, n_partial;

static int find_late(struct runtime_files *files, const struct root *proc, const struct pid_id *id,
		     void *ret)
{
	(void)find(files, proc, id, ret);
	n_late++;
	return OUTCOME_EARLY;
}

static bool always(int outcome)
{
	(void)outcome;
	return true;
}

static bool is_early(int outcome)
{
	return outcome == OUTCOME_EARLY;
}

static int find_partial(struct runtime_files *files, const struct root *proc,
			const struct pid_id *id, void *ret)
{
	n_partial++;
	return find(files, proc, id, ret);
}

static bool is_partial(const void *target)
{
	(void)target;
	return true;
}

static bool is_third(void *ctx)
{
	(void)ctx;
	return n_partial >= 3;
}

/* A process that does not run its runtime yet is tried again within a fraction of a second, and
 * one that lacks a part after one second and two. Before the third of these, the first has eight
 * attempts: three of them in its first 70 ms. The first tells each time that it will run the
 * runtime. */
static void test_attempts(void **state)
{
	struct runtime_reader_kind late = kind, partial = kind;
	struct fixture *f = *state;
	const struct address_space_who who = who_of(f, 1, 1);
	void *readers[2];

	late.find = find_late;
	late.may_change = always;
	late.is_expected = is_early;
	partial.find = find_partial;
	partial.is_partial = is_partial;
	partial.is_expected = is_early;
	readers[0] = another(f, &partial);
	readers[1] = another(f, &late);
	for (size_t i = 0; i < array_size(readers); i++)
		assert_false(runtime_reader_runs(readers[i], &who, ownspace(f->spaces, 1)));
	loop_until(f->loop, is_third, f);
	free_more(f);
	print_message("%u attempts\n", n_late);
	assert_true(n_late >= 8);
	/* the last one may not have come back */
	assert_in_range(f->n_expected, n_late - 1, n_late);
}

/* Of one owner, few processes have attempts within milliseconds, and others still may. */
static void test_quick_attempts(void **state)
{
	static const uint64_t owners[] = {1, 1, 1, 2};
	static const bool wants[] = {true, true, false, true};
	struct runtime_process *p[array_size(owners)];
	struct fixture *f = *state;
	struct runtime_processes m;

	runtime_processes_init(&m, &kind, &f->budget);
	for (size_t i = 0; i < array_size(owners); i++) {
		const struct address_space_who who = who_of(f, i + 1, 1);

		p[i] = runtime_process_new(&m, &who, owners[i]);
		assert_non_null(p[i]);
		assert_int_equal(runtime_process_take_quick(&m, p[i]), wants[i]);
	}
	runtime_process_put_quick(&m, p[0]);
	runtime_process_put_quick(&m, p[0]);
	assert_true(runtime_process_take_quick(&m, p[2]));
	runtime_process_drop(&m, p[1]); /* gives its place back */
	assert_true(runtime_process_take_quick(&m, p[0]));
	runtime_processes_deinit(&m);
	assert_int_equal(m.n_quick, 0);
	assert_null(m.quick);
}

/* ---------------------------------------------------------------- memory that does not answer */

static void attach(struct fixture *f, uint64_t owner, uint64_t start_ns)
{
	const struct address_space_who who = who_of(f, start_ns, 1);

	assert_false(runtime_reader_runs(f->reader, &who, ownspace(f->spaces, owner)));
	loop_until(f->loop, is_idle, f);
	assert_true(runtime_reader_runs(f->reader, &who, ownspace(f->spaces, owner)));
}

static bool wants(struct fixture *f, uint64_t start_ns, uint64_t function)
{
	const struct frame_record frame = {.kind = FRAME_RUNTIME, .words = {function, 0}};
	const struct address_space_who who = who_of(f, start_ns, 1);

	return runtime_reader_wants(f->reader, &who, &frame);
}

static bool is_named(void *ctx)
{
	struct fixture *f = ctx;
	const struct frame_record frame = {.kind = FRAME_RUNTIME, .words = {f->function, 0}};
	const struct address_space_who who = who_of(f, f->start_ns, 1);
	struct runtime_place place;

	(void)wants(f, f->start_ns, f->function);
	runtime_reader_flush(f->reader);
	return !runtime_reader_frame_name(f->reader, &who, &frame, &place);
}

/* Functions that were read from a later process with the same pid are no one's. */
static void test_reused_pid(void **state)
{
	const struct frame_record frame = {.kind = FRAME_RUNTIME, .words = {ANSWERING, 0}};
	struct fixture *f = *state;
	struct address_space_who who;
	struct runtime_place got;

	for (uint64_t later = 0; later < 2; later++) {
		f->self.start_ticks += later;
		who = who_of(f, 10 + later, 1);
		attach(f, 1, 10 + later);
		assert_true(wants(f, 10 + later, ANSWERING));
		runtime_reader_flush(f->reader);
		loop_until(f->loop, is_idle, f);
		assert_int_equal(runtime_reader_frame_name(f->reader, &who, &frame, &got),
				 later ? RUNTIME_GONE : 0);
		f->self.start_ticks -= later;
	}
}

/* The processes of owner 1 block all threads that they may, and one of owner 2 is still read. */
static void block(struct fixture *f)
{
	for (uint64_t i = 1; i <= HUNG; i++)
		attach(f, 1, i);
	attach(f, 2, 100);
	for (uint64_t i = 1; i <= HUNG; i++)
		assert_true(wants(f, i, STUCK));
	assert_true(wants(f, 100, ANSWERING));
	runtime_reader_flush(f->reader);
	f->start_ns = 100;
	f->function = ANSWERING;
	loop_until(f->loop, is_named, f);
}

static void test_hung_owner(void **state)
{
	struct fixture *f = *state;

	block(f);
	/* no sample waits for the owner, and a new process of it is not looked at */
	assert_int_equal(n_of(f, "test,1,slow"), HUNG);
	assert_false(wants(f, HUNG, STUCK));
	assert_false(wants(f, HUNG, ANSWERING));
	attach(f, 2, 101);

	/* the memory answers: the other processes are read */
	answer();
	f->start_ns = HUNG;
	loop_until(f->loop, is_named, f);
	f->function = STUCK;
	loop_until(f->loop, is_named, f);
	assert_int_equal(n_of(f, "test,1,slow"), 2);
}

/* A process that the owner starts meanwhile is looked at when the memory answers. */
static void test_hung_probe(void **state)
{
	struct fixture *f = *state;
	const struct address_space_who late = who_of(f, 50, 1);

	block(f);
	assert_false(runtime_reader_runs(f->reader, &late, ownspace(f->spaces, 1)));
	loop_until(f->loop, is_idle, f);
	assert_false(runtime_reader_runs(f->reader, &late, ownspace(f->spaces, 1)));
	answer();
	f->start_ns = 50;
	loop_until(f->loop, is_named, f);
	assert_true(runtime_reader_runs(f->reader, &late, ownspace(f->spaces, 1)));
}

/* A job that is abandoned before it has begun keeps the files of its thread. */
static void test_hung_begin(void **state)
{
	struct fixture *f = *state;

	attach(f, 1, 1);
	attach(f, 2, 100);
	is_late = true;
	assert_true(wants(f, 1, ANSWERING));
	runtime_reader_flush(f->reader);
	loop_until(f->loop, is_idle, f);
	assert_int_equal(n_of(f, "test,1,slow"), 1);
	f->start_ns = 100;
	f->function = ANSWERING;
	loop_until(f->loop, is_named, f); /* by the next thread */
	answer();
	while (threads_named(kind.name) > 2) /* of this reader and of the other */
		usleep(1000);
	f->function = 2 * ANSWERING;
	loop_until(f->loop, is_named, f);
}

/* The reader ends before the memory answers: teardown(). */
static void test_hung_end(void **state)
{
	block(*state);
}

/* ---------------------------------------------------------------- functions that are read by place
 */

#define STUB	 40 /* without lines */
#define LATE_BIT 8  /* of a place: the memory is gone */

static bool any_place(const uint64_t words[2], uint64_t ret[2])
{
	ret[0] = words[0] | 1;
	ret[1] = words[1] >> 32 << 32;
	return true;
}

static int read_place(struct memory *m, const void *target, const uint64_t words[2], void *ret)
{
	(void)m;
	(void)target;
	if (words[1] & LATE_BIT)
		return OUTCOME_ODD;
	memset(ret, words[0] == STUB ? 0 : 3, 1);
	return 0;
}

static void place_of(const void *function, uint32_t at, struct runtime_place *ret)
{
	static const struct runtime_place inlined = {.function = {.name = "inner", .file = ""}};

	*ret = (struct runtime_place){.function = {.name = "f", .file = "", .start_line = 5},
				      .line = at,
				      .inlined = &inlined,
				      .n_inlined = 1};
	if (!*(const char *)function)
		ret->function.start_line = 0;
}

/* The name of the function @function with the check @check at the place @at, read first. */
static int name_at(struct fixture *f, void *reader, uint64_t function, uint64_t check, uint64_t at,
		   struct runtime_place *ret)
{
	const struct frame_record frame = {.kind = FRAME_RUNTIME,
					   .words = {function, check << 32 | at}};
	const struct address_space_who who = who_of(f, 1, 1);

	(void)runtime_reader_wants(reader, &who, &frame);
	runtime_reader_flush(reader);
	while (runtime_reader_pending(reader))
		loop_until(f->loop, are_over, &(struct turns){1});
	return runtime_reader_frame_name(reader, &who, &frame, ret);
}

/* ---------------------------------------------------------------- long chains */

static size_t n_links;

/* Follows a chain without an end. */
static int read_chain(struct memory *m, const void *target, const uint64_t words[2], void *ret)
{
	uint64_t link;

	(void)target;
	(void)words;
	memset(ret, 1, 1);
	for (n_links = 0; n_links < 100000; n_links++)
		if (memory_read(m, (uint64_t)(uintptr_t)&kind, &link, sizeof(link)))
			return OUTCOME_ODD;
	return 0;
}

/* A function ends with its number of reads, and the next one has as many. */
static void test_chain(void **state)
{
	struct fixture *f = *state;
	struct runtime_reader_kind of_chains = kind;
	const struct address_space_who who = who_of(f, 1, 1);
	struct runtime_place found;
	void *reader;

	of_chains.read = read_chain;
	reader = another(f, &of_chains);
	assert_false(runtime_reader_runs(reader, &who, ownspace(f->spaces, 1)));
	while (runtime_reader_pending(reader))
		loop_until(f->loop, are_over, &(struct turns){1});
	for (int i = 0; i < 2; i++) {
		assert_int_equal(name_at(f, reader, i ? 128 : 64, 1, 7, &found), RUNTIME_GONE);
		assert_int_equal(n_links, RUNTIME_FUNCTION_READS_MAX);
	}
}

/* A frame whose place cannot be read any more has the function that was read at another place, if
 * its check is the same, and no line. */
static void test_place(void **state)
{
	struct fixture *f = *state;
	struct runtime_reader_kind by_place = kind;
	const struct address_space_who who = who_of(f, 1, 1);
	struct runtime_place place;
	void *reader;

	by_place.any_place = any_place;
	by_place.read = read_place;
	by_place.place = place_of;
	reader = another(f, &by_place);
	assert_false(runtime_reader_runs(reader, &who, ownspace(f->spaces, 1)));
	while (runtime_reader_pending(reader))
		loop_until(f->loop, are_over, &(struct turns){1});

	assert_int_equal(name_at(f, reader, 64, 1, LATE_BIT, &place), RUNTIME_GONE);
	assert_int_equal(name_at(f, reader, 64, 1, 7, &place), 0);
	assert_int_equal(place.line, 7);
	assert_int_equal(place.n_inlined, 1);
	assert_int_equal(name_at(f, reader, 64, 1, LATE_BIT, &place), RUNTIME_NO_PLACE);
	assert_string_equal(place.function.name, "f");
	assert_int_equal(place.function.start_line, 5);
	assert_int_equal(place.line, 0);
	assert_int_equal(place.n_inlined, 0);
	/* another function at the address, and another address */
	assert_int_equal(name_at(f, reader, 64, 2, LATE_BIT, &place), RUNTIME_GONE);
	assert_int_equal(name_at(f, reader, 72, 1, LATE_BIT, &place), RUNTIME_GONE);
	/* a stub's name is the place's */
	assert_int_equal(name_at(f, reader, STUB, 1, 7, &place), 0);
	assert_int_equal(name_at(f, reader, STUB, 1, LATE_BIT, &place), RUNTIME_GONE);
}

/* ---------------------------------------------------------------- replaced code */

#define FREED 99

/* The number of the code at each address, in the memory of the process. */
static volatile uint64_t code_number;
static int n_code_reads;

static int read_code(struct memory *m, const void *target, const uint64_t words[2], void *ret)
{
	(void)m;
	(void)target;
	(void)words;
	n_code_reads++;
	if (code_number == FREED)
		return OUTCOME_ODD;
	memset(ret, (int)code_number, 1);
	return 0;
}

static void proof_of_code(const void *function, struct runtime_proof *ret)
{
	ret->n = 1;
	ret->words[0].at = (uintptr_t)&code_number;
	ret->words[0].word = *(const uint8_t *)function;
}

static void place_of_code(const void *function, uint32_t at, struct runtime_place *ret)
{
	(void)at;
	*ret = (struct runtime_place){.function = {.name = "f", .file = ""},
				      .line = *(const uint8_t *)function};
}

/* A function whose code is replaced at the same address is read again. If it cannot be read, it has
 * no name. */
static void test_replaced(void **state)
{
	static const struct {
		uint64_t number;
		int outcome, n_reads;
	} steps[] = {
		{5, 0, 1}, {5, 0, 1}, {6, 0, 2}, {6, 0, 2}, {FREED, RUNTIME_GONE, 3},
	};
	struct fixture *f = *state;
	struct runtime_reader_kind of_code = kind;
	const struct address_space_who who = who_of(f, 1, 1);
	const struct runtime_host host = host_of(f);
	struct runtime_place place;
	void *reader;

	of_code.read = read_code;
	of_code.place = place_of_code;
	of_code.proof = proof_of_code;
	n_code_reads = 0;
	assert_int_equal(runtime_reader_new(&of_code, &host, &reader), 0);
	assert_false(runtime_reader_runs(reader, &who, ownspace(f->spaces, 1)));
	while (runtime_reader_pending(reader))
		loop_until(f->loop, are_over, &(struct turns){1});
	for (size_t i = 0; i < array_size(steps); i++) {
		code_number = steps[i].number;
		assert_int_equal(name_at(f, reader, 64, 1, 7, &place), steps[i].outcome);
		assert_int_equal(n_code_reads, steps[i].n_reads);
		if (steps[i].outcome)
			continue;
		assert_int_equal(place.line, steps[i].number);
		assert_true(place.until_ns);
	}
	runtime_reader_free(reader);
	assert_int_equal(f->budget.n_bytes, 0);
}

/* ---------------------------------------------------------------- memory of names */

/* Functions [@from, @from + @n) of a process of a reader, a sample in each. */
struct group {
	struct fixture *f;
	void *reader;
	uint64_t start_ns;
	uint64_t from;
	size_t n;
};

static bool is_wanted(const struct group *g, uint64_t i)
{
	const struct frame_record frame = {.kind = FRAME_RUNTIME, .words = {g->from + i, 0}};
	const struct address_space_who who = who_of(g->f, g->start_ns, 1);

	return runtime_reader_wants(g->reader, &who, &frame);
}

static size_t n_named(const struct group *g)
{
	const struct address_space_who who = who_of(g->f, g->start_ns, 1);
	struct runtime_place place;
	size_t n = 0;

	for (uint64_t i = 0; i < g->n; i++) {
		const struct frame_record frame = {.kind = FRAME_RUNTIME,
						   .words = {g->from + i, 0}};

		n += !runtime_reader_frame_name(g->reader, &who, &frame, &place);
	}
	return n;
}

static bool are_read(void *ctx)
{
	const struct group *g = ctx;

	return !runtime_reader_pending(g->reader);
}

/* A sample of each function, until all are read. */
static void sample(struct group *g)
{
	for (uint64_t i = 0; i < g->n; i++)
		(void)is_wanted(g, i);
	runtime_reader_flush(g->reader);
	loop_until(g->f->loop, are_read, g);
}

static struct group group(struct fixture *f, void *reader, uint64_t owner, uint64_t from, size_t n)
{
	const struct address_space_who who = who_of(f, owner, 1);
	struct group g = {f, reader, owner, from, n};

	if (!runtime_reader_record(reader, &who)) {
		assert_false(runtime_reader_runs(reader, &who, ownspace(f->spaces, owner)));
		loop_until(f->loop, are_read, &g);
	}
	return g;
}

static void collect_evictions(void *reader, struct metric_sink *sink)
{
	static const struct metric_family_desc desc = {"evictions", METRIC_COUNTER, "", NULL};

	metric_family(sink, &desc);
	runtime_reader_collect(reader, RUNTIME_FAMILY_EVICTED, sink);
}

/* A program that makes functions all the time, four times more than there is room for, loses its
 * own functions. Its neighbours, of the same runtime and of another, keep theirs. */
static void test_budget(void **state)
{
	struct fixture *f = *state;
	struct group near = group(f, f->reader, 2, 1000, 500);
	struct group far = group(f, f->other, 3, 1000, 500);
	struct group large = group(f, f->other, 4, LARGE, 40); /* 2.5 MiB */
	struct group flood = group(f, f->reader, 1, LARGE, 64);

	sample(&near);
	sample(&far);
	sample(&large);
	for (size_t i = 0; i < 32; i++, flood.from += flood.n) {
		sample(&flood);
		assert_true(f->budget.n_bytes <=
			    RUNTIME_BUDGET_BYTES_MAX + flood.n * (LARGE_BYTES + 4096));
		assert_int_equal(n_named(&flood), flood.n); /* its last */
		assert_int_equal(n_named(&near), near.n);
		assert_int_equal(n_named(&far), far.n);
		assert_int_equal(n_named(&large), large.n);
	}
	assert_true(f->budget.n_bytes > RUNTIME_BUDGET_BYTES_MAX / 2);
	assert_true(metrics_get(collect_evictions, f->reader, "evictions", "test") > 1000);
	assert_int_equal(metrics_get(collect_evictions, f->other, "evictions", "test"), 0);
}

static void sweep(struct fixture *f)
{
	runtime_reader_sweep(f->reader);
	loop_until(f->loop, are_over, &(struct turns){50});
}

/* Functions that are in no sample any more go first. */
static void test_budget_idle(void **state)
{
	struct fixture *f = *state;
	struct group old = group(f, f->reader, 1, LARGE, 200);
	struct group used = group(f, f->reader, 1, LARGE + 1000, 200);
	struct group new = group(f, f->reader, 1, LARGE + 2000, 150);
	struct group last = group(f, f->reader, 1, LARGE + 3000, 1);

	sample(&old);
	sample(&used);
	for (size_t i = 0; i < 2; i++) {
		sample(&used);
		sweep(f);
	}
	sample(&used);
	sample(&new); /* above the ceiling now */
	assert_int_equal(n_named(&old), old.n);
	sample(&last);
	assert_int_equal(n_named(&old), 0);
	assert_int_equal(n_named(&used), used.n);
	assert_int_equal(n_named(&new), new.n);
	assert_int_equal(n_named(&last), 1);

	/* read again with the next sample */
	sample(&old);
	assert_int_equal(n_named(&old), old.n);
}

/* Memory that is common to all counts, too. */
static void test_budget_common(void **state)
{
	struct fixture *f = *state;
	struct group first = group(f, f->reader, 1, LARGE, 200); /* 12.5 MiB */
	struct group second = group(f, f->other, 2, LARGE, 1);

	sample(&first);
	f->budget.n_common = (size_t)18 << 20;
	sample(&second);
	assert_int_equal(n_named(&first), first.n);
	f->budget.n_common = (size_t)20 << 20;
	second.from++;
	sample(&second);
	assert_int_equal(n_named(&first), 0);
	assert_int_equal(n_named(&second), 1);
	f->budget.n_common = (size_t)40 << 20; /* nothing helps, and the search ends */
	sample(&first);
	assert_int_equal(n_named(&first), first.n);
	assert_int_equal(n_named(&second), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_exec),	   TEST(test_reused_pid), TEST(test_attempts),
		TEST(test_quick_attempts), TEST(test_hung_owner), TEST(test_hung_probe),
		TEST(test_hung_begin),	   TEST(test_hung_end),	  TEST(test_place),
		TEST(test_chain),	   TEST(test_budget),	  TEST(test_budget_idle),
		TEST(test_budget_common),  TEST(test_replaced)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
