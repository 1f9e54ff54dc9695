// SPDX-License-Identifier: Apache-2.0
/*
 * The body of push.v1.PusherService/Push (proto/push.proto), one series for each profile. The
 * doctor's push has no series: Pyroscope checks the credentials first and then answers with 400,
 * "invalid_argument". Gateways before Pyroscope answer with 401, 403 or 404.
 *
 * Pyroscope's own labels, not part of podprof's label set:
 *	__name__	names the type together with the sample types inside the pprof
 *	__delta__	"false": the values cover the window only
 *	service_name	the order of Pyroscope's pages; "unknown_service" is the fallback
 *
 * Pyroscope sorts the labels and refuses a duplicate name. Its ceiling of 30 names includes these
 * labels (base/labels.h leaves room).
 *
 * The message consists of arrays from one allocation each and borrows names, values and profiles:
 * only the encoded body is a copy.
 *
 * A 400 (content), a 429 (rate of a tenant) and a 5xx concern one profile of a batch. Since release
 * 1.15 Pyroscope stores the other profiles. It names each failure by index and id, but the name is
 * lost on the way to the client: the reply has the code and the reason of the first failure alone,
 * and does not tell whether there are more (connect-go, newConnectWireError()). Older releases
 * store nothing. So it is unknown whether a profile of the batch is stored.
 *
 * A profile that arrives again has the same id. The first storage (1.21.1) counts it once; the
 * second (v2) counts each copy until a compaction, minutes later. So a batch is not searched after
 * a 400: each copy of the search would count. After a 429 or a 5xx it is sent again, in smaller
 * requests after a 429: otherwise the refused profiles would be lost. A batch above the tenant's
 * burst always has a profile that is refused, so PYROSCOPE_RAW_MAX is half of it.
 *
 * The limits are Pyroscope's defaults (grafana/pyroscope, pkg/validation/limits.go).
 */
#include "export/pyroscope.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/http.h"
#include "base/labels.h"
#include "base/nsec.h"
#include "push.pb-c.h"

/* Series in one push; Pyroscope's default. Reached: the next push. */
#define PYROSCOPE_SERIES_MAX	  256
/* Samples of one profile; Pyroscope's default. Reached: as PROFILE_SAMPLES_MAX. */
#define PYROSCOPE_SAMPLES_MAX	  16000
/* Bytes of one profile before compression: a tenant may send 2 MiB at once, labels included.
 * Reached: as PROFILE_SAMPLES_MAX. */
#define PYROSCOPE_PPROF_MAX	  (31u << 16)
/* Bytes of pprof before compression in all pushes under way: half of the 2 MiB that a tenant may
 * send at once. Reached: a later push. */
#define PYROSCOPE_RAW_MAX	  (1u << 20)
/* Label names of a series; Pyroscope's default. Reached: - (LABELS_MAX is lower). */
#define PYROSCOPE_LABELS_MAX	  30
/* Bytes of a label's value; Pyroscope's default. Reached: - (LABELS_VALUE_MAX is not higher). */
#define PYROSCOPE_LABEL_BYTES_MAX 2048
/* Pyroscope accepts profiles of the last hour and of the next 10 minutes by its own clock. One
 * minute of the hour is left for differing clocks and for the transfer. */
#define PYROSCOPE_AGE_NS	  (59 * (60 * NSEC_PER_SEC))
#define PYROSCOPE_AHEAD_NS	  (10 * (60 * NSEC_PER_SEC))

/* __name__, __delta__, and service_name if missing. */
#define OWN_LABELS	  3
/* Labels of a pushed series, with the backend's own. Reached: -. */
#define SERIES_LABELS_MAX (LABELS_MAX + OWN_LABELS)
_Static_assert(SERIES_LABELS_MAX <= PYROSCOPE_LABELS_MAX, "it takes every set of labels");
_Static_assert(LABELS_VALUE_MAX <= PYROSCOPE_LABEL_BYTES_MAX, "and every value");

/* One series and all data it points to. */
struct series {
	Push__V1__RawProfileSeries msg;
	Push__V1__RawSample sample;
	Push__V1__RawSample *samples[1];
	Push__V1__LabelPair labels[SERIES_LABELS_MAX];
	Push__V1__LabelPair *label_ptrs[SERIES_LABELS_MAX];
};

/* Protobuf-c's structs are not const, but packing only reads. */
static char *unconst(const char *s)
{
	return (char *)(uintptr_t)s;
}

