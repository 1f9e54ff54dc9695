// SPDX-License-Identifier: Apache-2.0
/*
 * The stack oracle over one program: "stacks [OPTIONS] NAME COMMAND ARGS..." starts the program,
 * stops it repeatedly, and prints a row of the table: stacks, frames, the deepest stack, equal
 * frames, complete stacks, and the reasons of truncated stacks. Differences are printed before.
 * test/oracle/stacks.sh runs many programs.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "profile/sample.h"
#include "support/stackoracle.h"

static pid_t start(char **command)
{
	int in[2];
	pid_t pid;

	if (pipe2(in, O_CLOEXEC) < 0)
		return -1;
	pid = fork();
	if (pid == 0) {
		int null = open("/dev/null", O_RDWR | O_CLOEXEC);

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(in[0], STDIN_FILENO);
		dup2(null, STDOUT_FILENO);
		dup2(null, STDERR_FILENO);
		execvp(command[0], command);
		_exit(127);
	}
	return pid;
}

static double percent(uint64_t part, uint64_t all)
{
	return all ? 100.0 * (double)part / (double)all : 0;
}

static void print_row(const char *name, const struct stackoracle_report *r)
{
	printf("| %-24s | %6" PRIu64 " | %7" PRIu64 " | %5" PRIu64 " | %8.3f | %8.3f |", name,
	       r->n_stacks, r->n_frames, r->depth, percent(r->n_equal, r->n_frames),
	       percent(r->n_complete, r->n_stacks));
	for (int i = 0; i < SAMPLE_END_MAX; i++)
		if (i != SAMPLE_END_COMPLETE && r->n_ends[i])
			printf(" %" PRIu64 " %s", r->n_ends[i],
			       sample_stat_name((unsigned int)i) + strlen("truncated_"));
	if (r->n_different)
		printf(" %" PRIu64 " different", r->n_different);
	if (r->n_further)
		printf(" (%" PRIu64 " further than libdwfl)", r->n_further);
	if (r->n_guesses)
		printf(" (of %" PRIu64 " guesses %.1f %% equal)", r->n_guesses,
		       percent(r->n_guessed, r->n_guesses));
	printf(" |\n");
}

static int usage(void)
{
	fprintf(stderr,
		"usage: stacks [-f] [-g] [-w MS] [-n STOPS] [-s STEPS] [-v SHOWN] [-c SHELL] "
		"NAME COMMAND ARGS...\n");
	return 2;
}

static int run_shell(const char *command, pid_t pid)
{
	char number[16];

	snprintf(number, sizeof(number), "%d", (int)pid);
	setenv("STACKS_PID", number, 1);
	fflush(stdout);
	return system(command); /* NOLINT(cert-env33-c): it is what it is for */
}

int main(int argc, char **argv)
{
	struct stackoracle_opts opts = {.n_stops = 500, .n_steps = 4, .n_shown = 3, .to = stdout};
	struct stackoracle_report report = {0};
	struct timespec warm = {.tv_nsec = 200000000};
	const char *shell = NULL;
	int c, r;

	while ((c = getopt(argc, argv, "+c:fgw:n:s:v:")) != -1) {
		const unsigned int n = optarg ? (unsigned int)strtoul(optarg, NULL, 10) : 0;

		switch (c) {
		case 'c':
			shell = optarg;
			break;
		case 'f':
			opts.family = true;
			break;
		case 'g':
			opts.go = true;
			break;
		case 'w':
			warm.tv_sec = n / 1000;
			warm.tv_nsec = n % 1000 * 1000000L;
			break;
		case 'n':
			opts.n_stops = n;
			break;
		case 's':
			opts.n_steps = n;
			break;
		case 'v':
			opts.n_shown = n;
			break;
		default:
			return usage();
		}
	}
	if (argc - optind < 2)
		return usage();
	opts.pid = start(argv + optind + 1);
	nanosleep(&warm, NULL);
	r = stackoracle_run(&opts, &report);
	print_row(argv[optind], &report);
	if (r < 0)
		fprintf(stderr, "stacks: %s: %s\n", argv[optind], strerror(-r));
	if (shell && run_shell(shell, opts.pid) != 0)
		r = -ECHILD;
	kill(opts.pid, SIGKILL);
	waitpid(opts.pid, NULL, 0);
	return r < 0;
}
