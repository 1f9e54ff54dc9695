// SPDX-License-Identifier: Apache-2.0
/*
 * The source of names depends on the image:
 *
 *	a file, the vDSO  the sources of source.h: Go's line table, symbol tables, ...
 *	the kernel        /proc/kallsyms
 *	anonymous memory  the process's perf map, else the name of the memory, such as "[anon]"
 *
 * An unresolved pc is "[unknown]".
 *
 * A function without a name is "image+0xVADDR", with the ELF virtual address of its start, and so
 * is an address in no known function. The address is the same in each process that maps the file,
 * at any load address, and addr2line accepts it. For a file that is not readable ELF, the number is
 * the file offset. A kernel address without a name is "[kernel]" alone, because the address has a
 * meaning only until the next boot.
 *
 * Each string is copied once into an arena, and symbolizer_release() frees the arena. Names
 * are foreign bytes; the output is UTF-8.
 *
 * Answers of earlier lookups are found and used in place: no copy, no other thread. The symbolizer
 * holds a reference to such a file's answers until the release, because the file's names may be
 * evicted while the report uses the strings, and an abandoned thread keeps the names.
 */
#include "symbolize/symbolizer.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/intern.h"
#include "base/nsec.h"
#include "base/utf8.h"
#include "base/work_budget.h"
#include "symbolize/debuginfod.h"
#include "symbolize/demangle.h"
#include "symbolize/dwarfreader.h"
#include "symbolize/jitdump.h"
#include "symbolize/ksyms.h"
#include "symbolize/linecache.h"
#include "symbolize/lookup.h"
#include "symbolize/names_cache.h"
#include "symbolize/perf_map.h"

/* Bytes of all strings between two releases; further strings are TOO_MANY_NAMES. A window of a
 * busy node has some 50,000 names of 60 bytes. Reached:
 * `podprof_symbolized_addresses_total{found="no"}`: shown as `image+0xoff`. */
#define SYMBOLIZER_STRINGS_MAX (32u << 20)
/* Shortest time between reads of the kernel's table for unknown kernel addresses; a read takes some
 * 100 ms. */
#define SYMBOLIZER_KERNEL_NS   (300 * NSEC_PER_SEC)
/* With so many abandoned reads, only files that were read before are read. Reached:
 * `podprof_symbolized_addresses_total{found="no"}`. */
#define SYMBOLIZER_BLOCKED_NEW (LOOKUP_BLOCKED_MAX / 2)
/* Files in an exchange with the reading thread. Each has a batch of addresses, and the answers wait
 * until the end of the exchange. */
#define LEARN_FILES	       64

static const char TOO_MANY_NAMES[] = "[too many names]";

const char *const symbol_read_names[SYMBOL_READ_MAX] = {
	[SYMBOL_READ_OK] = "ok",
	[SYMBOL_READ_ABSENT] = "no_names",
	[SYMBOL_READ_ABANDONED] = "abandoned",
	[SYMBOL_READ_SLOW] = "slow",
};

const char *const symbol_missing_names[SYMBOL_MISSING_MAX] = {
	[SYMBOL_AWAITS_DEBUG_FILE] = "awaits_debug_file",
	[SYMBOL_STRIPPED] = "stripped_no_debug",
	[SYMBOL_NO_SYMBOL] = "no_symbol",
	[SYMBOL_TRUNCATED_ELF] = "truncated_elf",
	[SYMBOL_UNREADABLE_ELF] = "unreadable_elf",
	[SYMBOL_DENIED] = "denied",
	[SYMBOL_NOT_OPENED] = "not_opened",
	[SYMBOL_OVERWRITTEN] = "overwritten",
	[SYMBOL_SLOW_FILE] = "slow_file",
	[SYMBOL_OVER_BUDGET] = "over_budget",
	[SYMBOL_NO_PERF_MAP] = "no_perf_map",
	[SYMBOL_NOT_IN_PERF_MAP] = "not_in_perf_map",
	[SYMBOL_NO_MAPPING] = "no_mapping",
	[SYMBOL_KERNEL_HIDDEN] = "kernel_hidden",
	[SYMBOL_NOT_IN_KERNEL] = "not_in_kernel",
	[SYMBOL_RUNTIME] = "runtime",
};

/**
 * struct known - what earlier lookups say of a batch
 * @answers: of each address; NULL: not known
 * @asked:   the others, @n_asked in number
 * @missing: why an address that is known to have no name has none
 */
