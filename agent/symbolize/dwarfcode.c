// SPDX-License-Identifier: Apache-2.0
/*
 * Three steps, each on demand: from the address to the unit (all units' ranges, once a file), to
 * the function and the line (all functions' ranges and the line table, once a unit), to the
 * functions inlined there (from the function's entry down, for each address).
 */
#include "symbolize/dwarfcode.h"

#include <dwarf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "symbolize/dwarfentry.h"
#include "symbolize/dwarffile.h"
#include "symbolize/dwarfrows.h"
#include "symbolize/dwarfscopes.h"
#include "symbolize/symbolizer.h"

/* References from an entry to the ones that describe it. Reached: no name. */
#define REFERENCES_MAX 16
/* Bytes of the paths of an address. Reached: paths without their directory. */
#define PATHS_MAX      (256u << 10)

/* Functions named last. Reached: named again. */
#define NAMES_KEPT 256

/* The name of the function that an entry describes. Many places inline the same function. */
struct function_name {
	const struct dwarffile *file; /* NULL: none */
	uint64_t off;
	const char *name;
	uint32_t line;
};

/**
 * struct dwarfcode
 * @last:   offset of the last function's entry; 0: none
 * @scopes: of the last function, from its second address on
 * @paths:  of the last answer
 */
struct dwarfcode {
	struct dwarffile *file;
	struct dwarffile *alternate;
	uint64_t last;
	struct dwarfscopes scopes;
	enum { SCOPES_UNREAD, SCOPES_READ, SCOPES_UNUSABLE } scopes_state;
	size_t n_read;
	size_t n_paths;
	struct function_name names[NAMES_KEPT];
	char paths[PATHS_MAX];
};

/* How far the functions of a unit are known. */
enum depth {
	UNREAD,
	SHALLOW, /* without the functions inside of functions */
	DEEP,
};

/* ---------------------------------------------------------------- functions */

static bool holds_functions(const struct dwarfunit *unit, int tag, enum depth depth)
{
	switch (tag) {
	case DW_TAG_namespace:
	case DW_TAG_module:
		return true;
	case DW_TAG_class_type:
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
	case DW_TAG_enumeration_type:
		return !unit->is_c;
	case DW_TAG_subprogram:
	case DW_TAG_lexical_block:
		return depth == DEEP;
	default:
		return false;
	}
}

static int add_function(struct dwarffile *f, struct dwarfunit *unit, const struct dwarfentry *entry)
{
	struct dwarfrange_reader ranges;

	if (entry->abbrev->tag != DW_TAG_subprogram)
		return 0;
	dwarfrange_begin(&ranges, f, unit, entry);
	return dwarfranges_add(&unit->functions, &ranges, entry->off);
}

/* What is malformed ends the unit's functions. */
static int read_functions(struct dwarffile *f, struct dwarfunit *unit, enum depth depth)
{
	struct cursor c = dwarfentry_cursor(f, unit, unit->first);
	struct dwarfentry entry;
	size_t level = 0;
	int r = 0;

	unit->functions.n = 0;
	unit->depth = depth;
	f->n_list_entries = 0;
	while (!r && dwarfentry_next(f, unit, &c, &entry)) {
		if (!entry.abbrev) {
			if (level <= 1)
				break;
			level--;
			continue;
		}
		r = add_function(f, unit, &entry);
		if (!level || holds_functions(unit, entry.abbrev->tag, depth)) {
			level += entry.abbrev->has_children;
			if (!level)
				break;
		} else if (!dwarfentry_skip_children(f, unit, &c, &entry)) {
			break;
		}
	}
	dwarfranges_sort(&unit->functions);
	return r;
}

static int read_unit(struct dwarfcode *code, struct dwarfunit *unit)
{
	int r = dwarffile_read_abbrevs(code->file, unit);

	code->n_read++;
	if (!r)
		r = read_functions(code->file, unit, SHALLOW);
	if (r >= 0)
		r = dwarfrows_read(code->file, unit, &unit->rows);
	unit->is_used = !r;
	return r;
}

/* Whether @vaddr is padding behind a function, as most addresses without a function: the function's
 * last row of lines goes on there. */
static bool is_padding(const struct dwarfunit *unit, uint64_t vaddr)
{
	const struct dwarfrange *before = dwarfranges_before(&unit->functions, vaddr);
	const struct dwarfrow *row = dwarfrows_find(unit->rows, vaddr);

	return before && row && row->vaddr >= before->start && row->vaddr < before->end;
}

