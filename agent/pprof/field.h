/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_PPROF_FIELD_H
#define PODPROF_PPROF_FIELD_H

/* The fields of a protobuf message somebody else wrote, one by one, through a cursor. protobuf-c's
 * own unpacking makes some 100 bytes of memory out of a message of 2, so a small file could ask for
 * any amount; here nothing is allocated. Encoding: protobuf.dev, "Encoding". */

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
	FIELD_MALFORMED, /* it leaves the message, or is of a kind that there is not */
};

int field_next(struct cursor *message, struct field *ret);

/* How many numbers a repeated field has in this place: packed ones, or a single one. */
size_t field_n_numbers(const struct field *field);
/* The next of them. FIELD_OK, FIELD_END, FIELD_MALFORMED. */
int field_next_number(struct field *field, uint64_t *ret);

#endif
