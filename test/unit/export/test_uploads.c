// SPDX-License-Identifier: Apache-2.0
/* The queue of uploads: each build id once, failures, a file system without an answer. */
#include "support/test.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/fixture.h"
#include "support/sink.h"
#include "support/stalldir.h"
#include "support/threads.h"
#include "support/until.h"

#include "base/buf.h"
#include "base/loop.h"
#include "base/nsec.h"
#include "base/root.h"
#include "base/watchdog.h"
#include "elf/elffile.h"
#include "export/uploads.h"

#define FILE_BYTES_MAX (1u << 20)
#define WANTED	       "{\"shouldInitiateUpload\":true}"
#define UNWANTED       "{\"shouldInitiateUpload\":false}"

struct fixture {
	char dir[64];
	struct stalldir *disk;
	int fd; /* of a file there */
	struct loop *loop;
	struct sink *sink;
	struct uploads *uploads;
	uint64_t ends[UPLOAD_END_MAX];
	uint64_t bytes;
	uint64_t read_ns;
	uint64_t until_ns; /* to wait for, as the next */
	size_t n_ended;
};

static size_t n_ended(struct fixture *f)
{
	size_t n = 0;

	uploads_count(f->uploads, f->ends);
	f->bytes = uploads_bytes(f->uploads);
	for (size_t i = 0; i < UPLOAD_END_MAX; i++)
		n += f->ends[i];
	return n;
}

static bool have_ended(void *ctx)
{
	struct fixture *f = ctx;

	return n_ended(f) >= f->n_ended && uploads_is_idle(f->uploads);
}

static bool have_ended_some(void *ctx)
{
	struct fixture *f = ctx;

	return n_ended(f) >= f->n_ended;
}

static void wait_for(struct fixture *f, size_t n)
{
	f->n_ended = n;
	loop_until(f->loop, have_ended, f);
	assert_int_equal(n_ended(f), n);
}

static void start_with(struct fixture *f, const struct sink_answer *script, size_t n,
		       uint64_t blocked_ns, uint64_t day_max)
{
	char spec[128];
	struct uploads_opts opts = {.spec = spec,
				    .name = "parca",
				    .blocked_ns = blocked_ns,
				    .read_ns = f->read_ns,
				    .day_max = day_max};

	assert_int_equal(loop_new(&f->loop), 0);
	f->sink = sink_new(script, n, NULL);
	snprintf(spec, sizeof(spec), "parca=%s,server-symbols=true,debuginfo=true",
		 sink_url(f->sink));
	opts.loop = f->loop;
	assert_int_equal(uploads_new(&opts, &f->uploads), 0);
}

static void start(struct fixture *f, const struct sink_answer *script, size_t n,
		  uint64_t blocked_ns)
{
	start_with(f, script, n, blocked_ns, 0);
}

static void end(struct fixture *f)
{
	uploads_free(take_ptr(f->uploads));
	sink_free(f->sink);
	loop_free(f->loop);
}

/* Offers the fixture's file. */
static void offer_of(struct fixture *f, uint64_t owner, const char *fixture)
{
	char path[FIXTURE_PATH_MAX], build_id[ELFFILE_BUILD_ID_TEXT];
	_cleanup_(elffile_freep) struct elffile *ef = NULL;

	assert_int_equal(elffile_open(open(fixture_path(fixture, path), O_RDONLY | O_CLOEXEC), &ef),
			 0);
	elffile_build_id_text(ef, build_id);
	uploads_offer(f->uploads, owner, build_id, elffile_fd(ef));
}

static void offer(struct fixture *f, const char *fixture)
{
	offer_of(f, 1, fixture);
}

static uint64_t size_of(const char *fixture)
{
	char path[FIXTURE_PATH_MAX];
	_cleanup_(close_fdp) int fd = open(fixture_path(fixture, path), O_RDONLY | O_CLOEXEC);

	return (uint64_t)lseek(fd, 0, SEEK_END);
}

