/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_METADATA_PODSTREAM_H
#define PODPROF_METADATA_PODSTREAM_H

/* Many pods as a server sends them, in pieces, into the table of pods. */

#include <stddef.h>
#include <stdint.h>

#include "base/json_splitter.h"

struct pods;

enum podstream_kind {
	PODSTREAM_LIST,	 /* a PodList: what is not in it has gone */
	PODSTREAM_WATCH, /* events, one after the other */
};

enum podstream_outcome {
	PODSTREAM_OK = 0,
	PODSTREAM_MALFORMED, /* not a list of pods, or not events */
	PODSTREAM_EXPIRED,   /* a watch from a version that is too old: list again */
	PODSTREAM_REFUSED,   /* an event that says that the server cannot */
	PODSTREAM_OUTCOME_MAX,
};

/* Bytes of one pod, or of an event with one. The API server takes objects of 1.5 MiB. Reached: that
 * pod is left out and counted. */
#define PODSTREAM_VALUE_MAX   (2u << 20)
/* Bytes of a resource version with its NUL: a number of up to 20 digits, but nobody promises.
 * Reached: listed anew instead of watched. */
#define PODSTREAM_VERSION_MAX 64

/**
 * struct podstream - how far it is
 * @version:  of what was read up to now, to go on from; "" if none was told
 * @n_pods:   put into the table or taken out
 * @n_odd:    left out: larger than PODSTREAM_VALUE_MAX, without name or UID, beyond the table's
 *            ceiling
 * @n_containers_left_out: of pods with more than there is room for
 */
struct podstream {
	enum podstream_kind kind;
	struct pods *pods;
	struct json_splitter cut;
	char version[PODSTREAM_VERSION_MAX];
	bool is_list;
	unsigned int list; /* its number in the table */
	uint64_t n_pods;
	uint64_t n_odd;
	uint64_t n_containers_left_out;
};

/* @pods is borrowed. @version: where a watch begins; NULL for a list. */
void podstream_init(struct podstream *s, enum podstream_kind kind, struct pods *pods,
		    const char *version);
void podstream_deinit(struct podstream *s);

/* 0, an outcome, -ENOMEM: on everything but 0 it is over. */
int podstream_feed(struct podstream *s, const char *bytes, size_t n);
/* The reply has ended. A list is complete only with this, and only then what is not in it goes. 0,
 * PODSTREAM_MALFORMED. */
int podstream_end(struct podstream *s);

const char *podstream_outcome_name(int outcome);

#endif
