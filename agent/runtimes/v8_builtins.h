/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_RUNTIMES_V8_BUILTINS_H
#define PODPROF_RUNTIMES_V8_BUILTINS_H

/*
 * The code of V8's builtins in a process: by two variables of the image, or, if the image has no
 * symbols for these, by a search of the image's variables.
 */

#include <stdint.h>

struct elffile;
struct memory;
struct v8_image;

/* Bytes of variables that are searched; Node and Deno have 0.2 MB. Reached: `no_builtins`, native
 * frames only. */
#define V8_BUILTINS_SEARCH_MAX (1u << 20)

/* Sets where the search looks: @ret->zeroed and @ret->code. 0 or V8_BUILTINS_UNKNOWN. */
int v8_builtins_prepare(const struct elffile *ef, struct v8_image *ret);

/**
 * v8_builtins_find() - find the code in a process
 * @bias: of the image in the process
 *
 * Return: 0; V8_NOT_READY; V8_BUILTINS_UNKNOWN: not found, perhaps not yet; V8_ODD; V8_UNREADABLE
 * and others of memory; -errno.
 */
int v8_builtins_find(struct memory *m, const struct v8_image *image, uint64_t bias,
		     uint64_t *ret_first, uint32_t *ret_bytes);

#endif
