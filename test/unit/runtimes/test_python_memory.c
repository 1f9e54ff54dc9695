// SPDX-License-Identifier: Apache-2.0
/*
 * Processes that contradict themselves. Each row changes a small process of 3.12
 * (test/fuzz/runtimes/corpus/python_memory/3.12): addresses 4096 _PyRuntime, 4224 thread state,
 * 4480 code object, 4992 interpreter, 5184 cframe, 5248 frame, 5440 the interpreter's own frame,
 * 5568 type of the code object, 5632 file name, 5760 name, 5888 line table, 6144 struct pthread.
 */
#include "support/test.h"

#include <elf.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/root.h"
#include "runtimes/python_code.h"
#include "runtimes/python_frames.h"
#include "runtimes/python_process.h"
#include "runtimes/python_string.h"
#include "support/flatmemory.h"

#define CORPUS	"test/fuzz/runtimes/corpus/python_memory"
#define OFFSETS "test/fuzz/runtimes/corpus/python_offsets"
#define HEAD	2 /* bytes of the fuzzer's own */
#define BYTES	8192
#define FRAMES	64

#define STATE 4224
#define CODE  4480

/* Words above this have all bytes 0xff. */
#define HUGE UINT64_MAX

struct subject {
	uint8_t bytes[BYTES];
	struct flatmemory fm;
	struct python_image image;
	struct python_threads threads;
	struct python_process process;
};

static void subject_init(struct subject *s, const char *release, uint16_t version)
{
	_cleanup_(root_deinit) struct root root = ROOT_INIT;
	_cleanup_(buf_deinit) struct buf b = BUF_INIT(BYTES);

	*s = (struct subject){.image = {.machine = EM_X86_64, .runtime = FLATMEMORY_BASE}};
	assert_int_equal(root_open(CORPUS, &root), 0);
	assert_int_equal(root_read(&root, release, &b), 0);
	memcpy(s->bytes, b.data + HEAD, b.len - HEAD);
	flatmemory_init(&s->fm, s->bytes, b.len - HEAD);
	assert_true(python_layout_of_version(version, &s->image.layout));
}

static void put(struct subject *s, uint64_t addr, uint64_t word)
{
	memcpy(s->bytes + addr - FLATMEMORY_BASE, &word, sizeof(word));
}

static int attach(struct subject *s)
{
	return python_process_attach(&s->fm.memory, &s->image, 0, &s->process, &s->threads);
}

/* Each release's process as it is. */
static void all_releases(void **state)
{
	static const struct {
		const char *release;
		uint16_t version;
		size_t n_frames;
		uint32_t line;
	} rows[] = {
		{"3.6", 0x0306, 2, 9},	{"3.8", 0x0308, 2, 9},	{"3.10", 0x030a, 2, 9},
		{"3.11", 0x030b, 2, 8}, {"3.12", 0x030c, 1, 8},
	};

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		_cleanup_(python_code_deinit) struct python_code code = {0};
		struct python_frame frames[FRAMES];
		struct subject s;
		size_t n;

		subject_init(&s, rows[i].release, rows[i].version);
		assert_int_equal(attach(&s), PYTHON_OK);
		assert_int_equal(s.process.way.at, 0x318);
		assert_false(s.process.way.in_array);
		assert_int_equal(s.threads.n, 1);
		assert_int_equal(
			python_frames_read(&s.fm.memory, &s.process, STATE, FRAMES, frames, &n), 0);
		assert_int_equal(n, rows[i].n_frames);
		assert_int_equal(frames[0].place, 4);
		assert_int_equal(python_code_read(&s.fm.memory, &s.image.layout, frames[0].code,
						  NULL, &code),
				 0);
		assert_string_equal(code.file, "app.py");
		assert_string_equal(code.name, "n\xd0\xb6x");
		assert_int_equal(code.first_line, 7);
		assert_int_equal(python_code_line(&code, 4), rows[i].line);
	}
}

struct row {
	const char *what;
	uint64_t addr;
	uint64_t word;
	int outcome;
};

