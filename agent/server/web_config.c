// SPDX-License-Identifier: Apache-2.0
/*
 * libyaml reports events; a table has the keys of each section. The format is two levels deep, with
 * lists of words below, so this file builds no tree: each key's value is read, checked and stored
 * before the next key. A value of the wrong shape ends the reading, which bounds the depth.
 *
 * Not part of the format here: aliases (`*name`), more than one document, and the keys of the table
 * that are marked so. http2 without a value is true in exporter-toolkit; this server always
 * speaks HTTP/1.1, which all clients of the format accept, and only an explicit `http2: true` is an
 * error.
 */
#include "server/web_config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <yaml.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/secret.h"

/* A user's name, borrowed. */
struct known_user {
	const char *name;
	UT_hash_handle hh;
};

/* State of one reading. */
struct reading {
	yaml_parser_t yaml;
	yaml_event_t event; /* the last one */
	bool has_event;
	const char *dir;
	struct web_config *config;
	char *error;
	struct known_user users[WEB_USERS_MAX]; /* of config->n_users */
	struct known_user *by_name;
};

struct key;
typedef int (*value_fn)(struct reading *rd, const struct key *key);

/* A key with a value, or with keys below. */
struct key {
	const char *name;
	value_fn read;
	size_t offset; /* in struct web_config */
};

/* ---------------------------------------------------------------- errors */

static int __attribute__((format(printf, 2, 3)))
bad(const struct reading *rd, const char *format, ...)
{
	size_t line = rd->has_event ? rd->event.start_mark.line + 1 : 1;
	int n = snprintf(rd->error, WEB_ERROR_MAX, "line %zu: ", line);
	va_list args;

	va_start(args, format);
	vsnprintf(rd->error + n, WEB_ERROR_MAX - (size_t)n, format, args);
	va_end(args);
	return WEB_CONFIG_BAD;
}

static int syntax_error(const struct reading *rd)
{
	const yaml_parser_t *y = &rd->yaml;

	if (y->error == YAML_MEMORY_ERROR)
		return -ENOMEM;
	snprintf(rd->error, WEB_ERROR_MAX, "line %zu: %s", y->problem_mark.line + 1,
		 y->problem ? y->problem : "no YAML");
	return WEB_CONFIG_BAD;
}

/* ---------------------------------------------------------------- events */

static int next(struct reading *rd)
{
	if (rd->has_event)
		yaml_event_delete(&rd->event);
	rd->has_event = false;
	if (!yaml_parser_parse(&rd->yaml, &rd->event))
		return syntax_error(rd);
	rd->has_event = true;
	if (rd->event.type == YAML_ALIAS_EVENT)
		return bad(rd, "aliases are not supported");
	return 0;
}

static const char *scalar(const struct reading *rd)
{
	return (const char *)rd->event.data.scalar.value;
}

static bool is_scalar(const struct reading *rd)
{
	return rd->event.type == YAML_SCALAR_EVENT &&
	       strlen(scalar(rd)) == rd->event.data.scalar.length;
}

/* No value, or YAML's word for it. */
static bool is_null(const struct reading *rd)
{
	return is_scalar(rd) && rd->event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
	       (!*scalar(rd) || strcmp(scalar(rd), "~") == 0 || strcmp(scalar(rd), "null") == 0 ||
		strcmp(scalar(rd), "Null") == 0 || strcmp(scalar(rd), "NULL") == 0);
}

/* The next value as a new string; NULL for none. */
static int read_string(struct reading *rd, const char *name, char **ret)
{
	int r = next(rd);

	if (r)
		return r;
	if (!is_scalar(rd))
		return bad(rd, "%s: takes one value", name);
	if (is_null(rd))
		return 0;
	*ret = strdup(scalar(rd));
	return *ret ? 0 : -ENOMEM;
}

/* ---------------------------------------------------------------- values */

static void *at(const struct reading *rd, const struct key *key)
{
	return (char *)rd->config + key->offset;
}

