// SPDX-License-Identifier: Apache-2.0
/*
 * The source of names depends on the image:
 *
 *	a file, the vDSO  the sources of source.h: a Go program's line table, the symbol table
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
#include "symbolize/ksyms.h"
#include "symbolize/lookup.h"

/* Bytes of all strings between two releases; new strings above it are TOO_MANY_NAMES. A window of a
 * busy node has some 50,000 names of 60 bytes. Reached:
 * `podprof_symbolized_addresses_total{found="no"}`: shown as `image+0xoff`. */
#define SYMBOLIZER_STRINGS_MAX (32u << 20)
/* Shortest time between reads of the kernel's table for unknown kernel addresses; a read takes some
 * 100 ms. */
#define SYMBOLIZER_KERNEL_NS   (300 * NSEC_PER_SEC)
/* With so many abandoned reads, only files that were read before are read. Reached:
 * `podprof_symbolized_addresses_total{found="no"}`. */
#define SYMBOLIZER_BLOCKED_NEW (LOOKUP_BLOCKED_MAX / 2)
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

/* The names of one file, between two lookups. */
struct tables {
	const struct image *key; /* @names has a reference */
	struct file_names *names;
	size_t bytes;
	uint64_t used; /* tick of the last use */
	UT_hash_handle hh;
};

