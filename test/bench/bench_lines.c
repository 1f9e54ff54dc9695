// SPDX-License-Identifier: Apache-2.0
/*
 * Distinct cache lines and pages of 4 KiB that one walk touches, by part. At the usual rate the
 * caches are cold, and these two numbers decide the cost of a sample.
 *
 * The walker of bpf/lib runs on the host (support/hostwalk.h) over stacks of real programs, stopped
 * anywhere. It is compiled with the compiler's instrumentation of memory accesses; the functions
 * called at each access are here. The descriptors of maps add nothing: the verifier turns a lookup
 * in an array into the address of the element.
 *
 * With the argument "fixed", the stacks are those of this benchmark's own children. They are the
 * same in each run, and test/bench/counts.py compares their figures between versions.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/nsec.h"
#include "lib/memo.bpf.h"
#include "lib/table_host.h"
#include "lib/trail.bpf.h"
#include "support/burn.h"
#include "support/figure.h"
#include "support/hostwalk.h"
#include "support/stopping.h"

#define LINE_BYTES  64
#define SAMPLES	    300
/* Time of a program to start and get to its work, and between two stops. */
#define START_NS    (3 * NSEC_PER_SEC)
#define INTERVAL_US 10000
#define END_NS	    (3 * NSEC_PER_SEC)

enum part {
	PART_MEMO,
	PART_TRAIL,
	PART_MAPPINGS,
	PART_EXES,
	PART_GROUPS,
	PART_SLOTS,
	PART_IDS,
	PART_RULES,
	PART_RULE_RUNS,
	PART_STATE,
	PART_REGS,
	PART_FRAMES,
	PART_WINDOW,
	PART_STACK,
	PART_OTHER,
	N_PARTS,
};

static const char *const part_names[N_PARTS] = {
	[PART_MEMO] = "memo",
	[PART_TRAIL] = "trail",
	[PART_MAPPINGS] = "mappings",
	[PART_EXES] = "descriptors",
	[PART_GROUPS] = "groups",
	[PART_SLOTS] = "slots",
	[PART_IDS] = "ids",
	[PART_RULES] = "rules",
	[PART_RULE_RUNS] = "rule runs",
	[PART_STATE] = "walk's state",
	[PART_REGS] = "registers",
	[PART_FRAMES] = "frames",
	[PART_WINDOW] = "window",
	[PART_STACK] = "user stack",
	[PART_OTHER] = "other",
};

/* ---------------------------------------------------------------- counting */

/* Touched units of one walk, lines or pages: each as address / size, with its part. */
#define TOUCHED_MAX 16384
struct touched {
	uint64_t numbers[TOUCHED_MAX];
	uint32_t n;
	uint64_t by_part[N_PARTS]; /* of all walks */
};

static struct {
	bool on;
	struct hostwalk_space space;
	const struct hostwalk_read *notes;
	struct touched lines, pages;
} count;

static void touch_one(struct touched *t, uint64_t number, enum part part)
{
	/* From the newest on: most accesses repeat a recent one. */
	for (uint32_t i = t->n; i-- > 0;)
		if (t->numbers[i] == number)
			return;
	if (t->n == TOUCHED_MAX)
		abort();
	t->numbers[t->n++] = number;
	t->by_part[part]++;
}

static void touch(uint64_t at, uint64_t n, enum part part)
{
	for (uint64_t i = at / LINE_BYTES; i <= (at + n - 1) / LINE_BYTES; i++)
		touch_one(&count.lines, i, part);
	for (uint64_t i = at / TABLE_PAGE_BYTES; i <= (at + n - 1) / TABLE_PAGE_BYTES; i++)
		touch_one(&count.pages, i, part);
}

static bool is_in(uint64_t at, const void *array, size_t n, size_t size)
{
	return at - (uint64_t)(uintptr_t)array < n * size;
}

/* The part of offset @off of page space. */
static enum part part_of_page(uint64_t off)
{
	const struct hostwalk_space *s = &count.space;
	const struct table_exe *exe = NULL;
	uint64_t base, groups, slots;

	if (off / TABLE_PAGE_BYTES <= s->n_mappings / PROCESS_MAPPINGS_PER_PAGE)
		return PART_MAPPINGS;
	for (size_t i = 1; i < s->n_exes; i++)
		if ((uint64_t)s->exes[i].table_page * TABLE_PAGE_BYTES <= off)
			exe = &s->exes[i];
	if (!exe)
		return PART_MAPPINGS;
	base = (uint64_t)exe->table_page * TABLE_PAGE_BYTES;
	groups = (exe->n_blocks + TABLE_GROUP_BLOCKS - 1) / TABLE_GROUP_BLOCKS *
		 sizeof(struct table_group);
	slots = s->table_pages[exe->table_page].words[0] & 0xffffffff;
	if (off - base < groups)
		return PART_GROUPS;
	return off - base >= exe->ids && off - base < slots ? PART_IDS : PART_SLOTS;
}

