// SPDX-License-Identifier: Apache-2.0
/*
 * Any process can map a file of a FUSE mount, and its server can stop answering at each of open,
 * getattr, read and release. A hard NFS mount does the same without malice. The blocked thread
 * cannot be interrupted, and not even be killed once the server has the request
 * (request_wait_answer() in fs/fuse/dev.c).
 *
 * The loop looks at the thread's progress. A thread without progress is abandoned with the one file
 * that blocks it; another thread continues with the other files of the batch. The file system then
 * has a cooldown. A thread that returns ends the first cooldown at once: a disk under load, too,
 * can be silent for two seconds. Later cooldowns double. An owner has a cooldown from its second
 * block on, so that a container with many file systems does not block one thread after another.
 *
 * Closing a file can block as well (FUSE_FLUSH). So the thread also closes the files of unused
 * images, except those of blocked file systems.
 */
#include "procmap/opener.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/loop.h"
#include "base/metric.h"
#include "base/nsec.h"
#include "base/watchdog.h"
#include "procmap/image.h"

/* Interval of looks at the thread's progress, as a part of stuck_ns. */
#define OPENER_LOOKS	4
/* Slots of blocked threads; one more for the end, when the agent waits for no thread. */
#define OPENER_SLOTS	(OPENER_BLOCKED_MAX + 1)
/* At the end: the longest wait for the running batch. */
#define OPENER_END_NS	NSEC_PER_SEC
#define OPENER_PAUSE_NS (NSEC_PER_MSEC)
/* Delay of the next attempt where no time is known. */
#define OPENER_AGAIN_NS NSEC_PER_SEC

static const char *const outcome_names[OPENER_OUTCOME_MAX] = {
	[OPENER_OK] = "ok",
	[OPENER_UNREADABLE] = "unreadable",
	[OPENER_FULL] = "full",
	[OPENER_HUNG] = "hung",
	[OPENER_DEVICE] = "device",
	[OPENER_OWNER] = "owner",
	[OPENER_THREADS] = "threads_full",
};

/* The slots of blocked threads; shared with these. */
struct blocked {
	_Atomic unsigned int refs;
	_Atomic bool busy[OPENER_SLOTS];
};

enum culprit_kind { CULPRIT_DEVICE, CULPRIT_OWNER, CULPRIT_MAX };

struct culprit_key {
	uint64_t kind;
	uint64_t id;
};

/* A file system or an owner that has blocked a thread. */
struct culprit {
	struct culprit_key key;
	uint64_t n;	   /* blocks */
	uint64_t until_ns; /* end of the cooldown */
	uint64_t delay_ns;
	UT_hash_handle hh;
};

struct opener {
	struct opener_opts opts;
	struct worker *worker;
	struct loop_source *timer;
	struct blocked_time time; /* of the running batch */
	bool armed;
	bool swept;		  /* a sweep waits for the thread */
	struct open_batch *first; /* with the worker, in order */
	struct blocked *blocked;
	uint64_t ids[OPENER_SLOTS][CULPRIT_MAX]; /* by slot */
	struct culprit *culprits;
	uint64_t outcomes[OPENER_OUTCOME_MAX];
};

static void blocked_unref(struct blocked *blocked)
{
	if (blocked && atomic_fetch_sub(&blocked->refs, 1) == 1)
		free(blocked);
}

/* ---------------------------------------------------------------- on the thread */

struct open_batch *open_batch_new(void)
{
	struct open_batch *b = calloc(1, sizeof(*b));

	if (b)
		pthread_mutex_init(&b->lock, NULL);
	return b;
}

void open_batch_free(struct open_batch *b)
{
	if (!b)
		return;
	for (size_t i = 0; i < b->n; i++) {
		image_unref(b->items[i].opened);
		image_unref(b->items[i].image);
	}
	images_unref(b->images);
	blocked_unref(b->blocked);
	pthread_mutex_destroy(&b->lock);
	free(b);
}

/* False if the batch is abandoned: then its requests belong to another batch. */
static bool begin(struct open_batch *b, size_t at, uint64_t device)
{
	bool mine;

	pthread_mutex_lock(&b->lock);
	mine = !b->abandoned;
	b->at = at;
	b->device = device;
	pthread_mutex_unlock(&b->lock);
	return mine;
}

static bool end(struct open_batch *b, struct image *image)
{
	bool mine;

	pthread_mutex_lock(&b->lock);
	mine = !b->abandoned;
	if (mine)
		b->items[b->at].opened = image;
	pthread_mutex_unlock(&b->lock);
	return mine;
}

/* Opens one file. Without memory the file counts as unknown. */
static struct image *open_one(struct open_batch *b, const struct open_request *request)
{
	struct image *image;
	int r;

