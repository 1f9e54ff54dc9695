/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_UNWINDTABLE_RUNTIME_EXES_H
#define PODPROF_UNWINDTABLE_RUNTIME_EXES_H

/* The programs with excerpts of a language runtime, or without any, with a struct exe_dumps, for
 * the kernel's stack dumps (bpf/shared/stack_dump.h). */

#include <stddef.h>
#include <stdint.h>

struct exe_key;
struct runtime_exes;

/* Programs of all kinds, 300 bytes each, shared out by owner (base/share.h). Reached: the
 * owner's oldest program, or the oldest of all, is forgotten, and learnt again. */
#define RUNTIME_EXES_MAX 1024

/* @maps: by enum frame_runtime, @n; -1: the runtime has none. FRAME_RUNTIME_NONE: exe_dumps.
 * Borrowed. 0 or -ENOMEM. */
int runtime_exes_new(const int *maps, size_t n, struct runtime_exes **ret);
void runtime_exes_free(struct runtime_exes *exes);
/* Writes the value of @n bytes for the program @key into the map of @runtime, unless the map has
 * the value. @owner: of the process. A failure is forgotten: the next dump of such a process tries
 * again. */
void runtime_exes_learn(struct runtime_exes *exes, uint64_t owner, const struct exe_key *key,
			uint32_t runtime, const void *value, size_t n);
/* The value of the program, in the map of *@ret_runtime. NULL: not known. */
const void *runtime_exes_find(const struct runtime_exes *exes, const struct exe_key *key,
			      uint32_t *ret_runtime);
size_t runtime_exes_n(const struct runtime_exes *exes);

#endif
