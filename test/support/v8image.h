/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_TEST_SUPPORT_V8IMAGE_H
#define PODPROF_TEST_SUPPORT_V8IMAGE_H

/* V8 as tests describe it. */

#include "runtimes/v8_layout.h"

/* The constants of V8 11.3 (Node 20). */
extern const struct v8_image v8image_of_11;

#endif
