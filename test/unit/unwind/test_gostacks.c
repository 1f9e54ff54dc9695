// SPDX-License-Identifier: Apache-2.0
/*
 * Stacks of running Go programs, by the host's build of the walker and the agent's tables. Threads
 * are stopped at random places and stepped for a while, instruction by instruction, to cover
 * prologues, epilogues and functions that change stacks. There is no other source for the truth,
 * except the code: each return address follows a call, and a direct call names the function of the
 * inner frame. So the test detects a missing frame, or a CFA wrong by a word.
 */
#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "gofile/gopclntab.h"
#include "elf/elffile.h"
#include "procmap/maps.h"
#include "profile/sample.h"
#include "shared/sample.h"
#include "support/gofixture.h"
#include "support/goprocess.h"
#include "support/hostwalk.h"
#include "support/stopping.h"

/* Stops for each program, more in "make check-go", and looks after each. */
#define STOPS	      60
#define STOPS_MANY    500
/* At most, if stacks of some kind have not come up. */
#define STOPS_LAST    3000
#define LOOKS	      8
/* Rounds without any thread on a CPU until the program is taken for stuck: a millisecond each. */
#define ROUNDS_IDLE   60000
#define SHOWN	      10
/* Searched code of a function that may end in a jump to another function. */
#define JUMPING_BYTES 4096
#if defined(__x86_64__)
#define JUMP_STEP 1
#else
#define JUMP_STEP 4
#endif

/* A frame of a walk, with its facts from the tables. */
struct frame {
	uint64_t pc;
	uint64_t vaddr; /* of the looked-up pc, in the Go program; 0 elsewhere */
	bool is_return; /* pc is a return address: the call is the preceding instruction */
	struct unwind_rule rule;
};

struct looker {
	struct goprocess process;
	struct hostwalk *walk;
	struct elffile *file; /* the program, and its address */
	struct gopclntab *names;
	uint64_t start;
	uint64_t limit;
	uint64_t bias;
	uint64_t n_stacks;
	uint64_t n_frames;
	uint64_t n_ends[SAMPLE_END_MAX + 1];
	uint64_t n_links;  /* return addresses */
	uint64_t n_direct; /* frames whose call names the inner function */
	uint64_t n_wrong;  /* names another */
	uint64_t n_no_call;
	uint64_t n_rules[UNWIND_CFA_MAX]; /* frames without the innermost ones */
	uint64_t n_shown;
};

/* ---------------------------------------------------------------- names */

static const char *name_of(struct looker *l, const struct frame *f, struct gopclntab_line *line)
{
	if (!f->vaddr || gopclntab_find(l->names, f->vaddr, line) != 0)
		snprintf(line->function, sizeof(line->function), "?");
	else
		/* the physical function */
		for (int i = 0; i < 64 && line->parent_pc >= 0; i++)
			if (gopclntab_find(l->names, line->entry + (uint64_t)line->parent_pc, line))
				break;
	return line->function;
}

static void show(struct looker *l, const struct frame *frames, size_t n, const char *why)
{
	struct gopclntab_line line;

	if (l->n_shown++ >= SHOWN)
		return;
	print_message("  %s:\n", why);
	for (size_t i = 0; i < n && i < 40; i++)
		print_message("    %#llx %s cfa=%u reg%u%+d %s\n", (unsigned long long)frames[i].pc,
			      frames[i].is_return ? "ret" : "pc ", frames[i].rule.cfa,
			      frames[i].rule.cfa_reg, frames[i].rule.cfa_off,
			      name_of(l, &frames[i], &line));
}

static bool read_memory(const struct looker *l, uint64_t addr, void *ret, size_t n)
{
	struct iovec local = {ret, n}, remote = {(void *)(uintptr_t)addr, n};

	return process_vm_readv((pid_t)l->process.id.pid, &local, 1, &remote, 1, 0) == (ssize_t)n;
}

/* ---------------------------------------------------------------- calls */

enum call { CALL_NONE, CALL_INDIRECT, CALL_DIRECT };

