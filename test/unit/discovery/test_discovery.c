// SPDX-License-Identifier: Apache-2.0
/*
 * Real processes in real cgroups with the paths of containers, in every tree this node has. A false
 * /proc is used only where a process must look as none can be made to.
 */
#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/buf.h"
#include "base/root.h"
#include "discovery/cgroupdir.h"
#include "discovery/discovery.h"
#include "discovery/process_list.h"
#include "support/allocfail.h"
#include "support/cgroups.h"
#include "support/metrics.h"
#include "support/tree.h"

#define POD  "2c48913c-b29f-11e7-9350-020968147796"
#define LONG UINT64_C(3600000000000)

static struct root proc = ROOT_INIT;
static struct cgroups cgroups;
static char id1[65], id2[65]; /* containers */

static void child_start(struct pid_id *ret)
{
	pid_t child = fork();

	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pause();
		_exit(0);
	}
	assert_true(child > 0);
	assert_int_equal(pid_read(&proc, child, ret), 0);
}

static void child_end(const struct pid_id *pid)
{
	assert_int_equal(kill((pid_t)pid->pid, SIGKILL), 0);
	assert_int_equal(waitpid((pid_t)pid->pid, NULL, 0), (pid_t)pid->pid);
}

static struct discovery *start(const struct root *proc_root, bool host_processes)
{
	struct discovery_opts opts = {
		.proc = proc_root,
		.host_processes = host_processes,
		.node_name = "node-1",
		.grace_ns = LONG,
	};
	struct discovery *d;

	assert_int_equal(discovery_new(&opts, &d), 0);
	return d;
}

static struct entity *ask(struct discovery *d, const struct cgroup *cgroup,
			  const struct pid_id *pid)
{
	return discovery_entity(d, cgroup->id[HIERARCHY_V2], cgroup->id[HIERARCHY_V1], pid, "comm");
}

static uint64_t lookups(struct discovery *d, const char *outcome)
{
	return metrics_get(discovery_collect, d, "podprof_entity_lookups", outcome);
}

static void assert_label(const struct entity *entity, const char *name, const char *value)
{
	assert_non_null(entity);
	assert_non_null(labels_get(&entity->labels, name));
	assert_string_equal(labels_get(&entity->labels, name), value);
}

static void test_container(void **state)
{
	struct pid_id nobody = {.pid = INT32_MAX, .start_ticks = 1};
	struct cgroup cgroup;
	struct discovery *d;
	struct entity *entity;

	(void)state;
	cgroups_make(&cgroups, &cgroup, "kubepods/besteffort/pod" POD "/%s/below", id1);
	d = start(&proc, false);
	/* the id is enough; there is no such process */
	entity = ask(d, &cgroup, &nobody);
	assert_label(entity, "container", id1);
	assert_label(entity, "pod_uid", POD);
	assert_label(entity, "node", "node-1");
	assert_true(entity_alive(entity));
	assert_int_equal(lookups(d, "table"), 1);
	/* each id alone is enough */
	for (enum hierarchy h = 0; h < HIERARCHY_MAX; h++) {
		struct cgroup one = {0};

		one.id[h] = cgroup.id[h];
		if (cgroup.id[h])
			assert_ptr_equal(ask(d, &one, &nobody), entity);
	}
	/* the machine may have others */
	assert_true(metrics_get(discovery_collect, d, "podprof_entities", "container,alive") >= 1);
	discovery_free(d);
	cgroups_remove(&cgroups, &cgroup);
}

static uint64_t owner_of(struct discovery *d, const struct cgroup *cgroup)
{
	return discovery_owner(d, cgroup->id[HIERARCHY_V2], cgroup->id[HIERARCHY_V1]);
}

static bool is_id_of(uint64_t id, const struct cgroup *cgroup)
{
	return id && (id == cgroup->id[HIERARCHY_V2] || id == cgroup->id[HIERARCHY_V1]);
}

/* Cgroups inside a container, or inside a unit, bring no other owner; other cgroups are their own.
 */
static void test_owner(void **state)
{
	static const struct {
		const char *format; /* with a container's id */
		int like;	    /* the row with the owner */
	} rows[] = {
		{"kubepods/pod" POD "/%s", 0},
		{"kubepods/pod" POD "/%s/1", 0},
		{"kubepods/pod" POD "/%s/2", 0},
		{"kubepods/pod" POD "/%s/2/deep", 0},
		{"kubepods/pod" POD, 4},
		{"a.slice", 5},
		{"a.slice/b.service", 6},
		{"a.slice/b.service/1", 6},
		{"a.slice/b.service/1/c.service", 6},
		{"a.slice/d.scope", 9},
	};
	struct cgroup cgroups_of[array_size(rows)];
	struct discovery *d;

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++)
		cgroups_make(&cgroups, &cgroups_of[i], rows[i].format, id1);
	d = start(&proc, false);
	for (size_t i = 0; i < array_size(rows); i++) {
		print_message("row: %s\n", rows[i].format);
		assert_true(is_id_of(owner_of(d, &cgroups_of[i]), &cgroups_of[rows[i].like]));
	}
	assert_int_equal(discovery_owner(d, 12345678901, 0), 12345678901);
	/* all containers are in one directory of version 1, and this one is new */
	for (size_t i = 4; i < array_size(rows); i++)
		assert_int_equal(discovery_owner(d, 12345678901, cgroups_of[i].id[HIERARCHY_V1]),
				 12345678901);
	assert_true(is_id_of(discovery_owner(d, 12345678901, cgroups_of[1].id[HIERARCHY_V1]),
			     &cgroups_of[0]) ||
		    !cgroups_of[1].id[HIERARCHY_V1]);
	assert_int_equal(discovery_owner(NULL, 1, 2), 2);
	discovery_free(d);
	for (size_t i = array_size(rows); i-- > 0;)
		(void)cgroups_try_remove(&cgroups, &cgroups_of[i]);
}

