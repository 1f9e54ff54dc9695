// SPDX-License-Identifier: Apache-2.0
/* From the known facts of an entity to its labels, without a server. */
#include "support/test.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "discovery/entity.h"
#include "metadata/pod.h"
#include "naming/labelling.h"
#include "naming/meta_labels.h"
#include "naming/names.h"
#include "naming/selector.h"
#include "relabel/pattern.h"
#include "relabel/relabel.h"
#include "support/allocfail.h"

#define ID  "5c07e1f493b34856a77e665e3b0b4fc72f76c807dfbffeb881bd73051af27110"
#define UID "5d59024d-c3a0-12f8-a461-131a79258807"

static const char pod_json[] =
	"{\"metadata\":{\"uid\":\"" UID
	"\",\"namespace\":\"shop\",\"name\":\"web-5d4f8-x\",\"labels\":{\"pod-template-hash\":"
	"\"5d4f8\",\"app.kubernetes.io/part-of\":\"store\"},\"annotations\":{\"a/b\":\"c\",\"e\":"
	"\"\"},\"ownerReferences\":[{\"kind\":\"ReplicaSet\",\"name\":\"web-5d4f8\",\"controller\":"
	"true}]},\"spec\":{\"nodeName\":\"n1\"},\"status\":{\"podIP\":\"10.1.2.3\",\"hostIP\":"
	"\"192.0.2.1\",\"phase\":\"Running\",\"initContainerStatuses\":[{\"name\":"
	"\"web\",\"containerID\":\"containerd://" ID "\"}]}}";

#define OTHER_ID "b6f4c30bc8d69923d37ee698f5cfcced92c7b7df1c47f6f7887378a940c03570"

struct fixture {
	struct entity_table *entities;
	struct entity *container, *in_pod, *unit, *process;
	struct pod *a_pod;
	struct names known; /* the container's */
	struct names pod;   /* with the pod only */
	struct names none;
	struct container *state; /* Podman's state */
	struct entity *in_service;
	struct names plain;
};

static struct entity *container(struct fixture *f, const char *path)
{
	struct cgroup_id id;
	struct entity *entity;

	cgroup_parse_path(strview_of(path), &id);
	assert_int_equal(entity_container(f->entities, &id, &entity), 0);
	return entity;
}

static int setup(void **state)
{
	const struct unit ssh = {strview_of("ssh.service"), strview_of("system.slice"),
				 strview_of("")};
	struct fixture *f = calloc(1, sizeof(*f));

	assert_int_equal(entity_table_new("n1", &f->entities), 0);
	f->container = container(f, "/kubepods.slice/kubepods-pod" UID ".slice/cri-containerd-" ID
				    ".scope");
	f->in_pod = container(f, "/kubepods.slice/kubepods-pod" UID ".slice");
	assert_int_equal(f->in_pod->kind, ENTITY_POD);
	assert_int_equal(entity_unit(f->entities, &ssh, &f->unit), 0);
	assert_int_equal(entity_process(f->entities, "sh", &f->process), 0);
	assert_int_equal(pod_parse(pod_json, strlen(pod_json), &f->a_pod), 0);
	assert_int_equal(f->a_pod->n_containers, 1);
	f->known.outcome = METADATA_OK;
	f->known.known =
		(struct metadata_names){.pod = f->a_pod, .container = f->a_pod->containers};
	f->pod = (struct names){.outcome = METADATA_POD, .known = {.pod = f->a_pod}};
	f->none.outcome = METADATA_UNKNOWN_ID;
	f->in_service = container(f, "/system.slice/web.service/libpod-payload-" OTHER_ID);
	assert_int_equal(container_new("podman", &f->state), 0);
	assert_int_equal(container_set_name(f->state, "systemd-web"), 0);
	f->plain = (struct names){.outcome = METADATA_PLAIN, .known = {.state = f->state}};
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	entity_unref(f->container);
	entity_unref(f->in_pod);
	entity_unref(f->in_service);
	entity_unref(f->unit);
	entity_unref(f->process);
	entity_table_free(f->entities);
	pod_free(f->a_pod);
	container_free(f->state);
	free(f);
	return 0;
}

