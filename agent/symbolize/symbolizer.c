// SPDX-License-Identifier: Apache-2.0
/*
 * The source of names depends on the image:
 *
 *	a Go program      its line table, with inlined functions, files and lines; for addresses
 *	                  outside Go's code (cgo), the symbol table
 *	any other file    the symbol table
 *	the vDSO          its dynamic symbols
 *	the kernel        /proc/kallsyms
 *	anonymous memory  nothing: "[anon]"; an unresolved pc is "[unknown]"
 *
 * A file's address without a name is "image+0xVADDR", with the ELF virtual address. The address is
 * the same in each process that maps the file, at any load address, and addr2line accepts it. For a
 * file that is not readable ELF, the number is the file offset. A kernel address without a name is
 * "[kernel]" alone, because the address has a meaning only until the next boot.
 *
 * Tables are kept by image. Above the memory ceiling the least used table is evicted. A table holds
 * a reference to its image, so its file stays open.
 *
 * Each string is copied once into blocks, and symbolizer_release() frees all blocks together. Names
 * are foreign bytes; the output is UTF-8.
 */
#include "symbolize/symbolizer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/nsec.h"
#include "base/utf8.h"
#include "symbolize/demangle.h"
#include "gofile/gopclntab.h"
#include "symbolize/ksyms.h"
#include "symbolize/symtab.h"

/* Bytes of all strings between two releases; new strings above it are TOO_MANY_NAMES. A window of a
 * busy node has some 50,000 names of 60 bytes. Reached:
 * `podprof_symbolized_addresses_total{found="no"}`: shown as `image+0xoff`. */
#define SYMBOLIZER_STRINGS_MAX (32u << 20)
/* Shortest time between reads of the kernel's table for unknown kernel addresses; a read takes some
 * 100 ms. */
#define SYMBOLIZER_KERNEL_NS   (300 * NSEC_PER_SEC)
/* Strings are allocated in blocks of this. */
#define SYMBOLIZER_BLOCK       (64u << 10)

static const char TOO_MANY_NAMES[] = "[too many names]";

struct block {
	struct block *next;
	size_t used;
	char bytes[SYMBOLIZER_BLOCK];
};

struct interned {
	UT_hash_handle hh;
	size_t n;
	char s[]; /* in the same block */
};

struct tables {
	const struct image *key;
	struct image *image; /* owns a reference */
	struct gopclntab *go;
	struct symtab *symbols;
	size_t bytes;
	uint64_t used; /* tick of the last use */
	UT_hash_handle hh;
};

struct symbolizer {
	const struct root *proc;
	size_t cache_bytes;
	struct tables *tables;
	size_t tables_bytes;
	uint64_t tick;
	struct ksyms *kernel;
	uint64_t kernel_next_ns; /* earliest time of the next read */
	struct interned *strings;
	struct block *blocks;
	size_t blocks_bytes;
};

/* ---------------------------------------------------------------- strings */

/* @n bytes, aligned, valid until the release. NULL above the ceiling and without memory. */
static void *allocate(struct symbolizer *s, size_t n)
{
	struct block *b = s->blocks;
	void *p;

	n = (n + 15) & ~(size_t)15;
	if (!b || SYMBOLIZER_BLOCK - b->used < n) {
		if (s->blocks_bytes + sizeof(*b) > SYMBOLIZER_STRINGS_MAX)
			return NULL;
		b = malloc(sizeof(*b));
		if (!b)
			return NULL;
		b->used = 0;
		b->next = s->blocks;
		s->blocks = b;
		s->blocks_bytes += sizeof(*b);
	}
	p = b->bytes + b->used;
	b->used += n;
	return p;
}

static const char *intern(struct symbolizer *s, const char *string)
{
	size_t n = strlen(string);
	struct interned *in;
	bool hash_oom = false;

	if (n >= SYMBOLIZER_BLOCK / 2)
		return TOO_MANY_NAMES;
	HASH_FIND(hh, s->strings, string, n, in);
	if (in)
		return in->s;
	in = allocate(s, sizeof(*in) + n + 1);
	if (!in)
		return TOO_MANY_NAMES;
	in->n = n;
	memcpy(in->s, string, n + 1);
	HASH_ADD_KEYPTR(hh, s->strings, in->s, n, in);
	return hash_oom ? TOO_MANY_NAMES : in->s;
}

