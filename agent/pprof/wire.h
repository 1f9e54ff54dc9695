/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_PPROF_WIRE_H
#define PODPROF_PPROF_WIRE_H

#include <stddef.h>

#include "pprof/tables.h"

struct buf;

/* From 1 (fastest) to 9 (smallest). For 10,000 stacks (test/bench/bench_pprof.c) 4, with longer
 * matches, takes 1.3 times the CPU time of 1 and gives 8 % fewer bytes; 6, zlib's own choice, takes
 * 2.1 times and gives 12 %. */
#define WIRE_LEVEL	4
/* No compression. */
#define WIRE_LEVEL_NONE 0

/**
 * wire_encode() - append a profile as the gzip-compressed protobuf message
 *
 * The same tables give the same bytes. Needs some 300 KB besides @ret, for profiles of any size.
 *
 * Return: 0; PPROF_FULL if @ret would exceed its ceiling; -ENOMEM. On failure @ret keeps its old
 * length.
 */
int wire_encode(const struct pprof_tables *t, int level, struct buf *ret);

#endif
