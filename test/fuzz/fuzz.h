/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_TEST_FUZZ_FUZZ_H
#define PODPROF_TEST_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* What a fuzz_*.c defines: one parser on one input. Ends by reading every byte that came back. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
