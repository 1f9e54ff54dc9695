// SPDX-License-Identifier: Apache-2.0
/* Samples are fetched in time even if they are taken late: real maps, without the programs that
 * fill the maps. */
#include "support/test.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/nsec.h"
#include "profile/drain.h"
#include "profile/stacks.h"
#include "shared/sample.h"

/* As for two CPUs at 97 Hz and drains each second. */
#define A_SECOND 194
#define SMALL	 392
#define LARGE	 196
#define DEEP	 32
#define LOST	 8
/* Room for more than the ceiling of fetched bytes holds in two drains. */
#define MANY	 16384

struct bench {
	struct bpfobj_stacks maps;
	volatile uint32_t generation;
	struct stacks *stacks;
	uint32_t n_injected;
	uint64_t n_taken;
	uint64_t n_lost;
	uint64_t sum; /* of the tgids of the taken samples */
	uint64_t since_ns;
};

static int new_map(enum bpf_map_type type, uint32_t key_size, uint32_t value_size, uint32_t n)
{
	int fd = bpf_map_create(type, "test_stacks", key_size, value_size, n, NULL);

	assert_true(fd >= 0);
	return fd;
}

static int setup(void **state)
{
	struct bench *b = calloc(1, sizeof(*b));

	assert_non_null(b);
	*state = b;
	return 0;
}

static void start(struct bench *b, uint32_t small, uint64_t interval_ns)
{
	const struct bpfobj_sizes sizes = {.small = small, .large = LARGE, .deep = DEEP};
	const uint32_t key = sizeof(struct sample_key);

	b->maps.generation = &b->generation;
	b->maps.stats = new_map(BPF_MAP_TYPE_PERCPU_ARRAY, 4, sizeof(struct sample_stats), 1);
	for (int i = 0; i < 2; i++) {
		b->maps.small[i] =
			new_map(BPF_MAP_TYPE_HASH, key, sizeof(struct sample_small), small);
		b->maps.large[i] =
			new_map(BPF_MAP_TYPE_HASH, key, sizeof(struct sample_large), LARGE);
		b->maps.deep[i] = new_map(BPF_MAP_TYPE_HASH, key, sizeof(struct sample_deep), DEEP);
		b->maps.lost[i] = new_map(BPF_MAP_TYPE_HASH, key, sizeof(struct sample_head), LOST);
	}
	assert_int_equal(stacks_new("test", &b->maps, &sizes, interval_ns, &b->stacks), 0);
}

static int teardown(void **state)
{
	struct bench *b = *state;

	stacks_free(b->stacks);
	if (b->stacks) {
		close(b->maps.stats);
		for (int i = 0; i < 2; i++) {
			close(b->maps.small[i]);
			close(b->maps.large[i]);
			close(b->maps.deep[i]);
			close(b->maps.lost[i]);
		}
	}
	free(b);
	return 0;
}

/* Store @n different stacks like the program. Fails the test without room. */
static void inject(struct bench *b, uint32_t n)
{
	struct sample_small value = {.head = {.count = 1, .total = SAMPLE_ONE, .n_user = 1}};
	struct sample_key key;

	value.frames[0] = 0x1000;
	for (uint32_t i = 0; i < n; i++) {
		memset(&key, 0, sizeof(key));
		key.tgid = ++b->n_injected;
		assert_int_equal(bpf_map_update_elem(b->maps.small[b->generation & 1], &key, &value,
						     BPF_NOEXIST),
				 0);
	}
}

/* Store samples of a process without stacks. */
static void inject_lost(struct bench *b, uint64_t count)
{
	const struct sample_head value = {.count = count, .total = count * SAMPLE_ONE};
	const struct sample_key key = {
		.tgid = 77, .end = SAMPLE_END_NO_USER, .flags = SAMPLE_FLAG_LOST};

	assert_int_equal(
		bpf_map_update_elem(b->maps.lost[b->generation & 1], &key, &value, BPF_NOEXIST), 0);
}

