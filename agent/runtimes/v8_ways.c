// SPDX-License-Identifier: Apache-2.0
/*
 * The table of source positions has entries for instructions with a position. Instructions without
 * one, such as moves at the beginning of a block, belong to the last entry before them in the code,
 * which is not always one of the blocks before them in the program.
 */
#include "runtimes/v8_ways.h"

#include "codescan/insn.h"

struct walk {
	const uint8_t *code;
	size_t n;
	size_t off;
	struct insn insn;
};

static bool next(struct walk *w)
{
	w->off += w->insn.length;
	/* addresses are distances */
	return w->off < w->n &&
	       insn_decode_x86(w->code + w->off, w->n - w->off, w->off, &w->insn) && w->insn.length;
}

static bool goes_on(const struct insn *insn)
{
	return insn->flow != INSN_JUMP && insn->flow != INSN_RETURN &&
	       insn->flow != INSN_INDIRECT && insn->flow != INSN_END;
}

/* Whether an indirect jump takes its target from a table. The others, to the address in a register
 * or a variable, leave the code. */
static bool is_by_table(const struct walk *w)
{
	const uint8_t *at = w->code + w->off, *end = at + w->insn.length;

	/* notrack, REX */
	while (at < end && (*at == 0x3e || *at >> 4 == 4))
		at++;
	/* jmp with a base and an index */
	return end - at > 2 && at[0] == 0xff && (at[1] & 0xc7) != 0xc4 && (at[1] & 0x3f) == 0x24;
}

/* The instruction that begins at @at, or the call that ends behind @at; and where the code begins
 * that leads to it without a jump. */
static bool find_block(struct walk *w, uint32_t at, size_t *ret)
{
	*ret = 0;
	while (next(w) && w->off <= at) {
		if (w->off == at ||
		    (w->insn.flow == INSN_CALL && w->off + w->insn.length == at + 1ull))
			return true;
		if (!goes_on(&w->insn))
			*ret = w->off + w->insn.length;
	}
	return false;
}

bool v8_ways_find(const uint8_t *code, size_t n, uint32_t mark, uint32_t at, struct v8_ways *ret)
{
	struct walk w = {.code = code, .n = n};
	size_t block, first, last;

	*ret = (struct v8_ways){.from_mark = false};
	if (mark > at || !find_block(&w, at, &block))
		return false;
	last = w.off;
	ret->is_call = w.insn.flow == INSN_CALL && at != last;
	ret->from_mark = block <= mark;
	first = ret->from_mark ? mark + 1 : block;
	w = (struct walk){.code = code, .n = n};
	while (next(&w)) {
		const struct insn *insn = &w.insn;
		const bool jumps = insn->flow == INSN_JUMP || insn->flow == INSN_BRANCH;

		if ((!jumps || insn->target < first || insn->target > last) &&
		    (insn->flow != INSN_INDIRECT || !is_by_table(&w)))
			continue;
		if (ret->n_jumps == V8_WAYS_MAX)
			return false;
		ret->jumps[ret->n_jumps++] = (uint32_t)w.off;
	}
	return true;
}