static enum part part_of(uint64_t at)
{
	const struct hostwalk_space *s = &count.space;

	if (is_in(at, s->table_pages, s->n_table_pages, sizeof(*s->table_pages)))
		return part_of_page(at - (uint64_t)(uintptr_t)s->table_pages);
	if (is_in(at, s->memo, 1, sizeof(*s->memo)))
		return PART_MEMO;
	if (is_in(at, s->trail, 1, sizeof(*s->trail)))
		return PART_TRAIL;
	if (is_in(at, s->rules, s->n_rules, sizeof(*s->rules)))
		return PART_RULES;
	if (is_in(at, s->rule_runs, s->n_rule_runs, sizeof(*s->rule_runs)))
		return PART_RULE_RUNS;
	if (is_in(at, s->exes, s->n_exes, sizeof(*s->exes)))
		return PART_EXES;
	if (is_in(at, s->state, s->state_bytes, 1))
		return PART_STATE;
	if (is_in(at, s->regs, s->regs_bytes, 1))
		return PART_REGS;
	if (is_in(at, s->frames, HOSTWALK_SLOTS, sizeof(uint64_t)))
		return PART_FRAMES;
	if (is_in(at, s->window, s->window_bytes, 1))
		return PART_WINDOW;
	return PART_OTHER;
}

/* The notes of hostwalk.c about the walk are no part of it. */
static bool is_note(uint64_t at)
{
	return is_in(at, count.notes, HOSTWALK_READS, sizeof(*count.notes));
}

static void access_at(uint64_t at, uint64_t n)
{
	if (count.on && n && !is_note(at))
		touch(at, n, part_of(at));
}

#define ACCESS(name, n)                                  \
	void __tsan_##name(void *at);                    \
	void __tsan_##name(void *at)                     \
	{                                                \
		access_at((uint64_t)(uintptr_t)at, (n)); \
	}
#define ACCESS_RANGE(name)                             \
	void __tsan_##name(void *at, uint64_t n);      \
	void __tsan_##name(void *at, uint64_t n)       \
	{                                              \
		access_at((uint64_t)(uintptr_t)at, n); \
	}
ACCESS(read1, 1)
ACCESS(read2, 2)
ACCESS(read4, 4)
ACCESS(read8, 8)
ACCESS(read16, 16)
ACCESS(write1, 1)
ACCESS(write2, 2)
ACCESS(write4, 4)
ACCESS(write8, 8)
ACCESS(write16, 16)
ACCESS(unaligned_read2, 2)
ACCESS(unaligned_read4, 4)
ACCESS(unaligned_read8, 8)
ACCESS(unaligned_read16, 16)
ACCESS(unaligned_write2, 2)
ACCESS(unaligned_write4, 4)
ACCESS(unaligned_write8, 8)
ACCESS(unaligned_write16, 16)
ACCESS_RANGE(read_range)
ACCESS_RANGE(write_range)

void __tsan_init(void);
void __tsan_init(void)
{
}

void __tsan_func_entry(void *from);
void __tsan_func_entry(void *from)
{
	(void)from;
}

void __tsan_func_exit(void);
void __tsan_func_exit(void)
{
}

/* ---------------------------------------------------------------- programs */

struct program {
	const char *name;
	const char *command; /* runs until it is killed; ends at once where a program is missing */
	enum burn_kind kind; /* without a command: a child of this kind */
};

static const struct program programs[] = {
	{.name = "C++ (cc1plus)",
	 .command =
		 "command -v g++ && while :; do echo '#include <regex>\nstd::regex r(\"a|b\");' |"
		 " g++ -O2 -x c++ -S -o /dev/null -; done"},
	{.name = "node",
	 .command = "exec node -e 'for (let a = [...Array(999).keys()];;)"
		    " a = JSON.parse(JSON.stringify(a)).sort((x, y) => y - x)'"},
	{.name = "Python",
	 .command = "exec python3 -c 'import json, re\nwhile 1: re.findall(\"a+b\","
		    " json.dumps(json.loads(json.dumps(list(range(9999))))))'"},
	{.name = "Go (compile)",
	 .command = "export GOCACHE=$(mktemp -d) && trap 'rm -rf $GOCACHE' EXIT && command -v go &&"
		    " while :; do go build -a std; done"},
};

static const struct program fixed[] = {
	{.name = "few frames", .kind = BURN_COLD_FEW},
	{.name = "32 frames", .kind = BURN_COLD},
	{.name = "512 frames", .kind = BURN_DEEP},
};

