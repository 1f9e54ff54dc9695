// SPDX-License-Identifier: Apache-2.0
/*
 * For each place of the code, Go's tables have the distance of the stack pointer from its value at
 * the function's entry. This is the exact CFA, also in prologues and epilogues and in functions
 * without a frame, where a frame pointer skips the caller. The tables do not have the place of the
 * caller's frame pointer. It is necessary, because C code called by Go may have a CFA that counts
 * from the frame pointer, and so has Go at stack changes (below). After the prologue has stored it,
 * the caller's frame pointer is in the frame. The module recognises the store in the code, at the
 * place where the table shows the start of the frame (goarch.h). Elsewhere the frame pointer is
 * still in its register.
 *
 * A table cannot describe assembly that loads the stack pointer from memory. The linker marks such
 * functions. Most of them continue on the thread's own stack instead of the goroutine's and keep
 * their frame pointer: the calls of the vDSO, cgocallback (from C to Go, the other way). Once the
 * frame pointer points at their record, the CFA counts from it. The other functions are few:
 *
 *	systemstack		calls a function on the thread's stack. During a long call the
 *				collector may move the goroutine's stack, so the frame pointer
 *				leads to the old place. The way back uses the goroutine's
 *				struct g, and the rule does the same. The returning code has
 *				all offsets.
 *	asmcgocall		must be right after a callback has moved the goroutine's stack.
 *				It stores the goroutine and its depth, and the rule uses both.
 *	mcall, morestack, gogo	leave the goroutine for the scheduler. The scheduler has no
 *				caller, so the stack ends there. Before that point they are
 *				ordinary functions.
 *	clone			the same for the new thread.
 *	others without a frame	keep their caller's frame pointer, so the chain continues with
 *				one frame missing.
 *
 * Functions without a caller (goexit, mstart, the program's entry) are the end of a stack. A
 * signal's handler was "called" by the return function, with the kernel's frame of all registers
 * above. The return function continues at its first instruction, and a lookup takes the byte before
 * the return address. So its row begins one byte early.
 *
 * Left out: a signal handler makes a goroutine enter some functions (asyncPreempt, sigpanic). Their
 * return address does not follow a call. The byte before it is in another row only after the last
 * instruction of a prologue.
 *
 * Sources: the Go project's src/runtime/asm_amd64.s, asm_arm64.s, sys_linux_amd64.s, traceback.go,
 * cgocall.go, src/internal/abi/symtab.go, of the releases in goversion.c.
 */
#include "unwind/gorows.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "elf/elffile.h"
#include "elf/elfwindow.h"
#include "gofile/gocode.h"
#include "gofile/gopcsp.h"
#include "unwind/goarch.h"
#include "unwind/rows.h"

#define CODE_WINDOW    (256u << 10)
/* Bytes of code read around the end of a prologue, and the part before that end. */
#define PROLOGUE_BYTES 48
#define BEFORE_BYTES   16
/* Bytes of a function that changes stacks; the longest has some hundred. */
#define SWITCH_BYTES   4096
/* Bytes of a frame, limited by the rule's format. The largest is reflection's, 2^30 and some. */
#define DELTA_LIMIT    (INT32_MAX - 64)

/* sched.bp in Go's runtime.g where systemstack has no frame, in 1.16 to 1.20. */
#define SCHED_BP 104

/* Returns of a function that changes stacks; usually one or two. */
#define LAST_PLACES 4

/* The effect of a function on a stack. */
enum role {
	ROLE_PLAIN,
	ROLE_TOP,      /* has no caller */
	ROLE_SWITCH,   /* continues on another stack, its frame pointer on the old one */
	ROLE_LEAVE,    /* continues on another stack and is its end */
	ROLE_SYSTEM,   /* goes on with the thread's stack, and comes back */
	ROLE_CGO,      /* ROLE_SWITCH, and calls C */
	ROLE_INJECTED, /* without a real call: a signal handler has forged one */
	ROLE_SIGRET,   /* the return function of a signal's handler */
};

struct gorows {
	const struct elffile *file;
	const struct goarch *arch;
	struct rows *rows;
	struct elfwindow *window; /* over the segment of the last function */
	struct elfwindow storage;
	uint64_t text; /* vaddr of the segment's start */
	struct gorows_stats stats;
};

