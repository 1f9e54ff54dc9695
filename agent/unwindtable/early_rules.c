// SPDX-License-Identifier: Apache-2.0
/*
 * A request is a list of addresses of one image. While a request is under way, further addresses
 * of the image are collected for the next one: a hundred stacks cause two requests. A thread of its
 * own looks them up, because the thread that makes tables is busy for seconds on a starved node. It
 * reads the files of containers, so a watchdog abandons a job that blocks.
 *
 * A container can have any number of large programs and addresses, so the addresses are shared out.
 * An address counts for the first owner that requests it.
 *
 * Left out: files without the linker's index, Go's programs, whose tables are not in .eh_frame, and
 * files that synthetic.c searches (their rules may be other ones than those of .eh_frame).
 */
#include "unwindtable/early_rules.h"

#include <elf.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/metric.h"
#include "base/nsec.h"
#include "base/share.h"
#include "base/watchdog.h"
#include "base/work_budget.h"
#include "base/worker.h"
#include "elf/elffile.h"
#include "procmap/image.h"
#include "unwind/ehframe.h"
#include "unwind/synthetic.h"

/* Requests in the thread's queue, one for each image. Reached: the stacks of further images wait
 * for tables. */
#define EARLY_RULES_QUEUE_MAX 64
/* Addresses of all images, 110 bytes each. Dropped when the image has a table. A container may hold
 * a quarter of what is free. Reached: stacks with further addresses wait for tables;
 * `podprof_unwind_early_rules_total{outcome="full"}`, `{outcome="over_share"}` for a container. */
#define EARLY_RULES_MAX	      ((size_t)1 << 16)
/* Units of one request: 1,024 functions of 2 KB. Reached: the image has no early rules. */
#define EARLY_RULES_WORK      ((uint64_t)1 << 26)
/* CPU time of one request. Reached: the same. */
#define EARLY_RULES_CPU_NS    (NSEC_PER_SEC / 2)

enum early_outcome {
	EARLY_FOUND,
	EARLY_NONE, /* no function, or a gap in it: the table decides */
	EARLY_FULL,
	EARLY_OVER_SHARE, /* the owner has its share of all addresses */
	EARLY_FAILED,	  /* the file changes, takes too much work or blocks; or no memory */
	EARLY_OUTCOME_MAX,
};

static const char *const outcome_names[EARLY_OUTCOME_MAX] = {
	[EARLY_FOUND] = "ok",	   [EARLY_NONE] = "no_rows",
	[EARLY_FULL] = "full",	   [EARLY_OVER_SHARE] = "over_share",
	[EARLY_FAILED] = "failed",
};

struct place {
	uint64_t vaddr;
	struct share_holder *owner;
	uint32_t round; /* of its request */
	bool is_known;	/* else in the next request, or in the one under way */
	bool has_rule;
	struct unwind_rule rule;
	UT_hash_handle hh;
};

struct early_image {
	uint16_t number; /* the key */
	struct image *image;
	bool is_served;
	struct place *places;
	struct job *job;  /* in the queue or running */
	struct job *next; /* collects addresses; NULL: none */
	uint32_t n_done;  /* requests that have ended */
	UT_hash_handle hh;
};

struct early_rules {
	struct early_rules_opts opts;
	struct worker *worker;
	struct watchdog *watchdog;
	struct early_image *images;
	size_t n_places;
	struct share_holder *owners; /* of these */
	bool closing;
	uint64_t outcomes[EARLY_OUTCOME_MAX];
};

struct job {
	struct work work;
	struct early_rules *x;
	struct image *image; /* a reference */
	uint16_t number;
	atomic_bool stop;
	int outcome; /* 0: @rules are set */
	size_t n;
	uint64_t vaddrs[EARLY_RULES_BATCH_MAX]; /* ascending */
	struct unwind_rule rules[EARLY_RULES_BATCH_MAX];
	bool has_rule[EARLY_RULES_BATCH_MAX];
};

/* ---------------------------------------------------------------- the thread */

