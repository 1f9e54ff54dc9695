// SPDX-License-Identifier: Apache-2.0
/* The real programs in the real kernel. There is no way to pass without one. */
#include "support/test.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/magic.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/metric.h"
#include "base/nsec.h"
#include "base/root.h"
#include "profile/bpfobj.h"
#include "profile/oncpu.h"
#include "profile/pid_filter.h"
#include "profile/stack_dump.h"
#include "profile/stacks.h"
#include "profile/verifier.h"
#include "shared/sample.h"
#include "support/burn.h"
#include "support/verified.h"

/* A prime, and high enough for meaningful numbers from a short run. */
#define RATE 997

/* A sampler, a burning child, and the child's samples. */
struct bench {
	struct root proc, sys;
	struct oncpu *oc;
	pid_t child;	   /* 0: none */
	uint64_t child_id; /* the child's pid in the sampled namespace */
	uint64_t all;	   /* samples of everybody, with a stack */
	uint64_t lost;	   /* without one */
	uint64_t lost_total;
	uint64_t mine; /* of the child, and so on */
	uint64_t with_kernel;
	uint64_t nested; /* inner, middle, outer in this order */
	uint64_t below;	 /* middle, outer, below the C library's frames */
	uint64_t by_end[SAMPLE_END_MAX];
	uint64_t max_user;
	struct sample last; /* without the pointers */
	char cgroup[256];   /* directory to be removed, "": none */
};

static struct bench bench;

static bool nested_at(const struct sample *s, size_t i)
{
	return s->n_user > i + 1 && burn_in(burn_middle_range(), s->user[i]) &&
	       burn_in(burn_outer_range(), s->user[i + 1]);
}

static void take(void *ctx, const struct sample *s)
{
	struct bench *b = ctx;

	if (sample_is_lost(s)) {
		assert_int_equal(s->n_user + s->n_kernel, 0);
		b->lost += s->count;
		b->lost_total += s->total;
		return;
	}
	b->all += s->count;
	if (s->pid.pid != b->child_id)
		return;
	b->mine += s->count;
	b->by_end[s->end] += s->count;
	if (s->n_user > b->max_user)
		b->max_user = s->n_user;
	if (burn_in(burn_inner_range(), s->user[0]) && nested_at(s, 1))
		b->nested += s->count;
	if (nested_at(s, 1))
		b->below += s->count;
	if (s->n_kernel) {
		b->with_kernel += s->count;
		for (size_t i = 0; i < s->n_kernel; i++)
			assert_true(s->kernel[i] >> 63);
	}
	for (size_t i = 0; i < s->n_user; i++)
		assert_false(s->user[i] >> 63);
	b->last = *s;
}

static int setup(void **state)
{
	bench = (struct bench){0};
	*state = &bench;
	return root_open("/proc", &bench.proc) || root_open("/sys", &bench.sys);
}

static int teardown(void **state)
{
	struct bench *b = *state;

	if (b->child)
		burn_end(b->child);
	if (b->cgroup[0])
		rmdir(b->cgroup);
	oncpu_free(b->oc);
	root_deinit(&b->proc);
	root_deinit(&b->sys);
	return 0;
}

static void sample_with(struct bench *b, const struct oncpu_opts *opts)
{
	struct bpfobj_why why = {""};
	int r = oncpu_new(opts, &why, &b->oc);

	if (r)
		fail_msg("no sampler: %s", why.text);
	assert_true(oncpu_n_cpus(b->oc) > 0);
}

static struct oncpu_opts usual(struct bench *b)
{
	return (struct oncpu_opts){
		.rate_hz = RATE, .kernel_stacks = true, .proc = &b->proc, .sys = &b->sys};
}

static void start_child(struct bench *b, enum burn_kind kind)
{
	b->child = burn_start(kind);
	assert_true(b->child > 0);
	b->child_id = (uint64_t)b->child;
}

static void tick(struct bench *b)
{
	assert_int_equal(oncpu_tick(b->oc, take, b), 0);
	usleep(1000);
}

/* Until the child has had so much more of a CPU, however busy the machine is. On a busy machine the
 * stacks of others fill the maps meanwhile, unless @fn drains these. */
static void burn_with(struct bench *b, uint64_t cpu_ns, void (*fn)(struct bench *b))
{
	clockid_t clock;
	uint64_t until;

	assert_int_equal(clock_getcpuclockid(b->child, &clock), 0);
	until = nsec_read(clock) + cpu_ns;
	burn_go(b->child);
	while (nsec_read(clock) < until)
		fn(b);
}

