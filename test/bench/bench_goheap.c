// SPDX-License-Identifier: Apache-2.0
/* What reading a large Go heap costs: 32,768 stacks and some, the first time and later. The target
 * is test/fixtures/go/heap with every allocation recorded. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/nsec.h"
#include "base/root.h"
#include "goheap/goheap.h"

#define LATER_READS 20

/* The program's path, or an empty string. */
static void build(const char *go, char *ret, size_t n)
{
	char command[256];
	FILE *out;

	snprintf(command, sizeof(command),
		 "test/support/build-go.sh build/test/go test/fixtures/go/heap %s default", go);
	ret[0] = '\0';
	out = popen(command, "r"); // NOLINT(bugprone-command-processor,cert-env33-c)
	if (!out)
		return;
	if (!fgets(ret, (int)n, out))
		ret[0] = '\0';
	ret[strcspn(ret, "\n")] = '\0';
	pclose(out);
}

/* Started and at rest: its pid, or -1. Ends when *@ret_to is closed. */
static pid_t start(const char *path, int *ret_to)
{
	int in[2], out[2];
	char line[8];
	pid_t pid;

	if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0)
		return -1;
	pid = fork();
	if (pid == 0) {
		setenv("HEAP_RATE", "1", 1);
		if (dup2(in[0], STDIN_FILENO) >= 0 && dup2(out[1], STDOUT_FILENO) >= 0)
			execl(path, path, "/dev/null", "many", NULL);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	if (read(out[0], line, sizeof(line)) <= 0)
		return -1;
	close(out[0]);
	*ret_to = in[1];
	return pid;
}

static double cpu_ms(uint64_t since)
{
	return (double)(nsec_read(CLOCK_PROCESS_CPUTIME_ID) - since) / 1e6;
}

static int measure(const struct root *proc, pid_t pid)
{
	struct goheap_opts opts = {.proc = proc, .max_bytes = 64u << 20};
	struct goheap_profile profile;
	struct goheap *h;
	uint64_t begin = nsec_read(CLOCK_PROCESS_CPUTIME_ID);
	int r = pid_read(proc, pid, &opts.id);

	if (!r)
		r = goheap_new(&opts, &h);
	if (r)
		return r;
	printf("  finding it   %6.2f ms CPU\n", cpu_ms(begin));
	begin = nsec_read(CLOCK_PROCESS_CPUTIME_ID);
	r = goheap_read(h, &profile);
	if (r) {
		fprintf(stderr, "bench_goheap: state %s\n", goruntime_state_name(r));
		goheap_free(h);
		return r;
	}
	printf("  first read   %6.2f ms CPU, %5" PRIu64 " calls, %9" PRIu64
	       " bytes, %zu records, %zu bytes kept\n",
	       cpu_ms(begin), profile.n_calls, profile.n_bytes, profile.n_records, goheap_bytes(h));
	begin = nsec_read(CLOCK_PROCESS_CPUTIME_ID);
	for (int i = 0; i < LATER_READS && !r; i++)
		r = goheap_read(h, &profile);
	printf("  later reads  %6.2f ms CPU, %5" PRIu64 " calls, %9" PRIu64 " bytes\n",
	       cpu_ms(begin) / LATER_READS, profile.n_calls, profile.n_bytes);
	goheap_free(h);
	return r;
}

int main(void)
{
	/* the wide and the narrow form of records */
	static const char *const gos[] = {"1.26.8", "1.27.3"};
	struct root proc;
	int status = 0;

	if (root_open("/proc", &proc))
		return 1;
	for (size_t i = 0; i < array_size(gos); i++) {
		char path[4096];
		int to = -1;
		pid_t pid;

		build(gos[i], path, sizeof(path));
		pid = *path ? start(path, &to) : -1;
		printf("goheap, Go %s\n", gos[i]);
		if (pid < 0 || measure(&proc, pid))
			status = 1;
		if (pid > 0) {
			kill(pid, SIGKILL);
			waitpid(pid, NULL, 0);
			close(to);
		}
	}
	root_deinit(&proc);
	return status;
}
