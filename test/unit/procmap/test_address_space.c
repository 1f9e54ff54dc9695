// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "base/loop.h"
#include "base/nsec.h"
#include "base/root.h"
#include "procmap/address_space.h"
#include "procmap/maps.h"
#include "procmap/process_history.h"
#include "support/allocfail.h"
#include "support/fixture.h"
#include "support/metrics.h"

/* Mappings of a process, as in space_mappings.c. */
#define LIST_MAX 4096

struct fixture {
	struct root proc;
	struct address_space_cache *cache;
	struct pid_id self;
	struct loop *loop; /* NULL: files are opened on this thread */
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	assert_int_equal(root_open("/proc", &f->proc), 0);
	assert_int_equal(address_space_cache_new(&f->proc, &f->cache), 0);
	assert_int_equal(pid_read(&f->proc, getpid(), &f->self), 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	address_space_cache_free(f->cache);
	loop_free(f->loop);
	root_deinit(&f->proc);
	free(f);
	return 0;
}

static struct frame resolve(struct fixture *f, const struct pid_id *id, const void *pc)
{
	struct frame frame = {0};

	assert_int_equal(address_space_cache_resolve(f->cache, id, (uint64_t)(uintptr_t)pc, &frame),
			 0);
	assert_non_null(frame.image);
	return frame;
}

/* The pc minus the loader's base address is the ELF vaddr for a PIE. */
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
	assert_string_equal(image_name(own.image), "test_address_space");
	assert_true(own.vaddr == vaddr_by_loader((const void *)&test_self));
	assert_int_equal(stat("/proc/self/exe", &st), 0);
	assert_true(own.image->id.inode == st.st_ino && own.image->id.device == st.st_dev);
	assert_true(own.image->id.size == (uint64_t)st.st_size);
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

	address_space_cache_kernel(f->cache, 0xffffffff81000000, &frame);
	assert_int_equal(frame.image->kind, IMAGE_KERNEL);
	assert_true(frame.vaddr == 0xffffffff81000000);
	image_unref(frame.image);
}

/* ---------------------------------------------------------------- children */

/* Wait for the exec of @path: mappings are in place and the process sleeps. */
static void wait_for_exe(pid_t pid, const char *path)
{
	struct stat want, st = {0};
	char exe[64], stat_path[64], state = 0;

	snprintf(exe, sizeof(exe), "/proc/%d/exe", pid);
	snprintf(stat_path, sizeof(stat_path), "/proc/%d/stat", pid);
	assert_int_equal(stat(path, &want), 0);
	while (st.st_ino != want.st_ino || state != 'S') {
		FILE *f = fopen(stat_path, "re");

		usleep(1000);
		assert_int_equal(stat(exe, &st), 0);
		assert_non_null(f);
		assert_int_equal(fscanf(f, "%*d (%*[^)]) %c", &state), 1);
		fclose(f);
	}
}

static pid_t start(struct fixture *f, const char *path, struct pid_id *ret)
{
	pid_t pid = fork();

	if (pid == 0) {
		execl(path, path, "1000", NULL);
		_exit(127);
	}
	wait_for_exe(pid, path);
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

/* An address in the code of @pid's program, once mapped. */
static const void *code_of(pid_t pid)
{
	unsigned long start;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	while (!(start = first_code(path)))
		usleep(1000);
	return (const void *)start;
}

/* Two processes of one file share the image; a copy of the file has another image. A deleted file
 * is readable, and the data of a process stays valid after its end. */
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
	copy_file("/bin/ls", copy); /* another file of this name must not replace the image */
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

	address_space_cache_sweep(f->cache, nsec_boot());
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

/* ---------------------------------------------------------------- exec, without a pc outside */

static pid_t start_waiting(const char *path, const char *then, int *ret_event)
{
	int ends[2];
	pid_t pid;

	assert_int_equal(pipe(ends), 0);
	pid = fork();
	if (pid == 0) {
		dup2(ends[0], 0);
		close(ends[0]);
		close(ends[1]);
		execl(path, path, then, NULL);
		_exit(127);
	}
	close(ends[0]);
	*ret_event = ends[1];
	return pid;
}

/* Two programs linked to the same address: within the time between two checks, frames of the second
 * program are right, and earlier results still belong to the first. */
static void test_exec(void **state)
{
	char first[FIXTURE_PATH_MAX], second[FIXTURE_PATH_MAX];
	struct frame before, after = {0};
	struct fixture *f = *state;
	struct pid_id id;
	const void *code;
	pid_t pid;
	int tell;

	fixture_path("plain-fixed", first);
	fixture_path("other-fixed", second);
	pid = start_waiting(first, second, &tell);
	wait_for_exe(pid, first);
	assert_int_equal(pid_read(&f->proc, pid, &id), 0);
	code = code_of(pid);
	before = resolve(f, &id, code);
	assert_string_equal(before.image->path, first);

	close(tell);
	wait_for_exe(pid, second);
	assert_ptr_equal(code_of(pid), code);
	for (int i = 0; i < 1000; i++) { /* one second is enough */
		after = resolve(f, &id, code);
		if (strcmp(after.image->path, second) == 0)
			break;
		image_unref(after.image);
		after.image = NULL;
		usleep(10000);
	}
	assert_non_null(after.image);
	assert_true(after.vaddr == before.vaddr);
	assert_string_equal(before.image->path, first);
	image_unref(before.image);
	image_unref(after.image);
	stop(pid);
}

/* ---------------------------------------------------------------- odd mappings */

static void *map_file(const char *path, size_t offset)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	void *at;

	assert_true(fd >= 0);
	at = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, (off_t)offset);
	assert_true(at != MAP_FAILED);
	close(fd);
	return at;
}

