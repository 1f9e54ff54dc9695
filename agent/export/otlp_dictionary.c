// SPDX-License-Identifier: Apache-2.0
/*
 * A builder of pprof profiles holds strings, mappings, functions and locations. The builder counts
 * from 1, as OTLP does, and equal rows have the same number. Stacks and attributes are kept here.
 *
 * Attributes, named by the semantic conventions:
 *	of a mapping	process.executable.build_id.gnu
 *	of a location	profile.frame.type: kernel, go, cpython, jvm, v8js or native
 *	of a sample	its pprof labels
 */
#include "export/otlp_dictionary.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/intern.h"
#include "base/strview.h"
#include "base/vec.h"
#include "export/profile.h"
#include "pprof/pprof.h"
#include "pprof/tables.h"

/* Bytes of the strings, mappings, functions and locations of a request. Reached: the request is
 * split. */
#define NAMES_BYTES_MAX	    (8u << 20)
/* Stacks of a request. Reached: the request is split. */
#define OTLP_STACKS_MAX	    (1u << 20)
/* Attributes of a request. Reached: the request is split. */
#define OTLP_ATTRIBUTES_MAX (1u << 20)

/* An attribute; compared as bytes. */
struct attribute {
	int64_t num;
	uint32_t key; /* strings */
	uint32_t str; /* 0: the value is @num */
	uint32_t unit;
	uint32_t reserved; /* 0 */
};

struct stack {
	const uint32_t *locations; /* leaf first */
	size_t n;
};

/* @stacks, @attributes: number n is item n - 1. */
struct otlp_dictionary {
	struct arena *arena;
	struct pprof *names;
	struct intern stack_numbers, attribute_numbers;
	struct stack *stacks;
	size_t n_stacks, cap_stacks;
	struct attribute *attributes;
	size_t n_attributes, cap_attributes;
};

DEFINE_CLEANUP(struct otlp_dictionary *, otlp_dictionary_freep, otlp_dictionary_free);

static int too_large(int r)
{
	return r > 0 ? -EBADMSG : r;
}

int otlp_dictionary_new(struct arena *arena, struct otlp_dictionary **ret)
{
	static const struct pprof_opts opts = {
		.types = {{"", ""}},
		.n_types = 1,
		.period_type = {"", ""},
		.max_bytes = NAMES_BYTES_MAX,
	};
	_cleanup_(otlp_dictionary_freep) struct otlp_dictionary *d = calloc(1, sizeof(*d));
	int r;

	if (!d)
		return -ENOMEM;
	d->arena = arena;
	r = pprof_new(&opts, &d->names);
	if (r)
		return too_large(r);
	*ret = take_ptr(d);
	return 0;
}

void otlp_dictionary_free(struct otlp_dictionary *d)
{
	if (!d)
		return;
	pprof_free(d->names);
	intern_deinit(&d->stack_numbers);
	intern_deinit(&d->attribute_numbers);
	free(d->stacks);
	free(d->attributes);
	free(d);
}

int otlp_dictionary_string(struct otlp_dictionary *d, const char *s, int32_t *ret)
{
	uint32_t number;
	int r = pprof_string(d->names, s, &number);

	if (!r)
		*ret = (int32_t)number;
	return too_large(r);
}

/* ---- entering */

static int enter_attribute(struct otlp_dictionary *d, const struct attribute *attribute,
			   int32_t *ret)
{
	uint32_t number = intern_find(&d->attribute_numbers, attribute, sizeof(*attribute));
	const void *copy;
	int r;

	if (!number) {
		number = (uint32_t)d->n_attributes + 1;
		r = vec_grow(&d->attributes, &d->cap_attributes, number, sizeof(*attribute),
			     OTLP_ATTRIBUTES_MAX);
		if (!r)
			r = intern_add(&d->attribute_numbers, d->arena, attribute,
				       sizeof(*attribute), number, &copy);
		if (r)
			return too_large(r);
		d->attributes[d->n_attributes++] = *attribute;
	}
	*ret = (int32_t)number;
	return 0;
}

static int enter_text(struct otlp_dictionary *d, const char *key, const char *value, int32_t *ret)
{
	struct attribute attribute = {0};
	int r = pprof_string(d->names, key, &attribute.key);

	if (!r)
		r = pprof_string(d->names, value, &attribute.str);
	return r ? too_large(r) : enter_attribute(d, &attribute, ret);
}

