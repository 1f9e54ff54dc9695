// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/buf.h"
#include "base/root.h"
#include "procmap/maps.h"

/* makedev() of small numbers, as a constant */
#define SMALL_DEV(major, minor) ((major) << 8 | (minor))

struct line_row {
	const char *name;
	const char *line;
	bool ok;
	struct maps_entry want;
};

static const struct line_row line_rows[] = {
	{"file",
	 "00400000-00452000 r-xp 00001000 08:02 173521      /usr/bin/dbus-daemon\n",
	 true,
	 {.start = 0x400000,
	  .limit = 0x452000,
	  .offset = 0x1000,
	  .device = SMALL_DEV(8, 2),
	  .inode = 173521,
	  .prot = MAPS_R | MAPS_X,
	  .kind = MAPS_FILE,
	  .path = "/usr/bin/dbus-daemon"}},
	{"no newline at the end",
	 "1000-2000 r--s 0 00:1f 5 /a",
	 true,
	 {.start = 0x1000,
	  .limit = 0x2000,
	  .device = SMALL_DEV(0, 0x1f),
	  .inode = 5,
	  .prot = MAPS_R | MAPS_SHARED,
	  .kind = MAPS_FILE,
	  .path = "/a"}},
	{"anonymous",
	 "7f00-7f10 rw-p 00000000 00:00 0 \n",
	 true,
	 {.start = 0x7f00,
	  .limit = 0x7f10,
	  .prot = MAPS_R | MAPS_W,
	  .kind = MAPS_ANON,
	  .path = ""}},
	{"anonymous without the blank",
	 "7f00-7f10 rwxp 00000000 00:00 0\n",
	 true,
	 {.start = 0x7f00,
	  .limit = 0x7f10,
	  .prot = MAPS_R | MAPS_W | MAPS_X,
	  .kind = MAPS_ANON,
	  .path = ""}},
	{"64-bit start",
	 "ffffffffff600000-ffffffffff601000 --xp 0 00:00 0     [vsyscall]\n",
	 true,
	 {.start = 0xffffffffff600000,
	  .limit = 0xffffffffff601000,
	  .prot = MAPS_X,
	  .kind = MAPS_OTHER,
	  .path = "[vsyscall]"}},
	{"vdso",
	 "1000-2000 r-xp 0 00:00 0   [vdso]\n",
	 true,
	 {.start = 0x1000,
	  .limit = 0x2000,
	  .prot = MAPS_R | MAPS_X,
	  .kind = MAPS_VDSO,
	  .path = "[vdso]"}},
	{"heap",
	 "1000-2000 rw-p 0 00:00 0   [heap]\n",
	 true,
	 {.start = 0x1000,
	  .limit = 0x2000,
	  .prot = MAPS_R | MAPS_W,
	  .kind = MAPS_ANON,
	  .path = "[heap]"}},
	{"named anonymous",
	 "1000-2000 rw-p 0 00:00 0   [anon:Go: heap]\n",
	 true,
	 {.start = 0x1000,
	  .limit = 0x2000,
	  .prot = MAPS_R | MAPS_W,
	  .kind = MAPS_ANON,
	  .path = "[anon:Go: heap]"}},
	{"deleted",
	 "1000-2000 r-xp 0 08:02 7   /a b (deleted)\n",
	 true,
	 {.start = 0x1000,
	  .limit = 0x2000,
	  .device = SMALL_DEV(8, 2),
	  .inode = 7,
	  .prot = MAPS_R | MAPS_X,
	  .kind = MAPS_FILE,
	  .path = "/a b",
	  .deleted = 1}},
	{"memfd",
	 "1000-2000 r-xp 0 00:01 7   /memfd:jit (deleted)\n",
	 true,
	 {.start = 0x1000,
	  .limit = 0x2000,
	  .device = SMALL_DEV(0, 1),
	  .inode = 7,
	  .prot = MAPS_R | MAPS_X,
	  .kind = MAPS_ANON,
	  .path = "/memfd:jit",
	  .deleted = 1}},
	{"a file of that name",
	 "1000-2000 r-xp 0 00:01 7   /memfd:jit\n",
	 true,
	 {.start = 0x1000,
	  .limit = 0x2000,
	  .device = SMALL_DEV(0, 1),
	  .inode = 7,
	  .prot = MAPS_R | MAPS_X,
	  .kind = MAPS_FILE,
	  .path = "/memfd:jit"}},
	{"newline and backslash",
	 "1000-2000 r-xp 0 00:01 7   /a\\012b\\101\\\n",
	 true,
	 {.start = 0x1000,
	  .limit = 0x2000,
	  .device = SMALL_DEV(0, 1),
	  .inode = 7,
	  .prot = MAPS_R | MAPS_X,
	  .kind = MAPS_FILE,
	  .path = "/a\nb\\101\\"}},
	{"descriptor",
	 "1000-2000 rw-s 0 00:0e 7   anon_inode:[perf_event]\n",
	 true,
	 {.start = 0x1000,
	  .limit = 0x2000,
	  .device = SMALL_DEV(0, 14),
	  .inode = 7,
	  .prot = MAPS_R | MAPS_W | MAPS_SHARED,
	  .kind = MAPS_OTHER,
	  .path = "anon_inode:[perf_event]"}},
	{"empty line", "\n", false, {0}},
	{"empty range", "2000-2000 r-xp 0 00:01 7 /a\n", false, {0}},
	{"backward", "3000-2000 r-xp 0 00:01 7 /a\n", false, {0}},
	{"65 bits", "10000000000000000-2000 r-xp 0 00:01 7 /a\n", false, {0}},
	{"bad letter", "1000-2000 r-zp 0 00:01 7 /a\n", false, {0}},
	{"short prot", "1000-2000 r-x 0 00:01 7 /a\n", false, {0}},
	{"no inode", "1000-2000 r-xp 0 00:01\n", false, {0}},
	{"hex inode", "1000-2000 r-xp 0 00:01 a /a\n", false, {0}},
	{"cut", "1000-20", false, {0}},
};

