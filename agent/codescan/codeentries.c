// SPDX-License-Identifier: Apache-2.0
/*
 * Stripped files have only the exported symbols (.dynsym). Functions called only through pointers
 * are found in data. A position-independent file has relocations that make the pointers absolute. A
 * file with fixed addresses has them as words in writable data. Read-only words are not searched:
 * the switches of a fixed file have address tables there, without functions.
 */
#include "codescan/codeentries.h"

#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

#include "base/cleanup.h"
#include "base/vec.h"
#include "codescan/insn.h"

/* Read at a time. */
#define PIECE	      ((size_t)32 << 10)
#define LONGEST	      15u
/* Looked at together, a bit for each. */
#define STRIDE	      64u
/* Bytes behind a piece that a look at its bytes may read. */
#define SLACK	      (STRIDE + LONGEST)
/* Symbols, and bytes of their names, read at a time. */
#define SYMBOLS_PIECE ((size_t)1 << 10)
#define NAMES_PIECE   ((size_t)16 << 10)
/* Units of work for a byte of code. */
#define CODE_COST     8u
/* Entries found last: most calls into a gap are of a linkage table without a description, again and
 * again. 4,096, as an exponent of 2. */
#define RECENT_BITS   12u

struct finder {
	const struct elffile *file;
	const struct rows *known;
	const struct codegaps *gaps;
	struct codeentries *entries;
	/* of add_calls(): from the first gap to the end of the last, whether rows are selected by a
	 * look at their bytes, and recent_key() of entries, by their places */
	uint64_t low, span;
	uint8_t high_low, high_span; /* values of the fourth byte of an address there */
	bool selects;
	uint64_t opcodes[PIECE / STRIDE]; /* find_opcodes() */
	uint64_t *recent;		  /* NULL: not asked for yet */
};

static uint64_t recent_key(uint64_t vaddr, bool pointed)
{
	return vaddr << 1 | pointed;
}

static uint64_t *recent_slot(const struct finder *f, uint64_t vaddr)
{
	return &f->recent[vaddr * 0x9e3779b97f4a7c15ull >>
			  (64 - RECENT_BITS)]; /* 2^64 / golden ratio */
}

/* Whether the entry is there already. False also for entries that are not recent. */
static bool is_recent(const struct finder *f, uint64_t vaddr, bool pointed)
{
	return *recent_slot(f, vaddr) == recent_key(vaddr, pointed);
}

/* Too many: the others are not known. */
static int add_as(struct finder *f, uint64_t vaddr, bool pointed)
{
	int r;

	if (!vaddr || !codegaps_has(f->gaps, vaddr))
		return 0;
	r = vec_grow(&f->entries->items, &f->entries->cap, f->entries->n + 1,
		     sizeof(*f->entries->items), CODEENTRIES_MAX);
	if (r)
		return r < 0 ? r : 0;
	f->entries->items[f->entries->n++] = (struct codeentry){.vaddr = vaddr, .pointed = pointed};
	if (f->recent)
		*recent_slot(f, vaddr) = recent_key(vaddr, pointed);
	return 0;
}

static int add(struct finder *f, uint64_t vaddr)
{
	return add_as(f, vaddr, false);
}

/* A table's bytes; none if it is absent or malformed. 0, -errno, ELFFILE_TRUNCATED,
 * ELFFILE_ABANDONED. */
static int read_table(const struct elffile *file, const struct elffile_section *section, void *ret)
{
	void **bytes = ret;
	int r = elffile_read_section(file, section, CODEENTRIES_TABLE_MAX, bytes);

	return r < 0 || r == ELFFILE_TRUNCATED || r == ELFFILE_ABANDONED ? r : 0;
}

/*
 * A part of a function at another place ("f.cold", "f.cold.3") is never called. Few symbols are in
 * gaps, and the names of a large program have 20 MB. So only the names of these symbols are read,
 * in the order of the table of names, each byte once. A name may begin anywhere in the table, and
 * thousands of symbols may share one long name.
 */
struct names {
	const struct elffile *file;
	struct elffile_section section;
	char *bytes; /* NAMES_PIECE bytes; [@pos, @pos + @n) of the section */
	uint64_t pos;
	size_t n;
	/* of the string at hand, positions: its end, and the last ".cold" in it (NO_COLD: none) */
	uint64_t end, cold;
};

