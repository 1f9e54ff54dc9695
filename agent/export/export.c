// SPDX-License-Identifier: Apache-2.0
/*
 * The fan-out: each finished profile becomes a queued profile shared by every destination's outbox,
 * and each outbox has a sender. All share one HTTP client and one ceiling of bytes. With a spool, a
 * profile goes to the disk instead, and the spool fills the outboxes from there; a profile that the
 * disk does not take goes the direct way. Stores keep a reference of the queued profile until it is
 * on their disk.
 */
#include "export/export.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/http.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/metric.h"
#include "base/nsec.h"
#include "base/worker.h"
#include "export/destination.h"
#include "export/outbox.h"
#include "export/sender.h"
#include "export/spool.h"
#include "export/store.h"
#include "export/uploads.h"

/* Interval of removing expired profiles from the store while no profiles are written. */
#define EXPORT_TRIM_NS	       (300 * NSEC_PER_SEC)
/* Lines about the store; the rest is in the metrics. */
#define EXPORT_LOG_INTERVAL_NS (60 * NSEC_PER_SEC)

/* Part of the ceiling of all outboxes for profiles that wait for the disks of stores. */
#define EXPORT_STORES_PART 4

/* The lock of a directory. @name: for people. @holder: 0: unknown */
struct lock {
	const char *name;
	bool busy; /* another process has the lock */
	pid_t holder;
};

/* The disk of a store or of the spool. @what: "store"; @dir: the path, borrowed; @told: the log has
 * reported a failure */
struct disk {
	const char *what;
	const char *dir;
	struct lock lock;
	bool told;
	struct log_limit log_limit;
};

struct keeper {
	struct store *store;
	struct disk disk;
};

/**
 * struct route - one destination and its parts
 * @name:   the label of its metrics
 * @sender: NULL for a folder
 * @keeper: of a folder
 * @uploads: NULL: takes no program files
 * @e:      set for a folder
 * @spooled: has a cursor in the spool
 */
struct route {
	struct destination *destination;
	char *name;
	struct outbox box;
	struct sender *sender;
	struct keeper keeper;
	struct uploads *uploads;
	struct export *e;
	bool spooled;
};

/**
 * @routes:     does not move: the outboxes are linked
 * @spooled:    the spool's destinations, by their numbers there
 * @keeper:     of --store-dir
 * @flushed:    callback of the running export_flush(), or NULL
 */
struct export
{
	struct loop *loop;
	struct http *http;
	struct worker *encoder; /* of all senders */
	struct outbox_budget budget;
	uint64_t window_ns;
	struct route *routes;
	size_t n_routes;
	struct keeper keeper;
	struct spool *spool;
	struct route *spooled[SPOOL_DESTINATIONS_MAX];
	unsigned int n_spooled;
	struct disk spool_disk;
	void (*busy)(void *ctx, const char *text);
	void *busy_ctx;
	struct loop_source *trim_timer;
	struct loop_source *flush_timer;
	void (*flushed)(void *ctx);
	void *flush_ctx;
};

/* ---- the end of the run */

static bool export_is_idle(const struct export *e)
{
	if (e->spool && !spool_is_idle(e->spool))
		return false;
	if (e->keeper.store && !store_is_idle(e->keeper.store))
		return false;
	for (size_t i = 0; i < e->n_routes; i++) {
		const struct route *route = &e->routes[i];

		if (route->sender && !sender_is_idle(route->sender))
			return false;
		if (route->keeper.store && !store_is_idle(route->keeper.store))
			return false;
	}
	return true;
}

static void flush_due(void *ctx)
{
	struct export *e = ctx;
	void (*flushed)(void *ctx) = take_ptr(e->flushed);

	if (flushed)
		flushed(e->flush_ctx);
}

/* By the timer, because the callback may free all this and the caller may be a sender. */
static void route_idle(void *ctx)
{
	struct export *e = ctx;

	if (e->flushed && export_is_idle(e))
		(void)loop_arm(e->flush_timer, 0, 0);
}

void export_hurry(struct export *e)
{
	for (size_t i = 0; i < e->n_routes; i++)
		if (e->routes[i].sender)
			sender_hurry(e->routes[i].sender);
}