static void test_once(void **state)
{
	static const struct sink_answer unwanted = {.status = 200, .body = UNWANTED};
	struct fixture f = {0};

	(void)state;
	start(&f, &unwanted, 1, 0);
	offer(&f, "cat");
	offer(&f, "cat");
	wait_for(&f, 1);
	offer(&f, "cat");
	offer(&f, "cow");
	wait_for(&f, 2);
	assert_int_equal(f.ends[UPLOAD_UNWANTED], 2);
	assert_int_equal(sink_n_requests(f.sink), 2);
	end(&f);
}

#define TICKET                                                            \
	"{\"uploadInstructions\":{\"uploadId\":\"i\",\"uploadStrategy\":" \
	"\"UPLOAD_STRATEGY_GRPC\"}}"
/* The answers to a whole upload; @size: the third. */
#define UPLOADED(size)                                                    \
	{.status = 200, .body = WANTED}, {.status = 200, .body = TICKET}, \
		{.status = 200, .body = size},                            \
	{                                                                 \
		.status = 200, .body = "{}"                               \
	}

static void test_uploaded(void **state)
{
	char size[64];
	struct sink_answer script[] = {UPLOADED(size)};
	struct fixture f = {0};

	(void)state;
	snprintf(size, sizeof(size), "{\"size\":\"%ju\"}", (uintmax_t)size_of("cat"));
	start(&f, script, array_size(script), 0);
	offer(&f, "cat");
	wait_for(&f, 1);
	assert_int_equal(f.ends[UPLOAD_DONE], 1);
	assert_int_equal(f.bytes, size_of("cat"));
	end(&f);
}

/* An owner gets a quarter of the day's free bytes. */
static void test_day_share(void **state)
{
	char cat[64], cow[64];
	struct sink_answer script[] = {
		UPLOADED(cat), {.status = 200, .body = WANTED}, UPLOADED(cow)};
	struct fixture f = {0};

	(void)state;
	snprintf(cat, sizeof(cat), "{\"size\":\"%ju\"}", (uintmax_t)size_of("cat"));
	snprintf(cow, sizeof(cow), "{\"size\":\"%ju\"}", (uintmax_t)size_of("cow"));
	/* behind the first file there is room for the second, of another owner */
	start_with(&f, script, array_size(script), 0, 3 * size_of("cat") + 3 * size_of("cow"));
	offer_of(&f, 1, "cat");
	wait_for(&f, 1);
	offer_of(&f, 1, "bare");
	wait_for(&f, 2);
	assert_int_equal(f.ends[UPLOAD_DAY_FULL], 1);
	offer_of(&f, 2, "cow");
	wait_for(&f, 3);
	assert_int_equal(f.ends[UPLOAD_DONE], 2);
	assert_int_equal(f.bytes, size_of("cat") + size_of("cow"));
	end(&f);
}

/* The owner that had the thread for the shortest time is next, whatever the order of offers. */
static void test_order(void **state)
{
	char size[64];
	struct sink_answer script[] = {
		UPLOADED(size), {.status = 500}, {.status = 200, .body = UNWANTED}};
	_cleanup_(close_fdp) int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct fixture f = {0};

	(void)state;
	snprintf(size, sizeof(size), "{\"size\":\"%ju\"}", (uintmax_t)size_of("cat"));
	start(&f, script, array_size(script), 0);
	offer_of(&f, 1, "cat");
	wait_for(&f, 1);
	/* a failure delays all, so the next two wait together */
	offer_of(&f, 3, "cow");
	wait_for(&f, 2);
	uploads_offer(f.uploads, 1, "aaaaaaaaaaaaaaaa", fd);
	uploads_offer(f.uploads, 2, "bbbbbbbbbbbbbbbb", fd);
	wait_for(&f, 4);
	assert_int_equal(sink_n_requests(f.sink), 7);
	assert_non_null(strstr(sink_request(f.sink, 5)->body, "bbbb"));
	assert_non_null(strstr(sink_request(f.sink, 6)->body, "aaaa"));
	end(&f);
}

