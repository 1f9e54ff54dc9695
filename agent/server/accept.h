/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_SERVER_ACCEPT_H
#define PODPROF_SERVER_ACCEPT_H

/* What a client wants, from its Accept and Accept-Encoding headers. Any bytes may be in them; what
 * is not understood is as if it were not there. */

#include <stdbool.h>

enum accept_format {
	ACCEPT_TEXT,	       /* Prometheus text 0.0.4 */
	ACCEPT_OPENMETRICS,    /* 1.0.0 */
	ACCEPT_OPENMETRICS_01, /* 0.0.1, which for what we send is the same under another name */
	ACCEPT_FORMAT_MAX,
};

/* The format that the client likes best, the earlier of two it likes the same; text if it likes
 * none of them or says nothing (NULL). */
enum accept_format accept_format(const char *accept);
/* Its Content-Type. */
const char *accept_content_type(enum accept_format format);

/* Whether an Accept-Encoding header (or NULL) allows gzip. */
bool accept_gzip(const char *accept_encoding);

#endif
