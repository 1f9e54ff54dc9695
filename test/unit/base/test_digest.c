// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <string.h>

#include "base/digest.h"

/* As from a generator of random numbers, which a key has to be. */
static const struct digest_key key = {
	{0x6a09e667f3bcc908, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b, 0xa54ff53a5f1d36f1}};

static uint64_t of(const struct digest_key *k, const void *data, size_t n, size_t piece)
{
	const uint8_t *at = data;
	struct digest d;

	digest_init(&d, k);
	for (; n > piece; n -= piece, at += piece)
		digest_add(&d, at, piece);
	digest_add(&d, at, n);
	return digest_end(&d);
}

/* However the bytes come. */
static void test_pieces(void **state)
{
	uint8_t bytes[200];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 7);
	for (size_t n = 0; n <= sizeof(bytes); n++) {
		uint64_t whole = of(&key, bytes, n, sizeof(bytes));

		for (size_t piece = 1; piece < 70; piece++)
			assert_int_equal(of(&key, bytes, n, piece), whole);
	}
}

/* Each bit, the length, and the key count. */
static void test_differs(void **state)
{
	struct digest_key other = key;
	uint8_t bytes[80] = {0};
	uint64_t whole = of(&key, bytes, sizeof(bytes), 80);

	for (size_t i = 0; i < 8 * sizeof(bytes); i++) {
		bytes[i / 8] ^= (uint8_t)(1u << i % 8);
		assert_int_not_equal(of(&key, bytes, sizeof(bytes), 80), whole);
		bytes[i / 8] ^= (uint8_t)(1u << i % 8);
	}
	for (size_t n = 0; n < sizeof(bytes); n++)
		assert_int_not_equal(of(&key, bytes, n, 80), whole);
	for (size_t i = 0; i < 4; i++) {
		other.words[i] ^= 1;
		assert_int_not_equal(of(&other, bytes, sizeof(bytes), 80), whole);
		other.words[i] ^= 1;
	}
}

/* What was said of the first bytes does not change when more come. */
static void test_goes_on(void **state)
{
	struct digest d;
	uint64_t first;

	digest_init(&d, &key);
	digest_u64(&d, 5);
	first = digest_end(&d);
	assert_int_equal(digest_end(&d), first);
	digest_u64(&d, 6);
	assert_int_not_equal(digest_end(&d), first);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pieces),
		cmocka_unit_test(test_differs),
		cmocka_unit_test(test_goes_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