void export_flush(struct export *e, uint64_t timeout_ns, void (*done)(void *ctx), void *ctx)
{
	e->flushed = done;
	e->flush_ctx = ctx;
	if (e->spool)
		spool_flush(e->spool);
	export_hurry(e);
	(void)loop_arm(e->flush_timer, export_is_idle(e) ? 0 : timeout_ns, 0);
}

/* ---- destinations */

/* Counts the other destinations of @d's kind, and the earlier destinations with the same kind and
 * host. */
static void count_alike(const struct export *e, const struct destination *d, size_t *ret_kind,
			size_t *ret_host)
{
	bool before = true;

	*ret_kind = *ret_host = 0;
	for (size_t i = 0; i < e->n_routes; i++) {
		const struct destination *other = e->routes[i].destination;

		if (other == d) {
			before = false;
		} else if (other->kind == d->kind) {
			*ret_kind += 1;
			*ret_host += before && strcmp(other->host, d->host) == 0;
		}
	}
}

/* "pyroscope"; with several destinations "pyroscope:HOST"; with several of one host
 * "pyroscope:HOST#2". */
static int route_name(const struct export *e, const struct destination *d, char **ret)
{
	size_t same_kind, same_host;
	int n;

	count_alike(e, d, &same_kind, &same_host);
	if (!same_kind)
		n = asprintf(ret, "%s", d->kind->name);
	else if (!same_host)
		n = asprintf(ret, "%s:%s", d->kind->name, d->host);
	else
		n = asprintf(ret, "%s:%s#%zu", d->kind->name, d->host, same_host + 1);
	return n < 0 ? -ENOMEM : 0;
}

static int route_start(struct export *e, struct route *route)
{
	const struct sender_opts opts = {
		.loop = e->loop,
		.http = e->http,
		.destination = route->destination,
		.box = &route->box,
		.encoder = e->encoder,
		.window_ns = e->window_ns,
		.idle = route_idle,
		.name = route->name,
		.ctx = e,
	};

	return sender_new(&opts, &route->sender);
}

static int export_read_destinations(struct export *e, const struct export_opts *opts,
				    char **ret_error)
{
	const struct destination_kind *const *kinds = opts->kinds ? opts->kinds : destination_kinds;

	e->routes = calloc(opts->n_destinations + 1, sizeof(*e->routes)); /* + 1: not of size 0 */
	if (!e->routes)
		return -ENOMEM;
	for (size_t i = 0; i < opts->n_destinations; i++) {
		struct route *route = &e->routes[i];
		int r = destination_new_of(kinds, opts->destinations[i], &route->destination,
					   ret_error);

		if (r)
			return r;
		outbox_init(&route->box, &e->budget, route->destination->kind);
		e->n_routes++;
	}
	return 0;
}

/* ---- locks of directories */

static void lock_describe(const struct lock *lock, char text[EXPORT_BUSY_BYTES])
{
	size_t n = strlen(text);

	if (!lock->busy)
		return;
	if (lock->holder)
		snprintf(text + n, EXPORT_BUSY_BYTES - n, "%s%s is locked by process %d",
			 n ? "; " : "", lock->name, (int)lock->holder);
	else
		snprintf(text + n, EXPORT_BUSY_BYTES - n, "%s%s is locked by another process",
			 n ? "; " : "", lock->name);
}

/* A second agent with the same settings, or an earlier one that its disk does not let end. */
static void lock_changed(struct export *e, struct lock *lock, bool busy, pid_t holder)
{
	char text[EXPORT_BUSY_BYTES] = "";

	if (busy == lock->busy)
		return;
	lock->busy = busy;
	lock->holder = holder;
	if (busy) {
		lock_describe(lock, text);
		log_warn("cannot use a directory, keeping profiles in memory and trying again",
			 log_str("why", text));
		text[0] = '\0';
	}
	lock_describe(&e->keeper.disk.lock, text);
	for (size_t i = 0; i < e->n_routes; i++)
		lock_describe(&e->routes[i].keeper.disk.lock, text);
	lock_describe(&e->spool_disk.lock, text);
	if (e->busy)
		e->busy(e->busy_ctx, text);
}

/* ---- disks that fail */

/* The last attempt, of a store or of the spool. */
enum disk_state { DISK_WORKS, DISK_BUSY, DISK_BLOCKED, DISK_FAILS };

