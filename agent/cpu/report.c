// SPDX-License-Identifier: Apache-2.0
/*
 * Two passes over the stacks. The first pass collects the distinct places. Then each place gets its
 * names, image by image. Most names are known by then (addresses.h). The names show the kinds of
 * names of each image: functions, files, lines. pprof needs these flags in the mapping, before the
 * locations that refer to the mapping. The second pass adds locations and samples.
 */
#include "cpu/report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/hash.h"
#include "base/labels.h"
#include "base/strview.h"
#include "base/vec.h"
#include "cpu/addresses.h"
#include "cpu/fold.h"
#include "export/profile.h"
#include "pprof/pprof.h"
#include "pprof/tables.h"
#include "pprof/unnamed.h"
#include "runtimes/runtimes.h"
#include "symbolize/symbolizer.h"

/* Bytes of a comment: a path and some words. Reached: left out. */
#define COMMENT_BYTES_MAX 4352

/* An address in an image. A hash key, so padding is explicit. */
struct place_key {
	const struct image *image;
	uint64_t vaddr;
	uint64_t is_return;
};

struct place {
	struct place_key key;
	struct symbol_line *lines;
	size_t n_lines;
	uint32_t location; /* pprof's number; 0 before the entry */
	enum symbol_missing missing;
	struct image_facts *facts; /* of @missing */
	UT_hash_handle hh;
};

/* @missing: value of the samples with such a frame. @counted: the last. */
struct image_facts {
	const struct image *image;
	bool lacks_functions;
	bool filenames;
	bool line_numbers;
	bool inlined;
	uint64_t missing[SYMBOL_MISSING_MAX];
	const struct frame *counted; /* frames of the image */
	UT_hash_handle hh;
};

struct cpu_build {
	const struct cpu_report_part *parts;
	size_t n_parts;
	struct symbolizer *symbolizer;
	struct pprof *pprof;
	struct arena arena; /* of the next two, and of the places' lines */
	struct place *places;
	struct image_facts *images;
	enum cpu_report_kind kind;
	uint64_t value; /* of all samples */
	uint64_t n_truncated;
	int64_t rest[PPROF_VALUES_MAX]; /* of the samples without room */
	struct cpu_report_stats stats;
};

static void cpu_build_deinit(struct cpu_build *b)
{
	HASH_CLEAR(hh, b->places);
	HASH_CLEAR(hh, b->images);
	arena_deinit(&b->arena);
	pprof_free(b->pprof);
}

/* @n zeroed items of @size bytes. 0 or -ENOMEM. */
static int build_alloc(struct cpu_build *b, size_t n, size_t size, void *ret_piece)
{
	return arena_array(&b->arena, n, size, ret_piece) ? -ENOMEM : 0;
}

static int facts_get(struct cpu_build *b, const struct image *image, struct image_facts **ret)
{
	struct image_facts *facts;
	bool hash_oom = false;

	HASH_FIND_PTR(b->images, &image, facts);
	if (!facts) {
		int r = build_alloc(b, 1, sizeof(*facts), &facts);

		if (r)
			return r;
		facts->image = image;
		HASH_ADD_PTR(b->images, image, facts);
		if (hash_oom)
			return -ENOMEM;
	}
	*ret = facts;
	return 0;
}

/* Functions of a runtime have names but no address; their mapping is the runtime's. */
static bool is_function(const struct image *image)
{
	return image->kind == IMAGE_RUNTIME || image->kind == IMAGE_BROKEN;
}

static int facts_learn(struct cpu_build *b, struct place *place, const struct symbol *symbol)
{
	struct image_facts *facts;
	int r = facts_get(b, place->key.image, &facts);

	if (r)
		return r;
	place->facts = facts;
	facts->lacks_functions |= !symbol->found;
	for (size_t i = 0; i < symbol->n_lines; i++) {
		facts->filenames |= symbol->lines[i].file[0] != '\0';
		facts->line_numbers |= symbol->lines[i].line != 0;
		facts->inlined |= symbol->lines[i].inlined;
	}
	return 0;
}

/* ---------------------------------------------------------------- places */

