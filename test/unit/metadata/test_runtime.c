// SPDX-License-Identifier: Apache-2.0
/* The runtimes' state files, in a directory in place of the node's root. */
#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/root.h"
#include "metadata/runtime.h"
#include "support/allocfail.h"
#include "support/tree.h"

#define DATA		   "test/data/runtime"
#define UID		   "2c48913c-b29f-11e7-9350-020968147796"
#define ID		   "6d5ffa3e53a1a1e2d3f9a0b4c5d6e7f8091a2b3c4d5e6f708192a3b4c5d6e7f8"
#define CRIO_ID		   "49f9e8e5395d57c1083996c09e2e6f042d5fe1ec0310facab32f94912b35ce59"
#define SANDBOX_ID	   "5be1a1c3d0f9a0b4c5d6e7f8091a2b3c4d5e6f708192a3b4c5d6e7f80a1b2c3d"
#define COMPOSE_ID	   "52b876149e27cd26ab722e465c2ddec45235a34b71013a306520997b2cb6681c"
#define K8S_ID		   "3ffc23e0d62497b0e893049d0e7ff531e373b24207361a3b0d49930eb5f5ffb8"
#define PODMAN_ID	   "f20816b046f3aebac97c42ba086e0f5990062bd000e08036a88a0bbf5f457f60"
#define BUNDLE(state, id)  state "/io.containerd.runtime.v2.task/k8s.io/" id "/config.json"
#define CONFIG		   BUNDLE("run/containerd", ID)
#define DOCKERD(state, id) state "/io.containerd.runtime.v2.task/moby/" id "/config.json"
#define HOSTNAME(source) \
	"{\"mounts\":[{\"destination\":\"/etc/hostname\",\"source\":\"" source "\"}]}"
#define POD_TEXT                                                                               \
	"\"io.kubernetes.cri.sandbox-namespace\":\"shop\",\"io.kubernetes.cri.sandbox-name\":" \
	"\"web-1\""
#define STORAGE_CONF "etc/containers/storage.conf"
#define LINK_TARGET  "/var/log/pods/shop_web-1_" UID "/web/0.log"

/* A file or link of the node. */
struct node_file {
	const char *path;
	const char *data; /* a file of DATA, */
	const char *text; /* or the text of the file, */
	const char *link; /* or the target of the link */
	int mode;	  /* S_IFIFO: a FIFO instead; 0 means 0600 */
	uid_t owner;
};

struct row {
	const char *name;
	struct node_file files[4];
	const char *id;
	const char *uid;
	int outcome;
	const char *source;
	const char *pod; /* "namespace/pod/uid/container" */
	const char *plain;
	const char *image;
	const char *label; /* "key=value" of the container or the pod */
	bool sandbox;
};

static void make_file(const struct tree *node, const struct node_file *file)
{
	_cleanup_(buf_deinit) struct buf bytes = BUF_INIT(1u << 20);
	_cleanup_(root_deinit) struct root data = ROOT_INIT;
	char folder[TREE_PATH_MAX];

	snprintf(folder, sizeof(folder), "%.*s", (int)(strrchr(file->path, '/') - file->path),
		 file->path);
	tree_mkdir(node->fd, folder);
	if (file->link)
		assert_int_equal(symlinkat(file->link, node->fd, file->path), 0);
	else if (file->mode & S_IFIFO)
		assert_int_equal(mkfifoat(node->fd, file->path, 0600), 0);
	else if (file->text)
		tree_write(node->fd, file->path, file->text);
	if (file->data) {
		assert_int_equal(root_open(DATA, &data), 0);
		assert_int_equal(root_read(&data, file->data, &bytes), 0);
		tree_write(node->fd, file->path, bytes.data);
	}
	if (file->owner)
		assert_int_equal(fchownat(node->fd, file->path, file->owner, file->owner,
					  AT_SYMLINK_NOFOLLOW),
				 0);
	if (file->mode & 0777)
		assert_int_equal(fchmodat(node->fd, file->path, file->mode & 0777, 0), 0);
}

#define DOCKER_POD(type, name)                                                           \
	"{\"Config\":{\"Labels\":{\"io.kubernetes.docker.type\":\"" type "\","           \
	"\"io.kubernetes.container.name\":\"web\",\"io.kubernetes.pod.name\":\"web-1\"," \
	"\"io.kubernetes.pod.namespace\":\"shop\",\"io.kubernetes.pod.uid\":\"" UID      \
	"\"}},\"Name\":\"/" name "\"}"

