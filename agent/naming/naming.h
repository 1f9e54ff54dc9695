/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_NAMING_NAMING_H
#define PODPROF_NAMING_NAMING_H

/* Labels discovery's entities: at their first appearance from the metadata known so far, and again
 * after each change of the metadata. */

#include "metadata/metadata.h"
#include "naming/labelling.h"

struct discovery;
struct entity;
struct loop;
struct metric_sink;
struct naming;

/**
 * struct naming_opts - all borrowed; must outlive the naming
 * @settings: until naming_configure(). Strings and lists are copied, the rules are not
 * @metadata: the sources of names; naming_new() sets loop, callbacks and context
 * @source:   as in struct metadata_opts
 * @cpu_ns:   CPU time of this thread; NULL: the kernel's clock
 * @look_ns:  period of the look at all entities; 0: a second
 */
struct naming_opts {
	struct loop *loop;
	struct discovery *discovery;
	struct naming_settings settings;
	struct metadata_opts metadata;
	metadata_source_fn source;
	void *ctx;
	uint64_t (*cpu_ns)(void);
	uint64_t look_ns;
};

/* Labels all existing entities before the return. *@ret: owned. 0; PATTERN_REFUSED with
 * *@ret_error; -EDESTADDRREQ if metadata.mode names a server without a known address; -errno. */
int naming_new(const struct naming_opts *opts, struct naming **ret,
	       struct pattern_error *ret_error);
/* Entities keep their labels. */
void naming_free(struct naming *naming);

/* Applies new settings: the next look labels and selects all entities anew. 0; PATTERN_REFUSED;
 * -ENOMEM. After a failure the old settings stay. */
int naming_configure(struct naming *naming, const struct naming_settings *settings,
		     struct pattern_error *ret_error);

/* The value of the pod's annotation podprof.io/NAME; @setting is NAME with '_' for '-'. NULL: no
 * such annotation. *@ret_known is false while the annotations are unknown but a server may know
 * them. Borrowed until the next iteration of the loop. */
const char *naming_setting(const struct entity *entity, const char *setting, bool *ret_known);

/* The labels and their origins as of now, and the entity's name (NAMES_TEXT_MAX bytes). A pending
 * entity is treated as complete. For users: the labels in use are in the entity. 0 or -ENOMEM. */
int naming_explain(struct naming *naming, const struct entity *entity, struct labelled *ret,
		   char *ret_name);
/* One line for users: the sources of names and their states. */
void naming_describe(const struct naming *naming, char *ret, size_t size);

/* A metric_collect_fn; @ctx is the naming. */
void naming_collect(void *ctx, struct metric_sink *sink);

#endif
