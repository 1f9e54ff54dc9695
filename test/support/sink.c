// SPDX-License-Identifier: Apache-2.0
#include "support/sink.h"

#include <arpa/inet.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "support/test.h"

#include "base/buf.h"
#include "base/nsec.h"
#include "base/root.h"

#define SINK_REQUESTS_MAX 4096
#define SINK_BODY_MAX	  (64u << 20)
#define SINK_HANGING_MAX  16

struct sink {
	struct MHD_Daemon *daemon;
	char url[64];
	struct buf key, cert;
	const struct sink_answer *script;
	size_t n_script;
	pthread_mutex_t lock; /* for the members below */
	struct sink_request requests[SINK_REQUESTS_MAX];
	size_t n_requests;
	size_t n_connections;
	struct MHD_Connection *hanging[SINK_HANGING_MAX];
	size_t n_hanging;
	size_t n_delayed; /* threads that wait for the time of an answer */
	pthread_cond_t none_delayed;
	bool ending;
};

/* A request during the read, and the answer. */
struct reading {
	struct buf body;
	bool hangs;
	const struct sink_answer *answer; /* given when the connection is resumed */
	unsigned int status;
};

struct delayed {
	struct sink *sink;
	struct MHD_Connection *connection;
	uint64_t delay_ns;
};

static char *header_dup(struct MHD_Connection *connection, const char *name)
{
	const char *value = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);

	return value ? strdup(value) : NULL;
}

static enum MHD_Result add_argument(void *ctx, enum MHD_ValueKind kind, const char *name,
				    const char *value)
{
	(void)kind;
	assert_int_equal(buf_printf(ctx, "%s=%s&", name, value ? value : ""), 0);
	return MHD_YES;
}

static char *query_dup(struct MHD_Connection *connection)
{
	struct buf query = BUF_INIT(4096);

	(void)MHD_get_connection_values(connection, MHD_GET_ARGUMENT_KIND, add_argument, &query);
	return query.data ? buf_take(&query) : strdup("");
}

static const struct sink_answer *sink_answer_of(const struct sink *sink, size_t at)
{
	for (size_t i = 0; i + 1 < sink->n_script; i++) {
		size_t times = sink->script[i].times ? sink->script[i].times : 1;

		if (at < times)
			return &sink->script[i];
		at -= times;
	}
	return &sink->script[sink->n_script - 1];
}

/* Remembers the request and returns the answer to it. */
static const struct sink_answer *sink_take(struct sink *sink, struct MHD_Connection *connection,
					   const char *path, const char *method,
					   struct reading *reading)
{
	struct buf *body = &reading->body;
	const struct sink_answer *answer;
	struct sink_request *request;
	size_t at;

	pthread_mutex_lock(&sink->lock);
	assert_true(sink->n_requests < SINK_REQUESTS_MAX);
	at = sink->n_requests;
	request = &sink->requests[at];
	*request = (struct sink_request){
		.method = strdup(method),
		.query = query_dup(connection),
		.path = strdup(path),
		.content_type = header_dup(connection, "Content-Type"),
		.connect_version = header_dup(connection, "Connect-Protocol-Version"),
		.authorization = header_dup(connection, "Authorization"),
		.tenant = header_dup(connection, "X-Scope-OrgID"),
		.own = header_dup(connection, "X-Own"),
		.expect = header_dup(connection, "Expect"),
		.user_agent = header_dup(connection, "User-Agent"),
		.body_len = body->len,
		.time_ns = nsec_monotonic(),
	};
	answer = sink_answer_of(sink, at);
	reading->status = answer->status;
	if (answer->only && !memmem(body->data, body->len, answer->only, strlen(answer->only)))
		reading->status = 200;
	if (answer->how == SINK_REPLY || answer->how == SINK_GATHER)
		request->status = reading->status;
	request->body = buf_take(body);
	sink->n_requests++;
	pthread_mutex_unlock(&sink->lock);
	return answer;
}

static enum MHD_Result sink_reply(struct MHD_Connection *connection,
				  const struct sink_answer *answer, unsigned int status)
{
	_cleanup_(buf_deinit) struct buf body = BUF_INIT(SINK_BODY_MAX);
	struct MHD_Response *response;
	enum MHD_Result queued;

	assert_int_equal(buf_puts(&body, ""), 0);
	for (size_t i = 0; answer->body && i <= answer->body_repeat; i++)
		if (i < answer->body_repeat || i == 0)
			assert_int_equal(buf_puts(&body, answer->body), 0);
	response = MHD_create_response_from_buffer(body.len, body.data, MHD_RESPMEM_MUST_COPY);
	if (answer->retry_after)
		MHD_add_response_header(response, "Retry-After", answer->retry_after);
	if (answer->location)
		MHD_add_response_header(response, "Location", answer->location);
	queued = MHD_queue_response(connection, status, response);
	MHD_destroy_response(response);
	return queued;
}

