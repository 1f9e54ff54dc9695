// SPDX-License-Identifier: Apache-2.0
/*
 * The index is an array of pairs, the start of a function and the place of its FDE, both relative
 * to the index. A search halves the array, so a false order gives wrong neighbours, but the FDE's
 * own range decides. Pairs and entries are read through a small cache of pages: functions of one
 * sampled program are near each other.
 *
 * The linker makes no index for a static C program. ehindex_open() then reads all entries and makes
 * the array itself.
 */
#include "unwind/ehindex.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/vec.h"
#include "elf/blockcache.h"

/* Encodings of the count and of the table, as all linkers write them. */
#define INDEX_COUNT_U32	   0x03
#define INDEX_RELATIVE_S32 0x3b
#define INDEX_VERSION	   1
#define PAIR_BYTES	   8

/* FDEs of a file without an index, 16 bytes each: 4 MiB. A static C program has some 2,000.
 * Reached: the other functions have no known start. */
#define EHINDEX_OWN_MAX ((size_t)1 << 18)

struct pair {
	uint64_t start;
	uint64_t fde;
};

struct ehindex {
	struct blockcache blocks;
	enum cfi_machine machine;
	uint64_t vaddr;	    /* of the index */
	uint64_t pairs_off; /* of the array, in the file */
	uint64_t n;
	struct pair *own; /* for a file without an index; else NULL */
	size_t own_cap;
	struct elffile_section section; /* .eh_frame */
	/* Of the entry read last: neighbours have the same CIE, often the same function. */
	struct ehcie cie;
	uint64_t cie_pos; /* UINT64_MAX: none */
	struct ehrange range;
	struct pair pair; /* of @range; range.end 0: none */
};

DEFINE_CLEANUP(struct ehindex *, ehindex_freep, ehindex_free);

static int read_pair(struct ehindex *x, uint64_t i, struct pair *ret)
{
	int32_t words[2];
	int r;

	if (x->own) {
		*ret = x->own[i];
		return 0;
	}
	r = blockcache_read(&x->blocks, x->pairs_off + i * PAIR_BYTES, words, sizeof(words));
	ret->start = x->vaddr + (uint64_t)(int64_t)words[0];
	ret->fde = x->vaddr + (uint64_t)(int64_t)words[1];
	return r;
}

/* The header: version, encodings of three numbers, the address of .eh_frame, the count. */
static int read_header(struct ehindex *x, const struct elffile *file)
{
	struct elffile_segment hdr;
	uint8_t bytes[12], version, encodings[3];
	uint64_t address, room;
	uint32_t n;
	struct cursor c;
	int r = elffile_eh_frame_hdr(file, &hdr);

	if (!r && hdr.filesz < sizeof(bytes))
		r = ELFFILE_ABSENT;
	if (!r)
		r = elffile_read(file, hdr.off, bytes, sizeof(bytes));
	if (r)
		return r;
	cursor_init(&c, bytes, sizeof(bytes));
	if (!cursor_u8(&c, &version) || !cursor_u8(&c, &encodings[0]) ||
	    !cursor_u8(&c, &encodings[1]) || !cursor_u8(&c, &encodings[2]) ||
	    version != INDEX_VERSION || encodings[1] != INDEX_COUNT_U32 ||
	    encodings[2] != INDEX_RELATIVE_S32 ||
	    !cfi_address(&c, encodings[0], hdr.vaddr + cursor_pos(&c), &address) ||
	    !cursor_u32(&c, &n))
		return ELFFILE_ABSENT;
	x->vaddr = hdr.vaddr;
	x->pairs_off = hdr.off + cursor_pos(&c);
	room = (hdr.filesz - cursor_pos(&c)) / PAIR_BYTES;
	x->n = n < room ? n : room;
	return x->n ? 0 : ELFFILE_ABSENT;
}

/* The bytes at @pos of .eh_frame, at most @n. */
static int read_entry(struct ehindex *x, uint64_t pos, uint8_t *buf, size_t n, struct cursor *ret)
{
	uint64_t left = x->section.size - pos;
	size_t now = left < n ? (size_t)left : n;
	int r = blockcache_read(&x->blocks, x->section.off + pos, buf, now);

	if (!r)
		cursor_init(ret, buf, now);
	return r;
}

/* Into @x->cie. */
static int read_cie(struct ehindex *x, uint64_t pos)
{
	uint8_t bytes[EHFRAME_CIE_MAX];
	struct cursor c, body;
	struct ehentry e;
	int r;

	if (pos == x->cie_pos)
		return 0;
	x->cie_pos = UINT64_MAX;
	r = read_entry(x, pos, bytes, sizeof(bytes), &c);
	if (r)
		return r;
	if (!ehentry_parse(&c, x->section.size, pos, &e) || e.end == e.id_pos ||
	    !ehentry_is_cie(&e, true) || !cursor_sub(&c, e.end - pos - cursor_pos(&c), &body))
		return ELFFILE_ABSENT;
	ehcie_parse(&body, x->machine, &x->cie);
	if (x->cie.skip >= 0)
		return ELFFILE_ABSENT;
	x->cie.has_augmentation_length = false; /* an FDE's addresses are before its augmentation */
	x->cie_pos = pos;
	return 0;
}

