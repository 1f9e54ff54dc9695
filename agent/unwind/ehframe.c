// SPDX-License-Identifier: Apache-2.0
/*
 * The section is read front to back with pread(), a quarter of a megabyte at a time. The linker's
 * sorted index, .eh_frame_hdr, would give the functions in the order of their addresses. But the
 * file has this order already with few exceptions, and rows.c sorts those. Reading by the index
 * would need the whole section in memory or a read for each function. The index only serves to find
 * .eh_frame in files without section headers. There the end is unknown and a zero ends the list.
 * Otherwise zeros are padding, left by linkers between entries.
 *
 * CIEs are parsed at their first use and kept by offset in a small table without collision lists:
 * files have one to a few dozens. An FDE with a CIE outside the current piece needs a separate
 * read, so CIEs have a small ceiling.
 */
#include "unwind/ehframe.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "elf/elfinflate.h"
#include "unwind/cfi.h"
#include "unwind/ehentry.h"
#include "unwind/ehindex.h"

/* Bytes of a read, and so the maximum of an FDE: the largest seen have 40 KiB. Larger entries are
 * skipped as EHFRAME_SKIP_TOO_LARGE. Reached: the function has no rows: `too_large`. */
#define EHFRAME_ENTRY_MAX     ((size_t)256 << 10)
/* Uncompressed bytes of a compressed .debug_frame; a Go program of 40 MB has 2 MiB. Above it, and
 * for another method than zlib, EHFRAME_SKIP_COMPRESSED. Reached: the section has no rows:
 * `compressed`. */
#define EHFRAME_INFLATED_MAX  ((size_t)32 << 20)
/* Work for one file, in bytes of its sections. In addition each entry costs EHFRAME_ENTRY_COST, and
 * each read of a CIE costs EHFRAME_CIE_COST and EHFRAME_CIE_BYTE_COST for its bytes. Any container
 * can map a file that claims a terabyte of entries, or whose functions alternate between CIEs that
 * evict each other. The largest seen needs 10 MiB, for 107,000 functions. The rest is skipped, as
 * one EHFRAME_SKIP_TOO_LARGE. Reached: the rest has no rows: `too_large`. */
#define EHFRAME_WORK_MAX      ((uint64_t)256 << 20)
#define EHFRAME_ENTRY_COST    32
#define EHFRAME_CIE_COST      256
#define EHFRAME_CIE_BYTE_COST 16
#define EHFRAME_CIE_USUAL     32 /* bytes of a CIE; with a personality routine some 24 */
/* Bytes of a read for a single function: most have some 50. */
#define FUNCTION_PIECE	      ((size_t)1 << 10)
/* Bytes of .eh_frame for a row or the end of a range: from 4.7 (Python) to 6 (libLLVM). */
#define ROW_BYTES	      5
/* CIEs kept. A power of two. */
#define CIE_SLOTS	      128

#define NO_CIE UINT64_MAX /* as an offset */

struct kept_cie {
	uint64_t off;
	struct ehcie cie;
};

struct reader {
	const struct elffile *file;
	bool is_eh; /* or .debug_frame */
	bool sized; /* the end is known */
	uint64_t off;
	uint64_t size;
	uint64_t vaddr;
	enum cfi_machine machine;
	uint64_t text_start;
	const struct described *described; /* or NULL: functions inside are left out */
	struct rows *rows;
	struct ehframe_stats *stats;
	uint64_t work; /* left of EHFRAME_WORK_MAX */
	size_t piece;  /* bytes of a read, at most EHFRAME_ENTRY_MAX */

	const uint8_t *bytes; /* the section, if it is in memory */
	uint8_t *buf; /* EHFRAME_ENTRY_MAX bytes; [buf_pos, buf_pos + buf_n) of the section */
	uint64_t buf_pos;
	size_t buf_n;
	struct kept_cie cies[CIE_SLOTS];
};

