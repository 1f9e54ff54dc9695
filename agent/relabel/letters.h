/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_RELABEL_LETTERS_H
#define PODPROF_RELABEL_LETTERS_H

/* Upper and lower case of all letters of Unicode, independent of the locale. */

#include <stdbool.h>

#include "base/buf.h"

/* Appends @text (UTF-8) in one case. A character becomes one character: U+00DF, without a capital
 * of its own, is unchanged. Return: as buf_append(). */
int letters_lower(const char *text, struct buf *to) __attribute__((warn_unused_result));
int letters_upper(const char *text, struct buf *to) __attribute__((warn_unused_result));

#endif
