// SPDX-License-Identifier: Apache-2.0
#include "base/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/http.h"
#include "base/root.h"
#include "base/strview.h"

bool secret_is_set(const struct secret *secret)
{
	return secret->value || secret->file || secret->env;
}

bool secret_is_ambiguous(const struct secret *secret)
{
	return !!secret->value + !!secret->file + !!secret->env > 1;
}

void secret_deinit(struct secret *secret)
{
	free(secret->value);
	free(secret->file);
	free(secret->env);
}

void secret_forget(char *value)
{
	if (!value)
		return;
	explicit_bzero(value, strlen(value));
	free(value);
}

static int secret_read_file(const char *path, struct buf *b)
{
	/* The user's own path, anywhere: a secret's file in a pod is a symbolic link. */
	static const struct root anywhere = {.fd = AT_FDCWD};
	int r = root_read(&anywhere, path, b);

	if (r == -ENOMEM)
		return r;
	if (r == ROOT_TOO_LARGE)
		return SECRET_MALFORMED;
	return r ? SECRET_UNREADABLE : SECRET_OK;
}

/* A growing buf leaves copies behind on the heap; a buf of full size from the start does not. */
static int secret_fill(const struct secret *secret, struct buf *b)
{
	const char *value;
	char *room;
	int r = buf_reserve(b, SECRET_MAX, &room);

	if (r)
		return r;
	if (secret->file)
		return secret_read_file(secret->file, b);
	if (!secret->env)
		return buf_puts(b, secret->value);
	value = getenv(secret->env);
	if (!value)
		return SECRET_UNREADABLE;
	r = buf_puts(b, value);
	return r > 0 ? SECRET_MALFORMED : r;
}

int secret_read(const struct secret *secret, char **ret)
{
	_cleanup_(buf_deinit) struct buf b = BUF_INIT(SECRET_MAX);
	struct strview t;
	char *value;
	int r = 0;

	if (!secret_is_set(secret)) {
		*ret = NULL;
		return 0;
	}
	r = secret_fill(secret, &b);
	if (!r) {
		t = strview_of_bytes(b.data, b.len);
		while (strview_suffix(&t, "\n") || strview_suffix(&t, "\r"))
			;
		b.data[strview_len(&t)] = '\0';
		if (strlen(b.data) != strview_len(&t) || strview_empty(&t) ||
		    !http_value_ok(b.data))
			r = SECRET_MALFORMED;
	}
	value = r ? NULL : strdup(b.data);
	if (!r && !value)
		r = -ENOMEM;
	if (b.data)
		explicit_bzero(b.data, b.cap);
	if (!r)
		*ret = value;
	return r;
}
