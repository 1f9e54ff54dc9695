// SPDX-License-Identifier: Apache-2.0
/*
 * Rows into the kernel's bytes. Unwind tables are the largest part of the agent's kernel memory, so
 * they are packed. The layout is in bpf/shared/table.h; these are its reasons:
 *
 *  - A row is two bytes: an address byte within a block of 256, and the byte that names the rule.
 *    Images have a few hundred rules, and most rows use the commonest. So frequent rules have a
 *    number of one byte, and the rest of two.
 *  - The index has a count for each block, one byte. A lookup sums the counts, eight at a time in a
 *    few instructions. An offset for each block would be two bytes, and programs have only two or
 *    three slots in a block.
 *  - The rows of a prologue or epilogue share a slot (rule_runs.c): half of all rows.
 *  - A group's slots are in one page and begin with a slot at the group's first address. So a
 *    lookup needs three pages, and no search goes beyond.
 *
 * Images beyond the format's limits (more ids than numbers, more slots in a group than a page
 * holds) do not occur in practice. Their excess rows become gaps, where the walker tries frame
 * pointers.
 *
 * Considered and left out: 16-bit addresses in pages of 64 KiB for sparse code (the byte of index
 * for 256 of code is less), lists of rules for parts of an image, entropy coding.
 */
#include "unwindtable/table.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "lib/table_host.h"
#include "unwindtable/rule_runs.h"

#define GROUP_UNITS ((uint64_t)TABLE_GROUP_BLOCKS * 256)
#define PAGE_SLOTS  (TABLE_PAGE_BYTES / 2)
/* The gap is the rows' rule 0, and always has a number. */
#define GAP	    0u

DEFINE_CLEANUP(struct table *, table_freep, table_free);
DEFINE_CLEANUP(struct rule_runs *, rule_runs_freep, rule_runs_free);

/* A symbol is the meaning of a slot: a rule or, with higher numbers, a rule run. */
struct symbol {
	uint32_t n;  /* number of slots with this symbol */
	uint32_t id; /* local id; that of the gap above the limit of ids */
};

struct packer {
	const struct rows *rows;
	struct table *table;
	struct step *steps; /* later slots: unit and symbol */
	size_t n;
	struct rule_runs *rule_runs;
	struct symbol *symbols;
	size_t n_symbols;
	uint32_t *used; /* symbols, the most frequent first */
	size_t n_used;
	struct buf out;
};

static void packer_deinit(struct packer *p)
{
	free(p->steps);
	rule_runs_free(p->rule_runs);
	free(p->symbols);
	free(p->used);
	buf_deinit(&p->out);
	table_free(p->table);
}

/* Appends @n bytes of @data, or zeros if @data is NULL. */
static int put(struct packer *p, const void *data, size_t n)
{
	char *at;
	int r = buf_reserve(&p->out, n, &at);

	if (r)
		return r == BUF_FULL ? TABLE_TOO_LARGE : r;
	if (data)
		memcpy(at, data, n);
	else
		memset(at, 0, n);
	p->out.len += n;
	return 0;
}

/* ---------------------------------------------------------------- steps */

/* The largest unit, a power of two, that divides all row addresses. */
static uint8_t unit_shift(const struct rows *rows, size_t n, uint64_t start)
{
	uint64_t bits = 0;

	for (size_t i = 1; i < n && !(bits & 1); i++)
		bits |= rows_at(rows, i).vaddr - start;
	/* 2^12: a single row for a whole program. */
	return (uint8_t)__builtin_ctzll(bits | 1ull << 12);
}

/* Converts the rows to steps. Each group begins with a step that repeats the current rule. */
static size_t fill_steps(const struct rows *rows, size_t n, const struct table_exe *exe,
			 struct step *steps)
{
	uint64_t group = 0;
	size_t out = 0;

