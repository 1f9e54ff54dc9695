/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_UNWINDTABLE_EARLY_RULES_H
#define PODPROF_UNWINDTABLE_EARLY_RULES_H

/*
 * Rules of single addresses in images whose table is not made yet. The table of a large program
 * takes a tenth of a second of CPU time, and a rule by the linker's index some microseconds. So
 * stack dumps of a large program do not wait for its table.
 *
 * An early rule equals the table's rule. Small images have no early rules: their tables are made
 * soon, and have rows that .eh_frame lacks.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared/unwind.h"

struct early_rules;
struct image;
struct loop;
struct metric_sink;

/* Addresses of one request, a millisecond. Reached: a later walk of the dump requests the others.
 */
#define EARLY_RULES_BATCH_MAX 1024

/**
 * struct early_rules_opts - borrowed pointers must outlive the rules
 * @ready: called when the rules of a request are known, or will not be; with the number of requests
 *         of the image that have ended
 */
struct early_rules_opts {
	struct loop *loop;
	void (*ready)(void *ctx, uint16_t number, uint32_t round);
	void *ctx;
};

int early_rules_new(const struct early_rules_opts *opts, struct early_rules **ret);
/* Ends the request in progress within milliseconds; abandons it if the file blocks. */
void early_rules_free(struct early_rules *x);

/* The rule at @vaddr of the image with @number, if it is known and has a rule. */
bool early_rules_find(const struct early_rules *x, uint16_t number, uint64_t vaddr,
		      struct unwind_rule *ret);
/* Whether the image can have early rules. @image is borrowed; the first call takes a reference. */
bool early_rules_serve(struct early_rules *x, uint16_t number, struct image *image);
/**
 * early_rules_want() - request the rules of some addresses
 * @owner:  of the process (base/share.h): the addresses count for its share
 * @number: of an image for which early_rules_serve() was true
 * @vaddrs: @n addresses in any order; known addresses are left out
 *
 * @ret_more: set if there was no room for all addresses: request them again after the round
 *
 * Return: the round of the image's requests after which the rules of these addresses are known; 0:
 * no rule of these addresses is on the way.
 */
uint32_t early_rules_want(struct early_rules *x, uint64_t owner, uint16_t number,
			  const uint64_t *vaddrs, size_t n, bool *ret_more);
/* The image has a table, or its number is released. */
void early_rules_drop(struct early_rules *x, uint16_t number);
/* Drops the numbers outside of @used, an array of @n entries by number. */
void early_rules_sweep(struct early_rules *x, const bool *used, size_t n);
/* A metric_collect_fn: podprof_unwind_early_rules. */
void early_rules_collect(void *x, struct metric_sink *sink);

#endif
