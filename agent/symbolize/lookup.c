// SPDX-License-Identifier: Apache-2.0
#include "symbolize/lookup.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/keysort.h"
#include "base/loop.h"
#include "base/nsec.h"
#include "base/root.h"
#include "base/utf8.h"
#include "base/watchdog.h"
#include "base/work_budget.h"
#include "elf/elffile.h"
#include "procmap/image.h"
#include "symbolize/debugfile.h"
#include "symbolize/debuginfod.h"
#include "symbolize/dwarfreader.h"
#include "symbolize/jitdump.h"
#include "symbolize/linecache.h"
#include "symbolize/perf_map.h"
#include "symbolize/source.h"

/* CPU time to open a source; the sources count units besides. The slowest of the 13 largest
 * programs of a developer's machine, node of 99 MB, takes 45 ms. Reached: names of the parts that
 * were finished, and `podprof_symbol_reads_total{outcome="abandoned"}`. */
#define LOOKUP_OPEN_CPU_NS    (5 * NSEC_PER_SEC)
/* Units of work on the addresses of a batch, and more for each address. Addresses all over a Go
 * program of 707 MB take 65,000 each, others 1,000. Reached: no name for the file's other
 * addresses, and `podprof_symbol_reads_total{outcome="abandoned"}`. */
#define LOOKUP_WORK	      ((uint64_t)1 << 26)
#define LOOKUP_ADDRESS_WORK   ((uint64_t)1 << 18)
/* The same as CPU time: that program takes 66 us for each address, others 2 to 28 us. Demangling a
 * forged name takes 10 ms. */
#define LOOKUP_CPU_NS	      (100 * NSEC_PER_MSEC)
#define LOOKUP_ADDRESS_CPU_NS (500 * NSEC_PER_USEC)
/* Units for asking a source for an address, besides the reads, and for a name, which may take long
 * to demangle: 32 names cause a look at the clock. */
#define ASK_COST	      (1u << 12)
#define NAME_COST	      (1u << 15)
/* Addresses between two signs of life. */
#define ALIVE_ADDRESSES	      16

/* Without a list of the caller's: each address is asked of these in turn. Go's table has all that
 * DWARF has of Go code. In a Go program the other sources have the code that Go's table lacks
 * (cgo). A debug file has more than the .dynsym of its stripped file. */
static const struct symbol_source *const usual_sources[] = {
	&source_go,	   &source_dwarf, &source_debugfile, &source_symtab,
	&source_debugdata, &source_plt,	  &source_ehframe,
};

/* The same for code in memory. A jitdump has lines. */
static const struct symbol_source *const memory_sources[] = {&source_jitdump, &source_perf_map};

/* Bytes of a file's answers: 10,000 addresses. Reached: addresses not seen for longest are asked of
 * the sources again. */
#define LOOKUP_KEPT_MAX (2u << 20)

enum opened_state { SOURCE_UNASKED, SOURCE_OPENED, SOURCE_ABSENT };

struct opened {
	const struct symbol_source *source;
	enum opened_state state;
	void *data;
};

struct shared_root {
	struct root root;
	atomic_int refs;
};

struct file_names {
	struct image *image;
	struct shared_root *proc;
	struct dwarfreader *dwarf;
	struct debuginfod *debuginfod;
	struct work_budget work; /* of the lookup that runs */
	struct elffile *file;	 /* owned; with this budget; NULL: the image has none */
	struct debugfile debug;	 /* of @file */
	struct kept_answers *kept;
	uint64_t perf_map_events[PERF_MAP_EVENT_MAX];
	uint64_t jitdump_events[JITDUMP_EVENT_MAX];
	size_t n;
	struct opened items[];
};

struct lookup_thread {
	struct loop *loop; /* run by whoever waits for lookups */
	struct worker *worker;
	struct watchdog *watchdog;
	pthread_mutex_t lock;
	struct lookup_group *running; /* under the lock; NULL: none, or abandoned */
	bool stopped;		      /* the same */
	bool is_abandoned;	      /* the last group */
	size_t abandoned; /* the lookup that the thread keeps; the number of all: none */
};