static void refused(void **state)
{
	static const struct row rows[] = {
		{"nothing changed", 4096, 0, PYTHON_OK},
		{"no interpreter", 4096 + 40, 0, PYTHON_NOT_READY},
		{"an interpreter nowhere", 4096 + 40, 8, PYTHON_UNREADABLE},
		{"an interpreter at the end of addresses", 4096 + 40, HUGE - 3, PYTHON_UNREADABLE},
		{"a cycle of interpreters", 4992, 4992, PYTHON_ODD},
		{"no thread", 4992 + 72, 0, PYTHON_NOT_READY},
		{"a thread nowhere", 4992 + 72, HUGE, PYTHON_UNREADABLE},
		{"a cycle of threads", STATE + 8, STATE, PYTHON_OK},
		{"a thread of another interpreter", STATE + 16, 5000, PYTHON_ODD},
		{"no thread pointer", STATE + 136, 12, PYTHON_NO_STATE},
		{"a thread pointer to other bytes", STATE + 136, 5000, PYTHON_NO_STATE},
		{"a block without the state", 6144 + 0x318, 0, PYTHON_NO_STATE},
		{"a block without its address", 6144 + 16, 0, PYTHON_NO_STATE},
		{"no frame", 5184, 0, PYTHON_NOT_READY},
		{"a frame nowhere", 5184, HUGE, PYTHON_UNREADABLE},
		{"only the interpreter's frame", 5184, 5440, PYTHON_NOT_READY},
		{"code nowhere", 5248, HUGE, PYTHON_UNREADABLE},
		{"an object of another type", 5568 + 40, 0x656e6f6e, PYTHON_ODD},
		{"a longer name of a type", 5568 + 40, 0x73656564656f63, PYTHON_ODD},
		{"a type nowhere", CODE + 8, HUGE, PYTHON_UNREADABLE},
	};

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		struct subject s;
		int r;

		subject_init(&s, "3.12", 0x030c);
		put(&s, rows[i].addr, rows[i].word);
		r = attach(&s);
		if (r != rows[i].outcome)
			fail_msg("%s: %s, not %s", rows[i].what, python_outcome_name(r),
				 python_outcome_name(rows[i].outcome));
		assert_true(s.fm.memory.n_calls < 4000);
	}
}

/* Code objects of an attached process. */
static void refused_code(void **state)
{
	static const struct row rows[] = {
		{"nothing changed", 4096, 0, PYTHON_OK},
		{"a file name nowhere", CODE + 112, HUGE, PYTHON_UNREADABLE},
		{"a name that is no string", CODE + 128, 5568, PYTHON_ODD},
		{"a string of another width", 5760 + 32, 3 << 2 | 1 << 5, PYTHON_ODD},
		{"a string in two parts", 5760 + 32, 2 << 2, PYTHON_ODD},
		{"a negative length", 5760 + 16, HUGE, PYTHON_ODD},
		{"a length beyond the memory", 5760 + 16, 1ull << 60, PYTHON_OK},
		{"a table of negative length", 5888 + 16, HUGE, PYTHON_ODD},
		{"a table beyond the limit", 5888 + 16, PYTHON_LINES_BYTES_MAX + 1, PYTHON_OK},
		{"a table beyond the memory", 5888 + 16, PYTHON_LINES_BYTES_MAX, PYTHON_OK},
		{"a table nowhere", CODE + 136, 16, PYTHON_UNREADABLE},
	};

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		_cleanup_(python_code_deinit) struct python_code code = {0};
		struct subject s;
		int r;

		subject_init(&s, "3.12", 0x030c);
		put(&s, rows[i].addr, rows[i].word);
		r = python_code_read(&s.fm.memory, &s.image.layout, CODE, NULL, &code);
		if (r != rows[i].outcome)
			fail_msg("%s: %s, not %s", rows[i].what, python_outcome_name(r),
				 python_outcome_name(rows[i].outcome));
		assert_true(r == PYTHON_OK || !code.lines);
		assert_true(s.fm.memory.n_bytes < 8192);
	}
}

static uint64_t word_at(const struct subject *s, uint64_t addr)
{
	uint64_t word;

	memcpy(&word, s->bytes + addr - FLATMEMORY_BASE, sizeof(word));
	return word;
}

/* A later object at the address, equal but for its number. */
static void another_object(void **state)
{
	_cleanup_(python_code_deinit) struct python_code code = {0};
	const struct python_layout *layout;
	struct subject s;
	uint32_t check;

	(void)state;
	subject_init(&s, "3.12", 0x030c);
	layout = &s.image.layout;
	check = python_code_check(&(struct python_code_key){
		.file = word_at(&s, CODE + 112),
		.name = word_at(&s, CODE + 88),
		.qualname = word_at(&s, CODE + 128),
		.lines = word_at(&s, CODE + 136),
		.first_line = (uint32_t)(word_at(&s, CODE + 64) >> 32),
	});
	assert_int_equal(python_code_read(&s.fm.memory, layout, CODE, &check, &code), PYTHON_OK);
	python_code_deinit(&code);
	put(&s, CODE + 88, word_at(&s, CODE + 88) + (1ull << 32));
	assert_int_equal(python_code_read(&s.fm.memory, layout, CODE, &check, &code), PYTHON_ODD);
}

