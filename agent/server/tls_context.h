/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_SERVER_TLS_CONTEXT_H
#define PODPROF_SERVER_TLS_CONTEXT_H

/*
 * OpenSSL's settings of a server, from tls_server_config. libcurl has OpenSSL in the process
 * already (for destinations over https); libmicrohttpd's own TLS is GnuTLS on the loop's thread.
 */

#include <stdbool.h>

#include <openssl/types.h>

#include "server/web_config.h"

/* Reads the files that @config names; @config has TLS. The caller frees with SSL_CTX_free(). 0;
 * WEB_CONFIG_UNREADABLE or WEB_CONFIG_BAD with one line in @error; -ENOMEM. */
int tls_context_new(const struct web_config *config, SSL_CTX **ret, char error[WEB_ERROR_MAX]);

/* Whether a certificate has a name of @sans (DNS, e-mail, URI, address; exactly as written), or
 * @sans is empty. @cert: NULL for none. */
bool tls_context_allows(const struct web_list *sans, X509 *cert);

#endif