static void test_lines(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(line_rows); i++) {
		const struct line_row *row = &line_rows[i];
		_cleanup_(maps_deinit) struct maps m = {0};

		row_begin(row->name);
		assert_int_equal(maps_parse(row->line, strlen(row->line), &m), 0);
		assert_int_equal(m.n, row->ok ? 1 : 0);
		assert_int_equal(m.n_skipped, row->ok ? 0 : 1);
		if (!row->ok)
			continue;
		assert_true(m.items[0].start == row->want.start);
		assert_true(m.items[0].limit == row->want.limit);
		assert_true(m.items[0].offset == row->want.offset);
		assert_true(m.items[0].device == row->want.device);
		assert_true(m.items[0].inode == row->want.inode);
		assert_int_equal(m.items[0].prot, row->want.prot);
		assert_int_equal(m.items[0].kind, row->want.kind);
		assert_int_equal(m.items[0].deleted, row->want.deleted);
		assert_string_equal(m.items[0].path, row->want.path);
	}
}

static void test_find(void **state)
{
	static const char text[] = "1000-2000 r-xp 0 00:01 7 /a\n"
				   "2000-3000 rw-p 0 00:01 7 /a\n"
				   "2800-3800 rw-p 0 00:01 7 /overlaps\n"
				   "5000-6000 r-xp 0 00:01 8 /b\n";
	_cleanup_(maps_deinit) struct maps m = {0}, code = {.only_prot = MAPS_X};

	(void)state;
	assert_int_equal(maps_parse(text, strlen(text), &m), 0);
	assert_int_equal(m.n, 3);
	assert_int_equal(m.n_skipped, 1);
	assert_null(maps_find(&m, 0xfff));
	assert_ptr_equal(maps_find(&m, 0x1000), &m.items[0]);
	assert_ptr_equal(maps_find(&m, 0x1fff), &m.items[0]);
	assert_ptr_equal(maps_find(&m, 0x2000), &m.items[1]);
	assert_null(maps_find(&m, 0x3000));
	assert_null(maps_find(&m, 0x4fff));
	assert_ptr_equal(maps_find(&m, 0x5fff), &m.items[2]);
	assert_null(maps_find(&m, 0x6000));

	assert_int_equal(maps_parse(text, strlen(text), &code), 0);
	assert_int_equal(code.n, 2);
	assert_int_equal(code.n_skipped, 0);
	assert_string_equal(code.items[1].path, "/b");
}