/* What the check has of the string at @at, whose characters, @n bytes in whole words, are at
 * @chars.
 */
static struct python_code_string string_at(const struct subject *s, uint64_t at, uint64_t chars,
					   size_t n)
{
	struct python_code_string ret = {word_at(s, at + 16), word_at(s, at + 24), {0}};

	memcpy(ret.tail, s->bytes + at + chars - FLATMEMORY_BASE, n);
	return ret;
}

/* A later object of a release without numbers, equal but for the text of a string, and the same
 * object with a hash computed since. */
static void another_string(void **state)
{
	static const struct {
		const char *what;
		uint64_t hash; /* of the name, at the sample */
		uint64_t of;   /* the word of the code object that leads to the changed string */
		uint64_t off;  /* the changed word of the string */
		uint64_t word;
		int outcome;
	} rows[] = {
		{"nothing changed", 7, 128, 24, 7, PYTHON_OK},
		{"another hash of the name", 7, 128, 24, 8, PYTHON_ODD},
		{"another length of the name", 7, 128, 16, 2, PYTHON_ODD},
		{"another hash of the file", 7, 112, 24, 9, PYTHON_ODD},
		{"another length of the file", 7, 112, 16, 5, PYTHON_ODD},
		{"no hash", UINT64_MAX, 128, 24, UINT64_MAX, PYTHON_OK},
		{"a hash since", UINT64_MAX, 128, 24, 7, PYTHON_OK},
		{"other characters", UINT64_MAX, 128, 72, 0x78043600006full, PYTHON_ODD},
	};

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		_cleanup_(python_code_deinit) struct python_code code = {0};
		uint64_t name, file;
		struct subject s;
		uint32_t check;

		row_begin(rows[i].what);
		subject_init(&s, "3.11", 0x030b);
		name = word_at(&s, CODE + 128);
		file = word_at(&s, CODE + 112);
		put(&s, name + 24, rows[i].hash);
		put(&s, file + 24, 3);
		check = python_code_check(&(struct python_code_key){
			.file = file,
			.name = word_at(&s, CODE + 120),
			.qualname = name,
			.lines = word_at(&s, CODE + 136),
			.first_line = (uint32_t)word_at(&s, CODE + 72),
			.has_strings = true,
			.name_string = string_at(&s, name, 72, 8), /* three of two bytes */
			.file_string = string_at(&s, file, 48, 8),
		});
		put(&s, word_at(&s, CODE + rows[i].of) + rows[i].off, rows[i].word);
		assert_int_equal(
			python_code_read(&s.fm.memory, &s.image.layout, CODE, &check, &code),
			rows[i].outcome);
	}
}

/* A frame that is its own caller. */
static void cyclic_frames(void **state)
{
	struct python_frame frames[FRAMES];
	struct subject s;
	size_t n;

	(void)state;
	subject_init(&s, "3.12", 0x030c);
	assert_int_equal(attach(&s), PYTHON_OK);
	put(&s, 5248 + 8, 5248);
	assert_int_equal(python_frames_read(&s.fm.memory, &s.process, STATE, FRAMES, frames, &n),
			 0);
	assert_int_equal(n, FRAMES);
	put(&s, 5184, 5440); /* frames of the interpreter alone, in a cycle */
	put(&s, 5440 + 8, 5440);
	s.fm.memory.n_calls = 0;
	assert_int_equal(python_frames_read(&s.fm.memory, &s.process, STATE, FRAMES, frames, &n),
			 0);
	assert_int_equal(n, 0);
	assert_true(s.fm.memory.n_calls <= 2 * FRAMES + 2);
}

/* Random words in place of _PyRuntime and of all behind it. */
static void random_words(void **state)
{
	uint64_t word = 88172645463325252ull;

	(void)state;
	for (int i = 0; i < 1000; i++) {
		struct subject s;

		subject_init(&s, "3.12", 0x030c);
		for (uint64_t at = FLATMEMORY_BASE; at + 8 <= FLATMEMORY_BASE + s.fm.n; at += 8) {
			word ^= word << 13;
			word ^= word >> 7;
			word ^= word << 17;
			/* addresses of the process, mostly */
			put(&s, at, i % 2 ? FLATMEMORY_BASE + word % s.fm.n : word);
		}
		assert_true(attach(&s) > 0);
		assert_true(s.fm.memory.n_calls < 10000);
	}
}

