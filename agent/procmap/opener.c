// SPDX-License-Identifier: Apache-2.0
/*
 * Any process can map a file of a FUSE mount, and its server can stop answering at each of open,
 * getattr, read and release. A hard NFS mount does the same without malice. The blocked thread
 * cannot be interrupted, and not even be killed once the server has the request
 * (request_wait_answer() in fs/fuse/dev.c).
 *
 * /proc/PID/maps is read under the lock of the process's address space. A writer that waits for
 * this lock, behind a page fault without an answer, holds up all later readers. So another thread
 * of the same kind reads the lists, and no file delays a list. There the process takes the place of
 * the file system.
 *
 * The loop looks at the thread's progress. A thread without progress is abandoned together with the
 * blocking file; another thread continues with the other files of the batch. The file system then
 * has a cooldown. A thread that returns ends the first cooldown at once: a disk under load, too,
 * can be silent for two seconds. Later cooldowns double. An owner has a cooldown from the second
 * block on, so that a container with many file systems does not block a thread after each cooldown
 * of a file system.
 *
 * The kernel gives the number of an unmounted file system to the next one, and that of an ended
 * process to another process. So the blocks of one owner are no reason to refuse the files of
 * other owners, except while a thread is blocked: then the file system still exists. A second owner
 * that is blocked makes the later cooldowns common to all owners.
 *
 * Closing a file can block as well (FUSE_FLUSH). So the thread also closes the files of unused
 * images, except those of blocked file systems.
 */
#include "procmap/opener.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

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
/* Delay of the next attempt where no time is known. */
#define OPENER_AGAIN_NS NSEC_PER_SEC

static const char *const file_outcome_names[OPENER_OUTCOME_MAX] = {
	[OPENER_OK] = "ok",	  [OPENER_UNREADABLE] = "unreadable",
	[OPENER_HUNG] = "hung",	  [OPENER_ORIGIN] = "device",
	[OPENER_OWNER] = "owner", [OPENER_THREADS] = "threads_full",
	[OPENER_FULL] = "full",
};

static const char *const list_outcome_names[OPENER_FULL] = {
	[OPENER_OK] = "ok",	  [OPENER_UNREADABLE] = "unreadable",
	[OPENER_HUNG] = "hung",	  [OPENER_ORIGIN] = "process",
	[OPENER_OWNER] = "owner", [OPENER_THREADS] = "threads_full",
};

/* The slots of blocked threads; shared with these. */
struct blocked {
	_Atomic unsigned int refs;
	_Atomic bool busy[OPENER_SLOTS];
};

enum culprit_kind { CULPRIT_ORIGIN, CULPRIT_OWNER, CULPRIT_MAX };

struct culprit_key {
	uint64_t kind;
	uint64_t id;
};

/* A file system, a process or an owner that has blocked a thread. */
struct culprit {
	struct culprit_key key;
	uint64_t owner;	   /* whose request was blocked first */
	bool is_shared;	   /* a request of another owner was blocked too */
	uint64_t n;	   /* blocks; if shared, from the second owner on */
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
	for (size_t i = 0; i < b->list.n_memory; i++)
		image_unref(b->list.memory[i]);
	maps_deinit(&b->list.maps);
	images_unref(b->images);
	blocked_unref(b->blocked);
	pthread_mutex_destroy(&b->lock);
	free(b);
}