#define NO_COLD UINT64_MAX

/* The last ".cold" in the @n bytes, or NULL. Mangled names have few dots. */
static const char *last_cold(const char *bytes, size_t n)
{
	static const char word[] = ".cold";
	const char *const end = bytes + n, *at = end;

	while ((at = memrchr(bytes, word[0], (size_t)(at - bytes))))
		if ((size_t)(end - at) >= sizeof(word) - 1 &&
		    memcmp(at, word, sizeof(word) - 1) == 0)
			break;
	return at;
}

/* Reads the string at @pos, which is not before the last one. Of a string longer than a piece, the
 * piece. */
static int read_name(struct names *names, uint64_t pos)
{
	const char *at, *nul = NULL, *cold;
	int r = 0;

	if (pos >= names->section.size)
		return 0;
	if (pos < names->pos + names->n)
		nul = memchr(names->bytes + (pos - names->pos), 0, names->pos + names->n - pos);
	if (!nul) {
		names->pos = pos;
		names->n = names->section.size - pos < NAMES_PIECE
				   ? (size_t)(names->section.size - pos)
				   : NAMES_PIECE;
		r = elffile_read(names->file, names->section.off + pos, names->bytes, names->n);
		if (r)
			return r;
		nul = memchr(names->bytes, 0, names->n);
	}
	at = names->bytes + (pos - names->pos);
	nul = nul ? nul : names->bytes + names->n;
	cold = last_cold(at, (size_t)(nul - at));
	names->end = names->pos + (uint64_t)(nul - names->bytes);
	names->cold = cold ? names->pos + (uint64_t)(cold - names->bytes) : NO_COLD;
	return 0;
}

struct symbol {
	uint32_t name; /* position */
	uint64_t vaddr;
};

struct symbols {
	struct symbol *items;
	size_t n, cap;
};

static int by_name(const void *a, const void *b)
{
	const struct symbol *left = a, *right = b;

	return left->name < right->name ? -1 : left->name > right->name;
}

/* The functions in gaps. */
static int read_symbols(const struct finder *f, const struct elffile_section *section,
			struct symbols *ret)
{
	_cleanup_(freep) Elf64_Sym *symbols = malloc(SYMBOLS_PIECE * sizeof(*symbols));
	uint64_t left = section->size / sizeof(*symbols), off = section->off;
	int r = symbols ? 0 : -ENOMEM;

	while (left && !r) {
		const size_t n = left < SYMBOLS_PIECE ? (size_t)left : SYMBOLS_PIECE;

		r = elffile_read(f->file, off, symbols, n * sizeof(*symbols));
		for (size_t i = 0; i < n && !r; i++) {
			const Elf64_Sym *s = &symbols[i];

			if (ELF64_ST_TYPE(s->st_info) != STT_FUNC || !s->st_shndx ||
			    !codegaps_has(f->gaps, s->st_value))
				continue;
			r = vec_grow(&ret->items, &ret->cap, ret->n + 1, sizeof(*ret->items),
				     CODEENTRIES_TABLE_MAX);
			if (!r)
				ret->items[ret->n++] =
					(struct symbol){.name = s->st_name, .vaddr = s->st_value};
		}
		left -= n;
		off += n * sizeof(*symbols);
	}
	return r;
}

static int add_named(struct finder *f, const struct symbols *symbols,
		     const struct elffile_section *strings)
{
	_cleanup_(freep) char *bytes = malloc(NAMES_PIECE);
	struct names names = {
		.file = f->file, .section = *strings, .bytes = bytes, .cold = NO_COLD};
	int r = bytes ? 0 : -ENOMEM;

	for (size_t i = 0; i < symbols->n && !r; i++) {
		const struct symbol *s = &symbols->items[i];

		if (s->name >= names.end)
			r = read_name(&names, s->name);
		if (!r && (names.cold == NO_COLD || names.cold < s->name))
			r = add(f, s->vaddr);
	}
	return r;
}

