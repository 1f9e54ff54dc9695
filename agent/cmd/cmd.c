// SPDX-License-Identifier: Apache-2.0
#include "cmd/cmd.h"

#include <errno.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/supervise.h"
#include "base/utf8.h"
#include "symbolize/dwarfchild.h"

struct command {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *help; /* NULL: not for people */
};

static const struct command commands[] = {
	{"agent", cmd_agent, "run the node agent"},
	{"heap", cmd_heap, "read the profiles that a Go program keeps; writes pprof"},
	{"record", cmd_record,
	 "record CPU time of processes, a container or the node; writes pprof"},
	{"doctor", cmd_doctor, "check this node for the agent; show problems and remedies"},
	{"inspect", cmd_inspect, "show podprof's view of this node or of files"},
	{"version", cmd_version, "print the version"},
	{"--version", cmd_version, NULL},
	{DWARFCHILD_COMMAND, dwarfchild_main, NULL},
};

void cmd_error(const char *format, ...)
{
	_cleanup_(freep) char *message = NULL;
	va_list args;
	int n;

	va_start(args, format);
	n = vasprintf(&message, format, args);
	va_end(args);
	if (n < 0)
		message = NULL;
	else
		utf8_make_printable(message);
	fprintf(stderr, "podprof: %s\n", message ? message : "out of memory");
}

void cmd_print(const char *s)
{
	while (*s) {
		size_t n = utf8_control(s);

		putchar(n ? '?' : *s);
		s += n ? n : 1;
	}
}

/* jansson escapes control characters below a blank; a terminal obeys others, too. */
static void put_json(const char *s)
{
	while (*s) {
		const char *next = s;
		size_t n = utf8_control(s);

		if (n && (unsigned char)*s < ' ')
			n = 0; /* between values */
		if (n)
			printf("\\u%04X", (unsigned int)utf8_next(&next));
		else
			putchar_unlocked(*s);
		s += n ? n : 1;
	}
	putchar_unlocked('\n');
}

struct apart {
	const char *name;
	int (*run)(void *ctx);
	void *ctx;
};

static void tell_forced(void *ctx, enum supervise_forced how, const char *threads)
{
	const struct apart *apart = ctx;

	cmd_error(how == SUPERVISE_STUCK
			  ? "%s: a thread waits for a file system without an answer, leaving its "
			    "process behind: %s"
			  : "%s: killed, because it did not end in time: %s",
		  apart->name, threads);
}

static int run_apart(void *ctx)
{
	const struct apart *apart = ctx;

	return apart->run(apart->ctx);
}

int cmd_run_apart(const char *name, int (*run)(void *ctx), void *ctx, uint64_t grace_ns)
{
	struct apart apart = {.name = name, .run = run, .ctx = ctx};
	const struct supervise_opts opts = {
		.run = run_apart,
		.forced = tell_forced,
		.ctx = &apart,
		.grace_ns = grace_ns,
	};
	int status;
	int r = supervise(&opts, &status);

	if (r)
		cmd_error("%s: cannot start the working process: %s", name, strerror(-r));
	return r ? CMD_FAILED : status;
}

static int print_json(json_t *object, size_t flags)
{
	_cleanup_(freep) char *text = object ? json_dumps(object, flags) : NULL;

	json_decref(object);
	if (!text)
		return -ENOMEM;
	put_json(text);
	return 0;
}

int cmd_print_json(json_t *object)
{
	return print_json(object, JSON_COMPACT);
}

int cmd_print_json_tree(json_t *object)
{
	return print_json(object, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
}

static void print_help(FILE *to)
{
	fputs("usage: podprof COMMAND [ARGUMENTS]\n\n"
	      "Continuous profiler of CPU and memory for all containers of a node.\n\n"
	      "commands:\n",
	      to);
	for (size_t i = 0; i < array_size(commands); i++)
		if (commands[i].help)
			fprintf(to, "  %-10s %s\n", commands[i].name, commands[i].help);
	fputs("\n'podprof COMMAND --help' shows the help of a command.\n", to);
}

/* "help COMMAND ..." becomes "COMMAND ... --help". */
static void ask_for_help(int argc, char **argv)
{
	static char help[] = "--help";

	memmove(argv + 1, argv + 2, ((size_t)argc - 2) * sizeof(*argv));
	argv[argc - 1] = help;
}

int cmd_main(int argc, char **argv)
{
	if (argc < 2) {
		print_help(stderr);
		return CMD_USAGE;
	}
	if (argc > 2 && strcmp(argv[1], "help") == 0)
		ask_for_help(argc, argv);
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "help") == 0) {
		print_help(stdout);
		return CMD_DONE;
	}
	for (size_t i = 0; i < array_size(commands); i++)
		if (strcmp(argv[1], commands[i].name) == 0)
			return commands[i].run(argc - 1, argv + 1);
	cmd_error("unknown command '%s'; 'podprof --help' lists the commands", argv[1]);
	return CMD_USAGE;
}
