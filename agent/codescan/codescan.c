// SPDX-License-Identifier: Apache-2.0
/*
 * Functions begin at symbols, at call targets, at addresses computed by code and, after following
 * all of these, at aligned places that nothing has reached.
 *
 * A function is followed from its first instruction through all branches. Each instruction has one
 * state: the distance of the stack pointer from the CFA, whether the frame pointer points at a
 * frame, and the places of the caller's frame pointer and of the return address. Compilers keep
 * this state equal on every path to an instruction, so agreement proves the result. If two paths
 * disagree, or a return has the stack pointer at another place than the function's start, the
 * function was not understood (or is no function) and has no rows.
 *
 * Code reached only by a jump through a table (a switch) is followed with the state of that jump.
 *
 * A function that aligns its stack without a frame pointer, as assembly does, keeps the stack
 * pointer in a register, and gives it back before its return.
 *
 * The outermost function of a process or thread sets the frame pointer to zero without saving it:
 * the ABI's mark (System V ABI for AMD64, section 3.4.1; AArch64's procedure call standard has the
 * same of the frame record). From there on there is no caller, so `_start` and `clone` of any C
 * library are the end.
 *
 * Not followed: code that loads its stack pointer from elsewhere (longjmp, a coroutine's switch).
 * There are no rows from there on.
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
#include "codescan/codestate.h"

/* The alignment of functions by compilers, and of guessed entries. */
#define FUNCTION_ALIGN	    16u
/* Of a linkage table's entries. */
#define STUB_ALIGN	    8u
/* Bytes of code above which a search for a few functions' callers takes longer than all of the
 * file's tables (220 ms for a Go program of 60 MB, with 1 KB undescribed); and the undescribed part
 * that justifies it all the same. */
#define LARGE		    ((uint64_t)4 << 20)
#define LARGE_SHARE	    128u
/* Passes over the functions to find those without a return. Each pass finds the callers of the
 * previous pass's functions. */
#define ROUNDS		    6
/* Functions that must agree on keeping frame pointers. */
#define FRAMES_COUNT	    4u
/* Bytes of described code between two gaps in the same window. */
#define WINDOW_BETWEEN	    4096u
/* Different states of one function's jumps through tables. */
#define CODESCAN_TABLES	    4
/* Slots by hash. */
#define CODESCAN_SLOTS	    ((size_t)2 * CODESCAN_STATES_MAX)
/* Steps charged together, and the units of work for each. */
#define STEPS_CHARGED	    4096u
#define STEP_COST	    16u
/* Units of work for a byte of a window, which is cleared in each round. */
#define WINDOW_COST	    (2ull * ROUNDS)
/* Entries of a list: more than any image can have. */
#define CODESCAN_EVERYTHING ((size_t)1 << 26)

/* Of each byte. */
enum {
	CODE_GAP = 1,	    /* nothing describes this byte */
	CODE_ENTRY = 2,	    /* a function begins here */
	CODE_BAD = 4,	    /* an attempt at a function here failed */
	CODE_INSIDE = 8,    /* inside an instruction, after its first byte */
	CODE_POINTED = 32,  /* data points here */
	CODE_NORETURN = 16, /* a function without a return begins here */
};

struct codescan_way {
	uint32_t off;
	uint16_t state;
};

/* An image, window by window: gaps near each other, with the code between them. */
struct codescan {
	const struct elffile *file;
	struct rows *rows;
	struct codescan_stats *stats;
	insn_decode_fn *decode;
	enum cfi_machine machine;
	uint64_t vaddr; /* of code[0] */
	uint8_t *code;
	size_t n;
	uint8_t *flags;	    /* CODE_*, for each byte */
	uint16_t *state_at; /* index + 1 */

