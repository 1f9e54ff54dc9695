// SPDX-License-Identifier: Apache-2.0
/* The scheduler's slice of a thread: short where the kernel has slices of threads, and everything
 * else as before. */
#include "support/test.h"

#include <linux/capability.h>
#include <pthread.h>
#include <sched.h>
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

static void drop_rights(void)
{
	struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct none[2] = {{0}};
	const struct rlimit no_priority = {0, 0};

	assert_int_equal(setrlimit(RLIMIT_RTPRIO, &no_priority), 0);
	assert_int_equal(syscall(SYS_capset, &header, none), 0); /* this thread's */
}

/* A kernel with RT_GROUP_SCHED may refuse it to root. */
static void *try_real_time(void *permitted)
{
	const struct sched_param lowest = {.sched_priority = 1};

	*(bool *)permitted = sched_setscheduler(0, SCHED_RR, &lowest) == 0;
	return NULL;
}

static void *first_thread(void *permitted)
{
	struct attr attr;

	if (!*(bool *)permitted)
		drop_rights();
	slice_ask_first();
	attr = attr_of_thread();
	assert_int_equal(attr.policy, *(bool *)permitted ? SCHED_RR : SCHED_OTHER);
	if (*(bool *)permitted)
		assert_int_equal(attr.priority, 1);
	else if (kernel_has_slices())
		assert_int_equal(attr.runtime_ns, 100000);
	return NULL;
}

static void run_thread(void *(*run)(void *arg), bool *permitted)
{
	pthread_t id;

	assert_int_equal(pthread_create(&id, NULL, run, permitted), 0);
	assert_int_equal(pthread_join(id, NULL), 0);
}

/* With the right to it and without. */
static void test_first(void **state)
{
	bool permitted;

	(void)state;
	run_thread(try_real_time, &permitted);
	run_thread(first_thread, &permitted);
	permitted = false;
	run_thread(first_thread, &permitted);
	assert_int_equal(attr_of_thread().policy, SCHED_OTHER);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_short),
		cmocka_unit_test(test_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
