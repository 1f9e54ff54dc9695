// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <dlfcn.h>
#include <errno.h>
#include <linux/capability.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/nsec.h"
#include "base/root.h"
#include "procmap/maps.h"
#include "profile/sideband.h"
#include "support/metrics.h"
#include "support/tree.h"

/* ---------------------------------------------------------------- one record */

/* A record being put together. */
struct bytes {
	uint64_t words[64];
	size_t n; /* bytes */
};

static void put(struct bytes *b, uint64_t value, size_t size)
{
	assert_true(b->n + size <= sizeof(b->words));
	memcpy((char *)b->words + b->n, &value, size);
	b->n += size;
}

static void begin(struct bytes *b, uint32_t type, uint16_t misc)
{
	memset(b, 0, sizeof(*b));
	put(b, type, 4);
	put(b, misc, 2);
	put(b, 0, 2);
}

static void end(struct bytes *b, uint64_t time_ns)
{
	uint16_t n;

	put(b, 1, 8);
	put(b, time_ns, 8);
	n = (uint16_t)b->n;
	memcpy((char *)b->words + 6, &n, sizeof(n));
}

static void put_task(struct bytes *b, uint32_t type, uint32_t pid, uint32_t ppid, uint32_t tid)
{
	begin(b, type, 0);
	put(b, pid, 4);
	put(b, ppid, 4);
	put(b, tid, 4);
	put(b, ppid, 4);
	put(b, 7, 8);
	end(b, 99);
}

static void put_mmap(struct bytes *b, uint64_t start, uint64_t length, uint32_t prot,
		     const char *name, size_t n_name)
{
	begin(b, PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER);
	put(b, 12, 4);
	put(b, 13, 4);
	put(b, start, 8);
	put(b, length, 8);
	put(b, 0x3000, 8);
	put(b, 253, 4);
	put(b, 2, 4);
	put(b, 77, 8);
	put(b, 5, 8);
	put(b, prot, 4);
	put(b, 2, 4);
	memcpy((char *)b->words + b->n, name, n_name);
	b->n += n_name;
	end(b, 99);
}

static void test_decode_tasks(void **state)
{
	static const struct {
		const char *name;
		uint32_t type, pid, ppid, tid;
		int outcome;
	} rows[] = {
		{"fork", PERF_RECORD_FORK, 10, 9, 10, SIDEBAND_OK},
		{"a thread's fork", PERF_RECORD_FORK, 10, 10, 11, SIDEBAND_OTHER},
		{"fork outside", PERF_RECORD_FORK, 0, 0, 0, SIDEBAND_OTHER},
		{"fork into a namespace of its own", PERF_RECORD_FORK, 0, 4, 0, SIDEBAND_OUTSIDE},
		{"exit", PERF_RECORD_EXIT, 10, 1, 10, SIDEBAND_OK},
		{"exit of a thread", PERF_RECORD_EXIT, 10, 1, 11, SIDEBAND_OTHER},
		{"exit outside", PERF_RECORD_EXIT, 0, 0, 0, SIDEBAND_OUTSIDE},
		{"exit outside, reaped", PERF_RECORD_EXIT, UINT32_MAX, 0, UINT32_MAX,
		 SIDEBAND_OUTSIDE},
		{"another type", 9, 10, 9, 10, SIDEBAND_OTHER},
	};

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		struct sideband_record record = {0};
		struct bytes b;

		row_begin(rows[i].name);
		put_task(&b, rows[i].type, rows[i].pid, rows[i].ppid, rows[i].tid);
		assert_int_equal(sideband_decode(b.words, b.n, &record), rows[i].outcome);
		if (rows[i].outcome)
			continue;
		assert_int_equal(record.pid, rows[i].pid);
		assert_int_equal(record.tid, rows[i].tid);
		assert_int_equal(record.ppid, rows[i].ppid);
		assert_int_equal(record.time_ns, 99);
		assert_string_equal(record.name, "");
	}
}