static int place_get(struct cpu_build *b, const struct frame *frame, bool is_return,
		     struct place **ret)
{
	struct place_key key = {frame->image, frame->vaddr, is_return};
	struct place *place;
	bool hash_oom = false;

	HASH_FIND(hh, b->places, &key, sizeof(key), place);
	if (!place) {
		int r = build_alloc(b, 1, sizeof(*place), &place);

		if (r)
			return r;
		place->key = key;
		HASH_ADD(hh, b->places, key, sizeof(key), place);
		if (hash_oom)
			return -ENOMEM;
	}
	*ret = place;
	return 0;
}

static int collect_places(struct cpu_build *b, const struct fold *fold)
{
	for (size_t i = 0; i < fold_n(fold); i++) {
		struct fold_stack stack = fold_get(fold, i);

		for (size_t j = 0; j < stack.n_frames; j++) {
			struct place *place;
			int r = place_get(b, &stack.frames[j], stack.return_address[j], &place);

			if (r)
				return r;
		}
	}
	return 0;
}

/* ---------------------------------------------------------------- names */

/* Strings live as long as the report. */
static int place_name(struct cpu_build *b, struct place *place, const struct symbol *symbol)
{
	int r = build_alloc(b, symbol->n_lines, sizeof(*place->lines), &place->lines);

	if (r)
		return r;
	memcpy(place->lines, symbol->lines, symbol->n_lines * sizeof(*place->lines));
	place->n_lines = symbol->n_lines;
	b->stats.n_places++;
	b->stats.n_unnamed += !symbol->found;
	b->stats.n_missing[symbol->missing]++;
	place->missing = symbol->missing;
	/* each function of a runtime is an image */
	return place->key.image->kind == IMAGE_RUNTIME ? 0 : facts_learn(b, place, symbol);
}

/* Places of an image, and the addresses of their instructions. */
struct same_image {
	struct cpu_build *build;
	struct place *const *places;
	uint64_t *vaddrs;
	size_t n;
};

static int on_symbol(void *ctx, size_t i, const struct symbol *symbol)
{
	const struct same_image *same = ctx;

	return place_name(same->build, same->places[i], symbol);
}

/* By address: files, the kernel, unknown code. */
static int name_addresses(struct same_image *same)
{
	/* the symbolizer changes reference counts */
	struct image *image = (struct image *)same->places[0]->key.image;

	for (size_t i = 0; i < same->n; i++) {
		const struct place_key *key = &same->places[i]->key;

		same->vaddrs[i] = instruction_of(key->vaddr, key->is_return);
	}
	return symbolizer_find_all(same->build->symbolizer, image, same->vaddrs, same->n, on_symbol,
				   same);
}

static struct symbol_line line_of(const struct image *image, uint64_t line)
{
	return (struct symbol_line){
		.function = image->function.name,
		/* no symbol: pprof would take "<module>" for arguments of a template */
		.system_name = "",
		.file = image->function.file,
		.line = (uint32_t)line,
		.start_line = image->function.start_line,
	};
}

/* By the names in the image. */
static int name_functions(struct same_image *same)
{
	const struct image *image = same->places[0]->key.image;
	int r = 0;

	for (size_t i = 0; i < same->n && !r; i++) {
		struct symbol symbol = {.n_lines = 1, .found = image->kind == IMAGE_RUNTIME};

		symbol.missing = symbol.found ? SYMBOL_NAMED : SYMBOL_RUNTIME;
		symbol.lines[0] = line_of(image, same->places[i]->key.vaddr);
		for (size_t k = 0; k < image->n_places; k++) {
			symbol.lines[k] = line_of(image->places[k].image, image->places[k].vaddr);
			symbol.lines[k].inlined = k < image->n_places - 1;
			symbol.n_lines = k + 1;
		}
		r = place_name(same->build, same->places[i], &symbol);
	}
	return r;
}

_Static_assert(RUNTIMES_PLACES_MAX <= SYMBOL_LINES_MAX, "a place of a runtime has all its lines");

