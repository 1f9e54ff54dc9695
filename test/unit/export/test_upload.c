// SPDX-License-Identifier: Apache-2.0
/* One upload, against a server with scripted answers. */
#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/allocfail.h"
#include "support/fixture.h"
#include "support/sink.h"

#include "base/buf.h"
#include "base/nsec.h"
#include "base/root.h"
#include "elf/elffile.h"
#include "export/base64.h"
#include "export/destination.h"
#include "export/parca.h"
#include "export/upload.h"
#include "export/upload_body.h"

DEFINE_CLEANUP(struct destination *, destination_freep, destination_free);

#define FILE_BYTES_MAX (1u << 20)
#define WANTED	       "{\"shouldInitiateUpload\":true}"
#define TICKET                                                                                 \
	"{\"uploadInstructions\":{\"uploadId\":\"id-1\",\"uploadStrategy\":\"UPLOAD_STRATEGY_" \
	"GRPC\"}}"
#define ELSEWHERE                                                                             \
	"{\"uploadInstructions\":{\"uploadId\":\"id-1\","                                     \
	"\"uploadStrategy\":\"UPLOAD_STRATEGY_SIGNED_URL\",\"signedUrl\":\"http://127.0.0.1/" \
	"?s\"}}"

static int file_of(const char *fixture, struct buf *ret)
{
	char path[FIXTURE_PATH_MAX];
	_cleanup_(close_fdp) int from = open(fixture_path(fixture, path), O_RDONLY | O_CLOEXEC);
	int fd = memfd_create("file", MFD_CLOEXEC);

	assert_true(from >= 0 && fd >= 0);
	assert_int_equal(root_read_fd(from, ret), 0);
	assert_int_equal(write(fd, ret->data, ret->len), ret->len);
	return fd;
}

static void build_id_of(int fd, char ret[ELFFILE_BUILD_ID_TEXT])
{
	_cleanup_(elffile_freep) struct elffile *ef = NULL;

	assert_int_equal(elffile_open(fcntl(fd, F_DUPFD_CLOEXEC, 0), &ef), 0);
	elffile_build_id_text(ef, ret);
	assert_int_equal(strlen(ret), 40);
}

struct
try {
	struct destination *destination;
	struct sink *sink;
	int file;      /* not the upload's */
	size_t cut_at; /* requests after which the file becomes shorter; 0: never */
	size_t stop_at;
	bool stops;
};

static bool go_on(void *ctx)
{
	struct try *t = ctx;
	const size_t n = t->sink ? sink_n_requests(t->sink) : 0;

	if (t->cut_at && n >= t->cut_at)
		assert_int_equal(ftruncate(t->file, 5000), 0);
	return !t->stops || n < t->stop_at;
}

static struct destination *destination_at(const char *url)
{
	static const struct destination_kind *const kinds[] = {&destination_parca_files, NULL};
	_cleanup_(freep) char *error = NULL;
	struct destination *d;
	char spec[128];

	snprintf(spec, sizeof(spec), "parca=%s,server-symbols=true,debuginfo=true", url);
	assert_int_equal(destination_new_of(kinds, spec, &d, &error), 0);
	return d;
}

struct row {
	const char *name;
	struct sink_answer script[5];
	size_t n_script;
	const char *fixture, *build_id; /* NULL: that of the file */
	uint64_t file_bytes;		/* 0: as the fixture */
	uint64_t day_bytes;		/* 0: any */
	uint64_t total_ns;
	size_t cut_at, stop_at;
	bool stops;
	enum upload_end end;
	size_t n_requests;
	const char *error;
};

/* The third request has the number of bytes in its answer. */
#define UP_TO_SIZE                            \
	{.status = 200, .body = WANTED},      \
	{                                     \
		.status = 200, .body = TICKET \
	}

