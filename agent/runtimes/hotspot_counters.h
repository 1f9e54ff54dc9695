/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_RUNTIMES_HOTSPOT_COUNTERS_H
#define PODPROF_RUNTIMES_HOTSPOT_COUNTERS_H

/* HotSpot's performance counters, for jstat and others: a memory area with a header and named
 * entries. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of the area that are searched. HotSpot's default is 32 KB, of which 12 KB are in use; it
 * makes its own counters first. Reached: counters behind are not found. */
#define HOTSPOT_COUNTERS_BYTES_MAX (64u << 10)

/* Safepoints so far. */
#define HOTSPOT_COUNTERS_SAFEPOINTS "sun.rt.safepoints"

/**
 * hotspot_counters_find() - a counter of 64 bits
 * @bytes: the area from its beginning on, of which @n are there
 * @ret:   the place of the counter, a multiple of 8, in @bytes
 *
 * Return: false without such a counter, or if the area is of another format or malformed.
 * Source: HotSpot's perfMemory.hpp, version 2.0.
 */
bool hotspot_counters_find(const uint8_t *bytes, size_t n, const char *name, size_t *ret);

#endif
