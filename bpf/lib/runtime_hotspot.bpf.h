/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PODPROF_BPF_LIB_RUNTIME_HOTSPOT_BPF_H
#define PODPROF_BPF_LIB_RUNTIME_HOTSPOT_BPF_H

/*
 * The step of HotSpot. Java code is on the machine stack, and no unwind table describes
 * it: so this step has a plan for its frames, in place of a row.
 *
 * All code lies in code heaps. A heap has a map with a byte for each segment of 128 bytes: 0 where
 * a block begins, else the distance back towards the beginning, in hops. A block has a blob of
 * code, which tells the size of its frames. The frame is whole from the blob's "frame complete" on
 * and up to the epilogue; only a place of interruption can be elsewhere, and the bytes of the code
 * tell how much of the frame is there. The caller's frame pointer is below the return address.
 *
 * Interpreted code keeps a frame pointer. Below the frame pointer are the caller's sp, the method
 * and the next bytecode. At the entry of an interpreted method the frame is not made yet: the
 * return address, the method and the caller's sp are where the machine's calls have left them.
 *
 * Code may push words below its whole frame: registers around a call of the virtual machine,
 * arguments of a stub. All callers of sized code are in the heaps. So if there is no address of
 * code in the return address's place, the next one above is it.
 *
 * A blob with frames of size 0 has code for many purposes: stubs, adapters. The files included
 * below tell what the instructions of a machine say about a frame.
 *
 * A virtual thread's outer frames may be in the heap of objects ("frozen"). The return address of
 * the outermost frame on the stack is then a stub, the return barrier, and the frame of
 * Continuation.enterSpecial() is next on the stack.
 */

#include "lib/regs_arch.bpf.h"
#if defined(__TARGET_ARCH_x86)
#include "lib/runtime_hotspot_x86.bpf.h"
#else
#include "lib/runtime_hotspot_arm64.bpf.h"
#endif

/* ---------------------------------------------------------------- compiled code */

/* The byte of the map for the segment under way. Not 0 if unreadable. */
WALK_INLINE int hotspot_map_byte(const struct walk_ctx *c, __u64 *ret)
{
	__u64 *mine = c->w->aside.of_runtime;
	__u64 off = mine[HOTSPOT_SEGMENT] - mine[HOTSPOT_MAP];

	if (off >= HOTSPOT_MAP_BYTES) {
		off = mine[HOTSPOT_SEGMENT] % HOTSPOT_MAP_BYTES;
		mine[HOTSPOT_MAP] = mine[HOTSPOT_SEGMENT] - off;
		if (window_read(c->space, plan_words(c), HOTSPOT_MAP_BYTES,
				mine[HOTSPOT_SEGMENTS] + mine[HOTSPOT_MAP]))
			return -1;
		WALK_FENCE();
	}
	*ret = hotspot_object(c, off) & 0xff;
	return 0;
}

/* The blob of @pc into PLAN_FIRST. Not 0 if the map does not lead to one. */
WALK_INLINE int hotspot_find(const struct walk_ctx *c, const struct hotspot_process *p, __u64 pc)
{
	__u64 *mine = c->w->aside.of_runtime;

	mine[HOTSPOT_BASE] = mine[HOTSPOT_SEGMENTS] = 0;
	for (int i = 0; i < HOTSPOT_HEAPS_MAX; i++) {
		__u64 in = plan_between(pc, p->heaps[i].low, p->heaps[i].limit);

		mine[HOTSPOT_BASE] += in * p->heaps[i].low;
		mine[HOTSPOT_SEGMENTS] += in * p->heaps[i].segments;
	}
	if (!mine[HOTSPOT_SEGMENTS])
		return -1;
	WALK_FENCE();
	mine[HOTSPOT_SEGMENT] = (pc - mine[HOTSPOT_BASE]) >> (p->segment_shift & 31);
	mine[HOTSPOT_MAP] = mine[HOTSPOT_SEGMENT] + 1; /* nothing read */
	for (int i = 0; i < HOTSPOT_HOPS_MAX; i++) {
		__u64 back;

		WALK_FENCE();
		if (hotspot_map_byte(c, &back))
			return -1;
		if (!back) {
			c->w->aside.of_frame[PLAN_FIRST] =
				mine[HOTSPOT_BASE] +
				(mine[HOTSPOT_SEGMENT] << (p->segment_shift & 31)) +
				p->block_header;
			return 0;
		}
		if (back == 0xff || back > mine[HOTSPOT_SEGMENT])
			return -1;
		mine[HOTSPOT_SEGMENT] -= back;
	}
	return -1;
}

