// SPDX-License-Identifier: Apache-2.0
/*
 * Functions begin where symbols say, where calls lead, at addresses that code computes, and, when
 * all of that has been followed (codescan_function.c), at aligned places that nothing has reached.
 */
#include "codescan/codescan.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "codescan/codeentries.h"
#include "codescan/codescan_state.h"

/* What compilers align functions to, and what is tried where nothing tells of one. */
#define FUNCTION_ALIGN 16u
/* Of a linkage table's entries. */
#define STUB_ALIGN     8u
/* Bytes of code from which on looking for a few functions' callers takes longer than all of the
 * file's tables (220 ms for a Go program of 60 MB, where 1 KB is undescribed); and the part of it
 * that is worth it all the same. */
#define LARGE	       ((uint64_t)4 << 20)
#define LARGE_SHARE    128u
/* Times that functions are followed to find those that do not return: each time, those that call
 * those of the time before. */
#define ROUNDS	       6
/* Functions that have to agree that frame pointers are kept. */
#define FRAMES_COUNT   4u
/* Described code between two gaps that are looked at together. */
#define WINDOW_BETWEEN 4096u

static int scan_entries(struct codescan *s)
{
	bool good;
	int r = 0;

	/* those that are found meanwhile come behind */
	for (size_t i = 0; i < s->n_entries && !r; i++) {
		uint32_t off = s->entries[i];

		if (s->state_at[off] || (s->flags[off] & CODE_BAD))
			continue;
		r = codescan_function(s, off, false, &good);
		if (s->writing)
			*(good ? &s->stats->functions : &s->stats->dropped) += 1;
	}
	return r;
}

static void forget_all(struct codescan *s)
{
	for (size_t i = 0; i < s->n; i++)
		s->flags[i] &= CODE_GAP | CODE_ENTRY | CODE_NORETURN | CODE_POINTED;
	memset(s->state_at, 0, s->n * sizeof(*s->state_at));
}

/* Functions that do not return are known by following them, and what calls them is followed rightly
 * only then: until no more are found. */
static int find_noreturn(struct codescan *s)
{
	int r = 0;

	for (int round = 0; round < ROUNDS && !r; round++) {
		size_t n = s->n_noreturn;

		s->n_frames = s->n_saves = 0;
		r = scan_entries(s);
		forget_all(s);
		if (s->n_noreturn == n)
			break;
	}
	s->writing = true;
	return r;
}

/* A place where a function may begin. */
static int guess(struct codescan *s, uint32_t off)
{
	size_t n = s->n_entries;
	struct insn insn;
	bool good;
	int r;

	if (!(s->flags[off] & CODE_GAP) || s->state_at[off] ||
	    (s->flags[off] & (CODE_ENTRY | CODE_BAD | CODE_INSIDE)) ||
	    !s->decode(s->code + off, s->n - off, s->vaddr + off, &insn) ||
	    insn.flow == INSN_PADDING)
		return 0;
	r = codescan_function(s, off, true, &good);
	if (!r && good) {
		s->flags[off] |= CODE_ENTRY;
		s->stats->functions++;
	}
	/* what it calls */
	return r || s->n_entries == n ? r : scan_entries(s);
}

/* An entry of a static program's linkage table, by which calls find the variant of memcpy() and its
 * like that is right for this machine: a jump through a word. Linkers describe the tables of
 * dynamic programs only. */
static bool is_stub(const struct codescan *s, uint32_t off)
{
	struct insn insn;

	if (!s->decode(s->code + off, s->n - off, s->vaddr + off, &insn))
		return false;
	if ((insn.flow == INSN_NEXT || insn.flow == INSN_PADDING) && !insn.sp) /* endbr64 */
		off += insn.length;
	return off < s->n && s->decode(s->code + off, s->n - off, s->vaddr + off, &insn) &&
	       insn.flow == INSN_INDIRECT && insn.by_word;
}

static int scan_stubs(struct codescan *s)
{
	bool good;
	int r = 0;

	for (uint32_t off = (uint32_t)(-s->vaddr % STUB_ALIGN); off < s->n && !r; off += STUB_ALIGN)
		if ((s->flags[off] & CODE_GAP) && !s->state_at[off] && codescan_go_on(s) &&
		    is_stub(s, off))
			r = codescan_function(s, off, false, &good);
	return r;
}

/* What nobody told of: where something points, and where compilers would let a function begin. What
 * is found may point elsewhere, so once more. */
static int scan_rest(struct codescan *s)
{
	uint32_t first = (uint32_t)(-s->vaddr % FUNCTION_ALIGN);
	int r = 0;

	for (int round = 0; round < 2; round++) {
		for (uint32_t off = 0; off < s->n && !r; off++)
			if (s->flags[off] & CODE_POINTED)
				r = guess(s, off);
		for (uint32_t off = first; round && off < s->n && !r; off += FUNCTION_ALIGN)
			r = guess(s, off);
	}
	return r;
}

/* ---------------------------------------------------------------- an image */

/* The end of the row, or of the nothing in front of the first one, that has @at. */
static uint64_t row_end(const struct rows *known, size_t i, uint64_t end)
{
	size_t next = i == (size_t)-1 ? 0 : i + 1;

	if (next == rows_count(known) || rows_at(known, next).vaddr > end)
		return end;
	return rows_at(known, next).vaddr;
}

static bool is_gap(const struct rows *known, size_t i)
{
	return i == (size_t)-1 || rows_at(known, i).rule == 0;
}

