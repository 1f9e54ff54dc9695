// SPDX-License-Identifier: Apache-2.0
/*
 * The work of each parser of a foreign file or memory grows at most like n log n. A generator makes
 * the worst input for one algorithm and doubles the size. The counted work (count.h) may grow by
 * GROWTH_MAX for each doubling; nested loops would grow by 4.
 *
 * Inputs stay below the ceilings of the parser, so a ceiling does not hide a bad algorithm.
 */
#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/root.h"
#include "base/work_budget.h"
#include "codescan/codescan.h"
#include "complexity/count.h"
#include "cpu/fold.h"
#include "procmap/image.h"
#include "profile.pb-c.h"
#include "support/elfworst.h"
#include "support/jitmake.h"
#include "support/packagemake.h"
#include "elf/elffile.h"
#include "elf/elfinflate.h"
#include "elf/elfsym.h"
#include "gofile/gopclntab.h"
#include "goheap/corefile.h"
#include "goheap/goruntime.h"
#include "goheap/gototals.h"
#include "goheap/gounpacked.h"
#include "runtimes/hotspot_line.h"
#include "runtimes/excerpt.h"
#include "runtimes/python_line.h"
#include "runtimes/v8_baseline.h"
#include "runtimes/v8_lines.h"
#include "runtimes/v8_places.h"
#include "runtimes/v8_ways.h"
#include "symbolize/demangle.h"
#include "symbolize/dwarfcode.h"
#include "symbolize/dwarfpackage.h"
#include "symbolize/jitdump.h"
#include "symbolize/lookup.h"
#include "symbolize/perf_map.h"
#include "symbolize/rustname.h"
#include "symbolize/source.h"
#include "symbolize/symbolizer.h"
#include "symbolize/symtab.h"
#include "unwind/ehframe.h"
#include "unwind/gorows.h"
#include "unwind/synthetic.h"
#include "pprof/flame.h"
#include "pprof/reader.h"
#include "unwindtable/table.h"

/* A doubling of n log n with n above 1,000 is 2.2. */
#define GROWTH_MAX 2.6
/* Sizes of an input: three doublings. */
#define SIZES	   4

#define TEXT ELFWORST_TEXT

/* A parser and its worst input. */
struct input {
	const char *name;
	/* Makes the input of size @n. Returns the counted work of the parser. */
	uint64_t (*run)(size_t n);
	size_t n; /* the smallest size */
};

static struct elffile *open_made(struct elfmake *m)
{
	struct elffile *file;

	elfmake_finish(m);
	assert_int_equal(elffile_open_memory(m->data, m->n, &file), 0);
	return file;
}

/* ---------------------------------------------------------------- symbols */

static uint64_t run_symtab(struct elfmake *m, uint64_t vaddr)
{
	struct symtab_symbol symbol;
	struct elffile *file = open_made(m);
	uint64_t before = count_now();
	struct symtab *t;

	assert_int_equal(symtab_open(file, &t), 0);
	for (int i = 0; i < 64; i++)
		(void)symtab_find(t, vaddr + (uint64_t)i, &symbol);
	symtab_free(t);
	before = count_now() - before;
	elffile_free(file);
	elfmake_deinit(m);
	return before;
}

/* A function, and labels without a size at the same address. */
static uint64_t symtab_labels(size_t n)
{
	struct elfmake m;

	elfworst_labels(&m, n);
	return run_symtab(&m, TEXT);
}

/* All symbols at the same address, with the same name. */
static uint64_t symtab_aliases(size_t n)
{
	Elf64_Sym *symbols = elfworst_functions(n);
	struct elfmake m;

	for (size_t i = 0; i < n; i++)
		symbols[i].st_size = i;
	elfworst_symbols(&m, ET_DYN, 4096, symbols, n, elfworst_name(8 * n), 8 * n);
	return run_symtab(&m, TEXT);
}

/* Untyped symbols, each with another long name. */
static uint64_t symtab_untyped(size_t n)
{
	Elf64_Sym *symbols = elfworst_functions(n);
	struct elfmake m;

	for (size_t i = 0; i < n; i++) {
		symbols[i].st_info = ELF64_ST_INFO(STB_LOCAL, STT_NOTYPE);
		symbols[i].st_name = (Elf64_Word)(1 + i);
		symbols[i].st_value = TEXT + i;
	}
	elfworst_symbols(&m, ET_DYN, n, symbols, n, elfworst_name(8 * n), 8 * n);
	return run_symtab(&m, TEXT);
}

