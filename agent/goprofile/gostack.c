// SPDX-License-Identifier: Apache-2.0
/*
 * Converts stacks recorded by Go's profilers, as runtime/pprof does (protomem.go and proto.go
 * there).
 *
 * A recorded stack is mostly logical already: each inlined function has an entry. The
 * entries of outer functions are addresses of instructions left by the compiler as marks. Such an
 * entry stands only for the innermost function at the byte before. Adding all functions inlined
 * there, as is right for a sampled or unwound stack, would show functions twice. But since 1.23 a
 * part of the stacks of mutex and block profiles has only return addresses, and the limit on frames
 * may cut a stack between inlined functions. So the rule is that of runtime.CallersFrames: if the
 * next entry is not the mark of the next outer function, that function is added.
 *
 * The entries of a physical function then become a single location with several lines, the form of
 * inlining in a profile. An entry joins the entries before if the last of these is inlined and both
 * are in the same physical function. Recursion, the same function twice, is not inlining.
 *
 * A heap profile hides leading functions of the runtime, which Go 1.26 began to record, unless the
 * stack would be empty; the function at the address itself decides. No profile has runtime.goexit,
 * the root of every goroutine, nor the compiler-made wrapper of an inlined function. A stack of
 * compiler-made functions alone shows them, because servers leave out samples without a stack: a
 * goroutine before its start has only "main.start.gowrap1".
 *
 * The symbolizer resolves addresses without a Go function, as in C code of a Go program.
 */
#include "goprofile/gostack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "elf/elffile.h"
#include "gofile/gopclntab.h"
#include "goprofile/stacksnap.h"
#include "pprof/pprof.h"
#include "symbolize/symbolizer.h"

/* Go programs and libraries in the processes of a series. Reached: the symbolizer alone names
 * the others. */
#define GOSTACK_IMAGES_MAX 64
/* Inlined functions added in a single place; a longer chain contains a cycle. Reached: the stack
 * ends there. */
#define GOSTACK_EXPAND_MAX 64
/* Entries of a stack before the functions of the last entry are added: the runtime's limit.
 * Reached: the stack ends there. */
#define GOSTACK_DEPTH_MAX  (GOSTACK_LOCATIONS_MAX - GOSTACK_EXPAND_MAX)

struct go_image {
	const struct image *image;
	struct gopclntab *table; /* NULL: not Go */
};

/* A function at an address. */
struct place {
	const struct image *image;
	uint64_t vaddr; /* of the instruction */
	uint64_t entry; /* of the physical function; 0: not Go, no joins */
	uint32_t function;
	uint32_t line;
	bool inlined;
	bool dropped; /* runtime.goexit, or a wrapper at a stack's end */
};

/* The facts of a return address of a snapshot. */
struct entry {
	struct place place;
	int32_t parent_pc; /* as in gopclntab */
	bool named;
	bool is_runtime; /* hidden as a leading function */
	bool wrapper;	 /* made by the compiler */
};

struct gostack {
	struct symbolizer *symbolizer;
	struct pprof *pprof;
	struct go_image images[GOSTACK_IMAGES_MAX];
	size_t n_images;
	const struct stacksnap *snap; /* the current snapshot */
	struct entry *entries;	      /* of its frames */
	struct gopclntab_line line;   /* scratch: large */
	struct place stack[GOSTACK_LOCATIONS_MAX];
	size_t depth;
	struct gostack_stats stats;
};

int gostack_new(struct symbolizer *symbolizer, struct pprof *pprof, struct gostack **ret)
{
	struct gostack *b = calloc(1, sizeof(*b));

	if (!b)
		return -ENOMEM;
	b->symbolizer = symbolizer;
	b->pprof = pprof;
	*ret = b;
	return 0;
}

void gostack_free(struct gostack *b)
{
	if (!b)
		return;
	for (size_t i = 0; i < b->n_images; i++)
		gopclntab_free(b->images[i].table);
	free(b->entries);
	free(b);
}

struct gostack_stats gostack_stats(const struct gostack *b)
{
	return b->stats;
}

/* ---------------------------------------------------------------- images */