static void read_self(struct maps *m)
{
	_cleanup_(root_deinit) struct root proc = ROOT_INIT;
	struct pid_id id;

	assert_int_equal(root_open("/proc", &proc), 0);
	assert_int_equal(pid_read(&proc, getpid(), &id), 0);
	assert_int_equal(maps_read(&proc, &id, m), 0);
}

/* A real file with a newline and blanks in its name, mapped, then deleted. */
static void test_self(void **state)
{
	_cleanup_(maps_deinit) struct maps m = {0};
	char path[] = "/tmp/podprof a\nb\\012 XXXXXX";
	int fd = mkstemp(path);
	const struct maps_entry *e;
	struct stat st;
	char *at;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 8192), 0);
	assert_int_equal(fstat(fd, &st), 0);
	at = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 4096);
	assert_true(at != MAP_FAILED);
	unlink(path);
	close(fd);

	read_self(&m);
	assert_int_equal(m.via_pid, getpid());
	assert_int_equal(m.n_skipped, 0);
	e = maps_find(&m, (uint64_t)(uintptr_t)at);
	assert_non_null(e);
	assert_true(e->start == (uint64_t)(uintptr_t)at && e->limit == e->start + 4096);
	assert_int_equal(e->offset, 4096);
	assert_true(e->inode == st.st_ino);
	assert_int_equal(e->kind, MAPS_FILE);
	assert_int_equal(e->prot, MAPS_R | MAPS_X);
	assert_true(e->deleted);
	/* an apparent escape in the name is decoded too: the kernel's text is ambiguous */
	assert_memory_equal(e->path, "/tmp/podprof a\nb\n ", 18);
	munmap(at, 4096);

	e = maps_find(&m, (uint64_t)(uintptr_t)&test_self);
	assert_non_null(e);
	assert_true(e->prot & MAPS_X);
	assert_non_null(strstr(e->path, "test_maps"));
}

static void *sleep_forever(void *arg)
{
	(void)arg;
	for (;;)
		pause();
	return NULL;
}

static void become_leaderless(int ready)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, sleep_forever, NULL))
		_exit(1);
	if (write(ready, "x", 1) != 1)
		_exit(1);
	syscall(SYS_exit, 0); /* this thread only */
}

static void wait_for_zombie(pid_t pid)
{
	char path[64], state = 0, line[256];

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	while (state != 'Z') {
		FILE *f = fopen(path, "re");

		assert_non_null(f);
		assert_non_null(fgets(line, sizeof(line), f));
		state = strrchr(line, ')')[2];
		fclose(f);
		usleep(1000);
	}
}

static void test_dead_leader(void **state)
{
	_cleanup_(root_deinit) struct root proc = ROOT_INIT;
	_cleanup_(maps_deinit) struct maps m = {0}, after = {0};
	struct pid_id id;
	int pipe_fd[2];
	char c;
	pid_t pid;

	(void)state;
	assert_int_equal(pipe(pipe_fd), 0);
	pid = fork();
	if (pid == 0)
		become_leaderless(pipe_fd[1]);
	assert_int_equal(read(pipe_fd[0], &c, 1), 1);
	wait_for_zombie(pid);
	assert_int_equal(root_open("/proc", &proc), 0);
	assert_int_equal(pid_read(&proc, pid, &id), 0);
	assert_int_equal(maps_read(&proc, &id, &m), 0);
	assert_true(m.n > 0);
	assert_true(m.via_pid != 0 && m.via_pid != (uint64_t)pid);
	assert_non_null(maps_find(&m, (uint64_t)(uintptr_t)&test_dead_leader));

	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_int_equal(maps_read(&proc, &id, &after), MAPS_GONE);
	assert_int_equal(after.n, 0);
	close(pipe_fd[0]);
	close(pipe_fd[1]);
}

static void test_another_process(void **state)
{
	_cleanup_(root_deinit) struct root proc = ROOT_INIT;
	_cleanup_(maps_deinit) struct maps m = {0};
	struct pid_id id;

	(void)state;
	assert_int_equal(root_open("/proc", &proc), 0);
	assert_int_equal(pid_read(&proc, getpid(), &id), 0);
	id.start_ticks--;
	assert_int_equal(maps_read(&proc, &id, &m), MAPS_GONE);
	assert_int_equal(m.n, 0);
}

/* ---------------------------------------------------------------- a directory of our own */

