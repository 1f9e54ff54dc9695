// SPDX-License-Identifier: Apache-2.0
/*
 * Containers, named by servers on loopback. Their cgroups are plain directories. The machine's own
 * cgroups contain other programs, and their number affects the time to the read of a container's
 * state.
 */
#include "support/test.h"

#include <ctype.h>
#include <errno.h>
#include <jansson.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/loop.h"
#include "base/nsec.h"
#include "base/root.h"
#include "discovery/discovery.h"
#include "naming/naming.h"
#include "relabel/pattern.h"
#include "relabel/relabel.h"
#include "support/metrics.h"
#include "support/sink.h"
#include "support/tree.h"
#include "support/until.h"

#define ID1 "5c07e1f493b34856a77e665e3b0b4fc72f76c807dfbffeb881bd73051af27110"
#define ID2 "b6f4c30bc8d69923d37ee698f5cfcced92c7b7df1c47f6f7887378a940c03570"
#define UID "8e1c90d3-0a5b-4b0e-9b1f-7a4471c0e2d5"

#define ID3	       "c7a5d41cd9e7a034e48fe7a6f0dfddf3d8c8ec82070528898881a94904b14681"
#define ID4	       "1b3319ed9c1d4cca681f9c102da9b015555785b6240c4e4619f11b535cabdc07"
#define ID5	       "0d9c1a6e5f1d4a7c2b3847566a9b8c7d6e5f40312233445566778899aabbccdd"
#define ID6	       "4f2d6b8e1a3c5d7f90817263544536271809fafbecddcebfa0918273645546ff"
#define RUNS(name, id) "{\"name\":\"" name "\",\"containerID\":\"containerd://" id "\"}"
#define STATUS	       "\"containerStatuses\":[" RUNS("web", ID1) "]"
#define STATUS_LATER   "\"containerStatuses\":[" RUNS("web", ID1) "," RUNS("late", ID3) "]"
#define POD(annotations, status)                                                                 \
	"{\"metadata\":{\"uid\":\"" UID                                                          \
	"\",\"namespace\":\"shop\",\"name\":\"web-5d4f8-x\",\"labels\":{\"pod-template-hash\":"  \
	"\"5d4f8\"},\"annotations\":{" annotations                                               \
	"},\"ownerReferences\":[{\"kind\":\"ReplicaSet\",\"name\":\"web-5d4f8\",\"controller\":" \
	"true}]},\"status\":{" status "}}"
#define LIST(items) \
	"{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"7\"},\"items\":[" items "]}"

/* What containerd keeps. */
#define BUNDLES "run/containerd/io.containerd.runtime.v2.task/k8s.io/"
#define BUNDLE(type)                                                           \
	"{\"annotations\":{\"io.kubernetes.cri.container-type\":\"" type "\"," \
	"\"io.kubernetes.cri.sandbox-namespace\":\"shop\","                    \
	"\"io.kubernetes.cri.sandbox-name\":\"web-1\","                        \
	"\"io.kubernetes.cri.sandbox-uid\":\"" UID "\","                       \
	"\"io.kubernetes.cri.container-name\":\"web\"}}"

struct fixture {
	struct root proc;
	struct tree cgroups;
	struct loop *loop;
	struct discovery *discovery;
	struct sink *kubelet;
	struct sink *apiserver;
	struct naming *naming;
	char token_file[64];
	char told[256];
	struct naming_settings settings;
	const char *host_root; /* of the runtimes' files; NULL: none */
	uint64_t (*cpu_ns)(void);
	uint64_t look_ns;
	uint64_t made; /* add_cgroup() */
	/* the awaited container */
	const char *id;
	const char *label;
	const char *value;
	const char *setting;
};

/* The container, and one missing from all statuses. */
static void make_cgroups(struct fixture *f)
{
	tree_init(&f->cgroups);
	tree_write(f->cgroups.fd, "cgroup.controllers", "");
	tree_mkdir(f->cgroups.fd, "kubepods/pod" UID "/" ID1);
	tree_mkdir(f->cgroups.fd, "kubepods/pod" UID "/" ID2);
	tree_mkdir(f->cgroups.fd, "lxc.payload.db");
}

/* A sample in the cgroup @made. */
static const struct entity *ask(struct fixture *f)
{
	const struct pid_id nobody = {.pid = INT32_MAX, .start_ticks = 1};

	return discovery_entity(f->discovery, f->made, 0, &nobody, "x");
}

static bool is_found(void *ctx)
{
	return ask(ctx)->kind != ENTITY_UNKNOWN;
}

/* Another cgroup, found before its first sample. A scan that takes longer than its slice goes on in
 * the loop. */
static const struct entity *add_cgroup(struct fixture *f, const char *path)
{
	f->made = tree_mkdir(f->cgroups.fd, path);
	loop_until(f->loop, is_found, f);
	return ask(f);
}

