// SPDX-License-Identifier: Apache-2.0
/*
 * An entry of a symbol table has the start of a function and, in st_size, its length. Code between
 * two functions (padding, or stripped functions) belongs to neither, so the size decides. Functions
 * in assembly may have size 0. Such a function reaches to the next symbol or to the end of the
 * section, but at most SYMTAB_UNSIZED_MAX bytes, because a stripped table does not show the next
 * function.
 *
 * Included are defined STT_FUNC and STT_GNU_IFUNC symbols in executable sections, and untyped
 * symbols there (assembly without declarations), which count only outside all functions. Excluded
 * are the assembler's marks, symbols without a section, and relocatable files, whose addresses are
 * relative to sections.
 *
 * An address often has several names. All names stay in the table, and a lookup chooses: a global
 * name before a weak before a local name, then by symname_is_better().
 *
 * 16 bytes a symbol: names are offsets into the file's string table and are read with pread(),
 * through a cache of blocks: neighbours in the code mostly have their names near each other, but in
 * a few places at once (a linker merges the ends of names). The last names are kept, because a
 * batch often has several addresses of a function.
 *
 * Specification: System V gABI, "Symbol Table".
 */
#include "symbolize/symtab.h"

#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/keysort.h"
#include "base/nsec.h"
#include "base/vec.h"
#include "base/work_budget.h"
#include "elf/blockcache.h"
#include "elf/elffile.h"
#include "symbolize/symname.h"

/* Symbols kept of a file (16 MiB). The largest programs have half of that. Reached: no name. */
#define SYMTAB_SYMBOLS_MAX  (1u << 20)
/* Entries read in a table, data symbols included; later entries are ignored. Reached: no name. */
#define SYMTAB_ENTRIES_MAX  (8u << 20)
/* Bytes of a string table: name offsets have 28 bits. Reached: no name. */
#define SYMTAB_STRINGS_MAX  (1u << 28)
/* Executable sections. Programs have five; a file with a section for each function is not linked.
 * Reached: no name. */
#define SYMTAB_RANGES_MAX   256
/* Longest reach of a symbol without a size, in bytes. Reached: no name. */
#define SYMTAB_UNSIZED_MAX  4096
/* Symbols before an address that are tested for containing the address, for nested functions.
 * Reached: no name. */
#define SYMTAB_LOOKBACK_MAX 64
/* Names of an address that are compared. Reached: the best of the first 64. */
#define SYMTAB_ALIASES_MAX  64
/* Entries read at a time. */
#define SYMTAB_STEP	    1024
/* Names of untyped symbols remembered during the load: thousands, but few different names.
 * Reached: looked at again. */
#define SYMTAB_MARKS_MAX    64
/* Work on a file: units, and more for each byte of the file. Node's of 99 MB takes 45 * 10^6. */
#define SYMTAB_WORK	    ((uint64_t)1 << 28)
#define SYMTAB_BYTE_WORK    8u
/* The maximum of units. Reached: `abandoned`: no name. */
#define SYMTAB_WORK_MAX	    ((uint64_t)1 << 32)
/* The same as CPU time, where units do not describe the work. */
#define SYMTAB_CPU_NS	    (5 * NSEC_PER_SEC)
/* Units of work for an entry read, and for a symbol sorted. */
#define ENTRY_COST	    8u
#define SORT_COST	    256u

/* By rank, the best first. */
enum symbol_rank { RANK_GLOBAL, RANK_WEAK, RANK_LOCAL, RANK_UNTYPED };

struct symbol_entry {
	uint64_t vaddr;
	uint32_t size; /* cut at 4 GiB */
	uint32_t name : 28;
	uint32_t table : 1; /* enum symbol_table */
	uint32_t rank : 3;
};
_Static_assert(sizeof(struct symbol_entry) == KEYSORT_BYTES, "16 bytes a symbol");

enum symbol_table { TABLE_SYMTAB, TABLE_DYNSYM, TABLE_MAX };

