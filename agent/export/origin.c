// SPDX-License-Identifier: Apache-2.0
/*
 * libcurl reads the URL here as it does for the request, so the host that is compared is the host
 * that is connected to.
 */
#include "export/origin.h"

#include <curl/curl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"

struct origin {
	char *scheme;
	char *host;
	char *port;
};

static void curlu_freep(CURLU **u)
{
	curl_url_cleanup(*u);
}

static void origin_deinit(struct origin *o)
{
	curl_free(o->scheme);
	curl_free(o->host);
	curl_free(o->port);
}

static bool has(CURLU *u, CURLUPart part)
{
	char *s = NULL;
	bool there = curl_url_get(u, part, &s, 0) == CURLUE_OK && s;

	curl_free(s);
	return there;
}

/* NULL for a text that is no URL with http or https, and for one with a user or password. */
static CURLU *parse(const char *url, struct origin *ret)
{
	_cleanup_(curlu_freep) CURLU *u = curl_url();

	if (!u || curl_url_set(u, CURLUPART_URL, url, 0) != CURLUE_OK || has(u, CURLUPART_USER) ||
	    has(u, CURLUPART_PASSWORD) ||
	    curl_url_get(u, CURLUPART_SCHEME, &ret->scheme, 0) != CURLUE_OK ||
	    curl_url_get(u, CURLUPART_HOST, &ret->host, 0) != CURLUE_OK ||
	    curl_url_get(u, CURLUPART_PORT, &ret->port, CURLU_DEFAULT_PORT) != CURLUE_OK)
		return NULL;
	if (strcmp(ret->scheme, "http") != 0 && strcmp(ret->scheme, "https") != 0)
		return NULL;
	return take_ptr(u);
}

bool origin_ok(const char *url)
{
	_cleanup_(origin_deinit) struct origin o = {0};
	_cleanup_(curlu_freep) CURLU *u = parse(url, &o);
	char *path = NULL;
	bool ok;

	if (!u || has(u, CURLUPART_QUERY) || has(u, CURLUPART_FRAGMENT))
		return false;
	ok = curl_url_get(u, CURLUPART_PATH, &path, 0) == CURLUE_OK && strcmp(path, "/") == 0;
	curl_free(path);
	return ok;
}

bool origin_is_of(const char *origin, const char *url)
{
	_cleanup_(origin_deinit) struct origin a = {0}, b = {0};
	_cleanup_(curlu_freep) CURLU *u = parse(origin, &a), *v = parse(url, &b);

	return u && v && strcmp(a.scheme, b.scheme) == 0 && strcasecmp(a.host, b.host) == 0 &&
	       strcmp(a.port, b.port) == 0;
}

char *origin_text(const char *url)
{
	_cleanup_(origin_deinit) struct origin o = {0};
	_cleanup_(curlu_freep) CURLU *u = parse(url, &o);
	char *text;

	if (!u)
		return strdup("");
	return asprintf(&text, "%s://%s:%s", o.scheme, o.host, o.port) < 0 ? NULL : text;
}
