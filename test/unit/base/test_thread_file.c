// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/thread_file.h"

static void test_texts(void **state)
{
	char text[16], cut[4];

	(void)state;
	assert_int_equal(prctl(PR_SET_NAME, "a (b) R"), 0);
	thread_file_read(0, gettid(), "comm", text, sizeof(text));
	assert_string_equal(text, "a (b) R\n");
	thread_file_read(getpid(), gettid(), "comm", text, sizeof(text));
	assert_string_equal(text, "a (b) R\n");
	thread_file_read(0, gettid(), "comm", cut, sizeof(cut));
	assert_string_equal(cut, "a (");
	thread_file_read(0, gettid(), "none", text, sizeof(text));
	assert_string_equal(text, "");
	thread_file_read(0, 1 << 30, "comm", text, sizeof(text));
	assert_string_equal(text, "");
}

/* The names of both threads look like the end of a name with another state behind it. */
static void test_states(void **state)
{
	siginfo_t info;
	pid_t child;

	(void)state;
	assert_int_equal(prctl(PR_SET_NAME, "x) S"), 0);
	assert_true(thread_file_runnable(0, gettid()));
	assert_int_equal(prctl(PR_SET_NAME, "x) R"), 0);
	child = fork();
	if (!child) {
		raise(SIGSTOP);
		_exit(0);
	}
	assert_int_equal(waitid(P_PID, (id_t)child, &info, WSTOPPED | WNOWAIT), 0);
	assert_false(thread_file_runnable(child, child));
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_false(thread_file_runnable(child, child));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_texts),
		cmocka_unit_test(test_states),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