static const char *const table_names[TABLE_MAX] = {".symtab", ".dynsym"};

struct range {
	uint64_t start;
	uint64_t limit;
};

/* Names read last, by offset in the string table; longer ones are not kept. */
#define NAMES_KEPT	16
#define NAME_KEPT_BYTES 123

struct kept_name {
	uint32_t off;
	uint8_t table; /* TABLE_MAX: none */
	char name[NAME_KEPT_BYTES];
};

struct symtab {
	struct work_budget work;
	struct elffile *file;	    /* owned; with this budget */
	struct symbol_entry *items; /* by vaddr, rank, table, name */
	size_t n;
	size_t cap;
	struct range *ranges; /* executable sections, ascending, apart from each other */
	size_t n_ranges;
	size_t cap_ranges;
	struct elffile_section strings[TABLE_MAX];
	struct blockcache *blocks; /* of the strings */
	struct kept_name *names;   /* NAMES_KEPT */
};

DEFINE_CLEANUP(struct symtab *, symtab_freep, symtab_free);

/* ---------------------------------------------------------------- names */

/* A name that leaves its block is read by itself. */
static bool read_string(const struct symtab *t, const struct symbol_entry *e,
			char name[SYMTAB_NAME_MAX])
{
	const struct elffile_section *strings = &t->strings[e->table];
	const uint8_t *block, *end;
	uint64_t off;
	size_t n;

	if (e->name >= strings->size || __builtin_add_overflow(strings->off, e->name, &off) ||
	    blockcache_peek(t->blocks, off, &block, &n))
		return false;
	if (n > strings->size - e->name)
		n = (size_t)(strings->size - e->name);
	end = memchr(block, '\0', n);
	if (!end || (size_t)(end - block) >= SYMTAB_NAME_MAX)
		return elffile_read_string(t->file, strings, e->name, name, SYMTAB_NAME_MAX);
	memcpy(name, block, (size_t)(end - block) + 1);
	return name[0] != '\0';
}

static bool read_name(const struct symtab *t, const struct symbol_entry *e,
		      char name[SYMTAB_NAME_MAX])
{
	struct kept_name *kept = &t->names[e->name % NAMES_KEPT];
	size_t n;

	if (kept->off == e->name && kept->table == e->table) {
		memcpy(name, kept->name, strlen(kept->name) + 1);
		return true;
	}
	if (!read_string(t, e, name))
		return false;
	symname_cut_version(name);
	n = strlen(name) + 1;
	if (n > 1 && n <= sizeof(kept->name)) {
		kept->off = e->name;
		kept->table = e->table;
		memcpy(kept->name, name, n);
	}
	return n > 1;
}

/* ---------------------------------------------------------------- load */

static int compare_ranges(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* Sorts the ranges. Sections of linked files do not overlap; others become a single range. */
static void merge_ranges(struct symtab *t)
{
	size_t n = 0;

	if (t->n_ranges)
		qsort(t->ranges, t->n_ranges, sizeof(*t->ranges), compare_ranges);
	for (size_t i = 0; i < t->n_ranges; i++) {
		struct range range = t->ranges[i];

		if (n && range.start < t->ranges[n - 1].limit) {
			if (range.limit > t->ranges[n - 1].limit)
				t->ranges[n - 1].limit = range.limit;
		} else {
			t->ranges[n++] = range;
		}
	}
	t->n_ranges = n;
}

static int load_ranges(struct symtab *t)
{
	const uint32_t wanted = SHF_ALLOC | SHF_EXECINSTR;
	struct elffile_section s;
	uint64_t limit;
	int r;

	for (uint32_t i = 0; elffile_section_at(t->file, i, &s) == 0; i++) {
		if ((s.flags & wanted) != wanted || !s.size ||
		    __builtin_add_overflow(s.vaddr, s.size, &limit))
			continue;
		r = vec_grow(&t->ranges, &t->cap_ranges, t->n_ranges + 1, sizeof(*t->ranges),
			     SYMTAB_RANGES_MAX);
		if (r < 0)
			return r;
		if (r > 0)
			break;
		t->ranges[t->n_ranges++] = (struct range){.start = s.vaddr, .limit = limit};
	}
	merge_ranges(t);
	return 0;
}

static const struct range *find_range(const struct symtab *t, uint64_t vaddr)
{
	size_t low = 0, high = t->n_ranges;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (t->ranges[mid].limit <= vaddr)
			low = mid + 1;
		else
			high = mid;
	}
	return low < t->n_ranges && t->ranges[low].start <= vaddr ? &t->ranges[low] : NULL;
}