static void readerp_free(struct reader **r)
{
	if (*r)
		free((*r)->buf);
	free(*r);
}

static void count_skip(struct reader *r, unsigned int skip)
{
	r->stats->skipped[skip]++;
}

/* Takes @bytes from the budget. False if the budget is too small; it is then empty. */
static bool spend(struct reader *r, uint64_t bytes)
{
	bool enough = r->work >= bytes;

	r->work = enough ? r->work - bytes : 0;
	return enough;
}

/* ---------------------------------------------------------------- bytes of the section */

/* A cursor on [@pos, @pos + @n), inside the section and at most EHFRAME_ENTRY_MAX. */
static int window(struct reader *r, uint64_t pos, size_t n, struct cursor *ret)
{
	uint64_t left = r->size - pos;
	int err;

	if (r->bytes) {
		cursor_init(ret, r->bytes + pos, n);
		return 0;
	}
	if (pos < r->buf_pos || pos + n > r->buf_pos + r->buf_n) {
		size_t want = n > r->piece ? n : r->piece;

		want = left < want ? (size_t)left : want;
		r->buf_n = 0;
		err = elffile_read(r->file, r->off + pos, r->buf, want);
		if (err)
			return err;
		r->buf_pos = pos;
		r->buf_n = want;
	}
	cursor_init(ret, r->buf + (pos - r->buf_pos), n);
	return 0;
}

/* The same for a distant position: @buf has room for the bytes. */
static int window_aside(struct reader *r, uint64_t pos, size_t n, uint8_t *buf, struct cursor *ret)
{
	int err;

	if (r->bytes || (pos >= r->buf_pos && pos + n <= r->buf_pos + r->buf_n))
		return window(r, pos, n, ret);
	err = elffile_read(r->file, r->off + pos, buf, n);
	if (!err)
		cursor_init(ret, buf, n);
	return err;
}

/* ---------------------------------------------------------------- CIEs */

/* 0, or a read error. */
static int load_cie(struct reader *r, uint64_t off, struct ehcie *cie)
{
	size_t n = r->size - off < EHFRAME_CIE_MAX ? (size_t)(r->size - off) : EHFRAME_CIE_MAX;
	uint8_t bytes[EHFRAME_CIE_MAX];
	struct cursor c, body;
	struct ehentry e;
	int err;

	cie->skip = EHFRAME_SKIP_CIE_POINTER;
	(void)spend(r, EHFRAME_CIE_COST);
	err = window_aside(r, off, n, bytes, &c);
	if (err || !ehentry_parse(&c, r->size, off, &e) || e.end == e.id_pos ||
	    !ehentry_is_cie(&e, r->is_eh))
		return err;
	cie->skip = EHFRAME_SKIP_TOO_LARGE;
	if (cursor_sub(&c, e.end - off - cursor_pos(&c), &body)) {
		(void)spend(r, EHFRAME_CIE_BYTE_COST * (uint64_t)cursor_left(&body));
		ehcie_parse(&body, r->machine, cie);
	}
	return 0;
}

/* *@ret is NULL if the FDE is skipped, which is counted. */
static int find_cie(struct reader *r, const struct ehentry *fde, const struct ehcie **ret)
{
	struct kept_cie *kept;
	uint64_t off;
	int err = 0;

	*ret = NULL;
	if (!ehentry_cie(fde, r->is_eh, r->size, &off)) {
		count_skip(r, EHFRAME_SKIP_CIE_POINTER);
		return 0;
	}
	kept = &r->cies[(off ^ off >> 7 ^ off >> 14) / 4 % CIE_SLOTS];
	if (kept->off != off) {
		kept->off = off;
		err = load_cie(r, off, &kept->cie);
		if (err)
			kept->off = NO_CIE;
	}
	if (!err && kept->cie.skip >= 0)
		count_skip(r, (unsigned int)kept->cie.skip);
	else if (!err)
		*ret = &kept->cie;
	return err;
}