/**
 * struct lookup_group - lookups that the thread runs one after the other
 * @next:    the first that the thread has not begun; @n and more: it begins no other
 * @left:    of an abandoned group: the lookup that the thread keeps; NULL: none
 * @cpu_ns:  CPU time of all, until which the thread begins another one
 * @used_ns: the thread's
 */
struct lookup_group {
	struct work work;
	struct lookup_thread *thread;
	atomic_size_t next;
	struct lookup *left;
	uint64_t cpu_ns;
	uint64_t used_ns;
	size_t n;
	struct lookup *items[];
};

/* ---------------------------------------------------------------- /proc */

int shared_root_new(const struct root *proc, struct shared_root **ret)
{
	struct shared_root *s = calloc(1, sizeof(*s));
	int r = s ? root_dup(proc, &s->root) : -ENOMEM;

	if (r) {
		free(s);
		return r;
	}
	atomic_init(&s->refs, 1);
	*ret = s;
	return 0;
}

static struct shared_root *shared_root_ref(struct shared_root *root)
{
	if (root)
		atomic_fetch_add(&root->refs, 1);
	return root;
}

void shared_root_unref(struct shared_root *root)
{
	if (!root || atomic_fetch_sub(&root->refs, 1) != 1)
		return;
	root_deinit(&root->root);
	free(root);
}

/* ---------------------------------------------------------------- kept answers */

static int kept_answers_new(struct kept_answers **ret)
{
	struct kept_answers *kept = calloc(1, sizeof(*kept));

	if (!kept)
		return -ENOMEM;
	atomic_init(&kept->refs, 1);
	linecache_init(&kept->cache, LOOKUP_KEPT_MAX);
	*ret = kept;
	return 0;
}

struct kept_answers *kept_answers_ref(struct kept_answers *kept)
{
	atomic_fetch_add(&kept->refs, 1);
	return kept;
}

void kept_answers_unref(struct kept_answers *kept)
{
	if (!kept || atomic_fetch_sub(&kept->refs, 1) != 1)
		return;
	linecache_deinit(&kept->cache);
	free(kept);
}

struct kept_answers *file_names_kept(const struct file_names *names)
{
	return names->kept;
}

/* ---------------------------------------------------------------- sources of a file */

int file_names_new(struct image *image, const struct file_names_opts *opts, struct file_names **ret)
{
	const struct symbol_source *const *sources = opts->sources;
	struct file_names *names;
	size_t n = opts->n_sources;
	int r;

	if (image->kind == IMAGE_ANON) {
		sources = memory_sources;
		n = array_size(memory_sources);
	} else if (!sources) {
		sources = usual_sources;
		n = array_size(usual_sources);
	}
	names = calloc(1, sizeof(*names) + n * sizeof(names->items[0]));
	if (!names)
		return -ENOMEM;
	r = kept_answers_new(&names->kept);
	if (!r && image->file)
		r = elffile_budgeted(image->file, &names->work, &names->file);
	if (r) {
		kept_answers_unref(names->kept);
		free(names);
		return r;
	}
	names->image = image_ref(image);
	names->proc = shared_root_ref(opts->proc);
	names->dwarf = dwarfreader_ref(opts->dwarf);
	names->debuginfod = debuginfod_ref(opts->debuginfod);
	names->n = n;
	for (size_t i = 0; i < n; i++)
		names->items[i].source = sources[i];
	*ret = names;
	return 0;
}

static void close_sources(struct file_names *names)
{
	for (size_t i = 0; i < names->n; i++) {
		if (names->items[i].state == SOURCE_OPENED)
			names->items[i].source->free(names->items[i].data);
		names->items[i].state = SOURCE_ABSENT;
	}
}

void file_names_free(struct file_names *names)
{
	if (!names)
		return;
	close_sources(names);
	kept_answers_unref(names->kept);
	debugfile_deinit(&names->debug);
	elffile_free(names->file);
	image_unref(names->image);
	shared_root_unref(names->proc);
	dwarfreader_unref(names->dwarf);
	debuginfod_unref(names->debuginfod);
	free(names);
}

size_t file_names_bytes(const struct file_names *names)
{
	size_t bytes = sizeof(*names) + names->n * sizeof(names->items[0]) + sizeof(*names->kept) +
		       linecache_bytes(&names->kept->cache);

	for (size_t i = 0; i < names->n; i++)
		if (names->items[i].state == SOURCE_OPENED)
			bytes += names->items[i].source->bytes(names->items[i].data);
	return bytes;
}

