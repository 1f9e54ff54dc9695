// SPDX-License-Identifier: Apache-2.0
/*
 * libcurl's multi interface on our loop. libcurl reports the sockets and the timeout to wait for;
 * the loop reports events to libcurl:
 *
 *	http_on_socket()   libcurl: watch this socket    -> loop_add_fd()
 *	http_on_timer()    libcurl: call me in N ms      -> loop_arm()
 *	socket_ready(), timer_due()  the loop            -> curl_multi_socket_action()
 *
 * Finished transfers are collected after each curl_multi_socket_action() and not inside libcurl's
 * callbacks, because libcurl must not be called from there.
 *
 * See curl_multi_socket_action(3). CURLOPT_PROTOCOLS_STR sets the minimum version: libcurl 7.85.
 */
#include "base/http.h"

#include <curl/curl.h>
#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/loop.h"
#include "base/nsec.h"
#include "version.h"

/* Idle connections: a connection for each server of a node agent, and a few more. Reached: the
 * oldest is closed. */
#define HTTP_CONNECTIONS_MAX   8L
/* Seconds of a server's Retry-After, limited against overflow. An hour exceeds every wait of
 * podprof, and later versions of libcurl have a higher limit (8.14: 6 hours). Reached: cut. */
#define HTTP_RETRY_AFTER_MAX_S 3600

/* Bytes of libcurl's buffer for a reply that is read as it arrives. libcurl reads up to 100 buffers
 * in one go; in 100 KiB the reader of a list of pods works some 5 ms, in 100 times the usual 16 KiB
 * 100 ms. The buffer needs HTTP/1.1: over HTTP/2, libcurl 7.88 with a buffer below 4 KiB keeps the
 * end of a reply for itself, and the call waits until its time is over. */
#define HTTP_STREAM_BUFFER 1024L

/* Bytes that a server may send for a reply that is kept: libcurl's 300 KiB of headers and
 * HTTP_REPLY_MAX, eleven times. libcurl has no ceiling for extensions of chunks, trailers and
 * frames of HTTP/2. A reply that is read as it arrives may have as many bytes besides its body, and
 * one more for each byte of the body. Reached: the call fails. */
#define HTTP_RECEIVED_MAX (4u << 20)

struct http {
	struct loop *loop;
	CURLM *multi;
	struct loop_source *timer;
	struct http_call *calls;
};

struct http_call {
	struct http *http;
	struct http_call *prev, *next; /* http->calls */
	CURL *easy;
	struct curl_slist *headers;
	bool unwatched; /* no memory to watch the socket: the call fails */
	struct buf body;
	bool body_cut; /* the reply exceeded HTTP_REPLY_MAX and was not read to its end */
	char error[CURL_ERROR_SIZE];
	http_body_fn on_body;
	http_send_fn on_send;
	int stopped;		  /* the result of on_body() or on_send() */
	int fd;			  /* of the connection, or -1 */
	uint64_t received_before; /* on the connection, before the call; 0: not known yet */
	uint64_t streamed;	  /* bytes of the body given to on_body() */
	bool flooded;		  /* above HTTP_RECEIVED_MAX */
	http_done_fn done;
	void *ctx;
};

static void http_collect(struct http *http);

/* ---- the loop calls */

static void socket_ready(void *ctx, int fd, uint32_t events)
{
	struct http *http = ctx;
	int mask = 0, running;

	if (events & EPOLLIN)
		mask |= CURL_CSELECT_IN;
	if (events & EPOLLOUT)
		mask |= CURL_CSELECT_OUT;
	if (events & (EPOLLERR | EPOLLHUP))
		mask |= CURL_CSELECT_ERR;
	/* Errors appear as errors of the affected calls. */
	(void)curl_multi_socket_action(http->multi, fd, mask, &running);
	http_collect(http);
}

static void timer_due(void *ctx)
{
	struct http *http = ctx;
	int running;

	(void)curl_multi_socket_action(http->multi, CURL_SOCKET_TIMEOUT, 0, &running);
	http_collect(http);
}

/* ---- libcurl calls; the result is always 0, because -1 would end all calls, including later calls
 */

static struct http_call *call_of(CURL *easy)
{
	char *call = NULL;

	if (curl_easy_getinfo(easy, CURLINFO_PRIVATE, &call) != CURLE_OK)
		return NULL;
	return (struct http_call *)(void *)call;
}

