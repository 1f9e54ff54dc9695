// SPDX-License-Identifier: Apache-2.0
#include "profile/runtime_loader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/metric.h"
#include "base/nsec.h"
#include "base/worker.h"
#include "profile/bpfobj.h"
#include "shared/frame.h"

/* Time between two loads of a runtime with errors of the system (memory, rights). */
#define RETRY_NS (60 * NSEC_PER_SEC)

/* Nice values of the thread above the agent's, for a load that begins while stacks wait for tables.
 * V8's walk takes 0.15 s of CPU time, 7 s of an agent with the chart's CPU request on a busy node.
 * Without the walk stacks are whole, and frames of the runtime have no names. */
#define LOAD_NICE 5

/* Wait for a load under way, at the end. */
#define END_NS NSEC_PER_SEC

enum load_state {
	LOAD_NONE,
	LOAD_WANTED, /* not begun */
	LOAD_PENDING,
	LOAD_OK,
	LOAD_REFUSED,
};

struct runtime_load {
	enum load_state state;
	uint64_t wanted_ns; /* monotonic */
	uint64_t again_ns;  /* monotonic: no load before, after an error */
};

struct runtime_loader {
	struct loop *loop;
	struct bpfobj *obj;
	bool urgent;
	bool ended;
	struct worker *worker;	    /* NULL: no runtime was wanted yet */
	struct runtime_load *loads; /* by enum frame_runtime of the object, @n */
	size_t n;
};

struct load_job {
	struct work work;
	struct runtime_loader *loader; /* not of the thread: may be freed before the load ends */
	struct bpfobj *obj;
	uint32_t runtime;
	int nice; /* above the agent's */
	struct bpfobj_runtime loaded;
	int result;
};

/* Whether stacks are cut without the walk: compiled code of HotSpot has neither frame pointers nor
 * an unwind table. */
static bool cuts_stacks(uint32_t runtime)
{
	return runtime == FRAME_RUNTIME_HOTSPOT;
}

static void run(struct work *work)
{
	struct load_job *job = container_of(work, struct load_job, work);

	/* of this thread alone; a failure does no harm */
	(void)setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, (id_t)getpid()) + job->nice);
	job->result = bpfobj_load_runtime(job->obj, job->runtime, &job->loaded);
}

static void note_result(const struct load_job *job)
{
	struct runtime_load *load = &job->loader->loads[job->runtime];

	switch (job->result) {
	case BPFOBJ_RUNTIME_OK:
		load->state = LOAD_OK;
		break;
	case BPFOBJ_RUNTIME_REFUSED:
		load->state = LOAD_REFUSED;
		log_warn("the kernel refuses the program of a language runtime, leaving it out",
			 log_str("why", job->loaded.why));
		break;
	default:
		load->state = LOAD_NONE;
		load->again_ns = nsec_monotonic() + RETRY_NS;
		log_warn("loading the program of a language runtime failed, trying again later",
			 log_str("err", strerror(-job->result)));
	}
}

static void job_free(struct load_job *job, bool has_run)
{
	if (has_run && job->result >= 0)
		bpfobj_runtime_deinit(&job->loaded);
	bpfobj_unref(job->obj);
	free(job);
}

static void done(struct work *work)
{
	struct load_job *job = container_of(work, struct load_job, work);

	if (!work->cancelled)
		note_result(job);
	job_free(job, !work->cancelled);
}

/* In place of done(), after the end of the loader. */
static void orphan(void *ctx, struct work *work)
{
	(void)ctx;
	job_free(container_of(work, struct load_job, work), true);
}

int runtime_loader_new(struct loop *loop, struct bpfobj *obj, bool urgent,
		       struct runtime_loader **ret)
{
	struct runtime_loader *l = calloc(1, sizeof(*l));

