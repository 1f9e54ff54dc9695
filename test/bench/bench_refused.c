// SPDX-License-Identifier: Apache-2.0
/*
 * The cost of a filtered sample in the kernel (container not profiled), compared with a taken
 * sample, with and without filtered cgroups. By the kernel's own clock around the programs, the
 * lowest of some rounds, over all samples of the machine: a child for each CPU burns in a separate
 * cgroup, at a high priority; samples of other programs are included in both.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/nsec.h"
#include "base/root.h"
#include "profile/cgroup_sampling.h"
#include "profile/oncpu.h"
#include "shared/sample.h"
#include "support/burn.h"
#include "support/figure.h"

#define RATE	     997
#define ROUNDS	     8
#define ROUND_US     500000
#define CHILDREN_MAX 64
#define PRIORITY     (-15)

struct bench {
	struct root proc, sys;
	struct oncpu *oc;
	pid_t children[CHILDREN_MAX];
	size_t n;
};

/* A hierarchy, and the bench's directory inside. */
struct place {
	const char *name;
	const char *root;
	enum hierarchy hierarchy;
	enum settings_v1 v1;
	int fd;
	uint64_t id;
	char dir[32];
};

static void pass(void *ctx, const struct sample *s)
{
	(void)ctx;
	(void)s;
}

/* ---------------------------------------------------------------- children */

static int move_to(const struct place *p, pid_t pid)
{
	_cleanup_(close_fdp) int fd = -1;
	char path[64];

	snprintf(path, sizeof(path), "%s/cgroup.procs", p->dir);
	fd = openat(p->fd, path, O_WRONLY | O_CLOEXEC);
	return fd < 0 || dprintf(fd, "%d\n", pid) < 0 ? -errno : 0;
}

static void start_children(struct bench *b, const struct place *p)
{
	long n_cpus = sysconf(_SC_NPROCESSORS_ONLN);

	for (b->n = 0; b->n < CHILDREN_MAX && (long)b->n < n_cpus; b->n++) {
		pid_t pid = burn_start(BURN_USUAL);

		if (pid < 0 || move_to(p, pid))
			break;
		(void)setpriority(PRIO_PROCESS, (id_t)pid, PRIORITY);
		b->children[b->n] = pid;
	}
	for (size_t i = 0; i < b->n; i++)
		burn_go(b->children[i]);
}

static void end_children(struct bench *b)
{
	for (size_t i = 0; i < b->n; i++)
		burn_end(b->children[i]);
	b->n = 0;
}

/* ---------------------------------------------------------------- rounds */

/* The cost of one sample. */
static int measure(struct bench *b, const char *what)
{
	uint64_t best_ns = UINT64_MAX, runs = 0;
	struct bpfobj_cost before, after;

	for (int i = 0; i < ROUNDS; i++) {
		uint64_t n, ns;
		int r = bpfobj_cost(oncpu_program(b->oc), &before);

		if (r == 0)
			usleep(ROUND_US);
		if (r == 0)
			r = bpfobj_cost(oncpu_program(b->oc), &after);
		if (r == 0)
			r = oncpu_tick(b->oc, pass, NULL);
		if (r < 0)
			return r;
		n = after.runs - before.runs;
		ns = after.run_ns - before.run_ns;
		runs += n;
		if (n && ns / n < best_ns)
			best_ns = ns / n;
	}
	printf("  %-40s %6" PRIu64 " samples, %5" PRIu64 " ns each\n", what, runs, best_ns);
	figure((double)best_ns, "ns", "%s", what);
	return 0;
}

static int open_sampler(struct bench *b, const struct place *p, enum settings_scope scope)
{
	const struct oncpu_opts opts = {.rate_hz = RATE,
					.scope = scope,
					.kernel_stacks = true,
					.v1 = p->v1,
					.proc = &b->proc,
					.sys = &b->sys};
	struct bpfobj_why why = {""};
	int r = oncpu_new(&opts, &why, &b->oc);

	if (r < 0)
		fprintf(stderr, "bench_refused: %s\n", why.text);
	return r;
}

/* Filter the samples of the cgroup with this number. */
static int leave_out(struct bench *b, const struct place *p, uint64_t id)
{
	int r;

	cgroup_sampling_begin(oncpu_cgroup_sampling(b->oc));
	r = cgroup_sampling_set(oncpu_cgroup_sampling(b->oc), p->hierarchy, id, 0, 1);
	return r ? r : cgroup_sampling_end(oncpu_cgroup_sampling(b->oc));
}

static int measure_taken(struct bench *b, const struct place *p)
{
	int r = open_sampler(b, p, SETTINGS_SCOPE_ALL);

	if (r < 0)
		return r;
	start_children(b, p);
	r = measure(b, "taken, nobody is left out");
	if (r == 0)
		r = leave_out(b, p, p->id + 1);
	if (r == 0)
		r = measure(b, "taken, another container is left out");
	end_children(b);
	oncpu_free(b->oc);
	return r;
}

/* Cgroups missing from the table are filtered too. */
static int measure_refused(struct bench *b, const struct place *p)
{
	int r = open_sampler(b, p, SETTINGS_SCOPE_CGROUPS);

	if (r < 0)
		return r;
	r = leave_out(b, p, p->id);
	start_children(b, p);
	if (r == 0)
		r = measure(b, "left out");
	end_children(b);
	oncpu_free(b->oc);
	return r;
}

static int run(struct bench *b, struct place *p)
{
	struct stat st;
	int r;

	p->fd = open(p->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (p->fd < 0)
		return 0;
	snprintf(p->dir, sizeof(p->dir), "podprof-refused-%d", getpid());
	if (mkdirat(p->fd, p->dir, 0755) < 0 || fstatat(p->fd, p->dir, &st, 0) < 0)
		return -errno;
	p->id = st.st_ino;
	printf("by cgroups of %s\n", p->name);
	r = measure_taken(b, p);
	if (r == 0)
		r = measure_refused(b, p);
	unlinkat(p->fd, p->dir, AT_REMOVEDIR);
	close(p->fd);
	return r;
}

int main(void)
{
	static struct place places[] = {
		{"version 2", "/sys/fs/cgroup/unified", HIERARCHY_V2, SETTINGS_V1_NONE, -1, 0, ""},
		{"version 1", "/sys/fs/cgroup/memory", HIERARCHY_V1, SETTINGS_V1_MEMORY, -1, 0, ""},
	};
	/* The kernel counts while this descriptor is open. */
	_cleanup_(close_fdp) int stats = bpf_enable_stats(BPF_STATS_RUN_TIME);
	struct bench bench = {.n = 0};
	int r = 0;

	if (stats < 0)
		fprintf(stderr, "bench_refused: no statistics: %s\n", strerror(errno));
	if (root_open("/proc", &bench.proc) || root_open("/sys", &bench.sys))
		return 1;
	if (access("/sys/fs/cgroup/cgroup.procs", F_OK) == 0)
		places[0].root = "/sys/fs/cgroup";
	for (size_t i = 0; r == 0 && i < array_size(places); i++)
		r = run(&bench, &places[i]);
	if (r < 0)
		fprintf(stderr, "bench_refused: %s\n", strerror(-r));
	root_deinit(&bench.proc);
	root_deinit(&bench.sys);
	return r < 0;
}