static int http_on_socket(CURL *easy, curl_socket_t fd, int what, void *ctx, void *socket_ctx)
{
	struct loop_source *source = socket_ctx;
	struct http_call *call = call_of(easy);
	struct http *http = ctx;
	uint32_t events = 0;
	int r;

	if (call)
		call->fd = what == CURL_POLL_REMOVE ? -1 : fd;
	if (what == CURL_POLL_REMOVE) {
		loop_remove(source);
		return 0;
	}
	if (what & CURL_POLL_IN)
		events |= EPOLLIN;
	if (what & CURL_POLL_OUT)
		events |= EPOLLOUT;
	if (source) {
		r = loop_change_fd(source, events);
	} else {
		r = loop_add_fd(http->loop, fd, events, socket_ready, http, &source);
		if (r == 0)
			(void)curl_multi_assign(http->multi, fd, source); /* passed back with @fd */
	}
	if (r < 0 && call)
		call->unwatched = true;
	return 0;
}

static int http_on_timer(CURLM *multi, long timeout_ms, void *ctx)
{
	struct http *http = ctx;

	(void)multi;
	/* timerfd_settime() fails only for arguments that never occur here. */
	if (timeout_ms < 0)
		(void)loop_disarm(http->timer);
	else
		(void)loop_arm(http->timer, (uint64_t)timeout_ms * NSEC_PER_MSEC, 0);
	return 0;
}

static bool call_streams(const struct http_call *call)
{
	long status = 0;

	(void)curl_easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &status);
	return call->on_body && status == 200;
}

static size_t call_on_body(char *data, size_t size, size_t n, void *ctx)
{
	struct http_call *call = ctx;
	size_t room = call->body.max - call->body.len, take = n < room ? n : room;

	(void)size; /* always 1 */
	if (call_streams(call)) {
		call->streamed += n;
		call->stopped = call->on_body(call->ctx, data, n);
		return call->stopped ? CURL_WRITEFUNC_ERROR : n;
	}
	if (take < n)
		call->body_cut = true;
	if (buf_append(&call->body, data, take))
		return CURL_WRITEFUNC_ERROR;
	return take; /* less than @n ends the transfer */
}

static size_t call_on_send(char *ret, size_t size, size_t n, void *ctx)
{
	struct http_call *call = ctx;
	const ssize_t given = call->on_send(call->ctx, ret, size * n);

	if (given > 0)
		return (size_t)given;
	call->stopped = given ? (int)given : -EIO;
	return CURL_READFUNC_ABORT;
}

/* Bytes that libcurl has read from the call's connection; 0 without one. */
static uint64_t call_received(const struct http_call *call)
{
	struct tcp_info info = {0};
	socklen_t len = sizeof(info);
	int unread = 0;

	if (call->fd < 0 || getsockopt(call->fd, IPPROTO_TCP, TCP_INFO, &info, &len) ||
	    ioctl(call->fd, FIONREAD, &unread) || info.tcpi_bytes_received < (uint64_t)unread)
		return 0;
	return info.tcpi_bytes_received - (uint64_t)unread;
}

/* libcurl calls it in each turn of the transfer; 0: go on. */
static int call_on_progress(void *ctx, curl_off_t download_total, curl_off_t downloaded,
			    curl_off_t upload_total, curl_off_t uploaded)
{
	struct http_call *call = ctx;
	const uint64_t received = call_received(call);

	(void)download_total;
	(void)downloaded;
	(void)upload_total;
	(void)uploaded;
	if (!received)
		return 0;
	/* a connection after a failed one has received less */
	if (!call->received_before || received < call->received_before)
		call->received_before = received;
	call->flooded = received - call->received_before > HTTP_RECEIVED_MAX + 2 * call->streamed;
	return call->flooded;
}

/* ---- one call */

static void call_free(struct http_call *call)
{
	if (!call)
		return;
	curl_easy_cleanup(call->easy);
	curl_slist_free_all(call->headers);
	buf_deinit(&call->body);
	free(call);
}
DEFINE_CLEANUP(struct http_call *, call_freep, call_free);

static void call_unlink(struct http_call *call)
{
	struct http *http = call->http;

	(void)curl_multi_remove_handle(http->multi, call->easy);
	if (call->prev)
		call->prev->next = call->next;
	else
		http->calls = call->next;
	if (call->next)
		call->next->prev = call->prev;
}

