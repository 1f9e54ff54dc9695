// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "support/allocfail.h"

#include "base/labels.h"
#include "export/destination.h"

#define PATH "/push.v1.PusherService/Push"

DEFINE_CLEANUP(struct destination *, destination_freep, destination_free);

#define TWO_HEADERS   ",header-file=/h,header-env=HOME"
#define EIGHT_HEADERS TWO_HEADERS TWO_HEADERS TWO_HEADERS TWO_HEADERS

struct good_row {
	const char *spec;
	const char *url;
	const char *host;
	const char *user;
	const char *tenant;
	const char *ca_file;
	const char *cert_file;
	size_t n_headers;
};

static const struct good_row good_rows[] = {
	{"pyroscope=http://127.0.0.1:4040", "http://127.0.0.1:4040" PATH, "127.0.0.1:4040", NULL,
	 NULL, NULL, NULL, 0},
	{"pyroscope=https://example.org/", "https://example.org" PATH, "example.org", NULL, NULL,
	 NULL, NULL, 0},
	{"pyroscope=https://example.org/a/b//", "https://example.org/a/b" PATH, "example.org", NULL,
	 NULL, NULL, NULL, 0},
	{"pyroscope=http://[::1]:4040", "http://[::1]:4040" PATH, "[::1]:4040", NULL, NULL, NULL,
	 NULL, 0},
	{"pyroscope=HTTPS://example.org/x%2Cy", "HTTPS://example.org/x%2Cy" PATH, "example.org",
	 NULL, NULL, NULL, NULL, 0},
	{"pyroscope=http://h,tenant=a=b", "http://h" PATH, "h", NULL, "a=b", NULL, NULL, 0},
	{"pyroscope=http://h,ca-file=/ca.pem,basic-auth-password-file=/p,basic-auth-user=12345",
	 "http://h" PATH, "h", "12345", NULL, "/ca.pem", NULL, 0},
	{"pyroscope=http://h,bearer-token-env=HOME,tenant-env=HOME", "http://h" PATH, "h", NULL,
	 NULL, NULL, NULL, 0},
	{"pyroscope=http://h,client-key-file=/k,client-cert-file=/c", "http://h" PATH, "h", NULL,
	 NULL, NULL, "/c", 0},
	{"pyroscope=http://h" EIGHT_HEADERS, "http://h" PATH, "h", NULL, NULL, NULL, NULL, 8},
};

static void assert_same(const char *a, const char *b)
{
	if (!a || !b)
		assert_ptr_equal(a, b);
	else
		assert_string_equal(a, b);
}

static void test_good(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(good_rows); i++) {
		const struct good_row *row = &good_rows[i];
		_cleanup_(destination_freep) struct destination *d = NULL;
		_cleanup_(freep) char *error = NULL;

		row_begin(row->spec);
		assert_int_equal(destination_new(row->spec, &d, &error), 0);
		assert_string_equal(d->kind->name, "pyroscope");
		assert_string_equal(d->url, row->url);
		assert_string_equal(d->host, row->host);
		assert_same(d->user, row->user);
		assert_same(d->tenant.value, row->tenant);
		assert_same(d->ca_file, row->ca_file);
		assert_same(d->cert_file, row->cert_file);
		assert_int_equal(d->n_headers, row->n_headers);
	}
}

struct bad_row {
	const char *spec;
	const char *says; /* part of the sentence */
};

