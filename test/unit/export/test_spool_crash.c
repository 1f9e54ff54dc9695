// SPDX-License-Identifier: Apache-2.0
/*
 * A sender process with a spool is killed (SIGKILL) at each of its calls that change the disk, once
 * before the call and, for a write, once half way; and at random moments. The next process sends
 * the rest. The calls below take the place of the C library's and count.
 *
 * Every profile in a completed write arrives, a profile with a written acknowledgement arrives
 * once, and no profile arrives more often than there were processes.
 */
#include "support/test.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/spooling.h"
#include "support/until.h"

#include "base/cursor.h"
#include "base/loop.h"
#include "base/nsec.h"
#include "export/spool_format.h"

#define LONG_NS	    (120 * NSEC_PER_SEC)
#define PENDING	    "podprof_spool_pending_profiles"
/* Each segment has a few profiles, so segments begin and go. */
#define BYTES	    8000
#define ROUND	    6
#define SPOOL_BYTES (1u << 20) /* segments of 64 KiB */
/* Descriptor of the shared memory in the processes. */
#define SHARED_FD   100
#define ROUNDS	    3

/**
 * struct shared - memory of the test and its processes
 * @die_at:    number of the call that kills; 0: none
 * @half:      after half of the write
 * @n_calls:   calls of the running process
 * @n_written: profiles in completed writes
 * @n_acked:   acknowledged profiles in completed writes
 */
struct shared {
	size_t die_at;
	bool half;
	size_t n_calls;
	size_t n_written;
	size_t n_acked;
};

static struct shared *shared;
static unsigned char arrived[SPOOLING_PROFILES_MAX];

static bool dies(void)
{
	return shared && ++shared->n_calls == shared->die_at;
}

static void die(void)
{
	kill(getpid(), SIGKILL);
	for (;;)
		pause();
}

static void count_records(const void *data, size_t n)
{
	struct spool_record record;
	struct spool_ack ack;
	struct cursor c, acks;

	cursor_init(&c, data, n);
	while (!spool_record_next(&c, &record)) {
		shared->n_written += record.type == SPOOL_PROFILE;
		cursor_init(&acks, record.body, record.type == SPOOL_ACKS ? record.body_len : 0);
		while (!spool_ack_next(&acks, &ack))
			shared->n_acked += ack.n;
	}
}

ssize_t pwrite(int fd, const void *buf, size_t n, off_t offset)
{
	bool now = dies();
	ssize_t done;

	if (now && !shared->half)
		die();
	done = syscall(SYS_pwrite64, fd, buf, now ? n / 2 : n, offset);
	if (now)
		die();
	if (shared)
		count_records(buf, (size_t)done);
	return done;
}

int unlinkat(int fd, const char *name, int flag)
{
	if (dies())
		die();
	return (int)syscall(SYS_unlinkat, fd, name, flag);
}

int fdatasync(int fildes)
{
	if (dies())
		die();
	return (int)syscall(SYS_fdatasync, fildes);
}

int fsync(int fd)
{
	if (dies())
		die();
	return (int)syscall(SYS_fsync, fd);
}

/* ---- processes */

static bool all_arrived(void *ctx)
{
	struct spooling *s = ctx;

	return spooling_outcome(s, "pyroscope", "sent") == s->next &&
	       spooling_metric(s, PENDING, "pyroscope") == 0;
}

static bool nothing_is_left(void *ctx)
{
	return spooling_metric(ctx, PENDING, "pyroscope") == 0;
}

static void send_rounds(struct spooling *s)
{
	for (size_t i = 0; i < ROUNDS; i++) {
		spooling_submit(s, ROUND, BYTES, nsec_wall());
		loop_until(s->loop, all_arrived, s);
	}
	spooling_flush(s, LONG_NS);
}

static void send_rest(struct spooling *s)
{
	spooling_flush(s, LONG_NS);
	loop_until(s->loop, nothing_is_left, s);
	spooling_flush(s, LONG_NS);
}

static void send_all(struct spooling *s)
{
	for (size_t i = 0; i < 200; i++) {
		spooling_submit(s, ROUND, 500, nsec_wall());
		spooling_flush(s, NSEC_PER_MSEC);
	}
	send_rest(s);
}

static void (*const bodies[])(struct spooling *s) = {send_rounds, send_rest, send_all};
enum body { SEND_ROUNDS, SEND_REST, SEND_ALL };

/* The new process: BODY DIRECTORY URL NEXT. Not only fork(): the sink's thread may hold a lock. */
static int child(char **argv)
{
	struct spooling s = {.spool_bytes = SPOOL_BYTES, .queue_bytes = 16u << 20};

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED, SHARED_FD, 0);
	if (shared == MAP_FAILED || loop_new(&s.loop))
		return 2;
	snprintf(s.tree.path, sizeof(s.tree.path), "%s", argv[1]);
	s.urls[0] = argv[2];
	s.n_urls = 1;
	s.next = strtoul(argv[3], NULL, 10);
	if (spooling_start(&s))
		return 2;
	bodies[atoi(argv[0])](&s);
	spooling_stop(&s);
	loop_free(s.loop);
	return 0;
}

