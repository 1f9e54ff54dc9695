// SPDX-License-Identifier: Apache-2.0
#include "pprof/tables.h"

#include <string.h>

static bool type_named(const struct pprof_tables *t, const char *name, size_t *ret)
{
	for (size_t i = 0; i < t->n_types; i++) {
		if (strcmp(t->strings[t->types[i].type], name) == 0) {
			*ret = i;
			return true;
		}
	}
	return false;
}

bool tables_type(const struct pprof_tables *t, const char *name, size_t *ret)
{
	if (name)
		return type_named(t, name, ret);
	if (!t->n_types)
		return false;
	if (!t->default_type || !type_named(t, t->strings[t->default_type], ret))
		*ret = t->n_types - 1;
	return true;
}

int64_t tables_total(const struct pprof_tables *t, size_t type)
{
	int64_t total = 0;

	for (size_t i = 0; i < t->n_samples; i++)
		tables_add(&total, t->values[i * t->n_types + type]);
	return total;
}
