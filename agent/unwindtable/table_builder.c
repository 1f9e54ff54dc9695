// SPDX-License-Identifier: Apache-2.0
/*
 * tables.h decides once a second, by the walkers' counts, about wanted tables and evictions. A
 * sample does not wait for that second. If its walk ended in an image without a table, the builder
 * compiles that image at once. The same holds for the image of the first frame of a new process.
 *
 * Compiling is pure (unwindtable/compile.h, unwindtable/table.h) and runs on workers with the
 * agent's own priority: on a busy node, stacks wait for tables and take memory meanwhile. One table
 * of a small file and one of a large file are compiled at a time: a large one takes seconds on a
 * starved node, and the stacks of all small ones would wait. Of each, the next is the one that most
 * stacks lack, in proportion to the file's cost. A large one gives way to a file whose stacks are
 * cut until its table is there. A file without a table is not retried while the image has a number:
 * mapped files do not change.
 */
#include "unwindtable/table_builder.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/loop.h"
#include "base/metric.h"
#include "base/nsec.h"
#include "base/watchdog.h"
#include "base/work_budget.h"
#include "base/worker.h"
#include "elf/elffile.h"
#include "procmap/image.h"
#include "unwind/synthetic.h"
#include "unwindtable/compile.h"
#include "unwindtable/table.h"
#include "unwindtable/tables.h"

/* Tables in the worker's queue: the one that is compiled. */
#define TABLE_BUILDER_QUEUE 1
/* Cost of a file whose table takes long (cost_of()): 25 ms of CPU time. */
#define LARGE_COST	    ((uint64_t)256 << 10)
/* Bytes of a file without the linker's index for a byte of cost: a Go program. */
#define COST_BYTES	    64
/* Images that become wanted at once by the walkers' counts (tables.h). Others follow as these are
 * done. */
#define TABLE_BUILDER_MOST  4

/* Outcomes of a compilation. */
enum compiled {
	COMPILED_OK,
	COMPILED_NO_ROWS,     /* the file does not describe its code */
	COMPILED_UNSUPPORTED, /* not a kind of file with rows */
	COMPILED_TOO_LARGE,
	COMPILED_NO_ROOM,   /* other tables are wanted more */
	COMPILED_CHANGED,   /* the file was being written to */
	COMPILED_SLOW,	    /* reading the file blocked the worker */
	COMPILED_ABANDONED, /* the file takes too much work */
	COMPILED_FAILED,    /* our side */
	COMPILED_MAX,
};

static const char *const compiled_names[COMPILED_MAX] = {
	[COMPILED_OK] = "ok",
	[COMPILED_NO_ROWS] = "no_rows",
	[COMPILED_UNSUPPORTED] = "unsupported",
	[COMPILED_TOO_LARGE] = "too_large",
	[COMPILED_NO_ROOM] = "no_space",
	[COMPILED_CHANGED] = "changed",
	[COMPILED_ABANDONED] = "abandoned",
	[COMPILED_SLOW] = "slow",
	[COMPILED_FAILED] = "failed",
};

/* Small and large files. */
enum queue { QUEUE_SMALL, QUEUE_LARGE, QUEUE_MAX };

struct executable {
	struct image *image; /* the key; owns a reference */
	uint16_t number;
	struct exe_job *job; /* in the worker's queue or running */
	bool absent;	     /* no table is possible, */
	bool abandoned;	     /* because the file takes too much work: not for a while */
	bool wanted;	     /* and not yet compiling */
	bool cuts;	     /* stacks are cut without the table: dumps do not have all of them */
	bool gave_way;	     /* to such a table, once */
	uint64_t n_missed;   /* while wanted */
	UT_hash_handle hh;
};

struct table_builder {
	struct table_builder_opts opts;
	struct worker *workers[QUEUE_MAX];
	struct watchdog *watchdogs[QUEUE_MAX];
	struct executable *all;
	struct executable *by_number[TABLE_EXES];
	struct work_refused refused;
	uint64_t n_compiled[COMPILED_MAX];
	uint64_t compile_ns;
	uint64_t n_numbers_full;
	size_t n_wanted;
	bool closing; /* ended jobs start no others: their queue may be gone */
};

