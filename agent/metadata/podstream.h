/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_METADATA_PODSTREAM_H
#define PODPROF_METADATA_PODSTREAM_H

/* Parses the replies of a server, in pieces, into the table of pods. */

#include <stddef.h>
#include <stdint.h>

#include "base/json_splitter.h"

struct pods;

enum podstream_kind {
	PODSTREAM_LIST,	 /* a PodList: pods outside the list have gone */
	PODSTREAM_WATCH, /* consecutive events */
};

enum podstream_outcome {
	PODSTREAM_OK = 0,
	PODSTREAM_MALFORMED, /* neither a list of pods nor events */
	PODSTREAM_EXPIRED,   /* the version of the watch is too old: list again */
	PODSTREAM_REFUSED,   /* an error event of the server */
	PODSTREAM_OUTCOME_MAX,
};

/* Bytes of one pod, or of an event with a pod. The API server accepts objects of 1.5 MiB. Reached:
 * the pod is left out and counted. */
#define PODSTREAM_VALUE_MAX   (2u << 20)
/* Bytes of a resource version with the NUL: in practice a number of up to 20 digits, but the API
 * promises no form. Reached: listed anew instead of watched. */
#define PODSTREAM_VERSION_MAX 64

/**
 * struct podstream - state of a reply
 * @version: the version read so far, to continue from; "" for none
 * @n_pods:  pods put into the table or removed from it
 * @n_odd:   pods left out: larger than PODSTREAM_VALUE_MAX, without name or UID, beyond the table's
 *           ceiling
 * @n_containers_left_out: containers of pods beyond POD_CONTAINERS_MAX
 */
struct podstream {
	enum podstream_kind kind;
	struct pods *pods;
	struct json_splitter cut;
	char version[PODSTREAM_VERSION_MAX];
	bool is_list;
	unsigned int list; /* number in the table of pods */
	uint64_t n_pods;
	uint64_t n_odd;
	uint64_t n_containers_left_out;
};

/* @pods is borrowed. @version: start of the watch; NULL for a list. */
void podstream_init(struct podstream *s, enum podstream_kind kind, struct pods *pods,
		    const char *version);
void podstream_deinit(struct podstream *s);

/* 0, an outcome, -ENOMEM. After any other result than 0 the stream is at its end. */
int podstream_feed(struct podstream *s, const char *bytes, size_t n);
/* The end of the reply. Only this call completes a list and removes the missing pods. 0,
 * PODSTREAM_MALFORMED. */
int podstream_end(struct podstream *s);

const char *podstream_outcome_name(int outcome);

#endif
