// SPDX-License-Identifier: Apache-2.0
/*
 * A table of build ids, under a lock:
 *
 *	WAITING   offered; the file is open
 *	RUNNING   with the thread
 *	ENDED     with an outcome; not offered again before a time
 *
 * An owner has a share of the places in the queue and of the bytes of a day. The owner that had the
 * thread for the shortest time that day is next, so slow files only delay files of their own owner.
 *
 * An outcome stands for a day, one that may change for an hour. A failure of the server delays all
 * uploads, and the build id by a time that doubles.
 *
 * The watchdog abandons an upload whose file system does not answer. The abandoned thread holds the
 * job and a reference to the target, and ends by itself; the table knows nothing of it any more.
 * Until its end no other file of the owner is read: one owner blocks one thread. The last thread,
 * which cannot be abandoned, is for owners whose files were read that day and never blocked.
 */
#include "export/uploads.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/backoff.h"
#include "base/cleanup.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/nsec.h"
#include "base/share.h"
#include "base/wakeup.h"
#include "base/watchdog.h"
#include "base/worker.h"
#include "export/destination.h"
#include "export/parca.h"

#define UPLOADS_HOUR_NS	     (3600 * NSEC_PER_SEC)
#define UPLOADS_DAY_NS	     (24 * UPLOADS_HOUR_NS)
/* First wait of a build id after a failure; it doubles up to an hour. */
#define UPLOADS_RETRY_NS     (60 * NSEC_PER_SEC)
/* Longest wait of all after a failure of the server. */
#define UPLOADS_BACKOFF_NS   (300 * NSEC_PER_SEC)
#define UPLOADS_LOG_NS	     (60 * NSEC_PER_SEC)
/* Failures of a build id that are counted. Reached: an hour each. */
#define UPLOADS_FAILURES_MAX 6

enum known_state { KNOWN_WAITING, KNOWN_RUNNING, KNOWN_ENDED };

/**
 * struct known - a build id
 * @fd, @owner: of KNOWN_WAITING
 * @until_ns: of KNOWN_ENDED
 */
struct known {
	enum known_state state;
	int fd;
	uint64_t until_ns;
	unsigned int failures;
	uint64_t owner;
	UT_hash_handle hh;
	char build_id[];
};

/**
 * struct owner_day - what the files of an owner did that day
 * @bytes:   sent
 * @took_ns: time of the thread
 * @read:    a file was read to its end
 * @blocked: a file did not answer, and its job was abandoned
 */
struct owner_day {
	uint64_t owner;
	uint64_t bytes;
	uint64_t took_ns;
	bool read;
	bool blocked;
	UT_hash_handle hh;
};

/* The owner of an abandoned job, until the job's end. */
struct blocked {
	atomic_bool is_set;
	uint64_t owner;
};

/* What the jobs share; an abandoned one may outlive the rest. @wake: calls on_wake() on the loop */
struct target {
	atomic_int refs;
	int wake;
	atomic_bool stop;
	struct destination *destination;
	struct blocked blocked[WATCHDOG_THREADS_MAX];
};

struct job {
	struct work work;
	struct uploads *uploads; /* on the loop only */
	struct target *target;
	atomic_bool abandoned;
	struct blocked *blocked; /* of an abandoned job */
	char *build_id;
	uint64_t owner;
	int fd;
	uint64_t day_bytes;
	uint64_t call_ns;
	uint64_t read_ns;
	uint64_t begun_ns;
	int r;
	enum upload_end end;
	atomic_ullong bytes;
	char error[UPLOAD_ERROR_MAX];
};

/**
 * @day_ns, @day_bytes: begin of the day, and what was sent in it
 * @waiting: places in the queue by owner
 * @days:    the owners with a file that day
 * @resume_ns: no upload before
 */
struct uploads {
	struct loop *loop;
	char *name;
	uint64_t call_ns;
	uint64_t read_ns;
	struct target *target;
	struct worker *worker;
	struct watchdog *watchdog;
	struct loop_source *woken;
	struct loop_source *timer;
	struct backoff backoff;
	struct log_limit log_limit;
	uint64_t day_max;
	uint64_t day_ns;
	uint64_t day_bytes;
	uint64_t resume_ns;
	bool running;

