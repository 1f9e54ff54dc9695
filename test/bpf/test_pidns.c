// SPDX-License-Identifier: Apache-2.0
/*
 * The sampler in a pid namespace inside the machine's, as on a node that is a container, with other
 * processes in the same namespace, in an inner one, and outside. Then with the machine's own /proc
 * in there, and with a /proc that hides processes.
 */
#include "support/test.h"

#include <grp.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/loop.h"
#include "base/nsec.h"
#include "discovery/discovery.h"
#include "discovery/procview.h"
#include "procmap/memory.h"
#include "procmap/image.h"
#include "profile/oncpu.h"
#include "shared/sample.h"
#include "support/burn.h"
#include "support/metrics.h"
#include "support/pidns.h"
#include "support/sampling.h"
#include "support/tree.h"
#include "support/until.h"

#define RATE   997
#define ID     "3f0b7ad4a5a34f1c8a3a6f0f7f2c7e5d1b6f4c30bc8d69923d37ee698f5cabcd"
#define CPU_NS (NSEC_PER_SEC / 10)

/* Before the namespace is made. */
static struct {
	struct root proc; /* the machine's */
	struct hierarchy_set trees;
	char dir[160]; /* a container's cgroup */
	pid_t pid;     /* burns inside, by its pid in the machine's /proc */
	uint32_t secret;
} outside = {.secret = 0xfeedf00d};

struct bench {
	struct sampling on;
	struct discovery *discovery;
	pid_t beside, inside;
	uint64_t n_beside, n_inside, n_outside, n_unknown;
	uint64_t n_whole, n_named, n_owned; /* counts of these */
	uint64_t cpu_until;
	bool is_child;
};

static struct bench bench;

/* ---------------------------------------------------------------- samples */

static bool is_whole(const struct sample *s)
{
	return s->n_user > 2 && burn_in(burn_inner_range(), s->user[0]) &&
	       burn_in(burn_middle_range(), s->user[1]) && burn_in(burn_outer_range(), s->user[2]);
}

static bool is_owned(struct bench *b, const struct sample *s)
{
	const struct entity *entity =
		discovery_entity(b->discovery, s->cgroup_id, s->cgroup_v1_id, &s->pid, s->comm);

	return entity && strcmp(entity->id.container_id, ID) == 0;
}

static uint64_t *count_of(struct bench *b, const struct sample *s)
{
	if (s->pid.pid == (uint64_t)b->beside)
		return &b->n_beside;
	if (s->pid.pid == (uint64_t)b->inside)
		return &b->n_inside;
	return s->pid.pid == (uint64_t)outside.pid ? &b->n_outside : NULL;
}

static void take(void *ctx, const struct sample *s)
{
	struct cpu_stack stack = {.n = 0};
	struct bench *b = ctx;
	uint64_t *count = count_of(b, s);

	if (!count) {
		b->n_unknown += s->count;
		return;
	}
	*count += s->count;
	assert_int_equal(cpu_sampler_resolve(b->on.sampler, s, &stack), 0);
	cpu_sampler_settle(b->on.sampler, &stack);
	b->n_whole += is_whole(s) ? s->count : 0;
	b->n_named += stack.n > s->n_kernel && stack.frames[s->n_kernel].image->kind == IMAGE_FILE
			      ? s->count
			      : 0;
	b->n_owned += is_owned(b, s) ? s->count : 0;
	cpu_stack_deinit(&stack);
}

/* ---------------------------------------------------------------- the bench */

static void start(struct bench *b)
{
	const struct discovery_opts discovery = {
		.proc = &b->on.proc,
		.host_processes = true,
		.node_name = "n",
		.grace_ns = 60 * NSEC_PER_SEC,
		.loop = b->on.loop,
	};

	assert_int_equal(discovery_new(&discovery, &b->discovery), 0);
	sampling_start(&b->on, (struct cpu_sampler_opts){
				       .rate_hz = RATE,
				       .kernel_stacks = true,
				       .unwind = SETTINGS_UNWIND_FP,
				       .v1 = discovery_v1_controller(b->discovery),
				       .interval_ns = NSEC_PER_SEC / 10,
				       .fn = take,
				       .ctx = b,
			       });
}

static int setup(void **state)
{
	bench = (struct bench){0};
	*state = &bench;
	return sampling_open(&bench.on);
}