/* A process of a pod outside of its containers (gVisor) belongs to the pod, once seen. */
static void test_pod(void **state)
{
	struct pid_id nobody = {.pid = INT32_MAX, .start_ticks = 1};
	struct cgroup pod, container;
	struct discovery *d;
	struct entity *entity;

	(void)state;
	cgroups_make(&cgroups, &pod, "kubepods/besteffort/pod" POD);
	cgroups_make(&cgroups, &container, "kubepods/besteffort/pod" POD "/%s", id1);
	d = start(&proc, false);
	assert_int_equal(metrics_get(discovery_collect, d, "podprof_entities", "pod,alive"), 0);
	entity = ask(d, &pod, &nobody);
	assert_non_null(entity);
	assert_int_equal(entity->kind, ENTITY_POD);
	assert_label(entity, "pod_uid", POD);
	assert_true(entity_alive(entity));
	assert_int_equal(lookups(d, "table"), 1);
	assert_label(ask(d, &container, &nobody), "container", id1);
	/* if a task is in both, in one tree each, the container is right */
	for (enum hierarchy h = 0; h < HIERARCHY_MAX; h++) {
		struct cgroup mixed = pod;

		mixed.id[h] = container.id[h];
		if (pod.id[h])
			assert_label(ask(d, &mixed, &nobody), "container", id1);
	}
	cgroups_remove(&cgroups, &container); /* and its parents */
	while (entity_alive(entity)) {
		struct cgroup odd = {.id = {1u << 30, 1u << 30}};

		(void)ask(d, &odd, &nobody);
		usleep(100000);
	}
	assert_ptr_equal(ask(d, &pod, &nobody), entity);
	discovery_free(d);
}

/* A container runs while the container or an inner one has a process; the directories stay. */
static void test_runs(void **state)
{
	struct cgroup outer, inner;
	struct discovery *d;
	struct pid_id child;

	(void)state;
	cgroups_make(&cgroups, &outer, "kubepods/besteffort/pod" POD "/%s", id1);
	cgroups_make(&cgroups, &inner, "kubepods/besteffort/pod" POD "/%s/docker/%s", id1, id2);
	d = start(&proc, false);
	assert_false(discovery_container_runs(d, id1));
	child_start(&child);
	cgroups_enter(&cgroups, &inner, (pid_t)child.pid);
	assert_true(discovery_container_runs(d, id1));
	assert_true(discovery_container_runs(d, id2));
	cgroups_enter(&cgroups, &outer, (pid_t)child.pid);
	assert_true(discovery_container_runs(d, id1));
	assert_false(discovery_container_runs(d, id2));
	child_end(&child);
	assert_false(discovery_container_runs(d, id1));
	discovery_free(d);
	cgroups_remove(&cgroups, &inner); /* and its parents */
}

static uint64_t plain_mkdir(const struct tree *tree, const char *path, const char *name)
{
	char whole[256];

	snprintf(whole, sizeof(whole), "%s/%s", path, name);
	return tree_mkdir(tree->fd, whole);
}

/* On a node with both versions one tree may show only the runtime's service. */
static void test_only_one_tree_knows(void **state)
{
	struct pid_id nobody = {.pid = INT32_MAX, .start_ticks = 1};
	struct discovery_opts opts = {.proc = &proc, .node_name = "", .grace_ns = LONG};
	uint64_t container[2], service[2], pod;
	struct discovery *d;
	struct entity *entity;
	struct tree tree;

	(void)state;
	tree_init(&tree);
	container[0] = plain_mkdir(&tree, "unified/docker", id1);
	container[1] = plain_mkdir(&tree, "memory/docker", id2);
	service[0] = tree_mkdir(tree.fd, "unified/system.slice/docker.service");
	service[1] = tree_mkdir(tree.fd, "memory/system.slice/docker.service");
	pod = plain_mkdir(&tree, "memory/kubepods/pod" POD, id2);
	opts.cgroupfs_root = tree.path;
	assert_int_equal(discovery_new(&opts, &d), 0);
	assert_int_equal(discovery_v1_controller(d), CONTROLLER_MEMORY);
	entity = discovery_entity(d, container[0], service[1], &nobody, "x");
	assert_label(entity, "container", id1);
	entity = discovery_entity(d, service[0], container[1], &nobody, "x");
	assert_label(entity, "container", id2);
	assert_null(discovery_entity(d, service[0], service[1], &nobody, "x"));
	/* if the trees differ, the container with a pod is right */
	entity = discovery_entity(d, container[0], pod, &nobody, "x");
	assert_label(entity, "container", id2);
	discovery_free(d);
	tree_deinit(&tree);
}

/* A container younger than the table. */
static void test_new_container(void **state)
{
	struct cgroup cgroup, other, host;
	struct discovery *d;
	struct pid_id child;
	struct entity *entity;

	(void)state;
	d = start(&proc, false);
	cgroups_make(&cgroups, &cgroup, "kubepods/besteffort/pod" POD "/%s", id1);
	child_start(&child);
	cgroups_enter(&cgroups, &cgroup, (pid_t)child.pid);
	entity = ask(d, &cgroup, &child);
	assert_label(entity, "container", id1);
	assert_label(entity, "pod_uid", POD);
	assert_int_equal(lookups(d, "proc_id"), 1);
	assert_ptr_equal(ask(d, &cgroup, &child), entity);
	assert_int_equal(lookups(d, "table"), 1);

	/* a sample from a removed cgroup, of a process that has moved here: does not belong here */
	cgroups_make(&cgroups, &other, "docker/%s", id2);
	cgroups_remove(&cgroups, &other);
	assert_int_equal(ask(d, &other, &child)->kind, ENTITY_UNKNOWN);
	assert_int_equal(lookups(d, "unknown_moved"), 1);
	/* and not to the host: host processes are excluded, this one is unknown */
	cgroups_make(&cgroups, &host, "nothing");
	cgroups_enter(&cgroups, &host, (pid_t)child.pid);
	assert_int_equal(ask(d, &other, &child)->kind, ENTITY_UNKNOWN);
	assert_int_equal(lookups(d, "unknown_moved"), 2);

	child_end(&child);
	cgroups_remove(&cgroups, &cgroup);
	discovery_free(d);
}

