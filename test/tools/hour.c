// SPDX-License-Identifier: Apache-2.0
/*
 * An hour of profiles to real servers, in the time that the requests take:
 *
 *	hour PLAN FAULTS TRUTH SPOOL DESTINATION...
 *
 * Each simulated minute has a window of each kind for twelve containers, half of these in pods. The
 * program appends the sums of each profile to the file TRUTH, as the lines of e2e/backends. It
 * writes the faults of the minute to FAULTS/SERVER.fault for the proxies, and those of the plan to
 * FAULTS/plan.
 *
 * The plan "away" has a longer outage, and in it the program kills itself (SIGKILL): once between
 * two windows, and once with requests under way. Call it again then: the next run goes on at the
 * same simulated time, which is in FAULTS/clock.
 *
 * The clock is simulated below the agent's code and libcurl. The program has a clock_gettime() of
 * its own, which adds an offset. While a request or a job of a worker is under way, the clock runs
 * as usual. Otherwise epoll_wait() moves the clock to the next timer, and all timers by this time.
 *
 * Exit status 1: a profile was dropped, or waits in the end.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "support/profiles.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/http.h"
#include "base/loop.h"
#include "base/metric.h"
#include "base/nsec.h"
#include "base/worker.h"
#include "export/export.h"
#include "pprof/pprof.h"

#define HOUR_WINDOW_NS	(60 * NSEC_PER_SEC)
#define HOUR_CONTAINERS 12u
#define HOUR_STACKS	40u
#define HOUR_SEEDS	60u
/* From a window to the kill between windows. */
#define HOUR_KILL_NS	(30 * NSEC_PER_SEC)
#define HOUR_FLUSH_NS	(1800 * NSEC_PER_SEC)
#define QUEUE_BYTES	(64ull << 20)

static void must(int r)
{
	if (r) {
		fprintf(stderr, "hour: %d, %s\n", r, strerror(-r));
		exit(1);
	}
}

/* ---- the clock */

#define TIMERS_MAX 256
#define JOBS_MAX   1024

struct job {
	struct work *work;
	void (*done)(struct work *work);
};

/**
 * @jumped_ns: of the simulated clocks, ahead of the kernel's; workers read it
 * @wall_ns:   of the simulated wall clock, ahead of that. The others never run behind the kernel's:
 *             libcurl starts no request at a negative time, which is an hour before the boot
 * @timers:    descriptors of timers, perhaps closed since
 * @n_calls:   HTTP requests under way
 * @jobs:      of workers, under way; without a work: free
 * @idle:      called when nothing happens until the next timer or event; NULL: nobody. It may
 * change nothing
 */
static struct {
	int64_t jumped_ns;
	int64_t wall_ns;
	int timers[TIMERS_MAX];
	size_t n_timers;
	size_t n_calls;
	struct job jobs[JOBS_MAX];
	size_t n_jobs;
	void (*idle)(void *ctx);
	void *ctx;
} clock_state;

// NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name)
__attribute__((visibility("default"))) int clock_gettime(clockid_t clock, struct timespec *ret)
{
	const int r = (int)syscall(SYS_clock_gettime, clock, ret);
	int64_t ns;

	if (r || clock == CLOCK_PROCESS_CPUTIME_ID || clock == CLOCK_THREAD_CPUTIME_ID)
		return r;
	ns = (int64_t)nsec_of(ret) + __atomic_load_n(&clock_state.jumped_ns, __ATOMIC_RELAXED);
	if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)
		ns += clock_state.wall_ns;
	ret->tv_sec = ns / (int64_t)NSEC_PER_SEC;
	ret->tv_nsec = ns % (int64_t)NSEC_PER_SEC;
	return 0;
}

// NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name)
__attribute__((visibility("default"))) int timerfd_create(int clock, int flags)
{
	const int fd = (int)syscall(SYS_timerfd_create, clock, flags);

	for (size_t i = 0; i < clock_state.n_timers; i++)
		if (clock_state.timers[i] == fd)
			return fd;
	if (fd >= 0 && clock_state.n_timers == TIMERS_MAX)
		must(-ENOSPC);
	if (fd >= 0)
		clock_state.timers[clock_state.n_timers++] = fd;
	return fd;
}

/* 0: not armed, or no timer any more. */
static uint64_t timer_left_ns(int fd, struct itimerspec *ret)
{
	return timerfd_gettime(fd, ret) ? 0 : nsec_of(&ret->it_value);
}

