// SPDX-License-Identifier: Apache-2.0
#include "goprofile/goalloc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/metric.h"
#include "base/vec.h"

/* The content of the info metric for a runtime. */
struct go_description {
	char go_version[64];
	const char *source;
	const char *state;
};

struct go_runtime {
	struct goalloc_who who;
	uint64_t mark; /* 0: not known */
	bool seen;     /* in this round */
	uint32_t has;
	uint64_t last[GOALLOC_VALUES];
	struct go_description is;
};

/* Ended runtimes that a container remembers. Reached: the oldest is forgotten; if podprof reads it
 * again, its counters count twice. */
#define GOALLOC_ENDED_MAX 64

/* A runtime without a reading in a round. Nearly always it has ended, but a read can also fail, or
 * podprof can leave the container alone for a while. A runtime that returns takes its part of the
 * sums back. */
struct go_ended {
	struct goalloc_who who;
	uint64_t mark;
	unsigned int round; /* of its end */
	uint32_t has;	    /* 0: an empty entry */
	uint64_t last[GOALLOC_COUNTERS];
};

struct go_container {
	char *key;
	struct labels labels;
	struct go_runtime *runtimes;
	size_t n_runtimes;
	size_t cap_runtimes;
	uint32_t ended_has; /* of ended runtimes */
	uint64_t ended[GOALLOC_COUNTERS];
	struct go_ended *remembered; /* a ring of GOALLOC_ENDED_MAX; NULL before the first */
	size_t next_remembered;
	struct go_description gone; /* of the runtime that ended last */
	unsigned int rounds_unseen;
	UT_hash_handle hh;
};

struct goalloc {
	struct go_container *containers;
	unsigned int round;
	uint64_t n_refused;
	uint64_t n_decreases; /* readings below the last one, discarded */
};

void goalloc_set(struct goalloc_reading *reading, enum goalloc_value what, uint64_t value)
{
	reading->has |= 1u << what;
	reading->values[what] = value;
}

int goalloc_new(struct goalloc **ret)
{
	*ret = calloc(1, sizeof(**ret));
	return *ret ? 0 : -ENOMEM;
}

static void container_free(struct go_container *c)
{
	labels_deinit(&c->labels);
	free(c->runtimes);
	free(c->remembered);
	free(c->key);
	free(c);
}

static void goalloc_remove(struct goalloc *g, struct go_container *c)
{
	HASH_DEL(g->containers, c);
	container_free(c);
}

void goalloc_free(struct goalloc *g)
{
	struct go_container *c, *next;

	if (!g)
		return;
	HASH_ITER(hh, g->containers, c, next)
		goalloc_remove(g, c);
	free(g);
}

static int container_add(struct goalloc *g, const char *key, struct go_container **ret)
{
	struct go_container *c;
	bool hash_oom = false;

	if (HASH_COUNT(g->containers) >= GOALLOC_CONTAINERS_MAX)
		return GOALLOC_FULL;
	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->key = strdup(key);
	if (c->key)
		HASH_ADD_KEYPTR(hh, g->containers, c->key, strlen(c->key), c);
	if (!c->key || hash_oom) {
		container_free(c);
		return -ENOMEM;
	}
	*ret = c;
	return 0;
}

static bool same_runtime(const struct goalloc_who *a, const struct goalloc_who *b)
{
	return a->number == b->number && pid_id_equal(&a->pid, &b->pid);
}

static bool same_mark(uint64_t a, uint64_t b)
{
	return !a || !b || a == b;
}

/* @has: its counters. Without memory the runtime counts as ended for good. */
static void remember(struct go_container *c, const struct go_runtime *p, uint32_t has,
		     unsigned int round)
{
	struct go_ended *to;

	if (!has)
		return;
	if (!c->remembered)
		c->remembered = calloc(GOALLOC_ENDED_MAX, sizeof(*c->remembered));
	if (!c->remembered)
		return;
	to = &c->remembered[c->next_remembered++ % GOALLOC_ENDED_MAX];
	*to = (struct go_ended){.who = p->who, .mark = p->mark, .round = round, .has = has};
	memcpy(to->last, p->last, sizeof(to->last));
}

