// SPDX-License-Identifier: Apache-2.0
/*
 * Up to 3.12 the offsets are a table. They are the same on all 64-bit machines, except in builds
 * for debugging (--with-pydebug, --with-trace-refs). Releases of one minor version agree by
 * convention only, so a process is checked against the table (python_process.h).
 *
 * From 3.13 on, _PyRuntime begins with a _Py_DebugOffsets: the cookie, then 64-bit words: version,
 * free_threaded, and for each structure its size and offsets of members. The order of the words
 * changes with the minor version and during its betas.
 *
 * A build without the interpreter lock (free-threaded) has other offsets: its objects have a longer
 * head. In 3.13 nothing else differs. From 3.14 on, a thread runs a copy of the code's
 * instructions: the code object has an array of the copies, and the frame an index. 3.15 is
 * refused, because no such build of it was at hand to check.
 *
 * From 3.12 on, a code object has a number of its own, co_version: 24 bytes behind co_firstlineno
 * in all releases and builds. The check of a frame has the word with it in place of co_name.
 * Before, the check has the contents of the strings.
 *
 * Sources: CPython's headers, in Include/internal and Include/cpython.
 */
#include "runtimes/python_layout.h"

#include <string.h>

#include "base/cleanup.h"

/* ---------------------------------------------------------------- by version */

#define NONE PYTHON_NO_OFFSET

/* Offsets that differ between releases, as in struct python_layout and struct python_process. */
struct release {
	uint16_t version;
	uint16_t interpreters, interpreter_threads, modules, thread_id, thread_native;
	uint16_t tstate_frame, cframe_frame;
	uint16_t previous, code, instr, entry;
	uint16_t filename, name, qualname, lines, first_line, instructions;
	uint16_t ascii;
	enum python_activation activation;
	enum python_lines shape;
};

static const struct release releases[] = {
	/* clang-format off */
	{0x0306,  0,  8,   0, 152, NONE, 24, NONE, 24, 32, 120, NONE,
	  96, 104, 104, 112, 36, NONE, 48, PYTHON_EACH_FRAME, PYTHON_LNOTAB},
	{0x0307, 24,  8,   0, 176, NONE, 24, NONE, 24, 32, 104, NONE,
	  96, 104, 104, 112, 36, NONE, 48, PYTHON_EACH_FRAME, PYTHON_LNOTAB},
	{0x0308, 32,  8,  56, 176, NONE, 24, NONE, 24, 32, 104, NONE,
	 104, 112, 112, 120, 40, NONE, 48, PYTHON_EACH_FRAME, PYTHON_LNOTAB},
	{0x0309, 32,  8, 856, 176, NONE, 24, NONE, 24, 32, 104, NONE,
	 104, 112, 112, 120, 40, NONE, 48, PYTHON_EACH_FRAME, PYTHON_LNOTAB},
	{0x030a, 32,  8, 856, 176, NONE, 24, NONE, 24, 32,  96, NONE,
	 104, 112, 112, 120, 40, NONE, 48, PYTHON_EACH_FRAME, PYTHON_LINETABLE},
	{0x030b, 40, 16, 888, 152,  160, 56,    8, 48, 32,  56,   68,
	 112, 120, 128, 136, 72,  184, 48, PYTHON_IS_ENTRY,   PYTHON_LOCATIONS},
	{0x030c, 40, 72, 944, 136,  144, 56,    0,  8,  0,  56,   70,
	 112, 120, 128, 136, 68,  192, 40, PYTHON_OWNER,      PYTHON_LOCATIONS},
	/* clang-format on */
};

/* The first release whose code objects have a number. */
#define VERSION_OF_NUMBERS 0x030c

/* The number, or the strings, tell code objects apart that have the same address one after the
 * other: their strings and tables often have the same addresses, too. False if a word is outside of
 * what the walker reads: from the first line to the line table. */
