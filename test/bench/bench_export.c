// SPDX-License-Identifier: Apache-2.0
/*
 * How fast a queue empties into a server that answers after 0.5 s, as Pyroscope 2 does when it
 * acknowledges after the flush of a segment: windows of 200 series, for several kinds of failures.
 * Counts requests and stored profiles; "bench_export 1000" makes 1,000 series a window.
 *
 * "bench_export kinds 110" sends one window of 110 containers, each with a CPU, an off-CPU and a
 * heap profile, to each kind of destination: the CPU time of sending and encoding, without the
 * time that made the profiles.
 *
 * "bench_export burst 10000" has two windows of 20 s in their own time, without and with the pace:
 * the most bytes that the server got in a second, and the largest queue.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/profiles.h"
#include "support/sink.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/loop.h"
#include "base/metric.h"
#include "base/nsec.h"
#include "export/destination.h"
#include "export/export.h"
#include "pprof/pprof.h"
#include "support/figure.h"

#define WINDOWS	  5
#define DELAY_NS  (500 * NSEC_PER_MSEC)
#define LIMIT_NS  (120 * NSEC_PER_SEC)
/* A name with these letters is in no identifier: those are hexadecimal. */
#define BAD	  "wrong"
#define PPROF_LEN 3000

struct row {
	const char *name;
	struct sink_answer script[4];
	size_t n_bad; /* in each window */
};

#define OK                                                       \
	{                                                        \
		.status = 200, .only = BAD, .delay_ns = DELAY_NS \
	}
#define REFUSES                                                  \
	{                                                        \
		.status = 400, .only = BAD, .delay_ns = DELAY_NS \
	}
#define BUSY(n)                                                 \
	{                                                       \
		.status = 429, .times = n, .delay_ns = DELAY_NS \
	}
#define GOOD(n)                                                 \
	{                                                       \
		.status = 200, .times = n, .delay_ns = DELAY_NS \
	}

static const struct row rows[] = {
	{"no failure", {OK, OK, OK, OK}, 0},
	{"one 429 at first", {BUSY(1), OK, OK, OK}, 0},
	{"bursts of three 429", {BUSY(3), GOOD(5), BUSY(3), OK}, 0},
	{"one refused in each window", {REFUSES, REFUSES, REFUSES, REFUSES}, 1},
	{"three refused in each window", {REFUSES, REFUSES, REFUSES, REFUSES}, 3},
};

struct run {
	struct loop *loop;
	struct export *e;
	uint64_t sent, dropped;
	struct metric_sink sink;
	bool inside;
};

static void on_family(struct metric_sink *sink, const struct metric_family_desc *family)
{
	struct run *run = container_of(sink, struct run, sink);

	run->inside = strcmp(family->name, "podprof_export_profiles") == 0;
}

static void on_value(struct metric_sink *sink, const struct metric_value *value)
{
	struct run *run = container_of(sink, struct run, sink);

	if (run->inside && strcmp(value->labels[1].value, "sent") == 0)
		run->sent += value->u;
	else if (run->inside && strncmp(value->labels[1].value, "dropped", 7) == 0)
		run->dropped += value->u;
}

static void on_flushed(void *ctx)
{
	struct run *run = ctx;

	loop_stop(run->loop);
}

static void submit(struct run *run, size_t n_series, size_t n_bad)
{
	for (size_t window = 0; window < WINDOWS; window++)
		for (size_t i = 0; i < n_series; i++) {
			bool bad = n_bad && i % (n_series / n_bad) == n_series / n_bad / 3;
			char service[32];

			snprintf(service, sizeof(service), "%s%zu.", bad ? BAD : "s", i);
			export_submit(run->e,
				      profile_make(PROFILE_CPU, service,
						   nsec_wall() - (WINDOWS - window) * NSEC_PER_SEC,
						   'p', PPROF_LEN));
		}
}

