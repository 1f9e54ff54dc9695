// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "gofile/gofuncs.h"
#include "gofile/gomodule.h"
#include "elf/elffile.h"
#include "support/allocfail.h"
#include "support/gotable.h"

static const unsigned int minors[] = {16, 18, 20, 26, 27};

/* main.deep is only ever inlined; the others are not there, or a part of a name. */
static const char *const names[] = {"main.outer", "type:.eq.main.t", "main.deep", "type:.eq.main",
				    "eq.main.t",  "main.none",	     ""};

static int find(const struct gotable *t, struct gofuncs_one ret[array_size(names)])
{
	struct elffile *file = NULL;
	struct gomodule module;
	int r = elffile_open_memory(t->data, t->n, &file);

	if (!r)
		r = gomodule_find(file, &module);
	if (!r)
		r = gofuncs_find(file, &module, names, array_size(names), ret);
	elffile_free(file);
	return r;
}

static void finds_by_whole_name(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(minors); i++) {
		const struct gotable_opts opts = {.minor = minors[i], .no_sections = i % 2};
		struct gofuncs_one found[array_size(names)];
		struct gotable t;
		uint64_t text;

		gotable_build(&opts, &t);
		text = GOTABLE_BASE + t.text;
		assert_int_equal(find(&t, found), 0);
		assert_true(found[0].named && found[0].entry == text &&
			    found[0].end == text + 0x40);
		assert_true(found[1].named && found[1].entry == text + 0x80 &&
			    found[1].end == text + 0xa0);
		assert_true(found[2].named && found[2].entry == 0);
		for (size_t k = 3; k < array_size(names); k++)
			assert_true(!found[k].entry);
		assert_true(!found[3].named && !found[4].named && !found[5].named);
	}
}

static void survives_any_byte(void **state)
{
	const struct gotable_opts opts = {.minor = 20};
	size_t n_found = 0, n_refused = 0;
	struct gotable t;

	(void)state;
	gotable_build(&opts, &t);
	for (size_t i = 0; i < t.n; i++) {
		struct gofuncs_one found[array_size(names)];
		int r;

		t.data[i] ^= 0xff;
		r = find(&t, found);
		t.data[i] ^= 0xff;
		assert_true(r >= 0);
		n_found += r == 0;
		n_refused += r > 0;
	}
	assert_true(n_found > 0 && n_refused > 0);
}

static int attempt(void *arg)
{
	struct gofuncs_one found[array_size(names)];

	return find(arg, found);
}

static void out_of_memory(void **state)
{
	const struct gotable_opts opts = {.minor = 26};
	struct gotable t;

	(void)state;
	gotable_build(&opts, &t);
	allocfail_each(attempt, &t);
}

static void too_many_names(void **state)
{
	const char *many[GOFUNCS_NAMES_MAX + 1] = {NULL};

	(void)state;
	assert_int_equal(gofuncs_find(NULL, NULL, many, array_size(many), NULL), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_by_whole_name),
		cmocka_unit_test(survives_any_byte),
		cmocka_unit_test(out_of_memory),
		cmocka_unit_test(too_many_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
