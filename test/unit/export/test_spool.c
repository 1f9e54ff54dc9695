// SPDX-License-Identifier: Apache-2.0
/* Profiles on their way over the disk to scripted servers. test_spool_crash.c has the kills. */
#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "support/allocfail.h"
#include "support/spooling.h"
#include "support/until.h"

#include "base/loop.h"
#include "base/nsec.h"
#include "export/export.h"
#include "export/spool_disk.h"

#define LONG_NS	 (120 * NSEC_PER_SEC)
#define PENDING	 "podprof_spool_pending_profiles"
#define PROFILES "podprof_spool_profiles"

static const struct sink_answer ok = {.status = 200};
/* Away for longer than a run of the test takes, then back. */
static const struct sink_answer away_first[] = {{.status = 503, .retry_after = "10"},
						{.status = 200}};

/* Away until the end of the run, which asks again at once. */
static const struct sink_answer away_to_the_end[] = {{.status = 503, .retry_after = "300"},
						     {.status = 200}};

static unsigned char arrived[SPOOLING_PROFILES_MAX];

/* A write that waits for its turn: a disk without an answer. Takes the place of the C library's. */
static _Atomic int held = -1; /* read end of a pipe */
static _Atomic bool is_held;  /* a write waits */

ssize_t pwrite(int fd, const void *buf, size_t n, off_t offset)
{
	char byte;
	int gate = atomic_load(&held);

	if (gate >= 0) {
		atomic_store(&is_held, true);
		(void)!read(gate, &byte, 1);
	}
	return syscall(SYS_pwrite64, fd, buf, n, offset);
}

/* A disk that reports its errors late. */
static _Atomic bool sync_fails;

int fdatasync(int fildes)
{
	if (atomic_load(&sync_fails)) {
		errno = EIO;
		return -1;
	}
	return (int)syscall(SYS_fdatasync, fildes);
}

/* A process without a free descriptor: segments cannot be opened for reading. */
static _Atomic bool no_descriptors;
static _Atomic size_t n_refused;

int openat(int fd, const char *file, int oflag, ...)
{
	mode_t mode = 0;
	va_list args;

	va_start(args, oflag);
	if (oflag & O_CREAT)
		mode = va_arg(args, mode_t);
	va_end(args);
	if (atomic_load(&no_descriptors) && !(oflag & O_CREAT) && strstr(file, ".segment")) {
		atomic_fetch_add(&n_refused, 1);
		errno = EMFILE;
		return -1;
	}
	return (int)syscall(SYS_openat, fd, file, oflag, mode);
}

static int setup(void **state)
{
	*state = calloc(1, sizeof(struct spooling));
	spooling_init(*state);
	return 0;
}

static int teardown(void **state)
{
	spooling_deinit(*state);
	free(*state);
	return 0;
}

static void start(struct spooling *s, struct sink *sink)
{
	s->urls[0] = sink_url(sink);
	s->n_urls = 1;
	assert_int_equal(spooling_start(s), 0);
}

static void assert_each_once(struct sink *sink, size_t n)
{
	assert_int_equal(spooling_arrived(sink, 0, true, arrived), n);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(arrived[i], 1);
}

static bool all_written(void *ctx)
{
	struct spooling *s = ctx;

	return spooling_metric(s, PROFILES, "stored") == s->next;
}

static bool opened(void *ctx)
{
	return spooling_metric(ctx, "podprof_spool_recovered", "") > 0;
}

static bool sent_some(void *ctx)
{
	return spooling_outcome(ctx, "pyroscope", "sent") > 0;
}

