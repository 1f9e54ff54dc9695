// SPDX-License-Identifier: Apache-2.0
/*
 * A function is followed from its first instruction through all of its branches. At each
 * instruction there is one state: how far the stack pointer is below the CFA, whether the frame
 * pointer has been set to a frame, where the caller's is stored, where the return address is.
 * Compilers keep that the same whichever way an instruction is reached, and so it is its own proof:
 * where two ways disagree, or a return is reached with the stack pointer anywhere but where the
 * function began, the function was not understood (or is none) and has no rows.
 *
 * What is reached by a jump through a table only (a switch) is followed with the state of that
 * jump.
 *
 * The outermost function of a process or thread sets the frame pointer to zero, having saved it
 * nowhere: the ABI's mark (System V ABI for AMD64, section 3.4.1; AArch64's procedure call standard
 * has the same of the frame record). From there on there is no caller, and so `_start` and `clone`
 * of any C library are the end.
 *
 * What is not followed: code that takes its stack pointer from elsewhere (longjmp, a coroutine's
 * switch). There are no rows from there on.
 */
#include "codescan/codescan_state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

/* ---------------------------------------------------------------- states */

static size_t hash_state(const struct codestate *state)
{
	uint32_t hash = (uint32_t)state->sp * 0x9e3779b1u;

	hash = (hash ^ (uint32_t)state->fp) * 0x85ebca6bu;
	hash = (hash ^ (uint32_t)state->fp_at) * 0xc2b2ae35u;
	hash = (hash ^ (uint32_t)state->ra_at) * 0x27d4eb2fu;
	hash += state->sp_known + 2u * state->fp_frame + 4u * state->outermost;
	return (hash ^ hash >> 15) % CODESCAN_SLOTS;
}

static int intern(struct codescan *s, const struct codestate *state, uint16_t *ret)
{
	size_t slot = hash_state(state);

	for (; s->slots[slot]; slot = (slot + 1) % CODESCAN_SLOTS)
		if (memcmp(&s->states[s->slots[slot] - 1], state, sizeof(*state)) == 0) {
			*ret = (uint16_t)(s->slots[slot] - 1);
			return 0;
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

/* False when enough has been done for this image. */
bool codescan_go_on(struct codescan *s)
{
	return ++s->stats->steps < CODESCAN_STEPS_MAX;
}

static bool inside(const struct codescan *s, uint64_t vaddr)
{
	return vaddr >= s->vaddr && vaddr - s->vaddr < s->n;
}

static bool is_entry(const struct codescan *s, uint64_t off)
{
	return off < s->n && (s->flags[off] & CODE_ENTRY);
}

int codescan_add_entry(struct codescan *s, uint64_t vaddr)
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

/* To another function in place of a call, or to another place of this one. */
static int jump(struct codescan *s, const struct insn *insn, const struct codestate *st)
{
	uint64_t off = insn->target - s->vaddr;
	bool elsewhere = !inside(s, insn->target) || !(s->flags[off] & CODE_GAP) ||
			 (is_entry(s, off) && off != s->first);

	/* backwards: most likely another function, of which nobody told */
	if (!elsewhere && off < s->first && !s->state_at[off]) {
		s->bad |= s->guessed;
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

/* What comes of an instruction that begins with *@st. *@ret_on: the next one follows. */
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
		/* who needs his link register again has stored it */
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

/* From one place on, until it ends or comes to where it has been. */
static int follow(struct codescan *s, struct codescan_way way)
{
	uint32_t off = way.off;
	const struct codestate entry = codestate_entry(s->machine);
	uint16_t id = way.state;
	bool on = true;
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
		    (is_entry(s, off) && off != s->first))
			return 0; /* behind a call that does not return */
		if (s->state_at[off]) {
			s->bad |= s->state_at[off] != id + 1;
			return 0;
		}
		if ((s->flags[off] & CODE_INSIDE) ||
		    !s->decode(s->code + off, s->n - off, s->vaddr + off, &insn)) {
			s->bad = true;
			return 0;
		}
		if (!st.sp_known && !st.fp_frame && !st.outermost) {
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
		off += insn.length;
		s->bad |= !codestate_step(&st, &insn) && !st.outermost;
		s->bad |= st.outermost && (s->guessed || st.sp != entry.sp) && !was_outermost;
		if (!r && on)
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

/* As if it had not been looked at, from the @n-th instruction on. */
static void forget(struct codescan *s, size_t n)
{
	while (s->n_reached > n) {
		uint32_t off = s->reached[--s->n_reached];
		struct insn insn;

		s->state_at[off] = 0;
		if (!s->decode(s->code + off, s->n - off, s->vaddr + off, &insn))
			continue;
		for (size_t i = 1; i < insn.length; i++)
			s->flags[off + i] &= (uint8_t)~CODE_INSIDE;
	}
}

/* The first instruction behind @off that nothing has reached, of the function or of padding. */
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

/* *@ret_good: the code at @off goes with what is known of the function, if it begins with a state.
 */
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

/* What is reached through tables only has the state of a jump through one. Where none of them can
 * be, it is left out, and so is what is behind it. */
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

/* One range of instructions that follow each other. */
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

static void begin_function(struct codescan *s, uint32_t off, bool guessed)
{
	s->first = off;
	s->highest = off;
	s->n_reached = s->n_ways = 0;
	s->n_tables = 0;
	s->guessed = guessed;
	s->leaves = s->returns = s->bad = s->lost = false;
	s->frames = s->saves = false;
}

/* What is in a function that was not understood is not tried as one of its own. Of one that was
 * only guessed nobody knows the end. */
static void mark_rest(struct codescan *s)
{
	uint32_t off = s->first;

	do
		s->flags[off++] |= CODE_BAD;
	while (codescan_go_on(s) && off < s->n && (!s->guessed || off < s->highest) &&
	       (s->flags[off] & CODE_GAP) && !is_entry(s, off));
}

/* *@ret_good: it was one, and has rows now. */
int codescan_function(struct codescan *s, uint32_t off, bool guessed, bool *ret_good)
{
	struct codestate entry = codestate_entry(s->machine);
	int r;

	begin_function(s, off, guessed);
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
