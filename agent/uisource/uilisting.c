// SPDX-License-Identifier: Apache-2.0
/*
 * An entity's id on the pages is the name of its store folder, computed from its labels, even
 * without a folder. A link therefore stays valid after the container's end. Two label sets never
 * share an id, since the store and this file take the next name on a collision.
 */
#include "uisource/uilisting.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "cpu/profiler.h"
#include "cpu/sampler.h"
#include "cpu/series.h"
#include "discovery/discovery.h"
#include "export/store.h"
#include "export/store_name.h"
#include "goprofile/profiler.h"
#include "procmap/address_space.h"
#include "uisource/uisource.h"

/* Folder names tried for a label set; the names contain a hash of 32 bits. */
#define UILISTING_NAME_ATTEMPTS 8
/* Entities, folders or cgroups of one step of a listing: a few microseconds each. */
#define UILISTING_STEP		32
/* Cgroups with files on silent file systems. Reached: the others are shown without. */
#define UILISTING_SLOW_MAX	64

/* A referenced entity; @next: the next one of its series, as number + 1; 0: none. */
struct member {
	struct entity *entity;
	size_t next;
};

/* The entities with one label set. */
struct listed {
	char id[STORE_NAME_MAX];
	size_t first, last; /* members */
	UT_hash_handle hh;
};

enum phase {
	PHASE_SLOW,	 /* containers' cgroups of silent file systems */
	PHASE_SLOW_HOST, /* the host's */
	PHASE_SERIES,	 /* members by label set */
	PHASE_LIVE,	 /* tells the series */
	PHASE_GONE,	 /* tells the folders without an entity */
};

/* ---------------------------------------------------------------- silent file systems */

struct slow_files {
	uint64_t cgroup;
	const struct entity *entity; /* only compared */
	struct ui_slow ui;
	char *path; /* of @ui */
};

struct slow_table {
	struct slow_files items[UILISTING_SLOW_MAX];
	size_t n;
	bool v1; /* the node has directories of version 1 */
};

/* All that is needed for the pages of entities: the loop's state may change between two steps. */
struct ui_listing {
	const struct uisource_opts *opts;
	char *only; /* the id; NULL: all */
	enum phase phase;
	struct slow_table slow;
	struct cgroup_listing *cgroups;
	struct member *members;
	size_t n_members;
	char (*folders)[STORE_NAME_MAX]; /* with profiles */
	size_t n_folders;
	size_t at; /* in the list of the phase */
	struct listed *series;
	struct listed *next; /* to be told */
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
	struct slow_table *t = ctx;
	struct slow_files *s = slow_of_cgroup(t, slow->owner);
	struct ui_slow one = {
		.n_files = slow->n_files,
		.n_processes = slow->path != NULL,
		.pid = slow->pid,
		.n_lists = slow->list,
		.list_pid = slow->pid,
	};
	char *copy;

	if (!s && t->n < UILISTING_SLOW_MAX)
		s = &t->items[t->n++];
	if (!s)
		return;
	s->cgroup = slow->owner;
	copy = slow->path ? strdup(slow->path) : NULL; /* without memory the last path stays */
	if (copy) {
		free(s->path);
		one.path = s->path = copy;
	}
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

/* The entities of @series have the same labels, so the page shows all as one series. */
static void view_live(const struct ui_listing *l, const struct listed *series,
		      struct entity_view *view)
{
	const struct entity *first = l->members[series->first].entity;
	const struct uisource_opts *opts = l->opts;
	const struct store_folder *folder =
		opts->store ? store_find_folder(opts->store, series->id) : NULL;
	const struct member *m = &l->members[series->first];
	struct goalloc_view go;

