// SPDX-License-Identifier: Apache-2.0
/*
 * The cost of reading a large Go heap: 32,768 stacks of 19 frames (test/fixtures/go/buckets), the
 * first time and later, compared with reading the same list record by record, like other readers,
 * in the same run. Times are CPU time, the lowest of many; calls are counted by the reader; strace
 * agrees.
 *
 *	bench_goheap [DEPTH [GOROUTINES]]	2^DEPTH stacks; 20 makes a million
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/nsec.h"
#include "base/root.h"
#include "goheap/goheap.h"
#include "procmap/memory.h"
#include "support/figure.h"

#define READS	   30
#define SLICE	   (1u << 20)
#define MAX_BYTES  ((size_t)1 << 30)
#define RECORD_MAX 1200 /* bytes of one record in the record-by-record reader */

/* The program's path, or an empty string. */
static void build(const char *go, char *ret, size_t n)
{
	char command[256];
	FILE *out;

	snprintf(command, sizeof(command),
		 "test/support/build-go.sh build/test/go test/fixtures/go/buckets %s default", go);
	ret[0] = '\0';
	out = popen(command, "r"); // NOLINT(bugprone-command-processor,cert-env33-c)
	if (!out)
		return;
	if (!fgets(ret, (int)n, out))
		ret[0] = '\0';
	ret[strcspn(ret, "\n")] = '\0';
	pclose(out);
}

/* Start the program and wait until it is at rest. Returns the pid, or -1. The program ends when
 * *@ret_to is closed. */
static pid_t start(const char *path, const char *depth, const char *goroutines, int *ret_to)
{
	int in[2], out[2];
	char line[8];
	pid_t pid;

	if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0)
		return -1;
	pid = fork();
	if (pid == 0) {
		setenv("GOMAXPROCS", goroutines, 1);
		if (dup2(in[0], STDIN_FILENO) >= 0 && dup2(out[1], STDOUT_FILENO) >= 0)
			execl(path, path, depth, goroutines, NULL);
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

static uint64_t cpu_ns(void)
{
	return nsec_read(CLOCK_PROCESS_CPUTIME_ID);
}

static uint64_t sys_ns(const struct rusage *r)
{
	return (uint64_t)r->ru_stime.tv_sec * NSEC_PER_SEC + (uint64_t)r->ru_stime.tv_usec * 1000;
}

/* The cost of some reads. */
struct cost {
	uint64_t cpu_ns;     /* of the cheapest */
	uint64_t longest_ns; /* the longest step of the cheapest, by the clock */
	uint64_t sys_ns; /* part of it in the kernel; in ticks of some milliseconds on some kernels
			  */
	uint64_t n_faults; /* new pages of the bench */
	uint64_t n_calls;
	uint64_t n_bytes;
};

static void print_cost(const char *go, const char *name, const struct cost *cost,
		       const struct cost *beside)
{
	printf("  %-22s %8.2f ms CPU %7" PRIu64 " calls %10" PRIu64 " bytes", name,
	       (double)cost->cpu_ns / 1e6, cost->n_calls, cost->n_bytes);
	if (cost->n_faults)
		printf(" %5" PRIu64 " faults %5.2f ms sys", cost->n_faults,
		       (double)cost->sys_ns / 1e6);
	if (beside)
		printf("   1/%.0f of the time, 1/%.0f of the calls",
		       (double)beside->cpu_ns / (double)cost->cpu_ns,
		       (double)beside->n_calls / (double)cost->n_calls);
	if (cost->longest_ns)
		printf("   longest step %.2f ms", (double)cost->longest_ns / 1e6);
	printf("\n");
	if (beside) {
		figure_beside((double)cost->cpu_ns / 1e6, (double)beside->cpu_ns / 1e6,
			      "one by one", "ms", "%s: %s", go, name);
		figure_beside((double)cost->n_calls, (double)beside->n_calls, "one by one", "calls",
			      "%s: %s", go, name);
	}
}

/* One read, in slices with a budget. */
static int read_once(struct goheap *h, size_t budget, struct goheap_profile *profile,
		     struct cost *cost)
{
	struct cost now = {0};
	struct rusage before, after;
	uint64_t begin;
	int r;

	getrusage(RUSAGE_SELF, &before);
	begin = cpu_ns();
	do {
		uint64_t step = nsec_monotonic();

		r = goheap_step(h, budget, profile);
		step = nsec_monotonic() - step;
		if (budget != SIZE_MAX && step > now.longest_ns)
			now.longest_ns = step;
	} while (r == (int)GOHEAP_UNFINISHED);
	now.cpu_ns = cpu_ns() - begin;
	getrusage(RUSAGE_SELF, &after);
	now.sys_ns = sys_ns(&after) - sys_ns(&before);
	now.n_faults = (uint64_t)(after.ru_minflt - before.ru_minflt);
	if (r) {
		fprintf(stderr, "bench_goheap: state %s\n", goruntime_state_name(r));
		return r;
	}
	now.n_calls = profile->n_calls;
	now.n_bytes = profile->n_bytes;
	if (!cost->cpu_ns || now.cpu_ns < cost->cpu_ns)
		*cost = now;
	return 0;
}

/* Bytes of the list in the process, without other objects in the chunks. */
static uint64_t table_bytes(const struct goheap_profile *p)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < p->n_records; i++) {
		struct goheap_record record;

		goheap_record(p, i, &record);
		sum += 48 + 8 * record.n_pcs + (p->blank_label ? 128 : 64);
	}
	return sum;
}