static void test_decode_mmap(void **state)
{
	static const struct {
		const char *row;
		uint64_t start, length;
		uint32_t prot;
		const char *name;
		size_t n_name;
		int outcome;
	} rows[] = {
		{"code", 0x1000, 0x2000, PROT_READ | PROT_EXEC, "/lib/x.so", 16, SIDEBAND_OK},
		{"no code", 0x1000, 0x2000, PROT_READ, "/lib/x.so", 16, SIDEBAND_OTHER},
		{"name without an end", 0x1000, 0x2000, PROT_EXEC, "/lib/xyz", 8, SIDEBAND_ODD},
		{"no name", 0x1000, 0x2000, PROT_EXEC, "", 0, SIDEBAND_ODD},
		{"empty name", 0x1000, 0x2000, PROT_EXEC, "\0\0\0\0\0\0\0", 8, SIDEBAND_OK},
		{"nothing", 0x1000, 0, PROT_EXEC, "/lib/x.so", 16, SIDEBAND_ODD},
		{"up to the end of memory", UINT64_MAX - 0xfff, 0xfff, PROT_EXEC, "/lib/x.so", 16,
		 SIDEBAND_OK},
		{"around it", UINT64_MAX - 0xfff, 0x1000, PROT_EXEC, "/lib/x.so", 16, SIDEBAND_ODD},
	};

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		struct sideband_record record = {0};
		char name[16] = "";
		struct bytes b;

		row_begin(rows[i].row);
		memcpy(name, rows[i].name,
		       strlen(rows[i].name) < rows[i].n_name ? strlen(rows[i].name) + 1
							     : rows[i].n_name);
		put_mmap(&b, rows[i].start, rows[i].length, rows[i].prot, name, rows[i].n_name);
		assert_int_equal(sideband_decode(b.words, b.n, &record), rows[i].outcome);
		if (rows[i].outcome)
			continue;
		assert_int_equal(record.kind, SIDEBAND_MMAP);
		assert_int_equal(record.pid, 12);
		assert_int_equal(record.tid, 13);
		assert_true(record.start == rows[i].start && record.length == rows[i].length);
		assert_int_equal(record.off, 0x3000);
		assert_true(record.device == makedev(253, 2));
		assert_int_equal(record.inode, 77);
		assert_int_equal(record.generation, 5);
		assert_string_equal(record.name, rows[i].name);
	}
}

static void test_decode_others(void **state)
{
	struct sideband_record record = {0};
	struct bytes b;

	(void)state;
	begin(&b, PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC);
	put(&b, 10, 4);
	put(&b, 10, 4);
	put(&b, 0x0074, 8);
	end(&b, 3);
	assert_int_equal(sideband_decode(b.words, b.n, &record), SIDEBAND_OK);
	assert_int_equal(record.kind, SIDEBAND_EXEC);
	assert_int_equal(record.pid, 10);
	((uint16_t *)b.words)[2] = 0; /* a new name, not an exec */
	assert_int_equal(sideband_decode(b.words, b.n, &record), SIDEBAND_OTHER);

	begin(&b, PERF_RECORD_LOST, 0);
	put(&b, 1, 8);
	put(&b, 17, 8);
	end(&b, 3);
	assert_int_equal(sideband_decode(b.words, b.n, &record), SIDEBAND_OK);
	assert_int_equal(record.kind, SIDEBAND_LOST);
	assert_int_equal(record.n_lost, 17);
}

/* Every shorter form of a record is invalid, for any length field. */
static void test_decode_short(void **state)
{
	struct sideband_record record;
	struct bytes b, cut;

	(void)state;
	put_mmap(&b, 0x1000, 0x2000, PROT_EXEC, "/lib/x.so\0\0\0\0\0\0", 16);
	for (size_t n = 0; n + 24 < b.n; n += 8) {
		cut = b;
		cut.n = n;
		assert_int_equal(sideband_decode(cut.words, n, &record), SIDEBAND_ODD);
		if (n < SIDEBAND_HEADER_BYTES)
			continue;
		((uint16_t *)cut.words)[3] = (uint16_t)n;
		assert_int_equal(sideband_decode(cut.words, n, &record), SIDEBAND_ODD);
	}
}

