// SPDX-License-Identifier: Apache-2.0
/* Words of frames: each kind, its limits, near misses. */
#include "support/test.h"

#include <string.h>

#include "shared/frame.h"

#define OBJECT 0x7f1234567890ull
/* As in frame.h, by numbers. */
#define WORD(runtime, behind, reason, first) \
	(1ull << 63 | (runtime) * (1ull << 56) | (behind) * (1ull << 54) | (reason) << 48 | (first))
#define HEAD(runtime) WORD(runtime, 1, 0ull, OBJECT)

struct decode_row {
	const char *name;
	__u64 at[3];
	__u64 n;
	__u32 want; /* words taken */
	struct frame_record record;
};

#define NATIVE(pc)                     \
	{                              \
		FRAME_NATIVE, 0, 0, 1, \
		{                      \
			pc, 0          \
		}                      \
	}
#define RUNTIME(runtime, first, second)       \
	{                                     \
		FRAME_RUNTIME, runtime, 0, 2, \
		{                             \
			first, second         \
		}                             \
	}
#define BROKEN(runtime, why, first)            \
	{                                      \
		FRAME_BROKEN, runtime, why, 1, \
		{                              \
			first, 0               \
		}                              \
	}
#define NONE                \
	{                   \
		0, 0, 0, 0, \
		{           \
			0   \
		}           \
	}

static const struct decode_row decode_rows[] = {
	{"a pc", {0x401234}, 1, 1, NATIVE(0x401234)},
	{"others behind it", {0x401234, HEAD(1), 5}, 3, 1, NATIVE(0x401234)},
	{"pc 0", {0}, 1, 1, NATIVE(0)},
	{"the highest pc", {FRAME_PC_LIMIT - 1}, 1, 1, NATIVE(FRAME_PC_LIMIT - 1)},
	{"one above", {FRAME_PC_LIMIT}, 1, 0, NONE},
	{"a head but for its first bit", {HEAD(1) & ~FRAME_HEAD, 5}, 2, 0, NONE},
	{"a pc of the kernel", {0xffffffff81000000ull, 5}, 2, 0, NONE},
	{"x86-64's vsyscall page", {0xffffffffff600000ull, 5}, 2, 0, NONE},
	{"a runtime's frame", {HEAD(1), 77, 8}, 3, 2, RUNTIME(1, OBJECT, 77)},
	{"all bits of its words",
	 {WORD(127ull, 1ull, 0ull, FRAME_FIRST_LIMIT - 1), UINT64_MAX},
	 2,
	 2,
	 RUNTIME(127, FRAME_FIRST_LIMIT - 1, UINT64_MAX)},
	{"no bits of its words", {WORD(1ull, 1ull, 0ull, 0), 0}, 2, 2, RUNTIME(1, 0, 0)},
	{"the second looks like a head", {HEAD(2), HEAD(3)}, 2, 2, RUNTIME(2, OBJECT, HEAD(3))},
	{"no runtime", {WORD(0ull, 1ull, 0ull, OBJECT), 77}, 2, 0, NONE},
	{"the second word is not there", {HEAD(1), 77}, 1, 0, NONE},
	{"no second word", {WORD(1ull, 0ull, 0ull, OBJECT), 77}, 2, 0, NONE},
	{"a third word", {WORD(1ull, 2ull, 0ull, OBJECT), 77, 78}, 3, 0, NONE},
	{"more words than a frame has", {WORD(1ull, 3ull, 0ull, OBJECT), 77, 78}, 3, 0, NONE},
	{"broken",
	 {WORD(1ull, 0ull, (__u64)FRAME_REASON_UNREADABLE, OBJECT), 77},
	 2,
	 1,
	 BROKEN(1, FRAME_REASON_UNREADABLE, OBJECT)},
	{"the last word of a stack",
	 {WORD(127ull, 0ull, (__u64)FRAME_REASON_MAX - 1ull, 0)},
	 1,
	 1,
	 BROKEN(127, FRAME_REASON_MAX - 1, 0)},
	{"no such reason", {WORD(1ull, 0ull, (__u64)FRAME_REASON_MAX, 0)}, 1, 0, NONE},
	{"broken, with a second word",
	 {WORD(1ull, 1ull, (__u64)FRAME_REASON_ODD, 0), 77},
	 2,
	 0,
	 NONE},
	{"no words", {0x401234}, 0, 0, NONE},
};

static void test_decode(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(decode_rows); i++) {
		const struct decode_row *row = &decode_rows[i];
		const struct frame_record untouched = {.kind = 99};
		struct frame_record got = untouched;

		row_begin(row->name);
		assert_int_equal(frame_decode(row->at, row->n, &got), row->want);
		assert_memory_equal(&got, row->want ? &row->record : &untouched, sizeof(got));
		if (row->want)
			assert_int_equal(got.n_words, row->want);
	}
}

/* Fields do not overlap. */
static void test_head(void **state)
{
	struct frame_record got;

	(void)state;
	assert_true(frame_head(1, 1, FRAME_REASON_NONE, OBJECT) == 0x81407f1234567890ull);
	assert_true(frame_head(127, 0, FRAME_REASON_ODD, UINT64_MAX) == 0xff02ffffffffffffull);
	for (__u64 runtime = 1; runtime <= FRAME_RUNTIME_BITS; runtime++)
		for (int bit = 0; bit < FRAME_REASON_SHIFT; bit++) {
			const __u64 words[] = {frame_head(runtime, 1, 0, 1ull << bit), 1ull << bit};

			assert_int_equal(frame_decode(words, 2, &got), 2);
			assert_int_equal(got.runtime, runtime);
			assert_true(got.words[0] == 1ull << bit && got.words[1] == 1ull << bit);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_decode),
		cmocka_unit_test(test_head),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
