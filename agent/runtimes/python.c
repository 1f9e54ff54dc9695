// SPDX-License-Identifier: Apache-2.0
/*
 * The reader of CPython. A process is probed when the walker gets its mappings: a thread looks for
 * an interpreter in the mapped files (python_images.h) and makes the walker's record
 * (python_process.h). An image without an interpreter is marked, so that a process with such images
 * alone never comes to the thread. A process that does not run Python yet is tried again. A child
 * of fork() is a process like any other: its image is known, and a record takes some reads.
 *
 * Names are read from the process, by the same thread: memory can block its reader forever
 * (userfaultfd), and a watchdog then abandons the thread and the process. A sample waits until the
 * code objects on its stack are read. A code object stays known while its process is, so a function
 * is read once. The check in the frame tells a code object from a later one at the same address: a
 * name is right or missing.
 */
#include "runtimes/runtimes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/loop.h"
#include "base/metric.h"
#include "base/nsec.h"
#include "base/watchdog.h"
#include "base/worker.h"
#include "procmap/address_space.h"
#include "procmap/memory.h"
#include "procmap/share.h"
#include "runtimes/python_code.h"
#include "runtimes/python_images.h"
#include "runtimes/python_target.h"

/* Processes to probe or with an interpreter, 2 KB each. An owner has a share of the free ones
 * (procmap/share.h). Reached: a further process has native frames only;
 * `podprof_runtime_processes_refused_total`. */
#define READER_PROCESSES_MAX 8192
/* Bytes of code objects: names and line tables. Reached: all are read again. */
#define READER_CODES_BYTES   ((size_t)32 << 20)
/* Code objects of one job: some milliseconds. Reached: the next job reads the others. */
#define READER_BATCH_MAX     256
/* Code objects of a process that wait for the thread. Reached: a frame is "[python: gone]". */
#define READER_WANTED_MAX    8192
/* Jobs that wait for the thread. Reached: tried again within a second. */
#define READER_JOBS_MAX	     256
/* Attempts on a process that does not run Python yet, in 1, 2, 4 ... 64 seconds. Reached: the
 * process has native frames until its mappings change;
 * `podprof_runtime_processes{state="not_ready"}` and others. */
#define READER_ATTEMPTS_MAX  7
/* Nanoseconds without progress before the thread is abandoned: samples wait five seconds at most.
 */
#define READER_STUCK_NS	     (2 * NSEC_PER_SEC)

struct process_key {
	uint64_t pid;
	uint64_t start_ns;
	uint64_t exec_id;
};

struct code_key {
	uint64_t object;
	uint64_t check;
};

/* A code object; without a name if it is gone. */
struct code {
	struct code_key key;
	struct python_code code;
	bool is_wanted; /* not read yet: in the process's @wanted */
	bool is_gone;
	TAILQ_ENTRY(code) in_wanted;
	UT_hash_handle hh;
};

TAILQ_HEAD(code_queue, code);

struct process {
	struct process_key key;
	struct pid_id pid;
	struct python_target *target; /* NULL: not probed yet */
	int outcome;		      /* enum python_outcome, of @target */
	uint64_t version;	      /* of the probed mappings */
	unsigned int n_attempts;
	uint64_t retry_ns; /* monotonic; 0: no attempt is due */
	bool is_probing;
	bool is_naming;
	bool is_hung;
	bool is_full;
	struct code *codes;
	struct code_queue wanted;
	size_t n_wanted;
	struct share_holder *owner;  /* of the process */
	struct share_holder *walked; /* ... and of its record; NULL: no record */
	bool is_queued;		     /* in the reader's @unread */
	TAILQ_ENTRY(process) in_unread;
	UT_hash_handle hh;
};

TAILQ_HEAD(process_queue, process);

struct python {
	struct runtime_host host;
	struct worker *worker;
	struct watchdog *watchdog;
	struct loop_source *retry;
	struct loop_source *sweep;
	struct process_key swept_next;
	struct python_images *images; /* of the thread */
	struct python_images *next;
	struct process *processes;
	struct process_queue unread;  /* code objects are wanted, and no job reads them */
	struct share_holder *owners;  /* of @processes */
	struct share_holder *walkers; /* of @n_records */
	uint64_t n_refused;
	size_t n_records;
	size_t code_bytes;
	bool ends;
};

