// SPDX-License-Identifier: Apache-2.0
/* The walk from the system stack of Go's runtime to the goroutine's, on synthetic memory: followed
 * and rejected values. */
#include "support/test.h"

#include <string.h>

#include "base/cleanup.h"
#include "lib/table_host.h"
#include "lib/walk.bpf.h"
#include "support/hostspace.h"
#include "unwind/rows.h"
#include "unwindtable/table.h"

DEFINE_CLEANUP(struct table *, table_freep, table_free);

/* The program: functions of 256 bytes, one after the other; its data has the bias of the same
 * mapping. */
#define BIAS   0x7f0000000000ull
#define TEXT   0x10000ull
#define MEMORY (BIAS + 0x100000)
#define WORDS  1024
#define AT(w)  (MEMORY + 8ull * (w))

enum function { LEAF, BY_TLS, BY_TLS_AT, BY_REGISTER, BARE, CALLER, START, N_FUNCTIONS };

#define IN(f) (BIAS + TEXT + 256ull * (f) + 8)

/* Where things are, in words. */
enum {
	W_SYSTEM = 10, /* sp where the walk begins */
	W_TLS = 90,
	W_OFFSET = 95, /* offset of the word at W_TLS, for a library */
	W_G = 100,
	W_M = 200,
	W_CURG = 300,
	W_STACK = 400, /* the goroutine's, up to the end */
};

#define CURG   23 /* m.curg, in words */
#define G(off) (W_G + (off) / 8)
#define C(off) (W_CURG + (off) / 8)

#define SYSTEM_RULE(reg, off)                                                                 \
	{                                                                                     \
		.cfa = UNWIND_CFA_GO_CURG, .cfa_reg = (reg), .cfa_off = (off),                \
		.cfa_add = CURG << UNWIND_GO_CURG | 2, .fp = UNWIND_FP_AT_CFA, .fp_off = -16, \
		.ra_off = -8                                                                  \
	}

static const struct unwind_rule rules[N_FUNCTIONS] = {
	[LEAF] = {.cfa = UNWIND_CFA_REG, .cfa_reg = REGS_UNWIND_SP, .cfa_off = 8, .ra_off = -8},
	[BY_TLS] = SYSTEM_RULE(UNWIND_GO_TLS, -8),
	[BY_TLS_AT] = SYSTEM_RULE(UNWIND_GO_TLS_AT, (int32_t)(AT(W_OFFSET) - BIAS)),
	[BY_REGISTER] = SYSTEM_RULE(1, 0),
	[BARE] = {.cfa = UNWIND_CFA_GO_CURG,
		  .cfa_reg = UNWIND_GO_TLS,
		  .cfa_off = -8,
		  .cfa_add = CURG << UNWIND_GO_CURG | 1,
		  .fp = UNWIND_FP_GO_CURG,
		  .fp_off = 104,
		  .ra_off = -8},
	/* by the frame pointer, so a wrong frame pointer shows */
	[CALLER] = {.cfa = UNWIND_CFA_REG, .cfa_reg = REGS_UNWIND_FP, .cfa_off = 8, .ra_off = -8},
	[START] = {.cfa = UNWIND_CFA_STOP},
};

static uint64_t memory[WORDS];

WINDOW_INLINE int window_read(const struct table_space *space, void *to, __u64 n, __u64 address)
{
	const uint64_t off = address - MEMORY;

	(void)space;
	if (off >= sizeof(memory) || n > sizeof(memory) - off)
		return -1;
	memcpy(to, (const char *)memory + off, n);
	return 0;
}

WALK_INLINE __u64 walk_thread_pointer(const struct table_space *space)
{
	(void)space;
	return AT(W_TLS + 1);
}

WALK_INLINE const struct table_exe *walk_exe(const struct table_space *space, __u32 exe)
{
	return hostspace_exe((const struct hostspace *)space, exe);
}

WALK_INLINE void walk_used(const struct table_space *space, __u32 exe, __u64 n_frames)
{
	hostspace_used((struct hostspace *)space, exe, n_frames);
}

static void make_space(struct hostspace *s)
{
	_cleanup_(rows_freep) struct rows *rows = NULL;
	_cleanup_(table_freep) struct table *table = NULL;
	struct process_mapping mapping = {
		.start_pages = (BIAS + TEXT) >> PROCESS_PAGE_SHIFT,
		.n_pages = 16,
		.bias_pages = BIAS >> PROCESS_PAGE_SHIFT,
	};
	int exe;

	assert_int_equal(rows_new(TEXT, TEXT + 0x10000, &rows), 0);
	for (uint64_t f = 0; f < N_FUNCTIONS; f++) {
		const uint64_t start = TEXT + 256 * f;

		assert_int_equal(rows_begin(rows, ROWS_GO, start, start + 256), 0);
		assert_int_equal(rows_add(rows, start, &rules[f]), 0);
		assert_int_equal(rows_end(rows), 0);
	}
	assert_int_equal(rows_finish(rows), 0);
	assert_int_equal(table_pack(rows, &table), 0);
	assert_int_equal(hostspace_init(s, 1), 0);
	exe = hostspace_add_table(s, table);
	assert_true(exe > 0);
	mapping.exe = (uint16_t)exe;
	hostspace_map(s, 0, &mapping);
}

