// SPDX-License-Identifier: Apache-2.0
/*
 * A process is probed when the walker gets its mappings: a thread looks for the runtime in the
 * mapped files and makes the walker's record. An image without the runtime is marked, so a process
 * with only such images never comes to the thread. A process that does not run the runtime yet is
 * tried again. For the child of a fork(), the image is known, and a record takes some reads.
 *
 * The same thread reads names from the process. Memory can block the thread forever (userfaultfd);
 * then a watchdog abandons the thread and the process. A sample waits until the functions of the
 * stack are read. The reader keeps a function as long as the process, so each function is read
 * once. The check in the frame distinguishes a function from a later function at the same address,
 * so a name is right or missing.
 *
 * A process that ends soon is never read. Instead its stack dumps have excerpts of its memory, with
 * the frames and their names, once an earlier process has shown that the program has the runtime
 * (bpf/shared/stack_dump.h). The loop takes the functions out of an excerpt: the excerpt's size is
 * the ceiling of this work.
 */
#include "runtimes/runtime_reader.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/loop.h"
#include "base/metric.h"
#include "base/nsec.h"
#include "base/root.h"
#include "base/watchdog.h"
#include "base/worker.h"
#include "procmap/address_space.h"
#include "procmap/memory.h"
#include "procmap/share.h"
#include "runtimes/excerpt.h"
#include "runtimes/runtime_files.h"

/* Processes of a runtime to probe or with the runtime, 3 KB each. An owner has a share of the free
 * ones (procmap/share.h). Reached: a further process has native frames only;
 * `podprof_runtime_processes_refused_total`. */
#define READER_PROCESSES_MAX  8192
/* Bytes of functions of a runtime: names and line tables. Reached: all are read again. */
#define READER_NAMES_BYTES    ((size_t)32 << 20)
/* Processes that are known by excerpts alone, 3 KB each and 1 KB for each function. Reached: the
 * one that is known the longest is forgotten. */
#define READER_COPIED_MAX     512
/* Files with the runtime, some hundred bytes each. Reached: all are forgotten, and probed again. */
#define READER_IMAGES_MAX     1024
/* Functions of one job: some milliseconds. Reached: the next job reads the others. */
#define READER_BATCH_MAX      256
/* Nanoseconds of one job: a process can make each read slow, and others wait behind it. Reached:
 * the next job reads the others. */
#define READER_BATCH_NS	      NSEC_PER_SEC
/* Functions of a process that wait for the thread. Reached: a frame is "[RUNTIME: gone]". */
#define READER_WANTED_MAX     8192
/* Jobs that wait for the thread. Reached: tried again within a second. */
#define READER_JOBS_MAX	      256
/* Attempts on a process that does not run the runtime yet, in 1, 2, 4 ... 64 seconds. Reached: the
 * process has native frames until its mappings change;
 * `podprof_runtime_processes{state="not_ready"}` and others. */
#define READER_ATTEMPTS_MAX   7
/* Nanoseconds without progress before the thread is abandoned: samples wait five seconds at most.
 */
#define READER_STUCK_NS	      (2 * NSEC_PER_SEC)
/* Abandoned threads of a runtime, 2 MB each. Reached: the runtime reads nothing until one returns.
 */
#define READER_HUNG_MAX	      16
/* Abandoned threads for processes of one owner. Reached: the owner's other processes are not read
 * until a thread returns; `podprof_runtime_processes{state="slow"}`. */
#define READER_HUNG_OWNER_MAX 2

_Static_assert(FRAME_RUNTIME_MAX <= 32, "a bit for each in struct image");

struct process_key {
	uint64_t pid;
	uint64_t start_ns;
	uint64_t exec_id;
};

/* A process with its successive programs, each a struct process. Exists as long as one of these. */
struct life {
	struct {
		uint64_t pid;
		uint64_t start_ns;
	} key;
	uint64_t newest; /* exec_id */
	size_t n_processes;
	UT_hash_handle hh;
};

/* The data of abandoned threads, with the owner of each. A thread that returns frees its slot,
 * perhaps after the end of the reader and of the reader's host. */
struct hung {
	_Atomic unsigned int n_refs;
	struct root proc;
	_Atomic uint64_t owners[READER_HUNG_MAX]; /* 0: free; else the id + 1 */
};

/* A frame's words; without the place, unless functions are read by place. */
struct function_key {
	uint64_t words[2];
};

/* A function; without a name if the function is gone. */
struct function {
	struct function_key key;
	void *value;	/* owned; NULL: not read, or gone */
	bool is_wanted; /* not read yet: in the process's @wanted */
	bool is_gone;
	TAILQ_ENTRY(function) in_wanted;
	UT_hash_handle hh;
};

TAILQ_HEAD(function_queue, function);

struct process {
	struct process_key key;
	struct life *life;
	struct pid_id pid;
	uint64_t inode;	  /* pid_check_inode() */
	void *target;	  /* owned; NULL: not probed yet */
	int outcome;	  /* of @target */
	uint64_t version; /* of the probed mappings */
	unsigned int n_attempts;
	uint64_t retry_ns; /* monotonic; 0: no attempt is due */
	bool is_probing;
	bool is_naming;
	bool is_hung;
	bool is_full;
	bool is_over; /* since the last sweep */
	struct function *functions;
	struct function_queue wanted;
	size_t n_wanted;
	struct share_holder *owner;  /* of the process */
	struct share_holder *walked; /* ... and of its record; NULL: no record */
	bool is_queued;		     /* in the reader's @unread */
	TAILQ_ENTRY(process) in_unread;
	bool is_copied; /* known by excerpts alone: in the reader's @copied */
	TAILQ_ENTRY(process) in_copied;
	UT_hash_handle hh;
};