	pthread_mutex_t lock; /* for the members below */
	struct known *known;
	size_t n_waiting;
	struct share_holder *waiting;
	struct owner_day *days;
	uint64_t ends[UPLOAD_END_MAX];
	uint64_t bytes;
};

/* ---- the table, under the lock */

static struct known *known_find(const struct uploads *u, const char *build_id)
{
	struct known *k;

	HASH_FIND_STR(u->known, build_id, k);
	return k;
}

static void known_forget(struct uploads *u)
{
	struct known *k, *next;

	HASH_ITER(hh, u->known, k, next) {
		if (k->state != KNOWN_ENDED)
			continue;
		HASH_DEL(u->known, k);
		free(k);
	}
}

/* NULL without memory. */
static struct known *known_add(struct uploads *u, const char *build_id)
{
	const size_t n = strlen(build_id) + 1;
	bool hash_oom = false;
	struct known *k;

	if (HASH_COUNT(u->known) >= UPLOADS_KNOWN_MAX)
		known_forget(u);
	k = calloc(1, sizeof(*k) + n);
	if (!k)
		return NULL;
	k->state = KNOWN_ENDED;
	memcpy(k->build_id, build_id, n);
	HASH_ADD_STR(u->known, build_id, k);
	if (hash_oom) {
		free(k);
		return NULL;
	}
	return k;
}

/* A place in the queue for @holder. */
static bool place_take(struct uploads *u, struct share_holder *holder)
{
	if (!share_allows(UPLOADS_QUEUE_MAX, u->n_waiting, holder->held)) {
		u->ends[UPLOAD_QUEUE_FULL]++;
		return false;
	}
	holder->held++;
	u->n_waiting++;
	return true;
}

static void place_return(struct uploads *u, struct share_holder *holder)
{
	u->n_waiting--;
	holder->held--;
	share_holder_put(&u->waiting, holder);
}

static bool known_wait(struct uploads *u, uint64_t owner, const char *build_id, int fd)
{
	struct known *k = known_find(u, build_id);
	struct share_holder *holder;
	int copy;

	if (k && (k->state != KNOWN_ENDED || nsec_monotonic() < k->until_ns))
		return false;
	holder = share_holder_get(&u->waiting, owner);
	if (!holder)
		return false;
	if (!place_take(u, holder)) {
		share_holder_put(&u->waiting, holder);
		return false;
	}
	if (!k)
		k = known_add(u, build_id);
	/* at last, since closing a file may block */
	copy = k ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
	if (copy < 0) {
		place_return(u, holder);
		return false;
	}
	k->state = KNOWN_WAITING;
	k->fd = copy;
	k->owner = owner;
	return true;
}

/* Of an owner without a file that day: nothing. */
static struct owner_day day_of(const struct uploads *u, uint64_t owner)
{
	struct owner_day *day;

	HASH_FIND(hh, u->days, &owner, sizeof(owner), day);
	return day ? *day : (struct owner_day){.owner = owner};
}

static void days_forget(struct uploads *u)
{
	struct owner_day *day, *next;

	HASH_ITER(hh, u->days, day, next) {
		HASH_DEL(u->days, day);
		free(day);
	}
}

/* NULL without memory. */
static struct owner_day *day_get(struct uploads *u, uint64_t owner)
{
	struct owner_day *day;
	bool hash_oom = false;

	HASH_FIND(hh, u->days, &owner, sizeof(owner), day);
	if (day)
		return day;
	if (HASH_COUNT(u->days) >= UPLOADS_OWNERS_MAX)
		days_forget(u);
	day = calloc(1, sizeof(*day));
	if (!day)
		return NULL;
	day->owner = owner;
	HASH_ADD(hh, u->days, owner, sizeof(day->owner), day);
	if (hash_oom) {
		free(day);
		return NULL;
	}
	return day;
}

static void day_begin(struct uploads *u, uint64_t now_ns)
{
	u->day_ns = now_ns;
	u->day_bytes = 0;
	pthread_mutex_lock(&u->lock);
	days_forget(u);
	pthread_mutex_unlock(&u->lock);
}

static void day_add(struct uploads *u, const struct job *job, uint64_t bytes)
{
	struct owner_day *day = day_get(u, job->owner);

	u->day_bytes += bytes;
	if (!day)
		return;
	day->bytes += bytes;
	day->took_ns += nsec_monotonic() - job->begun_ns;
	day->read |= job->end == UPLOAD_DONE || job->end == UPLOAD_NO_NAMES;
	day->blocked |= job->blocked != NULL;
}

