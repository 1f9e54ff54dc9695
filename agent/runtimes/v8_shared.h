/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_RUNTIMES_V8_SHARED_H
#define PODPROF_RUNTIMES_V8_SHARED_H

/* SharedFunctionInfo: a function, which all its closures share. */

#include <stdint.h>

#include "runtimes/runtimes.h"
#include "runtimes/v8_object.h"

/* The words of the check (bpf/shared/v8.h), and of the code. */
struct v8_shared {
	uint64_t name, script, id, number; /* @id: the function's, or the word with the script's */
	uint64_t data;
};

/* 0; V8_ODD for another object; an outcome of memory, -errno. */
int v8_shared_read(const struct v8_heap *heap, uint64_t object, struct v8_shared *ret);
uint32_t v8_shared_check(const struct v8_shared *shared);

/**
 * struct v8_source - a function in its source
 * @script: the object; 0: none
 * @start:  positions in the script: [@start, @end); 0, 0 if they are not known
 */
struct v8_source {
	char name[RUNTIMES_NAME_MAX];
	char file[RUNTIMES_FILE_MAX];
	uint64_t script;
	uint32_t start, end;
};

/* The types of the objects are checked. 0, V8_ODD, an outcome of memory, -errno. */
int v8_source_read(const struct v8_heap *heap, const struct v8_shared *shared,
		   struct v8_source *ret);

#endif
