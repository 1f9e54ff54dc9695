// SPDX-License-Identifier: Apache-2.0
/* Cases with timeouts of their own; test_export.c has the rest. */
#include "support/test.h"

#include <stdlib.h>
#include <string.h>

#include "support/profiles.h"
#include "support/rawserver.h"
#include "support/sink.h"
#include "support/until.h"

#include "base/http.h"
#include "base/loop.h"
#include "base/nsec.h"
#include "base/worker.h"
#include "export/destination.h"
#include "export/outbox.h"
#include "export/pyroscope.h"
#include "export/sender.h"
#include "push.pb-c.h"

struct fixture {
	struct destination_kind kind;
	struct loop *loop;
	struct http *http;
	struct worker *encoder;
	struct sink *sink;
	struct destination *destination;
	struct outbox_budget budget;
	struct outbox box;
	struct sender *sender;
	size_t n_idle;
};

static void on_idle(void *ctx)
{
	struct fixture *f = ctx;

	f->n_idle++;
}

static bool was_idle(void *ctx)
{
	struct fixture *f = ctx;

	return f->n_idle > 0;
}

/* A backend that stores each batch or nothing, so a 400 starts a search. */
static enum destination_verdict search_verdict(const struct http_reply *reply)
{
	if (reply->status == 400)
		return DESTINATION_REFUSED_PART;
	if (reply->status == 500)
		return DESTINATION_REFUSED_MAYBE;
	return destination_pyroscope.verdict(reply);
}

static void fixture_init_at(struct fixture *f, const char *url, uint64_t total_ns,
			    uint64_t window_ns)
{
	char spec[128];
	char *error;
	struct sender_opts opts = {.box = &f->box,
				   .name = "test",
				   .total_ns = total_ns,
				   .window_ns = window_ns,
				   .idle = on_idle,
				   .ctx = f};

	*f = (struct fixture){.budget.max_bytes = UINT64_MAX};
	unsetenv("http_proxy");
	unsetenv("all_proxy");
	unsetenv("ALL_PROXY");
	snprintf(spec, sizeof(spec), "pyroscope=%s", url);
	assert_int_equal(destination_new(spec, &f->destination, &error), 0);
	f->kind = destination_pyroscope;
	f->kind.verdict = search_verdict;
	f->destination->kind = &f->kind;
	assert_int_equal(loop_new(&f->loop), 0);
	assert_int_equal(http_new(f->loop, &f->http), 0);
	outbox_init(&f->box, &f->budget, f->destination->kind);
	opts.loop = f->loop;
	opts.http = f->http;
	assert_int_equal(worker_new(f->loop, "encode", SENDER_FLIGHTS_MAX, &f->encoder), 0);
	opts.encoder = f->encoder;
	opts.destination = f->destination;
	assert_int_equal(sender_new(&opts, &f->sender), 0);
}

static void fixture_init_paced(struct fixture *f, const struct sink_answer *script, size_t n,
			       uint64_t total_ns, uint64_t window_ns)
{
	struct sink *sink = sink_new(script, n, NULL);

	fixture_init_at(f, sink_url(sink), total_ns, window_ns);
	f->sink = sink;
}

static void fixture_init(struct fixture *f, const struct sink_answer *script, size_t n,
			 uint64_t total_ns)
{
	fixture_init_paced(f, script, n, total_ns, 0);
}

static void fixture_deinit(struct fixture *f)
{
	worker_free(f->encoder);
	sender_free(f->sender);
	outbox_deinit(&f->box);
	assert_int_equal(f->budget.used_bytes, 0);
	destination_free(f->destination);
	http_free(f->http);
	sink_free(f->sink);
	loop_free(f->loop);
}

