/* SPDX-License-Identifier: Apache-2.0 */
/* The walker over a recorded stack, for the machine of __TARGET_ARCH_: the code of walkcase_x86.c
 * and walkcase_arm64.c. No include guard: each file includes this text once. */

#include <string.h>

#include "base/cleanup.h"
#include "lib/table_host.h"
#include "lib/walk.bpf.h"
#include "support/walkcase.h"
#include "support/walkregs.h"

_Static_assert(WALKCASE_FRAMES == WALK_SLOTS, "the walker's slots");

/* The first word at or after @address. */
static size_t find_word(const struct walkcase *c, uint64_t address)
{
	size_t low = 0, high = c->n_words;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (c->words[mid].address < address)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* The walker reads more than necessary; unrecorded memory after the first word is zero. */
WINDOW_INLINE int window_read(const struct table_space *space, void *to, __u64 n, __u64 address)
{
	const struct walkcase *c = (const struct walkcase *)space;
	size_t i = find_word(c, address);

	if (i == c->n_words || c->words[i].address - address >= n)
		return -1;
	memset(to, 0, n);
	for (; i < c->n_words && c->words[i].address - address <= n - sizeof(uint64_t); i++)
		memcpy((char *)to + (c->words[i].address - address), &c->words[i].value,
		       sizeof(uint64_t));
	return 0;
}

WALK_INLINE __u64 walk_thread_pointer(const struct table_space *space)
{
	return ((const struct walkcase *)space)->thread_pointer;
}

WALK_INLINE const struct table_exe *walk_exe(const struct table_space *space, __u32 exe)
{
	return hostspace_exe((const struct hostspace *)space, exe);
}

WALK_INLINE void walk_used(const struct table_space *space, __u32 exe, __u64 n_frames)
{
	hostspace_used((struct hostspace *)space, exe, n_frames);
}

static void walk_recorded(struct walkcase *c, struct regs *regs, struct walkcase_stack *ret)
{
	struct walk w = {0};
	struct window win;
	__u64 frames[WALK_SLOTS];
	const struct walk_ctx ctx = {
		.w = &w,
		.regs = regs,
		.win = &win,
		.frames = frames,
		.space = &c->space.space,
		.mode = c->mode,
	};

	walk_begin(&ctx, 0, c->space.n_mappings);
	for (int i = 0; i < WALK_PROGRAMS && w.end == WALK_ON; i++)
		walk_on(&ctx, NULL);
	memcpy(ret->pcs, frames, sizeof(frames));
	ret->n = w.n;
	ret->end = w.end == WALK_ON ? SAMPLE_END_MAX_FRAMES : w.end;
}
