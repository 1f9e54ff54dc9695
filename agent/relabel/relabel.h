/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_RELABEL_RELABEL_H
#define PODPROF_RELABEL_RELABEL_H

/*
 * Relabelling as in Prometheus: a list of rules for a label set, applied in order. A rule sets
 * labels, removes labels, or drops the whole set. docs/relabelling.md describes the rules and their
 * differences from Prometheus'.
 */

#include <stddef.h>

#include "base/labels.h"
#include "base/nsec.h"

struct json_t;

/* Rules of one list; long ones have 40. Reached: wrong usage. */
#define RELABEL_RULES_MAX	256
/* Bytes of the name of a label from a rule; the longest name of a pod's facts has 317. Reached:
 * left out. */
#define RELABEL_NAME_MAX	1024
/* Bytes of a message about rules. Reached: cut. */
#define RELABEL_ERROR_MAX	400
/* Bytes of the description of a rule for people. Reached: cut. */
#define RELABEL_DESCRIPTION_MAX 200

/* CPU time of relabel_apply(), nanoseconds: forty rules over the meta labels of a usual pod take a
 * thousandth of it. The last match may take 50 milliseconds more (PATTERN_WORK_MAX).
 * Reached: `podprof_relabel_timeouts_total`: the entity is left out. */
#define RELABEL_CPU_NS_MAX (50 * NSEC_PER_MSEC)

struct relabel_error {
	char text[RELABEL_ERROR_MAX];
};

enum relabel_outcome {
	RELABEL_KEPT = 0,
	RELABEL_DROPPED, /* by the action of a rule */
	RELABEL_GAVE_UP, /* dropped: one match was too much work, or all rules took too long */
	RELABEL_BAD,	 /* not read; the error tells the reason */
};

/* "kept", "dropped", "gave_up", "bad". */
const char *relabel_outcome_name(int outcome);

/* A list of rules; immutable. */
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
 * struct relabel_result - details of the outcome
 * @rule:	of RELABEL_DROPPED and RELABEL_GAVE_UP: the number of the rule, from 0
 * @n_left_out: labels not set, because the set was full or the name was wrong
 */
struct relabel_result {
	size_t rule;
	size_t n_left_out;
};

/**
 * relabel_apply() - apply the rules
 * @relabel: NULL: none
 * @labels:  changed in place, also by the rules before a drop. Needs room for temporary labels of
 *           the rules: {.max = LABELS_META_MAX}. Labels with "__" in front stay.
 * @origins: for each label of a rule, "relabel_configs[N]" of the last one; without the labels that
 *           a rule removed. Other names are unchanged. NULL: not wanted
 *
 * Return: RELABEL_KEPT, RELABEL_DROPPED, RELABEL_GAVE_UP; -ENOMEM.
 */
int relabel_apply(const struct relabel *relabel, struct labels *labels, struct labels *origins,
		  struct relabel_result *ret) __attribute__((warn_unused_result));

#endif
