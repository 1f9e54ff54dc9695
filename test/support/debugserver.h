/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_TEST_SUPPORT_DEBUGSERVER_H
#define PODPROF_TEST_SUPPORT_DEBUGSERVER_H

/* Debian's debuginfod. The server listens on every address, so the test moves to a network of its
 * own, with loopback only. */

#include <sys/types.h>

struct tree;

#define DEBUGSERVER_URL "http://127.0.0.1:8002/"

/* For the rest of the test program. */
void debugserver_own_network(void);
/* Copies a fixture into @files: the server follows no links. */
void debugserver_put(const struct tree *files, const char *fixture);
/* A server of the debug files in @files: at first not reachable, then without a file, then with it.
 * Dies with the calling thread. */
pid_t debugserver_start(const struct tree *files);
/* Fails the test if the server has ended. */
void debugserver_check(pid_t server);
void debugserver_kill(pid_t server);

#endif