struct known {
	const struct linecache_answer *answers[LOOKUP_BATCH];
	uint64_t asked[LOOKUP_BATCH];
	size_t n_asked;
	enum symbol_missing missing;
};

struct symbolizer {
	struct symbolizer_opts opts;
	struct known known;	   /* of the batch that runs */
	struct kept_answers *held; /* until the release */
	size_t held_bytes;
	struct lookup_thread *thread; /* NULL: the caller's */
	_Atomic bool stopped;
	struct shared_root *proc;
	struct dwarfreader *dwarf;
	uint64_t n_reads[SYMBOL_READ_MAX];
	uint64_t perf_map_events[PERF_MAP_EVENT_MAX];
	uint64_t jitdump_events[JITDUMP_EVENT_MAX];
	struct work_refused refused;
	uint64_t report_ns; /* CPU time of lookups since the release */
	uint64_t dwarf_ns;  /* of symbolizer_begin(), what is left */
	uint64_t patience_ns;
	struct names_cache names;
	struct ksyms *kernel;
	bool kernel_hidden;
	uint64_t kernel_next_ns; /* earliest time of the next read */
	struct intern_texts strings;
	struct arena strings_memory;
};

/* ---------------------------------------------------------------- strings */

/* Valid until the release. */
static const char *intern(struct symbolizer *s, const char *string)
{
	const struct interned *in;

	if (intern_text(&s->strings, &s->strings_memory, string, strlen(string), &in))
		return TOO_MANY_NAMES;
	return in->key;
}

static void release_strings(struct symbolizer *s)
{
	intern_texts_deinit(&s->strings);
	arena_deinit(&s->strings_memory);
}

/* ---------------------------------------------------------------- names of a file */

/* SYMBOL_NAMED: there is something to read. */
static enum symbol_missing why_no_sources(const struct image *image)
{
	static const enum symbol_missing faults[] = {
		[IMAGE_NO_FAULT] = SYMBOL_NOT_OPENED,	  [IMAGE_GONE] = SYMBOL_NOT_OPENED,
		[IMAGE_DENIED] = SYMBOL_DENIED,		  [IMAGE_TRUNCATED] = SYMBOL_TRUNCATED_ELF,
		[IMAGE_ODD_FILE] = SYMBOL_UNREADABLE_ELF,
	};

	if (image->kind == IMAGE_ANON)
		return image->mapped_by.pid ? SYMBOL_NAMED : SYMBOL_NO_PERF_MAP;
	return image->file ? SYMBOL_NAMED : faults[image->fault];
}

/* The file's names, out of the cache. NULL, with the reason, for a file that is not read now. */
static int take_names(struct symbolizer *s, struct image *image, struct file_names **ret,
		      bool *ret_first, enum symbol_missing *ret_why)
{
	unsigned int n_blocked;

	*ret = NULL;
	*ret_why = why_no_sources(image);
	if (*ret_why)
		return 0;
	*ret_why = SYMBOL_SLOW_FILE;
	n_blocked = s->thread ? lookup_thread_n_blocked(s->thread) : 0;
	if (image_is_slow(image) || n_blocked >= LOOKUP_BLOCKED_MAX)
		return 0; /* the next block would be for ever */
	*ret_why = SYMBOL_OVER_BUDGET;
	if (s->stopped || (s->opts.report_ns && s->report_ns >= s->opts.report_ns))
		return 0; /* nor an exchange with the thread for each file */
	*ret = names_cache_take(&s->names, image);
	*ret_first = !*ret;
	if (*ret)
		return 0;
	if (work_refused_has(&s->refused, &image->id, nsec_monotonic()))
		return 0;
	*ret_why = SYMBOL_SLOW_FILE;
	if (n_blocked >= SYMBOLIZER_BLOCKED_NEW)
		return 0;
	return file_names_new(image,
			      &(struct file_names_opts){
				      .proc = s->proc,
				      .dwarf = s->dwarf,
				      .debuginfod = s->opts.debuginfod,
				      .sources = s->opts.sources,
				      .n_sources = s->opts.n_sources,
			      },
			      ret);
}

/* ---------------------------------------------------------------- known answers */

/* The report uses these answers: they stay until the release. Before the first use a full cache
 * evicts. Without room for them the file's addresses are asked of its sources again. */
static bool hold(struct symbolizer *s, struct kept_answers *kept)
{
	if (kept->is_held)
		return true;
	if (s->held_bytes > s->opts.cache_bytes)
		return false;
	linecache_age(&kept->cache);
	s->held_bytes += linecache_bytes(&kept->cache);
	kept->is_held = true;
	kept->next = s->held;
	s->held = kept_answers_ref(kept);
	return true;
}

