/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_DOCTOR_READING_H
#define PODPROF_DOCTOR_READING_H

/* Whether other processes can be read: what is tried on some of them. */

#include <stddef.h>

#include "discovery/pid.h"

struct config;
struct findings;
struct probe_results;
struct root;

/* Processes that are tried: of any container and user, and in a few milliseconds. Reached: the
 * others are not tried. */
#define READING_PROCESSES_MAX 64

enum reading_what {
	READING_MAPPINGS, /* /proc/PID/maps */
	READING_FILES,	  /* a file that is mapped */
	READING_MEMORY,	  /* some bytes of its memory */
	READING_MAX,
};

/**
 * struct reading
 * @n:       processes with a program that are not our own and lived long enough
 * @refused: of them, by what was tried; with mappings refused the others are, too
 * @example: the first of those: its number and name
 * @ksyms:   an enum ksyms_outcome, or -errno
 * @n_ksyms: the kernel's functions
 */
struct reading {
	size_t n;
	size_t refused[READING_MAX];
	struct reading_example {
		uint64_t pid;
		char comm[PID_COMM_MAX];
	} example;
	int ksyms;
	size_t n_ksyms;
};

/* @proc: --proc-root. What the settings do not ask for is not tried. 0 or -ENOMEM. */
int reading_look(const struct config *config, const struct root *proc, struct reading *ret);

void reading_check(const struct probe_results *results, struct findings *ret);

#endif
