// SPDX-License-Identifier: Apache-2.0
/*
 * Processes with HotSpot that contradict themselves. Each row changes a small process
 * (test/fuzz/runtimes/corpus/hotspot_memory/whole): 4096 the variables of the image, 4608 the table
 * of fields, 7168 of types, 14336 static fields, 14592 code heap, 14848 array of heaps, 15104 queue
 * of the interpreter, 15360 map of segments, 15616 method, 15680 ConstMethod, 15872 constant pool,
 * 16128 class, 16256 the pointers of the code to its methods, 16384 its other debug information,
 * 20480 the heap: the interpreter's blob at 20496, its parts at 20560, the blob of a method at
 * 22544. Another method at 15648, with its ConstMethod at 15744, is inlined there.
 */
#include "support/test.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/root.h"
#include "procmap/memory_cache.h"
#include "runtimes/hotspot_line.h"
#include "runtimes/hotspot_method.h"
#include "runtimes/hotspot_name.h"
#include "runtimes/hotspot_process.h"
#include "runtimes/hotspot_scopes.h"
#include "support/flatmemory.h"

#define CORPUS "test/fuzz/runtimes/corpus/hotspot_memory"
#define HEAD   5 /* bytes of the fuzzer's own */
#define BYTES  32768

#define METHOD	     15616
#define INLINED	     15648
#define CONST	     15680
#define POOL	     15872
#define CLASS	     16128
#define BLOB	     22544
#define CODE	     40 /* distance from the blob */
#define POOL_ENTRIES 24
#define NAME_INDEX   1 /* of the method at METHOD */
#define SYMBOL_TEXT  6
#define METHODS	     16272
#define IMMUTABLE    16384
#define DESCS	     (IMMUTABLE + 32)
#define SCOPES	     (IMMUTABLE + 96)
#define INTERPRETER  20560

struct subject {
	uint8_t bytes[BYTES];
	struct flatmemory fm;
	struct hotspot_target target;
	uint16_t machine; /* 0: EM_X86_64 */
};

static void subject_init(struct subject *s)
{
	_cleanup_(root_deinit) struct root root = ROOT_INIT;
	_cleanup_(buf_deinit) struct buf b = BUF_INIT(BYTES);

	*s = (struct subject){.fm = {.n = 0}};
	assert_int_equal(root_open(CORPUS, &root), 0);
	assert_int_equal(root_read(&root, "whole", &b), 0);
	memcpy(s->bytes, b.data + HEAD, b.len - HEAD);
	flatmemory_init(&s->fm, s->bytes, b.len - HEAD);
}

static void put(struct subject *s, uint64_t addr, uint64_t word)
{
	memcpy(s->bytes + addr - FLATMEMORY_BASE, &word, sizeof(word));
}

static int attach(struct subject *s)
{
	struct hotspot_image image = {.machine = s->machine ? s->machine : EM_X86_64};
	int r;

	for (int i = 0; i < HOTSPOT_VARIABLE_MAX; i++)
		image.variables[i] = FLATMEMORY_BASE + 8ull * (unsigned int)i;
	r = hotspot_layout_read(&s->fm.memory, &image, 0, &s->target.layout);
	return r ? r : hotspot_process_attach(&s->fm.memory, &s->target);
}

static uint64_t mix(uint64_t h, uint64_t word)
{
	h = (h ^ word) * 0x9e3779b97f4a7c15ull;
	return h ^ h >> 29;
}

static uint64_t check_of(uint64_t a, uint64_t b, uint64_t c)
{
	return mix(mix(mix(0, a), b), c) >> 32 << 32;
}

static uint64_t word_at(const struct subject *s, uint64_t addr)
{
	uint64_t word;

	memcpy(&word, s->bytes + addr - FLATMEMORY_BASE, sizeof(word));
	return word;
}

static uint64_t check_of_blob(const struct subject *s)
{
	return check_of(word_at(s, BLOB), METHOD, 77);
}

/* Eight words, up to the last with characters; the first has the count of references. */
static uint64_t mix_symbol(uint64_t h, const struct subject *s, uint64_t at)
{
	const uint64_t first = word_at(s, at), n = SYMBOL_TEXT + (first >> 32 & 0xffff);

	h = mix(h, first & ~0xffffull);
	for (uint64_t off = 8; off < 64; off += 8)
		h = mix(h, off < n ? word_at(s, at + off) : 0);
	return h;
}