static void submit(struct fixture *f, size_t n, size_t bytes)
{
	for (size_t i = 0; i < n; i++) {
		struct profile *profile = profile_make(PROFILE_CPU, "s", nsec_wall(), 'p', bytes);
		struct queued_profile *p;

		assert_int_equal(queued_profile_new(&f->budget, profile, &p), 0);
		outbox_push(&f->box, p, nsec_wall());
		queued_profile_unref(p);
		sender_wake(f->sender);
	}
}

static size_t n_series(struct fixture *f, size_t i)
{
	const struct sink_request *request = sink_request(f->sink, i);
	Push__V1__PushRequest *push = push__v1__push_request__unpack(
		NULL, request->body_len, (const uint8_t *)request->body);
	size_t n = push->n_series;

	push__v1__push_request__free_unpacked(push, NULL);
	return n;
}

/* ---- what a server that stores each batch or nothing would have in the end */

/* One profile each of series from, from + 1, ...; @mark begins the pprof. */
static void submit_series(struct fixture *f, size_t from, size_t n, char mark, const char *prefix)
{
	for (size_t i = 0; i < n; i++) {
		struct queued_profile *p;
		char service[32];

		snprintf(service, sizeof(service), "%s%zu.", prefix, from + i);
		assert_int_equal(queued_profile_new(
					 &f->budget,
					 profile_make(PROFILE_CPU, service, nsec_wall(), mark, 100),
					 &p),
				 0);
		outbox_push(&f->box, p, nsec_wall());
		queued_profile_unref(p);
	}
	sender_wake(f->sender);
}

/**
 * struct ledger - the stored profiles
 * @marks: by series, the last mark
 */
#define LEDGER_MAX 4096
struct ledger {
	char ids[LEDGER_MAX][QUEUED_PROFILE_ID_LEN + 1];
	size_t n;
	char marks[LEDGER_MAX];
};

static size_t series_number(const Push__V1__RawProfileSeries *series)
{
	for (size_t i = 0; i < series->n_labels; i++)
		if (strcmp(series->labels[i]->name, "service_name") == 0)
			return strtoul(series->labels[i]->value +
					       strcspn(series->labels[i]->value, "0123456789"),
				       NULL, 10);
	return SIZE_MAX;
}