	if (!l)
		return -ENOMEM;
	*l = (struct runtime_loader){
		.loop = loop, .urgent = urgent, .n = bpfobj_unwind(obj).n_runtimes};
	l->loads = calloc(l->n, sizeof(*l->loads));
	if (!l->loads) {
		free(l);
		return -ENOMEM;
	}
	l->obj = bpfobj_ref(obj);
	*ret = l;
	return 0;
}

void runtime_loader_free(struct runtime_loader *l)
{
	const struct worker_left left = {.orphan = orphan};

	if (!l)
		return;
	if (l->worker && !worker_stop(l->worker, END_NS))
		(void)worker_abandon(l->worker, &left); /* or the load has just ended */
	worker_free(l->worker);
	bpfobj_unref(l->obj);
	free(l->loads);
	free(l);
}

void runtime_loader_want(struct runtime_loader *l, uint32_t runtime, uint64_t now_ns)
{
	struct runtime_load *load = &l->loads[runtime];

	if (l->ended || load->state != LOAD_NONE || now_ns < load->again_ns)
		return;
	load->state = LOAD_WANTED;
	load->wanted_ns = now_ns;
}

/* Without memory or a thread, the next tick tries again. */
static bool begin(struct runtime_loader *l, uint32_t runtime, int nice)
{
	struct load_job *job;

	if (!l->worker && worker_new(l->loop, "bpf-load", l->n, &l->worker))
		return false;
	job = calloc(1, sizeof(*job));
	if (!job)
		return false;
	job->work = (struct work){.run = run, .done = done};
	job->loader = l;
	job->obj = bpfobj_ref(l->obj);
	job->runtime = runtime;
	job->nice = nice;
	if (worker_submit(l->worker, &job->work)) {
		job_free(job, false);
		return false;
	}
	l->loads[runtime].state = LOAD_PENDING;
	return true;
}

/* Whether the load gives way to what stacks wait for. */
static bool yields(const struct runtime_loader *l, uint32_t runtime, bool busy)
{
	return busy && !l->urgent && !cuts_stacks(runtime);
}

/* The oldest wanted load that may begin; l->n: none. */
static uint32_t next_load(const struct runtime_loader *l, bool busy, uint64_t now_ns)
{
	uint32_t first = (uint32_t)l->n;

	for (uint32_t i = 0; i < l->n; i++) {
		const struct runtime_load *load = &l->loads[i];

		if (load->state != LOAD_WANTED ||
		    (yields(l, i, busy) && now_ns - load->wanted_ns < RUNTIME_LOADER_WAIT_NS))
			continue;
		if (first == l->n || load->wanted_ns < l->loads[first].wanted_ns)
			first = i;
	}
	return first;
}

void runtime_loader_tick(struct runtime_loader *l, bool busy, uint64_t now_ns)
{
	uint32_t i = next_load(l, busy, now_ns);

	for (; i < l->n && begin(l, i, yields(l, i, busy) ? LOAD_NICE : 0);
	     i = next_load(l, busy, now_ns))
		;
}

void runtime_loader_end(struct runtime_loader *l)
{
	l->ended = true;
	for (size_t i = 0; i < l->n; i++)
		if (l->loads[i].state == LOAD_WANTED)
			l->loads[i].state = LOAD_NONE;
}

size_t runtime_loader_pending(const struct runtime_loader *l)
{
	size_t n = l->worker ? worker_pending(l->worker) : 0;

	for (size_t i = 0; i < l->n; i++)
		n += l->loads[i].state == LOAD_WANTED;
	return n;
}

void runtime_loader_collect(void *loader, struct metric_sink *sink)
{
	static const struct metric_family_desc refused = {
		"podprof_bpf_refused_runtimes", METRIC_GAUGE,
		"Language runtimes with a program that the kernel refuses.", NULL};
	const struct runtime_loader *l = loader;
	uint64_t n = 0;

	for (size_t i = 0; i < l->n; i++)
		n += l->loads[i].state == LOAD_REFUSED;
	metric_family(sink, &refused);
	metric_u64(sink, n, NULL, 0);
}
