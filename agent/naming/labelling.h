/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_NAMING_LABELLING_H
#define PODPROF_NAMING_LABELLING_H

/* Makes an entity's labels and decides whether it is profiled, from its metadata and the user's
 * labels, selector and rules. */

#include <stdbool.h>
#include <stddef.h>

#include "base/labels.h"

struct entity;
struct names;
struct pattern_error;
struct relabel;
struct selector;

/**
 * struct naming_settings - the user's settings; borrowed
 * @labels:          "NAME=VALUE" each, with valid names; an entity's own labels take precedence
 * @select, @ignore: as for selector_new()
 * @relabel:         NULL: no rules
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

/* @ret must be {0}; call labelling_deinit() after success and after failure. 0; PATTERN_REFUSED;
 * -ENOMEM. */
int labelling_init(const struct naming_settings *settings, struct labelling *ret,
		   struct pattern_error *ret_error);
void labelling_deinit(struct labelling *l);

/* Bytes of the reason for leaving an entity out, for users. Reached: cut. */
#define LABELLING_WHY_MAX 256

/**
 * struct labelled - the result; {0} before
 * @labels:     ready to be a series' labels
 * @settings:   as in struct entity
 * @why:        the reason for leaving the entity out; "": profiled
 * @origins:    origin of each label, for users; only on request
 * @n_left_out: number of labels beyond the ceiling
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

/* @decide: also decide whether the entity is profiled; otherwise @ret->why stays empty. @origins:
 *          also fill in @ret->origins. 0 or -ENOMEM. */
int labelling_apply(const struct labelling *l, const struct names *names,
		    const struct entity *entity, bool decide, bool origins, struct labelled *ret);

#endif
