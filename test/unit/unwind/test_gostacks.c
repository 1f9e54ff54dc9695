// SPDX-License-Identifier: Apache-2.0
/*
 * Stacks of running Go programs by the rows that goimage makes of them. Threads are stopped
 * anywhere and stepped on for a while, instruction by instruction, so that prologues, epilogues and
 * the inside of what changes stacks come up too. Nobody else tells where the stack ends or who
 * called whom, but the code does: each return address is behind a call, and where that names a
 * function, it is the one of the frame inside. A frame that is left out, or a CFA that is a word
 * off, is seen.
 */
#include "support/test.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "procmap/elffile.h"
#include "support/gofixture.h"
#include "support/goprocess.h"
#include "support/stackref.h"
#include "gofile/gopclntab.h"

/* Stops for each program, more of them in "make check-go", and steps after each. */
#define STOPS	      100
#define STOPS_MANY    500
/* At most, if stacks of some kind have not come up. */
#define STOPS_LAST    2000
#define STEPS	      8
#define THREADS_MAX   64
#define SHOWN	      10
/* Code of a function that is searched for the jump by which it hands on. */
#define JUMPING_BYTES 4096
#if defined(__x86_64__)
#define JUMP_STEP 1
#else
#define JUMP_STEP 4
#endif

struct looker {
	struct goprocess process;
	struct stackref ref;
	struct gopclntab *names;
	const struct stackref_image *go; /* the program */
	uint64_t n_stacks;
	uint64_t n_frames;
	uint64_t n_ends[STACKREF_END_MAX];
	uint64_t n_links;  /* return addresses */
	uint64_t n_direct; /* whose call names the function inside */
	uint64_t n_wrong;  /* names another */
	uint64_t n_no_call;
	uint64_t n_rules[UNWIND_CFA_MAX]; /* frames, innermost ones apart */
	uint64_t n_shown;
};

/* ---------------------------------------------------------------- names */

static const char *name_of(struct looker *l, const struct stackref_frame *f,
			   struct gopclntab_line *line)
{
	if (f->image != l->go || gopclntab_find(l->names, f->vaddr, line) != 0)
		snprintf(line->function, sizeof(line->function), "%s",
			 f->image ? f->image->path : "?");
	else
		/* the physical function */
		for (int i = 0; i < 64 && line->parent_pc >= 0; i++)
			if (gopclntab_find(l->names, line->entry + (uint64_t)line->parent_pc, line))
				break;
	return line->function;
}

static void show(struct looker *l, const struct stackref_frame *frames, size_t n, const char *why)
{
	struct gopclntab_line line;

	if (l->n_shown++ >= SHOWN)
		return;
	print_message("  %s:\n", why);
	for (size_t i = 0; i < n && i < 40; i++)
		print_message("    %#llx sp %#llx %s cfa=%u reg%u%+d %s\n",
			      (unsigned long long)frames[i].vaddr, (unsigned long long)frames[i].sp,
			      frames[i].is_return ? "ret" : "pc ", frames[i].rule.cfa,
			      frames[i].rule.cfa_reg, frames[i].rule.cfa_off,
			      name_of(l, &frames[i], &line));
}

/* ---------------------------------------------------------------- calls */

enum call { CALL_NONE, CALL_INDIRECT, CALL_DIRECT };

/* What kind of call is before a return address; of a direct one, its target. */
static enum call call_before(const struct looker *l, uint64_t pc, uint64_t *ret_target)
{
	uint8_t b[8];
	int32_t rel;

