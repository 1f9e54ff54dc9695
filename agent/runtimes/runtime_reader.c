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
 *
 * runtime_process.c keeps processes and functions, runtime_images.c the files, and runtime_job.c is
 * the thread's part.
 */
#include "runtimes/runtime_reader.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/loop.h"
#include "base/metric.h"
#include "base/nsec.h"
#include "base/share.h"
#include "base/watchdog.h"
#include "base/worker.h"
#include "procmap/address_space.h"
#include "runtimes/excerpt.h"
#include "runtimes/runtime_budget.h"
#include "runtimes/runtime_files.h"
#include "runtimes/runtime_hung.h"
#include "runtimes/runtime_images.h"
#include "runtimes/runtime_job.h"
#include "runtimes/runtime_process.h"

/* Functions of one job: some milliseconds. Reached: the next job reads the others. */
#define READER_BATCH_MAX    256
/* Functions of a process that wait for the thread. Reached: a frame is "[RUNTIME: gone]". */
#define READER_WANTED_MAX   8192
/* Jobs that wait for the thread. Reached: tried again within a second. */
#define READER_JOBS_MAX	    256
/* Attempts on a process that does not run the runtime yet, in 1/16, 1/8 ... 64 seconds. Reached:
 * the process has native frames until its mappings change;
 * `podprof_runtime_processes{state="not_ready"}` and others. */
#define READER_ATTEMPTS_MAX 11
/* Nanoseconds until the first of these attempts: runtimes begin within a fraction of a second. */
#define READER_RETRY_NS	    (NSEC_PER_SEC / 16)
/* Before these, attempts on a process that is about to run the runtime: in 10, 20 and 40 ms. Java
 * runs 50 ms after the mapping of its library, and a short command ends 100 ms later. */
#define READER_QUICK	    3
#define READER_QUICK_NS	    (10 * NSEC_PER_MSEC)
/* The attempt after a second, the first one on a process that merely lacks a part. */
#define READER_SLOW_ATTEMPT 4
/* Nanoseconds without progress before the thread is abandoned: samples wait five seconds at most.
 */
#define READER_STUCK_NS	    (2 * NSEC_PER_SEC)

_Static_assert(FRAME_RUNTIME_MAX <= 32, "a bit for each in struct image");

struct runtime_reader {
	const struct runtime_reader_kind *kind;
	struct runtime_host host;
	struct worker *worker;
	struct watchdog *watchdog;
	struct loop_source *retry;
	uint64_t retry_ns; /* monotonic: of @retry; 0: not armed */
	struct loop_source *sweep;
	struct runtime_process_key swept_next;
	struct runtime_files *files; /* of the thread */
	struct runtime_files *next;  /* of the next thread */
	struct runtime_hung *hung;
	struct runtime_processes processes;
	struct runtime_images images;
	bool ends;
};

/* ---------------------------------------------------------------- probing */

/* Wakes the reader at @at_ns, or soon if that is over. */
static void wake_at(struct runtime_reader *r, uint64_t at_ns)
{
	const uint64_t now_ns = nsec_monotonic();
	const uint64_t delay_ns = at_ns > now_ns ? at_ns - now_ns : READER_RETRY_NS;

	if (r->retry_ns && r->retry_ns <= at_ns)
		return;
	if (!loop_arm_within(r->retry, delay_ns,
			     (delay_ns < READER_RETRY_NS ? delay_ns : READER_RETRY_NS) / 2))
		r->retry_ns = at_ns;
}

/* The process will run the runtime in a moment. True: an attempt comes. */
static bool retry_quickly(struct runtime_reader *r, struct runtime_process *p)
{
	if (p->n_quick == READER_QUICK || !runtime_process_take_quick(&r->processes, p))
		return false;
	p->retry_ns = nsec_monotonic() + (READER_QUICK_NS << p->n_quick++);
	wake_at(r, p->retry_ns);
	return true;
}

