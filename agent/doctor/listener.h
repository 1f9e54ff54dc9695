/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_DOCTOR_LISTENER_H
#define PODPROF_DOCTOR_LISTENER_H

/* Whether --web-config can be used, and whether the addresses of --listen and --ui-listen are free;
 * if not, whether an agent uses the first one, and that agent's state. */

#include <stdbool.h>
#include <stddef.h>

#include "server/web_config.h"

struct config;
struct findings;
struct http;
struct probe_results;

/* Conditions kept of a running agent, which has a handful. Reached: the others are not shown. */
#define LISTENER_CONDITIONS_MAX 8

/* A line of /-/ready. */
struct listener_condition {
	char name[32];
	bool ok;
	char why[256];
};

/**
 * struct listener
 * @web:      of --web-config, as web_access_try(); with @web_error if above 0
 * @needs_cert: its clients need certificates: a running agent cannot be asked
 * @plan:     the flags' values as listen_plan() takes them: 0 or a listen_outcome
 * @result:   of listening: 0 or -errno
 * @ui_result: the same for the page, if it has an address of its own
 * @agent:    an agent uses the address
 * @ready:    the agent reports itself ready; its conditions are kept in any case
 */
struct listener {
	int web;
	bool needs_cert;
	char web_error[WEB_ERROR_MAX];
	int plan;
	int result;
	int ui_result;
	bool agent;
	bool ready;
	struct listener_condition conditions[LISTENER_CONDITIONS_MAX];
	size_t n;
};

struct listener_trial;
/* Listens for a moment; if listening fails, asks the present listener. @config and @http are
 * borrowed. 0 or -ENOMEM. */
int listener_begin(struct http *http, const struct config *config, struct listener_trial **ret);
bool listener_pending(const struct listener_trial *trial);
/* @trial may be NULL. */
void listener_end(struct listener_trial *trial, struct listener *ret);

/* Parses an agent's answer at /-/ready; false for any other text. */
bool listener_read(const char *body, struct listener *ret);

void listener_check(const struct probe_results *results, struct findings *ret);

#endif