static void test_not_elf(void **state)
{
	struct fixture *f = *state;
	char *at = map_file("Makefile", 4096);
	struct frame frame = resolve(f, &f->self, at + 7);

	assert_int_equal(frame.image->kind, IMAGE_FILE);
	assert_null(frame.image->file);
	assert_string_equal(image_name(frame.image), "Makefile");
	assert_int_equal(frame.vaddr, 4096 + 7);
	image_unref(frame.image);
	munmap(at, 4096);
}

/* A program mapped at another offset of its file, as by a custom loader. */
static void test_by_offset(void **state)
{
	char path[FIXTURE_PATH_MAX];
	struct fixture *f = *state;
	struct frame frame;
	uint64_t vaddr;
	char *at;

	at = map_file(fixture_path("plain-fixed", path), 4096);
	frame = resolve(f, &f->self, at + 0x10);
	assert_true(elffile_vaddr_of_off(frame.image->file, 4096 + 0x10, &vaddr));
	assert_true(frame.vaddr == vaddr && vaddr >= 0x400000);
	image_unref(frame.image);
	munmap(at, 4096);
}

/* An executable page of a memfd, empty or with the beginning of @path. */
static char *map_memfd(const char *path)
{
	int fd = memfd_create("podprof", MFD_CLOEXEC), from;
	char *at;

	if (path) {
		from = open(path, O_RDONLY | O_CLOEXEC);
		while (sendfile(fd, from, NULL, 65536) > 0)
			;
		close(from);
	}
	if (!path)
		assert_int_equal(ftruncate(fd, 8192), 0);
	at = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 4096);
	assert_true(at != MAP_FAILED);
	close(fd);
	return at;
}

/* A program in a memfd is a program; other bytes in a memfd are plain memory. */
static void test_memfd(void **state)
{
	char path[FIXTURE_PATH_MAX];
	char *program = map_memfd(fixture_path("plain-pie", path)), *jit = map_memfd(NULL);
	struct fixture *f = *state;
	struct frame frame;

	frame = resolve(f, &f->self, program + 8);
	assert_int_equal(frame.image->kind, IMAGE_FILE);
	assert_string_equal(frame.image->path, "/memfd:podprof");
	assert_int_equal(frame.vaddr, 4096 + 8);
	image_unref(frame.image);

	frame = resolve(f, &f->self, jit);
	assert_int_equal(frame.image->kind, IMAGE_ANON);
	assert_string_equal(frame.image->path, "/memfd:podprof");
	assert_true(frame.vaddr == (uint64_t)(uintptr_t)jit);
	image_unref(frame.image);
	munmap(jit, 4096);
	munmap(program, 4096);
}

static char *map_code(int flags)
{
	char *at = mmap(NULL, 4096, PROT_READ | PROT_EXEC, flags | MAP_ANONYMOUS, -1, 0);

	assert_true(at != MAP_FAILED);
	return at;
}

static struct image *image_at(struct fixture *f, const struct pid_id *pid, const void *at,
			      const char *path)
{
	struct frame frame = resolve(f, pid, at);

	assert_int_equal(frame.image->kind, IMAGE_ANON);
	assert_string_equal(frame.image->path, path);
	return frame.image;
}

/* Code in memory has the kernel's name of the mapping, and belongs to its process. */
static void test_names_of_memory(void **state)
{
	char *plain = map_code(MAP_PRIVATE), *shared = map_code(MAP_SHARED),
	     *named = map_code(MAP_PRIVATE);
	struct image *first, *second, *other;
	struct fixture *f = *state;
	struct pid_id child;
	pid_t pid;

	/* without CONFIG_ANON_VMA_NAME the mapping has no name */
	bool can_name = prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, named, 4096, "jit") == 0;

	first = image_at(f, &f->self, plain, "[anon]");
	assert_true(pid_id_equal(&first->mapped_by, &f->self));
	second = image_at(f, &f->self, plain + 8, "[anon]");
	assert_ptr_equal(first, second);
	image_unref(second);
	image_unref(image_at(f, &f->self, shared, "/dev/zero"));
	image_unref(image_at(f, &f->self, named, can_name ? "[anon:jit]" : "[anon]"));

