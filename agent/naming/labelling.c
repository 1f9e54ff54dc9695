// SPDX-License-Identifier: Apache-2.0
/*
 * The order of the steps:
 *
 *   - the user's labels, overridden by the entity's own;
 *   - the pod's annotation and the selector decide whether the entity is profiled;
 *   - the relabelling rules see all labels and the meta labels, and may still drop the entity;
 *   - labels that begin with "__" are removed, as in Prometheus: only rules can read them.
 */
#include "naming/labelling.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "naming/meta_labels.h"
#include "naming/names.h"
#include "naming/selector.h"
#include "relabel/pattern.h"
#include "relabel/relabel.h"

#define PROFILE_ANNOTATION "podprof.io/profile"
#define PROFILE_SETTING	   "profile"

static int set_pair(struct labels *l, const char *pair)
{
	const char *equals = strchr(pair, '=');
	_cleanup_(freep) char *name = equals ? strndup(pair, (size_t)(equals - pair)) : NULL;

	/* the settings parser has already refused invalid names */
	return !equals ? 0 : name ? labels_set(l, name, equals + 1) : -ENOMEM;
}

int labelling_init(const struct naming_settings *settings, struct labelling *ret,
		   struct pattern_error *ret_error)
{
	for (size_t i = 0; i < settings->n_labels; i++)
		if (set_pair(&ret->labels, settings->labels[i]) == -ENOMEM)
			return -ENOMEM;
	ret->relabel = settings->relabel;
	return selector_new(settings->select, settings->n_select, settings->ignore,
			    settings->n_ignore, &ret->selector, ret_error);
}

void labelling_deinit(struct labelling *l)
{
	labels_deinit(&l->labels);
	selector_free(l->selector);
	*l = (struct labelling){0};
}

void labelled_deinit(struct labelled *l)
{
	labels_deinit(&l->labels);
	labels_deinit(&l->settings);
	labels_deinit(&l->origins);
}

/* ---------------------------------------------------------------- before the rules */

static int add_all(struct labels *to, const struct labels *from)
{
	for (size_t i = 0; i < from->n; i++)
		if (labels_set(to, from->items[i].name, from->items[i].value) == -ENOMEM)
			return -ENOMEM;
	return 0;
}

/* Sets the same origin for all labels of @of. */
static int add_origin(struct labels *origins, const struct labels *of, const char *origin)
{
	for (size_t i = 0; i < of->n; i++)
		if (labels_set(origins, of->items[i].name, origin) == -ENOMEM)
			return -ENOMEM;
	return 0;
}

/* Collects in @set all labels for the rules, and in @own those of the entity itself. */
static int gather(const struct labelling *l, const struct names *names, const struct entity *entity,
		  struct labels *set, struct labels *own, struct labels *origins)
{
	int r = names_labels(names, entity, own);

	if (!r)
		r = add_all(set, &l->labels);
	if (!r)
		r = add_all(set, own);
	if (!r && l->relabel)
		r = meta_labels_add(names, entity, set);
	if (!r && origins)
		r = add_origin(origins, &l->labels, "--label");
	if (!r && origins)
		r = names_origins(names, entity, own, origins);
	return r;
}

static void choose(const struct labelling *l, const struct names *names,
		   const struct entity *entity, struct labelled *ret)
{
	const char *profile = labels_get(&ret->settings, PROFILE_SETTING);
	char name[NAMES_TEXT_MAX], why[SELECTOR_WHY_MAX];
	enum selector_outcome r;

	if (profile && strcmp(profile, "false") == 0) {
		snprintf(ret->why, sizeof(ret->why),
			 "annotation " PROFILE_ANNOTATION ": \"false\"");
		return;
	}
	names_text(names, entity, name);
	r = selector_ask(l->selector, name, why);
	if (r != SELECTOR_TAKEN)
		snprintf(ret->why, sizeof(ret->why), "%s", why);
	ret->gave_up = r == SELECTOR_GAVE_UP;
}

/* ---------------------------------------------------------------- the rules */

static void say_dropped(const struct labelling *l, int outcome, const struct relabel_result *result,
			struct labelled *ret)
{
	char rule[RELABEL_DESCRIPTION_MAX];

	relabel_describe(l->relabel, result->rule, rule);
	snprintf(ret->why, sizeof(ret->why), "%s%s", rule,
		 outcome == RELABEL_GAVE_UP ? " took too long" : "");
}

/* Copies the labels of a series from @set. Labels beyond the ceiling are left out, but never a
 * label with the name of one of @own: without its pod a series could be several pods'. */
static int keep_labels(const struct labels *set, const struct labels *own, struct labelled *ret)
{
	for (int is_own = 1; is_own >= 0; is_own--)
		for (size_t i = 0; i < set->n; i++) {
			const struct label *label = &set->items[i];
			int r;

			if (strncmp(label->name, "__", 2) == 0 ||
			    (labels_get(own, label->name) != NULL) != (bool)is_own)
				continue;
			r = labels_set(&ret->labels, label->name, label->value);
			if (r < 0)
				return r;
			ret->n_left_out += r > 0;
		}
	return 0;
}

int labelling_apply(const struct labelling *l, const struct names *names,
		    const struct entity *entity, bool decide, bool origins, struct labelled *ret)
{
	_cleanup_(labels_deinit) struct labels set = {.max = LABELS_META_MAX}, own = {0};
	struct labels *from = origins ? &ret->origins : NULL;
	struct relabel_result result = {0};
	int r;

	ret->origins.max = LABELS_META_MAX;
	r = gather(l, names, entity, &set, &own, from);
	if (!r)
		r = names_settings(names, &ret->settings);
	if (r)
		return r;
	if (decide)
		choose(l, names, entity, ret);
	r = relabel_apply(l->relabel, &set, from, &result);
	if (r < 0)
		return r;
	ret->n_left_out = result.n_left_out;
	ret->gave_up = ret->gave_up || r == RELABEL_GAVE_UP;
	if (r > 0 && decide && !ret->why[0])
		say_dropped(l, r, &result, ret);
	return keep_labels(&set, &own, ret);
}