static uint64_t check_of_method(const struct subject *s)
{
	const uint64_t class = word_at(s, POOL + 8);
	uint64_t h = mix(mix(mix(0, CONST), POOL), word_at(s, CONST + 24));

	h = mix_symbol(h, s, word_at(s, POOL + POOL_ENTRIES + 8 * NAME_INDEX));
	return mix(h, mix_symbol(0, s, word_at(s, class + 8))) >> 32 << 32;
}

static void read_frame(struct subject *s, uint64_t first, uint64_t second,
		       struct hotspot_function *ret)
{
	assert_int_equal(
		hotspot_function_read(&s->fm.memory, &s->target, (uint64_t[]){first, second}, ret),
		0);
}

/* ---------------------------------------------------------------- as it is */

static void whole(void **state)
{
	_cleanup_(hotspot_function_deinit) struct hotspot_function f = {0}, g = {0}, h = {0};
	struct runtime_place place;
	struct subject s;

	(void)state;
	subject_init(&s);
	assert_int_equal(attach(&s), HOTSPOT_OK);
	assert_int_equal(s.target.version[0], 21);
	assert_int_equal(s.target.version[2], 4);
	assert_int_equal(s.target.process.heaps[0].low, 20480);
	assert_int_equal(s.target.process.heaps[1].segments, 0);
	assert_int_equal(s.target.process.interpreter, INTERPRETER);
	assert_int_equal(s.target.process.entry, INTERPRETER + 0x100);
	assert_int_equal(s.target.process.entry_limit, INTERPRETER + 0x300);
	assert_true(s.target.process.complete_is_short);

	read_frame(&s, BLOB, check_of_blob(&s) | 5, &f); /* before the code */
	place = hotspot_function_place(&f);
	assert_string_equal(place.function.name, "org.x.Map.put(int, Object[])");
	assert_string_equal(place.function.file, "org/x/Map.java");
	assert_int_equal(place.function.start_line, 7);
	assert_int_equal(place.line, 0);
	assert_int_equal(place.n_inlined, 0);

	read_frame(&s, METHOD, check_of_method(&s) | 5, &g);
	place = hotspot_function_place(&g);
	assert_string_equal(place.function.name, "org.x.Map.put(int, Object[])");
	assert_int_equal(place.line, 8);

	/* a blob that is no method */
	assert_int_equal(
		hotspot_function_read(
			&s.fm.memory, &s.target,
			(uint64_t[]){20496, check_of(word_at(&s, 20496), word_at(&s, 20496 + 24),
						     (uint32_t)word_at(&s, 20496 + 32))},
			&h),
		0);
	place = hotspot_function_place(&h);
	assert_string_equal(place.function.name, "Interpreter");
	assert_string_equal(place.function.file, "");
}

/* ---------------------------------------------------------------- processes */

struct row {
	const char *what;
	uint64_t addr;
	uint64_t word;
	int outcome;
};

static const struct row rows[] = {
	{"no fields", 4096, 0, HOTSPOT_NOT_READY},
	{"fields elsewhere", 4096, UINT64_MAX - 64, HOTSPOT_UNREADABLE},
	{"no end of the fields", 4096 + 56, 0, HOTSPOT_ODD},
	{"entries of all bytes", 4096 + 56, UINT64_MAX, HOTSPOT_ODD},
	{"an offset behind the entry", 4096 + 40, 48, HOTSPOT_ODD},
	{"an empty table", 4608, 0, HOTSPOT_VERSION},
	{"no types", 7168, 0, HOTSPOT_VERSION},
	{"a block of odd size", 7176, 12, HOTSPOT_VERSION},
	{"a blob's name far away", 4608 + 20 * 48 + 32, 4096, HOTSPOT_VERSION},
	{"no heaps yet", 14336, 0, HOTSPOT_NOT_READY},
	{"no code yet", 14352, 0, HOTSPOT_NOT_READY},
	{"too much code", 14352, 1ull << 40, HOTSPOT_ODD},
	{"no heap", 14848, 0, HOTSPOT_NOT_READY},
	{"too many heaps", 14848, 5, HOTSPOT_ODD},
	{"a heap twice", 14848, 2, HOTSPOT_UNREADABLE},
	{"a heap below the code", 14592, 4096, HOTSPOT_ODD},
	{"a heap beyond the code", 14600, 1 << 20, HOTSPOT_ODD},
	{"a heap from its end on", 14600, 20480, HOTSPOT_ODD},
	{"no map", 14640, 0, HOTSPOT_ODD},
	{"segments of a byte", 14656, 0, HOTSPOT_ODD},
	{"segments of 4 GB", 14656, 32, HOTSPOT_ODD},
	{"no interpreter yet", 14360, 0, HOTSPOT_NOT_READY},
	{"an interpreter outside", 15112, 4096, HOTSPOT_ODD},
	{"an interpreter of no size", 15104 + 16, 0, HOTSPOT_ODD},
	{"an interpreter of 4 GB", 15104 + 16, UINT64_MAX, HOTSPOT_ODD},
	{"parts still to come", 15104 + 24, 0x300ull << 32, HOTSPOT_NOT_READY},
	{"no parts yet", 15104 + 24, 0, HOTSPOT_NOT_READY},
	{"more parts than interpreter", 15104 + 24, UINT64_MAX, HOTSPOT_ODD},
	{"a part of no size", INTERPRETER + 8, 0, HOTSPOT_ODD},
	{"a part beyond the end", INTERPRETER + 8, 0x10000, HOTSPOT_ODD},
	{"a part without text", INTERPRETER, 1, HOTSPOT_UNREADABLE},
	{"free memory", 15360, UINT64_MAX, HOTSPOT_ODD},
	{"hops before the heap", 15360, 0x0101010101010101ull, HOTSPOT_ODD},
	{"another blob", 20496, 4096, HOTSPOT_ODD},
	{"a blob without name", 20496, 0, HOTSPOT_UNREADABLE},
};

