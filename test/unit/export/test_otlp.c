// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <errno.h>
#include <string.h>
#include <zlib.h>

#include "support/allocfail.h"
#include "support/profiles.h"

#include "base/buf.h"
#include "base/http.h"
#include "base/nsec.h"
#include "base/strview.h"
#include "export/otlp.h"
#include "otlp.pb-c.h"
#include "pprof/pprof.h"

#define BYTES_MAX (1u << 20)
#define ID	  "00112233-4455-4677-8899-aabbccddeeff"

typedef Otlp__ExportProfilesRequest request_msg;

DEFINE_CLEANUP(struct profile *, profile_freep, profile_free);

static void request_freep(request_msg **m)
{
	if (*m)
		otlp__export_profiles_request__free_unpacked(*m, NULL);
}

static int encode(struct profile *const *profiles, size_t n, struct destination_request *ret)
{
	struct destination_profile list[8];

	for (size_t i = 0; i < n; i++)
		list[i] = (struct destination_profile){
			.profile = profiles[i],
			.pprof = profiles[i]->pprof,
			.pprof_len = profiles[i]->pprof_len,
			.id = ID,
		};
	return destination_otlp.encode(list, n, ret);
}

/* The generated reader's view of a request with @n profiles. */
static request_msg *decode(struct profile *const *profiles, size_t n)
{
	_cleanup_(destination_request_deinit) struct destination_request request = {0};
	_cleanup_(freep) uint8_t *raw = malloc(BYTES_MAX);
	z_stream z = {.next_out = raw, .avail_out = BYTES_MAX};
	request_msg *m;

	assert_int_equal(encode(profiles, n, &request), 0);
	z.next_in = (Bytef *)request.body;
	z.avail_in = (uInt)request.body_len;
	assert_int_equal(inflateInit2(&z, 16 + 15), Z_OK);
	assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
	assert_int_equal(z.avail_in, 0);
	m = otlp__export_profiles_request__unpack(NULL, BYTES_MAX - z.avail_out, raw);
	inflateEnd(&z);
	assert_non_null(m);
	return m;
}

/* "service.name=shop ..." */
static void describe_resource(const Otlp__Resource *resource, char *ret, size_t n)
{
	*ret = '\0';
	for (size_t i = 0; i < resource->n_attributes; i++) {
		const Otlp__KeyValue *pair = resource->attributes[i];

		assert_int_equal(pair->value->value_case, OTLP__ANY_VALUE__VALUE_STRING_VALUE);
		snprintf(ret + strlen(ret), n - strlen(ret), "%s=%s ", pair->key,
			 pair->value->string_value);
	}
}

/* The text of an attribute of the dictionary, "" for a missing attribute. */
static const char *attribute(const Otlp__Dictionary *d, const char *key, const int32_t *indices,
			     size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const Otlp__KeyValueAndUnit *a = d->attribute_table[indices[i]];

		if (strcmp(d->string_table[a->key_strindex], key) == 0)
			return a->value->string_value;
	}
	return "";
}

/* "main.work[go] main.main[go] 10, " for each sample. */
static void describe_samples(const Otlp__Dictionary *d, const Otlp__Profile *p, char *ret, size_t n)
{
	*ret = '\0';
	for (size_t i = 0; i < p->n_samples; i++) {
		const Otlp__Sample *sample = p->samples[i];
		const Otlp__Stack *stack = d->stack_table[sample->stack_index];

		assert_int_equal(sample->n_values, 1);
		for (size_t j = 0; j < stack->n_location_indices; j++) {
			const Otlp__Location *l = d->location_table[stack->location_indices[j]];
			const Otlp__Function *f = d->function_table[l->lines[0]->function_index];

			snprintf(ret + strlen(ret), n - strlen(ret), "%s[%s] ",
				 d->string_table[f->name_strindex],
				 attribute(d, "profile.frame.type", l->attribute_indices,
					   l->n_attribute_indices));
		}
		snprintf(ret + strlen(ret), n - strlen(ret), "%lld, ",
			 (long long)sample->values[0]);
	}
}

