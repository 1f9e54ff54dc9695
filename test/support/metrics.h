/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_TEST_SUPPORT_METRICS_H
#define PODPROF_TEST_SUPPORT_METRICS_H

#include "base/metric.h"

/* One number out of what a collector emits, by family and the values of its labels ("" for none,
 * "a,b" for two). Fails the test if it is not there. */
uint64_t metrics_get(metric_collect_fn collect, void *ctx, const char *family, const char *labels);

#endif