static void take(void *ctx, const struct sample *sample)
{
	struct bench *b = ctx;

	if (sample_is_lost(sample)) {
		assert_int_equal(sample->pid.pid, 77);
		assert_int_equal(sample->n_user + sample->n_kernel, 0);
		assert_int_equal(sample->total, sample->count * SAMPLE_ONE);
		b->n_lost += sample->count;
		return;
	}
	b->n_taken += sample->count;
	b->sum += sample->pid.pid;
	assert_true(stacks_since_ns(b->stacks) >= b->since_ns);
	b->since_ns = stacks_since_ns(b->stacks);
}

static void take_all(struct bench *b)
{
	while (stacks_next(b->stacks))
		stacks_deliver(b->stacks, take, b);
}

/* Each stack is taken exactly once. */
static void assert_all_taken(const struct bench *b)
{
	assert_int_equal(b->n_taken, b->n_injected);
	assert_int_equal(b->sum, (uint64_t)b->n_injected * (b->n_injected + 1) / 2);
}

/* Both halves of a drain. False: there was no room for another. */
static bool fetch(struct bench *b)
{
	const uint32_t before = b->generation;
	int r = stacks_fetch(b->stacks);

	assert_int_equal(r, 0);
	if (b->generation == before)
		return false;
	while (!(r = stacks_fetch(b->stacks)))
		usleep((useconds_t)(stacks_interval_ns(b->stacks, 1) / 1000));
	assert_int_equal(r, STACKS_FETCHED);
	return true;
}

/* The taking thread is 10 s late: five times the capacity of the maps. */
static void test_late(void **state)
{
	struct bench *b = *state;

	start(b, SMALL, NSEC_PER_SEC);
	for (int second = 0; second < 10; second++) {
		inject(b, A_SECOND);
		assert_true(fetch(b));
	}
	assert_int_equal(b->n_taken, 0);
	take_all(b);
	assert_all_taken(b);
	assert_false(stacks_next(b->stacks));
}

/* Samples that found no room come with the others, by process. */
static void test_lost(void **state)
{
	struct bench *b = *state;

	start(b, SMALL, NSEC_PER_SEC);
	inject(b, 10);
	inject_lost(b, 5);
	assert_true(fetch(b));
	inject_lost(b, 6);
	take_all(b);
	assert_int_equal(b->n_lost, 5);
	assert_int_equal(stacks_finish(b->stacks, take, b), 0);
	assert_int_equal(b->n_lost, 5 + 6);
	assert_all_taken(b);
}

/* The last samples, of both generations, follow the fetched samples. */
static void test_rest(void **state)
{
	struct bench *b = *state;

	start(b, SMALL, NSEC_PER_SEC);
	inject(b, 10);
	assert_true(fetch(b));
	inject(b, 10);
	assert_int_equal(stacks_fetch(b->stacks), 0); /* the first half of the next */
	inject(b, 10);
	assert_int_equal(stacks_finish(b->stacks, take, b), 0);
	assert_all_taken(b);
}

/* Memory has a ceiling: from there on the samples stay in the kernel, and none is lost while there
 * is room. */
static void test_ceiling(void **state)
{
	struct bench *b = *state;
	unsigned int n = 0;

	start(b, MANY, NSEC_PER_SEC);
	do
		inject(b, MANY);
	while (fetch(b) && ++n < 100);
	assert_in_range(n, 1, 2);
	assert_false(fetch(b));
	take_all(b);
	assert_int_equal(b->n_taken, b->n_injected - MANY);
	assert_true(fetch(b));
	take_all(b);
	assert_all_taken(b);
}

/* The interval depends on the contents of the maps, not on the taken samples. */
static void test_interval(void **state)
{
	struct bench *b = *state;
	uint64_t before_ns, after_ns;

	start(b, SMALL, NSEC_PER_SEC);
	before_ns = stacks_interval_ns(b->stacks, 1);
	inject(b, SMALL);
	assert_true(fetch(b));
	after_ns = stacks_interval_ns(b->stacks, 1);
	assert_true(after_ns < before_ns);
}