static bool take_number(struct python_layout *layout)
{
	const uint16_t word =
		(uint16_t)((layout->process.code_first_line + PYTHON_NUMBER_BEHIND_LINE) & ~7);

	if (layout->version >= VERSION_OF_NUMBERS)
		layout->process.code_name = word;
	else
		layout->process.has_strings = 1;
	return layout->process.code_first_line < PYTHON_CODE_FROM_LIMIT &&
	       layout->process.code_first_line < layout->process.code_name &&
	       layout->process.code_first_line < layout->process.code_filename &&
	       layout->process.code_first_line < layout->process.code_qualname &&
	       layout->process.code_name < layout->process.code_lines &&
	       (!layout->process.has_strings ||
		layout->process.code_lines < PYTHON_STRINGS_CODE_BYTES);
}

/* The counter of these numbers in the interpreter, which no _Py_DebugOffsets has: of builds with
 * the interpreter lock. Found in 3.13.0, 3.13.5, 3.13.18, 3.14.10 and 3.15.2 as the word that grows
 * by one with each code object. python_process_attach() proves the place. */
static const struct {
	uint16_t version, at;
} counts[] = {{0x030d, 17000}, {0x030e, 14256}, {0x030f, 14264}};

static uint16_t count_of(uint16_t version)
{
	for (size_t i = 0; i < array_size(counts); i++)
		if (counts[i].version == version)
			return counts[i].at;
	return 0;
}

static const struct release *release_of(uint16_t version)
{
	for (size_t i = 0; i < array_size(releases); i++)
		if (releases[i].version == version)
			return &releases[i];
	return NULL;
}

bool python_layout_of_version(uint16_t version, struct python_layout *ret)
{
	const struct release *r = release_of(version);

	if (!r)
		return false;
	*ret = (struct python_layout){
		.version = version,
		.interpreters = r->interpreters,
		.interpreter_next = 0,
		.interpreter_threads = r->interpreter_threads,
		.interpreter_modules = r->modules,
		.thread_next = 8,
		.thread_interpreter = 16,
		.thread_id = r->thread_id,
		.thread_native = r->thread_native,
		.process = {.tstate_frame = r->tstate_frame,
			    .cframe_frame = r->cframe_frame,
			    .frame_previous = r->previous,
			    .frame_code = r->code,
			    .frame_instr = r->instr,
			    .frame_entry = r->entry,
			    .code_filename = r->filename,
			    .code_name = r->name,
			    .code_qualname = r->qualname,
			    .code_lines = r->lines,
			    .code_first_line = r->first_line,
			    .code_instructions = r->instructions,
			    .activation = r->activation,
			    .instr_is_int = r->instructions == NONE},
		.object_type = 8,
		.type_name = 24,
		.string_length = 16,
		.string_state = 32,
		.string_ascii = r->ascii,
		.string_wide = r->ascii == 48 ? 72 : 56, /* the older have one more member */
		.string_kind = 2,
		.bytes_length = 16,
		.bytes_data = 32,
		.lines = r->shape,
	};
	return take_number(ret);
}

/* ---------------------------------------------------------------- described by the image */

#define COOKIE		   "xdebugpy"
#define COOKIE_BYTES	   8
/* Indexes of words of _Py_DebugOffsets. */
#define WORD_VERSION	   1
#define WORD_FREE_THREADED 2
/* The first release whose free-threaded builds copy instructions. */
#define VERSION_OF_COPIES  0x030e
/* No such word: a free-threaded build of the release is refused. */
#define WORD_NONE	   0

/* PY_VERSION_HEX of a final release ends in 0xf0, of candidates in 0xcN, of betas in 0xbN. */
#define RELEASE_LEVEL(hex) ((hex) >> 4 & 0xf)
#define RELEASE_FINAL	   0xf
/* The pointer to the characters, the last member of a string that is not compact. */
#define STRING_POINTER	   8
/* The kind's lowest bit in free-threaded builds that copy instructions: `interned` is a byte. */
#define STRING_KIND_COPIES 8
/* Offsets are below PYTHON_NO_OFFSET, and an aligned structure is shorter. */
#define OFFSET_LIMIT	   0xfff0u

