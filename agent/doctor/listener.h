/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_DOCTOR_LISTENER_H
#define PODPROF_DOCTOR_LISTENER_H

/* Whether --listen is free; if it is not, whether it is an agent that has it, and what that
 * says. */

#include <stdbool.h>
#include <stddef.h>

struct config;
struct findings;
struct http;
struct probe_results;

/* Conditions of an agent's that are kept: it has a handful. Reached: the others are not told. */
#define LISTENER_CONDITIONS_MAX 8

/* A line of /-/ready. */
struct listener_condition {
	char name[32];
	bool ok;
	char why[256];
};

/**
 * struct listener
 * @wrong:    --listen is no address
 * @result:   of listening there: 0 or -errno
 * @agent:    an agent has it
 * @ready:    and says that it is ready; in any case what it says
 */
struct listener {
	bool wrong;
	int result;
	bool agent;
	bool ready;
	struct listener_condition conditions[LISTENER_CONDITIONS_MAX];
	size_t n;
};

struct listener_trial;
/* Listens for a moment; if that cannot be, asks who does. @config and @http are borrowed. 0 or
 * -ENOMEM. */
int listener_begin(struct http *http, const struct config *config, struct listener_trial **ret);
bool listener_pending(const struct listener_trial *trial);
/* NULL is fine for @trial. */
void listener_end(struct listener_trial *trial, struct listener *ret);

/* What an agent answers at /-/ready; false if it is no agent's. */
bool listener_read(const char *body, struct listener *ret);

void listener_check(const struct probe_results *results, struct findings *ret);

#endif
