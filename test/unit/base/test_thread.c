// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/thread.h"

static void *read_mask(void *ret)
{
	pthread_sigmask(SIG_SETMASK, NULL, ret);
	return NULL;
}

static void test_start(void **state)
{
	sigset_t mask, ours;
	pthread_t thread;

	(void)state;
	assert_int_equal(thread_start("name", read_mask, &mask, &thread), 0);
	pthread_join(thread, NULL);
	assert_int_equal(sigismember(&mask, SIGTERM), 1);
	assert_int_equal(sigismember(&mask, SIGPIPE), 1);
	pthread_sigmask(SIG_SETMASK, NULL, &ours);
	assert_int_equal(sigismember(&ours, SIGTERM), 0);
}

static void test_texts(void **state)
{
	char text[16], cut[4];

	(void)state;
	assert_int_equal(prctl(PR_SET_NAME, "a (b) R"), 0);
	thread_read_file(0, gettid(), "comm", text, sizeof(text));
	assert_string_equal(text, "a (b) R\n");
	thread_read_file(getpid(), gettid(), "comm", text, sizeof(text));
	assert_string_equal(text, "a (b) R\n");
	thread_read_file(0, gettid(), "comm", cut, sizeof(cut));
	assert_string_equal(cut, "a (");
	thread_read_file(0, gettid(), "none", text, sizeof(text));
	assert_string_equal(text, "");
	thread_read_file(0, 1 << 30, "comm", text, sizeof(text));
	assert_string_equal(text, "");
}

/* The names of both threads look like the end of a name with another state behind it. */
static void test_states(void **state)
{
	siginfo_t info;
	pid_t child;

	(void)state;
	assert_int_equal(prctl(PR_SET_NAME, "x) S"), 0);
	assert_true(thread_is_runnable(0, gettid()));
	assert_int_equal(prctl(PR_SET_NAME, "x) R"), 0);
	child = fork();
	if (!child) {
		raise(SIGSTOP);
		_exit(0);
	}
	assert_int_equal(waitid(P_PID, (id_t)child, &info, WSTOPPED | WNOWAIT), 0);
	assert_false(thread_is_runnable(child, child));
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_false(thread_is_runnable(child, child));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_start),
		cmocka_unit_test(test_texts),
		cmocka_unit_test(test_states),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