static void odd_processes(void **state)
{
	struct subject s;

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		row_begin(rows[i].what);
		subject_init(&s);
		put(&s, rows[i].addr, rows[i].word);
		assert_int_equal(attach(&s), rows[i].outcome);
	}
}

/* HotSpot 8 keeps the memory behind the last part. */
static void interpreter_of_8(void **state)
{
	static const struct {
		uint64_t end;
		int outcome;
	} parts[] = {
		{0, HOTSPOT_NOT_READY},	    {0x100, HOTSPOT_NOT_READY}, {0x200, HOTSPOT_NOT_READY},
		{0x300, HOTSPOT_NOT_READY}, {0x600, HOTSPOT_OK},
	};
	struct subject s;

	(void)state;
	for (size_t i = 0; i < array_size(parts); i++) {
		struct hotspot_layout *layout = &s.target.layout;

		row_begin("8");
		subject_init(&s);
		assert_int_equal(attach(&s), HOTSPOT_OK);
		layout->known[HOTSPOT_HEAP] = true;
		layout->fields[HOTSPOT_HEAP] = 14976;
		put(&s, 15104 + 24, parts[i].end << 32);
		assert_int_equal(hotspot_process_attach(&s.fm.memory, &s.target), parts[i].outcome);
	}
}

/* ---------------------------------------------------------------- functions */

static const struct row function_rows[] = {
	{"freed", BLOB, 0, HOTSPOT_ODD},
	{"compiled again", BLOB + 32, 78, HOTSPOT_ODD},
	{"another method", BLOB + 24, METHOD + 8, HOTSPOT_ODD},
	{"no ConstMethod", METHOD + 8, 0, HOTSPOT_UNREADABLE},
	{"no constants", CONST + 8, 0, HOTSPOT_UNREADABLE},
	{"a name behind the constants", CONST + 24, 0x0001000500000009ull, HOTSPOT_ODD},
	{"few constants", POOL + 16, 1, HOTSPOT_ODD},
	{"no class", POOL + 8, 0, HOTSPOT_UNREADABLE},
	{"a symbol elsewhere", POOL + 32, UINT64_MAX - 1, HOTSPOT_UNREADABLE},
	{"a class without name", 16136, 0, HOTSPOT_UNREADABLE},
	{"lines behind the memory", CONST + 16, 0x0000000100010000ull, HOTSPOT_UNREADABLE},
};

static void odd_functions(void **state)
{
	struct subject s;

	(void)state;
	for (size_t i = 0; i < array_size(function_rows); i++) {
		const struct row *row = &function_rows[i];
		struct hotspot_function f = {0};
		uint64_t words[2] = {BLOB};

		row_begin(row->what);
		subject_init(&s);
		assert_int_equal(attach(&s), HOTSPOT_OK);
		words[1] = check_of_blob(&s);
		put(&s, row->addr, row->word);
		assert_int_equal(hotspot_function_read(&s.fm.memory, &s.target, words, &f),
				 row->outcome);
		assert_null(f.places);
	}
}

