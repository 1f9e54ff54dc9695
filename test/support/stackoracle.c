// SPDX-License-Identifier: Apache-2.0
#include "support/stackoracle.h"

#include <elfutils/libdwfl.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "profile/sample.h"
#include "support/hostwalk.h"
#include "support/stopping.h"

#define FRAMES	    1024
#define PAUSE_NS    300000  /* at least, between stops */
#define PAUSE_MORE  2000000 /* and up to so much more */
#define IDLE_LOOKS  20000   /* consecutive looks without a running thread */
#define SHOWN	    24	    /* printed frames of a stack */
#define REASON_SIZE 80

/* libdwfl's stack. */
struct theirs {
	uint64_t pcs[FRAMES]; /* in the walker's form */
	size_t n;
	size_t n_known; /* frames found by unwind tables */
	bool ended;	/* at the stack's end, not by an error */
};

struct looker {
	const struct stackoracle_opts *opts;
	struct stackoracle_report *report;
	Dwfl *dwfl;
	struct hostwalk *walk;
	uint64_t code; /* hash of the mapped code */
	uint64_t random;
	unsigned int n_shown;
	struct theirs theirs;
	struct hostwalk_stack ours;
};

static uint64_t next_random(struct looker *l)
{
	l->random ^= l->random << 13;
	l->random ^= l->random >> 7;
	l->random ^= l->random << 17;
	return l->random;
}

/* ---------------------------------------------------------------- mappings */

/* A foreign program may map more code at any time. */
static uint64_t hash_code(pid_t pid)
{
	char path[64], line[4096];
	uint64_t hash = 14695981039346656037ull;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		const char *perms = strchr(line, ' ');

		for (const char *c = line; perms && perms[3] == 'x' && *c; c++)
			hash = (hash ^ (unsigned char)*c) * 1099511628211ull;
	}
	if (f)
		fclose(f);
	return hash;
}

/* Do not look for separate debug information: libdwfl might fetch the file from the network. */
static int no_debuginfo(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base,
			const char *file, const char *link, GElf_Word crc, char **ret)
{
	(void)module, (void)data, (void)name, (void)base;
	(void)file, (void)link, (void)crc, (void)ret;
	return -1;
}

static int open_theirs(struct looker *l)
{
	static const Dwfl_Callbacks callbacks = {
		.find_elf = dwfl_linux_proc_find_elf,
		.find_debuginfo = no_debuginfo,
	};

	dwfl_end(l->dwfl);
	l->dwfl = dwfl_begin(&callbacks);
	if (!l->dwfl)
		return -ENOMEM;
	if (dwfl_linux_proc_report(l->dwfl, l->opts->pid) != 0 ||
	    dwfl_report_end(l->dwfl, NULL, NULL) != 0 ||
	    dwfl_linux_proc_attach(l->dwfl, l->opts->pid, true) != 0)
		return -ESRCH;
	return 0;
}

/* While a thread is stopped. */
static int refresh(struct looker *l)
{
	const uint64_t code = hash_code(l->opts->pid);
	int r;

	if (l->walk && code == l->code)
		return 0;
	l->code = code;
	hostwalk_free(l->walk);
	l->walk = NULL;
	r = hostwalk_new(l->opts->pid, &l->walk);
	return r ? r : open_theirs(l);
}

/* ---------------------------------------------------------------- one stack */

/* Whether unwind tables say how to go on from @pc. */
static bool has_tables(Dwfl_Module *module, Dwarf_Addr pc)
{
	Dwarf_CFI *cfi[2] = {NULL, NULL};
	Dwarf_Addr bias[2] = {0, 0};

	if (!module)
		return false;
	cfi[0] = dwfl_module_eh_cfi(module, &bias[0]);
	cfi[1] = dwfl_module_dwarf_cfi(module, &bias[1]);
	for (int i = 0; i < 2; i++) {
		Dwarf_Frame *frame;

		if (cfi[i] && dwarf_cfi_addrframe(cfi[i], pc - bias[i], &frame) == 0) {
			free(frame);
			return true;
		}
	}
	return false;
}

