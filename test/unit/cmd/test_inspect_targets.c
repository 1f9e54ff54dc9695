// SPDX-License-Identifier: Apache-2.0
/* The command on a synthetic node: cgroup directories, a procfs with three processes, and
 * containerd's state. */
#include "support/test.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/cmd.h"
#include "support/command.h"
#include "support/tree.h"

#define WEB   "73051af271105c07e1f493b34856a77e665e3b0b4fc72f76c807dfbffeb881bd"
#define DNS   "2f1e0d9c8b7a6f5e4d3c2b1a09f8e7d6c5b4a39281706f5e4d3c2b1a09182736"
#define OTHER "b6f4c30bc8d69923d37ee698f5cfcced92c7b7df1c47f6f7887378a940c03570"
#define PAUSE "5c07e1f493b34856a77e665e3b0b4fc72f76c807dfbffeb881bd73051af27110"
#define UID1  "2c48913c-b29f-11e7-9350-020968147796"
#define UID2  "8e1c90d3-0a5b-4b0e-9b1f-7a4471c0e2d5"

#define TASKS  "proc/1/root/run/containerd/io.containerd.runtime.v2.task/k8s.io/"
#define DOCKER "proc/1/root/var/lib/docker/containers/"
#define BUNDLE(namespace, pod, uid, container)                                                  \
	"{\"annotations\":{\"io.kubernetes.cri.container-type\":\"container\","                 \
	"\"io.kubernetes.cri.sandbox-namespace\":\"" namespace "\","                            \
							       "\"io.kubernetes.cri.sandbox-"   \
							       "name\":\"" pod "\","            \
							       "\"io.kubernetes.cri.sandbox-"   \
							       "uid\":\"" uid "\","             \
							       "\"io.kubernetes.cri.container-" \
							       "name\":\"" container "\"}}"

#define STAT(pid, comm)                                                             \
	pid " (" comm ") S 1 1 1 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 1 0 777 0 0 0 0" \
	    " 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"

static void add_container(struct tree *tree, const char *dir, const char *processes)
{
	char path[300];

	snprintf(path, sizeof(path), "fs/%s", dir);
	tree_mkdir(tree->fd, path);
	snprintf(path, sizeof(path), "fs/%s/cgroup.procs", dir);
	tree_write(tree->fd, path, processes);
}

static void add_process(struct tree *tree, const char *pid, const char *stat)
{
	char path[64];

	snprintf(path, sizeof(path), "proc/%s", pid);
	tree_mkdir(tree->fd, path);
	snprintf(path, sizeof(path), "proc/%s/stat", pid);
	tree_write(tree->fd, path, stat);
}

static int setup(void **state)
{
	struct tree *tree = calloc(1, sizeof(*tree));

	tree_init(tree);
	tree_mkdir(tree->fd, "fs");
	tree_write(tree->fd, "fs/cgroup.controllers", "");
	add_container(tree, "kubepods/pod" UID1 "/" WEB, "101\n102\n");
	add_container(tree, "kubepods/pod" UID2 "/" DNS, "103\n");
	add_container(tree, "docker/" OTHER, "");
	add_process(tree, "101", STAT("101", "nginx"));
	add_process(tree, "102", STAT("102", "a\x1b[1m) b"));
	add_process(tree, "103", STAT("103", "dns"));
	tree_mkdir(tree->fd, TASKS WEB);
	tree_write(tree->fd, TASKS WEB "/config.json", BUNDLE("shop", "web-1", UID1, "web"));
	tree_mkdir(tree->fd, TASKS DNS);
	tree_write(tree->fd, TASKS DNS "/config.json", BUNDLE("kube-system", "dns-1", UID2, "dns"));
	tree_mkdir(tree->fd, DOCKER OTHER);
	tree_write(tree->fd, DOCKER OTHER "/config.v2.json",
		   "{\"Name\":\"/shop-db-1\",\"Config\":{\"Image\":\"postgres:16\",\"Labels\":{"
		   "\"com.docker.compose.service\":\"db\"}}}");
	tree_write(tree->fd, "rules.json",
		   "{\"relabel_configs\": [{\"action\": \"drop\", \"source_labels\": "
		   "[\"__meta_container_image\"], \"regex\": \"postgres.*\"}, {\"source_labels\": "
		   "[\"__meta_kubernetes_namespace\"], \"target_label\": \"team\"}]}");
	unsetenv("KUBERNETES_SERVICE_HOST");
	unsetenv("HOST_IP");
	*state = tree;
	return 0;
}

static int teardown(void **state)
{
	tree_deinit(*state);
	free(*state);
	return 0;
}

static void inspect(const struct tree *tree, const char *arguments, struct command_run *ret)
{
	char line[512];

	snprintf(line, sizeof(line),
		 "inspect targets --cgroupfs-root %s/fs --proc-root %s/proc --node-name n1 "
		 "--host-processes=false %s",
		 tree->path, tree->path, arguments);
	command_run(line, ret);
}

