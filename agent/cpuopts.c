// SPDX-License-Identifier: Apache-2.0
#include "cpuopts.h"

#include "budget.h"
#include "config/config.h"

/* The kernel side's name for the way that callers are found. */
static const enum settings_unwind unwinds[CONFIG_UNWIND_MAX] = {
	[CONFIG_UNWIND_AUTO] = SETTINGS_UNWIND_AUTO,
	[CONFIG_UNWIND_FP] = SETTINGS_UNWIND_FP,
	[CONFIG_UNWIND_DWARF] = SETTINGS_UNWIND_DWARF,
};

struct cpu_profiler_opts cpuopts(const struct config *c)
{
	return (struct cpu_profiler_opts){
		.rate_hz = (unsigned int)c->cpu_rate,
		.off_cpu = c->off_cpu,
		.kernel_stacks = c->kernel_stacks,
		.unwind = unwinds[c->unwind],
		.unsafe_kernel = c->allow_unsafe_kernel,
		.symbol_bytes = c->memory_budget / BUDGET_SYMBOLS,
		.table_bytes = c->memory_budget / BUDGET_TABLES,
		.rows_dir = c->unwind_rows,
	};
}
