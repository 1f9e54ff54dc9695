// SPDX-License-Identifier: Apache-2.0
#include "namingopts.h"

#include <stdio.h>

#include "config/config.h"

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

struct naming_settings namingopts_settings(const struct config *c)
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

void namingopts_init(struct namingopts *n, const struct config *c)
{
	/* the first process's root directory is the node's */
	snprintf(n->host_root, sizeof(n->host_root), "%s/1/root", c->proc_root);
	n->opts = (struct naming_opts){
		.settings = namingopts_settings(c),
		.metadata = {.mode = modes[c->metadata],
			     .node = c->node_name,
			     .host_root = n->host_root,
			     .kubelet_url = c->kubelet_url,
			     .kubelet_verify = verify[c->kubelet_verify]},
	};
}
