/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_PPROF_FIELD_H
#define PODPROF_PPROF_FIELD_H

/* Reads the fields of a foreign protobuf message one by one, through a cursor. protobuf-c's own
 * unpacking makes some 100 bytes of memory out of a message of 2, so a small file could demand any
 * amount of memory. This reader allocates nothing. Encoding: protobuf.dev, "Encoding". */

#include <stddef.h>
#include <stdint.h>

#include "base/cursor.h"

enum field_kind {
	FIELD_VARINT = 0,
	FIELD_FIXED64 = 1,
	FIELD_BYTES = 2,
	FIELD_FIXED32 = 5,
};

struct field {
	uint32_t number;
	enum field_kind kind;
	uint64_t value;	     /* FIELD_VARINT */
	struct cursor bytes; /* FIELD_BYTES: a message, a string, packed numbers */
};

enum field_outcome {
	FIELD_OK = 0,
	FIELD_END,	 /* nothing is left */
	FIELD_MALFORMED, /* beyond the end of the message, or of an unknown wire type */
};

int field_next(struct cursor *message, struct field *ret);

/* The number of elements of a repeated field at this place: packed elements, or a single one. */
size_t field_n_numbers(const struct field *field);
/* The next element. FIELD_OK, FIELD_END, FIELD_MALFORMED. */
int field_next_number(struct field *field, uint64_t *ret);

#endif
