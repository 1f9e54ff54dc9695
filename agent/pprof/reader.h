/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_PPROF_READER_H
#define PODPROF_PPROF_READER_H

/* Reads a foreign profile into tables: from the node's own store, or any file of a user. */

#include <stddef.h>

#include "base/cleanup.h"
#include "pprof/tables.h"

struct reader;

/* Bytes of memory for each permitted byte of the message: 5,000 stacks of 10 to 60 frames take 7, a
 * message of empty parts would take 100. Above the limit the result is PPROF_FULL. Reading 5,000
 * stacks (bench_pprof) takes 5.5 MB at once; a reader without protobuf-c, which made only the
 * tables, took 2.8 MB and 6 % more instructions, and was 500 lines longer. */
#define READER_MEMORY_FACTOR 8

/**
 * reader_new() - read a profile, gzipped or not
 * @data:      borrowed for the call only
 * @max_bytes: ceiling for the message after decompression
 * @ret_why:   the problem, for people, with PPROF_MALFORMED and PPROF_FULL; a constant string
 *
 * The result obeys all rules of proto/profile.proto: every number refers to a row, ids are unique,
 * each sample has one value per type. Strings with invalid UTF-8 or an embedded NUL are repaired
 * with '?'.
 *
 * Return: 0; PPROF_FULL; PPROF_MALFORMED; -ENOMEM.
 */
int reader_new(const void *data, size_t n, size_t max_bytes, struct reader **ret,
	       const char **ret_why);
void reader_free(struct reader *r);
DEFINE_CLEANUP(struct reader *, reader_freep, reader_free);
/* Borrowed. */
const struct pprof_tables *reader_tables(const struct reader *r);

#endif