static uint64_t retry_ns(unsigned int failures)
{
	const uint64_t ns = UPLOADS_RETRY_NS
			    << (failures < UPLOADS_FAILURES_MAX ? failures : UPLOADS_FAILURES_MAX);

	return ns < UPLOADS_HOUR_NS ? ns : UPLOADS_HOUR_NS;
}

static void known_end(struct uploads *u, const char *build_id, enum upload_end end)
{
	struct known *k = known_find(u, build_id);
	uint64_t wait_ns = UPLOADS_DAY_NS;

	u->ends[end]++;
	if (!k)
		return;
	if (end == UPLOAD_FAILED)
		wait_ns = retry_ns(k->failures++);
	else if (end == UPLOAD_UNWANTED || end == UPLOAD_NO_NAMES || end == UPLOAD_CHANGED ||
		 end == UPLOAD_SLOW || end == UPLOAD_DAY_FULL)
		wait_ns = UPLOADS_HOUR_NS;
	k->state = KNOWN_ENDED;
	k->until_ns = nsec_monotonic() + wait_ns;
}

/* ---- jobs */

static void target_unref(struct target *t)
{
	if (!t || atomic_fetch_sub(&t->refs, 1) != 1)
		return;
	destination_free(t->destination);
	if (t->wake >= 0)
		close(t->wake);
	free(t);
}

/* The owner of an abandoned job. More are abandoned only at the end of the program. */
static struct blocked *target_block(struct target *t, uint64_t owner)
{
	for (size_t i = 0; i < array_size(t->blocked); i++) {
		if (atomic_load(&t->blocked[i].is_set))
			continue;
		t->blocked[i].owner = owner;
		atomic_store(&t->blocked[i].is_set, true);
		return &t->blocked[i];
	}
	return NULL;
}

/* @b, of an abandoned job, has ended: the files of its owner may follow. */
static void target_unblock(struct target *t, struct blocked *b)
{
	atomic_store(&b->is_set, false);
	wakeup_send(t->wake);
}

static bool target_is_blocked(const struct target *t, uint64_t owner)
{
	for (size_t i = 0; i < array_size(t->blocked); i++)
		if (atomic_load(&t->blocked[i].is_set) && t->blocked[i].owner == owner)
			return true;
	return false;
}

/* All threads that may be abandoned are. */
static bool target_is_full(const struct target *t)
{
	for (size_t i = 0; i < array_size(t->blocked); i++)
		if (!atomic_load(&t->blocked[i].is_set))
			return false;
	return true;
}

static void job_free(struct job *job)
{
	if (!job)
		return;
	if (job->blocked)
		target_unblock(job->target, job->blocked);
	target_unref(job->target);
	free(job->build_id);
	free(job);
}

static bool job_goes_on(void *ctx)
{
	struct job *job = ctx;

	work_alive(&job->work);
	return !atomic_load(&job->target->stop) && !atomic_load(&job->abandoned);
}

static void job_run(struct work *work)
{
	struct job *job = container_of(work, struct job, work);
	const struct upload upload = {
		.destination = job->target->destination,
		.build_id = job->build_id,
		.fd = job->fd,
		.day_bytes = job->day_bytes,
		.total_ns = job->call_ns,
		.read_ns = job->read_ns,
		.bytes = &job->bytes,
		.go_on = job_goes_on,
		.ctx = job,
	};

	job->r = upload_run(&upload, &job->end, job->error);
	if (job->r)
		job->end = UPLOAD_FAILED;
}

static void next_start(struct uploads *u);

static void tell(struct uploads *u, const struct job *job)
{
	uint64_t suppressed;

	if (job->end == UPLOAD_DONE)
		u->backoff.failures = 0;
	if ((job->end != UPLOAD_FAILED && job->end != UPLOAD_REFUSED &&
	     job->end != UPLOAD_ELSEWHERE) ||
	    !log_limit_ok(&u->log_limit, &suppressed))
		return;
	log_warn("a program file cannot be uploaded, trying later", log_str("destination", u->name),
		 log_str("build_id", job->build_id), log_str("outcome", upload_end_names[job->end]),
		 log_str("err", job->r ? strerror(-job->r) : job->error),
		 log_uint("suppressed", suppressed));
}