enum structure {
	RUNTIME,
	INTERPRETER,
	THREAD,
	FRAME,
	CODE,
	OBJECT,
	TYPE,
	BYTES,
	STRING,
	STRUCTURE_MAX,
};

#define TO(member) offsetof(struct python_layout, member)

/* The members: the structure, the place of the offset in struct python_layout, the size. */
static const struct member {
	enum structure of;
	uint16_t to;
	uint16_t bytes;
} members[] = {
	{RUNTIME, TO(interpreters), 8},
	{INTERPRETER, TO(interpreter_next), 8},
	{INTERPRETER, TO(interpreter_threads), 8},
	{INTERPRETER, TO(interpreter_modules), 8},
	{THREAD, TO(thread_next), 8},
	{THREAD, TO(thread_interpreter), 8},
	{THREAD, TO(process.tstate_frame), 8},
	{THREAD, TO(thread_id), 8},
	{THREAD, TO(thread_native), 8},
	{FRAME, TO(process.frame_previous), 8},
	{FRAME, TO(process.frame_code), 8},
	{FRAME, TO(process.frame_instr), 8},
	{FRAME, TO(process.frame_entry), 1},
	{CODE, TO(process.code_filename), 8},
	{CODE, TO(process.code_name), 8},
	{CODE, TO(process.code_qualname), 8},
	{CODE, TO(process.code_lines), 8},
	{CODE, TO(process.code_first_line), 4},
	{CODE, TO(process.code_instructions), 2},
	{OBJECT, TO(object_type), 8},
	{TYPE, TO(type_name), 8},
	{BYTES, TO(bytes_length), 8},
	{BYTES, TO(bytes_data), 1},
	{STRING, TO(string_state), 4},
	{STRING, TO(string_length), 8},
	{STRING, TO(string_ascii), 1},
};

/* The members of free-threaded builds that copy instructions. */
static const struct member copy_members[] = {
	{FRAME, TO(process.frame_copy), 4},
	{CODE, TO(process.code_copies), 8},
};

/* Indexes of words: of the structures' sizes, and of the members, in the orders above. */
static const struct description {
	uint16_t version;
	bool code_tagged;
	uint8_t sizes[STRUCTURE_MAX];
	uint8_t words[array_size(members)];
	uint8_t copy_words[array_size(copy_members)];
} descriptions[] = {
	{0x030d,
	 false,
	 {3, 6, 19, 28, 34, 44, 46, 64, 67},
	 {5,  8,  9,  11, 21, 22, 23, 24, 25, 29, 30, 31, 33,
	  35, 36, 37, 38, 39, 43, 45, 47, 65, 66, 68, 69, 70},
	 {0}},
	{0x030e,
	 true,
	 {3, 6, 22, 31, 39, 50, 52, 74, 77},
	 {5,  8,  9,  12, 24, 25, 26, 27, 28, 32, 33, 34, 36,
	  40, 41, 42, 43, 44, 48, 51, 53, 75, 76, 78, 79, 80},
	 {38, 49}},
	{0x030f,
	 true,
	 {3, 6, 22, 39, 47, 58, 60, 86, 89},
	 {5,  8,  9,  12, 24, 25, 26, 30, 31, 40, 41, 42, 44,
	  48, 49, 50, 51, 52, 56, 59, 61, 87, 88, 90, 91, 92},
	 {WORD_NONE}},
};

/* Offsets end here, in a structure of any size: an uint16_t has to hold them, and the walker reads
 * so many bytes of a frame and of a code object. */
static const uint64_t limits[STRUCTURE_MAX] = {
	[RUNTIME] = OFFSET_LIMIT,     [INTERPRETER] = OFFSET_LIMIT, [THREAD] = OFFSET_LIMIT,
	[FRAME] = PYTHON_FRAME_BYTES, [CODE] = PYTHON_CODE_BYTES,   [OBJECT] = OFFSET_LIMIT,
	[TYPE] = OFFSET_LIMIT,	      [BYTES] = OFFSET_LIMIT,	    [STRING] = OFFSET_LIMIT,
};

