/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_NAMING_NAMING_H
#define PODPROF_NAMING_NAMING_H

/* Gives discovery's entities their labels: as soon as there is one by what is known of it, and
 * again whenever that changes. */

#include "metadata/metadata.h"
#include "naming/labelling.h"

struct discovery;
struct entity;
struct loop;
struct metric_sink;
struct naming;

/**
 * struct naming_opts - everything is borrowed and must outlive it
 * @settings: until naming_configure(); what its strings and lists point to is copied, the rules are
 *            not
 * @metadata: whom to ask; its loop, callbacks and context are set here
 * @source:   as in struct metadata_opts
 * @cpu_ns:   the CPU time that this thread has used; NULL: the kernel's word
 * @look_ns:  from one look at all entities to the next; 0: a second
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

/* All entities have labels when it returns. 0; PATTERN_REFUSED with *@ret_error; -EDESTADDRREQ
 * where metadata.mode names a server and none is known; -errno. */
int naming_new(const struct naming_opts *opts, struct naming **ret,
	       struct pattern_error *ret_error);
/* Entities keep the labels that they have. */
void naming_free(struct naming *naming);

/* Other settings from now on: all entities are labelled and chosen anew, by the next trip through
 * the loop. 0; PATTERN_REFUSED; -ENOMEM: on these two the old ones stay. */
int naming_configure(struct naming *naming, const struct naming_settings *settings,
		     struct pattern_error *ret_error);

/* What its pod's annotation podprof.io/NAME says, with '_' for '-' in @setting. NULL: it says
 * nothing. *@ret_known is false while that is because the annotations are not known, though there
 * is a server that knows them. Borrowed until the next trip through the loop. */
const char *naming_setting(const struct entity *entity, const char *setting, bool *ret_known);

/* What an entity's labels are made of now, with their origins, and what it is called
 * (NAMES_TEXT_MAX bytes); also of one that is pending, as if nothing more would come. For people:
 * what is used is in the entity. 0 or -ENOMEM. */
int naming_explain(struct naming *naming, const struct entity *entity, struct labelled *ret,
		   char *ret_name);
/* For people, one line: who tells names, and how that goes. */
void naming_describe(const struct naming *naming, char *ret, size_t size);

/* A metric_collect_fn; @ctx is the naming. */
void naming_collect(void *ctx, struct metric_sink *sink);

#endif