static void text(void **state)
{
	const struct tree *tree = *state;
	char arguments[200];
	_cleanup_(command_run_deinit) struct command_run r = {0};

	snprintf(arguments, sizeof(arguments),
		 "--metadata runtime --label cluster=prod --ignore ^kube- --config %s/rules.json",
		 tree->path);
	inspect(tree, arguments, &r);
	assert_int_equal(r.status, CMD_DONE);
	assert_int_equal(r.err.len, 0);
	command_assert_has(&r.out, "shop/web-1/web\n    container, unknown " WEB "\n"
				   "    cluster              prod   --label\n"
				   "    container            web    containerd\n"
				   "    namespace            shop   containerd\n"
				   "    node                 n1     --node-name\n"
				   "    pod                  web-1  containerd\n"
				   "    service_name         web-1  pod\n"
				   "    team                 shop   relabel_configs[1]\n"
				   "    processes            101 nginx, 102 a?[1m) b\n");
	command_assert_has(&r.out, "kube-system/dns-1/dns\n    NOT PROFILED: --ignore ^kube-\n");
	command_assert_has(&r.out,
			   "shop-db-1\n    NOT PROFILED: relabel_configs[0] (drop, source_labels "
			   "__meta_container_image, regex postgres.*)\n"
			   "    container, docker " OTHER "\n"
			   "    cluster              prod       --label\n"
			   "    container            shop-db-1  docker\n"
			   "    node                 n1         --node-name\n"
			   "    service_name         db         container label "
			   "com.docker.compose.service\n"
			   "    processes            none\n");
	command_assert_has(&r.out, "3 containers, 0 units, 0 programs; 2 not profiled\n"
				   "names from: containerd: ok; docker: ok\n");
	/* profiled entities come first */
	assert_true(strstr(r.out.data, "shop/") < strstr(r.out.data, "kube-system/"));
}

static void brief(void **state)
{
	_cleanup_(command_run_deinit) struct command_run r = {0};

	inspect(*state, "--brief --metadata none --name 7305", &r);
	assert_int_equal(r.status, CMD_DONE);
	command_assert_has(&r.out, WEB "  container          2  73051af27110              yes\n");
	command_assert_has(&r.out, "1 containers,");
	command_assert_has(&r.out, "names from: no source\n");
	assert_null(strstr(r.out.data, OTHER));
}

static void json(void **state)
{
	_cleanup_(command_run_deinit) struct command_run r = {0};
	_cleanup_(json_decrefp) json_t *object = NULL;
	const json_t *pod, *process;

	inspect(*state, "--json --metadata=runtime --select ^shop/ --name=shop/", &r);
	assert_int_equal(r.status, CMD_DONE);
	object = json_loadb(r.out.data, r.out.len, JSON_REJECT_DUPLICATES, NULL);
	assert_non_null(object);
	assert_int_equal(json_object_size(object), 14);
	assert_true(json_is_false(json_object_get(object, "slow")));
	assert_true(json_is_null(json_object_get(object, "user")));
	assert_string_equal(json_string_value(json_object_get(object, "name")), "shop/web-1/web");
	assert_true(json_is_true(json_object_get(object, "profiled")));
	assert_true(json_is_null(json_object_get(object, "excluded")));
	assert_true(json_is_null(json_object_get(object, "outer_container")));
	assert_string_equal(json_string_value(json_object_get(object, "pod_uid")), UID1);
	pod = json_object_get(json_object_get(object, "labels"), "pod");
	assert_string_equal(json_string_value(json_object_get(pod, "value")), "web-1");
	assert_string_equal(json_string_value(json_object_get(pod, "from")), "containerd");
	assert_int_equal(json_array_size(json_object_get(object, "processes")), 2);
	process = json_array_get(json_object_get(object, "processes"), 0);
	assert_int_equal(json_integer_value(json_object_get(process, "pid")), 101);
}

struct output_row {
	const char *arguments;
	int status;
	const char *out;
	const char *err;
};

static const struct output_row output_rows[] = {
	{"--help", CMD_DONE, "usage: podprof inspect targets", NULL},
	{"--bogus", CMD_USAGE, NULL, "--bogus"},
	{"--name", CMD_USAGE, NULL, "after '--name'"},
	{"--select (", CMD_USAGE, NULL, "--select"},
	{"--config /nonexistent", CMD_USAGE, NULL, "/nonexistent"},
	{"--metadata kubelet", CMD_FAILED, NULL, "cannot start the lookup of names"},
	{"--cgroupfs-root /nonexistent", CMD_FAILED, NULL, "--cgroupfs-root"},
	{"--json --name nobody", CMD_NOTHING, NULL, NULL},
};

static void outputs(void **state)
{
	for (size_t i = 0; i < array_size(output_rows); i++) {
		const struct output_row *row = &output_rows[i];
		_cleanup_(command_run_deinit) struct command_run r = {0};

		row_begin(row->arguments);
		inspect(*state, row->arguments, &r);
		command_assert(&r, row->status, row->out, row->err);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

/* The sandbox has the names of its pod, and no container's. */
static void sandbox(void **state)
{
	struct tree *tree = *state;
	_cleanup_(command_run_deinit) struct command_run r = {0};

	add_container(tree, "kubepods/pod" UID1 "/" PAUSE, "104\n");
	add_process(tree, "104", STAT("104", "pause"));
	tree_mkdir(tree->fd, TASKS PAUSE);
	tree_write(tree->fd, TASKS PAUSE "/config.json",
		   "{\"annotations\":{\"io.kubernetes.cri.container-type\":\"sandbox\","
		   "\"io.kubernetes.cri.sandbox-namespace\":\"shop\","
		   "\"io.kubernetes.cri.sandbox-name\":\"web-1\","
		   "\"io.kubernetes.cri.sandbox-uid\":\"" UID1 "\"}}");
	inspect(tree, "--metadata runtime --brief --name web-1", &r);
	assert_int_equal(r.status, CMD_DONE);
	command_assert_has(&r.out,
			   "shop/web-1      sandbox            1  web-1                     yes\n");
	command_assert_has(&r.out,
			   "shop/web-1/web  container          2  web-1                     yes\n");
	command_assert_has(&r.out, "1 containers, 1 sandboxes, 0 units,");
}

int main(void)
{
	const struct CMUnitTest tests[] = {TEST(text), TEST(brief), TEST(json), TEST(sandbox),
					   TEST(outputs)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
