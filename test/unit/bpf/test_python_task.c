// SPDX-License-Identifier: Apache-2.0
/* The name of a thread's task, over made-up memory of CPython 3.10, 3.13 and 3.14. */
#include "support/test.h"

#include <string.h>

#define MEMORY	    0x600000000000ull
#define TSTATE	    (MEMORY + 0x100)
#define CONTEXT	    0xc0ffee00ull
#define OTHER	    0xc0ffee40ull /* the context of another thread */
#define TYPE	    0x7000ull
#define STRING	    0x7100ull
#define NUMBER	    0x7200ull
#define DICT	    (MEMORY + 0x400)
#define KEYS	    (MEMORY + 0x500)
#define TASK(i)	    (MEMORY + 0x1000 + 0x100ull * (i))
#define NAME	    (MEMORY + 0x3000)
#define NOWHERE	    0x630000000000ull
#define THREAD_TASK 872

#define WALK_RUNTIMES
#define WALK_THREAD_POINTER (MEMORY + 0x80)
#include "support/walkbuilt.h"
#include "lib/python_task.bpf.h"

static uint64_t words[2048];

WINDOW_INLINE int window_read(const struct table_space *space, void *to, __u64 n, __u64 address)
{
	const uint64_t off = address - MEMORY;

	(void)space;
	memset(to, 0, n);
	if (off >= sizeof(words) || n > sizeof(words) - off)
		return -1;
	memcpy(to, (const char *)words + off, n);
	return 0;
}

WALK_INLINE const struct v8_process *v8_process_of(const struct walk_ctx *c)
{
	(void)c;
	return NULL;
}

WALK_INLINE const struct hotspot_process *hotspot_process_of(const struct walk_ctx *c)
{
	(void)c;
	return NULL;
}

WALK_INLINE const struct python_process *python_process_of(const struct walk_ctx *c)
{
	(void)c;
	return NULL;
}

static void put(uint64_t address, uint64_t word)
{
	memcpy((char *)words + (address - MEMORY), &word, sizeof(word));
}

enum release { R310, R313, R314, N_RELEASES };

static const struct python_process releases[N_RELEASES] = {
	[R310] = {.way = {.at = -0x80},
		  .tasks = {.type = TYPE,
			    .string = STRING,
			    .running = DICT,
			    .thread_context = 240,
			    .task_name = 168,
			    .string_data = 48,
			    .dict_is_old = 1}},
	[R313] = {.way = {.at = -0x80},
		  .tasks = {.type = TYPE,
			    .string = STRING,
			    .running = DICT,
			    .thread_context = 208,
			    .task_name = 128,
			    .string_data = 40}},
	[R314] = {.way = {.at = -0x80},
		  .tasks = {.type = TYPE,
			    .string = STRING,
			    .thread_task = THREAD_TASK,
			    .task_name = 136,
			    .string_data = 40}},
};

static void put_string(const struct python_process *p, const char *text)
{
	put(NAME + 8, STRING);
	put(NAME + 16, strlen(text));
	put(NAME + 32, 0x64);
	memcpy((char *)words + (NAME - MEMORY) + p->tasks.string_data, text, strlen(text));
}

static void put_task(const struct python_process *p, uint64_t task, uint64_t context)
{
	put(task + 8, TYPE);
	put(task + p->tasks.task_name, NAME);
	put(task + p->tasks.task_name + 8, context);
}

/* The address of the entry @i of the dict. */
static uint64_t entry_at(const struct python_process *p, size_t i)
{
	return KEYS + (p->tasks.dict_is_old ? 40 : 32) + 8 + i * 24;
}

/* @n entries, and the tasks of the last ones; the thread's task is @mine behind them. */
static void build(const struct python_process *p, const char *name, size_t n, size_t mine)
{
	memset(words, 0, sizeof(words));
	put(MEMORY, TSTATE);
	put_string(p, name);
	if (p->tasks.thread_task) {
		put(TSTATE + THREAD_TASK, TASK(0));
		put_task(p, TASK(0), CONTEXT);
		return;
	}
	put(TSTATE + p->tasks.thread_context, CONTEXT);
	put(DICT + 32, KEYS);
	put(KEYS + 8, p->tasks.dict_is_old ? 8 : 3 | 3 << 8);
	put(KEYS + (p->tasks.dict_is_old ? 32 : 24), n);
	for (size_t i = 0; i < n && i < 8; i++) {
		const size_t behind = n - 1 - i;

		put(entry_at(p, i) + 16, TASK(behind));
		put_task(p, TASK(behind), behind == mine ? CONTEXT : OTHER + 64 * behind);
	}
}

/* NULL: no task. */
static const char *name_of(const struct python_process *p)
{
	static union {
		__u64 words[SAMPLE_TASK_WORDS];
		char text[SAMPLE_TASK_WORDS * 8];
	} ret;
	static struct walk walk;
	const struct walk_ctx c = {.w = &walk};

	memset(&ret, 0xff, sizeof(ret));
	if (!python_task_name(&c, p, ret.words))
		return NULL;
	assert_int_equal(ret.text[sizeof(ret.text) - 1], 0);
	return ret.text;
}