static void release_held(struct symbolizer *s)
{
	while (s->held) {
		struct kept_answers *kept = s->held;

		s->held = kept->next;
		kept->is_held = false;
		kept_answers_unref(kept);
	}
	s->held_bytes = 0;
}

/* Fills @s->known. */
static void find_known(struct symbolizer *s, const struct image *image, const uint64_t *vaddrs,
		       size_t n)
{
	struct known *known = &s->known;
	const struct file_names *names = names_cache_use(&s->names, image);
	struct kept_answers *kept = names ? file_names_kept(names) : NULL;

	if (kept && !hold(s, kept))
		kept = NULL;
	known->n_asked = 0;
	known->missing = kept ? kept->missing : SYMBOL_NAMED;
	if (kept)
		linecache_begin(&kept->cache);
	for (size_t i = 0; i < n; i++) {
		known->answers[i] = kept ? linecache_find(&kept->cache, vaddrs[i]) : NULL;
		if (!known->answers[i])
			known->asked[known->n_asked++] = vaddrs[i];
	}
	if (kept)
		linecache_end(&kept->cache);
	names_cache_weigh(&s->names, image); /* answers that are used again are copied */
}

/* ---------------------------------------------------------------- lines */

/* Sets the single line of a symbol with only a name. */
static void set_name(struct symbol *sym, const char *function, const char *system_name,
		     enum symbol_missing missing)
{
	sym->lines[0] = (struct symbol_line){
		.function = function,
		.system_name = system_name,
		.file = "",
	};
	sym->n_lines = 1;
	sym->found = !missing;
	sym->missing = missing;
}

/* "+0x" and the number at @to, with a NUL, as printf() would: the name of each address of a
 * stripped file is made in each report. */
static void put_offset(char *to, uint64_t vaddr)
{
	int bits = 60;

	memcpy(to, "+0x", 3);
	to += 3;
	while (bits && !(vaddr >> bits))
		bits -= 4;
	for (; bits >= 0; bits -= 4)
		*to++ = "0123456789abcdef"[vaddr >> bits & 15];
	*to = '\0';
}

/* Addresses in memory are different in each process, so they do not count. */
static void set_offset(struct symbolizer *s, struct symbol *sym, const struct image *image,
		       uint64_t vaddr, enum symbol_missing why)
{
	char text[256 + 24]; /* the longest file name, and "+0x" with a number */
	const char *name = image->kind == IMAGE_ANON ? image->path : image_name(image);
	const size_t n = strnlen(name, 255);

	memcpy(text, name, n);
	text[n] = '\0';
	utf8_repair(text, n);
	if (image->kind != IMAGE_ANON)
		put_offset(text + n, vaddr);
	set_name(sym, intern(s, text), "", why);
	sym->lines[0].system_name = sym->lines[0].function;
}

static void set_found(struct symbol *sym, size_t n_lines)
{
	sym->n_lines = n_lines;
	sym->found = true;
	sym->missing = SYMBOL_NAMED;
	sym->lines[n_lines - 1].inlined = false; /* the rest is inlined into hidden functions */
}

static void set_lines(struct symbolizer *s, struct symbol *sym, const struct symbol_lines *lines)
{
	for (size_t i = 0; i < lines->n; i++) {
		const struct symbol_line *from = &lines->items[i];
		struct symbol_line *to = &sym->lines[i];

		*to = *from;
		to->function = intern(s, from->function);
		to->system_name = from->system_name == from->function
					  ? to->function
					  : intern(s, from->system_name);
		to->file = intern(s, from->file);
	}
	set_found(sym, lines->n);
}

static void set_kept(struct symbol *sym, const struct linecache_answer *answer)
{
	memcpy(sym->lines, answer->lines, answer->n * sizeof(*answer->lines));
	set_found(sym, answer->n);
}

/* In place. */
static void set_known(struct symbolizer *s, struct symbol *sym, const struct image *image,
		      uint64_t vaddr, const struct linecache_answer *answer)
{
	if (!answer->n) {
		set_offset(s, sym, image, answer->has_start ? answer->start : vaddr,
			   s->known.missing);
		return;
	}
	set_kept(sym, answer);
}

/* @lookup NULL: the file is not read, because of @why. @is_held: its kept answers stay. */
static void set_answer(struct symbolizer *s, struct symbol *sym, const struct image *image,
		       uint64_t vaddr, const struct lookup *lookup, bool is_held, size_t k,
		       enum symbol_missing why)
{
	const struct symbol_lines *lines = lookup ? &lookup->answers[k] : NULL;