#ifdef __x86_64__
	second = image_at(f, &f->self, (const void *)0xffffffffff600000, "[vsyscall]");
	assert_int_equal(second->mapped_by.pid, 0);
	image_unref(second);
#endif
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		pause();
		_exit(0);
	}
	assert_int_equal(pid_read(&f->proc, pid, &child), 0);
	other = image_at(f, &child, plain, "[anon]");
	assert_ptr_not_equal(first, other);
	assert_true(pid_id_equal(&other->mapped_by, &child));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	image_unref(other);
	image_unref(first);
	munmap(plain, 4096);
	munmap(shared, 4096);
	munmap(named, 4096);
}

/* More executable mappings than the limit, alternating between file and anonymous memory, so none
 * are merged. */
static void test_many_mappings(void **state)
{
	struct fixture *f = *state;
	size_t n = 5000;
	char *area = mmap(NULL, 2 * n * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct frame frame;

	assert_true(area != MAP_FAILED);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(mprotect(area + 2 * i * 4096, 4096, PROT_READ | PROT_EXEC), 0);
	frame = resolve(f, &f->self, area);
	assert_int_equal(frame.image->kind, IMAGE_ANON);
	image_unref(frame.image);
	assert_true(address_space_cache_bytes(f->cache) < 4096 * 64 + 65536);
	munmap(area, 2 * n * 4096);
}

/* ---------------------------------------------------------------- by the kernel's events */

static void tell(struct fixture *f, enum process_event_kind what, uint32_t pid, uint32_t ppid)
{
	struct process_event event = {
		.what = what, .pid = pid, .tid = pid, .ppid = ppid, .time_ns = nsec_boot()};
	struct pid_id id;

	/* the test may have waited for a CPU since */
	if (what == PROCESS_EVENT_BIRTH && pid_read(&f->proc, (pid_t)pid, &id) == 0)
		event.time_ns = pid_ns_of_ticks(id.start_ticks);
	address_space_cache_event(f->cache, &event);
}

/* Send events for all present executable mappings of @id, as the kernel does at their creation. */
static void send_maps(struct fixture *f, const struct pid_id *id)
{
	struct maps maps = {.only_prot = MAPS_X};

	assert_int_equal(maps_read(&f->proc, id, &maps), 0);
	for (size_t i = 0; i < maps.n; i++) {
		struct process_event event = {.what = PROCESS_EVENT_MAP,
					      .pid = (uint32_t)id->pid,
					      .tid = (uint32_t)id->pid,
					      .time_ns = nsec_boot(),
					      .map = maps.items[i],
					      .name = maps.items[i].path};

		address_space_cache_event(f->cache, &event);
	}
	maps_deinit(&maps);
}

static struct frame resolve_exec(struct fixture *f, const struct pid_id *id, uint64_t exec_id,
				 const void *pc)
{
	struct address_space_who who = {
		.pid = *id, .exec_id = exec_id, .pc = (uint64_t)(uintptr_t)pc};
	struct frame frame = {0};
	struct address_space *space;

	assert_int_equal(address_space_cache_get(f->cache, &who, &space), 0);
	assert_int_equal(address_space_resolve(f->cache, space, who.pc, &frame), 0);
	return frame;
}

static void expect_path(struct frame frame, const char *path)
{
	assert_string_equal(frame.image->path, path);
	image_unref(frame.image);
}

/* A process that was never read while alive. The file is opened through the parent, the test. */
static void test_gone_with_events(void **state)
{
	char path[FIXTURE_PATH_MAX];
	struct fixture *f = *state;
	struct frame frame;
	struct pid_id id;
	const void *code;
	int send_exit;
	pid_t pid;

	fixture_path("plain-fixed", path);
	pid = start_waiting(path, path, &send_exit);
	wait_for_exe(pid, path);
	assert_int_equal(pid_read(&f->proc, pid, &id), 0);
	code = code_of(pid);
	tell(f, PROCESS_EVENT_BIRTH, (uint32_t)pid, (uint32_t)getpid());
	tell(f, PROCESS_EVENT_EXEC, (uint32_t)pid, 0);
	send_maps(f, &id);
	stop(pid);
	close(send_exit);
	tell(f, PROCESS_EVENT_EXIT, (uint32_t)pid, 0);
	expect_path(resolve_exec(f, &id, 1, code), path);
	/* mappings inherited from the parent */
	frame = resolve(f, &f->self, (const void *)&test_self);
	expect_path(resolve_exec(f, &id, 0, (const void *)&test_self), frame.image->path);
	image_unref(frame.image);
	expect_path(resolve_exec(f, &id, 9, (const void *)16), "[unknown]");
}

/* The threads of an ended leader map a file at new addresses all the time: its list cannot be read,
 * and no event tells which of the mappings are gone. */
static void test_gone_with_many_events(void **state)
{
	char path[FIXTURE_PATH_MAX];
	struct fixture *f = *state;
	struct address_space *space;
	struct process_event event;
	struct pid_id id;
	size_t n = 0;
	pid_t pid = start(f, fixture_path("plain-fixed", path), &id);
	const struct address_space_who who = {.pid = id, .exec_id = 1};

	tell(f, PROCESS_EVENT_BIRTH, (uint32_t)pid, (uint32_t)getpid());
	tell(f, PROCESS_EVENT_EXEC, (uint32_t)pid, 0);
	send_maps(f, &id);
	stop(pid);
	tell(f, PROCESS_EVENT_EXIT, (uint32_t)pid, 0);
	for (uint64_t i = 0; i < 2ull * LIST_MAX; i++) {
		event = (struct process_event){.what = PROCESS_EVENT_MAP,
					       .pid = (uint32_t)pid,
					       .tid = (uint32_t)pid + 1,
					       .time_ns = nsec_boot(),
					       .map = {.start = (i + 1) << 32,
						       .limit = ((i + 1) << 32) + 4096,
						       .device = 1,
						       .inode = 1},
					       .name = path};
		address_space_cache_event(f->cache, &event);
		if (i % 64 == 63)
			assert_int_equal(address_space_cache_get(f->cache, &who, &space), 0);
	}
	(void)address_space_mappings(space, &n);
	assert_int_equal(n, LIST_MAX);
	assert_true(address_space_gone(space));
}

/* A command of the caller, forked before the first event: all samples come after the end of the
 * process, in a single drain. Without the knowledge of the birth nothing tells the program of a
 * sample. */
static void test_child(void **state)
{
	char path[FIXTURE_PATH_MAX];
	struct fixture *f = *state;

	fixture_path("plain-fixed", path);
	for (int known = 0; known < 2; known++) {
		struct pid_id id;
		const void *code;
		int send_exit;
		pid_t pid = start_waiting(path, path, &send_exit);

		wait_for_exe(pid, path);
		assert_int_equal(pid_read(&f->proc, pid, &id), 0);
		code = code_of(pid);
		if (known)
			address_space_cache_child(f->cache, &id);
		tell(f, PROCESS_EVENT_EXEC, (uint32_t)pid, 0);
		send_maps(f, &id);
		stop(pid);
		close(send_exit);
		tell(f, PROCESS_EVENT_EXIT, (uint32_t)pid, 0);
		address_space_cache_between(f->cache, 0, nsec_boot());
		expect_path(resolve_exec(f, &id, 1, code), known ? path : "[unknown]");
	}
}

/* Two programs in one drain: both are known. */
static void test_child_executes_twice(void **state)
{
	char first[FIXTURE_PATH_MAX], second[FIXTURE_PATH_MAX];
	struct fixture *f = *state;
	const void *code, *code_2;
	struct pid_id id;
	pid_t pid;
	int go;

	fixture_path("plain-pie", first);
	pid = start_waiting(first, fixture_path("plain-fixed", second), &go);
	wait_for_exe(pid, first);
	assert_int_equal(pid_read(&f->proc, pid, &id), 0);
	code = code_of(pid);
	address_space_cache_child(f->cache, &id);
	tell(f, PROCESS_EVENT_EXEC, (uint32_t)pid, 0);
	send_maps(f, &id);
	tell(f, PROCESS_EVENT_EXEC, (uint32_t)pid, 0);
	close(go);
	wait_for_exe(pid, second);
	send_maps(f, &id);
	code_2 = code_of(pid);
	stop(pid);
	tell(f, PROCESS_EVENT_EXIT, (uint32_t)pid, 0);
	address_space_cache_between(f->cache, 0, nsec_boot());
	expect_path(resolve_exec(f, &id, 2, code_2), second);
	expect_path(resolve_exec(f, &id, 1, code), first);
	expect_path(resolve_exec(f, &id, 3, code_2), "[unknown]");
}

/* A child without an exec has the mappings of its parent. */
static void test_gone_without_exec(void **state)
{
	struct fixture *f = *state;
	struct frame own = resolve(f, &f->self, (const void *)&test_self), frame;
	struct pid_id id;
	pid_t pid = fork();

	if (pid == 0) {
		pause();
		_exit(0);
	}
	assert_int_equal(pid_read(&f->proc, pid, &id), 0);
	tell(f, PROCESS_EVENT_BIRTH, (uint32_t)pid, (uint32_t)getpid());
	stop(pid);
	tell(f, PROCESS_EVENT_EXIT, (uint32_t)pid, 0);
	frame = resolve_exec(f, &id, 0, (const void *)&test_self);
	assert_ptr_equal(frame.image, own.image);
	assert_true(frame.vaddr == own.vaddr);
	image_unref(frame.image);
	image_unref(own.image);
}

/* The event of a later mapping gives the file at once, also after the end of the process. */
static void test_mapping_event(void **state)
{
	char path[FIXTURE_PATH_MAX];
	struct fixture *f = *state;
	struct frame frame;
	char *at;

	image_unref(resolve(f, &f->self, (const void *)&test_self).image);
	/* each read in vain doubles the delay of 100 ms before the next one */
	for (useconds_t delay_us = 150000; delay_us < 1000000; delay_us *= 2) {
		usleep(delay_us);
		image_unref(resolve(f, &f->self, (const void *)16).image);
	}
	at = map_file(fixture_path("plain-fixed", path), 4096);
	frame = resolve(f, &f->self, at);
	assert_int_equal(frame.image->kind, IMAGE_UNKNOWN);
	image_unref(frame.image);
	send_maps(f, &f->self);
	expect_path(resolve(f, &f->self, at), path);
	munmap(at, 4096);
}

static void send_memory(struct fixture *f, const char *start, const char *limit)
{
	const struct process_event event = {
		.what = PROCESS_EVENT_MAP,
		.pid = (uint32_t)f->self.pid,
		.tid = (uint32_t)f->self.pid,
		.time_ns = nsec_boot(),
		.map = {.start = (uintptr_t)start, .limit = (uintptr_t)limit},
		.name = "//anon"};

	address_space_cache_event(f->cache, &event);
}

static struct address_space *space_of_self(struct fixture *f)
{
	const struct address_space_who who = {.pid = f->self, .exec_id = ADDRESS_SPACE_EXEC_ANY};
	struct address_space *space;

	assert_int_equal(address_space_cache_get(f->cache, &who, &space), 0);
	return space;
}

static bool has(struct fixture *f, const char *at)
{
	const uint64_t pc = (uintptr_t)at;
	const struct address_space_mapping *items;
	size_t n;

	items = address_space_mappings(space_of_self(f), &n);
	for (size_t i = 0; i < n; i++)
		if (pc >= items[i].start && pc < items[i].limit)
			return true;
	return false;
}

/* Seeks until the memory at @at is known; a minute at most, because reads have pauses. */
static void seek(struct fixture *f, const char *at)
{
	for (int i = 0; i < 6000 && !has(f, at); i++) {
		usleep(10000);
		assert_false(address_space_seek_memory(f->cache, space_of_self(f))); /* no thread */
	}
	assert_true(has(f, at));
}

static uint64_t reads(struct fixture *f)
{
	return metrics_get(address_space_cache_collect, f->cache, "podprof_address_space_reads",
			   "proc");
}

/* A JIT compiler's memory that no pc of a sample shows: read once for an event, and again as it
 * grows at either end. */
static void test_memory_event(void **state)
{
	struct fixture *f = *state;
	char *at = mmap(NULL, 8 * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t n;

	assert_true(at != MAP_FAILED);
	image_unref(resolve(f, &f->self, (const void *)&test_self).image);
	usleep(300000); /* no pause is the reason */
	assert_int_equal(mprotect(at + 3 * 4096, 4096, PROT_READ | PROT_EXEC), 0);
	assert_false(address_space_seek_memory(f->cache, space_of_self(f)));
	assert_false(has(f, at + 3 * 4096));
	send_memory(f, at + 3 * 4096, at + 4 * 4096);
	seek(f, at + 3 * 4096);
	assert_int_equal(mprotect(at + 4 * 4096, 4096, PROT_READ | PROT_EXEC), 0);
	send_memory(f, at + 3 * 4096, at + 5 * 4096);
	seek(f, at + 4 * 4096);
	assert_int_equal(mprotect(at + 2 * 4096, 4096, PROT_READ | PROT_EXEC), 0);
	send_memory(f, at + 2 * 4096, at + 5 * 4096);
	seek(f, at + 2 * 4096);
	/* of known memory, and of memory that was read and is gone */
	n = reads(f);
	usleep(300000);
	send_memory(f, at + 2 * 4096, at + 5 * 4096);
	assert_false(address_space_seek_memory(f->cache, space_of_self(f)));
	assert_int_equal(reads(f), n);
	send_memory(f, at + 6 * 4096, at + 7 * 4096);
	for (int i = 0; i < 6000 && reads(f) == n; i++) {
		usleep(10000);
		assert_false(address_space_seek_memory(f->cache, space_of_self(f)));
	}
	assert_int_equal(reads(f), n + 1);
	usleep(300000);
	assert_false(address_space_seek_memory(f->cache, space_of_self(f)));
	assert_int_equal(reads(f), n + 1);
	munmap(at, 8 * 4096);
}

/* A child of the test executes another program: late samples of the first program. */
static void test_left_by_exec(void **state)
{
	char first[FIXTURE_PATH_MAX], second[FIXTURE_PATH_MAX];
	struct fixture *f = *state;
	struct pid_id id;
	const void *code;
	pid_t pid;
	int go;

	fixture_path("plain-pie", first);
	pid = start_waiting(first, fixture_path("plain-fixed", second), &go);
	wait_for_exe(pid, first);
	assert_int_equal(pid_read(&f->proc, pid, &id), 0);
	code = code_of(pid);
	tell(f, PROCESS_EVENT_BIRTH, (uint32_t)pid, (uint32_t)getpid());
	tell(f, PROCESS_EVENT_EXEC, (uint32_t)pid, 0);
	send_maps(f, &id);
	tell(f, PROCESS_EVENT_EXEC, (uint32_t)pid, 0);
	close(go);
	wait_for_exe(pid, second);
	send_maps(f, &id);
	/* the parent had executed six programs: the eighth is known only from now on */
	expect_path(resolve_exec(f, &id, 8, code_of(pid)), "[unknown]");
	address_space_cache_between(f->cache, nsec_boot(), UINT64_MAX);
	expect_path(resolve_exec(f, &id, 8, code_of(pid)), second);
	expect_path(resolve_exec(f, &id, 7, code), first);
	expect_path(resolve_exec(f, &id, 8, code_of(pid)), second);
	stop(pid);
}

/* Two programs at the same address, the first one read while running: late samples of the first
 * program still belong to the first after any read of the second. */
static void test_late_samples(void **state)
{
	char first[FIXTURE_PATH_MAX], second[FIXTURE_PATH_MAX];
	struct fixture *f = *state;
	struct pid_id id;
	const void *code;
	pid_t pid;
	int go;

	fixture_path("plain-fixed", first);
	pid = start_waiting(first, fixture_path("other-fixed", second), &go);
	wait_for_exe(pid, first);
	assert_int_equal(pid_read(&f->proc, pid, &id), 0);
	code = code_of(pid);
	expect_path(resolve_exec(f, &id, 7, code), first);
	tell(f, PROCESS_EVENT_EXEC, (uint32_t)pid, 0);
	close(go);
	wait_for_exe(pid, second);
	assert_ptr_equal(code_of(pid), code);
	send_maps(f, &id);
	expect_path(resolve_exec(f, &id, 8, code), second);
	usleep(150000); /* longer than between two looks for such a reason */
	expect_path(resolve_exec(f, &id, 7, code), first);
	address_space_cache_sweep(f->cache, nsec_boot());
	expect_path(resolve_exec(f, &id, 7, code), first);
	stop(pid);
	expect_path(resolve_exec(f, &id, 7, code), first);
	expect_path(resolve_exec(f, &id, 8, code), second);
}

/* ---------------------------------------------------------------- a file that changes */

/* Writes another build ID into the file, and sets the time of the last write back. */
static void overwrite(const char *path, const struct image *image)
{
	uint8_t id[ELFFILE_BUILD_ID_MAX];
	struct stat st;
	char *bytes, *at;
	size_t n;
	int fd;

	assert_int_equal(elffile_build_id(image->file, id, &n), 0);
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0 && fstat(fd, &st) == 0);
	bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	assert_true(bytes != MAP_FAILED);
	at = memmem(bytes, (size_t)st.st_size, id, n);
	assert_non_null(at);
	id[0] ^= 1;
	assert_int_equal(pwrite(fd, id, 1, at - bytes), 1);
	assert_int_equal(futimens(fd, (struct timespec[]){st.st_atim, st.st_mtim}), 0);
	munmap(bytes, (size_t)st.st_size);
	close(fd);
}

/* Windows without a sample, until the cache has no process. */
static void forget(struct fixture *f)
{
	const uint64_t now_ns = nsec_boot();

	for (uint64_t i = 0; i < 4; i++)
		address_space_cache_sweep(f->cache, now_ns + i * 1000 * NSEC_PER_SEC);
}

/* The image of @path, mapped for a moment. */
static struct image *image_of(struct fixture *f, const char *path)
{
	char *at = map_file(path, 4096);
	struct frame frame;

	forget(f);
	frame = resolve(f, &f->self, at);
	munmap(at, 4096);
	assert_string_equal(frame.image->path, path);
	return frame.image;
}

/* A process of @path that was never read while alive; an address of its code. */
static const void *run(struct fixture *f, const char *path, struct pid_id *ret)
{
	const void *code;
	int send_exit;
	pid_t pid;

	pid = start_waiting(path, path, &send_exit);
	wait_for_exe(pid, path);
	assert_int_equal(pid_read(&f->proc, pid, ret), 0);
	code = code_of(pid);
	tell(f, PROCESS_EVENT_BIRTH, (uint32_t)pid, (uint32_t)getpid());
	tell(f, PROCESS_EVENT_EXEC, (uint32_t)pid, 0);
	send_maps(f, ret);
	stop(pid);
	close(send_exit);
	tell(f, PROCESS_EVENT_EXIT, (uint32_t)pid, 0);
	return code;
}

static void test_touched(void **state)
{
	const char *copy = "/tmp/podprof-test-touched";
	char path[FIXTURE_PATH_MAX];
	struct image *images[3];
	struct fixture *f = *state;
	struct frame frame;
	struct pid_id id;
	const void *code;

	copy_file(fixture_path("plain-fixed", path), copy);
	images[0] = image_of(f, copy);
	overwrite(copy, images[0]);
	images[1] = image_of(f, copy);
	assert_string_not_equal(images[0]->build_id, images[1]->build_id);
	assert_ptr_equal(image_of(f, copy), images[1]);
	image_unref(images[1]);

	overwrite(copy, images[1]);
	code = run(f, copy, &id);
	frame = resolve_exec(f, &id, 1, code);
	assert_string_equal(frame.image->build_id, images[0]->build_id);
	images[2] = frame.image;
	unlink(copy);
	for (size_t i = 0; i < array_size(images); i++)
		image_unref(images[i]);
}

/* Of the file that test_checked() runs. */
static const char checked_path[] = "/tmp/podprof-test-checked";
static _Atomic unsigned int n_opens;

static void count_open(void *ctx, uint64_t pid, const struct maps_entry *entry)
{
	(void)ctx;
	(void)pid;
	n_opens += entry && strcmp(entry->path, checked_path) == 0;
}

/* The image of a program's code; whether the file was opened for the mapping. */
static bool is_opened_for(struct fixture *f, const struct pid_id *id, const void *code,
			  struct image **ret)
{
	const unsigned int before = n_opens;
	struct frame frame, settled;

	image_unref(resolve_exec(f, id, 1, code).image);
	while (address_space_cache_opening(f->cache))
		address_space_cache_wait(f->cache, NSEC_PER_SEC);
	frame = resolve_exec(f, id, 1, code);
	settled = frame_settle(&frame);
	assert_string_equal(settled.image->path, checked_path);
	*ret = image_ref(settled.image);
	image_unref(frame.image);
	return n_opens > before;
}

/* A file that was seen unchanged after a process had mapped it is not looked at again. */
static void test_checked(void **state)
{
	struct address_space_files files = {.hook = count_open};
	const char *copy = checked_path;
	char path[FIXTURE_PATH_MAX];
	struct image *images[4];
	struct fixture *f = *state;
	const void *code[4];
	struct pid_id ids[4];

	assert_int_equal(loop_new(&f->loop), 0);
	files.loop = f->loop;
	assert_int_equal(address_space_cache_open_behind(f->cache, &files), 0);
	copy_file(fixture_path("plain-fixed", path), copy);
	code[0] = run(f, copy, &ids[0]);
	code[1] = run(f, copy, &ids[1]);
	assert_true(is_opened_for(f, &ids[0], code[0], &images[0]));
	assert_false(is_opened_for(f, &ids[1], code[1], &images[1]));
	assert_ptr_equal(images[1], images[0]);
	code[2] = run(f, copy, &ids[2]);
	assert_true(is_opened_for(f, &ids[2], code[2], &images[2]));
	assert_ptr_equal(images[2], images[0]);
	overwrite(copy, images[0]);
	code[3] = run(f, copy, &ids[3]);
	assert_true(is_opened_for(f, &ids[3], code[3], &images[3]));
	assert_string_not_equal(images[3]->build_id, images[0]->build_id);
	unlink(copy);
	for (size_t i = 0; i < array_size(images); i++)
		image_unref(images[i]);
}

/* Maps the file again at @at, and sends the event. */
static void map_again(struct fixture *f, const char *path, void *at)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_int_equal(munmap(at, 4096), 0);
	assert_ptr_equal(mmap(at, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd, 4096),
			 at);
	close(fd);
	send_maps(f, &f->self);
}