/* Names are awaited until the test ends the time. */
static void wait_long(struct discovery *discovery)
{
	struct entity *entity = NULL;

	while ((entity = discovery_next_entity(discovery, entity)))
		entity->first_seen_ns += 3600 * NSEC_PER_SEC;
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct discovery_opts opts = {.node_name = "node-1", .grace_ns = UINT64_C(3600000000000)};
	FILE *file;

	unsetenv("HOST_IP");
	unsetenv("KUBERNETES_SERVICE_HOST");
	unsetenv("http_proxy");
	unsetenv("all_proxy");
	f->proc = (struct root)ROOT_INIT;
	assert_int_equal(root_open("/proc", &f->proc), 0);
	make_cgroups(f);
	assert_int_equal(loop_new(&f->loop), 0);
	opts.proc = &f->proc;
	opts.cgroupfs_root = f->cgroups.path;
	opts.loop = f->loop;
	assert_int_equal(discovery_new(&opts, &f->discovery), 0);
	wait_long(f->discovery);
	snprintf(f->token_file, sizeof(f->token_file), "/tmp/podprof-token-XXXXXX");
	file = fdopen(mkstemp(f->token_file), "w");
	fputs("t0ken", file);
	fclose(file);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	naming_free(f->naming);
	discovery_free(f->discovery);
	loop_free(f->loop);
	sink_free(f->kubelet);
	sink_free(f->apiserver);
	tree_deinit(&f->cgroups);
	root_deinit(&f->proc);
	unlink(f->token_file);
	free(f);
	return 0;
}

static void on_source(void *ctx, const char *source, bool ok, const char *why)
{
	struct fixture *f = ctx;
	size_t n = strlen(f->told);

	snprintf(f->told + n, sizeof(f->told) - n, "%s %s;", source, ok ? "ok" : why);
}

static int start(struct fixture *f, enum metadata_mode mode)
{
	const struct naming_opts opts = {
		.loop = f->loop,
		.discovery = f->discovery,
		.settings = f->settings,
		.metadata = {.mode = mode,
			     .node = "node-1",
			     .host_root = f->host_root,
			     /* not by elapsed time */
			     .sandbox_after_ns = 3600 * NSEC_PER_SEC,
			     .kubelet_url = f->kubelet ? sink_url(f->kubelet) : NULL,
			     .apiserver_url = f->apiserver ? sink_url(f->apiserver) : NULL,
			     .token_file = f->token_file,
			     .ca_file = "/nowhere"},
		.source = on_source,
		.ctx = f,
		.cpu_ns = f->cpu_ns,
		.look_ns = f->look_ns,
	};

	struct pattern_error error;

	return naming_new(&opts, &f->naming, &error);
}

static const struct entity *entity_of(struct fixture *f, const char *id)
{
	const struct entity *entity = NULL;

	while ((entity = discovery_next_entity(f->discovery, entity)))
		if (strcmp(entity->id.container_id, id) == 0)
			return entity;
	fail_msg("no container %s", id);
	return NULL;
}

static const char *label(struct fixture *f, const char *id, const char *name)
{
	const char *value = labels_get(&entity_of(f, id)->labels, name);

	return value ? value : "";
}

static bool has_label(void *ctx)
{
	struct fixture *f = ctx;

	return strcmp(label(f, f->id, f->label), f->value) == 0;
}

static void wait_label(struct fixture *f, const char *id, const char *name, const char *value)
{
	f->id = id;
	f->label = name;
	f->value = value;
	loop_until(f->loop, has_label, f);
}

static bool has_go_heap(void *ctx)
{
	struct fixture *f = ctx;
	bool known;
	const char *value = naming_setting(entity_of(f, ID1), "go_heap", &known);

	return value && strcmp(value, f->setting) == 0;
}

static bool both_by_pod(void *ctx)
{
	const struct fixture *f = ctx;

	return metrics_get(naming_collect, f->naming, "podprof_metadata_containers", "pod_only") ==
	       2;
}