	if (b->hook)
		b->hook(b->hook_ctx, &request->entry);
	if (request->image->opening->by_record)
		r = images_of_record(b->images, &b->way, &request->entry, &image);
	else
		r = images_find(b->images, &b->way, &request->entry, &image);
	return r ? image_ref(images_unknown(b->images)) : image;
}

/* False if the batch is abandoned. */
static bool open_files(struct open_batch *b, uint64_t end_ns)
{
	for (size_t i = 0; i < b->n; i++) {
		struct image *image;

		if (!begin(b, i, b->items[i].entry.device))
			return false;
		image = open_one(b, &b->items[i]);
		if (!end(b, image)) {
			image_unref(image);
			return false;
		}
		work_alive(&b->work);
		if (nsec_monotonic() >= end_ns)
			break;
	}
	return true;
}

static void close_unused(struct open_batch *b, uint64_t end_ns)
{
	struct image *image;

	while (nsec_monotonic() < end_ns &&
	       (image = images_take_unused(b->images, b->skip, b->n_skip))) {
		bool mine = begin(b, b->n, image->id.device);

		image_unref(image);
		if (!mine)
			return;
		work_alive(&b->work);
	}
}

static void on_run(struct work *work)
{
	struct open_batch *b = container_of(work, struct open_batch, work);
	uint64_t begin_ns = nsec_monotonic();

	if (b->is_sweep)
		images_evict_unused(b->images);
	if (open_files(b, begin_ns + OPENER_BATCH_NS))
		close_unused(b, begin_ns + 2 * OPENER_BATCH_NS);
	b->took_ns = nsec_monotonic() - begin_ns;
}

/* An abandoned batch has ended after all; the opener may no longer exist. */
static void on_orphan(void *ctx, struct work *work)
{
	struct open_batch *b = container_of(work, struct open_batch, work);

	(void)ctx;
	atomic_store(&b->blocked->busy[b->slot], false);
	open_batch_free(b);
}

/* ---------------------------------------------------------------- culprits */

unsigned int opener_n_blocked(const struct opener *o)
{
	unsigned int n = 0;

	for (size_t i = 0; i < OPENER_SLOTS; i++)
		n += atomic_load(&o->blocked->busy[i]);
	return n;
}

static unsigned int n_blocked_by(const struct opener *o, enum culprit_kind kind, uint64_t id)
{
	unsigned int n = 0;

	for (size_t i = 0; i < OPENER_SLOTS; i++)
		n += atomic_load(&o->blocked->busy[i]) && o->ids[i][kind] == id;
	return n;
}

static struct culprit *find_culprit(const struct opener *o, enum culprit_kind kind, uint64_t id)
{
	struct culprit_key key = {.kind = kind, .id = id};
	struct culprit *culprit;

	HASH_FIND(hh, o->culprits, &key, sizeof(key), culprit);
	return culprit;
}

static void forget_culprit(struct opener *o, struct culprit *culprit)
{
	HASH_DEL(o->culprits, culprit);
	free(culprit);
}

/* Without memory there is no cooldown, only the limit of blocked threads. */
static void blame(struct opener *o, enum culprit_kind kind, uint64_t id)
{
	struct culprit *culprit = find_culprit(o, kind, id);
	bool hash_oom = false;

	if (!culprit) {
		if (HASH_COUNT(o->culprits) >= OPENER_CULPRITS_MAX)
			forget_culprit(o, o->culprits);
		culprit = calloc(1, sizeof(*culprit));
		if (!culprit)
			return;
		culprit->key = (struct culprit_key){.kind = kind, .id = id};
		HASH_ADD(hh, o->culprits, key, sizeof(culprit->key), culprit);
		if (hash_oom) {
			free(culprit);
			return;
		}
	}
	culprit->n++;
	culprit->delay_ns = culprit->delay_ns ? 2 * culprit->delay_ns : OPENER_COOLDOWN_NS;
	if (culprit->delay_ns > OPENER_COOLDOWN_LONG_NS)
		culprit->delay_ns = OPENER_COOLDOWN_LONG_NS;
	culprit->until_ns = nsec_monotonic() + culprit->delay_ns;
}

/* Whether a file of this origin must wait. */
static bool is_refused(struct opener *o, enum culprit_kind kind, uint64_t id,
		       uint64_t *ret_until_ns)
{
	struct culprit *culprit = find_culprit(o, kind, id);
	uint64_t now_ns = nsec_monotonic();
	unsigned int n;

	if (!culprit)
		return false;
	n = n_blocked_by(o, kind, id);
	*ret_until_ns = n || culprit->n == 1 ? now_ns + OPENER_AGAIN_NS : culprit->until_ns;
	if (n >= OPENER_BLOCKED_EACH_MAX)
		return true;
	if (now_ns < culprit->until_ns)
		return culprit->n > 1 || (kind == CULPRIT_DEVICE && n);
	if (!n && now_ns - culprit->until_ns > OPENER_COOLDOWN_LONG_NS)
		forget_culprit(o, culprit);
	return false;
}

