// SPDX-License-Identifier: Apache-2.0
/*
 * The entities an agent with the same settings would profile, and their labels. The settings are
 * the agent's own flags, variables and file, so inside the agent's pod the command needs no
 * options. The command looks for itself and waits a little for the names, and for mapped files
 * that do not answer. It does not ask the agent, because the agent may be broken.
 */
#include "cmd/inspect.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/loop.h"
#include "base/nsec.h"
#include "base/root.h"
#include "base/utf8.h"
#include "base/vec.h"
#include "cmd/cmd.h"
#include "cmd/cmdline.h"
#include "cmd/target_files.h"
#include "cmd/view.h"
#include "config/config.h"
#include "discovery/discovery.h"
#include "discovery/entity.h"
#include "discovery/pid.h"
#include "naming/labelling.h"
#include "naming/names.h"
#include "relabel/pattern.h"
#include "settings.h"

/* Time limit of waiting for names, and the interval between checks. */
#define TARGETS_WAIT_NS	      (3 * NSEC_PER_SEC)
#define TARGETS_POLL_NS	      (50 * NSEC_PER_MSEC)
/* Bytes of the line about the sources of names. */
#define TARGETS_SOURCES	      512
/* Processes gathered: the capacity of the agent's process cache. Reached: the others are left out.
 */
#define TARGETS_PROCESSES_MAX 65536
/* Processes listed of one entity, and the widest columns; longer texts push the next column. */
#define TEXT_PROCESSES	      8
#define TEXT_NAME	      64
#define TEXT_VALUE	      48

struct target_process {
	struct pid_id pid;
	const struct entity *entity;
	char comm[PID_COMM_MAX]; /* printable */
	size_t n_slow_files;
	char *slow_path; /* one of these files; owned, or NULL */
	bool slow_list;
};

/**
 * struct target_view - an entity
 * @is:        its labels and the reason for its exclusion
 * @processes: @n_processes processes, by number; borrowed
 */
struct target_view {
	const struct entity *entity;
	struct labelled is;
	char name[NAMES_TEXT_MAX];
	const struct target_process *processes;
	size_t n_processes;
};

struct inspection {
	struct config config;
	bool json;
	bool brief;
	const char *only; /* substring of the shown names; NULL: all */
	struct root proc;
	struct loop *loop;
	struct loop_source *timer;
	uint64_t deadline_ns;
	struct discovery *discovery;
	struct naming *naming;
	struct target_files *files;
	size_t n_unseen; /* mapping lists and files, after the time limit */
	struct target_process *processes;
	size_t n_processes;
	size_t cap_processes;
	struct target_view *views;
	size_t n_views;
};

static void inspection_deinit(struct inspection *t)
{
	for (size_t i = 0; i < t->n_views; i++)
		labelled_deinit(&t->views[i].is);
	free(t->views);
	for (size_t i = 0; i < t->n_processes; i++)
		free(t->processes[i].slow_path);
	free(t->processes);
	target_files_free(t->files);
	naming_free(t->naming);
	discovery_free(t->discovery);
	loop_free(t->loop);
	root_deinit(&t->proc);
	config_deinit(&t->config);
}

static int failed(const char *what, const char *why)
{
	cmd_error("inspect targets: %s: %s", what, why);
	return CMD_FAILED;
}

/* ---------------------------------------------------------------- waiting */

static bool is_pending(const struct inspection *t)
{
	const struct entity *entity = NULL;

	while ((entity = discovery_next_entity(t->discovery, entity)))
		if (entity->pending)
			return true;
	return false;
}

static void on_poll(void *ctx)
{
	struct inspection *t = ctx;

	if (!is_pending(t) || nsec_monotonic() >= t->deadline_ns)
		loop_stop(t->loop);
}

/* The last line names the sources. */
static void on_source(void *ctx, const char *source, bool ok, const char *why)
{
	(void)ctx;
	(void)source;
	(void)ok;
	(void)why;
}

static int wait_for_names(struct inspection *t)
{
	int r = loop_add_timer(t->loop, on_poll, t, &t->timer);

	t->deadline_ns = nsec_monotonic() + TARGETS_WAIT_NS;
	if (!r)
		r = loop_arm(t->timer, 1, TARGETS_POLL_NS);
	if (!r)
		r = loop_run(t->loop);
	return r ? r : loop_disarm(t->timer);
}

