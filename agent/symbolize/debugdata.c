// SPDX-License-Identifier: Apache-2.0
#include "symbolize/debugdata.h"

#include <errno.h>
#include <lzma.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "elf/elffile.h"

/* Memory of the decoder: rpm's dictionary has 8 MiB. Reached: no name. */
#define DEBUGDATA_DECODER_MAX ((uint64_t)16 << 20)
/* Bytes of the section read at a time, and of the first output buffer, which doubles. */
#define DEBUGDATA_PIECE	      ((size_t)64 << 10)
/* Units of work for an uncompressed byte. */
#define DEBUGDATA_COST	      8u

struct decoder {
	const struct elffile *file;
	uint64_t off;
	uint64_t left; /* compressed bytes that are not read yet */
	lzma_stream xz;
	uint8_t *out;
	size_t cap;
	uint8_t piece[DEBUGDATA_PIECE];
};

static void decoder_freep(struct decoder **d)
{
	if (!*d)
		return;
	lzma_end(&(*d)->xz);
	free((*d)->out);
	free(*d);
}

static int refill(struct decoder *d)
{
	size_t n = d->left < DEBUGDATA_PIECE ? (size_t)d->left : DEBUGDATA_PIECE;
	int r = n ? elffile_read(d->file, d->off, d->piece, n) : ELFFILE_MALFORMED;

	if (r)
		return r;
	d->off += n;
	d->left -= n;
	d->xz.next_in = d->piece;
	d->xz.avail_in = n;
	return 0;
}

static int grow(struct decoder *d)
{
	size_t cap = d->cap ? 2 * d->cap : DEBUGDATA_PIECE;
	uint8_t *out;

	if (cap > DEBUGDATA_MAX)
		return ELFFILE_TOO_LARGE;
	out = realloc(d->out, cap);
	if (!out)
		return -ENOMEM;
	d->xz.next_out = out + d->cap;
	d->xz.avail_out = cap - d->cap;
	d->out = out;
	d->cap = cap;
	return 0;
}

static int outcome_of(lzma_ret code)
{
	switch (code) {
	case LZMA_OK:
	case LZMA_STREAM_END:
		return 0;
	case LZMA_MEM_ERROR:
		return -ENOMEM;
	case LZMA_MEMLIMIT_ERROR:
		return ELFFILE_TOO_LARGE;
	default:
		return ELFFILE_MALFORMED;
	}
}

static int run(struct decoder *d)
{
	lzma_ret code = LZMA_OK;
	int r = 0;

	while (!r && code != LZMA_STREAM_END) {
		size_t room;

		if (!d->xz.avail_in)
			r = refill(d);
		if (!r && !d->xz.avail_out)
			r = grow(d);
		if (r)
			break;
		room = d->xz.avail_out;
		code = lzma_code(&d->xz, LZMA_RUN);
		r = outcome_of(code);
		if (!r && !elffile_spend(d->file, DEBUGDATA_COST * (room - d->xz.avail_out)))
			r = ELFFILE_ABANDONED;
	}
	return r;
}

int debugdata_read(const struct elffile *file, void **ret, size_t *ret_n)
{
	_cleanup_(decoder_freep) struct decoder *d = NULL;
	struct elffile_section section;
	int r = elffile_section(file, ".gnu_debugdata", &section);

	if (r)
		return r;
	d = calloc(1, sizeof(*d));
	if (!d)
		return -ENOMEM;
	d->file = file;
	d->off = section.off;
	d->left = section.size;
	d->xz = (lzma_stream)LZMA_STREAM_INIT;
	r = outcome_of(lzma_stream_decoder(&d->xz, DEBUGDATA_DECODER_MAX, 0));
	if (!r)
		r = run(d);
	if (r)
		return r;
	*ret_n = (size_t)d->xz.total_out;
	*ret = take_ptr(d->out);
	return 0;
}
