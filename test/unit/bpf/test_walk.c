// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <string.h>

#include "support/walkbuilt.h"

/* The frame-pointer walk on synthetic stacks. The stack of the task: records at these addresses;
 * all other memory is unreadable. */
#define STACK  0x7ffc00000000ull
#define AT(i)  (STACK + 0x1000ull * (i)) /* not in one window */
#define PC(i)  (0x400000ull + 0x10ull * (i))
#define LENGTH 1000 /* more than any walk may take */

struct record {
	__u64 fp; /* the caller's */
	__u64 ra; /* return address into the caller */
};

struct record_at {
	uint64_t at;
	struct record record;
};

static struct record_at stack[LENGTH];
static size_t n_stack;
static size_t n_reads;

/* A read of a record also returns the bytes after it. */
WINDOW_INLINE int window_read(const struct table_space *space, void *to, __u64 n, __u64 address)
{
	bool is_there = false;

	(void)space;
	n_reads++;
	memset(to, 0, n);
	for (size_t i = 0; i < n_stack; i++) {
		const uint64_t off = stack[i].at - address;

		if (off < n && n - off >= sizeof(stack[i].record))
			memcpy((char *)to + off, &stack[i].record, sizeof(stack[i].record));
		is_there |= off == 0;
	}
	return is_there ? 0 : -1;
}

static void walk_by_fp(uint64_t pc, uint64_t sp, uint64_t fp, uint32_t first, struct walked *ret)
{
	const struct walk_start from = {
		.pc = pc, .sp = sp, .fp = fp, .mode = SETTINGS_UNWIND_FP, .first = first};

	walk_from(&from, ret);
}

struct walk_row {
	const char *name;
	uint64_t pc, sp, fp;
	struct record_at stack[4];
	__u32 end;
	uint64_t pcs[5];
};