/* The owner is only compared. */
static int add_files(void *ctx, const struct pid_id *pid, struct entity *entity)
{
	const struct inspection *t = ctx;

	return target_files_add(t->files, pid, (uintptr_t)entity);
}

/* Of all processes. */
static int look_at_files(struct inspection *t)
{
	int r = target_files_new(t->loop, &t->proc, &t->files);

	if (!r)
		r = discovery_for_each_process(t->discovery, add_files, t);
	if (!r)
		r = target_files_look(t->files, &t->n_unseen);
	return r ? failed("cannot look at the mapped files", strerror(-r)) : CMD_DONE;
}

static int start(struct inspection *t)
{
	const struct config *c = &t->config;
	struct discovery_opts discovery = settings_discovery(c);
	struct pattern_error why = {""};
	struct settings_naming_opts with;
	int r = loop_new(&t->loop);

	if (r)
		return failed("cannot make the event loop", strerror(-r));
	if (cmdline_open_proc("inspect targets", c->proc_root, &t->proc))
		return CMD_FAILED;
	discovery.loop = t->loop;
	discovery.proc = &t->proc;
	discovery.grace_ns = TARGETS_WAIT_NS;
	r = discovery_new(&discovery, &t->discovery);
	if (r)
		return failed("cannot read the cgroups; set --cgroupfs-root", hierarchy_why(r));
	settings_naming_opts_init(&with, c);
	with.opts.loop = t->loop;
	with.opts.discovery = t->discovery;
	with.opts.source = on_source;
	with.opts.ctx = t;
	r = naming_new(&with.opts, &t->naming, &why);
	if (!r)
		r = wait_for_names(t);
	return r ? failed("cannot start the lookup of names", r < 0 ? strerror(-r) : why.text)
		 : look_at_files(t);
}

/* ---------------------------------------------------------------- gathering */

static int on_process(void *ctx, const struct pid_id *pid, struct entity *entity)
{
	struct inspection *t = ctx;
	struct target_process *process;
	int r = vec_grow(&t->processes, &t->cap_processes, t->n_processes + 1,
			 sizeof(*t->processes), TARGETS_PROCESSES_MAX);

	if (r)
		return r < 0 ? r : 0; /* above the limit */
	process = &t->processes[t->n_processes++];
	*process = (struct target_process){.pid = *pid, .entity = entity};
	if (pid_read_comm(&t->proc, pid, process->comm))
		snprintf(process->comm, sizeof(process->comm), "?");
	utf8_make_printable(process->comm);
	return 0;
}

static int process_order(const void *a, const void *b)
{
	const struct target_process *x = a, *y = b;

	if (x->entity != y->entity)
		return x->entity < y->entity ? -1 : 1;
	return (x->pid.pid > y->pid.pid) - (x->pid.pid < y->pid.pid);
}

/* The processes of an entity are adjacent. */
static void find_processes(const struct inspection *t, struct target_view *v)
{
	size_t low = 0, high = t->n_processes;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (t->processes[middle].entity < v->entity)
			low = middle + 1;
		else
			high = middle;
	}
	v->processes = t->processes + low;
	while (low + v->n_processes < t->n_processes &&
	       t->processes[low + v->n_processes].entity == v->entity)
		v->n_processes++;
}

/* Ended containers and units without processes are not shown. */
static bool is_shown(const struct inspection *t, const struct target_view *v)
{
	if (!entity_alive(v->entity) || (v->entity->kind != ENTITY_CONTAINER && !v->n_processes))
		return false;
	return !t->only || strstr(v->name, t->only);
}

static int view_order(const void *a, const void *b)
{
	const struct target_view *x = a, *y = b;

	if (!x->is.why[0] != !y->is.why[0])
		return x->is.why[0] ? 1 : -1;
	if (x->entity->kind != y->entity->kind)
		return x->entity->kind < y->entity->kind ? -1 : 1;
	return strcmp(x->name, y->name);
}

/* Patterns see "shop/web-1/" for processes of a pod outside of all containers. */
static void cut_slash(char *name)
{
	size_t n = strlen(name);

	if (n > 0 && name[n - 1] == '/')
		name[n - 1] = '\0';
}

static void on_slow(void *ctx, const struct address_space_slow *slow)
{
	struct inspection *t = ctx;

	for (size_t i = 0; i < t->n_processes; i++) {
		struct target_process *process = &t->processes[i];

		if (process->pid.pid != slow->pid)
			continue;
		process->n_slow_files = slow->n_files;
		process->slow_list = slow->list;
		if (!process->slow_path && slow->path)
			process->slow_path = strdup(slow->path);
		if (process->slow_path)
			utf8_make_printable(process->slow_path);
	}
}