static void bench(const struct row *row, size_t n_series)
{
	struct run run = {.sink = {on_family, on_value}};
	struct sink *sink = sink_new(row->script, 4, NULL);
	char spec[128], *error;
	const char *destination = spec;
	struct export_opts opts = {
		.destinations = &destination, .n_destinations = 1, .queue_bytes = 256ull << 20};
	uint64_t start_ns;

	snprintf(spec, sizeof(spec), "pyroscope=%s", sink_url(sink));
	if (loop_new(&run.loop))
		exit(1);
	opts.loop = run.loop;
	if (export_new(&opts, &run.e, &error))
		exit(1);
	submit(&run, n_series, row->n_bad);
	start_ns = nsec_monotonic();
	export_flush(run.e, LIMIT_NS, on_flushed, &run);
	loop_run(run.loop);
	export_collect(run.e, &run.sink);
	printf("%-30s %6.1f s %5zu requests, %6llu of %zu stored, %llu dropped\n", row->name,
	       (double)(nsec_monotonic() - start_ns) / 1e9, sink_n_requests(sink),
	       (unsigned long long)run.sent, WINDOWS * n_series, (unsigned long long)run.dropped);
	figure((double)(nsec_monotonic() - start_ns) / 1e9, "s", "%s", row->name);
	export_free(run.e);
	sink_free(sink);
	loop_free(run.loop);
}

/* ---- windows in their own time */

#define BURST_WINDOW_NS	 (20 * NSEC_PER_SEC)
#define BURST_WINDOWS	 2
#define BURST_TICK_NS	 (10 * NSEC_PER_MSEC)
/* Profiles of a tick: reports come one after the other, about as fast as this. */
#define BURST_TICK_PARTS 25

struct burst {
	struct run run;
	struct loop_source *timer;
	size_t n_series, n_submitted;
	uint64_t start_ns, max_queue;
};

static void on_queue_family(struct metric_sink *sink, const struct metric_family_desc *family)
{
	struct burst *b = container_of(sink, struct burst, run.sink);

	b->run.inside = strcmp(family->name, "podprof_export_queue_bytes") == 0;
}

static void on_queue_value(struct metric_sink *sink, const struct metric_value *value)
{
	struct burst *b = container_of(sink, struct burst, run.sink);

	if (b->run.inside && value->u > b->max_queue)
		b->max_queue = value->u;
}

static void on_tick(void *ctx)
{
	struct burst *b = ctx;
	uint64_t passed_ns = nsec_monotonic() - b->start_ns;
	size_t due = (passed_ns / BURST_WINDOW_NS + 1) * b->n_series;

	for (size_t i = 0; i < BURST_TICK_PARTS && b->n_submitted < due &&
			   b->n_submitted < BURST_WINDOWS * b->n_series;
	     i++, b->n_submitted++) {
		char service[32];

		snprintf(service, sizeof(service), "s%zu.", b->n_submitted % b->n_series);
		export_submit(b->run.e,
			      profile_make(PROFILE_CPU, service, nsec_wall() - BURST_WINDOW_NS, 'p',
					   PPROF_LEN));
	}
	export_collect(b->run.e, &b->run.sink);
	if (passed_ns > BURST_WINDOWS * BURST_WINDOW_NS)
		export_flush(b->run.e, LIMIT_NS, on_flushed, &b->run);
	else
		(void)loop_arm(b->timer, BURST_TICK_NS, 0);
}

/* Bytes of requests that ended within a second. */
static size_t largest_second(struct sink *sink)
{
	size_t largest = 0, bytes = 0, from = 0;

	for (size_t i = 0; i < sink_n_requests(sink); i++) {
		bytes += sink_request(sink, i)->body_len;
		while (sink_request(sink, i)->time_ns - sink_request(sink, from)->time_ns >
		       NSEC_PER_SEC)
			bytes -= sink_request(sink, from++)->body_len;
		if (bytes > largest)
			largest = bytes;
	}
	return largest;
}

