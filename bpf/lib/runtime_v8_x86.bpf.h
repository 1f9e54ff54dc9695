/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PODPROF_BPF_LIB_RUNTIME_V8_X86_BPF_H
#define PODPROF_BPF_LIB_RUNTIME_V8_X86_BPF_H

/* See runtime_v8_arch.bpf.h. */

/* rdi. */
#define V8_CLOSURE    5
#define V8_LEFT_BYTES 8

/* Bytes of a frame at the beginning of a function: push %rbp; mov %rsp,%rbp; push %rsi; push %rdi.
 */
#define V8_PUSH_RBP 0x55ull
#define V8_PUSH_RSI 0x56ull
#define V8_POP_RBP  0x5dull
#define V8_PUSH_RDI 0x57ull
/* ... of code that is no function: push $marker in place of the last two. */
#define V8_PUSH_IMM 0x6aull

/* Whose frame the instructions @code make, behind the pushed frame pointer: flags of an edge. */
WALK_INLINE __u64 v8_makes(__u64 code)
{
	return V8_OF_JS * plan_zero((code & 0xffff) ^ (V8_PUSH_RSI | V8_PUSH_RDI << 8)) |
	       (V8_OF_OTHER | (code & 0xff00)) * plan_zero((code & 0xff) ^ V8_PUSH_IMM);
}

WALK_INLINE __u64 v8_edge(const struct walk_ctx *c)
{
	const __u64 *words = plan_words(c);
	__u64 code, next, before, push, mov, moved;
	struct walk *w = c->w;

	/* from the byte before on */
	if (window_read(c->space, plan_words(c), 16, w->pc - 1))
		return V8_WHOLE;
	WALK_FENCE();
	before = words[0] & 0xff;
	code = words[0] >> 8 | words[1] << 56;
	next = code >> 8;
	push = plan_zero((code & 0xff) ^ V8_PUSH_RBP);
	/* two encodings of the same instruction */
	mov = plan_zero((code & 0xffffff) ^ 0xe58948) | plan_zero((code & 0xffffff) ^ 0xec8b48);
	moved = plan_zero((next & 0xffffff) ^ 0xe58948) | plan_zero((next & 0xffffff) ^ 0xec8b48);
	if (push & moved)
		return V8_PUSHES | v8_makes(code >> 32);
	if (mov & plan_zero(before ^ V8_PUSH_RBP))
		return V8_PUSHED | v8_makes(code >> 24);
	/* the frame is left, and its words are still there */
	if (plan_zero((code & 0xff) ^ V8_POP_RBP))
		return V8_WHOLE;
	/* the slots are beyond the stack pointer */
	if (w->fp - w->sp < 16)
		return V8_PENDING | v8_makes(code) |
		       V8_OF_JS * (plan_zero((code & 0xff) ^ V8_PUSH_RDI) &
				   plan_zero(before ^ V8_PUSH_RSI));
	/* ret; ret $n; and before it in functions with arguments: cmp $n,%rcx; jg */
	if (plan_zero((code & 0xff) ^ 0xc3) | plan_zero((code & 0xff) ^ 0xc2) |
	    plan_zero((code & 0xff00ff) ^ 0xc2007f) |
	    plan_zero((code & 0x00ff00ff00ffffffull) ^ 0x00c2007f00f98348ull))
		return V8_POPPED;
	return V8_WHOLE;
}

WALK_INLINE __u32 v8_frameless(const struct walk_ctx *c)
{
	return plan_by_sp(c->w, 8, 0);
}

#endif