static int add_view(struct inspection *t, const struct entity *entity)
{
	struct target_view *v = &t->views[t->n_views];
	int r;

	*v = (struct target_view){.entity = entity};
	r = naming_explain(t->naming, entity, &v->is, v->name);
	cut_slash(v->name);
	if (!r)
		find_processes(t, v);
	if (!r && is_shown(t, v))
		t->n_views++;
	else
		labelled_deinit(&v->is);
	return r;
}

static int gather(struct inspection *t)
{
	const struct entity *entity = NULL;
	size_t n = 1;
	int r = discovery_for_each_process(t->discovery, on_process, t);

	while ((entity = discovery_next_entity(t->discovery, entity)))
		n++;
	t->views = calloc(n, sizeof(*t->views));
	if (r || !t->views)
		return -ENOMEM;
	target_files_slow(t->files, on_slow, t);
	if (t->n_processes)
		qsort(t->processes, t->n_processes, sizeof(*t->processes), process_order);
	while (!r && (entity = discovery_next_entity(t->discovery, entity)))
		r = add_view(t, entity);
	qsort(t->views, t->n_views, sizeof(*t->views), view_order);
	return r;
}

/* ---------------------------------------------------------------- an entity's object */

/* "container", "sandbox", "unit", ... */
static const char *what_of(const struct target_view *v)
{
	return entity_what(v->entity->kind, &v->is.labels);
}

static json_t *json_labels(const struct labelled *is)
{
	json_t *labels = json_object();

	for (size_t i = 0; i < is->labels.n; i++) {
		const struct label *label = &is->labels.items[i];

		json_object_set_new(labels, label->name,
				    json_pack("{s:s, s:s?}", "value", label->value, "from",
					      labels_get(&is->origins, label->name)));
	}
	return labels;
}

static json_t *json_settings(const struct labels *settings)
{
	json_t *object = json_object();

	for (size_t i = 0; i < settings->n; i++)
		json_object_set_new(object, settings->items[i].name,
				    json_string(settings->items[i].value));
	return object;
}

static bool is_slow(const struct target_process *process)
{
	return process->n_slow_files || process->slow_list;
}

/* What does not answer in a process. */
static json_t *json_slow(const struct target_process *process)
{
	if (!is_slow(process))
		return json_null();
	return json_pack("{s:I, s:o, s:b}", "files", (json_int_t)process->n_slow_files, "path",
			 view_text(process->slow_path ? process->slow_path : ""), "maps",
			 process->slow_list);
}

static bool has_slow(const struct target_view *v)
{
	bool slow = false;

	for (size_t i = 0; i < v->n_processes; i++)
		slow |= is_slow(&v->processes[i]);
	return slow;
}

static json_t *json_processes(const struct target_view *v)
{
	json_t *list = json_array();

	for (size_t i = 0; i < v->n_processes; i++) {
		const struct target_process *process = &v->processes[i];

		json_array_append_new(list, json_pack("{s:I, s:s, s:o}", "pid",
						      (json_int_t)process->pid.pid, "comm",
						      process->comm, "slow", json_slow(process)));
	}
	return list;
}

/* The user of a container below a user's systemd. */
static json_t *json_user(const struct cgroup_id *id)
{
	struct strview user;

	return cgroup_user(id, &user) ? json_stringn(user.p, strview_len(&user)) : json_null();
}

static json_t *json_of(const struct target_view *v)
{
	const struct cgroup_id *id = &v->entity->id;
	bool container = v->entity->kind == ENTITY_CONTAINER;

	return json_pack("{s:s, s:s, s:b, s:o, s:b, s:b, s:s?, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
			 "name", v->name, "kind", what_of(v), "profiled", !v->is.why[0], "excluded",
			 view_text(v->is.why), "pending", v->entity->pending, "slow", has_slow(v),
			 "runtime", container ? cgroup_runtime_name(id->runtime) : NULL,
			 "container_id", view_text(id->container_id), "outer_container",
			 view_text(id->outer_id), "user", json_user(id), "pod_uid",
			 view_text(id->pod_uid), "labels", json_labels(&v->is), "settings",
			 json_settings(&v->is.settings), "processes", json_processes(v));
}

/* ---------------------------------------------------------------- text */

