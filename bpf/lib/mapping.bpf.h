/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PODPROF_BPF_LIB_MAPPING_BPF_H
#define PODPROF_BPF_LIB_MAPPING_BPF_H

/*
 * Lookup of the mapping of a pc (shared/process.h): first the page of the table, then the entry in
 * the page. As in table.bpf.h, data selects by products, not by branches.
 */

#include "lib/table.bpf.h"
#include "shared/process.h"

/* log2 of the number of pages, and of the entries in a page. */
#define MAPPING_PAGE_STEPS  4
#define MAPPING_ENTRY_STEPS 8

/* The mapping found last, and mostly also the next. All zeros: none. */
struct mapping {
	__u64 start;
	__u64 bytes;
	__u64 bias; /* pc - bias is the ELF's vaddr */
	__u64 exe;  /* 0: code without an image */
};

/* The two words of an entry, in the layout of struct process_mapping. */
#define MAPPING_START(word)   ((word) & ((1ull << 40) - 1))
#define MAPPING_N_PAGES(word) ((word) >> 40)
#define MAPPING_BIAS(word)    ((__u64)((__s64)((word) << 16) >> 16))
#define MAPPING_EXE(word)     ((word) >> 48)

TABLE_INLINE __u64 mapping_word(const struct table_page *e, __u64 entry, __u64 word)
{
	return e->words[(entry * 2 + word) & (TABLE_PAGE_BYTES / 8 - 1)];
}

/* Number of the page, of @n pages from @first, with the last start at or below @pc_page. */
TABLE_INLINE __u64 mapping_page(const struct table_space *space, __u64 first, __u64 n,
				__u64 pc_page)
{
	for (int i = 0; i < MAPPING_PAGE_STEPS; i++) {
		__u64 half = n >> 1;
		const struct table_page *e = table_page(space, first + half);

		if (!e)
			break;
		first += half * table_below(MAPPING_START(mapping_word(e, 0, 0)), pc_page + 1);
		n -= half;
	}
	return first;
}

/* The entry, of @n entries from @first in @e, with the last start at or below @pc_page; @first if
 * none. */
TABLE_INLINE __u64 mapping_entry(const struct table_page *e, __u64 first, __u64 n, __u64 pc_page)
{
	for (int i = 0; i < MAPPING_ENTRY_STEPS; i++) {
		__u64 half = n >> 1, start;

		if (!half)
			break;
		start = MAPPING_START(mapping_word(e, first + half, 0));
		first += half * table_below(start, pc_page + 1);
		n -= half;
	}
	return first;
}

/* Find @pc in the table of @n entries from @first. Returns 0 and *@m, or -1 with *@m untouched. */
TABLE_INLINE int mapping_find(const struct table_space *space, __u64 first, __u64 n, __u64 pc,
			      struct mapping *m)
{
	const __u64 per = PROCESS_MAPPINGS_PER_PAGE;
	__u64 number = first / per, pc_page = pc >> PROCESS_PAGE_SHIFT, word;
	const struct table_page *e;

	if (!n)
		return -1;
	if (n > per) {
		number = mapping_page(space, number, (n + per - 1) / per, pc_page);
		n -= (number - first / per) * per;
		n = table_select(table_below(per, n), per, n);
		first = 0;
	}
	e = table_page(space, number);
	if (!e)
		return -1;
	first = mapping_entry(e, first, n, pc_page);
	word = mapping_word(e, first, 0);
	if (pc_page - MAPPING_START(word) >= MAPPING_N_PAGES(word))
		return -1;
	m->start = MAPPING_START(word) << PROCESS_PAGE_SHIFT;
	m->bytes = MAPPING_N_PAGES(word) << PROCESS_PAGE_SHIFT;
	word = mapping_word(e, first, 1);
	m->bias = MAPPING_BIAS(word) << PROCESS_PAGE_SHIFT;
	m->exe = MAPPING_EXE(word);
	return 0;
}

#endif