static void disk_init(struct disk *d, const char *what, const char *dir, const char *name)
{
	d->what = what;
	d->dir = dir;
	d->lock.name = name;
	d->log_limit.interval_ns = EXPORT_LOG_INTERVAL_NS;
}

/* Logs a failure once, and the recovery once. @then: the fate of new profiles; @err: the outcome's
 * name. */
static void disk_changed(struct export *e, struct disk *d, enum disk_state state, pid_t holder,
			 const char *then, const char *err)
{
	uint64_t suppressed;
	char text[96];

	if (state != DISK_BLOCKED) /* a blocked attempt says nothing about the lock */
		lock_changed(e, &d->lock, state == DISK_BUSY, holder);
	if (state == DISK_BUSY) {
		d->told = true;
	} else if (state && !d->told && log_limit_ok(&d->log_limit, &suppressed)) {
		d->told = true;
		snprintf(text, sizeof(text), "%s %s, %s", d->what,
			 state == DISK_BLOCKED ? "does not answer" : "fails", then);
		log_warn(text, log_str("directory", d->dir), log_str("err", err),
			 log_uint("suppressed", suppressed));
	} else if (!state && d->told) {
		d->told = false;
		snprintf(text, sizeof(text), "%s works again", d->what);
		log_info(text, log_str("directory", d->dir));
	}
}

/* ---- the store */

static void trim_due(void *ctx)
{
	struct export *e = ctx;

	store_trim(e->keeper.store, nsec_wall());
}

static void keeper_changed(struct export *e, struct keeper *k, enum store_outcome outcome,
			   pid_t holder)
{
	const enum disk_state state = outcome == STORE_OK	 ? DISK_WORKS
				      : outcome == STORE_BUSY	 ? DISK_BUSY
				      : outcome == STORE_BLOCKED ? DISK_BLOCKED
								 : DISK_FAILS;

	disk_changed(e, &k->disk, state, holder,
		     state == DISK_BLOCKED ? "keeping some profiles in memory"
					   : "dropping profiles",
		     store_outcome_name(outcome));
}

static void keeper_close(struct keeper *k)
{
	if (k->store && store_n_waiting(k->store))
		log_warn("ending without the last profiles of the store",
			 log_str("directory", k->disk.dir),
			 log_uint("profiles", store_n_waiting(k->store)));
	store_free(k->store);
}

/* Memory of one store's profiles that wait for the disk. */
static uint64_t keeper_bytes(const struct export *e, const struct export_opts *opts)
{
	size_t n = opts->store_dir != NULL;

	for (size_t i = 0; i < e->n_routes; i++)
		n += e->routes[i].destination->kind->folder;
	return opts->queue_bytes / EXPORT_STORES_PART / (n ? n : 1);
}

/* Why a folder cannot be made or opened. */
static const char *folder_why(bool is_full, bool is_read_only)
{
	if (is_full)
		return "the disk is full";
	return is_read_only ? "no permission to write, or a read-only file system"
			    : "a part of the path is no folder, or the file system fails";
}

/* @setting: names the folder. */
static int keeper_open(struct keeper *k, const struct export *e, const struct export_opts *opts,
		       struct store_opts *store, const char *setting, char **ret_error)
{
	int r;

	store->loop = e->loop;
	store->waiting_bytes = keeper_bytes(e, opts);
	store->blocked_ns = opts->disk_blocked_ns;
	store->open_wait_ns = opts->open_wait_ns;
	r = store_open(store, &k->store);
	if (r <= 0)
		return r;
	if (asprintf(ret_error,
		     "cannot use the store's folder '%s': %s; create this folder, or set %s to "
		     "another",
		     store->dir, folder_why(r == STORE_DISK_FULL, r == STORE_READ_ONLY),
		     setting) < 0)
		return -ENOMEM;
	return 1;
}

static void store_changed(void *ctx, enum store_outcome outcome, pid_t holder)
{
	struct export *e = ctx;

	keeper_changed(e, &e->keeper, outcome, holder);
}

