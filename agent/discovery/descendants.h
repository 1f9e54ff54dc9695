/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_DISCOVERY_DESCENDANTS_H
#define PODPROF_DISCOVERY_DESCENDANTS_H

/* A set of processes with all their descendants. */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct descendants;
struct root;

int descendants_new(struct descendants **ret);
void descendants_free(struct descendants *d);

/* True if the process is new to the set. */
bool descendants_add(struct descendants *d, pid_t pid);

/**
 * descendants_grow() - read all processes and add the descendants of the set
 * @fn: called for each new process
 *
 * A fork during the call can be missed: repeat the call until it returns 0.
 *
 * Return: number of new processes; -errno.
 */
int descendants_grow(struct descendants *d, const struct root *proc,
		     void (*fn)(void *ctx, pid_t pid), void *ctx);

#endif
