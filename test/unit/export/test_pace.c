// SPDX-License-Identifier: Apache-2.0
/* The pace over simulated windows: a request of up to 256 profiles whenever the pace permits. */
#include "support/test.h"

#include "base/nsec.h"
#include "export/pace.h"

#define WINDOW_NS (60 * NSEC_PER_SEC)
#define STEP_NS	  (10 * NSEC_PER_MSEC)
#define BATCH	  256
#define WINDOWS	  6
#define ROOM	  (1u << 30)

/**
 * struct row
 * @n:         profiles of each window; they arrive within @arrive_s
 * @backlog:   profiles that wait at the beginning
 * @used:      memory of a profile, of ROOM
 * @max_age_s: longest time from the end of a window to the departure of its last profile
 * @max_burst: profiles of one second; 0: not examined
 */
struct row {
	const char *name;
	uint64_t n, arrive_s, backlog, used;
	uint64_t max_age_s, max_burst;
};

static const struct row rows[] = {
	{"small node", 200, 1, 0, 1, 1, 0},
	{"at the limit", PACE_PROFILES, 1, 0, 1, 1, 0},
	{"one more", PACE_PROFILES + 1, 1, 0, 1, 50, 2 * BATCH},
	{"10,000 series", 10000, 2, 0, 1, 50, 2 * BATCH},
	{"10,000 series that arrive slowly", 10000, 40, 0, 1, 90, 2 * BATCH},
	{"100,000 series", 100000, 2, 0, 1, 50, 12 * BATCH},
	{"one window more", 10000, 2, 10000, 1, 119, 4 * BATCH},
	{"a backlog of ten windows goes at once", 10000, 2, 100000, 1, 50, 0},
	{"memory is three quarters full", 10000, 2, 0, ROOM / 4 * 3 / 10000, 44, 4 * BATCH},
	{"memory is full", 10000, 2, 0, ROOM / 10000 + 1, 44, 0},
};

/**
 * struct simulation
 * @begun_ns: the clock does not begin at 0
 * @n_gone:   windows whose profiles have all left, and @age_ns: the longest time for it
 * @burst:    most profiles of a second, but those of the first window: its first profiles leave
 *            before there are many
 */
struct simulation {
	const struct row *row;
	struct pace pace;
	uint64_t begun_ns;
	uint64_t arrived, waiting, sent;
	uint64_t second, in_second, burst;
	uint64_t n_gone, age_ns;
};

/* Profiles of all windows until @t. */
static uint64_t due_at(const struct row *row, uint64_t t)
{
	const uint64_t in_window = t % WINDOW_NS + STEP_NS, all = row->arrive_s * NSEC_PER_SEC;

	return t / WINDOW_NS * row->n + (in_window < all ? row->n * in_window / all : row->n);
}

static void arrive(struct simulation *s, uint64_t t)
{
	const uint64_t n = due_at(s->row, t) - s->arrived;

	if (n)
		pace_arrived(&s->pace, n, s->begun_ns + t);
	s->arrived += n;
	s->waiting += n;
}

static bool may_leave(const struct simulation *s, uint64_t t)
{
	const struct pace_load load = {s->waiting, s->waiting * s->row->used, ROOM};

	return s->waiting && !pace_wait_ns(&s->pace, &load, s->begun_ns + t);
}

static void leave(struct simulation *s, uint64_t t)
{
	const uint64_t n = s->waiting < BATCH ? s->waiting : BATCH;

	pace_taken(&s->pace, n, s->begun_ns + t);
	s->waiting -= n;
	s->sent += n;
	if (t / NSEC_PER_SEC != s->second)
		s->in_second = 0;
	s->second = t / NSEC_PER_SEC;
	s->in_second += n;
	if (t >= WINDOW_NS && s->in_second > s->burst)
		s->burst = s->in_second;
	for (; s->sent >= s->row->backlog + (s->n_gone + 1) * s->row->n; s->n_gone++)
		if (t - s->n_gone * WINDOW_NS > s->age_ns)
			s->age_ns = t - s->n_gone * WINDOW_NS;
}

static void test_rows(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		const struct row *row = &rows[i];
		struct simulation s = {.row = row,
				       .pace.window_ns = WINDOW_NS,
				       .begun_ns = 1000 * NSEC_PER_SEC,
				       .waiting = row->backlog};

		row_begin(row->name);
		for (uint64_t t = 0; t < WINDOWS * WINDOW_NS; t += STEP_NS) {
			arrive(&s, t);
			while (may_leave(&s, t))
				leave(&s, t);
		}
		print_message("%s: %.1f s, at most %llu profiles a second\n", row->name,
			      (double)s.age_ns / 1e9, (unsigned long long)s.burst);
		assert_true(s.n_gone >= WINDOWS - 1);
		assert_true(s.age_ns <= row->max_age_s * NSEC_PER_SEC);
		assert_true(!row->max_burst || s.burst <= row->max_burst);
	}
}

/* Without a window there is no pace, and no division by its length. */
static void test_no_window(void **state)
{
	const struct pace_load load = {100000, 0, ROOM};
	struct pace pace = {.window_ns = 0};

	(void)state;
	pace_arrived(&pace, 100000, NSEC_PER_SEC);
	pace_taken(&pace, BATCH, NSEC_PER_SEC);
	assert_int_equal(pace_wait_ns(&pace, &load, NSEC_PER_SEC), 0);
}

/* Two windows without profiles: the number of the last ones says nothing. */
static void test_forgets(void **state)
{
	const struct pace_load load = {2000, 0, ROOM};
	struct pace pace = {.window_ns = WINDOW_NS};

	(void)state;
	pace_arrived(&pace, 2000, WINDOW_NS);
	pace_taken(&pace, BATCH, WINDOW_NS);
	assert_true(pace_wait_ns(&pace, &load, WINDOW_NS) > 0);
	pace_arrived(&pace, 10, 2 * WINDOW_NS);
	pace_taken(&pace, BATCH, 2 * WINDOW_NS);
	assert_true(pace_wait_ns(&pace, &load, 2 * WINDOW_NS) > 0);
	pace_arrived(&pace, 10, 5 * WINDOW_NS);
	pace_taken(&pace, BATCH, 5 * WINDOW_NS);
	assert_int_equal(pace_wait_ns(&pace, &load, 5 * WINDOW_NS), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_no_window),
		cmocka_unit_test(test_forgets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
