// SPDX-License-Identifier: Apache-2.0
/*
 * Every Go program contains the tables for its runtime's stack walks, and strip cannot remove them.
 * Two structures have to be found.
 *
 * The line table starts with a header:
 *
 *   u32 magic; u8 0, 0; u8 quantum; u8 pointer_size; u64 n_funcs; u64 n_files;
 *   u64 text;                                          (since 1.18; always 0 since 1.26)
 *   u64 names, cus, files, pcs, funcs;                 (offsets from the header)
 *
 * The line table has a section of its own, with one exception: in position-independent files made
 * by the C linker up to Go 1.25, the table is somewhere in .data.rel.ro, and the search looks for
 * the first 8 bytes of the header.
 *
 * The runtime's moduledata has the address of the code (needed since 1.26, when the header lost it)
 * and the address of the functions' data, with the trees of inlined calls (since 1.18). In a
 * stripped file moduledata has no symbol, but its shape is unmistakable: the line table's address,
 * followed by slices of the table's parts. The first fields are the same in all releases. The
 * offset of gofunc differs (goversion.c). The fields beside gofunc determine the offset, because a
 * file does not reliably name its release. If the offset is uncertain, gofunc stays 0 and the
 * reader works without inlining.
 *
 * The values are those in the file. In position-independent files they are subject to relocation,
 * and both Go's linker and GNU ld also store the link-time address in place. Other linkers leave
 * zeros, and these fail the checks.
 *
 * Left out: Go 1.15 and older (another header), and several text sections in one module, which the
 * linker never makes on podprof's 64-bit machines.
 *
 * Sources: the Go project's src/runtime/symtab.go (pcHeader, moduledata, moduledataverify1),
 * src/cmd/link/internal/ld/pcln.go and symtab.go, of the releases in goversion.c.
 */
#include "gofile/gomodule.h"

#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/cursor.h"
#include "elf/elffile.h"
#include "gofile/goversion.h"

/* Bytes of a file searched for the header, and again for moduledata. Data segments have a few
 * MiB, a whole large program 100. Reached: no Go names; the outcome is ABSENT or UNSUPPORTED. */
#define GOMODULE_SCAN_MAX   (256u << 20)
#define GOMODULE_SCAN_CHUNK (64u << 10)
/* Functions; a program of 100 MB has 130 000. The ceiling bounds the search for a function by
 * name. Reached: no Go names; the outcome is MALFORMED. */
#define GOMODULE_FUNCS_MAX  (1u << 20)

#define GOMODULE_HEADER_BYTES 72u /* the longer form */

/* Offsets in moduledata, the same in all releases. */
#define MODULEDATA_SLICES   8u /* names, cus, files, pcs, funcs, ftab: pointer, length, capacity */
#define MODULEDATA_FTAB_LEN 136u
#define MODULEDATA_MINPC    160u /* minpc, maxpc, text, etext */

/* ---------------------------------------------------------------- the header */

static int parse_form(uint32_t magic, enum gomodule_form *ret)
{
	for (const struct goversion *v = goversion_newest(); v; v = goversion_older(v))
		if (v->magic == magic) {
			*ret = v->form;
			return 0;
		}
	return GOMODULE_UNSUPPORTED;
}

/* Bytes of an entry of the function table: the address or offset of the code, and the offset of
 * the record. */
static uint64_t ftab_entry_bytes(const struct gomodule *m)
{
	return m->form == GOMODULE_1_16 ? 16 : 8;
}

static bool parts_fit(const struct gomodule *m)
{
	uint64_t room = m->size - m->funcs;

	if (m->names < 64 || m->names > m->cus || m->cus > m->files || m->files > m->pcs ||
	    m->pcs > m->funcs || m->funcs > m->size)
		return false;
	/* one more entry than functions: the end of the last function */
	return m->n_funcs > 0 && m->n_funcs <= GOMODULE_FUNCS_MAX &&
	       m->n_funcs < room / ftab_entry_bytes(m);
}