struct symbolizer {
	struct symbolizer_opts opts;
	struct lookup_thread *thread; /* NULL: the caller's */
	uint64_t n_blocked;
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

static void remove_tables(struct symbolizer *s, struct tables *t)
{
	HASH_DEL(s->tables, t);
	s->tables_bytes -= t->bytes;
	free(t);
}

static void drop_tables(struct symbolizer *s, struct tables *t)
{
	file_names_free(t->names);
	remove_tables(s, t);
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

/* Takes @names. */
static int keep_tables(struct symbolizer *s, const struct image *image, struct file_names *names)
{
	struct tables *t = calloc(1, sizeof(*t));
	bool hash_oom = !t;

	if (t) {
		*t = (struct tables){.key = image, .names = names, .used = ++s->tick};
		HASH_ADD_PTR(s->tables, key, t);
	}
	if (hash_oom) {
		file_names_free(names);
		free(t);
		return -ENOMEM;
	}
	t->bytes = sizeof(*t) + file_names_bytes(names);
	s->tables_bytes += t->bytes;
	while (s->tables_bytes > s->opts.cache_bytes && HASH_COUNT(s->tables) > 1)
		drop_least_used(s, t);
	return 0;
}

/* The file's names, out of the cache. NULL for a file that is not read now. */
static int take_tables(struct symbolizer *s, struct image *image, struct file_names **ret)
{
	unsigned int n_blocked;
	struct tables *t;

	*ret = NULL;
	if (!image->file || image_is_slow(image))
		return 0;
	n_blocked = s->thread ? lookup_thread_n_blocked(s->thread) : 0;
	if (n_blocked >= LOOKUP_BLOCKED_MAX)
		return 0; /* the next block would be for ever */
	HASH_FIND_PTR(s->tables, &image, t);
	if (t) {
		*ret = t->names;
		remove_tables(s, t);
		return 0;
	}
	if (n_blocked >= SYMBOLIZER_BLOCKED_NEW)
		return 0;
	return file_names_new(image, s->opts.sources, s->opts.n_sources, ret);
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

static void set_offset(struct symbolizer *s, struct symbol *sym, const struct image *image,
		       uint64_t vaddr)
{
	char text[256 + 24]; /* the longest file name, and "+0x" with a number */

	snprintf(text, sizeof(text), "%.255s+0x%" PRIx64, image_name(image), vaddr);
	set_name(sym, intern_foreign(s, text), "", false);
	sym->lines[0].system_name = sym->lines[0].function;
}

/* The lookup's strings are its own and may be changed. */
static void set_lines(struct symbolizer *s, struct symbol *sym, const struct symbol_lines *lines)
{
	for (size_t i = 0; i < lines->n; i++) {
		const struct symbol_line *from = &lines->items[i];
		struct symbol_line *to = &sym->lines[i];

		*to = *from;
		to->function = intern_foreign(s, (char *)from->function);
		to->system_name = from->system_name == from->function
					  ? to->function
					  : intern_foreign(s, (char *)from->system_name);
		to->file = intern_foreign(s, (char *)from->file);
	}
	sym->n_lines = lines->n;
	sym->found = true;
	sym->lines[lines->n - 1].inlined = false; /* the rest is inlined into hidden functions */
}

/* @lookup NULL: the file is not read. */
static int give_all(struct symbolizer *s, const struct image *image, const struct lookup *lookup,
		    const uint64_t *vaddrs, size_t n, symbolizer_fn fn, void *ctx)
{
	struct symbol sym;
	int r = 0;

	for (size_t i = 0; i < n && !r; i++) {
		if (lookup && lookup->answers[i].n)
			set_lines(s, &sym, &lookup->answers[i]);
		else
			set_offset(s, &sym, image, vaddrs[i]);
		r = fn(ctx, i, &sym);
	}
	return r;
}

/* One batch. */
static int find_in_file(struct symbolizer *s, struct image *image, const uint64_t *vaddrs, size_t n,
			symbolizer_fn fn, void *ctx)
{
	struct file_names *names;
	struct lookup *lookup = NULL;
	int kept, r = take_tables(s, image, &names);

	if (!r && names)
		r = lookup_new(names, vaddrs, n, &lookup);
	if (!r && lookup) {
		r = lookup_run(s->thread, lookup);
		if (r == LOOKUP_BLOCKED) {
			lookup = NULL;
			s->n_blocked++;
			r = 0;
		}
	}
	if (!r)
		r = give_all(s, image, lookup, vaddrs, n, fn, ctx);
	kept = lookup ? keep_tables(s, image, lookup_take_names(lookup)) : 0;
	lookup_free(lookup);
	return r ? r : kept;
}

/* BPF programs and modules come and go, so a missing name justifies a new read after some time. */
static int load_kernel(struct symbolizer *s)
{
	struct ksyms *k = NULL;
	int r;

	if (!s->opts.proc || nsec_monotonic() < s->kernel_next_ns)
		return 0;
	s->kernel_next_ns = nsec_monotonic() + SYMBOLIZER_KERNEL_NS;
	r = ksyms_load(s->opts.proc, &k);
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
	int r = 0;

	if (!s)
		return -ENOMEM;
	s->opts = *opts;
	if (opts->guarded)
		r = lookup_thread_new(opts->blocked_ns, &s->thread);
	if (r)
		symbolizer_free(s);
	else
		*ret = s;
	return r;
}

void symbolizer_free(struct symbolizer *s)
{
	struct tables *t, *next;

	if (!s)
		return;
	lookup_thread_free(s->thread);
	HASH_ITER(hh, s->tables, t, next)
		drop_tables(s, t);
	ksyms_free(s->kernel);
	release_strings(s);
	free(s);
}

/* A part of the caller's addresses. */
struct batch {
	size_t first;
	symbolizer_fn fn;
	void *ctx;
};

static int give_in_batch(void *ctx, size_t i, const struct symbol *symbol)
{
	const struct batch *batch = ctx;

	return batch->fn(batch->ctx, batch->first + i, symbol);
}

/* An address that is in no file. */
static int find_elsewhere(struct symbolizer *s, const struct frame *frame, struct symbol *ret)
{
	switch (frame->image->kind) {
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

int symbolizer_find_all(struct symbolizer *s, struct image *image, const uint64_t *vaddrs, size_t n,
			symbolizer_fn fn, void *ctx)
{
	const bool is_file = image->kind == IMAGE_FILE || image->kind == IMAGE_VDSO;
	struct batch batch = {.fn = fn, .ctx = ctx};
	struct symbol sym;
	int r = 0;

	for (size_t i = 0; i < n && !r && !is_file; i++) {
		r = find_elsewhere(s, &(struct frame){image, vaddrs[i]}, &sym);
		if (!r)
			r = fn(ctx, i, &sym);
	}
	for (; batch.first < n && !r && is_file; batch.first += LOOKUP_BATCH) {
		size_t part = n - batch.first < LOOKUP_BATCH ? n - batch.first : LOOKUP_BATCH;

		r = find_in_file(s, image, vaddrs + batch.first, part, give_in_batch, &batch);
	}
	return r;
}

static int copy_symbol(void *ctx, size_t i, const struct symbol *symbol)
{
	struct symbol *ret = ctx;

	(void)i;
	ret->n_lines = symbol->n_lines;
	ret->found = symbol->found;
	memcpy(ret->lines, symbol->lines, symbol->n_lines * sizeof(*symbol->lines));
	return 0;
}

int symbolizer_find(struct symbolizer *s, const struct frame *frame, struct symbol *ret)
{
	return symbolizer_find_all(s, frame->image, &frame->vaddr, 1, copy_symbol, ret);
}

uint64_t symbolizer_blocked(const struct symbolizer *s)
{
	return s->n_blocked;
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
