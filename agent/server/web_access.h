/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_SERVER_WEB_ACCESS_H
#define PODPROF_SERVER_WEB_ACCESS_H

/*
 * The file of --web-config in force: TLS in front of the server, and the users. A worker looks at
 * the file, and at the certificate, key and authorities that it names, each WEB_RELOAD_NS. Changed
 * files are read again; a file with an error changes nothing. TLS and the users can be exchanged
 * so, but not be turned on or off: an empty file, half written, must not open the server. For the
 * same reason a first file without TLS and without users is an error.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/nsec.h"
#include "server/web_config.h"

struct basic_auth;
struct loop;
struct metric_sink;
struct tls_front;
struct web_access;

/* Nanoseconds between two looks. */
#define WEB_RELOAD_NS (5 * NSEC_PER_SEC)

/**
 * struct web_access_opts - borrowed
 * @reload_ns: 0: WEB_RELOAD_NS
 * @told: on the loop, after changed files were read; @error: NULL, or why they are not in force
 */
struct web_access_opts {
	struct loop *loop;
	const char *path;
	uint64_t reload_ns;
	void (*told)(void *ctx, const char *error);
	void *ctx;
};

/* 0; a web_config_outcome with one line in @error; -errno. */
int web_access_new(const struct web_access_opts *opts, struct web_access **ret,
		   char error[WEB_ERROR_MAX]);
/* Before the httpd. NULL is allowed. */
void web_access_free(struct web_access *a);
/* Borrowed. NULL without TLS, without users. */
struct tls_front *web_access_tls(const struct web_access *a);
struct basic_auth *web_access_auth(const struct web_access *a);
/* A metric_collect_fn: podprof_http_tls_connections, podprof_http_auth,
 * podprof_http_config_reloads. */
void web_access_collect(void *ctx, struct metric_sink *sink);

/* Reads everything that web_access_new() would. 0, a web_config_outcome, -errno. *@ret_tls, and
 * *@ret_certs (each client needs a certificate), are set on success. */
int web_access_try(const char *path, bool *ret_tls, bool *ret_certs, char error[WEB_ERROR_MAX]);

#endif