/* Move the part of a runtime that has returned from the sums back to the runtime. */
static void take_back(struct go_container *c, struct go_runtime *p)
{
	for (size_t i = 0; c->remembered && i < GOALLOC_ENDED_MAX; i++) {
		struct go_ended *from = &c->remembered[i];

		if (!from->has || !same_runtime(&from->who, &p->who) ||
		    !same_mark(from->mark, p->mark))
			continue;
		for (size_t k = 0; k < GOALLOC_COUNTERS; k++)
			c->ended[k] -= from->last[k];
		memcpy(p->last, from->last, sizeof(from->last));
		p->has = from->has;
		from->has = 0;
		return;
	}
}

/* The values of an ended runtime stay in the sums. */
static void runtime_end(struct go_container *c, struct go_runtime *p, unsigned int round)
{
	const uint32_t has = p->has & ((1u << GOALLOC_COUNTERS) - 1);

	c->ended_has |= has;
	for (size_t i = 0; i < GOALLOC_COUNTERS; i++)
		c->ended[i] += p->last[i];
	remember(c, p, has, round);
	c->gone = p->is;
	c->gone.state = "gone";
}

/* A runtime whose last values are 0, or those of its earlier readings. */
static void runtime_begin(struct go_container *c, struct go_runtime *p,
			  const struct goalloc_who *who, uint64_t mark)
{
	*p = (struct go_runtime){.who = *who, .mark = mark};
	take_back(c, p);
}

static int container_runtime(struct go_container *c, const struct goalloc_who *who, uint64_t mark,
			     unsigned int round, struct go_runtime **ret)
{
	int r;

	for (size_t i = 0; i < c->n_runtimes; i++) {
		struct go_runtime *p = &c->runtimes[i];

		if (!same_runtime(&p->who, who))
			continue;
		if (!same_mark(p->mark, mark)) {
			runtime_end(c, p, round);
			runtime_begin(c, p, who, mark);
		}
		p->mark = mark ? mark : p->mark;
		*ret = p;
		return 0;
	}
	r = vec_grow(&c->runtimes, &c->cap_runtimes, c->n_runtimes + 1, sizeof(*c->runtimes),
		     GOALLOC_PROCESSES_MAX);
	if (r)
		return r < 0 ? r : GOALLOC_FULL;
	*ret = &c->runtimes[c->n_runtimes++];
	runtime_begin(c, *ret, who, mark);
	return 0;
}

/* Labels may change while the container lives, because metadata can come late. */
static int container_label(struct go_container *c, const struct labels *labels)
{
	struct labels copy = {0};
	int r;

	if (labels_equal(&c->labels, labels))
		return 0;
	r = labels_copy(labels, &copy);
	if (r)
		return r;
	labels_deinit(&c->labels);
	c->labels = copy;
	return 0;
}

/* A smaller counter is a torn or forged read, because another program has another identity. */
static void runtime_update(struct goalloc *g, struct go_runtime *p,
			   const struct goalloc_reading *reading)
{
	bool less = false;

	p->seen = true;
	for (size_t i = 0; i < GOALLOC_VALUES; i++) {
		if (!(reading->has & 1u << i))
			continue;
		if (i < GOALLOC_COUNTERS && reading->values[i] < p->last[i]) {
			less = true;
			continue;
		}
		p->has |= 1u << i;
		p->last[i] = reading->values[i];
	}
	g->n_decreases += less;
}

int goalloc_update(struct goalloc *g, const char *container, const struct labels *labels,
		   const struct goalloc_who *who, const struct goalloc_reading *reading)
{
	struct go_container *c;
	struct go_runtime *p;
	int r = 0;

	HASH_FIND_STR(g->containers, container, c);
	if (!c)
		r = container_add(g, container, &c);
	if (!r)
		r = container_runtime(c, who, reading->mark, g->round, &p);
	if (r > 0)
		g->n_refused++;
	if (r)
		return r;
	c->rounds_unseen = 0;
	runtime_update(g, p, reading);
	snprintf(p->is.go_version, sizeof(p->is.go_version), "%s", reading->go_version);
	p->is.source = reading->source;
	p->is.state = reading->state;
	return container_label(c, labels);
}

/* The number 0 is that of a process that podprof may not read. */
static unsigned int first_followed(const struct go_container *c, const struct pid_id *pid)
{
	unsigned int first = 0;

	for (size_t i = 0; i < c->n_runtimes; i++) {
		const struct goalloc_who *who = &c->runtimes[i].who;

		if (who->number && pid_id_equal(&who->pid, pid) && (!first || who->number < first))
			first = who->number;
	}
	return first;
}

