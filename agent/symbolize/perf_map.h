/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_SYMBOLIZE_PERF_MAP_H
#define PODPROF_SYMBOLIZE_PERF_MAP_H

/* The functions in a perf map: code that a program makes at run time, as node, the JVM, Python,
 * .NET and others list it. The map grows with the program, and is read meanwhile. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct perf_map;
struct work_budget;

/* Bytes of a line. The longest is a name of a generic type. Reached: the line is left out,
 * `podprof_perf_map_events_total{event="invalid_line"}`. */
#define PERF_MAP_LINE_MAX (64u << 10)
/* Bytes read at once: 0.3 s of CPU time. Reached: the newest bytes are read,
 * `podprof_perf_map_events_total{event="cut"}`. */
#define PERF_MAP_READ_MAX (32u << 20)

enum perf_map_event {
	PERF_MAP_READ,	       /* new bytes were read */
	PERF_MAP_ABSENT,       /* the process has no perf map */
	PERF_MAP_DENIED,       /* the agent may not open the map */
	PERF_MAP_ODD,	       /* no regular file */
	PERF_MAP_FOREIGN,      /* of another user */
	PERF_MAP_OLD,	       /* last written before the program began */
	PERF_MAP_REPLACED,     /* another file, or truncated: read from the start */
	PERF_MAP_CUT,	       /* PERF_MAP_READ_MAX */
	PERF_MAP_INVALID_LINE, /* not understood, or too long */
	PERF_MAP_FULL,	       /* a line beyond the ceilings of codetable.h */
	PERF_MAP_EVENT_MAX,
};

extern const char *const perf_map_event_names[PERF_MAP_EVENT_MAX];

/* @events: PERF_MAP_EVENT_MAX counters, borrowed. */
int perf_map_new(uint64_t *events, struct perf_map **ret);
/* NULL is fine. */
void perf_map_free(struct perf_map *m);

/**
 * perf_map_read() - read what was appended to the map since the last call
 * @fd: any descriptor of the map. A file that is not the last one's continuation is read from the
 *      start
 *
 * A later line wins over earlier ones, as far as their addresses overlap. The last line may lack
 * its end: it is read with the next call.
 *
 * Return: 0; -ENOMEM. A file that cannot be read, and an ended budget, leave the names so far.
 */
int perf_map_read(struct perf_map *m, int fd, struct work_budget *work);

/* The function at @pc, borrowed until the next read; NULL: none. */
const char *perf_map_find(const struct perf_map *m, uint64_t pc);
size_t perf_map_n(const struct perf_map *m);
size_t perf_map_bytes(const struct perf_map *m);

#endif