struct place {
	uint64_t start; /* vaddr */
	uint64_t end;
};

/* One function during the conversion to rows. */
struct build {
	const struct goarch *arch;
	enum role role;
	struct goframe frame;
	uint64_t leaves; /* the stack pointer changes here */
	struct gocall calls[GOARCH_CALLS];
	size_t n_calls;
	struct goswitch come_back;
	/* The last instructions of frames: sp is the frame's again, and fp the caller's, maybe. */
	struct place last[LAST_PLACES];
	size_t n_last;
};

/* ---------------------------------------------------------------- roles */

struct known {
	const char *name; /* without the prefix "runtime." */
	enum role role;
};

/* Functions that the flags do not show, or show wrongly; all of them, for releases without
 * flags. */
static const struct known known[] = {
	{"_rt0_amd64", ROLE_TOP},     {"_rt0_amd64_linux", ROLE_TOP},
	{"_rt0_arm64", ROLE_TOP},     {"_rt0_arm64_linux", ROLE_TOP},
	{"asmcgocall", ROLE_CGO},     {"asyncPreempt", ROLE_INJECTED},
	{"cgocallback", ROLE_SWITCH}, {"clone", ROLE_LEAVE}, /* the new thread */
	{"goexit", ROLE_TOP},	      {"gogo", ROLE_LEAVE},
	{"jmpdefer", ROLE_PLAIN}, /* sets sp to the place of its second return */
	{"mcall", ROLE_LEAVE},	      {"morestack", ROLE_LEAVE},
	{"mstart", ROLE_TOP},	      {"nanotime1", ROLE_SWITCH},
	{"rt0_go", ROLE_TOP},	      {"sigpanic", ROLE_INJECTED},
	{"sigreturn", ROLE_SIGRET},   {"sigreturn__sigaction", ROLE_SIGRET},
	{"sigtramp", ROLE_PLAIN}, /* a handler: its caller is known */
	{"systemstack", ROLE_SYSTEM}, {"walltime", ROLE_SWITCH},
	{"walltime1", ROLE_SWITCH},
};

static const struct known *known_of(const char *name)
{
	static const char package[] = "runtime.";

	if (strncmp(name, package, sizeof(package) - 1) == 0)
		name += sizeof(package) - 1;
	if (!name[0] || strchr(name, '.')) /* a method, or of another package */
		return NULL;
	for (size_t i = 0; i < array_size(known); i++)
		if (strcmp(name, known[i].name) == 0)
			return &known[i];
	return NULL;
}

static enum role role_of(const struct gocode_func *func)
{
	const struct known *found = known_of(func->name);

	if (found)
		return found->role;
	if (func->flags & GOCODE_TOP_FRAME)
		return ROLE_TOP;
	return func->flags & GOCODE_SP_WRITE ? ROLE_SWITCH : ROLE_PLAIN;
}

/* ---------------------------------------------------------------- code */

/* Moves the window to the executable segment of @vaddr. */
static int open_window(struct gorows *g, uint64_t vaddr)
{
	const struct elffile_segment *segments;
	size_t n;
	int r;

	if (g->window && vaddr >= g->text && vaddr - g->text < g->window->size)
		return 0;
	g->window = NULL;
	elfwindow_deinit(&g->storage);
	segments = elffile_segments(g->file, &n);
	for (size_t i = 0; i < n; i++) {
		const struct elffile_segment *s = &segments[i];

		if (!(s->flags & PF_X) || vaddr < s->vaddr || vaddr - s->vaddr >= s->filesz)
			continue;
		r = elfwindow_init(&g->storage, g->file, s->off, s->filesz, CODE_WINDOW);
		if (r)
			return r;
		g->text = s->vaddr;
		g->window = &g->storage;
		return 0;
	}
	return ELFFILE_ABSENT;
}

/* Code of [@start, @end), of no length if the file has none there. */
static int read_code(struct gorows *g, uint64_t start, uint64_t end, struct gocode *ret)
{
	int r = open_window(g, start);

	*ret = (struct gocode){.entry = start};
	if (!r && end - g->text > g->window->size)
		end = g->text + g->window->size;
	if (!r)
		r = elfwindow_get(g->window, start - g->text, (size_t)(end - start), &ret->bytes);
	if (!r)
		ret->n = (size_t)(end - start);
	return r < 0 ? r : 0;
}