static void named_by_the_kubelet(void **state)
{
	static const struct sink_answer script[] = {
		{.status = 200, .body = LIST("")},
		{.status = 200,
		 .body = LIST(POD("", ""))}, /* the server does not know the id yet */
		{.status = 200,
		 .body = LIST(
			 POD("\"podprof.io/go-heap\":\"force\",\"podprof.io/b/c\":\"x\"", STATUS)),
		 .times = 2}, /* one complete look comes in between, on any machine */
		{.status = 200, .body = LIST(POD("\"podprof.io/go-heap\":\"enabled\"", ""))},
	};
	struct fixture *f = *state;
	const struct entity *entity;
	bool known;

	f->kubelet = sink_new(script, array_size(script), NULL);
	assert_string_equal(label(f, ID1, "container"), ID1);
	assert_string_equal(label(f, ID1, "pod_uid"), UID);
	assert_int_equal(start(f, METADATA_AUTO), 0);
	assert_null(naming_setting(entity_of(f, ID1), "go_heap", &known));
	assert_false(known);
	assert_true(entity_of(f, ID1)->pending);
	assert_false(entity_of(f, "db")->pending); /* this is the name */
	assert_string_equal(label(f, "db", "container"), "db");
	assert_string_equal(label(f, "db", "service_name"), "db");
	wait_label(f, ID1, "container", "web");
	assert_string_equal(label(f, ID1, "namespace"), "shop");
	assert_string_equal(label(f, ID1, "pod"), "web-5d4f8-x");
	assert_string_equal(label(f, ID1, "container_id"), "");
	assert_string_equal(label(f, ID1, "service_name"), "web");
	assert_string_equal(label(f, ID1, "node"), "node-1");
	assert_string_equal(label(f, ID1, "pod_uid"), "");
	entity = entity_of(f, ID1);
	assert_false(entity->pending);
	assert_true(entity_of(f, ID2)->pending); /* the container may still get its own name */
	assert_string_equal(naming_setting(entity, "go_heap", &known), "force");
	assert_true(known);
	assert_int_equal(entity->settings.n, 1);
	/* the other container has the pod's name only */
	assert_string_equal(label(f, ID2, "pod"), "web-5d4f8-x");
	assert_string_equal(label(f, ID2, "container"), "");
	assert_string_equal(f->told, "kubelet ok;");
	/* this causes further requests; a list without statuses removes no name */
	while (sink_n_requests(f->kubelet) < 5)
		wait_label(f, ID1, "container", "web");
	loop_until(f->loop, both_by_pod, f);
	assert_string_equal(label(f, ID1, "container"), "web");
}

/* A process in a container that no source knows chooses the id and the UID of another pod. */
static void id_of_another(void **state)
{
	static const struct sink_answer script = {.status = 200,
						  .body = LIST(POD("", STATUS_LATER))};
	struct fixture *f = *state;

	f->kubelet = sink_new(&script, 1, NULL);
	tree_mkdir(f->cgroups.fd, "docker/" ID4);
	add_cgroup(f, "docker/" ID4 "/kubepods/pod" UID "/" ID3);
	assert_int_equal(start(f, METADATA_KUBELET), 0);
	wait_label(f, ID1, "container", "web");
	assert_string_equal(label(f, ID3, "container"), ID3);
	assert_string_equal(label(f, ID3, "outer_container"), ID4);
	assert_string_equal(label(f, ID3, "pod"), "");
	assert_true(entity_of(f, ID3)->pending); /* the outer one may get a name */
}

/* The process chooses the id of another pod's container for the container around its own, and has
 * its own in a container of a pod or of a user. */
static void id_of_another_between(void **state)
{
	static const struct sink_answer script = {.status = 200,
						  .body = LIST(POD("", STATUS_LATER))};
	struct fixture *f = *state;

	f->kubelet = sink_new(&script, 1, NULL);
	tree_mkdir(f->cgroups.fd, "docker/" ID4 "/docker/" ID3);
	add_cgroup(f, "docker/" ID4 "/docker/" ID3 "/docker/" ID6);
	tree_mkdir(f->cgroups.fd, "user.slice/user@1000.service/docker/" ID3);
	add_cgroup(f, "user.slice/user@1000.service/docker/" ID3 "/docker/" ID5);
	assert_int_equal(start(f, METADATA_KUBELET), 0);
	wait_label(f, ID1, "container", "web");
	assert_string_equal(label(f, ID6, "pod"), "");
	assert_string_equal(label(f, ID6, "container"), ID6);
	assert_string_equal(label(f, ID6, "outer_container"), ID4);
	assert_string_equal(label(f, ID5, "pod"), "");
	assert_string_equal(label(f, ID5, "container"), ID5);
	assert_string_equal(label(f, ID5, "user"), "1000");
}

/* ID3 is a container of a pod; @outer, a file of a runtime, has @outer_json. */
static void make_bundles(struct tree *tree, const char *outer, const char *outer_json)
{
	char path[200];

	tree_init(tree);
	snprintf(path, sizeof(path), "%s", outer);
	*strrchr(path, '/') = '\0';
	tree_mkdir(tree->fd, path);
	tree_write(tree->fd, outer, outer_json);
	tree_mkdir(tree->fd, BUNDLES ID3);
	tree_write(tree->fd, BUNDLES ID3 "/config.json", BUNDLE("container"));
}

struct outer_row {
	const char *name;
	const char *cgroup; /* of the process */
	const char *outer;  /* container id */
	const char *file;   /* of its runtime */
	const char *json;
};

static const struct outer_row outer_rows[] = {
	{"plain", "docker/" ID4 "/kubepods/pod" UID "/" ID3, ID4,
	 "var/lib/docker/containers/" ID4 "/config.v2.json",
	 "{\"Name\":\"/db\",\"Config\":{\"Image\":\"postgres:16\"}}"},
	{"sandbox", "kubepods/pod" UID "/" ID4 "/kubepods/pod" UID "/" ID3, ID4,
	 BUNDLES ID4 "/config.json", BUNDLE("sandbox")},
};

/* The container outside is known, and is no container of a pod: the id chosen inside is not looked
 * up, and no name is awaited. */