static uint64_t word_at(const uint8_t *bytes, size_t n, size_t index)
{
	uint64_t word = UINT64_MAX;

	if ((index + 1) * sizeof(word) <= n)
		memcpy(&word, bytes + index * sizeof(word), sizeof(word));
	return word;
}

/* Copies the offset of a member, if it is aligned and lies in its structure. */
static bool take_member(const struct description *d, const struct member *m, size_t word,
			const uint8_t *bytes, size_t n, struct python_layout *ret)
{
	const uint64_t size = word_at(bytes, n, d->sizes[m->of]);
	const uint64_t end = size < limits[m->of] ? size : limits[m->of];
	const uint64_t offset = word_at(bytes, n, word);

	if (offset >= end || m->bytes > end - offset || offset % m->bytes)
		return false;
	memcpy((uint8_t *)ret + m->to, &(uint16_t){(uint16_t)offset}, sizeof(uint16_t));
	return true;
}

static bool take_members(const struct description *d, const uint8_t *bytes, size_t n,
			 struct python_layout *ret)
{
	for (size_t i = 0; i < array_size(members); i++)
		if (!take_member(d, &members[i], d->words[i], bytes, n, ret))
			return false;
	return true;
}

/* The walker has the index with the owner, and reads a code object up to the array's pointer. */
static bool take_copies(const struct description *d, const uint8_t *bytes, size_t n,
			struct python_layout *ret)
{
	const struct python_process *p = &ret->process;

	for (size_t i = 0; i < array_size(copy_members); i++)
		if (!take_member(d, &copy_members[i], d->copy_words[i], bytes, n, ret))
			return false;
	return p->frame_copy / 8 == p->frame_entry / 8 && p->code_copies > p->code_lines;
}

enum python_offsets_outcome python_layout_of_offsets(const void *bytes, size_t n,
						     struct python_layout *ret)
{
	const uint32_t release = (uint32_t)word_at(bytes, n, WORD_VERSION);
	const struct description *d = NULL;
	struct python_layout layout = {
		.version = (uint16_t)(release >> 16),
		.release = release,
		.is_described = true,
		.process = {.cframe_frame = PYTHON_NO_OFFSET, .activation = PYTHON_OWNER},
		.string_kind = 2,
		.lines = PYTHON_LOCATIONS,
	};
	uint64_t string_size;
	bool copies;

	if (n < COOKIE_BYTES || memcmp(bytes, COOKIE, COOKIE_BYTES) != 0)
		return PYTHON_OFFSETS_ABSENT;
	for (size_t i = 0; i < array_size(descriptions); i++)
		if (descriptions[i].version == layout.version)
			d = &descriptions[i];
	if (!d || RELEASE_LEVEL(release) != RELEASE_FINAL)
		return PYTHON_OFFSETS_VERSION;
	copies = word_at(bytes, n, WORD_FREE_THREADED) != 0 && layout.version >= VERSION_OF_COPIES;
	if (copies && d->copy_words[0] == WORD_NONE)
		return PYTHON_OFFSETS_FREE_THREADED;
	string_size = word_at(bytes, n, d->sizes[STRING]);
	if (!take_members(d, bytes, n, &layout) || (copies && !take_copies(d, bytes, n, &layout)) ||
	    !take_number(&layout) || string_size >= OFFSET_LIMIT ||
	    string_size < (uint64_t)layout.string_ascii + STRING_POINTER)
		return PYTHON_OFFSETS_ODD;
	layout.string_wide = (uint16_t)(string_size - STRING_POINTER);
	layout.process.code_tagged = d->code_tagged;
	if (!word_at(bytes, n, WORD_FREE_THREADED))
		layout.code_count = count_of(layout.version);
	if (copies)
		layout.string_kind = STRING_KIND_COPIES;
	*ret = layout;
	return PYTHON_OFFSETS_OK;
}