/* To the next timer, or to the end of the loop's wait: @most_ns, 0 for none. Without both nothing
 * would ever happen. False: to the end of the wait. */
static bool clock_jump(uint64_t most_ns)
{
	uint64_t least_ns = most_ns;
	struct itimerspec spec;
	bool is_timer = false;

	for (size_t i = 0; i < clock_state.n_timers; i++) {
		const uint64_t left_ns = timer_left_ns(clock_state.timers[i], &spec);

		if (left_ns && (!least_ns || left_ns < least_ns)) {
			least_ns = left_ns;
			is_timer = true;
		}
	}
	if (!least_ns)
		must(-EDEADLK);
	__atomic_fetch_add(&clock_state.jumped_ns, (int64_t)least_ns, __ATOMIC_RELAXED);
	for (size_t i = 0; i < clock_state.n_timers; i++) {
		uint64_t left_ns = timer_left_ns(clock_state.timers[i], &spec);

		if (!left_ns)
			continue;
		left_ns = left_ns > least_ns ? left_ns - least_ns : 1;
		spec.it_value.tv_sec = (time_t)(left_ns / NSEC_PER_SEC);
		spec.it_value.tv_nsec = (long)(left_ns % NSEC_PER_SEC);
		must(timerfd_settime(clock_state.timers[i], 0, &spec, NULL) ? -errno : 0);
	}
	return is_timer;
}

static int wait_events(int fd, struct epoll_event *events, int n, int timeout_ms)
{
	return (int)syscall(SYS_epoll_pwait, fd, events, n, timeout_ms, NULL, 0);
}

/* To the next call of clock_state.idle, which looks at files. */
#define IDLE_MS 50

/* The loop's only call that waits. */
// NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name)
__attribute__((visibility("default"))) int epoll_wait(int fd, struct epoll_event *events, int n,
						      int timeout_ms)
{
	const int r = wait_events(fd, events, n, 0);

	if (r || !timeout_ms) /* 0: the loop has something to do now */
		return r;
	if (clock_state.idle) {
		clock_state.idle(clock_state.ctx);
		if (timeout_ms < 0 || timeout_ms > IDLE_MS)
			timeout_ms = IDLE_MS;
	}
	if (!clock_state.n_calls && !clock_state.n_jobs &&
	    !clock_jump(timeout_ms > 0 ? (uint64_t)timeout_ms * NSEC_PER_MSEC : 0))
		return 0;
	return wait_events(fd, events, n, timeout_ms);
}

struct call {
	http_done_fn done;
	void *ctx;
};

int __real_http_start(struct http *http, const struct http_request *request, http_done_fn done,
		      void *ctx, struct http_call **ret);
int __wrap_http_start(struct http *http, const struct http_request *request, http_done_fn done,
		      void *ctx, struct http_call **ret);
int __real_worker_submit(struct worker *worker, struct work *work);
int __wrap_worker_submit(struct worker *worker, struct work *work);

static void on_reply(void *ctx, const struct http_reply *reply)
{
	struct call *call = ctx;
	const struct call own = *call;

	free(call);
	clock_state.n_calls--;
	own.done(own.ctx, reply);
}

/* A busy machine must not end a request whose answer the server has given: the proxy would not know
 * of the loss. */
#define CALL_NS (600 * NSEC_PER_SEC)

int __wrap_http_start(struct http *http, const struct http_request *request, http_done_fn done,
		      void *ctx, struct http_call **ret)
{
	struct http_request patient = *request;
	struct call *call = calloc(1, sizeof(*call));
	int r;

	if (!call)
		return -ENOMEM;
	*call = (struct call){done, ctx};
	patient.connect_ns = patient.total_ns = CALL_NS;
	r = __real_http_start(http, &patient, on_reply, call, ret);
	if (r)
		free(call);
	else
		clock_state.n_calls++;
	return r;
}

static struct job *find_job(const struct work *work)
{
	for (size_t i = 0; i < JOBS_MAX; i++)
		if (clock_state.jobs[i].work == work)
			return &clock_state.jobs[i];
	must(-ENOSPC);
	return NULL;
}

static void on_job(struct work *work)
{
	struct job *job = find_job(work);

	work->done = job->done;
	job->work = NULL;
	clock_state.n_jobs--;
	work->done(work);
}

