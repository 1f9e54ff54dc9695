// SPDX-License-Identifier: Apache-2.0
/* The web configuration format: each key works, or is an error with its name. */
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "server/web_config.h"
#include "support/allocfail.h"

#define SALT_AND_HASH "abcdefghijklmnopqrstuuKxCcvB7KZ7.BpDoK0bh6qM7Dl1/xiJa"
#define HASH	      "$2y$08$" SALT_AND_HASH
#define TLS	      "tls_server_config:\n  cert_file: c\n  key_file: k\n"

struct row {
	const char *name;
	const char *text;
	const char *error; /* contained; NULL: the text is good */
};

static const struct row rows[] = {
	{"empty", "", NULL},
	{"comment only", "# nothing\n", NULL},
	{"null", "~\n", NULL},
	{"empty sections", "tls_server_config:\nbasic_auth_users:\nhttp_server_config:\n", NULL},
	{"empty mapping", "{}\n", NULL},
	{"JSON", "{\"basic_auth_users\": {\"a\": \"" HASH "\"}}", NULL},
	{"TLS", TLS, NULL},
	{"inline", "tls_server_config:\n  cert: |\n    a\n    b\n  key: c\n", NULL},
	{"a scalar", "yes\n", "line 1: the file: takes keys with values"},
	{"a list", "- a\n", "the file: takes keys"},
	{"no YAML", "a: b: c\n", "line 1: "},
	{"no UTF-8", "a: \xff\n", "line"},
	{"NUL in a value", "basic_auth_users:\n  \"a\\0b\": " HASH "\n", "a name is a word"},
	{"an alias", "a: &x b\nc: *x\n", "no such key"},
	{"an alias in place", "basic_auth_users: *x\n", "aliases"},
	{"two documents", "---\n{}\n---\n{}\n", "more than one document"},
	{"unknown section", "tls_config:\n", "line 1: tls_config: no such key"},
	{"unknown key", "tls_server_config:\n  cert_fil: c\n",
	 "line 2: tls_server_config.cert_fil: no such key"},
	{"a section twice", "basic_auth_users:\nbasic_auth_users:\n", "is there twice"},
	{"a key twice", TLS "  key_file: k\n", "line 4: key_file: is there twice"},
	{"a list for a word", "tls_server_config:\n  cert_file: [c]\n",
	 "cert_file: takes one value"},
	{"a word for a section", "tls_server_config: 7\n", "takes keys with values"},
	{"a key that is a list", "? [a]\n: b\n", "a key is a word"},
	{"rate limit", "rate_limit:\n  interval: 1s\n", "rate_limit: not supported"},
	{"headers", "http_server_config:\n  headers: {X-Frame-Options: deny}\n",
	 "headers: not supported"},
	{"HTTP/2", "http_server_config:\n  http2: true\n", "http2: HTTP/2 is not supported"},
	{"no HTTP/2", "http_server_config:\n  http2: false\n", NULL},
	{"no HTTP/2, in other words", "http_server_config: {http2: Off}\n", NULL},
	{"half true", "http_server_config:\n  http2: half\n", "http2: takes true or false"},
	{"certificate without a key", "tls_server_config:\n  cert_file: c\n", "key_file: missing"},
	{"key without a certificate", "tls_server_config:\n  key_file: c\n", "cert_file: missing"},
	{"empty names", "tls_server_config:\n  cert_file: \"\"\n  key_file: \"\"\n", NULL},
	{"both forms", TLS "  cert: x\n", "cert and cert_file"},
	{"both forms of the key", TLS "  key: x\n", "key and key_file"},
	{"client type", TLS "  client_auth_type: RequireAnyClientCert\n", NULL},
	{"no client type", TLS "  client_auth_type: NoClientCert\n", NULL},
	{"unknown client type", TLS "  client_auth_type: require\n", "client_auth_type: takes No"},
	{"client type without TLS", "tls_server_config:\n  client_auth_type: RequestClientCert\n",
	 "cert_file: missing"},
	{"authorities without a type", TLS "  client_ca_file: a\n", "client_auth_type: missing"},
	{"type without authorities", TLS "  client_auth_type: RequireAndVerifyClientCert\n",
	 "client_ca_file: missing"},
	{"verify if given", TLS "  client_ca: a\n  client_auth_type: VerifyClientCertIfGiven\n",
	 NULL},
	{"names", TLS "  client_auth_type: RequireAnyClientCert\n  client_allowed_sans: [a, b]\n",
	 NULL},
	{"names without a type", TLS "  client_allowed_sans: [a]\n", "client_allowed_sans: "},
	{"names, and no certificate needed",
	 TLS "  client_auth_type: RequestClientCert\n  client_allowed_sans: [a]\n",
	 "must require a certificate"},
	{"no names", TLS "  client_allowed_sans:\n", NULL},
	{"a word for names", TLS "  client_allowed_sans: a\n", "takes a list"},
	{"a list in names", TLS "  client_allowed_sans: [[a]]\n", "each item is one value"},
	{"versions", TLS "  min_version: TLS12\n  max_version: TLS13\n", NULL},
	{"one version", TLS "  min_version: TLS13\n  max_version: TLS13\n", NULL},
	{"crossed versions", TLS "  min_version: TLS13\n  max_version: TLS12\n",
	 "min_version: above max_version"},
	{"old version", TLS "  min_version: TLS11\n", "min_version: takes TLS12 or TLS13"},
	{"ciphers",
	 TLS "  cipher_suites:\n  - TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256\n"
	     "  - TLS_AES_128_GCM_SHA256\n  prefer_server_cipher_suites: false\n",
	 NULL},
	{"unknown cipher", TLS "  cipher_suites: [TLS_RSA_WITH_RC4_128_SHA]\n",
	 "cipher_suites: 'TLS_RSA_WITH_RC4_128_SHA' is not supported"},
	{"curves", TLS "  curve_preferences: [CurveP256, X25519]\n", NULL},
	{"unknown curve", TLS "  curve_preferences: [P256]\n", "'P256' is not supported"},
	{"a user", "basic_auth_users:\n  a: " HASH "\n", NULL},
	{"two users", "basic_auth_users:\n  a: " HASH "\n  b: " HASH "\n", NULL},
	{"a user twice", "basic_auth_users:\n  a: " HASH "\n  a: " HASH "\n", "'a' is there twice"},
	{"a list of users", "basic_auth_users: [a]\n", "takes NAME: HASH"},
	{"a colon", "basic_auth_users:\n  \"a:b\": " HASH "\n", "without a colon"},
	{"a password as it is", "basic_auth_users:\n  a: secret\n", "'a': no bcrypt hash"},
	{"no password", "basic_auth_users:\n  a:\n", "'a': no bcrypt hash"},
	{"MD5", "basic_auth_users:\n  a: $1$abcdefgh$0123456789012345678901\n", "no bcrypt hash"},
	{"$2a$", "basic_auth_users:\n  a: $2a$04$" SALT_AND_HASH "\n", NULL},
	{"$2b$", "basic_auth_users:\n  a: $2b$14$" SALT_AND_HASH "\n", NULL},
	{"$2x$", "basic_auth_users:\n  a: $2x$08$" SALT_AND_HASH "\n", "no bcrypt hash"},
	{"a character too many", "basic_auth_users:\n  a: " HASH "a\n", "no bcrypt hash"},
	{"another alphabet",
	 "basic_auth_users:\n  a: $2y$08$+bcdefghijklmnopqrstuuKxCcvB7KZ7."
	 "BpDoK0bh6qM7Dl1/xiJa\n",
	 "no bcrypt hash"},
	{"cost 3", "basic_auth_users:\n  a: $2y$03$" SALT_AND_HASH "\n", "from 4 to 31"},
	{"cost 15", "basic_auth_users:\n  a: $2y$15$" SALT_AND_HASH "\n", "a cost above 14"},
	{"cost 31", "basic_auth_users:\n  a: $2y$31$" SALT_AND_HASH "\n", "a cost above 14"},
	{"cost 39", "basic_auth_users:\n  a: $2y$39$" SALT_AND_HASH "\n", "from 4 to 31"},
};