static void bench_burst(size_t n_series, uint64_t window_ns)
{
	static const struct sink_answer ok = {.status = 200, .delay_ns = DELAY_NS};
	struct burst b = {.n_series = n_series, .run.sink = {on_queue_family, on_queue_value}};
	struct sink *sink = sink_new(&ok, 1, NULL);
	char spec[128], *error;
	const char *destination = spec;
	struct export_opts opts = {.destinations = &destination,
				   .n_destinations = 1,
				   .queue_bytes = 256ull << 20,
				   .window_ns = window_ns};

	snprintf(spec, sizeof(spec), "pyroscope=%s", sink_url(sink));
	if (loop_new(&b.run.loop))
		exit(1);
	opts.loop = b.run.loop;
	if (export_new(&opts, &b.run.e, &error) ||
	    loop_add_timer(b.run.loop, on_tick, &b, &b.timer))
		exit(1);
	b.start_ns = nsec_monotonic();
	(void)loop_arm(b.timer, BURST_TICK_NS, 0);
	loop_run(b.run.loop);
	printf("%-30s %6zu requests, largest second %6.2f MB, largest queue %6.2f MB\n",
	       window_ns ? "with the pace" : "at once", sink_n_requests(sink),
	       (double)largest_second(sink) / 1e6, (double)b.max_queue / 1e6);
	loop_remove(b.timer);
	export_free(b.run.e);
	sink_free(sink);
	loop_free(b.run.loop);
}

/* ---- CPU time of each kind of destination */

/* Stacks of a profile, 12 frames deep, and functions. */
#define KINDS_STACKS	300u
#define KINDS_FUNCTIONS 400u
#define KINDS_DEPTH	12u

static void must(int r)
{
	if (r)
		exit(1);
}

static void enter_function(struct pprof *p, uint32_t map, uint32_t i, uint32_t *ret)
{
	struct pprof_line line = {.line = 10 + i % 90};
	char name[64];

	snprintf(name, sizeof(name), "example.com/shop/internal/module%u.(*Server).handle%u",
		 i % 20, i);
	must(pprof_function(p, name, name, "/src/server.go", 10, &line.function));
	must(pprof_location(p, map, 0x401000 + i * 64ull, &line, 1, ret));
}

/* @own makes the stacks of one container differ from another's. */
static void encode_profile(enum profile_kind kind, uint32_t own, struct buf *ret)
{
	static const struct pprof_mapping program = {
		.limit = UINT64_MAX, .path = "/app", .has_functions = true};
	struct pprof_opts opts = profile_types[kind];
	uint32_t map, locations[KINDS_FUNCTIONS], stack[KINDS_DEPTH];
	struct pprof *p;

	opts.time_ns = (int64_t)nsec_wall();
	opts.duration_ns = 60000000000;
	must(pprof_new(&opts, &p));
	must(pprof_mapping(p, &program, &map));
	for (uint32_t i = 0; i < KINDS_FUNCTIONS; i++)
		enter_function(p, map, i, &locations[i]);
	for (uint32_t i = 0; i < KINDS_STACKS; i++) {
		const int64_t n = 1 + i % 7, values[] = {n, n * 1000, n, n * 512};

		for (uint32_t k = 0; k < KINDS_DEPTH; k++)
			stack[k] = locations[(i * (k + 3) + own + k * k) % KINDS_FUNCTIONS];
		must(pprof_sample(p, stack, KINDS_DEPTH, values, NULL, 0));
	}
	must(pprof_encode(p, ret));
	pprof_free(p);
}

static struct profile *make_profile(enum profile_kind kind, uint32_t own)
{
	_cleanup_(buf_deinit) struct buf bytes = BUF_INIT(1u << 20);
	char service[32];
	struct profile *profile;

	snprintf(service, sizeof(service), "service-%u", own);
	profile = profile_make(kind, service, nsec_wall() - 60 * NSEC_PER_SEC, 'p', 1);
	encode_profile(kind, own, &bytes);
	free(profile->pprof);
	profile->pprof_len = bytes.len;
	profile->pprof = buf_take(&bytes);
	return profile;
}

/* CPU time of a thread of this process; of the server's threads none. */
static uint64_t task_ns(const char *tid)
{
	char path[64], text[64] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%.20s/comm", tid);
	f = fopen(path, "re");
	if (!f || !fgets(text, sizeof(text), f))
		exit(1);
	fclose(f);
	if (strncmp(text, "MHD", 3) == 0)
		return 0;
	snprintf(path, sizeof(path), "/proc/self/task/%.20s/schedstat", tid);
	f = fopen(path, "re");
	if (!f || !fgets(text, sizeof(text), f))
		exit(1);
	fclose(f);
	return strtoull(text, NULL, 10);
}