/* Whether a table can be read: 0; ELFFILE_TRUNCATED. *@ret: it is there and not too large. */
static int is_table(const struct elffile *file, const struct elffile_section *section, bool *ret)
{
	uint64_t end;

	*ret = section->type != SHT_NOBITS && section->size <= CODEENTRIES_TABLE_MAX;
	if (*ret &&
	    (__builtin_add_overflow(section->off, section->size, &end) || end > elffile_size(file)))
		return ELFFILE_TRUNCATED;
	return 0;
}

static int add_symbols(struct finder *f, const char *name)
{
	struct elffile_section section, strings;
	struct symbols symbols = {0};
	bool has_symbols, has_names;
	int r;

	if (elffile_section(f->file, name, &section) ||
	    elffile_section_at(f->file, section.link, &strings))
		return 0;
	r = is_table(f->file, &section, &has_symbols);
	if (!r)
		r = is_table(f->file, &strings, &has_names);
	if (r || !has_symbols || !has_names)
		return r;
	r = read_symbols(f, &section, &symbols);
	if (!r && symbols.n)
		qsort(symbols.items, symbols.n, sizeof(*symbols.items), by_name);
	if (!r)
		r = add_named(f, &symbols, &strings);
	free(symbols.items);
	return r;
}

/* *@left: bytes that may still be searched. Linked segments do not share bytes of the file; in a
 * forged file 1,169 may be the same bytes. */
static int add_words(struct finder *f, const struct elffile_segment *segment, uint64_t *left)
{
	_cleanup_(freep) uint64_t *words = NULL;
	uint64_t n = segment->filesz / sizeof(*words);
	int r;

	if (!(segment->flags & PF_W) || !n || n * sizeof(*words) > *left ||
	    segment->vaddr % sizeof(*words))
		return 0;
	*left -= n * sizeof(*words);
	words = calloc(n, sizeof(*words));
	if (!words)
		return -ENOMEM;
	r = elffile_read(f->file, segment->off, words, n * sizeof(*words));
	for (uint64_t i = 0; i < n && !r; i++)
		r = add_as(f, words[i], true);
	return r;
}

static int add_relocated(struct finder *f)
{
	bool is_arm64 = elffile_machine(f->file) == EM_AARCH64;
	uint32_t relative = is_arm64 ? R_AARCH64_RELATIVE : R_X86_64_RELATIVE;
	_cleanup_(freep) Elf64_Rela *relocations = NULL;
	struct elffile_section section;
	int r;

	if (elffile_section(f->file, ".rela.dyn", &section))
		return 0;
	r = read_table(f->file, &section, &relocations);
	if (r || !relocations)
		return r;
	for (size_t i = 0; i < section.size / sizeof(*relocations) && !r; i++)
		if (ELF64_R_TYPE(relocations[i].r_info) == relative)
			r = add_as(f, (uint64_t)relocations[i].r_addend, true);
	return r;
}

static int add_pointers(struct finder *f)
{
	uint64_t size = elffile_size(f->file);
	uint64_t left = size < CODEENTRIES_TABLE_MAX ? size : CODEENTRIES_TABLE_MAX;
	const struct elffile_segment *segments;
	size_t n;
	int r = 0;

	if (elffile_type(f->file) != ET_EXEC)
		return add_relocated(f);
	segments = elffile_segments(f->file, &n);
	for (size_t i = 0; i < n && !r; i++)
		r = add_words(f, &segments[i], &left);
	return r;
}

/* Adds the call targets and computed addresses of a piece of described code. *@ret_n: bytes of
 * whole instructions. */
static int add_calls_of(struct finder *f, const uint8_t *code, size_t n, uint64_t vaddr,
			size_t *ret_n)
{
	insn_decode_fn *decode =
		elffile_machine(f->file) == EM_AARCH64 ? insn_decode_arm64 : insn_decode_x86;
	size_t step, at = 0;
	int r = 0;

	/* the next piece begins with an instruction again */
	for (; !r && at < n && (n - at >= LONGEST || n < PIECE); at += step) {
		struct insn insn;

		step = decode == insn_decode_arm64 ? 4 : 1;
		if (!decode(code + at, n - at, vaddr + at, &insn))
			continue; /* data; code begins again somewhere */
		step = insn.length;
		if (insn.flow == INSN_CALL && insn.target)
			r = add(f, insn.target);
		if (!r && insn.points)
			r = add(f, insn.points);
		if (!r && insn.constant)
			r = add_as(f, insn.constant, true);
	}
	*ret_n = at;
	return r;
}