static int enter_stack(struct otlp_dictionary *d, const uint32_t *locations, size_t n, int32_t *ret)
{
	uint32_t number = intern_find(&d->stack_numbers, locations, n * sizeof(*locations));
	const void *copy;
	int r;

	if (!number) {
		number = (uint32_t)d->n_stacks + 1;
		r = vec_grow(&d->stacks, &d->cap_stacks, number, sizeof(*d->stacks),
			     OTLP_STACKS_MAX);
		if (!r)
			r = intern_add(&d->stack_numbers, d->arena, locations,
				       n * sizeof(*locations), number, &copy);
		if (r)
			return too_large(r);
		d->stacks[d->n_stacks++] = (struct stack){copy, n};
	}
	*ret = (int32_t)number;
	return 0;
}

/* A profile's numbers, and the dictionary's for each: [0] is none. */
struct translation {
	const struct pprof_tables *t;
	uint32_t *mappings, *functions, *locations;
};

static int enter_mappings(struct otlp_dictionary *d, struct translation *tr)
{
	const struct pprof_tables *t = tr->t;
	int r = 0;

	for (size_t i = 0; !r && i < t->n_mappings; i++) {
		const struct pprof_mapping_row *row = &t->mappings[i];
		const struct pprof_mapping mapping = {
			.start = row->start,
			.limit = row->limit,
			.offset = row->offset,
			.path = t->strings[row->path],
			.build_id = t->strings[row->build_id],
		};

		r = pprof_mapping(d->names, &mapping, &tr->mappings[i + 1]);
	}
	return r;
}

static int enter_functions(struct otlp_dictionary *d, struct translation *tr)
{
	const struct pprof_tables *t = tr->t;
	int r = 0;

	for (size_t i = 0; !r && i < t->n_functions; i++) {
		const struct pprof_function_row *row = &t->functions[i];

		r = pprof_function(d->names, t->strings[row->name], t->strings[row->system_name],
				   t->strings[row->file], row->start_line, &tr->functions[i + 1]);
	}
	return r;
}

static int enter_locations(struct otlp_dictionary *d, struct translation *tr)
{
	struct pprof_line lines[PPROF_LINES_MAX];
	int r = 0;

	for (size_t i = 0; !r && i < tr->t->n_locations; i++) {
		const struct pprof_location_row *row = &tr->t->locations[i];

		if (row->n_lines > PPROF_LINES_MAX)
			return PPROF_FULL;
		for (size_t j = 0; j < row->n_lines; j++)
			lines[j] = (struct pprof_line){
				.function = tr->functions[row->lines[j].function],
				.line = row->lines[j].line,
				.column = row->lines[j].column,
			};
		r = pprof_location(d->names, tr->mappings[row->mapping], row->address, lines,
				   row->n_lines, &tr->locations[i + 1]);
	}
	return r;
}

/* The semantic conventions' name of a sample's label. */
static const char *attribute_key(const char *label)
{
	return strcmp(label, PROFILE_THREAD) == 0 ? "thread.name" : label;
}

static int enter_labels(struct otlp_dictionary *d, const struct translation *tr,
			const struct pprof_sample_row *row, int32_t *ret)
{
	const char **strings = tr->t->strings;
	int r = 0;

	for (size_t i = 0; !r && i < row->n_labels; i++) {
		const struct pprof_label_row *label = &row->labels[i];
		struct attribute attribute = {.num = label->str ? 0 : label->num};

		r = pprof_string(d->names, attribute_key(strings[label->key]), &attribute.key);
		if (!r)
			r = pprof_string(d->names, strings[label->str], &attribute.str);
		if (!r)
			r = pprof_string(d->names, strings[label->unit], &attribute.unit);
		if (!r)
			r = enter_attribute(d, &attribute, &ret[i]);
	}
	return r;
}

static int enter_sample(struct otlp_dictionary *d, const struct translation *tr,
			const struct pprof_sample_row *row, Otlp__Sample *ret)
{
	uint32_t stack[PPROF_DEPTH_MAX];
	int r;

	otlp__sample__init(ret);
	if (row->n_locations > PPROF_DEPTH_MAX)
		return -EBADMSG;
	for (size_t i = 0; i < row->n_locations; i++)
		stack[i] = tr->locations[row->locations[i]];
	r = enter_stack(d, stack, row->n_locations, &ret->stack_index);
	if (r || !row->n_labels)
		return r;
	r = arena_array(d->arena, row->n_labels, sizeof(*ret->attribute_indices),
			&ret->attribute_indices);
	if (r)
		return r;
	ret->n_attribute_indices = row->n_labels;
	return enter_labels(d, tr, row, ret->attribute_indices);
}

