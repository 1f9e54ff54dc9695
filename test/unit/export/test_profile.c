// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <malloc.h>
#include <string.h>

#include "export/profile.h"

struct fit_row {
	const char *name;
	size_t capacity; /* 0: no bytes at all */
	size_t len;
	bool moves;
};

static const struct fit_row fit_rows[] = {
	{"none", 0, 0, false},
	{"an encoder's buffer", 32768, 3000, true},
	{"as large as it is", 3000, 3000, false},
	{"an eighth more", 3600, 3200, false},
	{"more than an eighth", 3640, 3200, true},
	{"empty", 64, 0, true},
};

static char *bytes_of(const struct fit_row *row)
{
	char *bytes = row->capacity ? malloc(row->capacity) : NULL;

	for (size_t i = 0; i < row->len; i++)
		bytes[i] = (char)(i * 7);
	return bytes;
}

static void check_fit(const struct fit_row *row, char *before, const char *after)
{
	if (!row->capacity) {
		assert_null(after);
		return;
	}
	assert_int_equal(after != before, row->moves);
	if (row->moves)
		assert_true(malloc_usable_size((void *)after) <= row->len + row->len / 8 + 64);
	for (size_t i = 0; i < row->len; i++)
		assert_int_equal(after[i], (char)(i * 7));
}

static void test_fit(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(fit_rows); i++) {
		const struct fit_row *row = &fit_rows[i];
		struct profile *profile = calloc(1, sizeof(*profile));
		char *pprof = bytes_of(row), *delta = bytes_of(row);

		row_begin(row->name);
		assert_non_null(profile);
		*profile = (struct profile){.pprof = pprof,
					    .pprof_len = row->len,
					    .pprof_delta = delta,
					    .pprof_delta_len = row->len};
		profile_fit(profile);
		check_fit(row, pprof, profile->pprof);
		check_fit(row, delta, profile->pprof_delta);
		profile_free(profile);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