static enum MHD_Result sink_hang(struct sink *sink, struct MHD_Connection *connection,
				 struct reading *reading)
{
	pthread_mutex_lock(&sink->lock);
	assert_true(sink->n_hanging < SINK_HANGING_MAX);
	if (!sink->ending) {
		sink->hanging[sink->n_hanging++] = connection;
		MHD_suspend_connection(connection);
	}
	reading->hangs = true;
	pthread_mutex_unlock(&sink->lock);
	return MHD_YES;
}

/* The last request of a group lets all of them go on. */
static enum MHD_Result sink_gather(struct sink *sink, struct MHD_Connection *connection,
				   struct reading *reading)
{
	pthread_mutex_lock(&sink->lock);
	assert_true(sink->n_hanging < SINK_HANGING_MAX);
	sink->hanging[sink->n_hanging++] = connection;
	MHD_suspend_connection(connection);
	if (sink->n_hanging == reading->answer->times) {
		while (sink->n_hanging)
			MHD_resume_connection(sink->hanging[--sink->n_hanging]);
	}
	pthread_mutex_unlock(&sink->lock);
	return MHD_YES;
}

static void *delay_thread(void *arg)
{
	struct delayed *delayed = arg;
	struct sink *sink = delayed->sink;

	usleep((useconds_t)(delayed->delay_ns / 1000));
	pthread_mutex_lock(&sink->lock);
	MHD_resume_connection(delayed->connection);
	if (--sink->n_delayed == 0)
		pthread_cond_broadcast(&sink->none_delayed);
	pthread_mutex_unlock(&sink->lock);
	free(delayed);
	return NULL;
}

static enum MHD_Result sink_delay(struct sink *sink, struct MHD_Connection *connection,
				  uint64_t delay_ns)
{
	struct delayed *delayed = calloc(1, sizeof(*delayed));
	pthread_t thread;

	*delayed = (struct delayed){sink, connection, delay_ns};
	pthread_mutex_lock(&sink->lock);
	sink->n_delayed++;
	MHD_suspend_connection(connection);
	assert_int_equal(pthread_create(&thread, NULL, delay_thread, delayed), 0);
	pthread_detach(thread);
	pthread_mutex_unlock(&sink->lock);
	return MHD_YES;
}

static enum MHD_Result sink_handle(void *ctx, struct MHD_Connection *connection, const char *path,
				   const char *method, const char *version, const char *data,
				   size_t *len, void **request_ctx)
{
	struct reading *reading = *request_ctx;
	const struct sink_answer *answer;
	struct sink *sink = ctx;

	(void)version;
	if (!reading) {
		reading = calloc(1, sizeof(*reading));
		buf_init(&reading->body, SINK_BODY_MAX);
		*request_ctx = reading;
		return MHD_YES;
	}
	if (reading->hangs)
		return MHD_NO; /* resumed because the sink ends */
	if (reading->answer)
		return sink_reply(connection, reading->answer, reading->status);
	if (*len) {
		assert_int_equal(buf_append(&reading->body, data, *len), 0);
		*len = 0;
		return MHD_YES;
	}
	answer = sink_take(sink, connection, path, method, reading);
	if (answer->how == SINK_HANG)
		return sink_hang(sink, connection, reading);
	if (answer->how == SINK_CLOSE)
		return MHD_NO;
	if (answer->how != SINK_GATHER && !answer->delay_ns)
		return sink_reply(connection, answer, reading->status);
	reading->answer = answer;
	return answer->how == SINK_GATHER ? sink_gather(sink, connection, reading)
					  : sink_delay(sink, connection, answer->delay_ns);
}

static void sink_completed(void *ctx, struct MHD_Connection *connection, void **request_ctx,
			   enum MHD_RequestTerminationCode why)
{
	struct reading *reading = *request_ctx;

	(void)ctx;
	(void)connection;
	(void)why;
	if (reading)
		buf_deinit(&reading->body);
	free(reading);
}

