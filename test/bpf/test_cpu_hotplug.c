// SPDX-License-Identifier: Apache-2.0
/* The kernel's messages about CPUs: real events, which the kernel also sends when a user asks for
 * events. */
#include "support/test.h"

#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "profile/cpu_hotplug.h"

#define A_CPU	 "/sys/devices/system/cpu/cpu0/uevent"
#define NO_CPU	 "/sys/devices/virtual/mem/null/uevent"
#define LONG_MS	 10000
/* Messages are in the socket when write(2) returns. */
#define SHORT_MS 0

static void send_uevent(const char *path, const char *action)
{
	FILE *f = fopen(path, "we");

	assert_non_null(f);
	assert_true(fputs(action, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static bool is_readable(int fd, int ms)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, ms) == 1;
}

static void test_messages(void **state)
{
	static const struct {
		const char *path, *action;
		bool told;
	} rows[] = {
		{A_CPU, "online", true},
		{A_CPU, "offline", true},
		{A_CPU, "change", false},
		{NO_CPU, "change", false},
	};
	int fd = cpu_hotplug_open();

	(void)state;
	assert_true(fd >= 0);
	(void)cpu_hotplug_read(fd);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		send_uevent(rows[i].path, rows[i].action);
		assert_int_equal(is_readable(fd, rows[i].told ? LONG_MS : SHORT_MS), rows[i].told);
		assert_int_equal(cpu_hotplug_read(fd), rows[i].told);
		assert_false(is_readable(fd, 0));
	}
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_messages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