TAILQ_HEAD(process_queue, process);

/* A file with the runtime. */
struct known_image {
	struct file_id id;
	void *image; /* owned: the probe's result */
	void *exe;   /* owned: the walker's value for programs with it; NULL: not enough is known */
	UT_hash_handle hh;
};

struct runtime_reader {
	const struct runtime_reader_kind *kind;
	struct runtime_host host;
	struct worker *worker;
	struct watchdog *watchdog;
	struct loop_source *retry;
	struct loop_source *sweep;
	struct process_key swept_next;
	struct runtime_files *files; /* of the thread */
	struct runtime_files *next;
	struct process *processes;
	struct life *lives;
	struct hung *hung;
	struct process_queue unread; /* functions are wanted, and no job reads them */
	struct process_queue copied; /* the oldest first */
	size_t n_copied;
	struct known_image *images;
	struct share_holder *owners;  /* of @processes */
	struct share_holder *walkers; /* of @n_records */
	uint64_t n_refused;
	size_t n_records;
	size_t name_bytes;
	bool ends;
};

struct named {
	struct function_key key;
	int outcome;
	void *value; /* owned, or NULL */
};

/* One task of the thread: probing a process, or reading @n functions. */
struct job {
	struct work work;
	struct runtime_reader *reader;
	const struct runtime_reader_kind *kind;
	struct runtime_files
		*searched; /* the thread's while the job runs; the job's if abandoned */
	struct process_key key;
	struct pid_id pid;
	uint64_t owner;
	struct hung *hung; /* a reference */
	size_t hung_slot;  /* of an abandoned job */
	int outcome;
	bool is_refused; /* not run: the owner has too many abandoned threads */

	uint64_t version;
	struct image **files; /* @n_files references; the first @n_lacking lack the runtime */
	size_t n_files;
	size_t n_lacking;
	bool is_all;	      /* no file but these can have the runtime */
	void *target;	      /* owned */
	struct file_id found; /* the file with the runtime */
	void *image;	      /* owned: the probe's result for @found; NULL: none */

	struct named *functions; /* @n */
	size_t n;
	size_t n_read; /* of these, from the first on */
};

static void value_free(const struct runtime_reader_kind *kind, void *value)
{
	if (value)
		kind->function_deinit(value);
	free(value);
}

/* ---------------------------------------------------------------- abandoned threads */

static void hung_unref(struct hung *h)
{
	if (!h || atomic_fetch_sub(&h->n_refs, 1) != 1)
		return;
	root_deinit(&h->proc);
	free(h);
}

static int hung_new(const struct root *proc, struct hung **ret)
{
	struct hung *h = calloc(1, sizeof(*h));
	int r = h ? root_dup(proc, &h->proc) : -ENOMEM;

	if (r) {
		free(h);
		return r;
	}
	h->n_refs = 1;
	*ret = h;
	return 0;
}

/* Whether the owner's processes are left alone. On any thread. */
static bool is_hung_up(const struct hung *h, uint64_t owner)
{
	unsigned int n = 0;

	for (size_t i = 0; i < READER_HUNG_MAX; i++)
		n += atomic_load(&h->owners[i]) == owner + 1;
	return n >= READER_HUNG_OWNER_MAX;
}

/* The slot that the owner takes. The watchdog has no more threads than slots. */
static size_t hung_take(struct hung *h, uint64_t owner)
{
	size_t i = 0;

	while (i < READER_HUNG_MAX - 1 && atomic_load(&h->owners[i]))
		i++;
	atomic_store(&h->owners[i], owner + 1);
	return i;
}

/* ---------------------------------------------------------------- jobs */

static void job_free(struct job *job)
{
	for (size_t i = 0; i < job->n_files; i++)
		image_unref(job->files[i]);
	for (size_t i = 0; i < job->n; i++)
		value_free(job->kind, job->functions[i].value);
	free(job->files);
	free(job->functions);
	free(job->target);
	free(job->image);
	hung_unref(job->hung);
	free(job);
}

static void job_drop(struct work *work)
{
	struct job *job = container_of(work, struct job, work);

	atomic_store(&job->hung->owners[job->hung_slot], 0);
	runtime_files_free(job->searched);
	job_free(job);
}

/* ---------------------------------------------------------------- processes */

static struct process_key key_of(const struct address_space_who *who)
{
	return (struct process_key){who->pid.pid, who->start_ns, who->exec_id};
}

static struct process *process_find(const struct runtime_reader *r, const struct process_key *key)
{
	struct process *p;

	HASH_FIND(hh, r->processes, key, sizeof(*key), p);
	return p;
}

/* One more of @max for an owner. NULL: above its share, or no memory. */
static struct share_holder *hold(struct share_holder **holders, uint64_t owner, size_t max,
				 size_t total)
{
	struct share_holder *h = share_holder_get(holders, owner);

	if (!h)
		return NULL;
	if (!share_allows(max, total, h->held)) {
		share_holder_put(holders, h);
		return NULL;
	}
	h->held++;
	return h;
}

static void release(struct share_holder **holders, struct share_holder *h)
{
	if (!h)
		return;
	h->held--;
	share_holder_put(holders, h);
}

static struct life *life_find(const struct runtime_reader *r, const struct process_key *key)
{
	struct life *life, sought = {.key = {key->pid, key->start_ns}};

	HASH_FIND(hh, r->lives, &sought.key, sizeof(sought.key), life);
	return life;
}

