// SPDX-License-Identifier: Apache-2.0
/*
 * Rows of Go code: from a small handmade table, damaged in places; from functions that end or
 * change stacks, on both machines; and of whole programs, compared with the .debug_frame of Go's
 * linker.
 */
#include "support/test.h"

#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "elf/elffile.h"
#include "gofile/gocode.h"
#include "support/allocfail.h"
#include "support/gofixture.h"
#include "support/gotable.h"
#include "gofile/gopcsp.h"
#include "unwind/cfi.h"
#include "unwind/ehframe.h"
#include "unwind/gorows.h"
#include "unwind/rows.h"
#include "unwind/rowtext.h"

#define TEXT	 (GOTABLE_BASE + 0x100u)
#define ROWS_IN	 20
#define TEXT_END (TEXT + 0x100u)

DEFINE_CLEANUP(struct gorows *, gorows_freep, gorows_free);

/* An expected row. */
struct want {
	uint32_t at; /* from TEXT */
	const char *rule;
};

static void check_rows(struct rows *rows, enum cfi_machine machine, const struct want *want)
{
	size_t n = 0;

	assert_int_equal(rows_finish(rows), 0);
	for (; n < ROWS_IN && want[n].rule; n++) {
		char text[ROWTEXT_MAX];
		struct row row;

		assert_true(n < rows_count(rows));
		row = rows_at(rows, n);
		rowtext_print(machine, rows_rule(rows, row.rule), text);
		if (row.vaddr != TEXT + want[n].at || strcmp(text, want[n].rule) != 0)
			fail_msg("row %zu: %#llx %s", n, (unsigned long long)row.vaddr - TEXT,
				 text);
	}
	assert_int_equal(rows_count(rows), n);
}

/* ---------------------------------------------------------------- a small file */

static const struct want whole_file[ROWS_IN] = {
	{0x00, "cfa=rsp+8 fp=same ra=cfa-8"},	 {0x05, "cfa=rsp+16 fp=cfa-16 ra=cfa-8"},
	{0x0c, "cfa=rsp+32 fp=cfa-16 ra=cfa-8"}, {0x38, "cfa=rsp+16 fp=cfa-16 ra=cfa-8"},
	{0x39, "cfa=rsp+8 fp=same ra=cfa-8"},	 {0x80, "gap"},
};

static const struct want without_outer[ROWS_IN] = {
	{0x40, "cfa=rsp+8 fp=same ra=cfa-8"},
	{0x80, "gap"},
};

static const struct want without_generic[ROWS_IN] = {
	{0x00, "cfa=rsp+8 fp=same ra=cfa-8"},	 {0x05, "cfa=rsp+16 fp=cfa-16 ra=cfa-8"},
	{0x0c, "cfa=rsp+32 fp=cfa-16 ra=cfa-8"}, {0x38, "cfa=rsp+16 fp=cfa-16 ra=cfa-8"},
	{0x39, "cfa=rsp+8 fp=same ra=cfa-8"},	 {0x40, "gap"},
};

static const struct want ends_at_outer[ROWS_IN] = {
	{0x00, "stop"},
	{0x40, "cfa=rsp+8 fp=same ra=cfa-8"},
	{0x80, "gap"},
};

static const struct want unmarked[ROWS_IN] = {
	{0x00, "cfa=rsp+8 fp=same ra=cfa-8"},  {0x05, "cfa=rsp+16 fp=same ra=cfa-8"},
	{0x0c, "cfa=rsp+32 fp=same ra=cfa-8"}, {0x38, "cfa=rsp+16 fp=same ra=cfa-8"},
	{0x39, "cfa=rsp+8 fp=same ra=cfa-8"},  {0x80, "gap"},
};

static const struct want outer_longer[ROWS_IN] = {
	{0x00, "cfa=rsp+8 fp=same ra=cfa-8"},	 {0x05, "cfa=rsp+16 fp=cfa-16 ra=cfa-8"},
	{0x0c, "cfa=rsp+32 fp=cfa-16 ra=cfa-8"}, {0x38, "cfa=rsp+16 fp=cfa-16 ra=cfa-8"},
	{0x39, "cfa=rsp+8 fp=same ra=cfa-8"},	 {0x90, "gap"},
};

/* A change of the table, and the expected effect. */
enum place { NOWHERE, STACK, FUNC0, FUNC0_STACK, FUNC0_FLAGS, FUNC1, FUNC1_STACK, FTAB, CODE };

