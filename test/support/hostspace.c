// SPDX-License-Identifier: Apache-2.0
#include "support/hostspace.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "unwindtable/table.h"

/* Room for so many pages more, zeroed. The number of the first one, or -ENOMEM. */
static ssize_t add_table_pages(struct hostspace *s, size_t n)
{
	const size_t first = s->space.n_table_pages;
	struct table_page *more =
		reallocarray(s->table_pages, first + n, sizeof(struct table_page));

	if (!more)
		return -ENOMEM;
	memset(&more[first], 0, n * sizeof(*more));
	s->table_pages = more;
	s->space.table_pages = more;
	s->space.n_table_pages = first + n;
	return (ssize_t)first;
}

static int add_rules(struct hostspace *s, const struct table *t)
{
	const size_t n_rules = s->space.n_rules, n_rule_runs = s->space.n_rule_runs;
	struct unwind_rule *rules =
		reallocarray(s->rules, n_rules + t->n_rules + 1, sizeof(*rules));
	struct table_rule_run *rule_runs;

	if (!rules)
		return -ENOMEM;
	s->rules = rules;
	s->space.rules = rules;
	rule_runs =
		reallocarray(s->rule_runs, n_rule_runs + t->n_rule_runs + 1, sizeof(*rule_runs));
	if (!rule_runs)
		return -ENOMEM;
	s->rule_runs = rule_runs;
	s->space.rule_runs = rule_runs;
	memcpy(&rules[n_rules], t->rules, t->n_rules * sizeof(*rules));
	for (size_t i = 0; i < t->n_rule_runs; i++) {
		rule_runs[n_rule_runs + i] = t->rule_runs[i];
		for (size_t k = 0; k < TABLE_RULE_RUN_STEPS; k++)
			rule_runs[n_rule_runs + i].rules[k] += (uint16_t)n_rules;
	}
	s->space.n_rules += t->n_rules;
	s->space.n_rule_runs += t->n_rule_runs;
	return 0;
}

int hostspace_add_table(struct hostspace *s, const struct table *t)
{
	static uint32_t version; /* of any table of this program */
	const uint16_t rule_base = (uint16_t)s->space.n_rules;
	const uint16_t rule_run_base = (uint16_t)s->space.n_rule_runs;
	const size_t n = (t->n_bytes + TABLE_PAGE_BYTES - 1) / TABLE_PAGE_BYTES;
	struct table_exe exe = t->exe;
	uint8_t *table_image;
	ssize_t first;
	int r;

	if (s->n_exes == HOSTSPACE_EXES)
		return 0;
	first = add_table_pages(s, n);
	if (first < 0)
		return (int)first;
	r = add_rules(s, t);
	if (r < 0)
		return r;
	table_image = s->table_pages[first].bytes;
	memcpy(table_image, t->table_image, t->n_bytes);
	for (uint32_t i = 0; i < t->n_ids; i++) {
		uint16_t id;

		memcpy(&id, table_image + exe.ids + 2 * i, sizeof(id));
		id = (uint16_t)(id + (id & TABLE_RULE_RUN ? rule_run_base : rule_base));
		memcpy(table_image + exe.ids + 2 * i, &id, sizeof(id));
	}
	exe.table_page += (uint32_t)first;
	exe.tail += (uint32_t)first * (TABLE_PAGE_BYTES / TABLE_SUBPAGE_BYTES);
	exe.version = ++version;
	s->exes[s->n_exes] = exe;
	return (int)s->n_exes++;
}

void hostspace_map(struct hostspace *s, size_t i, const struct process_mapping *mapping)
{
	const size_t per = PROCESS_MAPPINGS_PER_PAGE;

	memcpy(&s->table_pages[i / per].bytes[i % per * sizeof(*mapping)], mapping,
	       sizeof(*mapping));
}

int hostspace_init(struct hostspace *s, size_t n_mappings)
{
	const size_t per = PROCESS_MAPPINGS_PER_PAGE;

	*s = (struct hostspace){.n_exes = 1, .n_mappings = (uint32_t)n_mappings};
	return add_table_pages(s, n_mappings / per + 1) < 0 ? -ENOMEM : 0;
}

void hostspace_deinit(struct hostspace *s)
{
	free(s->table_pages);
	free(s->rules);
	free(s->rule_runs);
}
