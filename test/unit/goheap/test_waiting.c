// SPDX-License-Identifier: Apache-2.0
/* Processes that are stopped, frozen, changing during a read, or blocking their reader. */
#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "goheap/goheap.h"
#include "procmap/memory.h"
#include "support/gofixture.h"
#include "support/goprocess.h"

#define BUCKETS "test/fixtures/go/buckets"

/* ---------------------------------------------------------------- memory without an answer */

/* A child with a page whose faults it never answers; *@ret_addr is the page. */
static pid_t start_child(uint64_t *ret_addr, bool with_fault)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	int at[2];
	pid_t pid;

	assert_int_equal(pipe2(at, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		struct uffdio_api api = {.api = UFFD_API};
		uint8_t *p = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
				  -1, 0);
		struct uffdio_register reg = {
			.range = {(uint64_t)(uintptr_t)p, page},
			.mode = UFFDIO_REGISTER_MODE_MISSING,
		};
		int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
		bool ok = !with_fault || (fd >= 0 && ioctl(fd, UFFDIO_API, &api) == 0 &&
					  ioctl(fd, UFFDIO_REGISTER, &reg) == 0);

		if (!with_fault)
			memset(p, 7, page);
		if (!ok || write(at[1], &p, sizeof(p)) != sizeof(p))
			_exit(1);
		for (;;)
			pause();
	}
	close(at[1]);
	*ret_addr = 0;
	assert_int_equal(read(at[0], ret_addr, sizeof(*ret_addr)), sizeof(*ret_addr));
	close(at[0]);
	return pid;
}

struct waiting_read {
	struct memory *memory;
	uint64_t addr;
	int result;
	_Atomic bool is_done;
};

static void *read_it(void *ctx)
{
	struct waiting_read *w = ctx;
	char byte;

	w->result = memory_read(w->memory, w->addr, &byte, 1);
	w->is_done = true;
	return NULL;
}

/* The kernel's behaviour that makes heapworker.c necessary: process_vm_readv() sleeps, and
 * /proc/PID/mem, used by the check after each read, does not. The end of the process ends the
 * sleep. */
static void userfault(void **state)
{
	_cleanup_(root_deinit) struct root proc = ROOT_INIT;
	_cleanup_(process_memory_deinit) struct process_memory pm = {.fd = -1};
	struct waiting_read w = {.memory = &pm.memory};
	pid_t pid = start_child(&w.addr, true);
	struct pid_id id;
	pthread_t thread;
	char byte;

	(void)state;
	assert_int_equal(root_open("/proc", &proc), 0);
	assert_int_equal(pid_read(&proc, pid, &id), 0);
	assert_int_equal(process_memory_init(&pm, &proc, &id), 0);
	assert_int_equal(pread(pm.fd, &byte, 1, (off_t)w.addr), -1);
	assert_int_equal(errno, EIO);
	assert_int_equal(memory_check(&pm.memory), 0);
	assert_int_equal(pthread_create(&thread, NULL, read_it, &w), 0);
	usleep(100000);
	assert_false(w.is_done);
	assert_int_equal(memory_check(&pm.memory), 0);
	kill(pid, SIGKILL);
	pthread_join(thread, NULL);
	assert_true(w.is_done);
	waitpid(pid, NULL, 0);
	assert_int_equal(memory_check(&pm.memory), MEMORY_GONE);
}

/* ---------------------------------------------------------------- stopped and frozen */

static void assert_readable(const struct root *proc, pid_t pid, uint64_t addr)
{
	_cleanup_(process_memory_deinit) struct process_memory pm = {.fd = -1};
	struct pid_id id;
	uint8_t byte = 0;

	assert_int_equal(pid_read(proc, pid, &id), 0);
	assert_int_equal(process_memory_init(&pm, proc, &id), 0);
	assert_int_equal(memory_read(&pm.memory, addr, &byte, 1), 0);
	assert_int_equal(byte, 7);
	assert_int_equal(memory_check(&pm.memory), 0);
}

/* The process's state from /proc. */
static char state_of(pid_t pid)
{
	char path[64], line[512], *end;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "re");
	assert_non_null(f);
	assert_non_null(fgets(line, sizeof(line), f));
	fclose(f);
	end = strrchr(line, ')');
	assert_non_null(end);
	return end[2];
}