static void burn_for(struct bench *b, uint64_t cpu_ns)
{
	burn_with(b, cpu_ns, tick);
}

static uint64_t end_child(struct bench *b)
{
	uint64_t cpu_ns = burn_end(b->child);

	b->child = 0;
	return cpu_ns;
}

static void finish(struct bench *b)
{
	assert_int_equal(oncpu_finish(b->oc, take, b), 0);
}

/* Drain the counts. */
static void drain(struct bench *b)
{
	do
		tick(b);
	while (oncpu_interval_ns(b->oc) <= 10 * NSEC_PER_MSEC);
}

static uint64_t stat_of(const struct bench *b, enum sample_stat stat)
{
	uint64_t stats[SAMPLE_STAT_MAX];

	assert_int_equal(oncpu_stats(b->oc, stats, SAMPLE_STAT_MAX), 0);
	return stats[stat];
}

/* Samples stored by the kernel; after finish() all are handed over. */
static uint64_t delivered(const struct bench *b)
{
	uint64_t stats[SAMPLE_STAT_MAX], sum = 0;

	assert_int_equal(oncpu_stats(b->oc, stats, SAMPLE_STAT_MAX), 0);
	for (unsigned int i = 0; i < SAMPLE_STAT_MAX; i++)
		if (sample_stat_delivered(i))
			sum += stats[i];
	return sum;
}

/* ---------------------------------------------------------------- stacks */

static void test_nesting_and_time(void **state)
{
	struct bench *b = *state;
	struct oncpu_opts opts = usual(b);
	uint64_t cpu_ns, sampled_ns;
	struct pid_id id;
	char name[PID_COMM_MAX];

	opts.rate_hz = 199; /* a loaded host delays a virtual machine's timers by milliseconds */
	start_child(b, BURN_USER);
	assert_int_equal(pid_read(&b->proc, b->child, &id), 0);
	assert_int_equal(pid_read_comm(&b->proc, &id, name), 0);
	sample_with(b, &opts);
	burn_for(b, NSEC_PER_SEC);
	cpu_ns = end_child(b);
	finish(b);

	assert_true(b->mine > 0);
	sampled_ns = b->mine * oncpu_period(b->oc);
	print_message("child: %.3f s of CPU, sampled %.3f s, %ju samples, %ju nested\n",
		      (double)cpu_ns / 1e9, (double)sampled_ns / 1e9, (uintmax_t)b->mine,
		      (uintmax_t)b->nested);
	/* A sample in a prologue misses a caller, one in an interrupt has other frames on top. */
	assert_true(b->nested * 100 >= b->mine * 80);
	/* Fewer: the host took time from a virtual machine, and cpu_ns includes this time. More:
	 * chance, if the child runs in many short turns. */
	assert_true(sampled_ns * 100 >= cpu_ns * 50 && sampled_ns * 100 <= cpu_ns * 120);
	assert_true(pid_id_equal(&b->last.pid, &id));
	assert_string_equal(b->last.comm, name);
	assert_int_equal(b->all, delivered(b));
}

static void test_kernel_stacks(void **state)
{
	struct bench *b = *state;
	const struct oncpu_opts opts = usual(b);

	start_child(b, BURN_KERNEL);
	sample_with(b, &opts);
	burn_for(b, NSEC_PER_SEC / 2);
	end_child(b);
	finish(b);
	assert_true(b->mine > 0);
	print_message("%ju of %ju samples in the kernel\n", (uintmax_t)b->with_kernel,
		      (uintmax_t)b->mine);
	assert_true(b->with_kernel * 100 >= b->mine * 10);
	/* The C library's syscall() keeps no frame, so the caller of burn_inner() comes next. */
	assert_true(b->below * 100 >= b->mine * 80);
}

static void test_kernel_stacks_off(void **state)
{
	struct bench *b = *state;
	struct oncpu_opts opts = usual(b);

	opts.kernel_stacks = false;
	start_child(b, BURN_KERNEL);
	sample_with(b, &opts);
	burn_for(b, NSEC_PER_SEC / 4);
	end_child(b);
	finish(b);
	assert_true(b->mine > 0);
	assert_int_equal(b->with_kernel, 0);
	assert_int_equal(b->all, delivered(b));
}