static void life_put(struct runtime_reader *r, struct life *life)
{
	if (!life || --life->n_processes)
		return;
	HASH_DEL(r->lives, life);
	free(life);
}

/* One more process of a life. NULL without memory. */
static struct life *life_get(struct runtime_reader *r, const struct process_key *key)
{
	struct life *life = life_find(r, key);
	bool hash_oom = false;

	if (!life) {
		life = calloc(1, sizeof(*life));
		if (!life)
			return NULL;
		life->key.pid = key->pid;
		life->key.start_ns = key->start_ns;
		HASH_ADD(hh, r->lives, key, sizeof(life->key), life);
		if (hash_oom) {
			free(life);
			return NULL;
		}
	}
	if (life->newest < key->exec_id)
		life->newest = key->exec_id;
	life->n_processes++;
	return life;
}

static struct process *process_new(struct runtime_reader *r, const struct address_space_who *who,
				   uint64_t owner)
{
	struct share_holder *h =
		hold(&r->owners, owner, READER_PROCESSES_MAX, HASH_COUNT(r->processes));
	struct process *p = h ? calloc(1, sizeof(*p)) : NULL;
	bool hash_oom = false;

	r->n_refused += !h;
	if (!p) {
		release(&r->owners, h);
		return NULL;
	}
	p->key = key_of(who);
	p->life = life_get(r, &p->key);
	p->pid = who->pid;
	p->outcome = r->kind->unreadable;
	p->owner = h;
	TAILQ_INIT(&p->wanted);
	if (p->life)
		HASH_ADD(hh, r->processes, key, sizeof(p->key), p);
	if (!p->life || hash_oom) {
		life_put(r, p->life);
		release(&r->owners, h);
		free(p);
		return NULL;
	}
	return p;
}

static void queue(struct runtime_reader *r, struct process *p)
{
	if (!p->is_queued)
		TAILQ_INSERT_TAIL(&r->unread, p, in_unread);
	p->is_queued = true;
}

static void unqueue(struct runtime_reader *r, struct process *p)
{
	if (p->is_queued)
		TAILQ_REMOVE(&r->unread, p, in_unread);
	p->is_queued = false;
}

static void function_settle(struct process *p, struct function *f)
{
	if (!f->is_wanted)
		return;
	TAILQ_REMOVE(&p->wanted, f, in_wanted);
	p->n_wanted--;
	f->is_wanted = false;
}

static size_t bytes_of(const struct runtime_reader *r, const struct function *f)
{
	return sizeof(*f) +
	       (f->value ? r->kind->function_bytes + r->kind->function_size(f->value) : 0);
}

static void function_drop(struct runtime_reader *r, struct process *p, struct function *f)
{
	HASH_DEL(p->functions, f);
	r->name_bytes -= bytes_of(r, f);
	function_settle(p, f);
	value_free(r->kind, f->value);
	free(f);
}

static void set_copied(struct runtime_reader *r, struct process *p, bool is)
{
	if (is == p->is_copied)
		return;
	if (is)
		TAILQ_INSERT_TAIL(&r->copied, p, in_copied);
	else
		TAILQ_REMOVE(&r->copied, p, in_copied);
	r->n_copied += is ? 1 : -1ull;
	p->is_copied = is;
}

static bool has_record(const struct process *p)
{
	return p->walked;
}

static void drop_record(struct runtime_reader *r, struct process *p)
{
	r->n_records -= has_record(p);
	release(&r->walkers, p->walked);
	p->walked = NULL;
}

static void process_drop(struct runtime_reader *r, struct process *p)
{
	struct function *f, *next;

	HASH_ITER(hh, p->functions, f, next)
		function_drop(r, p, f);
	unqueue(r, p);
	set_copied(r, p, false);
	drop_record(r, p);
	release(&r->owners, p->owner);
	life_put(r, p->life);
	HASH_DEL(r->processes, p);
	free(p->target);
	free(p);
}

/* ---------------------------------------------------------------- probing */

/* Puts the files that were looked into, in vain, first. Not all of a process's: the search has
 * ceilings, files cannot always be opened, and a mapping may be gone by now. */
static void find_lacking(struct job *job)
{
	for (size_t i = 0; i < job->n_files; i++) {
		struct image *file = job->files[i];

		if (!runtime_files_lack(job->searched, &file->id))
			continue;
		job->files[i] = job->files[job->n_lacking];
		job->files[job->n_lacking++] = file;
	}
}

/* Copies what is known of the first file with the runtime. */
static void find_image(struct job *job)
{
	for (size_t i = 0; i < job->n_files && !job->image; i++) {
		const void *image = runtime_files_image(job->searched, &job->files[i]->id);

		if (!image)
			continue;
		job->found = job->files[i]->id;
		job->image = malloc(job->kind->probe->bytes);
		if (job->image)
			memcpy(job->image, image, job->kind->probe->bytes);
	}
}

static void probe_run(struct work *work)
{
	struct job *job = container_of(work, struct job, work);

	job->is_refused = is_hung_up(job->hung, job->owner);
	if (job->is_refused)
		return;
	job->searched = job->reader->files;
	if (!job->searched) {
		job->outcome = job->kind->probe->gone; /* at the end */
		return;
	}
	/* most processes have no runtime, and a browser has 100 files: 10 ms to open them again */
	if (job->is_all && runtime_files_examine(job->searched, job->files, job->n_files)) {
		job->outcome = RUNTIME_FILES_ABSENT;
		find_lacking(job);
		return;
	}
	/* in all that is mapped: some files of the process may not have been open when the job was
	 * made */
	job->outcome = job->kind->find(job->searched, &job->hung->proc, &job->pid, job->target);
	if (job->outcome == job->kind->probe->gone &&
	    runtime_files_examine(job->searched, job->files, job->n_files))
		job->outcome = RUNTIME_FILES_ABSENT;
	if (job->outcome == RUNTIME_FILES_ABSENT)
		find_lacking(job);
	else if (job->kind->exe)
		find_image(job);
}

