// SPDX-License-Identifier: Apache-2.0
/*
 * A destination is the value of one flag, because the whole destination can be repeated:
 *
 *	pyroscope=https://example.org/base,tenant=team-a,bearer-token-file=/run/secrets/token
 *
 * The URL ends at the first comma, so a comma inside the URL is written %2C; values cannot contain
 * a comma. Secrets are never part of the flag: command lines are public on a machine
 * (/proc/PID/cmdline). Passwords and tokens are named by file or environment variable, and a URL
 * with a password is refused. Files are read again for each request, because Kubernetes replaces
 * the files of a rotated secret.
 */
#include "export/destination.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/http.h"
#include "base/quantity.h"
#include "base/strview.h"
#include "export/coroot.h"
#include "export/file.h"
#include "export/origin.h"
#include "export/otlp.h"
#include "export/parca.h"
#include "export/pyroscope.h"

/* Bytes of a folder's files if the user gives no number. Reached: the oldest go first. */
#define DESTINATION_FOLDER_BYTES (256ull << 20)
/* Bytes of a message about a destination. Reached: cut. */
#define DESTINATION_ERROR_MAX	 1024

const struct destination_kind *const destination_kinds[] = {
	&destination_pyroscope, &destination_coroot, &destination_otlp,
	&destination_parca,	&destination_file,   NULL,
};

const char destination_help[] =
	"  KIND=URL[,KEY=VALUE...], for instance\n"
	"      pyroscope=https://example.org,tenant=team-a,bearer-token-file=/run/token\n"
	"  KIND is pyroscope, parca, otlp or coroot. URL is the server's base address, http or\n"
	"  https; a comma in it is written %2C. KIND file has a folder for URL: file=/PATH.\n"
	"  The keys:\n"
	"      tenant=NAME                      sent as X-Scope-OrgID\n"
	"      tenant-file=PATH, tenant-env=VARIABLE\n"
	"      basic-auth-user=NAME             together with one of the next two\n"
	"      basic-auth-password-file=PATH, basic-auth-password-env=VARIABLE\n"
	"      bearer-token-file=PATH, bearer-token-env=VARIABLE    Coroot: the API key\n"
	"      header-file=PATH, header-env=VARIABLE    a line \"Name: value\"; up to 8 times\n"
	"      ca-file=PATH                     certificates to trust instead of the system's\n"
	"      client-cert-file=PATH, client-key-file=PATH    podprof's own certificate\n"
	"      server-symbols=true              frames without a name are left to the server's\n"
	"                                       symbolizer (pyroscope, parca)\n"
	"      debuginfo=true                   and their programs' files are uploaded (parca)\n"
	"      debuginfo-storage=URL            the object store that the server may name for "
	"them\n"
	"      thread-names=BOOL                samples have the names of threads (true; "
	"pyroscope\n"
	"                                       and coroot: false)\n"
	"      bytes=SIZE                       of the files of kind file (256MiB)\n"
	"  podprof reads the files again for each request, and obeys http_proxy, https_proxy and\n"
	"  no_proxy.\n";

/* ---- errors */

/* A password may be in the text by mistake, so an error never repeats the whole text. */
static int wrong(char **ret_error, const char *format, ...) __attribute__((format(printf, 2, 3)));

static int wrong(char **ret_error, const char *format, ...)
{
	char *error;
	va_list args;
	int n;

	va_start(args, format);
	n = vasprintf(&error, format, args);
	va_end(args);
	if (n < 0)
		return -ENOMEM;
	*ret_error = error;
	return 1;
}

/* ---- kinds */

enum destination_verdict destination_verdict_of_status(long status)
{
	if (status >= 200 && status < 300)
		return DESTINATION_SENT;
	if (status == 0 || status == 408 || status == 429 || status >= 500)
		return DESTINATION_RETRY;
	if (status == 401 || status == 403)
		return DESTINATION_DENIED;
	return status == 413 ? DESTINATION_SPLIT : DESTINATION_REFUSED;
}

void destination_request_deinit(struct destination_request *r)
{
	free(r->body);
	free(r->query);
	free(r->ends);
	*r = (struct destination_request){0};
}

