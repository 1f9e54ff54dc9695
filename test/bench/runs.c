// SPDX-License-Identifier: Apache-2.0
/*
 * The runs of a BPF program while one process has a CPU, and their time:
 *
 *	runs PROGRAM_ID PID SECONDS
 *
 * Prints both as JSON. For frames.py.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "runs.skel.h"

/* As in runs.bpf.c. */
struct counters {
	uint64_t n, ns;
};

struct cpu {
	struct counters last, wanted;
	uint64_t has_last;
};

/* Of all CPUs. */
static int report(const struct runs_bpf *skel)
{
	const int n_cpus = libbpf_num_possible_cpus();
	_cleanup_(freep) struct cpu *cpus = calloc((size_t)n_cpus, sizeof(*cpus));
	struct counters sum = {0};
	const uint32_t zero = 0;

	if (!cpus)
		return -ENOMEM;
	if (bpf_map_lookup_elem(bpf_map__fd(skel->maps.runs_cpus), &zero, cpus) < 0)
		return -errno;
	for (int i = 0; i < n_cpus; i++) {
		sum.n += cpus[i].wanted.n;
		sum.ns += cpus[i].wanted.ns;
	}
	printf("{\"runs\": %" PRIu64 ", \"ns\": %" PRIu64 "}\n", sum.n, sum.ns);
	return 0;
}

/* Where the program's counters are. */
static int find(struct runs_bpf *skel, int fd)
{
	LIBBPF_OPTS(bpf_test_run_opts, options);

	skel->bss->runs_program_fd = (uint32_t)fd;
	skel->bss->runs_map_fd = (uint32_t)bpf_map__fd(skel->maps.runs_cpus);
	if (bpf_prog_test_run_opts(bpf_program__fd(skel->progs.runs_find), &options) < 0)
		return -errno;
	return skel->bss->runs_stats ? 0 : -ENOENT;
}

static int measure(struct runs_bpf *skel, uint32_t program, uint32_t pid, uint32_t seconds)
{
	_cleanup_(close_fdp) int fd = bpf_prog_get_fd_by_id(program);
	struct stat namespace;
	int r;

	if (fd < 0 || stat("/proc/self/ns/pid", &namespace) < 0)
		return -errno;
	skel->bss->runs_dev = namespace.st_dev;
	skel->bss->runs_ino = namespace.st_ino;
	skel->bss->runs_pid = pid;
	r = find(skel, fd);
	if (r == 0)
		r = runs_bpf__attach(skel);
	if (r < 0)
		return r;
	sleep(seconds);
	runs_bpf__detach(skel);
	return report(skel);
}

int main(int argc, char **argv)
{
	struct runs_bpf *skel;
	int r;

	if (argc != 4) {
		fprintf(stderr, "usage: runs PROGRAM_ID PID SECONDS\n");
		return 2;
	}
	skel = runs_bpf__open_and_load();
	r = skel ? measure(skel, (uint32_t)strtoul(argv[1], NULL, 10),
			   (uint32_t)strtoul(argv[2], NULL, 10),
			   (uint32_t)strtoul(argv[3], NULL, 10))
		 : -errno;
	if (r < 0)
		fprintf(stderr, "runs: %s\n", strerror(-r));
	runs_bpf__destroy(skel);
	return r < 0;
}