struct named_code {
	struct code_key key;
	int outcome;
	struct python_code code;
};

/* One task of the thread: probing a process, or reading @n code objects. */
struct job {
	struct work work;
	struct python *python;
	struct python_images *images; /* the thread's while the job runs; the job's if abandoned */
	const struct root *proc;
	struct process_key key;
	struct pid_id pid;
	int outcome;

	uint64_t version;
	struct image **files; /* @n_files references */
	size_t n_files;
	struct python_target target;

	struct python_layout layout;
	struct named_code *codes; /* @n */
	size_t n;
};

static void job_free(struct job *job)
{
	for (size_t i = 0; i < job->n_files; i++)
		image_unref(job->files[i]);
	for (size_t i = 0; i < job->n; i++)
		python_code_deinit(&job->codes[i].code);
	free(job->files);
	free(job->codes);
	free(job);
}

static void job_drop(struct work *work)
{
	struct job *job = container_of(work, struct job, work);

	python_images_free(job->images);
	job_free(job);
}

/* ---------------------------------------------------------------- processes */

static struct process_key key_of(const struct address_space_who *who)
{
	return (struct process_key){who->pid.pid, who->start_ns, who->exec_id};
}

static struct process *process_find(const struct python *py, const struct process_key *key)
{
	struct process *p;

	HASH_FIND(hh, py->processes, key, sizeof(*key), p);
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

static struct process *process_new(struct python *py, const struct address_space_who *who,
				   uint64_t owner)
{
	struct share_holder *h =
		hold(&py->owners, owner, READER_PROCESSES_MAX, HASH_COUNT(py->processes));
	struct process *p = h ? calloc(1, sizeof(*p)) : NULL;
	bool hash_oom = false;

	py->n_refused += !h;
	if (!p) {
		release(&py->owners, h);
		return NULL;
	}
	p->key = key_of(who);
	p->pid = who->pid;
	p->outcome = PYTHON_NOT_READY;
	p->owner = h;
	TAILQ_INIT(&p->wanted);
	HASH_ADD(hh, py->processes, key, sizeof(p->key), p);
	if (hash_oom) {
		release(&py->owners, h);
		free(p);
		return NULL;
	}
	return p;
}

static void queue(struct python *py, struct process *p)
{
	if (!p->is_queued)
		TAILQ_INSERT_TAIL(&py->unread, p, in_unread);
	p->is_queued = true;
}

static void unqueue(struct python *py, struct process *p)
{
	if (p->is_queued)
		TAILQ_REMOVE(&py->unread, p, in_unread);
	p->is_queued = false;
}

static void code_settle(struct process *p, struct code *code)
{
	if (!code->is_wanted)
		return;
	TAILQ_REMOVE(&p->wanted, code, in_wanted);
	p->n_wanted--;
	code->is_wanted = false;
}

static void code_drop(struct python *py, struct process *p, struct code *code)
{
	HASH_DEL(p->codes, code);
	py->code_bytes -= sizeof(*code) + code->code.n_lines;
	code_settle(p, code);
	python_code_deinit(&code->code);
	free(code);
}

static bool has_record(const struct process *p)
{
	return p->walked;
}

static void drop_record(struct python *py, struct process *p)
{
	py->n_records -= has_record(p);
	release(&py->walkers, p->walked);
	p->walked = NULL;
}

static void process_drop(struct python *py, struct process *p)
{
	struct code *code, *next;

	HASH_ITER(hh, p->codes, code, next)
		code_drop(py, p, code);
	unqueue(py, p);
	drop_record(py, p);
	release(&py->owners, p->owner);
	HASH_DEL(py->processes, p);
	free(p->target);
	free(p);
}

/* ---------------------------------------------------------------- probing */

static void probe_run(struct work *work)
{
	struct job *job = container_of(work, struct job, work);
	struct process_memory memory = {.fd = -1};

	job->images = job->python->images;
	job->outcome = job->images ? process_memory_init(&memory, job->proc, &job->pid)
				   : MEMORY_GONE; /* at the end */
	if (job->outcome > 0)
		job->outcome = python_outcome_of_memory(job->outcome);
	if (!job->outcome)
		job->outcome = python_target_find(job->images, job->proc, &job->pid, &memory.memory,
						  &job->target, NULL);
	process_memory_deinit(&memory);
}

static bool may_change(int outcome)
{
	return outcome == PYTHON_NOT_READY || outcome == PYTHON_ODD || outcome == PYTHON_NO_STATE ||
	       outcome == PYTHON_UNREADABLE || outcome < 0;
}

static void retry_later(struct python *py, struct process *p)
{
	if (p->n_attempts >= READER_ATTEMPTS_MAX)
		return;
	p->retry_ns = nsec_monotonic() + (NSEC_PER_SEC << p->n_attempts++);
	(void)loop_arm(py->retry, NSEC_PER_SEC, NSEC_PER_SEC);
}

static void keep_target(struct python *py, struct process *p, const struct job *job)
{
	drop_record(py, p); /* of the mappings before */
	p->outcome = job->outcome < 0 ? PYTHON_UNREADABLE : job->outcome;
	if (!p->target)
		p->target = malloc(sizeof(*p->target));
	if (!p->target) {
		retry_later(py, p);
		return;
	}
	*p->target = job->target;
	if (!p->outcome)
		p->walked = hold(&py->walkers, p->owner->id, PYTHON_PROCESSES_MAX, py->n_records);
	p->is_full = !p->outcome && !p->walked;
	py->n_records += has_record(p);
}

static void probe_done(struct work *work)
{
	struct job *job = container_of(work, struct job, work);
	struct python *py = job->python;
	struct process *p = process_find(py, &job->key);

	if (!work->cancelled && !py->ends && p) {
		p->is_probing = false;
		p->version = job->version;
		if (job->outcome == PYTHON_ABSENT) {
			for (size_t i = 0; i < job->n_files; i++)
				job->files[i]->no_runtime = true;
			process_drop(py, p);
		} else if (job->outcome == PYTHON_GONE) {
			process_drop(py, p);
		} else {
			keep_target(py, p, job);
			if (may_change(job->outcome))
				retry_later(py, p);
			if (has_record(p))
				py->host.found(py->host.ctx, FRAME_RUNTIME_PYTHON,
					       &(struct address_space_who){
						       .pid = p->pid,
						       .start_ns = p->key.start_ns,
						       .exec_id = p->key.exec_id,
					       });
		}
	}
	job_free(job);
}

static struct job *job_new(struct python *py, const struct process *p)
{
	struct job *job = calloc(1, sizeof(*job));

