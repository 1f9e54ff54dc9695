// SPDX-License-Identifier: Apache-2.0
#include "symbolize/dwarfsections.h"

#include <errno.h>
#include <gelf.h>
#include <libelf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "symbolize/dwarfwire.h"

struct section {
	Elf_Scn *scn; /* NULL: absent, or read */
	bool is_gnu;  /* .zdebug_NAME, the compression of old compilers */
	struct cursor bytes;
};

struct dwarfsections {
	Elf *elf;
	struct section items[DWARFSECTION_MAX];
};

/* Without ".debug_". */
static const char *const names[DWARFSECTION_MAX] = {
	[DWARFSECTION_INFO] = "info",
	[DWARFSECTION_ABBREV] = "abbrev",
	[DWARFSECTION_LINE] = "line",
	[DWARFSECTION_STR] = "str",
	[DWARFSECTION_LINE_STR] = "line_str",
	[DWARFSECTION_RANGES] = "ranges",
	[DWARFSECTION_RNGLISTS] = "rnglists",
	[DWARFSECTION_ADDR] = "addr",
	[DWARFSECTION_STR_OFFSETS] = "str_offsets",
	[DWARFSECTION_TYPES] = "types",
};

/* The part of @name behind @prefix; NULL if @name begins otherwise. */
static const char *after(const char *name, const char *prefix)
{
	const size_t n = strlen(prefix);

	return strncmp(name, prefix, n) == 0 ? name + n : NULL;
}

static void add_section(struct dwarfsections *s, Elf_Scn *scn, const char *name)
{
	const char *plain = after(name, ".debug_"), *gnu = after(name, ".zdebug_");

	for (size_t i = 0; i < DWARFSECTION_MAX && (plain || gnu); i++)
		if (strcmp(plain ? plain : gnu, names[i]) == 0 && !s->items[i].scn)
			s->items[i] = (struct section){.scn = scn, .is_gnu = !plain};
}

static void find_sections(struct dwarfsections *s)
{
	Elf_Scn *scn = NULL;
	size_t names_at;

	if (elf_getshdrstrndx(s->elf, &names_at))
		return;
	while ((scn = elf_nextscn(s->elf, scn))) {
		GElf_Shdr header;
		const char *name;

		if (!gelf_getshdr(scn, &header) || header.sh_type == SHT_NOBITS)
			continue;
		name = elf_strptr(s->elf, names_at, header.sh_name);
		if (name)
			add_section(s, scn, name);
	}
}

int dwarfsections_open(int fd, struct dwarfsections **ret)
{
	struct dwarfsections *s = calloc(1, sizeof(*s));
	const char *ident;
	size_t n;

	if (!s)
		return -ENOMEM;
	elf_version(EV_CURRENT);
	s->elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	ident = s->elf ? elf_getident(s->elf, &n) : NULL;
	if (ident && n >= EI_NIDENT && elf_kind(s->elf) == ELF_K_ELF &&
	    ident[EI_CLASS] == ELFCLASS64 && ident[EI_DATA] == ELFDATA2LSB)
		find_sections(s);
	if (!s->items[DWARFSECTION_INFO].scn || !s->items[DWARFSECTION_ABBREV].scn) {
		dwarfsections_free(s);
		return DWARFSECTIONS_UNSUPPORTED;
	}
	*ret = s;
	return 0;
}

int dwarfsections_open_memory(const struct cursor sections[DWARFSECTION_MAX],
			      struct dwarfsections **ret)
{
	struct dwarfsections *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	for (size_t i = 0; i < DWARFSECTION_MAX; i++)
		s->items[i].bytes = sections[i];
	*ret = s;
	return 0;
}

void dwarfsections_free(struct dwarfsections *s)
{
	if (s)
		elf_end(s->elf);
	free(s);
}

static void read_section(struct section *section)
{
	Elf_Scn *scn = take_ptr(section->scn);
	const Elf_Data *data;
	GElf_Shdr header;

	if (section->is_gnu && elf_compress_gnu(scn, 0, 0) < 0)
		return;
	if (gelf_getshdr(scn, &header) && header.sh_flags & SHF_COMPRESSED &&
	    elf_compress(scn, 0, 0) < 0)
		return;
	data = elf_rawdata(scn, NULL);
	if (data && data->d_buf)
		cursor_init(&section->bytes, data->d_buf, data->d_size);
}

struct cursor dwarfsections_get(struct dwarfsections *s, enum dwarfsection section)
{
	if (s->items[section].scn)
		read_section(&s->items[section]);
	return s->items[section].bytes;
}

struct cursor dwarfsections_at(struct dwarfsections *s, enum dwarfsection section, uint64_t off)
{
	struct cursor bytes = dwarfsections_get(s, section);

	if (!cursor_seek(&bytes, off))
		bytes.pos = bytes.end;
	return bytes;
}

const char *dwarfsections_string(struct dwarfsections *s, enum dwarfsection section, uint64_t off)
{
	struct cursor bytes = dwarfsections_at(s, section, off);
	const size_t left = cursor_left(&bytes);

	if (!left || !memchr(bytes.pos, '\0',
			     left < DWARFWIRE_STRING_MAX + 1 ? left : DWARFWIRE_STRING_MAX + 1))
		return NULL;
	return (const char *)bytes.pos;
}
