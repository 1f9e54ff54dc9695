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
#define PIECE	    ((size_t)32 << 10)
#define LONGEST	    15u
/* Looked at together, a bit for each. */
#define STRIDE	    64u
/* Bytes behind a piece that a look at its bytes may read. */
#define SLACK	    (STRIDE + LONGEST)
/* Units of work for a byte of code. */
#define CODE_COST   8u
/* Entries found last: most calls into a gap are of a linkage table without a description, again and
 * again. 4,096, as an exponent of 2. */
#define RECENT_BITS 12u

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
 * A part of a function at another place ("f.cold", "f.cold.3") is never called. A symbol's name may
 * begin anywhere in the table, and thousands of symbols may share one long name. So the table is
 * searched once: a name is such a part if it begins in one of these ranges, from the begin of a
 * string to its last ".cold".
 */
struct colds {
	struct cold {
		uint32_t first, last; /* offsets */
	} * items;
	size_t n, cap;
};

static void colds_deinit(struct colds *colds)
{
	free(colds->items);
}

/* Mangled names have few dots, so this takes fewer instructions than memmem(). */
static const char *find_cold(const char *at, const char *end)
{
	static const char word[] = ".cold";
	const size_t n = sizeof(word) - 1;

	for (; (at = memchr(at, word[0], (size_t)(end - at))); at++)
		if ((size_t)(end - at) >= n && memcmp(at, word, n) == 0)
			return at;
	return NULL;
}

static int find_colds(const char *names, size_t n, struct colds *ret)
{
	const char *at = names, *end = names + n;
	int r = 0;

	while (!r && (at = find_cold(at, end))) {
		const char *before = memrchr(names, 0, (size_t)(at - names));
		const char *nul = memchr(at, 0, (size_t)(end - at));
		struct cold cold = {.first = before ? (uint32_t)(before + 1 - names) : 0};

		if (!nul)
			break; /* not a string */
		for (const char *next = at; next;) {
			at = next;
			next = find_cold(at + 1, nul);
		}
		cold.last = (uint32_t)(at - names);
		at = nul;
		r = vec_grow(&ret->items, &ret->cap, ret->n + 1, sizeof(*ret->items), n);
		if (!r)
			ret->items[ret->n++] = cold;
	}
	return r < 0 ? r : 0;
}

static bool is_cold(const struct colds *colds, uint32_t at)
{
	size_t low = 0, high = colds->n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (colds->items[mid].last < at)
			low = mid + 1;
		else
			high = mid;
	}
	return low < colds->n && colds->items[low].first <= at;
}

static int add_symbols(struct finder *f, const char *name)
{
	_cleanup_(colds_deinit) struct colds colds = {0};
	_cleanup_(freep) Elf64_Sym *symbols = NULL;
	_cleanup_(freep) char *names = NULL;
	struct elffile_section section, strings;
	int r;

	if (elffile_section(f->file, name, &section) ||
	    elffile_section_at(f->file, section.link, &strings))
		return 0;
	r = read_table(f->file, &section, &symbols);
	if (!r)
		r = read_table(f->file, &strings, &names);
	if (r || !symbols || !names)
		return r;
	r = find_colds(names, strings.size, &colds);
	for (size_t i = 0; i < section.size / sizeof(*symbols) && !r; i++)
		if (ELF64_ST_TYPE(symbols[i].st_info) == STT_FUNC && symbols[i].st_shndx &&
		    codegaps_has(f->gaps, symbols[i].st_value) &&
		    !is_cold(&colds, symbols[i].st_name))
			r = add(f, symbols[i].st_value);
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

/* Whether the instruction that find_opcodes() found at @code, which has the address @vaddr, leads
 * to a new place in a gap. *@ret_n: its bytes from the opcode on. */
static inline bool leads(const struct finder *f, const uint8_t *code, uint64_t vaddr, size_t *ret_n)
{
	const bool has_modrm = *code == 0x8d || *code == 0xc7;
	const bool is_constant = *code != 0xe8 && *code != 0x8d;
	uint32_t word, to;

	memcpy(&word, code + 1 + has_modrm, sizeof(word));
	*ret_n = 1 + has_modrm + sizeof(word);
	to = word - (uint32_t)f->low;
	if (!is_constant)
		to += (uint32_t)(vaddr + *ret_n);
	return to < f->span && codegaps_near(f->gaps, f->low + to) &&
	       codegaps_has(f->gaps, f->low + to) && !is_recent(f, f->low + to, is_constant);
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
