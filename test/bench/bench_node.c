// SPDX-License-Identifier: Apache-2.0
/*
 * The cost of identifying entities on a full node: 500 containers with 10,000 real, sleeping
 * processes in real cgroups (run as root). First the permanent work of the agent: the slow walk,
 * and the list of processes at the end of each window. For comparison, the way without cgroup ids:
 * reading /proc/PID/cgroup of all processes. Then starts and ends of containers, 1,000 a minute.
 * CPU times are the lowest of several.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <malloc.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/loop.h"
#include "base/nsec.h"
#include "base/root.h"
#include "discovery/cgroup.h"
#include "discovery/cgroupfs.h"
#include "discovery/discovery.h"
#include "support/figure.h"

#define TOP	   "podprof-bench"
#define CONTAINERS 500u
#define PER_POD	   3u
#define PROCESSES  20u /* of a container */
#define ROUNDS	   10
/* The agent's intervals. */
#define WALK_S	   30
#define WINDOW_S   60
#define NAIVE_S	   10
#define STACK	   16384
/* Starts of containers: 1,000 a minute, each living for some seconds. */
#define START_NS   (60 * NSEC_PER_MSEC)
#define STARTS	   400u
#define LIVE	   40u

struct node {
	struct root proc;
	struct hierarchy_set trees;
	char *stacks;
	pid_t *pids; /* shared with the processes, each of which stores its own pid */
};

static uint64_t cpu_ns(void)
{
	return nsec_read(CLOCK_PROCESS_CPUTIME_ID);
}

/* ---- cgroups ---- */

/* The pod's directory, and with @container the container's; numbers from CONTAINERS on are
 * short-lived. */
static void cgroup_path(char path[256], unsigned int i, bool container)
{
	size_t n = (size_t)snprintf(path, 256, TOP "/kubepods/pod2c48913c-b29f-11e7-9350-%012u",
				    i / PER_POD);

	if (container)
		snprintf(path + n, 256 - n, "/%064u", i);
}

static int make(const struct node *node, unsigned int i)
{
	char path[256];

	for (enum hierarchy h = 0; h < HIERARCHY_MAX; h++) {
		const int fd = node->trees.roots[h].fd;

		if (fd < 0)
			continue;
		cgroup_path(path, i, false);
		if ((mkdirat(fd, TOP, 0755) && errno != EEXIST) ||
		    (mkdirat(fd, TOP "/kubepods", 0755) && errno != EEXIST) ||
		    (mkdirat(fd, path, 0755) && errno != EEXIST))
			return -errno;
		cgroup_path(path, i, true);
		if (mkdirat(fd, path, 0755))
			return -errno;
	}
	return 0;
}

static void unmake(const struct node *node, unsigned int i)
{
	char path[256];

	for (enum hierarchy h = 0; h < HIERARCHY_MAX; h++) {
		const int fd = node->trees.roots[h].fd;

		if (fd < 0)
			continue;
		cgroup_path(path, i, true);
		(void)unlinkat(fd, path, AT_REMOVEDIR);
		cgroup_path(path, i, false); /* with the last container */
		(void)unlinkat(fd, path, AT_REMOVEDIR);
		(void)unlinkat(fd, TOP "/kubepods", AT_REMOVEDIR);
		(void)unlinkat(fd, TOP, AT_REMOVEDIR);
	}
}

static bool enter(const struct node *node, unsigned int i)
{
	char path[256];

	cgroup_path(path, i, true);
	strcat(path, "/cgroup.procs");
	for (enum hierarchy h = 0; h < HIERARCHY_MAX; h++) {
		int fd = node->trees.roots[h].fd < 0
				 ? -1
				 : openat(node->trees.roots[h].fd, path, O_WRONLY | O_CLOEXEC);
		bool done = fd >= 0 && write(fd, "0", 1) == 1;

		if (fd >= 0)
			close(fd);
		if (node->trees.roots[h].fd >= 0 && !done)
			return false;
	}
	return true;
}

/* ---- processes ---- */

/* All processes share the memory of the bench, so 10,000 are cheap, and make only system calls. */
struct start {
	const struct node *node;
	unsigned int container;
};

static int sleep_for_ever(void *ctx)
{
	while (syscall(SYS_ppoll, NULL, 0, NULL, NULL))
		;
	return 0;
}

/* @flags: CLONE_PARENT for other callers than the bench: all processes are the bench's children. */
static pid_t start(const struct node *node, unsigned int i, int flags, int (*fn)(void *), void *ctx)
{
	return clone(fn, node->stacks + (size_t)(i + 1) * STACK,
		     CLONE_VM | CLONE_FILES | flags | SIGCHLD, ctx);
}

