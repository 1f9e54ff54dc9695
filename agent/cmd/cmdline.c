// SPDX-License-Identifier: Apache-2.0
#include "cmd/cmdline.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/root.h"
#include "base/strview.h"
#include "cmd/cmd.h"
#include "config/config.h"
#include "elf/elffile.h"

/* Above every character, so getopt's result is an option's index in the table. */
enum { OPTION_HELP = 256, OPTION_FIRST };

#define MESSAGE_SIZE 512

int cmdline_usage(const struct cmdline *c, const char *format, ...)
{
	char message[MESSAGE_SIZE];
	va_list args;

	va_start(args, format);
	vsnprintf(message, sizeof(message), format, args);
	va_end(args);
	cmd_error("%s: %s; see 'podprof %s --help'", c->command, message, c->command);
	return CMD_USAGE;
}

bool cmdline_pid(const char *s, pid_t *ret)
{
	uint64_t pid;

	if (!strview_only_u64(strview_of(s), 10, &pid) || pid == 0 || pid > INT32_MAX)
		return false;
	*ret = (pid_t)pid;
	return true;
}

bool cmdline_bool(const char *s, bool *ret)
{
	bool yes = strcmp(s, "true") == 0 || strcmp(s, "1") == 0;

	if (!yes && strcmp(s, "false") != 0 && strcmp(s, "0") != 0)
		return false;
	*ret = yes;
	return true;
}

static bool takes_value(const struct cmdline_option *o)
{
	return o->string || o->number || o->address || o->pid || o->values;
}

/* Store the value. Returns a description of the expected value, or NULL for a valid value. */
static const char *take_value(const struct cmdline_option *o, const char *value)
{
	if (o->string)
		*o->string = value;
	if (o->number && !strview_only_u64(strview_of(value), 10, o->number))
		return "a number";
	if (o->address && !strview_address(value, o->address))
		return "an address in hex";
	if (o->pid && !cmdline_pid(value, o->pid))
		return "a PID";
	if (o->values && o->values->n == CMDLINE_VALUES_MAX)
		return "fewer values";
	if (o->values)
		o->values->items[o->values->n++] = value;
	return NULL;
}

/* Whether the word is an option of the command. */
static bool is_option(const struct cmdline *c, const char *word)
{
	for (size_t i = 0; i < c->n_options; i++) {
		const struct cmdline_option *o = &c->options[i];
		const char letter[] = {'-', o->letter, '\0'};

		if ((o->letter && strcmp(word, letter) == 0) ||
		    (strncmp(word, "--", 2) == 0 && strcmp(word + 2, o->name) == 0))
			return true;
	}
	return false;
}

/* With an empty shell variable as its value, an option would take the next option. --name=VALUE
 * allows any value. */
static int take_option(const struct cmdline *c, const struct cmdline_option *o, char **argv)
{
	const bool is_next = optarg && optarg == argv[optind - 1];
	const char *wanted;

	if (is_next && is_option(c, optarg))
		return cmdline_usage(c, "missing value after '--%s': '%s' is an option", o->name,
				     optarg);
	wanted = takes_value(o) ? take_value(o, optarg) : NULL;
	if (wanted)
		return cmdline_usage(c, "--%s takes %s, not '%s'", o->name, wanted, optarg);
	if (o->given)
		*o->given = true;
	return CMD_DONE;
}

static int bad_option(const struct cmdline *c, int result, char **argv)
{
	char letter[] = {'-', (char)optopt, '\0'};
	/* a long option has no character and has been stepped over */
	const char *name = optopt && optopt < OPTION_HELP ? letter : argv[optind - 1];

	return cmdline_usage(c, "%s '%s'", result == ':' ? "missing value after" : "unknown option",
			     name);
}