static const struct row rows[] = {
	{"nothing", {{0}}, .id = ID, .uid = UID, .outcome = STATEFILE_GONE},
	{"no id that a runtime gives", {{0}}, .id = "../../etc", .outcome = STATEFILE_GONE},
	{"containerd",
	 {{CONFIG, .data = "containerd.json"}},
	 .id = ID,
	 .uid = UID,
	 .source = "containerd",
	 .pod = "shop/web-5d4f8c7b9-abcde/" UID "/web",
	 .image = "docker.io/library/shop:1"},
	{"containerd of k3s",
	 {{BUNDLE("run/k3s/containerd", ID), .data = "containerd.json"}},
	 .id = ID,
	 .source = "containerd",
	 .pod = "shop/web-5d4f8c7b9-abcde/" UID "/web"},
	{"containerd, a sandbox",
	 {{CONFIG,
	   .text = "{\"annotations\":{\"io.kubernetes.cri.container-type\":\"sandbox\"," POD_TEXT
		   "}}"}},
	 .id = ID,
	 .source = "containerd",
	 .pod = "shop/web-1//",
	 .sandbox = true},
	{"nerdctl",
	 {{"run/containerd/io.containerd.runtime.v2.task/default/" ID "/config.json",
	   .text = "{\"annotations\":{\"nerdctl/name\":\"db\"}}"}},
	 .id = ID,
	 .source = "containerd",
	 .plain = "db"},
	{"an absolute link stays on the node",
	 {{"run/containerd", .link = "/data/containerd"},
	  {"data/containerd/io.containerd.runtime.v2.task/k8s.io/" ID "/config.json",
	   .data = "containerd.json"}},
	 .id = ID,
	 .source = "containerd",
	 .pod = "shop/web-5d4f8c7b9-abcde/" UID "/web"},
	{"a link out of the node leads nowhere",
	 {{"run/containerd", .link = "../../../../../../../../../proc/self/cwd/" DATA}},
	 .id = ID,
	 .outcome = STATEFILE_GONE},
	{"a FIFO", {{CONFIG, .mode = S_IFIFO}}, .id = ID, .outcome = STATEFILE_ODD},
	{"somebody else's",
	 {{CONFIG, .data = "containerd.json", .owner = 1000}},
	 .id = ID,
	 .outcome = STATEFILE_ODD},
	{"open to others",
	 {{CONFIG, .data = "containerd.json", .mode = 0602}},
	 .id = ID,
	 .outcome = STATEFILE_ODD},
	{"open to the group",
	 {{CONFIG, .data = "containerd.json", .mode = 0620}},
	 .id = ID,
	 .outcome = STATEFILE_ODD},
	{"no JSON", {{CONFIG, .text = "annotations"}}, .id = ID, .outcome = STATEFILE_ODD},
	{"cut short",
	 {{CONFIG, .text = "{\"annotations\":{" POD_TEXT "}"}},
	 .id = ID,
	 .outcome = STATEFILE_ODD},
	{"annotations that are none",
	 {{CONFIG, .text = "{\"annotations\":[1]}"}},
	 .id = ID,
	 .outcome = STATEFILE_ODD},
	{"no annotations", {{CONFIG, .text = "{}"}}, .id = ID, .outcome = STATEFILE_ODD},
	{"annotations of something else",
	 {{CONFIG, .text = "{\"annotations\":{\"a\":\"b\"}}"}},
	 .id = ID,
	 .outcome = STATEFILE_ODD},
	{"broken annotations",
	 {{CONFIG, .text = "{\"annotations\":{\"a\"}}"}},
	 .id = ID,
	 .outcome = STATEFILE_ODD},
	{"said twice",
	 {{CONFIG, .text = "{\"annotations\":{\"a\":\"b\"},\"annotations\":{" POD_TEXT "}}"}},
	 .id = ID,
	 .source = "containerd",
	 .pod = "shop/web-1//"},
	{"CRI-O, with its sandbox's labels",
	 {{"run/containers/storage/overlay-containers/" CRIO_ID "/userdata/config.json",
	   .data = "crio.json"},
	  {"run/containers/storage/overlay-containers/" SANDBOX_ID "/userdata/config.json",
	   .data = "crio-sandbox.json"}},
	 .id = CRIO_ID,
	 .uid = UID,
	 .source = "crio",
	 .pod = "shop/web-5d4f8c7b9-abcde/" UID "/web",
	 .image = "docker.io/library/shop:1",
	 .label = "pod-template-hash=5d4f8c7b9"},
	{"CRI-O, without its sandbox",
	 {{"var/lib/containers/storage/overlay-containers/" CRIO_ID "/userdata/config.json",
	   .data = "crio.json"}},
	 .id = CRIO_ID,
	 .uid = UID,
	 .source = "crio",
	 .pod = "shop/web-5d4f8c7b9-abcde/" UID "/web"},
	{"CRI-O, a sandbox",
	 {{"run/containers/storage/overlay-containers/" SANDBOX_ID "/userdata/config.json",
	   .data = "crio-sandbox.json"}},
	 .id = SANDBOX_ID,
	 .uid = UID,
	 .source = "crio",
	 .pod = "shop/web-5d4f8c7b9-abcde/" UID "/",
	 .label = "app.kubernetes.io/name=web",
	 .sandbox = true},
	{"Docker's Compose",
	 {{"var/lib/docker/containers/" COMPOSE_ID "/config.v2.json",
	   .data = "docker-compose.json"}},
	 .id = COMPOSE_ID,
	 .source = "docker",
	 .plain = "shop-web-1",
	 .image = "shop:1",
	 .label = "com.docker.compose.project=shop"},
	{"Docker in Kubernetes",
	 {{"var/lib/docker/containers/" K8S_ID "/config.v2.json",
	   .data = "docker-kubernetes.json"}},
	 .id = K8S_ID,
	 .uid = UID,
	 .source = "docker",
	 .pod = "shop/web-5d4f8c7b9-abcde/" UID "/web",
	 .plain = "k8s_web_web-5d4f8c7b9-abcde_shop_" UID "_0"},
	{"Docker's sandbox in Kubernetes",
	 {{"var/lib/docker/containers/" ID "/config.v2.json",
	   .text = DOCKER_POD("podsandbox", "k8s_POD_web-1_shop_" UID "_0")}},
	 .id = ID,
	 .uid = UID,
	 .source = "docker",
	 .pod = "shop/web-1/" UID "/",
	 .plain = "k8s_POD_web-1_shop_" UID "_0",
	 .sandbox = true},
	{"an image with a pod's labels",
	 {{"var/lib/docker/containers/" ID "/config.v2.json",
	   .text = DOCKER_POD("container", "mine")}},
	 .id = ID,
	 .source = "docker",
	 .plain = "mine",
	 .label = "io.kubernetes.pod.name=web-1"},
	{"an image with a sandbox's labels, run by another pod",
	 {{"var/lib/docker/containers/" ID "/config.v2.json",
	   .text = DOCKER_POD("podsandbox", "k8s_web_other_shop_" UID "_0")}},
	 .id = ID,
	 .source = "docker",
	 .plain = "k8s_web_other_shop_" UID "_0"},
	{"Docker's other place",
	 {{DOCKERD("run/docker/containerd/daemon", COMPOSE_ID), .data = "docker-bundle.json"},
	  {"mnt/docker/containers/" COMPOSE_ID "/config.v2.json", .data = "docker-compose.json"}},
	 .id = COMPOSE_ID,
	 .source = "docker",
	 .plain = "shop-web-1"},
	{"Docker's other place, with the node's containerd, users remapped, another's network",
	 {{DOCKERD("run/containerd", COMPOSE_ID),
	   .text = "{\"mounts\":[{\"destination\":\"/proc\",\"source\":\"proc\"},7,"
		   "{\"destination\":\"/etc/hostname\",\"source\":"
		   "\"/mnt/docker/165536.165536/containers/" K8S_ID "/hostname\"}]}"},
	  {"mnt/docker/165536.165536/containers/" COMPOSE_ID "/config.v2.json",
	   .data = "docker-compose.json"}},
	 .id = COMPOSE_ID,
	 .source = "docker",
	 .plain = "shop-web-1"},
	{"Docker's bundle leads out of the node",
	 {{DOCKERD("run/containerd", ID), .text = HOSTNAME("/../../../../../proc/self/cwd/a/b")}},
	 .id = ID,
	 .outcome = STATEFILE_GONE},
	{"Docker's bundle names no directory",
	 {{DOCKERD("run/docker/containerd/daemon", ID), .text = HOSTNAME("//hostname")},
	  {DOCKERD("run/containerd", ID), .text = "{\"mounts\":{\"destination\":[]}}"}},
	 .id = ID,
	 .outcome = STATEFILE_GONE},
	{"Docker's bundle is somebody's",
	 {{DOCKERD("run/containerd", ID), .text = HOSTNAME("/mnt/a/hostname"), .mode = 0666},
	  {"mnt/" ID "/config.v2.json", .text = "{\"Name\":\"/x\"}"}},
	 .id = ID,
	 .outcome = STATEFILE_ODD},
	{"Docker's members twice",
	 {{"var/lib/docker/containers/" ID "/config.v2.json",
	   .text = "{\"Config\":{\"Labels\":{\"io.kubernetes.pod.name\":\"a\","
		   "\"io.kubernetes.pod.namespace\":\"s\"}},\"Config\":{},\"Name\":\"/x\"}"}},
	 .id = ID,
	 .source = "docker",
	 .plain = "x"},
	{"Podman",
	 {{"var/lib/containers/storage/overlay-containers/containers.json",
	   .data = "podman-containers.json"},
	  {"var/lib/containers/storage/overlay-containers/" PODMAN_ID "/userdata/config.json",
	   .data = "podman-config.json"}},
	 .id = PODMAN_ID,
	 .source = "podman",
	 .plain = "shop-rm",
	 .image = "localhost/shop:1"},
	{"Podman, another list",
	 {{"var/lib/containers/storage/overlay-containers/containers.json", .text = "[]"},
	  {"var/lib/containers/storage/overlay-containers/volatile-containers.json",
	   .data = "podman-containers.json"}},
	 .id = PODMAN_ID,
	 .source = "podman",
	 .plain = "shop-rm"},
	{"Podman, another driver",
	 {{"var/lib/containers/storage/overlay-containers/containers.json", .text = "[]"},
	  {"var/lib/containers/storage/vfs-containers/containers.json",
	   .data = "podman-containers.json"}},
	 .id = PODMAN_ID,
	 .source = "podman",
	 .plain = "shop-rm"},
	{"Podman, another place",
	 {{STORAGE_CONF, .text = "[storage]\n# graphroot = \"/a\"\ndriver = \"zfs\"\n "
				 "graphroot=\"//srv/c\" # ours\n"},
	  {"srv/c/zfs-containers/volatile-containers.json", .data = "podman-containers.json"}},
	 .id = PODMAN_ID,
	 .source = "podman",
	 .plain = "shop-rm"},
	{"CRI-O, another place",
	 {{STORAGE_CONF, .text = "[storage]\nrunroot = '/srv/c'"},
	  {"srv/c/overlay-containers/" CRIO_ID "/userdata/config.json", .data = "crio.json"}},
	 .id = CRIO_ID,
	 .source = "crio",
	 .pod = "shop/web-5d4f8c7b9-abcde/" UID "/web"},
	{"Podman's settings lead out of the node",
	 {{STORAGE_CONF,
	   .text = "graphroot = \"../../../../../../../../proc/self/cwd/" DATA "\"\n"}},
	 .id = PODMAN_ID,
	 .outcome = STATEFILE_GONE},
	{"Podman's settings name nothing",
	 {{STORAGE_CONF,
	   .text = "graphroot\ngraphroot =\ngraphroot = \"\nrunroot = 7\n= \"x\"\n\"\n"}},
	 .id = PODMAN_ID,
	 .outcome = STATEFILE_GONE},
	{"Podman's settings are somebody's",
	 {{STORAGE_CONF, .text = "graphroot = \"/srv/c\"", .mode = 0666},
	  {"srv/c/overlay-containers/containers.json", .data = "podman-containers.json"}},
	 .id = PODMAN_ID,
	 .outcome = STATEFILE_ODD},
	{"Podman, a list that is none",
	 {{"var/lib/containers/storage/overlay-containers/containers.json", .text = "[{}"}},
	 .id = PODMAN_ID,
	 .outcome = STATEFILE_ODD},
	{"Podman, without a name",
	 {{"var/lib/containers/storage/overlay-containers/containers.json",
	   .text = "[{\"id\":\"" ID "\",\"names\":[]}]"}},
	 .id = ID,
	 .outcome = STATEFILE_ODD},
	{"a log's link",
	 {{"var/log/containers/web-0_shop_web-" COMPOSE_ID ".log", .link = LINK_TARGET},
	  {"var/log/containers/web-1_shop_web-" ID ".log", .link = LINK_TARGET}},
	 .id = ID,
	 .source = "podlogs",
	 .pod = "shop/web-1/" UID "/web"},
	{"a log's link of somebody else",
	 {{"var/log/containers/web-1_shop_web-" ID ".log", .link = LINK_TARGET, .owner = 1000}},
	 .id = ID,
	 .outcome = STATEFILE_GONE},
	{"a log's link to elsewhere",
	 {{"var/log/containers/web-1_shop_web-" ID ".log", .link = "/var/log/pods/shop/web/0.log"}},
	 .id = ID,
	 .outcome = STATEFILE_ODD},
	{"a short id is nobody's",
	 {{"var/log/containers/web-1_shop_web-6d5ffa3e53a1a1.log", .link = LINK_TARGET}},
	 .id = ID,
	 .outcome = STATEFILE_GONE},
	{"a pod's directory of logs",
	 {{"var/log/pods/shop_web-1_" UID "/web/0.log", .text = ""},
	  {"var/log/pods/lost+found/x", .text = ""}},
	 .id = ID,
	 .uid = UID,
	 .source = "podlogs",
	 .pod = "shop/web-1/" UID "/"},
	{"a pod's directory of logs, for what has no id",
	 {{"var/log/pods/shop_web-1_" UID "/web/0.log", .text = ""}},
	 .id = "",
	 .uid = UID,
	 .source = "podlogs",
	 .pod = "shop/web-1/" UID "/"},
};

