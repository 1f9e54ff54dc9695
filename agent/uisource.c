// SPDX-License-Identifier: Apache-2.0
/*
 * An entity's id on the pages is the name of its store folder, computed from its labels, even
 * without a folder. A link therefore stays valid after the container's end. Two label sets never
 * share an id, since the store and this file take the next name on a collision.
 */
#include "uisource.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/hash.h"
#include "cpu/profiler.h"
#include "cpu/sampler.h"
#include "discovery/discovery.h"
#include "export/store.h"
#include "export/store_name.h"
#include "goprofile/profiler.h"
#include "pprof/flame.h"
#include "pprof/reader.h"
#include "procmap/address_space.h"
#include "cpu/series.h"

/* Profiles of one flame graph, the newest first: reading a profile takes a millisecond of the HTTP
 * worker, a large one 35 ms. Reached: the newest; the page says how many. */
#define UISOURCE_FLAME_PROFILES_MAX 120
/* Bytes of one profile after decompression. Reached: left out of the graph. */
#define UISOURCE_PPROF_MAX	    (16u << 20)
/* Folder names tried for a label set; the names contain a hash of 32 bits. */
#define UISOURCE_NAME_ATTEMPTS	    8
/* Cgroups with files on silent file systems. Reached: the others are shown without. */
#define UISOURCE_SLOW_MAX	    64

struct uisource {
	struct uisource_opts opts;
	struct ui_source ui;
};

/* The store's folders by name, for one request. */
struct folder_entry {
	const struct store_folder *folder;
	bool shown;
	UT_hash_handle hh;
};

struct folder_table {
	struct folder_entry *entries;
};

DEFINE_CLEANUP(struct flame *, flame_freep, flame_free);

static void folder_table_deinit(struct folder_table *t)
{
	struct folder_entry *e, *next;

	HASH_ITER(hh, t->entries, e, next) {
		HASH_DEL(t->entries, e);
		free(e);
	}
}

static int folder_table_add(struct folder_table *t, const struct store_folder *folder)
{
	struct folder_entry *e;
	bool hash_oom = false;

	HASH_FIND_STR(t->entries, folder->name, e);
	if (e)
		return 0;
	e = calloc(1, sizeof(*e));
	if (!e)
		return -ENOMEM;
	e->folder = folder;
	HASH_ADD_KEYPTR(hh, t->entries, folder->name, strlen(folder->name), e);
	if (hash_oom)
		free(e);
	return hash_oom ? -ENOMEM : 0;
}

/* Without memory the table is short, and the page shows less. */
static void folder_table_fill(struct folder_table *t, const struct store *store)
{
	const struct store_folder *last = NULL;

	for (size_t i = 0; store && i < store_n_profiles(store); i++) {
		const struct store_folder *folder = store_at(store, i)->folder;

		if (folder != last && folder_table_add(t, folder))
			return;
		last = folder;
	}
}

/* The id of a label set, and the set's folder if the store has one. */
static struct folder_entry *folder_of_labels(const struct folder_table *t,
					     const struct labels *labels,
					     char ret_id[STORE_NAME_MAX])
{
	struct folder_entry *e = NULL;

	for (uint32_t attempt = 0; attempt < UISOURCE_NAME_ATTEMPTS; attempt++) {
		store_name_folder(labels, attempt, ret_id);
		HASH_FIND_STR(t->entries, ret_id, e);
		if (!e || labels_equal(&e->folder->labels, labels))
			return e;
	}
	return NULL;
}

/* ---------------------------------------------------------------- silent file systems */

struct slow_files {
	uint64_t cgroup;
	const struct entity *entity;
	struct ui_slow ui; /* with texts for one request */
};

struct slow_table {
	struct slow_files items[UISOURCE_SLOW_MAX];
	size_t n;
	bool v1; /* the node has directories of version 1 */
};

