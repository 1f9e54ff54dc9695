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

int v8_array_read(const struct v8_heap *heap, uint64_t array, uint32_t *ret)
{
	const int32_t *c = heap->constants;
	uint64_t word;
	int r = v8_word_read(heap, array, (uint64_t)c[V8_ARRAY_N], &word);

	*ret = 0;
	if (r)
		return r;
	if (!c[V8_ARRAY_INT] && !v8_is_integer(word))
		return V8_ODD;
	*ret = c[V8_ARRAY_INT] ? (uint32_t)word : (uint32_t)v8_integer(word);
	return *ret > INT32_MAX ? V8_ODD : 0;
}

int v8_item_read(const struct v8_heap *heap, uint64_t array, uint32_t i, uint64_t *ret)
{
	uint32_t n;
	int r = v8_array_read(heap, array, &n);

	if (!r && i >= n)
		return V8_ODD;
	return r ? r
		 : v8_word_read(heap, array, (uint64_t)heap->constants[V8_ARRAY_DATA] + 8ull * i,
				ret);
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
