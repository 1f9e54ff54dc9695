// SPDX-License-Identifier: Apache-2.0
#include "support/stackref.h"

#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>

#include "base/root.h"
#include "discovery/pid.h"
#include "goimage.h"
#include "procmap/elffile.h"
#include "procmap/maps.h"
#include "support/test.h"
#include "unwind/compile.h"
#include "unwind/rows.h"

#if defined(__x86_64__)
#define SP	      UNWIND_X86_SP
#define FP	      UNWIND_X86_FP
#define SIGNAL_REGS   40 /* in the kernel's frame: r8 to r15, di si bp bx dx ax cx sp, pc */
#define SIGNAL_N_REGS 17
#define REGS_OF_SIGNAL                                               \
	{                                                            \
		8, 9, 10, 11, 12, 13, 14, 15, 5, 4, 6, 3, 1, 0, 2, 7 \
	}
#elif defined(__aarch64__)
#define SP	      UNWIND_ARM64_SP
#define FP	      UNWIND_ARM64_FP
#define SIGNAL_REGS   312 /* x0 to x30, sp, pc */
#define SIGNAL_N_REGS 33
#define REGS_OF_SIGNAL                                                                            \
	{                                                                                         \
		0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, \
			23, 24, 25, 26, 27, 28, 29, 30, 31                                        \
	}
#endif

const char *stackref_end_name(enum stackref_end end)
{
	static const char *const names[STACKREF_END_MAX] = {
		[STACKREF_COMPLETE] = "complete",
		[STACKREF_NO_IMAGE] = "no_image",
		[STACKREF_GAP] = "gap",
		[STACKREF_UNSUPPORTED] = "unsupported",
		[STACKREF_UNREADABLE] = "unreadable",
		[STACKREF_LOW] = "low",
		[STACKREF_REGISTER] = "register",
		[STACKREF_TOO_DEEP] = "too_deep",
	};

	return names[end];
}

/* ---------------------------------------------------------------- images */

bool stackref_read(const struct stackref *ref, uint64_t addr, void *ret, size_t n)
{
	struct iovec local = {ret, n}, remote = {(void *)(uintptr_t)addr, n};

	return process_vm_readv(ref->pid, &local, 1, &remote, 1, 0) == (ssize_t)n;
}

static void open_rows(struct stackref_image *im)
{
	const struct compile_opts opts = {.more = goimage_more, .ctx = im->file};
	struct ehframe_stats stats = {0};
	int r = compile_image(im->file, &opts, &stats, &im->rows);

	if (r)
		fail_msg("no rows of %s: %d", im->path, r);
}