static int export_open_store(struct export *e, const struct export_opts *opts, char **ret_error)
{
	struct store_opts store_opts = {
		.dir = opts->store_dir,
		.max_bytes = opts->store_bytes,
		.max_age_ns = opts->store_age_ns,
		.changed = store_changed,
		.idle = route_idle,
		.ctx = e,
	};
	int r;

	if (!opts->store_dir)
		return 0;
	disk_init(&e->keeper.disk, "store", opts->store_dir, "--store-dir");
	r = keeper_open(&e->keeper, e, opts, &store_opts, "--store-dir", ret_error);
	if (!r)
		r = loop_add_timer(e->loop, trim_due, e, &e->trim_timer);
	if (!r)
		r = loop_arm(e->trim_timer, EXPORT_TRIM_NS, EXPORT_TRIM_NS);
	return r;
}

/* ---- folders of destinations */

static void route_kept(void *ctx, const struct profile *profile, int r)
{
	struct route *route = ctx;

	outbox_count(&route->box, profile,
		     !r			    ? EXPORT_SENT
		     : r == -ENOMEM	    ? EXPORT_DROPPED_MEMORY
		     : r == STORE_TOO_LARGE ? EXPORT_DROPPED_TOO_LARGE
		     : r == STORE_BLOCKED   ? EXPORT_DROPPED_FULL
					    : EXPORT_DROPPED_REFUSED);
}

static void route_changed(void *ctx, enum store_outcome outcome, pid_t holder)
{
	struct route *route = ctx;

	keeper_changed(route->e, &route->keeper, outcome, holder);
}

static void folder_idle(void *ctx)
{
	struct route *route = ctx;

	route_idle(route->e);
}

static int route_open_folder(struct export *e, struct route *route, const struct export_opts *opts,
			     char **ret_error)
{
	struct store_opts store = {
		.dir = route->destination->url,
		.max_bytes = route->destination->folder_bytes,
		.max_age_ns = UINT64_MAX,
		.ended = route_kept,
		.changed = route_changed,
		.idle = folder_idle,
		.ctx = route,
	};

	route->e = e;
	disk_init(&route->keeper.disk, "store", store.dir, route->name);
	return keeper_open(&route->keeper, e, opts, &store, "--destination", ret_error);
}

/* Secrets may be mounted later, so the agent starts. */
static void warn_about_files(const struct route *route)
{
	int err = 0;
	const char *path = destination_unreadable_file(route->destination, &err);

	if (path)
		log_warn("a destination's file cannot be read, retrying for each request",
			 log_str("destination", route->name), log_str("path", path),
			 log_str("err", strerror(err)));
}

static int route_start_uploads(struct export *e, struct route *route,
			       const struct export_opts *opts, const char *spec)
{
	const struct uploads_opts uploads = {
		.loop = e->loop,
		.spec = spec,
		.name = route->name,
		.blocked_ns = opts->file_blocked_ns,
	};

	return route->destination->debuginfo ? uploads_new(&uploads, &route->uploads) : 0;
}

/* After all destinations are known: their names depend on each other. */
static int export_start_routes(struct export *e, const struct export_opts *opts, char **ret_error)
{
	int r = 0;

	for (size_t i = 0; !r && i < e->n_routes; i++) {
		struct route *route = &e->routes[i];

		r = route_name(e, route->destination, &route->name);
		if (!r)
			warn_about_files(route);
		if (!r)
			r = route->destination->kind->folder
				    ? route_open_folder(e, route, opts, ret_error)
				    : route_start(e, route);
		if (!r)
			r = route_start_uploads(e, route, opts, opts->destinations[i]);
	}
	return r;
}

/* ---- the spool */

/* FNV-1a: the same in each run, unlike the hashes of base/hash.h. */
static uint64_t fnv(uint64_t hash, const char *text)
{
	for (const char *at = text ? text : ""; *at; at++)
		hash = (hash ^ (unsigned char)*at) * 0x100000001b3ull;
	return hash * 0x100000001b3ull; /* the end of the text: as a zero */
}

/* The backend as the settings name it, without credentials. @n: number of equal ones before. */
static uint64_t route_id(const struct destination *d, unsigned int n)
{
	uint64_t hash = fnv(0xcbf29ce484222325ull, d->kind->name);

	hash = fnv(hash, d->url);
	hash = fnv(hash, d->tenant.value);
	hash = fnv(hash, d->tenant.file);
	hash = fnv(hash, d->tenant.env);
	return hash + n;
}

