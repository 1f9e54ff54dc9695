// SPDX-License-Identifier: Apache-2.0
/*
 * Three steps, each on demand: from the address to the compile unit (all units' ranges, once a
 * file), to the function (all functions' ranges, once a unit), to the functions inlined there (a
 * walk from the function down). libdw has steps of its own (dwarf_addrdie(), dwarf_getscopes());
 * both need .debug_aranges, which clang does not write, and walk the whole unit for each address.
 *
 * A unit of split DWARF (DWARF 5, 7.3.2) has only the lines and the ranges here, in a skeleton. The
 * functions are in a file of their own, which the caller opens when a unit with an address needs
 * it.
 */
#include "symbolize/dwarflines.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/vec.h"
#include "symbolize/dwarfranges.h"
#include "symbolize/dwarfwire.h"
#include "symbolize/symbolizer.h"

/* Units of a file. Reached: no names of the others. */
#define DWARFLINES_UNITS_MAX ((size_t)1 << 24)
/* Depth of namespaces, blocks and inlined functions. Reached: deeper functions have no names. */
#define DWARFLINES_DEPTH_MAX 256
/* Bytes of the paths of an address. Reached: paths without their directory. */
#define DWARFLINES_PATHS_MAX (1u << 20)

/* How far the functions of a unit are known. */
enum unit_depth {
	UNIT_UNREAD,
	UNIT_SHALLOW, /* without the functions inside of functions */
	UNIT_DEEP,
};

struct unit {
	Dwarf_Die die;	/* with the lines; a skeleton has no functions */
	Dwarf_Die code; /* with the functions: @die, or that of split DWARF */
	struct dwarfranges functions;
	enum unit_depth depth;
	bool is_skeleton; /* and @code is not known */
	bool is_wanted;
	bool is_used;
};

struct dwarflines {
	Elf *elf[2];
	Dwarf *dwarf[2]; /* the second is the alternate file */
	struct dwarfranges ranges;
	struct unit *units;
	size_t n_units;
	size_t cap_units;
	struct arena paths; /* of the last answer */
	const struct dwarflines_split *splits;
	size_t n_splits;
	void (*lend)(int fd);
	size_t wanted[DWARFWIRE_SPLITS_MAX]; /* numbers of units */
	size_t n_wanted;
	size_t n_read;
};

/* ---------------------------------------------------------------- ranges */

/* All ranges of @die. */
static int add_ranges(struct dwarfranges *ranges, Dwarf_Die *die, size_t index)
{
	Dwarf_Addr base, start, end;
	ptrdiff_t at = 0;
	int r = 0;

	while (!r && (at = dwarf_ranges(die, at, &base, &start, &end)) > 0)
		r = dwarfranges_put(ranges, start, end, index);
	return r < 0 ? r : 0;
}

/* ---------------------------------------------------------------- units */

static int add_unit(struct dwarflines *l, const Dwarf_Die *die, bool is_skeleton)
{
	int r = vec_grow(&l->units, &l->cap_units, l->n_units + 1, sizeof(*l->units),
			 DWARFLINES_UNITS_MAX);

	if (r)
		return r < 0 ? r : 0;
	l->units[l->n_units] = (struct unit){.die = *die, .code = *die, .is_skeleton = is_skeleton};
	l->n_units++;
	return add_ranges(&l->ranges, &l->units[l->n_units - 1].die, l->n_units - 1);
}

static int read_units(struct dwarflines *l)
{
	Dwarf_CU *cu = NULL;
	uint8_t type;
	Dwarf_Die die;
	int r = 0;

	while (!r && dwarf_get_units(l->dwarf[0], cu, &cu, NULL, &type, &die, NULL) == 0)
		if (type == DW_UT_compile || type == DW_UT_skeleton)
			r = add_unit(l, &die, type == DW_UT_skeleton);
	dwarfranges_sort(&l->ranges);
	return r;
}

static bool holds_functions(int tag, enum unit_depth depth)
{
	switch (tag) {
	case DW_TAG_namespace:
	case DW_TAG_module:
	case DW_TAG_class_type:
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
	case DW_TAG_enumeration_type:
		return true;
	case DW_TAG_subprogram:
	case DW_TAG_lexical_block:
		return depth == UNIT_DEEP;
	default:
		return false;
	}
}