static void series_add(struct series *s, const char *name, const char *value)
{
	Push__V1__LabelPair *label = &s->labels[s->msg.n_labels];

	push__v1__label_pair__init(label);
	label->name = unconst(name);
	label->value = unconst(value);
	s->label_ptrs[s->msg.n_labels++] = label;
}

static void series_set_labels(struct series *s, const struct profile *profile)
{
	series_add(s, "__delta__", "false");
	series_add(s, "__name__", destination_pyroscope.types[profile->kind]);
	if (!labels_get(&profile->labels, "service_name"))
		series_add(s, "service_name", "unknown_service");
	for (size_t i = 0; i < profile->labels.n; i++) {
		const struct label *label = &profile->labels.items[i];

		if (strncmp(label->name, "__", 2) != 0) /* reserved for the backend */
			series_add(s, label->name, label->value);
	}
}

static void series_set(struct series *s, const struct destination_profile *profile)
{
	push__v1__raw_profile_series__init(&s->msg);
	s->msg.labels = s->label_ptrs;
	series_set_labels(s, profile->profile);
	push__v1__raw_sample__init(&s->sample);
	s->sample.raw_profile.data = (uint8_t *)unconst(profile->pprof);
	s->sample.raw_profile.len = profile->pprof_len;
	s->sample.id = unconst(profile->id);
	s->samples[0] = &s->sample;
	s->msg.samples = s->samples;
	s->msg.n_samples = 1;
}

static int request_pack(const Push__V1__PushRequest *request, struct destination_request *ret)
{
	size_t len = push__v1__push_request__get_packed_size(request);
	char *body = malloc(len ? len : 1);

	if (!body)
		return -ENOMEM;
	*ret = (struct destination_request){
		.body = body,
		.body_len = push__v1__push_request__pack(request, (uint8_t *)body),
	};
	return 0;
}

static int encode(const struct destination_profile *profiles, size_t n,
		  struct destination_request *ret)
{
	Push__V1__PushRequest request = PUSH__V1__PUSH_REQUEST__INIT;
	Push__V1__RawProfileSeries *ptrs[PYROSCOPE_SERIES_MAX];
	_cleanup_(freep) struct series *series = NULL;

	series = calloc(n + 1, sizeof(*series)); /* + 1: not of size 0 */
	if (!series)
		return -ENOMEM;
	request.series = ptrs;
	for (; request.n_series < n; request.n_series++) {
		series_set(&series[request.n_series], &profiles[request.n_series]);
		ptrs[request.n_series] = &series[request.n_series].msg;
	}
	return request_pack(&request, ret);
}

static enum destination_verdict verdict(const struct http_reply *reply)
{
	if (reply->status == 400) /* this ceiling is looked at before anything is stored */
		return strstr(reply->body, "batched profile payload size exceeds limit")
			       ? DESTINATION_SPLIT
			       : DESTINATION_REFUSED_MAYBE;
	if (reply->status == 429)
		return DESTINATION_RETRY_SMALLER;
	return destination_verdict_of_status(reply->status);
}

/* Pyroscope's message is "no series". */
static bool probe_ok(const struct http_reply *reply)
{
	return reply->status == 400 && strstr(reply->body, "invalid_argument");
}

const struct destination_kind destination_pyroscope = {
	.name = "pyroscope",
	.title = "Pyroscope",
	.path = "/push.v1.PusherService/Push",
	.headers = {"Content-Type: application/proto", "Connect-Protocol-Version: 1"},
	.tenant_header = "X-Scope-OrgID",
	.types = {DESTINATION_GO_NAMES},
	.symbolizes = true,
	.splits = true,
	.deltas = true,
	.limits = {.profile = {PYROSCOPE_SAMPLES_MAX, PYROSCOPE_PPROF_MAX},
		   .profiles = PYROSCOPE_SERIES_MAX,
		   .raw = PYROSCOPE_RAW_MAX,
		   .labels = PYROSCOPE_LABELS_MAX - OWN_LABELS,
		   .label_bytes = PYROSCOPE_LABEL_BYTES_MAX,
		   .age_ns = PYROSCOPE_AGE_NS,
		   .ahead_ns = PYROSCOPE_AHEAD_NS},
	.encode = encode,
	.verdict = verdict,
	.probe_ok = probe_ok,
};
