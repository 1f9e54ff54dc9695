// SPDX-License-Identifier: Apache-2.0
/* The walk by unwind tables in the real kernel: programs without frame pointers have whole stacks
 * of the right functions as soon as the walker knows them. */
#include "support/test.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/nsec.h"
#include "base/root.h"
#include "elf/elffile.h"
#include "profile/oncpu.h"
#include "shared/sample.h"
#include "support/fixture.h"
#include "support/hostwalk.h"
#include "support/kernelwalk.h"
#include "symbolize/symtab.h"

/* A prime, and high enough for meaningful numbers from a short run. */
#define RATE 997

DEFINE_CLEANUP(struct hostwalk *, hostwalk_freep, hostwalk_free);

struct unwound {
	struct root proc, sys;
	struct oncpu *oc;
	pid_t child;
	int fd;
	struct elffile *file;
	struct symtab *symbols; /* of a program at its linked addresses; or NULL */
	uint64_t all;
	uint64_t complete;
	uint64_t by_end[SAMPLE_END_MAX];
	uint64_t unknown; /* with a flag */
	uint64_t odd;	  /* complete, but impossible stacks */
	uint64_t named;
	uint64_t by_rows; /* all frames but the innermost */
	uint64_t exec_id;
	uint64_t start_boottime_ns;
	size_t deepest;
};

static bool is_function(const struct unwound *u, uint64_t pc, const char *name)
{
	struct symtab_symbol symbol;

	return !symtab_find(u->symbols, pc, &symbol) && strcmp(symbol.name, name) == 0;
}

/* zoo_leaf() is called by zoo_saves() in this program, and everything is main() or called by it. */
static bool is_named_right(const struct unwound *u, const struct sample *s)
{
	bool in_main = is_function(u, s->user[0], "main");

	for (size_t i = 1; i < s->n_user; i++)
		in_main |= is_function(u, s->user[i] - 1, "main");
	if (is_function(u, s->user[0], "zoo_leaf") && !is_function(u, s->user[1] - 1, "zoo_saves"))
		return false;
	return in_main && is_function(u, s->user[s->n_user - 1] - 1, "_start");
}

static void show(const struct unwound *u, const struct sample *s)
{
	struct symtab_symbol symbol;

	print_message("odd:");
	for (size_t i = 0; i < s->n_user; i++)
		print_message(" %jx %s", (uintmax_t)s->user[i],
			      symtab_find(u->symbols, s->user[i] - (i > 0), &symbol) ? "?"
										     : symbol.name);
	print_message("\n");
}

static void take(void *ctx, const struct sample *s)
{
	struct unwound *u = ctx;

	if ((pid_t)s->pid.pid != u->child)
		return;
	u->exec_id = s->exec_id;
	u->start_boottime_ns = s->start_boottime_ns;
	u->all += s->count;
	u->by_end[s->end] += s->count;
	u->unknown += s->flags ? s->count : 0;
	u->by_rows += s->n_rows && s->n_rows + 1 == s->n_user ? s->count : 0;
	if (s->n_user > u->deepest)
		u->deepest = s->n_user;
	if (!u->symbols || s->end != SAMPLE_END_COMPLETE)
		return;
	if (is_named_right(u, s)) {
		u->named += s->count;
		return;
	}
	u->odd += s->count;
	show(u, s);
}

static void drain(struct unwound *u)
{
	do {
		assert_int_equal(oncpu_tick(u->oc, take, u), 0);
		usleep(1000);
	} while (oncpu_interval_ns(u->oc) <= 10 * NSEC_PER_MSEC);
}

/* Forget the child's samples so far. */
static void forget(struct unwound *u)
{
	drain(u);
	u->all = u->unknown = u->odd = u->named = u->by_rows = 0;
	memset(u->by_end, 0, sizeof(u->by_end));
	u->deepest = 0;
}

static int setup(void **state)
{
	struct unwound *u = calloc(1, sizeof(*u));

	*state = u;
	return !u || root_open("/proc", &u->proc) || root_open("/sys", &u->sys);
}

static int teardown(void **state)
{
	struct unwound *u = *state;

	if (u->child) {
		kill(u->child, SIGKILL);
		waitpid(u->child, NULL, 0);
	}
	oncpu_free(u->oc);
	symtab_free(u->symbols);
	elffile_free(u->file);
	if (u->fd > 0)
		close(u->fd);
	root_deinit(&u->proc);
	root_deinit(&u->sys);
	free(u);
	return 0;
}

/* Until the child has had so much more of a CPU. */
static void run_for(const struct unwound *u, uint64_t cpu_ns)
{
	clockid_t clock;
	uint64_t until;

	assert_int_equal(clock_getcpuclockid(u->child, &clock), 0);
	for (until = nsec_read(clock) + cpu_ns; nsec_read(clock) < until;)
		usleep(10000);
}

static void start(struct unwound *u, const char *fixture, const char *which)
{
	char path[FIXTURE_PATH_MAX];

	fixture_path(fixture, path);
	u->child = fork();
	if (u->child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execl(path, "zoo", "spin", which, NULL);
		_exit(127);
	}
	assert_true(u->child > 0);
}