static unsigned int first_ended(const struct go_container *c, const struct pid_id *pid)
{
	const struct go_ended *first = NULL;

	for (size_t i = 0; c->remembered && i < GOALLOC_ENDED_MAX; i++) {
		const struct go_ended *e = &c->remembered[i];

		if (!e->has || !e->who.number || !pid_id_equal(&e->who.pid, pid))
			continue;
		if (!first || (int)(e->round - first->round) > 0 ||
		    (e->round == first->round && e->who.number < first->who.number))
			first = e;
	}
	return first ? first->who.number : 0;
}

unsigned int goalloc_first_number(const struct goalloc *g, const char *container,
				  const struct pid_id *pid)
{
	const struct go_container *c;
	unsigned int first;

	HASH_FIND_STR(g->containers, container, c);
	first = c ? first_followed(c, pid) : 0;
	if (c && !first)
		first = first_ended(c, pid);
	return first ? first : 1;
}

void goalloc_keep(struct goalloc *g, const char *container)
{
	struct go_container *c;

	HASH_FIND_STR(g->containers, container, c);
	if (c)
		c->rounds_unseen = 0;
}

static void container_end_round(struct go_container *c, unsigned int round)
{
	size_t n = 0;

	for (size_t i = 0; i < c->n_runtimes; i++) {
		struct go_runtime *p = &c->runtimes[i];

		if (!p->seen) {
			runtime_end(c, p, round);
			continue;
		}
		p->seen = false;
		c->runtimes[n++] = *p;
	}
	c->n_runtimes = n;
}

void goalloc_end_round(struct goalloc *g, unsigned int keep_rounds)
{
	struct go_container *c, *next;

	HASH_ITER(hh, g->containers, c, next) {
		container_end_round(c, g->round);
		if (c->rounds_unseen++ >= keep_rounds)
			goalloc_remove(g, c);
	}
	g->round++;
}

/* Add up the container's runtimes. False if none has the value. */
static bool container_sum(const struct go_container *c, enum goalloc_value what, uint64_t *ret)
{
	uint32_t has = c->ended_has;

	*ret = what < GOALLOC_COUNTERS ? c->ended[what] : 0;
	for (size_t i = 0; i < c->n_runtimes; i++) {
		has |= c->runtimes[i].has;
		/* GOGC=off: the goal is nearly 2^64 */
		if (__builtin_add_overflow(*ret, c->runtimes[i].last[what], ret))
			*ret = UINT64_MAX;
	}
	return has & 1u << what;
}

bool goalloc_view(const struct goalloc *g, const char *container, struct goalloc_view *ret)
{
	const struct go_description *is;
	const struct go_container *c;

	HASH_FIND_STR(g->containers, container, c);
	if (!c)
		return false;
	is = c->n_runtimes ? &c->runtimes[0].is : &c->gone;
	*ret = (struct goalloc_view){.state = is->state, .go_version = is->go_version};
	container_sum(c, GOALLOC_INUSE_BYTES, &ret->inuse_bytes);
	return true;
}

static size_t metric_labels(const struct labels *labels, struct metric_label ret[METRIC_LABELS_MAX])
{
	for (size_t i = 0; i < labels->n; i++)
		ret[i] = (struct metric_label){labels->items[i].name, labels->items[i].value};
	return labels->n;
}

/* Set a label of the family's own. The label replaces a user's label with the same name. */
static size_t add_label(struct metric_label *labels, size_t n, const char *name, const char *value)
{
	size_t i = 0;

	while (i < n && strcmp(labels[i].name, name) != 0)
		i++;
	labels[i] = (struct metric_label){name, value};
	return i < n ? n : n + 1;
}

static void collect_values(const struct goalloc *g, struct metric_sink *sink,
			   const struct metric_family_desc *family, enum goalloc_value what)
{
	struct metric_label labels[METRIC_LABELS_MAX];
	uint64_t value;

	metric_family(sink, family);
	for (const struct go_container *c = g->containers; c; c = c->hh.next)
		if (container_sum(c, what, &value))
			metric_u64(sink, value, labels, metric_labels(&c->labels, labels));
}

static bool same_description(const struct go_description *a, const struct go_description *b)
{
	return strcmp(a->go_version, b->go_version) == 0 && strcmp(a->source, b->source) == 0 &&
	       strcmp(a->state, b->state) == 0;
}

/* Whether an earlier runtime of the container has the same description. */
static bool is_said(const struct go_container *c, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (same_description(&c->runtimes[k].is, &c->runtimes[i].is))
			return true;
	return false;
}

