// SPDX-License-Identifier: Apache-2.0
/*
 * The body of push.v1.PusherService/Push (proto/push.proto), one series for each profile.
 *
 * Pyroscope's own labels, which are not part of a profile's here:
 *	__name__	names the type together with the sample types inside the pprof
 *	__delta__	"false": the values are those of the window, do not subtract the last ones
 *	service_name	what its pages are ordered by; "unknown_service" is its own fallback
 * It sorts the labels itself and refuses a name given twice. Its ceiling of 30 names includes these
 * (base/labels.h leaves room).
 *
 * The message is laid out over arrays that are made at once, and it borrows names, values and
 * profiles: only the encoded body is a copy.
 */
#include "export/pyroscope.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/labels.h"
#include "export/profile.h"
#include "export/outbox.h"
#include "push.pb-c.h"

/* __name__, __delta__, and service_name where it is missing. */
#define OWN_LABELS	  3
/* Labels of a pushed series, with the backend's own. Reached: -. */
#define SERIES_LABELS_MAX (LABELS_MAX + OWN_LABELS)

/* One series with all that it points to. */
struct series {
	Push__V1__RawProfileSeries msg;
	Push__V1__RawSample sample;
	Push__V1__RawSample *samples[1];
	Push__V1__LabelPair labels[SERIES_LABELS_MAX];
	Push__V1__LabelPair *label_ptrs[SERIES_LABELS_MAX];
};

static const char *kind_name(enum profile_kind kind)
{
	static const char *const names[PROFILE_KIND_MAX] = {
		[PROFILE_CPU] = "process_cpu", [PROFILE_OFF_CPU] = "offcpu",
		[PROFILE_GO_HEAP] = "memory",  [PROFILE_GO_MUTEX] = "mutex",
		[PROFILE_GO_BLOCK] = "block",
	};

	return names[kind];
}

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
	series_add(s, "__name__", kind_name(profile->kind));
	if (!labels_get(&profile->labels, "service_name"))
		series_add(s, "service_name", "unknown_service");
	for (size_t i = 0; i < profile->labels.n; i++) {
		const struct label *label = &profile->labels.items[i];

		if (strncmp(label->name, "__", 2) != 0) /* reserved for the backend */
			series_add(s, label->name, label->value);
	}
}

static void series_set(struct series *s, const struct outbox *box, struct queued_profile *p)
{
	size_t len;
	const void *pprof = outbox_payload(box, p->profile, &len);

	push__v1__raw_profile_series__init(&s->msg);
	s->msg.labels = s->label_ptrs;
	series_set_labels(s, p->profile);
	push__v1__raw_sample__init(&s->sample);
	s->sample.raw_profile.data = (uint8_t *)unconst(pprof);
	s->sample.raw_profile.len = len;
	s->sample.id = p->id;
	s->samples[0] = &s->sample;
	s->msg.samples = s->samples;
	s->msg.n_samples = 1;
}

static int request_pack(const Push__V1__PushRequest *request, char **ret, size_t *ret_len)
{
	size_t len = push__v1__push_request__get_packed_size(request);
	char *body = malloc(len ? len : 1);

	if (!body)
		return -ENOMEM;
	*ret_len = push__v1__push_request__pack(request, (uint8_t *)body);
	*ret = body;
	return 0;
}

int pyroscope_encode(const struct outbox *box, const struct outbox_list *batch, char **ret,
		     size_t *ret_len)
{
	Push__V1__PushRequest request = PUSH__V1__PUSH_REQUEST__INIT;
	Push__V1__RawProfileSeries *ptrs[PYROSCOPE_SERIES_MAX];
	_cleanup_(freep) struct series *series = NULL;

	series = calloc(batch->n + 1, sizeof(*series)); /* + 1: not of size 0 */
	if (!series)
		return -ENOMEM;
	request.series = ptrs;
	for (struct outbox_item *item = batch->first; item; item = item->next) {
		struct series *s = &series[request.n_series];

		series_set(s, box, item->queued);
		ptrs[request.n_series++] = &s->msg;
	}
	return request_pack(&request, ret, ret_len);
}
