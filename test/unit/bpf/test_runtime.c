// SPDX-License-Identifier: Apache-2.0
/* The walk with the step of a runtime: order of native and runtime frames, walks in parts, limits.
 * Native frames are found by frame pointer. */
#include "support/test.h"

#include <string.h>

#define FRAME_RUNTIMES_TEST "bpf/runtime_test.bpf.h"
#define WALK_RUNTIMES
#include "support/walkbuilt.h"

/* The task's stack: a frame record in each page. The runtime's frames have pages of their own. */
#define STACK	   0x7ffc00000000ull
#define AT(i)	   (STACK + 0x1000ull * (i))
#define FRAMES	   0x600000000000ull
#define FRAME(i)   (FRAMES + 0x1000ull * (i))
#define LOOP	   0x500000ull
#define LOOP_BYTES 0x100ull
#define PC(i)	   (0x400000ull + 0x10ull * (i))
#define DEEP	   1200

/* Frames of the task, by number: where each returns to, and the runtime's list. */
struct task {
	uint64_t returns[DEEP]; /* of the record at AT(i + 1); 0 ends the list */
	struct runtime_test_frame frames[DEEP];
	size_t n_frames; /* readable frames */
};

static struct task task;
static struct runtime_test where = {LOOP, LOOP_BYTES, FRAME(0)};
static bool has_runtime;

WINDOW_INLINE int window_read(const struct table_space *space, void *to, __u64 n, __u64 address)
{
	const __u64 i = address % 0x1000 ? DEEP : (address - AT(1)) / 0x1000;
	const __u64 f = address % 0x1000 ? DEEP : (address - FRAME(0)) / 0x1000;

	(void)space;
	memset(to, 0, n);
	if (i < DEEP)
		memcpy(to, (const __u64[]){task.returns[i] ? AT(i + 2) : 0, task.returns[i]}, 16);
	else if (f < task.n_frames)
		memcpy(to, &task.frames[f], sizeof(task.frames[f]));
	else
		return -1;
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

WALK_INLINE const struct runtime_test *runtime_test_of(const struct table_space *space)
{
	(void)space;
	return has_runtime ? &where : NULL;
}

static void walk(uint64_t pc, const struct walk_runtime *step, struct walked *ret)
{
	const struct walk_start from = {
		.pc = pc, .sp = STACK, .fp = AT(1), .step = step, .mode = SETTINGS_UNWIND_AUTO};

	walk_from(&from, ret);
}

/* ---------------------------------------------------------------- small stacks */

/* Letters: n native frame, L loop; f frame of the runtime, l last frame of an activation; x
 * unreadable frame, o frame at an odd address, in the stack ! and ?. */
struct walk_row {
	const char *name;
	const char *native;  /* from the innermost on */
	const char *runtime; /* the list of frames */
	const char *want;
	__u32 end;
};

static const struct walk_row walk_rows[] = {
	{"native frames alone", "nnnn", "fl", "nnnn", SAMPLE_END_COMPLETE},
	{"an activation behind its loop", "nLn", "fl", "nLfln", SAMPLE_END_COMPLETE},
	{"innermost is the loop", "Ln", "fl", "Lfln", SAMPLE_END_COMPLETE},
	{"outermost is the loop", "nL", "fl", "nLfl", SAMPLE_END_COMPLETE},
	{"two activations, native frames between", "nLnnLn", "ffll", "nLfflnnLln",
	 SAMPLE_END_COMPLETE},
	{"loop upon loop", "LL", "lfl", "LlLfl", SAMPLE_END_COMPLETE},
	{"one frame an activation", "nLnLnL", "lll", "nLlnLlnLl", SAMPLE_END_COMPLETE},
	{"a list that ends nowhere", "nLn", "ffx", "nLff!n", SAMPLE_END_COMPLETE},
	{"not even the first", "nLn", "x", "nL!n", SAMPLE_END_COMPLETE},
	{"an odd address", "nLn", "fo", "nLf?n", SAMPLE_END_COMPLETE},
	{"broken in each activation", "nLnLn", "lx", "nLlnL!n", SAMPLE_END_COMPLETE},
	{"and again", "nLnLn", "x", "nL!nL!n", SAMPLE_END_COMPLETE},
};

static void lay(const struct walk_row *row)
{
	memset(&task, 0, sizeof(task));
	for (size_t i = 1; i < strlen(row->native); i++)
		task.returns[i - 1] = row->native[i] == 'L' ? LOOP + 8 : PC(i);
	where.frames = FRAME(0);
	for (size_t i = 0; row->runtime[i]; i++) {
		const char next = row->runtime[i + 1];

		if (row->runtime[i] == 'x' || row->runtime[i] == 'o')
			break;
		task.n_frames = i + 1;
		task.frames[i] = (struct runtime_test_frame){FRAME(i + 1) + (next == 'o'), 0xf0 + i,
							     i, row->runtime[i] == 'l'};
	}
}

/* A letter for each frame. Asserts the list's order of the runtime's frames. */
static void spell(const struct walked *w, char *ret)
{
	struct frame_record frame;
	__u64 n_runtime = 0;
	__u32 n;

	for (__u32 i = 0; i < w->walk.n; i += n) {
		n = frame_decode(w->frames + i, w->walk.n - i, &frame);
		assert_true(n > 0);
		switch (frame.kind) {
		case FRAME_NATIVE:
			*ret++ = frame.words[0] - LOOP < LOOP_BYTES ? 'L' : 'n';
			break;
		case FRAME_RUNTIME:
			assert_int_equal(frame.runtime, FRAME_RUNTIME_TEST);
			assert_true(frame.words[0] == 0xf0 + n_runtime);
			assert_true(frame.words[1] == n_runtime);
			*ret++ = task.frames[n_runtime++].last ? 'l' : 'f';
			break;
		default:
			assert_int_equal(frame.runtime, FRAME_RUNTIME_TEST);
			*ret++ = frame.reason == FRAME_REASON_ODD ? '?' : '!';
		}
	}
	*ret = '\0';
}

static void test_order(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(walk_rows); i++) {
		const struct walk_row *row = &walk_rows[i];
		const uint64_t pc = row->native[0] == 'L' ? LOOP : PC(0);
		struct walked with, without;
		char got[64];

		row_begin(row->name);
		lay(row);
		has_runtime = true;
		walk(pc, &test_walk, &with);
		spell(&with, got);
		assert_string_equal(got, row->want);
		assert_int_equal(with.walk.end, row->end);

		/* a step without frames, and no step: the same words */
		has_runtime = false;
		walk(pc, &test_walk, &with);
		walk(pc, NULL, &without);
		spell(&without, got);
		assert_string_equal(got, row->native);
		assert_int_equal(with.walk.n, without.walk.n);
		assert_memory_equal(with.frames, without.frames, sizeof(with.frames));
		assert_true(with.walk.hash == without.walk.hash);
	}
}