static void sink_connection(void *ctx, struct MHD_Connection *connection, void **connection_ctx,
			    enum MHD_ConnectionNotificationCode what)
{
	struct sink *sink = ctx;

	(void)connection;
	(void)connection_ctx;
	pthread_mutex_lock(&sink->lock);
	if (what == MHD_CONNECTION_NOTIFY_STARTED)
		sink->n_connections++;
	pthread_mutex_unlock(&sink->lock);
}

static void quiet(void *ctx, const char *format, va_list args)
{
	(void)ctx;
	(void)format;
	(void)args;
}

static void read_pem(const char *folder, const char *name, struct buf *ret)
{
	_cleanup_(root_deinit) struct root root = ROOT_INIT;

	buf_init(ret, 65536);
	assert_int_equal(root_open(folder, &root), 0);
	assert_int_equal(root_read(&root, name, ret), 0);
}

struct sink *sink_new(const struct sink_answer *script, size_t n, const char *pem_folder)
{
	const struct sockaddr_in loopback = {.sin_family = AF_INET,
					     .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	unsigned int flags = MHD_USE_INTERNAL_POLLING_THREAD | MHD_ALLOW_SUSPEND_RESUME |
			     MHD_USE_ERROR_LOG | (pem_folder ? MHD_USE_TLS : 0);
	struct sink *sink = calloc(1, sizeof(*sink));

	sink->script = script;
	sink->n_script = n;
	pthread_mutex_init(&sink->lock, NULL);
	pthread_cond_init(&sink->none_delayed, NULL);
	if (pem_folder) {
		read_pem(pem_folder, "key.pem", &sink->key);
		read_pem(pem_folder, "cert.pem", &sink->cert);
	}
	sink->daemon = MHD_start_daemon(
		flags, 0, NULL, NULL, sink_handle, sink, MHD_OPTION_EXTERNAL_LOGGER, quiet, NULL,
		MHD_OPTION_SOCK_ADDR, &loopback, MHD_OPTION_NOTIFY_COMPLETED, sink_completed, sink,
		MHD_OPTION_NOTIFY_CONNECTION, sink_connection, sink,
		pem_folder ? MHD_OPTION_HTTPS_MEM_KEY : MHD_OPTION_END, sink->key.data,
		MHD_OPTION_HTTPS_MEM_CERT, sink->cert.data, MHD_OPTION_END);
	assert_non_null(sink->daemon);
	snprintf(sink->url, sizeof(sink->url), "http%s://127.0.0.1:%d", pem_folder ? "s" : "",
		 MHD_get_daemon_info(sink->daemon, MHD_DAEMON_INFO_BIND_PORT)->port);
	return sink;
}

static void request_deinit(struct sink_request *request)
{
	free(request->method);
	free(request->path);
	free(request->query);
	free(request->content_type);
	free(request->connect_version);
	free(request->authorization);
	free(request->tenant);
	free(request->own);
	free(request->expect);
	free(request->user_agent);
	free(request->body);
}

void sink_free(struct sink *sink)
{
	if (!sink)
		return;
	pthread_mutex_lock(&sink->lock);
	sink->ending = true;
	for (size_t i = 0; i < sink->n_hanging; i++)
		MHD_resume_connection(sink->hanging[i]);
	while (sink->n_delayed)
		pthread_cond_wait(&sink->none_delayed, &sink->lock);
	pthread_mutex_unlock(&sink->lock);
	MHD_stop_daemon(sink->daemon);
	for (size_t i = 0; i < sink->n_requests; i++)
		request_deinit(&sink->requests[i]);
	pthread_mutex_destroy(&sink->lock);
	pthread_cond_destroy(&sink->none_delayed);
	buf_deinit(&sink->key);
	buf_deinit(&sink->cert);
	free(sink);
}

const char *sink_url(const struct sink *sink)
{
	return sink->url;
}

size_t sink_n_requests(struct sink *sink)
{
	size_t n;

	pthread_mutex_lock(&sink->lock);
	n = sink->n_requests;
	pthread_mutex_unlock(&sink->lock);
	return n;
}

const struct sink_request *sink_request(struct sink *sink, size_t i)
{
	assert_true(i < sink_n_requests(sink));
	return &sink->requests[i];
}

size_t sink_n_connections(struct sink *sink)
{
	size_t n;

	pthread_mutex_lock(&sink->lock);
	n = sink->n_connections;
	pthread_mutex_unlock(&sink->lock);
	return n;
}
