// SPDX-License-Identifier: Apache-2.0
/*
 * .eh_frame and .debug_frame are sequences of entries with a leading length. A CIE has data common
 * to many functions. An FDE describes a function or a part of one: its CIE, its addresses and a
 * program of call frame instructions (cfi.c).
 *
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
 *
 * Supported: versions 1, 3 and 4, 32- and 64-bit lengths, the augmentations of compilers (z with R,
 * P, L, S, B, G, and the "eh" of old GCCs). Unsupported: relocatable files (their addresses are not
 * final), and addresses relative to anything but themselves.
 *
 * Specification: LSB Core 5.0, "DWARF Extensions"; DWARF 5 section 6.4.1. For open questions,
 * binutils and libgcc are the reference.
 */
#include "unwind/ehframe.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "elf/elfinflate.h"

/* Bytes of a read, and so the maximum of an FDE: the largest seen have 40 KiB. Larger entries are
 * skipped as EHFRAME_SKIP_TOO_LARGE. Reached: the function has no rows: `too_large`. */
#define EHFRAME_ENTRY_MAX     ((size_t)256 << 10)
/* Bytes of a CIE; usual CIEs have some 24. FDEs of a larger CIE are skipped as
 * EHFRAME_SKIP_TOO_LARGE. Reached: they have no rows: `too_large`. */
#define EHFRAME_CIE_MAX	      1024
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
/* CIEs kept. A power of two. */
#define CIE_SLOTS	      128

#define LENGTH_64	0xffffffffu /* a length of 64 bits follows */
#define LENGTH_RESERVED 0xfffffff0u
#define NO_CIE		UINT64_MAX /* as an offset */

#define PE_OMIT 0xff

struct cie {
	uint64_t off;
	int skip; /* -1, or the reason to skip its FDEs */
	bool has_augmentation_length;
	uint8_t encoding;
	struct cfi_common common;
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
	struct rows *rows;
	struct ehframe_stats *stats;
	uint64_t work; /* left of EHFRAME_WORK_MAX */

	const uint8_t *bytes; /* the section, if it is in memory */
	uint8_t *buf; /* EHFRAME_ENTRY_MAX bytes; [buf_pos, buf_pos + buf_n) of the section */
	uint64_t buf_pos;
	size_t buf_n;
	struct cie cies[CIE_SLOTS];
};

