// SPDX-License-Identifier: Apache-2.0
/*
 * DWARF's functions and lines as a source of names. The file is read by another process
 * (dwarfreader.h), a batch of addresses at a time; the answers are kept.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/hash.h"
#include "base/work_budget.h"
#include "elf/elffile.h"
#include "symbolize/debugfile.h"
#include "symbolize/demangle.h"
#include "symbolize/dwarfpackage.h"
#include "symbolize/dwarfreader.h"
#include "symbolize/dwarfwire.h"
#include "symbolize/linecache.h"
#include "symbolize/source.h"
#include "symbolize/symbolizer.h"

/* Bytes of a file's answers: 20,000 addresses. Reached: addresses not seen for longest are asked
 * for again. */
#define DWARFSOURCE_CACHE_MAX	 (4u << 20)
/* Further requests for a batch of addresses, while the answers lack some: the thread gives no sign
 * of life meanwhile. Reached: the other names come with a later profile. */
#define DWARFSOURCE_REQUESTS_MAX 1
/* Bytes of the units of a package of split DWARF that are copied for a file. Reached: the code of
 * other units has the functions of the symbol table. */
#define DWARFSOURCE_UNITS_MAX	 (32u << 20)
/* An open file of split DWARF counts as so many bytes: the ceiling of all names then bounds the
 * number of these descriptors, too. */
#define DWARFSOURCE_SPLIT_COST	 (16u << 10)

/* Names of an answer that are kept in readable form while the answer is read. */
#define READABLES_KEPT	    256
/* Their bytes. Reached: shown as in the file. */
#define READABLES_BYTES_MAX (16u << 20)
/* Units for a name that is made readable. Most take 2 us; a forged one takes 10 ms, and 128 names
 * cause a look at the clock. */
#define READABLE_COST	    (1u << 13)

/**
 * struct dwarfsource - a file with DWARF
 * @of:      for files of split DWARF
 * @alternate: with parts of the DWARF (DWZ); NULL: none
 * @tried:   units whose file was looked for
 * @package: of split DWARF; NULL: none, or not looked for
 * @copied:  bytes of units of the package
 * @file:    owns its descriptors of split DWARF; the tables, which may be large, are not kept
 * @asked:   a request without an answer so far; NULL: none
 * @is_partial: the last answer lacks addresses
 * @dead:    the file made the process fail
 */
struct dwarfsource {
	struct dwarfreader *reader;
	struct source_file of;
	struct elffile *alternate;
	uint32_t tried[DWARFWIRE_SPLITS_MAX];
	size_t n_tried;
	struct dwarfpackage *package;
	bool package_known;
	size_t copied;
	struct dwarfreader_file file;
	struct linecache cache;
	struct dwarfreader_request *asked;
	bool is_partial;
	bool dead;
};

static void dwarfsource_free(void *opened)
{
	struct dwarfsource *s = opened;

	if (!s)
		return;
	dwarfreader_request_unref(s->asked);
	dwarfreader_unref(s->reader);
	linecache_deinit(&s->cache);
	elffile_free(s->alternate);
	dwarfpackage_free(s->package);
	for (size_t i = 0; i < s->file.n_splits; i++)
		close(s->file.split_fds[i]);
	free(s);
}

DEFINE_CLEANUP(struct dwarfsource *, dwarfsource_freep, dwarfsource_free);

static size_t dwarfsource_bytes(const void *opened)
{
	const struct dwarfsource *s = opened;

	return sizeof(*s) + linecache_bytes(&s->cache) + s->copied +
	       s->file.n_splits * DWARFSOURCE_SPLIT_COST;
}

/* Old compilers compress into .zdebug_info. */
static bool has_dwarf(const struct elffile *file)
{
	static const char *const names[] = {".debug_info", ".zdebug_info"};
	struct elffile_section section;

	for (size_t i = 0; i < array_size(names); i++)
		if (elffile_section(file, names[i], &section) == 0 && section.size)
			return true;
	return false;
}

/* The file with DWARF, @file itself or its debug file, and the alternate file. */
static int find_dwarf(struct dwarfsource *s, const struct source_file *file)
{
	const struct elffile *dwarf = file->elf;
	int r;

	if (!has_dwarf(dwarf)) {
		r = debugfile_find(file, &dwarf);
		if (r == DEBUGFILE_LATER)
			return SOURCE_LATER;
		if (r || !has_dwarf(dwarf))
			return r < 0 ? r : SOURCE_NONE;
	}
	s->file.fds[s->file.n_fds++] = elffile_fd(dwarf);
	r = debugfile_open_alternate(file, dwarf, &s->alternate);
	if (!r)
		s->file.fds[s->file.n_fds++] = elffile_fd(s->alternate);
	return r < 0 ? r : 0;
}

