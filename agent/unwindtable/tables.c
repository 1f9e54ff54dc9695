// SPDX-License-Identifier: Apache-2.0
/*
 * A table becomes visible in this order: rules and rule runs, table image, descriptor, and last the
 * descriptor's number of blocks. Walkers read in the opposite order. They start from mapping
 * tables, written after everything else. Removal begins with the number of blocks. Everything
 * behind that number has a grace period of TABLES_QUIET_NS before reuse, and so has an executable
 * between two tables. No walker waits, and none can see half a table. (On arm64 a walker's reads
 * may be out of order, by some hundred instructions. The fields of the descriptor and the table
 * image are written much earlier than that, with system calls in between.)
 *
 * Walkers count the frames of each executable, with or without a table. Two scores decay from these
 * counts. The first decays by an eighth each second, so it covers the last eight seconds; it orders
 * the wanted tables. The second decays by a 64th, so it covers the last minute; it decides on
 * eviction.
 *
 * The budget is in slabs. Without room, eviction has hysteresis: the tables with the lowest scores
 * go only if their sum is below half of the newcomer's score, by more than the sampling noise.
 * Otherwise the newcomer is refused. So tables of equal importance do not take turns. An evicted
 * table returns when its score is twice the score of the victims.
 *
 * Sampling noise: frames arrive as samples do, and the count of a minute is mostly off by half of
 * its square root. Where hundreds of tables have a few frames each, some counts are off by five
 * times as much, and others by as much in the other direction.
 */
#include "unwindtable/tables.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "unwindtable/dictionary.h"

#define SLAB_BYTES  ((uint64_t)TABLE_SLAB_PAGES * TABLE_PAGE_BYTES)
#define TICK_NS	    1000000000ull
/* Scores have eight bits of fraction, so that a single frame decays, too. */
#define SCORE_SHIFT 8
/* Half of the square of the required multiple of the sampling noise (see above): eight times. */
#define CHANCE	    32

enum state {
	STATE_FREE = 0, /* the number is nobody's */
	STATE_NONE,	/* no table */
	STATE_LIVE,
	STATE_QUIET, /* taken away, may still be read */
};

struct exe {
	struct file_id file;
	UT_hash_handle hh;
	enum state state;
	bool absent;
	uint32_t refs;
	uint16_t number;
	struct table *waiting; /* to be placed */
	uint64_t since_ns;     /* in this state */
	uint64_t put_ns;       /* when refs became 0 */
	uint64_t cooldown_until_ns;
	uint64_t frames; /* counter, as read last */
	uint64_t recent_score;
	uint64_t score;
	size_t bytes; /* of its table, also after an eviction; 0: unknown */
	size_t rows;
	/* The place of a table that is live or in its grace period. */
	uint32_t table_page, n_table_pages;
	uint32_t tail, n_tail; /* in sub-pages */
	uint16_t *numbers;     /* rules, then rule runs */
	uint32_t n_rules, n_rule_runs;
};

struct tables {
	struct tables_memory memory;
	struct page_pool *page_pool;
	struct page_pool_room room; /* at the last tick */
	struct dictionary *rules, *rule_runs;
	struct exe *exes; /* by number */
	struct exe *by_file;
	uint64_t tick_ns;
	uint32_t end;	  /* all numbers in use are below */
	uint32_t version; /* of the table written last */
	struct tables_stats stats;
};

DEFINE_CLEANUP(struct tables *, tables_freep, tables_free);

/* ---------------------------------------------------------------- the whole */

int tables_new(const struct tables_opts *opts, struct tables **ret)
{
	const struct dictionary_opts rules = {opts->memory.rules, TABLE_RULES,
					      sizeof(struct unwind_rule)};
	const struct dictionary_opts rule_runs = {opts->memory.rule_runs, TABLE_RULE_RUNS,
						  sizeof(struct table_rule_run)};
	_cleanup_(tables_freep) struct tables *t = calloc(1, sizeof(*t));
	uint64_t n_slabs = opts->budget_bytes / SLAB_BYTES;
	int r;

	if (!t)
		return -ENOMEM;
	t->memory = opts->memory;
	t->end = 1;
	n_slabs = n_slabs < TABLE_SLABS ? n_slabs : TABLE_SLABS;
	t->exes = calloc(TABLE_EXES, sizeof(*t->exes));
	r = t->exes ? page_pool_new(&opts->memory.slabs, (uint32_t)n_slabs, &t->page_pool)
		    : -ENOMEM;
	if (!r)
		r = dictionary_new(&rules, &t->rules);
	if (!r)
		r = dictionary_new(&rule_runs, &t->rule_runs);
	if (r)
		return r;
	t->room = page_pool_room(t->page_pool);
	*ret = take_ptr(t);
	return 0;
}