/* "a=1 b=2" */
static void assert_labels(const struct labels *l, const char *expected)
{
	char text[8192] = "";

	for (size_t i = 0; i < l->n; i++) {
		size_t n = strlen(text);

		snprintf(text + n, sizeof(text) - n, "%s%s=%s", i ? " " : "", l->items[i].name,
			 l->items[i].value);
	}
	assert_string_equal(text, expected);
}

/* ---------------------------------------------------------------- meta labels */

static void meta_labels_of_all_kinds(void **state)
{
	struct fixture *f = *state;
	struct labels l = {.max = LABELS_META_MAX};
	struct entity *users;

	assert_int_equal(meta_labels_add(&f->known, f->container, &l), 0);
	assert_labels(&l,
		      "__meta_container_id=" ID " __meta_container_runtime=containerd "
		      "__meta_kubernetes_namespace=shop "
		      "__meta_kubernetes_pod_annotation_a_b=c "
		      "__meta_kubernetes_pod_annotationpresent_a_b=true "
		      "__meta_kubernetes_pod_annotationpresent_e=true "
		      "__meta_kubernetes_pod_container_id=containerd://" ID " "
		      "__meta_kubernetes_pod_container_init=true "
		      "__meta_kubernetes_pod_container_name=web "
		      "__meta_kubernetes_pod_controller_kind=ReplicaSet "
		      "__meta_kubernetes_pod_controller_name=web-5d4f8 "
		      "__meta_kubernetes_pod_host_ip=192.0.2.1 __meta_kubernetes_pod_ip=10.1.2.3 "
		      "__meta_kubernetes_pod_label_app_kubernetes_io_part_of=store "
		      "__meta_kubernetes_pod_label_pod_template_hash=5d4f8 "
		      "__meta_kubernetes_pod_labelpresent_app_kubernetes_io_part_of=true "
		      "__meta_kubernetes_pod_labelpresent_pod_template_hash=true "
		      "__meta_kubernetes_pod_name=web-5d4f8-x __meta_kubernetes_pod_node_name=n1 "
		      "__meta_kubernetes_pod_phase=Running "
		      "__meta_kubernetes_pod_uid=" UID);
	labels_deinit(&l);
	assert_int_equal(meta_labels_add(&f->pod, f->in_pod, &l), 0);
	assert_null(labels_get(&l, "__meta_container_runtime"));
	assert_null(labels_get(&l, "__meta_kubernetes_pod_container_name"));
	assert_string_equal(labels_get(&l, "__meta_kubernetes_pod_uid"), UID);
	labels_deinit(&l);
	users = container(f, "/user.slice/user-1000.slice/user@1000.service/app.slice/web.service/"
			     "libpod-payload-" ID);
	assert_int_equal(meta_labels_add(&f->none, users, &l), 0);
	assert_labels(&l, "__meta_container_id=" ID " __meta_container_runtime=podman "
			  "__meta_container_unit=web.service __meta_container_user=1000");
	entity_unref(users);
	labels_deinit(&l);
	assert_int_equal(meta_labels_add(&f->none, f->unit, &l), 0);
	assert_labels(&l, "__meta_process_slice=system.slice __meta_process_unit=ssh.service");
	labels_deinit(&l);
	assert_int_equal(meta_labels_add(&f->none, f->process, &l), 0);
	assert_labels(&l, "__meta_process_comm=sh");
	labels_deinit(&l);
	assert_int_equal(meta_labels_add(&f->none, entity_unknown(f->entities), &l), 0);
	assert_labels(&l, "");
	assert_int_equal(meta_labels_add(&f->none, f->container, &l), 0);
	assert_labels(&l, "__meta_container_id=" ID " __meta_container_runtime=containerd");
	labels_deinit(&l);
}

