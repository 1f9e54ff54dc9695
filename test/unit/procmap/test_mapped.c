// SPDX-License-Identifier: Apache-2.0
/* A process's root that leads the agent elsewhere. test_address_space.c has the cases that need a
 * real process. */
#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/root.h"
#include "procmap/mapped.h"
#include "procmap/maps.h"

static char dir[] = "/tmp/podprof-mapped.XXXXXX";

static void run(const char *command)
{
	assert_int_equal(system(command), 0); // NOLINT(cert-env33-c,bugprone-command-processor)
}

static int setup(void **state)
{
	struct root *proc = malloc(sizeof(*proc));

	assert_non_null(proc);
	assert_non_null(mkdtemp(dir));
	assert_int_equal(setenv("D", dir, 1), 0);
	run("mkdir -p $D/7/root/lib $D/7/root/etc $D/8 $D/outside && cd $D/7/root && "
	    "echo outside > $D/outside/secret && echo inside > lib/file && "
	    "ln lib/file 'lib/a b' && printf 'other\n' > 'lib/a\nb' && "
	    "echo inside > 'lib/a\\012b' && mkfifo lib/fifo && ln -s file lib/near && "
	    "ln -s /lib/file lib/absolute && ln -s /etc/passwd lib/passwd && "
	    "ln -s ../../../../../../../../etc/passwd lib/climb && ln -s loop lib/loop && "
	    "ln -s $D/outside/secret lib/secret && ln -s /proc/self/exe lib/magic && "
	    "ln -s /lib lib/again && ln -s /lib/program $D/7/exe && "
	    "ln -s $D/outside/secret $D/8/exe && ln -s $D/7/root $D/8/root");
	assert_int_equal(root_open(dir, proc), 0);
	*state = proc;
	return 0;
}

static int teardown(void **state)
{
	struct root *proc = *state;

	root_deinit(proc);
	free(proc);
	run("rm -r $D");
	return 0;
}

struct row {
	const char *name;
	uint64_t pid;
	const char *path;
	int deleted;
	int want;
	const char *content; /* on 0 */
};

static const struct row rows[] = {
	{"file", 7, "/lib/file", 0, 0, "inside\n"},
	{"blank in the name", 7, "/lib/a b", 0, 0, "inside\n"},
	{"through a link", 7, "/lib/near", 0, 0, "inside\n"},
	{"through an absolute link", 7, "/lib/absolute", 0, 0, "inside\n"},
	{"through links of directories", 7, "/lib/again/again/near", 0, 0, "inside\n"},
	{"climbing stays inside", 7, "/../../lib/../lib/file", 0, 0, "inside\n"},
	{"link out of it", 7, "/lib/passwd", 0, MAPPED_GONE, NULL},
	{"link that climbs", 7, "/lib/climb", 0, MAPPED_GONE, NULL},
	{"link to a path outside", 7, "/lib/secret", 0, MAPPED_GONE, NULL},
	{"magic link", 7, "/lib/magic", 0, MAPPED_GONE, NULL},
	{"loop", 7, "/lib/loop", 0, MAPPED_GONE, NULL},
	{"FIFO", 7, "/lib/fifo", 0, MAPPED_NOT_FILE, NULL},
	{"directory", 7, "/lib", 0, MAPPED_NOT_FILE, NULL},
	{"not there", 7, "/lib/none", 0, MAPPED_GONE, NULL},
	{"deleted: another may have the name", 7, "/lib/file", 1, MAPPED_GONE, NULL},
	{"no path", 7, "[heap]", 0, MAPPED_GONE, NULL},
	{"empty", 7, "", 0, MAPPED_GONE, NULL},
	{"no process", 9, "/lib/file", 0, MAPPED_GONE, NULL},
};

/* Of a mapping of the file at @path below the root of process 7, if there is one. */
static void set_numbers(struct maps_entry *e, const char *path)
{
	char below[256];
	struct stat st;

	snprintf(below, sizeof(below), "%s/7/root%s", dir, path);
	if (stat(below, &st))
		return;
	e->device = st.st_dev;
	e->inode = st.st_ino;
}