/* A freed block keeps the words of the check. */
static void freed(void **state)
{
	_cleanup_(hotspot_function_deinit) struct hotspot_function f = {0};
	struct subject s;

	(void)state;
	subject_init(&s);
	assert_int_equal(attach(&s), HOTSPOT_OK);
	s.target.layout.known[HOTSPOT_BLOCK_USED] = true;
	s.target.layout.fields[HOTSPOT_BLOCK_USED] = 8;
	put(&s, BLOB - 8, 1);
	read_frame(&s, BLOB, check_of_blob(&s) | 5, &f);
	hotspot_function_deinit(&f);
	put(&s, BLOB - 8, 0);
	assert_int_equal(hotspot_function_read(&s.fm.memory, &s.target,
					       (uint64_t[]){BLOB, check_of_blob(&s) | 5}, &f),
			 HOTSPOT_ODD);
	assert_null(f.places);
}

/* Without lines the name stays. */
static void no_lines(void **state)
{
	static const uint64_t words[] = {
		0x0000000000000006ull, /* no flag */
		0x0000000100000004ull, /* no room behind the bytecodes */
		0x00000001ffffffffull, /* 32 GB */
	};
	struct subject s;

	(void)state;
	for (size_t i = 0; i < array_size(words); i++) {
		_cleanup_(hotspot_function_deinit) struct hotspot_function f = {0};
		struct runtime_place place;

		subject_init(&s);
		assert_int_equal(attach(&s), HOTSPOT_OK);
		put(&s, CONST + 16, words[i]);
		read_frame(&s, METHOD, check_of_method(&s) | 4, &f);
		place = hotspot_function_place(&f);
		assert_string_equal(place.function.name, "org.x.Map.put(int, Object[])");
		assert_int_equal(place.function.start_line, 0);
		assert_int_equal(place.line, 0);
	}
}

/* ---------------------------------------------------------------- inlined functions */

/* The functions at a place of the code, innermost first: bytecode and line of each. */
struct scope_row {
	const char *what;
	uint32_t pc; /* from the code on */
	uint64_t addr, word;
	size_t n;
	uint64_t methods[2];
	uint32_t bcis[2];
};

#define NO_BCI HOTSPOT_NO_BCI

/* Seven bytes of the scopes are, from the lowest on: a zero, the compiled method, the inlined one;
 * each number is one larger. */
static const struct scope_row scope_rows[] = {
	{"the frame is made", 3, 0, 0, 1, {METHOD}, {0}},
	{"a whole frame", 4, 0, 0, 1, {METHOD}, {4}},
	{"in the first call", 7, 0, 0, 1, {METHOD}, {4}},
	{"behind it", 8, 0, 0, 2, {INLINED, METHOD}, {3, 4}},
	{"in the second", 15, 0, 0, 2, {INLINED, METHOD}, {3, 4}},
	{"without debug information", 16, 0, 0, 1, {METHOD}, {NO_BCI}},
	{"behind all", 64, 0, 0, 1, {METHOD}, {NO_BCI}},
	{"far behind", UINT32_MAX, 0, 0, 1, {METHOD}, {NO_BCI}},
	{"the entry", 8, SCOPES, 0x01030206020100ull, 2, {INLINED, METHOD}, {0, 4}},
	{"a scope of itself", 8, SCOPES, 0x05030506020100ull, 1, {METHOD}, {NO_BCI}},
	{"a scope behind", 8, SCOPES, 0x05030606020100ull, 1, {METHOD}, {NO_BCI}},
	{"no caller", 8, SCOPES, 0x05030106020100ull, 1, {METHOD}, {NO_BCI}},
	{"no method", 8, SCOPES, 0x05010206020100ull, 1, {METHOD}, {NO_BCI}},
	{"another method outermost", 8, SCOPES, 0x05030206030100ull, 1, {METHOD}, {NO_BCI}},
	{"a zero in a number", 8, SCOPES, 0x00030206020100ull, 1, {METHOD}, {NO_BCI}},
	{"a method elsewhere", 8, SCOPES, 0x05bf0206020100ull, 1, {METHOD}, {NO_BCI}},
	{"a scope behind the scopes", 8, DESCS + 32, 0x0000002000000010ull, 1, {METHOD}, {NO_BCI}},
	{"a scope before the scopes", 8, DESCS + 32, 0xfffffff000000010ull, 1, {METHOD}, {NO_BCI}},
	{"no immutable data", 8, BLOB + 56, 0, 1, {METHOD}, {NO_BCI}},
	{"descriptions behind the scopes",
	 8,
	 BLOB + 68,
	 0x0000006000000060ull,
	 1,
	 {METHOD},
	 {NO_BCI}},
	{"too many descriptions", 8, BLOB + 68, 0x7fffffff00000020ull, 1, {METHOD}, {NO_BCI}},
	{"no methods", 8, BLOB + 40, UINT64_MAX - 1024, 1, {METHOD}, {NO_BCI}},
};