bool file_names_any(const struct file_names *names)
{
	for (size_t i = 0; i < names->n; i++) {
		const struct opened *o = &names->items[i];

		if (o->state == SOURCE_OPENED && !o->source->only_starts &&
		    (!o->source->any || o->source->any(o->data)))
			return true;
	}
	return false;
}

static void take_events(uint64_t *from, size_t n, uint64_t *to)
{
	for (size_t i = 0; i < n; i++) {
		to[i] += from[i];
		from[i] = 0;
	}
}

void file_names_take_events(struct file_names *names, uint64_t *perf_map, uint64_t *jitdump)
{
	take_events(names->perf_map_events, PERF_MAP_EVENT_MAX, perf_map);
	take_events(names->jitdump_events, JITDUMP_EVENT_MAX, jitdump);
}

int file_names_sources(const struct file_names *names, symbolizer_source_fn fn, void *ctx)
{
	int r = 0;

	for (size_t i = 0; i < names->n && !r; i++) {
		const struct opened *o = &names->items[i];
		bool is_present = o->state == SOURCE_OPENED;

		r = fn(ctx, o->source->name, is_present,
		       is_present ? o->source->bytes(o->data) : 0);
	}
	return r;
}

int file_names_debug_fd(const struct file_names *names)
{
	return names->debug.file ? elffile_fd(names->debug.file) : -1;
}

void file_names_debug_file(const struct file_names *names, char ret[PATH_MAX])
{
	const int fd = file_names_debug_fd(names);
	char link[32];
	ssize_t n = -1;

	if (fd >= 0) {
		snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
		n = readlink(link, ret, PATH_MAX - 1);
	}
	ret[n > 0 ? n : 0] = '\0';
}

static struct source_file source_file_of(struct file_names *names)
{
	const struct image *image = names->image;

	return (struct source_file){
		.elf = names->file,
		.build_id = image->build_id,
		.path = image->path,
		.proc = names->proc ? &names->proc->root : NULL,
		.pid = image->mapped_by,
		.began_ns = image->began_ns,
		.wall_at_boot_ns = image->wall_at_boot_ns,
		.work = &names->work,
		.perf_map = image_perf_map(image),
		.perf_map_events = names->perf_map_events,
		.jitdump = image_jitdump(image),
		.jitdump_events = names->jitdump_events,
		.dwarf = names->dwarf,
		.debug = &names->debug,
		.debuginfod = names->debuginfod,
	};
}

/* Opens the source of an address without a name, or reads its new contents. The work has a budget
 * of its own: the batch gets its budget back. */
static int open_source(struct lookup *l, struct opened *o)
{
	struct file_names *names = l->names;
	const struct source_file file = source_file_of(names);
	const uint64_t begin_ns = nsec_read(CLOCK_THREAD_CPUTIME_ID);
	struct work_budget batch = names->work;
	int r = 0;

	work_budget_init(&names->work, UINT64_MAX, LOOKUP_OPEN_CPU_NS, &l->stop);
	if (o->state == SOURCE_UNASKED) {
		r = o->source->open(&file, &o->data);
		if (r == SOURCE_ABANDONED && names->work.end != WORK_STOPPED)
			l->spent = true;
		if (r >= 0 && r != SOURCE_LATER)
			o->state = o->data ? SOURCE_OPENED : SOURCE_ABSENT;
	}
	if (r >= 0 && o->state == SOURCE_OPENED && o->source->refresh)
		r = o->source->refresh(o->data, &file);
	batch.cpu_ns += nsec_read(CLOCK_THREAD_CPUTIME_ID) - begin_ns;
	names->work = batch;
	return r < 0 ? r : 0;
}

/* ---------------------------------------------------------------- a batch */

/* Into the cache of kept answers, if it has room. The names of a file may have any bytes. 0,
 * ARENA_FULL or -ENOMEM. */