static void retry_later(struct runtime_reader *r, struct process *p)
{
	if (p->n_attempts >= READER_ATTEMPTS_MAX)
		return;
	p->retry_ns = nsec_monotonic() + (NSEC_PER_SEC << p->n_attempts++);
	(void)loop_arm(r->retry, NSEC_PER_SEC, NSEC_PER_SEC);
}

/* The thread did not try: that is no attempt. */
static void retry_soon(struct runtime_reader *r, struct process *p)
{
	p->retry_ns = nsec_monotonic() + NSEC_PER_SEC;
	(void)loop_arm(r->retry, NSEC_PER_SEC, NSEC_PER_SEC);
}

static void keep_target(struct runtime_reader *r, struct process *p, struct job *job)
{
	drop_record(r, p); /* of the mappings before */
	p->outcome = job->outcome < 0 ? r->kind->unreadable : job->outcome;
	free(p->target);
	p->target = take_ptr(job->target);
	if (!p->outcome)
		p->walked = hold(&r->walkers, p->owner->id, r->kind->records, r->n_records);
	p->is_full = !p->outcome && !p->walked;
	r->n_records += has_record(p);
}

/* Marks the images that lack the runtime. With others, the process stays, so that they are not
 * looked for again before its mappings change. */
static void take_absence(struct runtime_reader *r, struct process *p, const struct job *job)
{
	for (size_t i = 0; i < job->n_lacking; i++)
		job->files[i]->no_runtimes |= 1u << r->kind->runtime;
	if (job->n_lacking == job->n_files) {
		process_drop(r, p);
		return;
	}
	free(p->target);
	p->target = NULL;
	p->outcome = job->outcome;
}

static void images_forget(struct runtime_reader *r)
{
	struct known_image *k, *next;

	HASH_ITER(hh, r->images, k, next) {
		HASH_DEL(r->images, k);
		free(k->image);
		free(k->exe);
		free(k);
	}
}

static struct known_image *image_find(const struct runtime_reader *r, const struct file_id *id)
{
	struct known_image *k;

	HASH_FIND(hh, r->images, id, sizeof(*id), k);
	return k;
}

/* Takes @image. NULL without memory. */
static struct known_image *image_add(struct runtime_reader *r, const struct file_id *id,
				     void *image)
{
	struct known_image *k;
	bool hash_oom = false;

	if (HASH_COUNT(r->images) >= READER_IMAGES_MAX)
		images_forget(r);
	k = calloc(1, sizeof(*k));
	if (k) {
		k->id = *id;
		k->image = image;
		HASH_ADD(hh, r->images, id, sizeof(k->id), k);
	}
	if (!k || hash_oom) {
		free(k);
		free(image);
		return NULL;
	}
	return k;
}

/* Keeps what the job knows of the file with the runtime; @target: of a process with it, or NULL. */
static void take_image(struct runtime_reader *r, struct job *job, const void *target)
{
	struct known_image *k;
	void *exe;

	if (!job->image)
		return;
	k = image_find(r, &job->found);
	if (!k)
		k = image_add(r, &job->found, take_ptr(job->image));
	for (size_t i = 0; k && i < job->n_files; i++)
		if (memcmp(&job->files[i]->id, &job->found, sizeof(job->found)) == 0)
			job->files[i]->has_runtimes |= 1u << r->kind->runtime;
	if (!k || (k->exe && !target))
		return;
	exe = calloc(1, r->kind->exe_bytes);
	if (!exe || !r->kind->exe(k->image, target, exe)) {
		free(exe);
		return;
	}
	free(k->exe);
	k->exe = exe;
}

static void probe_done(struct work *work)
{
	struct job *job = container_of(work, struct job, work);
	struct runtime_reader *r = job->reader;
	struct process *p = process_find(r, &job->key);

	if (!work->cancelled && !r->ends && p && job->is_refused) {
		p->is_probing = false;
		p->version = job->version;
		retry_soon(r, p);
	} else if (!work->cancelled && !r->ends && p) {
		p->is_probing = false;
		p->version = job->version;
		take_image(r, job, job->outcome ? NULL : job->target);
		if (job->outcome == RUNTIME_FILES_ABSENT) {
			take_absence(r, p, job);
		} else if (job->outcome == r->kind->probe->gone) {
			if (!p->is_copied)
				process_drop(r, p);
		} else if (job->outcome && p->is_copied) {
			retry_later(r, p); /* the target is better than none */
		} else {
			set_copied(r, p, false);
			keep_target(r, p, job);
			if (job->outcome < 0 || r->kind->may_change(job->outcome))
				retry_later(r, p);
			if (has_record(p))
				r->host.found(r->host.ctx, r->kind->runtime,
					      &(struct address_space_who){
						      .pid = p->pid,
						      .start_ns = p->key.start_ns,
						      .exec_id = p->key.exec_id,
						      .owner = p->owner->id,
					      });
		}
	}
	job_free(job);
}

static struct job *job_new(struct runtime_reader *r, const struct process *p)
{
	struct job *job = calloc(1, sizeof(*job));

	if (!job)
		return NULL;
	job->reader = r;
	job->kind = r->kind;
	job->key = p->key;
	job->pid = p->pid;
	job->owner = p->owner->id;
	job->hung = r->hung;
	atomic_fetch_add(&job->hung->n_refs, 1);
	return job;
}