static void check(const struct python_process *p, const char *want)
{
	const char *name = name_of(p);

	if (want) {
		assert_non_null(name);
		assert_string_equal(name, want);
		/* the rest is hashed, too */
		for (size_t i = strlen(name); i < SAMPLE_TASK_WORDS * 8; i++)
			assert_int_equal(name[i], 0);
	} else {
		assert_null(name);
	}
}

static void test_names(void **state)
{
	static const struct {
		const char *name, *want;
	} rows[] = {
		{"", ""},
		{"a", "a"},
		{"eight-by", "eight-by"},
		{"nine-byte", "nine-byte"},
		{"a-name-of-thirty-one-bytes-1234", "a-name-of-thirty-one-bytes-1234"},
		{"a-name-of-thirty-two-bytes-12345", "a-name-of-thirty-two-bytes-1234"},
		{"a-name-of-more-bytes-than-there-is-room", "a-name-of-more-bytes-than-there"},
		{"Task-", "Task-"},
		{"Task-1", "Task"},
		{"Task-12345678901", "Task"},
		{"Task-123456789012", "Task-123456789012"},
		{"Task-7b", "Task-7b"},
		{"Task-/", "Task-/"},
		{"Task-:", "Task-:"},
		{"task-1", "task-1"},
		{"Task", "Task"},
		{"Task-1234-6789", "Task-1234-6789"},
	};

	(void)state;
	for (size_t r = 0; r < N_RELEASES; r++)
		for (size_t i = 0; i < array_size(rows); i++) {
			row_begin(rows[i].name);
			build(&releases[r], rows[i].name, 1, 0);
			check(&releases[r], rows[i].want);
		}
}

/* The thread's task is found among the last entries only. */
static void test_entries(void **state)
{
	(void)state;
	for (size_t r = 0; r < R314; r++)
		for (size_t n = 0; n <= 5; n++)
			for (size_t mine = 0; mine < 6; mine++) {
				build(&releases[r], "name", n, mine);
				check(&releases[r],
				      mine < n && mine < PYTHON_TASK_ENTRIES ? "name" : NULL);
			}
}

struct change {
	const char *what;
	uint64_t address;
	uint64_t word;
	const char *want;
};

static void check_changes(const struct python_process *p, const struct change *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		row_begin(rows[i].what);
		build(p, "name", 1, 0);
		put(rows[i].address, rows[i].word);
		check(p, rows[i].want);
	}
}

static void test_changes(void **state)
{
	const struct python_process *p = &releases[R313];
	const struct change rows[] = {
		{"nothing", MEMORY + 8, 0, "name"},
		{"a thread without Python", MEMORY, 0, NULL},
		{"a thread state nowhere", MEMORY, NOWHERE, NULL},
		{"no context", TSTATE + 208, 0, NULL},
		{"another context", TSTATE + 208, OTHER, NULL},
		{"no keys", DICT + 32, 0, NULL},
		{"keys not aligned", DICT + 32, KEYS + 1, NULL},
		{"a table of too many slots", KEYS + 8, 3 | 8 << 8, NULL},
		{"a table of impossible size", KEYS + 8, 3 | 63 << 8, NULL},
		{"too many entries", KEYS + 24, PYTHON_TASK_SLOTS + 1, NULL},
		{"the entry is taken away", KEYS + 40 + 16, 0, NULL},
		{"a task nowhere", KEYS + 40 + 16, NOWHERE, NULL},
		{"a task not aligned", KEYS + 40 + 16, TASK(0) + 4, NULL},
		{"a task of another type", TASK(0) + 8, TYPE + 8, NULL},
		{"no name", TASK(0) + 128, 0, "(unknown)"},
		{"a name nowhere", TASK(0) + 128, NOWHERE, "(unknown)"},
		{"a number", NAME + 8, NUMBER, "Task"},
		{"a string not in ASCII", NAME + 32, 0x24, "(unknown)"},
		{"a string of wide characters", NAME + 32, 0x68, "(unknown)"},
		{"a string that is not compact", NAME + 32, 0x44, "(unknown)"},
		{"an interned string", NAME + 32, 0x65, "name"},
		{"a negative length", NAME + 16, UINT64_MAX, "name"},
	};
	const struct change newer[] = {
		{"no task", TSTATE + THREAD_TASK, 0, NULL},
		{"a task nowhere", TSTATE + THREAD_TASK, NOWHERE, NULL},
		{"another type", TASK(0) + 8, TYPE + 8, NULL},
	};

	(void)state;
	check_changes(p, rows, array_size(rows));
	check_changes(&releases[R314], newer, array_size(newer));
	build(p, "name", 1, 0);
	check(&(struct python_process){.way = {.at = -0x80}}, NULL); /* asyncio is not there */
}

/* Random words: any result, but no read outside and an end. */
static void test_random(void **state)
{
	uint64_t seed = 1;

	(void)state;
	for (size_t i = 0; i < 20000; i++) {
		const struct python_process *p = &releases[i % N_RELEASES];

		build(p, "name", 1 + i % 5, 0);
		for (size_t k = 0; k < 8; k++) {
			seed = seed * 6364136223846793005ull + 1442695040888963407ull;
			words[(seed >> 33) % array_size(words)] =
				seed >> 20 & 1 ? MEMORY + (seed >> 40 & 0x3ff8) : seed;
		}
		(void)name_of(p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_entries),
		cmocka_unit_test(test_changes),
		cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