/* The list record by record, one call each; later only the changeable parts. */
static int one_by_one(struct goheap *h, const struct goheap_profile *p, pid_t pid,
		      struct cost *first, struct cost *later)
{
	uint64_t head = goruntime_addr(goheap_runtime(h), GORUNTIME_MBUCKETS), addr = 0;
	uint64_t *at = calloc(p->n_records + 1, sizeof(*at)), words[RECORD_MAX / 8];
	size_t n_counters = p->blank_label ? 128 : 64, n = 0;
	struct iovec local = {&addr, sizeof(addr)}, remote = {(void *)(uintptr_t)head, 8};
	uint64_t begin = cpu_ns();

	if (!at || process_vm_readv(pid, &local, 1, &remote, 1, 0) != 8) {
		free(at);
		return -1;
	}
	for (; addr && n < p->n_records; n++, first->n_calls++) {
		local = (struct iovec){words, sizeof(words)};
		remote = (struct iovec){(void *)(uintptr_t)addr, sizeof(words)};
		if (process_vm_readv(pid, &local, 1, &remote, 1, 0) < 176)
			break;
		first->n_bytes += sizeof(words);
		at[n] = addr + 48 + 8 * words[5];
		addr = words[1];
	}
	first->cpu_ns = cpu_ns() - begin;
	begin = cpu_ns();
	for (size_t i = 0; i < n; i++, later->n_calls++) {
		local = (struct iovec){words, n_counters};
		remote = (struct iovec){(void *)(uintptr_t)at[i], n_counters};
		if (process_vm_readv(pid, &local, 1, &remote, 1, 0) < 0)
			break;
		later->n_bytes += n_counters;
	}
	later->cpu_ns = cpu_ns() - begin;
	free(at);
	return 0;
}

static int measure(const char *go, const struct root *proc, pid_t pid)
{
	struct goheap_opts opts = {.proc = proc, .max_bytes = MAX_BYTES};
	struct cost first = {0}, later = {0}, slices = {0}, by_one = {0}, by_one_later = {0};
	struct goheap_profile profile;
	struct goheap *h = NULL;
	int r = pid_read(proc, pid, &opts.id);

	for (int i = 0; !r && i < READS; i++) {
		goheap_free(h);
		r = goheap_new(&opts, &h);
		if (!r)
			r = read_once(h, i % 2 ? SLICE : SIZE_MAX, &profile,
				      i % 2 ? &slices : &first);
	}
	for (int i = 0; !r && i < READS; i++)
		r = read_once(h, SIZE_MAX, &profile, &later);
	if (!r)
		r = one_by_one(h, &profile, pid, &by_one, &by_one_later);
	if (!r) {
		printf("  %zu records of %" PRIu64 " bytes in all, %zu kept: %.2f of it\n",
		       profile.n_records, table_bytes(&profile), goheap_bytes(h),
		       (double)goheap_bytes(h) / (double)table_bytes(&profile));
		print_cost(go, "first, one by one", &by_one, NULL);
		print_cost(go, "first", &first, &by_one);
		print_cost(go, "first, in slices", &slices, NULL);
		print_cost(go, "later, one by one", &by_one_later, NULL);
		print_cost(go, "later", &later, &by_one_later);
	}
	goheap_free(h);
	return r;
}

int main(int argc, char **argv)
{
	/* the wide and the narrow form of records */
	static const char *const gos[] = {"1.26.8", "1.27.3"};
	const char *depth = argc > 1 ? argv[1] : "15", *goroutines = argc > 2 ? argv[2] : "1";
	struct root proc;
	int status = 0;

	if (root_open("/proc", &proc))
		return 1;
	for (size_t i = 0; i < array_size(gos); i++) {
		char path[4096];
		int to = -1;
		pid_t pid;

		build(gos[i], path, sizeof(path));
		pid = *path ? start(path, depth, goroutines, &to) : -1;
		printf("goheap, Go %s\n", gos[i]);
		if (pid < 0 || measure(gos[i], &proc, pid))
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
