// SPDX-License-Identifier: Apache-2.0
/*
 * Each section of a package has the sections of all units, one after another. An index, a hash
 * table, gives for a unit's id the places of the unit's parts:
 *
 *	uint32_t version (2), or uint16_t version (5) and uint16_t zero
 *	uint32_t columns, units, slots
 *	uint64_t id[slots]; 0: free
 *	uint32_t row[slots]; from 1 on
 *	uint32_t section[columns]; a number for the kind
 *	uint32_t off[units][columns], size[units][columns]
 *
 * The strings are the only part that all units have in common, and may be hundreds of megabytes. So
 * the copy has the unit's own strings, with new offsets. Left out are types of their own
 * (.debug_tu_index), macros and places of variables: names and lines need none of these.
 *
 * libdw reads packages from elfutils 0.191 on.
 */
#include "symbolize/dwarfpackage.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "elf/elffile.h"

/* Columns of an index; DWARF 5 has 8 kinds. Reached: malformed. */
#define COLUMNS_MAX  16
/* Slots of the index that are read for an id. At the usual load of 2/3 three are enough for nearly
 * all. Reached: the unit counts as absent. */
#define PROBES_MAX   4096
/* Bytes of a string. Reached: cut. */
#define STRING_MAX   ((size_t)32 << 10)
/* Bytes of a read: most strings are short, and those of a unit are often neighbours. */
#define STRINGS_READ ((size_t)2 << 10)
/* Bytes copied at a time. */
#define PIECE	     ((size_t)64 << 10)
/* Units of work for a string, besides its reads: the sort. */
#define STRING_COST  64u

enum part { PART_INFO, PART_ABBREV, PART_LINE, PART_RNGLISTS, PART_STR_OFFSETS, PARTS };

/* Of each part the number in an index; 0: not in that version. */
static const struct part_kind {
	const char *section;
	uint32_t version2;
	uint32_t version5;
} kinds[PARTS] = {
	[PART_INFO] = {".debug_info.dwo", 1, 1},
	[PART_ABBREV] = {".debug_abbrev.dwo", 3, 3},
	[PART_LINE] = {".debug_line.dwo", 4, 4},
	[PART_RNGLISTS] = {".debug_rnglists.dwo", 0, 8},
	[PART_STR_OFFSETS] = {".debug_str_offsets.dwo", 6, 6},
};

struct extent {
	uint64_t off; /* in the package's file */
	uint64_t size;
};

struct dwarfpackage {
	struct elffile *file;
	struct elffile_section index;
	struct elffile_section sections[PARTS];
	bool has[PARTS];
	struct elffile_section strings;
	bool has_strings;
	uint16_t version;
	uint32_t columns;
	uint32_t units;
	uint32_t slots;
};

/* ---------------------------------------------------------------- the index */

static uint64_t hash_bytes(const struct dwarfpackage *p)
{
	return 16 + 12 * (uint64_t)p->slots;
}

static int read_header(struct dwarfpackage *p)
{
	uint32_t header[4];
	uint64_t size;

	if (elffile_section(p->file, ".debug_cu_index", &p->index) ||
	    p->index.size < sizeof(header))
		return DWARFPACKAGE_ABSENT;
	if (elffile_read(p->file, p->index.off, header, sizeof(header)))
		return DWARFPACKAGE_MALFORMED;
	p->version = (uint16_t)header[0]; /* little-endian, and zeros behind a version 5 */
	p->columns = header[1];
	p->units = header[2];
	p->slots = header[3];
	if (header[0] != p->version || (p->version != 2 && p->version != 5) ||
	    p->columns > COLUMNS_MAX || (p->slots & (p->slots - 1)))
		return DWARFPACKAGE_MALFORMED;
	size = hash_bytes(p) + 4 * (uint64_t)p->columns * (1 + 2 * (uint64_t)p->units);
	return size <= p->index.size ? 0 : DWARFPACKAGE_MALFORMED;
}

static bool find_section(const struct dwarfpackage *p, const char *name,
			 struct elffile_section *ret)
{
	return elffile_section(p->file, name, ret) == 0 && ret->type != SHT_NOBITS &&
	       !(ret->flags & SHF_COMPRESSED);
}

int dwarfpackage_open(struct elffile *file, struct dwarfpackage **ret)
{
	struct dwarfpackage *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return -ENOMEM;
	p->file = file;
	r = read_header(p);
	if (r) {
		free(p);
		return r;
	}
	for (size_t i = 0; i < PARTS; i++)
		p->has[i] = find_section(p, kinds[i].section, &p->sections[i]);
	p->has_strings = find_section(p, ".debug_str.dwo", &p->strings);
	*ret = p;
	return 0;
}