static void job_free(struct job *job)
{
	image_unref(job->image);
	free(job);
}

static void job_drop(struct work *work)
{
	job_free(container_of(work, struct job, work));
}

static void take_rules(struct job *job, const struct rows *rows)
{
	for (size_t i = 0; i < job->n; i++) {
		const size_t at = rows_count(rows) ? rows_find(rows, job->vaddrs[i]) : (size_t)-1;
		const uint32_t rule = at == (size_t)-1 ? 0 : rows_at(rows, at).rule;

		job->has_rule[i] = rule;
		if (rule)
			job->rules[i] = *rows_rule(rows, rule);
	}
}

static int look_up(struct job *job, const struct elffile *file)
{
	_cleanup_(rows_freep) struct rows *rows = NULL;
	struct ehframe_stats stats = {0};
	uint64_t start, end;
	int r = ehframe_text(file, &start, &end);

	if (!r)
		r = rows_new(start, end, &rows);
	if (!r)
		r = ehframe_add_functions(file, job->vaddrs, job->n, rows, &stats);
	if (!r)
		r = rows_finish(rows);
	if (!r)
		take_rules(job, rows);
	return r;
}

/* Touches the job alone. */
static void job_run(struct work *work)
{
	struct job *job = container_of(work, struct job, work);
	struct elffile *file = NULL;
	struct work_budget budget;

	work_budget_init(&budget, EARLY_RULES_WORK, EARLY_RULES_CPU_NS, &job->stop);
	job->outcome = elffile_budgeted(job->image->file, &budget, &file);
	if (!job->outcome)
		job->outcome = look_up(job, file);
	if (budget.end)
		job->outcome = ELFFILE_ABANDONED;
	elffile_free(file);
}

/* ---------------------------------------------------------------- images */

static struct early_image *find(const struct early_rules *x, uint16_t number)
{
	struct early_image *e;

	HASH_FIND(hh, x->images, &number, sizeof(number), e);
	return e;
}

static void drop_place(struct early_rules *x, struct early_image *e, struct place *p)
{
	HASH_DEL(e->places, p);
	x->n_places--;
	p->owner->held--;
	share_holder_put(&x->owners, p->owner);
	free(p);
}

static void drop(struct early_rules *x, struct early_image *e)
{
	struct place *p, *next;

	if (e->job)
		atomic_store(&e->job->stop, true);
	if (e->next)
		job_free(e->next);
	HASH_ITER(hh, e->places, p, next)
		drop_place(x, e, p);
	HASH_DEL(x->images, e);
	image_unref(e->image);
	free(e);
}

/* Whether a rule by .eh_frame is the table's rule, and the table takes long. */
static bool is_served(const struct elffile *file)
{
	const struct elffile_segment *segments;
	struct elffile_section section;
	struct elffile_segment hdr;
	uint64_t code = 0;
	size_t n;

	if (!file || elffile_is_process(file) || elffile_eh_frame_hdr(file, &hdr) ||
	    !elffile_section(file, ".gopclntab", &section))
		return false;
	segments = elffile_segments(file, &n);
	for (size_t i = 0; i < n; i++)
		if ((segments[i].flags & PF_X) &&
		    __builtin_add_overflow(code, segments[i].filesz, &code))
			return false;
	return code > SYNTHETIC_SCAN_MAX;
}

static struct early_image *add(struct early_rules *x, uint16_t number, struct image *image)
{
	struct early_image *e = calloc(1, sizeof(*e));
	bool hash_oom = false;

	if (!e)
		return NULL;
	e->number = number;
	e->is_served = is_served(image->file);
	HASH_ADD(hh, x->images, number, sizeof(e->number), e);
	if (hash_oom) {
		free(e);
		return NULL;
	}
	e->image = image_ref(image);
	return e;
}

bool early_rules_serve(struct early_rules *x, uint16_t number, struct image *image)
{
	struct early_image *e = find(x, number);

	if (e && e->image != image) {
		drop(x, e);
		e = NULL;
	}
	if (!e)
		e = add(x, number, image);
	return e && e->is_served && !image_is_slow(image);
}

