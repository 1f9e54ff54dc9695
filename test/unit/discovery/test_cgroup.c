// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <string.h>

#include "base/buf.h"
#include "base/root.h"
#include "discovery/cgroup.h"
#include "discovery/cgroup_line.h"

#define VECTORS	      "test/data/cgroup"
#define VECTORS_BYTES (1u << 20)
#define N_VECTORS     163

#define ID1	 "73051af271105c07e1f493b34856a77e665e3b0b4fc72f76c807dfbffeb881bd"
#define HEX63	 "3051AF271105C07E1F493B34856A77E665E3B0B4FC72F76C807DFBFFEB881BD"
#define CAPITALS "7" HEX63
#define ID2	 "40c03570b6f4c30bc8d69923d37ee698f5cfcced92c7b7df1c47f6f7887378a9"
#define POD	 "2c48913c-b29f-11e7-9350-020968147796"

/* The escapes of the first column, in place. */
static size_t vector_unescape(char *s, size_t n)
{
	size_t to = 0;

	for (size_t i = 0; i < n; i++) {
		char c = s[i];

		if (c == '\\' && i + 1 < n) {
			c = s[++i];
			if (c == 'n')
				c = '\n';
			else if (c == 'r')
				c = '\r';
			else if (c == 't')
				c = '\t';
		}
		s[to++] = c;
	}
	return to;
}

static void assert_column(struct strview *row, const char *value)
{
	struct strview column;
	_cleanup_(freep) char *s = NULL;

	assert_true(strview_until(row, '\t', &column));
	s = strview_dup(column);
	assert_non_null(s);
	assert_string_equal(value && *value ? value : "-", s);
}

static void test_vectors(void **state)
{
	_cleanup_(root_deinit) struct root dir = ROOT_INIT;
	_cleanup_(buf_deinit) struct buf file = BUF_INIT(VECTORS_BYTES);
	struct strview rows, row, input;
	size_t n = 0;

	(void)state;
	assert_int_equal(root_open(VECTORS, &dir), 0);
	assert_int_equal(root_read(&dir, "vectors.tsv", &file), 0);
	rows = strview_of_bytes(file.data, file.len);
	assert_true(strview_until(&rows, '\n', &row)); /* the header */
	while (strview_until(&rows, '\n', &row)) {
		_cleanup_(freep) char *s = NULL;
		struct cgroup_id id;

		assert_true(strview_until(&row, '\t', &input));
		s = strview_dup(input);
		assert_non_null(s);
		print_message("row: %s\n", s);
		cgroup_parse(strview_of_bytes(s, vector_unescape(s, strlen(s))), &id);
		assert_column(&row, cgroup_runtime_name(id.runtime));
		assert_column(&row, id.container_id);
		assert_column(&row, id.pod_uid);
		assert_column(&row, cgroup_qos_name(id.qos));
		assert_column(&row, cgroup_kind_name(id.kind));
		n++;
	}
	assert_int_equal(n, N_VECTORS);
}

struct path_row {
	const char *name;
	const char *path;
	enum cgroup_runtime runtime;
	enum cgroup_kind kind;
	const char *container_id;
	const char *outer_id;
	const char *pod_uid;
	enum cgroup_qos qos;
};