/* As many labels and annotations as are read of a pod, with the longest keys and values. */
static void meta_labels_of_a_large_pod(void **state)
{
	struct fixture *f = *state;
	struct labels l = {.max = LABELS_META_MAX};
	_cleanup_(json_decrefp) json_t *object = json_loads(pod_json, 0, NULL);
	json_t *metadata = json_object_get(object, "metadata"), *pairs = json_object();
	char key[POD_TEXT_MAX + 1], value[POD_TEXT_MAX + 1];

	memset(value, 'v', POD_TEXT_MAX);
	value[POD_TEXT_MAX] = '\0';
	for (int i = 0; i < POD_PAIRS_MAX; i++) {
		memset(key, 'k', POD_TEXT_MAX);
		key[POD_TEXT_MAX - 2] = (char)(0x61 + i / 16);
		key[POD_TEXT_MAX - 1] = (char)(0x61 + i % 16);
		key[POD_TEXT_MAX] = 0;
		json_object_set_new(pairs, key, json_string(value));
	}
	json_object_set(metadata, "labels", pairs);
	json_object_set_new(metadata, "annotations", pairs);
	pod_free(f->a_pod);
	assert_int_equal(pod_of_json(object, &f->a_pod), 0);
	f->known.known =
		(struct metadata_names){.pod = f->a_pod, .container = f->a_pod->containers};
	assert_int_equal(meta_labels_add(&f->known, f->container, &l), 0);
	assert_int_equal(l.n, 4 * POD_PAIRS_MAX + 14);
	labels_deinit(&l);
}

/* ---------------------------------------------------------------- selector */

struct selector_row {
	const char *name;
	const char *select[3];
	const char *ignore[3];
	const char *of;
	const char *why; /* NULL: taken */
};

/* A program of 60,000 instructions: with the name more work than a match may be. */
#define SLOW	  "\\pL{50}[!?]"
#define LETTERS	  "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz"
#define SLOW_NAME LETTERS LETTERS LETTERS LETTERS

static const struct selector_row selector_rows[] = {
	{"nothing said", {NULL}, {NULL}, "shop/web-1/web", NULL},
	{"a part", {"web"}, {NULL}, "shop/web-1/web", NULL},
	{"another", {"db"}, {NULL}, "shop/web-1/web", "no --select matches"},
	{"one of two", {"db", "^shop/"}, {NULL}, "shop/web-1/web", NULL},
	{"the beginning", {"^web"}, {NULL}, "shop/web-1/web", "no --select matches"},
	{"the end", {"/web$"}, {NULL}, "shop/web-1/web", NULL},
	{"ignored", {NULL}, {"^kube-system/"}, "kube-system/dns/dns", "--ignore ^kube-system/"},
	{"ignore wins", {"shop"}, {"x", "web$"}, "shop/web-1/web", "--ignore web$"},
	{"alternatives are whole", {NULL}, {"^a|b$"}, "xax", NULL},
	{"alternatives", {NULL}, {"^a|b$"}, "xb", "--ignore ^a|b$"},
	{"case", {"(?i)WEB"}, {NULL}, "shop/web-1/web", NULL},
	{"not UTF-8", {"a"}, {NULL}, "a\xff", NULL},
	{"empty name", {"^$"}, {NULL}, "", NULL},
	{"ignored, but nobody knows",
	 {NULL},
	 {SLOW, "."},
	 SLOW_NAME,
	 "--ignore " SLOW " took too long"},
	{"ignored before that", {NULL}, {".", SLOW}, SLOW_NAME, "--ignore ."},
	{"selected, but nobody knows",
	 {SLOW, "."},
	 {NULL},
	 SLOW_NAME,
	 "--select " SLOW " took too long"},
};

static size_t count(const char *const *texts)
{
	size_t n = 0;

	while (texts[n])
		n++;
	return n;
}

static void selectors(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(selector_rows); i++) {
		const struct selector_row *row = &selector_rows[i];
		struct pattern_error error;
		struct selector *selector;
		char why[SELECTOR_WHY_MAX];
		int r;

		row_begin(row->name);
		assert_int_equal(selector_new(row->select, count(row->select), row->ignore,
					      count(row->ignore), &selector, &error),
				 0);
		r = selector_ask(selector, row->of, why);
		assert_int_equal(r == SELECTOR_TAKEN, !row->why);
		assert_int_equal(r == SELECTOR_GAVE_UP,
				 row->why && strstr(row->why, "took too long"));
		if (row->why)
			assert_string_equal(why, row->why);
		selector_free(selector);
	}
}

