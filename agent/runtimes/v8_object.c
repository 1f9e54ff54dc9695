// SPDX-License-Identifier: Apache-2.0
#include "runtimes/v8_object.h"

#include "procmap/memory.h"

int v8_bytes_read(const struct v8_heap *heap, uint64_t object, uint64_t off, void *ret, size_t n)
{
	if (!v8_is_object(object))
		return V8_ODD;
	return v8_outcome_of_memory(memory_read(heap->memory, object - 1 + off, ret, n));
}

int v8_word_read(const struct v8_heap *heap, uint64_t object, uint64_t off, uint64_t *ret)
{
	return v8_bytes_read(heap, object, off, ret, sizeof(*ret));
}

int v8_type_read(const struct v8_heap *heap, uint64_t object, uint16_t *ret)
{
	uint64_t map;
	int r = v8_word_read(heap, object, 0, &map);

	return r ? r
		 : v8_bytes_read(heap, map, (uint64_t)heap->constants[V8_MAP_TYPE], ret,
				 sizeof(*ret));
}

int v8_type_check(const struct v8_heap *heap, uint64_t object, enum v8_constant type)
{
	uint16_t is = 0;
	int r = v8_type_read(heap, object, &is);

	return !r && is != heap->constants[type] ? V8_ODD : r;
}
