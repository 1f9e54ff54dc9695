// SPDX-License-Identifier: Apache-2.0
/*
 * Stacks of Go's heap profiler to what runtime/pprof makes of them (protomem.go and proto.go
 * there).
 *
 * A recorded stack is already logical: where functions were inlined, it has an entry for each, of
 * which the outer ones are addresses of instructions that the compiler left behind as marks. So
 * each entry stands for the innermost function at the byte before it, and for nothing more. Asking
 * for all that is inlined there, as is right for a sampled or unwound stack, would show functions
 * twice. Only the last entry is another matter: where the limit on frames has cut the stack between
 * inlined functions, those around it are added.
 *
 * The entries of one physical function then become one location with several lines, as a profile
 * shows inlining: an entry joins the ones before it if the last of these is inlined and both are in
 * the same physical function. Recursion, the same function twice, is no inlining.
 *
 * Leading functions of the runtime, which Go 1.26 began to record, are dropped, unless nothing
 * would be left; for that question the function at the address itself counts. So is runtime.goexit,
 * the root of every goroutine, and what the compiler has made around an inlined function at the
 * end.
 *
 * Addresses without a Go function, of C code in a Go program, are the symbolizer's.
 */
#include "report/heap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "goheap/unsample.h"
#include "pprof/pprof.h"
#include "procmap/elffile.h"
#include "report/heapsnap.h"
#include "gofile/gopclntab.h"
#include "symbolize/symbolizer.h"

/* Go programs and libraries in the processes of one series. Beyond, the rest is named by the
 * symbolizer alone. */
#define HEAP_IMAGES_MAX 64
/* Functions inlined into each other that are added at a stack's end; a chain that is longer goes in
 * circles. */
#define HEAP_EXPAND_MAX 64
/* Entries of one stack: the runtime's limit and the ones added at its end. */
#define HEAP_DEPTH_MAX	(1026 + HEAP_EXPAND_MAX)

struct go_image {
	const struct image *image;
	struct gopclntab *table; /* NULL: not Go */
};

/* One function at one address. */
struct place {
	const struct image *image;
	uint64_t vaddr; /* of the instruction */
	uint64_t entry; /* of the physical function; 0: not Go, nothing joins */
	uint32_t function;
	uint32_t line;
	bool inlined;
	bool dropped; /* runtime.goexit, or a wrapper at a stack's end */
};

/* What is known of one return address of a snapshot. */
struct entry {
	struct place place;
	int32_t parent_pc; /* as gopclntab has it */
	bool named;
	bool is_runtime; /* a leading one is hidden */
};

struct heap_build {
	struct symbolizer *symbolizer;
	const struct heap_report_opts *opts;
	struct pprof *pprof;
	struct go_image images[HEAP_IMAGES_MAX];
	size_t n_images;
	const struct heapsnap *snap; /* the one at hand */
	struct entry *entries;	     /* of its frames */
	struct gopclntab_line line;  /* scratch: it is large */
	struct place stack[HEAP_DEPTH_MAX];
	size_t depth;
	struct heap_report_stats stats;
};

static void heap_build_free(struct heap_build *b)
{
	if (!b)
		return;
	for (size_t i = 0; i < b->n_images; i++)
		gopclntab_free(b->images[i].table);
	pprof_free(b->pprof);
	free(b->entries);
	free(b);
}

DEFINE_CLEANUP(struct heap_build *, heap_build_freep, heap_build_free);

/* ---------------------------------------------------------------- images */

/* NULL for what has no line table of Go. */
static int table_of(struct heap_build *b, const struct image *image, struct gopclntab **ret)
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
	if (!image->file || b->n_images == HEAP_IMAGES_MAX)
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

/* The segment of the file that has @vaddr; all of the address space for what is no file. */
static int enter_mapping(struct heap_build *b, const struct place *place, uint32_t *ret)
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

/* The innermost Go function at @vaddr. False in *@ret_found if there is none. */
static int name_go(struct heap_build *b, struct gopclntab *table, const struct image *image,
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
	};
	return pprof_function(b->pprof, line->function, line->function, line->file,
			      line->start_line, &ret->place.function);
}