void dwarfpackage_free(struct dwarfpackage *p)
{
	if (p)
		elffile_free(p->file);
	free(p);
}

/* The number of the id's row, from 0 on. The table is probed as DWARF 5, 7.3.5.3 says. */
static int find_row(const struct dwarfpackage *p, uint64_t id, uint32_t *ret)
{
	const uint32_t mask = p->slots - 1;
	uint32_t slot = (uint32_t)id & mask, row;
	const uint32_t step = ((uint32_t)(id >> 32) & mask) | 1;

	for (uint32_t i = 0; i < p->slots && i < PROBES_MAX; i++, slot = (slot + step) & mask) {
		uint64_t found;

		if (elffile_read(p->file, p->index.off + 16 + 8 * (uint64_t)slot, &found,
				 sizeof(found)))
			return DWARFPACKAGE_MALFORMED;
		if (!found)
			return DWARFPACKAGE_ABSENT;
		if (found != id)
			continue;
		if (elffile_read(p->file,
				 p->index.off + 16 + 8 * (uint64_t)p->slots + 4 * (uint64_t)slot,
				 &row, sizeof(row)) ||
		    !row || row > p->units)
			return DWARFPACKAGE_MALFORMED;
		*ret = row - 1;
		return 0;
	}
	return DWARFPACKAGE_ABSENT;
}

/* The part's extent in the file; that of a missing part has no bytes. */
static int place(const struct dwarfpackage *p, enum part part, uint32_t off, uint32_t size,
		 struct extent *ret)
{
	const struct elffile_section *section = &p->sections[part];

	if (!size)
		return 0;
	if (!p->has[part] || off > section->size || size > section->size - off)
		return DWARFPACKAGE_MALFORMED;
	*ret = (struct extent){section->off + off, size};
	return 0;
}

/* The extents of the unit in row @row. */
static int find_parts(const struct dwarfpackage *p, uint32_t row, struct extent ret[PARTS])
{
	uint32_t kind[COLUMNS_MAX], off[COLUMNS_MAX], size[COLUMNS_MAX];
	const uint64_t n = 4 * (uint64_t)p->columns, table = p->index.off + hash_bytes(p);
	int r = 0;

	if (elffile_read(p->file, table, kind, n) ||
	    elffile_read(p->file, table + n * (1 + (uint64_t)row), off, n) ||
	    elffile_read(p->file, table + n * (1 + (uint64_t)p->units + row), size, n))
		return DWARFPACKAGE_MALFORMED;
	for (size_t i = 0; i < PARTS; i++) {
		const uint32_t want = p->version == 5 ? kinds[i].version5 : kinds[i].version2;

		ret[i] = (struct extent){0};
		for (size_t k = 0; want && k < p->columns && !r; k++)
			if (kind[k] == want)
				r = place(p, i, off[k], size[k], &ret[i]);
	}
	return r || ret[PART_INFO].size ? r : DWARFPACKAGE_MALFORMED;
}

/* ---------------------------------------------------------------- the copy */

struct copy {
	const struct dwarfpackage *package;
	int fd;
	uint64_t n; /* bytes so far */
	uint64_t max;
	Elf64_Shdr
		sections[PARTS + 3]; /* the first is empty; then the strings; the last has names */
	size_t n_sections;
	char names[256];
	size_t n_names;
};

static int put(struct copy *c, const void *bytes, size_t n)
{
	if (n > c->max - c->n)
		return DWARFPACKAGE_TOO_LARGE;
	for (size_t done = 0; done < n;) {
		ssize_t put =
			pwrite(c->fd, (const char *)bytes + done, n - done, (off_t)(c->n + done));

		if (put <= 0)
			return put < 0 ? -errno : -EIO;
		done += (size_t)put;
	}
	c->n += n;
	return 0;
}

static int put_extent(struct copy *c, const struct extent *extent)
{
	_cleanup_(freep) char *piece = malloc(PIECE);
	int r = piece ? 0 : -ENOMEM;

	if (extent->size > c->max - c->n)
		return DWARFPACKAGE_TOO_LARGE;
	for (uint64_t at = 0; at < extent->size && !r; at += PIECE) {
		size_t n = extent->size - at < PIECE ? (size_t)(extent->size - at) : PIECE;

		if (elffile_read(c->package->file, extent->off + at, piece, n))
			return DWARFPACKAGE_MALFORMED;
		r = put(c, piece, n);
	}
	return r;
}

