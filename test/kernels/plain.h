/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_TEST_KERNELS_PLAIN_H
#define PODPROF_TEST_KERNELS_PLAIN_H

#include <stdint.h>

/* plain_outer() -> plain_middle() -> plain_inner(); ends after this CPU time of the process.
 * Compiled without frame pointers, like distributions do: only unwind tables show the callers. */
uint64_t plain_outer(uint64_t cpu_ns);

#endif