/* The first process of a container: enters the cgroup and makes the others there. */
static int be_first(void *ctx)
{
	const struct start *s = ctx;
	const unsigned int at = s->container * PROCESSES;

	if (!enter(s->node, s->container))
		syscall(SYS_exit, 1);
	for (unsigned int i = 1; i < PROCESSES; i++)
		s->node->pids[at + i] = start(s->node, at + i, CLONE_PARENT, sleep_for_ever, NULL);
	s->node->pids[at] = (pid_t)syscall(SYS_getpid);
	return sleep_for_ever(NULL);
}

static int populate(struct node *node)
{
	static struct start starts[CONTAINERS];

	for (unsigned int i = 0; i < CONTAINERS; i++) {
		int r = make(node, i);
		const volatile pid_t *first = &node->pids[i * PROCESSES];

		if (r)
			return r;
		starts[i] = (struct start){node, i};
		if (start(node, i * PROCESSES, 0, be_first, &starts[i]) < 0)
			return -errno;
		for (int wait = 0; !*first && wait < 10000; wait++)
			usleep(500);
		if (!*first)
			return -EIO;
	}
	return 0;
}

static void depopulate(struct node *node)
{
	for (unsigned int i = 0; i < CONTAINERS * PROCESSES; i++)
		if (node->pids[i] > 0)
			kill(node->pids[i], SIGKILL);
	while (waitpid(-1, NULL, 0) > 0)
		;
	for (unsigned int i = 0; i < CONTAINERS + STARTS; i++)
		unmake(node, i);
}

/* ---- measurements ---- */

static int count(void *ctx, const struct pid_id *pid, struct entity *entity)
{
	unsigned int *n = ctx;

	(*n)++;
	return 0;
}

static uint64_t lowest(uint64_t a, uint64_t b)
{
	return a && a < b ? a : b;
}

static void say(const char *what, uint64_t ns, unsigned int every_s, const char *more)
{
	printf("%-46s %8.2f ms, every %2u s: %.3f %% of a CPU%s\n", what, (double)ns / 1e6, every_s,
	       (double)ns / 1e7 / every_s, more);
	figure((double)ns / 1e6, "ms", "%s", what);
}

/* Without cgroup ids in samples: all of /proc must be read for the containers of processes. */
static uint64_t naive(const struct root *proc, unsigned int *ret_n);

static int naive_pid(void *ctx, pid_t pid)
{
	_cleanup_(buf_deinit) struct buf b = BUF_INIT(PID_CGROUP_BYTES_MAX);
	struct {
		const struct root *proc;
		unsigned int n;
	} *scan = ctx;
	struct cgroup_id id;
	char path[32];

	snprintf(path, sizeof(path), "%d/cgroup", (int)pid);
	if (root_read(scan->proc, path, &b) || !b.data)
		return 0;
	cgroup_parse_proc(strview_of_bytes(b.data, b.len), &id);
	scan->n += id.kind == CGROUP_KIND_CONTAINER;
	return 0;
}

static uint64_t naive(const struct root *proc, unsigned int *ret_n)
{
	struct {
		const struct root *proc;
		unsigned int n;
	} scan = {proc, 0};
	const uint64_t start = cpu_ns();

	(void)pid_for_each(proc, naive_pid, &scan);
	*ret_n = scan.n;
	return cpu_ns() - start;
}

static void steady(struct node *node, struct cgroupfs *fs, struct discovery *d)
{
	uint64_t walk = 0, list = 0, scan = 0, at;
	unsigned int n, n_scan;
	char more[64];

	for (int i = 0; i < ROUNDS; i++) {
		at = cpu_ns();
		(void)cgroupfs_walk(fs, CGROUPFS_WALK_TIMER);
		walk = lowest(walk, cpu_ns() - at);
		n = 0;
		at = cpu_ns();
		(void)discovery_for_each_process(d, count, &n);
		list = lowest(list, cpu_ns() - at);
		scan = lowest(scan, naive(&node->proc, &n_scan));
	}
	say("walk over all cgroups", walk, WALK_S, "");
	snprintf(more, sizeof(more), " (%u processes)", n);
	say("list of all processes in containers", list, WINDOW_S, more);
	say("both", walk * (WINDOW_S / WALK_S) + list, WINDOW_S, "");
	snprintf(more, sizeof(more), " (%u processes)", n_scan);
	say("scan of all /proc/PID/cgroup, as others do", scan, NAIVE_S, more);
}

/* ---- starting and ending containers ---- */

struct starting {
	struct node *node;
	struct discovery *discovery;
	struct loop *loop;
	unsigned int n;
	uint64_t made_ns[STARTS];
	uint64_t cpu_ns; /* the bench's own, for making the containers */
};

static void start_one(void *ctx)
{
	struct starting *s = ctx;
	const uint64_t at = cpu_ns();

	if (s->n < STARTS && !make(s->node, CONTAINERS + s->n))
		s->made_ns[s->n] = nsec_monotonic();
	if (s->n >= LIVE)
		unmake(s->node, CONTAINERS + s->n - LIVE);
	if (++s->n == STARTS + LIVE)
		loop_stop(s->loop);
	s->cpu_ns += cpu_ns() - at;
}

