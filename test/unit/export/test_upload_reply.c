// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <string.h>

#include "export/upload_reply.h"

#define ID_64 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define TICKET(id, how) \
	"{\"uploadInstructions\":{\"uploadId\":\"" id "\",\"uploadStrategy\":\"" how "\"}}"
#define GRPC "UPLOAD_STRATEGY_GRPC"
#define URL_1024                                                                                  \
	ID_64 ID_64 ID_64 ID_64 ID_64 ID_64 ID_64 ID_64 ID_64 ID_64 ID_64 ID_64 ID_64 ID_64 ID_64 \
		ID_64
#define URL_4096 URL_1024 URL_1024 URL_1024 URL_1024
#define SIGNED(url)                                                                                \
	"{\"uploadInstructions\":{\"uploadId\":\"a\",\"uploadStrategy\":\"UPLOAD_STRATEGY_SIGNED_" \
	"URL\","                                                                                   \
	"\"signedUrl\":" url "}}"

static void test_wanted(void **state)
{
	static const struct {
		const char *reply;
		int wanted; /* -1: malformed */
	} rows[] = {
		{"{\"shouldInitiateUpload\":true,\"reason\":\"first\"}", 1},
		{"{\"shouldInitiateUpload\":false}", 0},
		{"{}", 0},
		{"{\"shouldInitiateUpload\":\"true\"}", -1},
		{"{\"shouldInitiateUpload\":null}", -1},
		{"[true]", -1},
		{"true", -1},
		{"", -1},
		{"{\"shouldInitiateUpload\":true", -1},
	};

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		const char *reply = rows[i].reply;
		bool wanted = rows[i].wanted != 1, before = wanted;

		row_begin(reply);
		assert_int_equal(upload_reply_wanted(reply, strlen(reply), &wanted),
				 rows[i].wanted >= 0);
		assert_int_equal(wanted, rows[i].wanted >= 0 ? rows[i].wanted : before);
	}
}

static void test_ticket(void **state)
{
	static const struct {
		const char *reply, *id; /* NULL: malformed */
		bool is_direct;
	} rows[] = {
		{TICKET("a-1._Z", GRPC), "a-1._Z", true},
		{TICKET("a", "UPLOAD_STRATEGY_SIGNED_URL"), "a", false},
		{TICKET("a", ""), "a", false},
		{TICKET(ID_64 ID_64, GRPC), ID_64 ID_64, true},
		{TICKET(ID_64 ID_64 "0", GRPC), NULL, false},
		{TICKET("", GRPC), NULL, false},
		{TICKET("a\\\"", GRPC), NULL, false},
		{TICKET("a b", GRPC), NULL, false},
		{"{\"uploadInstructions\":{\"uploadId\":\"a\"}}", NULL, false},
		{"{\"uploadInstructions\":{\"uploadStrategy\":\"" GRPC "\"}}", NULL, false},
		{"{\"uploadInstructions\":{\"uploadId\":1,\"uploadStrategy\":\"" GRPC "\"}}", NULL,
		 false},
		{"{\"uploadInstructions\":[]}", NULL, false},
		{"{}", NULL, false},
		{"[]", NULL, false},
	};

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		struct upload_ticket ticket = {.id = "before"};

		row_begin(rows[i].reply);
		assert_int_equal(upload_reply_ticket(rows[i].reply, strlen(rows[i].reply), &ticket),
				 rows[i].id != NULL);
		assert_string_equal(ticket.id, rows[i].id ? rows[i].id : "before");
		assert_int_equal(ticket.is_direct, rows[i].is_direct);
	}
}

/* Addresses that a request can have; else the ticket has none. */
static void test_url(void **state)
{
	static const struct {
		const char *reply, *url;
	} rows[] = {
		{SIGNED("\"https://h/b?x=%20&y=1\""), "https://h/b?x=%20&y=1"},
		{SIGNED("\"" URL_4096 "\""), URL_4096},
		{SIGNED("\"" URL_4096 "0\""), ""},
		{SIGNED("\"https://h/a b\""), ""},
		{SIGNED("\"https://h/a\\nb\""), ""},
		{SIGNED("\"https://h/\xc3\xbc\""), ""},
		{SIGNED("\"https://h/\x7f\""), ""},
		{SIGNED("\"\""), ""},
		{SIGNED("null"), ""},
		{"{\"uploadInstructions\":{\"uploadId\":\"a\",\"uploadStrategy\":\"" GRPC
		 "\",\"signedUrl\":\"https://h/\"}}",
		 ""},
	};

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		struct upload_ticket ticket = {.url = "before"};

		row_begin(rows[i].url);
		assert_true(upload_reply_ticket(rows[i].reply, strlen(rows[i].reply), &ticket));
		assert_string_equal(ticket.url, rows[i].url);
	}
}

static void test_size(void **state)
{
	static const struct {
		const char *reply;
		uint64_t size; /* 1: malformed */
	} rows[] = {
		{"{\"buildId\":\"a\",\"size\":\"18446744073709551615\"}", UINT64_MAX},
		{"{\"size\":\"0\"}", 0},
		{"{\"size\":\"18446744073709551616\"}", 1},
		{"{\"size\":\"12 \"}", 1},
		{"{\"size\":\"-2\"}", 1},
		{"{\"size\":\"\"}", 1},
		{"{\"size\":12}", 1},
		{"{}", 1},
		{"\"size\"", 1},
	};

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		uint64_t size = 1;

		row_begin(rows[i].reply);
		assert_int_equal(upload_reply_size(rows[i].reply, strlen(rows[i].reply), &size),
				 rows[i].size != 1);
		assert_int_equal(size, rows[i].size);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_wanted),
		cmocka_unit_test(test_ticket),
		cmocka_unit_test(test_url),
		cmocka_unit_test(test_size),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
