// SPDX-License-Identifier: Apache-2.0
/*
 * The headers of an ELF file are read once, at the open, and copied into small tables. After that
 * the file is only read by offset, with pread(). So an open elffile is immutable and several
 * threads may use it. Later changes of the file cannot move a table; lost bytes read as
 * ELFFILE_TRUNCATED.
 *
 * libelf finds the headers (through gelf_*, which copies: libelf's own tables need not be aligned).
 * libelf allocates by the counts in the ELF header, so this file checks the counts first. (If the
 * file changes between the two, libelf allocates untouched memory, and the file is refused
 * afterwards.)
 *
 * Only data about running code is kept: PT_LOADs, sections, the build id. 32-bit and big-endian
 * files are refused, because podprof unwinds no such processes.
 *
 * Specification: System V gABI, chapters 4 and 5; elf(5); the build id note is ELF_NOTE_GNU's
 * NT_GNU_BUILD_ID.
 */
#include "elf/elffile.h"

#include <elf.h>
#include <endian.h>
#include <errno.h>
#include <gelf.h>
#include <libelf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/cursor.h"
#include "base/work_budget.h"

/* Program headers; the kernel refuses programs with more than 64 KiB of them (load_elf_phdrs()).
 * Above this limit and the next two, the file is ELFFILE_TOO_LARGE. Reached: `too_large`. */
#define ELFFILE_PHDRS_MAX     1170
/* Sections. Linked files have some 40; a kernel module built with function sections has hundreds.
 * Reached: `too_large`. */
#define ELFFILE_SECTIONS_MAX  8192
/* Bytes of section names. Reached: `too_large`. */
#define ELFFILE_NAMES_MAX     (1u << 20)
/* Bytes of a note segment or section searched for the build id; linkers put the build id first.
 * Reached: no build id. */
#define ELFFILE_NOTES_MAX     (64u << 10)
/* Bytes of all notes searched in one file; a file can have 9,000 note segments and sections.
 * Reached: no build id. */
#define ELFFILE_ALL_NOTES_MAX ((uint64_t)1 << 20)
/* Bytes of a string read at first. */
#define STRING_STEP	      128

struct named_section {
	struct elffile_section section;
	uint32_t name; /* offset into names */
};

struct elffile {
	struct work_budget *work; /* borrowed, or NULL: no budget */
	bool is_borrowed;	  /* a handle made by elffile_budgeted() */
	int fd;			  /* or -1: */
	const uint8_t *data;	  /* borrowed */
	bool is_process;	  /* fd is a process's memory */
	bool leave_open;	  /* atomic */
	uint64_t size;
	uint16_t type;
	uint16_t machine;
	uint64_t entry;
	struct elffile_segment *segments;
	size_t n_segments;
	struct elffile_segment eh_frame_hdr;
	bool has_eh_frame_hdr;
	struct elffile_segment relro;
	bool has_relro;
	struct named_section *sections;
	size_t n_sections;
	char *names; /* ends with a NUL */
	size_t n_names;
	uint8_t build_id[ELFFILE_BUILD_ID_MAX];
	size_t n_build_id;
};

static inline void elf_endp(Elf **elf)
{
	if (*elf)
		elf_end(*elf);
}

const char *elffile_outcome_name(int outcome)
{
	static const char *const names[ELFFILE_OUTCOME_MAX] = {
		[ELFFILE_OK] = "ok",
		[ELFFILE_NOT_ELF] = "not_elf",
		[ELFFILE_UNSUPPORTED] = "unsupported",
		[ELFFILE_MALFORMED] = "malformed",
		[ELFFILE_TOO_LARGE] = "too_large",
		[ELFFILE_ABSENT] = "absent",
		[ELFFILE_TRUNCATED] = "truncated",
		[ELFFILE_ABANDONED] = "abandoned",
	};

	return outcome >= 0 && outcome < ELFFILE_OUTCOME_MAX ? names[outcome] : "error";
}

bool elffile_spend(const struct elffile *ef, uint64_t units)
{
	return !ef->work || work_budget_spend(ef->work, units);
}