/* The code of the blob in walk_room(), which is at @blob. */
WALK_INLINE __u64 hotspot_code(const struct walk_ctx *c, const struct hotspot_process *p,
			       __u64 blob)
{
	__u64 code = hotspot_object(c, p->blob_code);

	return p->code_is_distance ? blob + (__u32)code : code;
}

WALK_INLINE __u32 hotspot_compiled(const struct walk_ctx *c, const struct hotspot_process *p,
				   __u64 pc)
{
	__u64 *frame = c->w->aside.of_frame, hash, words;
	__s64 complete;

	if (hotspot_find(c, p, pc)) {
		plan_set(c, PLAN_BROKEN, pc, FRAME_REASON_ODD);
		return WALK_NATIVE;
	}
	WALK_FENCE();
	if (window_read(c->space, plan_words(c),
			((__u64)p->blob_bytes & (HOTSPOT_BLOB_BYTES - 8)) + 8, frame[PLAN_FIRST])) {
		plan_set(c, PLAN_BROKEN, frame[PLAN_FIRST], FRAME_REASON_UNREADABLE);
		return WALK_NATIVE;
	}
	hash = walk_hash(0, hotspot_object(c, p->blob_name & ~7));
	hash = walk_hash(hash, hotspot_object(c, p->blob_method & ~7));
	hash = walk_hash(hash, (__u32)hotspot_object(c, p->blob_compile_id & ~3));
	plan_set(c, PLAN_KNOWN, frame[PLAN_FIRST],
		 hash >> 32 << 32 | (__u32)(pc - frame[PLAN_FIRST]));
	words = (__u32)hotspot_object(c, p->blob_size & ~3);
	complete = (__s32)hotspot_object(c, p->blob_complete & ~1);
	if (p->complete_is_short)
		complete = (__s16)complete;
	c->w->aside.of_runtime[HOTSPOT_CODE] = hotspot_code(c, p, frame[PLAN_FIRST]);
	c->w->aside.of_runtime[HOTSPOT_WORD] = words;
	WALK_FENCE();
	words = c->w->aside.of_runtime[HOTSPOT_WORD];
	/* a frame is far smaller; without a frame of its own, or never complete */
	if (words - 1 >= 1ull << 24 || (complete < 0 && plan_interrupted(c->w)))
		return hotspot_unsized(c, p);
	return hotspot_sized(c, words,
			     c->w->aside.of_runtime[HOTSPOT_CODE] + (complete < 0 ? 0 : complete));
}

/* ---------------------------------------------------------------- interpreted code */

/* HOTSPOT_AT becomes the pointer there. Not 0 if unreadable. */
WALK_INLINE int hotspot_follow(const struct walk_ctx *c)
{
	__u64 *mine = c->w->aside.of_runtime;

	if (window_read(c->space, plan_words(c), 8, mine[HOTSPOT_AT]))
		return -1;
	mine[HOTSPOT_AT] = plan_words(c)[0] & ~1ull; /* a mark of the pool */
	WALK_FENCE();
	return 0;
}

/* Mixes the symbol that the pointer at HOTSPOT_AT leads to into the word @hash of
 * w->aside.of_runtime. Not 0 if unreadable. */
WALK_INLINE int hotspot_symbol(const struct walk_ctx *c, const struct hotspot_process *p, int hash)
{
	__u64 *mine = c->w->aside.of_runtime, *words = plan_words(c), end;

	if (hotspot_follow(c) ||
	    window_read_some(c->space, words, HOTSPOT_SYMBOL_WORDS * 8ull, mine[HOTSPOT_AT]))
		return -1;
	WALK_FENCE();
	end = p->symbol_text + (words[0] >> (p->symbol_n & 7) * 8 & 0xffff);
	mine[hash] = walk_hash(mine[hash], words[0] & p->symbol_kept);
	for (__u64 i = 1; i < HOTSPOT_SYMBOL_WORDS; i++)
		mine[hash] = walk_hash(mine[hash], words[i] & -((i * 8 - end) >> 63));
	WALK_FENCE();
	return 0;
}

/* The value of the class's name into HOTSPOT_CLASS_VALUE. Not 0 if unreadable. */
WALK_INLINE int hotspot_class(const struct walk_ctx *c, const struct hotspot_process *p)
{
	__u64 *mine = c->w->aside.of_runtime;

	if (mine[HOTSPOT_CLASS] == mine[HOTSPOT_POOL])
		return 0;
	mine[HOTSPOT_CLASS] = mine[HOTSPOT_CLASS_VALUE] = 0;
	mine[HOTSPOT_AT] = mine[HOTSPOT_POOL] + p->pool_holder;
	if (hotspot_follow(c))
		return -1;
	mine[HOTSPOT_AT] += p->class_name;
	if (hotspot_symbol(c, p, HOTSPOT_CLASS_VALUE))
		return -1;
	mine[HOTSPOT_CLASS] = mine[HOTSPOT_POOL];
	return 0;
}