/* Mangled names with arguments in each other, and the same again by substitution. */
static uint64_t symtab_mangled(size_t n)
{
	static const char cxx[] = "_Z1fI1tIS0_IS1_IS2_IS3_IiEEEEEEvv", rust[] = "_RINvC1a1bTB4_EE";
	const size_t size = sizeof(cxx) > sizeof(rust) ? sizeof(cxx) : sizeof(rust);
	Elf64_Sym *symbols = elfworst_functions(n);
	char *names = calloc(n + 1, size);
	struct symbol_lines lines;
	struct elffile *file;
	struct elfmake m;
	struct arena memory;
	uint64_t before;
	void *opened;

	assert_non_null(names);
	for (size_t i = 0; i < n; i++) {
		strcpy(names + 1 + i * size, i % 2 ? cxx : rust);
		symbols[i].st_name = (Elf64_Word)(1 + i * size);
		symbols[i].st_value = TEXT + 16 * i;
		symbols[i].st_size = 16;
	}
	elfworst_symbols(&m, ET_DYN, 16 * n, symbols, n, names, (n + 1) * size);
	file = open_made(&m);
	arena_init(&memory, SIZE_MAX);
	before = count_now();
	assert_int_equal(source_symtab.open(&(struct source_file){.elf = file}, &opened), 0);
	for (size_t i = 0; i < n; i++) {
		lines = (struct symbol_lines){.memory = &memory};
		assert_int_equal(source_symtab.find(opened, TEXT + 16 * i, &lines), 0);
		assert_int_equal(lines.n, 1);
	}
	source_symtab.free(opened);
	before = count_now() - before;
	arena_deinit(&memory);
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

/* Nested types, repeated. */
static uint64_t rustname_types(size_t n)
{
	char name[RUSTNAME_MAX + 2] = "_RINvC1a1bT", readable[DEMANGLE_NAME_MAX];
	struct rustname found;
	uint64_t before;

	memset(name + strlen(name), 'h', n);
	strcat(name, "EE");
	before = count_now();
	assert_true(rustname_check(name, &found));
	(void)demangle(name, readable);
	return count_now() - before;
}

/* ---------------------------------------------------------------- the code scan */

static uint64_t run_codescan(struct elfmake *m)
{
	struct elffile *file = open_made(m);
	uint64_t before, start, end;
	struct rows *known, *rows;
	struct codescan_stats stats;

	assert_int_equal(ehframe_text(file, &start, &end), 0);
	assert_int_equal(rows_new(start, end, &known), 0);
	assert_int_equal(rows_new(start, end, &rows), 0);
	assert_int_equal(rows_finish(known), 0);
	before = count_now();
	assert_int_equal(codescan_add(file, known, rows, &stats), 0);
	before = count_now() - before;
	rows_free(known);
	rows_free(rows);
	elffile_free(file);
	elfmake_deinit(m);
	return before;
}

/* All symbols with the same name, as long as the table. */
static uint64_t codeentries_name(size_t n)
{
	struct elfmake m;

	elfworst_one_name(&m, n);
	return run_codescan(&m);
}

/* Names of parts of cold functions, in a single string. */
static uint64_t codeentries_cold(size_t n)
{
	Elf64_Sym *symbols = elfworst_functions(n);
	char *names = elfworst_name(8 * n);
	struct elfmake m;

	for (size_t i = 0; i < n; i++) {
		symbols[i].st_name = (Elf64_Word)(1 + i);
		if (i)
			memcpy(names + 8 * i, ".cold", 5);
	}
	elfworst_symbols(&m, ET_DYN, 4096, symbols, n, names, 8 * n);
	return run_codescan(&m);
}

/* Writable segments with the same bytes. */
static uint64_t codeentries_segments(size_t n)
{
	struct elfmake m;

	elfworst_segments(&m, n, 1024 * n);
	return run_codescan(&m);
}

/* Executable segments over each other, with small gaps. */
static uint64_t codescan_segments(size_t n)
{
	struct elfmake m;
	size_t code;

	elfmake_init(&m, ET_DYN, 64 * n);
	code = elfmake_bytes(&m, NULL, 64 * n);
	memset(m.data + code, 0xc3, 64 * n);
	for (size_t i = 0; i < n; i++)
		elfmake_segment(&m, PT_LOAD, PF_R | PF_X, TEXT + i, code + i, 64 * n - i);
	return run_codescan(&m);
}

/* Guessed functions of 16 bytes. Each calls another function, found only by this call. */
static uint64_t codescan_calls(size_t n)
{
	struct elfmake m;
	size_t code;

	elfmake_init(&m, ET_DYN, 32 * n);
	code = elfmake_bytes(&m, NULL, 32 * n);
	memset(m.data + code, 0xcc, 32 * n);
	for (size_t i = 0; i < n; i++) {
		int32_t distance = (int32_t)(16 * n + 8 - 6);

		memcpy(m.data + code + 16 * i, "\x53\xe8", 2);
		memcpy(m.data + code + 16 * i + 2, &distance, sizeof(distance));
		memcpy(m.data + code + 16 * i + 6, "\x5b\xc3", 2);
		m.data[code + 16 * (n + i) + 8] = 0xc3;
	}
	elfmake_segment(&m, PT_LOAD, PF_R | PF_X, TEXT, code, 32 * n);
	return run_codescan(&m);
}

/* A single function of branches. */
static uint64_t codescan_branches(size_t n)
{
	struct elfmake m;
	size_t code;

	elfmake_init(&m, ET_DYN, 8 * n);
	code = elfmake_bytes(&m, NULL, 8 * n);
	for (size_t i = 0; i + 1 < 4 * n; i++)
		memcpy(m.data + code + 2 * i, "\x74\x10", 2);
	m.data[code + 8 * n - 2] = 0xc3;
	elfmake_segment(&m, PT_LOAD, PF_R | PF_X, TEXT, code, 8 * n);
	return run_codescan(&m);
}

/* ---------------------------------------------------------------- .eh_frame */

/* Rows of FDEs. fill() sets start, size and program of each FDE. */
static uint64_t run_ehframe(size_t n, void (*fill)(struct elfworst_fde *f, size_t i, size_t n),
			    size_t n_code)
{
	struct ehframe_stats stats = {0};
	struct elffile *file;
	struct rows *rows;
	struct table *table;
	struct elfmake m;
	uint64_t before;
	int r;

	elfworst_fdes(&m, n, fill, n_code);
	file = open_made(&m);
	assert_int_equal(rows_new(TEXT, TEXT + n_code, &rows), 0);
	before = count_now();
	assert_int_equal(ehframe_add(file, rows, &stats), 0);
	assert_int_equal(rows_finish(rows), 0);
	r = table_pack(rows, &table);
	assert_true(r >= 0);
	before = count_now() - before;
	assert_true(stats.fdes > n / 2);
	if (!r)
		table_free(table);
	rows_free(rows);
	elffile_free(file);
	elfmake_deinit(&m);
	return before;
}

/* Each function inside the previous function. */
static uint64_t ehframe_nested(size_t n)
{
	return run_ehframe(n, elfworst_fill_nested, 2 * n);
}

/* From the end to the begin, each up to the end. */
static void fill_backwards(struct elfworst_fde *f, size_t i, size_t n)
{
	f->start = (uint32_t)(n - 1 - i);
	f->size = (uint32_t)(i + 1);
}

static uint64_t ehframe_backwards(size_t n)
{
	return run_ehframe(n, fill_backwards, n);
}

/* A rule for each function, up to the largest number of rules in a file. */
static void fill_rules(struct elfworst_fde *f, size_t i, size_t n)
{
	uint32_t value = (uint32_t)i;

	(void)n;
	f->start = (uint32_t)(32 * i);
	f->size = 32;
	f->program[0] = 0x0e;
	f->program[1] = (uint8_t)(value | 0x80);
	f->program[2] = (uint8_t)(value >> 7 | 0x80);
	f->program[3] = (uint8_t)(value >> 14 & 0x7f);
}

static uint64_t ehframe_rules(size_t n)
{
	return run_ehframe(n, fill_rules, 32 * n);
}

/* The functions around @n addresses, as for early rules. */
static uint64_t run_functions(size_t n, void (*fill)(struct elfworst_fde *f, size_t i, size_t n))
{
	struct ehframe_stats stats = {0};
	struct elffile *file;
	struct rows *rows;
	struct elfmake m;
	uint64_t before, *vaddrs = calloc(n, sizeof(*vaddrs));

	assert_non_null(vaddrs);
	elfworst_fdes(&m, n, fill, 32 * n);
	elfworst_index(&m, n);
	file = open_made(&m);
	for (size_t i = 0; i < n; i++)
		vaddrs[i] = TEXT + 32 * i;
	assert_int_equal(rows_new(TEXT, TEXT + 32 * n, &rows), 0);
	before = count_now();
	assert_int_equal(ehframe_add_functions(file, vaddrs, n, rows, &stats), 0);
	assert_int_equal(rows_finish(rows), 0);
	before = count_now() - before;
	assert_true(stats.fdes > 0);
	rows_free(rows);
	elffile_free(file);
	elfmake_deinit(&m);
	free(vaddrs);
	return before;
}

static uint64_t functions_rules(size_t n)
{
	return run_functions(n, fill_rules);
}

static uint64_t functions_growing(size_t n)
{
	return run_functions(n, elfworst_fill_growing);
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

/* glibc's function, again and again. */
static uint64_t synthetic_mpn(size_t n)
{
	static const char code[] = "\x53\x55\x48\x8d\x1a\x48\xf7\xdb\x48\x8b\x06\x4c\x8b\x17\x48"
				   "\x8d\x7c\xd7\xf0\x48\x8d\x34\xd6\x48\xf7\xe1\x5d\x5b\xc3";
	const size_t size = sizeof(code) - 1;
	struct elffile *file;
	struct elfmake m;
	struct rows *rows;
	uint64_t before;

	elfmake_init(&m, ET_DYN, n * size);
	for (size_t i = 0; i < n; i++)
		elfmake_bytes(&m, code, size);
	elfmake_segment(&m, PT_LOAD, PF_R | PF_X, TEXT, m.n - n * size, n * size);
	file = open_made(&m);
	assert_int_equal(rows_new(TEXT, TEXT + n * size, &rows), 0);
	before = count_now();
	assert_int_equal(synthetic_add(file, rows), 0);
	assert_int_equal(rows_finish(rows), 0);
	before = count_now() - before;
	assert_true(rows_count(rows) > n);
	rows_free(rows);
	elffile_free(file);
	elfmake_deinit(&m);
	return before;
}

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

/* ---------------------------------------------------------------- Go */

static uint64_t run_gorows(size_t n, bool over)
{
	struct gorows_stats stats;
	struct elffile *file;
	struct elfmake m;
	struct rows *rows;
	uint64_t before;

	elfworst_go(&m, n, over);
	file = open_made(&m);
	assert_int_equal(rows_new(TEXT, TEXT + 16 * n, &rows), 0);
	before = count_now();
	assert_int_equal(gorows_add_file(file, rows, &stats), 0);
	assert_int_equal(rows_finish(rows), 0);
	before = count_now() - before;
	assert_int_equal(stats.n_funcs, n);
	rows_free(rows);
	elffile_free(file);
	elfmake_deinit(&m);
	return before;
}

static uint64_t gorows_functions(size_t n)
{
	return run_gorows(n, false);
}

static uint64_t gorows_over(size_t n)
{
	return run_gorows(n, true);
}

static uint64_t gopclntab_lines(size_t n)
{
	struct gopclntab_line line;
	struct gopclntab *t;
	struct elffile *file;
	struct elfmake m;
	uint64_t before;

	elfworst_go(&m, n, false);
	file = open_made(&m);
	before = count_now();
	assert_int_equal(gopclntab_open(file, &t), 0);
	for (size_t i = 0; i < n; i++)
		(void)gopclntab_find(t, TEXT + 16 * i + 8, &line);
	gopclntab_free(t);
	before = count_now() - before;
	elffile_free(file);
	elfmake_deinit(&m);
	return before;
}

/* ---------------------------------------------------------------- stacks and profiles */

/* All bits of an address count, but a multiplication moves them up only. */
static uint64_t fold_high_bits(size_t n)
{
	struct image image = {.refs = 1};
	struct fold *fold;
	uint64_t before;

	assert_int_equal(fold_new(&fold), 0);
	before = count_now();
	for (size_t i = 0; i < n; i++) {
		const struct frame frame = {&image, i << 50};
		const struct fold_sample sample = {
			.frames = &frame, .return_address = &(uint8_t){0}, .n_frames = 1};

		assert_int_equal(fold_add(fold, &sample, 1, 1), 0);
	}
	before = count_now() - before;
	assert_int_equal(fold_n(fold), n);
	fold_free(fold);
	return before;
}

/* A profile with two functions, and with these numbers of locations, of lines in the first
 * location, of samples, and of locations in a sample. */
struct profile_shape {
	size_t locations, lines, samples, depth;
};

static void put(struct buf *to, const ProtobufCMessage *m)
{
	char *at;

	assert_int_equal(buf_reserve(to, protobuf_c_message_get_packed_size(m), &at), 0);
	to->len += protobuf_c_message_pack(m, (uint8_t *)at);
}

static void make_profile(const struct profile_shape *s, struct buf *ret)
{
	char *strings[] = {"", "cpu", "f", "g"};
	Perftools__Profiles__ValueType type = PERFTOOLS__PROFILES__VALUE_TYPE__INIT;
	Perftools__Profiles__ValueType *types[] = {&type};
	Perftools__Profiles__Function f = PERFTOOLS__PROFILES__FUNCTION__INIT, g = f;
	Perftools__Profiles__Function *functions[] = {&f, &g};
	Perftools__Profiles__Line *lines = calloc(s->lines + 1, sizeof(*lines));
	Perftools__Profiles__Line **line_at = calloc(s->lines + 1, sizeof(*line_at));
	Perftools__Profiles__Location *locations = calloc(s->locations, sizeof(*locations));
	Perftools__Profiles__Location **location_at = calloc(s->locations, sizeof(*location_at));
	Perftools__Profiles__Sample *samples = calloc(s->samples, sizeof(*samples));
	Perftools__Profiles__Sample **sample_at = calloc(s->samples, sizeof(*sample_at));
	uint64_t *ids = calloc(s->samples + s->depth, sizeof(*ids));
	Perftools__Profiles__Profile profile = PERFTOOLS__PROFILES__PROFILE__INIT;
	int64_t value = 1;

	type.type = type.unit = 1;
	f.id = 1;
	f.name = 2;
	g.id = 2;
	g.name = 3;
	for (size_t i = 0; i < s->lines; i++) {
		perftools__profiles__line__init(&lines[i]);
		lines[i].function_id = 1 + i % 2;
		line_at[i] = &lines[i];
	}
	for (size_t i = 0; i < s->locations; i++) {
		perftools__profiles__location__init(&locations[i]);
		locations[i].id = s->locations - i;
		locations[i].address = i;
		location_at[i] = &locations[i];
	}
	locations[0].line = line_at;
	locations[0].n_line = s->lines;
	for (size_t i = 0; i < s->samples + s->depth; i++)
		ids[i] = s->locations - i % s->locations;
	for (size_t i = 0; i < s->samples; i++) {
		perftools__profiles__sample__init(&samples[i]);
		samples[i].location_id = ids + i;
		samples[i].n_location_id = s->depth;
		samples[i].value = &value;
		samples[i].n_value = 1;
		sample_at[i] = &samples[i];
	}
	profile.sample_type = types;
	profile.n_sample_type = 1;
	profile.sample = sample_at;
	profile.n_sample = s->samples;
	profile.location = location_at;
	profile.n_location = s->locations;
	profile.function = functions;
	profile.n_function = array_size(functions);
	profile.string_table = strings;
	profile.n_string_table = array_size(strings);
	put(ret, &profile.base);
	free(lines);
	free(line_at);
	free(locations);
	free(location_at);
	free(samples);
	free(sample_at);
	free(ids);
}

static uint64_t run_profile(struct profile_shape shape, bool flame)
{
	struct buf bytes = BUF_INIT((size_t)1 << 30);
	const char *why = "";
	struct reader *reader;
	struct flame *f;
	json_t *json;
	uint64_t before;

	make_profile(&shape, &bytes);
	assert_int_equal(flame_new(&f), 0);
	before = count_now();
	assert_int_equal(reader_new(bytes.data, bytes.len, (size_t)64 << 20, &reader, &why), 0);
	if (flame) {
		assert_true(flame_add(f, reader_tables(reader), NULL) >= 0);
		assert_int_equal(flame_json(f, FLAME_SHOWN_MAX, &json), 0);
		json_decref(json);
	}
	before = count_now() - before;
	flame_free(f);
	reader_free(reader);
	buf_deinit(&bytes);
	return before;
}

static uint64_t reader_ids(size_t n)
{
	return run_profile((struct profile_shape){n, 2, n, 2}, false);
}

static uint64_t flame_inlined(size_t n)
{
	return run_profile((struct profile_shape){1, n, n, 1}, true);
}

static uint64_t flame_deep(size_t n)
{
	return run_profile((struct profile_shape){n, 2, 2, n}, true);
}

static uint64_t flame_wide(size_t n)
{
	return run_profile((struct profile_shape){n, 2, n, 1}, true);
}

/* Symbols, sections and code of a file without Go's tables, searched for the runtime. */
static uint64_t goruntime_words(size_t n)
{
	static struct goruntime_file found;
	struct elffile *file;
	struct elfmake m;
	uint64_t before;

	elfmake_init(&m, ET_EXEC, 8 * n);
	m.eh.e_shnum = 0;
	m.eh.e_shoff = 0;
	m.eh.e_shstrndx = 0;
	for (size_t i = 0; i < n; i++)
		elfmake_bytes(&m, "\xf1\xff\xff\xff\0\0\1\x08", 8);
	elfmake_segment(&m, PT_LOAD, PF_R | PF_W, TEXT, m.n - 8 * n, 8 * n);
	file = open_made(&m);
	before = count_now();
	assert_int_equal(goruntime_file_read(file, &found), GORUNTIME_NO_RUNTIME);
	before = count_now() - before;
	elffile_free(file);
	elfmake_deinit(&m);
	return before;
}

/* ---------------------------------------------------------------- memory */

/* Reads find the same byte everywhere. */
struct flat {
	struct memory memory;
	uint8_t byte;
	uint64_t n_procs;
};

static int flat_read(struct memory *memory, const struct memory_range *ranges, size_t n,
		     size_t *ret)
{
	const struct flat *flat = container_of(memory, struct flat, memory);

	*ret = 0;
	for (size_t i = 0; i < n; i++) {
		memset(ranges[i].to, flat->byte, ranges[i].n);
		if (ranges[i].n == 16 && flat->n_procs) /* the slice of processors */
			memcpy((uint8_t *)ranges[i].to + 8, &flat->n_procs, 8);
		*ret += ranges[i].n;
	}
	return 0;
}

static int flat_check(struct memory *memory)
{
	(void)memory;
	return 0;
}

static uint64_t gosched_procs(size_t n)
{
	struct flat flat = {.memory = {.read = flat_read, .check = flat_check}, .n_procs = n};
	struct goruntime rt = {.file = {.sched = {8, 8, 8, 8, true}}};
	struct gosched s = {.free_at = 64};
	uint64_t before = count_now(), number;

	(void)gosched_read(&rt, &flat.memory, &s, &number);
	s.free_at = 0;
	(void)gosched_read(&rt, &flat.memory, &s, &number);
	return count_now() - before;
}

/* Of a fixed size. */
static uint64_t gopacer_words(size_t n)
{
	struct flat flat = {.memory = {.read = flat_read, .check = flat_check}, .byte = 0xff};
	struct goruntime rt = {.file = {.controller = 4096, .total_alloc = 4096 + 296}};
	uint64_t before = count_now();
	struct gopacer pacer;

	for (size_t i = 0; i < n; i++)
		(void)gopacer_read(&rt, &flat.memory, &pacer);
	return count_now() - before;
}

/* A process with pieces of anonymous code beside each other, in a procfs of our own. */
static uint64_t gounpacked_maps(size_t n)
{
	const char stat[] = "7 (a) S 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 55 0 0 0\n";
	struct pid_id id = {.start_ticks = 55, .pid = 7};
	char dir[] = "/tmp/podprof-test-XXXXXX";
	struct elffile *file = NULL;
	struct root proc;
	uint64_t before;
	int fd, r;
	FILE *out;

	assert_non_null(mkdtemp(dir));
	assert_int_equal(root_open(dir, &proc), 0);
	assert_int_equal(mkdirat(proc.fd, "7", 0700), 0);
	for (size_t i = 0; i < 3; i++) {
		static const char *const names[] = {"7/stat", "7/mem", "7/maps"};

		fd = openat(proc.fd, names[i], O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		assert_true(fd >= 0);
		out = fdopen(fd, "we");
		assert_non_null(out);
		if (i == 0)
			fputs(stat, out);
		for (size_t k = 0; i == 2 && k < n; k++)
			fprintf(out, "%zx-%zx rwxp 00000000 00:00 0\n", (k + 1) << 20,
				(k + 2) << 20);
		assert_int_equal(fclose(out), 0);
	}
	before = count_now();
	r = gounpacked_open(&proc, &id, EM_X86_64, &file);
	before = count_now() - before;
	assert_int_equal(r, GORUNTIME_OK);
	elffile_free(file);
	for (size_t i = 0; i < 3; i++)
		(void)unlinkat(proc.fd, (const char *[]){"7/stat", "7/mem", "7/maps"}[i], 0);
	assert_int_equal(unlinkat(proc.fd, "7", AT_REMOVEDIR), 0);
	assert_int_equal(rmdir(dir), 0);
	root_deinit(&proc);
	return before;
}

/* A core with the last mapping first. Each mapping is read. */
static uint64_t corefile_mappings_of(size_t n)
{
	const size_t n_notes = 12 + 8 + 16 + 24 * n + 2 * n;
	const size_t size = sizeof(Elf64_Ehdr) + sizeof(Elf64_Shdr) + (n + 1) * sizeof(Elf64_Phdr);
	const size_t notes_off = size + 64;
	uint8_t *bytes = calloc(1, notes_off + n_notes + 64), *note;
	Elf64_Ehdr eh = {.e_type = ET_CORE,
			 .e_phentsize = sizeof(Elf64_Phdr),
			 .e_phnum = (uint16_t)(n + 1),
			 .e_phoff = sizeof(Elf64_Ehdr) + sizeof(Elf64_Shdr)};
	const uint32_t head[3] = {5, (uint32_t)(n_notes - 20), NT_FILE};
	const uint64_t counts[2] = {n, 4096};
	struct corefile *core;
	uint64_t before;
	uint8_t got[16];

	assert_non_null(bytes);
	memcpy(eh.e_ident, ELFMAG, SELFMAG);
	eh.e_ident[EI_CLASS] = ELFCLASS64;
	eh.e_ident[EI_DATA] = ELFDATA2LSB;
	memcpy(bytes, &eh, sizeof(eh));
	for (size_t i = 0; i <= n; i++) {
		Elf64_Phdr ph = {.p_type = PT_LOAD,
				 .p_flags = PF_R | PF_X,
				 .p_vaddr = 4096 * (n - i),
				 .p_offset = size,
				 .p_filesz = 64,
				 .p_memsz = 4096};

		if (i == n)
			ph = (Elf64_Phdr){
				.p_type = PT_NOTE, .p_offset = notes_off, .p_filesz = n_notes};
		memcpy(bytes + eh.e_phoff + i * sizeof(ph), &ph, sizeof(ph));
	}
	note = bytes + notes_off;
	memcpy(note, head, sizeof(head));
	memcpy(note + 12, "CORE", 5);
	memcpy(note + 20, counts, sizeof(counts));
	for (size_t i = 0; i < n; i++) {
		const uint64_t mapping[3] = {4096 * (i + 1), 4096 * (i + 2), 0};

		memcpy(note + 36 + 24 * i, mapping, sizeof(mapping));
		memcpy(note + 36 + 24 * n + 2 * i, "a", 2);
	}
	before = count_now();
	assert_int_equal(corefile_open_memory(bytes, notes_off + n_notes + 64, &core), 0);
	for (size_t i = 0; i < n; i++)
		(void)memory_read(corefile_memory(core), 4096 * (i + 1), got, sizeof(got));
	corefile_free(core);
	before = count_now() - before;
	free(bytes);
	return before;
}

/* ---------------------------------------------------------------- */

/* ---------------------------------------------------------------- DWARF */

/* Each number is little-endian; forms are those of DWARF 4. */
static void put_number(struct buf *to, uint64_t number, size_t n)
{
	assert_int_equal(buf_append(to, &number, n), 0);
}

static void put_leb(struct buf *to, uint64_t number)
{
	for (; number >= 0x80; number >>= 7)
		put_number(to, (number & 0x7f) | 0x80, 1);
	put_number(to, number, 1);
}

#define DWARF_CODE 0x1000u

struct dwarf {
	struct buf abbrevs; /* empty: dwarf_abbrev */
	struct buf info;
	struct buf lines;
	struct buf ranges;
};

/* Units with addresses and lines (1), functions (2), blocks without addresses (3), inlined
 * functions with the addresses of all (4); with a list of ranges: functions (5), inlined functions
 * (6), units with lines (7). */
static const uint8_t dwarf_abbrev[] = {
	1,    0x11, 1,	  0x11, 0x01, 0x12, 0x07, 0x10, 0x17, 0,    0, 2,    0x2e, 1,	 0x11,
	0x01, 0x12, 0x07, 0,	0,    3,    0x0b, 1,	0,    0,    4, 0x1d, 1,	   0x11, 0x01,
	0x12, 0x07, 0,	  0,	5,    0x2e, 0,	  0x55, 0x17, 0,    0, 6,    0x1d, 0,	 0x55,
	0x17, 0,    0,	  7,	0x11, 1,    0x55, 0x17, 0x10, 0x17, 0, 0,    0,
};

static void put_code(struct buf *to, uint8_t abbrev, uint64_t vaddr, uint64_t size)
{
	put_number(to, abbrev, 1);
	put_number(to, vaddr, 8);
	put_number(to, size, 8);
}

static void put_header(struct buf *to, size_t *ret_length)
{
	*ret_length = to->len;
	put_number(to, 0, 4);
	put_number(to, 4, 2);
	put_number(to, 0, 4);
	put_number(to, 8, 1);
}

/* The header and the first entry of a unit; *@ret_length is for end_unit(). */
static void begin_unit(struct buf *to, uint64_t vaddr, uint64_t size, size_t *ret_length)
{
	put_header(to, ret_length);
	put_code(to, 1, vaddr, size);
	put_number(to, 0, 4);
}

static void end_unit(struct buf *to, size_t at)
{
	uint32_t length;

	put_number(to, 0, 1);
	length = (uint32_t)(to->len - at - sizeof(length));
	memcpy(to->data + at, &length, sizeof(length));
}

/* Work of an address in the code, in the last unit. */
static uint64_t run_dwarf(struct dwarf *d, uint64_t vaddr)
{
	static struct symbol_line lines[SYMBOL_LINES_MAX];
	struct cursor sections[DWARFSECTION_MAX] = {{.start = NULL}};
	struct dwarfsections *opened;
	struct dwarfcode *code;
	uint64_t before;

	cursor_init(&sections[DWARFSECTION_INFO], d->info.data, d->info.len);
	if (d->abbrevs.len)
		cursor_init(&sections[DWARFSECTION_ABBREV], d->abbrevs.data, d->abbrevs.len);
	else
		cursor_init(&sections[DWARFSECTION_ABBREV], dwarf_abbrev, sizeof(dwarf_abbrev));
	cursor_init(&sections[DWARFSECTION_LINE], d->lines.data, d->lines.len);
	cursor_init(&sections[DWARFSECTION_RANGES], d->ranges.data, d->ranges.len);
	assert_int_equal(dwarfsections_open_memory(sections, &opened), 0);
	before = count_now();
	assert_int_equal(dwarfcode_open_sections(opened, &code), 0);
	dwarfcode_renew(code);
	/* for the second address of a function, all functions inlined there are read */
	for (size_t i = 0; i < 3; i++)
		assert_true(dwarfcode_find(code, vaddr, lines) > 0);
	before = count_now() - before;
	dwarfcode_free(code);
	buf_deinit(&d->abbrevs);
	buf_deinit(&d->info);
	buf_deinit(&d->lines);
	buf_deinit(&d->ranges);
	return before;
}

static struct dwarf dwarf_new(void)
{
	return (struct dwarf){.abbrevs = BUF_INIT(64u << 20),
			      .info = BUF_INIT(64u << 20),
			      .lines = BUF_INIT(64u << 20),
			      .ranges = BUF_INIT(64u << 20)};
}

/* In the reverse order. */
static uint64_t dwarf_units(size_t n)
{
	struct dwarf d = dwarf_new();
	size_t at;

	for (size_t i = n; i-- > 0;) {
		begin_unit(&d.info, DWARF_CODE + 16 * i, 16, &at);
		put_code(&d.info, 2, DWARF_CODE + 16 * i, 16);
		put_number(&d.info, 0, 1);
		end_unit(&d.info, at);
	}
	return run_dwarf(&d, DWARF_CODE);
}

/* @n units share a table of @n declarations, of which none is theirs. */
static uint64_t dwarf_undeclared(size_t n)
{
	const uint32_t table = sizeof(dwarf_abbrev);
	struct dwarf d = dwarf_new();
	size_t at;

	for (size_t i = 0; i < table; i++)
		put_number(&d.abbrevs, dwarf_abbrev[i], 1);
	for (size_t i = 0; i < n; i++) {
		put_number(&d.abbrevs, 9, 1);
		put_number(&d.abbrevs, 0x34, 1);
		put_number(&d.abbrevs, 0, 3);
	}
	put_number(&d.abbrevs, 0, 1);
	begin_unit(&d.info, DWARF_CODE, 16, &at);
	put_code(&d.info, 2, DWARF_CODE, 16);
	put_number(&d.info, 0, 1);
	end_unit(&d.info, at);
	for (size_t i = 0; i < n; i++) {
		put_header(&d.info, &at);
		memcpy(d.info.data + at + 6, &table, sizeof(table));
		put_number(&d.info, 8, 1);
		end_unit(&d.info, at);
	}
	return run_dwarf(&d, DWARF_CODE);
}

/* Entries inside of each other, without siblings to jump to: @abbrev, or functions around them. */
static uint64_t run_nested(size_t n, uint8_t abbrev)
{
	struct dwarf d = dwarf_new();
	size_t at;

	begin_unit(&d.info, DWARF_CODE, n + 16, &at);
	put_code(&d.info, 2, DWARF_CODE, n + 16);
	for (size_t i = 0; i < n; i++)
		if (abbrev == 3)
			put_number(&d.info, abbrev, 1);
		else
			put_code(&d.info, abbrev, DWARF_CODE + i, n + 16 - i);
	for (size_t i = 0; i <= n; i++)
		put_number(&d.info, 0, 1);
	end_unit(&d.info, at);
	return run_dwarf(&d, DWARF_CODE + n);
}

static uint64_t dwarf_blocks(size_t n)
{
	return run_nested(n, 3);
}

static uint64_t dwarf_inlined(size_t n)
{
	return run_nested(n, 4);
}

/* Functions inside of functions, which are looked for in a second pass. */
static uint64_t dwarf_functions(size_t n)
{
	struct dwarf d = dwarf_new();
	size_t at;

	begin_unit(&d.info, DWARF_CODE, 2 * n + 16, &at);
	put_code(&d.info, 2, DWARF_CODE, 1);
	for (size_t i = 0; i < n; i++)
		put_code(&d.info, 2, DWARF_CODE + 1 + i, 1);
	for (size_t i = 0; i <= n; i++)
		put_number(&d.info, 0, 1);
	end_unit(&d.info, at);
	return run_dwarf(&d, DWARF_CODE + n);
}

/* A list of @n ranges elsewhere. */
static void put_ranges(struct buf *to, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		put_number(to, 16 * DWARF_CODE + 4 * i, 8);
		put_number(to, 16 * DWARF_CODE + 4 * i + 2, 8);
	}
	put_number(to, 0, 8);
	put_number(to, 0, 8);
}

/* @n entries share a list of @n ranges: functions, or functions inlined into one. */
static uint64_t run_sharing(size_t n, uint8_t abbrev)
{
	struct dwarf d = dwarf_new();
	size_t at;

	put_ranges(&d.ranges, n);
	begin_unit(&d.info, DWARF_CODE, 16, &at);
	put_code(&d.info, 2, DWARF_CODE, 16);
	for (size_t i = 0; i < n; i++) {
		if (!i && abbrev == 5)
			put_number(&d.info, 0, 1);
		put_number(&d.info, abbrev, 1);
		put_number(&d.info, 0, 4);
	}
	if (abbrev != 5)
		put_number(&d.info, 0, 1);
	end_unit(&d.info, at);
	return run_dwarf(&d, DWARF_CODE);
}

static uint64_t dwarf_sharing_functions(size_t n)
{
	return run_sharing(n, 5);
}

static uint64_t dwarf_sharing_inlined(size_t n)
{
	return run_sharing(n, 6);
}

static uint64_t dwarf_sharing_units(size_t n)
{
	struct dwarf d = dwarf_new();
	size_t at;

	put_ranges(&d.ranges, n);
	begin_unit(&d.info, DWARF_CODE, 16, &at);
	put_code(&d.info, 2, DWARF_CODE, 16);
	put_number(&d.info, 0, 1);
	end_unit(&d.info, at);
	for (size_t i = 0; i < n; i++) {
		put_header(&d.info, &at);
		put_number(&d.info, 7, 1);
		put_number(&d.info, 0, 8);
		end_unit(&d.info, at);
	}
	return run_dwarf(&d, DWARF_CODE);
}

/* Sequences that begin before the one before, and overlap it. */
static uint64_t dwarf_sequences(size_t n)
{
	static const uint8_t header[] = {1, 1, 1, 0xfb, 14, 13, 0,   1, 1, 1, 1, 0, 0,
					 0, 1, 0, 0,	1,  0,	'a', 0, 0, 0, 0, 0};
	struct dwarf d = dwarf_new();
	size_t at;

	begin_unit(&d.info, DWARF_CODE, 8 * n, &at);
	put_code(&d.info, 2, DWARF_CODE, 8 * n);
	put_number(&d.info, 0, 1);
	end_unit(&d.info, at);
	put_number(&d.lines, 0, 4);
	put_number(&d.lines, 4, 2);
	put_number(&d.lines, sizeof(header), 4);
	assert_int_equal(buf_append(&d.lines, header, sizeof(header)), 0);
	for (size_t i = n; i-- > 0;) {
		put_number(&d.lines, 0x20900, 3);
		put_number(&d.lines, DWARF_CODE + 4 * i, 8);
		put_number(&d.lines, 0x21, 1);
		put_number(&d.lines, 2, 1);
		put_leb(&d.lines, 2 * n);
		put_number(&d.lines, 0x010100, 3);
	}
	at = d.lines.len - 4;
	memcpy(d.lines.data, &(uint32_t){(uint32_t)at}, 4);
	return run_dwarf(&d, DWARF_CODE + 4 * n);
}

/* ---------------------------------------------------------------- packages of split DWARF */

/* Offsets of @step bytes from each other, the last one first; a string ends every @length bytes. */
static uint64_t run_package(size_t n, size_t step, size_t length)
{
	uint32_t *offs = calloc(n, sizeof(*offs));
	char *strings = malloc(n * step);
	struct dwarfpackage *package;
	struct packagemake p;
	struct elffile *file;
	uint64_t before;
	size_t n_bytes;
	int fd;

	assert_true(offs && strings);
	memset(strings, 'x', n * step);
	for (size_t i = 0; i < n; i++)
		offs[i] = (uint32_t)((n - 1 - i) * step);
	for (size_t i = length; i < n * step; i += length)
		strings[i] = '\0';
	packagemake_init(&p, 2, offs, n, strings, n * step);
	packagemake_finish(&p);
	assert_int_equal(elffile_open_memory(p.elf.data, p.elf.n, &file), 0);
	assert_int_equal(dwarfpackage_open(file, &package), 0);
	before = count_now();
	assert_int_equal(dwarfpackage_unit(package, PACKAGEMAKE_ID, UINT32_MAX, &fd, &n_bytes), 0);
	before = count_now() - before;
	close(fd);
	dwarfpackage_free(package);
	packagemake_deinit(&p);
	free(offs);
	free(strings);
	return before;
}

/* Each string ends the one before. */
static uint64_t package_tails(size_t n)
{
	return run_package(n, 1, SIZE_MAX / 2);
}

/* No two strings in one read. */
static uint64_t package_far(size_t n)
{
	return run_package(n, 3000, 3000);
}

/* Each is cut, and read again. */
static uint64_t package_long(size_t n)
{
	return run_package(n, 40000, SIZE_MAX / 2);
}

/* ---------------------------------------------------------------- perf maps */

static uint64_t run_perf_map(struct buf *text)
{
	uint64_t events[PERF_MAP_EVENT_MAX] = {0}, before;
	int fd = memfd_create("map", MFD_CLOEXEC);
	struct work_budget work;
	struct perf_map *m;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text->data, text->len), text->len);
	assert_int_equal(perf_map_new(events, &m), 0);
	work_budget_init(&work, UINT64_MAX, UINT64_MAX / 2, NULL);
	before = count_now();
	assert_int_equal(perf_map_read(m, fd, &work), 0);
	before = count_now() - before;
	assert_int_equal(events[PERF_MAP_FULL], 0);
	assert_true(perf_map_n(m) > 0);
	perf_map_free(m);
	close(fd);
	buf_deinit(text);
	return before;
}

