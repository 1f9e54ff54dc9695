// SPDX-License-Identifier: Apache-2.0
#include "cmd/view.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/strview.h"
#include "base/utf8.h"
#include "cmd/cmd.h"

/* Bytes of a number, and of a range of two. */
#define VIEW_NUMBER_BYTES 48
/* Bytes of a field in a template. */
#define VIEW_FIELD_BYTES  64

json_t *view_hex(uint64_t number)
{
	char text[24];

	snprintf(text, sizeof(text), "0x%" PRIx64, number);
	return json_string(text);
}

json_t *view_text(const char *s)
{
	_cleanup_(freep) char *text = strdup(s);

	if (!text)
		return NULL;
	utf8_make_printable(text);
	return *text ? json_string(text) : json_null();
}

/* "" for an unknown value. Strings in hexadecimal begin with "0x". */
static const char *text_of_value(const json_t *value, char letter, char number[VIEW_NUMBER_BYTES])
{
	const size_t skip = letter == 'x' || letter == 'r' ? 2 : 0;
	const json_int_t n = json_integer_value(value);

	if (json_is_string(value))
		return json_string_value(value) + skip;
	if (json_is_boolean(value) && letter == 'm')
		return json_is_true(value) ? "x" : "-";
	if (json_is_boolean(value))
		return json_is_true(value) ? "yes" : "no";
	if (json_is_object(value))
		snprintf(number, VIEW_NUMBER_BYTES, "%s-%s",
			 json_string_value(json_object_get(value, "start")) + skip,
			 json_string_value(json_object_get(value, "limit")) + skip);
	else if (!json_is_integer(value) || (!n && letter == 'z'))
		return "";
	else if (letter == 'x' || letter == 'X')
		snprintf(number, VIEW_NUMBER_BYTES, letter == 'x' ? "%" PRIx64 : "0x%" PRIx64,
			 (uint64_t)n);
	else
		snprintf(number, VIEW_NUMBER_BYTES, "%" JSON_INTEGER_FORMAT, n);
	return number;
}

/* @field: the text between "{" and "}". */
static void print_field(const json_t *object, char *field)
{
	char number[VIEW_NUMBER_BYTES], *none = field, *format, *letter = NULL;
	const char *key, *value;
	int width = 0;

	format = strsep(&none, "|");
	key = strsep(&format, ":");
	if (format)
		width = (int)strtol(format, &letter, 10);
	value = text_of_value(json_object_get(object, key), letter ? *letter : '\0', number);
	printf("%*s", width, *value ? value : none ? none : "-");
}

void view_print_text(const json_t *object, const char *template)
{
	for (const char *p = template; *p; p++) {
		char field[VIEW_FIELD_BYTES];

		if (*p != '{') {
			putchar(*p);
			continue;
		}
		snprintf(field, sizeof(field), "%.*s", (int)strcspn(p + 1, "}"), p + 1);
		p += strlen(field) + 1;
		print_field(object, field);
	}
}

int view_print(json_t *object, bool json, const char *template)
{
	if (json || !object)
		return cmd_print_json(object);
	view_print_text(object, template);
	json_decref(object);
	return 0;
}