static int copy(struct symbol_lines *lines, const char *string, const char **ret)
{
	const size_t n = strlen(string);
	char *to;
	int r;

	if (lines->cache && !lines->is_copied && utf8_is_valid(string, n)) {
		r = linecache_string(lines->cache, string, n, ret);
		if (r <= 0)
			return r;
	}
	lines->is_copied = true;
	r = arena_bytes(lines->memory, n + 1, &to);
	if (r)
		return r;
	memcpy(to, string, n + 1);
	utf8_repair(to, n);
	*ret = to;
	return 0;
}

/* Most addresses have one function. 0, ARENA_FULL or -ENOMEM. */
static int grow(struct symbol_lines *lines)
{
	size_t cap = lines->cap ? lines->cap * 8 : 1;
	struct symbol_line *items;
	int r = arena_array(lines->memory, cap, sizeof(*items), &items);

	if (r)
		return r;
	if (lines->n)
		memcpy(items, lines->items, lines->n * sizeof(*items));
	lines->items = items;
	lines->cap = cap;
	return 0;
}

static int copy_names(struct symbol_lines *lines, const struct symbol_line *line,
		      struct symbol_line *to)
{
	int r = copy(lines, line->function, &to->function);

	if (!r && line->system_name == line->function)
		to->system_name = to->function;
	else if (!r)
		r = copy(lines, line->system_name, &to->system_name);
	return r;
}

/* Without memory for the name, the old name stays. */
static int rename_outermost(struct symbol_lines *lines, const struct symbol_line *line)
{
	struct symbol_line names;
	int r = copy_names(lines, line, &names);

	lines->rename = false;
	if (r)
		return r < 0 ? r : 0;
	lines->items[lines->n - 1].function = names.function;
	lines->items[lines->n - 1].system_name = names.system_name;
	return 0;
}

int symbol_lines_add(struct symbol_lines *lines, const struct symbol_line *line)
{
	struct symbol_line *to;
	int r = 0;

	if (lines->rename)
		return rename_outermost(lines, line);
	if (lines->n == SYMBOL_LINES_MAX)
		return 0;
	if (lines->n == lines->cap)
		r = grow(lines);
	if (r)
		return r < 0 ? r : 0;
	to = &lines->items[lines->n];
	*to = *line;
	r = copy_names(lines, line, to);
	if (!r)
		r = copy(lines, line->file, &to->file);
	lines->n += r == 0;
	return r < 0 ? r : 0;
}

int symbol_lines_borrow(struct symbol_lines *lines, const struct symbol_line *from, size_t n)
{
	struct symbol_line *items;
	int r = 0;

	if (lines->n) { /* a name for the function of a source before */
		for (size_t i = 0; i < n && !r; i++)
			r = symbol_lines_add(lines, &from[i]);
		return r;
	}
	r = arena_array(lines->memory, n, sizeof(*items), &items);
	if (r)
		return r < 0 ? r : 0;
	memcpy(items, from, n * sizeof(*items));
	lines->items = items;
	lines->n = lines->cap = n;
	lines->is_copied = true;
	return 0;
}

void symbol_lines_rename(struct symbol_lines *lines)
{
	lines->rename = lines->n > 0 && lines->n < SYMBOL_LINES_MAX;
}

void symbol_lines_start(struct symbol_lines *lines, uint64_t vaddr)
{
	lines->start = vaddr;
	lines->has_start = true;
}

int lookup_new(struct file_names *names, const uint64_t *vaddrs, size_t n, struct lookup **ret)
{
	struct lookup *l = calloc(1, sizeof(*l));
	int r;

	if (!l) {
		file_names_free(names);
		return -ENOMEM;
	}
	l->names = names;
	l->n = n;
	arena_init(&l->memory, LOOKUP_BYTES_MAX);
	r = arena_array(&l->memory, n, sizeof(*vaddrs), &l->vaddrs);
	if (!r)
		r = arena_array(&l->memory, n, sizeof(*l->answers), &l->answers);
	if (r) {
		lookup_free(l);
		return -ENOMEM;
	}
	memcpy(l->vaddrs, vaddrs, n * sizeof(*vaddrs));
	*ret = l;
	return 0;
}

void lookup_free(struct lookup *l)
{
	if (!l)
		return;
	file_names_free(l->names);
	arena_deinit(&l->memory);
	free(l);
}

