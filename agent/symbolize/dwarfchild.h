/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_SYMBOLIZE_DWARFCHILD_H
#define PODPROF_SYMBOLIZE_DWARFCHILD_H

/*
 * The process that reads DWARF for podprof. The process has no rights (base/sandbox.h), only a
 * socket and the descriptors that come with the requests (dwarfwire.h). The process ends when the
 * socket's other end is closed, and after a time without a request.
 */

#include "base/launcher.h"

/* The command of the program that is this process; not for people. */
#define DWARFCHILD_COMMAND     "dwarf-child"
/* Time without a request until the end. Two windows of the default length: a process that ended
 * between two profiles read the same units for each. */
#define DWARFCHILD_IDLE_MS     150000
/* Descriptor of the socket. */
#define DWARFCHILD_FD	       LAUNCHER_FD
/* Private memory. With the budget of all caches it fits into the limit of the chart's pod, because
 * the kernel may end all processes of a pod above its limit. Reached: the file is
 * `podprof_dwarf_requests_total{outcome="memory"}`. */
#define DWARFCHILD_DATA_MAX    (96ull << 20)
/* Address space, of mapped files above all. Reached: the same. */
#define DWARFCHILD_ADDRESS_MAX (16ull << 30)
/* CPU seconds of a process. After half of this time the process asks to be replaced.
 * Reached: the file is `podprof_dwarf_requests_total{outcome="crashed"}`. */
#define DWARFCHILD_CPU_MAX_S   40

enum dwarfchild_exit {
	DWARFCHILD_DONE = 0,
	DWARFCHILD_NO_MEMORY = 3,
	DWARFCHILD_NO_SANDBOX = 4,
};

/* The command. Returns an enum dwarfchild_exit. */
int dwarfchild_main(int argc, char **argv);

#endif
