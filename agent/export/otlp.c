// SPDX-License-Identifier: Apache-2.0
/*
 * OTLP/HTTP with the layout of opentelemetry-proto 1.10 (proto/otlp.proto). An OTLP profile has one
 * sample type, so a pprof profile becomes several. A sample has one value and no time stamp; zeros
 * are left out.
 *
 * A type has no name beside sample type and period type. Pyroscope takes the period's type as the
 * name, and Go's mutex and block profiles differ in nothing else, so podprof gives each its own
 * period type. CPU time goes as from the OpenTelemetry profiler: samples, and nanoseconds as the
 * period. If samples differ in weight, a stack gets the number of mean periods nearest to its time.
 *
 * Values in use are of a moment, so the duration is 0: Parca shows a profile with a duration as a
 * rate.
 *
 * Labels known to the semantic conventions become attributes of the resource; other labels keep
 * their names. Receivers read an absent resource or scope through a null pointer, so podprof always
 * sends both.
 */
#include "export/otlp.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/http.h"
#include "base/labels.h"
#include "export/otlp_dictionary.h"
#include "export/otlp_reply.h"
#include "export/pyroscope_reply.h"
#include "export/rewrite.h"
#include "pprof/reader.h"
#include "pprof/wire.h"
#include "version.h"

DEFINE_CLEANUP(struct otlp_dictionary *, otlp_dictionary_freep, otlp_dictionary_free);

/* Profiles in a request: each makes up to four OTLP profiles. Reached: the next request. */
#define OTLP_PROFILES_MAX 32
/* Bytes of compressed pprof in a request: some 5 MB before compression. The collector refuses 20
 * MiB. Reached: the next request. */
#define OTLP_PPROF_MAX	  (256u << 10)
/* Bytes of memory for the message of a request. Reached: the request is split. */
#define OTLP_MEMORY_MAX	  (32u << 20)
#define OTLP_ID_LEN	  16

/* ---- types */

struct type {
	const char *ours;
	const char *type, *unit;
	const char *period_type, *period_unit; /* NULL: none */
	bool of_moment;
	bool by_period; /* the value is divided by the period */
};

static const struct type types[PROFILE_KIND_MAX][PPROF_VALUES_MAX] = {
	[PROFILE_CPU] = {{"cpu", "samples", "count", "cpu", "nanoseconds", .by_period = true}},
	[PROFILE_OFF_CPU] = {{"delay", "off_cpu", "nanoseconds"}},
	[PROFILE_GO_HEAP] = {{"alloc_objects", "alloc_objects", "count", "space", "bytes"},
			     {"alloc_space", "alloc_space", "bytes", "space", "bytes"},
			     {"inuse_objects", "inuse_objects", "count", "space", "bytes",
			      .of_moment = true},
			     {"inuse_space", "inuse_space", "bytes", "space", "bytes",
			      .of_moment = true}},
	[PROFILE_GO_MUTEX] = {{"contentions", "contentions", "count", "mutex", "count"},
			      {"delay", "delay", "nanoseconds", "mutex", "count"}},
	[PROFILE_GO_BLOCK] = {{"contentions", "contentions", "count", "block", "count"},
			      {"delay", "delay", "nanoseconds", "block", "count"}},
};

/* ---- a request */

/* Everything is in the arena or in the dictionary. */
struct build {
	struct arena arena;
	struct otlp_dictionary *dictionary;
	Otlp__ExportProfilesRequest request;
	Otlp__Dictionary tables;
};

static void build_deinit(struct build *b)
{
	otlp_dictionary_free(b->dictionary);
	arena_deinit(&b->arena);
}

static int build_init(struct build *b, size_t n)
{
	*b = (struct build){0};
	arena_init(&b->arena, OTLP_MEMORY_MAX);
	otlp__export_profiles_request__init(&b->request);
	if (arena_array(&b->arena, n + 1, sizeof(void *), &b->request.resource_profiles))
		return -ENOMEM;
	return otlp_dictionary_new(&b->arena, &b->dictionary);
}