int elffile_read(const struct elffile *ef, uint64_t off, void *ret, size_t n)
{
	uint8_t *to = ret;
	uint64_t end;

	if (__builtin_add_overflow(off, n, &end) || end > ef->size)
		return ELFFILE_TRUNCATED;
	if (!n)
		return 0;
	if (!elffile_spend(ef, n + WORK_READ_COST))
		return ELFFILE_ABANDONED;
	if (ef->fd < 0) {
		memcpy(to, ef->data + off, n);
		return 0;
	}
	while (n > 0) {
		ssize_t got = pread(ef->fd, to, n, (off_t)off);

		if (got < 0 && errno == EINTR)
			continue;
		/* part or all of a process's memory may be gone */
		if (got < 0 && !ef->is_process)
			return -errno;
		if (got <= 0)
			return ELFFILE_TRUNCATED;
		to += got;
		off += (uint64_t)got;
		n -= (size_t)got;
	}
	return 0;
}

/* Owned bytes of the file, with a NUL after them for string tables. */
static int elffile_read_new(const struct elffile *ef, uint64_t off, size_t n, void **ret)
{
	_cleanup_(freep) char *bytes = NULL;
	int r;

	if (n > ef->size || off > ef->size - n)
		return ELFFILE_TRUNCATED;
	bytes = malloc(n + 1);
	if (!bytes)
		return -ENOMEM;
	r = elffile_read(ef, off, bytes, n);
	if (r)
		return r;
	bytes[n] = '\0';
	*ret = take_ptr(bytes);
	return 0;
}

int elffile_read_section(const struct elffile *ef, const struct elffile_section *section,
			 size_t max, void **ret)
{
	if (section->type == SHT_NOBITS)
		return ELFFILE_ABSENT;
	if (section->size > max)
		return ELFFILE_TOO_LARGE;
	return elffile_read_new(ef, section->off, (size_t)section->size, ret);
}

bool elffile_read_string(const struct elffile *ef, const struct elffile_section *strings,
			 uint64_t off, char *ret, size_t size)
{
	uint64_t left = strings->size > off ? strings->size - off : 0, at;
	size_t have = 0, room = left < size - 1 ? (size_t)left : size - 1;

	if (!room || __builtin_add_overflow(strings->off, off, &at))
		return false;
	for (size_t step = STRING_STEP; have < room; step *= 4) {
		size_t n = room - have < step ? room - have : step;

		if (elffile_read(ef, at + have, ret + have, n) != 0)
			return false;
		if (memchr(ret + have, '\0', n))
			return ret[0] != '\0';
		have += n;
	}
	ret[have] = '\0';
	return true;
}

/* ---------------------------------------------------------------- the headers, before libelf */

/* Counts too large for the header are in the first section (gABI, "Section Header"). */
static int check_extended_counts(const struct elffile *ef, const Elf64_Ehdr *eh, uint64_t *n_phdrs,
				 uint64_t *n_sections)
{
	Elf64_Shdr first;
	int r;

	if (eh->e_shoff == 0)
		return eh->e_phnum == PN_XNUM ? ELFFILE_MALFORMED : 0;
	if (eh->e_shnum != 0 && eh->e_phnum != PN_XNUM)
		return 0;
	r = elffile_read(ef, le64toh(eh->e_shoff), &first, sizeof(first));
	if (r)
		return r == ELFFILE_TRUNCATED ? ELFFILE_MALFORMED : r;
	if (eh->e_shnum == 0)
		*n_sections = le64toh(first.sh_size);
	if (eh->e_phnum == PN_XNUM)
		*n_phdrs = le32toh(first.sh_info);
	return 0;
}

/* Whether a table of @n entries of @size bytes at @off lies inside the file. */
static bool table_fits(const struct elffile *ef, uint64_t off, uint64_t n, size_t size)
{
	return off <= ef->size && n <= (ef->size - off) / size;
}

