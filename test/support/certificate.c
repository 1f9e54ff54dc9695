// SPDX-License-Identifier: Apache-2.0
#include "support/certificate.h"

#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "support/test.h"

static void add_extension(X509 *cert, X509 *issuer, int nid, const char *value)
{
	X509_EXTENSION *extension;
	X509V3_CTX ctx;

	X509V3_set_ctx(&ctx, issuer, cert, NULL, NULL, 0);
	extension = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
	assert_non_null(extension);
	assert_int_equal(X509_add_ext(cert, extension, -1), 1);
	X509_EXTENSION_free(extension);
}

void certificate_init(struct certificate *c, const char *name, const char *sans,
		      const struct certificate *issuer)
{
	X509_NAME *subject;

	c->key = EVP_EC_gen("P-256");
	c->cert = X509_new();
	assert_true(c->key && c->cert);
	assert_int_equal(X509_set_version(c->cert, X509_VERSION_3), 1);
	assert_int_equal(ASN1_INTEGER_set(X509_get_serialNumber(c->cert), issuer ? 2 : 1), 1);
	X509_gmtime_adj(X509_getm_notBefore(c->cert), -3600);
	X509_gmtime_adj(X509_getm_notAfter(c->cert), 86400);
	subject = X509_get_subject_name(c->cert);
	assert_int_equal(X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC,
						    (const unsigned char *)name, -1, -1, 0),
			 1);
	assert_int_equal(X509_set_issuer_name(
				 c->cert, X509_get_subject_name(issuer ? issuer->cert : c->cert)),
			 1);
	assert_int_equal(X509_set_pubkey(c->cert, c->key), 1);
	add_extension(c->cert, issuer ? issuer->cert : c->cert, NID_basic_constraints,
		      sans ? "CA:FALSE" : "critical,CA:TRUE");
	if (sans)
		add_extension(c->cert, issuer ? issuer->cert : c->cert, NID_subject_alt_name, sans);
	assert_true(X509_sign(c->cert, issuer ? issuer->key : c->key, EVP_sha256()) > 0);
}

void certificate_deinit(struct certificate *c)
{
	X509_free(c->cert);
	EVP_PKEY_free(c->key);
}

void certificate_write(const struct certificate *c, const char *dir, const char *name)
{
	char path[256], fresh[264];
	FILE *file;

	for (int is_key = 0; is_key < 2; is_key++) {
		snprintf(path, sizeof(path), "%s/%s.%s", dir, name, is_key ? "key" : "crt");
		snprintf(fresh, sizeof(fresh), "%s.new", path);
		file = fopen(fresh, "w");
		assert_non_null(file);
		if (is_key)
			assert_int_equal(
				PEM_write_PrivateKey(file, c->key, NULL, NULL, 0, NULL, NULL), 1);
		else
			assert_int_equal(PEM_write_X509(file, c->cert), 1);
		assert_int_equal(fclose(file), 0);
		assert_int_equal(rename(fresh, path), 0);
	}
}