static int value_type(struct build *b, const char *type, const char *unit, Otlp__ValueType **ret)
{
	Otlp__ValueType *v;
	int r = arena_alloc(&b->arena, sizeof(*v), &v);

	if (r)
		return r;
	otlp__value_type__init(v);
	r = otlp_dictionary_string(b->dictionary, type, &v->type_strindex);
	if (!r)
		r = otlp_dictionary_string(b->dictionary, unit, &v->unit_strindex);
	if (!r)
		*ret = v;
	return r;
}

/* The sample's value in the type's unit. */
static int64_t value_of(const struct pprof_tables *t, const struct type *type, size_t column,
			size_t i)
{
	int64_t value = t->values[i * t->n_types + column];

	if (!type->by_period || t->period <= 0)
		return value;
	return value / t->period + (value % t->period >= (t->period + 1) / 2);
}

/* The samples of a type. @all: the stacks of the samples of @t. */
static int samples_of(struct build *b, const struct pprof_tables *t, const struct type *type,
		      size_t column, const Otlp__Sample *all, Otlp__Profile *p)
{
	Otlp__Sample *samples;
	int64_t *values;
	int r = arena_array(&b->arena, t->n_samples, sizeof(*samples), &samples);

	if (!r)
		r = arena_array(&b->arena, t->n_samples, sizeof(*values), &values);
	if (!r)
		r = arena_array(&b->arena, t->n_samples, sizeof(*p->samples), &p->samples);
	if (r)
		return r;
	for (size_t i = 0; i < t->n_samples; i++) {
		const size_t n = p->n_samples;

		values[n] = value_of(t, type, column, i);
		if (!values[n])
			continue;
		samples[n] = all[i];
		samples[n].values = &values[n];
		samples[n].n_values = 1;
		p->samples[p->n_samples++] = &samples[n];
	}
	return 0;
}

/* Of the profile's UUID, but different for each type. */
static int id_of(struct build *b, const char *uuid, size_t type, ProtobufCBinaryData *ret)
{
	size_t n = 0;
	int r = arena_alloc(&b->arena, OTLP_ID_LEN, &ret->data);

	if (r)
		return r;
	ret->len = OTLP_ID_LEN;
	for (; *uuid && n < 2 * (size_t)OTLP_ID_LEN; uuid++) {
		static const char digits[] = "0123456789abcdef";
		const char *digit = strchr(digits, *uuid);

		if (!digit)
			continue;
		ret->data[n / 2] = (uint8_t)(ret->data[n / 2] << 4 | (digit - digits));
		n++;
	}
	ret->data[OTLP_ID_LEN - 1] ^= (uint8_t)type;
	return 0;
}

static int profile_of(struct build *b, const struct pprof_tables *t, const struct type *type,
		      const Otlp__Sample *samples, Otlp__Profile **ret)
{
	Otlp__Profile *p;
	size_t column;
	int r;

	if (!tables_type(t, type->ours, &column))
		return -EBADMSG;
	r = arena_alloc(&b->arena, sizeof(*p), &p);
	if (r)
		return r;
	otlp__profile__init(p);
	p->time_unix_nano = (uint64_t)t->time_ns;
	p->duration_nano = type->of_moment ? 0 : (uint64_t)t->duration_ns;
	r = value_type(b, type->type, type->unit, &p->sample_type);
	if (!r && type->period_type) {
		p->period = t->period;
		r = value_type(b, type->period_type, type->period_unit, &p->period_type);
	}
	if (!r)
		r = samples_of(b, t, type, column, samples, p);
	if (!r)
		*ret = p;
	return r;
}

