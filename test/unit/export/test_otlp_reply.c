// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <string.h>

#include "export/otlp_reply.h"

struct row {
	const char *name;
	const char *bytes;
	size_t n;
	int64_t rejected;
	const char *message;
};

#define BYTES(s) s, sizeof(s) - 1

static const struct row rows[] = {
	{"nothing", BYTES(""), 0, ""},
	{"an empty partial success", BYTES("\x0a\x00"), 0, ""},
	{"both",
	 BYTES("\x0a\x09\x08\x03\x12\x05"
	       "wrong"),
	 3, "wrong"},
	{"a warning",
	 BYTES("\x0a\x06\x12\x04"
	       "slow"),
	 0, "slow"},
	{"300 profiles", BYTES("\x0a\x03\x08\xac\x02"), 300, ""},
	{"less than none", BYTES("\x0a\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), 0, ""},
	{"fields of later versions",
	 BYTES("\x10\x01\x1a\x01x\x25"
	       "1234\x29"
	       "12345678\x0a\x08\x18\x05\x08\x02\x22\x02zz"),
	 2, ""},
	{"a length beyond the end", BYTES("\x0a\x09\x08\x03"), 0, ""},
	{"one beyond the end inside", BYTES("\x0a\x04\x08\x03\x12\x7f"), 3, ""},
	{"a number without an end", BYTES("\x0a\x03\x08\xff\xff"), 0, ""},
	{"a group", BYTES("\x0b\x0a\x02\x08\x01\x0c"), 0, ""},
	{"JSON", BYTES("{\"partialSuccess\":{}}"), 0, ""},
	{"other types of these fields", BYTES("\x0a\x04\x0a\x00\x10\x05"), 0, ""},
};

static void test_rows(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		const struct row *row = &rows[i];
		struct otlp_reply reply;

		row_begin(row->name);
		otlp_reply_parse(row->bytes, row->n, &reply);
		assert_int_equal(reply.rejected, row->rejected);
		assert_int_equal(strview_len(&reply.message), strlen(row->message));
		assert_memory_equal(reply.message.p, row->message, strlen(row->message));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
