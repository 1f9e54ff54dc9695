// SPDX-License-Identifier: Apache-2.0
#include "symbolize/plt.h"

#include <elf.h>
#include <endian.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/vec.h"
#include "elf/elffile.h"

/* Slots of one file; the largest programs have 20,000. Reached: no name. */
#define PLT_SLOTS_MAX	 (1u << 17)
/* Relocations read of one file; position-independent programs have 500,000. Reached: no name. */
#define PLT_RELAS_MAX	 (4u << 20)
/* Relocations read at a time. */
#define PLT_STEP	 1024
/* Sections of stubs: .plt, .plt.sec and .plt.got. Reached: -. */
#define PLT_SECTIONS_MAX 3
/* Bytes of the longest stub. Reached: -. */
#define PLT_STUB_MAX	 16
/* Units of work for a relocation. */
#define RELA_COST	 8u

struct slot {
	uint64_t vaddr;
	uint32_t symbol;
};

struct plt {
	const struct elffile *file;
	struct elffile_section stubs[PLT_SECTIONS_MAX];
	size_t n_stubs;
	struct elffile_section symbols;
	struct elffile_section strings;
	struct slot *slots; /* by vaddr */
	size_t n;
	size_t cap;
};

DEFINE_CLEANUP(struct plt *, plt_freep, plt_free);

/* ---------------------------------------------------------------- relocations */

static bool is_of_slot(uint16_t machine, uint32_t type)
{
	if (machine == EM_AARCH64)
		return type == R_AARCH64_JUMP_SLOT || type == R_AARCH64_GLOB_DAT;
	return type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT;
}

static int add_slot(struct plt *plt, const Elf64_Rela *rela)
{
	uint64_t info = le64toh(rela->r_info);
	int r;

	if (!is_of_slot(elffile_machine(plt->file), ELF64_R_TYPE(info)) || !ELF64_R_SYM(info))
		return 0;
	r = vec_grow(&plt->slots, &plt->cap, plt->n + 1, sizeof(*plt->slots), PLT_SLOTS_MAX);
	if (!r)
		plt->slots[plt->n++] = (struct slot){.vaddr = le64toh(rela->r_offset),
						     .symbol = (uint32_t)ELF64_R_SYM(info)};
	return r;
}

/* An unreadable part ends the table. 0 or -ENOMEM. */
static int load_relas(struct plt *plt, const char *section_name)
{
	_cleanup_(freep) Elf64_Rela *step = calloc(PLT_STEP, sizeof(*step));
	struct elffile_section s;
	uint64_t n;
	int r = 0;

	if (!step)
		return -ENOMEM;
	if (elffile_section(plt->file, section_name, &s) || s.type != SHT_RELA ||
	    s.entsize != sizeof(Elf64_Rela))
		return 0;
	n = s.size / sizeof(Elf64_Rela);
	n = n < PLT_RELAS_MAX ? n : PLT_RELAS_MAX;
	for (uint64_t i = 0; !r && i < n; i += PLT_STEP) {
		size_t now = n - i < PLT_STEP ? (size_t)(n - i) : PLT_STEP;

		r = elffile_read(plt->file, s.off + i * sizeof(*step), step, now * sizeof(*step));
		if (!r && !elffile_spend(plt->file, RELA_COST * now))
			r = ELFFILE_ABANDONED;
		for (size_t j = 0; !r && j < now; j++)
			r = add_slot(plt, &step[j]);
	}
	return r == -ENOMEM ? r : 0;
}

static int compare_slots(const void *a, const void *b)
{
	const struct slot *x = a, *y = b;

	if (x->vaddr != y->vaddr)
		return x->vaddr < y->vaddr ? -1 : 1;
	return x->symbol < y->symbol ? -1 : x->symbol > y->symbol;
}

int plt_open(const struct elffile *file, struct plt **ret)
{
	static const char *const stubs[] = {".plt", ".plt.sec", ".plt.got"};
	_cleanup_(plt_freep) struct plt *plt = calloc(1, sizeof(*plt));
	int r;

	if (!plt)
		return -ENOMEM;
	plt->file = file;
	for (size_t i = 0; i < array_size(stubs); i++)
		if (elffile_section(file, stubs[i], &plt->stubs[plt->n_stubs]) == 0)
			plt->n_stubs++;
	if (!plt->n_stubs || elffile_section(file, ".dynsym", &plt->symbols) ||
	    plt->symbols.entsize != sizeof(Elf64_Sym) ||
	    elffile_section_at(file, plt->symbols.link, &plt->strings))
		return PLT_ABSENT;
	r = load_relas(plt, ".rela.plt");
	if (!r)
		r = load_relas(plt, ".rela.dyn");
	if (r)
		return r;
	if (!plt->n)
		return PLT_ABSENT;
	qsort(plt->slots, plt->n, sizeof(*plt->slots), compare_slots);
	*ret = take_ptr(plt);
	return 0;
}