static int name_other(struct heap_build *b, const struct image *image, uint64_t vaddr,
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

static int name_frame(struct heap_build *b, const struct frame *frame, struct entry *ret)
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

static int name_frames(struct heap_build *b)
{
	free(b->entries);
	b->entries = calloc(b->snap->n_frames + 1, sizeof(*b->entries));
	if (!b->entries)
		return -ENOMEM;
	for (size_t i = 0; i < b->snap->n_frames; i++) {
		int r = name_frame(b, &b->snap->frames[i], &b->entries[i]);

		if (r)
			return r;
		b->stats.n_places++;
		b->stats.n_unnamed += !b->entries[i].named;
	}
	return 0;
}

/* ---------------------------------------------------------------- stacks */

static void push(struct heap_build *b, const struct place *place)
{
	if (!place->dropped && b->depth < HEAP_DEPTH_MAX)
		b->stack[b->depth++] = *place;
}

/* The last entry, and the functions it is inlined into. */
static int push_last(struct heap_build *b, const struct entry *last)
{
	struct entry entry = *last;
	struct gopclntab *table;
	bool found = true;
	int r = table_of(b, entry.place.image, &table);

	push(b, &entry.place);
	for (int i = 0; !r && table && entry.place.inlined && i < HEAP_EXPAND_MAX; i++) {
		uint64_t outer = entry.place.entry + (uint32_t)entry.parent_pc;

		r = name_go(b, table, entry.place.image, outer, &entry, &found);
		if (r || !found)
			break;
		entry.place.dropped |= b->line.wrapper;
		push(b, &entry.place);
	}
	return r;
}

static int push_from(struct heap_build *b, const struct heapsnap_record *record, size_t first)
{
	const uint32_t *pcs = b->snap->pcs + record->first_pc;
	size_t last = record->n_pcs - 1;

	b->depth = 0;
	for (size_t i = first; i < last; i++)
		push(b, &b->entries[pcs[i]].place);
	return push_last(b, &b->entries[pcs[last]]);
}

/* Fill the stack with what is shown of a record. */
static int build_stack(struct heap_build *b, const struct heapsnap_record *record)
{
	const uint32_t *pcs = b->snap->pcs + record->first_pc;
	size_t first = 0;
	int r;

	b->depth = 0;
	if (record->n_pcs == 0)
		return 0;
	while (first < record->n_pcs && b->entries[pcs[first]].is_runtime)
		first++;
	if (first == record->n_pcs)
		first = 0;
	r = push_from(b, record, first);
	if (!r && b->depth == 0)
		r = push_from(b, record, 0);
	return r;
}

/* Whether @outer is what @inner is inlined into, as far as a profile shows it. */
static bool joins(const struct place *inner, const struct place *outer)
{
	return inner->inlined && inner->entry && inner->entry == outer->entry &&
	       inner->image == outer->image && inner->function != outer->function;
}

/* The location of the stack's entries from @first on that belong together; *@ret_n is how many. */
static int enter_location(struct heap_build *b, size_t first, uint32_t *ret, size_t *ret_n)
{
	struct pprof_line lines[PPROF_LINES_MAX];
	uint32_t mapping;
	size_t n = 0;
	int r;

	do {
		const struct place *place = &b->stack[first + n];

		lines[n++] = (struct pprof_line){place->function, place->line};
	} while (first + n < b->depth && n < PPROF_LINES_MAX &&
		 joins(&b->stack[first + n - 1], &b->stack[first + n]));
	r = enter_mapping(b, &b->stack[first], &mapping);
	if (!r)
		r = pprof_location(b->pprof, mapping, b->stack[first].vaddr, lines, n, ret);
	*ret_n = n;
	return r;
}

/* ---------------------------------------------------------------- samples */

/* The difference of what two profiles show, so that the windows' sum is the last one's number. */
static struct unsampled alloc_value(const struct heap_build *b, const struct heapsnap_record *r)
{
	struct unsampled now, before;

	if (!b->opts->delta)
		return unsample(r->allocs, r->size, b->snap->rate);
	now = unsample(r->fresh, r->size, b->snap->rate);
	before = unsample(r->before, r->size, b->snap->rate);
	return (struct unsampled){now.objects - before.objects, now.bytes - before.bytes};
}

static int enter_sample(struct heap_build *b, const struct heapsnap_record *record,
			const int64_t values[4])
{
	uint32_t locations[HEAP_DEPTH_MAX];
	const struct pprof_label label = {
		.key = "bytes",
		.num = record->size > INT64_MAX ? INT64_MAX : (int64_t)record->size,
		.unit = "bytes",
	};
	bool has_label = b->opts->delta || record->allocs || !b->snap->blank_label;
	size_t n = 0;
	int r = build_stack(b, record);

	for (size_t i = 0, step; !r && i < b->depth; i += step)
		r = enter_location(b, i, &locations[n++], &step);
	if (r)
		return r;
	return pprof_sample(b->pprof, locations, n < PPROF_DEPTH_MAX ? n : PPROF_DEPTH_MAX, values,
			    &label, has_label);
}

static int enter_record(struct heap_build *b, const struct heapsnap_record *record)
{
	struct unsampled alloc = alloc_value(b, record);
	struct unsampled inuse = unsample(record->inuse, record->size, b->snap->rate);
	const int64_t values[] = {alloc.objects, alloc.bytes, inuse.objects, inuse.bytes};
	int r;

	if (b->opts->delta && !alloc.objects && !inuse.objects) {
		b->stats.n_empty++;
		return 0;
	}
	r = enter_sample(b, record, values);
	if (r < 0)
		return r;
	*(r ? &b->stats.n_left_out : &b->stats.n_records) += 1;
	return 0;
}

static int enter_snap(struct heap_build *b, const struct heapsnap *snap)
{
	int r;

	b->snap = snap;
	r = name_frames(b);
	if (r > 0) { /* the profile has no room for more names */
		b->stats.n_left_out += snap->n_records;
		return 0;
	}
	for (size_t i = 0; !r && i < snap->n_records; i++)
		r = enter_record(b, &snap->records[i]);
	if (!r && snap->forced)
		r = pprof_comment(b->pprof, "podprof has turned sampling on in this process: what "
					    "it had allocated before is not in here");
	return r < 0 ? r : 0;
}

static int heap_build_new(const struct heapsnap *first, const struct heap_report_opts *opts,
			  struct symbolizer *symbolizer, struct heap_build **ret)
{
	const struct pprof_opts pprof_opts = {
		.types = {{"alloc_objects", "count"},
			  {"alloc_space", "bytes"},
			  {"inuse_objects", "count"},
			  {"inuse_space", "bytes"}},
		.n_types = 4,
		.period_type = {"space", "bytes"},
		.period = first ? first->rate : 0,
		.time_ns = (int64_t)opts->time_ns,
		.duration_ns = (int64_t)opts->duration_ns,
		.max_samples = opts->max_samples,
		.max_bytes = opts->max_bytes,
	};
	_cleanup_(heap_build_freep) struct heap_build *b = calloc(1, sizeof(*b));
	int r;

	if (!b)
		return -ENOMEM;
	b->symbolizer = symbolizer;
	b->opts = opts;
	r = pprof_new(&pprof_opts, &b->pprof);
	if (r)
		return r;
	*ret = take_ptr(b);
	return 0;
}

int heap_report(struct heapsnap *const *snaps, size_t n_snaps, struct symbolizer *symbolizer,
		const struct heap_report_opts *opts, struct buf *ret,
		struct heap_report_stats *ret_stats)
{
	_cleanup_(heap_build_freep) struct heap_build *b = NULL;
	int r = heap_build_new(n_snaps ? snaps[0] : NULL, opts, symbolizer, &b);

	for (size_t i = 0; !r && i < n_snaps; i++)
		r = enter_snap(b, snaps[i]);
	if (!r)
		r = pprof_encode(b->pprof, ret);
	if (r)
		return r;
	*ret_stats = b->stats;
	return 0;
}
