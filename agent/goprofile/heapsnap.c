// SPDX-License-Identifier: Apache-2.0
#include "goprofile/heapsnap.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "goheap/goheap.h"

void heapsnap_free(struct heapsnap *s)
{
	if (!s)
		return;
	stacksnap_deinit(&s->stacks);
	free(s->records);
	free(s);
}

size_t heapsnap_bytes(const struct heapsnap *s)
{
	return sizeof(*s) + s->n_records * sizeof(*s->records) + stacksnap_bytes(&s->stacks);
}

DEFINE_CLEANUP(struct heapsnap *, heapsnap_freep, heapsnap_free);

static int add(struct heapsnap *s, const struct goheap_record *record, bool none_before)
{
	struct heapsnap_record *to = &s->records[s->n_records];

	*to = (struct heapsnap_record){
		.size = record->size,
		.allocs = record->allocs,
		.inuse = goheap_record_inuse(record),
		.fresh = record->fresh_allocs,
		.before = none_before ? record->fresh_allocs : record->before_allocs,
		.n_pcs = record->n_pcs,
	};
	s->n_records++;
	return stacksnap_add_numbers(&s->stacks, record->stack, record->n_pcs, &to->first_pc);
}

int heapsnap_new(const struct goheap_profile *profile, const struct heapsnap_opts *opts,
		 struct heapsnap **ret)
{
	_cleanup_(heapsnap_freep) struct heapsnap *s = calloc(1, sizeof(*s));
	bool none_before = profile->first && !opts->since_start;
	int r;

	if (!s)
		return -ENOMEM;
	s->records = calloc(profile->n_records + 1, sizeof(*s->records));
	if (!s->records)
		return -ENOMEM;
	s->rate = profile->rate;
	s->blank_label = profile->blank_label;
	s->forced = opts->forced;
	r = stacksnap_resolve(&s->stacks, &opts->space, profile->pcs, profile->n_pcs);
	for (size_t i = 0; !r && i < profile->n_records; i++) {
		struct goheap_record record;

		goheap_record(profile, i, &record);
		r = add(s, &record, none_before);
	}
	if (r)
		return r;
	stacksnap_seal(&s->stacks);
	*ret = take_ptr(s);
	return 0;
}