	snprintf(view->id, sizeof(view->id), "%s", series->id);
	view_name(view, &first->labels);
	view->ui.kind = entity_what(first->kind, &first->labels);
	view->ui.runtime = runtime_of(first);
	view->ui.excluded = first->left_out;
	view->ui.n_profiles = folder ? folder->n_profiles : 0;
	for (; m; m = m->next ? &l->members[m->next - 1] : NULL) {
		const struct series *s =
			opts->cpu ? cpu_profiler_series(opts->cpu, m->entity->key) : NULL;

		if (!m->entity->left_out)
			view->ui.excluded = NULL;
		view_slow(&l->slow, m->entity, &view->ui);
		view->ui.samples += s ? s->n_last : 0;
		view->ui.cpu_ns += s ? s->value_last : 0;
	}
	if (opts->heap && go_profiler_view(opts->heap, first, &go)) {
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

/* ---- steps */

/* Adds a member to the series of its label set. Two label sets with the same name have different
 * ids, as in the store. */
static int add_to_series(struct ui_listing *l, size_t i)
{
	const struct labels *labels = &l->members[i].entity->labels;
	const struct store *store = l->opts->store;
	const struct store_folder *folder;
	char id[STORE_NAME_MAX];
	struct listed *series;
	bool hash_oom = false;

	for (uint32_t attempt = 0; attempt < UILISTING_NAME_ATTEMPTS; attempt++) {
		store_name_folder(labels, attempt, id);
		folder = store ? store_find_folder(store, id) : NULL;
		if (folder && !labels_equal(&folder->labels, labels))
			continue;
		HASH_FIND_STR(l->series, id, series);
		if (!series) {
			series = calloc(1, sizeof(*series));
			if (!series)
				return -ENOMEM;
			snprintf(series->id, sizeof(series->id), "%s", id);
			series->first = series->last = i;
			HASH_ADD_STR(l->series, id, series);
			if (hash_oom)
				free(series);
			return hash_oom ? -ENOMEM : 0;
		}
		if (!labels_equal(&l->members[series->first].entity->labels, labels))
			continue;
		l->members[series->last].next = i + 1;
		series->last = i;
		return 0;
	}
	return 0; /* without a name it is not shown */
}

static void tell_live(const struct ui_listing *l, const struct listed *series, ui_entity_fn fn,
		      void *arg)
{
	struct entity_view view = {.ui = {0}};

	view_live(l, series, &view);
	fn(arg, &view.ui);
}

/* False if there is no such folder any more. */
static bool tell_gone(const struct ui_listing *l, const char *name, ui_entity_fn fn, void *arg)
{
	const struct store *store = l->opts->store;
	const struct store_folder *folder = store ? store_find_folder(store, name) : NULL;
	struct entity_view view = {.ui = {0}};

	if (!folder)
		return false;
	view_gone(folder, &view);
	fn(arg, &view.ui);
	return true;
}

/* One directory. False after the last one of all. */
static bool slow_step(struct ui_listing *l)
{
	const bool of_host = l->phase == PHASE_SLOW_HOST;

	if (!l->cgroups &&
	    discovery_list_cgroups(l->opts->discovery, of_host,
				   of_host ? on_host_cgroup : on_cgroup, &l->slow, &l->cgroups))
		return false; /* without memory the page lacks silent file systems */
	if (cgroup_listing_step(l->cgroups))
		return true;
	cgroup_listing_free(take_ptr(l->cgroups));
	l->phase = PHASE_SLOW_HOST;
	return !of_host;
}

/* The page of one entity. */
static int tell_only(const struct ui_listing *l, ui_entity_fn fn, void *arg)
{
	struct listed *series;

	HASH_FIND_STR(l->series, l->only, series);
	if (series)
		tell_live(l, series, fn, arg);
	return series || tell_gone(l, l->only, fn, arg) ? 0 : UI_GONE;
}

/* The smallest part of a listing. */
static int list_next(struct ui_listing *l, ui_entity_fn fn, void *arg)
{
	struct listed *series = l->next;

	switch (l->phase) {
	case PHASE_SLOW:
	case PHASE_SLOW_HOST:
		if (!slow_step(l))
			l->phase = PHASE_SERIES;
		return UI_MORE;
	case PHASE_SERIES:
		if (l->at < l->n_members) {
			int r = add_to_series(l, l->at++);

			return r ? r : UI_MORE;
		}
		l->next = l->series;
		l->at = 0;
		l->phase = PHASE_LIVE;
		return l->only ? tell_only(l, fn, arg) : UI_MORE;
	case PHASE_LIVE:
		if (series) {
			tell_live(l, series, fn, arg);
			l->next = series->hh.next;
		} else {
			l->phase = PHASE_GONE;
		}
		return UI_MORE;
	case PHASE_GONE:
		if (l->at == l->n_folders)
			return 0;
		HASH_FIND_STR(l->series, l->folders[l->at], series);
		if (!series)
			(void)tell_gone(l, l->folders[l->at], fn, arg);
		l->at++;
		return UI_MORE;
	}
	return 0;
}

int uilisting_step(struct ui_listing *l, ui_entity_fn fn, void *arg)
{
	int r = UI_MORE;

	for (int i = 0; i < UILISTING_STEP && r == UI_MORE; i++)
		r = list_next(l, fn, arg);
	return r;
}

void uilisting_free(struct ui_listing *l)
{
	struct listed *series, *next;

	if (!l)
		return;
	HASH_ITER(hh, l->series, series, next) {
		HASH_DEL(l->series, series);
		free(series);
	}
	for (size_t i = 0; i < l->n_members; i++)
		entity_unref(l->members[i].entity);
	for (size_t i = 0; i < l->slow.n; i++)
		free(l->slow.items[i].path);
	cgroup_listing_free(l->cgroups);
	free(l->members);
	free(l->folders);
	free(l->only);
	free(l);
}

DEFINE_CLEANUP(struct ui_listing *, uilisting_freep, uilisting_free);

/* References to all entities. */
static int take_members(struct ui_listing *l)
{
	struct discovery *discovery = l->opts->discovery;
	struct entity *entity = NULL;
	size_t n = 0;

	while ((entity = discovery_next_entity(discovery, entity)))
		n++;
	l->members = calloc(n + 1, sizeof(*l->members));
	if (!l->members)
		return -ENOMEM;
	while ((entity = discovery_next_entity(discovery, entity)))
		l->members[l->n_members++].entity = entity_ref(entity);
	return 0;
}

static int take_folders(struct ui_listing *l)
{
	const struct store *store = l->opts->store;
	const struct store_folder *folder = NULL;
	size_t n = 0;

	if (!store)
		return 0;
	while ((folder = store_next_folder(store, folder)))
		n++;
	l->folders = calloc(n + 1, sizeof(*l->folders));
	if (!l->folders)
		return -ENOMEM;
	while ((folder = store_next_folder(store, folder)))
		snprintf(l->folders[l->n_folders++], STORE_NAME_MAX, "%s", folder->name);
	return 0;
}

int uilisting_new(const struct uisource_opts *opts, const char *only, struct ui_listing **ret)
{
	_cleanup_(uilisting_freep) struct ui_listing *l = calloc(1, sizeof(*l));
	int r;

	if (!l)
		return -ENOMEM;
	l->opts = opts;
	l->only = only ? strdup(only) : NULL;
	if (only && !l->only)
		return -ENOMEM;
	r = take_members(l);
	if (!r)
		r = take_folders(l);
	if (r)
		return r;
	if (opts->cpu)
		address_space_cache_slow(
			cpu_sampler_address_spaces(cpu_profiler_sampler(opts->cpu)), on_slow,
			&l->slow);
	l->slow.v1 = discovery_v1_controller(opts->discovery) != CONTROLLER_NONE;
	l->phase = l->slow.n ? PHASE_SLOW : PHASE_SERIES;
	*ret = take_ptr(l);
	return 0;
}
