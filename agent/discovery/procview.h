/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_DISCOVERY_PROCVIEW_H
#define PODPROF_DISCOVERY_PROCVIEW_H

/* How much of the node a /proc shows us, for people: what is missing in profiles because of it. */

#include <stdbool.h>
#include <stddef.h>

struct root;

/* What we see of the others' processes (the mount option hidepid). */
enum procview_others {
	PROCVIEW_SEEN,
	PROCVIEW_CLOSED, /* that they are there, and nothing in their directories */
	PROCVIEW_HIDDEN, /* nothing */
};

/**
 * struct procview
 * @others: of processes that do not belong to us
 * @nested: it is not of the first PID namespace: processes outside it are not in it
 * @ours:   it is of our own PID namespace
 */
struct procview {
	enum procview_others others;
	bool nested;
	bool ours;
};

void procview_look(const struct root *proc, struct procview *ret);

/* A thing that is not as it should be. */
struct procview_problem {
	const char *what;
	const char *means;  /* what is missing because of it */
	const char *remedy; /* "" where there may be nothing wrong */
};

#define PROCVIEW_PROBLEMS 3

/* Those that there are. Returns their number. */
size_t procview_problems(const struct procview *view,
			 struct procview_problem ret[PROCVIEW_PROBLEMS]);

/* Bytes of all sentences with the NUL. */
#define PROCVIEW_TEXT_BYTES 512

/* What is not as it should be, each with its remedy, one sentence behind the other. "" and false if
 * all is well. */
bool procview_tell(const struct procview *view, char ret[PROCVIEW_TEXT_BYTES]);

#endif