static int check_tables(const struct elffile *ef, const Elf64_Ehdr *eh)
{
	uint64_t n_phdrs = le16toh(eh->e_phnum), n_sections = le16toh(eh->e_shnum);
	int r = check_extended_counts(ef, eh, &n_phdrs, &n_sections);

	if (r)
		return r;
	if (n_phdrs > ELFFILE_PHDRS_MAX || n_sections > ELFFILE_SECTIONS_MAX)
		return ELFFILE_TOO_LARGE;
	if (n_phdrs && (le16toh(eh->e_phentsize) != sizeof(Elf64_Phdr) ||
			!table_fits(ef, le64toh(eh->e_phoff), n_phdrs, sizeof(Elf64_Phdr))))
		return ELFFILE_MALFORMED;
	if (n_sections && (le16toh(eh->e_shentsize) != sizeof(Elf64_Shdr) ||
			   !table_fits(ef, le64toh(eh->e_shoff), n_sections, sizeof(Elf64_Shdr))))
		return ELFFILE_MALFORMED;
	return 0;
}

static int check_header(const struct elffile *ef)
{
	Elf64_Ehdr eh;
	int r = elffile_read(ef, 0, &eh, EI_NIDENT);

	if (r == ELFFILE_TRUNCATED)
		return ELFFILE_NOT_ELF;
	if (r)
		return r;
	if (memcmp(eh.e_ident, ELFMAG, SELFMAG) != 0)
		return ELFFILE_NOT_ELF;
	if (eh.e_ident[EI_CLASS] != ELFCLASS64 || eh.e_ident[EI_DATA] != ELFDATA2LSB)
		return ELFFILE_UNSUPPORTED;
	r = elffile_read(ef, 0, &eh, sizeof(eh));
	if (r == ELFFILE_TRUNCATED)
		return ELFFILE_NOT_ELF;
	if (r)
		return r;
	return check_tables(ef, &eh);
}

/* ---------------------------------------------------------------- the tables */

static void keep_segment(struct elffile *ef, const GElf_Phdr *ph)
{
	struct elffile_segment segment = {
		.vaddr = ph->p_vaddr,
		.memsz = ph->p_memsz,
		.off = ph->p_offset,
		.filesz = ph->p_filesz,
		.flags = ph->p_flags,
	};

	if (ph->p_type == PT_LOAD)
		ef->segments[ef->n_segments++] = segment;
	if (ph->p_type == PT_GNU_EH_FRAME && !ef->has_eh_frame_hdr) {
		ef->eh_frame_hdr = segment;
		ef->has_eh_frame_hdr = true;
	}
	if (ph->p_type == PT_GNU_RELRO && !ef->has_relro) {
		ef->relro = segment;
		ef->has_relro = true;
	}
}

static int load_segments(struct elffile *ef, Elf *elf)
{
	GElf_Phdr ph;
	size_t n;

	if (elf_getphdrnum(elf, &n) != 0)
		return ELFFILE_MALFORMED;
	if (n > ELFFILE_PHDRS_MAX)
		return ELFFILE_TOO_LARGE;
	if (!n)
		return 0;
	ef->segments = calloc(n, sizeof(*ef->segments));
	if (!ef->segments)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		if (!gelf_getphdr(elf, (int)i, &ph))
			return ELFFILE_MALFORMED;
		keep_segment(ef, &ph);
	}
	return 0;
}

static int load_section(struct elffile *ef, Elf *elf, size_t index)
{
	Elf_Scn *scn = elf_getscn(elf, index);
	GElf_Shdr sh;

	if (!scn || !gelf_getshdr(scn, &sh))
		return ELFFILE_MALFORMED;
	ef->sections[index] = (struct named_section){
		.section = {.vaddr = sh.sh_addr,
			    .off = sh.sh_offset,
			    .size = sh.sh_size,
			    .entsize = sh.sh_entsize,
			    .type = sh.sh_type,
			    .flags = (uint32_t)sh.sh_flags,
			    .link = sh.sh_link,
			    .index = (uint32_t)index},
		.name = sh.sh_name,
	};
	return 0;
}