/* Borrows @files until the return. @is_all: the process has no others. */
static void probe(struct runtime_reader *r, struct process *p, struct image *const *files, size_t n,
		  bool is_all, uint64_t version)
{
	struct job *job;

	p->retry_ns = 0;
	if (is_hung_up(r->hung, p->owner->id)) {
		p->version = version;
		retry_soon(r, p);
		return;
	}
	job = job_new(r, p);
	if (job)
		job->files = calloc(n ? n : 1, sizeof(struct image *));
	if (job)
		job->target = calloc(1, r->kind->target_bytes);
	if (!job || !job->files || !job->target) {
		if (job)
			job_free(job);
		return;
	}
	for (size_t i = 0; i < n; i++)
		job->files[job->n_files++] = image_ref(files[i]);
	job->is_all = is_all;
	job->version = version;
	job->work = (struct work){.run = probe_run, .done = probe_done};
	if (worker_submit(r->worker, &job->work)) {
		job_free(job);
		retry_soon(r, p);
		return;
	}
	p->is_probing = true;
}

static void on_retry(void *ctx)
{
	const uint64_t now_ns = nsec_monotonic();
	struct process *p, *next;
	struct runtime_reader *r = ctx;
	bool more = false;

	HASH_ITER(hh, r->processes, p, next) {
		if (p->retry_ns && p->retry_ns <= now_ns && !p->is_probing)
			probe(r, p, NULL, 0, false, p->version);
		more = more || p->retry_ns;
	}
	if (!more)
		(void)loop_disarm(r->retry);
}

/* Whether the file may have the runtime. */
static bool is_candidate(const struct runtime_reader *r, const struct image *image)
{
	return image && image->kind == IMAGE_FILE && image->file &&
	       !(image->no_runtimes >> r->kind->runtime & 1);
}

/* Whether it is known what the mapping's file is. */
static bool is_seen(const struct image *image)
{
	return image && (image->kind != IMAGE_FILE || image->file ||
			 image->fault == IMAGE_ODD_FILE || image->fault == IMAGE_TRUNCATED);
}

/* Probes a process if a file in it may have the runtime. */
static void look_at(struct runtime_reader *r, const struct address_space_who *who,
		    const struct address_space *space)
{
	const struct address_space_mapping *items;
	_cleanup_(freep) struct image **files = NULL;
	const struct process_key key = key_of(who);
	struct process *p = process_find(r, &key);
	size_t n, n_files = 0;
	bool is_all = true;

	if (p && (p->is_probing || p->is_hung || p->version == address_space_version(space)))
		return;
	items = address_space_mappings(space, &n);
	files = calloc(n ? n : 1, sizeof(struct image *));
	for (size_t i = 0; files && i < n; i++) {
		struct image *image = image_to_unwind(items[i].image);

		if (is_candidate(r, image))
			files[n_files++] = image;
		is_all = is_all && is_seen(image);
	}
	if (!n_files)
		return;
	if (!p)
		p = process_new(r, who, address_space_owner(space));
	if (!p)
		return;
	p->n_attempts = 0;
	probe(r, p, files, n_files, is_all, address_space_version(space));
}

bool runtime_reader_runs(void *reader, const struct address_space_who *who,
			 const struct address_space *space)
{
	const struct process_key key = key_of(who);
	struct runtime_reader *r = reader;
	const struct process *p = process_find(r, &key);

	if (p && has_record(p))
		return true;
	look_at(r, who, space);
	return false;
}

const void *runtime_reader_record(void *reader, const struct address_space_who *who)
{
	const struct process_key key = key_of(who);
	const struct runtime_reader *r = reader;
	const struct process *p = process_find(r, &key);

	return p && has_record(p) ? r->kind->record(p->target) : NULL;
}

/* ---------------------------------------------------------------- names */

static struct function_key function_key_of(const struct runtime_reader *r,
					   const struct frame_record *frame)
{
	struct function_key key = {{frame->words[0], frame->words[1]}};

	if (!r->kind->is_by_place || !r->kind->is_by_place(key.words))
		key.words[1] &= ~(uint64_t)UINT32_MAX;
	return key;
}

static struct function *function_find(const struct runtime_reader *r, const struct process *p,
				      const struct frame_record *frame)
{
	const struct function_key key = function_key_of(r, frame);
	struct function *f;

	HASH_FIND(hh, p->functions, &key, sizeof(key), f);
	return f;
}

static int function_new(struct runtime_reader *r, struct process *p,
			const struct frame_record *frame)
{
	struct function *f = calloc(1, sizeof(*f));
	bool hash_oom = false;

	if (!f)
		return -ENOMEM;
	f->key = function_key_of(r, frame);
	f->is_wanted = true;
	HASH_ADD(hh, p->functions, key, sizeof(f->key), f);
	if (hash_oom) {
		free(f);
		return -ENOMEM;
	}
	r->name_bytes += bytes_of(r, f);
	TAILQ_INSERT_TAIL(&p->wanted, f, in_wanted);
	p->n_wanted++;
	queue(r, p);
	return 0;
}

/* Drops the functions that are read. */
static void forget_functions(struct runtime_reader *r)
{
	struct process *p, *next;

	HASH_ITER(hh, r->processes, p, next) {
		struct function *f, *next_function;

		HASH_ITER(hh, p->functions, f, next_function)
			if (!f->is_wanted)
				function_drop(r, p, f);
	}
}