/* False for a symbol that is not a function. */
static bool rank_of(const Elf64_Sym *sym, uint32_t *ret)
{
	unsigned int type = ELF64_ST_TYPE(sym->st_info), bind = ELF64_ST_BIND(sym->st_info);

	if (sym->st_shndx == SHN_UNDEF || sym->st_shndx == SHN_ABS || sym->st_shndx == SHN_COMMON ||
	    !sym->st_name)
		return false;
	if (type == STT_NOTYPE) {
		*ret = RANK_UNTYPED;
		return true;
	}
	if (type != STT_FUNC && type != STT_GNU_IFUNC)
		return false;
	*ret = bind == STB_LOCAL ? RANK_LOCAL : bind == STB_WEAK ? RANK_WEAK : RANK_GLOBAL;
	return true;
}

/**
 * struct loading - what the load of a table remembers
 * @range:   of the last symbol; most symbols are in the same section
 * @name, @is_mark: name offsets known as marks, by the offset's low bits
 */
struct loading {
	const struct range *range;
	uint32_t name[SYMTAB_MARKS_MAX];
	bool is_mark[SYMTAB_MARKS_MAX];
};

static bool is_in_code(const struct symtab *t, struct loading *l, uint64_t vaddr)
{
	if (!l->range || vaddr < l->range->start || vaddr >= l->range->limit)
		l->range = find_range(t, vaddr);
	return l->range != NULL;
}

/* The begin of a name suffices; each name may be another and long. */
static bool read_is_mark(const struct symtab *t, const struct symbol_entry *e)
{
	const struct elffile_section *strings = &t->strings[e->table];
	uint64_t left = strings->size > e->name ? strings->size - e->name : 0, off;
	char name[SYMNAME_MARK_BYTES + 1] = {0};
	size_t n = left < SYMNAME_MARK_BYTES ? (size_t)left : SYMNAME_MARK_BYTES;

	return !n || __builtin_add_overflow(strings->off, e->name, &off) ||
	       elffile_read(t->file, off, name, n) != 0 || !name[0] || symname_is_mark(name);
}

static bool is_mark(const struct symtab *t, struct loading *l, const struct symbol_entry *e)
{
	size_t slot = e->name % SYMTAB_MARKS_MAX;

	if (l->name[slot] != e->name) {
		l->name[slot] = e->name;
		l->is_mark[slot] = read_is_mark(t, e);
	}
	return l->is_mark[slot];
}

static int add_symbol(struct symtab *t, enum symbol_table table, const Elf64_Sym *sym,
		      struct loading *l)
{
	struct symbol_entry e = {.vaddr = sym->st_value, .table = table};
	uint32_t rank;
	int r = 0;

	if (!rank_of(sym, &rank) || sym->st_name >= SYMTAB_STRINGS_MAX ||
	    !is_in_code(t, l, sym->st_value))
		return 0;
	e.size = sym->st_size > UINT32_MAX ? UINT32_MAX : (uint32_t)sym->st_size;
	e.name = sym->st_name & (SYMTAB_STRINGS_MAX - 1);
	e.rank = rank & 7;
	if (rank == RANK_UNTYPED && is_mark(t, l, &e))
		return 0;
	if (t->n == t->cap)
		r = vec_grow(&t->items, &t->cap, t->n + 1, sizeof(*t->items), SYMTAB_SYMBOLS_MAX);
	if (r)
		return r;
	t->items[t->n++] = e;
	return 0;
}