static int scope_of(struct build *b, const struct destination_profile *from,
		    Otlp__ScopeProfiles *ret)
{
	_cleanup_(reader_freep) struct reader *reader = NULL;
	const struct type *all = types[from->profile->kind];
	Otlp__Sample *samples;
	int r = rewrite_read(from, &reader);

	if (!r)
		r = otlp_dictionary_add(b->dictionary, reader_tables(reader), &samples);
	if (!r)
		r = arena_array(&b->arena, PPROF_VALUES_MAX, sizeof(*ret->profiles),
				&ret->profiles);
	if (!r)
		r = arena_alloc(&b->arena, sizeof(*ret->scope), &ret->scope);
	if (r)
		return r;
	otlp__scope__init(ret->scope);
	ret->scope->name = (char *)"podprof"; /* only read, as the next */
	ret->scope->version = (char *)PODPROF_VERSION;
	for (size_t i = 0; !r && i < PPROF_VALUES_MAX && all[i].ours; i++) {
		Otlp__Profile **p = &ret->profiles[ret->n_profiles];

		r = profile_of(b, reader_tables(reader), &all[i], samples, p);
		if (!r && (*p)->n_samples) {
			r = id_of(b, from->id, i, &(*p)->profile_id);
			ret->n_profiles++;
		}
	}
	return r;
}

/* ---- resources */

/* The semantic conventions' name of a label. */
static const char *attribute_name(const struct labels *labels, const char *label)
{
	static const struct {
		const char *label;
		const char *in_pod;
		const char *elsewhere;
	} names[] = {
		{"service_name", "service.name", "service.name"},
		{"namespace", "k8s.namespace.name", "namespace"},
		{"pod", "k8s.pod.name", "pod"},
		{"container", "k8s.container.name", "container.name"},
		{"node", "k8s.node.name", "host.name"},
		{"cluster", "k8s.cluster.name", "cluster"},
		{"container_id", "container.id", "container.id"},
		{"comm", "process.executable.name", "process.executable.name"},
	};
	const bool in_pod = labels_get(labels, "pod") != NULL;

	for (size_t i = 0; i < array_size(names); i++)
		if (strcmp(label, names[i].label) == 0)
			return in_pod ? names[i].in_pod : names[i].elsewhere;
	return label;
}

static int put_attribute(struct build *b, Otlp__Resource *resource, const char *key,
			 const char *value)
{
	struct {
		Otlp__KeyValue pair;
		Otlp__AnyValue value;
	} * a;
	int r = arena_alloc(&b->arena, sizeof(*a), &a);

	if (r)
		return r;
	otlp__key_value__init(&a->pair);
	otlp__any_value__init(&a->value);
	a->pair.key = (char *)key; /* only read, as the next */
	a->pair.value = &a->value;
	a->value.value_case = OTLP__ANY_VALUE__VALUE_STRING_VALUE;
	a->value.string_value = (char *)value;
	resource->attributes[resource->n_attributes++] = &a->pair;
	return 0;
}

/* Borrows the labels' values. */
static int resource_of(struct build *b, const struct labels *labels, Otlp__Resource *ret)
{
	int r = arena_array(&b->arena, labels->n + 1, sizeof(*ret->attributes), &ret->attributes);

	if (!r && !labels_get(labels, "service_name"))
		r = put_attribute(b, ret, "service.name", "unknown_service");
	for (size_t i = 0; !r && i < labels->n; i++) {
		const struct label *label = &labels->items[i];

		if (strncmp(label->name, "__", 2) != 0)
			r = put_attribute(b, ret, attribute_name(labels, label->name),
					  label->value);
	}
	return r;
}

/* @n_otlp: adds the number of OTLP profiles. */
static int put_profile(struct build *b, const struct destination_profile *from, size_t *n_otlp)
{
	struct {
		Otlp__ResourceProfiles profiles;
		Otlp__Resource resource;
		Otlp__ScopeProfiles scope;
		Otlp__ScopeProfiles *scopes[1];
	} * m;
	int r = arena_alloc(&b->arena, sizeof(*m), &m);

	if (r)
		return r;
	otlp__resource_profiles__init(&m->profiles);
	otlp__resource__init(&m->resource);
	otlp__scope_profiles__init(&m->scope);
	r = resource_of(b, &from->profile->labels, &m->resource);
	if (!r)
		r = scope_of(b, from, &m->scope);
	if (r)
		return r;
	m->scopes[0] = &m->scope;
	m->profiles.resource = &m->resource;
	m->profiles.scope_profiles = m->scopes;
	m->profiles.n_scope_profiles = 1;
	b->request.resource_profiles[b->request.n_resource_profiles++] = &m->profiles;
	*n_otlp += m->scope.n_profiles;
	return 0;
}

