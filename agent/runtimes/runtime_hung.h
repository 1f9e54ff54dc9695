/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_RUNTIMES_RUNTIME_HUNG_H
#define PODPROF_RUNTIMES_RUNTIME_HUNG_H

/*
 * The abandoned threads of a runtime's reader, by the owner of the process that each one hangs at.
 * A thread that returns frees its slot, perhaps after the end of the reader and of the reader's
 * host, so each job holds a reference. All functions can be called on any thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct root;
struct runtime_hung;

/* Abandoned threads of a runtime, 2 MB each. Reached: the runtime reads nothing until one returns.
 */
#define RUNTIME_HUNG_MAX       16
/* Abandoned threads for processes of one owner. Reached: the owner's other processes are not read
 * until a thread returns; `podprof_runtime_processes{state="slow"}`. */
#define RUNTIME_HUNG_OWNER_MAX 2

/* With a duplicate of @proc, for the threads. 0 or -errno. */
int runtime_hung_new(const struct root *proc, struct runtime_hung **ret);
/* Returns @h. */
struct runtime_hung *runtime_hung_ref(struct runtime_hung *h);
/* NULL is fine. */
void runtime_hung_unref(struct runtime_hung *h);
/* Borrowed from @h. */
const struct root *runtime_hung_proc(const struct runtime_hung *h);
/* pid_is_ours() of it. */
bool runtime_hung_proc_is_ours(const struct runtime_hung *h);

/* Whether the owner's processes are left alone. */
bool runtime_hung_refuses(const struct runtime_hung *h, uint64_t owner);
/* The slot of a further abandoned thread. At most RUNTIME_HUNG_MAX may be taken at a time. */
size_t runtime_hung_take(struct runtime_hung *h, uint64_t owner);
/* The thread has returned. */
void runtime_hung_put(struct runtime_hung *h, size_t slot);

#endif
