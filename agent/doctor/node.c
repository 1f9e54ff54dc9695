// SPDX-License-Identifier: Apache-2.0
/*
 * A pod without hostPID, or with a partial mount of the cgroups, starts but sees very little. Both
 * are detectable:
 *
 *   - In a pod without hostPID, /proc has only processes of the pod's own cgroup. A node in a
 *     container (kind) also has a PID namespace of its own, but with all processes of the node.
 *   - The machine's root of a cgroup tree differs from all other directories: it lacks some files
 *     (version 2: cgroup.events), or has an additional file (version 1: release_agent). A
 *     container's mount begins at the container's own directory.
 */
#include "doctor/node.h"

#include <errno.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/loop.h"
#include "base/root.h"
#include "config/config.h"
#include "discovery/cgroupfs.h"
#include "discovery/pid.h"
#include "doctor/finding.h"
#include "doctor/probe_results.h"

/* ---------------------------------------------------------------- looking */

/* Strangers to count; one finding needs no more. */
#define STRANGERS_ENOUGH 10

DEFINE_CLEANUP(struct cgroupfs *, cgroupfs_freep, cgroupfs_free);
DEFINE_CLEANUP(struct loop *, loop_freep, loop_free);

static void look_at_tree(const struct hierarchy_set *set, enum hierarchy h, struct node *ret)
{
	const int fd = set->roots[h].fd;
	struct statfs fs;
	struct stat st;

	ret->has[h] = fd >= 0;
	if (fd < 0)
		return;
	ret->real[h] = fstatfs(fd, &fs) == 0 &&
		       fs.f_type == (h == HIERARCHY_V2 ? CGROUP2_SUPER_MAGIC : CGROUP_SUPER_MAGIC);
	ret->top[h] = h == HIERARCHY_V2 ? fstatat(fd, "cgroup.events", &st, 0) != 0
					: fstatat(fd, "release_agent", &st, 0) == 0;
}

static int look_at_trees(const struct config *config, const struct root *proc, struct node *ret)
{
	struct hierarchy_set set;
	int r = hierarchy_find(config->cgroupfs_root, proc, &set);

	if (r)
		return r;
	for (enum hierarchy h = 0; h < HIERARCHY_MAX; h++)
		look_at_tree(&set, h, ret);
	ret->controller = set.controller;
	hierarchy_deinit(&set);
	return 0;
}

/* The search for processes in other cgroups. */
struct census {
	const struct root *proc;
	struct buf own; /* /proc/self/cgroup */
	struct buf other;
	size_t n_strangers;
};

static int count_stranger(void *ctx, pid_t pid)
{
	struct census *c = ctx;
	char path[48];

	snprintf(path, sizeof(path), "%ju/cgroup", (uintmax_t)pid);
	buf_reset(&c->other);
	if (root_read(c->proc, path, &c->other) || !c->other.data)
		return 0; /* the process has ended */
	c->n_strangers +=
		c->other.len != c->own.len || memcmp(c->other.data, c->own.data, c->own.len) != 0;
	return c->n_strangers == STRANGERS_ENOUGH;
}

/* In a /proc without our own process, every process is a stranger. */
static size_t count_strangers(const struct root *proc)
{
	struct census c = {.proc = proc,
			   .own = BUF_INIT(PID_CGROUP_BYTES_MAX),
			   .other = BUF_INIT(PID_CGROUP_BYTES_MAX)};

	(void)root_read(proc, "self/cgroup", &c.own);
	(void)pid_for_each(proc, count_stranger, &c); /* the visible processes count */
	buf_deinit(&c.own);
	buf_deinit(&c.other);
	return c.n_strangers;
}

static int count_dirs(const struct config *config, const struct root *proc, struct node *ret)
{
	_cleanup_(loop_freep) struct loop *loop = NULL;
	_cleanup_(cgroupfs_freep) struct cgroupfs *fs = NULL;
	struct cgroupfs_opts opts = {.path = config->cgroupfs_root, .proc = proc};
	struct cgroupdir *dir = NULL;
	int r = loop_new(&loop);

	opts.loop = loop;
	if (!r)
		r = cgroupfs_new(&opts, &fs);
	if (!r)
		r = cgroupfs_walk(fs, CGROUPFS_WALK_START);
	while (!r && (dir = cgroupfs_next(fs, dir))) {
		ret->n_dirs++;
		ret->n_unwatched += dir->unwatched;
	}
	return r;
}

int node_look(const struct config *config, const struct root *proc, struct node *ret)
{
	_cleanup_(close_fdp) int inotify = inotify_init1(IN_CLOEXEC);
	int r;

	*ret = (struct node){.no_inotify = inotify < 0};
	procview_look(proc, &ret->view);
	ret->n_strangers = count_strangers(proc);
	ret->cgroups = look_at_trees(config, proc, ret);
	if (ret->cgroups)
		return 0;
	r = count_dirs(config, proc, ret);
	return r == -ENOMEM ? r : 0;
}

/* ---------------------------------------------------------------- processes */