static void id_of_another_inside(void **state)
{
	struct fixture *f = *state;

	for (size_t i = 0; i < array_size(outer_rows); i++) {
		const struct outer_row *row = &outer_rows[i];
		struct tree tree;

		row_begin(row->name);
		make_bundles(&tree, row->file, row->json);
		f->host_root = tree.path;
		add_cgroup(f, row->cgroup);
		assert_int_equal(start(f, METADATA_RUNTIME), 0);
		assert_string_equal(label(f, ID3, "container"), ID3);
		assert_string_equal(label(f, ID3, "outer_container"), row->outer);
		assert_string_equal(label(f, ID3, "pod"), "");
		assert_string_equal(label(f, ID3, "namespace"), "");
		assert_false(entity_of(f, ID3)->pending);
		tree_deinit(&tree);
		teardown(state);
		setup(state);
		f = *state;
	}
}

/* A cgroup's name may have capital digits, the sources' ids have none. */
static void id_in_capitals(void **state)
{
	static const struct sink_answer script = {.status = 200,
						  .body = LIST(POD("", STATUS_LATER))};
	char path[] = "ecs/" ID3;
	struct fixture *f = *state;

	for (char *c = path + strlen("ecs/"); *c; c++)
		*c = (char)toupper(*c);
	f->kubelet = sink_new(&script, 1, NULL);
	tree_mkdir(f->cgroups.fd, "ecs");
	add_cgroup(f, path);
	assert_int_equal(start(f, METADATA_KUBELET), 0);
	wait_label(f, path + strlen("ecs/"), "container", "late");
}

/* The results of a list are used before the next look. */
static void looked_at_after_a_list(void **state)
{
	static const struct sink_answer script[] = {
		{.status = 200, .body = LIST(POD("", STATUS))},
		{.status = 200, .body = LIST(POD("\"podprof.io/go-heap\":\"force\"", STATUS))},
	};
	struct fixture *f = *state;

	f->kubelet = sink_new(script, array_size(script), NULL);
	f->look_ns = 3600 * NSEC_PER_SEC;
	assert_int_equal(start(f, METADATA_KUBELET), 0);
	wait_label(f, ID1, "container", "web");
	f->setting = "force";
	loop_until(f->loop, has_go_heap, f);
}

static void named_by_the_api_server(void **state)
{
	static const struct sink_answer refuses = {.status = 403, .body = "Forbidden"};
	static const struct sink_answer script[] = {
		{.status = 200, .body = LIST(POD("", STATUS))},
		{.how = SINK_HANG},
	};
	struct fixture *f = *state;

	f->kubelet = sink_new(&refuses, 1, NULL);
	f->apiserver = sink_new(script, array_size(script), NULL);
	assert_int_equal(start(f, METADATA_AUTO), 0);
	wait_label(f, ID1, "container", "web");
	assert_string_equal(f->told, "kubelet HTTP status 403: Forbidden;apiserver ok;");
}

static bool asks_kubelet_alone(void *ctx)
{
	const struct fixture *f = ctx;
	char text[256];

	naming_describe(f->naming, text, sizeof(text));
	return strcmp(text, "kubelet: ok") == 0;
}

/* The right comes late: the API server tells meanwhile, and no longer. */
static void back_to_the_kubelet(void **state)
{
	static const struct sink_answer late[] = {
		{.status = 403, .body = "Forbidden", .times = 3},
		{.status = 200, .body = LIST(POD("\"podprof.io/go-heap\":\"force\"", STATUS))},
	};
	static const struct sink_answer script[] = {
		{.status = 200, .body = LIST(POD("", STATUS))},
		{.how = SINK_HANG},
	};
	struct fixture *f = *state;
	size_t n_requests;
	bool known;

	f->kubelet = sink_new(late, array_size(late), NULL);
	f->apiserver = sink_new(script, array_size(script), NULL);
	assert_int_equal(start(f, METADATA_AUTO), 0);
	wait_label(f, ID1, "container", "web");
	loop_until(f->loop, asks_kubelet_alone, f);
	assert_string_equal(f->told, "kubelet HTTP status 403: Forbidden;apiserver ok;kubelet ok;");
	n_requests = sink_n_requests(f->apiserver);
	f->setting = "force";
	loop_until(f->loop, has_go_heap, f);
	assert_string_equal(naming_setting(entity_of(f, ID1), "go_heap", &known), "force");
	assert_string_equal(label(f, ID1, "container"), "web");
	while (sink_n_requests(f->kubelet) < 6)
		wait_label(f, ID1, "container", "web");
	assert_int_equal(sink_n_requests(f->apiserver), n_requests);
}