static void selectors_refused(void **state)
{
	static const char *const bad[] = {"(", "a)(b", "*", "(?=a)"};
	struct pattern_error error;
	struct selector *selector;

	(void)state;
	for (size_t i = 0; i < array_size(bad); i++) {
		row_begin(bad[i]);
		assert_int_equal(selector_new(&bad[i], 1, NULL, 0, &selector, &error),
				 PATTERN_REFUSED);
		assert_int_equal(selector_new(NULL, 0, &bad[i], 1, &selector, &error),
				 PATTERN_REFUSED);
	}
}

/* ---------------------------------------------------------------- everything together */

struct label_row {
	const char *name;
	char kind; /* of entity_of() */
	const char *labels[3];
	const char *ignore[2];
	const char *rules;
	const char *expected;
	const char *why;
	const char *origins;
};

#define NAMED "namespace=shop node=n1 pod=web-5d4f8-x service_name=web"

static const struct label_row label_rows[] = {
	{"named",
	 'c',
	 {NULL},
	 {NULL},
	 NULL,
	 "container=web " NAMED,
	 "",
	 "container=pod namespace=pod node=--node-name pod=pod service_name=Deployment"},
	{"bare",
	 'b',
	 {NULL},
	 {NULL},
	 NULL,
	 "container=" ID " node=n1 pod_uid=" UID " runtime=containerd service_name=5c07e1f493b3",
	 "",
	 "container=cgroup node=--node-name pod_uid=cgroup runtime=cgroup service_name=cgroup"},
	{"a pod's own",
	 'p',
	 {NULL},
	 {"^shop/web-[^/]*/$", NULL},
	 NULL,
	 "level=pod " NAMED,
	 "--ignore ^shop/web-[^/]*/$",
	 "level=cgroup namespace=pod node=--node-name pod=pod service_name=Deployment"},
	{"a bare pod's own",
	 'q',
	 {NULL},
	 {NULL},
	 NULL,
	 "level=pod node=n1 pod_uid=" UID " service_name=" UID,
	 "",
	 "level=cgroup node=--node-name pod_uid=cgroup service_name=cgroup"},
	{"a sandbox, by elimination",
	 's',
	 {NULL},
	 {NULL},
	 "[{\"action\":\"keep\",\"source_labels\":[\"level\"],\"regex\":\"pod\"}]",
	 "level=pod " NAMED,
	 "",
	 "level=none of its pod's containers namespace=pod node=--node-name pod=pod "
	 "service_name=Deployment"},
	{"Podman's, in a service",
	 'd',
	 {NULL},
	 {NULL},
	 NULL,
	 "container=systemd-web node=n1 service_name=systemd-web unit=web.service",
	 "",
	 "container=podman node=--node-name service_name=podman unit=cgroup"},
	{"unit",
	 'u',
	 {"cluster=prod", NULL},
	 {NULL},
	 NULL,
	 "cluster=prod node=n1 service_name=ssh.service slice=system.slice unit=ssh.service",
	 "",
	 "cluster=--label node=--node-name service_name=cgroup slice=cgroup unit=cgroup"},
	{"own labels win",
	 'c',
	 {"pod=x", "team=a=b", NULL},
	 {NULL},
	 NULL,
	 "container=web " NAMED " team=a=b",
	 "",
	 "container=pod namespace=pod node=--node-name pod=pod service_name=Deployment "
	 "team=--label"},
	{"ignored",
	 'c',
	 {NULL},
	 {"^shop/web-[^/]*/web$", NULL},
	 NULL,
	 "container=web " NAMED,
	 "--ignore ^shop/web-[^/]*/web$",
	 NULL},
	{"rules see all",
	 'c',
	 {"cluster=prod", NULL},
	 {NULL},
	 "[{\"source_labels\":[\"cluster\",\"__meta_kubernetes_pod_label_app_kubernetes_io_part_of"
	 "\"],\"target_label\":\"app\"},{\"action\":\"labeldrop\",\"regex\":\"pod|cluster\"}]",
	 "app=prod;store container=web namespace=shop node=n1 service_name=web",
	 "",
	 "app=relabel_configs[0] container=pod namespace=pod node=--node-name "
	 "service_name=Deployment"},
	{"dropped",
	 'c',
	 {NULL},
	 {NULL},
	 "[{\"action\":\"drop\",\"source_labels\":[\"namespace\"],\"regex\":\"sh.*\"}]",
	 "container=web " NAMED,
	 "relabel_configs[0] (drop, source_labels namespace, regex sh.*)",
	 NULL},
	{"kept by a meta label",
	 'u',
	 {NULL},
	 {NULL},
	 "[{\"action\":\"keep\",\"source_labels\":[\"__meta_process_unit\"],\"regex\":\"ssh.*\"}]",
	 "node=n1 service_name=ssh.service slice=system.slice unit=ssh.service",
	 "",
	 NULL},
};

