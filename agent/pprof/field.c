// SPDX-License-Identifier: Apache-2.0
#include "pprof/field.h"

/* 29 bits: the format's maximum. Reached: malformed. */
#define NUMBER_MAX 0x1fffffffu

static bool field_body(struct cursor *c, struct field *f)
{
	uint64_t n;

	switch (f->kind) {
	case FIELD_VARINT:
		return cursor_uleb(c, &f->value);
	case FIELD_FIXED64:
		return cursor_skip(c, 8);
	case FIELD_BYTES:
		return cursor_uleb(c, &n) && n <= cursor_left(c) &&
		       cursor_sub(c, (size_t)n, &f->bytes);
	case FIELD_FIXED32:
		return cursor_skip(c, 4);
	}
	return false; /* groups, which proto3 does not have, or an unknown wire type */
}

int field_next(struct cursor *message, struct field *ret)
{
	struct cursor c = *message;
	struct field f = {0};
	uint64_t tag;

	if (!cursor_left(&c))
		return FIELD_END;
	if (!cursor_uleb(&c, &tag) || tag >> 3 == 0 || tag >> 3 > NUMBER_MAX)
		return FIELD_MALFORMED;
	f.number = (uint32_t)(tag >> 3);
	f.kind = (enum field_kind)(tag & 7);
	if (!field_body(&c, &f))
		return FIELD_MALFORMED;
	*message = c;
	*ret = f;
	return FIELD_OK;
}

size_t field_n_numbers(const struct field *field)
{
	size_t n = 0;

	if (field->kind != FIELD_BYTES)
		return field->kind == FIELD_VARINT;
	for (const uint8_t *p = field->bytes.pos; p < field->bytes.end; p++)
		n += *p < 0x80; /* the last byte of each */
	return n;
}

int field_next_number(struct field *field, uint64_t *ret)
{
	if (field->kind == FIELD_VARINT) {
		*ret = field->value;
		field->kind = FIELD_BYTES; /* with no bytes: this was the only number */
		return FIELD_OK;
	}
	if (field->kind != FIELD_BYTES)
		return FIELD_MALFORMED;
	if (!cursor_left(&field->bytes))
		return FIELD_END;
	return cursor_uleb(&field->bytes, ret) ? FIELD_OK : FIELD_MALFORMED;
}