enum opener_outcome opener_refuses(struct opener *o, uint64_t owner, uint64_t device,
				   uint64_t *ret_until_ns)
{
	enum opener_outcome outcome = OPENER_OK;

	if (is_refused(o, CULPRIT_DEVICE, device, ret_until_ns))
		outcome = OPENER_DEVICE;
	else if (owner && is_refused(o, CULPRIT_OWNER, owner, ret_until_ns))
		outcome = OPENER_OWNER;
	if (outcome)
		o->outcomes[outcome]++;
	return outcome;
}

/* ---------------------------------------------------------------- a batch that does not end */

/* Moves the requests of a blocked batch to @to. The thread still reads the request in progress. */
static void take_requests(struct open_batch *from, struct open_batch *to)
{
	pthread_mutex_lock(&from->lock);
	from->abandoned = true;
	to->way = from->way;
	memcpy(to->tag, from->tag, sizeof(to->tag));
	to->is_sweep = from->is_sweep;
	to->n = from->n;
	to->took_ns = OPENER_STUCK_NS;
	for (size_t i = 0; i < from->n; i++) {
		to->items[i] = from->items[i];
		from->items[i].opened = NULL;
		to->items[i].slow = i == from->at && !to->items[i].opened;
		image_ref(to->items[i].image);
	}
	pthread_mutex_unlock(&from->lock);
}

static void unlist(struct opener *o, const struct open_batch *b)
{
	struct open_batch **at = &o->first;

	while (*at && *at != b)
		at = &(*at)->next;
	if (*at)
		*at = b->next;
}

struct giving_up {
	struct opener *opener;
	struct open_batch *rest;
	size_t slot;
};

static void on_seen(void *ctx, struct work *work)
{
	struct open_batch *b = container_of(work, struct open_batch, work);
	struct giving_up *g = ctx;
	struct opener *o = g->opener;

	take_requests(b, g->rest);
	unlist(o, b);
	b->slot = g->slot;
	b->blocked = o->blocked;
	atomic_fetch_add(&o->blocked->refs, 1);
	o->ids[g->slot][CULPRIT_DEVICE] = b->device;
	o->ids[g->slot][CULPRIT_OWNER] = b->way.owner;
	atomic_store(&o->blocked->busy[g->slot], true);
}

static size_t free_slot(const struct opener *o)
{
	size_t i = 0;

	while (i < OPENER_SLOTS && atomic_load(&o->blocked->busy[i]))
		i++;
	return i;
}

static void pass_back(struct opener *o, struct open_batch *b);

/* Abandons the thread if there are fewer than @most, and passes back the requests. */
static void give_up(struct opener *o, size_t most)
{
	struct giving_up g = {.opener = o, .slot = free_slot(o)};
	const struct worker_left left = {on_seen, on_orphan, &g};

	if (g.slot >= most) {
		o->outcomes[OPENER_THREADS]++;
		return;
	}
	g.rest = open_batch_new();
	if (!g.rest || worker_abandon(o->worker, &left)) { /* or it has ended just now */
		open_batch_free(g.rest);
		return;
	}
	/* from here on the thread may free its batch */
	blame(o, CULPRIT_DEVICE, o->ids[g.slot][CULPRIT_DEVICE]);
	blame(o, CULPRIT_OWNER, o->ids[g.slot][CULPRIT_OWNER]);
	pass_back(o, g.rest);
}

/* ---------------------------------------------------------------- batches */

static void count(struct opener *o, const struct open_request *request)
{
	const struct image *opened = request->opened;

	if (request->slow)
		o->outcomes[OPENER_HUNG]++;
	else if (opened == images_full(o->opts.images))
		o->outcomes[OPENER_FULL]++;
	else if (opened)
		o->outcomes[opened->file ? OPENER_OK : OPENER_UNREADABLE]++;
}

static void pass_back(struct opener *o, struct open_batch *b)
{
	for (size_t i = 0; i < b->n; i++)
		count(o, &b->items[i]);
	if (b->is_sweep) {
		o->swept = false;
		open_batch_free(b);
	} else {
		o->opts.done(o->opts.ctx, b);
	}
}

static void on_done(struct work *work)
{
	struct open_batch *b = container_of(work, struct open_batch, work);

	unlist(b->opener, b);
	pass_back(b->opener, b);
}

static void on_timer(void *ctx);

