// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <errno.h>
#include <string.h>

#include "profile/bpfobj_why.h"

struct why_row {
	const char *name;
	enum bpfobj_step step;
	int err;
	struct bpfobj_facts facts;
	const char *what; /* must be in the sentence */
	const char *todo;
};

#define VERSION(a, b, c) .version = {a, b, c, false}

static const struct why_row why_rows[] = {
	{"no capabilities",
	 BPFOBJ_LOAD,
	 -EPERM,
	 {.has_btf = true, .no_bpf = true, .no_perfmon = true},
	 "loading",
	 "grant CAP_BPF and CAP_PERFMON"},
	{"one of them",
	 BPFOBJ_LOAD,
	 -EPERM,
	 {.has_btf = true, .no_bpf = true},
	 "loading",
	 "CAP_BPF is missing"},
	{"the other",
	 BPFOBJ_LOAD,
	 -EACCES,
	 {.has_btf = true, .no_perfmon = true},
	 "loading",
	 "CAP_PERFMON is missing"},
	{"both are there", BPFOBJ_LOAD, -EPERM, {.has_btf = true}, "loading", "seccomp"},
	{"locked memory",
	 BPFOBJ_LOAD,
	 -EPERM,
	 {.has_btf = true, VERSION(5, 10, 223)},
	 "loading",
	 "locked memory must be unlimited"},
	{"not any more",
	 BPFOBJ_LOAD,
	 -EPERM,
	 {.has_btf = true, VERSION(5, 11, 0)},
	 "loading",
	 "security module"},
	{"too old",
	 BPFOBJ_LOAD,
	 -EINVAL,
	 {VERSION(5, 4, 300)},
	 "; Linux 5.4.300 is older than 5.10: ",
	 "use a newer one"},
	{"just new enough",
	 BPFOBJ_LOAD,
	 -EINVAL,
	 {VERSION(5, 10, 0)},
	 "; Linux 5.10.0 has no type information",
	 "CONFIG_DEBUG_INFO_BTF"},
	{"refused, and said why",
	 BPFOBJ_LOAD,
	 -E2BIG,
	 {.has_btf = true,
	  VERSION(6, 18, 44),
	  .complaint = "oncpu_walk: BPF program is too large."},
	 "please report",
	 "the verifier says: oncpu_walk: BPF program is too large."},
	{"refused by the verifier, not by a right",
	 BPFOBJ_LOAD,
	 -EACCES,
	 {.has_btf = true,
	  VERSION(6, 18, 44),
	  .complaint = "oncpu_walk: R4 max value is outside of the allowed memory range"},
	 "the kernel refuses the programs: please report",
	 "the verifier says: oncpu_walk: R4 max value"},
	{"no types",
	 BPFOBJ_LOAD,
	 -ESRCH,
	 {.version = {0}},
	 "; the kernel has",
	 "CONFIG_DEBUG_INFO_BTF"},
	{"locked down",
	 BPFOBJ_LOAD,
	 -EINVAL,
	 {.has_btf = true, .confidentiality = true},
	 "loading",
	 "lockdown=integrity"},
	{"refused", BPFOBJ_LOAD, -EINVAL, {.has_btf = true}, "Invalid argument", "uname -a"},
	{"no system call",
	 BPFOBJ_LOAD,
	 -ENOSYS,
	 {.has_btf = true},
	 "loading",
	 "CONFIG_BPF_SYSCALL"},
	{"no memory", BPFOBJ_LOAD, -ENOMEM, {.has_btf = true}, "loading", "memory limit"},
	{"no event allowed",
	 BPFOBJ_EVENT,
	 -EACCES,
	 {.has_btf = true, .confidentiality = true},
	 "clock event",
	 "CAP_PERFMON"},
	{"a sysctl", BPFOBJ_EVENT, -EACCES, {.has_btf = true}, "Permission", "perf_event_paranoid"},
	{"no such event", BPFOBJ_EVENT, -ENOENT, {.has_btf = true}, "clock event", "PERF_EVENTS"},
	{"no descriptors", BPFOBJ_EVENT, -EMFILE, {.has_btf = true}, "clock event", "open files"},
	{"attaching", BPFOBJ_ATTACH, -EEXIST, {.has_btf = true}, "attaching", "perf_event_open(2)"},
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

static void test_unsafe_kernel(void **state)
{
	const struct bpfobj_facts good = {.has_btf = true, VERSION(6, 1, 36)};
	const struct bpfobj_facts bad = {.has_btf = true, VERSION(6, 1, 35)};
	const struct bpfobj_facts unknown = {.has_btf = true};
	struct bpfobj_why why = {""};

	(void)state;
	assert_int_equal(bpfobj_permit(&good, false, &why), 0);
	assert_int_equal(bpfobj_permit(&unknown, false, &why), 0);
	assert_int_equal(bpfobj_permit(&bad, true, &why), 0);
	assert_string_equal(why.text, "");
	assert_int_equal(bpfobj_permit(&bad, false, &why), -EPERM);
	assert_non_null(strstr(why.text, "Linux 6.1.35"));
	assert_non_null(strstr(why.text, "--allow-unsafe-kernel"));
	assert_true(strlen(why.text) < sizeof(why.text) - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_unsafe_kernel),
		cmocka_unit_test(test_why),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