static unsigned int count_equal_ids(const struct spool_destination *before, unsigned int n,
				    uint64_t id)
{
	unsigned int n_equal = 0;

	for (unsigned int i = 0; i < n; i++)
		n_equal += before[i].id - id < n; /* and those moved by an earlier one */
	return n_equal;
}

/* Keeps a profile in memory that the disk does not take. */
static void spool_refused(void *ctx, struct queued_profile *p, uint8_t mask)
{
	struct export *e = ctx;

	for (unsigned int i = 0; i < e->n_spooled; i++)
		if (mask & 1u << i) {
			outbox_push(&e->spooled[i]->box, p, nsec_wall());
			sender_wake(e->spooled[i]->sender);
		}
}

static void spool_loaded(void *ctx, unsigned int destination)
{
	struct export *e = ctx;

	sender_wake(e->spooled[destination]->sender);
}

static void spool_changed(void *ctx, enum spool_outcome outcome, pid_t holder)
{
	const enum disk_state state = outcome == SPOOL_OK	 ? DISK_WORKS
				      : outcome == SPOOL_BUSY	 ? DISK_BUSY
				      : outcome == SPOOL_BLOCKED ? DISK_BLOCKED
								 : DISK_FAILS;
	struct export *e = ctx;

	disk_changed(e, &e->spool_disk, state, holder, "keeping profiles in memory",
		     spool_outcome_name(outcome));
}

static int export_open_spool(struct export *e, const struct export_opts *opts, char **ret_error)
{
	struct spool_destination destinations[SPOOL_DESTINATIONS_MAX];
	struct spool_opts spool = {
		.loop = e->loop,
		.dir = opts->spool_dir,
		.max_bytes = opts->spool_bytes,
		.waiting_bytes = opts->queue_bytes / 2,
		.blocked_ns = opts->disk_blocked_ns,
		.open_wait_ns = opts->open_wait_ns,
		.destinations = destinations,
		.refused = spool_refused,
		.loaded = spool_loaded,
		.changed = spool_changed,
		.idle = route_idle,
		.ctx = e,
	};
	int r;

	if (!opts->spool_dir)
		return 0;
	for (size_t i = 0; i < e->n_routes && e->n_spooled < SPOOL_DESTINATIONS_MAX; i++) {
		struct route *route = &e->routes[i];
		uint64_t id = route_id(route->destination, 0);

		if (!route->sender)
			continue;
		destinations[e->n_spooled] = (struct spool_destination){
			.box = &route->box,
			.id = id + count_equal_ids(destinations, e->n_spooled, id),
			.name = route->name,
		};
		route->spooled = true;
		e->spooled[e->n_spooled++] = route;
	}
	if (!e->n_spooled)
		return 0; /* nothing to wait for */
	spool.n_destinations = e->n_spooled;
	spool.loaded_bytes = opts->queue_bytes / 2 / e->n_spooled;
	disk_init(&e->spool_disk, "spool", opts->spool_dir, "--spool-dir");
	r = spool_new(&spool, &e->spool);
	if (r <= 0)
		return r;
	if (asprintf(ret_error,
		     "cannot use the spool's folder '%s': %s; set --spool-dir to a writable "
		     "folder of this agent alone",
		     opts->spool_dir, folder_why(r == SPOOL_DISK_FULL, r == SPOOL_READ_ONLY)) < 0)
		return -ENOMEM;
	return 1;
}

/* ---- the whole */

DEFINE_CLEANUP(struct export *, export_freep, export_free);

int export_new(const struct export_opts *opts, struct export **ret, char **ret_error)
{
	_cleanup_(export_freep) struct export *e = calloc(1, sizeof(*e));
	int r;

	if (!e)
		return -ENOMEM;
	e->loop = opts->loop;
	e->budget.max_bytes = opts->queue_bytes;
	e->window_ns = opts->window_ns;
	e->busy = opts->busy;
	e->busy_ctx = opts->ctx;
	r = export_read_destinations(e, opts, ret_error);
	if (!r)
		r = http_new(opts->loop, &e->http);
	if (!r && e->n_routes)
		r = worker_new(opts->loop, "encode", e->n_routes * SENDER_FLIGHTS_MAX, &e->encoder);
	if (!r)
		r = loop_add_timer(opts->loop, flush_due, e, &e->flush_timer);
	if (!r)
		r = export_start_routes(e, opts, ret_error);
	if (!r)
		r = export_open_store(e, opts, ret_error);
	if (!r)
		r = export_open_spool(e, opts, ret_error);
	if (r)
		return r;
	*ret = take_ptr(e);
	return 0;
}

