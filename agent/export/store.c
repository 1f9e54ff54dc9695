// SPDX-License-Identifier: Apache-2.0
/*
 * The files are authoritative. The table in memory is the result of the scan at opening, updated by
 * our own writes and removals. The store notices a file removed by somebody else when it reads or
 * removes the file.
 *
 * All decisions are made on the loop: the table, the profiles to remove, the names. One thread
 * executes them (disk_thread.h): opening with the scan, then batches of removals and writes. One
 * batch is on the way at a time, and the table does not change meanwhile: a folder of the batch
 * cannot go. A profile enters the table after its write, and leaves the table before its removal.
 *
 * While the disk does not answer, profiles wait in memory, up to a ceiling. The same while another
 * process has the lock: an agent that a silent disk has not let end yet, or a second agent. The
 * store then tries the lock again and again. On a full disk or a directory without write permission
 * a profile is lost and counted, and the next profile is tried again.
 */
#include "export/store.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/loop.h"
#include "base/metric.h"
#include "base/nsec.h"
#include "base/root.h"
#include "base/watchdog.h"
#include "export/disk_thread.h"
#include "export/outbox.h"
#include "export/pending.h"
#include "export/store_disk.h"
#include "export/store_name.h"
#include "export/store_table.h"

/* Folder names tried for one label set: each tried folder belongs to another label set with the
 * same 32 bits of hash. Reached: `podprof_store_profiles_total{outcome="failed"}`. */
#define FOLDER_ATTEMPTS_MAX 16
/* Profiles and removals of one batch: 64 KiB with the names. */
#define BATCH_PROFILES	    64
#define BATCH_REMOVALS	    64
/* From a failed opening to the next, in parts of the time that makes a disk blocked: 30 s. */
#define OPEN_RETRY_PARTS    3

enum removal { REMOVAL_BYTES, REMOVAL_AGE, REMOVAL_COUNT, REMOVAL_MAX };

/**
 * @opened:      the table has the files
 * @running:     a job is on the way
 * @batch:       the running batch, or NULL
 * @blocked:     the running job gets no answer
 * @busy:        another process has the lock; @retry_timer: the next attempt
 * @starting:    store_open() runs
 * @open_r:      outcome of the last opening
 * @retry_ns:    monotonic; no opening before
 * @age_now_ns:  of store_trim(): profiles expire at this time
 * @waiting:     profiles for the next batches
 * @health:      the last outcome of a profile or an opening
 */
struct store {
	struct store_opts opts;
	const struct store_disk
		*disk; /* the thread's; the loop reads the descriptor once @opened */
	struct disk_thread *thread;
	struct store_table table;
	struct loop_source *retry_timer;
	bool starting, opened, running, blocked, busy, closing;
	int open_r;
	uint64_t retry_ns;
	uint64_t age_now_ns;
	struct batch *batch;
	struct pending_list waiting;
	int health;
	uint64_t counts[STORE_OUTCOME_MAX];
	uint64_t removed[REMOVAL_MAX];
};

DEFINE_CLEANUP(struct store *, store_freep, store_free);

static void store_go_on(struct store *s);

static void store_changes(struct store *s, int outcome, pid_t holder)
{
	if (outcome < 0)
		outcome = STORE_FAILED;
	if (s->health != outcome && s->opts.changed)
		s->opts.changed(s->opts.ctx, outcome, holder);
	s->health = outcome;
}

/* The end of a profile. */
static void store_ends(struct store *s, const struct profile *profile, int r)
{
	s->counts[r < 0 ? STORE_FAILED : r]++;
	if (s->opts.ended)
		s->opts.ended(s->opts.ctx, profile, r);
	if (!s->blocked && !s->busy)
		store_changes(s, r, 0);
}

static void store_end_pending(struct store *s, struct pending *pending, int r)
{
	store_ends(s, pending->p->profile, r);
	pending_free(pending);
}

static void store_end_waiting(struct store *s, int r)
{
	while (s->waiting.first)
		store_end_pending(s, pending_pop(&s->waiting), r);
}

/* ---- a batch */

struct removal_item {
	struct store_file file;
	bool folder_too;
};

/* @r: outcome. @new_folder: no profile of the folder was on disk. */
struct write_item {
	struct store_profile row;
	struct store_file file;
	struct pending *pending;
	bool new_folder;
	int r;
};

struct batch {
	struct disk_job job;
	struct removal_item removals[BATCH_REMOVALS];
	size_t n_removals;
	struct pending_list profiles;
	struct write_item items[BATCH_PROFILES];
	size_t n;
};

