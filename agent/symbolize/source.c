// SPDX-License-Identifier: Apache-2.0
#include "symbolize/source.h"

#include <errno.h>
#include <stdbool.h>

#include "gofile/gopclntab.h"
#include "symbolize/demangle.h"
#include "symbolize/symbolizer.h"
#include "symbolize/symtab.h"

/* An unreadable table counts as no table. */
static int outcome_of(int r)
{
	if (!r || r == -ENOMEM)
		return r;
	return SOURCE_NONE;
}

/* ---------------------------------------------------------------- Go */

static int go_open(const struct elffile *file, void **ret)
{
	struct gopclntab *go;
	int r = gopclntab_open(file, &go);

	if (!r)
		*ret = go;
	return outcome_of(r);
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

static size_t go_bytes(const void *opened)
{
	return gopclntab_bytes(opened);
}

static void go_free(void *opened)
{
	gopclntab_free(opened);
}

const struct symbol_source source_go = {"gopclntab", go_open, go_find, go_bytes, go_free};

/* ---------------------------------------------------------------- the symbol table */

static int symtab_source_open(const struct elffile *file, void **ret)
{
	struct symtab *t;
	int r = symtab_open(file, &t);

	if (!r)
		*ret = t;
	return outcome_of(r);
}

static int symtab_source_find(void *opened, uint64_t vaddr, struct symbol_lines *lines)
{
	char readable[DEMANGLE_NAME_MAX];
	struct symtab_symbol symbol;
	int r = outcome_of(symtab_find(opened, vaddr, &symbol));
	bool mangled;

	if (r)
		return r;
	mangled = demangle(symbol.name, readable);
	return symbol_lines_add(lines, &(struct symbol_line){
					       .function = mangled ? readable : symbol.name,
					       .system_name = symbol.name,
					       .file = "",
				       });
}

static size_t symtab_source_bytes(const void *opened)
{
	return symtab_bytes(opened);
}

static void symtab_source_free(void *opened)
{
	symtab_free(opened);
}

const struct symbol_source source_symtab = {"symtab", symtab_source_open, symtab_source_find,
					    symtab_source_bytes, symtab_source_free};