/* Deeper than the ceiling: truncated, counted as such, and kept in the large class. On a busy
 * machine a good part of the samples falls into the descent with its page faults. */
static void test_deep(void **state)
{
	struct bench *b = *state;
	const struct oncpu_opts opts = usual(b);

	start_child(b, BURN_DEEP);
	sample_with(b, &opts);
	burn_for(b, NSEC_PER_SEC / 4);
	end_child(b);
	finish(b);
	assert_true(b->mine > 0);
	assert_int_equal(b->max_user, SAMPLE_USER_FRAMES_MAX);
	print_message("%llu of %llu samples too deep\n",
		      (unsigned long long)b->by_end[SAMPLE_END_MAX_FRAMES],
		      (unsigned long long)b->mine);
	assert_true(b->by_end[SAMPLE_END_MAX_FRAMES] * 100 >= b->mine * 50);
	assert_int_equal(b->all, delivered(b));
}

/* A drain of the shortest interval may find each sample to be another deep stack. */
static void test_deep_room(void **state)
{
	static const struct {
		uint32_t rate_hz;
		uint64_t interval_ns;
		uint32_t at_least;
	} rows[] = {
		{997, 100 * NSEC_PER_MSEC, 99}, /* podprof record */
		{97, 3 * NSEC_PER_SEC, 73},
		{1, 100 * NSEC_PER_MSEC, 32},
	};
	struct bench *b = *state;

	for (size_t i = 0; i < array_size(rows); i++) {
		struct oncpu_opts opts = usual(b);
		struct bpf_map_info info = {0};
		uint32_t n = sizeof(info);

		opts.rate_hz = rows[i].rate_hz;
		opts.interval_ns = rows[i].interval_ns;
		sample_with(b, &opts);
		assert_int_equal(
			bpf_obj_get_info_by_fd(bpfobj_oncpu(oncpu_object(b->oc)).stacks.deep[0],
					       &info, &n),
			0);
		assert_true(info.max_entries >= rows[i].at_least);
		assert_true(info.max_entries <= 256);
		finish(b);
		oncpu_free(b->oc);
		b->oc = NULL;
	}
}

/* ---------------------------------------------------------------- counting */

/* Generations change many times while three children write to them, without a lost sample. */
static void test_conservation(void **state)
{
	struct bench *b = *state;
	const struct oncpu_opts opts = usual(b);
	pid_t others[2];

	for (size_t i = 0; i < array_size(others); i++) {
		others[i] = burn_start(i ? BURN_MANY : BURN_KERNEL);
		assert_true(others[i] > 0);
	}
	start_child(b, BURN_USER);
	sample_with(b, &opts);
	for (size_t i = 0; i < array_size(others); i++)
		burn_go(others[i]);
	for (int i = 0; i < 30; i++) {
		burn_for(b, 20 * NSEC_PER_MSEC);
		drain(b);
	}
	for (size_t i = 0; i < array_size(others); i++)
		burn_end(others[i]);
	end_child(b);
	finish(b);
	print_message("%ju samples\n", (uintmax_t)b->all);
	assert_true(b->all > RATE / 4);
	assert_int_equal(b->all, delivered(b));
	assert_int_equal(stat_of(b, SAMPLE_STAT_LOST_FULL), 0);
	assert_int_equal(stat_of(b, SAMPLE_STAT_LOST_BUSY), 0);
	assert_int_equal(stat_of(b, SAMPLE_STAT_LOST_INTERNAL), 0);
}

static void no_tick(struct bench *b)
{
	(void)b;
	usleep(1000);
}

/* Let the child make more different stacks than the active generation holds. */
static void overflow(struct bench *b)
{
	for (int i = 0; i < 300 && !stat_of(b, SAMPLE_STAT_LOST_FULL); i++)
		burn_with(b, NSEC_PER_SEC / 10, no_tick);
}

/* Nothing drains the maps: samples without room are counted as lost, and delivered without stack.
 */
