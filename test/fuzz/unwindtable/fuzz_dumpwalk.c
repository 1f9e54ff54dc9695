// SPDX-License-Identifier: Apache-2.0
/* Registers, stack bytes and the excerpt are the process's own choice. */
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "profile/sample.h"
#include "shared/python.h"
#include "support/usertables.h"
#include "unwindtable/dumpwalk.h"

/**
 * struct input - the first bytes; the others are the excerpt and the stack
 * @n_excerpt: parts of 56 bytes; they come first
 * @sparse:    odd: the dump leaves out absent pages
 * @gaps:      two bits before each piece but the first: an index of gap_pieces
 */
struct input {
	uint64_t pc, sp, fp, at;
	uint8_t n_maps, mode, n_excerpt, sparse;
	uint32_t gaps;
};

/* Pieces left out: none, a part of a page, the largest hole of a dump, and more. */
static const uint16_t gap_pieces[] = {0, 1, STACK_DUMP_HOLE_PAGES * 4, 4000};

static void set_pieces(uint32_t gaps, uint16_t ret[STACK_DUMP_PIECES])
{
	ret[0] = 0;
	for (size_t i = 1; i < STACK_DUMP_PIECES; i++, gaps >>= 2)
		ret[i] = (uint16_t)(ret[i - 1] + 1 + gap_pieces[gaps & 3]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct usertables *u;
	static struct dumpwalk *cw;
	/* all code is the loop's */
	static const struct python_process python = {
		.loops = {{0, 1ull << 47}},
		.frame_entry = 70,
		.activation = PYTHON_OWNER,
	};
	static _Alignas(8) uint8_t excerpt[UINT8_MAX * 56];
	uint16_t pieces[STACK_DUMP_PIECES];
	struct dumpwalk_stack got;
	struct dumpwalk_from from;
	struct sample sample = {0};
	struct input in;
	struct regs regs;
	size_t n_excerpt;

	if (size < sizeof(in))
		return 0;
	if (!u && (!(u = usertables_new()) || dumpwalk_new(usertables_tables(u), &cw)))
		abort();
	memcpy(&in, data, sizeof(in));
	data += sizeof(in);
	size -= sizeof(in);
	n_excerpt = in.n_excerpt * 56u < size ? in.n_excerpt * 56u : size;
	memcpy(excerpt, data, n_excerpt);
	data += n_excerpt;
	size -= n_excerpt;
	set_pieces(in.gaps, pieces);
	regs = usertables_regs(in.pc, in.sp, in.fp);
	from = (struct dumpwalk_from){
		.regs = &regs,
		.at = in.at & ~7ull,
		.bytes = data,
		.n_bytes = size < STACK_DUMP_BYTES ? size : STACK_DUMP_BYTES,
		.pieces = in.sparse & 1 ? pieces : NULL,
		.maps = usertables_maps(u),
		.n_maps = in.n_maps % (USERTABLES_MAPS + 1),
		.mode = in.mode % SETTINGS_UNWIND_MAX,
		.runtime = n_excerpt ? FRAME_RUNTIME_PYTHON : FRAME_RUNTIME_NONE,
		.process = n_excerpt ? &python : NULL,
		.excerpt = excerpt,
		.n_excerpt = n_excerpt,
	};
	dumpwalk_walk(cw, &from, &got);
	dumpwalk_rest(cw);
	if (!got.n || got.n > SAMPLE_USER_FRAMES_MAX || got.n_rows >= got.n ||
	    got.end >= SAMPLE_END_MAX || got.n_missing > DUMPWALK_MISSING_MAX ||
	    sample_set_user(&sample, got.words, got.n, got.n_rows))
		abort();
	return 0;
}
