// SPDX-License-Identifier: Apache-2.0
/*
 * A library replaces another one in a process, with lost events. The owner of a sample at this
 * address may be unknown, and never the wrong library.
 */
#include "support/test.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/nsec.h"
#include "base/root.h"
#include "procmap/address_space.h"
#include "procmap/process_history.h"
#include "procmap/space.h"
#include "support/fixture.h"

#define BYTES	4096
#define EXEC_ID 7

enum library { NOTHING, ANT, BEE, LIBRARIES };

struct fixture {
	struct root proc;
	struct address_space_cache *cache;
	struct pid_id id; /* of the child */
	int child;	  /* loads the next library and reports it */
	char *at;	  /* where, in the child */
	char paths[LIBRARIES][FIXTURE_PATH_MAX];
};

/* ---------------------------------------------------------------- the child */

static void put(struct fixture *f, enum library library)
{
	int fd;

	if (library == NOTHING) {
		munmap(f->at, BYTES);
		return;
	}
	fd = open(f->paths[library], O_RDONLY | O_CLOEXEC);
	if (mmap(f->at, BYTES, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd, BYTES) ==
	    MAP_FAILED)
		_exit(1);
	close(fd);
}

static void serve(struct fixture *f, int fd)
{
	uint8_t library;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (read(fd, &library, 1) == 1) {
		put(f, library);
		if (write(fd, &library, 1) != 1)
			break;
	}
	_exit(0);
}

static void change(struct fixture *f, uint8_t library)
{
	assert_int_equal(write(f->child, &library, 1), 1);
	assert_int_equal(read(f->child, &library, 1), 1);
}

/* The process has ended and is a zombie. */
static void end(struct fixture *f)
{
	siginfo_t info;

	assert_int_equal(shutdown(f->child, SHUT_WR), 0);
	assert_int_equal(waitid(P_PID, (id_t)f->id.pid, &info, WEXITED | WNOWAIT), 0);
}

