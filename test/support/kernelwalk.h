/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_TEST_SUPPORT_KERNELWALK_H
#define PODPROF_TEST_SUPPORT_KERNELWALK_H

/* A process's tables (hostwalk.h) in the kernel's maps: what the agent's unwinder does, in short.
 */

#include <stdint.h>

#include "profile/bpfobj.h"
#include "support/hostwalk.h"

/* Put the space into the maps, whatever is in them. 0 or -errno. */
int kernelwalk_publish(const struct bpfobj_unwind *to, const struct hostwalk_space *space);
/* Tell the walker of a process that has the mappings of the space. 0 or -errno. */
int kernelwalk_record(const struct bpfobj_unwind *to, const struct hostwalk_space *space,
		      uint32_t tgid, uint64_t start_boottime_ns, uint64_t exec_id);

#endif
