// SPDX-License-Identifier: Apache-2.0
#include "support/ehimage.h"

#include <elf.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "unwind/rows.h"

/*
 * Front to back: ELF header, program headers, .eh_frame_hdr, names, note, .eh_frame at
 * EHIMAGE_EH_FRAME, .debug_frame, code, section headers. The first segment maps the file at 0, the
 * second the code.
 */
#define HDR_OFF	  0x200
#define NAMES_OFF 0x280
#define NOTE_OFF  0x2c0

/* Bytes of a build id. */
#define BUILD_ID_MAX 64

static const char names[] = "\0.eh_frame\0.debug_frame\0.shstrtab\0.text";

enum {
	SECTION_NULL,
	SECTION_EH_FRAME,
	SECTION_DEBUG_FRAME,
	SECTION_NAMES,
	SECTION_TEXT,
	N_SECTIONS,
};

struct headers {
	Elf64_Ehdr eh;
	Elf64_Phdr ph[4];
};

_Static_assert(sizeof(struct headers) <= HDR_OFF, "the headers end before .eh_frame_hdr");

struct note {
	Elf64_Nhdr nh;
	char name[4];
	char build_id[BUILD_ID_MAX];
};

_Static_assert(NOTE_OFF + sizeof(struct note) <= EHIMAGE_EH_FRAME,
	       "the note ends before .eh_frame");

static size_t bounded(size_t n)
{
	return n < EHIMAGE_SECTION_MAX ? n : EHIMAGE_SECTION_MAX;
}

static void fill_headers(struct headers *h, const struct ehimage *image, size_t size,
			 size_t sections_off)
{
	memcpy(h->eh.e_ident, ELFMAG, SELFMAG);
	h->eh.e_ident[EI_CLASS] = ELFCLASS64;
	h->eh.e_ident[EI_DATA] = ELFDATA2LSB;
	h->eh.e_ident[EI_VERSION] = EV_CURRENT;
	h->eh.e_type = image->type ? image->type : ET_DYN;
	h->eh.e_machine = image->machine ? image->machine : EM_X86_64;
	h->eh.e_version = EV_CURRENT;
	h->eh.e_ehsize = sizeof(h->eh);
	h->eh.e_entry = image->entry;
	h->eh.e_phoff = sizeof(h->eh);
	h->eh.e_phentsize = sizeof(Elf64_Phdr);
	h->eh.e_phnum = 4;
	h->eh.e_shentsize = sizeof(Elf64_Shdr);
	if (!image->no_sections) {
		h->eh.e_shoff = sections_off;
		h->eh.e_shnum = N_SECTIONS;
		h->eh.e_shstrndx = SECTION_NAMES;
	}
	h->ph[0] =
		(Elf64_Phdr){.p_type = PT_LOAD, .p_flags = PF_R, .p_filesz = size, .p_memsz = size};
	h->ph[1] = (Elf64_Phdr){.p_type = PT_LOAD,
				.p_flags = PF_R | PF_X,
				.p_vaddr = EHIMAGE_TEXT,
				.p_memsz = EHIMAGE_TEXT_END - EHIMAGE_TEXT};
	h->ph[2] = (Elf64_Phdr){.p_type = image->eh_frame ? PT_GNU_EH_FRAME : PT_NULL,
				.p_flags = PF_R,
				.p_offset = HDR_OFF,
				.p_vaddr = HDR_OFF,
				.p_filesz = 12,
				.p_memsz = 12};
}

static void fill_sections(Elf64_Shdr sh[N_SECTIONS], const struct ehimage *image)
{
	size_t n_eh = bounded(image->n_eh_frame), n_debug = bounded(image->n_debug_frame);

	if (image->eh_frame)
		sh[SECTION_EH_FRAME] = (Elf64_Shdr){.sh_name = 1,
						    .sh_type = SHT_PROGBITS,
						    .sh_flags = SHF_ALLOC,
						    .sh_addr = EHIMAGE_EH_FRAME,
						    .sh_offset = EHIMAGE_EH_FRAME,
						    .sh_size = n_eh + image->more};
	if (image->debug_frame)
		sh[SECTION_DEBUG_FRAME] =
			(Elf64_Shdr){.sh_name = 11,
				     .sh_type = SHT_PROGBITS,
				     .sh_flags = image->compressed ? SHF_COMPRESSED : 0,
				     .sh_offset = EHIMAGE_EH_FRAME + n_eh,
				     .sh_size = n_debug};
	if (image->n_text)
		sh[SECTION_TEXT] = (Elf64_Shdr){.sh_name = 34,
						.sh_type = SHT_PROGBITS,
						.sh_flags = SHF_ALLOC | SHF_EXECINSTR,
						.sh_addr = EHIMAGE_TEXT,
						.sh_offset = EHIMAGE_EH_FRAME + n_eh + n_debug,
						.sh_size = bounded(image->n_text)};
	sh[SECTION_NAMES] = (Elf64_Shdr){.sh_name = 24,
					 .sh_type = SHT_STRTAB,
					 .sh_offset = NAMES_OFF,
					 .sh_size = sizeof(names)};
}