/* Each function replaces the middle of the one before. */
static uint64_t perf_map_nested(size_t n)
{
	struct buf text = BUF_INIT(64u << 20);

	for (size_t i = 0; i < n; i++)
		assert_int_equal(buf_printf(&text, "%zx %zx f\n", 0x1000 + i, 2 * (n - i)), 0);
	return run_perf_map(&text);
}

/* Each replaces all before. */
static uint64_t perf_map_growing(size_t n)
{
	struct buf text = BUF_INIT(64u << 20);

	for (size_t i = 0; i < n; i++)
		assert_int_equal(buf_printf(&text, "%zx %zx f\n", 0x100000 - i, 2 * i + 1), 0);
	return run_perf_map(&text);
}

/* The newest lie over each other's ends, the oldest below all. */
static uint64_t perf_map_backwards(size_t n)
{
	struct buf text = BUF_INIT(64u << 20);

	for (size_t i = 0; i < n; i++)
		assert_int_equal(buf_printf(&text, "%zx %zx f\n", 0x1000 + 8 * (n - i), n), 0);
	return run_perf_map(&text);
}

static uint64_t run_jitdump(struct buf *bytes)
{
	uint64_t events[JITDUMP_EVENT_MAX] = {0}, before;
	int fd = memfd_create("dump", MFD_CLOEXEC);
	struct work_budget work;
	struct jitdump *j;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes->data, bytes->len), bytes->len);
	assert_int_equal(jitdump_new(events, &j), 0);
	work_budget_init(&work, UINT64_MAX, UINT64_MAX / 2, NULL);
	before = count_now();
	assert_int_equal(jitdump_read(j, fd, &work), 0);
	before = count_now() - before;
	assert_int_equal(events[JITDUMP_FULL] + events[JITDUMP_CUT], 0);
	assert_true(jitdump_n(j) > 0);
	jitdump_free(j);
	close(fd);
	buf_deinit(bytes);
	return before;
}

