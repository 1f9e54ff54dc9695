/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_TEST_SUPPORT_V8IMAGE_H
#define PODPROF_TEST_SUPPORT_V8IMAGE_H

/* V8 as tests describe it: the constants of a release, and a process with one function. */

#include "runtimes/v8_layout.h"

#define V8IMAGE_BYTES 4096

#define V8IMAGE_ID 5 /* of the script */

/* Addresses of the process, which begins at 4096 with the variables of the builtins: a pointer and
 * a number of bytes. */
#define V8IMAGE_BUILTINS	5632
#define V8IMAGE_SHARED		4160
#define V8IMAGE_MAPS		4352 /* 16 bytes each */
#define V8IMAGE_SCOPE		4608
#define V8IMAGE_NAME		4736
#define V8IMAGE_SCRIPT		4800
#define V8IMAGE_SOURCE		4928
#define V8IMAGE_FILE		5056
#define V8IMAGE_BYTECODE	5120
#define V8IMAGE_TABLE		5200
#define V8IMAGE_ENDS		5248
/* Optimised code of leaf(), with inner() inlined: the Code object, what it was made of, and the
 * instructions. */
#define V8IMAGE_INNER		6144
#define V8IMAGE_CODE		6336
#define V8IMAGE_LITERALS	6496
#define V8IMAGE_INLINED		6528
#define V8IMAGE_POSITIONS	6560
#define V8IMAGE_STREAM		6640
#define V8IMAGE_CODE_AT		6656
/* Baseline code of leaf(): the same. */
#define V8IMAGE_BASELINE	6720
#define V8IMAGE_LENGTHS		6792
#define V8IMAGE_BASELINE_STREAM 6832
#define V8IMAGE_BASELINE_AT	6848
#define V8IMAGE_SIZES		6912 /* of bytecodes */
/* What the optimised code was made of, and the frames of its calls. */
#define V8IMAGE_MADE_OF		7168
#define V8IMAGE_TRANSLATIONS	7360
#define V8IMAGE_PLACE(i)	(V8IMAGE_MADE_OF + 16 + 8 * (11 + 3 * (i)))

/* The constants of V8 11.3 (Node 20). */
extern const struct v8_image v8image_of_11;

/* The function leaf() of file:///srv/a.js, in line 2, with bytecode of lines 2 and 3. In optimised
 * code, line 3 begins at byte 0, and inner() of line 3, in line 4, at byte 16. A call in inner()
 * returns to byte 21; in code of the fast compiler, it would be the second call. In baseline code,
 * line 2 begins at byte 4, line 3 at byte 12. */
void v8image_build(uint8_t ret[V8IMAGE_BYTES]);

#endif