static void test_full(void **state)
{
	struct bench *b = *state;
	struct oncpu_opts opts = usual(b);

	opts.interval_ns = 100 * NSEC_PER_MSEC;
	start_child(b, BURN_MANY);
	sample_with(b, &opts);
	overflow(b);
	end_child(b);
	finish(b);
	print_message("%ju samples, %ju more lost\n", (uintmax_t)b->all,
		      (uintmax_t)stat_of(b, SAMPLE_STAT_LOST_FULL));
	assert_true(stat_of(b, SAMPLE_STAT_LOST_FULL) > 0);
	assert_int_equal(b->lost, stat_of(b, SAMPLE_STAT_LOST_FULL));
	assert_int_equal(b->lost_total, b->lost * SAMPLE_ONE);
	assert_int_equal(stat_of(b, SAMPLE_STAT_LOST_BUSY), 0);
	assert_true(b->all > 0);
	assert_int_equal(b->all, delivered(b));
}

/* Full maps shorten the drain interval, empty maps lengthen it. */
static void test_interval(void **state)
{
	struct bench *b = *state;
	struct oncpu_opts opts = usual(b);
	uint64_t usual_ns;

	opts.interval_ns = 200 * NSEC_PER_MSEC;
	start_child(b, BURN_MANY);
	sample_with(b, &opts);
	usual_ns = oncpu_interval_ns(b->oc);
	assert_in_range(usual_ns, opts.interval_ns * 9 / 10, opts.interval_ns);
	overflow(b);
	drain(b);
	assert_in_range(oncpu_interval_ns(b->oc), 1, opts.interval_ns / 2);
	end_child(b);
	for (int i = 0; i < 2; i++)
		drain(b);
	assert_int_equal(oncpu_interval_ns(b->oc), usual_ns);
}

static void check_verified(const struct bench *b, const struct verifier *v)
{
	const unsigned int most =
		bpfobj_has_loop(oncpu_object(b->oc)) ? VERIFIED_INSNS_MAX : VERIFIED_PARTS_MAX;

	assert_true(v->n > 0);
	for (size_t i = 0; i < v->n; i++) {
		print_message("%s: %u instructions verified\n", v->programs[i].name,
			      v->programs[i].insns);
		assert_in_range(v->programs[i].insns, 1, most);
	}
}

static void check_verifier_cost(struct bench *b, bool names)
{
	struct oncpu_opts opts = usual(b);
	struct bpfobj_runtime loaded;

	print_message("names: %d\n", names);
	opts.stack_dumps = true;
	opts.thread_names = names;
	opts.task_names = names;
	sample_with(b, &opts);
	check_verified(b, bpfobj_verifier(oncpu_object(b->oc)));
	for (uint32_t i = FRAME_RUNTIME_NONE + 1; i < FRAME_RUNTIME_MAX; i++) {
		assert_int_equal(bpfobj_load_runtime(oncpu_object(b->oc), i, &loaded), 0);
		check_verified(b, &loaded.verifier);
		bpfobj_runtime_deinit(&loaded);
	}
}

static void test_verifier_cost(void **state)
{
	check_verifier_cost(*state, false);
}

static void test_verifier_cost_of_names(void **state)
{
	check_verifier_cost(*state, true);
}

/* ---------------------------------------------------------------- stack dumps */

static void look_away(struct bench *b)
{
	(void)b;
	usleep(1000);
}

/* A stack of some KiB; the tests' own has more. */
static void start_shell(struct bench *b)
{
	b->child = fork();
	if (!b->child) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)execl("/bin/sh", "sh", "-c", "while :; do :; done", (char *)NULL);
		_exit(127);
	}
	assert_true(b->child > 0);
}

static void take_exe(void *ctx, struct stack_dump_copy *copy)
{
	struct exe_key *ret = ctx;
	struct stack_dump dump;

	assert_int_equal(stack_dump_decode(copy->record, copy->size, &dump), 0);
	*ret = *dump.exe;
	free(copy);
}

/* Whether dumps of the child, a new process, make the ring's descriptor readable. @exe: what the
 * child executes; if known before, its dumps are as @like says. */
