// SPDX-License-Identifier: Apache-2.0
#include "cmd/cmd.h"

#include <stdio.h>
#include <string.h>

#include "version.h"

int cmd_version(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "--help") == 0) {
		puts("usage: podprof version\n\nPrints the version and the compiler's.");
		return CMD_DONE;
	}
	if (argc > 1) {
		cmd_error("version takes no arguments");
		return CMD_USAGE;
	}
	printf("podprof %s (%s)\n", PODPROF_VERSION, __VERSION__);
	return CMD_DONE;
}
