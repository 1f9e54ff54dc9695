// SPDX-License-Identifier: Apache-2.0
/*
 * Processes with asyncio that contradict themselves. Each row changes a word of a small process
 * (test/fuzz/runtimes/corpus/python_tasks): a thread state at 4096, and the interpreter, which
 * leads to sys.modules.
 */
#include "support/test.h"

#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/root.h"
#include "runtimes/python_image.h"
#include "runtimes/python_tasks.h"
#include "support/flatmemory.h"

#define CORPUS "test/fuzz/runtimes/corpus/python_tasks"
#define HEAD   2 /* bytes of the fuzzer's own */
#define BYTES  8192

struct subject {
	uint8_t bytes[BYTES];
	struct flatmemory fm;
	struct python_layout layout;
	struct python_threads threads;
	struct python_tasks tasks;
};

static void subject_init(struct subject *s, const char *release, uint16_t version)
{
	_cleanup_(root_deinit) struct root root = ROOT_INIT;
	_cleanup_(buf_deinit) struct buf b = BUF_INIT(BYTES);

	memset(s, 0, sizeof(*s));
	s->threads.n = 1;
	s->threads.items[0].state = FLATMEMORY_BASE;
	assert_int_equal(root_open(CORPUS, &root), 0);
	assert_int_equal(root_read(&root, release, &b), 0);
	memcpy(s->bytes, b.data + HEAD, b.len - HEAD);
	flatmemory_init(&s->fm, s->bytes, b.len - HEAD);
	assert_true(python_layout_of_version(version > 0x030c ? 0x030c : version, &s->layout));
	s->layout.version = version;
}

static uint64_t word_at(const struct subject *s, uint64_t addr)
{
	uint64_t word;

	memcpy(&word, s->bytes + addr - FLATMEMORY_BASE, sizeof(word));
	return word;
}

static void put(struct subject *s, uint64_t addr, uint64_t word)
{
	memcpy(s->bytes + addr - FLATMEMORY_BASE, &word, sizeof(word));
}

static int find(struct subject *s)
{
	return python_tasks_find(&s->fm.memory, &s->layout, &s->threads, &s->tasks);
}

static void all_releases(void **state)
{
	static const struct {
		const char *release;
		uint16_t version, name;
		bool has_dict;
	} rows[] = {
		{"3.8", 0x0308, 120, true},   {"3.10", 0x030a, 168, true},
		{"3.11", 0x030b, 144, true},  {"3.12", 0x030c, 144, true},
		{"3.14", 0x030e, 136, false},
	};

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		struct subject s;

		row_begin(rows[i].release);
		subject_init(&s, rows[i].release, rows[i].version);
		assert_int_equal(find(&s), PYTHON_OK);
		assert_int_equal(s.tasks.task_name, rows[i].name);
		assert_int_equal(s.tasks.dict_is_old, rows[i].version < 0x030b);
		assert_int_equal(s.tasks.running != 0, rows[i].has_dict);
		assert_int_equal(s.tasks.thread_task != 0, !rows[i].has_dict);
	}
}

/* The words of 3.12 that rows change. */
enum place {
	NOTHING,
	INTERPRETER,  /* in the thread state */
	MODULES,      /* in the interpreter: sys.modules */
	MODULES_TYPE, /* of this dict */
	MODULES_KEYS,
	MODULES_SHAPE, /* of its keys: powers of two, kind */
	MODULES_COUNT,
	MODULE_KEY, /* of _asyncio */
	MODULE,
	MODULE_TYPE,
	MODULE_DICT,
	TASK_BYTES,
	RUNNING_TYPE,
};