static const struct row rows[] = {
	{.name = "unwanted",
	 .script = {{.status = 200, .body = "{\"shouldInitiateUpload\":false}"}},
	 .n_script = 1,
	 .fixture = "bare",
	 .end = UPLOAD_UNWANTED,
	 .n_requests = 1},
	{.name = "a server without the call",
	 .script = {{.status = 404, .body = "{\"message\":\"Not Found\"}"}},
	 .n_script = 1,
	 .fixture = "bare",
	 .end = UPLOAD_REFUSED,
	 .n_requests = 1,
	 .error = "Not Found"},
	{.name = "an error of the server",
	 .script = {{.status = 500, .body = "oh"}},
	 .n_script = 1,
	 .fixture = "bare",
	 .end = UPLOAD_FAILED,
	 .n_requests = 1,
	 .error = "oh"},
	{.name = "wrong credentials",
	 .script = {{.status = 401}},
	 .n_script = 1,
	 .fixture = "bare",
	 .end = UPLOAD_FAILED,
	 .n_requests = 1,
	 .error = "no message"},
	{.name = "a malformed reply",
	 .script = {{.status = 200, .body = "[]"}},
	 .n_script = 1,
	 .fixture = "bare",
	 .end = UPLOAD_FAILED,
	 .n_requests = 1,
	 .error = "the reply has another form"},
	{.name = "no answer",
	 .script = {{.how = SINK_HANG}},
	 .n_script = 1,
	 .fixture = "bare",
	 .total_ns = 300 * NSEC_PER_MSEC,
	 .end = UPLOAD_FAILED,
	 .n_requests = SIZE_MAX}, /* the time may be over before the request is there */
	{.name = "stopped while it waits",
	 .script = {{.how = SINK_HANG}},
	 .n_script = 1,
	 .fixture = "bare",
	 .stops = true,
	 .stop_at = 1,
	 .end = UPLOAD_STOPPED,
	 .n_requests = 1},
	{.name = "a file without names",
	 .script = {{.status = 200, .body = WANTED}},
	 .n_script = 1,
	 .fixture = "bare-stripped",
	 .end = UPLOAD_NO_NAMES,
	 .n_requests = 1},
	{.name = "another file by now",
	 .script = {{.status = 200, .body = WANTED}},
	 .n_script = 1,
	 .fixture = "bare",
	 .build_id = "0123456789abcdef",
	 .end = UPLOAD_CHANGED,
	 .n_requests = 1},
	{.name = "too large",
	 .script = {{.status = 200, .body = WANTED}},
	 .n_script = 1,
	 .fixture = "bare",
	 .file_bytes = UPLOAD_FILE_MAX + 1,
	 .end = UPLOAD_TOO_LARGE,
	 .n_requests = 1},
	{.name = "of the largest size, above the day's",
	 .script = {{.status = 200, .body = WANTED}},
	 .n_script = 1,
	 .fixture = "bare",
	 .file_bytes = UPLOAD_FILE_MAX,
	 .day_bytes = UPLOAD_FILE_MAX - 1,
	 .end = UPLOAD_DAY_FULL,
	 .n_requests = 1},
	{.name = "to another address",
	 .script = {{.status = 200, .body = WANTED}, {.status = 200, .body = ELSEWHERE}},
	 .n_script = 2,
	 .fixture = "bare",
	 .end = UPLOAD_ELSEWHERE,
	 .n_requests = 2,
	 .error = "the server wants the file at http://127.0.0.1:80, and debuginfo-storage is not "
		  "set"},
	{.name = "refused",
	 .script = {{.status = 200, .body = WANTED},
		    {.status = 400, .body = "{\"message\":\"upload size exceeds\"}"}},
	 .n_script = 2,
	 .fixture = "bare",
	 .end = UPLOAD_REFUSED,
	 .n_requests = 2,
	 .error = "upload size exceeds"},
	{.name = "the file becomes shorter",
	 .script = {UP_TO_SIZE, {.status = 200, .body = "{}"}},
	 .n_script = 3,
	 .fixture = "bare",
	 .cut_at = 2,
	 .end = UPLOAD_CHANGED,
	 .n_requests = 2},
	{.name = "stopped before the file",
	 .script = {UP_TO_SIZE, {.status = 200, .body = "{}"}},
	 .n_script = 3,
	 .fixture = "bare",
	 .stops = true,
	 .stop_at = 2,
	 .end = UPLOAD_STOPPED,
	 .n_requests = 2},
	{.name = "fewer bytes arrived",
	 .script = {UP_TO_SIZE, {.status = 200, .body = "{\"size\":\"1\"}"}},
	 .n_script = 3,
	 .fixture = "bare",
	 .end = UPLOAD_FAILED,
	 .n_requests = 3,
	 .error = "the reply has another form"},
	{.name = "the server fails in the file",
	 .script = {UP_TO_SIZE, {.status = 503, .body = "{\"message\":\"later\"}"}},
	 .n_script = 3,
	 .fixture = "bare",
	 .end = UPLOAD_FAILED,
	 .n_requests = 3,
	 .error = "later"},
};

