/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_UNWINDTABLE_TABLEMAPS_H
#define PODPROF_UNWINDTABLE_TABLEMAPS_H

/* The kernel maps of bpf/lib/table_maps.bpf.h, mapped. */

#include "unwindtable/tables.h"

struct tablemaps;

/* Descriptors of the loaded object's maps; borrowed, must stay open. */
struct tablemaps_fds {
	int slabs;
	int exes;
	int uses;
	int rules;
	int rule_runs;
};

/* 0 or -errno. */
int tablemaps_new(const struct tablemaps_fds *fds, struct tablemaps **ret);
/* Invalidates the memory below. The kernel's maps stay as they are. */
void tablemaps_free(struct tablemaps *maps);

/* For tables_new(). */
struct tables_memory tablemaps_memory(struct tablemaps *maps);

/* Bytes of the values of all maps with a fixed size. */
size_t tablemaps_fixed_bytes(void);

#endif