static bool call_set_headers(struct http_call *call, const struct http_request *request)
{
	/* An empty "Expect:" header: the client does not ask for permission to send the body. The
	 * question costs a round trip and confuses some proxies. */
	struct curl_slist *list = curl_slist_append(NULL, "Expect:");

	for (size_t i = 0; list && i < request->n_headers; i++) {
		struct curl_slist *longer = curl_slist_append(list, request->headers[i]);

		if (!longer) {
			curl_slist_free_all(list);
			return false;
		}
		list = longer;
	}
	call->headers = list;
	return list && curl_easy_setopt(call->easy, CURLOPT_HTTPHEADER, list) == CURLE_OK;
}

static bool set_str(CURL *easy, CURLoption option, const char *value)
{
	return !value || curl_easy_setopt(easy, option, value) == CURLE_OK;
}

static bool set_long(CURL *easy, CURLoption option, long value)
{
	return curl_easy_setopt(easy, option, value) == CURLE_OK;
}

static bool call_set_auth(CURL *easy, const struct http_request *request)
{
	if (request->user)
		return set_long(easy, CURLOPT_HTTPAUTH, CURLAUTH_BASIC) &&
		       set_str(easy, CURLOPT_USERNAME, request->user) &&
		       set_str(easy, CURLOPT_PASSWORD, request->password);
	if (request->bearer)
		return set_long(easy, CURLOPT_HTTPAUTH, CURLAUTH_BEARER) &&
		       set_str(easy, CURLOPT_XOAUTH2_BEARER, request->bearer);
	return true;
}

/* A connection that the server has closed meanwhile would need the body a second time, so the call
 * takes a new connection. */
static bool call_set_send(struct http_call *call, const struct http_request *request)
{
	return set_long(call->easy, request->is_put ? CURLOPT_UPLOAD : CURLOPT_POST, 1) &&
	       set_long(call->easy, CURLOPT_FRESH_CONNECT, 1) &&
	       curl_easy_setopt(call->easy, CURLOPT_READFUNCTION, call_on_send) == CURLE_OK &&
	       curl_easy_setopt(call->easy, CURLOPT_READDATA, call) == CURLE_OK &&
	       curl_easy_setopt(call->easy,
				request->is_put ? CURLOPT_INFILESIZE_LARGE
						: CURLOPT_POSTFIELDSIZE_LARGE,
				(curl_off_t)request->body_len) == CURLE_OK;
}

static bool call_set_body(struct http_call *call, const struct http_request *request)
{
	CURL *easy = call->easy;

	if (request->on_send)
		return call_set_send(call, request);
	if (!request->body)
		return set_long(easy, CURLOPT_HTTPGET, 1);
	return set_long(easy, CURLOPT_POST, 1) &&
	       curl_easy_setopt(easy, CURLOPT_POSTFIELDS, request->body) == CURLE_OK &&
	       curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->body_len) ==
		       CURLE_OK;
}