static int compare_ids(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* Nothing is stored twice, and each series arrives in its order. */
static size_t assert_stored_once(struct fixture *f)
{
	struct ledger *ledger = calloc(1, sizeof(*ledger));
	size_t n;

	for (size_t i = 0; i < sink_n_requests(f->sink); i++) {
		const struct sink_request *request = sink_request(f->sink, i);
		Push__V1__PushRequest *push;

		if (request->status != 200)
			continue;
		push = push__v1__push_request__unpack(NULL, request->body_len,
						      (const uint8_t *)request->body);
		for (size_t k = 0; k < push->n_series; k++) {
			const Push__V1__RawProfileSeries *series = push->series[k];
			char mark = (char)series->samples[0]->raw_profile.data[0];
			char *last = &ledger->marks[series_number(series)];

			assert_true(mark > *last);
			*last = mark;
			assert_true(ledger->n < LEDGER_MAX);
			memcpy(ledger->ids[ledger->n++], series->samples[0]->id,
			       QUEUED_PROFILE_ID_LEN);
		}
		push__v1__push_request__free_unpacked(push, NULL);
	}
	qsort(ledger->ids, ledger->n, sizeof(ledger->ids[0]), compare_ids);
	for (size_t i = 1; i < ledger->n; i++)
		assert_string_not_equal(ledger->ids[i - 1], ledger->ids[i]);
	n = ledger->n;
	free(ledger);
	return n;
}

/* ---- tests */

/* A request that takes too long is made smaller; after a success they grow again. */
static void test_time_out(void **state)
{
	static const struct sink_answer script[] = {{.how = SINK_HANG}, {.status = 200}};
	static const size_t sizes[] = {4, 2, 2};
	struct fixture f;

	(void)state;
	fixture_init(&f, script, array_size(script), 2 * NSEC_PER_SEC);
	assert_true(sender_is_idle(f.sender));
	submit(&f, 4, 100000);
	assert_false(sender_is_idle(f.sender));
	loop_until(f.loop, was_idle, &f);
	assert_int_equal(sink_n_requests(f.sink), array_size(sizes));
	for (size_t i = 0; i < array_size(sizes); i++)
		assert_int_equal(n_series(&f, i), sizes[i]);
	assert_int_equal(f.box.profiles[EXPORT_SENT], 4);
	f.n_idle = 0;
	submit(&f, 4, 100000);
	loop_until(f.loop, was_idle, &f);
	assert_int_equal(n_series(&f, array_size(sizes)), 4);
	fixture_deinit(&f);
}

#define CUT(status) "HTTP/1.1 " status "\r\nContent-Length: 10\r\n\r\nhalf"

/* A server that has decided about a request, but whose reply has no end. */
static void test_cut(void **state)
{
	static const struct {
		const char *name;
		size_t n;
		struct rawserver_answer script[2];
		uint64_t n_retried;
		enum export_outcome end;
	} rows[] = {
		{"closed", 1, {{.bytes = CUT("200 OK")}, {.bytes = CUT("200 OK")}}, 0, EXPORT_SENT},
		{"silent",
		 1,
		 {{.bytes = CUT("200 OK"), .end = RAWSERVER_HOLD}, {.bytes = CUT("200 OK")}},
		 0,
		 EXPORT_SENT},
		{"a failure",
		 1,
		 {{.bytes = CUT("503 No")}, {.bytes = CUT("200 OK")}},
		 1,
		 EXPORT_SENT},
		{"no decision",
		 1,
		 {{.bytes = "HTTP/1.1 100 Continue\r\n\r\n"}, {.bytes = CUT("200 OK")}},
		 1,
		 EXPORT_SENT},
		{"refused",
		 1,
		 {{.bytes = CUT("400 No")}, {.bytes = CUT("200 OK")}},
		 0,
		 EXPORT_DROPPED_REFUSED},
		{"perhaps stored in part",
		 2,
		 {{.bytes = CUT("500 No")}, {.bytes = CUT("200 OK")}},
		 0,
		 EXPORT_UNKNOWN},
		{"too large",
		 1,
		 {{.bytes = CUT("413 No")}, {.bytes = CUT("200 OK")}},
		 0,
		 EXPORT_DROPPED_TOO_LARGE},
	};

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		struct rawserver *server = rawserver_new(rows[i].script, 2);
		struct fixture f;

		row_begin(rows[i].name);
		fixture_init_at(&f, rawserver_url(server), 2 * NSEC_PER_SEC, 0);
		submit_series(&f, 0, rows[i].n, 'a', "s");
		loop_until(f.loop, was_idle, &f);
		assert_int_equal(f.box.profiles[rows[i].end], rows[i].n);
		assert_int_equal(f.box.profiles[EXPORT_RETRIED], rows[i].n_retried);
		fixture_deinit(&f);
		rawserver_free(server);
	}
}

static bool has_request(void *ctx)
{
	struct fixture *f = ctx;

	return sink_n_requests(f->sink) > 0;
}

/* Profiles in flight at the end are counted, once. */
static void test_stopped(void **state)
{
	static const struct sink_answer hang = {.how = SINK_HANG};
	struct fixture f;

	(void)state;
	fixture_init(&f, &hang, 1, 0);
	submit(&f, 2, 10);
	loop_until(f.loop, has_request, &f);
	submit(&f, 3, 10);
	sender_free(take_ptr(f.sender));
	assert_int_equal(f.box.profiles[EXPORT_DROPPED_STOPPED], 2);
	fixture_deinit(&f);
	assert_int_equal(f.box.profiles[EXPORT_DROPPED_STOPPED], 5);
}