/* How the places of each kind of image get their names. */
static int (*const name_by_kind[IMAGE_KIND_MAX])(struct same_image *same) = {
	[IMAGE_FILE] = name_addresses,	  [IMAGE_VDSO] = name_addresses,
	[IMAGE_KERNEL] = name_addresses,  [IMAGE_ANON] = name_addresses,
	[IMAGE_UNKNOWN] = name_addresses, [IMAGE_RUNTIME] = name_functions,
	[IMAGE_BROKEN] = name_functions,
};

static int by_image(const void *a, const void *b)
{
	const struct place *const *x = a, *const *y = b;
	uintptr_t i = (uintptr_t)(*x)->key.image, j = (uintptr_t)(*y)->key.image;

	return i < j ? -1 : i > j;
}

static int name_places(struct cpu_build *b)
{
	size_t n = HASH_COUNT(b->places), n_sorted = 0;
	_cleanup_(freep) struct place **places = calloc(n ? n : 1, sizeof(struct place *));
	_cleanup_(freep) uint64_t *vaddrs = calloc(n ? n : 1, sizeof(*vaddrs));
	struct place *place, *next;
	int r = 0;

	if (!places || !vaddrs)
		return -ENOMEM;
	HASH_ITER(hh, b->places, place, next)
		places[n_sorted++] = place;
	qsort(places, n, sizeof(struct place *), by_image);
	for (size_t i = 0, end; i < n && !r; i = end) {
		struct same_image same = {b, places + i, vaddrs, 0};

		for (end = i + 1; end < n && places[end]->key.image == places[i]->key.image; end++)
			continue;
		same.n = end - i;
		r = name_by_kind[places[i]->key.image->kind](&same);
	}
	return r;
}

/* The segment of the file with @vaddr; without a file, the whole address space, or the kernel's
 * half. */
static struct pprof_mapping mapping_of(const struct image *image, uint64_t vaddr)
{
	struct pprof_mapping mapping = {
		.limit = UINT64_MAX,
		.path = image->path,
		.build_id = image->build_id,
	};
	const struct elffile_segment *segments;
	size_t n = 0;

	if (image->kind == IMAGE_KERNEL)
		mapping.start = (uint64_t)1 << 63; /* its half of the address space */
	if (!image->file)
		return mapping;
	segments = elffile_segments(image->file, &n);
	for (size_t i = 0; i < n; i++) {
		if (vaddr < segments[i].vaddr || vaddr - segments[i].vaddr >= segments[i].memsz)
			continue;
		mapping.start = segments[i].vaddr;
		mapping.limit = segments[i].vaddr + segments[i].memsz;
		mapping.offset = segments[i].off;
		break;
	}
	return mapping;
}

static int enter_mapping(struct cpu_build *b, const struct place *place, uint32_t *ret)
{
	struct pprof_mapping mapping = mapping_of(place->key.image, place->key.vaddr);
	const struct image_facts *facts = place->facts;

	if (is_function(place->key.image)) {
		mapping.has_functions = mapping.has_filenames = mapping.has_line_numbers = true;
		mapping.has_inline_frames = true;
		return pprof_mapping(b->pprof, &mapping, ret);
	}
	mapping.has_functions = !facts->lacks_functions;
	mapping.has_filenames = facts->filenames;
	mapping.has_line_numbers = facts->line_numbers;
	mapping.has_inline_frames = facts->inlined;
	return pprof_mapping(b->pprof, &mapping, ret);
}

static int enter_location(struct cpu_build *b, struct place *place)
{
	const uint64_t address = is_function(place->key.image) ? 0 : place->key.vaddr;
	struct pprof_line lines[SYMBOL_LINES_MAX];
	uint32_t mapping;
	int r = enter_mapping(b, place, &mapping);

	for (size_t i = 0; i < place->n_lines && !r; i++) {
		const struct symbol_line *line = &place->lines[i];

		lines[i].line = line->line;
		lines[i].column = line->column;
		r = pprof_function(b->pprof, line->function, line->system_name, line->file,
				   line->start_line, &lines[i].function);
	}
	if (r)
		return r;
	return pprof_location(b->pprof, mapping, address, lines, place->n_lines, &place->location);
}

