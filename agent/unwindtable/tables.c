// SPDX-License-Identifier: Apache-2.0
/*
 * A table becomes visible in this order: its rules and ramps, its blob, its descriptor, and of that
 * the number of pages last; walkers look in the opposite order, and begin with mapping tables that
 * are written when all of it is there. Taken away is the number of pages first. What it led to is
 * given to somebody else only after TABLES_QUIET_NS, and so long passes between two tables of one
 * executable. No walker waits for anything and none can see half a table. (On arm64 a walker's
 * reads may be out of order, by some hundred instructions: the fields of the descriptor and the
 * blob are written much earlier than that, there are system calls in between.)
 *
 * Walkers count the frames of each executable, whether it has a table or not. A weight is made of
 * that, which fades by an eighth each second: so many frames in the last eight seconds. It says
 * what is wanted first. What a table is worth fades by a 64th: so many frames in the last minute.
 * The budget is in slabs. When there is no room, the tables that are worth least must go, if
 * together that is less than half of what the new one is worth, by more than chance would have it;
 * else it is refused. So tables of equal importance do not take turns, and what was pushed out
 * comes back when it is worth twice as much as what it would push out in its turn.
 *
 * Chance: frames come as samples do, and the count of a minute is off by half of its root, mostly.
 * Where hundreds of tables are wanted by a few frames each, some are off by five times as much, and
 * others by as much to the other side.
 */
#include "unwindtable/tables.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "unwindtable/dictionary.h"

#define SLAB_BYTES   ((uint64_t)TABLE_SLAB_ELEMENTS * TABLE_ELEMENT)
#define TICK_NS	     1000000000ull
/* Weights have eight bits of fraction, so that a single frame fades, too. */
#define WEIGHT_SHIFT 8
/* The square of how often chance has to be exceeded, halved (see above): eight times. */
#define CHANCE	     32

enum state {
	STATE_FREE = 0, /* the number is nobody's */
	STATE_NONE,	/* no table */
	STATE_LIVE,
	STATE_QUIET, /* taken away, may still be read */
};

struct exe {
	struct tables_key key;
	UT_hash_handle hh;
	enum state state;
	bool absent;
	uint32_t refs;
	uint16_t number;
	struct table *waiting; /* to be placed */
	uint64_t since_ns;     /* in this state */
	uint64_t put_ns;       /* when refs became 0 */
	uint64_t not_before_ns;
	uint64_t frames; /* counter, as read last */
	uint64_t weight;
	uint64_t worth;
	size_t bytes; /* of its table, also when that is gone; 0: not known */
	size_t rows;
	/* The place of a table that is live or quiet. */
	uint32_t element, n_elements;
	uint32_t tail, n_tail; /* in chunks */
	uint16_t *numbers;     /* rules, then ramps */
	uint32_t n_rules, n_ramps;
};

struct tables {
	struct tables_memory memory;
	struct elements *elements;
	struct elements_room room; /* at the last tick */
	struct dictionary *rules, *ramps;
	struct exe *exes; /* by number */
	struct exe *by_key;
	uint64_t tick_ns;
	uint32_t end; /* all numbers in use are below */
	struct tables_stats stats;
};

DEFINE_CLEANUP(struct tables *, tables_freep, tables_free);

/* ---------------------------------------------------------------- the whole */

int tables_new(const struct tables_opts *opts, struct tables **ret)
{
	const struct dictionary_opts rules = {opts->memory.rules, TABLE_RULES,
					      sizeof(struct unwind_rule)};
	const struct dictionary_opts ramps = {opts->memory.ramps, TABLE_RAMPS,
					      sizeof(struct table_ramp)};
	_cleanup_(tables_freep) struct tables *t = calloc(1, sizeof(*t));
	uint64_t n_slabs = opts->budget_bytes / SLAB_BYTES;
	int r;

	if (!t)
		return -ENOMEM;
	t->memory = opts->memory;
	t->end = 1;
	n_slabs = n_slabs < TABLE_SLABS ? n_slabs : TABLE_SLABS;
	t->exes = calloc(TABLE_EXES, sizeof(*t->exes));
	r = t->exes ? elements_new(&opts->memory.slabs, (uint32_t)n_slabs, &t->elements) : -ENOMEM;
	if (!r)
		r = dictionary_new(&rules, &t->rules);
	if (!r)
		r = dictionary_new(&ramps, &t->ramps);
	if (r)
		return r;
	t->room = elements_room(t->elements);
	*ret = take_ptr(t);
	return 0;
}