/* Backpressure makes requests smaller, and successes make them larger again. */
static void test_backpressure(void **state)
{
	static const struct sink_answer script[] = {{.status = 429, .times = 2}, {.status = 200}};
	struct fixture f;

	(void)state;
	fixture_init(&f, script, array_size(script), 600 * NSEC_PER_SEC);
	submit_series(&f, 0, 1000, 'a', "s");
	loop_until(f.loop, was_idle, &f);
	print_message("1000 profiles after two 429: %zu requests\n", sink_n_requests(f.sink));
	assert_true(sink_n_requests(f.sink) <= 12);
	assert_int_equal(assert_stored_once(&f), 1000);
	assert_int_equal(f.box.profiles[EXPORT_SENT], 1000);
	row_begin("as large as before");
	f.n_idle = 0;
	for (size_t window = 0; window < 10; window++) {
		submit_series(&f, 0, 256, (char)('b' + window), "s");
		loop_until(f.loop, was_idle, &f);
		f.n_idle = 0;
	}
	assert_int_equal(n_series(&f, sink_n_requests(f.sink) - 1), 256);
	fixture_deinit(&f);
}

struct refused_row {
	const char *name;
	size_t n;
	size_t bad[3]; /* positions, from 1 */
	size_t max_requests;
	bool too_large; /* 413 in place of 400 */
};

static const struct refused_row refused_rows[] = {
	{"the first of 200", 200, {1}, 1 + 2 * 8, false},
	{"one in the middle", 200, {101}, 1 + 2 * 8, false},
	{"another", 200, {138}, 1 + 2 * 8, false},
	{"the last", 200, {200}, 1 + 2 * 8, false},
	{"of two", 2, {2}, 3, false},
	{"three of 200", 200, {7, 8, 180}, 1 + 3 * 2 * 8, false},
	{"all", 200, {0}, 200 + 8, false},
	{"one is too large", 200, {101}, 2 + 2 * 8, true},
	{"three are too large", 200, {7, 8, 180}, 2 + 3 * 2 * 8, true},
};

static bool is_bad(const struct refused_row *row, size_t at)
{
	for (size_t i = 0; i < array_size(row->bad); i++)
		if (row->bad[i] == at)
			return true;
	return row->bad[0] == 0;
}

/* A refused profile costs a few requests and no other profile. */
static void test_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(refused_rows); i++) {
		const struct refused_row *row = &refused_rows[i];
		const struct sink_answer script[] = {
			{.status = row->too_large ? 413 : 400, .only = "wrong"}};
		size_t n_bad = 0;
		struct fixture f;

		row_begin(row->name);
		fixture_init(&f, script, 1, 600 * NSEC_PER_SEC);
		for (size_t at = 1; at <= row->n; at++) {
			n_bad += is_bad(row, at);
			submit_series(&f, at, 1, 'a', is_bad(row, at) ? "wrong" : "s");
		}
		loop_until(f.loop, was_idle, &f);
		print_message("%s: %zu requests\n", row->name, sink_n_requests(f.sink));
		assert_true(sink_n_requests(f.sink) <= row->max_requests);
		assert_int_equal(assert_stored_once(&f), row->n - n_bad);
		assert_int_equal(f.box.profiles[EXPORT_SENT], row->n - n_bad);
		assert_int_equal(f.box.profiles[row->too_large ? EXPORT_DROPPED_TOO_LARGE
							       : EXPORT_DROPPED_REFUSED],
				 n_bad);
		fixture_deinit(&f);
	}
}