/* Fixed distances, as in CPython 3.12. */
static uint64_t address_of(const struct subject *s, enum place place)
{
	const uint64_t interpreter = word_at(s, FLATMEMORY_BASE + 16);
	const uint64_t modules = word_at(s, interpreter + 944), keys = word_at(s, modules + 32);
	const uint64_t entry = keys + 40 + 16 * 2, module = word_at(s, entry + 8);
	const uint64_t dict = word_at(s, module + 16), entries = word_at(s, dict + 32) + 40;

	switch (place) {
	case INTERPRETER:
		return FLATMEMORY_BASE + 16;
	case MODULES:
		return interpreter + 944;
	case MODULES_TYPE:
		return modules + 8;
	case MODULES_KEYS:
		return modules + 32;
	case MODULES_SHAPE:
		return keys + 8;
	case MODULES_COUNT:
		return keys + 24;
	case MODULE_KEY:
		return entry;
	case MODULE:
		return entry + 8;
	case MODULE_TYPE:
		return module + 8;
	case MODULE_DICT:
		return module + 16;
	case TASK_BYTES:
		return word_at(s, entries + 16 + 8) + 32;
	case RUNNING_TYPE:
		return word_at(s, entries + 32 + 8) + 8;
	default:
		return FLATMEMORY_BASE + 8;
	}
}

static void refused(void **state)
{
	static const struct {
		const char *what;
		enum place place;
		uint64_t word;
		int outcome;
	} rows[] = {
		{"nothing changed", NOTHING, 0, PYTHON_OK},
		{"no interpreter", INTERPRETER, 0, PYTHON_ODD},
		{"an interpreter nowhere", INTERPRETER, UINT64_MAX, PYTHON_UNREADABLE},
		{"no modules", MODULES, 0, PYTHON_ODD},
		{"modules are no dict", MODULES_TYPE, FLATMEMORY_BASE, PYTHON_UNREADABLE},
		{"no keys", MODULES_KEYS, 0, PYTHON_ODD},
		{"keys nowhere", MODULES_KEYS, 8, PYTHON_UNREADABLE},
		{"keys of a split dict", MODULES_SHAPE, 0x20303, PYTHON_ODD},
		{"a huge table", MODULES_SHAPE, 0x12003, PYTHON_ODD},
		{"too many entries", MODULES_COUNT, PYTHON_TASKS_ENTRIES_MAX + 1, PYTHON_ODD},
		{"more entries than there are", MODULES_COUNT, PYTHON_TASKS_ENTRIES_MAX,
		 PYTHON_UNREADABLE},
		{"not imported", MODULES_COUNT, 2, PYTHON_NOT_READY},
		{"no entries", MODULES_COUNT, 0, PYTHON_NOT_READY},
		{"a key nowhere", MODULE_KEY, 8, PYTHON_UNREADABLE},
		{"the entry is taken away", MODULE, 0, PYTHON_NOT_READY},
		{"a module nowhere", MODULE, 8, PYTHON_UNREADABLE},
		{"the module is no module", MODULE_TYPE, 8, PYTHON_UNREADABLE},
		{"a module without a dict", MODULE_DICT, 0, PYTHON_ODD},
		{"tasks of another size", TASK_BYTES, 168, PYTHON_ODD},
		{"running tasks are no dict", RUNNING_TYPE, 8, PYTHON_UNREADABLE},
	};

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		struct subject s;

		row_begin(rows[i].what);
		subject_init(&s, "3.12", 0x030c);
		put(&s, address_of(&s, rows[i].place), rows[i].word);
		assert_int_equal(find(&s), rows[i].outcome);
		assert_int_equal(s.tasks.type != 0, rows[i].outcome == PYTHON_OK);
	}
}

static void not_known(void **state)
{
	struct subject s;

	(void)state;
	subject_init(&s, "3.12", 0x030c);
	s.layout.version = 0x030f;
	assert_int_equal(find(&s), PYTHON_VERSION);
	subject_init(&s, "3.12", 0x030c);
	s.layout.object_type = 24; /* free-threaded */
	assert_int_equal(find(&s), PYTHON_VERSION);
	subject_init(&s, "3.12", 0x030c);
	s.threads.items[0].sub = true; /* the thread of the first interpreter is not known */
	assert_int_equal(find(&s), PYTHON_NOT_READY);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_releases),
		cmocka_unit_test(refused),
		cmocka_unit_test(not_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
