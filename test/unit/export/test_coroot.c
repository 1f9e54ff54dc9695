// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <errno.h>
#include <string.h>

#include "support/allocfail.h"
#include "support/profiles.h"

#include "base/http.h"
#include "base/nsec.h"
#include "export/coroot.h"
#include "export/outbox.h"
#include "pprof/reader.h"

#define END_NS (PROFILE_REAL_START_NS + 60 * NSEC_PER_SEC)

DEFINE_CLEANUP(struct profile *, profile_freep, profile_free);

static int encode_part(const struct profile *profile, unsigned int part,
		       struct destination_request *ret)
{
	const struct destination_profile p = {
		.profile = profile,
		.pprof = profile->pprof,
		.pprof_len = profile->pprof_len,
		.id = "",
		.part = part,
	};

	return destination_coroot.encode(&p, 1, ret);
}

struct type_row {
	enum profile_kind kind;
	unsigned int part;
	const char *type;
	size_t n_samples;
	int64_t total;
};

static const struct type_row type_rows[] = {
	{PROFILE_CPU, 0, "ebpf:cpu:nanoseconds", 3, 60ll * PROFILE_REAL_PERIOD},
	{PROFILE_GO_HEAP, 0, "go_runtime:heap_alloc_objects:count", 2, 30},
	{PROFILE_GO_HEAP, 1, "go_runtime:heap_alloc_space:bytes", 2, 42},
	{PROFILE_GO_HEAP, 2, "go_runtime:heap_inuse_objects:count", 2, 34},
	{PROFILE_GO_HEAP, 3, "go_runtime:heap_inuse_space:bytes", 2, 46},
	{PROFILE_GO_MUTEX, 0, "go:mutex_contentions:count", 2, 30},
	{PROFILE_GO_MUTEX, 1, "go:mutex_delay:nanoseconds", 2, 42},
	{PROFILE_GO_BLOCK, 0, "go:block_contentions:count", 2, 30},
	{PROFILE_GO_BLOCK, 1, "go:block_delay:nanoseconds", 2, 42},
};

/* One type in a request, without zeros, at the end of the window. */
static void test_types(void **state)
{
	int64_t time_ns = 0;

	(void)state;
	for (size_t i = 0; i < array_size(type_rows); i++) {
		const struct type_row *row = &type_rows[i];
		_cleanup_(profile_freep) struct profile *profile = profile_make_real(row->kind);
		_cleanup_(destination_request_deinit) struct destination_request request = {0};
		_cleanup_(reader_freep) struct reader *reader = NULL;
		const struct pprof_tables *t;
		const char *why;

		row_begin(row->type);
		assert_int_equal(encode_part(profile, row->part, &request), 0);
		assert_int_equal(
			reader_new(request.body, request.body_len, 1u << 20, &reader, &why), 0);
		t = reader_tables(reader);
		assert_int_equal(t->n_types, 1);
		assert_string_equal(t->strings[t->types[0].type], row->type);
		assert_int_equal(t->n_samples, row->n_samples);
		assert_int_equal(tables_total(t, 0), row->total);
		assert_int_equal(t->duration_ns, 60 * NSEC_PER_SEC);
		/* nanoseconds of the container's own, the same for each profile */
		assert_in_range(t->time_ns, END_NS, END_NS + NSEC_PER_MSEC - 1);
		assert_true(!time_ns || time_ns == t->time_ns);
		time_ns = t->time_ns;
	}
}

/* The queue has an item for each type, and only for kinds that Coroot knows. */
static void test_parts(void **state)
{
	(void)state;
	for (int kind = 0; kind < PROFILE_KIND_MAX; kind++) {
		const unsigned int n = destination_coroot.parts[kind];
		size_t n_rows = 0;

		for (size_t i = 0; i < array_size(type_rows); i++)
			n_rows += type_rows[i].kind == (enum profile_kind)kind;
		assert_int_equal(n_rows != 0, destination_coroot.types[kind] != NULL);
		if (n_rows)
			assert_int_equal(n ? n : 1, n_rows);
	}
}

struct name_row {
	const char *labels[10]; /* name, value, ... */
	const char *query;
};