static bool call_set_stream(CURL *easy, const struct http_request *request)
{
	if (!request->on_body)
		return true;
	return set_long(easy, CURLOPT_BUFFERSIZE, HTTP_STREAM_BUFFER) &&
	       set_long(easy, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
}

/* libcurl looks for an authority in the system's folder too. Without the folder, libcurl 7.87 and
 * later would keep the file's authorities for a day, also those of a file that has changed. */
static bool call_set_ca(CURL *easy, const char *ca_file)
{
	if (!ca_file)
		return true;
#if LIBCURL_VERSION_NUM >= 0x075700
	if (!set_long(easy, CURLOPT_CA_CACHE_TIMEOUT, 0))
		return false;
#endif
	return set_str(easy, CURLOPT_CAINFO, ca_file) &&
	       curl_easy_setopt(easy, CURLOPT_CAPATH, NULL) == CURLE_OK;
}

static bool call_set(struct http_call *call, const struct http_request *request)
{
	/* TCP keepalive detects a silent peer during a reply of minutes (a watch): the first probe
	 * after 30 s of silence, nine more, and the connection breaks after two minutes. */
	return set_str(call->easy, CURLOPT_URL, request->url) &&
	       set_str(call->easy, CURLOPT_USERAGENT, "podprof/" PODPROF_VERSION) &&
	       call_set_ca(call->easy, request->ca_file) &&
	       set_str(call->easy, CURLOPT_SSLCERT, request->cert_file) &&
	       set_str(call->easy, CURLOPT_SSLKEY, request->key_file) &&
	       set_long(call->easy, CURLOPT_SSL_VERIFYPEER,
			request->verify != HTTP_VERIFY_NOTHING) &&
	       set_long(call->easy, CURLOPT_SSL_VERIFYHOST,
			request->verify == HTTP_VERIFY_ALL ? 2 : 0) &&
	       call_set_auth(call->easy, request) && call_set_body(call, request) &&
	       set_str(call->easy, CURLOPT_PROTOCOLS_STR, "http,https") &&
	       set_long(call->easy, CURLOPT_FOLLOWLOCATION, 0) &&
	       set_long(call->easy, CURLOPT_NOSIGNAL, 1) &&
	       set_long(call->easy, CURLOPT_CONNECTTIMEOUT_MS,
			(long)(request->connect_ns / NSEC_PER_MSEC)) &&
	       set_long(call->easy, CURLOPT_TIMEOUT_MS,
			(long)(request->total_ns / NSEC_PER_MSEC)) &&
	       set_long(call->easy, CURLOPT_TCP_KEEPALIVE, 1) &&
	       set_long(call->easy, CURLOPT_TCP_KEEPIDLE, 30) &&
	       set_long(call->easy, CURLOPT_TCP_KEEPINTVL, 10) && call_set_headers(call, request) &&
	       call_set_stream(call->easy, request) &&
	       curl_easy_setopt(call->easy, CURLOPT_WRITEFUNCTION, call_on_body) == CURLE_OK &&
	       curl_easy_setopt(call->easy, CURLOPT_WRITEDATA, call) == CURLE_OK &&
	       curl_easy_setopt(call->easy, CURLOPT_XFERINFOFUNCTION, call_on_progress) ==
		       CURLE_OK &&
	       curl_easy_setopt(call->easy, CURLOPT_XFERINFODATA, call) == CURLE_OK &&
	       set_long(call->easy, CURLOPT_NOPROGRESS, 0) &&
	       curl_easy_setopt(call->easy, CURLOPT_ERRORBUFFER, call->error) == CURLE_OK &&
	       curl_easy_setopt(call->easy, CURLOPT_PRIVATE, call) == CURLE_OK;
}

static bool http_set(struct http *http)
{
	return curl_multi_setopt(http->multi, CURLMOPT_SOCKETFUNCTION, http_on_socket) ==
		       CURLM_OK &&
	       curl_multi_setopt(http->multi, CURLMOPT_SOCKETDATA, http) == CURLM_OK &&
	       curl_multi_setopt(http->multi, CURLMOPT_TIMERFUNCTION, http_on_timer) == CURLM_OK &&
	       curl_multi_setopt(http->multi, CURLMOPT_TIMERDATA, http) == CURLM_OK &&
	       curl_multi_setopt(http->multi, CURLMOPT_MAXCONNECTS, HTTP_CONNECTIONS_MAX) ==
		       CURLM_OK;
}

/* Start libcurl at the first request: its libraries then take 3 MB of memory, which an agent
 * without destinations and servers saves. */
static int http_begin(struct http *http)
{
	if (http->multi)
		return 0;
	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		return -ENOMEM;
	http->multi = curl_multi_init();
	if (http->multi && http_set(http))
		return 0;
	curl_multi_cleanup(http->multi);
	http->multi = NULL;
	curl_global_cleanup();
	return -ENOMEM;
}

int http_start(struct http *http, const struct http_request *request, http_done_fn done, void *ctx,
	       struct http_call **ret)
{
	_cleanup_(call_freep) struct http_call *call = calloc(1, sizeof(*call));
	int r = call ? http_begin(http) : -ENOMEM;

	if (r)
		return r;
	buf_init(&call->body, HTTP_REPLY_MAX);
	call->http = http;
	call->fd = -1;
	call->on_body = request->on_body;
	call->on_send = request->on_send;
	call->done = done;
	call->ctx = ctx;
	call->easy = curl_easy_init();
	/* With options known to libcurl, only a lack of memory can fail. */
	if (!call->easy || !call_set(call, request))
		return -ENOMEM;
	if (curl_multi_add_handle(http->multi, call->easy) != CURLM_OK)
		return -ENOMEM;
	call->next = http->calls;
	if (call->next)
		call->next->prev = call;
	http->calls = call;
	*ret = take_ptr(call);
	return 0;
}

void http_cancel(struct http_call *call)
{
	if (!call)
		return;
	call_unlink(call);
	call_free(call);
}

static uint64_t call_retry_after_ns(CURL *easy)
{
	curl_off_t s = 0;

	/* libcurl reads both forms, a number and a date; a date in the past comes out negative. */
	if (curl_easy_getinfo(easy, CURLINFO_RETRY_AFTER, &s) != CURLE_OK || s < 0)
		return 0;
	if (s > HTTP_RETRY_AFTER_MAX_S)
		s = HTTP_RETRY_AFTER_MAX_S;
	return (uint64_t)s * NSEC_PER_SEC;
}

static int64_t call_date_s(CURL *easy)
{
	struct curl_header *date;
	time_t t;

	if (curl_easy_header(easy, "Date", 0, CURLH_HEADER, -1, &date) != CURLHE_OK)
		return 0;
	t = curl_getdate(date->value, NULL);
	return t > 0 ? (int64_t)t : 0;
}

static void call_finish(struct http_call *call, CURLcode code)
{
	bool whole = code == CURLE_OK || (code == CURLE_WRITE_ERROR && call->body_cut);
	struct http_reply reply = {
		.error = call->flooded	  ? "the reply is too long"
			 : call->error[0] ? call->error
					  : curl_easy_strerror(code),
		.timed_out = code == CURLE_OPERATION_TIMEDOUT,
		.stopped = call->stopped,
		.retry_after_ns = call_retry_after_ns(call->easy),
		.date_s = call_date_s(call->easy),
		.body = call->body.data ? call->body.data : "",
		.body_len = call->body.len,
	};

	(void)curl_easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE,
				whole ? &reply.status : &reply.cut_status);
	call_unlink(call);
	call->done(call->ctx, &reply);
	call_free(call);
}

