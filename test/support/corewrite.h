/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_TEST_SUPPORT_COREWRITE_H
#define PODPROF_TEST_SUPPORT_COREWRITE_H

#include "base/root.h"
#include "discovery/pid.h"

/* An ELF core of a process that stands still, as the kernel writes one: a PT_LOAD for each mapping,
 * with its memory if it is private and may be written to or is in no file, else with the first page
 * of a file; NT_PRPSINFO and NT_FILE. The test fails where it cannot. */
void corewrite(const struct root *proc, const struct pid_id *id, const char *path);

#endif
