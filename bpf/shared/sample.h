/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PODPROF_BPF_SHARED_SAMPLE_H
#define PODPROF_BPF_SHARED_SAMPLE_H

/* What the sampling programs hand to user space: stacks and how often each was seen, in hash maps
 * whose key is who and which stack, and a count of what became of every sample. */

#include "lib/types.h"
#include "shared/frame.h"

/* How the user part of a walk ended. Everything but the first two is a stack that is cut off at its
 * outer end, for this reason. */
enum sample_end {
	SAMPLE_END_COMPLETE,   /* outermost function: a row, frame pointer or return address says so
				*/
	SAMPLE_END_NO_USER,    /* kernel thread: there is no user part */
	SAMPLE_END_MAX_FRAMES, /* deeper than SAMPLE_USER_FRAMES_MAX */
	SAMPLE_END_UNREADABLE, /* the stack is not mapped there, or not in memory now */
	SAMPLE_END_NO_FP,      /* the frame pointer is 0 in the innermost function already */
	SAMPLE_END_FP_ODD,     /* frame pointer not a multiple of 8 */
	SAMPLE_END_FP_LOW,     /* frame pointer below the frame it was found in */
	SAMPLE_END_FP_FAR,     /* frame pointer further away than stacks are long */
	SAMPLE_END_PC_ODD,     /* return address where no code can be */
	SAMPLE_END_32BIT,      /* 32-bit task: only the innermost pc is there */
	/* No row, and the frame pointer did not lead on either: */
	SAMPLE_END_NO_PROCESS,	/* there is no record of the process as it is now (yet) */
	SAMPLE_END_NO_MAPPING,	/* the pc, or where the frame pointer led, is in no known mapping */
	SAMPLE_END_NO_TABLE,	/* the image's table is not there (yet, or no more) */
	SAMPLE_END_NO_ROW,	/* the image says nothing of that code, or there is no image */
	SAMPLE_END_UNSUPPORTED, /* a row that is beyond the walker */
	SAMPLE_END_REGISTER,	/* a row wants a register that is known in innermost frames only */
	SAMPLE_END_SP_ODD,	/* a row leads to an address that is not a multiple of 8 */
	SAMPLE_END_SP_LOW,	/* ... that is not above the frame */
	SAMPLE_END_SP_FAR,	/* ... that is further away than stacks are long */
	SAMPLE_END_NO_GOROUTINE, /* on the system stack of Go's runtime, whose it is is not known */
	SAMPLE_END_DUMP, /* the piece of stack that was copied out ends there (stack_dump.h) */
	SAMPLE_END_MAX,
};

/* What became of a sample: each adds one to exactly one of these. The first SAMPLE_END_MAX are the
 * samples that user space gets, by enum sample_end. */
enum sample_stat {
	SAMPLE_STAT_DUMPED =
		SAMPLE_END_MAX, /* the agent gets the stack as it is (stack_dump.h), and walks it */
	SAMPLE_STAT_LOST_FULL,	/* no room for another stack until the next drain */
	SAMPLE_STAT_LOST_BUSY,	/* the map's bucket was locked on this CPU (NMI only) */
	SAMPLE_STAT_LOST_INTERNAL, /* a lookup that cannot fail failed */
	SAMPLE_STAT_OUTSIDE,   /* the task is in no pid namespace that the agent's /proc shows */
	SAMPLE_STAT_FILTERED,  /* not of those whose samples are wanted (pid_filter.h) */
	SAMPLE_STAT_LEFT_OUT,  /* of a cgroup that is not to be sampled (cgroup_sampling.h) */
	SAMPLE_STAT_THINNED,   /* of one whose samples are taken in part only, and not drawn */
	SAMPLE_STAT_IDLE,      /* the idle task, if the kernel gives it to us anyway */
	SAMPLE_STAT_NO_FRAMES, /* kernel thread, and kernel stacks are off */
	SAMPLE_STAT_MAX,
};

/* One more slot in the array of counts: not a count, but 1 while the program runs on that CPU. */
#define SAMPLE_STAT_RUNNING SAMPLE_STAT_MAX
#define SAMPLE_STAT_SLOTS   (SAMPLE_STAT_MAX + 1)

/* The kernel's own ceiling (kernel.perf_event_max_stack) is 127 unless somebody changed it.
 * Reached: the outermost are missing. */
#define SAMPLE_KERNEL_FRAMES_MAX 127
/* Words of the user half, one for each native frame, and steps of a walk. Measured walks are mostly
 * below 60; deeper ones count as SAMPLE_END_MAX_FRAMES. Reached:
 * `podprof_samples_total{outcome="truncated_max_frames"}`. */
#define SAMPLE_USER_FRAMES_MAX	 512

/* Three classes of stacks, so that memory is not what the deepest one needs for each. */
#define SAMPLE_SMALL_FRAMES 40
#define SAMPLE_LARGE_FRAMES 160
#define SAMPLE_DEEP_FRAMES  640

/* What the agent should know of a sample besides, in key.flags. */
#define SAMPLE_FLAG_NO_PROCESS 1 /* there is no record of the process as it is now (process.h) */
#define SAMPLE_FLAG_NO_MAPPING 2 /* there is one, but a pc is in none of its mappings */
#define SAMPLE_FLAG_NO_TABLE   4 /* a pc is in an image whose unwind table is not there */
#define SAMPLE_FLAG_AWAITS     8 /* ... which is to come */
#define SAMPLE_FLAG_DUMPED \
	16 /* stack_hash is the id of the copy that the stack is in (stack_dump.h) */

struct sample_key {
	__u64 start_boottime_ns; /* of the thread group's leader */
	__u64 exec_id;		 /* files that the process has executed since it was born */
	__u64 cgroup_id;	 /* of the task, in the unified hierarchy */
	__u64 cgroup_v1_id; /* in the hierarchy of settings.v1_controller; 0 if there is none */
	__u64 stack_hash;   /* over both parts and their lengths; see SAMPLE_FLAG_DUMPED */
	__u32 tgid;	    /* as the agent's /proc shows it */
	__u16 end;	    /* enum sample_end */
	__u16 flags;	    /* SAMPLE_FLAG_* */
};
_Static_assert(sizeof(struct sample_key) == 48, "key of the stack maps");
_Static_assert(__builtin_offsetof(struct sample_key, flags) == 46, "no padding: it is hashed");

/* Weight of an on-CPU sample that stands for itself alone. */
#define SAMPLE_ONE (1u << 16)

struct sample_head {
	__u64 count;
	__u64 total;   /* what they stand for. Off the CPUs: ns that threads were away. On them: the
			* samples' weights, SAMPLE_ONE each where all are taken (cgroup_sampling.h) */
	char comm[16]; /* of the leader, when this stack was first seen */
	__u16 n_kernel;
	__u16 n_user; /* words of the user half */
	__u16 n_rows; /* native frames of it that a row of an unwind table led to */
	__u16 pad;
};

/* Kernel pcs first, then the words of the user half (frame.h), each innermost first. The slots
 * behind them are rubbish.
 *
 * The innermost user pc is in the instruction where the task was. All others are return addresses
 * or, for a place that a signal interrupted and for the trampoline that its handler returns to, one
 * behind it: take one from each and it is in the instruction that was being executed, or will be.
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