	/* of all windows */
	struct codestate *states;
	size_t n_states, states_cap;
	uint16_t *slots; /* state's index + 1 by hash; CODESCAN_SLOTS entries */
	/* functions to look at */
	uint32_t *entries;
	size_t n_entries, entries_cap;
	size_t n_scanned; /* entries looked at in this round */
	/* the function at hand */
	struct codescan_way *ways;
	size_t n_ways, ways_cap;
	uint32_t *reached; /* its instructions */
	size_t n_reached, reached_cap;
	uint32_t first;
	uint32_t highest;		  /* end of its last instruction */
	uint16_t tables[CODESCAN_TABLES]; /* states of its jumps through tables */
	size_t n_tables;
	bool guessed;  /* the entry is a guess */
	bool leaves;   /* it returns, or continues as another function */
	bool returns;  /* a return was seen */
	bool frames;   /* sets the frame pointer to its frame */
	bool saves;    /* stores the caller's frame pointer */
	bool clobbers; /* sets the frame pointer without having stored the caller's */
	bool bad;
	bool lost;    /* a part could not be followed */
	bool writing; /* the results become rows */
	size_t n_noreturn;
	size_t n_frames, n_saves; /* functions */
};

/* Counts @n steps. False when enough has been done for this image. */
static bool codescan_steps(struct codescan *s, uint32_t n)
{
	uint64_t charged = s->stats->steps / STEPS_CHARGED;

	s->stats->steps += n;
	charged = s->stats->steps / STEPS_CHARGED - charged;
	if (charged && !elffile_spend(s->file, charged * STEPS_CHARGED * STEP_COST))
		s->stats->steps = CODESCAN_STEPS_MAX;
	return s->stats->steps < CODESCAN_STEPS_MAX;
}

static bool codescan_go_on(struct codescan *s)
{
	return codescan_steps(s, 1);
}

/* ---------------------------------------------------------------- states */

static size_t hash_state(const struct codestate *state)
{
	uint32_t hash = (uint32_t)state->sp * 0x9e3779b1u;

	hash = (hash ^ (uint32_t)state->fp) * 0x85ebca6bu;
	hash = (hash ^ (uint32_t)state->fp_at) * 0xc2b2ae35u;
	hash = (hash ^ (uint32_t)state->ra_at) * 0x27d4eb2fu;
	hash = (hash ^ (uint32_t)state->kept_at) * 0x165667b1u;
	hash += 8u * state->kept + state->sp_known + 2u * state->fp_frame + 4u * state->outermost;
	return (hash ^ hash >> 15) % CODESCAN_SLOTS;
}

static int intern(struct codescan *s, const struct codestate *state, uint16_t *ret)
{
	size_t slot = hash_state(state);

	/* code can be made so that all states have one hash, so a collision is a step */
	for (; s->slots[slot]; slot = (slot + 1) % CODESCAN_SLOTS) {
		if (memcmp(&s->states[s->slots[slot] - 1], state, sizeof(*state)) == 0) {
			*ret = (uint16_t)(s->slots[slot] - 1);
			return 0;
		}
		if (!codescan_go_on(s)) {
			s->bad = true;
			return 0;
		}
	}
	if (s->n_states == CODESCAN_STATES_MAX) {
		s->bad = true;
		return 0;
	}
	if (vec_grow(&s->states, &s->states_cap, s->n_states + 1, sizeof(*s->states),
		     CODESCAN_STATES_MAX))
		return -ENOMEM;
	s->states[s->n_states] = *state;
	*ret = (uint16_t)s->n_states++;
	s->slots[slot] = (uint16_t)s->n_states;
	return 0;
}

/* ---------------------------------------------------------------- a function */

static bool inside(const struct codescan *s, uint64_t vaddr)
{
	return vaddr >= s->vaddr && vaddr - s->vaddr < s->n;
}

static bool is_entry(const struct codescan *s, uint64_t off)
{
	return off < s->n && (s->flags[off] & CODE_ENTRY);
}

/* Adds a function at @vaddr, if the code there is undescribed. 0 or -ENOMEM. */
static int codescan_add_entry(struct codescan *s, uint64_t vaddr)
{
	uint32_t off = (uint32_t)(vaddr - s->vaddr);

	if (!inside(s, vaddr) || !(s->flags[off] & CODE_GAP) || (s->flags[off] & CODE_ENTRY))
		return 0;
	if (s->machine == CFI_ARM64 && (vaddr & 3))
		return 0;
	s->flags[off] |= CODE_ENTRY;
	if (vec_grow(&s->entries, &s->entries_cap, s->n_entries + 1, sizeof(*s->entries),
		     CODESCAN_EVERYTHING))
		return -ENOMEM;
	s->entries[s->n_entries++] = off;
	return 0;
}

