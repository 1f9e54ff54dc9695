// SPDX-License-Identifier: Apache-2.0
/* Recorded stacks (test/data/walk): the walker finds the expected frames. Also invalid files. */
#include "support/test.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "profile/sample.h"
#include "support/walkcase.h"

#define CASES "test/data/walk"

DEFINE_CLEANUP(struct walkcase *, walkcase_freep, walkcase_free);

static void check(const struct walkcase *c, const struct walkcase_stack *stack)
{
	for (size_t i = 0; i < c->n_frames || i < stack->n; i++) {
		const uint64_t want = i < c->n_frames ? c->frames[i].pc : 0;
		const uint64_t got = i < stack->n ? stack->pcs[i] : 0;

		if (want != got)
			print_message("frame %zu: %jx, should be %jx %s\n", i, (uintmax_t)got,
				      (uintmax_t)want, want ? c->frames[i].name : "");
		assert_true(want == got);
	}
	assert_string_equal(sample_stat_name(stack->end), sample_stat_name(c->end));
}

static void run(const char *path)
{
	_cleanup_(walkcase_freep) struct walkcase *c = NULL;
	struct walkcase_stack stack;
	size_t line;
	int r = walkcase_load(path, &c, &line);

	if (r)
		fail_msg("%s:%zu: %s", path, line, walkcase_outcome_name(r));
	walkcase_walk(c, &stack);
	check(c, &stack);
}

static void test_recorded(void **state)
{
	struct dirent *entry;
	DIR *dir = opendir(CASES);
	char path[512];
	size_t n = 0;

	(void)state;
	assert_non_null(dir);
	while ((entry = readdir(dir))) {
		if (!strstr(entry->d_name, ".walk"))
			continue;
		row_begin(entry->d_name);
		snprintf(path, sizeof(path), CASES "/%s", entry->d_name);
		run(path);
		n++;
	}
	closedir(dir);
	assert_true(n >= 4);
}

/* ---------------------------------------------------------------- invalid files */

#define HEAD "machine x86-64\n"
#define TAIL "frame 401000 main\nend ok\n"

struct bad_row {
	const char *name;
	const char *text;
	int outcome;
	size_t line;
};

static const struct bad_row bad_rows[] = {
	{"empty", "", WALKCASE_NOTHING, 0},
	{"no end", HEAD "frame 401000\n", WALKCASE_NOTHING, 0},
	{"no frame", HEAD "end ok\n", WALKCASE_NOTHING, 0},
	{"no machine", "# a comment\nreg rip 401000\n", WALKCASE_MACHINE, 2},
	{"another machine", "machine vax\n", WALKCASE_MACHINE, 1},
	{"two machines", HEAD "machine aarch64\n", WALKCASE_MACHINE, 2},
	{"another word", HEAD "registers rip 401000\n" TAIL, WALKCASE_WORD, 2},
	{"another mode", HEAD "unwind guess\n" TAIL, WALKCASE_NAMED, 2},
	{"another machine's register", HEAD "reg x0 1\n" TAIL, WALKCASE_NAMED, 2},
	{"no register", HEAD "reg\n" TAIL, WALKCASE_NAMED, 2},
	{"no number", HEAD "reg rax\n" TAIL, WALKCASE_NUMBER, 2},
	{"too large a number", HEAD "reg rax 10000000000000000\n" TAIL, WALKCASE_NUMBER, 2},
	{"a number too many", HEAD "reg rax 1 2\n" TAIL, WALKCASE_NUMBER, 2},
	{"half a mapping", HEAD "map 1000 2000\n" TAIL, WALKCASE_NUMBER, 2},
	{"a mapping of nothing", HEAD "map 1000 1000 0 a\n" TAIL, WALKCASE_ORDER, 2},
	{"mappings that overlap", HEAD "map 1000 3000 0 a\nmap 2000 4000 0 a\n" TAIL,
	 WALKCASE_ORDER, 3},
	{"a rule that is none", HEAD "row a 10 20 cfa=rsp\n" TAIL, WALKCASE_RULE, 2},
	{"a row of no image", HEAD "row - 10 20 stop\n" TAIL, WALKCASE_RULE, 2},
	{"a row of nothing", HEAD "row a 10 10 stop\n" TAIL, WALKCASE_ORDER, 2},
	{"rows too far apart", HEAD "row a 10 20 stop\nrow a 20000000000 20000000010 stop\n" TAIL,
	 WALKCASE_TABLE, 0},
	{"a word between words", HEAD "mem 1004 1\n" TAIL, WALKCASE_ORDER, 2},
	{"memory twice", HEAD "mem 1000 1 2\nmem 1008 3\n" TAIL, WALKCASE_ORDER, 3},
	{"memory without address", HEAD "mem\n" TAIL, WALKCASE_NUMBER, 2},
	{"an end that is none", HEAD "frame 1\nend well\n", WALKCASE_NAMED, 3},
	{"a good one", HEAD "reg rip 401000\n" TAIL, 0, 0},
};

static void test_bad(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(bad_rows); i++) {
		_cleanup_(walkcase_freep) struct walkcase *c = NULL;
		const struct bad_row *row = &bad_rows[i];
		int fd = memfd_create("walkcase", MFD_CLOEXEC);
		size_t line = 77;

		row_begin(row->name);
		assert_int_equal(write(fd, row->text, strlen(row->text)), strlen(row->text));
		assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
		assert_int_equal(walkcase_read(fd, &c, &line), row->outcome);
		assert_int_equal(line, row->line);
		close(fd);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_recorded),
		cmocka_unit_test(test_bad),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
