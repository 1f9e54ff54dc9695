/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_DOCTOR_FILE_H
#define PODPROF_DOCTOR_FILE_H

/* Small files of the kernel. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct root;

/* The first line, cut to fit, printable; "" for an unreadable file. */
void file_line(const struct root *root, const char *path, char *ret, size_t n);
/* Reads a file that contains one number; a negative number becomes 0. False for an unreadable file
 * or other contents. */
bool file_number(const struct root *root, const char *path, uint64_t *ret);

#endif
