/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_TEST_SUPPORT_HOSTWALK_H
#define PODPROF_TEST_SUPPORT_HOSTWALK_H

/*
 * The walker of bpf/lib, compiled for the host, over a stopped process. The tables are those the
 * agent would compile, in the kernel's layout. hostwalk_space() gives the layout for real maps.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "shared/process.h"
#include "shared/settings.h"
#include "shared/table.h"

/* Slots of a walk's frames (WALK_SLOTS). */
#define HOSTWALK_SLOTS 640

struct hostwalk;
struct memo;
struct trail;

/* Where the innermost frame is. */
struct hostwalk_regs {
	uint64_t pc, sp, fp;
	uint64_t thread_pointer; /* x86-64: fs_base */
	uint64_t numbered[31];	 /* by DWARF number, except sp and fp */
	bool in_syscall;	 /* the pc is after the system call's instruction; x86-64 only */
};

struct hostwalk_stack {
	uint64_t pcs[HOSTWALK_SLOTS]; /* words as in shared/frame.h */
	size_t n;
	size_t n_rows;
	uint32_t end; /* enum sample_end */
	uint32_t flags;
};

/* The contents of the kernel's maps: arrays by number. */
struct hostwalk_space {
	const struct table_page *table_pages;
	const struct unwind_rule *rules;
	const struct table_rule_run *rule_runs;
	const struct table_exe *exes;
	size_t n_table_pages, n_rules, n_rule_runs, n_exes;
	uint32_t n_mappings; /* the process's; the first is entry 0 of page 0 */
	const struct memo *memo;
	struct trail *trail; /* of the last walk */
	/* The memory of a walk. */
	const void *state, *regs, *window, *frames;
	size_t state_bytes, regs_bytes, window_bytes;
};

/* Read a process's mappings and compile the tables of its images; the process must not change
 * meanwhile. 0 or -errno. */
int hostwalk_new(pid_t pid, struct hostwalk **ret);
void hostwalk_free(struct hostwalk *h);
/* Have the step of a language runtime (enum frame_runtime) in the next walks. @record: its value
 * for the process, borrowed. */
void hostwalk_set_runtime(struct hostwalk *h, uint32_t runtime, const void *record);
/* Walk the stack from @from, over the present memory. */
void hostwalk_walk(struct hostwalk *h, const struct hostwalk_regs *from, enum settings_unwind mode,
		   struct hostwalk_stack *ret);
/* The registers of a process, which must be stopped under ptrace. 0 or -errno. */
int hostwalk_regs(pid_t pid, struct hostwalk_regs *ret);
/* Whether code is mapped at @pc. */
bool hostwalk_is_code(struct hostwalk *h, uint64_t pc);
/* The rule at @pc. False if there is no table. */
bool hostwalk_rule(struct hostwalk *h, uint64_t pc, struct unwind_rule *ret);
/* The bias: pc minus vaddr. False if @pc is not code. */
bool hostwalk_bias(struct hostwalk *h, uint64_t pc, uint64_t *ret);
/* The addresses read by the last walk, in order; borrowed until the next walk. */
#define HOSTWALK_READS 1024
struct hostwalk_read {
	uint64_t address;
	uint64_t n_bytes;
};
const struct hostwalk_read *hostwalk_reads(const struct hostwalk *h, size_t *ret_n);
/* Remove the table of the image at @pc, like an eviction. */
void hostwalk_evict(struct hostwalk *h, uint64_t pc);
/* Uses of the executable at @pc. */
uint64_t hostwalk_uses(struct hostwalk *h, uint64_t pc);
struct hostwalk_space hostwalk_space(const struct hostwalk *h);

#endif
