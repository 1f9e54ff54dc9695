/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_DOCTOR_NETWORK_H
#define PODPROF_DOCTOR_NETWORK_H

/* The destinations: one request without a profile to each, and the difference between its clock and
 * ours. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/config.h"
#include "export/destination.h"

struct findings;
struct http;
struct probe_results;

/* Bytes of a text about a destination with the NUL. Reached: cut. */
#define REACHED_TEXT_MAX 512

/**
 * struct reached - the result of a request to a destination
 * @kind:    kind of the destination; NULL if @wrong
 * @where:   its host; "" if @wrong
 * @wrong:   the setting is malformed: @why tells the reason
 * @no_file: a file of the setting cannot be read: @why tells which; no request
 * @done:    the request has ended
 * @status:  of HTTP; 0: no reply
 * @verdict: the kind's verdict on the reply
 * @refused: the backend rejected our empty probe body (expected)
 * @why:     message of the server, or of a failure on the way: foreign
 * @ahead_s: seconds that its clock is ahead of ours; 0 if unknown
 */
struct reached {
	const struct destination_kind *kind;
	char where[256];
	bool wrong;
	bool no_file;
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
/* Sends a request to every destination. @config and @http are borrowed. 0 or -ENOMEM. */
int network_begin(struct http *http, const struct config *config, struct network_trial **ret);
bool network_pending(const struct network_trial *trial);
/* Cancels running requests. @trial may be NULL. */
void network_end(struct network_trial *trial, struct network *ret);

void network_check(const struct probe_results *results, struct findings *ret);

#endif