static int teardown(void **state)
{
	struct bench *b = *state;

	if (b->is_child)
		_exit(1); /* failed; must not end the burning processes */
	if (b->beside)
		burn_end(b->beside);
	if (b->inside)
		burn_end(b->inside);
	cpu_sampler_free(b->on.sampler);
	b->on.sampler = NULL;
	discovery_free(b->discovery);
	sampling_close(&b->on);
	return 0;
}

/* Move a process into the container's cgroup, by its pid here. */
static void enter(pid_t pid)
{
	char file[192], text[24];

	snprintf(file, sizeof(file), "%s/cgroup.procs", outside.dir);
	snprintf(text, sizeof(text), "%d\n", pid);
	for (int h = 0; h < HIERARCHY_MAX; h++)
		if (outside.trees.roots[h].fd >= 0)
			tree_write(outside.trees.roots[h].fd, file, text);
}

static uint64_t cpu_of(pid_t pid)
{
	clockid_t clock;

	assert_int_equal(clock_getcpuclockid(pid, &clock), 0);
	return nsec_read(clock);
}

static bool has_run(void *ctx)
{
	const struct bench *b = ctx;

	return cpu_of(b->beside) >= b->cpu_until && cpu_of(b->inside) >= b->cpu_until;
}

static void start_burning(struct bench *b)
{
	b->beside = burn_start(BURN_USER);
	b->inside = burn_start_pidns(BURN_USER);
	assert_true(b->beside > 0 && b->inside > 0);
	enter(b->inside);
}

static void run(struct bench *b)
{
	burn_go(b->beside);
	b->cpu_until = cpu_of(b->inside) + CPU_NS;
	loop_until(b->on.loop, has_run, b);
	cpu_sampler_finish(b->on.sampler);
	print_message("%ju beside, %ju inside, %ju outside; %ju whole, %ju named, %ju owned\n",
		      (uintmax_t)b->n_beside, (uintmax_t)b->n_inside, (uintmax_t)b->n_outside,
		      (uintmax_t)b->n_whole, (uintmax_t)b->n_named, (uintmax_t)b->n_owned);
}

/* After lost process events of this machine, older samples are not trusted: on a busy machine some
 * have no names. */
static void assert_named(const struct bench *b)
{
	assert_true(b->n_named * 10 >= (b->n_beside + b->n_inside) * 9);
}

static uint64_t stat_of(struct bench *b, enum sample_stat stat)
{
	uint64_t stats[SAMPLE_STAT_MAX];

	assert_int_equal(oncpu_stats(cpu_sampler_oncpu(b->on.sampler), stats, SAMPLE_STAT_MAX), 0);
	return stats[stat];
}

/* ---------------------------------------------------------------- tests */

static int count_container(void *ctx, const struct pid_id *pid, struct entity *entity)
{
	struct bench *b = ctx;

	if (strcmp(entity->id.container_id, ID) == 0) {
		assert_int_equal(pid->pid, b->inside);
		b->n_unknown++;
	}
	return 0;
}

/* Samples carry the pid in this /proc; processes without a pid here are only counted. */
static void test_nested(void **state)
{
	struct bench *b = *state;

	start_burning(b);
	start(b);
	run(b);
	assert_true(b->n_beside > 0 && b->n_inside > 0);
	assert_true(stat_of(b, SAMPLE_STAT_OUTSIDE) > 0);
	/* the C library's frame or a signal's is sometimes on top */
	assert_true(b->n_whole * 10 >= (b->n_beside + b->n_inside) * 9);
	assert_named(b);
	assert_int_equal(b->n_owned, b->n_inside);
	/* other, nearly idle processes of this namespace: this test and its parents */
	assert_int_equal(b->n_outside, 0);
}

/* The process outside is in the container, too, and in no list. */
static void test_lists(void **state)
{
	struct bench *b = *state;
	char text[PROCVIEW_TEXT_BYTES];
	struct procview view;

	start_burning(b);
	start(b);
	assert_true(discovery_container_runs(b->discovery, ID));
	assert_int_equal(discovery_for_each_process(b->discovery, count_container, b), 0);
	assert_int_equal(b->n_unknown, 1);
	procview_look(&b->on.proc, &view);
	assert_true(view.nested && view.ours);
	assert_int_equal(view.others, PROCVIEW_SEEN);
	assert_true(procview_tell(&view, text));
	assert_non_null(strstr(text, "inside the node's"));
}

