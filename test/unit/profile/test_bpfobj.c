// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <errno.h>
#include <string.h>

#include "profile/bpfobj.h"

struct why_row {
	const char *name;
	enum bpfobj_step step;
	int err;
	struct bpfobj_facts facts;
	const char *what; /* must be in the sentence */
	const char *todo;
};

static const struct why_row why_rows[] = {
	{"not permitted to load", BPFOBJ_LOAD, -EPERM, {true, false}, "loading", "CAP_BPF"},
	{"not permitted, other errno", BPFOBJ_LOAD, -EACCES, {true, false}, "loading", "seccomp"},
	{"no types", BPFOBJ_LOAD, -ESRCH, {false, false}, "loading", "CONFIG_DEBUG_INFO_BTF"},
	{"locked down", BPFOBJ_LOAD, -EINVAL, {true, true}, "loading", "lockdown=integrity"},
	{"refused", BPFOBJ_LOAD, -EINVAL, {true, false}, "Invalid argument", "5.10"},
	{"no system call", BPFOBJ_LOAD, -ENOSYS, {true, false}, "loading", "CONFIG_BPF_SYSCALL"},
	{"no memory", BPFOBJ_LOAD, -ENOMEM, {true, false}, "loading", "memory limit"},
	{"no event allowed", BPFOBJ_EVENT, -EACCES, {true, true}, "clock event", "CAP_PERFMON"},
	{"a sysctl", BPFOBJ_EVENT, -EACCES, {true, false}, "Permission", "perf_event_paranoid"},
	{"no such event", BPFOBJ_EVENT, -ENOENT, {true, false}, "clock event", "PERF_EVENTS"},
	{"no descriptors", BPFOBJ_EVENT, -EMFILE, {true, false}, "clock event", "open files"},
	{"attaching", BPFOBJ_ATTACH, -EEXIST, {true, false}, "attaching", "perf_event_open(2)"},
};

static void test_why(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(why_rows); i++) {
		const struct why_row *row = &why_rows[i];
		struct bpfobj_why why;

		row_begin(row->name);
		bpfobj_explain(row->step, row->err, &row->facts, &why);
		assert_non_null(strstr(why.text, row->what));
		assert_non_null(strstr(why.text, row->todo));
		assert_null(strchr(why.text, '\n'));
		assert_true(strlen(why.text) < sizeof(why.text) - 1); /* not cut */
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_why),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
