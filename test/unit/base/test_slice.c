// SPDX-License-Identifier: Apache-2.0
/* The scheduler's slice of a thread: short where the kernel has slices of threads, and everything
 * else as before. */
#include "support/test.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/slice.h"

/* The kernel's struct sched_attr. */
struct attr {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime_ns, deadline_ns, period_ns;
};

static struct attr attr_of_thread(void)
{
	struct attr attr;

	assert_true(syscall(SYS_sched_getattr, 0, &attr, sizeof(attr), 0) == 0);
	return attr;
}

/* Linux 6.12 and newer tell the thread's slice. */
static bool kernel_has_slices(void)
{
	struct utsname name;
	char *minor;
	long major;

	assert_int_equal(uname(&name), 0);
	major = strtol(name.release, &minor, 10);
	return major > 6 || (major == 6 && strtol(minor + 1, NULL, 10) >= 12);
}

static void *thread(void *arg)
{
	struct attr before, after;

	(void)arg;
	assert_int_equal(setpriority(PRIO_PROCESS, (id_t)gettid(), 3), 0);
	before = attr_of_thread();
	slice_ask_short();
	after = attr_of_thread();
	assert_int_equal(after.policy, before.policy);
	assert_int_equal(after.nice, 3);
	assert_int_equal(after.runtime_ns, kernel_has_slices() ? 100000 : before.runtime_ns);
	return NULL;
}

/* On a thread of its own: the test's other threads stay as they are. */
static void test_short(void **state)
{
	const uint64_t own_ns = attr_of_thread().runtime_ns;
	pthread_t id;

	(void)state;
	assert_int_equal(pthread_create(&id, NULL, thread, NULL), 0);
	assert_int_equal(pthread_join(id, NULL), 0);
	assert_int_equal(attr_of_thread().runtime_ns, own_ns);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_short),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
