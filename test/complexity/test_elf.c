// SPDX-License-Identifier: Apache-2.0
/* Files that are ELF, or should be: agent/elf. */
#include "support/test.h"

#include <string.h>
#include <zlib.h>

#include "complexity/count.h"
#include "complexity/elf.h"
#include "complexity/growth.h"
#include "elf/elffile.h"
#include "elf/elfinflate.h"
#include "elf/elfsym.h"
#include "support/elfworst.h"

#define TEXT ELFWORST_TEXT

/* Notes without a build id, in all segments. */
static uint64_t elffile_notes(size_t n)
{
	struct elffile *file;
	struct elfmake m;
	uint64_t before;
	size_t off;

	elfmake_init(&m, ET_DYN, 64 * n);
	off = elfmake_bytes(&m, NULL, 64 * n);
	for (size_t i = 0; i < n; i++)
		elfmake_segment(&m, PT_NOTE, PF_R, TEXT, off, 64 * n);
	before = count_now();
	file = open_made(&m);
	before = count_now() - before;
	elffile_free(file);
	elfmake_deinit(&m);
	return before;
}

static uint64_t elfsym_names(size_t n)
{
	static const char *const wanted[] = {"a", "aa", "aaa", "aaaa"};
	Elf64_Sym *symbols = elfworst_functions(n);
	struct elfsym found[array_size(wanted)];
	struct elffile *file;
	struct elfmake m;
	uint64_t before;

	for (size_t i = 0; i < n; i++) {
		symbols[i].st_info = ELF64_ST_INFO(STB_LOCAL, STT_OBJECT);
		symbols[i].st_name = (Elf64_Word)(8 * n - 2);
		symbols[i].st_value = TEXT + i;
	}
	elfworst_symbols(&m, ET_DYN, 4096, symbols, n, elfworst_name(8 * n), 8 * n);
	file = open_made(&m);
	before = count_now();
	assert_int_equal(
		elfsym_find(file, ELFSYM_SYMTAB, ELFSYM_DATA, wanted, array_size(wanted), found),
		0);
	before = count_now() - before;
	assert_int_equal(found[0].n, n);
	elffile_free(file);
	elfmake_deinit(&m);
	return before;
}

/* A compressed .debug_frame: empty blocks, or zeros. */
static uint64_t run_inflate(size_t n, bool zeros)
{
	Elf64_Chdr header = {.ch_type = ELFCOMPRESS_ZLIB, .ch_size = zeros ? n : 64};
	uLongf room = (uLongf)(2 * n + 4096), packed = 0;
	uint8_t *bytes = calloc(1, room), *raw = calloc(1, n);
	struct elffile_section section;
	struct elffile *file;
	struct elfmake m;
	uint64_t before;
	void *out = NULL;
	size_t n_out;
	int r;

	assert_true(bytes && raw);
	if (zeros) {
		packed = room;
		assert_int_equal(compress(bytes, &packed, raw, n), Z_OK);
	} else {
		memcpy(bytes, "\x78\x9c", 2);
		for (packed = 2; packed + 5 < n; packed += 5)
			memcpy(bytes + packed, "\0\0\0\xff\xff", 5);
	}
	elfmake_init(&m, ET_DYN, sizeof(header) + packed);
	elfmake_bytes(&m, &header, sizeof(header));
	elfmake_bytes(&m, bytes, packed);
	elfmake_section(&m, ".debug_frame", SHT_PROGBITS, SHF_COMPRESSED, 0,
			m.n - packed - sizeof(header), packed + sizeof(header));
	file = open_made(&m);
	assert_int_equal(elffile_section(file, ".debug_frame", &section), 0);
	before = count_now();
	r = elfinflate(file, &section, 1 << 26, &out, &n_out);
	before = count_now() - before;
	assert_int_equal(r, zeros ? 0 : ELFFILE_MALFORMED);
	free(out);
	free(bytes);
	free(raw);
	elffile_free(file);
	elfmake_deinit(&m);
	return before;
}

static uint64_t elfinflate_blocks(size_t n)
{
	return run_inflate(n, false);
}

static uint64_t elfinflate_zeros(size_t n)
{
	return run_inflate(n, true);
}

static const struct growth rows[] = {
	{"elfsym: one name", elfsym_names, 4096, GROWS},
	{"elfinflate: empty blocks", elfinflate_blocks, 1 << 17, ENDS},
	{"elfinflate: zeros", elfinflate_zeros, 1 << 18, GROWS},
	{"elffile: notes in all segments", elffile_notes, 256, ENDS},
};

int main(void)
{
	return growth_main(rows, array_size(rows));
}