/* A function with lines is cut by others, so that each part has the lines. */
static uint64_t jitdump_lines(size_t n)
{
	const struct jitmake_line line = {0x1000, 10, "/a/b.js"};
	const struct jitmake_header header = jitmake_this();
	struct buf bytes = BUF_INIT(64u << 20);

	jitmake_header(&bytes, &header);
	jitmake_lines(&bytes, 0x1000, &line, 1);
	jitmake_load(&bytes, 0x1000, 16 * n, "f", 0);
	for (size_t i = 0; i < n; i++)
		jitmake_load(&bytes, 0x1000 + 16 * i, 8, "g", 0);
	return run_jitdump(&bytes);
}

/* ---------------------------------------------------------------- runtimes */

/* Reads of @n parts, in another order than that of the excerpt. */
static uint64_t excerpt_parts(size_t n)
{
	const size_t part_bytes = sizeof(struct stack_dump_part) + 8;
	uint8_t *bytes = calloc(n, part_bytes);
	uint64_t before, word;
	struct excerpt e;

	assert_non_null(bytes);
	assert_true(n <= EXCERPT_PARTS_MAX);
	for (size_t i = 0; i < n; i++) {
		const struct stack_dump_part part = {.at = 4096 + 64 * (n - i), .n = 8};

		memcpy(bytes + i * part_bytes, &part, sizeof(part));
	}
	before = count_now();
	excerpt_init(&e, bytes, n * part_bytes, 0);
	for (size_t i = 1; i <= n; i++)
		assert_int_equal(memory_read(&e.memory, 4096 + 64 * (i * 7 % n + 1), &word, 8), 0);
	before = count_now() - before;
	free(bytes);
	return before;
}

