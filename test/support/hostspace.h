/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_TEST_SUPPORT_HOSTSPACE_H
#define PODPROF_TEST_SUPPORT_HOSTSPACE_H

/* The mappings of a process and the tables of the images, laid out as in the kernel's maps, in
 * plain arrays, for the walker compiled for the host. */

#include <stddef.h>
#include <stdint.h>

#include "lib/table_host.h"
#include "shared/process.h"

struct table;

#define HOSTSPACE_EXES 128

/**
 * struct hostspace - {0} is invalid, see hostspace_init()
 * @space:      first, because the walker's accessors receive the address of this member
 * @uses:       for each executable, number of frames the walker found there
 * @n_exes:     including number 0 (none)
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

/* With @n_mappings mappings; the caller sets them in ascending order. 0 or -ENOMEM. */
int hostspace_init(struct hostspace *s, size_t n_mappings);
void hostspace_deinit(struct hostspace *s);
void hostspace_map(struct hostspace *s, size_t i, const struct process_mapping *mapping);
/* Copies a table. The executable's number; 0 if there are too many; -ENOMEM. */
int hostspace_add_table(struct hostspace *s, const struct table *table);

/* The bodies of walk_exe() and walk_used(). */
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
