// SPDX-License-Identifier: Apache-2.0
/*
 * Kubernetes replaces the files of a Secret by a new link, a tool for certificates writes the
 * certificate and then the key. So the identities of all files are taken before the reading: a file
 * that changes meanwhile has another identity at the next look, and a certificate without its key
 * is an error that lasts until the key is there.
 */
#include "server/web_access.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/ssl.h>

#include "base/cleanup.h"
#include "base/file_id.h"
#include "base/loop.h"
#include "base/metric.h"
#include "base/worker.h"
#include "server/basic_auth.h"
#include "server/tls_context.h"
#include "server/tls_front.h"

/* The configuration, the certificate, the key, the authorities. */
#define N_FILES 4

enum reload_outcome { RELOAD_OK, RELOAD_FAILED, RELOAD_OUTCOME_MAX };

/* Files, and their identities at the last look. */
struct files {
	char *paths[N_FILES];
	struct file_id ids[N_FILES];
};

/**
 * struct reading - one reading of all files
 * @is_changed: a file has changed; otherwise nothing was read
 * @result: as web_access_new(), with @error, or else @config and @tls are set
 */
struct reading {
	struct work work;
	struct files files;
	bool is_changed;
	int result;
	char error[WEB_ERROR_MAX];
	struct web_config config;
	struct tls_settings tls;
};

/* @reading is the worker's while @is_reading. */
struct web_access {
	struct web_access_opts opts;
	struct worker *worker;
	struct loop_source *timer;
	struct reading reading;
	bool is_reading;
	struct tls_front *tls;
	struct basic_auth *auth;
	uint64_t outcomes[RELOAD_OUTCOME_MAX];
};

/* ---------------------------------------------------------------- reading */

static void reading_drop(struct reading *rd)
{
	web_config_deinit(&rd->config);
	tls_settings_deinit(&rd->tls);
}

static void reading_deinit(struct reading *rd)
{
	reading_drop(rd);
	for (size_t i = 0; i < N_FILES; i++)
		free(rd->files.paths[i]);
}

static struct file_id id_of(const char *path)
{
	struct file_id none = {0};
	struct stat st;

	return path && stat(path, &st) == 0 ? file_id_of_stat(&st) : none;
}

static bool files_changed(struct files *files)
{
	bool is_changed = false;

	for (size_t i = 0; i < N_FILES; i++) {
		struct file_id id = id_of(files->paths[i]);

		is_changed = is_changed || !file_id_equal(&id, &files->ids[i]);
		files->ids[i] = id;
	}
	return is_changed;
}

/* The names may be others than before. */
static int files_follow(struct files *files, const struct web_config *c)
{
	const char *const named[N_FILES] = {files->paths[0], c->cert.file, c->key.file,
					    c->client_ca.file};

	for (size_t i = 1; i < N_FILES; i++) {
		if (named[i] && files->paths[i] && strcmp(named[i], files->paths[i]) == 0)
			continue;
		free(files->paths[i]);
		files->paths[i] = named[i] ? strdup(named[i]) : NULL;
		if (named[i] && !files->paths[i])
			return -ENOMEM;
		files->ids[i] = id_of(files->paths[i]);
	}
	return 0;
}

static int read_all(struct reading *rd)
{
	int r = web_config_read(rd->files.paths[0], &rd->config, rd->error);

	if (!r)
		r = files_follow(&rd->files, &rd->config);
	if (!r && rd->config.has_tls)
		r = tls_context_new(&rd->config, &rd->tls.ctx, rd->error);
	if (r)
		return r;
	rd->tls.sans = rd->config.sans; /* moves */
	rd->config.sans = (struct web_list){.n = 0};
	return 0;
}

static void reading_run(struct work *work)
{
	struct reading *rd = container_of(work, struct reading, work);

	rd->is_changed = files_changed(&rd->files);
	if (rd->is_changed)
		rd->result = read_all(rd);
}

/* ---------------------------------------------------------------- on the loop */

static int apply(struct web_access *a)
{
	struct reading *rd = &a->reading;
	int r = 0;

	if (rd->config.has_tls != (a->tls != NULL) || !rd->config.n_users != !a->auth) {
		snprintf(rd->error, sizeof(rd->error), "%.200s: %s", rd->files.paths[0],
			 "turning TLS or users on or off takes a restart");
		return WEB_CONFIG_BAD;
	}
	if (a->auth)
		r = basic_auth_set(a->auth, rd->config.users, rd->config.n_users);
	if (!r && a->tls)
		tls_front_set(a->tls, &rd->tls);
	return r;
}