static int load_entries(struct symtab *t, enum symbol_table table, uint64_t off, uint64_t n)
{
	_cleanup_(freep) Elf64_Sym *step = malloc(SYMTAB_STEP * sizeof(*step));
	struct loading loading = {0}; /* no name has offset 0 */
	int r = 0;

	if (!step)
		return -ENOMEM;
	for (uint64_t i = 0; !r && i < n; i += SYMTAB_STEP) {
		size_t now = n - i < SYMTAB_STEP ? (size_t)(n - i) : SYMTAB_STEP;

		r = elffile_read(t->file, off + i * sizeof(*step), step, now * sizeof(*step));
		if (!r && !elffile_spend(t->file, ENTRY_COST * now))
			r = ELFFILE_ABANDONED;
		for (size_t j = 0; !r && j < now; j++)
			r = add_symbol(t, table, &step[j], &loading);
	}
	return r;
}

static int load_table(struct symtab *t, enum symbol_table table)
{
	uint32_t type = table == TABLE_SYMTAB ? SHT_SYMTAB : SHT_DYNSYM;
	struct elffile_section s;
	uint64_t n, end;
	int r;

	if (elffile_section(t->file, table_names[table], &s) != 0 || s.type != type ||
	    s.entsize != sizeof(Elf64_Sym) || __builtin_add_overflow(s.off, s.size, &end))
		return 0;
	if (elffile_section_at(t->file, s.link, &t->strings[table]) != 0 ||
	    t->strings[table].type != SHT_STRTAB)
		return 0;
	n = s.size / sizeof(Elf64_Sym);
	r = load_entries(t, table, s.off, n < SYMTAB_ENTRIES_MAX ? n : SYMTAB_ENTRIES_MAX);
	/* a full table, a truncated file and a lost disk leave the symbols read so far */
	return r == -ENOMEM ? r : 0;
}

static int compare_symbols(const void *a, const void *b)
{
	const struct symbol_entry *x = a, *y = b;

	if (x->vaddr != y->vaddr)
		return x->vaddr < y->vaddr ? -1 : 1;
	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	if (x->table != y->table)
		return x->table < y->table ? -1 : 1;
	return x->name < y->name ? -1 : x->name > y->name;
}

/* Most addresses have a name or two: a function's in .symtab and in .dynsym. */
static void sort_aliases(struct symbol_entry *first, size_t n)
{
	const struct symbol_entry swapped = first[0];

	if (n > 2) {
		qsort(first, n, sizeof(*first), compare_symbols);
	} else if (n == 2 && compare_symbols(&first[0], &first[1]) > 0) {
		first[0] = first[1];
		first[1] = swapped;
	}
}

/* By address, then the names of an address. */
static int sort_symbols(struct symtab *t)
{
	struct symbol_entry *room = reallocarray(NULL, t->n, sizeof(*room)), *sorted;

	if (!room)
		return -ENOMEM;
	sorted = keysort(t->items, room, t->n);
	free(sorted == room ? t->items : room);
	t->items = sorted;
	t->cap = t->n;
	for (size_t i = 0, end; i < t->n; i = end) {
		for (end = i + 1; end < t->n && sorted[end].vaddr == sorted[i].vaddr;)
			end++;
		sort_aliases(sorted + i, end - i);
	}
	return 0;
}

/* An unstripped .symtab has all symbols of .dynsym: duplicates are dropped. */
static bool is_repeated(const struct symbol_entry *e, const struct symbol_entry *before)
{
	return e->table == TABLE_DYNSYM && before->table == TABLE_SYMTAB &&
	       before->vaddr == e->vaddr && before->rank == e->rank && before->size == e->size;
}

/* One past the last byte of all functions with the start of item @i, but at least @reach, the end
 * of the functions before. Called once for each start. */
