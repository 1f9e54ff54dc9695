/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_CMD_VIEW_H
#define PODPROF_CMD_VIEW_H

/*
 * One value in two forms. A subcommand makes a JSON object of its result; a template prints the
 * text from the same object:
 *
 *	"{start:16x} {limit:16x} {executable:m} {build_id:-40} {path}\n"
 *
 *	{KEY}           the object's member KEY; "-" if the member is null, "" or missing
 *	{KEY|TEXT}      TEXT in place of "-"
 *	{KEY:FORMAT}    with a width, negative for left-aligned, and a letter:
 *	                x  hexadecimal without "0x", of a number or a string with "0x"
 *	                X  a number in hexadecimal with "0x"
 *	                z  a number; "-" if it is 0
 *	                m  true is "x", false "-"; without the letter "yes" and "no"
 *	                r  an object {start, limit} as a range in hexadecimal without "0x"
 *	[KEY?TEMPLATE]  a part only for a member that is not null, "" or false
 *	[!KEY?TEMPLATE] a part for any other member
 */

#include <stdbool.h>
#include <stdint.h>

struct json_t;

/* Strings for objects: "0x1000"; a foreign text without control characters, null for "". Owned by
 * the caller, NULL without memory. */
struct json_t *view_hex(uint64_t number);
struct json_t *view_text(const char *s);
/* Replaces the text of @string, of view_hex(): for a command that prints one object many times. 0
 * or -ENOMEM. */
int view_set_hex(struct json_t *string, uint64_t number);

/* The text of @object, borrowed, by @template, with control characters replaced by '?'. */
void view_print_text(const struct json_t *object, const char *template);
/* Print a line of JSON, or the text. Takes @object, which may be NULL after a lack of memory. 0 or
 * -ENOMEM. */
int view_print(struct json_t *object, bool json, const char *template);

#endif
