// SPDX-License-Identifier: Apache-2.0
/*
 * Functions begin at symbols, at call targets, at addresses computed by code and, after following
 * all of these, at aligned places that nothing has reached. codefunction.c follows each.
 */
#include "codescan/codescan.h"

#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/vec.h"
#include "codescan/codeentries.h"
#include "codescan/codegaps.h"
#include "codescan/codefunction.h"

/* The alignment of functions by compilers, and of guessed entries. */
#define FUNCTION_ALIGN 16u
/* Of a linkage table's entries. */
#define STUB_ALIGN     8u
/* Bytes of code above which a search for a few functions' callers takes longer than all of the
 * file's tables (220 ms for a Go program of 60 MB, with 1 KB undescribed); and the undescribed part
 * that justifies it all the same. */
#define LARGE	       ((uint64_t)4 << 20)
#define LARGE_SHARE    128u
/* Passes over the functions to find those without a return. Each pass finds the callers of the
 * previous pass's functions. */
#define ROUNDS	       6
/* Functions that must agree on keeping frame pointers. */
#define FRAMES_COUNT   4u
/* Bytes of described code between two gaps in the same window. */
#define WINDOW_BETWEEN 4096u
/* Units of work for a byte of a window, which is cleared in each round. */
#define WINDOW_COST    (2ull * ROUNDS)

/* ---------------------------------------------------------------- functions of a window */

/* Looks at the new entries. Followed functions append more. */
static int scan_entries(struct codescan *s)
{
	bool good;
	int r = 0;

	while (s->n_scanned < s->n_entries && !r) {
		uint32_t off = s->entries[s->n_scanned++];

		if (s->state_at[off] || (s->flags[off] & CODE_BAD))
			continue;
		r = codescan_function(s, off, false, &good);
		*(good ? &s->n_good : &s->n_dropped) += 1;
	}
	return r;
}

/* Whether most functions that store the caller's frame pointer set it to their own frame. Then the
 * frame pointer finds the callers, also in code of interpreters and run-time compilers, whose
 * pieces are not functions. */
static bool keeps_frames(const struct codescan *s)
{
	return s->n_saves >= FRAMES_COUNT && s->n_frames > s->n_saves / 2;
}

/* Looks at all entries again, as if for the first time. */
static int scan_again(struct codescan *s)
{
	codescan_forget_all(s);
	s->n_scanned = 0;
	return scan_entries(s);
}

/* Following finds functions without a return, and only then are their callers followed correctly.
 * So this repeats until there are no more, or until there is nothing to follow for: *@ret_keeps.
 * Following also finds entries, where the functions before end: with new ones the last round is
 * repeated. */
static int scan_functions(struct codescan *s, bool *ret_keeps)
{
	size_t n_noreturn = s->n_noreturn, n_entries = s->n_entries;
	int r = scan_entries(s), round = 1;

	for (; !r && !keeps_frames(s) && n_noreturn != s->n_noreturn && round < ROUNDS; round++) {
		n_noreturn = s->n_noreturn;
		n_entries = s->n_entries;
		r = scan_again(s);
	}
	*ret_keeps = keeps_frames(s);
	if (!r && !*ret_keeps && (n_noreturn != s->n_noreturn || n_entries != s->n_entries))
		r = scan_again(s);
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
	    (s->flags[off] & (CODE_ENTRY | CODE_BAD | CODE_FOLLOWED)) ||
	    !s->decode(s->code + off, s->n - off, s->vaddr + off, &insn) ||
	    insn.flow == INSN_PADDING)
		return 0;
	r = codescan_function(s, off, true, &good);
	if (!r && good) {
		s->flags[off] |= CODE_ENTRY;
		s->n_good++;
	}
	/* its call targets */
	return r || s->n_entries == n ? r : scan_entries(s);
}

/* An entry of a static program's linkage table: a jump through a word. Calls use it to find the
 * variant of memcpy() and similar functions for this machine. Linkers describe only the tables of
 * dynamic programs. */
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