/* An outcome of the reading, with the function in *@ret. */
static int read_one(const struct job *job, struct memory *m, const struct function_key *key,
		    void **ret)
{
	_cleanup_(freep) void *value = calloc(1, job->kind->function_bytes);
	int result;

	if (!value)
		return -ENOMEM;
	result = job->kind->read(m, job->target, key->words, value);
	if (!result)
		*ret = take_ptr(value);
	return result;
}

static void names_run(struct work *work)
{
	struct job *job = container_of(work, struct job, work);
	const uint64_t end_ns = nsec_monotonic() + READER_BATCH_NS;
	struct process_memory memory = {.fd = -1};

	job->is_refused = is_hung_up(job->hung, job->owner);
	if (job->is_refused)
		return;
	job->searched = job->reader->files;
	job->outcome = process_memory_init(&memory, &job->hung->proc, &job->pid);
	while (job->n_read < job->n && (!job->n_read || nsec_monotonic() < end_ns)) {
		struct named *f = &job->functions[job->n_read++];

		f->outcome = job->outcome ? job->kind->probe->gone
					  : read_one(job, &memory.memory, &f->key, &f->value);
		work_alive(work);
	}
	if (!job->outcome)
		job->outcome = memory_check(&memory.memory);
	process_memory_deinit(&memory);
}

static void take_function(struct runtime_reader *r, struct process *p, struct named *named,
			  bool is_gone)
{
	struct function *f;

	HASH_FIND(hh, p->functions, &named->key, sizeof(named->key), f);
	if (!f)
		return;
	function_settle(p, f);
	is_gone = is_gone || named->outcome;
	if (is_gone && f->value)
		return; /* an excerpt has it */
	f->is_gone = is_gone;
	if (f->is_gone)
		return;
	r->name_bytes -= bytes_of(r, f);
	value_free(r->kind, f->value);
	f->value = take_ptr(named->value);
	r->name_bytes += bytes_of(r, f);
}

static void read_names(struct runtime_reader *r, struct process *p);

static void names_done(struct work *work)
{
	struct job *job = container_of(work, struct job, work);
	struct runtime_reader *r = job->reader;
	struct process *p = process_find(r, &job->key);

	if (!work->cancelled && !r->ends && p) {
		p->is_naming = false;
		if (r->name_bytes > READER_NAMES_BYTES)
			forget_functions(r); /* not the functions that samples wait for */
		for (size_t i = 0; i < job->n_read; i++)
			take_function(r, p, &job->functions[i], job->outcome);
		read_names(r, p);
		r->host.named(r->host.ctx, p->pid.pid);
	}
	job_free(job);
}

/* The task for the next batch of @p's wanted functions; NULL without memory. */
static struct job *names_job(struct runtime_reader *r, const struct process *p, size_t most)
{
	const struct function *f;
	struct job *job = job_new(r, p);

	if (job) {
		job->functions = calloc(most, sizeof(*job->functions));
		job->target = malloc(r->kind->target_bytes);
	}
	if (!job || !job->functions || !job->target) {
		if (job)
			job_free(job);
		return NULL;
	}
	memcpy(job->target, p->target, r->kind->target_bytes);
	TAILQ_FOREACH(f, &p->wanted, in_wanted)
	{
		if (job->n >= most)
			break;
		job->functions[job->n++].key = f->key;
	}
	job->work = (struct work){.run = names_run, .done = names_done};
	return job;
}

/* Gives the thread the next batch of wanted functions. */
static void read_names(struct runtime_reader *r, struct process *p)
{
	const size_t most = p->n_wanted < READER_BATCH_MAX ? p->n_wanted : READER_BATCH_MAX;
	struct job *job;

	unqueue(r, p);
	if (!most || p->is_naming || p->is_hung)
		return;
	job = is_hung_up(r->hung, p->owner->id) ? NULL : names_job(r, p, most);
	p->is_naming = job && !worker_submit(r->worker, &job->work);
	if (p->is_naming)
		return;
	if (job)
		job_free(job);
	queue(r, p); /* the next flush tries again */
}

bool runtime_reader_wants(void *reader, const struct address_space_who *who,
			  const struct frame_record *frame)
{
	const struct process_key key = key_of(who);
	const struct runtime_reader *r = reader;
	struct process *p = process_find(reader, &key);
	const struct function *f;

	if (!p || !p->target || p->is_hung || is_hung_up(r->hung, p->owner->id))
		return false;
	f = function_find(reader, p, frame);
	if (f)
		return f->is_wanted;
	return p->n_wanted < READER_WANTED_MAX && !function_new(reader, p, frame);
}

void runtime_reader_flush(void *reader)
{
	struct runtime_reader *r = reader;
	const struct process *last = TAILQ_LAST(&r->unread, process_queue);
	struct process *p;

	/* a process that is refused comes after the last again */
	while ((p = TAILQ_FIRST(&r->unread))) {
		read_names(r, p);
		if (p == last)
			break;
	}
}

/* ---------------------------------------------------------------- excerpts */

/* The first mapping of a file with the runtime; NULL: none is known. */
static const struct known_image *find_mapped(const struct runtime_reader *r,
					     const struct address_space *space, uint64_t *ret_bias)
{
	const struct address_space_mapping *items;
	size_t n;

	items = address_space_mappings(space, &n);
	for (size_t i = 0; i < n; i++) {
		const struct image *image = image_to_unwind(items[i].image);
		const struct known_image *k;

		if (!image || !(image->has_runtimes >> r->kind->runtime & 1))
			continue;
		k = image_find(r, &image->id);
		if (k && image_bias(image, items[i].start, items[i].limit - items[i].start,
				    items[i].offset, ret_bias))
			return k;
	}
	return NULL;
}

