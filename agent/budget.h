/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_BUDGET_H
#define PODPROF_BUDGET_H

/* Shares of --memory-budget: what it is divided by. The rest is for what is in flight, folded
 * stacks and reports. */
#define BUDGET_TABLES  6 /* unwind tables in the kernel */
#define BUDGET_SYMBOLS 8 /* symbol tables: of CPU profiles, and as much for those of heaps */
#define BUDGET_HEAPS   4 /* Go heap records */
#define BUDGET_PULLS   8 /* what is read on demand, and as much for its symbols */
#define BUDGET_QUEUE   4 /* profiles that wait to be sent */

#endif