/* The next jump of a stub at or behind @off: its opcode and ModRM byte. */
static uint32_t next_jump(const struct codescan *s, uint32_t off)
{
	static const uint8_t jump[] = {0xff, 0x25};

	for (; off + sizeof(jump) <= s->n; off++) {
		const uint8_t *at = memchr(s->code + off, jump[1], s->n - off);

		if (!at)
			break;
		off = (uint32_t)(at - s->code);
		if (off && at[-1] == jump[0])
			return off - 1;
	}
	return UINT32_MAX;
}

static int scan_stubs(struct codescan *s)
{
	uint32_t off = (uint32_t)(-s->vaddr % STUB_ALIGN), jump;
	bool good;
	int r = 0;

	if (s->machine != CFI_X86_64)
		return 0;
	for (jump = next_jump(s, off); !r && jump != UINT32_MAX; off += STUB_ALIGN) {
		while (jump < off)
			jump = next_jump(s, jump + 2);
		if (jump == UINT32_MAX)
			break;
		/* two instructions: not further away */
		if (jump - off >= 2 * INSN_X86_BYTES)
			off += (jump - off - 2 * INSN_X86_BYTES) / STUB_ALIGN * STUB_ALIGN;
		if ((s->flags[off] & CODE_GAP) && !s->state_at[off] && codescan_steps(s, 1) &&
		    is_stub(s, off))
			r = codescan_function(s, off, false, &good);
	}
	return r;
}

/* The first place at or behind @off that data points to; s->n without any. */
static uint32_t next_pointed(const struct codescan *s, uint32_t off)
{
	uint64_t word;

	for (; off + sizeof(word) <= s->n; off += sizeof(word)) {
		memcpy(&word, s->flags + off, sizeof(word));
		word &= CODE_EACH_BYTE * CODE_POINTED;
		if (word)
			return off + (uint32_t)__builtin_ctzll(word) / 8;
	}
	while (off < s->n && !(s->flags[off] & CODE_POINTED))
		off++;
	return off;
}

/* Scans the remaining places: targets of pointers, and aligned places for functions. The results
 * may point elsewhere, so the scan repeats once. */
static int scan_rest(struct codescan *s)
{
	uint32_t first = (uint32_t)(-s->vaddr % FUNCTION_ALIGN);
	int r = 0;

	for (int round = 0; round < 2; round++) {
		for (uint32_t off = next_pointed(s, 0); off < s->n && !r;
		     off = next_pointed(s, off + 1))
			r = guess(s, off);
		for (uint32_t off = first; round && off < s->n && !r; off += FUNCTION_ALIGN)
			r = guess(s, off);
	}
	return r;
}

/* ---------------------------------------------------------------- an image */

static void mark_gaps(struct codescan *s, const struct codegaps *gaps)
{
	uint64_t end = s->vaddr + s->n;

	for (size_t i = codegaps_at(gaps, s->vaddr); i < gaps->n && gaps->items[i].start < end;
	     i++) {
		const struct codegap *gap = &gaps->items[i];
		uint64_t from = gap->start > s->vaddr ? gap->start : s->vaddr;
		uint64_t to = gap->end < end ? gap->end : end;

		memset(s->flags + (from - s->vaddr), CODE_GAP, to - from);
	}
}

static void window_end(struct codescan *s)
{
	free(s->code);
	free(s->flags);
	free(s->state_at);
	free(s->plain);
	s->code = s->flags = s->plain = NULL;
	s->state_at = NULL;
}

static void codescan_deinit(struct codescan *s)
{
	window_end(s);
	free(s->states);
	free(s->slots);
	free(s->entries);
	free(s->ways);
	free(s->runs);
	free(s->lines);
}

static int codescan_init(struct codescan *s)
{
	if (!elffile_spend(s->file, CODESCAN_SLOTS))
		return ELFFILE_ABANDONED;
	s->slots = calloc(CODESCAN_SLOTS, sizeof(*s->slots));
	s->machine = elffile_machine(s->file) == EM_AARCH64 ? CFI_ARM64 : CFI_X86_64;
	s->decode = s->machine == CFI_ARM64 ? insn_decode_arm64 : insn_decode_x86;
	return s->slots ? 0 : -ENOMEM;
}