static uint64_t at_most(uint64_t value, uint64_t limit)
{
	return value < limit ? value : limit;
}

/* Finds the frame setup at the place where the table shows the frame. */
static int find_frame(struct gorows *g, const struct gocode_func *func, struct build *b)
{
	struct gocode code;
	uint64_t first, start;
	int r;

	b->frame = (struct goframe){GOARCH_NEVER, GOARCH_NEVER, false};
	if (func->n_steps < 2)
		return 0;
	first = func->steps[1].start;
	start = first - func->entry > BEFORE_BYTES ? first - BEFORE_BYTES : func->entry;
	r = read_code(g, start, at_most(func->end, start + PROLOGUE_BYTES), &code);
	if (r)
		return r;
	b->arch->frame(&code, first, func->steps[1].delta, &b->frame);
	if (b->frame.fp_saved != GOARCH_NEVER)
		g->stats.n_framed++;
	return 0;
}

/* Finds the places where a function that changes stacks frees its frame. */
static void find_last(const struct gocode_func *func, const struct gocode *code, struct build *b)
{
	for (size_t i = 1; i < func->n_steps && b->n_last < LAST_PLACES; i++) {
		const uint64_t end = func->steps[i].start;

		if (func->steps[i].delta < func->steps[i - 1].delta)
			b->last[b->n_last++] = (struct place){b->arch->gives_back(code, end), end};
	}
}

/* Finds the stack change of a function. */
static int find_switch(struct gorows *g, const struct gocode_func *func, struct build *b)
{
	struct gocode code;
	int r;

	b->leaves = GOARCH_NEVER;
	if (b->role == ROLE_PLAIN || b->role == ROLE_INJECTED || b->role == ROLE_TOP ||
	    b->role == ROLE_SIGRET)
		return 0;
	r = read_code(g, func->entry, at_most(func->end, func->entry + SWITCH_BYTES), &code);
	if (r)
		return r;
	b->leaves = b->arch->sp_written(&code);
	find_last(func, &code, b);
	if (b->role == ROLE_CGO)
		b->n_calls = b->arch->cgo_calls(&code, b->calls);
	if (b->role == ROLE_SYSTEM && !b->arch->come_back(&code, &b->come_back))
		b->role = ROLE_SWITCH;
	return 0;
}

/* ---------------------------------------------------------------- rules */

static bool is_last(const struct build *b, uint64_t pc)
{
	for (size_t i = 0; i < b->n_last; i++)
		if (pc >= b->last[i].start && pc < b->last[i].end)
			return true;
	return false;
}

/* The special rule of asmcgocall, if it applies at @pc. */
static bool rule_cgo(const struct build *b, uint64_t pc, struct unwind_rule *rule)
{
	for (size_t i = 0; i < b->n_calls; i++) {
		const struct gocall *c = &b->calls[i];

		if (pc >= c->start && pc < c->end && rule->cfa_off <= INT16_MAX) {
			rule->cfa = UNWIND_CFA_GO_CGO;
			rule->cfa_reg = c->g;
			rule->cfa_add = (int16_t)rule->cfa_off;
			rule->cfa_off = c->depth;
			return true;
		}
		if (pc >= c->from && pc < c->start) {
			rule->cfa = UNWIND_CFA_SWITCH;
			rule->cfa_reg = b->arch->cgo_sp;
			return true;
		}
	}
	return b->n_calls > 0 && b->frame.fp_set == GOARCH_NEVER;
}

/* The rule of a function that continues on another stack. */
static void rule_switch(const struct build *b, uint64_t pc, int32_t delta, struct unwind_rule *rule)
{
	if (rule_cgo(b, pc, rule))
		return;
	if (pc >= b->frame.fp_set && delta > 0 && !is_last(b, pc)) {
		rule->cfa = UNWIND_CFA_SWITCH;
		rule->cfa_reg = b->arch->fp;
		rule->cfa_off = b->arch->cfa_of_fp(delta);
	} else if (b->frame.fp_set == GOARCH_NEVER && pc >= b->leaves) {
		*rule = (struct unwind_rule){.cfa = UNWIND_CFA_FP};
	}
}