static void retry_later(struct runtime_reader *r, struct runtime_process *p)
{
	if (p->n_attempts >= READER_ATTEMPTS_MAX)
		return;
	p->retry_ns = nsec_monotonic() + (READER_RETRY_NS << p->n_attempts++);
	wake_at(r, p->retry_ns);
}

/* The thread did not try: that is no attempt. */
static void retry_soon(struct runtime_reader *r, struct runtime_process *p)
{
	p->retry_ns = nsec_monotonic() + NSEC_PER_SEC;
	wake_at(r, p->retry_ns);
}

static void keep_target(struct runtime_reader *r, struct runtime_process *p,
			struct runtime_job *job)
{
	runtime_process_drop_record(&r->processes, p); /* of the mappings before */
	p->outcome = job->outcome < 0 ? r->kind->unreadable : job->outcome;
	free(p->target);
	p->target = take_ptr(job->target);
	if (!p->outcome)
		runtime_process_take_record(&r->processes, p);
}

/* Marks the images that lack the runtime. With others, the process stays, so that they are not
 * looked for again before its mappings change. So does a process with an excerpt: its file was not
 * open yet when the job was made. */
static void take_absence(struct runtime_reader *r, struct runtime_process *p,
			 const struct runtime_job *job)
{
	for (size_t i = 0; i < job->n_lacking; i++)
		job->files[i]->no_runtimes |= 1u << r->kind->runtime;
	if (p->is_copied)
		return;
	if (job->n_lacking == job->n_files) {
		runtime_process_drop(&r->processes, p);
		return;
	}
	free(p->target);
	p->target = NULL;
	p->outcome = job->outcome;
}

/* Keeps what the job knows of the file with the runtime; @target: of a process with it, or NULL. */
static void take_image(struct runtime_reader *r, struct runtime_job *job, const void *target)
{
	if (!job->probed)
		return;
	runtime_images_add(&r->images, &job->found, take_ptr(job->probed), target);
}

/* Whether the process has the runtime without a part of it. */
static bool is_partial(const struct runtime_reader *r, const struct runtime_process *p)
{
	return !p->outcome && r->kind->is_partial && r->kind->is_partial(p->target);
}

static void take_probe(struct runtime_reader *r, struct runtime_process *p, struct runtime_job *job)
{
	bool is_expected;

	p->is_probing = false;
	p->version = job->version;
	runtime_process_put_quick(&r->processes, p);
	if (job->is_refused) {
		retry_soon(r, p);
		return;
	}
	take_image(r, job, job->outcome ? NULL : job->target);
	if (job->outcome == RUNTIME_FILES_ABSENT) {
		take_absence(r, p, job);
		return;
	}
	if (job->outcome == r->kind->probe->gone) {
		if (!p->is_copied)
			runtime_process_drop(&r->processes, p);
		return;
	}
	if (job->outcome && (p->is_copied || runtime_process_has_record(p))) {
		retry_later(r, p); /* the target is better than none */
		return;
	}
	runtime_process_set_copied(&r->processes, p, false);
	keep_target(r, p, job);
	if (is_partial(r, p) && p->n_attempts < READER_SLOW_ATTEMPT)
		p->n_attempts = READER_SLOW_ATTEMPT;
	is_expected = r->kind->is_expected && r->kind->is_expected(job->outcome);
	if ((job->outcome < 0 || r->kind->may_change(job->outcome) || is_partial(r, p)) &&
	    !(is_expected && retry_quickly(r, p)))
		retry_later(r, p);
	if (r->host.expected && is_expected)
		r->host.expected(r->host.ctx, r->kind->runtime);
	if (runtime_process_has_record(p))
		r->host.found(r->host.ctx, r->kind->runtime,
			      &(struct address_space_who){
				      .pid = p->pid,
				      .start_ns = p->key.start_ns,
				      .exec_id = p->key.exec_id,
				      .owner = p->owner->id,
			      });
}