/* A library with another content in the same file, loaded at the address of the one before. The
 * events are newer than a list by less than 100 ms, or a list comes next. */
static void test_mapped_again(void **state)
{
	static const useconds_t delays_us[] = {0, 150000};
	const char *copy = "/tmp/podprof-test-again";
	char path[FIXTURE_PATH_MAX];
	struct fixture *f = *state;
	struct image *image;
	struct frame frame;
	char *at;

	copy_file(fixture_path("plain-fixed", path), copy);
	at = map_file(copy, 4096);
	send_maps(f, &f->self);
	image = resolve(f, &f->self, at).image;
	for (size_t i = 0; i < array_size(delays_us); i++) {
		usleep(delays_us[i]);
		map_again(f, copy, at);
		frame = resolve(f, &f->self, at);
		assert_ptr_equal(frame.image, image);
		image_unref(frame.image);

		overwrite(copy, image);
		usleep(delays_us[i]);
		map_again(f, copy, at);
		frame = resolve(f, &f->self, at);
		assert_string_equal(frame.image->path, copy);
		assert_string_not_equal(frame.image->build_id, image->build_id);
		image_unref(image);
		image = frame.image;
	}
	image_unref(image);
	munmap(at, 4096);
	unlink(copy);
}

/* An unlink changes the time of the last status change, and leaves the content. */
static void test_unlinked(void **state)
{
	const char *copy = "/tmp/podprof-test-unlinked";
	char path[FIXTURE_PATH_MAX];
	struct fixture *f = *state;
	struct frame frame;
	struct image *image;
	struct pid_id id;
	const void *code;

	copy_file(fixture_path("plain-fixed", path), copy);
	image = image_of(f, copy);
	code = run(f, copy, &id);
	unlink(copy);
	frame = resolve_exec(f, &id, 1, code);
	assert_ptr_equal(frame.image, image);
	image_unref(frame.image);
	image_unref(image);
}

