// SPDX-License-Identifier: Apache-2.0
/*
 * The table of source positions has entries for instructions with a position. Instructions without
 * one, such as moves at the beginning of a block, belong to the last entry before them in the code,
 * which is not always one of the blocks before them in the program.
 */
#include "runtimes/v8_ways.h"

#include <elf.h>
#include <string.h>

#include "codescan/insn.h"

struct walk {
	uint16_t machine;
	const uint8_t *code;
	size_t n;
	size_t off;
	struct insn insn;
};

/* arm64's instruction at @off. */
static uint32_t word_at(const struct walk *w, size_t off)
{
	uint32_t word;

	memcpy(&word, w->code + off, sizeof(word));
	return word;
}

/* Whether constants follow: ldr xzr, with their number. They are not decoded: no instruction behind
 * is known. */
static bool is_pool(const struct walk *w)
{
	return w->machine == EM_AARCH64 && (word_at(w, w->off) & 0xff00001f) == 0x5800001f;
}

static bool next(struct walk *w)
{
	insn_decode_fn *decode = w->machine == EM_X86_64 ? insn_decode_x86 : insn_decode_arm64;

	w->off += w->insn.length;
	/* addresses are distances */
	return w->off < w->n && decode(w->code + w->off, w->n - w->off, w->off, &w->insn) &&
	       w->insn.length && !is_pool(w);
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

	/* behind add x, x, w, uxtw #2 */
	if (w->machine == EM_AARCH64)
		return w->off >= 4 && (word_at(w, w->off - 4) & 0xffe0fc00) == 0x8b204800;
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

bool v8_ways_find(uint16_t machine, const uint8_t *code, size_t n, uint32_t mark, uint32_t at,
		  struct v8_ways *ret)
{
	struct walk w = {.machine = machine, .code = code, .n = n};
	size_t block, first, last;

	*ret = (struct v8_ways){.from_mark = false};
	if (mark > at || !find_block(&w, at, &block))
		return false;
	last = w.off;
	ret->is_call = w.insn.flow == INSN_CALL && at != last;
	ret->from_mark = block <= mark;
	first = ret->from_mark ? mark + 1 : block;
	w = (struct walk){.machine = machine, .code = code, .n = n};
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
