// SPDX-License-Identifier: Apache-2.0
/*
 * A pod that lacks hostPID, or mounts a part of the cgroups, starts all the same and sees next to
 * nothing. Both show in numbers:
 *
 *   - cgroup.procs gives 0 (version 1: nothing) for a process that our PID namespace does not have.
 * A node in a container (kind) has a PID namespace of its own, too, but with all processes of its
 *     containers in it. A pod without hostPID has its own processes there, and no other
 * container's.
 *   - Only the machine's own root of a cgroup tree lacks some files that all other directories have
 *     (version 2: cgroup.events), or has one that they lack (version 1: release_agent). What a
 *     container has mounted begins at its own directory.
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

#include "base/cleanup.h"
#include "base/loop.h"
#include "base/root.h"
#include "config/config.h"
#include "discovery/cgroupfs.h"
#include "doctor/facts.h"
#include "doctor/finding.h"

/* ---------------------------------------------------------------- looking */

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

/* Those of one directory. */
struct census {
	size_t n_processes;
	size_t n_outside;
	bool ours;
};

static int count_process(void *ctx, pid_t pid)
{
	struct census *census = ctx;

	census->n_processes += pid != 0;
	census->n_outside += pid == 0;
	census->ours |= pid == getpid();
	return 0;
}

/* Of one tree only, where there are two: version 1's has all containers. */
static void count_dir(struct cgroupfs *fs, struct cgroupdir *dir, struct node *ret)
{
	const enum hierarchy counted = ret->has[HIERARCHY_V1] ? HIERARCHY_V1 : HIERARCHY_V2;

	struct census census = {0};

	ret->n_dirs++;
	ret->n_unwatched += dir->unwatched;
	if (dir->key.hierarchy != counted || !dir->kind)
		return;
	(void)cgroupfs_procs(fs, dir, count_process, &census); /* it may have gone */
	if (census.ours)
		return;
	ret->n_processes += census.n_processes;
	ret->n_outside += census.n_outside;
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
	while (!r && (dir = cgroupfs_next(fs, dir)))
		count_dir(fs, dir, ret);
	return r;
}

static bool has_no_inotify(void)
{
	_cleanup_(close_fdp) int fd = inotify_init1(IN_CLOEXEC);

	return fd < 0;
}

int node_look(const struct config *config, const struct root *proc, struct node *ret)
{
	int r;

	*ret = (struct node){.no_inotify = has_no_inotify()};
	procview_look(proc, &ret->view);
	ret->cgroups = look_at_trees(config, proc, ret);
	if (ret->cgroups)
		return 0;
	r = count_dirs(config, proc, ret);
	return r == -ENOMEM ? r : 0;
}

/* ---------------------------------------------------------------- processes */

/* Who is not seen, by how much it matters. */
static void check_view(const struct facts *facts, struct findings *ret)
{
	struct procview_problem problems[PROCVIEW_PROBLEMS];
	const struct node *node = &facts->node;
	const size_t n = procview_problems(&node->view, problems);

	if (!n)
		findings_add(ret, "processes", FINDING_OK, "%s is the node's",
			     facts->config->proc_root);
	for (size_t i = 0; i < n; i++) {
		const bool hidden = i == 0 && node->view.others != PROCVIEW_SEEN;
		struct finding *finding =
			findings_add(ret, "processes", hidden ? FINDING_MISSING : FINDING_DEGRADED,
				     "%s", problems[i].what);

		finding_say(finding,
			    hidden ? "most programs have no profiles" : "what it says is left out",
			    *problems[i].remedy
				    ? problems[i].remedy
				    : "nothing, if the node is itself a container (kind, minikube "
				      "with docker); in a pod: hostPID: true");
	}
}

/* ---------------------------------------------------------------- cgroups */

static void check_outcome(const struct facts *facts, struct findings *ret)
{
	const int r = facts->node.cgroups;
	const char *path = facts->config->cgroupfs_root;
	struct finding *finding = findings_add(
		ret, "cgroups", FINDING_MISSING, "%s: %s", path ? path : "/sys/fs/cgroup",
		r == HIERARCHY_NO_SUCH_DIR   ? "no such directory"
		: r == HIERARCHY_NO_CGROUPFS ? "no cgroup file system is mounted there"
					     : strerror(-r));

	finding_say(finding, "the agent does not start",
		    "mount the host's /sys/fs/cgroup, and name that place with --cgroupfs-root");
}