static int read_text(struct reading *rd, const struct key *key)
{
	return read_string(rd, key->name, at(rd, key));
}

static int read_path(struct reading *rd, const struct key *key)
{
	_cleanup_(freep) char *name = NULL;
	char **to = at(rd, key);
	int r = read_string(rd, key->name, &name);

	if (r || !name || !*name)
		return r;
	if (*name == '/' || !*rd->dir)
		*to = take_ptr(name);
	else if (asprintf(to, "%s/%s", rd->dir, name) < 0) {
		*to = NULL;
		return -ENOMEM;
	}
	return 0;
}

static int read_bool(struct reading *rd, const struct key *key, bool *ret)
{
	static const char *const words[2][4] = {{"false", "no", "off", "n"},
						{"true", "yes", "on", "y"}};
	int r = next(rd);

	if (r)
		return r;
	for (size_t i = 0; is_scalar(rd) && i < 2 * array_size(words[0]); i++)
		if (strcasecmp(scalar(rd), words[i % 2][i / 2]) == 0) {
			*ret = i % 2;
			return 0;
		}
	return bad(rd, "%s: takes true or false", key->name);
}

static int read_prefer(struct reading *rd, const struct key *key)
{
	bool prefer_server = true;
	int r = read_bool(rd, key, &prefer_server);

	rd->config->prefer_client = !prefer_server;
	return r;
}

static int read_http2(struct reading *rd, const struct key *key)
{
	bool http2 = false;
	int r = read_bool(rd, key, &http2);

	if (!r && http2)
		r = bad(rd, "http2: HTTP/2 is not supported; set false");
	return r;
}

static int refuse(struct reading *rd, const struct key *key)
{
	return bad(rd, "%s: not supported", key->name);
}

static int read_client_auth(struct reading *rd, const struct key *key)
{
	static const char *const names[WEB_CLIENT_AUTH_MAX] = {
		[WEB_CLIENT_NONE] = "NoClientCert",
		[WEB_CLIENT_REQUEST] = "RequestClientCert",
		[WEB_CLIENT_REQUIRE_ANY] = "RequireAnyClientCert",
		[WEB_CLIENT_VERIFY_IF_GIVEN] = "VerifyClientCertIfGiven",
		[WEB_CLIENT_REQUIRE_VERIFY] = "RequireAndVerifyClientCert",
	};
	_cleanup_(freep) char *text = NULL;
	int r = read_string(rd, key->name, &text);

	if (r || !text || !*text)
		return r;
	for (size_t i = 0; i < WEB_CLIENT_AUTH_MAX; i++)
		if (strcmp(text, names[i]) == 0) {
			rd->config->client_auth = (enum web_client_auth)i;
			return 0;
		}
	return bad(rd,
		   "%s: takes NoClientCert, RequestClientCert, RequireAnyClientCert, "
		   "VerifyClientCertIfGiven or RequireAndVerifyClientCert",
		   key->name);
}

static int read_version(struct reading *rd, const struct key *key, int *ret)
{
	_cleanup_(freep) char *text = NULL;
	int r = read_string(rd, key->name, &text);

	if (r || !text)
		return r;
	if (strcmp(text, "TLS12") == 0)
		*ret = 12;
	else if (strcmp(text, "TLS13") == 0)
		*ret = 13;
	else
		r = bad(rd, "%s: takes TLS12 or TLS13; older versions are not supported",
			key->name);
	return r;
}

static int read_min_version(struct reading *rd, const struct key *key)
{
	int version = 12;
	int r = read_version(rd, key, &version);

	rd->config->tls12 = version == 12;
	return r;
}

static int read_max_version(struct reading *rd, const struct key *key)
{
	int version = 13;
	int r = read_version(rd, key, &version);

	rd->config->tls13 = version == 13;
	return r;
}

/* ---------------------------------------------------------------- lists */