/* Whether libdwfl can know the caller of a frame at @pc. */
static bool is_known(const struct looker *l, uint64_t pc)
{
	struct unwind_rule rule;

	if (!has_tables(dwfl_addrmodule(l->dwfl, pc), pc))
		return false;
	if (!l->opts->go || !hostwalk_rule(l->walk, pc, &rule))
		return true;
	return rule.cfa == UNWIND_CFA_REG || rule.cfa == UNWIND_CFA_PLT ||
	       rule.cfa == UNWIND_CFA_DEREF || rule.cfa == UNWIND_CFA_FP;
}

/* Go's signal frames, as take_frame() has others. */
static void mend_go(struct looker *l)
{
	struct theirs *t = &l->theirs;
	struct unwind_rule rule;

	for (size_t i = 1; i < t->n; i++)
		if (hostwalk_rule(l->walk, t->pcs[i] - 1, &rule) && rule.cfa == UNWIND_CFA_SIGNAL &&
		    hostwalk_rule(l->walk, t->pcs[i] - 2, &rule) &&
		    rule.cfa !=
			    UNWIND_CFA_SIGNAL) /* a signal frame's function begins one byte early */
			t->pcs[i]++;
}

/* For libdwfl a signal frame and its caller have exact pcs, not return addresses. The walker's
 * return addresses are always after the call, so the comparison subtracts one. */
static int take_frame(Dwfl_Frame *frame, void *arg)
{
	struct theirs *t = arg;
	bool is_place;
	Dwarf_Addr pc;

	if (t->n >= FRAMES || !dwfl_frame_pc(frame, &pc, &is_place))
		return DWARF_CB_ABORT;
	t->pcs[t->n] = pc + (t->n && is_place);
	t->n++;
	return DWARF_CB_OK;
}

static void unwind_theirs(struct looker *l, pid_t tid)
{
	struct theirs *t = &l->theirs;

	t->n = 0;
	t->ended = dwfl_getthread_frames(l->dwfl, tid, take_frame, t) == 0;
	if (l->opts->go)
		mend_go(l);
	t->n_known = t->n ? 1 : 0;
	while (t->n_known < t->n && is_known(l, t->pcs[t->n_known - 1] - (t->n_known > 1)))
		t->n_known++;
	/* Some outermost functions are not marked as such. */
	for (size_t i = 1; i < t->n; i++)
		if (!hostwalk_is_code(l->walk, t->pcs[i] - 1)) {
			t->n = i;
			t->n_known = t->n_known < i ? t->n_known : i;
			t->ended = false;
		}
}

static size_t equal_frames(const struct looker *l)
{
	size_t n = 0;

	while (n < l->theirs.n && n < l->ours.n && l->theirs.pcs[n] == l->ours.pcs[n])
		n++;
	return n;
}

static void print_pc(const struct looker *l, char whose, uint64_t pc, size_t i)
{
	Dwfl_Module *m = dwfl_addrmodule(l->dwfl, pc - !!i);
	const char *file = NULL, *name = m ? dwfl_module_addrname(m, pc - !!i) : NULL;
	Dwarf_Addr start = 0;

	if (m)
		file = dwfl_module_info(m, NULL, &start, NULL, NULL, NULL, NULL, NULL);
	file = file && strrchr(file, '/') ? strrchr(file, '/') + 1 : file;
	fprintf(l->opts->to, "    %c %12" PRIx64 " %s+%" PRIx64 " %s%s\n", whose, pc,
		file ? file : "?", pc - start, name ? name : "",
		whose != '>' && i >= l->theirs.n_known ? " (a guess)" : "");
}

/* Frames: equal, libdwfl's (<), the walker's (>). */
static void show(struct looker *l, const char *why)
{
	if (l->n_shown++ >= l->opts->n_shown)
		return;
	fprintf(l->opts->to, "  %s: ends with %s\n", why, sample_stat_name(l->ours.end));
	for (size_t i = 0; i < SHOWN && (i < l->theirs.n || i < l->ours.n); i++) {
		const bool equal =
			i < l->theirs.n && i < l->ours.n && l->ours.pcs[i] == l->theirs.pcs[i];

		if (i < l->theirs.n)
			print_pc(l, equal ? '=' : '<', l->theirs.pcs[i], i);
		if (i < l->ours.n && !equal)
			print_pc(l, '>', l->ours.pcs[i], i);
	}
}