/* @pid in @proc. */
static void assert_reads(const struct root *proc, pid_t pid)
{
	struct process_memory pm = {.fd = -1};
	struct pid_id id;
	uint32_t secret = 0;

	assert_int_equal(pid_read(proc, pid, &id), 0);
	assert_int_equal(process_memory_init(&pm, proc, &id), 0);
	assert_int_equal(
		memory_read(&pm.memory, (uintptr_t)&outside.secret, &secret, sizeof(secret)), 0);
	assert_int_equal(secret, 0xfeedf00d);
	assert_int_equal(memory_read(&pm.memory, 4096, &secret, sizeof(secret)), MEMORY_UNMAPPED);
	assert_int_equal(memory_read(&pm.memory, UINT64_MAX - 64, &secret, sizeof(secret)),
			 MEMORY_UNMAPPED);
	assert_int_equal(memory_check(&pm.memory), 0);
	process_memory_deinit(&pm);
}

/* By the pids of either /proc; the outside process's pid belongs to another process here, or to
 * none. */
static void test_memory(void **state)
{
	struct bench *b = *state;

	start_burning(b);
	outside.secret = 0; /* so a read of our own memory would show */
	assert_reads(&b->on.proc, b->beside);
	assert_reads(&b->on.proc, b->inside);
	assert_reads(&outside.proc, outside.pid);
	outside.secret = 0xfeedf00d;
}

/* Of the two in the container, by the numbers of the machine's /proc. */
static int check_listed(void *ctx, const struct pid_id *pid, struct entity *entity)
{
	_cleanup_(buf_deinit) struct buf text = BUF_INIT(PID_CGROUP_BYTES_MAX);
	struct bench *b = ctx;

	if (strcmp(entity->id.container_id, ID) != 0)
		return 0;
	assert_int_equal(pid_read_cgroup(&outside.proc, pid, &text), 0);
	assert_non_null(strstr(text.data, ID));
	b->n_unknown += pid->pid == (uint64_t)outside.pid ? 10 : 1;
	return 0;
}

/* The machine's /proc, as in a pod without hostPID: the pids are the machine's. */
static void test_outer_proc(void **state)
{
	char text[PROCVIEW_TEXT_BYTES];
	struct bench *b = *state;
	struct procview view;

	root_deinit(&b->on.proc);
	b->on.proc = outside.proc;
	procview_look(&b->on.proc, &view);
	assert_true(!view.nested && !view.ours);
	assert_true(procview_tell(&view, text));
	assert_non_null(strstr(text, "hostPID"));
	start_burning(b);
	start(b);
	assert_int_equal(discovery_for_each_process(b->discovery, check_listed, b), 0);
	assert_int_equal(b->n_unknown, 11);
	b->n_unknown = 0;
	run(b);
	b->on.proc = (struct root)ROOT_INIT;
	assert_int_equal(stat_of(b, SAMPLE_STAT_OUTSIDE), 0);
	assert_true(b->n_outside > 0 && b->n_owned >= b->n_outside);
	assert_true(b->n_named >= b->n_outside);
}

/* ---------------------------------------------------------------- hidepid */

struct hide_row {
	const char *options;
	bool trace; /* CAP_SYS_PTRACE */
	bool group; /* in the group exempt from hidepid, as far as the mount option applies */
	enum procview_others want;
};

static const struct hide_row hide_rows[] = {
	{"hidepid=1", false, false, PROCVIEW_CLOSED}, {"hidepid=2", false, false, PROCVIEW_HIDDEN},
	{"hidepid=4", false, false, PROCVIEW_HIDDEN}, {"hidepid=2", false, true, PROCVIEW_SEEN},
	{"hidepid=4", false, true, PROCVIEW_HIDDEN},  {"hidepid=4", true, false, PROCVIEW_SEEN},
};

#define NOBODY 65534