static void report_starts(const struct starting *s, uint64_t wall_ns, uint64_t used_ns)
{
	const struct entity *entity = NULL;
	uint64_t late_ns = 0, all_ns = 0;
	unsigned int seen = 0, made = 0;

	while ((entity = discovery_next_entity(s->discovery, entity))) {
		const uint64_t i = strtoull(entity->id.container_id, NULL, 10);
		uint64_t ns;

		/* ids of other containers contain letters */
		if (strspn(entity->id.container_id, "0123456789") != 64 || i < CONTAINERS ||
		    i >= CONTAINERS + STARTS || !s->made_ns[i - CONTAINERS])
			continue;
		ns = entity->first_seen_ns - s->made_ns[i - CONTAINERS];
		seen++;
		all_ns += ns;
		late_ns = ns > late_ns ? ns : late_ns;
	}
	for (unsigned int i = 0; i < STARTS; i++)
		made += s->made_ns[i] != 0;
	printf("%u containers started in %.1f s, as many ended: %u seen, after %.0f ms in the "
	       "mean, "
	       "%.0f ms at most;\n%.3f %% of a CPU for following them, walks included\n",
	       made, (double)wall_ns / 1e9, seen, seen ? (double)all_ns / seen / 1e6 : 0,
	       (double)late_ns / 1e6, 100.0 * (double)used_ns / (double)wall_ns);
}

static void starts(struct node *node, struct discovery *d, struct loop *loop)
{
	struct starting s = {.node = node, .discovery = d, .loop = loop};
	uint64_t wall = nsec_monotonic(), cpu = cpu_ns();
	struct loop_source *timer;

	if (loop_add_timer(loop, start_one, &s, &timer) || loop_arm(timer, START_NS, START_NS))
		return;
	(void)loop_run(loop);
	report_starts(&s, nsec_monotonic() - wall, cpu_ns() - cpu - s.cpu_ns);
	loop_remove(timer);
}

/* @path: NULL for all trees of this node. */
static int measure(struct node *node, const char *path)
{
	struct discovery_opts opts = {.proc = &node->proc,
				      .cgroupfs_root = path,
				      .node_name = "n",
				      .grace_ns = 2 * WINDOW_S * NSEC_PER_SEC};
	struct cgroupfs_opts fs_opts = {
		.path = path, .proc = &node->proc, .grace_ns = NSEC_PER_SEC};
	struct discovery *d = NULL;
	struct cgroupfs *fs = NULL;
	unsigned int n = 0;
	size_t before;
	int r;

	r = loop_new(&opts.loop);
	before = mallinfo2().uordblks;
	if (!r)
		r = discovery_new(&opts, &d);
	if (!r)
		r = discovery_for_each_process(d, count, &n);
	printf("memory of all tables                           %8.2f MB\n",
	       (double)(mallinfo2().uordblks - before) / 1e6);
	if (!r)
		r = cgroupfs_new(&fs_opts, &fs);
	if (!r)
		steady(node, fs, d);
	if (!r && !path)
		starts(node, d, opts.loop);
	cgroupfs_free(fs);
	discovery_free(d);
	loop_free(opts.loop);
	return r;
}

static int run(struct node *node)
{
	const int v2 = node->trees.roots[HIERARCHY_V2].fd, v1 = node->trees.roots[HIERARCHY_V1].fd;
	char path[32];
	int r = 0;

	if (v2 >= 0 && v1 >= 0) {
		puts("version 2 alone:");
		snprintf(path, sizeof(path), "/proc/self/fd/%d/.", v2);
		r = measure(node, path);
		printf("with %s of version 1:\n", controller_name(node->trees.controller));
	}
	return r ? r : measure(node, NULL);
}

int main(void)
{
	const size_t all = (size_t)CONTAINERS * PROCESSES;
	struct node node = {.proc = ROOT_INIT, .trees = {.roots = {ROOT_INIT, ROOT_INIT}}};
	int r;

	if (root_open("/proc", &node.proc) || hierarchy_find(NULL, &node.proc, &node.trees)) {
		fprintf(stderr, "bench_node: no cgroups here\n");
		return 1;
	}
	node.stacks =
		mmap(NULL, all * STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	node.pids = calloc(all, sizeof(*node.pids));
	if (node.stacks == MAP_FAILED || !node.pids)
		return 1;
	r = populate(&node);
	if (!r)
		r = run(&node);
	depopulate(&node);
	if (r)
		fprintf(stderr, "bench_node: %s\n", strerror(-r));
	free(node.pids);
	munmap(node.stacks, all * STACK);
	hierarchy_deinit(&node.trees);
	root_deinit(&node.proc);
	return r != 0;
}