	if (!stackref_read(&l->ref, pc - sizeof(b), b, sizeof(b)))
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

/* Where an instruction that jumps leads, if there is one at @pc. */
static uint64_t jump_target(const struct looker *l, uint64_t pc)
{
	uint8_t b[6] = {0};
	int32_t rel;

	if (!stackref_read(&l->ref, pc, b, sizeof(b)))
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

/* Whether code of @from jumps to where @to begins: what it was called for is done there. */
static bool jumps_on(struct looker *l, const struct gopclntab_line *from,
		     const struct gopclntab_line *to)
{
	static const char *const by_register[] = {"runtime.systemstack", "runtime.reflectcall"};
	uint64_t limit = from->entry + JUMPING_BYTES;

	for (size_t i = 0; i < array_size(by_register); i++)
		if (strcmp(from->function, by_register[i]) == 0)
			return true;
	for (uint64_t vaddr = from->entry; vaddr < limit; vaddr += JUMP_STEP) {
		struct gopclntab_line line;

		if (gopclntab_find(l->names, vaddr, &line) || line.entry != from->entry)
			return false;
		if (jump_target(l, vaddr + l->go->bias) == to->entry + l->go->bias)
			return true;
	}
	return false;
}

/* NULL if @outer can have called @inner, else why not. */
static const char *check_link(struct looker *l, const struct stackref_frame *inner,
			      const struct stackref_frame *outer)
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
	if (inner->rule.cfa == UNWIND_CFA_FP) /* its caller is known to be missing */
		return NULL;
	if (inner->image != l->go || outer->image != l->go ||
	    gopclntab_find(l->names, pc - l->go->bias, &target) ||
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

/* Returns where the thread is. */
static uint64_t look(struct looker *l, pid_t tid)
{
	static struct stackref_frame frames[STACKREF_FRAMES_MAX];
	struct stackref_regs regs;
	enum stackref_end end;
	const char *why;
	size_t n = 0;

	stackref_registers(tid, &regs);
	end = stackref_unwind(&l->ref, &regs, frames, &n);
	l->n_stacks++;
	l->n_frames += n;
	l->n_ends[end]++;
	if (end != STACKREF_COMPLETE)
		show(l, frames, n, stackref_end_name(end));
	for (size_t i = 0; i + 1 < n; i++) {
		l->n_rules[frames[i].rule.cfa]++;
		why = check_link(l, &frames[i], &frames[i + 1]);
		if (why)
			show(l, frames, i + 2, why);
	}
	return regs.pc;
}

/* ---------------------------------------------------------------- stopping */

static size_t list_threads(pid_t pid, pid_t ret[THREADS_MAX])
{
	char path[64];
	struct dirent *e;
	size_t n = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	assert_non_null(dir);
	while ((e = readdir(dir)) && n < THREADS_MAX)
		if (e->d_name[0] != '.')
			ret[n++] = (pid_t)strtol(e->d_name, NULL, 10);
	closedir(dir);
	return n;
}

/* Whether it is on a CPU or wants to be. */
static bool is_running(pid_t tid)
{
	char path[64], line[512] = "", *state;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)tid);
	f = fopen(path, "re");
	if (!f)
		return false;
	if (!fgets(line, sizeof(line), f))
		line[0] = '\0';
	fclose(f);
	state = strrchr(line, ')');
	return state && state[2] == 'R';
}

/* Until it stops. A system call may last: then it is interrupted. SIGCHLD, which is blocked, tells
 * of stops, of this and of others. */
static bool wait_stop(pid_t tid, int *status)
{
	const struct timespec patience = {.tv_nsec = 5000000};
	bool interrupted = false;
	sigset_t child;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	for (;;) {
		pid_t got = waitpid(tid, status, __WALL | WNOHANG);

		if (got != 0)
			return got == tid && WIFSTOPPED(*status);
		if (sigtimedwait(&child, NULL, &patience) > 0 || interrupted)
			continue;
		if (ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) != 0)
			return false;
		interrupted = true;
	}
}

/* Whether the next instruction would store the flag by which it is stepped, and the program restore
 * it when nobody steps it any more. */
static bool stores_flags(const struct looker *l, uint64_t pc)
{
#if defined(__x86_64__)
	uint8_t insn;

	return stackref_read(&l->ref, pc, &insn, 1) && insn == 0x9c; /* pushf */
#else
	return false;
#endif
}

/* One instruction; a signal on the way is passed on with the next one. False if it has gone. */
static bool step_on(pid_t tid, int *sig)
{
	int status;

	if (ptrace(PTRACE_SINGLESTEP, tid, NULL, (void *)(intptr_t)*sig) != 0)
		return false;
	if (!wait_stop(tid, &status))
		return false;
	*sig = WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
	return true;
}

/* Stop one thread, look at its stack, step on and look again. */
static void stop(struct looker *l, pid_t tid)
{
	int status, sig = 0;

	if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) != 0)
		return;
	if (ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) == 0 && wait_stop(tid, &status)) {
		if (status >> 16 == 0) /* on its way to a signal rather than by us */
			sig = WSTOPSIG(status);
		for (int i = 0; i < STEPS; i++)
			if (stores_flags(l, look(l, tid)) || !step_on(tid, &sig))
				break;
	}
	(void)ptrace(PTRACE_DETACH, tid, NULL, (void *)(intptr_t)sig);
}