static void row_run(const struct row *row, struct try *t, enum upload_end *ret, uint64_t *ret_bytes,
		    char error[UPLOAD_ERROR_MAX])
{
	_cleanup_(buf_deinit) struct buf bytes = BUF_INIT(FILE_BYTES_MAX);
	char build_id[ELFFILE_BUILD_ID_TEXT];
	atomic_ullong sent = 0;
	struct upload u = {
		.destination = t->destination,
		.bytes = &sent,
		.build_id = row->build_id ? row->build_id : build_id,
		.fd = file_of(row->fixture, &bytes),
		.day_bytes = row->day_bytes ? row->day_bytes : UINT64_MAX,
		.total_ns = row->total_ns,
		.go_on = go_on,
		.ctx = t,
	};

	build_id_of(u.fd, build_id);
	if (row->file_bytes)
		assert_int_equal(ftruncate(u.fd, (off_t)row->file_bytes), 0);
	t->file = fcntl(u.fd, F_DUPFD_CLOEXEC, 0);
	assert_int_equal(upload_run(&u, ret, error), 0);
	*ret_bytes = sent;
	assert_int_equal(fcntl(u.fd, F_GETFD), -1); /* closed */
	close(t->file);
}

static void test_rows(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		const struct row *row = &rows[i];
		struct try t = {
			.sink = sink_new(row->script, row->n_script, NULL),
			.cut_at = row->cut_at,
			.stop_at = row->stop_at,
			.stops = row->stops,
		};
		_cleanup_(destination_freep) struct destination *d =
			destination_at(sink_url(t.sink));
		char error[UPLOAD_ERROR_MAX];
		enum upload_end end;
		uint64_t bytes;

		row_begin(row->name);
		t.destination = d;
		row_run(row, &t, &end, &bytes, error);
		assert_string_equal(upload_end_names[end], upload_end_names[row->end]);
		if (row->total_ns) /* the message has the time */
			assert_true(error[0]);
		else
			assert_string_equal(error, row->error ? row->error : "");
		if (row->n_requests != SIZE_MAX)
			assert_int_equal(sink_n_requests(t.sink), row->n_requests);
		sink_free(t.sink);
	}
}

static void test_no_server(void **state)
{
	static const struct row row = {.fixture = "bare"};
	_cleanup_(destination_freep) struct destination *d = destination_at("http://127.0.0.1:1");
	struct try t = {.destination = d};
	char error[UPLOAD_ERROR_MAX];
	enum upload_end end;
	uint64_t bytes;

	(void)state;
	row_run(&row, &t, &end, &bytes, error);
	assert_int_equal(end, UPLOAD_FAILED);
	assert_int_equal(bytes, 0);
	assert_true(error[0]);
}

