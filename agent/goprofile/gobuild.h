/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_GOPROFILE_GOBUILD_H
#define PODPROF_GOPROFILE_GOBUILD_H

/* What the reports of Go's own profiles have in common: a profile that is being built, its stacks,
 * and what became of the records. */

#include <stddef.h>
#include <stdint.h>

#include "pprof/pprof.h"
#include "goprofile/gostack.h"
#include "goprofile/heap.h"

struct gobuild {
	struct pprof *pprof;
	struct gostack *stacks;
	struct go_profile_report_stats stats;
};

/* @types: as for pprof_new(); time and ceilings are those of @opts. 0 or -errno. */
int gobuild_init(struct gobuild *b, struct symbolizer *symbolizer, const struct pprof_opts *types,
		 const struct go_profile_report_opts *opts);
/* {0} is fine. */
void gobuild_deinit(struct gobuild *b);

/* The stacks of the @n_records that come next. 0; PPROF_FULL where the profile has no room for more
 * names: all of them are left out, and counted; -errno. */
int gobuild_begin(struct gobuild *b, const struct stacksnap *stacks, size_t n_records);

/**
 * struct gobuild_record - @pcs, @n_pcs: as for gostack_locations(); the rest as for pprof_sample()
 */
struct gobuild_record {
	const uint32_t *pcs;
	size_t n_pcs;
	enum gostack_rule rule;
	const int64_t *values;
	const struct pprof_label *labels;
	size_t n_labels;
};

/* One record, counted; or left out by a ceiling, and counted. 0 or -errno. */
int gobuild_record(struct gobuild *b, const struct gobuild_record *record);

/* Appends the encoded profile. 0; BUF_FULL; -errno. */
int gobuild_encode(struct gobuild *b, struct buf *ret, struct go_profile_report_stats *ret_stats);

#endif