/* A file whose addresses take too much work loses its sources: a table may be large. */
struct file_names *lookup_take_names(struct lookup *l)
{
	if (l->is_over)
		close_sources(l->names);
	return take_ptr(l->names);
}

/* An address of the lookup. */
struct place {
	uint64_t vaddr;
	size_t index;
};
_Static_assert(sizeof(struct place) == KEYSORT_BYTES, "sorted by address");

/* The addresses without a name so far, ascending. @vaddrs has room for all. */
struct asked {
	struct place *places;
	uint64_t *vaddrs;
	size_t n;
};

/* Neighbours in the code are neighbours in most tables, so sorted addresses read a file's blocks
 * once. *@ret lives as long as the lookup. 0 or -ENOMEM. */
static int sort_places(struct lookup *l, struct place **ret)
{
	struct place *places;

	if (arena_array(&l->memory, 2 * l->n, sizeof(*places), &places))
		return -ENOMEM;
	for (size_t i = 0; i < l->n; i++)
		places[i] = (struct place){l->vaddrs[i], i};
	*ret = keysort(places, places + l->n, l->n);
	return 0;
}

/* Leaves the addresses that need a better source. */
static void drop_named(const struct lookup *l, struct asked *asked)
{
	size_t n = 0;

	for (size_t i = 0; i < asked->n; i++) {
		const struct symbol_lines *lines = &l->answers[asked->places[i].index];

		if (lines->n && !lines->rename)
			continue;
		asked->places[n++] = asked->places[i];
	}
	asked->n = n;
}

/* Whether the source would answer the same again. */
static bool is_final(const struct opened *o, uint64_t vaddr)
{
	return !o->source->refresh && (!o->source->is_final || o->source->is_final(o->data, vaddr));
}

static int prepare(struct opened *o, const struct asked *asked)
{
	if (!o->source->prepare)
		return 0;
	for (size_t i = 0; i < asked->n; i++)
		asked->vaddrs[i] = asked->places[i].vaddr;
	return o->source->prepare(o->data, asked->vaddrs, asked->n);
}

/* False at the end: all addresses have names, or the budget has ended. */
static bool ask_source(struct lookup *l, struct opened *o, struct asked *asked)
{
	drop_named(l, asked);
	if (!asked->n)
		return false;
	if (o->state == SOURCE_UNASKED || (o->state == SOURCE_OPENED && o->source->refresh))
		l->result = open_source(l, o);
	for (size_t i = 0; i < asked->n && o->state == SOURCE_UNASKED; i++)
		l->answers[asked->places[i].index].may_change = true;
	if (l->result || o->state != SOURCE_OPENED)
		return !l->result;
	l->result = prepare(o, asked);
	for (size_t i = 0; i < asked->n && !l->result; i++) {
		const uint64_t vaddr = asked->places[i].vaddr;
		struct symbol_lines *lines = &l->answers[asked->places[i].index];
		int r;

		if (!work_budget_spend(&l->names->work, ASK_COST))
			return false;
		r = o->source->find(o->data, vaddr, lines);
		if (!r)
			(void)work_budget_spend(&l->names->work, NAME_COST);
		l->result = r < 0 ? r : 0;
		lines->may_change |= !is_final(o, vaddr);
		if (l->group && i % ALIVE_ADDRESSES == 0)
			work_alive(&l->group->work);
	}
	return !l->result;
}

/* A function whose name no source has, at a known line, counts as unknown. */
static void drop_nameless(struct lookup *l)
{
	for (size_t i = 0; i < l->n; i++) {
		struct symbol_lines *lines = &l->answers[i];

		if (lines->n && !lines->items[lines->n - 1].function[0])
			lines->n = 0;
	}
}

static int keep_answers(struct lookup *l)
{
	struct linecache *cache = &l->names->kept->cache;
	int r = linecache_expect(cache, l->n);

	linecache_begin(cache);
	for (size_t i = 0; i < l->n && !r; i++) {
		struct symbol_lines *lines = &l->answers[i];
		const struct linecache_answer answer = {
			.lines = lines->items,
			.n = lines->n,
			.start = lines->start,
			.has_start = lines->has_start,
		};

		if (!lines->may_change)
			r = linecache_keep(cache, l->vaddrs[i], &answer, !lines->is_copied,
					   &lines->kept);
	}
	linecache_end(cache);
	return r < 0 ? r : 0;
}