static struct slow_files *slow_of_cgroup(struct slow_table *t, uint64_t cgroup)
{
	for (size_t i = 0; i < t->n; i++)
		if (t->items[i].cgroup == cgroup)
			return &t->items[i];
	return NULL;
}

static void add_slow(struct ui_slow *to, const struct ui_slow *from)
{
	if (from->path)
		to->pid = from->pid;
	if (from->path)
		to->path = from->path;
	if (from->n_lists)
		to->list_pid = from->list_pid;
	to->n_files += from->n_files;
	to->n_processes += from->n_processes;
	to->n_lists += from->n_lists;
}

static void on_slow(void *ctx, const struct address_space_slow *slow)
{
	const struct ui_slow one = {
		.n_files = slow->n_files,
		.n_processes = slow->path != NULL,
		.pid = slow->pid,
		.path = slow->path,
		.n_lists = slow->list,
		.list_pid = slow->pid,
	};
	struct slow_table *t = ctx;
	struct slow_files *s = slow_of_cgroup(t, slow->owner);

	if (!s && t->n < UISOURCE_SLOW_MAX)
		s = &t->items[t->n++];
	if (!s)
		return;
	s->cgroup = slow->owner;
	add_slow(&s->ui, &one);
}

/* An owner's id (discovery_owner()) is of either version where both have containers' directories,
 * and of version 1 in the first place. */
static void on_cgroup(void *ctx, struct entity *entity, enum hierarchy hierarchy, uint64_t id)
{
	struct slow_table *t = ctx;
	struct slow_files *s = slow_of_cgroup(t, id);

	if (s && entity && (!s->entity || (hierarchy == HIERARCHY_V1) == t->v1))
		s->entity = entity;
}

static void on_host_cgroup(void *ctx, struct entity *entity, enum hierarchy hierarchy, uint64_t id)
{
	struct slow_files *s = slow_of_cgroup(ctx, id);

	(void)hierarchy;
	if (s && !s->entity)
		s->entity = entity;
}

/* Of all entities, for one request. */
static void slow_table_fill(const struct uisource *u, struct slow_table *t)
{
	if (u->opts.cpu)
		address_space_cache_slow(
			cpu_sampler_address_spaces(cpu_profiler_sampler(u->opts.cpu)), on_slow, t);
	if (!t->n)
		return;
	t->v1 = discovery_v1_controller(u->opts.discovery) != CONTROLLER_NONE;
	discovery_for_each_cgroup(u->opts.discovery, on_cgroup, t);
	discovery_for_each_host_cgroup(u->opts.discovery, on_host_cgroup, t);
}

static void view_slow(const struct slow_table *t, const struct entity *entity, struct ui_entity *ui)
{
	for (size_t i = 0; i < t->n; i++) {
		if (t->items[i].entity != entity)
			continue;
		add_slow(&ui->slow, &t->items[i].ui);
	}
}

/* ---------------------------------------------------------------- entities */

/* One entity for a page, with buffers for composed texts. */
struct entity_view {
	struct ui_entity ui;
	char id[STORE_NAME_MAX];
	char name[512];
};

/* "shop/checkout-7d4f/app" with known Kubernetes names, else the series' service name. */
static void view_name(struct entity_view *view, const struct labels *labels)
{
	const char *namespace = labels_get(labels, "namespace"), *pod = labels_get(labels, "pod");
	const char *container = labels_get(labels, "container");
	const char *service = labels_get(labels, "service_name");

	if (namespace && pod)
		snprintf(view->name, sizeof(view->name), "%s/%s%s%s", namespace, pod,
			 container ? "/" : "", container ? container : "");
	else
		snprintf(view->name, sizeof(view->name), "%s", service ? service : "(unnamed)");
	view->ui.name = view->name;
	view->ui.id = view->id;
	view->ui.labels = labels;
}

static const char *runtime_of(const struct entity *entity)
{
	if (entity->kind != ENTITY_CONTAINER || entity->id.runtime == CGROUP_RUNTIME_UNKNOWN)
		return "";
	return cgroup_runtime_name(entity->id.runtime);
}

