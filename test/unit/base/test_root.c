// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/buf.h"
#include "base/root.h"
#include "support/allocfail.h"

/* Files for the rows below; removed at the end. */
struct fixture {
	char path[64];
	struct root root;
};

static void write_file(const struct fixture *f, const char *name, size_t n)
{
	int fd = openat(f->root.fd, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	_cleanup_(freep) char *bytes = malloc(n + 1);

	assert_true(fd >= 0);
	memset(bytes, 'x', n);
	assert_int_equal(write(fd, bytes, n), n);
	close(fd);
}

static void make_socket(const struct fixture *f)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/socket", f->path);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	close(fd);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	strcpy(f->path, "/tmp/test_root.XXXXXX");
	assert_non_null(mkdtemp(f->path));
	assert_int_equal(root_open(f->path, &f->root), 0);
	write_file(f, "empty", 0);
	write_file(f, "hundred", 100);
	write_file(f, "large", 100000);
	write_file(f, "denied", 1);
	assert_int_equal(fchmodat(f->root.fd, "denied", 0, 0), 0);
	assert_int_equal(mkdirat(f->root.fd, "dir", 0700), 0);
	assert_int_equal(mkfifoat(f->root.fd, "fifo", 0600), 0);
	assert_int_equal(symlinkat("hundred", f->root.fd, "link"), 0);
	assert_int_equal(symlinkat("loop", f->root.fd, "loop"), 0);
	assert_int_equal(symlinkat("nowhere", f->root.fd, "dangling"), 0);
	assert_int_equal(symlinkat("/dev/null", f->root.fd, "device"), 0);
	make_socket(f);
	*state = f;
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st;
	(void)kind;
	(void)at;
	return remove(path);
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	root_deinit(&f->root);
	nftw(f->path, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	free(f);
	return 0;
}

struct read_row {
	const char *name;
	size_t max;
	int r;
	size_t n;
};

static const struct read_row read_rows[] = {
	{"hundred", 1000, ROOT_OK, 100},
	{"hundred", 100, ROOT_OK, 100},
	{"hundred", 99, ROOT_TOO_LARGE, 0},
	{"large", 100000, ROOT_OK, 100000},
	{"large", 99999, ROOT_TOO_LARGE, 0},
	{"empty", 10, ROOT_OK, 0},
	{"empty", 0, ROOT_OK, 0},
	{"link", 1000, ROOT_OK, 100},
	{"absent", 1000, ROOT_GONE, 0},
	{"dangling", 1000, ROOT_GONE, 0},
	{"hundred/below", 1000, ROOT_GONE, 0},
	{"dir", 1000, ROOT_NOT_FILE, 0},
	{"fifo", 1000, ROOT_NOT_FILE, 0},
	{"socket", 1000, ROOT_NOT_FILE, 0},
	{"device", 1000, ROOT_NOT_FILE, 0},
	{"loop", 1000, ROOT_NOT_FILE, 0},
};

static void test_read(void **state)
{
	const struct fixture *f = *state;

	for (size_t i = 0; i < array_size(read_rows); i++) {
		const struct read_row *row = &read_rows[i];
		_cleanup_(buf_deinit) struct buf b = BUF_INIT(row->max);

		row_begin(row->name);
		assert_int_equal(root_read(&f->root, row->name, &b), row->r);
		assert_int_equal(b.len, row->n);
		if (b.data)
			assert_int_equal(strlen(b.data), row->n);
		buf_reset(&b);
		assert_int_equal(root_read_whole(&f->root, row->name, &b), row->r);
		assert_int_equal(b.len, row->n);
	}
}

/* Root may read everything, so the reader of this row is somebody else. */
static void test_denied(void **state)
{
	const struct fixture *f = *state;
	_cleanup_(buf_deinit) struct buf b = BUF_INIT(10);
	uid_t uid = geteuid();

	assert_true(uid != 0 || seteuid(65534) == 0);
	assert_int_equal(root_read(&f->root, "denied", &b), ROOT_DENIED);
	assert_true(uid != 0 || seteuid(0) == 0);
	assert_string_equal(root_why(ROOT_DENIED), "permission denied");
}

static void test_appends(void **state)
{
	const struct fixture *f = *state;
	_cleanup_(buf_deinit) struct buf b = BUF_INIT(105);

	assert_int_equal(buf_puts(&b, "start"), 0);
	assert_int_equal(root_read(&f->root, "hundred", &b), 0);
	assert_int_equal(b.len, 105);
	assert_memory_equal(b.data, "startxxx", 8);
	/* the contents stay when there is no room for more */
	assert_int_equal(root_read(&f->root, "hundred", &b), ROOT_TOO_LARGE);
	assert_int_equal(b.len, 105);
	assert_int_equal(root_read(&f->root, "empty", &b), 0);
	assert_int_equal(b.len, 105);
}

static void test_long_path(void **state)
{
	const struct fixture *f = *state;
	_cleanup_(buf_deinit) struct buf b = BUF_INIT(10);
	char path[PATH_MAX + 10];

	memset(path, 'p', sizeof(path));
	path[sizeof(path) - 1] = '\0';
	assert_int_equal(root_read(&f->root, path, &b), ROOT_TOO_LARGE);
	path[255 + 1] = '\0'; /* one character above the limit of a name */
	assert_int_equal(root_read(&f->root, path, &b), ROOT_TOO_LARGE);
	path[255] = '\0';
	assert_int_equal(root_read(&f->root, path, &b), ROOT_GONE);
}

/* procfs says size 0 and gives bytes all the same. */
static void test_proc(void **state)
{
	_cleanup_(root_deinit) struct root proc = ROOT_INIT;
	_cleanup_(buf_deinit) struct buf b = BUF_INIT(4096);

	(void)state;
	assert_int_equal(root_open("/proc", &proc), 0);
	assert_int_equal(root_read(&proc, "self/comm", &b), 0);
	assert_string_equal(b.data, "test_root\n");
	assert_int_equal(root_open("/proc/self/comm", &proc), ROOT_GONE);
	assert_int_equal(root_open("/absent", &proc), ROOT_GONE);
}

static void test_link(void **state)
{
	const struct fixture *f = *state;
	_cleanup_(buf_deinit) struct buf b = BUF_INIT(PATH_MAX);
	_cleanup_(buf_deinit) struct buf small = BUF_INIT(PATH_MAX - 1);

	assert_int_equal(root_read_link(&f->root, "link", &b), 0);
	assert_string_equal(b.data, "hundred");
	buf_reset(&b);
	assert_int_equal(root_read_link(&f->root, "dangling", &b), 0);
	assert_string_equal(b.data, "nowhere");
	buf_reset(&b);
	assert_int_equal(root_read_link(&f->root, "absent", &b), ROOT_GONE);
	assert_int_equal(root_read_link(&f->root, "hundred", &b), -EINVAL);
	assert_int_equal(root_read_link(&f->root, "link", &small), ROOT_TOO_LARGE);
}

static int read_large(void *ctx)
{
	const struct fixture *f = ctx;
	_cleanup_(buf_deinit) struct buf b = BUF_INIT(1 << 20);

	return root_read(&f->root, "large", &b);
}

static void test_no_memory(void **state)
{
	/* 32, 64 and 128 KiB */
	assert_int_equal(allocfail_each(read_large, *state), 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_read),	  cmocka_unit_test(test_denied),
		cmocka_unit_test(test_appends),	  cmocka_unit_test(test_long_path),
		cmocka_unit_test(test_proc),	  cmocka_unit_test(test_link),
		cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