/* *@ret is NULL for an image without a line table of Go. */
static int table_of(struct gostack *b, const struct image *image, struct gopclntab **ret)
{
	struct go_image *go;
	int r;

	*ret = NULL;
	for (size_t i = 0; i < b->n_images; i++) {
		if (b->images[i].image == image) {
			*ret = b->images[i].table;
			return 0;
		}
	}
	if (!image->file || b->n_images == GOSTACK_IMAGES_MAX)
		return 0;
	go = &b->images[b->n_images];
	*go = (struct go_image){.image = image};
	r = gopclntab_open(image->file, &go->table);
	if (r < 0)
		return r;
	if (!r)
		gopclntab_keep_type_arguments(go->table);
	b->n_images++;
	*ret = go->table;
	return 0;
}

/* The segment of the file with @vaddr; the whole address space without a file. */
static int enter_mapping(struct gostack *b, const struct place *place, uint32_t *ret)
{
	struct pprof_mapping mapping = {
		.limit = UINT64_MAX,
		.path = place->image->path,
		.build_id = place->image->build_id,
		.has_functions = true,
		.has_filenames = place->entry != 0,
		.has_line_numbers = place->entry != 0,
		.has_inline_frames = place->entry != 0,
	};
	const struct elffile_segment *segments;
	size_t n = 0;

	if (place->image->file) {
		segments = elffile_segments(place->image->file, &n);
		for (size_t i = 0; i < n; i++) {
			if (place->vaddr < segments[i].vaddr ||
			    place->vaddr - segments[i].vaddr >= segments[i].memsz)
				continue;
			mapping.start = segments[i].vaddr;
			mapping.limit = segments[i].vaddr + segments[i].memsz;
			mapping.offset = segments[i].off;
			break;
		}
	}
	return pprof_mapping(b->pprof, &mapping, ret);
}

/* ---------------------------------------------------------------- names */