static void probe_done(struct work *work)
{
	struct runtime_job *job = container_of(work, struct runtime_job, work);
	struct runtime_reader *r = job->reader;
	struct runtime_process *p = runtime_process_find(&r->processes, &job->key);

	if (!work->cancelled && !r->ends && p)
		take_probe(r, p, job);
	runtime_job_free(job);
}

static struct runtime_job *job_new(struct runtime_reader *r, const struct runtime_process *p)
{
	struct runtime_job *job = runtime_job_new(r->kind, r->hung, p);

	if (!job)
		return NULL;
	job->reader = r;
	job->files_now = &r->files;
	return job;
}

/* Borrows @files until the return. @is_all: the process has no others. */
static void probe(struct runtime_reader *r, struct runtime_process *p, struct image *const *files,
		  size_t n, bool is_all, uint64_t version)
{
	struct runtime_job *job;

	p->retry_ns = 0;
	if (runtime_hung_refuses(r->hung, p->owner->id)) {
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
			runtime_job_free(job);
		return;
	}
	for (size_t i = 0; i < n; i++)
		job->files[job->n_files++] = image_ref(files[i]);
	job->is_all = is_all;
	job->version = version;
	job->work = (struct work){
		.begin = runtime_job_begin, .run = runtime_job_probe, .done = probe_done};
	if (worker_submit(r->worker, &job->work)) {
		runtime_job_free(job);
		retry_soon(r, p);
		return;
	}
	p->is_probing = true;
}

static void on_retry(void *ctx)
{
	const uint64_t now_ns = nsec_monotonic();
	struct runtime_process *p, *next;
	struct runtime_reader *r = ctx;

	r->retry_ns = 0;
	HASH_ITER(hh, r->processes.items, p, next) {
		if (p->retry_ns && p->retry_ns <= now_ns && !p->is_probing)
			probe(r, p, NULL, 0, false, p->version);
		if (p->retry_ns)
			wake_at(r, p->retry_ns);
	}
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
	const struct runtime_process_key key = runtime_process_key_of(who);
	struct runtime_process *p = runtime_process_find(&r->processes, &key);
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
		p = runtime_process_new(&r->processes, who, address_space_owner(space));
	if (!p)
		return;
	p->n_attempts = 0;
	probe(r, p, files, n_files, is_all, address_space_version(space));
}

bool runtime_reader_runs(void *reader, const struct address_space_who *who,
			 const struct address_space *space)
{
	const struct runtime_process_key key = runtime_process_key_of(who);
	struct runtime_reader *r = reader;
	const struct runtime_process *p = runtime_process_find(&r->processes, &key);

	if (p && runtime_process_has_record(p))
		return true;
	look_at(r, who, space);
	return false;
}

const void *runtime_reader_record(void *reader, const struct address_space_who *who)
{
	const struct runtime_process_key key = runtime_process_key_of(who);
	const struct runtime_reader *r = reader;
	const struct runtime_process *p = runtime_process_find(&r->processes, &key);

	return p && runtime_process_has_record(p) ? r->kind->record(p->target) : NULL;
}

/* ---------------------------------------------------------------- names */

static void take_function(struct runtime_reader *r, struct runtime_process *p,
			  struct runtime_named *named, bool is_gone)
{
	struct runtime_function *f;

	f = runtime_function_find_key(p, &named->key);
	if (!f)
		return;
	if (f->value && named->proof.n && (is_gone || named->is_proved))
		runtime_function_keep(p, f); /* of an ended process, too */
	else if (f->value && named->proof.n && named->outcome)
		runtime_function_lose(&r->processes, p, f);
	else
		runtime_function_set(&r->processes, p, f,
				     is_gone || named->outcome ? NULL : take_ptr(named->value));
}

static void read_names(struct runtime_reader *r, struct runtime_process *p);

static void names_done(struct work *work)
{
	struct runtime_job *job = container_of(work, struct runtime_job, work);
	struct runtime_reader *r = job->reader;
	struct runtime_process *p = runtime_process_find(&r->processes, &job->key);

	if (!work->cancelled && !r->ends && p) {
		p->is_naming = false;
		runtime_budget_bound(r->host.budget);
		for (size_t i = 0; i < job->n_read; i++)
			take_function(r, p, &job->functions[i], job->outcome);
		read_names(r, p);
		r->host.named(r->host.ctx, p->pid.pid);
	}
	runtime_job_free(job);
}