static const struct name_row name_rows[] = {
	{{"namespace", "shop", "pod", "web-5d4f8c7b9-x2x4k", "container", "web", "node", "n1"},
	 "?service.name=%2Fk8s%2Fshop%2Fweb&container.id=%2Fk8s%2Fshop%2Fweb-5d4f8c7b9-x2x4k%2Fweb"
	 "&host.name=n1&namespace=shop&pod=web-5d4f8c7b9-x2x4k"},
	{{"namespace", "a", "pod", "ds-x2x4k", "container", "c"},
	 "?service.name=%2Fk8s%2Fa%2Fds&container.id=%2Fk8s%2Fa%2Fds-x2x4k%2Fc&namespace=a&pod=ds-"
	 "x2x4k"},
	{{"namespace", "a", "pod", "db-12", "container", "c"},
	 "?service.name=%2Fk8s%2Fa%2Fdb&container.id=%2Fk8s%2Fa%2Fdb-12%2Fc&namespace=a&pod=db-12"},
	/* letters that Kubernetes does not draw; a name of nothing but its end */
	{{"namespace", "a", "pod", "web-aeiou", "container", "c"},
	 "?service.name=%2Fk8s%2Fa%2Fweb-aeiou%2Fc&container.id=%2Fk8s%2Fa%2Fweb-aeiou%2Fc"
	 "&namespace=a&pod=web-aeiou"},
	{{"namespace", "a", "pod", "-x2x4k", "container", "c"},
	 "?service.name=%2Fk8s%2Fa%2F-x2x4k%2Fc&container.id=%2Fk8s%2Fa%2F-x2x4k%2Fc&namespace=a"
	 "&pod=-x2x4k"},
	{{"container", "redis&x=1", "service_name", "redis"},
	 "?service.name=%2Fdocker%2Fredis%26x%3D1&container.id=%2Fdocker%2Fredis%26x%3D1"},
	{{"slice", "system.slice", "unit", "ssh.service"},
	 "?service.name=%2Fsystem.slice%2Fssh.service&container.id=%2Fsystem.slice%2Fssh.service"},
	{{"comm", "bash", "service_name", "bash"}, "?service.name=bash"},
	{{NULL}, "?service.name=unknown"},
};

static void test_names(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(name_rows); i++) {
		const struct name_row *row = &name_rows[i];
		_cleanup_(profile_freep) struct profile *profile = profile_make_real(PROFILE_CPU);
		_cleanup_(destination_request_deinit) struct destination_request request = {0};

		row_begin(row->query);
		labels_deinit(&profile->labels);
		for (size_t j = 0; j < array_size(row->labels) && row->labels[j]; j += 2)
			assert_int_equal(
				labels_set(&profile->labels, row->labels[j], row->labels[j + 1]),
				0);
		assert_int_equal(encode_part(profile, 0, &request), 0);
		assert_string_equal(request.query, row->query);
	}
}

static void test_unreadable(void **state)
{
	_cleanup_(profile_freep) struct profile *profile =
		profile_make(PROFILE_CPU, "s", 1, 'x', 5);
	_cleanup_(destination_request_deinit) struct destination_request request = {0};

	(void)state;
	assert_int_equal(encode_part(profile, 0, &request), -EBADMSG);
}

static void test_replies(void **state)
{
	static const struct {
		long status;
		const char *body;
		enum destination_verdict verdict;
		bool probe_ok;
	} replies[] = {
		{200, "", DESTINATION_SENT, false},
		{400, "service.name is empty\n", DESTINATION_REFUSED, true},
		{400, "unrecognized profile format\n", DESTINATION_REFUSED, false},
		{404, "project not found\n", DESTINATION_DENIED, false},
		{503, "", DESTINATION_RETRY, false},
	};

	(void)state;
	for (size_t i = 0; i < array_size(replies); i++) {
		const struct http_reply reply = {.status = replies[i].status,
						 .body = replies[i].body,
						 .body_len = strlen(replies[i].body)};

		assert_int_equal(destination_coroot.verdict(&reply), replies[i].verdict);
		assert_int_equal(destination_coroot.probe_ok(&reply), replies[i].probe_ok);
	}
}

static void test_probe(void **state)
{
	_cleanup_(destination_request_deinit) struct destination_request request = {0};

	(void)state;
	assert_int_equal(destination_coroot.encode(NULL, 0, &request), 0);
	assert_non_null(request.body);
	assert_int_equal(request.body_len, 0);
	assert_null(request.query);
}

static int encode_any(void *ctx)
{
	_cleanup_(destination_request_deinit) struct destination_request request = {0};

	return encode_part(ctx, 3, &request);
}

static void test_no_memory(void **state)
{
	_cleanup_(profile_freep) struct profile *profile = profile_make_real(PROFILE_GO_HEAP);

	(void)state;
	allocfail_each(encode_any, profile);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_types),	  cmocka_unit_test(test_parts),
		cmocka_unit_test(test_names),	  cmocka_unit_test(test_unreadable),
		cmocka_unit_test(test_replies),	  cmocka_unit_test(test_probe),
		cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