struct damage {
	const char *name;
	enum place place;
	size_t off; /* from the place */
	uint64_t value;
	size_t width;
	int outcome;
	uint64_t n_odd;
	const struct want *rows;
};

static const struct damage damages[] = {
	{"none", NOWHERE, 0, 0, 0, 0, 0, whole_file},
	{"no frame pointer is saved", CODE, 4, 0x90, 1, 0, 0, unmarked},
	{"frame pointer by another instruction", CODE, 7, 0xe4, 1, 0, 0, unmarked},
	{"nothing calls it", FUNC0_FLAGS, 0, 1, 1, 0, 0, ends_at_outer},
	{"steps that do not end", STACK, 0, 0xffffffffffffffff, 8, 0, 1, without_outer},
	{"first step goes nowhere", STACK, 1, 0, 1, 0, 1, without_outer},
	{"no table", FUNC0_STACK, 0, 0, 4, 0, 0, without_outer},
	{"table outside", FUNC0_STACK, 0, 0x7fffffff, 4, 0, 1, without_outer},
	{"table right behind the last", FUNC1_STACK, 0, 0x10000, 4, 0, 1, without_generic},
	{"record of another function", FUNC0, 0, 0x40, 4, 0, 1, without_outer},
	{"a function of no length", FUNC1, 0, 0x41, 4, 0, 1, without_generic},
	{"entries go down", FTAB, 1, 0x90, 4, 0, 1, outer_longer},
};

static size_t place_of(const struct gotable *t, enum place place, unsigned int minor)
{
	size_t stack = minor < 18 ? 20 : 16;

	switch (place) {
	case STACK:
		return t->stack;
	case FUNC0:
		return t->func[0];
	case FUNC0_STACK:
		return t->func[0] + stack;
	case FUNC0_FLAGS:
		return t->func[0] + t->flags;
	case FUNC1:
		return t->func[1];
	case FUNC1_STACK:
		return t->func[1] + stack;
	case FTAB:
		return t->funcs;
	default:
		return t->text;
	}
}

static void test_damage(const struct damage *d, unsigned int minor)
{
	_cleanup_(elffile_freep) struct elffile *file = NULL;
	_cleanup_(rows_freep) struct rows *rows = NULL;
	const struct gotable_opts opts = {.minor = minor};
	struct gorows_stats stats;
	struct gotable t;
	size_t off = d->off;

	gotable_build(&opts, &t);
	if (d->place == FTAB)
		off *= minor < 18 ? 16 : 8;
	if (d->width)
		gotable_put(&t, place_of(&t, d->place, minor) + off,
			    d->value + (d->place == FTAB && minor < 18 ? TEXT : 0), d->width);
	assert_int_equal(elffile_open_memory(t.data, t.n, &file), 0);
	assert_int_equal(rows_new(TEXT, TEXT_END, &rows), 0);
	assert_int_equal(gorows_add_file(file, rows, &stats), d->outcome);
	assert_int_equal(stats.n_funcs, 3);
	assert_int_equal(stats.n_odd, d->n_odd);
	check_rows(rows, CFI_X86_64, d->rows);
}

static void damaged_tables(void **state)
{
	static const unsigned int minors[] = {16, 18, 20, 26, 27};

	for (size_t i = 0; i < array_size(minors); i++)
		for (size_t j = 0; j < array_size(damages); j++) {
			print_message("row: 1.%u %s\n", minors[i], damages[j].name);
			test_damage(&damages[j], minors[i]);
		}
}

static int build_rows(void *ctx)
{
	_cleanup_(elffile_freep) struct elffile *file = NULL;
	_cleanup_(rows_freep) struct rows *rows = NULL;
	const struct gotable *t = ctx;
	int r = elffile_open_memory(t->data, t->n, &file);

	if (!r)
		r = rows_new(TEXT, TEXT_END, &rows);
	if (!r)
		r = gorows_add_file(file, rows, NULL);
	return r ? r : rows_finish(rows);
}

static void memory_runs_out(void **state)
{
	const struct gotable_opts opts = {.minor = 26};
	struct gotable t;

	gotable_build(&opts, &t);
	allocfail_survive(build_rows, &t);
}

/* ---------------------------------------------------------------- functions */

struct function {
	const char *name; /* of the row */
	struct gocode_func func;
	struct gocode_step steps[6];
	const char *code; /* of 0x40 bytes */
	size_t n_code;
	uint16_t machine;
	struct want want[8];
};

