/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_CMD_INSPECT_PROFILE_H
#define PODPROF_CMD_INSPECT_PROFILE_H

/* What 'podprof inspect profile' shows of a profile: gathered in inspect_profile.c, printed by one
 * file for each form. */

#include <stddef.h>
#include <stdint.h>

#include "pprof/flame.h"
#include "pprof/tables.h"

/* One different label: of a text or, where @str is 0, of a number. Strings are indexes. */
struct profile_label {
	uint32_t key, str, unit;
	int64_t num;
	size_t n_samples; /* that have it */
};

/**
 * struct profile_view - everything that is printed; borrows
 * @flat, @cum: functions in either order, @n_functions of them are shown
 * @labels:     sorted, those of one key together
 */
struct profile_view {
	const struct pprof_tables *t;
	const struct flame *flame;
	struct flame_function *flat, *cum;
	size_t n_functions;
	struct profile_label *labels;
	size_t n_labels;
};

/* 0 or -ENOMEM. */
int inspect_profile_json(const struct profile_view *v);
/* For a terminal: texts of the profile lose their control characters. */
void inspect_profile_text(const struct profile_view *v);

#endif
