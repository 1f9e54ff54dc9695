// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <string.h>

#include "discovery/unit.h"

struct row {
	const char *name;
	const char *text;
	const char *unit; /* NULL: none */
	const char *slice;
	const char *user;
};

#define USER "/user.slice/user-1000.slice"

static const struct row rows[] = {
	{"service", "0::/system.slice/ssh.service\n", "ssh.service", "system.slice", ""},
	{"below the service", "0::/system.slice/ssh.service/a/b\n", "ssh.service", "system.slice",
	 ""},
	{"instances have a slice", "0::/system.slice/system-getty.slice/getty@tty1.service\n",
	 "getty@tty1.service", "system-getty.slice", ""},
	{"in no slice", "0::/init.scope\n", "init.scope", "", ""},
	{"a user's", "0::" USER "/user@1000.service/app.slice/web.service\n", "web.service",
	 "app.slice", "1000"},
	{"another user's",
	 "0::/user.slice/user-1001.slice/user@1001.service/app.slice/web.service\n", "web.service",
	 "app.slice", "1001"},
	{"a user's without a slice", "0::" USER "/user@1000.service/app-x.scope\n", "app-x.scope",
	 "user-1000.slice", "1000"},
	{"a user's systemd", "0::" USER "/user@1000.service/init.scope\n", "user@1000.service",
	 "user-1000.slice", "1000"},
	{"a user's runtime directory", "0::" USER "/user-runtime-dir@1000.service\n",
	 "user-runtime-dir@1000.service", "user-1000.slice", "1000"},
	{"a session", "0::" USER "/session-3.scope\n", "user-1000.slice", "user.slice", "1000"},
	{"a graphical one", "0::" USER "/session-c12.scope/x\n", "user-1000.slice", "user.slice",
	 "1000"},
	{"what is named as one", "0::/system.slice/session-3.scope\n", "session-3.scope",
	 "system.slice", ""},
	{"who says he is another", "0::" USER "/user@1000.service/user@0.service/ssh.service\n",
	 "ssh.service", "user-1000.slice", "1000"},
	{"no number of a user", "0::/user.slice/user-x.slice/user@x.service/a.service\n",
	 "a.service", "user-x.slice", ""},
	{"a slice is better than nothing", "0::" USER "\n", "user-1000.slice", "user.slice",
	 "1000"},
	{"but not than a service", "0::/system.slice/x.service/y.slice\n", "x.service",
	 "system.slice", ""},
	{"monitors of containers are one",
	 "0::/machine.slice/libpod-conmon-"
	 "8e69eed643b5321b53d7433ab2f309794105bf357aeac54337f251be3b6f1094.scope\n",
	 "libpod-conmon", "machine.slice", ""},
	{"CRI-O's", "0::/system.slice/crio-conmon-8e69.scope\n", "crio-conmon", "system.slice", ""},
	{"no monitor", "0::/system.slice/crio-conmonitor.service\n", "crio-conmonitor.service",
	 "system.slice", ""},
	{"none", "0::/init\n", NULL, NULL, NULL},
	{"suffix alone", "0::/.service\n", NULL, NULL, NULL},
	{"the line that knows",
	 "3:memory:/user.slice\n2:devices:/user.slice/user-0.slice/user@0.service\n"
	 "1:name=systemd:/user.slice/user-0.slice/user@0.service/a.slice/b.scope\n0::/\n",
	 "b.scope", "a.slice", "0"},
	{"the line that knows the session",
	 "3:memory:/user.slice/user-0.slice\n"
	 "1:name=systemd:/user.slice/user-0.slice/session-1.scope\n0::/\n",
	 "user-0.slice", "user.slice", "0"},
	{"no lines", "", NULL, NULL, NULL},
	{"not a line", "garbage\n0:x\n", NULL, NULL, NULL},
};

static void assert_strview(struct strview is, const char *expected)
{
	_cleanup_(freep) char *s = strview_dup(is);

	assert_non_null(s);
	assert_string_equal(s, expected);
}

static void test_units(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		const struct row *row = &rows[i];
		struct unit unit;

		row_begin(row->name);
		assert_int_equal(unit_of_proc(strview_of(row->text), &unit), row->unit != NULL);
		if (!row->unit)
			continue;
		assert_strview(unit.name, row->unit);
		assert_strview(unit.slice, row->slice);
		assert_strview(unit.user, row->user);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_units),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
