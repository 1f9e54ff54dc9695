/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_PROFILE_STACK_DUMP_H
#define PODPROF_PROFILE_STACK_DUMP_H

/* The ring of stack dumps from BPF (bpf/shared/stack_dump.h). */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "profile/bpfobj.h"
#include "profile/sample.h"
#include "shared/stack_dump.h"

struct metric_sink;
struct stack_dumps;

/* Bytes of the ring. One second at STACK_DUMPS_PER_SECOND is five times as much, so a ring that is
 * a quarter full wakes the agent. */
#define STACK_DUMPS_RING_BYTES (1u << 20)
/* Stack dumps per second of all CPUs together. Each costs 5 us in the kernel and 15 us in the
 * agent: 2 % of a CPU. Above the limit BPF walks the stack by frame pointers. Each CPU may take at
 * least STACK_DUMPS_PER_CPU. */
#define STACK_DUMPS_PER_SECOND 1000
#define STACK_DUMPS_PER_CPU    20

/**
 * struct stack_dump - one sample with an unwalked user half; borrows from its record
 * @sample:  the process and the kernel half; no user frames
 * @time_ns: boot clock
 * @awaits:  the executable whose table the kernel's walk lacked, possibly further out than the copy
 *           reaches; 0: none
 * @at:      address of the first of @n_bytes bytes of the stack
 * @n_before: bytes of the earlier parts (stack_dump_join()); not 0: no dump, but a part of one
 * @more:    another part is on its way, or lost
 * @pieces:  of each STACK_DUMP_READ_BYTES of these: the distance from @at, in pieces; ascending
 * @exe:     the file that the process executes; inode 0: not known
 * @runtime: enum frame_runtime of the @n_excerpt bytes at @excerpt, aligned to 8;
 *           FRAME_RUNTIME_NONE: no excerpt
 */
struct stack_dump {
	struct sample sample;
	enum stack_dump_kind kind;
	uint64_t time_ns;
	uint16_t awaits;
	const struct regs *regs;
	uint64_t at;
	const uint8_t *bytes;
	size_t n_bytes;
	size_t n_before;
	bool more;
	const uint16_t *pieces;
	const struct exe_key *exe;
	uint32_t runtime;
	const uint8_t *excerpt;
	size_t n_excerpt;
};

enum stack_dump_outcome {
	STACK_DUMP_OK = 0,
	STACK_DUMP_ODD, /* lengths or numbers not written by podprof's programs */
};

/* Read a record of the ring, aligned to 8. */
int stack_dump_decode(const void *record, size_t size, struct stack_dump *ret);

/* Stack dumps per second of one CPU, for struct settings. */
uint32_t stack_dumps_per_cpu(size_t n_cpus);

/* @maps: copied; the loaded object owns them and must outlive the result. 0 or -errno. */
int stack_dumps_new(const struct bpfobj_stack_dumps *maps, struct stack_dumps **ret);
void stack_dumps_free(struct stack_dumps *c);
/* Readable (EPOLLIN) when a quarter of the ring is full, and after a dump that ends inside of the
 * stack of an unknown process. */
int stack_dumps_fd(const struct stack_dumps *c);

/* Bytes of fetched records, 30 KiB each at most. Memory is used only while the loop is late.
 * Reached: records stay in the ring, then `podprof_stack_dumps_total{outcome="ring_full"}`. */
#define STACK_DUMPS_FETCHED_MAX ((size_t)8 << 20)

/* Copy the records of the ring, so that the ring has room, on any thread. 0 or -errno. */
int stack_dumps_fetch(struct stack_dumps *c);
/* Whether the fetched records have reached STACK_DUMPS_FETCHED_MAX; on any thread. */
bool stack_dumps_full(struct stack_dumps *c);
/* Whether there are fetched records; on any thread. */
bool stack_dumps_waiting(struct stack_dumps *c);
/* Records lost for lack of memory. */
uint64_t stack_dumps_n_lost(const struct stack_dumps *c);

/* A fetched record. */
struct stack_dump_copy {
	STAILQ_ENTRY(stack_dump_copy) in_list;
	size_t size;
	uint64_t record[];
};

/* The dump @copy with its next part, both of the ring and decoded; the caller frees all three.
 * STACK_DUMP_ODD: @part is of another dump; -ENOMEM. */
int stack_dump_join(const struct stack_dump_copy *copy, const struct stack_dump_copy *part,
		    struct stack_dump_copy **ret);

/* Deliver the fetched records, then those of the ring, as of the call; @fn takes the copy, for
 * free(). 0 or -errno. */
typedef void (*stack_dumps_fn)(void *ctx, struct stack_dump_copy *copy);
int stack_dumps_drain(struct stack_dumps *c, stack_dumps_fn fn, void *ctx);

/* A metric_collect_fn: podprof_stack_dumps. */
void stack_dumps_collect(void *stack_dumps, struct metric_sink *sink);

#endif