static void test_rows(void **state)
{
	for (size_t i = 0; i < array_size(rows); i++) {
		struct maps_entry e = {
			.start = 0x1000, .limit = 0x2000, .deleted = rows[i].deleted};
		int path_fd = -1, fd = -1;
		char content[32] = "";

		row_begin(rows[i].name);
		/* refused for its way, though it leads to the mapped file */
		set_numbers(&e, rows[i].want ? rows[i].path : "/lib/file");
		e.path = strdup(rows[i].path);
		assert_non_null(e.path);
		assert_int_equal(mapped_find(*state, rows[i].pid, &e, &path_fd), rows[i].want);
		free(e.path);
		assert_int_equal(path_fd >= 0, rows[i].want == 0);
		if (rows[i].want)
			continue;
		assert_int_equal(mapped_open(path_fd, &fd), 0);
		assert_true(read(fd, content, sizeof(content) - 1) > 0);
		assert_string_equal(content, rows[i].content);
		assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
		assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
		close(fd);
		close(path_fd);
	}
}

/* The path leads to another file than the mapping's. */
static void test_other_file(void **state)
{
	char path[] = "/lib/near", escaped[] = "/lib/a\nb"; /* as maps_parse() reads "\\012" */
	struct maps_entry e = {.start = 0x1000, .limit = 0x2000, .path = path};
	int fd = -1;

	set_numbers(&e, "/etc");
	assert_int_equal(mapped_find(*state, 7, &e, &fd), MAPPED_GONE);
	e.path = escaped;
	set_numbers(&e, "/lib/a\\012b");
	assert_int_equal(mapped_find(*state, 7, &e, &fd), MAPPED_GONE);
	set_numbers(&e, escaped);
	assert_int_equal(mapped_find(*state, 7, &e, &fd), 0);
	close(fd);
}

/* The exe link serves the mapping with the same path, deleted or not. */
static void test_exe(void **state)
{
	struct maps_entry e = {.start = 0x1000, .limit = 0x2000};
	int path_fd = -1, fd = -1;
	char content[32] = "";

	e.path = malloc(sizeof(dir) + 32);
	assert_non_null(e.path);
	sprintf(e.path, "%s/outside/secret", dir);
	assert_int_equal(mapped_find(*state, 8, &e, &path_fd), 0);
	assert_int_equal(mapped_open(path_fd, &fd), 0);
	assert_true(read(fd, content, sizeof(content) - 1) > 0);
	assert_string_equal(content, "outside\n");
	close(fd);
	close(path_fd);

	e.deleted = 1; /* then the link would say so */
	assert_int_equal(mapped_find(*state, 8, &e, &path_fd), MAPPED_GONE);
	free(e.path);
}

/* Of an ended process: by the kernel's numbers of a mapping, not by fstat(). */
static void test_below(void **state)
{
	struct maps maps = {.only_prot = MAPS_X};
	struct maps_entry e;
	struct pid_id self;
	struct root proc;
	int fd;

	(void)state;
	assert_int_equal(root_open("/proc", &proc), 0);
	assert_int_equal(pid_read(&proc, getpid(), &self), 0);
	assert_int_equal(maps_read(&proc, &self, &maps), 0);
	assert_true(maps.n > 0);
	e = maps.items[0]; /* our own program */
	assert_int_equal(mapped_find_below(&proc, (uint64_t)getpid(), &e, &fd), 0);
	close(fd);
	e.inode++;
	assert_int_equal(mapped_find_below(&proc, (uint64_t)getpid(), &e, &fd), MAPPED_GONE);
	e.inode--;
	e.device++;
	assert_int_equal(mapped_find_below(&proc, (uint64_t)getpid(), &e, &fd), MAPPED_GONE);
	maps_deinit(&maps);
	root_deinit(&proc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_other_file),
		cmocka_unit_test(test_exe),
		cmocka_unit_test(test_below),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