/* ---------------------------------------------------------------- forgetting */

static void test_sweep(void **state)
{
	struct fixture *f = *state;
	struct frame frame = resolve(f, &f->self, (const void *)&test_self);
	size_t bytes = address_space_cache_bytes(f->cache);
	const uint64_t used_ns = nsec_boot(), kept_ns = 100 * NSEC_PER_SEC;

	address_space_cache_expire(f->cache, used_ns - kept_ns);
	image_unref(resolve(f, &f->self, (const void *)&test_self).image);
	address_space_cache_expire(f->cache, used_ns); /* the first without a use */
	for (int i = 0; i < 5; i++) {
		address_space_cache_sweep(f->cache, used_ns + kept_ns - 1);
		assert_int_equal(address_space_cache_bytes(f->cache), bytes);
	}
	address_space_cache_expire(f->cache, used_ns + kept_ns);
	assert_true(address_space_cache_bytes(f->cache) < bytes);
	assert_int_equal(frame.image->refs, 2); /* ours and the table's */
	image_unref(frame.image);
	address_space_cache_sweep(f->cache, nsec_boot());
	frame = resolve(f, &f->self, (const void *)&test_self);
	forget(f);
	assert_non_null(frame.image->file);
	image_unref(frame.image);
}

/* Ended processes leave sooner: there may be many. */
static void test_sweep_ended(void **state)
{
	char path[FIXTURE_PATH_MAX];
	struct fixture *f = *state;
	size_t bytes;
	struct pid_id id;
	uint64_t exit_ns;
	const void *code;
	pid_t pid;

	pid = start(f, fixture_path("plain-fixed", path), &id);
	tell(f, PROCESS_EVENT_BIRTH, (uint32_t)pid, (uint32_t)getpid());
	tell(f, PROCESS_EVENT_EXEC, (uint32_t)pid, 0);
	send_maps(f, &id);
	code = code_of(pid);
	expect_path(resolve_exec(f, &id, 1, code), path);
	tell(f, PROCESS_EVENT_EXIT, (uint32_t)pid, 0);
	stop(pid);
	exit_ns = nsec_boot();
	for (int i = 0; i < 2; i++) { /* a thread that outlives the leader has samples */
		address_space_cache_expire(f->cache, exit_ns + PROCESS_HISTORY_KEEP_NS);
		bytes = address_space_cache_bytes(f->cache);
		address_space_cache_expire(f->cache, exit_ns + 2 * PROCESS_HISTORY_KEEP_NS - 1);
		assert_int_equal(address_space_cache_bytes(f->cache), bytes);
		expect_path(resolve_exec(f, &id, 1, code), path);
	}
	address_space_cache_expire(f->cache, exit_ns);
	address_space_cache_expire(f->cache, exit_ns + PROCESS_HISTORY_KEEP_NS);
	assert_true(address_space_cache_bytes(f->cache) < bytes);
}