static uint64_t reach_of(const struct symtab *t, size_t i, uint64_t reach)
{
	uint64_t vaddr = t->items[i].vaddr;

	for (; i < t->n && t->items[i].vaddr == vaddr; i++)
		if (t->items[i].rank != RANK_UNTYPED && vaddr + t->items[i].size > reach)
			reach = vaddr + t->items[i].size;
	return reach;
}

/* Labels inside a function add no information and do not reach beyond the function: they are
 * dropped. */
static void drop_needless(struct symtab *t)
{
	uint64_t reach = 0, start = 0;
	size_t kept = 0;

	for (size_t i = 0; i < t->n; i++) {
		const struct symbol_entry e = t->items[i];
		bool is_label = e.rank == RANK_UNTYPED || !e.size;

		if (!i || e.vaddr != start)
			reach = reach_of(t, i, reach);
		start = e.vaddr;
		if (is_label && e.vaddr < reach)
			continue;
		if (kept && is_repeated(&e, &t->items[kept - 1]))
			continue;
		t->items[kept++] = e;
	}
	t->n = kept;
}

/* Releases the unused room of vec_grow(). */
static void shrink(struct symtab *t)
{
	struct symbol_entry *items = reallocarray(t->items, t->n, sizeof(*items));

	if (!items)
		return;
	t->items = items;
	t->cap = t->n;
}

/* A table counts when its entries and their sorting are within the budget. The table for dynamic
 * linking comes first: the table is smaller, and has the functions that other files use. */
static int load_tables(struct symtab *t)
{
	static const enum symbol_table order[TABLE_MAX] = {TABLE_DYNSYM, TABLE_SYMTAB};

	for (size_t i = 0; i < array_size(order); i++) {
		size_t n = t->n;
		int r = load_table(t, order[i]);

		if (r)
			return r;
		if (!elffile_spend(t->file, SORT_COST * (t->n - n))) {
			t->n = n;
			return SYMTAB_ABANDONED;
		}
	}
	return 0;
}

static int finish(struct symtab *t)
{
	int r = sort_symbols(t);

	if (r)
		return r;
	/* look-ups are bounded by themselves, and by the caller's budget */
	t->work = (struct work_budget){
		.left = UINT64_MAX, .look = UINT64_MAX, .outer = t->work.outer};
	drop_needless(t);
	shrink(t);
	return 0;
}

int symtab_open(const struct elffile *file, struct symtab **ret)
{
	_cleanup_(symtab_freep) struct symtab *t = calloc(1, sizeof(*t));
	uint64_t units;
	int r;

	if (!t)
		return -ENOMEM;
	if (elffile_type(file) == ET_REL)
		return SYMTAB_ABSENT;
	t->names = calloc(NAMES_KEPT, sizeof(*t->names));
	t->blocks = calloc(1, sizeof(*t->blocks));
	if (!t->names || !t->blocks)
		return -ENOMEM;
	for (size_t i = 0; i < NAMES_KEPT; i++)
		t->names[i].table = TABLE_MAX;
	units = SYMTAB_WORK + SYMTAB_BYTE_WORK * elffile_size(file);
	work_budget_init(&t->work, units < SYMTAB_WORK_MAX ? units : SYMTAB_WORK_MAX, SYMTAB_CPU_NS,
			 NULL);
	r = elffile_budgeted(file, &t->work, &t->file);
	if (!r)
		blockcache_init(t->blocks, t->file);
	if (!r)
		r = load_ranges(t);
	if (!r)
		r = load_tables(t);
	if (r < 0)
		return r;
	if (!t->n)
		return r ? r : SYMTAB_ABSENT;
	if (finish(t))
		return -ENOMEM;
	*ret = take_ptr(t);
	return r;
}

void symtab_free(struct symtab *t)
{
	if (!t)
		return;
	elffile_free(t->file);
	free(t->items);
	free(t->ranges);
	if (t->blocks)
		blockcache_deinit(t->blocks);
	free(t->blocks);
	free(t->names);
	free(t);
}

