// SPDX-License-Identifier: Apache-2.0
#include "symbolize/source.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "elf/elffile.h"
#include "gofile/gopclntab.h"
#include "symbolize/debugdata.h"
#include "symbolize/debugfile.h"
#include "symbolize/demangle.h"
#include "symbolize/plt.h"
#include "symbolize/symbolizer.h"
#include "symbolize/symtab.h"
#include "unwind/ehindex.h"

/* An unreadable table counts as no table. */
static int outcome_of(int r)
{
	if (!r || r == -ENOMEM)
		return r;
	return SOURCE_NONE;
}

/* ---------------------------------------------------------------- Go */

static int go_open(const struct source_file *file, void **ret)
{
	struct gopclntab *go;
	int r = gopclntab_open(file->elf, &go);

	if (!r)
		*ret = go;
	return r == GOPCLNTAB_ABANDONED ? SOURCE_ABANDONED : outcome_of(r);
}

/* From the innermost function outwards. Compiler-generated functions are left out, unless there are
 * no others. */
static int go_find(void *opened, uint64_t vaddr, struct symbol_lines *lines)
{
	struct gopclntab_line line;
	bool more = true, any = false;
	int r = 0;

	/* counts levels, not lines: hidden functions may be inlined into each other */
	for (size_t level = 0; more && level < SYMBOL_LINES_MAX && !r; level++) {
		if (gopclntab_find(opened, vaddr, &line) != 0)
			break;
		more = line.parent_pc >= 0 &&
		       !__builtin_add_overflow(line.entry, (uint64_t)line.parent_pc, &vaddr);
		if (line.wrapper && (more || any))
			continue;
		any = true;
		r = symbol_lines_add(lines, &(struct symbol_line){
						    .function = line.function,
						    .system_name = line.function,
						    .file = line.file,
						    .line = line.line,
						    .start_line = line.start_line,
						    .inlined = line.parent_pc >= 0,
					    });
	}
	return r || any ? r : SOURCE_NONE;
}

static void go_settle(void *opened)
{
	gopclntab_drop_blocks(opened);
}

static size_t go_bytes(const void *opened)
{
	return gopclntab_bytes(opened);
}

static void go_free(void *opened)
{
	gopclntab_free(opened);
}

const struct symbol_source source_go = {
	.name = "gopclntab",
	.open = go_open,
	.find = go_find,
	.settle = go_settle,
	.bytes = go_bytes,
	.free = go_free,
};

/* ---------------------------------------------------------------- symbol tables */

/**
 * struct table - the symbols of a file, in the file itself or in another
 * @unpacked: the other file, if packed into the file; else NULL
 * @bytes: of @unpacked
 * @n_bytes: in @bytes
 * @functions: the file's unwind table; NULL if there is none
 */
struct table {
	struct elffile *unpacked;
	void *bytes;
	size_t n_bytes;
	struct symtab *symbols;
	struct ehindex *functions;
};

static void table_free(void *opened)
{
	struct table *t = opened;

	if (!t)
		return;
	ehindex_free(t->functions);
	symtab_free(t->symbols);
	elffile_free(t->unpacked);
	free(t->bytes);
	free(t);
}

static void tablep_free(struct table **t)
{
	table_free(*t);
}

static size_t table_bytes(const void *opened)
{
	const struct table *t = opened;
	size_t n = sizeof(*t) + t->n_bytes + symtab_bytes(t->symbols);

	return t->functions ? n + ehindex_bytes(t->functions) : n;
}

/* The symbols of @in. The result of a source's open(). */
static int open_symbols(struct table **t, const struct source_file *file, const struct elffile *in,
			void **ret)
{
	int r = symtab_open(in, &(*t)->symbols);

	if ((*t)->symbols && ehindex_open(file->elf, &(*t)->functions) == -ENOMEM)
		return -ENOMEM;
	if ((*t)->symbols)
		*ret = take_ptr(*t);
	return r == SYMTAB_ABANDONED ? SOURCE_ABANDONED : outcome_of(r);
}

static int symtab_source_open(const struct source_file *file, void **ret)
{
	_cleanup_(tablep_free) struct table *t = calloc(1, sizeof(*t));

	return t ? open_symbols(&t, file, file->elf, ret) : -ENOMEM;
}

/* The linker does not give hand-written assembly a size, unless its author did. Such a symbol ends
 * with the function in the unwind table. Assembly without unwinding information, as musl's memcpy,
 * ends before the next function of that table, if the symbol table has all functions. Otherwise a
 * function without a symbol may lie between, so the symbol names the first byte. */
static bool is_within(const struct table *t, const struct symtab_symbol *symbol, uint64_t vaddr)
{
	struct ehrange range;
	uint64_t start;
	int r;

	if (symbol->size || !t->functions || symbol->vaddr == vaddr)
		return true;
	if (ehindex_find(t->functions, vaddr, &range) == 0)
		return symbol->vaddr >= range.start;
	if (!symbol->from_symtab)
		return false;
	r = ehindex_start(t->functions, vaddr, &start);
	return r == ELFFILE_ABSENT || (!r && start < symbol->vaddr);
}

