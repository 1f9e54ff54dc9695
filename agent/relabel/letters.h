/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_RELABEL_LETTERS_H
#define PODPROF_RELABEL_LETTERS_H

/* Upper and lower case, of all letters and whatever the locale is. */

#include <stdbool.h>

#include "base/buf.h"

/* Appends @text, which is UTF-8, with each letter in the other case where it has one: one character
 * for one, so that U+00DF stays what it is. As buf_append(). */
int letters_lower(const char *text, struct buf *to) __attribute__((warn_unused_result));
int letters_upper(const char *text, struct buf *to) __attribute__((warn_unused_result));

#endif
