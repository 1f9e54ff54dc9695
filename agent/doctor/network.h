/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_DOCTOR_NETWORK_H
#define PODPROF_DOCTOR_NETWORK_H

/* The destinations: one request to each, with no profile in it; and what their clocks say of
 * ours. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/config.h"
#include "export/destination.h"

struct findings;
struct http;
struct probe_results;

/* Bytes of what is told of a destination with the NUL; more is cut. Reached: cut. */
#define REACHED_TEXT_MAX 512

/**
 * struct reached - how it went with a destination
 * @kind:    what it is; NULL if @wrong
 * @where:   its host, or if @wrong nothing
 * @wrong:   it is not written as it should be: @why says how
 * @done:    there was an end
 * @status:  of HTTP; 0: there was no reply
 * @verdict: how the kind reads the reply
 * @refused: it has refused the request for its content only: expected, since that is no profile
 * @why:     what the server, or the way there, says: foreign
 * @ahead_s: seconds that its clock is ahead of ours; 0 if it did not say
 */
struct reached {
	const struct destination_kind *kind;
	char where[256];
	bool wrong;
	bool done;
	long status;
	enum destination_verdict verdict;
	bool refused;
	char why[REACHED_TEXT_MAX];
	int64_t ahead_s;
};

struct network {
	struct reached items[CONFIG_DESTINATIONS_MAX];
	size_t n;
	int64_t now_s; /* our clock */
};

struct network_trial;
/* Asks all of them. @config and @http are borrowed. 0 or -ENOMEM. */
int network_begin(struct http *http, const struct config *config, struct network_trial **ret);
bool network_pending(const struct network_trial *trial);
/* What is under way ends. NULL is fine for @trial. */
void network_end(struct network_trial *trial, struct network *ret);

void network_check(const struct probe_results *results, struct findings *ret);

#endif
