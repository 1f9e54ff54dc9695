// SPDX-License-Identifier: Apache-2.0
/*
 * A list is one object, from the kubelet as well as from the API server:
 *
 *	{"kind": "PodList", "metadata": {"resourceVersion": "123"}, "items": [{pod}, {pod}, ...]}
 *
 * A watch has one object for each event:
 *
 *	{"type": "ADDED" | "MODIFIED" | "DELETED", "object": {pod}}
 *	{"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "130"}}}
 *	{"type": "ERROR", "object": {"kind": "Status", "code": 410, ...}}
 *
 * A bookmark says that all events up to a version have been sent. Code 410 says that the server no
 * longer has the requested version. An error with HTTP status 200 is also a Status object.
 *
 * Source: Kubernetes API concepts, "Efficient detection of changes" and "410 Gone responses".
 */
#include "metadata/podstream.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "metadata/jsontrim.h"
#include "metadata/pod.h"
#include "metadata/pods.h"

#define STATUS_GONE 410

const char *podstream_outcome_name(int outcome)
{
	static const char *const names[PODSTREAM_OUTCOME_MAX] = {
		[PODSTREAM_OK] = "ok",
		[PODSTREAM_MALFORMED] = "malformed",
		[PODSTREAM_EXPIRED] = "expired",
		[PODSTREAM_REFUSED] = "refused",
	};

	return outcome >= 0 && outcome < PODSTREAM_OUTCOME_MAX ? names[outcome] : "error";
}

/* An overlong version is ignored: the next watch then begins with a list. */
static void keep_version(struct podstream *s, const json_t *metadata)
{
	const char *version = json_string_value(json_object_get(metadata, "resourceVersion"));

	if (version && *version && strlen(version) < sizeof(s->version))
		snprintf(s->version, sizeof(s->version), "%s", version);
}

/* @json: the text of the pod alone, or NULL. */
static int put_pod(struct podstream *s, const json_t *object, const char *json, size_t n)
{
	struct pod *pod;
	int r = pod_of_json(object, &pod);

	if (!r) {
		s->n_containers_left_out += pod->n_containers_left_out;
		r = json ? pods_put_text(s->pods, pod, json, n) : pods_put(s->pods, pod);
	}
	if (r < 0)
		return r;
	if (r)
		s->n_odd++;
	else
		s->n_pods++;
	return 0;
}

/* ---------------------------------------------------------------- a list */

/* An unreadable pod is counted, and the list continues. */
static int list_pod(struct podstream *s, const char *json, size_t n)
{
	_cleanup_(json_decrefp) json_t *value = NULL;
	int r;

	if (pods_keep(s->pods, json, n)) {
		s->n_pods++;
		return 0;
	}
	r = jsontrim_parse(json, n, pod_wanted, &value);
	if (r > 0)
		s->n_odd++;
	if (r)
		return r < 0 ? r : 0;
	return json_is_null(value) ? 0 : put_pod(s, value, json, n); /* null: an empty list */
}

static int list_value(void *ctx, const char *key, const char *json, size_t n)
{
	_cleanup_(json_decrefp) json_t *value = NULL;
	struct podstream *s = ctx;
	int r;

	if (strcmp(key, "items") == 0)
		return list_pod(s, json, n);
	r = pod_parse_json(json, n, &value);
	if (r)
		return r < 0 ? r : PODSTREAM_MALFORMED;
	if (strcmp(key, "kind") == 0) {
		s->is_list =
			json_is_string(value) && strcmp(json_string_value(value), "PodList") == 0;
		return s->is_list ? 0 : PODSTREAM_MALFORMED;
	}
	keep_version(s, value);
	return 0;
}

/* ---------------------------------------------------------------- a watch */

static int delete_pod(struct podstream *s, const json_t *object)
{
	const char *uid =
		json_string_value(json_object_get(json_object_get(object, "metadata"), "uid"));

	if (uid) {
		pods_remove(s->pods, uid);
		s->n_pods++;
	} else {
		s->n_odd++;
	}
	return 0;
}

static const struct jsontrim event_wanted[] = {
	{.key = "type"},
	{.key = "object", .below = pod_wanted},
	{0},
};

static int event_value(void *ctx, const char *key, const char *json, size_t n)
{
	_cleanup_(json_decrefp) json_t *event = NULL;
	struct podstream *s = ctx;
	const json_t *object;
	const char *type;
	int r = jsontrim_parse(json, n, event_wanted, &event);

	(void)key;
	if (r)
		return r < 0 ? r : PODSTREAM_MALFORMED;
	object = json_object_get(event, "object");
	type = json_string_value(json_object_get(event, "type"));
	if (!type || !object)
		return PODSTREAM_MALFORMED;
	if (strcmp(type, "ERROR") == 0)
		return json_integer_value(json_object_get(object, "code")) == STATUS_GONE
			       ? PODSTREAM_EXPIRED
			       : PODSTREAM_REFUSED;
	if (strcmp(type, "ADDED") == 0 || strcmp(type, "MODIFIED") == 0)
		r = put_pod(s, object, NULL, 0);
	else if (strcmp(type, "DELETED") == 0)
		r = delete_pod(s, object);
	/* unknown types are skipped, but their versions count */
	if (!r)
		keep_version(s, json_object_get(object, "metadata"));
	return r;
}

/* ---------------------------------------------------------------- either */

void podstream_init(struct podstream *s, enum podstream_kind kind, struct pods *pods,
		    const char *version)
{
	static const char *const list_wanted[] = {"kind", "metadata", "items", NULL};

	*s = (struct podstream){.kind = kind, .pods = pods};
	if (kind == PODSTREAM_LIST) {
		json_splitter_init(&s->cut, JSON_SPLITTER_MEMBERS, PODSTREAM_VALUE_MAX, list_value,
				   s);
		s->cut.wanted = list_wanted;
		s->list = pods_begin_list(pods);
	} else {
		json_splitter_init(&s->cut, JSON_SPLITTER_VALUES, PODSTREAM_VALUE_MAX, event_value,
				   s);
		snprintf(s->version, sizeof(s->version), "%s", version);
	}
}

void podstream_deinit(struct podstream *s)
{
	json_splitter_deinit(&s->cut);
}

/* Counts oversized values with the other pods that are left out. */
static int outcome(struct podstream *s, int r)
{
	s->n_odd += s->cut.n_too_large;
	s->cut.n_too_large = 0;
	return r; /* JSON_SPLITTER_MALFORMED is the same number */
}

_Static_assert((int)JSON_SPLITTER_MALFORMED == (int)PODSTREAM_MALFORMED, "handed on as it is");

int podstream_feed(struct podstream *s, const char *bytes, size_t n)
{
	return outcome(s, json_splitter_feed(&s->cut, bytes, n));
}

int podstream_end(struct podstream *s)
{
	int r = outcome(s, json_splitter_end(&s->cut));

	if (s->kind == PODSTREAM_LIST && !r)
		r = s->is_list ? 0 : PODSTREAM_MALFORMED;
	if (s->kind == PODSTREAM_LIST && !r)
		pods_end_list(s->pods, s->list);
	return r;
}
