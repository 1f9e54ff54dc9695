/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_TEST_SUPPORT_HOSTWALK_H
#define PODPROF_TEST_SUPPORT_HOSTWALK_H

/*
 * The walker of bpf/lib, compiled for the host, over a stopped process: with the tables that the
 * agent would compile for its images, laid out as the kernel would have them. The same layout can
 * be put into real maps, see hostwalk_space().
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "shared/process.h"
#include "shared/settings.h"
#include "shared/table.h"

/* Slots of a walk's frames (WALK_SLOTS). */
#define HOSTWALK_SLOTS 1024

struct hostwalk;

/* Where the innermost frame is. */
struct hostwalk_regs {
	uint64_t pc, sp, fp;
	uint64_t thread_pointer; /* x86-64: fs_base */
	uint64_t numbered[31];	 /* by DWARF number, those two excepted */
	bool in_syscall;	 /* and pc is behind its instruction; x86-64 only */
};

struct hostwalk_stack {
	uint64_t pcs[HOSTWALK_SLOTS];
	size_t n;
	size_t n_rows;
	uint32_t end; /* enum sample_end */
	uint32_t flags;
};

/* What the kernel's maps would hold: arrays by number. */
struct hostwalk_space {
	const struct table_page *table_pages;
	const struct unwind_rule *rules;
	const struct table_rule_run *rule_runs;
	const struct table_exe *exes;
	size_t n_table_pages, n_rules, n_rule_runs, n_exes;
	uint32_t n_mappings; /* the process's; the first is entry 0 of page 0 */
};

/* Read a process's mappings and compile the tables of its images; it must not change either
 * meanwhile. 0 or -errno. */
int hostwalk_new(pid_t pid, struct hostwalk **ret);
void hostwalk_free(struct hostwalk *h);
/* Its stack from @from. Memory is read as it is now. */
void hostwalk_walk(struct hostwalk *h, const struct hostwalk_regs *from, enum settings_unwind mode,
		   struct hostwalk_stack *ret);
/* Where its stack begins if it is stopped under ptrace, which must be so. 0 or -errno. */
int hostwalk_regs(pid_t pid, struct hostwalk_regs *ret);
/* Whether code is mapped at @pc. */
bool hostwalk_is_code(struct hostwalk *h, uint64_t pc);
/* The rule at @pc. False if there is no table. */
bool hostwalk_rule(struct hostwalk *h, uint64_t pc, struct unwind_rule *ret);
/* What is taken from a pc to get its vaddr. False if @pc is not code. */
bool hostwalk_bias(struct hostwalk *h, uint64_t pc, uint64_t *ret);
/* What the last walk read of the process's memory, in that order; borrowed until the next one. */
#define HOSTWALK_READS 1024
struct hostwalk_read {
	uint64_t address;
	uint64_t n_bytes;
};
const struct hostwalk_read *hostwalk_reads(const struct hostwalk *h, size_t *ret_n);
/* Take an image's table away, as when it was evicted: that which has @pc. */
void hostwalk_evict(struct hostwalk *h, uint64_t pc);
/* Uses of the executable that has @pc. */
uint64_t hostwalk_uses(struct hostwalk *h, uint64_t pc);
struct hostwalk_space hostwalk_space(const struct hostwalk *h);

#endif
