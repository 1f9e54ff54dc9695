/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_DISCOVERY_FAMILY_H
#define PODPROF_DISCOVERY_FAMILY_H

/* Processes and whom they have made: what is a child of one that is in the family comes into it. */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct family;
struct root;

int family_new(struct family **ret);
void family_free(struct family *f);

/* True if it is new. */
bool family_add(struct family *f, pid_t pid);

/**
 * family_grow() - look at all processes and take in the descendants of those in the family
 * @fn: called for each new one
 *
 * Who makes a process while this looks may be missed: call it again until it finds nobody.
 *
 * Return: how many are new; -errno.
 */
int family_grow(struct family *f, const struct root *proc, void (*fn)(void *ctx, pid_t pid),
		void *ctx);

#endif
