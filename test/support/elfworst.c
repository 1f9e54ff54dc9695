// SPDX-License-Identifier: Apache-2.0
#include "support/elfworst.h"

#include <string.h>

#include "support/test.h"

Elf64_Sym *elfworst_functions(size_t n)
{
	Elf64_Sym *symbols = calloc(n, sizeof(*symbols));

	assert_non_null(symbols);
	for (size_t i = 0; i < n; i++)
		symbols[i] = (Elf64_Sym){.st_name = 1,
					 .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
					 .st_shndx = 2,
					 .st_value = ELFWORST_TEXT};
	return symbols;
}

void elfworst_symbols(struct elfmake *m, uint16_t type, size_t n_code, Elf64_Sym *symbols, size_t n,
		      char *names, size_t n_names)
{
	size_t code, off, strings;

	elfmake_init(m, type, n_code + n * sizeof(*symbols) + n_names);
	code = elfmake_bytes(m, NULL, n_code);
	elfmake_section(m, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, ELFWORST_TEXT, code,
			n_code);
	elfmake_segment(m, PT_LOAD, PF_R | PF_X, ELFWORST_TEXT, code, n_code);
	off = elfmake_bytes(m, symbols, n * sizeof(*symbols));
	strings = elfmake_bytes(m, names, n_names);
	strings = elfmake_section(m, ".strtab", SHT_STRTAB, 0, 0, strings, n_names);
	off = elfmake_section(m, ".symtab", SHT_SYMTAB, 0, 0, off, n * sizeof(*symbols));
	m->sh[off].sh_entsize = sizeof(*symbols);
	m->sh[off].sh_link = (Elf64_Word)strings;
	free(symbols);
	free(names);
}

char *elfworst_name(size_t n)
{
	char *names = malloc(n);

	assert_non_null(names);
	memset(names, 'a', n);
	names[0] = names[n - 1] = '\0';
	return names;
}

void elfworst_labels(struct elfmake *m, size_t n)
{
	Elf64_Sym *symbols = elfworst_functions(n);

	for (size_t i = 1; i < n; i++)
		symbols[i].st_value = ELFWORST_TEXT + 16;
	symbols[0].st_size = 64;
	elfworst_symbols(m, ET_DYN, 4096, symbols, n, elfworst_name(8), 8);
}

void elfworst_one_name(struct elfmake *m, size_t n)
{
	elfworst_symbols(m, ET_DYN, 4096, elfworst_functions(n), n, elfworst_name(24 * n), 24 * n);
}

void elfworst_segments(struct elfmake *m, size_t n, size_t n_bytes)
{
	size_t code, words;

	elfmake_init(m, ET_EXEC, 4096 + n_bytes);
	code = elfmake_bytes(m, NULL, 4096);
	elfmake_segment(m, PT_LOAD, PF_R | PF_X, ELFWORST_TEXT, code, 4096);
	words = elfmake_bytes(m, NULL, n_bytes);
	for (size_t i = 0; i < n; i++)
		elfmake_segment(m, PT_LOAD, PF_R | PF_W, ELFWORST_TEXT + 0x1000000 + 4096 * i,
				words, n_bytes);
}

/* ---------------------------------------------------------------- .eh_frame */

static const uint8_t cie[24] = {20, 0,	  0,  0, 0,    0,  0, 0, 1,    'z', 'R', 0,
				1,  0x78, 16, 1, 0x1b, 12, 7, 8, 0x90, 1,   0,	 0};

/* Bytes of .eh_frame_hdr before the pairs. */
#define INDEX_HEAD 12

void elfworst_fdes(struct elfmake *m, size_t n,
		   void (*fill)(struct elfworst_fde *f, size_t i, size_t n), size_t n_code)
{
	size_t size = sizeof(cie) + n * sizeof(struct elfworst_fde), off;
	uint8_t *bytes = calloc(1, size);

	assert_non_null(bytes);
	memcpy(bytes, cie, sizeof(cie));
	for (size_t i = 0; i < n; i++) {
		size_t at = sizeof(cie) + i * sizeof(struct elfworst_fde);
		struct elfworst_fde f = {.length = 20, .cie = (uint32_t)at + 4};

		fill(&f, i, n);
		/* relative to itself; the section is at 0 */
		f.start += (uint32_t)(ELFWORST_TEXT - (at + 8));
		memcpy(bytes + at, &f, sizeof(f));
	}
	elfmake_init(m, ET_DYN, size + n_code + INDEX_HEAD + 8 * n);
	off = elfmake_bytes(m, bytes, size);
	free(bytes);
	elfmake_section(m, ".eh_frame", SHT_PROGBITS, SHF_ALLOC, 0, off, size);
	off = elfmake_bytes(m, NULL, n_code);
	elfmake_segment(m, PT_LOAD, PF_R | PF_X, ELFWORST_TEXT, off, n_code);
}