static const struct bad_row bad_rows[] = {
	{"", "no kind before its URL; write KIND=URL with KIND one of: pyroscope, "},
	{"http://u:secret@h", "no kind before its URL"},
	{"http://u:secret@h/?a=b", "no kind before its URL"},
	{"pyroscope", "not a URL"},
	{"pyroscope=", "not a URL"},
	{"pyroscope=,tenant=x", "not a URL"},
	{"Pyroscope=http://h", "unknown destination kind 'Pyroscope'; the kinds are: pyroscope"},
	{"influx=http://h", "unknown destination kind 'influx'; the kinds are: pyroscope, "},
	{"coroot=http://h,tenant=t", "this kind has no tenant; remove tenant"},
	{"pyroscope=http://h,bytes=1MiB", "this kind has no bytes; remove bytes"},
	{"file=out", "the folder is not an absolute path; write it like file=/"},
	{"file=http://h", "the folder is not an absolute path"},
	{"pyroscope=http://h" EIGHT_HEADERS ",header-file=/h", "more than 8 headers"},
	{"pyroscope=http://h,header-env=PODPROF_NOT_SET", "PODPROF_NOT_SET, but it is not set"},
	{"pyroscope=http://h,header-file=", "header-file has no value"},
	{"pyroscope=http://h,client-key-file=/k", "add client-cert-file=PATH"},
	{"pyroscope=http://h,client-cert-file=/a,client-cert-file=/b", "given twice"},
	{"pyroscope=http://h,server-symbols=yes", "write server-symbols=true"},
	{"parca=http://h,server-symbols=true,debuginfo=1", "write debuginfo=true"},
	{"parca=http://h,debuginfo=true", "add server-symbols=true"},
	{"pyroscope=http://h,server-symbols=true,debuginfo=true", "this kind has no debuginfo"},
	{"parca=http://h,debuginfo-storage=https://s", "add debuginfo=true"},
	{"parca=http://h,debuginfo-storage=https://s/b",
	 "write it like debuginfo-storage=https://"},
	{"parca=http://h,debuginfo-storage=https://s?b", "is not an address without a path"},
	{"parca=http://h,debuginfo-storage=https://u:secret@s", "is not an address"},
	{"parca=http://h,debuginfo-storage=ftp://s", "is not an address"},
	{"parca=http://h,debuginfo-storage=s", "is not an address"},
	{"parca=http://h,debuginfo-storage=https://s,debuginfo-storage=https://s", "given twice"},
	{"pyroscope=http://h,debuginfo-storage=https://s", "this kind has no debuginfo-storage"},
	{"otlp=http://h,server-symbols=true", "this kind has no server-symbols"},
	{"otlp=http://h,thread-names=1", "write thread-names=true"},
	{"file=/out,thread-names=true", "this kind has no thread-names"},
	{"file=/out,server-symbols=true", "this kind has no server-symbols"},
	{"file=/out,ca-file=/ca", "this kind has no ca-file; remove ca-file"},
	{"file=/out,bytes=much", "bytes is not a size; write bytes=256MiB"},
	{"file=/out,bytes=0", "bytes is not a size"},
	{"file=/out,bytes=", "bytes has no value"},
	{"file=/out,bytes=1MiB", NULL},
	{"pyroscope=h:4040", "http"},
	/* libcurl's releases differ in parsing this */
	{"pyroscope=127.0.0.1:4040", "not a URL"},
	{"pyroscope=ftp://h", "scheme 'ftp' is not supported; use http or https"},
	{"pyroscope=http://", "not a URL"},
	{"pyroscope=http://h:99999", "not a URL"},
	{"pyroscope=http://h\nx", "not a URL"},
	{"pyroscope=http://u@h", "use basic-auth-user and basic-auth-password-file"},
	{"pyroscope=http://u:secret@h", "use basic-auth-user and basic-auth-password-file"},
	{"pyroscope=http://:secret@h", "use basic-auth-user and basic-auth-password-file"},
	{"pyroscope=http://h?a=b", "give the server's base address"},
	{"pyroscope=http://h#a", "give the server's base address"},
	{"pyroscope=http://h,", NULL}, /* a comma too many at the end harms nobody */
	{"pyroscope=http://h,,tenant=x", "unknown key ''; the keys are: basic-auth-user, "},
	{"pyroscope=http://h,password=secret", "unknown key 'password'; the keys are: "},
	{"pyroscope=http://h,tenant", "tenant has no value; write tenant=VALUE"},
	{"pyroscope=http://h,tenant=", "tenant has no value; write tenant=VALUE"},
	{"pyroscope=http://h,tenant=a,tenant=b", "tenant is given twice"},
	{"pyroscope=http://h,tenant=a,tenant-file=/b", "given in two ways"},
	{"pyroscope=http://h,tenant=a\nX-Evil: b", "tenant is not printable ASCII"},
	{"pyroscope=http://h,bearer-token-file=/a,bearer-token-env=HOME", "given in two ways"},
	{"pyroscope=http://h,bearer-token-env=PODPROF_NOT_SET",
	 "environment variable PODPROF_NOT_SET, but it is not set"},
	{"pyroscope=http://h,basic-auth-user=u",
	 "lacks its password; add basic-auth-password-file"},
	{"pyroscope=http://h,basic-auth-password-env=HOME", "lacks its user; add basic-auth-user"},
	{"pyroscope=http://h,basic-auth-user=u,basic-auth-password-env=HOME,bearer-token-file=/a",
	 "exclude each other"},
	{"pyroscope=http://h,basic-auth-user=u,bearer-token-file=/a", "exclude each other"},
	{"pyroscope=http://h,basic-auth-user=a:b,basic-auth-password-env=HOME", "contains ':'"},
};

