/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PODPROF_BPF_LIB_WALK_BPF_H
#define PODPROF_BPF_LIB_WALK_BPF_H

/*
 * One step of a user stack walk, over plain values: no helper is called here, so the same text is
 * compiled for the host and tested there.
 *
 * Code built with frame pointers keeps, at the address in the frame-pointer register, a record of
 * two words: the caller's frame pointer and the return address. x86-64 (push %rbp; mov %rsp,%rbp)
 * and arm64 (stp x29, x30, [sp, #-n]!; mov x29, sp) agree on that. The records form a list towards
 * higher addresses; the thread's first function ends it with a zero.
 *
 * Code built without uses the register for something else, and then the list is rubbish from there
 * on. A frame that is not there is worse than one that is missing, so every link is checked:
 * aligned, above the last one, no further than a stack can be long, and the return address where
 * code can be. What these checks cannot see: a leaf function that has no record yet (or any more)
 * hides its caller, and a program that switches stacks in mid-call (Go's systemstack, coroutines)
 * ends as SAMPLE_END_FP_LOW or _FAR.
 *
 * walk_user() drives: it reads each record and stores each pc. A stepper that goes by unwind tables
 * changes w->pc, w->sp and w->fp by its own rule and keeps the driver.
 */

#include "shared/sample.h"

/* A frame further away than this from where the walk began is none. Thread stacks have 8 MiB by
 * default; Go lets one goroutine's grow to 1 GB but nobody has been seen above a few MB. */
#define WALK_STACK_BYTES (256ull << 20)
/* No code is mapped below: vm.mmap_min_addr is 65536 by default and at least one page. */
#define WALK_PC_MIN	 0x1000ull
/* One past the highest user address with 4-level page tables; with 5 levels the kernel gives out
 * more only to programs that ask with an address hint. */
#define WALK_PC_LIMIT	 0x800000000000ull

struct walk_record {
	__u64 fp; /* the caller's */
	__u64 ra; /* return address into the caller */
};

/* Where the walk has got to: the registers of the frame found last. */
struct walk {
	__u64 pc;
	__u64 sp;
	__u64 fp;
	__u64 limit;		   /* frame pointers are below */
	struct walk_record record; /* the one read last */
};

/* Read the record at @fp of the sampled task's memory; 0 if it could be read. */
typedef int (*walk_read_fn)(struct walk_record *ret, __u64 fp);

/* Not an end: go on. Beyond enum sample_end so that one number says either. */
#define WALK_ON SAMPLE_END_MAX

static inline int walk_pc_plausible(__u64 pc)
{
	return pc >= WALK_PC_MIN && pc < WALK_PC_LIMIT;
}

static inline void walk_begin(struct walk *w, __u64 pc, __u64 sp, __u64 fp)
{
	w->pc = pc;
	w->sp = sp;
	w->fp = fp;
	w->limit = sp + WALK_STACK_BYTES; /* if that wraps, every frame pointer is too far */
}

/* Whether the record at w->fp may be read and believed: WALK_ON, or why the walk ends here. */
static inline __u32 walk_may_read(const struct walk *w)
{
	if (w->fp & 7)
		return SAMPLE_END_FP_ODD;
	if (w->fp < w->sp)
		return SAMPLE_END_FP_LOW;
	if (w->fp >= w->limit)
		return SAMPLE_END_FP_FAR;
	return WALK_ON;
}

/* Go to the caller that @r, the record at w->fp, describes: WALK_ON with the caller in @w, or why
 * there is none. */
static inline __u32 walk_apply(struct walk *w, const struct walk_record *r)
{
	if (!r->ra)
		return SAMPLE_END_COMPLETE;
	if (!walk_pc_plausible(r->ra))
		return SAMPLE_END_PC_ODD;
	w->pc = r->ra;
	w->sp = w->fp + sizeof(*r); /* the caller's record is above ours */
	w->fp = r->fp;
	return WALK_ON;
}

/* From one frame to its caller: WALK_ON or why the walk ends. */
static inline __attribute__((always_inline)) __u32 walk_step(struct walk *w, struct walk_record *r,
							     walk_read_fn read)
{
	__u32 end = walk_may_read(w);

	if (end != WALK_ON)
		return end;
	if (read(r, w->fp))
		return SAMPLE_END_UNREADABLE;
	return walk_apply(w, r);
}

/**
 * walk_user() - the pcs from where @w stands outwards
 * @record: where records are read to; its owner chooses the memory
 * @frames: SAMPLE_LARGE_FRAMES slots
 * @first:  the slot of the innermost pc, which is @w's own
 * @n:      how many were stored, at most SAMPLE_USER_FRAMES_MAX
 *
 * @n is counted in memory, not returned: see bpf/README.md about the verifier.
 *
 * Return: enum sample_end.
 */
static inline __attribute__((always_inline)) __u32 walk_user(struct walk *w,
							     struct walk_record *record,
							     __u64 *frames, __u32 first, __u32 *n,
							     walk_read_fn read)
{
	frames[first & (SAMPLE_LARGE_FRAMES - 1)] = w->pc;
	*n = 1;
	/* Nothing to follow. A thread's very first function may look like that before it has made
	 * its record; mostly it is code that does not keep frame pointers. */
	if (!w->fp)
		return SAMPLE_END_NO_FP;
	for (__u32 i = 1; i < SAMPLE_USER_FRAMES_MAX; i++) {
		__u32 end = walk_step(w, record, read);

		if (end != WALK_ON)
			return end;
		frames[(first + i) & (SAMPLE_LARGE_FRAMES - 1)] = w->pc;
		*n += 1;
		if (!w->fp)
			return SAMPLE_END_COMPLETE;
	}
	return SAMPLE_END_MAX_FRAMES;
}

/* Mix one more word into a stack's hash. Targets choose their pcs and so could build two stacks
 * with one hash, but both would be their own: process and cgroup are in the key beside it. */
static inline __u64 walk_hash(__u64 hash, __u64 word)
{
	hash = (hash ^ word) * 0x9e3779b97f4a7c15ull; /* 2^64 / golden ratio, odd */
	return hash ^ (hash >> 29);
}

#endif
