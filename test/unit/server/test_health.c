// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <string.h>

#include "base/buf.h"
#include "server/health.h"

static void assert_health(const struct health *h, enum health_kind kind, bool ok, const char *want)
{
	_cleanup_(buf_deinit) struct buf text = BUF_INIT(16384);

	assert_int_equal(health_ok(h, kind), ok);
	assert_int_equal(health_render(h, kind, &text), 0);
	assert_string_equal(text.data, want);
}

static void test_conditions(void **state)
{
	struct health h = {0};

	(void)state;
	assert_health(&h, HEALTH_LIVE, true, "healthy\n");
	assert_health(&h, HEALTH_READY, true, "ready\n");
	health_set(&h, HEALTH_READY, "bpf", false, "not loaded\nyet \x1b[2J\xff");
	assert_health(&h, HEALTH_LIVE, true, "healthy\n");
	assert_health(&h, HEALTH_READY, false, "not ready\nbpf: failing, not loaded yet  [2J?\n");
	health_set(&h, HEALTH_LIVE, "loop", false, NULL);
	health_set(&h, HEALTH_READY, "bpf", true, NULL);
	assert_health(&h, HEALTH_LIVE, false, "not healthy\nloop: failing\n");
	assert_health(&h, HEALTH_READY, false, "not ready\nbpf: ok\nloop: failing\n");
	health_set(&h, HEALTH_LIVE, "loop", true, "again");
	assert_health(&h, HEALTH_READY, true, "ready\nbpf: ok\nloop: ok, again\n");
	health_set(&h, HEALTH_NOTE, "names", false, "denied");
	assert_health(&h, HEALTH_LIVE, true, "healthy\nloop: ok, again\n");
	assert_health(&h, HEALTH_READY, true,
		      "ready\nbpf: ok\nloop: ok, again\nnames: failing, denied\n");
}

static void test_full(void **state)
{
	static char names[HEALTH_CONDITIONS_MAX + 1][8];
	struct health h = {0};

	(void)state;
	for (int i = 0; i < HEALTH_CONDITIONS_MAX; i++) {
		snprintf(names[i], sizeof(names[i]), "c%d", i % 100);
		health_set(&h, HEALTH_LIVE, names[i], true, NULL);
	}
	assert_true(health_ok(&h, HEALTH_LIVE));
	health_set(&h, HEALTH_LIVE, "more", true, NULL);
	assert_false(health_ok(&h, HEALTH_LIVE));
	assert_false(health_ok(&h, HEALTH_READY));
}

static void test_long_reason(void **state)
{
	char reason[HEALTH_REASON_MAX + 10];
	struct health h = {0};

	(void)state;
	memset(reason, 'x', sizeof(reason));
	reason[sizeof(reason) - 1] = '\0';
	health_set(&h, HEALTH_LIVE, "a", true, reason);
	assert_int_equal(strlen(h.items[0].reason), HEALTH_REASON_MAX - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_conditions),
		cmocka_unit_test(test_full),
		cmocka_unit_test(test_long_reason),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