	for (size_t i = 0; i < n; i++) {
		struct row row = rows_at(rows, i);
		uint32_t unit = (uint32_t)((row.vaddr - exe->start) >> exe->unit_shift);

		for (; group < unit; group += GROUP_UNITS)
			if (out && steps[out - 1].unit < group)
				steps[out] = (struct step){.unit = (uint32_t)group,
							   .rule = steps[out - 1].rule},
				out++;
		steps[out++] = (struct step){.unit = unit, .rule = row.rule};
	}
	return out;
}

static int make_steps(struct packer *p)
{
	struct table_exe *exe = &p->table->exe;
	size_t n = rows_count(p->rows);
	uint64_t units;

	if (!n)
		return TABLE_EMPTY;
	exe->start = rows_at(p->rows, 0).vaddr;
	exe->unit_shift = unit_shift(p->rows, n, exe->start);
	units = ((rows_at(p->rows, n - 1).vaddr - exe->start) >> exe->unit_shift) + 1;
	if (units / GROUP_UNITS >= TABLE_BYTES_MAX / sizeof(struct table_group))
		return TABLE_TOO_LARGE;
	exe->n_blocks = (uint32_t)((units + 255) / 256);
	p->table->n_rows = n;
	p->steps = malloc((n + units / GROUP_UNITS + 1) * sizeof(*p->steps));
	if (!p->steps)
		return -ENOMEM;
	p->n = fill_steps(p->rows, n, exe, p->steps);
	return 0;
}

/* ---------------------------------------------------------------- symbols */

/* Converts steps to slots, in place, and counts the uses of each symbol. */
static void make_slots(struct packer *p)
{
	uint32_t n_rules = (uint32_t)rows_n_rules(p->rows), match;
	size_t out = 0;

	for (size_t i = 0; i < p->n;) {
		struct step slot = p->steps[i];
		size_t len = rule_runs_match(p->rule_runs, &p->steps[i], p->n - i, &match);

		slot.rule = len > 1 ? n_rules + match : match;
		p->symbols[slot.rule].n++;
		p->steps[out++] = slot;
		i += len;
	}
	p->n = out;
	p->symbols[GAP].n++; /* for cut rows */
}

struct ranked {
	uint32_t n;
	uint32_t symbol; /* the order among symbols of equal use */
};

static int ranked_compare(const void *a, const void *b)
{
	const struct ranked *left = a, *right = b;

	if (left->n != right->n)
		return left->n > right->n ? -1 : 1;
	return left->symbol < right->symbol ? -1 : 1;
}

/* Assigns local ids, short ones to the most used symbols. */
static int rank_symbols(struct packer *p)
{
	_cleanup_(freep) struct ranked *ranked = calloc(p->n_symbols, sizeof(*ranked));
	size_t n = 0;

	p->used = calloc(p->n_symbols, sizeof(*p->used));
	if (!ranked || !p->used)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->n_symbols; i++)
		if (p->symbols[i].n)
			ranked[n++] = (struct ranked){i == GAP ? UINT32_MAX : p->symbols[i].n, i};
	qsort(ranked, n, sizeof(*ranked), ranked_compare);
	for (size_t i = 0; i < n; i++) {
		struct symbol *s = &p->symbols[ranked[i].symbol];

		if (i < TABLE_IDS)
			p->used[p->n_used++] = ranked[i].symbol;
		else
			p->table->n_cut += s->n;
		s->id = i < TABLE_IDS ? (uint32_t)i : p->symbols[GAP].id;
	}
	return 0;
}

static int make_symbols(struct packer *p)
{
	size_t n_rules = rows_n_rules(p->rows);
	int r = rule_runs_new(p->steps, p->n, n_rules, &p->rule_runs);

	if (r < 0)
		return r;
	rule_runs_limit(p->rule_runs, n_rules < TABLE_IDS ? TABLE_IDS - n_rules : 0);
	p->n_symbols = n_rules + rule_runs_bound(p->rule_runs);
	p->symbols = calloc(p->n_symbols, sizeof(*p->symbols));
	if (!p->symbols)
		return -ENOMEM;
	make_slots(p);
	return rank_symbols(p);
}

/* ---------------------------------------------------------------- rules */