static void stopped(void **state)
{
	_cleanup_(root_deinit) struct root proc = ROOT_INIT;
	uint64_t addr;
	pid_t pid = start_child(&addr, false);
	int status;

	(void)state;
	assert_int_equal(root_open("/proc", &proc), 0);
	kill(pid, SIGSTOP);
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	assert_readable(&proc, pid, addr);
	assert_int_equal(state_of(pid), 'T'); /* unchanged */
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

struct freezer {
	const char *mount;
	const char *file;
	const char *freeze;
	const char *thaw;
	const char *state_file;
	const char *state; /* a line of the state file after freezing */
};

static const struct freezer freezers[] = {
	{"/sys/fs/cgroup/freezer", "freezer.state", "FROZEN", "THAWED", "freezer.state", "FROZEN"},
	{"/sys/fs/cgroup/unified", "cgroup.freeze", "1", "0", "cgroup.events", "frozen 1"},
	{"/sys/fs/cgroup", "cgroup.freeze", "1", "0", "cgroup.events", "frozen 1"},
};

static bool put(const char *dir, const char *file, const char *text)
{
	char path[256];
	bool ok;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
	if (fd >= 0)
		close(fd);
	return ok;
}

static bool says(const char *dir, const char *file, const char *want)
{
	char path[256], text[256] = "";
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : 0;
	if (fd >= 0)
		close(fd);
	return n > 0 && strstr(text, want);
}

/* False if this machine has no such freezer. */
static bool freeze(const struct freezer *f, const struct root *proc, pid_t pid, uint64_t addr)
{
	char dir[128], number[16];
	bool moved;

	snprintf(dir, sizeof(dir), "%s/podprof-test-%d", f->mount, getpid());
	if (mkdir(dir, 0755) < 0)
		return false;
	snprintf(number, sizeof(number), "%d", pid);
	moved = put(dir, "cgroup.procs", number) && put(dir, f->file, f->freeze);
	if (moved) {
		while (!says(dir, f->state_file, f->state))
			usleep(1000);
		assert_readable(proc, pid, addr);
		assert_true(says(dir, f->state_file, f->state)); /* unchanged */
		assert_true(put(dir, f->file, f->thaw));
		assert_true(put(f->mount, "cgroup.procs", number));
	}
	rmdir(dir);
	return moved;
}

static void frozen(void **state)
{
	_cleanup_(root_deinit) struct root proc = ROOT_INIT;
	unsigned int n = 0;
	uint64_t addr;
	pid_t pid = start_child(&addr, false);

	(void)state;
	assert_int_equal(root_open("/proc", &proc), 0);
	for (size_t i = 0; i < array_size(freezers); i++)
		n += freeze(&freezers[i], &proc, pid, addr);
	assert_true(n > 0);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* ---------------------------------------------------------------- Go programs */

static struct goheap *open_heap(const struct goprocess *p, size_t max_bytes)
{
	const struct goheap_opts opts = {.proc = &p->proc, .id = p->id, .max_bytes = max_bytes};
	struct goheap *h;

	assert_int_equal(goheap_new(&opts, &h), 0);
	return h;
}

static char *build_buckets(void)
{
	const char *gos[GOFIXTURE_GOS_MAX];

	return gofixture_build(BUCKETS, gos[gofixture_gos(gos) - 1], "default");
}

/* The process executes its program again at a moving moment during the read. Each time the result
 * is the right program's, or gone. */
static void exec_while_read(void **state)
{
	static const char *const args[] = {"12", "2", NULL};
	_cleanup_(freep) char *path = build_buckets();
	_cleanup_(goprocess_stop) struct goprocess p = {.to = -1};

	(void)state;
	goprocess_start(&p, path, args, "GOMAXPROCS=2");
	for (useconds_t delay_us = 0; delay_us < 6000; delay_us += 300) {
		struct goheap *h = open_heap(&p, 0);
		struct goheap_profile profile;
		pid_t sender;
		int r = 0;

		assert_int_equal(goheap_read(h, &profile), GORUNTIME_OK);
		sender = fork();
		if (sender == 0) {
			usleep(delay_us);
			_exit(write(p.to, "exec\n", 5) == 5 ? 0 : 1);
		}
		/* another agent on this machine may hold the old address space a moment longer */
		while (r == GORUNTIME_OK || r == GORUNTIME_UNKNOWN_LAYOUT) {
			r = goheap_read(h, &profile);
			if (r == GORUNTIME_OK)
				assert_true(profile.n_records >= 1 << 12);
		}
		assert_int_equal(r, GORUNTIME_GONE);
		waitpid(sender, NULL, 0);
		goheap_free(h);
		goprocess_wait(&p);
	}
}

static uint64_t sum_of(const struct goheap_profile *profile)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < profile->n_records; i++) {
		struct goheap_record record;

		goheap_record(profile, i, &record);
		sum += record.fresh_allocs;
	}
	return sum;
}