/* False if the batch is abandoned: then its requests belong to another batch. */
static bool begin(struct open_batch *b, size_t at, uint64_t origin)
{
	bool mine;

	pthread_mutex_lock(&b->lock);
	mine = !b->abandoned;
	b->at = at;
	b->origin = origin;
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

/* Whether a file system has blocked the thread since the batch was submitted. */
static bool has_blocked(struct open_batch *b, uint64_t origin)
{
	bool found = false;

	pthread_mutex_lock(&b->lock);
	for (size_t i = b->n_known; i < b->n_skip; i++)
		found |= b->skip[i] == origin;
	pthread_mutex_unlock(&b->lock);
	return found;
}

/* Opens one file. Without memory the file counts as unknown. */
static struct image *open_one(struct open_batch *b, const struct open_request *request)
{
	struct image *image;
	int r;

	if (b->hook)
		b->hook(b->hook_ctx, b->way.pid.pid, &request->entry);
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

		if (has_blocked(b, b->items[i].entry.device))
			continue; /* comes back undone, and is then refused */
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

static struct image *take_unused(struct open_batch *b)
{
	uint64_t skip[OPENER_BLOCKED_MAX];
	size_t n_skip;

	pthread_mutex_lock(&b->lock);
	n_skip = b->n_skip;
	memcpy(skip, b->skip, n_skip * sizeof(*skip));
	pthread_mutex_unlock(&b->lock);
	return images_take_unused(b->images, skip, n_skip);
}

static void close_unused(struct open_batch *b, uint64_t end_ns)
{
	struct image *image;

	while (nsec_monotonic() < end_ns && (image = take_unused(b))) {
		bool mine = begin(b, b->n, image->id.device);

		image_unref(image);
		if (!mine)
			return;
		work_alive(&b->work);
	}
}

/* Images of the anonymous code in the list. */
static void open_memory(struct open_batch *b, const struct maps *maps)
{
	const struct images_way way = {.via_pid = maps->via_pid,
				       .pid = b->list.of,
				       .exec_id = b->list.exec_id,
				       .began_ns = b->list.began_ns,
				       .owner = b->way.owner};
	struct open_list *list = &b->list;

	for (size_t i = 0; i < maps->n && list->n_memory < OPENER_MEMORY_MAX; i++) {
		const struct maps_entry *e = &maps->items[i];
		bool known = false;

		if (e->kind != MAPS_ANON)
			continue;
		for (size_t k = 0; k < list->n_memory && !known; k++)
			known = strcmp(list->memory[k]->path, e->path[0] ? e->path : "[anon]") == 0;
		if (known)
			continue;
		images_open_memory(b->images, &way, e, &list->memory[list->n_memory++]);
		work_alive(&b->work);
	}
	images_open_jitdump(b->images, &way, maps, list->memory, list->n_memory);
}

static void read_list(struct open_batch *b)
{
	struct maps maps = {.only_prot = b->list.maps.only_prot, .inode = b->list.maps.inode};
	int r;

	(void)begin(b, 0, b->list.of.pid);
	if (b->hook)
		b->hook(b->hook_ctx, b->list.of.pid, NULL);
	r = maps_read(images_proc(b->images), &b->list.of, &maps);
	if (!r)
		open_memory(b, &maps);
	pthread_mutex_lock(&b->lock);
	if (!b->abandoned) {
		b->list.maps = maps;
		b->list.outcome = r;
		b->list.done = true;
		maps = (struct maps){0};
	}
	pthread_mutex_unlock(&b->lock);
	maps_deinit(&maps);
}

static void on_run(struct work *work)
{
	struct open_batch *b = container_of(work, struct open_batch, work);
	uint64_t begin_ns = nsec_monotonic();

	if (b->is_sweep)
		images_evict_unused(b->images);
	if (b->list.is_wanted)
		read_list(b);
	else if (open_files(b, begin_ns + OPENER_BATCH_NS))
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

size_t opener_pending(const struct opener *o)
{
	return worker_pending(o->worker);
}

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
static void blame(struct opener *o, enum culprit_kind kind, uint64_t id, uint64_t owner)
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
		culprit->owner = owner;
		HASH_ADD(hh, o->culprits, key, sizeof(culprit->key), culprit);
		if (hash_oom) {
			free(culprit);
			return;
		}
	}
	if (owner != culprit->owner && !culprit->is_shared) {
		culprit->is_shared = true;
		culprit->n = culprit->delay_ns = 0;
	}
	culprit->n++;
	culprit->delay_ns = culprit->delay_ns ? 2 * culprit->delay_ns : OPENER_COOLDOWN_NS;
	if (culprit->delay_ns > OPENER_COOLDOWN_LONG_NS)
		culprit->delay_ns = OPENER_COOLDOWN_LONG_NS;
	culprit->until_ns = nsec_monotonic() + culprit->delay_ns;
}

/* Whether a file of @owner must wait because of @id. */
static bool is_refused(struct opener *o, enum culprit_kind kind, uint64_t id, uint64_t owner,
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
		return (culprit->n > 1 && (culprit->is_shared || culprit->owner == owner)) ||
		       (kind == CULPRIT_ORIGIN && n);
	if (!n && now_ns - culprit->until_ns > OPENER_COOLDOWN_LONG_NS)
		forget_culprit(o, culprit);
	return false;
}

enum opener_outcome opener_refuses(struct opener *o, uint64_t owner, uint64_t origin,
				   uint64_t *ret_until_ns)
{
	enum opener_outcome outcome = OPENER_OK;

	if (is_refused(o, CULPRIT_ORIGIN, origin, owner, ret_until_ns))
		outcome = OPENER_ORIGIN;
	else if (owner && is_refused(o, CULPRIT_OWNER, owner, owner, ret_until_ns))
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
	to->list.is_wanted = to->list.slow = from->list.is_wanted;
	to->list.of = from->list.of;
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
	o->ids[g->slot][CULPRIT_ORIGIN] = b->origin;
	o->ids[g->slot][CULPRIT_OWNER] = b->way.owner;
	atomic_store(&o->blocked->busy[g->slot], true);
}

/* The batches that wait for the thread: else each of these might block it there again. */
static void warn_waiting(struct opener *o, uint64_t origin)
{
	for (struct open_batch *b = o->first; b; b = b->next) {
		pthread_mutex_lock(&b->lock);
		if (b->n_skip < array_size(b->skip))
			b->skip[b->n_skip++] = origin;
		pthread_mutex_unlock(&b->lock);
	}
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
	blame(o, CULPRIT_ORIGIN, o->ids[g.slot][CULPRIT_ORIGIN], o->ids[g.slot][CULPRIT_OWNER]);
	blame(o, CULPRIT_OWNER, o->ids[g.slot][CULPRIT_OWNER], o->ids[g.slot][CULPRIT_OWNER]);
	warn_waiting(o, o->ids[g.slot][CULPRIT_ORIGIN]);
	pass_back(o, g.rest);
}

/* ---------------------------------------------------------------- batches */

static void count_list(struct opener *o, const struct open_list *list)
{
	if (list->slow)
		o->outcomes[OPENER_HUNG]++;
	else if (list->done)
		o->outcomes[list->outcome ? OPENER_UNREADABLE : OPENER_OK]++;
}

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
	count_list(o, &b->list);
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
	struct opener *o = b->opener;

	unlist(o, b);
	if (!o->first) { /* no look is needed */
		(void)loop_disarm(o->timer);
		o->armed = false;
	}
	pass_back(o, b);
}