/* No scrape comes any more: the log alone tells. */
static void route_close(struct route *route)
{
	uint64_t lost;

	sender_free(route->sender);
	outbox_deinit(&route->box);
	lost = route->box.profiles[EXPORT_DROPPED_STOPPED];
	if (lost)
		log_warn("no time to send the last profiles, losing them",
			 log_str("destination", route->name), log_uint("profiles", lost));
}

void export_free(struct export *e)
{
	if (!e)
		return;
	for (size_t i = 0; i < e->n_routes; i++)
		uploads_free(e->routes[i].uploads);
	worker_free(e->encoder);
	for (size_t i = 0; i < e->n_routes; i++)
		route_close(&e->routes[i]);
	spool_free(e->spool); /* after the profiles from there */
	for (size_t i = 0; i < e->n_routes; i++) {
		struct route *route = &e->routes[i];

		keeper_close(&route->keeper);
		destination_free(route->destination);
		free(route->name);
	}
	free(e->routes);
	loop_remove(e->flush_timer);
	loop_remove(e->trim_timer);
	keeper_close(&e->keeper);
	http_free(e->http);
	free(e);
}

struct profile_limits export_limits(const struct export *e)
{
	struct profile_limits limits = profile_limits_max;

	for (size_t i = 0; i < e->n_routes; i++)
		limits = profile_limits_within(e->routes[i].destination->kind->limits.profile,
					       limits);
	return limits;
}

bool export_has_destinations(const struct export *e)
{
	return e->n_routes;
}

static bool route_takes(const struct route *route, const struct profile *profile)
{
	return route->destination->kind->types[profile->kind] != NULL;
}

/* Places in the queue. */
static size_t route_parts(const struct route *route, const struct profile *profile)
{
	const size_t parts = route->destination->kind->parts[profile->kind];

	return parts ? parts : 1;
}

static bool export_spool(struct export *e, struct queued_profile *queued)
{
	uint8_t mask = 0;

	for (unsigned int i = 0; i < e->n_spooled; i++)
		if (route_takes(e->spooled[i], queued->profile))
			mask |= (uint8_t)(1u << i);
	return mask && !spool_put(e->spool, queued, mask);
}

/* @on_disk: the spool has the profile for its destinations. */
static void export_queue(struct export *e, struct queued_profile *queued, bool on_disk)
{
	for (size_t i = 0; i < e->n_routes; i++) {
		struct route *route = &e->routes[i];

		if (!route_takes(route, queued->profile) || !route->sender)
			continue;
		sender_expect(route->sender, route_parts(route, queued->profile));
		if (on_disk && route->spooled)
			continue;
		outbox_push(&route->box, queued, nsec_wall());
		sender_wake(route->sender);
	}
}

static void export_keep(struct export *e, struct queued_profile *queued)
{
	if (e->keeper.store)
		store_put(e->keeper.store, queued);
	for (size_t i = 0; i < e->n_routes; i++)
		if (e->routes[i].keeper.store)
			store_put(e->routes[i].keeper.store, queued);
}

static void export_lose(struct export *e, const struct profile *profile)
{
	if (e->keeper.store)
		store_lose(e->keeper.store, profile);
	for (size_t i = 0; i < e->n_routes; i++) {
		struct route *route = &e->routes[i];

		if (route->keeper.store)
			store_lose(route->keeper.store, profile);
		else if (route_takes(route, profile))
			outbox_count(&route->box, profile, EXPORT_DROPPED_MEMORY);
	}
}

void export_submit(struct export *e, struct profile *profile)
{
	struct queued_profile *queued;

	profile_fit(profile);
	if (queued_profile_new(&e->budget, profile, &queued) < 0) {
		export_lose(e, profile);
		profile_free(profile);
		return;
	}
	export_keep(e, queued);
	export_queue(e, queued, e->spool && export_spool(e, queued));
	queued_profile_unref(queued);
}

/* ---- program files */

bool export_wants_files(const struct export *e)
{
	for (size_t i = 0; i < e->n_routes; i++)
		if (e->routes[i].uploads)
			return true;
	return false;
}

