/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PODPROF_BPF_LIB_PYTHON_TASK_BPF_H
#define PODPROF_BPF_LIB_PYTHON_TASK_BPF_H

/*
 * The name of the asyncio task that a thread of CPython runs (--task-names), after the walk. A task
 * runs for microseconds, so the walker copies the name itself: a name is that of the sample's time.
 * shared/python.h describes the way to the task.
 *
 * Other threads may change the dict between two reads, if the thread has no interpreter lock. Each
 * entry is checked by the task's context and type. The context is the thread's, so a task of
 * another thread is never taken.
 *
 * CPython names a task "Task-N" unless the program sets a name. These numbers would give each
 * request another stack, so all such tasks are "Task". From 3.12 on, the name is an int until a
 * program asks for it.
 */

#include "lib/walk.bpf.h"
#include "shared/sample.h"

/* The last entries of the dict that are looked at. A step of a task adds one at the end and takes
 * it away, so they are those of the event loops that run now. Reached: the task is not found. */
#define PYTHON_TASK_ENTRIES 4
/* Entries with those taken away: a dict of 128 slots. Reached: the task is not found. */
#define PYTHON_TASK_SLOTS   128

/* Bits of a string's state: the kind is 1 byte a character, compact, ASCII. */
#define PYTHON_STATE_MASK  0x7cull
#define PYTHON_STATE_ASCII 0x64ull
#define PYTHON_TASK_BYTES  (SAMPLE_TASK_WORDS * 8)

/* The words of w->aside.of_runtime, after the walk. */
enum {
	PYTHON_TASK_STATE = PYTHON_AT, /* set by python_state() */
	PYTHON_TASK_CONTEXT = PYTHON_AT + 1,
	PYTHON_TASK_KEYS,
	PYTHON_TASK_COUNT, /* of the entries, with those taken away */
	PYTHON_TASK_FOUND,
};

/* The name and the context of the task at @task into the window. Not 0 if unreadable. */
WALK_INLINE int python_task_read(const struct walk_ctx *c, const struct python_tasks *t, __u64 task)
{
	return (task & 7) ||
	       window_read(c->space, walk_room(c)->window.words, 16, task + t->task_name);
}

/* The place of the dict's last entries into PYTHON_TASK_KEYS, their number into PYTHON_TASK_COUNT.
 * Not 0 without any. */
WALK_INLINE int python_task_entries(const struct walk_ctx *c, const struct python_tasks *t)
{
	__u64 *mine = c->w->aside.of_runtime;
	const __u64 *head = walk_room(c)->object;
	__u64 keys, slots, n;

	if (python_word(c, t->running + PYTHON_DICT_KEYS, &mine[PYTHON_TASK_KEYS]))
		return -1;
	WALK_FENCE();
	keys = mine[PYTHON_TASK_KEYS];
	if ((keys & 7) || window_read(c->space, walk_room(c)->object, PYTHON_KEYS_WORDS * 8, keys))
		return -1;
	WALK_FENCE();
	/* the slots have a byte each: dk_size, or the power of two dk_log2_index_bytes */
	slots = t->dict_is_old ? head[1] : 1ull << (head[1] >> 8 & 63);
	n = t->dict_is_old ? head[4] : head[3];
	keys += (t->dict_is_old ? PYTHON_KEYS_WORDS : PYTHON_KEYS_WORDS - 1) * 8;
	if (!n || n > PYTHON_TASK_SLOTS || slots > PYTHON_TASK_SLOTS)
		return -1;
	mine[PYTHON_TASK_COUNT] = n;
	mine[PYTHON_TASK_KEYS] = keys + slots + n * PYTHON_ENTRY_WORDS * 8 -
				 PYTHON_TASK_ENTRIES * PYTHON_ENTRY_WORDS * 8;
	return 0;
}

/* The task with the thread's context into PYTHON_TASK_FOUND, its words into the window. Not 0
 * without one. */
WALK_INLINE int python_task_search(const struct walk_ctx *c, const struct python_tasks *t)
{
	__u64 *mine = c->w->aside.of_runtime;
	struct walk_room *room = walk_room(c);

	if (python_word(c, mine[PYTHON_TASK_STATE] + t->thread_context,
			&mine[PYTHON_TASK_CONTEXT]) ||
	    !mine[PYTHON_TASK_CONTEXT])
		return -1;
	WALK_FENCE();
	if (python_task_entries(c, t))
		return -1;
	WALK_FENCE();
	if (window_read(c->space, room->object, PYTHON_TASK_ENTRIES * PYTHON_ENTRY_WORDS * 8,
			mine[PYTHON_TASK_KEYS]))
		return -1;
	WALK_FENCE();
	for (int i = PYTHON_TASK_ENTRIES - 1; i >= 0; i--) {
		const __u64 task = room->object[i * PYTHON_ENTRY_WORDS + PYTHON_ENTRY_WORDS - 1];

		if (mine[PYTHON_TASK_COUNT] < (__u64)(PYTHON_TASK_ENTRIES - i))
			break;
		if (!task || python_task_read(c, t, task))
			continue;
		mine[PYTHON_TASK_FOUND] = task;
		if (room->window.words[1] == mine[PYTHON_TASK_CONTEXT])
			return 0;
	}
	return -1;
}

