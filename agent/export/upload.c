// SPDX-License-Identifier: Apache-2.0
/*
 * Four calls, one after the other (parca/debuginfo/v1alpha1/debuginfo.proto, through the gateway
 * for JSON below /api):
 *
 *	ShouldInitiateUpload  build id -> whether the server wants the file. From now on the server
 *			      also looks for the file at its debuginfod servers
 *	InitiateUpload	      build id, size, hash -> id of the upload
 *	Upload		      the file (upload_body.h)
 *	MarkUploadFinished    the server may read the file
 *
 * The server may answer InitiateUpload with the address of an object store, for a PUT of the file
 * in place of Upload. podprof sends files of containers only to hosts that the user named, so the
 * address must have the origin of debuginfo-storage. The address is a credential: the log gets its
 * origin only. The store gets none of the destination's credentials.
 *
 * The server compares the hash with that of a file it could not read, to refuse the same file a
 * second time. A hash of the build id and the size serves, and needs no second reading.
 *
 * The calls have a loop of their own, because reading the file can block the thread.
 */
#include "export/upload.h"

#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/http.h"
#include "base/loop.h"
#include "base/nsec.h"
#include "elf/elffile.h"
#include "export/destination.h"
#include "export/origin.h"
#include "export/push.h"
#include "export/upload_body.h"
#include "export/upload_reply.h"

#define UPLOAD_CONNECT_NS (10 * NSEC_PER_SEC)
/* Parca asks its debuginfod servers meanwhile. */
#define UPLOAD_CALL_NS	  (60 * NSEC_PER_SEC)
#define UPLOAD_FILE_NS	  (600 * NSEC_PER_SEC)
#define UPLOAD_TICK_NS	  (250 * NSEC_PER_MSEC)
/* Bytes of a request without a file: three ids. Reached: -. */
#define UPLOAD_TEXT_MAX	  1024

const char *const upload_end_names[UPLOAD_END_MAX] = {
	[UPLOAD_DONE] = "uploaded",	    [UPLOAD_UNWANTED] = "unwanted",
	[UPLOAD_NO_NAMES] = "no_names",	    [UPLOAD_TOO_LARGE] = "too_large",
	[UPLOAD_DAY_FULL] = "day_full",	    [UPLOAD_CHANGED] = "changed",
	[UPLOAD_ELSEWHERE] = "elsewhere",   [UPLOAD_REFUSED] = "refused",
	[UPLOAD_FAILED] = "failed",	    [UPLOAD_SLOW] = "slow",
	[UPLOAD_QUEUE_FULL] = "queue_full", [UPLOAD_STOPPED] = "stopped",
};

/**
 * struct talk - the calls of one upload
 * @end:     UPLOAD_END_MAX while it goes on
 * @call:    under way, or NULL
 * @body:    of Upload
 * @parse:   reads the reply to @call; false: malformed
 */
struct talk {
	const struct upload *u;
	struct loop *loop;
	struct http *http;
	struct loop_source *tick;
	struct http_call *call;
	struct elffile *file;
	uint64_t size;
	struct upload_ticket ticket;
	struct upload_body body;
	bool is_wanted;
	bool (*parse)(struct talk *t, const struct http_reply *reply);
	enum upload_end end;
	char *error;
};

static void talk_end(struct talk *t, enum upload_end end)
{
	t->end = end;
	loop_stop(t->loop);
}

static void on_tick(void *ctx)
{
	struct talk *t = ctx;

	if (t->u->go_on(t->u->ctx))
		return;
	http_cancel(take_ptr(t->call));
	talk_end(t, UPLOAD_STOPPED);
}

static enum upload_end end_of_status(long status)
{
	if (status == 0 || status == 401 || status == 403 || status == 408 || status == 429 ||
	    status >= 500)
		return UPLOAD_FAILED;
	return UPLOAD_REFUSED;
}

static void on_reply(void *ctx, const struct http_reply *reply)
{
	struct talk *t = ctx;
	char message[PUSH_MESSAGE_MAX + 1];

	t->call = NULL;
	if (reply->stopped) {
		talk_end(t, t->body.is_slow		   ? UPLOAD_SLOW
			    : t->body.is_cut		   ? UPLOAD_CHANGED
			    : reply->stopped == -ECANCELED ? UPLOAD_STOPPED
							   : UPLOAD_FAILED);
		return;
	}
	if (reply->status < 200 || reply->status >= 300) {
		push_message(reply, message);
		snprintf(t->error, UPLOAD_ERROR_MAX, "%s", reply->status ? message : reply->error);
		talk_end(t, end_of_status(reply->status));
		return;
	}
	if (!t->parse(t, reply)) {
		snprintf(t->error, UPLOAD_ERROR_MAX, "the reply has another form");
		talk_end(t, UPLOAD_FAILED);
		return;
	}
	loop_stop(t->loop);
}

