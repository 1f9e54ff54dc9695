// SPDX-License-Identifier: Apache-2.0
/*
 * No sessions are resumed: each connection is a full handshake, so a client's certificate is
 * checked against the authorities of now, and no ticket key must be kept. Renegotiation is off: a
 * client could ask for handshake after handshake on one connection.
 */
#include "server/tls_context.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "base/cleanup.h"
#include "base/secret.h"

DEFINE_CLEANUP(SSL_CTX *, ssl_ctx_freep, SSL_CTX_free);
DEFINE_CLEANUP(BIO *, bio_freep, BIO_free_all);
DEFINE_CLEANUP(X509 *, x509_freep, X509_free);
DEFINE_CLEANUP(EVP_PKEY *, pkey_freep, EVP_PKEY_free);
DEFINE_CLEANUP(GENERAL_NAMES *, names_freep, GENERAL_NAMES_free);
DEFINE_CLEANUP(char *, forgetp, secret_forget);

/* The last error of OpenSSL in words; clears the others. */
static int bad(char error[WEB_ERROR_MAX], const char *key)
{
	const char *why = ERR_reason_error_string(ERR_peek_last_error());

	snprintf(error, WEB_ERROR_MAX, "tls_server_config.%s: %s", key, why ? why : "not accepted");
	ERR_clear_error();
	return WEB_CONFIG_BAD;
}

/* @ret_text: owned by the caller. @key: of the file's name, for messages. */
static int pem_text(const struct web_pem *pem, const char *key, char **ret_text,
		    char error[WEB_ERROR_MAX])
{
	char why[WEB_ERROR_MAX];
	size_t n;
	int r;

	if (!pem->file) {
		*ret_text = strdup(pem->text ? pem->text : "");
		return *ret_text ? 0 : -ENOMEM;
	}
	r = web_file_read(pem->file, ret_text, &n, why);
	if (r > 0)
		snprintf(error, WEB_ERROR_MAX, "tls_server_config.%s: %.250s", key, why);
	return r;
}

/* No passphrase: nobody is there to type it. */
static int no_password(char *to, int size, int writing, void *ctx)
{
	(void)to;
	(void)size;
	(void)writing;
	(void)ctx;
	return -1;
}

/* The server's certificate first, then those of its issuers. */
static int use_chain(SSL_CTX *ctx, BIO *bio)
{
	_cleanup_(x509_freep) X509 *cert = PEM_read_bio_X509_AUX(bio, NULL, no_password, NULL);
	X509 *issuer;

	if (!cert || SSL_CTX_use_certificate(ctx, cert) != 1)
		return -1;
	while ((issuer = PEM_read_bio_X509(bio, NULL, no_password, NULL)))
		if (SSL_CTX_add0_chain_cert(ctx, issuer) != 1) {
			X509_free(issuer);
			return -1;
		}
	/* the end of the text is an error of OpenSSL, and the only good one */
	if (ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE)
		return -1;
	ERR_clear_error();
	return 0;
}

static int use_cert(SSL_CTX *ctx, const struct web_config *c, char error[WEB_ERROR_MAX])
{
	const char *key = c->cert.file ? "cert_file" : "cert";
	_cleanup_(forgetp) char *text = NULL;
	int r = pem_text(&c->cert, key, &text, error);
	_cleanup_(bio_freep) BIO *bio = r ? NULL : BIO_new_mem_buf(text, -1);

	if (r)
		return r;
	if (!bio)
		return -ENOMEM;
	return use_chain(ctx, bio) ? bad(error, key) : 0;
}

static int use_key(SSL_CTX *ctx, const struct web_config *c, char error[WEB_ERROR_MAX])
{
	const char *name = c->key.file ? "key_file" : "key";
	_cleanup_(forgetp) char *text = NULL;
	int r = pem_text(&c->key, name, &text, error);
	_cleanup_(bio_freep) BIO *bio = r ? NULL : BIO_new_mem_buf(text, -1);
	_cleanup_(pkey_freep) EVP_PKEY *key = NULL;

	if (r)
		return r;
	if (!bio)
		return -ENOMEM;
	key = PEM_read_bio_PrivateKey(bio, NULL, no_password, NULL);
	if (!key || SSL_CTX_use_PrivateKey(ctx, key) != 1 || SSL_CTX_check_private_key(ctx) != 1)
		return bad(error, name);
	return 0;
}