/* After a failure the next build id follows, and the failed one not soon. */
static void test_failure(void **state)
{
	static const struct sink_answer script[] = {{.status = 500},
						    {.status = 200, .body = UNWANTED}};
	struct fixture f = {0};

	(void)state;
	start(&f, script, array_size(script), 0);
	offer(&f, "cat");
	wait_for(&f, 1);
	assert_int_equal(f.ends[UPLOAD_FAILED], 1);
	offer(&f, "cat");
	assert_true(uploads_is_idle(f.uploads));
	offer(&f, "cow");
	wait_for(&f, 2);
	assert_int_equal(f.ends[UPLOAD_UNWANTED], 1);
	end(&f);
}

static bool is_asked(void *ctx)
{
	struct fixture *f = ctx;

	return sink_n_requests(f->sink) == 1;
}

static void offer_number(struct fixture *f, uint64_t owner, unsigned int i, int fd)
{
	char build_id[32];

	snprintf(build_id, sizeof(build_id), "%016x", i);
	uploads_offer(f->uploads, owner, build_id, fd);
}

/* Places of a single owner: a fifth, rounded up. */
#define GREEDY 13

/* One owner does not fill the queue; many do. The end of the program does not wait for the server.
 */
static void test_full(void **state)
{
	static const struct sink_answer hang = {.how = SINK_HANG};
	_cleanup_(close_fdp) int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct fixture f = {0};

	(void)state;
	start(&f, &hang, 1, 0);
	offer(&f, "cat");
	loop_until(f.loop, is_asked, &f);
	for (unsigned int i = 0; i < UPLOADS_QUEUE_MAX; i++)
		offer_number(&f, 7, i, fd);
	assert_int_equal(n_ended(&f), UPLOADS_QUEUE_MAX - GREEDY);
	for (unsigned int i = GREEDY; i < UPLOADS_QUEUE_MAX; i++)
		offer_number(&f, 100 + i, 100 + i, fd);
	assert_int_equal(n_ended(&f), UPLOADS_QUEUE_MAX - GREEDY);
	offer_number(&f, 8, 1000, fd);
	assert_int_equal(n_ended(&f), UPLOADS_QUEUE_MAX - GREEDY + 1);
	assert_int_equal(f.ends[UPLOAD_QUEUE_FULL], n_ended(&f));
	end(&f);
}

/* A file of the slow file system: an ELF file and @n bytes more. */
static void make_file(struct fixture *f, size_t n)
{
	_cleanup_(buf_deinit) struct buf bytes = BUF_INIT(FILE_BYTES_MAX);
	char path[FIXTURE_PATH_MAX];
	int fd = open(fixture_path("cat", path), O_RDONLY | O_CLOEXEC);

	assert_int_equal(root_read_fd(fd, &bytes), 0);
	close(fd);
	snprintf(path, sizeof(path), "%s/file", f->dir);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(write(fd, bytes.data, bytes.len), bytes.len);
	memset(bytes.data, 0, bytes.len);
	for (size_t i = 0; i < n; i += bytes.len)
		assert_int_equal(write(fd, bytes.data, bytes.len), bytes.len);
	close(fd);
	f->fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(f->fd >= 0);
}

/* A file that nobody reads costs its own upload only. */
static void test_slow(void **state)
{
	static const struct sink_answer script[] = {{.status = 200, .body = WANTED},
						    {.status = 200, .body = UNWANTED}};
	struct fixture *f = *state;

	make_file(f, 0);
	stalldir_stall(f->disk, "read");
	start(f, script, array_size(script), 2 * NSEC_PER_SEC);
	uploads_offer(f->uploads, 1, "0123456789abcdef", f->fd);
	wait_for(f, 1);
	assert_int_equal(f->ends[UPLOAD_SLOW], 1);
	assert_int_equal(stalldir_n_held(f->disk), 1);
	offer_of(f, 2, "cow");
	wait_for(f, 2);
	assert_int_equal(f->ends[UPLOAD_UNWANTED], 1);
	stalldir_answer(f->disk, 0);
	end(f);
}

