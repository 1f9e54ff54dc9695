// SPDX-License-Identifier: Apache-2.0
/*
 * A reader asks for an object, then for the objects that it points to, as they were copied. So the
 * search for a part begins at the part found last, and mostly ends there or one further.
 */
#include "runtimes/excerpt.h"

#include <string.h>

#include "base/cleanup.h"

/* The copy of the @n bytes at @addr; NULL: they are not in one part. */
static const uint8_t *find(struct excerpt *e, uint64_t addr, size_t n)
{
	for (size_t i = 0; i < e->n; i++) {
		const size_t at = (e->last + i) % e->n;
		const struct stack_dump_part *part = e->parts[at];
		const uint64_t off = addr - part->at;

		if (off > part->n || n > part->n - off)
			continue;
		e->last = at;
		return (const uint8_t *)(part + 1) + off;
	}
	return NULL;
}

static int read_ranges(struct memory *m, const struct memory_range *ranges, size_t n_ranges,
		       size_t *ret)
{
	struct excerpt *e = container_of(m, struct excerpt, memory);

	*ret = 0;
	for (size_t i = 0; i < n_ranges; i++) {
		const uint8_t *from = find(e, ranges[i].addr, ranges[i].n);

		if (!from)
			return 0;
		memcpy(ranges[i].to, from, ranges[i].n);
		*ret += ranges[i].n;
	}
	return 0;
}

static int check(struct memory *m)
{
	(void)m;
	return 0;
}

void excerpt_init(struct excerpt *ret, const uint8_t *bytes, size_t n, uint32_t what)
{
	const struct stack_dump_part *part;
	__u64 at = 0;

	*ret = (struct excerpt){.memory = {.read = read_ranges, .check = check}};
	while (ret->n < EXCERPT_PARTS_MAX && (part = stack_dump_next_part(bytes, n, &at)))
		if (part->what == what)
			ret->parts[ret->n++] = part;
}
