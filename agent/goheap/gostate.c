// SPDX-License-Identifier: Apache-2.0
#include "goheap/gostate.h"

#include "goheap/buckets.h"
#include "goheap/goruntime.h"
#include "goheap/memory.h"
#include "procmap/maps.h"

int gostate_of_memory(int r)
{
	switch (r) {
	case MEMORY_GONE:
		return GORUNTIME_GONE;
	case MEMORY_DENIED:
		return GORUNTIME_DENIED;
	case MEMORY_UNMAPPED:
		return GORUNTIME_UNKNOWN_LAYOUT;
	default:
		return r;
	}
}

int gostate_of_buckets(int r)
{
	switch (r) {
	case BUCKETS_GONE:
		return GORUNTIME_GONE;
	case BUCKETS_DENIED:
		return GORUNTIME_DENIED;
	case BUCKETS_TOO_LARGE:
		return GORUNTIME_TOO_LARGE;
	case BUCKETS_MALFORMED:
	case BUCKETS_UNKNOWN_LAYOUT:
		return GORUNTIME_UNKNOWN_LAYOUT;
	default:
		return r;
	}
}

int gostate_of_maps(int r)
{
	switch (r) {
	case MAPS_GONE:
		return GORUNTIME_GONE;
	case MAPS_DENIED:
		return GORUNTIME_DENIED;
	case MAPS_TOO_LARGE:
		return GORUNTIME_TOO_LARGE;
	default:
		return r;
	}
}