/* ---------------------------------------------------------------- the kernel's */

struct fixture {
	struct root sys;
	struct sideband *sb;
};

/* The events of one process, and the order of all processes' events. */
struct story {
	uint32_t pid;
	char kinds[256]; /* "FXMME" */
	uint32_t ppid;
	size_t n;
	uint64_t last_ns;
	bool in_order;
	uint64_t last_own_ns;
	bool own_in_order;
	struct sideband_record maps[32];
	char names[32][256];
	size_t n_maps;
	uint64_t all;
};

static void listen_to(void *ctx, const struct sideband_record *r)
{
	static const char letters[] = "FEXML";
	struct story *s = ctx;

	s->all++;
	s->in_order &= r->time_ns >= s->last_ns;
	s->last_ns = r->time_ns;
	if (r->pid != s->pid)
		return;
	s->own_in_order &= r->time_ns >= s->last_own_ns;
	s->last_own_ns = r->time_ns;
	if (s->n + 1 >= sizeof(s->kinds))
		return;
	s->kinds[s->n++] = letters[r->kind];
	if (r->kind == SIDEBAND_FORK)
		s->ppid = r->ppid;
	if (r->kind == SIDEBAND_MMAP && s->n_maps < array_size(s->maps)) {
		snprintf(s->names[s->n_maps], sizeof(s->names[0]), "%s", r->name);
		s->maps[s->n_maps++] = *r;
	}
}

static void open_sideband(struct fixture *f, size_t ring_bytes)
{
	struct sideband_opts opts = {.sys = &f->sys, .ring_bytes = ring_bytes};

	assert_int_equal(root_open("/sys", &f->sys), 0);
	assert_int_equal(sideband_new(&opts, &f->sb), 0);
	assert_true(sideband_n_open(f->sb) >= 1);
}

static void close_sideband(struct fixture *f)
{
	sideband_free(f->sb);
	root_deinit(&f->sys);
}

static pid_t run(const char *path)
{
	pid_t pid = fork();

	if (pid == 0) {
		execl(path, path, NULL);
		_exit(127);
	}
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	return pid;
}

static void test_fork_exec_exit(void **state)
{
	struct story s = {.in_order = true};
	struct fixture f;
	bool exe = false, libc = false;

	(void)state;
	open_sideband(&f, 0);
	s.pid = (uint32_t)run("/bin/true");
	sideband_drain(f.sb, UINT64_MAX, SIZE_MAX, listen_to, &s);
	assert_true(s.in_order);
	assert_int_equal(s.ppid, getpid());
	assert_true(strncmp(s.kinds, "FXMM", 4) == 0);
	assert_int_equal(s.kinds[s.n - 1], 'E');
	for (size_t i = 0; i < s.n_maps; i++) {
		exe |= strcmp(s.names[i], "/usr/bin/true") == 0 ||
		       strcmp(s.names[i], "/bin/true") == 0;
		libc |= strstr(s.names[i], "/libc.so") != NULL;
	}
	assert_true(exe && libc);
	assert_int_equal(sideband_n_lost(f.sb), 0);
	/* all is read */
	s.n = 0;
	sideband_drain(f.sb, UINT64_MAX, SIZE_MAX, listen_to, &s);
	assert_int_equal(s.n, 0);
	close_sideband(&f);
}

