/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PODPROF_BPF_SHARED_STACK_DUMP_H
#define PODPROF_BPF_SHARED_STACK_DUMP_H

/*
 * A stack dump: registers and a copy of stack memory, from a stack that the kernel could not walk
 * by rows. The agent walks the dump when it knows the process and has its tables. Dumps pass
 * through a ring buffer. The kernel half of a dump, if any, is walked already.
 *
 * An on-CPU sample is in the ring or in the stack maps, never in both. A sample in the ring counts
 * as SAMPLE_STAT_DUMPED. If the dump fails, the kernel walks the stack as if there were no ring.
 *
 * An off-CPU wait is in both. The dump goes into the ring at the start of the wait, with an id. The
 * entry in the stack maps follows at the end, with the id and the time. This entry also has the
 * kernel's own walk, by frame pointers where a table is missing: the fallback for a lost dump. The
 * agent joins the two by the id.
 */

#include "lib/regs_arch.bpf.h"
#include "lib/types.h"
#include "shared/sample.h"

/* Stack bytes in a dump, from the stack pointer upwards, and bytes per read. See
 * docs/design/unwinding.md for the share of stacks that fit completely. */
#define STACK_DUMP_BYTES      16384
#define STACK_DUMP_READ_BYTES 1024

/*
 * A dump is a list of pieces, because pages of a large frame may be absent: the program has not
 * touched them, and BPF cannot bring them in. The dump leaves these out. A piece is one read, at a
 * multiple of its size, so that it is in one page.
 */
#define STACK_DUMP_PIECES (STACK_DUMP_BYTES / STACK_DUMP_READ_BYTES)

/*
 * A dump of a program with deep stacks (struct exe_dumps) has up to four parts, each a record of
 * its own: the record of a CPU has room for one part, and most stacks have one. The threads of x264
 * have stacks of 40 to 67 KiB, with up to 40 KiB of present pages.
 */
#define STACK_DUMP_PARTS       4
#define STACK_DUMP_DEEP_BYTES  (STACK_DUMP_PARTS * STACK_DUMP_BYTES)
#define STACK_DUMP_DEEP_PIECES (STACK_DUMP_DEEP_BYTES / STACK_DUMP_READ_BYTES)
/* Programs with an entry in exe_dumps; see RUNTIME_EXES_MAX. */
#define STACK_DUMP_EXES	       1024

/* Absent pages in a row that a dump passes; x264's threads have frames of 31 KiB. Each costs a
 * fault of less than a microsecond, mostly behind the end of a stack. */
#define STACK_DUMP_HOLE_PAGES 8
/* Reads of a part: all its pieces, and 32 absent pages. */
#define STACK_DUMP_READS      48

/*
 * An excerpt: what a language runtime keeps in memory about the stack, copied with the dump because
 * the process may have ended when the agent walks. It is a list of parts, each behind a head. The
 * runtime's header says what the parts are.
 */
#define STACK_DUMP_EXCERPT_BYTES 14336

/* Room for an excerpt behind the largest stack. Stack and excerpt share the record, which exists
 * for each CPU: a stack of up to 8 KiB leaves room for the largest excerpt. Behind a larger one,
 * names without room follow in an excerpt without a stack. */
#define STACK_DUMP_EXCERPT_LEAST 6144
#define STACK_DUMP_SHARED_BYTES	 (STACK_DUMP_BYTES + STACK_DUMP_EXCERPT_LEAST)

struct stack_dump_part {
	__u64 at;   /* address in the process, or the runtime's own number */
	__u32 n;    /* bytes behind this head; the next head is at a multiple of 8 */
	__u32 what; /* the runtime's kind of part */
};

/* The file that a process executes, by the kernel's numbers. The agent never interprets them: a
 * dump tells the agent the numbers of a process, and the agent gives these back for later processes
 * (python_exes). So it does not matter that overlayfs shows other numbers to programs. */
struct exe_key {
	__u64 inode; /* 0: none */
	__u32 device;
	__u32 generation; /* tells files apart that had the number one after the other */
};

/* What the dumps of a program have besides: value of exe_dumps. */
struct exe_dumps {
	__u32 n_parts; /* that a dump may have: more than one for deep stacks */
	__u32 wakes;   /* dumps of an unknown process wake the agent: only memory has its names */
};
_Static_assert(sizeof(struct exe_dumps) == 8, "value of exe_dumps");

/* Nanoseconds that a process is young. Its stacks in code that its record lacks are dumped. With
 * CPython it has excerpts beside its walks: the names of a process that ends before the agent reads
 * them are there. */