/* An owner blocks one thread: its next file waits for the end of the first read. */
static void test_blocked_owner(void **state)
{
	static const struct sink_answer script[] = {{.status = 200, .body = WANTED},
						    {.status = 200, .body = UNWANTED}};
	struct fixture *f = *state;

	make_file(f, 0);
	stalldir_stall(f->disk, "read");
	start(f, script, array_size(script), 2 * NSEC_PER_SEC);
	uploads_offer(f->uploads, 1, "aaaaaaaaaaaaaaaa", f->fd);
	uploads_offer(f->uploads, 1, "bbbbbbbbbbbbbbbb", f->fd);
	uploads_offer(f->uploads, 2, "cccccccccccccccc", f->fd);
	uploads_offer(f->uploads, 3, "dddddddddddddddd", f->fd);
	f->n_ended = 3;
	loop_until(f->loop, have_ended_some, f);
	assert_int_equal(f->ends[UPLOAD_SLOW], 1);
	assert_int_equal(f->ends[UPLOAD_UNWANTED], 2);
	assert_int_equal(sink_n_requests(f->sink), 3);
	assert_false(uploads_is_idle(f->uploads));
	stalldir_answer(f->disk, 0);
	wait_for(f, 4);
	assert_int_equal(f->ends[UPLOAD_UNWANTED], 3);
	assert_non_null(strstr(sink_request(f->sink, 3)->body, "bbbb"));
	stalldir_answer(f->disk, 0);
	end(f);
}

static bool all_block(void *ctx)
{
	const struct fixture *f = ctx;

	return stalldir_n_held(f->disk) == WATCHDOG_THREADS_MAX;
}

/* Owners that block all threads but one leave this one to an owner whose file was read before. */
static void test_last_thread(void **state)
{
	char size[64];
	const struct sink_answer wanted = {.status = 200, .body = WANTED};
	const struct sink_answer script[] = {
		UPLOADED(size), wanted, wanted, wanted, wanted, {.status = 200, .body = UNWANTED}};
	struct fixture *f = *state;

	make_file(f, 0);
	snprintf(size, sizeof(size), "{\"size\":\"%ju\"}", (uintmax_t)size_of("cat"));
	start(f, script, array_size(script), 2 * NSEC_PER_SEC);
	offer_of(f, 1, "cat");
	wait_for(f, 1);
	assert_int_equal(f->ends[UPLOAD_DONE], 1);
	stalldir_stall(f->disk, "read");
	for (unsigned int i = 0; i < WATCHDOG_THREADS_MAX; i++)
		offer_number(f, 10 + i, i, f->fd);
	loop_until(f->loop, all_block, f);
	f->n_ended = 1 + WATCHDOG_THREADS_MAX;
	loop_until(f->loop, have_ended_some, f);
	/* of a new owner, of one that blocks, and of the one whose file was read */
	offer_number(f, 20, 50, f->fd);
	offer_number(f, 10, 99, f->fd);
	offer_of(f, 1, "cow");
	f->n_ended++;
	loop_until(f->loop, have_ended_some, f);
	assert_int_equal(f->ends[UPLOAD_SLOW], WATCHDOG_THREADS_MAX);
	assert_int_equal(f->ends[UPLOAD_UNWANTED], 1);
	assert_int_equal(sink_n_requests(f->sink), 4 + WATCHDOG_THREADS_MAX + 1);
	assert_false(uploads_is_idle(f->uploads));
	/* a thread returns: the new owner's file is next, and then that of the one that blocked */
	stalldir_answer(f->disk, 0);
	wait_for(f, f->n_ended + 2);
	assert_int_equal(f->ends[UPLOAD_UNWANTED], 3);
	end(f);
}