static int add_calls_between(struct finder *f, uint8_t *piece, uint64_t start, uint64_t end)
{
	uint64_t off;
	int r = 0;

	while (!r && start < end && elffile_off_of_vaddr(f->file, start, &off)) {
		size_t n = end - start < PIECE ? (size_t)(end - start) : PIECE, taken = 0;

		if (!elffile_spend(f->file, CODE_COST * n))
			return ELFFILE_ABANDONED;
		r = elffile_read(f->file, off, piece, n);
		if (!r)
			r = add_calls_of(f, piece, n, start, &taken);
		start += taken;
	}
	return r;
}

/* ---------------------------------------------------------------- calls of described code */

/* Decoding takes many times as long as a look at the bytes, and few rows of a library lead into a
 * gap. So only rows with bytes of an instruction that may lead there are decoded. Such bytes may
 * also be in the middle of another instruction. */

/* Whether bytes are the opcode of call, of lea of something near, or of mov to a register of a
 * constant. All are vectors of bytes: @opcode, @next the bytes behind, and @high the fourth bytes
 * behind. Most constants are small numbers: their high byte tells. */
#define MAY_LEAD(opcode, next, high, f)                                     \
	(((opcode) == 0xe8) | (((opcode) == 0x8d) & (((next)&0xc7) == 5)) | \
	 (((opcode) == 0xc7) & (((next)&0xf8) == 0xc0)) |                   \
	 ((((opcode)&0xf8) == 0xb8) & ((high) - (f)->high_low <= (f)->high_span)))

typedef uint8_t block __attribute__((vector_size(16)));

/* A bit for each byte of ones in @bytes; its other bytes are zeros. */
static inline uint64_t bits_of(block bytes)
{
#ifdef __x86_64__
	return (uint32_t)_mm_movemask_epi8((__m128i)bytes);
#else
	const uint64_t own = 0x8040201008040201ull, sum = 0x0101010101010101ull;
	uint64_t words[2];

	memcpy(words, &bytes, sizeof(words));
	return (words[0] & own) * sum >> 56 | (words[1] & own) * sum >> 56 << 8;
#endif
}

static inline block load(const uint8_t *code)
{
	block bytes;

	memcpy(&bytes, code, sizeof(bytes));
	return bytes;
}

static inline uint64_t look(const struct finder *f, const uint8_t *code)
{
	const block opcode = load(code), next = load(code + 1), high = load(code + 4);

	return bits_of((block)MAY_LEAD(opcode, next, high, f));
}

static void find_opcodes_any(struct finder *f, const uint8_t *code, size_t n)
{
	for (size_t at = 0; at < n; at += STRIDE)
		f->opcodes[at / STRIDE] = look(f, code + at) | look(f, code + at + 16) << 16 |
					  look(f, code + at + 32) << 32 |
					  look(f, code + at + 48) << 48;
}

#ifdef __x86_64__
typedef uint8_t wide __attribute__((vector_size(32)));

static inline __attribute__((target("avx2"))) uint64_t look_avx2(const struct finder *f,
								 const uint8_t *code)
{
	wide opcode, next, high;

	memcpy(&opcode, code, sizeof(opcode));
	memcpy(&next, code + 1, sizeof(next));
	memcpy(&high, code + 4, sizeof(high));
	return (uint32_t)_mm256_movemask_epi8((__m256i)MAY_LEAD(opcode, next, high, f));
}

/* The same in half of the instructions. */
static __attribute__((target("avx2"))) void find_opcodes_avx2(struct finder *f, const uint8_t *code,
							      size_t n)
{
	for (size_t at = 0; at < n; at += STRIDE)
		f->opcodes[at / STRIDE] =
			look_avx2(f, code + at) | look_avx2(f, code + at + sizeof(wide)) << 32;
}
#endif

/* Sets a bit of @f->opcodes for each of the @n bytes at @code, and perhaps for bytes behind, that
 * may be an opcode of a call, lea or mov of an address in a gap. */
