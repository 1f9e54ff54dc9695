/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_SERVER_PULL_H
#define PODPROF_SERVER_PULL_H

/*
 * Profiles that are made when they are asked for, at the paths that Go's net/http/pprof has:
 *
 *	/debug/pprof/heap?pid=N             the process's own heap profile
 *	/debug/pprof/heap?container=ID      of all Go processes of a container, by its id or the
 *	                                    beginning of that
 *	/debug/pprof/allocs                 the same, shown by what was allocated
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
 * struct pull_ask - what is asked for
 * @allocs:    a heap profile that is shown by what was allocated
 * @container: NULL: the process @pid. Borrowed for the call.
 */
struct pull_ask {
	enum go_profile_kind kind;
	bool allocs;
	uint64_t pid;
	const char *container;
};

/* Who makes them. @pull answers @later, now or later; on the loop. */
struct pull_source {
	void *ctx;
	void (*pull)(void *ctx, const struct pull_ask *ask, struct httpd_later *later);
};

/* False if the path is none of these. @source: NULL where they are turned off. */
bool pull_handle(const struct pull_source *source, const struct httpd_request *request,
		 struct httpd_response *ret);

#endif
