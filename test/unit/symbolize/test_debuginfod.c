// SPDX-License-Identifier: Apache-2.0
/* Debug files from servers: Debian's debuginfod, and servers with faults. */
#include "support/test.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/atomic_file.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/nsec.h"
#include "base/root.h"
#include "support/debugserver.h"
#include "support/fixture.h"
#include "support/rawserver.h"
#include "support/tree.h"
#include "symbolize/debugcache.h"
#include "symbolize/debuginfod.h"
#include "symbolize/symbolizer.h"

#define CACHE_BYTES  (16u << 20)
#define DIR_BYTES    (64u << 20)
/* Only ends a hanging test. */
#define WAIT_SECONDS 300
#define MADE_UP_ID   "0123456789abcdef0123456789abcdef01234567"
#define NOT_FOUND    "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
#define SERVER_ERROR "HTTP/1.1 500 Oops\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
#define CUT	     "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\nConnection: close\r\n\r\nbegin"

static struct debuginfod *start(const struct tree *t, const char *const *urls, size_t n_urls)
{
	char dir[96];
	const struct debuginfod_opts opts = {
		.urls = urls,
		.n_urls = n_urls,
		.dir = dir,
		.max_bytes = DIR_BYTES,
		.retry_ns = NSEC_PER_MSEC,
	};
	struct debuginfod *d;

	snprintf(dir, sizeof(dir), "%s/cache", t->path);
	assert_int_equal(debuginfod_new(&opts, &d), 0);
	return d;
}

static uint64_t count(struct debuginfod *d, enum debuginfod_end end)
{
	uint64_t ends[DEBUGINFOD_END_MAX];

	debuginfod_counts(d, ends);
	return ends[end];
}

static void wait_for(struct debuginfod *d, enum debuginfod_end end, uint64_t n)
{
	const uint64_t until = nsec_monotonic() + WAIT_SECONDS * NSEC_PER_SEC;

	while (count(d, end) < n) {
		assert_true(nsec_monotonic() < until);
		usleep(1000);
	}
}

/* ---------------------------------------------------------------- names */

/* The names of @stripped's code are those of the program before strip. Returns the number of
 * these, 0 while there is no debug file. */
static size_t compare(struct debuginfod *d, struct image *stripped)
{
	_cleanup_(root_deinit) struct root proc = ROOT_INIT;
	const struct symbolizer_opts opts = {
		.proc = &proc, .cache_bytes = CACHE_BYTES, .debuginfod = d};
	struct image *whole = fixture_image("cxx");
	struct symbol want, got;
	struct elffile_section text;
	struct symbolizer *s;
	size_t n = 0;

	assert_int_equal(root_open("/proc", &proc), 0);
	assert_int_equal(symbolizer_new(&opts, &s), 0);
	assert_int_equal(elffile_section(whole->file, ".text", &text), 0);
	for (uint64_t vaddr = text.vaddr; vaddr < text.vaddr + text.size; vaddr++) {
		assert_int_equal(symbolizer_find(s, &(struct frame){whole, vaddr}, &want), 0);
		if (!want.found)
			continue;
		assert_int_equal(symbolizer_find(s, &(struct frame){stripped, vaddr}, &got), 0);
		if (!got.found) {
			assert_true(got.missing == SYMBOL_AWAITS_DEBUG_FILE ||
				    got.missing == SYMBOL_STRIPPED);
			break;
		}
		assert_string_equal(got.lines[0].function, want.lines[0].function);
		n++;
	}
	symbolizer_free(s);
	image_unref(whole);
	return n;
}

/* "cxx-other" is "cxx" without symbols, and no debug file is beside it. */
static struct image *open_stripped(void)
{
	struct image *stripped = fixture_image("cxx-other"), *whole = fixture_image("cxx");

	assert_string_equal(stripped->build_id, whole->build_id);
	image_unref(whole);
	return stripped;
}

