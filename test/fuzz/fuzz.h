/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_TEST_FUZZ_FUZZ_H
#define PODPROF_TEST_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* The interface of a fuzz_*.c: a parser on an input. Reads every byte of the result at the end. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
