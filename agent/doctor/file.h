/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_DOCTOR_FILE_H
#define PODPROF_DOCTOR_FILE_H

/* Small files of the kernel's. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct root;

/* The first line, cut to fit, printable; "" where the file cannot be read. */
void file_line(const struct root *root, const char *path, char *ret, size_t n);
/* A file that is one number; a negative one is 0. False if it cannot be read, or is none. */
bool file_number(const struct root *root, const char *path, uint64_t *ret);

#endif
