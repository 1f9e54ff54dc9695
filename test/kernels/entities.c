// SPDX-License-Identifier: Apache-2.0
#include "entities.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/loop.h"
#include "base/nsec.h"
#include "base/root.h"
#include "cpu/sampler.h"
#include "discovery/discovery.h"
#include "discovery/hierarchy.h"
#include "profile/cgroup_events.h"
#include "profile/oncpu.h"
#include "support/burn.h"

#define RATE	    199
#define INTERVAL_NS (200 * NSEC_PER_MSEC)
/* Samples of each container; an emulated CPU needs some time. */
#define WANT	    10
#define PATIENCE_NS (90 * NSEC_PER_SEC)
/* Before the timer's first walk, so only inotify can be the source. */
#define EVENT_NS    (10 * NSEC_PER_SEC)

#define TOP	  "podprof-guest"
#define UID	  "2c48913c-b29f-11e7-9350-0209681477"
#define UID_SLICE "2c48913c_b29f_11e7_9350_0209681477"
#define ID	  "c0de0000000000000000000000000000000000000000000000000000000000"

static const struct {
	const char *path;
	const char *id;
	bool late; /* made when discovery has begun */
	bool dies;
	bool pod; /* a pod's own cgroup, known after the first process in it */
} containers[] = {
	{"kubepods/burstable/pod" UID "01/" ID "01", ID "01", false, false, false},
	{"kubepods.slice/kubepods-pod" UID_SLICE "02.slice/cri-containerd-" ID "02.scope", ID "02",
	 false, false, false},
	{"kubepods/besteffort/pod" UID "03/" ID "03", ID "03", true, true, false},
	{"kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" UID_SLICE
	 "04.slice/crio-" ID "04.scope/container",
	 ID "04", true, false, false},
	/* in a pod of their own and no container */
	{"kubepods/burstable/pod" UID "05", UID "05", false, false, true},
	{"kubepods.slice/kubepods-pod" UID_SLICE "06.slice", UID "06", true, false, true},
};

#define N array_size(containers)

struct check {
	struct hierarchy_set trees;
	struct loop *loop;
	struct discovery *discovery;
	struct cpu_sampler *sampler;
	pid_t child[N], was[N];
	uint64_t n[N]; /* samples */
	uint64_t until_ns;
	bool (*done)(struct check *c);
	struct entities_seen *seen;
};

/* ---- cgroups ---- */

static bool change_one(int fd, const char *path, bool make)
{
	char part[512];

	snprintf(part, sizeof(part), TOP "/%s/", path);
	if (make) {
		for (char *slash = strchr(part, '/'); slash; slash = strchr(slash + 1, '/')) {
			*slash = '\0';
			if (mkdirat(fd, part, 0755) && errno != EEXIST)
				return false;
			*slash = '/';
		}
		return true;
	}
	/* and its empty parents */
	for (char *slash; (slash = strrchr(part, '/'));) {
		*slash = '\0';
		if (unlinkat(fd, part, AT_REMOVEDIR))
			break;
	}
	return true;
}

static bool change(struct check *c, size_t i, bool make)
{
	for (enum hierarchy h = 0; h < HIERARCHY_MAX; h++)
		if (c->trees.roots[h].fd >= 0 &&
		    !change_one(c->trees.roots[h].fd, containers[i].path, make))
			return false;
	return true;
}

static bool enter(struct check *c, size_t i)
{
	char file[512], pid[16];
	ssize_t n = snprintf(pid, sizeof(pid), "%d", (int)c->child[i]);

	snprintf(file, sizeof(file), TOP "/%s/cgroup.procs", containers[i].path);
	for (enum hierarchy h = 0; h < HIERARCHY_MAX; h++) {
		_cleanup_(close_fdp) int fd = -1;

		if (c->trees.roots[h].fd < 0)
			continue;
		fd = openat(c->trees.roots[h].fd, file, O_WRONLY | O_CLOEXEC);
		if (fd < 0 || write(fd, pid, (size_t)n) != n)
			return false;
	}
	return true;
}

/* ---- samples ---- */

static bool is_of(const struct entity *entity, size_t i)
{
	if (containers[i].pod != (entity->kind == ENTITY_POD))
		return false;
	return strcmp(containers[i].pod ? entity->id.pod_uid : entity->id.container_id,
		      containers[i].id) == 0;
}

static bool in_burn(const struct sample *s)
{
	for (size_t i = 0; i < s->n_user; i++)
		if (burn_in(burn_inner_range(), s->user[i]))
			return true;
	return false;
}

static void take(void *ctx, const struct sample *s)
{
	const struct entity *entity;
	struct check *c = ctx;

	for (size_t i = 0; i < N; i++) {
		/* a child stops outside of the container before it burns */
		if ((uint64_t)c->was[i] != s->pid.pid || !in_burn(s))
			continue;
		entity = discovery_entity(c->discovery, s->cgroup_id, s->cgroup_v1_id, &s->pid,
					  s->comm);
		c->n[i] += s->count;
		if (entity && entity->kind == ENTITY_UNKNOWN)
			c->seen->unknown += s->count;
		else if (entity && is_of(entity, i))
			c->seen->right += s->count;
		else
			c->seen->wrong += s->count;
	}
}

/* ---- the loop ---- */

static void look(void *ctx)
{
	struct check *c = ctx;

	if (c->done(c) || nsec_monotonic() > c->until_ns)
		loop_stop(c->loop);
}