static void batch_free(struct batch *batch)
{
	struct pending *pending;

	while ((pending = pending_pop(&batch->profiles)))
		pending_free(pending);
	free(batch);
}

/* A profile of the batch is in @folder. */
static bool folder_has(const struct batch *batch, const char *folder)
{
	for (size_t i = 0; i < batch->n; i++)
		if (!batch->items[i].r && strcmp(batch->items[i].file.folder, folder) == 0)
			return true;
	return false;
}

static void batch_run(struct disk_job *base)
{
	struct batch *batch = container_of(base, struct batch, job);
	const struct store_disk *disk = base->disk;

	for (size_t i = 0; i < batch->n_removals; i++) {
		store_disk_remove(disk, &batch->removals[i].file);
		if (batch->removals[i].folder_too)
			store_disk_remove_folder(disk, batch->removals[i].file.folder);
		work_alive(&base->work);
	}
	for (size_t i = 0; i < batch->n; i++) {
		struct write_item *item = &batch->items[i];
		const struct profile *profile = item->pending->p->profile;

		if (!item->r)
			item->r = store_disk_write(disk, &item->file, &profile->labels,
						   profile->pprof, profile->pprof_len);
		work_alive(&base->work);
	}
	for (size_t i = 0; i < batch->n; i++)
		if (batch->items[i].r && batch->items[i].new_folder &&
		    !folder_has(batch, batch->items[i].file.folder))
			store_disk_remove_folder(disk, batch->items[i].file.folder);
}

static void batch_abandoned(struct disk_job *base)
{
	pending_orphan(&container_of(base, struct batch, job)->profiles);
}

static void batch_drop(struct disk_job *base)
{
	batch_free(container_of(base, struct batch, job));
}

static void store_answered(struct store *s)
{
	s->running = s->blocked = false;
	store_go_on(s);
	if (store_is_idle(s) && s->opts.idle)
		s->opts.idle(s->opts.ctx);
}

/* A folder for a profile that was not written. */
static void store_drop_if_empty(struct store *s, const char *name)
{
	struct store_folder *folder = store_table_folder(&s->table, name);

	if (folder && !folder->n_profiles)
		store_table_drop_folder(&s->table, folder);
}

static void batch_done(struct disk_job *base)
{
	struct batch *batch = container_of(base, struct batch, job);
	struct store *s = base->owner;

	if (s->closing) {
		batch_free(batch);
		return;
	}
	s->blocked = false; /* so the outcomes count */
	for (size_t i = 0; i < batch->n; i++)
		if (!batch->items[i].r)
			store_table_insert(&s->table, &batch->items[i].row);
	for (size_t i = 0; i < batch->n; i++) {
		if (batch->items[i].r)
			store_drop_if_empty(s, batch->items[i].file.folder);
		store_end_pending(s, pending_pop(&batch->profiles), batch->items[i].r);
	}
	s->batch = NULL;
	batch_free(batch);
	store_answered(s);
}

static const struct disk_job_kind batch_kind = {
	.run = batch_run, .done = batch_done, .abandoned = batch_abandoned, .drop = batch_drop};

/* ---- what a batch has to do */

/* Whether the newest profile is further from now than the oldest one. A clock set back leaves
 * profiles of the future, and the new ones before these must not go first. */
static bool newest_is_further(const struct store *s, uint64_t now_ns)
{
	const uint64_t oldest_ns = store_at(s, 0)->start_ns;
	const uint64_t newest_ns = store_at(s, store_n_profiles(s) - 1)->start_ns;

	return newest_ns > now_ns &&
	       (oldest_ns >= now_ns || newest_ns - now_ns > now_ns - oldest_ns);
}

/* A profile leaves the table. False: the batch is full. */
static bool remove_one(struct store *s, struct batch *batch, enum removal why, uint64_t now_ns)
{
	struct removal_item *item = &batch->removals[batch->n_removals];
	const bool newest = why != REMOVAL_AGE && newest_is_further(s, now_ns);
	struct store_folder *folder;

	if (batch->n_removals == BATCH_REMOVALS)
		return false;
	store_file_of(store_at(s, newest ? store_n_profiles(s) - 1 : 0), &item->file);
	folder = newest ? store_table_remove_newest(&s->table)
			: store_table_remove_oldest(&s->table);
	item->folder_too = !folder->n_profiles;
	if (item->folder_too)
		store_table_drop_folder(&s->table, folder);
	batch->n_removals++;
	s->removed[why]++;
	return true;
}

static bool is_expired(const struct store *s, uint64_t now_ns)
{
	return store_n_profiles(s) && now_ns > s->opts.max_age_ns &&
	       store_at(s, 0)->start_ns < now_ns - s->opts.max_age_ns;
}