/* The process is gone, and the cgroup is unknown. Then the cgroup reappears as another directory.
 */
static void test_unknown(void **state)
{
	struct cgroup cgroup;
	struct discovery *d;
	struct pid_id child;
	struct entity *entity;

	(void)state;
	d = start(&proc, false);
	child_start(&child);
	child_end(&child);
	cgroups_make(&cgroups, &cgroup, "docker/%s", id1);
	cgroups_remove(&cgroups, &cgroup);
	entity = ask(d, &cgroup, &child);
	assert_non_null(entity);
	assert_int_equal(entity->kind, ENTITY_UNKNOWN);
	assert_label(entity, "service_name", "unknown");
	assert_int_equal(lookups(d, "unknown_exited"), 1);
	discovery_free(d);
}

/* Samples that arrive after the container's end. */
static void test_late_samples(void **state)
{
	struct pid_id nobody = {.pid = INT32_MAX, .start_ticks = 1};
	struct discovery_opts opts = {
		.proc = &proc, .node_name = "", .grace_ns = LONG, .host_processes = true};
	struct cgroup cgroup, newer;
	struct discovery *d;
	struct entity *entity;

	(void)state;
	cgroups_make(&cgroups, &cgroup, "docker/%s", id1);
	assert_int_equal(discovery_new(&opts, &d), 0);
	entity = ask(d, &cgroup, &nobody);
	assert_label(entity, "container", id1);
	cgroups_remove(&cgroups, &cgroup);
	/* another lookup causes a complete walk, if a second has passed */
	cgroups_make(&cgroups, &newer, "docker/%s", id2);
	while (ask(d, &newer, &nobody)->kind == ENTITY_UNKNOWN)
		usleep(100000);
	assert_int_equal(lookups(d, "walk"), 1);
	assert_false(entity_alive(entity));
	assert_ptr_equal(ask(d, &cgroup, &nobody), entity);
	assert_true(metrics_get(discovery_collect, d, "podprof_entities", "container,gone") >= 1);
	/* the container is started again: the same entity, alive */
	cgroups_make(&cgroups, &cgroup, "docker/%s", id1);
	while (!entity_alive(entity)) {
		struct cgroup odd = {.id = {1u << 30, 1u << 30}};

		(void)ask(d, &odd, &nobody);
		usleep(100000);
	}
	assert_ptr_equal(ask(d, &cgroup, &nobody), entity);
	discovery_free(d);
	cgroups_remove(&cgroups, &cgroup);
	cgroups_remove(&cgroups, &newer);
}

static void test_host_process(void **state)
{
	struct cgroup service, none;
	struct discovery *d;
	struct pid_id child;
	struct entity *entity;

	(void)state;
	cgroups_make(&cgroups, &service, "system.slice/podprof-test.service");
	cgroups_make(&cgroups, &none, "nothing");
	child_start(&child);

	d = start(&proc, false);
	assert_null(ask(d, &service, &child));
	assert_int_equal(lookups(d, "filtered"), 1);
	discovery_free(d);

	d = start(&proc, true);
	cgroups_enter(&cgroups, &service, (pid_t)child.pid);
	entity = ask(d, &service, &child);
	assert_label(entity, "unit", "podprof-test.service");
	assert_label(entity, "service_name", "podprof-test.service");
	assert_int_equal(entity->kind, ENTITY_UNIT);
	assert_ptr_equal(ask(d, &service, &child), entity);
	assert_int_equal(lookups(d, "cached"), 1);

	/* the process moves, and the new sample shows the new cgroup */
	cgroups_enter(&cgroups, &none, (pid_t)child.pid);
	entity = ask(d, &none, &child);
	assert_int_equal(entity->kind, ENTITY_PROCESS);
	assert_label(entity, "comm", "comm");
	/* another program in the same process */
	entity = discovery_entity(d, none.id[0], none.id[1], &child, "other");
	assert_label(entity, "comm", "other");

	child_end(&child);
	/* for an ended process the directory still gives the unit */
	entity = discovery_entity(d, service.id[0], service.id[1], &child, "third");
	assert_label(entity, "unit", "podprof-test.service");
	discovery_free(d);
	cgroups_remove(&cgroups, &service);
	cgroups_remove(&cgroups, &none);
}

/* Units of two users with the same name, and sessions of one user. */
static void test_users(void **state)
{
	static const char *const paths[] = {
		"user.slice/user-1000.slice/user@1000.service/app.slice/web.service",
		"user.slice/user-1001.slice/user@1001.service/app.slice/web.service",
		"user.slice/user-1001.slice/session-1.scope",
		"user.slice/user-1001.slice/session-2.scope",
	};
	struct pid_id nobody = {.pid = INT32_MAX, .start_ticks = 1};
	struct cgroup dirs[array_size(paths)];
	struct entity *entities[array_size(paths)];
	struct discovery *d;

	(void)state;
	for (size_t i = 0; i < array_size(paths); i++)
		cgroups_make(&cgroups, &dirs[i], "%s", paths[i]);
	d = start(&proc, true);
	for (size_t i = 0; i < array_size(paths); i++) {
		nobody.start_ticks++; /* another process */
		entities[i] = ask(d, &dirs[i], &nobody);
		assert_int_equal(entities[i]->kind, ENTITY_UNIT);
		assert_label(entities[i], "user", i ? "1001" : "1000");
		assert_label(entities[i], "unit", i < 2 ? "web.service" : "user-1001.slice");
		assert_label(entities[i], "slice", i < 2 ? "app.slice" : "user.slice");
	}
	assert_ptr_not_equal(entities[0], entities[1]);
	assert_ptr_equal(entities[2], entities[3]);
	discovery_free(d);
	for (size_t i = 0; i < array_size(paths); i++)
		cgroups_remove(&cgroups, &dirs[i]);
}