/* The task for the next batch of @p's wanted functions; NULL without memory. */
static struct runtime_job *names_job(struct runtime_reader *r, const struct runtime_process *p,
				     size_t most)
{
	const struct runtime_function *f;
	struct runtime_job *job = job_new(r, p);

	if (job) {
		job->functions = calloc(most, sizeof(*job->functions));
		job->target = malloc(r->kind->target_bytes);
	}
	if (!job || !job->functions || !job->target) {
		if (job)
			runtime_job_free(job);
		return NULL;
	}
	memcpy(job->target, p->target, r->kind->target_bytes);
	TAILQ_FOREACH(f, &p->wanted, in_wanted)
	{
		if (job->n >= most)
			break;
		if (f->value && r->kind->proof)
			r->kind->proof(f->value, &job->functions[job->n].proof);
		job->functions[job->n++].key = f->key;
	}
	job->work = (struct work){
		.begin = runtime_job_begin, .run = runtime_job_read, .done = names_done};
	return job;
}

/* Gives the thread the next batch of wanted functions. */
static void read_names(struct runtime_reader *r, struct runtime_process *p)
{
	const size_t most = p->n_wanted < READER_BATCH_MAX ? p->n_wanted : READER_BATCH_MAX;
	struct runtime_job *job;

	runtime_process_unqueue(&r->processes, p);
	if (!most || p->is_naming || p->is_hung)
		return;
	job = runtime_hung_refuses(r->hung, p->owner->id) ? NULL : names_job(r, p, most);
	p->is_naming = job && !worker_submit(r->worker, &job->work);
	if (p->is_naming)
		return;
	if (job)
		runtime_job_free(job);
	runtime_process_queue(&r->processes, p); /* the next flush tries again */
}

/* When the function is to be proved again; 0: never. */
static uint64_t proved_until(const struct runtime_reader *r, const struct runtime_function *f)
{
	struct runtime_proof proof = {0};

	if (f->value && r->kind->proof)
		r->kind->proof(f->value, &proof);
	return proof.n ? f->proved_ns + r->kind->proof_ns : 0;
}

bool runtime_reader_wants(void *reader, const struct address_space_who *who,
			  const struct frame_record *frame)
{
	const struct runtime_process_key key = runtime_process_key_of(who);
	struct runtime_reader *r = reader;
	struct runtime_process *p = runtime_process_find(&r->processes, &key);
	struct runtime_function *f;

	if (!p || !p->target || p->is_hung || runtime_hung_refuses(r->hung, p->owner->id))
		return false;
	f = runtime_function_find(&r->processes, p, frame);
	if (f) {
		const uint64_t until_ns = proved_until(r, f);

		runtime_function_use(f);
		if (until_ns && p->n_wanted < READER_WANTED_MAX && nsec_monotonic() >= until_ns)
			runtime_function_prove(&r->processes, p, f);
		return f->is_wanted;
	}
	return p->n_wanted < READER_WANTED_MAX && runtime_function_new(&r->processes, p, frame);
}

void runtime_reader_flush(void *reader)
{
	struct runtime_reader *r = reader;
	const struct runtime_process *last =
		TAILQ_LAST(&r->processes.unread, runtime_process_queue);
	struct runtime_process *p;

	/* a process that is refused comes after the last again */
	while ((p = TAILQ_FIRST(&r->processes.unread))) {
		read_names(r, p);
		if (p == last)
			break;
	}
}

/* ---------------------------------------------------------------- excerpts */

const void *runtime_reader_exe(void *reader, const struct address_space *space, size_t *ret_n)
{
	const struct runtime_reader *r = reader;
	const struct runtime_image *k;
	uint64_t bias;

	if (!r->kind->exe)
		return NULL;
	k = runtime_images_mapped(&r->images, space, &bias);
	*ret_n = r->kind->exe_bytes;
	return k ? runtime_image_exe(k) : NULL;
}