/* ---------------------------------------------------------------- FDEs */

static int add_rows(struct reader *r, const struct ehcie *cie, struct cursor *c, uint64_t vaddr,
		    const struct ehrange *range)
{
	enum rows_source source = r->is_eh ? ROWS_EH_FRAME : ROWS_DEBUG_FRAME;
	uint64_t start = range->start;
	struct cursor program;
	int err;

	/* The walker looks up a signal's return frame by the byte before its address, like any
	 * caller. But there was no call, so that byte may be before the function. */
	if (cie->common.signal && start > r->text_start)
		start--;
	if (rows_begin(r->rows, source, start, range->end)) {
		count_skip(r, EHFRAME_SKIP_OUTSIDE);
		return 0;
	}
	vaddr += cursor_pos(c);
	cursor_init(&program, c->pos, cursor_left(c));
	err = cfi_run(&cie->common, program, vaddr, start, r->rows);
	if (!err)
		err = rows_end(r->rows);
	else
		rows_drop(r->rows);
	if (err == CFI_FULL)
		return -ENOSPC;
	if (err < 0)
		return err;
	if (err)
		count_skip(r, EHFRAME_SKIP_CFI + (unsigned int)err);
	else
		r->stats->fdes++;
	return 0;
}

static int read_fde(struct reader *r, const struct ehentry *e)
{
	uint64_t body = ehentry_body(e);
	const struct ehcie *cie;
	struct ehrange range;
	struct cursor c;
	int skip, err = find_cie(r, e, &cie);

	if (err || !cie)
		return err;
	err = window(r, e->pos, (size_t)(e->end - e->pos), &c);
	if (err || !cursor_skip(&c, body - e->pos))
		return err;
	skip = ehfde_parse(cie, r->vaddr + body, &c, &range);
	if (skip >= 0) {
		count_skip(r, (unsigned int)skip);
		return 0;
	}
	if (r->described && described_has(r->described, range.start, range.end))
		return 0;
	return add_rows(r, cie, &c, r->vaddr + e->pos, &range);
}

/* ---------------------------------------------------------------- sections */

/* The cost of reading or skipping an entry. */
static uint64_t cost_of(const struct ehentry *e)
{
	uint64_t n = e->end - e->pos;

	return EHFRAME_ENTRY_COST + (n < EHFRAME_ENTRY_MAX ? n : EHFRAME_ENTRY_MAX);
}

static int read_entries(struct reader *r)
{
	uint64_t pos = 0;
	int err = 0;

	/* linkers leave less than a length at the end for alignment */
	while (!err && r->size - pos >= 4) {
		uint64_t n = r->size - pos < EHENTRY_HEAD_MAX ? r->size - pos : EHENTRY_HEAD_MAX;
		struct cursor c;
		struct ehentry e;

		err = window(r, pos, (size_t)n, &c);
		if (err)
			return err;
		if (!ehentry_parse(&c, r->size, pos, &e)) {
			count_skip(r, EHFRAME_SKIP_TRUNCATED);
			return 0;
		}
		if (e.end == e.id_pos && !r->sized)
			return 0;
		if (!spend(r, cost_of(&e))) {
			count_skip(r, EHFRAME_SKIP_TOO_LARGE);
			return 0;
		}
		if (e.end != e.id_pos && !ehentry_is_cie(&e, r->is_eh)) {
			if (e.end - e.pos > EHFRAME_ENTRY_MAX)
				count_skip(r, EHFRAME_SKIP_TOO_LARGE);
			else
				err = read_fde(r, &e);
		}
		pos = e.end;
	}
	return err;
}

static void begin_section(struct reader *r, bool is_eh, bool sized)
{
	r->is_eh = is_eh;
	r->sized = sized;
	r->buf_n = 0;
	for (size_t i = 0; i < CIE_SLOTS; i++)
		r->cies[i].off = NO_CIE;
}