static void describe_type(const Otlp__Dictionary *d, const Otlp__Profile *p, char *ret, size_t n)
{
	snprintf(ret, n, "%s/%s %s/%s %lld %llu", d->string_table[p->sample_type->type_strindex],
		 d->string_table[p->sample_type->unit_strindex],
		 p->period_type ? d->string_table[p->period_type->type_strindex] : "",
		 p->period_type ? d->string_table[p->period_type->unit_strindex] : "",
		 (long long)p->period, (unsigned long long)(p->duration_nano / NSEC_PER_SEC));
}

struct type_row {
	enum profile_kind kind;
	const char *types[4]; /* sample type, period type, period, seconds */
	const char *samples;  /* of the first */
};

static const struct type_row type_rows[] = {
	{PROFILE_CPU,
	 {"samples/count cpu/nanoseconds 10309278 60"},
	 "main.work[go] main.main[go] 10, do_read[kernel] main.main[go] 20, "
	 "read[native] main.main[go] 30, "},
	{PROFILE_OFF_CPU,
	 {"off_cpu/nanoseconds / 0 60"},
	 "main.work[go] main.main[go] 10, do_read[kernel] main.main[go] 20, "},
	{PROFILE_GO_HEAP,
	 {"alloc_objects/count space/bytes 524288 60", "alloc_space/bytes space/bytes 524288 60",
	  "inuse_objects/count space/bytes 524288 0", "inuse_space/bytes space/bytes 524288 0"},
	 "main.work[go] main.main[go] 10, do_read[kernel] main.main[go] 20, "},
	{PROFILE_GO_MUTEX,
	 {"contentions/count mutex/count 1 60", "delay/nanoseconds mutex/count 1 60"},
	 "main.work[go] main.main[go] 10, do_read[kernel] main.main[go] 20, "},
	{PROFILE_GO_BLOCK,
	 {"contentions/count block/count 1 60", "delay/nanoseconds block/count 1 60"},
	 "main.work[go] main.main[go] 10, do_read[kernel] main.main[go] 20, "},
};

static void test_types(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(type_rows); i++) {
		const struct type_row *row = &type_rows[i];
		_cleanup_(profile_freep) struct profile *profile = profile_make_real(row->kind);
		_cleanup_(request_freep) request_msg *m = decode(&profile, 1);
		const Otlp__ScopeProfiles *scope = m->resource_profiles[0]->scope_profiles[0];
		uint8_t id[16];
		char text[512];

		row_begin(row->types[0]);
		assert_string_equal(scope->scope->name, "podprof");
		assert_true(*scope->scope->version);
		for (size_t j = 0; j < array_size(row->types) && row->types[j]; j++) {
			assert_true(j < scope->n_profiles);
			describe_type(m->dictionary, scope->profiles[j], text, sizeof(text));
			assert_string_equal(text, row->types[j]);
			assert_int_equal(scope->profiles[j]->time_unix_nano, PROFILE_REAL_START_NS);
			assert_int_equal(scope->profiles[j]->profile_id.len, sizeof(id));
			memcpy(id, "\x00\x11\x22\x33\x44\x55\x46\x77\x88\x99\xaa\xbb\xcc\xdd\xee",
			       15);
			id[15] = (uint8_t)(0xff ^ j);
			assert_memory_equal(scope->profiles[j]->profile_id.data, id, sizeof(id));
		}
		assert_true(scope->n_profiles == array_size(row->types) ||
			    !row->types[scope->n_profiles]);
		describe_samples(m->dictionary, scope->profiles[0], text, sizeof(text));
		assert_string_equal(text, row->samples);
	}
}

/* Names of threads have the semantic conventions' name, other labels keep theirs. */
static void test_sample_labels(void **state)
{
	static const struct pprof_opts opts = {
		.types = {{"samples", "count"}, {"cpu", "nanoseconds"}},
		.n_types = 2,
		.period_type = {"cpu", "nanoseconds"}};
	static const struct pprof_label labels[] = {{.key = "pid", .str = "7"},
						    {.key = PROFILE_THREAD, .str = "main"}};
	_cleanup_(buf_deinit) struct buf bytes = BUF_INIT(1u << 20);
	_cleanup_(profile_freep) struct profile *profile = profile_make_real(PROFILE_CPU);
	_cleanup_(request_freep) request_msg *m = NULL;
	const Otlp__Sample *sample;
	struct pprof *p;

	(void)state;
	assert_int_equal(pprof_new(&opts, &p), 0);
	assert_int_equal(pprof_sample(p, NULL, 0, (const int64_t[]){1, 1}, labels, 2), 0);
	assert_int_equal(pprof_encode(p, &bytes), 0);
	pprof_free(p);
	free(profile->pprof);
	profile->pprof_len = bytes.len;
	profile->pprof = buf_take(&bytes);
	m = decode(&profile, 1);
	sample = m->resource_profiles[0]->scope_profiles[0]->profiles[0]->samples[0];
	assert_int_equal(sample->n_attribute_indices, 2);
	assert_string_equal(attribute(m->dictionary, "thread.name", sample->attribute_indices, 2),
			    "main");
	assert_string_equal(attribute(m->dictionary, "pid", sample->attribute_indices, 2), "7");
}

