/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_TEST_SUPPORT_HOSTSPACE_H
#define PODPROF_TEST_SUPPORT_HOSTSPACE_H

/* One process's mappings and its images' tables as the kernel's maps would have them, in plain
 * arrays, for the walker compiled for the host. */

#include <stddef.h>
#include <stdint.h>

#include "lib/table_host.h"
#include "shared/process.h"

struct table;

#define HOSTSPACE_EXES 128

/**
 * struct hostspace - {0} is not one, see hostspace_init()
 * @space:      first, since the walker's accessors get its address
 * @uses:       for each executable, how often the walker came upon it
 * @n_exes:     number 0, which is none, included
 * @n_mappings: the first is entry 0 of page 0
 */
struct hostspace {
	struct table_space space;
	struct table_page *table_pages;
	struct unwind_rule *rules;
	struct table_rule_run *rule_runs;
	struct table_exe exes[HOSTSPACE_EXES];
	uint64_t uses[HOSTSPACE_EXES];
	size_t n_exes;
	uint32_t n_mappings;
};

/* With so many mappings, which are to be set in ascending order. 0 or -ENOMEM. */
int hostspace_init(struct hostspace *s, size_t n_mappings);
void hostspace_deinit(struct hostspace *s);
void hostspace_map(struct hostspace *s, size_t i, const struct process_mapping *mapping);
/* Copies a table. The executable's number; 0 if there are too many; -ENOMEM. */
int hostspace_add_table(struct hostspace *s, const struct table *table);

/* What walk_exe() and walk_used() are to do. */
static inline const struct table_exe *hostspace_exe(const struct hostspace *s, uint32_t exe)
{
	return exe < s->n_exes ? &s->exes[exe] : NULL;
}

static inline void hostspace_used(struct hostspace *s, uint32_t exe, uint64_t n_frames)
{
	if (exe < s->n_exes)
		s->uses[exe] += n_frames;
}

#endif
