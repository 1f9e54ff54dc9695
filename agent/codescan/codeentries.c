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

#include "base/cleanup.h"
#include "base/vec.h"
#include "codescan/insn.h"

/* Read at a time. */
#define PIECE	((size_t)64 << 10)
#define LONGEST 15u

struct finder {
	const struct elffile *file;
	const struct rows *known;
	struct codeentries *entries;
};

/* Too many: the others are not known. */
static int add_as(struct finder *f, uint64_t vaddr, bool pointed)
{
	size_t i = rows_find(f->known, vaddr);
	int r;

	if (!vaddr || (i != (size_t)-1 && rows_at(f->known, i).rule))
		return 0;
	r = vec_grow(&f->entries->items, &f->entries->cap, f->entries->n + 1,
		     sizeof(*f->entries->items), CODEENTRIES_MAX);
	if (r)
		return r < 0 ? r : 0;
	f->entries->items[f->entries->n++] = (struct codeentry){.vaddr = vaddr, .pointed = pointed};
	return 0;
}

static int add(struct finder *f, uint64_t vaddr)
{
	return add_as(f, vaddr, false);
}

/* A table's bytes; none if it is absent or malformed. 0, -errno, ELFFILE_TRUNCATED. */
static int read_table(const struct elffile *file, const struct elffile_section *section, void *ret)
{
	void **bytes = ret;
	int r = elffile_read_section(file, section, CODEENTRIES_TABLE_MAX, bytes);

	return r < 0 || r == ELFFILE_TRUNCATED ? r : 0;
}

/* A part of a function at another place ("f.cold", "f.cold.3"), never called. */
static bool is_cold(const char *names, size_t n, uint32_t at)
{
	return at < n && memchr(names + at, 0, n - at) && strstr(names + at, ".cold");
}

static int add_symbols(struct finder *f, const char *name)
{
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
	for (size_t i = 0; i < section.size / sizeof(*symbols) && !r; i++)
		if (ELF64_ST_TYPE(symbols[i].st_info) == STT_FUNC && symbols[i].st_shndx &&
		    !is_cold(names, strings.size, symbols[i].st_name))
			r = add(f, symbols[i].st_value);
	return r;
}

static int add_words(struct finder *f, const struct elffile_segment *segment)
{
	_cleanup_(freep) uint64_t *words = NULL;
	uint64_t n = segment->filesz / sizeof(*words);
	int r;

	if (!(segment->flags & PF_W) || !n || n * sizeof(*words) > CODEENTRIES_TABLE_MAX ||
	    segment->vaddr % sizeof(*words))
		return 0;
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
	const struct elffile_segment *segments;
	size_t n;
	int r = 0;

	if (elffile_type(f->file) != ET_EXEC)
		return add_relocated(f);
	segments = elffile_segments(f->file, &n);
	for (size_t i = 0; i < n && !r; i++)
		r = add_words(f, &segments[i]);
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

		r = elffile_read(f->file, off, piece, n);
		if (!r)
			r = add_calls_of(f, piece, n, start, &taken);
		start += taken;
	}
	return r;
}

/* Of a stripped static program nothing else tells where the described part calls the other. */
static int add_calls(struct finder *f)
{
	_cleanup_(freep) uint8_t *piece = NULL;
	size_t n = rows_count(f->known);
	struct elffile_section section;
	int r = 0;

	if (!n || !elffile_section(f->file, ".symtab", &section) ||
	    !elffile_section(f->file, ".interp", &section) ||
	    rows_at(f->known, n - 1).vaddr - rows_at(f->known, 0).vaddr > CODEENTRIES_CODE_MAX)
		return 0;
	piece = malloc(PIECE);
	if (!piece)
		return -ENOMEM;
	for (size_t i = 0; i + 1 < n && !r; i++) {
		uint64_t start = rows_at(f->known, i).vaddr;

		if (!rows_at(f->known, i).rule)
			continue;
		while (i + 1 < n && rows_at(f->known, i + 1).rule)
			i++;
		r = add_calls_between(f, piece, start, rows_at(f->known, i + 1).vaddr);
	}
	return r;
}

static int ascending(const void *a, const void *b)
{
	const struct codeentry *left = a, *right = b;

	return left->vaddr < right->vaddr ? -1 : left->vaddr > right->vaddr;
}

int codeentries_read(const struct elffile *file, const struct rows *known, struct codeentries *ret)
{
	struct finder f = {.file = file, .known = known, .entries = ret};
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