static const struct walk_row walk_rows[] = {
	{"three frames, the last without a caller",
	 PC(0),
	 STACK,
	 AT(1),
	 {{AT(1), {AT(2), PC(1)}}, {AT(2), {0, PC(2)}}},
	 SAMPLE_END_COMPLETE,
	 {PC(0), PC(1), PC(2)}},
	{"return address 0 ends it too",
	 PC(0),
	 STACK,
	 AT(1),
	 {{AT(1), {AT(2), PC(1)}}, {AT(2), {AT(3), 0}}},
	 SAMPLE_END_COMPLETE,
	 {PC(0), PC(1)}},
	{"no frame pointer at all", PC(0), STACK, 0, {{0}}, SAMPLE_END_NO_FP, {PC(0)}},
	{"record right at the stack pointer",
	 PC(0),
	 AT(1),
	 AT(1),
	 {{AT(1), {0, PC(1)}}},
	 SAMPLE_END_COMPLETE,
	 {PC(0), PC(1)}},
	{"below the stack pointer",
	 PC(0),
	 AT(1),
	 AT(1) - 8,
	 {{AT(1) - 8, {0, PC(1)}}},
	 SAMPLE_END_FP_LOW,
	 {PC(0)}},
	{"not aligned",
	 PC(0),
	 STACK,
	 AT(1) + 4,
	 {{AT(1) + 4, {0, PC(1)}}},
	 SAMPLE_END_FP_ODD,
	 {PC(0)}},
	{"a number that is no address", PC(0), STACK, 1, {{0}}, SAMPLE_END_FP_ODD, {PC(0)}},
	{"points at itself",
	 PC(0),
	 STACK,
	 AT(1),
	 {{AT(1), {AT(1), PC(1)}}},
	 SAMPLE_END_FP_LOW,
	 {PC(0), PC(1)}},
	{"overlaps the record before",
	 PC(0),
	 STACK,
	 AT(1),
	 {{AT(1), {AT(1) + 8, PC(1)}}, {AT(1) + 8, {PC(1), PC(2)}}},
	 SAMPLE_END_FP_LOW,
	 {PC(0), PC(1)}},
	{"next to the record before",
	 PC(0),
	 STACK,
	 AT(1),
	 {{AT(1), {AT(1) + 16, PC(1)}}, {AT(1) + 16, {0, PC(2)}}},
	 SAMPLE_END_COMPLETE,
	 {PC(0), PC(1), PC(2)}},
	{"goes back",
	 PC(0),
	 STACK,
	 AT(2),
	 {{AT(2), {AT(1), PC(1)}}, {AT(1), {0, PC(2)}}},
	 SAMPLE_END_FP_LOW,
	 {PC(0), PC(1)}},
	{"the last place near enough",
	 PC(0),
	 STACK,
	 STACK + WALK_STACK_BYTES - 8,
	 {{STACK + WALK_STACK_BYTES - 8, {0, PC(1)}}},
	 SAMPLE_END_COMPLETE,
	 {PC(0), PC(1)}},
	{"too far",
	 PC(0),
	 STACK,
	 STACK + WALK_STACK_BYTES,
	 {{STACK + WALK_STACK_BYTES, {0, PC(1)}}},
	 SAMPLE_END_FP_FAR,
	 {PC(0)}},
	{"too far from the start, though near the frame before",
	 PC(0),
	 STACK,
	 STACK + WALK_STACK_BYTES - 8,
	 {{STACK + WALK_STACK_BYTES - 8, {STACK + WALK_STACK_BYTES + 8, PC(1)}},
	  {STACK + WALK_STACK_BYTES + 8, {0, PC(2)}}},
	 SAMPLE_END_FP_FAR,
	 {PC(0), PC(1)}},
	{"a stack pointer at the end of the address space",
	 PC(0),
	 UINT64_MAX - 7,
	 UINT64_MAX - 7,
	 {{UINT64_MAX - 7, {0, PC(1)}}},
	 SAMPLE_END_FP_FAR,
	 {PC(0)}},
	{"not mapped",
	 PC(0),
	 STACK,
	 AT(1),
	 {{AT(1), {AT(2), PC(1)}}},
	 SAMPLE_END_UNREADABLE,
	 {PC(0), PC(1)}},
	{"lowest return address",
	 PC(0),
	 STACK,
	 AT(1),
	 {{AT(1), {0, WALK_PC_MIN}}},
	 SAMPLE_END_COMPLETE,
	 {PC(0), WALK_PC_MIN}},
	{"return address below any code",
	 PC(0),
	 STACK,
	 AT(1),
	 {{AT(1), {0, WALK_PC_MIN - 1}}},
	 SAMPLE_END_PC_ODD,
	 {PC(0)}},
	{"highest return address",
	 PC(0),
	 STACK,
	 AT(1),
	 {{AT(1), {0, WALK_PC_LIMIT - 1}}},
	 SAMPLE_END_COMPLETE,
	 {PC(0), WALK_PC_LIMIT - 1}},
	{"return address above user space",
	 PC(0),
	 STACK,
	 AT(1),
	 {{AT(1), {0, WALK_PC_LIMIT}}},
	 SAMPLE_END_PC_ODD,
	 {PC(0)}},
	{"return address in the kernel",
	 PC(0),
	 STACK,
	 AT(1),
	 {{AT(1), {AT(2), 0xffffffff81000000ull}}, {AT(2), {0, PC(2)}}},
	 SAMPLE_END_PC_ODD,
	 {PC(0)}},
};

static size_t pcs_in(const struct walk_row *row)
{
	size_t n = 0;

	while (n < array_size(row->pcs) && row->pcs[n])
		n++;
	return n;
}

static void test_rows(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(walk_rows); i++) {
		const struct walk_row *row = &walk_rows[i];
		struct walked w;

		row_begin(row->name);
		memcpy(stack, row->stack, sizeof(row->stack));
		n_stack = array_size(row->stack);
		walk_by_fp(row->pc, row->sp, row->fp, 0, &w);
		assert_int_equal(w.walk.end, row->end);
		assert_int_equal(w.walk.n, pcs_in(row));
		assert_int_equal(w.walk.n_rows, 0);
		for (size_t f = 0; f < w.walk.n; f++)
			assert_true(w.frames[f] == row->pcs[f]);
	}
}