/* The code of systemstack after the call. */
#define CURG_DIRECT                                                                        \
	"\x64\x48\x8b\x04\x25\xf8\xff\xff\xff\x48\x8b\x58\x30\x48\x8b\x83\xb8\x00\x00\x00" \
	"\x64\x48\x89\x04\x25\xf8\xff\xff\xff\x48\x8b\x60\x38"
#define CURG_RCX                                                                       \
	"\x64\x48\x8b\x01\x48\x8b\x58\x30\x48\x8b\x43\x50\x64\x48\x89\x01\x48\x8b\x60" \
	"\x38"

#define X86	 EM_X86_64
#define ARM	 EM_AARCH64
#define CODE_(s) s, sizeof(s) - 1

static const struct function functions[] = {
	{"frame of Go 1.20",
	 {.name = ""},
	 {{0, 0}, {4, 24}, {0x20, 0}},
	 CODE_("\x48\x83\xec\x18\x48\x89\x6c\x24\x10\x48\x8d\x6c\x24\x10"),
	 X86,
	 {{0, "cfa=rsp+8 fp=same ra=cfa-8"},
	  {4, "cfa=rsp+32 fp=same ra=cfa-8"},
	  {9, "cfa=rsp+32 fp=cfa-16 ra=cfa-8"},
	  {0x20, "cfa=rsp+8 fp=same ra=cfa-8"},
	  {0x40, "gap"}}},
	{"goes on with another stack",
	 {.name = "runtime.systemstack", .flags = GOCODE_SP_WRITE},
	 {{0, 0}, {1, 8}, {0x20, 0}},
	 CODE_("\x55\x48\x89\xe5"),
	 X86,
	 {{0, "cfa=rsp+8 fp=same ra=cfa-8"},
	  {1, "cfa=rsp+16 fp=cfa-16 ra=cfa-8"},
	  {4, "cfa=rbp+16 fp=cfa-16 ra=cfa-8 switch"},
	  {0x20, "cfa=rsp+8 fp=same ra=cfa-8"},
	  {0x40, "gap"}}},
	{"the same in the old form, up to where it has its caller's frame pointer again",
	 {.name = "time.now", .flags = GOCODE_SP_WRITE},
	 {{0, 0}, {4, 24}, {0x17, 0}, {0x18, 24}},
	 CODE_("\x48\x83\xec\x18\x48\x89\x6c\x24\x10\x48\x8d\x6c\x24\x10"
	       "\x48\x8b\x6c\x24\x10\x48\x83\xc4\x18\xc3"),
	 X86,
	 {{0, "cfa=rsp+8 fp=same ra=cfa-8"},
	  {4, "cfa=rsp+32 fp=same ra=cfa-8"},
	  {9, "cfa=rsp+32 fp=cfa-16 ra=cfa-8"},
	  {0xe, "cfa=rbp+16 fp=cfa-16 ra=cfa-8 switch"},
	  {0x13, "cfa=rsp+32 fp=cfa-16 ra=cfa-8"},
	  {0x17, "cfa=rsp+8 fp=same ra=cfa-8"},
	  {0x18, "cfa=rbp+16 fp=cfa-16 ra=cfa-8 switch"},
	  {0x40, "gap"}}},
	{"goes on with the thread's stack and comes back",
	 {.name = "runtime.systemstack", .flags = GOCODE_SP_WRITE},
	 {{0, 0}, {1, 8}, {0x2c, 0}},
	 CODE_("\x55\x48\x89\xe5\x48\x8b\x62\x38\xff\xd7" CURG_DIRECT "\x5d\xc3"),
	 X86,
	 {{0, "cfa=rsp+8 fp=same ra=cfa-8"},
	  {1, "cfa=rsp+16 fp=cfa-16 ra=cfa-8"},
	  {8, "cfa=curg(tls-8,184)+16 fp=cfa-16 ra=cfa-8"},
	  {0x2b, "cfa=rsp+16 fp=cfa-16 ra=cfa-8"},
	  {0x2c, "cfa=rsp+8 fp=same ra=cfa-8"},
	  {0x40, "gap"}}},
	{"the same without a frame, position independent",
	 {.name = "runtime.systemstack", .flags = GOCODE_SP_WRITE},
	 {{0, 0}},
	 CODE_("\x48\x8b\x62\x38\xff\xd7\x48\xc7\xc1\xf0\xff\xff\xff" CURG_RCX),
	 X86,
	 {{0, "cfa=rsp+8 fp=same ra=cfa-8"},
	  {4, "cfa=curg(tls-16,80)+8 fp=curg+104 ra=cfa-8"},
	  {0x21, "cfa=rsp+8 fp=same ra=cfa-8"},
	  {0x40, "gap"}}},
	{"the same in a library",
	 {.name = "runtime.systemstack", .flags = GOCODE_SP_WRITE},
	 {{0, 0}},
	 CODE_("\x48\x8b\x62\x38\xff\xd7\x48\x8b\x0d\xf3\x0f\x00\x00" CURG_RCX),
	 X86,
	 {{0, "cfa=rsp+8 fp=same ra=cfa-8"},
	  {4, "cfa=curg(tlsat+4198656,80)+8 fp=curg+104 ra=cfa-8"},
	  {0x21, "cfa=rsp+8 fp=same ra=cfa-8"},
	  {0x40, "gap"}}},
	{"the same with an offset that does not fit",
	 {.name = "runtime.systemstack", .flags = GOCODE_SP_WRITE},
	 {{0, 0}},
	 CODE_("\x48\x8b\x62\x38\xff\xd7\x64\x48\x8b\x04\x25\xf8\xff\xff\xff"
	       "\x48\x8b\x58\x30\x48\x8b\x83\x00\x20\x00\x00"
	       "\x64\x48\x89\x04\x25\xf8\xff\xff\xff\x48\x8b\x60\x38"),
	 X86,
	 {{0, "cfa=rsp+8 fp=same ra=cfa-8"}, {4, "frame"}, {0x40, "gap"}}},
	{"the same by its name, in a release without marks",
	 {.name = "runtime.walltime1"},
	 {{0, 0}, {1, 8}},
	 CODE_("\x55\x48\x89\xe5"),
	 X86,
	 {{0, "cfa=rsp+8 fp=same ra=cfa-8"},
	  {1, "cfa=rsp+16 fp=cfa-16 ra=cfa-8"},
	  {4, "cfa=rbp+16 fp=cfa-16 ra=cfa-8 switch"},
	  {0x40, "gap"}}},
	{"another stack, but no frame",
	 {.name = "racecall", .flags = GOCODE_SP_WRITE},
	 {{0, 0}},
	 CODE_("\x90\x49\x89\xe4\x48\x89\xf4"), /* mov %rsp,%r12; mov %rsi,%rsp */
	 X86,
	 {{0, "cfa=rsp+8 fp=same ra=cfa-8"}, {7, "frame"}, {0x40, "gap"}}},
	{"leaves the goroutine",
	 {.name = "runtime.mcall", .flags = GOCODE_SP_WRITE},
	 {{0, 0}, {1, 8}, {0x20, 16}},
	 CODE_("\x55\x48\x89\xe5\x90\x49\x8b\x66\x38"), /* mov 0x38(%r14),%rsp */
	 X86,
	 {{0, "cfa=rsp+8 fp=same ra=cfa-8"},
	  {1, "cfa=rsp+16 fp=cfa-16 ra=cfa-8"},
	  {9, "stop"},
	  {0x40, "gap"}}},
	{"calls C",
	 {.name = "runtime.asmcgocall", .flags = GOCODE_SP_WRITE},
	 {{0, 0}, {1, 8}},
	 CODE_("\x55\x48\x89\xe5\x48\x83\xec\x10\x48\x83\xe4\xf0\x48\x89\x7c\x24\x08\x48\x8b\x7f"
	       "\x08"
	       "\x48\x29\xd7\x48\x89\x3c\x24\x48\x89\xdf\x48\x89\xd9\xff\xd0\x48\x89\xf4"),
	 X86,
	 {{0, "cfa=rsp+8 fp=same ra=cfa-8"},
	  {1, "cfa=rsp+16 fp=cfa-16 ra=cfa-8"},
	  {4, "cfa=rdx+16 fp=cfa-16 ra=cfa-8 switch"},
	  {0x1c, "cfa=cgo(8,0)+16 fp=cfa-16 ra=cfa-8"},
	  {0x27, "cfa=rbp+16 fp=cfa-16 ra=cfa-8 switch"},
	  {0x40, "gap"}}},
	{"the same without a frame, and from the thread's stack",
	 {.name = "runtime.asmcgocall"},
	 {{0, 0}},
	 CODE_("\x48\x83\xec\x40\x48\x83\xe4\xf0\x48\x89\x7c\x24\x30\x48\x8b\x7f\x08\x48\x29\xd7"
	       "\x48\x89\x7c\x24\x28\x48\x89\xf4"
	       "\x48\x83\xec\x40\x48\x83\xe4\xf0\x48\xc7\x44\x24\x30\x00\x00\x00\x00\x48\x89\x54"
	       "\x24\x28"
	       "\xff\xd0\x48\x89\xf4"),
	 X86,
	 {{0, "cfa=rdx+8 fp=same ra=cfa-8 switch"},
	  {0x19, "cfa=cgo(48,40)+8 fp=same ra=cfa-8"},
	  {0x1c, "cfa=rdx+8 fp=same ra=cfa-8 switch"},
	  {0x32, "cfa=cgo(48,40)+8 fp=same ra=cfa-8"},
	  {0x37, "cfa=rsp+8 fp=same ra=cfa-8"},
	  {0x40, "gap"}}},
	{"calls C in a way that is not known",
	 {.name = "runtime.asmcgocall", .flags = GOCODE_SP_WRITE},
	 {{0, 0}, {1, 8}},
	 CODE_("\x55\x48\x89\xe5\x48\x89\x7c\x24\x30"),
	 X86,
	 {{0, "cfa=rsp+8 fp=same ra=cfa-8"},
	  {1, "cfa=rsp+16 fp=cfa-16 ra=cfa-8"},
	  {4, "cfa=rbp+16 fp=cfa-16 ra=cfa-8 switch"},
	  {0x40, "gap"}}},
	{"a handler, which has a caller",
	 {.name = "runtime.sigtramp", .flags = GOCODE_TOP_FRAME},
	 {{0, 0}, {1, 8}},
	 CODE_("\x9c"),
	 X86,
	 {{0, "cfa=rsp+8 fp=same ra=cfa-8"}, {1, "cfa=rsp+16 fp=same ra=cfa-8"}, {0x40, "gap"}}},
	{"a handler's caller",
	 {.name = "runtime.sigreturn__sigaction", .flags = GOCODE_ASSEMBLY},
	 {{0, 0}},
	 CODE_(""),
	 X86,
	 {{-1u, "signal"}, {0x40, "gap"}}},
	{"no caller, and no table",
	 {.name = "runtime.goexit", .flags = GOCODE_TOP_FRAME},
	 {{0}},
	 CODE_(""),
	 X86,
	 {{0, "stop"}, {0x40, "gap"}}},
	{"vfork",
	 {.name = ""},
	 {{0, 0}, {2, -8}, {4, 0}},
	 CODE_(""),
	 X86,
	 {{0, "cfa=rsp+8 fp=same ra=cfa-8"},
	  {2, "cfa=rsp+0 fp=same ra=r12"},
	  {4, "cfa=rsp+8 fp=same ra=cfa-8"},
	  {0x40, "gap"}}},
	{"below its entry otherwise",
	 {.name = ""},
	 {{0, 0}, {2, -16}},
	 CODE_(""),
	 X86,
	 {{0, "cfa=rsp+8 fp=same ra=cfa-8"}, {2, "unsupported=cfa_offset"}, {0x40, "gap"}}},
	{"a small frame",
	 {.name = ""},
	 {{0, 0}, {4, 48}, {0x20, 0}},
	 CODE_("\xfe\x0f\x1d\xf8\xfd\x83\x1f\xf8\xfd\x23\x00\xd1"),
	 ARM,
	 {{0, "cfa=sp+0 fp=same ra=x30"},
	  {4, "cfa=sp+48 fp=same ra=cfa-48"},
	  {8, "cfa=sp+48 fp=cfa-56 ra=cfa-48"},
	  {0x20, "cfa=sp+0 fp=same ra=x30"},
	  {0x40, "gap"}}},
	{"a large frame",
	 {.name = ""},
	 {{0, 0}, {12, 0x200}},
	 CODE_("\xf4\x03\x08\xd1\x9d\xfa\x3f\xa9\x9f\x02\x00\x91\xfd\x23\x00\xd1"),
	 ARM,
	 {{0, "cfa=sp+0 fp=same ra=x30"}, {12, "cfa=sp+512 fp=cfa-520 ra=cfa-512"}, {0x40, "gap"}}},
	{"a large frame of Go 1.16",
	 {.name = ""},
	 {{0, 0}, {12, 0x120}},
	 CODE_("\xfb\x83\x04\xd1\x7e\x03\x00\xf9\x7f\x03\x00\x91\xfd\x83\x1f\xf8\xfd\x23\x00\xd1"),
	 ARM,
	 {{0, "cfa=sp+0 fp=same ra=x30"},
	  {12, "cfa=sp+288 fp=same ra=cfa-288"},
	  {16, "cfa=sp+288 fp=cfa-296 ra=cfa-288"},
	  {0x40, "gap"}}},
	{"room that assembly makes, return address in its register",
	 {.name = ""},
	 {{0, 0}, {4, 16}},
	 CODE_("\xff\x43\x00\xd1\x1f\x20\x03\xd5\x1f\x20\x03\xd5"),
	 ARM,
	 {{0, "cfa=sp+0 fp=same ra=x30"}, {4, "cfa=sp+16 fp=same ra=x30"}, {0x40, "gap"}}},
	{"a frame that a rule cannot say",
	 {.name = ""},
	 {{0, 0}, {12, 0x10000}},
	 CODE_("\xf4\x03\x08\xd1\x9d\xfa\x3f\xa9\x9f\x02\x00\x91\xfd\x23\x00\xd1"),
	 ARM,
	 {{0, "cfa=sp+0 fp=same ra=x30"}, {12, "unsupported=ra_offset"}, {0x40, "gap"}}},
	{"another stack",
	 {.name = "runtime.systemstack", .flags = GOCODE_SP_WRITE},
	 {{0, 0}, {4, 16}, {0x20, 0}},
	 CODE_("\xfe\x0f\x1f\xf8\xfd\x83\x1f\xf8\xfd\x23\x00\xd1"),
	 ARM,
	 {{0, "cfa=sp+0 fp=same ra=x30"},
	  {4, "cfa=sp+16 fp=same ra=cfa-16"},
	  {8, "cfa=sp+16 fp=cfa-24 ra=cfa-16"},
	  {12, "cfa=x29+24 fp=cfa-24 ra=cfa-16 switch"},
	  {0x1c, "cfa=sp+16 fp=cfa-24 ra=cfa-16"},
	  {0x20, "cfa=sp+0 fp=same ra=x30"},
	  {0x40, "gap"}}},
	{"goes on with the thread's stack and comes back",
	 {.name = "runtime.systemstack", .flags = GOCODE_SP_WRITE},
	 {{0, 0}, {4, 16}},
	 CODE_("\xfe\x0f\x1f\xf8\xfd\x83\x1f\xf8\xfd\x23\x00\xd1\x7f\x00\x00\x91\x60\x00\x3f\xd6"
	       "\x83\x1b\x40\xf9\x7c\x5c\x40\xf9\x01\x00\x00\x94\x80\x1f\x40\xf9"
	       "\x1f\x00\x00\x91"),
	 ARM,
	 {{0, "cfa=sp+0 fp=same ra=x30"},
	  {4, "cfa=sp+16 fp=same ra=cfa-16"},
	  {8, "cfa=sp+16 fp=cfa-24 ra=cfa-16"},
	  {16, "cfa=curg(x28+0,184)+16 fp=cfa-24 ra=cfa-16"},
	  {40, "cfa=sp+16 fp=cfa-24 ra=cfa-16"},
	  {0x40, "gap"}}},
	{"calls C",
	 {.name = "runtime.asmcgocall", .flags = GOCODE_SP_WRITE},
	 {{0, 0}, {4, 16}},
	 CODE_("\xfe\x0f\x1f\xf8\xfd\x83\x1f\xf8\xfd\x23\x00\xd1\x20\x00\x3f\xd6"),
	 ARM,
	 {{0, "cfa=sp+0 fp=same ra=x30"},
	  {4, "cfa=sp+16 fp=same ra=cfa-16"},
	  {8, "cfa=sp+16 fp=cfa-24 ra=cfa-16"},
	  {12, "cfa=cgo(0,8)+16 fp=cfa-24 ra=cfa-16"},
	  {16, "cfa=x29+24 fp=cfa-24 ra=cfa-16 switch"},
	  {0x40, "gap"}}},
	{"entered by a signal handler",
	 {.name = "runtime.asyncPreempt", .flags = GOCODE_ASSEMBLY},
	 {{0, 0}, {4, 16}},
	 CODE_("\xfe\x0f\x1f\xf8\xfd\x83\x1f\xf8\xfd\x23\x00\xd1"),
	 ARM,
	 {{0, "cfa=sp+16 fp=same ra=x30"},
	  {4, "cfa=sp+32 fp=same ra=cfa-32"},
	  {8, "cfa=sp+32 fp=cfa-40 ra=cfa-32"},
	  {0x40, "gap"}}},
	{"leaves the goroutine",
	 {.name = "runtime.mcall", .flags = GOCODE_SP_WRITE},
	 {{0, 0}, {0x20, 16}},
	 CODE_("\x1f\x20\x03\xd5\x1f\x00\x00\x91"), /* nop; mov sp, x0 */
	 ARM,
	 {{0, "cfa=sp+0 fp=same ra=x30"}, {8, "stop"}, {0x40, "gap"}}},
};