/* The table's own index of the rows' rule @rule. */
static uint16_t table_rule_index(struct table *table, const struct rows *rows, uint32_t *index,
				 uint32_t rule)
{
	if (!index[rule]) {
		table->rules[table->n_rules++] = *rows_rule(rows, rule);
		index[rule] = table->n_rules;
	}
	return (uint16_t)(index[rule] - 1);
}

/* Lists the ids with their rules and rule runs. */
static void list_ids(struct packer *p, uint32_t *index, uint16_t *ids)
{
	uint32_t n_rules = (uint32_t)rows_n_rules(p->rows);
	struct table *table = p->table;

	for (size_t i = 0; i < p->n_used; i++) {
		struct table_rule_run *rule_run = &table->rule_runs[table->n_rule_runs];

		if (p->used[i] < n_rules) {
			ids[i] = table_rule_index(table, p->rows, index, p->used[i]);
			continue;
		}
		rule_runs_get(p->rule_runs, p->used[i] - n_rules, rule_run);
		for (size_t k = 0;
		     k < TABLE_RULE_RUN_STEPS && rule_run->at[k] != TABLE_RULE_RUN_END; k++)
			rule_run->rules[k] =
				table_rule_index(table, p->rows, index, rule_run->rules[k]);
		ids[i] = (uint16_t)(TABLE_RULE_RUN | table->n_rule_runs++);
	}
}

static int put_ids(struct packer *p)
{
	size_t n_rules = rows_n_rules(p->rows);
	_cleanup_(freep) uint32_t *index = calloc(n_rules, sizeof(*index));
	_cleanup_(freep) uint16_t *ids = calloc(p->n_used, sizeof(*ids));
	struct table *table = p->table;

	table->rules = calloc(n_rules, sizeof(*table->rules));
	table->rule_runs = calloc(p->n_used, sizeof(*table->rule_runs));
	if (!index || !ids || !table->rules || !table->rule_runs)
		return -ENOMEM;
	list_ids(p, index, ids);
	table->n_ids = (uint32_t)p->n_used;
	table->exe.ids = (uint32_t)p->out.len;
	return put(p, ids, p->n_used * sizeof(*ids));
}

/* ---------------------------------------------------------------- slots */

/* A group being written. */
struct group {
	struct table_group head;
	uint64_t begin; /* its first unit */
	uint8_t slots[PAGE_SLOTS][2];
	size_t n;
	/* of this block or of all: the last slot is a gap, and no other goes in before the next */
	bool full;
	uint32_t block;
};

static void group_put(struct group *g, uint8_t low, uint8_t id)
{
	g->slots[g->n][0] = low;
	g->slots[g->n++][1] = id;
	g->head.n[g->block]++;
}

static void group_add(struct group *g, const struct step *slot, uint32_t id, uint32_t gap,
		      size_t *n_cut)
{
	uint32_t block = (slot->unit - (uint32_t)g->begin) / 256;
	bool wide = id >= TABLE_WIDE, has_room;
	size_t n = wide ? 2 : 1;
	uint8_t low = (uint8_t)slot->unit;

	if (block != g->block)
		g->full = g->full && g->n >= PAGE_SLOTS - 3;
	g->block = block;
	/* for a slot or two and, if need be, for the gap after it */
	has_room = g->n + n < PAGE_SLOTS - 1 && g->head.n[block] + n < 255;
	if (g->full || !has_room) {
		if (!g->full)
			group_put(g, low, (uint8_t)gap);
		g->full = true;
		(*n_cut)++;
		return;
	}
	if (wide)
		group_put(g, low, (uint8_t)(id - TABLE_WIDE));
	group_put(g, low, (uint8_t)(wide ? TABLE_WIDE + (id - TABLE_WIDE) / 256 : id));
}

