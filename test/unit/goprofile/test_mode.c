// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include "goprofile/mode.h"

static void modes(void **state)
{
	/* '-': not read, 'r': read, 'f': sampling is turned on as well; none, pending, disabled,
	 * enabled, force */
	static const char *const table[HEAP_MODE_MAX] = {
		[HEAP_MODE_DISABLED] = "-----",
		[HEAP_MODE_ENABLED] = "rr-rr",
		[HEAP_MODE_FORCE_ANNOTATED] = "rr-rf",
		[HEAP_MODE_FORCE] = "fr-rf",
	};

	(void)state;
	for (int mode = 0; mode < HEAP_MODE_MAX; mode++)
		for (int wish = 0; wish < HEAP_WISH_MAX; wish++) {
			struct heap_want want =
				heap_mode_want((enum heap_mode)mode, (enum heap_wish)wish);

			assert_int_equal(want.force  ? 'f'
					 : want.read ? 'r'
						     : '-',
					 table[mode][wish]);
		}
}

static void words(void **state)
{
	(void)state;
	assert_int_equal(heap_wish_parse("disabled"), HEAP_WISH_DISABLED);
	assert_int_equal(heap_wish_parse("enabled"), HEAP_WISH_ENABLED);
	assert_int_equal(heap_wish_parse("force"), HEAP_WISH_FORCE);
	assert_int_equal(heap_wish_parse("Force"), HEAP_WISH_NONE);
	assert_int_equal(heap_wish_parse("force "), HEAP_WISH_NONE);
	assert_int_equal(heap_wish_parse("true"), HEAP_WISH_NONE);
	assert_int_equal(heap_wish_parse(""), HEAP_WISH_NONE);
	assert_int_equal(heap_wish_parse(NULL), HEAP_WISH_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(modes),
		cmocka_unit_test(words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