static void reading_done(struct work *work)
{
	struct reading *rd = container_of(work, struct reading, work);
	struct web_access *a = container_of(rd, struct web_access, reading);
	int r = rd->result;

	a->is_reading = false;
	if (!work->cancelled && rd->is_changed) {
		if (!r)
			r = apply(a);
		a->outcomes[r ? RELOAD_FAILED : RELOAD_OK]++;
		if (a->opts.told)
			a->opts.told(a->opts.ctx, r > 0 ? rd->error : r < 0 ? strerror(-r) : NULL);
	}
	reading_drop(rd);
}

static void on_timer(void *ctx)
{
	struct web_access *a = ctx;

	if (a->is_reading)
		return;
	a->reading.work = (struct work){.run = reading_run, .done = reading_done};
	a->is_reading = worker_submit(a->worker, &a->reading.work) == 0;
}

/* Everything that the first reading asks for. */
static int start(struct web_access *a)
{
	const struct tls_front_opts tls = {.loop = a->opts.loop};
	const uint64_t every_ns = a->opts.reload_ns ? a->opts.reload_ns : WEB_RELOAD_NS;
	struct reading *rd = &a->reading;
	int r = 0;

	if (rd->config.n_users)
		r = basic_auth_new(a->opts.loop, &a->auth);
	if (!r && a->auth)
		r = basic_auth_set(a->auth, rd->config.users, rd->config.n_users);
	if (!r && rd->config.has_tls)
		r = tls_front_new(&tls, &rd->tls, &a->tls);
	if (!r)
		r = worker_new(a->opts.loop, "web-config", 1, &a->worker);
	if (!r)
		r = loop_add_timer(a->opts.loop, on_timer, a, &a->timer);
	if (!r)
		r = loop_arm(a->timer, every_ns, every_ns);
	reading_drop(rd);
	return r;
}

static int read_first(struct reading *rd, const char *path, char error[WEB_ERROR_MAX])
{
	int r;

	rd->files.paths[0] = strdup(path);
	if (!rd->files.paths[0])
		return -ENOMEM;
	(void)files_changed(&rd->files);
	r = read_all(rd);
	if (!r && !rd->config.has_tls && !rd->config.n_users) {
		/* empty or half written: the user wants a protected server */
		snprintf(rd->error, sizeof(rd->error),
			 "%.200s: has neither a certificate nor users, so everything would be open",
			 path);
		r = WEB_CONFIG_BAD;
	}
	if (r > 0)
		snprintf(error, WEB_ERROR_MAX, "%s", rd->error);
	return r;
}

DEFINE_CLEANUP(struct web_access *, web_access_freep, web_access_free);

int web_access_new(const struct web_access_opts *opts, struct web_access **ret,
		   char error[WEB_ERROR_MAX])
{
	_cleanup_(web_access_freep) struct web_access *a = calloc(1, sizeof(*a));
	int r;

	if (!a)
		return -ENOMEM;
	a->opts = *opts;
	r = read_first(&a->reading, opts->path, error);
	if (!r)
		r = start(a);
	if (!r)
		*ret = take_ptr(a);
	return r;
}

void web_access_free(struct web_access *a)
{
	if (!a)
		return;
	loop_remove(a->timer);
	worker_free(a->worker);
	tls_front_free(a->tls);
	basic_auth_free(a->auth);
	reading_deinit(&a->reading);
	free(a);
}

struct tls_front *web_access_tls(const struct web_access *a)
{
	return a ? a->tls : NULL;
}

struct basic_auth *web_access_auth(const struct web_access *a)
{
	return a ? a->auth : NULL;
}

void web_access_collect(void *ctx, struct metric_sink *sink)
{
	static const struct metric_family_desc reloads = {
		"podprof_http_config_reloads", METRIC_COUNTER,
		"Changes of the files of --web-config that were read, by outcome.", NULL};
	static const char *const names[RELOAD_OUTCOME_MAX] = {
		[RELOAD_OK] = "ok", [RELOAD_FAILED] = "failed"};
	struct web_access *a = ctx;

	metric_by_name(sink, &reloads, "outcome", a->outcomes, names, RELOAD_OUTCOME_MAX);
	if (a->tls)
		tls_front_collect(a->tls, sink);
	if (a->auth)
		basic_auth_collect(a->auth, sink);
}

int web_access_try(const char *path, bool *ret_tls, bool *ret_certs, char error[WEB_ERROR_MAX])
{
	struct reading rd = {.is_changed = false};
	int r = read_first(&rd, path, error);

	if (!r) {
		*ret_tls = rd.config.has_tls;
		*ret_certs = rd.config.client_auth == WEB_CLIENT_REQUIRE_ANY ||
			     rd.config.client_auth == WEB_CLIENT_REQUIRE_VERIFY;
	}
	reading_deinit(&rd);
	return r;
}
