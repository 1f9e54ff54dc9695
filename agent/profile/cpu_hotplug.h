/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_PROFILE_CPU_HOTPLUG_H
#define PODPROF_PROFILE_CPU_HOTPLUG_H

/* The kernel's messages about CPUs that come and go. */

#include <stdbool.h>

/* A socket that is readable after a CPU went online or offline; owned. -errno: the kernel refuses
 * it. */
int cpu_hotplug_open(void);
/* Read all messages. True if CPUs changed, or messages may be lost. */
bool cpu_hotplug_read(int fd);

#endif
