// SPDX-License-Identifier: Apache-2.0
/*
 * Finding the memory profiler's variables in a Go program's file.
 *
 * Every program linked by Go's own toolchain, stripped or not, has the version of Go in a section
 * .go.buildinfo. So the section headers alone distinguish Go programs from others. The section
 * starts with
 *
 *   "\xff Go buildinf:"   14 bytes
 *   pointer size          1 byte
 *   flags                 1 byte; 1: big-endian, 2: the strings follow (Go 1.18 and later)
 *
 * With flag 2 the version is at offset 32, as a LEB128 length and text. Without it, the address of
 * a Go string is at offset 16 (address and length, 8 bytes each). Source: debug/buildinfo of Go's
 * standard library.
 *
 * A file without sections is searched for Go's line table (gofile/gomodule.h), at the cost of
 * reading the whole file, and then for the version in its data.
 *
 * The variables are ordinary data with a fixed name in every release, local or global symbols in
 * .symtab. Only the variable of the garbage collection cycle was renamed, in 1.19. A program linked
 * with -s, or stripped, has no .symtab; there the runtime's own code reveals the addresses
 * (govars.h).
 *
 * A symbol is an unverified claim. podprof accepts a symbol only with the variable's size and
 * inside one of Go's data sections for such variables, because podprof may write to one of the
 * variables (goheap/force.h). If code and symbol disagree, podprof uses neither.
 */
#include "goheap/goruntime_file.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/cursor.h"
#include "base/nsec.h"
#include "base/work_budget.h"
#include "elf/elffile.h"
#include "elf/elfsym.h"
#include "gofile/gomodule.h"
#include "gofile/goversion.h"
#include "goheap/goruntime.h"
#include "goheap/govars.h"

/* The default of runtime.MemProfileRate. */
#define DEFAULT_RATE 524288u

#define BUILDINFO_MAGIC	      "\xff Go buildinf:"
#define BUILDINFO_MAGIC_BYTES 14
#define BUILDINFO_POINTER     16 /* offset of the address of the version, without flag 2 */
#define BUILDINFO_INLINE      32 /* offset of the version itself, with flag 2 */
#define BUILDINFO_F_BIG	      1
#define BUILDINFO_F_INLINE    2
#define BUILDINFO_ALIGN	      16
#define BUILDINFO_CHUNK	      (64u << 10)

/* Bytes of each data segment searched for buildinfo in a file without sections. Go's linker puts
 * buildinfo first, C linkers put buildinfo behind the line table, 16 MB long in a program of 48 MB.
 * Reached: no version. */
#define GORUNTIME_INFO_SCAN_MAX (64u << 20)

/* Work on one file, in units: eight scans of GOMODULE_SCAN_MAX. Above it the file is
 * GORUNTIME_TOO_LARGE. */
#define GORUNTIME_WORK	 ((uint64_t)1 << 31)
/* The same as CPU time, where units do not describe the work. */
#define GORUNTIME_CPU_NS (5 * NSEC_PER_SEC)

static const struct var_info {
	const char *name;
	size_t size;
} vars[GORUNTIME_VAR_MAX] = {
	[GORUNTIME_MBUCKETS] = {"runtime.mbuckets", 8},
	[GORUNTIME_RATE] = {"runtime.MemProfileRate", 8},
	[GORUNTIME_CYCLE] = {"runtime.mProfCycle", 4},
	[GORUNTIME_OLD_CYCLE] = {"runtime.mProf", 8},
	[GORUNTIME_LINKER_FLAG] = {"runtime.disableMemoryProfiling", 1},
	[GORUNTIME_BBUCKETS] = {"runtime.bbuckets", 8},
	[GORUNTIME_XBUCKETS] = {"runtime.xbuckets", 8},
	[GORUNTIME_BLOCK_RATE] = {"runtime.blockprofilerate", 8},
	[GORUNTIME_MUTEX_RATE] = {"runtime.mutexprofilerate", 8},
	[GORUNTIME_TICKS] = {"runtime.ticks.val", 8}, /* no symbol: only from the code */
	[GORUNTIME_ALLGS] = {"runtime.allgs", 24},
	[GORUNTIME_WAIT_REASONS] = {"runtime.waitReasonStrings",
				    16}, /* a longer symbol: only from the code */
};

const char *goruntime_var_name(enum goruntime_var var)
{
	return vars[var].name;
}

size_t goruntime_var_bytes(enum goruntime_var var)
{
	return vars[var].size;
}

bool goruntime_has(const struct goruntime_file *file, enum goruntime_var var)
{
	return file->vars[var].source != GORUNTIME_FROM_NOWHERE;
}

const char *goruntime_source_name(enum goruntime_source source)
{
	static const char *const names[GORUNTIME_SOURCE_MAX] = {
		[GORUNTIME_FROM_NOWHERE] = "none",
		[GORUNTIME_FROM_SYMTAB] = "symtab",
		[GORUNTIME_FROM_CODE] = "code",
		[GORUNTIME_FROM_SCAN] = "scan",
	};

	return names[source];
}

