// SPDX-License-Identifier: Apache-2.0
/* Profiles on their whole way to a scripted server. */
#include "support/test.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "support/allocfail.h"
#include "support/profiles.h"
#include "support/sink.h"
#include "support/until.h"

#include "base/buf.h"
#include "base/loop.h"
#include "base/metric.h"
#include "base/nsec.h"
#include "base/root.h"
#include "export/destination.h"
#include "export/export.h"
#include "export/outbox.h"
#include "export/rewrite.h"
#include "export/store.h"
#include "pprof/pprof.h"
#include "push.pb-c.h"

#define QUEUE_BYTES (64ull << 20)

struct fixture {
	struct loop *loop;
	struct sink *sink;
	struct export *e;
	size_t submitted;
	bool flushed;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	unsetenv("http_proxy");
	unsetenv("https_proxy");
	unsetenv("all_proxy");
	unsetenv("ALL_PROXY");
	assert_int_equal(loop_new(&f->loop), 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	export_free(f->e);
	sink_free(f->sink);
	loop_free(f->loop);
	free(f);
	return 0;
}

/* Exports to the sink; @more follows the URL. */
static int start(struct fixture *f, const char *more)
{
	_cleanup_(freep) char *error = NULL;
	char spec[512];
	const char *destination = spec;
	struct export_opts opts = {.loop = f->loop,
				   .destinations = &destination,
				   .n_destinations = 1,
				   .queue_bytes = QUEUE_BYTES};

	f->submitted = 0;
	snprintf(spec, sizeof(spec), "pyroscope=%s%s", sink_url(f->sink), more);
	return export_new(&opts, &f->e, &error);
}

static void submit(struct fixture *f, size_t n, size_t bytes)
{
	for (size_t i = 0; i < n; i++, f->submitted++) {
		char service[16];

		snprintf(service, sizeof(service), "s%zu", f->submitted);
		export_submit(f->e, profile_make(PROFILE_CPU, service, nsec_wall(), 'p', bytes));
	}
}

static void on_flushed(void *ctx)
{
	struct fixture *f = ctx;

	f->flushed = true;
}

static bool is_flushed(void *ctx)
{
	struct fixture *f = ctx;

	return f->flushed;
}

static void flush(struct fixture *f, uint64_t timeout_ns)
{
	f->flushed = false;
	export_flush(f->e, timeout_ns, on_flushed, f);
	assert_false(f->flushed); /* never at once: the caller may not be ready */
	loop_until(f->loop, is_flushed, f);
}

/* ---- metrics */

struct reader {
	struct metric_sink sink;
	const char *family, *destination, *outcome;
	bool inside;
	size_t n;
	uint64_t sum;
};

static void reader_family(struct metric_sink *sink, const struct metric_family_desc *family)
{
	struct reader *r = container_of(sink, struct reader, sink);

	r->inside = strcmp(family->name, r->family) == 0;
}

static void reader_value(struct metric_sink *sink, const struct metric_value *value)
{
	struct reader *r = container_of(sink, struct reader, sink);

	if (!r->inside)
		return;
	for (size_t i = 0; i < value->n_labels; i++) {
		const struct metric_label *l = &value->labels[i];

		if (r->destination && strcmp(l->name, "destination") == 0 &&
		    strcmp(l->value, r->destination) != 0)
			return;
		if (r->outcome && strcmp(l->name, "outcome") == 0 &&
		    strcmp(l->value, r->outcome) != 0)
			return;
	}
	r->n++;
	r->sum += value->u;
}

/* The sum of the family's values with these labels; NULL matches any. Fails without a value. */
static uint64_t metric(struct fixture *f, const char *family, const char *destination,
		       const char *outcome)
{
	struct reader r = {.sink = {reader_family, reader_value},
			   .family = family,
			   .destination = destination,
			   .outcome = outcome};

	export_collect(f->e, &r.sink);
	assert_true(r.n > 0);
	return r.sum;
}

static uint64_t count(struct fixture *f, enum export_outcome outcome)
{
	return metric(f, "podprof_export_profiles", NULL, export_outcome_name(outcome));
}

/* Every profile has one outcome, and none is left. */
static void assert_all_ended(struct fixture *f)
{
	assert_int_equal(metric(f, "podprof_export_profiles", NULL, NULL) -
				 count(f, EXPORT_RETRIED),
			 f->submitted);
	assert_int_equal(metric(f, "podprof_export_queue_bytes", NULL, NULL), 0);
}

/* ---- requests */

static Push__V1__PushRequest *unpack(struct fixture *f, size_t i)
{
	const struct sink_request *request = sink_request(f->sink, i);
	Push__V1__PushRequest *push = push__v1__push_request__unpack(
		NULL, request->body_len, (const uint8_t *)request->body);

	assert_non_null(push);
	return push;
}

static size_t n_series(struct fixture *f, size_t i)
{
	Push__V1__PushRequest *push = unpack(f, i);
	size_t n = push->n_series;

	push__v1__push_request__free_unpacked(push, NULL);
	return n;
}

static void test_request(void **state)
{
	static const struct sink_answer ok = {.status = 200, .body = "{}"};
	struct fixture *f = *state;
	const struct sink_request *seen;

	f->sink = sink_new(&ok, 1, NULL);
	assert_int_equal(start(f, "/base,tenant=team"), 0);
	submit(f, 3, 10);
	flush(f, 30 * NSEC_PER_SEC);
	assert_int_equal(sink_n_requests(f->sink), 1);
	assert_int_equal(n_series(f, 0), 3);
	seen = sink_request(f->sink, 0);
	assert_string_equal(seen->method, "POST");
	assert_string_equal(seen->path, "/base/push.v1.PusherService/Push");
	assert_string_equal(seen->content_type, "application/proto");
	assert_string_equal(seen->connect_version, "1");
	assert_string_equal(seen->tenant, "team");
	assert_null(seen->authorization);
	assert_int_equal(count(f, EXPORT_SENT), 3);
	assert_int_equal(metric(f, "podprof_export_bytes", "pyroscope", "sent"), 30);
	assert_int_equal(metric(f, "podprof_export_queue_limit_bytes", NULL, NULL), QUEUE_BYTES);
	assert_all_ended(f);
}

/* Also without export_flush(): submitted profiles leave on their own, and at once. */
static bool all_sent(void *ctx)
{
	struct fixture *f = ctx;

	return count(f, EXPORT_SENT) == f->submitted;
}

static void test_by_itself(void **state)
{
	static const struct sink_answer ok = {.status = 200};
	struct fixture *f = *state;

	f->sink = sink_new(&ok, 1, NULL);
	assert_int_equal(start(f, ""), 0);
	for (size_t window = 0; window < 3; window++) {
		submit(f, 2, 10);
		loop_until(f->loop, all_sent, f);
	}
	assert_int_equal(sink_n_requests(f->sink), 3);
	assert_int_equal(sink_n_connections(f->sink), 1);
}

struct reply_row {
	const char *name;
	struct sink_answer script[2];
	enum export_outcome outcome;
	size_t n_requests;
};

#define THEN_OK               \
	{                     \
		.status = 200 \
	}

static const struct reply_row reply_rows[] = {
	{"any 2xx", {{.status = 204}, THEN_OK}, EXPORT_SENT, 1},
	{"a redirect", {{.status = 307, .location = "/x"}, THEN_OK}, EXPORT_DROPPED_REFUSED, 1},
	{"400", {{.status = 400}, THEN_OK}, EXPORT_DROPPED_REFUSED, 1},
	{"401", {{.status = 401}, THEN_OK}, EXPORT_DROPPED_DENIED, 1},
	{"403", {{.status = 403}, THEN_OK}, EXPORT_DROPPED_DENIED, 1},
	{"404", {{.status = 404}, THEN_OK}, EXPORT_DROPPED_REFUSED, 1},
	{"408", {{.status = 408}, THEN_OK}, EXPORT_SENT, 2},
	{"413 alone", {{.status = 413}, THEN_OK}, EXPORT_DROPPED_TOO_LARGE, 1},
	{"415", {{.status = 415}, THEN_OK}, EXPORT_DROPPED_REFUSED, 1},
	{"422", {{.status = 422}, THEN_OK}, EXPORT_DROPPED_REFUSED, 1},
	{"429", {{.status = 429}, THEN_OK}, EXPORT_SENT, 2},
	{"500", {{.status = 500}, THEN_OK}, EXPORT_SENT, 2},
	{"502", {{.status = 502}, THEN_OK}, EXPORT_SENT, 2},
	{"504", {{.status = 504}, THEN_OK}, EXPORT_SENT, 2},
	{"closed", {{.how = SINK_CLOSE}, THEN_OK}, EXPORT_SENT, 2},
	{"a message without end",
	 {{.status = 500, .body = "0123456789", .body_repeat = 1000000}, THEN_OK},
	 EXPORT_SENT,
	 2},
	{"a message with control characters",
	 {{.status = 400, .body = "{\"message\":\"a\\u001b[31m\\nb\"}"}, THEN_OK},
	 EXPORT_DROPPED_REFUSED,
	 1},
	{"a message with a zero",
	 {{.status = 400, .body = "{\"message\":\"a\\u0000b\"}"}, THEN_OK},
	 EXPORT_DROPPED_REFUSED,
	 1},
	{"a message that is JSON in JSON",
	 {{.status = 400, .body = "[[[[[[[[", .body_repeat = 5000}, THEN_OK},
	 EXPORT_DROPPED_REFUSED,
	 1},
};

static void test_replies(void **state)
{
	struct fixture *f = *state;

	for (size_t i = 0; i < array_size(reply_rows); i++) {
		const struct reply_row *row = &reply_rows[i];

		row_begin(row->name);
		f->sink = sink_new(row->script, 2, NULL);
		assert_int_equal(start(f, ""), 0);
		submit(f, 1, 10);
		flush(f, 30 * NSEC_PER_SEC);
		assert_int_equal(sink_n_requests(f->sink), row->n_requests);
		assert_int_equal(count(f, row->outcome), 1);
		assert_int_equal(count(f, EXPORT_RETRIED), row->n_requests - 1);
		assert_all_ended(f);
		export_free(take_ptr(f->e));
		sink_free(take_ptr(f->sink));
	}
}

/* The ids by which a server may recognise known profiles. */
static void assert_same_ids(struct fixture *f, size_t i, size_t j)
{
	Push__V1__PushRequest *a = unpack(f, i), *b = unpack(f, j);

	assert_int_equal(a->n_series, b->n_series);
	for (size_t k = 0; k < a->n_series; k++)
		assert_string_equal(a->series[k]->samples[0]->id, b->series[k]->samples[0]->id);
	push__v1__push_request__free_unpacked(a, NULL);
	push__v1__push_request__free_unpacked(b, NULL);
}

/* Standard error since the begin, as text; the test's own output continues as before. */
static int capture_begin(const char *path)
{
	int saved = dup(STDERR_FILENO),
	    fd = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);

