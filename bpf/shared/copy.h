/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PODPROF_BPF_SHARED_COPY_H
#define PODPROF_BPF_SHARED_COPY_H

/*
 * A stack that the kernel could not walk by rows, as it was: registers and a piece of memory, for
 * the agent to walk when it knows the process and has its tables. In a ring buffer, with the kernel
 * half, if there is one, walked already.
 *
 * A sample is in the ring or in the stack maps, never in both: it is SAMPLE_STAT_COPIED when it has
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
#define COPY_STACK_BYTES 16384
#define COPY_PIECE_BYTES 1024

/* Which samples. */
enum copy_kind {
	COPY_ONCPU,
	COPY_OFFCPU,
	COPY_KIND_MAX,
};

/* A record of the ring is this, then the kernel frames, then the stack bytes. */
struct copy_head {
	struct sample_key key;	 /* end says nothing; stack_hash: the id, of COPY_OFFCPU */
	struct sample_head head; /* no user frames */
	__u64 time_ns;		 /* boot clock */
	__u64 at;		 /* address of the first stack byte, a multiple of 8 */
	__u32 n_bytes;
	__u32 kind; /* enum copy_kind */
	struct regs regs;
};

struct copy_record {
	struct copy_head head;
	__u8 data[SAMPLE_KERNEL_FRAMES_MAX * 8 + COPY_STACK_BYTES];
};

/* What became of the attempts. */
enum copy_stat {
	COPY_TAKEN,
	COPY_OVER_CPU,	   /* this CPU has had its copies of this second */
	COPY_OVER_PROCESS, /* the process has */
	COPY_UNREADABLE,   /* nothing at the stack pointer */
	COPY_RING_FULL,	   /* or, in an interrupt that cannot wait, in use */
	COPY_STAT_MAX,
};

/* Copies of one process in a second, on all CPUs; of all that have that slot, to be exact. Twice
 * what a thread has at the usual rate, so that a process with many threads does not have all of a
 * CPU's. */
#define COPY_PER_PROCESS   200
#define COPY_PROCESS_SLOTS 1024

#endif
