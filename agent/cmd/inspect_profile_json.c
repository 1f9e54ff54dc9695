// SPDX-License-Identifier: Apache-2.0
/* A profile as one JSON object, for scripts. Addresses are strings in hex, since JSON's readers
 * have 53 bits for a number; nothing is cut but the list of functions, as asked for. */
#include "cmd/inspect_profile.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>

#include "base/cleanup.h"

static json_t *json_of(const struct pprof_tables *t, uint32_t string)
{
	return json_string(t->strings[string]);
}

static json_t *json_types(const struct pprof_tables *t)
{
	json_t *list = json_array();

	for (size_t i = 0; i < t->n_types; i++)
		json_array_append_new(list, json_pack("{s:o, s:o, s:I}", "type",
						      json_of(t, t->types[i].type), "unit",
						      json_of(t, t->types[i].unit), "total",
						      (json_int_t)tables_total(t, i)));
	return list;
}

static json_t *json_top(const struct flame_function *list, size_t n)
{
	json_t *top = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(top, json_pack("{s:s, s:I, s:I}", "function", list[i].name,
						     "flat", (json_int_t)list[i].flat, "cum",
						     (json_int_t)list[i].cum));
	return top;
}

static json_t *json_labels(const struct profile_view *v)
{
	const struct pprof_tables *t = v->t;
	json_t *list = json_array();

	for (size_t i = 0; i < v->n_labels; i++) {
		const struct profile_label *pair = &v->labels[i];
		json_t *label = json_pack("{s:o, s:I}", "key", json_of(t, pair->key), "samples",
					  (json_int_t)pair->n_samples);

		if (pair->str)
			json_object_set_new(label, "value", json_of(t, pair->str));
		else
			json_object_set_new(label, "number", json_integer(pair->num));
		if (pair->unit)
			json_object_set_new(label, "unit", json_of(t, pair->unit));
		json_array_append_new(list, label);
	}
	return list;
}

static json_t *json_mappings(const struct pprof_tables *t)
{
	json_t *list = json_array();
	char start[32], limit[32], offset[32];

	for (size_t i = 0; i < t->n_mappings; i++) {
		const struct pprof_mapping_row *m = &t->mappings[i];

		snprintf(start, sizeof(start), "0x%" PRIx64, m->start);
		snprintf(limit, sizeof(limit), "0x%" PRIx64, m->limit);
		snprintf(offset, sizeof(offset), "0x%" PRIx64, m->offset);
		json_array_append_new(
			list, json_pack("{s:s, s:s, s:s, s:o, s:o, s:b, s:b, s:b, s:b}", "start",
					start, "limit", limit, "offset", offset, "path",
					json_of(t, m->path), "build_id", json_of(t, m->build_id),
					"has_functions", m->has_functions, "has_filenames",
					m->has_filenames, "has_line_numbers", m->has_line_numbers,
					"has_inline_frames", m->has_inline_frames));
	}
	return list;
}

static json_t *json_comments(const struct pprof_tables *t)
{
	json_t *list = json_array();

	for (size_t i = 0; i < t->n_comments; i++)
		json_array_append_new(list, json_of(t, t->comments[i]));
	return list;
}

int inspect_profile_json(const struct profile_view *v)
{
	const struct pprof_tables *t = v->t;
	_cleanup_(freep) char *text = NULL;
	json_t *root;

	root = json_pack(
		"{s:o, s:o, s:{s:o, s:o}, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:I, s:{s:o, s:o}, "
		"s:o, s:o, s:o}",
		"sample_types", json_types(t), "default_sample_type", json_of(t, t->default_type),
		"period_type", "type", json_of(t, t->period_type.type), "unit",
		json_of(t, t->period_type.unit), "period", (json_int_t)t->period, "time_ns",
		(json_int_t)t->time_ns, "duration_ns", (json_int_t)t->duration_ns, "samples",
		(json_int_t)t->n_samples, "locations", (json_int_t)t->n_locations, "functions",
		(json_int_t)t->n_functions, "sample_type", flame_type(v->flame), "total",
		(json_int_t)flame_total(v->flame), "top", "flat", json_top(v->flat, v->n_functions),
		"cum", json_top(v->cum, v->n_functions), "labels", json_labels(v), "mappings",
		json_mappings(t), "comments", json_comments(t));
	if (root)
		text = json_dumps(root, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
	json_decref(root);
	if (!text)
		return -ENOMEM;
	puts(text);
	return 0;
}