static void settle(struct file_names *names)
{
	for (size_t i = 0; i < names->n; i++)
		if (names->items[i].state == SOURCE_OPENED && names->items[i].source->settle)
			names->items[i].source->settle(names->items[i].data);
}

/* Answers from another content of the file would be wrong names. */
static void drop_answers(struct lookup *l)
{
	close_sources(l->names);
	for (size_t i = 0; i < l->n; i++)
		l->answers[i] = (struct symbol_lines){0};
	l->is_overwritten = true;
}

static void find_all(struct lookup *l)
{
	struct file_names *names = l->names;
	struct asked asked = {.n = l->n};

	if (!image_has_content(names->image)) {
		drop_answers(l);
		return;
	}
	l->result = sort_places(l, &asked.places);
	if (!l->result)
		l->result = arena_array(&l->memory, l->n, sizeof(*asked.vaddrs), &asked.vaddrs);
	if (l->result) {
		l->result = -ENOMEM;
		return;
	}
	for (size_t i = 0; i < l->n; i++) {
		l->answers[i].memory = &l->memory;
		l->answers[i].cache = &names->kept->cache;
	}
	work_budget_init(&names->work, LOOKUP_WORK + l->n * LOOKUP_ADDRESS_WORK,
			 LOOKUP_CPU_NS + l->n * LOOKUP_ADDRESS_CPU_NS, &l->stop);
	for (size_t i = 0; i < names->n; i++)
		if (!ask_source(l, &names->items[i], &asked))
			break;
	settle(names);
	drop_nameless(l);
	/* the file may have been written to during the reads */
	if (!image_has_content(names->image))
		drop_answers(l);
	else if (!names->work.end && !l->result)
		l->result = keep_answers(l);
	if (names->work.end && names->work.end != WORK_STOPPED)
		l->spent = l->is_over = true;
}

/* Whether the file lacks the symbols of functions that it does not export. A Go program has the
 * names of all its functions. */
static bool is_stripped(const struct file_names *names)
{
	struct elffile_section section;

	for (size_t i = 0; i < names->n; i++)
		if ((names->items[i].source == &source_debugfile ||
		     names->items[i].source == &source_dwarf ||
		     names->items[i].source == &source_go) &&
		    names->items[i].state == SOURCE_OPENED)
			return false;
	return elffile_section(names->file, ".symtab", &section) != 0;
}

static enum symbol_missing why_missing(const struct lookup *l)
{
	if (l->is_overwritten)
		return SYMBOL_OVERWRITTEN;
	if (l->spent || l->names->work.end)
		return SYMBOL_OVER_BUDGET;
	if (!l->names->file)
		return file_names_any(l->names) ? SYMBOL_NOT_IN_PERF_MAP : SYMBOL_NO_PERF_MAP;
	if (l->names->debug.awaited)
		return SYMBOL_AWAITS_DEBUG_FILE;
	return is_stripped(l->names) ? SYMBOL_STRIPPED : SYMBOL_NO_SYMBOL;
}

static void answer(struct lookup *l)
{
	uint64_t begin_ns = nsec_read(CLOCK_THREAD_CPUTIME_ID);

	find_all(l);
	l->missing = why_missing(l);
	if (l->missing != SYMBOL_OVER_BUDGET)
		l->names->kept->missing = l->missing;
	l->cpu_ns = nsec_read(CLOCK_THREAD_CPUTIME_ID) - begin_ns;
}

/* ---------------------------------------------------------------- the thread */

static void stop_all(struct lookup_group *g)
{
	for (size_t i = 0; i < g->n; i++)
		atomic_store(&g->items[i]->stop, true);
}

static void set_running(struct lookup_thread *t, struct lookup_group *g)
{
	pthread_mutex_lock(&t->lock);
	t->running = g;
	if (g && t->stopped)
		stop_all(g);
	pthread_mutex_unlock(&t->lock);
}

void lookup_thread_stop(struct lookup_thread *t)
{
	pthread_mutex_lock(&t->lock);
	t->stopped = true;
	if (t->running)
		stop_all(t->running);
	pthread_mutex_unlock(&t->lock);
}

