// SPDX-License-Identifier: Apache-2.0
/*
 * Finding a symbol by name means reading all of .symtab: it is not sorted, and ordinary programs
 * have no hash table for it. A large Go program has 200,000 symbols, 5 MB, and 15 MB of names. So
 * the search does not fetch each symbol's name. It first finds the names in .strtab, and gets a few
 * offsets. Then it finds the symbols in .symtab with such an offset as st_name, by binary search.
 * Both tables are read once, in pieces, front to back.
 *
 * .dynsym mostly has a hash table, .gnu.hash, of all defined symbols. A name is found there by some
 * reads of a few bytes: node's .dynsym and its names have 7 MB, and V8's names take five searches.
 * The same search as in .symtab serves a .dynsym without this table.
 *
 * A name may be the tail of a longer name: linkers store "b" inside "ab" (ld's string merging). So
 * each occurrence of the name before a NUL counts, with any bytes before the name.
 *
 * Specification: System V ABI, chapter 4, "Symbol Table" and "String Table". .gnu.hash has none;
 * the reference is glibc's dl-lookup.c (do_lookup_x()): four words, a Bloom filter, the first
 * symbol of each bucket, and for each symbol its hash, whose lowest bit ends the bucket.
 */
#include "elf/elfsym.h"

#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "elf/elffile.h"

/* Bytes of a read. */
#define ELFSYM_STEP_BYTES      65536u
/* Bytes of a table: ten times the largest in the programs here. Above it the file is
 * ELFSYM_MALFORMED. Reached: `malformed`. */
#define ELFSYM_TABLE_BYTES_MAX (512u << 20)
/* Bytes of a requested name, with its NUL. Reached: -. */
#define ELFSYM_NAME_MAX	       128u
/* Occurrences of the names in .strtab. Each name has one, or a few as the tail of longer names. A
 * file with more is ELFSYM_MALFORMED. Reached: `malformed`. */
#define ELFSYM_PLACES_MAX      256u

/* Symbols of a bucket of .gnu.hash: linkers aim at two to four. Reached: `malformed`. */
#define ELFSYM_BUCKET_MAX 4096u

_Static_assert(ELFSYM_NAMES_MAX <= 16, "a bit each");

struct place {
	uint32_t st_name;
	uint32_t name; /* index of the requested name */
};

struct search {
	const struct elffile *file;
	uint32_t kinds;
	const char *const *names;
	size_t n_names;
	size_t lengths[ELFSYM_NAMES_MAX];
	uint16_t by_last[256]; /* by its last byte: bits of the names */
	struct place places[ELFSYM_PLACES_MAX];
	size_t n_places;
	uint8_t *buf; /* ELFSYM_STEP_BYTES, the piece at hand */
};

/* Outcomes of elffile_*() as ours. */
static int elfsym_outcome(int r)
{
	return r > 0 ? ELFSYM_MALFORMED : r;
}

static int note_place(struct search *s, uint64_t st_name, uint32_t name)
{
	if (s->n_places == ELFSYM_PLACES_MAX)
		return ELFSYM_MALFORMED;
	s->places[s->n_places++] = (struct place){.st_name = (uint32_t)st_name, .name = name};
	return 0;
}

/* Notes the names that end before the NULs of the piece, from byte @from on. @base: of the piece in
 * .strtab. */
static int note_places(struct search *s, uint64_t base, size_t from, size_t n)
{
	const uint8_t *nul = s->buf + from, *end = s->buf + n;
	int r = 0;

	for (; !r && (nul = memchr(nul, 0, (size_t)(end - nul))); nul++) {
		size_t before = (size_t)(nul - s->buf);
		uint32_t names = before ? s->by_last[nul[-1]] : 0;

		for (uint32_t i = 0; names >> i && !r; i++)
			if ((names >> i & 1) && s->lengths[i] <= before &&
			    memcmp(nul - s->lengths[i], s->names[i], s->lengths[i]) == 0)
				r = note_place(s, base + before - s->lengths[i], i);
	}
	return r;
}

/* In one pass for all names: a library has megabytes of strings. Pieces overlap, so that a name
 * may cross a border. Each NUL counts in the first piece that has it. */
static int search_strings(struct search *s, const struct elffile_section *strings)
{
	const size_t overlap = ELFSYM_NAME_MAX;
	size_t from = 0;

	for (uint64_t at = 0; at < strings->size; at += ELFSYM_STEP_BYTES - overlap) {
		uint64_t left = strings->size - at;
		size_t n = left < ELFSYM_STEP_BYTES ? (size_t)left : ELFSYM_STEP_BYTES;
		int r = elfsym_outcome(elffile_read(s->file, strings->off + at, s->buf, n));

		if (!r)
			r = note_places(s, at, from, n);
		if (r)
			return r;
		if (n == left)
			break;
		from = overlap;
	}
	return 0;
}