/* Unreadable names leave sections without names: the code is mapped all the same. */
static int load_section_names(struct elffile *ef, Elf *elf)
{
	struct elffile_section section;
	size_t index;
	int r;

	if (elf_getshdrstrndx(elf, &index) != 0 ||
	    elffile_section_at(ef, (uint32_t)index, &section))
		return 0;
	r = elffile_read_section(ef, &section, ELFFILE_NAMES_MAX, (void **)&ef->names);
	if (r == 0)
		ef->n_names = (size_t)section.size;
	return r < 0 ? r : 0;
}

static int load_sections(struct elffile *ef, Elf *elf)
{
	size_t n;
	int r;

	if (elf_getshdrnum(elf, &n) != 0)
		return ELFFILE_MALFORMED;
	if (n > ELFFILE_SECTIONS_MAX)
		return ELFFILE_TOO_LARGE;
	if (!n)
		return 0;
	ef->sections = calloc(n, sizeof(*ef->sections));
	if (!ef->sections)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		r = load_section(ef, elf, i);
		if (r)
			return r;
	}
	ef->n_sections = n;
	return load_section_names(ef, elf);
}

/* ---------------------------------------------------------------- the build id */

/* Reads one note; *@found for the build id. False at the end or at a malformed note. */
static bool next_note(struct elffile *ef, struct cursor *c, size_t align, bool *found)
{
	uint32_t n_name, n_desc, type;
	const void *name, *desc;
	size_t pad;

	if (!cursor_u32(c, &n_name) || !cursor_u32(c, &n_desc) || !cursor_u32(c, &type) ||
	    !cursor_bytes(c, n_name, &name))
		return false;
	pad = -cursor_pos(c) & (align - 1);
	if (!cursor_skip(c, pad) || !cursor_bytes(c, n_desc, &desc))
		return false;
	*found = type == NT_GNU_BUILD_ID && n_name == sizeof(ELF_NOTE_GNU) &&
		 memcmp(name, ELF_NOTE_GNU, sizeof(ELF_NOTE_GNU)) == 0 && n_desc > 0 &&
		 n_desc <= ELFFILE_BUILD_ID_MAX;
	if (*found) {
		memcpy(ef->build_id, desc, n_desc);
		ef->n_build_id = n_desc;
	}
	pad = -cursor_pos(c) & (align - 1);
	return !*found && cursor_skip(c, pad);
}

/* Notes are aligned by 4, in segments of alignment 8 by 8 (gABI, "Note Section"; LINUX ABI draft).
 */
static int search_notes(struct elffile *ef, uint64_t off, uint64_t size, uint64_t align,
			uint64_t *left)
{
	_cleanup_(freep) void *bytes = NULL;
	struct cursor c;
	bool found = false;
	int r;

	if (size > ELFFILE_NOTES_MAX)
		size = ELFFILE_NOTES_MAX;
	if (size > *left)
		return 0;
	*left -= size;
	r = elffile_read_new(ef, off, (size_t)size, &bytes);
	if (r)
		return r < 0 ? r : 0;
	cursor_init(&c, bytes, (size_t)size);
	while (next_note(ef, &c, align == 8 ? 8 : 4, &found))
		;
	return 0;
}

/* From the segments, because stripping keeps these; else from the sections, for files without
 * segments. */
static int load_build_id(struct elffile *ef, Elf *elf)
{
	uint64_t left = ELFFILE_ALL_NOTES_MAX;
	GElf_Phdr ph;
	size_t n = 0;
	int r = 0;

	if (elf_getphdrnum(elf, &n) != 0 || n > ELFFILE_PHDRS_MAX)
		return 0;
	for (size_t i = 0; i < n && !r && !ef->n_build_id; i++)
		if (gelf_getphdr(elf, (int)i, &ph) && ph.p_type == PT_NOTE)
			r = search_notes(ef, ph.p_offset, ph.p_filesz, ph.p_align, &left);
	for (size_t i = 0; i < ef->n_sections && !r && !ef->n_build_id; i++)
		if (ef->sections[i].section.type == SHT_NOTE)
			r = search_notes(ef, ef->sections[i].section.off,
					 ef->sections[i].section.size, 4, &left);
	return r;
}

