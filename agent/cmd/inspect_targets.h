/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_CMD_INSPECT_TARGETS_H
#define PODPROF_CMD_INSPECT_TARGETS_H

/* What 'podprof inspect targets' shows: gathered in inspect_targets.c, printed as text in
 * inspect_targets_text.c. */

#include <stdbool.h>
#include <stddef.h>

#include "discovery/entity.h"
#include "discovery/pid.h"
#include "naming/labelling.h"
#include "naming/names.h"

/* Processes that are gathered: as many as an agent remembers. Reached: the others are left out. */
#define TARGETS_PROCESSES_MAX 65536

struct target_process {
	struct pid_id pid;
	const struct entity *entity;
	char comm[PID_COMM_MAX]; /* printable */
};

/**
 * struct target_view - one entity
 * @is:        its labels and why it is left out
 * @processes: @n_processes of them, by number; borrowed
 */
struct target_view {
	const struct entity *entity;
	struct labelled is;
	char name[NAMES_TEXT_MAX];
	const struct target_process *processes;
	size_t n_processes;
};

/* "container", "sandbox", "unit", ... */
const char *inspect_targets_what(const struct target_view *v);
/* Each in some lines with all that is known, or all in a line each; both with a last line on who
 * tells names (@sources). */
void inspect_targets_text(const struct target_view *views, size_t n, const char *sources);
void inspect_targets_brief(const struct target_view *views, size_t n, const char *sources);

#endif