/* The labels of a part's samples. */
struct sample_labels {
	struct pprof_label items[LABELS_MAX + 2]; /* and the thread's and the task's */
	size_t n;
	bool has_thread, has_task; /* among the part's own */
};

static void labels_of(const struct cpu_report_part *part, struct sample_labels *ret)
{
	ret->n = part->labels ? part->labels->n : 0;
	ret->has_thread = part->labels && labels_get(part->labels, PROFILE_THREAD);
	ret->has_task = part->labels && labels_get(part->labels, PROFILE_TASK);
	for (size_t i = 0; i < ret->n; i++)
		ret->items[i] = (struct pprof_label){.key = part->labels->items[i].name,
						     .str = part->labels->items[i].value};
}

/* In the order of the kind's types. */
static void values_of(const struct cpu_build *b, bool off_cpu, uint64_t n, uint64_t total,
		      int64_t ret[PPROF_VALUES_MAX])
{
	const int64_t count = (int64_t)n, value = (int64_t)total;
	const size_t at = b->kind == CPU_REPORT_BOTH && off_cpu ? 2 : 0;

	off_cpu = off_cpu || b->kind == CPU_REPORT_OFF_CPU;
	memset(ret, 0, PPROF_VALUES_MAX * sizeof(*ret));
	ret[at] = off_cpu ? value : count;
	ret[at + 1] = off_cpu ? count : value;
}

/* Samples without room. */
static void rest_add(struct cpu_build *b, bool off_cpu, uint64_t n, uint64_t value)
{
	int64_t values[PPROF_VALUES_MAX];

	values_of(b, off_cpu, n, value, values);
	for (size_t i = 0; i < PPROF_VALUES_MAX; i++)
		tables_add(&b->rest[i], values[i]);
}

/* A stack counts once for each image, by its innermost frame there without a name. */
static void count_missing(const struct place *place, const struct fold_stack *stack, uint64_t value)
{
	struct image_facts *facts = place->facts;

	if (!place->missing || facts->counted == stack->frames)
		return;
	facts->missing[place->missing] += value;
	facts->counted = stack->frames;
}

static int enter_sample(struct cpu_build *b, const struct cpu_report_part *part,
			const struct fold_stack *stack, struct sample_labels *labels,
			uint32_t *locations)
{
	/* shares are of the main type */
	const uint64_t value = b->kind == CPU_REPORT_BOTH && part->off_cpu ? 0 : stack->value;
	int64_t values[PPROF_VALUES_MAX];
	size_t n = labels->n;

	values_of(b, part->off_cpu, stack->count, stack->value, values);
	b->value += value;
	for (size_t i = 0; i < stack->n_frames; i++) {
		struct place *place;
		int r = place_get(b, &stack->frames[i], stack->return_address[i], &place);

		if (!r && !place->location)
			r = enter_location(b, place);
		if (r)
			return r;
		locations[i] = place->location;
		count_missing(place, stack, value);
	}
	if (stack->thread && !labels->has_thread)
		labels->items[n++] =
			(struct pprof_label){.key = PROFILE_THREAD, .str = stack->thread};
	if (stack->task && !labels->has_task)
		labels->items[n++] = (struct pprof_label){.key = PROFILE_TASK, .str = stack->task};
	return pprof_sample(b->pprof, locations, stack->n_frames, values, labels->items, n);
}

static size_t deepest_stack(const struct fold *fold)
{
	size_t deepest = 1;

	for (size_t i = 0; i < fold_n(fold); i++)
		if (fold_get(fold, i).n_frames > deepest)
			deepest = fold_get(fold, i).n_frames;
	return deepest;
}

static int enter_samples(struct cpu_build *b, const struct cpu_report_part *part)
{
	_cleanup_(freep) uint32_t *locations =
		calloc(deepest_stack(part->fold), sizeof(*locations));
	const struct fold_totals totals = fold_totals(part->fold);
	struct sample_labels labels;

	if (!locations)
		return -ENOMEM;
	labels_of(part, &labels);
	for (size_t i = 0; i < fold_n(part->fold); i++) {
		struct fold_stack stack = fold_get(part->fold, i);
		int r = enter_sample(b, part, &stack, &labels, locations);

		if (r < 0)
			return r;
		*(r ? &b->stats.n_left_out : &b->stats.n_samples) += stack.count;
		if (r)
			rest_add(b, part->off_cpu, stack.count, stack.value);
	}
	rest_add(b, part->off_cpu, totals.n_refused, totals.refused_value);
	b->n_truncated += totals.n_truncated;
	return 0;
}