static void find_opcodes(struct finder *f, const uint8_t *code, size_t n)
{
#ifdef __x86_64__
	if (__builtin_cpu_supports("avx2")) {
		find_opcodes_avx2(f, code, n);
		return;
	}
#endif
	find_opcodes_any(f, code, n);
}

/* The forms of these opcodes. */
enum { HAS_MODRM = 1, CONSTANT = 2 };
static const uint8_t forms[256] = {
	[0x8d] = HAS_MODRM, [0xb8 ... 0xbf] = CONSTANT, [0xc7] = HAS_MODRM | CONSTANT};

/* Whether the instruction that find_opcodes() found at @code, which has the address @vaddr, leads
 * to a new place in a gap. *@ret_n: its bytes from the opcode on. */
static inline bool leads(const struct finder *f, const uint8_t *code, uint64_t vaddr, size_t *ret_n)
{
	const uint8_t form = forms[*code];
	const bool is_constant = form & CONSTANT;
	uint32_t to;

	memcpy(&to, code + 1 + (form & HAS_MODRM), sizeof(to));
	*ret_n = 1 + (form & HAS_MODRM) + sizeof(to);
	to += (is_constant ? 0 : (uint32_t)(vaddr + *ret_n)) - (uint32_t)f->low;
	return to < f->span && codegaps_near(f->gaps, to) && codegaps_has(f->gaps, f->low + to) &&
	       !is_recent(f, f->low + to, is_constant);
}

/* The first of the @n bytes from @at on where an instruction may lead into a gap; @n without any.
 * After find_opcodes(). */
static size_t next_lead(const struct finder *f, const uint8_t *code, size_t n, uint64_t vaddr,
			size_t at)
{
	size_t n_insn;

	for (; at < n; at += STRIDE - at % STRIDE) {
		uint64_t found = f->opcodes[at / STRIDE] >> at % STRIDE;

		for (; found; found &= found - 1) {
			const size_t here = at + (size_t)__builtin_ctzll(found);

			if (here >= n)
				return n;
			if (leads(f, code + here, vaddr + here, &n_insn))
				return here;
		}
	}
	return n;
}

static uint64_t row_vaddr(const struct finder *f, size_t i)
{
	return rows_at(f->known, i).vaddr;
}

/* Of the row at @at, where an instruction may lead into a gap; *@at moves to its end if the row was
 * decoded, else by a byte. */
static int add_calls_of_row(struct finder *f, const uint8_t *piece, uint64_t start, size_t *at)
{
	const size_t row = rows_find(f->known, start + *at);
	const size_t first = (size_t)(row_vaddr(f, row) - start);
	const size_t end = (size_t)(row_vaddr(f, row + 1) - start);
	size_t taken;

	/* not with bytes of the next row */
	if (!leads(f, piece + *at, start + *at, &taken) || taken > end - *at) {
		++*at;
		return 0;
	}
	*at = end;
	return add_calls_of(f, piece + first, end - first, start + first, &taken);
}

/* Of rows [first, end), in one piece. Rows begin at instructions. */
static int add_calls_of_rows(struct finder *f, uint8_t *piece, size_t first, size_t end)
{
	const uint64_t start = row_vaddr(f, first);
	const size_t n = (size_t)(row_vaddr(f, end) - start);
	uint64_t off;
	int r;

	if (!elffile_off_of_vaddr(f->file, start, &off))
		return 0;
	if (!elffile_spend(f->file, CODE_COST * n))
		return ELFFILE_ABANDONED;
	r = elffile_read(f->file, off, piece, n);
	if (!r)
		find_opcodes(f, piece, n);
	for (size_t at = 0; !r && (at = next_lead(f, piece, n, start, at)) < n;)
		r = add_calls_of_row(f, piece, start, &at);
	return r;
}