/* The head common to all entries. */
struct entry {
	uint64_t pos; /* position of its length in the section */
	uint64_t end; /* of the entry */
	uint64_t id_pos;
	uint64_t id;
	bool wide;
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
		size_t want = left < EHFRAME_ENTRY_MAX ? (size_t)left : EHFRAME_ENTRY_MAX;

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

/* ---------------------------------------------------------------- the head of an entry */

/* Parses an entry's head from @c at @pos; @c may end after the head. False if the head is
 * truncated or the entry leaves the section. A length of 0 is an entry without id that ends
 * after the length. */
static bool parse_head(const struct reader *r, struct cursor *c, uint64_t pos, struct entry *ret)
{
	uint32_t u32 = 0;
	uint64_t length, left;

	*ret = (struct entry){.pos = pos};
	if (!cursor_u32(c, &u32))
		return false;
	length = u32;
	ret->wide = u32 == LENGTH_64;
	if (ret->wide && !cursor_u64(c, &length))
		return false;
	if (!ret->wide && u32 >= LENGTH_RESERVED)
		return false;
	ret->id_pos = pos + cursor_pos(c);
	left = r->size - ret->id_pos;
	if (length > left)
		return false;
	ret->end = ret->id_pos + length;
	if (!length)
		return true;
	if (ret->wide ? length < 8 : length < 4)
		return false;
	if (ret->wide)
		return cursor_u64(c, &ret->id);
	if (!cursor_u32(c, &u32))
		return false;
	ret->id = u32;
	return true;
}

static bool is_cie(const struct reader *r, const struct entry *e)
{
	if (r->is_eh)
		return e->id == 0;
	return e->id == (e->wide ? UINT64_MAX : UINT32_MAX);
}

/* ---------------------------------------------------------------- CIEs */

/* Parses the data of augmentation "z...", letter by letter; an unknown letter ends the parse. */
static bool parse_augmentation(const char *letters, struct cursor data, struct cie *cie)
{
	uint8_t encoding;
	uint64_t address;

	for (; *letters; letters++) {
		switch (*letters) {
		case 'R':
			if (!cursor_u8(&data, &cie->encoding))
				return false;
			break;
		case 'L': /* of pointers that only exceptions need */
			if (!cursor_u8(&data, &encoding))
				return false;
			break;
		case 'P': /* the handler of exceptions: only the size of its address matters */
			if (!cursor_u8(&data, &encoding))
				return false;
			if (encoding != PE_OMIT &&
			    !cfi_address(&data, encoding & 0x0f, 0, &address))
				return false;
			break;
		case 'S':
			cie->common.signal = true;
			break;
		case 'B': /* AArch64: return addresses signed with the other key */
		case 'G': /* AArch64: tagged stack */
			break;
		default:
			return true;
		}
	}
	return true;
}

/* From the augmentation string on. Returns as struct cie's skip. */
static int parse_augmented(struct cursor *c, uint8_t version, const char *letters, struct cie *cie)
{
	struct cfi_common *common = &cie->common;
	struct cursor data;
	uint64_t n;
	uint8_t u8 = 0;

	if (strcmp(letters, "eh") == 0) { /* GCC 2: an address of its exception table */
		if (!cursor_skip(c, 8))
			return EHFRAME_SKIP_TRUNCATED;
		letters += 2;
	}
	if (!cursor_uleb(c, &common->code_align) || !cursor_sleb(c, &common->data_align))
		return EHFRAME_SKIP_TRUNCATED;
	if (version == 1 ? !cursor_u8(c, &u8) : !cursor_uleb(c, &common->ra_reg))
		return EHFRAME_SKIP_TRUNCATED;
	if (version == 1)
		common->ra_reg = u8;
	if (!*letters)
		return -1;
	if (*letters != 'z')
		return EHFRAME_SKIP_CIE_AUGMENTATION;
	cie->has_augmentation_length = true;
	if (!cursor_uleb(c, &n) || !cursor_sub(c, n, &data))
		return EHFRAME_SKIP_TRUNCATED;
	return parse_augmentation(letters + 1, data, cie) ? -1 : EHFRAME_SKIP_CIE_AUGMENTATION;
}

static int parse_cie(struct cursor *c, struct cie *cie)
{
	uint8_t version, address_size, segment_size;
	const char *letters;
	int skip, outcome;

	if (!cursor_u8(c, &version))
		return EHFRAME_SKIP_TRUNCATED;
	if (version != 1 && version != 3 && version != 4)
		return EHFRAME_SKIP_CIE_VERSION;
	if (!cursor_cstr(c, &letters))
		return EHFRAME_SKIP_TRUNCATED;
	if (version == 4) {
		if (!cursor_u8(c, &address_size) || !cursor_u8(c, &segment_size))
			return EHFRAME_SKIP_TRUNCATED;
		if (address_size != 8 || segment_size != 0)
			return EHFRAME_SKIP_CIE_VERSION;
	}
	skip = parse_augmented(c, version, letters, cie);
	if (skip >= 0)
		return skip;
	cie->common.pointer_encoding = cie->encoding;
	outcome = cfi_run_initial(&cie->common, *c);
	return outcome ? EHFRAME_SKIP_CFI + outcome : -1;
}

/* Loads the CIE at the offset in @cie. 0, or a read error. */
static int load_cie(struct reader *r, struct cie *cie)
{
	size_t n = r->size - cie->off < EHFRAME_CIE_MAX ? (size_t)(r->size - cie->off)
							: EHFRAME_CIE_MAX;
	uint8_t bytes[EHFRAME_CIE_MAX];
	struct cursor c, body;
	struct entry e;
	int err;

	cie->has_augmentation_length = false;
	cie->encoding = 0;
	cie->common = (struct cfi_common){.machine = r->machine};
	cie->skip = EHFRAME_SKIP_CIE_POINTER;
	(void)spend(r, EHFRAME_CIE_COST);
	err = window_aside(r, cie->off, n, bytes, &c);
	if (err || !parse_head(r, &c, cie->off, &e) || e.end == e.id_pos || !is_cie(r, &e))
		return err;
	cie->skip = EHFRAME_SKIP_TOO_LARGE;
	if (cursor_sub(&c, e.end - cie->off - cursor_pos(&c), &body)) {
		(void)spend(r, EHFRAME_CIE_BYTE_COST * (uint64_t)cursor_left(&body));
		cie->skip = parse_cie(&body, cie);
	}
	return 0;
}

static int find_cie(struct reader *r, const struct entry *fde, struct cie **ret)
{
	uint64_t off = r->is_eh ? fde->id_pos - fde->id : fde->id;
	struct cie *cie = &r->cies[(off ^ off >> 7 ^ off >> 14) / 4 % CIE_SLOTS];
	int err = 0;

	if (off >= r->size || (r->is_eh && fde->id > fde->id_pos)) {
		count_skip(r, EHFRAME_SKIP_CIE_POINTER);
		*ret = NULL;
		return 0;
	}
	if (cie->off != off) {
		cie->off = off;
		err = load_cie(r, cie);
		if (err)
			cie->off = NO_CIE;
	}
	*ret = cie;
	if (!err && cie->skip >= 0) {
		count_skip(r, (unsigned int)cie->skip);
		*ret = NULL;
	}
	return err;
}

/* ---------------------------------------------------------------- FDEs */

struct range {
	uint64_t start;
	uint64_t end;
};

/* Reads the addresses and skips the augmentation; @c is then at the program. -1, or the reason to
 * skip. */
static int parse_fde(const struct cie *cie, uint64_t vaddr, struct cursor *c, struct range *ret)
{
	uint64_t size, n;

	if (!cfi_address(c, cie->encoding, vaddr, &ret->start) ||
	    !cfi_address(c, cie->encoding & 0x0f, 0, &size))
		return EHFRAME_SKIP_ENCODING;
	if (cie->has_augmentation_length && (!cursor_uleb(c, &n) || !cursor_skip(c, n)))
		return EHFRAME_SKIP_TRUNCATED;
	/* linkers write 0 for the address of discarded code */
	if (!size || !ret->start)
		return EHFRAME_SKIP_NO_CODE;
	if (__builtin_add_overflow(ret->start, size, &ret->end))
		return EHFRAME_SKIP_OUTSIDE;
	return -1;
}

static int add_rows(struct reader *r, const struct cie *cie, struct cursor *c, uint64_t vaddr,
		    const struct range *range)
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

static int read_fde(struct reader *r, const struct entry *e)
{
	uint64_t body = e->id_pos + (e->wide ? 8 : 4);
	struct range range;
	struct cursor c;
	struct cie *cie;
	int skip, err = find_cie(r, e, &cie);

	if (err || !cie)
		return err;
	err = window(r, e->pos, (size_t)(e->end - e->pos), &c);
	if (err || !cursor_skip(&c, body - e->pos))
		return err;
	skip = parse_fde(cie, r->vaddr + body, &c, &range);
	if (skip >= 0) {
		count_skip(r, (unsigned int)skip);
		return 0;
	}
	return add_rows(r, cie, &c, r->vaddr + e->pos, &range);
}

/* ---------------------------------------------------------------- sections */

/* The cost of reading or skipping an entry. */
static uint64_t cost_of(const struct entry *e)
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
		uint64_t n = r->size - pos < 20 ? r->size - pos : 20;
		struct cursor c;
		struct entry e;