/* ---------------------------------------------------------------- missing names */

/* Value of the samples without names in the images of one path. */
struct missing {
	const char *path;
	enum symbol_missing why;
	uint64_t value;
};

static int by_path(const void *a, const void *b)
{
	const struct missing *x = a, *y = b;
	int order = strcmp(x->path, y->path);

	return order ? order : (int)x->why - (int)y->why;
}

static int by_value(const void *a, const void *b)
{
	const struct missing *x = a, *y = b;

	return x->value > y->value ? -1 : x->value < y->value ? 1 : by_path(a, b);
}

static int comment_missing(struct cpu_build *b, const struct missing *m)
{
	_cleanup_(buf_deinit) struct buf text = BUF_INIT(COMMENT_BYTES_MAX);
	const struct unnamed unnamed = {
		.per_mille = (uint32_t)((unsigned __int128)m->value * 1000 / b->value),
		.reason = strview_of(symbol_missing_names[m->why]),
		.path = strview_of(m->path),
	};
	int r;

	if (!unnamed.per_mille)
		return 0;
	r = unnamed_format(&unnamed, &text);
	return r ? r : pprof_comment(b->pprof, text.data);
}

/* The memory of each process is an image, so a path may have several. */
static size_t join_paths(struct missing *list, size_t n)
{
	size_t kept = 0;

	qsort(list, n, sizeof(*list), by_path);
	for (size_t i = 0; i < n; i++) {
		if (kept && by_path(&list[kept - 1], &list[i]) == 0)
			list[kept - 1].value += list[i].value;
		else
			list[kept++] = list[i];
	}
	return kept;
}

static int comment_all_missing(struct cpu_build *b)
{
	_cleanup_(freep) struct missing *list = NULL;
	size_t n = 0, cap = 0;
	int r = 0;

	for (const struct image_facts *f = b->images; f; f = f->hh.next) {
		for (size_t i = 0; i < SYMBOL_MISSING_MAX && !r; i++) {
			if (!f->missing[i])
				continue;
			r = vec_grow(&list, &cap, n + 1, sizeof(*list), SIZE_MAX / sizeof(*list));
			if (!r)
				list[n++] = (struct missing){f->image->path, (enum symbol_missing)i,
							     f->missing[i]};
		}
	}
	if (r || !n)
		return r;
	n = join_paths(list, n);
	qsort(list, n, sizeof(*list), by_value);
	for (size_t i = 0; i < n && i < UNNAMED_COMMENTS_MAX && r >= 0; i++)
		r = comment_missing(b, &list[i]);
	return r < 0 ? r : 0;
}

/* The share of complete stacks, of the samples with a stack. */
static int comment_complete(struct cpu_build *b)
{
	const uint64_t n = b->stats.n_samples + b->stats.n_left_out;
	const uint64_t complete = n > b->n_truncated ? n - b->n_truncated : 0;
	char text[64];

	if (!n)
		return 0;
	snprintf(text, sizeof(text), "complete stacks: %.1f %% of %" PRIu64 " samples",
		 100 * (double)complete / (double)n, n);
	return pprof_comment(b->pprof, text);
}

/* Comments without room are left out. */
static int comment_all(struct cpu_build *b, const struct cpu_report_opts *opts)
{
	int r = 0;

	for (size_t i = 0; i < opts->n_comments && r >= 0; i++)
		r = pprof_comment(b->pprof, opts->comments[i]);
	if (r >= 0)
		r = comment_complete(b);
	return r < 0 ? r : comment_all_missing(b);
}