static uint64_t read_ns(const struct talk *t)
{
	return t->u->read_ns ? t->u->read_ns : UPLOAD_READ_MAX_NS;
}

static uint64_t total_ns(const struct talk *t)
{
	return t->u->total_ns ? t->u->total_ns : UPLOAD_CALL_NS;
}

/* The call is over, or the talk, when it returns. */
static int talk_call(struct talk *t, const char *name, const struct buf *text, http_send_fn on_send,
		     bool (*parse)(struct talk *t, const struct http_reply *reply))
{
	const struct destination_request request = {
		.body = text ? text->data : NULL,
		.body_len = text ? text->len : upload_body_len(&t->body),
		.query = (char *)name,
	};
	const struct push push = {
		.destination = t->u->destination,
		.request = &request,
		.on_send = on_send,
		.connect_ns = UPLOAD_CONNECT_NS,
		.total_ns = on_send ? UPLOAD_FILE_NS : total_ns(t),
	};
	int r;

	t->parse = parse;
	r = push_start(t->http, &push, on_reply, t, &t->call);
	if (r > 0) {
		snprintf(t->error, UPLOAD_ERROR_MAX, "%s", push_start_error(r));
		t->end = UPLOAD_FAILED;
		return 0;
	}
	return r ? r : loop_run(t->loop);
}

/* ---- the steps; each leaves t->end if the upload goes on */

static bool parse_wanted(struct talk *t, const struct http_reply *reply)
{
	return upload_reply_wanted(reply->body, reply->body_len, &t->is_wanted);
}

static int ask(struct talk *t)
{
	_cleanup_(buf_deinit) struct buf text = BUF_INIT(UPLOAD_TEXT_MAX);
	int r = buf_printf(&text, "{\"buildId\":\"%s\",\"buildIdType\":\"BUILD_ID_TYPE_GNU\"}",
			   t->u->build_id);

	if (r)
		return -ENOMEM;
	r = talk_call(t, "shouldinitiateupload", &text, NULL, parse_wanted);
	if (!r && t->end == UPLOAD_END_MAX && !t->is_wanted)
		t->end = UPLOAD_UNWANTED;
	return r;
}

/* Whether a symbolizer can read names in the file. */
static bool has_names(const struct elffile *ef)
{
	static const char *const names[] = {".symtab", ".gopclntab", ".debug_info",
					    ".gnu_debugdata"};
	struct elffile_section section;

	for (size_t i = 0; i < array_size(names); i++)
		if (elffile_section(ef, names[i], &section) == 0 && section.type != SHT_NOBITS)
			return true;
	return false;
}

static int examine(struct talk *t)
{
	char build_id[ELFFILE_BUILD_ID_TEXT];
	int r;

	if (!t->u->go_on(t->u->ctx)) {
		t->end = UPLOAD_STOPPED;
		return 0;
	}
	r = elffile_open(t->u->fd, &t->file);
	if (r < 0)
		return r;
	if (r) {
		t->end = UPLOAD_CHANGED;
		return 0;
	}
	t->size = elffile_size(t->file);
	elffile_build_id_text(t->file, build_id);
	if (strcmp(build_id, t->u->build_id) != 0)
		t->end = UPLOAD_CHANGED;
	else if (!has_names(t->file))
		t->end = UPLOAD_NO_NAMES;
	else if (t->size > UPLOAD_FILE_MAX)
		t->end = UPLOAD_TOO_LARGE;
	else if (t->size > t->u->day_bytes)
		t->end = UPLOAD_DAY_FULL;
	return 0;
}

static bool parse_ticket(struct talk *t, const struct http_reply *reply)
{
	return upload_reply_ticket(reply->body, reply->body_len, &t->ticket);
}

/* The file goes to another address, if the user allows its origin. */
static int check_elsewhere(struct talk *t)
{
	const char *storage = t->u->destination->storage;
	_cleanup_(freep) char *origin = NULL;

	if (storage && origin_is_of(storage, t->ticket.url))
		return 0;
	origin = origin_text(t->ticket.url);
	if (!origin)
		return -ENOMEM;
	snprintf(t->error, UPLOAD_ERROR_MAX, "the server wants the file at %s, and %s",
		 *origin ? origin : "an unusable address",
		 storage ? "debuginfo-storage is another address" : "debuginfo-storage is not set");
	t->end = UPLOAD_ELSEWHERE;
	return 0;
}