/* ---------------------------------------------------------------- open */

static int load(struct elffile *ef, Elf *elf)
{
	GElf_Ehdr eh;
	int r;

	if (!elf || !gelf_getehdr(elf, &eh))
		return ELFFILE_MALFORMED;
	ef->type = eh.e_type;
	ef->machine = eh.e_machine;
	ef->entry = eh.e_entry;
	r = load_segments(ef, elf);
	if (!r)
		r = load_sections(ef, elf);
	if (!r)
		r = load_build_id(ef, elf);
	return r;
}

static int elffile_new(int fd, const void *data, uint64_t size, struct elffile **ret)
{
	_cleanup_(elffile_freep) struct elffile *ef = calloc(1, sizeof(*ef));
	_cleanup_(elf_endp) Elf *elf = NULL;
	int r;

	if (!ef)
		return -ENOMEM;
	ef->fd = fd;
	ef->data = data;
	ef->size = size;
	r = check_header(ef);
	if (!r && elf_version(EV_CURRENT) == EV_NONE)
		r = -EINVAL;
	if (!r) {
		/* libelf takes a char *, but reads only */
		elf = data ? elf_memory((char *)data, size) : elf_begin(fd, ELF_C_READ, NULL);
		r = load(ef, elf);
	}
	if (r) {
		ef->fd = -1; /* stays the caller's */
		return r;
	}
	*ret = take_ptr(ef);
	return 0;
}

int elffile_open(int fd, struct elffile **ret)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	return elffile_new(fd, NULL, st.st_size > 0 ? (uint64_t)st.st_size : 0, ret);
}

int elffile_open_memory(const void *data, size_t n, struct elffile **ret)
{
	return n ? elffile_new(-1, data, n, ret) : ELFFILE_NOT_ELF;
}

int elffile_open_process(int fd, uint16_t machine, const struct elffile_segment *segments, size_t n,
			 struct elffile **ret)
{
	_cleanup_(elffile_freep) struct elffile *ef = NULL;

	if (n > ELFFILE_PHDRS_MAX)
		return ELFFILE_TOO_LARGE;
	ef = calloc(1, sizeof(*ef));
	if (!ef)
		return -ENOMEM;
	ef->fd = -1;
	ef->segments = calloc(n ? n : 1, sizeof(*segments));
	if (!ef->segments)
		return -ENOMEM;
	memcpy(ef->segments, segments, n * sizeof(*segments));
	ef->n_segments = n;
	ef->machine = machine;
	ef->type = ET_EXEC;
	ef->size = INT64_MAX;
	ef->is_process = true;
	ef->fd = fd;
	*ret = take_ptr(ef);
	return 0;
}

void elffile_charge(struct elffile *ef, const struct elffile *payer)
{
	ef->work = payer->work;
}

void elffile_free(struct elffile *ef)
{
	if (!ef)
		return;
	if (!ef->is_borrowed) {
		if (ef->fd >= 0 && !__atomic_load_n(&ef->leave_open, __ATOMIC_RELAXED))
			close(ef->fd);
		free(ef->segments);
		free(ef->sections);
		free(ef->names);
	}
	free(ef);
}

void elffile_leave_open(struct elffile *ef)
{
	__atomic_store_n(&ef->leave_open, true, __ATOMIC_RELAXED);
}

int elffile_budgeted(const struct elffile *ef, struct work_budget *work, struct elffile **ret)
{
	struct elffile *handle = malloc(sizeof(*handle));

	if (!handle)
		return -ENOMEM;
	*handle = *ef;
	handle->is_borrowed = true;
	handle->work = work;
	work->outer = ef->work;
	*ret = handle;
	return 0;
}

/* ---------------------------------------------------------------- questions */

bool elffile_is_process(const struct elffile *ef)
{
	return ef->is_process;
}

