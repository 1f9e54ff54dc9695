// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <stdlib.h>
#include <string.h>

#include <zlib.h>

#include "base/buf.h"
#include "server/gzip.h"

#define BYTES_MAX (8u << 20)

/* Bytes that do not compress, or text. */
static char *make(size_t n, bool noise)
{
	char *data = malloc(n + 1);
	uint32_t seed = 1;

	assert_non_null(data);
	for (size_t i = 0; i < n; i++) {
		seed = seed * 1664525 + 1013904223;
		data[i] = noise ? (char)(seed >> 24) : "podprof_samples_total 1\n"[i % 24];
	}
	return data;
}

/* One member, and nothing behind it. */
static void assert_packed(const struct buf *packed, const char *data, size_t n)
{
	_cleanup_(freep) char *unpacked = malloc(n + 1);
	z_stream z = {
		.next_in = (unsigned char *)packed->data,
		.avail_in = (unsigned int)packed->len,
		.next_out = (unsigned char *)unpacked,
		.avail_out = (unsigned int)n + 1,
	};

	assert_non_null(unpacked);
	assert_int_equal(inflateInit2(&z, 15 + 16), Z_OK);
	assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
	assert_int_equal(z.total_out, n);
	assert_int_equal(z.avail_in, 0);
	assert_memory_equal(unpacked, data, n);
	inflateEnd(&z);
}

static const size_t sizes[] = {
	0,
	1,
	GZIP_STEP_BYTES - 1,
	GZIP_STEP_BYTES,
	GZIP_STEP_BYTES + 1,
	3 * GZIP_STEP_BYTES,
	(3u << 20) + 17,
};

/* Each step takes so many bytes of the input, however little comes out. */
static void test_steps(void **state)
{
	(void)state;
	for (size_t i = 0; i < 2 * array_size(sizes); i++) {
		const size_t n = sizes[i / 2];
		_cleanup_(freep) char *data = make(n, i % 2);
		_cleanup_(buf_deinit) struct buf packed = BUF_INIT(BYTES_MAX);
		struct gzip *gzip;
		size_t n_steps = 1;
		char row[40];
		int r;

		snprintf(row, sizeof(row), "%zu bytes, %s", n, i % 2 ? "noise" : "text");
		row_begin(row);
		assert_int_equal(gzip_new(data, n, &gzip), 0);
		while ((r = gzip_step(gzip, &packed)) == GZIP_MORE)
			n_steps++;
		gzip_free(gzip);
		assert_int_equal(r, 0);
		assert_int_equal(n_steps, n ? (n - 1) / GZIP_STEP_BYTES + 1 : 1);
		assert_packed(&packed, data, n);
	}
}

static void test_at_once(void **state)
{
	const size_t n = 3 * GZIP_STEP_BYTES;
	_cleanup_(freep) char *data = make(n, false);
	_cleanup_(buf_deinit) struct buf packed = BUF_INIT(BYTES_MAX);
	_cleanup_(buf_deinit) struct buf small = BUF_INIT(100);

	(void)state;
	assert_int_equal(gzip_append(data, n, &packed), 0);
	assert_packed(&packed, data, n);
	assert_int_equal(gzip_append(data, n, &small), BUF_FULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_steps),
		cmocka_unit_test(test_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