/* In a child: another user, with the rights for sampling. */
static void drop_rights(const struct hide_row *row)
{
	const uint64_t caps = 1ull << CAP_BPF | 1ull << CAP_PERFMON | 1ull << CAP_DAC_READ_SEARCH |
			      (row->trace ? 1ull << CAP_SYS_PTRACE : 0);
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {
		{.effective = (uint32_t)caps, .permitted = (uint32_t)caps},
		{.effective = (uint32_t)(caps >> 32), .permitted = (uint32_t)(caps >> 32)},
	};

	assert_int_equal(setgroups(0, NULL), 0);
	if (!row->group)
		assert_int_equal(setresgid(NOBODY, NOBODY, NOBODY), 0);
	assert_int_equal(prctl(PR_SET_KEEPCAPS, 1), 0);
	assert_int_equal(setresuid(NOBODY, NOBODY, NOBODY), 0);
	assert_int_equal(syscall(SYS_capset, &header, data), 0);
}

static uint64_t resolved(struct bench *b, const char *outcome)
{
	return metrics_get(cpu_sampler_collect, b->on.sampler, "podprof_resolved_pcs", outcome);
}

/* Samples have their pids and entities under any /proc. A hidden process older than the agent has
 * no names. (Since Linux 6.15 CAP_PERFMON is enough for visible mappings.) */
static void check_hidden(struct bench *b, const struct hide_row *row, const char *dir)
{
	char text[PROCVIEW_TEXT_BYTES];
	struct procview view;

	start_burning(b);
	burn_go(b->beside); /* later the test has no right to send signals */
	drop_rights(row);
	root_deinit(&b->on.proc);
	assert_int_equal(root_open(dir, &b->on.proc), 0);
	procview_look(&b->on.proc, &view);
	assert_int_equal(view.others, row->want);
	assert_true(view.ours);
	(void)procview_tell(&view, text);
	assert_int_equal(strstr(text, "hidepid") != NULL, row->want != PROCVIEW_SEEN);
	start(b);
	run(b);
	print_message("not mapped: %ju denied, %ju gone\n", (uintmax_t)resolved(b, "denied"),
		      (uintmax_t)resolved(b, "gone"));
	assert_true(b->n_beside > 0 && b->n_inside > 0);
	assert_int_equal(b->n_owned, b->n_inside);
	assert_true(b->n_whole * 10 >= (b->n_beside + b->n_inside) * 9);
	if (row->trace)
		assert_named(b);
	if (row->want != PROCVIEW_SEEN)
		assert_true(resolved(b, row->want == PROCVIEW_HIDDEN ? "gone" : "denied") > 0);
}

static void test_hidepid(void **state)
{
	for (size_t i = 0; i < array_size(hide_rows); i++) {
		char dir[] = "/tmp/test-proc-XXXXXX";
		pid_t pid;
		int status;

		row_begin(hide_rows[i].options);
		assert_non_null(mkdtemp(dir));
		assert_int_equal(mount("proc", dir, "proc", 0, hide_rows[i].options), 0);
		fflush(NULL);
		pid = fork();
		if (pid == 0) { /* the burning processes end with their parent */
			bench.is_child = true;
			check_hidden(*state, &hide_rows[i], dir);
			_exit(0);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(umount2(dir, MNT_DETACH), 0);
		assert_int_equal(rmdir(dir), 0);
		assert_int_equal(status, 0);
	}
}

/* ---------------------------------------------------------------- the outside */

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static int run_inside(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_nested),     TEST(test_lists),   TEST(test_memory),
		TEST(test_outer_proc), TEST(test_hidepid),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

static bool begin(void)
{
	if (root_open("/proc", &outside.proc) ||
	    hierarchy_find(NULL, &outside.proc, &outside.trees))
		return false;
	snprintf(outside.dir, sizeof(outside.dir), "podprof-pidns-%d/docker/" ID, getpid());
	for (int h = 0; h < HIERARCHY_MAX; h++)
		if (outside.trees.roots[h].fd >= 0)
			tree_mkdir(outside.trees.roots[h].fd, outside.dir);
	outside.pid = burn_start(BURN_USER);
	if (outside.pid < 0)
		return false;
	enter(outside.pid);
	burn_go(outside.pid);
	return true;
}

int main(void)
{
	int failed = begin() ? pidns_run(run_inside) : 1;

	burn_end(outside.pid);
	for (int h = 0; h < HIERARCHY_MAX; h++)
		if (outside.trees.roots[h].fd >= 0)
			tree_rmdir(outside.trees.roots[h].fd, outside.dir);
	hierarchy_deinit(&outside.trees);
	root_deinit(&outside.proc);
	return failed;
}
