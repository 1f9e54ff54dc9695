/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_TEST_SUPPORT_V8IMAGE_H
#define PODPROF_TEST_SUPPORT_V8IMAGE_H

/* V8 as tests describe it: the constants of a release, and a process with one function. */

#include "runtimes/v8_layout.h"

#define V8IMAGE_BYTES 2048

/* Addresses of the process, which begins at 4096 with the variables of the builtins: a pointer and
 * a number of bytes. */
#define V8IMAGE_BUILTINS 5632
#define V8IMAGE_SHARED	 4160
#define V8IMAGE_MAPS	 4352 /* 16 bytes each */
#define V8IMAGE_SCOPE	 4608
#define V8IMAGE_NAME	 4736
#define V8IMAGE_SCRIPT	 4800
#define V8IMAGE_SOURCE	 4928
#define V8IMAGE_FILE	 5056
#define V8IMAGE_BYTECODE 5120
#define V8IMAGE_TABLE	 5200
#define V8IMAGE_ENDS	 5248

/* The constants of V8 11.3 (Node 20). */
extern const struct v8_image v8image_of_11;

/* The function leaf() of file:///srv/a.js, in line 2, with bytecode of lines 2 and 3. */
void v8image_build(uint8_t ret[V8IMAGE_BYTES]);

#endif