int __wrap_worker_submit(struct worker *worker, struct work *work)
{
	struct job *job = find_job(NULL);
	int r;

	*job = (struct job){work, work->done};
	work->done = on_job;
	clock_state.n_jobs++;
	r = __real_worker_submit(worker, work);
	if (r) {
		work->done = job->done;
		job->work = NULL;
		clock_state.n_jobs--;
	}
	return r;
}

/* ---- the faults */

struct fault {
	const char *server;
	unsigned int from, to; /* minutes */
	const char *fault;
};

static const struct fault hour_faults[] = {
	{"pyroscope", 5, 15, "down"},	  {"pyroscope", 30, 32, "forgets"},
	{"pyroscope", 40, 45, "429"},	  {"pyroscope", 50, 51, "lost"},
	{"parca", 5, 10, "slow"},	  {"parca", 15, 20, "429"},
	{"parca", 30, 32, "lying"},	  {"parca", 40, 50, "down"},
	{"otlp", 5, 12, "429"},		  {"otlp", 14, 17, "convert"},
	{"otlp", 20, 25, "partial"},	  {"otlp", 42, 46, "limited"},
	{"otlp", 30, 40, "down"},	  {"otlp", 50, 52, "forgets"},
	{"collector", 5, 7, "lost"},	  {"collector", 20, 24, "slow"},
	{"collector", 10, 14, "limited"}, {"collector", 30, 35, "429"},
	{"collector", 37, 40, "convert"}, {"collector", 42, 52, "down"},
	{"coroot", 10, 20, "down"},	  {"coroot", 30, 35, "429"},
	{"coroot", 40, 42, "cut"},	  {"coroot", 50, 52, "forgets"},
};

/* Pyroscope is away for less than its age limit of 59 minutes. The collector works but for the
 * minute of the second kill. */
static const struct fault away_faults[] = {
	{"pyroscope", 5, 60, "down"}, {"parca", 5, 65, "down"},	      {"otlp", 5, 65, "down"},
	{"coroot", 5, 65, "down"},    {"collector", 45, 46, "stall"},
};

/* @kills: after this number of windows; @in_flight: while requests wait for a server */
static const struct plan {
	const char *name;
	unsigned int windows;
	const struct fault *faults;
	size_t n_faults;
	struct {
		unsigned int after;
		bool in_flight;
	} kills[2];
} plans[] = {
	{"hour", 60, hour_faults, array_size(hour_faults), {{0}}},
	{"away", 70, away_faults, array_size(away_faults), {{25, false}, {45, true}}},
};

static const struct plan *find_plan(const char *name)
{
	for (size_t i = 0; i < array_size(plans); i++)
		if (strcmp(plans[i].name, name) == 0)
			return &plans[i];
	must(-EINVAL);
	return NULL;
}

static FILE *open_file(const char *path, const char *mode)
{
	FILE *f = fopen(path, mode);

	if (!f)
		must(-errno);
	return f;
}

static FILE *open_in(const char *folder, const char *name, const char *end)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/%s%s", folder, name, end);
	return open_file(path, "we");
}

static void write_plan(const struct plan *plan, const char *folder)
{
	FILE *f = open_in(folder, "plan", "");

	for (size_t i = 0; i < plan->n_faults; i++)
		fprintf(f, "%s %s\n", plan->faults[i].server, plan->faults[i].fault);
	fclose(f);
}

/* The proxies read a file at each request. */
static void set_faults(const struct plan *plan, const char *folder, unsigned int minute)
{
	for (size_t i = 0; i < plan->n_faults; i++) {
		const struct fault *fault = &plan->faults[i];
		FILE *f;

		if (minute != fault->from && minute != fault->to)
			continue;
		f = open_in(folder, fault->server, ".fault");
		fputs(minute == fault->from ? fault->fault : "none", f);
		fclose(f);
	}
}

/* ---- the profiles */

/* @grown: the values of each stack since the start of the program, for the kinds that have these */
struct series {
	unsigned int container;
	enum profile_kind kind;
	int64_t grown[HOUR_STACKS][PPROF_VALUES_MAX];
};

/* @is_killed, @in_flight: the next kill has come */
struct hour {
	const struct plan *plan;
	const char *faults;
	FILE *truth;
	struct loop *loop;
	struct loop_source *timer;
	struct loop_source *kill_timer;
	bool is_killed, in_flight;
	struct export *e;
	uint64_t start_ns;
	unsigned int window;
	uint64_t n;
	struct series series[HOUR_CONTAINERS * PROFILE_KIND_MAX];
	struct metric_sink sink;
	const char *family;
	uint64_t n_dropped, n_queued;
};