/* The process of an excerpt. NULL: it is not known, and cannot be. */
static struct runtime_process *copied_process(struct runtime_reader *r,
					      const struct address_space_who *who,
					      const struct address_space *space,
					      const uint8_t *bytes, size_t n)
{
	const struct runtime_process_key key = runtime_process_key_of(who);
	struct runtime_process *p = runtime_process_find(&r->processes, &key);
	_cleanup_(freep) void *target = NULL;
	const struct runtime_image *k;
	uint64_t bias;

	if (p && p->target && !p->outcome)
		return p;
	k = runtime_images_mapped(&r->images, space, &bias);
	target = k ? calloc(1, r->kind->target_bytes) : NULL;
	if (!target || !r->kind->excerpt_target(runtime_image_probed(k), bias, bytes, n, target))
		return NULL;
	if (!p) {
		runtime_processes_make_room(&r->processes);
		p = runtime_process_new(&r->processes, who, address_space_owner(space));
	}
	if (!p)
		return NULL;
	free(p->target);
	p->target = take_ptr(target);
	p->outcome = 0;
	runtime_process_set_copied(&r->processes, p, true);
	return p;
}

/* Reads a function out of an excerpt. A failure leaves it to the thread, if the process lives. */
static void copy_function(struct runtime_reader *r, struct runtime_process *p, struct excerpt *e,
			  const uint64_t words[2])
{
	const struct frame_record frame = {.words = {words[0], words[1]}};
	struct runtime_function *f = runtime_function_find(&r->processes, p, &frame);
	void *value;

	if (f && f->value)
		return;
	value = calloc(1, r->kind->function_bytes);
	if (value && !r->kind->read(&e->memory, p->target, words, value)) {
		if (!f)
			f = runtime_function_new(&r->processes, p, &frame);
		if (f)
			runtime_function_set(&r->processes, p, f, take_ptr(value));
	}
	free(value);
}

const void *runtime_reader_excerpt(void *reader, const struct address_space_who *who,
				   const struct address_space *space, const uint8_t *bytes,
				   size_t n)
{
	struct runtime_reader *r = reader;
	uint64_t words[2], at = 0;
	struct runtime_process *p;
	struct excerpt e;
	size_t n_wanted;

	if (!r->kind->excerpt_next)
		return NULL;
	p = copied_process(r, who, space, bytes, n);
	if (!p || p->is_hung || p->outcome)
		return NULL;
	runtime_budget_bound(r->host.budget);
	excerpt_init(&e, bytes, n, r->kind->excerpt_memory);
	n_wanted = p->n_wanted;
	while (r->kind->excerpt_next(p->target, bytes, n, &at, words))
		copy_function(r, p, &e, words);
	if (!p->n_wanted)
		runtime_process_unqueue(&r->processes, p);
	if (p->n_wanted < n_wanted)
		r->host.named(r->host.ctx, p->pid.pid);
	return r->kind->record(p->target);
}

int runtime_reader_frame_name(void *reader, const struct address_space_who *who,
			      const struct frame_record *frame, struct runtime_place *ret)
{
	const struct runtime_process_key key = runtime_process_key_of(who);
	const struct runtime_reader *r = reader;
	const struct runtime_process *p = runtime_process_find(&r->processes, &key);
	const struct runtime_function *f =
		p ? runtime_function_find(&r->processes, p, frame) : NULL;

	if (f && f->value) {
		r->kind->place(f->value, (uint32_t)frame->words[1], ret);
		ret->until_ns = proved_until(r, f);
		return 0;
	}
	f = p ? runtime_function_elsewhere(&r->processes, p, frame) : NULL;
	if (!f || !f->value)
		return RUNTIME_GONE;
	r->kind->place(f->value, (uint32_t)f->key.words[1], ret);
	ret->line = 0;
	ret->n_inlined = 0;
	return RUNTIME_NO_PLACE;
}