/* Convert the table to getopt_long()'s form. */
static void describe(const struct cmdline *c, struct option *ret_long, char *ret_letters)
{
	if (c->runs)
		*ret_letters++ = '+'; /* stop at the first operand */
	*ret_letters++ = ':';
	for (size_t i = 0; i < c->n_options; i++) {
		const struct cmdline_option *o = &c->options[i];

		ret_long[i] = (struct option){o->name, takes_value(o), NULL, OPTION_FIRST + (int)i};
		if (!o->letter)
			continue;
		*ret_letters++ = o->letter;
		if (takes_value(o))
			*ret_letters++ = ':';
	}
	ret_long[c->n_options] = (struct option){"help", no_argument, NULL, OPTION_HELP};
	*ret_letters = '\0';
}

static const struct cmdline_option *find_option(const struct cmdline *c, int result)
{
	if (result >= OPTION_FIRST)
		return &c->options[result - OPTION_FIRST];
	for (size_t i = 0; i < c->n_options; i++)
		if (c->options[i].letter && c->options[i].letter == result)
			return &c->options[i];
	return NULL;
}

bool cmdline_parse(struct cmdline *c, int argc, char **argv, int *ret_exit)
{
	struct option options[CMDLINE_OPTIONS + 2] = {{0}};
	char letters[2 * CMDLINE_OPTIONS + 3];
	int result, status = CMD_DONE;

	assert(c->n_options <= CMDLINE_OPTIONS);
	describe(c, options, letters);
	optind = 0; /* restart getopt after an earlier parse */
	opterr = 0;
	while (status == CMD_DONE &&
	       (result = getopt_long(argc, argv, letters, options, NULL)) != -1) {
		const struct cmdline_option *o = find_option(c, result);

		if (result == OPTION_HELP) {
			fputs(c->help, stdout);
			*ret_exit = cmdline_finish(c->command, CMD_DONE);
			return false;
		}
		status = o ? take_option(c, o, argv) : bad_option(c, result, argv);
	}
	c->operands = argv + optind;
	c->n_operands = argc - optind;
	if (status == CMD_DONE && c->runs && c->n_operands && strcmp(argv[optind - 1], "--") != 0)
		status = cmdline_usage(c, "unexpected argument '%s'; put a command to run after --",
				       argv[optind]);
	*ret_exit = status;
	return status == CMD_DONE;
}

bool cmdline_settings(const char *command, int argc, char **argv, int (*help)(void),
		      struct config *ret, int *ret_exit)
{
	struct config_error error = {""};
	int r = config_load(argc, argv, ret, &error);

	if (r == CONFIG_HELP) {
		*ret_exit = help();
	} else if (r) {
		cmd_error("%s: %s", command, r < 0 ? strerror(-r) : error.text);
		*ret_exit = r < 0 ? CMD_FAILED : CMD_USAGE;
	}
	return !r;
}

int cmdline_open_proc(const char *command, const char *path, struct root *ret)
{
	int r = root_open(path, ret);

	if (!r)
		return CMD_DONE;
	cmd_error("%s: cannot open %s: %s; set --proc-root to a mounted procfs", command, path,
		  root_why(r));
	return CMD_FAILED;
}

int cmdline_open_elf(const char *command, const char *path, int *ret_fd)
{
	const struct root here = {.fd = AT_FDCWD};
	int r = root_open_file(&here, path, ret_fd);

	if (!r)
		return CMD_DONE;
	cmd_error("%s: cannot open %s: %s; give a program or library", command, path, root_why(r));
	return CMD_FAILED;
}

int cmdline_not_elf(const char *command, const char *path, int outcome)
{
	cmd_error("%s: cannot read %s: %s; give a 64-bit ELF file", command, path,
		  outcome < 0 ? strerror(-outcome) : elffile_outcome_name(outcome));
	return CMD_FAILED;
}

int cmdline_finish(const char *command, int status)
{
	if (!fflush(stdout) || status != CMD_DONE)
		return status;
	cmd_error("%s: cannot write: %s", command, strerror(errno));
	return CMD_FAILED;
}