/* The kind of call before a return address; for a direct call also the target. */
static enum call call_before(const struct looker *l, uint64_t pc, uint64_t *ret_target)
{
	uint8_t b[8];
	int32_t rel;

	if (!read_memory(l, pc - sizeof(b), b, sizeof(b)))
		return CALL_NONE;
	memcpy(&rel, b + 4, sizeof(rel));
#if defined(__x86_64__)
	*ret_target = pc + (uint64_t)(int64_t)rel;
	if (b[3] == 0xe8)
		return CALL_DIRECT;
	for (size_t i = 0; i < 7; i++) /* ff /2, with up to 4 bytes of displacement, and sib */
		if (b[i] == 0xff && (b[i + 1] & 0x38) == 0x10)
			return CALL_INDIRECT;
#elif defined(__aarch64__)
	*ret_target = pc - 4 + (uint64_t)(((int64_t)rel << 38) >> 36);
	if (((uint32_t)rel >> 26) == 0x25)
		return CALL_DIRECT;
	if (((uint32_t)rel & 0xfffffc1f) == 0xd63f0000)
		return CALL_INDIRECT;
#endif
	return CALL_NONE;
}

/* The target of a jump instruction at the code @b of @n bytes, if there is one. */
static uint64_t jump_target(const uint8_t *b, size_t n, uint64_t pc)
{
	int32_t rel;

	if (n < 6)
		return 0;
#if defined(__x86_64__)
	if (b[0] == 0xeb)
		return pc + 2 + (uint64_t)(int64_t)(int8_t)b[1];
	if (b[0] == 0x0f && (b[1] & 0xf0) == 0x80) {
		memcpy(&rel, b + 2, sizeof(rel));
		return pc + 6 + (uint64_t)(int64_t)rel;
	}
	memcpy(&rel, b + 1, sizeof(rel));
	return b[0] == 0xe9 ? pc + 5 + (uint64_t)(int64_t)rel : 0;
#elif defined(__aarch64__)
	memcpy(&rel, b, sizeof(rel));
	if (((uint32_t)rel >> 26) != 0x05)
		return 0;
	return pc + (uint64_t)(((int64_t)rel << 38) >> 36);
#endif
}

static bool is_injected(const char *name)
{
	return strcmp(name, "runtime.asyncPreempt") == 0 || strcmp(name, "runtime.sigpanic") == 0 ||
	       strcmp(name, "runtime.sigpanic0") == 0;
}

/* Whether code of @from jumps to the start of @to: a tail call. */
static bool jumps_on(struct looker *l, const struct gopclntab_line *from,
		     const struct gopclntab_line *to)
{
	static const char *const by_register[] = {"runtime.systemstack", "runtime.reflectcall"};
	uint8_t code[JUMPING_BYTES];
	size_t n = sizeof(code);

	for (size_t i = 0; i < array_size(by_register); i++)
		if (strcmp(from->function, by_register[i]) == 0)
			return true;
	while (n > 0 && !read_memory(l, from->entry + l->bias, code, n))
		n /= 2;
	for (size_t i = 0; i < n; i += JUMP_STEP) {
		struct gopclntab_line line;

		if (jump_target(code + i, n - i, from->entry + i) == to->entry)
			return !gopclntab_find(l->names, from->entry + i, &line) &&
			       line.entry == from->entry;
	}
	return false;
}

/* NULL if @outer can have called @inner, else why not. */
static const char *check_link(struct looker *l, const struct frame *inner,
			      const struct frame *outer)
{
	struct gopclntab_line in, target;
	uint64_t pc;

	if (!outer->is_return || outer->rule.cfa == UNWIND_CFA_STOP ||
	    outer->rule.cfa == UNWIND_CFA_SIGNAL || is_injected(name_of(l, inner, &in)))
		return NULL;
	l->n_links++;
	switch (call_before(l, outer->pc, &pc)) {
	case CALL_NONE:
		l->n_no_call++;
		return "not behind a call";
	case CALL_INDIRECT:
		return NULL;
	case CALL_DIRECT:
		break;
	}
	if (inner->rule.cfa == UNWIND_CFA_FP) /* the caller is known to be missing */
		return NULL;
	if (!inner->vaddr || !outer->vaddr || gopclntab_find(l->names, pc - l->bias, &target) ||
	    gopclntab_find(l->names, inner->vaddr, &in))
		return NULL;
	l->n_direct++;
	if (target.entry == in.entry)
		return NULL;
	if (jumps_on(l, &target, &in))
		return NULL;
	l->n_wrong++;
	return "called another";
}