static void group_work(struct work *work)
{
	struct lookup_group *g = container_of(work, struct lookup_group, work);
	size_t i, bytes = 0;

	while (g->used_ns < g->cpu_ns && bytes < LOOKUP_BYTES_MAX &&
	       (i = atomic_fetch_add(&g->next, 1)) < g->n) {
		struct lookup *l = g->items[i];

		work_alive(work);
		l->group = g;
		answer(l);
		l->group = NULL;
		l->has_run = true;
		g->used_ns += l->cpu_ns;
		bytes += l->memory.bytes;
	}
}

static void group_done(struct work *work)
{
	loop_stop(container_of(work, struct lookup_group, work)->thread->loop);
}

/* The other lookups stay the caller's: the thread may begin none of them. */
static void on_abandoned(void *ctx, struct work *work)
{
	struct lookup_group *g = container_of(work, struct lookup_group, work);
	struct lookup_thread *t = ctx;
	size_t next = atomic_exchange(&g->next, g->n);

	set_running(t, NULL);
	t->is_abandoned = true;
	t->abandoned = next && next <= g->n ? next - 1 : g->n;
	if (t->abandoned < g->n) {
		g->left = g->items[t->abandoned];
		image_set_slow(g->left->names->image);
		atomic_store(&g->left->stop, true);
	}
	loop_stop(t->loop);
}

static void group_drop(struct work *work)
{
	struct lookup_group *g = container_of(work, struct lookup_group, work);

	lookup_free(g->left);
	free(g);
}

int lookup_thread_new(uint64_t blocked_ns, struct lookup_thread **ret)
{
	struct lookup_thread *t = calloc(1, sizeof(*t));
	struct watchdog_opts opts = {
		.blocked_ns = blocked_ns,
		.threads_max = LOOKUP_BLOCKED_MAX,
		.abandoned = on_abandoned,
		.drop = group_drop,
		.ctx = t,
	};
	int r;

	if (!t)
		return -ENOMEM;
	pthread_mutex_init(&t->lock, NULL);
	r = loop_new(&t->loop);
	if (!r)
		r = worker_new(t->loop, "symbols", 1, &t->worker);
	opts.loop = t->loop;
	opts.worker = t->worker;
	if (!r)
		r = watchdog_new(&opts, &t->watchdog);
	if (r)
		lookup_thread_free(t);
	else
		*ret = t;
	return r;
}

void lookup_thread_free(struct lookup_thread *t)
{
	if (!t)
		return;
	watchdog_free(t->watchdog);
	worker_free(t->worker);
	loop_free(t->loop);
	pthread_mutex_destroy(&t->lock);
	free(t);
}

unsigned int lookup_thread_n_blocked(const struct lookup_thread *t)
{
	return watchdog_n_blocked(t->watchdog);
}

static int group_new(struct lookup *const *lookups, size_t n, uint64_t cpu_ns,
		     struct lookup_group **ret)
{
	struct lookup_group *g = calloc(1, sizeof(*g) + n * sizeof(*g->items));

	if (!g)
		return -ENOMEM;
	g->work = (struct work){.run = group_work, .done = group_done};
	g->cpu_ns = cpu_ns;
	g->n = n;
	memcpy(g->items, lookups, n * sizeof(*g->items));
	*ret = g;
	return 0;
}

/* On the caller's thread. */
static void run_here(struct lookup **lookups, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		answer(lookups[i]);
		lookups[i]->has_run = true;
	}
}

int lookup_run(struct lookup_thread *t, struct lookup **lookups, size_t n, uint64_t cpu_ns)
{
	struct lookup_group *g;
	int r;

	if (!t) {
		run_here(lookups, n);
		return 0;
	}
	r = group_new(lookups, n, cpu_ns, &g);
	if (r)
		return r;
	g->thread = t;
	t->is_abandoned = false;
	set_running(t, g);
	r = worker_submit(t->worker, &g->work);
	if (!r)
		r = loop_run(t->loop);
	set_running(t, NULL);
	if (!t->is_abandoned)
		free(g);
	else if (t->abandoned < n)
		lookups[t->abandoned] = NULL;
	return r;
}