/* The line of the last instruction of a function with @n lines, by all shapes of tables. */
static uint64_t python_lines(size_t n)
{
	static const uint8_t pairs[] = {2, 1}, location[] = {0xe8, 2}; /* no column, a line more */
	const int32_t last = 2 * ((int32_t)n - 1);
	uint8_t *table = malloc(2 * n);
	uint64_t before;

	assert_non_null(table);
	for (size_t i = 0; i < n; i++)
		memcpy(table + 2 * i, pairs, sizeof(pairs));
	before = count_now();
	assert_int_equal(python_line(PYTHON_LNOTAB, table, 2 * n, 1, last), n);
	assert_int_equal(python_line(PYTHON_LINETABLE, table, 2 * n, 1, last / 2), n + 1);
	for (size_t i = 0; i < n; i++)
		memcpy(table + 2 * i, location, sizeof(location));
	assert_int_equal(python_line(PYTHON_LOCATIONS, table, 2 * n, 1, last), n + 1);
	before = count_now() - before;
	free(table);
	return before;
}

/* The line of the last bytecode of a Java method with @n lines. */
static uint64_t java_lines(size_t n)
{
	uint8_t *table = malloc(n);
	uint64_t before;

	assert_non_null(table);
	memset(table, 1 << 3 | 1, n);
	before = count_now();
	assert_int_equal(hotspot_line(table, n, false, (uint32_t)n, NULL), n);
	before = count_now() - before;
	free(table);
	return before;
}