/* ---------------------------------------------------------------- a stack */

/* Look up the facts of each frame. The frame outside of a signal's frame has an exact pc. */
static size_t describe(struct looker *l, const struct hostwalk_stack *stack, bool in_syscall,
		       struct frame frames[HOSTWALK_SLOTS])
{
	for (size_t i = 0; i < stack->n; i++) {
		const uint64_t pc = stack->pcs[i] - (i > 0 || in_syscall);
		struct frame *f = &frames[i];

		*f = (struct frame){.pc = stack->pcs[i]};
		f->is_return = i > 0 && f[-1].rule.cfa != UNWIND_CFA_SIGNAL;
		if (pc >= l->start && pc < l->limit)
			f->vaddr = pc - l->bias;
		(void)hostwalk_rule(l->walk, pc, &f->rule);
	}
	return stack->n;
}

static void look(struct looker *l, pid_t tid)
{
	static struct frame frames[HOSTWALK_SLOTS];
	static struct hostwalk_stack stack;
	struct hostwalk_regs regs;
	size_t n;

	assert_int_equal(hostwalk_regs(tid, &regs), 0);
	hostwalk_walk(l->walk, &regs, SETTINGS_UNWIND_AUTO, &stack);
	n = describe(l, &stack, regs.in_syscall, frames);
	l->n_stacks++;
	l->n_frames += n;
	l->n_ends[stack.end]++;
	if (stack.end != SAMPLE_END_COMPLETE)
		show(l, frames, n, sample_stat_name(stack.end));
	for (size_t i = 0; i + 1 < n; i++) {
		const char *why = check_link(l, &frames[i], &frames[i + 1]);

		l->n_rules[frames[i].rule.cfa]++;
		if (why)
			show(l, frames, i + 2, why);
	}
}

/* ---------------------------------------------------------------- stopping */

/* Stop a thread, compare the stack, step and compare again. */
static void stop(struct looker *l, pid_t tid)
{
	struct stopping s;

	if (!stopping_begin(&s, tid))
		return;
	for (int i = 0; i < LOOKS; i++) {
		look(l, tid);
		if (!stopping_step(&s))
			break;
	}
	stopping_end(&s);
}

/* Whether stacks of each kind of the program were seen. */
static bool has_seen_all(const struct looker *l, bool cgo)
{
	return l->n_rules[UNWIND_CFA_SWITCH] > 0 && l->n_rules[UNWIND_CFA_GO_CURG] > 0 &&
	       (!cgo || l->n_rules[UNWIND_CFA_GO_CGO] > 0);
}

static void check_lives(const struct looker *l)
{
	siginfo_t info = {0};

	if (waitid(P_PID, (id_t)l->process.id.pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
	    info.si_pid)
		fail_msg("the Go program has ended: code %d, status %d", info.si_code,
			 info.si_status);
}

static void look_around(struct looker *l, bool cgo)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	int stops = getenv("PODPROF_TEST_GO") ? STOPS_MANY : STOPS;
	pid_t tids[STOPPING_THREADS_MAX];
	int idle = 0;

	for (int done = 0; done < stops || (done < STOPS_LAST && !has_seen_all(l, cgo));) {
		size_t n = stopping_running((pid_t)l->process.id.pid, false, tids);

		check_lives(l);
		for (size_t i = 0; i < n; i++, done++)
			stop(l, tids[i]);
		nanosleep(&pause, NULL);
		idle = n ? 0 : idle + 1;
		if (idle > ROUNDS_IDLE)
			fail_msg("the Go program does nothing");
	}
}

