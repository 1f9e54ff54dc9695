// SPDX-License-Identifier: Apache-2.0
#include "agent.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/supervise.h"
#include "cmd/cmd.h"
#include "config/config.h"
#include "export/destination.h"

static int print_help(void)
{
	printf("usage: podprof agent [FLAGS]\n\n"
	       "Profiles every container on this node until SIGINT or SIGTERM. SIGHUP reloads the\n"
	       "configuration file.\n\n"
	       "Each setting is a flag, a variable with the prefix PODPROF_ (PODPROF_CPU_RATE=19)\n"
	       "and a key of the configuration file (\"cpu-rate\": 19). Flags take precedence "
	       "over\n"
	       "variables, and variables over the file.\n");
	config_print_help(stdout);
	printf("\nDestinations:\n%s", destination_help);
	printf("\nExit status: 0 ended by a signal, 1 failed, 2 wrong usage\n");
	return CMD_DONE;
}

static int run(void *ctx)
{
	const struct config *config = ctx;
	struct agent *agent = NULL;
	int r = agent_new(config, &agent);

	if (!r)
		r = agent_run(agent);
	agent_free(agent);
	log_info("ended");
	return r ? CMD_FAILED : CMD_DONE;
}

static void tell_forced(void *ctx, enum supervise_forced how, const char *threads)
{
	(void)ctx;
	if (how == SUPERVISE_STUCK)
		log_warn("a thread waits for a file system without an answer, leaving its process "
			 "behind",
			 log_str("threads", threads));
	else
		log_error("killed, because it did not end in time", log_str("threads", threads));
}

int cmd_agent(int argc, char **argv)
{
	_cleanup_(config_deinit) struct config config = {0};
	const struct supervise_opts opts = {
		.run = run,
		.forced = tell_forced,
		.ctx = &config,
		.grace_ns = AGENT_GRACE_NS,
	};
	struct config_error error = {""};
	int r = config_load(argc, argv, &config, &error), status = CMD_FAILED;

	if (r == CONFIG_HELP)
		return print_help();
	if (r) {
		cmd_error("agent: %s", r < 0 ? strerror(-r) : error.text);
		return r < 0 ? CMD_FAILED : CMD_USAGE;
	}
	log_set(config.log_level, config.log_format);
	r = supervise(&opts, &status);
	if (r)
		log_error("cannot start the working process", log_err(r));
	return status;
}
