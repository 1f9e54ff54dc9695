/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_TEST_COMPLEXITY_GROWTH_H
#define PODPROF_TEST_COMPLEXITY_GROWTH_H

/*
 * The work of each parser of foreign bytes grows at most like n log n. A row is a parser and the
 * worst input for its algorithm: equal keys, reverse order, deep nesting, one long name. The input
 * is doubled, and the counted work (count.h) may grow by GROWTH_MAX for each doubling; nested loops
 * would grow by 4.
 *
 * Inputs stay below the ceilings of the parser, so a ceiling does not hide a bad algorithm: the
 * last doubling has to grow by GROWTH_MIN. A few inputs are quadratic by their form, as many
 * references to one long part. Only a ceiling ends their work, and these rows test the ceiling:
 * beyond it the work no longer grows.
 *
 * A row is in the file of the parser's folder:
 *
 *	test_elf.c        elf
 *	test_symbolize.c  symbolize, without DWARF
 *	test_dwarf.c      symbolize/dwarf*
 *	test_unwind.c     unwind, codescan, unwindtable
 *	test_runtimes.c   runtimes
 *	test_go.c         gofile, goheap
 *	test_pprof.c      pprof, cpu
 *	test_node.c       procmap, discovery, profile: what the kernel tells of processes
 *	test_text.c       metadata, relabel, export, server, doctor: what peers and files tell
 *
 * Readers of a fixed number of bytes have no row, because there is nothing to double: gopacer, the
 * layouts of Python, HotSpot and V8, records of single events.
 */

#include <stddef.h>
#include <stdint.h>

enum growth_kind {
	GROWS,
	ENDS, /* at a ceiling, which the smallest size is above */
};

struct growth {
	const char *name; /* the parser's file, and the input */
	/* Makes the input of size @n. Returns the counted work of the parser. */
	uint64_t (*run)(size_t n);
	size_t n; /* the smallest size */
	enum growth_kind kind;
};

/* Runs all rows. Returns the status of the program. */
int growth_main(const struct growth *rows, size_t n);

#endif
