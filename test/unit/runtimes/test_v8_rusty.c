// SPDX-License-Identifier: Apache-2.0
/* V8 in programs of Rust: files with a version, and processes with the variables of the builtins.
 */
#include "support/test.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "elf/elffile.h"
#include "runtimes/v8_builtins.h"
#include "runtimes/v8_layout.h"
#include "runtimes/v8_rusty.h"
#include "support/elfmake.h"
#include "support/flatmemory.h"

/* Where the search's second piece begins: 32 KiB, without the bytes that both have. */
#define SECOND ((32u << 10) - 31)

#define NAMES "\0napi_create_function\0napi_wrap"
#define NAPI  1
#define OTHER 22

#define CODE_AT	  0x10000u
#define CODE_SIZE 0x40000u
#define BSS_AT	  0x80000u

/* ---------------------------------------------------------------- files */

/* A program with the function at @name of NAMES and @n bytes of read-only data. */
static void make_file(struct elfmake *m, uint32_t name, const char *data, size_t n, uint64_t bss)
{
	const Elf64_Sym symbols[2] = {[1] = {.st_name = name,
					     .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
					     .st_shndx = 1,
					     .st_value = CODE_AT}};
	size_t strings, at, index;

	elfmake_init(m, ET_DYN, n + 4096);
	m->eh.e_machine = EM_X86_64;
	at = elfmake_bytes(m, NAMES, sizeof(NAMES));
	strings = elfmake_section(m, ".dynstr", SHT_STRTAB, SHF_ALLOC, 0, at, sizeof(NAMES));
	at = elfmake_bytes(m, symbols, sizeof(symbols));
	index = elfmake_section(m, ".dynsym", SHT_DYNSYM, SHF_ALLOC, 0, at, sizeof(symbols));
	m->sh[index].sh_link = (uint32_t)strings;
	m->sh[index].sh_entsize = sizeof(*symbols);
	at = elfmake_bytes(m, data, n);
	elfmake_section(m, ".rodata", SHT_PROGBITS, SHF_ALLOC, 0x1000, at, n);
	if (bss)
		elfmake_section(m, ".bss", SHT_NOBITS, SHF_ALLOC | SHF_WRITE, BSS_AT, m->n, bss);
	elfmake_segment(m, PT_LOAD, PF_R | PF_X, CODE_AT, 0, CODE_SIZE);
	m->ph[0].p_filesz = 0;
	elfmake_finish(m);
}

static int probe(uint32_t name, const char *data, size_t n, uint64_t bss, struct v8_image *ret)
{
	_cleanup_(elffile_freep) struct elffile *file = NULL;
	struct elfmake m;
	int r;

	make_file(&m, name, data, n, bss);
	assert_int_equal(elffile_open_memory(m.data, m.n, &file), 0);
	r = v8_image_probe(file, ret);
	elfmake_deinit(&m);
	return r;
}

static const struct file_row {
	const char *what;
	const char *text;
	size_t at;
	int outcome;
	uint32_t version[3];
} file_rows[] = {
	{"as it is", "15.0.245.2-rusty", 100, V8_OK, {15, 0, 245}},
	{"at the beginning", "12.9.202.13-rusty", 0, V8_OK, {12, 9, 202}},
	{"behind other text", "V8 14.5.201.2-rusty", 100, V8_OK, {14, 5, 201}},
	{"across two pieces", "13.0.245.12-rusty", SECOND + 15, V8_OK, {13, 0, 245}},
	{"at the end of a piece", "13.0.245.12-rusty", SECOND + 31 - 17, V8_OK, {13, 0, 245}},
	{"in the second piece", "13.0.245.12-rusty", SECOND + 31, V8_OK, {13, 0, 245}},
	{"another first", "is-rusty, 14.9.207.2-rusty", 100, V8_OK, {14, 9, 207}},
	{"a version that is not known", "99.1.2.3-rusty", 100, V8_VERSION, {99, 1, 2}},
	{"two numbers", "15.0-rusty", 100, V8_ABSENT, {0}},
	{"no number", "15..245.2-rusty", 100, V8_ABSENT, {0}},
	{"a long number", "1515151515151515151515.0.245.2-rusty", 100, V8_ABSENT, {0}},
	{"another build", "15.0.245.2", 100, V8_ABSENT, {0}},
};

static void files(void **state)
{
	static char data[SECOND + 4096];

	(void)state;
	for (size_t i = 0; i < array_size(file_rows); i++) {
		const struct file_row *row = &file_rows[i];
		struct v8_image image = {0};

		row_begin(row->what);
		memset(data, 0, sizeof(data));
		memcpy(data + row->at, row->text, strlen(row->text));
		assert_int_equal(probe(NAPI, data, sizeof(data), 4096, &image), row->outcome);
		assert_memory_equal(image.version, row->version, sizeof(row->version));
		assert_int_equal(probe(OTHER, data, sizeof(data), 4096, &image), V8_ABSENT);
	}
}