/* A record's numbers equal /proc/PID/maps. */
static void test_dlopen(void **state)
{
	struct story s = {.in_order = true, .pid = (uint32_t)getpid()};
	struct maps maps = {.only_prot = MAPS_X};
	const struct maps_entry *e;
	struct root proc;
	struct pid_id self;
	struct fixture f;
	void *jit;

	(void)state;
	open_sideband(&f, 0);
	jit = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(jit != MAP_FAILED);
	assert_int_equal(mprotect(jit, 4096, PROT_READ | PROT_EXEC), 0);
	assert_non_null(dlopen("libbz2.so.1.0", RTLD_NOW) ?: dlopen("liblzma.so.5", RTLD_NOW)
			?: dlopen("libz.so.1", RTLD_NOW));
	sideband_drain(f.sb, UINT64_MAX, SIZE_MAX, listen_to, &s);
	assert_true(s.n_maps >= 1);
	assert_int_equal(root_open("/proc", &proc), 0);
	assert_int_equal(pid_read(&proc, getpid(), &self), 0);
	assert_int_equal(maps_read(&proc, &self, &maps), 0);
	for (size_t i = 0; i < s.n_maps; i++) {
		e = maps_find(&maps, s.maps[i].start);
		assert_non_null(e);
		assert_true(e->start == s.maps[i].start);
		assert_true(e->limit == s.maps[i].start + s.maps[i].length);
		assert_true(e->inode == s.maps[i].inode && e->device == s.maps[i].device);
		if (e->inode)
			assert_true(e->offset == s.maps[i].off);
	}
	maps_deinit(&maps);
	root_deinit(&proc);
	munmap(jit, 8192);
	close_sideband(&f);
}

static void *pinned_forks(void *arg)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((int)(intptr_t)arg, &set);
	(void)sched_setaffinity(0, sizeof(set), &set);
	for (int i = 0; i < 20; i++)
		run("/bin/true");
	return NULL;
}

/* Simultaneous events of several CPUs arrive in the order of time. */
static void test_order(void **state)
{
	struct story s = {.in_order = true};
	struct fixture f;
	pthread_t threads[2];
	uint64_t until;

	(void)state;
	open_sideband(&f, 0);
	for (size_t i = 0; i < array_size(threads); i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, pinned_forks, (void *)(intptr_t)i), 0);
	for (size_t i = 0; i < array_size(threads); i++)
		pthread_join(threads[i], NULL);
	until = sideband_until() / 2; /* of long ago */
	assert_int_equal(sideband_drain(f.sb, until, SIZE_MAX, listen_to, &s), 0);
	sideband_drain(f.sb, UINT64_MAX, SIZE_MAX, listen_to, &s);
	assert_true(s.in_order);
	assert_true(s.all >= 2ull * 20 * 5 || sideband_n_lost(f.sb) > 0);
	close_sideband(&f);
}

/* A ring that is too small: lost events are reported. Other processes of the machine run on the
 * other CPUs at the same time, and drains up to this moment may deliver their records late. */
static void test_lost_and_wakeup(void **state)
{
	struct story s = {.own_in_order = true};
	struct pollfd wake;
	struct fixture f;
	cpu_set_t set;

	(void)state;
	CPU_ZERO(&set);
	CPU_SET(0, &set);
	assert_int_equal(sched_setaffinity(0, sizeof(set), &set), 0);
	open_sideband(&f, (size_t)sysconf(_SC_PAGESIZE));
	wake = (struct pollfd){.fd = sideband_fd(f.sb), .events = POLLIN};
	while (poll(&wake, 1, 0) == 0)
		run("/bin/true");
	for (int i = 0; i < 4096 / 40; i++)
		run("/bin/true");
	sideband_drain(f.sb, UINT64_MAX, SIZE_MAX, listen_to, &s);
	assert_true(s.all > 0);
	run("/bin/true"); /* the kernel reports the loss with the next fitting record */
	sideband_drain(f.sb, UINT64_MAX, SIZE_MAX, listen_to, &s);
	assert_true(sideband_n_lost(f.sb) > 0);
	for (int i = 0; i < 500; i++) { /* around the ring's end, many times */
		s.pid = (uint32_t)run("/bin/true");
		sideband_drain(f.sb, UINT64_MAX, SIZE_MAX, listen_to, &s);
	}
	assert_true(s.last_own_ns && s.own_in_order);
	close_sideband(&f);
}

