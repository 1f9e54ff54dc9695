/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_GOPROFILE_GOSTACK_H
#define PODPROF_GOPROFILE_GOSTACK_H

/* Converts stacks recorded by Go's profilers to locations of a profile, as runtime/pprof would
 * write them. */

#include <stddef.h>
#include <stdint.h>

struct gostack;
struct pprof;
struct stacksnap;
struct symbolizer;

/* The rules for the stacks of a kind of profile. */
enum gostack_rule {
	GOSTACK_HEAP,	  /* hides leading functions of the runtime */
	GOSTACK_PHYSICAL, /* mostly plain return addresses; cut at the runtime's limit after the
			     inlined functions are added */
	GOSTACK_WALKED,	  /* plain return addresses, including compiler-made functions, which are
			     hidden */
};

/* GOSTACK_PHYSICAL uses the runtime's own limit. The runtime records some frames more, and
 * skips some later. GODEBUG=profstackdepth may have raised the limit. Stacks longer than the sum
 * of both numbers prove this, and are not cut. */
#define GOSTACK_PHYSICAL_DEPTH 128
#define GOSTACK_PHYSICAL_MORE  7

/* Locations of a stack: the runtime's limit of 1026, and the functions added at the end.
 * Reached: the stack ends there. */
#define GOSTACK_LOCATIONS_MAX (1026 + 64)

struct gostack_stats {
	uint64_t n_places;  /* distinct return addresses */
	uint64_t n_unnamed; /* distinct return addresses without a function name */
};

/* Both are borrowed. 0 or -ENOMEM. */
int gostack_new(struct symbolizer *symbolizer, struct pprof *pprof, struct gostack **ret);
void gostack_free(struct gostack *b);

/* Name all addresses of @snap for gostack_locations(). @snap is borrowed until the next call. 0;
 * PPROF_FULL; -errno. */
int gostack_name(struct gostack *b, const struct stacksnap *snap);
/* The locations of a stack of the named @snap. 0; PPROF_FULL; -errno. */
int gostack_locations(struct gostack *b, const uint32_t *pcs, size_t n, enum gostack_rule rule,
		      uint32_t ret[GOSTACK_LOCATIONS_MAX], size_t *ret_n);

struct gostack_stats gostack_stats(const struct gostack *b);

#endif