/* The reason for excluding all of @entities; NULL: one of them is profiled. */
static const char *excluded(struct entity *const *entities, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!entities[i]->left_out)
			return NULL;
	return entities[0]->left_out;
}

/* @entities have the same labels, so the page shows all as one series. */
static void view_live(const struct uisource *u, const struct slow_table *slow,
		      struct entity *const *entities, size_t n, struct entity_view *view)
{
	struct goalloc_view go;

	view_name(view, &entities[0]->labels);
	view->ui.kind = entity_what(entities[0]->kind, &entities[0]->labels);
	view->ui.runtime = runtime_of(entities[0]);
	view->ui.excluded = excluded(entities, n);
	for (size_t i = 0; i < n; i++)
		view_slow(slow, entities[i], &view->ui);
	for (size_t i = 0; u->opts.cpu && i < n; i++) {
		const struct series *series = cpu_profiler_series(u->opts.cpu, entities[i]->key);

		view->ui.samples += series ? series->n_last : 0;
		view->ui.cpu_ns += series ? series->value_last : 0;
	}
	if (u->opts.heap && go_profiler_view(u->opts.heap, entities[0], &go)) {
		view->ui.go_state = go.state;
		view->ui.go_version = go.go_version;
		view->ui.go_inuse_bytes = go.inuse_bytes;
	}
}

static void view_gone(const struct store_folder *folder, struct entity_view *view)
{
	view_name(view, &folder->labels);
	snprintf(view->id, sizeof(view->id), "%s", folder->name);
	view->ui.kind = "gone";
	view->ui.runtime = labels_get(&folder->labels, "runtime");
	if (!view->ui.runtime)
		view->ui.runtime = "";
	view->ui.n_profiles = folder->n_profiles;
}

static int label_order(const void *a, const void *b)
{
	const struct entity *const *x = a, *const *y = b;

	return labels_compare(&(*x)->labels, &(*y)->labels);
}

/* All entities, sorted by labels; the caller frees the list. NULL without memory: the page then
 * lacks the entities. */
static struct entity **entities_by_labels(const struct uisource *u, size_t *ret_n)
{
	struct entity *entity = NULL, **list;
	size_t n = 0;

	while ((entity = discovery_next_entity(u->opts.discovery, entity)))
		n++;
	list = calloc(n + 1, sizeof(struct entity *));
	for (n = 0; list && (entity = discovery_next_entity(u->opts.discovery, entity)); n++)
		list[n] = entity;
	if (list)
		qsort(list, n, sizeof(*list), label_order);
	*ret_n = list ? n : 0;
	return list;
}

/* Calls @fn for each live series; with @only, just for that id. Marks the folders of the others. */
static bool each_live(const struct uisource *u, struct folder_table *t, const char *only,
		      ui_entity_fn fn, void *arg)
{
	size_t n, end;
	_cleanup_(freep) struct entity **entities = entities_by_labels(u, &n);
	struct slow_table slow = {.n = 0};
	bool found = false;

	slow_table_fill(u, &slow);
	for (size_t i = 0; i < n; i = end) {
		struct entity_view view = {.ui = {0}};
		struct folder_entry *e = folder_of_labels(t, &entities[i]->labels, view.id);

		for (end = i + 1; end < n && label_order(&entities[i], &entities[end]) == 0; end++)
			;
		if (only && strcmp(only, view.id) != 0)
			continue;
		view_live(u, &slow, entities + i, end - i, &view);
		if (e) {
			view.ui.n_profiles = e->folder->n_profiles;
			e->shown = true;
		}
		fn(arg, &view.ui);
		found = true;
	}
	return found;
}