void plt_free(struct plt *plt)
{
	if (plt)
		free(plt->slots);
	free(plt);
}

size_t plt_bytes(const struct plt *plt)
{
	return sizeof(*plt) + plt->cap * sizeof(*plt->slots);
}

/* ---------------------------------------------------------------- stubs */

static uint32_t word_at(const uint8_t *bytes)
{
	uint32_t word;

	memcpy(&word, bytes, sizeof(word));
	return le32toh(word);
}

/* "jmp *DISTANCE(%rip)", perhaps behind an endbr64. */
static bool slot_x86(const uint8_t *stub, size_t n, uint64_t vaddr, uint64_t *ret)
{
	for (size_t i = 0; i + 6 <= n; i++) {
		if (stub[i] != 0xff || stub[i + 1] != 0x25)
			continue;
		*ret = vaddr + i + 6 + (uint64_t)(int64_t)(int32_t)word_at(stub + i + 2);
		return true;
	}
	return false;
}

/* "adrp x16, PAGE" and "ldr x17, [x16, #OFFSET]", perhaps behind a "bti c". */
static bool slot_arm64(const uint8_t *stub, size_t n, uint64_t vaddr, uint64_t *ret)
{
	for (size_t i = 0; i + 8 <= n; i += 4) {
		uint32_t adrp = word_at(stub + i), ldr = word_at(stub + i + 4);
		uint64_t page = (adrp >> 5 & 0x7ffff) << 2 | (adrp >> 29 & 3);

		if ((adrp & 0x9f00001f) != 0x90000010 || (ldr & 0xffc003ff) != 0xf9400211)
			continue;
		page = (page ^ 1u << 20) - (1u << 20); /* 21 bits with a sign */
		*ret = ((vaddr + i) & ~(uint64_t)0xfff) + (page << 12) + 8ull * (ldr >> 10 & 0xfff);
		return true;
	}
	return false;
}

/* The begin of the stub around @vaddr. */
static bool find_stub(const struct plt *plt, uint64_t vaddr, uint64_t *ret_off, uint64_t *ret_vaddr,
		      size_t *ret_n)
{
	for (size_t i = 0; i < plt->n_stubs; i++) {
		const struct elffile_section *s = &plt->stubs[i];
		uint64_t size = s->entsize == 8 ? 8 : PLT_STUB_MAX, at = vaddr - s->vaddr;

		if (at >= s->size)
			continue;
		if (elffile_machine(plt->file) == EM_AARCH64 && at >= 32)
			at = 32 + (at - 32) / size * size; /* the first stub has twice the size */
		else
			at = at / size * size;
		*ret_off = s->off + at;
		*ret_vaddr = s->vaddr + at;
		*ret_n = (size_t)(s->size - at < size ? s->size - at : size);
		return true;
	}
	return false;
}

static const struct slot *find_slot(const struct plt *plt, uint64_t vaddr)
{
	size_t low = 0, high = plt->n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (plt->slots[mid].vaddr < vaddr)
			low = mid + 1;
		else
			high = mid;
	}
	return low < plt->n && plt->slots[low].vaddr == vaddr ? &plt->slots[low] : NULL;
}

static bool read_name(const struct plt *plt, uint32_t symbol, char name[PLT_NAME_MAX])
{
	Elf64_Sym sym;

	if (symbol >= plt->symbols.size / sizeof(sym) ||
	    elffile_read(plt->file, plt->symbols.off + symbol * sizeof(sym), &sym, sizeof(sym)))
		return false;
	return elffile_read_string(plt->file, &plt->strings, le32toh(sym.st_name), name,
				   PLT_NAME_MAX);
}

int plt_find(const struct plt *plt, uint64_t vaddr, char name[PLT_NAME_MAX])
{
	bool is_arm64 = elffile_machine(plt->file) == EM_AARCH64;
	uint64_t off, start, slot_vaddr;
	uint8_t stub[PLT_STUB_MAX];
	const struct slot *slot;
	size_t n;

	if (!find_stub(plt, vaddr, &off, &start, &n) || elffile_read(plt->file, off, stub, n))
		return PLT_NOT_FOUND;
	if (!(is_arm64 ? slot_arm64 : slot_x86)(stub, n, start, &slot_vaddr))
		return PLT_NOT_FOUND;
	slot = find_slot(plt, slot_vaddr);
	return slot && read_name(plt, slot->symbol, name) ? 0 : PLT_NOT_FOUND;
}