/* ---------------------------------------------------------------- deep stacks */

struct deep_row {
	const char *name;
	size_t n_native; /* each second frame is the loop */
	size_t n_frames; /* of the runtime; each is a separate activation */
	bool endless;	 /* the list: one activation, in a circle */
	bool in_loop;	 /* the innermost frame is in the loop, too */
	__u32 end;
	__u32 n; /* words */
};

static const struct deep_row deep_rows[] = {
	/* a native frame, the loop and two words each time */
	{"more changes of kind than the kernel has tail calls", 200, 100, false, false,
	 SAMPLE_END_COMPLETE, 400},
	{"full", 256, 128, false, false, SAMPLE_END_COMPLETE, 512},
	{"a native frame too many", 257, 128, false, false, SAMPLE_END_MAX_FRAMES, 512},
	{"a frame of two words too many, with no room", 2, 0, true, false, SAMPLE_END_MAX_FRAMES,
	 512},
	{"and with room for half of it", 1, 0, true, true, SAMPLE_END_MAX_FRAMES, 511},
};

static void lay_deep(const struct deep_row *row)
{
	memset(&task, 0, sizeof(task));
	for (size_t i = 1; i < row->n_native; i++)
		task.returns[i - 1] = i % 2 ? LOOP + 8 : PC(i);
	task.n_frames = row->endless ? 2 : row->n_frames;
	for (size_t i = 0; i < task.n_frames; i++)
		task.frames[i] = (struct runtime_test_frame){FRAME(row->endless ? !i : i + 1),
							     0xf0 + i, i, !row->endless};
	where.frames = FRAME(0);
}

static void test_depth(void **state)
{
	(void)state;
	has_runtime = true;
	for (size_t i = 0; i < array_size(deep_rows); i++) {
		const struct deep_row *row = &deep_rows[i];
		struct frame_record frame;
		struct walked w;

		row_begin(row->name);
		lay_deep(row);
		walk(row->in_loop ? LOOP : PC(0), &test_walk, &w);
		assert_int_equal(w.walk.end, row->end);
		assert_int_equal(w.walk.n, row->n);
		assert_true(w.n_programs <= WALK_PROGRAMS);
		/* nothing behind the last word, and no half frame */
		for (__u32 k = w.walk.n; k < WALK_SLOTS; k++)
			assert_true(w.frames[k] == UINT64_MAX);
		for (__u32 k = 0; k < w.walk.n; k += frame.n_words)
			assert_true(frame_decode(w.frames + k, w.walk.n - k, &frame) > 0);
	}
}

/* The hash depends on the words of the runtime's frames. */
static void test_hash(void **state)
{
	struct walked a, b;

	(void)state;
	lay(&(struct walk_row){"", "nLn", "fl", "", 0});
	walk(PC(0), &test_walk, &a);
	task.frames[1].place++;
	walk(PC(0), &test_walk, &b);
	assert_true(a.walk.hash != b.walk.hash);
	task.frames[1].place--;
	task.frames[0].function++;
	walk(PC(0), &test_walk, &b);
	assert_true(a.walk.hash != b.walk.hash);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_depth),
		cmocka_unit_test(test_hash),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