/* The longest value, without values above TEXT_VALUE. */
static size_t value_width(const struct labels *l)
{
	size_t width = 0;

	for (size_t i = 0; i < l->n; i++) {
		size_t n = strlen(l->items[i].value);

		if (n > width && n <= TEXT_VALUE)
			width = n;
	}
	return width;
}

/* Labels are on separate lines, each with an origin, to explain an unexpected label. */
static void print_labels(json_t *object, size_t width)
{
	char row[64];
	const char *name;
	json_t *label;

	snprintf(row, sizeof(row), "{value:-%zu|}  {from|}\n", width);
	json_object_foreach(json_object_get(object, "labels"), name, label) {
		printf("    %-20s ", name);
		view_print_text(label, row);
	}
	json_object_foreach(json_object_get(object, "settings"), name, label) {
		printf("    %-20s %s=", "setting", name);
		cmd_print(json_string_value(label));
		putchar('\n');
	}
}

static void print_processes(const json_t *processes)
{
	size_t n = json_array_size(processes);

	printf("    %-20s ", "processes");
	for (size_t i = 0; i < n && i < TEXT_PROCESSES; i++)
		view_print_text(json_array_get(processes, i),
				i ? ", {pid} {comm|}" : "{pid} {comm|}");
	if (n > TEXT_PROCESSES)
		printf(" and %d more", (int)(n - TEXT_PROCESSES));
	puts(n ? "" : "none");
}

/* Processes with files or mapping lists that do not answer. */
static void print_slow(const json_t *processes)
{
	size_t n = json_array_size(processes), n_slow = 0;

	for (size_t i = 0; i < n; i++) {
		const json_t *process = json_array_get(processes, i);
		const json_t *slow = json_object_get(process, "slow");

		if (json_is_null(slow) || n_slow++ >= TEXT_PROCESSES)
			continue;
		printf("    %-20s ", "slow");
		view_print_text(process, "process {pid}: ");
		view_print_text(slow, "[maps?its list of mappings does not answer\n]"
				      "[path?{path} does not answer (slow files: {files})\n]");
	}
	if (n_slow > TEXT_PROCESSES)
		printf("    %-20s %zu more processes\n", "slow", n_slow - TEXT_PROCESSES);
}

static void print_text(const struct target_view *v, json_t *object)
{
	view_print_text(object, "{name|(unknown)}\n"
				"[excluded?    NOT PROFILED: {excluded}\n]"
				"    {kind}[runtime?, {runtime} {container_id|}]");
	if (v->entity->kind == ENTITY_POD)
		view_print_text(object, " {pod_uid}: processes outside of its containers");
	view_print_text(object, json_is_null(json_object_get(object, "user"))
					? "[outer_container?, in container {outer_container}]\n"
					: ", of user {user}\n");
	view_print_text(object, "[pending?    name not known yet\n]");
	print_labels(object, value_width(&v->is.labels));
	print_processes(json_object_get(object, "processes"));
	print_slow(json_object_get(object, "processes"));
	putchar('\n');
}

static void print_brief(const json_t *object, size_t width)
{
	const json_t *labels = json_object_get(object, "labels");
	char row[64];

	snprintf(row, sizeof(row), "{name:-%zu|(unknown)}  {kind:-9}  ", width);
	view_print_text(object, row);
	printf("%9zu  ", json_array_size(json_object_get(object, "processes")));
	view_print_text(json_object_get(labels, "service_name"), "{value:-24}  ");
	view_print_text(object, "[excluded?no: {excluded}][profiled?yes][slow?, slow files]\n");
}

/* The longest name, without names above TEXT_NAME. */
static size_t name_width(const struct target_view *views, size_t n)
{
	size_t width = strlen("NAME");

	for (size_t i = 0; i < n; i++) {
		size_t length = strlen(views[i].name[0] ? views[i].name : "(unknown)");

		if (length > width && length <= TEXT_NAME)
			width = length;
	}
	return width;
}

