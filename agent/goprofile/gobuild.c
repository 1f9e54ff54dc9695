// SPDX-License-Identifier: Apache-2.0
#include "goprofile/gobuild.h"

#include <errno.h>
#include <stdbool.h>

#include "pprof/tables.h"

int gobuild_init(struct gobuild *b, struct symbolizer *symbolizer, const struct pprof_opts *types,
		 const struct go_profile_report_opts *opts)
{
	struct pprof_opts pprof_opts = *types;
	int r;

	pprof_opts.time_ns = (int64_t)opts->time_ns;
	pprof_opts.default_type = opts->default_type;
	pprof_opts.doc_url = opts->doc_url;
	pprof_opts.max_samples = opts->max_samples;
	pprof_opts.max_bytes = opts->max_bytes;
	pprof_opts.without_zeros = opts->n_plus;
	pprof_opts.with_rest = true;
	b->n_plus = opts->n_plus;
	b->n_types = types->n_types;
	r = pprof_new(&pprof_opts, &b->pprof);
	if (!r)
		r = pprof_comment(b->pprof, pprof_producer);
	return r < 0 ? r : gostack_new(symbolizer, b->pprof, &b->stacks);
}

void gobuild_deinit(struct gobuild *b)
{
	gostack_free(b->stacks);
	pprof_free(b->pprof);
}

static bool is_minus(const struct gobuild *b)
{
	return b->n_plus && b->n_begun > b->n_plus;
}

int gobuild_begin(struct gobuild *b, const struct stacksnap *stacks)
{
	int r = gostack_name(b->stacks, stacks);

	b->n_begun++;
	if (r > 0 && is_minus(b))
		return -E2BIG; /* half a difference is none */
	b->is_full = r > 0;
	return r < 0 ? r : 0;
}

static int64_t negative(int64_t value)
{
	return value == INT64_MIN ? INT64_MAX : -value;
}

int gobuild_record(struct gobuild *b, const struct gobuild_record *record)
{
	uint32_t locations[GOSTACK_LOCATIONS_MAX];
	int64_t values[PPROF_VALUES_MAX] = {0};
	size_t n = 0;
	int r = PPROF_FULL;

	if (!b->is_full)
		r = gostack_locations(b->stacks, record->pcs, record->n_pcs, record->rule,
				      locations, &n);
	for (size_t i = 0; i < b->n_types; i++)
		values[i] = is_minus(b) ? negative(record->values[i]) : record->values[i];
	if (!r)
		r = pprof_sample(b->pprof, locations, n, values, record->labels, record->n_labels);
	if (r < 0)
		return r;
	for (size_t i = 0; r && i < b->n_types; i++)
		tables_add(&b->rest[i], values[i]);
	*(r ? &b->stats.n_left_out : &b->stats.n_records) += 1;
	return 0;
}

int gobuild_encode(struct gobuild *b, struct buf *ret, struct go_profile_report_stats *ret_stats)
{
	struct gostack_stats stacks;
	int r = pprof_rest(b->pprof, b->rest);

	if (!r)
		r = pprof_encode(b->pprof, ret);
	if (r)
		return r;
	stacks = gostack_stats(b->stacks);
	b->stats.n_places = stacks.n_places;
	b->stats.n_unnamed = stacks.n_unnamed;
	*ret_stats = b->stats;
	return 0;
}