static void constants(void **state)
{
	static const char data[] = "15.0.245.2-rusty";
	struct v8_image image = {0};

	(void)state;
	assert_int_equal(probe(NAPI, data, sizeof(data), 4096, &image), V8_OK);
	assert_int_equal(image.constants[V8_TYPE_SHARED], 278);
	assert_int_equal(image.constants[V8_TYPE_SCOPE], 276);
	assert_int_equal(image.constants[V8_TYPE_CODE], 186);
	assert_true(image.has_code);
	assert_int_equal(image.zeroed[0], BSS_AT);
	assert_int_equal(image.zeroed[1], BSS_AT + 4096);
	assert_int_equal(image.code[0], CODE_AT);
	assert_int_equal(image.code[1], CODE_AT + CODE_SIZE);
	assert_int_equal(probe(NAPI, data, sizeof(data), 0, &image), V8_BUILTINS_UNKNOWN);
	assert_int_equal(probe(NAPI, data, sizeof(data), V8_BUILTINS_SEARCH_MAX + 1, &image),
			 V8_BUILTINS_UNKNOWN);
}

/* Forms that differ by release. */
static void forms(void **state)
{
	static const struct {
		const char *text;
		int32_t shift, form;
	} form_rows[] = {
		{"13.0.245.12-rusty", 0, V8_DEOPT_OF_12}, {"13.4.114.9-rusty", 0, V8_DEOPT_OF_13},
		{"13.5.212.4-rusty", 0, V8_DEOPT_OF_13},  {"13.7.152.6-rusty", 1, V8_DEOPT_OF_13},
		{"14.7.173.16-rusty", 1, V8_DEOPT_OF_13}, {"14.9.207.2-rusty", 2, V8_DEOPT_OF_13},
		{"15.0.245.2-rusty", 2, V8_DEOPT_OF_13},
	};
	struct v8_image image = {0};

	(void)state;
	for (size_t i = 0; i < array_size(form_rows); i++) {
		row_begin(form_rows[i].text);
		assert_int_equal(
			probe(NAPI, form_rows[i].text, strlen(form_rows[i].text), 4096, &image),
			V8_OK);
		assert_int_equal(image.constants[V8_TABLE_SHIFT], form_rows[i].shift);
		assert_int_equal(image.constants[V8_DEOPT_FORM], form_rows[i].form);
		assert_int_equal(image.constants[V8_ARRAY_INT], form_rows[i].shift == 2);
		assert_int_equal(image.constants[V8_BYTECODE_TABLE], 24);
	}
}

/* ---------------------------------------------------------------- processes */

/* The memory has the image from its first byte on: the code first, the variables behind. */
#define BIAS	    (FLATMEMORY_BASE - CODE_AT)
#define N_ZEROED    (80u << 10)
#define BYTES	    (BSS_AT - CODE_AT + N_ZEROED)
#define BUILTINS    (CODE_AT + 0x2000u)
#define N_BUILTINS  0x20000u
#define DATA	    (CODE_AT + 0x30100u)
#define N_DATA	    0x2008u /* no page: addresses are as small as sizes here */
/* Where the second piece begins: 64 KiB, without the bytes that both have. */
#define SECOND_PART ((64u << 10) - 32)

struct four {
	uint64_t code, code_bytes, data, data_bytes;
};

