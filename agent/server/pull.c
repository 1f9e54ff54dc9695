// SPDX-License-Identifier: Apache-2.0
/*
 * Unsupported parameters are refused instead of ignored: "debug" (text) and "seconds" (a
 * difference). "gc" is refused, because it would run the program's garbage collector, and podprof
 * changes nothing in programs.
 */
#include "server/pull.h"

#include <string.h>

#include "base/strview.h"
#include "server/httpd.h"

#define PULL_PATH "/debug/pprof/"

/* NULL, or the reason for refusing the request. */
static const char *parse(const struct httpd_request *request, struct pull_ask *ask)
{
	const char *pid = httpd_query(request, "pid");
	const char *debug = httpd_query(request, "debug");

	ask->container = httpd_query(request, "container");
	if (!pid == !ask->container)
		return "give one process, ?pid=N, or one container, ?container=ID";
	if (pid && (!strview_only_u64(strview_of(pid), 10, &ask->pid) || !ask->pid))
		return "?pid= takes a process number";
	if (ask->container && !*ask->container)
		return "?container= takes an id";
	if (debug && strcmp(debug, "0") != 0)
		return "no text form; 'go tool pprof' shows profiles";
	if (httpd_query(request, "seconds") || httpd_query(request, "gc"))
		return "neither ?seconds= nor ?gc= can be done from outside";
	return NULL;
}

bool pull_handle(const struct pull_source *source, const struct httpd_request *request,
		 struct httpd_response *ret)
{
	const char *path = httpd_path(request), *why;
	struct pull_ask ask = {0};
	struct httpd_later *later;

	if (strncmp(path, PULL_PATH, strlen(PULL_PATH)) != 0)
		return false;
	path += strlen(PULL_PATH);
	ask.allocs = strcmp(path, "allocs") == 0;
	ask.kind = ask.allocs ? GO_PROFILE_HEAP : go_profile_kind_parse(path);
	if (ask.kind == GO_PROFILE_KIND_MAX)
		return false;
	if (!source) {
		httpd_fail(ret, 404, "profiles are not made on demand here; --go-pull does that");
		return true;
	}
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
