// SPDX-License-Identifier: Apache-2.0
/*
 * Rows of an image, collected range by range and then put in order.
 *
 * A row is eight bytes while it is here: 40 bits of address, counted from the text's start, and the
 * number of its rule. Programs have a million rows and a few hundred rules, so rules are interned
 * as they come, which also saves the packer from doing it.
 *
 * Ranges that follow each other with no more than padding between them grow one "span". Linkers put
 * functions in the order of the tables that describe them, with exceptions (cold and start-up code
 * is moved away), so there are far fewer spans than ranges and only the spans are sorted. Then one
 * sweep over the addresses takes, at each, the winner of the spans that are there: the highest
 * source, then the latest. A heap holds them; it has more than one only where ranges overlap, which
 * honest files hardly do (leftovers of discarded functions, all at one address, and code that was
 * folded together), and for hostile ones it keeps the cost at n log n.
 *
 * Padding between functions belongs to what is before it: no row is spent on it, and nothing runs
 * there.
 */
#include "unwind/rows.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/vec.h"

#define OFF_BITS      40
#define RULE_BITS     24
#define OFF_LIMIT     (1ull << OFF_BITS)
#define RULES_INITIAL 64
/* Slots of the rules' table: at most a half is used. */
#define SLOTS_INITIAL 256u
#define GAP	      0u
#define NO_SPAN	      SIZE_MAX

_Static_assert(OFF_BITS + RULE_BITS == 64, "an entry is one word");
_Static_assert(ROWS_RULES_MAX < 1u << RULE_BITS, "a rule's number fits an entry");

/* The address first: entries compare as numbers. */
static inline uint64_t entry_make(uint64_t off, uint32_t rule)
{
	return off << RULE_BITS | rule;
}

static inline uint64_t entry_off(uint64_t entry)
{
	return entry >> RULE_BITS;
}

static inline uint32_t entry_rule(uint64_t entry)
{
	return (uint32_t)entry & ((1u << RULE_BITS) - 1);
}

/* Ranges side by side: entries [first, first + n) from @start to @end. */
struct span {
	uint64_t start;
	uint64_t end;
	uint64_t order; /* source, then the number of the span: the highest wins */
	uint32_t first;
	uint32_t n;
};

struct entries {
	uint64_t *items;
	size_t n, cap;
};

struct rows {
	uint64_t text_start;
	uint64_t text_size;
	struct entries entries;
	struct span *spans;
	size_t n_spans, spans_cap;
	struct span range; /* the one that is being added */

	struct unwind_rule *rules;
	size_t n_rules, rules_cap;
	uint32_t *slots; /* rule's number + 1 by hash; 0 is free */
	size_t n_slots;	 /* a power of two */
	uint32_t last_rule;
};

DEFINE_CLEANUP(struct rows *, rows_freep, rows_free);

/* ---------------------------------------------------------------- rules */

static size_t rule_hash(const struct unwind_rule *rule)
{
	uint64_t word[2];

	memcpy(word, rule, sizeof(word));
	word[0] = (word[0] ^ word[1] >> 29 ^ word[1]) * 0x9e3779b97f4a7c15ull;
	word[1] = (word[1] + (word[0] >> 32)) * 0xff51afd7ed558ccdull;
	return (size_t)((word[0] ^ word[1]) >> 32);
}

