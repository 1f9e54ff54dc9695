/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_PPROF_READER_H
#define PODPROF_PPROF_READER_H

/* A profile somebody wrote, as tables: the node's own store, or any file a user has. */

#include <stddef.h>

#include "pprof/tables.h"

struct reader;

/* Memory for the tables, for each byte of the message that is allowed: rows of Go's profiles take 2
 * to 4; a message made of empty parts would take 40. Above it the file is PPROF_FULL. */
#define READER_MEMORY_FACTOR 8

/**
 * reader_new() - read a profile, gzipped or not
 * @data:      borrowed for the call only
 * @max_bytes: ceiling for the message after decompression
 * @ret_why:   what is wrong, for people, when the result is PPROF_MALFORMED or PPROF_FULL; a
 *             constant string
 *
 * What comes out obeys all rules of proto/profile.proto: every number refers to something, ids are
 * unique, each sample has one value per type. Strings that are not UTF-8, or have a NUL inside, are
 * repaired with '?'.
 *
 * Return: 0; PPROF_FULL; PPROF_MALFORMED; -ENOMEM.
 */
int reader_new(const void *data, size_t n, size_t max_bytes, struct reader **ret,
	       const char **ret_why);
void reader_free(struct reader *r);
/* Borrowed. */
const struct pprof_tables *reader_tables(const struct reader *r);

#endif
