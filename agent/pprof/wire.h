/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_PPROF_WIRE_H
#define PODPROF_PPROF_WIRE_H

#include <stddef.h>

#include "pprof/tables.h"

struct buf;

/* Fastest to smallest 1..9. Measured by test/bench/bench_pprof.c, which says why this one. */
#define WIRE_LEVEL 6

/**
 * wire_encode() - append a profile as the gzip-compressed protobuf message
 *
 * The same tables give the same bytes. Needs some 300 KB besides @ret, however large the profile.
 *
 * Return: 0; PPROF_FULL if @ret would pass its ceiling; -ENOMEM. On a failure @ret keeps its old
 * length.
 */
int wire_encode(const struct pprof_tables *t, int level, struct buf *ret);

#endif