void elfworst_index(struct elfmake *m, size_t n)
{
	const uint64_t vaddr = ELFWORST_TEXT + 32 * n;
	int32_t *words = calloc(1, INDEX_HEAD + 8 * n);
	size_t off;

	assert_non_null(words);
	memcpy(words, "\1\x1b\3\x3b", 4);
	words[1] = -(int32_t)(vaddr + 4); /* .eh_frame is at 0 */
	words[2] = (int32_t)n;
	for (size_t i = 0; i < n; i++) {
		words[3 + 2 * i] = (int32_t)(ELFWORST_TEXT + 32 * i - vaddr);
		words[4 + 2 * i] = (int32_t)(sizeof(cie) + i * sizeof(struct elfworst_fde) - vaddr);
	}
	off = elfmake_bytes(m, words, INDEX_HEAD + 8 * n);
	elfmake_segment(m, PT_GNU_EH_FRAME, PF_R, vaddr, off, INDEX_HEAD + 8 * n);
	free(words);
}

void elfworst_fill_growing(struct elfworst_fde *f, size_t i, size_t n)
{
	f->start = (uint32_t)(32 * i);
	f->size = 32;
	f->length = (uint32_t)((n - i) * sizeof(*f) - 4);
	/* an expression for a register of no interest, as long as the next FDE's head */
	if (i + 1 < n)
		memcpy(f->program, "\0\0\0\0\x10\0\x11", 7);
}

void elfworst_fill_nested(struct elfworst_fde *f, size_t i, size_t n)
{
	f->start = (uint32_t)i;
	f->size = (uint32_t)(2 * (n - i));
	memcpy(f->program, "\x41\x0e\x10", 3);
}

/* ---------------------------------------------------------------- Go */

#define GO_HEADER 72u
#define GO_RECORD 44u
#define GO_PCS	  96u

void elfworst_go(struct elfmake *m, size_t n, bool over)
{
	const uint32_t n_code = (uint32_t)(over ? n : 16 * n);
	const size_t n_pcs = (2 * n + 16) & ~(size_t)7, funcs = GO_PCS + n_pcs;
	const size_t records = 8 * (n + 1), size = funcs + records + n * GO_RECORD + 64;
	const uint64_t words[] = {n, 1, ELFWORST_TEXT, GO_HEADER, 80, 88, GO_PCS, funcs};
	uint8_t *t = calloc(1, size);
	size_t code, off;

	assert_non_null(t);
	memcpy(t, "\xf1\xff\xff\xff\0\0\1\x08", 8);
	memcpy(t + 8, words, sizeof(words));
	memcpy(t + GO_HEADER, "f", 2);
	memcpy(t + 88, "f.go", 5);
	for (size_t i = 0; i < n; i++) {
		t[GO_PCS + 1 + 2 * i] = i % 2 ? 15 : 16 + (i ? 0 : 2); /* + 9, - 8, + 8, ... */
		t[GO_PCS + 2 + 2 * i] = 1;
	}
	for (uint32_t i = 0; i <= n; i++) {
		uint32_t start = over ? i % 2 * n_code : i * (n_code / (uint32_t)n);
		uint32_t record = (uint32_t)(records + i * GO_RECORD);
		uint32_t fields[11] = {start, 0, 0, 0, 1, 1, 1};

		memcpy(t + funcs + 8 * i, &start, 4);
		if (i == n)
			break;
		memcpy(t + funcs + 8 * i + 4, &record, 4);
		memcpy(t + funcs + record, fields, sizeof(fields));
	}
	if (over) { /* its end, for the search in the table */
		uint32_t end = n_code;

		memcpy(t + funcs + 8 * n, &end, 4);
	}
	elfmake_init(m, ET_EXEC, n_code + size);
	code = elfmake_bytes(m, NULL, n_code);
	elfmake_segment(m, PT_LOAD, PF_R | PF_X, ELFWORST_TEXT, code, n_code);
	off = elfmake_bytes(m, t, size);
	elfmake_section(m, ".gopclntab", SHT_PROGBITS, SHF_ALLOC, 0x40000000, off, size);
	elfmake_segment(m, PT_LOAD, PF_R, 0x40000000, off, size);
	free(t);
}