	if (lines && lines->n && is_held && lines->kept)
		set_kept(sym, lines->kept);
	else if (lines && lines->n)
		set_lines(s, sym, lines);
	else
		set_offset(s, sym, image, lines && lines->has_start ? lines->start : vaddr,
			   lookup ? lookup->missing : why);
}

/* @lookup has the addresses that are not known, in their order; NULL: as above. */
static int give_all(struct symbolizer *s, const struct image *image, const struct lookup *lookup,
		    enum symbol_missing why, const uint64_t *vaddrs, size_t n, symbolizer_fn fn,
		    void *ctx)
{
	const bool is_held = lookup && hold(s, file_names_kept(lookup->names));
	struct symbol sym;
	size_t n_asked = 0;
	int r = 0;

	for (size_t i = 0; i < n && !r; i++) {
		const struct linecache_answer *answer = s->known.answers[i];

		if (answer)
			set_known(s, &sym, image, vaddrs[i], answer);
		else
			set_answer(s, &sym, image, vaddrs[i], lookup, is_held, n_asked++, why);
		r = fn(ctx, i, &sym);
	}
	return r;
}

/* @lookup NULL: abandoned. */
static void count_read(struct symbolizer *s, const struct image *image, const struct lookup *lookup,
		       bool first)
{
	enum symbol_read outcome = SYMBOL_READ_SLOW;

	if (lookup && lookup->spent) {
		outcome = SYMBOL_READ_ABANDONED;
		work_refused_add(&s->refused, &image->id, nsec_monotonic());
	} else if (lookup) {
		outcome = file_names_any(lookup->names) ? SYMBOL_READ_OK : SYMBOL_READ_ABSENT;
	}
	if ((first && image->file) || outcome == SYMBOL_READ_ABANDONED ||
	    outcome == SYMBOL_READ_SLOW)
		s->n_reads[outcome]++;
	if (lookup) {
		s->report_ns += lookup->cpu_ns;
		file_names_take_events(lookup->names, s->perf_map_events, s->jitdump_events);
	}
}

/* *@ret is NULL, with the reason, for a file that is not read. @ret_first: its first lookup. */
static int begin_lookup(struct symbolizer *s, struct image *image, const uint64_t *vaddrs, size_t n,
			struct lookup **ret, bool *ret_first, enum symbol_missing *ret_why)
{
	struct file_names *names;
	int r = take_names(s, image, &names, ret_first, ret_why);

	*ret = NULL;
	return r || !names ? r : lookup_new(names, vaddrs, n, ret);
}

/* Runs a batch. *@ret is NULL, with the reason, for a file that is not read. The caller calls
 * end_lookup(). */
static int look_up(struct symbolizer *s, struct image *image, const uint64_t *vaddrs, size_t n,
		   struct lookup **ret, enum symbol_missing *ret_why)
{
	bool first = false;
	int r = begin_lookup(s, image, vaddrs, n, ret, &first, ret_why);

	if (r || !*ret)
		return r;
	r = lookup_run(s->thread, ret, 1, UINT64_MAX);
	if (!r && *ret)
		r = (*ret)->result;
	if (!*ret)
		*ret_why = SYMBOL_SLOW_FILE;
	if (!r)
		count_read(s, image, *ret, first);
	return r;
}

/* Keeps the sources that the lookup has opened. Returns @r, or -ENOMEM. */
static int end_lookup(struct symbolizer *s, const struct image *image, struct lookup *lookup, int r)
{
	int kept = lookup ? names_cache_put(&s->names, image, lookup_take_names(lookup)) : 0;

	lookup_free(lookup);
	return r ? r : kept;
}

/* ---------------------------------------------------------------- many files at once */

/* Lookups that wait for an exchange, each of another file. */
struct learning {
	struct image *images[LEARN_FILES];
	struct lookup *lookups[LEARN_FILES];
	bool first[LEARN_FILES];
	size_t n;
};

static int learn_now(struct symbolizer *s, struct learning *l)
{
	const uint64_t cpu_ns = s->opts.report_ns ? s->opts.report_ns - s->report_ns : UINT64_MAX;
	int r = l->n ? lookup_run(s->thread, l->lookups, l->n, cpu_ns) : 0;

	for (size_t i = 0; i < l->n; i++) {
		struct lookup *lookup = l->lookups[i];

		if (!lookup || lookup->has_run)
			count_read(s, l->images[i], lookup, l->first[i]);
		if (lookup && lookup->has_run && !r)
			r = lookup->result;
		r = end_lookup(s, l->images[i], lookup, r);
	}
	l->n = 0;
	return r;
}

