/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_PROFILE_RUNTIME_LOADER_H
#define PODPROF_PROFILE_RUNTIME_LOADER_H

/*
 * Loads the walks of a language runtime with the first process of this runtime. The verifier takes
 * longer for these walks than for all other programs, and few nodes have all runtimes. A thread of
 * its own waits for the verifier.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/nsec.h"

/* The longest wait of a wanted load while the agent is busy. */
#define RUNTIME_LOADER_WAIT_NS (10 * NSEC_PER_SEC)

struct bpfobj;
struct loop;
struct metric_sink;
struct runtime_loader;

/* @obj: takes a reference. @urgent: the caller waits for loads, so these have
 * its priority and do not wait for tables. 0 or -errno. */
int runtime_loader_new(struct loop *loop, struct bpfobj *obj, bool urgent,
		       struct runtime_loader **ret);
/* A load under way that needs more than a second is left to its thread: on a starved node the
 * verifier takes minutes, and ends at once with the process. NULL: does nothing. */
void runtime_loader_free(struct runtime_loader *l);

/* A process has the runtime (enum frame_runtime), or will: the next tick starts the first load;
 * after an error of the system also the next, a minute later. */
void runtime_loader_want(struct runtime_loader *l, uint32_t runtime, uint64_t now_ns);
/* Starts the wanted loads in their order, unless the agent is @busy with what stacks wait for. A
 * wanted load waits for RUNTIME_LOADER_WAIT_NS at most, and not at all if stacks of the runtime are
 * cut without the walk. */
void runtime_loader_tick(struct runtime_loader *l, bool busy, uint64_t now_ns);
/* No load begins from here on: for the end of sampling. */
void runtime_loader_end(struct runtime_loader *l);
/* Loads waiting or under way. */
size_t runtime_loader_pending(const struct runtime_loader *l);
/* A metric_collect_fn. */
void runtime_loader_collect(void *loader, struct metric_sink *sink);

#endif