/* A file with @f's code at TEXT. */
static void open_code(const struct function *f, struct gotable *t, struct elffile **ret)
{
	const struct gotable_opts opts = {.minor = 26};

	gotable_build(&opts, t);
	gotable_put(t, offsetof(Elf64_Ehdr, e_machine), f->machine, 2);
	memset(t->data + t->text, 0xcc, 0x80);
	memcpy(t->data + t->text, f->code, f->n_code);
	assert_int_equal(elffile_open_memory(t->data, t->n, ret), 0);
}

static void test_function(const struct function *f)
{
	_cleanup_(elffile_freep) struct elffile *file = NULL;
	_cleanup_(rows_freep) struct rows *rows = NULL;
	_cleanup_(gorows_freep) struct gorows *g = NULL;
	struct gocode_step steps[array_size(f->steps)];
	struct gocode_func func = f->func;
	struct gotable t;

	open_code(f, &t, &file);
	assert_int_equal(rows_new(TEXT - 0x10, TEXT_END, &rows), 0);
	assert_int_equal(gorows_new(file, rows, &g), 0);
	func.entry = TEXT;
	func.end = TEXT + 0x40;
	func.steps = steps;
	for (size_t i = 0; i < array_size(steps) && (i == 0 || f->steps[i].start); i++) {
		steps[i] = f->steps[i];
		steps[i].start += TEXT;
		func.n_steps = i + 1;
	}
	if (func.flags == GOCODE_TOP_FRAME && f->n_code == 0)
		func.n_steps = 0;
	assert_int_equal(gorows_add(g, &func), 0);
	check_rows(rows, f->machine == ARM ? CFI_ARM64 : CFI_X86_64, f->want);
}