void tables_free(struct tables *t)
{
	if (!t)
		return;
	HASH_CLEAR(hh, t->by_key);
	for (uint32_t i = 1; t->exes && i < t->end; i++) {
		table_free(t->exes[i].waiting);
		free(t->exes[i].numbers);
	}
	free(t->exes);
	elements_free(t->elements);
	dictionary_free(t->rules);
	dictionary_free(t->ramps);
	free(t);
}

const struct tables_memory *tables_memory(const struct tables *t)
{
	return &t->memory;
}

struct elements *tables_elements(struct tables *t)
{
	return t->elements;
}

static struct exe *exe_of(const struct tables *t, uint16_t number)
{
	struct exe *exe = number && number < TABLE_EXES ? &t->exes[number] : NULL;

	return exe && exe->state != STATE_FREE ? exe : NULL;
}

static void set_state(struct exe *exe, enum state state, uint64_t now_ns)
{
	exe->state = state;
	exe->since_ns = now_ns;
}

/* ---------------------------------------------------------------- numbers */

/* The lowest, so that what is looked at each second stays together. */
static struct exe *free_exe(struct tables *t)
{
	for (uint32_t number = 1; number < TABLE_EXES; number++) {
		if (t->exes[number].state != STATE_FREE)
			continue;
		t->end = number < t->end ? t->end : number + 1;
		t->exes[number] = (struct exe){.number = (uint16_t)number};
		return &t->exes[number];
	}
	return NULL;
}

int tables_exe_get(struct tables *t, const struct tables_key *key, uint64_t now_ns, uint16_t *ret)
{
	bool hash_oom = false;
	struct exe *exe;

	HASH_FIND(hh, t->by_key, key, sizeof(*key), exe);
	if (!exe) {
		exe = free_exe(t);
		if (!exe)
			return TABLES_FULL;
		exe->key = *key;
		HASH_ADD(hh, t->by_key, key, sizeof(exe->key), exe);
		if (hash_oom)
			return -ENOMEM;
		exe->frames = t->memory.uses[exe->number].frames;
		t->memory.exes[exe->number].awaited = 1;
		set_state(exe, STATE_NONE, now_ns);
		t->stats.n_exes++;
	}
	exe->refs++;
	*ret = exe->number;
	return 0;
}

void tables_exe_put(struct tables *t, uint16_t number, uint64_t now_ns)
{
	struct exe *exe = exe_of(t, number);

	if (exe && exe->refs && !--exe->refs)
		exe->put_ns = now_ns;
}

/* ---------------------------------------------------------------- taking away */

static void take_away(struct tables *t, struct exe *exe, uint64_t now_ns)
{
	__atomic_store_n(&t->memory.exes[exe->number].n_pages, 0, __ATOMIC_RELEASE);
	set_state(exe, STATE_QUIET, now_ns);
	t->stats.n_live--;
	t->stats.rows -= exe->rows;
	t->stats.table_bytes -= exe->bytes;
}

static void drop_numbers(struct tables *t, struct exe *exe, uint64_t now_ns)
{
	for (uint32_t i = 0; i < exe->n_rules + exe->n_ramps; i++)
		dictionary_drop(i < exe->n_rules ? t->rules : t->ramps, exe->numbers[i], now_ns);
	free(exe->numbers);
	exe->numbers = NULL;
	exe->n_rules = exe->n_ramps = 0;
}