static int add_way(struct codescan *s, uint64_t off, const struct codestate *state)
{
	uint16_t id = 0;
	int r;

	r = intern(s, state, &id);
	if (r)
		return r;
	if (vec_grow(&s->ways, &s->ways_cap, s->n_ways + 1, sizeof(*s->ways), CODESCAN_EVERYTHING))
		return -ENOMEM;
	s->ways[s->n_ways++] = (struct codescan_way){.off = (uint32_t)off, .state = id};
	return 0;
}

/* A jump to another function in place of a call, or to another place of this function. */
static int jump(struct codescan *s, const struct insn *insn, const struct codestate *st)
{
	uint64_t off = insn->target - s->vaddr;
	bool elsewhere = !inside(s, insn->target) || !(s->flags[off] & CODE_GAP) ||
			 (is_entry(s, off) && off != s->first);

	/* backwards: most likely another function without a symbol */
	if (!elsewhere && off < s->first) {
		s->bad |= s->guessed && !s->state_at[off];
		elsewhere = codestate_is_balanced(s->machine, st);
	}
	if (!elsewhere && off > s->first && off - s->first > CODESCAN_FUNCTION_MAX)
		elsewhere = true;
	if (!elsewhere)
		return add_way(s, off, st);
	s->leaves = s->returns = true;
	s->bad |= !codestate_is_balanced(s->machine, st) && !st->outermost;
	return 0;
}

/* A jump through a table, or to a function. */
static void indirect(struct codescan *s, const struct codestate *st, uint16_t id)
{
	if (codestate_is_balanced(s->machine, st)) {
		s->leaves = true;
		return;
	}
	for (size_t i = 0; i < s->n_tables; i++)
		if (s->tables[i] == id)
			return;
	if (s->n_tables < CODESCAN_TABLES)
		s->tables[s->n_tables++] = id;
}

static bool never_returns(const struct codescan *s, uint64_t vaddr)
{
	return inside(s, vaddr) && (s->flags[vaddr - s->vaddr] & CODE_NORETURN);
}

/* Follows the control flow of an instruction from state *@st. *@ret_on: the next instruction
 * follows. */
static int flow(struct codescan *s, const struct insn *insn, struct codestate *st, uint16_t id,
		bool *ret_on)
{
	int r = 0;

	*ret_on = true;
	switch (insn->flow) {
	case INSN_RETURN:
		s->leaves = s->returns = true;
		s->bad |= !codestate_is_balanced(s->machine, st) && !st->outermost;
		*ret_on = false;
		break;
	case INSN_JUMP:
		r = jump(s, insn, st);
		*ret_on = false;
		break;
	case INSN_BRANCH:
		r = jump(s, insn, st);
		break;
	case INSN_CALL:
		if (insn->target)
			r = codescan_add_entry(s, insn->target);
		/* a function that needs the link register again has stored the register */
		*ret_on = !never_returns(s, insn->target) && (st->ra_at || st->outermost);
		break;
	case INSN_INDIRECT:
		indirect(s, st, id);
		*ret_on = false;
		break;
	case INSN_END:
		*ret_on = false;
		break;
	default:
		break;
	}
	return r;
}

/* The path reaches another function or described code. Behind a call, the callee does not return.
 * Otherwise the function continues as the other one, as with a jump: assembly has several entries
 * into the same code. A guess may be padding in front of the other function. */
static void fall_through(struct codescan *s, const struct codestate *st, bool called)
{
	if (!called && !s->guessed && codestate_is_balanced(s->machine, st))
		s->leaves = s->returns = true;
}

static int reach(struct codescan *s, uint32_t off, uint16_t id, size_t length)
{
	if (vec_grow(&s->reached, &s->reached_cap, s->n_reached + 1, sizeof(*s->reached),
		     CODESCAN_EVERYTHING))
		return -ENOMEM;
	s->reached[s->n_reached++] = off;
	s->state_at[off] = (uint16_t)(id + 1);
	for (size_t i = 1; i < length; i++)
		s->flags[off + i] |= CODE_INSIDE;
	if (off + length > s->highest)
		s->highest = (uint32_t)(off + length);
	return 0;
}

/* An internal routine of assembly may take the frame pointer as any register. Its callers then
 * cannot count on the frame pointer either. */