/* Mixes the names of the method and of its class. Not 0 if unreadable. HOTSPOT_AT: the name's
 * index. */
WALK_INLINE int hotspot_names(const struct walk_ctx *c, const struct hotspot_process *p)
{
	__u64 *mine = c->w->aside.of_runtime;

	mine[HOTSPOT_AT] = mine[HOTSPOT_POOL] + p->pool_entries + mine[HOTSPOT_AT] * 8;
	if (hotspot_symbol(c, p, HOTSPOT_HASH) || hotspot_class(c, p))
		return -1;
	WALK_FENCE();
	mine[HOTSPOT_HASH] = walk_hash(mine[HOTSPOT_HASH], mine[HOTSPOT_CLASS_VALUE]);
	return 0;
}

/* The check of @method into the upper half of HOTSPOT_HASH, its ConstMethod into HOTSPOT_CODE. Not
 * 0 if unreadable. */
WALK_INLINE int hotspot_read_method(const struct walk_ctx *c, const struct hotspot_process *p,
				    __u64 method)
{
	__u64 *object = plan_words(c);
	__u64 *mine = c->w->aside.of_runtime;
	__u64 names, hash;

	if (window_read(c->space, object, 8, method + p->method_const))
		return -1;
	mine[HOTSPOT_CODE] = object[0];
	WALK_FENCE();
	if (window_read(c->space, object, HOTSPOT_CONST_BYTES, mine[HOTSPOT_CODE]))
		return -1;
	mine[HOTSPOT_POOL] = hotspot_object(c, p->const_constants & ~7);
	names = hotspot_object(c, p->const_names & ~7);
	hash = walk_hash(0, mine[HOTSPOT_CODE]);
	hash = walk_hash(hash, mine[HOTSPOT_POOL]);
	mine[HOTSPOT_HASH] = walk_hash(hash, names);
	mine[HOTSPOT_AT] = names >> (p->name_index & 7) * 8 & 0xffff;
	WALK_FENCE();
	return hotspot_names(c, p);
}

/* Once a sample: the count of safepoints, without which there is no memo. */
WALK_INLINE void hotspot_begin_memo(const struct walk_ctx *c, const struct hotspot_process *p)
{
	__u64 *mine = c->w->aside.of_runtime;

	mine[HOTSPOT_MEMO] = HOTSPOT_MEMO_NONE;
	if (!p->safepoints || window_read(c->space, plan_words(c), 8, p->safepoints))
		return;
	mine[HOTSPOT_SAFEPOINTS] = plan_words(c)[0];
	mine[HOTSPOT_MEMO] = HOTSPOT_MEMO_USED;
}

/* As hotspot_read_method(), through the memo. A frame that may be no whole frame has a word that
 * may be no method, so only callers are added. */
WALK_INLINE int hotspot_find_method(const struct walk_ctx *c, const struct hotspot_process *p,
				    __u64 method)
{
	struct object_memo *memo = c->objects;
	__u64 *mine = c->w->aside.of_runtime;
	struct object_memo_entry entry = {.object = method, .process = c->identity};

	if (!mine[HOTSPOT_MEMO])
		hotspot_begin_memo(c, p);
	WALK_FENCE();
	if (!memo || mine[HOTSPOT_MEMO] != HOTSPOT_MEMO_USED)
		return hotspot_read_method(c, p, method);
	entry.count = mine[HOTSPOT_SAFEPOINTS];
	entry.value = object_memo_find(object_memo_set(memo, method, entry.process), method,
				       entry.process, entry.count);
	if (entry.value) {
		mine[HOTSPOT_HASH] = entry.value;
		mine[HOTSPOT_CODE] = (__u32)entry.value;
		return 0;
	}
	if (hotspot_read_method(c, p, method))
		return -1;
	WALK_FENCE();
	entry.value = mine[HOTSPOT_HASH] >> 32 << 32 | (__u32)mine[HOTSPOT_CODE];
	if (mine[HOTSPOT_IS_CALLER])
		object_memo_add(object_memo_set(memo, method, entry.process), &entry);
	return 0;
}

