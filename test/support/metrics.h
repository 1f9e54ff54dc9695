/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_TEST_SUPPORT_METRICS_H
#define PODPROF_TEST_SUPPORT_METRICS_H

#include "base/metric.h"

/* The value of one metric of a collector, by family and label values ("" for none, "a,b" for two).
 * Fails the test if the metric is missing. */
uint64_t metrics_get(metric_collect_fn collect, void *ctx, const char *family, const char *labels);
/* The same, not rounded down to a whole number. */
double metrics_get_double(metric_collect_fn collect, void *ctx, const char *family,
			  const char *labels);

#endif