static void odd_fp(struct codescan *s, const struct insn *insn)
{
	if (insn->fp == INSN_FP_OTHER && !s->guessed)
		s->clobbers = true;
	else
		s->bad = true;
}

/* Registers that a call may change by the ABI: all but rbx, rbp, rsp and r12 to r15. */
#define CALL_CHANGES 0xf37u

/* Whether the instruction leaves the stack pointer's copy. A routine of the same assembly leaves it
 * in a register that a call may change: the code behind the call relies on it. */
static bool leaves_kept(const struct codescan *s, const struct codestate *st, uint32_t off,
			const struct insn *insn)
{
	const uint8_t reg = (uint8_t)(st->kept - 1);

	if (insn->flow != INSN_CALL)
		return !insn_x86_writes(s->code + off, s->n - off, reg);
	return !(CALL_CHANGES >> reg & 1) ||
	       (inside(s, insn->target) && (s->flags[insn->target - s->vaddr] & CODE_GAP));
}

/* The effect of the instruction at @off on the stack pointer's copy, after its other effects. */
static void step_kept(const struct codescan *s, struct codestate *st, uint32_t off,
		      const struct insn *insn)
{
	const uint8_t *code = s->code + off;
	const size_t n = s->n - off;
	uint8_t reg;

	if (s->machine != CFI_X86_64)
		return;
	if (!st->kept) {
		if (st->sp_known && insn_x86_aligns(code, n, &reg))
			codestate_keep_sp(st, reg);
		return;
	}
	if (insn_x86_gives_back(code, n, (uint8_t)(st->kept - 1)))
		codestate_give_back_sp(st);
	else if (!leaves_kept(s, st, off, insn))
		codestate_lose_kept(st);
}

/* Follows a path from a place to the end of the path or to visited code. */
static int follow(struct codescan *s, struct codescan_way way)
{
	uint32_t off = way.off;
	const struct codestate entry = codestate_entry(s->machine);
	uint16_t id = way.state;
	bool on = true, called = false;
	int r = 0;

	while (on && !r && !s->bad) {
		struct codestate st = s->states[id];
		bool was_outermost = st.outermost;
		struct insn insn;

		if (!codescan_go_on(s)) {
			s->bad = true;
			return 0;
		}
		if (off >= s->n || !(s->flags[off] & CODE_GAP) ||
		    (is_entry(s, off) && off != s->first)) {
			if (off != way.off)
				fall_through(s, &st, called);
			return 0;
		}
		if (s->state_at[off]) {
			s->bad |= s->state_at[off] != id + 1;
			return 0;
		}
		if ((s->flags[off] & CODE_INSIDE) ||
		    !s->decode(s->code + off, s->n - off, s->vaddr + off, &insn)) {
			s->bad = true;
			return 0;
		}
		if (!st.sp_known && !st.fp_frame && !st.kept && !st.outermost) {
			s->lost = s->leaves = true; /* the stack is somewhere else */
			return 0;
		}
		s->frames |= insn.fp == INSN_FP_FROM_SP;
		s->saves |= insn.fp == INSN_FP_SAVED;
		r = reach(s, off, id, insn.length);
		if (!r && insn.points)
			r = codescan_add_entry(s, insn.points);
		if (inside(s, insn.constant))
			s->flags[insn.constant - s->vaddr] |= CODE_POINTED;
		if (!r)
			r = flow(s, &insn, &st, id, &on);
		called = insn.flow == INSN_CALL;
		if ((insn.sp || insn.fp || insn.ra) && !codestate_step(&st, &insn) && !st.outermost)
			odd_fp(s, &insn);
		step_kept(s, &st, off, &insn);
		off += insn.length;
		s->bad |= st.outermost && (s->guessed || st.sp != entry.sp) && !was_outermost;
		/* most instructions change nothing */
		if (!r && on && memcmp(&st, &s->states[id], sizeof(st)) != 0)
			r = intern(s, &st, &id);
	}
	return r;
}

static int follow_all(struct codescan *s)
{
	int r = 0;

	while (s->n_ways && !r && !s->bad)
		r = follow(s, s->ways[--s->n_ways]);
	s->n_ways = 0;
	return r;
}

/* Forgets the visits from the @n-th instruction on. The bytes inside an instruction reach up to the
 * next instruction. */