/* Why a profile must go for @bytes more and @n more files; REMOVAL_MAX: none need. */
static enum removal why_remove(const struct store *s, uint64_t now_ns, uint64_t bytes, size_t n)
{
	if (!store_n_profiles(s))
		return REMOVAL_MAX;
	if (is_expired(s, now_ns))
		return REMOVAL_AGE;
	if (s->table.bytes > s->opts.max_bytes - bytes)
		return REMOVAL_BYTES;
	return store_n_profiles(s) + n > STORE_PROFILES_MAX ? REMOVAL_COUNT : REMOVAL_MAX;
}

/* Make room for @bytes more and @n more files. False: the batch is full. */
static bool make_room(struct store *s, struct batch *batch, uint64_t now_ns, uint64_t bytes,
		      size_t n)
{
	enum removal why;

	while ((why = why_remove(s, now_ns, bytes, n)) != REMOVAL_MAX)
		if (!remove_one(s, batch, why, now_ns))
			return false;
	return true;
}

/* The folder of a label set; a new folder if the set has no stored profile yet. */
static int folder_of(struct store *s, const struct labels *labels, struct store_folder **ret)
{
	_cleanup_(labels_deinit) struct labels copy = {0};
	char name[STORE_NAME_MAX];
	int r;

	for (uint32_t i = 0; i < FOLDER_ATTEMPTS_MAX; i++) {
		store_name_folder(labels, i, name);
		*ret = store_table_folder(&s->table, name);
		if (*ret && labels_equal(&(*ret)->labels, labels))
			return 0;
		if (*ret)
			continue;
		r = labels_copy(labels, &copy);
		return r < 0 ? r : store_table_add_folder(&s->table, name, &copy, ret);
	}
	return STORE_FAILED;
}

/* On failure the item has an outcome, and there is no folder. */
static void item_fill(struct store *s, struct write_item *item)
{
	const struct profile *profile = item->pending->p->profile;
	struct store_folder *folder;

	item->r = folder_of(s, &profile->labels, &folder);
	if (item->r)
		return;
	item->row = (struct store_profile){
		.folder = folder,
		.kind = profile->kind,
		.start_ns = profile->start_ns / NSEC_PER_MSEC * NSEC_PER_MSEC,
		.duration_ns = store_name_duration(profile->duration_ns),
		.bytes = store_table_disk_bytes(profile->pprof_len),
	};
	item->new_folder = !folder->n_profiles;
	store_file_of(&item->row, &item->file);
}

/* Folders after all removals, which may drop a folder. */
static void batch_fill(struct store *s, struct batch *batch, uint64_t now_ns)
{
	uint64_t bytes = 0;

	if (!make_room(s, batch, now_ns, 0, 0))
		return;
	while (s->waiting.first && batch->n < BATCH_PROFILES) {
		bytes += store_table_disk_bytes(s->waiting.first->p->profile->pprof_len);
		if (bytes > s->opts.max_bytes || !make_room(s, batch, now_ns, bytes, batch->n + 1))
			break;
		batch->items[batch->n].pending = pending_pop(&s->waiting);
		pending_push(&batch->profiles, batch->items[batch->n++].pending);
	}
	for (size_t i = 0; i < batch->n; i++)
		item_fill(s, &batch->items[i]);
}

static void store_write(struct store *s)
{
	uint64_t now_ns = nsec_wall();
	struct batch *batch;

	if (now_ns < s->age_now_ns)
		now_ns = s->age_now_ns;
	if (!s->waiting.first && why_remove(s, now_ns, 0, 0) == REMOVAL_MAX) {
		s->age_now_ns = 0;
		return;
	}
	batch = calloc(1, sizeof(*batch));
	if (!batch || store_table_reserve(&s->table, BATCH_PROFILES)) {
		free(batch);
		store_end_waiting(s, -ENOMEM);
		return;
	}
	pending_init(&batch->profiles);
	batch_fill(s, batch, now_ns);
	batch->job.owner = s;
	s->running = true;
	s->batch = batch;
	if (disk_thread_submit(s->thread, &batch->job, &batch_kind)) {
		for (size_t i = 0; i < batch->n; i++)
			batch->items[i].r = STORE_FAILED;
		batch_done(&batch->job); /* cannot happen: no other job is on the way */
	}
}

/* ---- opening */

struct open_job {
	struct disk_job job;
	struct store_table table;
	pid_t holder;
};

static void open_alive(void *ctx)
{
	work_alive(ctx);
}

