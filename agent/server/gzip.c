// SPDX-License-Identifier: Apache-2.0
#include "server/gzip.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include <zlib.h>

#include "base/buf.h"

/* 15 bits of window as always, 16 for gzip's head and tail instead of zlib's. */
#define GZIP_WINDOW_BITS (15 + 16)
/* Pages are made again for each request and go over a local network: speed counts. */
#define GZIP_LEVEL	 1

struct gzip {
	z_stream z;
	size_t n; /* bytes that no step has taken */
};

int gzip_new(const void *data, size_t n, struct gzip **ret)
{
	struct gzip *gzip;

	if (n > UINT_MAX / 2) /* zlib counts in unsigned int */
		return BUF_FULL;
	gzip = calloc(1, sizeof(*gzip));
	if (!gzip)
		return -ENOMEM;
	gzip->z.next_in = (unsigned char *)data;
	gzip->n = n;
	if (deflateInit2(&gzip->z, GZIP_LEVEL, Z_DEFLATED, GZIP_WINDOW_BITS, 8,
			 Z_DEFAULT_STRATEGY) != Z_OK) {
		free(gzip);
		return -ENOMEM;
	}
	*ret = gzip;
	return 0;
}

int gzip_step(struct gzip *gzip, struct buf *ret)
{
	const size_t n = gzip->n < GZIP_STEP_BYTES ? gzip->n : GZIP_STEP_BYTES;
	const int flush = n < gzip->n ? Z_NO_FLUSH : Z_FINISH;
	z_stream *z = &gzip->z;
	uLong bound;
	char *to;
	int r;

	z->avail_in = (unsigned int)n;
	bound = deflateBound(z, GZIP_STEP_BYTES);
	/* deflate() keeps the output of earlier steps that had no room here */
	do {
		r = buf_reserve(ret, bound, &to);
		if (r)
			return r;
		z->next_out = (unsigned char *)to;
		z->avail_out = (unsigned int)bound;
		r = deflate(z, flush);
		ret->len += bound - z->avail_out;
		ret->data[ret->len] = '\0';
	} while (r == Z_OK && !z->avail_out);
	gzip->n -= n;
	if (r == Z_STREAM_END)
		return 0;
	/* Z_BUF_ERROR: the last call had nothing to add */
	return flush == Z_NO_FLUSH && (r == Z_OK || r == Z_BUF_ERROR) ? GZIP_MORE : -EIO;
}

void gzip_free(struct gzip *gzip)
{
	if (!gzip)
		return;
	deflateEnd(&gzip->z);
	free(gzip);
}

int gzip_append(const void *data, size_t n, struct buf *ret)
{
	struct gzip *gzip;
	int r = gzip_new(data, n, &gzip);

	if (r)
		return r;
	do {
		r = gzip_step(gzip, ret);
	} while (r == GZIP_MORE);
	gzip_free(gzip);
	return r;
}