/* Without a sample there is no need for a drain, and the next samples are of a later span. */
static void test_idle(void **state)
{
	struct bench *b = *state;
	uint64_t begun_ns;

	start(b, SMALL, NSEC_PER_SEC);
	assert_true(stacks_idle(b->stacks));
	inject(b, 1);
	assert_false(stacks_idle(b->stacks));
	assert_int_equal(stacks_fetch(b->stacks), 0);
	assert_false(stacks_idle(b->stacks)); /* in the middle of a drain */
	while (!stacks_fetch(b->stacks))
		usleep((useconds_t)(stacks_interval_ns(b->stacks, 1) / 1000));
	usleep(20000); /* more than the span's margin of 10 ms */
	begun_ns = nsec_boot();
	usleep(20000);
	assert_true(stacks_idle(b->stacks));
	inject(b, 1);
	assert_true(fetch(b));
	assert_true(stacks_next(b->stacks));
	assert_true(stacks_since_ns(b->stacks) < begun_ns);
	stacks_deliver(b->stacks, take, b);
	assert_true(stacks_next(b->stacks));
	assert_true(stacks_since_ns(b->stacks) > begun_ns);
	stacks_deliver(b->stacks, take, b);
	assert_all_taken(b);
}

/* A drain without samples ends a span and begins the next one, and needs no other generation. */
static void test_none(void **state)
{
	struct bench *b = *state;
	const uint32_t generation = b->generation;
	uint64_t until_ns;

	start(b, SMALL, NSEC_PER_SEC);
	assert_true(stacks_idle(b->stacks));
	assert_int_equal(stacks_fetch_none(b->stacks), STACKS_FETCHED);
	assert_int_equal(b->generation, generation);
	inject(b, 1);
	assert_true(fetch(b));
	assert_true(stacks_next(b->stacks));
	until_ns = stacks_until_ns(b->stacks);
	stacks_deliver(b->stacks, take, b);
	assert_int_equal(b->n_taken, 0);
	assert_true(stacks_next(b->stacks));
	assert_true(stacks_since_ns(b->stacks) <= until_ns);
	stacks_deliver(b->stacks, take, b);
	assert_all_taken(b);
}

/* A slice without time is one sample; the batch stays taken until its last one. */
static void test_slices(void **state)
{
	struct bench *b = *state;
	uint64_t since_ns;

	start(b, SMALL, NSEC_PER_SEC);
	inject(b, 3);
	usleep(20000); /* more than the span's margin of 10 ms */
	assert_true(fetch(b));
	inject(b, 1);
	assert_true(fetch(b));
	assert_true(stacks_next(b->stacks));
	since_ns = stacks_since_ns(b->stacks);
	for (uint64_t n = 1; n < 3; n++) {
		assert_true(stacks_deliver_until(b->stacks, 0, take, b));
		assert_int_equal(b->n_taken, n);
		assert_true(stacks_next(b->stacks));
		assert_true(stacks_since_ns(b->stacks) == since_ns);
		assert_true(stacks_next_since_ns(b->stacks) == since_ns);
	}
	assert_false(stacks_deliver_until(b->stacks, 0, take, b));
	assert_int_equal(b->n_taken, 3);
	assert_true(stacks_next_since_ns(b->stacks) > since_ns);
	assert_true(stacks_next(b->stacks));
	assert_true(stacks_since_ns(b->stacks) > since_ns);
	assert_false(stacks_deliver_until(b->stacks, UINT64_MAX, take, b));
	assert_false(stacks_next(b->stacks));
	assert_all_taken(b);
}

/* Few samples are expected after a drain with few, in the whole interval that was asked for. */
static void test_sparse(void **state)
{
	struct bench *b = *state;

	start(b, SMALL, NSEC_PER_SEC);
	assert_false(stacks_sparse(b->stacks)); /* no drain yet */
	inject(b, SMALL / 4);
	assert_true(fetch(b));
	assert_false(stacks_sparse(b->stacks));
	inject(b, SMALL / 4 - 1);
	assert_true(fetch(b));
	assert_true(stacks_sparse(b->stacks));
	assert_int_equal(stacks_fetch(b->stacks), 0); /* between the halves of a drain */
	assert_false(stacks_sparse(b->stacks));
	while (!stacks_fetch(b->stacks))
		usleep(1000);
	inject(b, SMALL);
	assert_true(fetch(b)); /* a shorter interval */
	inject(b, 1);
	assert_true(fetch(b));
	assert_true(stacks_sparse(b->stacks));
	take_all(b);
	assert_all_taken(b);
}