static void release_place(struct tables *t, struct exe *exe)
{
	if (exe->n_elements)
		elements_release(t->elements, exe->element, exe->n_elements);
	if (exe->n_tail)
		elements_release_chunks(t->elements, exe->tail, exe->n_tail);
	exe->n_elements = exe->n_tail = 0;
}

static void drop_waiting(struct tables *t, struct exe *exe)
{
	if (!exe->waiting)
		return;
	table_free(exe->waiting);
	exe->waiting = NULL;
	t->stats.n_waiting--;
}

void tables_withdraw(struct tables *t, uint16_t number, uint64_t now_ns)
{
	struct exe *exe = exe_of(t, number);

	if (!exe)
		return;
	drop_waiting(t, exe);
	if (exe->state == STATE_LIVE)
		take_away(t, exe, now_ns);
}

void tables_absent(struct tables *t, uint16_t number)
{
	struct exe *exe = exe_of(t, number);

	if (!exe)
		return;
	exe->absent = true;
	t->memory.exes[number].awaited = 0;
}

/* One that was never made has the smallest. */
static bool has_room(const struct elements_room *room, const struct exe *exe)
{
	return (exe->bytes < TABLE_ELEMENT ? room->piece_bytes : room->whole_bytes) >= exe->bytes;
}

bool tables_placing(const struct tables *t, uint16_t number)
{
	const struct exe *exe = exe_of(t, number);

	return exe && exe->waiting;
}

bool tables_awaited(const struct tables *t, uint16_t number, uint64_t now_ns)
{
	const struct exe *exe = exe_of(t, number);

	if (!exe || exe->state == STATE_LIVE || exe->absent || now_ns < exe->not_before_ns)
		return false;
	return exe->waiting || has_room(&t->room, exe);
}

bool tables_live(const struct tables *t, uint16_t number)
{
	const struct exe *exe = exe_of(t, number);

	return exe && exe->state == STATE_LIVE;
}

bool tables_kept_out(const struct tables *t, uint16_t number, uint64_t now_ns)
{
	const struct exe *exe = exe_of(t, number);

	return exe && now_ns < exe->not_before_ns;
}

/* ---------------------------------------------------------------- who may come in */

/* Live tables that may go, what is worth least first. */
static int worth_compare(const void *a, const void *b)
{
	const struct exe *left = *(const struct exe *const *)a;
	const struct exe *right = *(const struct exe *const *)b;

	if (left->worth != right->worth)
		return left->worth < right->worth ? -1 : 1;
	return (int)left->number - (int)right->number;
}

static size_t list_victims(const struct tables *t, uint64_t now_ns, struct exe **ret)
{
	size_t n = 0;

	for (uint32_t i = 1; i < t->end; i++)
		if (t->exes[i].state == STATE_LIVE &&
		    now_ns - t->exes[i].since_ns >= TABLES_STAY_NS)
			ret[n++] = &t->exes[i];
	qsort(ret, n, sizeof(struct exe *), worth_compare);
	return n;
}

/* Whether that is worth more than twice as much as @old, and not by chance. */
static bool is_worth_more(uint64_t worth, uint64_t old)
{
	uint64_t frames = worth >> WEIGHT_SHIFT, twice = 2 * (old >> WEIGHT_SHIFT);
	uint64_t more = frames > twice ? frames - twice : 0;

	/* the variance of the difference is half of this */
	return more > UINT32_MAX || more * more > CHANCE * (frames + 2 * twice);
}

/* How many of the @n @victims make room for @exe and are worth less than half as much together; 0
 * if none are. What is free is in pieces, so it does not count. */
static size_t victims_for(const struct exe *exe, struct exe *const *victims, size_t n, size_t bytes)
{
	uint64_t worth = 0;
	size_t freed = 0, i = 0;

	while (i < n && freed < bytes) {
		worth += victims[i]->worth;
		freed += victims[i++]->bytes;
	}
	return freed >= bytes && is_worth_more(exe->worth, worth) ? i : 0;
}