/* The thread's task into PYTHON_TASK_FOUND, its words into the window. Not 0 without one. */
WALK_INLINE int python_task_find(const struct walk_ctx *c, const struct python_process *p)
{
	const struct python_tasks *t = &p->tasks;
	__u64 *mine = c->w->aside.of_runtime;

	if (!t->type || python_state(c, walk_thread_pointer(c->space), &p->way) ||
	    !mine[PYTHON_TASK_STATE])
		return -1;
	WALK_FENCE();
	if (!t->thread_task)
		return python_task_search(c, t);
	if (python_word(c, mine[PYTHON_TASK_STATE] + t->thread_task, &mine[PYTHON_TASK_FOUND]) ||
	    !mine[PYTHON_TASK_FOUND])
		return -1;
	WALK_FENCE();
	return python_task_read(c, t, mine[PYTHON_TASK_FOUND]);
}

/* Whether all bytes of @word are digits. */
WALK_INLINE int python_task_digits(__u64 word)
{
	const __u64 upper = 0xf0f0f0f0f0f0f0f0ull, zeros = 0x3030303030303030ull;

	return (word & upper) == zeros && ((word + 0x0606060606060606ull) & upper) == zeros;
}

WALK_INLINE void python_task_put(__u64 ret[SAMPLE_TASK_WORDS], __u64 first, __u64 second)
{
	ret[0] = first;
	ret[1] = second;
	ret[2] = 0;
	ret[3] = 0;
}

/* "Task" and "(unknown)". */
#define PYTHON_TASK_UNNAMED	0x6b736154ull
#define PYTHON_TASK_UNKNOWN	0x6e776f6e6b6e7528ull
#define PYTHON_TASK_UNKNOWN_END 0x29ull
/* "Task-", and digits in its place. */
#define PYTHON_TASK_PREFIX	0x2d6b736154ull
#define PYTHON_TASK_PREFIX_MASK 0xffffffffffull
#define PYTHON_TASK_DIGITS	0x3030303030303030ull

/* The first @n of the bytes at @words, at most all but one, into @ret, with zeros behind them. */
WALK_INLINE void python_task_copy(const __u64 *words, __u64 n, __u64 ret[SAMPLE_TASK_WORDS])
{
	__u64 is_number = n > 5 && n <= 16;

	n = n < PYTHON_TASK_BYTES - 1 ? n : PYTHON_TASK_BYTES - 1;
	for (int i = 0; i < SAMPLE_TASK_WORDS; i++) {
		/* bytes of this word: 0 to 8 */
		const __s64 left = (__s64)n - i * 8, some = left & ~(left >> 63);
		const __u64 bytes = (__u64)(8 + ((some - 8) & ((some - 8) >> 63)));
		const __u64 mask = (~0ull >> ((64 - bytes * 8) & 63)) & -(__u64)(bytes > 0);
		__u64 digits;

		ret[i] = words[i] & mask;
		digits = ret[i] | (PYTHON_TASK_DIGITS & ~mask);
		if (!i)
			digits = (digits & ~PYTHON_TASK_PREFIX_MASK) |
				 (PYTHON_TASK_DIGITS & PYTHON_TASK_PREFIX_MASK);
		is_number &= python_task_digits(digits);
	}
	is_number &= (ret[0] & PYTHON_TASK_PREFIX_MASK) == PYTHON_TASK_PREFIX;
	if (is_number)
		python_task_put(ret, PYTHON_TASK_UNNAMED, 0);
}

/* The string, or the number, at @name. Not 0 if unreadable or of other characters. */
WALK_INLINE int python_task_string(const struct walk_ctx *c, const struct python_tasks *t,
				   __u64 name, __u64 ret[SAMPLE_TASK_WORDS])
{
	__u64 *words = walk_room(c)->object, n;

	if ((name & 7) || window_read(c->space, words, 16, name))
		return -1;
	WALK_FENCE();
	if (words[1] != t->string) {
		python_task_put(ret, PYTHON_TASK_UNNAMED, 0);
		return 0;
	}
	/* length, hash, state */
	if (window_read(c->space, words, 24, name + PYTHON_STRING_LENGTH) ||
	    (words[2] & PYTHON_STATE_MASK) != PYTHON_STATE_ASCII)
		return -1;
	n = words[0];
	WALK_FENCE();
	if (window_read_some(c->space, words, PYTHON_TASK_BYTES, name + t->string_data))
		return -1;
	python_task_copy(words, n, ret);
	return 0;
}

/* The name of the thread's task, with zeros behind it: "Task" for one without a name of the
 * program's own, "(unknown)" if the name is not readable or not in ASCII. 0 if the thread runs no
 * task. */
WALK_INLINE int python_task_name(const struct walk_ctx *c, const struct python_process *p,
				 __u64 ret[SAMPLE_TASK_WORDS])
{
	__u64 *mine = c->w->aside.of_runtime, name, type;

	if (python_task_find(c, p))
		return 0;
	WALK_FENCE();
	name = walk_room(c)->window.words[0];
	if (python_word(c, mine[PYTHON_TASK_FOUND] + PYTHON_OBJECT_TYPE, &type) ||
	    type != p->tasks.type)
		return 0;
	WALK_FENCE();
	if (python_task_string(c, &p->tasks, name, ret))
		python_task_put(ret, PYTHON_TASK_UNKNOWN, PYTHON_TASK_UNKNOWN_END);
	return 1;
}

#endif