const void *runtime_reader_exe(void *reader, const struct address_space *space, size_t *ret_n)
{
	const struct runtime_reader *r = reader;
	const struct known_image *k;
	uint64_t bias;

	if (!r->kind->exe)
		return NULL;
	k = find_mapped(r, space, &bias);
	*ret_n = r->kind->exe_bytes;
	return k ? k->exe : NULL;
}

/* The process of an excerpt. NULL: it is not known, and cannot be. */
static struct process *copied_process(struct runtime_reader *r, const struct address_space_who *who,
				      const struct address_space *space, const uint8_t *bytes,
				      size_t n)
{
	const struct process_key key = key_of(who);
	struct process *p = process_find(r, &key);
	_cleanup_(freep) void *target = NULL;
	const struct known_image *k;
	uint64_t bias;

	if (p && p->target && !p->outcome)
		return p;
	k = find_mapped(r, space, &bias);
	target = k ? calloc(1, r->kind->target_bytes) : NULL;
	if (!target || !r->kind->excerpt_target(k->image, bias, bytes, n, target))
		return NULL;
	while (!p && r->n_copied >= READER_COPIED_MAX)
		process_drop(r, TAILQ_FIRST(&r->copied));
	if (!p)
		p = process_new(r, who, address_space_owner(space));
	if (!p)
		return NULL;
	free(p->target);
	p->target = take_ptr(target);
	p->outcome = 0;
	set_copied(r, p, true);
	return p;
}

/* Reads a function out of an excerpt. A failure leaves it to the thread, if the process lives. */
static void copy_function(struct runtime_reader *r, struct process *p, struct excerpt *e,
			  const uint64_t words[2])
{
	const struct frame_record frame = {.words = {words[0], words[1]}};
	struct function *f = function_find(r, p, &frame);
	void *value;

	if (f && f->value)
		return;
	value = calloc(1, r->kind->function_bytes);
	if (!value || r->kind->read(&e->memory, p->target, words, value) ||
	    (!f && function_new(r, p, &frame))) {
		free(value);
		return;
	}
	f = function_find(r, p, &frame);
	r->name_bytes -= bytes_of(r, f);
	function_settle(p, f);
	f->is_gone = false;
	f->value = value;
	r->name_bytes += bytes_of(r, f);
}

const void *runtime_reader_excerpt(void *reader, const struct address_space_who *who,
				   const struct address_space *space, const uint8_t *bytes,
				   size_t n)
{
	struct runtime_reader *r = reader;
	uint64_t words[2], at = 0;
	struct process *p;
	struct excerpt e;
	size_t n_wanted;

	if (!r->kind->excerpt_next)
		return NULL;
	p = copied_process(r, who, space, bytes, n);
	if (!p || p->is_hung || p->outcome)
		return NULL;
	if (r->name_bytes > READER_NAMES_BYTES)
		forget_functions(r);
	excerpt_init(&e, bytes, n, r->kind->excerpt_memory);
	n_wanted = p->n_wanted;
	while (r->kind->excerpt_next(p->target, bytes, n, &at, words))
		copy_function(r, p, &e, words);
	if (!p->n_wanted)
		unqueue(r, p);
	if (p->n_wanted < n_wanted)
		r->host.named(r->host.ctx, p->pid.pid);
	return r->kind->record(p->target);
}

int runtime_reader_frame_name(void *reader, const struct address_space_who *who,
			      const struct frame_record *frame, struct runtime_place *ret)
{
	const struct process_key key = key_of(who);
	const struct runtime_reader *r = reader;
	const struct process *p = process_find(r, &key);
	const struct function *f = p ? function_find(r, p, frame) : NULL;

	if (!f || !f->value)
		return RUNTIME_GONE;
	r->kind->place(f->value, (uint32_t)frame->words[1], ret);
	return 0;
}

/* ---------------------------------------------------------------- life */

void runtime_reader_saw(void *reader, const struct address_space_who *who)
{
	const struct process_key key = key_of(who);
	struct life *life = life_find(reader, &key);

	if (life && life->newest < key.exec_id)
		life->newest = key.exec_id;
}

size_t runtime_reader_pending(void *reader)
{
	const struct runtime_reader *r = reader;

	return worker_pending(r->worker);
}

void runtime_reader_wait(void *reader, uint64_t timeout_ns)
{
	struct runtime_reader *r = reader;

	(void)worker_wait(r->worker, timeout_ns);
}

/* The last samples of an ended program can still be in the kernel, so its functions stay until the
 * next sweep. */
static void process_sweep(struct runtime_reader *r, struct process *p)
{
	struct function *f, *next;

	if (p->key.exec_id < p->life->newest ||
	    pid_check_inode(r->host.proc, &p->pid, &p->inode) == PID_GONE) {
		if (p->is_over)
			process_drop(r, p);
		else
			p->is_over = true;
		return;
	}
	HASH_ITER(hh, p->functions, f, next)
		if (f->is_gone)
			function_drop(r, p, f);
}

/* A read of /proc for each process is too long for one turn of the loop. If a process leaves just
 * before the sweep reaches the process, the sweep ends, and the next sweep goes on. */
static bool sweep_one(void *ctx)
{
	struct runtime_reader *r = ctx;
	struct process *p = process_find(r, &r->swept_next), *next;

	if (!p)
		return false;
	next = p->hh.next;
	r->swept_next = next ? next->key : (struct process_key){0};
	process_sweep(r, p);
	return next;
}

