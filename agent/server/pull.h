/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_SERVER_PULL_H
#define PODPROF_SERVER_PULL_H

/*
 * Profiles made on request, at the paths of Go's net/http/pprof:
 *
 *	/debug/pprof/profile    CPU time of the next ?seconds=N, 30 by default
 *	/debug/pprof/offcpu     waiting time, the same
 *	/debug/pprof/heap       a Go process's own heap profile
 *	/debug/pprof/allocs     the same, shown by allocations
 *	/debug/pprof/mutex, block, goroutine
 *	                        with ?seconds=N the difference of two reads, N seconds apart
 *
 * The parameters select entities, all profiled ones by default:
 *
 *	container=ID            an id, or its beginning
 *	container=NAME          the label "container"
 *	pod=NAMESPACE/NAME      the labels "namespace" and "pod"
 *	service=NAME            the label "service_name"
 *	pid=N                   a single process, of Go's own profiles only
 *
 * Unknown parameters are refused.
 *
 * The answer is one gzip-compressed pprof over all of them, or a line of text with a status.
 */

#include <stdbool.h>
#include <stdint.h>

#include "goheap/kind.h"

struct httpd_later;
struct httpd_request;
struct httpd_response;

/* Seconds of a profile without the parameter, as net/http/pprof has it. */
#define PULL_SECONDS_DEFAULT 30
/* Seconds of a profile: long enough for rare functions, and the memory of a request is bounded for
 * that time. Reached: 400. */
#define PULL_SECONDS_MAX     240

enum pull_what {
	PULL_CPU,
	PULL_OFF_CPU,
	PULL_GO, /* one of Go's own */
};

/**
 * struct pull_ask - a request for a profile; the strings are borrowed for the call
 * @kind, @allocs: of PULL_GO; @allocs is a heap profile, shown by allocations
 * @seconds: above 0, but 0 for a profile of PULL_GO of now
 * @pid:     0: none
 * @container, @pod, @service: NULL: none
 */
struct pull_ask {
	enum pull_what what;
	enum go_profile_kind kind;
	bool allocs;
	unsigned int seconds;
	uint64_t pid;
	const char *container;
	const char *pod;
	const char *service;
};

/* A maker of profiles. @pull answers @later, at once or afterwards, on the loop. */
struct pull_source {
	void *ctx;
	void (*pull)(void *ctx, const struct pull_ask *ask, struct httpd_later *later);
};

/**
 * struct pull_sources - the makers of all profiles
 * @off: why there are none at all, a constant; NULL: they are on
 * @cpu: NULL: no CPU profiles
 * @no_cpu: the reason, borrowed; may be NULL
 * @go:  NULL: Go's profiles are turned off
 */
struct pull_sources {
	const char *off;
	const char *no_cpu;
	const struct pull_source *cpu;
	const struct pull_source *go;
};

/* False for a path that is not below /debug/pprof/. @sources: NULL for none at all. */
bool pull_handle(const struct pull_sources *sources, const struct httpd_request *request,
		 struct httpd_response *ret);

#endif