static void job_ended(struct uploads *u, const struct job *job)
{
	const uint64_t bytes = atomic_load(&job->bytes);

	u->running = false;
	if (job->end == UPLOAD_FAILED)
		u->resume_ns = nsec_monotonic() + backoff_wait_ns(&u->backoff, 0);
	else if (job->end != UPLOAD_SLOW)
		backoff_reset(&u->backoff);
	pthread_mutex_lock(&u->lock);
	known_end(u, job->build_id, job->end);
	day_add(u, job, bytes);
	u->bytes += bytes;
	pthread_mutex_unlock(&u->lock);
	tell(u, job);
}

static void job_done(struct work *work)
{
	struct job *job = container_of(work, struct job, work);
	struct uploads *u = job->uploads;

	job_ended(u, job);
	job_free(job);
	if (!atomic_load(&u->target->stop))
		next_start(u);
}

static void job_abandoned(void *ctx, struct work *work)
{
	struct job *job = container_of(work, struct job, work);
	const struct job seen = {
		.build_id = job->build_id,
		.owner = job->owner,
		.begun_ns = job->begun_ns,
		.end = UPLOAD_SLOW,
		.bytes = atomic_load(&job->bytes),
		.blocked = target_block(job->target, job->owner),
	};

	job->blocked = seen.blocked;
	atomic_store(&job->abandoned, true);
	job_ended(ctx, &seen);
	(void)loop_arm(((struct uploads *)ctx)->timer, 0, 0);
}

static void job_drop(struct work *work)
{
	job_free(container_of(work, struct job, work));
}

/* ---- the queue, on the loop */

/* The waiting build id that is next; NULL if there is none. */
static struct known *find_waiting(const struct uploads *u)
{
	const bool is_last = target_is_full(u->target);
	struct known *k, *next, *found = NULL;
	struct owner_day day;
	uint64_t least = 0;

	if (!u->n_waiting)
		return NULL;
	HASH_ITER(hh, u->known, k, next) {
		if (k->state != KNOWN_WAITING || target_is_blocked(u->target, k->owner))
			continue;
		day = day_of(u, k->owner);
		if (is_last && (!day.read || day.blocked))
			continue;
		if (!found || day.took_ns < least) {
			found = k;
			least = day.took_ns;
		}
	}
	return found;
}

static void take_waiting(struct uploads *u, struct known *k)
{
	place_return(u, share_holder_find(u->waiting, k->owner));
	k->state = KNOWN_RUNNING;
}

static struct job *job_new(struct uploads *u)
{
	struct job *job = calloc(1, sizeof(*job));
	struct known *k;

	if (!job)
		return NULL;
	pthread_mutex_lock(&u->lock);
	k = find_waiting(u);
	job->build_id = k ? strdup(k->build_id) : NULL;
	if (job->build_id) {
		job->fd = k->fd;
		job->owner = k->owner;
		job->day_bytes = share_left(u->day_max, u->day_bytes, day_of(u, k->owner).bytes);
		take_waiting(u, k);
	}
	pthread_mutex_unlock(&u->lock);
	if (!job->build_id) {
		free(job);
		return NULL;
	}
	atomic_fetch_add(&u->target->refs, 1);
	job->target = u->target;
	job->uploads = u;
	job->call_ns = u->call_ns;
	job->read_ns = u->read_ns;
	job->begun_ns = nsec_monotonic();
	job->end = UPLOAD_STOPPED; /* if it does not run: the program ends, the kernel closes the
				      file */
	job->work = (struct work){.run = job_run, .done = job_done};
	return job;
}

static void next_start(struct uploads *u)
{
	const uint64_t now = nsec_monotonic();
	struct job *job;

	if (u->running)
		return;
	if (now < u->resume_ns) {
		(void)loop_arm(u->timer, u->resume_ns - now, 0);
		return;
	}
	if (now - u->day_ns >= UPLOADS_DAY_NS)
		day_begin(u, now);
	job = job_new(u);
	if (!job)
		return;
	u->running = true;
	if (worker_submit(u->worker, &job->work)) /* one place is enough for one job */
		job_done(&job->work);
}

static void on_timer(void *ctx)
{
	next_start(ctx);
}

static void on_wake(void *ctx, int fd, uint32_t events)
{
	(void)events;
	wakeup_take(fd);
	next_start(ctx);
}