/* ---------------------------------------------------------------- musl */

#define PTHREAD 6144

/* A second thread, with an array of values of its own, beside the first one of the process. */
#define PTHREAD_2 8192
#define STATE_2	  9216
#define ARRAY	  6016 /* below the first thread's block, as a thread-local variable */
#define ARRAY_2	  10240
#define KEY	  1
#define TO_ARRAY  128 /* in the block */
#define PREVIOUS  16
#define NEXT	  24

static void put_musl(struct subject *s, uint64_t pthread, uint64_t previous, uint64_t next,
		     uint64_t array, uint64_t state)
{
	put(s, pthread, pthread);
	put(s, pthread + PREVIOUS, previous);
	put(s, pthread + NEXT, next);
	put(s, pthread + TO_ARRAY, array);
	put(s, array + KEY * 8ull, state);
}

static void subject_musl(struct subject *s, bool two_threads)
{
	subject_init(s, "3.12", 0x030c);
	flatmemory_init(&s->fm, s->bytes, BYTES);
	put(s, PTHREAD + 0x318, 0);
	if (!two_threads) {
		put_musl(s, PTHREAD, PTHREAD, PTHREAD, ARRAY, STATE);
		return;
	}
	put(s, STATE + 8, STATE_2);
	put(s, STATE_2 + 16, 4992);
	put(s, STATE_2 + 136, PTHREAD_2);
	put_musl(s, PTHREAD, PTHREAD_2, PTHREAD_2, ARRAY, STATE);
	put_musl(s, PTHREAD_2, PTHREAD, PTHREAD, ARRAY_2, STATE_2);
}

/* musl has the values of pthread_setspecific() in an array for each thread. */
static void arrays(void **state)
{
	static const struct {
		const char *what;
		bool two_threads;
		struct {
			uint64_t addr, word;
		} changes[2];
		int outcome;
		uint16_t at, slot;
	} rows[] = {
		{"a thread", false, {{0}}, PYTHON_OK, 128, 8},
		{"two threads", true, {{0}}, PYTHON_OK, 128, 8},
		{"the state behind the block, too",
		 false,
		 {{PTHREAD + 0x318, STATE}},
		 PYTHON_OK,
		 128,
		 8},
		{"another word",
		 false,
		 {{PTHREAD + 128, 0}, {PTHREAD + 248, ARRAY}},
		 PYTHON_OK,
		 248,
		 8},
		{"behind the words",
		 false,
		 {{PTHREAD + 128, 0}, {PTHREAD + 256, ARRAY}},
		 PYTHON_NO_STATE,
		 0,
		 0},
		{"a word that leads before the array",
		 false,
		 {{PTHREAD + 88, ARRAY - 64}},
		 PYTHON_OK,
		 128,
		 8},
		{"the last key",
		 false,
		 {{ARRAY + 8, 0}, {PTHREAD + 128, ARRAY_2 - 127 * 8}},
		 PYTHON_NO_STATE,
		 0,
		 0},
		{"the last key",
		 false,
		 {{ARRAY_2, STATE}, {PTHREAD + 128, ARRAY_2 - 127 * 8}},
		 PYTHON_OK,
		 128,
		 127 * 8},
		{"no such key",
		 false,
		 {{ARRAY_2, STATE}, {PTHREAD + 128, ARRAY_2 - 128 * 8}},
		 PYTHON_NO_STATE,
		 0,
		 0},
		{"an array nowhere", false, {{PTHREAD + 128, HUGE - 7}}, PYTHON_NO_STATE, 0, 0},
		{"an odd address", false, {{PTHREAD + 128, ARRAY + 1}}, PYTHON_NO_STATE, 0, 0},
		{"no ring",
		 true,
		 {{PTHREAD_2 + PREVIOUS, 0}, {PTHREAD_2 + NEXT, 0}},
		 PYTHON_NO_STATE,
		 0,
		 0},
		{"a ring of others",
		 true,
		 {{PTHREAD + NEXT, PTHREAD}, {PTHREAD_2 + NEXT, 4096}},
		 PYTHON_NO_STATE,
		 0,
		 0},
		{"two keys",
		 true,
		 {{ARRAY_2 + 8, 0}, {ARRAY_2 + 16, STATE_2}},
		 PYTHON_NO_STATE,
		 0,
		 0},
	};

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		struct subject s;
		int r;

		subject_musl(&s, rows[i].two_threads);
		for (size_t k = 0; k < array_size(rows[i].changes); k++)
			if (rows[i].changes[k].addr)
				put(&s, rows[i].changes[k].addr, rows[i].changes[k].word);
		r = attach(&s);
		if (r != rows[i].outcome)
			fail_msg("%s: %s, not %s", rows[i].what, python_outcome_name(r),
				 python_outcome_name(rows[i].outcome));
		assert_int_equal(s.process.way.at, rows[i].at);
		assert_int_equal(s.process.way.slot, rows[i].slot);
		assert_int_equal(s.process.way.in_array, r == PYTHON_OK);
		assert_true(s.fm.memory.n_calls < 300);
	}
}

