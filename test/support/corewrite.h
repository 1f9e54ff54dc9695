/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_TEST_SUPPORT_COREWRITE_H
#define PODPROF_TEST_SUPPORT_COREWRITE_H

#include "base/root.h"
#include "discovery/pid.h"

/* Write an ELF core of a stopped process, like the kernel: a PT_LOAD for each mapping, NT_PRPSINFO
 * and NT_FILE. A private mapping that is writable or anonymous has its memory in the core, other
 * mappings the first page of a file. Fails the test on failure. */
void corewrite(const struct root *proc, const struct pid_id *id, const char *path);

#endif