static const struct destination_kind *kind_find(const struct destination_kind *const *kinds,
						const struct strview *name)
{
	for (; *kinds; kinds++)
		if (strview_is(name, (*kinds)->name))
			return *kinds;
	return NULL;
}

static int kind_unknown(const struct destination_kind *const *kinds, const struct strview *name,
			char **ret_error)
{
	_cleanup_(buf_deinit) struct buf list = BUF_INIT(DESTINATION_ERROR_MAX);

	for (size_t i = 0; kinds[i]; i++)
		if (buf_printf(&list, "%s%s", i ? ", " : "", kinds[i]->name))
			return -ENOMEM;
	/* A URL without a kind also ends up here, and may contain a password. */
	if (strview_empty(name) || memchr(name->p, ':', strview_len(name)))
		return wrong(ret_error,
			     "a destination has no kind before its URL; write KIND=URL with KIND "
			     "one of: %s",
			     list.data);
	return wrong(ret_error, "unknown destination kind '%.*s'; the kinds are: %s",
		     (int)strview_len(name), name->p, list.data);
}

/* ---- the URL */

static void curlu_freep(CURLU **u)
{
	curl_url_cleanup(*u);
}

static void curl_strp(char **s)
{
	curl_free(*s);
}

static bool url_has(CURLU *u, CURLUPart part)
{
	_cleanup_(curl_strp) char *s = NULL;

	return curl_url_get(u, part, &s, 0) == CURLUE_OK && s;
}

static int url_check(CURLU *u, const char *kind, const char *url, char **ret_error)
{
	CURLUcode code = curl_url_set(u, CURLUPART_URL, url, CURLU_NON_SUPPORT_SCHEME);
	_cleanup_(curl_strp) char *scheme = NULL;

	if (code != CURLUE_OK)
		return wrong(ret_error,
			     "destination %s: the address is not a URL (%s); write it like "
			     "%s=http://HOST:PORT",
			     kind, curl_url_strerror(code), kind);
	if (curl_url_get(u, CURLUPART_SCHEME, &scheme, 0) != CURLUE_OK)
		return -ENOMEM;
	if (strcmp(scheme, "http") != 0 && strcmp(scheme, "https") != 0)
		return wrong(
			ret_error,
			"destination %s: the URL's scheme '%s' is not supported; use http or https",
			kind, scheme);
	if (url_has(u, CURLUPART_USER) || url_has(u, CURLUPART_PASSWORD))
		return wrong(ret_error,
			     "destination %s: the URL contains a user or password, readable by "
			     "everybody "
			     "on the node; use basic-auth-user and basic-auth-password-file",
			     kind);
	if (url_has(u, CURLUPART_QUERY) || url_has(u, CURLUPART_FRAGMENT))
		return wrong(ret_error,
			     "destination %s: the URL has a part after '?' or '#', but a path is "
			     "appended to it; give the server's base address",
			     kind);
	return 0;
}

static int url_host(CURLU *u, char **ret)
{
	_cleanup_(curl_strp) char *host = NULL;
	_cleanup_(curl_strp) char *port = NULL;

	if (curl_url_get(u, CURLUPART_HOST, &host, 0) != CURLUE_OK)
		return -ENOMEM;
	(void)curl_url_get(u, CURLUPART_PORT, &port, 0); /* the port is optional */
	return asprintf(ret, "%s%s%s", host, port ? ":" : "", port ? port : "") < 0 ? -ENOMEM : 0;
}

static int destination_set_folder(struct destination *d, struct strview path, char **ret_error)
{
	if (!strview_starts(&path, "/"))
		return wrong(ret_error,
			     "destination %s: the folder is not an absolute path; write it like "
			     "%s=/var/lib/podprof/out",
			     d->kind->name, d->kind->name);
	d->folder_bytes = DESTINATION_FOLDER_BYTES;
	d->url = strview_dup(path);
	d->host = strview_dup(path);
	return d->url && d->host ? 0 : -ENOMEM;
}

static int destination_set_url(struct destination *d, struct strview url, char **ret_error)
{
	_cleanup_(curlu_freep) CURLU *u = curl_url();
	_cleanup_(freep) char *base = NULL;
	int r;

	while (strview_suffix(&url, "/"))
		;
	base = strview_dup(url);
	if (!u || !base)
		return -ENOMEM;
	r = url_check(u, d->kind->name, base, ret_error);
	if (r)
		return r;
	r = url_host(u, &d->host);
	if (r < 0)
		return r;
	return asprintf(&d->url, "%s%s", base, d->kind->path) < 0 ? -ENOMEM : 0;
}