static const struct entity *entity_of(const struct fixture *f, char kind)
{
	switch (kind) {
	case 'p': /* a pod's own */
	case 'q': /* without known names */
		return f->in_pod;
	case 'u':
		return f->unit;
	case 'd': /* Podman's, in a service */
		return f->in_service;
	default: /* a container: 'c'; 'b' without known names; 's' a sandbox */
		return f->container;
	}
}

static struct names names_of(const struct fixture *f, char kind)
{
	struct names names = kind == 'c' ? f->known : f->none;

	if (kind == 'p' || kind == 's')
		names = f->pod;
	if (kind == 's')
		names.outcome = METADATA_SANDBOX;
	return kind == 'd' ? f->plain : names;
}

static void label_one(struct fixture *f, const struct label_row *row, bool decide,
		      struct labelled *ret)
{
	_cleanup_(json_decrefp) json_t *json = row->rules ? json_loads(row->rules, 0, NULL) : NULL;
	_cleanup_(labelling_deinit) struct labelling labelling = {0};
	struct naming_settings settings = {
		.labels = row->labels,
		.n_labels = count(row->labels),
		.ignore = row->ignore,
		.n_ignore = count(row->ignore),
	};
	const struct names names = names_of(f, row->kind);
	struct relabel_error rule_error;
	struct pattern_error error;
	struct relabel *relabel = NULL;

	if (json)
		assert_int_equal(relabel_new(json, &relabel, &rule_error), 0);
	settings.relabel = relabel;
	assert_int_equal(labelling_init(&settings, &labelling, &error), 0);
	assert_int_equal(labelling_apply(&labelling, &names, entity_of(f, row->kind), decide,
					 row->origins, ret),
			 0);
	relabel_free(relabel);
}

static void labelled_rows(void **state)
{
	struct fixture *f = *state;

	for (size_t i = 0; i < array_size(label_rows); i++) {
		const struct label_row *row = &label_rows[i];
		_cleanup_(labelled_deinit) struct labelled is = {0}, undecided = {0};

		row_begin(row->name);
		label_one(f, row, true, &is);
		assert_labels(&is.labels, row->expected);
		assert_string_equal(is.why, row->why);
		assert_int_equal(is.n_left_out, 0);
		if (row->origins) {
			/* labels of a series only; rules may have made others */
			_cleanup_(labels_deinit) struct labels shown = {0};

			for (size_t k = 0; k < is.labels.n; k++) {
				const char *name = is.labels.items[k].name;
				const char *origin = labels_get(&is.origins, name);

				assert_int_equal(labels_set(&shown, name, origin ? origin : "-"),
						 0);
			}
			assert_labels(&shown, row->origins);
		}
		label_one(f, row, false, &undecided);
		assert_string_equal(undecided.why, "");
		assert_true(labels_equal(&undecided.labels, &is.labels));
	}
}