static bool dumps_wake(struct bench *b, const struct exe_dumps *like, struct exe_key *exe)
{
	struct oncpu_opts opts = usual(b);
	struct bpfobj_stack_dumps maps;
	struct stack_dumps *dumps;
	struct pollfd fd = {.events = POLLIN};
	int n;

	opts.stack_dumps = true;
	opts.scope = SETTINGS_SCOPE_PROCESSES;
	sample_with(b, &opts);
	assert_int_equal(pid_filter_add(oncpu_pid_filter(b->oc), b->child), 0);
	maps = oncpu_stack_dumps(b->oc);
	if (exe->inode)
		assert_int_equal(
			bpf_map_update_elem(oncpu_unwind(b->oc).runtime_exes[FRAME_RUNTIME_NONE],
					    exe, like, BPF_ANY),
			0);
	assert_int_equal(stack_dumps_new(&maps, &dumps), 0);
	fd.fd = stack_dumps_fd(dumps);
	burn_with(b, 50 * NSEC_PER_MSEC, look_away);
	n = poll(&fd, 1, 0);
	assert_int_equal(stack_dumps_fetch(dumps), 0);
	assert_true(stack_dumps_waiting(dumps));
	assert_int_equal(stack_dumps_drain(dumps, take_exe, exe), 0);
	assert_true(exe->inode);
	stack_dumps_free(dumps);
	return n > 0;
}

/* The stack of the first has more bytes than a dump. */
static void test_urgent_dumps(void **state)
{
	struct exe_key exe = {0};

	start_child(*state, BURN_DEEP);
	assert_true(dumps_wake(*state, NULL, &exe));
}

static void test_usual_dumps(void **state)
{
	struct exe_key exe = {0};

	start_shell(*state);
	assert_false(dumps_wake(*state, NULL, &exe));
}

static void stop_sampling(struct bench *b)
{
	oncpu_free(b->oc);
	b->oc = NULL;
}

/* Dumps of programs with names in memory alone wake the agent, whatever their stacks. */
static void test_waking_programs(void **state)
{
	const struct exe_dumps usual_dumps = {.n_parts = 1}, waking = {.n_parts = 1, .wakes = 1};
	struct exe_key exe = {0};
	struct bench *b = *state;

	start_shell(b);
	assert_false(dumps_wake(b, NULL, &exe));
	stop_sampling(b);
	assert_false(dumps_wake(b, &usual_dumps, &exe));
	stop_sampling(b);
	assert_true(dumps_wake(b, &waking, &exe));
}

/* ---------------------------------------------------------------- cgroups */

struct cgroup_row {
	const char *mount; /* below /sys/fs/cgroup */
	enum settings_v1 v1;
};

static const struct cgroup_row cgroup_rows[] = {
	{"", SETTINGS_V1_NONE}, /* the unified hierarchy, on a node with version 2 only */
	{"unified", SETTINGS_V1_NONE},
	{"memory", SETTINGS_V1_MEMORY},
	{"pids", SETTINGS_V1_PIDS},
	{"cpu", SETTINGS_V1_CPU},
	{"cpuacct", SETTINGS_V1_CPUACCT},
	{"devices", SETTINGS_V1_DEVICES},
	{"freezer", SETTINGS_V1_FREEZER},
	{"blkio", SETTINGS_V1_BLKIO},
	{"perf_event", SETTINGS_V1_PERF_EVENT},
};

static bool is_mounted(const char *path, enum settings_v1 v1)
{
	const long magic = v1 == SETTINGS_V1_NONE ? CGROUP2_SUPER_MAGIC : CGROUP_SUPER_MAGIC;
	struct statfs fs;

	return statfs(path, &fs) == 0 && (long)fs.f_type == magic;
}

/* Move the child into a new cgroup in the hierarchy at @mount; the directory's inode number. */
static uint64_t move_child(struct bench *b, const char *mount)
{
	_cleanup_(fclosep) FILE *procs = NULL;
	char file[300];
	struct stat st;

	snprintf(b->cgroup, sizeof(b->cgroup), "%s/podprof-test-%d", mount, getpid());
	assert_int_equal(mkdir(b->cgroup, 0755), 0);
	assert_int_equal(stat(b->cgroup, &st), 0);
	snprintf(file, sizeof(file), "%s/cgroup.procs", b->cgroup);
	procs = fopen(file, "we");
	assert_non_null(procs);
	assert_true(fprintf(procs, "%d\n", b->child) > 0);
	return st.st_ino;
}

static void check_cgroup(struct bench *b, const struct cgroup_row *row, const char *mount)
{
	struct oncpu_opts opts = usual(b);
	uint64_t inode;

	opts.v1 = row->v1;
	start_child(b, BURN_USER);
	inode = move_child(b, mount);
	sample_with(b, &opts);
	burn_for(b, NSEC_PER_SEC / 10);
	end_child(b);
	finish(b);
	assert_int_equal(rmdir(b->cgroup), 0);
	b->cgroup[0] = 0;
	assert_true(b->mine > 0);
	if (row->v1 == SETTINGS_V1_NONE) {
		assert_int_equal(b->last.cgroup_id, inode);
		assert_int_equal(b->last.cgroup_v1_id, 0);
	} else {
		assert_int_equal(b->last.cgroup_v1_id, inode);
		assert_int_not_equal(b->last.cgroup_id, 0);
	}
	oncpu_free(b->oc);
	b->oc = NULL;
	b->mine = 0;
}