/* Entry 0 of each table is empty, and equal entries of two profiles are one. */
static void test_dictionary(void **state)
{
	_cleanup_(profile_freep) struct profile *cpu = profile_make_real(PROFILE_CPU);
	_cleanup_(profile_freep) struct profile *heap = profile_make_real(PROFILE_GO_HEAP);
	struct profile *both[] = {cpu, heap};
	_cleanup_(request_freep) request_msg *m = decode(both, 2);
	const Otlp__Dictionary *d = m->dictionary;
	const Otlp__Mapping *mapping;

	(void)state;
	assert_int_equal(m->n_resource_profiles, 2);
	assert_int_equal(d->n_mapping_table, 1 + 3);
	assert_int_equal(d->n_location_table, 1 + 4);
	assert_int_equal(d->n_function_table, 1 + 4);
	assert_int_equal(d->n_stack_table, 1 + 3);
	assert_int_equal(d->n_link_table, 1);
	assert_int_equal(d->n_attribute_table, 1 + 3 + 2); /* frame types, build ids */
	assert_string_equal(d->string_table[0], "");
	assert_int_equal(d->mapping_table[0]->memory_limit, 0);
	assert_int_equal(d->location_table[0]->n_lines, 0);
	assert_int_equal(d->function_table[0]->name_strindex, 0);
	assert_int_equal(d->stack_table[0]->n_location_indices, 0);
	assert_int_equal(d->attribute_table[0]->key_strindex, 0);
	for (size_t i = 0; i < d->n_string_table; i++)
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(d->string_table[i], d->string_table[j]);
	mapping = d->mapping_table[d->location_table[1]->mapping_index];
	assert_string_equal(attribute(d, "process.executable.build_id.gnu",
				      mapping->attribute_indices, mapping->n_attribute_indices),
			    "abcd01");
}

struct resource_row {
	const char *labels[10]; /* name, value, ... */
	const char *attributes;
};

static const struct resource_row resource_rows[] = {
	{{"namespace", "a", "pod", "p", "container", "c", "node", "n", "service_name", "s"},
	 "k8s.container.name=c k8s.namespace.name=a k8s.node.name=n k8s.pod.name=p "
	 "service.name=s "},
	{{"container", "redis", "node", "n", "service_name", "redis"},
	 "container.name=redis host.name=n service.name=redis "},
	{{"comm", "bash", "__session_id__", "1", "team", "pay"},
	 "service.name=unknown_service process.executable.name=bash team=pay "},
	{{"container_id", "5c07"}, "service.name=unknown_service container.id=5c07 "},
	{{NULL}, "service.name=unknown_service "},
};

static void test_resources(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(resource_rows); i++) {
		const struct resource_row *row = &resource_rows[i];
		_cleanup_(profile_freep) struct profile *profile = profile_make_real(PROFILE_CPU);
		_cleanup_(request_freep) request_msg *m = NULL;
		char text[512];

		row_begin(row->attributes);
		labels_deinit(&profile->labels);
		for (size_t j = 0; j < array_size(row->labels) && row->labels[j]; j += 2)
			assert_int_equal(
				labels_set(&profile->labels, row->labels[j], row->labels[j + 1]),
				0);
		m = decode(&profile, 1);
		describe_resource(m->resource_profiles[0]->resource, text, sizeof(text));
		assert_string_equal(text, row->attributes);
	}
}

