/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_GOPROFILE_GOBUILD_H
#define PODPROF_GOPROFILE_GOBUILD_H

/* The common part of the reports of Go's own profiles: a profile under construction, the stacks,
 * and the outcomes of the records. */

#include <stddef.h>
#include <stdint.h>

#include "pprof/pprof.h"
#include "goprofile/gostack.h"
#include "goprofile/heap.h"

/* @n_plus: as in the options; @n_begun: snapshots so far */
struct gobuild {
	struct pprof *pprof;
	size_t n_plus;
	size_t n_begun;
	size_t n_types;
	struct gostack *stacks;
	struct go_profile_report_stats stats;
};

/* @types: as for pprof_new(); time and ceilings come from @opts. 0 or -errno. */
int gobuild_init(struct gobuild *b, struct symbolizer *symbolizer, const struct pprof_opts *types,
		 const struct go_profile_report_opts *opts);
/* {0} is valid. */
void gobuild_deinit(struct gobuild *b);

/* Begin a snapshot: name the stacks of its @n_records. 0; PPROF_FULL if the profile has no room for
 * more names: all records are left out and counted, and a subtraction fails with -E2BIG; -errno. */
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

/* Add one record. The record is counted, also if left out by a ceiling. 0 or -errno. */
int gobuild_record(struct gobuild *b, const struct gobuild_record *record);

/* Appends the encoded profile. 0; BUF_FULL; -errno. */
int gobuild_encode(struct gobuild *b, struct buf *ret, struct go_profile_report_stats *ret_stats);

#endif