/* One table in the worker's queue. */
struct exe_job {
	struct work work;
	struct table_builder *x;
	struct image *image; /* owns a reference */
	atomic_bool stop;    /* set by the loop: the result is not wanted any more */
	bool gives_way;	     /* stopped for another table, and wanted again */
	struct table *table; /* the result */
	enum compiled outcome;
	uint64_t ns;
};

/* ---------------------------------------------------------------- compiling */

static void job_free(struct exe_job *job)
{
	image_unref(job->image);
	table_free(job->table);
	free(job);
}

static enum compiled outcome_of_compile(int r)
{
	switch (r) {
	case 0:
		return COMPILED_OK;
	case ELFFILE_UNSUPPORTED:
	case ELFFILE_ABSENT:
		return COMPILED_UNSUPPORTED;
	case ELFFILE_TRUNCATED:
		return COMPILED_CHANGED;
	case ELFFILE_ABANDONED:
		return COMPILED_ABANDONED;
	case -ENOSPC:
	case -E2BIG:
		return COMPILED_TOO_LARGE;
	default:
		return COMPILED_FAILED;
	}
}

static enum compiled outcome_of_pack(int r)
{
	switch (r) {
	case 0:
		return COMPILED_OK;
	case TABLE_EMPTY:
		return COMPILED_NO_ROWS;
	case TABLE_TOO_LARGE:
		return COMPILED_TOO_LARGE;
	default:
		return COMPILED_FAILED;
	}
}

static enum compiled compile(struct exe_job *job, const struct elffile *file)
{
	struct ehframe_stats stats;
	struct rows *rows = NULL;
	enum compiled outcome = outcome_of_compile(compile_image(file, &stats, &rows));

	if (outcome == COMPILED_OK)
		outcome = outcome_of_pack(table_pack(rows, &job->table));
	rows_free(rows);
	return outcome;
}

/* An estimate of the table's CPU time, in bytes of the linker's index, which has 8 for a function:
 * a browser of 300 MB takes 10 ms, and a compiler of 35 MB takes 50. Up to a few MiB the code is
 * searched as well. */
static uint64_t cost_of(const struct image *image)
{
	const uint64_t size = elffile_size(image->file);
	struct elffile_segment index;

	if (elffile_eh_frame_hdr(image->file, &index) || index.filesz > size)
		return size / COST_BYTES + 1;
	return index.filesz + (size < SYNTHETIC_SCAN_MAX ? size : SYNTHETIC_SCAN_MAX) / COST_BYTES +
	       1;
}

static enum queue queue_of(const struct image *image)
{
	return cost_of(image) < LARGE_COST ? QUEUE_SMALL : QUEUE_LARGE;
}

/* On the worker's thread: touches the job alone. */
static void job_run(struct work *work)
{
	struct exe_job *job = container_of(work, struct exe_job, work);
	uint64_t begin = nsec_read(CLOCK_THREAD_CPUTIME_ID);
	struct elffile *file = NULL;
	struct work_budget stoppable;

	work_budget_init(&stoppable, UINT64_MAX, COMPILE_CPU_NS, &job->stop);
	job->outcome = elffile_budgeted(job->image->file, &stoppable, &file) ? COMPILED_FAILED
									     : compile(job, file);
	elffile_free(file);
	if (stoppable.end == WORK_STOPPED)
		job->outcome = COMPILED_FAILED;
	job->ns = nsec_read(CLOCK_THREAD_CPUTIME_ID) - begin;
}

static struct executable *find(const struct table_builder *x, const struct image *image)
{
	struct executable *e;

	HASH_FIND_PTR(x->all, &image, e);
	return e;
}

/* Takes the job's table. */
static enum compiled publish(struct table_builder *x, struct executable *e, struct exe_job *job)
{
	struct table *table = take_ptr(job->table);
	int r = tables_publish(x->opts.tables, e->number, table, nsec_monotonic());