/* ---------------------------------------------------------------- tests */

static void find_program(struct looker *l, const char *path)
{
	struct maps maps = {.only_prot = MAPS_X};
	uint64_t vaddr;

	assert_int_equal(maps_read(&l->process.proc, &l->process.id, &maps), 0);
	for (size_t i = 0; i < maps.n && !l->limit; i++) {
		const struct maps_entry *e = &maps.items[i];

		if (e->kind != MAPS_FILE || strcmp(e->path, path) != 0)
			continue;
		assert_true(elffile_vaddr_of_off(l->file, e->offset, &vaddr));
		l->start = e->start;
		l->limit = e->limit;
		l->bias = e->start - vaddr;
	}
	maps_deinit(&maps);
	assert_true(l->limit > 0);
}

static void open_program(struct looker *l, const char *path)
{
	static const char *const args[] = {NULL};
	const struct timespec warm = {.tv_nsec = 300000000};

	goprocess_start(&l->process, path, args, NULL);
	nanosleep(&warm, NULL);
	assert_int_equal(hostwalk_new((pid_t)l->process.id.pid, &l->walk), 0);
	assert_int_equal(elffile_open(open(path, O_RDONLY | O_CLOEXEC), &l->file), 0);
	assert_int_equal(gopclntab_open(l->file, &l->names), 0);
	find_program(l, path);
}

static void close_program(struct looker *l)
{
	gopclntab_free(l->names);
	elffile_free(l->file);
	hostwalk_free(l->walk);
	goprocess_stop(&l->process);
}

static void report(const struct looker *l)
{
	print_message("  %llu stacks of %.1f frames, %.3f %% complete; %llu return addresses, "
		      "%llu behind direct calls, %llu wrong; %llu on the system stack, %llu other "
		      "switches, %llu calls of C, %llu signals\n",
		      (unsigned long long)l->n_stacks, (double)l->n_frames / (double)l->n_stacks,
		      100.0 * (double)l->n_ends[SAMPLE_END_COMPLETE] / (double)l->n_stacks,
		      (unsigned long long)l->n_links, (unsigned long long)l->n_direct,
		      (unsigned long long)l->n_wrong + l->n_no_call,
		      (unsigned long long)l->n_rules[UNWIND_CFA_GO_CURG],
		      (unsigned long long)l->n_rules[UNWIND_CFA_SWITCH],
		      (unsigned long long)l->n_rules[UNWIND_CFA_GO_CGO],
		      (unsigned long long)l->n_rules[UNWIND_CFA_SIGNAL]);
	for (unsigned int i = SAMPLE_END_COMPLETE + 1; i < SAMPLE_END_MAX; i++)
		if (l->n_ends[i])
			print_message("  %s: %llu\n", sample_stat_name(i),
				      (unsigned long long)l->n_ends[i]);
}

static void test_program(const char *go, const char *variant)
{
	_cleanup_(freep) char *path = gofixture_build("test/fixtures/go/stacks", go, variant);
	bool cgo = strncmp(variant, "cgo", 3) == 0;
	struct looker l = {0};

	row_begin(path);
	open_program(&l, path);
	look_around(&l, cgo);
	report(&l);
	close_program(&l);
	assert_int_equal(l.n_wrong + l.n_no_call, 0);
	assert_in_range(l.n_stacks - l.n_ends[SAMPLE_END_COMPLETE], 0, l.n_stacks / 100);
	/* otherwise the program did not do its work */
	assert_true(l.n_direct > l.n_stacks);
	assert_true(has_seen_all(&l, cgo));
}

static void stacks_are_complete(void **state)
{
	static const char *const variants[] = {"default", "cgo", "cgo-pie"};
	const char *gos[GOFIXTURE_GOS_MAX];
	size_t n = gofixture_gos(gos);
	/* the last one differs only in the search for a goroutine: in "make check-go" */
	size_t n_variants = getenv("PODPROF_TEST_GO") ? 3 : 2;

	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < n_variants; j++)
			test_program(gos[i], variants[j]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stacks_are_complete),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
