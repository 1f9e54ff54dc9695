// SPDX-License-Identifier: Apache-2.0
/*
 * A compressed section begins with an Elf64_Chdr, the method and the uncompressed size (gABI,
 * "Section Compression"). The size is foreign: it has a ceiling, and the stream must have exactly
 * this size.
 */
#include "elf/elfinflate.h"

#include <elf.h>
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <zlib.h>

#include "base/cleanup.h"

/* Read at a time. */
#define PIECE			((size_t)32 << 10)
/* Compressed bytes that are read beyond the uncompressed size and a 1,024th of it. zlib adds 5
 * bytes for each 16 KiB that it cannot compress. A stream of empty blocks has no end. Reached:
 * `compressed`. */
#define ELFINFLATE_OVERHEAD_MAX ((uint64_t)64 << 10)

/* Units of work for a byte, compressed or not. */
#define INFLATE_COST 4u

struct stream {
	const struct elffile *ef;
	uint64_t off;
	uint64_t left; /* in the file */
	uint8_t piece[PIECE];
	z_stream z;
};

static void stream_free(struct stream **s)
{
	if (*s)
		inflateEnd(&(*s)->z);
	free(*s);
}

static int refill(struct stream *s)
{
	size_t n = s->left < PIECE ? (size_t)s->left : PIECE;
	int r;

	if (!n)
		return ELFFILE_MALFORMED;
	r = elffile_read(s->ef, s->off, s->piece, n);
	if (r)
		return r;
	s->off += n;
	s->left -= n;
	s->z.next_in = s->piece;
	s->z.avail_in = (uInt)n;
	return 0;
}

/* Fills all room of z.next_out; the stream must then end. */
static int run(struct stream *s)
{
	uInt before = s->z.avail_out;
	int r = 0, z = Z_OK;

	while (!r && z != Z_STREAM_END) {
		if (!s->z.avail_in)
			r = refill(s);
		if (r)
			break;
		z = inflate(&s->z, Z_NO_FLUSH);
		if (!elffile_spend(s->ef, INFLATE_COST * (PIECE + (before - s->z.avail_out))))
			r = ELFFILE_ABANDONED;
		before = s->z.avail_out;
		if (r)
			break;
		if (z == Z_MEM_ERROR)
			r = -ENOMEM;
		else if (z != Z_OK && z != Z_STREAM_END)
			r = ELFFILE_MALFORMED;
	}
	if (!r && s->z.avail_out)
		r = ELFFILE_MALFORMED;
	return r;
}

static int read_header(const struct elffile *ef, const struct elffile_section *section, size_t max,
		       size_t *ret)
{
	Elf64_Chdr header;
	int r;

	if (section->size < sizeof(header))
		return ELFFILE_MALFORMED;
	r = elffile_read(ef, section->off, &header, sizeof(header));
	if (r)
		return r;
	if (le32toh(header.ch_type) != ELFCOMPRESS_ZLIB)
		return ELFFILE_UNSUPPORTED;
	if (le64toh(header.ch_size) > max || le64toh(header.ch_size) > UINT32_MAX)
		return ELFFILE_TOO_LARGE;
	*ret = (size_t)le64toh(header.ch_size);
	return 0;
}

int elfinflate(const struct elffile *ef, const struct elffile_section *section, size_t max,
	       void **ret, size_t *ret_n)
{
	_cleanup_(stream_free) struct stream *s = NULL;
	_cleanup_(freep) void *bytes = NULL;
	size_t n = 0;
	int r = read_header(ef, section, max, &n);

	if (r)
		return r;
	s = calloc(1, sizeof(*s));
	bytes = malloc(n + 1);
	if (!s || !bytes || inflateInit(&s->z) != Z_OK)
		return -ENOMEM;
	s->ef = ef;
	s->off = section->off + sizeof(Elf64_Chdr);
	s->left = section->size - sizeof(Elf64_Chdr);
	if (s->left > n + n / 1024 + ELFINFLATE_OVERHEAD_MAX)
		s->left = n + n / 1024 + ELFINFLATE_OVERHEAD_MAX;
	s->z.next_out = bytes;
	s->z.avail_out = (uInt)n;
	r = run(s);
	if (r)
		return r;
	*ret = take_ptr(bytes);
	*ret_n = n;
	return 0;
}
