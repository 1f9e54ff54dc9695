// SPDX-License-Identifier: Apache-2.0
/*
 * protojson (https://protobuf.dev/programming-guides/json/): enums are names, 64-bit numbers are
 * strings. A server may leave out members with the value zero.
 */
#include "export/upload_reply.h"

#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/strview.h"

static json_t *object_of(const char *bytes, size_t n)
{
	_cleanup_(json_decrefp) json_t *json = json_loadb(bytes, n, 0, NULL);

	return json_is_object(json) ? take_ptr(json) : NULL;
}

bool upload_reply_wanted(const char *bytes, size_t n, bool *ret)
{
	_cleanup_(json_decrefp) json_t *reply = object_of(bytes, n);
	const json_t *wanted = json_object_get(reply, "shouldInitiateUpload");

	if (!reply || (wanted && !json_is_boolean(wanted)))
		return false;
	*ret = json_is_true(wanted);
	return true;
}

/* Copies a signed URL; "" if it is not usable. */
static void set_url(const json_t *ticket, char ret[UPLOAD_URL_MAX + 1])
{
	const char *url = json_string_value(json_object_get(ticket, "signedUrl"));
	const size_t len = url ? strlen(url) : 0;

	ret[0] = '\0';
	if (!len || len > UPLOAD_URL_MAX)
		return;
	for (size_t i = 0; i < len; i++)
		if (url[i] <= ' ' || url[i] > '~')
			return;
	memcpy(ret, url, len + 1);
}

bool upload_reply_ticket(const char *bytes, size_t n, struct upload_ticket *ret)
{
	static const char allowed[] = "-._0123456789"
				      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
	_cleanup_(json_decrefp) json_t *reply = object_of(bytes, n);
	const json_t *ticket = json_object_get(reply, "uploadInstructions");
	const char *id = json_string_value(json_object_get(ticket, "uploadId"));
	const char *how = json_string_value(json_object_get(ticket, "uploadStrategy"));
	const size_t len = id ? strlen(id) : 0;

	if (!len || len > UPLOAD_ID_MAX || id[strspn(id, allowed)] || !how)
		return false;
	memcpy(ret->id, id, len + 1);
	ret->is_direct = strcmp(how, "UPLOAD_STRATEGY_GRPC") == 0;
	ret->url[0] = '\0';
	if (strcmp(how, "UPLOAD_STRATEGY_SIGNED_URL") == 0)
		set_url(ticket, ret->url);
	return true;
}

bool upload_reply_size(const char *bytes, size_t n, uint64_t *ret)
{
	_cleanup_(json_decrefp) json_t *reply = object_of(bytes, n);
	const char *text = json_string_value(json_object_get(reply, "size"));

	return text && strview_only_u64(strview_of(text), 10, ret);
}