/* Appends the group to the page, or to the next page if this page has no room for all of it. */
static int group_end(struct packer *p, struct group *g, size_t number)
{
	size_t left = TABLE_PAGE_BYTES - p->out.len % TABLE_PAGE_BYTES;
	size_t n = g->n * sizeof(g->slots[0]);
	int r = n > left ? put(p, NULL, left) : 0;

	g->head.slots = (uint32_t)p->out.len;
	if (!r)
		r = put(p, g->slots, n);
	if (!r)
		memcpy(p->out.data + number * sizeof(g->head), &g->head, sizeof(g->head));
	return r;
}

static size_t n_groups(const struct packer *p)
{
	return (p->table->exe.n_blocks + TABLE_GROUP_BLOCKS - 1) / TABLE_GROUP_BLOCKS;
}

static int put_slots(struct packer *p)
{
	_cleanup_(freep) struct group *g = malloc(sizeof(*g));
	size_t i = 0;
	int r = 0;

	if (!g)
		return -ENOMEM;
	for (size_t number = 0; !r && number < n_groups(p); number++) {
		g->head = (struct table_group){0};
		g->begin = number * GROUP_UNITS;
		g->n = g->block = 0;
		g->full = false;
		for (; i < p->n && p->steps[i].unit < g->begin + GROUP_UNITS; i++)
			group_add(g, &p->steps[i], p->symbols[p->steps[i].rule].id,
				  p->symbols[GAP].id, &p->table->n_cut);
		r = group_end(p, g, number);
	}
	return r;
}

/* Copies the bytes into memory of whole pages, so that an array of pages can be read. */
static int take_table_image(struct packer *p)
{
	struct table *table = p->table;
	size_t subpages = (p->out.len + TABLE_SUBPAGE_BYTES - 1) / TABLE_SUBPAGE_BYTES;
	size_t table_pages = (p->out.len + TABLE_PAGE_BYTES - 1) / TABLE_PAGE_BYTES;

	table->table_image = calloc(table_pages, TABLE_PAGE_BYTES);
	if (!table->table_image)
		return -ENOMEM;
	memcpy(table->table_image, p->out.data, p->out.len);
	table->n_bytes = subpages * TABLE_SUBPAGE_BYTES;
	table->exe.n_table_pages = (uint16_t)(table->n_bytes / TABLE_PAGE_BYTES);
	table->exe.table_page = 0;
	table->exe.tail = table->exe.n_table_pages * (TABLE_PAGE_BYTES / TABLE_SUBPAGE_BYTES);
	return 0;
}

/* ---------------------------------------------------------------- the whole table */

static int pack(struct packer *p)
{
	int r = make_steps(p);

	if (!r)
		r = make_symbols(p);
	/* The groups are filled in as their slots are written. */
	if (!r)
		r = put(p, NULL, n_groups(p) * sizeof(struct table_group));
	if (!r)
		r = put_ids(p);
	if (!r)
		r = put_slots(p);
	if (!r)
		r = take_table_image(p);
	return r;
}

int table_pack(const struct rows *rows, struct table **ret)
{
	_cleanup_(packer_deinit) struct packer p = {.rows = rows,
						    .out = BUF_INIT(TABLE_BYTES_MAX),
						    .table = calloc(1, sizeof(*p.table))};
	int r;

	if (!p.table)
		return -ENOMEM;
	r = pack(&p);
	if (r)
		return r;
	*ret = take_ptr(p.table);
	return 0;
}

void table_free(struct table *table)
{
	if (!table)
		return;
	free(table->table_image);
	free(table->rules);
	free(table->rule_runs);
	free(table);
}

uint32_t table_lookup(const struct table *table, uint64_t vaddr, struct unwind_rule *ret)
{
	const struct table_space space = {
		.table_pages = (const struct table_page *)(const void *)table->table_image,
		.rules = table->rules,
		.rule_runs = table->rule_runs,
		.n_table_pages = (table->n_bytes + TABLE_PAGE_BYTES - 1) / TABLE_PAGE_BYTES,
		.n_rules = table->n_rules,
		.n_rule_runs = table->n_rule_runs,
	};

	return table_find(&space, &table->exe, vaddr, ret);
}