static void test_bad(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(bad_rows); i++) {
		const struct bad_row *row = &bad_rows[i];
		_cleanup_(destination_freep) struct destination *d = NULL;
		_cleanup_(freep) char *error = NULL;

		row_begin(row->spec);
		assert_int_equal(destination_new(row->spec, &d, &error), row->says ? 1 : 0);
		if (!row->says)
			continue;
		assert_null(d);
		print_message("     %s\n", error);
		assert_non_null(strstr(error, row->says));
		assert_null(strstr(error, "secret"));
		assert_null(strchr(error, '\n'));
	}
}

/* The kinds' own keys come last in the list. */
static void test_keys_listed(void **state)
{
	static const struct {
		const char *spec, *ends;
		bool has_tenant;
	} rows[] = {
		{"pyroscope=http://h,x=1", "client-key-file, server-symbols, thread-names", true},
		{"parca=http://h,x=1", "server-symbols, debuginfo, debuginfo-storage, thread-names",
		 false},
		{"otlp=http://h,x=1", "client-cert-file, client-key-file, thread-names", true},
		{"coroot=http://h,x=1", "client-cert-file, client-key-file, thread-names", false},
		{"file=/out,x=1", "unknown key 'x'; the keys are: bytes", false},
	};

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		struct destination *d = NULL;
		_cleanup_(freep) char *error = NULL;
		size_t len, len_ends = strlen(rows[i].ends);

		row_begin(rows[i].spec);
		assert_int_equal(destination_new(rows[i].spec, &d, &error), 1);
		len = strlen(error);
		assert_true(len > len_ends);
		assert_string_equal(error + len - len_ends, rows[i].ends);
		assert_int_equal(strstr(error, ", tenant, ") != NULL, rows[i].has_tenant);
	}
}

static int parse(void *ctx)
{
	_cleanup_(destination_freep) struct destination *d = NULL;
	_cleanup_(freep) char *error = NULL;

	return destination_new(ctx, &d, &error);
}

static void test_no_memory(void **state)
{
	char spec[] = "pyroscope=http://h,basic-auth-user=u,basic-auth-password-file=/p,tenant=t";

	(void)state;
	allocfail_each(parse, spec);
}

/* ---- secrets */

struct secret_row {
	const char *name;
	const char *content;
	size_t repeat;
	int outcome;
	const char *value; /* NULL: @content, @repeat times */
};

static const struct secret_row secret_rows[] = {
	{"plain", "t0ken", 1, SECRET_OK, NULL},
	{"with a newline", "t0ken\n", 1, SECRET_OK, "t0ken"},
	{"with newlines", "t0ken\r\n\n", 1, SECRET_OK, "t0ken"},
	{"blanks are part of it", " a b ", 1, SECRET_OK, NULL},
	{"empty", "", 1, SECRET_MALFORMED, NULL},
	{"only a newline", "\n", 1, SECRET_MALFORMED, NULL},
	{"a newline inside", "a\nX-Evil: b", 1, SECRET_MALFORMED, NULL},
	{"not ASCII", "\xff", 1, SECRET_MALFORMED, NULL},
	{"as long as may be", "x", SECRET_MAX, SECRET_OK, NULL},
	{"one longer", "x", SECRET_MAX + 1, SECRET_MALFORMED, NULL},
};

