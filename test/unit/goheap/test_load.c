// SPDX-License-Identifier: Apache-2.0
/*
 * Reading a process that allocates on all processors and collects 100 times a second.
 *
 * Torn reads: with rate 1 every allocation is recorded, and the program counts begun and ended
 * allocations of each size in shared memory. Each read lies between the allocations ended before
 * the read and the allocations begun by the end of the read. A record caught in the middle of an
 * addition would lie outside.
 *
 * Never less: each record's allocations, the totals, and the allocator's counters, from one read to
 * the next.
 *
 * Sampling: with the default rate R, an allocation of S bytes is recorded with probability p =
 * 1-exp(-S/R), and n recorded allocations represent n/p. So the estimate of the bytes has a
 * variance of n*(S/p)^2*(1-p), summed over records. The difference to the allocator's own counter,
 * over windows of 256 MiB, in units of the standard error, must have the normal distribution: a
 * mean square of 1, and three of a thousand above 3.
 */
#include "support/test.h"

#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "goheap/goheap.h"
#include "support/gofixture.h"
#include "support/goprocess.h"

#define N_SIZES	     8
#define WINDOW_BYTES (256u << 20)
#define AHEAD_BYTES  (2u << 20) /* allocations in the hands of all processors, counted or not */
/* Uncounted allocations of the program: a slice header for each object, and others. */
#define HEADER_BYTES 24u
#define OTHER_BYTES  (64u << 20)
/* One of so many totals may be torn, by so many objects: the allocations of a record in the time of
 * a collection. A copy is torn if a processor loses the CPU, to a task or to the hypervisor, in the
 * middle of a record: 0 of 192,000 totals beside 12 busy processes, but 8 of 32,000 in CI. A wrong
 * slot or layout makes nearly all totals wrong. */
#define TORN_SHARE   500
#define TORN_MOST    200
#define WINDOWS_MAX  300
#define RATE	     524288

static const uint64_t sizes[N_SIZES] = {1408, 2688, 3456, 4864, 5376, 6528, 6784, 6912};

struct counts {
	uint64_t begun;
	uint64_t ended;
};

/* A program under load, and its last values. */
struct load {
	struct goprocess process;
	struct goheap *heap;
	struct counts *shared;
	char file[64];
	uint64_t ahead; /* possible decrease of the allocator's counters */
	struct gototals exact;
	struct goheap_totals totals;
	uint64_t n_exact; /* times with readable counters */
	uint64_t n_odd;	  /* times with changing counters */
	uint64_t n_unsettled;
	uint64_t n_collections;
};

static void load_start(struct load *l, const char *path, const char *env)
{
	const char *const args[] = {l->file, NULL};
	struct goheap_opts opts = {0};
	int fd;

	/* see gototals.h */
	*l = (struct load){
		.process = {.to = -1},
		.ahead = gofixture_minor(path) < 19 ? (uint64_t)AHEAD_BYTES : 0,
	};
	strcpy(l->file, "/tmp/test_load.XXXXXX");
	fd = mkstemp(l->file);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, N_SIZES * sizeof(*l->shared)), 0);
	l->shared = mmap(NULL, N_SIZES * sizeof(*l->shared), PROT_READ, MAP_SHARED, fd, 0);
	assert_true(l->shared != MAP_FAILED);
	close(fd);
	goprocess_start(&l->process, path, args, env);
	opts.proc = &l->process.proc;
	opts.id = l->process.id;
	assert_int_equal(goheap_new(&opts, &l->heap), 0);
}

static void load_stop(struct load *l)
{
	goheap_free(l->heap);
	goprocess_stop(&l->process);
	munmap(l->shared, N_SIZES * sizeof(*l->shared));
	unlink(l->file);
}

static size_t n_reads(size_t usual)
{
	const char *text = getenv("PODPROF_TEST_READS");

	return text ? strtoul(text, NULL, 10) : usual;
}

/* ---------------------------------------------------------------- never less */

static void exact_never_less(struct load *l)
{
	struct gototals now;
	int r = goheap_exact(l->heap, &now);

	if (r) {
		l->n_odd += r == GOTOTALS_ODD;
		return;
	}
	assert_true(now.alloc_bytes + l->ahead >= l->exact.alloc_bytes);
	assert_true(now.alloc_objects + l->ahead >= l->exact.alloc_objects);
	assert_true(now.free_bytes + l->ahead >= l->exact.free_bytes);
	assert_true(now.free_objects + l->ahead >= l->exact.free_objects);
	l->exact = now;
	l->n_exact++;
}

