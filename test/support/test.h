/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_TEST_SUPPORT_TEST_H
#define PODPROF_TEST_SUPPORT_TEST_H

/* First include of every unit test: cmocka with its prerequisites. */

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/cleanup.h"

/* Names the current row of a table for failure messages. */
static inline void row_begin(const char *name)
{
	print_message("row: %s\n", name);
}

#endif
