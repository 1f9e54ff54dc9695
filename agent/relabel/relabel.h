/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_RELABEL_RELABEL_H
#define PODPROF_RELABEL_RELABEL_H

/*
 * Relabelling as in Prometheus: a list of rules that is applied to a label set, one after the
 * other. A rule sets labels, removes them, or drops the whole set. docs/relabelling.md says what
 * the rules are and where they differ from Prometheus'.
 */

#include <stddef.h>

#include "base/labels.h"
#include "base/nsec.h"

struct json_t;

/* Rules of one list; long ones have 40. Reached: wrong usage. */
#define RELABEL_RULES_MAX	256
/* Bytes of a label's name that a rule may make; a pod's longest has 317 of its own. Reached: left
 * out. */
#define RELABEL_NAME_MAX	1024
/* Bytes of a message about rules. Reached: cut. */
#define RELABEL_ERROR_MAX	400
/* Bytes of a rule as it is told to people. Reached: cut. */
#define RELABEL_DESCRIPTION_MAX 200

/* CPU time of relabel_apply(), nanoseconds: forty rules over the meta labels of a usual pod take a
 * thousandth of it. A match may take 20 milliseconds more (pattern.h). Reached:
 * `podprof_relabel_timeouts_total`: the entity is left out. */
#define RELABEL_CPU_NS_MAX (50 * NSEC_PER_MSEC)

struct relabel_error {
	char text[RELABEL_ERROR_MAX];
};

enum relabel_outcome {
	RELABEL_KEPT = 0,
	RELABEL_DROPPED, /* by a rule that says so */
	RELABEL_GAVE_UP, /* dropped, because a pattern took too long with one of the values, or all
			    rules together did */
	RELABEL_BAD,	 /* not read; the error says why */
};

/* "kept", "dropped", "gave_up", "bad". */
const char *relabel_outcome_name(int outcome);

/* A list of rules; never changes. */
struct relabel;

/**
 * relabel_new() - read a list of rules
 * @configs: an array of objects with the keys of Prometheus' relabel_configs; NULL: no rules
 *
 * Return: 0; RELABEL_BAD with "relabel_configs[N].KEY: what is wrong"; -ENOMEM.
 */
int relabel_new(const struct json_t *configs, struct relabel **ret,
		struct relabel_error *ret_error);
void relabel_free(struct relabel *relabel);
size_t relabel_n_rules(const struct relabel *relabel);
/* Rule @i for people: "relabel_configs[3] (drop, source_labels namespace, regex kube-.*)". */
void relabel_describe(const struct relabel *relabel, size_t i, char ret[RELABEL_DESCRIPTION_MAX]);

/**
 * struct relabel_result - what happened, besides the outcome
 * @rule:	of RELABEL_DROPPED and RELABEL_GAVE_UP: the number of the rule, from 0
 * @n_left_out: labels that were not set: the set was full, or a name was none
 */
struct relabel_result {
	size_t rule;
	size_t n_left_out;
};

/**
 * relabel_apply() - apply the rules
 * @relabel: NULL: none
 * @labels:  changed in place, also by the rules before the one that drops it. Has to have room for
 *           what rules add on the way: {.max = LABELS_META_MAX}. Labels that begin with "__" are
 *           still there at the end.
 * @origins: for each label that a rule has set, "relabel_configs[N]" of the last one; other names
 * in it are left alone, but those of labels that a rule removes are removed. NULL: not wanted
 *
 * Return: RELABEL_KEPT, RELABEL_DROPPED, RELABEL_GAVE_UP; -ENOMEM.
 */
int relabel_apply(const struct relabel *relabel, struct labels *labels, struct labels *origins,
		  struct relabel_result *ret) __attribute__((warn_unused_result));

#endif