/* In a separate process group, so that the test can end the whole group. */
static pid_t start(const char *command)
{
	pid_t pid = fork();

	if (pid == 0) {
		setpgid(0, 0);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr))
			_exit(1);
		execl("/bin/sh", "sh", "-c", command, (char *)NULL);
		_exit(1);
	}
	if (pid > 0)
		setpgid(pid, pid);
	return pid;
}

struct tally {
	uint64_t walks;
	uint64_t whole;
	uint64_t frames;
	uint64_t rows;
};

/* Walk the stopped thread once. A walker belongs to a program of a process: @h is made again for
 * another thread. */
static void walk(struct hostwalk **h, pid_t *of, pid_t tid, struct tally *tally)
{
	struct hostwalk_stack stack;
	struct hostwalk_regs regs;
	const struct hostwalk_read *reads;
	size_t n;

	if (*of != tid) {
		hostwalk_free(*h);
		*h = NULL;
		*of = tid;
		if (hostwalk_new(tid, h))
			return;
	}
	if (!*h || hostwalk_regs(tid, &regs))
		return;
	count.space = hostwalk_space(*h);
	count.notes = hostwalk_reads(*h, &n);
	count.lines.n = 0;
	count.pages.n = 0;
	count.on = true;
	hostwalk_walk(*h, &regs, SETTINGS_UNWIND_AUTO, &stack);
	count.on = false;
	reads = hostwalk_reads(*h, &n);
	for (size_t i = 0; i < n; i++) {
		touch(reads[i].address, reads[i].n_bytes, PART_STACK);
		touch((uint64_t)(uintptr_t)count.space.window, reads[i].n_bytes, PART_WINDOW);
	}
	tally->walks++;
	tally->whole += stack.end == 0;
	tally->frames += stack.n;
	tally->rows += stack.n_rows;
}

static void sample_all(pid_t pid, struct tally *tally)
{
	pid_t tids[STOPPING_THREADS_MAX], of = 0;
	struct hostwalk *h = NULL;
	struct stopping s;

	for (int i = 0; i < SAMPLES * 4 && tally->walks < SAMPLES; i++) {
		size_t n = stopping_running(pid, true, tids);

		usleep(INTERVAL_US);
		/* The same thread again, as long as it runs. */
		for (size_t k = 0; k < n; k++)
			if (tids[k] == of)
				tids[0] = of;
		if (!n || !stopping_begin(&s, tids[0]))
			continue;
		walk(&h, &of, tids[0], tally);
		stopping_end(&s);
	}
	hostwalk_free(h);
}

static void report(const struct program *p, const struct tally *t)
{
	const double n = t->walks ? (double)t->walks : 1;
	double lines = 0, pages = 0;

	printf("lines: %s: %" PRIu64 " stacks, %.1f frames, %.1f by tables, %.0f %% whole\n",
	       p->name, t->walks, (double)t->frames / n, (double)t->rows / n,
	       100 * (double)t->whole / n);
	for (size_t i = 0; i < N_PARTS; i++) {
		printf("  %-24s %6.1f lines %6.1f pages\n", part_names[i],
		       (double)count.lines.by_part[i] / n, (double)count.pages.by_part[i] / n);
		lines += (double)count.lines.by_part[i] / n;
		pages += (double)count.pages.by_part[i] / n;
	}
	printf("  %-24s %6.1f lines %6.1f pages\n", "all", lines, pages);
	figure(lines, "lines", "%s", p->name);
}

static void measure(const struct program *p)
{
	struct tally tally = {0};
	pid_t pid;
	int status;

	(void)fflush(stdout);
	pid = p->command ? start(p->command) : burn_start(p->kind);
	if (pid > 0 && !p->command)
		burn_go(pid);

	memset(count.lines.by_part, 0, sizeof(count.lines.by_part));
	memset(count.pages.by_part, 0, sizeof(count.pages.by_part));
	usleep(START_NS / 1000);
	if (pid < 0 || waitpid(pid, &status, WNOHANG) == pid) {
		printf("lines: %s: not here\n", p->name);
		return;
	}
	sample_all(pid, &tally);
	if (p->command) {
		kill(-pid, SIGTERM);
		usleep(END_NS / 1000); /* the shell removes its files */
		kill(-pid, SIGKILL);
		waitpid(pid, &status, 0);
	} else {
		burn_end(pid);
	}
	report(p, &tally);
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		for (size_t i = 0; i < array_size(programs); i++)
			measure(&programs[i]);
		return 0;
	}
	if (strcmp(argv[1], "fixed") != 0) {
		fprintf(stderr, "usage: bench_lines [fixed]\n");
		return 2;
	}
	/* The same addresses in each run. */
	if (!(personality(0xffffffff) & ADDR_NO_RANDOMIZE)) {
		personality(ADDR_NO_RANDOMIZE);
		execv("/proc/self/exe", argv);
		return 1;
	}
	for (size_t i = 0; i < array_size(fixed); i++)
		measure(&fixed[i]);
	return 0;
}
