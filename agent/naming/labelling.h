/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_NAMING_LABELLING_H
#define PODPROF_NAMING_LABELLING_H

/* From what is known of an entity to its labels, and whether it is profiled: the user's labels, the
 * user's selector, the user's rules. */

#include <stdbool.h>
#include <stddef.h>

#include "base/labels.h"

struct entity;
struct names;
struct pattern_error;
struct relabel;
struct selector;

/**
 * struct naming_settings - what the user wants; borrowed
 * @labels:  "NAME=VALUE" each, with valid names; an entity's own labels win
 * @select, @ignore: as for selector_new()
 * @relabel: NULL: no rules
 */
struct naming_settings {
	const char *const *labels;
	size_t n_labels;
	const char *const *select;
	size_t n_select;
	const char *const *ignore;
	size_t n_ignore;
	const struct relabel *relabel;
};

struct labelling {
	struct labels labels;
	struct selector *selector;
	const struct relabel *relabel; /* borrowed */
};

/* 0; PATTERN_REFUSED; -ENOMEM. @ret must be {0}; labelling_deinit() it whatever is returned. */
int labelling_init(const struct naming_settings *settings, struct labelling *ret,
		   struct pattern_error *ret_error);
void labelling_deinit(struct labelling *l);

/* Bytes of a reason why something is left out, for people. Reached: cut. */
#define LABELLING_WHY_MAX 256

/**
 * struct labelled - what came of it; {0} before
 * @labels:     ready to be a series'
 * @settings:   as in struct entity
 * @why:        why it is not to be profiled; "": it is
 * @origins:    where each label is from, for people; only where asked for
 * @n_left_out: labels that were too many
 * @gave_up:    a rule or a pattern took too long
 */
struct labelled {
	struct labels labels;
	struct labels settings;
	char why[LABELLING_WHY_MAX];
	struct labels origins;
	size_t n_left_out;
	bool gave_up;
};

void labelled_deinit(struct labelled *l);

/* @decide: say also whether it is profiled; else it is for now. 0 or -ENOMEM. */
int labelling_apply(const struct labelling *l, const struct names *names,
		    const struct entity *entity, bool decide, bool origins, struct labelled *ret);

#endif