static void sample(struct unwound *u, enum settings_unwind unwind)
{
	const struct oncpu_opts opts = {.rate_hz = RATE,
					.kernel_stacks = true,
					.unwind = unwind,
					.proc = &u->proc,
					.sys = &u->sys};
	struct bpfobj_why why = {""};

	if (oncpu_new(&opts, &why, &u->oc))
		fail_msg("no sampler: %s", why.text);
}

static void read_symbols(struct unwound *u, const char *fixture)
{
	char path[FIXTURE_PATH_MAX];

	u->fd = open(fixture_path(fixture, path), O_RDONLY | O_CLOEXEC);
	assert_true(u->fd >= 0);
	assert_int_equal(elffile_open(u->fd, &u->file), 0);
	assert_int_equal(symtab_open(u->file, &u->symbols), 0);
}

/* Publish the child to the walker, by the identity from samples. */
static void introduce(struct unwound *u)
{
	_cleanup_(hostwalk_freep) struct hostwalk *walk = NULL;
	struct bpfobj_unwind to = oncpu_unwind(u->oc);
	struct hostwalk_space space;

	run_for(u, NSEC_PER_SEC / 10);
	drain(u);
	assert_true(u->all > 0);
	assert_int_equal(u->unknown, u->all);
	assert_int_equal(hostwalk_new(u->child, &walk), 0);
	space = hostwalk_space(walk);
	assert_int_equal(kernelwalk_publish(&to, &space), 0);
	assert_int_equal(kernelwalk_record(&to, &space, (uint32_t)u->child, u->start_boottime_ns,
					   u->exec_id),
			 0);
	forget(u);
}

struct unwind_row {
	const char *fixture;
	const char *which;
	bool named;
	size_t deepest;
	enum sample_end end; /* of nearly all */
};

static const struct unwind_row unwind_rows[] = {
	{"zoo-static", "plain", true, 6, SAMPLE_END_COMPLETE},
	{"zoo-pie", "plain", false, 6, SAMPLE_END_COMPLETE},
	{"zoo-pie", "library", false, 8, SAMPLE_END_COMPLETE},
	{"zoo-pie", "alt_stack", false, 8, SAMPLE_END_COMPLETE},
	{"zoo-pie", "deep", false, 404, SAMPLE_END_COMPLETE},
	{"zoo-pie", "too_deep", false, 512, SAMPLE_END_MAX_FRAMES},
};

static void test_rows(void **state)
{
	for (size_t i = 0; i < array_size(unwind_rows); i++) {
		const struct unwind_row *row = &unwind_rows[i];
		struct unwound *u = *state;

		row_begin(row->which);
		start(u, row->fixture, row->which);
		sample(u, SETTINGS_UNWIND_AUTO);
		introduce(u);
		if (row->named)
			read_symbols(u, row->fixture);
		run_for(u, 3 * NSEC_PER_SEC / 10);
		drain(u);
		print_message("%ju samples, %ju whole, %ju by rows, %zu frames\n",
			      (uintmax_t)u->all, (uintmax_t)u->by_end[SAMPLE_END_COMPLETE],
			      (uintmax_t)u->by_rows, u->deepest);
		assert_true(u->all > 10);
		/* a stack that is too deep is not so on the way down */
		assert_true(u->by_end[row->end] * 100 >= u->all * 95);
		assert_true(u->by_rows * 100 >= u->all * 98);
		assert_int_equal(u->unknown, 0);
		assert_int_equal(u->odd, 0);
		assert_true(u->deepest >= row->deepest);
		if (row->named)
			assert_true(u->named * 100 >= u->all * 98);
		assert_int_equal(teardown(state), 0);
		assert_int_equal(setup(state), 0);
	}
}

/* Another program in the same process: the old record is no longer used. */
static void test_exec(void **state)
{
	struct unwound *u = *state;
	struct bpfobj_unwind to;
	struct hostwalk_space space = {.n_mappings = 1};

	start(u, "zoo-pie", "plain");
	sample(u, SETTINGS_UNWIND_AUTO);
	introduce(u);
	to = oncpu_unwind(u->oc);
	assert_int_equal(kernelwalk_record(&to, &space, (uint32_t)u->child, u->start_boottime_ns,
					   u->exec_id - 1),
			 0);
	forget(u);
	run_for(u, NSEC_PER_SEC / 10);
	drain(u);
	assert_true(u->all > 0);
	assert_int_equal(u->unknown, u->all);
	assert_int_equal(u->by_rows, 0);
}

/* Without tables, and where nothing but tables may be used. */
static void test_modes(void **state)
{
	struct unwound *u = *state;

	start(u, "zoo-pie", "plain");
	sample(u, SETTINGS_UNWIND_DWARF);
	run_for(u, NSEC_PER_SEC / 10);
	drain(u);
	assert_true(u->all > 0);
	assert_int_equal(u->deepest, 1);
	assert_int_equal(u->by_end[SAMPLE_END_NO_PROCESS], u->all);
	oncpu_free(u->oc);
	sample(u, SETTINGS_UNWIND_FP);
	forget(u);
	run_for(u, NSEC_PER_SEC / 10);
	drain(u);
	assert_true(u->all > 0);
	assert_int_equal(u->unknown, 0);
	assert_int_equal(u->by_end[SAMPLE_END_NO_PROCESS], 0);
	assert_int_equal(u->by_rows, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_rows),
		TEST(test_exec),
		TEST(test_modes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