/* A series that is refused in each window is searched for once. */
static void test_refused_again(void **state)
{
	static const struct sink_answer script[] = {{.status = 400, .only = "wrong"}};
	struct fixture f;

	(void)state;
	fixture_init(&f, script, 1, 600 * NSEC_PER_SEC);
	for (size_t window = 0; window < 10; window++) {
		submit_series(&f, 0, 99, (char)('a' + window), "s");
		submit_series(&f, 99, 1, (char)('a' + window), "wrong");
		submit_series(&f, 100, 100, (char)('a' + window), "s");
		f.n_idle = 0;
		loop_until(f.loop, was_idle, &f);
	}
	print_message("10 windows: %zu requests\n", sink_n_requests(f.sink));
	assert_true(sink_n_requests(f.sink) <= 1 + 2 * 8 + 9 * 3);
	assert_int_equal(f.box.profiles[EXPORT_DROPPED_REFUSED], 10);
	assert_int_equal(assert_stored_once(&f), 10 * 199);
	fixture_deinit(&f);
}

/* A server that answers late gets four requests at a time, and no more: the server answers the
 * first only when it has four. */
static void test_flights(void **state)
{
	static const struct sink_answer gather = {.how = SINK_GATHER, .status = 200, .times = 4};
	struct fixture f;

	(void)state;
	fixture_init(&f, &gather, 1, 600 * NSEC_PER_SEC);
	submit_series(&f, 0, 8 * 256, 'a', "s");
	loop_until(f.loop, was_idle, &f);
	assert_int_equal(sink_n_requests(f.sink), 8);
	assert_int_equal(sink_n_connections(f.sink), 4);
	assert_int_equal(assert_stored_once(&f), 8 * 256);
	fixture_deinit(&f);
}

/* Windows of the same series with all kinds of failures: each series stays in order, and every
 * profile ends once. */
static void test_failures(void **state)
{
	static const struct sink_answer script[] = {
		{.status = 400, .only = "wrong", .times = 3},
		{.status = 503},
		{.status = 400, .only = "wrong", .times = 2},
		{.how = SINK_CLOSE},
		{.status = 200, .times = 2},
		{.status = 429, .retry_after = "1"},
		{.status = 400, .only = "wrong"},
	};
	struct fixture f;

	(void)state;
	fixture_init(&f, script, array_size(script), 600 * NSEC_PER_SEC);
	for (size_t window = 0; window < 5; window++) {
		submit_series(&f, 0, 137, (char)('a' + window), "s");
		submit_series(&f, 137, 1, (char)('a' + window), "wrong");
		submit_series(&f, 138, 162, (char)('a' + window), "s");
	}
	loop_until(f.loop, was_idle, &f);
	print_message("1500 profiles: %zu requests\n", sink_n_requests(f.sink));
	assert_int_equal(f.box.profiles[EXPORT_DROPPED_REFUSED] + f.box.profiles[EXPORT_SENT],
			 1500);
	assert_in_range(f.box.profiles[EXPORT_DROPPED_REFUSED], 3, 5);
	assert_int_equal(assert_stored_once(&f), f.box.profiles[EXPORT_SENT]);
	fixture_deinit(&f);
}

/* ---- replies about parts of a batch */

/* The body has a letter for each profile of the batch: S stored, N not stored, L lost; or digits:
 * the server's own profiles that are missing. */
static bool letters_fates(const struct http_reply *reply, const struct destination_request *request,
			  size_t n, enum destination_fate *ret, uint64_t *ret_rejected)
{
	(void)request;
	if (strspn(reply->body, "SNL") != n)
		return false;
	for (size_t i = 0; i < n; i++)
		ret[i] = reply->body[i] == 'S'	 ? DESTINATION_FATE_STORED
			 : reply->body[i] == 'N' ? DESTINATION_FATE_NOT_STORED
						 : DESTINATION_FATE_LOST;
	*ret_rejected = strtoul(reply->body + n, NULL, 10);
	return true;
}

static void fixture_init_letters(struct fixture *f, const struct sink_answer *script, size_t n)
{
	fixture_init(f, script, n, 600 * NSEC_PER_SEC);
	f->kind.fates = letters_fates;
}

/* @sizes: profiles in each request */
struct part_row {
	const char *name;
	size_t n;
	struct sink_answer script[2];
	size_t sizes[4];
	uint64_t sent, refused, rejected, unknown;
};