/* What the fetch has taken out of the rings is delivered in parts, in order and whole. */
static void test_queue(void **state)
{
	struct story s = {.own_in_order = true};
	struct fixture f;

	(void)state;
	open_sideband(&f, 0);
	s.pid = (uint32_t)run("/bin/true");
	assert_false(sideband_fetch(f.sb));
	assert_int_equal(sideband_drain(f.sb, UINT64_MAX, 2, listen_to, &s), 2);
	while (sideband_drain(f.sb, UINT64_MAX, 1, listen_to, &s))
		continue;
	assert_true(s.own_in_order);
	assert_true(strncmp(s.kinds, "FXMM", 4) == 0);
	assert_int_equal(s.kinds[s.n - 1], 'E');
	close_sideband(&f);
}

struct ending {
	uint64_t n;
	bool lost; /* the last record */
	uint64_t since_ns;
};

static void note_end(void *ctx, const struct sideband_record *r)
{
	struct ending *ending = ctx;

	ending->n++;
	ending->lost = r->kind == SIDEBAND_LOST;
	ending->since_ns = r->since_ns;
}

/* A full queue loses the later records, and says from when on. */
static void test_queue_full(void **state)
{
	struct sideband_opts opts = {.queue_bytes = 4096};
	struct ending ending = {0};
	struct fixture f;
	uint64_t begin_ns;

	(void)state;
	assert_int_equal(root_open("/sys", &f.sys), 0);
	opts.sys = &f.sys;
	begin_ns = nsec_boot();
	assert_int_equal(sideband_new(&opts, &f.sb), 0);
	for (int i = 0; i < 32; i++)
		run("/bin/true");
	assert_true(sideband_fetch(f.sb));
	sideband_drain(f.sb, UINT64_MAX, SIZE_MAX, note_end, &ending);
	assert_true(ending.n > 1 && ending.n < 100 && ending.lost);
	assert_true(ending.since_ns > begin_ns && ending.since_ns < nsec_boot());
	assert_true(sideband_n_lost(f.sb) > 0);
	assert_int_equal(metrics_get(sideband_collect, f.sb, "podprof_process_event_gaps", ""), 1);
	ending = (struct ending){0};
	/* There is room again. A busy machine's own starts of programs fill the queue at times. */
	for (int i = 0; i < 1000 && (ending.n < 4 || ending.lost); i++) {
		ending = (struct ending){0};
		run("/bin/true");
		sideband_drain(f.sb, UINT64_MAX, SIZE_MAX, note_end, &ending);
	}
	assert_true(ending.n >= 4 && !ending.lost);
	close_sideband(&f);
}

/* A thread is no process: no record reports the birth or the end. */
static void test_threads(void **state)
{
	struct story s = {.in_order = true, .pid = (uint32_t)getpid()};
	struct fixture f;
	pthread_t thread;

	(void)state;
	open_sideband(&f, 0);
	assert_int_equal(pthread_create(&thread, NULL, pinned_forks, (void *)0), 0);
	pthread_join(thread, NULL);
	/* on the same CPU, so behind the first thread's exit in the ring */
	assert_int_equal(pthread_create(&thread, NULL, pinned_forks, (void *)0), 0);
	pthread_join(thread, NULL);
	sideband_drain(f.sb, UINT64_MAX, SIZE_MAX, listen_to, &s);
	assert_true(s.all >= 2ull * 20 * 5);
	assert_null(strchr(s.kinds, 'F'));
	assert_null(strchr(s.kinds, 'X'));
	assert_null(strchr(s.kinds, 'E'));
	close_sideband(&f);
}

static void test_follow(void **state)
{
	struct fixture f;
	size_t n;

	(void)state;
	open_sideband(&f, 0);
	n = sideband_n_open(f.sb);
	usleep(1000);
	assert_int_equal(sideband_follow(f.sb), 0);
	assert_int_equal(sideband_n_open(f.sb), n);
	close_sideband(&f);
}