/* A number that depends on all of @seed. */
static uint64_t mix(uint64_t seed)
{
	seed = (seed ^ seed >> 31) * 0x9e3779b97f4a7c15ull;
	seed = (seed ^ seed >> 29) * 0xbf58476d1ce4e5b9ull;
	return seed ^ seed >> 32;
}

/* Up to a second or a gigabyte, and 0 now and then. */
static int64_t value_of(enum profile_kind kind, size_t type, uint64_t seed)
{
	const uint64_t random = mix(seed + (kind == PROFILE_CPU ? 0 : type));
	const int64_t n = (int64_t)(random % 1000), zero = random >> 60 == 0;

	if (kind == PROFILE_CPU)
		return (n + 1) * (type ? PROFILE_REAL_PERIOD : 1);
	return zero ? 0 : (int64_t)(random % NSEC_PER_SEC) + 1;
}

static void values_of(struct series *s, unsigned int window, unsigned int stack,
		      int64_t ret[PPROF_VALUES_MAX])
{
	const size_t number = s->container * (size_t)PROFILE_KIND_MAX + s->kind;

	for (size_t t = 0; t < profile_types[s->kind].n_types; t++)
		ret[t] = value_of(s->kind, t,
				  ((number * HOUR_SEEDS + window) * HOUR_STACKS + stack) * 8);
}

/* Values in use are those of a moment. */
static bool type_grows(const struct series *s, size_t type)
{
	return strncmp(profile_types[s->kind].types[type].type, "inuse_", 6) != 0;
}

static void put_stack(struct pprof *p, uint32_t map, unsigned int stack, const int64_t *values)
{
	uint32_t locations[4];

	for (uint32_t i = 0; i < array_size(locations); i++) {
		const uint32_t n = i ? stack / (i * 7) + i : 1000 + stack;
		struct pprof_line line = {.line = 10 + n};
		char name[32];

		snprintf(name, sizeof(name), "main.f%u", n);
		must(pprof_function(p, name, name, "/src/main.go", 5, &line.function));
		must(pprof_location(p, map, 0x401000 + n * 64ull, &line, 1, &locations[i]));
	}
	must(pprof_sample(p, locations, array_size(locations), values, NULL, 0));
}

/* @grown: values since the start of the program */
static void encode_series(struct series *s, unsigned int window, uint64_t start_ns, bool grown,
			  char **ret, size_t *ret_len)
{
	static const struct pprof_mapping program = {.limit = UINT64_MAX,
						     .path = "/app/web",
						     .build_id = "abcd01",
						     .has_functions = true};
	_cleanup_(buf_deinit) struct buf out = BUF_INIT(4u << 20);
	struct pprof_opts opts = profile_types[s->kind];
	struct pprof *p;
	uint32_t map;

	opts.time_ns = (int64_t)start_ns;
	opts.duration_ns = (int64_t)HOUR_WINDOW_NS;
	must(pprof_new(&opts, &p));
	must(pprof_mapping(p, &program, &map));
	for (unsigned int i = 0; i < HOUR_STACKS; i++) {
		int64_t values[PPROF_VALUES_MAX] = {0};

		values_of(s, window, i, values);
		for (size_t t = 0; grown && t < opts.n_types; t++)
			if (type_grows(s, t))
				values[t] += s->grown[i][t];
		put_stack(p, map, i, values);
	}
	must(pprof_encode(p, &out));
	pprof_free(p);
	*ret_len = out.len;
	*ret = buf_take(&out);
}

/* The stand-ins' names of types (e2e/backends). */
static void write_truth(struct hour *h, const struct series *s, uint64_t start_ns,
			const int64_t *sums)
{
	static const char *const kinds[PROFILE_KIND_MAX] = {"", "offcpu_", "", "mutex_", "block_"};
	const struct pprof_opts *opts = &profile_types[s->kind];

	for (size_t t = 0; t < opts->n_types; t++)
		fprintf(h->truth,
			"{\"backend\":\"sent\",\"entity\":\"c%u\",\"type\":\"%s%s\",\"unit\":\"%"
			"s\","
			"\"total\":%lld,\"time_nanos\":%llu,\"duration_nanos\":%llu}\n",
			s->container, kinds[s->kind], opts->types[t].type, opts->types[t].unit,
			(long long)sums[t], (unsigned long long)start_ns, HOUR_WINDOW_NS);
}

