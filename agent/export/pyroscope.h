/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_EXPORT_PYROSCOPE_H
#define PODPROF_EXPORT_PYROSCOPE_H

#include <stddef.h>

struct outbox;
struct outbox_list;

/* Most series Pyroscope handles in one push by default. Reached: the next push. */
#define PYROSCOPE_SERIES_MAX  256
/* Most samples of one profile; and bytes before compression, of which a tenant may send 2 MiB at
 * once by default, the labels among them. Reached:
 * `podprof_profiled_samples_total{outcome="over_limit"}`,
 * `podprof_go_heap_reads_total{outcome="records_dropped"}`. */
#define PYROSCOPE_SAMPLES_MAX 16000
/* Bytes of one profile before compression; Pyroscope takes 2 MiB at once, with the labels. Reached:
 * `podprof_profiled_samples_total{outcome="over_limit"}`,
 * `podprof_go_heap_reads_total{outcome="records_dropped"}`. */
#define PYROSCOPE_PPROF_MAX   (31u << 16)

/**
 * pyroscope_encode() - profiles as the body of one push
 * @batch: up to PYROSCOPE_SERIES_MAX profiles of @box
 * @ret:   the caller's to free
 *
 * Return: 0 or -ENOMEM.
 */
int pyroscope_encode(const struct outbox *box, const struct outbox_list *batch, char **ret,
		     size_t *ret_len);

#endif