/* The authorities' names are sent to clients, which choose their certificate by them. As in Go,
 * each certificate of the file is trusted, also without that of its issuer. */
static int use_authorities(SSL_CTX *ctx, BIO *bio)
{
	X509_STORE *store = SSL_CTX_get_cert_store(ctx);
	size_t n = 0;

	if (X509_STORE_set_flags(store, X509_V_FLAG_PARTIAL_CHAIN) != 1)
		return -1;
	for (;;) {
		_cleanup_(x509_freep) X509 *ca =
			PEM_read_bio_X509_AUX(bio, NULL, no_password, NULL);

		if (!ca)
			break;
		if (X509_STORE_add_cert(store, ca) != 1 || SSL_CTX_add_client_CA(ctx, ca) != 1)
			return -1;
		n++;
	}
	if (!n || ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE)
		return -1;
	ERR_clear_error();
	return 0;
}

/* Go's types that do not verify accept any certificate. */
static int accept_any(int ok, X509_STORE_CTX *store)
{
	(void)ok;
	X509_STORE_CTX_set_error(store, X509_V_OK);
	return 1;
}

static int use_clients(SSL_CTX *ctx, const struct web_config *c, char error[WEB_ERROR_MAX])
{
	static const struct {
		int mode;
		SSL_verify_cb check;
	} modes[WEB_CLIENT_AUTH_MAX] = {
		[WEB_CLIENT_NONE] = {SSL_VERIFY_NONE, NULL},
		[WEB_CLIENT_REQUEST] = {SSL_VERIFY_PEER, accept_any},
		[WEB_CLIENT_REQUIRE_ANY] = {SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
					    accept_any},
		[WEB_CLIENT_VERIFY_IF_GIVEN] = {SSL_VERIFY_PEER, NULL},
		[WEB_CLIENT_REQUIRE_VERIFY] = {SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
					       NULL},
	};
	const char *key = c->client_ca.file ? "client_ca_file" : "client_ca";
	_cleanup_(forgetp) char *text = NULL;
	_cleanup_(bio_freep) BIO *bio = NULL;
	int r;

	SSL_CTX_set_verify(ctx, modes[c->client_auth].mode, modes[c->client_auth].check);
	if (!c->client_ca.file && !c->client_ca.text)
		return 0;
	r = pem_text(&c->client_ca, key, &text, error);
	if (r)
		return r;
	bio = BIO_new_mem_buf(text, -1);
	if (!bio)
		return -ENOMEM;
	return use_authorities(ctx, bio) ? bad(error, key) : 0;
}

/* The names with colons between; "" for none. All names are from web_config's tables. */
static void join(const struct web_list *list, char *ret, size_t size)
{
	size_t n = 0;

	ret[0] = '\0';
	for (size_t i = 0; i < list->n && n < size; i++)
		n += (size_t)snprintf(ret + n, size - n, "%s%s", i ? ":" : "", list->items[i]);
}

static int use_algorithms(SSL_CTX *ctx, const struct web_config *c, char error[WEB_ERROR_MAX])
{
	char names[WEB_ITEMS_MAX * 48];

	(void)SSL_CTX_set_min_proto_version(ctx, c->tls12 ? TLS1_2_VERSION : TLS1_3_VERSION);
	(void)SSL_CTX_set_max_proto_version(ctx, c->tls13 ? TLS1_3_VERSION : TLS1_2_VERSION);
	if (!c->prefer_client)
		SSL_CTX_set_options(ctx, SSL_OP_CIPHER_SERVER_PREFERENCE);
	join(&c->ciphers, names, sizeof(names));
	if (*names && SSL_CTX_set_cipher_list(ctx, names) != 1)
		return bad(error, "cipher_suites");
	join(&c->ciphers13, names, sizeof(names));
	if (*names && SSL_CTX_set_ciphersuites(ctx, names) != 1)
		return bad(error, "cipher_suites");
	join(&c->curves, names, sizeof(names));
	if (*names && SSL_CTX_set1_groups_list(ctx, names) != 1)
		return bad(error, "curve_preferences");
	return 0;
}

