/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_PROFILE_BPFOBJ_H
#define PODPROF_PROFILE_BPFOBJ_H

/* The BPF object: every program and map in bpf/, loaded together. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile/kernel.h"
#include "shared/settings.h"

struct root;
struct verifier;
struct bpfobj;

/**
 * struct bpfobj_why - why there is no profiling, in one sentence for a person: what failed, why,
 * and what to do about it. "" while nothing has failed.
 */
struct bpfobj_why {
	char text[512];
};

/* What was being done. */
enum bpfobj_step {
	BPFOBJ_LOAD,	      /* bpf(2): maps and programs */
	BPFOBJ_EVENT,	      /* perf_event_open(2) */
	BPFOBJ_ATTACH,	      /* a program to an event */
	BPFOBJ_FOLLOW,	      /* programs to the forks and exits of processes */
	BPFOBJ_SWITCH,	      /* a program to task switches */
	BPFOBJ_CGROUP_EVENTS, /* a program to the making of cgroups */
	BPFOBJ_STEP_MAX,
};

/* What else is known of the kernel when a step fails. */
struct bpfobj_facts {
	bool has_btf;		       /* /sys/kernel/btf/vmlinux */
	bool confidentiality;	       /* kernel lockdown's stricter mode */
	bool no_bpf;		       /* we have no CAP_BPF */
	bool no_perfmon;	       /* nor this one */
	struct kernel_version version; /* {0}: not known */
	const char *complaint;	       /* of the verifier; NULL or "": none */
};

/* Stacks in each generation of a program's maps, by class. */
struct bpfobj_sizes {
	uint32_t small;
	uint32_t large;
	uint32_t deep;
};

/**
 * struct bpfobj_opts
 * @settings:      of all programs
 * @oncpu:         sizes of the on-CPU program's maps
 * @offcpu:        and of the off-CPU program's; zeros: it is not loaded
 * @stack_dump_bytes:    of the ring for copied stacks, a power of two and not less than a page; 0
 *                       with
 *                 settings.dumps_per_second 0
 * @n_cpus:        one more than the highest number a CPU can have
 * @unsafe_kernel: also load where reading user memory may hang the machine (profile/kernel.h)
 * @proc, @sys:    /proc (NULL: the machine's own) and /sys, to tell which kernel this is; borrowed
 *                 for the call
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

/* Load everything. 0, or -errno with *@ret_why set. */
int bpfobj_new(const struct bpfobj_opts *opts, struct bpfobj_why *ret_why, struct bpfobj **ret);
void bpfobj_free(struct bpfobj *obj);

/* Where a program counts stacks; descriptors and memory belong to the object. */
struct bpfobj_stacks {
	int stats;
	int small[2]; /* by generation */
	int large[2];
	int deep[2];
	volatile uint32_t *generation;
};

/* The on-CPU sampler's parts. */
struct bpfobj_oncpu {
	int program;
	struct bpfobj_stacks stacks;
};

struct bpfobj_oncpu bpfobj_oncpu(const struct bpfobj *obj);

/* The off-CPU sampler's parts; the program is -1 unless it was loaded. */
struct offcpu_plan;
struct bpfobj_offcpu {
	int program;
	struct bpfobj_stacks stacks;
	volatile struct offcpu_plan *plan;
};

struct bpfobj_offcpu bpfobj_offcpu(const struct bpfobj *obj);

/* The filter's parts; the programs are -1 unless processes are filtered. */
struct bpfobj_pid_filter {
	int ids;
	int fork_program;
	int exit_program;
	volatile uint32_t *refused;
};

struct bpfobj_pid_filter bpfobj_pid_filter(const struct bpfobj *obj);

/* The table of shares (bpf/shared/cgroup_sampling.h). */
struct bpfobj_cgroup_sampling {
	int cgroup_sampling;
	volatile uint32_t *in_use;
};

struct bpfobj_cgroup_sampling bpfobj_cgroup_sampling(const struct bpfobj *obj);

/* Cgroup directories that were made (bpf/shared/cgroup_events.h); the program is -1 where only some
 * processes' samples are wanted. */
struct bpfobj_cgroup_events {
	int ring;
	int program;
	const volatile uint64_t *n;
};

struct bpfobj_cgroup_events bpfobj_cgroup_events(const struct bpfobj *obj);

/* Stacks that were copied out; descriptors belong to the object. */
struct bpfobj_stack_dumps {
	int ring;
	int stats; /* per CPU, by enum stack_dump_stat */
};

struct bpfobj_stack_dumps bpfobj_stack_dumps(const struct bpfobj *obj);

/* What the walker goes by. */
struct bpfobj_unwind {
	int records; /* processes */
	int slabs;
	int exes;
	int uses;
	int rules;
	int rule_runs;
};

struct bpfobj_unwind bpfobj_unwind(const struct bpfobj *obj);

/* A program's share of time, as far as the kernel counts it (kernel.bpf_stats_enabled). */
struct bpfobj_cost {
	uint64_t runs;
	uint64_t run_ns;
};

/* 0 or -errno. */
int bpfobj_cost(int program, struct bpfobj_cost *ret);
/* The programs and how much of each the verifier looked at; belongs to the object. */
const struct verifier *bpfobj_verifier(const struct bpfobj *obj);
/* What the kernel took to load everything: maps, relocation, verifying. */
uint64_t bpfobj_load_ns(const struct bpfobj *obj);
/* Stacks are walked in one go; else, on a kernel without bpf_loop(), in parts. */
bool bpfobj_has_loop(const struct bpfobj *obj);
/* Let the kernel count what programs cost, until the descriptor that this returns is closed.
 * -errno if it may not or cannot (before 5.8). It costs every program on the node some 20 ns. */
int bpfobj_count_cost(void);
/* Bytes of kernel memory that the maps take, as the kernel reports them; 0 if it does not. */
uint64_t bpfobj_map_bytes(const struct bpfobj *obj, const struct root *proc);

/* The facts of this machine and process. @proc as in struct bpfobj_opts; @sys: NULL: none known of
 * it. */
struct bpfobj_facts bpfobj_facts_here(const struct root *proc, const struct root *sys);

/* What may be true of a kernel into which no program can be loaded. */
enum bpfobj_unfit {
	BPFOBJ_TOO_OLD,
	BPFOBJ_NO_TYPES,
	BPFOBJ_CONFIDENTIALITY,
	BPFOBJ_UNFIT_MAX,
};
/* For people: behind "the kernel", and what helps. */
struct bpfobj_fault {
	const char *is;
	const char *remedy;
};
/* NULL where it is not so. */
const struct bpfobj_fault *bpfobj_unfit(const struct bpfobj_facts *facts, enum bpfobj_unfit what);

/* Whether programs may be loaded at all: 0, or -EPERM with the sentence. */
int bpfobj_permit(const struct bpfobj_facts *facts, bool unsafe_kernel, struct bpfobj_why *ret);
/* The sentence for a failed step. */
void bpfobj_explain(enum bpfobj_step step, int err, const struct bpfobj_facts *facts,
		    struct bpfobj_why *ret);
/* The same, with the facts read from @sys (NULL: none known). */
void bpfobj_explain_here(enum bpfobj_step step, int err, const struct root *sys,
			 struct bpfobj_why *ret);

#endif