/* Parse the header of a candidate table. @m has off, vaddr and size. */
static int parse_header(const struct elffile *file, struct gomodule *m)
{
	uint8_t bytes[GOMODULE_HEADER_BYTES], pad[2], pointer_size;
	uint64_t n_files;
	struct cursor c;
	uint32_t magic;
	int r;

	if (m->size < sizeof(bytes))
		return GOMODULE_MALFORMED;
	r = elffile_read(file, m->off, bytes, sizeof(bytes));
	if (r)
		return r < 0 ? r : GOMODULE_MALFORMED;
	cursor_init(&c, bytes, sizeof(bytes));
	if (!cursor_u32(&c, &magic) || !cursor_u8(&c, &pad[0]) || !cursor_u8(&c, &pad[1]) ||
	    !cursor_u8(&c, &m->quantum) || !cursor_u8(&c, &pointer_size) ||
	    !cursor_u64(&c, &m->n_funcs) || !cursor_u64(&c, &n_files))
		return GOMODULE_MALFORMED;
	r = parse_form(magic, &m->form);
	if (r)
		return r;
	if (pad[0] || pad[1] || (m->quantum != 1 && m->quantum != 4) || pointer_size != 8)
		return GOMODULE_UNSUPPORTED;
	if (m->form != GOMODULE_1_16 && !cursor_u64(&c, &m->text))
		return GOMODULE_MALFORMED;
	if (!cursor_u64(&c, &m->names) || !cursor_u64(&c, &m->cus) || !cursor_u64(&c, &m->files) ||
	    !cursor_u64(&c, &m->pcs) || !cursor_u64(&c, &m->funcs) || !parts_fit(m))
		return GOMODULE_MALFORMED;
	return 0;
}

/* ---------------------------------------------------------------- searching the file */

/*
 * A search for aligned words with the bits @value in @mask, in segments with all of @flags. The
 * search calls @found for each match, and ends with its result unless that is ABSENT.
 */
struct scan {
	uint64_t mask;
	uint64_t value;
	uint32_t flags;
	int (*found)(const struct elffile *file, const struct elffile_segment *segment,
		     uint64_t off, struct gomodule *m);
};

static int scan_chunk(const struct elffile *file, const struct scan *scan,
		      const struct elffile_segment *segment, uint64_t off, const uint8_t *bytes,
		      size_t n, struct gomodule *m)
{
	for (size_t i = 0; i + sizeof(uint64_t) <= n; i += sizeof(uint64_t)) {
		uint64_t word;
		int r;

		memcpy(&word, bytes + i, sizeof(word));
		if ((word & scan->mask) != scan->value)
			continue;
		r = scan->found(file, segment, off + i, m);
		if (r != GOMODULE_ABSENT)
			return r;
	}
	return GOMODULE_ABSENT;
}

static int scan_segment(const struct elffile *file, const struct scan *scan,
			const struct elffile_segment *segment, uint8_t *chunk, uint64_t *budget,
			struct gomodule *m)
{
	uint64_t skip = -segment->vaddr % sizeof(uint64_t);
	uint64_t off, left;

	if (segment->filesz <= skip || __builtin_add_overflow(segment->off, skip, &off))
		return GOMODULE_ABSENT;
	left = segment->filesz - skip;
	if (left > *budget)
		left = *budget;
	*budget -= left;
	while (left >= sizeof(uint64_t)) {
		size_t n = left < GOMODULE_SCAN_CHUNK ? (size_t)left : GOMODULE_SCAN_CHUNK;
		int r = elffile_read(file, off, chunk, n);

		if (r)
			return r < 0 ? r : GOMODULE_ABSENT;
		r = scan_chunk(file, scan, segment, off, chunk, n, m);
		if (r != GOMODULE_ABSENT)
			return r;
		off += n;
		left -= n;
	}
	return GOMODULE_ABSENT;
}

static int scan_file(const struct elffile *file, const struct scan *scan, struct gomodule *m)
{
	_cleanup_(freep) uint8_t *chunk = malloc(GOMODULE_SCAN_CHUNK);
	uint64_t budget = GOMODULE_SCAN_MAX;
	const struct elffile_segment *segments;
	size_t n;

	if (!chunk)
		return -ENOMEM;
	segments = elffile_segments(file, &n);
	for (size_t i = 0; i < n; i++) {
		int r;

		if ((segments[i].flags & scan->flags) != scan->flags)
			continue;
		r = scan_segment(file, scan, &segments[i], chunk, &budget, m);
		if (r != GOMODULE_ABSENT)
			return r;
	}
	return GOMODULE_ABSENT;
}