/* On arm64 struct pthread is below the thread pointer (test_python_block.c). */
static void arm64(void **state)
{
	const uint64_t list = PTHREAD + 192, other = 8192 + 512, vector = 8192 + 1024;
	const uint64_t pointer = PTHREAD + 0x740;
	struct subject s;

	(void)state;
	subject_init(&s, "3.11", 0x030b);
	flatmemory_init(&s.fm, s.bytes, BYTES);
	s.image.machine = EM_AARCH64;
	assert_int_equal(attach(&s), PYTHON_NO_STATE);
	put(&s, list, other);
	put(&s, list + 8, other);
	put(&s, other, list);
	put(&s, other + 8, list);
	put(&s, pointer, vector);
	put(&s, vector - 16, 4);
	put(&s, vector + 16, pointer + 16);
	assert_int_equal(attach(&s), PYTHON_OK);
	assert_int_equal(s.process.way.at, 0x318 - 0x740);
	assert_false(s.process.way.in_array);
	s.image.machine = EM_RISCV;
	assert_int_equal(attach(&s), PYTHON_MACHINE);
}

/* ---------------------------------------------------------------- the count of code objects */

#define COUNT	1000u
#define OBJECTS 8 /* that prove the cache */

/* The counter before a cache of functions, and code objects with these numbers. */
static void counted(void **state)
{
	static const struct {
		const char *name;
		uint32_t numbers[OBJECTS]; /* 0: no object */
		size_t slots[OBJECTS];
		bool unknown, want;
	} rows[] = {
		{"each in its slot", {1, 2, 3, 9, 20, 40, 62, 63}, {0}, false, true},
		{"in the slot of its lowest bits",
		 {1, 2, 3, 9, 20, 40, 62, COUNT - 1},
		 {0},
		 false,
		 false},
		{"a release without a place", {1, 2, 3, 9, 20, 40, 62, 63}, {0}, true, false},
		{"one too few", {1, 2, 3, 9, 20, 40, 62}, {0}, false, false},
		{"one in another's slot", {1, 2, 3, 9, 20, 40, 62, 63}, {2}, false, false},
		{"a later number", {1, 2, 3, 9, 20, 40, 62, 63 + 4096}, {0}, false, false},
	};

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		const uint64_t at = FLATMEMORY_BASE + 3072, codes = at + 8 + 64 * 16 + 128;
		struct subject s;

		row_begin(rows[i].name);
		subject_init(&s, "3.12", 0x030c);
		flatmemory_init(&s.fm, s.bytes, BYTES);
		assert_int_equal(attach(&s), 0);
		assert_true(s.process.interpreter == 0);
		s.image.layout.code_count =
			rows[i].unknown ? 0 : (uint16_t)(at - s.threads.interpreter);
		memset(s.bytes + at - FLATMEMORY_BASE, 0, 8 + 64 * 16);
		put(&s, at, COUNT);
		for (size_t k = 0; k < OBJECTS && rows[i].numbers[k]; k++) {
			const uint64_t slot =
				rows[i].slots[k] ? rows[i].slots[k] : rows[i].numbers[k] % 64;

			put(&s, at + 8 + slot * 16 + 8, codes + k * 8 - 68 - 24);
			put(&s, codes + k * 8, rows[i].numbers[k]);
		}
		assert_int_equal(attach(&s), 0);
		assert_int_equal(s.process.interpreter != 0, rows[i].want);
		if (rows[i].want)
			assert_true(s.process.code_count == at);
	}
}

/* ---------------------------------------------------------------- images that describe themselves
 */

static void read_offsets(const char *release, struct buf *b)
{
	_cleanup_(root_deinit) struct root root = ROOT_INIT;

	assert_int_equal(root_open(OFFSETS, &root), 0);
	assert_int_equal(root_read(&root, release, b), 0);
	assert_true(b->len > 3 * 8);
}

