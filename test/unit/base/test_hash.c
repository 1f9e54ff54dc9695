// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <string.h>

#include "base/hash.h"

#define KEYS  4096u
#define SLOTS 65536u

/* Keys of each length spread over all slots. */
static void test_spread(void **state)
{
	static uint8_t used[SLOTS];

	(void)state;
	for (size_t n = 4; n <= 40; n += 4) {
		unsigned int collisions = 0;

		memset(used, 0, sizeof(used));
		for (uint32_t i = 0; i < KEYS; i++) {
			uint8_t key[40] = {0}, *slot;

			memcpy(key + n - 4, &i, sizeof(i));
			slot = &used[hash_bytes(key, n) % SLOTS];
			collisions += *slot;
			*slot = 1;
		}
		/* 126 by chance */
		assert_true(collisions < KEYS / 16);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_spread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