/* Whether there were stacks of each kind that the program has. */
static bool has_seen_all(const struct looker *l, bool cgo)
{
	return l->n_rules[UNWIND_CFA_SWITCH] > 0 && (!cgo || l->n_rules[UNWIND_CFA_GO_CGO] > 0);
}

static void look_around(struct looker *l, bool cgo)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	int stops = getenv("PODPROF_TEST_GO") ? STOPS_MANY : STOPS;
	pid_t tids[THREADS_MAX];

	for (int done = 0; done < stops || (done < STOPS_LAST && !has_seen_all(l, cgo));) {
		size_t n = list_threads((pid_t)l->process.id.pid, tids);

		for (size_t i = 0; i < n; i++)
			if (is_running(tids[i])) {
				stop(l, tids[i]);
				done++;
			}
		nanosleep(&pause, NULL);
	}
}

/* ---------------------------------------------------------------- tests */

static void open_program(struct looker *l, const char *path)
{
	static const char *const args[] = {NULL};
	const struct timespec warm = {.tv_nsec = 300000000};

	sigset_t child;

	goprocess_start(&l->process, path, args, NULL);
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	assert_int_equal(sigprocmask(SIG_BLOCK, &child, NULL), 0);
	nanosleep(&warm, NULL);
	stackref_open(&l->ref, (pid_t)l->process.id.pid);
	for (size_t i = 0; i < l->ref.n && !l->go; i++)
		if (gopclntab_open(l->ref.images[i].file, &l->names) == 0)
			l->go = &l->ref.images[i];
	assert_non_null(l->go);
}

static void close_program(struct looker *l)
{
	sigset_t child;

	gopclntab_free(l->names);
	stackref_close(&l->ref);
	goprocess_stop(&l->process);
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	assert_int_equal(sigprocmask(SIG_UNBLOCK, &child, NULL), 0);
}

static void report(const struct looker *l)
{
	print_message("  %llu stacks of %.1f frames, %.3f %% complete; %llu return addresses, "
		      "%llu behind direct calls, %llu wrong; %llu switches, %llu calls of C, "
		      "%llu signals\n",
		      (unsigned long long)l->n_stacks, (double)l->n_frames / (double)l->n_stacks,
		      100.0 * (double)l->n_ends[STACKREF_COMPLETE] / (double)l->n_stacks,
		      (unsigned long long)l->n_links, (unsigned long long)l->n_direct,
		      (unsigned long long)l->n_wrong + l->n_no_call,
		      (unsigned long long)l->n_rules[UNWIND_CFA_SWITCH],
		      (unsigned long long)l->n_rules[UNWIND_CFA_GO_CGO],
		      (unsigned long long)l->n_rules[UNWIND_CFA_SIGNAL]);
	for (int i = STACKREF_COMPLETE + 1; i < STACKREF_END_MAX; i++)
		if (l->n_ends[i])
			print_message("  %s: %llu\n", stackref_end_name(i),
				      (unsigned long long)l->n_ends[i]);
}

static void test_program(const char *go, const char *variant)
{
	_cleanup_(freep) char *path = gofixture_build("test/fixtures/go/stacks", go, variant);
	bool cgo = strcmp(variant, "cgo") == 0;
	struct looker l = {0};
	uint64_t spared;

	row_begin(path);
	open_program(&l, path);
	look_around(&l, cgo);
	report(&l);
	close_program(&l);
	/* Not 0: while a thread is on the system stack, the collector may move the goroutine's,
	 * and the frame pointer leads to where that was: one of some 4,000 stops. */
	spared = l.n_stacks / 100 + (uint64_t)2 * STEPS;
	assert_in_range(l.n_stacks - l.n_ends[STACKREF_COMPLETE], 0, spared);
	assert_in_range(l.n_wrong + l.n_no_call, 0, spared);
	/* otherwise the program has not shown what it is for */
	assert_true(l.n_direct > l.n_stacks);
	assert_true(has_seen_all(&l, cgo));
}

static void stacks_are_complete(void **state)
{
	static const char *const variants[] = {"default", "cgo"};
	const char *gos[GOFIXTURE_GOS_MAX];
	size_t n = gofixture_gos(gos);

	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < array_size(variants); j++)
			test_program(gos[i], variants[j]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stacks_are_complete),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