static int enter_all(struct cpu_build *b, const struct cpu_report_opts *opts)
{
	int r = 0;

	for (size_t i = 0; i < b->n_parts && !r; i++)
		r = collect_places(b, b->parts[i].fold);
	if (!r)
		r = name_places(b);
	for (size_t i = 0; i < b->n_parts && !r; i++)
		r = enter_samples(b, &b->parts[i]);
	rest_add(b, false, opts->n_lost, opts->lost_value);
	if (!r)
		r = pprof_rest(b->pprof, b->rest);
	return r ? r : comment_all(b, opts);
}

/* The sample types of each kind of profile. */
static void set_types(const struct cpu_report_opts *opts, struct pprof_opts *ret)
{
	const struct pprof_type samples = {"samples", "count"}, cpu = {"cpu", "nanoseconds"},
				event = {opts->event, "count"}, delay = {"delay", "nanoseconds"},
				switches = {"switches", "count"};
	const struct pprof_type types[][PPROF_VALUES_MAX] = {
		[CPU_REPORT_TIME] = {samples, cpu},
		[CPU_REPORT_EVENTS] = {samples, event},
		[CPU_REPORT_OFF_CPU] = {delay, switches},
		[CPU_REPORT_BOTH] = {samples, cpu, delay, switches},
	};
	static const struct {
		size_t n;
		size_t main; /* the type of the period, shown first */
	} kinds[] = {
		[CPU_REPORT_TIME] = {2, 1},
		[CPU_REPORT_EVENTS] = {2, 1},
		[CPU_REPORT_OFF_CPU] = {2, 0},
		[CPU_REPORT_BOTH] = {4, 1},
	};

	memcpy(ret->types, types[opts->kind], sizeof(ret->types));
	ret->n_types = kinds[opts->kind].n;
	ret->period_type = ret->types[kinds[opts->kind].main];
	ret->default_type = ret->period_type.type;
}

static int learn(const struct cpu_report_part *parts, size_t n, struct symbolizer *symbolizer)
{
	struct addresses addresses = {0};

	for (size_t i = 0; i < n; i++)
		addresses_add(&addresses, parts[i].fold);
	return addresses_learn(&addresses, symbolizer);
}

static void tell_unnamed(const struct cpu_build *b, const struct cpu_report_opts *opts)
{
	const struct image_facts *facts, *next;

	if (!opts->unnamed)
		return;
	HASH_ITER(hh, b->images, facts, next) {
		const struct image *image = facts->image;
		int debug;

		if (!facts->lacks_functions || image->kind != IMAGE_FILE || !image->file ||
		    !image->build_id[0] || image_is_slow(image))
			continue;
		debug = symbolizer_debug_fd(b->symbolizer, image);
		opts->unnamed(opts->unnamed_ctx, opts->owner, image->build_id,
			      debug >= 0 ? debug : elffile_fd(image->file));
	}
}

int cpu_report(const struct cpu_report_part *parts, size_t n_parts, struct symbolizer *symbolizer,
	       const struct cpu_report_opts *opts, struct buf *ret,
	       struct cpu_report_stats *ret_stats)
{
	struct pprof_opts pprof_opts = {
		.period = (int64_t)opts->period,
		.time_ns = (int64_t)opts->start_ns,
		.duration_ns = (int64_t)opts->duration_ns,
		.max_samples = opts->max_samples,
		.max_bytes = opts->max_bytes,
		.with_rest = true,
		.for_disk = opts->for_disk,
		.doc_url = opts->doc_url,
	};
	_cleanup_(cpu_build_deinit) struct cpu_build b = {
		.parts = parts,
		.n_parts = n_parts,
		.symbolizer = symbolizer,
		.kind = opts->kind,
	};
	int r;

	arena_init(&b.arena, SIZE_MAX); /* frames of the stacks are limited */
	set_types(opts, &pprof_opts);
	r = pprof_new(&pprof_opts, &b.pprof);
	if (!r && !opts->is_learned)
		r = learn(parts, n_parts, symbolizer);
	if (!r)
		r = enter_all(&b, opts);
	if (!r)
		r = pprof_encode(b.pprof, ret);
	if (r)
		return r;
	tell_unnamed(&b, opts);
	*ret_stats = b.stats;
	return 0;
}
