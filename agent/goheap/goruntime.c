// SPDX-License-Identifier: Apache-2.0
/*
 * A Go runtime in a process.
 *
 * The load bias is taken from the executable mappings, by PT_LOAD: Go's own linker bases position
 * independent programs at 0x400000, so the first mapping's address is not it.
 */
#include "goheap/goruntime.h"

#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/root.h"
#include "base/text.h"
#include "goheap/memory.h"
#include "procmap/elffile.h"
#include "procmap/maps.h"

const char *goruntime_state_name(int state)
{
	static const char *const names[GORUNTIME_STATE_MAX] = {
		[GORUNTIME_OK] = "ok",
		[GORUNTIME_NO_SAMPLES_YET] = "no_samples_yet",
		[GORUNTIME_DISABLED_BY_LINKER] = "disabled_by_linker",
		[GORUNTIME_DISABLED_BY_PROGRAM] = "disabled_by_program",
		[GORUNTIME_FORCED] = "forced",
		[GORUNTIME_DENIED] = "denied",
		[GORUNTIME_NO_RUNTIME] = "no_runtime",
		[GORUNTIME_UNKNOWN_LAYOUT] = "unknown_layout",
		[GORUNTIME_GONE] = "gone",
		[GORUNTIME_TOO_LARGE] = "too_large",
	};

	return state >= 0 && state < GORUNTIME_STATE_MAX ? names[state] : "error";
}

/* ---------------------------------------------------------------- a process */

static int state_of_root(int r)
{
	switch (r) {
	case ROOT_GONE:
		return GORUNTIME_GONE;
	case ROOT_DENIED:
		return GORUNTIME_DENIED;
	case ROOT_TOO_LARGE:
	case ROOT_NOT_FILE:
		return GORUNTIME_NO_RUNTIME;
	default:
		return r;
	}
}

static int state_of_maps(int r)
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

/* Whether /proc/PID/exe, as the link shows it, is this entry's file. */
static bool is_executable(const struct maps_entry *e, struct text exe)
{
	if (e->kind != MAPS_FILE)
		return false;
	if (e->deleted && !text_suffix(&exe, " (deleted)"))
		return false;
	return text_is(&exe, e->path);
}

/* The bias by one executable mapping: false if no segment of the file has its offset. */
static bool bias_of(const struct elffile *ef, const struct maps_entry *e, uint64_t *ret)
{
	size_t n;
	const struct elffile_segment *segments = elffile_segments(ef, &n);

	for (size_t i = 0; i < n; i++) {
		const struct elffile_segment *s = &segments[i];
		uint64_t first = s->off & ~(uint64_t)4095; /* a mapping starts with a page */

		if (!(s->flags & PF_X) || e->offset < first || e->offset - first >= s->filesz)
			continue;
		*ret = e->start - (s->vaddr + (e->offset - s->off));
		return true;
	}
	return false;
}

/* The kernel maps all of a file with one bias. Where its executable mappings disagree, somebody has
 * mapped it again, and which one runs is not known. */
static int find_bias(const struct elffile *ef, const struct maps *maps, const char *exe,
		     uint64_t *ret)
{
	bool found = false;
	uint64_t bias = 0;

	for (size_t i = 0; i < maps->n; i++) {
		const struct maps_entry *e = &maps->items[i];
		uint64_t one;

		if (!(e->prot & MAPS_X) || !is_executable(e, text_of(exe)))
			continue;
		if (!bias_of(ef, e, &one) || (found && one != bias))
			return GORUNTIME_UNKNOWN_LAYOUT;
		bias = one;
		found = true;
	}
	if (!found || (elffile_type(ef) == ET_EXEC && bias != 0))
		return GORUNTIME_UNKNOWN_LAYOUT;
	*ret = bias;
	return GORUNTIME_OK;
}

static int open_executable(const struct root *proc, const struct pid_id *id, struct elffile **ret)
{
	_cleanup_(close_fdp) int fd = -1;
	char path[32];
	int r;

	snprintf(path, sizeof(path), "%" PRIu64 "/exe", id->pid);
	r = state_of_root(root_open_file(proc, path, &fd));
	if (r)
		return r;
	r = elffile_open(fd, ret);
	if (!r)
		fd = -1; /* taken */
	return r > 0 ? GORUNTIME_NO_RUNTIME : r;
}