static void special_functions(void **state)
{
	for (size_t i = 0; i < array_size(functions); i++) {
		print_message("row: %s: %s\n", functions[i].machine == ARM ? "arm64" : "x86",
			      functions[i].name);
		test_function(&functions[i]);
	}
}

/* ---------------------------------------------------------------- .debug_frame */

struct comparison {
	const struct rows *go;
	const struct rows *frame;
	uint64_t n_same;
	uint64_t n_special; /* the linker knows no better than the table */
	uint64_t n_curg;    /* rows of systemstack among these */
	uint64_t n_other;
	uint64_t framed_bytes;
	uint64_t fp_same_bytes; /* bytes among these without a saved frame pointer */
};

/* Changes stacks, or keeps the return address in a register: vfork, and up to Go 1.17 jmpdefer on
 * arm64, which have the address on the stack according to .debug_frame. */
static bool is_special(const struct unwind_rule *rule)
{
	return rule->cfa != UNWIND_CFA_REG || (rule->ra == UNWIND_RA_REG && rule->ra_off == 12) ||
	       (rule->ra == UNWIND_RA_REG && rule->cfa_off == 8);
}

/* Go marks sigtramp either as a signal frame, like sigtramp's caller, or as the end. */
static bool is_sigtramp(const struct unwind_rule *frame)
{
	return frame->cfa == UNWIND_CFA_STOP ||
	       (frame->cfa == UNWIND_CFA_UNSUPPORTED && frame->cfa_off == UNSUPPORTED_SIGNAL);
}