/* The lines of a JavaScript function with @n entries, each in another line. */
static uint64_t javascript_lines(size_t n)
{
	struct v8_place *places = calloc(V8_PLACES_MAX, sizeof(*places));
	uint32_t *ends = calloc(n + 1, sizeof(*ends));
	uint8_t *table = malloc(2 * n);
	const struct v8_lines lines = {.first = 1, .ends = ends, .n = n + 1};
	uint64_t before;

	assert_non_null(places);
	assert_non_null(ends);
	assert_non_null(table);
	for (size_t i = 0; i < n; i++)
		memcpy(table + 2 * i, "\x02\x04", 2);
	for (uint32_t i = 0; i <= n; i++)
		ends[i] = i;
	before = count_now();
	assert_int_equal(v8_places_parse(table, 2 * n, 0, 53, &lines, places), n);
	before = count_now() - before;
	free(table);
	free(ends);
	free(places);
	return before;
}

/* The last of @n bytecodes of baseline code. */
static uint64_t javascript_baseline(size_t n)
{
	static const uint8_t sizes[] = {0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1};
	uint8_t *table = malloc(n + 1), *bytecode = malloc(n);
	uint64_t before;

	assert_non_null(table);
	assert_non_null(bytecode);
	memset(table, 1, n + 1);
	memset(bytecode, 4, n);
	before = count_now();
	assert_int_equal(v8_baseline_offset(table, n + 1, bytecode, n, sizes, 5, n), n - 1);
	before = count_now() - before;
	free(bytecode);
	free(table);
	return before;
}

