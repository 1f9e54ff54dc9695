// SPDX-License-Identifier: Apache-2.0
/*
 * Unsupported parameters are refused instead of ignored: "debug" (text), and unknown ones, because
 * with a misspelt selector the profile would be that of the whole node. "gc" is refused, because it
 * would run the program's garbage collector, and podprof changes nothing in programs.
 */
#include "server/pull.h"

#include <stdio.h>
#include <string.h>

#include "base/strview.h"
#include "base/utf8.h"
#include "server/httpd.h"

#define PULL_PATH "/debug/pprof/"

/* Bytes of a parameter's name in an answer, with its NUL. Reached: cut. */
#define PULL_NAME_MAX 64

/* Whether @path, without PULL_PATH, is one of a profile. */
static bool parse_path(const char *path, struct pull_ask *ask)
{
	ask->what = PULL_GO;
	if (strcmp(path, "profile") == 0) {
		ask->what = PULL_CPU;
	} else if (strcmp(path, "offcpu") == 0) {
		ask->what = PULL_OFF_CPU;
	} else {
		ask->allocs = strcmp(path, "allocs") == 0;
		ask->kind = ask->allocs ? GO_PROFILE_HEAP : go_profile_kind_parse(path);
	}
	return ask->kind != GO_PROFILE_KIND_MAX;
}

/* NULL, or the reason for refusing the request. */
static const char *parse_seconds(const struct httpd_request *request, struct pull_ask *ask)
{
	const char *text = httpd_query(request, "seconds");
	uint64_t seconds = ask->what == PULL_GO ? 0 : PULL_SECONDS_DEFAULT;

	if (text && (!strview_only_u64(strview_of(text), 10, &seconds) || !seconds ||
		     seconds > PULL_SECONDS_MAX))
		return "?seconds= takes a number from 1 to 240";
	ask->seconds = (unsigned int)seconds;
	return NULL;
}

_Static_assert(PULL_SECONDS_MAX == 240, "as in the text above");

static const char *parse_entity(const struct httpd_request *request, struct pull_ask *ask)
{
	const char *pid = httpd_query(request, "pid");
	const char *slash;

	ask->container = httpd_query(request, "container");
	ask->pod = httpd_query(request, "pod");
	ask->service = httpd_query(request, "service");
	if (pid && (ask->container || ask->pod || ask->service))
		return "?pid= goes without container, pod and service";
	if (pid && ask->what != PULL_GO)
		return "?pid= is for Go's own profiles; 'podprof record --pid' profiles one "
		       "process";
	if (pid && (!strview_only_u64(strview_of(pid), 10, &ask->pid) || !ask->pid))
		return "?pid= takes a process number";
	if (ask->container && !*ask->container)
		return "?container= takes an id or a name";
	slash = ask->pod ? strchr(ask->pod, '/') : NULL;
	if (ask->pod && (!slash || slash == ask->pod || !slash[1]))
		return "?pod= takes NAMESPACE/NAME";
	if (ask->service && !*ask->service)
		return "?service= takes a name";
	return NULL;
}

/* True: answered. */
static bool refuse_odd(const struct httpd_request *request, struct httpd_response *ret)
{
	static const char *const names[] = {"seconds", "container", "pod", "service",
					    "pid",     "debug",	    "gc",  NULL};
	const char *odd = httpd_query_odd(request, names);
	char name[PULL_NAME_MAX], text[256];

	if (!odd)
		return false;
	snprintf(name, sizeof(name), "%s", odd);
	utf8_make_printable(name);
	snprintf(text, sizeof(text),
		 "?%s= is unknown, there twice or without a value; the parameters are seconds, "
		 "container, pod, service and pid",
		 name);
	httpd_fail(ret, 400, text);
	return true;
}

static const char *parse(const struct httpd_request *request, struct pull_ask *ask)
{
	const char *debug = httpd_query(request, "debug");
	const char *why = parse_seconds(request, ask);

	if (!why)
		why = parse_entity(request, ask);
	if (!why && debug && strcmp(debug, "0") != 0)
		why = "no text form; 'go tool pprof' shows profiles";
	if (!why && httpd_query(request, "gc"))
		why = "?gc= cannot be done from outside";
	return why;
}

bool pull_handle(const struct pull_sources *sources, const struct httpd_request *request,
		 struct httpd_response *ret)
{
	const char *path = httpd_path(request);
	const struct pull_source *source;
	struct pull_ask ask = {0};
	struct httpd_later *later;
	const char *why;

	if (strncmp(path, PULL_PATH, strlen(PULL_PATH)) != 0)
		return false;
	if (!parse_path(path + strlen(PULL_PATH), &ask)) {
		httpd_fail(ret, 404,
			   "no such profile; there are profile (CPU), offcpu, heap, allocs, mutex, "
			   "block and goroutine");
		return true;
	}
	if (!sources || sources->off) {
		httpd_fail(ret, 404, sources ? sources->off : "no profiles are made on demand");
		return true;
	}
	source = ask.what == PULL_GO ? sources->go : sources->cpu;
	if (!source) {
		httpd_fail(ret, 404,
			   ask.what == PULL_GO ? "Go's profiles are off: --go-heap-profiler"
			   : sources->no_cpu   ? sources->no_cpu
					       : "no CPU profiles: see --cpu-rate and /-/ready");
		return true;
	}
	if (refuse_odd(request, ret))
		return true;
	why = parse(request, &ask);
	if (why) {
		httpd_fail(ret, 400, why);
		return true;
	}
	later = httpd_later(request);
	if (later)
		source->pull(source->ctx, &ask, later);
	else
		httpd_fail(ret, 500, "out of memory");
	return true;
}
