// SPDX-License-Identifier: Apache-2.0
#include "server/gzip.h"

#include <errno.h>
#include <limits.h>

#include <zlib.h>

#include "base/buf.h"

/* 15 bits of window as always, 16 for gzip's head and tail instead of zlib's. */
#define GZIP_WINDOW_BITS (15 + 16)
/* Pages are made again for each request and go over a local network: speed counts. */
#define GZIP_LEVEL	 1

static int deflate_all(z_stream *z, struct buf *ret)
{
	uLong bound = deflateBound(z, z->avail_in);
	char *to;
	int r = buf_reserve(ret, bound, &to);

	if (r)
		return r;
	z->next_out = (unsigned char *)to;
	z->avail_out = (unsigned int)bound;
	/* with room for the worst case one call suffices */
	if (deflate(z, Z_FINISH) != Z_STREAM_END)
		return -EIO;
	ret->len += z->total_out;
	ret->data[ret->len] = '\0';
	return 0;
}

int gzip_append(const void *data, size_t n, struct buf *ret)
{
	z_stream z = {0};
	int r;

	if (n > UINT_MAX / 2) /* zlib counts in unsigned int */
		return BUF_FULL;
	if (deflateInit2(&z, GZIP_LEVEL, Z_DEFLATED, GZIP_WINDOW_BITS, 8, Z_DEFAULT_STRATEGY) !=
	    Z_OK)
		return -ENOMEM;
	z.next_in = (unsigned char *)data;
	z.avail_in = (unsigned int)n;
	r = deflate_all(&z, ret);
	deflateEnd(&z);
	return r;
}