static int resolve_self(void *ctx)
{
	struct address_space_cache *cache = NULL;
	struct frame frame = {0};
	struct fixture *f = ctx;
	int r = address_space_cache_new(&f->proc, &cache);

	if (!r)
		r = address_space_cache_resolve(cache, &f->self, (uint64_t)(uintptr_t)&resolve_self,
						&frame);
	image_unref(frame.image);
	address_space_cache_free(cache);
	return r;
}

static void test_out_of_memory(void **state)
{
	allocfail_survive(resolve_self, *state);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_self),
		TEST(test_vdso_and_anon),
		TEST(test_sharing),
		TEST(test_gone),
		TEST(test_exec),
		TEST(test_not_elf),
		TEST(test_by_offset),
		TEST(test_memfd),
		TEST(test_names_of_memory),
		TEST(test_many_mappings),
		TEST(test_gone_with_events),
		TEST(test_gone_with_many_events),
		TEST(test_child),
		TEST(test_child_executes_twice),
		TEST(test_gone_without_exec),
		TEST(test_mapping_event),
		TEST(test_memory_event),
		TEST(test_left_by_exec),
		TEST(test_late_samples),
		TEST(test_touched),
		TEST(test_checked),
		TEST(test_mapped_again),
		TEST(test_unlinked),
		TEST(test_sweep),
		TEST(test_sweep_ended),
		TEST(test_out_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