/* All four calls, and what is in them. */
static void test_uploaded(void **state)
{
	static const char *const paths[] = {"/api/shouldinitiateupload", "/api/initiateupload",
					    "/api/upload", "/api/markuploadfinished"};
	_cleanup_(buf_deinit) struct buf bytes = BUF_INIT(FILE_BYTES_MAX);
	_cleanup_(buf_deinit) struct buf expected = BUF_INIT(2 * FILE_BYTES_MAX);
	_cleanup_(freep) char *size = NULL;
	char build_id[ELFFILE_BUILD_ID_TEXT], error[UPLOAD_ERROR_MAX];
	struct sink_answer script[] = {UP_TO_SIZE, {.status = 200}, {.status = 200, .body = "{}"}};
	struct try t = {0};
	atomic_ullong n = 0;
	struct upload u = {.fd = file_of("bare", &bytes),
			   .bytes = &n,
			   .day_bytes = UINT64_MAX,
			   .go_on = go_on};
	enum upload_end end;

	(void)state;
	build_id_of(u.fd, build_id);
	assert_true(asprintf(&size, "{\"buildId\":\"%s\",\"size\":\"%zu\"}", build_id, bytes.len) >
		    0);
	script[2].body = size;
	t.sink = sink_new(script, array_size(script), NULL);
	t.destination = destination_at(sink_url(t.sink));
	u.destination = t.destination;
	u.build_id = build_id;
	u.ctx = &t;
	u.day_bytes = bytes.len; /* enough */
	assert_int_equal(upload_run(&u, &end, error), 0);
	assert_string_equal(error, "");
	assert_int_equal(end, UPLOAD_DONE);
	assert_int_equal(n, bytes.len);
	assert_int_equal(sink_n_requests(t.sink), 4);
	for (size_t i = 0; i < 4; i++) {
		const struct sink_request *request = sink_request(t.sink, i);

		assert_string_equal(request->path, paths[i]);
		assert_string_equal(request->method, "POST");
		assert_string_equal(request->content_type, "application/json");
		assert_non_null(memmem(request->body, request->body_len, build_id, 40));
	}
	assert_int_equal(buf_printf(&expected,
				    "{\"info\":{\"buildId\":\"%s\",\"uploadId\":\"id-1\"}}\n"
				    "{\"chunkData\":\"",
				    build_id),
			 0);
	assert_int_equal(base64_put(&expected, bytes.data, bytes.len), 0);
	assert_int_equal(buf_puts(&expected, "\"}\n"), 0);
	assert_int_equal(sink_request(t.sink, 2)->body_len, expected.len);
	assert_memory_equal(sink_request(t.sink, 2)->body, expected.data, expected.len);
	assert_non_null(strstr(sink_request(t.sink, 3)->body, "\"uploadId\":\"id-1\""));
	destination_free(t.destination);
	sink_free(t.sink);
}

/* A file for an object store, at the signed URL of the second answer. */
struct store_row {
	const char *name;
	const char *storage; /* debuginfo-storage; "%s" is the store's address; NULL: none */
	const char *url;     /* the server names it; the same */
	struct sink_answer answer;
	size_t cut_at;
	enum upload_end end;
	size_t n_requests; /* at the store */
	const char *error; /* a part */
};

static const struct store_row store_rows[] = {
	{.name = "stored",
	 .storage = "%s",
	 .url = "%s/bucket/id/debuginfo?X-Signature=abc%%2F&Expires=1",
	 .answer = {.status = 200},
	 .end = UPLOAD_DONE,
	 .n_requests = 1},
	{.name = "another status of success",
	 .storage = "%s",
	 .url = "%s/x",
	 .answer = {.status = 201},
	 .end = UPLOAD_DONE,
	 .n_requests = 1},
	{.name = "no storage is allowed",
	 .url = "%s/x?secret",
	 .end = UPLOAD_ELSEWHERE,
	 .error = ", and debuginfo-storage is not set"},
	{.name = "another host",
	 .storage = "http://localhost:1",
	 .url = "%s/x?secret",
	 .end = UPLOAD_ELSEWHERE,
	 .error = ", and debuginfo-storage is another address"},
	{.name = "another scheme",
	 .storage = "https://127.0.0.1",
	 .url = "http://127.0.0.1:443/x",
	 .end = UPLOAD_ELSEWHERE,
	 .error = "at http://127.0.0.1:443, and"},
	{.name = "a user in the address",
	 .storage = "%s",
	 .url = "http://u:secret@127.0.0.1/x",
	 .end = UPLOAD_ELSEWHERE,
	 .error = "at an unusable address, and"},
	{.name = "the store as the user of another host",
	 .storage = "%s",
	 .url = "%s@127.0.0.2/x",
	 .end = UPLOAD_ELSEWHERE,
	 .error = "at an unusable address, and"},
	{.name = "no URL",
	 .storage = "%s",
	 .url = "/x",
	 .end = UPLOAD_ELSEWHERE,
	 .error = "at an unusable address, and"},
	{.name = "a file of the node",
	 .storage = "%s",
	 .url = "file:///etc/passwd",
	 .end = UPLOAD_ELSEWHERE,
	 .error = "at an unusable address, and"},
	{.name = "the signature is too old",
	 .storage = "%s",
	 .url = "%s/x",
	 .answer = {.status = 403, .body = "<Error>AccessDenied</Error>"},
	 .end = UPLOAD_FAILED,
	 .n_requests = 1,
	 .error = "AccessDenied"},
	{.name = "a redirect is not followed",
	 .storage = "%s",
	 .url = "%s/x",
	 .answer = {.status = 307, .location = "http://127.0.0.2/"},
	 .end = UPLOAD_REFUSED,
	 .n_requests = 1,
	 .error = "podprof does not follow redirects"},
	{.name = "the file becomes shorter",
	 .storage = "%s",
	 .url = "%s/x",
	 .answer = {.status = 200},
	 .cut_at = 2,
	 .end = UPLOAD_CHANGED},
};

