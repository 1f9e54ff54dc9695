/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_SERVER_HEALTH_H
#define PODPROF_SERVER_HEALTH_H

/*
 * The reasons for the agent's health and readiness: named conditions, set by agent.c. "Unhealthy"
 * means that a restart would help; "ready" means that podprof is taking profiles.
 */

#include <stdbool.h>
#include <stddef.h>

struct buf;

/* Conditions; agent.c sets a dozen, each under a name of its own. Reached: neither healthy nor
 * ready. */
#define HEALTH_CONDITIONS_MAX 32
/* Bytes of a reason with its NUL. Reached: cut. */
#define HEALTH_REASON_MAX     256

enum health_kind {
	HEALTH_LIVE,  /* matters to both */
	HEALTH_READY, /* matters to ready only */
	HEALTH_NOTE,  /* shown with the conditions, without effect */
};

struct health_condition {
	const char *name;
	enum health_kind kind;
	bool ok;
	char reason[HEALTH_REASON_MAX];
};

/* {0} has no condition: healthy, and ready. */
struct health {
	struct health_condition items[HEALTH_CONDITIONS_MAX];
	size_t n;
	bool overflow;
};

/* Add or change the condition @name (borrowed, a constant). @reason tells why the condition does
 * not hold, or describes the state. @reason is copied and may be NULL. */
void health_set(struct health *h, enum health_kind kind, const char *name, bool ok,
		const char *reason);
bool health_ok(const struct health *h, enum health_kind kind);
/* Append a line for the answer. Returns as buf_append(). */
int health_summarize(const struct health *h, enum health_kind kind, struct buf *ret);
/* Append the same and a line for each relevant condition. Returns as buf_append(). */
int health_render(const struct health *h, enum health_kind kind, struct buf *ret);

#endif
