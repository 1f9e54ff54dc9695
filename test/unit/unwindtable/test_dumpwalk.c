// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <stdlib.h>
#include <string.h>

#include "support/allocfail.h"
#include "support/usertables.h"
#include "unwindtable/dumpwalk.h"

DEFINE_CLEANUP(struct usertables *, usertables_freep, usertables_free);
DEFINE_CLEANUP(struct dumpwalk *, dumpwalk_freep, dumpwalk_free);

/* Not at a page's start: copies begin where the stack pointer is. */
#define AT    0x7ffc00001238ull
#define FRAME (USERTABLES_FRAME / 8)

/* A stack of so many frames in all, then the outermost. */
struct walk_row {
	const char *name;
	size_t frames;
	size_t n_bytes; /* the copied bytes */
	size_t n_maps;
	enum settings_unwind mode;
	uint64_t leaf;
	uint64_t root; /* where the last frame's caller is */
	size_t want_n;
	uint32_t want_end;
	size_t want_missing;
};

#define CODE  (USERTABLES_CODE + 0x100)
#define ROOT  (USERTABLES_OUTERMOST + 0x10)
#define BARE  (USERTABLES_BARE + 0x100)
#define ANON  (USERTABLES_ANON + 0x100)
#define MAPS  USERTABLES_MAPS
#define DWARF SETTINGS_UNWIND_DWARF
#define AUTO  SETTINGS_UNWIND_AUTO

static const struct walk_row walk_rows[] = {
	{"whole", 10, 4096, MAPS, AUTO, CODE, ROOT, 11, SAMPLE_END_COMPLETE, 0},
	{"only the outermost", 0, 64, MAPS, AUTO, ROOT, ROOT, 1, SAMPLE_END_COMPLETE, 0},
	{"to the copy's last byte", 10, 10 * 32, MAPS, AUTO, CODE, ROOT, 11, SAMPLE_END_COMPLETE,
	 0},
	{"a word more than there is", 10, 10 * 32 - 8, MAPS, AUTO, CODE, ROOT, 10,
	 SAMPLE_END_UNREADABLE, 0},
	{"all that a copy can have", STACK_DUMP_BYTES / 32, STACK_DUMP_BYTES, MAPS, AUTO, CODE,
	 ROOT, 512, SAMPLE_END_MAX_FRAMES, 0},
	{"nothing was copied", 10, 0, MAPS, AUTO, CODE, ROOT, 1, SAMPLE_END_UNREADABLE, 0},
	{"nothing is known", 10, 4096, 0, AUTO, CODE, ROOT, 1, SAMPLE_END_NO_PROCESS, 0},
	{"outside of all that is mapped", 10, 4096, MAPS, AUTO, 0x4000000, ROOT, 1,
	 SAMPLE_END_NO_MAPPING, 0},
	{"begins without a table", 10, 4096, MAPS, AUTO, BARE, ROOT, 1, SAMPLE_END_NO_TABLE, 1},
	{"comes upon an image without", 10, 4096, MAPS, AUTO, CODE, BARE, 11, SAMPLE_END_NO_TABLE,
	 1},
	{"comes upon code without an image", 10, 4096, MAPS, AUTO, CODE, ANON, 11,
	 SAMPLE_END_NO_ROW, 0},
	{"by tables alone", 10, 4096, MAPS, DWARF, CODE, ROOT, 11, SAMPLE_END_COMPLETE, 0},
};

/* Frames one above the other; all return addresses are in the same function. */
static void fill(uint64_t *stack, size_t n_words, const struct walk_row *row)
{
	memset(stack, 0, n_words * sizeof(*stack));
	for (size_t i = 0; i < row->frames && (i + 1) * FRAME <= n_words; i++)
		stack[(i + 1) * FRAME - 1] = i + 1 < row->frames ? CODE : row->root;
}

static void test_walk(void **state)
{
	_cleanup_(usertables_freep) struct usertables *u = usertables_new();
	_cleanup_(dumpwalk_freep) struct dumpwalk *cw = NULL;
	static uint64_t stack[STACK_DUMP_BYTES / 8];

	(void)state;
	assert_non_null(u);
	assert_int_equal(dumpwalk_new(usertables_tables(u), &cw), 0);
	for (size_t i = 0; i < array_size(walk_rows); i++) {
		const struct walk_row *row = &walk_rows[i];
		const struct regs regs = usertables_regs(row->leaf, AT, 1);
		/* of exact size, so ASan sees reads beyond the end */
		_cleanup_(freep) uint8_t *dump = malloc(row->n_bytes ? row->n_bytes : 1);
		struct dumpwalk_from from = {.regs = &regs,
					     .at = AT,
					     .bytes = dump,
					     .n_bytes = row->n_bytes,
					     .maps = usertables_maps(u),
					     .n_maps = row->n_maps,
					     .mode = row->mode};
		struct dumpwalk_stack got;

		row_begin(row->name);
		assert_non_null(dump);
		fill(stack, array_size(stack), row);
		memcpy(dump, stack, row->n_bytes);
		dumpwalk_walk(cw, &from, &got);
		assert_int_equal(got.end, row->want_end);
		assert_int_equal(got.n, row->want_n);
		assert_int_equal(got.n_rows, row->want_n - 1);
		assert_int_equal(got.words[0], row->leaf);
		assert_int_equal(got.n_missing, row->want_missing);
		if (row->want_missing)
			assert_int_equal(got.missing[0], usertables_bare(u));
		if (row->want_end == SAMPLE_END_COMPLETE && row->frames)
			assert_int_equal(got.words[got.n - 1], ROOT);
	}
	dumpwalk_rest(cw);
}