/* The rule of systemstack on the thread's stack. */
static void rule_system(const struct build *b, uint64_t pc, struct unwind_rule *rule)
{
	const struct goswitch *s = &b->come_back;

	if (pc < b->leaves || pc >= s->back || rule->cfa_off >= 8 << UNWIND_GO_CURG)
		return;
	rule->cfa = UNWIND_CFA_GO_CURG;
	rule->cfa_reg = s->g;
	rule->cfa_add = (int16_t)(rule->cfa_off / 8 | s->curg / 8 << UNWIND_GO_CURG);
	rule->cfa_off = s->tls;
	if (rule->fp == UNWIND_FP_SAME) {
		rule->fp = UNWIND_FP_GO_CURG;
		rule->fp_off = SCHED_BP;
	}
}

/* The caller's sp is above the signal handler's data. */
static void rule_injected(const struct build *b, struct unwind_rule *rule)
{
	const int32_t n = b->arch->injected;

	if (rule->cfa != UNWIND_CFA_REG || rule->ra_off < INT16_MIN + n)
		return;
	rule->cfa_off += n;
	if (rule->ra == UNWIND_RA_AT_CFA)
		rule->ra_off = (int16_t)(rule->ra_off - n);
	if (rule->fp == UNWIND_FP_AT_CFA)
		rule->fp_off -= n;
}

static void rule_at(const struct build *b, uint64_t pc, int32_t delta, struct unwind_rule *ret)
{
	switch (b->role) {
	case ROLE_TOP:
		*ret = (struct unwind_rule){.cfa = UNWIND_CFA_STOP};
		return;
	case ROLE_SIGRET:
		*ret = (struct unwind_rule){.cfa = UNWIND_CFA_SIGNAL};
		return;
	case ROLE_PLAIN:
	case ROLE_INJECTED:
	case ROLE_SWITCH:
	case ROLE_SYSTEM:
	case ROLE_CGO:
	case ROLE_LEAVE:
		break;
	}
	if (delta > DELTA_LIMIT || (delta < 0 && delta != b->arch->popped)) {
		*ret = (struct unwind_rule){.cfa = UNWIND_CFA_UNSUPPORTED,
					    .cfa_off = UNSUPPORTED_CFA_OFFSET};
		return;
	}
	b->arch->rule(&b->frame, pc, delta, ret);
	if (b->role == ROLE_SWITCH || b->role == ROLE_CGO)
		rule_switch(b, pc, delta, ret);
	else if (b->role == ROLE_INJECTED)
		rule_injected(b, ret);
	else if (b->role == ROLE_SYSTEM)
		rule_system(b, pc, ret);
	else if (b->role == ROLE_LEAVE && pc >= b->leaves)
		*ret = (struct unwind_rule){.cfa = UNWIND_CFA_STOP};
}

/* ---------------------------------------------------------------- rows */

/* The earlier of @end and a place after @pc. */
static uint64_t place_after(uint64_t place, uint64_t pc, uint64_t end)
{
	return place > pc && place < end ? place : end;
}

/* The next place after @pc with a possibly different rule; at most @end. */
static uint64_t next_place(const struct build *b, uint64_t pc, uint64_t end)
{
	end = place_after(b->frame.fp_saved, pc, end);
	end = place_after(b->frame.fp_set, pc, end);
	if (b->role == ROLE_PLAIN)
		return end;
	end = place_after(b->leaves, pc, end);
	end = place_after(b->come_back.back, pc, end);
	for (size_t i = 0; i < b->n_calls; i++) {
		end = place_after(b->calls[i].from, pc, end);
		end = place_after(b->calls[i].start, pc, end);
		end = place_after(b->calls[i].end, pc, end);
	}
	for (size_t i = 0; i < b->n_last; i++)
		end = place_after(b->last[i].start, pc, end);
	return end;
}

/* Adds the rows of one step: at its start, and at changes of the rule within. */
static int add_step(struct gorows *g, const struct build *b, uint64_t start, uint64_t end,
		    int32_t delta)
{
	uint64_t pc = start;

	while (pc < end) {
		struct unwind_rule rule;
		int r;

		rule_at(b, pc, delta, &rule);
		r = rows_add(g->rows, pc, &rule);
		if (r)
			return r;
		pc = next_place(b, pc, end);
	}
	return 0;
}

