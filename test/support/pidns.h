/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_TEST_SUPPORT_PIDNS_H
#define PODPROF_TEST_SUPPORT_PIDNS_H

/* Runs @run in a process of a pid namespace of its own, with a /proc of that. What it returns, or 1
 * if it did not come so far. */
int pidns_run(int (*run)(void));

#endif