/* Whether a table of that size would get a place. */
static bool admissible(const struct elements_room *room, const struct exe *exe,
		       struct exe *const *victims, size_t n)
{
	return has_room(room, exe) || victims_for(exe, victims, n, exe->bytes);
}

/* Evict for @exe. Whether anything went. */
static bool make_room(struct tables *t, const struct exe *exe, size_t bytes, uint64_t now_ns)
{
	_cleanup_(freep) struct exe **victims = calloc(t->end, sizeof(struct exe *));
	size_t n;

	if (!victims)
		return false;
	n = list_victims(t, now_ns, victims);
	n = victims_for(exe, victims, n, bytes);
	for (size_t i = 0; i < n; i++) {
		take_away(t, victims[i], now_ns);
		victims[i]->not_before_ns = now_ns + TABLES_STAY_NS;
		t->stats.evictions++;
	}
	return n > 0;
}

size_t tables_wanted(const struct tables *t, uint64_t now_ns, struct tables_want *ret, size_t n)
{
	_cleanup_(freep) struct exe **victims = calloc(t->end, sizeof(struct exe *));
	struct elements_room room = elements_room(t->elements);
	size_t n_victims, out = 0;

	if (!victims)
		return 0;
	n_victims = list_victims(t, now_ns, victims);
	for (uint32_t i = 1; i < t->end; i++) {
		const struct exe *exe = &t->exes[i];
		size_t at;

		if (exe->state != STATE_NONE || exe->waiting || exe->absent || !exe->refs ||
		    !exe->weight || now_ns < exe->not_before_ns ||
		    !admissible(&room, exe, victims, n_victims))
			continue;
		for (at = out; at > 0 && ret[at - 1].weight < exe->weight; at--)
			if (at < n)
				ret[at] = ret[at - 1];
		if (at < n)
			ret[at] = (struct tables_want){exe->number, exe->weight};
		out += out < n;
	}
	return out;
}

/* ---------------------------------------------------------------- placing */

static int reserve_place(struct tables *t, struct exe *exe, const struct table *table)
{
	uint32_t n_elements = table->exe.n_elements;
	uint32_t n_tail = table->n_bytes % TABLE_ELEMENT / TABLE_CHUNK;
	int r = 0;

	if (n_elements)
		r = elements_reserve(t->elements, ELEMENTS_BLOBS, n_elements, &exe->element);
	if (r)
		return r;
	exe->n_elements = n_elements;
	if (n_tail)
		r = elements_reserve_chunks(t->elements, n_tail, &exe->tail);
	if (r)
		release_place(t, exe);
	else
		exe->n_tail = n_tail;
	return r;
}

/* The node's number for a value; that of the gap if there is none any more. */
static uint16_t take_number(struct tables *t, struct dictionary *d, const void *value,
			    uint64_t now_ns)
{
	uint16_t number = 0;

	if (dictionary_take(d, value, now_ns, &number))
		t->stats.rules_lost++;
	return number;
}

/* A ramp whose rules have the node's numbers. */
static struct table_ramp numbered_ramp(const struct table_ramp *ramp, const uint16_t *rules,
				       uint32_t n_rules)
{
	struct table_ramp ret = *ramp;

	for (size_t i = 0; i < TABLE_RAMP_STEPS; i++)
		ret.rules[i] = ramp->at[i] < TABLE_RAMP_END && ramp->rules[i] < n_rules
				       ? rules[ramp->rules[i]]
				       : 0;
	return ret;
}

static int take_numbers(struct tables *t, struct exe *exe, const struct table *table,
			uint64_t now_ns)
{
	uint16_t *numbers = calloc((size_t)table->n_rules + table->n_ramps + 1, sizeof(*numbers));

	if (!numbers)
		return -ENOMEM;
	for (uint32_t i = 0; i < table->n_rules; i++)
		numbers[i] = take_number(t, t->rules, &table->rules[i], now_ns);
	for (uint32_t i = 0; i < table->n_ramps; i++) {
		struct table_ramp ramp = numbered_ramp(&table->ramps[i], numbers, table->n_rules);

		numbers[table->n_rules + i] = take_number(t, t->ramps, &ramp, now_ns);
	}
	exe->numbers = numbers;
	exe->n_rules = table->n_rules;
	exe->n_ramps = table->n_ramps;
	return 0;
}