#define OWN_HEADER "X-Own: own-secret"

static struct destination *destination_with(const char *url, const char *storage)
{
	static const struct destination_kind *const kinds[] = {&destination_parca_files, NULL};
	_cleanup_(freep) char *error = NULL;
	struct destination *d;
	char spec[512];

	snprintf(spec, sizeof(spec),
		 "parca=%s,server-symbols=true,debuginfo=true,bearer-token-env=PODPROF_TEST_TOKEN,"
		 "header-env=PODPROF_TEST_HEADER%s%s",
		 url, storage ? ",debuginfo-storage=" : "", storage ? storage : "");
	assert_int_equal(destination_new_of(kinds, spec, &d, &error), 0);
	return d;
}

/* The store got the file, and nothing that is for the destination. */
static void check_stored(const struct sink_request *put, const struct buf *bytes)
{
	assert_string_equal(put->method, "PUT");
	assert_null(put->authorization);
	assert_null(put->own);
	assert_null(put->content_type);
	assert_null(put->expect);
	assert_int_equal(put->body_len, bytes->len);
	assert_memory_equal(put->body, bytes->data, bytes->len);
}

static void store_run(const struct store_row *row)
{
	_cleanup_(buf_deinit) struct buf bytes = BUF_INIT(FILE_BYTES_MAX);
	struct sink *store = sink_new(&row->answer, 1, NULL);
	char storage[128], url[256], ticket[512], build_id[ELFFILE_BUILD_ID_TEXT];
	char error[UPLOAD_ERROR_MAX];
	const struct sink_answer script[] = {{.status = 200, .body = WANTED},
					     {.status = 200, .body = ticket},
					     {.status = 200, .body = "{}"}};
	struct try t = {.sink = sink_new(script, array_size(script), NULL), .cut_at = row->cut_at};
	atomic_ullong n = 0;
	struct upload u = {.bytes = &n,
			   .build_id = build_id,
			   .day_bytes = UINT64_MAX,
			   .go_on = go_on,
			   .ctx = &t};
	enum upload_end end;

	/* the rows' addresses, no input */
	snprintf(storage, sizeof(storage), row->storage ? row->storage : "", sink_url(store));
	snprintf(url, sizeof(url), row->url, sink_url(store));
	snprintf(ticket, sizeof(ticket),
		 "{\"uploadInstructions\":{\"uploadId\":\"id-1\",\"uploadStrategy\":"
		 "\"UPLOAD_STRATEGY_SIGNED_URL\",\"signedUrl\":\"%s\"}}",
		 url);
	t.destination = destination_with(sink_url(t.sink), row->storage ? storage : NULL);
	u.destination = t.destination;
	u.fd = file_of("bare", &bytes);
	build_id_of(u.fd, build_id);
	t.file = fcntl(u.fd, F_DUPFD_CLOEXEC, 0);
	assert_int_equal(upload_run(&u, &end, error), 0);
	assert_string_equal(upload_end_names[end], upload_end_names[row->end]);
	assert_non_null(strstr(error, row->error ? row->error : ""));
	assert_null(strstr(error, "secret"));
	assert_int_equal(sink_n_requests(store), row->n_requests);
	assert_int_equal(sink_n_requests(t.sink), row->end == UPLOAD_DONE ? 3 : 2);
	assert_string_equal(sink_request(t.sink, 0)->own, "own-secret");
	if (row->n_requests) {
		check_stored(sink_request(store, 0), &bytes);
		assert_int_equal(n, bytes.len);
	}
	if (row->end == UPLOAD_DONE)
		assert_string_equal(sink_request(t.sink, 2)->path, "/api/markuploadfinished");
	close(t.file);
	destination_free(t.destination);
	sink_free(t.sink);
	sink_free(store);
}

