// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "support/allocfail.h"
#include "support/profiles.h"

#include "base/buf.h"
#include "base/http.h"
#include "base/nsec.h"
#include "export/parca.h"
#include "pprof/reader.h"

DEFINE_CLEANUP(struct profile *, profile_freep, profile_free);
DEFINE_CLEANUP(json_t *, json_freep, json_decref);

static int encode(struct profile *const *profiles, size_t n, struct destination_request *ret)
{
	struct destination_profile list[8];

	for (size_t i = 0; i < n; i++)
		list[i] = (struct destination_profile){
			.profile = profiles[i],
			.pprof = profiles[i]->pprof,
			.pprof_len = profiles[i]->pprof_len,
			.id = "",
		};
	return destination_parca.encode(list, n, ret);
}

static json_t *decode(struct profile *const *profiles, size_t n)
{
	_cleanup_(destination_request_deinit) struct destination_request request = {0};
	json_t *m;

	assert_int_equal(encode(profiles, n, &request), 0);
	assert_null(request.query);
	m = json_loadb(request.body, request.body_len, JSON_REJECT_DUPLICATES, NULL);
	assert_non_null(m);
	assert_true(json_is_true(json_object_get(m, "normalized")));
	assert_int_equal(json_array_size(json_object_get(m, "series")), n);
	return m;
}

static json_t *series(json_t *m, size_t i)
{
	return json_array_get(json_object_get(m, "series"), i);
}

static void unbase64(const char *text, struct buf *ret)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	assert_int_equal(strlen(text) % 4, 0);
	for (; *text; text += 4) {
		unsigned int bits = 0;
		size_t n = 3;

		for (size_t i = 0; i < 4; i++) {
			const char *digit = strchr(digits, text[i]);

			assert_true(digit || (text[i] == '=' && i >= 2 && text[3] == '='));
			n -= !digit;
			bits = bits << 6 | (digit ? (unsigned int)(digit - digits) : 0);
		}
		for (size_t i = 0; i < n; i++)
			assert_int_equal(buf_putc(ret, (char)(bits >> (16 - 8 * i))), 0);
	}
}

static void sample(json_t *m, size_t i_series, size_t i, struct buf *ret)
{
	json_t *samples = json_object_get(series(m, i_series), "samples");

	unbase64(json_string_value(json_object_get(json_array_get(samples, i), "rawProfile")), ret);
}

static void describe_labels(json_t *m, size_t i, char *ret, size_t n)
{
	json_t *labels = json_object_get(json_object_get(series(m, i), "labels"), "labels");

	*ret = '\0';
	for (size_t j = 0; j < json_array_size(labels); j++) {
		json_t *label = json_array_get(labels, j);

		snprintf(ret + strlen(ret), n - strlen(ret), "%s=%s ",
			 json_string_value(json_object_get(label, "name")),
			 json_string_value(json_object_get(label, "value")));
	}
}

static void test_labels(void **state)
{
	_cleanup_(profile_freep) struct profile *cpu = profile_make_real(PROFILE_CPU);
	_cleanup_(profile_freep) struct profile *mutex = profile_make_real(PROFILE_GO_MUTEX);
	struct profile *both[] = {cpu, mutex};
	_cleanup_(json_freep) json_t *m = NULL;
	char text[512];

	(void)state;
	assert_int_equal(labels_set(&cpu->labels, "team", "a \"b\"\n\\"), 0);
	assert_int_equal(labels_set(&cpu->labels, "__session_id__", "1"), 0);
	m = decode(both, 2);
	describe_labels(m, 0, text, sizeof(text));
	assert_string_equal(text, "__name__=process_cpu container=web namespace=shop node=n1 "
				  "pod=web-5d4f8c7b9-x2x4k service_name=shop team=a \"b\"\n\\ ");
	describe_labels(m, 1, text, sizeof(text));
	assert_non_null(strstr(text, "__name__=mutex "));
}

/* Lengths of all remainders by 3. */
static void test_bytes(void **state)
{
	(void)state;
	for (size_t n = 1; n < 10; n++) {
		_cleanup_(profile_freep) struct profile *profile =
			profile_make(PROFILE_CPU, "s", 1, '\xfb', n);
		_cleanup_(json_freep) json_t *m = NULL;
		_cleanup_(buf_deinit) struct buf raw = BUF_INIT(64);

		profile->pprof[n - 1] = (char)(0xff - n);
		m = decode(&profile, 1);
		sample(m, 0, 0, &raw);
		assert_int_equal(raw.len, n);
		assert_memory_equal(raw.data, profile->pprof, n);
	}
}

/* Two profiles: the allocated memory, and the memory in use at a moment. */
static void test_heap(void **state)
{
	static const struct {
		const char *types[2];
		int64_t duration_ns, totals[2];
	} parts[] = {
		{{"alloc_objects", "alloc_space"}, 60 * NSEC_PER_SEC, {30, 42}},
		{{"inuse_objects", "inuse_space"}, 0, {34, 46}},
	};
	_cleanup_(profile_freep) struct profile *profile = profile_make_real(PROFILE_GO_HEAP);
	_cleanup_(json_freep) json_t *m = decode(&profile, 1);

	(void)state;
	assert_int_equal(json_array_size(json_object_get(series(m, 0), "samples")), 2);
	for (size_t i = 0; i < 2; i++) {
		_cleanup_(buf_deinit) struct buf raw = BUF_INIT(65536);
		_cleanup_(reader_freep) struct reader *reader = NULL;
		const struct pprof_tables *t;
		const char *why;

		sample(m, 0, i, &raw);
		assert_int_equal(reader_new(raw.data, raw.len, 65536, &reader, &why), 0);
		t = reader_tables(reader);
		assert_int_equal(t->n_types, 2);
		assert_int_equal(t->duration_ns, parts[i].duration_ns);
		assert_int_equal(t->time_ns, PROFILE_REAL_START_NS);
		assert_string_equal(t->strings[t->period_type.type], "space");
		for (size_t j = 0; j < 2; j++) {
			assert_string_equal(t->strings[t->types[j].type], parts[i].types[j]);
			assert_int_equal(tables_total(t, j), parts[i].totals[j]);
		}
	}
}

static void test_unreadable(void **state)
{
	_cleanup_(profile_freep) struct profile *profile =
		profile_make(PROFILE_GO_HEAP, "s", 1, 'x', 5);
	_cleanup_(destination_request_deinit) struct destination_request request = {0};

	(void)state;
	assert_int_equal(encode(&profile, 1, &request), -EBADMSG);
}

static void test_replies(void **state)
{
	static const struct {
		long status;
		enum destination_verdict verdict;
	} replies[] = {
		{200, DESTINATION_SENT},	 {400, DESTINATION_REFUSED_PART},
		{401, DESTINATION_DENIED},	 {404, DESTINATION_REFUSED},
		{413, DESTINATION_SPLIT},	 {429, DESTINATION_RETRY_SMALLER},
		{500, DESTINATION_REFUSED_PART}, {503, DESTINATION_RETRY},
	};

	(void)state;
	for (size_t i = 0; i < array_size(replies); i++)
		assert_int_equal(destination_parca.verdict(
					 &(struct http_reply){.status = replies[i].status}),
				 replies[i].verdict);
}

static int encode_any(void *ctx)
{
	_cleanup_(destination_request_deinit) struct destination_request request = {0};
	struct profile *profile = ctx;

	return encode(&profile, 1, &request);
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
		cmocka_unit_test(test_labels),	cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_heap),	cmocka_unit_test(test_unreadable),
		cmocka_unit_test(test_replies), cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
