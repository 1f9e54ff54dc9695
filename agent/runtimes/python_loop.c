// SPDX-License-Identifier: Apache-2.0
/*
 * Compilers split rare code off a function (".cold"). The symbol of the split part is local, and
 * gone from a stripped file. But the loop jumps into the part, and the part has a range of its own
 * in .eh_frame, which strip(1) keeps.
 *
 * A jump out of the loop leads into a part in two cases: the jump is conditional, or its target is
 * not the begin of a range. An unconditional jump to the begin of a range may be a call at the end
 * of a function.
 *
 * In builds with tail calls (3.14 and later) each instruction has a function, and these jump to
 * each other. The loop's function holds the entry frame of the activation, so the function cannot
 * jump to the first instruction's function, but calls this function: the loop's function is on the
 * stack below the instruction's, once for each activation.
 */
#include "runtimes/python_loop.h"

#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "codescan/insn.h"
#include "elf/elffile.h"
#include "runtimes/python_image.h"
#include "unwind/ehindex.h"

/* Targets outside of the known parts that are looked up in .eh_frame; a loop has less than 10.
 * Reached: `no_loop`. */
#define PYTHON_LOOP_TARGETS_MAX 4096

/* Units of work to decode a byte of code. */
#define DECODE_COST 10u

DEFINE_CLEANUP(struct ehindex *, ehindex_freep, ehindex_free);

struct parts {
	const struct elffile *file;
	struct ehindex *index; /* NULL: the file has none */
	insn_decode_fn *decode;
	size_t step; /* bytes to the next try behind bytes that are no instruction */
	uint64_t (*items)[2];
	size_t n;
	size_t n_targets;
};

static bool has_target(const struct parts *p, uint64_t vaddr)
{
	for (size_t i = 0; i < p->n; i++)
		if (vaddr >= p->items[i][0] && vaddr < p->items[i][1])
			return true;
	return false;
}

/* A jump from the loop to @insn->target. 0, an outcome, -errno. */
static int follow(struct parts *p, const struct insn *insn)
{
	struct ehrange range;
	int r;

	if ((insn->flow != INSN_JUMP && insn->flow != INSN_BRANCH) || !p->index ||
	    has_target(p, insn->target))
		return 0;
	if (++p->n_targets > PYTHON_LOOP_TARGETS_MAX)
		return PYTHON_NO_LOOP;
	r = ehindex_find(p->index, insn->target, &range);
	if (r)
		return r < 0 ? r : 0;
	if (insn->flow == INSN_JUMP && range.start == insn->target)
		return 0;
	if (p->n == PYTHON_LOOPS_MAX || range.end - range.start > PYTHON_LOOP_BYTES_MAX)
		return PYTHON_NO_LOOP;
	p->items[p->n][0] = range.start;
	p->items[p->n][1] = range.end;
	p->n++;
	return 0;
}

/* Follows the jumps of one part. */
static int scan(struct parts *p, uint64_t vaddr, size_t n)
{
	_cleanup_(freep) uint8_t *code = malloc(n);
	uint64_t off;
	int r = 0;

	if (!code)
		return -ENOMEM;
	if (!elffile_spend(p->file, n * DECODE_COST))
		return PYTHON_MALFORMED;
	if (!elffile_off_of_vaddr(p->file, vaddr, &off))
		return PYTHON_MALFORMED;
	r = elffile_read(p->file, off, code, n);
	if (r)
		return r < 0 ? r : PYTHON_MALFORMED;
	for (size_t at = 0; !r && at < n;) {
		struct insn insn;

		if (!p->decode(code + at, n - at, vaddr + at, &insn)) {
			at += p->step;
			continue;
		}
		at += insn.length;
		r = follow(p, &insn);
	}
	return r;
}

int python_loop_find(const struct elffile *ef, uint64_t vaddr, uint64_t size,
		     uint64_t ret[PYTHON_LOOPS_MAX][2], size_t *ret_n)
{
	const bool is_x86 = elffile_machine(ef) == EM_X86_64;
	_cleanup_(ehindex_freep) struct ehindex *index = NULL;
	struct parts p = {
		.file = ef,
		.decode = is_x86 ? insn_decode_x86 : insn_decode_arm64,
		.step = is_x86 ? 1 : 4,
		.items = ret,
		.n = 1,
	};
	int r;

	if (!is_x86 && elffile_machine(ef) != EM_AARCH64)
		return PYTHON_MACHINE;
	if (!size || size > PYTHON_LOOP_BYTES_MAX)
		return PYTHON_NO_LOOP;
	ret[0][0] = vaddr;
	ret[0][1] = vaddr + size;
	r = ehindex_open(ef, &index);
	p.index = index;
	if (r > 0)
		r = 0; /* without an index the symbol's part has to do */
	for (size_t i = 0; !r && i < p.n; i++)
		r = scan(&p, ret[i][0], ret[i][1] - ret[i][0]);
	if (!r)
		*ret_n = p.n;
	return r;
}
