/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_GOHEAP_GORUNTIME_FILE_H
#define PODPROF_GOHEAP_GORUNTIME_FILE_H

/*
 * The Go runtime in an ELF file: the version, and the addresses of the variables of the memory
 * profiler and the allocator.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "goheap/govars.h"

struct elffile;

/* The variables, by their names in Go's package runtime. */
enum goruntime_var {
	GORUNTIME_MBUCKETS,	/* head of the list of heap records */
	GORUNTIME_RATE,		/* MemProfileRate, int */
	GORUNTIME_CYCLE,	/* mProfCycle, uint32: cycle << 1 | flushed; Go 1.19 and later */
	GORUNTIME_OLD_CYCLE,	/* mProf, starts with the cycle as uint32; before Go 1.19 */
	GORUNTIME_LINKER_FLAG,	/* disableMemoryProfiling, bool; Go 1.17 and later */
	GORUNTIME_BBUCKETS,	/* head of the list of goroutines' waits */
	GORUNTIME_XBUCKETS,	/* head of the list of mutex holders that others waited for */
	GORUNTIME_BLOCK_RATE,	/* blockprofilerate, uint64; 0: not recorded */
	GORUNTIME_MUTEX_RATE,	/* mutexprofilerate, uint64; 0: not recorded */
	GORUNTIME_TICKS,	/* ticks.val, int64: ticks in a second, 0 until first asked for */
	GORUNTIME_ALLGS,	/* slice of all goroutines: address, length, capacity */
	GORUNTIME_WAIT_REASONS, /* waitReasonStrings, Go strings: the reasons of waits */
	GORUNTIME_VAR_MAX,
};

enum goruntime_source {
	GORUNTIME_FROM_NOWHERE = 0,
	GORUNTIME_FROM_SYMTAB,
	GORUNTIME_FROM_CODE,
	GORUNTIME_FROM_SCAN, /* from a process's memory (gobss.h) */
	GORUNTIME_SOURCE_MAX,
};

/* A variable. The section holds the whole variable; "" if the file has no such section. */
struct goruntime_place {
	uint64_t vaddr;
	enum goruntime_source source;
	char section[32];
};

/* Executable segments of a Go file. Linkers make a single one. Reached: placing the file ignores
 * the others. */
#define GORUNTIME_CODES_MAX 4

/* A segment: @n_bytes of the file from @off on. */
struct goruntime_code {
	uint64_t vaddr;
	uint64_t off;
	uint64_t n_bytes;
};

/* Kept bytes of a version; "go1.27.3 X:boringcrypto" is a long one. Reached: cut. */
#define GORUNTIME_VERSION_MAX 64

/**
 * struct goruntime_file - the contents of an ELF file
 * @version: as the linker stored it ("go1.26.8"), "" if absent; printable ASCII, cut. A hint: the
 *           version may carry a suffix, be "devel ...", or be invented.
 * @unread: no code of the program reads heap profiles, so its linker has turned them off.
 *          GORUNTIME_LINKER_FLAG takes precedence if present.
 * @machine: EM_* of its code
 * @fixed: runs only at its own addresses
 * @table: vaddr of the line table, and @n_funcs in it; 0 if absent
 * @data: vaddr of the runtime's moduledata; 0 if the file does not have it
 * @codes: the first executable segments of the file
 * @disputed: the symbol with the rate's name cannot be the rate, or no second source confirms it:
 *            good enough to read, not to write
 * @heap_stats, @total_alloc: vaddrs of the allocator's counters (gototals.h), 0 if unknown
 * @controller, @heap_live: of the collector's (gototals.h)
 * @sched: of the scheduler's (gototals.h)
 */
struct goruntime_file {
	char version[GORUNTIME_VERSION_MAX];
	struct goruntime_place vars[GORUNTIME_VAR_MAX];
	bool unread;
	bool disputed;
	uint16_t machine;
	bool fixed;
	uint64_t table;
	uint64_t n_funcs;
	uint64_t data;
	struct goruntime_code codes[GORUNTIME_CODES_MAX];
	size_t n_codes;
	uint64_t heap_stats;
	uint64_t total_alloc;
	uint64_t controller;
	uint64_t heap_live;
	struct govars_sched sched;
};

/**
 * goruntime_file_read() - look at a file
 *
 * Return: of enum goruntime_state (goruntime.h) GORUNTIME_OK; GORUNTIME_NO_RUNTIME for a file other
 * than Go, at the cost of the section headers if there are any; GORUNTIME_UNKNOWN_LAYOUT if the
 * list of records or the rate was not found, with the version in *@ret all the same;
 * GORUNTIME_TOO_LARGE if the file takes too much work; -errno.
 */
int goruntime_file_read(const struct elffile *ef, struct goruntime_file *ret);

/* The second number of the version: 26 for "go1.26.8"; 0 if there is none. */
unsigned int goruntime_minor(const struct goruntime_file *file);

bool goruntime_has(const struct goruntime_file *file, enum goruntime_var var);
const char *goruntime_var_name(enum goruntime_var var); /* "runtime.mbuckets" */
size_t goruntime_var_bytes(enum goruntime_var var);
const char *goruntime_source_name(enum goruntime_source source);

#endif
