// SPDX-License-Identifier: Apache-2.0
#include "cmd/cmd.h"

#include <stdio.h>

#include "version.h"

int cmd_version(int argc, char **argv)
{
	(void)argv;
	if (argc > 1) {
		cmd_error("version takes no arguments");
		return CMD_USAGE;
	}
	printf("podprof %s (%s)\n", PODPROF_VERSION, __VERSION__);
	return CMD_DONE;
}