uint16_t elffile_type(const struct elffile *ef)
{
	return ef->type;
}

uint64_t elffile_entry(const struct elffile *ef)
{
	return ef->entry;
}

uint16_t elffile_machine(const struct elffile *ef)
{
	return ef->machine;
}

uint64_t elffile_size(const struct elffile *ef)
{
	return ef->size;
}

int elffile_stat(const struct elffile *ef, struct stat *ret)
{
	return fstat(ef->fd, ret) < 0 ? -errno : 0;
}

int elffile_fd(const struct elffile *ef)
{
	return ef->fd;
}

const struct elffile_segment *elffile_segments(const struct elffile *ef, size_t *ret_n)
{
	*ret_n = ef->n_segments;
	return ef->segments;
}

int elffile_eh_frame_hdr(const struct elffile *ef, struct elffile_segment *ret)
{
	if (!ef->has_eh_frame_hdr)
		return ELFFILE_ABSENT;
	*ret = ef->eh_frame_hdr;
	return 0;
}

int elffile_relro(const struct elffile *ef, struct elffile_segment *ret)
{
	if (!ef->has_relro)
		return ELFFILE_ABSENT;
	*ret = ef->relro;
	return 0;
}

int elffile_section(const struct elffile *ef, const char *name, struct elffile_section *ret)
{
	for (size_t i = 0; i < ef->n_sections; i++) {
		if (ef->sections[i].name >= ef->n_names ||
		    strcmp(ef->names + ef->sections[i].name, name) != 0)
			continue;
		*ret = ef->sections[i].section;
		return 0;
	}
	return ELFFILE_ABSENT;
}

int elffile_section_at(const struct elffile *ef, uint32_t index, struct elffile_section *ret)
{
	if (index >= ef->n_sections)
		return ELFFILE_ABSENT;
	*ret = ef->sections[index].section;
	return 0;
}

int elffile_build_id(const struct elffile *ef, uint8_t ret[ELFFILE_BUILD_ID_MAX], size_t *ret_n)
{
	if (!ef->n_build_id)
		return ELFFILE_ABSENT;
	memcpy(ret, ef->build_id, ef->n_build_id);
	*ret_n = ef->n_build_id;
	return 0;
}

void elffile_build_id_text(const struct elffile *ef, char ret[ELFFILE_BUILD_ID_TEXT])
{
	static const char digits[] = "0123456789abcdef";
	uint8_t id[ELFFILE_BUILD_ID_MAX];
	size_t n = 0;

	if (elffile_build_id(ef, id, &n))
		n = 0;
	for (size_t i = 0; i < n; i++) {
		ret[2 * i] = digits[id[i] >> 4];
		ret[2 * i + 1] = digits[id[i] & 15];
	}
	ret[2 * n] = '\0';
}

/* Linked files give each byte to one segment. If segments overlap, code comes first, because the
 * callers look up code. */
bool elffile_vaddr_of_off(const struct elffile *ef, uint64_t off, uint64_t *ret_vaddr)
{
	const struct elffile_segment *best = NULL;

	for (size_t i = 0; i < ef->n_segments; i++) {
		const struct elffile_segment *s = &ef->segments[i];

		if (off < s->off || off - s->off >= s->filesz)
			continue;
		if (!best || (s->flags & PF_X && !(best->flags & PF_X)))
			best = s;
	}
	if (!best)
		return false;
	return !__builtin_add_overflow(best->vaddr, off - best->off, ret_vaddr);
}

bool elffile_off_of_vaddr(const struct elffile *ef, uint64_t vaddr, uint64_t *ret_off)
{
	for (size_t i = 0; i < ef->n_segments; i++) {
		const struct elffile_segment *s = &ef->segments[i];
		uint64_t off;

		if (vaddr < s->vaddr || vaddr - s->vaddr >= s->filesz)
			continue;
		if (__builtin_add_overflow(s->off, vaddr - s->vaddr, &off))
			continue;
		*ret_off = off;
		return true;
	}
	return false;
}
