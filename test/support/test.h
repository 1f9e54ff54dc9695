/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_TEST_SUPPORT_TEST_H
#define PODPROF_TEST_SUPPORT_TEST_H

/* What every unit test includes first: cmocka with what it needs before it. */

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/cleanup.h"

/* Names the row of a table that is being tested, so that a failure says which one it was. */
static inline void row_begin(const char *name)
{
	print_message("row: %s\n", name);
}

#endif