static void totals_never_less(struct load *l, const struct goheap_profile *profile)
{
	struct goheap_totals now;

	goheap_totals(profile, &now);
	assert_true(now.alloc.objects >= l->totals.alloc.objects);
	assert_true(now.alloc.bytes >= l->totals.alloc.bytes);
	l->totals = now;
}

/* A read; returns the values of each size. */
static void read_once(struct load *l, uint64_t fresh[N_SIZES])
{
	struct goheap_profile profile;
	struct goheap_record record;

	memset(fresh, 0, N_SIZES * sizeof(*fresh));
	assert_int_equal(goheap_read(l->heap, &profile), GORUNTIME_OK);
	l->n_unsettled += !profile.settled;
	for (size_t i = 0; i < profile.n_records; i++) {
		goheap_record(&profile, i, &record);
		assert_true(record.fresh_allocs >= record.before_allocs);
		for (size_t k = 0; k < N_SIZES; k++)
			if (record.size == sizes[k])
				fresh[k] += record.fresh_allocs;
	}
	totals_never_less(l, &profile);
	exact_never_less(l);
	goheap_cycles(l->heap, &l->n_collections);
}

/* ---------------------------------------------------------------- torn reads */

static void take_counts(const struct load *l, struct counts ret[N_SIZES])
{
	for (size_t i = 0; i < N_SIZES; i++) {
		ret[i].begun = __atomic_load_n(&l->shared[i].begun, __ATOMIC_ACQUIRE);
		ret[i].ended = __atomic_load_n(&l->shared[i].ended, __ATOMIC_ACQUIRE);
	}
}

struct misses {
	uint64_t n_below;
	uint64_t n_above;
	uint64_t most_below;
	uint64_t most_above;
};

static void note(uint64_t too_much, uint64_t *n, uint64_t *most)
{
	*n += 1;
	if (too_much > *most)
		*most = too_much;
}

/* The allocator's counter lies in the same bounds. */
static void compare_exact(const struct load *l, const struct counts before[N_SIZES],
			  const struct counts after[N_SIZES])
{
	uint64_t least = 0, most = OTHER_BYTES;

	for (size_t i = 0; i < N_SIZES; i++) {
		least += before[i].ended * sizes[i];
		most += after[i].begun * (sizes[i] + HEADER_BYTES);
	}
	assert_true(l->exact.alloc_bytes + AHEAD_BYTES >= least);
	assert_true(l->exact.alloc_bytes <= most + l->ahead);
}

static void read_and_compare(struct load *l, struct misses *misses)
{
	struct counts before[N_SIZES], after[N_SIZES];
	uint64_t fresh[N_SIZES];

	uint64_t n_exact = l->n_exact;

	take_counts(l, before);
	read_once(l, fresh);
	take_counts(l, after);
	if (l->n_exact > n_exact)
		compare_exact(l, before, after);
	for (size_t i = 0; i < N_SIZES; i++) {
		if (fresh[i] < before[i].ended)
			note(before[i].ended - fresh[i], &misses->n_below, &misses->most_below);
		if (fresh[i] > after[i].begun)
			note(fresh[i] - after[i].begun, &misses->n_above, &misses->most_above);
	}
}

static void no_torn_read(void **state)
{
	const char *gos[GOFIXTURE_GOS_MAX];
	size_t n_gos = gofixture_gos(gos), n = n_reads(2000);

	(void)state;
	for (size_t i = 0; i < n_gos; i++) {
		_cleanup_(freep) char *path =
			gofixture_build("test/fixtures/go/load", gos[i], "default");
		struct misses misses = {0};
		struct load l;

		row_begin(path);
		load_start(&l, path, "LOAD_RATE=1");
		for (size_t k = 0; k < n; k++)
			read_and_compare(&l, &misses);
		print_message("  %zu reads over %" PRIu64 " collections; %" PRIu64
			      " not settled; counters caught changing %" PRIu64 " times\n",
			      n, l.n_collections, l.n_unsettled, l.n_odd);
		print_message("  below: %" PRIu64 ", by %" PRIu64 " at most; above: %" PRIu64
			      ", by %" PRIu64 " at most\n",
			      misses.n_below, misses.most_below, misses.n_above, misses.most_above);
		load_stop(&l);
		assert_true(misses.n_below + misses.n_above <= 5 + n * N_SIZES / TORN_SHARE);
		assert_true(misses.most_below <= TORN_MOST && misses.most_above <= TORN_MOST);
	}
}

