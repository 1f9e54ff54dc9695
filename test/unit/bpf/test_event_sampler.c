// SPDX-License-Identifier: Apache-2.0
/*
 * The choice among events, simulated with a clock and random numbers of the test: chosen events
 * represent all events, in any order of arrival, within the budget.
 */
#include "support/test.h"

#include <math.h>

#include "base/nsec.h"
#include "lib/event_sampler.bpf.h"
#include "profile/offcpu.h"

static uint64_t now_ns, seed;

/* A generator with a known sequence: the upper half of a 64-bit generator (Knuth's MMIX constants).
 */
EVENT_SAMPLER_INLINE __u32 event_sampler_random(void)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (__u32)(seed >> 32);
}

EVENT_SAMPLER_INLINE __u64 event_sampler_now_ns(void)
{
	return now_ns;
}

/* Events of two programs, in turns. */
struct row {
	const char *name;
	double share;
	uint64_t per_second; /* events */
	uint64_t budget;     /* stacks a second, 0: any number */
	uint64_t busy_ms;    /* duration of the events, */
	uint64_t quiet_ms;   /* and then not for so long */
};

static const struct row rows[] = {
	{"all", 1, 10000, 0, 1000, 0},
	{"a fifth", 0.2, 10000, 0, 1000, 0},
	{"one in a hundred", 0.01, 100000, 0, 1000, 0},
	{"all, and ten times the budget", 1, 10000, 1000, 1000, 0},
	{"all, and a little more than the budget", 1, 1100, 1000, 1000, 0},
	{"half a million a second", 1, 500000, 1000, 1000, 0},
	{"half a million a second, a twentieth of them wished", 0.05, 500000, 1000, 1000, 0},
	{"half a million a second, and a tiny budget", 1, 500000, 50, 1000, 0},
	{"bursts that all have what was saved", 0.05, 500000, 1000, 20, 200},
	{"bursts that follow each other faster", 1, 200000, 1000, 10, 15},
};

/* Results: the number of events, the number represented by the chosen ones, and the duration. One
 * program's events last 1 to 100 us, and sometimes a millisecond. */
struct sums {
	uint64_t events;
	uint64_t chosen;
	double told[2];
	double squares; /* of the weights, added up */
	double events_ns;
	double told_ns;
};

static struct sums play(const struct row *row, uint64_t n)
{
	static struct offcpu_plan plan;
	const uint64_t step_ns = NSEC_PER_SEC / row->per_second;
	const uint64_t start_ns = now_ns;
	struct event_sampler sampler = {0};
	struct sums sums = {0};

	offplan_make(row->share, row->budget ? NSEC_PER_SEC / row->budget : 0, &plan);
	while (sums.events < n) {
		const uint64_t ns =
			sums.events % 1000 == 7 ? NSEC_PER_MSEC : 1000 + sums.events % 100 * 1000;
		const uint64_t weight = event_sampler_next(&sampler, &plan);

		sums.told[sums.events % 2] += (double)weight;
		sums.chosen += weight > 0;
		sums.squares += (double)weight * (double)weight;
		sums.events_ns += (double)ns;
		sums.told_ns += (double)(weight * ns);
		sums.events++;
		now_ns += step_ns;
		if (row->quiet_ms &&
		    (now_ns - start_ns) / NSEC_PER_MSEC % (row->busy_ms + row->quiet_ms) >=
			    row->busy_ms)
			now_ns += row->quiet_ms * NSEC_PER_MSEC;
	}
	return sums;
}

/* Within the bounds of chance: a distance's standard deviation is about its mean, the weight; the
 * limit is five times the deviation of the sum, times @spread. */
static void assert_near(const char *what, double got, double want, const struct sums *sums,
			double spread)
{
	const double off = fabs(got / want - 1);
	const double may = 5 * spread * sqrt(sums->squares) / (double)sums->events;

	print_message("%s: %.4f of what there was, may be off by %.4f\n", what, got / want, may);
	if (off > may)
		fail_msg("%s: %.0f for %.0f", what, got, want);
}