/* ---------------------------------------------------------------- the line table */

static int table_found(const struct elffile *file, const struct elffile_segment *segment,
		       uint64_t off, struct gomodule *m)
{
	struct gomodule candidate = {
		.vaddr = segment->vaddr + (off - segment->off),
		.off = off,
		.size = segment->filesz - (off - segment->off),
	};
	int r = parse_header(file, &candidate);

	if (r)
		return r < 0 ? r : GOMODULE_ABSENT;
	*m = candidate;
	return 0;
}

/* Checks the build id, too, because a plugin of Go 1.16 has no .go.buildinfo. */
static bool is_go(const struct elffile *file)
{
	struct elffile_section section;

	return elffile_section(file, ".go.buildinfo", &section) == 0 ||
	       elffile_section(file, ".note.go.buildid", &section) == 0;
}

/* Search the file for the line table. The search reads the whole file, so it is only for known
 * Go files and for files without sections. */
static int scan_for_table(const struct elffile *file, struct gomodule *m)
{
	static const struct scan scan = {
		.mask = 0xff00fffffffffff0, /* all magics, both quanta */
		.value = 0x08000000fffffff0,
		.flags = PF_R,
		.found = table_found,
	};
	struct elffile_section section;

	if (elffile_section_at(file, 1, &section) == 0 && !is_go(file))
		return GOMODULE_ABSENT;
	return scan_file(file, &scan, m);
}

static int find_table(const struct elffile *file, struct gomodule *m)
{
	static const char *const names[] = {".gopclntab", ".data.rel.ro.gopclntab"};
	struct elffile_section section;

	for (size_t i = 0; i < array_size(names); i++) {
		if (elffile_section(file, names[i], &section) != 0 || section.type == SHT_NOBITS)
			continue;
		*m = (struct gomodule){
			.vaddr = section.vaddr,
			.off = section.off,
			.size = section.size,
		};
		return parse_header(file, m);
	}
	return scan_for_table(file, m);
}

/* ---------------------------------------------------------------- moduledata */

static uint64_t moduledata_word(const uint8_t *bytes, size_t off)
{
	uint64_t word;

	memcpy(&word, bytes + off, sizeof(word));
	return word;
}

/* Whether the bytes are the moduledata of the line table. */
static bool moduledata_matches(const struct gomodule *m, const uint8_t *bytes)
{
	const uint64_t parts[] = {m->names, m->cus, m->files, m->pcs, m->funcs, m->funcs};
	uint64_t minpc = moduledata_word(bytes, MODULEDATA_MINPC);
	uint64_t maxpc = moduledata_word(bytes, MODULEDATA_MINPC + 8);
	uint64_t text = moduledata_word(bytes, MODULEDATA_MINPC + 16);
	uint64_t etext = moduledata_word(bytes, MODULEDATA_MINPC + 24);

	for (size_t i = 0; i < array_size(parts); i++)
		if (moduledata_word(bytes, MODULEDATA_SLICES + 24 * i) != m->vaddr + parts[i])
			return false;
	if (moduledata_word(bytes, MODULEDATA_FTAB_LEN) != m->n_funcs + 1)
		return false;
	/* etext may be before the end of the last function, by up to one alignment */
	return text <= minpc && minpc < maxpc && etext <= UINT64_MAX - 16 && maxpc <= etext + 16;
}

static bool in_table(const struct gomodule *m, uint64_t vaddr)
{
	return vaddr >= m->vaddr && vaddr - m->vaddr <= m->size;
}

/* Whether @gofunc and @end are the begin and the end of function data in the line table. */
static bool in_table_to(const struct gomodule *m, uint64_t gofunc, uint64_t end)
{
	return gofunc - m->vaddr >= m->funcs && in_table(m, gofunc) && in_table(m, end) &&
	       gofunc <= end;
}

