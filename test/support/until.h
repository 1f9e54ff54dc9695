/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_TEST_SUPPORT_UNTIL_H
#define PODPROF_TEST_SUPPORT_UNTIL_H

#include <stdbool.h>

struct loop;

/* Runs the loop until @done says so. A test that never gets there fails after UNTIL_SECONDS, which
 * is only there so that it ends: no test passes because of it. */
#define UNTIL_SECONDS 600
void loop_until(struct loop *loop, bool (*done)(void *ctx), void *ctx);

#endif