static void forget(struct codescan *s, size_t n)
{
	while (s->n_reached > n) {
		uint32_t off = s->reached[--s->n_reached];

		s->state_at[off] = 0;
		for (off++; off < s->n && (s->flags[off] & CODE_INSIDE); off++)
			s->flags[off] &= (uint8_t)~CODE_INSIDE;
	}
}

/* The first unreached instruction after @off, of the function or of padding. */
static uint32_t next_unreached(struct codescan *s, uint32_t off)
{
	struct insn insn;

	while (codescan_go_on(s) && off < s->n && (s->flags[off] & CODE_GAP) &&
	       (!is_entry(s, off) || off == s->first)) {
		if (!s->decode(s->code + off, s->n - off, s->vaddr + off, &insn))
			break;
		if (!s->state_at[off] && insn.flow != INSN_PADDING)
			return off;
		off += insn.length;
	}
	return UINT32_MAX;
}

/* *@ret_good: the code at @off agrees with the rest of the function, if it begins with a state. */
static int try_table(struct codescan *s, uint32_t off, uint16_t state, bool *ret_good)
{
	size_t n = s->n_reached;
	int r = add_way(s, off, &s->states[state]);

	if (!r)
		r = follow_all(s);
	*ret_good = !s->bad && s->n_reached > n;
	if (!*ret_good)
		forget(s, n);
	s->bad = false;
	return r;
}

/* Code reached only through tables has the state of such a jump. If no state fits, that code and
 * the code after it are left out. */
static int follow_tables(struct codescan *s)
{
	bool good = true;
	int r = 0;

	while (s->n_tables && good && !r) {
		uint32_t off = next_unreached(s, s->first);

		good = false;
		if (off == UINT32_MAX || off - s->first > CODESCAN_FUNCTION_MAX)
			return 0;
		for (size_t i = 0; i < s->n_tables && !good && !r; i++)
			r = try_table(s, off, s->tables[i], &good);
		s->lost |= !good;
	}
	return r;
}

static int by_offset(const void *a, const void *b)
{
	uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;

	return left < right ? -1 : left > right;
}

/* Adds the rows of one range of consecutive instructions. */
static int add_range(struct codescan *s, size_t from, size_t to, uint32_t end)
{
	int r = rows_begin(s->rows, ROWS_CODE, s->vaddr + s->reached[from], s->vaddr + end);

	if (r)
		return 0; /* not code of this image after all */
	for (size_t i = from; i < to && !r; i++) {
		struct unwind_rule rule;

		codestate_rule(s->machine, &s->states[s->state_at[s->reached[i]] - 1], &rule);
		r = rows_add(s->rows, s->vaddr + s->reached[i], &rule);
	}
	if (r)
		rows_drop(s->rows);
	else
		r = rows_end(s->rows);
	s->stats->described += end - s->reached[from];
	return r == ROWS_FULL ? -ENOSPC : r;
}

static uint32_t end_of(const struct codescan *s, uint32_t off)
{
	off++;
	while (off < s->n && (s->flags[off] & CODE_INSIDE))
		off++;
	return off;
}

static int add_rows(struct codescan *s)
{
	size_t from = 0;
	int r = 0;

	qsort(s->reached, s->n_reached, sizeof(*s->reached), by_offset);
	for (size_t i = 0; i < s->n_reached && !r; i++) {
		uint32_t end = end_of(s, s->reached[i]);

		if (i + 1 < s->n_reached && s->reached[i + 1] == end)
			continue;
		r = add_range(s, from, i + 1, end);
		from = i + 1;
	}
	return r;
}

/* A flag of one byte times this is the flag of eight. */
#define EACH_BYTE 0x0101010101010101ull

/* The inside of a function that was not understood is not tried as a separate function. The end of
 * a guessed function is unknown. */
static void mark_rest(struct codescan *s)
{
	uint32_t end = (uint32_t)s->n, off = s->first;

	if (s->guessed && s->highest < end)
		end = s->highest;
	s->flags[off++] |= CODE_BAD;
	for (uint64_t word; off + sizeof(word) <= end; off += sizeof(word)) {
		memcpy(&word, s->flags + off, sizeof(word));
		if ((word & EACH_BYTE * (CODE_GAP | CODE_ENTRY)) != EACH_BYTE * CODE_GAP)
			break;
		word |= EACH_BYTE * CODE_BAD;
		memcpy(s->flags + off, &word, sizeof(word));
	}
	for (; off < end && (s->flags[off] & (CODE_GAP | CODE_ENTRY)) == CODE_GAP; off++)
		s->flags[off] |= CODE_BAD;
	codescan_steps(s, off - s->first);
}