static void test_sums(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		struct sums sums;
		double all;

		row_begin(rows[i].name);
		now_ns = NSEC_PER_SEC;
		seed = i;
		sums = play(&rows[i], 4000000);
		all = (double)sums.events;
		print_message("%llu of %llu chosen\n", (unsigned long long)sums.chosen,
			      (unsigned long long)sums.events);
		assert_near("all", sums.told[0] + sums.told[1], all, &sums, 1);
		assert_near("the first program's", sums.told[0], all / 2, &sums, sqrt(2));
		assert_near("time", sums.told_ns, sums.events_ns, &sums, 1.5);
	}
}

/* The savings, the cost of reaching the right level, and then the budget. */
static void test_budget(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		double seconds, most;
		struct sums sums;

		if (!rows[i].budget)
			continue;
		row_begin(rows[i].name);
		now_ns = NSEC_PER_SEC;
		seed = i;
		sums = play(&rows[i], 4000000);
		seconds = (double)(now_ns - NSEC_PER_SEC) / (double)NSEC_PER_SEC;
		most = 2 * OFFCPU_BURST + 1.2 * (double)rows[i].budget * seconds;
		print_message("%llu chosen, %.0f allowed\n", (unsigned long long)sums.chosen, most);
		assert_true((double)sums.chosen <= most);
		/* The budget is also used, if there are enough events. */
		if (!rows[i].quiet_ms)
			assert_true((double)sums.chosen >= (most - 2 * OFFCPU_BURST) / 1.5);
	}
}

/* After a burst the first choices are far apart, in events; then the distance is as before. */
static void test_after_burst(void **state)
{
	static struct offcpu_plan plan;
	struct event_sampler sampler = {0};

	(void)state;
	seed = 1;
	now_ns = NSEC_PER_SEC;
	offplan_make(1, NSEC_PER_SEC / 1000, &plan);
	for (int i = 0; i < 500000; i++, now_ns += 2000)
		event_sampler_next(&sampler, &plan);
	assert_in_range(sampler.level, 8, 10);
	for (int i = 0; i < 4096; i++, now_ns += 10 * NSEC_PER_MSEC)
		event_sampler_next(&sampler, &plan);
	assert_int_equal(sampler.level, 0);
	assert_int_equal(event_sampler_next(&sampler, &plan), 1);
	assert_int_equal(event_sampler_next(&sampler, &plan), 1);
}

/* Refused events cost an eighth, and no more than the whole budget. */
static void test_refund(void **state)
{
	static struct offcpu_plan plan;
	struct event_sampler sampler = {0};
	uint64_t chosen = 0;

	(void)state;
	seed = 1;
	now_ns = NSEC_PER_SEC;
	offplan_make(1, NSEC_PER_SEC / 1000, &plan);
	for (int i = 0; i < 500000; i++, now_ns += 2000) {
		if (!event_sampler_next(&sampler, &plan))
			continue;
		chosen++;
		event_sampler_refund(&sampler, &plan);
	}
	print_message("%llu looked at\n", (unsigned long long)chosen);
	assert_in_range(chosen, 8 * 1000 / 2, 8 * (1000 + OFFCPU_BURST));
}

/* For each share the weight is the mean of the random numbers. */
static void test_plan(void **state)
{
	static const double shares[] = {1, 0.99, 0.5, 0.1, 0.01, 1e-3, 1e-6, 1e-300};
	static struct offcpu_plan plan;

	(void)state;
	for (size_t i = 0; i < array_size(shares); i++) {
		const double want =
			1 / (shares[i] > OFFPLAN_SHARE_MIN ? shares[i] : OFFPLAN_SHARE_MIN);
		uint64_t sum = 0;

		offplan_make(shares[i], 5, &plan);
		for (uint32_t k = 0; k < OFFCPU_PLAN_DRAWS; k++)
			sum += plan.pass[k] + 1;
		assert_int_equal(sum, plan.weight * OFFCPU_PLAN_DRAWS);
		assert_true(fabs((double)plan.weight - want) <= 1 + want / 100);
		assert_int_equal(plan.stack_ns, 5);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sums),	    cmocka_unit_test(test_budget),
		cmocka_unit_test(test_after_burst), cmocka_unit_test(test_refund),
		cmocka_unit_test(test_plan),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