	assert_true(saved >= 0 && fd >= 0);
	assert_int_equal(dup2(fd, STDERR_FILENO), STDERR_FILENO);
	close(fd);
	return saved;
}

/* The text in @ret, ended by a NUL; the file is gone afterwards. */
static const char *capture_end(const char *path, int saved, struct buf *ret)
{
	static const struct root anywhere = {.fd = AT_FDCWD};

	assert_int_equal(dup2(saved, STDERR_FILENO), STDERR_FILENO);
	close(saved);
	assert_int_equal(root_read(&anywhere, path, ret), 0);
	assert_int_equal(buf_append(ret, "", 1), 0);
	unlink(path);
	return (const char *)ret->data;
}

static size_t occurrences(const char *text, const char *what)
{
	size_t n = 0;

	for (const char *at = text; (at = strstr(at, what)); at++)
		n++;
	return n;
}

static void test_recovers(void **state)
{
	static const struct sink_answer script[] = {
		{.status = 500,
		 .times = 3,
		 .body = "{\"code\":\"internal\",\"message\":\"disk full\"}"},
		{.status = 200},
	};
	char path[] = "/tmp/podprof-log-XXXXXX";
	_cleanup_(buf_deinit) struct buf log = BUF_INIT(65536);
	struct fixture *f = *state;
	const char *text;
	int saved;

	close(mkstemp(path));
	f->sink = sink_new(script, array_size(script), NULL);
	assert_int_equal(start(f, ""), 0);
	saved = capture_begin(path);
	submit(f, 5, 1000);
	loop_until(f->loop, all_sent, f);
	text = capture_end(path, saved, &log);

	row_begin("nothing lost, all counted");
	assert_int_equal(sink_n_requests(f->sink), 4);
	assert_int_equal(count(f, EXPORT_SENT), 5);
	assert_int_equal(count(f, EXPORT_RETRIED), 15);
	assert_int_equal(metric(f, "podprof_export_bytes", NULL, "sent"), 5000);
	assert_all_ended(f);
	assert_same_ids(f, 0, 3);

	row_begin("one line when it fails, one when it works again");
	assert_int_equal(occurrences(text, "\n"), 2);
	assert_int_equal(occurrences(text, "level=warn"), 1);
	assert_int_equal(occurrences(text, "err=\"disk full\""), 1);
	assert_int_equal(occurrences(text, "status=500"), 1);
	assert_int_equal(occurrences(text, "destination works again"), 1);
}