/* Behind a cgroup namespace the paths in /proc are truncated and missing from the trees. */
static void test_relative_paths(void **state)
{
	struct pid_id pid = {.pid = 5, .start_ticks = 6}, host = {.pid = 7, .start_ticks = 8};
	struct cgroup odd = {.id = {1u << 30, 1u << 30}};
	struct root false_proc;
	struct discovery *d;
	struct tree tree;
	char text[128];

	(void)state;
	tree_init(&tree);
	tree_mkdir(tree.fd, "5");
	tree_mkdir(tree.fd, "7");
	tree_write(tree.fd, "5/stat", "5 (x) S 1 1 1 0 -1 0 1 2 3 4 5 6 7 8 20 0 1 0 6 9\n");
	tree_write(tree.fd, "7/stat", "7 (x) S 1 1 1 0 -1 0 1 2 3 4 5 6 7 8 20 0 1 0 8 9\n");
	snprintf(text, sizeof(text), "0::/../cri-containerd-%s.scope\n", id1);
	tree_write(tree.fd, "5/cgroup", text);
	tree_write(tree.fd, "7/cgroup", "0::/../../ssh.service\n");
	false_proc.fd = tree.fd;
	d = start(&false_proc, false);
	assert_label(ask(d, &odd, &pid), "container", id1);
	assert_int_equal(lookups(d, "proc_path"), 1);
	assert_label(ask(d, &odd, &pid), "container", id1);
	assert_int_equal(lookups(d, "cached"), 1);
	assert_null(ask(d, &odd, &host));
	assert_null(ask(d, &odd, &host));
	assert_int_equal(lookups(d, "filtered"), 2);
	/* the pid is reused: the new process's cgroup must not be taken */
	pid.start_ticks++;
	assert_int_equal(ask(d, &odd, &pid)->kind, ENTITY_UNKNOWN);
	assert_int_equal(lookups(d, "unknown_exited"), 1);
	/* not a file of lines at all */
	host.start_ticks++;
	tree_write(tree.fd, "7/stat", "7 (x) S 1 1 1 0 -1 0 1 2 3 4 5 6 7 8 20 0 1 0 9 9\n");
	assert_int_equal(unlinkat(tree.fd, "7/cgroup", 0), 0);
	assert_int_equal(mkfifoat(tree.fd, "7/cgroup", 0600), 0);
	assert_int_equal(ask(d, &odd, &host)->kind, ENTITY_UNKNOWN);
	assert_int_equal(lookups(d, "unknown_unreadable"), 1);
	discovery_free(d);
	tree_deinit(&tree);
}

/* The kernel cuts off longer paths. A container with the right to make cgroups must not hide its
 * processes in a deep one. */
static void test_cut_path(void **state)
{
	struct pid_id pid = {.pid = 5, .start_ticks = 6}, host = {.pid = 7, .start_ticks = 8};
	struct cgroup odd = {.id = {1u << 30, 1u << 30}};
	struct root false_proc;
	struct discovery *d;
	struct tree tree;
	char text[CGROUPDIR_PATH_MAX + 16], cut[CGROUPDIR_PATH_MAX];

	(void)state;
	tree_init(&tree);
	tree_mkdir(tree.fd, "5");
	tree_mkdir(tree.fd, "7");
	tree_write(tree.fd, "5/stat", "5 (x) S 1 1 1 0 -1 0 1 2 3 4 5 6 7 8 20 0 1 0 6 9\n");
	tree_write(tree.fd, "7/stat", "7 (x) S 1 1 1 0 -1 0 1 2 3 4 5 6 7 8 20 0 1 0 8 9\n");
	memset(cut, 'x', sizeof(cut) - 1);
	cut[sizeof(cut) - 1] = '\0';
	for (size_t i = 0; i < sizeof(cut); i += 200)
		cut[i] = '/';
	snprintf(text, sizeof(text), "0::%s\n", cut);
	tree_write(tree.fd, "7/cgroup", text);
	cut[1 + snprintf(cut + 1, 200, "docker-%s.scope", id1)] = '/';
	snprintf(text, sizeof(text), "0::%s\n", cut);
	tree_write(tree.fd, "5/cgroup", text);
	false_proc.fd = tree.fd;
	d = start(&false_proc, false);
	assert_label(ask(d, &odd, &pid), "container", id1);
	assert_int_equal(lookups(d, "proc_path"), 1);
	row_begin("outside of containers");
	assert_int_equal(ask(d, &odd, &host)->kind, ENTITY_UNKNOWN);
	row_begin("a path one byte shorter is whole");
	cut[strlen(cut) - 1] = '\0';
	snprintf(text, sizeof(text), "0::%s\n", cut);
	tree_write(tree.fd, "7/cgroup", text);
	assert_int_equal(ask(d, &odd, &host)->kind, ENTITY_UNKNOWN);
	assert_int_equal(lookups(d, "unknown_moved"), 2);
	discovery_free(d);
	tree_deinit(&tree);
}