/* The same for foreign bytes. @string is changed. */
static const char *intern_foreign(struct symbolizer *s, char *string)
{
	utf8_repair(string, strlen(string));
	return intern(s, string);
}

static void release_strings(struct symbolizer *s)
{
	struct block *next;

	HASH_CLEAR(hh, s->strings);
	for (struct block *b = s->blocks; b; b = next) {
		next = b->next;
		free(b);
	}
	s->blocks = NULL;
	s->blocks_bytes = 0;
}

/* ---------------------------------------------------------------- tables */

static void drop_tables(struct symbolizer *s, struct tables *t)
{
	HASH_DEL(s->tables, t);
	s->tables_bytes -= t->bytes;
	gopclntab_free(t->go);
	symtab_free(t->symbols);
	image_unref(t->image);
	free(t);
}

static void drop_least_used(struct symbolizer *s, const struct tables *but)
{
	struct tables *t, *next, *least = NULL;

	HASH_ITER(hh, s->tables, t, next)
		if (t != but && (!least || t->used < least->used))
			least = t;
	if (least)
		drop_tables(s, least);
}

/* A file with unreadable tables counts as a file without tables. */
static int open_tables(struct tables *t)
{
	int r = gopclntab_open(t->image->file, &t->go);

	if (r != -ENOMEM)
		r = symtab_open(t->image->file, &t->symbols);
	return r == -ENOMEM ? r : 0;
}

/* A Go table grows with use. */
static void count_tables(struct symbolizer *s, struct tables *t)
{
	s->tables_bytes -= t->bytes;
	t->bytes = sizeof(*t) + (t->go ? gopclntab_bytes(t->go) : 0) +
		   (t->symbols ? symtab_bytes(t->symbols) : 0);
	s->tables_bytes += t->bytes;
}

static int add_tables(struct symbolizer *s, struct image *image, struct tables **ret)
{
	struct tables *t = calloc(1, sizeof(*t));
	bool hash_oom = false;
	int r;

	if (!t)
		return -ENOMEM;
	t->image = image_ref(image);
	t->key = image;
	HASH_ADD_PTR(s->tables, key, t);
	if (hash_oom) {
		image_unref(t->image);
		free(t);
		return -ENOMEM;
	}
	r = open_tables(t);
	if (r < 0) {
		drop_tables(s, t);
		return r;
	}
	*ret = t;
	return 0;
}

static int get_tables(struct symbolizer *s, struct image *image, struct tables **ret)
{
	struct tables *t;
	int r = 0;

	HASH_FIND_PTR(s->tables, &image, t);
	if (!t)
		r = add_tables(s, image, &t);
	if (r)
		return r;
	t->used = ++s->tick;
	count_tables(s, t);
	while (s->tables_bytes > s->cache_bytes && HASH_COUNT(s->tables) > 1)
		drop_least_used(s, t);
	*ret = t;
	return 0;
}

/* ---------------------------------------------------------------- lines */

/* Sets the single line of a symbol with only a name. */
static void set_name(struct symbol *sym, const char *function, const char *system_name, bool found)
{
	sym->lines[0] = (struct symbol_line){
		.function = function,
		.system_name = system_name,
		.file = "",
	};
	sym->n_lines = 1;
	sym->found = found;
}

static void set_mangled(struct symbolizer *s, struct symbol *sym, char *name)
{
	char readable[DEMANGLE_NAME_MAX];
	const char *system_name;
	bool mangled = demangle(name, readable);

	system_name = intern_foreign(s, name);
	set_name(sym, mangled ? intern_foreign(s, readable) : system_name, system_name, true);
}

static void set_offset(struct symbolizer *s, struct symbol *sym, const struct frame *frame)
{
	char text[256 + 24]; /* the longest file name, and "+0x" with a number */

	snprintf(text, sizeof(text), "%.255s+0x%" PRIx64, image_name(frame->image), frame->vaddr);
	set_name(sym, intern_foreign(s, text), "", false);
	sym->lines[0].system_name = sym->lines[0].function;
}

static void add_go_line(struct symbolizer *s, struct symbol *sym, struct gopclntab_line *line)
{
	const char *function = intern_foreign(s, line->function);

	sym->lines[sym->n_lines++] = (struct symbol_line){
		.function = function,
		.system_name = function,
		.file = intern_foreign(s, line->file),
		.line = line->line,
		.start_line = line->start_line,
		.inlined = line->parent_pc >= 0,
	};
}