/* ---------------------------------------------------------------- sampling */

/* The allocated bytes of a window by the records, and the variance. */
static void estimate(struct load *l, double *ret_bytes, double *ret_variance)
{
	struct goheap_profile profile;
	struct goheap_record record;

	*ret_bytes = *ret_variance = 0;
	assert_int_equal(goheap_read(l->heap, &profile), GORUNTIME_OK);
	assert_int_equal(profile.rate, RATE);
	for (size_t i = 0; i < profile.n_records; i++) {
		double n, p, weight;

		goheap_record(&profile, i, &record);
		n = (double)(record.fresh_allocs - record.before_allocs);
		p = 1 - exp(-(double)record.size / RATE);
		weight = (double)record.size / p;
		*ret_bytes += n * weight;
		*ret_variance += n * weight * weight * (1 - p);
	}
	totals_never_less(l, &profile);
}

/* Returns after a read that found the counters unchanged. */
static void exact_read(struct load *l)
{
	uint64_t n = l->n_exact;

	do
		exact_never_less(l);
	while (l->n_exact == n);
}

/* The allocator's counter before and after a read of the records. */
struct around {
	double least;
	double most;
};

static struct around counted(struct load *l, double *ret_bytes, double *ret_variance)
{
	struct around around;

	exact_read(l);
	around.least = (double)l->exact.alloc_bytes;
	estimate(l, ret_bytes, ret_variance);
	exact_read(l);
	around.most = (double)l->exact.alloc_bytes;
	return around;
}

/* The difference of an estimate to the nearest value that the counters allow. The program allocates
 * gigabytes a second, so a reader that loses the CPU between two reads knows a wide interval. */
static double difference(double bytes, struct around last, struct around now)
{
	if (bytes < now.least - last.most)
		return bytes - (now.least - last.most);
	if (bytes > now.most - last.least)
		return bytes - (now.most - last.least);
	return 0;
}

static void wait_for_window(struct load *l, double from)
{
	while ((double)l->exact.alloc_bytes < from + WINDOW_BYTES) {
		usleep(1000);
		exact_never_less(l);
	}
}

static void sampled_as_expected(const char *path, size_t n_windows)
{
	double bytes, variance, squares = 0, sum = 0, widths = 0;
	struct around last;
	size_t n_inside = 0;
	struct load l;

	load_start(&l, path, "LOAD_RATE=524288");
	exact_never_less(&l);
	if (!l.n_exact && !l.n_odd) { /* Go 1.16 has no known counters */
		load_stop(&l);
		return;
	}
	wait_for_window(&l, 0); /* each processor's first allocation is recorded at any size */
	last = counted(&l, &bytes, &variance);
	for (size_t i = 0; i < n_windows; i++) {
		struct around now;
		double z;

		wait_for_window(&l, last.most);
		now = counted(&l, &bytes, &variance);
		z = difference(bytes, last, now) / sqrt(variance);
		widths += (now.most - now.least) / sqrt(variance);
		last = now;
		n_inside += fabs(z) <= 3;
		squares += z * z;
		sum += z;
	}
	load_stop(&l);
	print_message("  %zu windows: %zu within 3 standard errors; of the difference in these the "
		      "mean is %.2f, the root mean square %.2f; a read takes %.2f\n",
		      n_windows, n_inside, sum / (double)n_windows,
		      sqrt(squares / (double)n_windows), widths / (double)n_windows);
	/* both fail by chance less than once in a million runs */
	assert_true(n_windows - n_inside <= 3 + n_windows / 50);
	assert_true(squares / (double)n_windows < 1 + 14 / sqrt((double)n_windows));
}

static void scaled_is_exact(void **state)
{
	const char *gos[GOFIXTURE_GOS_MAX];
	size_t n_gos = gofixture_gos(gos), n = n_reads(2000) / 200;

	(void)state;
	for (size_t i = 0; i < n_gos; i++) {
		_cleanup_(freep) char *path =
			gofixture_build("test/fixtures/go/load", gos[i], "default");

		row_begin(path);
		sampled_as_expected(path, n < WINDOWS_MAX ? n : WINDOWS_MAX);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_torn_read),
		cmocka_unit_test(scaled_is_exact),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