/* The functions among @die's children. */
static int read_functions(struct unit *unit, Dwarf_Die *die, enum unit_depth depth, int level)
{
	Dwarf_Die child;
	int r = 0, more = level < DWARFLINES_DEPTH_MAX ? dwarf_child(die, &child) : 1;

	for (; more == 0 && !r; more = dwarf_siblingof(&child, &child)) {
		int tag = dwarf_tag(&child);

		if (tag == DW_TAG_subprogram)
			r = add_ranges(&unit->functions, &child, dwarf_dieoffset(&child));
		if (!r && holds_functions(tag, depth) && dwarf_haschildren(&child) > 0)
			r = read_functions(unit, &child, depth, level + 1);
	}
	return r;
}

static int deepen(struct dwarflines *l, struct unit *unit, enum unit_depth depth)
{
	int r;

	l->n_read++;
	unit->functions.n = 0;
	unit->depth = depth;
	r = read_functions(unit, &unit->code, depth, 0);
	dwarfranges_sort(&unit->functions);
	return r;
}

/* Functions inside of functions are rare, and expensive to look for. */
static int find_function(struct dwarflines *l, struct unit *unit, uint64_t vaddr,
			 const struct dwarfrange **ret)
{
	int r = 0;

	if (unit->depth == UNIT_UNREAD)
		r = deepen(l, unit, UNIT_SHALLOW);
	*ret = dwarfranges_find(&unit->functions, vaddr);
	if (!r && !*ret && unit->depth == UNIT_SHALLOW) {
		r = deepen(l, unit, UNIT_DEEP);
		*ret = dwarfranges_find(&unit->functions, vaddr);
	}
	return r;
}

/* ---------------------------------------------------------------- names */

static const char *name_of(Dwarf_Die *die)
{
	static const unsigned int names[] = {DW_AT_linkage_name, DW_AT_MIPS_linkage_name};
	const char *name = NULL;
	Dwarf_Attribute attr;

	for (size_t i = 0; i < 2 && !name; i++)
		if (dwarf_attr_integrate(die, names[i], &attr))
			name = dwarf_formstring(&attr);
	if (!name)
		name = dwarf_diename(die);
	return name ? name : "";
}

static uint32_t number_of(Dwarf_Die *die, unsigned int name, bool integrate)
{
	Dwarf_Attribute attr;
	Dwarf_Word value;
	const Dwarf_Attribute *found =
		integrate ? dwarf_attr_integrate(die, name, &attr) : dwarf_attr(die, name, &attr);

	if (!found || dwarf_formudata(&attr, &value) != 0 || value > UINT32_MAX)
		return 0;
	return (uint32_t)value;
}

/* @name relative to the directory of the compiler. */
static const char *absolute(struct dwarflines *l, struct unit *unit, const char *name)
{
	Dwarf_Attribute attr;
	const char *directory;
	size_t n, n_name;
	char *path;

	if (!name || name[0] == '/')
		return name ? name : "";
	directory = dwarf_formstring(dwarf_attr(&unit->die, DW_AT_comp_dir, &attr));
	if (!directory)
		return name;
	n = strlen(directory);
	n_name = strlen(name);
	if (arena_alloc(&l->paths, n + n_name + 2, &path))
		return name;
	memcpy(path, directory, n);
	path[n] = '/';
	memcpy(path + n + 1, name, n_name);
	return path;
}

static const char *call_file(struct dwarflines *l, struct unit *unit, Dwarf_Die *inlined)
{
	uint32_t number = number_of(inlined, DW_AT_call_file, false);
	const char *name = NULL;
	Dwarf_Files *files;
	size_t n;

	if (dwarf_getsrcfiles(&unit->code, &files, &n) == 0 && number < n)
		name = dwarf_filesrc(files, number, NULL, NULL);
	return absolute(l, unit, name);
}

static void name_place(struct dwarflines *l, struct unit *unit, uint64_t vaddr,
		       struct symbol_line *ret)
{
	Dwarf_Line *line = dwarf_getsrc_die(&unit->die, vaddr);
	int number = 0;