/* Gaps near each other, with the code between them. */
struct window {
	uint64_t start, end;
	uint64_t bytes; /* of the gaps */
};

/* The next window from gap *@i on, which moves behind the window. False if there is none. */
static bool next_window(const struct codegaps *gaps, size_t *i, struct window *ret)
{
	struct window w = {0};
	uint32_t segment = 0;

	for (; *i < gaps->n; ++*i) {
		const struct codegap *gap = &gaps->items[*i];

		if (gap->end - gap->start < FUNCTION_ALIGN)
			continue;
		if (w.bytes && (gap->segment != segment || gap->start - w.end > WINDOW_BETWEEN ||
				gap->end - w.start > CODESCAN_BYTES_MAX))
			break;
		if (!w.bytes)
			w.start = gap->start;
		segment = gap->segment;
		w.bytes += gap->end - gap->start;
		w.end = gap->end;
	}
	*ret = w;
	return w.bytes != 0;
}

static int window_begin(struct codescan *s, const struct window *w, uint64_t off,
			const struct codegaps *gaps)
{
	s->vaddr = w->start;
	s->n = (size_t)(w->end - w->start);
	s->n_entries = s->n_scanned = s->n_noreturn = s->n_frames = s->n_saves = 0;
	s->n_good = s->n_dropped = s->n_lines = 0;
	/* the scan clears these several times, besides the steps */
	if (!elffile_spend(s->file, WINDOW_COST * s->n))
		return ELFFILE_ABANDONED;
	s->code = malloc(s->n);
	s->flags = calloc(s->n, 1);
	s->state_at = calloc(s->n, sizeof(*s->state_at));
	s->plain = calloc(s->n, 1);
	if (!s->code || !s->flags || !s->state_at || !s->plain)
		return -ENOMEM;
	mark_gaps(s, gaps);
	return elffile_read(s->file, off, s->code, s->n);
}

static int scan_window(struct codescan *s, const struct window *w, const struct codegaps *gaps,
		       const struct codeentries *entries)
{
	bool keeps;
	uint64_t off;
	int r;

	if (!elffile_off_of_vaddr(s->file, w->start, &off))
		return 0;
	r = window_begin(s, w, off, gaps);
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
		r = scan_functions(s, &keeps);
	if (r || keeps)
		return r;
	r = scan_stubs(s);
	if (!r)
		r = scan_rest(s);
	return r ? r : codescan_write(s);
}

int codescan_add(const struct elffile *file, const struct rows *known, struct rows *rows,
		 struct codescan_stats *ret)
{
	_cleanup_(codescan_deinit) struct codescan s = {.file = file, .rows = rows, .stats = ret};
	_cleanup_(codeentries_deinit) struct codeentries entries = {0};
	_cleanup_(codegaps_deinit) struct codegaps gaps = {0};
	struct window w;
	size_t i = 0;
	int r = codegaps_find(file, known, &gaps);

	*ret = (struct codescan_stats){0};
	if (!r)
		r = codeentries_read(file, known, &gaps, &entries);
	if (!r)
		r = codescan_init(&s);
	while (!r && next_window(&gaps, &i, &w)) {
		ret->bytes += w.bytes;
		if (w.end - w.start <= CODESCAN_BYTES_MAX)
			r = scan_window(&s, &w, &gaps, &entries);
		window_end(&s);
	}
	return r;
}

int codescan_wanted(const struct elffile *file, const struct rows *known, uint64_t *ret)
{
	_cleanup_(codegaps_deinit) struct codegaps gaps = {0};
	uint64_t total = 0;
	int r = codegaps_find(file, known, &gaps);

	for (size_t i = 0; i < gaps.n; i++)
		if (gaps.items[i].end - gaps.items[i].start >= FUNCTION_ALIGN)
			total += gaps.items[i].end - gaps.items[i].start;
	if (total < CODESCAN_BYTES_MIN || total > CODESCAN_BYTES_MAX ||
	    (gaps.code > LARGE && total < gaps.code / LARGE_SHARE))
		total = 0;
	if (!r)
		*ret = total;
	return r;
}
