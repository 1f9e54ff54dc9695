/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_TEST_SUPPORT_UNTIL_H
#define PODPROF_TEST_SUPPORT_UNTIL_H

#include <stdbool.h>

struct loop;

/* Runs the loop until @done returns true. After UNTIL_SECONDS the test fails. The limit only ends a
 * hanging test; no test passes because of the limit. */
#define UNTIL_SECONDS 600
void loop_until(struct loop *loop, bool (*done)(void *ctx), void *ctx);

#endif