static void check(const struct row *row, const struct container *c)
{
	char text[512] = "";

	assert_string_equal(c->source, row->source);
	if (c->pod)
		snprintf(text, sizeof(text), "%s/%s/%s/%s", c->pod->namespace, c->pod->name,
			 c->pod->uid, c->pod->n_containers ? c->pod->containers[0].name : "");
	assert_string_equal(text, row->pod ? row->pod : "");
	assert_string_equal(c->name, row->plain ? row->plain : "");
	if (row->image)
		assert_string_equal(c->image, row->image);
	assert_int_equal(c->sandbox, row->sandbox);
	if (row->label) {
		size_t n = strcspn(row->label, "=");

		snprintf(text, sizeof(text), "%.*s", (int)n, row->label);
		assert_string_equal(c->pod ? pod_label(c->pod, text) : container_label(c, text),
				    row->label + n + 1);
	}
}

static void make_node(struct tree *node, const struct row *row)
{
	tree_init(node);
	for (size_t i = 0; i < array_size(row->files) && row->files[i].path; i++)
		make_file(node, &row->files[i]);
}

static void test_rows(void **state)
{
	for (size_t i = 0; i < array_size(rows); i++) {
		struct container *c = NULL;
		struct runtime runtime;
		struct tree node;

		row_begin(rows[i].name);
		make_node(&node, &rows[i]);
		assert_int_equal(runtime_init(&runtime, node.path), 0);
		assert_int_equal(
			runtime_read(&runtime, rows[i].id, rows[i].uid ? rows[i].uid : "", &c),
			rows[i].outcome);
		if (!rows[i].outcome)
			check(&rows[i], c);
		container_free(c);
		runtime_deinit(&runtime);
		tree_deinit(&node);
	}
}

