/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_TEST_SUPPORT_HEAPOUTSIDE_H
#define PODPROF_TEST_SUPPORT_HEAPOUTSIDE_H

/* Run a Go program, read its heap from outside and make a profile, by the same calls as the agent.
 */

#include "goheap/goheap.h"
#include "goprofile/heap.h"
#include "support/goprocess.h"

struct buf;

#define HEAPOUTSIDE_BYTES_MAX (64u << 20)

struct heapoutside {
	struct goprocess process;
	struct goheap *heap;
	struct address_space_cache *space;
	struct symbolizer *symbolizer;
};

#define HEAPOUTSIDE_INIT               \
	{                              \
		.process = {.to = -1 } \
	}

/* As goprocess_start(). The test fails unless a runtime is found. */
void heapoutside_start(struct heapoutside *o, const char *path, const char *const *args,
		       const char *env);
/* Ends the process, too. */
void heapoutside_deinit(struct heapoutside *o);

/* Cumulative values since the start, as in a file. */
extern const struct go_profile_report_opts heapoutside_cumulative;

/* Returns 0, or the error of one of the steps. Appends to @ret. */
int heapoutside_read(struct heapoutside *o, const struct go_profile_report_opts *opts,
		     bool since_start, struct buf *ret, struct go_profile_report_stats *ret_stats,
		     struct goheap_totals *ret_totals);

#endif