static int dwarfsource_open(const struct source_file *file, void **ret)
{
	_cleanup_(dwarfsource_freep) struct dwarfsource *s = NULL;
	struct stat st;
	int r;

	if (!file->dwarf || elffile_stat(file->elf, &st))
		return SOURCE_NONE;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->reader = dwarfreader_ref(file->dwarf);
	linecache_init(&s->cache, DWARFSOURCE_CACHE_MAX);
	s->file.id = file_id_of_stat(&st);
	s->of = *file;
	if (dwarfreader_refuses(s->reader, &s->file.id))
		return SOURCE_NONE;
	r = find_dwarf(s, file);
	if (r)
		return r;
	*ret = take_ptr(s);
	return 0;
}

/* ---------------------------------------------------------------- answers */

/* The readable form of a name of an answer; NULL: the name itself. */
struct readable {
	const char *name; /* of the answer: each of its strings is there once; NULL: none */
	const char *text;
};

/* Of keep_lines(): the work budget has ended. */
#define ANSWER_OVER 1

/* Names made readable last. */
struct readables {
	struct readable items[READABLES_KEPT];
	struct arena memory;
};

/* Most lines have a name of the lines before. *@ret is @name without room. 0, ANSWER_OVER, or
 * -ENOMEM. */
static int make_readable(struct dwarfsource *s, struct readables *readables, const char *name,
			 const char **ret)
{
	struct readable *kept = &readables->items[hash_words((uintptr_t)name, 0) % READABLES_KEPT];
	char text[DEMANGLE_NAME_MAX], *copy;
	size_t n;
	int r;

	if (kept->name != name) {
		if (!work_budget_spend(s->of.work, READABLE_COST))
			return ANSWER_OVER;
		*kept = (struct readable){.name = name};
		if (demangle(name, text)) {
			n = strlen(text) + 1;
			r = arena_alloc(&readables->memory, n, &copy);
			if (r < 0)
				return r;
			if (!r)
				kept->text = memcpy(copy, text, n);
		}
	}
	*ret = kept->text ? kept->text : name;
	return 0;
}

static int keep_lines(struct dwarfsource *s, struct readables *readables, uint64_t vaddr,
		      struct symbol_line *lines, size_t n)
{
	int r = 0;

	for (size_t i = 0; i < n && !r; i++)
		r = make_readable(s, readables, lines[i].system_name, &lines[i].function);
	return r ? r : linecache_add(&s->cache, vaddr, lines, n);
}

static int open_package(struct dwarfsource *s)
{
	struct elffile *file;
	int r;

	if (s->package_known)
		return 0;
	r = debugfile_open_package(&s->of, &file);
	if (!r) {
		elffile_charge(file, s->of.elf);
		r = dwarfpackage_open(file, &s->package);
		if (r)
			elffile_free(file);
	}
	s->package_known = r >= 0;
	return r < 0 ? r : 0;
}

/* 0 with a descriptor of the caller's; 1 if no package has the unit; -ENOMEM. */
static int copy_unit(struct dwarfsource *s, uint64_t id, int *ret_fd)
{
	size_t n;
	int r = open_package(s);

	if (r || !s->package || !id)
		return r ? r : 1;
	r = dwarfpackage_unit(s->package, id, DWARFSOURCE_UNITS_MAX - s->copied, ret_fd, &n);
	if (!r)
		s->copied += n;
	return !r || r == -ENOMEM ? r : 1;
}

/* The same, of the file @path. */
static int open_file(struct dwarfsource *s, const char *path, int *ret_fd)
{
	_cleanup_(elffile_freep) struct elffile *split = NULL;
	int r = path[0] ? debugfile_open_split(&s->of, path, &split) : 1;

	if (r)
		return r;
	elffile_leave_open(split);
	*ret_fd = elffile_fd(split);
	return 0;
}

/* Each unit is looked for once, first in a package. 0 or -ENOMEM. */
static int open_split(struct dwarfsource *s, const struct dwarfwire_wanted *wanted)
{
	const size_t at = s->file.n_splits;
	int fd, r;

	if (s->n_tried == array_size(s->tried))
		return 0;
	for (size_t i = 0; i < s->n_tried; i++)
		if (s->tried[i] == wanted->unit)
			return 0;
	s->tried[s->n_tried++] = wanted->unit;
	r = copy_unit(s, wanted->id, &fd);
	if (r > 0)
		r = open_file(s, wanted->path, &fd);
	if (r)
		return r < 0 ? r : 0;
	s->file.split_fds[at] = fd;
	s->file.units[at] = wanted->unit;
	s->file.n_splits++;
	return 0;
}

/* The answer lacks the functions of these files. */
static int open_splits(struct dwarfsource *s, const void *bytes, size_t n_bytes, size_t n)
{
	struct symbol_line lines[SYMBOL_LINES_MAX];
	struct dwarfwire_wanted wanted;
	struct dwarfwire_reader reader;
	int r = dwarfwire_reader_init(&reader, bytes, n_bytes);
	size_t n_lines;

	if (r)
		return r;
	for (size_t i = 0; i < n && !r; i++) {
		r = dwarfwire_next(&reader, lines, &n_lines);
		if (r == DWARFWIRE_NOT_ASKED)
			r = 0;
	}
	while (!r && dwarfwire_wanted(&reader, &wanted))
		r = open_split(s, &wanted);
	dwarfwire_reader_deinit(&reader);
	return r;
}

