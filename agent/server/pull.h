/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_SERVER_PULL_H
#define PODPROF_SERVER_PULL_H

/*
 * Profiles made on request, at the paths of Go's net/http/pprof:
 *
 *	/debug/pprof/heap?pid=N             the process's own heap profile
 *	/debug/pprof/heap?container=ID      of all Go processes of a container, by its id or the
 *	                                    beginning of the id
 *	/debug/pprof/allocs                 the same, shown by allocations
 *	/debug/pprof/mutex, block, goroutine
 *
 * The answer is gzip-compressed pprof, or a line of text with a status.
 */

#include <stdbool.h>
#include <stdint.h>

#include "goheap/kind.h"

struct httpd_later;
struct httpd_request;
struct httpd_response;

/**
 * struct pull_ask - a request for a profile
 * @allocs:    a heap profile, shown by allocations
 * @container: NULL: the process @pid. Borrowed for the call.
 */
struct pull_ask {
	enum go_profile_kind kind;
	bool allocs;
	uint64_t pid;
	const char *container;
};

/* The maker of the profiles. @pull answers @later, at once or afterwards, on the loop. */
struct pull_source {
	void *ctx;
	void (*pull)(void *ctx, const struct pull_ask *ask, struct httpd_later *later);
};

/* False for any other path. @source: NULL if pulls are turned off. */
bool pull_handle(const struct pull_source *source, const struct httpd_request *request,
		 struct httpd_response *ret);

#endif
