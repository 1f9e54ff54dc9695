/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_DOCTOR_FINDING_H
#define PODPROF_DOCTOR_FINDING_H

/* The result of a check: one line for a person, and for a problem its consequence and its remedy.
 */

#include <stddef.h>

#include "base/strview.h"

enum finding_outcome {
	FINDING_OK,
	FINDING_DEGRADED, /* works with restrictions */
	FINDING_MISSING,  /* something requested by the settings does not work */
	FINDING_OUTCOME_MAX,
};

/* Findings of one run; a dozen checks have one or two, destinations one each. Reached: the last
 * ones are missing. */
#define FINDINGS_MAX	 64
/* Bytes of each text with its NUL. Reached: cut. */
#define FINDING_TEXT_MAX 512

/**
 * struct finding
 * @check:  topic of the check, a constant
 * @found:  observed state
 * @means:  consequence for the user; "" with FINDING_OK
 * @remedy: remedy; "" with FINDING_OK
 */
struct finding {
	const char *check;
	enum finding_outcome outcome;
	char found[FINDING_TEXT_MAX];
	char means[FINDING_TEXT_MAX];
	char remedy[FINDING_TEXT_MAX];
};

/* {0} has none. */
struct findings {
	struct finding items[FINDINGS_MAX];
	size_t n;
};

/* Add a finding with its @found; finding_say() adds the other texts. Never NULL: without room the
 * last finding is used again. Foreign text is made printable. */
struct finding *findings_add(struct findings *f, const char *check, enum finding_outcome outcome,
			     const char *found, ...) __attribute__((format(printf, 4, 5)));
/* Both are copied. */
void finding_say(struct finding *finding, const char *means, const char *remedy);

/* A copy of foreign text, cut to fit and printable. */
void finding_text(char *ret, size_t n, struct strview text);

size_t findings_count(const struct findings *f, enum finding_outcome outcome);
/* "ok", "degraded", "missing". */
const char *finding_outcome_name(enum finding_outcome outcome);

#endif