static void open_file(struct stackref_image *im, const struct maps_entry *e)
{
	uint64_t vaddr;
	int fd;

	im->path = strdup(e->path);
	fd = open(e->path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(elffile_open(fd, &im->file), 0);
	assert_true(elffile_vaddr_of_off(im->file, e->offset, &vaddr));
	im->bias = e->start - vaddr;
	open_rows(im);
}

/* The vDSO has no file: its bytes are those of the process, kept behind its name. */
static void open_vdso(struct stackref *ref, struct stackref_image *im, const struct maps_entry *e)
{
	size_t n = e->limit - e->start;

	im->path = malloc(16 + n);
	assert_non_null(im->path);
	strcpy(im->path, "[vdso]");
	assert_true(stackref_read(ref, e->start, im->path + 16, n));
	assert_int_equal(elffile_open_memory(im->path + 16, n, &im->file), 0);
	im->bias = e->start;
	open_rows(im);
}

static void add_image(struct stackref *ref, const struct maps_entry *e)
{
	struct stackref_image *im = &ref->images[ref->n];

	if (e->kind != MAPS_FILE && e->kind != MAPS_VDSO)
		return;
	assert_true(ref->n < STACKREF_IMAGES_MAX);
	*im = (struct stackref_image){.start = e->start, .limit = e->limit};
	if (e->kind == MAPS_FILE)
		open_file(im, e);
	else
		open_vdso(ref, im, e);
	ref->n++;
}

void stackref_open(struct stackref *ref, pid_t pid)
{
	struct root proc = ROOT_INIT;
	struct maps maps = {.only_prot = MAPS_X};
	struct pid_id id;

	*ref = (struct stackref){.pid = pid};
	assert_int_equal(root_open("/proc", &proc), 0);
	assert_int_equal(pid_read(&proc, (uint64_t)pid, &id), 0);
	assert_int_equal(maps_read(&proc, &id, &maps), 0);
	for (size_t i = 0; i < maps.n; i++)
		add_image(ref, &maps.items[i]);
	maps_deinit(&maps);
	root_deinit(&proc);
}

void stackref_close(struct stackref *ref)
{
	for (size_t i = 0; i < ref->n; i++) {
		rows_free(ref->images[i].rows);
		elffile_free(ref->images[i].file);
		free(ref->images[i].path);
	}
	ref->n = 0;
}

/* ---------------------------------------------------------------- registers */

void stackref_registers(pid_t tid, struct stackref_regs *ret)
{
	struct user_regs_struct u;
	struct iovec iov = {&u, sizeof(u)};

	assert_int_equal(ptrace(PTRACE_GETREGSET, tid, NT_PRSTATUS, &iov), 0);
#if defined(__x86_64__)
	*ret = (struct stackref_regs){
		.pc = u.rip,
		.numbered = {u.rax, u.rdx, u.rcx, u.rbx, u.rsi, u.rdi, u.rbp, u.rsp, u.r8, u.r9,
			     u.r10, u.r11, u.r12, u.r13, u.r14, u.r15},
	};
#elif defined(__aarch64__)
	ret->pc = u.pc;
	memcpy(ret->numbered, u.regs, sizeof(u.regs));
	ret->numbered[SP] = u.sp;
#endif
	ret->sp = ret->numbered[SP];
	ret->fp = ret->numbered[FP];
}

/* ---------------------------------------------------------------- a step */

/* The frame of the walk as it is, and what it goes to. */
struct state {
	const struct stackref *ref;
	struct stackref_regs regs;
	bool numbered; /* all registers are known, not only sp and fp */
	bool is_return;
	uint64_t cfa;
};

static bool word(const struct state *s, uint64_t addr, uint64_t *ret)
{
	return stackref_read(s->ref, addr, ret, sizeof(*ret));
}

static bool reg(const struct state *s, unsigned int number, uint64_t *ret)
{
	if (number == SP)
		*ret = s->regs.sp;
	else if (number == FP)
		*ret = s->regs.fp;
	else if (s->numbered && number < STACKREF_REGS)
		*ret = s->regs.numbered[number];
	else
		return false;
	return true;
}

static enum stackref_end find_go_cgo_cfa(struct state *s, const struct unwind_rule *rule)
{
	uint64_t g, depth, hi;

	if (!word(s, s->regs.sp + rule->cfa_reg, &g) ||
	    !word(s, s->regs.sp + (uint64_t)rule->cfa_off, &depth))
		return STACKREF_UNREADABLE;
	s->cfa = depth + (uint64_t)rule->cfa_add;
	if (g == 0)
		return STACKREF_COMPLETE;
	if (!word(s, g + 8, &hi))
		return STACKREF_UNREADABLE;
	s->cfa = hi - depth + (uint64_t)rule->cfa_add;
	return STACKREF_COMPLETE;
}

/* STACKREF_COMPLETE, which here is no end, or why there is no CFA. */
static enum stackref_end find_cfa(struct state *s, const struct unwind_rule *rule)
{
	uint64_t base, read;

	if (rule->cfa == UNWIND_CFA_GO_CGO)
		return find_go_cgo_cfa(s, rule);
	if (rule->cfa == UNWIND_CFA_PLT) {
		bool pushed = (s->regs.pc & 15) >= (uint64_t)rule->cfa_off;

		s->cfa = s->regs.sp + 8 + (pushed ? 8 : 0);
		return STACKREF_COMPLETE;
	}
	if (!reg(s, rule->cfa_reg, &base))
		return STACKREF_REGISTER;
	s->cfa = base + (uint64_t)(int64_t)rule->cfa_off;
	if (rule->cfa == UNWIND_CFA_DEREF) {
		if (!word(s, s->cfa, &read))
			return STACKREF_UNREADABLE;
		s->cfa = read + (uint64_t)(int64_t)rule->cfa_add;
	}
	if (rule->cfa != UNWIND_CFA_SWITCH && s->cfa < s->regs.sp)
		return STACKREF_LOW;
	return STACKREF_COMPLETE;
}

static enum stackref_end go_to_caller(struct state *s, const struct unwind_rule *rule)
{
	uint64_t fp = s->regs.fp, pc;
	enum stackref_end end = find_cfa(s, rule);

	if (end != STACKREF_COMPLETE)
		return end;
	if (rule->fp == UNWIND_FP_AT_CFA && !word(s, s->cfa + (uint64_t)(int64_t)rule->fp_off, &fp))
		return STACKREF_UNREADABLE;
	if (rule->fp == UNWIND_FP_DEREF &&
	    !word(s, s->regs.fp + (uint64_t)(int64_t)rule->fp_off, &fp))
		return STACKREF_UNREADABLE;
	if (rule->ra == UNWIND_RA_REG && !reg(s, (unsigned int)rule->ra_off, &pc))
		return STACKREF_REGISTER;
	if (rule->ra == UNWIND_RA_AT_CFA && !word(s, s->cfa + (uint64_t)(int64_t)rule->ra_off, &pc))
		return STACKREF_UNREADABLE;
	s->regs.pc = pc;
	s->regs.sp = s->cfa;
	s->regs.fp = fp;
	s->numbered = false;
	s->is_return = true;
	return STACKREF_COMPLETE;
}

static enum stackref_end go_by_fp(struct state *s)
{
	uint64_t record[2];

	if (!stackref_read(s->ref, s->regs.fp, record, sizeof(record)))
		return STACKREF_UNREADABLE;
	s->regs.sp = s->regs.fp + 16;
	s->regs.fp = record[0];
	s->regs.pc = record[1];
	s->numbered = false;
	s->is_return = true;
	return STACKREF_COMPLETE;
}

static enum stackref_end go_out_of_signal(struct state *s)
{
	static const uint8_t order[] = REGS_OF_SIGNAL;
	uint64_t words[SIGNAL_N_REGS];

	if (!stackref_read(s->ref, s->regs.sp + SIGNAL_REGS, words, sizeof(words)))
		return STACKREF_UNREADABLE;
	for (size_t i = 0; i < array_size(order); i++)
		s->regs.numbered[order[i]] = words[i];
	s->regs.pc = words[SIGNAL_N_REGS - 1];
	s->regs.sp = s->regs.numbered[SP];
	s->regs.fp = s->regs.numbered[FP];
	s->numbered = true;
	s->is_return = false;
	return STACKREF_COMPLETE;
}

/* ---------------------------------------------------------------- the walk */

static void describe(const struct state *s, struct stackref_frame *f)
{
	uint64_t pc = s->regs.pc - (s->is_return ? 1 : 0);

	*f = (struct stackref_frame){
		.pc = s->regs.pc,
		.sp = s->regs.sp,
		.is_return = s->is_return,
	};
	for (size_t i = 0; i < s->ref->n; i++) {
		const struct stackref_image *im = &s->ref->images[i];
		size_t row;

		if (pc < im->start || pc >= im->limit)
			continue;
		f->image = im;
		f->vaddr = pc - im->bias;
		row = rows_find(im->rows, f->vaddr);
		if (row != (size_t)-1)
			f->rule = *rows_rule(im->rows, rows_at(im->rows, row).rule);
	}
}

static enum stackref_end step(struct state *s, const struct stackref_frame *f)
{
	if (!f->image)
		return STACKREF_NO_IMAGE;
	switch (f->rule.cfa) {
	case UNWIND_CFA_GAP:
		return STACKREF_GAP;
	case UNWIND_CFA_FP:
		return go_by_fp(s);
	case UNWIND_CFA_SIGNAL:
		return go_out_of_signal(s);
	case UNWIND_CFA_UNSUPPORTED:
		return STACKREF_UNSUPPORTED;
	default:
		return go_to_caller(s, &f->rule);
	}
}

enum stackref_end stackref_unwind(const struct stackref *ref, const struct stackref_regs *regs,
				  struct stackref_frame frames[STACKREF_FRAMES_MAX], size_t *ret_n)
{
	struct state s = {.ref = ref, .regs = *regs, .numbered = true};

	for (size_t n = 0; n < STACKREF_FRAMES_MAX; n++) {
		enum stackref_end end;

		describe(&s, &frames[n]);
		*ret_n = n + 1;
		if (frames[n].rule.cfa == UNWIND_CFA_STOP)
			return STACKREF_COMPLETE;
		end = step(&s, &frames[n]);
		if (end != STACKREF_COMPLETE || s.regs.pc == 0)
			return end;
	}
	return STACKREF_TOO_DEEP;
}
