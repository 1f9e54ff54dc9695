/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_RUNTIMES_HOTSPOT_SCOPES_H
#define PODPROF_RUNTIMES_HOTSPOT_SCOPES_H

/* The methods at a place of compiled code: the compiled method, and the methods inlined there. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtimes/hotspot_process.h"
#include "runtimes/runtimes.h"

struct memory;
struct memory_range;

/* The bytecode of a scope is not known. */
#define HOTSPOT_NO_BCI UINT32_MAX

/* A method, and the bytecode in it that is executed or calls the scope before. */
struct hotspot_scope {
	uint64_t method;
	uint32_t bci;
};

/* Innermost first; the last is the compiled method. */
struct hotspot_scopes {
	struct hotspot_scope items[RUNTIMES_PLACES_MAX];
	size_t n;
};

/**
 * struct hotspot_tables - the debug information of compiled code
 * @code:  [@code, @code_limit): the instructions of the methods; stubs and handlers follow.
 *         Addresses are distances from @code. Code before @code_whole makes the frame
 * @descs: [@descs, @descs_limit): one description for each address with debug information, by
 *         address; @scopes: [@scopes, @scopes_limit): the scopes, compressed; @methods: pointers
 *
 * Zeros without such tables: native methods, and a virtual machine that does not describe them.
 */
struct hotspot_tables {
	uint64_t code, code_whole, code_limit;
	uint64_t descs, descs_limit;
	uint64_t scopes, scopes_limit;
	uint64_t methods;
};

/* Other words of a blob that are read with those of its tables: ranges of a call. Reached:
 * -EINVAL. */
#define HOTSPOT_TABLES_OTHERS_MAX 4

/**
 * hotspot_tables_read() - where the tables of a compiled code are
 * @blob:   the code
 * @others: other words of it, @n_others (HOTSPOT_TABLES_OTHERS_MAX at most), read in the same call
 *
 * The words that lead to the tables change when the code is freed.
 *
 * Return: 0; an outcome of a process; -EINVAL for too many @others; -errno.
 */
int hotspot_tables_read(struct memory *m, const struct hotspot_target *target, uint64_t blob,
			const struct memory_range *others, size_t n_others,
			struct hotspot_tables *ret);

/**
 * hotspot_scopes_read() - the methods at an address
 * @method: of the compiled code
 * @pc:     in the code; of a caller: in its call
 * @ret:    with at least @method. The only one, with HOTSPOT_NO_BCI, if there is no debug
 *          information or it contradicts itself
 *
 * Debug information belongs to the ends of calls and to other places where a thread can stop for
 * the virtual machine. Another address has the information of the next such place, as in the
 * virtual machine's own profilers; behind the last, of the last. Code that makes the frame belongs
 * to the entry of @method. With more than RUNTIMES_PLACES_MAX scopes, the outermost but @method are
 * left out.
 *
 * Return: 0; an outcome of a process; -errno.
 */
int hotspot_scopes_read(struct memory *m, const struct hotspot_target *target,
			const struct hotspot_tables *tables, uint64_t method, uint64_t pc,
			struct hotspot_scopes *ret);

#endif