static int attempt(void *ctx)
{
	const struct row *row = ctx;
	struct container *c = NULL;
	struct runtime runtime;
	struct tree node;
	int r;

	snprintf(node.path, sizeof(node.path), "%s", row->name);
	r = runtime_init(&runtime, node.path);
	if (!r)
		r = runtime_read(&runtime, row->id, row->uid ? row->uid : "", &c);
	runtime_deinit(&runtime);
	container_free(c);
	return r;
}

static void without_memory(void **state)
{
	for (size_t i = 0; i < array_size(rows); i++) {
		struct row row = rows[i];
		struct tree node;

		if (row.outcome)
			continue;
		row_begin(row.name);
		make_node(&node, &row);
		row.name = node.path;
		allocfail_survive(attempt, &row);
		tree_deinit(&node);
	}
}

/* The kubelet truncates at 251 characters, in the middle of the id. */
static void a_link_that_is_cut(void **state)
{
	char name[512], path[600], pod[200];
	struct container *c;
	struct runtime runtime;
	struct tree node;

	memset(pod, 'p', sizeof(pod));
	for (int n = 160; n < 195; n++) {
		struct node_file file = {.path = path, .link = LINK_TARGET};

		snprintf(name, sizeof(name), "%.*s_shop_web-%s", n, pod, ID);
		snprintf(path, sizeof(path), "var/log/containers/%.251s.log", name);
		tree_init(&node);
		make_file(&node, &file);
		assert_int_equal(runtime_init(&runtime, node.path), 0);
		assert_int_equal(runtime_read(&runtime, ID, "", &c), 0);
		container_free(c);
		/* The link of a different container. */
		assert_int_equal(runtime_read(&runtime, COMPOSE_ID, "", &c), STATEFILE_GONE);
		runtime_deinit(&runtime);
		tree_deinit(&node);
	}
}