/* The owner hears of idle time, too. */
static void test_idle_span(void **state)
{
	struct bench *b = *state;
	struct drain_opts opts = {.n = 1, .idle_ns = 1};
	struct pollfd ready = {.events = POLLIN};
	struct drain *drain = NULL;

	start(b, SMALL, STACKS_INTERVAL_MIN_NS);
	opts.stacks[0] = b->stacks;
	assert_int_equal(drain_new(&opts, &drain), 0);
	ready.fd = drain_fd(drain);
	assert_int_equal(poll(&ready, 1, -1), 1);
	assert_true(stacks_next(b->stacks));
	stacks_deliver(b->stacks, take, b);
	assert_int_equal(b->n_taken, 0);
	drain_free(drain);
}

/* However long the idle time is: a sample is fetched, and a caller that waits gets its drain. */
static void test_idle_thread(void **state)
{
	struct bench *b = *state;
	struct drain_opts opts = {.n = 1, .idle_ns = 3600 * NSEC_PER_SEC};
	struct pollfd ready = {.events = POLLIN};
	struct drain *drain = NULL;
	uint64_t n;

	start(b, SMALL, STACKS_INTERVAL_MIN_NS);
	opts.stacks[0] = b->stacks;
	inject(b, 1);
	assert_int_equal(drain_new(&opts, &drain), 0);
	ready.fd = drain_fd(drain);
	assert_int_equal(poll(&ready, 1, -1), 1);
	take_all(b);
	assert_all_taken(b);
	assert_int_equal(read(ready.fd, &n, sizeof(n)), sizeof(n));
	drain_set_busy(drain, true);
	assert_int_equal(poll(&ready, 1, -1), 1);
	drain_free(drain);
}

/* However long the interval is, and though the thread sleeps already: a process has just begun. */
static void test_soon(void **state)
{
	struct bench *b = *state;
	struct drain_opts opts = {.n = 1};
	struct pollfd ready = {.events = POLLIN};
	struct drain *drain = NULL;

	start(b, SMALL, 3600 * NSEC_PER_SEC);
	opts.stacks[0] = b->stacks;
	inject(b, 1);
	assert_int_equal(drain_new(&opts, &drain), 0);
	usleep(10000);
	drain_set_soon(drain, nsec_monotonic());
	ready.fd = drain_fd(drain);
	assert_int_equal(poll(&ready, 1, -1), 1);
	take_all(b);
	assert_all_taken(b);
	drain_free(drain);
}

/* The thread empties the maps while nobody takes. */
static void test_thread(void **state)
{
	struct bench *b = *state;
	struct drain_opts opts = {.n = 1};
	struct drain *drain = NULL;
	struct sample_key first = {.tgid = 1};
	struct sample_small value;

	start(b, SMALL, STACKS_INTERVAL_MIN_NS);
	inject(b,
	       SMALL); /* before the thread begins: only the thread changes the generation then */
	opts.stacks[0] = b->stacks;
	assert_int_equal(drain_new(&opts, &drain), 0);
	while (!bpf_map_lookup_elem(b->maps.small[0], &first, &value))
		usleep(1000);
	do {
		struct pollfd ready = {.fd = drain_fd(drain), .events = POLLIN};

		assert_int_equal(poll(&ready, 1, -1), 1);
		take_all(b);
	} while (b->n_taken < b->n_injected);
	assert_all_taken(b);
	assert_int_equal(drain_error(drain), 0);
	drain_free(drain);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_late, setup, teardown),
		cmocka_unit_test_setup_teardown(test_lost, setup, teardown),
		cmocka_unit_test_setup_teardown(test_rest, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ceiling, setup, teardown),
		cmocka_unit_test_setup_teardown(test_interval, setup, teardown),
		cmocka_unit_test_setup_teardown(test_sparse, setup, teardown),
		cmocka_unit_test_setup_teardown(test_idle, setup, teardown),
		cmocka_unit_test_setup_teardown(test_none, setup, teardown),
		cmocka_unit_test_setup_teardown(test_slices, setup, teardown),
		cmocka_unit_test_setup_teardown(test_idle_span, setup, teardown),
		cmocka_unit_test_setup_teardown(test_idle_thread, setup, teardown),
		cmocka_unit_test_setup_teardown(test_soon, setup, teardown),
		cmocka_unit_test_setup_teardown(test_thread, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
