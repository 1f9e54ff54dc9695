/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PODPROF_TEST_BPF_RUNTIME_TEST_BPF_H
#define PODPROF_TEST_BPF_RUNTIME_TEST_BPF_H

/* The step of the test runtime (runtime_test.h), included by lib/walk.bpf.h through
 * FRAME_RUNTIMES_TEST, in the kernel and on the host. */

#include "bpf/runtime_test.h"

/* Accessor: the runtime's addresses; NULL: no process has this runtime. */
WALK_INLINE const struct runtime_test *runtime_test_of(const struct table_space *space);

/* The words of w->aside.of_runtime. */
enum {
	TEST_PHASE,
	TEST_AT,    /* the next frame, set with the first activation */
	TEST_BEGUN, /* 1: TEST_AT is set */
};

enum test_phase {
	TEST_NATIVE,
	TEST_FRAMES, /* in an activation of the loop */
	TEST_DONE,   /* all frames are stored; the loop's caller is next */
};

WALK_INLINE __u32 test_broken(const struct walk_ctx *c, enum frame_reason reason)
{
	c->w->aside.of_runtime[TEST_PHASE] = TEST_NATIVE;
	return walk_store_broken(c, FRAME_RUNTIME_TEST, reason, c->w->aside.of_runtime[TEST_AT]);
}

WALK_INLINE __u32 test_step(const struct walk_ctx *c)
{
	const struct runtime_test *rt = runtime_test_of(c->space);
	__u64 *mine = c->w->aside.of_runtime;
	struct walk_room *room = walk_room(c);
	const __u64 *frame = room->window.words; /* struct runtime_test_frame */
	struct walk *w = c->w;

	if (!rt)
		return WALK_NATIVE;
	if (mine[TEST_PHASE] == TEST_DONE) {
		mine[TEST_PHASE] = TEST_NATIVE;
		return WALK_NATIVE;
	}
	if (mine[TEST_PHASE] == TEST_NATIVE) {
		if (w->aside.pc - rt->loop_start >= rt->loop_bytes)
			return WALK_NATIVE;
		mine[TEST_PHASE] = TEST_FRAMES;
		if (!mine[TEST_BEGUN])
			mine[TEST_AT] = rt->frames;
		mine[TEST_BEGUN] = 1;
	}
	WALK_FENCE();
	if (mine[TEST_AT] & 7)
		return test_broken(c, FRAME_REASON_ODD);
	if (window_fill(c->space, &room->window, &w->aside.place, mine[TEST_AT]) ||
	    w->aside.place.bytes < sizeof(struct runtime_test_frame))
		return test_broken(c, FRAME_REASON_UNREADABLE);
	WALK_FENCE();
	mine[TEST_AT] = frame[0];
	if (frame[3])
		mine[TEST_PHASE] = TEST_DONE;
	return walk_store_runtime(c, FRAME_RUNTIME_TEST, frame[1], frame[2]);
}

WALK_RUNTIME test_walk = {.step = test_step};

#ifdef __bpf__
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct runtime_test);
} runtime_test_map __weak SEC(".maps");

WALK_INLINE const struct runtime_test *runtime_test_of(const struct table_space *space)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&runtime_test_map, &zero);
}

struct stack;

WALK_INLINE int test_begin(struct stack *s)
{
	return s != NULL;
}
#endif

#endif
