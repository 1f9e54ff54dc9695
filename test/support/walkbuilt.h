/* SPDX-License-Identifier: Apache-2.0 */
/* The walk over a stack that the test has built: native frames by frame pointer, without mappings
 * and tables, so that no frame has rows. The test defines window_read(), and WALK_THREAD_POINTER if
 * the threads have a thread pointer. No include guard: each test includes this text once, in place
 * of lib/walk.bpf.h. */

#include <string.h>

#include "lib/table_host.h"
#include "lib/walk.bpf.h"

#ifndef WALK_THREAD_POINTER
#define WALK_THREAD_POINTER 0
#endif

WALK_INLINE __u64 walk_thread_pointer(const struct table_space *space)
{
	(void)space;
	return WALK_THREAD_POINTER;
}

WALK_INLINE const struct table_exe *walk_exe(const struct table_space *space, __u32 exe)
{
	(void)space;
	(void)exe;
	return NULL;
}

WALK_INLINE void walk_used(const struct table_space *space, __u32 exe, __u64 n_frames)
{
	(void)space;
	(void)exe;
	(void)n_frames;
}

#ifdef WALK_RUNTIMES
static struct walk_room walk_built_room;

WALK_INLINE struct walk_room *walk_room(const struct walk_ctx *c)
{
	(void)c;
	return &walk_built_room;
}
#endif

/**
 * struct walk_start - the thread's registers and the walk's settings
 * @step:  of a runtime; NULL: native frames alone
 * @first: slot of the first frame, behind the kernel half
 * @rax, @rbx, @rdi, @r13: of x86-64
 * @x1, @x9, @x12, @x19, @x20, @x30: of arm64
 * @objects, @identity: as in struct walk_ctx
 */
struct walk_start {
	uint64_t pc, sp, fp;
	uint64_t rax, rbx, rdi, r13;
	uint64_t x1, x9, x12, x19, x20, x30;
	const struct walk_runtime *step;
	enum settings_unwind mode;
	uint32_t first;
	struct object_memo *objects;
	uint64_t identity;
};

/* @frames: all ones in slots without a frame. @n_programs: a walk in parts would need so many. */
struct walked {
	struct walk walk;
	__u64 frames[WALK_SLOTS];
	int n_programs;
};

static inline void walk_from(const struct walk_start *from, struct walked *ret)
{
	struct window win;
	struct regs regs = {0};
	const struct walk_ctx c = {.w = &ret->walk,
				   .regs = &regs,
				   .win = &win,
				   .frames = ret->frames,
				   .objects = from->objects,
				   .identity = from->identity,
				   .mode = from->mode};

#ifdef __TARGET_ARCH_x86
	regs.ip = from->pc, regs.sp = from->sp, regs.bp = from->fp, regs.orig_ax = (__u64)-1;
	regs.ax = from->rax, regs.bx = from->rbx, regs.di = from->rdi, regs.r13 = from->r13;
#else
	regs.pc = from->pc, regs.sp = from->sp, regs.x[29] = from->fp;
	regs.x[1] = from->x1, regs.x[9] = from->x9, regs.x[12] = from->x12;
	regs.x[19] = from->x19, regs.x[20] = from->x20, regs.x[30] = from->x30;
#endif
	*ret = (struct walked){.walk.first = from->first};
	memset(ret->frames, 0xff, sizeof(ret->frames));
	walk_begin(&c, 0, 0);
	for (; ret->n_programs < WALK_PROGRAMS && ret->walk.end == WALK_ON; ret->n_programs++)
		walk_on(&c, from->step);
	if (ret->walk.end == WALK_ON) /* as stack_finish() */
		ret->walk.end = SAMPLE_END_MAX_FRAMES;
}