/* Such a path of a container with known directories means that the process has moved there. */
static void test_relative_path_elsewhere(void **state)
{
	struct cgroup container, other;
	struct pid_id child, moved;
	struct root false_proc;
	struct discovery *d;
	struct tree tree;
	char path[64], text[256];

	(void)state;
	tree_init(&tree);
	cgroups_make(&cgroups, &container, "kubepods/pod" POD "/%s", id1);
	cgroups_make(&cgroups, &other, "kubepods/pod" POD "/%s", id2);
	child_start(&child);
	child_end(&child);
	moved = child;
	snprintf(path, sizeof(path), "%d", (int)moved.pid);
	tree_mkdir(tree.fd, path);
	snprintf(path, sizeof(path), "%d/stat", (int)moved.pid);
	snprintf(text, sizeof(text), "%d (x) S 1 1 1 0 -1 0 1 2 3 4 5 6 7 8 20 0 1 0 %llu 9\n",
		 (int)moved.pid, (unsigned long long)moved.start_ticks);
	tree_write(tree.fd, path, text);
	snprintf(path, sizeof(path), "%d/cgroup", (int)moved.pid);
	snprintf(text, sizeof(text), "0::/../%s\n", id1);
	tree_write(tree.fd, path, text);
	cgroups_remove(&cgroups, &other);
	false_proc.fd = tree.fd;
	d = start(&false_proc, false);
	assert_int_equal(ask(d, &other, &moved)->kind, ENTITY_UNKNOWN);
	assert_int_equal(lookups(d, "unknown_moved"), 1);
	assert_label(ask(d, &container, &moved), "container", id1);
	discovery_free(d);
	cgroups_remove(&cgroups, &container);
	tree_deinit(&tree);
}

/* ---- lists ---- */

struct listing {
	struct pid_id wanted;
	struct entity *entity;
	size_t n_wanted;
	size_t n;
};

static int on_process(void *ctx, const struct pid_id *pid, struct entity *entity)
{
	struct listing *l = ctx;

	l->n++;
	if (!pid_id_equal(pid, &l->wanted))
		return 0;
	l->n_wanted++;
	l->entity = entity;
	return 0;
}

static int on_process_stop(void *ctx, const struct pid_id *pid, struct entity *entity)
{
	size_t *n = ctx;

	(*n)++;
	return -77;
}

/* A daemon in a container with trees of version 1 only: its child processes stay in the daemon's
 * cgroup of the unified tree. */
static void test_container_in_one_tree_only(void **state)
{
	struct discovery_opts opts = {.proc = &proc, .node_name = "", .grace_ns = LONG};
	struct listing l = {0};
	struct discovery *d;
	uint64_t outer, inner;
	struct tree tree;
	char path[256], pid[32];

	(void)state;
	tree_init(&tree);
	outer = plain_mkdir(&tree, "unified/docker", id1);
	snprintf(path, sizeof(path), "memory/docker/%s/docker", id1);
	inner = plain_mkdir(&tree, path, id2);
	child_start(&l.wanted);
	snprintf(pid, sizeof(pid), "%d\n", (int)l.wanted.pid);
	snprintf(path, sizeof(path), "unified/docker/%s/cgroup.procs", id1);
	tree_write(tree.fd, path, pid);
	snprintf(path, sizeof(path), "memory/docker/%s/docker/%s/cgroup.procs", id1, id2);
	tree_write(tree.fd, path, pid);
	opts.cgroupfs_root = tree.path;
	assert_int_equal(discovery_new(&opts, &d), 0);
	assert_label(discovery_entity(d, outer, inner, &l.wanted, "x"), "container", id2);
	assert_int_equal(discovery_for_each_process(d, on_process, &l), 0);
	assert_int_equal(l.n_wanted, 1);
	assert_label(l.entity, "container", id2);
	assert_label(l.entity, "outer_container", id1);
	discovery_free(d);
	child_end(&l.wanted);
	tree_deinit(&tree);
}

/* A listing that stops after each process or directory finds each process once, though others end
 * and directories go between the slices. */
static void test_slices(void **state)
{
	struct listing whole = {0}, l = {0};
	struct process_listing *listing;
	struct cgroup cgroup, other;
	struct discovery *d;
	struct pid_id second;
	size_t n_slices = 1;
	int r;

	(void)state;
	cgroups_make(&cgroups, &cgroup, "docker/%s", id1);
	cgroups_make(&cgroups, &other, "docker/%s", id2);
	child_start(&l.wanted);
	child_start(&second);
	cgroups_enter(&cgroups, &cgroup, (pid_t)l.wanted.pid);
	cgroups_enter(&cgroups, &other, (pid_t)second.pid);
	d = start(&proc, true);
	assert_int_equal(discovery_list_processes(d, on_process, &l, &listing), 0);
	whole.wanted = second;
	assert_int_equal(discovery_for_each_process(d, on_process, &whole), 0);
	while ((r = process_listing_step(listing)) == PROCESS_LISTING_MORE)
		n_slices++;
	assert_int_equal(r, 0);
	process_listing_free(listing);
	assert_int_equal(l.n_wanted, 1);
	assert_int_equal(whole.n_wanted, 1);
	assert_label(l.entity, "container", id1);
	assert_true(n_slices >= l.n);

	assert_int_equal(discovery_list_processes(d, on_process, &l, &listing), 0);
	assert_int_equal(process_listing_step(listing), PROCESS_LISTING_MORE);
	process_listing_free(listing); /* in the middle */

	l.n_wanted = 0;
	assert_int_equal(discovery_list_processes(d, on_process, &l, &listing), 0);
	child_end(&second);
	cgroups_remove(&cgroups, &other);
	while ((r = process_listing_step(listing)) == PROCESS_LISTING_MORE)
		;
	assert_int_equal(r, 0);
	process_listing_free(listing);
	assert_int_equal(l.n_wanted, 1);
	discovery_free(d);
	child_end(&l.wanted);
	cgroups_remove(&cgroups, &cgroup);
}