static const struct part_row part_rows[] = {
	{"one is lost", 4, {{.status = 400, .body = "SSLS"}}, {4}, 3, 1, 0, 0},
	{"one is lost, whatever the status", 4, {{.status = 503, .body = "SSLS"}}, {4}, 3, 1, 0, 0},
	{"two wait", 4, {{.status = 429, .body = "SNSN"}, {.status = 200}}, {4, 1, 1}, 4, 0, 0, 0},
	{"all fates", 3, {{.status = 429, .body = "SNL"}, {.status = 200}}, {3, 1}, 2, 1, 0, 0},
	{"none is stored", 2, {{.status = 429, .body = "NL"}, {.status = 200}}, {2, 1}, 1, 1, 0, 0},
	{"all wait", 4, {{.status = 429, .body = "NNNN"}, {.status = 200}}, {4, 2, 2}, 4, 0, 0, 0},
	{"all are lost", 4, {{.status = 500, .body = "LLLL"}, {.status = 200}}, {4}, 0, 4, 0, 0},
	{"parts are missing",
	 2,
	 {{.status = 429, .body = "SS3"}, {.status = 200}},
	 {2},
	 2,
	 0,
	 3,
	 0},
	{"parts of one", 1, {{.status = 429, .body = "S2"}, {.status = 200}}, {1}, 1, 0, 2, 0},
	{"one waits", 1, {{.status = 429, .body = "N"}, {.status = 200}}, {1, 1}, 1, 0, 0, 0},
	{"none named", 4, {{.status = 500, .body = "x"}, {.status = 200}}, {4}, 0, 0, 0, 4},
	{"none named, one alone",
	 1,
	 {{.status = 500, .body = "x"}, {.status = 200}},
	 {1},
	 0,
	 1,
	 0,
	 0},
};

/* Only profiles that are certainly not stored are sent again. */
static void test_stored_in_part(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(part_rows); i++) {
		const struct part_row *row = &part_rows[i];
		struct fixture f;
		size_t n = 0;

		row_begin(row->name);
		fixture_init_letters(&f, row->script, row->script[1].status ? 2 : 1);
		submit_series(&f, 0, row->n, 'a', "s");
		loop_until(f.loop, was_idle, &f);
		for (; n < array_size(row->sizes) && row->sizes[n]; n++)
			assert_int_equal(n_series(&f, n), row->sizes[n]);
		assert_int_equal(sink_n_requests(f.sink), n);
		assert_int_equal(f.box.profiles[EXPORT_SENT], row->sent);
		assert_int_equal(f.box.profiles[EXPORT_DROPPED_REFUSED], row->refused);
		assert_int_equal(f.box.rejected, row->rejected);
		assert_int_equal(f.box.profiles[EXPORT_UNKNOWN], row->unknown);
		fixture_deinit(&f);
	}
}

/* A refusal of a batch that may be stored in part: it is unknown what is stored of this batch; from
 * the next window on the refused profile costs itself alone. */
static void test_refused_maybe(void **state)
{
	static const struct sink_answer script[] = {{.status = 500, .only = "wrong"}};
	static const size_t n_requests[] = {1, 8, 3, 3};
	struct fixture f;
	size_t n = 0;

	(void)state;
	fixture_init_letters(&f, script, 1);
	for (size_t window = 0; window < array_size(n_requests); window++) {
		submit_series(&f, 0, 3, (char)('a' + window), "s");
		submit_series(&f, 3, 1, (char)('a' + window), "wrong");
		submit_series(&f, 4, 4, (char)('a' + window), "s");
		f.n_idle = 0;
		loop_until(f.loop, was_idle, &f);
		n += n_requests[window];
		assert_int_equal(sink_n_requests(f.sink), n);
	}
	assert_int_equal(f.box.profiles[EXPORT_UNKNOWN], 8);
	assert_int_equal(f.box.profiles[EXPORT_DROPPED_REFUSED], 3);
	assert_int_equal(assert_stored_once(&f), 3 * 7);
	fixture_deinit(&f);
}

