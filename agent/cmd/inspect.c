// SPDX-License-Identifier: Apache-2.0
#include "cmd/inspect.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "cmd/cmd.h"

struct inspector {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *help;
};

static const struct inspector inspectors[] = {
	{"cgroup", inspect_cgroup, "containers on this node; meaning of a cgroup path"},
	{"goruntime", inspect_goruntime, "the memory profiler of a Go program"},
	{"maps", inspect_maps, "mappings of a process; meaning of an address"},
	{"profile", inspect_profile, "a pprof file: types, totals, top functions, labels"},
	{"runtime", inspect_runtime, "the language runtime of a process, and its frames"},
	{"symbols", inspect_symbols, "functions at addresses of a file or process"},
	{"targets", inspect_targets, "profiled and excluded entities, with labels and reasons"},
	{"unwind", inspect_unwind, "unwind rows of a file or process"},
};

static void print_help(FILE *to)
{
	fputs("usage: podprof inspect WHAT [ARGUMENTS]\n\n"
	      "Shows podprof's view of this node or of files.\n\n"
	      "WHAT:\n",
	      to);
	for (size_t i = 0; i < array_size(inspectors); i++)
		fprintf(to, "  %-10s %s\n", inspectors[i].name, inspectors[i].help);
	fputs("\n'podprof inspect WHAT --help' shows the help of each.\n", to);
}

/* One command line. */
struct inspection {
	const struct inspector *inspector;
	int argc;
	char **argv;
};

static int run(void *ctx)
{
	const struct inspection *i = ctx;

	return i->inspector->run(i->argc, i->argv);
}

static int inspect(const struct inspector *inspector, int argc, char **argv)
{
	struct inspection inspection = {.inspector = inspector, .argc = argc, .argv = argv};
	char name[32];

	snprintf(name, sizeof(name), "inspect %s", inspector->name);
	return cmd_run_apart(name, run, &inspection, CMD_INTERRUPTED_NS);
}

int cmd_inspect(int argc, char **argv)
{
	if (argc < 2) {
		print_help(stderr);
		return CMD_USAGE;
	}
	if (strcmp(argv[1], "--help") == 0) {
		print_help(stdout);
		return CMD_DONE;
	}
	for (size_t i = 0; i < array_size(inspectors); i++)
		if (strcmp(argv[1], inspectors[i].name) == 0)
			return inspect(&inspectors[i], argc - 1, argv + 1);
	cmd_error("inspect: unknown '%s'; 'podprof inspect --help' lists the choices", argv[1]);
	return CMD_USAGE;
}
