// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/root.h"
#include "procmap/maps.h"
#include "runtimes/runtime_files.h"

/* Below all libraries and the program. */
#define LOW ((void *)0x10000000)

/* Each file has the runtime. */
static int probe_any(const struct elffile *ef, void *ret)
{
	(void)ef;
	(void)ret;
	return 0;
}

static const struct runtime_probe any = {
	.probe = probe_any, .bytes = 1, .malformed = 2, .gone = 3, .denied = 4};

struct search {
	const char *path;
	size_t n;
	uint64_t bias;
};

static int note(void *ctx, const struct runtime_file *file)
{
	struct search *s = ctx;

	if (strcmp(file->path, s->path) == 0) {
		s->n++;
		s->bias = file->bias;
	}
	return any.malformed; /* the other files, too */
}

/* The second page of the code of the file @path. */
static void *map_again(const struct root *proc, const struct pid_id *id, const char *path)
{
	_cleanup_(maps_deinit) struct maps maps = {.only_prot = MAPS_X};
	_cleanup_(close_fdp) int fd = open(path, O_RDONLY | O_CLOEXEC);
	const long page = sysconf(_SC_PAGESIZE);
	off_t off = 0;

	assert_true(fd >= 0);
	assert_int_equal(maps_read(proc, id, &maps), 0);
	for (size_t i = 0; i < maps.n; i++)
		if (strcmp(maps.items[i].path, path) == 0)
			off = (off_t)maps.items[i].offset;
	assert_true(off > 0);
	return mmap(LOW, (size_t)page, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED_NOREPLACE, fd,
		    off + page);
}

/* V8 maps its builtins again, near the code that it makes: on Debian 13 below libnode. The bias is
 * that of the loader's mapping. */
static void test_mapped_twice(void **state)
{
	_cleanup_(runtime_files_freep) struct runtime_files *files = NULL;
	_cleanup_(root_deinit) struct root proc = ROOT_INIT;
	_cleanup_(freep) char *path = NULL;
	struct search s = {0};
	struct pid_id id;
	Dl_info library;
	void *at;

	(void)state;
	assert_true(dladdr((const void *)_cmocka_run_group_tests, &library) != 0);
	path = realpath(library.dli_fname, NULL);
	assert_non_null(path);
	s.path = path;
	assert_int_equal(root_open("/proc", &proc), 0);
	assert_int_equal(pid_read(&proc, getpid(), &id), 0);
	at = map_again(&proc, &id, path);
	assert_ptr_equal(at, LOW);
	assert_int_equal(runtime_files_new(&any, &files), 0);
	assert_int_equal(runtime_files_search(files, &proc, &id, note, &s), any.malformed);
	assert_int_equal(s.n, 1);
	assert_int_equal(s.bias, (uintptr_t)library.dli_fbase);
	assert_int_equal(munmap(at, (size_t)sysconf(_SC_PAGESIZE)), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mapped_twice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