static void collect_description(struct metric_sink *sink, const struct go_container *c,
				const struct go_description *is)
{
	struct metric_label labels[METRIC_LABELS_MAX];
	size_t n = metric_labels(&c->labels, labels);

	n = add_label(labels, n, "go_version", is->go_version);
	n = add_label(labels, n, "source", is->source);
	n = add_label(labels, n, "state", is->state);
	metric_u64(sink, 1, labels, n);
}

static void collect_info(const struct goalloc *g, struct metric_sink *sink)
{
	static const struct metric_family_desc info = {
		"container_go_heap_profile", METRIC_INFO,
		"Source and state of the heap profile of a container's Go processes.", NULL};

	metric_family(sink, &info);
	for (const struct go_container *c = g->containers; c; c = c->hh.next) {
		for (size_t i = 0; i < c->n_runtimes; i++)
			if (!is_said(c, i))
				collect_description(sink, c, &c->runtimes[i].is);
		if (!c->n_runtimes)
			collect_description(sink, c, &c->gone);
	}
}

void goalloc_collect(const struct goalloc *g, struct metric_sink *sink, size_t part)
{
	static const struct metric_family_desc families[GOALLOC_VALUES] = {
		[GOALLOC_ALLOC_BYTES] = {"container_go_alloc_bytes", METRIC_COUNTER,
					 "Bytes allocated by the container's Go processes.",
					 "bytes"},
		[GOALLOC_ALLOC_OBJECTS] = {"container_go_alloc_objects", METRIC_COUNTER,
					   "Objects allocated by the container's Go processes.",
					   NULL},
		[GOALLOC_GC_CYCLES] = {"container_go_gc_cycles", METRIC_COUNTER,
				       "Garbage collections of the container's Go processes.",
				       NULL},
		[GOALLOC_INUSE_BYTES] = {"container_go_inuse_bytes", METRIC_GAUGE,
					 "Live bytes of the container's Go heaps at the last "
					 "garbage collection.",
					 "bytes"},
		[GOALLOC_INUSE_OBJECTS] = {"container_go_inuse_objects", METRIC_GAUGE,
					   "Live objects of the container's Go heaps at the last "
					   "garbage collection.",
					   NULL},
		[GOALLOC_HEAP_BYTES] =
			{"container_go_heap_alloc_bytes", METRIC_GAUGE,
			 "Bytes of the container's Go heaps allocated and not freed, "
			 "garbage included.",
			 "bytes"},
		[GOALLOC_HEAP_OBJECTS] = {"container_go_heap_objects", METRIC_GAUGE,
					  "Objects of the container's Go heaps allocated and not "
					  "freed, garbage included.",
					  NULL},
		[GOALLOC_SPANS_BYTES] = {"container_go_heap_inuse_bytes", METRIC_GAUGE,
					 "Bytes of the container's Go heap spans with objects.",
					 "bytes"},
		[GOALLOC_SYS_BYTES] = {"container_go_heap_sys_bytes", METRIC_GAUGE,
				       "Bytes of address space of the container's Go heaps.",
				       "bytes"},
		[GOALLOC_RELEASED_BYTES] =
			{"container_go_heap_released_bytes", METRIC_GAUGE,
			 "Bytes of the container's Go heaps returned to the system.", "bytes"},
		[GOALLOC_LIVE_BYTES] = {"container_go_gc_heap_live_bytes", METRIC_GAUGE,
					"Live bytes of the container's Go heaps found by the "
					"last garbage collection.",
					"bytes"},
		[GOALLOC_NEXT_GC_BYTES] =
			{"container_go_next_gc_bytes", METRIC_GAUGE,
			 "Target size of the container's Go heaps for the next garbage "
			 "collection.",
			 "bytes"},
		[GOALLOC_GOROUTINES] = {"container_go_goroutines", METRIC_GAUGE,
					"Goroutines of the container's Go processes.", NULL},
	};
	static const struct metric_family_desc refused = {
		"podprof_go_processes_over_limit", METRIC_COUNTER,
		"Readings of Go processes beyond the limits.", NULL};
	static const struct metric_family_desc decreases = {
		"podprof_go_decreases", METRIC_COUNTER,
		"Allocation totals of a process below earlier totals, left out.", NULL};

	if (part < GOALLOC_VALUES) {
		collect_values(g, sink, &families[part], (enum goalloc_value)part);
		return;
	}
	collect_info(g, sink);
	metric_family(sink, &refused);
	metric_u64(sink, g->n_refused, NULL, 0);
	metric_family(sink, &decreases);
	metric_u64(sink, g->n_decreases, NULL, 0);
}