static void test_unreadable(void **state)
{
	_cleanup_(profile_freep) struct profile *bad = profile_make(PROFILE_CPU, "s", 1, 'x', 5);
	_cleanup_(profile_freep) struct profile *heap = profile_make_real(PROFILE_GO_HEAP);
	_cleanup_(destination_request_deinit) struct destination_request request = {0};

	(void)state;
	assert_int_equal(encode(&bad, 1, &request), -EBADMSG);
	heap->kind = PROFILE_CPU; /* without its sample type */
	assert_int_equal(encode(&heap, 1, &request), -EBADMSG);
}

#define PARTIAL "failed to make a GRPC request: push series with index 0 and id 1 failed: "

static void test_replies(void **state)
{
	static const struct {
		long status;
		const char *body;
		enum destination_verdict verdict;
		uint64_t rejected;
		bool probe_ok;
	} replies[] = {
		{200, "", DESTINATION_SENT, 0, false},
		{200, "\x0a\x02\x08\x07", DESTINATION_SENT, 7, false},
		{400, "missing profiles dictionary", DESTINATION_REFUSED_PART, 0, true},
		{401, "", DESTINATION_DENIED, 0, false},
		{404, "", DESTINATION_REFUSED, 0, false},
		{408, "", DESTINATION_REFUSED, 0, false},
		{413, "", DESTINATION_SPLIT, 0, false},
		{429, "", DESTINATION_RETRY_SMALLER, 0, false},
		{500, "", DESTINATION_REFUSED_MAYBE, 0, false},
		{500, "failed to process profiles", DESTINATION_REFUSED_MAYBE, 0, false},
		{500, "rpc error: code = InvalidArgument desc = failed to convert otel profile: x",
		 DESTINATION_REFUSED_PART, 0, false},
		{500, "rpc error: code = InvalidArgument desc = missing resource profiles",
		 DESTINATION_REFUSED_PART, 0, true},
		{500, PARTIAL "unavailable: x", DESTINATION_REFUSED_MAYBE, 0, false},
		{400, PARTIAL "invalid_argument: x", DESTINATION_REFUSED_MAYBE, 0, false},
		{429, PARTIAL "resource_exhausted: x", DESTINATION_RETRY_SMALLER, 0, false},
		{501, "", DESTINATION_REFUSED, 0, false},
		{502, "", DESTINATION_RETRY, 0, false},
		{503, "", DESTINATION_RETRY, 0, false},
		{504, "", DESTINATION_RETRY, 0, false},
		{505, "", DESTINATION_REFUSED, 0, false},
		{0, "", DESTINATION_RETRY, 0, false},
	};

	(void)state;
	for (size_t i = 0; i < array_size(replies); i++) {
		const struct http_reply reply = {.status = replies[i].status,
						 .body = replies[i].body,
						 .body_len = strlen(replies[i].body)};
		struct strview why;

		assert_int_equal(destination_otlp.verdict(&reply), replies[i].verdict);
		assert_int_equal(destination_otlp.probe_ok(&reply), replies[i].probe_ok);
		if (replies[i].verdict == DESTINATION_SENT)
			assert_int_equal(destination_otlp.rejected(&reply, &why),
					 replies[i].rejected);
	}
}

/* Without the end of the text, what it would say is unknown. */
static void test_cut_replies(void **state)
{
	static char long_text[HTTP_REPLY_MAX + 1];
	static const struct {
		long status;
		const char *body;
		enum destination_verdict verdict;
	} cuts[] = {
		{200, "", DESTINATION_SENT},
		{400, "", DESTINATION_REFUSED_MAYBE},
		{400, "failed to make", DESTINATION_REFUSED_MAYBE},
		{400, "missing", DESTINATION_REFUSED_PART},
		{413, "", DESTINATION_SPLIT},
		{429, "", DESTINATION_REFUSED_MAYBE},
		{429, PARTIAL "resource_", DESTINATION_REFUSED_MAYBE},
		{429, "too many requests", DESTINATION_RETRY_SMALLER},
		{500, "rpc error", DESTINATION_REFUSED_MAYBE},
		{503, "", DESTINATION_RETRY},
	};
	struct http_reply reply = {.status = 429, .body = long_text, .body_len = HTTP_REPLY_MAX};

	(void)state;
	for (size_t i = 0; i < array_size(cuts); i++) {
		const struct http_reply cut = {.status = cuts[i].status,
					       .cut_status = cuts[i].status,
					       .body = cuts[i].body,
					       .body_len = strlen(cuts[i].body)};

		print_message("row: %ld, '%s'\n", cuts[i].status, cuts[i].body);
		assert_int_equal(destination_otlp.verdict(&cut), cuts[i].verdict);
	}
	/* a list longer than what is kept of a reply */
	memset(long_text, 'x', HTTP_REPLY_MAX);
	memcpy(long_text, PARTIAL, strlen(PARTIAL));
	assert_int_equal(destination_otlp.verdict(&reply), DESTINATION_REFUSED_MAYBE);
}

