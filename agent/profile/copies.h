/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_PROFILE_COPIES_H
#define PODPROF_PROFILE_COPIES_H

/* Stacks that the kernel's programs copied out (bpf/shared/copy.h), as they come. */

#include <stddef.h>
#include <stdint.h>

#include "profile/bpfobj.h"
#include "profile/sample.h"
#include "shared/copy.h"

struct copies;
struct metric_sink;

/* Bytes of the ring: a second's worth of COPIES_PER_SECOND is five times that, so it wakes us when
 * a quarter is full. */
#define COPIES_RING_BYTES (1u << 20)
/* Stacks copied in a second by all CPUs together. At 5 us in the kernel and 15 us here each, 2 % of
 * a CPU; what is above it is walked in the kernel, by frame pointers. A CPU has at least
 * COPIES_PER_CPU of them. */
#define COPIES_PER_SECOND 1000
#define COPIES_PER_CPU	  20

/**
 * struct copy - one sample whose user half is to be walked; borrows from its record
 * @sample:  who, and the kernel half; no user frames
 * @time_ns: boot clock
 * @at:      address of the first of @n_bytes bytes of the stack
 */
struct copy {
	struct sample sample;
	enum copy_kind kind;
	uint64_t time_ns;
	const struct regs *regs;
	uint64_t at;
	const uint8_t *bytes;
	size_t n_bytes;
};

enum copy_outcome {
	COPY_OK = 0,
	COPY_ODD, /* lengths or numbers that our programs do not write */
};

/* Read a record of the ring, aligned to 8. */
int copy_decode(const void *record, size_t size, struct copy *ret);

/* How many of them a CPU may take in a second, for struct settings. */
uint32_t copies_per_cpu(size_t n_cpus);

/* @maps: of the loaded object, which must outlive this. 0 or -errno. */
int copies_new(const struct bpfobj_copies *maps, struct copies **ret);
void copies_free(struct copies *c);
/* Readable (EPOLLIN) when a quarter of the ring is full. */
int copies_fd(const struct copies *c);

/* Hand over what is in the ring; @record is borrowed for the call. 0 or -errno. */
typedef void (*copies_fn)(void *ctx, const void *record, size_t size);
int copies_drain(struct copies *c, copies_fn fn, void *ctx);

/* A metric_collect_fn: podprof_stack_copies. */
void copies_collect(void *copies, struct metric_sink *sink);

#endif
