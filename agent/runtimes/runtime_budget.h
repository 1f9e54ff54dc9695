/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_RUNTIMES_RUNTIME_BUDGET_H
#define PODPROF_RUNTIMES_RUNTIME_BUDGET_H

/*
 * The memory of the names of all language runtimes. The readers' functions belong to the owners of
 * their processes (base/share.h), and can be read again as long as the processes live. The rest,
 * images and known frames, is common. All on the loop.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/share.h"

/* Bytes of names and line tables of all runtimes. Reached: the owners with the most give way:
 * first their functions without a sample for two windows, then all; these are read again with
 * their next sample. `podprof_runtime_evictions_total`. */
#define RUNTIME_BUDGET_BYTES_MAX ((size_t)32 << 20)

/**
 * struct runtime_budget_member - a holder of functions; borrowed until runtime_budget_leave()
 * @give: drop the functions of the owners with @least bytes or more in @budget: with @all every
 *        function, else those that are not in use. Calls runtime_budget_give()
 */
struct runtime_budget_member {
	void (*give)(void *ctx, size_t least, bool all);
	void *ctx;
	struct runtime_budget_member *next;
};

struct runtime_budget {
	size_t n_bytes;	 /* of all functions */
	size_t n_common; /* of the rest */
	struct share_holder *owners;
	struct runtime_budget_member *members;
};

/* {0} is empty. */
void runtime_budget_deinit(struct runtime_budget *b);

void runtime_budget_join(struct runtime_budget *b, struct runtime_budget_member *member);
void runtime_budget_leave(struct runtime_budget *b, struct runtime_budget_member *member);

/* @n bytes more of an owner. False without memory. An owner that has bytes gets more of them. */
bool runtime_budget_take(struct runtime_budget *b, uint64_t owner, size_t n);
void runtime_budget_give(struct runtime_budget *b, uint64_t owner, size_t n);
/* Bytes of an owner. */
size_t runtime_budget_of(const struct runtime_budget *b, uint64_t owner);

/* Makes room if the ceiling is reached. */
void runtime_budget_bound(struct runtime_budget *b);

#endif
