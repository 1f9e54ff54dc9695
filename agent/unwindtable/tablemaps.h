/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_UNWINDTABLE_TABLEMAPS_H
#define PODPROF_UNWINDTABLE_TABLEMAPS_H

/* The kernel maps of bpf/lib/table_maps.bpf.h, mapped. */

#include "unwindtable/tables.h"

struct tablemaps;

/* Descriptors of the loaded object's maps; borrowed, they must stay open. */
struct tablemaps_fds {
	int slabs;
	int exes;
	int uses;
	int rules;
	int rule_runs;
};

/* 0 or -errno. */
int tablemaps_new(const struct tablemaps_fds *fds, struct tablemaps **ret);
/* The memory below must not be used any more. The kernel's maps stay as they are. */
void tablemaps_free(struct tablemaps *maps);

/* For tables_new(). */
struct tables_memory tablemaps_memory(struct tablemaps *maps);

/* Bytes of the maps that have one size, as their values take them. */
size_t tablemaps_fixed_bytes(void);

#endif