/* ---- the body */

static int zip(const void *bytes, size_t n, struct destination_request *ret)
{
	z_stream z = {.next_in = (Bytef *)bytes, .avail_in = (uInt)n};
	size_t max;
	char *body;
	int state;

	/* 16 + 15: gzip format, the largest window */
	if (deflateInit2(&z, WIRE_LEVEL, Z_DEFLATED, 16 + 15, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		return -ENOMEM;
	max = deflateBound(&z, n);
	body = malloc(max);
	z.next_out = (Bytef *)body;
	z.avail_out = (uInt)max;
	state = body ? deflate(&z, Z_FINISH) : Z_MEM_ERROR;
	deflateEnd(&z);
	if (state != Z_STREAM_END) {
		free(body);
		return -ENOMEM;
	}
	*ret = (struct destination_request){.body = body, .body_len = max - z.avail_out};
	return 0;
}

static int build_pack(struct build *b, struct destination_request *ret)
{
	_cleanup_(freep) uint8_t *bytes = NULL;
	size_t n;
	int r = otlp_dictionary_message(b->dictionary, &b->tables);

	if (r)
		return r;
	b->request.dictionary = &b->tables;
	n = otlp__export_profiles_request__get_packed_size(&b->request);
	if (n > OTLP_MEMORY_MAX)
		return -EBADMSG;
	bytes = malloc(n);
	if (!bytes)
		return -ENOMEM;
	n = otlp__export_profiles_request__pack(&b->request, bytes);
	return zip(bytes, n, ret);
}

static int encode(const struct destination_profile *profiles, size_t n,
		  struct destination_request *ret)
{
	_cleanup_(build_deinit) struct build b;
	_cleanup_(freep) size_t *ends = NULL;
	size_t n_otlp = 0;
	int r = build_init(&b, n);

	if (!r) {
		ends = calloc(n + 1, sizeof(*ends)); /* + 1: not of size 0 */
		r = ends ? 0 : -ENOMEM;
	}
	for (size_t i = 0; !r && i < n; i++) {
		r = put_profile(&b, &profiles[i], &n_otlp);
		ends[i] = n_otlp;
	}
	if (!r)
		r = build_pack(&b, ret);
	if (!r)
		ret->ends = take_ptr(ends);
	return r > 0 ? -EBADMSG : r;
}

/* ---- the reply */

static struct strview body_of(const struct http_reply *reply)
{
	return strview_of_bytes(reply->body, reply->body_len);
}

/* Pyroscope converts all profiles before it stores the first. A failure of the conversion has the
 * status 500, although the reason is the content. */
static bool nothing_stored(const struct http_reply *reply)
{
	const struct strview body = body_of(reply);

	return strview_starts(&body, "rpc error: code = InvalidArgument");
}

/* The end of the text is missing, and what it would say. */
static bool is_cut(const struct http_reply *reply)
{
	return reply->cut_status || reply->body_len >= HTTP_REPLY_MAX;
}

/* Whether a part of the request may be stored, by a text that lists the failures. */
static bool may_be_partial(const struct http_reply *reply)
{
	return is_cut(reply) ? pyroscope_reply_may_be_partial(body_of(reply))
			     : pyroscope_reply_is_partial(body_of(reply));
}

/* Only these statuses may be retried (OTLP specification, "OTLP/HTTP Response"). A request refused
 * for its content is searched for the profile, unless a part of the request may be stored: backends
 * do not recognize an OTLP profile that arrives again. */
static enum destination_verdict verdict(const struct http_reply *reply)
{
	switch (reply->status) {
	case 0:
	case 502:
	case 503:
	case 504:
		return DESTINATION_RETRY;
	case 429: /* a whole list names the profiles that are stored: fates() */
		return is_cut(reply) && may_be_partial(reply) ? DESTINATION_REFUSED_MAYBE
							      : DESTINATION_RETRY_SMALLER;
	case 400:
		return may_be_partial(reply) ? DESTINATION_REFUSED_MAYBE : DESTINATION_REFUSED_PART;
	case 408:
		return DESTINATION_REFUSED;
	case 500:
		return nothing_stored(reply) ? DESTINATION_REFUSED_PART : DESTINATION_REFUSED_MAYBE;
	default:
		return reply->status >= 500 ? DESTINATION_REFUSED
					    : destination_verdict_of_status(reply->status);
	}
}

static uint64_t rejected(const struct http_reply *reply, struct strview *ret_message)
{
	struct otlp_reply parsed;

	otlp_reply_parse(reply->body, reply->body_len, &parsed);
	*ret_message = parsed.message;
	return (uint64_t)parsed.rejected;
}

/* A profile's fate, from those of its OTLP profiles. @ret_rejected: adds the lost of a stored one.
 */
static enum destination_fate fate_of(const enum pyroscope_fate *fates, size_t n,
				     uint64_t *ret_rejected)
{
	size_t n_of[] = {[PYROSCOPE_STORED] = 0, [PYROSCOPE_EXHAUSTED] = 0, [PYROSCOPE_FAILED] = 0};

	for (size_t i = 0; i < n; i++)
		n_of[fates[i]]++;
	if (n_of[PYROSCOPE_STORED] || !n) {
		*ret_rejected += n - n_of[PYROSCOPE_STORED];
		return DESTINATION_FATE_STORED;
	}
	return n_of[PYROSCOPE_FAILED] ? DESTINATION_FATE_LOST : DESTINATION_FATE_NOT_STORED;
}

static bool fates(const struct http_reply *reply, const struct destination_request *request,
		  size_t n, enum destination_fate *ret, uint64_t *ret_rejected)
{
	enum pyroscope_fate of[OTLP_PROFILES_MAX * PPROF_VALUES_MAX];
	const size_t n_otlp = n ? request->ends[n - 1] : 0;

	*ret_rejected = 0;
	if (n_otlp > array_size(of) || !pyroscope_reply_fates(body_of(reply), n_otlp, of))
		return false;
	for (size_t i = 0, begin = 0; i < n; begin = request->ends[i++])
		ret[i] = fate_of(&of[begin], request->ends[i] - begin, ret_rejected);
	return true;
}

/* Pyroscope refuses a request without profiles, with 400 or, in 2026, 500. */
static bool probe_ok(const struct http_reply *reply)
{
	return (reply->status == 400 && strstr(reply->body, "profiles")) ||
	       (reply->status == 500 && strstr(reply->body, "missing resource profiles"));
}

const struct destination_kind destination_otlp = {
	.name = "otlp",
	.title = "OpenTelemetry",
	.path = "/v1development/profiles",
	.headers = {"Content-Type: application/x-protobuf", "Content-Encoding: gzip"},
	.tenant_header = "X-Scope-OrgID",
	.types = {[PROFILE_CPU] = "samples",
		  [PROFILE_OFF_CPU] = "off_cpu",
		  [PROFILE_GO_HEAP] = "space",
		  [PROFILE_GO_MUTEX] = "mutex",
		  [PROFILE_GO_BLOCK] = "block"},
	.deltas = true,
	.limits = {DESTINATION_NO_LIMITS, .profiles = OTLP_PROFILES_MAX, .request = OTLP_PPROF_MAX},
	.encode = encode,
	.verdict = verdict,
	.rejected = rejected,
	.fates = fates,
	.probe_ok = probe_ok,
};
