// SPDX-License-Identifier: Apache-2.0
/*
 * Export with a kind of destination that exists in this test only. All its properties differ from
 * the built-in kinds: address, headers, text bodies with parameters in the address, limits,
 * statuses, cumulative values, types of profiles.
 */
#include "support/test.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "support/profiles.h"
#include "support/sink.h"
#include "support/until.h"

#include "base/buf.h"
#include "base/http.h"
#include "base/loop.h"
#include "base/metric.h"
#include "base/nsec.h"
#include "base/strview.h"
#include "export/destination.h"
#include "export/export.h"
#include "export/outbox.h"
#include "export/pyroscope.h"

#define BATCH	    3
#define AGE_NS	    (600 * NSEC_PER_SEC)
#define QUEUE_BYTES (64ull << 20)

/* ---- the kind */

static const struct destination_kind line_kind;

/* A line for each profile: type, first byte and length of the pprof. The address has the number. A
 * profile that begins with '!' cannot be encoded. */
static int line_encode(const struct destination_profile *profiles, size_t n,
		       struct destination_request *ret)
{
	_cleanup_(buf_deinit) struct buf body = BUF_INIT(65536);
	char *query;

	if (n > BATCH || buf_append(&body, "", 0))
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		if (*(const char *)profiles[i].pprof == '!')
			return -EBADMSG;
	for (size_t i = 0; i < n; i++)
		if (buf_printf(&body, "%s %c %zu\n", line_kind.types[profiles[i].profile->kind],
			       *(const char *)profiles[i].pprof, profiles[i].pprof_len))
			return -ENOMEM;
	if (asprintf(&query, "?n=%zu", n) < 0)
		return -ENOMEM;
	ret->body_len = body.len;
	ret->body = buf_take(&body);
	ret->query = query;
	return 0;
}

/* Statuses have unusual meanings; a success may report a failure in its body. */
static enum destination_verdict line_verdict(const struct http_reply *reply)
{
	switch (reply->status) {
	case 0:
	case 400:
		return DESTINATION_RETRY;
	case 401:
		return DESTINATION_RETRY_SMALLER;
	case 429:
		return DESTINATION_DENIED;
	case 500:
		return DESTINATION_SPLIT;
	case 503:
		return DESTINATION_REFUSED;
	default:
		return strcmp(reply->body, "partly") == 0 ? DESTINATION_REFUSED_PART
							  : DESTINATION_SENT;
	}
}

/* "refused N" */
static uint64_t line_rejected(const struct http_reply *reply, struct strview *ret_message)
{
	unsigned int n = 0;

	*ret_message = strview_of(reply->body);
	return sscanf(reply->body, "refused %u", &n) == 1 ? n : 0;
}

static const struct destination_kind line_kind = {
	.name = "line",
	.title = "Line",
	.path = "/lines",
	.headers = {"Content-Type: text/x-line"},
	.tenant_header = "Authorization",
	.types = {[PROFILE_CPU] = "busy", [PROFILE_GO_HEAP] = "held"},
	.limits = {.profile = {100, 5u << 20},
		   .profiles = BATCH,
		   .labels = SIZE_MAX,
		   .label_bytes = SIZE_MAX,
		   .age_ns = AGE_NS,
		   .ahead_ns = UINT64_MAX},
	.encode = line_encode,
	.verdict = line_verdict,
	.rejected = line_rejected,
};

/* Smaller profiles, without tenants, with a token in a header of its own. */
static const struct destination_kind small_kind = {
	.name = "small",
	.path = "/",
	.token_header = "X-Scope-OrgID",
	.types = {[PROFILE_CPU] = "busy"},
	.limits = {.profile = {SIZE_MAX, 7}, .profiles = 1, .age_ns = UINT64_MAX},
	.encode = line_encode,
	.verdict = line_verdict,
};

static const struct destination_kind *const kinds[] = {&destination_pyroscope, &line_kind,
						       &small_kind, NULL};

/* ---- the fixture */

struct fixture {
	struct loop *loop;
	struct sink *sink;
	struct export *e;
	bool flushed;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	unsetenv("http_proxy");
	unsetenv("all_proxy");
	unsetenv("ALL_PROXY");
	assert_int_equal(loop_new(&f->loop), 0);
	*state = f;
	return 0;
}

static void stop(struct fixture *f)
{
	export_free(f->e);
	sink_free(f->sink);
	f->e = NULL;
	f->sink = NULL;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	stop(f);
	loop_free(f->loop);
	free(f);
	return 0;
}