/* ---------------------------------------------------------------- version */

static bool has_sections(const struct elffile *ef)
{
	struct elffile_section section;

	return elffile_section_at(ef, 1, &section) == 0;
}

/* Copy a version up to the first byte other than printable ASCII. The version is for people and
 * for guesses. */
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

/* Search @n bytes of the file from @off on. True if the magic was found. */
static bool scan_for_info(const struct elffile *ef, uint64_t off, uint64_t n, uint8_t *chunk,
			  uint64_t *ret)
{
	for (uint64_t at = 0; at < n; at += BUILDINFO_CHUNK) {
		size_t have = n - at < BUILDINFO_CHUNK ? (size_t)(n - at) : BUILDINFO_CHUNK;

		if (elffile_read(ef, off + at, chunk, have))
			return false;
		for (size_t i = 0; i + BUILDINFO_ALIGN <= have; i += BUILDINFO_ALIGN) {
			if (memcmp(chunk + i, BUILDINFO_MAGIC, BUILDINFO_MAGIC_BYTES) != 0)
				continue;
			*ret = off + at + i;
			return true;
		}
	}
	return false;
}

/* Without sections: search the writable data, where linkers put it. 0, 1 if not found, -ENOMEM. */
static int scan_segments(const struct elffile *ef, uint64_t *ret)
{
	_cleanup_(freep) uint8_t *chunk = malloc(BUILDINFO_CHUNK);
	size_t n;
	const struct elffile_segment *segments = elffile_segments(ef, &n);

	if (!chunk)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const struct elffile_segment *s = &segments[i];
		uint64_t skip = -s->vaddr % BUILDINFO_ALIGN, bytes = s->filesz;

		if (!(s->flags & PF_W) || bytes <= skip)
			continue;
		if (bytes - skip > GORUNTIME_INFO_SCAN_MAX)
			bytes = skip + GORUNTIME_INFO_SCAN_MAX;
		if (scan_for_info(ef, s->off + skip, bytes - skip, chunk, ret))
			return 0;
	}
	return 1;
}

/* 0, 1 if not found, -ENOMEM. */
static int find_info(const struct elffile *ef, struct elffile_section *ret)
{
	if (elffile_section(ef, ".go.buildinfo", ret) == 0)
		return 0;
	if (has_sections(ef))
		return 1;
	ret->size = BUILDINFO_INLINE + 2 + GORUNTIME_VERSION_MAX;
	return scan_segments(ef, &ret->off);
}

/* All outcomes of elffile_*() have the same meaning here: no version. */
static int parse_version(const struct elffile *ef, const struct elffile_section *info,
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

static int read_version(const struct elffile *ef, char ret[GORUNTIME_VERSION_MAX])
{
	struct elffile_section info = {0};
	int r = find_info(ef, &info);

	return r ? r : parse_version(ef, &info, ret);
}

unsigned int goruntime_minor(const struct goruntime_file *file)
{
	return goversion_minor(file->version);
}

/* ---------------------------------------------------------------- variables */

/* The name of the data section that holds a whole variable; "" for none. */
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

/* Keep the address of a symbol. Two addresses with the same name are unusable, because the
 * program's choice is unknown. False if there is a symbol that cannot be the variable. */
static bool keep_place(const struct elffile *ef, enum goruntime_var var, const struct elfsym *sym,
		       struct goruntime_place *ret)
{
	const char *section = section_at(ef, sym->vaddr, sym->size);
	struct elffile_section own;

	if (sym->n != 1 || sym->size != vars[var].size || !*section ||
	    elffile_section(ef, section, &own) != 0 || own.index != sym->section)
		return sym->n == 0;
	ret->vaddr = sym->vaddr;
	ret->source = GORUNTIME_FROM_SYMTAB;
	snprintf(ret->section, sizeof(ret->section), "%s", section);
	return true;
}

static int find_symbols(const struct elffile *ef, struct goruntime_file *ret)
{
	const char *names[GORUNTIME_VAR_MAX];
	struct elfsym syms[GORUNTIME_VAR_MAX];
	uint64_t rate = 0;
	int r;

	for (size_t i = 0; i < GORUNTIME_VAR_MAX; i++)
		names[i] = vars[i].name;
	r = elfsym_find(ef, ELFSYM_SYMTAB, ELFSYM_DATA, names, GORUNTIME_VAR_MAX, syms);
	if (r)
		return r < 0 ? r : 0; /* no symbols, or a broken table */
	for (size_t i = 0; i < GORUNTIME_VAR_MAX; i++)
		if (!keep_place(ef, (enum goruntime_var)i, &syms[i], &ret->vars[i]) &&
		    i == GORUNTIME_RATE)
			ret->disputed = true;
	/* in all releases but three, the file has the variable's default */
	if (ret->vars[GORUNTIME_RATE].source == GORUNTIME_FROM_SYMTAB)
		ret->disputed = read_at_vaddr(ef, ret->vars[GORUNTIME_RATE].vaddr, &rate,
					      sizeof(rate)) != 0 ||
				rate != DEFAULT_RATE;
	return 0;
}

/* Merge the address found in the code with the symbol's. */
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
	const struct goversion *v = goversion_find(goruntime_minor(ret));
	struct govars found;
	int r = govars_find(ef, module, &found);

	if (r)
		return r < 0 ? r : 0;
	merge_place(ef, found.mbuckets, 8, &ret->vars[GORUNTIME_MBUCKETS]);
	if (found.rate && found.rate == ret->vars[GORUNTIME_RATE].vaddr)
		ret->disputed = false;
	merge_place(ef, found.rate, 8, &ret->vars[GORUNTIME_RATE]);
	if (found.old_cycle)
		merge_place(ef, found.cycle, 8, &ret->vars[GORUNTIME_OLD_CYCLE]);
	else
		merge_place(ef, found.cycle, 4, &ret->vars[GORUNTIME_CYCLE]);
	merge_place(ef, found.bbuckets, 8, &ret->vars[GORUNTIME_BBUCKETS]);
	merge_place(ef, found.xbuckets, 8, &ret->vars[GORUNTIME_XBUCKETS]);
	merge_place(ef, found.block_rate, 8, &ret->vars[GORUNTIME_BLOCK_RATE]);
	merge_place(ef, found.mutex_rate, 8, &ret->vars[GORUNTIME_MUTEX_RATE]);
	merge_place(ef, found.ticks, 8, &ret->vars[GORUNTIME_TICKS]);
	merge_place(ef, found.allgs, 24, &ret->vars[GORUNTIME_ALLGS]);
	merge_place(ef, found.wait_reasons, 16, &ret->vars[GORUNTIME_WAIT_REASONS]);
	if (found.total_alloc || (v && v->stats.words)) {
		ret->heap_stats = found.heap_stats;
		ret->total_alloc = found.total_alloc;
		ret->controller = found.controller;
		ret->heap_live = found.heap_live;
		ret->sched = found.sched;
	}
	ret->unread = !found.can_profile && (!v || v->linker_flag);
	return 0;
}

