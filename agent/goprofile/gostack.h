/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_GOPROFILE_GOSTACK_H
#define PODPROF_GOPROFILE_GOSTACK_H

/* Stacks as Go's profilers have recorded them, to locations of a profile as runtime/pprof would
 * write them. */

#include <stddef.h>
#include <stdint.h>

struct gostack;
struct pprof;
struct stacksnap;
struct symbolizer;

/* What is special about the stacks of one kind of profile. */
enum gostack_rule {
	GOSTACK_HEAP,	  /* leading functions of the runtime are hidden */
	GOSTACK_PHYSICAL, /* mostly return addresses alone, cut at the runtime's limit once the
			   * inlined functions are put in */
	GOSTACK_WALKED,	  /* return addresses alone, with what the compiler made, which is hidden */
};

/* The limit of GOSTACK_PHYSICAL is the runtime's own, which has room for some frames more when it
 * records, since it skips some. GODEBUG=profstackdepth may have raised it, which shows in stacks
 * that are longer than both together: these are not cut. */
#define GOSTACK_PHYSICAL_DEPTH 128
#define GOSTACK_PHYSICAL_MORE  7

/* Locations of one stack: the runtime's limit of 1026, and the functions put in at its end.
 * Reached: the stack ends there. */
#define GOSTACK_LOCATIONS_MAX (1026 + 64)

struct gostack_stats {
	uint64_t n_places;  /* distinct return addresses */
	uint64_t n_unnamed; /* of them without a function name */
};

/* Both are borrowed. 0 or -ENOMEM. */
int gostack_new(struct symbolizer *symbolizer, struct pprof *pprof, struct gostack **ret);
void gostack_free(struct gostack *b);

/* Name all that is in @snap, whose stacks may be asked for then, until the next call; borrowed as
 * long. 0; PPROF_FULL; -errno. */
int gostack_name(struct gostack *b, const struct stacksnap *snap);
/* One stack of it. 0; PPROF_FULL; -errno. */
int gostack_locations(struct gostack *b, const uint32_t *pcs, size_t n, enum gostack_rule rule,
		      uint32_t ret[GOSTACK_LOCATIONS_MAX], size_t *ret_n);

struct gostack_stats gostack_stats(const struct gostack *b);

#endif
