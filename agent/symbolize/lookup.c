// SPDX-License-Identifier: Apache-2.0
#include "symbolize/lookup.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/loop.h"
#include "base/watchdog.h"
#include "procmap/image.h"
#include "symbolize/source.h"

/* Without a list of the caller's: each address is asked of these in turn. In a Go program the
 * symbol table has the code that Go's table lacks (cgo). */
static const struct symbol_source *const usual_sources[] = {&source_go, &source_symtab};

enum opened_state { SOURCE_UNASKED, SOURCE_OPENED, SOURCE_ABSENT };

struct opened {
	const struct symbol_source *source;
	enum opened_state state;
	void *data;
};

struct file_names {
	struct image *image;
	size_t n;
	struct opened items[];
};

struct lookup_thread {
	struct loop *loop; /* run by whoever waits for a lookup */
	struct worker *worker;
	struct watchdog *watchdog;
	bool abandoned; /* the last lookup */
};

/* ---------------------------------------------------------------- sources of a file */

int file_names_new(struct image *image, const struct symbol_source *const *sources, size_t n,
		   struct file_names **ret)
{
	struct file_names *names;

	if (!sources) {
		sources = usual_sources;
		n = array_size(usual_sources);
	}
	names = calloc(1, sizeof(*names) + n * sizeof(names->items[0]));
	if (!names)
		return -ENOMEM;
	names->image = image_ref(image);
	names->n = n;
	for (size_t i = 0; i < n; i++)
		names->items[i].source = sources[i];
	*ret = names;
	return 0;
}

void file_names_free(struct file_names *names)
{
	if (!names)
		return;
	for (size_t i = 0; i < names->n; i++)
		if (names->items[i].state == SOURCE_OPENED)
			names->items[i].source->free(names->items[i].data);
	image_unref(names->image);
	free(names);
}

size_t file_names_bytes(const struct file_names *names)
{
	size_t bytes = sizeof(*names) + names->n * sizeof(names->items[0]);

	for (size_t i = 0; i < names->n; i++)
		if (names->items[i].state == SOURCE_OPENED)
			bytes += names->items[i].source->bytes(names->items[i].data);
	return bytes;
}

static int open_source(const struct file_names *names, struct opened *o)
{
	int r = o->source->open(names->image->file, &o->data);

	if (r == SOURCE_OK)
		o->state = SOURCE_OPENED;
	else if (r == SOURCE_NONE)
		o->state = SOURCE_ABSENT;
	return r < 0 ? r : 0;
}

static int open_sources(struct file_names *names)
{
	int r = 0;

	for (size_t i = 0; i < names->n && !r; i++)
		if (names->items[i].state == SOURCE_UNASKED)
			r = open_source(names, &names->items[i]);
	return r;
}

static int find(struct file_names *names, uint64_t vaddr, struct symbol_lines *ret)
{
	int r = SOURCE_NONE;

	for (size_t i = 0; i < names->n && r == SOURCE_NONE; i++)
		if (names->items[i].state == SOURCE_OPENED)
			r = names->items[i].source->find(names->items[i].data, vaddr, ret);
	return r < 0 ? r : 0;
}

/* ---------------------------------------------------------------- a batch */

static int copy(struct arena *memory, const char *string, const char **ret)
{
	size_t n = strlen(string) + 1;
	char *to;
	int r = arena_alloc(memory, n, &to);

	if (!r)
		*ret = memcpy(to, string, n);
	return r;
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

int symbol_lines_add(struct symbol_lines *lines, const struct symbol_line *line)
{
	struct symbol_line *to;
	int r = 0;

	if (lines->n == SYMBOL_LINES_MAX)
		return 0;
	if (lines->n == lines->cap)
		r = grow(lines);
	if (r)
		return r < 0 ? r : 0;
	to = &lines->items[lines->n];
	*to = *line;
	r = copy(lines->memory, line->function, &to->function);
	if (!r && line->system_name == line->function)
		to->system_name = to->function;
	else if (!r)
		r = copy(lines->memory, line->system_name, &to->system_name);
	if (!r)
		r = copy(lines->memory, line->file, &to->file);
	lines->n += r == 0;
	return r < 0 ? r : 0;
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

struct file_names *lookup_take_names(struct lookup *l)
{
	return take_ptr(l->names);
}

static void answer(struct lookup *l)
{
	l->result = open_sources(l->names);
	for (size_t i = 0; i < l->n && !l->result; i++) {
		l->answers[i].memory = &l->memory;
		l->result = find(l->names, l->vaddrs[i], &l->answers[i]);
		if (l->work.thread)
			work_alive(&l->work);
	}
}

/* ---------------------------------------------------------------- the thread */

static void lookup_work(struct work *work)
{
	answer(container_of(work, struct lookup, work));
}

static void lookup_done(struct work *work)
{
	loop_stop(container_of(work, struct lookup, work)->thread->loop);
}

static void on_abandoned(void *ctx, struct work *work)
{
	struct lookup_thread *t = ctx;

	image_set_slow(container_of(work, struct lookup, work)->names->image);
	t->abandoned = true;
	loop_stop(t->loop);
}

static void lookup_drop(struct work *work)
{
	lookup_free(container_of(work, struct lookup, work));
}

int lookup_thread_new(uint64_t blocked_ns, struct lookup_thread **ret)
{
	struct lookup_thread *t = calloc(1, sizeof(*t));
	struct watchdog_opts opts = {
		.blocked_ns = blocked_ns,
		.threads_max = LOOKUP_BLOCKED_MAX,
		.abandoned = on_abandoned,
		.drop = lookup_drop,
		.ctx = t,
	};
	int r;

	if (!t)
		return -ENOMEM;
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
	free(t);
}

unsigned int lookup_thread_n_blocked(const struct lookup_thread *t)
{
	return watchdog_n_blocked(t->watchdog);
}

int lookup_run(struct lookup_thread *t, struct lookup *l)
{
	int r;

	l->work = (struct work){.run = lookup_work, .done = lookup_done};
	l->thread = t;
	if (!t) {
		answer(l);
		return l->result;
	}
	t->abandoned = false;
	r = worker_submit(t->worker, &l->work);
	if (!r)
		r = loop_run(t->loop);
	if (!r)
		r = t->abandoned ? LOOKUP_BLOCKED : l->result;
	return r;
}
