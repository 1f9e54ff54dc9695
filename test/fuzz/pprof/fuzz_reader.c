// SPDX-License-Identifier: Apache-2.0
/* An accepted profile must be safe to walk, show and write, and must be the same after writing and
 * reading. */
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/utf8.h"
#include "pprof/flame.h"
#include "pprof/reader.h"
#include "pprof/wire.h"

#define BYTES_MAX (1u << 20)

DEFINE_CLEANUP(struct flame *, flame_freep, flame_free);

static void must(int ok)
{
	if (!ok)
		abort();
}

static void check_rows(const struct pprof_tables *t)
{
	for (size_t i = 0; i < t->n_strings; i++)
		must(utf8_is_valid(t->strings[i], strlen(t->strings[i])));
	must(t->n_strings > 0 && !*t->strings[0]);
	for (size_t i = 0; i < t->n_mappings; i++)
		must(t->mappings[i].path < t->n_strings && t->mappings[i].build_id < t->n_strings);
	for (size_t i = 0; i < t->n_functions; i++)
		must(t->functions[i].name < t->n_strings &&
		     t->functions[i].system_name < t->n_strings &&
		     t->functions[i].file < t->n_strings);
	for (size_t i = 0; i < t->n_locations; i++) {
		must(t->locations[i].mapping <= t->n_mappings);
		for (size_t j = 0; j < t->locations[i].n_lines; j++)
			must(t->locations[i].lines[j].function - 1 < t->n_functions);
	}
}

static int64_t check_samples(const struct pprof_tables *t)
{
	int64_t hash = 0;

	for (size_t i = 0; i < t->n_samples; i++) {
		const struct pprof_sample_row *row = &t->samples[i];

		for (size_t j = 0; j < row->n_locations; j++)
			must(row->locations[j] - 1 < t->n_locations);
		for (size_t j = 0; j < row->n_labels; j++)
			must(row->labels[j].key < t->n_strings &&
			     row->labels[j].str < t->n_strings &&
			     row->labels[j].unit < t->n_strings);
		for (size_t j = 0; j < t->n_types; j++)
			hash ^= t->values[i * t->n_types + j];
	}
	return hash;
}

static void check_flame(const struct pprof_tables *t)
{
	_cleanup_(flame_freep) struct flame *f = NULL;
	_cleanup_(freep) struct flame_function *functions = NULL;
	json_t *json = NULL;
	size_t n = 0;

	must(!flame_new(&f));
	if (flame_add(f, t, NULL))
		return;
	must(!flame_add(f, t, NULL));
	must(!flame_json(f, 20, &json));
	json_decref(json);
	must(!flame_functions(f, FLAME_BY_CUM, &functions, &n));
	for (size_t i = 0; i < n; i++)
		must(functions[i].flat <= functions[i].cum && functions[i].cum <= flame_total(f));
}

/* FULL is fine: one sample may be larger than wire.c's limit. */
static void check_written(const struct pprof_tables *t)
{
	_cleanup_(buf_deinit) struct buf gz = BUF_INIT(BYTES_MAX);
	_cleanup_(reader_freep) struct reader *again = NULL;
	const char *why;
	int r = wire_encode(t, 1, &gz);

	must(r >= 0);
	if (r)
		return;
	r = reader_new(gz.data, gz.len, (size_t)16 * BYTES_MAX, &again, &why);
	must(r == 0);
	must(reader_tables(again)->n_samples == t->n_samples);
	must(reader_tables(again)->n_strings == t->n_strings);
	must(check_samples(reader_tables(again)) == check_samples(t));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(reader_freep) struct reader *rd = NULL;
	const char *why = NULL;
	int r = reader_new(data, size, BYTES_MAX, &rd, &why);

	if (r > 0)
		must(why && *why);
	if (r)
		return 0;
	check_rows(reader_tables(rd));
	check_samples(reader_tables(rd));
	check_flame(reader_tables(rd));
	check_written(reader_tables(rd));
	return 0;
}
