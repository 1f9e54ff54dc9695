// SPDX-License-Identifier: Apache-2.0
#include "export/upload_body.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/nsec.h"
#include "export/base64.h"

#define BEFORE	 "{\"chunkData\":\""
#define BEHIND	 "\"}\n"
/* Bytes of an object: a chunk, or the two ids. Reached: -. */
#define TEXT_MAX (UPLOAD_CHUNK / 3 * 4 + 4096u)

_Static_assert(UPLOAD_CHUNK % 3 == 0, "only the last chunk has padding");

int upload_body_init(struct upload_body *b, int fd, uint64_t size, uint64_t read_ns,
		     const char *build_id, const char *upload_id)
{
	int r;

	*b = (struct upload_body){
		.fd = fd, .size = size, .read_ns = read_ns, .chunk = malloc(UPLOAD_CHUNK)};
	buf_init(&b->text, TEXT_MAX);
	r = b->chunk ? buf_printf(&b->text, "{\"info\":{\"buildId\":\"%s\",\"uploadId\":\"%s\"}}\n",
				  build_id, upload_id)
		     : -ENOMEM;
	if (r)
		upload_body_deinit(b);
	return r > 0 ? -ENOMEM : r;
}

void upload_body_init_plain(struct upload_body *b, int fd, uint64_t size, uint64_t read_ns)
{
	*b = (struct upload_body){.fd = fd, .size = size, .read_ns = read_ns};
	buf_init(&b->text, TEXT_MAX);
}

void upload_body_deinit(struct upload_body *b)
{
	buf_deinit(&b->text);
	free(b->chunk);
	b->chunk = NULL;
}

uint64_t upload_body_len(const struct upload_body *b)
{
	const uint64_t frame = strlen(BEFORE BEHIND), rest = b->size % UPLOAD_CHUNK;
	uint64_t n;

	if (!b->chunk)
		return b->size;
	n = b->text.len + b->size / UPLOAD_CHUNK * (frame + base64_len(UPLOAD_CHUNK));

	return rest ? n + frame + base64_len(rest) : n;
}

/* pread() on account of b->read_ns. */
static ssize_t read_timed(struct upload_body *b, char *ret, size_t n, uint64_t off)
{
	const uint64_t begun_ns = nsec_monotonic();
	const ssize_t got = pread(b->fd, ret, n, (off_t)off);
	const uint64_t took_ns = nsec_monotonic() - begun_ns;

	b->is_slow = took_ns > b->read_ns;
	b->read_ns -= b->is_slow ? b->read_ns : took_ns;
	return got;
}

/* All of @n bytes at b->off. */
static int file_read(struct upload_body *b, char *ret, size_t n)
{
	for (size_t done = 0; done < n;) {
		const ssize_t got = read_timed(b, ret + done, n - done, b->off + done);

		if (b->is_slow)
			return -EIO;
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0) {
			b->is_cut = true;
			return -EIO;
		}
		done += (size_t)got;
	}
	b->off += n;
	return 0;
}

static int chunk_next(struct upload_body *b)
{
	const uint64_t left = b->size - b->off;
	const size_t n = left < UPLOAD_CHUNK ? (size_t)left : UPLOAD_CHUNK;
	int r = file_read(b, b->chunk, n);

	buf_reset(&b->text);
	b->at = 0;
	if (!r)
		r = buf_puts(&b->text, BEFORE);
	if (!r)
		r = base64_put(&b->text, b->chunk, n);
	if (!r)
		r = buf_puts(&b->text, BEHIND);
	return r > 0 ? -ENOMEM : r;
}

static ssize_t plain_next(struct upload_body *b, char *ret, size_t n)
{
	const uint64_t left = b->size - b->off;
	const size_t take = left < n ? (size_t)left : n;
	int r = file_read(b, ret, take);

	return r ? r : (ssize_t)take;
}

ssize_t upload_body_next(struct upload_body *b, char *ret, size_t n)
{
	size_t take;
	int r;

	if (!b->chunk)
		return plain_next(b, ret, n);
	if (b->at == b->text.len) {
		if (b->off == b->size)
			return 0;
		r = chunk_next(b);
		if (r)
			return r;
	}
	take = b->text.len - b->at < n ? b->text.len - b->at : n;
	memcpy(ret, b->text.data + b->at, take);
	b->at += take;
	return (ssize_t)take;
}