static void test_retry_after(void **state)
{
	static const struct sink_answer script[] = {
		{.status = 429, .retry_after = "1"},
		{.status = 200},
	};
	struct fixture *f = *state;

	f->sink = sink_new(script, array_size(script), NULL);
	assert_int_equal(start(f, ""), 0);
	submit(f, 1, 10);
	loop_until(f->loop, all_sent, f);
	assert_int_equal(sink_n_requests(f->sink), 2);
	assert_true(sink_request(f->sink, 1)->time_ns - sink_request(f->sink, 0)->time_ns >=
		    NSEC_PER_SEC);
}

struct batch_row {
	const char *name;
	size_t n;
	size_t bytes;
	struct sink_answer script[2];
	size_t sizes[8]; /* series in each request, from the largest on, up to 0 */
	enum export_outcome outcome;
};

static const struct batch_row batch_rows[] = {
	{"as many as may be", 256, 10, {THEN_OK, THEN_OK}, {256}, EXPORT_SENT},
	{"one more", 257, 10, {THEN_OK, THEN_OK}, {256, 1}, EXPORT_SENT},
	{"as large as may be", 2, 1 << 19, {THEN_OK, THEN_OK}, {2}, EXPORT_SENT},
	{"larger", 2, (1 << 19) + 1, {THEN_OK, THEN_OK}, {1, 1}, EXPORT_SENT},
	{"larger alone", 1, 9 << 20, {THEN_OK, THEN_OK}, {1}, EXPORT_SENT},
	{"smaller after a 413", 4, 100000, {{.status = 413}, THEN_OK}, {4, 2, 2}, EXPORT_SENT},
	{"smaller after a 429", 4, 100000, {{.status = 429}, THEN_OK}, {4, 2, 2}, EXPORT_SENT},
	{"none again after a 400", 4, 100000, {{.status = 400}, THEN_OK}, {4}, EXPORT_UNKNOWN},
	{"smaller and smaller, in vain",
	 2,
	 100000,
	 {{.status = 413, .times = 3}, THEN_OK},
	 {2, 1, 1},
	 EXPORT_DROPPED_TOO_LARGE},
	{"not without end",
	 3,
	 10,
	 {{.status = 413, .times = 5}, THEN_OK},
	 {3, 3, 1, 1, 1},
	 EXPORT_DROPPED_TOO_LARGE},
	{"alone below the lowest ceiling",
	 3,
	 10,
	 {{.status = 413, .times = 2}, THEN_OK},
	 {3, 3, 1, 1, 1},
	 EXPORT_SENT},
};