/* Runs the loop until @done, for so long at most. */
static bool wait_until(struct check *c, uint64_t ns, bool (*done)(struct check *c))
{
	struct loop_source *timer;

	c->done = done;
	c->until_ns = nsec_monotonic() + ns;
	if (loop_add_timer(c->loop, look, c, &timer) || loop_arm(timer, 0, 20 * NSEC_PER_MSEC) ||
	    loop_run(c->loop))
		return false;
	loop_remove(timer);
	return done(c);
}

static bool all_known(struct check *c)
{
	size_t n = 0;
	const struct entity *entity = NULL;

	for (size_t i = 0; i < N; i++)
		n += containers[i].pod;
	while ((entity = discovery_next_entity(c->discovery, entity)))
		for (size_t i = 0; i < N; i++)
			n += !containers[i].pod && is_of(entity, i);
	return n == N;
}

static bool all_sampled(struct check *c)
{
	for (size_t i = 0; i < N; i++)
		if (c->n[i] < WANT)
			return false;
	return true;
}

/* ---- the whole ---- */

static const char *start(struct check *c, const struct root *proc, const struct root *sys)
{
	const struct discovery_opts opts = {
		.proc = proc, .node_name = "", .grace_ns = 3600 * NSEC_PER_SEC, .loop = c->loop};
	struct cpu_sampler_opts sampling = {.loop = c->loop,
					    .proc = proc,
					    .sys = sys,
					    .rate_hz = RATE,
					    .unwind = SETTINGS_UNWIND_FP,
					    .interval_ns = INTERVAL_NS,
					    .fn = take,
					    .ctx = c};
	struct bpfobj_why why = {""};

	if (discovery_new(&opts, &c->discovery))
		return "no discovery";
	c->seen->v1 = sampling.v1 = discovery_v1_controller(c->discovery);
	c->seen->v2 = c->trees.roots[HIERARCHY_V2].fd >= 0;
	if (cpu_sampler_new(&sampling, &why, &c->sampler)) {
		puts(why.text);
		return "no sampler";
	}
	return NULL;
}

static const char *make(struct check *c, bool late)
{
	for (size_t i = 0; i < N; i++)
		if (containers[i].late == late && !change(c, i, true))
			return "a cgroup cannot be made";
	return NULL;
}

/* A directory removed before the agent's look still has its path. */
static const char *make_and_remove(struct check *c)
{
	struct cgroup_events *made = oncpu_cgroup_events(cpu_sampler_oncpu(c->sampler));
	struct hierarchy_child child;
	char path[256];

	for (enum hierarchy h = 0; h < HIERARCHY_MAX; h++) {
		const int fd = c->trees.roots[h].fd;

		if (fd < 0)
			continue;
		if (mkdirat(fd, TOP "/gone", 0755) || hierarchy_stat(fd, TOP "/gone", &child) ||
		    unlinkat(fd, TOP "/gone", AT_REMOVEDIR))
			return "a cgroup cannot be made and removed";
		if (!made || !cgroup_events_find(made, h, child.id, path, sizeof(path)) ||
		    strcmp(path, "/" TOP "/gone") != 0)
			return "the kernel did not tell of a cgroup that has gone";
	}
	return NULL;
}

static const char *burn(struct check *c)
{
	for (size_t i = 0; i < N; i++) {
		c->child[i] = c->was[i] = burn_start(BURN_USER);
		if (c->child[i] < 0 || !enter(c, i))
			return "a process cannot enter a cgroup";
		burn_go(c->child[i]);
	}
	return wait_until(c, PATIENCE_NS, all_sampled) ? NULL : "samples are missing";
}

/* Including samples still in the kernel. */
static void let_die(struct check *c)
{
	usleep(50000);
	for (size_t i = 0; i < N; i++) {
		if (!containers[i].dies)
			continue;
		burn_end(c->child[i]);
		c->child[i] = 0;
		change(c, i, false);
	}
}

static const char *run(struct check *c, const struct root *proc, const struct root *sys)
{
	const char *failed = make(c, false);

	failed = failed ? failed : start(c, proc, sys);
	failed = failed ? failed : make(c, true);
	if (failed)
		return failed;
	if (!wait_until(c, EVENT_NS, all_known))
		return "inotify did not tell of a container";
	failed = make_and_remove(c);
	failed = failed ? failed : burn(c);
	if (failed)
		return failed;
	let_die(c);
	cpu_sampler_finish(c->sampler);
	return NULL;
}

void entities_check(const struct root *proc, const struct root *sys, struct entities_seen *ret)
{
	struct check c = {.trees = {.roots = {ROOT_INIT, ROOT_INIT}}, .seen = ret};

	*ret = (struct entities_seen){.failed = NULL};
	if (hierarchy_find(NULL, proc, &c.trees) || loop_new(&c.loop))
		ret->failed = "no cgroups";
	else
		ret->failed = run(&c, proc, sys);
	for (size_t i = 0; i < N; i++)
		if (c.child[i] > 0)
			burn_end(c.child[i]);
	for (size_t i = 0; i < N; i++)
		change(&c, i, false);
	cpu_sampler_free(c.sampler);
	discovery_free(c.discovery);
	loop_free(c.loop);
	hierarchy_deinit(&c.trees);
}

bool entities_mount_v1(void)
{
	/* whichever this kernel was built with */
	static const char *const controllers[] = {"memory", "cpu", "pids", "freezer"};
	char path[64];

	if (umount("/sys/fs/cgroup") || mount("tmpfs", "/sys/fs/cgroup", "tmpfs", 0, NULL))
		return false;
	for (size_t i = 0; i < array_size(controllers); i++) {
		snprintf(path, sizeof(path), "/sys/fs/cgroup/%s", controllers[i]);
		mkdir(path, 0755);
		if (!mount("cgroup", path, "cgroup", 0, controllers[i]))
			return true;
		rmdir(path);
	}
	return false;
}
