/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_TEST_SUPPORT_CERTIFICATE_H
#define PODPROF_TEST_SUPPORT_CERTIFICATE_H

/* Certificates for tests: keys of P-256, made anew. All functions fail the test on errors. */

#include <openssl/types.h>

struct certificate {
	X509 *cert;
	EVP_PKEY *key;
};

/* Signed by @issuer, or by itself (NULL), for a day. @sans: as in openssl.cnf, such as
 * "DNS:localhost,IP:127.0.0.1"; NULL for an authority. */
void certificate_init(struct certificate *c, const char *name, const char *sans,
		      const struct certificate *issuer);
void certificate_deinit(struct certificate *c);
/* PEM files in a directory: NAME.crt and NAME.key. */
void certificate_write(const struct certificate *c, const char *dir, const char *name);

#endif
