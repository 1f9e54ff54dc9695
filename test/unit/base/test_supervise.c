// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/nsec.h"
#include "base/supervise.h"
#include "support/threads.h"

#define SHORT_NS (50 * NSEC_PER_MSEC)
#define LONG_NS	 (600 * NSEC_PER_SEC) /* only ends a failing test */

/* The started process of a test: it supervises, and both processes write lines to @says. */
struct started {
	pid_t pid;
	FILE *says;
};

struct work {
	int says;
	sem_t ready;
	int (*run)(struct work *work);
};

static void say(const struct work *work, const char *line)
{
	assert_int_equal(write(work->says, line, strlen(line)), strlen(line));
}

static int run(void *ctx)
{
	struct work *work = ctx;

	return work->run(work);
}

static void on_forced(void *ctx, enum supervise_forced how, const char *threads)
{
	const char *text = how == SUPERVISE_KILLED ? "killed " : "stuck ";

	say(ctx, text);
	say(ctx, threads);
	say(ctx, "\n");
}

static void on_starved(void *ctx)
{
	say(ctx, "starved\n");
}

static void start(struct started *s, int (*work)(struct work *), uint64_t grace_ns,
		  uint64_t leave_ns)
{
	int pipe_fds[2], status = -1;

	assert_int_equal(pipe(pipe_fds), 0);
	fflush(NULL);
	s->pid = fork();
	assert_true(s->pid >= 0);
	if (s->pid == 0) {
		struct work ctx = {.says = pipe_fds[1], .run = work};
		const struct supervise_opts opts = {
			.run = run,
			.forced = on_forced,
			.starved = on_starved,
			.ctx = &ctx,
			.grace_ns = grace_ns,
			.leave_ns = leave_ns,
			.starved_ns = LONG_NS,
		};

		close(pipe_fds[0]);
		sem_init(&ctx.ready, 0, 0);
		/* a container's first process has the orphans as well */
		prctl(PR_SET_CHILD_SUBREAPER, 1);
		_exit(supervise(&opts, &status) ? 99 : status);
	}
	close(pipe_fds[1]);
	s->says = fdopen(pipe_fds[0], "r");
	assert_non_null(s->says);
}

static void assert_line(struct started *s, const char *want)
{
	char line[512] = "";

	assert_non_null(fgets(line, sizeof(line), s->says));
	line[strcspn(line, "\n")] = '\0';
	assert_string_equal(line, want);
}

/* The end of both processes: nobody else has the pipe. */
static int end(struct started *s)
{
	int status;

	assert_int_equal(waitpid(s->pid, &status, 0), s->pid);
	assert_int_equal(fgetc(s->says), EOF);
	fclose(s->says);
	return status;
}

static void assert_exit(struct started *s, int want)
{
	int status = end(s);

	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), want);
}

static void assert_killed(struct started *s, int want)
{
	int status = end(s);

	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), want);
	assert_false(WCOREDUMP(status));
}

/* ---------------------------------------------------------------- ends by itself */

static int returns(struct work *work)
{
	(void)work;
	return 3;
}

static void test_status(void **state)
{
	struct started s;

	(void)state;
	start(&s, returns, 0, LONG_NS);
	assert_exit(&s, 3);
}

static int crashes(struct work *work)
{
	const struct rlimit no_core = {0, 0};

	(void)work;
	setrlimit(RLIMIT_CORE, &no_core);
	signal(SIGBUS, SIG_DFL);
	raise(SIGBUS);
	return 0;
}

static void test_crash(void **state)
{
	struct started s;

	(void)state;
	start(&s, crashes, 0, LONG_NS);
	assert_killed(&s, SIGBUS);
}

