/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_DISCOVERY_DESCENDANTS_H
#define PODPROF_DISCOVERY_DESCENDANTS_H

/* Processes and whom they have made: what is a child of one that is in the set comes into it. */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct descendants;
struct root;

int descendants_new(struct descendants **ret);
void descendants_free(struct descendants *d);

/* True if it is new. */
bool descendants_add(struct descendants *d, pid_t pid);

/**
 * descendants_grow() - look at all processes and take in the descendants of those in the set
 * @fn: called for each new one
 *
 * Who makes a process while this looks may be missed: call it again until it finds nobody.
 *
 * Return: how many are new; -errno.
 */
int descendants_grow(struct descendants *d, const struct root *proc,
		     void (*fn)(void *ctx, pid_t pid), void *ctx);

#endif
