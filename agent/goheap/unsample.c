// SPDX-License-Identifier: Apache-2.0
/*
 * Go samples allocations as a Poisson process over bytes: an object of S bytes is recorded with
 * probability 1 - exp(-S/R) at rate R. The recorded count divided by this probability is an
 * unbiased estimate. Without the division a program of 16-byte objects would seem to allocate 32768
 * times less (R is 512 KiB).
 *
 * The arithmetic is in doubles, in the order and with the truncation of scaleHeapSample() in
 * runtime/pprof/protomem.go, so the numbers equal those of the process itself. Up to Go 1.26 that
 * function divides the record's bytes by the count to get S, with the same result. Only the last
 * bit of exp() may differ, because Go has its own implementation for some processors. For 16-byte
 * objects such an error is multiplied by 32768 and then truncated, so one profile in some thousands
 * has a number off by one.
 *
 * R of 1 means that every allocation is recorded; R of 0 or less means that the rate is unknown.
 * Both disable the scaling.
 */
#include "goheap/unsample.h"

#include <math.h>

static int64_t to_int64(double x)
{
	/* 2^63 is exact as a double, INT64_MAX is not */
	return x < 9223372036854775808.0 ? (int64_t)x : INT64_MAX;
}

struct unsampled unsample(uint64_t count, uint64_t size, int64_t rate)
{
	double scale, bytes = (double)count * (double)size;

	if (count == 0 || size == 0)
		return (struct unsampled){0, 0};
	if (rate <= 1)
		return (struct unsampled){to_int64((double)count), to_int64(bytes)};
	scale = 1 / (1 - exp(-(double)size / (double)rate));
	return (struct unsampled){to_int64((double)count * scale), to_int64(bytes * scale)};
}
