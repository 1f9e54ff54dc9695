/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_SYMBOLIZE_CODETABLE_H
#define PODPROF_SYMBOLIZE_CODETABLE_H

/* The functions that a program compiles at run time, by address. The program reuses addresses, so a
 * newer function replaces the older ones, as far as their addresses overlap. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct code_range;
struct work_budget;

/* Ranges of a process, of 16 bytes each. A large Node.js service has 50,000 functions. Reached:
 * functions that the process compiles later have no name,
 * `podprof_perf_map_events_total{event="full"}` or `podprof_jitdump_events_total{event="full"}`. */
#define CODE_TABLE_RANGES_MAX (1u << 18)
/* Bytes of their names and details: 64 for each. Reached: the same. */
#define CODE_TABLE_NAMES_MAX  (16u << 20)
/* Bytes of a name. A name with the path of a script has 100. Reached: cut. */
#define CODE_TABLE_NAME_MAX   1024

/* 0 is success. */
enum code_table_outcome {
	CODE_TABLE_OK = 0,
	CODE_TABLE_FULL, /* a function is left out */
};

/**
 * struct code_function - a function, or what is left of it
 * @start:     run-time address
 * @size:      bytes; not 0
 * @name:      NUL-terminated
 * @details:   @n_details bytes of the caller's, kept with the name; only with struct
 *             code_table.has_details
 */
struct code_function {
	uint64_t start;
	uint32_t size;
	const char *name;
	const void *details;
	size_t n_details;
};

/**
 * struct code_table - ranges of addresses with names
 * @ranges: the first @n_settled ascending and disjoint, the others in the order of their addition
 * @names:  entries of the ranges
 */
struct code_table {
	bool has_details;
	struct code_range *ranges;
	size_t n;
	size_t n_settled;
	size_t cap;
	struct buf names;
};

/* For the caller's storage. */
void code_table_init(struct code_table *t, bool has_details);
void code_table_deinit(struct code_table *t);
/* Forgets all functions. */
void code_table_clear(struct code_table *t);

/* Adds the newest function. Copies @name, as far as the first NUL in @n_name bytes, and @f's
 * details; @f's name is not read. 0, CODE_TABLE_FULL or -ENOMEM. */
int code_table_add(struct code_table *t, const struct code_function *f, const char *name,
		   size_t n_name, struct work_budget *work);
/* Lets the newest functions win; code_table_find() sees the functions from then on. 0,
 * CODE_TABLE_FULL or -ENOMEM. */
int code_table_settle(struct code_table *t, struct work_budget *work);
/* The function at @pc. Strings are borrowed until the next change. False: none. */
bool code_table_find(const struct code_table *t, uint64_t pc, struct code_function *ret);
/* The newest function at @pc, also of those that are not settled: each of these is looked at. */
bool code_table_newest(const struct code_table *t, uint64_t pc, struct code_function *ret);
/* Bytes of memory. */
size_t code_table_bytes(const struct code_table *t);

#endif
