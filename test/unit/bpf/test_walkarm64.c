// SPDX-License-Identifier: Apache-2.0
/* arm64's special cases in a walk, on any machine: return addresses in lr, signed addresses, frame
 * records without the caller's sp, and signal frames. */
#undef __TARGET_ARCH_x86
#define __TARGET_ARCH_arm64
#include "support/test.h"

#include <string.h>

#include "base/cleanup.h"
#include "lib/table_host.h"
#include "lib/walk.bpf.h"
#include "unwind/rows.h"
#include "unwindtable/table.h"

DEFINE_CLEANUP(struct table *, table_freep, table_free);

#define STACK  0x7ffc00000000ull
#define WORDS  1024
#define BIAS   0xaaaa00000000ull
#define SIGNED (0x3aull << 48)

/* The program: functions of 256 bytes, one after the other. */
enum function { LEAF, FRAME, BY_FP, RESTORER, LEAF_AGAIN, START, N_FUNCTIONS };

#define IN(f) (BIAS + 0x10000 + 256ull * (f) + 8)

static const struct unwind_rule rules[N_FUNCTIONS] = {
	[LEAF] = {.cfa = UNWIND_CFA_REG, .cfa_reg = 31, .ra = UNWIND_RA_REG, .ra_off = 30},
	[FRAME] = {.cfa = UNWIND_CFA_REG,
		   .cfa_reg = 31,
		   .cfa_off = 48,
		   .fp = UNWIND_FP_AT_CFA,
		   .fp_off = -48,
		   .ra_off = -40},
	[BY_FP] = {.cfa = UNWIND_CFA_FP},
	[RESTORER] = {.cfa = UNWIND_CFA_SIGNAL},
	[LEAF_AGAIN] = {.cfa = UNWIND_CFA_REG, .cfa_reg = 31, .ra = UNWIND_RA_REG, .ra_off = 30},
	[START] = {.cfa = UNWIND_CFA_STOP},
};

static uint64_t stack[WORDS];
static struct table_exe exe;

WINDOW_INLINE int window_read(const struct table_space *space, void *to, __u64 n, __u64 address)
{
	const uint64_t off = address - STACK;

	if (off >= sizeof(stack) || n > sizeof(stack) - off)
		return -1;
	memcpy(to, (const char *)stack + off, n);
	return 0;
}

WALK_INLINE __u64 walk_thread_pointer(const struct table_space *space)
{
	(void)space;
	return 0;
}

WALK_INLINE const struct table_exe *walk_exe(const struct table_space *space, __u32 number)
{
	return number == 1 ? &exe : NULL;
}

WALK_INLINE void walk_used(const struct table_space *space, __u32 number, __u64 n_frames)
{
	(void)space;
	(void)number;
	(void)n_frames;
}

static struct table *make_table(void)
{
	_cleanup_(rows_freep) struct rows *rows = NULL;
	struct table *table;

	assert_int_equal(rows_new(0x10000, 0x20000, &rows), 0);
	for (uint64_t f = 0; f < N_FUNCTIONS; f++) {
		const uint64_t start = 0x10000 + 256 * f;

		assert_int_equal(rows_begin(rows, ROWS_EH_FRAME, start, start + 256), 0);
		assert_int_equal(rows_add(rows, start, &rules[f]), 0);
		assert_int_equal(rows_end(rows), 0);
	}
	assert_int_equal(rows_finish(rows), 0);
	assert_int_equal(table_pack(rows, &table), 0);
	return table;
}

struct arm64_row {
	const char *name;
	uint64_t pc, fp, lr;
	struct {
		uint64_t word; /* of the stack */
		uint64_t value;
	} stack[8];
	uint32_t end;
	uint64_t pcs[6];
};

#define AT(word) (STACK + 8ull * (word))

