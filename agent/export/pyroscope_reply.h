/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_EXPORT_PYROSCOPE_REPLY_H
#define PODPROF_EXPORT_PYROSCOPE_REPLY_H

/* Pyroscope's answer to an OTLP request of which it has stored a part. */

#include <stdbool.h>
#include <stddef.h>

#include "base/strview.h"

/* What became of one OTLP profile. */
enum pyroscope_fate {
	PYROSCOPE_STORED,
	PYROSCOPE_EXHAUSTED, /* above a rate limit, not stored */
	PYROSCOPE_FAILED,    /* refused for its content, or a failure: perhaps stored */
};

/* The answer is to a request whose profiles Pyroscope has stored one by one. */
bool pyroscope_reply_is_partial(struct strview body);
/* The same for an answer without its end. */
bool pyroscope_reply_may_be_partial(struct strview body);

/**
 * pyroscope_reply_fates() - the profiles that the answer names
 * @body: the answer; foreign
 * @n:    OTLP profiles in the request
 * @ret:  @n, the fate of each; without a meaning if the result is false
 *
 * Return: false if the text has another form, was cut off, or does not name each failure once.
 * Source: pkg/ingester/otlp/ingest_handler.go and pkg/distributor/distributor.go of Pyroscope,
 * 2026.
 */
bool pyroscope_reply_fates(struct strview body, size_t n, enum pyroscope_fate *ret);

#endif