static int compare_sizes(const void *a, const void *b)
{
	size_t x = *(const size_t *)a, y = *(const size_t *)b;

	return (x < y) - (x > y);
}

static void test_batches(void **state)
{
	struct fixture *f = *state;

	for (size_t i = 0; i < array_size(batch_rows); i++) {
		const struct batch_row *row = &batch_rows[i];
		size_t sizes[array_size(row->sizes)], n = 0;

		row_begin(row->name);
		f->sink = sink_new(row->script, 2, NULL);
		assert_int_equal(start(f, ""), 0);
		submit(f, row->n, row->bytes);
		flush(f, 30 * NSEC_PER_SEC);
		while (row->sizes[n])
			n++;
		assert_int_equal(sink_n_requests(f->sink), n);
		for (size_t k = 0; k < n; k++)
			sizes[k] = n_series(f, k);
		qsort(sizes, n, sizeof(sizes[0]), compare_sizes); /* some are sent together */
		for (size_t k = 0; k < n; k++)
			assert_int_equal(sizes[k], row->sizes[k]);
		assert_int_equal(count(f, row->outcome), row->n);
		assert_all_ended(f);
		export_free(take_ptr(f->e));
		sink_free(take_ptr(f->sink));
	}
}

/* The number in the service name of a push with one profile. */
static size_t service_of(struct fixture *f, size_t i)
{
	Push__V1__PushRequest *push = unpack(f, i);
	size_t service = SIZE_MAX;

	assert_int_equal(push->n_series, 1);
	for (size_t j = 0; j < push->series[0]->n_labels; j++)
		if (strcmp(push->series[0]->labels[j]->name, "service_name") == 0)
			service = strtoul(push->series[0]->labels[j]->value + 1, NULL, 10);
	push__v1__push_request__free_unpacked(push, NULL);
	return service;
}

/* A profile refused for its rate, alone, does not delay the others. */
static void test_behind(void **state)
{
	static const struct sink_answer script[] = {
		{.status = 429, .times = 2}, {.status = 503}, {.status = 200}};
	static const size_t order[] = {0, 1, 1}; /* from the second request on */
	struct fixture *f = *state;

	f->sink = sink_new(script, array_size(script), NULL);
	assert_int_equal(start(f, ""), 0);
	submit(f, 3, 10);
	loop_until(f->loop, all_sent, f);
	assert_int_equal(sink_n_requests(f->sink), 2 + array_size(order));
	assert_int_equal(n_series(f, 0), 3);
	for (size_t i = 0; i < array_size(order); i++)
		assert_int_equal(service_of(f, i + 1), order[i]);
	assert_int_equal(n_series(f, 1 + array_size(order)), 2);
	assert_all_ended(f);
}

static void write_token(const char *path, const char *token)
{
	_cleanup_(fclosep) FILE *file = fopen(path, "w");

	assert_true(fputs(token, file) >= 0);
}

static bool has_failed(void *ctx)
{
	return count(ctx, EXPORT_RETRIED) > 0;
}

static void test_token_rotates(void **state)
{
	static const struct sink_answer ok = {.status = 200};
	char path[] = "/tmp/podprof-token-XXXXXX", more[128];
	struct fixture *f = *state;

	close(mkstemp(path));
	unlink(path);
	f->sink = sink_new(&ok, 1, NULL);
	snprintf(more, sizeof(more), ",bearer-token-file=%s", path);
	assert_int_equal(start(f, more), 0);

	row_begin("a token that is not there yet is waited for");
	submit(f, 1, 10);
	loop_until(f->loop, has_failed, f);
	assert_int_equal(sink_n_requests(f->sink), 0);
	write_token(path, "first\n");
	loop_until(f->loop, all_sent, f);
	assert_string_equal(sink_request(f->sink, 0)->authorization, "Bearer first");

	row_begin("another one counts from the next request on");
	write_token(path, "second\n");
	submit(f, 1, 10);
	loop_until(f->loop, all_sent, f);
	assert_string_equal(sink_request(f->sink, 1)->authorization, "Bearer second");
	unlink(path);
}

static void test_own_headers(void **state)
{
	static const struct sink_answer ok = {.status = 200};
	char path[] = "/tmp/podprof-header-XXXXXX", more[128];
	struct fixture *f = *state;

	close(mkstemp(path));
	setenv("PODPROF_TEST_HEADER", "X-Scope-OrgID: team", 1);
	f->sink = sink_new(&ok, 1, NULL);
	snprintf(more, sizeof(more), ",header-file=%s,header-env=PODPROF_TEST_HEADER", path);
	write_token(path, "a: b\nc: d\n");
	assert_int_equal(start(f, more), 0);
	row_begin("a profile waits while the file has no header");
	submit(f, 1, 10);
	loop_until(f->loop, has_failed, f);
	assert_int_equal(sink_n_requests(f->sink), 0);
	row_begin("all headers");
	write_token(path, "X-Own: a: b\n");
	loop_until(f->loop, all_sent, f);
	assert_string_equal(sink_request(f->sink, 0)->own, "a: b");
	assert_string_equal(sink_request(f->sink, 0)->tenant, "team");
	unlink(path);
}