bool early_rules_find(const struct early_rules *x, uint16_t number, uint64_t vaddr,
		      struct unwind_rule *ret)
{
	const struct early_image *e = find(x, number);
	const struct place *p = NULL;

	if (e)
		HASH_FIND(hh, e->places, &vaddr, sizeof(vaddr), p);
	if (!p || !p->has_rule)
		return false;
	*ret = p->rule;
	return true;
}

void early_rules_drop(struct early_rules *x, uint16_t number)
{
	struct early_image *e = find(x, number);

	if (e)
		drop(x, e);
}

void early_rules_sweep(struct early_rules *x, const bool *used, size_t n)
{
	struct early_image *e, *next;

	HASH_ITER(hh, x->images, e, next)
		if (e->number >= n || !used[e->number])
			drop(x, e);
}

/* ---------------------------------------------------------------- requests */

static void submit(struct early_rules *x, struct early_image *e);

static void take(struct early_rules *x, struct early_image *e, const struct job *job)
{
	struct place *p;

	for (size_t i = 0; !job->outcome && i < job->n; i++) {
		HASH_FIND(hh, e->places, &job->vaddrs[i], sizeof(p->vaddr), p);
		if (!p)
			continue;
		p->is_known = true;
		p->has_rule = job->has_rule[i];
		p->rule = job->rules[i];
		x->outcomes[p->has_rule ? EARLY_FOUND : EARLY_NONE]++;
	}
	if (!job->outcome)
		return;
	e->is_served = false;
	x->outcomes[EARLY_FAILED]++;
}

static void job_done(struct work *work)
{
	struct job *job = container_of(work, struct job, work);
	struct early_rules *x = job->x;
	struct early_image *e = find(x, job->number);

	if (e && e->job == job)
		e->job = NULL;
	else
		e = NULL;
	if (e && !work->cancelled && !x->closing) {
		e->n_done++;
		take(x, e, job);
		submit(x, e);
		x->opts.ready(x->opts.ctx, job->number, e->is_served ? e->n_done : UINT32_MAX);
	}
	job_free(job);
}

static void on_abandoned(void *ctx, struct work *work)
{
	struct job *job = container_of(work, struct job, work);
	struct early_rules *x = ctx;
	struct early_image *e = find(x, job->number);

	image_set_slow(job->image);
	atomic_store(&job->stop, true);
	x->outcomes[EARLY_FAILED]++;
	if (!e || e->job != job)
		return;
	e->job = NULL;
	e->n_done++;
	e->is_served = false;
	if (!x->closing)
		x->opts.ready(x->opts.ctx, job->number, UINT32_MAX);
}