	switch (r) {
	case 0:
		return job->outcome;
	case TABLES_WAITING:
	case TABLES_UNKNOWN:
		table_free(table);
		return COMPILED_NO_ROOM;
	case TABLES_FULL:
		return COMPILED_NO_ROOM;
	default:
		return COMPILED_FAILED;
	}
}

static void refuse(struct table_builder *x, struct executable *e)
{
	work_refused_add(&x->refused, &e->image->id, nsec_monotonic());
	e->abandoned = true;
}

static bool is_refused(const struct table_builder *x, const struct image *image)
{
	return work_refused_has(&x->refused, &image->id, nsec_monotonic());
}

static void want(struct table_builder *x, struct executable *e);
static void want_most(struct table_builder *x);
static void compile_next(struct table_builder *x);

static void job_done(struct work *work)
{
	struct exe_job *job = container_of(work, struct exe_job, work);
	struct table_builder *x = job->x;
	struct executable *e = find(x, job->image);

	if (!work->cancelled && e && !x->closing && job->gives_way && !job->table) {
		e->job = NULL;
		want(x, e);
	} else if (!work->cancelled && e && !x->closing) {
		e->job = NULL;
		if (job->table)
			job->outcome = publish(x, e, job);
		else
			e->absent = job->outcome != COMPILED_FAILED;
		if (job->outcome == COMPILED_ABANDONED)
			refuse(x, e);
		if (e->absent)
			tables_absent(x->opts.tables, e->number);
		x->n_compiled[job->outcome]++;
		x->compile_ns += job->ns;
		if (x->opts.ready)
			x->opts.ready(x->opts.ctx, e->number);
		/* a failed or refused table waits for the next tick */
		if (!x->n_wanted && job->outcome != COMPILED_FAILED &&
		    job->outcome != COMPILED_NO_ROOM)
			want_most(x);
		compile_next(x);
	}
	job_free(job);
}

/* The image gets no table until its cooldown has passed. */
static void on_abandoned(void *ctx, struct work *work)
{
	struct exe_job *job = container_of(work, struct exe_job, work);
	struct table_builder *x = ctx;
	struct executable *e = find(x, job->image);

	image_set_slow(job->image);
	atomic_store(&job->stop, true);
	x->n_compiled[COMPILED_SLOW]++;
	if (!e)
		return;
	e->job = NULL;
	if (x->opts.ready && !x->closing) /* its owner may ask for the queues */
		x->opts.ready(x->opts.ctx, e->number);
}

static void job_drop(struct work *work)
{
	job_free(container_of(work, struct exe_job, work));
}

static void submit(struct table_builder *x, struct executable *e)
{
	struct exe_job *job = calloc(1, sizeof(*job));

	if (!job)
		return;
	job->work = (struct work){.run = job_run, .done = job_done};
	job->x = x;
	job->image = image_ref(e->image);
	if (worker_submit(x->workers[queue_of(e->image)], &job->work))
		job_free(job);
	else
		e->job = job;
}

static void unwant(struct table_builder *x, struct executable *e)
{
	x->n_wanted -= e->wanted;
	e->wanted = false;
	e->n_missed = 0;
}

/* The sum of all waits is smallest if the table with the most waiting stacks per cost comes first.
 */
static bool is_urgent(const struct executable *e, const struct executable *than)
{
	if (!than)
		return true;
	return (double)e->n_missed * (double)cost_of(than->image) >
	       (double)than->n_missed * (double)cost_of(e->image);
}

/* If no file of this queue is compiled now. */
static void compile_next_of(struct table_builder *x, enum queue queue)
{
	struct executable *e, *next, *most = NULL;

	if (!x->n_wanted || worker_pending(x->workers[queue]))
		return;
	HASH_ITER(hh, x->all, e, next) {
		if (e->wanted && image_is_slow(e->image))
			unwant(x, e);
		if (e->wanted && queue_of(e->image) == queue && is_urgent(e, most))
			most = e;
	}
	if (most) {
		unwant(x, most);
		submit(x, most);
	}
}

static void compile_next(struct table_builder *x)
{
	for (int i = 0; i < QUEUE_MAX; i++)
		compile_next_of(x, (enum queue)i);
}

