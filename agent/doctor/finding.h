/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_DOCTOR_FINDING_H
#define PODPROF_DOCTOR_FINDING_H

/* What a check says: one line for a person, and where something is wrong what that costs and what
 * to do about it. */

#include <stddef.h>

enum finding_outcome {
	FINDING_OK,
	FINDING_DEGRADED, /* it works, with less */
	FINDING_MISSING,  /* something that the settings ask for does not */
	FINDING_OUTCOME_MAX,
};

/* Findings of one run; a dozen checks have one or two, destinations one each. Reached: the last
 * ones are missing. */
#define FINDINGS_MAX	 64
/* Bytes of each text with its NUL; a longer one is cut. Reached: cut. */
#define FINDING_TEXT_MAX 512

/**
 * struct finding
 * @check:  what was looked at: a constant
 * @found:  what is there
 * @means:  what the user does without; "" with FINDING_OK
 * @remedy: what to do about it; "" with FINDING_OK
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

/* One more, whose @found is given; its other texts are added by finding_say(). Never NULL: when
 * there is no room the last one is used again. Foreign text is made printable. */
struct finding *findings_add(struct findings *f, const char *check, enum finding_outcome outcome,
			     const char *found, ...) __attribute__((format(printf, 4, 5)));
/* Both are copied. */
void finding_say(struct finding *finding, const char *means, const char *remedy);

size_t findings_count(const struct findings *f, enum finding_outcome outcome);
/* "ok", "degraded", "missing". */
const char *finding_outcome_name(enum finding_outcome outcome);

#endif
