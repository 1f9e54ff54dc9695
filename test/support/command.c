// SPDX-License-Identifier: Apache-2.0
#include "support/command.h"

#include "support/test.h"

#include <fcntl.h>
#include <string.h>

#include "base/root.h"
#include "cmd/cmd.h"
#include "symbolize/dwarfchild.h"

#define OUTPUT_MAX (1u << 20)
#define WORDS_MAX  32

/* Redirects @fd to an empty file. Returns a copy of the former descriptor. */
static int redirect(int fd, FILE **ret)
{
	int old = fcntl(fd, F_DUPFD_CLOEXEC, 10);

	*ret = tmpfile();
	assert_non_null(*ret);
	assert_true(dup2(fileno(*ret), fd) >= 0);
	return old;
}

static void restore(int fd, int old, FILE *file, struct buf *ret)
{
	dup2(old, fd);
	close(old);
	rewind(file);
	buf_init(ret, OUTPUT_MAX);
	assert_int_equal(root_read_fd(fileno(file), ret), 0);
	assert_int_equal(buf_puts(ret, ""), 0);
	fclose(file);
}

/* A command that executes podprof for DWARF executes this test program. */
static __attribute__((constructor)) void be_dwarf_child(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], DWARFCHILD_COMMAND) == 0)
		_exit(dwarfchild_main(argc, argv));
}

void command_run(const char *line, struct command_run *ret)
{
	_cleanup_(freep) char *copy = strdup(line);
	char *argv[WORDS_MAX + 1] = {(char *)"podprof"}, *save = NULL;
	int argc = 1, old_out, old_err;
	FILE *out, *err;

	assert_non_null(copy);
	for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
		assert_true(argc < WORDS_MAX);
		argv[argc++] = word;
	}
	fflush(stdout);
	old_out = redirect(STDOUT_FILENO, &out);
	old_err = redirect(STDERR_FILENO, &err);
	ret->status = cmd_main(argc, argv);
	fflush(stdout);
	restore(STDERR_FILENO, old_err, err, &ret->err);
	restore(STDOUT_FILENO, old_out, out, &ret->out);
}

void command_run_deinit(struct command_run *run)
{
	buf_deinit(&run->out);
	buf_deinit(&run->err);
}

void command_assert_has(const struct buf *printed, const char *want)
{
	if (!strstr(printed->data, want))
		fail_msg("'%s' is not in:\n%s", want, printed->data);
}

static void assert_printed(const struct buf *printed, const char *want)
{
	if (want)
		command_assert_has(printed, want);
	else
		assert_int_equal(printed->len, 0);
}

void command_assert(const struct command_run *run, int status, const char *out, const char *err)
{
	assert_int_equal(run->status, status);
	assert_printed(&run->out, out);
	assert_printed(&run->err, err);
}

void command_assert_error(const struct command_run *run, int status, const char *says)
{
	command_assert(run, status, NULL, says);
	assert_ptr_equal(strchr(run->err.data, '\n'), run->err.data + run->err.len - 1);
}