/* Whether an instruction in [@start, @end), of more bytes than a piece, may lead into a gap. */
static int look_between(struct finder *f, uint8_t *piece, uint64_t start, uint64_t end, bool *ret)
{
	uint64_t off;
	size_t n;
	int r = 0;

	for (*ret = false; !*ret && start < end; start += n) {
		n = end - start < PIECE ? (size_t)(end - start) : PIECE;
		if (!elffile_off_of_vaddr(f->file, start, &off))
			return 0;
		if (!elffile_spend(f->file, CODE_COST * n))
			return ELFFILE_ABANDONED;
		r = elffile_read(f->file, off, piece, n);
		if (r)
			return r;
		find_opcodes(f, piece, n);
		*ret = next_lead(f, piece, n, start, 0) < n;
		/* the next piece begins with the last bytes of this one */
		n = n == PIECE ? n - SLACK : n;
	}
	return 0;
}

/* Of a row of more bytes than a piece. */
static int add_calls_of_large(struct finder *f, uint8_t *piece, size_t row)
{
	const uint64_t start = row_vaddr(f, row), end = row_vaddr(f, row + 1);
	bool may_lead;
	int r = look_between(f, piece, start, end, &may_lead);

	return r || !may_lead ? r : add_calls_between(f, piece, start, end);
}

/* Of rows [first, end) without a gap; a row follows. */
static int add_calls_of_range(struct finder *f, uint8_t *piece, size_t first, size_t end)
{
	int r = 0;

	if (!f->selects)
		return add_calls_between(f, piece, row_vaddr(f, first), row_vaddr(f, end));
	for (size_t next; first < end && !r; first = next) {
		next = rows_find(f->known, row_vaddr(f, first) + PIECE - 1);
		next = next > end ? end : next;
		if (next > first) {
			r = add_calls_of_rows(f, piece, first, next);
		} else {
			next = first + 1;
			r = add_calls_of_large(f, piece, first);
		}
	}
	return r;
}

/* Of a stripped static program or a stripped library nothing else tells where the described part
 * calls the other. */
static int add_calls(struct finder *f)
{
	_cleanup_(freep) uint8_t *piece = NULL;
	_cleanup_(freep) uint64_t *recent = NULL;
	size_t n = rows_count(f->known);
	struct elffile_section section;
	int r = 0;

	if (!n || !f->gaps->n || !elffile_section(f->file, ".symtab", &section) ||
	    !elffile_section(f->file, ".interp", &section) ||
	    rows_at(f->known, n - 1).vaddr - rows_at(f->known, 0).vaddr > CODEENTRIES_CODE_MAX)
		return 0;
	piece = calloc(1, PIECE + SLACK);
	recent = calloc((size_t)1 << RECENT_BITS, sizeof(*recent));
	if (!piece || !recent)
		return -ENOMEM;
	f->recent = recent;
	f->low = f->gaps->items[0].start;
	f->span = f->gaps->items[f->gaps->n - 1].end - f->low;
	f->high_low = (uint8_t)(f->low >> 24);
	f->high_span = (uint8_t)(((f->low + f->span - 1) >> 24) - (f->low >> 24));
	f->selects = elffile_machine(f->file) != EM_AARCH64 && f->span <= UINT32_MAX;
	for (size_t i = 0, gap; i < n && !r; i = gap + 1) {
		gap = rows_next_gap(f->known, i);
		r = add_calls_of_range(f, piece, i, gap);
	}
	return r;
}

static int ascending(const void *a, const void *b)
{
	const struct codeentry *left = a, *right = b;

	return left->vaddr < right->vaddr ? -1 : left->vaddr > right->vaddr;
}

int codeentries_read(const struct elffile *file, const struct rows *known,
		     const struct codegaps *gaps, struct codeentries *ret)
{
	struct finder f = {.file = file, .known = known, .gaps = gaps, .entries = ret};
	int r = add(&f, elffile_entry(file));

	if (!r)
		r = add_symbols(&f, ".symtab");
	if (!r)
		r = add_symbols(&f, ".dynsym");
	if (!r)
		r = add_pointers(&f);
	if (!r)
		r = add_calls(&f);
	if (!r && ret->n)
		qsort(ret->items, ret->n, sizeof(*ret->items), ascending);
	return r;
}

void codeentries_deinit(struct codeentries *entries)
{
	free(entries->items);
}

size_t codeentries_find(const struct codeentries *entries, uint64_t vaddr)
{
	size_t from = 0, to = entries->n;

	while (from < to) {
		size_t middle = from + (to - from) / 2;

		if (entries->items[middle].vaddr < vaddr)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}