	ret->file = absolute(l, unit, line ? dwarf_linesrc(line, NULL, NULL) : NULL);
	if (line && dwarf_lineno(line, &number) == 0 && number > 0)
		ret->line = (uint32_t)number;
	if (line && dwarf_linecol(line, &number) == 0 && number > 0)
		ret->column = (uint32_t)number;
}

/* ---------------------------------------------------------------- inlined functions */

/* A function and the functions inlined there, the outermost first. */
struct chain {
	Dwarf_Die items[SYMBOL_LINES_MAX];
	size_t n;
};

/* A block without addresses of its own has those of the code around it. */
static bool may_hold(Dwarf_Die *die, int tag, uint64_t vaddr)
{
	if (tag == DW_TAG_inlined_subroutine)
		return dwarf_haspc(die, vaddr) == 1;
	if (tag != DW_TAG_lexical_block && tag != DW_TAG_try_block && tag != DW_TAG_catch_block)
		return false;
	return (!dwarf_hasattr(die, DW_AT_low_pc) && !dwarf_hasattr(die, DW_AT_ranges)) ||
	       dwarf_haspc(die, vaddr) == 1;
}

/* Whether an inlined function below @die holds @vaddr. */
static bool descend(struct chain *chain, Dwarf_Die *die, uint64_t vaddr, int level)
{
	Dwarf_Die child;
	int more = level < DWARFLINES_DEPTH_MAX ? dwarf_child(die, &child) : 1;

	for (; more == 0; more = dwarf_siblingof(&child, &child)) {
		int tag = dwarf_tag(&child);
		bool is_inlined = tag == DW_TAG_inlined_subroutine;

		if (!may_hold(&child, tag, vaddr))
			continue;
		if (is_inlined && chain->n < SYMBOL_LINES_MAX)
			chain->items[chain->n++] = child;
		if (descend(chain, &child, vaddr, level + 1) || is_inlined)
			return true;
	}
	return false;
}

static int name_chain(struct dwarflines *l, struct unit *unit, struct chain *chain,
		      struct symbol_line *ret)
{
	size_t n = chain->n;

	for (size_t i = 0; i < n; i++) {
		Dwarf_Die *die = &chain->items[n - 1 - i];

		ret[i].function = ret[i].system_name = name_of(die);
		ret[i].start_line = number_of(die, DW_AT_decl_line, true);
		ret[i].inlined = i + 1 < n;
		if (i) {
			Dwarf_Die *callee = &chain->items[n - i];

			ret[i].file = call_file(l, unit, callee);
			ret[i].line = number_of(callee, DW_AT_call_line, false);
			ret[i].column = number_of(callee, DW_AT_call_column, false);
		}
	}
	return (int)n;
}

/* ---------------------------------------------------------------- split DWARF */

void dwarflines_set_splits(struct dwarflines *l, const struct dwarflines_split *splits, size_t n,
			   void (*lend)(int fd))
{
	l->splits = splits;
	l->n_splits = n;
	l->lend = lend;
	for (size_t i = 0; i < l->n_wanted; i++)
		l->units[l->wanted[i]].is_wanted = false;
	l->n_wanted = 0;
}

/* libdw tries a skeleton's file once, so it must be there then. */
static void find_split(struct dwarflines *l, struct unit *unit, size_t number)
{
	const struct dwarflines_split *found = NULL;
	Dwarf_Die code = {0};

	for (size_t i = 0; i < l->n_splits && !found; i++)
		if (l->splits[i].unit == number)
			found = &l->splits[i];
	if (found) {
		unit->is_skeleton = false;
		unit->depth = UNIT_UNREAD;
		l->lend(found->fd);
		if (dwarf_cu_info(unit->die.cu, NULL, NULL, NULL, &code, NULL, NULL, NULL) == 0 &&
		    code.addr)
			unit->code = code;
		l->lend(-1);
	} else if (!unit->is_wanted && l->n_wanted < DWARFWIRE_SPLITS_MAX) {
		unit->is_wanted = true;
		l->wanted[l->n_wanted++] = number;
	}
}

static const char *string_of(Dwarf_Die *die, unsigned int name)
{
	Dwarf_Attribute attr;

	return dwarf_formstring(dwarf_attr(die, name, &attr));
}

