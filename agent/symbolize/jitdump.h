/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_SYMBOLIZE_JITDUMP_H
#define PODPROF_SYMBOLIZE_JITDUMP_H

/* The functions in a jitdump: code that a program makes at run time, with lines, as node, the JVM,
 * LLVM, Python and others list it for perf. The dump grows with the program, and is read
 * meanwhile. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct jitdump;
struct work_budget;

/* Bytes of a record that are looked at: the name of a function, and 1,000 of its lines. Reached: a
 * name is cut at CODE_TABLE_NAME_MAX, later lines of the function are left out. The code in a
 * record is not read. */
#define JITDUMP_RECORD_MAX (64u << 10)
/* Bytes read at once, and 32 for each function that is sorted: 0.3 s of CPU time. Reached: the rest
 * is read for the next batch of addresses, `podprof_jitdump_events_total{event="cut"}`. */
#define JITDUMP_READ_MAX   (32u << 20)
/* Functions that are searched one after the other for a function that moves. No known compiler
 * moves functions. Reached: all functions are sorted, at the cost above. */
#define JITDUMP_RECENT_MAX 256

enum jitdump_event {
	JITDUMP_READ,		/* new records were read */
	JITDUMP_REPLACED,	/* another file, or truncated: read from the start */
	JITDUMP_CUT,		/* JITDUMP_READ_MAX */
	JITDUMP_NO_DUMP,	/* not the format's first bytes, or another version */
	JITDUMP_OTHER_MACHINE,	/* of another byte order or processor */
	JITDUMP_INVALID_RECORD, /* left out */
	JITDUMP_BROKEN,		/* a record without a usable length ends the reading */
	JITDUMP_FULL,		/* a function beyond the ceilings of codetable.h */
	JITDUMP_EVENT_MAX,
};

extern const char *const jitdump_event_names[JITDUMP_EVENT_MAX];

/* A function at an address. */
struct jitdump_place {
	const char *function;
	const char *file; /* "" if not known */
	uint32_t line;	  /* 0 if not known */
};

/* @events: JITDUMP_EVENT_MAX counters, borrowed. */
int jitdump_new(uint64_t *events, struct jitdump **ret);
/* NULL is fine. */
void jitdump_free(struct jitdump *j);

/**
 * jitdump_read() - read the complete records that were appended since the last call
 * @fd: any descriptor of the dump. A file that is not the last one's continuation is read from the
 *      start
 *
 * A later function wins over earlier ones, as far as their addresses overlap.
 *
 * Return: 0; -ENOMEM. A file that cannot be read, and an ended budget, leave the names so far.
 */
int jitdump_read(struct jitdump *j, int fd, struct work_budget *work);

/* The function at @pc; its strings are borrowed until the next read. False: none. */
bool jitdump_find(const struct jitdump *j, uint64_t pc, struct jitdump_place *ret);
size_t jitdump_n(const struct jitdump *j);
size_t jitdump_bytes(const struct jitdump *j);

#endif