static int leaves_orphan(struct work *work)
{
	char line[32];
	pid_t pid = fork(), orphan;

	if (pid == 0) {
		orphan = fork();
		if (orphan == 0)
			_exit(0);
		snprintf(line, sizeof(line), "%d\n", (int)orphan);
		say(work, line);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	pause();
	return 0;
}

/* kill() finds a zombie. */
static void test_orphans(void **state)
{
	struct started s;
	char line[32];
	pid_t orphan;

	(void)state;
	start(&s, leaves_orphan, 0, LONG_NS);
	assert_non_null(fgets(line, sizeof(line), s.says));
	orphan = atoi(line);
	while (kill(orphan, 0) == 0)
		usleep(1000);
	kill(s.pid, SIGTERM);
	assert_killed(&s, SIGTERM);
}

/* ---------------------------------------------------------------- signals */

static int listens(struct work *work)
{
	const struct {
		int signo;
		const char *line;
	} rows[] = {{SIGHUP, "HUP\n"},
		    {SIGINT, "INT\n"},
		    {SIGTERM, "TERM\n"},
		    {SUPERVISE_AT_ONCE, "at once\n"}};
	sigset_t set;
	int signo;

	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		sigaddset(&set, rows[i].signo);
	sigprocmask(SIG_BLOCK, &set, NULL);
	say(work, "listens\n");
	for (;;) {
		sigwait(&set, &signo);
		for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
			if (rows[i].signo == signo)
				say(work, rows[i].line);
		if (signo == SUPERVISE_AT_ONCE)
			return 4;
	}
}

static void test_signals(void **state)
{
	struct started s;
	char line[32];

	(void)state;
	start(&s, listens, 0, LONG_NS);
	assert_line(&s, "listens");
	kill(s.pid, SIGHUP);
	assert_line(&s, "HUP");
	kill(s.pid, SIGHUP);
	assert_line(&s, "HUP");
	kill(s.pid, SIGINT);
	assert_line(&s, "INT");
	kill(s.pid, SIGTERM);
	do /* both may be pending at a time, the lower number comes first */
		assert_non_null(fgets(line, sizeof(line), s.says));
	while (strcmp(line, "TERM\n") == 0);
	assert_string_equal(line, "at once\n");
	assert_exit(&s, 4);
}

/* ---------------------------------------------------------------- does not end */

static void *stays(void *ctx)
{
	struct work *work = ctx;

	pthread_setname_np(pthread_self(), "deaf");
	sem_post(&work->ready);
	for (;;)
		pause();
	return NULL;
}

/* Only a thread that waits has a place in the kernel to be told. On a busy machine it may begin to
 * wait long after its start. */
static void start_deaf(struct work *work, pthread_t *ret_id)
{
	char path[64], place[64] = "0";

	assert_int_equal(pthread_create(ret_id, NULL, stays, work), 0);
	sem_wait(&work->ready);
	snprintf(path, sizeof(path), "/proc/self/task/%d/wchan", (int)threads_find("deaf"));
	while (strcmp(place, "0") == 0) {
		FILE *f = fopen(path, "re");

		assert_non_null(f);
		assert_int_equal(fscanf(f, "%63s", place), 1);
		fclose(f);
		usleep(1000);
	}
	say(work, "ready\n");
}

static int ignores(struct work *work)
{
	pthread_t id;

	signal(SIGTERM, SIG_IGN);
	signal(SIGINT, SIG_IGN);
	signal(SUPERVISE_AT_ONCE, SIG_IGN);
	start_deaf(work, &id);
	pthread_join(id, NULL);
	return 0;
}

static void assert_killed_line(struct started *s)
{
	char line[512] = "";

	assert_non_null(fgets(line, sizeof(line), s->says));
	assert_int_equal(strncmp(line, "killed ", 7), 0);
	assert_non_null(strstr(line, "deaf in "));
}

static void test_ignores(void **state)
{
	struct started s;

	(void)state;
	start(&s, ignores, SHORT_NS, LONG_NS);
	assert_line(&s, "ready");
	kill(s.pid, SIGTERM);
	kill(s.pid, SIGINT);
	assert_killed_line(&s);
	assert_exit(&s, 1);
}

static int leaves_thread(struct work *work)
{
	pthread_t id;

	start_deaf(work, &id);
	return 5;
}

static void block(void)
{
	for (;;)
		pause();
}

/* Ended in an orderly way, but the process does not go. */
static int blocks_at_exit(struct work *work)
{
	(void)work;
	atexit(block);
	return 6;
}

static void test_leave(void **state)
{
	struct started s;
	char line[64];

	(void)state;
	start(&s, leaves_thread, 0, LONG_NS);
	/* exit_group() ends a thread that can be killed */
	assert_line(&s, "ready");
	assert_exit(&s, 5);

	start(&s, blocks_at_exit, 0, SHORT_NS);
	assert_non_null(fgets(line, sizeof(line), s.says));
	assert_int_equal(strncmp(line, "killed ", 7), 0);
	assert_exit(&s, 6);
}

/* ---------------------------------------------------------------- lacks a CPU */

#define STARVED_BYTES ((size_t)64 << 20)

/* Its end takes CPU time, and other programs have the CPU. */
static int starves(struct work *work)
{
	char *bytes = mmap(NULL, STARVED_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			   -1, 0);

	signal(SIGTERM, SIG_IGN);
	assert_true(bytes != MAP_FAILED);
	/* in small pages, which take longer to give back */
	madvise(bytes, STARVED_BYTES, MADV_NOHUGEPAGE);
	memset(bytes, 1, STARVED_BYTES);
	threads_pin();
	assert_int_equal(sched_setscheduler(0, SCHED_IDLE, &(struct sched_param){0}), 0);
	say(work, "ready\n");
	for (;;)
		pause();
	return 0;
}

static void *spin(void *is_over)
{
	threads_pin();
	while (!*(_Atomic bool *)is_over)
		continue;
	return NULL;
}

/* A process without a CPU has no end yet, and waits for no file system. */
static void test_starved(void **state)
{
	_Atomic bool is_over = false;
	pthread_t spinners[8];
	struct started s;
	char line[512] = "";

	(void)state;
	start(&s, starves, SHORT_NS, LONG_NS);
	assert_line(&s, "ready");
	for (size_t i = 0; i < array_size(spinners); i++)
		assert_int_equal(pthread_create(&spinners[i], NULL, spin, &is_over), 0);
	kill(s.pid, SIGTERM);
	assert_line(&s, "starved"); /* a second after the SIGKILL, and perhaps again */
	is_over = true;
	for (size_t i = 0; i < array_size(spinners); i++)
		pthread_join(spinners[i], NULL);
	do
		assert_non_null(fgets(line, sizeof(line), s.says));
	while (strcmp(line, "starved\n") == 0);
	assert_int_equal(strncmp(line, "killed ", 7), 0);
	assert_exit(&s, 1);
}

/* ---------------------------------------------------------------- the parent is killed */

static void test_parent_killed(void **state)
{
	struct started s;

	(void)state;
	start(&s, ignores, 0, LONG_NS);
	assert_line(&s, "ready");
	kill(s.pid, SIGKILL);
	assert_killed(&s, SIGKILL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_status),	      cmocka_unit_test(test_crash),
		cmocka_unit_test(test_orphans),	      cmocka_unit_test(test_signals),
		cmocka_unit_test(test_ignores),	      cmocka_unit_test(test_leave),
		cmocka_unit_test(test_parent_killed), cmocka_unit_test(test_starved),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
