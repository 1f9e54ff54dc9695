// SPDX-License-Identifier: Apache-2.0
/*
 * The walker compared with the truth: programs without frame pointers are stepped through,
 * instruction by instruction, and the stack must be right at each (support/callers.h).
 */
#include "support/test.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "shared/sample.h"
#include "support/callers.h"
#include "support/fixture.h"
#include "support/hostwalk.h"

DEFINE_CLEANUP(struct hostwalk *, hostwalk_freep, hostwalk_free);

struct tracee {
	pid_t pid;
	struct hostwalk *walk;
	struct hostwalk_regs now;
	struct callers callers; /* the truth */
	size_t n_steps;
	size_t n_wrong;
	size_t n_cut;	 /* right frames, reported as truncated */
	uint32_t cut_by; /* a bit for each end */
	int sig;	 /* to be delivered */
};

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

#define INSN_TRAP 0xcc /* int3 */

/* One instruction, or the delivery of a signal. False at the second trap. */
static bool step(struct tracee *t)
{
	const struct hostwalk_regs before = t->now;
	const int sig = t->sig;

	if ((callers_peek(&t->callers, before.pc) & 0xff) == INSN_TRAP)
		return false;
	assert_true(go_on(t, PTRACE_SINGLESTEP));
	t->n_steps++;
	if (sig)
		callers_signalled(&t->callers, &t->now);
	else if (!t->sig)
		callers_follow(&t->callers, &before, &t->now);
	return true;
}

/* ---------------------------------------------------------------- the walker's result */

static void print_wrong(const struct tracee *t, const struct hostwalk_stack *s)
{
	print_message("step %zu: end %u, %zu frames of %zu\n", t->n_steps, s->end, s->n,
		      t->callers.n + 1);
	for (size_t i = 0; i <= t->callers.n && i < 8; i++)
		print_message("  %12jx  %12jx\n", (uintmax_t)callers_word(&t->callers, &t->now, i),
			      (uintmax_t)(i < s->n ? s->pcs[i] : 0));
}

static void compare(struct tracee *t)
{
	struct hostwalk_stack s;
	bool right;

	hostwalk_walk(t->walk, &t->now, SETTINGS_UNWIND_DWARF, &s);
	right = s.n_rows == s.n - 1 && s.n <= t->callers.n + 1;
	for (size_t i = 0; right && i < s.n; i++)
		right = s.pcs[i] == callers_word(&t->callers, &t->now, i);
	if (s.end == SAMPLE_END_COMPLETE) {
		right &= s.n == t->callers.n + 1;
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
		callers_push(&t->callers, s.pcs[i]);
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
		t->callers.tid = t->pid;
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
			      t->n_steps, t->callers.depth + 1, t->n_cut, t->n_wrong);
		assert_true(t->n_steps > 20);
		assert_true(t->callers.depth >= row->depth);
		assert_true(t->n_wrong <= row->wrong);
		assert_int_equal(t->cut_by & ~row->cut_by, 0);
	}
}

/* A place on the stack that looks like a frame record, but its return address is not code: a
 * pointer to something else. */
static uint64_t find_false_record(struct tracee *t)
{
	for (uint64_t at = t->now.sp;; at += 8) {
		const uint64_t word = callers_peek(&t->callers, at + 8);

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

	t->pid = t->callers.tid = start("zoo-pie", "plain");
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