static void mark_gaps(struct codescan *s, const struct rows *known)
{
	uint64_t end = s->vaddr + s->n, at = s->vaddr, to;

	for (size_t i = rows_find(known, at); at < end; i++, at = to) {
		to = row_end(known, i, end);
		if (is_gap(known, i))
			memset(s->flags + (at - s->vaddr), CODE_GAP, to - at);
	}
}

static void scan_deinit(struct codescan *s)
{
	free(s->code);
	free(s->flags);
	free(s->state_at);
	free(s->states);
	free(s->slots);
	free(s->entries);
	free(s->ways);
	free(s->reached);
}

static int scan_init(struct codescan *s, uint64_t off, const struct rows *known)
{
	s->code = malloc(s->n);
	s->flags = calloc(s->n, 1);
	s->state_at = calloc(s->n, sizeof(*s->state_at));
	s->slots = calloc(CODESCAN_SLOTS, sizeof(*s->slots));
	if (!s->code || !s->flags || !s->state_at || !s->slots)
		return -ENOMEM;
	mark_gaps(s, known);
	return elffile_read(s->file, off, s->code, s->n);
}

/* Whether most functions that store the caller's frame pointer set it to their own frame: then it
 * tells where callers are, in code of interpreters and run-time compilers, too, whose pieces are no
 * functions. */
static bool keeps_frames(const struct codescan *s)
{
	return s->n_saves >= FRAMES_COUNT && s->n_frames > s->n_saves / 2;
}

/* Gaps that are near each other, and what is between them. */
struct window {
	uint64_t start, end;
	uint64_t bytes; /* of the gaps */
};

/* The next window of [@from, @end). False if there is none. */
static bool next_window(const struct rows *known, uint64_t from, uint64_t end, struct window *ret)
{
	struct window w = {0};
	uint64_t to;

	for (size_t i = rows_find(known, from); from < end; i++, from = to) {
		to = row_end(known, i, end);
		if (!is_gap(known, i) || to - from < FUNCTION_ALIGN)
			continue;
		if (w.bytes && (from - w.end > WINDOW_BETWEEN || to - w.start > CODESCAN_BYTES_MAX))
			break;
		if (!w.bytes)
			w.start = from;
		w.bytes += to - from;
		w.end = to;
	}
	*ret = w;
	return w.bytes != 0;
}

static int scan_window(struct codescan *s, const struct window *w, const struct rows *known,
		       const struct codeentries *entries)
{
	uint64_t off;
	int r;

	if (!elffile_off_of_vaddr(s->file, w->start, &off))
		return 0;
	r = scan_init(s, off, known);
	for (size_t i = codeentries_find(entries, w->start); !r && i < entries->n; i++) {
		const struct codeentry *e = &entries->items[i];

		if (e->vaddr >= w->end)
			break;
		if (e->pointed)
			s->flags[e->vaddr - s->vaddr] |= CODE_POINTED;
		else
			r = codescan_add_entry(s, e->vaddr);
	}
	if (!r)
		r = find_noreturn(s);
	if (r || keeps_frames(s))
		return r;
	r = scan_entries(s);
	if (!r)
		r = scan_stubs(s);
	return r ? r : scan_rest(s);
}

static int scan_segment(const struct elffile *file, uint64_t start, uint64_t end,
			const struct rows *known, const struct codeentries *entries,
			struct rows *rows, struct codescan_stats *stats)
{
	struct window w;
	int r = 0;

	for (; !r && next_window(known, start, end, &w); start = w.end) {
		_cleanup_(scan_deinit) struct codescan s = {.file = file,
							    .rows = rows,
							    .stats = stats,
							    .vaddr = w.start,
							    .n = w.end - w.start};

		stats->bytes += w.bytes;
		if (s.n > CODESCAN_BYTES_MAX)
			continue;
		s.machine = elffile_machine(file) == EM_AARCH64 ? CFI_ARM64 : CFI_X86_64;
		s.decode = s.machine == CFI_ARM64 ? insn_decode_arm64 : insn_decode_x86;
		r = scan_window(&s, &w, known, entries);
	}
	return r;
}

static bool is_code(const struct elffile_segment *s)
{
	return (s->flags & PF_X) && s->filesz && s->vaddr + s->filesz >= s->vaddr;
}

int codescan_add(const struct elffile *file, const struct rows *known, struct rows *rows,
		 struct codescan_stats *ret)
{
	_cleanup_(codeentries_deinit) struct codeentries entries = {0};
	const struct elffile_segment *segments;
	size_t n;
	int r = codeentries_read(file, known, &entries);

	*ret = (struct codescan_stats){0};
	segments = elffile_segments(file, &n);
	for (size_t i = 0; i < n && !r; i++)
		if (is_code(&segments[i]))
			r = scan_segment(file, segments[i].vaddr,
					 segments[i].vaddr + segments[i].filesz, known, &entries,
					 rows, ret);
	return r;
}

uint64_t codescan_wanted(const struct elffile *file, const struct rows *known)
{
	const struct elffile_segment *segments;
	uint64_t total = 0, code = 0;
	size_t n;

	segments = elffile_segments(file, &n);
	for (size_t i = 0; i < n; i++) {
		uint64_t at = segments[i].vaddr, end = at + segments[i].filesz;
		struct window w;

		if (is_code(&segments[i]) &&
		    __builtin_add_overflow(code, segments[i].filesz, &code))
			return 0;
		for (; is_code(&segments[i]) && next_window(known, at, end, &w); at = w.end)
			if (__builtin_add_overflow(total, w.bytes, &total))
				return 0;
	}
	if (total < CODESCAN_BYTES_MIN || total > CODESCAN_BYTES_MAX)
		return 0;
	return code > LARGE && total < code / LARGE_SHARE ? 0 : total;
}
