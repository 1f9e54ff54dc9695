// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include "server/accept.h"

static void test_format(void **state)
{
	static const struct {
		const char *accept;
		enum accept_format format;
	} rows[] = {
		{NULL, ACCEPT_TEXT},
		{"", ACCEPT_TEXT},
		{"*/*", ACCEPT_TEXT},
		{"text/html,application/xhtml+xml,*/*;q=0.8", ACCEPT_TEXT},
		/* Prometheus 2.5 to 2.49 */
		{"application/openmetrics-text;version=1.0.0,"
		 "application/openmetrics-text;version=0.0.1;q=0.75,"
		 "text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
		 ACCEPT_OPENMETRICS},
		/* Prometheus 3 */
		{"application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
		 "application/openmetrics-text;version=0.0.1;q=0.5,"
		 "text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,"
		 "text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
		 ACCEPT_OPENMETRICS},
		/* text first, as with scrape_protocols */
		{"text/plain;version=0.0.4;q=0.6,application/openmetrics-text;version=1.0.0;q=0.5",
		 ACCEPT_TEXT},
		{"application/openmetrics-text", ACCEPT_OPENMETRICS_01},
		{"application/openmetrics-text; version=0.0.1", ACCEPT_OPENMETRICS_01},
		{"APPLICATION/OpenMetrics-Text ; Version=1.0.0 ; Q=1.0", ACCEPT_OPENMETRICS},
		{"application/openmetrics-text;version=2.0.0,*/*;q=0.1", ACCEPT_TEXT},
		{"application/openmetrics-text;version=1.0.0;q=0", ACCEPT_TEXT},
		{"application/openmetrics-text;version=1.0.0;q=0.0,text/plain;q=0.001",
		 ACCEPT_TEXT},
		{"application/openmetrics-text;version=1.0.0;q=0.001", ACCEPT_OPENMETRICS},
		{"application/openmetrics-text;version=1.0.0;q=1.001", ACCEPT_TEXT},
		{"application/openmetrics-text;version=1.0.0;q=0.0001", ACCEPT_TEXT},
		{"application/openmetrics-text;version=1.0.0;q=-1", ACCEPT_TEXT},
		{"application/openmetrics-text;version=1.0.0;q=", ACCEPT_TEXT},
		{"application/openmetrics-text;version=1.0.0;q", ACCEPT_TEXT},
		{"application/openmetrics-text;version=\"1.0.0\"", ACCEPT_TEXT},
		{"application/openmetrics-textual;version=1.0.0", ACCEPT_TEXT},
		{"text/plain, application/openmetrics-text;version=1.0.0", ACCEPT_TEXT},
		{"application/openmetrics-text;version=1.0.0, text/plain", ACCEPT_OPENMETRICS},
		{",,;;,=,;q=1,application/openmetrics-text;;version=1.0.0,", ACCEPT_OPENMETRICS},
		{"\xff\xfe\x01,*", ACCEPT_TEXT},
	};

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		row_begin(rows[i].accept ? rows[i].accept : "(none)");
		assert_int_equal(accept_format(rows[i].accept), rows[i].format);
	}
}

static void test_gzip(void **state)
{
	static const struct {
		const char *header;
		bool ok;
	} rows[] = {
		{NULL, false},		 {"", false},
		{"gzip", true},		 {"deflate, gzip;q=1.0, *;q=0.5", true},
		{"identity", false},	 {"gzip;q=0", false},
		{"gzip;q=0.000", false}, {"*", true},
		{"*;q=0", false},	 {"*, gzip;q=0", false},
		{"br, X-GZIP", true},	 {"gzipped", false},
		{"gzi", false},		 {" gzip ;q=0.1", true},
	};

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		row_begin(rows[i].header ? rows[i].header : "(none)");
		assert_int_equal(accept_gzip(rows[i].header), rows[i].ok);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_format),
		cmocka_unit_test(test_gzip),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
