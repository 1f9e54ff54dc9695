/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_TEST_SUPPORT_ROWPARSE_H
#define PODPROF_TEST_SUPPORT_ROWPARSE_H

/* Reads rules as printed by rowtext_print(), so tests compare saved stacks and readelf's tables as
 * rules. */

#include <stdbool.h>

#include "base/strview.h"
#include "unwind/cfi.h"

/* Whether all of @text is a rule; @ret is set then. */
bool rowparse(enum cfi_machine machine, struct strview text, struct unwind_rule *ret);

#endif