static void write_file(const char *path, const char *content, size_t repeat)
{
	_cleanup_(fclosep) FILE *file = fopen(path, "w");

	for (size_t i = 0; i < repeat; i++)
		assert_true(fputs(content, file) >= 0);
}

static void test_secret_file(void **state)
{
	char folder[] = "/tmp/podprof-secret-XXXXXX", path[64];
	struct secret secret = {.file = path};

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/token", folder);
	for (size_t i = 0; i < array_size(secret_rows); i++) {
		const struct secret_row *row = &secret_rows[i];
		char *value = NULL;

		row_begin(row->name);
		write_file(path, row->content, row->repeat);
		assert_int_equal(secret_read(&secret, &value), row->outcome);
		if (row->outcome == SECRET_OK) {
			const char *want = row->value ? row->value : row->content;

			assert_int_equal(strlen(value), strlen(want) * row->repeat);
			assert_memory_equal(value, want, strlen(want));
		} else {
			assert_null(value);
		}
		secret_forget(value);
	}
	unlink(path);
	row_begin("no file");
	assert_int_equal(secret_read(&secret, &(char *){NULL}), SECRET_UNREADABLE);
	row_begin("a FIFO does not hang");
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(secret_read(&secret, &(char *){NULL}), SECRET_UNREADABLE);
	unlink(path);
	rmdir(folder);
}

static void test_secret_env(void **state)
{
	struct secret secret = {.env = (char[]){"PODPROF_TEST_SECRET"}}, none = {0};
	char *value = (char[]){"untouched"};

	(void)state;
	setenv("PODPROF_TEST_SECRET", "pass word", 1);
	assert_int_equal(secret_read(&secret, &value), SECRET_OK);
	assert_string_equal(value, "pass word");
	secret_forget(value);
	unsetenv("PODPROF_TEST_SECRET");
	assert_int_equal(secret_read(&secret, &value), SECRET_UNREADABLE);
	assert_int_equal(secret_read(&none, &value), SECRET_OK);
	assert_null(value);
}

/* Each key with a file that is not there; TMP is one that is. */
static const char *const file_keys[] = {
	",basic-auth-user=u,basic-auth-password-file=",
	",bearer-token-file=",
	",tenant-file=",
	",header-env=HOME,header-file=",
	",ca-file=",
	",client-cert-file=",
	",client-cert-file=TMP,client-key-file=",
};

static void test_files(void **state)
{
	char there[] = "/tmp/podprof-file-XXXXXX", missing[64];

	(void)state;
	close(mkstemp(there));
	snprintf(missing, sizeof(missing), "%s-not", there);
	for (size_t i = 0; i < 2 * array_size(file_keys); i++) {
		const bool is_there = i % 2;
		const char *key = file_keys[i / 2], *tmp = strstr(key, "TMP");
		_cleanup_(destination_freep) struct destination *d = NULL;
		_cleanup_(freep) char *error = NULL;
		char spec[256];
		int err = 0;

		row_begin(key);
		snprintf(spec, sizeof(spec), "pyroscope=http://h%.*s%s%s%s",
			 (int)(tmp ? tmp - key : (int)strlen(key)), key, tmp ? there : "",
			 tmp ? tmp + 3 : "", is_there ? there : missing);
		assert_int_equal(destination_new(spec, &d, &error), 0);
		if (is_there) {
			assert_null(destination_unreadable_file(d, &err));
			continue;
		}
		assert_string_equal(destination_unreadable_file(d, &err), missing);
		assert_int_equal(err, ENOENT);
	}
	unlink(there);
}