/* A CPU profile with a frame that has a placeholder only. */
static struct profile *make_unnamed(void)
{
	static const struct pprof_opts opts = {.types = {{"samples", "count"}},
					       .n_types = 1,
					       .period_type = {"cpu", "nanoseconds"}};
	static const struct pprof_mapping mapping = {.path = "/lib/x.so", .build_id = "abcd"};
	_cleanup_(buf_deinit) struct buf bytes = BUF_INIT(1u << 20);
	struct profile *profile = profile_make(PROFILE_CPU, "unnamed", nsec_wall(), 'p', 1);
	struct pprof_line line = {0};
	uint32_t map, at;
	struct pprof *p;

	assert_int_equal(pprof_new(&opts, &p), 0);
	assert_int_equal(pprof_mapping(p, &mapping, &map), 0);
	assert_int_equal(pprof_function(p, "x.so+0x12", "", "", 0, &line.function), 0);
	assert_int_equal(pprof_location(p, map, 0x12, &line, 1, &at), 0);
	assert_int_equal(pprof_sample(p, &at, 1, (const int64_t[]){1}, NULL, 0), 0);
	assert_int_equal(pprof_encode(p, &bytes), 0);
	pprof_free(p);
	free(profile->pprof);
	profile->pprof_len = bytes.len;
	profile->pprof = buf_take(&bytes);
	return profile;
}

static void test_server_symbols(void **state)
{
	static const struct sink_answer ok = {.status = 200};
	_cleanup_(buf_deinit) struct buf without = BUF_INIT(1u << 20);
	struct profile *profile = make_unnamed();
	_cleanup_(freep) char *with = malloc(profile->pprof_len);
	const size_t n = profile->pprof_len;
	struct fixture *f = *state;
	const struct sink_request *seen;

	assert_non_null(with);
	memcpy(with, profile->pprof, n);
	assert_int_equal(
		rewrite_without(&(struct destination_profile){.pprof = with, .pprof_len = n},
				&(struct rewrite){.placeholders = true}, &without),
		0);
	f->sink = sink_new(&ok, 1, NULL);
	assert_int_equal(start(f, ",server-symbols=true"), 0);
	export_submit(f->e, profile);
	f->submitted++;
	loop_until(f->loop, all_sent, f);
	seen = sink_request(f->sink, 0);
	assert_non_null(memmem(seen->body, seen->body_len, without.data, without.len));
	assert_null(memmem(seen->body, seen->body_len, with, n));
}

/* A CPU profile with a name of a thread. */
static struct profile *make_named(void)
{
	static const struct pprof_opts opts = {.types = {{"samples", "count"}},
					       .n_types = 1,
					       .period_type = {"cpu", "nanoseconds"}};
	static const struct pprof_label label = {.key = PROFILE_THREAD, .str = "main"};
	_cleanup_(buf_deinit) struct buf bytes = BUF_INIT(1u << 20);
	struct profile *profile = profile_make(PROFILE_CPU, "named", nsec_wall(), 'p', 1);
	struct pprof *p;

	assert_int_equal(pprof_new(&opts, &p), 0);
	assert_int_equal(pprof_sample(p, NULL, 0, (const int64_t[]){1}, &label, 1), 0);
	assert_int_equal(pprof_encode(p, &bytes), 0);
	pprof_free(p);
	free(profile->pprof);
	profile->pprof_len = bytes.len;
	profile->pprof = buf_take(&bytes);
	profile->thread_names = true;
	return profile;
}

/* Pyroscope gets names of threads only if the user wants it. */
static void check_thread_names(struct fixture *f, const char *keys, bool keeps)
{
	static const struct sink_answer ok = {.status = 200};
	struct profile *profile = make_named();
	const size_t n = profile->pprof_len;
	_cleanup_(freep) char *with = malloc(n);
	const struct sink_request *seen;

	row_begin(keys);
	assert_non_null(with);
	memcpy(with, profile->pprof, n);
	f->sink = sink_new(&ok, 1, NULL);
	assert_int_equal(start(f, keys), 0);
	export_submit(f->e, profile);
	f->submitted++;
	loop_until(f->loop, all_sent, f);
	seen = sink_request(f->sink, 0);
	assert_int_equal(memmem(seen->body, seen->body_len, with, n) != NULL, keeps);
}

static void test_no_thread_names(void **state)
{
	check_thread_names(*state, "", false);
}

static void test_thread_names(void **state)
{
	check_thread_names(*state, ",thread-names=true", true);
}

static bool was_refused(void *ctx)
{
	struct fixture *f = ctx;

	return sink_n_requests(f->sink) == 1;
}