void export_offer_file(struct export *e, uint64_t owner, const char *build_id, int fd)
{
	for (size_t i = 0; i < e->n_routes; i++)
		if (e->routes[i].uploads)
			uploads_offer(e->routes[i].uploads, owner, build_id, fd);
}

/* ---- metrics */

static void collect_uploads(const struct export *e, struct metric_sink *sink)
{
	static const struct metric_family_desc uploads = {
		"podprof_debuginfo_uploads", METRIC_COUNTER,
		"Program files offered to a destination, by outcome.", NULL};
	static const struct metric_family_desc bytes = {
		"podprof_debuginfo_upload_bytes", METRIC_COUNTER,
		"Bytes of program files sent to a destination.", "bytes"};
	uint64_t ends[UPLOAD_END_MAX];

	metric_family(sink, &uploads);
	for (size_t i = 0; i < e->n_routes; i++) {
		if (!e->routes[i].uploads)
			continue;
		uploads_count(e->routes[i].uploads, ends);
		for (enum upload_end end = 0; end < UPLOAD_END_MAX; end++) {
			const struct metric_label labels[] = {
				{"destination", e->routes[i].name},
				{"outcome", upload_end_names[end]},
			};

			metric_u64(sink, ends[end], labels, array_size(labels));
		}
	}
	metric_family(sink, &bytes);
	for (size_t i = 0; i < e->n_routes; i++)
		if (e->routes[i].uploads)
			metric_u64(sink, uploads_bytes(e->routes[i].uploads),
				   &(struct metric_label){"destination", e->routes[i].name}, 1);
}

static void collect_outcomes(const struct export *e, struct metric_sink *sink,
			     const struct metric_family_desc *family, bool payload)
{
	metric_family(sink, family);
	for (size_t i = 0; i < e->n_routes; i++) {
		const struct route *route = &e->routes[i];

		for (enum export_outcome o = 0; o < EXPORT_OUTCOME_MAX; o++) {
			struct metric_label labels[] = {
				{"destination", route->name},
				{"outcome", export_outcome_name(o)},
			};

			metric_u64(sink, payload ? route->box.payload[o] : route->box.profiles[o],
				   labels, array_size(labels));
		}
	}
}

void export_collect(void *ctx, struct metric_sink *sink)
{
	static const struct metric_family_desc profiles = {
		"podprof_export_profiles", METRIC_COUNTER,
		"Profiles by destination and outcome; a retried profile has no result yet.", NULL};
	static const struct metric_family_desc bytes = {"podprof_export_bytes", METRIC_COUNTER,
							"The same in bytes of compressed pprof.",
							"bytes"};
	static const struct metric_family_desc rejected = {
		"podprof_export_partly_rejected", METRIC_COUNTER,
		"Profiles that a destination refused inside an accepted request, as it counts "
		"them.",
		NULL};
	static const struct metric_family_desc queue = {
		"podprof_export_queue_bytes", METRIC_GAUGE,
		"Memory of profiles in the queue of a destination or in flight.", "bytes"};
	static const struct metric_family_desc limit = {
		"podprof_export_queue_limit_bytes", METRIC_GAUGE,
		"Limit of the queues of all destinations together.", "bytes"};
	const struct export *e = ctx;

	collect_outcomes(e, sink, &profiles, false);
	collect_outcomes(e, sink, &bytes, true);
	metric_family(sink, &rejected);
	for (size_t i = 0; i < e->n_routes; i++)
		metric_u64(sink, e->routes[i].box.rejected,
			   &(struct metric_label){"destination", e->routes[i].name}, 1);
	metric_family(sink, &queue);
	for (size_t i = 0; i < e->n_routes; i++)
		metric_u64(sink, outbox_bytes(&e->routes[i].box),
			   &(struct metric_label){"destination", e->routes[i].name}, 1);
	metric_family(sink, &limit);
	metric_u64(sink, e->budget.max_bytes, NULL, 0);
	if (export_wants_files(e))
		collect_uploads(e, sink);
	if (e->keeper.store)
		store_collect(e->keeper.store, sink);
	if (e->spool)
		spool_collect(e->spool, sink);
}

struct store *export_store(struct export *e)
{
	return e->keeper.store;
}
