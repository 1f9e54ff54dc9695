// SPDX-License-Identifier: Apache-2.0
#include "support/hostspace.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "unwindtable/table.h"

/* Room for so many elements more, zeroed. The number of the first one, or -ENOMEM. */
static ssize_t add_elements(struct hostspace *s, size_t n)
{
	const size_t first = s->space.n_elements;
	struct table_element *more =
		reallocarray(s->elements, first + n, sizeof(struct table_element));

	if (!more)
		return -ENOMEM;
	memset(&more[first], 0, n * sizeof(*more));
	s->elements = more;
	s->space.elements = more;
	s->space.n_elements = first + n;
	return (ssize_t)first;
}

static int add_rules(struct hostspace *s, const struct table *t)
{
	const size_t n_rules = s->space.n_rules, n_ramps = s->space.n_ramps;
	struct unwind_rule *rules =
		reallocarray(s->rules, n_rules + t->n_rules + 1, sizeof(*rules));
	struct table_ramp *ramps;

	if (!rules)
		return -ENOMEM;
	s->rules = rules;
	s->space.rules = rules;
	ramps = reallocarray(s->ramps, n_ramps + t->n_ramps + 1, sizeof(*ramps));
	if (!ramps)
		return -ENOMEM;
	s->ramps = ramps;
	s->space.ramps = ramps;
	memcpy(&rules[n_rules], t->rules, t->n_rules * sizeof(*rules));
	for (size_t i = 0; i < t->n_ramps; i++) {
		ramps[n_ramps + i] = t->ramps[i];
		for (size_t k = 0; k < TABLE_RAMP_STEPS; k++)
			ramps[n_ramps + i].rules[k] += (uint16_t)n_rules;
	}
	s->space.n_rules += t->n_rules;
	s->space.n_ramps += t->n_ramps;
	return 0;
}

int hostspace_add_table(struct hostspace *s, const struct table *t)
{
	const uint16_t rule_base = (uint16_t)s->space.n_rules;
	const uint16_t ramp_base = (uint16_t)s->space.n_ramps;
	const size_t n = (t->n_bytes + TABLE_ELEMENT - 1) / TABLE_ELEMENT;
	struct table_exe exe = t->exe;
	uint8_t *blob;
	ssize_t first;
	int r;

	if (s->n_exes == HOSTSPACE_EXES)
		return 0;
	first = add_elements(s, n);
	if (first < 0)
		return (int)first;
	r = add_rules(s, t);
	if (r < 0)
		return r;
	blob = s->elements[first].bytes;
	memcpy(blob, t->blob, t->n_bytes);
	for (uint32_t i = 0; i < t->n_ids; i++) {
		uint16_t id;

		memcpy(&id, blob + exe.ids + 2 * i, sizeof(id));
		id = (uint16_t)(id + (id & TABLE_RAMP ? ramp_base : rule_base));
		memcpy(blob + exe.ids + 2 * i, &id, sizeof(id));
	}
	exe.element += (uint32_t)first;
	exe.tail += (uint32_t)first * (TABLE_ELEMENT / TABLE_CHUNK);
	s->exes[s->n_exes] = exe;
	return (int)s->n_exes++;
}

void hostspace_map(struct hostspace *s, size_t i, const struct process_mapping *mapping)
{
	const size_t per = PROCESS_MAPPINGS_PER_ELEMENT;

	memcpy(&s->elements[i / per].bytes[i % per * sizeof(*mapping)], mapping, sizeof(*mapping));
}

int hostspace_init(struct hostspace *s, size_t n_mappings)
{
	const size_t per = PROCESS_MAPPINGS_PER_ELEMENT;

	*s = (struct hostspace){.n_exes = 1, .n_mappings = (uint32_t)n_mappings};
	return add_elements(s, n_mappings / per + 1) < 0 ? -ENOMEM : 0;
}

void hostspace_deinit(struct hostspace *s)
{
	free(s->elements);
	free(s->rules);
	free(s->ramps);
}
