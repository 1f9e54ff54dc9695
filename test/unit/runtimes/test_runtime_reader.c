// SPDX-License-Identifier: Apache-2.0
/*
 * The common part of the readers, with a runtime of the test: each process has it, and the function
 * at STUCK is read from a file system that does not answer.
 */
#include "support/test.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/loop.h"
#include "base/root.h"
#include "discovery/pid.h"
#include "procmap/address_space.h"
#include "runtimes/runtime_files.h"
#include "runtimes/runtime_reader.h"
#include "support/metrics.h"
#include "support/ownspace.h"
#include "support/threads.h"
#include "support/until.h"

#define STUCK	  16
#define ANSWERING 32
#define HUNG	  6 /* processes with a function at STUCK */

/* What the file system answers: nothing, until the test closes its end. */
static int stuck[2];

struct fixture {
	struct root proc;
	struct loop *loop;
	struct address_space_cache *spaces;
	struct pid_id self;
	void *reader;
	uint64_t n_found;
	uint64_t start_ns; /* of the process to wait for */
	uint64_t function;
};

/* ---------------------------------------------------------------- the runtime */

enum { OUTCOME_OK, OUTCOME_ABSENT, OUTCOME_ODD, OUTCOME_MAX };

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
	char byte;

	(void)m;
	(void)target;
	if (words[0] == STUCK)
		assert_int_equal(read(stuck[0], &byte, 1), 0);
	memset(ret, 1, 1);
	return 0;
}

static void deinit(void *function)
{
	(void)function;
}

static size_t no_size(const void *function)
{
	(void)function;
	return 0;
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
	.function_size = no_size,
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

static void on_named(void *ctx, uint64_t pid)
{
	(void)ctx;
	(void)pid;
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
	host = (struct runtime_host){
		.proc = &f->proc, .loop = f->loop, .found = on_found, .named = on_named, .ctx = f};
	assert_int_equal(runtime_reader_new(&kind, &host, &f->reader), 0);
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
	address_space_cache_free(f->spaces);
	loop_free(f->loop);
	root_deinit(&f->proc);
	free(f);
	answer();
	threads_wait();
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

/* The reader ends before the memory answers: teardown(). */
static void test_hung_end(void **state)
{
	block(*state);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {TEST(test_exec), TEST(test_hung_owner),
					   TEST(test_hung_probe), TEST(test_hung_end)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