		err = window(r, pos, (size_t)n, &c);
		if (err)
			return err;
		if (!parse_head(r, &c, pos, &e)) {
			count_skip(r, EHFRAME_SKIP_TRUNCATED);
			return 0;
		}
		if (e.end == e.id_pos && !r->sized)
			return 0;
		if (!spend(r, cost_of(&e))) {
			count_skip(r, EHFRAME_SKIP_TOO_LARGE);
			return 0;
		}
		if (e.end != e.id_pos && !is_cie(r, &e)) {
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
	return read_entries(r);
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

/* Finds .eh_frame by the index's header: version 1, three encodings, the address of .eh_frame. Its
 * end is at most its segment's end. */
static int find_by_index(const struct elffile *file, struct elffile_section *ret)
{
	const struct elffile_segment *segments;
	struct elffile_segment hdr;
	uint8_t bytes[12];
	struct cursor c;
	uint64_t vaddr;
	size_t n;

	if (elffile_eh_frame_hdr(file, &hdr) || hdr.filesz < sizeof(bytes) ||
	    elffile_read(file, hdr.off, bytes, sizeof(bytes)) || bytes[0] != 1)
		return ELFFILE_ABSENT;
	cursor_init(&c, bytes, sizeof(bytes));
	if (!cursor_skip(&c, 4) || !cfi_address(&c, bytes[1], hdr.vaddr + 4, &vaddr))
		return ELFFILE_ABSENT;
	segments = elffile_segments(file, &n);
	for (size_t i = 0; i < n; i++) {
		const struct elffile_segment *s = &segments[i];

		if (vaddr < s->vaddr || vaddr - s->vaddr >= s->filesz)
			continue;
		*ret = (struct elffile_section){.vaddr = vaddr,
						.off = s->off + (vaddr - s->vaddr),
						.size = s->filesz - (vaddr - s->vaddr)};
		return 0;
	}
	return ELFFILE_ABSENT;
}

static int read_eh_frame(struct reader *r)
{
	struct elffile_section section;

	if (elffile_section(r->file, ".eh_frame", &section) == 0) {
		/* a file of debug information has the header, but no bytes */
		return section.type == SHT_NOBITS ? 0 : read_section(r, &section, true, true);
	}
	if (find_by_index(r->file, &section) == 0)
		return read_section(r, &section, true, false);
	return 0;
}

static int read_debug_frame(struct reader *r)
{
	struct elffile_section section;

	if (elffile_section(r->file, ".debug_frame", &section) || section.type == SHT_NOBITS)
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

int ehframe_add(const struct elffile *file, struct rows *rows, struct ehframe_stats *stats)
{
	_cleanup_(readerp_free) struct reader *r = NULL;
	uint16_t machine = elffile_machine(file), type = elffile_type(file);
	uint64_t text_end;
	int err;

	if ((machine != EM_X86_64 && machine != EM_AARCH64) || (type != ET_EXEC && type != ET_DYN))
		return ELFFILE_UNSUPPORTED;
	r = calloc(1, sizeof(*r));
	if (r)
		r->buf = malloc(EHFRAME_ENTRY_MAX);
	if (!r || !r->buf)
		return -ENOMEM;
	r->file = file;
	r->machine = machine == EM_AARCH64 ? CFI_ARM64 : CFI_X86_64;
	r->rows = rows;
	r->stats = stats;
	r->work = EHFRAME_WORK_MAX;
	if (ehframe_text(file, &r->text_start, &text_end))
		return 0;
	err = read_eh_frame(r);
	return err ? err : read_debug_frame(r);
}

const char *ehframe_skip_name(unsigned int skip)
{
	static const char *const names[EHFRAME_SKIP_CFI] = {
		[EHFRAME_SKIP_TRUNCATED] = "truncated",
		[EHFRAME_SKIP_TOO_LARGE] = "too_large",
		[EHFRAME_SKIP_CIE_POINTER] = "cie_pointer",
		[EHFRAME_SKIP_CIE_VERSION] = "cie_version",
		[EHFRAME_SKIP_CIE_AUGMENTATION] = "cie_augmentation",
		[EHFRAME_SKIP_ENCODING] = "encoding",
		[EHFRAME_SKIP_NO_CODE] = "no_code",
		[EHFRAME_SKIP_OUTSIDE] = "outside",
		[EHFRAME_SKIP_COMPRESSED] = "compressed",
	};

	if (skip < EHFRAME_SKIP_CFI)
		return names[skip];
	return skip < EHFRAME_SKIP_MAX ? cfi_outcome_name((int)skip - EHFRAME_SKIP_CFI) : "error";
}
