// SPDX-License-Identifier: Apache-2.0
#include "pprof/gunzip.h"

#include <errno.h>
#include <string.h>
#include <zlib.h>

#include "base/buf.h"
#include "pprof/pprof.h"

/* Bytes of output at a time: the maximum allocated beyond the contents. */
#define CHUNK_BYTES 65536u

bool gunzip_is(const void *data, size_t n)
{
	return n >= 2 && memcmp(data, "\x1f\x8b", 2) == 0;
}

/* One call of inflate() into fresh room of @ret. 0 or zlib's Z_STREAM_END, else as gunzip(). */
static int inflate_some(z_stream *z, struct buf *ret, bool *ret_end)
{
	size_t room = ret->max - ret->len;
	char spare, *to = &spare;
	int r, state;

	/* at the ceiling the stream may still end, but not produce another byte */
	z->avail_out = 1;
	if (room) {
		room = room < CHUNK_BYTES ? room : CHUNK_BYTES;
		r = buf_reserve(ret, room, &to);
		if (r)
			return r < 0 ? r : PPROF_FULL;
		z->avail_out = (uInt)room;
	}
	z->next_out = (Bytef *)to;
	state = inflate(z, Z_NO_FLUSH);
	if (!room && !z->avail_out)
		return PPROF_FULL;
	if (room)
		ret->len += room - z->avail_out;
	if (state == Z_MEM_ERROR)
		return -ENOMEM;
	if (state != Z_OK && state != Z_STREAM_END)
		return PPROF_MALFORMED; /* Z_BUF_ERROR too: the input ends early */
	*ret_end = state == Z_STREAM_END;
	return 0;
}

static int inflate_members(z_stream *z, struct buf *ret)
{
	bool end = false;
	int r;

	while (!end || z->avail_in) {
		if (end && inflateReset(z) != Z_OK)
			return PPROF_MALFORMED;
		r = inflate_some(z, ret, &end);
		if (r)
			return r;
	}
	return 0;
}

int gunzip(const void *data, size_t n, struct buf *ret)
{
	z_stream z = {.next_in = (Bytef *)data, .avail_in = (uInt)n};
	size_t len = ret->len;
	int r;

	if (n > UINT32_MAX)
		return PPROF_FULL;
	if (inflateInit2(&z, 16 + 15) != Z_OK)
		return -ENOMEM;
	r = inflate_members(&z, ret);
	inflateEnd(&z);
	if (r)
		ret->len = len;
	if (ret->data)
		ret->data[ret->len] = '\0';
	return r;
}