static void scopes(void **state)
{
	struct subject s;

	(void)state;
	for (size_t i = 0; i < array_size(scope_rows); i++) {
		const struct scope_row *row = &scope_rows[i];
		struct hotspot_tables tables;
		struct hotspot_scopes got;

		row_begin(row->what);
		subject_init(&s);
		assert_int_equal(attach(&s), HOTSPOT_OK);
		if (row->addr)
			put(&s, row->addr, row->word);
		assert_int_equal(
			hotspot_tables_read(&s.fm.memory, &s.target, BLOB, NULL, 0, &tables), 0);
		assert_int_equal(hotspot_scopes_read(&s.fm.memory, &s.target, &tables, METHOD,
						     BLOB + CODE + row->pc, &got),
				 0);
		assert_int_equal(got.n, row->n);
		for (size_t k = 0; k < row->n; k++) {
			assert_int_equal(got.items[k].method, row->methods[k]);
			assert_int_equal(got.items[k].bci, row->bcis[k]);
		}
	}
}

static void inlined(void **state)
{
	_cleanup_(hotspot_function_deinit) struct hotspot_function f = {0};
	struct runtime_place place;
	struct subject s;

	(void)state;
	subject_init(&s);
	assert_int_equal(attach(&s), HOTSPOT_OK);
	read_frame(&s, BLOB, check_of_blob(&s) | (CODE + 15), &f);
	place = hotspot_function_place(&f);
	assert_string_equal(place.function.name, "org.x.Map.put(int, Object[])");
	assert_int_equal(place.line, 7);
	assert_int_equal(place.n_inlined, 1);
	assert_string_equal(place.inlined[0].function.name, "org.x.Map.get(int, Object[])");
	assert_string_equal(place.inlined[0].function.file, "org/x/Map.java");
	assert_int_equal(place.inlined[0].function.start_line, 20);
	assert_int_equal(place.inlined[0].line, 21);
}

/* System calls take most of the time of reading names. */
static void calls(void **state)
{
	_cleanup_(hotspot_function_deinit) struct hotspot_function f = {0}, g = {0};
	struct subject s;
	uint64_t alone;

	(void)state;
	subject_init(&s);
	assert_int_equal(attach(&s), HOTSPOT_OK);
	alone = s.fm.memory.n_calls;
	read_frame(&s, METHOD, check_of_method(&s) | 5, &f);
	alone = s.fm.memory.n_calls - alone;
	assert_int_equal(alone, 19);
	s.fm.memory.n_calls = 0;
	read_frame(&s, BLOB, check_of_blob(&s) | (CODE + 15), &g);
	assert_int_equal(g.n_places, 2);
	assert_int_equal(s.fm.memory.n_calls, 13);
}

/* A second function of the same methods takes what the first one left in a cache. Its code must
 * still be there. */
static void cached(void **state)
{
	_cleanup_(hotspot_function_deinit) struct hotspot_function f = {0}, g = {0}, h = {0};
	struct memory_cache cache;
	struct subject s;
	uint64_t words[2] = {BLOB};

	(void)state;
	subject_init(&s);
	assert_int_equal(attach(&s), HOTSPOT_OK);
	words[1] = check_of_blob(&s) | (CODE + 15);
	memory_cache_init(&cache, &s.fm.memory);
	s.fm.memory.n_calls = 0;
	assert_int_equal(hotspot_function_read(&cache.memory, &s.target, words, &f), HOTSPOT_OK);
	assert_int_equal(f.n_places, 2);
	assert_int_equal(s.fm.memory.n_calls, 8);
	s.fm.memory.n_calls = 0;
	assert_int_equal(hotspot_function_read(&cache.memory, &s.target, words, &g), HOTSPOT_OK);
	assert_int_equal(g.n_places, 2);
	assert_string_equal(g.places[0].function.name, f.places[0].function.name);
	assert_int_equal(s.fm.memory.n_calls, 1);
	put(&s, BLOB + 24, METHOD + 8);
	assert_int_equal(hotspot_function_read(&cache.memory, &s.target, words, &h), HOTSPOT_ODD);
	assert_null(h.places);
}

