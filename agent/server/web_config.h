/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_SERVER_WEB_CONFIG_H
#define PODPROF_SERVER_WEB_CONFIG_H

/*
 * The file of --web-config: TLS and basic authentication of the HTTP server, in the web
 * configuration format of Prometheus' exporter-toolkit (YAML). Each key of the format works as
 * there, or is an error with its name and line:
 *
 *	tls_server_config:
 *	  cert_file, key_file, client_ca_file, or the PEM text itself as cert, key, client_ca
 *	  client_auth_type, client_allowed_sans, min_version, max_version,
 *	  cipher_suites, prefer_server_cipher_suites, curve_preferences
 *	http_server_config:
 *	  http2: false
 *	basic_auth_users:
 *	  NAME: HASH           of bcrypt
 *
 * Source: prometheus/exporter-toolkit, docs/web-configuration.md; YAML 1.1.
 */

#include <stdbool.h>
#include <stddef.h>

/* Bytes of the file, and of each PEM file that it names. Reached: wrong usage, or the last good
 * file stays in force. */
#define WEB_CONFIG_BYTES_MAX (256u << 10)
/* Users. Reached: the same. */
#define WEB_USERS_MAX	     256
/* Items of each list. Reached: the same. */
#define WEB_ITEMS_MAX	     64
/* bcrypt's cost: 14 takes about a second of one CPU for each new password, and each step more
 * doubles the time. Reached: the same. */
#define WEB_BCRYPT_COST_MAX  14
/* Characters of a bcrypt hash, "$2y$10$" with 22 of salt and 31 of the hash. */
#define WEB_HASH_LEN	     60
/* Bytes of a message with its NUL. Reached: cut. */
#define WEB_ERROR_MAX	     320

/* Go's crypto/tls.ClientAuthType. */
enum web_client_auth {
	WEB_CLIENT_NONE,	    /* NoClientCert */
	WEB_CLIENT_REQUEST,	    /* RequestClientCert */
	WEB_CLIENT_REQUIRE_ANY,	    /* RequireAnyClientCert */
	WEB_CLIENT_VERIFY_IF_GIVEN, /* VerifyClientCertIfGiven */
	WEB_CLIENT_REQUIRE_VERIFY,  /* RequireAndVerifyClientCert */
	WEB_CLIENT_AUTH_MAX,
};

struct web_list {
	char *items[WEB_ITEMS_MAX];
	size_t n;
};

/* A PEM text: in the file itself, or in a file of its own. At most one is set. */
struct web_pem {
	char *text;
	char *file; /* absolute, or relative to the working directory */
};

struct web_user {
	char *name;
	char *hash; /* checked: WEB_HASH_LEN characters, a permitted cost */
};

/**
 * struct web_config - owns its strings; {0} is an empty file: no TLS and no users
 * @has_tls: there are a certificate and a key
 * @tls12, @tls13: the permitted versions
 * @ciphers: OpenSSL's names for TLS 1.2, in the order of preference; none: OpenSSL's default
 * @ciphers13: the same for TLS 1.3
 * @curves: OpenSSL's names
 * @users, @n_users: none: no passwords
 */
struct web_config {
	bool has_tls;
	struct web_pem cert;
	struct web_pem key;
	struct web_pem client_ca;
	enum web_client_auth client_auth;
	struct web_list sans;
	bool tls12, tls13;
	struct web_list ciphers;
	struct web_list ciphers13;
	struct web_list curves;
	bool prefer_client;
	struct web_user users[WEB_USERS_MAX];
	size_t n_users;
};

enum web_config_outcome {
	WEB_CONFIG_OK = 0,
	WEB_CONFIG_UNREADABLE, /* no such file, no permission, no regular file, too large */
	WEB_CONFIG_BAD,	       /* not the format, or a key without support */
};

/* Reads @n bytes. 0; WEB_CONFIG_BAD with one line in @error; -ENOMEM. @ret is untouched unless 0;
 * the caller deinits it. @dir: of relative file names; "" for the working directory. */
int web_config_parse(const char *bytes, size_t n, const char *dir, struct web_config *ret,
		     char error[WEB_ERROR_MAX]);
/* The same for a file. 0, a web_config_outcome with one line in @error, or -ENOMEM. */
int web_config_read(const char *path, struct web_config *ret, char error[WEB_ERROR_MAX]);
void web_config_deinit(struct web_config *c);

/* Reads a whole regular file of at most WEB_CONFIG_BYTES_MAX bytes; the caller frees the
 * NUL-terminated bytes with secret_forget() (base/secret.h). 0; WEB_CONFIG_UNREADABLE with one line
 * in @error; -ENOMEM. */
int web_file_read(const char *path, char **ret, size_t *ret_n, char error[WEB_ERROR_MAX]);

#endif
