// SPDX-License-Identifier: Apache-2.0
/*
 * What it costs to know which of a node's processes have a Go runtime: CPU time for one process,
 *the first time, with its files known, and in later rounds. 100 processes of one Go program, 100 of
 *one C program.
 *
 *	bench_goruntimes [PROGRAM [ARG]]	instead of the fixture, one that goes on running
 *
 * Under "strace -f" the system calls of a row are those between access("/bench/N") and
 * access("/bench/end").
 */
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/root.h"
#include "goheap/goimages.h"
#include "goheap/goruntime.h"
#include "heapprocess.h"

#define N 100

struct bench {
	struct root proc;
	struct goimages *images;
	pid_t pids[N];
	struct heap_process processes[N];
	unsigned int round;
};

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* The fixture's path, or an empty string. */
static void build(char *ret, size_t n)
{
	FILE *out =
		popen("test/support/build-go.sh build/test/go test/fixtures/go/plain go stripped",
		      "r"); // NOLINT(bugprone-command-processor,cert-env33-c)

	ret[0] = '\0';
	if (!out)
		return;
	if (!fgets(ret, (int)n, out))
		ret[0] = '\0';
	ret[strcspn(ret, "\n")] = '\0';
	pclose(out);
}

/* They end when the standard input that they share does, which is this program's end of a pipe. */
static void start(struct bench *b, const char *path, const char *arg)
{
	int in[2];

	if (pipe2(in, O_CLOEXEC) < 0)
		exit(1);
	for (int i = 0; i < N; i++) {
		b->pids[i] = fork();
		if (b->pids[i] == 0) {
			dup2(in[0], STDIN_FILENO);
			dup2(STDERR_FILENO, STDOUT_FILENO);
			if (!freopen("/dev/null", "w", stdout))
				_exit(1);
			execlp(path, path, arg, NULL);
			_exit(127);
		}
	}
	close(in[0]);
	usleep(500000);
	for (int i = 0; i < N; i++) {
		struct pid_id id;

		if (pid_read(&b->proc, b->pids[i], &id))
			exit(1);
		heap_process_init(&b->processes[i], &id);
	}
}

static void stop(struct bench *b)
{
	for (int i = 0; i < N; i++) {
		heap_process_deinit(&b->processes[i]);
		kill(b->pids[i], SIGKILL);
		waitpid(b->pids[i], NULL, 0);
	}
}

/* One look at the processes from @first to @limit, and how much it took for each. */
static void look(struct bench *b, const char *what, int first, int limit)
{
	const struct heap_process_opts opts = {
		.proc = &b->proc,
		.images = b->images,
		.max_bytes = 64u << 20,
		.round = b->round,
	};
	uint64_t start_ns = cpu_ns(), n_looks = goimages_looks(b->images);
	char mark[64];

	/* what strace shows between two of these is the row's */
	snprintf(mark, sizeof(mark), "/bench/%d", limit - first);
	(void)!access(mark, F_OK);
	for (int i = first; i < limit; i++)
		if (heap_process_look(&b->processes[i], &opts))
			exit(1);
	(void)!access("/bench/end", F_OK);
	printf("  %-34s %3d processes %8.1f us each, %" PRIu64 " files looked into\n", what,
	       limit - first, (double)(cpu_ns() - start_ns) / 1000 / (limit - first),
	       goimages_looks(b->images) - n_looks);
}

static void rows(const char *title, const char *path, const char *arg)
{
	static struct bench b;

	b = (struct bench){.proc = ROOT_INIT};
	if (root_open("/proc", &b.proc) || goimages_new(&b.images))
		exit(1);
	printf("%s\n", title);
	start(&b, path, arg);
	look(&b, "the first one", 0, 1);
	look(&b, "others, files known", 1, N);
	b.round++;
	look(&b, "next round, mappings looked at", 0, N);
	b.round++;
	look(&b, "a round in between", 0, N);
	printf("  %-34s %zu bytes\n", "kept of files", goimages_bytes(b.images));
	stop(&b);
	goimages_free(b.images);
	root_deinit(&b.proc);
}

int main(int argc, char **argv)
{
	char path[4096];

	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	build(path, sizeof(path));
	if (argc > 1)
		snprintf(path, sizeof(path), "%s", argv[1]);
	rows("a Go program", path, argc > 2 ? argv[2] : NULL);
	rows("a C program", "sleep", "1000");
	return 0;
}