/* A file system that answers each read, but late: the thread is free again after read_ns. */
static void test_slow_reads(void **state)
{
	static const struct sink_answer script[] = {{.status = 200, .body = WANTED},
						    {.status = 200, .body = TICKET},
						    {.status = 200, .body = "{}"}};
	_cleanup_(elffile_freep) struct elffile *ef = NULL;
	char build_id[ELFFILE_BUILD_ID_TEXT];
	struct fixture *f = *state;

	make_file(f, 1u << 20);
	assert_int_equal(elffile_open(fcntl(f->fd, F_DUPFD_CLOEXEC, 0), &ef), 0);
	elffile_build_id_text(ef, build_id);
	stalldir_delay(f->disk, "read", 100);
	f->read_ns = 500 * NSEC_PER_MSEC;
	start(f, script, array_size(script), 1000 * NSEC_PER_SEC);
	uploads_offer(f->uploads, 1, build_id, f->fd);
	wait_for(f, 1);
	assert_int_equal(f->ends[UPLOAD_SLOW], 1);
	assert_in_range(f->bytes, 0, 1u << 20);
	stalldir_answer(f->disk, 0);
	end(f);
}

static bool is_held(void *ctx)
{
	const struct fixture *f = ctx;

	return stalldir_n_held(f->disk) > 0 && nsec_monotonic() >= f->until_ns;
}

/* The owner that had the thread for the shortest time is next, although it has more bytes. */
static void test_order_of_time(void **state)
{
	char size[64];
	const struct sink_answer script[] = {UPLOADED(size),
					     {.status = 200, .body = WANTED},
					     {.status = 500},
					     {.status = 200, .body = UNWANTED}};
	struct fixture *f = *state;
	uint64_t begun_ns, took_ns;

	make_file(f, 0);
	snprintf(size, sizeof(size), "{\"size\":\"%ju\"}", (uintmax_t)size_of("cat"));
	stalldir_stall(f->disk, "read");
	start(f, script, array_size(script), 1000 * NSEC_PER_SEC);
	begun_ns = nsec_monotonic();
	offer_of(f, 2, "cat");
	wait_for(f, 1);
	took_ns = nsec_monotonic() - begun_ns;
	uploads_offer(f->uploads, 1, "0123456789abcdef", f->fd);
	f->until_ns = nsec_monotonic() + took_ns;
	loop_until(f->loop, is_held, f);
	stalldir_answer(f->disk, 0);
	wait_for(f, 2);
	assert_int_equal(f->ends[UPLOAD_CHANGED], 1);
	/* a failure delays all, so the next two wait together */
	offer_of(f, 3, "cow");
	wait_for(f, 3);
	uploads_offer(f->uploads, 1, "aaaaaaaaaaaaaaaa", f->fd);
	uploads_offer(f->uploads, 2, "bbbbbbbbbbbbbbbb", f->fd);
	wait_for(f, 5);
	assert_non_null(strstr(sink_request(f->sink, 6)->body, "bbbb"));
	assert_non_null(strstr(sink_request(f->sink, 7)->body, "aaaa"));
	stalldir_answer(f->disk, 0);
	end(f);
}

static int make_disk(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	snprintf(f->dir, sizeof(f->dir), "/tmp/podprof-test-uploads-XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	f->disk = stalldir_new(f->dir);
	*state = f;
	return 0;
}

static int free_disk(void **state)
{
	struct fixture *f = *state;

	stalldir_answer(f->disk, 0);
	if (f->uploads)
		end(f); /* the test has failed */
	close(f->fd);
	threads_wait(); /* the abandoned one holds the file */
	stalldir_free(f->disk);
	assert_int_equal(rmdir(f->dir), 0);
	free(f);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_slow, make_disk, free_disk),
		cmocka_unit_test_setup_teardown(test_blocked_owner, make_disk, free_disk),
		cmocka_unit_test_setup_teardown(test_last_thread, make_disk, free_disk),
		cmocka_unit_test_setup_teardown(test_slow_reads, make_disk, free_disk),
		cmocka_unit_test_setup_teardown(test_order_of_time, make_disk, free_disk),
		cmocka_unit_test(test_once),
		cmocka_unit_test(test_uploaded),
		cmocka_unit_test(test_day_share),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_failure),
		cmocka_unit_test(test_full),
	};

	unsetenv("http_proxy");
	unsetenv("all_proxy");
	unsetenv("ALL_PROXY");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