static void test_rows(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		char error[WEB_ERROR_MAX] = "";
		struct web_config c;
		int r = web_config_parse(rows[i].text, strlen(rows[i].text), "/d", &c, error);

		if (r != (rows[i].error ? WEB_CONFIG_BAD : 0) ||
		    (rows[i].error && !strstr(error, rows[i].error)))
			fail_msg("%s: %d, '%s'", rows[i].name, r, error);
		if (!r)
			web_config_deinit(&c);
	}
}

static void test_values(void **state)
{
	static const char text[] =
		"tls_server_config:\n"
		"  cert_file: c.pem\n  key_file: /abs/k.pem\n  client_ca: \"PEM\\n\"\n"
		"  client_auth_type: RequireAndVerifyClientCert\n  client_allowed_sans: [x, y]\n"
		"  min_version: TLS13\n  cipher_suites: [TLS_AES_128_GCM_SHA256,"
		" TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256]\n  prefer_server_cipher_suites: no\n"
		"  curve_preferences: [X25519, CurveP384]\n"
		"basic_auth_users: {prom: " HASH "}\n";
	char error[WEB_ERROR_MAX];
	struct web_config c;

	(void)state;
	assert_int_equal(web_config_parse(text, sizeof(text) - 1, "/etc/web", &c, error), 0);
	assert_true(c.has_tls);
	assert_string_equal(c.cert.file, "/etc/web/c.pem");
	assert_string_equal(c.key.file, "/abs/k.pem");
	assert_string_equal(c.client_ca.text, "PEM\n");
	assert_int_equal(c.client_auth, WEB_CLIENT_REQUIRE_VERIFY);
	assert_int_equal(c.sans.n, 2);
	assert_string_equal(c.sans.items[1], "y");
	assert_false(c.tls12);
	assert_true(c.tls13);
	assert_true(c.prefer_client);
	assert_int_equal(c.ciphers.n, 1);
	assert_string_equal(c.ciphers.items[0], "ECDHE-RSA-AES128-GCM-SHA256");
	assert_string_equal(c.ciphers13.items[0], "TLS_AES_128_GCM_SHA256");
	assert_string_equal(c.curves.items[1], "P-384");
	assert_int_equal(c.n_users, 1);
	assert_string_equal(c.users[0].name, "prom");
	assert_string_equal(c.users[0].hash, HASH);
	web_config_deinit(&c);
}