/* From the innermost function outwards. Compiler-generated functions are left out, unless there are
 * no others. */
static bool find_go(struct symbolizer *s, struct gopclntab *go, uint64_t vaddr, struct symbol *sym)
{
	struct gopclntab_line line;
	bool more = true;

	sym->n_lines = 0;
	sym->found = true;
	/* counts levels, not lines: hidden functions may be inlined into each other */
	for (size_t level = 0; more && level < SYMBOL_LINES_MAX; level++) {
		if (gopclntab_find(go, vaddr, &line) != 0)
			break;
		more = line.parent_pc >= 0 &&
		       !__builtin_add_overflow(line.entry, (uint64_t)line.parent_pc, &vaddr);
		if (!line.wrapper || (!more && !sym->n_lines))
			add_go_line(s, sym, &line);
	}
	if (sym->n_lines)
		sym->lines[sym->n_lines - 1].inlined =
			false; /* the rest is inlined into hidden functions */
	return sym->n_lines > 0;
}

static int find_in_file(struct symbolizer *s, const struct frame *frame, struct symbol *sym)
{
	struct symtab_symbol symbol;
	struct tables *t;
	int r;

	if (!frame->image->file)
		return set_offset(s, sym, frame), 0;
	r = get_tables(s, frame->image, &t);
	if (r)
		return r;
	if (t->go && find_go(s, t->go, frame->vaddr, sym))
		return 0;
	if (t->symbols && symtab_find(t->symbols, frame->vaddr, &symbol) == 0)
		set_mangled(s, sym, symbol.name);
	else
		set_offset(s, sym, frame);
	return 0;
}

/* BPF programs and modules come and go, so a missing name justifies a new read after some time. */
static int load_kernel(struct symbolizer *s)
{
	struct ksyms *k = NULL;
	int r;

	if (!s->proc || nsec_monotonic() < s->kernel_next_ns)
		return 0;
	s->kernel_next_ns = nsec_monotonic() + SYMBOLIZER_KERNEL_NS;
	r = ksyms_load(s->proc, &k);
	if (r == -ENOMEM)
		return r;
	if (!r) {
		ksyms_free(s->kernel);
		s->kernel = k;
	}
	return 0;
}

void symbolizer_ahead(struct symbolizer *s)
{
	if (!s->kernel)
		(void)load_kernel(s);
}

static int find_in_kernel(struct symbolizer *s, uint64_t pc, struct symbol *sym)
{
	const char *name = "[kernel]";
	uint64_t start;
	bool found = s->kernel && ksyms_find(s->kernel, pc, &name, &start) == 0;
	int r;

	if (!found) {
		r = load_kernel(s);
		if (r)
			return r;
		found = s->kernel && ksyms_find(s->kernel, pc, &name, &start) == 0;
	}
	name = intern(s, name);
	set_name(sym, name, name, found);
	return 0;
}

/* ---------------------------------------------------------------- the symbolizer */

int symbolizer_new(const struct symbolizer_opts *opts, struct symbolizer **ret)
{
	struct symbolizer *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->proc = opts->proc;
	s->cache_bytes = opts->cache_bytes;
	*ret = s;
	return 0;
}

void symbolizer_free(struct symbolizer *s)
{
	struct tables *t, *next;

	if (!s)
		return;
	HASH_ITER(hh, s->tables, t, next)
		drop_tables(s, t);
	ksyms_free(s->kernel);
	release_strings(s);
	free(s);
}

int symbolizer_find(struct symbolizer *s, const struct frame *frame, struct symbol *ret)
{
	switch (frame->image->kind) {
	case IMAGE_FILE:
	case IMAGE_VDSO:
		return find_in_file(s, frame, ret);
	case IMAGE_KERNEL:
		return find_in_kernel(s, frame->vaddr, ret);
	case IMAGE_ANON:
		set_name(ret, "[anon]", "[anon]", false);
		return 0;
	default:
		set_name(ret, "[unknown]", "[unknown]", false);
		return 0;
	}
}

void symbolizer_release(struct symbolizer *s)
{
	release_strings(s);
}

size_t symbolizer_bytes(const struct symbolizer *s)
{
	return s->tables_bytes + s->blocks_bytes + HASH_OVERHEAD(hh, s->strings) +
	       HASH_OVERHEAD(hh, s->tables) + (s->kernel ? ksyms_bytes(s->kernel) : 0);
}
