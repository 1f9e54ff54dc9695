/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_DOCTOR_READING_H
#define PODPROF_DOCTOR_READING_H

/* Whether other processes are readable, tried on a few processes. */

#include <stddef.h>

#include "discovery/pid.h"
#include "doctor/stripped.h"

struct config;
struct findings;
struct probe_results;
struct root;

/* Processes tried: of any container and user, within a few milliseconds. Reached: the others are
 * not tried. */
#define READING_PROCESSES_MAX 64

enum reading_what {
	READING_MAPPINGS, /* /proc/PID/maps */
	READING_FILES,	  /* a mapped file */
	READING_MEMORY,	  /* some bytes of the memory */
	READING_MAX,
};

/**
 * struct reading
 * @n:       tried processes: with a program, not ours, alive during the trial
 * @refused: of these, by the kind of access; refused mappings imply refusals of the others
 * @example: the first refused process: its number and name
 * @stripped: the programs with readable files, if CPU profiles are on
 * @ksyms:   an enum ksyms_outcome, or -errno
 * @n_ksyms: the kernel's functions
 * @text_start: the first address of the kernel's code; 0: unknown
 */
struct reading {
	size_t n;
	size_t refused[READING_MAX];
	struct reading_example {
		uint64_t pid;
		char comm[PID_COMM_MAX];
	} example;
	struct stripped stripped;
	int ksyms;
	size_t n_ksyms;
	uint64_t text_start;
};

/* @proc: --proc-root. Tries only accesses required by the settings. 0 or -ENOMEM. */
int reading_look(const struct config *config, const struct root *proc, struct reading *ret);

void reading_check(const struct probe_results *results, struct findings *ret);

#endif