static int list_add(struct reading *rd, const char *name, struct web_list *to, const char *item)
{
	if (to->n == WEB_ITEMS_MAX)
		return bad(rd, "%s: more than %d items", name, WEB_ITEMS_MAX);
	to->items[to->n] = strdup(item);
	if (!to->items[to->n])
		return -ENOMEM;
	to->n++;
	return 0;
}

typedef int (*item_fn)(struct reading *rd, const struct key *key);

static int read_list(struct reading *rd, const struct key *key, item_fn add)
{
	int r = next(rd);

	if (r || is_null(rd))
		return r;
	if (rd->event.type != YAML_SEQUENCE_START_EVENT)
		return bad(rd, "%s: takes a list", key->name);
	while (!(r = next(rd)) && rd->event.type != YAML_SEQUENCE_END_EVENT) {
		if (!is_scalar(rd) || !*scalar(rd))
			return bad(rd, "%s: each item is one value", key->name);
		r = add(rd, key);
		if (r)
			return r;
	}
	return r;
}

static int add_san(struct reading *rd, const struct key *key)
{
	return list_add(rd, key->name, &rd->config->sans, scalar(rd));
}

static int read_sans(struct reading *rd, const struct key *key)
{
	return read_list(rd, key, add_san);
}

/* Go's names, as crypto/tls.CipherSuites() has them, and OpenSSL's. */
static const struct {
	const char *go, *openssl;
	bool tls13;
} ciphers[] = {
	{"TLS_AES_128_GCM_SHA256", "TLS_AES_128_GCM_SHA256", true},
	{"TLS_AES_256_GCM_SHA384", "TLS_AES_256_GCM_SHA384", true},
	{"TLS_CHACHA20_POLY1305_SHA256", "TLS_CHACHA20_POLY1305_SHA256", true},
	{"TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA", "ECDHE-ECDSA-AES128-SHA", false},
	{"TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA", "ECDHE-ECDSA-AES256-SHA", false},
	{"TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA", "ECDHE-RSA-AES128-SHA", false},
	{"TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA", "ECDHE-RSA-AES256-SHA", false},
	{"TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "ECDHE-ECDSA-AES128-GCM-SHA256", false},
	{"TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "ECDHE-ECDSA-AES256-GCM-SHA384", false},
	{"TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "ECDHE-RSA-AES128-GCM-SHA256", false},
	{"TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "ECDHE-RSA-AES256-GCM-SHA384", false},
	{"TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-RSA-CHACHA20-POLY1305", false},
	{"TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305", "ECDHE-RSA-CHACHA20-POLY1305", false},
	{"TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-ECDSA-CHACHA20-POLY1305", false},
	{"TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305", "ECDHE-ECDSA-CHACHA20-POLY1305", false},
};

static int add_cipher(struct reading *rd, const struct key *key)
{
	struct web_config *c = rd->config;

	for (size_t i = 0; i < array_size(ciphers); i++)
		if (strcmp(scalar(rd), ciphers[i].go) == 0)
			return list_add(rd, key->name,
					ciphers[i].tls13 ? &c->ciphers13 : &c->ciphers,
					ciphers[i].openssl);
	return bad(rd, "%s: '%.64s' is not supported", key->name, scalar(rd));
}

static int read_ciphers(struct reading *rd, const struct key *key)
{
	return read_list(rd, key, add_cipher);
}

static int add_curve(struct reading *rd, const struct key *key)
{
	static const char *const curves[][2] = {
		{"CurveP256", "P-256"},
		{"CurveP384", "P-384"},
		{"CurveP521", "P-521"},
		{"X25519", "X25519"},
	};

	for (size_t i = 0; i < array_size(curves); i++)
		if (strcmp(scalar(rd), curves[i][0]) == 0)
			return list_add(rd, key->name, &rd->config->curves, curves[i][1]);
	return bad(rd, "%s: '%.64s' is not supported", key->name, scalar(rd));
}

static int read_curves(struct reading *rd, const struct key *key)
{
	return read_list(rd, key, add_curve);
}

/* ---------------------------------------------------------------- users */

/* "$2y$10$" and 53 characters of bcrypt's base 64. NULL, or the reason against it. */
static const char *hash_fault(const char *hash)
{
	static const char alphabet[] =
		"./ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
	int cost;

	if (strlen(hash) != WEB_HASH_LEN || strncmp(hash, "$2", 2) != 0 ||
	    !strchr("aby", hash[2]) || hash[3] != '$' || hash[4] < '0' || hash[4] > '3' ||
	    hash[5] < '0' || hash[5] > '9' || hash[6] != '$' ||
	    strspn(hash + 7, alphabet) != WEB_HASH_LEN - 7)
		return "no bcrypt hash; 'htpasswd -nBC 10 NAME' makes one";
	cost = (hash[4] - '0') * 10 + hash[5] - '0';
	if (cost < 4 || cost > 31)
		return "no bcrypt hash: its cost is from 4 to 31";
	if (cost > WEB_BCRYPT_COST_MAX)
		return "a cost above 14 takes seconds for each password and is not supported";
	return NULL;
}

/* WEB_CONFIG_BAD if there is a user of this name. @name: borrowed. */
static int add_name(struct reading *rd, const char *name)
{
	struct known_user *known = &rd->users[rd->config->n_users], *other;
	bool hash_oom = false;

	HASH_FIND_STR(rd->by_name, name, other);
	if (other)
		return bad(rd, "basic_auth_users: '%.64s' is there twice", name);
	known->name = name;
	HASH_ADD_KEYPTR(hh, rd->by_name, known->name, strlen(name), known);
	return hash_oom ? -ENOMEM : 0;
}

/* The event is a user's name. */
static int read_user(struct reading *rd)
{
	struct web_config *c = rd->config;
	struct web_user *user = &c->users[c->n_users];
	const char *fault;
	int r;

	if (c->n_users == WEB_USERS_MAX)
		return bad(rd, "basic_auth_users: more than %d users", WEB_USERS_MAX);
	if (!is_scalar(rd) || !*scalar(rd) || strchr(scalar(rd), ':'))
		return bad(rd, "basic_auth_users: a name is a word without a colon");
	user->name = strdup(scalar(rd));
	if (!user->name)
		return -ENOMEM;
	r = add_name(rd, user->name);
	c->n_users++;
	if (!r)
		r = read_string(rd, "basic_auth_users", &user->hash);
	if (r)
		return r;
	fault = hash_fault(user->hash ? user->hash : "");
	return fault ? bad(rd, "basic_auth_users: '%.64s': %s", user->name, fault) : 0;
}

static int read_users(struct reading *rd, const struct key *key)
{
	int r = next(rd);

	if (r || is_null(rd))
		return r;
	if (rd->event.type != YAML_MAPPING_START_EVENT)
		return bad(rd, "%s: takes NAME: HASH", key->name);
	while (!(r = next(rd)) && rd->event.type != YAML_MAPPING_END_EVENT) {
		r = read_user(rd);
		if (r)
			return r;
	}
	return r;
}

/* ---------------------------------------------------------------- sections */

#define AT(member) offsetof(struct web_config, member)

/* @parent: for messages; "" at the top. The event is the begin of the mapping, or null. */
static int read_keys(struct reading *rd, const char *parent, const struct key *keys, size_t n)
{
	uint32_t seen = 0;
	int r = 0;
	size_t i;

	if (is_null(rd))
		return 0;
	if (rd->event.type != YAML_MAPPING_START_EVENT)
		return bad(rd, "%s: takes keys with values", *parent ? parent : "the file");
	while (!r && !(r = next(rd)) && rd->event.type != YAML_MAPPING_END_EVENT) {
		if (!is_scalar(rd))
			return bad(rd, "a key is a word");
		for (i = 0; i < n && strcmp(scalar(rd), keys[i].name) != 0; i++)
			;
		if (i == n)
			return bad(rd, "%s%s%.64s: no such key", parent, *parent ? "." : "",
				   scalar(rd));
		if (seen & 1u << i)
			return bad(rd, "%s: is there twice", keys[i].name);
		seen |= 1u << i;
		r = keys[i].read(rd, &keys[i]);
	}
	return r;
}

static int read_tls(struct reading *rd, const struct key *key)
{
	static const struct key keys[] = {
		{"cert_file", read_path, AT(cert.file)},
		{"key_file", read_path, AT(key.file)},
		{"client_ca_file", read_path, AT(client_ca.file)},
		{"cert", read_text, AT(cert.text)},
		{"key", read_text, AT(key.text)},
		{"client_ca", read_text, AT(client_ca.text)},
		{"client_auth_type", read_client_auth, 0},
		{"client_allowed_sans", read_sans, 0},
		{"min_version", read_min_version, 0},
		{"max_version", read_max_version, 0},
		{"cipher_suites", read_ciphers, 0},
		{"prefer_server_cipher_suites", read_prefer, 0},
		{"curve_preferences", read_curves, 0},
	};
	int r = next(rd);

	return r ? r : read_keys(rd, key->name, keys, array_size(keys));
}

static int read_http(struct reading *rd, const struct key *key)
{
	static const struct key keys[] = {
		{"http2", read_http2, 0},
		{"headers", refuse, 0},
	};
	int r = next(rd);

	return r ? r : read_keys(rd, key->name, keys, array_size(keys));
}

/* The event is the begin of the document's value. */
static int read_top(struct reading *rd)
{
	static const struct key keys[] = {
		{"tls_server_config", read_tls, 0},
		{"http_server_config", read_http, 0},
		{"basic_auth_users", read_users, 0},
		{"rate_limit", refuse, 0},
	};

	return read_keys(rd, "", keys, array_size(keys));
}

/* An empty file has no document. */
static int read_document(struct reading *rd)
{
	int r = next(rd); /* the begin of the stream */

	if (!r)
		r = next(rd);
	if (r || rd->event.type == YAML_STREAM_END_EVENT)
		return r;
	r = next(rd);
	if (!r)
		r = read_top(rd);
	if (!r)
		r = next(rd); /* the end of the document */
	if (!r)
		r = next(rd);
	if (!r && rd->event.type != YAML_STREAM_END_EVENT)
		r = bad(rd, "more than one document");
	return r;
}

/* ---------------------------------------------------------------- the whole */

static bool pem_is_set(const struct web_pem *pem)
{
	return pem->text || pem->file;
}

static bool wants_verified(const struct web_config *c)
{
	return c->client_auth == WEB_CLIENT_VERIFY_IF_GIVEN ||
	       c->client_auth == WEB_CLIENT_REQUIRE_VERIFY;
}

static const char *pems_fault(const struct web_config *c)
{
	if (c->cert.text && c->cert.file)
		return "cert and cert_file: only one of both";
	if (c->key.text && c->key.file)
		return "key and key_file: only one of both";
	if (c->client_ca.text && c->client_ca.file)
		return "client_ca and client_ca_file: only one of both";
	if (pem_is_set(&c->cert) != pem_is_set(&c->key))
		return pem_is_set(&c->cert) ? "key_file: missing" : "cert_file: missing";
	return NULL;
}

/* Go takes the system's authorities where client_ca_file is missing: any certificate of the public
 * internet would do. This is never meant. */
static const char *clients_fault(const struct web_config *c)
{
	if (!c->has_tls && (pem_is_set(&c->client_ca) || c->client_auth || c->sans.n))
		return "cert_file: missing, with keys for clients' certificates";
	if (pem_is_set(&c->client_ca) && !c->client_auth)
		return "client_auth_type: missing, with a client_ca_file";
	if (wants_verified(c) && !pem_is_set(&c->client_ca))
		return "client_ca_file: missing, and client_auth_type needs it";
	if (c->sans.n && c->client_auth != WEB_CLIENT_REQUIRE_ANY &&
	    c->client_auth != WEB_CLIENT_REQUIRE_VERIFY)
		return "client_allowed_sans: client_auth_type must require a certificate";
	if (!c->tls12 && !c->tls13)
		return "min_version: above max_version";
	return NULL;
}

static int check(struct web_config *c, char error[WEB_ERROR_MAX])
{
	const char *fault = pems_fault(c);

	c->has_tls = pem_is_set(&c->cert);
	if (!fault)
		fault = clients_fault(c);
	if (fault)
		snprintf(error, WEB_ERROR_MAX, "tls_server_config.%s", fault);
	return fault ? WEB_CONFIG_BAD : 0;
}

static void list_deinit(struct web_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		free(list->items[i]);
}

static void pem_deinit(struct web_pem *pem)
{
	secret_forget(pem->text);
	free(pem->file);
}

void web_config_deinit(struct web_config *c)
{
	pem_deinit(&c->cert);
	pem_deinit(&c->key);
	pem_deinit(&c->client_ca);
	list_deinit(&c->sans);
	list_deinit(&c->ciphers);
	list_deinit(&c->ciphers13);
	list_deinit(&c->curves);
	for (size_t i = 0; i < c->n_users; i++) {
		free(c->users[i].name);
		secret_forget(c->users[i].hash);
	}
	*c = (struct web_config){.n_users = 0};
}

int web_config_parse(const char *bytes, size_t n, const char *dir, struct web_config *ret,
		     char error[WEB_ERROR_MAX])
{
	struct web_config config = {.tls12 = true, .tls13 = true};
	struct reading rd = {.dir = dir, .config = &config, .error = error};
	int r;

	if (!yaml_parser_initialize(&rd.yaml))
		return -ENOMEM;
	yaml_parser_set_input_string(&rd.yaml, (const unsigned char *)bytes, n);
	r = read_document(&rd);
	if (rd.has_event)
		yaml_event_delete(&rd.event);
	yaml_parser_delete(&rd.yaml);
	HASH_CLEAR(hh, rd.by_name);
	if (!r)
		r = check(&config, error);
	if (r)
		web_config_deinit(&config);
	else
		*ret = config;
	return r;
}

static int unreadable(char error[WEB_ERROR_MAX], const char *path, const char *why)
{
	snprintf(error, WEB_ERROR_MAX, "%.200s: %s", path, why);
	return WEB_CONFIG_UNREADABLE;
}

/* O_NONBLOCK: a FIFO at the path must not hold the reader. */
int web_file_read(const char *path, char **ret, size_t *ret_n, char error[WEB_ERROR_MAX])
{
	_cleanup_(close_fdp) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char *bytes;
	struct stat st;
	size_t n = 0;
	ssize_t got;

	if (fd < 0 || fstat(fd, &st) < 0)
		return unreadable(error, path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return unreadable(error, path, "not a file");
	bytes = malloc(WEB_CONFIG_BYTES_MAX + 1);
	if (!bytes)
		return -ENOMEM;
	while ((got = read(fd, bytes + n, WEB_CONFIG_BYTES_MAX + 1 - n)) > 0)
		n += (size_t)got;
	if (got < 0 || n > WEB_CONFIG_BYTES_MAX) {
		int r = unreadable(error, path, got < 0 ? strerror(errno) : "too large");

		explicit_bzero(bytes, n);
		free(bytes);
		return r;
	}
	bytes[n] = '\0';
	*ret = bytes;
	*ret_n = n;
	return 0;
}

int web_config_read(const char *path, struct web_config *ret, char error[WEB_ERROR_MAX])
{
	const char *slash = strrchr(path, '/');
	_cleanup_(freep) char *dir =
		slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : strdup("");
	char fault[WEB_ERROR_MAX];
	char *bytes;
	size_t n;
	int r;

	if (!dir)
		return -ENOMEM;
	r = web_file_read(path, &bytes, &n, error);
	if (r)
		return r;
	r = web_config_parse(bytes, n, dir, ret, fault);
	explicit_bzero(bytes, n);
	free(bytes);
	if (r > 0)
		snprintf(error, WEB_ERROR_MAX, "%.120s: %.190s", path, fault);
	return r;
}