/* HTTP/1.1, to clients that ask; others get no answer, as without the extension. */
static int choose_alpn(SSL *ssl, const unsigned char **ret, unsigned char *ret_len,
		       const unsigned char *offers, unsigned int n, void *ctx)
{
	static const unsigned char http11[] = "\x08http/1.1";

	(void)ssl;
	(void)ctx;
	if (SSL_select_next_proto((unsigned char **)ret, ret_len, http11, sizeof(http11) - 1,
				  offers, n) == OPENSSL_NPN_NEGOTIATED)
		return SSL_TLSEXT_ERR_OK;
	return SSL_TLSEXT_ERR_NOACK;
}

int tls_context_new(const struct web_config *config, SSL_CTX **ret, char error[WEB_ERROR_MAX])
{
	_cleanup_(ssl_ctx_freep) SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
	int r;

	if (!ctx)
		return -ENOMEM;
	ERR_clear_error();
	SSL_CTX_set_options(ctx, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION);
	(void)SSL_CTX_set_num_tickets(ctx, 0);
	(void)SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	/* a client may still offer a session; without a name, that would be an error */
	(void)SSL_CTX_set_session_id_context(ctx, (const unsigned char *)"podprof", 7);
	SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
				      SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	/* else one SSL_read() goes on for as long as the client sends key updates */
	(void)SSL_CTX_clear_mode(ctx, SSL_MODE_AUTO_RETRY);
	SSL_CTX_set_alpn_select_cb(ctx, choose_alpn, NULL);
	r = use_cert(ctx, config, error);
	if (!r)
		r = use_key(ctx, config, error);
	if (!r)
		r = use_clients(ctx, config, error);
	if (!r)
		r = use_algorithms(ctx, config, error);
	if (!r)
		*ret = take_ptr(ctx);
	return r;
}

/* ---------------------------------------------------------------- names of a client */

static bool has_text(const struct web_list *sans, const char *text, size_t n)
{
	for (size_t i = 0; i < sans->n; i++)
		if (strlen(sans->items[i]) == n && memcmp(sans->items[i], text, n) == 0)
			return true;
	return false;
}

static bool has_address(const struct web_list *sans, const ASN1_OCTET_STRING *address)
{
	const int n = ASN1_STRING_length(address);
	char text[INET6_ADDRSTRLEN];

	return (n == 4 || n == 16) &&
	       inet_ntop(n == 4 ? AF_INET : AF_INET6, ASN1_STRING_get0_data(address), text,
			 sizeof(text)) &&
	       has_text(sans, text, strlen(text));
}

static bool has_name(const struct web_list *sans, const GENERAL_NAME *name)
{
	int type;
	const ASN1_STRING *value = GENERAL_NAME_get0_value(name, &type);

	switch (type) {
	case GEN_DNS:
	case GEN_EMAIL:
	case GEN_URI:
		return has_text(sans, (const char *)ASN1_STRING_get0_data(value),
				(size_t)ASN1_STRING_length(value));
	case GEN_IPADD:
		return has_address(sans, value);
	default:
		return false;
	}
}

bool tls_context_allows(const struct web_list *sans, X509 *cert)
{
	_cleanup_(names_freep) GENERAL_NAMES *names = NULL;

	if (!sans->n)
		return true;
	names = cert ? X509_get_ext_d2i(cert, NID_subject_alt_name, NULL, NULL) : NULL;
	for (int i = 0; names && i < sk_GENERAL_NAME_num(names); i++)
		if (has_name(sans, sk_GENERAL_NAME_value(names, i)))
			return true;
	return false;
}
