// SPDX-License-Identifier: Apache-2.0
#include "uisource/uisource.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/root.h"
#include "export/store.h"
#include "pprof/flame.h"
#include "pprof/reader.h"
#include "uisource/uilisting.h"

/* Profiles of one flame graph, the newest first: reading a profile takes a millisecond of the HTTP
 * worker, a large one 35 ms. Reached: the newest; the page says how many. */
#define UISOURCE_FLAME_PROFILES_MAX 120
/* Bytes of one profile after decompression. Reached: left out of the graph. */
#define UISOURCE_PPROF_MAX	    (16u << 20)

struct uisource {
	struct uisource_opts opts;
	struct ui_source ui;
};

DEFINE_CLEANUP(struct flame *, flame_freep, flame_free);

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

/* ---------------------------------------------------------------- life */

static int on_list(void *ctx, const char *id, struct ui_listing **ret)
{
	const struct uisource *u = ctx;

	return uilisting_new(&u->opts, id, ret);
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
		.off = opts->off,
		.list = on_list,
		.list_step = uilisting_step,
		.list_free = uilisting_free,
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

void uisource_end_window(struct uisource *u, uint64_t duration_ns)
{
	u->ui.last_window_ns = duration_ns;
}

const struct ui_source *uisource_get(const struct uisource *u)
{
	return &u->ui;
}