/* @n: at most LOOKUP_BATCH. */
static int learn_batch(struct symbolizer *s, struct learning *l, struct image *image,
		       const uint64_t *vaddrs, size_t n)
{
	enum symbol_missing why;
	int r;

	find_known(s, image, vaddrs, n);
	if (!s->known.n_asked)
		return 0;
	l->images[l->n] = image;
	r = begin_lookup(s, image, s->known.asked, s->known.n_asked, &l->lookups[l->n],
			 &l->first[l->n], &why);
	l->n += !r && l->lookups[l->n];
	return r;
}

int symbolizer_learn(struct symbolizer *s, const struct symbolizer_addresses *files, size_t n)
{
	struct learning l = {.n = 0};
	int r = 0, last;

	for (size_t i = 0; i < n && !r && s->thread; i++) {
		const struct symbolizer_addresses *f = &files[i];

		for (size_t at = 0; at < f->n && !r; at += LOOKUP_BATCH) {
			/* the lookup before has the file's names */
			if (at || l.n == LEARN_FILES)
				r = learn_now(s, &l);
			if (!r)
				r = learn_batch(s, &l, f->image, f->vaddrs + at,
						f->n - at < LOOKUP_BATCH ? f->n - at
									 : LOOKUP_BATCH);
		}
	}
	last = learn_now(s, &l);
	return r ? r : last;
}

/* ---------------------------------------------------------------- a batch */

static int find_in_file(struct symbolizer *s, struct image *image, const uint64_t *vaddrs, size_t n,
			symbolizer_fn fn, void *ctx)
{
	enum symbol_missing why = SYMBOL_NAMED;
	struct lookup *lookup = NULL;
	int r = 0;

	find_known(s, image, vaddrs, n);
	if (s->known.n_asked)
		r = look_up(s, image, s->known.asked, s->known.n_asked, &lookup, &why);
	if (!r)
		r = give_all(s, image, lookup, why, vaddrs, n, fn, ctx);
	return end_lookup(s, image, lookup, r);
}

/* All sources of the file are asked for this address. */
static const uint64_t in_no_function = UINT64_MAX;

int symbolizer_sources(struct symbolizer *s, struct image *image, symbolizer_source_fn fn,
		       void *ctx)
{
	enum symbol_missing why;
	struct lookup *lookup;
	int r = look_up(s, image, &in_no_function, 1, &lookup, &why);

	if (!r && lookup && fn)
		r = file_names_sources(lookup->names, fn, ctx);
	return end_lookup(s, image, lookup, r);
}

int symbolizer_state(struct symbolizer *s, struct image *image, struct symbolizer_state *ret)
{
	struct lookup *lookup;
	int r;

	*ret = (struct symbolizer_state){.missing = SYMBOL_NAMED};
	r = look_up(s, image, &in_no_function, 1, &lookup, &ret->missing);
	if (!r && lookup) {
		ret->missing = lookup->missing;
		file_names_debug_file(lookup->names, ret->debug_file);
	}
	return end_lookup(s, image, lookup, r);
}