static void want(struct table_builder *x, struct executable *e)
{
	if (e->abandoned && !is_refused(x, e->image))
		e->absent = e->abandoned = false;
	if (e->job || e->absent || image_is_slow(e->image) ||
	    tables_live(x->opts.tables, e->number) || tables_placing(x->opts.tables, e->number))
		return;
	x->n_wanted += !e->wanted;
	e->wanted = true;
	e->n_missed++;
	compile_next(x);
}

/* ---------------------------------------------------------------- numbers */

static int add(struct table_builder *x, struct image *image, struct executable **ret)
{
	struct executable *e = calloc(1, sizeof(*e));
	bool hash_oom = false;
	int r;

	if (!e)
		return -ENOMEM;
	r = tables_exe_get(x->opts.tables, &image->id, nsec_monotonic(), &e->number);
	if (r) {
		free(e);
		return r;
	}
	e->image = image;
	HASH_ADD_PTR(x->all, image, e);
	if (hash_oom) {
		tables_exe_put(x->opts.tables, e->number, nsec_monotonic());
		free(e);
		return -ENOMEM;
	}
	image_ref(image);
	x->by_number[e->number] = e;
	e->absent = e->abandoned = is_refused(x, image);
	if (e->absent)
		tables_absent(x->opts.tables, e->number);
	*ret = e;
	return 0;
}

static void drop(struct table_builder *x, struct executable *e)
{
	tables_exe_put(x->opts.tables, e->number, nsec_monotonic());
	x->by_number[e->number] = NULL;
	unwant(x, e);
	HASH_DEL(x->all, e);
	image_unref(e->image);
	free(e);
}

uint16_t table_builder_number(struct table_builder *x, struct image *image)
{
	struct executable *e;

	if (!image->file)
		return 0;
	e = find(x, image);
	if (!e && add(x, image, &e)) {
		x->n_numbers_full++;
		return 0;
	}
	return e->number;
}

struct image *table_builder_image(const struct table_builder *x, uint16_t number)
{
	return number < TABLE_EXES && x->by_number[number] ? x->by_number[number]->image : NULL;
}

void table_builder_want(struct table_builder *x, struct image *image)
{
	struct executable *e = find(x, image);

	if (e && !tables_cooling_down(x->opts.tables, e->number, nsec_monotonic()))
		want(x, e);
}

enum table_builder_state table_builder_want_number(struct table_builder *x, uint16_t number)
{
	struct executable *e = number < TABLE_EXES ? x->by_number[number] : NULL;

	if (!e)
		return TABLE_BUILDER_NEVER;
	if (tables_live(x->opts.tables, number))
		return TABLE_BUILDER_LIVE;
	if (!e->job &&
	    (image_is_slow(e->image) || !tables_awaited(x->opts.tables, number, nsec_monotonic())))
		return TABLE_BUILDER_NEVER;
	if (!tables_placing(x->opts.tables, number))
		want(x, e);
	return TABLE_BUILDER_COMING;
}

/* Most stacks are whole by dumps while a large file's table is made, so a compilation in progress
 * stops for @e, the file of stacks that are cut. It begins again later: each file gives way once,
 * or its work would be lost again and again. */
static void make_way(struct table_builder *x, const struct executable *e)
{
	struct executable *other, *next;

	if (queue_of(e->image) != QUEUE_LARGE)
		return;
	HASH_ITER(hh, x->all, other, next) {
		if (!other->job || other->cuts || other->gave_way ||
		    queue_of(other->image) != QUEUE_LARGE)
			continue;
		other->gave_way = other->job->gives_way = true;
		atomic_store(&other->job->stop, true);
	}
}

void table_builder_hurry(struct table_builder *x, uint16_t number)
{
	struct executable *e = number < TABLE_EXES ? x->by_number[number] : NULL;

	if (!e)
		return;
	e->cuts = true;
	if (!e->wanted)
		return;
	e->n_missed += TABLE_BUILDER_HURRY;
	make_way(x, e);
}

/* ---------------------------------------------------------------- time after time */

