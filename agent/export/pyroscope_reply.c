// SPDX-License-Identifier: Apache-2.0
/*
 * Pyroscope stores the OTLP profiles of a request one by one and joins the failures in one text:
 *
 *	failed to make a GRPC request: 2 errors: push series with index 3 and id ID failed:
 *	resource_exhausted: ...; push series with index 0 and id ID failed: invalid_argument: ...
 *
 * A single failure has no "N errors: ". The index counts the request's OTLP profiles from 0, and
 * Pyroscope makes the id. The reason repeats labels, so a container can write text that looks like
 * another failure. The number of failures comes first, and each failure has an index of its own: a
 * text that disagrees names nothing.
 */
#include "export/pyroscope_reply.h"

#include <stdint.h>
#include <string.h>

#define PREFIX	"failed to make a GRPC request: "
#define FAILURE "push series with index "

bool pyroscope_reply_is_partial(struct strview body)
{
	return strview_starts(&body, PREFIX);
}

bool pyroscope_reply_may_be_partial(struct strview body)
{
	const size_t n = strview_len(&body);

	return memcmp(body.p, PREFIX, n < strlen(PREFIX) ? n : strlen(PREFIX)) == 0;
}

/* The number of failures; without "N errors: " it is 1. */
static uint64_t failures_count(struct strview *text)
{
	struct strview rest = *text;
	uint64_t n;

	if (!strview_u64(&rest, 10, &n) || !strview_prefix(&rest, " errors: "))
		return 1;
	*text = rest;
	return n;
}

/* " and id ID failed: REASON" */
static bool failure_reason(struct strview *text, struct strview *ret)
{
	struct strview id;

	if (!strview_prefix(text, " and id ") || !strview_until(text, ' ', &id) ||
	    !strview_prefix(text, "failed: "))
		return false;
	*ret = *text;
	return true;
}

/* Moves @text behind the failure's reason begin. False if there is no failure here. */
static bool failure_next(struct strview *text, size_t n, enum pyroscope_fate *ret)
{
	struct strview reason;
	uint64_t index;

	if (!strview_prefix(text, FAILURE) || !strview_u64(text, 10, &index) || index >= n ||
	    !failure_reason(text, &reason) || ret[index] != PYROSCOPE_STORED)
		return false;
	ret[index] = strview_starts(&reason, "resource_exhausted: ") ? PYROSCOPE_EXHAUSTED
								     : PYROSCOPE_FAILED;
	return true;
}

/* Moves @text to the next failure, or to the end. */
static void failure_find(struct strview *text)
{
	const char *next = memmem(text->p, strview_len(text), "; " FAILURE, strlen("; " FAILURE));

	text->p = next ? next + strlen("; ") : text->end;
}

bool pyroscope_reply_fates(struct strview body, size_t n, enum pyroscope_fate *ret)
{
	uint64_t count;

	for (size_t i = 0; i < n; i++)
		ret[i] = PYROSCOPE_STORED;
	if (!strview_prefix(&body, PREFIX))
		return false;
	count = failures_count(&body);
	if (!count)
		return false;
	for (; !strview_empty(&body); failure_find(&body), count--)
		if (!count || !failure_next(&body, n, ret))
			return false;
	return count == 0;
}