static void huge_files(void **state)
{
	static char bytes[STATEFILE_VALUE_MAX + 4096];
	struct container *c;
	struct runtime runtime;
	struct tree node;
	int fd;

	tree_init(&node);
	tree_mkdir(node.fd, "run/containerd/io.containerd.runtime.v2.task/k8s.io/" ID);
	/* Unwanted parts may have any size up to the file's limit. */
	snprintf(bytes, sizeof(bytes),
		 "{\"process\":{\"env\":[\"%*s\"]},\"annotations\":{" POD_TEXT "}}",
		 STATEFILE_VALUE_MAX, "");
	tree_write(node.fd, CONFIG, bytes);
	assert_int_equal(runtime_init(&runtime, node.path), 0);
	assert_int_equal(runtime_read(&runtime, ID, "", &c), 0);
	container_free(c);
	snprintf(bytes, sizeof(bytes), "{\"annotations\":{\"a\":\"%*s\"," POD_TEXT "}}",
		 STATEFILE_VALUE_MAX, "");
	tree_write(node.fd, CONFIG, bytes);
	assert_int_equal(runtime_read(&runtime, ID, "", &c), STATEFILE_ODD);
	fd = openat(node.fd, CONFIG, O_WRONLY | O_CLOEXEC);
	assert_int_equal(ftruncate(fd, (off_t)STATEFILE_BYTES_MAX + 1), 0);
	close(fd);
	assert_int_equal(runtime_read(&runtime, ID, "", &c), STATEFILE_ODD);
	runtime_deinit(&runtime);
	tree_deinit(&node);
}