/* The lists of all processes and of all directories are made in slices, too. */
static void test_slices_of_lists(void **state)
{
	const size_t n = 1000, n_parts = n / 64;
	struct root false_proc = ROOT_INIT;
	struct discovery_opts opts = {.proc = &false_proc, .node_name = "", .grace_ns = LONG};
	struct process_listing *listing;
	struct tree cgroup, tree;
	struct listing l = {0};
	struct discovery *d;
	size_t n_slices = 1;
	char name[128];

	(void)state;
	tree_init(&tree);
	tree_init(&cgroup);
	tree_mkdir(cgroup.fd, "unified/docker");
	for (size_t i = 1; i <= n; i++) {
		snprintf(name, sizeof(name), "%zu", i);
		tree_mkdir(tree.fd, name);
		snprintf(name, sizeof(name), "unified/docker/%064zx", i);
		tree_mkdir(cgroup.fd, name);
	}
	false_proc.fd = tree.fd;
	opts.cgroupfs_root = cgroup.path;
	assert_int_equal(discovery_new(&opts, &d), 0);
	assert_int_equal(discovery_list_processes(d, on_process, &l, &listing), 0);
	while (process_listing_step(listing) == PROCESS_LISTING_MORE)
		n_slices++;
	process_listing_free(listing);
	assert_true(n_slices >= n + 2 * n_parts); /* each directory is read, too */
	discovery_free(d);
	tree_deinit(&cgroup);
	tree_deinit(&tree);
}

static void write_stat(const struct tree *tree, const char *name)
{
	char text[128];

	snprintf(text, sizeof(text), "7 (%s) S 1 1 1 0 -1 0 1 2 3 4 5 6 7 8 20 0 1 0 8 9\n", name);
	tree_write(tree->fd, "7/stat", text);
}

static void assert_listed_as(struct discovery *d, const char *name)
{
	struct listing l = {.wanted = {.pid = 7, .start_ticks = 8}};

	assert_int_equal(discovery_for_each_process(d, on_process, &l), 0);
	assert_int_equal(l.n_wanted, 1);
	assert_label(l.entity, "comm", name);
}

/* The name of a host process is read again after each exec of another program, and now and then. */
static void test_names(void **state)
{
	struct root false_proc;
	struct discovery *d;
	struct tree tree;

	(void)state;
	tree_init(&tree);
	tree_mkdir(tree.fd, "7");
	tree_write(tree.fd, "7/cgroup", "0::/\n");
	write_stat(&tree, "first");
	assert_int_equal(symlinkat("/bin/a", tree.fd, "7/exe"), 0);
	false_proc.fd = tree.fd;
	d = start(&false_proc, true);
	assert_listed_as(d, "first");
	assert_listed_as(d, "first");
	write_stat(&tree, "second");
	for (int i = 0; i < 8; i++) {
		struct listing l = {0};

		assert_int_equal(discovery_for_each_process(d, on_process, &l), 0);
	}
	assert_listed_as(d, "second");
	write_stat(&tree, "third");
	assert_int_equal(unlinkat(tree.fd, "7/exe", 0), 0);
	assert_int_equal(symlinkat("/bin/b", tree.fd, "7/exe"), 0);
	assert_listed_as(d, "third");
	discovery_free(d);
	tree_deinit(&tree);
}

static void test_processes(void **state)
{
	struct listing l = {0};
	struct cgroup cgroup, other, pod;
	struct discovery *d;
	struct pid_id second;
	size_t n = 0;

	(void)state;
	cgroups_make(&cgroups, &cgroup, "docker/%s/below", id1);
	cgroups_make(&cgroups, &other, "docker/%s", id2);
	cgroups_make(&cgroups, &pod, "kubepods/pod" POD);
	child_start(&l.wanted);
	child_start(&second);
	cgroups_enter(&cgroups, &cgroup, (pid_t)l.wanted.pid);
	cgroups_enter(&cgroups, &other, (pid_t)second.pid);
	d = start(&proc, false);
	for (int i = 0; i < 2; i++) {
		l.n = l.n_wanted = 0;
		assert_int_equal(discovery_for_each_process(d, on_process, &l), 0);
		assert_true(l.n >= 2);
		assert_int_equal(l.n_wanted, 1); /* although two trees may list it */
		assert_label(l.entity, "container", id1);
	}
	assert_int_equal(metrics_get(discovery_collect, d, "podprof_targets", "listed"), l.n);
	assert_int_equal(discovery_for_each_process(d, on_process_stop, &n), -77);
	assert_int_equal(n, 1);

	/* in a pod, outside of its containers */
	cgroups_enter(&cgroups, &pod, (pid_t)l.wanted.pid);
	l.n_wanted = 0;
	assert_int_equal(discovery_for_each_process(d, on_process, &l), 0);
	assert_int_equal(l.n_wanted, 1);
	assert_int_equal(l.entity->kind, ENTITY_POD);
	assert_label(l.entity, "pod_uid", POD);

	child_end(&l.wanted);
	l.n = l.n_wanted = 0;
	assert_int_equal(discovery_for_each_process(d, on_process, &l), 0);
	assert_int_equal(l.n_wanted, 0);
	assert_int_equal(metrics_get(discovery_collect, d, "podprof_targets", "listed"), l.n);
	discovery_free(d);
	child_end(&second);
	cgroups_remove(&cgroups, &cgroup);
	cgroups_remove(&cgroups, &other);
	cgroups_remove(&cgroups, &pod);
}

static int count_process(void *ctx, pid_t pid)
{
	size_t *n = ctx;

	(void)pid;
	(*n)++;
	return 0;
}

/* In a single tree; false if the node lacks this tree. */
static bool enter_one(enum hierarchy h, const struct cgroup *cgroup, pid_t pid)
{
	struct cgroups one = cgroups;

	one.trees.roots[h == HIERARCHY_V2 ? HIERARCHY_V1 : HIERARCHY_V2].fd = -1;
	cgroups_enter(&one, cgroup, pid);
	return one.trees.roots[h].fd >= 0;
}

/* A full node reads few processes: only processes missing from the containers of one tree are read.
 */