/* @module is NULL if the tables were not found. */
static int find_vars(const struct elffile *ef, const struct gomodule *module,
		     struct goruntime_file *ret)
{
	int r = find_symbols(ef, ret);

	if (!r && module)
		r = find_in_code(ef, module, ret);
	if (r)
		return r;
	/* the process's memory can reveal the address of the records */
	if ((goruntime_has(ret, GORUNTIME_MBUCKETS) || ret->data) &&
	    goruntime_has(ret, GORUNTIME_RATE) &&
	    (goruntime_has(ret, GORUNTIME_CYCLE) || goruntime_has(ret, GORUNTIME_OLD_CYCLE)))
		return GORUNTIME_OK;
	return GORUNTIME_UNKNOWN_LAYOUT;
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

/* Keep the data that locates the file's parts in a process. */
static void keep_shape(const struct elffile *ef, struct goruntime_file *ret)
{
	size_t n;
	const struct elffile_segment *segments = elffile_segments(ef, &n);

	ret->machine = elffile_machine(ef);
	ret->fixed = elffile_type(ef) == ET_EXEC;
	for (size_t i = 0; i < n && ret->n_codes < GORUNTIME_CODES_MAX; i++)
		if (segments[i].flags & PF_X)
			ret->codes[ret->n_codes++] = (struct goruntime_code){
				.vaddr = segments[i].vaddr,
				.off = segments[i].off,
				.n_bytes = segments[i].filesz,
			};
}

static int read_file(const struct elffile *ef, struct goruntime_file *ret)
{
	struct goruntime_file file = {0};
	struct gomodule module;
	bool has_module;
	int r;

	if (has_sections(ef) && !has_go_section(ef))
		return GORUNTIME_NO_RUNTIME;
	r = gomodule_find(ef, &module);
	has_module = r == 0;
	if (r > 0 && !has_sections(ef))
		return GORUNTIME_NO_RUNTIME;
	keep_shape(ef, &file);
	if (has_module) {
		file.table = module.vaddr;
		file.n_funcs = module.n_funcs;
		file.data = module.data;
	}
	if (r >= 0)
		r = read_version(ef, file.version);
	if (r >= 0)
		r = find_vars(ef, has_module ? &module : NULL, &file);
	if (r >= 0)
		*ret = file;
	return r;
}

int goruntime_file_read(const struct elffile *ef, struct goruntime_file *ret)
{
	struct work_budget work;
	struct elffile *file;
	int r;

	work_budget_init(&work, GORUNTIME_WORK, GORUNTIME_CPU_NS, NULL);
	r = elffile_budgeted(ef, &work, &file);
	if (r)
		return r;
	r = read_file(file, ret);
	elffile_free(file);
	return r >= 0 && work.end ? GORUNTIME_TOO_LARGE : r;
}