/* Many profiles wait on disk for the pace, not in memory; the end of the run sends them. */
static void test_paced(void **state)
{
	struct spooling *s = *state;
	struct sink *sink = sink_new(&ok, 1, NULL);

	s->window_ns = 24 * 3600 * NSEC_PER_SEC;
	start(s, sink);
	spooling_submit(s, 3000, 100, nsec_wall());
	loop_until(s->loop, all_written, s);
	loop_until(s->loop, sent_some, s);
	assert_true(spooling_outcome(s, "pyroscope", "sent") <= 256);
	assert_true(spooling_metric(s, PENDING, "pyroscope") >= 3000 - 256);
	spooling_flush(s, LONG_NS);
	assert_int_equal(spooling_outcome(s, "pyroscope", "sent"), 3000);
	assert_each_once(sink, 3000);
	spooling_stop(s);
	sink_free(sink);
}

/* ---- the usual way */

static void test_sent(void **state)
{
	struct spooling *s = *state;
	struct sink *sink = sink_new(&ok, 1, NULL);
	_cleanup_(freep) char *segment = NULL;
	struct stat st;
	char dir[128];

	start(s, sink);
	spooling_submit(s, 30, 1000, nsec_wall());
	spooling_flush(s, LONG_NS);
	assert_each_once(sink, 30);
	assert_int_equal(spooling_outcome(s, "pyroscope", "sent"), 30);
	assert_int_equal(spooling_metric(s, PROFILES, "stored"), 30);
	assert_int_equal(spooling_metric(s, PENDING, "pyroscope"), 0);
	assert_int_equal(spooling_metric(s, "podprof_export_queue_bytes", "pyroscope"), 0);
	segment = spooling_segment(s);
	assert_int_equal(stat(segment, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(st.st_size, spooling_metric(s, "podprof_spool_bytes", ""));
	snprintf(dir, sizeof(dir), "%s/spool", s->tree.path);
	assert_int_equal(stat(dir, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	spooling_stop(s);

	row_begin("nothing is sent again");
	start(s, sink);
	spooling_submit(s, 1, 10, nsec_wall());
	spooling_flush(s, LONG_NS);
	assert_int_equal(spooling_metric(s, "podprof_spool_recovered", ""), 0);
	assert_each_once(sink, 31);
	spooling_stop(s);
	sink_free(sink);
}

static bool has_request(void *ctx)
{
	return sink_n_requests(ctx) > 0;
}

/* The agent ends while the backend is away, at once and with a flush; the next run sends. */
static void test_away(void **state)
{
	struct spooling *s = *state;
	struct sink *sink = sink_new(away_first, 2, NULL);

	start(s, sink);
	spooling_submit(s, 20, 1000, nsec_wall());
	loop_until(s->loop, has_request, sink);
	spooling_submit(s, 5, 1000, nsec_wall());
	loop_until(s->loop, all_written, s);
	spooling_stop(s);
	start(s, sink);
	spooling_submit(s, 5, 1000, nsec_wall());
	spooling_flush(s, LONG_NS);
	assert_int_equal(spooling_metric(s, "podprof_spool_recovered", ""), 25);
	assert_each_once(sink, 30);
	assert_int_equal(spooling_outcome(s, "pyroscope", "sent"), 30);
	spooling_stop(s);
	sink_free(sink);
}

static bool has_two_requests(void *ctx)
{
	return sink_n_requests(ctx) == 2;
}

/* A request without an answer, and a run that ends before the next: only these profiles arrive
 * twice. */
static void test_answer_lost(void **state)
{
	static const struct sink_answer script[] = {
		{.status = 200}, {.how = SINK_HANG}, {.status = 200}};
	struct spooling *s = *state;
	struct sink *sink = sink_new(script, 3, NULL);

	start(s, sink);
	spooling_submit(s, 10, 1000, nsec_wall());
	spooling_flush(s, LONG_NS);
	spooling_submit(s, 5, 1000, nsec_wall());
	loop_until(s->loop, has_two_requests, sink);
	assert_int_equal(spooling_metric(s, PENDING, "pyroscope"), 5);
	spooling_stop(s);
	start(s, sink);
	spooling_submit(s, 5, 1000, nsec_wall());
	spooling_flush(s, LONG_NS);
	assert_int_equal(spooling_arrived(sink, 0, false, arrived), 20);
	for (size_t i = 0; i < 20; i++)
		assert_int_equal(arrived[i], i >= 10 && i < 15 ? 2 : 1);
	spooling_stop(s);
	sink_free(sink);
}

/* ---- several destinations */

static bool one_has_all(void *ctx)
{
	struct spooling *s = ctx;
	char name[64];

	snprintf(name, sizeof(name), "pyroscope:%s", s->urls[0] + strlen("http://"));
	return spooling_metric(s, PROFILES, "stored") == 10 &&
	       spooling_metric(s, PENDING, name) == 0;
}

static void test_one_away(void **state)
{
	static const struct sink_answer script[] = {{.status = 503, .times = 3}, {.status = 200}};
	struct spooling *s = *state;
	struct sink *works = sink_new(&ok, 1, NULL), *away = sink_new(script, 2, NULL);
	char name[2][64];

	s->urls[0] = sink_url(works);
	s->urls[1] = sink_url(away);
	s->n_urls = 2;
	for (size_t i = 0; i < 2; i++)
		snprintf(name[i], sizeof(name[i]), "pyroscope:%s", s->urls[i] + strlen("http://"));
	assert_int_equal(spooling_start(s), 0);
	spooling_submit(s, 40, 1000, nsec_wall());
	spooling_flush(s, LONG_NS);
	assert_each_once(works, 40);
	assert_each_once(away, 40);
	assert_int_equal(spooling_outcome(s, name[0], "retried"), 0);
	assert_true(spooling_outcome(s, name[1], "retried") > 0);
	spooling_stop(s);

	row_begin("the end of the run while one is away");
	sink_free(away);
	s->urls[1] = "http://127.0.0.1:1";
	assert_int_equal(spooling_start(s), 0);
	spooling_submit(s, 10, 1000, nsec_wall());
	loop_until(s->loop, one_has_all, s);
	spooling_flush(s, 3 * NSEC_PER_SEC); /* acknowledgements to the disk */
	assert_each_once(works, 50);
	assert_int_equal(spooling_metric(s, PENDING, name[0]), 0);
	assert_int_equal(spooling_metric(s, PENDING, "pyroscope:127.0.0.1:1"), 10);
	spooling_stop(s);
	assert_int_equal(spooling_start(s), 0);
	loop_until(s->loop, opened, s);
	assert_int_equal(spooling_metric(s, "podprof_spool_recovered", ""), 10);
	assert_int_equal(spooling_metric(s, PENDING, name[0]), 0);
	assert_int_equal(spooling_metric(s, PENDING, "pyroscope:127.0.0.1:1"), 10);
	spooling_stop(s);

	row_begin("the destination is no longer configured");
	s->n_urls = 1;
	assert_int_equal(spooling_start(s), 0);
	spooling_submit(s, 1, 1000, nsec_wall());
	spooling_flush(s, LONG_NS);
	assert_each_once(works, 51);
	free(spooling_segment(s)); /* one at most */
	spooling_stop(s);
	sink_free(works);
}

/* ---- limits */

static void test_too_old(void **state)
{
	struct spooling *s = *state;
	struct sink *sink = sink_new(&ok, 1, NULL);

	s->urls[0] = "http://127.0.0.1:1";
	s->n_urls = 1;
	start(s, sink);
	spooling_submit(s, 4, 1000, nsec_wall());
	spooling_submit(s, 6, 1000, nsec_wall() - 2 * 3600 * NSEC_PER_SEC);
	/* a clock that was set back: the profile is of the future */
	spooling_submit(s, 1, 1000, nsec_wall() + 300 * NSEC_PER_SEC);
	spooling_submit(s, 3, 1000, nsec_wall());
	spooling_flush(s, LONG_NS);
	assert_int_equal(spooling_outcome(s, "pyroscope", "dropped_too_old"), 6);
	assert_int_equal(spooling_outcome(s, "pyroscope", "sent"), 8);
	assert_int_equal(spooling_arrived(sink, 0, true, arrived), 8);
	assert_int_equal(spooling_metric(s, PENDING, "pyroscope"), 0);
	spooling_stop(s);
	sink_free(sink);
}

static bool all_counted(void *ctx)
{
	struct spooling *s = ctx;

	return spooling_outcome(s, "pyroscope", "sent") +
		       spooling_outcome(s, "pyroscope", "dropped_queue_full") ==
	       s->next;
}

static bool is_away(void *ctx)
{
	return spooling_outcome(ctx, "pyroscope", "retried") > 0;
}

/* A backend is away for long: the disk and the memory keep their ceilings, and each profile has
 * one outcome. */
static void test_ceiling(void **state)
{
	struct spooling *s = *state;
	struct sink *sink = sink_new(away_to_the_end, 2, NULL);
	uint64_t most = 0, dropped, pending;

	s->spool_bytes = 4u << 20;
	s->queue_bytes = 2u << 20;
	start(s, sink);
	for (size_t window = 0; window < 40; window++) {
		uint64_t bytes;

		spooling_submit(s, 20, 10000, nsec_wall());
		loop_until(s->loop, all_written, s);
		assert_true(spooling_metric(s, "podprof_spool_bytes", "") <= s->spool_bytes);
		bytes = spooling_metric(s, "podprof_export_queue_bytes", "pyroscope");
		most = bytes > most ? bytes : most;
	}
	print_message("%zu profiles of 10,000 bytes: at most %lu bytes of memory\n", s->next,
		      (unsigned long)most);
	assert_true(most <= s->queue_bytes / 2 + (1u << 20));
	dropped = spooling_outcome(s, "pyroscope", "dropped_queue_full");
	pending = spooling_metric(s, PENDING, "pyroscope");
	assert_true(dropped > 0);
	assert_in_range(pending, 1, 420); /* 4 MiB */
	assert_true(dropped + pending <= s->next);
	loop_until(s->loop, is_away, s);
	spooling_flush(s, LONG_NS);
	loop_until(s->loop, all_counted, s);
	assert_int_equal(spooling_outcome(s, "pyroscope", "dropped_queue_full"), dropped);
	assert_int_equal(spooling_metric(s, "podprof_export_bytes", "pyroscope,dropped_queue_full"),
			 dropped * 10000);
	assert_int_equal(spooling_arrived(sink, 0, true, arrived), s->next - dropped);
	spooling_stop(s);
	sink_free(sink);
}

static bool all_ended(void *ctx)
{
	struct spooling *s = ctx;

	return spooling_outcome(s, "pyroscope", "sent") == s->next &&
	       spooling_metric(s, PENDING, "pyroscope") == 0;
}

/* 10,000 series in each window: the memory is that of the profiles on the way. */
static void test_many_series(void **state)
{
	struct spooling *s = *state;
	struct sink *sink = sink_new(&ok, 1, NULL);
	uint64_t most = 0;

	s->queue_bytes = 24u << 20;
	start(s, sink);
	for (size_t i = 0; i < 100; i++) {
		uint64_t bytes;

		spooling_submit(s, 100, 2000, nsec_wall());
		loop_until(s->loop, all_written, s);
		bytes = spooling_metric(s, "podprof_export_queue_bytes", "pyroscope");
		most = bytes > most ? bytes : most;
	}
	loop_until(s->loop, all_ended, s);
	print_message("10,000 profiles of 2,000 bytes: %lu bytes of memory at most\n",
		      (unsigned long)most);
	assert_true(most < 1024 * 2600);
	assert_each_once(sink, 10000);
	spooling_stop(s);
	sink_free(sink);
}

/* ---- disks that fail */

static void mount_small(const struct spooling *s, const char *options)
{
	char dir[128];

	snprintf(dir, sizeof(dir), "%s/spool", s->tree.path);
	assert_int_equal(mkdir(dir, 0700), 0);
	assert_int_equal(unshare(CLONE_NEWNS), 0);
	assert_int_equal(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
	assert_int_equal(mount("tmpfs", dir, "tmpfs", 0, options), 0);
}

static void unmount_small(const struct spooling *s)
{
	char dir[128];

	snprintf(dir, sizeof(dir), "%s/spool", s->tree.path);
	assert_int_equal(umount(dir), 0);
}

static bool all_tried(void *ctx)
{
	struct spooling *s = ctx;

	return spooling_metric(s, PROFILES, "stored") + spooling_metric(s, PROFILES, "disk_full") +
		       spooling_metric(s, PROFILES, "read_only") ==
	       s->next;
}

static void test_disk_full(void **state)
{
	static const struct sink_answer script[] = {{.status = 503, .times = 4}, {.status = 200}};
	struct spooling *s = *state;
	struct sink *sink = sink_new(script, 2, NULL);

	mount_small(s, "size=256k");
	start(s, sink);
	for (size_t i = 0; i < 40; i++) {
		spooling_submit(s, 1, 10000, nsec_wall());
		loop_until(s->loop, all_tried, s);
	}
	assert_true(spooling_metric(s, PROFILES, "disk_full") > 0);
	assert_in_range(spooling_metric(s, PROFILES, "stored"), 10, 26);
	spooling_flush(s, LONG_NS);
	loop_until(s->loop, all_ended, s);
	assert_each_once(sink, 40);
	row_begin("works again");
	spooling_submit(s, 1, 10000, nsec_wall());
	loop_until(s->loop, all_ended, s);
	assert_each_once(sink, 41);
	spooling_stop(s);
	unmount_small(s);
	sink_free(sink);
}

/* Above today's ceiling of memory the oldest profile in memory goes, and no profile on disk. */
static void test_disk_full_and_away(void **state)
{
	struct spooling *s = *state;
	uint64_t stored;

	mount_small(s, "size=256k");
	s->urls[0] = "http://127.0.0.1:1";
	s->n_urls = 1;
	s->queue_bytes = 512u << 10;
	assert_int_equal(spooling_start(s), 0);
	for (size_t i = 0; i < 100; i++) {
		spooling_submit(s, 1, 10000, nsec_wall());
		loop_until(s->loop, all_tried, s);
	}
	stored = spooling_metric(s, PROFILES, "stored");
	assert_int_equal(stored + spooling_metric(s, PROFILES, "disk_full"), 100);
	assert_int_equal(spooling_metric(s, PENDING, "pyroscope"), stored);
	assert_true(spooling_metric(s, "podprof_export_queue_bytes", "pyroscope") <=
		    s->queue_bytes);
	assert_true(spooling_outcome(s, "pyroscope", "dropped_queue_full") > 0);
	spooling_stop(s);
	unmount_small(s);
}

static void test_read_only(void **state)
{
	struct spooling *s = *state;
	struct sink *sink = sink_new(away_first, 2, NULL);
	char dir[128];

	mount_small(s, "size=1m");
	start(s, sink);
	spooling_submit(s, 3, 1000, nsec_wall());
	loop_until(s->loop, has_request, sink);
	spooling_stop(s);
	snprintf(dir, sizeof(dir), "%s/spool", s->tree.path);
	assert_int_equal(mount(NULL, dir, NULL, MS_REMOUNT | MS_RDONLY, NULL), 0);
	start(s, sink);
	loop_until(s->loop, opened, s);
	spooling_submit(s, 5, 1000, nsec_wall());
	loop_until(s->loop, all_ended, s);
	assert_int_equal(spooling_metric(s, PROFILES, "read_only"), 5);
	assert_int_equal(spooling_metric(s, "podprof_spool_recovered", ""), 3);
	assert_each_once(sink, 8);
	spooling_stop(s);
	unmount_small(s);
	sink_free(sink);
}

/* The profiles of a batch without fdatasync() are sent from memory, and not again by the next run.
 */
static void test_sync_fails(void **state)
{
	struct spooling *s = *state;
	struct sink *sink = sink_new(&ok, 1, NULL);

	start(s, sink);
	spooling_flush(s, LONG_NS); /* from now on each write has its fdatasync() */
	atomic_store(&sync_fails, true);
	spooling_submit(s, 3, 1000, nsec_wall());
	loop_until(s->loop, all_ended, s);
	assert_int_equal(spooling_metric(s, PROFILES, "failed"), 3);
	spooling_stop(s);
	atomic_store(&sync_fails, false);
	start(s, sink);
	spooling_flush(s, LONG_NS);
	assert_int_equal(spooling_metric(s, "podprof_spool_recovered", ""), 0);
	assert_int_equal(spooling_metric(s, "podprof_spool_damaged", ""), 0);
	assert_each_once(sink, 3);
	spooling_stop(s);
	sink_free(sink);
}

static bool is_blocked(void *ctx)
{
	return spooling_metric(ctx, PROFILES, "blocked") > 0;
}

static bool has_held(void *ctx)
{
	(void)ctx;
	return atomic_load(&is_held);
}

static bool five_sent(void *ctx)
{
	return spooling_outcome(ctx, "pyroscope", "sent") >= 5;
}

/* The loop and the sending go on while a write has no answer; afterwards the disk is used again,
 * and no profile goes twice. */
static void test_blocked(void **state)
{
	struct spooling *s = *state;
	struct sink *sink = sink_new(&ok, 1, NULL);
	int gate[2];

	s->blocked_ns = NSEC_PER_SEC; /* above a slow disk's */
	start(s, sink);
	spooling_submit(s, 2, 1000, nsec_wall());
	loop_until(s->loop, all_ended, s);
	assert_int_equal(pipe2(gate, O_CLOEXEC), 0);
	atomic_store(&is_held, false);
	atomic_store(&held, gate[0]);
	spooling_submit(s, 1, 1000,
			nsec_wall()); /* the write, or behind that of an acknowledgement */
	loop_until(s->loop, has_held, s);
	spooling_submit(s, 3, 1000, nsec_wall()); /* behind the write */
	loop_until(s->loop, is_blocked, s);
	row_begin("sent from memory");
	loop_until(s->loop, five_sent, s);
	atomic_store(&held, -1);
	assert_int_equal(close(gate[1]), 0);
	loop_until(s->loop, all_ended, s);
	row_begin("the disk is used again"); /* once the write has returned */
	while (spooling_metric(s, PROFILES, "stored") < 7) {
		spooling_submit(s, 1, 1000, nsec_wall());
		loop_until(s->loop, all_ended, s);
	}
	assert_each_once(sink, s->next);
	spooling_stop(s);
	close(gate[0]);
	sink_free(sink);
}

static bool two_sent(void *ctx)
{
	return spooling_outcome(ctx, "pyroscope", "sent") == 2;
}

static void on_flushed(void *ctx)
{
	(void)ctx;
}

/* The end does not wait for the disk: the profiles behind the write are sent from memory. */
static void test_blocked_end(void **state)
{
	struct spooling *s = *state;
	struct sink *sink = sink_new(&ok, 1, NULL);
	int gate[2];

	start(s, sink);
	spooling_flush(s, LONG_NS); /* the directory is read */
	assert_int_equal(pipe2(gate, O_CLOEXEC), 0);
	atomic_store(&held, gate[0]);
	spooling_submit(s, 3, 1000, nsec_wall());
	export_flush(s->e, LONG_NS, on_flushed, s);
	loop_until(s->loop, two_sent, s);
	spooling_stop(s);
	atomic_store(&held, -1);
	close(gate[1]);
	sink_free(sink);
}

/* ---- files that are wrong */

static void corrupt(const char *path, off_t at)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	char byte;

	assert_true(fd >= 0);
	assert_int_equal(pread(fd, &byte, 1, at), 1);
	byte ^= 1;
	assert_int_equal(pwrite(fd, &byte, 1, at), 1);
	close(fd);
}

static bool all_accounted(void *ctx)
{
	struct spooling *s = ctx;

	return spooling_outcome(s, "pyroscope", "sent") +
		       spooling_outcome(s, "pyroscope", "dropped_damaged") ==
	       s->next;
}

static void test_damaged(void **state)
{
	struct spooling *s = *state;
	struct sink *sink = sink_new(away_to_the_end, 2, NULL);
	_cleanup_(freep) char *segment = NULL;
	struct stat st;

	start(s, sink);
	/* away before the others: of several requests at once only the first is refused */
	spooling_submit(s, 1, 100, nsec_wall());
	loop_until(s->loop, is_away, s);
	spooling_submit(s, 1999, 100, nsec_wall());
	loop_until(s->loop, all_written, s);
	/* the last profile is not in memory: at most 1,024 are */
	segment = spooling_segment(s);
	assert_int_equal(stat(segment, &st), 0);
	corrupt(segment, st.st_size - 50);
	spooling_flush(s, LONG_NS);
	loop_until(s->loop, all_accounted, s);
	assert_int_equal(spooling_outcome(s, "pyroscope", "dropped_damaged"), 1);
	assert_int_equal(spooling_metric(s, "podprof_spool_damaged", ""), 1);
	assert_each_once(sink, 1999);
	spooling_stop(s);
	sink_free(sink);
}

static bool refused_twice(void *ctx)
{
	(void)ctx;
	return atomic_load(&n_refused) >= 2;
}

/* Without descriptors the profiles stay on disk, and are read as soon as there are some. */
static void test_no_descriptors(void **state)
{
	struct spooling *s = *state;
	struct sink *sink = sink_new(&ok, 1, NULL);

	start(s, sink);
	atomic_store(&n_refused, 0);
	atomic_store(&no_descriptors, true);
	spooling_submit(s, 5, 100, nsec_wall());
	loop_until(s->loop, refused_twice, s);
	assert_int_equal(spooling_metric(s, "podprof_spool_damaged", ""), 0);
	assert_int_equal(spooling_outcome(s, "pyroscope", "dropped_damaged"), 0);
	assert_int_equal(spooling_metric(s, PENDING, "pyroscope"), 5);
	atomic_store(&no_descriptors, false);
	spooling_flush(s, LONG_NS);
	assert_int_equal(spooling_outcome(s, "pyroscope", "sent"), 5);
	assert_each_once(sink, 5);
	spooling_stop(s);
	sink_free(sink);
}

/* A segment torn at each of its bytes: the profiles before are sent, no other, and each once. */
static void test_torn(void **state)
{
	struct spooling *s = *state;
	_cleanup_(freep) char *segment = NULL;
	size_t n_before = 0;
	struct stat st;

	s->urls[0] = "http://127.0.0.1:1";
	s->n_urls = 1;
	assert_int_equal(spooling_start(s), 0);
	spooling_submit(s, 4, 30, nsec_wall());
	loop_until(s->loop, all_written, s);
	segment = spooling_segment(s);
	assert_int_equal(stat(segment, &st), 0);
	spooling_stop(s);
	for (off_t size = st.st_size; size >= 0; size--) {
		struct spool_contents contents;
		const uint64_t nobody = 0;
		struct spool_disk *disk;
		pid_t holder;
		char dir[128];

		assert_int_equal(truncate(segment, size), 0);
		snprintf(dir, sizeof(dir), "%s/spool", s->tree.path);
		assert_int_equal(spool_disk_new(dir, &disk), 0);
		assert_int_equal(spool_disk_open(disk, &holder), 0);
		assert_int_equal(spool_disk_read_all(disk, &nobody, 1, 0, &contents), 0);
		if (size == st.st_size)
			n_before = contents.index.n_profiles;
		assert_int_equal(contents.index.n_profiles,
				 size < SPOOL_MAGIC_LEN
					 ? 0
					 : (size_t)(size - SPOOL_MAGIC_LEN) /
						   ((size_t)(st.st_size - SPOOL_MAGIC_LEN) / 4));
		spool_index_deinit(&contents.index);
		spool_disk_free(disk);
	}
	assert_int_equal(n_before, 4);
}

/* Files and directories of other names stay as they are. */
static void test_foreign_files(void **state)
{
	struct spooling *s = *state;
	struct sink *sink = sink_new(&ok, 1, NULL);
	static const char *const names[] = {"spool/note", "spool/ffffffffffffffff.segment",
					    "spool/0000000000000001.segment.old",
					    "spool/000000000000000A.segment"};

	tree_mkdir(s->tree.fd, "spool");
	for (size_t i = 0; i < array_size(names); i++)
		tree_write(s->tree.fd, names[i], "mine");
	assert_int_equal(symlinkat("note", s->tree.fd, "spool/0000000000000003.segment"), 0);
	start(s, sink);
	spooling_submit(s, 2, 100, nsec_wall());
	spooling_flush(s, LONG_NS);
	assert_each_once(sink, 2);
	assert_int_equal(spooling_metric(s, "podprof_spool_damaged", ""), 1); /* the link */
	for (size_t i = 0; i < array_size(names); i++)
		assert_int_equal(faccessat(s->tree.fd, names[i], F_OK, 0), 0);
	spooling_stop(s);
	sink_free(sink);
}

/* An error of the disk at the start ends the start. */
static void test_cannot_open(void **state)
{
	struct spooling *s = *state;

	s->urls[0] = "http://127.0.0.1:1";
	s->n_urls = 1;
	tree_write(s->tree.fd, "spool", "a file");
	assert_int_equal(spooling_start(s), 1);
	assert_non_null(strstr(s->error, "a part of the path is no folder"));
	assert_non_null(strstr(s->error, "--spool-dir"));
	assert_int_equal(unlinkat(s->tree.fd, "spool", 0), 0);
	assert_int_equal(spooling_start(s), 0);
}

static int read_all(void *ctx)
{
	const struct spooling *s = ctx;
	const uint64_t nobody = 0;
	struct spool_contents contents;
	struct spool_disk *disk;
	pid_t holder;
	char dir[128];
	int r;

	snprintf(dir, sizeof(dir), "%s/spool", s->tree.path);
	r = spool_disk_new(dir, &disk);
	if (r)
		return r;
	r = spool_disk_open(disk, &holder);
	if (!r)
		r = spool_disk_read_all(disk, &nobody, 1, 0, &contents);
	spool_disk_free(disk);
	if (r)
		return r;
	assert_int_equal(contents.index.n_profiles, 100);
	spool_index_deinit(&contents.index);
	return 0;
}

static void test_no_memory(void **state)
{
	struct spooling *s = *state;

	s->urls[0] = "http://127.0.0.1:1";
	s->n_urls = 1;
	assert_int_equal(spooling_start(s), 0);
	spooling_submit(s, 100, 30, nsec_wall());
	loop_until(s->loop, all_written, s);
	spooling_stop(s);
	assert_true(allocfail_each(read_all, s) > 3);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(sent),	      TEST(away),      TEST(answer_lost),
		TEST(one_away),	      TEST(too_old),   TEST(ceiling),
		TEST(many_series),    TEST(disk_full), TEST(disk_full_and_away),
		TEST(read_only),      TEST(blocked),   TEST(blocked_end),
		TEST(damaged),	      TEST(torn),      TEST(foreign_files),
		TEST(cannot_open),    TEST(no_memory), TEST(sync_fails),
		TEST(no_descriptors), TEST(paced),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