static void test_processes_of_many(void **state)
{
	struct cgroup container, pod, empty;
	struct listing l[4] = {0};
	struct discovery *d;
	size_t n_all = 0;

	(void)state;
	assert_int_equal(pid_for_each(&proc, count_process, &n_all), 0);
	n_all = n_all / 2 + 8;
	for (size_t i = 0; i < n_all; i++)
		cgroups_make(&cgroups, &empty, "kubepods/pod2c48913c-b29f-11e7-9350-%012zu", i);
	cgroups_make(&cgroups, &container, "kubepods/pod" POD "/%s", id1);
	cgroups_make(&cgroups, &pod, "kubepods/pod" POD);
	for (size_t i = 0; i < array_size(l); i++)
		child_start(&l[i].wanted);
	cgroups_enter(&cgroups, &container, (pid_t)l[0].wanted.pid);
	cgroups_enter(&cgroups, &pod, (pid_t)l[1].wanted.pid);
	if (!enter_one(HIERARCHY_V1, &container, (pid_t)l[2].wanted.pid))
		cgroups_enter(&cgroups, &container, (pid_t)l[2].wanted.pid);
	/* like a process in the middle of a move: in two places at once */
	cgroups_enter(&cgroups, &pod, (pid_t)l[3].wanted.pid);
	if (!enter_one(HIERARCHY_V1, &container, (pid_t)l[3].wanted.pid))
		cgroups_enter(&cgroups, &container, (pid_t)l[3].wanted.pid);
	d = start(&proc, true);
	for (int round = 0; round < 2; round++)
		for (size_t i = 0; i < array_size(l); i++) {
			l[i].n_wanted = 0;
			assert_int_equal(discovery_for_each_process(d, on_process, &l[i]), 0);
			assert_int_equal(l[i].n_wanted, 1);
			assert_string_equal(l[i].entity->id.pod_uid, POD);
			assert_string_equal(l[i].entity->id.container_id, i == 1 ? "" : id1);
		}
	discovery_free(d);
	for (size_t i = 0; i < array_size(l); i++)
		child_end(&l[i].wanted);
	cgroups_remove(&cgroups, &container);
	for (size_t i = 0; i < n_all; i++) {
		snprintf(empty.path, sizeof(empty.path),
			 "%s/kubepods/pod2c48913c-b29f-11e7-9350-%012zu", cgroups.top, i);
		cgroups_remove(&cgroups, &empty);
	}
}

/* Version 2 alone, read from a PID namespace inside the containers': 0 is a process without a pid
 * here. The process is in no list, but the container runs, and the samples belong to the container.
 */
static void test_without_numbers(void **state)
{
	struct pid_id nobody = {.pid = INT32_MAX, .start_ticks = 1};
	struct discovery_opts opts = {.proc = &proc, .node_name = "", .grace_ns = LONG};
	struct listing l = {0};
	struct discovery *d;
	struct pid_id child;
	struct tree tree;
	uint64_t id;
	char path[160], text[64];

	(void)state;
	tree_init(&tree);
	tree_write(tree.fd, "cgroup.controllers", "");
	id = plain_mkdir(&tree, "kubepods/pod" POD, id1);
	child_start(&child);
	snprintf(path, sizeof(path), "kubepods/pod" POD "/%s/cgroup.procs", id1);
	snprintf(text, sizeof(text), "0\n%d\n0\n", (int)child.pid);
	tree_write(tree.fd, path, text);
	opts.cgroupfs_root = tree.path;
	assert_int_equal(discovery_new(&opts, &d), 0);
	assert_int_equal(discovery_v1_controller(d), CONTROLLER_NONE);
	l.wanted = child;
	assert_int_equal(discovery_for_each_process(d, on_process, &l), 0);
	assert_int_equal(l.n, 1);
	assert_label(l.entity, "container", id1);
	assert_int_equal(metrics_get(discovery_collect, d, "podprof_processes_listed",
				     "other_pid_namespace"),
			 2);
	tree_write(tree.fd, path, "0\n");
	assert_true(discovery_container_runs(d, id1));
	assert_label(discovery_entity(d, id, 0, &nobody, "x"), "container", id1);
	child_end(&child);
	discovery_free(d);
	tree_deinit(&tree);
}

/* A process with this free pid. */
static void child_start_as(pid_t pid, struct pid_id *ret)
{
	struct clone_args args = {
		.exit_signal = SIGCHLD, .set_tid = (uint64_t)(uintptr_t)&pid, .set_tid_size = 1};
	long child;

	/* another process may have the pid for a moment */
	while ((child = syscall(SYS_clone3, &args, sizeof(args))) < 0 && errno == EEXIST)
		usleep(1000);
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pause();
		_exit(0);
	}
	assert_int_equal(child, pid);
	assert_int_equal(pid_read(&proc, pid, ret), 0);
}

/* The same number in the same container is another process. */
static void test_number_again(void **state)
{
	struct listing l = {0};
	struct cgroup cgroup;
	struct discovery *d;
	struct pid_id second;

	(void)state;
	cgroups_make(&cgroups, &cgroup, "docker/%s", id1);
	child_start(&l.wanted);
	cgroups_enter(&cgroups, &cgroup, (pid_t)l.wanted.pid);
	d = start(&proc, false);
	for (int i = 0; i < 2; i++)
		assert_int_equal(discovery_for_each_process(d, on_process, &l), 0);
	assert_int_equal(l.n_wanted, 2);
	child_end(&l.wanted);
	usleep(20000); /* for a start in another tick */
	child_start_as((pid_t)l.wanted.pid, &second);
	cgroups_enter(&cgroups, &cgroup, (pid_t)second.pid);
	assert_int_equal(discovery_for_each_process(d, on_process, &l), 0);
	assert_int_equal(l.n_wanted, 2);
	l.wanted = second;
	for (int i = 0; i < 2; i++)
		assert_int_equal(discovery_for_each_process(d, on_process, &l), 0);
	assert_int_equal(l.n_wanted, 4);
	discovery_free(d);
	child_end(&second);
	cgroups_remove(&cgroups, &cgroup);
}