/* CPU time of the loop and of the encoder. */
static uint64_t cpu_ns(void)
{
	DIR *tasks = opendir("/proc/self/task");
	const struct dirent *task;
	uint64_t sum = 0;

	if (!tasks)
		exit(1);
	while ((task = readdir(tasks)))
		if (task->d_name[0] != '.')
			sum += task_ns(task->d_name);
	closedir(tasks);
	return sum;
}

/* The CPU time without the making of the profiles. */
static uint64_t send_window(struct run *run, size_t n_containers)
{
	static const enum profile_kind kinds[] = {PROFILE_CPU, PROFILE_OFF_CPU, PROFILE_GO_HEAP};
	uint64_t used_ns = 0, before_ns;

	for (uint32_t i = 0; i < n_containers * array_size(kinds); i++) {
		struct profile *profile = make_profile(kinds[i % array_size(kinds)], i);

		before_ns = nsec_read(CLOCK_THREAD_CPUTIME_ID);
		export_submit(run->e, profile);
		used_ns += nsec_read(CLOCK_THREAD_CPUTIME_ID) - before_ns;
	}
	before_ns = cpu_ns();
	export_flush(run->e, LIMIT_NS, on_flushed, run);
	loop_run(run->loop);
	return used_ns + cpu_ns() - before_ns;
}

static void bench_kind(const char *kind, size_t n_containers)
{
	static const struct sink_answer ok = {.status = 200};
	struct run run = {.sink = {on_family, on_value}};
	struct sink *sink = sink_new(&ok, 1, NULL);
	const bool folder = strcmp(kind, "file") == 0;
	char dir[] = "/tmp/bench_export.XXXXXX", spec[128], command[64], *error;
	const char *destination = spec;
	struct export_opts opts = {
		.destinations = &destination, .n_destinations = 1, .queue_bytes = 256ull << 20};
	uint64_t used_ns, bytes = 0;

	if (!mkdtemp(dir))
		exit(1);
	snprintf(spec, sizeof(spec), "%s=%s", kind, folder ? dir : sink_url(sink));
	must(loop_new(&run.loop));
	opts.loop = run.loop;
	must(export_new(&opts, &run.e, &error));
	used_ns = send_window(&run, n_containers);
	export_collect(run.e, &run.sink);
	for (size_t i = 0; i < sink_n_requests(sink); i++)
		bytes += sink_request(sink, i)->body_len;
	printf("%-10s %8.1f ms of CPU, %5llu sent in %5zu requests of %9llu bytes, %llu dropped\n",
	       kind, (double)used_ns / 1e6, (unsigned long long)run.sent, sink_n_requests(sink),
	       (unsigned long long)bytes, (unsigned long long)run.dropped);
	figure((double)used_ns / 1e6, "ms", "CPU of %s", kind);
	figure((double)bytes, "bytes", "sent by %s", kind);
	export_free(run.e);
	sink_free(sink);
	loop_free(run.loop);
	snprintf(command, sizeof(command), "rm -r %s", dir);
	must(system(command)); // NOLINT(cert-env33-c)
}

int main(int argc, char **argv)
{
	size_t n_series = argc > 1 ? strtoul(argv[1], NULL, 10) : 200;

	if (argc > 2 && strcmp(argv[1], "burst") == 0) {
		bench_burst(strtoul(argv[2], NULL, 10), 0);
		bench_burst(strtoul(argv[2], NULL, 10), BURST_WINDOW_NS);
		return 0;
	}
	if (argc > 2 && strcmp(argv[1], "kinds") == 0) {
		for (size_t i = 0; destination_kinds[i]; i++)
			bench_kind(destination_kinds[i]->name, strtoul(argv[2], NULL, 10));
		return 0;
	}
	for (size_t i = 0; i < array_size(rows); i++)
		bench(&rows[i], n_series);
	return 0;
}
