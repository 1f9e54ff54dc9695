/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_TEST_SUPPORT_KERNELWALK_H
#define PODPROF_TEST_SUPPORT_KERNELWALK_H

/* Puts a process's tables (hostwalk.h) into the kernel's maps, as a short form of the agent's
 * unwind publisher. */

#include <stdint.h>

#include "profile/bpfobj.h"
#include "support/hostwalk.h"

/* Write the space to the maps and overwrite their contents. 0 or -errno. */
int kernelwalk_publish(const struct bpfobj_unwind *to, const struct hostwalk_space *space);
/* Publish a process with the mappings of the space to the walker. 0 or -errno. */
int kernelwalk_record(const struct bpfobj_unwind *to, const struct hostwalk_space *space,
		      uint32_t tgid, uint64_t start_boottime_ns, uint64_t exec_id);

#endif
