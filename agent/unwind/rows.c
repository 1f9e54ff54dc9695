// SPDX-License-Identifier: Apache-2.0
/*
 * Rows of an image, collected range by range and then sorted.
 *
 * A row is eight bytes here: 40 bits of address, counted from the text's start, and the number of
 * its rule. Programs have a million rows and a few hundred rules, so rules are deduplicated on
 * arrival; the packer need not do it.
 *
 * Successive ranges with at most padding between them grow a "span". Linkers put functions in the
 * order of their tables, with exceptions (cold and start-up code is moved away). So there are fewer
 * spans than ranges, and only the spans are sorted. If any spans overlap, they are split into their
 * ranges first, because a function may lie in apparent padding between two others. Then a sweep
 * over the addresses takes, at each address, the winner of the spans there: the highest source,
 * then the latest. A heap holds the spans. It has more than one span only where ranges overlap,
 * which is rare in honest files; for hostile files it keeps the cost at n log n.
 *
 * Padding between functions belongs to the function before: no row is spent on it, and nothing runs
 * there.
 */
#include "unwind/rows.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/vec.h"

#define OFF_BITS      40
#define RULE_BITS     24
#define OFF_LIMIT     (1ull << OFF_BITS)
/* Slots of the rules' table: at most a half is used. */
#define SLOTS_INITIAL 1024u
/* Rules found last. 1,024, as an exponent of 2. */
#define RECENT_BITS   10
/* Address bits in one pass of the sort: text of 8 GiB takes three passes. */
#define SORT_BITS     11
#define SORT_MASK     ((1u << SORT_BITS) - 1)

/* Rule numbers outside the table. */
#define GAP  0u
#define HOLE ((1u << RULE_BITS) - 1)

_Static_assert(OFF_BITS + RULE_BITS == 64, "an entry is one word");
_Static_assert(ROWS_RULES_MAX < HOLE, "a rule's number fits an entry");
_Static_assert(ROWS_MAX < 1u << RULE_BITS, "a span's number fits the sort's keys");

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

/*
 * Successive ranges: entries [first, first + n), from @start to @end. Each range's entries end with
 * a HOLE at its end: the bytes up to the next range belong to no range.
 */
struct span {
	uint64_t start;
	uint64_t end;
	uint32_t first;
	uint32_t n;
	enum rows_source source;
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
	uint64_t watch; /* address, as in spans */
	bool watched;
	struct span range; /* the range in progress */

	struct unwind_rule *rules;
	size_t n_rules, rules_cap;
	uint32_t *slots;		    /* rule's number + 1 by hash; 0 is free */
	size_t n_slots;			    /* a power of two */
	uint32_t recent[1u << RECENT_BITS]; /* numbers of rules, by recent_slot() */
};

/* ---------------------------------------------------------------- rules */

static inline size_t rule_hash(const struct unwind_rule *rule)
{
	uint64_t word[2];

	memcpy(word, rule, sizeof(word));
	return (size_t)hash_words(word[0], word[1]);
}