static void test_cgroups(void **state)
{
	struct bench *b = *state;
	size_t n = 0;

	for (size_t i = 0; i < array_size(cgroup_rows); i++) {
		const struct cgroup_row *row = &cgroup_rows[i];
		char mount[64];

		snprintf(mount, sizeof(mount), "/sys/fs/cgroup/%s", row->mount);
		if (!is_mounted(mount, row->v1))
			continue; /* another machine has other hierarchies */
		row_begin(mount);
		check_cgroup(b, row, mount);
		n++;
	}
	assert_true(n > 0);
}

/* ---------------------------------------------------------------- namespaces */

/* An agent with the /proc of an inner pid namespace gets the pids of this namespace, and nothing of
 * outside processes. */
static void test_pid_namespace(void **state)
{
	struct bench *b = *state;
	struct oncpu_opts opts = usual(b);
	char dir[] = "/tmp/test-proc-XXXXXX", target[64];
	struct root proc;

	b->child = burn_start_pidns(BURN_USER);
	assert_true(b->child > 0);
	b->child_id = 1;
	assert_non_null(mkdtemp(dir));
	assert_int_equal(root_open(dir, &proc), 0);
	assert_int_equal(mkdirat(proc.fd, "1", 0700), 0);
	assert_int_equal(mkdirat(proc.fd, "1/ns", 0700), 0);
	snprintf(target, sizeof(target), "/proc/%d/ns/pid", b->child);
	assert_int_equal(symlinkat(target, proc.fd, "1/ns/pid"), 0);
	opts.proc = &proc;
	sample_with(b, &opts);
	burn_for(b, NSEC_PER_SEC / 4);
	end_child(b);
	finish(b);
	unlinkat(proc.fd, "1/ns/pid", 0);
	unlinkat(proc.fd, "1/ns", AT_REMOVEDIR);
	unlinkat(proc.fd, "1", AT_REMOVEDIR);
	root_deinit(&proc);
	rmdir(dir);
	assert_true(b->mine > 0);
	assert_int_equal(b->mine, b->all);
	assert_int_equal(b->all, delivered(b));
}

/* ---------------------------------------------------------------- 32-bit programs */

#ifdef __x86_64__
/* A 32-bit ELF program with a single segment and a single instruction, a jump to itself. */
static const uint8_t spin32[] =
	{
		/* clang-format off */
	0x7f, 'E', 'L', 'F', 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0,
	2, 0, 3, 0, 1, 0, 0, 0, 0x54, 0x80, 0x04, 0x08, 52, 0, 0, 0, /* entry 0x8048054 */
	0, 0, 0, 0, 0, 0, 0, 0, 52, 0, 32, 0, 1, 0, 0, 0, 0, 0, 0, 0,
	1, 0, 0, 0, 0, 0, 0, 0, 0x00, 0x80, 0x04, 0x08, 0x00, 0x80, 0x04, 0x08,
	86, 0, 0, 0, 86, 0, 0, 0, 5, 0, 0, 0, 0, 0x10, 0, 0,
	0xeb, 0xfe,
		/* clang-format on */
};

/* Returns when the program runs: this process has frames of 64 bits before. */
static pid_t start_spin32(void)
{
	_cleanup_(close_fdp) int fd = memfd_create("spin32", MFD_CLOEXEC);
	int until_exec[2];
	char byte;
	pid_t pid;

	assert_true(fd >= 0);
	assert_int_equal(pipe2(until_exec, O_CLOEXEC), 0);
	assert_int_equal(write(fd, spin32, sizeof(spin32)), sizeof(spin32));
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		fexecve(fd, (char *[]){(char *)"spin32", NULL}, (char *[]){NULL});
		_exit(1); /* a kernel without 32-bit programs has none to sample */
	}
	close(until_exec[1]);
	assert_int_equal(read(until_exec[0], &byte, 1), 0);
	close(until_exec[0]);
	return pid;
}

