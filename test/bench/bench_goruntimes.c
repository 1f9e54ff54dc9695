// SPDX-License-Identifier: Apache-2.0
/*
 * The cost of finding a node's processes with a Go runtime: CPU time for one process, the first
 * time, with known files, and in later rounds. 100 processes of a Go program, 100 of a C program.
 *
 * Then 100 processes of one Go program of 100 MB, read by the agent's reader and named in profiles:
 * cost of the first time and of later rounds, and the reader's memory.
 *
 *	bench_goruntimes [PROGRAM [ARG]]	instead of the fixture, a program that keeps running
 *
 * Under "strace -f" the system calls of a row are between access("/bench/N") and
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

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/root.h"
#include "goheap/goimages.h"
#include "goheap/goruntime.h"
#include "goprofile/process.h"
#include "goprofile/reader.h"
#include "goprofile/heap.h"
#include "support/figure.h"

#define N 100

struct bench {
	struct root proc;
	struct goimages *images;
	pid_t pids[N];
	struct go_process processes[N];
	unsigned int round;
};

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* The fixture's path, or an empty string. */
static void build(const char *fixture, char *ret, size_t n)
{
	char command[256];
	FILE *out;

	snprintf(command, sizeof(command),
		 "test/support/build-go.sh build/test/go test/fixtures/go/%s go stripped", fixture);
	out = popen(command, "r"); // NOLINT(bugprone-command-processor,cert-env33-c)
	ret[0] = '\0';
	if (!out)
		return;
	if (!fgets(ret, (int)n, out))
		ret[0] = '\0';
	ret[strcspn(ret, "\n")] = '\0';
	pclose(out);
}

/* All processes end with their shared standard input, this program's end of a pipe. */
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
		go_process_init(&b->processes[i], &id);
	}
}

static void stop(struct bench *b)
{
	for (int i = 0; i < N; i++) {
		go_process_deinit(&b->processes[i]);
		kill(b->pids[i], SIGKILL);
		waitpid(b->pids[i], NULL, 0);
	}
}

/* One look at the processes from @first to @limit. Prints the cost for each. */
static void look(struct bench *b, const char *title, const char *what, int first, int limit)
{
	const struct go_process_opts opts = {
		.proc = &b->proc,
		.images = b->images,
		.max_bytes = 64u << 20,
		.round = b->round,
	};
	uint64_t start_ns = cpu_ns(), n_looks = goimages_looks(b->images);
	char mark[64];

	/* the row's system calls are between two of these marks */
	snprintf(mark, sizeof(mark), "/bench/%d", limit - first);
	(void)!access(mark, F_OK);
	for (int i = first; i < limit; i++)
		if (go_process_look(&b->processes[i], &opts))
			exit(1);
	(void)!access("/bench/end", F_OK);
	printf("  %-34s %3d processes %8.1f us each, %" PRIu64 " files looked into\n", what,
	       limit - first, (double)(cpu_ns() - start_ns) / 1000 / (limit - first),
	       goimages_looks(b->images) - n_looks);
	figure((double)(cpu_ns() - start_ns) / 1000 / (limit - first), "us", "%s: %s", title, what);
}

static void rows(const char *title, const char *path, const char *arg)
{
	static struct bench b;

	b = (struct bench){.proc = ROOT_INIT};
	if (root_open("/proc", &b.proc) || goimages_new(&b.images))
		exit(1);
	printf("%s\n", title);
	start(&b, path, arg);
	look(&b, title, "the first one", 0, 1);
	look(&b, title, "others, files known", 1, N);
	b.round++;
	look(&b, title, "next round, mappings looked at", 0, N);
	b.round++;
	look(&b, title, "a round in between", 0, N);
	printf("  %-34s %zu bytes\n", "kept of files", goimages_bytes(b.images));
	stop(&b);
	goimages_free(b.images);
	root_deinit(&b.proc);
}

/* ---------------------------------------------------------------- one file, many processes */

/* The bench's private memory, in KiB. */
static size_t own_kib(void)
{
	unsigned long all = 0, shared = 0;
	FILE *f = fopen("/proc/self/statm", "re");

	if (!f ||
	    fscanf(f, "%*u %lu %lu", &all, &shared) != 2) // NOLINT(cert-err34-c): the kernel's
		all = shared = 0;
	if (f)
		fclose(f);
	return (all - shared) * (size_t)sysconf(_SC_PAGESIZE) / 1024;
}

/* Make and drop a profile of one process. */
static size_t name(struct go_profile_reader *reader, struct go_profile_target *target)
{
	const struct go_profile_report_opts opts = {.max_samples = 10000, .max_bytes = 4u << 20};
	_cleanup_(buf_deinit) struct buf out = BUF_INIT(4u << 20);
	struct go_profile_report_stats stats = {0};

	if (go_profile_reader_encode(reader, GO_PROFILE_HEAP, target, 1, &opts, &out, &stats))
		exit(1);
	return (size_t)stats.n_records;
}

static void read_all(struct bench *b, struct go_profile_reader *reader, const char *what, int first,
		     int limit)
{
	uint64_t start_ns = cpu_ns();
	size_t n_records = 0;
	char mark[64];

	snprintf(mark, sizeof(mark), "/bench/%d", limit - first);
	(void)!access(mark, F_OK);
	for (int i = first; i < limit; i++) {
		struct go_profile_target target = {.pid = b->processes[i].pid};

		if (go_profile_reader_read(reader, 0, &target))
			exit(1);
		n_records += name(reader, &target);
		go_profile_target_deinit(&target);
	}
	(void)!access("/bench/end", F_OK);
	printf("  %-34s %3d processes %8.1f us each, %zu records, %zu KiB of ours\n", what,
	       limit - first, (double)(cpu_ns() - start_ns) / 1000 / (limit - first), n_records,
	       own_kib());
	figure((double)(cpu_ns() - start_ns) / 1000 / (limit - first), "us", "read: %s", what);
}

static void shared_file(const char *path)
{
	static struct bench b;
	struct go_profile_reader_opts opts = {.kinds = GO_PROFILE_CUMULATIVE,
					      .rounds = true,
					      .record_bytes = 64u << 20,
					      .symbol_bytes = 32u << 20};
	struct go_profile_reader *reader;
	struct go_profile_memory caches;

	b = (struct bench){.proc = ROOT_INIT};
	if (root_open("/proc", &b.proc))
		exit(1);
	opts.proc = &b.proc;
	start(&b, path, NULL);
	printf("a Go program of 100 MB, read and named; %zu KiB of ours before\n", own_kib());
	if (go_profile_reader_new(&opts, &reader))
		exit(1);
	read_all(&b, reader, "the first one", 0, 1);
	read_all(&b, reader, "others", 1, N);
	caches = go_profile_reader_end_round(reader);
	read_all(&b, reader, "next round", 0, N);
	caches = go_profile_reader_end_round(reader);
	printf("  kept: %zu bytes of records, %zu of symbols, %zu of mappings, %zu of files\n",
	       caches.record_bytes, caches.symbol_bytes, caches.address_space_bytes,
	       caches.file_bytes);
	go_profile_reader_free(reader);
	stop(&b);
	root_deinit(&b.proc);
}

int main(int argc, char **argv)
{
	char path[4096];

	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	build("plain", path, sizeof(path));
	if (argc > 1)
		snprintf(path, sizeof(path), "%s", argv[1]);
	rows("a Go program", path, argc > 2 ? argv[2] : NULL);
	rows("a C program", "sleep", "1000");
	build("large", path, sizeof(path));
	shared_file(path);
	return 0;
}