static void set_labels(struct labels *labels, unsigned int container)
{
	char name[32];

	snprintf(name, sizeof(name), "c%u", container);
	must(labels_set(labels, "container", name));
	if (container % 2) {
		snprintf(name, sizeof(name), "web-5d4f8c7b9-x2x%u", container);
		must(labels_set(labels, "namespace", "shop"));
		must(labels_set(labels, "pod", name));
	}
	if (container % 3 == 0)
		must(labels_set(labels, "team", "p\303\244iv\303\244 \"x\" \\ / & = %41"));
}

/* Adds a window's values to those of each stack, and to @sums. */
static void series_grow(struct series *s, unsigned int window, int64_t sums[PPROF_VALUES_MAX])
{
	for (unsigned int i = 0; i < HOUR_STACKS; i++) {
		int64_t values[PPROF_VALUES_MAX];

		values_of(s, window, i, values);
		for (size_t t = 0; t < profile_types[s->kind].n_types; t++) {
			sums[t] += values[t];
			s->grown[i][t] += values[t];
		}
	}
}

static void submit_series(struct hour *h, struct series *s, uint64_t start_ns)
{
	int64_t sums[PPROF_VALUES_MAX] = {0};
	struct profile *profile;
	char service[32];

	snprintf(service, sizeof(service), "service-%u", s->container / 4);
	profile = profile_make(s->kind, service, start_ns, 'p', 1);
	profile->duration_ns = HOUR_WINDOW_NS;
	set_labels(&profile->labels, s->container);
	free(profile->pprof);
	encode_series(s, h->window, start_ns, profile_kind_is_cumulative(s->kind), &profile->pprof,
		      &profile->pprof_len);
	if (profile_kind_is_cumulative(s->kind))
		encode_series(s, h->window, start_ns, false, &profile->pprof_delta,
			      &profile->pprof_delta_len);
	series_grow(s, h->window, sums);
	write_truth(h, s, start_ns, sums);
	export_submit(h->e, profile);
	h->n++;
}

/* ---- the hour */

static void on_flushed(void *ctx)
{
	struct hour *h = ctx;

	loop_stop(h->loop);
}

static void on_family(struct metric_sink *sink, const struct metric_family_desc *family)
{
	struct hour *h = container_of(sink, struct hour, sink);

	h->family = family->name;
}

/* A line for each number that is not 0. */
static void on_value(struct metric_sink *sink, const struct metric_value *value)
{
	struct hour *h = container_of(sink, struct hour, sink);
	const bool profiles = strcmp(h->family, "podprof_export_profiles") == 0;
	const bool rejected = strcmp(h->family, "podprof_export_partly_rejected") == 0;

	if (strcmp(h->family, "podprof_export_queue_bytes") == 0)
		h->n_queued += value->u;
	if (strcmp(h->family, "podprof_spool_recovered") == 0 && value->u)
		printf("recovered profiles %llu\n", (unsigned long long)value->u);
	if (profiles && strncmp(value->labels[1].value, "dropped", 7) == 0)
		h->n_dropped += value->u;
	if ((profiles || rejected) && value->u)
		printf("%s %s %llu\n", value->labels[0].value,
		       profiles ? value->labels[1].value : "rejected",
		       (unsigned long long)value->u);
}

/* ---- the kills */

/* Requests that wait for an answer that never comes. */
static size_t count_stalled(const struct hour *h)
{
	char path[512], line[32];
	size_t n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/collector.requests", h->faults);
	f = open_file(path, "re");
	while (fgets(line, sizeof(line), f))
		n += strcmp(line, "stall\n") == 0;
	fclose(f);
	return n;
}

/* Nothing is under way but the requests of the kill, and no profile and no acknowledgement is on
 * its way to the disk. So it is certain which profiles may arrive twice. */
static void on_kill(void *ctx)
{
	struct hour *h = ctx;
	FILE *f;

	if (!h->is_killed || clock_state.n_jobs)
		return;
	if (clock_state.n_calls != (h->in_flight ? count_stalled(h) : 0) ||
	    !clock_state.n_calls != !h->in_flight)
		return;
	export_collect(h->e, &h->sink);
	if (h->n_dropped)
		must(-EBADE);
	f = open_in(h->faults, "clock", "");
	fprintf(f, "%llu %llu %u", (unsigned long long)h->start_ns, (unsigned long long)nsec_wall(),
		h->window);
	fclose(f);
	f = open_in(h->faults, "collector", ".fault");
	fputs("none", f);
	fclose(f);
	fclose(h->truth);
	fflush(stdout);
	raise(SIGKILL);
}