/* Valid memory, with a system stack whose first return address leads to @f. */
static void make_memory(enum function f)
{
	memset(memory, 0, sizeof(memory));
	memory[W_SYSTEM] = IN(f);
	memory[W_TLS] = AT(W_G);
	memory[W_OFFSET] = (uint64_t)-8;
	memory[G(UNWIND_GO_M)] = AT(W_M);
	memory[W_M + CURG] = AT(W_CURG);
	memory[C(UNWIND_GO_LO)] = AT(W_STACK);
	memory[C(UNWIND_GO_HI)] = AT(WORDS);
	memory[C(UNWIND_GO_M)] = AT(W_M);
	memory[C(UNWIND_GO_SP)] = AT(W_STACK + 50);
	memory[C(104)] = AT(W_STACK + 70);
	memory[W_STACK + 50] = f == BARE ? IN(CALLER) : AT(W_STACK + 60);
	memory[W_STACK + 51] = IN(CALLER);
	memory[W_STACK + 60] = IN(START);
	memory[W_STACK + 70] = IN(START);
}

struct go_row {
	const char *name;
	enum function f;
	struct {
		uint64_t word;
		uint64_t value;
	} changed[2];
	enum sample_end end;
};

#define NOT_BELIEVED SAMPLE_END_NO_GOROUTINE

static const struct go_row go_rows[] = {
	{"by thread-local storage", BY_TLS, {{0}}, SAMPLE_END_COMPLETE},
	{"by thread-local storage of a library", BY_TLS_AT, {{0}}, SAMPLE_END_COMPLETE},
	{"by a register", BY_REGISTER, {{0}}, SAMPLE_END_COMPLETE},
	{"the frame pointer, too, says the goroutine", BARE, {{0}}, SAMPLE_END_COMPLETE},
	{"g is the goroutine already", BY_TLS, {{W_TLS, AT(W_CURG)}}, SAMPLE_END_COMPLETE},
	{"at the lower end of its stack",
	 BY_TLS,
	 {{C(UNWIND_GO_LO), AT(W_STACK + 50)}},
	 SAMPLE_END_COMPLETE},
	{"below it", BY_TLS, {{C(UNWIND_GO_LO), AT(W_STACK + 51)}}, NOT_BELIEVED},
	{"at the upper end", BY_TLS, {{C(UNWIND_GO_HI), AT(W_STACK + 51)}}, SAMPLE_END_COMPLETE},
	{"above it", BY_TLS, {{C(UNWIND_GO_HI), AT(W_STACK + 50)}}, NOT_BELIEVED},
	{"not there", BY_TLS, {{C(UNWIND_GO_SP), 0}}, NOT_BELIEVED},
	{"no multiple of 8", BY_TLS, {{C(UNWIND_GO_SP), AT(W_STACK + 50) + 4}}, SAMPLE_END_SP_ODD},
	{"another thread's goroutine", BY_TLS, {{C(UNWIND_GO_M), AT(W_M + 1)}}, NOT_BELIEVED},
	{"no g", BY_TLS, {{W_TLS, 0}}, NOT_BELIEVED},
	{"an odd g", BY_TLS, {{W_TLS, AT(W_G) + 1}}, NOT_BELIEVED},
	{"no m", BY_TLS, {{G(UNWIND_GO_M), 0}}, NOT_BELIEVED},
	{"no goroutine", BY_TLS, {{W_M + CURG, 0}}, NOT_BELIEVED},
	{"a goroutine at the end of memory", BY_TLS, {{W_M + CURG, AT(WORDS - 7)}}, NOT_BELIEVED},
	{"no thread-local storage where the library's offset leads",
	 BY_TLS_AT,
	 {{W_OFFSET, 1ull << 40}},
	 NOT_BELIEVED},
	{"an odd offset", BY_TLS_AT, {{W_OFFSET, 4}}, NOT_BELIEVED},
};

/* The walk goes on where the goroutine says, and nowhere else. */
static void test_go_row(const struct go_row *row, const struct hostspace *s)
{
	__u64 frames[WALK_SLOTS];
	struct regs regs = {0};
	struct window win;
	struct walk w = {0};
	const struct walk_ctx c = {.w = &w,
				   .regs = &regs,
				   .win = &win,
				   .frames = frames,
				   .space = &s->space,
				   .mode = SETTINGS_UNWIND_AUTO};

	row_begin(row->name);
	make_memory(row->f);
	for (size_t i = 0; i < array_size(row->changed) && row->changed[i].word; i++)
		memory[row->changed[i].word] = row->changed[i].value;
#ifdef __x86_64__
	regs.ip = IN(LEAF), regs.sp = AT(W_SYSTEM), regs.dx = AT(W_G), regs.orig_ax = (__u64)-1;
#else
	regs.pc = IN(LEAF), regs.sp = AT(W_SYSTEM), regs.x[1] = AT(W_G);
#endif
	walk_begin(&c, 0, s->n_mappings);
	for (int i = 0; i < WALK_PROGRAMS && w.end == WALK_ON; i++)
		walk_on(&c, NULL);
	assert_int_equal(w.end, row->end);
	assert_int_equal(frames[0], IN(LEAF));
	assert_int_equal(frames[1], IN(row->f));
	assert_int_equal(w.n, row->end == SAMPLE_END_COMPLETE ? 4 : 2);
	if (row->end == SAMPLE_END_COMPLETE) {
		assert_int_equal(frames[2], IN(CALLER));
		assert_int_equal(frames[3], IN(START));
	}
}

static void from_the_system_stack(void **state)
{
	struct hostspace s = {0};

	(void)state;
	make_space(&s);
	for (size_t i = 0; i < array_size(go_rows); i++)
		test_go_row(&go_rows[i], &s);
	hostspace_deinit(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(from_the_system_stack),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