/* Functions inside of functions are rare, and expensive to look for. */
static int find_function(struct dwarfcode *code, struct dwarfunit *unit, uint64_t vaddr,
			 const struct dwarfrange **ret)
{
	int r = 0;

	*ret = dwarfranges_find(&unit->functions, vaddr);
	if (!*ret && unit->depth == SHALLOW && !is_padding(unit, vaddr)) {
		code->n_read++;
		r = read_functions(code->file, unit, DEEP);
		*ret = dwarfranges_find(&unit->functions, vaddr);
	}
	return r;
}

/* ---------------------------------------------------------------- inlined functions */

/* Offsets of a function and the functions inlined there, the outermost first. */
struct chain {
	uint64_t items[SYMBOL_LINES_MAX];
	size_t n;
};

static bool holds(struct dwarffile *f, const struct dwarfunit *unit, const struct dwarfentry *entry,
		  uint64_t vaddr)
{
	struct dwarfrange_reader ranges;
	uint64_t start, end;

	dwarfrange_begin(&ranges, f, unit, entry);
	while (dwarfrange_next(&ranges, &start, &end))
		if (start <= vaddr && vaddr < end)
			return true;
	return false;
}

static bool may_hold(struct dwarffile *f, const struct dwarfunit *unit,
		     const struct dwarfentry *entry, uint64_t vaddr)
{
	return dwarfscope_is_one(entry) &&
	       (dwarfscope_is_open(entry) || holds(f, unit, entry, vaddr));
}

/* From the function's entry down. Below an inlined function that holds @vaddr, only its children
 * count; below a block also the entries behind it. */
static void descend(struct dwarffile *f, const struct dwarfunit *unit, uint64_t vaddr,
		    struct chain *chain)
{
	struct cursor c = dwarfentry_cursor(f, unit, chain->items[0]);
	struct dwarfentry entry;
	size_t level = 1;

	f->n_list_entries = 0;
	if (!dwarfentry_next(f, unit, &c, &entry) || !entry.abbrev || !entry.abbrev->has_children)
		return;
	while (level && dwarfentry_next(f, unit, &c, &entry)) {
		if (!entry.abbrev) {
			level--;
		} else if (!may_hold(f, unit, &entry, vaddr)) {
			if (!dwarfentry_skip_children(f, unit, &c, &entry))
				return;
		} else if (entry.abbrev->tag == DW_TAG_inlined_subroutine) {
			if (chain->n == SYMBOL_LINES_MAX)
				return;
			chain->items[chain->n++] = entry.off;
			level = entry.abbrev->has_children;
		} else {
			level += entry.abbrev->has_children;
		}
	}
}

/* The functions inlined at @vaddr. For the first address of a function its entries are read, for
 * the second its scopes are kept. 0 or -ENOMEM. */
static int find_inlined(struct dwarfcode *code, const struct dwarfunit *unit, uint64_t vaddr,
			struct chain *chain)
{
	const uint64_t function = chain->items[0];
	int r;

	if (code->last != function) {
		code->last = function;
		code->scopes_state = SCOPES_UNREAD;
		descend(code->file, unit, vaddr, chain);
		return 0;
	}
	if (code->scopes_state == SCOPES_UNREAD) {
		r = dwarfscopes_read(&code->scopes, code->file, unit, function);
		if (r < 0)
			return r;
		code->scopes_state = r ? SCOPES_UNUSABLE : SCOPES_READ;
	}
	if (code->scopes_state == SCOPES_READ)
		chain->n += dwarfscopes_find(&code->scopes, code->file, vaddr, chain->items + 1,
					     SYMBOL_LINES_MAX - 1);
	else
		descend(code->file, unit, vaddr, chain);
	return 0;
}

/* ---------------------------------------------------------------- names */

/* What an entry says about a function; and the entry that says more. */
struct description {
	struct dwarffile *file;
	struct dwarfunit *unit;
	const char *linkage_name;
	const char *old_name; /* DW_AT_MIPS_linkage_name */
	const char *name;
	uint64_t line;
	bool has_line;
	struct dwarfvalue origin;
	struct dwarfvalue specification;
};

static void take_string(struct description *d, const char **to, const struct dwarfvalue *value)
{
	if (!*to)
		*to = dwarfvalue_string(d->file, d->unit, value);
}