static void add_note(struct headers *h, const struct ehimage *image, uint8_t *bytes)
{
	struct note note = {.nh = {.n_namesz = 4, .n_type = NT_GNU_BUILD_ID}, .name = "GNU"};
	size_t n;

	if (!image->build_id)
		return;
	n = strnlen(image->build_id, BUILD_ID_MAX);
	note.nh.n_descsz = (Elf64_Word)n;
	memcpy(note.build_id, image->build_id, n);
	memcpy(bytes + NOTE_OFF, &note, sizeof(note));
	n += offsetof(struct note, build_id);
	h->ph[3] = (Elf64_Phdr){.p_type = PT_NOTE,
				.p_flags = PF_R,
				.p_offset = NOTE_OFF,
				.p_vaddr = NOTE_OFF,
				.p_filesz = n,
				.p_memsz = n,
				.p_align = 4};
}

/* .eh_frame_hdr at the end of the file. */
static void add_index(struct headers *h, const struct ehimage *image, uint8_t *bytes, size_t off)
{
	/* version 1; the address relative to itself, the count, and pairs relative to the header */
	int32_t words[3] = {0x3b031b01, EHIMAGE_EH_FRAME - (int32_t)(off + 4),
			    (int32_t)image->n_pairs};

	memcpy(bytes + off, words, sizeof(words));
	for (size_t i = 0; i < image->n_pairs; i++) {
		const struct ehimage_pair *p = &image->pairs[i];
		const int32_t pair[2] = {(int32_t)(p->vaddr - off),
					 (int32_t)(EHIMAGE_EH_FRAME + p->pos - off)};

		memcpy(bytes + off + sizeof(words) + i * sizeof(pair), pair, sizeof(pair));
	}
	h->ph[2].p_offset = h->ph[2].p_vaddr = off;
	h->ph[2].p_filesz = h->ph[2].p_memsz = sizeof(words) + image->n_pairs * sizeof(*words) * 2;
}

bool ehimage_rows_are_sane(const struct rows *rows)
{
	for (size_t i = 0; i < rows_count(rows); i++) {
		struct row row = rows_at(rows, i);

		if (row.vaddr < EHIMAGE_TEXT || row.vaddr > EHIMAGE_TEXT_END ||
		    row.rule >= rows_n_rules(rows) || rows_find(rows, row.vaddr) != i)
			return false;
		if (i && (rows_at(rows, i - 1).vaddr >= row.vaddr ||
			  rows_at(rows, i - 1).rule == row.rule))
			return false;
	}
	return !rows_count(rows) || rows_at(rows, rows_count(rows) - 1).rule == 0;
}

void *ehimage_build(const struct ehimage *image, size_t *ret_n)
{
	/* version 1; the address relative to itself, 4 bytes; no table */
	static const uint8_t hdr[4] = {1, 0x1b, 0xff, 0xff};
	size_t n_eh = bounded(image->n_eh_frame), n_debug = bounded(image->n_debug_frame);
	size_t n_text = bounded(image->n_text);
	size_t text_off = EHIMAGE_EH_FRAME + n_eh + n_debug, sections_off = text_off + n_text;
	size_t index_off =
		sections_off + (image->no_sections ? 0 : N_SECTIONS * sizeof(Elf64_Shdr));
	size_t size = index_off + (image->n_pairs ? 12 + 8 * image->n_pairs : 0);
	Elf64_Shdr sh[N_SECTIONS] = {0};
	struct headers headers = {0};
	int32_t to_eh_frame = EHIMAGE_EH_FRAME - (HDR_OFF + 4);
	uint8_t *bytes = calloc(1, size);

	if (!bytes)
		return NULL;
	fill_headers(&headers, image, size, sections_off);
	add_note(&headers, image, bytes);
	headers.ph[1].p_offset = text_off;
	headers.ph[1].p_filesz = n_text;
	if (image->n_pairs)
		add_index(&headers, image, bytes, index_off);
	if (n_text)
		memcpy(bytes + text_off, image->text, n_text);
	memcpy(bytes, &headers, sizeof(headers));
	memcpy(bytes + HDR_OFF, hdr, sizeof(hdr));
	memcpy(bytes + HDR_OFF + sizeof(hdr), &to_eh_frame, sizeof(to_eh_frame));
	memcpy(bytes + NAMES_OFF, names, sizeof(names));
	if (n_eh)
		memcpy(bytes + EHIMAGE_EH_FRAME, image->eh_frame, n_eh);
	if (n_debug)
		memcpy(bytes + EHIMAGE_EH_FRAME + n_eh, image->debug_frame, n_debug);
	if (!image->no_sections) {
		fill_sections(sh, image);
		memcpy(bytes + sections_off, sh, sizeof(sh));
	}
	*ret_n = size;
	return bytes;
}