static void no_node(void **state)
{
	struct container *c;
	struct runtime runtime;

	assert_int_equal(runtime_init(&runtime, "/nowhere"), STATEFILE_GONE);
	assert_int_equal(runtime_read(&runtime, ID, UID, &c), STATEFILE_GONE);
	runtime_deinit(&runtime);
}

/* A runtime that is installed while podprof runs, and folders without room in the memory. */
static void missing_folders(void **state)
{
	char folders[STATEFILES_MISSING_MAX + 2][16];
	struct statefiles files = STATEFILES_INIT;
	struct tree node;

	tree_init(&node);
	tree_mkdir(node.fd, "run/there");
	assert_int_equal(statefiles_open(node.path, &files), 0);
	assert_false(statefiles_miss(&files, "run/there"));
	for (size_t i = 0; i < array_size(folders); i++) {
		snprintf(folders[i], sizeof(folders[i]), "run/%zu", i);
		assert_true(statefiles_miss(&files, folders[i]));
		tree_mkdir(node.fd, folders[i]);
	}
	/* is asked again each time */
	assert_false(statefiles_miss(&files, folders[STATEFILES_MISSING_MAX]));
	usleep(STATEFILES_MISSING_NS / NSEC_PER_USEC + 1000);
	for (size_t i = 0; i < array_size(folders); i++)
		assert_false(statefiles_miss(&files, folders[i]));
	statefiles_deinit(&files);
	tree_deinit(&node);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(without_memory),
		cmocka_unit_test(a_link_that_is_cut),
		cmocka_unit_test(huge_files),
		cmocka_unit_test(no_node),
		cmocka_unit_test(missing_folders),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