	if (!job)
		return NULL;
	job->python = py;
	job->proc = py->host.proc;
	job->key = p->key;
	job->pid = p->pid;
	return job;
}

/* Borrows @files until the return. */
static void probe(struct python *py, struct process *p, struct image *const *files, size_t n,
		  uint64_t version)
{
	struct job *job = job_new(py, p);

	p->retry_ns = 0;
	if (job)
		job->files = calloc(n ? n : 1, sizeof(struct image *));
	if (!job || !job->files) {
		free(job);
		return;
	}
	for (size_t i = 0; i < n; i++)
		job->files[job->n_files++] = image_ref(files[i]);
	job->version = version;
	job->work = (struct work){.run = probe_run, .done = probe_done};
	if (worker_submit(py->worker, &job->work)) {
		job_free(job);
		p->retry_ns = nsec_monotonic() + NSEC_PER_SEC;
		(void)loop_arm(py->retry, NSEC_PER_SEC, NSEC_PER_SEC);
		return;
	}
	p->is_probing = true;
}

static void on_retry(void *ctx)
{
	const uint64_t now_ns = nsec_monotonic();
	struct process *p, *next;
	struct python *py = ctx;
	bool more = false;

	HASH_ITER(hh, py->processes, p, next) {
		if (p->retry_ns && p->retry_ns <= now_ns && !p->is_probing)
			probe(py, p, NULL, 0, p->version);
		more = more || p->retry_ns;
	}
	if (!more)
		(void)loop_disarm(py->retry);
}

/* Whether the file may have an interpreter. */
static bool is_candidate(const struct image *image)
{
	return image && image->kind == IMAGE_FILE && image->file && !image->no_runtime;
}

/* Probes a process if a file in it may have an interpreter. */
static void look_at(struct python *py, const struct address_space_who *who,
		    const struct address_space *space)
{
	const struct address_space_mapping *items;
	_cleanup_(freep) struct image **files = NULL;
	const struct process_key key = key_of(who);
	struct process *p = process_find(py, &key);
	size_t n, n_files = 0;

	if (p && (p->is_probing || p->is_hung || p->version == address_space_version(space)))
		return;
	items = address_space_mappings(space, &n);
	files = calloc(n ? n : 1, sizeof(struct image *));
	for (size_t i = 0; files && i < n; i++) {
		struct image *image = image_to_unwind(items[i].image);

		if (is_candidate(image))
			files[n_files++] = image;
	}
	if (!n_files)
		return;
	if (!p)
		p = process_new(py, who, address_space_owner(space));
	if (!p)
		return;
	p->n_attempts = 0;
	probe(py, p, files, n_files, address_space_version(space));
}

static bool python_runs(void *reader, const struct address_space_who *who,
			const struct address_space *space)
{
	const struct process_key key = key_of(who);
	struct python *py = reader;
	const struct process *p = process_find(py, &key);

	if (p && has_record(p))
		return true;
	look_at(py, who, space);
	return false;
}

static const void *python_record(void *reader, const struct address_space_who *who)
{
	const struct process_key key = key_of(who);
	const struct process *p = process_find(reader, &key);

	return p && has_record(p) ? &p->target->process : NULL;
}

/* ---------------------------------------------------------------- names */

static struct code *code_find(const struct process *p, const struct frame_record *frame)
{
	const struct code_key key = {frame->words[0], frame->words[1] >> 32};
	struct code *code;