void tables_free(struct tables *t)
{
	if (!t)
		return;
	HASH_CLEAR(hh, t->by_file);
	for (uint32_t i = 1; t->exes && i < t->end; i++) {
		table_free(t->exes[i].waiting);
		free(t->exes[i].numbers);
	}
	free(t->exes);
	page_pool_free(t->page_pool);
	dictionary_free(t->rules);
	dictionary_free(t->rule_runs);
	free(t);
}

const struct tables_memory *tables_memory(const struct tables *t)
{
	return &t->memory;
}

struct page_pool *tables_page_pool(struct tables *t)
{
	return t->page_pool;
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

/* The lowest free number, so that the entries read each second stay together. */
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

int tables_exe_get(struct tables *t, const struct file_id *file, uint64_t now_ns, uint16_t *ret)
{
	bool hash_oom = false;
	struct exe *exe;

	HASH_FIND(hh, t->by_file, file, sizeof(*file), exe);
	if (!exe) {
		exe = free_exe(t);
		if (!exe)
			return TABLES_FULL;
		exe->file = *file;
		HASH_ADD(hh, t->by_file, file, sizeof(exe->file), exe);
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
	__atomic_store_n(&t->memory.exes[exe->number].n_blocks, 0, __ATOMIC_RELEASE);
	set_state(exe, STATE_QUIET, now_ns);
	t->stats.n_live--;
	t->stats.rows -= exe->rows;
	t->stats.table_bytes -= exe->bytes;
}

static void drop_numbers(struct tables *t, struct exe *exe, uint64_t now_ns)
{
	for (uint32_t i = 0; i < exe->n_rules + exe->n_rule_runs; i++)
		dictionary_drop(i < exe->n_rules ? t->rules : t->rule_runs, exe->numbers[i],
				now_ns);
	free(exe->numbers);
	exe->numbers = NULL;
	exe->n_rules = exe->n_rule_runs = 0;
}

static void release_place(struct tables *t, struct exe *exe)
{
	if (exe->n_table_pages)
		page_pool_release(t->page_pool, exe->table_page, exe->n_table_pages);
	if (exe->n_tail)
		page_pool_release_subpages(t->page_pool, exe->tail, exe->n_tail);
	exe->n_table_pages = exe->n_tail = 0;
}

static void drop_waiting(struct tables *t, struct exe *exe)
{
	if (!exe->waiting)
		return;
	table_free(exe->waiting);
	exe->waiting = NULL;
	t->stats.n_waiting--;
}

void tables_absent(struct tables *t, uint16_t number)
{
	struct exe *exe = exe_of(t, number);

	if (!exe)
		return;
	exe->absent = true;
	t->memory.exes[number].awaited = 0;
}

/* A table that was never made counts as the smallest. */
static bool has_room(const struct page_pool_room *room, const struct exe *exe)
{
	return (exe->bytes < TABLE_PAGE_BYTES ? room->subpage_bytes : room->whole_bytes) >=
	       exe->bytes;
}

bool tables_placing(const struct tables *t, uint16_t number)
{
	const struct exe *exe = exe_of(t, number);

	return exe && exe->waiting;
}

bool tables_awaited(const struct tables *t, uint16_t number, uint64_t now_ns)
{
	const struct exe *exe = exe_of(t, number);

	if (!exe || exe->state == STATE_LIVE || exe->absent || now_ns < exe->cooldown_until_ns)
		return false;
	return exe->waiting || has_room(&t->room, exe);
}

bool tables_live(const struct tables *t, uint16_t number)
{
	const struct exe *exe = exe_of(t, number);

	return exe && exe->state == STATE_LIVE;
}

bool tables_cooling_down(const struct tables *t, uint16_t number, uint64_t now_ns)
{
	const struct exe *exe = exe_of(t, number);

	return exe && now_ns < exe->cooldown_until_ns;
}

/* ---------------------------------------------------------------- eviction */

/* Live tables open to eviction, lowest score first. */
static int score_compare(const void *a, const void *b)
{
	const struct exe *left = *(const struct exe *const *)a;
	const struct exe *right = *(const struct exe *const *)b;

	if (left->score != right->score)
		return left->score < right->score ? -1 : 1;
	return (int)left->number - (int)right->number;
}

static size_t list_victims(const struct tables *t, uint64_t now_ns, struct exe **ret)
{
	size_t n = 0;

	for (uint32_t i = 1; i < t->end; i++)
		if (t->exes[i].state == STATE_LIVE &&
		    now_ns - t->exes[i].since_ns >= TABLES_STAY_NS)
			ret[n++] = &t->exes[i];
	qsort(ret, n, sizeof(struct exe *), score_compare);
	return n;
}

/* Whether @score is more than twice @old, beyond the sampling noise. */
static bool scores_higher(uint64_t score, uint64_t old)
{
	uint64_t frames = score >> SCORE_SHIFT, twice = 2 * (old >> SCORE_SHIFT);
	uint64_t more = frames > twice ? frames - twice : 0;

	/* the variance of the difference is half of this */
	return more > UINT32_MAX || more * more > CHANCE * (frames + 2 * twice);
}

/* The number of @victims, out of @n, to evict for @exe: together these tables make room and have
 * less than half of the new table's score. 0 if impossible. Free space is fragmented, so it does
 * not count. */
static size_t victims_for(const struct exe *exe, struct exe *const *victims, size_t n, size_t bytes)
{
	uint64_t score = 0;
	size_t freed = 0, i = 0;

	while (i < n && freed < bytes) {
		score += victims[i]->score;
		freed += victims[i++]->bytes;
	}
	return freed >= bytes && scores_higher(exe->score, score) ? i : 0;
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
		victims[i]->cooldown_until_ns = now_ns + TABLES_STAY_NS;
		t->stats.evictions++;
	}
	return n > 0;
}

size_t tables_wanted(const struct tables *t, uint64_t now_ns, struct tables_want *ret, size_t n)
{
	_cleanup_(freep) struct exe **victims = calloc(t->end, sizeof(struct exe *));
	struct page_pool_room room = page_pool_room(t->page_pool);
	size_t n_victims, out = 0;

	if (!victims)
		return 0;
	n_victims = list_victims(t, now_ns, victims);
	for (uint32_t i = 1; i < t->end; i++) {
		const struct exe *exe = &t->exes[i];
		size_t at;

		if (exe->state != STATE_NONE || exe->waiting || exe->absent || !exe->refs ||
		    !exe->recent_score || now_ns < exe->cooldown_until_ns ||
		    (!has_room(&room, exe) && !victims_for(exe, victims, n_victims, exe->bytes)))
			continue;
		for (at = out; at > 0 && ret[at - 1].recent_score < exe->recent_score; at--)
			if (at < n)
				ret[at] = ret[at - 1];
		if (at < n)
			ret[at] = (struct tables_want){exe->number, exe->recent_score};
		out += out < n;
	}
	return out;
}

/* ---------------------------------------------------------------- placing */

static int reserve_place(struct tables *t, struct exe *exe, const struct table *table)
{
	uint32_t n_table_pages = table->exe.n_table_pages;
	uint32_t n_tail = table->n_bytes % TABLE_PAGE_BYTES / TABLE_SUBPAGE_BYTES;
	int r = 0;

	if (n_table_pages)
		r = page_pool_reserve(t->page_pool, PAGE_POOL_IMAGES, n_table_pages,
				      &exe->table_page);
	if (r)
		return r;
	exe->n_table_pages = n_table_pages;
	if (n_tail)
		r = page_pool_reserve_subpages(t->page_pool, n_tail, &exe->tail);
	if (r)
		release_place(t, exe);
	else
		exe->n_tail = n_tail;
	return r;
}

/* The node's number for a value; that of the gap if no number is free. */
static uint16_t take_number(struct tables *t, struct dictionary *d, const void *value,
			    uint64_t now_ns)
{
	uint16_t number = 0;

	if (dictionary_take(d, value, now_ns, &number))
		t->stats.rules_lost++;
	return number;
}

/* The rule run with the node's numbers for its rules. */
static struct table_rule_run numbered_rule_run(const struct table_rule_run *rule_run,
					       const uint16_t *rules, uint32_t n_rules)
{
	struct table_rule_run ret = *rule_run;

	for (size_t i = 0; i < TABLE_RULE_RUN_STEPS; i++)
		ret.rules[i] = rule_run->at[i] < TABLE_RULE_RUN_END && rule_run->rules[i] < n_rules
				       ? rules[rule_run->rules[i]]
				       : 0;
	return ret;
}

static int take_numbers(struct tables *t, struct exe *exe, const struct table *table,
			uint64_t now_ns)
{
	uint16_t *numbers =
		calloc((size_t)table->n_rules + table->n_rule_runs + 1, sizeof(*numbers));

	if (!numbers)
		return -ENOMEM;
	for (uint32_t i = 0; i < table->n_rules; i++)
		numbers[i] = take_number(t, t->rules, &table->rules[i], now_ns);
	for (uint32_t i = 0; i < table->n_rule_runs; i++) {
		struct table_rule_run rule_run =
			numbered_rule_run(&table->rule_runs[i], numbers, table->n_rules);

		numbers[table->n_rules + i] = take_number(t, t->rule_runs, &rule_run, now_ns);
	}
	exe->numbers = numbers;
	exe->n_rules = table->n_rules;
	exe->n_rule_runs = table->n_rule_runs;
	return 0;
}

/* Replaces the table image's ids by the node's numbers. A rule run without a number becomes the
 * gap. */
static void translate_ids(const struct exe *exe, struct table *table)
{
	uint16_t *ids = (uint16_t *)(void *)(table->table_image + table->exe.ids);

	for (uint32_t i = 0; i < table->n_ids; i++) {
		uint32_t own = ids[i] & (TABLE_RULE_RUN - 1);
		uint16_t number;

		if (!(ids[i] & TABLE_RULE_RUN)) {
			ids[i] = own < exe->n_rules ? exe->numbers[own] : 0;
			continue;
		}
		number = own < exe->n_rule_runs ? exe->numbers[exe->n_rules + own] : 0;
		ids[i] = number ? TABLE_RULE_RUN | number : 0;
	}
}

static int write_table(struct tables *t, const struct exe *exe, const struct table *table)
{
	size_t whole = (size_t)exe->n_table_pages * TABLE_PAGE_BYTES;
	struct table_exe *to = &t->memory.exes[exe->number], head = table->exe;
	int r;

	head.table_page = exe->table_page;
	head.tail = exe->tail;
	head.n_blocks = 0;
	head.version = ++t->version;
	*to = head;
	r = page_pool_write(t->page_pool, (uint64_t)exe->table_page * TABLE_PAGE_BYTES,
			    table->table_image, whole);
	if (!r)
		r = page_pool_write(t->page_pool, (uint64_t)exe->tail * TABLE_SUBPAGE_BYTES,
				    table->table_image + whole, table->n_bytes - whole);
	if (!r)
		__atomic_store_n(&to->n_blocks, table->exe.n_blocks, __ATOMIC_RELEASE);
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

/* Places the waiting table, evicting other tables if necessary, or refuses the table. 0 while a
 * place is still possible. */
static int place_waiting(struct tables *t, struct exe *exe, uint64_t now_ns)
{
	int r = place(t, exe, exe->waiting, now_ns);

	if (r == PAGE_POOL_LATER ||
	    (r == PAGE_POOL_FULL && make_room(t, exe, exe->waiting->n_bytes, now_ns)))
		return 0;
	if (r == PAGE_POOL_FULL) {
		exe->bytes = exe->waiting->n_bytes;
		r = TABLES_FULL;
		t->stats.refused++;
	} else if (r) {
		t->stats.failures++;
	}
	if (r)
		exe->cooldown_until_ns = now_ns + TABLES_STAY_NS;
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

	exe->recent_score -= (exe->recent_score + 7) / 8;
	exe->recent_score += (frames - exe->frames) << SCORE_SHIFT;
	exe->score -= (exe->score + 63) / 64;
	exe->score += (frames - exe->frames) << SCORE_SHIFT;
	exe->frames = frames;
}

/* Frees an executable without holders: its table after a time without use, then its number. */
static void forget(struct tables *t, struct exe *exe, uint64_t now_ns)
{
	if (exe->refs || exe->recent_score || now_ns - exe->put_ns < TABLES_QUIET_NS)
		return;
	drop_waiting(t, exe);
	if (exe->state == STATE_LIVE)
		take_away(t, exe, now_ns);
	if (exe->state != STATE_NONE)
		return;
	HASH_DEL(t->by_file, exe);
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

/* Refuses all tables that waited for the slab. They will be requested again. */
static void refuse_all_waiting(struct tables *t, uint64_t now_ns)
{
	for (uint32_t i = 1; i < t->end && t->stats.n_waiting; i++) {
		if (!t->exes[i].waiting || t->exes[i].state != STATE_NONE)
			continue;
		t->exes[i].cooldown_until_ns = now_ns + TABLES_STAY_NS;
		drop_waiting(t, &t->exes[i]);
		t->stats.failures++;
	}
}

void tables_slab_made(struct tables *t, int result, uint64_t now_ns)
{
	page_pool_made(t->page_pool, result);
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
	t->room = page_pool_room(t->page_pool);
	for (uint32_t i = 1; i < t->end; i++)
		if (t->exes[i].state != STATE_FREE)
			tick_exe(t, &t->exes[i], now_ns);
	place_all_waiting(t, now_ns);
	page_pool_settle(t->page_pool);
}

struct tables_stats tables_stats(const struct tables *t)
{
	struct tables_stats stats = t->stats;

	stats.slab_bytes = page_pool_bytes(t->page_pool);
	stats.rules = dictionary_used(t->rules);
	stats.rule_runs = dictionary_used(t->rule_runs);
	return stats;
}