static const struct process_row {
	const char *what;
	struct four four; /* of the image; addresses without its bias */
	uint64_t at;	  /* of the variables */
	int outcome;
	struct four second;
} process_rows[] = {
	{"as they are", {BUILTINS, N_BUILTINS, DATA, N_DATA}, 64, V8_OK, {0}},
	{"first", {BUILTINS, N_BUILTINS, DATA, N_DATA}, 0, V8_OK, {0}},
	{"last", {BUILTINS, N_BUILTINS, DATA, N_DATA}, N_ZEROED - 32, V8_OK, {0}},
	{"across pieces", {BUILTINS, N_BUILTINS, DATA, N_DATA}, SECOND_PART + 8, V8_OK, {0}},
	{"at the next piece", {BUILTINS, N_BUILTINS, DATA, N_DATA}, SECOND_PART, V8_OK, {0}},
	{"a byte behind the size",
	 {BUILTINS, N_BUILTINS, DATA, 1ull << 32 | N_DATA},
	 64,
	 V8_OK,
	 {0}},
	{"twice the same",
	 {BUILTINS, N_BUILTINS, DATA, N_DATA},
	 64,
	 V8_OK,
	 {BUILTINS, N_BUILTINS, DATA, N_DATA}},
	{"two",
	 {BUILTINS, N_BUILTINS, DATA, N_DATA},
	 64,
	 V8_ODD,
	 {BUILTINS + 4096, N_BUILTINS, DATA, N_DATA}},
	{"none yet", {0, 0, 0, 0}, 64, V8_NOT_READY, {0}},
	{"in the middle of a page",
	 {BUILTINS + 32, N_BUILTINS, DATA, N_DATA},
	 64,
	 V8_NOT_READY,
	 {0}},
	{"outside of the code", {BSS_AT, N_BUILTINS, DATA, N_DATA}, 64, V8_NOT_READY, {0}},
	{"code beyond its segment", {BUILTINS, CODE_SIZE, DATA, N_DATA}, 64, V8_NOT_READY, {0}},
	{"little code", {BUILTINS, 4096, DATA, N_DATA}, 64, V8_NOT_READY, {0}},
	{"a size of 64 bits",
	 {BUILTINS, 1ull << 32 | N_BUILTINS, DATA, N_DATA},
	 64,
	 V8_NOT_READY,
	 {0}},
	{"data in the code", {BUILTINS, N_BUILTINS, BUILTINS + 8, N_DATA}, 64, V8_NOT_READY, {0}},
	{"data behind the image", {BUILTINS, N_BUILTINS, BSS_AT, N_DATA}, 64, V8_NOT_READY, {0}},
	{"little data", {BUILTINS, N_BUILTINS, DATA, 8}, 64, V8_NOT_READY, {0}},
};

static void put(uint8_t *bytes, uint64_t at, struct four four)
{
	four.code += four.code ? BIAS : 0;
	four.data += four.data ? BIAS : 0;
	memcpy(bytes + (BSS_AT - CODE_AT) + at, &four, sizeof(four));
}

static void processes(void **state)
{
	const struct v8_image image = {.zeroed = {BSS_AT, BSS_AT + N_ZEROED},
				       .code = {CODE_AT, CODE_AT + CODE_SIZE}};

	(void)state;
	for (size_t i = 0; i < array_size(process_rows); i++) {
		const struct process_row *row = &process_rows[i];
		_cleanup_(freep) uint8_t *bytes = calloc(1, BYTES);
		struct flatmemory fm;
		uint64_t first = 0;
		uint32_t n = 0;

		row_begin(row->what);
		assert_non_null(bytes);
		put(bytes, row->at, row->four);
		if (row->second.code)
			put(bytes, 4096, row->second);
		flatmemory_init(&fm, bytes, BYTES);
		assert_int_equal(v8_builtins_find(&fm.memory, &image, BIAS, &first, &n),
				 row->outcome);
		if (row->outcome)
			continue;
		assert_int_equal(first, BUILTINS + BIAS);
		assert_int_equal(n, N_BUILTINS);
	}
}

/* The other order of the variables, and no variables in an image with constants of its own. */
static void others(void **state)
{
	const struct v8_image image = {.zeroed = {BSS_AT, BSS_AT + N_ZEROED},
				       .code = {CODE_AT, CODE_AT + CODE_SIZE},
				       .is_described = true};
	const uint64_t descending[] = {N_DATA, DATA + BIAS, N_BUILTINS, BUILTINS + BIAS};
	_cleanup_(freep) uint8_t *bytes = calloc(1, BYTES);
	struct flatmemory fm;
	uint64_t first = 0;
	uint32_t n = 0;

	(void)state;
	assert_non_null(bytes);
	flatmemory_init(&fm, bytes, BYTES);
	assert_int_equal(v8_builtins_find(&fm.memory, &image, BIAS, &first, &n),
			 V8_BUILTINS_UNKNOWN);
	memcpy(bytes + (BSS_AT - CODE_AT) + 40, descending, sizeof(descending));
	assert_int_equal(v8_builtins_find(&fm.memory, &image, BIAS, &first, &n), 0);
	assert_int_equal(first, BUILTINS + BIAS);
	assert_int_equal(n, N_BUILTINS);
}

/* A process whose memory ends before the variables do. */
static void unreadable(void **state)
{
	const struct v8_image image = {.zeroed = {BSS_AT, BSS_AT + N_ZEROED},
				       .code = {CODE_AT, CODE_AT + CODE_SIZE}};
	_cleanup_(freep) uint8_t *bytes = calloc(1, BYTES);
	struct flatmemory fm;
	uint64_t first;
	uint32_t n;

	(void)state;
	assert_non_null(bytes);
	flatmemory_init(&fm, bytes, BYTES - 4096);
	assert_int_equal(v8_builtins_find(&fm.memory, &image, BIAS, &first, &n), V8_UNREADABLE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files),  cmocka_unit_test(constants),
		cmocka_unit_test(forms),  cmocka_unit_test(processes),
		cmocka_unit_test(others), cmocka_unit_test(unreadable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
