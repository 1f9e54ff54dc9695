/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_TEST_SUPPORT_USERTABLES_H
#define PODPROF_TEST_SUPPORT_USERTABLES_H

/* Unwind tables in plain memory, where the kernel's maps would be, and a process to go with them.
 */

#include <stdint.h>

#include "lib/regs_arch.bpf.h"
#include "shared/process.h"
#include "unwindtable/tables.h"

struct usertables;

/* The process's code: functions with frames of 32 bytes; the last page holds outermost functions.
 * Then code of the same size with an image without a table, and after that code without an image.
 */
#define USERTABLES_CODE	     0x555500000000ull
#define USERTABLES_BYTES     0x10000ull
#define USERTABLES_OUTERMOST (USERTABLES_CODE + USERTABLES_BYTES - 0x1000)
#define USERTABLES_BARE	     (USERTABLES_CODE + USERTABLES_BYTES)
#define USERTABLES_ANON	     (USERTABLES_CODE + 2 * USERTABLES_BYTES)
#define USERTABLES_FRAME     32
#define USERTABLES_MAPS	     3

/* NULL without memory. */
struct usertables *usertables_new(void);
void usertables_free(struct usertables *u);

struct tables *usertables_tables(struct usertables *u);
/* USERTABLES_MAPS mappings. */
const struct process_mapping *usertables_maps(const struct usertables *u);
/* The number of the image without a table. */
uint16_t usertables_bare(const struct usertables *u);
/* Frames counted by walkers in the image with a table. */
uint64_t usertables_frames(const struct usertables *u);

/* Registers of an interrupted process. */
struct regs usertables_regs(uint64_t pc, uint64_t sp, uint64_t fp);

#endif