static const struct path_row path_rows[] = {
	{"runc by itself", "/system.slice/runc-" ID1 ".scope", CGROUP_RUNTIME_RUNC,
	 CGROUP_KIND_CONTAINER, ID1, "", "", 0},
	{"nerdctl", "/system.slice/nerdctl-" ID1 ".scope", CGROUP_RUNTIME_CONTAINERD,
	 CGROUP_KIND_CONTAINER, ID1, "", "", 0},
	{"a prefix nobody knows", "/system.slice/foo-" ID1 ".scope", CGROUP_RUNTIME_NONE,
	 CGROUP_KIND_NONE, "", "", "", 0},
	{"capital letters in a UID", "/kubepods/pod2C48913C-B29F-11E7-9350-020968147796",
	 CGROUP_RUNTIME_UNKNOWN, CGROUP_KIND_POD, "", "", "2C48913C-B29F-11E7-9350-020968147796",
	 CGROUP_QOS_GUARANTEED},
	{"docker in docker", "/docker/" ID1 "/docker/" ID2, CGROUP_RUNTIME_DOCKER,
	 CGROUP_KIND_CONTAINER, ID2, ID1, "", 0},
	{"docker in a pod", "/kubepods/burstable/pod" POD "/" ID1 "/docker/" ID2,
	 CGROUP_RUNTIME_DOCKER, CGROUP_KIND_CONTAINER, ID2, ID1, POD, CGROUP_QOS_BURSTABLE},
	{"a monitor on the way does not hide the outer one", "/docker/" ID1 "/conmon/" ID2,
	 CGROUP_RUNTIME_UNKNOWN, CGROUP_KIND_CONTAINER, ID2, ID1, "", 0},
	{"a user's container",
	 "/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" ID1 ".scope",
	 CGROUP_RUNTIME_PODMAN, CGROUP_KIND_CONTAINER, ID1, "user@1000.service", "", 0},
	{"a user's manager inside a container is the container's",
	 "/docker/" ID1 "/user@1000.service/docker-" ID2 ".scope", CGROUP_RUNTIME_DOCKER,
	 CGROUP_KIND_CONTAINER, ID2, ID1, "", 0},
	{"a container of Podman's pod", "/libpod_parent/" ID1 "/libpod-" ID2, CGROUP_RUNTIME_PODMAN,
	 CGROUP_KIND_CONTAINER, ID2, "", "", 0},
	{"Podman's pod", "/libpod_parent/" ID1, CGROUP_RUNTIME_NONE, CGROUP_KIND_NONE, "", "", "",
	 0},
	{"LXC's own directory in one that its settings name", "/lxc/web1/lxc.payload.web1",
	 CGROUP_RUNTIME_LXC, CGROUP_KIND_CONTAINER, "web1", "", "", 0},
	{"LXC's in LXC's", "/lxc/web1/ns/lxc.payload.web2", CGROUP_RUNTIME_LXC,
	 CGROUP_KIND_CONTAINER, "web2", "web1", "", 0},
	{"LXC's monitor in one that its settings name", "/lxc/web1/lxc.monitor.web1",
	 CGROUP_RUNTIME_NONE, CGROUP_KIND_NONE, "", "", "", 0},
	{"some service that is no user's manager", "/system.slice/user@x.service/" ID1,
	 CGROUP_RUNTIME_UNKNOWN, CGROUP_KIND_CONTAINER, ID1, "", "", 0},
	{"three deep: the outermost", "/docker/" ID1 "/docker/" ID2 "/lxc/inner",
	 CGROUP_RUNTIME_LXC, CGROUP_KIND_CONTAINER, "inner", ID1, "", 0},
	{"a pod in a container in a container", "/docker/" ID1 "/docker/" ID2 "/kubepods/pod" POD,
	 CGROUP_RUNTIME_UNKNOWN, CGROUP_KIND_POD, "", ID1, POD, CGROUP_QOS_GUARANTEED},
	{"in a user's container", "/user.slice/user@1000.service/libpod-" ID1 "/docker/" ID2,
	 CGROUP_RUNTIME_DOCKER, CGROUP_KIND_CONTAINER, ID2, "user@1000.service", "", 0},
	{"a pod in a user's container", "/user.slice/user@1000.service/libpod-" ID1 "/pod" POD,
	 CGROUP_RUNTIME_UNKNOWN, CGROUP_KIND_POD, "", "user@1000.service", POD, 0},
	{"the inner kubelet's class",
	 "/kubepods/burstable/pod" POD "/" ID1 "/kubelet/kubepods/pod" POD "/" ID2,
	 CGROUP_RUNTIME_UNKNOWN, CGROUP_KIND_CONTAINER, ID2, ID1, POD, CGROUP_QOS_GUARANTEED},
	{"a class without kubepods", "/x-besteffort-pod" POD ".slice/crio-" ID1 ".scope",
	 CGROUP_RUNTIME_CRIO, CGROUP_KIND_CONTAINER, ID1, "", POD, CGROUP_QOS_BESTEFFORT},
	{"a unit that has the word in it", "/system.slice/besteffort.service", CGROUP_RUNTIME_NONE,
	 CGROUP_KIND_NONE, "", "", "", 0},
	{"besteffort not behind kubepods", "/kubepods/x/besteffort", CGROUP_RUNTIME_NONE,
	 CGROUP_KIND_NONE, "", "", "", 0},
	{"virtual machine", "/machine.slice/machine-qemu\\x2d1\\x2dvm.scope", CGROUP_RUNTIME_NONE,
	 CGROUP_KIND_NONE, "", "", "", 0},
	{"nspawn", "/machine.slice/machine-a\\x2db.scope/payload", CGROUP_RUNTIME_NSPAWN,
	 CGROUP_KIND_CONTAINER, "a-b", "", "", 0},
	{"nspawn as a service", "/machine.slice/systemd-nspawn@x.service/payload",
	 CGROUP_RUNTIME_NSPAWN, CGROUP_KIND_CONTAINER, "x", "", "", 0},
	{"nspawn's own part", "/machine.slice/systemd-nspawn@x.service/supervisor",
	 CGROUP_RUNTIME_NONE, CGROUP_KIND_NONE, "", "", "", 0},
	{"an escape that is none", "/machine.slice/machine-a\\x2.service", CGROUP_RUNTIME_NSPAWN,
	 CGROUP_KIND_CONTAINER, "a\\x2", "", "", 0},
	{"an escaped control character", "/machine.slice/machine-a\\x0a.service",
	 CGROUP_RUNTIME_NSPAWN, CGROUP_KIND_CONTAINER, "a\\x0a", "", "", 0},
	{"a control character", "/lxc/a\tb", CGROUP_RUNTIME_NONE, CGROUP_KIND_NONE, "", "", "", 0},
	{"the longest name", "/lxc/" ID1 "-" ID1 "-" /* 130 */, CGROUP_RUNTIME_NONE,
	 CGROUP_KIND_NONE, "", "", "", 0},
	{"nomad of old", "/nomad/share/416baca9-bc05-d4c4-29f0-d0feec4e355c.web",
	 CGROUP_RUNTIME_NOMAD, CGROUP_KIND_CONTAINER, "416baca9-bc05-d4c4-29f0-d0feec4e355c", "",
	 "", 0},
	{"a UUID and more, anywhere", "/x/416baca9-bc05-d4c4-29f0-d0feec4e355c.web",
	 CGROUP_RUNTIME_NONE, CGROUP_KIND_NONE, "", "", "", 0},
	{"ECS number too large", "/ecs/x/8a28a84664034325be01ca46b33d1dd3-18446744073709551616",
	 CGROUP_RUNTIME_NONE, CGROUP_KIND_NONE, "", "", "", 0},
	{"ECS in capitals", "/ecs/x/8A28A84664034325BE01CA46B33D1DD3-4092616770",
	 CGROUP_RUNTIME_ECS, CGROUP_KIND_CONTAINER, "8A28A84664034325BE01CA46B33D1DD3-4092616770",
	 "", "", 0},
	{"an ECS task's container in capitals",
	 "/ecs/8a28a846-6403-4325-be01-ca46b33d1dd3/" CAPITALS, CGROUP_RUNTIME_UNKNOWN,
	 CGROUP_KIND_CONTAINER, CAPITALS, "", "", 0},
	{"Docker in capitals", "/docker/" CAPITALS, CGROUP_RUNTIME_DOCKER, CGROUP_KIND_CONTAINER,
	 CAPITALS, "", "", 0},
	{"a scope in capitals", "/system.slice/docker-" CAPITALS ".scope", CGROUP_RUNTIME_DOCKER,
	 CGROUP_KIND_CONTAINER, CAPITALS, "", "", 0},
	{"capitals beyond F", "/docker/G" HEX63, CGROUP_RUNTIME_NONE, CGROUP_KIND_NONE, "", "", "",
	 0},
	{"slashes", "//docker///" ID1 "//", CGROUP_RUNTIME_DOCKER, CGROUP_KIND_CONTAINER, ID1, "",
	 "", 0},
	{"only dots", "/../..", CGROUP_RUNTIME_NONE, CGROUP_KIND_NONE, "", "", "", 0},
	{"empty", "", CGROUP_RUNTIME_NONE, CGROUP_KIND_NONE, "", "", "", 0},
	{"CRI-O's dropped sandbox",
	 "/kubepods.slice/kubepods-pod2c48913c_b29f_11e7_9350_020968147796.slice/crio-" ID1,
	 CGROUP_RUNTIME_CRIO, CGROUP_KIND_SANDBOX, ID1, "", POD, CGROUP_QOS_GUARANTEED},
	{"Kata's sandbox", "/kubepods/besteffort/pod" POD "/kata_" ID1, CGROUP_RUNTIME_KATA,
	 CGROUP_KIND_SANDBOX, ID1, "", POD, CGROUP_QOS_BESTEFFORT},
	{"Kata's threads elsewhere", "/kata_overhead/" ID1, CGROUP_RUNTIME_KATA,
	 CGROUP_KIND_SANDBOX, ID1, "", "", 0},
	{"a pod's own", "/kubepods/burstable/pod" POD, CGROUP_RUNTIME_UNKNOWN, CGROUP_KIND_POD, "",
	 "", POD, CGROUP_QOS_BURSTABLE},
	{"a pod's own slice",
	 "/kubepods.slice/kubepods-pod2c48913c_b29f_11e7_9350_020968147796.slice",
	 CGROUP_RUNTIME_UNKNOWN, CGROUP_KIND_POD, "", "", POD, CGROUP_QOS_GUARANTEED},
	{"seen from beside it", "/../../pod" POD, CGROUP_RUNTIME_UNKNOWN, CGROUP_KIND_POD, "", "",
	 POD, 0},
	{"a pod in a node in a container", "/docker/" ID1 "/kubelet/kubepods/pod" POD,
	 CGROUP_RUNTIME_UNKNOWN, CGROUP_KIND_POD, "", ID1, POD, CGROUP_QOS_GUARANTEED},
	{"a pod that a user has made up", "/user.slice/user@1000.service/pod" POD,
	 CGROUP_RUNTIME_UNKNOWN, CGROUP_KIND_POD, "", "user@1000.service", POD, 0},
	{"in a pod, and no container's", "/kubepods/pod" POD "/shim", CGROUP_RUNTIME_UNKNOWN,
	 CGROUP_KIND_POD, "", "", POD, CGROUP_QOS_GUARANTEED},
	{"below a container it is the container's", "/kubepods/pod" POD "/" ID1 "/shim",
	 CGROUP_RUNTIME_UNKNOWN, CGROUP_KIND_CONTAINER, ID1, "", POD, CGROUP_QOS_GUARANTEED},
	{"a monitor in a pod", "/kubepods/pod" POD "/crio-conmon-" ID1, CGROUP_RUNTIME_NONE,
	 CGROUP_KIND_NONE, "", "", POD, CGROUP_QOS_GUARANTEED},
	{"a container's directory with a monitor's name", "/kubepods/pod" POD "/" ID1 "/conmon",
	 CGROUP_RUNTIME_UNKNOWN, CGROUP_KIND_CONTAINER, ID1, "", POD, CGROUP_QOS_GUARANTEED},
	{"Podman's monitor in a container",
	 "/docker/" ID1 "/machine.slice/libpod-conmon-" ID2 ".scope", CGROUP_RUNTIME_DOCKER,
	 CGROUP_KIND_CONTAINER, ID1, "", "", 0},
	{"below a monitor's name, with the names of a service of the node",
	 "/docker/" ID1 "/system.slice/ssh.service/supervisor", CGROUP_RUNTIME_DOCKER,
	 CGROUP_KIND_CONTAINER, ID1, "", "", 0},
	{"a monitor in a pod of a node in a container",
	 "/docker/" ID1 "/kubepods/pod" POD "/crio-conmon-" ID2, CGROUP_RUNTIME_UNKNOWN,
	 CGROUP_KIND_POD, "", ID1, POD, CGROUP_QOS_GUARANTEED},
	{"LXC's monitor in a container of another runtime", "/docker/" ID1 "/lxc.monitor.web1",
	 CGROUP_RUNTIME_DOCKER, CGROUP_KIND_CONTAINER, ID1, "", "", 0},
	{"LXC's container makes a monitor's name", "/lxc.payload.web1/lxc.monitor.web1",
	 CGROUP_RUNTIME_LXC, CGROUP_KIND_CONTAINER, "web1", "", "", 0},
	{"deeper in LXC's container", "/lxc/web1/ns/lxc.monitor.web1", CGROUP_RUNTIME_LXC,
	 CGROUP_KIND_CONTAINER, "web1", "", "", 0},
	{"a mount unit in a container", "/docker/" ID1 "/system.slice/data.mount",
	 CGROUP_RUNTIME_DOCKER, CGROUP_KIND_CONTAINER, ID1, "", "", 0},
	{"a mount unit around it", "/system.slice/data.mount/" ID1, CGROUP_RUNTIME_NONE,
	 CGROUP_KIND_NONE, "", "", "", 0},
	{"kubepods in a container", "/kubepods/burstable/pod" POD "/" ID1 "/kubepods/burstable",
	 CGROUP_RUNTIME_UNKNOWN, CGROUP_KIND_CONTAINER, ID1, "", POD, CGROUP_QOS_BURSTABLE},
};