/* The offsets that differ with the length of an object's head: 16 bytes, or 32 without the
 * interpreter lock. */
static void described(void **state)
{
	static const struct {
		const char *release;
		uint16_t version, type, filename, instructions, length, string_state, ascii, count;
		size_t header;
	} rows[] = {
		{"3.13", 0x030d, 8, 112, 200, 16, 32, 40, 17000, 36},
		{"3.13t", 0x030d, 24, 128, 216, 32, 48, 56, 0, 52},
		{"3.14", 0x030e, 8, 112, 208, 16, 32, 40, 14256, 36},
	};

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		_cleanup_(buf_deinit) struct buf b = BUF_INIT(BYTES);
		struct python_layout layout;

		read_offsets(rows[i].release, &b);
		assert_int_equal(python_layout_of_offsets(b.data, b.len, &layout),
				 PYTHON_OFFSETS_OK);
		assert_int_equal(layout.version, rows[i].version);
		assert_int_equal(layout.object_type, rows[i].type);
		assert_int_equal(layout.process.code_filename, rows[i].filename);
		assert_int_equal(layout.process.code_instructions, rows[i].instructions);
		assert_int_equal(layout.string_length, rows[i].length);
		assert_int_equal(layout.string_state, rows[i].string_state);
		assert_int_equal(layout.string_ascii, rows[i].ascii);
		assert_int_equal(layout.code_count, rows[i].count);
		assert_int_equal(python_string_header_bytes(&layout), rows[i].header);
	}
}

static void put_offset(struct buf *b, size_t word, uint64_t offset)
{
	memcpy(b->data + word * sizeof(offset), &offset, sizeof(offset));
}

/* From 3.14 on, a thread of a build without the lock runs a copy of the instructions. */
static void free_threaded(void **state)
{
	static const struct {
		const char *what;
		const char *release;
		size_t word; /* changed; 0: none */
		uint64_t value;
		enum python_offsets_outcome outcome;
		uint16_t copies;
	} rows[] = {
		{"no copies", "3.13", 0, 0, PYTHON_OFFSETS_OK, 0},
		{"copies", "3.14", 0, 0, PYTHON_OFFSETS_OK, 240},
		{"an index apart from the owner", "3.14", 38, 64, PYTHON_OFFSETS_ODD, 0},
		{"an index behind the frame", "3.14", 38, 128, PYTHON_OFFSETS_ODD, 0},
		{"an index beside a word", "3.14", 38, 74, PYTHON_OFFSETS_ODD, 0},
		{"an array before the line table", "3.14", 49, 104, PYTHON_OFFSETS_ODD, 0},
		{"an array behind the code object", "3.14", 49, 256, PYTHON_OFFSETS_ODD, 0},
		{"not checked", "3.15", 0, 0, PYTHON_OFFSETS_FREE_THREADED, 0},
	};

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		_cleanup_(buf_deinit) struct buf b = BUF_INIT(BYTES);
		struct python_layout layout;

		row_begin(rows[i].what);
		read_offsets(rows[i].release, &b);
		assert_int_equal(python_layout_of_offsets(b.data, b.len, &layout),
				 PYTHON_OFFSETS_OK);
		assert_int_equal(layout.process.code_copies, 0);
		b.data[2 * 8] = 1;
		if (rows[i].copies || rows[i].word) { /* as in such a build of 3.14 */
			put_offset(&b, 36, 78);
			put_offset(&b, 38, 72);
			put_offset(&b, 39, 264);
			put_offset(&b, 49, 240);
		}
		if (rows[i].word)
			put_offset(&b, rows[i].word, rows[i].value);
		assert_int_equal(python_layout_of_offsets(b.data, b.len, &layout), rows[i].outcome);
		if (rows[i].outcome)
			continue;
		assert_int_equal(layout.process.code_copies, rows[i].copies);
		assert_int_equal(layout.string_kind, rows[i].copies ? 8 : 2);
		assert_int_equal(layout.process.frame_copy, rows[i].copies ? 72 : 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_releases),	  cmocka_unit_test(refused),
		cmocka_unit_test(counted),	  cmocka_unit_test(refused_code),
		cmocka_unit_test(cyclic_frames),  cmocka_unit_test(random_words),
		cmocka_unit_test(described),	  cmocka_unit_test(free_threaded),
		cmocka_unit_test(arrays),	  cmocka_unit_test(another_object),
		cmocka_unit_test(another_string), cmocka_unit_test(arm64),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