/* One refused profile in a full request: the requests of the next windows are few. */
static void test_refused_maybe_many(void **state)
{
	static const struct sink_answer script[] = {{.status = 500, .only = "wrong"}};
	static const struct {
		size_t n_requests;
		uint64_t unknown, refused;
	} windows[] = {
		{1, 256, 0}, /* all in one */
		{32, 8, 0},  /* in groups of 8 */
		{10, 0, 1},  /* the 8 of the refused group alone, around them all others */
		{3, 0, 1},
	};
	struct fixture f;
	size_t n = 0;

	(void)state;
	fixture_init_letters(&f, script, 1);
	for (size_t i = 0; i < array_size(windows); i++) {
		const uint64_t unknown = f.box.profiles[EXPORT_UNKNOWN];
		const uint64_t refused = f.box.profiles[EXPORT_DROPPED_REFUSED];

		submit_series(&f, 0, 99, (char)('a' + i), "s");
		submit_series(&f, 99, 1, (char)('a' + i), "wrong");
		submit_series(&f, 100, 156, (char)('a' + i), "s");
		f.n_idle = 0;
		loop_until(f.loop, was_idle, &f);
		assert_int_equal(sink_n_requests(f.sink) - n, windows[i].n_requests);
		assert_int_equal(f.box.profiles[EXPORT_UNKNOWN] - unknown, windows[i].unknown);
		assert_int_equal(f.box.profiles[EXPORT_DROPPED_REFUSED] - refused,
				 windows[i].refused);
		n = sink_n_requests(f.sink);
	}
	assert_int_equal(assert_stored_once(&f), 4 * 256 - 256 - 8 - 2);
	fixture_deinit(&f);
}

static bool sends_paced(void *ctx)
{
	const struct fixture *f = ctx;

	return f->box.profiles[EXPORT_SENT] && !f->box.on_the_way;
}

/* Of a window of many profiles only a part leaves before the end of a long pause; the end of the
 * run ends the pause. */
static void test_pace(void **state)
{
	static const struct sink_answer ok = {.status = 200};
	struct fixture f;

	(void)state;
	fixture_init_paced(&f, &ok, 1, 600 * NSEC_PER_SEC, 24 * 3600 * NSEC_PER_SEC);
	sender_expect(f.sender, 4000);
	submit_series(&f, 0, 4000, 'a', "s");
	loop_until(f.loop, sends_paced, &f);
	assert_int_equal(f.box.profiles[EXPORT_SENT], 256);
	assert_int_equal(f.box.waiting.n, 4000 - 256);
	assert_false(sender_is_idle(f.sender));
	assert_int_equal(f.n_idle, 0);
	sender_hurry(f.sender);
	loop_until(f.loop, was_idle, &f);
	assert_int_equal(f.box.profiles[EXPORT_SENT], 4000);
	assert_int_equal(assert_stored_once(&f), 4000);
	/* and so does what comes afterwards */
	f.n_idle = 0;
	sender_expect(f.sender, 10);
	submit_series(&f, 0, 10, 'b', "s");
	loop_until(f.loop, was_idle, &f);
	assert_int_equal(f.box.profiles[EXPORT_SENT], 4010);
	fixture_deinit(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_time_out),	   cmocka_unit_test(test_stopped),
		cmocka_unit_test(test_backpressure),	   cmocka_unit_test(test_refused),
		cmocka_unit_test(test_refused_again),	   cmocka_unit_test(test_flights),
		cmocka_unit_test(test_failures),	   cmocka_unit_test(test_pace),
		cmocka_unit_test(test_stored_in_part),	   cmocka_unit_test(test_refused_maybe),
		cmocka_unit_test(test_refused_maybe_many), cmocka_unit_test(test_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
