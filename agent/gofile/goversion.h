/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_GOFILE_GOVERSION_H
#define PODPROF_GOFILE_GOVERSION_H

/*
 * The differences between the releases of Go: one row for each minor release, in goversion.c.
 *
 * The version in a file is a hint: it may be missing, "devel ...", or a vendor's own text. So
 * readers match the bytes against all rows if the bytes are distinctive (table magic, gofunc,
 * counters, names of functions). They use the row of the version only if nothing else distinguishes
 * the releases (fields of g, a record without counts).
 *
 * A release newer than the last row gets the last row, and each reader checks its input. An unknown
 * magic gives no names and no unwind rows. Inconsistent heap records or implausible goroutines are
 * "unknown_layout". Counters that disagree with each other are left out. A release before the first
 * row gets the first row.
 *
 * There are no columns for facts that the code of a program reveals, such as the form of frames
 * (unwind/goarch_*.c), the cycle's variable before 1.19 (goheap/govars.c), two lists of free
 * goroutines since 1.25, and integer counts of waits in 1.16 (goheap/contention.c).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gofile/gomodule.h"

/* First and last row, for help texts. */
#define GOVERSION_RANGE "1.16 to 1.27"

/* Room for all rows: bytes of moduledata up to the end of the word after gofunc, words of a
 * delta of heapStats, totalAlloc's offset in gcController, bytes of a g up to the end of the last
 * field. */
#define GOVERSION_MODULE_BYTES 384u
#define GOVERSION_STATS_WORDS  147
#define GOVERSION_TOTAL_ALLOC  328
#define GOVERSION_G_BYTES      320u

/* Functions of the runtime with a new name, or a successor, in some release. */
enum goversion_func {
	GOVERSION_READ_HEAP,   /* reads heap profiles */
	GOVERSION_READ_BLOCK,  /* loads bbuckets */
	GOVERSION_READ_MUTEX,  /* loads xbuckets */
	GOVERSION_BLOCK_EVENT, /* loads blockprofilerate */
	GOVERSION_MUTEX_EVENT, /* loads mutexprofilerate */
	GOVERSION_TICKS,       /* loads ticks.val */
	GOVERSION_MALLOC,      /* loads MemProfileRate */
	GOVERSION_GO_EXIT,     /* takes the address of sched.ngsys */
	GOVERSION_FUNCS,
};
/* Names of a function in all releases. */
#define GOVERSION_NAMES 3

/* memstats.heapStats: words of one of the three deltas, and the index of tinyAllocCount in a
 * delta. 0: unknown. */
struct goversion_stats {
	uint16_t words;
	uint16_t first;
};

/**
 * struct goversion_pacer - offsets in gcController; 0: absent or unknown
 * @total_alloc: since 1.19 all others are relative to it (goheap/gototals.c)
 * @headroom_percent: of the memory limit; 0: 1 MiB
 * @heap_live, @goal, @marked: before 1.19
 */
struct goversion_pacer {
	uint16_t total_alloc;
	uint16_t headroom_percent;
	uint16_t heap_live;
	uint16_t goal;
	uint16_t marked;
};

/* Offsets in a goroutine's description; the stack's bounds and "sched" are the same in all
 * releases. */
struct goversion_g {
	uint16_t syscall_sp; /* syscallpc follows */
	uint16_t status;
	uint16_t id;
	uint16_t wait_reason;
	uint16_t go_pc;
	uint16_t start_pc;
};

/**
 * struct goversion - one minor release, 1.@minor
 * @magic: of the line table
 * @form: of the line table
 * @gofunc: offset in moduledata; 0: absent
 * @gofunc_ends: function data is at the end of the line table, and the word after gofunc is the end
 *               of the data; also, the line table's header lacks the address of the code
 * @linker_flag: the linker turns heap profiles off in programs without readers of them
 * @slot_words: of a heap record's counters: 4 with bytes, 2 without
 * @mutex_raw: the reader scales mutex records
 * @system: bytes from sched.ngsys to sched.gFree
 * @names: function names introduced in this release
 */
struct goversion {
	unsigned int minor;
	uint32_t magic;
	enum gomodule_form form;
	uint16_t gofunc;
	bool gofunc_ends;
	bool linker_flag;
	uint8_t slot_words;
	bool mutex_raw;
	uint16_t system;
	struct goversion_stats stats;
	struct goversion_pacer pacer;
	struct goversion_g g;
	const char *names[GOVERSION_FUNCS];
};

/* The minor number of a version as the linker stores it: 26 for "go1.26.8", and for "devel
 * go1.26-..."; 0 if there is none. */
unsigned int goversion_minor(const char *version);
/* The row of 1.@minor, or the nearest one; NULL for 0. */
const struct goversion *goversion_find(unsigned int minor);

/* All rows, from the newest to the oldest: for (v = goversion_newest(); v; v =
 * goversion_older(v)). */
const struct goversion *goversion_newest(void);
const struct goversion *goversion_older(const struct goversion *v);

/* All names of a function, the newest first. Returns their number. */
size_t goversion_names(enum goversion_func func, const char *ret[GOVERSION_NAMES]);

#endif
