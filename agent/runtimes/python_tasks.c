// SPDX-License-Identifier: Apache-2.0
/*
 * The module _asyncio, in C, runs the tasks of all event loops, also of those in other languages
 * (uvloop). From the interpreter, the dict sys.modules leads to the module, and the module's dict
 * to the type of tasks, and to 3.13 to the dict of running tasks.
 *
 * A dict is an array of entries in the order of their insertion, behind a table of their numbers. A
 * key's string is compared; its hash is not known, because CPython seeds it.
 *
 * A program with tasks of its own making (asyncio.tasks._PyTask, or a subclass of Task) has none
 * here.
 */
#include "runtimes/python_tasks.h"

#include <stdbool.h>
#include <string.h>

#include "base/cleanup.h"
#include "procmap/memory.h"
#include "runtimes/python_image.h"
#include "runtimes/python_process.h"
#include "runtimes/python_string.h"

/* In all releases of the table: in a module, and in a type. PYTHON_OBJECT_TYPE holds for builds
 * with the interpreter lock; others have a longer head. */
#define MODULE_DICT	    16
#define TYPE_INSTANCE_BYTES 32
/* In the head of a dict's keys. To 3.10 all sizes are words. */
#define KEYS_OLD_SLOTS	    1
#define KEYS_OLD_COUNT	    4
#define KEYS_COUNT	    3
#define VERSION_OF_NEW_KEYS 0x030b
/* In the word 1 of later heads: the power of two of the bytes of the table, and the kind. */
#define KEYS_BYTES_SHIFT    8
#define KEYS_KIND_SHIFT	    16
#define KEYS_GENERAL	    0
#define KEYS_STRINGS	    1 /* no hashes in the entries */
/* Entries of one read. */
#define BATCH		    64

/* The layout of a task, and the way to it. */
static const struct release {
	uint16_t version;
	uint16_t thread_context, thread_task;
	uint16_t task_bytes, task_name;
} releases[] = {
	{0x0308, 240, 0, 144, 120},   {0x0309, 240, 0, 184, 160}, {0x030a, 240, 0, 192, 168},
	{0x030b, 224, 0, 176, 144},   {0x030c, 208, 0, 176, 144}, {0x030d, 208, 0, 144, 128},
	{0x030e, 208, 872, 168, 136},
};

struct dict {
	uint64_t entries;
	uint64_t n;
	size_t entry_words;
};

/* What a search needs. */
struct search {
	struct memory *m;
	const struct python_layout *layout;
};

static const struct release *release_of(const struct python_layout *layout)
{
	for (size_t i = 0; i < array_size(releases); i++)
		if (releases[i].version == layout->version)
			return &releases[i];
	return NULL;
}

static int read_bytes(const struct search *s, uint64_t addr, void *ret, size_t n)
{
	return python_outcome_of_memory(memory_read(s->m, addr, ret, n));
}

/* A pointer that is not NULL. */
static int read_pointer(const struct search *s, uint64_t addr, uint64_t *ret)
{
	int r = read_bytes(s, addr, ret, sizeof(*ret));

	return r || *ret ? r : PYTHON_ODD;
}

/* ---------------------------------------------------------------- dicts */

/* Bytes of the table of numbers to 3.10. Each is as wide as the number of slots needs. */
static uint64_t old_table_bytes(uint64_t slots)
{
	return slots <= 0xff ? slots : slots <= 0xffff ? slots * 2 : slots * 4;
}

/* From the head of the keys at @keys. False if they are of another shape, or too many. */
static bool parse_keys(const struct python_layout *layout, uint64_t keys,
		       const uint64_t head[PYTHON_KEYS_WORDS], struct dict *ret)
{
	const bool is_old = layout->version < VERSION_OF_NEW_KEYS;
	const unsigned int shift = head[1] >> KEYS_BYTES_SHIFT & 0xff;
	const unsigned int kind = is_old ? KEYS_GENERAL : head[1] >> KEYS_KIND_SHIFT & 0xff;
	const size_t bytes =
		(is_old ? PYTHON_KEYS_WORDS : PYTHON_KEYS_WORDS - 1) * sizeof(uint64_t);

	if (kind > KEYS_STRINGS || (is_old ? head[KEYS_OLD_SLOTS] >> 32 != 0 : shift > 31))
		return false;
	*ret = (struct dict){
		.entries = keys + bytes +
			   (is_old ? old_table_bytes(head[KEYS_OLD_SLOTS]) : 1ull << shift),
		.n = head[is_old ? KEYS_OLD_COUNT : KEYS_COUNT],
		.entry_words = kind == KEYS_STRINGS ? 2 : 3,
	};
	return ret->n <= PYTHON_TASKS_ENTRIES_MAX;
}

static int open_dict(const struct search *s, uint64_t at, struct dict *ret)
{
	uint64_t head[PYTHON_KEYS_WORDS], keys;
	int r = python_object_check(s->m, s->layout, at, "dict");

	if (!r)
		r = read_pointer(s, at + PYTHON_DICT_KEYS, &keys);
	if (!r)
		r = read_bytes(s, keys, head, sizeof(head));
	if (!r && !parse_keys(s->layout, keys, head, ret))
		r = PYTHON_ODD;
	return r;
}

/* Whether the string at @at with the head @header is @name. */
static int is_string(const struct search *s, uint64_t at,
		     const uint8_t header[PYTHON_STRING_HEADER_BYTES], const char *name, bool *ret)
{
	const size_t n = strlen(name);
	struct python_string string;
	char chars[32];
	int r;

	*ret = false;
	if (!python_string_parse(s->layout, header, &string) || string.n != n || string.width != 1)
		return 0;
	r = read_bytes(s, at + string.offset, chars, n);
	*ret = !r && memcmp(chars, name, n) == 0;
	return r;
}

