/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_UNWINDTABLE_TABLEFILE_H
#define PODPROF_UNWINDTABLE_TABLEFILE_H

/*
 * A packed table as bytes in a file, for the same machine and the same program. All numbers are as
 * the machine has them.
 *
 *	head	magic, form, for what the table is, numbers of what follows, the descriptor
 *	rules	16 bytes each: by value, since the node's numbers are made anew each time
 *	rule runs	24 bytes each
 *	table image	groups, ids, slots
 *	digest	8 bytes, of all that is before it
 */

#include <stddef.h>
#include <stdint.h>

#include "base/digest.h"
#include "unwindtable/table.h"

struct buf;

/* Bytes of a file: a table image, and as many rules and rule runs as there can be. Reached:
 * `podprof_unwind_cache_writes_total{outcome="too_large"}`. */
#define TABLEFILE_BYTES_MAX (TABLE_BYTES_MAX + (1u << 20))

/* For what a table is. */
struct tablefile_id {
	uint64_t contents; /* of the image: contents_digest() */
	uint64_t maker;	   /* the program that made it; another one may make others */
};

enum tablefile_outcome {
	TABLEFILE_OK = 0,
	TABLEFILE_DAMAGED, /* cut, changed, or never one of ours */
	TABLEFILE_FOREIGN, /* whole, but of another form, another program or another image */
	TABLEFILE_OUTCOME_MAX,
};

/* Append the file of a table, as table_pack() made it. 0, -ENOMEM, BUF_FULL. */
int tablefile_write(const struct table *table, const struct tablefile_id *id,
		    const struct digest_key *key, struct buf *ret);

/**
 * tablefile_read() - the table in the @n bytes of a file
 * @key: with which it was written; with another one it is damaged
 *
 * What comes out is a table of which every part is inside it, whatever the bytes are.
 *
 * Return: 0, an outcome, -ENOMEM.
 */
int tablefile_read(const void *data, size_t n, const struct tablefile_id *id,
		   const struct digest_key *key, struct table **ret);

#endif