/* ---- the whole */

DEFINE_CLEANUP(struct uploads *, uploads_freep, uploads_free);

DEFINE_CLEANUP(struct target *, target_unrefp, target_unref);

static int target_new(const char *spec, struct target **ret)
{
	static const struct destination_kind *const kinds[] = {&destination_parca_files, NULL};
	_cleanup_(target_unrefp) struct target *t = calloc(1, sizeof(*t));
	_cleanup_(freep) char *error = NULL;
	int r;

	if (!t)
		return -ENOMEM;
	t->refs = 1;
	t->wake = wakeup_open();
	if (t->wake < 0)
		return -errno;
	r = destination_new_of(kinds, spec, &t->destination, &error);
	if (r)
		return r < 0 ? r : -EINVAL;
	*ret = take_ptr(t);
	return 0;
}

static int uploads_start(struct uploads *u, const struct uploads_opts *opts)
{
	const struct watchdog_opts watchdog = {
		.loop = u->loop,
		.worker = u->worker,
		.blocked_ns = opts->blocked_ns,
		.abandoned = job_abandoned,
		.drop = job_drop,
		.ctx = u,
	};
	int r = watchdog_new(&watchdog, &u->watchdog);

	if (!r)
		r = loop_add_fd(u->loop, u->target->wake, EPOLLIN, on_wake, u, &u->woken);
	return r ? r : loop_add_timer(u->loop, on_timer, u, &u->timer);
}

int uploads_new(const struct uploads_opts *opts, struct uploads **ret)
{
	_cleanup_(uploads_freep) struct uploads *u = calloc(1, sizeof(*u));
	int r;

	if (!u)
		return -ENOMEM;
	u->loop = opts->loop;
	u->call_ns = opts->call_ns;
	u->read_ns = opts->read_ns;
	u->day_max = opts->day_max ? opts->day_max : UPLOADS_DAY_MAX;
	u->backoff.max_ns = UPLOADS_BACKOFF_NS;
	u->log_limit.interval_ns = UPLOADS_LOG_NS;
	u->day_ns = nsec_monotonic();
	pthread_mutex_init(&u->lock, NULL);
	u->name = strdup(opts->name);
	if (!u->name)
		return -ENOMEM;
	r = target_new(opts->spec, &u->target);
	if (!r)
		r = worker_new(u->loop, "upload", 1, &u->worker);
	if (!r)
		r = uploads_start(u, opts);
	if (r)
		return r;
	*ret = take_ptr(u);
	return 0;
}

void uploads_free(struct uploads *u)
{
	struct share_holder *holder, *other;
	struct known *k, *next;

	if (!u)
		return;
	if (u->target)
		atomic_store(&u->target->stop, true);
	watchdog_free(u->watchdog);
	worker_free(u->worker);
	loop_remove(u->woken);
	loop_remove(u->timer);
	HASH_ITER(hh, u->known, k, next) {
		HASH_DEL(u->known, k); /* a waiting file is left to the kernel: closing may block */
		free(k);
	}
	days_forget(u);
	HASH_ITER(hh, u->waiting, holder, other) {
		HASH_DEL(u->waiting, holder);
		free(holder);
	}
	pthread_mutex_destroy(&u->lock);
	target_unref(u->target);
	free(u->name);
	free(u);
}

void uploads_offer(struct uploads *u, uint64_t owner, const char *build_id, int fd)
{
	bool waits;

	pthread_mutex_lock(&u->lock);
	waits = known_wait(u, owner, build_id, fd);
	pthread_mutex_unlock(&u->lock);
	if (waits)
		wakeup_send(u->target->wake);
}

void uploads_count(struct uploads *u, uint64_t *ret)
{
	pthread_mutex_lock(&u->lock);
	memcpy(ret, u->ends, sizeof(u->ends));
	pthread_mutex_unlock(&u->lock);
}

uint64_t uploads_bytes(struct uploads *u)
{
	uint64_t bytes;

	pthread_mutex_lock(&u->lock);
	bytes = u->bytes;
	pthread_mutex_unlock(&u->lock);
	return bytes;
}

bool uploads_is_idle(struct uploads *u)
{
	bool idle;

	pthread_mutex_lock(&u->lock);
	idle = !u->n_waiting && !u->running;
	pthread_mutex_unlock(&u->lock);
	return idle;
}
