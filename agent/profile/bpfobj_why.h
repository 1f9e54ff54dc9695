/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_PROFILE_BPFOBJ_WHY_H
#define PODPROF_PROFILE_BPFOBJ_WHY_H

/* Why the BPF programs cannot run here: the cause and the remedy, in a sentence for users. */

#include <stdbool.h>
#include <stddef.h>

#include "profile/kernel.h"

struct root;

/**
 * struct bpfobj_why - the error message of a failed start
 *
 * One sentence for a user: the failed step, the cause and the remedy. "": no error.
 */
struct bpfobj_why {
	char text[512];
};

/* The step of a start, for the error message. */
enum bpfobj_step {
	BPFOBJ_LOAD,	      /* bpf(2): maps and programs */
	BPFOBJ_EVENT,	      /* perf_event_open(2) */
	BPFOBJ_ATTACH,	      /* a program to an event */
	BPFOBJ_FOLLOW,	      /* programs to the forks and exits of processes */
	BPFOBJ_SWITCH,	      /* a program to task switches */
	BPFOBJ_CGROUP_EVENTS, /* a program to the making of cgroups */
	BPFOBJ_STEP_MAX,
};

/* Probe results of the kernel and the process, for the error message of a failed step. */
struct bpfobj_facts {
	bool has_btf;		       /* /sys/kernel/btf/vmlinux */
	bool confidentiality;	       /* kernel lockdown's stricter mode */
	bool no_bpf;		       /* podprof lacks CAP_BPF */
	bool no_perfmon;	       /* podprof lacks CAP_PERFMON */
	struct kernel_version version; /* {0}: unknown */
	const char *complaint;	       /* the verifier's message; NULL or "": none */
};

/* The probe results of this machine and process. @proc as in struct bpfobj_opts; @sys NULL: no
 * result from /sys. */
struct bpfobj_facts bpfobj_facts_here(const struct root *proc, const struct root *sys);

/* Reasons for a kernel to accept no program. */
enum bpfobj_unfit {
	BPFOBJ_TOO_OLD,
	BPFOBJ_NO_TYPES,
	BPFOBJ_CONFIDENTIALITY,
	BPFOBJ_UNFIT_MAX,
};
/* Text for users: the predicate after "the kernel", and the remedy. */
struct bpfobj_fault {
	const char *is;
	const char *remedy;
};
/* NULL if @what does not apply. */
const struct bpfobj_fault *bpfobj_unfit(const struct bpfobj_facts *facts, enum bpfobj_unfit what);

/* Refuses kernels on which a read of user memory can hang the machine, unless @unsafe_kernel: 0, or
 * -EPERM with the message. */
int bpfobj_permit(const struct bpfobj_facts *facts, bool unsafe_kernel, struct bpfobj_why *ret);
/* The message for a failed step. */
void bpfobj_explain(enum bpfobj_step step, int err, const struct bpfobj_facts *facts,
		    struct bpfobj_why *ret);
/* The same, with probe results from @sys (NULL: none). */
void bpfobj_explain_here(enum bpfobj_step step, int err, const struct root *sys,
			 struct bpfobj_why *ret);

#endif