/* The frame of @method, at the bytecode @bcp. */
WALK_INLINE void hotspot_method(const struct walk_ctx *c, const struct hotspot_process *p,
				__u64 method, __u64 bcp)
{
	__u64 *mine = c->w->aside.of_runtime;

	plan_set(c, PLAN_BROKEN, method, FRAME_REASON_ODD);
	if (!hotspot_plausible(method) || hotspot_in_code(p, method))
		return;
	plan_set(c, PLAN_BROKEN, method, FRAME_REASON_UNREADABLE);
	if (hotspot_find_method(c, p, method))
		return;
	WALK_FENCE();
	plan_set(c, PLAN_KNOWN, method,
		 mine[HOTSPOT_HASH] >> 32 << 32 |
			 (__u32)(bcp - mine[HOTSPOT_CODE] - p->const_code));
}

/* At the entry of a method, whose frame has no word of the method yet: the return address is in
 * w->ra. @made: the frame pointer is the method's. */
WALK_INLINE __u32 hotspot_entered(const struct walk_ctx *c, const struct hotspot_process *p,
				  __u64 made)
{
	__u64 *mine = c->w->aside.of_runtime;
	struct walk *w = c->w;

	hotspot_method(c, p, hotspot_entry_method(c), 0);
	if (c->w->aside.of_frame[PLAN_STATE] == PLAN_KNOWN)
		c->w->aside.of_frame[PLAN_SECOND] &= ~0xffffffffull;
	WALK_FENCE();
	w->fp_at = w->fp * made;
	w->cfa = w->ra_at ? w->ra_at + 8 : w->sp;
	hotspot_entry_sender(c, p, made);
	WALK_FENCE();
	/* arguments of compiled callers, repeated for the interpreter, are in between */
	if (mine[HOTSPOT_WORD] - w->cfa < HOTSPOT_SENDER_BYTES)
		w->cfa = mine[HOTSPOT_WORD];
	return plan_check(w);
}

WALK_INLINE __u32 hotspot_interpreted(const struct walk_ctx *c, const struct hotspot_process *p)
{
	__u64 *mine = c->w->aside.of_runtime;
	struct walk *w = c->w;
	__u64 method;

	if (plan_interrupted(w) && plan_between(w->pc, p->entry, p->entry_limit)) {
		const __u64 made = hotspot_entry_made(c, p);

		hotspot_entry(c, p, made);
		WALK_FENCE();
		if (w->ra)
			return hotspot_entered(c, p, made);
	}
	WALK_FENCE();
	if (window_word(c->space, c->win, &w->place, w->fp - p->frame_bcp, &mine[HOTSPOT_WORD]) ||
	    window_word(c->space, c->win, &w->place, w->fp + HOTSPOT_METHOD, &method) ||
	    window_word(c->space, c->win, &w->place, w->fp + HOTSPOT_SENDER_SP, &w->cfa)) {
		plan_set(c, PLAN_BROKEN, w->fp, FRAME_REASON_UNREADABLE);
		return WALK_NATIVE;
	}
	WALK_FENCE();
	hotspot_method(c, p, method, mine[HOTSPOT_WORD]);
	WALK_FENCE();
	w->ra_at = w->fp + 8;
	w->fp_at = w->fp;
	if (w->cfa < w->fp + 16)
		w->cfa = w->fp + 16;
	return plan_check_by_fp(w);
}

/* ---------------------------------------------------------------- the step */

WALK_INLINE __u32 hotspot_plan(const struct walk_ctx *c)
{
	const struct hotspot_process *p = hotspot_process_of(c);
	const __u64 pc = c->w->pc - c->w->back;

	c->w->aside.of_runtime[HOTSPOT_IS_CALLER] =
		c->w->back & (c->w->aside.of_frame[PLAN_STATE] == PLAN_KNOWN);
	c->w->aside.of_frame[PLAN_STATE] = 0;
	if (!p || !hotspot_in_code(p, pc))
		return WALK_NATIVE;
	WALK_FENCE();
	hotspot_look(c);
	WALK_FENCE();
	if (plan_between(pc, p->interpreter, p->interpreter_limit) && !hotspot_has_returned(c))
		return hotspot_interpreted(c, p);
	return hotspot_compiled(c, p, pc);
}

WALK_INLINE __u32 hotspot_step(const struct walk_ctx *c)
{
	return plan_store(c, FRAME_RUNTIME_HOTSPOT, 0);
}

WALK_RUNTIME hotspot_walk = {.plan = hotspot_plan, .step = hotspot_step};

#ifdef __bpf__

#include "lib/kernel.bpf.h"
#include <bpf/bpf_helpers.h>

/* The agent writes. It sets the flag for memory on demand where the kernel permits it. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, HOTSPOT_PROCESSES_MAX);
	__type(key, __u32);
	__type(value, struct hotspot_process);
} hotspot_processes __weak SEC(".maps");

#endif

#endif
