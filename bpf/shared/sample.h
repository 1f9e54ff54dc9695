/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PODPROF_BPF_SHARED_SAMPLE_H
#define PODPROF_BPF_SHARED_SAMPLE_H

/* The sampling programs' output for user space: hash maps of stacks with their counts, and a
 * counter for each outcome of a sample. The key of a hash map is the process's identity and the
 * stack. */

#include "lib/types.h"
#include "shared/frame.h"

/* The end of a walk's user part. All values but the first two are reasons of a truncated stack. */
enum sample_end {
	SAMPLE_END_COMPLETE,   /* outermost function: a row, frame pointer or return address says so
				*/
	SAMPLE_END_NO_USER,    /* kernel thread: there is no user part */
	SAMPLE_END_MAX_FRAMES, /* deeper than SAMPLE_USER_FRAMES_MAX */
	SAMPLE_END_UNREADABLE, /* stack memory not mapped, or not in RAM now */
	SAMPLE_END_NO_FP,      /* frame pointer 0 in the innermost function */
	SAMPLE_END_FP_ODD,     /* frame pointer not a multiple of 8 */
	SAMPLE_END_FP_LOW,     /* frame pointer below its own frame */
	SAMPLE_END_FP_FAR,     /* frame pointer beyond the largest stack */
	SAMPLE_END_PC_ODD,     /* return address where no code can be */
	SAMPLE_END_32BIT,      /* 32-bit task: only the innermost pc is there */
	/* No row, and the frame pointer did not lead on either: */
	SAMPLE_END_NO_PROCESS,	 /* no current record of the process (yet) */
	SAMPLE_END_NO_MAPPING,	 /* the pc, or the frame pointer's caller, is in no known mapping */
	SAMPLE_END_NO_TABLE,	 /* the image has no table (yet, or any more) */
	SAMPLE_END_NO_ROW,	 /* no row of the image for this code, or no image */
	SAMPLE_END_UNSUPPORTED,	 /* a row beyond the walker */
	SAMPLE_END_REGISTER,	 /* a row needs a register known in innermost frames only */
	SAMPLE_END_SP_ODD,	 /* a row leads to an address not a multiple of 8 */
	SAMPLE_END_SP_LOW,	 /* ... not above the frame */
	SAMPLE_END_SP_FAR,	 /* ... beyond the largest stack */
	SAMPLE_END_NO_GOROUTINE, /* on the system stack of Go's runtime, goroutine unknown */
	SAMPLE_END_DUMP,	 /* end of the stack dump (stack_dump.h) */
	SAMPLE_END_MAX,
};

/* Outcomes of samples: each sample adds one to exactly one counter. The first SAMPLE_END_MAX are
 * the samples handed to user space, by enum sample_end. */
enum sample_stat {
	SAMPLE_STAT_DUMPED =
		SAMPLE_END_MAX,	   /* the agent gets a stack dump (stack_dump.h), and walks it */
	SAMPLE_STAT_LOST_FULL,	   /* no room for another stack until the next drain */
	SAMPLE_STAT_LOST_BUSY,	   /* the map's bucket was locked on this CPU (NMI only) */
	SAMPLE_STAT_LOST_INTERNAL, /* an impossible failure of a lookup */
	SAMPLE_STAT_OUTSIDE,	   /* the task has no pid in the agent's /proc */
	SAMPLE_STAT_FILTERED,	   /* outside the pid filter or scope (pid_filter.h) */
	SAMPLE_STAT_LEFT_OUT,	   /* of a cgroup without sampling (cgroup_sampling.h) */
	SAMPLE_STAT_THINNED,	   /* of a cgroup at a lower rate, and not drawn */
	SAMPLE_STAT_IDLE,	   /* the idle task, if the kernel reports it */
	SAMPLE_STAT_NO_FRAMES,	   /* in neither half: kernel thread, and kernel stacks are off */
	SAMPLE_STAT_MAX,
};

/* Of one CPU. One value of a map: a sample changes the flag and the count of its outcome, and for
 * nearly all both are in the first cache line. */
struct sample_stats {
	__u64 running; /* 1 while the program runs */
	__u64 counts[SAMPLE_STAT_MAX];
};

/* The kernel's own ceiling (kernel.perf_event_max_stack) is 127 unless somebody changed it.
 * Reached: the outermost are missing. */
#define SAMPLE_KERNEL_FRAMES_MAX 127
/* Words of the user half, one for each native frame, and steps of a walk. Measured walks are mostly
 * below 60; deeper ones count as SAMPLE_END_MAX_FRAMES. Reached:
 * `podprof_samples_total{outcome="truncated_max_frames"}`. */
#define SAMPLE_USER_FRAMES_MAX	 512

/* Three size classes of stacks, so that a small stack does not take the memory of a deep stack. */
#define SAMPLE_SMALL_FRAMES 40
#define SAMPLE_LARGE_FRAMES 160
#define SAMPLE_DEEP_FRAMES  640

/* Further facts of a sample for the agent, in key.flags. */
#define SAMPLE_FLAG_NO_PROCESS 1 /* no current record of the process (process.h) */
#define SAMPLE_FLAG_NO_MAPPING 2 /* a record, but a pc in none of its mappings */
#define SAMPLE_FLAG_NO_TABLE   4 /* a pc in an image without its unwind table */
#define SAMPLE_FLAG_AWAITS     8 /* ... but the table may come soon */
#define SAMPLE_FLAG_DUMPED \
	16 /* off-CPU: stack_hash is the id of this wait's stack dump (stack_dump.h) */
