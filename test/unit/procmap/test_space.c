// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "base/root.h"
#include "procmap/space.h"

struct fixture {
	struct root proc;
	struct space_cache *cache;
	struct pid_id self;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	assert_int_equal(root_open("/proc", &f->proc), 0);
	assert_int_equal(space_cache_new(&f->proc, &f->cache), 0);
	assert_int_equal(pid_read(&f->proc, getpid(), &f->self), 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	space_cache_free(f->cache);
	root_deinit(&f->proc);
	free(f);
	return 0;
}

static struct frame resolve(struct fixture *f, const struct pid_id *id, const void *pc)
{
	struct frame frame = {0};

	assert_int_equal(space_cache_resolve(f->cache, id, (uint64_t)(uintptr_t)pc, &frame), 0);
	assert_non_null(frame.image);
	return frame;
}

/* Where the loader says that its file begins, subtracted, is the ELF vaddr for a PIE. */
static uint64_t vaddr_by_loader(const void *pc)
{
	Dl_info info;

	assert_true(dladdr(pc, &info) != 0);
	return (uint64_t)((uintptr_t)pc - (uintptr_t)info.dli_fbase);
}

static void test_self(void **state)
{
	struct fixture *f = *state;
	const void *libc = dlsym(RTLD_DEFAULT, "qsort");
	struct frame own, other;
	struct stat st;

	own = resolve(f, &f->self, (const void *)&test_self);
	assert_int_equal(own.image->kind, IMAGE_FILE);
	assert_string_equal(image_name(own.image), "test_space");
	assert_true(own.vaddr == vaddr_by_loader((const void *)&test_self));
	assert_int_equal(stat("/proc/self/exe", &st), 0);
	assert_true(own.image->inode == st.st_ino && own.image->device == st.st_dev);
	assert_true(own.image->size == (uint64_t)st.st_size);
	assert_int_equal(strlen(own.image->build_id), 40);

	other = resolve(f, &f->self, libc);
	assert_true(other.image != own.image);
	assert_true(other.vaddr == vaddr_by_loader(libc));
	image_unref(own.image);
	image_unref(other.image);
}

static void test_vdso_and_anon(void **state)
{
	struct fixture *f = *state;
	const char *vdso = (const char *)(uintptr_t)getauxval(AT_SYSINFO_EHDR);
	char *jit = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct frame frame;

	assert_true(jit != MAP_FAILED);
	frame = resolve(f, &f->self, vdso + 0x400);
	assert_int_equal(frame.image->kind, IMAGE_VDSO);
	assert_int_equal(frame.vaddr, 0x400);
	assert_non_null(frame.image->file);
	image_unref(frame.image);

	frame = resolve(f, &f->self, jit + 5);
	assert_int_equal(frame.image->kind, IMAGE_ANON);
	assert_true(frame.vaddr == (uint64_t)(uintptr_t)jit + 5);
	image_unref(frame.image);

	frame = resolve(f, &f->self, (const void *)16);
	assert_int_equal(frame.image->kind, IMAGE_UNKNOWN);
	assert_int_equal(frame.vaddr, 16);
	image_unref(frame.image);
	munmap(jit, 4096);

	space_cache_kernel(f->cache, 0xffffffff81000000, &frame);
	assert_int_equal(frame.image->kind, IMAGE_KERNEL);
	assert_true(frame.vaddr == 0xffffffff81000000);
	image_unref(frame.image);
}

/* ---------------------------------------------------------------- children */

static pid_t start(struct fixture *f, const char *path, struct pid_id *ret)
{
	struct stat want, st = {0};
	char exe[64];
	pid_t pid = fork();

	if (pid == 0) {
		execl(path, path, "1000", NULL);
		_exit(127);
	}
	assert_int_equal(stat(path, &want), 0);
	snprintf(exe, sizeof(exe), "/proc/%d/exe", pid);
	while (st.st_ino != want.st_ino) { /* until it did exec */
		usleep(1000);
		assert_int_equal(stat(exe, &st), 0);
	}
	assert_int_equal(pid_read(&f->proc, pid, ret), 0);
	return pid;
}

static void stop(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void copy_file(const char *from, const char *to)
{
	char command[256];

	snprintf(command, sizeof(command), "cp %s %s", from, to);
	assert_int_equal(system(command), 0);
}

static unsigned long first_code(const char *path)
{
	unsigned long start = 0;
	char line[512], *perms;
	FILE *maps = fopen(path, "re");

	assert_non_null(maps);
	while (!start && fgets(line, sizeof(line), maps)) {
		perms = strchr(line, ' ');
		if (perms && perms[3] == 'x')
			start = strtoul(line, NULL, 16);
	}
	fclose(maps);
	return start;
}

/* An address of the code of @pid's program, once the kernel has mapped it. */
static const void *code_of(pid_t pid)
{
	unsigned long start;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	while (!(start = first_code(path)))
		usleep(1000);
	return (const void *)start;
}

/* Two processes of one file share its image; a copy of the file does not; a deleted file is read,
 * and what was known of a process is good after its end. */
static void test_sharing(void **state)
{
	struct fixture *f = *state;
	const char *copy = "/tmp/podprof-test-sleep";
	struct pid_id a, b, c;
	const void *code;
	struct frame frames[4];
	pid_t pids[3];

	copy_file("/bin/sleep", copy);
	pids[0] = start(f, "/bin/sleep", &a);
	pids[1] = start(f, "/bin/sleep", &b);
	pids[2] = start(f, copy, &c);
	unlink(copy);
	copy_file("/bin/ls", copy); /* another file of that name must not be taken for it */
	code = code_of(pids[2]);
	frames[0] = resolve(f, &a, code_of(pids[0]));
	frames[1] = resolve(f, &b, code_of(pids[1]));
	frames[2] = resolve(f, &c, code);
	unlink(copy);
	assert_ptr_equal(frames[0].image, frames[1].image);
	assert_true(frames[2].image != frames[0].image);
	assert_string_equal(frames[2].image->build_id, frames[0].image->build_id);
	assert_string_equal(frames[2].image->path, copy);
	for (size_t i = 0; i < array_size(pids); i++)
		stop(pids[i]);

	space_cache_sweep(f->cache);
	frames[3] = resolve(f, &c, code);
	assert_ptr_equal(frames[3].image, frames[2].image);
	for (size_t i = 0; i < array_size(frames); i++)
		image_unref(frames[i].image);
}

static void test_gone(void **state)
{
	struct fixture *f = *state;
	struct frame frame;
	struct pid_id id;
	pid_t pid = start(f, "/bin/sleep", &id);
	const void *code = code_of(pid);

	stop(pid);
	frame = resolve(f, &id, code);
	assert_int_equal(frame.image->kind, IMAGE_UNKNOWN);
	image_unref(frame.image);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_self, setup, teardown),
		cmocka_unit_test_setup_teardown(test_vdso_and_anon, setup, teardown),
		cmocka_unit_test_setup_teardown(test_sharing, setup, teardown),
		cmocka_unit_test_setup_teardown(test_gone, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