/* The blob's ids become the node's numbers. A ramp that has none is the gap. */
static void translate_ids(const struct exe *exe, struct table *table)
{
	uint16_t *ids = (uint16_t *)(void *)(table->blob + table->exe.ids);

	for (uint32_t i = 0; i < table->n_ids; i++) {
		uint32_t own = ids[i] & (TABLE_RAMP - 1);
		uint16_t number;

		if (!(ids[i] & TABLE_RAMP)) {
			ids[i] = own < exe->n_rules ? exe->numbers[own] : 0;
			continue;
		}
		number = own < exe->n_ramps ? exe->numbers[exe->n_rules + own] : 0;
		ids[i] = number ? TABLE_RAMP | number : 0;
	}
}

static int write_table(struct tables *t, const struct exe *exe, const struct table *table)
{
	size_t whole = (size_t)exe->n_elements * TABLE_ELEMENT;
	struct table_exe *to = &t->memory.exes[exe->number], head = table->exe;
	int r;

	head.element = exe->element;
	head.tail = exe->tail;
	head.n_pages = 0;
	*to = head;
	r = elements_write(t->elements, (uint64_t)exe->element * TABLE_ELEMENT, table->blob, whole);
	if (!r)
		r = elements_write(t->elements, (uint64_t)exe->tail * TABLE_CHUNK,
				   table->blob + whole, table->n_bytes - whole);
	if (!r)
		__atomic_store_n(&to->n_pages, table->exe.n_pages, __ATOMIC_RELEASE);
	return r;
}

static int place(struct tables *t, struct exe *exe, struct table *table, uint64_t now_ns)
{
	int r = reserve_place(t, exe, table);

	if (r)
		return r;
	r = take_numbers(t, exe, table, now_ns);
	if (!r) {
		translate_ids(exe, table);
		r = write_table(t, exe, table);
	}
	if (r) {
		drop_numbers(t, exe, now_ns);
		release_place(t, exe);
		return r;
	}
	exe->bytes = table->n_bytes;
	exe->rows = table->n_rows;
	set_state(exe, STATE_LIVE, now_ns);
	t->stats.n_live++;
	t->stats.loads++;
	t->stats.rows += exe->rows;
	t->stats.table_bytes += exe->bytes;
	return 0;
}

/* Give the waiting table its place, evict for it, or refuse it. 0 as long as there is hope. */
static int place_waiting(struct tables *t, struct exe *exe, uint64_t now_ns)
{
	int r = place(t, exe, exe->waiting, now_ns);

	if (r == ELEMENTS_LATER ||
	    (r == ELEMENTS_FULL && make_room(t, exe, exe->waiting->n_bytes, now_ns)))
		return 0;
	if (r == ELEMENTS_FULL) {
		exe->bytes = exe->waiting->n_bytes;
		r = TABLES_FULL;
		t->stats.refused++;
	} else if (r) {
		t->stats.failures++;
	}
	if (r)
		exe->not_before_ns = now_ns + TABLES_STAY_NS;
	drop_waiting(t, exe);
	return r;
}

int tables_publish(struct tables *t, uint16_t number, struct table *table, uint64_t now_ns)
{
	struct exe *exe = exe_of(t, number);

	if (!exe)
		return TABLES_UNKNOWN;
	if (!exe->waiting && t->stats.n_waiting >= TABLES_WAITING_MAX)
		return TABLES_WAITING;
	drop_waiting(t, exe);
	exe->waiting = table;
	exe->absent = false;
	t->stats.n_waiting++;
	if (exe->state == STATE_LIVE)
		take_away(t, exe, now_ns);
	return exe->state == STATE_NONE ? place_waiting(t, exe, now_ns) : 0;
}