static void reap(struct fixture *f)
{
	end(f);
	assert_int_equal(waitpid((pid_t)f->id.pid, NULL, 0), f->id.pid);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	int ends[2];
	pid_t pid;

	assert_non_null(f);
	*state = f;
	assert_int_equal(root_open("/proc", &f->proc), 0);
	assert_int_equal(address_space_cache_new(&f->proc, &f->cache), 0);
	fixture_path("plain-pie", f->paths[ANT]);
	fixture_path("plain-fixed", f->paths[BEE]);
	f->at = mmap(NULL, BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(f->at != MAP_FAILED);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	pid = fork();
	if (pid == 0)
		serve(f, ends[1]);
	close(ends[1]);
	f->child = ends[0];
	return pid_read(&f->proc, pid, &f->id);
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	kill((pid_t)f->id.pid, SIGKILL);
	waitpid((pid_t)f->id.pid, NULL, 0);
	close(f->child);
	munmap(f->at, BYTES);
	address_space_cache_free(f->cache);
	root_deinit(&f->proc);
	free(f);
	return 0;
}

/* ---------------------------------------------------------------- events and lookups */

static void tell(struct fixture *f, enum process_event_kind what)
{
	const struct process_event event = {.what = what,
					    .pid = (uint32_t)f->id.pid,
					    .tid = (uint32_t)f->id.pid,
					    .ppid = 1,
					    .time_ns = nsec_boot(),
					    .name = ""};

	address_space_cache_event(f->cache, &event);
}

static void send_map(struct fixture *f, enum library library)
{
	const uint64_t start = (uint64_t)(uintptr_t)f->at;
	struct process_event event = {
		.what = PROCESS_EVENT_MAP,
		.pid = (uint32_t)f->id.pid,
		.tid = (uint32_t)f->id.pid,
		.time_ns = nsec_boot(),
		.map = {.start = start, .limit = start + BYTES, .offset = BYTES},
		.name = f->paths[library]};
	struct stat st;

	assert_int_equal(stat(f->paths[library], &st), 0);
	event.map.device = st.st_dev;
	event.map.inode = st.st_ino;
	address_space_cache_event(f->cache, &event);
}

/* Code in memory, of no file, at the library's place. */
static void send_memory(struct fixture *f)
{
	const uint64_t start = (uint64_t)(uintptr_t)f->at;
	const struct process_event event = {.what = PROCESS_EVENT_MAP,
					    .pid = (uint32_t)f->id.pid,
					    .tid = (uint32_t)f->id.pid,
					    .time_ns = nsec_boot(),
					    .map = {.start = start, .limit = start + BYTES},
					    .name = "//anon"};

	address_space_cache_event(f->cache, &event);
}

/* The next samples are from after this moment. */
static void begin(struct fixture *f)
{
	address_space_cache_between(f->cache, nsec_boot(), UINT64_MAX);
}

static void lose(struct fixture *f)
{
	address_space_cache_lost(f->cache, nsec_boot() - 1);
}

static struct address_space *get(struct fixture *f, uint64_t exec_id)
{
	const struct address_space_who who = {.pid = f->id, .exec_id = exec_id};
	struct address_space *space;

	assert_int_equal(address_space_cache_get(f->cache, &who, &space), 0);
	return space;
}

static void expect_in(struct fixture *f, struct address_space *space, enum library library)
{
	struct frame frame = {0};

	assert_int_equal(
		address_space_resolve(f->cache, space, (uint64_t)(uintptr_t)f->at + 16, &frame), 0);
	assert_string_equal(frame.image->path,
			    library == NOTHING ? "[unknown]" : f->paths[library]);
	image_unref(frame.image);
}

static void expect(struct fixture *f, enum library library)
{
	expect_in(f, get(f, EXEC_ID), library);
}

/* ---------------------------------------------------------------- tests */

/* The mappings are known, then events of some time are lost. */
static void begin_with_loss(struct fixture *f)
{
	change(f, ANT);
	begin(f);
	expect(f, ANT);
	change(f, BEE);
	lose(f);
	begin(f);
}

static void test_process_history(void **state)
{
	struct fixture *f = *state;

	change(f, ANT);
	begin(f);
	expect(f, ANT);
	change(f, BEE);
	lose(f);
	expect(f, NOTHING); /* taken before, or after */
	begin(f);
	expect(f, BEE);
	reap(f);
	begin(f);
	expect(f, BEE);
}

/* The next samples are from after this moment, and events of their time are lost. A process is read
 * again after 50 times the CPU time of its last read. */
static void begin_losing(struct fixture *f)
{
	usleep(200000);
	begin(f);
	lose(f);
}

/* Two lists with the same mappings: before the samples, and after the loss. */
static void test_there_all_the_time(void **state)
{
	struct fixture *f = *state;

	change(f, ANT);
	begin(f);
	expect(f, ANT);
	begin_losing(f);
	expect(f, ANT);
	begin_losing(f);
	end(f);
	expect(f, NOTHING);
}

/* A process that is never sampled without losses. */
static void test_first_sample_with_loss(void **state)
{
	struct fixture *f = *state;

	change(f, ANT);
	begin_losing(f);
	expect(f, NOTHING);
	begin_losing(f);
	expect(f, ANT);
	begin(f);
	expect(f, ANT);
}

/* Equal lists prove nothing about a process that has put one library in the place of another. */
static void test_replaced_with_loss(void **state)
{
	struct fixture *f = *state;

	change(f, ANT);
	begin_losing(f);
	expect(f, NOTHING);
	change(f, BEE);
	begin_losing(f);
	expect(f, NOTHING);
	begin_losing(f);
	expect(f, NOTHING);
	begin(f);
	expect(f, BEE);
}

/* The process is unreadable by the time of its samples after the loss. */
static void test_gone(void **state)
{
	struct fixture *f = *state;

	begin_with_loss(f);
	reap(f);
	expect(f, NOTHING);
}

static void test_zombie(void **state)
{
	struct fixture *f = *state;

	begin_with_loss(f);
	end(f);
	expect(f, NOTHING);
}

static void test_pid_taken(void **state)
{
	struct fixture *f = *state;

	begin_with_loss(f);
	reap(f);
	usleep(20000); /* two ticks of process times */
	tell(f, PROCESS_EVENT_BIRTH);
	expect(f, NOTHING);
}

static void test_left_by_exec(void **state)
{
	struct fixture *f = *state;
	struct address_space *space;

	begin_with_loss(f);
	tell(f, PROCESS_EVENT_EXEC);
	space = get(f, EXEC_ID + 1); /* the count of its programs */
	assert_false(address_space_gone(space));
	expect(f, NOTHING);
}

static void no_events(void *ctx)
{
	(void)ctx;
}

static void sweep(struct fixture *f)
{
	address_space_cache_sweep(f->cache, nsec_boot());
	begin(f);
}

/* While all events arrive, mappings without a change are read more and more seldom. A change that
 * no event told of is found late, the next one soon. */
static void test_seldom(void **state)
{
	struct fixture *f = *state;

	address_space_cache_follow(f->cache, no_events, NULL);
	change(f, ANT);
	begin(f);
	expect(f, ANT);
	change(f, BEE);
	for (int i = 0; i < 7; i++) {
		sweep(f);
		expect(f, ANT);
	}
	sweep(f);
	expect(f, BEE);
	change(f, ANT);
	sweep(f);
	expect(f, ANT);
	sweep(f); /* no change: two windows now */
	expect(f, ANT);
	change(f, BEE);
	sweep(f);
	expect(f, ANT);
	sweep(f);
	expect(f, BEE);
}

/* Memory in the place of a file is found with the next window, too: a compiler of code maps at the
 * place of a library that is gone. */
static void test_seldom_memory(void **state)
{
	struct fixture *f = *state;

	address_space_cache_follow(f->cache, no_events, NULL);
	change(f, ANT);
	begin(f);
	expect(f, ANT);
	change(f, BEE);
	send_memory(f);
	begin(f);
	expect(f, ANT);
	sweep(f);
	expect(f, BEE);
}

/* After a loss of events, the next sweep is enough. */
static void test_seldom_lost(void **state)
{
	struct fixture *f = *state;

	address_space_cache_follow(f->cache, no_events, NULL);
	change(f, ANT);
	begin(f);
	expect(f, ANT);
	change(f, BEE);
	lose(f);
	sweep(f);
	expect(f, BEE);
}

/* Images of files that no one can open, until there is room for no more. */
static size_t fill_images(struct images *images, struct image **held, size_t max)
{
	const struct images_way way = {0};

	for (size_t n = 0; n < max; n++) {
		const struct maps_entry entry = {.kind = MAPS_FILE,
						 .path = (char *)"/no/such/file",
						 .device = UINT32_MAX,
						 .inode = n + 1};

		assert_int_equal(images_of_record(images, &way, &entry, &held[n]), 0);
		if (held[n] == images_full(images)) {
			image_unref(held[n]);
			return n;
		}
	}
	fail_msg("room for %zu images", max);
	return 0;
}

/* A file without room has its name from the first window with room on. */
static void test_without_room(void **state)
{
	static struct image *held[20000];
	struct fixture *f = *state;
	size_t n;

	address_space_cache_follow(f->cache, no_events, NULL);
	n = fill_images(f->cache->images, held, 20000);
	change(f, ANT);
	begin(f);
	expect(f, NOTHING);
	sweep(f);
	expect(f, NOTHING);
	while (n)
		image_unref(held[--n]);
	sweep(f); /* closes unused files last */
	sweep(f);
	expect(f, ANT);
}

/* No loss, and the process ends: its data stays. */
static void test_nothing_lost(void **state)
{
	struct fixture *f = *state;

	change(f, ANT);
	begin(f);
	expect(f, ANT);
	reap(f);
	begin(f);
	expect(f, ANT);
}

/* The leader has ended, and /proc with it; another thread continues. */
static void test_leader_ended(void **state)
{
	struct fixture *f = *state;

	tell(f, PROCESS_EVENT_BIRTH);
	change(f, ANT);
	send_map(f, ANT);
	begin(f);
	expect_in(f, get(f, 0), ANT);
	tell(f, PROCESS_EVENT_EXIT);
	end(f);
	address_space_cache_sweep(f->cache, nsec_boot()); /* read again */
	expect_in(f, get(f, 0), ANT);
	send_map(f, BEE);
	expect_in(f, get(f, 0), NOTHING);
	begin(f);
	expect_in(f, get(f, 0), BEE);
}

static void replace_and_send(void *ctx)
{
	struct fixture *f = ctx;

	change(f, BEE);
	send_map(f, BEE);
}

/* Events that arrive during the lookup of an unmapped pc. */
static void test_late_event(void **state)
{
	struct fixture *f = *state;
	struct address_space *space;

	tell(f, PROCESS_EVENT_BIRTH);
	change(f, ANT);
	send_map(f, ANT);
	begin(f);
	change(f, NOTHING);
	space = get(f, 0);
	expect_in(f, space, NOTHING);
	usleep(1100000); /* until the next read for such a pc */
	change(f, BEE);
	address_space_cache_follow(f->cache, replace_and_send, f);
	expect_in(f, space, NOTHING);
	begin(f);
	expect_in(f, get(f, 0), BEE);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_process_history),
		TEST(test_gone),
		TEST(test_zombie),
		TEST(test_pid_taken),
		TEST(test_left_by_exec),
		TEST(test_seldom),
		TEST(test_seldom_memory),
		TEST(test_seldom_lost),
		TEST(test_without_room),
		TEST(test_nothing_lost),
		TEST(test_leader_ended),
		TEST(test_late_event),
		TEST(test_there_all_the_time),
		TEST(test_first_sample_with_loss),
		TEST(test_replaced_with_loss),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
