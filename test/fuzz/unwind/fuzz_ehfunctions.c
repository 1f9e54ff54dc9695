// SPDX-License-Identifier: Apache-2.0
/* The functions around single addresses, by an index that may lie: early rules. */
#include "fuzz/fuzz.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "support/ehimage.h"
#include "unwind/ehframe.h"

#define PAIRS_MAX  64
#define VADDRS_MAX 64

/* The first bytes; then the pairs and the addresses, two bytes for each number, and .eh_frame. */
struct input {
	uint8_t how, n_pairs, n_vaddrs, unused;
};

static const uint8_t *take(const uint8_t **data, size_t *size, size_t n)
{
	const uint8_t *at = *data;

	n = n < *size ? n : *size;
	*data += n;
	*size -= n;
	return at;
}

static uint16_t number(const uint8_t *at, size_t i)
{
	uint16_t n;

	memcpy(&n, at + 2 * i, sizeof(n));
	return n;
}

static int by_vaddr(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* 0 if the functions could be read: then the rows are sane. */
static int read_functions(const struct elffile *file, const uint64_t *vaddrs, size_t n)
{
	struct ehframe_stats stats = {0};
	struct rows *rows;
	int r;

	if (rows_new(EHIMAGE_TEXT, EHIMAGE_TEXT_END, &rows))
		abort();
	r = ehframe_add_functions(file, vaddrs, n, rows, &stats);
	if (r == -ENOMEM)
		abort();
	if (!r && (rows_finish(rows) || stats.fdes > n || !ehimage_rows_are_sane(rows)))
		abort();
	rows_free(rows);
	return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ehimage_pair pairs[PAIRS_MAX];
	uint64_t vaddrs[VADDRS_MAX];
	struct ehimage image = {.pairs = pairs};
	struct elffile *file;
	const uint8_t *at;
	struct input in;
	void *bytes;
	size_t n;

	if (size < sizeof(in))
		return 0;
	memcpy(&in, take(&data, &size, sizeof(in)), sizeof(in));
	image.machine = in.how & 1 ? EM_AARCH64 : EM_X86_64;
	image.no_sections = in.how & 2;
	image.more = in.how & 4 ? 1 << 16 : 0;
	image.n_pairs = in.n_pairs % (PAIRS_MAX + 1);
	image.n_pairs = image.n_pairs < size / 4 ? image.n_pairs : size / 4;
	at = take(&data, &size, 4 * image.n_pairs);
	for (size_t i = 0; i < image.n_pairs; i++)
		pairs[i] = (struct ehimage_pair){EHIMAGE_TEXT + number(at, 2 * i),
						 number(at, 2 * i + 1)};
	n = in.n_vaddrs % (VADDRS_MAX + 1);
	n = n < size / 2 ? n : size / 2;
	at = take(&data, &size, 2 * n);
	for (size_t i = 0; i < n; i++)
		vaddrs[i] = EHIMAGE_TEXT + number(at, i);
	qsort(vaddrs, n, sizeof(vaddrs[0]), by_vaddr);
	image.eh_frame = data;
	image.n_eh_frame = size;
	bytes = ehimage_build(&image, &size);
	if (!bytes)
		return 0;
	if (elffile_open_memory(bytes, size, &file))
		abort(); /* the builder makes good headers */
	/* each address alone, unless a read behind the end of the file fails */
	if (!read_functions(file, vaddrs, n) && !image.more)
		for (size_t i = 0; i < n; i++)
			if (read_functions(file, &vaddrs[i], 1))
				abort();
	elffile_free(file);
	free(bytes);
	return 0;
}