/* On arm64, with 16 bytes above, unknown to the linker. */
static bool is_injected(const struct unwind_rule *go, const struct unwind_rule *frame)
{
	return go->cfa_reg == UNWIND_ARM64_SP && go->cfa_off == frame->cfa_off + 16 &&
	       (go->ra == UNWIND_RA_REG || go->ra_off == frame->ra_off - 16);
}

static void compare_at(struct comparison *c, uint64_t vaddr, uint64_t bytes)
{
	size_t i = rows_find(c->go, vaddr), j = rows_find(c->frame, vaddr);
	const struct unwind_rule *go, *frame;

	if (i == (size_t)-1 || j == (size_t)-1)
		return;
	go = rows_rule(c->go, rows_at(c->go, i).rule);
	frame = rows_rule(c->frame, rows_at(c->frame, j).rule);
	if (go->cfa == UNWIND_CFA_GAP || frame->cfa == UNWIND_CFA_GAP)
		return; /* padding or C code in one of the two */
	if (go->cfa == UNWIND_CFA_REG && go->cfa_off > 8) {
		c->framed_bytes += bytes;
		c->fp_same_bytes += go->fp == UNWIND_FP_SAME ? bytes : 0;
	}
	if (is_special(go) || is_sigtramp(frame) || is_injected(go, frame)) {
		c->n_special++;
		c->n_curg += go->cfa == UNWIND_CFA_GO_CURG;
	} else if (go->cfa == frame->cfa && go->cfa_reg == frame->cfa_reg &&
		   go->cfa_off == frame->cfa_off && go->ra == frame->ra &&
		   go->ra_off == frame->ra_off) {
		c->n_same++;
	} else {
		if (c->n_other++ < 10)
			print_message("  %#llx: cfa=r%u%+d ra=%u%+d, .debug_frame r%u%+d %u%+d\n",
				      (unsigned long long)vaddr, go->cfa_reg, go->cfa_off, go->ra,
				      go->ra_off, frame->cfa_reg, frame->cfa_off, frame->ra,
				      frame->ra_off);
	}
}