static void table_settle(void *opened)
{
	struct table *t = opened;

	symtab_drop_blocks(t->symbols);
	if (t->functions)
		ehindex_drop_blocks(t->functions);
}

static int table_find(void *opened, uint64_t vaddr, struct symbol_lines *lines)
{
	struct table *t = opened;
	char readable[DEMANGLE_NAME_MAX];
	struct symtab_symbol symbol;
	int r = outcome_of(symtab_find(t->symbols, vaddr, &symbol));
	bool mangled;

	if (!r && !is_within(t, &symbol, vaddr))
		r = SOURCE_NONE;
	if (r)
		return r;
	mangled = demangle(symbol.name, readable);
	return symbol_lines_add(lines, &(struct symbol_line){
					       .function = mangled ? readable : symbol.name,
					       .system_name = symbol.name,
					       .file = "",
				       });
}

const struct symbol_source source_symtab = {
	.name = "symtab",
	.open = symtab_source_open,
	.find = table_find,
	.settle = table_settle,
	.bytes = table_bytes,
	.free = table_free,
};

static int debugdata_open(const struct source_file *file, void **ret)
{
	_cleanup_(tablep_free) struct table *t = calloc(1, sizeof(*t));
	int r;

	if (!t)
		return -ENOMEM;
	r = debugdata_read(file->elf, &t->bytes, &t->n_bytes);
	if (r == ELFFILE_ABANDONED)
		return SOURCE_ABANDONED;
	if (!r)
		r = elffile_open_memory(t->bytes, t->n_bytes, &t->unpacked);
	if (r)
		return outcome_of(r);
	elffile_charge(t->unpacked, file->elf);
	return open_symbols(&t, file, t->unpacked, ret);
}

const struct symbol_source source_debugdata = {
	.name = "debugdata",
	.open = debugdata_open,
	.find = table_find,
	.settle = table_settle,
	.bytes = table_bytes,
	.free = table_free,
};

/* A file with a symbol table needs no other. */
static int debugfile_source_open(const struct source_file *file, void **ret)
{
	_cleanup_(tablep_free) struct table *t = NULL;
	struct elffile_section section;
	const struct elffile *debug;
	int r;

	if (elffile_section(file->elf, ".symtab", &section) == 0)
		return SOURCE_NONE;
	r = debugfile_find(file, &debug);
	if (r)
		return r == DEBUGFILE_LATER ? SOURCE_LATER : outcome_of(r);
	t = calloc(1, sizeof(*t));
	return t ? open_symbols(&t, file, debug, ret) : -ENOMEM;
}

const struct symbol_source source_debugfile = {
	.name = "debugfile",
	.open = debugfile_source_open,
	.find = table_find,
	.settle = table_settle,
	.bytes = table_bytes,
	.free = table_free,
};

/* ---------------------------------------------------------------- stubs */

static int plt_source_open(const struct source_file *file, void **ret)
{
	struct plt *plt;
	int r = plt_open(file->elf, &plt);

	if (!r)
		*ret = plt;
	return outcome_of(r);
}

static int plt_source_find(void *opened, uint64_t vaddr, struct symbol_lines *lines)
{
	char name[PLT_NAME_MAX], readable[DEMANGLE_NAME_MAX], function[DEMANGLE_NAME_MAX + 8];

	if (plt_find(opened, vaddr, name))
		return SOURCE_NONE;
	snprintf(function, sizeof(function), "%s@plt", demangle(name, readable) ? readable : name);
	return symbol_lines_add(
		lines,
		&(struct symbol_line){.function = function, .system_name = name, .file = ""});
}

static size_t plt_source_bytes(const void *opened)
{
	return plt_bytes(opened);
}

static void plt_source_free(void *opened)
{
	plt_free(opened);
}

const struct symbol_source source_plt = {
	.name = "plt",
	.open = plt_source_open,
	.find = plt_source_find,
	.bytes = plt_source_bytes,
	.free = plt_source_free,
};

/* ---------------------------------------------------------------- the unwind table */

static int ehframe_open(const struct source_file *file, void **ret)
{
	struct ehindex *index;
	int r = ehindex_open(file->elf, &index);

	if (!r)
		*ret = index;
	return outcome_of(r);
}

static int ehframe_find(void *opened, uint64_t vaddr, struct symbol_lines *lines)
{
	struct ehrange range;
	int r = outcome_of(ehindex_find(opened, vaddr, &range));

	if (!r)
		symbol_lines_start(lines, range.start);
	return r;
}

static void ehframe_settle(void *opened)
{
	ehindex_drop_blocks(opened);
}

static size_t ehframe_bytes(const void *opened)
{
	return ehindex_bytes(opened);
}

static void ehframe_free(void *opened)
{
	ehindex_free(opened);
}

const struct symbol_source source_ehframe = {
	.name = "eh_frame",
	.open = ehframe_open,
	.find = ehframe_find,
	.settle = ehframe_settle,
	.bytes = ehframe_bytes,
	.free = ehframe_free,
	.only_starts = true,
};
