/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_TEST_BPF_RUNTIME_AGENT_H
#define PODPROF_TEST_BPF_RUNTIME_AGENT_H

/*
 * The parts of the agent with the list of runtimes, compiled with the test runtime
 * (bpf/runtime_test.h): the loader of the BPF programs, and the walk of copied stacks. A test links
 * this object in place of libpodprof's.
 */

#include <stdbool.h>
#include <stdint.h>

#include "bpf/runtime_test.h"

struct bpfobj;

/* FRAME_RUNTIME_TEST, for tests with the product's list. */
#define RUNTIME_AGENT_TEST 4

/* Load all later objects with walks in parts, as on kernels without bpf_loop(). */
void runtime_agent_in_parts(bool yes);
/* Load all later objects with a walk of the runtime on the CPU that the verifier refuses. */
void runtime_agent_refused(bool yes);
/* The runtime's addresses, for the programs of @obj and for copied stacks. 0 or -errno. */
int runtime_agent_set(const struct bpfobj *obj, const struct runtime_test *where);
/* Calls of the runtime's step for copied stacks. */
uint64_t runtime_agent_copied(void);

#endif