static void make_stack(size_t n)
{
	for (size_t i = 0; i < n; i++)
		stack[i] = (struct record_at){AT(i + 1), {i + 1 < n ? AT(i + 2) : 0, PC(i + 1)}};
	n_stack = n;
	n_reads = 0;
}

struct deep_row {
	const char *name;
	size_t callers;
	__u32 first;
	__u32 end;
	__u32 n;
};

static const struct deep_row deep_rows[] = {
	{"one below the ceiling", SAMPLE_USER_FRAMES_MAX - 2, 0, SAMPLE_END_COMPLETE,
	 SAMPLE_USER_FRAMES_MAX - 1},
	{"at the ceiling", SAMPLE_USER_FRAMES_MAX - 1, 0, SAMPLE_END_COMPLETE,
	 SAMPLE_USER_FRAMES_MAX},
	{"one above", SAMPLE_USER_FRAMES_MAX, 0, SAMPLE_END_MAX_FRAMES, SAMPLE_USER_FRAMES_MAX},
	{"far above", LENGTH, 0, SAMPLE_END_MAX_FRAMES, SAMPLE_USER_FRAMES_MAX},
	{"behind a full kernel part", LENGTH, SAMPLE_KERNEL_FRAMES_MAX, SAMPLE_END_MAX_FRAMES,
	 SAMPLE_USER_FRAMES_MAX},
};

static void test_depth(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(deep_rows); i++) {
		const struct deep_row *row = &deep_rows[i];
		struct walked w;

		row_begin(row->name);
		make_stack(row->callers);
		walk_by_fp(PC(0), STACK, AT(1), row->first, &w);
		assert_int_equal(w.walk.end, row->end);
		assert_int_equal(w.walk.n, row->n);
		/* a read for each frame, and for the extra frame */
		assert_int_equal(n_reads, w.walk.n - (row->end == SAMPLE_END_COMPLETE));
		for (__u32 f = 0; f < WALK_SLOTS; f++) {
			bool ours = f >= row->first && f < row->first + w.walk.n;

			assert_true(w.frames[f] == (ours ? PC(f - row->first) : UINT64_MAX));
		}
	}
}

/* With any bytes on the stack, the walk stays inside its slots and ends. */
static void test_rubbish(void **state)
{
	uint64_t x = 88172645463325252ull; /* xorshift */

	(void)state;
	for (int round = 0; round < 2000; round++) {
		struct walked w;

		for (n_stack = 0; n_stack < 32; n_stack++) {
			x ^= x << 13, x ^= x >> 7, x ^= x << 17;
			stack[n_stack] = (struct record_at){
				AT(n_stack), {AT(x % 40) + (x >> 60) % 2, x >> (x % 64)}};
		}
		n_reads = 0;
		walk_by_fp(x, STACK, AT(x % 32), 0, &w);
		assert_true(w.walk.end < SAMPLE_END_MAX);
		assert_true(w.walk.n >= 1 && w.walk.n <= SAMPLE_USER_FRAMES_MAX);
		assert_true(n_reads <= 33); /* each record at most once: addresses only grow */
		for (__u32 f = 1; f < w.walk.n; f++)
			assert_true(walk_pc_plausible(w.frames[f]));
	}
}

/* The hash tells order, length and every single bit. */
static void test_hash(void **state)
{
	(void)state;
	assert_true(walk_hash(walk_hash(0, 1), 2) != walk_hash(walk_hash(0, 2), 1));
	assert_true(walk_hash(walk_hash(0, 0), 0) != walk_hash(0, 1));
	for (int bit = 0; bit < 64; bit++)
		for (int other = 0; other < bit; other++)
			assert_true(walk_hash(7, 1ull << bit) != walk_hash(7, 1ull << other));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_depth),
		cmocka_unit_test(test_rubbish),
		cmocka_unit_test(test_hash),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
