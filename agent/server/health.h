/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_SERVER_HEALTH_H
#define PODPROF_SERVER_HEALTH_H

/*
 * Why the agent is, or is not, healthy and ready: named conditions that agent.c sets. "Healthy" is
 * that a restart would not help; "ready" that profiles are being taken.
 */

#include <stdbool.h>
#include <stddef.h>

struct buf;

/* Conditions; agent.c sets each under a name of its own, a dozen in all. One more is not kept, and
 * then neither healthy nor ready holds. Reached: neither healthy nor ready. */
#define HEALTH_CONDITIONS_MAX 32
/* Bytes of a reason with its NUL; a longer one is cut. Reached: cut. */
#define HEALTH_REASON_MAX     256

enum health_kind {
	HEALTH_LIVE,  /* matters to both */
	HEALTH_READY, /* matters to ready only */
	HEALTH_NOTE,  /* is shown with it, and decides nothing */
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

/* Add the condition @name (borrowed, a constant) or change it. @reason says why it does not hold,
 * or what is so; it is copied, and may be NULL. */
void health_set(struct health *h, enum health_kind kind, const char *name, bool ok,
		const char *reason);
bool health_ok(const struct health *h, enum health_kind kind);
/* Append a line for the answer and one for each condition that counts. Returns as buf_append(). */
int health_render(const struct health *h, enum health_kind kind, struct buf *ret);

#endif
