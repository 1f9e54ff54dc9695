// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <string.h>

#include "support/allocfail.h"
#include "support/profiles.h"

#include "base/http.h"
#include "export/destination.h"
#include "export/outbox.h"
#include "export/pyroscope.h"
#include "push.pb-c.h"

#define SERIES_MAX 256

/* Of any age. */
static const struct destination_kind kind = {
	.name = "pyroscope", .limits.age_ns = UINT64_MAX, .deltas = true};

struct fixture {
	struct outbox_budget budget;
	struct outbox box;
	struct outbox_list batch;
	Push__V1__PushRequest *request;
};

static void fixture_init(struct fixture *f)
{
	*f = (struct fixture){.budget.max_bytes = UINT64_MAX};
	outbox_init(&f->box, &f->budget, &kind);
}

static void fixture_deinit(struct fixture *f)
{
	if (f->request)
		push__v1__push_request__free_unpacked(f->request, NULL);
	outbox_end(&f->box, &f->batch, EXPORT_SENT);
	outbox_deinit(&f->box);
}

static void fixture_add(struct fixture *f, struct profile *profile)
{
	struct queued_profile *p;

	assert_int_equal(queued_profile_new(&f->budget, profile, &p), 0);
	outbox_push(&f->box, p, 0);
	queued_profile_unref(p);
}

/* Of the taken profiles. */
static int encode(struct fixture *f, struct destination_request *ret)
{
	struct destination_profile profiles[SERIES_MAX];

	outbox_profiles(&f->box, &f->batch, profiles);
	return destination_pyroscope.encode(profiles, f->batch.n, ret);
}

/* Encode all added profiles, and decode them with the generated reader. */
static void fixture_encode(struct fixture *f)
{
	_cleanup_(destination_request_deinit) struct destination_request request = {0};

	outbox_take(&f->box, SERIES_MAX, UINT64_MAX, 0, &f->batch);
	assert_int_equal(encode(f, &request), 0);
	assert_null(request.query);
	f->request = push__v1__push_request__unpack(NULL, request.body_len,
						    (const uint8_t *)request.body);
	assert_non_null(f->request);
	assert_int_equal(f->request->n_series, f->batch.n);
}

static const char *label(const Push__V1__RawProfileSeries *series, const char *name)
{
	const char *value = NULL;

	for (size_t i = 0; i < series->n_labels; i++)
		if (strcmp(series->labels[i]->name, name) == 0) {
			assert_null(value); /* once */
			value = series->labels[i]->value;
		}
	return value;
}

struct series_row {
	const char *name;
	enum profile_kind kind;
	const char *service;
	const char *delta;
	const char *want_name;
	const char *want_service;
	char want_mark;
};

static const struct series_row rows[] = {
	{"CPU", PROFILE_CPU, "shop", NULL, "process_cpu", "shop", 'p'},
	{"heap, first window", PROFILE_GO_HEAP, "shop", NULL, "memory", "shop", 'p'},
	{"heap with differences", PROFILE_GO_HEAP, "shop", "d", "memory", "shop", 'd'},
	{"no service", PROFILE_CPU, NULL, NULL, "process_cpu", "unknown_service", 'p'},
};

static void test_series(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		const struct series_row *row = &rows[i];
		struct profile *profile = profile_make(row->kind, row->service, 1, 'p', 5);
		const Push__V1__RawProfileSeries *series;
		struct fixture f;

		row_begin(row->name);
		profile->pprof_delta = row->delta ? strdup(row->delta) : NULL;
		profile->pprof_delta_len = row->delta ? 1 : 0;
		assert_int_equal(labels_set(&profile->labels, "__session_id__", "1"), 0);
		fixture_init(&f);
		fixture_add(&f, profile);
		fixture_encode(&f);
		series = f.request->series[0];
		assert_string_equal(label(series, "__name__"), row->want_name);
		assert_string_equal(label(series, "__delta__"), "false");
		assert_string_equal(label(series, "service_name"), row->want_service);
		assert_string_equal(label(series, "node"), "n1");
		assert_int_equal(series->n_labels, 4);
		assert_int_equal(series->n_samples, 1);
		assert_int_equal(series->samples[0]->raw_profile.len, row->delta ? 1 : 5);
		assert_int_equal(series->samples[0]->raw_profile.data[0], row->want_mark);
		assert_string_equal(series->samples[0]->id, f.batch.first->queued->id);
		fixture_deinit(&f);
	}
}