#define FAILURE(index, reason) "push series with index " #index " and id 1 failed: " reason
#define BUSY		       "resource_exhausted: x"
#define WRONG		       "invalid_argument: x"

/* The batch is a heap profile (four OTLP profiles, 0 to 3), a CPU profile (4) and a mutex profile
 * (5 and 6). @fates: S stored, N not stored, L lost */
struct fates_row {
	const char *name;
	const char *body;
	const char *fates;
	uint64_t rejected;
};

static const struct fates_row fates_rows[] = {
	{"the CPU profile", FAILURE(4, WRONG), "SLS", 0},
	{"above a limit", FAILURE(4, BUSY), "SNS", 0},
	{"a type of the heap profile", FAILURE(3, BUSY), "SSS", 1},
	{"all but one", "3 errors: " FAILURE(0, BUSY) "; " FAILURE(1, WRONG) "; " FAILURE(3, BUSY),
	 "SSS", 3},
	{"all types of the mutex profile", "2 errors: " FAILURE(5, BUSY) "; " FAILURE(6, BUSY),
	 "SSN", 0},
	{"one is wrong", "2 errors: " FAILURE(5, BUSY) "; " FAILURE(6, WRONG), "SSL", 0},
	{"beyond the last", FAILURE(7, BUSY), NULL, 0},
	{"nothing named", "no new profiles received", NULL, 0},
};

static void test_fates(void **state)
{
	static const char letters[] = {[DESTINATION_FATE_STORED] = 'S',
				       [DESTINATION_FATE_NOT_STORED] = 'N',
				       [DESTINATION_FATE_LOST] = 'L'};
	_cleanup_(profile_freep) struct profile *heap = profile_make_real(PROFILE_GO_HEAP);
	_cleanup_(profile_freep) struct profile *cpu = profile_make_real(PROFILE_CPU);
	_cleanup_(profile_freep) struct profile *mutex = profile_make_real(PROFILE_GO_MUTEX);
	_cleanup_(destination_request_deinit) struct destination_request request = {0};
	struct profile *profiles[] = {heap, cpu, mutex};

	(void)state;
	assert_int_equal(encode(profiles, array_size(profiles), &request), 0);
	for (size_t i = 0; i < array_size(fates_rows); i++) {
		const struct fates_row *row = &fates_rows[i];
		enum destination_fate fates[array_size(profiles)];
		uint64_t rejected = 99;
		char body[512];
		struct http_reply reply = {.status = 429, .body = body};

		row_begin(row->name);
		reply.body_len = (size_t)snprintf(body, sizeof(body),
						  "failed to make a GRPC request: %s\n", row->body);
		assert_int_equal(destination_otlp.fates(&reply, &request, array_size(profiles),
							fates, &rejected),
				 row->fates != NULL);
		for (size_t k = 0; row->fates && k < array_size(profiles); k++)
			assert_int_equal(letters[fates[k]], row->fates[k]);
		if (row->fates)
			assert_int_equal(rejected, row->rejected);
	}
}

/* The doctor's question has a dictionary and no profiles. */
static void test_probe(void **state)
{
	_cleanup_(request_freep) request_msg *m = decode(NULL, 0);

	(void)state;
	assert_int_equal(m->n_resource_profiles, 0);
	assert_int_equal(m->dictionary->n_string_table, 1);
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
		cmocka_unit_test(test_types),	      cmocka_unit_test(test_dictionary),
		cmocka_unit_test(test_sample_labels), cmocka_unit_test(test_resources),
		cmocka_unit_test(test_unreadable),    cmocka_unit_test(test_replies),
		cmocka_unit_test(test_probe),	      cmocka_unit_test(test_fates),
		cmocka_unit_test(test_no_memory),     cmocka_unit_test(test_cut_replies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
