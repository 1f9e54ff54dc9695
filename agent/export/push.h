/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_EXPORT_PUSH_H
#define PODPROF_EXPORT_PUSH_H

/* One request to a destination: its address, headers and credentials. */

#include <stddef.h>
#include <stdint.h>

#include "base/http.h"

struct destination;
struct destination_request;

/* Bytes shown of a server's error message, without the NUL. Reached: cut. */
#define PUSH_MESSAGE_MAX 200

/**
 * struct push - a request to send; everything is borrowed, for http_start()
 * @request: as encoded by the destination's kind
 * @on_send: gives the body of request->body_len bytes in place of request->body; or NULL
 */
struct push {
	const struct destination *destination;
	const struct destination_request *request;
	http_send_fn on_send;
	uint64_t connect_ns;
	uint64_t total_ns;
};

/* Reads the credentials anew; else as http_start(). 0, a secret_outcome or -errno. */
int push_start(struct http *http, const struct push *push, http_done_fn done, void *ctx,
	       struct http_call **ret);
/* The message for people about this result. */
const char *push_start_error(int r);

/* The error message in a reply: "message" of a JSON object, else the first line. Foreign. */
void push_message(const struct http_reply *reply, char ret[PUSH_MESSAGE_MAX + 1]);
#endif