/* Only the destinations with the key get program files. */
static void test_program_files(void **state)
{
	static const struct sink_answer refused = {.status = 404};
	_cleanup_(freep) char *error = NULL, *with = NULL, *without = NULL;
	struct fixture *f = *state;
	const char *destinations[2];
	struct export_opts opts = {
		.loop = f->loop, .destinations = destinations, .queue_bytes = QUEUE_BYTES};

	f->sink = sink_new(&refused, 1, NULL);
	assert_true(asprintf(&without, "parca=%s,server-symbols=true", sink_url(f->sink)) > 0);
	assert_true(asprintf(&with, "%s,debuginfo=true", without) > 0);
	destinations[0] = without;
	destinations[1] = with;
	opts.n_destinations = 1;
	assert_int_equal(export_new(&opts, &f->e, &error), 0);
	assert_false(export_wants_files(f->e));
	export_offer_file(f->e, 1, "0123456789abcdef", STDIN_FILENO);
	export_free(f->e);
	opts.n_destinations = 2;
	assert_int_equal(export_new(&opts, &f->e, &error), 0);
	assert_true(export_wants_files(f->e));
	export_offer_file(f->e, 1, "0123456789abcdef", STDIN_FILENO);
	loop_until(f->loop, was_refused, f);
	assert_string_equal(sink_request(f->sink, 0)->path, "/api/shouldinitiateupload");
}

static void test_too_old(void **state)
{
	static const struct sink_answer ok = {.status = 200};
	struct fixture *f = *state;

	f->sink = sink_new(&ok, 1, NULL);
	assert_int_equal(start(f, ""), 0);
	export_submit(f->e,
		      profile_make(PROFILE_CPU, "s", nsec_wall() - 3600 * NSEC_PER_SEC, 'p', 1));
	f->submitted++;
	flush(f, 30 * NSEC_PER_SEC);
	assert_int_equal(sink_n_requests(f->sink), 0);
	assert_int_equal(count(f, EXPORT_DROPPED_OLD), 1);
	assert_all_ended(f);
}

static void test_flush_gives_up(void **state)
{
	static const struct sink_answer hang = {.how = SINK_HANG};
	struct fixture *f = *state;

	f->sink = sink_new(&hang, 1, NULL);
	assert_int_equal(start(f, ""), 0);
	row_begin("nothing to do");
	flush(f, 30 * NSEC_PER_SEC);
	row_begin("a server that never answers");
	submit(f, 2, 10);
	flush(f, 200 * NSEC_PER_MSEC);
	assert_int_equal(count(f, EXPORT_SENT), 0);
	assert_true(metric(f, "podprof_export_queue_bytes", NULL, NULL) > 0);
}

/* No metric tells after the end. */
static void test_end_tells_of_losses(void **state)
{
	static const struct sink_answer script[] = {{.status = 200, .times = 1},
						    {.how = SINK_HANG}};
	char path[] = "/tmp/podprof-log-XXXXXX";
	_cleanup_(buf_deinit) struct buf log = BUF_INIT(65536);
	struct fixture *f = *state;
	const char *text;
	int saved;

	close(mkstemp(path));
	f->sink = sink_new(script, array_size(script), NULL);
	assert_int_equal(start(f, ""), 0);
	saved = capture_begin(path);
	submit(f, 1, 10);
	flush(f, 30 * NSEC_PER_SEC);
	assert_int_equal(count(f, EXPORT_SENT), 1);
	submit(f, 2, 10);
	flush(f, 200 * NSEC_PER_MSEC);
	export_free(take_ptr(f->e));
	text = capture_end(path, saved, &log);
	assert_int_equal(occurrences(text, "losing them"), 1);
	assert_non_null(strstr(text, "destination=pyroscope profiles=2\n"));
}

/* One destination works, the other two have no listener. */
static void test_several(void **state)
{
	static const struct sink_answer ok = {.status = 200};
	static const char down[] = "pyroscope=http://127.0.0.1:1";
	_cleanup_(freep) char *error = NULL;
	struct fixture *f = *state;
	char spec[128];
	const char *destinations[] = {down, spec, down};
	struct export_opts opts = {.loop = f->loop,
				   .destinations = destinations,
				   .n_destinations = array_size(destinations),
				   .queue_bytes = QUEUE_BYTES};
	char name[64];

	f->sink = sink_new(&ok, 1, NULL);
	snprintf(spec, sizeof(spec), "pyroscope=%s", sink_url(f->sink));
	snprintf(name, sizeof(name), "pyroscope:%s", sink_url(f->sink) + strlen("http://"));
	assert_int_equal(export_new(&opts, &f->e, &error), 0);
	assert_true(export_has_destinations(f->e));
	submit(f, 2, 10);
	loop_until(f->loop, all_sent, f);
	assert_int_equal(metric(f, "podprof_export_profiles", name, "sent"), 2);
	flush(f, 100 * NSEC_PER_MSEC);
	for (size_t i = 0; i < 2; i++) {
		const char *other = i ? "pyroscope:127.0.0.1:1#2" : "pyroscope:127.0.0.1:1";

		assert_int_equal(metric(f, "podprof_export_profiles", other, "sent"), 0);
		assert_true(metric(f, "podprof_export_profiles", other, "retried") >= 2);
		assert_true(metric(f, "podprof_export_queue_bytes", other, NULL) > 20);
	}
}

static void test_none(void **state)
{
	struct export_opts opts = {.queue_bytes = QUEUE_BYTES};
	struct fixture *f = *state;

	opts.loop = f->loop;
	assert_int_equal(export_new(&opts, &f->e, &(char *){NULL}), 0);
	assert_false(export_has_destinations(f->e));
	submit(f, 3, 10);
	flush(f, 30 * NSEC_PER_SEC);
}