/* Only the runtime answers: names, but no annotations of the pod. */
static void named_by_the_runtime(void **state)
{
	static const struct sink_answer refuses = {.status = 403, .body = "Forbidden"};
	struct fixture *f = *state;
	struct tree tree;
	bool known;

	tree_init(&tree);
	tree_mkdir(tree.fd, BUNDLES ID1);
	tree_write(tree.fd, BUNDLES ID1 "/config.json", BUNDLE("container"));
	f->host_root = tree.path;
	f->kubelet = sink_new(&refuses, 1, NULL);
	assert_int_equal(start(f, METADATA_AUTO), 0);
	assert_string_equal(label(f, ID1, "container"), "web"); /* at once */
	assert_string_equal(label(f, ID1, "pod"), "web-1");
	assert_true(entity_of(f, ID1)->pending); /* a server may tell more */
	while (sink_n_requests(f->kubelet) < 1 || entity_of(f, ID1)->pending)
		wait_label(f, ID1, "container", "web");
	assert_null(naming_setting(entity_of(f, ID1), "go_heap", &known));
	assert_false(known);
	naming_free(take_ptr(f->naming));
	/* nobody is there to tell */
	assert_int_equal(start(f, METADATA_RUNTIME), 0);
	assert_string_equal(label(f, ID1, "container"), "web");
	assert_false(entity_of(f, ID1)->pending);
	assert_null(naming_setting(entity_of(f, ID1), "go_heap", &known));
	assert_true(known);
	tree_deinit(&tree);
}

/* In a pod's own cgroup, as gVisor: named by the UID, and no container's name is waited for. */
static void of_a_pod(void **state)
{
	static const struct sink_answer script[] = {
		{.status = 200, .body = LIST("")},
		{.status = 200, .body = LIST(POD("", STATUS))},
	};
	const struct pid_id nobody = {.pid = INT32_MAX, .start_ticks = 1};
	struct fixture *f = *state;
	const struct entity *entity;
	uint64_t id;

	id = tree_mkdir(f->cgroups.fd, "kubepods/pod" UID);
	f->kubelet = sink_new(script, array_size(script), NULL);
	assert_int_equal(start(f, METADATA_KUBELET), 0);
	entity = discovery_entity(f->discovery, id, 0, &nobody, "x");
	assert_int_equal(entity->kind, ENTITY_POD);
	assert_true(entity->pending);
	assert_string_equal(labels_get(&entity->labels, "pod_uid"), UID);
	while (entity->pending)
		wait_label(f, ID2, "pod", "web-5d4f8-x");
	assert_null(labels_get(&entity->labels, "pod_uid"));
	assert_null(labels_get(&entity->labels, "container"));
	assert_string_equal(labels_get(&entity->labels, "namespace"), "shop");
	assert_string_equal(labels_get(&entity->labels, "pod"), "web-5d4f8-x");
	assert_string_equal(labels_get(&entity->labels, "service_name"), "web");
	assert_string_equal(labels_get(&entity->labels, "level"), "pod");
	assert_true(entity_of(f, ID2)->pending); /* but this is a container */
}

/* A later container is known. An earlier, unknown container is then the sandbox, and the samples
 * need not wait longer. */
static void sandbox_of_a_pod(void **state)
{
	static const struct sink_answer script[] = {
		{.status = 200, .body = LIST(POD("", STATUS)), .times = 2},
		{.status = 200, .body = LIST(POD("", STATUS_LATER))},
	};
	struct fixture *f = *state;

	f->kubelet = sink_new(script, array_size(script), NULL);
	assert_int_equal(start(f, METADATA_KUBELET), 0);
	wait_label(f, ID2, "pod", "web-5d4f8-x");
	while (sink_n_requests(f->kubelet) < 2)
		wait_label(f, ID2, "level", "");
	assert_true(entity_of(f, ID2)->pending);
	assert_int_equal(add_cgroup(f, "kubepods/pod" UID "/" ID3)->kind, ENTITY_CONTAINER);
	wait_label(f, ID3, "container", "late");
	wait_label(f, ID2, "level", "pod");
	assert_false(entity_of(f, ID2)->pending);
	assert_string_equal(label(f, ID2, "pod"), "web-5d4f8-x");
	assert_string_equal(label(f, ID2, "container"), "");
	assert_string_equal(label(f, ID1, "container"), "web");
}

static bool has_ended(void *ctx)
{
	return !entity_alive(entity_of(ctx, ID3));
}

/* ID3 has been there, and has ended before the kubelet was asked. */
static void start_after_end(struct fixture *f, const struct sink_answer *script, size_t n)
{
	add_cgroup(f, "kubepods/pod" UID "/" ID3);
	wait_long(f->discovery);
	tree_rmdir(f->cgroups.fd, "kubepods/pod" UID "/" ID3);
	f->kubelet = sink_new(script, n, NULL);
	assert_int_equal(start(f, METADATA_KUBELET), 0);
	loop_until(f->loop, has_ended, f);
}

/* Containers that end before any answer: a later answer names one of these containers. */
static void named_after_its_end(void **state)
{
	static const struct sink_answer script[] = {
		{.status = 200, .body = LIST(POD("", STATUS)), .times = 2},
		{.status = 200, .body = LIST(POD("", STATUS_LATER))},
	};
	struct fixture *f = *state;

	start_after_end(f, script, array_size(script));
	assert_true(entity_of(f, ID3)->pending);
	wait_label(f, ID3, "container", "late");
	assert_false(entity_of(f, ID3)->pending);
	assert_string_equal(label(f, ID3, "pod"), "web-5d4f8-x");
	assert_int_equal(sink_n_requests(f->kubelet), 3);
}