/* What was asked for, and is no cgroup file system. */
static void check_copy(const struct facts *facts, struct findings *ret)
{
	finding_say(findings_add(ret, "cgroups", FINDING_MISSING, "%s is no cgroup file system",
				 facts->config->cgroupfs_root),
		    "no container is found",
		    "name the place of the host's /sys/fs/cgroup with --cgroupfs-root");
}

static void check_part(const struct facts *facts, const char *version, struct findings *ret)
{
	const struct node *node = &facts->node;
	struct finding *finding;

	if (node->view.nested) { /* both are of the container that the node is */
		findings_add(ret, "cgroups", FINDING_OK, "%s, of the container that this node is",
			     version);
		return;
	}
	finding = findings_add(ret, "cgroups", FINDING_MISSING,
			       "%s, of which %s shows one container's part", version,
			       facts->config->cgroupfs_root ? facts->config->cgroupfs_root
							    : "/sys/fs/cgroup");
	finding_say(finding, "containers outside it are not found",
		    "mount the host's /sys/fs/cgroup into the container, and name that place with "
		    "--cgroupfs-root");
}

/* Whether there are cgroups to look at. */
static bool check_cgroups(const struct facts *facts, struct findings *ret)
{
	const struct node *node = &facts->node;
	const bool v1 = node->has[HIERARCHY_V1], v2 = node->has[HIERARCHY_V2];
	char version[64] = "version 2";

	if (node->cgroups) {
		check_outcome(facts, ret);
		return false;
	}
	if (v1)
		snprintf(version, sizeof(version), "version 1 (%s)%s",
			 controller_name(node->controller), v2 ? " with 2 beside it" : "");
	if ((v1 && !node->real[HIERARCHY_V1]) || (v2 && !node->real[HIERARCHY_V2])) {
		check_copy(facts, ret);
		return false;
	}
	if (!node->top[v1 ? HIERARCHY_V1 : HIERARCHY_V2])
		check_part(facts, version, ret);
	else
		findings_add(ret, "cgroups", FINDING_OK, "%s, %zu directories", version,
			     node->n_dirs);
	return true;
}

/* Version 1 leaves those out that version 2 gives as 0: a container that has nobody. One is ours.
 */
static bool sees_none(const struct node *node)
{
	return node->view.ours && !node->n_processes &&
	       (node->n_outside || (node->view.nested && node->n_containers > 1));
}

static void check_containers(const struct facts *facts, struct findings *ret)
{
	const struct node *node = &facts->node;
	struct finding *finding;

	if (sees_none(node)) {
		finding = findings_add(ret, "containers", FINDING_MISSING,
				       "%zu, and %s has no process of any but our own",
				       node->n_containers, facts->config->proc_root);
		finding_say(finding, "no container has profiles",
			    "set hostPID: true (docker: --pid=host)");
	} else if (!node->n_containers && facts->in_cluster) {
		finding = findings_add(ret, "containers", FINDING_MISSING,
				       "none is found, though this is one");
		finding_say(finding, "no container has profiles",
			    "name the place of the host's /sys/fs/cgroup with --cgroupfs-root");
	} else {
		findings_add(ret, "containers", FINDING_OK, "%zu, with %zu other processes%s",
			     node->n_containers, node->n_processes + node->n_outside,
			     node->n_outside && node->n_processes ? ", not all of which we see"
								  : "");
	}
}

static void check_changes(const struct facts *facts, struct findings *ret)
{
	const struct node *node = &facts->node;
	struct finding *finding;

	if (!node->no_inotify && !node->n_unwatched) {
		findings_add(ret, "inotify", FINDING_OK, "all cgroups are watched");
		return;
	}
	finding = findings_add(ret, "inotify", FINDING_DEGRADED,
			       node->no_inotify ? "no instance is to be had"
						: "%zu of %zu cgroups are not watched",
			       node->n_unwatched, node->n_dirs);
	finding_say(finding, "containers that live for less than some seconds may be missed",
		    node->no_inotify ? "sysctl -w fs.inotify.max_user_instances=1024 on the node"
				     : "sysctl -w fs.inotify.max_user_watches=524288 on the node");
}

void node_check(const struct facts *facts, struct findings *ret)
{
	check_view(facts, ret);
	if (!check_cgroups(facts, ret))
		return;
	check_containers(facts, ret);
	check_changes(facts, ret);
}
