// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/close_files.h"
#include "base/nsec.h"

/* Up to a high number, with gaps. File systems without an answer are in e2e/test_stalled.sh. */
static void test_all_closed(void **state)
{
	const int fds[] = {100, 101, 513};
	pid_t pid = fork();
	int status;

	(void)state;
	assert_true(pid >= 0);
	if (pid == 0) {
		for (size_t i = 0; i < array_size(fds); i++)
			if (dup2(i ? STDIN_FILENO : open("/proc/self/maps", O_RDONLY), fds[i]) < 0)
				_exit(1);
		close_files(NSEC_PER_SEC);
		for (int fd = 0; fd < 1000; fd++)
			if (fcntl(fd, F_GETFD) >= 0)
				_exit(2);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_closed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
