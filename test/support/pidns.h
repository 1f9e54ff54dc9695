/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_TEST_SUPPORT_PIDNS_H
#define PODPROF_TEST_SUPPORT_PIDNS_H

/* Run @run in a process of a new pid namespace, with a /proc of the namespace. Returns the result
 * of @run, or 1 if the setup fails. */
int pidns_run(int (*run)(void));

#endif
