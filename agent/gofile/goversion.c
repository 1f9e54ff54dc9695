// SPDX-License-Identifier: Apache-2.0
/*
 * How to add a release: copy the last row, change the number and run `make check-go` with the
 * release in GO_VERSIONS. The check compares all data read with the program's own data; a failing
 * test names the column. Update GOVERSION_RANGE and the comments in goversion.h with the row.
 *
 * Sources: the Go project's src/runtime (symtab.go, runtime2.go, mprof.go, mstats.go, mgcpacer.go,
 * proc.go, malloc.go, cpuprof.go), and data read from programs of each release (DWARF, code,
 * memory). Names: releases 1.16.15 to 1.27.3.
 */
#include "gofile/goversion.h"

#include "base/cleanup.h"
#include "base/strview.h"

#define MAGIC_1_16 0xfffffffau
#define MAGIC_1_18 0xfffffff0u
#define MAGIC_1_20 0xfffffff1u

static const struct goversion rows[] = {
	{
		.minor = 16,
		.magic = MAGIC_1_16,
		.form = GOMODULE_1_16,
		.slot_words = 4,
		.mutex_raw = true,
		.system = 80,
		.g = {112, 144, 152, 176, 280, 296},
		.names = {[GOVERSION_READ_HEAP] = "runtime.MemProfile",
			  [GOVERSION_READ_BLOCK] = "runtime.BlockProfile",
			  [GOVERSION_READ_MUTEX] = "runtime.MutexProfile",
			  [GOVERSION_BLOCK_EVENT] = "runtime.blocksampled",
			  [GOVERSION_MUTEX_EVENT] = "sync.event",
			  [GOVERSION_TICKS] = "runtime.tickspersecond",
			  [GOVERSION_MALLOC] = "runtime.mallocgc",
			  [GOVERSION_GO_EXIT] = "runtime.goexit0"},
	},
	{
		.minor = 17,
		.magic = MAGIC_1_16,
		.form = GOMODULE_1_16,
		.linker_flag = true,
		.slot_words = 4,
		.mutex_raw = true,
		.system = 80,
		.stats = {147, 6},
		.pacer = {.heap_live = 48, .goal = 32, .marked = 64},
		.g = {112, 144, 152, 176, 296, 312},
		.names = {[GOVERSION_BLOCK_EVENT] = "runtime.blockevent"},
	},
	{
		.minor = 18,
		.magic = MAGIC_1_18,
		.form = GOMODULE_1_18,
		.gofunc = 304,
		.linker_flag = true,
		.slot_words = 4,
		.mutex_raw = true,
		.system = 80,
		.stats = {147, 6},
		.pacer = {.goal = 104, .marked = 168},
		.g = {112, 144, 152, 176, 296, 312},
	},
	{
		.minor = 19,
		.magic = MAGIC_1_18,
		.form = GOMODULE_1_18,
		.gofunc = 304,
		.linker_flag = true,
		.slot_words = 4,
		.mutex_raw = true,
		.system = 80,
		.stats = {147, 6},
		.pacer = {.total_alloc = 328},
		.g = {112, 144, 152, 176, 296, 312},
	},
	{
		.minor = 20,
		.magic = MAGIC_1_20,
		.form = GOMODULE_1_20,
		.gofunc = 320,
		.linker_flag = true,
		.slot_words = 4,
		.system = 88,
		.stats = {147, 6},
		.pacer = {.total_alloc = 272},
		.g = {112, 144, 152, 176, 296, 312},
	},
	{
		.minor = 21,
		.magic = MAGIC_1_20,
		.form = GOMODULE_1_20,
		.gofunc = 320,
		.linker_flag = true,
		.slot_words = 4,
		.system = 88,
		.stats = {147, 6},
		.pacer = {.total_alloc = 296, .headroom_percent = 3},
		.g = {112, 144, 152, 176, 280, 296},
	},
	{
		.minor = 22,
		.magic = MAGIC_1_20,
		.form = GOMODULE_1_20,
		.gofunc = 320,
		.linker_flag = true,
		.slot_words = 4,
		.system = 88,
		.stats = {147, 6},
		.pacer = {.total_alloc = 296, .headroom_percent = 3},
		.g = {112, 144, 152, 176, 280, 296},
		.names = {[GOVERSION_TICKS] = "runtime.ticksPerSecond",
			  [GOVERSION_GO_EXIT] = "runtime.gdestroy"},
	},
	{
		.minor = 23,
		.magic = MAGIC_1_20,
		.form = GOMODULE_1_20,
		.gofunc = 320,
		.linker_flag = true,
		.slot_words = 4,
		.system = 88,
		.stats = {147, 6},
		.pacer = {.total_alloc = 296, .headroom_percent = 3},
		.g = {112, 152, 160, 184, 288, 304},
		.names = {[GOVERSION_READ_HEAP] = "runtime.memProfileInternal",
			  [GOVERSION_READ_BLOCK] = "runtime.blockProfileInternal",
			  [GOVERSION_READ_MUTEX] = "runtime.mutexProfileInternal"},
	},
	{
		.minor = 24,
		.magic = MAGIC_1_20,
		.form = GOMODULE_1_20,
		.gofunc = 320,
		.linker_flag = true,
		.slot_words = 4,
		.system = 88,
		.stats = {147, 6},
		.pacer = {.total_alloc = 296, .headroom_percent = 3},
		.g = {112, 152, 160, 184, 288, 304},
		.names = {[GOVERSION_MALLOC] = "runtime.mallocgcLarge"},
	},
	{
		.minor = 25,
		.magic = MAGIC_1_20,
		.form = GOMODULE_1_20,
		.gofunc = 320,
		.linker_flag = true,
		.slot_words = 4,
		.system = 88,
		.stats = {146, 5},
		.pacer = {.total_alloc = 296, .headroom_percent = 3},
		.g = {104, 144, 152, 176, 280, 296},
	},
	{
		.minor = 26,
		.magic = MAGIC_1_20,
		.form = GOMODULE_1_20,
		.gofunc = 320,
		.gofunc_ends = true,
		.linker_flag = true,
		.slot_words = 4,
		.system = 88,
		.stats = {146, 5},
		.pacer = {.total_alloc = 296, .headroom_percent = 3},
		.g = {104, 144, 152, 176, 288, 304},
	},
	{
		.minor = 27,
		.magic = MAGIC_1_20,
		.form = GOMODULE_1_20,
		.gofunc = 344,
		.gofunc_ends = true,
		.linker_flag = true,
		.slot_words = 2,
		.system = 88,
		.stats = {146, 5},
		.pacer = {.total_alloc = 296, .headroom_percent = 3},
		.g = {104, 144, 152, 176, 288, 304},
		.names = {[GOVERSION_MUTEX_EVENT] = "runtime.mutexevent"},
	},
};

unsigned int goversion_minor(const char *version)
{
	struct strview t = strview_of(version), word;
	uint64_t minor;

	if (!strview_word(&t, &word) || (strview_is(&word, "devel") && !strview_word(&t, &word)))
		return 0;
	if (!strview_prefix(&word, "go1.") || !strview_u64(&word, 10, &minor) || minor > 1000)
		return 0;
	return (unsigned int)minor;
}

const struct goversion *goversion_find(unsigned int minor)
{
	const struct goversion *found = &rows[0];

	if (!minor)
		return NULL;
	for (size_t i = 0; i < array_size(rows); i++)
		if (rows[i].minor <= minor)
			found = &rows[i];
	return found;
}

const struct goversion *goversion_newest(void)
{
	return &rows[array_size(rows) - 1];
}

const struct goversion *goversion_older(const struct goversion *v)
{
	return v == rows ? NULL : v - 1;
}

size_t goversion_names(enum goversion_func func, const char *ret[GOVERSION_NAMES])
{
	const struct goversion *v;
	size_t n = 0;

	for (v = goversion_newest(); v && n < GOVERSION_NAMES; v = goversion_older(v))
		if (v->names[func])
			ret[n++] = v->names[func];
	return n;
}