static void test_wrong(void **state)
{
	const char *destinations[] = {"pyroscope=http://127.0.0.1:1", "jaeger=http://127.0.0.1:2"};
	struct fixture *f = *state;
	struct export_opts opts = {.loop = f->loop,
				   .destinations = destinations,
				   .n_destinations = 2,
				   .queue_bytes = QUEUE_BYTES};
	_cleanup_(freep) char *error = NULL;

	assert_int_equal(export_new(&opts, &f->e, &error), 1);
	assert_null(f->e);
	assert_non_null(
		strstr(error, "unknown destination kind 'jaeger'; the kinds are: pyroscope, "));
}

/* A folder of the test, removed with its contents. */
static void remove_folder(const char *folder)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", folder);
	assert_int_equal(system(command), 0);
}

static void test_store(void **state)
{
	static char dir[64]; /* until teardown() */
	char folder[] = "/tmp/podprof-store-XXXXXX";
	struct fixture *f = *state;
	struct export_opts opts = {.loop = f->loop,
				   .store_dir = dir,
				   .store_bytes = 1 << 20,
				   .store_age_ns = 3600 * NSEC_PER_SEC,
				   .queue_bytes = QUEUE_BYTES};
	_cleanup_(freep) char *error = NULL;

	assert_non_null(mkdtemp(folder));
	row_begin("a folder that cannot be made");
	snprintf(dir, sizeof(dir), "/proc/self/comm/store");
	assert_int_equal(export_new(&opts, &f->e, &error), 1);
	assert_null(f->e);
	assert_non_null(strstr(error, "cannot use the store's folder '/proc/self/comm/store': a "
				      "part of the path is no folder"));
	assert_non_null(strstr(error, "--store-dir"));

	row_begin("kept without a destination");
	snprintf(dir, sizeof(dir), "%s/store", folder);
	assert_int_equal(export_new(&opts, &f->e, &error), 0);
	submit(f, 3, 10);
	flush(f, UNTIL_SECONDS * NSEC_PER_SEC);
	assert_int_equal(store_n_profiles(export_store(f->e)), 3);
	assert_int_equal(metric(f, "podprof_store_profiles", NULL, "stored"), 3);

	row_begin("one that is too large is counted");
	submit(f, 1, 2 << 20);
	assert_int_equal(metric(f, "podprof_store_profiles", NULL, "too_large"), 1);
	assert_int_equal(store_n_profiles(export_store(f->e)), 3);
	remove_folder(folder);
}

/* Parca answers 500 to a profile that it cannot read: only this profile is dropped. */
static void test_parca(void **state)
{
	static const struct sink_answer script[] = {
		{.how = SINK_CLOSE},
		{.status = 429},
		{.status = 500, .only = "\"value\":\"s3\""},
	};
	struct fixture *f = *state;
	char spec[128];
	const char *destination = spec;
	struct export_opts opts = {.loop = f->loop,
				   .destinations = &destination,
				   .n_destinations = 1,
				   .queue_bytes = QUEUE_BYTES};
	_cleanup_(freep) char *error = NULL;

	f->sink = sink_new(script, array_size(script), NULL);
	snprintf(spec, sizeof(spec), "parca=%s", sink_url(f->sink));
	assert_int_equal(export_new(&opts, &f->e, &error), 0);
	submit(f, 8, 10);
	flush(f, 30 * NSEC_PER_SEC);
	assert_string_equal(sink_request(f->sink, 0)->path, "/api/profiles/writeraw");
	assert_string_equal(sink_request(f->sink, 0)->content_type, "application/json");
	assert_int_equal(metric(f, "podprof_export_profiles", "parca", "sent"), 7);
	assert_int_equal(metric(f, "podprof_export_profiles", "parca", "dropped_rejected"), 1);
	assert_all_ended(f);
}

static bool folder_has_ended(void *ctx)
{
	struct fixture *f = ctx;

	return metric(f, "podprof_export_profiles", "file", "sent") +
		       metric(f, "podprof_export_profiles", "file", "dropped_too_large") +
		       metric(f, "podprof_export_profiles", "file", "dropped_rejected") ==
	       f->submitted;
}

