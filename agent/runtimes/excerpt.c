// SPDX-License-Identifier: Apache-2.0
/*
 * Parts are sorted by address. A part that another one covers may not be found: the kernel makes
 * parts of objects, which do not overlap in an honest process.
 */
#include "runtimes/excerpt.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

/* The copy of the @n bytes at @addr; NULL: they are not in one part. */
static const uint8_t *find(const struct excerpt *e, uint64_t addr, size_t n)
{
	size_t low = 0,
	       high = e->n; /* parts before @low are not behind @addr, those from @high on are */
	const struct stack_dump_part *part;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (e->parts[middle]->at <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low)
		return NULL;
	part = e->parts[low - 1];
	if (addr - part->at > part->n || n > part->n - (addr - part->at))
		return NULL;
	return (const uint8_t *)(part + 1) + (addr - part->at);
}

/* Of two parts at one address the longer one is found. */
static int compare(const void *a, const void *b)
{
	const struct stack_dump_part *p = *(const struct stack_dump_part *const *)a;
	const struct stack_dump_part *q = *(const struct stack_dump_part *const *)b;

	if (p->at != q->at)
		return p->at < q->at ? -1 : 1;
	return p->n < q->n ? -1 : p->n > q->n;
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
	if (ret->n)
		qsort(ret->parts, ret->n, sizeof(ret->parts[0]), compare);
}
