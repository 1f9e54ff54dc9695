// SPDX-License-Identifier: Apache-2.0
#include "support/samelines.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "pprof/reader.h"
#include "support/test.h"

#define PROFILE_BYTES_MAX (64u << 20)
#define KEY_BYTES_MAX	  (256u << 10)

void samelines_deinit(struct samelines *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->items[i].key);
	free(l->items);
	*l = (struct samelines){0};
}

static void append_location(const struct pprof_tables *t, uint32_t number, struct buf *key)
{
	const struct pprof_location_row *location = &t->locations[number - 1];

	for (size_t i = 0; i < location->n_lines; i++) {
		const struct pprof_function_row *f = &t->functions[location->lines[i].function - 1];

		assert_int_equal(buf_printf(key, "%s %s:%" PRId64 "%s\n", t->strings[f->name],
					    t->strings[f->file], location->lines[i].line,
					    i + 1 < location->n_lines ? " inlined" : ""),
				 0);
	}
}

static char *key_of(const struct pprof_tables *t, const struct pprof_sample_row *sample)
{
	struct buf key = BUF_INIT(KEY_BYTES_MAX);

	for (size_t i = 0; i < sample->n_labels; i++) {
		const struct pprof_label_row *label = &sample->labels[i];

		assert_int_equal(
			buf_printf(&key, "%s=%" PRId64 "\n", t->strings[label->key], label->num),
			0);
	}
	for (size_t i = 0; i < sample->n_locations; i++)
		append_location(t, sample->locations[i], &key);
	return buf_take(&key);
}

static int compare_lines(const void *a, const void *b)
{
	return strcmp(((const struct sameline *)a)->key, ((const struct sameline *)b)->key);
}

static void merge(struct samelines *l)
{
	size_t to = 0;

	qsort(l->items, l->n, sizeof(*l->items), compare_lines);
	for (size_t i = 0; i < l->n; i++) {
		if (to > 0 && strcmp(l->items[to - 1].key, l->items[i].key) == 0) {
			for (size_t k = 0; k < l->n_values; k++)
				l->items[to - 1].values[k] += l->items[i].values[k];
			l->items[to - 1].n++;
			free(l->items[i].key);
		} else {
			l->items[to++] = l->items[i];
		}
	}
	l->n = to;
}

void samelines_of(const struct buf *profile, const char *const *types, size_t n_types,
		  struct samelines *ret)
{
	const struct pprof_tables *t;
	struct reader *reader = NULL;
	const char *why = NULL;

	assert_int_equal(reader_new(profile->data, profile->len, PROFILE_BYTES_MAX, &reader, &why),
			 0);
	t = reader_tables(reader);
	assert_true(n_types <= SAMELINES_VALUES_MAX);
	assert_int_equal(t->n_types, n_types);
	for (size_t i = 0; i < n_types; i++)
		assert_string_equal(t->strings[t->types[i].type], types[i]);
	*ret = (struct samelines){
		.items = calloc(t->n_samples + 1, sizeof(*ret->items)),
		.n = t->n_samples,
		.n_values = n_types,
		.period = t->period,
	};
	assert_non_null(ret->items);
	for (size_t i = 0; i < t->n_samples; i++) {
		ret->items[i].key = key_of(t, &t->samples[i]);
		ret->items[i].n = 1;
		memcpy(ret->items[i].values, t->values + i * n_types,
		       n_types * sizeof(ret->items[i].values[0]));
	}
	reader_free(reader);
	merge(ret);
}

const struct sameline *samelines_find(const struct samelines *l, const struct sameline *line)
{
	return bsearch(line, l->items, l->n, sizeof(*l->items), compare_lines);
}

static size_t count_frames(const char *key)
{
	size_t n = 0;

	for (; *key; key++)
		n += *key == '\n';
	return n;
}

/* Stacks are longer than cmocka's output. */
static void show(const char *what, const struct sameline *line)
{
	printf("%s: %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 "\n%s", what, line->values[0],
	       line->values[1], line->values[2], line->values[3], line->key);
	fflush(stdout);
}

static void compare_line(const struct sameline *own, const struct sameline *ours, size_t n_values,
			 struct samelines_tally *tally)
{
	bool exact = true;

	if (!ours) {
		show("not seen from outside", own);
		fail();
		return;
	}
	for (size_t i = 0; i < n_values; i++) {
		if (llabs(own->values[i] - ours->values[i]) > (long long)own->n) {
			show("its own", own);
			show("from outside", ours);
			fail();
		}
		exact = exact && own->values[i] == ours->values[i];
	}
	tally->n_lines++;
	tally->n_frames += count_frames(own->key);
	*(exact ? &tally->n_exact : &tally->n_one_off) += 1;
}

void samelines_compare(const struct samelines *own, const struct samelines *ours,
		       struct samelines_tally *tally)
{
	assert_int_equal(own->period, ours->period);
	assert_true(own->n > 0);
	for (size_t i = 0; i < own->n; i++)
		compare_line(&own->items[i], samelines_find(ours, &own->items[i]), own->n_values,
			     tally);
	for (size_t i = 0; i < ours->n; i++) {
		if (samelines_find(own, &ours->items[i]))
			continue;
		for (size_t k = 0; k < ours->n_values; k++)
			if (ours->items[i].values[k]) {
				show("seen only from outside", &ours->items[i]);
				fail();
			}
	}
}