static void test_switches(void **state)
{
	static const struct {
		const char *spec;
		bool on;
	} specs[] = {{"pyroscope=http://h,server-symbols=true", true},
		     {"parca=http://h,server-symbols=true", true},
		     {"parca=http://h,server-symbols=false", false},
		     {"parca=http://h", false}},
	  files[] = {{"parca=http://h,server-symbols=true,debuginfo=true", true},
		     {"parca=http://h,debuginfo=true,server-symbols=true", true},
		     {"parca=http://h,server-symbols=true,debuginfo=true,debuginfo-storage=https://"
		      "s/",
		      true},
		     {"parca=http://h,debuginfo=false", false},
		     {"parca=http://h,server-symbols=true", false}},
	  threads[] = {{"pyroscope=http://h", false},
		       {"pyroscope=http://h,thread-names=true", true},
		       {"coroot=http://h,bearer-token-file=/x", false},
		       {"parca=http://h", true},
		       {"otlp=http://h", true},
		       {"otlp=http://h,thread-names=false", false},
		       {"file=/out", true}};

	(void)state;
	for (size_t i = 0; i < array_size(specs); i++) {
		_cleanup_(destination_freep) struct destination *d = NULL;
		_cleanup_(freep) char *error = NULL;

		row_begin(specs[i].spec);
		assert_int_equal(destination_new(specs[i].spec, &d, &error), 0);
		assert_int_equal(d->server_symbols, specs[i].on);
	}
	for (size_t i = 0; i < array_size(threads); i++) {
		_cleanup_(destination_freep) struct destination *d = NULL;
		_cleanup_(freep) char *error = NULL;

		row_begin(threads[i].spec);
		assert_int_equal(destination_new(threads[i].spec, &d, &error), 0);
		assert_int_equal(d->thread_names, threads[i].on);
	}
	for (size_t i = 0; i < array_size(files); i++) {
		_cleanup_(destination_freep) struct destination *d = NULL;
		_cleanup_(freep) char *error = NULL;

		row_begin(files[i].spec);
		assert_int_equal(destination_new(files[i].spec, &d, &error), 0);
		assert_int_equal(d->debuginfo, files[i].on);
	}
}

static void test_help(void **state)
{
	(void)state;
	assert_int_equal(strncmp(destination_help, "  KIND=URL", 10), 0);
	assert_non_null(strstr(destination_help, "basic-auth-password-file"));
	assert_int_equal(destination_help[strlen(destination_help) - 1], '\n');
	for (size_t i = 0; destination_kinds[i]; i++)
		assert_non_null(strstr(destination_help, destination_kinds[i]->name));
}

/* Assumptions of other modules about each kind. */
static void test_kinds(void **state)
{
	(void)state;
	for (size_t i = 0; destination_kinds[i]; i++) {
		const struct destination_kind *kind = destination_kinds[i];

		row_begin(kind->name);
		assert_true(kind->title && kind->path && kind->types[PROFILE_CPU]);
		assert_true(kind->folder || (kind->headers[0] && kind->encode && kind->verdict));
		assert_true(kind->limits.profile.samples && kind->limits.profile.bytes);
		assert_true(kind->limits.profiles && kind->limits.age_ns && kind->limits.ahead_ns);
		assert_true(kind->limits.labels >= LABELS_MAX);
		assert_true(kind->limits.label_bytes >= LABELS_VALUE_MAX);
	}
}

struct verdict_row {
	long status;
	enum destination_verdict verdict;
};

static const struct verdict_row verdict_rows[] = {
	{0, DESTINATION_RETRY},	    {199, DESTINATION_REFUSED}, {200, DESTINATION_SENT},
	{299, DESTINATION_SENT},    {300, DESTINATION_REFUSED}, {400, DESTINATION_REFUSED},
	{401, DESTINATION_DENIED},  {403, DESTINATION_DENIED},	{404, DESTINATION_REFUSED},
	{408, DESTINATION_RETRY},   {413, DESTINATION_SPLIT},	{429, DESTINATION_RETRY},
	{499, DESTINATION_REFUSED}, {500, DESTINATION_RETRY},	{503, DESTINATION_RETRY},
};

static void test_verdicts(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(verdict_rows); i++) {
		print_message("row: %ld\n", verdict_rows[i].status);
		assert_int_equal(destination_verdict_of_status(verdict_rows[i].status),
				 verdict_rows[i].verdict);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good),	    cmocka_unit_test(test_bad),
		cmocka_unit_test(test_keys_listed), cmocka_unit_test(test_no_memory),
		cmocka_unit_test(test_secret_file), cmocka_unit_test(test_secret_env),
		cmocka_unit_test(test_help),	    cmocka_unit_test(test_switches),
		cmocka_unit_test(test_files),	    cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_verdicts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