/* ---- the keys */

enum key {
	KEY_USER,
	KEY_PASSWORD_FILE,
	KEY_PASSWORD_ENV,
	KEY_BEARER_FILE,
	KEY_BEARER_ENV,
	KEY_TENANT,
	KEY_TENANT_FILE,
	KEY_TENANT_ENV,
	KEY_HEADER_FILE,
	KEY_HEADER_ENV,
	KEY_CA_FILE,
	KEY_CERT_FILE,
	KEY_KEY_FILE,
	KEY_SERVER_SYMBOLS,
	KEY_DEBUGINFO,
	KEY_STORAGE,
	KEY_THREAD_NAMES,
	KEY_BYTES,
	KEY_MAX,
};

static const char *const key_names[KEY_MAX] = {
	[KEY_USER] = "basic-auth-user",
	[KEY_PASSWORD_FILE] = "basic-auth-password-file",
	[KEY_PASSWORD_ENV] = "basic-auth-password-env",
	[KEY_BEARER_FILE] = "bearer-token-file",
	[KEY_BEARER_ENV] = "bearer-token-env",
	[KEY_TENANT] = "tenant",
	[KEY_TENANT_FILE] = "tenant-file",
	[KEY_TENANT_ENV] = "tenant-env",
	[KEY_HEADER_FILE] = "header-file",
	[KEY_HEADER_ENV] = "header-env",
	[KEY_CA_FILE] = "ca-file",
	[KEY_CERT_FILE] = "client-cert-file",
	[KEY_KEY_FILE] = "client-key-file",
	[KEY_SERVER_SYMBOLS] = "server-symbols",
	[KEY_DEBUGINFO] = "debuginfo",
	[KEY_STORAGE] = "debuginfo-storage",
	[KEY_THREAD_NAMES] = "thread-names",
	[KEY_BYTES] = "bytes",
};

/* Where the text of a key goes; NULL for a key that is no text. */
static char **key_place(struct destination *d, enum key key)
{
	switch (key) {
	case KEY_USER:
		return &d->user;
	case KEY_PASSWORD_FILE:
		return &d->password.file;
	case KEY_PASSWORD_ENV:
		return &d->password.env;
	case KEY_BEARER_FILE:
		return &d->bearer.file;
	case KEY_BEARER_ENV:
		return &d->bearer.env;
	case KEY_TENANT:
		return &d->tenant.value;
	case KEY_TENANT_FILE:
		return &d->tenant.file;
	case KEY_TENANT_ENV:
		return &d->tenant.env;
	case KEY_HEADER_FILE:
		return &d->headers[d->n_headers].file;
	case KEY_HEADER_ENV:
		return &d->headers[d->n_headers].env;
	case KEY_CA_FILE:
		return &d->ca_file;
	case KEY_CERT_FILE:
		return &d->cert_file;
	case KEY_KEY_FILE:
		return &d->key_file;
	case KEY_STORAGE:
		return &d->storage;
	case KEY_SERVER_SYMBOLS:
	case KEY_DEBUGINFO:
	case KEY_THREAD_NAMES:
	case KEY_BYTES:
	case KEY_MAX:
		break;
	}
	return NULL;
}

static bool key_is_env(enum key key)
{
	return key == KEY_PASSWORD_ENV || key == KEY_BEARER_ENV || key == KEY_TENANT_ENV ||
	       key == KEY_HEADER_ENV;
}

static bool key_is_header(enum key key)
{
	return key == KEY_HEADER_FILE || key == KEY_HEADER_ENV;
}

/* Whether destinations of this kind have the key. */
static bool key_is_of(const struct destination_kind *kind, enum key key)
{
	if (kind->folder || key == KEY_BYTES)
		return kind->folder && key == KEY_BYTES;
	if (key == KEY_TENANT || key == KEY_TENANT_FILE || key == KEY_TENANT_ENV)
		return kind->tenant_header;
	if (key == KEY_DEBUGINFO || key == KEY_STORAGE)
		return kind->files;
	return key != KEY_SERVER_SYMBOLS || kind->symbolizes;
}