static const struct arm64_row arm64_rows[] = {
	{"a leaf's caller is in lr, its caller in the frame",
	 IN(LEAF),
	 0,
	 IN(FRAME),
	 {{0, AT(50)}, {1, IN(START)}},
	 SAMPLE_END_COMPLETE,
	 {IN(LEAF), IN(FRAME), IN(START)}},
	{"signed",
	 IN(LEAF),
	 0,
	 IN(FRAME) | SIGNED,
	 {{0, AT(50)}, {1, IN(START) | SIGNED}},
	 SAMPLE_END_COMPLETE,
	 {IN(LEAF), IN(FRAME), IN(START)}},
	{"lr is not known further out",
	 IN(LEAF),
	 0,
	 IN(LEAF_AGAIN),
	 {{0}},
	 SAMPLE_END_REGISTER,
	 {IN(LEAF), IN(LEAF_AGAIN)}},
	{"frame records all the way: sp is not known behind one",
	 IN(BY_FP),
	 AT(10),
	 0,
	 {{10, AT(30)}, {11, IN(FRAME)}, {30, AT(60)}, {31, IN(START)}},
	 SAMPLE_END_COMPLETE,
	 {IN(BY_FP), IN(FRAME), IN(START)}},
	{"a signal frame has all registers, lr too",
	 IN(FRAME),
	 0,
	 0,
	 {{1, IN(RESTORER)},
	  /* sp is at word 6 then: x30, sp and pc of the frame */
	  {6 + 312 / 8 + 30, IN(FRAME)},
	  {6 + 312 / 8 + 31, AT(200)},
	  {6 + 312 / 8 + 32, IN(LEAF_AGAIN)},
	  {201, IN(START)}},
	 SAMPLE_END_COMPLETE,
	 {IN(FRAME), IN(RESTORER) + 1, IN(LEAF_AGAIN) + 1, IN(FRAME), IN(START)}},
};

static void test_rows(void **state)
{
	_cleanup_(table_freep) struct table *table = make_table();
	struct table_page table_pages[3] = {0};
	const struct process_mapping mapping = {.start_pages = (BIAS + 0x10000) >> 12,
						.n_pages = 16,
						.bias_pages = BIAS >> 12,
						.exe = 1};
	struct table_space space = {.table_pages = table_pages,
				    .rules = table->rules,
				    .rule_runs = table->rule_runs,
				    .n_table_pages = 3,
				    .n_rules = table->n_rules,
				    .n_rule_runs = table->n_rule_runs};

	assert_in_range(table->n_bytes, 1, TABLE_PAGE_BYTES - 1);
	memcpy(&table_pages[0], &mapping, sizeof(mapping));
	memcpy(&table_pages[1], table->table_image, table->n_bytes);
	exe = table->exe;
	exe.table_page += 1;
	exe.tail += TABLE_PAGE_BYTES / TABLE_SUBPAGE_BYTES;
	for (size_t i = 0; i < array_size(arm64_rows); i++) {
		const struct arm64_row *row = &arm64_rows[i];
		struct regs regs = {.pc = row->pc, .sp = STACK};
		__u64 frames[WALK_SLOTS] = {0};
		struct window win;
		struct walk w = {0};
		const struct walk_ctx c = {
			.w = &w, .regs = &regs, .win = &win, .frames = frames, .space = &space};

		row_begin(row->name);
		memset(stack, 0, sizeof(stack));
		for (size_t s = 0; s < array_size(row->stack); s++)
			if (row->stack[s].value)
				stack[row->stack[s].word] = row->stack[s].value;
		regs.x[29] = row->fp;
		regs.x[30] = row->lr;
		walk_begin(&c, 0, 1);
		walk_on(&c, NULL);
		for (size_t f = 0; f < array_size(row->pcs) && row->pcs[f]; f++) {
			assert_true(frames[f] == row->pcs[f]);
			assert_true(f < w.n);
		}
		assert_int_equal(w.end, row->end);
		assert_true(w.n == array_size(row->pcs) || !row->pcs[w.n]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
