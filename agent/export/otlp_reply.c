// SPDX-License-Identifier: Apache-2.0
/*
 * The message is foreign and small, and two of its fields matter:
 *
 *	ExportProfilesServiceResponse	1: ExportProfilesPartialSuccess
 *	ExportProfilesPartialSuccess	1: int64 rejected_profiles, 2: string error_message
 */
#include "export/otlp_reply.h"

#include "base/cursor.h"

enum wire_type { VARINT, FIXED64, BYTES, FIXED32 = 5 };

/* A field: its number, and a number or bytes. */
struct field {
	uint64_t number;
	enum wire_type type;
	uint64_t value;
	struct cursor bytes;
};

static bool field_next(struct cursor *c, struct field *ret)
{
	uint64_t tag;

	if (!cursor_left(c) || !cursor_uleb(c, &tag))
		return false;
	ret->number = tag >> 3;
	ret->type = (enum wire_type)(tag & 7);
	switch (ret->type) {
	case VARINT:
		return cursor_uleb(c, &ret->value);
	case FIXED64:
		return cursor_skip(c, 8);
	case FIXED32:
		return cursor_skip(c, 4);
	case BYTES:
		return cursor_uleb(c, &ret->value) && ret->value <= cursor_left(c) &&
		       cursor_sub(c, (size_t)ret->value, &ret->bytes);
	}
	return false; /* groups do not occur */
}

static void parse_partial(struct cursor c, struct otlp_reply *ret)
{
	struct field field;

	while (field_next(&c, &field)) {
		if (field.number == 1 && field.type == VARINT)
			ret->rejected = (int64_t)field.value > 0 ? (int64_t)field.value : 0;
		else if (field.number == 2 && field.type == BYTES)
			ret->message = strview_of_bytes((const char *)field.bytes.pos,
							cursor_left(&field.bytes));
	}
}

void otlp_reply_parse(const void *bytes, size_t n, struct otlp_reply *ret)
{
	struct field field;
	struct cursor c;

	*ret = (struct otlp_reply){.message = strview_of("")};
	cursor_init(&c, bytes, n);
	while (field_next(&c, &field))
		if (field.number == 1 && field.type == BYTES)
			parse_partial(field.bytes, ret);
}
