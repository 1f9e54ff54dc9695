/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_EXPORT_ORIGIN_H
#define PODPROF_EXPORT_ORIGIN_H

/* The origin of a URL: scheme, host and port (RFC 6454). URLs are foreign. */

#include <stdbool.h>

/* Whether @url is an origin alone, http or https: no user, path, query or fragment. */
bool origin_ok(const char *url);
/* Whether @url has the origin @origin, and no user or password. False without memory. */
bool origin_is_of(const char *origin, const char *url);
/* The origin of @url as text; "" if it has none. Owned; NULL without memory. */
char *origin_text(const char *url);

#endif
