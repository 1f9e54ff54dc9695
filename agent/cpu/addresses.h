/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_CPU_ADDRESSES_H
#define PODPROF_CPU_ADDRESSES_H

/*
 * The distinct addresses of code in files, of many folds. The reports of a window ask for names
 * profile by profile, file by file, and each time wait for another thread. symbolizer_learn() asks
 * for all before. Runs on the symbolizer's thread.
 */

#include <stddef.h>

struct address;
struct fold;
struct symbolizer;

/* Distinct addresses, 16 bytes each in a table that is at most half full. A window of a busy node
 * has some 20,000. Reached: the reports ask for the names of the others. */
#define ADDRESSES_MAX (1u << 16)

/**
 * struct addresses - initialise with {0}
 * @slots: a table with linear probing, of @n_slots, a power of 2
 * @n:     addresses
 * @error: -ENOMEM of an addition; 0
 */
struct addresses {
	struct address *slots;
	size_t n_slots;
	size_t n;
	int error;
};

/* Of settled frames (fold_settle()). The fold must outlive addresses_learn(), which returns the
 * error. */
void addresses_add(struct addresses *a, const struct fold *fold);
/* Once, at the end: frees the table. Asks for nothing after a failed addition. 0 or -ENOMEM. */
int addresses_learn(struct addresses *a, struct symbolizer *symbolizer);

#endif