static bool describe(void *ctx, uint16_t name, const struct dwarfvalue *value)
{
	struct description *d = ctx;

	switch (name) {
	case DW_AT_linkage_name:
		take_string(d, &d->linkage_name, value);
		break;
	case DW_AT_MIPS_linkage_name:
		take_string(d, &d->old_name, value);
		break;
	case DW_AT_name:
		take_string(d, &d->name, value);
		break;
	case DW_AT_decl_line:
		if (!d->has_line)
			d->line = value->number;
		d->has_line = true;
		break;
	case DW_AT_abstract_origin:
		d->origin = *value;
		break;
	case DW_AT_specification:
		d->specification = *value;
		break;
	}
	return true;
}

static uint32_t small(uint64_t number)
{
	return number <= UINT32_MAX ? (uint32_t)number : 0;
}

static bool is_bare(const struct description *d)
{
	return !d->linkage_name && !d->old_name && !d->name && !d->has_line;
}

/* The place of the entry's name. */
static struct function_name *kept_name(struct dwarfcode *code, uint64_t off)
{
	return &code->names[(off ^ off >> 8) % NAMES_KEPT];
}

/* The name of the entry at @off, or of an entry that it refers to: the first that says anything is
 * kept with what it says. */
static struct function_name find_name(struct dwarfcode *code, struct dwarfunit *unit, uint64_t off)
{
	struct description d = {.file = code->file, .unit = unit};
	struct function_name found = {.file = NULL};

	for (size_t i = 0; i <= REFERENCES_MAX; i++) {
		if (is_bare(&d)) {
			const struct function_name *kept = kept_name(code, off);

			if (kept->file == d.file && kept->off == off)
				return *kept;
			found.file = d.file;
			found.off = off;
		}
		d.origin.form = d.specification.form = 0;
		if (!dwarfentry_attributes(d.file, d.unit, off, describe, &d))
			break;
		if (d.linkage_name && d.has_line)
			break;
		if (!dwarfentry_reference(d.file, d.unit,
					  d.origin.form ? &d.origin : &d.specification, &d.file,
					  &d.unit, &off))
			break;
	}
	found.name = d.linkage_name ? d.linkage_name : d.old_name ? d.old_name : d.name;
	found.line = small(d.line);
	return found;
}

static void name_function(struct dwarfcode *code, struct dwarfunit *unit, uint64_t off,
			  struct symbol_line *ret)
{
	const struct function_name found = find_name(code, unit, off);

	*kept_name(code, found.off) = found;
	ret->function = ret->system_name = found.name ? found.name : "";
	ret->start_line = found.line;
}

/* ---------------------------------------------------------------- places */

/* @directory/@name, or @name if there is no room. */
static const char *join(struct dwarfcode *code, const char *directory, const char *name)
{
	const size_t n = strlen(directory), n_name = strlen(name);
	char *path = code->paths + code->n_paths;

	if (n + n_name + 2 > PATHS_MAX - code->n_paths)
		return name;
	code->n_paths += n + n_name + 2;
	memcpy(path, directory, n);
	path[n] = '/';
	memcpy(path + n + 1, name, n_name + 1);
	return path;
}

static const char *path_of(struct dwarfcode *code, const struct dwarfunit *unit, uint64_t number)
{
	const char *directory = NULL;
	const char *name = dwarfrows_file(unit->rows, number, &directory);

	if (!name)
		return "";
	if (name[0] != '/' && directory)
		name = join(code, directory, name);
	if (name[0] != '/' && unit->directory)
		name = join(code, unit->directory, name);
	return name;
}

static void name_place(struct dwarfcode *code, const struct dwarfunit *unit, uint64_t vaddr,
		       struct symbol_line *ret)
{
	const struct dwarfrow *row = dwarfrows_find(unit->rows, vaddr);

	ret->file = "";
	if (!row)
		return;
	ret->file = path_of(code, unit, row->file);
	ret->line = row->line <= INT32_MAX ? row->line : 0;
	ret->column = row->column;
}

struct call {
	uint64_t file;
	uint64_t line;
	uint64_t column;
};

static bool read_call(void *ctx, uint16_t name, const struct dwarfvalue *value)
{
	struct call *call = ctx;

	if (name == DW_AT_call_file)
		call->file = value->number;
	else if (name == DW_AT_call_line)
		call->line = value->number;
	else if (name == DW_AT_call_column)
		call->column = value->number;
	return true;
}