/* 32-bit frames have another size: only the pc is kept, and counted as such. */
static void test_32bit(void **state)
{
	struct bench *b = *state;
	const struct oncpu_opts opts = usual(b);
	clockid_t clock;

	b->child = start_spin32();
	assert_true(b->child > 0);
	b->child_id = (uint64_t)b->child;
	sample_with(b, &opts);
	assert_int_equal(clock_getcpuclockid(b->child, &clock), 0);
	while (nsec_read(clock) < NSEC_PER_SEC / 4) {
		tick(b);
		if (waitpid(b->child, NULL, WNOHANG) != b->child)
			continue;
		b->child = 0;
		print_message("this kernel runs no 32-bit programs\n");
		return;
	}
	end_child(b);
	finish(b);
	assert_true(b->by_end[SAMPLE_END_32BIT] > 0);
	assert_true(b->by_end[SAMPLE_END_32BIT] * 100 >= b->mine * 80);
	assert_int_equal(b->max_user, 1); /* 0 as well: the program's end, without memory */
	assert_int_equal(b->all, delivered(b));
}
#endif

/* ---------------------------------------------------------------- capabilities */

struct caps_row {
	const char *name;
	uint64_t caps;
	int want;	  /* of oncpu_new() */
	const char *todo; /* in the sentence */
};

static const struct caps_row caps_rows[] = {
	{"the two that it takes", 1ull << CAP_BPF | 1ull << CAP_PERFMON, 0, ""},
	{"not for memory and events", 1ull << CAP_BPF, -EPERM, "CAP_PERFMON"},
	{"not for maps and programs", 1ull << CAP_PERFMON, -EPERM, "CAP_BPF"},
	{"none", 0, -EPERM, "CAP_BPF"},
};

/* In a child: keep these capabilities and try to sample. Exit status 0 if all is as expected. */
static int try_with_caps(struct bench *b, const struct caps_row *row)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {
		{.effective = (uint32_t)row->caps, .permitted = (uint32_t)row->caps},
		{.effective = (uint32_t)(row->caps >> 32),
		 .permitted = (uint32_t)(row->caps >> 32)},
	};
	const struct oncpu_opts opts = usual(b);
	struct bpfobj_why why = {""};
	struct oncpu *oc = NULL;
	int r;

	if (syscall(SYS_capset, &header, data) < 0)
		return 2;
	r = oncpu_new(&opts, &why, &oc);
	oncpu_free(oc);
	print_message("%d %s\n", r, why.text);
	return r != row->want || !strstr(why.text, row->todo);
}

/* Debian's and Ubuntu's patch: from level 3 on CAP_PERFMON is not enough to open an event. */
static bool is_paranoid(void)
{
	_cleanup_(fclosep) FILE *f = fopen("/proc/sys/kernel/perf_event_paranoid", "re");

	return f && fgetc(f) > '2'; /* one digit, or a minus sign */
}

static void test_capabilities(void **state)
{
	struct caps_row rows[array_size(caps_rows)];

	memcpy(rows, caps_rows, sizeof(rows));
	if (is_paranoid()) {
		rows[0].want = -EACCES;
		rows[0].todo = "CAP_SYS_ADMIN";
	}
	for (size_t i = 0; i < array_size(rows); i++) {
		pid_t pid;
		int status;

		row_begin(rows[i].name);
		fflush(NULL);
		pid = fork();
		if (pid == 0)
			_exit(try_with_caps(*state, &rows[i]));
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
	}
}

/* ---------------------------------------------------------------- metrics */

struct counted {
	struct metric_sink sink;
	const char *family;
	uint64_t samples; /* of all outcomes */
	uint64_t frames;
	uint64_t map_bytes;
};

static void on_family(struct metric_sink *sink, const struct metric_family_desc *family)
{
	((struct counted *)sink)->family = family->name;
}

static void on_value(struct metric_sink *sink, const struct metric_value *value)
{
	struct counted *c = (struct counted *)sink;

	if (strcmp(c->family, "podprof_samples") == 0)
		c->samples += value->u;
	else if (strcmp(c->family, "podprof_frames") == 0)
		c->frames += value->u;
	else if (strcmp(c->family, "podprof_bpf_map_bytes") == 0)
		c->map_bytes = value->u;
}

