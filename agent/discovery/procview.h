/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_DISCOVERY_PROCVIEW_H
#define PODPROF_DISCOVERY_PROCVIEW_H

/* How much of the node a /proc shows the agent, and the effect of missing parts on profiles. For
 * users. */

#include <stdbool.h>
#include <stddef.h>

struct root;

/* How much of other users' processes is visible (mount option hidepid). */
enum procview_others {
	PROCVIEW_SEEN,
	PROCVIEW_CLOSED, /* the directories are listed but closed */
	PROCVIEW_HIDDEN, /* not listed */
};

/**
 * struct procview
 * @absent: the directory is neither a procfs nor a copy of one; then the others say nothing
 * @others: visibility of processes of other users
 * @nested: /proc is not of the first PID namespace, so processes outside are missing
 * @ours:   /proc is of the agent's own PID namespace
 */
struct procview {
	bool absent;
	enum procview_others others;
	bool nested;
	bool ours;
};

void procview_look(const struct root *proc, struct procview *ret);

/* A problem with /proc. */
struct procview_problem {
	const char *what;
	const char *means;  /* the effect on profiles */
	const char *remedy; /* "" if the state may be intended */
};

#define PROCVIEW_PROBLEMS 3

/* Fills in the present problems. Returns their number. */
size_t procview_problems(const struct procview *view,
			 struct procview_problem ret[PROCVIEW_PROBLEMS]);

/* Bytes of all sentences with the NUL. */
#define PROCVIEW_TEXT_BYTES 512

/* Describes all problems with their remedies in consecutive sentences. "" and false if there are
 * none. */
bool procview_tell(const struct procview *view, char ret[PROCVIEW_TEXT_BYTES]);

#endif
