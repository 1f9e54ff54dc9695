// SPDX-License-Identifier: Apache-2.0
#include "support/threads.h"
#include "support/test.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/nsec.h"
#include "support/until.h"

/* Threads that never end: ThreadSanitizer has one of its own. */
#ifdef __SANITIZE_THREAD__
#define N_LASTING 2
#else
#define N_LASTING 1
#endif

static size_t n_threads(void)
{
	DIR *dir = opendir("/proc/self/task");
	size_t n = 0;

	assert_non_null(dir);
	for (const struct dirent *e; (e = readdir(dir));)
		n += e->d_name[0] != '.';
	closedir(dir);
	return n;
}

void threads_pin(void)
{
	cpu_set_t all, one;
	size_t cpu = 0;

	assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
	while (!CPU_ISSET(cpu, &all))
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
}

void threads_wait(void)
{
	const uint64_t until_ns = nsec_monotonic() + UNTIL_SECONDS * NSEC_PER_SEC;

	while (n_threads() > N_LASTING) {
		/* a failed test leaves its workers: its reason must be seen */
		if (nsec_monotonic() > until_ns)
			fail_msg("threads remain after %d s", UNTIL_SECONDS);
		usleep(1000);
	}
}

/* A thread that ends meanwhile has no name. */
static bool is_named(const char *task, const char *name)
{
	char path[300], text[32] = "";
	_cleanup_(close_fdp) int fd = -1;

	snprintf(path, sizeof(path), "/proc/self/task/%s/comm", task);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0)
		return false;
	text[strcspn(text, "\n")] = '\0';
	return strcmp(text, name) == 0;
}

size_t threads_named(const char *name)
{
	DIR *dir = opendir("/proc/self/task");
	size_t n = 0;

	assert_non_null(dir);
	for (const struct dirent *e; (e = readdir(dir));)
		n += e->d_name[0] != '.' && is_named(e->d_name, name);
	closedir(dir);
	return n;
}

pid_t threads_find(const char *name)
{
	DIR *dir = opendir("/proc/self/task");
	pid_t tid = 0;

	assert_non_null(dir);
	for (const struct dirent *e; !tid && (e = readdir(dir));)
		if (e->d_name[0] != '.' && is_named(e->d_name, name))
			tid = (pid_t)strtol(e->d_name, NULL, 10);
	closedir(dir);
	return tid;
}

pid_t threads_child(void)
{
	char path[64], text[32] = "";
	_cleanup_(close_fdp) int fd = -1;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)gettid());
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (read(fd, text, sizeof(text) - 1) <= 0)
		return 0;
	return (pid_t)strtol(text, NULL, 10);
}