static bool starts_with(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

static bool is_runtime_name(const char *name)
{
	return starts_with(name, "runtime.") || starts_with(name, "internal/runtime/");
}

/* The innermost Go function at @vaddr. *@ret_found is false if there is none. */
static int name_go(struct gostack *b, struct gopclntab *table, const struct image *image,
		   uint64_t vaddr, struct entry *ret, bool *ret_found)
{
	struct gopclntab_line *line = &b->line;
	int r = gopclntab_find(table, vaddr, line);

	*ret_found = r == 0;
	if (r)
		return r < 0 ? r : 0;
	*ret = (struct entry){
		.place = {.image = image,
			  .vaddr = vaddr,
			  .entry = line->entry,
			  .line = line->line,
			  .inlined = line->parent_pc >= 0,
			  .dropped = strcmp(line->function, "runtime.goexit") == 0},
		.parent_pc = line->parent_pc,
		.named = true,
		.wrapper = line->wrapper,
	};
	return pprof_function(b->pprof, line->function, line->function, line->file,
			      line->start_line, &ret->place.function);
}

static int name_other(struct gostack *b, const struct image *image, uint64_t vaddr,
		      struct entry *ret)
{
	const struct frame frame = {(struct image *)image, vaddr};
	struct symbol symbol;
	const struct symbol_line *line;
	int r = symbolizer_find(b->symbolizer, &frame, &symbol);

	if (r)
		return r;
	line = &symbol.lines[symbol.n_lines - 1];
	*ret = (struct entry){
		.place = {.image = image, .vaddr = vaddr, .line = line->line},
		.parent_pc = -1,
		.named = symbol.found,
	};
	return pprof_function(b->pprof, line->function, line->system_name, line->file,
			      line->start_line, &ret->place.function);
}

static int name_frame(struct gostack *b, const struct frame *frame, struct entry *ret)
{
	uint64_t vaddr = frame->vaddr ? frame->vaddr - 1 : 0;
	struct gopclntab *table;
	bool found = false;
	int r = table_of(b, frame->image, &table);

	if (r)
		return r;
	if (table)
		r = name_go(b, table, frame->image, vaddr, ret, &found);
	if (!r && !found)
		r = name_other(b, frame->image, vaddr, ret);
	if (r || !found)
		return r;
	r = gopclntab_find(table, frame->vaddr, &b->line);
	if (r < 0)
		return r;
	ret->is_runtime = r == 0 && is_runtime_name(b->line.function);
	return 0;
}

int gostack_name(struct gostack *b, const struct stacksnap *snap)
{
	b->snap = snap;
	free(b->entries);
	b->entries = calloc(snap->n_frames + 1, sizeof(*b->entries));
	if (!b->entries)
		return -ENOMEM;
	for (size_t i = 0; i < snap->n_frames; i++) {
		int r = name_frame(b, &snap->frames[i], &b->entries[i]);

		if (r)
			return r;
		b->stats.n_places++;
		b->stats.n_unnamed += !b->entries[i].named;
	}
	return 0;
}

/* ---------------------------------------------------------------- stacks */

static void push(struct gostack *b, const struct place *place)
{
	if (!place->dropped && b->depth < GOSTACK_LOCATIONS_MAX)
		b->stack[b->depth++] = *place;
}

/* Whether the next entry of the stack is the mark of the function at @outer. */
static bool is_mark(const struct frame *next, const struct image *image, uint64_t outer)
{
	return next && next->image == image && next->vaddr == outer + 1;
}

/* Add the functions around an inlined entry, up to the functions that the stack has itself. */
static int push_outer(struct gostack *b, const struct entry *inner, const struct frame *next)
{
	struct entry entry = *inner;
	struct gopclntab *table = NULL;
	bool found = true;
	int r = entry.place.inlined ? table_of(b, entry.place.image, &table) : 0;

	for (int i = 0; !r && table && entry.place.inlined && i < GOSTACK_EXPAND_MAX; i++) {
		uint64_t outer = entry.place.entry + (uint32_t)entry.parent_pc;

		if (is_mark(next, entry.place.image, outer))
			break;
		r = name_go(b, table, entry.place.image, outer, &entry, &found);
		if (r || !found)
			break;
		entry.place.dropped |= b->line.wrapper;
		push(b, &entry.place);
	}
	return r;
}

static int push_from(struct gostack *b, const uint32_t *pcs, size_t n, size_t first, size_t limit,
		     enum gostack_rule rule)
{
	int r = 0;

	b->depth = 0;
	for (size_t i = first; !r && i < n && b->depth < limit; i++) {
		const struct entry *entry = &b->entries[pcs[i]];

		if (!entry->wrapper || rule != GOSTACK_WALKED)
			push(b, &entry->place);
		r = push_outer(b, entry, i + 1 < n ? &b->snap->frames[pcs[i + 1]] : NULL);
	}
	return r;
}

/* Fill the stack with the visible part of a record. */
static int build_stack(struct gostack *b, const uint32_t *pcs, size_t n, enum gostack_rule rule)
{
	bool cut = rule == GOSTACK_PHYSICAL && n <= GOSTACK_PHYSICAL_DEPTH + GOSTACK_PHYSICAL_MORE;
	size_t limit = cut ? GOSTACK_PHYSICAL_DEPTH : GOSTACK_DEPTH_MAX;
	size_t first = 0;
	int r;

	b->depth = 0;
	while (rule == GOSTACK_HEAP && first < n && b->entries[pcs[first]].is_runtime)
		first++;
	if (first == n)
		first = 0;
	r = push_from(b, pcs, n, first, limit, rule);
	if (!r && b->depth == 0)
		r = push_from(b, pcs, n, 0, limit, GOSTACK_HEAP); /* with compiler-made functions */
	return r;
}

/* Whether @inner is inlined into @outer, in the form that a profile shows. */
static bool joins(const struct place *inner, const struct place *outer)
{
	return inner->inlined && inner->entry && inner->entry == outer->entry &&
	       inner->image == outer->image && inner->function != outer->function;
}

/* Add the location of the joined entries from @first on; *@ret_n is their number. */
static int enter_location(struct gostack *b, size_t first, uint32_t *ret, size_t *ret_n)
{
	struct pprof_line lines[PPROF_LINES_MAX];
	uint32_t mapping;
	size_t n = 0;
	int r;

	do {
		const struct place *place = &b->stack[first + n];

		lines[n++] = (struct pprof_line){.function = place->function, .line = place->line};
	} while (first + n < b->depth && n < PPROF_LINES_MAX &&
		 joins(&b->stack[first + n - 1], &b->stack[first + n]));
	r = enter_mapping(b, &b->stack[first], &mapping);
	if (!r)
		r = pprof_location(b->pprof, mapping, b->stack[first].vaddr, lines, n, ret);
	*ret_n = n;
	return r;
}

int gostack_locations(struct gostack *b, const uint32_t *pcs, size_t n, enum gostack_rule rule,
		      uint32_t ret[GOSTACK_LOCATIONS_MAX], size_t *ret_n)
{
	int r = build_stack(b, pcs, n, rule);
	size_t count = 0;

	for (size_t i = 0, step; !r && i < b->depth; i += step)
		r = enter_location(b, i, &ret[count++], &step);
	if (!r)
		*ret_n = count < PPROF_DEPTH_MAX ? count : PPROF_DEPTH_MAX;
	return r;
}