void runtime_reader_sweep(void *reader)
{
	struct runtime_reader *r = reader;

	if (!r->processes)
		return;
	if (!process_find(r, &r->swept_next))
		r->swept_next = r->processes->key;
	(void)loop_arm(r->sweep, 1, 0);
}

/* Releases of a runtime in the metrics. Reached: further releases count as the first. */
#define READER_VERSIONS_MAX 64
/* Room for the outcomes of a runtime. */
#define READER_STATES	    32

/* Processes of one release by state; a release that is not known is "". */
struct count {
	char version[RUNTIME_VERSION_BYTES];
	size_t states[READER_STATES + 2];
};

struct counts {
	struct count items[READER_VERSIONS_MAX];
	size_t n;
};

static struct count *count_of(struct counts *counts, const char *version)
{
	for (size_t i = 0; i < counts->n; i++)
		if (strcmp(counts->items[i].version, version) == 0)
			return &counts->items[i];
	if (counts->n >= READER_VERSIONS_MAX)
		return &counts->items[0];
	snprintf(counts->items[counts->n].version, RUNTIME_VERSION_BYTES, "%s", version);
	return &counts->items[counts->n++];
}

static void count_all(const struct runtime_reader *r, int hung, int full, struct counts *ret)
{
	for (const struct process *p = r->processes; p; p = p->hh.next) {
		const bool is_slow = p->is_hung || is_hung_up(r->hung, p->owner->id);
		char version[RUNTIME_VERSION_BYTES] = "";

		if (!p->target && !is_slow)
			continue;
		if (p->target)
			r->kind->version(p->target, version);
		count_of(ret, version)->states[is_slow ? hung : p->is_full ? full : p->outcome]++;
	}
}

static void collect_processes(const struct runtime_reader *r, struct metric_sink *sink)
{
	const int hung = r->kind->states, full = hung + 1;
	_cleanup_(freep) struct counts *counts = calloc(1, sizeof(*counts));

	if (!counts)
		return;
	count_all(r, hung, full, counts);
	for (size_t i = 0; i < counts->n; i++)
		for (int state = 0; state <= full; state++) {
			const struct metric_label labels[] = {
				{"runtime", r->kind->name},
				{"version", counts->items[i].version},
				{"state", state == hung	  ? "slow"
					  : state == full ? "full"
					  : state	  ? r->kind->state_name(state)
							  : "walked"},
			};

			if (counts->items[i].states[state])
				metric_u64(sink, counts->items[i].states[state], labels,
					   array_size(labels));
		}
}

void runtime_reader_collect(void *reader, enum runtime_family family, struct metric_sink *sink)
{
	const struct runtime_reader *r = reader;
	const struct metric_label label = {"runtime", r->kind->name};

	if (family == RUNTIME_FAMILY_PROCESSES)
		collect_processes(r, sink);
	else
		metric_u64(sink, family == RUNTIME_FAMILY_REFUSED ? r->n_refused : r->name_bytes,
			   &label, 1);
}

static int make_next(void *ctx, unsigned int n_blocked)
{
	struct runtime_reader *r = ctx;

	(void)n_blocked;
	return runtime_files_new(r->kind->probe, &r->next);
}

static void drop_next(void *ctx)
{
	struct runtime_reader *r = ctx;

	runtime_files_free(r->next);
	r->next = NULL;
}

/* The process is left alone from now on. */
static void on_abandoned(void *ctx, struct work *work)
{
	struct job *job = container_of(work, struct job, work);
	struct runtime_reader *r = ctx;
	struct process *p = process_find(r, &job->key);

	job->hung_slot = hung_take(r->hung, job->owner);
	r->files = take_ptr(r->next);
	if (!p || r->ends)
		return;
	p->is_hung = true;
	p->is_probing = p->is_naming = false;
	r->host.named(r->host.ctx, p->pid.pid);
}

void runtime_reader_free(void *reader)
{
	struct process *p, *next;
	struct runtime_reader *r = reader;

	if (!r)
		return;
	r->ends = true;
	watchdog_free(r->watchdog);
	worker_free(r->worker);
	loop_remove(r->retry);
	loop_remove(r->sweep);
	HASH_ITER(hh, r->processes, p, next)
		process_drop(r, p);
	images_forget(r);
	runtime_files_free(r->files);
	hung_unref(r->hung);
	free(r);
}

int runtime_reader_new(const struct runtime_reader_kind *kind, const struct runtime_host *host,
		       void **ret)
{
	struct runtime_reader *r = calloc(1, sizeof(*r));
	struct watchdog_opts watchdog = {
		.loop = host->loop,
		.blocked_ns = READER_STUCK_NS,
		.threads_max = READER_HUNG_MAX,
		.prepare = make_next,
		.abandoned = on_abandoned,
		.kept = drop_next,
		.drop = job_drop,
		.ctx = r,
	};
	int result;

	if (!r)
		return -ENOMEM;
	r->kind = kind;
	r->host = *host;
	TAILQ_INIT(&r->unread);
	TAILQ_INIT(&r->copied);
	result = hung_new(host->proc, &r->hung);
	if (!result)
		result = runtime_files_new(kind->probe, &r->files);
	if (!result)
		result = loop_add_timer(host->loop, on_retry, r, &r->retry);
	if (!result)
		result = loop_add_steps(host->loop, sweep_one, r, &r->sweep);
	if (!result)
		result = worker_new(host->loop, kind->name, READER_JOBS_MAX, &r->worker);
	watchdog.worker = r->worker;
	if (!result)
		result = watchdog_new(&watchdog, &r->watchdog);
	if (result)
		runtime_reader_free(r);
	else
		*ret = r;
	return result;
}
