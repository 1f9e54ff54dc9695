// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The runs of a BPF program, with the programs that it goes on in (tail calls), while one process
 * has a CPU. The kernel counts runs and their time for all processes together
 * (kernel.bpf_stats_enabled). At each end of a time slice the difference since the beginning
 * belongs to the process that leaves.
 */
#include "lib/kernel.bpf.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

char runs_license[] SEC("license") = "Dual BSD/GPL";

/* Set by runs.c: the process, its namespace, and descriptors: of the program that is measured, and
 * of runs_cpus. */
volatile __u32 runs_pid = 0;
volatile __u64 runs_dev = 0;
volatile __u64 runs_ino = 0;
volatile __u32 runs_program_fd = 0;
volatile __u32 runs_map_fd = 0;
/* From here the counters of a CPU are as far as its element of runs_cpus is from 0. */
volatile __u64 runs_stats = 0;

struct runs_counters {
	__u64 n;
	__u64 ns;
};

struct runs_cpu {
	struct runs_counters last;   /* at the last switch */
	struct runs_counters wanted; /* sums */
	__u64 has_last;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct runs_cpu);
} runs_cpus SEC(".maps");

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

typedef struct {
	__u64 v;
} u64_stats_t;

struct bpf_prog_stats {
	u64_stats_t cnt; /* since 5.16 (61a0abaee209); plain numbers before */
	u64_stats_t nsecs;
};

struct bpf_prog {
	struct bpf_prog_stats *stats;
};

struct bpf_array___per_cpu {
	void *pptrs[0];
};

struct file___private {
	void *private_data;
};

struct fdtable {
	struct file___private **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

struct task_struct___files {
	struct files_struct *files;
};

#pragma clang attribute pop

struct bpf_pidns_info {
	__u32 pid;
	__u32 tgid;
};

static inline int runs_is_wanted(void)
{
	struct bpf_pidns_info info = {0};

	return !bpf_get_ns_current_pid_tgid(runs_dev, runs_ino, &info, sizeof(info)) &&
	       info.tgid == runs_pid;
}

/* The object behind a descriptor of the task. */
static inline void *runs_object(__u32 fd)
{
	struct task_struct___files *task = (void *)bpf_get_current_task();
	struct file___private **files = BPF_CORE_READ(task, files, fdt, fd), *file = NULL;

	if (bpf_probe_read_kernel(&file, sizeof(file), files + fd))
		return NULL;
	return BPF_CORE_READ(file, private_data);
}

/* Run once by runs.c. Both are memory of each CPU, by an offset. */
SEC("raw_tp")
int runs_find(void *ctx)
{
	struct bpf_prog *program = runs_object(runs_program_fd);
	struct bpf_array___per_cpu *map = runs_object(runs_map_fd);
	__u64 off = 0;

	(void)ctx;
	if (!program || !map || bpf_core_read(&off, sizeof(off), &map->pptrs[0]))
		return 0;
	runs_stats = (__u64)BPF_CORE_READ(program, stats) - off;
	return 0;
}

/* The verifier permits no sum of the element's address and a number, so the address is read as a
 * number. Not 0 if unreadable. */
static inline int runs_read(const struct runs_cpu *cpu, struct runs_counters *ret)
{
	const struct bpf_prog_stats *stats;
	__u64 at;

	if (bpf_probe_read_kernel(&at, sizeof(at), &cpu))
		return -1;
	stats = (void *)(runs_stats + at);
	return bpf_core_read(&ret->n, sizeof(ret->n), &stats->cnt) ||
	       bpf_core_read(&ret->ns, sizeof(ret->ns), &stats->nsecs);
}

SEC("raw_tp/sched_switch")
int runs_switch(void *ctx)
{
	__u32 zero = 0;
	struct runs_cpu *cpu = bpf_map_lookup_elem(&runs_cpus, &zero);
	struct runs_counters now;

	(void)ctx;
	if (!cpu || runs_read(cpu, &now))
		return 0;
	if (cpu->has_last && runs_is_wanted()) {
		cpu->wanted.n += now.n - cpu->last.n;
		cpu->wanted.ns += now.ns - cpu->last.ns;
	}
	cpu->last = now;
	cpu->has_last = 1;
	return 0;
}