static void open_run(struct disk_job *base)
{
	struct open_job *job = container_of(base, struct open_job, job);
	struct store_disk *disk = base->disk;

	base->r = store_disk_open(disk, open_alive, &base->work, &job->table);
	job->holder = disk->holder;
}

static void open_drop(struct disk_job *base)
{
	struct open_job *job = container_of(base, struct open_job, job);

	store_table_deinit(&job->table);
	free(job);
}

static void open_done(struct disk_job *base)
{
	struct open_job *job = container_of(base, struct open_job, job);
	struct store *s = base->owner;
	pid_t holder = job->holder;
	int r = base->r;

	if (s->closing) {
		open_drop(base);
		return;
	}
	s->opened = !r;
	s->busy = r == STORE_BUSY;
	s->open_r = r;
	s->table = job->table;
	free(job);
	s->blocked = false;
	if (s->busy)
		(void)loop_arm(s->retry_timer, s->opts.blocked_ns, 0);
	else if (r)
		s->retry_ns = nsec_monotonic() + OPEN_RETRY_PARTS * s->opts.blocked_ns;
	if (!s->starting || s->busy)
		store_changes(s, r, holder);
	if (r && !s->busy)
		store_end_waiting(s, r);
	store_answered(s);
}

static const struct disk_job_kind open_kind = {
	.run = open_run, .done = open_done, .drop = open_drop};

static int store_read_all(struct store *s)
{
	struct open_job *job = calloc(1, sizeof(*job));
	int r;

	if (!job)
		return -ENOMEM;
	job->job.owner = s;
	s->running = true;
	r = disk_thread_submit(s->thread, &job->job, &open_kind);
	if (!r)
		return 0;
	s->running = false;
	free(job);
	return STORE_FAILED;
}

static void store_go_on(struct store *s)
{
	int r;

	if (s->running || s->closing)
		return;
	if (s->opened) {
		store_write(s);
		return;
	}
	if (!s->waiting.first || s->busy)
		return;
	/* the opening failed: its outcome is the profiles', up to the next attempt */
	r = nsec_monotonic() < s->retry_ns ? s->open_r : store_read_all(s);
	if (r)
		store_end_waiting(s, r);
}

static void on_retry(void *ctx)
{
	struct store *s = ctx;

	if (store_read_all(s))
		(void)loop_arm(s->retry_timer, s->opts.blocked_ns, 0);
}

static void on_blocked(void *ctx)
{
	struct store *s = ctx;

	s->blocked = true;
	store_changes(s, STORE_BLOCKED, 0);
	if (s->opts.idle)
		s->opts.idle(s->opts.ctx);
}

static void free_disk(void *disk)
{
	store_disk_free(disk);
}

static int store_start(struct store *s)
{
	struct store_disk *disk = NULL;
	struct disk_thread_opts thread = {
		.loop = s->opts.loop,
		.name = "store",
		.queue_max = 1,
		.blocked_ns = s->opts.blocked_ns,
		.free_disk = free_disk,
		.blocked = on_blocked,
		.ctx = s,
	};
	int r = store_disk_new(s->opts.dir, &disk);

	if (r)
		return r;
	thread.disk = disk;
	r = disk_thread_new(&thread, &s->thread);
	if (r) {
		store_disk_free(disk);
		return r;
	}
	s->disk = disk;
	r = loop_add_timer(s->opts.loop, on_retry, s, &s->retry_timer);
	return r ? r : store_read_all(s);
}

int store_open(const struct store_opts *opts, struct store **ret)
{
	_cleanup_(store_freep) struct store *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->opts = *opts;
	if (!s->opts.blocked_ns)
		s->opts.blocked_ns = WATCHDOG_BLOCKED_NS;
	s->starting = true;
	pending_init(&s->waiting);
	r = store_start(s);
	if (r)
		return r;
	if (!disk_thread_wait(s->thread, s->opts.open_wait_ns))
		store_changes(s, STORE_BLOCKED, 0); /* opened by the loop, later */
	else if (!s->opened && !s->busy)
		return s->open_r;
	s->starting = false;
	*ret = take_ptr(s);
	return 0;
}

void store_free(struct store *s)
{
	if (!s)
		return;
	s->closing = true;
	disk_thread_free(s->thread);
	while (s->waiting.first)
		pending_free(pending_pop(&s->waiting));
	store_table_deinit(&s->table);
	loop_remove(s->retry_timer);
	free(s);
}

/* ---- profiles */

