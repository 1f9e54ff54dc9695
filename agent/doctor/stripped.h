/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_DOCTOR_STRIPPED_H
#define PODPROF_DOCTOR_STRIPPED_H

/* Programs whose static functions have no names: stripped, and without a debug file. */

#include <stddef.h>

#include "base/file_id.h"

struct findings;
struct maps_entry;
struct pid_id;
struct probe_results;
struct root;

/* Programs looked at (READING_PROCESSES_MAX). Reached: the others are not. */
#define STRIPPED_PROGRAMS_MAX 64
/* Bytes of the example's path with its NUL. Reached: cut. */
#define STRIPPED_PATH_MAX     128

/**
 * struct stripped
 * @seen:    the programs, each once
 * @n:       of these
 * @n_stripped: without a symbol table of their own or in a debug file; Go programs have names
 *           anyway
 * @example: the first stripped one
 */
struct stripped {
	struct file_id seen[STRIPPED_PROGRAMS_MAX];
	size_t n;
	size_t n_stripped;
	char example[STRIPPED_PATH_MAX];
};

/* Looks at the program @entry of process @id, which @fd has open; takes @fd in any case. 0 or
 * -ENOMEM. */
int stripped_add(struct stripped *s, const struct root *proc, const struct pid_id *id,
		 const struct maps_entry *entry, int fd);
void stripped_check(const struct probe_results *results, struct findings *ret);

#endif