static void want_most(struct table_builder *x)
{
	struct tables_want wanted[TABLE_BUILDER_MOST];
	size_t n = tables_wanted(x->opts.tables, nsec_monotonic(), wanted, array_size(wanted));

	for (size_t i = 0; i < n; i++)
		if (x->by_number[wanted[i].exe])
			want(x, x->by_number[wanted[i].exe]);
}

void table_builder_tick(struct table_builder *x)
{
	tables_tick(x->opts.tables, nsec_monotonic());
	want_most(x);
	compile_next(x); /* after an abandoned job */
}

void table_builder_sweep(struct table_builder *x, const bool *used, size_t n)
{
	struct executable *e, *next;

	HASH_ITER(hh, x->all, e, next)
		if (!e->job && e->number < n && !used[e->number])
			drop(x, e);
}

bool table_builder_wait(struct table_builder *x, uint64_t timeout_ns)
{
	const bool small = worker_pending(x->workers[QUEUE_SMALL]);

	return worker_wait(x->workers[small ? QUEUE_SMALL : QUEUE_LARGE], timeout_ns);
}

size_t table_builder_pending(const struct table_builder *x)
{
	return worker_pending(x->workers[QUEUE_SMALL]) + worker_pending(x->workers[QUEUE_LARGE]) +
	       x->n_wanted;
}

/* ---------------------------------------------------------------- life */

static int queue_init(struct table_builder *x, enum queue queue)
{
	static const char *const names[QUEUE_MAX] = {
		[QUEUE_SMALL] = "unwind",
		[QUEUE_LARGE] = "unwind-large",
	};
	struct watchdog_opts watchdog = {
		.loop = x->opts.loop,
		.abandoned = on_abandoned,
		.drop = job_drop,
		.ctx = x,
	};
	int r = worker_new(x->opts.loop, names[queue], TABLE_BUILDER_QUEUE, &x->workers[queue]);

	if (r)
		return r;
	watchdog.worker = x->workers[queue];
	return watchdog_new(&watchdog, &x->watchdogs[queue]);
}

static void queues_deinit(struct table_builder *x)
{
	for (int i = 0; i < QUEUE_MAX; i++) {
		watchdog_free(x->watchdogs[i]);
		worker_free(x->workers[i]);
	}
}

int table_builder_new(const struct table_builder_opts *opts, struct table_builder **ret)
{
	_cleanup_(freep) struct table_builder *x = calloc(1, sizeof(*x));
	int r = 0;

	if (!x)
		return -ENOMEM;
	x->opts = *opts;
	for (int i = 0; i < QUEUE_MAX && !r; i++)
		r = queue_init(x, (enum queue)i);
	if (r) {
		queues_deinit(x);
		return r;
	}
	*ret = take_ptr(x);
	return 0;
}

void table_builder_free(struct table_builder *x)
{
	struct executable *e, *next;

	if (!x)
		return;
	x->closing = true;
	/* the jobs in progress end at their next look at the budget */
	HASH_ITER(hh, x->all, e, next)
		if (e->job)
			atomic_store(&e->job->stop, true);
	queues_deinit(x);
	HASH_ITER(hh, x->all, e, next)
		drop(x, e);
	free(x);
}

void table_builder_collect(void *ctx, struct metric_sink *sink)
{
	static const struct metric_family_desc compiled = {
		"podprof_unwind_compiled", METRIC_COUNTER, "Unwind tables compiled, by outcome.",
		NULL};
	static const struct metric_family_desc seconds = {
		"podprof_unwind_compile_seconds", METRIC_COUNTER,
		"CPU time of compiling unwind tables.", "seconds"};
	static const struct metric_family_desc full = {"podprof_unwind_image_ids_exhausted",
						       METRIC_COUNTER,
						       "Times that no image id was free.", NULL};
	const struct table_builder *x = ctx;

	metric_by_name(sink, &compiled, "outcome", x->n_compiled, compiled_names, COMPILED_MAX);
	metric_family(sink, &seconds);
	metric_double(sink, (double)x->compile_ns / NSEC_PER_SEC, NULL, 0);
	metric_family(sink, &full);
	metric_u64(sink, x->n_numbers_full, NULL, 0);
}
