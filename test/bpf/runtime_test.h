/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PODPROF_TEST_BPF_RUNTIME_TEST_H
#define PODPROF_TEST_BPF_RUNTIME_TEST_H

/*
 * A language runtime for tests: an interpreter. The loop is one function of the program, and the
 * frames are a list anywhere in memory, innermost first.
 */

#include "lib/types.h"

/* Addresses in the only process with this runtime. */
struct runtime_test {
	__u64 loop_start; /* the loop's code */
	__u64 loop_bytes;
	__u64 frames; /* address of the innermost frame */
};

/* A frame in the process. */
struct runtime_test_frame {
	__u64 next; /* the caller's address */
	__u64 function;
	__u64 place;
	__u64 last; /* 1: the outermost frame of this activation of the loop */
};

#endif