static void arm(struct opener *o)
{
	if (!o->armed)
		o->armed = !loop_arm(o->timer, o->opts.stuck_ns / OPENER_LOOKS, 0);
}

static void look(struct opener *o)
{
	if (blocked_time_ns(&o->time, o->worker) > o->opts.stuck_ns)
		give_up(o, OPENER_BLOCKED_MAX);
}

static void on_timer(void *ctx)
{
	struct opener *o = ctx;

	o->armed = false;
	look(o);
	if (o->first)
		arm(o);
}

static void set_skip(const struct opener *o, struct open_batch *b)
{
	const struct culprit *culprit;

	for (culprit = o->culprits; culprit; culprit = culprit->hh.next)
		if (culprit->key.kind == CULPRIT_DEVICE && b->n_skip < array_size(b->skip) &&
		    n_blocked_by(o, CULPRIT_DEVICE, culprit->key.id))
			b->skip[b->n_skip++] = culprit->key.id;
}

bool opener_has_room(const struct opener *o)
{
	return worker_pending(o->worker) < OPENER_QUEUE_MAX;
}

int opener_submit(struct opener *o, struct open_batch *b)
{
	struct open_batch **last = &o->first;
	int r;

	b->work = (struct work){.run = on_run, .done = on_done};
	b->opener = o;
	b->images = images_ref(o->opts.images);
	b->hook = o->opts.hook;
	b->hook_ctx = o->opts.hook_ctx;
	set_skip(o, b);
	while (*last)
		last = &(*last)->next;
	*last = b;
	b->next = NULL;
	r = worker_submit(o->worker, &b->work);
	if (r)
		unlist(o, b);
	else
		arm(o);
	return r;
}

void opener_sweep(struct opener *o)
{
	struct open_batch *b = o->swept ? NULL : open_batch_new();

	if (!b)
		return;
	b->is_sweep = true;
	o->swept = !opener_submit(o, b);
	if (!o->swept)
		open_batch_free(b);
}

void opener_wait(struct opener *o, uint64_t timeout_ns)
{
	(void)worker_wait(o->worker, timeout_ns);
	look(o);
}

size_t opener_pending(const struct opener *o)
{
	return worker_pending(o->worker);
}

/* ---------------------------------------------------------------- life */

int opener_new(const struct opener_opts *opts, struct opener **ret)
{
	struct opener *o = calloc(1, sizeof(*o));
	int r = 0;

	if (!o)
		return -ENOMEM;
	o->opts = *opts;
	if (!o->opts.stuck_ns)
		o->opts.stuck_ns = OPENER_STUCK_NS;
	images_ref(o->opts.images);
	o->blocked = calloc(1, sizeof(*o->blocked));
	if (o->blocked)
		atomic_store(&o->blocked->refs, 1);
	else
		r = -ENOMEM;
	if (!r)
		r = loop_add_timer(opts->loop, on_timer, o, &o->timer);
	if (!r)
		r = worker_new(opts->loop, "open", OPENER_QUEUE_MAX + 1, &o->worker);
	if (r)
		opener_free(o);
	else
		*ret = o;
	return r;
}

/* Waits a moment for the running batch; then abandons it. */
static void wait_for_end(struct opener *o)
{
	const struct timespec pause = {.tv_nsec = OPENER_PAUSE_NS};
	uint64_t end_ns = nsec_monotonic() + OPENER_END_NS;

	worker_stop(o->worker);
	while (worker_busy_ns(o->worker) && nsec_monotonic() < end_ns)
		nanosleep(&pause, NULL);
	if (worker_busy_ns(o->worker))
		give_up(o, OPENER_SLOTS);
}

void opener_free(struct opener *o)
{
	struct culprit *culprit, *next;

	if (!o)
		return;
	loop_remove(o->timer);
	if (o->worker)
		wait_for_end(o);
	worker_free(o->worker);
	HASH_ITER(hh, o->culprits, culprit, next)
		forget_culprit(o, culprit);
	blocked_unref(o->blocked);
	images_unref(o->opts.images);
	free(o);
}

void opener_collect(const struct opener *o, struct metric_sink *sink)
{
	static const struct metric_family_desc opens = {
		"podprof_file_opens", METRIC_COUNTER,
		"Mapped files to be opened, by what came of it.", NULL};
	static const struct metric_family_desc blocked = {
		"podprof_file_threads_blocked", METRIC_GAUGE,
		"Threads that wait for a file system without an answer.", NULL};

	metric_by_name(sink, &opens, "outcome", o->outcomes, outcome_names, OPENER_OUTCOME_MAX);
	metric_family(sink, &blocked);
	metric_u64(sink, opener_n_blocked(o), NULL, 0);
}
