// SPDX-License-Identifier: Apache-2.0
/* Slabs are made without waiting for the kernel's grace periods: here none ends before the test
 * lets it. */
#include "support/test.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/bpf.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lookup.skel.h"
#include "unwindtable/tablemaps.h"

/* More than wait at once. */
#define SLABS 12

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool held;	    /* grace periods do not end */
static unsigned int n_held; /* calls that wait */

/* In place of libbpf's: the map has the value, and the call returns later. */
int bpf_map_update_elem(int fd, const void *key, const void *value, __u64 flags)
{
	union bpf_attr attr = {.map_fd = (__u32)fd, .flags = flags};
	int r;

	attr.key = (__u64)(uintptr_t)key;
	attr.value = (__u64)(uintptr_t)value;
	r = (int)syscall(SYS_bpf, BPF_MAP_UPDATE_ELEM, &attr, sizeof(attr));
	pthread_mutex_lock(&lock);
	n_held++;
	pthread_cond_broadcast(&changed);
	while (held)
		pthread_cond_wait(&changed, &lock);
	n_held--;
	pthread_mutex_unlock(&lock);
	return r ? -errno : 0;
}

static void hold(bool is)
{
	pthread_mutex_lock(&lock);
	held = is;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

static unsigned int count_held(void)
{
	unsigned int n;

	pthread_mutex_lock(&lock);
	n = n_held;
	pthread_mutex_unlock(&lock);
	return n;
}

struct bench {
	struct lookup_bpf *skel;
	struct tablemaps *maps;
	struct page_pool_slabs slabs;
};

static struct bench bench;

static int setup(void **state)
{
	struct lookup_bpf *skel = lookup_bpf__open();
	struct tablemaps_fds fds;

	assert_non_null(skel);
	assert_int_equal(lookup_bpf__load(skel), 0);
	fds = (struct tablemaps_fds){
		.slabs = bpf_map__fd(skel->maps.table_slabs),
		.exes = bpf_map__fd(skel->maps.table_exes),
		.uses = bpf_map__fd(skel->maps.table_uses),
		.rules = bpf_map__fd(skel->maps.table_rules),
		.rule_runs = bpf_map__fd(skel->maps.table_rule_runs),
	};
	bench.skel = skel;
	assert_int_equal(tablemaps_new(&fds, &bench.maps), 0);
	bench.slabs = tablemaps_memory(bench.maps).slabs;
	*state = &bench;
	return 0;
}

static int teardown(void **state)
{
	struct bench *b = *state;

	tablemaps_free(b->maps);
	lookup_bpf__destroy(b->skel);
	return 0;
}

static void assert_made(struct bench *b, uint32_t number)
{
	uint32_t id = 0;
	struct table_page *page;

	assert_int_equal(b->slabs.make(b->slabs.ctx, number), 0);
	assert_int_equal(bpf_map_lookup_elem(bpf_map__fd(b->skel->maps.table_slabs), &number, &id),
			 0);
	assert_int_not_equal(id, 0);
	page = b->slabs.map(b->slabs.ctx, number, 0, 1);
	assert_non_null(page);
	b->slabs.unmap(b->slabs.ctx, page, 1);
}

/* No call has returned, and the slabs are there. */
static void test_held(void **state)
{
	struct bench *b = *state;

	hold(true);
	assert_made(b, 0);
	assert_made(b, 1);
	while (count_held() < 2)
		usleep(1000);
	hold(false);
}

/* Others follow when calls have returned. */
static void test_many(void **state)
{
	struct bench *b = *state;

	for (uint32_t i = 0; i < SLABS; i++)
		assert_made(b, i);
}

static void test_refused(void **state)
{
	struct bench *b = *state;

	assert_true(b->slabs.make(b->slabs.ctx, TABLE_SLABS) < 0);
	assert_made(b, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_held),
		TEST(test_many),
		TEST(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
