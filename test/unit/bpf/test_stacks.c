// SPDX-License-Identifier: Apache-2.0
/*
 * The stack oracle (support/stackoracle.h) over the programs of test/fixtures/stacks that every
 * machine can build; "make check-stacks" is more thorough. The stops are at random places, so the
 * rows have bounds valid anywhere.
 */
#include "support/test.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "profile/sample.h"
#include "support/fixture.h"
#include "support/stackoracle.h"

#define STOPS 40
#define STEPS 3

struct program {
	const char *fixture;
	const char *kind;
	uint64_t depth; /* frames, at least, of the deepest stack */
	/* permitted number in 1,000 stacks that are truncated or, where the code's own table is
	 * wrong, have a wrong frame */
	unsigned int per_1000;
};

/* The first call of a function binds the function (glibc's resolver finds its caller by rbx), and
 * gcc's tables are wrong for an instruction or two after aligning the stack. */
#define RARELY	 20
/*
 * glibc's swapcontext has loaded the other stack's pointer and does not describe this for some ten
 * instructions. libgcc has changed its saved registers at the jump to a handler. Programs that do
 * nothing else are in this code all the time.
 */
#define SWAPPING 250
#define THROWING 100
/* Deeper than the limit: truncated stacks with right frames. */
#define ALWAYS	 1000

static const struct program programs[] = {
	{"work-O2", "registers", 7, RARELY},   {"work-O2", "calls", 5, RARELY},
	{"work-O3", "library", 6, RARELY},     {"work-static-pie", "strings", 4, RARELY},
	{"work-static", "clock", 4, RARELY},   {"work-O2", "signals", 8, RARELY},
	{"work-O3", "deep", 490, RARELY},      {"work-O2", "deeper", 512, ALWAYS},
	{"work-O2", "coroutine", 4, SWAPPING}, {"work-O2", "threads", 4, RARELY},
	{"work-O2", "vfork", 5, RARELY},       {"cxxwork-O2", "", 8, THROWING},
	{"cxxwork-static", "", 8, THROWING},
};

/* After the start of main(): the way to main() is another matter. */
static pid_t start(const struct program *p)
{
	char path[FIXTURE_PATH_MAX], ready[5];
	int out[2];
	pid_t pid;

	fixture_path(p->fixture, path);
	assert_int_equal(pipe(out), 0);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(out[1], STDOUT_FILENO);
		execl(path, p->fixture, p->kind, NULL);
		_exit(127);
	}
	close(out[1]);
	assert_int_equal(read(out[0], ready, sizeof(ready)), sizeof(ready));
	close(out[0]);
	return pid;
}

static void stacks_are_equal(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(programs); i++) {
		const struct program *p = &programs[i];
		struct stackoracle_report r = {0};
		struct stackoracle_opts opts = {
			.pid = start(p),
			.family = strcmp(p->kind, "vfork") == 0,
			.n_stops = STOPS,
			.n_steps = STEPS,
			.n_shown = p->per_1000 < ALWAYS ? 3 : 0,
			.to = stdout,
		};
		char name[64];
		uint64_t spared;

		snprintf(name, sizeof(name), "%s %s", p->fixture, p->kind);
		row_begin(name);
		assert_true(opts.pid > 0);
		assert_int_equal(stackoracle_run(&opts, &r), 0);
		kill(opts.pid, SIGKILL);
		waitpid(opts.pid, NULL, 0);
		print_message("%" PRIu64 " stacks, up to %" PRIu64 " frames, %" PRIu64
			      " complete, %" PRIu64 " different\n",
			      r.n_stacks, r.depth, r.n_complete, r.n_different);
		spared = (r.n_stacks * p->per_1000 + 999) / 1000;
		assert_true(r.n_stacks >= STOPS);
		assert_true(r.depth >= p->depth);
		assert_in_range(r.n_stacks - r.n_complete, 0, spared);
		if (p->per_1000 == ALWAYS)
			assert_int_equal(r.n_different, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stacks_are_equal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