static int read_section(struct reader *r, const struct elffile_section *section, bool is_eh,
			bool sized)
{
	uint64_t file_size = elffile_size(r->file);
	int err;

	begin_section(r, is_eh, sized);
	r->bytes = NULL;
	r->vaddr = section->vaddr;
	/* a false header costs its section; the part in the file is read */
	r->off = section->off < file_size ? section->off : file_size;
	r->size = section->size;
	if (r->size > file_size - r->off) {
		r->size = file_size - r->off;
		count_skip(r, EHFRAME_SKIP_TRUNCATED);
	}
	r->stats->bytes += r->size;
	err = is_eh ? rows_reserve(r->rows, (size_t)(r->size / ROW_BYTES)) : 0;
	return err ? err : read_entries(r);
}

/* .debug_frame is for debuggers and is not mapped, so it may be compressed. */
static int read_compressed(struct reader *r, const struct elffile_section *section)
{
	_cleanup_(freep) void *bytes = NULL;
	size_t n;
	int err = elfinflate(r->file, section, EHFRAME_INFLATED_MAX, &bytes, &n);

	if (err > 0)
		count_skip(r, EHFRAME_SKIP_COMPRESSED);
	if (err)
		return err < 0 ? err : 0;
	begin_section(r, false, true);
	r->bytes = bytes;
	r->vaddr = section->vaddr;
	r->size = n;
	r->stats->bytes += n;
	err = read_entries(r);
	r->bytes = NULL;
	return err;
}

static int read_eh_frame(struct reader *r)
{
	struct elffile_section section;
	bool sized;

	if (eh_frame_section(r->file, &section, &sized))
		return 0;
	return read_section(r, &section, true, sized);
}

static bool debug_frame_section(const struct elffile *file, struct elffile_section *ret)
{
	return !elffile_section(file, ".debug_frame", ret) && ret->type != SHT_NOBITS;
}

static int read_debug_frame(struct reader *r)
{
	struct elffile_section section;

	if (!debug_frame_section(r->file, &section))
		return 0;
	if (section.flags & SHF_COMPRESSED)
		return read_compressed(r, &section);
	return read_section(r, &section, false, true);
}

int ehframe_text(const struct elffile *file, uint64_t *ret_start, uint64_t *ret_end)
{
	const struct elffile_segment *segments;
	uint64_t start = UINT64_MAX, end = 0;
	size_t n;

	segments = elffile_segments(file, &n);
	for (size_t i = 0; i < n; i++) {
		const struct elffile_segment *s = &segments[i];

		if (!(s->flags & PF_X) || !s->memsz || s->vaddr + s->memsz < s->vaddr)
			continue;
		start = s->vaddr < start ? s->vaddr : start;
		end = s->vaddr + s->memsz > end ? s->vaddr + s->memsz : end;
	}
	if (!end)
		return ELFFILE_ABSENT;
	*ret_start = start;
	*ret_end = end;
	return 0;
}

static int reader_new(const struct elffile *file, struct rows *rows, struct ehframe_stats *stats,
		      struct reader **ret)
{
	_cleanup_(readerp_free) struct reader *r = NULL;
	const uint16_t type = elffile_type(file);
	enum cfi_machine machine;

	if (ehentry_machine(file, &machine) || (type != ET_EXEC && type != ET_DYN))
		return ELFFILE_UNSUPPORTED;
	r = calloc(1, sizeof(*r));
	if (r)
		r->buf = malloc(EHFRAME_ENTRY_MAX);
	if (!r || !r->buf)
		return -ENOMEM;
	r->file = file;
	r->machine = machine;
	r->rows = rows;
	r->stats = stats;
	r->work = EHFRAME_WORK_MAX;
	r->piece = EHFRAME_ENTRY_MAX;
	*ret = take_ptr(r);
	return 0;
}