/* ---------------------------------------------------------------- time */

static void read_counter(const struct tables *t, struct exe *exe)
{
	uint64_t frames = t->memory.uses[exe->number].frames;

	exe->weight -= (exe->weight + 7) / 8;
	exe->weight += (frames - exe->frames) << WEIGHT_SHIFT;
	exe->worth -= (exe->worth + 63) / 64;
	exe->worth += (frames - exe->frames) << WEIGHT_SHIFT;
	exe->frames = frames;
}

/* What nobody holds: its table when it has not been used for a while, then its number. */
static void forget(struct tables *t, struct exe *exe, uint64_t now_ns)
{
	if (exe->refs || exe->weight || now_ns - exe->put_ns < TABLES_QUIET_NS)
		return;
	drop_waiting(t, exe);
	if (exe->state == STATE_LIVE)
		take_away(t, exe, now_ns);
	if (exe->state != STATE_NONE)
		return;
	HASH_DEL(t->by_key, exe);
	exe->state = STATE_FREE;
	t->stats.n_exes--;
}

static void tick_exe(struct tables *t, struct exe *exe, uint64_t now_ns)
{
	read_counter(t, exe);
	t->memory.exes[exe->number].awaited = tables_awaited(t, exe->number, now_ns);
	if (exe->state == STATE_QUIET && now_ns - exe->since_ns >= TABLES_QUIET_NS) {
		release_place(t, exe);
		drop_numbers(t, exe, now_ns);
		set_state(exe, STATE_NONE, now_ns);
	}
	forget(t, exe, now_ns);
}

static void place_all_waiting(struct tables *t, uint64_t now_ns)
{
	for (uint32_t i = 1; i < t->end && t->stats.n_waiting; i++)
		if (t->exes[i].waiting && t->exes[i].state == STATE_NONE)
			(void)place_waiting(t, &t->exes[i], now_ns);
}

/* What waits has waited for that. It is asked for again. */
static void refuse_all_waiting(struct tables *t, uint64_t now_ns)
{
	for (uint32_t i = 1; i < t->end && t->stats.n_waiting; i++) {
		if (!t->exes[i].waiting || t->exes[i].state != STATE_NONE)
			continue;
		t->exes[i].not_before_ns = now_ns + TABLES_STAY_NS;
		drop_waiting(t, &t->exes[i]);
		t->stats.failures++;
	}
}

void tables_slab_made(struct tables *t, int result, uint64_t now_ns)
{
	elements_made(t->elements, result);
	if (result)
		refuse_all_waiting(t, now_ns);
	else
		place_all_waiting(t, now_ns);
}

void tables_tick(struct tables *t, uint64_t now_ns)
{
	if (now_ns - t->tick_ns < TICK_NS)
		return;
	t->tick_ns = now_ns;
	t->room = elements_room(t->elements);
	for (uint32_t i = 1; i < t->end; i++)
		if (t->exes[i].state != STATE_FREE)
			tick_exe(t, &t->exes[i], now_ns);
	place_all_waiting(t, now_ns);
	elements_settle(t->elements);
}

struct tables_stats tables_stats(const struct tables *t)
{
	struct tables_stats stats = t->stats;

	stats.slab_bytes = elements_bytes(t->elements);
	stats.rules = dictionary_used(t->rules);
	stats.ramps = dictionary_used(t->ramps);
	return stats;
}

const char *tables_outcome_name(int outcome)
{
	static const char *const names[TABLES_OUTCOME_MAX] = {
		[TABLES_OK] = "ok",
		[TABLES_FULL] = "full",
		[TABLES_WAITING] = "waiting",
		[TABLES_UNKNOWN] = "unknown",
	};

	return outcome >= 0 && outcome < TABLES_OUTCOME_MAX ? names[outcome] : "error";
}
