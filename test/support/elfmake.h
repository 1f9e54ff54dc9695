/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_TEST_SUPPORT_ELFMAKE_H
#define PODPROF_TEST_SUPPORT_ELFMAKE_H

/* ELF files of any size, made in memory from sections and segments. */

#include <elf.h>
#include <stddef.h>
#include <stdint.h>

#define ELFMAKE_SECTIONS_MAX 16
#define ELFMAKE_NAMES	     0x400 /* bytes of the sections' names */

struct elfmake {
	Elf64_Ehdr eh;
	Elf64_Shdr sh[ELFMAKE_SECTIONS_MAX]; /* the first is that of names */
	char names[ELFMAKE_NAMES];
	size_t n_names;
	Elf64_Phdr *ph; /* owned */
	size_t n_ph;
	uint8_t *data; /* owned: headers, then the sections' bytes */
	size_t n, cap;
};

/* @room: bytes of all sections together. */
void elfmake_init(struct elfmake *m, uint16_t type, size_t room);
void elfmake_deinit(struct elfmake *m);
/* Adds @n bytes; all zeros if @data is NULL. Returns their offset in the file. */
size_t elfmake_bytes(struct elfmake *m, const void *data, size_t n);
/* Adds a section for bytes of the file; returns its index. */
size_t elfmake_section(struct elfmake *m, const char *name, uint32_t type, uint64_t flags,
		       uint64_t vaddr, size_t off, size_t n);
void elfmake_segment(struct elfmake *m, uint32_t type, uint32_t flags, uint64_t vaddr, size_t off,
		     size_t n);
/* Writes the headers. The file is @m->data, of @m->n bytes. */
void elfmake_finish(struct elfmake *m);

/* A section of elfmake_code(), from the segment's begin on. */
struct elfmake_part {
	uint64_t start, end;
	uint64_t flags;
};

/* A whole file: an executable segment of @n zeros at @vaddr, and sections of it. Returns the
 * segment's offset in the file. */
size_t elfmake_code(struct elfmake *m, uint64_t vaddr, size_t n, const struct elfmake_part *parts,
		    size_t n_parts);

#endif