/* A folder beside a server that is down: each has a separate ceiling and a separate count. */
static void test_folder(void **state)
{
	char folder[] = "/tmp/podprof-folder-XXXXXX", spec[96], command[256];
	char path[] = "/tmp/podprof-log-XXXXXX";
	_cleanup_(buf_deinit) struct buf log = BUF_INIT(65536);
	const char *destinations[] = {"pyroscope=http://127.0.0.1:1", spec};
	struct fixture *f = *state;
	struct export_opts opts = {.loop = f->loop,
				   .destinations = destinations,
				   .n_destinations = 2,
				   .queue_bytes = QUEUE_BYTES};
	_cleanup_(freep) char *error = NULL;
	const char *text;
	int saved;

	close(mkstemp(path));
	assert_non_null(mkdtemp(folder));
	row_begin("a folder that cannot be made");
	snprintf(spec, sizeof(spec), "file=/proc/self/comm/out");
	assert_int_equal(export_new(&opts, &f->e, &error), 1);
	assert_null(f->e);
	assert_non_null(strstr(error, "'/proc/self/comm/out'"));
	assert_non_null(strstr(error, "--destination"));

	row_begin("profiles up to the ceiling, the oldest go");
	snprintf(spec, sizeof(spec), "file=%s/out,bytes=16KiB", folder);
	assert_int_equal(export_new(&opts, &f->e, &error), 0);
	submit(f, 6, 10);
	loop_until(f->loop, folder_has_ended, f);
	assert_int_equal(metric(f, "podprof_export_profiles", "file", "sent"), 6);
	assert_int_equal(metric(f, "podprof_export_profiles", "pyroscope", "sent"), 0);
	snprintf(command, sizeof(command),
		 "test $(find %s/out -name '*_60s_cpu.pb.gz' | wc -l) = 4", folder);
	assert_int_equal(system(command), 0);

	row_begin("one that is too large");
	saved = capture_begin(path);
	submit(f, 1, 20 << 10);
	loop_until(f->loop, folder_has_ended, f);
	text = capture_end(path, saved, &log);
	snprintf(command, sizeof(command), "directory=%s/out ", folder);
	assert_non_null(strstr(text, command));
	assert_int_equal(metric(f, "podprof_export_profiles", "file", "dropped_too_large"), 1);

	row_begin("a symbolic link in the folder is not followed");
	snprintf(command, sizeof(command),
		 "mkdir %s/else; cd %s/out && for f in s*; do rm -r $f; ln -s ../else $f; done",
		 folder, folder);
	assert_int_equal(system(command), 0);
	f->submitted = 5; /* a series whose folder is a link now */
	submit(f, 1, 10);
	f->submitted = 8;
	loop_until(f->loop, folder_has_ended, f);
	assert_int_equal(metric(f, "podprof_export_profiles", "file", "dropped_rejected"), 1);
	snprintf(command, sizeof(command), "test -z \"$(ls -A %s/else)\"", folder);
	assert_int_equal(system(command), 0);
	flush(f, 0);
	remove_folder(folder);
}

/* Profiles made while there was memory. */
#define ROUNDS_MAX 200

struct rounds {
	struct fixture *f;
	struct profile *profiles[ROUNDS_MAX];
	size_t next;
};

static void on_flushed_stop(void *ctx)
{
	struct fixture *f = ctx;

	loop_stop(f->loop);
}

/* The whole way with each allocation failing once: a profile is sent or counted as dropped. */
static int whole_way(void *ctx)
{
	struct rounds *rounds = ctx;
	struct fixture *f = rounds->f;
	int r = start(f, ",tenant=t");

	if (r < 0)
		return r;
	assert_true(rounds->next < ROUNDS_MAX);
	export_submit(f->e, take_ptr(rounds->profiles[rounds->next]));
	rounds->next++;
	f->submitted = 1;
	export_flush(f->e, 30 * NSEC_PER_SEC, on_flushed_stop, f);
	assert_int_equal(loop_run(f->loop), 0);
	assert_all_ended(f);
	export_free(take_ptr(f->e));
	return 0;
}

static void test_no_memory(void **state)
{
	static const struct sink_answer ok = {.status = 200};
	struct rounds rounds = {.f = *state};

	rounds.f->sink = sink_new(&ok, 1, NULL);
	for (size_t i = 0; i < ROUNDS_MAX; i++)
		rounds.profiles[i] = profile_make(PROFILE_CPU, "s", nsec_wall(), 'p', 10);
	print_message("%zu allocations\n", allocfail_survive(whole_way, &rounds));
	for (size_t i = 0; i < ROUNDS_MAX; i++)
		profile_free(rounds.profiles[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_request, setup, teardown),
		cmocka_unit_test_setup_teardown(test_by_itself, setup, teardown),
		cmocka_unit_test_setup_teardown(test_replies, setup, teardown),
		cmocka_unit_test_setup_teardown(test_recovers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_retry_after, setup, teardown),
		cmocka_unit_test_setup_teardown(test_batches, setup, teardown),
		cmocka_unit_test_setup_teardown(test_behind, setup, teardown),
		cmocka_unit_test_setup_teardown(test_token_rotates, setup, teardown),
		cmocka_unit_test_setup_teardown(test_own_headers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_server_symbols, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_thread_names, setup, teardown),
		cmocka_unit_test_setup_teardown(test_thread_names, setup, teardown),
		cmocka_unit_test_setup_teardown(test_program_files, setup, teardown),
		cmocka_unit_test_setup_teardown(test_too_old, setup, teardown),
		cmocka_unit_test_setup_teardown(test_flush_gives_up, setup, teardown),
		cmocka_unit_test_setup_teardown(test_end_tells_of_losses, setup, teardown),
		cmocka_unit_test_setup_teardown(test_several, setup, teardown),
		cmocka_unit_test_setup_teardown(test_none, setup, teardown),
		cmocka_unit_test_setup_teardown(test_wrong, setup, teardown),
		cmocka_unit_test_setup_teardown(test_store, setup, teardown),
		cmocka_unit_test_setup_teardown(test_parca, setup, teardown),
		cmocka_unit_test_setup_teardown(test_folder, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_memory, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