/* The place in the caller where the function of the entry at @off is inlined. */
static void name_call(struct dwarfcode *code, struct dwarfunit *unit, uint64_t off,
		      struct symbol_line *ret)
{
	struct call call = {.file = 0};

	(void)dwarfentry_attributes(code->file, unit, off, read_call, &call);
	ret->file = path_of(code, unit, small(call.file));
	ret->line = small(call.line);
	ret->column = small(call.column);
}

static int name_chain(struct dwarfcode *code, struct dwarfunit *unit, const struct chain *chain,
		      struct symbol_line *ret)
{
	const size_t n = chain->n;

	for (size_t i = 0; i < n; i++) {
		if (i)
			ret[i] = (struct symbol_line){.line = 0};
		name_function(code, unit, chain->items[n - 1 - i], &ret[i]);
		ret[i].inlined = i + 1 < n;
		if (i)
			name_call(code, unit, chain->items[n - i], &ret[i]);
	}
	return (int)n;
}

int dwarfcode_find(struct dwarfcode *code, uint64_t vaddr, struct symbol_line *ret)
{
	const struct dwarfrange *range = dwarfranges_find(&code->file->ranges, vaddr), *function;
	struct chain chain = {.n = 1};
	struct dwarfunit *unit;
	int r = 0;

	if (!range)
		return 0;
	unit = &code->file->units[range->index];
	if (!unit->is_used)
		r = read_unit(code, unit);
	if (!r)
		r = find_function(code, unit, vaddr, &function);
	if (r)
		return r;
	ret[0] = (struct symbol_line){.line = 0};
	code->n_paths = 0;
	name_place(code, unit, vaddr, &ret[0]);
	if (function) {
		chain.items[0] = function->index;
		r = find_inlined(code, unit, vaddr, &chain);
		return r ? r : name_chain(code, unit, &chain, ret);
	}
	ret[0].function = ret[0].system_name = "";
	return ret[0].line ? 1 : 0;
}

size_t dwarfcode_reads(const struct dwarfcode *code)
{
	return code->n_read;
}

void dwarfcode_renew(struct dwarfcode *code)
{
	code->file->work = DWARFFILE_WORK_MAX;
	memset(code->names, 0, sizeof(code->names)); /* maybe found without work */
	if (code->alternate)
		code->alternate->work = DWARFFILE_WORK_MAX;
}

/* ---------------------------------------------------------------- the file */

static void free_units(struct dwarffile *f)
{
	for (size_t i = 0; f && i < f->n_units; i++) {
		dwarfrows_free(f->units[i].rows);
		free(f->units[i].functions.items);
	}
	dwarffile_free(f);
}

void dwarfcode_free(struct dwarfcode *code)
{
	if (!code)
		return;
	free_units(code->file);
	free_units(code->alternate);
	dwarfscopes_deinit(&code->scopes);
	free(code);
}

/* An alternate file that is not readable is left out. */
static int open_alternate(int fd, struct dwarfcode *code)
{
	struct dwarfsections *sections;
	int r = dwarfsections_open(fd, &sections);

	if (!r)
		r = dwarffile_open(sections, NULL, &code->alternate);
	return r;
}

static int open_file(struct dwarfsections *sections, struct dwarfcode *code)
{
	return dwarffile_open(sections, code->alternate, &code->file);
}

int dwarfcode_open(const int *fds, size_t n_fds, struct dwarfcode **ret)
{
	struct dwarfcode *code = calloc(1, sizeof(*code));
	struct dwarfsections *sections;
	int r = code ? 0 : -ENOMEM;

	if (!r && n_fds > 1)
		r = open_alternate(fds[1], code);
	if (!r)
		r = dwarfsections_open(fds[0], &sections);
	if (!r)
		r = open_file(sections, code);
	if (r)
		dwarfcode_free(code);
	else
		*ret = code;
	return r < 0 ? r : r ? DWARFCODE_UNSUPPORTED : 0;
}

int dwarfcode_open_sections(struct dwarfsections *sections, struct dwarfcode **ret)
{
	struct dwarfcode *code = calloc(1, sizeof(*code));
	int r;

	if (!code) {
		dwarfsections_free(sections);
		return -ENOMEM;
	}
	r = open_file(sections, code);
	if (r)
		dwarfcode_free(code);
	else
		*ret = code;
	return r < 0 ? r : r ? DWARFCODE_UNSUPPORTED : 0;
}