/* In slices as in one read, with records of several processors; the bytes of a slice are bounded,
 * for any number of records. */
static void in_slices(void **state)
{
	enum { SLICE = 64 << 10, WINDOW = 128 << 10 };
	static const char *const args[] = {"13", "4", NULL};
	_cleanup_(freep) char *path = build_buckets();
	_cleanup_(goprocess_stop) struct goprocess p = {.to = -1};
	struct goheap_profile whole, sliced;
	struct goheap *a, *b;
	uint64_t n, n_new = 0;

	(void)state;
	goprocess_start(&p, path, args, "GOMAXPROCS=4");
	a = open_heap(&p, 0);
	b = open_heap(&p, 0);
	for (int i = 0; i < 3; i++) {
		unsigned int n_steps = 1;

		assert_int_equal(goheap_read(a, &whole), GORUNTIME_OK);
		while (goheap_step(b, SLICE, &sliced) == (int)GOHEAP_UNFINISHED)
			n_steps++;
		assert_int_equal(goheap_state(b), GORUNTIME_OK);
		/* the runtime allocates a little itself */
		n = sum_of(&sliced);
		assert_true(n >= sum_of(&whole) && sliced.n_records >= whole.n_records);
		assert_int_equal(goheap_read(a, &whole), GORUNTIME_OK);
		assert_true(n <= sum_of(&whole) && sliced.n_records <= whole.n_records);
		assert_true(n_steps > 10);
		assert_true(sliced.n_bytes / n_steps <= SLICE + WINDOW);
		if (i > 0)
			assert_true(sum_of(&whole) >= n_new);
		n_new = sum_of(&whole) + (i == 0 ? 1 << 13 : 100);
		goprocess_order(&p, i == 0 ? "more" : "new");
	}
	goheap_free(a);
	goheap_free(b);
}

/* A heap that is too large is skipped until there is much more room. */
static void too_large(void **state)
{
	static const char *const args[] = {"13", "1", NULL};
	_cleanup_(freep) char *path = build_buckets();
	_cleanup_(goprocess_stop) struct goprocess p = {.to = -1};
	struct goheap_profile profile;
	struct goheap *h;
	struct gototals exact;
	uint64_t cycles;

	(void)state;
	goprocess_start(&p, path, args, NULL);
	h = open_heap(&p, 300000);
	assert_int_equal(goheap_read(h, &profile), GORUNTIME_TOO_LARGE);
	assert_true(goheap_bytes(h) < 100000);
	/* the runtime's own counters are known nevertheless */
	assert_int_equal(goheap_cycles(h, &cycles), 0);
	assert_int_equal(goheap_exact(h, &exact), 0);
	assert_true(exact.alloc_objects > 1 << 12);
	goheap_set_max_bytes(h, 310000);
	assert_int_equal(goheap_read(h, &profile), GORUNTIME_TOO_LARGE);
	goheap_set_max_bytes(h, 4 << 20);
	assert_int_equal(goheap_read(h, &profile), GORUNTIME_OK);
	assert_true(profile.first);
	assert_true(profile.n_records >= 1 << 13);
	/* half of the process's own memory for the records */
	assert_true(goheap_bytes(h) < profile.n_records * (48 + 17 * 8 + 64) * 3 / 4);
	goheap_free(h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(userfault), cmocka_unit_test(stopped),
		cmocka_unit_test(frozen),    cmocka_unit_test(exec_while_read),
		cmocka_unit_test(in_slices), cmocka_unit_test(too_large),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