static int by_vaddr(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* The next request, to be filled. NULL without memory. */
static struct job *next_of(struct early_rules *x, struct early_image *e)
{
	struct job *job = e->next;

	if (job)
		return job;
	job = calloc(1, sizeof(*job));
	if (!job)
		return NULL;
	job->work = (struct work){.run = job_run, .done = job_done};
	job->x = x;
	job->number = e->number;
	job->image = image_ref(e->image);
	e->next = job;
	return job;
}

static struct place *new_place(struct early_rules *x, struct early_image *e,
			       struct share_holder *owner, uint64_t vaddr)
{
	struct place *p = calloc(1, sizeof(*p));
	bool hash_oom = false;

	if (!p)
		return NULL;
	p->vaddr = vaddr;
	p->round = e->n_done + (e->job ? 2 : 1);
	HASH_ADD(hh, e->places, vaddr, sizeof(p->vaddr), p);
	if (hash_oom) {
		free(p);
		return NULL;
	}
	p->owner = owner;
	owner->held++;
	x->n_places++;
	return p;
}

/* NULL if there is no room for one more. */
static struct place *add_place(struct early_rules *x, struct early_image *e, uint64_t owner,
			       uint64_t vaddr)
{
	struct job *job = next_of(x, e);
	struct share_holder *holder;
	struct place *added = NULL;

	if (!job || job->n == EARLY_RULES_BATCH_MAX)
		return NULL;
	holder = share_holder_get(&x->owners, owner);
	if (!holder)
		return NULL;
	if (share_allows(EARLY_RULES_MAX, x->n_places, holder->held))
		added = new_place(x, e, holder, vaddr);
	else
		x->outcomes[x->n_places < EARLY_RULES_MAX ? EARLY_OVER_SHARE : EARLY_FULL]++;
	share_holder_put(&x->owners, holder);
	if (added)
		job->vaddrs[job->n++] = vaddr;
	return added;
}

/* The addresses of a request that cannot be made may be requested again. */
static void refuse(struct early_rules *x, struct early_image *e, struct job *job)
{
	struct place *p;

	for (size_t i = 0; i < job->n; i++) {
		HASH_FIND(hh, e->places, &job->vaddrs[i], sizeof(p->vaddr), p);
		if (p)
			drop_place(x, e, p);
	}
	job_free(job);
}

/* If addresses wait and no request is under way. */
static void submit(struct early_rules *x, struct early_image *e)
{
	struct job *job = e->next;

	if (e->job || !job)
		return;
	e->next = NULL;
	qsort(job->vaddrs, job->n, sizeof(job->vaddrs[0]), by_vaddr);
	if (!e->is_served || !job->n || worker_submit(x->worker, &job->work))
		refuse(x, e, job);
	else
		e->job = job;
}

uint32_t early_rules_want(struct early_rules *x, uint64_t owner, uint16_t number,
			  const uint64_t *vaddrs, size_t n, bool *ret_more)
{
	struct early_image *e = find(x, number);
	struct place *p;
	uint32_t round = 0;

	if (!e || !e->is_served)
		return 0;
	for (size_t i = 0; i < n; i++) {
		HASH_FIND(hh, e->places, &vaddrs[i], sizeof(vaddrs[i]), p);
		if (!p)
			p = add_place(x, e, owner, vaddrs[i]);
		if (!p) {
			*ret_more |= e->next && e->next->n == EARLY_RULES_BATCH_MAX;
			break;
		}
		if (!p->is_known && p->round > round)
			round = p->round;
	}
	submit(x, e);
	return e->job ? round : 0; /* a request can be refused */
}

/* ---------------------------------------------------------------- life */

int early_rules_new(const struct early_rules_opts *opts, struct early_rules **ret)
{
	_cleanup_(freep) struct early_rules *x = calloc(1, sizeof(*x));
	struct watchdog_opts watchdog = {
		.loop = opts->loop,
		.abandoned = on_abandoned,
		.drop = job_drop,
		.ctx = x,
	};
	int r;

	if (!x)
		return -ENOMEM;
	x->opts = *opts;
	r = worker_new(opts->loop, "rules", EARLY_RULES_QUEUE_MAX, &x->worker);
	if (r)
		return r;
	watchdog.worker = x->worker;
	r = watchdog_new(&watchdog, &x->watchdog);
	if (r) {
		worker_free(x->worker);
		return r;
	}
	*ret = take_ptr(x);
	return 0;
}

void early_rules_free(struct early_rules *x)
{
	struct early_image *e, *next;

	if (!x)
		return;
	x->closing = true; /* @ready's owner has lost parts already */
	HASH_ITER(hh, x->images, e, next)
		if (e->job)
			atomic_store(&e->job->stop, true);
	watchdog_free(x->watchdog);
	worker_free(x->worker);
	HASH_ITER(hh, x->images, e, next)
		drop(x, e);
	free(x);
}

void early_rules_collect(void *ctx, struct metric_sink *sink)
{
	static const struct metric_family_desc rules = {
		"podprof_unwind_early_rules", METRIC_COUNTER,
		"Addresses whose unwind rule was looked up before the table was there, by outcome.",
		NULL};
	const struct early_rules *x = ctx;

	metric_by_name(sink, &rules, "outcome", x->outcomes, outcome_names, EARLY_OUTCOME_MAX);
}