/* As many series with as many labels as there may be. */
static void test_most(void **state)
{
	struct fixture f;

	(void)state;
	fixture_init(&f);
	for (size_t i = 0; i < SERIES_MAX + 1; i++) {
		struct profile *profile = profile_make(PROFILE_CPU, NULL, 1, 'a', 1);

		for (size_t j = 0; j < LABELS_MAX - 1; j++) {
			char name[16];

			snprintf(name, sizeof(name), "l%zu", j);
			assert_int_equal(labels_set(&profile->labels, name, "v"), 0);
		}
		assert_int_equal(labels_set(&profile->labels, "more", "v"), LABELS_FULL);
		fixture_add(&f, profile);
	}
	fixture_encode(&f);
	assert_int_equal(f.request->n_series, SERIES_MAX);
	assert_int_equal(f.request->series[SERIES_MAX - 1]->n_labels, 30);
	fixture_deinit(&f);
}

static int encode_any(void *ctx)
{
	_cleanup_(destination_request_deinit) struct destination_request request = {0};

	return encode(ctx, &request);
}

static void test_no_memory(void **state)
{
	struct fixture f;

	(void)state;
	fixture_init(&f);
	fixture_add(&f, profile_make(PROFILE_CPU, "s", 1, 'a', 1));
	outbox_take(&f.box, 1, 1, 0, &f.batch);
	allocfail_each(encode_any, &f);
	fixture_deinit(&f);
}

/* Known refusals of the server; the pipelines and the sender ask for these limits. */
static void test_limits(void **state)
{
	const struct destination_limits *limits = &destination_pyroscope.limits;

	(void)state;
	assert_int_equal(limits->profile.samples, 16000);
	assert_int_equal(limits->profile.bytes, 31u << 16);
	assert_int_equal(limits->profiles, SERIES_MAX);
	assert_int_equal(limits->age_ns, 59 * 60 * 1000000000ull);
}

static void test_verdicts(void **state)
{
	static const struct {
		long status;
		const char *body;
		enum destination_verdict verdict;
	} replies[] = {
		{200, "{}", DESTINATION_SENT},
		{400, "{\"code\":\"invalid_argument\"}", DESTINATION_REFUSED_MAYBE},
		{400, "uncompressed batched profile payload size exceeds limit of 1 MB",
		 DESTINATION_SPLIT},
		{401, "", DESTINATION_DENIED},
		{404, "", DESTINATION_REFUSED},
		{413, "", DESTINATION_SPLIT},
		{429, "", DESTINATION_RETRY_SMALLER},
		{500, "", DESTINATION_RETRY},
		{0, "", DESTINATION_RETRY},
	};

	(void)state;
	for (size_t i = 0; i < array_size(replies); i++) {
		const struct http_reply reply = {.status = replies[i].status,
						 .body = replies[i].body,
						 .body_len = strlen(replies[i].body)};

		assert_int_equal(destination_pyroscope.verdict(&reply), replies[i].verdict);
	}
}

/* The doctor's question: no series, no bytes. */
static void test_probe(void **state)
{
	static const struct {
		const char *name;
		struct http_reply reply;
		bool ok;
	} replies[] = {
		{"no series", {.status = 400, .body = "{\"code\":\"invalid_argument\"}"}, true},
		{"another server", {.status = 400, .body = "bad request"}, false},
		{"credentials", {.status = 401, .body = "invalid_argument"}, false},
	};
	_cleanup_(destination_request_deinit) struct destination_request request = {0};

	(void)state;
	assert_int_equal(destination_pyroscope.encode(NULL, 0, &request), 0);
	assert_non_null(request.body);
	assert_int_equal(request.body_len, 0);
	for (size_t i = 0; i < array_size(replies); i++) {
		row_begin(replies[i].name);
		assert_int_equal(destination_pyroscope.probe_ok(&replies[i].reply), replies[i].ok);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_series),	  cmocka_unit_test(test_most),
		cmocka_unit_test(test_no_memory), cmocka_unit_test(test_limits),
		cmocka_unit_test(test_probe),	  cmocka_unit_test(test_verdicts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
