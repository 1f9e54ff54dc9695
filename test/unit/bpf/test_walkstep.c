// SPDX-License-Identifier: Apache-2.0
/*
 * The walker compared with the truth: programs without frame pointers are stepped through,
 * instruction by instruction, and the stack must be right at each. The truth comes from calls and
 * returns alone: a call leaves the next address on the stack, and frames below the stack pointer
 * are over.
 */
#include "support/test.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "shared/sample.h"
#include "support/fixture.h"
#include "support/hostwalk.h"

DEFINE_CLEANUP(struct hostwalk *, hostwalk_freep, hostwalk_free);

#define DEPTH 2048

/* A frame that waits for a return. */
struct caller {
	uint64_t pc;	  /* return address */
	uint64_t slot;	  /* address of the return address on the stack */
	uint64_t context; /* 0, or a signal came: where the saved pc is */
};

struct tracee {
	pid_t pid;
	struct hostwalk *walk;
	struct hostwalk_regs now;
	struct caller callers[DEPTH]; /* outermost first */
	size_t n;
	size_t n_steps;
	size_t n_wrong;
	size_t n_cut;	 /* right frames, reported as truncated */
	uint32_t cut_by; /* a bit for each end */
	size_t depth;	 /* the most */
	int sig;	 /* to be delivered */
};

static uint64_t peek(const struct tracee *t, uint64_t address)
{
	uint64_t word = 0;
	struct iovec to = {&word, sizeof(word)}, from = {(void *)(uintptr_t)address, sizeof(word)};

	assert_int_equal(process_vm_readv(t->pid, &to, 1, &from, 1, 0), sizeof(word));
	return word;
}

static pid_t start(const char *fixture, const char *which)
{
	char path[FIXTURE_PATH_MAX];
	pid_t pid;

	fixture_path(fixture, path);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		personality(ADDR_NO_RANDOMIZE);
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		execl(path, "zoo", which, NULL);
		_exit(127);
	}
	return pid;
}

/* The program has stopped; false if it has ended. */
static bool stopped(struct tracee *t)
{
	int status;

	assert_int_equal(waitpid(t->pid, &status, 0), t->pid);
	if (!WIFSTOPPED(status)) {
		t->pid = 0;
		return false;
	}
	t->sig = WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
	assert_int_equal(hostwalk_regs(t->pid, &t->now), 0);
	return true;
}

/* Run on as @request says. */
static bool go_on(struct tracee *t, int request)
{
	assert_int_equal(ptrace(request, t->pid, 0, t->sig), 0);
	return stopped(t);
}

/* ---------------------------------------------------------------- the truth */

static void push(struct tracee *t, uint64_t pc, uint64_t slot, uint64_t context)
{
	assert_true(t->n < DEPTH);
	t->callers[t->n++] = (struct caller){pc, slot, context};
	if (t->n > t->depth)
		t->depth = t->n;
}

#define INSN_MAX     15
#define CALL_MAX     7	  /* bytes of a call instruction */
#define INSN_TRAP    0xcc /* int3 */
#define INSN_SYSCALL 0x050f
#define NR_SIGRETURN 15
/* From the handler's first sp: a return address, then struct ucontext. */
#define CONTEXT_OFF  8
#define CONTEXT_PC   (40 + 16 * 8)

/* A signal's handler begins. The interrupted code has not called the handler, so its pc is not a
 * return address: the stored value is one larger. */
static void signalled(struct tracee *t)
{
	push(t, 0, UINT64_MAX, t->now.sp + CONTEXT_OFF + CONTEXT_PC);
	push(t, peek(t, t->now.sp) + 1, t->now.sp, 0);
}

/* The effect of the instruction at @before on the list of callers. */
static void follow(struct tracee *t, const struct hostwalk_regs *before)
{
	const uint64_t insn = peek(t, before->pc);
	const uint64_t top = peek(t, t->now.sp);

	if ((insn & 0xffff) == INSN_SYSCALL && before->numbered[0] == NR_SIGRETURN) {
		t->n--;
		return;
	}
	while (t->n && t->callers[t->n - 1].slot < t->now.sp)
		t->n--;
	if (t->now.sp == before->sp - 8 && top > before->pc && top <= before->pc + CALL_MAX &&
	    t->now.pc != top)
		push(t, top, t->now.sp, 0);
}

