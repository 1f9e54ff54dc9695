// SPDX-License-Identifier: Apache-2.0
/* The ring of stack dumps while further dumps arrive; the kernel's ring is a number here. */
#include "support/test.h"

#include <bpf/libbpf.h>
#include <stdlib.h>

/* Records in the ring, and those written so far. */
static size_t n_ring;
static uint64_t n_written;

static struct ring_buffer *ring_new(int fd, ring_buffer_sample_fn fn, void *ctx,
				    const struct ring_buffer_opts *opts)
{
	(void)fd;
	(void)fn;
	(void)opts;
	return ctx;
}

static void ring_free(struct ring_buffer *ring)
{
	(void)ring;
}

static int ring_consume(struct ring_buffer *ring);

#define ring_buffer__new     ring_new
#define ring_buffer__free    ring_free
#define ring_buffer__consume ring_consume
#include "profile/stack_dump.c" // NOLINT(bugprone-suspicious-include)

/* Bytes of a record: a list of 256 is full. */
#define RECORD_BYTES (STACK_DUMPS_FETCHED_MAX / 256)

static int ring_consume(struct ring_buffer *ring)
{
	static uint64_t record[RECORD_BYTES / 8];
	int n = 0;

	for (; n_ring; n++) {
		int r;

		record[0] = n_written++;
		n_ring--;
		r = on_record(ring, record, sizeof(record));
		if (r < 0)
			return r;
	}
	return n;
}

struct taker {
	struct stack_dumps *dumps;
	size_t n_more; /* records that arrive for each that is taken */
	uint64_t n;
};

/* The thread of drains fetches meanwhile. */
static void take(void *ctx, struct stack_dump_copy *copy)
{
	struct taker *t = ctx;

	assert_int_equal(copy->record[0], t->n++);
	free(copy);
	assert_true(t->n < 2000);
	n_ring += t->n_more;
	assert_int_equal(stack_dumps_fetch(t->dumps), 0);
}

/* Records in the list, in the ring behind them, and arriving for each that is taken; how many are
 * taken. */
struct row {
	const char *name;
	size_t n_list, n_ring, n_more;
	uint64_t want;
};

static const struct row rows[] = {
	{"nothing", 0, 0, 0, 0},
	{"in the ring", 0, 3, 0, 3},
	{"in both", 2, 3, 0, 5},
	{"more arrive", 2, 3, 1, 5},
	{"the list is full", 256, 30, 0, 286},
	/* the second round begins with the rest of the ring, and what came in front of it */
	{"the list is full, more arrive", 256, 30, 1, 256 + 256},
};

static void test_drain(void **state)
{
	const struct bpfobj_stack_dumps maps = {.ring = -1};

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		struct taker t = {.n_more = rows[i].n_more};

		row_begin(rows[i].name);
		n_written = 0;
		assert_int_equal(stack_dumps_new(&maps, &t.dumps), 0);
		n_ring = rows[i].n_list;
		assert_int_equal(stack_dumps_fetch(t.dumps), 0);
		n_ring += rows[i].n_ring;
		assert_int_equal(stack_dumps_drain(t.dumps, take, &t), 0);
		assert_int_equal(t.n, rows[i].want);
		stack_dumps_free(t.dumps);
		n_ring = 0;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_drain)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
