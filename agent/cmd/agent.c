// SPDX-License-Identifier: Apache-2.0
#include "agent.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "cmd/cmd.h"
#include "config/config.h"
#include "export/destination.h"

DEFINE_CLEANUP(struct agent *, agent_freep, agent_free);

static int print_help(void)
{
	printf("usage: podprof agent [FLAGS]\n\n"
	       "Profiles every container on this node until it is told to end (SIGINT, SIGTERM).\n"
	       "SIGHUP reads the configuration file again.\n\n"
	       "Each flag has a twin in the environment, PODPROF_ and its name in capitals\n"
	       "(PODPROF_CPU_RATE=19), and a key in the configuration file (\"cpu-rate\": 19).\n"
	       "A flag beats the environment, which beats the file.\n");
	config_print_help(stdout);
	printf("\nDestinations:\n%s", destination_help);
	printf("\nexit status: 0 ended as asked, 1 failed, 2 wrong usage\n");
	return CMD_DONE;
}

int cmd_agent(int argc, char **argv)
{
	_cleanup_(config_deinit) struct config config = {0};
	_cleanup_(agent_freep) struct agent *agent = NULL;
	struct config_error error = {""};
	int r = config_load(argc, argv, &config, &error);

	if (r == CONFIG_HELP)
		return print_help();
	if (r) {
		cmd_error("%s", r < 0 ? strerror(-r) : error.text);
		return r < 0 ? CMD_FAILED : CMD_USAGE;
	}
	log_set(config.log_level, config.log_format);
	r = agent_new(&config, &agent);
	if (!r)
		r = agent_run(agent);
	agent_free(take_ptr(agent));
	/* the process may stay for a thread that a file system blocks */
	log_info("ended");
	return r ? CMD_FAILED : CMD_DONE;
}