static void read_debug_file(struct buf *ret)
{
	char path[FIXTURE_PATH_MAX];
	_cleanup_(close_fdp) int fd = open(fixture_path("cxx.debug", path), O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(root_read_fd(fd, ret), 0);
}

static void test_real_server(void **state)
{
	static const char *const urls[] = {DEBUGSERVER_URL};
	_cleanup_(tree_deinit) struct tree files = {0}, t = {0};
	const uint64_t until = nsec_monotonic() + WAIT_SECONDS * NSEC_PER_SEC;
	struct image *stripped = open_stripped();
	char mark[160];
	struct debuginfod *d;
	size_t n = 0;
	pid_t server;

	(void)state;
	debugserver_own_network();
	tree_init(&files);
	tree_init(&t);
	snprintf(mark, sizeof(mark), "cache/%s.absent", stripped->build_id);
	debugserver_put(&files, "cxx.debug");
	server = debugserver_start(&files);
	/* the server starts and scans meanwhile: unreachable, then "not found", then there */
	while (!n) {
		d = start(&t, urls, 1);
		n = compare(d, stripped);
		while (!n && !count(d, DEBUGINFOD_END_OK) && !count(d, DEBUGINFOD_END_NOT_FOUND) &&
		       !count(d, DEBUGINFOD_END_FAILED))
			usleep(10000);
		n = n ? n : compare(d, stripped);
		debuginfod_unref(d);
		(void)unlinkat(t.fd, mark, 0); /* "not found" holds for an hour */
		debugserver_check(server);
		assert_true(nsec_monotonic() < until);
	}
	assert_true(n > 100);
	debugserver_kill(server);
	/* the file stays for the next start */
	d = start(&t, urls, 1);
	assert_int_equal(compare(d, stripped), n);
	debuginfod_unref(d);
	image_unref(stripped);
}

/* ---------------------------------------------------------------- faults */

/* One request to servers with @answers; the @end of it. */
static void ask_once(const char *const *answers, size_t n, enum debuginfod_end end)
{
	_cleanup_(tree_deinit) struct tree t = {0};
	struct rawserver_answer scripts[2];
	struct rawserver *servers[2];
	const char *urls[2];
	struct debuginfod *d;
	int fd;

	tree_init(&t);
	for (size_t i = 0; i < n; i++) {
		scripts[i] = (struct rawserver_answer){.bytes = answers[i]};
		servers[i] = rawserver_new(&scripts[i], 1);
		urls[i] = rawserver_url(servers[i]);
	}
	d = start(&t, urls, n);
	assert_int_equal(debuginfod_get(d, MADE_UP_ID, &fd), DEBUGINFOD_LATER);
	wait_for(d, end, 1);
	assert_string_equal(rawserver_request(servers[0], 0),
			    "GET /buildid/" MADE_UP_ID "/debuginfo HTTP/1.1");
	if (end == DEBUGINFOD_END_NOT_FOUND)
		assert_int_equal(debuginfod_get(d, MADE_UP_ID, &fd), DEBUGINFOD_NOT_FOUND);
	if (end == DEBUGINFOD_END_OK) {
		assert_int_equal(debuginfod_get(d, MADE_UP_ID, &fd), 0);
		close(fd);
	}
	while (end == DEBUGINFOD_END_FAILED && count(d, end) < 2) { /* tried again, after a while */
		assert_true(debuginfod_get(d, MADE_UP_ID, &fd) > 0);
		usleep(1000);
	}
	debuginfod_unref(d);
	for (size_t i = 0; i < n; i++)
		rawserver_free(servers[i]);
}

#define BODY "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nELF"

static void test_answers(void **state)
{
	(void)state;
	ask_once((const char *const[]){NOT_FOUND}, 1, DEBUGINFOD_END_NOT_FOUND);
	ask_once((const char *const[]){SERVER_ERROR}, 1, DEBUGINFOD_END_FAILED);
	ask_once((const char *const[]){CUT}, 1, DEBUGINFOD_END_FAILED);
	ask_once((const char *const[]){"HTTP/1.1 302 Found\r\nLocation: /x\r\n"
				       "Content-Length: 0\r\nConnection: close\r\n\r\n"},
		 1, DEBUGINFOD_END_FAILED);
	ask_once((const char *const[]){NOT_FOUND, BODY}, 2, DEBUGINFOD_END_OK);
	ask_once((const char *const[]){CUT, BODY}, 2, DEBUGINFOD_END_OK);
	ask_once((const char *const[]){SERVER_ERROR, NOT_FOUND}, 2, DEBUGINFOD_END_FAILED);
}

/* Whether a server would be asked for MADE_UP_ID after a start. */
static bool is_asked(const struct tree *t, const char *url)
{
	struct debuginfod *d = start(t, &url, 1);
	int fd, r = debuginfod_get(d, MADE_UP_ID, &fd);

	assert_true(r == DEBUGINFOD_LATER || r == DEBUGINFOD_NOT_FOUND);
	debuginfod_unref(d);
	return r == DEBUGINFOD_LATER;
}

/* "Not found" stays for the next start, for an hour and for the same servers. */
static void test_absent_stays(void **state)
{
	static const struct rawserver_answer script[] = {
		{.bytes = NOT_FOUND}, {.bytes = NOT_FOUND}, {.bytes = NOT_FOUND}};
	static const char mark[] = "cache/" MADE_UP_ID ".absent";
	const int64_t now = (int64_t)(nsec_wall() / NSEC_PER_SEC);
	/* the hour, and a clock that was an hour ahead */
	const int64_t stale[] = {now - 3600, now + 3600};
	_cleanup_(tree_deinit) struct tree t = {0};
	struct rawserver *server = rawserver_new(script, array_size(script));
	const char *url = rawserver_url(server), *refused = "http://127.0.0.1:1";
	struct timespec times[2] = {{0}, {0}};
	struct debuginfod *d;
	int fd;

	(void)state;
	tree_init(&t);
	for (size_t i = 0; i < array_size(stale); i++) {
		d = start(&t, &url, 1);
		assert_int_equal(debuginfod_get(d, MADE_UP_ID, &fd), DEBUGINFOD_LATER);
		wait_for(d, DEBUGINFOD_END_NOT_FOUND, 1);
		debuginfod_unref(d);
		assert_false(is_asked(&t, url));
		times[0].tv_sec = times[1].tv_sec = now - 3500;
		assert_int_equal(utimensat(t.fd, mark, times, 0), 0);
		assert_false(is_asked(&t, url));
		times[0].tv_sec = times[1].tv_sec = stale[i];
		assert_int_equal(utimensat(t.fd, mark, times, 0), 0);
	}
	d = start(&t, &url, 1);
	assert_int_equal(debuginfod_get(d, MADE_UP_ID, &fd), DEBUGINFOD_LATER);
	wait_for(d, DEBUGINFOD_END_NOT_FOUND, 1);
	debuginfod_unref(d);
	assert_false(is_asked(&t, url));
	assert_true(is_asked(&t, refused));
	assert_int_equal(faccessat(t.fd, mark, F_OK, 0), -1);
	rawserver_free(server);
}

/* A silent server delays nobody: neither a caller nor the end. */
static void test_silent_server(void **state)
{
	static const struct rawserver_answer silent = {.bytes = "HTTP/1.1", .end = RAWSERVER_HOLD};
	_cleanup_(tree_deinit) struct tree t = {0};
	struct rawserver *server = rawserver_new(&silent, 1);
	const char *url = rawserver_url(server);
	char id[] = MADE_UP_ID;
	struct debuginfod *d;
	size_t n_asked = 0;
	int fd;

	(void)state;
	tree_init(&t);
	d = start(&t, &url, 1);
	while (!count(d, DEBUGINFOD_END_QUEUE_FULL)) {
		snprintf(id, sizeof(id), "%040zx", ++n_asked);
		assert_int_equal(debuginfod_get(d, id, &fd), DEBUGINFOD_LATER);
	}
	assert_int_equal(n_asked, DEBUGINFOD_QUEUE_MAX + 1);
	debuginfod_unref(d);
	rawserver_free(server);
}

/* A file that has come into the directory unseen, for the stripped program. */
static void put_unseen(const struct tree *t, const char *build_id)
{
	_cleanup_(close_fdp) int dir = openat(t->fd, "cache", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_(buf_deinit) struct buf bytes;
	char name[96];

	buf_init(&bytes, DIR_BYTES);
	read_debug_file(&bytes);
	snprintf(name, sizeof(name), "%s.debug", build_id);
	assert_int_equal(atomic_file_write(dir, name, 0600, bytes.data, bytes.len), 0);
}

struct names {
	struct root proc;
	struct symbolizer *s;
	struct image *stripped;
	uint64_t vaddr; /* each address is asked once */
};

static void names_init(struct names *n, struct debuginfod *d)
{
	const struct symbolizer_opts opts = {
		.proc = &n->proc, .cache_bytes = CACHE_BYTES, .debuginfod = d};
	struct elffile_section text;

	n->stripped = open_stripped();
	assert_int_equal(elffile_section(n->stripped->file, ".text", &text), 0);
	n->vaddr = text.vaddr + text.size / 2;
	assert_int_equal(root_open("/proc", &n->proc), 0);
	assert_int_equal(symbolizer_new(&opts, &n->s), 0);
}

static void names_deinit(struct names *n)
{
	symbolizer_free(n->s);
	image_unref(n->stripped);
	root_deinit(&n->proc);
}

static bool is_awaited(struct names *n)
{
	struct symbol symbol;

	assert_int_equal(symbolizer_find(n->s, &(struct frame){n->stripped, n->vaddr++}, &symbol),
			 0);
	return symbol.missing == SYMBOL_AWAITS_DEBUG_FILE;
}

/* Batches of addresses do not look into the directory until a download has ended. */
static void test_asks_for_news(void **state)
{
	static const struct rawserver_answer script[] = {
		{.bytes = "HTTP/1.1", .end = RAWSERVER_HOLD}, {.bytes = NOT_FOUND}};
	_cleanup_(tree_deinit) struct tree t = {0};
	struct rawserver *server = rawserver_new(script, array_size(script));
	const char *url = rawserver_url(server);
	struct names n;
	struct debuginfod *d;
	int fd;

	(void)state;
	tree_init(&t);
	d = start(&t, &url, 1);
	names_init(&n, d);
	assert_true(is_awaited(&n));
	while (!rawserver_request(server, 0))
		usleep(1000);
	put_unseen(&t, n.stripped->build_id);
	for (size_t i = 0; i < 4; i++)
		assert_true(is_awaited(&n));
	assert_int_equal(debuginfod_get(d, MADE_UP_ID, &fd), DEBUGINFOD_LATER);
	wait_for(d, DEBUGINFOD_END_NOT_FOUND, 1);
	assert_false(is_awaited(&n));
	names_deinit(&n);
	debuginfod_unref(d);
	rawserver_free(server);
}

/* After a failure of all servers, the time of the next request is news. */
static void test_asks_again(void **state)
{
	_cleanup_(tree_deinit) struct tree t = {0};
	const char *const url = "http://127.0.0.1:1"; /* refused */
	const uint64_t until = nsec_monotonic() + WAIT_SECONDS * NSEC_PER_SEC;
	struct names n;
	struct debuginfod *d;

	(void)state;
	tree_init(&t);
	d = start(&t, &url, 1);
	names_init(&n, d);
	assert_true(is_awaited(&n));
	wait_for(d, DEBUGINFOD_END_FAILED, 1);
	assert_true(is_awaited(&n)); /* asked again, or too early for that */
	put_unseen(&t, n.stripped->build_id);
	while (is_awaited(&n)) {
		assert_true(nsec_monotonic() < until);
		usleep(1000);
	}
	names_deinit(&n);
	debuginfod_unref(d);
}

/* A build id that has waited while no server was reached: the download starts without a new
 * request. */
static void test_waiting_goes_on(void **state)
{
	_cleanup_(tree_deinit) struct tree t = {0};
	const char *const url = "http://127.0.0.1:1"; /* refused */
	const uint64_t until = nsec_monotonic() + WAIT_SECONDS * NSEC_PER_SEC;
	struct debuginfod *d;
	char id[48];
	int fd;

	(void)state;
	tree_init(&t);
	d = start(&t, &url, 1);
	for (size_t i = 0; i <= DEBUGINFOD_RUNNING_MAX; i++) {
		snprintf(id, sizeof(id), "%040zx", i + 1);
		assert_int_equal(debuginfod_get(d, id, &fd), DEBUGINFOD_LATER);
	}
	while (count(d, DEBUGINFOD_END_FAILED) <= DEBUGINFOD_RUNNING_MAX) {
		assert_true(nsec_monotonic() < until);
		assert_int_equal(debuginfod_get(d, id, &fd), DEBUGINFOD_LATER);
		usleep(1000);
	}
	debuginfod_unref(d);
}

/* A build id is a part of a path and of a URL. */
static void test_strange_ids(void **state)
{
	static const char *const ids[] = {
		"",
		"0123456789abcde",
		"../../../../etc/passwd",
		"0123456789ABCDEF0123",
		"0123456789abcdef/../../x",
		"0123456789abcdef\n",
	};
	_cleanup_(tree_deinit) struct tree t = {0};
	struct debuginfod *d;
	int fd;

	(void)state;
	tree_init(&t);
	d = start(&t, NULL, 0);
	for (size_t i = 0; i < array_size(ids); i++)
		assert_int_equal(debuginfod_get(d, ids[i], &fd), DEBUGINFOD_NOT_FOUND);
	debuginfod_unref(d);
}

/* ---------------------------------------------------------------- the directory */

static void write_debug(struct debugcache *c, const char *id, size_t n)
{
	_cleanup_(freep) char *bytes = calloc(n, 1);
	struct debugcache_file *file;

	assert_non_null(bytes);
	assert_int_equal(debugcache_begin(c, id, &file), 0);
	assert_int_equal(debugcache_write(file, bytes, n), 0);
	assert_int_equal(debugcache_commit(file), 0);
}

static bool has_debug(struct debugcache *c, const char *id)
{
	int fd, r = debugcache_get(c, id, &fd);

	if (r == 0)
		close(fd);
	else
		assert_int_equal(r, DEBUGCACHE_ABSENT);
	return r == 0;
}

/* The file not used for longest goes first; a file above the ceiling stays alone. */
static void test_ceiling(void **state)
{
	static const char *const ids[] = {"aaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbb",
					  "cccccccccccccccc", "dddddddddddddddd"};
	const struct timespec old = {.tv_sec = 1000};
	_cleanup_(tree_deinit) struct tree t = {0};
	struct debugcache *c;

	(void)state;
	tree_init(&t);
	assert_int_equal(debugcache_new(t.path, 10000, "", NSEC_PER_SEC, &c), 0);
	for (size_t i = 0; i < 2; i++)
		write_debug(c, ids[i], 4000);
	for (size_t i = 0; i < 2; i++) {
		char name[32];

		snprintf(name, sizeof(name), "%s.debug", ids[i]);
		assert_int_equal(utimensat(t.fd, name, (struct timespec[]){old, old}, 0), 0);
	}
	assert_true(has_debug(c, ids[0])); /* now in use */
	write_debug(c, ids[2], 4000);
	assert_true(has_debug(c, ids[0]) && has_debug(c, ids[2]));
	assert_false(has_debug(c, ids[1]));
	write_debug(c, ids[3], 20000);
	assert_true(has_debug(c, ids[3]));
	assert_false(has_debug(c, ids[0]) || has_debug(c, ids[2]));
	/* what a killed process has left */
	debugcache_free(c);
	tree_write(t.fd, "aaaaaaaaaaaaaaaa.part", "begin");
	assert_int_equal(debugcache_new(t.path, 10000, "", NSEC_PER_SEC, &c), 0);
	assert_int_equal(faccessat(t.fd, "aaaaaaaaaaaaaaaa.part", F_OK, 0), -1);
	assert_false(has_debug(c, ids[0]));
	debugcache_free(c);
}

/* The marks of absent files have a ceiling, and are kept only beside the list of the servers. */
static void test_marks(void **state)
{
	_cleanup_(tree_deinit) struct tree t = {0};
	struct debugcache *c;
	char id[32];

	(void)state;
	tree_init(&t);
	assert_int_equal(debugcache_new(t.path, 10000, "here", 3600 * NSEC_PER_SEC, &c), 0);
	for (size_t i = 0; i < DEBUGCACHE_ABSENT_MAX; i++) {
		snprintf(id, sizeof(id), "%016zx", i);
		assert_int_equal(debugcache_set_absent(c, id), 0);
		assert_int_equal(debugcache_set_absent(c, "0000000000000000"), 0);
	}
	assert_true(debugcache_is_absent(c, "0000000000000000") && debugcache_is_absent(c, id));
	assert_int_equal(debugcache_set_absent(c, "aaaaaaaaaaaaaaaa"), 0);
	assert_true(debugcache_is_absent(c, "aaaaaaaaaaaaaaaa"));
	assert_false(debugcache_is_absent(c, "0000000000000000") || debugcache_is_absent(c, id));
	assert_false(debugcache_is_absent(c, "../aaaaaaaaaaaaaaaa"));
	debugcache_free(c);
	assert_int_equal(unlinkat(t.fd, "servers", 0), 0);
	assert_int_equal(mkdirat(t.fd, "servers", 0700), 0);
	assert_int_equal(debugcache_new(t.path, 10000, "here", 3600 * NSEC_PER_SEC, &c), 0);
	assert_int_equal(debugcache_set_absent(c, "aaaaaaaaaaaaaaaa"), 0);
	assert_false(debugcache_is_absent(c, "aaaaaaaaaaaaaaaa"));
	debugcache_free(c);
	assert_int_equal(unlinkat(t.fd, "servers", AT_REMOVEDIR), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_answers),		cmocka_unit_test(test_silent_server),
		cmocka_unit_test(test_asks_for_news),	cmocka_unit_test(test_asks_again),
		cmocka_unit_test(test_waiting_goes_on), cmocka_unit_test(test_strange_ids),
		cmocka_unit_test(test_ceiling),		cmocka_unit_test(test_real_server),
		cmocka_unit_test(test_absent_stays),	cmocka_unit_test(test_marks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