/* The records of a CPU that goes offline are in its ring, and are delivered. */
static void test_offline(void **state)
{
	static const char online[] = "devices/system/cpu/online";
	struct sideband_opts opts = {0};
	struct story s = {.in_order = true, .own_in_order = true};
	struct fixture f;
	struct tree sys;
	cpu_set_t before, set;

	(void)state;
	tree_init(&sys);
	tree_mkdir(sys.fd, "devices/system/cpu");
	tree_write(sys.fd, online, "0\n");
	assert_int_equal(root_open(sys.path, &f.sys), 0);
	opts.sys = &f.sys;
	assert_int_equal(sideband_new(&opts, &f.sb), 0);
	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	CPU_ZERO(&set);
	CPU_SET(0, &set);
	assert_int_equal(sched_setaffinity(0, sizeof(set), &set), 0);
	s.pid = (uint32_t)run("/bin/true");
	assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
	tree_write(sys.fd, online, "1\n"); /* opens where there is a second CPU */
	assert_int_equal(sideband_follow(f.sb), 0);
	sideband_drain(f.sb, UINT64_MAX, SIZE_MAX, listen_to, &s);
	assert_true(s.n >= 3 || sideband_n_lost(f.sb) > 0);
	assert_int_equal(s.kinds[0], 'F');
	assert_int_equal(s.kinds[s.n - 1], 'E');
	close_sideband(&f);
	tree_deinit(&sys);
}

/* A user of its own, without the right to lock any memory: the kernel's allowance, by default for
 * one set of the largest rings, and then 140 KiB a CPU. */
static void limit_memory(size_t n_cpus)
{
	const struct rlimit limit = {n_cpus * 140 << 10, n_cpus * 140 << 10};
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2];

	if (prctl(PR_SET_KEEPCAPS, 1) < 0 || setresuid(64123, 64123, 64123) < 0 ||
	    syscall(SYS_capget, &head, data) < 0)
		_exit(2);
	for (int i = 0; i < 2; i++)
		data[i].effective = data[i].permitted;
	data[0].effective &= ~(1u << CAP_IPC_LOCK);
	if (syscall(SYS_capset, &head, data) < 0 || setrlimit(RLIMIT_MEMLOCK, &limit) < 0)
		_exit(3);
}

/* The first has the allowance, the second has smaller rings, and others have none. */
static int open_many(const struct sideband_opts *opts, size_t n_cpus)
{
	struct sideband *sb;
	int r = 0, n = 0;

	limit_memory(n_cpus);
	while (n < 8 && !(r = sideband_new(opts, &sb))) {
		if (sideband_n_open(sb) != n_cpus)
			return 4;
		n++;
	}
	return n >= 2 && (n == 8 || r == -EPERM) ? 0 : 5;
}

/* Each CPU has a ring, with whatever memory the kernel locks; or there are none. */
static void test_locked_memory(void **state)
{
	struct sideband_opts opts = {0};
	struct fixture f;
	size_t n_cpus;
	int status;
	pid_t pid;

	(void)state;
	open_sideband(&f, 0);
	n_cpus = sideband_n_open(f.sb);
	opts.sys = &f.sys;
	sideband_free(f.sb);
	f.sb = NULL;
	pid = fork();
	if (pid == 0)
		_exit(open_many(&opts, n_cpus));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	close_sideband(&f);
}

static void test_bad_size(void **state)
{
	struct sideband_opts opts = {.ring_bytes = 3 * 65536};
	struct sideband *sb;
	struct root sys;

	(void)state;
	assert_int_equal(root_open("/sys", &sys), 0);
	opts.sys = &sys;
	assert_int_equal(sideband_new(&opts, &sb), -EINVAL);
	root_deinit(&sys);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_decode_tasks),	cmocka_unit_test(test_decode_mmap),
		cmocka_unit_test(test_decode_others),	cmocka_unit_test(test_decode_short),
		cmocka_unit_test(test_fork_exec_exit),	cmocka_unit_test(test_dlopen),
		cmocka_unit_test(test_order),		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_queue),		cmocka_unit_test(test_queue_full),
		cmocka_unit_test(test_lost_and_wakeup), cmocka_unit_test(test_follow),
		cmocka_unit_test(test_bad_size),	cmocka_unit_test(test_locked_memory),
		cmocka_unit_test(test_offline),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