static int read_fde(struct ehindex *x, uint64_t fde_vaddr, struct ehrange *ret)
{
	/* the head, two addresses, and the length of an empty augmentation */
	uint8_t bytes[EHENTRY_HEAD_MAX + 2 * sizeof(uint64_t) + 1];
	uint64_t pos = fde_vaddr - x->section.vaddr, cie_pos;
	struct ehentry e;
	struct cursor c;
	int r;

	if (pos >= x->section.size)
		return ELFFILE_ABSENT;
	r = read_entry(x, pos, bytes, sizeof(bytes), &c);
	if (r)
		return r;
	if (!ehentry_parse(&c, x->section.size, pos, &e) || e.end == e.id_pos ||
	    ehentry_is_cie(&e, true) || !ehentry_cie(&e, true, x->section.size, &cie_pos))
		return ELFFILE_ABSENT;
	r = read_cie(x, cie_pos);
	if (r)
		return r;
	r = ehfde_parse(&x->cie, x->section.vaddr + ehentry_body(&e), &c, ret);
	return r < 0 ? 0 : ELFFILE_ABSENT;
}

/* ---------------------------------------------------------------- an index of our own */

/* 0, VEC_FULL, -ENOMEM, or a failed read. A malformed FDE is left out. */
static int add_own(struct ehindex *x, uint64_t pos)
{
	const uint64_t fde = x->section.vaddr + pos;
	struct ehrange range;
	int r = read_fde(x, fde, &range);

	if (r == ELFFILE_ABSENT || (!r && range.start >= range.end))
		return 0;
	if (!r)
		r = vec_grow(&x->own, &x->own_cap, x->n + 1, sizeof(*x->own), EHINDEX_OWN_MAX);
	if (!r)
		x->own[x->n++] = (struct pair){range.start, fde};
	return r;
}

static int by_start(const void *a, const void *b)
{
	const struct pair *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* Only a section's header tells the end: each object file's part ends with a zero. */
static int make_own(struct ehindex *x)
{
	uint64_t pos = 0;
	int r = 0;

	while (!r && pos < x->section.size) {
		uint8_t head[EHENTRY_HEAD_MAX];
		struct ehentry e;
		struct cursor c;

		r = read_entry(x, pos, head, sizeof(head), &c);
		if (r || !ehentry_parse(&c, x->section.size, pos, &e))
			break;
		if (e.end != e.id_pos && !ehentry_is_cie(&e, true))
			r = add_own(x, pos);
		pos = e.end;
	}
	if (r < 0)
		return r;
	if (x->n)
		qsort(x->own, x->n, sizeof(*x->own), by_start);
	return x->n ? 0 : ELFFILE_ABSENT;
}

/* ---------------------------------------------------------------- the index */

int ehindex_open(const struct elffile *file, struct ehindex **ret)
{
	_cleanup_(ehindex_freep) struct ehindex *x = calloc(1, sizeof(*x));
	bool sized;
	int r;

	if (!x)
		return -ENOMEM;
	blockcache_init(&x->blocks, file);
	x->cie_pos = UINT64_MAX;
	r = ehentry_machine(file, &x->machine);
	if (!r)
		r = eh_frame_section(file, &x->section, &sized);
	if (r)
		return r;
	r = read_header(x, file);
	if (r == ELFFILE_ABSENT && sized)
		r = make_own(x);
	if (!r)
		*ret = take_ptr(x);
	return r;
}

void ehindex_free(struct ehindex *x)
{
	if (!x)
		return;
	blockcache_deinit(&x->blocks);
	free(x->own);
	free(x);
}

bool ehindex_is_linkers(const struct ehindex *x)
{
	return !x->own;
}

size_t ehindex_bytes(const struct ehindex *x)
{
	return sizeof(*x) + x->blocks.n_bytes + x->own_cap * sizeof(*x->own);
}

void ehindex_drop_blocks(struct ehindex *x)
{
	blockcache_clear(&x->blocks);
}

/* The last pair that starts at or before @vaddr. */
static int last_pair(struct ehindex *x, uint64_t vaddr, struct pair *ret)
{
	uint64_t low = 0, high = x->n;
	struct pair pair;
	int r = 0;

	while (!r && low < high) {
		uint64_t mid = low + (high - low) / 2;

		r = read_pair(x, mid, &pair);
		if (!r && pair.start <= vaddr)
			low = mid + 1;
		else
			high = mid;
	}
	if (!r && !low)
		r = ELFFILE_ABSENT;
	return r ? r : read_pair(x, low - 1, ret);
}

int ehindex_start(struct ehindex *x, uint64_t vaddr, uint64_t *ret)
{
	struct pair pair;
	int r = last_pair(x, vaddr, &pair);

	if (!r)
		*ret = pair.start;
	return r <= 0 ? r : ELFFILE_ABSENT;
}

/* Into @x->range and @x->pair. */
static int find(struct ehindex *x, uint64_t vaddr)
{
	int r;

	if (vaddr >= x->range.start && vaddr < x->range.end)
		return 0;
	x->range.end = 0;
	r = last_pair(x, vaddr, &x->pair);
	if (!r)
		r = read_fde(x, x->pair.fde, &x->range);
	if (!r && (vaddr < x->range.start || vaddr >= x->range.end))
		r = ELFFILE_ABSENT;
	if (r)
		x->range.end = 0;
	return r < 0 || !r ? r : ELFFILE_ABSENT;
}

int ehindex_find(struct ehindex *x, uint64_t vaddr, struct ehrange *ret)
{
	int r = find(x, vaddr);

	if (!r)
		*ret = x->range;
	return r;
}

int ehindex_fde(struct ehindex *x, uint64_t vaddr, uint64_t *ret_pos)
{
	int r = find(x, vaddr);

	if (!r)
		*ret_pos = x->pair.fde - x->section.vaddr;
	return r;
}
