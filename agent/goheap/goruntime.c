// SPDX-License-Identifier: Apache-2.0
/*
 * Finding the memory profiler's variables of a Go program.
 *
 * Every program that Go's own toolchain links carries the version of Go in a section
 * .go.buildinfo, stripped or not, and that is how one is told from all others: by the section
 * headers alone. The section starts with
 *
 *	"\xff Go buildinf:"   14 bytes
 *	pointer size          1 byte
 *	flags                 1 byte; 1: big-endian, 2: the strings follow (Go 1.18 and later)
 *
 * and then has at offset 32 the version as a LEB128 length and text, or, without flag 2, at offset
 * 16 the address of a Go string (address and length, 8 bytes each). Source: debug/buildinfo of Go's
 * standard library.
 *
 * A file without sections is searched for Go's line table (gofile/gomodule.h), which costs as much
 * as reading it.
 *
 * The variables are ordinary data with a fixed name in every Go from 1.16 to 1.27, in .symtab as
 * local or global symbols; only the one with the garbage collection cycle has changed its name, in
 * 1.19. A program linked with -s, or stripped, has no .symtab: there the runtime's own code tells
 * where they are (govars.h).
 *
 * A symbol is a claim of the file's maker. It counts only if it has the variable's size and lies
 * inside one of the data sections that Go keeps such variables in, since one of them may be written
 * to (goheap/force.h). Where the code says something else than the symbol, neither counts.
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
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/cursor.h"
#include "base/root.h"
#include "base/text.h"
#include "gofile/gomodule.h"
#include "goheap/govars.h"
#include "goheap/memory.h"
#include "procmap/elffile.h"
#include "procmap/elfsym.h"
#include "procmap/maps.h"

#define BUILDINFO_MAGIC	      "\xff Go buildinf:"
#define BUILDINFO_MAGIC_BYTES 14
#define BUILDINFO_POINTER     16 /* offset of the address of the version, without flag 2 */
#define BUILDINFO_INLINE      32 /* offset of the version itself, with it */
#define BUILDINFO_F_BIG	      1
#define BUILDINFO_F_INLINE    2

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

static const struct var_info {
	const char *name;
	size_t size;
} vars[GORUNTIME_VAR_MAX] = {
	[GORUNTIME_MBUCKETS] = {"runtime.mbuckets", 8},
	[GORUNTIME_RATE] = {"runtime.MemProfileRate", 8},
	[GORUNTIME_CYCLE] = {"runtime.mProfCycle", 4},
	[GORUNTIME_OLD_CYCLE] = {"runtime.mProf", 8},
	[GORUNTIME_LINKER_FLAG] = {"runtime.disableMemoryProfiling", 1},
};

const char *goruntime_var_name(enum goruntime_var var)
{
	return vars[var].name;
}

const char *goruntime_source_name(enum goruntime_source source)
{
	static const char *const names[GORUNTIME_SOURCE_MAX] = {
		[GORUNTIME_FROM_NOWHERE] = "none",
		[GORUNTIME_FROM_SYMTAB] = "symtab",
		[GORUNTIME_FROM_CODE] = "code",
	};

	return names[source];
}

/* ---------------------------------------------------------------- version */

/* A version is for people and for guessing: what is not printable ASCII ends it. */
static void keep_version(const uint8_t *s, size_t n, char ret[GORUNTIME_VERSION_MAX])
{
	size_t len = 0;

	while (len < n && len < GORUNTIME_VERSION_MAX - 1 && s[len] >= ' ' && s[len] < 0x7f) {
		ret[len] = (char)s[len];
		len++;
	}
	ret[len] = '\0';
}

static int read_at_vaddr(const struct elffile *ef, uint64_t vaddr, void *ret, size_t n)
{
	uint64_t off;

	if (!elffile_off_of_vaddr(ef, vaddr, &off))
		return ELFFILE_MALFORMED;
	return elffile_read(ef, off, ret, n);
}

static int read_pointer_version(const struct elffile *ef, uint64_t string_vaddr,
				char ret[GORUNTIME_VERSION_MAX])
{
	uint8_t bytes[GORUNTIME_VERSION_MAX];
	uint64_t string[2]; /* address, length */
	size_t n;
	int r = read_at_vaddr(ef, string_vaddr, string, sizeof(string));

	if (r)
		return r;
	n = string[1] < sizeof(bytes) ? (size_t)string[1] : sizeof(bytes);
	r = n ? read_at_vaddr(ef, string[0], bytes, n) : 0;
	if (!r)
		keep_version(bytes, n, ret);
	return r;
}