static int parse_all(void *ctx)
{
	const char *text = ctx;
	char error[WEB_ERROR_MAX];
	struct web_config c;
	int r = web_config_parse(text, strlen(text), "/d", &c, error);

	if (!r)
		web_config_deinit(&c);
	return r;
}

static void test_no_memory(void **state)
{
	(void)state;
	assert_true(
		allocfail_each(parse_all, (void *)(TLS "  client_auth_type: RequireAnyClientCert\n"
						       "  client_allowed_sans: [a]\n"
						       "  curve_preferences: [X25519]\n"
						       "basic_auth_users:\n  a: " HASH "\n")) > 5);
}

/* @n users. */
static char *many_users(size_t n)
{
	char *text = malloc(32 + n * 80);
	size_t at;

	assert_non_null(text);
	at = (size_t)sprintf(text, "basic_auth_users:\n");
	for (size_t i = 0; i < n; i++)
		at += (size_t)sprintf(text + at, "  u%zu: %s\n", i, HASH);
	return text;
}

static void test_ceilings(void **state)
{
	char error[WEB_ERROR_MAX];
	struct web_config c;

	(void)state;
	for (size_t extra = 0; extra < 2; extra++) {
		char *users = many_users(WEB_USERS_MAX + extra);
		char list[WEB_ITEMS_MAX * 3 + 200] =
			TLS "  client_auth_type: RequireAnyClientCert\n  client_allowed_sans: [a";
		int r = web_config_parse(users, strlen(users), "", &c, error);

		assert_int_equal(r, extra ? WEB_CONFIG_BAD : 0);
		if (!r)
			web_config_deinit(&c);
		free(users);
		for (size_t i = 1; i < WEB_ITEMS_MAX + extra; i++)
			strcat(list, ",a");
		strcat(list, "]\n");
		r = web_config_parse(list, strlen(list), "", &c, error);
		assert_int_equal(r, extra ? WEB_CONFIG_BAD : 0);
		if (!r)
			web_config_deinit(&c);
	}
	assert_non_null(strstr(error, "more than 64 items"));
}

static void test_files(void **state)
{
	char dir[] = "/tmp/web-config-XXXXXX", path[64], error[WEB_ERROR_MAX];
	struct web_config c;
	FILE *file;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/web.yml", dir);
	assert_int_equal(web_config_read(path, &c, error), WEB_CONFIG_UNREADABLE);
	assert_non_null(strstr(error, "No such file"));
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(web_config_read(path, &c, error), WEB_CONFIG_UNREADABLE);
	assert_non_null(strstr(error, "not a file"));
	assert_int_equal(unlink(path), 0);
	for (size_t extra = 0; extra < 2; extra++) {
		file = fopen(path, "w");
		assert_non_null(file);
		fprintf(file, TLS "#");
		while ((size_t)ftell(file) < WEB_CONFIG_BYTES_MAX + extra)
			fputc('#', file);
		fclose(file);
		assert_int_equal(web_config_read(path, &c, error),
				 extra ? WEB_CONFIG_UNREADABLE : 0);
		if (extra)
			break;
		assert_memory_equal(c.cert.file, dir, strlen(dir));
		assert_string_equal(c.cert.file + strlen(dir), "/c");
		web_config_deinit(&c);
	}
	assert_non_null(strstr(error, "too large"));
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),	  cmocka_unit_test(test_values),
		cmocka_unit_test(test_no_memory), cmocka_unit_test(test_ceilings),
		cmocka_unit_test(test_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
