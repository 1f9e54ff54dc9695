// SPDX-License-Identifier: Apache-2.0
/*
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
#include "codescan/codefunction.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

/* Steps charged together, and the units of work for each. */
#define STEPS_CHARGED 4096u
#define STEP_COST     16u

bool codescan_steps(struct codescan *s, uint32_t n)
{
	uint64_t charged = s->stats->steps / STEPS_CHARGED;

	s->stats->steps += n;
	charged = s->stats->steps / STEPS_CHARGED - charged;
	if (charged && !elffile_spend(s->file, charged * STEPS_CHARGED * STEP_COST))
		s->stats->steps = CODESCAN_STEPS_MAX;
	return s->stats->steps < CODESCAN_STEPS_MAX;
}

/* One step. Most are within the charged ones. */
static inline bool go_on(struct codescan *s)
{
	if ((s->stats->steps + 1) % STEPS_CHARGED && s->stats->steps + 1 < CODESCAN_STEPS_MAX) {
		s->stats->steps++;
		return true;
	}
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
		if (!go_on(s)) {
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

static bool is_entry(const struct codescan *s, uint64_t off)
{
	return off < s->n && (s->flags[off] & CODE_ENTRY);
}

int codescan_add_entry(struct codescan *s, uint64_t vaddr)
{
	uint32_t off = (uint32_t)(vaddr - s->vaddr);

	if (!codescan_inside(s, vaddr) || !(s->flags[off] & CODE_GAP) ||
	    (s->flags[off] & CODE_ENTRY))
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
	bool elsewhere = !codescan_inside(s, insn->target) || !(s->flags[off] & CODE_GAP) ||
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
	return codescan_inside(s, vaddr) && (s->flags[vaddr - s->vaddr] & CODE_NORETURN);
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
	       (codescan_inside(s, insn->target) && (s->flags[insn->target - s->vaddr] & CODE_GAP));
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
		if (st->sp_known && insn->names_sp && insn_x86_aligns(code, n, &reg))
			codestate_keep_sp(st, reg);
		return;
	}
	if (insn->names_sp && insn_x86_gives_back(code, n, (uint8_t)(st->kept - 1)))
		codestate_give_back_sp(st);
	else if (!leaves_kept(s, st, off, insn))
		codestate_lose_kept(st);
}

/* Whether the instruction matters for its length only. */
static bool is_plain(const struct insn *insn)
{
	return !insn->flow && !insn->names_sp && !insn->sp && !insn->fp && !insn->ra &&
	       !insn->points && !insn->constant;
}

static bool is_known(const struct codestate *st)
{
	return st->sp_known || st->fp_frame || st->kept || st->outermost;
}

/* Whether the path goes on at @off: undescribed code that no path has come to. */
static bool is_new(const struct codescan *s, uint32_t off)
{
	return off < s->n && !s->state_at[off] &&
	       (s->flags[off] & (CODE_GAP | CODE_ENTRY | CODE_FOLLOWED)) == CODE_GAP;
}

/* The length of the instruction at @off if it is known to be plain, or looks so; or 0. */
static inline uint8_t plain_length(struct codescan *s, uint32_t off)
{
	if (!s->plain[off] && s->machine == CFI_X86_64)
		s->plain[off] = insn_x86_plain(s->code + off, s->n - off);
	return s->plain[off];
}

/* Follows plain instructions from @off on, and returns the place behind them: most instructions are
 * plain, and each round comes to them again. With a copy of the stack pointer none is plain. */
static uint32_t follow_plain(struct codescan *s, uint16_t id, uint32_t off)
{
	uint32_t n = 0;
	uint8_t length;

	if (!is_known(&s->states[id]) || s->states[id].kept)
		return off;
	for (; is_new(s, off) && (length = plain_length(s, off)); off += length, n++)
		s->state_at[off] = (uint16_t)(id + 1);
	if (n && !codescan_steps(s, n))
		s->bad = true;
	return off;
}

/* A path under way: the next place, the state there, and whether the last instruction was a call.
 */
struct path {
	uint32_t off;
	uint16_t id;
	bool on;
	bool called;
};

/* Whether the path, which began at @from, ends in front of its next place. */
static bool ends(struct codescan *s, const struct path *path, uint32_t from)
{
	const uint32_t off = path->off;

	if (off >= s->n || !(s->flags[off] & CODE_GAP) || (is_entry(s, off) && off != s->first)) {
		if (off != from)
			fall_through(s, &s->states[path->id], path->called);
		return true;
	}
	if (s->state_at[off]) {
		s->bad |= s->state_at[off] != path->id + 1;
		return true;
	}
	return false;
}

/* The addresses in an instruction: of functions, perhaps. */
static int take_addresses(struct codescan *s, const struct insn *insn)
{
	if (codescan_inside(s, insn->constant))
		s->flags[insn->constant - s->vaddr] |= CODE_POINTED;
	return insn->points ? codescan_add_entry(s, insn->points) : 0;
}

/* Changes the state by the instruction at @off. */
static void change(struct codescan *s, struct codestate *st, uint32_t off, const struct insn *insn)
{
	const bool was_outermost = st->outermost;

	s->frames |= insn->fp == INSN_FP_FROM_SP;
	s->saves |= insn->fp == INSN_FP_SAVED;
	if ((insn->sp || insn->fp || insn->ra) && !codestate_step(st, insn) && !st->outermost)
		odd_fp(s, insn);
	step_kept(s, st, off, insn);
	s->bad |= st->outermost && !was_outermost &&
		  (s->guessed || st->sp != codestate_entry(s->machine).sp);
}

/* Follows the path's next instruction, which may change the state or the path. */
static int follow_effect(struct codescan *s, struct path *path, const struct insn *insn)
{
	const uint32_t off = path->off;
	struct codestate st = s->states[path->id];
	int r = take_addresses(s, insn);

	path->off += insn->length;
	path->called = insn->flow == INSN_CALL;
	if (!r)
		r = flow(s, insn, &st, path->id, &path->on);
	change(s, &st, off, insn);
	/* most instructions change nothing */
	if (!r && path->on && memcmp(&st, &s->states[path->id], sizeof(st)) != 0)
		r = intern(s, &st, &path->id);
	return r;
}

/* Follows the path's next instruction. */
static int follow_insn(struct codescan *s, struct path *path)
{
	const struct codestate *st = &s->states[path->id];
	const uint32_t off = path->off;
	struct insn insn;

	if ((s->flags[off] & CODE_FOLLOWED) ||
	    !s->decode(s->code + off, s->n - off, s->vaddr + off, &insn)) {
		s->bad = true;
		return 0;
	}
	if (!is_known(st)) {
		s->lost = s->leaves = true; /* the stack is somewhere else */
		path->on = false;
		return 0;
	}
	s->state_at[off] = (uint16_t)(path->id + 1);
	if (!is_plain(&insn))
		return follow_effect(s, path, &insn);
	s->plain[off] = insn.length;
	if (st->kept)
		return follow_effect(s, path, &insn);
	path->off += insn.length;
	path->called = false;
	return 0;
}

/* Follows a path from a place to the end of the path or to visited code; *@ret_end is there. */
static int follow_path(struct codescan *s, struct codescan_way way, uint32_t *ret_end)
{
	struct path path = {.off = way.off, .id = way.state, .on = true};
	int r = 0;

	while (path.on && !r && !s->bad) {
		const uint32_t before = path.off;

		path.off = follow_plain(s, path.id, before);
		path.called &= path.off == before;
		s->bad |= !go_on(s);
		if (s->bad || ends(s, &path, way.off))
			break;
		r = follow_insn(s, &path);
	}
	*ret_end = path.off;
	return r;
}

static void set_flag(struct codescan *s, uint32_t off, uint32_t end, uint8_t flag)
{
	uint64_t word;

	for (; off + sizeof(word) <= end; off += sizeof(word)) {
		memcpy(&word, s->flags + off, sizeof(word));
		word |= CODE_EACH_BYTE * flag;
		memcpy(s->flags + off, &word, sizeof(word));
	}
	for (; off < end; off++)
		s->flags[off] |= flag;
}

static void clear_flags(struct codescan *s, uint32_t off, uint32_t end, uint8_t flags)
{
	uint64_t word;

	for (; off + sizeof(word) <= end; off += sizeof(word)) {
		memcpy(&word, s->flags + off, sizeof(word));
		word &= ~(CODE_EACH_BYTE * flags);
		memcpy(s->flags + off, &word, sizeof(word));
	}
	for (; off < end; off++)
		s->flags[off] &= (uint8_t)~flags;
}

static int follow(struct codescan *s, struct codescan_way way)
{
	struct codescan_run run = {.off = way.off};
	int r = follow_path(s, way, &run.end);

	if (r || run.end == run.off)
		return r;
	set_flag(s, run.off, run.end, CODE_FOLLOWED);
	if (run.end > s->highest)
		s->highest = run.end;
	if (vec_grow(&s->runs, &s->runs_cap, s->n_runs + 1, sizeof(*s->runs), CODESCAN_EVERYTHING))
		return -ENOMEM;
	s->runs[s->n_runs++] = run;
	return 0;
}

static int follow_all(struct codescan *s)
{
	int r = 0;

	while (s->n_ways && !r && !s->bad)
		r = follow(s, s->ways[--s->n_ways]);
	s->n_ways = 0;
	return r;
}

/* Forgets the runs from the @n-th on. */
static void forget(struct codescan *s, size_t n)
{
	while (s->n_runs > n) {
		const struct codescan_run *run = &s->runs[--s->n_runs];

		memset(s->state_at + run->off, 0, (run->end - run->off) * sizeof(*s->state_at));
		clear_flags(s, run->off, run->end, CODE_FOLLOWED);
	}
}

/* The first unreached instruction from @off on, of the function. */
static uint32_t next_unreached(struct codescan *s, uint32_t off)
{
	struct insn insn;

	while (go_on(s) && off < s->n && (s->flags[off] & CODE_GAP) &&
	       (!is_entry(s, off) || off == s->first)) {
		insn = (struct insn){.length = plain_length(s, off)};
		if (!insn.length && !s->decode(s->code + off, s->n - off, s->vaddr + off, &insn))
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
	size_t n = s->n_runs;
	int r = add_way(s, off, &s->states[state]);

	if (!r)
		r = follow_all(s);
	*ret_good = !s->bad && s->n_runs > n;
	if (!*ret_good)
		forget(s, n);
	s->bad = false;
	return r;
}

/* Code reached only through tables has the state of such a jump. If no state fits, that code and
 * the code after it are left out. */
static int follow_tables(struct codescan *s)
{
	uint32_t from = s->first;
	bool good = true;
	int r = 0;

	while (s->n_tables && good && !r) {
		const uint32_t off = next_unreached(s, from);
		const size_t n_entries = s->n_entries;

		good = false;
		if (off == UINT32_MAX || off - s->first > CODESCAN_FUNCTION_MAX)
			return 0;
		for (size_t i = 0; i < s->n_tables && !good && !r; i++)
			r = try_table(s, off, s->tables[i], &good);
		s->lost |= !good;
		/* a new entry may end the function before */
		from = s->n_entries == n_entries ? off : s->first;
	}
	return r;
}

static int by_offset(const void *a, const void *b)
{
	const struct codescan_run *left = a, *right = b;

	return left->off < right->off ? -1 : left->off > right->off;
}

static int add_line(struct codescan *s, const struct codescan_line *line)
{
	if (vec_grow(&s->lines, &s->lines_cap, s->n_lines + 1, sizeof(*s->lines),
		     CODESCAN_EVERYTHING))
		return -ENOMEM;
	s->lines[s->n_lines++] = *line;
	return 0;
}

/* The first place in [@off, @end) with another state than @last; @end without any. */
static uint32_t next_change(const struct codescan *s, uint32_t off, uint32_t end, uint16_t last)
{
	typedef uint16_t states __attribute__((vector_size(16)));
	const uint32_t n = sizeof(states) / sizeof(last);

	for (; off + n <= end; off += n) {
		uint64_t words[2];
		states at;

		memcpy(&at, s->state_at + off, sizeof(at));
		at = (states)((at != 0) & (at != last));
		memcpy(words, &at, sizeof(words));
		if (words[0] | words[1])
			break;
	}
	while (off < end && (!s->state_at[off] || s->state_at[off] == last))
		off++;
	return off;
}

/* Adds the lines of a run. */
static int add_run(struct codescan *s, const struct codescan_run *run)
{
	struct codescan_line line = {0};
	int r = 0;

	for (uint32_t off = run->off; !r; r = add_line(s, &line)) {
		off = next_change(s, off, run->end, line.state);
		if (off == run->end)
			break;
		line.off = off;
		line.state = s->state_at[off];
	}
	return r;
}

/* Adds the lines of @n runs, each of which begins at the end of the one before. */
static int add_range(struct codescan *s, const struct codescan_run *runs, size_t n)
{
	int r = add_line(s, &(struct codescan_line){.off = runs[0].off, .end = runs[n - 1].end});

	for (size_t i = 0; i < n && !r; i++)
		r = add_run(s, &runs[i]);
	return r;
}

static int add_lines(struct codescan *s)
{
	size_t from = 0;
	int r = 0;

	qsort(s->runs, s->n_runs, sizeof(*s->runs), by_offset);
	for (size_t i = 0; i < s->n_runs && !r; i++) {
		if (i + 1 < s->n_runs && s->runs[i + 1].off == s->runs[i].end)
			continue;
		r = add_range(s, s->runs + from, i + 1 - from);
		from = i + 1;
	}
	return r;
}

/* Writes the range at line *@i, which moves behind the range. */
static int write_range(struct codescan *s, size_t *i)
{
	const struct codescan_line range = s->lines[(*i)++], *line;
	const bool inside =
		!rows_begin(s->rows, ROWS_CODE, s->vaddr + range.off, s->vaddr + range.end);
	struct unwind_rule rule;
	int r = 0;

	for (; *i < s->n_lines && !s->lines[*i].end; ++*i) {
		line = &s->lines[*i];
		if (!inside || r) /* not code of this image after all */
			continue;
		codestate_rule(s->machine, &s->states[line->state - 1], &rule);
		r = rows_add(s->rows, s->vaddr + line->off, &rule);
	}
	if (!inside)
		return 0;
	if (r)
		rows_drop(s->rows);
	else
		r = rows_end(s->rows);
	s->stats->described += range.end - range.off;
	return r == ROWS_FULL ? -ENOSPC : r;
}

int codescan_write(struct codescan *s)
{
	int r = 0;

	for (size_t i = 0; i < s->n_lines && !r;)
		r = write_range(s, &i);
	s->stats->functions += s->n_good;
	s->stats->dropped += s->n_dropped;
	return r;
}

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
		if ((word & CODE_EACH_BYTE * (CODE_GAP | CODE_ENTRY)) != CODE_EACH_BYTE * CODE_GAP)
			break;
		word |= CODE_EACH_BYTE * CODE_BAD;
		memcpy(s->flags + off, &word, sizeof(word));
	}
	for (; off < end && (s->flags[off] & (CODE_GAP | CODE_ENTRY)) == CODE_GAP; off++)
		s->flags[off] |= CODE_BAD;
	codescan_steps(s, off - s->first);
}

int codescan_function(struct codescan *s, uint32_t off, bool guessed, bool *ret_good)
{
	struct codestate entry = codestate_entry(s->machine);
	int r;

	s->first = s->highest = off;
	s->n_runs = s->n_ways = s->n_tables = 0;
	s->guessed = guessed;
	s->leaves = s->returns = s->clobbers = s->bad = s->lost = false;
	s->frames = s->saves = false;
	*ret_good = false;
	if (s->flags[off] & (CODE_FOLLOWED | CODE_BAD))
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
	return add_lines(s);
}

void codescan_forget_all(struct codescan *s)
{
	clear_flags(s, 0, (uint32_t)s->n, CODE_BAD | CODE_FOLLOWED);
	memset(s->state_at, 0, s->n * sizeof(*s->state_at));
	s->n_frames = s->n_saves = s->n_good = s->n_dropped = s->n_lines = 0;
}