static int key_unknown(const struct destination *d, const struct strview *key, char **ret_error)
{
	_cleanup_(buf_deinit) struct buf list = BUF_INIT(DESTINATION_ERROR_MAX);

	for (enum key i = 0; i < KEY_MAX; i++)
		if (key_is_of(d->kind, i) &&
		    buf_printf(&list, "%s%s", list.len ? ", " : "", key_names[i]))
			return -ENOMEM;
	return wrong(ret_error, "destination %s: unknown key '%.*s'; the keys are: %s",
		     d->kind->name, (int)strview_len(key), key->p, list.data);
}

static int destination_set_bytes(struct destination *d, struct strview value, char **ret_error)
{
	_cleanup_(freep) char *text = strview_dup(value);

	if (!text)
		return -ENOMEM;
	if (!quantity_bytes(text, &d->folder_bytes) || !d->folder_bytes)
		return wrong(ret_error, "destination %s: bytes is not a size; write bytes=256MiB",
			     d->kind->name);
	return 0;
}

static int destination_set_switch(struct destination *d, enum key key, struct strview value,
				  char **ret_error)
{
	bool *ret = key == KEY_DEBUGINFO      ? &d->debuginfo
		    : key == KEY_THREAD_NAMES ? &d->thread_names
					      : &d->server_symbols;

	*ret = strview_is(&value, "true");
	if (!*ret && !strview_is(&value, "false"))
		return wrong(ret_error, "destination %s: %s is true or false; write %s=true",
			     d->kind->name, key_names[key], key_names[key]);
	return 0;
}

/* A key that is no text. */
static int destination_set_value(struct destination *d, enum key key, struct strview value,
				 char **ret_error)
{
	if (key == KEY_BYTES)
		return destination_set_bytes(d, value, ret_error);
	return destination_set_switch(d, key, value, ret_error);
}

static int destination_set_key(struct destination *d, enum key key, struct strview value,
			       char **ret_error)
{
	char **place;

	if (!key_is_of(d->kind, key))
		return wrong(ret_error, "destination %s: this kind has no %s; remove %s",
			     d->kind->name, key_names[key], key_names[key]);

	if (strview_empty(&value))
		return wrong(ret_error, "destination %s: %s has no value; write %s=VALUE",
			     d->kind->name, key_names[key], key_names[key]);
	if (key_is_header(key) && d->n_headers == DESTINATION_OWN_HEADERS_MAX)
		return wrong(ret_error, "destination %s: more than %d headers; remove some",
			     d->kind->name, DESTINATION_OWN_HEADERS_MAX);
	place = key_place(d, key);
	if (!place)
		return destination_set_value(d, key, value, ret_error);
	if (*place)
		return wrong(ret_error, "destination %s: %s is given twice; give it once",
			     d->kind->name, key_names[key]);
	*place = strview_dup(value);
	if (!*place)
		return -ENOMEM;
	d->n_headers += key_is_header(key);
	if (key_is_env(key) && !getenv(*place))
		return wrong(ret_error,
			     "destination %s: %s names the environment variable %s, but it is not "
			     "set; set it or use a file",
			     d->kind->name, key_names[key], *place);
	if (key == KEY_STORAGE && !origin_ok(*place))
		return wrong(ret_error,
			     "destination %s: %s is not an address without a path; write it like "
			     "%s=https://HOST",
			     d->kind->name, key_names[key], key_names[key]);
	if ((key == KEY_USER || key == KEY_TENANT) && !http_value_ok(*place))
		return wrong(
			ret_error,
			"destination %s: %s is not printable ASCII and cannot stand in an HTTP "
			"header; correct it",
			d->kind->name, key_names[key]);
	return 0;
}

static int destination_set_pair(struct destination *d, struct strview pair, char **ret_error)
{
	struct strview name = pair;

	if (!strview_until(&pair, '=', &name))
		name = pair; /* empty between two commas: no key has an empty name */
	for (int key = 0; key < KEY_MAX; key++)
		if (strview_is(&name, key_names[key]))
			return destination_set_key(d, (enum key)key, pair, ret_error);
	return key_unknown(d, &name, ret_error);
}

