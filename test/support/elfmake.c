// SPDX-License-Identifier: Apache-2.0
#include "support/elfmake.h"

#include <string.h>

#include "support/test.h"

/* Front to back: ELF header, sections' headers, names, segments' headers, bytes. */
#define SECTIONS_OFF sizeof(Elf64_Ehdr)
#define NAMES_OFF    (SECTIONS_OFF + ELFMAKE_SECTIONS_MAX * sizeof(Elf64_Shdr))
#define SEGMENTS_OFF (NAMES_OFF + ELFMAKE_NAMES)
#define SEGMENTS_MAX 1170
#define BYTES_OFF    (SEGMENTS_OFF + SEGMENTS_MAX * sizeof(Elf64_Phdr))

void elfmake_init(struct elfmake *m, uint16_t type, size_t room)
{
	memset(m, 0, sizeof(*m));
	m->cap = BYTES_OFF + room;
	m->n = BYTES_OFF;
	m->data = calloc(1, m->cap);
	m->ph = calloc(SEGMENTS_MAX, sizeof(*m->ph));
	assert_true(m->data && m->ph);
	memcpy(m->eh.e_ident, ELFMAG, SELFMAG);
	m->eh.e_ident[EI_CLASS] = ELFCLASS64;
	m->eh.e_ident[EI_DATA] = ELFDATA2LSB;
	m->eh.e_ident[EI_VERSION] = EV_CURRENT;
	m->eh.e_type = type;
	m->eh.e_machine = EM_X86_64;
	m->eh.e_version = EV_CURRENT;
	m->eh.e_ehsize = sizeof(m->eh);
	m->eh.e_phoff = SEGMENTS_OFF;
	m->eh.e_phentsize = sizeof(Elf64_Phdr);
	m->eh.e_shoff = SECTIONS_OFF;
	m->eh.e_shentsize = sizeof(Elf64_Shdr);
	m->eh.e_shnum = 1;
	m->n_names = 1;
	m->eh.e_shstrndx =
		(uint16_t)elfmake_section(m, ".names", SHT_STRTAB, 0, 0, NAMES_OFF, ELFMAKE_NAMES);
}

void elfmake_deinit(struct elfmake *m)
{
	free(m->data);
	free(m->ph);
}

size_t elfmake_bytes(struct elfmake *m, const void *data, size_t n)
{
	size_t off = m->n;

	assert_true(n <= m->cap - m->n);
	if (data)
		memcpy(m->data + off, data, n);
	m->n += n;
	return off;
}

size_t elfmake_section(struct elfmake *m, const char *name, uint32_t type, uint64_t flags,
		       uint64_t vaddr, size_t off, size_t n)
{
	size_t i = m->eh.e_shnum++, length = strlen(name) + 1;

	assert_true(i < ELFMAKE_SECTIONS_MAX && m->n_names + length <= ELFMAKE_NAMES);
	memcpy(m->names + m->n_names, name, length);
	m->sh[i] = (Elf64_Shdr){.sh_name = (Elf64_Word)m->n_names,
				.sh_type = type,
				.sh_flags = flags,
				.sh_addr = vaddr,
				.sh_offset = off,
				.sh_size = n};
	m->n_names += length;
	return i;
}

void elfmake_segment(struct elfmake *m, uint32_t type, uint32_t flags, uint64_t vaddr, size_t off,
		     size_t n)
{
	assert_true(m->n_ph < SEGMENTS_MAX);
	m->ph[m->n_ph++] = (Elf64_Phdr){.p_type = type,
					.p_flags = flags,
					.p_vaddr = vaddr,
					.p_offset = off,
					.p_filesz = n,
					.p_memsz = n,
					.p_align = 4};
}

void elfmake_finish(struct elfmake *m)
{
	m->eh.e_phnum = (uint16_t)m->n_ph;
	memcpy(m->data, &m->eh, sizeof(m->eh));
	memcpy(m->data + SECTIONS_OFF, m->sh, sizeof(m->sh));
	memcpy(m->data + NAMES_OFF, m->names, sizeof(m->names));
	memcpy(m->data + SEGMENTS_OFF, m->ph, m->n_ph * sizeof(*m->ph));
}

size_t elfmake_code(struct elfmake *m, uint64_t vaddr, size_t n, const struct elfmake_part *parts,
		    size_t n_parts)
{
	size_t code;

	elfmake_init(m, ET_DYN, n);
	m->eh.e_machine = EM_X86_64;
	code = elfmake_bytes(m, NULL, n);
	elfmake_segment(m, PT_LOAD, PF_R | PF_X, vaddr, code, n);
	for (size_t i = 0; i < n_parts; i++)
		elfmake_section(m, ".part", SHT_PROGBITS, parts[i].flags, vaddr + parts[i].start,
				code + parts[i].start, parts[i].end - parts[i].start);
	elfmake_finish(m);
	return code;
}