/* The other one is not named: the pod's name is the only name. */
static void not_named_after_its_end(void **state)
{
	static const struct sink_answer script[] = {
		{.status = 200, .body = LIST(POD("", STATUS))},
	};
	struct fixture *f = *state;

	start_after_end(f, script, array_size(script));
	wait_label(f, ID3, "pod", "web-5d4f8-x");
	assert_true(entity_of(f, ID3)->pending);
	((struct entity *)entity_of(f, ID3))->first_seen_ns = 0;
	while (entity_of(f, ID3)->pending)
		wait_label(f, ID3, "container", "");
	assert_string_equal(label(f, ID3, "pod"), "web-5d4f8-x");
	assert_string_equal(label(f, ID3, "level"), "");
	assert_int_equal(
		metrics_get(naming_collect, f->naming, "podprof_metadata_waits", "pod_only"), 1);
}

/* A user without privileges has made a cgroup with another container's id: the cgroup gets no name,
 * and none is awaited. */
static void of_a_user(void **state)
{
	static const struct sink_answer script[] = {{.status = 200, .body = LIST(POD("", STATUS))}};
	struct fixture *f = *state;
	const struct entity *entity;

	f->kubelet = sink_new(script, array_size(script), NULL);
	assert_int_equal(start(f, METADATA_KUBELET), 0);
	wait_label(f, ID1, "container", "web");
	entity = add_cgroup(f, "user.slice/user-1000.slice/user@1000.service/user.slice/"
			       "libpod-" ID1 ".scope");
	assert_false(entity->pending);
	assert_string_equal(labels_get(&entity->labels, "container"), ID1);
	assert_string_equal(labels_get(&entity->labels, "user"), "1000");
	assert_string_equal(labels_get(&entity->labels, "runtime"), "podman");
	assert_null(labels_get(&entity->labels, "pod"));
	assert_string_equal(label(f, ID1, "container"), "web");
}

/* No answer: the ids stay, with the reason. */
static void refused(void **state)
{
	static const struct sink_answer refuses = {.status = 403, .body = "Forbidden"};
	struct fixture *f = *state;

	f->kubelet = sink_new(&refuses, 1, NULL);
	assert_int_equal(start(f, METADATA_KUBELET), 0);
	while (sink_n_requests(f->kubelet) < 2 ||
	       metrics_get(naming_collect, f->naming, "podprof_metadata_containers", "denied") < 2)
		wait_label(f, ID1, "container", ID1);
	assert_string_equal(f->told, "kubelet HTTP status 403: Forbidden;");
	assert_string_equal(label(f, ID1, "pod_uid"), UID);
}

static void nobody_to_ask(void **state)
{
	struct fixture *f = *state;
	bool known;

	assert_int_equal(start(f, METADATA_KUBELET), -EDESTADDRREQ);
	assert_int_equal(start(f, METADATA_APISERVER), -EDESTADDRREQ);
	assert_int_equal(start(f, METADATA_NONE), 0);
	naming_free(take_ptr(f->naming));
	assert_int_equal(start(f, METADATA_AUTO), 0);
	assert_string_equal(f->told, "");
	assert_null(naming_setting(entity_of(f, ID1), "go_heap", &known));
	assert_true(known);
}

/* The name does not come in time. */
static void late(void **state)
{
	static const struct sink_answer script[] = {
		{.status = 200, .body = LIST("")},
	};
	struct fixture *f = *state;
	struct entity *entity = (struct entity *)entity_of(f, ID1);

	f->kubelet = sink_new(script, 1, NULL);
	assert_int_equal(start(f, METADATA_KUBELET), 0);
	assert_true(entity->pending);
	while (metrics_get(naming_collect, f->naming, "podprof_metadata_containers", "unknown_id") <
	       2)
		wait_label(f, ID1, "container", ID1);
	assert_true(entity->pending);
	entity->first_seen_ns = 0;
	while (entity->pending)
		wait_label(f, ID1, "container", ID1);
	assert_int_equal(
		metrics_get(naming_collect, f->naming, "podprof_metadata_waits", "unknown_id"), 1);
	assert_int_equal(metrics_get(naming_collect, f->naming, "podprof_metadata_waits", "ok"), 0);
}

static bool is_left_out(void *ctx)
{
	struct fixture *f = ctx;
	const char *why = entity_of(f, f->id)->left_out;

	return strcmp(why ? why : "", f->value) == 0;
}

static void wait_left_out(struct fixture *f, const char *id, const char *why)
{
	f->id = id;
	f->value = why;
	loop_until(f->loop, is_left_out, f);
}

static void configure(struct fixture *f)
{
	struct pattern_error error;

	assert_int_equal(naming_configure(f->naming, &f->settings, &error), 0);
}