static void on_kill_timer(void *ctx)
{
	struct hour *h = ctx;

	h->is_killed = true;
}

static void kill_soon(struct hour *h, bool in_flight)
{
	clock_state.idle = on_kill;
	clock_state.ctx = h;
	h->in_flight = in_flight;
	h->is_killed = in_flight;
	if (!in_flight)
		must(loop_arm(h->kill_timer, HOUR_KILL_NS, 0));
}

/* A run after a kill goes on where the killed run was. */
static void hour_resume(struct hour *h)
{
	unsigned long long start_ns, now_ns;
	char path[512];
	FILE *f;

	snprintf(path, sizeof(path), "%s/clock", h->faults);
	f = fopen(path, "re");
	if (!f) { /* the first run; the hour ends about now */
		clock_state.wall_ns = -(int64_t)(h->plan->windows * HOUR_WINDOW_NS);
		h->start_ns = nsec_wall();
		return;
	}
	if (fscanf(f, "%llu %llu %u", &start_ns, &now_ns, &h->window) != 3)
		must(-EBADE);
	fclose(f);
	clock_state.wall_ns = (int64_t)(now_ns - nsec_wall());
	h->start_ns = start_ns;
	for (size_t i = 0; i < array_size(h->series); i++)
		for (unsigned int w = 0; w < h->window; w++)
			series_grow(&h->series[i], w, (int64_t[PPROF_VALUES_MAX]){0});
}

static void on_minute(void *ctx)
{
	struct hour *h = ctx;
	const uint64_t start_ns = h->start_ns + h->window * HOUR_WINDOW_NS;

	for (size_t i = 0; i < array_size(h->series); i++)
		submit_series(h, &h->series[i], start_ns);
	h->window++;
	set_faults(h->plan, h->faults, h->window);
	for (size_t i = 0; i < array_size(h->plan->kills); i++)
		if (h->window == h->plan->kills[i].after)
			kill_soon(h, h->plan->kills[i].in_flight);
	if (h->window < h->plan->windows)
		return;
	loop_remove(take_ptr(h->timer));
	export_flush(h->e, HOUR_FLUSH_NS, on_flushed, h);
}

static void hour_start(struct hour *h, const char *spool, const char *const *destinations, size_t n)
{
	char *error = NULL;
	const struct export_opts opts = {
		.loop = h->loop,
		.destinations = destinations,
		.n_destinations = n,
		.spool_dir = spool,
		.spool_bytes = 256ull << 20,
		.queue_bytes = QUEUE_BYTES,
		.window_ns = HOUR_WINDOW_NS,
	};

	if (export_new(&opts, &h->e, &error)) {
		fprintf(stderr, "hour: %s\n", error ? error : "no memory");
		exit(1);
	}
}

int main(int argc, char **argv)
{
	struct hour *h = calloc(1, sizeof(*h));
	bool fine;

	if (!h || argc < 6)
		return 2;
	h->sink = (struct metric_sink){on_family, on_value};
	h->plan = find_plan(argv[1]);
	h->faults = argv[2];
	h->truth = open_file(argv[3], "ae");
	for (size_t i = 0; i < array_size(h->series); i++)
		h->series[i] = (struct series){.container = (unsigned int)i / PROFILE_KIND_MAX,
					       .kind = (enum profile_kind)(i % PROFILE_KIND_MAX)};
	hour_resume(h);
	must(loop_new(&h->loop));
	hour_start(h, argv[4], (const char *const *)argv + 5, (size_t)argc - 5);
	write_plan(h->plan, h->faults);
	must(loop_add_timer(h->loop, on_kill_timer, h, &h->kill_timer));
	must(loop_add_timer(h->loop, on_minute, h, &h->timer));
	must(loop_arm(h->timer, h->start_ns + (h->window + 1) * HOUR_WINDOW_NS - nsec_wall(),
		      HOUR_WINDOW_NS));
	loop_run(h->loop);
	export_collect(h->e, &h->sink);
	printf("submitted profiles %llu\nsimulated s %llu\n", (unsigned long long)h->n,
	       (unsigned long long)((nsec_wall() - h->start_ns) / NSEC_PER_SEC));
	fine = !h->n_dropped && !h->n_queued;
	export_free(h->e);
	loop_remove(h->kill_timer);
	loop_free(h->loop);
	fine = !fclose(h->truth) && fine;
	free(h);
	return fine ? 0 : 1;
}
