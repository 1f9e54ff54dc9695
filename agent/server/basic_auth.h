/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_SERVER_BASIC_AUTH_H
#define PODPROF_SERVER_BASIC_AUTH_H

/*
 * Basic authentication against bcrypt hashes. bcrypt takes 50 ms to a second of CPU time, so a
 * worker computes it, and the result is remembered under a keyed hash of name, password and stored
 * hash. A client that sends the right password again, as scrapers do, costs a hash of some hundred
 * bytes.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/nsec.h"
#include "server/web_config.h"

struct basic_auth;
struct httpd_request;
struct httpd_response;
struct loop;
struct metric_sink;

/* Passwords waiting for bcrypt. Reached: 503 with Retry-After;
 * `podprof_http_auth_total{outcome="busy"}`. */
#define BASIC_AUTH_QUEUE_MAX	  16
/* The same of one client's address. Reached: the same. */
#define BASIC_AUTH_PER_ADDRESS	  2
/* bcrypt gets one part of so many of one CPU, once BASIC_AUTH_BURST_NS of CPU time are used up.
 * Reached: new passwords wait. */
#define BASIC_AUTH_PARTS	  8
#define BASIC_AUTH_BURST_NS	  (2 * NSEC_PER_SEC)
/* Nanoseconds of waiting for bcrypt. Reached: 503 with Retry-After, `{outcome="busy"}`. */
#define BASIC_AUTH_AGE_MAX_NS	  (8 * NSEC_PER_SEC)
/* Results remembered, of right passwords and of wrong ones separately: wrong ones displace no right
 * ones. Reached: the oldest is forgotten, and bcrypt runs again. */
#define BASIC_AUTH_REMEMBERED_MAX 128
/* Bytes of a name with its password. Reached: 401. */
#define BASIC_AUTH_BYTES_MAX	  512

/* A name and a password, decoded. */
struct basic_credentials {
	char name[BASIC_AUTH_BYTES_MAX];
	char password[BASIC_AUTH_BYTES_MAX];
};

/* Reads an Authorization header (NULL: none). False: absent, another scheme, not base64, without a
 * colon, too long, or with a NUL. */
bool basic_credentials_parse(const char *header, struct basic_credentials *ret);

/* 0 or -errno. */
int basic_auth_new(struct loop *loop, struct basic_auth **ret);
/* Use these users from now on; copied. 0 or -ENOMEM, with the users of before. */
int basic_auth_set(struct basic_auth *a, const struct web_user *users, size_t n);
/* An httpd_guard_fn. */
int basic_auth_check(void *ctx, const struct httpd_request *request, struct httpd_response *ret);
/* Before the httpd. Waiting requests are answered. NULL is allowed. */
void basic_auth_free(struct basic_auth *a);
/* A metric_collect_fn: podprof_http_auth. */
void basic_auth_collect(void *ctx, struct metric_sink *sink);

#endif