/* The ways to the last of @n instructions, of jumps to the first. */
static uint64_t javascript_ways(size_t n)
{
	uint8_t *code = malloc(2 * n);
	struct v8_ways ways;
	uint64_t before;

	assert_non_null(code);
	for (size_t i = 0; i < n; i++)
		memcpy(code + 2 * i, "\x74\x80", 2);
	before = count_now();
	assert_true(v8_ways_find(code, 2 * n, (uint32_t)(2 * n - 2), (uint32_t)(2 * n - 2), &ways));
	before = count_now() - before;
	free(code);
	return before;
}

static const struct input inputs[] = {
	{"dwarfcode: units", dwarf_units, 4096},
	{"dwarfcode: units without their declaration", dwarf_undeclared, 65536},
	{"dwarfcode: blocks inside of blocks", dwarf_blocks, 4096},
	{"dwarfcode: inlined functions", dwarf_inlined, 4096},
	{"dwarfcode: functions inside of functions", dwarf_functions, 4096},
	{"dwarfcode: sequences over sequences", dwarf_sequences, 4096},
	{"dwarfcode: functions that share ranges", dwarf_sharing_functions, 1024},
	{"dwarfcode: inlined functions that share ranges", dwarf_sharing_inlined, 4096},
	{"dwarfcode: units that share ranges", dwarf_sharing_units, 1024},
	{"dwarfpackage: strings inside of strings", package_tails, 256},
	{"dwarfpackage: strings far from each other", package_far, 256},
	{"dwarfpackage: long strings", package_long, 32},
	{"perf_map: functions inside functions", perf_map_nested, 4096},
	{"perf_map: functions over functions", perf_map_growing, 4096},
	{"perf_map: functions backwards", perf_map_backwards, 4096},
	{"jitdump: parts of a function with lines", jitdump_lines, 4096},
	{"symtab: labels inside a function", symtab_labels, 4096},
	{"symtab: aliases", symtab_aliases, 4096},
	{"symtab: untyped symbols with long names", symtab_untyped, 4096},
	{"symtab: mangled names", symtab_mangled, 1024},
	{"elfsym: one name", elfsym_names, 4096},
	{"rustname: types", rustname_types, 100},
	{"codeentries: symbols with one long name", codeentries_name, 2048},
	{"codeentries: cold names in one string", codeentries_cold, 2048},
	{"codeentries: segments of the same bytes", codeentries_segments, 64},
	{"codescan: segments over each other", codescan_segments, 128},
	{"codescan: calls of unknown functions", codescan_calls, 1024},
	{"codescan: branches", codescan_branches, 2048},
	{"ehframe: functions inside functions", ehframe_nested, 2048},
	{"ehframe: functions backwards", ehframe_backwards, 2048},
	{"ehframe: rules", ehframe_rules, 2048},
	{"ehframe: functions of addresses", functions_rules, 2048},
	{"ehframe: functions of addresses, FDEs inside FDEs", functions_growing, 512},
	{"elfinflate: empty blocks", elfinflate_blocks, 1 << 16},
	{"elfinflate: zeros", elfinflate_zeros, 1 << 18},
	{"excerpt: many parts", excerpt_parts, 64},
	{"python_line: many lines", python_lines, 4096},
	{"hotspot_line: many lines", java_lines, 4096},
	{"v8_places: many lines", javascript_lines, 2048},
	{"v8_baseline: many bytecodes", javascript_baseline, 4096},
	{"v8_ways: many jumps", javascript_ways, 4096},
	{"synthetic: repeated code", synthetic_mpn, 2048},
	{"elffile: notes in all segments", elffile_notes, 128},
	{"gorows: functions with one table", gorows_functions, 1024},
	{"gorows: functions over the same code", gorows_over, 1024},
	{"gopclntab: functions with one table", gopclntab_lines, 1024},
	{"goruntime_file: words like a table's head", goruntime_words, 8192},
	{"gosched: processors", gosched_procs, 128},
	{"gopacer", gopacer_words, 128},
	{"gounpacked: anonymous mappings", gounpacked_maps, 1024},
	{"corefile: mappings", corefile_mappings_of, 2048},
	{"fold: addresses that differ in high bits", fold_high_bits, 1024},
	{"reader: ids from the end", reader_ids, 4096},
	{"flame: samples of one long location", flame_inlined, 4096},
	{"flame: one long stack", flame_deep, 4096},
	{"flame: children of one node", flame_wide, 4096},
};

static void test_growth(void **state)
{
	bool good = true;

	(void)state;
	for (size_t i = 0; i < array_size(inputs); i++) {
		const struct input *row = &inputs[i];
		uint64_t before = row->run(row->n);

		print_message("%-45s %9zu: %11llu", row->name, row->n, (unsigned long long)before);
		assert_true(before > 0);
		for (size_t k = 1; k < SIZES; k++) {
			uint64_t now = row->run(row->n << k);
			double growth = (double)now / (double)before;

			print_message("  *%.2f%s", growth, growth > GROWTH_MAX ? " TOO MUCH" : "");
			good &= growth <= GROWTH_MAX;
			before = now;
		}
		print_message("\n");
	}
	assert_true(good);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_growth),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