/* The frame pointers lead over absent pages. */
static void test_hole(void **state)
{
	static const struct {
		const char *name;
		uint16_t piece; /* of the second part */
		uint64_t next;	/* frame, from the begin of that piece */
		size_t n_bytes;
		size_t want_n;
		uint32_t want_end;
	} rows[] = {
		{"no hole", 1, 64, 2048, 3, SAMPLE_END_COMPLETE},
		{"a hole", 40, 64, 2048, 3, SAMPLE_END_COMPLETE},
		{"at the piece's begin", 40, 0, 2048, 3, SAMPLE_END_COMPLETE},
		{"at its last words", 40, 1008, 2048, 3, SAMPLE_END_COMPLETE},
		{"over its end", 40, 1016, 2048, 2, SAMPLE_END_UNREADABLE},
		{"in the hole", 40, -16ull, 2048, 2, SAMPLE_END_UNREADABLE},
		{"the second part is cut", 40, 64, 1024 + 72, 2, SAMPLE_END_UNREADABLE},
		{"there is no second part", 40, 64, 1024, 2, SAMPLE_END_UNREADABLE},
	};
	_cleanup_(usertables_freep) struct usertables *u = usertables_new();
	_cleanup_(dumpwalk_freep) struct dumpwalk *cw = NULL;
	const uint64_t at = AT & ~(STACK_DUMP_READ_BYTES - 1ull);

	(void)state;
	assert_non_null(u);
	assert_int_equal(dumpwalk_new(usertables_tables(u), &cw), 0);
	for (size_t i = 0; i < array_size(rows); i++) {
		const uint16_t pieces[] = {0, rows[i].piece};
		const uint64_t second = at + (uint64_t)rows[i].piece * STACK_DUMP_READ_BYTES;
		const struct regs regs = usertables_regs(ANON, at + 16, at + 32);
		uint64_t stack[2 * STACK_DUMP_READ_BYTES / 8] = {0};
		struct dumpwalk_from from = {.regs = &regs,
					     .at = at,
					     .bytes = (const uint8_t *)stack,
					     .n_bytes = rows[i].n_bytes,
					     .pieces = pieces,
					     .maps = usertables_maps(u),
					     .n_maps = MAPS,
					     .mode = SETTINGS_UNWIND_FP};
		struct dumpwalk_stack got;

		row_begin(rows[i].name);
		stack[4] = second + rows[i].next;
		stack[5] = CODE;
		if (rows[i].next < STACK_DUMP_READ_BYTES - 8)
			stack[(STACK_DUMP_READ_BYTES + rows[i].next) / 8 + 1] = CODE + 1;
		dumpwalk_walk(cw, &from, &got);
		assert_int_equal(got.end, rows[i].want_end);
		assert_int_equal(got.n, rows[i].want_n);
	}
}

/* A stack beyond the largest dump is reported as such: one that ends with a full part. */
static void test_dump_ends(void **state)
{
	static const struct {
		const char *name;
		size_t n_bytes;
		uint32_t want;
	} rows[] = {
		{"a part", STACK_DUMP_BYTES, SAMPLE_END_DUMP},
		{"two parts", 2 * STACK_DUMP_BYTES, SAMPLE_END_DUMP},
		{"a part and less", 2 * STACK_DUMP_BYTES - STACK_DUMP_READ_BYTES,
		 SAMPLE_END_UNREADABLE},
	};
	_cleanup_(usertables_freep) struct usertables *u = usertables_new();
	_cleanup_(dumpwalk_freep) struct dumpwalk *cw = NULL;
	static uint64_t stack[2 * STACK_DUMP_BYTES / 8];
	const struct walk_row endless = {.frames = SIZE_MAX};

	(void)state;
	assert_non_null(u);
	assert_int_equal(dumpwalk_new(usertables_tables(u), &cw), 0);
	fill(stack, array_size(stack), &endless);
	for (size_t i = 0; i < array_size(rows); i++) {
		const struct regs regs = usertables_regs(CODE, AT + rows[i].n_bytes - 64, 1);
		const struct dumpwalk_from from = {.regs = &regs,
						   .at = AT,
						   .bytes = (const uint8_t *)stack,
						   .n_bytes = rows[i].n_bytes,
						   .maps = usertables_maps(u),
						   .n_maps = USERTABLES_MAPS,
						   .mode = SETTINGS_UNWIND_AUTO};
		struct dumpwalk_stack got;

		row_begin(rows[i].name);
		dumpwalk_walk(cw, &from, &got);
		assert_int_equal(got.end, rows[i].want);
		assert_int_equal(got.n, 3);
	}
	/* frames are counted like the kernel's: three found, none for the missing one */
	assert_int_equal(usertables_frames(u), 3 * array_size(rows));
}

static int make(void *ctx)
{
	_cleanup_(dumpwalk_freep) struct dumpwalk *cw = NULL;

	return dumpwalk_new(ctx, &cw);
}

static void test_no_memory(void **state)
{
	_cleanup_(usertables_freep) struct usertables *u = usertables_new();

	(void)state;
	assert_non_null(u);
	assert_true(allocfail_survive(make, usertables_tables(u)) > 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_walk),
		cmocka_unit_test(test_hole),
		cmocka_unit_test(test_dump_ends),
		cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