/* An answer has the first address at least. Addresses for which there is no budget are asked for
 * again with the next batch. 0, -ENOMEM, else it is malformed. */
static int keep_answer(struct dwarfsource *s, const uint64_t *vaddrs, size_t n, const void *bytes,
		       size_t n_bytes)
{
	struct readables readables = {.items = {{0}}};
	struct symbol_line lines[SYMBOL_LINES_MAX];
	struct dwarfwire_reader reader;
	int r = dwarfwire_reader_init(&reader, bytes, n_bytes);

	if (r)
		return r;
	arena_init(&readables.memory, READABLES_BYTES_MAX);
	linecache_begin(&s->cache);
	for (size_t i = 0; i < n && !r && !s->of.work->end; i++) {
		size_t n_lines = 0;

		r = dwarfwire_next(&reader, lines, &n_lines);
		if (!r) {
			r = keep_lines(s, &readables, vaddrs[i], lines, n_lines);
			if (r == ANSWER_OVER)
				r = 0;
		} else if (r == DWARFWIRE_NOT_ASKED && i) {
			s->is_partial = true;
			r = 0;
		}
	}
	linecache_end(&s->cache);
	arena_deinit(&readables.memory);
	dwarfwire_reader_deinit(&reader);
	return r;
}

/* Waits for the answer, as long as the reader's patience is. 0 or -ENOMEM. */
static int take_answer(struct dwarfsource *s)
{
	const size_t n_splits = s->file.n_splits;
	const uint64_t *vaddrs;
	const void *bytes;
	size_t n, n_bytes;
	int r = 0;

	if (!s->asked || !dwarfreader_wait(s->reader, s->asked))
		return 0;
	switch (dwarfreader_answer(s->asked, &vaddrs, &n, &bytes, &n_bytes)) {
	case DWARFREADER_OK:
		r = open_splits(s, bytes, n_bytes, n);
		/* with new files the same addresses are asked for again */
		if (!r && s->file.n_splits == n_splits)
			r = keep_answer(s, vaddrs, n, bytes, n_bytes);
		break;
	case DWARFREADER_NO_PROCESS:
		break;
	default:
		s->dead = true;
	}
	if (r > 0) {
		dwarfreader_reject(s->reader, s->asked);
		s->dead = true;
	}
	dwarfreader_request_unref(take_ptr(s->asked));
	return r < 0 ? r : 0;
}

/* Asks for those of the addresses that are not known. */
static int ask(struct dwarfsource *s, const uint64_t *vaddrs, size_t n)
{
	_cleanup_(freep) uint64_t *missing = NULL;
	size_t n_missing = 0;
	int r = take_answer(s);

	s->is_partial = false;
	if (r || s->asked || s->dead)
		return r;
	missing = calloc(n ? n : 1, sizeof(*missing));
	if (!missing)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		if (!linecache_find(&s->cache, vaddrs[i]))
			missing[n_missing++] = vaddrs[i];
	if (n_missing)
		r = dwarfreader_ask(s->reader, &s->file, missing, n_missing, &s->asked);
	return r ? r : take_answer(s);
}

static int dwarfsource_prepare(void *opened, const uint64_t *vaddrs, size_t n)
{
	struct dwarfsource *s = opened;
	const size_t n_splits = s->file.n_splits;
	int r = ask(s, vaddrs, n);

	if (!r && s->file.n_splits != n_splits)
		r = ask(s, vaddrs, n);
	for (size_t i = 0; i < DWARFSOURCE_REQUESTS_MAX && !r && s->is_partial && !s->of.work->end;
	     i++)
		r = ask(s, vaddrs, n);
	return r;
}

static int dwarfsource_find(void *opened, uint64_t vaddr, struct symbol_lines *lines)
{
	struct dwarfsource *s = opened;
	const struct linecache_answer *found = linecache_find(&s->cache, vaddr);
	int r;

	if (!found || !found->n)
		return SOURCE_NONE;
	r = symbol_lines_borrow(lines, found->lines, found->n);
	if (!r)
		symbol_lines_rename(lines);
	return r;
}

/* An answer may come later, unless it is here or the file is given up. */
static bool dwarfsource_is_final(void *opened, uint64_t vaddr)
{
	struct dwarfsource *s = opened;

	return s->dead || linecache_find(&s->cache, vaddr);
}

const struct symbol_source source_dwarf = {
	.name = "dwarf",
	.open = dwarfsource_open,
	.prepare = dwarfsource_prepare,
	.find = dwarfsource_find,
	.is_final = dwarfsource_is_final,
	.bytes = dwarfsource_bytes,
	.free = dwarfsource_free,
};