size_t symtab_bytes(const struct symtab *t)
{
	return sizeof(*t) + t->cap * sizeof(*t->items) + t->cap_ranges * sizeof(*t->ranges) +
	       NAMES_KEPT * sizeof(*t->names) + sizeof(*t->blocks) + t->blocks->n_bytes;
}

void symtab_drop_blocks(struct symtab *t)
{
	blockcache_clear(t->blocks);
}

/* ---------------------------------------------------------------- find */

/* The number of symbols that start at or before @vaddr. */
static size_t count_up_to(const struct symtab *t, uint64_t vaddr)
{
	size_t low = 0, high = t->n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (t->items[mid].vaddr <= vaddr)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

enum symbol_pass {
	PASS_FUNCTIONS, /* symbols with a size */
	PASS_REST,
};

static bool holds(const struct symbol_entry *e, uint64_t vaddr, enum symbol_pass pass)
{
	if (pass == PASS_FUNCTIONS && e->rank == RANK_UNTYPED)
		return false;
	if (pass == PASS_REST && !e->size)
		return vaddr - e->vaddr < SYMTAB_UNSIZED_MAX;
	return vaddr - e->vaddr < e->size;
}

/* Symbols with the same start as the last before @end are its aliases: [first, end). */
static size_t first_alias(const struct symtab *t, size_t end)
{
	const uint64_t start = t->items[end - 1].vaddr;
	size_t first = end - 1;

	for (size_t n = 1; first > 0 && t->items[first - 1].vaddr == start; n++) {
		if (n == SYMTAB_ALIASES_MAX)
			return start ? count_up_to(t, start - 1) : 0;
		first--;
	}
	return first;
}

/* The best name among the aliases around @vaddr; sorted by rank. Of very many, the first ones and
 * the last one, which the caller has found. */
static bool best_name(const struct symtab *t, size_t end, uint64_t vaddr, enum symbol_pass pass,
		      struct symtab_symbol *ret)
{
	const struct symbol_entry *best = NULL;
	char name[SYMTAB_NAME_MAX];
	size_t first = first_alias(t, end), n = end - first;

	if (n > SYMTAB_ALIASES_MAX)
		n = SYMTAB_ALIASES_MAX;
	for (size_t k = 0; k < n; k++) {
		const size_t i = k == n - 1 ? end - 1 : first + k;
		const struct symbol_entry *e = &t->items[i];

		if (best && e->rank > best->rank)
			break;
		if (!holds(e, vaddr, pass) || !read_name(t, e, name))
			continue;
		if (best && !symname_is_better(name, ret->name))
			continue;
		memcpy(ret->name, name, strlen(name) + 1);
		ret->vaddr = e->vaddr;
		ret->size = e->size;
		ret->from_symtab = e->table == TABLE_SYMTAB;
		best = e;
	}
	return best != NULL;
}

/* The nearest function whose size contains @vaddr. The search continues back a little for functions
 * around other functions. */
static bool find_function(const struct symtab *t, size_t end, uint64_t vaddr,
			  struct symtab_symbol *ret)
{
	size_t stop = end > SYMTAB_LOOKBACK_MAX ? end - SYMTAB_LOOKBACK_MAX : 0;

	for (size_t i = end; i > stop; i--)
		if (holds(&t->items[i - 1], vaddr, PASS_FUNCTIONS))
			return best_name(t, i, vaddr, PASS_FUNCTIONS, ret);
	return false;
}

int symtab_find(const struct symtab *t, uint64_t vaddr, struct symtab_symbol *ret)
{
	const struct range *range = find_range(t, vaddr);
	size_t end = count_up_to(t, vaddr);

	/* a symbol never reaches into another section, whatever its size */
	if (!range || !end || t->items[end - 1].vaddr < range->start)
		return SYMTAB_NOT_FOUND;
	if (find_function(t, end, vaddr, ret))
		return ret->vaddr >= range->start ? 0 : SYMTAB_NOT_FOUND;
	return best_name(t, end, vaddr, PASS_REST, ret) ? 0 : SYMTAB_NOT_FOUND;
}