/* The heads of the strings at @keys, of which some are 0. */
static int read_heads(const struct search *s, const uint64_t *keys, size_t n,
		      uint8_t ret[][PYTHON_STRING_HEADER_BYTES])
{
	const size_t bytes = python_string_header_bytes(s->layout);
	struct memory_range ranges[BATCH];
	size_t n_ranges = 0;

	for (size_t i = 0; i < n; i++)
		if (keys[i])
			ranges[n_ranges++] =
				(struct memory_range){.addr = keys[i], .to = ret[i], .n = bytes};
	return n_ranges ? python_outcome_of_memory(memory_read_ranges(s->m, ranges, n_ranges)) : 0;
}

/* An entry of a dict. */
struct item {
	uint64_t key;
	uint64_t value; /* 0: there is no entry */
};

/* The entry with the key @name of the @n at @at. */
static int find_in_batch(const struct search *s, const struct dict *dict, uint64_t at, size_t n,
			 const char *name, struct item *ret)
{
	uint64_t words[BATCH * PYTHON_ENTRY_WORDS], keys[BATCH];
	uint8_t heads[BATCH][PYTHON_STRING_HEADER_BYTES] = {{0}};
	int r = read_bytes(s, at, words, n * dict->entry_words * sizeof(uint64_t));

	for (size_t i = 0; !r && i < n; i++) {
		const uint64_t *end = words + (i + 1) * dict->entry_words;

		keys[i] = end[-1] ? end[-2] : 0;
	}
	if (!r)
		r = read_heads(s, keys, n, heads);
	for (size_t i = 0; !r && i < n; i++) {
		bool is = false;

		if (keys[i])
			r = is_string(s, keys[i], heads[i], name, &is);
		if (is) {
			*ret = (struct item){keys[i], words[(i + 1) * dict->entry_words - 1]};
			return 0;
		}
	}
	return r;
}

/* The entry with the key @name of the dict at @at. */
static int find(const struct search *s, uint64_t at, const char *name, struct item *ret)
{
	struct dict dict;
	int r = open_dict(s, at, &dict);

	*ret = (struct item){0, 0};
	for (uint64_t i = 0; !r && !ret->value && i < dict.n; i += BATCH)
		r = find_in_batch(s, &dict, dict.entries + i * dict.entry_words * sizeof(uint64_t),
				  dict.n - i < BATCH ? dict.n - i : BATCH, name, ret);
	return r;
}

/* ---------------------------------------------------------------- the module */

/* The dict of the module _asyncio. */
static int find_module(const struct search *s, const struct python_threads *threads, uint64_t *ret)
{
	uint64_t interpreter, modules;
	struct item item;
	size_t i = 0;
	int r;

	while (i < threads->n && threads->items[i].sub)
		i++;
	if (i == threads->n)
		return PYTHON_NOT_READY;
	r = read_pointer(s, threads->items[i].state + s->layout->thread_interpreter, &interpreter);
	if (!r)
		r = read_pointer(s, interpreter + s->layout->interpreter_modules, &modules);
	if (!r)
		r = find(s, modules, "_asyncio", &item);
	if (!r && !item.value)
		r = PYTHON_NOT_READY;
	if (!r)
		r = python_object_check(s->m, s->layout, item.value, "module");
	return r ? r : read_pointer(s, item.value + MODULE_DICT, ret);
}

/* The type of tasks, and that of strings. */
static int find_types(const struct search *s, const struct release *release, uint64_t module,
		      struct python_tasks *ret)
{
	struct item item;
	uint64_t bytes, string;
	int r = find(s, module, "Task", &item);

	if (!r && !item.value)
		r = PYTHON_NOT_READY; /* the module is being made */
	if (!r)
		r = python_type_check(s->m, s->layout, item.value, "_asyncio.Task");
	if (!r)
		r = read_bytes(s, item.value + TYPE_INSTANCE_BYTES, &bytes, sizeof(bytes));
	if (!r && bytes != release->task_bytes)
		r = PYTHON_ODD;
	if (!r)
		r = read_pointer(s, item.key + s->layout->object_type, &string);
	if (!r)
		r = python_type_check(s->m, s->layout, string, "str");
	if (r)
		return r;
	ret->type = item.value;
	ret->string = string;
	return 0;
}

static int find_running(const struct search *s, uint64_t module, struct python_tasks *ret)
{
	struct item item;
	int r = find(s, module, "_current_tasks", &item);

	if (!r && !item.value)
		r = PYTHON_NOT_READY;
	if (!r)
		r = python_object_check(s->m, s->layout, item.value, "dict");
	if (!r)
		ret->running = item.value;
	return r;
}

int python_tasks_find(struct memory *m, const struct python_layout *layout,
		      const struct python_threads *threads, struct python_tasks *ret)
{
	const struct release *release = release_of(layout);
	const struct search s = {.m = m, .layout = layout};
	struct python_tasks tasks = {0};
	uint64_t module;
	int r;

	*ret = tasks;
	if (!release || layout->object_type != PYTHON_OBJECT_TYPE || !layout->interpreter_modules)
		return PYTHON_VERSION;
	tasks.thread_context = release->thread_context;
	tasks.thread_task = release->thread_task;
	tasks.task_name = release->task_name;
	tasks.string_data = layout->string_ascii;
	tasks.dict_is_old = layout->version < VERSION_OF_NEW_KEYS;
	r = find_module(&s, threads, &module);
	if (!r)
		r = find_types(&s, release, module, &tasks);
	if (!r && !tasks.thread_task)
		r = find_running(&s, module, &tasks);
	if (!r)
		*ret = tasks;
	return r;
}
