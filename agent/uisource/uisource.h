/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_UISOURCE_UISOURCE_H
#define PODPROF_UISOURCE_UISOURCE_H

/* The data of the pages: current entities from discovery with the profilers' data, and the stored
 * profiles of current and ended entities. */

#include <stdint.h>

#include "server/ui.h"

struct cpu_profiler;
struct discovery;
struct go_profiler;
struct store;
struct uisource;

/* All borrowed; @cpu, @heap and @store may be NULL. */
struct uisource_opts {
	struct discovery *discovery;
	const struct cpu_profiler *cpu;
	const struct go_profiler *heap;
	const struct store *store;
	const char *node;
	uint64_t window_ns;
	struct ui_off off;
};

/* 0 or -ENOMEM. */
int uisource_new(const struct uisource_opts *opts, struct uisource **ret);
void uisource_free(struct uisource *u);
/* The profilers have ended a window of this length: its numbers are those of the entities. */
void uisource_end_window(struct uisource *u, uint64_t duration_ns);
/* Borrowed; lives as long as @u. */
const struct ui_source *uisource_get(const struct uisource *u);

#endif