/* Selection: by the pod's present annotation, and by changed settings. */
static void chosen(void **state)
{
	static const struct sink_answer script[] = {
		{.status = 200,
		 .body = LIST(POD("\"podprof.io/profile\":\"false\"", STATUS)),
		 .times = 2},
		{.status = 200, .body = LIST(POD("\"podprof.io/profile\":\"true\"", STATUS))},
	};
	static const char *const labels[] = {"cluster=prod"};
	static const char *const select[] = {"^shop/.*/web$"}, *const ignore[] = {"shop/"};
	static const char *const bad[] = {"("};
	struct fixture *f = *state;
	struct pattern_error error;

	f->kubelet = sink_new(script, array_size(script), NULL);
	f->settings = (struct naming_settings){.labels = labels, .n_labels = 1};
	assert_int_equal(start(f, METADATA_KUBELET), 0);
	assert_string_equal(label(f, ID1, "cluster"), "prod"); /* before anything is known */
	assert_null(entity_of(f, ID1)->left_out);
	wait_left_out(f, ID1, "annotation podprof.io/profile: \"false\"");
	assert_string_equal(label(f, ID1, "container"), "web");
	assert_string_equal(label(f, ID1, "cluster"), "prod");
	wait_left_out(f, ID1, "");
	/* by name: the unnamed container waits */
	f->settings = (struct naming_settings){.select = select, .n_select = 1};
	configure(f);
	((struct entity *)entity_of(f, ID2))->first_seen_ns = 0;
	wait_left_out(f, ID2, "no --select matches");
	assert_null(entity_of(f, ID1)->left_out);
	wait_label(f, ID1, "cluster", ""); /* the entities have their turns in any order */
	f->settings = (struct naming_settings){.ignore = ignore, .n_ignore = 1};
	configure(f);
	wait_left_out(f, ID1, "--ignore shop/");
	assert_true(metrics_get(naming_collect, f->naming, "podprof_entities_excluded", "") >= 1);
	/* an invalid setting changes nothing */
	f->settings = (struct naming_settings){.select = bad, .n_select = 1};
	assert_int_equal(naming_configure(f->naming, &f->settings, &error), PATTERN_REFUSED);
	f->settings = (struct naming_settings){0};
	configure(f);
	wait_left_out(f, ID1, "");
	wait_left_out(f, ID2, "");
}

static bool has_one_excluded(void *ctx)
{
	const struct fixture *f = ctx;

	return metrics_get(naming_collect, f->naming, "podprof_entities_excluded", "") == 1;
}

/* The look that excludes an entity also counts the entity: the next look may be far away. */
static void counts_excluded(void **state)
{
	static const struct sink_answer script[] = {
		{.status = 200, .body = LIST(POD("\"podprof.io/profile\":\"false\"", STATUS))},
	};
	struct fixture *f = *state;

	f->kubelet = sink_new(script, array_size(script), NULL);
	f->look_ns = 3600 * NSEC_PER_SEC;
	assert_int_equal(start(f, METADATA_KUBELET), 0);
	loop_until(f->loop, has_one_excluded, f);
	assert_string_equal(entity_of(f, ID1)->left_out,
			    "annotation podprof.io/profile: \"false\"");
}

/* ---------------------------------------------------------------- time for labels */

/* The duration of each labelling. */
static uint64_t took_150_ms(void)
{
	static uint64_t now_ns;

	return now_ns += 150 * NSEC_PER_MSEC;
}

static uint64_t took_6_ms(void)
{
	static uint64_t now_ns;

	return now_ns += 6 * NSEC_PER_MSEC;
}

static uint64_t metric(const struct fixture *f, const char *name)
{
	return metrics_get(naming_collect, f->naming, name, "");
}

/* How many are left out, and why; NULL: for another reason. */
static size_t count_left_out(const struct fixture *f, const char *why, size_t *ret_others)
{
	const struct entity *entity = NULL;
	size_t n = 0;

	*ret_others = 0;
	while ((entity = discovery_next_entity(f->discovery, entity)))
		if (entity->left_out && strcmp(entity->left_out, why) == 0)
			n++;
		else
			++*ret_others;
	return n;
}

static bool none_waits(void *ctx)
{
	size_t others;

	return count_left_out(ctx, "rules not yet applied", &others) == 0;
}

/* A rule with too much work for the labels of every container: each look labels some, the others
 * wait, and none is profiled before its turn. */