static void test_paths(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(path_rows); i++) {
		const struct path_row *row = &path_rows[i];
		struct cgroup_id id;

		row_begin(row->name);
		cgroup_parse_path(strview_of(row->path), &id);
		assert_int_equal(id.runtime, row->runtime);
		assert_int_equal(id.kind, row->kind);
		assert_string_equal(id.container_id, row->container_id);
		assert_string_equal(id.outer_id, row->outer_id);
		assert_string_equal(id.pod_uid, row->pod_uid);
		assert_int_equal(id.qos, row->qos);
	}
}

/* Directories that a container may make below its own, in any order. */
static const char *const inside[] = {
	"a",
	"conmon",
	"crio-conmon-" ID2 ".scope",
	"lxc.monitor.web1",
	"lxc.monitor",
	"lxc",
	"lxc.payload.x",
	"supervisor",
	"systemd-nspawn@x.service",
	"machine.slice",
	"machine-a.scope",
	"x.mount",
	"ssh.service",
	"user@0.service",
	"kubepods",
	"besteffort",
	"kubepods-pod" POD ".slice",
	"pod" POD,
	"libpod_parent",
	"docker",
	ID2,
	"docker-" ID2 ".scope",
	"crio-" ID2,
	"kata_" ID2,
	"kata_overhead",
	"a:docker:" ID2,
	"2c48913cb29f11e79350020968147796-123",
	"2c48913c-b29f-11e7-9350",
	"nomad",
	POD ".task.scope",
	"..",
};