#define SAMPLE_FLAG_THREAD	 32  /* the thread's name follows the words of the user half */
#define SAMPLE_FLAG_OTHER_THREAD 64  /* ... or would, but for SAMPLE_NAMES_MAX */
#define SAMPLE_FLAG_TASK	 128 /* then follows the name of the thread's task */
#define SAMPLE_FLAG_OTHER_TASK	 256 /* ... or would, but for SAMPLE_NAMES_MAX */
#define SAMPLE_FLAG_LOST	 512 /* no stack: of a process's samples that found no room */

/* Processes with samples that found no room, between two drains. Reached: their further samples are
 * in no profile, `podprof_samples_total{outcome="lost_full"}` and `{outcome="lost_busy"}`. */
#define SAMPLE_LOST_MAX 256

/* Words of a thread's name: TASK_COMM_LEN bytes, zeros behind the name. */
#define SAMPLE_THREAD_WORDS 2
/* Words of a task's name, zeros behind the name. Reached: cut. */
#define SAMPLE_TASK_WORDS   4

/* Names of threads of one process between two drains, and the same of tasks: more than the named
 * threads of most programs. Each name may take an entry for each stack. Reached: the rest of the
 * threads or tasks have the label `(other)`, `podprof_other_thread_samples_total` or
 * `podprof_task_samples_total{outcome="other"}`. */
#define SAMPLE_NAMES_MAX 256

enum sample_name {
	SAMPLE_NAME_THREAD,
	SAMPLE_NAME_TASK,
};

/* Key of the map of names in use. */
struct sample_name_key {
	__u64 name[SAMPLE_TASK_WORDS];
	__u32 tgid;	/* as in struct sample_key */
	__u16 kind;	/* enum sample_name */
	__u16 is_count; /* 1: the number of such names of the process; @name is 0 */
};
_Static_assert(sizeof(struct sample_name_key) == 40, "no padding: it is hashed");

struct sample_key {
	__u64 start_boottime_ns; /* of the thread group's leader */
	__u64 exec_id;		 /* execs since the process began */
	__u64 cgroup_id;	 /* of the task, in the unified hierarchy */
	__u64 cgroup_v1_id; /* in the hierarchy of settings.v1_controller; 0 if there is none */
	__u64 stack_hash;   /* over both parts, their lengths and the names; see
			     * SAMPLE_FLAG_DUMPED */
	__u32 tgid;	    /* in the agent's /proc */
	__u16 end;	    /* enum sample_end */
	__u16 flags;	    /* SAMPLE_FLAG_* */
};
_Static_assert(sizeof(struct sample_key) == 48, "key of the stack maps");
_Static_assert(__builtin_offsetof(struct sample_key, flags) == 46, "no padding: it is hashed");

/* Weight of an on-CPU sample without any thinning. */
#define SAMPLE_ONE (1u << 16)

struct sample_head {
	__u64 count; /* On-CPU: samples. Off-CPU: switches, chosen or represented */
	__u64 total; /* Off-CPU: ns of waiting, for all these switches. On-CPU: weights, SAMPLE_ONE
		      * a sample without thinning (cgroup_sampling.h) */
	char comm[16]; /* of the leader, when this stack was first seen */
	__u16 n_kernel;
	__u16 n_user; /* words of the user half */
	__u16 n_rows; /* native frames of the user half found by an unwind row */
	__u16 pad;
};

/* Kernel pcs first, then the words of the user half (frame.h), each innermost first, then the name
 * of the thread (SAMPLE_FLAG_THREAD), then that of the task (SAMPLE_FLAG_TASK). The slots behind
 * them are undefined.
 *
 * The innermost user pc is in the task's current instruction (in a system call on arm64: at the
 * next). All others are return addresses or, for a place interrupted by a signal and for the
 * trampoline of its handler, pc + 1. Subtract one from each to get an address in the instruction
 * being executed, or to be executed next.
 */
struct sample_small {
	struct sample_head head;
	__u64 frames[SAMPLE_SMALL_FRAMES];
};
_Static_assert(sizeof(struct sample_small) == 360, "value of the small stack maps");

struct sample_large {
	struct sample_head head;
	__u64 frames[SAMPLE_LARGE_FRAMES];
};
_Static_assert(sizeof(struct sample_large) == 1320, "value of the large stack maps");

struct sample_deep {
	struct sample_head head;
	__u64 frames[SAMPLE_DEEP_FRAMES];
};
_Static_assert(sizeof(struct sample_deep) == 5160, "value of the deep stack maps");
_Static_assert(__builtin_offsetof(struct sample_large, frames) == 40 &&
		       __builtin_offsetof(struct sample_small, frames) == 40 &&
		       __builtin_offsetof(struct sample_deep, frames) == 40,
	       "a small value is the beginning of a large one");
_Static_assert(SAMPLE_KERNEL_FRAMES_MAX + SAMPLE_USER_FRAMES_MAX <= SAMPLE_DEEP_FRAMES,
	       "both parts fit");

#endif