/* The section that begins at @begin and ends here. */
static void end_section(struct copy *c, const char *name, uint32_t type, uint64_t begin)
{
	const size_t n = strlen(name) + 1;

	c->sections[c->n_sections++] = (Elf64_Shdr){
		.sh_name = (uint32_t)c->n_names,
		.sh_type = type,
		.sh_offset = begin,
		.sh_size = c->n - begin,
		.sh_addralign = 1,
	};
	memcpy(c->names + c->n_names, name, n);
	c->n_names += n;
}

static int put_names(struct copy *c)
{
	const uint64_t begin = c->n;
	int r;

	end_section(c, ".shstrtab", SHT_STRTAB, begin);
	r = put(c, c->names, c->n_names);
	c->sections[c->n_sections - 1].sh_size = c->n_names;
	return r;
}

static int put_headers(struct copy *c)
{
	Elf64_Ehdr header = {
		.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			    EV_CURRENT},
		.e_type = ET_REL,
		.e_machine = elffile_machine(c->package->file),
		.e_version = EV_CURRENT,
		.e_ehsize = sizeof(Elf64_Ehdr),
		.e_shentsize = sizeof(Elf64_Shdr),
	};
	int r;

	r = put_names(c);
	if (!r)
		r = put(c, "\0\0\0\0\0\0\0", 8 - c->n % 8);
	header.e_shoff = c->n;
	header.e_shnum = (uint16_t)c->n_sections;
	header.e_shstrndx = (uint16_t)(c->n_sections - 1);
	if (!r)
		r = put(c, c->sections, c->n_sections * sizeof(c->sections[0]));
	if (!r && pwrite(c->fd, &header, sizeof(header), 0) != sizeof(header))
		r = -EIO;
	return r;
}

/* ---------------------------------------------------------------- strings */

/* An item of the table of offsets. */
struct string {
	uint64_t off;
	size_t index;
};

/* The package's strings, read in order of their offsets. */
struct strings {
	uint64_t begin; /* of what is read, in the section */
	size_t n;
	char bytes[STRING_MAX];
};

static int by_off(const void *a, const void *b)
{
	const struct string *x = a, *y = b;

	return (x->off > y->off) - (x->off < y->off);
}

static bool read_strings(const struct dwarfpackage *p, struct strings *s, uint64_t off, size_t want)
{
	const uint64_t left = p->strings.size - off;

	s->begin = off;
	s->n = left < want ? (size_t)left : want;
	return elffile_read(p->file, p->strings.off + off, s->bytes, s->n) == 0;
}

/* The string at @off, and the length; NULL if there is none. */
static const char *string_at(const struct dwarfpackage *p, struct strings *s, uint64_t off,
			     size_t *ret_n)
{
	if (off >= p->strings.size)
		return NULL;
	for (size_t want = STRINGS_READ;; want *= 4) {
		if (off - s->begin < s->n) {
			const char *begin = s->bytes + (off - s->begin);
			const size_t left = s->n - (size_t)(off - s->begin);
			const char *end = memchr(begin, '\0', left);

			*ret_n = end ? (size_t)(end - begin) : left;
			if (end || want > STRING_MAX)
				return begin;
		}
		if (want > STRING_MAX || !read_strings(p, s, off, want))
			return NULL;
	}
}

/* The table of offsets of a unit. DWARF 4 has none of the header. */
struct offsets {
	uint8_t *bytes;
	size_t n;
	size_t begin; /* of the items */
	size_t width; /* of an item */
};

static void parse_offsets(struct offsets *o, uint16_t version)
{
	uint32_t first = 0;

	o->begin = 0;
	o->width = sizeof(uint32_t);
	if (version != 5)
		return;
	if (o->n >= sizeof(first))
		memcpy(&first, o->bytes, sizeof(first));
	o->begin = first == UINT32_MAX ? 16 : 8;
	if (first == UINT32_MAX)
		o->width = sizeof(uint64_t);
}

static size_t count_offsets(const struct offsets *o)
{
	return o->n > o->begin ? (o->n - o->begin) / o->width : 0;
}

/* The strings of the table, sorted. */
static int sort_strings(const struct dwarfpackage *p, const struct offsets *o, struct string **ret)
{
	const size_t n = count_offsets(o);
	struct string *items;

	if (!elffile_spend(p->file, n * STRING_COST))
		return DWARFPACKAGE_MALFORMED;
	items = calloc(n ? n : 1, sizeof(*items));
	if (!items)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		items[i].index = i;
		memcpy(&items[i].off, o->bytes + o->begin + i * o->width, o->width);
	}
	qsort(items, n, sizeof(*items), by_off);
	*ret = items;
	return 0;
}