/* Invisible processes, by severity. */
static void check_view(const struct probe_results *results, struct findings *ret)
{
	struct procview_problem problems[PROCVIEW_PROBLEMS];
	const struct node *node = &results->node;
	const size_t n = procview_problems(&node->view, problems);

	if (node->view.absent) {
		finding_say(findings_add(ret, "processes", FINDING_MISSING, "%s is not a procfs",
					 results->config->proc_root),
			    "the agent does not start", "set --proc-root to the node's procfs");
		return;
	}
	if (node->view.nested && !node->n_strangers) {
		finding_say(findings_add(ret, "processes", FINDING_MISSING,
					 "%s has only the processes of podprof's own container",
					 results->config->proc_root),
			    "nothing else is profiled", "hostPID: true (docker: --pid=host)");
		return;
	}
	if (!n)
		findings_add(ret, "processes", FINDING_OK, "%s is the node's",
			     results->config->proc_root);
	for (size_t i = 0; i < n; i++) {
		struct finding *finding = findings_add(ret, "processes",
						       i == 0 && node->view.others != PROCVIEW_SEEN
							       ? FINDING_MISSING
							       : FINDING_DEGRADED,
						       "%s", problems[i].what);

		finding_say(finding, problems[i].means,
			    *problems[i].remedy
				    ? problems[i].remedy
				    : "nothing, if the node is itself a container (kind, minikube "
				      "with docker); in a pod: hostPID: true");
	}
}

/* ---------------------------------------------------------------- cgroups */

static void check_part(const struct probe_results *results, const char *version,
		       struct findings *ret)
{
	const struct node *node = &results->node;
	struct finding *finding;

	if (node->view.nested) { /* both belong to the container of the node */
		findings_add(ret, "cgroups", FINDING_OK, "%s, those of podprof's own container",
			     version);
		return;
	}
	finding = findings_add(
		ret, "cgroups", FINDING_MISSING, "%s; %s shows one container's part only", version,
		results->config->cgroupfs_root ? results->config->cgroupfs_root : "/sys/fs/cgroup");
	finding_say(
		finding, "containers outside it are not found",
		"mount the host's /sys/fs/cgroup into the container, and set --cgroupfs-root to "
		"the mount point");
}

/* Whether any usable cgroup tree exists. */
static bool check_cgroups(const struct probe_results *results, struct findings *ret)
{
	const struct node *node = &results->node;
	const bool v1 = node->has[HIERARCHY_V1], v2 = node->has[HIERARCHY_V2];
	char version[64] = "version 2";

	if (node->cgroups) {
		const char *path = results->config->cgroupfs_root;
		struct finding *finding = findings_add(ret, "cgroups", FINDING_MISSING, "%s: %s",
						       path ? path : "/sys/fs/cgroup",
						       hierarchy_why(results->node.cgroups));

		finding_say(finding, "the agent does not start",
			    "mount the host's /sys/fs/cgroup, and name that place with "
			    "--cgroupfs-root");
		return false;
	}
	if (v1)
		snprintf(version, sizeof(version), "version 1 (%s)%s",
			 controller_name(node->controller), v2 ? " and version 2" : "");
	if ((v1 && !node->real[HIERARCHY_V1]) || (v2 && !node->real[HIERARCHY_V2])) {
		/* A configured directory outside of any cgroup file system. */
		finding_say(findings_add(ret, "cgroups", FINDING_MISSING,
					 "%s is not a cgroup file system",
					 results->config->cgroupfs_root),
			    "the agent does not start",
			    "set --cgroupfs-root to the mount point of the host's /sys/fs/cgroup");
		return false;
	}
	if (!node->top[v1 ? HIERARCHY_V1 : HIERARCHY_V2])
		check_part(results, version, ret);
	else
		findings_add(ret, "cgroups", FINDING_OK, "%s, %zu directories", version,
			     node->n_dirs);
	return true;
}

static void check_containers(const struct probe_results *results, struct findings *ret)
{
	const struct node *node = &results->node;
	struct finding *finding;

	if (!node->n_containers && results->in_cluster) {
		finding = findings_add(ret, "containers", FINDING_MISSING,
				       "none found, although podprof itself runs in a container");
		finding_say(finding, "no container has profiles",
			    "set --cgroupfs-root to the mount point of the host's /sys/fs/cgroup");
	} else {
		findings_add(ret, "containers", FINDING_OK, "%zu", node->n_containers);
	}
}

static void check_changes(const struct probe_results *results, struct findings *ret)
{
	const struct node *node = &results->node;
	struct finding *finding;

	if (!node->no_inotify && !node->n_unwatched) {
		findings_add(ret, "inotify", FINDING_OK, "watches all cgroups");
		return;
	}
	finding = findings_add(ret, "inotify", FINDING_DEGRADED,
			       node->no_inotify ? "no instance left"
						: "%zu of %zu cgroups are not watched",
			       node->n_unwatched, node->n_dirs);
	finding_say(finding, "containers that live for less than some seconds may be missed",
		    node->no_inotify ? "sysctl -w fs.inotify.max_user_instances=1024 on the node"
				     : "sysctl -w fs.inotify.max_user_watches=524288 on the node");
}

void node_check(const struct probe_results *results, struct findings *ret)
{
	check_view(results, ret);
	if (!check_cgroups(results, ret))
		return;
	check_containers(results, ret);
	check_changes(results, ret);
}