static void arm(struct opener *o)
{
	if (!o->armed)
		o->armed = !loop_arm_within(o->timer, o->opts.stuck_ns / OPENER_LOOKS, 0);
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
		if (culprit->key.kind == CULPRIT_ORIGIN && b->n_skip < array_size(b->skip) &&
		    n_blocked_by(o, CULPRIT_ORIGIN, culprit->key.id))
			b->skip[b->n_skip++] = culprit->key.id;
	b->n_known = b->n_skip;
}

static size_t queue_max(const struct opener_opts *opts)
{
	return opts->lists ? OPENER_LISTS_MAX : OPENER_QUEUE_MAX;
}

bool opener_has_room(const struct opener *o)
{
	const struct open_batch *b;
	size_t n_files = 0;

	for (b = o->first; b; b = b->next)
		n_files += b->n;
	return worker_pending(o->worker) < queue_max(&o->opts) && n_files < OPENER_FILES_MAX;
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
		r = worker_new(opts->loop, opts->lists ? "maps" : "open", queue_max(opts) + 1,
			       &o->worker);
	if (r)
		opener_free(o);
	else
		*ret = o;
	return r;
}

void opener_free(struct opener *o)
{
	struct culprit *culprit, *next;

	if (!o)
		return;
	loop_remove(o->timer);
	if (o->worker && !worker_stop(o->worker, OPENER_END_NS))
		give_up(o, OPENER_SLOTS);
	worker_free(o->worker);
	HASH_ITER(hh, o->culprits, culprit, next)
		forget_culprit(o, culprit);
	blocked_unref(o->blocked);
	images_unref(o->opts.images);
	free(o);
}

void opener_collect(const struct opener *o, struct metric_sink *sink)
{
	static const struct metric_family_desc outcomes[] = {
		{"podprof_file_opens", METRIC_COUNTER,
		 "Mapped files to be opened, by what came of it.", NULL},
		{"podprof_mapping_list_reads", METRIC_COUNTER,
		 "Mapping lists to be read, by what came of it.", NULL}};
	static const struct metric_family_desc blocked[] = {
		{"podprof_file_threads_blocked", METRIC_GAUGE,
		 "Threads that wait for a file system without an answer.", NULL},
		{"podprof_mapping_list_threads_blocked", METRIC_GAUGE,
		 "Threads that wait for the lock of a process's address space.", NULL}};

	metric_by_name(sink, &outcomes[o->opts.lists], "outcome", o->outcomes,
		       o->opts.lists ? list_outcome_names : file_outcome_names,
		       o->opts.lists ? OPENER_FULL : OPENER_OUTCOME_MAX);
	metric_family(sink, &blocked[o->opts.lists]);
	metric_u64(sink, opener_n_blocked(o), NULL, 0);
}
