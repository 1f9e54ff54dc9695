/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_SERVER_ACCEPT_H
#define PODPROF_SERVER_ACCEPT_H

/* The client's preferences from its Accept and Accept-Encoding headers. The headers may contain any
 * bytes; unknown parts are ignored. */

#include <stdbool.h>

enum accept_format {
	ACCEPT_TEXT,	       /* Prometheus text 0.0.4 */
	ACCEPT_OPENMETRICS,    /* 1.0.0 */
	ACCEPT_OPENMETRICS_01, /* 0.0.1, for our metrics the same under another name */
	ACCEPT_FORMAT_MAX,
};

/* The client's preferred format, the earlier of two with equal preference. Text if the client
 * accepts none or sends no header (NULL). */
enum accept_format accept_format(const char *accept);
/* The Content-Type of @format. */
const char *accept_content_type(enum accept_format format);

/* Whether an Accept-Encoding header (or NULL) allows gzip. */
bool accept_gzip(const char *accept_encoding);

#endif
