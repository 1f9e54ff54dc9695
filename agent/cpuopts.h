/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_CPUOPTS_H
#define PODPROF_CPUOPTS_H

/* Settings, as the CPU profiler wants them. */

#include "cpuprofiler.h"

struct config;

/* All but what is borrowed of the agent: loop, roots, discovery, cache and callback are NULL.
 * Strings stay @c's. */
struct cpu_profiler_opts cpuopts(const struct config *c);

#endif