/* Follows the function at @off; if @s->writing, adds its rows. @guessed: the entry is a guess.
 * *@ret_good: it was a function. 0, -ENOSPC, -errno. */
static int codescan_function(struct codescan *s, uint32_t off, bool guessed, bool *ret_good)
{
	struct codestate entry = codestate_entry(s->machine);
	int r;

	s->first = s->highest = off;
	s->n_reached = s->n_ways = s->n_tables = 0;
	s->guessed = guessed;
	s->leaves = s->returns = s->clobbers = s->bad = s->lost = false;
	s->frames = s->saves = false;
	*ret_good = false;
	if (s->flags[off] & (CODE_INSIDE | CODE_BAD))
		return 0;
	r = add_way(s, off, &entry);
	if (!r)
		r = follow_all(s);
	if (!r && !s->bad)
		r = follow_tables(s);
	if (r)
		return r;
	/* code that loads all registers (longjmp) does not return */
	s->bad |= s->clobbers && (s->lost || !s->returns);
	if (s->bad || (!s->returns && guessed)) {
		forget(s, 0);
		mark_rest(s);
		return 0;
	}
	*ret_good = true;
	if (s->lost)
		mark_rest(s);
	s->n_frames += s->frames;
	s->n_saves += s->saves;
	if (!s->leaves && !(s->flags[off] & CODE_NORETURN)) {
		s->flags[off] |= CODE_NORETURN;
		s->n_noreturn++;
	}
	return s->writing ? add_rows(s) : 0;
}

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
		if (s->writing)
			*(good ? &s->stats->functions : &s->stats->dropped) += 1;
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

/* Following finds functions without a return, and only then are their callers followed correctly.
 * So this repeats until there are no more, or until there is nothing to follow for. */
static int find_noreturn(struct codescan *s)
{
	int r = 0;

	for (int round = 0; round < ROUNDS && !r; round++) {
		size_t n = s->n_noreturn;

		s->n_frames = s->n_saves = 0;
		s->n_scanned = 0;
		r = scan_entries(s);
		if (keeps_frames(s))
			break;
		for (size_t i = 0; i < s->n; i++)
			s->flags[i] &= CODE_GAP | CODE_ENTRY | CODE_NORETURN | CODE_POINTED;
		memset(s->state_at, 0, s->n * sizeof(*s->state_at));
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
		if ((s->flags[off] & CODE_GAP) && !s->state_at[off] && codescan_go_on(s) &&
		    is_stub(s, off))
			r = codescan_function(s, off, false, &good);
	}
	return r;
}

/* Scans the remaining places: targets of pointers, and aligned places for functions. The results
 * may point elsewhere, so the scan repeats once. */
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
	s->code = s->flags = NULL;
	s->state_at = NULL;
}

static void codescan_deinit(struct codescan *s)
{
	window_end(s);
	free(s->states);
	free(s->slots);
	free(s->entries);
	free(s->ways);
	free(s->reached);
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
	s->writing = false;
	/* the scan clears these several times, besides the steps */
	if (!elffile_spend(s->file, WINDOW_COST * s->n))
		return ELFFILE_ABANDONED;
	s->code = malloc(s->n);
	s->flags = calloc(s->n, 1);
	s->state_at = calloc(s->n, sizeof(*s->state_at));
	if (!s->code || !s->flags || !s->state_at)
		return -ENOMEM;
	mark_gaps(s, gaps);
	return elffile_read(s->file, off, s->code, s->n);
}

static int scan_window(struct codescan *s, const struct window *w, const struct codegaps *gaps,
		       const struct codeentries *entries)
{
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
		r = find_noreturn(s);
	if (r || keeps_frames(s))
		return r;
	s->n_scanned = 0;
	r = scan_entries(s);
	if (!r)
		r = scan_stubs(s);
	return r ? r : scan_rest(s);
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