static void test_metrics(void **state)
{
	struct counted counted = {.sink = {on_family, on_value}};
	struct bench *b = *state;
	const struct oncpu_opts opts = usual(b);
	const struct stacks *stacks;
	uint64_t stats[SAMPLE_STAT_MAX], sum = 0;

	start_child(b, BURN_USER);
	sample_with(b, &opts);
	burn_for(b, NSEC_PER_SEC / 10);
	end_child(b);
	finish(b);
	assert_int_equal(oncpu_stats(b->oc, stats, SAMPLE_STAT_MAX), 0);
	for (size_t i = 0; i < SAMPLE_STAT_MAX; i++)
		sum += stats[i];
	stacks = oncpu_stacks(b->oc);
	stacks_collect(&stacks, 1, &counted.sink);
	oncpu_collect(b->oc, &counted.sink);
	assert_true(sum > 0);
	assert_int_equal(counted.samples, sum);
	assert_true(counted.frames >= b->mine * 3);
	assert_true(counted.map_bytes > 100000);
}

/* ---------------------------------------------------------------- CPU hotplug */

#define CPU1_ONLINE "/sys/devices/system/cpu/cpu1/online"

static bool set_cpu1(const char *value)
{
	_cleanup_(close_fdp) int fd = open(CPU1_ONLINE, O_WRONLY | O_CLOEXEC);

	return fd >= 0 && write(fd, value, 1) == 1;
}

/* Repair the effects of the CPU's absence elsewhere on the machine: test/support/cpusets.sh. */
static int cpusets(const char *what)
{
	char command[100];

	snprintf(command, sizeof(command), "test/support/cpusets.sh %s /tmp/podprof-cpusets-%d",
		 what, (int)getpid());
	return system(command); // NOLINT(bugprone-command-processor,cert-env33-c)
}

static int setup_cpu1(void **state)
{
	return cpusets("save") ? -1 : setup(state);
}

static int teardown_cpu1(void **state)
{
	set_cpu1("1");
	return cpusets("restore") ? -1 : teardown(state);
}

static void pin_to_cpu1(pid_t pid)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(1, &set);
	assert_int_equal(sched_setaffinity(pid, sizeof(set), &set), 0);
}

static void sampled_on_cpu1(struct bench *b)
{
	start_child(b, BURN_USER);
	pin_to_cpu1(b->child);
	b->mine = 0;
	burn_for(b, NSEC_PER_SEC / 4);
	end_child(b);
	drain(b);
	assert_true(b->mine > 0);
}

static void test_hotplug(void **state)
{
	struct bench *b = *state;
	const struct oncpu_opts opts = usual(b);
	size_t n_cpus;

	/* no second CPU, or the CPU cannot go offline: nothing to test */
	if (!set_cpu1("1")) {
		print_message("%s cannot be written: nothing to follow\n", CPU1_ONLINE);
		return;
	}
	sample_with(b, &opts);
	n_cpus = oncpu_n_cpus(b->oc);
	sampled_on_cpu1(b);

	/* noticed while offline */
	assert_true(set_cpu1("0"));
	drain(b);
	assert_int_equal(oncpu_n_cpus(b->oc), n_cpus - 1);
	assert_true(set_cpu1("1"));
	drain(b);
	assert_int_equal(oncpu_n_cpus(b->oc), n_cpus);
	sampled_on_cpu1(b);

	/* offline and online between two ticks: only the stopped clock tells */
	assert_true(set_cpu1("0"));
	assert_true(set_cpu1("1"));
	drain(b);
	drain(b);
	assert_int_equal(oncpu_n_cpus(b->oc), n_cpus);
	sampled_on_cpu1(b);
	finish(b);
	assert_int_equal(b->all, delivered(b));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_nesting_and_time),
		TEST(test_kernel_stacks),
		TEST(test_kernel_stacks_off),
		TEST(test_deep),
		TEST(test_deep_room),
		TEST(test_conservation),
		TEST(test_full),
		TEST(test_interval),
		TEST(test_verifier_cost),
		TEST(test_urgent_dumps),
		TEST(test_waking_programs),
		TEST(test_usual_dumps),
		TEST(test_verifier_cost_of_names),
		TEST(test_cgroups),
		TEST(test_pid_namespace),
#ifdef __x86_64__
		TEST(test_32bit),
#endif
		TEST(test_capabilities),
		TEST(test_metrics),
		cmocka_unit_test_setup_teardown(test_hotplug, setup_cpu1, teardown_cpu1),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
