/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_TEST_KERNELS_PLAIN_H
#define PODPROF_TEST_KERNELS_PLAIN_H

#include <stdint.h>

/* plain_outer() -> plain_middle() -> plain_inner(), which ends when the process has used so much
 * CPU time. Compiled without frame pointers, as distributions compile everything: only unwind
 * tables show who calls whom. */
uint64_t plain_outer(uint64_t cpu_ns);

#endif