/* Conflicting settings. */
static int destination_check(const struct destination *d, char **ret_error)
{
	const char *kind = d->kind->name;

	if (secret_is_ambiguous(&d->password) || secret_is_ambiguous(&d->bearer) ||
	    secret_is_ambiguous(&d->tenant))
		return wrong(ret_error,
			     "destination %s: the same password, token or tenant is given in two "
			     "ways; keep one of them",
			     kind);
	if ((d->user || secret_is_set(&d->password)) && secret_is_set(&d->bearer))
		return wrong(ret_error,
			     "destination %s: basic-auth-* and bearer-token-* exclude each other; "
			     "keep one of them",
			     kind);
	if (!d->user != !secret_is_set(&d->password))
		return wrong(ret_error, "destination %s: basic authentication lacks its %s; add %s",
			     kind, d->user ? "password" : "user",
			     d->user ? "basic-auth-password-file=PATH" : "basic-auth-user=NAME");
	if (d->user && strchr(d->user, ':'))
		return wrong(ret_error,
			     "destination %s: basic-auth-user contains ':', which HTTP does not "
			     "allow in a user name; remove it",
			     kind);
	if (d->debuginfo && !d->server_symbols)
		return wrong(ret_error,
			     "destination %s: debuginfo=true has no effect without "
			     "server-symbols=true; add server-symbols=true",
			     kind);
	if (d->storage && !d->debuginfo)
		return wrong(ret_error,
			     "destination %s: debuginfo-storage has no effect without "
			     "debuginfo=true; add debuginfo=true",
			     kind);
	if (d->key_file && !d->cert_file)
		return wrong(ret_error,
			     "destination %s: client-key-file without its certificate; add "
			     "client-cert-file=PATH",
			     kind);
	return 0;
}

/* ---- destinations */

void destination_free(struct destination *d)
{
	if (!d)
		return;
	free(d->url);
	free(d->host);
	free(d->user);
	secret_deinit(&d->password);
	secret_deinit(&d->bearer);
	secret_deinit(&d->tenant);
	for (size_t i = 0; i < DESTINATION_OWN_HEADERS_MAX; i++)
		secret_deinit(&d->headers[i]);
	free(d->ca_file);
	free(d->cert_file);
	free(d->key_file);
	free(d->storage);
	free(d);
}
DEFINE_CLEANUP(struct destination *, destination_freep, destination_free);

int destination_new_of(const struct destination_kind *const *kinds, const char *spec,
		       struct destination **ret, char **ret_error)
{
	_cleanup_(destination_freep) struct destination *d = calloc(1, sizeof(*d));
	struct strview rest = strview_of(spec), name = rest, url = strview_of(""), pair;
	int r;

	if (!d)
		return -ENOMEM;
	d->kind = strview_until(&rest, '=', &name) ? kind_find(kinds, &name) : NULL;
	if (!d->kind)
		return kind_unknown(kinds, &name, ret_error);
	d->thread_names = !d->kind->splits;
	if (!strview_until(&rest, ',', &url))
		url = rest; /* an empty text, reported as no URL */
	r = d->kind->folder ? destination_set_folder(d, url, ret_error)
			    : destination_set_url(d, url, ret_error);
	while (!r && strview_until(&rest, ',', &pair))
		r = destination_set_pair(d, pair, ret_error);
	if (!r)
		r = destination_check(d, ret_error);
	if (r)
		return r;
	*ret = take_ptr(d);
	return 0;
}

int destination_new(const char *spec, struct destination **ret, char **ret_error)
{
	return destination_new_of(destination_kinds, spec, ret, ret_error);
}

const char *destination_unreadable_file(const struct destination *d, int *ret_errno)
{
	const char *files[6 + DESTINATION_OWN_HEADERS_MAX] = {
		d->password.file, d->bearer.file, d->tenant.file,
		d->ca_file,	  d->cert_file,	  d->key_file,
	};

	for (size_t i = 0; i < d->n_headers; i++)
		files[6 + i] = d->headers[i].file;
	for (size_t i = 0; i < array_size(files); i++) {
		if (!files[i] || access(files[i], R_OK) == 0)
			continue;
		*ret_errno = errno;
		return files[i];
	}
	return NULL;
}
