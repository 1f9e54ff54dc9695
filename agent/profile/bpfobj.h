/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_PROFILE_BPFOBJ_H
#define PODPROF_PROFILE_BPFOBJ_H

/* The BPF object: the programs and maps of bpf/. The walks of language runtimes are loaded later,
 * one runtime at a time. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile/bpfobj_why.h"
#include "profile/verifier.h"
#include "shared/settings.h"

struct root;
struct bpfobj;

/* Capacity of each generation of a program's maps, in stacks, by size class. */
struct bpfobj_sizes {
	uint32_t small;
	uint32_t large;
	uint32_t deep;
};

/**
 * struct bpfobj_opts - options of bpfobj_new()
 * @settings:         settings of all programs
 * @oncpu:            map sizes of the on-CPU program
 * @offcpu:           map sizes of the off-CPU program; zeros: the program is not loaded
 * @stack_dump_bytes: size of the ring for stack dumps: a power of two, at least a page; 0 with
 *                    settings.dumps_per_second 0 and on kernels with bpfobj_lacks_dumps()
 * @n_cpus:           the highest possible CPU number plus one
 * @unsafe_kernel:    load even if a read of user memory can hang the machine (profile/kernel.h)
 * @proc, @sys:       /proc (NULL: the machine's own) and /sys, for the kernel version; borrowed for
 *                    the call
 */
struct bpfobj_opts {
	struct settings settings;
	struct bpfobj_sizes oncpu;
	struct bpfobj_sizes offcpu;
	uint32_t stack_dump_bytes;
	uint32_t n_cpus;
	bool unsafe_kernel;
	const struct root *proc;
	const struct root *sys;
};

/* Make the maps and load the programs that the options need, but for the walks and excerpts of
 * runtimes. 0, or -errno with *@ret_why set. */
int bpfobj_new(const struct bpfobj_opts *opts, struct bpfobj_why *ret_why, struct bpfobj **ret);
/* A load of a runtime may outlive the owner. From any thread. */
struct bpfobj *bpfobj_ref(struct bpfobj *obj);
/* NULL: does nothing. */
void bpfobj_unref(struct bpfobj *obj);
/* True: the kernel gives no stack dumps (kernel_ring_may_sleep()). */
bool bpfobj_lacks_dumps(const struct bpfobj *obj);

enum bpfobj_runtime_outcome {
	BPFOBJ_RUNTIME_OK = 0,
	BPFOBJ_RUNTIME_REFUSED, /* by the verifier: frames of the runtime stay native */
};

/* The walks of a language runtime, for both kinds of samples. Owns its memory. */
struct bpfobj_runtime {
	struct verifier verifier;
	char why[128]; /* refused: the verifier's message, or "" */
};

/**
 * bpfobj_load_runtime() - load the walks of a language runtime
 * @runtime: enum frame_runtime
 * @ret:     set unless -errno; for bpfobj_runtime_deinit()
 *
 * Also loads the excerpts of the runtime, if any. Until then, samples of the runtime's processes
 * have native frames: the tail call fails, and the native walk follows. Takes 0.1 to 0.3 s of CPU
 * time, mostly in the verifier (Linux 6.18: Python 0.28, HotSpot 0.18, V8 0.11 s), so this is work
 * for a thread: one call at a time, beside any other function of the object.
 *
 * Return: 0, BPFOBJ_RUNTIME_REFUSED, or -errno.
 */
int bpfobj_load_runtime(const struct bpfobj *obj, uint32_t runtime, struct bpfobj_runtime *ret);
void bpfobj_runtime_deinit(struct bpfobj_runtime *runtime);

/* The stack maps of a program. The object owns descriptors and memory. */
struct bpfobj_stacks {
	int stats;
	int small[2]; /* by generation */
	int large[2];
	int deep[2];
	int lost[2]; /* samples that found no room in these, by process */
	int names;   /* of all kinds; -1: stacks have none */
	volatile uint32_t *generation;
};

/* The parts of the on-CPU sampler. */
struct bpfobj_oncpu {
	int program;
	struct bpfobj_stacks stacks;
};

struct bpfobj_oncpu bpfobj_oncpu(const struct bpfobj *obj);

/* The parts of the off-CPU sampler. @program is -1 unless loaded. */
struct offcpu_plan;
struct bpfobj_offcpu {
	int program;
	struct bpfobj_stacks stacks;
	volatile struct offcpu_plan *plan;
};

struct bpfobj_offcpu bpfobj_offcpu(const struct bpfobj *obj);

/* The parts of the pid filter. The programs are -1 unless processes are filtered. */
struct bpfobj_pid_filter {
	int ids;
	int fork_program;
	int exit_program;
	volatile uint32_t *refused;
};

struct bpfobj_pid_filter bpfobj_pid_filter(const struct bpfobj *obj);

/* The map of cgroup sampling (bpf/shared/cgroup_sampling.h). */
struct bpfobj_cgroup_sampling {
	int cgroup_sampling;
	volatile uint32_t *in_use;
	volatile uint32_t *inner;
	volatile uint64_t *newest;
};

struct bpfobj_cgroup_sampling bpfobj_cgroup_sampling(const struct bpfobj *obj);

/* The cgroup events (bpf/shared/cgroup_events.h). @program is -1 if processes are filtered. */
struct bpfobj_cgroup_events {
	int ring;
	int program;
	const volatile uint64_t *n;
};

struct bpfobj_cgroup_events bpfobj_cgroup_events(const struct bpfobj *obj);

/* The stack dumps. The object owns the descriptors. */
struct bpfobj_stack_dumps {
	int ring;
	int stats; /* per CPU, by enum stack_dump_stat */
};

struct bpfobj_stack_dumps bpfobj_stack_dumps(const struct bpfobj *obj);

/**
 * struct bpfobj_unwind - the unwind maps of the walk; the object owns descriptors and memory
 * @records:  processes
 * @runtimes: by enum frame_runtime, @n_runtimes: the processes with this language runtime, in the
 *            map NAME_processes of bpf/lib/; -1: the runtime has no such map
 * @runtime_exes: likewise, the programs with the runtime: NAME_exes; without one: exe_dumps
 */
struct bpfobj_unwind {
	int records;
	const int *runtimes;
	const int *runtime_exes;
	size_t n_runtimes;
	int slabs;
	int exes;
	int uses;
	int rules;
	int rule_runs;
};

struct bpfobj_unwind bpfobj_unwind(const struct bpfobj *obj);

/* Runs and run time of a program. The kernel counts both with kernel.bpf_stats_enabled only. */
struct bpfobj_cost {
	uint64_t runs;
	uint64_t run_ns;
};

/* 0 or -errno. */
int bpfobj_cost(int program, struct bpfobj_cost *ret);
/* The programs, with the verifier's instruction counts; the object owns the result. */
const struct verifier *bpfobj_verifier(const struct bpfobj *obj);
/* Time of the load in ns: maps, relocation, verification. */
uint64_t bpfobj_load_ns(const struct bpfobj *obj);
/* The kernel has bpf_loop(): one program walks a whole stack. Otherwise tail calls walk parts. */
bool bpfobj_has_loop(const struct bpfobj *obj);
/* Let the kernel count the run time of programs until the returned descriptor is closed. -errno
 * without permission. The count costs each run of every program on the
 * node about 20 ns. */
int bpfobj_count_cost(void);
/* Kernel memory of the maps in bytes, as reported by the kernel; 0 without a report. */
uint64_t bpfobj_map_bytes(const struct bpfobj *obj, const struct root *proc);

#endif