static void assert_inside(const char *container, const char *a, const char *b, const char *c)
{
	struct cgroup_id outer, id;
	char path[1024];

	cgroup_parse_path(strview_of(container), &outer);
	snprintf(path, sizeof(path), "%s/%s/%s/%s", container, a, b, c);
	cgroup_parse_path(strview_of(path), &id);
	if (id.outer_id[0])
		assert_string_equal(id.outer_id, outer.container_id);
	else if (strcmp(id.container_id, outer.container_id) != 0 || !id.kind)
		fail_msg("%s is not in %s", path, container);
}

/* No name of a directory leads out of the container, or into another one. */
static void test_no_way_out(void **state)
{
	static const char *const containers[] = {
		"/kubepods/burstable/pod" POD "/" ID1,
		"/system.slice/docker-" ID1 ".scope",
		"/lxc.payload.web1",
	};
	const size_t n = array_size(inside);

	(void)state;
	for (size_t i = 0; i < array_size(containers); i++)
		for (size_t k = 0; k < n * n * n; k++)
			assert_inside(containers[i], inside[k / n / n], inside[k / n % n],
				      inside[k % n]);
}

/* Names up to the ceiling are whole; longer ones are refused, not truncated. */
static void test_name_length(void **state)
{
	char path[8 + CGROUP_ID_MAX];
	struct cgroup_id id;
	struct strview t;

	(void)state;
	t = strview_of_bytes(
		path, (size_t)snprintf(path, sizeof(path), "/lxc/%0*d", CGROUP_ID_MAX - 1, 7));
	cgroup_parse_path(t, &id);
	assert_int_equal(strlen(id.container_id), CGROUP_ID_MAX - 1);
	t = strview_of_bytes(path,
			     (size_t)snprintf(path, sizeof(path), "/lxc/%0*d", CGROUP_ID_MAX, 7));
	cgroup_parse_path(t, &id);
	assert_int_equal(id.kind, CGROUP_KIND_NONE);
}