/* One instruction, or the delivery of a signal. False at the second trap. */
static bool step(struct tracee *t)
{
	const struct hostwalk_regs before = t->now;
	const int sig = t->sig;

	if ((peek(t, before.pc) & 0xff) == INSN_TRAP)
		return false;
	assert_true(go_on(t, PTRACE_SINGLESTEP));
	t->n_steps++;
	if (sig)
		signalled(t);
	else if (!t->sig)
		follow(t, &before);
	return true;
}

/* ---------------------------------------------------------------- the walker's result */

static uint64_t expected(const struct tracee *t, size_t i)
{
	const struct caller *c = &t->callers[t->n - i];

	if (!i)
		return t->now.pc - t->now.in_syscall;
	return c->context ? peek(t, c->context) + 1 : c->pc;
}

static void print_wrong(const struct tracee *t, const struct hostwalk_stack *s)
{
	print_message("step %zu: end %u, %zu frames of %zu\n", t->n_steps, s->end, s->n, t->n + 1);
	for (size_t i = 0; i <= t->n && i < 8; i++)
		print_message("  %12jx  %12jx\n", (uintmax_t)expected(t, i),
			      (uintmax_t)(i < s->n ? s->pcs[i] : 0));
}

static void compare(struct tracee *t)
{
	struct hostwalk_stack s;
	bool right;

	hostwalk_walk(t->walk, &t->now, SETTINGS_UNWIND_DWARF, &s);
	right = s.n_rows == s.n - 1 && s.n <= t->n + 1;
	for (size_t i = 0; right && i < s.n; i++)
		right = s.pcs[i] == expected(t, i);
	if (s.end == SAMPLE_END_COMPLETE) {
		right &= s.n == t->n + 1;
	} else {
		t->cut_by |= 1u << s.end;
		t->n_cut++;
	}
	if (!right && t->n_wrong++ < 3)
		print_wrong(t, &s);
}

/* The frames below main() come from the walker, once: they must end in the program itself. */
static void begin(struct tracee *t)
{
	struct hostwalk_stack s;

	assert_int_equal(hostwalk_new(t->pid, &t->walk), 0);
	hostwalk_walk(t->walk, &t->now, SETTINGS_UNWIND_DWARF, &s);
	assert_int_equal(s.end, SAMPLE_END_COMPLETE);
	assert_in_range(s.n, 2, 8);
	for (size_t i = s.n - 1; i > 0; i--)
		push(t, s.pcs[i], UINT64_MAX, 0);
}

struct zoo_row {
	const char *fixture;
	const char *name;
	size_t depth;	 /* at least */
	uint32_t cut_by; /* permitted ends of truncated stacks */
	size_t wrong;	 /* at most */
};

/* After the frame pointer's restore gcc's table still uses it, for the last two instructions of
 * functions that align their stack. */
#define AFTER_LEAVE 8

static const struct zoo_row zoo_rows[] = {
	{"zoo-pie", "plain", 5, 0, 0},
	{"zoo-pie", "alloca", 5, 0, 0},
	{"zoo-pie", "aligned", 4, 0, AFTER_LEAVE},
	/* __longjmp describes its caller's registers by values outside of the stack. */
	{"zoo-pie", "last_call", 5, 1u << SAMPLE_END_UNSUPPORTED, 0},
	{"zoo-pie", "deep", 400, 0, 0},
	{"zoo-pie", "too_deep", 900, 1u << SAMPLE_END_MAX_FRAMES, 0},
	{"zoo-pie", "library", 9, 0, 0},
	{"zoo-pie", "signal", 8, 0, 0},
	{"zoo-pie", "alt_stack", 8, 0, 0},
	{"zoo-static", "plain", 3, 0, 0},
	{"zoo-static", "aligned", 3, 0, AFTER_LEAVE},
	{"zoo-static", "signal", 6, 0, 0},
	/* The code alone; unknown code ends the stack. */
	{"zoo-nocfi", "plain", 3, 0, 0},
	{"zoo-nocfi", "alloca", 3, 0, 0},
	{"zoo-nocfi", "deep", 400, 0, 0},
	{"zoo-nocfi", "signal", 6, 1u << SAMPLE_END_NO_ROW, 0},
	{"zoo-nocfi", "library", 9, 1u << SAMPLE_END_NO_ROW, 0},
	{"zoo-fp", "plain", 5, 0, 0},
	{"zoo-fp", "aligned", 4, 0, AFTER_LEAVE},
	/* glibc's resolver finds its caller by rbx, known in innermost frames only. */
	{"zoo-lazy", "library", 9, 1u << SAMPLE_END_REGISTER, 0},
};