/* ---------------------------------------------------------------- life */

void runtime_reader_saw(void *reader, const struct address_space_who *who)
{
	const struct runtime_process_key key = runtime_process_key_of(who);
	struct runtime_reader *r = reader;

	runtime_process_saw(&r->processes, &key);
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
static void process_sweep(struct runtime_reader *r, struct runtime_process *p)
{
	if (runtime_process_is_past(p) ||
	    pid_check_inode(r->host.proc, &p->pid, &p->inode) == PID_GONE) {
		if (p->is_over)
			runtime_process_drop(&r->processes, p);
		else
			p->is_over = true;
		return;
	}
	runtime_functions_sweep(&r->processes, p);
}

/* A read of /proc for each process is too long for one turn of the loop. If a process leaves just
 * before the sweep reaches the process, the sweep ends, and the next sweep goes on. */
static bool sweep_one(void *ctx)
{
	struct runtime_reader *r = ctx;
	struct runtime_process *p = runtime_process_find(&r->processes, &r->swept_next), *next;

	if (!p)
		return false;
	next = p->hh.next;
	r->swept_next = next ? next->key : (struct runtime_process_key){0};
	process_sweep(r, p);
	return next;
}

void runtime_reader_sweep(void *reader)
{
	struct runtime_reader *r = reader;

	if (!r->processes.items)
		return;
	if (!runtime_process_find(&r->processes, &r->swept_next))
		r->swept_next = r->processes.items->key;
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
	for (const struct runtime_process *p = r->processes.items; p; p = p->hh.next) {
		const bool is_slow = p->is_hung || runtime_hung_refuses(r->hung, p->owner->id);
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

	const uint64_t values[RUNTIME_FAMILY_MAX] = {
		[RUNTIME_FAMILY_REFUSED] = r->processes.n_refused,
		[RUNTIME_FAMILY_BYTES] = r->processes.name_bytes,
		[RUNTIME_FAMILY_EVICTED] = r->processes.n_evicted,
	};

	if (family == RUNTIME_FAMILY_PROCESSES)
		collect_processes(r, sink);
	else
		metric_u64(sink, values[family], &label, 1);
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
	struct runtime_job *job = container_of(work, struct runtime_job, work);
	struct runtime_reader *r = ctx;
	struct runtime_process *p = runtime_process_find(&r->processes, &job->key);

	job->hung_slot = runtime_hung_take(r->hung, job->owner);
	r->files = take_ptr(r->next);
	if (!p || r->ends)
		return;
	p->is_hung = true;
	p->is_probing = p->is_naming = false;
	runtime_process_put_quick(&r->processes, p);
	r->host.named(r->host.ctx, p->pid.pid);
}

void runtime_reader_free(void *reader)
{
	struct runtime_reader *r = reader;

	if (!r)
		return;
	r->ends = true;
	watchdog_free(r->watchdog);
	worker_free(r->worker);
	loop_remove(r->retry);
	loop_remove(r->sweep);
	runtime_processes_deinit(&r->processes);
	runtime_images_deinit(&r->images);
	runtime_files_free(r->files);
	runtime_hung_unref(r->hung);
	free(r);
}

int runtime_reader_new(const struct runtime_reader_kind *kind, const struct runtime_host *host,
		       void **ret)
{
	struct runtime_reader *r = calloc(1, sizeof(*r));
	struct watchdog_opts watchdog = {
		.loop = host->loop,
		.blocked_ns = READER_STUCK_NS,
		.threads_max = RUNTIME_HUNG_MAX,
		.prepare = make_next,
		.abandoned = on_abandoned,
		.kept = drop_next,
		.drop = runtime_job_drop,
		.ctx = r,
	};
	int result;

	if (!r)
		return -ENOMEM;
	r->kind = kind;
	r->host = *host;
	runtime_processes_init(&r->processes, kind, host->budget);
	r->images.kind = kind;
	result = runtime_hung_new(host->proc, &r->hung);
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
