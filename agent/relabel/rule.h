/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_RELABEL_RULE_H
#define PODPROF_RELABEL_RULE_H

/* One relabelling rule of Prometheus' relabel_configs. */

#include <stddef.h>
#include <stdint.h>

#include "relabel/pattern.h"
#include "relabel/relabel.h"
#include "relabel/template.h"

struct json_t;

enum rule_action {
	RULE_REPLACE,
	RULE_KEEP,
	RULE_DROP,
	RULE_KEEPEQUAL,
	RULE_DROPEQUAL,
	RULE_HASHMOD,
	RULE_LOWERCASE,
	RULE_UPPERCASE,
	RULE_LABELMAP,
	RULE_LABELDROP,
	RULE_LABELKEEP,
	RULE_ACTION_MAX,
};

const char *rule_action_name(enum rule_action action);

/* Names in source_labels; people use up to five. Reached: wrong usage. */
#define RULE_SOURCES_MAX   32
/* Bytes of a separator, usually one. Reached: wrong usage. */
#define RULE_SEPARATOR_MAX 64

/**
 * struct rule - one rule, complete with the defaults
 * @target: of RULE_REPLACE; the other actions use @target_label unchanged
 *
 * Owns everything.
 */
struct rule {
	enum rule_action action;
	char *sources[RULE_SOURCES_MAX];
	size_t n_sources;
	char *separator;
	struct pattern *regex;
	char *target_label;
	struct template *target;
	struct template *replacement;
	uint64_t modulus;
};

/**
 * rule_read() - a rule from its JSON object
 * @ret: must be {0}; needs rule_deinit() after every result
 *
 * Return: 0; RELABEL_BAD with "KEY: REASON", or a sentence about the whole object; -ENOMEM.
 */
int rule_read(const struct json_t *object, struct rule *ret, struct relabel_error *ret_error);
void rule_deinit(struct rule *rule);

#endif