/* Whether libdwfl's last frame is the outermost one. */
static bool ends_there(const struct looker *l)
{
	const struct theirs *t = &l->theirs;

	return t->ended && t->n_known == t->n && t->n && is_known(l, t->pcs[t->n - 1] - (t->n > 1));
}

static void compare(struct looker *l)
{
	struct stackoracle_report *r = l->report;
	const size_t known = l->theirs.n_known, equal = equal_frames(l);
	const bool complete = l->ours.end == SAMPLE_END_COMPLETE;

	r->n_stacks++;
	r->n_frames += known;
	r->n_equal += equal < known ? equal : known;
	r->n_guesses += l->theirs.n - known;
	r->n_guessed += equal > known ? equal - known : 0;
	r->n_ends[l->ours.end]++;
	if (l->ours.n > r->depth)
		r->depth = l->ours.n;
	if (equal >= known && complete && (l->ours.n == l->theirs.n || !ends_there(l))) {
		r->n_complete++;
		r->n_further += l->ours.n > l->theirs.n;
	} else if ((equal >= known || equal == l->ours.n) && !complete) {
		r->n_short++;
		show(l, "short");
	} else {
		r->n_different++;
		show(l, "different");
	}
}

/* False if the thread cannot be compared. */
static bool look(struct looker *l, pid_t tid)
{
	struct hostwalk_regs regs;

	if (hostwalk_regs(tid, &regs) < 0)
		return false;
	unwind_theirs(l, tid);
	if (l->theirs.n)
		l->theirs.pcs[0] -=
			regs.in_syscall; /* the walker subtracts the system call's instruction */
	hostwalk_walk(l->walk, &regs, SETTINGS_UNWIND_AUTO, &l->ours);
	compare(l);
	return true;
}

/* ---------------------------------------------------------------- many */

static int stop_and_look(struct looker *l, pid_t tid)
{
	struct stopping s;
	int r;

	if (!stopping_begin(&s, tid))
		return 0;
	r = refresh(l);
	if (!r && look(l, tid)) {
		const uint64_t n =
			l->opts->n_steps ? next_random(l) % (2ull * l->opts->n_steps) : 0;

		for (uint64_t i = 0; i < n && stopping_step(&s) && look(l, tid); i++)
			;
		r = 1;
	}
	stopping_end(&s);
	return r;
}

static void pause_random(struct looker *l)
{
	const struct timespec t = {.tv_nsec = PAUSE_NS + (long)(next_random(l) % PAUSE_MORE)};

	nanosleep(&t, NULL);
}

static int run(struct looker *l)
{
	pid_t tids[STOPPING_THREADS_MAX];
	unsigned int idle = 0;

	for (unsigned int done = 0; done < l->opts->n_stops;) {
		size_t n = stopping_running(l->opts->pid, l->opts->family, tids);
		int r;

		if (!n && ++idle > IDLE_LOOKS)
			return -ESRCH;
		if (n) {
			r = stop_and_look(l, tids[next_random(l) % n]);
			if (r < 0)
				return r;
			done += (unsigned int)r;
			idle = r ? 0 : idle + 1;
		}
		if (idle > IDLE_LOOKS)
			return -ESRCH;
		pause_random(l);
	}
	return 0;
}

int stackoracle_run(const struct stackoracle_opts *opts, struct stackoracle_report *report)
{
	_cleanup_(freep) struct looker *l = calloc(1, sizeof(*l));
	int r;

	if (!l)
		return -ENOMEM;
	l->opts = opts;
	l->report = report;
	l->random = 88172645463325252ull;
	r = run(l);
	hostwalk_free(l->walk);
	dwfl_end(l->dwfl);
	return r;
}