static void test_lines(void **state)
{
	struct strview t =
		strview_of("12:cpu,cpuacct:/a:b/c (deleted)\nx:y:/z\n7:pids:\n0::/d\r\n");
	struct cgroup_line line;

	(void)state;
	assert_true(cgroup_line_next(&t, &line));
	assert_true(strview_is(&line.controllers, "cpu,cpuacct"));
	assert_true(strview_is(&line.path, "/a:b/c"));
	assert_false(line.unified);
	assert_true(cgroup_line_next(&t, &line));
	assert_true(strview_empty(&line.controllers));
	assert_true(strview_is(&line.path, "/d"));
	assert_true(line.unified);
	assert_false(cgroup_line_next(&t, &line));
}

/* Docker in Docker, with two of three hierarchies. */
static void test_inner_in_some_lines(void **state)
{
	static const char *const orders[] = {
		"2:pids:/docker/" ID1 "\n1:cpu:/docker/" ID1 "/docker/" ID2 "\n0::/docker/" ID1
		"\n",
		"1:cpu:/docker/" ID1 "/docker/" ID2 "\n0::/docker/" ID1 "\n",
	};

	(void)state;
	for (size_t i = 0; i < array_size(orders); i++) {
		struct cgroup_id id;

		cgroup_parse_proc(strview_of(orders[i]), &id);
		assert_string_equal(id.container_id, ID2);
		assert_string_equal(id.outer_id, ID1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vectors),	   cmocka_unit_test(test_paths),
		cmocka_unit_test(test_no_way_out), cmocka_unit_test(test_name_length),
		cmocka_unit_test(test_lines),	   cmocka_unit_test(test_inner_in_some_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