static void test_store(void **state)
{
	(void)state;
	setenv("PODPROF_TEST_TOKEN", "token-secret", 1);
	setenv("PODPROF_TEST_HEADER", OWN_HEADER, 1);
	for (size_t i = 0; i < array_size(store_rows); i++) {
		row_begin(store_rows[i].name);
		store_run(&store_rows[i]);
	}
}

static int run_once(void *ctx)
{
	_cleanup_(buf_deinit) struct buf bytes = BUF_INIT(FILE_BYTES_MAX);
	struct try *t = ctx;
	char error[UPLOAD_ERROR_MAX];
	atomic_ullong n = 0;
	enum upload_end end;
	char path[FIXTURE_PATH_MAX];
	const struct upload u = {
		.destination = t->destination,
		.bytes = &n,
		.build_id = "0123456789abcdef",
		.fd = open(fixture_path("bare", path), O_RDONLY | O_CLOEXEC),
		.go_on = go_on,
		.ctx = t,
	};
	int r = upload_run(&u, &end, error);

	assert_int_equal(fcntl(u.fd, F_GETFD), -1);
	return r;
}

static void test_no_memory(void **state)
{
	static const struct sink_answer wanted = {.status = 200, .body = WANTED};
	struct try t = {.sink = sink_new(&wanted, 1, NULL)};

	(void)state;
	t.destination = destination_at(sink_url(t.sink));
	assert_int_equal(run_once(&t), 0);
	/* a reply that cannot be parsed is malformed */
	assert_true(allocfail_survive(run_once, &t) > 5);
	destination_free(t.destination);
	sink_free(t.sink);
}

static int body_once(void *ctx)
{
	_cleanup_(upload_body_deinit) struct upload_body b = {0};
	ssize_t got = upload_body_init(&b, *(int *)ctx, 100, NSEC_PER_SEC, "ab", "cd");
	char piece[512];

	if (got)
		return (int)got;
	while ((got = upload_body_next(&b, piece, sizeof(piece))) > 0)
		continue;
	return (int)got;
}

static void test_body_no_memory(void **state)
{
	int fd = memfd_create("file", MFD_CLOEXEC);

	(void)state;
	assert_int_equal(ftruncate(fd, 100), 0);
	assert_true(allocfail_each(body_once, &fd) > 1);
	close(fd);
}

/* The announced length is that of the pieces, for files around the length of a chunk. */
static void test_body(void **state)
{
	static const uint64_t sizes[] = {1,
					 UPLOAD_CHUNK - 1,
					 UPLOAD_CHUNK,
					 UPLOAD_CHUNK + 1,
					 3 * UPLOAD_CHUNK,
					 3 * UPLOAD_CHUNK + 2};

	(void)state;
	for (size_t i = 0; i < array_size(sizes); i++) {
		_cleanup_(close_fdp) int fd = memfd_create("file", MFD_CLOEXEC);
		struct upload_body b;
		uint64_t len, n = 0;
		char piece[4099];
		ssize_t got;

		assert_int_equal(ftruncate(fd, (off_t)sizes[i]), 0);
		assert_int_equal(upload_body_init(&b, fd, sizes[i], UPLOAD_READ_MAX_NS, "ab", "cd"),
				 0);
		len = upload_body_len(&b);
		while ((got = upload_body_next(&b, piece, sizeof(piece))) > 0)
			n += (uint64_t)got;
		assert_int_equal(got, 0);
		assert_int_equal(n, len);
		assert_int_equal(b.off, sizes[i]);
		assert_false(b.is_cut || b.is_slow);
		upload_body_deinit(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),	       cmocka_unit_test(test_no_server),
		cmocka_unit_test(test_store),	       cmocka_unit_test(test_uploaded),
		cmocka_unit_test(test_body),	       cmocka_unit_test(test_no_memory),
		cmocka_unit_test(test_body_no_memory),
	};

	unsetenv("http_proxy");
	unsetenv("all_proxy");
	unsetenv("ALL_PROXY");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