/* At each row of either. */
static void compare(struct comparison *c)
{
	const struct rows *both[] = {c->go, c->frame};

	for (size_t k = 0; k < array_size(both); k++)
		for (size_t i = 0; i + 1 < rows_count(both[k]); i++)
			compare_at(c, rows_at(both[k], i).vaddr,
				   k ? 0
				     : rows_at(both[k], i + 1).vaddr - rows_at(both[k], i).vaddr);
}

static void test_debug_frame(const char *go, const char *variant)
{
	_cleanup_(freep) char *path = gofixture_build("test/fixtures/go/stacks", go, variant);
	_cleanup_(elffile_freep) struct elffile *file = NULL;
	_cleanup_(rows_freep) struct rows *rows = NULL, *frame = NULL;
	struct ehframe_stats ehframe = {0};
	const struct described none = {0};
	struct comparison c = {0};
	struct gorows_stats stats;
	uint64_t start, end;

	row_begin(path);
	assert_int_equal(elffile_open(open(path, O_RDONLY | O_CLOEXEC), &file), 0);
	assert_int_equal(ehframe_text(file, &start, &end), 0);
	assert_int_equal(rows_new(start, end, &rows), 0);
	assert_int_equal(rows_new(start, end, &frame), 0);
	assert_int_equal(gorows_add_file(file, rows, &stats), 0);
	assert_int_equal(ehframe_add_debug(file, &none, frame, &ehframe), 0);
	assert_int_equal(rows_finish(rows), 0);
	assert_int_equal(rows_finish(frame), 0);
	c.go = rows;
	c.frame = frame;
	compare(&c);
	print_message("  %llu functions, %llu rows the same, %llu special, %llu other; frame "
		      "pointer in its register in %.2f %% of code with a frame\n",
		      (unsigned long long)stats.n_funcs, (unsigned long long)c.n_same,
		      (unsigned long long)c.n_special, (unsigned long long)c.n_other,
		      100.0 * (double)c.fp_same_bytes / (double)c.framed_bytes);
	assert_int_equal(stats.n_odd, 0);
	assert_int_equal(c.n_other, 0);
	assert_true(c.n_same > 10000);
	assert_in_range(c.n_special, 10, 400);
	assert_true(c.n_curg > 0);
	/* prologues are recognised */
	assert_true(c.fp_same_bytes * 100 < c.framed_bytes * 6);
}

static void debug_frame_agrees(void **state)
{
	static const char *const variants[] = {"debug", "arm64-debug"};
	const char *gos[GOFIXTURE_GOS_MAX];
	size_t n = gofixture_gos(gos);

	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < array_size(variants); j++)
			test_debug_frame(gos[i], variants[j]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(damaged_tables),
		cmocka_unit_test(memory_runs_out),
		cmocka_unit_test(special_functions),
		cmocka_unit_test(debug_frame_agrees),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