static void one_by_one(void **state)
{
	static const char slow[] =
		"[{\"action\":\"keep\",\"source_labels\":[\"container\",\"container\","
		"\"container\",\"container\"],\"regex\":\"\\\\pL{50}[!?]\"}]";
	_cleanup_(json_decrefp) json_t *configs = json_loads(slow, 0, NULL);
	struct relabel *rules = NULL;
	struct relabel_error error;
	struct fixture *f = *state;
	size_t n_waiting, n_others;

	assert_int_equal(relabel_new(configs, &rules, &error), 0);
	for (int i = 0; i < 3; i++) {
		char path[200] = "kubepods/pod" UID "/" ID1;

		path[strlen(path) - 1] = "123"[i];
		add_cgroup(f, path);
	}
	f->settings = (struct naming_settings){.relabel = rules};
	f->cpu_ns = took_150_ms;
	f->look_ns = 20 * NSEC_PER_MSEC;
	assert_int_equal(start(f, METADATA_NONE), 0);
	/* two entities took 300 ms, more than 200 */
	n_waiting = count_left_out(f, "rules not yet applied", &n_others);
	assert_int_equal(n_others, 2);
	assert_true(n_waiting >= 3);
	assert_int_equal(metric(f, "podprof_entities_relabel_deferred"), n_waiting);
	loop_until(f->loop, none_waits, f);
	/* two more by each look */
	assert_int_equal(metric(f, "podprof_entities_relabel_deferred"),
			 n_waiting + (n_waiting > 2 ? n_waiting - 2 : 0) +
				 (n_waiting > 4 ? n_waiting - 4 : 0));
	assert_int_equal(count_left_out(f,
					"relabel_configs[0] (keep, source_labels container,"
					"container,container,container, regex \\pL{50}[!?]) "
					"took too long",
					&n_others),
			 5);
	assert_int_equal(metric(f, "podprof_relabel_timeouts"), 5);
	naming_free(take_ptr(f->naming));
	relabel_free(rules);
}

struct slices {
	struct fixture *f;
	const char *cluster;
	size_t n_last;
	size_t most; /* entities with new labels between two turns */
};

static void on_turn(void *ctx, int fd, uint32_t events)
{
	struct slices *s = ctx;
	const struct entity *entity = NULL;
	size_t n = 0;

	(void)fd;
	(void)events;
	while ((entity = discovery_next_entity(s->f->discovery, entity))) {
		const char *cluster = labels_get(&entity->labels, "cluster");

		n += cluster && strcmp(cluster, s->cluster) == 0;
	}
	if (n > s->n_last && n - s->n_last > s->most)
		s->most = n - s->n_last;
	s->n_last = n;
}

static bool has_all(void *ctx)
{
	const struct slices *s = ctx;

	return s->n_last >= 3;
}

/* A look with new labels for all takes an entity a turn. */
static void an_entity_a_turn(void **state)
{
	static const char *const one[] = {"cluster=one"}, *const two[] = {"cluster=two"};
	struct fixture *f = *state;
	struct slices slices = {.f = f, .cluster = "two"};
	int fd = eventfd(1, EFD_CLOEXEC);
	struct loop_source *turn;

	f->look_ns = 20 * NSEC_PER_MSEC;
	f->settings = (struct naming_settings){.labels = one, .n_labels = 1};
	assert_int_equal(start(f, METADATA_NONE), 0);
	loop_set_slice(f->loop, 0);
	f->settings = (struct naming_settings){.labels = two, .n_labels = 1};
	configure(f);
	assert_int_equal(loop_add_fd(f->loop, fd, EPOLLIN, on_turn, &slices, &turn), 0);
	loop_until(f->loop, has_all, &slices);
	assert_int_equal(slices.most, 1);
	close(fd);
}

static bool was_looked_at(void *ctx)
{
	const struct fixture *f = ctx;

	return metrics_get(naming_collect, f->naming, "podprof_metadata_containers",
			   "unreachable") == 2;
}

static bool has_waited(void *ctx)
{
	return !entity_of(ctx, ID1)->pending;
}

/* An entity with long labelling is labelled again in each sixteenth look only. */
static void costly(void **state)
{
	static const struct sink_answer hangs = {.how = SINK_HANG};
	struct fixture *f = *state;
	uint64_t n;

	f->kubelet = sink_new(&hangs, 1, NULL);
	f->cpu_ns = took_6_ms;
	f->look_ns = 20 * NSEC_PER_MSEC;
	assert_int_equal(start(f, METADATA_KUBELET), 0);
	assert_int_equal(metric(f, "podprof_entities_relabel_deferred"), 0);
	loop_until(f->loop, was_looked_at, f);
	/* the name is now known not to come; labels and selection depend on this */
	((struct entity *)entity_of(f, ID1))->first_seen_ns = 0;
	loop_until(f->loop, has_waited, f);
	n = metric(f, "podprof_entities_relabel_deferred");
	assert_in_range(n, 1, 15);
	/* without further repetition */
	((struct entity *)entity_of(f, ID2))->first_seen_ns = 0;
	f->id = ID2;
	while (entity_of(f, ID2)->pending)
		wait_label(f, ID2, "container", ID2);
	assert_int_equal(metric(f, "podprof_entities_relabel_deferred"), n + 15);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(named_by_the_kubelet),
		TEST(id_of_another),
		TEST(id_of_another_between),
		TEST(id_of_another_inside),
		TEST(id_in_capitals),
		TEST(named_by_the_api_server),
		TEST(looked_at_after_a_list),
		TEST(back_to_the_kubelet),
		TEST(named_by_the_runtime),
		TEST(of_a_pod),
		TEST(sandbox_of_a_pod),
		TEST(named_after_its_end),
		TEST(not_named_after_its_end),
		TEST(of_a_user),
		TEST(refused),
		TEST(nobody_to_ask),
		TEST(late),
		TEST(chosen),
		TEST(counts_excluded),
		TEST(one_by_one),
		TEST(an_entity_a_turn),
		TEST(costly),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
