/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PODPROF_BPF_SHARED_STACK_DUMP_H
#define PODPROF_BPF_SHARED_STACK_DUMP_H

/*
 * A stack that the kernel could not walk by rows, as it was: registers and a piece of memory, for
 * the agent to walk when it knows the process and has its tables. In a ring buffer, with the kernel
 * half, if there is one, walked already.
 *
 * A sample is in the ring or in the stack maps, never in both: it is SAMPLE_STAT_DUMPED when it has
 * gone into the ring; where that did not work it is walked in the kernel, as if there were no ring.
 *
 * A wait off the CPU is in both: in the ring when it begins, with an id, and in the stack maps when
 * it is over, with the id and the time, and with the stack as frame pointers lead, in case that the
 * copy is not there any more. The agent puts them together.
 */

#include "lib/regs_arch.bpf.h"
#include "lib/types.h"
#include "shared/sample.h"

/* Stack bytes in a copy, from the stack pointer upwards, and the piece that is read at a time. How
 * many stacks are whole in so many bytes is told in docs/design/unwinding.md. */
#define STACK_DUMP_BYTES      16384
#define STACK_DUMP_READ_BYTES 1024

/* Which samples. */
enum stack_dump_kind {
	STACK_DUMP_ONCPU,
	STACK_DUMP_OFFCPU,
	STACK_DUMP_KIND_MAX,
};

/* A record of the ring is this, then the kernel frames, then the stack bytes. */
struct stack_dump_head {
	struct sample_key key;	 /* end says nothing; stack_hash: the id, of STACK_DUMP_OFFCPU */
	struct sample_head head; /* no user frames */
	__u64 time_ns;		 /* boot clock */
	__u64 at;		 /* address of the first stack byte, a multiple of 8 */
	__u32 n_bytes;
	__u32 kind; /* enum stack_dump_kind */
	struct regs regs;
};

struct stack_dump_record {
	struct stack_dump_head head;
	__u8 data[SAMPLE_KERNEL_FRAMES_MAX * 8 + STACK_DUMP_BYTES];
};

/* What became of the attempts. */
enum stack_dump_stat {
	STACK_DUMP_TAKEN,
	STACK_DUMP_OVER_CPU,	 /* this CPU has had its copies of this second */
	STACK_DUMP_OVER_PROCESS, /* the process has */
	STACK_DUMP_UNREADABLE,	 /* nothing at the stack pointer */
	STACK_DUMP_RING_FULL,	 /* or, in an interrupt that cannot wait, in use */
	STACK_DUMP_STAT_MAX,
};

/* Copies of one process in a second, on all CPUs; of all that have that slot, to be exact. Twice
 * what a thread has at the usual rate, so that a process with many threads does not have all of a
 * CPU's. */
#define STACK_DUMP_PER_PROCESS	 200
#define STACK_DUMP_PROCESS_SLOTS 1024

#endif