/* Where the tables are, by release. */
static void layouts(void **state)
{
	static const struct {
		const char *what;
		bool scopes, immutable, mutable;
		uint64_t methods;
	} layout_rows[] = {
		{"to 22", true, false, false, BLOB + 8},
		{"23, 24", false, true, false, BLOB + 96 + 8},
		{"from 25 on", false, true, true, METHODS},
	};
	struct hotspot_tables got;
	struct subject s;

	(void)state;
	for (size_t i = 0; i < array_size(layout_rows); i++) {
		struct hotspot_layout *layout = &s.target.layout;
		const uint64_t from = layout_rows[i].immutable ? IMMUTABLE : BLOB;

		row_begin(layout_rows[i].what);
		subject_init(&s);
		assert_int_equal(attach(&s), HOTSPOT_OK);
		put(&s, BLOB + 80, 8 | 96ull << 32);
		layout->fields[HOTSPOT_BLOB_METHODS_OFF] = 80;
		layout->fields[HOTSPOT_BLOB_DATA_OFF] = 84;
		layout->known[HOTSPOT_BLOB_METHODS_OFF] = true;
		layout->known[HOTSPOT_BLOB_DATA_OFF] = true;
		layout->known[HOTSPOT_BLOB_IMMUTABLE] = layout_rows[i].immutable;
		layout->known[HOTSPOT_BLOB_MUTABLE] = layout_rows[i].mutable;
		if (layout_rows[i].scopes) { /* before the descriptions */
			put(&s, BLOB + 88, BLOB + 24);
			layout->fields[HOTSPOT_BLOB_SCOPES] = 88;
			layout->fields[HOTSPOT_BLOB_DESCS_END] = 72;
			layout->known[HOTSPOT_BLOB_SCOPES] = true;
			layout->known[HOTSPOT_BLOB_DESCS_END] = true;
		}
		assert_int_equal(hotspot_tables_read(&s.fm.memory, &s.target, BLOB, NULL, 0, &got),
				 0);
		assert_int_equal(got.code, BLOB + CODE);
		assert_int_equal(got.descs, from + 32);
		assert_int_equal(got.descs_limit, from + 96);
		assert_int_equal(got.scopes, layout_rows[i].scopes ? BLOB + 24 : (uint64_t)SCOPES);
		assert_int_equal(got.methods, layout_rows[i].methods);
	}
	s.target.layout.known[HOTSPOT_DESC_PC] = false;
	assert_int_equal(hotspot_tables_read(&s.fm.memory, &s.target, BLOB, NULL, 0, &got), 0);
	assert_int_equal(got.descs, 0);
}

/* Other words come with the tables: as many as there may be, and one more. */
static void other_words(void **state)
{
	struct memory_range others[HOTSPOT_TABLES_OTHERS_MAX + 1];
	uint64_t words[HOTSPOT_TABLES_OTHERS_MAX + 1] = {0};
	struct hotspot_tables got;
	struct subject s;

	(void)state;
	subject_init(&s);
	assert_int_equal(attach(&s), HOTSPOT_OK);
	put(&s, BLOB + 8, 7);
	for (size_t i = 0; i < array_size(others); i++)
		others[i] = (struct memory_range){BLOB + 8, &words[i], 8};
	assert_int_equal(hotspot_tables_read(&s.fm.memory, &s.target, BLOB, others,
					     HOTSPOT_TABLES_OTHERS_MAX, &got),
			 0);
	assert_int_equal(words[HOTSPOT_TABLES_OTHERS_MAX - 1], 7);
	assert_int_equal(hotspot_tables_read(&s.fm.memory, &s.target, BLOB, others,
					     HOTSPOT_TABLES_OTHERS_MAX + 1, &got),
			 -EINVAL);
}

/* Up to 15, the class has the index of its source file. */
static void source_of_class(void **state)
{
	_cleanup_(hotspot_function_deinit) struct hotspot_function f = {0};
	struct subject s;

	(void)state;
	subject_init(&s);
	assert_int_equal(attach(&s), HOTSPOT_OK);
	s.target.layout.known[HOTSPOT_POOL_SOURCE] = false;
	s.target.layout.known[HOTSPOT_CLASS_SOURCE] = true;
	s.target.layout.fields[HOTSPOT_CLASS_SOURCE] = 24;
	put(&s, CLASS + 24, 3);
	read_frame(&s, METHOD, check_of_method(&s), &f);
	assert_string_equal(hotspot_function_place(&f).function.file, "org/x/Map.java");
}