static void on_entities(void *ctx, ui_entity_fn fn, void *arg)
{
	_cleanup_(folder_table_deinit) struct folder_table t = {NULL};
	const struct uisource *u = ctx;

	folder_table_fill(&t, u->opts.store);
	(void)each_live(u, &t, NULL, fn, arg);
	for (struct folder_entry *e = t.entries; e; e = e->hh.next) {
		struct entity_view view = {.ui = {0}};

		if (e->shown)
			continue;
		view_gone(e->folder, &view);
		fn(arg, &view.ui);
	}
}

static int on_entity(void *ctx, const char *id, ui_entity_fn fn, void *arg)
{
	_cleanup_(folder_table_deinit) struct folder_table t = {NULL};
	struct entity_view view = {.ui = {0}};
	const struct uisource *u = ctx;
	struct folder_entry *e;

	folder_table_fill(&t, u->opts.store);
	if (each_live(u, &t, id, fn, arg))
		return 0;
	HASH_FIND_STR(t.entries, id, e);
	if (!e)
		return UI_GONE;
	view_gone(e->folder, &view);
	fn(arg, &view.ui);
	return 0;
}

/* ---------------------------------------------------------------- profiles */

static void on_profiles(void *ctx, const char *entity, ui_profile_fn fn, void *arg)
{
	const struct uisource *u = ctx;
	const struct store *store = u->opts.store;

	for (size_t i = 0; store && i < store_n_profiles(store); i++) {
		const struct store_profile *p = store_at(store, i);
		const struct ui_profile profile = {
			.id = p->id,
			.kind = profile_kind_name(p->kind),
			.start_ns = p->start_ns,
			.duration_ns = p->duration_ns,
			.bytes = p->bytes,
		};

		if (strcmp(p->folder->name, entity) == 0)
			fn(arg, &profile);
	}
}

static bool query_wants(const struct ui_flame_query *query, const struct store_profile *p)
{
	return p->start_ns >= query->from_ns && p->start_ns < query->until_ns &&
	       strcmp(profile_kind_name(p->kind), query->kind) == 0;
}

/* Cumulative profiles must not be added up: the newest is the result. */
static size_t flame_profiles_max(const struct ui_flame_query *query)
{
	for (int i = 0; i < PROFILE_KIND_MAX; i++)
		if (profile_kind_is_cumulative((enum profile_kind)i) &&
		    strcmp(query->kind, profile_kind_name((enum profile_kind)i)) == 0)
			return 1;
	return UISOURCE_FLAME_PROFILES_MAX;
}

/* ---- jobs: made on the loop, run on the HTTP worker */

/* @type: NULL for the profile's first. */
struct store_job {
	struct http_job job;
	struct root dir;
	char *type;
	size_t n;
	struct store_file files[];
};

static void store_job_free(struct http_job *job)
{
	struct store_job *j = container_of(job, struct store_job, job);

	root_deinit(&j->dir);
	free(j->type);
	free(j);
}

/* Requires a store with a profile. 0 or -errno. */
static int store_job_new(const struct uisource *u, size_t n,
			 int (*run)(struct http_job *job, struct buf *ret), struct store_job **ret)
{
	struct store_job *j = calloc(1, sizeof(*j) + n * sizeof(j->files[0]));
	int r;

	if (!j)
		return -ENOMEM;
	j->job.run = run;
	j->job.free = store_job_free;
	j->job.reads_disk = true;
	r = store_dup_dir(u->opts.store, &j->dir);
	if (r) {
		free(j);
		return r;
	}
	*ret = j;
	return 0;
}

/* A missing or broken file adds nothing; the graph shows the number of its profiles. */
static int flame_add_stored(struct flame *flame, const struct store_job *j,
			    const struct store_file *file)
{
	_cleanup_(buf_deinit) struct buf bytes = BUF_INIT(STORE_PROFILE_SIZE_MAX);
	_cleanup_(reader_freep) struct reader *reader = NULL;
	const char *why;
	int r = store_read_file(&j->dir, file, &bytes);

	if (!r)
		r = reader_new(bytes.data, bytes.len, UISOURCE_PPROF_MAX, &reader, &why);
	if (r)
		return r;
	return flame_add(flame, reader_tables(reader), j->type);
}

