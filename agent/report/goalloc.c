// SPDX-License-Identifier: Apache-2.0
#include "report/goalloc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/metric.h"
#include "base/vec.h"

struct go_process {
	struct pid_id pid;
	bool seen; /* in this round */
	struct goalloc_reading last;
};

struct go_container {
	char *key;
	struct labels labels;
	struct go_process *processes;
	size_t n_processes;
	size_t cap_processes;
	uint64_t ended_bytes; /* allocated by processes that have ended */
	uint64_t ended_objects;
	char go_version[64];
	const char *source;
	const char *state;
	unsigned int rounds_unseen;
	UT_hash_handle hh;
};

struct goalloc {
	struct go_container *containers;
	uint64_t n_refused;
	uint64_t n_decreases; /* readings below the last one: kept out */
};

int goalloc_new(struct goalloc **ret)
{
	*ret = calloc(1, sizeof(**ret));
	return *ret ? 0 : -ENOMEM;
}

static void container_free(struct go_container *c)
{
	labels_deinit(&c->labels);
	free(c->processes);
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

static int container_process(struct go_container *c, const struct pid_id *pid,
			     struct go_process **ret)
{
	int r;

	for (size_t i = 0; i < c->n_processes; i++)
		if (pid_id_equal(&c->processes[i].pid, pid)) {
			*ret = &c->processes[i];
			return 0;
		}
	r = vec_grow(&c->processes, &c->cap_processes, c->n_processes + 1, sizeof(*c->processes),
		     GOALLOC_PROCESSES_MAX);
	if (r)
		return r < 0 ? r : GOALLOC_FULL;
	c->processes[c->n_processes] = (struct go_process){.pid = *pid};
	*ret = &c->processes[c->n_processes++];
	return 0;
}

/* Labels may change while the container lives: metadata can come late. */
static int container_describe(struct go_container *c, const struct labels *labels,
			      const struct goalloc_reading *reading)
{
	struct labels copy = {0};
	int r;

	if (!labels_equal(&c->labels, labels)) {
		r = labels_copy(labels, &copy);
		if (r)
			return r;
		labels_deinit(&c->labels);
		c->labels = copy;
	}
	snprintf(c->go_version, sizeof(c->go_version), "%s", reading->go_version);
	c->source = reading->source;
	c->state = reading->state;
	return 0;
}

static void process_update(struct goalloc *g, struct go_process *p,
			   const struct goalloc_reading *reading)
{
	struct goalloc_reading last = p->last;

	p->seen = true;
	if (!reading->has_values)
		return;
	p->last = *reading;
	/* A decrease is a torn read or a forged one; a restart has another identity. */
	if (reading->alloc_bytes < last.alloc_bytes ||
	    reading->alloc_objects < last.alloc_objects) {
		p->last.alloc_bytes = last.alloc_bytes;
		p->last.alloc_objects = last.alloc_objects;
		g->n_decreases++;
	}
}

int goalloc_update(struct goalloc *g, const char *container, const struct labels *labels,
		   const struct pid_id *pid, const struct goalloc_reading *reading)
{
	struct go_container *c;
	struct go_process *p;
	int r = 0;

	HASH_FIND_STR(g->containers, container, c);
	if (!c)
		r = container_add(g, container, &c);
	if (!r)
		r = container_process(c, pid, &p);
	if (r > 0)
		g->n_refused++;
	if (r)
		return r;
	c->rounds_unseen = 0;
	process_update(g, p, reading);
	return container_describe(c, labels, reading);
}

/* What ended processes had stays in the sums. */
static void container_end_round(struct go_container *c)
{
	size_t n = 0;

	for (size_t i = 0; i < c->n_processes; i++) {
		struct go_process *p = &c->processes[i];

		if (!p->seen) {
			c->ended_bytes += p->last.alloc_bytes;
			c->ended_objects += p->last.alloc_objects;
			continue;
		}
		p->seen = false;
		c->processes[n++] = *p;
	}
	c->n_processes = n;
}

void goalloc_end_round(struct goalloc *g, unsigned int keep_rounds)
{
	struct go_container *c, *next;

	HASH_ITER(hh, g->containers, c, next) {
		container_end_round(c);
		if (c->rounds_unseen++ >= keep_rounds)
			goalloc_remove(g, c);
	}
}

struct go_sums {
	bool has_values;
	uint64_t alloc_bytes, alloc_objects, inuse_bytes, inuse_objects;
};

static struct go_sums container_sums(const struct go_container *c)
{
	struct go_sums sums = {
		.has_values = c->ended_bytes != 0,
		.alloc_bytes = c->ended_bytes,
		.alloc_objects = c->ended_objects,
	};

	for (size_t i = 0; i < c->n_processes; i++) {
		const struct goalloc_reading *last = &c->processes[i].last;

		sums.has_values |= last->has_values;
		sums.alloc_bytes += last->alloc_bytes;
		sums.alloc_objects += last->alloc_objects;
		sums.inuse_bytes += last->inuse_bytes;
		sums.inuse_objects += last->inuse_objects;
	}
	return sums;
}

bool goalloc_view(const struct goalloc *g, const char *container, struct goalloc_view *ret)
{
	const struct go_container *c;

	HASH_FIND_STR(g->containers, container, c);
	if (!c)
		return false;
	*ret = (struct goalloc_view){.state = c->state,
				     .go_version = c->go_version,
				     .inuse_bytes = container_sums(c).inuse_bytes};
	return true;
}

/* The container's labels, and room for those that one family adds. */
#define GO_LABELS_MAX (LABELS_MAX + 3)

static size_t metric_labels(const struct labels *labels, struct metric_label ret[GO_LABELS_MAX])
{
	for (size_t i = 0; i < labels->n; i++)
		ret[i] = (struct metric_label){labels->items[i].name, labels->items[i].value};
	return labels->n;
}

static void collect_values(const struct goalloc *g, struct metric_sink *sink,
			   const struct metric_family_desc *family, size_t offset)
{
	struct metric_label labels[GO_LABELS_MAX];

	metric_family(sink, family);
	for (const struct go_container *c = g->containers; c; c = c->hh.next) {
		struct go_sums sums = container_sums(c);
		uint64_t value;

		if (!sums.has_values)
			continue;
		memcpy(&value, (const char *)&sums + offset, sizeof(value));
		metric_u64(sink, value, labels, metric_labels(&c->labels, labels));
	}
}

static void collect_info(const struct goalloc *g, struct metric_sink *sink)
{
	static const struct metric_family_desc info = {
		"container_go_heap_profile", METRIC_INFO,
		"How the heap of a container's Go processes is read, and why not where it is not.",
		NULL};
	struct metric_label labels[GO_LABELS_MAX];

	metric_family(sink, &info);
	for (const struct go_container *c = g->containers; c; c = c->hh.next) {
		size_t n = metric_labels(&c->labels, labels);

		labels[n++] = (struct metric_label){"go_version", c->go_version};
		labels[n++] = (struct metric_label){"source", c->source};
		labels[n++] = (struct metric_label){"state", c->state};
		metric_u64(sink, 1, labels, n);
	}
}

void goalloc_collect(void *ctx, struct metric_sink *sink)
{
	static const struct {
		struct metric_family_desc family;
		size_t offset;
	} families[] = {
		{{"container_go_alloc_bytes", METRIC_COUNTER,
		  "Bytes that the container's Go processes have allocated.", "bytes"},
		 offsetof(struct go_sums, alloc_bytes)},
		{{"container_go_alloc_objects", METRIC_COUNTER,
		  "Objects that the container's Go processes have allocated.", NULL},
		 offsetof(struct go_sums, alloc_objects)},
		{{"container_go_inuse_bytes", METRIC_GAUGE,
		  "Bytes of the container's Go heaps in use at the last garbage collection.",
		  "bytes"},
		 offsetof(struct go_sums, inuse_bytes)},
		{{"container_go_inuse_objects", METRIC_GAUGE,
		  "Objects of the container's Go heaps in use at the last garbage collection.",
		  NULL},
		 offsetof(struct go_sums, inuse_objects)},
	};
	static const struct metric_family_desc refused = {
		"podprof_go_processes_refused", METRIC_COUNTER,
		"Readings of Go processes above the ceilings.", NULL};
	static const struct metric_family_desc decreases = {
		"podprof_go_decreases", METRIC_COUNTER,
		"Readings of allocation totals below the one before, kept out.", NULL};
	const struct goalloc *g = ctx;

	for (size_t i = 0; i < array_size(families); i++)
		collect_values(g, sink, &families[i].family, families[i].offset);
	collect_info(g, sink);
	metric_family(sink, &refused);
	metric_u64(sink, g->n_refused, NULL, 0);
	metric_family(sink, &decreases);
	metric_u64(sink, g->n_decreases, NULL, 0);
}