int symbolizer_debug_fd(const struct symbolizer *s, const struct image *image)
{
	const struct file_names *names = names_cache_peek(&s->names, image);

	return names ? file_names_debug_fd(names) : -1;
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
	s->kernel_hidden = r == KSYMS_HIDDEN || r == KSYMS_DENIED;
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

/* "NAME" or "NAME [MODULE]" without the ends of clones, and of Rust in readable form. */
static const char *readable_in_kernel(struct symbolizer *s, const char *name)
{
	char mangled[DEMANGLE_NAME_MAX], readable[DEMANGLE_NAME_MAX], text[2 * DEMANGLE_NAME_MAX];
	const size_t n = strcspn(name, " ");

	if (n >= sizeof(mangled))
		return name;
	memcpy(mangled, name, n);
	mangled[n] = '\0';
	if (!demangle(mangled, readable))
		return name;
	snprintf(text, sizeof(text), "%s%s", readable, name + n);
	return intern(s, text);
}

static int find_in_kernel(struct symbolizer *s, uint64_t pc, struct symbol *sym)
{
	struct ksyms_name text;
	const char *name;
	uint64_t start;
	bool found = s->kernel && ksyms_find(s->kernel, pc, &text, &start) == 0;
	int r;

	if (!found) {
		r = load_kernel(s);
		if (r)
			return r;
		found = s->kernel && ksyms_find(s->kernel, pc, &text, &start) == 0;
	}
	name = intern(s, found ? text.text : "[kernel]");
	set_name(sym, readable_in_kernel(s, name), name,
		 found		    ? SYMBOL_NAMED
		 : s->kernel_hidden ? SYMBOL_KERNEL_HIDDEN
				    : SYMBOL_NOT_IN_KERNEL);
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
	s->names.max_bytes = opts->cache_bytes;
	arena_init(&s->strings_memory, SYMBOLIZER_STRINGS_MAX);
	s->dwarf_ns = UINT64_MAX;
	s->patience_ns = opts->dwarf ? opts->dwarf->patience_ns : 0;
	debuginfod_ref(s->opts.debuginfod);
	if (opts->proc)
		r = shared_root_new(opts->proc, &s->proc);
	if (!r && opts->dwarf)
		r = dwarfreader_new(opts->dwarf, &s->dwarf);
	if (!r && opts->guarded)
		r = lookup_thread_new(opts->blocked_ns, &s->thread);
	if (r)
		symbolizer_free(s);
	else
		*ret = s;
	return r;
}

void symbolizer_free(struct symbolizer *s)
{
	if (!s)
		return;
	lookup_thread_free(s->thread);
	names_cache_deinit(&s->names);
	release_held(s);
	shared_root_unref(s->proc);
	dwarfreader_unref(s->dwarf);
	debuginfod_unref(s->opts.debuginfod);
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
	if (frame->image->kind == IMAGE_KERNEL)
		return find_in_kernel(s, frame->vaddr, ret);
	set_name(ret, "[unknown]", "[unknown]", SYMBOL_NO_MAPPING);
	return 0;
}

int symbolizer_find_all(struct symbolizer *s, struct image *image, const uint64_t *vaddrs, size_t n,
			symbolizer_fn fn, void *ctx)
{
	const bool is_file =
		image->kind == IMAGE_FILE || image->kind == IMAGE_VDSO || image->kind == IMAGE_ANON;
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
	ret->missing = symbol->missing;
	memcpy(ret->lines, symbol->lines, symbol->n_lines * sizeof(*symbol->lines));
	return 0;
}

int symbolizer_find(struct symbolizer *s, const struct frame *frame, struct symbol *ret)
{
	return symbolizer_find_all(s, frame->image, &frame->vaddr, 1, copy_symbol, ret);
}

const uint64_t *symbolizer_reads(const struct symbolizer *s)
{
	return s->n_reads;
}

const uint64_t *symbolizer_perf_map_events(const struct symbolizer *s)
{
	return s->perf_map_events;
}

const uint64_t *symbolizer_jitdump_events(const struct symbolizer *s)
{
	return s->jitdump_events;
}

void symbolizer_dwarf_counts(const struct symbolizer *s, uint64_t *ret)
{
	memset(ret, 0, DWARFREADER_OUTCOME_MAX * sizeof(*ret));
	if (s->dwarf)
		dwarfreader_counts(s->dwarf, ret);
}

void symbolizer_stop(struct symbolizer *s)
{
	s->stopped = true;
	lookup_thread_stop(s->thread);
}

void symbolizer_begin(struct symbolizer *s, uint64_t dwarf_ns)
{
	s->dwarf_ns = dwarf_ns;
	if (s->dwarf)
		dwarfreader_renew(s->dwarf, dwarf_ns / 2);
}

static void renew_dwarf(struct symbolizer *s)
{
	uint64_t waited_ns;

	if (!s->dwarf)
		return;
	waited_ns = dwarfreader_waited(s->dwarf);
	if (s->dwarf_ns != UINT64_MAX)
		s->dwarf_ns -= waited_ns < s->dwarf_ns ? waited_ns : s->dwarf_ns;
	dwarfreader_renew(s->dwarf, s->patience_ns < s->dwarf_ns ? s->patience_ns : s->dwarf_ns);
}

void symbolizer_release(struct symbolizer *s)
{
	s->report_ns = 0;
	renew_dwarf(s);
	release_strings(s);
	release_held(s);
	names_cache_trim(&s->names);
}

size_t symbolizer_bytes(const struct symbolizer *s)
{
	return names_cache_bytes(&s->names) + s->strings_memory.bytes +
	       (s->kernel ? ksyms_bytes(s->kernel) : 0);
}