/* A method that HotSpot makes has a small pool with the source's index of another pool. */
static void source_of_another_pool(void **state)
{
	_cleanup_(hotspot_function_deinit) struct hotspot_function f = {0};
	const uint32_t n = 3;
	struct subject s;

	(void)state;
	subject_init(&s);
	memcpy(s.bytes + POOL + 16 - FLATMEMORY_BASE, &n, sizeof(n));
	assert_int_equal(attach(&s), HOTSPOT_OK);
	read_frame(&s, METHOD, check_of_method(&s), &f);
	assert_string_equal(hotspot_function_place(&f).function.name,
			    "org.x.Map.put(int, Object[])");
	assert_string_equal(hotspot_function_place(&f).function.file, "");
}

/* ---------------------------------------------------------------- names */

static void names(void **state)
{
	static const struct {
		const char *class, *method, *signature, *source;
		const char *name, *file;
	} name_rows[] = {
		{"java/util/HashMap", "put", "(Ljava/lang/Object;Ljava/lang/Object;)V",
		 "HashMap.java", "java.util.HashMap.put(Object, Object)", "java/util/HashMap.java"},
		{"A", "<init>", "()V", "A.java", "A.<init>()", "A.java"},
		{"A", "f", "(BCDFIJSZ[[I[La/B;)J", "",
		 "A.f(byte, char, double, float, int, long, short, boolean, int[][], B[])", ""},
		{"a/A$$Lambda$14/0x0000000800c03000", "run", "()V", "A.java", "a.A$$Lambda.run()",
		 "a/A.java"},
		{"a/A$$Lambda+0x0000000800c03000", "run", "()V", "", "a.A$$Lambda.run()", ""},
		{"jdk/proxy2/$Proxy65", "f", "()V", "", "jdk.proxy2.$Proxy.f()", ""},
		{"a/GeneratedMethodAccessor7", "invoke", "()V", "",
		 "a.GeneratedMethodAccessor.invoke()", ""},
		{"a/$Proxy", "f", "()V", "", "a.$Proxy.f()", ""},
		{"a/A$1", "f", "()V", "", "a.A$1.f()", ""},
		{"a/$colon$colon", "$plus$plus$colon", "()V", "List.scala", "a.::.++:()",
		 "a/List.scala"},
		{"a/A", "x_$eq", "()V", "A.scala", "a.A.x_=()", "a/A.scala"},
		{"a/A$", "$anonfun$attempt$1", "()V", "A.scala", "a.A$.$anonfun$attempt$1()",
		 "a/A.scala"},
		{"a/A", "$plus", "()V", "A.java", "a.A.$plus()", "a/A.java"},
		{"my_ns/core$swap_BANG_", "invoke", "()V", "core.clj", "my-ns.core$swap!.invoke()",
		 "my_ns/core.clj"},
		{"my_ns/core$do_it_QMARK_", "invoke", "()V", "core.cljc",
		 "my-ns.core$do-it?.invoke()", "my_ns/core.cljc"},
		{"a/Size0x10", "run", "()V", "", "a.Size0x10.run()", ""},
		{"A", "f", "", "", "A.f", ""},
		{"A", "f", "(", "", "A.f(...)", ""},
		{"A", "f", "(Q)V", "", "A.f(...)", ""},
		{"A", "f", "(ILx", "", "A.f(int, ...)", ""},
		{"A", "f", "([", "", "A.f(...)", ""},
	};
	char got[256];

	(void)state;
	for (size_t i = 0; i < array_size(name_rows); i++) {
		hotspot_name(name_rows[i].class, name_rows[i].method, name_rows[i].signature,
			     name_rows[i].source, got, sizeof(got));
		assert_string_equal(got, name_rows[i].name);
		hotspot_file(name_rows[i].class, name_rows[i].source, got, sizeof(got));
		assert_string_equal(got, name_rows[i].file);
	}
	hotspot_name("java/util/HashMap", "put", "(II)V", "", got, 8);
	assert_string_equal(got, "java.ut");
}

/* ---------------------------------------------------------------- lines */

#define BYTES_OF(text) text, sizeof(text) - 1

