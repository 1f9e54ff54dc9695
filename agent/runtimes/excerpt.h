/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_RUNTIMES_EXCERPT_H
#define PODPROF_RUNTIMES_EXCERPT_H

/* The excerpt of a stack dump (bpf/shared/stack_dump.h) as the memory of its process, which may
 * have ended. */

#include <stddef.h>
#include <stdint.h>

#include "procmap/memory.h"
#include "shared/stack_dump.h"

/* Parts of an excerpt: as many heads as fit. Reached: cannot happen. */
#define EXCERPT_PARTS_MAX (STACK_DUMP_EXCERPT_BYTES / sizeof(struct stack_dump_part))

/**
 * struct excerpt - parts by address, borrowed
 * @memory: reads succeed inside of a part
 */
struct excerpt {
	struct memory memory;
	const struct stack_dump_part *parts[EXCERPT_PARTS_MAX];
	size_t n;
};

/* @ret has the parts of the kind @what in the @n bytes, aligned to 8, up to a malformed one. */
void excerpt_init(struct excerpt *ret, const uint8_t *bytes, size_t n, uint32_t what);

#endif