static int json_put(const char *data, size_t n, void *arg)
{
	return buf_append(arg, data, n) ? -1 : 0;
}

static int run_flame(struct http_job *job, struct buf *ret)
{
	const struct store_job *j = container_of(job, struct store_job, job);
	_cleanup_(flame_freep) struct flame *flame = NULL;
	_cleanup_(json_decrefp) json_t *json = NULL;
	size_t n = 0;
	int r = flame_new(&flame);

	for (size_t i = 0; i < j->n && r != -ENOMEM; i++) {
		if (!http_job_go_on(job))
			return HTTP_JOB_STOPPED;
		r = flame_add_stored(flame, j, &j->files[i]);
		n += !r;
	}
	if (r == -ENOMEM)
		return r;
	if (!n)
		return HTTP_JOB_GONE;
	r = flame_json(flame, FLAME_SHOWN_MAX, &json);
	if (!r && json_dump_callback(json, json_put, ret, JSON_COMPACT))
		r = -ENOMEM;
	return r;
}

static int run_raw(struct http_job *job, struct buf *ret)
{
	const struct store_job *j = container_of(job, struct store_job, job);
	int r = store_read_file(&j->dir, &j->files[0], ret);

	return r > 0 ? HTTP_JOB_GONE : r;
}

/* Folders of one name are one folder, so most comparisons are of pointers. */
static int on_flame(void *ctx, const struct ui_flame_query *query, struct http_job **ret)
{
	const struct store_folder *other = NULL, *wanted = NULL;
	const struct uisource *u = ctx;
	const struct store *store = u->opts.store;
	size_t max = flame_profiles_max(query);
	struct store_job *j;
	int r;

	if (!store || !store_n_profiles(store))
		return UI_GONE;
	r = store_job_new(u, max, run_flame, &j);
	if (r)
		return r;
	j->type = query->type ? strdup(query->type) : NULL;
	if (query->type && !j->type) {
		store_job_free(&j->job);
		return -ENOMEM;
	}
	for (size_t i = store_n_profiles(store); i > 0 && j->n < max; i--) {
		const struct store_profile *p = store_at(store, i - 1);

		if (p->folder == other)
			continue;
		if (p->folder != wanted && strcmp(p->folder->name, query->entity) != 0) {
			other = p->folder;
			continue;
		}
		wanted = p->folder;
		if (query_wants(query, p))
			store_file_of(p, &j->files[j->n++]);
	}
	if (!j->n) {
		store_job_free(&j->job);
		return UI_GONE;
	}
	*ret = &j->job;
	return 0;
}

static int on_raw(void *ctx, uint64_t profile, struct http_job **ret)
{
	const struct uisource *u = ctx;
	const struct store_profile *p = u->opts.store ? store_find(u->opts.store, profile) : NULL;
	struct store_job *j;
	int r;

	if (!p)
		return UI_GONE;
	r = store_job_new(u, 1, run_raw, &j);
	if (r)
		return r;
	store_file_of(p, &j->files[0]);
	j->n = 1;
	*ret = &j->job;
	return 0;
}

int uisource_new(const struct uisource_opts *opts, struct uisource **ret)
{
	struct uisource *u = calloc(1, sizeof(*u));

	if (!u)
		return -ENOMEM;
	u->opts = *opts;
	u->ui = (struct ui_source){
		.ctx = u,
		.node = opts->node,
		.window_ns = opts->window_ns,
		.entities = on_entities,
		.entity = on_entity,
		.profiles = on_profiles,
		.flame = on_flame,
		.raw = on_raw,
	};
	*ret = u;
	return 0;
}

void uisource_free(struct uisource *u)
{
	free(u);
}

const struct ui_source *uisource_get(const struct uisource *u)
{
	return &u->ui;
}
