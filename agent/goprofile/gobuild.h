/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_GOPROFILE_GOBUILD_H
#define PODPROF_GOPROFILE_GOBUILD_H

/* The common part of the reports of Go's own profiles: a profile under construction, the stacks,
 * and the outcomes of the records. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "goprofile/gostack.h"
#include "goprofile/heap.h"
#include "pprof/pprof.h"

/* @n_plus: as in the options; @n_begun: snapshots so far; @rest: of the records without room */
struct gobuild {
	struct pprof *pprof;
	size_t n_plus;
	size_t n_begun;
	size_t n_types;
	bool is_full; /* the present snapshot has no room for its names */
	int64_t rest[PPROF_VALUES_MAX];
	struct gostack *stacks;
	struct go_profile_report_stats stats;
};

/* @types: as for pprof_new(); time and ceilings come from @opts. 0 or -errno. */
int gobuild_init(struct gobuild *b, struct symbolizer *symbolizer, const struct pprof_opts *types,
		 const struct go_profile_report_opts *opts);
/* {0} is valid. */
void gobuild_deinit(struct gobuild *b);

/* Begin a snapshot: name its stacks. 0, also if the profile has no room for more names: then all
 * records are left out and counted; -E2BIG for that in a subtraction; -errno. */
int gobuild_begin(struct gobuild *b, const struct stacksnap *stacks);

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

/* Add one record. A record left out by a ceiling is counted, and its values go to the sample with
 * the frame PPROF_REST_NAME. 0 or -errno. */
int gobuild_record(struct gobuild *b, const struct gobuild_record *record);

/* Appends the encoded profile. 0; BUF_FULL; -errno. */
int gobuild_encode(struct gobuild *b, struct buf *ret, struct go_profile_report_stats *ret_stats);

#endif