static void test_steps(void **state)
{
	for (size_t i = 0; i < array_size(zoo_rows); i++) {
		const struct zoo_row *row = &zoo_rows[i];
		struct tracee *t = *state;
		char name[64];

		snprintf(name, sizeof(name), "%s %s", row->fixture, row->name);
		row_begin(name);
		*t = (struct tracee){.pid = start(row->fixture, row->name)};
		assert_true(t->pid > 0);
		assert_true(stopped(t));	    /* by the exec */
		assert_true(go_on(t, PTRACE_CONT)); /* to the first trap */
		begin(t);
		do
			compare(t);
		while (step(t));
		kill(t->pid, SIGKILL);
		waitpid(t->pid, NULL, 0);
		hostwalk_free(t->walk);
		t->walk = NULL;
		print_message("%zu instructions, up to %zu frames, %zu cut, %zu wrong\n",
			      t->n_steps, t->depth + 1, t->n_cut, t->n_wrong);
		assert_true(t->n_steps > 20);
		assert_true(t->depth >= row->depth);
		assert_true(t->n_wrong <= row->wrong);
		assert_int_equal(t->cut_by & ~row->cut_by, 0);
	}
}

/* A place on the stack that looks like a frame record, but its return address is not code: a
 * pointer to something else. */
static uint64_t find_false_record(struct tracee *t)
{
	for (uint64_t at = t->now.sp;; at += 8) {
		const uint64_t word = peek(t, at + 8);

		if (word >= 0x10000 && word < 1ull << 47 && !hostwalk_is_code(t->walk, word - 1))
			return at;
	}
}

/* A table that is wanted and missing: reported in the end and in a flag, and counted; also if the
 * frame pointer's register leads astray. */
static void test_evicted(void **state)
{
	struct tracee *t = *state;
	struct hostwalk_stack s;
	uint64_t uses;

	t->pid = start("zoo-pie", "plain");
	assert_true(t->pid > 0);
	assert_true(stopped(t));
	assert_true(go_on(t, PTRACE_CONT));
	begin(t);
	uses = hostwalk_uses(t->walk, t->now.pc);
	assert_true(uses > 0);
	hostwalk_evict(t->walk, t->now.pc);
	hostwalk_walk(t->walk, &t->now, SETTINGS_UNWIND_DWARF, &s);
	assert_int_equal(s.end, SAMPLE_END_NO_TABLE);
	assert_int_equal(s.flags, SAMPLE_FLAG_NO_TABLE);
	assert_int_equal(s.n, 1);
	assert_int_equal(hostwalk_uses(t->walk, t->now.pc), uses + 1);
	t->now.fp = find_false_record(t);
	hostwalk_walk(t->walk, &t->now, SETTINGS_UNWIND_AUTO, &s);
	assert_int_equal(s.end, SAMPLE_END_NO_TABLE);
	assert_int_equal(s.flags, SAMPLE_FLAG_NO_TABLE);
	assert_int_equal(s.n, 1);
	hostwalk_walk(t->walk, &t->now, SETTINGS_UNWIND_FP, &s);
	assert_int_equal(s.flags, 0);
	assert_int_equal(s.n_rows, 0);
	kill(t->pid, SIGKILL);
	waitpid(t->pid, NULL, 0);
}

static int setup(void **state)
{
	*state = calloc(1, sizeof(struct tracee));
	return *state ? 0 : -1;
}

static int teardown(void **state)
{
	struct tracee *t = *state;

	hostwalk_free(t->walk);
	free(t);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_steps, setup, teardown),
		cmocka_unit_test_setup_teardown(test_evicted, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