static void test_host_processes(void **state)
{
	struct listing self = {0}, kernel = {.wanted = {.pid = 2}};
	struct discovery *d;

	(void)state;
	assert_int_equal(pid_read(&proc, getpid(), &self.wanted), 0);
	(void)pid_read(&proc, 2, &kernel.wanted); /* kthreadd, outside of containers */
	d = start(&proc, true);
	assert_int_equal(discovery_for_each_process(d, on_process, &self), 0);
	assert_int_equal(self.n_wanted, 1);
	assert_int_equal(discovery_for_each_process(d, on_process, &kernel), 0);
	assert_int_equal(kernel.n_wanted, 0);
	discovery_free(d);

	d = start(&proc, false);
	self.n_wanted = 0;
	assert_int_equal(discovery_for_each_process(d, on_process, &self), 0);
	assert_int_equal(self.n_wanted, 0);
	discovery_free(d);
}

/* ---- without memory ---- */

/* A copy of the /proc directory of one process. */
static void copy_process(const struct tree *to, pid_t pid)
{
	static const char *const files[] = {"stat", "cgroup"};
	char path[48];

	snprintf(path, sizeof(path), "%d", (int)pid);
	tree_mkdir(to->fd, path);
	for (size_t i = 0; i < array_size(files); i++) {
		_cleanup_(buf_deinit) struct buf b = BUF_INIT(1u << 16);
		_cleanup_(freep) char *text = NULL;

		snprintf(path, sizeof(path), "%d/%s", (int)pid, files[i]);
		assert_int_equal(root_read(&proc, path, &b), 0);
		text = strview_dup(strview_of_bytes(b.data, b.len));
		assert_non_null(text);
		tree_write(to->fd, path, text);
	}
	snprintf(path, sizeof(path), "%d/exe", (int)pid);
	assert_int_equal(symlinkat("/bin/x", to->fd, path), 0);
}

/* @tree: the test's own part of the tree, because the machine may have any number of cgroups.
 * @proc: of two processes, for the same reason
 */
struct scarce {
	struct root proc;
	char tree[128];
	const struct cgroup *cgroup;
	const struct cgroup *service;
	const struct pid_id *pid;
};

static int live_with_it(void *ctx)
{
	const struct scarce *s = ctx;
	struct discovery_opts opts = {.proc = &s->proc,
				      .cgroupfs_root = s->tree,
				      .node_name = "n",
				      .grace_ns = LONG,
				      .host_processes = true};
	struct listing l = {0};
	struct discovery *d;
	int r = discovery_new(&opts, &d);

	if (r)
		return r;
	(void)ask(d, s->cgroup, s->pid);
	(void)ask(d, s->service, s->pid);
	r = discovery_for_each_process(d, on_process, &l);
	discovery_free(d);
	return r;
}

static void test_without_memory(void **state)
{
	struct cgroup cgroup, service;
	struct pid_id child;
	struct scarce scarce = {.cgroup = &cgroup, .service = &service, .pid = &child};
	struct tree false_proc;

	(void)state;
	cgroups_make(&cgroups, &cgroup, "docker/%s", id1);
	cgroups_make(&cgroups, &service, "x.service");
	child_start(&child);
	cgroups_enter(&cgroups, &cgroup, (pid_t)child.pid);
	snprintf(scarce.tree, sizeof(scarce.tree), "/proc/self/fd/%d/%s",
		 cgroups.trees.roots[HIERARCHY_V2].fd >= 0 ? cgroups.trees.roots[HIERARCHY_V2].fd
							   : cgroups.trees.roots[HIERARCHY_V1].fd,
		 cgroups.top);
	tree_init(&false_proc);
	copy_process(&false_proc, (pid_t)child.pid);
	copy_process(&false_proc, getpid());
	scarce.proc.fd = false_proc.fd;
	assert_true(allocfail_survive(live_with_it, &scarce) > 20);
	tree_deinit(&false_proc);
	child_end(&child);
	cgroups_remove(&cgroups, &cgroup);
	cgroups_remove(&cgroups, &service);
}

static void test_no_cgroups(void **state)
{
	struct discovery_opts opts = {
		.proc = &proc, .node_name = "", .cgroupfs_root = "/nonexistent"};
	struct discovery *d = NULL;

	(void)state;
	assert_int_equal(discovery_new(&opts, &d), HIERARCHY_NO_SUCH_DIR);
	assert_null(d);
}

static int setup(void **state)
{
	if (root_open("/proc", &proc))
		return -1;
	cgroups_open(&cgroups, &proc);
	cgroups_container_id(1, id1);
	cgroups_container_id(2, id2);
	return 0;
}

static int teardown(void **state)
{
	cgroups_close(&cgroups);
	root_deinit(&proc);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_container),
		cmocka_unit_test(test_owner),
		cmocka_unit_test(test_pod),
		cmocka_unit_test(test_only_one_tree_knows),
		cmocka_unit_test(test_container_in_one_tree_only),
		cmocka_unit_test(test_new_container),
		cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_late_samples),
		cmocka_unit_test(test_host_process),
		cmocka_unit_test(test_users),
		cmocka_unit_test(test_relative_paths),
		cmocka_unit_test(test_cut_path),
		cmocka_unit_test(test_relative_path_elsewhere),
		cmocka_unit_test(test_slices),
		cmocka_unit_test(test_slices_of_lists),
		cmocka_unit_test(test_processes),
		cmocka_unit_test(test_processes_of_many),
		cmocka_unit_test(test_without_numbers),
		cmocka_unit_test(test_host_processes),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_number_again),
		cmocka_unit_test(test_without_memory),
		cmocka_unit_test(test_no_cgroups),
		cmocka_unit_test(test_runs),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