static inline bool rule_equal(const struct unwind_rule *a, const struct unwind_rule *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

static int rules_grow_slots(struct rows *rows)
{
	size_t n = rows->n_slots ? 2 * rows->n_slots : SLOTS_INITIAL;
	uint32_t *slots = calloc(n, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	for (uint32_t id = 0; id < rows->n_rules; id++) {
		size_t i = rule_hash(&rows->rules[id]) & (n - 1);

		while (slots[i])
			i = (i + 1) & (n - 1);
		slots[i] = id + 1;
	}
	free(rows->slots);
	rows->slots = slots;
	rows->n_slots = n;
	return 0;
}

static int rules_add(struct rows *rows, size_t slot, const struct unwind_rule *rule, uint32_t *ret)
{
	int r = vec_grow(&rows->rules, &rows->rules_cap, rows->n_rules + 1, sizeof(*rows->rules),
			 ROWS_RULES_MAX);

	if (r)
		return r;
	rows->rules[rows->n_rules++] = *rule;
	rows->slots[slot] = (uint32_t)rows->n_rules;
	*ret = (uint32_t)rows->n_rules - 1;
	return 2 * rows->n_rules > rows->n_slots ? rules_grow_slots(rows) : 0;
}

/* Its slot, or the free one where it belongs. */
static size_t rules_slot(const struct rows *rows, const struct unwind_rule *rule)
{
	size_t i = rule_hash(rule) & (rows->n_slots - 1);

	while (rows->slots[i] && !rule_equal(rule, &rows->rules[rows->slots[i] - 1]))
		i = (i + 1) & (rows->n_slots - 1);
	return i;
}

static int rule_intern(struct rows *rows, const struct unwind_rule *rule, uint32_t *ret)
{
	static const struct unwind_rule too_many = {.cfa = UNWIND_CFA_UNSUPPORTED,
						    .cfa_off = UNSUPPORTED_TOO_MANY_RULES};
	size_t slot;
	int r = 0;

	if (rule_equal(rule, &rows->rules[rows->last_rule])) {
		*ret = rows->last_rule;
		return 0;
	}
	slot = rules_slot(rows, rule);
	/* the last number is kept for the excuse */
	if (!rows->slots[slot] && rows->n_rules >= ROWS_RULES_MAX - 1) {
		rule = &too_many;
		slot = rules_slot(rows, rule);
	}
	if (!rows->slots[slot])
		r = rules_add(rows, slot, rule, &rows->last_rule);
	else
		rows->last_rule = rows->slots[slot] - 1;
	*ret = rows->last_rule;
	return r;
}

size_t rows_n_rules(const struct rows *rows)
{
	return rows->n_rules;
}

const struct unwind_rule *rows_rule(const struct rows *rows, uint32_t id)
{
	return &rows->rules[id];
}

/* ---------------------------------------------------------------- collecting */

int rows_new(uint64_t text_start, uint64_t text_end, struct rows **ret)
{
	static const struct unwind_rule gap = {.cfa = UNWIND_CFA_GAP};
	_Static_assert(UNWIND_CFA_GAP == 0, "the gap is rule 0 and all zeros");
	_cleanup_(rows_freep) struct rows *rows = calloc(1, sizeof(*rows));

	if (!rows)
		return -ENOMEM;
	rows->text_start = text_start;
	rows->text_size = text_end > text_start ? text_end - text_start : 0;
	/* one less, so that the end of a range fits too */
	if (rows->text_size >= OFF_LIMIT)
		rows->text_size = OFF_LIMIT - 1;
	if (rules_grow_slots(rows) ||
	    rules_add(rows, rules_slot(rows, &gap), &gap, &rows->last_rule))
		return -ENOMEM;
	*ret = take_ptr(rows);
	return 0;
}

void rows_free(struct rows *rows)
{
	if (!rows)
		return;
	free(rows->entries.items);
	free(rows->spans);
	free(rows->rules);
	free(rows->slots);
	free(rows);
}

/* An entry behind the others. The same address again replaces; the same rule again says nothing. */
static int entries_add(struct entries *e, size_t first, uint64_t off, uint32_t rule)
{
	int r;

	if (e->n > first && entry_off(e->items[e->n - 1]) == off)
		e->n--;
	if (e->n > first && entry_rule(e->items[e->n - 1]) == rule)
		return 0;
	if (e->n == e->cap) {
		r = vec_grow(&e->items, &e->cap, e->n + 1, sizeof(*e->items), ROWS_MAX);
		if (r)
			return r;
	}
	e->items[e->n++] = entry_make(off, rule);
	return 0;
}

int rows_begin(struct rows *rows, enum rows_source source, uint64_t start, uint64_t end)
{
	if (start < rows->text_start || end <= start || end - rows->text_start > rows->text_size)
		return ROWS_OUTSIDE;
	rows->range = (struct span){
		.start = start - rows->text_start,
		.end = end - rows->text_start,
		.order = (uint64_t)source << 32,
		.first = (uint32_t)rows->entries.n,
	};
	return 0;
}

int rows_add(struct rows *rows, uint64_t vaddr, const struct unwind_rule *rule)
{
	const struct span *range = &rows->range;
	uint64_t off = vaddr - rows->text_start;
	struct entries *e = &rows->entries;
	uint32_t id;
	int r;

	if (off >= range->end)
		return 0;
	r = rule_intern(rows, rule, &id);
	if (!r && e->n == range->first && off > range->start)
		r = entries_add(e, range->first, range->start, GAP);
	return r ? r : entries_add(e, range->first, off, id);
}

void rows_drop(struct rows *rows)
{
	rows->entries.n = rows->range.first;
}

/* The range as one more span, or as the last one's continuation. */
static int rows_end_range(struct rows *rows)
{
	struct span *range = &rows->range;
	struct span *last = rows->n_spans ? &rows->spans[rows->n_spans - 1] : NULL;
	int r;

	if (last && range->start >= last->end && range->start - last->end <= ROWS_PADDING_MAX &&
	    range->order >> 32 == last->order >> 32) {
		last->end = range->end;
		last->n += range->n;
		return 0;
	}
	r = vec_grow(&rows->spans, &rows->spans_cap, rows->n_spans + 1, sizeof(*rows->spans),
		     ROWS_MAX);
	if (r)
		return r;
	range->order |= rows->n_spans;
	rows->spans[rows->n_spans++] = *range;
	return 0;
}

int rows_end(struct rows *rows)
{
	struct span *range = &rows->range;
	int r = 0;

	/* nothing said of it is a gap, and one that wins */
	if (rows->entries.n == range->first)
		r = entries_add(&rows->entries, range->first, range->start, GAP);
	range->n = (uint32_t)(rows->entries.n - range->first);
	if (!r)
		r = rows_end_range(rows);
	if (r)
		rows_drop(rows);
	return r;
}

/* ---------------------------------------------------------------- in order */

static int span_compare(const void *a, const void *b)
{
	const struct span *left = a, *right = b;

	if (left->start != right->start)
		return left->start < right->start ? -1 : 1;
	return left->order < right->order ? -1 : left->order > right->order;
}

static bool spans_sorted(const struct rows *rows)
{
	for (size_t i = 1; i < rows->n_spans; i++)
		if (span_compare(&rows->spans[i - 1], &rows->spans[i]) > 0)
			return false;
	return true;
}

/* The spans at one address: a heap of their numbers, the winner first. */
struct heap {
	const struct span *spans;
	uint32_t *items;
	size_t n;
};

static bool heap_above(const struct heap *h, size_t a, size_t b)
{
	return h->spans[h->items[a]].order > h->spans[h->items[b]].order;
}

static void heap_swap(struct heap *h, size_t a, size_t b)
{
	uint32_t was = h->items[a];

	h->items[a] = h->items[b];
	h->items[b] = was;
}

static void heap_push(struct heap *h, uint32_t span)
{
	size_t i = h->n++;

	h->items[i] = span;
	for (; i > 0 && heap_above(h, i, (i - 1) / 2); i = (i - 1) / 2)
		heap_swap(h, i, (i - 1) / 2);
}

static void heap_pop(struct heap *h)
{
	size_t i = 0;

	h->items[0] = h->items[--h->n];
	for (;;) {
		size_t left = 2 * i + 1, best = i;

		if (left < h->n && heap_above(h, left, best))
			best = left;
		if (left + 1 < h->n && heap_above(h, left + 1, best))
			best = left + 1;
		if (best == i)
			return;
		heap_swap(h, i, best);
		i = best;
	}
}

/* The last of @n ascending entries at or below @off; the first one is. */
static size_t entries_at(const uint64_t *items, size_t n, uint64_t off)
{
	size_t low = 0;

	while (n > 1) {
		size_t half = n / 2;

		if (entry_off(items[low + half]) <= off)
			low += half;
		n -= half;
	}
	return low;
}

/* What @span says of [@from, @to). */
static int emit(const struct rows *rows, const struct span *span, uint64_t from, uint64_t to,
		struct entries *out)
{
	const uint64_t *items = rows->entries.items + span->first;
	size_t i = from == span->start ? 0 : entries_at(items, span->n, from);
	int r = entries_add(out, 0, from, entry_rule(items[i]));

	for (i++; !r && i < span->n && entry_off(items[i]) < to; i++)
		r = entries_add(out, 0, entry_off(items[i]), entry_rule(items[i]));
	return r;
}

struct sweep {
	const struct rows *rows;
	struct heap heap;
	size_t next;	  /* span that has not begun */
	uint64_t covered; /* up to here */
	struct entries out;
};

static int sweep_step(struct sweep *s)
{
	const struct span *spans = s->rows->spans, *top;
	size_t n_spans = s->rows->n_spans;
	uint64_t from = s->covered, to;
	int r = 0;

	if (!s->heap.n && spans[s->next].start > from) {
		from = spans[s->next].start;
		if (s->out.n && from - s->covered > ROWS_PADDING_MAX)
			r = entries_add(&s->out, 0, s->covered, GAP);
	}
	while (s->next < n_spans && spans[s->next].start <= from)
		heap_push(&s->heap, (uint32_t)s->next++);
	top = &spans[s->heap.items[0]];
	to = top->end;
	if (s->next < n_spans && spans[s->next].start < to)
		to = spans[s->next].start;
	if (!r)
		r = emit(s->rows, top, from, to, &s->out);
	s->covered = to;
	while (s->heap.n && spans[s->heap.items[0]].end <= to)
		heap_pop(&s->heap);
	return r;
}

static int sweep(struct rows *rows)
{
	struct sweep s = {.rows = rows, .heap = {.spans = rows->spans}};
	int r = 0;

	s.heap.items = malloc((rows->n_spans + 1) * sizeof(*s.heap.items));
	if (!s.heap.items)
		return -ENOMEM;
	/* room for all and a gap behind each: what overlaps may still need more */
	if (rows->n_spans)
		r = vec_grow(&s.out.items, &s.out.cap, rows->entries.n + 1, sizeof(*s.out.items),
			     ROWS_MAX);
	while (!r && (s.heap.n || s.next < rows->n_spans))
		r = sweep_step(&s);
	if (!r && s.out.n)
		r = entries_add(&s.out, 0, s.covered, GAP);
	free(s.heap.items);
	free(rows->entries.items);
	rows->entries = s.out;
	if (r)
		rows->entries.n = 0;
	return r;
}

int rows_finish(struct rows *rows)
{
	int r;

	if (!spans_sorted(rows))
		qsort(rows->spans, rows->n_spans, sizeof(*rows->spans), span_compare);
	r = sweep(rows);
	free(rows->spans);
	rows->spans = NULL;
	rows->n_spans = rows->spans_cap = 0;
	rows->text_size = 0; /* no more ranges */
	return r;
}

/* ---------------------------------------------------------------- questions */

size_t rows_count(const struct rows *rows)
{
	return rows->entries.n;
}

struct row rows_at(const struct rows *rows, size_t i)
{
	uint64_t entry = rows->entries.items[i];

	return (struct row){.vaddr = rows->text_start + entry_off(entry),
			    .rule = entry_rule(entry)};
}

size_t rows_find(const struct rows *rows, uint64_t vaddr)
{
	const struct entries *e = &rows->entries;
	uint64_t off = vaddr - rows->text_start;

	if (!e->n || vaddr < rows->text_start || off < entry_off(e->items[0]))
		return (size_t)-1;
	return entries_at(e->items, e->n, off);
}

size_t rows_bytes(const struct rows *rows)
{
	return sizeof(*rows) + rows->entries.cap * sizeof(*rows->entries.items) +
	       rows->spans_cap * sizeof(*rows->spans) + rows->rules_cap * sizeof(*rows->rules) +
	       rows->n_slots * sizeof(*rows->slots);
}

const char *rows_outcome_name(int outcome)
{
	static const char *const names[ROWS_OUTCOME_MAX] = {
		[ROWS_OK] = "ok",
		[ROWS_FULL] = "rows_full",
		[ROWS_OUTSIDE] = "outside",
	};

	return outcome >= 0 && outcome < ROWS_OUTCOME_MAX ? names[outcome] : "error";
}

const char *rows_source_name(enum rows_source source)
{
	static const char *const names[ROWS_SOURCE_MAX] = {
		[ROWS_DEBUG_FRAME] = "debug_frame", [ROWS_EH_FRAME] = "eh_frame", [ROWS_GO] = "go",
		[ROWS_SYNTHETIC] = "synthetic",	    [ROWS_USER] = "user",
	};

	return source < ROWS_SOURCE_MAX ? names[source] : "unknown";
}

const char *rows_unsupported_name(int32_t why)
{
	static const char *const names[UNSUPPORTED_MAX] = {
		[UNSUPPORTED_CFA_EXPRESSION] = "cfa_expression",
		[UNSUPPORTED_CFA_REGISTER] = "cfa_register",
		[UNSUPPORTED_CFA_OFFSET] = "cfa_offset",
		[UNSUPPORTED_CFA_NONE] = "cfa_none",
		[UNSUPPORTED_FP_REGISTER] = "fp_register",
		[UNSUPPORTED_FP_EXPRESSION] = "fp_expression",
		[UNSUPPORTED_FP_VALUE] = "fp_value",
		[UNSUPPORTED_FP_OFFSET] = "fp_offset",
		[UNSUPPORTED_RA_REGISTER] = "ra_register",
		[UNSUPPORTED_RA_EXPRESSION] = "ra_expression",
		[UNSUPPORTED_RA_VALUE] = "ra_value",
		[UNSUPPORTED_RA_OFFSET] = "ra_offset",
		[UNSUPPORTED_RA_NONE] = "ra_none",
		[UNSUPPORTED_SIGNAL] = "signal",
		[UNSUPPORTED_TOO_MANY_RULES] = "too_many_rules",
	};

	return why > 0 && why < UNSUPPORTED_MAX ? names[why] : "unknown";
}