	HASH_FIND(hh, p->codes, &key, sizeof(key), code);
	return code;
}

static int code_new(struct python *py, struct process *p, const struct frame_record *frame)
{
	struct code *code = calloc(1, sizeof(*code));
	bool hash_oom = false;

	if (!code)
		return -ENOMEM;
	code->key = (struct code_key){frame->words[0], frame->words[1] >> 32};
	code->is_wanted = true;
	HASH_ADD(hh, p->codes, key, sizeof(code->key), code);
	if (hash_oom) {
		free(code);
		return -ENOMEM;
	}
	py->code_bytes += sizeof(*code);
	TAILQ_INSERT_TAIL(&p->wanted, code, in_wanted);
	p->n_wanted++;
	queue(py, p);
	return 0;
}

/* Drops the code objects that are read. */
static void forget_codes(struct python *py)
{
	struct process *p, *next;

	HASH_ITER(hh, py->processes, p, next) {
		struct code *code, *next_code;

		HASH_ITER(hh, p->codes, code, next_code)
			if (!code->is_wanted)
				code_drop(py, p, code);
	}
}

static void names_run(struct work *work)
{
	struct job *job = container_of(work, struct job, work);
	struct process_memory memory = {.fd = -1};

	job->images = job->python->images;
	job->outcome = process_memory_init(&memory, job->proc, &job->pid);
	for (size_t i = 0; i < job->n; i++) {
		struct named_code *c = &job->codes[i];
		const uint32_t check = (uint32_t)c->key.check;

		c->outcome = job->outcome ? PYTHON_GONE
					  : python_code_read(&memory.memory, &job->layout,
							     c->key.object, &check, &c->code);
		work_alive(work);
	}
	if (!job->outcome)
		job->outcome = memory_check(&memory.memory);
	process_memory_deinit(&memory);
}

static void take_code(struct python *py, struct process *p, struct named_code *named, bool is_gone)
{
	struct code *code;

	HASH_FIND(hh, p->codes, &named->key, sizeof(named->key), code);
	if (!code)
		return;
	code_settle(p, code);
	code->is_gone = is_gone || named->outcome;
	if (code->is_gone)
		return;
	python_code_deinit(&code->code);
	code->code = named->code;
	py->code_bytes += code->code.n_lines;
	named->code = (struct python_code){0};
}

static void read_names(struct python *py, struct process *p);

static void names_done(struct work *work)
{
	struct job *job = container_of(work, struct job, work);
	struct python *py = job->python;
	struct process *p = process_find(py, &job->key);

	if (!work->cancelled && !py->ends && p) {
		p->is_naming = false;
		for (size_t i = 0; i < job->n; i++)
			take_code(py, p, &job->codes[i], job->outcome);
		read_names(py, p);
		py->host.named(py->host.ctx, p->pid.pid);
		if (py->code_bytes > READER_CODES_BYTES)
			forget_codes(py);
	}
	job_free(job);
}

/* Gives the thread the next batch of wanted code objects. */
static void read_names(struct python *py, struct process *p)
{
	const size_t most = p->n_wanted < READER_BATCH_MAX ? p->n_wanted : READER_BATCH_MAX;
	struct code *code;
	struct job *job;

	unqueue(py, p);
	if (!most || p->is_naming || p->is_hung)
		return;
	job = job_new(py, p);
	if (job)
		job->codes = calloc(most, sizeof(*job->codes));
	if (!job || !job->codes) {
		free(job);
		queue(py, p);
		return;
	}
	TAILQ_FOREACH(code, &p->wanted, in_wanted)
	{
		if (job->n >= most)
			break;
		job->codes[job->n++].key = code->key;
	}
	job->layout = p->target->image.layout;
	job->work = (struct work){.run = names_run, .done = names_done};
	p->is_naming = !worker_submit(py->worker, &job->work);
	if (!p->is_naming) {
		job_free(job);
		queue(py, p); /* the next flush tries again */
	}
}

static bool python_wants(void *reader, const struct address_space_who *who,
			 const struct frame_record *frame)
{
	const struct process_key key = key_of(who);
	struct process *p = process_find(reader, &key);
	const struct code *code;

	if (!p || !p->target || p->is_hung)
		return false;
	code = code_find(p, frame);
	if (code)
		return code->is_wanted;
	return p->n_wanted < READER_WANTED_MAX && !code_new(reader, p, frame);
}

static void python_flush(void *reader)
{
	struct process *p, *last;
	struct python *py = reader;

	/* a process that is refused comes after the last again */
	last = TAILQ_LAST(&py->unread, process_queue);
	while ((p = TAILQ_FIRST(&py->unread))) {
		read_names(py, p);
		if (p == last)
			break;
	}
}

static int python_frame_name(void *reader, const struct address_space_who *who,
			     const struct frame_record *frame, struct runtime_place *ret)
{
	const struct process_key key = key_of(who);
	const struct process *p = process_find(reader, &key);
	const struct code *code = p ? code_find(p, frame) : NULL;

	if (!code || code->is_wanted || code->is_gone)
		return RUNTIME_GONE;
	*ret = (struct runtime_place){
		.function = {.name = code->code.name,
			     .file = code->code.file,
			     .start_line = code->code.first_line > 0
						   ? (uint32_t)code->code.first_line
						   : 0},
		.line = python_code_line(&code->code, (int32_t)(uint32_t)frame->words[1]),
	};
	return 0;
}

/* ---------------------------------------------------------------- life */

static size_t python_pending(void *reader)
{
	const struct python *py = reader;

	return worker_pending(py->worker);
}

static void python_wait(void *reader, uint64_t timeout_ns)
{
	struct python *py = reader;

	(void)worker_wait(py->worker, timeout_ns);
}

static void process_sweep(struct python *py, struct process *p)
{
	struct code *code, *next;

	if (pid_check(py->host.proc, &p->pid) == PID_GONE) {
		process_drop(py, p);
		return;
	}
	HASH_ITER(hh, p->codes, code, next)
		if (code->is_gone)
			code_drop(py, p, code);
}

/* A read of /proc for each process is too long for one turn of the loop. A process that leaves just
 * before its turn ends the sweep, and the next one goes on. */
static bool sweep_one(void *ctx)
{
	struct python *py = ctx;
	struct process *p = process_find(py, &py->swept_next), *next;

	if (!p)
		return false;
	next = p->hh.next;
	if (next)
		py->swept_next = next->key;
	process_sweep(py, p);
	return next;
}

static void python_sweep(void *reader)
{
	struct python *py = reader;

	if (!py->processes)
		return;
	if (!process_find(py, &py->swept_next))
		py->swept_next = py->processes->key;
	(void)loop_arm(py->sweep, 1, 0);
}

/* Releases with counts of processes; a process without a known one has row 0. */
#define N_VERSIONS 64

static void python_collect(void *reader, struct metric_sink *sink)
{
	static const struct metric_family_desc processes = {
		"podprof_runtime_processes", METRIC_GAUGE,
		"Sampled processes with a language runtime, by version and state.", NULL};
	static const struct metric_family_desc bytes = {
		"podprof_runtime_bytes", METRIC_GAUGE,
		"Memory of names and lines of language runtimes.", "bytes"};
	static const struct metric_family_desc refused = {
		"podprof_runtime_processes_refused", METRIC_COUNTER,
		"Lookups of a language runtime in processes above their owner's share.", NULL};
	enum { HUNG = PYTHON_OUTCOME_MAX, FULL, STATES };
	size_t counts[N_VERSIONS][STATES] = {0};
	const struct python *py = reader;

	for (const struct process *p = py->processes; p; p = p->hh.next) {
		const uint16_t version = p->target ? p->target->image.layout.version : 0;
		const int state = p->is_hung ? HUNG : p->is_full ? FULL : p->outcome;

		if (p->target || p->is_hung)
			counts[version >> 8 == 3 ? version % N_VERSIONS : 0][state]++;
	}
	metric_family(sink, &processes);
	for (int v = 0; v < N_VERSIONS; v++)
		for (int state = 0; state < STATES; state++) {
			char version[16] = "";
			const struct metric_label labels[] = {
				{"runtime", "python"},
				{"version", version},
				{"state", state == HUNG	  ? "slow"
					  : state == FULL ? "full"
					  : state	  ? python_outcome_name(state)
							  : "walked"},
			};

			if (!counts[v][state])
				continue;
			if (v)
				snprintf(version, sizeof(version), "3.%d", v);
			metric_u64(sink, counts[v][state], labels, array_size(labels));
		}
	metric_family(sink, &refused);
	metric_u64(sink, py->n_refused, &(struct metric_label){"runtime", "python"}, 1);
	metric_family(sink, &bytes);
	metric_u64(sink, py->code_bytes, &(struct metric_label){"runtime", "python"}, 1);
}

static int make_next(void *ctx, unsigned int n_blocked)
{
	struct python *py = ctx;

	(void)n_blocked;
	return python_images_new(&py->next);
}

static void drop_next(void *ctx)
{
	struct python *py = ctx;

	python_images_free(py->next);
	py->next = NULL;
}

/* The process is left alone from now on. */
static void on_abandoned(void *ctx, struct work *work)
{
	const struct job *job = container_of(work, struct job, work);
	struct python *py = ctx;
	struct process *p = process_find(py, &job->key);

	py->images = take_ptr(py->next);
	if (!p || py->ends)
		return;
	p->is_hung = true;
	p->is_probing = p->is_naming = false;
	py->host.named(py->host.ctx, p->pid.pid);
}

static void python_free(void *reader)
{
	struct process *p, *next;
	struct python *py = reader;

	if (!py)
		return;
	py->ends = true;
	watchdog_free(py->watchdog);
	worker_free(py->worker);
	loop_remove(py->retry);
	loop_remove(py->sweep);
	HASH_ITER(hh, py->processes, p, next)
		process_drop(py, p);
	python_images_free(py->images);
	free(py);
}

static int python_new(const struct runtime_host *host, void **ret)
{
	struct python *py = calloc(1, sizeof(*py));
	struct watchdog_opts watchdog = {
		.loop = host->loop,
		.blocked_ns = READER_STUCK_NS,
		.prepare = make_next,
		.abandoned = on_abandoned,
		.kept = drop_next,
		.drop = job_drop,
		.ctx = py,
	};
	int r;

	if (!py)
		return -ENOMEM;
	py->host = *host;
	TAILQ_INIT(&py->unread);
	r = python_images_new(&py->images);
	if (!r)
		r = loop_add_timer(host->loop, on_retry, py, &py->retry);
	if (!r)
		r = loop_add_steps(host->loop, sweep_one, py, &py->sweep);
	if (!r)
		r = worker_new(host->loop, "python", READER_JOBS_MAX, &py->worker);
	watchdog.worker = py->worker;
	if (!r)
		r = watchdog_new(&watchdog, &py->watchdog);
	if (r)
		python_free(py);
	else
		*ret = py;
	return r;
}

const struct runtime runtime_python = {
	.name = "python",
	.new = python_new,
	.free = python_free,
	.runs = python_runs,
	.record = python_record,
	.wants = python_wants,
	.flush = python_flush,
	.frame_name = python_frame_name,
	.pending = python_pending,
	.wait = python_wait,
	.sweep = python_sweep,
	.collect = python_collect,
};