int otlp_dictionary_add(struct otlp_dictionary *d, const struct pprof_tables *t,
			Otlp__Sample **ret_samples)
{
	_cleanup_(freep) uint32_t *numbers =
		calloc(t->n_mappings + t->n_functions + t->n_locations + 3, sizeof(*numbers));
	struct translation tr = {t, numbers, numbers + t->n_mappings + 1,
				 numbers + t->n_mappings + t->n_functions + 2};
	Otlp__Sample *samples;
	int r;

	if (!numbers)
		return -ENOMEM;
	r = enter_mappings(d, &tr);
	if (!r)
		r = enter_functions(d, &tr);
	if (!r)
		r = enter_locations(d, &tr);
	if (!r)
		r = arena_array(d->arena, t->n_samples, sizeof(*samples), &samples);
	for (size_t i = 0; !r && i < t->n_samples; i++)
		r = enter_sample(d, &tr, &t->samples[i], &samples[i]);
	if (!r)
		*ret_samples = samples;
	return too_large(r);
}

/* ---- the message */

/* A table of @n entries behind the empty one: an array of messages and an array of pointers. */
static int table(struct otlp_dictionary *d, size_t n, size_t size, void *ret_items,
		 void *ret_pointers)
{
	char *items;
	void **pointers;
	int r = arena_array(d->arena, n + 1, size, &items);

	if (!r)
		r = arena_array(d->arena, n + 1, sizeof(*pointers), &pointers);
	if (r)
		return r;
	for (size_t i = 0; i <= n; i++)
		pointers[i] = items + i * size;
	memcpy(ret_items, &items, sizeof(items));
	memcpy(ret_pointers, &pointers, sizeof(pointers));
	return 0;
}

/* A single attribute. */
static int one_index(struct otlp_dictionary *d, int32_t index, size_t *ret_n, int32_t **ret)
{
	int r = arena_array(d->arena, 1, sizeof(**ret), ret);

	if (!r) {
		**ret = index;
		*ret_n = 1;
	}
	return r;
}

static int put_mappings(struct otlp_dictionary *d, Otlp__Dictionary *ret)
{
	const struct pprof_tables *t = pprof_tables(d->names);
	Otlp__Mapping *items;
	int r = table(d, t->n_mappings, sizeof(*items), &items, &ret->mapping_table);

	if (r)
		return r;
	ret->n_mapping_table = t->n_mappings + 1;
	otlp__mapping__init(&items[0]);
	for (size_t i = 0; !r && i < t->n_mappings; i++) {
		const struct pprof_mapping_row *row = &t->mappings[i];
		Otlp__Mapping *m = &items[i + 1];
		int32_t attribute;

		otlp__mapping__init(m);
		m->memory_start = row->start;
		m->memory_limit = row->limit;
		m->file_offset = row->offset;
		m->filename_strindex = (int32_t)row->path;
		if (!row->build_id)
			continue;
		r = enter_text(d, "process.executable.build_id.gnu", t->strings[row->build_id],
			       &attribute);
		if (!r)
			r = one_index(d, attribute, &m->n_attribute_indices, &m->attribute_indices);
	}
	return r;
}

static const char *frame_type(const struct pprof_tables *t, const struct pprof_location_row *row)
{
	static const struct {
		const char *path;
		const char *type;
	} mappings[] = {
		{"[kernel.kallsyms]", "kernel"},
		{"[python]", "cpython"},
		{"[java]", "jvm"},
		{"[v8]", "v8js"},
	};
	const char *path = row->mapping ? t->strings[t->mappings[row->mapping - 1].path] : "";
	struct strview file = strview_of("");

	for (size_t i = 0; i < array_size(mappings); i++)
		if (strcmp(path, mappings[i].path) == 0)
			return mappings[i].type;
	if (row->n_lines)
		file = strview_of(t->strings[t->functions[row->lines[0].function - 1].file]);
	return strview_suffix(&file, ".go") ? "go" : "native";
}

static int put_location(struct otlp_dictionary *d, const struct pprof_location_row *row,
			Otlp__Location *ret)
{
	Otlp__Line *lines;
	int32_t type;
	int r = table(d, row->n_lines, sizeof(*lines), &lines, &ret->lines);

	if (!r)
		r = enter_text(d, "profile.frame.type", frame_type(pprof_tables(d->names), row),
			       &type);
	if (!r)
		r = one_index(d, type, &ret->n_attribute_indices, &ret->attribute_indices);
	if (r)
		return r;
	ret->mapping_index = (int32_t)row->mapping;
	ret->address = row->address;
	ret->n_lines = row->n_lines;
	for (size_t i = 0; i < row->n_lines; i++) {
		otlp__line__init(&lines[i]);
		lines[i].function_index = (int32_t)row->lines[i].function;
		lines[i].line = row->lines[i].line;
		lines[i].column = row->lines[i].column;
	}
	return 0;
}