static int read_bias(const struct root *proc, const struct pid_id *id, const struct elffile *ef,
		     uint64_t *ret)
{
	_cleanup_(buf_deinit) struct buf exe = BUF_INIT(PATH_MAX + sizeof(" (deleted)"));
	_cleanup_(maps_deinit) struct maps maps = {0};
	char path[32];
	int r;

	snprintf(path, sizeof(path), "%" PRIu64 "/exe", id->pid);
	r = state_of_root(root_read_link(proc, path, &exe));
	if (!r)
		r = state_of_maps(maps_read(proc, id, &maps));
	if (r)
		return r;
	r = find_bias(ef, &maps, exe.data, ret);
	/* a process that ends while its mappings are read has only some of them */
	if (r == GORUNTIME_UNKNOWN_LAYOUT && state_of_root(root_read_link(proc, path, &exe)))
		return GORUNTIME_GONE;
	return r;
}

static void elffile_freep(struct elffile **ef)
{
	elffile_free(*ef);
}

int goruntime_find(const struct root *proc, const struct pid_id *id, struct goruntime *ret)
{
	_cleanup_(elffile_freep) struct elffile *ef = NULL;
	struct goruntime rt = {0};
	int state, r = open_executable(proc, id, &ef);

	if (r)
		return r;
	state = goruntime_file_read(ef, &rt.file);
	if (state != GORUNTIME_OK && state != GORUNTIME_UNKNOWN_LAYOUT)
		return state;
	r = read_bias(proc, id, ef, &rt.bias);
	if (r == GORUNTIME_UNKNOWN_LAYOUT)
		state = r;
	else if (r)
		return r;
	r = pid_check(proc, id);
	if (r)
		return r < 0 ? r : r == PID_DENIED ? GORUNTIME_DENIED : GORUNTIME_GONE;
	*ret = rt;
	return state;
}

uint64_t goruntime_addr(const struct goruntime *rt, enum goruntime_var var)
{
	return goruntime_has(&rt->file, var) ? rt->file.vars[var].vaddr + rt->bias : 0;
}

/* ---------------------------------------------------------------- now */

int goruntime_read_now(const struct goruntime *rt, struct memory *m, struct goruntime_now *ret)
{
	bool old = !goruntime_has(&rt->file, GORUNTIME_CYCLE);
	enum goruntime_var cycle = old ? GORUNTIME_OLD_CYCLE : GORUNTIME_CYCLE;
	uint64_t mbuckets = 0, cycle_word = 0;
	int64_t rate = 0;
	uint8_t flag = rt->file.unread;
	struct memory_range ranges[] = {
		{goruntime_addr(rt, GORUNTIME_MBUCKETS), &mbuckets, sizeof(mbuckets)},
		{goruntime_addr(rt, GORUNTIME_RATE), &rate, sizeof(rate)},
		{goruntime_addr(rt, cycle), &cycle_word, goruntime_var_bytes(cycle)},
		{goruntime_addr(rt, GORUNTIME_LINKER_FLAG), &flag, sizeof(flag)},
	};
	size_t n = goruntime_has(&rt->file, GORUNTIME_LINKER_FLAG) ? 4 : 3;
	int r = memory_read_ranges(m, ranges, n);

	if (r)
		return r;
	*ret = (struct goruntime_now){
		.mbuckets = mbuckets,
		.rate = rate,
		.cycle = old ? (uint32_t)cycle_word : (uint32_t)cycle_word >> 1,
		.cycle_word = cycle_word,
		.disabled_by_linker = flag != 0,
	};
	return 0;
}

enum goruntime_state goruntime_state_now(const struct goruntime_now *now)
{
	if (now->rate <= 0)
		return now->disabled_by_linker ? GORUNTIME_DISABLED_BY_LINKER
					       : GORUNTIME_DISABLED_BY_PROGRAM;
	return now->mbuckets ? GORUNTIME_OK : GORUNTIME_NO_SAMPLES_YET;
}