static int check(const struct store *s, const struct queued_profile *p)
{
	uint64_t bytes = store_table_disk_bytes(p->profile->pprof_len);
	uint64_t waiting = s->waiting.bytes;

	if (bytes > s->opts.max_bytes || p->profile->pprof_len > STORE_PROFILE_SIZE_MAX)
		return STORE_TOO_LARGE;
	if (s->batch)
		waiting += s->batch->profiles.bytes;
	return waiting + p->bytes > s->opts.waiting_bytes ? STORE_BLOCKED : 0;
}

void store_put(struct store *s, struct queued_profile *p)
{
	struct pending *pending = NULL;
	int r = check(s, p);

	if (!r)
		pending = malloc(sizeof(*pending));
	if (!pending) {
		store_ends(s, p->profile, r ? r : -ENOMEM);
		return;
	}
	*pending = (struct pending){.p = p};
	p->refs++;
	pending_push(&s->waiting, pending);
	store_go_on(s);
}

void store_lose(struct store *s, const struct profile *profile)
{
	store_ends(s, profile, -ENOMEM);
}

void store_trim(struct store *s, uint64_t now_ns)
{
	if (now_ns > s->age_now_ns)
		s->age_now_ns = now_ns;
	store_go_on(s);
}

bool store_is_idle(const struct store *s)
{
	return s->blocked || s->busy || (!s->running && !s->waiting.first);
}

size_t store_n_waiting(const struct store *s)
{
	return s->waiting.n + (s->batch ? s->batch->profiles.n : 0);
}

/* ---- looking */

size_t store_n_profiles(const struct store *s)
{
	return store_table_n(&s->table);
}

const struct store_profile *store_at(const struct store *s, size_t i)
{
	return &s->table.profiles[s->table.first + i];
}

const struct store_folder *store_find_folder(const struct store *s, const char *name)
{
	const struct store_folder *folder = store_table_folder(&s->table, name);

	return folder && folder->n_profiles ? folder : NULL;
}

const struct store_folder *store_next_folder(const struct store *s,
					     const struct store_folder *folder)
{
	return store_table_next_folder(&s->table, folder);
}

const struct store_profile *store_find(const struct store *s, uint64_t id)
{
	return store_table_find(&s->table, id);
}

void store_file_of(const struct store_profile *profile, struct store_file *ret)
{
	snprintf(ret->folder, sizeof(ret->folder), "%s", profile->folder->name);
	store_table_file(profile, ret->name);
}

int store_dup_dir(const struct store *s, struct root *ret)
{
	return s->opened ? root_dup(&s->disk->root, ret) : -ENOENT;
}

/* ---- metrics */

const char *store_outcome_name(int outcome)
{
	static const char *const names[STORE_OUTCOME_MAX] = {
		[STORE_OK] = "stored",
		[STORE_DISK_FULL] = "disk_full",
		[STORE_READ_ONLY] = "read_only",
		[STORE_TOO_LARGE] = "too_large",
		[STORE_FOLDERS] = "too_many_folders",
		[STORE_FAILED] = "failed",
		[STORE_BLOCKED] = "blocked",
		[STORE_GONE] = "gone",
		[STORE_BUSY] = "busy",
	};

	return outcome >= 0 && outcome < STORE_OUTCOME_MAX ? names[outcome] : "failed";
}

void store_collect(void *store, struct metric_sink *sink)
{
	static const struct metric_family_desc bytes = {
		"podprof_store_bytes", METRIC_GAUGE,
		"Disk space of the stored profiles, in whole blocks.", "bytes"};
	static const struct metric_family_desc files = {"podprof_store_files", METRIC_GAUGE,
							"Stored profiles.", NULL};
	static const struct metric_family_desc busy = {
		"podprof_store_busy", METRIC_GAUGE,
		"1 while another process has the lock of the store's directory.", NULL};
	static const struct metric_family_desc profiles = {"podprof_store_profiles", METRIC_COUNTER,
							   "Profiles for the store by outcome.",
							   NULL};
	static const struct metric_family_desc removed = {"podprof_store_removed", METRIC_COUNTER,
							  "Stored profiles removed, by reason.",
							  NULL};
	static const char *const reasons[] = {"bytes", "age", "count"};
	const struct store *s = store;
	const char *names[STORE_GONE];

	for (int i = 0; i < STORE_GONE; i++)
		names[i] = store_outcome_name(i);
	metric_family(sink, &bytes);
	metric_u64(sink, s->table.bytes, NULL, 0);
	metric_family(sink, &files);
	metric_u64(sink, store_n_profiles(s), NULL, 0);
	metric_family(sink, &busy);
	metric_u64(sink, s->busy, NULL, 0);
	metric_by_name(sink, &profiles, "outcome", s->counts, names, STORE_GONE);
	metric_by_name(sink, &removed, "reason", s->removed, reasons, REMOVAL_MAX);
}