/* Outcomes of elffile_*() are all the same here: no version. */
static int read_version(const struct elffile *ef, const struct elffile_section *info,
			char ret[GORUNTIME_VERSION_MAX])
{
	uint8_t bytes[BUILDINFO_INLINE + 2 + GORUNTIME_VERSION_MAX] = {0};
	size_t n = info->size < sizeof(bytes) ? (size_t)info->size : sizeof(bytes);
	struct cursor c;
	uint8_t pointer_size, flags;
	uint64_t value;
	int r = elffile_read(ef, info->off, bytes, n);

	if (r || n < BUILDINFO_INLINE || memcmp(bytes, BUILDINFO_MAGIC, BUILDINFO_MAGIC_BYTES) != 0)
		return r;
	cursor_init(&c, bytes, n);
	if (!cursor_skip(&c, BUILDINFO_MAGIC_BYTES) || !cursor_u8(&c, &pointer_size) ||
	    !cursor_u8(&c, &flags) || (flags & BUILDINFO_F_BIG))
		return 0;
	if (!(flags & BUILDINFO_F_INLINE)) {
		if (pointer_size != 8 || !cursor_seek(&c, BUILDINFO_POINTER) ||
		    !cursor_u64(&c, &value))
			return 0;
		return read_pointer_version(ef, value, ret);
	}
	if (cursor_seek(&c, BUILDINFO_INLINE) && cursor_uleb(&c, &value))
		keep_version(c.pos, value < cursor_left(&c) ? value : cursor_left(&c), ret);
	return 0;
}

unsigned int goruntime_minor(const struct goruntime_file *file)
{
	struct text t = text_of(file->version), word;
	uint64_t minor;

	if (!text_word(&t, &word) || (text_is(&word, "devel") && !text_word(&t, &word)))
		return 0;
	if (!text_prefix(&word, "go1.") || !text_u64(&word, 10, &minor) || minor > 1000)
		return 0;
	return (unsigned int)minor;
}

/* ---------------------------------------------------------------- variables */

/* The data section that holds all of a variable, by name; "" for none. */
static const char *section_at(const struct elffile *ef, uint64_t vaddr, uint64_t size)
{
	static const char *const names[] = {".noptrdata", ".data", ".bss", ".noptrbss"};
	struct elffile_section section;

	for (size_t i = 0; i < array_size(names); i++)
		if (elffile_section(ef, names[i], &section) == 0 && vaddr >= section.vaddr &&
		    size <= section.size && vaddr - section.vaddr <= section.size - size)
			return names[i];
	return "";
}

/* The same for a symbol, which also says in which section it is. */
static const char *section_of(const struct elffile *ef, const struct elfsym *sym)
{
	const char *name = section_at(ef, sym->vaddr, sym->size);
	struct elffile_section section;

	if (*name && elffile_section(ef, name, &section) == 0 && section.index == sym->section)
		return name;
	return "";
}

/* Two addresses under one name are none: it is not known which one the program uses. */
static void keep_place(const struct elffile *ef, enum goruntime_var var, const struct elfsym *sym,
		       struct goruntime_place *ret)
{
	const char *section = section_of(ef, sym);

	if (sym->n != 1 || sym->size != vars[var].size || !*section)
		return;
	ret->vaddr = sym->vaddr;
	ret->source = GORUNTIME_FROM_SYMTAB;
	snprintf(ret->section, sizeof(ret->section), "%s", section);
}

static bool has_place(const struct goruntime_file *file, enum goruntime_var var)
{
	return file->vars[var].source != GORUNTIME_FROM_NOWHERE;
}

static int find_symbols(const struct elffile *ef, struct goruntime_file *ret)
{
	const char *names[GORUNTIME_VAR_MAX];
	struct elfsym syms[GORUNTIME_VAR_MAX];
	int r;

	for (size_t i = 0; i < GORUNTIME_VAR_MAX; i++)
		names[i] = vars[i].name;
	r = elfsym_find(ef, names, GORUNTIME_VAR_MAX, syms);
	if (r)
		return r < 0 ? r : 0; /* there are none, or the table is broken */
	for (size_t i = 0; i < GORUNTIME_VAR_MAX; i++)
		keep_place(ef, (enum goruntime_var)i, &syms[i], &ret->vars[i]);
	return 0;
}