/* @spec_format: with "%s" for the sink's URL. */
static int start_as(struct fixture *f, const char *spec_format, const struct sink_answer *script,
		    size_t n)
{
	_cleanup_(freep) char *error = NULL;
	char spec[128];
	const char *destination = spec;
	struct export_opts opts = {.loop = f->loop,
				   .destinations = &destination,
				   .n_destinations = 1,
				   .kinds = kinds,
				   .queue_bytes = QUEUE_BYTES};

	f->sink = sink_new(script, n, NULL);
	snprintf(spec, sizeof(spec), spec_format, sink_url(f->sink));
	return export_new(&opts, &f->e, &error);
}

static int start(struct fixture *f, const struct sink_answer *script, size_t n)
{
	return start_as(f, "line=%s/base,tenant=key", script, n);
}

static void submit(struct fixture *f, enum profile_kind kind, uint64_t age_ns, char mark, size_t n)
{
	struct profile *profile = profile_make(kind, "s", nsec_wall() - age_ns, mark, n);

	profile->pprof_delta = strdup("delta");
	profile->pprof_delta_len = 5;
	export_submit(f->e, profile);
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

static void flush(struct fixture *f)
{
	f->flushed = false;
	export_flush(f->e, 30 * NSEC_PER_SEC, on_flushed, f);
	loop_until(f->loop, is_flushed, f);
}

/* ---- metrics */

struct reader {
	struct metric_sink sink;
	const char *outcome;
	bool inside;
	uint64_t sum;
};

static void reader_family(struct metric_sink *sink, const struct metric_family_desc *family)
{
	struct reader *r = container_of(sink, struct reader, sink);

	r->inside = strcmp(family->name, "podprof_export_profiles") == 0;
}

static void reader_value(struct metric_sink *sink, const struct metric_value *value)
{
	struct reader *r = container_of(sink, struct reader, sink);

	for (size_t i = 0; r->inside && i < value->n_labels; i++) {
		const struct metric_label *l = &value->labels[i];

		if (strcmp(l->name, "destination") == 0)
			assert_string_equal(l->value, "line");
		else if (strcmp(l->value, r->outcome) == 0)
			r->sum += value->u;
	}
}

static void family_of_rejected(struct metric_sink *sink, const struct metric_family_desc *family)
{
	struct reader *r = container_of(sink, struct reader, sink);

	r->inside = strcmp(family->name, "podprof_export_partly_rejected") == 0;
}

static void sum_value(struct metric_sink *sink, const struct metric_value *value)
{
	struct reader *r = container_of(sink, struct reader, sink);

	if (r->inside)
		r->sum += value->u;
}

static uint64_t count(struct fixture *f, enum export_outcome outcome)
{
	struct reader r = {.sink = {reader_family, reader_value},
			   .outcome = export_outcome_name(outcome)};

	export_collect(f->e, &r.sink);
	return r.sum;
}

static uint64_t count_all(struct fixture *f)
{
	uint64_t n = 0;

	for (enum export_outcome o = 0; o < EXPORT_OUTCOME_MAX; o++)
		n += count(f, o);
	return n;
}

/* ---- tests */

static const struct sink_answer ok = {.status = 200};

static void test_request(void **state)
{
	static const char *const bodies[] = {
		"busy a 1\nheld b 20\nbusy c 3\n",
		"busy d 4\nbusy e 5\nbusy f 6\n",
		"busy g 7\n",
	};
	struct fixture *f = *state;
	const struct sink_request *seen;

	assert_int_equal(start(f, &ok, 1), 0);
	submit(f, PROFILE_CPU, 0, 'a', 1);
	submit(f, PROFILE_OFF_CPU, 0, 'x', 1); /* the kind has no such type */
	submit(f, PROFILE_GO_HEAP, 0, 'b', 20);
	submit(f, PROFILE_GO_MUTEX, 0, 'x', 1);
	for (size_t i = 0; i < 5; i++)
		submit(f, PROFILE_CPU, 0, (char)('c' + i), 3 + i);
	flush(f);
	assert_int_equal(sink_n_requests(f->sink), array_size(bodies));
	for (size_t i = 0; i < array_size(bodies); i++) {
		seen = sink_request(f->sink, i);
		assert_int_equal(seen->body_len, strlen(bodies[i]));
		assert_memory_equal(seen->body, bodies[i], seen->body_len);
		assert_string_equal(seen->method, "POST");
		assert_string_equal(seen->path, "/base/lines");
		assert_string_equal(seen->query, i < 2 ? "n=3&" : "n=1&");
		assert_string_equal(seen->content_type, "text/x-line");
		assert_string_equal(seen->authorization, "key");
		assert_null(seen->tenant);
		assert_null(seen->connect_version);
	}
	assert_int_equal(count(f, EXPORT_SENT), 7);
	assert_int_equal(count_all(f), 7);
}

struct reply_row {
	const char *name;
	struct sink_answer answer;
	size_t n_first; /* profiles in this request */
	size_t n_next;	/* and in the next one; 0: no next request */
	enum export_outcome outcome;
};

static const struct reply_row reply_rows[] = {
	{"sent", {.status = 413}, 2, 0, EXPORT_SENT},
	{"retried", {.status = 400}, 2, 2, EXPORT_SENT},
	{"retried, but smaller", {.status = 401}, 2, 1, EXPORT_SENT},
	{"split", {.status = 500}, 2, 1, EXPORT_SENT},
	{"too large alone", {.status = 500}, 1, 0, EXPORT_DROPPED_TOO_LARGE},
	{"denied", {.status = 429}, 2, 0, EXPORT_DROPPED_DENIED},
	{"refused", {.status = 503}, 2, 0, EXPORT_DROPPED_REFUSED},
	{"refused in part by the body", {.status = 200, .body = "partly"}, 2, 1, EXPORT_SENT},
	{"refused by the body", {.status = 200, .body = "partly"}, 1, 0, EXPORT_DROPPED_REFUSED},
};

static size_t n_lines(const struct sink_request *request)
{
	size_t n = 0;

	for (size_t i = 0; i < request->body_len; i++)
		n += request->body[i] == '\n';
	return n;
}

static void test_replies(void **state)
{
	struct fixture *f = *state;

	for (size_t i = 0; i < array_size(reply_rows); i++) {
		const struct reply_row *row = &reply_rows[i];
		struct sink_answer script[] = {row->answer, ok};

		row_begin(row->name);
		assert_int_equal(start(f, script, array_size(script)), 0);
		for (size_t k = 0; k < row->n_first; k++)
			submit(f, PROFILE_CPU, 0, 'p', 100000);
		flush(f);
		assert_int_equal(n_lines(sink_request(f->sink, 0)), row->n_first);
		if (row->n_next)
			assert_int_equal(n_lines(sink_request(f->sink, 1)), row->n_next);
		else
			assert_int_equal(sink_n_requests(f->sink), 1);
		assert_int_equal(count(f, row->outcome), row->n_first);
		assert_int_equal(count_all(f) - count(f, EXPORT_RETRIED), row->n_first);
		stop(f);
	}
}

/* After a reply about a part of a batch the refused profile is searched for. */
static void test_part(void **state)
{
	static const size_t sizes[] = {BATCH, 1, 1, 1, 2};
	static const struct sink_answer script[] = {{.status = 200, .body = "partly", .times = 2},
						    {.status = 200}};
	struct fixture *f = *state;

	assert_int_equal(start(f, script, array_size(script)), 0);
	for (size_t i = 0; i < BATCH + 2; i++)
		submit(f, PROFILE_CPU, 0, 'p', 10);
	flush(f);
	assert_int_equal(sink_n_requests(f->sink), array_size(sizes));
	for (size_t i = 0; i < array_size(sizes); i++)
		assert_int_equal(n_lines(sink_request(f->sink, i)), sizes[i]);
	assert_int_equal(count(f, EXPORT_DROPPED_REFUSED), 1);
	assert_int_equal(count(f, EXPORT_SENT), BATCH + 1);
}

/* A profile that cannot be encoded is searched for without the server, and dropped. */
static void test_unencodable(void **state)
{
	static const size_t sizes[] = {1, 1, 2};
	struct fixture *f = *state;

	assert_int_equal(start(f, &ok, 1), 0);
	submit(f, PROFILE_CPU, 0, 'a', 1);
	submit(f, PROFILE_CPU, 0, '!', 1);
	submit(f, PROFILE_CPU, 0, 'b', 1);
	submit(f, PROFILE_CPU, 0, 'c', 1);
	submit(f, PROFILE_CPU, 0, 'd', 1);
	flush(f);
	assert_int_equal(sink_n_requests(f->sink), array_size(sizes));
	for (size_t i = 0; i < array_size(sizes); i++)
		assert_int_equal(n_lines(sink_request(f->sink, i)), sizes[i]);
	assert_int_equal(count(f, EXPORT_DROPPED_REFUSED), 1);
	assert_int_equal(count(f, EXPORT_SENT), 4);
}

/* Profiles refused inside an accepted request are counted and not sent again. */
static void test_rejected(void **state)
{
	static const struct sink_answer script[] = {{.status = 200, .body = "refused 2"},
						    {.status = 200, .body = "refused 0"}};
	struct fixture *f = *state;
	struct reader r = {.sink = {family_of_rejected, sum_value}};

	assert_int_equal(start(f, script, array_size(script)), 0);
	for (size_t i = 0; i < BATCH + 1; i++)
		submit(f, PROFILE_CPU, 0, 'p', 10);
	flush(f);
	assert_int_equal(sink_n_requests(f->sink), 2);
	assert_int_equal(count(f, EXPORT_SENT), BATCH + 1);
	export_collect(f->e, &r.sink);
	assert_int_equal(r.sum, 2);
}

static void test_token_header(void **state)
{
	struct fixture *f = *state;

	setenv("PODPROF_TEST_TOKEN", "secret key", 1);
	assert_int_equal(start_as(f, "small=%s,bearer-token-env=PODPROF_TEST_TOKEN", &ok, 1), 0);
	export_submit(f->e, profile_make(PROFILE_CPU, "s", nsec_wall(), 'p', 1));
	flush(f);
	unsetenv("PODPROF_TEST_TOKEN");
	assert_int_equal(sink_n_requests(f->sink), 1);
	assert_string_equal(sink_request(f->sink, 0)->tenant, "secret key");
	assert_null(sink_request(f->sink, 0)->authorization);
}

static void test_age(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(start(f, &ok, 1), 0);
	submit(f, PROFILE_CPU, AGE_NS + NSEC_PER_SEC, 'o', 1);
	submit(f, PROFILE_CPU, AGE_NS - 60 * NSEC_PER_SEC, 'n', 1);
	flush(f);
	assert_int_equal(count(f, EXPORT_DROPPED_OLD), 1);
	assert_int_equal(count(f, EXPORT_SENT), 1);
}

/* ---- limits and settings */

struct limits_row {
	const char *name;
	const char *destinations[3];
	struct profile_limits limits;
};

static const struct limits_row limits_rows[] = {
	{"none: podprof's own", {NULL}, {PROFILE_SAMPLES_MAX, PROFILE_BYTES_MAX}},
	{"samples of one kind", {"line=http://h"}, {100, PROFILE_BYTES_MAX}},
	{"bytes of another", {"small=http://h"}, {PROFILE_SAMPLES_MAX, 7}},
	{"each the least", {"line=http://h", "small=http://h", "line=http://i"}, {100, 7}},
	{"with a built-in kind", {"pyroscope=http://h", "line=http://h"}, {100, 31u << 16}},
};

static void test_limits(void **state)
{
	struct fixture *f = *state;

	for (size_t i = 0; i < array_size(limits_rows); i++) {
		const struct limits_row *row = &limits_rows[i];
		struct export_opts opts = {
			.loop = f->loop, .destinations = row->destinations, .kinds = kinds};
		struct profile_limits limits;
		char *error;

		row_begin(row->name);
		while (opts.n_destinations < array_size(row->destinations) &&
		       row->destinations[opts.n_destinations])
			opts.n_destinations++;
		assert_int_equal(export_new(&opts, &f->e, &error), 0);
		limits = export_limits(f->e);
		assert_int_equal(limits.samples, row->limits.samples);
		assert_int_equal(limits.bytes, row->limits.bytes);
		stop(f);
	}
}

struct wrong_row {
	const char *spec;
	const char *says;
};

static const struct wrong_row wrong_rows[] = {
	{"small=http://h,tenant=t", "destination small: this kind has no tenant; remove tenant"},
	{"lines=http://h",
	 "unknown destination kind 'lines'; the kinds are: pyroscope, line, small"},
};

static void test_wrong(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(wrong_rows); i++) {
		_cleanup_(freep) char *error = NULL;
		struct destination *d;

		row_begin(wrong_rows[i].spec);
		assert_int_equal(destination_new_of(kinds, wrong_rows[i].spec, &d, &error), 1);
		assert_string_equal(error, wrong_rows[i].says);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_request, setup, teardown),
		cmocka_unit_test_setup_teardown(test_replies, setup, teardown),
		cmocka_unit_test_setup_teardown(test_part, setup, teardown),
		cmocka_unit_test_setup_teardown(test_unencodable, setup, teardown),
		cmocka_unit_test_setup_teardown(test_rejected, setup, teardown),
		cmocka_unit_test_setup_teardown(test_token_header, setup, teardown),
		cmocka_unit_test_setup_teardown(test_age, setup, teardown),
		cmocka_unit_test_setup_teardown(test_limits, setup, teardown),
		cmocka_unit_test(test_wrong),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