/* A match with too much work. */
static void too_slow(void **state)
{
	static const struct label_row row = {
		.kind = 'c',
		.rules = "[{\"action\":\"keep\",\"separator\":\"" LETTERS "\",\"source_labels\":"
			 "[\"namespace\",\"namespace\",\"namespace\",\"namespace\",\"namespace\","
			 "\"namespace\",\"namespace\",\"namespace\",\"namespace\",\"namespace\"],"
			 "\"regex\":\"\\\\pL{50}[!?]\"}]",
	};
	_cleanup_(labelled_deinit) struct labelled is = {0};

	label_one(*state, &row, true, &is);
	assert_true(is.gave_up);
	assert_non_null(strstr(is.why, "took too long"));
}

/* More labels than the limit of a series: the entity's own and the first others stay, and the rest
 * is counted. */
static void too_many(void **state)
{
	static const struct label_row row = {
		.kind = 'c',
		.labels = {NULL},
		.ignore = {NULL},
		.rules = "[{\"action\":\"labelmap\",\"regex\":\"__(meta_.*)\"},"
			 "{\"action\":\"labelmap\",\"regex\":\"__(meta_.*)\",\"replacement\":\"a_$"
			 "1\"}]",
	};
	static const char *const own[][2] = {{"namespace", "shop"},
					     {"pod", "web-5d4f8-x"},
					     {"container", "web"},
					     {"node", "n1"},
					     {"service_name", "web"}};
	_cleanup_(labelled_deinit) struct labelled is = {0};
	struct fixture *f = *state;

	label_one(f, &row, true, &is);
	assert_int_equal(is.labels.n, LABELS_MAX);
	assert_int_equal(is.n_left_out, 2 * 21 + 5 - LABELS_MAX);
	for (size_t i = 0; i < array_size(own); i++)
		assert_string_equal(labels_get(&is.labels, own[i][0]), own[i][1]);
	assert_string_equal(is.labels.items[0].name, "a_meta_container_id");
}

/* A container in a container: named by the outer container in the pod, for any id of the inner
 * container. */
static void texts(void **state)
{
	struct fixture *f = *state;
	struct names pod_only = f->known;
	char text[NAMES_TEXT_MAX];

	names_text(&f->known, f->container, text);
	assert_string_equal(text, "shop/web-5d4f8-x/web");
	pod_only.outcome = METADATA_POD;
	pod_only.known.container = NULL;
	names_text(&pod_only, f->container, text);
	assert_string_equal(text, "shop/web-5d4f8-x/");
	names_text(&f->none, f->container, text);
	assert_string_equal(text, ID);
	names_text(&f->none, f->unit, text);
	assert_string_equal(text, "ssh.service");
	names_text(&f->none, entity_unknown(f->entities), text);
	assert_string_equal(text, "");
}

static int build(void *ctx)
{
	static const char *const labels[] = {"cluster=prod"}, *const patterns[] = {"x"};
	const struct naming_settings settings = {
		.labels = labels,
		.n_labels = 1,
		.select = patterns,
		.n_select = 1,
		.ignore = patterns,
		.n_ignore = 1,
	};
	_cleanup_(labelling_deinit) struct labelling labelling = {0};
	_cleanup_(labelled_deinit) struct labelled is = {0};
	_cleanup_(labels_deinit) struct labels meta = {.max = LABELS_META_MAX};
	struct fixture *f = ctx;
	struct pattern_error error;
	int r = labelling_init(&settings, &labelling, &error);

	if (!r)
		r = labelling_apply(&labelling, &f->known, f->container, true, true, &is);
	if (!r)
		r = meta_labels_add(&f->known, f->container, &meta);
	return r;
}

static void without_memory(void **state)
{
	assert_true(allocfail_each(build, *state) > 50);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(meta_labels_of_all_kinds),
		TEST(meta_labels_of_a_large_pod),
		TEST(selectors),
		TEST(selectors_refused),
		TEST(labelled_rows),
		TEST(too_slow),
		TEST(too_many),
		TEST(texts),
		TEST(without_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