/* What the code says of one variable, beside what a symbol may have said. */
static void merge_place(const struct elffile *ef, uint64_t vaddr, size_t size,
			struct goruntime_place *place)
{
	if (!vaddr)
		return;
	if (place->source == GORUNTIME_FROM_SYMTAB) {
		if (place->vaddr != vaddr)
			*place = (struct goruntime_place){0};
		return;
	}
	place->vaddr = vaddr;
	place->source = GORUNTIME_FROM_CODE;
	snprintf(place->section, sizeof(place->section), "%s", section_at(ef, vaddr, size));
}

static int find_in_code(const struct elffile *ef, const struct gomodule *module,
			struct goruntime_file *ret)
{
	struct govars found;
	int r = govars_find(ef, module, &found);

	if (r)
		return r < 0 ? r : 0;
	merge_place(ef, found.mbuckets, 8, &ret->vars[GORUNTIME_MBUCKETS]);
	merge_place(ef, found.rate, 8, &ret->vars[GORUNTIME_RATE]);
	if (found.old_cycle)
		merge_place(ef, found.cycle, 8, &ret->vars[GORUNTIME_OLD_CYCLE]);
	else
		merge_place(ef, found.cycle, 4, &ret->vars[GORUNTIME_CYCLE]);
	/* before totalAlloc there is one release of which the counters' layout is known */
	if (found.total_alloc || goruntime_minor(ret) > 16) {
		ret->heap_stats = found.heap_stats;
		ret->total_alloc = found.total_alloc;
	}
	ret->unread = !found.can_profile && goruntime_minor(ret) != 16; /* it was new in 1.17 */
	return 0;
}

/* @module is NULL where the tables were not found. */
static int find_vars(const struct elffile *ef, const struct gomodule *module,
		     struct goruntime_file *ret)
{
	int r = find_symbols(ef, ret);

	if (!r && module)
		r = find_in_code(ef, module, ret);
	if (r)
		return r;
	if (has_place(ret, GORUNTIME_MBUCKETS) && has_place(ret, GORUNTIME_RATE) &&
	    (has_place(ret, GORUNTIME_CYCLE) || has_place(ret, GORUNTIME_OLD_CYCLE)))
		return GORUNTIME_OK;
	return GORUNTIME_UNKNOWN_LAYOUT;
}

static bool has_sections(const struct elffile *ef)
{
	struct elffile_section section;

	return elffile_section_at(ef, 1, &section) == 0;
}

static bool has_go_section(const struct elffile *ef)
{
	static const char *const names[] = {".go.buildinfo", ".gopclntab",
					    ".data.rel.ro.gopclntab"};
	struct elffile_section section;

	for (size_t i = 0; i < array_size(names); i++)
		if (elffile_section(ef, names[i], &section) == 0)
			return true;
	return false;
}

int goruntime_file_read(const struct elffile *ef, struct goruntime_file *ret)
{
	struct goruntime_file file = {0};
	struct elffile_section info;
	struct gomodule module;
	bool has_module;
	int r;

	if (has_sections(ef) && !has_go_section(ef))
		return GORUNTIME_NO_RUNTIME;
	r = gomodule_find(ef, &module);
	has_module = r == 0;
	if (r > 0 && !has_sections(ef))
		return GORUNTIME_NO_RUNTIME;
	if (r >= 0 && elffile_section(ef, ".go.buildinfo", &info) == 0)
		r = read_version(ef, &info, file.version);
	if (r >= 0)
		r = find_vars(ef, has_module ? &module : NULL, &file);
	if (r >= 0)
		*ret = file;
	return r;
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
	return has_place(&rt->file, var) ? rt->file.vars[var].vaddr + rt->bias : 0;
}

/* ---------------------------------------------------------------- now */

int goruntime_read_now(const struct goruntime *rt, struct memory *m, struct goruntime_now *ret)
{
	bool old = !has_place(&rt->file, GORUNTIME_CYCLE);
	enum goruntime_var cycle = old ? GORUNTIME_OLD_CYCLE : GORUNTIME_CYCLE;
	uint64_t mbuckets = 0, cycle_word = 0;
	int64_t rate = 0;
	uint8_t flag = rt->file.unread;
	struct memory_range ranges[] = {
		{goruntime_addr(rt, GORUNTIME_MBUCKETS), &mbuckets, sizeof(mbuckets)},
		{goruntime_addr(rt, GORUNTIME_RATE), &rate, sizeof(rate)},
		{goruntime_addr(rt, cycle), &cycle_word, vars[cycle].size},
		{goruntime_addr(rt, GORUNTIME_LINKER_FLAG), &flag, sizeof(flag)},
	};
	size_t n = has_place(&rt->file, GORUNTIME_LINKER_FLAG) ? 4 : 3;
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