int ehframe_add(const struct elffile *file, struct rows *rows, struct ehframe_stats *stats)
{
	_cleanup_(readerp_free) struct reader *r = NULL;
	uint64_t text_end;
	int err = reader_new(file, rows, stats, &r);

	if (err)
		return err;
	return ehframe_text(file, &r->text_start, &text_end) ? 0 : read_eh_frame(r);
}

bool ehframe_has_debug(const struct elffile *file)
{
	struct elffile_section section;

	return debug_frame_section(file, &section);
}

int ehframe_add_debug(const struct elffile *file, const struct described *described,
		      struct rows *rows, struct ehframe_stats *stats)
{
	_cleanup_(readerp_free) struct reader *r = NULL;
	uint64_t text_end;
	int err = reader_new(file, rows, stats, &r);

	if (err)
		return err;
	r->described = described;
	return ehframe_text(file, &r->text_start, &text_end) ? 0 : read_debug_frame(r);
}

/* ---------------------------------------------------------------- single functions */

/* The FDE at @pos, which the index has found. */
static int read_function(struct reader *r, uint64_t pos)
{
	const uint64_t left = r->size - pos;
	struct cursor c;
	struct ehentry e;
	int err = window(r, pos, left < EHENTRY_HEAD_MAX ? (size_t)left : EHENTRY_HEAD_MAX, &c);

	if (err || !ehentry_parse(&c, r->size, pos, &e) || e.end == e.id_pos)
		return err;
	if (ehentry_is_cie(&e, true))
		return 0;
	if (e.end - e.pos > EHFRAME_ENTRY_MAX || !spend(r, cost_of(&e))) {
		count_skip(r, EHFRAME_SKIP_TOO_LARGE);
		return 0;
	}
	return read_fde(r, &e);
}

static int read_functions(struct reader *r, struct ehindex *index, const uint64_t *vaddrs, size_t n)
{
	uint64_t pos, last = UINT64_MAX;

	for (size_t i = 0; i < n; i++) {
		int err = ehindex_fde(index, vaddrs[i], &pos);

		if (!err && pos != last && pos < r->size)
			err = read_function(r, pos);
		last = err ? last : pos;
		if (err && err != ELFFILE_ABSENT)
			return err;
	}
	return 0;
}

/* Entries do not overlap, so that each is read once: a false file has FDEs inside of FDEs. */
static uint64_t functions_work(uint64_t section_size, size_t n)
{
	const uint64_t each = EHFRAME_ENTRY_COST + EHFRAME_CIE_COST +
			      (uint64_t)EHFRAME_CIE_BYTE_COST * EHFRAME_CIE_USUAL;

	if (section_size > EHFRAME_WORK_MAX || n > EHFRAME_WORK_MAX / each)
		return EHFRAME_WORK_MAX;
	section_size += n * each;
	return section_size < EHFRAME_WORK_MAX ? section_size : EHFRAME_WORK_MAX;
}

int ehframe_add_functions(const struct elffile *file, const uint64_t *vaddrs, size_t n,
			  struct rows *rows, struct ehframe_stats *stats)
{
	_cleanup_(readerp_free) struct reader *r = NULL;
	struct elffile_section section;
	struct elffile_segment hdr;
	struct ehindex *index = NULL;
	uint64_t text_end;
	bool sized;
	int err = reader_new(file, rows, stats, &r);

	/* else all entries would be read */
	if (!err)
		err = elffile_eh_frame_hdr(file, &hdr);
	if (!err)
		err = eh_frame_section(file, &section, &sized);
	if (!err)
		err = ehframe_text(file, &r->text_start, &text_end);
	if (!err)
		err = ehindex_open(file, &index);
	if (err)
		return err;
	begin_section(r, true, sized);
	r->piece = FUNCTION_PIECE;
	r->vaddr = section.vaddr;
	r->off = section.off;
	r->size = section.size;
	r->work = functions_work(section.size, n);
	err = ehindex_is_linkers(index) ? read_functions(r, index, vaddrs, n) : ELFFILE_ABSENT;
	ehindex_free(index);
	return err;
}