static int add_steps(struct gorows *g, const struct build *b, const struct gocode_func *func)
{
	for (size_t i = 0; i < func->n_steps; i++) {
		const struct gocode_step *step = &func->steps[i];
		uint64_t end = i + 1 < func->n_steps ? step[1].start : func->end;
		int r = add_step(g, b, step->start, end, step->delta);

		if (r)
			return r;
	}
	return 0;
}

static bool is_whole(enum role role)
{
	return role == ROLE_TOP || role == ROLE_SIGRET;
}

static int add_range(struct gorows *g, const struct build *b, const struct gocode_func *func)
{
	uint64_t start = func->entry - (b->role == ROLE_SIGRET ? 1 : 0);
	struct unwind_rule rule;
	int r = rows_begin(g->rows, ROWS_GO, start, func->end);

	if (r) {
		g->stats.n_odd++;
		return r < 0 ? r : 0;
	}
	if (is_whole(b->role)) {
		rule_at(b, start, 0, &rule);
		r = rows_add(g->rows, start, &rule);
	} else {
		r = add_steps(g, b, func);
	}
	if (r) {
		rows_drop(g->rows);
		return r;
	}
	return rows_end(g->rows);
}

static bool is_odd(const struct gocode_func *func)
{
	if (func->entry >= func->end || func->entry == 0)
		return true;
	for (size_t i = 0; i < func->n_steps; i++) {
		uint64_t start = func->steps[i].start;

		if (i == 0 ? start != func->entry : start <= func->steps[i - 1].start)
			return true;
		if (start >= func->end)
			return true;
	}
	return false;
}

int gorows_add(struct gorows *g, const struct gocode_func *func)
{
	struct build b = {.arch = g->arch, .role = role_of(func)};
	int r;

	g->stats.n_funcs++;
	if (is_odd(func)) {
		g->stats.n_odd++;
		return 0;
	}
	if (func->n_steps == 0 && !is_whole(b.role)) {
		g->stats.n_without_table++;
		return 0;
	}
	g->stats.n_special += b.role != ROLE_PLAIN;
	r = find_frame(g, func, &b);
	if (!r)
		r = find_switch(g, func, &b);
	return r ? r : add_range(g, &b, func);
}

/* ---------------------------------------------------------------- */

static const struct goarch *arch_of(const struct elffile *file)
{
	switch (elffile_machine(file)) {
	case EM_X86_64:
		return &goarch_x86;
	case EM_AARCH64:
		return &goarch_arm64;
	default:
		return NULL;
	}
}

int gorows_new(const struct elffile *file, struct rows *rows, struct gorows **ret)
{
	const struct goarch *arch = arch_of(file);
	struct gorows *g;

	if (!arch)
		return GOPCSP_UNSUPPORTED;
	g = calloc(1, sizeof(*g));
	if (!g)
		return -ENOMEM;
	g->file = file;
	g->arch = arch;
	g->rows = rows;
	*ret = g;
	return 0;
}

void gorows_free(struct gorows *g)
{
	if (!g)
		return;
	elfwindow_deinit(&g->storage);
	free(g);
}

DEFINE_CLEANUP(struct gorows *, gorows_freep, gorows_free);
DEFINE_CLEANUP(struct gopcsp *, gopcsp_freep, gopcsp_free);

int gorows_add_file(const struct elffile *file, struct rows *rows, struct gorows_stats *ret_stats)
{
	_cleanup_(gopcsp_freep) struct gopcsp *tables = NULL;
	_cleanup_(gorows_freep) struct gorows *g = NULL;
	struct gocode_func func;
	int r = gorows_new(file, rows, &g);
	if (!r)
		r = gopcsp_open(file, &tables);
	if (r)
		return r;
	while ((r = gopcsp_next(tables, &func)) != GOPCSP_END) {
		if (r < 0)
			return r;
		if (r > 0) {
			g->stats.n_funcs++;
			g->stats.n_odd++;
			continue;
		}
		r = gorows_add(g, &func);
		if (r)
			return r < 0 ? r : -ENOSPC;
	}
	if (ret_stats)
		*ret_stats = g->stats;
	return 0;
}
