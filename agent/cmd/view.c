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

int view_set_hex(json_t *string, uint64_t number)
{
	static const char digits[] = "0123456789abcdef";
	char text[18], *p = text + sizeof(text);

	do {
		*--p = digits[number & 15];
		number >>= 4;
	} while (number);
	*--p = 'x';
	*--p = '0';
	return json_string_setn_nocheck(string, p, (size_t)(text + sizeof(text) - p)) ? -ENOMEM : 0;
}

json_t *view_hex(uint64_t number)
{
	json_t *string = json_string("");

	if (!string || !view_set_hex(string, number))
		return string;
	json_decref(string);
	return NULL;
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

static void put_blanks(long n)
{
	for (; n > 0; n--)
		putchar_unlocked(' ');
}

/* Without control characters: the text may come from a process. */
static void put_text(const char *s, size_t n)
{
	for (const char *end = s + n; s < end;) {
		const size_t control = utf8_control(s);

		putchar_unlocked(control ? '?' : *s);
		s += control ? control : 1;
	}
}

/* @field is behind the "{". Returns its "}". No printf(): a command prints a million of them. */
static const char *print_field(const json_t *object, const char *field)
{
	const char *end = field + strcspn(field, ":|}"), *value;
	const json_t *member = json_object_getn(object, field, (size_t)(end - field));
	char number[VIEW_NUMBER_BYTES], letter = '\0';
	long width = 0, n;

	if (*end == ':') {
		width = strtol(end + 1, (char **)&end, 10);
		if (*end != '|' && *end != '}')
			letter = *end++;
	}
	value = text_of_value(member, letter, number);
	n = (long)strlen(value);
	if (!n) {
		value = *end == '|' ? end + 1 : "-";
		n = (long)strcspn(value, "}");
	}
	put_blanks(width - n);
	put_text(value, (size_t)n);
	put_blanks(-width - n);
	return end + strcspn(end, "}");
}

/* @condition is behind the "[". Returns the character before the part's text, or the "]". */
static const char *enter_part(const json_t *object, const char *condition)
{
	const bool want = *condition != '!';
	const char *key = want ? condition : condition + 1, *end = key + strcspn(key, "?");
	const json_t *member = json_object_getn(object, key, (size_t)(end - key));
	const bool is_set = member && !json_is_null(member) && !json_is_false(member) &&
			    !(json_is_string(member) && !json_string_length(member));

	return is_set == want ? end : end + strcspn(end, "]");
}

void view_print_text(const json_t *object, const char *template)
{
	for (const char *p = template; *p; p++)
		if (*p == '{')
			p = print_field(object, p + 1);
		else if (*p == '[')
			p = enter_part(object, p + 1);
		else if (*p != ']')
			putchar_unlocked(*p);
}

int view_print(json_t *object, bool json, const char *template)
{
	if (json || !object)
		return cmd_print_json(object);
	view_print_text(object, template);
	json_decref(object);
	return 0;
}