/* In a process of its own. True if it ended by itself. */
static bool run(struct spooling *s, enum body body, useconds_t kill_after_us)
{
	char number[8], next[24];
	int status;
	pid_t pid;

	shared->n_calls = 0;
	snprintf(number, sizeof(number), "%d", (int)body);
	snprintf(next, sizeof(next), "%zu", s->next);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		execl("/proc/self/exe", "test_spool_crash", number, s->tree.path, s->urls[0], next,
		      NULL);
		_exit(3);
	}
	if (kill_after_us) {
		usleep(kill_after_us);
		kill(pid, SIGKILL);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFSIGNALED(status))
		assert_int_equal(WTERMSIG(status), SIGKILL);
	else
		assert_int_equal(WEXITSTATUS(status), 0);
	return WIFEXITED(status);
}

static void begin(struct spooling *s, struct sink *sink)
{
	spooling_init(s);
	s->urls[0] = sink_url(sink);
	s->n_urls = 1;
	*shared = (struct shared){0};
}

/* @n_runs: processes so far. */
static void assert_arrived(struct sink *sink, size_t n_runs)
{
	(void)spooling_arrived(sink, 0, false, arrived);
	for (size_t i = 0; i < SPOOLING_PROFILES_MAX; i++) {
		if (i < shared->n_written)
			assert_true(arrived[i] >= 1);
		if (i < shared->n_acked)
			assert_int_equal(arrived[i], 1);
		assert_true(arrived[i] <= n_runs);
	}
}

/* True if the process ended before its call @at. */
static bool kill_at(size_t at, bool half)
{
	static const struct sink_answer ok = {.status = 200};
	struct sink *sink = sink_new(&ok, 1, NULL);
	struct spooling s;
	bool ended;
	size_t n_written, n_acked;

	begin(&s, sink);
	shared->die_at = at;
	shared->half = half;
	ended = run(&s, SEND_ROUNDS, 0);
	n_written = shared->n_written;
	n_acked = shared->n_acked;
	shared->die_at = 0;
	assert_true(run(&s, SEND_REST, 0));
	shared->n_written = n_written;
	shared->n_acked = n_acked;
	assert_arrived(sink, 2);
	if (ended)
		assert_int_equal(n_written, ROUND * ROUNDS);
	spooling_deinit(&s);
	sink_free(sink);
	return ended;
}

static void test_each_call(void **state)
{
	size_t n = 0;

	(void)state;
	while (!kill_at(n + 1, false))
		n++;
	print_message("killed at %zu calls\n", n);
	assert_true(n >= 15);
	for (size_t at = 1; at <= n; at++)
		(void)kill_at(at, true);
}

/* Killed again and again while the backend also fails; numbers go on in the next process. */
static void test_random(void **state)
{
	static const struct sink_answer script[] = {{.status = 200, .times = 2},
						    {.status = 503},
						    {.how = SINK_CLOSE},
						    {.status = 429},
						    {.status = 200, .times = 3},
						    {.status = 503, .times = 2},
						    {.status = 200}};
	struct sink *sink = sink_new(script, array_size(script), NULL);
	unsigned int seed = (unsigned int)nsec_monotonic();
	size_t n_before = 0, n_runs = 8;
	struct spooling s;

	(void)state;
	print_message("seed %u\n", seed);
	begin(&s, sink);
	srand(seed);
	for (size_t i = 0; i < n_runs; i++) {
		size_t written;

		shared->n_written = 0;
		if (run(&s, SEND_ALL, (useconds_t)(20000 + rand() % 400000)))
			break;
		/* profiles are written in their order: the others of this run are lost */
		written = shared->n_written;
		s.next = n_before + 200 * ROUND;
		(void)spooling_arrived(sink, 0, false, arrived);
		for (size_t k = n_before + written; k < s.next; k++)
			assert_true(arrived[k] <= 1);
		n_before = s.next;
		/* remembered below in the order of the runs */
		assert_true(run(&s, SEND_REST, 0));
		(void)spooling_arrived(sink, 0, true, arrived);
		for (size_t k = n_before - 200 * ROUND; k < n_before - 200 * ROUND + written; k++)
			assert_true(arrived[k] >= 1);
		print_message("run %zu: %zu profiles written\n", i, written);
	}
	spooling_deinit(&s);
	sink_free(sink);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_call),
		cmocka_unit_test(test_random),
	};
	int fd;

	if (argc == 5)
		return child(argv + 1);
	fd = memfd_create("shared", 0);
	assert_int_equal(dup2(fd, SHARED_FD), SHARED_FD);
	close(fd);
	assert_int_equal(ftruncate(SHARED_FD, sizeof(*shared)), 0);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED, SHARED_FD, 0);
	assert_true(shared != MAP_FAILED);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