static int by_st_name(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	return x->st_name < y->st_name ? -1 : x->st_name > y->st_name;
}

/* The first place at or after @st_name. */
static size_t first_place(const struct search *s, uint32_t st_name)
{
	size_t low = 0, high = s->n_places;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (s->places[mid].st_name < st_name)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* The kinds of a symbol's type. */
static uint32_t is_of_type(unsigned int type)
{
	switch (type) {
	case STT_NOTYPE:
		return ELFSYM_DATA | ELFSYM_CODE;
	case STT_OBJECT:
		return ELFSYM_DATA;
	case STT_FUNC:
		return ELFSYM_CODE;
	default:
		return 0;
	}
}

static bool is_wanted(const struct search *s, const Elf64_Sym *sym)
{
	return sym->st_shndx != SHN_UNDEF && sym->st_shndx < SHN_LORESERVE &&
	       (is_of_type(ELF64_ST_TYPE(sym->st_info)) & s->kinds);
}

/* One more symbol of a name. */
static void note_symbol_as(const struct search *s, const Elf64_Sym *sym, struct elfsym *to)
{
	if (!is_wanted(s, sym))
		return;
	if (to->n == 0)
		*to = (struct elfsym){sym->st_value, sym->st_size, sym->st_shndx, 1};
	else if (to->vaddr != sym->st_value)
		to->n++;
}

static void note_symbol(const struct search *s, const Elf64_Sym *sym, struct elfsym *found)
{
	if (!is_wanted(s, sym))
		return;
	for (size_t i = first_place(s, sym->st_name);
	     i < s->n_places && s->places[i].st_name == sym->st_name; i++)
		note_symbol_as(s, sym, &found[s->places[i].name]);
}

static int search_symbols(const struct search *s, const struct elffile_section *symbols,
			  struct elfsym *found)
{
	const uint64_t step = ELFSYM_STEP_BYTES / sizeof(Elf64_Sym) * sizeof(Elf64_Sym);

	for (uint64_t at = 0; at < symbols->size; at += step) {
		uint64_t left = symbols->size - at;
		size_t n = (size_t)(left < step ? left : step);
		int r = elfsym_outcome(elffile_read(s->file, symbols->off + at, s->buf, n));

		if (r)
			return r;
		for (size_t i = 0; i + sizeof(Elf64_Sym) <= n; i += sizeof(Elf64_Sym)) {
			Elf64_Sym sym;

			memcpy(&sym, s->buf + i, sizeof(sym));
			note_symbol(s, &sym, found);
		}
	}
	return 0;
}

static int find_tables(const struct elffile *ef, enum elfsym_table table,
		       struct elffile_section *ret_symbols, struct elffile_section *ret_strings)
{
	const bool dynamic = table == ELFSYM_DYNSYM;
	int r = elffile_section(ef, dynamic ? ".dynsym" : ".symtab", ret_symbols);

	if (r == ELFFILE_ABSENT || (!r && ret_symbols->type != (dynamic ? SHT_DYNSYM : SHT_SYMTAB)))
		return ELFSYM_ABSENT;
	if (!r)
		r = elffile_section_at(ef, ret_symbols->link, ret_strings);
	if (r)
		return elfsym_outcome(r);
	if (ret_strings->type != SHT_STRTAB || ret_symbols->size > ELFSYM_TABLE_BYTES_MAX ||
	    ret_strings->size > ELFSYM_TABLE_BYTES_MAX)
		return ELFSYM_MALFORMED;
	return 0;
}

/* ---------------------------------------------------------------- .gnu.hash */

struct gnu_hash {
	const struct search *search;
	const struct elffile_section *symbols;
	const struct elffile_section *strings;
	struct elffile_section section;
	uint32_t n_buckets;
	uint32_t first;	  /* index of the first symbol in the table */
	uint64_t buckets; /* offset in the section */
	uint64_t chains;
};

static uint32_t gnu_hash_of(const char *name)
{
	uint32_t h = 5381;

	for (; *name; name++)
		h = h * 33 + (uint8_t)*name;
	return h;
}

/* @n bytes at @off of a section. 0, ELFSYM_MALFORMED, -errno. */
static int read_in(const struct elffile *ef, const struct elffile_section *section, uint64_t off,
		   void *ret, size_t n)
{
	if (off > section->size || n > section->size - off)
		return ELFSYM_MALFORMED;
	return elfsym_outcome(elffile_read(ef, section->off + off, ret, n));
}

/* ELFSYM_ABSENT if there is none for these symbols. */
static int gnu_hash_open(struct gnu_hash *h)
{
	const struct elffile *ef = h->search->file;
	uint32_t words[4]; /* buckets, first symbol, words of the filter, shift */
	int r = elffile_section(ef, ".gnu.hash", &h->section);

	if (r || h->section.type != SHT_GNU_HASH || h->section.link != h->symbols->index)
		return r < 0 ? r : ELFSYM_ABSENT;
	r = read_in(ef, &h->section, 0, words, sizeof(words));
	if (r || !words[0])
		return r < 0 ? r : ELFSYM_ABSENT;
	h->n_buckets = words[0];
	h->first = words[1];
	h->buckets = sizeof(words) + (uint64_t)words[2] * 8;
	h->chains = h->buckets + (uint64_t)words[0] * 4;
	return 0;
}

/* Notes symbol @index if its name is number @name. */
static int note_hashed(const struct gnu_hash *h, uint64_t index, size_t name, struct elfsym *found)
{
	const struct search *s = h->search;
	const size_t n = s->lengths[name] + 1;
	char text[ELFSYM_NAME_MAX];
	Elf64_Sym sym;
	int r = read_in(s->file, h->symbols, index * sizeof(sym), &sym, sizeof(sym));

	if (!r)
		r = read_in(s->file, h->strings, sym.st_name, text, n);
	if (r == ELFSYM_MALFORMED) /* a shorter name at the end of the table, or no name */
		return 0;
	if (!r && memcmp(text, s->names[name], n) == 0)
		note_symbol_as(s, &sym, &found[name]);
	return r;
}

static int find_hashed(const struct gnu_hash *h, size_t name, struct elfsym *found)
{
	const uint32_t hash = gnu_hash_of(h->search->names[name]);
	uint32_t first, at = 0;
	int r = read_in(h->search->file, &h->section,
			h->buckets + (uint64_t)(hash % h->n_buckets) * 4, &first, sizeof(first));

	if (r || !first)
		return r;
	if (first < h->first)
		return ELFSYM_MALFORMED;
	for (uint64_t i = 0; !r && !(at & 1); i++) {
		const uint64_t index = (uint64_t)first + i;

		if (i == ELFSYM_BUCKET_MAX)
			return ELFSYM_MALFORMED;
		r = read_in(h->search->file, &h->section, h->chains + (index - h->first) * 4, &at,
			    sizeof(at));
		if (!r && (at | 1) == (hash | 1))
			r = note_hashed(h, index, name, found);
	}
	return r;
}

static int search_hashed(const struct search *s, const struct elffile_section *symbols,
			 const struct elffile_section *strings, struct elfsym *found)
{
	struct gnu_hash h = {.search = s, .symbols = symbols, .strings = strings};
	int r = gnu_hash_open(&h);

	for (size_t i = 0; i < s->n_names && !r; i++)
		r = find_hashed(&h, i, found);
	return r;
}

/* ---------------------------------------------------------------- both */

static int search_all(struct search *s, const struct elffile_section *symbols,
		      const struct elffile_section *strings, struct elfsym *found)
{
	_cleanup_(freep) uint8_t *buf = malloc(ELFSYM_STEP_BYTES);
	int r;

	if (!buf)
		return -ENOMEM;
	s->buf = buf;
	r = search_strings(s, strings);
	qsort(s->places, s->n_places, sizeof(s->places[0]), by_st_name);
	if (!r && s->n_places)
		r = search_symbols(s, symbols, found);
	return r;
}

static void list_names(struct search *s, const char *const *names, size_t n)
{
	s->names = names;
	s->n_names = n;
	for (size_t i = 0; i < n; i++) {
		s->lengths[i] = strlen(names[i]);
		s->by_last[(uint8_t)names[i][s->lengths[i] - 1]] |= (uint16_t)(1u << i);
	}
}

int elfsym_find(const struct elffile *ef, enum elfsym_table table, uint32_t kinds,
		const char *const *names, size_t n, struct elfsym *ret)
{
	_cleanup_(freep) struct search *s = NULL;
	struct elffile_section symbols, strings;
	struct elfsym found[ELFSYM_NAMES_MAX] = {0};
	int r;

	if (n > ELFSYM_NAMES_MAX)
		return -EINVAL;
	for (size_t i = 0; i < n; i++)
		if (!names[i][0] || strlen(names[i]) >= ELFSYM_NAME_MAX)
			return -EINVAL;
	r = find_tables(ef, table, &symbols, &strings);
	if (r)
		return r;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->file = ef;
	s->kinds = kinds;
	list_names(s, names, n);
	r = table == ELFSYM_DYNSYM ? search_hashed(s, &symbols, &strings, found) : ELFSYM_ABSENT;
	if (r == ELFSYM_ABSENT)
		r = search_all(s, &symbols, &strings, found);
	if (r)
		return r;
	memcpy(ret, found, n * sizeof(*ret));
	return 0;
}

int elfsym_count(const struct elffile *ef, enum elfsym_table table, uint64_t *ret)
{
	struct elffile_section symbols, strings;
	int r = find_tables(ef, table, &symbols, &strings);

	if (!r)
		*ret = symbols.size / sizeof(Elf64_Sym);
	return r;
}