static void http_collect_finished(struct http *http)
{
	CURLMsg *msg;
	int left;

	while ((msg = curl_multi_info_read(http->multi, &left))) {
		struct http_call *call;

		if (msg->msg != CURLMSG_DONE)
			continue;
		/* @msg dies with the handle, so its values are copied first. */
		call = call_of(msg->easy_handle);
		if (call)
			call_finish(call, msg->data.result);
	}
}

static void http_collect(struct http *http)
{
	struct http_call *call;

	http_collect_finished(http);
	for (call = http->calls; call;) {
		if (!call->unwatched) {
			call = call->next;
			continue;
		}
		call_finish(call, CURLE_OUT_OF_MEMORY);
		call = http->calls; /* the callback may have changed any call */
	}
}

/* ---- all calls */

DEFINE_CLEANUP(struct http *, http_freep, http_free);

int http_new(struct loop *loop, struct http **ret)
{
	_cleanup_(http_freep) struct http *http = calloc(1, sizeof(*http));
	int r;

	if (!http)
		return -ENOMEM;
	http->loop = loop;
	/* OpenSSL writes to sockets without MSG_NOSIGNAL: a closed connection must not kill the
	 * process. */
	(void)signal(SIGPIPE, SIG_IGN);
	r = loop_add_timer(loop, timer_due, http, &http->timer);
	if (r < 0)
		return r;
	*ret = take_ptr(http);
	return 0;
}

void http_free(struct http *http)
{
	if (!http)
		return;
	while (http->calls)
		http_cancel(http->calls);
	/* Closes the idle connections and calls http_on_socket(), so the timer is freed later. */
	if (http->multi) {
		curl_multi_cleanup(http->multi);
		curl_global_cleanup();
	}
	loop_remove(http->timer);
	free(http);
}

bool http_value_ok(const char *value)
{
	for (; *value; value++)
		if ((unsigned char)*value < ' ' || (unsigned char)*value > '~')
			return false;
	return true;
}

/* The name is a token (RFC 9110, 5.6.2). libcurl leaves out a header without a value. */
bool http_header_ok(const char *line)
{
	static const char token[] = "!#$%&'*+-.^_`|~0123456789"
				    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
	const size_t n = strspn(line, token);

	return n && line[n] == ':' && line[n + 1 + strspn(line + n + 1, " ")] &&
	       http_value_ok(line);
}