static void print_summary(const struct inspection *t, const char *sources)
{
	const struct target_view *views = t->views;
	const size_t n = t->n_views;
	size_t kinds[ENTITY_KIND_MAX] = {0}, n_sandboxes = 0, left_out = 0;

	for (size_t i = 0; i < n; i++) {
		if (strcmp(what_of(&views[i]), "sandbox") == 0)
			n_sandboxes++;
		else
			kinds[views[i].entity->kind]++;
		left_out += views[i].is.why[0] != '\0';
	}
	printf("%zu containers, ", kinds[ENTITY_CONTAINER]);
	if (n_sandboxes)
		printf("%zu sandboxes, ", n_sandboxes);
	if (kinds[ENTITY_POD])
		printf("%zu pods, ", kinds[ENTITY_POD]);
	printf("%zu units, %zu programs; %zu not profiled\n", kinds[ENTITY_UNIT],
	       kinds[ENTITY_PROCESS], left_out);
	printf("names from: %s\n", *sources ? sources : "no source");
	if (t->n_unseen)
		printf("mapped files without an answer so far: %zu, some were not looked at\n",
		       t->n_unseen);
}

/* One object of each entity; the text is printed from the same object. */
static int print(const struct inspection *t)
{
	const size_t width = name_width(t->views, t->n_views);
	char sources[TARGETS_SOURCES];

	if (t->brief && !t->json)
		printf("%-*s  %-9s  %9s  %-24s  %s\n", (int)width, "NAME", "KIND", "PROCESSES",
		       "SERVICE", "PROFILED");
	for (size_t i = 0; i < t->n_views; i++) {
		_cleanup_(json_decrefp) json_t *object = json_of(&t->views[i]);

		if (!object)
			return -ENOMEM;
		if (t->json && cmd_print_json(json_incref(object)))
			return -ENOMEM;
		if (!t->json && t->brief)
			print_brief(object, width);
		else if (!t->json)
			print_text(&t->views[i], object);
	}
	if (t->json)
		return 0;
	naming_describe(t->naming, sources, sizeof(sources));
	utf8_make_printable(sources);
	print_summary(t, sources);
	return 0;
}

/* ---------------------------------------------------------------- the command line */

static int print_help(void)
{
	printf("usage: podprof inspect targets [--json] [--brief] [--name TEXT] [AGENT FLAGS]\n"
	       "\n"
	       "Shows what an agent with these settings profiles on this node: each container, "
	       "unit and\n"
	       "program with its processes, its labels and their sources; and each excluded one "
	       "with the\n"
	       "reason. The settings are those of 'podprof agent': its flags (see 'podprof agent\n"
	       "--help'), variables and file.\n"
	       "\n"
	       "  --brief      one line each\n"
	       "  --name TEXT  only those with TEXT in their names\n"
	       "  --json       one JSON object a line: name, kind, profiled, excluded (the "
	       "reason),\n"
	       "               pending (the name may still arrive), slow (below), runtime,\n"
	       "               container_id, outer_container, user (of the systemd above),\n"
	       "               pod_uid, labels {NAME: {value, from}}, settings (of the pod's\n"
	       "               annotations), processes [{pid, comm, slow}]; slow {files, path,\n"
	       "               maps}: the number of mapped files whose file system does not\n"
	       "               answer, one of them, and whether the list of mappings does not\n"
	       "  --help       this text\n"
	       "\n"
	       "Exit status: 0 done, 1 failed, 2 wrong usage, 3 nothing to show\n");
	return CMD_DONE;
}

/* Removes this command's own options from the agent's options. False for --name without a value. */
static bool take_own(struct inspection *t, int *argc, char **argv)
{
	int n = 1;

	for (int i = 1; i < *argc; i++) {
		if (strcmp(argv[i], "--json") == 0)
			t->json = true;
		else if (strcmp(argv[i], "--brief") == 0)
			t->brief = true;
		else if (strncmp(argv[i], "--name=", 7) == 0)
			t->only = argv[i] + 7;
		else if (strcmp(argv[i], "--name") == 0 && i + 1 < *argc)
			t->only = argv[++i];
		else if (strcmp(argv[i], "--name") == 0)
			return false;
		else
			argv[n++] = argv[i];
	}
	*argc = n;
	return true;
}

int inspect_targets(int argc, char **argv)
{
	_cleanup_(inspection_deinit) struct inspection t = {.proc = ROOT_INIT};
	int status;

	if (!take_own(&t, &argc, argv)) {
		cmd_error("inspect targets: missing value after '--name'");
		return CMD_USAGE;
	}
	if (!cmdline_settings("inspect targets", argc, argv, print_help, &t.config, &status))
		return status;
	status = start(&t);
	if (!status && (gather(&t) || print(&t)))
		status = failed("cannot show the targets", strerror(ENOMEM));
	if (!status && !t.n_views)
		status = CMD_NOTHING;
	return cmdline_finish("inspect targets", status);
}
