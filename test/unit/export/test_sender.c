// SPDX-License-Identifier: Apache-2.0
/* Cases with timeouts of their own; test_export.c has the rest. */
#include "support/test.h"

#include "support/profiles.h"
#include "support/sink.h"
#include "support/until.h"

#include "base/http.h"
#include "base/loop.h"
#include "base/nsec.h"
#include "export/destination.h"
#include "export/outbox.h"
#include "export/sender.h"
#include "push.pb-c.h"

struct fixture {
	struct loop *loop;
	struct http *http;
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

static void fixture_init(struct fixture *f, const struct sink_answer *script, size_t n,
			 uint64_t total_ns)
{
	char spec[128];
	char *error;
	struct sender_opts opts = {
		.box = &f->box, .name = "test", .total_ns = total_ns, .idle = on_idle, .ctx = f};

	*f = (struct fixture){.budget.max_bytes = UINT64_MAX};
	unsetenv("http_proxy");
	unsetenv("all_proxy");
	unsetenv("ALL_PROXY");
	f->sink = sink_new(script, n, NULL);
	snprintf(spec, sizeof(spec), "pyroscope=%s", sink_url(f->sink));
	assert_int_equal(destination_new(spec, &f->destination, &error), 0);
	assert_int_equal(loop_new(&f->loop), 0);
	assert_int_equal(http_new(f->loop, &f->http), 0);
	outbox_init(&f->box, &f->budget, f->destination->kind);
	opts.loop = f->loop;
	opts.http = f->http;
	opts.destination = f->destination;
	assert_int_equal(sender_new(&opts, &f->sender), 0);
}

static void fixture_deinit(struct fixture *f)
{
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

/* Requests shrink after a timeout, and grow again after a success. */
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_time_out),
		cmocka_unit_test(test_stopped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