#define STACK_DUMP_YOUNG_NS	  5000000000ull
/* The same for a process that had hardly any CPU time: nanoseconds since its start, and of its
 * first thread on a CPU. On a busy node a command of 50 ms lives for many seconds. */
#define STACK_DUMP_STARVED_NS	  60000000000ull
#define STACK_DUMP_STARVED_CPU_NS 1000000000ull

/* The event of a dump. */
enum stack_dump_kind {
	STACK_DUMP_ONCPU,
	STACK_DUMP_OFFCPU,
	STACK_DUMP_NAMES, /* no sample and no stack: an excerpt alone, beside a walk in the kernel
			   */
	STACK_DUMP_KIND_MAX,
};

/* A record of the ring: this head, then the kernel frames, the stack bytes, the excerpt. */
struct stack_dump_head {
	struct sample_key key;	 /* end: unused; stack_hash: the id, for STACK_DUMP_OFFCPU */
	struct sample_head head; /* no user frames; pad: the awaited executable, 0: none */
	__u64 time_ns;		 /* boot clock */
	/* address of the first stack byte, a multiple of STACK_DUMP_READ_BYTES: at or below the
	 * stack pointer */
	__u64 at;
	__u32 n_bytes;	 /* in this record */
	__u32 n_before;	 /* in the records of the earlier parts: a multiple of STACK_DUMP_BYTES */
	__u32 more;	 /* 1: another part follows, 0: none, or it is lost */
	__u32 kind;	 /* enum stack_dump_kind */
	__u32 n_excerpt; /* bytes, a multiple of 8 */
	__u32 runtime;	 /* enum frame_runtime of the excerpt; FRAME_RUNTIME_NONE: there is none */
	struct exe_key exe;		   /* of a dump before the walk, or of names; else 0 */
	__u64 thread[SAMPLE_THREAD_WORDS]; /* the thread's name, with SAMPLE_FLAG_THREAD */
	/* of each piece, those of the earlier parts included: its distance from @at, in pieces.
	 * Ascending from 0, without gaps if no page is absent */
	__u16 pieces[STACK_DUMP_DEEP_PIECES];
	struct regs regs;
};

struct stack_dump_record {
	struct stack_dump_head head;
	__u8 data[SAMPLE_KERNEL_FRAMES_MAX * 8 + STACK_DUMP_SHARED_BYTES];
	/* of the copying; not sent */
	__u32 next;	/* piece */
	__u32 n_absent; /* pages in a row */
	__u32 n_whole;	/* bytes before the first absent page; without one, as many as there can be
			 */
	__u32 pad;
};
/* The largest value of a map with one for each CPU. */
_Static_assert(sizeof(struct stack_dump_record) <= 32768, "fits");

/* The part at @bytes + *@at, of @n bytes; NULL: none, or malformed. Moves *@at to the next one. */
static inline __attribute__((unused)) const struct stack_dump_part *
stack_dump_next_part(const __u8 *bytes, __u64 n, __u64 *at)
{
	const struct stack_dump_part *part =
		(const struct stack_dump_part *)(const void *)(bytes + *at);
	__u64 rest = n - *at;

	if (*at >= n || rest < sizeof(*part))
		return 0;
	rest -= sizeof(*part);
	if (part->n > rest)
		return 0;
	*at += sizeof(*part) + ((part->n + 7ull) & ~7ull);
	return part;
}

/* Outcomes of the attempts. */
enum stack_dump_stat {
	STACK_DUMP_TAKEN,
	STACK_DUMP_NAMED,	 /* STACK_DUMP_NAMES */
	STACK_DUMP_OVER_CPU,	 /* the CPU's limit of this second is reached */
	STACK_DUMP_OVER_PROCESS, /* the process's limit is reached */
	STACK_DUMP_UNREADABLE,	 /* nothing at the stack pointer */
	STACK_DUMP_CONTINUED,	 /* no dump: another part of one */
	STACK_DUMP_RING_FULL,	 /* for a dump after the walk half full; or, in an interrupt that
				  * cannot wait, in use */
	STACK_DUMP_STAT_MAX,
};

/* Dumps of one process in a second, on all CPUs; processes in the same slot share the limit. The
 * value is twice the samples of a thread at the usual rate. A process with many threads thus cannot
 * take the whole limit of a CPU. */
#define STACK_DUMP_PER_PROCESS	 200
#define STACK_DUMP_PROCESS_SLOTS 1024

/* Dumps of a CPU in a second after which a dump wakes the agent only for room in the ring. A drain
 * takes some 100 us. Reached: the agent learns of further processes within the usual interval. */
#define STACK_DUMP_WAKES 8

#endif