bool dwarflines_wanted(const struct dwarflines *l, size_t i, uint32_t *ret_unit, uint64_t *ret_id,
		       char *ret_path)
{
	const char *name, *directory;
	Dwarf_Die die;
	int n;

	if (i >= l->n_wanted)
		return false;
	die = l->units[l->wanted[i]].die;
	name = string_of(&die, DW_AT_dwo_name);
	if (!name)
		name = string_of(&die, DW_AT_GNU_dwo_name);
	directory = string_of(&die, DW_AT_comp_dir);
	*ret_unit = (uint32_t)l->wanted[i];
	*ret_id = 0;
	dwarf_cu_info(die.cu, NULL, NULL, NULL, NULL, ret_id, NULL, NULL);
	name = name ? name : "";
	n = name[0] == '/' || !directory ? snprintf(ret_path, PATH_MAX, "%s", name)
					 : snprintf(ret_path, PATH_MAX, "%s/%s", directory, name);
	if (n >= PATH_MAX)
		ret_path[0] = '\0';
	return true;
}

int dwarflines_find(struct dwarflines *l, uint64_t vaddr, struct symbol_line *ret)
{
	const struct dwarfrange *range = dwarfranges_find(&l->ranges, vaddr), *function;
	struct chain chain = {.n = 0};
	struct unit *unit;
	int r;

	if (!range)
		return 0;
	unit = &l->units[range->index];
	l->n_read += !unit->is_used; /* the lines */
	unit->is_used = true;
	if (unit->is_skeleton)
		find_split(l, unit, range->index);
	r = find_function(l, unit, vaddr, &function);
	if (r)
		return r;
	memset(ret, 0, SYMBOL_LINES_MAX * sizeof(*ret));
	arena_deinit(&l->paths);
	arena_init(&l->paths, DWARFLINES_PATHS_MAX);
	name_place(l, unit, vaddr, &ret[0]);
	if (function &&
	    dwarf_offdie(dwarf_cu_getdwarf(unit->code.cu), function->index, &chain.items[0])) {
		chain.n = 1;
		descend(&chain, &chain.items[0], vaddr, 0);
		return name_chain(l, unit, &chain, ret);
	}
	ret[0].function = ret[0].system_name = "";
	return ret[0].line ? 1 : 0;
}

size_t dwarflines_reads(const struct dwarflines *l)
{
	return l->n_read;
}

/* ---------------------------------------------------------------- the file */

static void close_all(struct dwarflines *l)
{
	for (size_t i = 0; i < l->n_units; i++)
		free(l->units[i].functions.items);
	free(l->units);
	arena_deinit(&l->paths);
	free(l->ranges.items);
	for (size_t i = 0; i < 2; i++) {
		dwarf_end(l->dwarf[i]);
		elf_end(l->elf[i]);
	}
}

void dwarflines_free(struct dwarflines *l)
{
	if (l)
		close_all(l);
	free(l);
}

static int open_files(struct dwarflines *l, const int *fds, size_t n_fds,
		      __attribute__((noreturn)) void (*no_memory)(void))
{
	elf_version(EV_CURRENT);
	for (size_t i = 0; i < n_fds && i < 2; i++) {
		l->elf[i] = elf_begin(fds[i], ELF_C_READ_MMAP, NULL);
		if (l->elf[i])
			l->dwarf[i] = dwarf_begin_elf(l->elf[i], DWARF_C_READ, NULL);
		if (l->dwarf[i])
			dwarf_new_oom_handler(l->dwarf[i], no_memory);
		else if (i == 0)
			return DWARFLINES_UNREADABLE;
	}
	if (l->dwarf[1])
		dwarf_setalt(l->dwarf[0], l->dwarf[1]);
	return read_units(l);
}

int dwarflines_open(const int *fds, size_t n_fds, __attribute__((noreturn)) void (*no_memory)(void),
		    struct dwarflines **ret)
{
	struct dwarflines *l = calloc(1, sizeof(*l));
	int r;

	if (!l)
		return -ENOMEM;
	r = open_files(l, fds, n_fds, no_memory);
	if (r)
		dwarflines_free(l);
	else
		*ret = l;
	return r;
}