static void lines(void **state)
{
	static const struct {
		const char *name;
		const char *table;
		size_t n;
		bool no_zero;
		uint32_t bci, line;
	} line_rows[] = {
		{"no table", BYTES_OF(""), false, 0, 0},
		{"an end", BYTES_OF("\0"), false, 0, 0},
		{"the first", BYTES_OF("\x07\x29\0"), false, 0, 7},
		{"before the second", BYTES_OF("\x07\x29\0"), false, 4, 7},
		{"the second", BYTES_OF("\x07\x29\0"), false, 5, 8},
		{"behind the last", BYTES_OF("\x07\x29\0"), false, 60000, 8},
		{"before the first", BYTES_OF("\x17\0"), false, 0, 7},
		{"numbers", BYTES_OF("\xff\x04\xc8\x02\0"), false, 2, 164},
		{"numbers without zeros", BYTES_OF("\xff\x05\xc9\x03\0"), true, 2, 164},
		{"backwards", BYTES_OF("\xff\x04\xc8\x02\xff\x08\x07\0"), false, 6, 160},
		{"a cut number", BYTES_OF("\x07\xff\xc8\xc8"), false, 9, 7},
		{"a zero in a number", BYTES_OF("\x07\xff\0\x05"), true, 9, 7},
	};

	(void)state;
	for (size_t i = 0; i < array_size(line_rows); i++) {
		uint32_t first;

		row_begin(line_rows[i].name);
		assert_int_equal(hotspot_line((const uint8_t *)line_rows[i].table, line_rows[i].n,
					      line_rows[i].no_zero, line_rows[i].bci, &first),
				 line_rows[i].line);
		assert_true(first <= line_rows[i].line);
	}
}

/* On arm64, the register with the caller's sp is that of the entry's stp xzr,x19,[sp,#64], behind
 * its add x29,sp,#80; in 8, whose frame has two words less, of stp xzr,x13,[sp,#48], behind add
 * x29,sp,#64. Without it, the interpreter is still being made. */
static void test_arm64(void **state)
{
	static const struct {
		const char *what;
		bool is_8;
		uint64_t code;
		int outcome;
		uint8_t sender;
		uint16_t bcp;
	} entries[] = {
		{"none", false, 0, HOTSPOT_NOT_READY, 0, 0},
		{"17", false, 0xa90437ff910143fd, HOTSPOT_OK, 13, 72},
		{"21", false, 0xa9044fff910143fd, HOTSPOT_OK, 19, 72},
		{"8", true, 0xa90337ff910103fd, HOTSPOT_OK, 13, 56},
		{"17 in a frame of 8", true, 0xa90437ff910143fd, HOTSPOT_NOT_READY, 0, 0},
		{"8 in a frame of 17", false, 0xa90337ff910103fd, HOTSPOT_NOT_READY, 0, 0},
	};
	struct subject s;

	(void)state;
	for (size_t i = 0; i < array_size(entries); i++) {
		const struct hotspot_process *p = &s.target.process;

		row_begin(entries[i].what);
		subject_init(&s);
		assert_int_equal(attach(&s), HOTSPOT_OK);
		s.target.layout.machine = EM_AARCH64;
		if (entries[i].is_8) {
			s.target.layout.known[HOTSPOT_HEAP] = true;
			s.target.layout.fields[HOTSPOT_HEAP] = 14976;
			put(&s, 15104 + 24, 0x600ull << 32);
		}
		put(&s, INTERPRETER + 0x180, entries[i].code);
		assert_int_equal(hotspot_process_attach(&s.fm.memory, &s.target),
				 entries[i].outcome);
		if (entries[i].outcome)
			continue;
		assert_int_equal(p->entry_sender, entries[i].sender);
		assert_int_equal(p->frame_bcp, entries[i].bcp);
		assert_int_equal(p->made[0][0], 0x84 / 4);
		assert_int_equal(p->made[0][1], 0x200 / 4);
		assert_int_equal(p->made[1][1], 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_arm64),
		cmocka_unit_test(whole),
		cmocka_unit_test(odd_processes),
		cmocka_unit_test(no_lines),
		cmocka_unit_test(odd_functions),
		cmocka_unit_test(names),
		cmocka_unit_test(lines),
		cmocka_unit_test(scopes),
		cmocka_unit_test(inlined),
		cmocka_unit_test(calls),
		cmocka_unit_test(cached),
		cmocka_unit_test(layouts),
		cmocka_unit_test(other_words),
		cmocka_unit_test(source_of_class),
		cmocka_unit_test(freed),
		cmocka_unit_test(source_of_another_pool),
		cmocka_unit_test(interpreter_of_8),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
