// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include "goprofile/policy.h"

static void modes(void **state)
{
	/* '-': not read, 'r': read, 'f': sampling is turned on as well; none, pending, disabled,
	 * enabled, force */
	static const char *const table[GO_PROFILE_MODE_MAX] = {
		[GO_PROFILE_MODE_DISABLED] = "-----",
		[GO_PROFILE_MODE_ENABLED] = "rr-rr",
		[GO_PROFILE_MODE_FORCE_ANNOTATED] = "rr-rf",
		[GO_PROFILE_MODE_FORCE] = "fr-rf",
	};

	(void)state;
	for (int mode = 0; mode < GO_PROFILE_MODE_MAX; mode++)
		for (int wish = 0; wish < GO_PROFILE_WISH_MAX; wish++) {
			struct go_profile_want want = go_profile_policy((enum go_profile_mode)mode,
									(enum go_profile_wish)wish);

			assert_int_equal(want.force  ? 'f'
					 : want.read ? 'r'
						     : '-',
					 table[mode][wish]);
		}
}

static void words(void **state)
{
	(void)state;
	assert_int_equal(go_profile_wish_parse("disabled"), GO_PROFILE_WISH_DISABLED);
	assert_int_equal(go_profile_wish_parse("enabled"), GO_PROFILE_WISH_ENABLED);
	assert_int_equal(go_profile_wish_parse("force"), GO_PROFILE_WISH_FORCE);
	assert_int_equal(go_profile_wish_parse("Force"), GO_PROFILE_WISH_NONE);
	assert_int_equal(go_profile_wish_parse("force "), GO_PROFILE_WISH_NONE);
	assert_int_equal(go_profile_wish_parse("true"), GO_PROFILE_WISH_NONE);
	assert_int_equal(go_profile_wish_parse(""), GO_PROFILE_WISH_NONE);
	assert_int_equal(go_profile_wish_parse(NULL), GO_PROFILE_WISH_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(modes),
		cmocka_unit_test(words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