static int put_locations(struct otlp_dictionary *d, Otlp__Dictionary *ret)
{
	const struct pprof_tables *t = pprof_tables(d->names);
	Otlp__Location *items;
	int r = table(d, t->n_locations, sizeof(*items), &items, &ret->location_table);

	if (r)
		return r;
	ret->n_location_table = t->n_locations + 1;
	otlp__location__init(&items[0]);
	for (size_t i = 0; !r && i < t->n_locations; i++) {
		otlp__location__init(&items[i + 1]);
		r = put_location(d, &t->locations[i], &items[i + 1]);
	}
	return r;
}

static int put_functions(struct otlp_dictionary *d, Otlp__Dictionary *ret)
{
	const struct pprof_tables *t = pprof_tables(d->names);
	Otlp__Function *items;
	int r = table(d, t->n_functions, sizeof(*items), &items, &ret->function_table);

	if (r)
		return r;
	ret->n_function_table = t->n_functions + 1;
	otlp__function__init(&items[0]);
	for (size_t i = 0; i < t->n_functions; i++) {
		const struct pprof_function_row *row = &t->functions[i];
		Otlp__Function *f = &items[i + 1];

		otlp__function__init(f);
		f->name_strindex = (int32_t)row->name;
		f->system_name_strindex = (int32_t)row->system_name;
		f->filename_strindex = (int32_t)row->file;
		f->start_line = row->start_line;
	}
	return 0;
}

static int put_stacks(struct otlp_dictionary *d, Otlp__Dictionary *ret)
{
	Otlp__Stack *items;
	int r = table(d, d->n_stacks, sizeof(*items), &items, &ret->stack_table);

	if (r)
		return r;
	ret->n_stack_table = d->n_stacks + 1;
	otlp__stack__init(&items[0]);
	for (size_t i = 0; !r && i < d->n_stacks; i++) {
		const struct stack *stack = &d->stacks[i];
		Otlp__Stack *s = &items[i + 1];

		otlp__stack__init(s);
		r = arena_array(d->arena, stack->n, sizeof(*s->location_indices),
				&s->location_indices);
		if (r)
			return r;
		s->n_location_indices = stack->n;
		for (size_t j = 0; j < stack->n; j++)
			s->location_indices[j] = (int32_t)stack->locations[j];
	}
	return r;
}

static int put_attributes(struct otlp_dictionary *d, Otlp__Dictionary *ret)
{
	const struct pprof_tables *t = pprof_tables(d->names);
	Otlp__KeyValueAndUnit *items;
	Otlp__AnyValue *values;
	int r = table(d, d->n_attributes, sizeof(*items), &items, &ret->attribute_table);

	if (!r)
		r = arena_array(d->arena, d->n_attributes, sizeof(*values), &values);
	if (r)
		return r;
	ret->n_attribute_table = d->n_attributes + 1;
	otlp__key_value_and_unit__init(&items[0]);
	for (size_t i = 0; i < d->n_attributes; i++) {
		const struct attribute *row = &d->attributes[i];
		Otlp__KeyValueAndUnit *a = &items[i + 1];

		otlp__key_value_and_unit__init(a);
		otlp__any_value__init(&values[i]);
		a->key_strindex = (int32_t)row->key;
		a->unit_strindex = (int32_t)row->unit;
		a->value = &values[i];
		if (row->str) {
			values[i].value_case = OTLP__ANY_VALUE__VALUE_STRING_VALUE;
			values[i].string_value = (char *)t->strings[row->str]; /* only read */
		} else {
			values[i].value_case = OTLP__ANY_VALUE__VALUE_INT_VALUE;
			values[i].int_value = row->num;
		}
	}
	return 0;
}

static int put_links(struct otlp_dictionary *d, Otlp__Dictionary *ret)
{
	Otlp__Link *items;
	int r = table(d, 0, sizeof(*items), &items, &ret->link_table);

	if (r)
		return r;
	ret->n_link_table = 1;
	otlp__link__init(&items[0]);
	return 0;
}

int otlp_dictionary_message(struct otlp_dictionary *d, Otlp__Dictionary *ret)
{
	/* attributes after their users, strings after all */
	static int (*const steps[])(struct otlp_dictionary *, Otlp__Dictionary *) = {
		put_mappings, put_locations, put_functions, put_stacks, put_links, put_attributes};
	int r = 0;

	otlp__dictionary__init(ret);
	for (size_t i = 0; !r && i < array_size(steps); i++)
		r = steps[i](d, ret);
	ret->n_string_table = pprof_tables(d->names)->n_strings;
	ret->string_table = (char **)pprof_tables(d->names)->strings; /* only read */
	return too_large(r);
}