/* The gofunc of release @v; 0 if implausible. */
static uint64_t moduledata_gofunc_of(const struct elffile *file, const struct gomodule *m,
				     const uint8_t *bytes, const struct goversion *v)
{
	uint64_t gofunc = moduledata_word(bytes, v->gofunc), off;

	if (v->gofunc_ends)
		return in_table_to(m, gofunc, moduledata_word(bytes, v->gofunc + 8)) ? gofunc : 0;
	return m->text && elffile_off_of_vaddr(file, gofunc, &off) ? gofunc : 0;
}

/* Tries the newest release first, because its check is the strictest. */
static uint64_t moduledata_gofunc(const struct elffile *file, const struct gomodule *m,
				  const uint8_t *bytes)
{
	uint64_t gofunc = 0;

	for (const struct goversion *v = goversion_newest(); v && !gofunc; v = goversion_older(v))
		if (v->form == m->form && v->gofunc)
			gofunc = moduledata_gofunc_of(file, m, bytes, v);
	return gofunc;
}

static int moduledata_found(const struct elffile *file, const struct elffile_segment *segment,
			    uint64_t off, struct gomodule *m)
{
	uint8_t bytes[GOVERSION_MODULE_BYTES];
	uint64_t text;
	int r = elffile_read(file, off, bytes, sizeof(bytes));

	if (r)
		return r < 0 ? r : GOMODULE_ABSENT;
	if (!moduledata_matches(m, bytes))
		return GOMODULE_ABSENT;
	m->data = segment->vaddr + (off - segment->off);
	if (m->form == GOMODULE_1_16)
		return 0;
	text = moduledata_word(bytes, MODULEDATA_MINPC + 16);
	if (m->text && m->text != text)
		return GOMODULE_UNSUPPORTED;
	m->gofunc = moduledata_gofunc(file, m, bytes);
	m->text = text;
	return 0;
}

static int find_moduledata(const struct elffile *file, struct gomodule *m)
{
	const struct scan scan = {
		.mask = UINT64_MAX,
		.value = m->vaddr,
		.flags = PF_R | PF_W,
		.found = moduledata_found,
	};
	int r = scan_file(file, &scan, m);

	if (r != GOMODULE_ABSENT)
		return r;
	/* up to 1.25 the header is enough, except for inlining */
	return m->text || m->form == GOMODULE_1_16 ? 0 : GOMODULE_UNSUPPORTED;
}

/* ---------------------------------------------------------------- */

/* Entry @i of the function table as an address. */
static int ftab_vaddr(const struct elffile *file, const struct gomodule *m, uint64_t i,
		      uint64_t *ret)
{
	uint64_t off = m->off + m->funcs + i * ftab_entry_bytes(m), vaddr = 0;
	size_t n = m->form == GOMODULE_1_16 ? 8 : 4;
	int r = elffile_read(file, off, &vaddr, n);

	if (r)
		return r < 0 ? r : GOMODULE_MALFORMED;
	if (__builtin_add_overflow(vaddr, m->text, &vaddr))
		return GOMODULE_MALFORMED;
	*ret = vaddr;
	return 0;
}

/* Check that all functions lie in one executable segment, which confirms the base of their
 * addresses. */
static int check_text(const struct elffile *file, const struct gomodule *m)
{
	const struct elffile_segment *segments;
	uint64_t first, last;
	size_t n;
	int r = ftab_vaddr(file, m, 0, &first);

	if (!r)
		r = ftab_vaddr(file, m, m->n_funcs, &last);
	if (r)
		return r;
	segments = elffile_segments(file, &n);
	for (size_t i = 0; i < n; i++)
		if ((segments[i].flags & PF_X) && first >= segments[i].vaddr && first < last &&
		    last - segments[i].vaddr <= segments[i].memsz)
			return 0;
	return GOMODULE_UNSUPPORTED;
}

int gomodule_find(const struct elffile *file, struct gomodule *ret)
{
	struct gomodule m;
	int r = find_table(file, &m);

	if (!r)
		r = find_moduledata(file, &m);
	if (!r)
		r = check_text(file, &m);
	if (r)
		return r;
	*ret = m;
	return 0;
}
