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

struct httpd_later;
struct httpd_request;
struct httpd_response;

enum pull_kind {
	PULL_HEAP,
	PULL_ALLOCS,
	PULL_MUTEX,
	PULL_BLOCK,
	PULL_GOROUTINE,
	PULL_KIND_MAX,
};

const char *pull_kind_name(enum pull_kind kind);

/* @container: NULL: the process @pid. Borrowed for the call. */
struct pull_ask {
	enum pull_kind kind;
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
