// SPDX-License-Identifier: Apache-2.0
#include "settings.h"

#include <stdio.h>

#include "config/config.h"

/* The kernel side's name of each unwind method. */
static const enum settings_unwind unwinds[CONFIG_UNWIND_MAX] = {
	[CONFIG_UNWIND_AUTO] = SETTINGS_UNWIND_AUTO,
	[CONFIG_UNWIND_FP] = SETTINGS_UNWIND_FP,
	[CONFIG_UNWIND_DWARF] = SETTINGS_UNWIND_DWARF,
};

struct cpu_profiler_opts settings_cpu(const struct config *c)
{
	return (struct cpu_profiler_opts){
		.rate_hz = (unsigned int)c->cpu_rate,
		.off_cpu = c->off_cpu,
		.kernel_stacks = c->kernel_stacks,
		.thread_names = c->thread_names,
		.task_names = c->task_names,
		.dwarf = c->dwarf,
		.doc_url = c->doc_url,
		.unwind = unwinds[c->unwind],
		.unsafe_kernel = c->allow_unsafe_kernel,
		.symbol_bytes = c->memory_budget / BUDGET_SYMBOLS,
		.table_bytes = c->memory_budget / BUDGET_TABLES,
	};
}

struct discovery_opts settings_discovery(const struct config *c)
{
	return (struct discovery_opts){
		.cgroupfs_root = c->cgroupfs_root,
		.host_processes = c->host_processes,
		.node_name = c->node_name,
	};
}

static const enum metadata_mode modes[CONFIG_METADATA_MAX] = {
	[CONFIG_METADATA_AUTO] = METADATA_AUTO,
	[CONFIG_METADATA_KUBELET] = METADATA_KUBELET,
	[CONFIG_METADATA_APISERVER] = METADATA_APISERVER,
	[CONFIG_METADATA_RUNTIME] = METADATA_RUNTIME,
	[CONFIG_METADATA_NONE] = METADATA_NONE,
};

static const enum http_verify verify[CONFIG_VERIFY_MAX] = {
	[CONFIG_VERIFY_FULL] = HTTP_VERIFY_ALL,
	[CONFIG_VERIFY_CHAIN] = HTTP_VERIFY_CHAIN,
	[CONFIG_VERIFY_NONE] = HTTP_VERIFY_NOTHING,
};

struct naming_settings settings_naming(const struct config *c)
{
	return (struct naming_settings){
		.labels = (const char *const *)c->labels.items,
		.n_labels = c->labels.n,
		.select = (const char *const *)c->select.items,
		.n_select = c->select.n,
		.ignore = (const char *const *)c->ignore.items,
		.n_ignore = c->ignore.n,
		.relabel = c->relabel,
	};
}

void settings_naming_opts_init(struct settings_naming_opts *n, const struct config *c)
{
	/* the first process's root directory is the node's */
	snprintf(n->host_root, sizeof(n->host_root), "%s/1/root", c->proc_root);
	n->opts = (struct naming_opts){
		.settings = settings_naming(c),
		.metadata = {.mode = modes[c->metadata],
			     .node = c->node_name,
			     .host_root = n->host_root,
			     .kubelet_url = c->kubelet_url,
			     .kubelet_verify = verify[c->kubelet_verify]},
	};
}