static int put_string(struct copy *c, struct buf *pending, const char *bytes, size_t n)
{
	int r = 0;

	if (n + 1 > c->max - c->n - pending->len)
		return DWARFPACKAGE_TOO_LARGE;
	if (pending->len + n + 1 > pending->max) {
		r = put(c, pending->data, pending->len);
		buf_reset(pending);
	}
	if (!r)
		r = buf_append(pending, bytes, n);
	return r ? r : buf_putc(pending, '\0');
}

/* Writes the strings, and their new offsets into @o. The string at 0 is empty, for offsets without
 * a string. */
static int put_strings(struct copy *c, const struct offsets *o, const struct string *items)
{
	_cleanup_(freep) struct strings *strings = calloc(1, sizeof(*strings));
	struct buf pending = BUF_INIT(STRING_MAX + PIECE);
	const uint64_t begin = c->n;
	uint64_t first = 0, end = 0; /* of the last string with bytes of its own */
	uint64_t base = 0;	     /* its new offset */
	int r = strings ? put_string(c, &pending, "", 0) : -ENOMEM;

	for (size_t i = 0; i < count_offsets(o) && !r; i++) {
		const uint64_t off = items[i].off;
		const char *string = NULL;
		uint64_t at = 0;
		size_t n;

		if (off >= end)
			string = string_at(c->package, strings, off, &n);
		if (string) {
			first = off;
			end = off + n + 1;
			base = c->n + pending.len - begin;
			r = put_string(c, &pending, string, n);
		}
		if (off < end) /* linkers let a string be the end of another */
			at = base + (off - first);
		memcpy(o->bytes + o->begin + items[i].index * o->width, &at, o->width);
	}
	if (!r)
		r = put(c, pending.data, pending.len);
	buf_deinit(&pending);
	if (!r)
		end_section(c, ".debug_str.dwo", SHT_PROGBITS, begin);
	return r;
}

static int put_offsets(struct copy *c, const struct extent *extent)
{
	const char *name = kinds[PART_STR_OFFSETS].section;
	_cleanup_(freep) uint8_t *bytes = NULL;
	_cleanup_(freep) struct string *items = NULL;
	struct offsets o = {.n = (size_t)extent->size};
	uint64_t begin;
	int r;

	if (extent->size > c->max - c->n)
		return DWARFPACKAGE_TOO_LARGE;
	bytes = o.bytes = malloc(o.n);
	if (!bytes)
		return -ENOMEM;
	if (elffile_read(c->package->file, extent->off, bytes, o.n))
		return DWARFPACKAGE_MALFORMED;
	parse_offsets(&o, c->package->version);
	r = sort_strings(c->package, &o, &items);
	if (!r)
		r = put_strings(c, &o, items);
	begin = c->n;
	if (!r)
		r = put(c, bytes, o.n);
	if (!r)
		end_section(c, name, SHT_PROGBITS, begin);
	return r;
}

/* ---------------------------------------------------------------- the file */

static int put_all(struct copy *c, const struct extent parts[PARTS])
{
	static const Elf64_Ehdr room;
	int r = put(c, &room, sizeof(room));

	c->n_names = 1;
	c->n_sections = 1;
	for (size_t i = 0; i < PARTS && !r; i++) {
		const uint64_t begin = c->n;

		if (!parts[i].size)
			continue;
		if (i == PART_STR_OFFSETS) {
			if (c->package->has_strings)
				r = put_offsets(c, &parts[i]);
			continue;
		}
		r = put_extent(c, &parts[i]);
		if (!r)
			end_section(c, kinds[i].section, SHT_PROGBITS, begin);
	}
	return r ? r : put_headers(c);
}

int dwarfpackage_unit(const struct dwarfpackage *p, uint64_t id, size_t max, int *ret_fd,
		      size_t *ret_bytes)
{
	struct copy c = {.package = p,
			 .max = max < DWARFPACKAGE_UNIT_MAX ? max : DWARFPACKAGE_UNIT_MAX};
	_cleanup_(close_fdp) int fd = -1;
	struct extent parts[PARTS];
	uint32_t row;
	int r = find_row(p, id, &row);

	if (!r)
		r = find_parts(p, row, parts);
	if (r)
		return r;
	fd = c.fd = memfd_create("dwo", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -errno;
	r = put_all(&c, parts);
	if (r)
		return r;
	/* the process that reads DWARF has the descriptor, too */
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) < 0)
		return -errno;
	*ret_bytes = (size_t)c.n;
	*ret_fd = take_fd(fd);
	return 0;
}