static inline bool rule_equal(const struct unwind_rule *a, const struct unwind_rule *b)
{
	uint64_t left[2], right[2];

	memcpy(left, a, sizeof(left));
	memcpy(right, b, sizeof(right));
	return ((left[0] ^ right[0]) | (left[1] ^ right[1])) == 0;
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

static int rules_add(struct rows *rows, size_t slot, const struct unwind_rule *rule)
{
	int r = vec_grow(&rows->rules, &rows->rules_cap, rows->n_rules + 1, sizeof(*rows->rules),
			 ROWS_RULES_MAX);

	if (r)
		return r;
	rows->rules[rows->n_rules++] = *rule;
	rows->slots[slot] = (uint32_t)rows->n_rules;
	return 2 * rows->n_rules > rows->n_slots ? rules_grow_slots(rows) : 0;
}

/* Its slot, or the free slot for it. */
static inline size_t rules_slot(const struct rows *rows, const struct unwind_rule *rule)
{
	size_t i = rule_hash(rule) & (rows->n_slots - 1);

	while (rows->slots[i] && !rule_equal(rule, &rows->rules[rows->slots[i] - 1]))
		i = (i + 1) & (rows->n_slots - 1);
	return i;
}

/* Of @recent. Rules that meet here only take turns, so the slot needs no seed. */
static inline size_t recent_slot(const struct unwind_rule *rule)
{
	uint64_t word[2];

	memcpy(word, rule, sizeof(word));
	return (word[0] ^ word[1] << 1) * 0x9e3779b97f4a7c15ull >> (64 - RECENT_BITS);
}

/* A rule that is not a recent one. */
static __attribute__((noinline)) int intern(struct rows *rows, const struct unwind_rule *rule,
					    uint32_t *ret)
{
	static const struct unwind_rule too_many = {.cfa = UNWIND_CFA_UNSUPPORTED,
						    .cfa_off = UNSUPPORTED_TOO_MANY_RULES};
	size_t slot = rules_slot(rows, rule);
	int r = 0;

	/* the last number is kept for the excuse */
	if (!rows->slots[slot] && rows->n_rules >= ROWS_RULES_MAX - 1) {
		rule = &too_many;
		slot = rules_slot(rows, rule);
	}
	if (rows->slots[slot]) {
		*ret = rows->slots[slot] - 1;
		return 0;
	}
	r = rules_add(rows, slot, rule);
	if (!r)
		*ret = (uint32_t)rows->n_rules - 1;
	return r;
}

/* Whether the rule was found last in its place: then *@ret. Asked a million times for a large
 * program, which has a few dozen frequent rules. */
static inline bool is_recent(const struct rows *rows, const struct unwind_rule *rule, uint32_t *ret)
{
	*ret = rows->recent[recent_slot(rule)];
	return rule_equal(rule, &rows->rules[*ret]);
}

int rows_intern(struct rows *rows, const struct unwind_rule *rule, uint32_t *ret)
{
	int r;

	if (is_recent(rows, rule, ret))
		return 0;
	r = intern(rows, rule, ret);
	if (!r)
		rows->recent[recent_slot(rule)] = *ret;
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
	if (rules_grow_slots(rows) || rules_add(rows, rules_slot(rows, &gap), &gap))
		return -ENOMEM;
	*ret = take_ptr(rows);
	return 0;
}

/* A range for each part of @known without a gap. */
static int copy_ranges(const struct rows *known, struct rows *rows)
{
	const size_t n = known->entries.n;
	uint64_t *items = malloc((n + 1) * sizeof(*items));

	if (!items)
		return -ENOMEM;
	rows->entries = (struct entries){.items = items, .n = n, .cap = n};
	if (n)
		memcpy(items, known->entries.items, n * sizeof(*items));
	for (size_t i = 0, end; i < n; i = end + 1) {
		struct span *span;

		end = rows_next_gap(known, i);
		if (end == i)
			continue;
		if (vec_grow(&rows->spans, &rows->spans_cap, rows->n_spans + 1,
			     sizeof(*rows->spans), ROWS_MAX))
			return -ENOMEM;
		span = &rows->spans[rows->n_spans++];
		*span = (struct span){.start = entry_off(items[i]),
				      .end = entry_off(items[end]),
				      .first = (uint32_t)i,
				      .n = (uint32_t)(end + 1 - i),
				      .source = ROWS_EH_FRAME};
		items[end] = entry_make(span->end, HOLE);
	}
	return 0;
}

int rows_copy(const struct rows *known, uint64_t text_end, struct rows **ret)
{
	_cleanup_(rows_freep) struct rows *rows = NULL;
	uint32_t same;
	int r = rows_new(known->text_start, text_end, &rows);

	for (size_t i = 0; i < known->n_rules && !r; i++)
		r = rows_intern(rows, &known->rules[i], &same);
	if (!r)
		r = copy_ranges(known, rows);
	if (r)
		return r;
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

/* A separate function, so that the usual path saves no registers. */
static __attribute__((noinline)) int entries_push_full(struct entries *e, uint64_t off,
						       uint32_t rule)
{
	int r = vec_grow(&e->items, &e->cap, e->n + 1, sizeof(*e->items), ROWS_MAX);

	if (!r)
		e->items[e->n++] = entry_make(off, rule);
	return r;
}

static inline int entries_push(struct entries *e, uint64_t off, uint32_t rule)
{
	if (e->n == e->cap)
		return entries_push_full(e, off, rule);
	e->items[e->n++] = entry_make(off, rule);
	return 0;
}

int rows_reserve(struct rows *rows, size_t n)
{
	struct entries *e = &rows->entries;

	return vec_grow(&e->items, &e->cap, n < ROWS_MAX ? n : ROWS_MAX, sizeof(*e->items),
			ROWS_MAX);
}

int rows_begin(struct rows *rows, enum rows_source source, uint64_t start, uint64_t end)
{
	if (start < rows->text_start || end <= start || end - rows->text_start > rows->text_size)
		return ROWS_OUTSIDE;
	rows->range = (struct span){
		.start = start - rows->text_start,
		.end = end - rows->text_start,
		.first = (uint32_t)rows->entries.n,
		.source = source,
	};
	return 0;
}

/* The range's first entry, at its start. */
static __attribute__((noinline)) int add_first(struct rows *rows, uint64_t off, uint32_t rule)
{
	const struct span *range = &rows->range;
	int r;

	if (off == range->start)
		return entries_push(&rows->entries, off, rule);
	r = entries_push(&rows->entries, range->start, GAP);
	return r || rule == GAP ? r : entries_push(&rows->entries, off, rule);
}

/* Replaces the last entry, at the same address. */
static __attribute__((noinline)) int add_again(struct rows *rows, uint64_t off, uint32_t rule)
{
	struct entries *e = &rows->entries;

	e->n--;
	if (e->n > rows->range.first && entry_rule(e->items[e->n - 1]) == rule)
		return 0;
	return entries_push(e, off, rule);
}

static inline int add_entry(struct rows *rows, uint64_t vaddr, uint32_t rule)
{
	uint64_t off = vaddr - rows->text_start, last;
	struct entries *e = &rows->entries;

	if (off >= rows->range.end)
		return 0;
	if (e->n == rows->range.first)
		return add_first(rows, off, rule);
	last = e->items[e->n - 1];
	if (entry_off(last) == off)
		return add_again(rows, off, rule);
	return entry_rule(last) == rule ? 0 : entries_push(e, off, rule);
}

int rows_add_interned(struct rows *rows, uint64_t vaddr, uint32_t rule)
{
	return add_entry(rows, vaddr, rule);
}

/* A separate function, so that the usual path saves no registers. */
static __attribute__((noinline)) int add_other(struct rows *rows, uint64_t vaddr,
					       const struct unwind_rule *rule, uint32_t *ret)
{
	int r = rows_intern(rows, rule, ret);

	return r ? r : add_entry(rows, vaddr, *ret);
}

int rows_add_intern(struct rows *rows, uint64_t vaddr, const struct unwind_rule *rule,
		    uint32_t *ret)
{
	if (!is_recent(rows, rule, ret))
		return add_other(rows, vaddr, rule, ret);
	return add_entry(rows, vaddr, *ret);
}

int rows_add(struct rows *rows, uint64_t vaddr, const struct unwind_rule *rule)
{
	uint32_t id;

	return rows_add_intern(rows, vaddr, rule, &id);
}

void rows_drop(struct rows *rows)
{
	rows->entries.n = rows->range.first;
}

/* Adds the range as a new span, or extends the last span. */
static int end_range(struct rows *rows)
{
	struct span *range = &rows->range;
	struct span *last = rows->n_spans ? &rows->spans[rows->n_spans - 1] : NULL;
	int r;

	range->n = (uint32_t)(rows->entries.n - range->first);
	if (last && range->start >= last->end && range->start - last->end <= ROWS_PADDING_MAX &&
	    range->source == last->source) {
		last->end = range->end;
		last->n += range->n;
		return 0;
	}
	r = vec_grow(&rows->spans, &rows->spans_cap, rows->n_spans + 1, sizeof(*rows->spans),
		     ROWS_MAX);
	if (!r)
		rows->spans[rows->n_spans++] = *range;
	return r;
}

size_t rows_n_spans(const struct rows *rows)
{
	return rows->n_spans;
}

void rows_span(const struct rows *rows, size_t i, uint64_t *ret_start, uint64_t *ret_end)
{
	*ret_start = rows->text_start + rows->spans[i].start;
	*ret_end = rows->text_start + rows->spans[i].end;
}

void rows_watch(struct rows *rows, uint64_t vaddr)
{
	rows->watch = vaddr - rows->text_start;
	rows->watched = false;
}

bool rows_watched(const struct rows *rows)
{
	return rows->watched;
}

int rows_end(struct rows *rows)
{
	struct span *range = &rows->range;
	int r = 0;

	/* a range without rows is a gap, and this gap can win */
	if (rows->entries.n == range->first)
		r = entries_push(&rows->entries, range->start, GAP);
	rows->watched |= range->start <= rows->watch && rows->watch < range->end;
	if (!r)
		r = entries_push(&rows->entries, range->end, HOLE);
	if (!r)
		r = end_range(rows);
	if (r)
		rows_drop(rows);
	return r;
}

/* ---------------------------------------------------------------- in order */

/*
 * The spans' numbers by address: keys of start and number, in a stable sort by the bytes of the
 * address, lowest byte first.
 */
struct order {
	uint64_t *keys, *other;
	size_t n;
};

static inline uint32_t order_at(const struct order *o, size_t i)
{
	return entry_rule(o->keys[i]);
}

static void order_pass(struct order *o, unsigned int shift)
{
	uint32_t at[1u << SORT_BITS] = {0}, sum = 0;
	uint64_t *was = o->keys;

	for (size_t i = 0; i < o->n; i++)
		at[was[i] >> shift & SORT_MASK]++;
	for (size_t i = 0; i <= SORT_MASK; i++) {
		uint32_t n = at[i];

		at[i] = sum;
		sum += n;
	}
	for (size_t i = 0; i < o->n; i++)
		o->other[at[was[i] >> shift & SORT_MASK]++] = was[i];
	o->keys = o->other;
	o->other = was;
}

static void order_deinit(struct order *o)
{
	free(o->keys);
	free(o->other);
}

static int order_init(struct order *o, const struct span *spans, size_t n)
{
	uint64_t highest = 0;
	bool sorted = true;

	o->n = n;
	o->keys = malloc((n + 1) * sizeof(*o->keys));
	o->other = malloc((n + 1) * sizeof(*o->other));
	if (!o->keys || !o->other)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		o->keys[i] = entry_make(spans[i].start, (uint32_t)i);
		sorted &= o->keys[i] >= highest;
		highest = o->keys[i] > highest ? o->keys[i] : highest;
	}
	for (unsigned int shift = RULE_BITS; !sorted && shift < 64 && highest >> shift;
	     shift += SORT_BITS)
		order_pass(o, shift);
	return 0;
}

static bool spans_overlap(const struct rows *rows, const struct order *o)
{
	for (size_t i = 1; i < o->n; i++)
		if (rows->spans[order_at(o, i)].start < rows->spans[order_at(o, i - 1)].end)
			return true;
	return false;
}

/* Splits spans into a span for each range: padding inside a span may belong to another span. */
static int split_spans(struct rows *rows)
{
	size_t n = 0, cap = 0, at = 0;
	struct span *spans = NULL;

	for (size_t i = 0; i < rows->n_spans; i++) {
		const struct span *from = &rows->spans[i];

		for (at = from->first; at < from->first + from->n; at++) {
			struct span *to;

			if (vec_grow(&spans, &cap, n + 1, sizeof(*spans), ROWS_MAX)) {
				free(spans);
				return -ENOMEM;
			}
			to = &spans[n++];
			*to = (struct span){.start = entry_off(rows->entries.items[at]),
					    .first = (uint32_t)at,
					    .source = from->source};
			while (entry_rule(rows->entries.items[at]) != HOLE)
				at++;
			to->end = entry_off(rows->entries.items[at]);
			to->n = (uint32_t)at + 1 - to->first;
		}
	}
	free(rows->spans);
	rows->spans = spans;
	rows->n_spans = n;
	rows->spans_cap = cap;
	return 0;
}

/* The spans at one address: a heap of their numbers, the winner first. */
struct heap {
	const struct span *spans;
	uint32_t *items;
	size_t n;
};

static bool heap_above(const struct heap *h, size_t a, size_t b)
{
	const struct span *left = &h->spans[h->items[a]], *right = &h->spans[h->items[b]];

	return left->source != right->source ? left->source > right->source : left > right;
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

/* The last of @n ascending entries at or below @off; the first entry is. */
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

struct sweep {
	const struct rows *rows;
	struct order order;
	struct heap heap;
	size_t next;	  /* next span in order that has not begun */
	uint64_t covered; /* up to here */
	uint64_t *out;
	size_t n;
};

static inline void put(struct sweep *s, uint64_t off, uint32_t rule)
{
	if (!s->n || entry_rule(s->out[s->n - 1]) != rule)
		s->out[s->n++] = entry_make(off, rule);
}

/* Emits the rows of @span in [@from, @to). */
static void emit(struct sweep *s, const struct span *span, uint64_t from, uint64_t to)
{
	const uint64_t *items = s->rows->entries.items + span->first;
	size_t i = from == span->start ? 0 : entries_at(items, span->n, from);
	const size_t end = to == span->end ? span->n : entries_at(items, span->n, to - 1) + 1;
	uint64_t *out;
	uint32_t last;

	if (entry_rule(items[i]) != HOLE)
		put(s, from, entry_rule(items[i]));
	out = s->out + s->n;
	last = s->n ? entry_rule(out[-1]) : HOLE;
	for (i++; i < end; i++) {
		const uint32_t rule = entry_rule(items[i]);

		if (rule == last || rule == HOLE)
			continue;
		*out++ = items[i];
		last = rule;
	}
	s->n = (size_t)(out - s->out);
}

static const struct span *next_span(const struct sweep *s)
{
	return s->next < s->order.n ? &s->rows->spans[order_at(&s->order, s->next)] : NULL;
}

static void sweep_step(struct sweep *s)
{
	const struct span *next = next_span(s), *top;
	uint64_t from = s->covered, to;

	if (!s->heap.n && next->start > from) {
		from = next->start;
		if (s->n && from - s->covered > ROWS_PADDING_MAX)
			put(s, s->covered, GAP);
	}
	for (; next && next->start <= from; next = next_span(s))
		heap_push(&s->heap, order_at(&s->order, s->next++));
	top = &s->heap.spans[s->heap.items[0]];
	to = next && next->start < top->end ? next->start : top->end;
	emit(s, top, from, to);
	s->covered = to;
	while (s->heap.n && s->heap.spans[s->heap.items[0]].end <= to)
		heap_pop(&s->heap);
}

/* A step begins or ends a span, and there are at most as many spans as ranges. The output has a
 * span's entries once, plus a row at its start and a gap before. */
static int sweep_alloc(struct sweep *s)
{
	size_t n = s->rows->entries.n + 3 * s->rows->n_spans + 1;

	s->heap.items = malloc((s->rows->n_spans + 1) * sizeof(*s->heap.items));
	s->out = malloc(n * sizeof(*s->out));
	return s->heap.items && s->out ? 0 : -ENOMEM;
}

static int sweep(struct sweep *s)
{
	int r = sweep_alloc(s);

	if (r)
		return r;
	while (s->heap.n || s->next < s->order.n)
		sweep_step(s);
	if (s->n)
		put(s, s->covered, GAP);
	return 0;
}

/* Replaces the entries by the rows, or by nothing without memory. */
static void take_rows(struct rows *rows, struct sweep *s, bool success)
{
	uint64_t *fitting;

	if (!success)
		s->n = 0;
	fitting = s->out ? realloc(s->out, (s->n + 1) * sizeof(*s->out)) : NULL;
	free(rows->entries.items);
	rows->entries.items = fitting ? fitting : s->out;
	rows->entries.n = rows->entries.cap = s->n;
	free(rows->spans);
	rows->spans = NULL;
	rows->n_spans = rows->spans_cap = 0;
	rows->text_size = 0; /* no more ranges */
}

int rows_finish(struct rows *rows)
{
	struct sweep s = {.rows = rows};
	int r = order_init(&s.order, rows->spans, rows->n_spans);

	if (!r && spans_overlap(rows, &s.order)) {
		order_deinit(&s.order);
		s.order = (struct order){0};
		r = split_spans(rows);
		if (!r)
			r = order_init(&s.order, rows->spans, rows->n_spans);
	}
	s.heap.spans = rows->spans;
	if (!r)
		r = sweep(&s);
	order_deinit(&s.order);
	free(s.heap.items);
	take_rows(rows, &s, !r);
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

size_t rows_next_gap(const struct rows *rows, size_t i)
{
	/* the last row is one */
	while (entry_rule(rows->entries.items[i]) != GAP)
		i++;
	return i;
}

size_t rows_find(const struct rows *rows, uint64_t vaddr)
{
	const struct entries *e = &rows->entries;
	uint64_t off = vaddr - rows->text_start;

	if (!e->n || vaddr < rows->text_start || off < entry_off(e->items[0]))
		return (size_t)-1;
	return entries_at(e->items, e->n, off);
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
		[UNSUPPORTED_SP] = "sp",
		[UNSUPPORTED_SIGNAL] = "signal",
		[UNSUPPORTED_TOO_MANY_RULES] = "too_many_rules",
	};

	return why > 0 && why < UNSUPPORTED_MAX ? names[why] : "unknown";
}