static void make_proc(char *dir, const struct buf *maps)
{
	char path[128];
	FILE *f;

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/7", dir);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(path, sizeof(path), "%s/7/stat", dir);
	f = fopen(path, "we");
	assert_non_null(f);
	fputs("7 (x) S 1 7 7 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 99 1 1 1 1 1 1 1 1 1 0 0 0 0 0 "
	      "0 17 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n",
	      f);
	fclose(f);
	snprintf(path, sizeof(path), "%s/7/maps", dir);
	f = fopen(path, "we");
	assert_non_null(f);
	assert_int_equal(fwrite(maps->data, 1, maps->len, f), maps->len);
	fclose(f);
}

static void remove_proc(const char *dir)
{
	static const char *const names[] = {"7/stat", "7/maps", "7", ""};
	char path[128];

	for (size_t i = 0; i < array_size(names); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		assert_int_equal(remove(path), 0);
	}
}

static void read_made(const struct buf *text, struct maps *m)
{
	_cleanup_(root_deinit) struct root proc = ROOT_INIT;
	struct pid_id id = {.pid = 7, .start_ticks = 99};
	char dir[] = "/tmp/podprof-maps.XXXXXX";

	make_proc(dir, text);
	assert_int_equal(root_open(dir, &proc), 0);
	assert_int_equal(maps_read(&proc, &id, m), 0);
	remove_proc(dir);
}

static void test_too_many(void **state)
{
	_cleanup_(buf_deinit) struct buf text = BUF_INIT(16u << 20);
	_cleanup_(maps_deinit) struct maps m = {0}, code = {.only_prot = MAPS_X};

	(void)state;
	for (unsigned int i = 0; i < MAPS_ENTRIES_MAX + 10; i++)
		assert_int_equal(buf_printf(&text, "%x-%x %s 00000000 fe:00 %u   /lib/x\n",
					    i * 0x1000, (i + 1) * 0x1000,
					    i % 1000 ? "rw-p" : "r-xp", i),
				 0);
	read_made(&text, &m);
	assert_int_equal(m.n, MAPS_ENTRIES_MAX);
	assert_int_equal(m.n_skipped, 10);
	assert_int_equal(maps_find(&m, 0xffff123)->inode, 0xffff);
	read_made(&text, &code);
	assert_int_equal(code.n, MAPS_ENTRIES_MAX / 1000 + 1);
	assert_int_equal(code.n_skipped, 0);
}

/* Names of 16 KiB, and one line longer than any buffer; the next lines are still read. */
static void test_long_lines(void **state)
{
	_cleanup_(buf_deinit) struct buf text = BUF_INIT(64u << 20);
	_cleanup_(maps_deinit) struct maps m = {0};
	char name[16385];

	(void)state;
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	for (unsigned int i = 1; i < 20; i++) {
		assert_int_equal(buf_printf(&text, "%x-%x r-xp 0 fe:00 1 ", i, i + 1), 0);
		for (unsigned int j = 0; j < (i == 10 ? 9 : 1); j++)
			assert_int_equal(buf_printf(&text, "/%s", name), 0);
		assert_int_equal(buf_puts(&text, "\n"), 0);
	}
	read_made(&text, &m);
	assert_int_equal(m.n, 18);
	assert_true(m.n_skipped >= 1);
	assert_null(maps_find(&m, 10));
	assert_non_null(maps_find(&m, 11));
	assert_int_equal(strlen(maps_find(&m, 19)->path), 16385);
}

static void test_path_bytes(void **state)
{
	_cleanup_(buf_deinit) struct buf text = BUF_INIT(64u << 20);
	_cleanup_(maps_deinit) struct maps m = {0};
	char name[4096];

	(void)state;
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	for (unsigned int i = 1; i <= 4096 + 3; i++)
		assert_int_equal(buf_printf(&text, "%x-%x r-xp 0 fe:00 1 /%s\n", i, i + 1, name),
				 0);
	assert_int_equal(maps_parse(text.data, text.len, &m), 0);
	assert_int_equal(m.n, MAPS_PATHS_MAX / 4096);
	assert_int_equal(m.n_skipped, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_find),
		cmocka_unit_test(test_self),
		cmocka_unit_test(test_dead_leader),
		cmocka_unit_test(test_another_process),
		cmocka_unit_test(test_too_many),
		cmocka_unit_test(test_long_lines),
		cmocka_unit_test(test_path_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