static int initiate(struct talk *t)
{
	_cleanup_(buf_deinit) struct buf text = BUF_INIT(UPLOAD_TEXT_MAX);
	int r = buf_printf(&text,
			   "{\"buildId\":\"%s\",\"buildIdType\":\"BUILD_ID_TYPE_GNU\","
			   "\"size\":\"%" PRIu64 "\",\"hash\":\"%s-%" PRIx64 "\"}",
			   t->u->build_id, t->size, t->u->build_id, t->size);

	if (r)
		return -ENOMEM;
	r = talk_call(t, "initiateupload", &text, NULL, parse_ticket);
	return !r && t->end == UPLOAD_END_MAX && !t->ticket.is_direct ? check_elsewhere(t) : r;
}

static ssize_t on_send(void *ctx, char *ret, size_t n)
{
	struct talk *t = ctx;
	ssize_t got;

	/* a fast server leaves the loop no turn for the tick */
	if (t->body.at == t->body.text.len && !t->u->go_on(t->u->ctx))
		return -ECANCELED;
	got = upload_body_next(&t->body, ret, n);
	atomic_store(t->u->bytes, t->body.off);
	return got;
}

static bool parse_size(struct talk *t, const struct http_reply *reply)
{
	uint64_t size;

	return upload_reply_size(reply->body, reply->body_len, &size) && size == t->size;
}

static bool parse_nothing(struct talk *t, const struct http_reply *reply)
{
	(void)t;
	(void)reply;
	return true;
}

/* The reply names no size: a server that stored less would not answer with success. */
static int put_file(struct talk *t)
{
	const struct http_request request = {
		.url = t->ticket.url,
		.ca_file = t->u->destination->ca_file,
		.on_send = on_send,
		.body_len = t->size,
		.is_put = true,
		.connect_ns = UPLOAD_CONNECT_NS,
		.total_ns = UPLOAD_FILE_NS,
	};
	int r;

	upload_body_init_plain(&t->body, elffile_fd(t->file), t->size, read_ns(t));
	t->parse = parse_nothing;
	r = http_start(t->http, &request, on_reply, t, &t->call);
	return r ? r : loop_run(t->loop);
}

static int send_file(struct talk *t)
{
	int r;

	if (!t->ticket.is_direct)
		return put_file(t);
	r = upload_body_init(&t->body, elffile_fd(t->file), t->size, read_ns(t), t->u->build_id,
			     t->ticket.id);

	return r ? r : talk_call(t, "upload", NULL, on_send, parse_size);
}

static int finish(struct talk *t)
{
	_cleanup_(buf_deinit) struct buf text = BUF_INIT(UPLOAD_TEXT_MAX);
	int r = buf_printf(&text, "{\"buildId\":\"%s\",\"uploadId\":\"%s\"}", t->u->build_id,
			   t->ticket.id);

	if (r)
		return -ENOMEM;
	r = talk_call(t, "markuploadfinished", &text, NULL, parse_nothing);
	if (!r && t->end == UPLOAD_END_MAX)
		t->end = UPLOAD_DONE;
	return r;
}

static int talk_begin(struct talk *t)
{
	int r = loop_new(&t->loop);

	if (!r)
		r = http_new(t->loop, &t->http);
	if (!r)
		r = loop_add_timer(t->loop, on_tick, t, &t->tick);
	return r ? r : loop_arm(t->tick, UPLOAD_TICK_NS, UPLOAD_TICK_NS);
}

int upload_run(const struct upload *u, enum upload_end *ret, char ret_error[UPLOAD_ERROR_MAX])
{
	static int (*const steps[])(struct talk * t) = {ask, examine, initiate, send_file, finish};
	struct talk t = {.u = u, .end = UPLOAD_END_MAX, .error = ret_error};
	int r = talk_begin(&t);

	ret_error[0] = '\0';
	for (size_t i = 0; !r && t.end == UPLOAD_END_MAX && i < array_size(steps); i++)
		r = steps[i](&t);
	*ret = t.end;
	upload_body_deinit(&t.body);
	http_free(t.http);
	loop_remove(t.tick);
	loop_free(t.loop);
	if (!t.file)
		close(u->fd);
	elffile_free(t.file);
	return r;
}
