// SPDX-License-Identifier: Apache-2.0
#include "cpu/capture.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/labels.h"
#include "base/vec.h"
#include "cpu/fold.h"
#include "cpu/sampler.h"
#include "discovery/entity.h"
#include "discovery/selection.h"

/* The stacks of an entity. */
struct capture_part {
	struct entity *entity; /* a reference; NULL after capture_finish() */
	struct labels labels;  /* from capture_finish() on */
	struct fold *fold;
	uint64_t n;
	uint64_t value;
};

struct capture {
	struct selection selection;
	bool off_cpu;
	enum capture_state state;
	uint64_t wished_ns; /* boot clock: of the begin, then of the end */
	uint64_t duration_ns;
	uint64_t since_ns;
	uint64_t until_ns;
	struct capture_part *parts;
	size_t n_parts;
	size_t cap;
	size_t last; /* the part of the last sample: most have the same */
	size_t bytes;
	uint64_t n_lost;
	uint64_t n_unfolded;
	uint64_t unfolded_value;
	struct cpu_report_part *report;
};

int capture_new(struct selection *selection, bool off_cpu, uint64_t now_ns, uint64_t duration_ns,
		struct capture **ret)
{
	struct capture *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->selection = *selection;
	*selection = (struct selection){.id = ""};
	c->off_cpu = off_cpu;
	c->wished_ns = now_ns;
	c->duration_ns = duration_ns;
	*ret = c;
	return 0;
}

static void part_deinit(struct capture_part *part)
{
	entity_unref(part->entity);
	labels_deinit(&part->labels);
	fold_free(part->fold);
}

void capture_free(struct capture *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->n_parts; i++)
		part_deinit(&c->parts[i]);
	free(c->parts);
	free(c->report);
	selection_deinit(&c->selection);
	free(c);
}

enum capture_state capture_state(const struct capture *c)
{
	return c->state;
}

const struct selection *capture_selection(const struct capture *c)
{
	return &c->selection;
}

/* NULL at a ceiling or without memory. */
static struct capture_part *part_of(struct capture *c, struct entity *entity)
{
	struct capture_part part = {.entity = entity};

	if (c->last < c->n_parts && c->parts[c->last].entity == entity)
		return &c->parts[c->last];
	for (size_t i = 0; i < c->n_parts; i++)
		if (c->parts[i].entity == entity)
			return &c->parts[c->last = i];
	if (vec_grow(&c->parts, &c->cap, c->n_parts + 1, sizeof(*c->parts), CAPTURE_PARTS_MAX) ||
	    fold_new(&part.fold))
		return NULL;
	(void)entity_ref(entity);
	c->bytes += fold_bytes(part.fold);
	c->parts[c->n_parts] = part;
	return &c->parts[c->last = c->n_parts++];
}

void capture_add(struct capture *c, bool off_cpu, struct entity *entity,
		 const struct cpu_stack *stack, uint64_t count, uint64_t value)
{
	const struct fold_sample folded = cpu_stack_folded(stack);
	struct capture_part *part = NULL;
	size_t before;

	if (c->state != CAPTURE_RUNNING || c->off_cpu != off_cpu ||
	    !selection_may_have(&c->selection, entity))
		return;
	if (c->bytes < CAPTURE_BYTES_MAX)
		part = part_of(c, entity);
	before = part ? fold_bytes(part->fold) : 0;
	if (!part || fold_add(part->fold, &folded, count, value)) {
		c->n_lost += count;
		c->n_unfolded += part ? 0 : count;
		c->unfolded_value += part ? 0 : value;
		return;
	}
	c->bytes += fold_bytes(part->fold) - before;
	part->n += count;
	part->value += value;
}

void capture_end(struct capture *c, uint64_t now_ns)
{
	if (c->state == CAPTURE_WAITING)
		c->since_ns = now_ns;
	c->until_ns = now_ns;
	c->state = CAPTURE_ENDED;
}

enum capture_state capture_drained(struct capture *c, bool off_cpu, uint64_t until_ns)
{
	if (c->state == CAPTURE_ENDED || c->off_cpu != off_cpu ||
	    until_ns + CAPTURE_SLACK_NS < c->wished_ns)
		return c->state;
	if (c->state == CAPTURE_RUNNING) {
		capture_end(c, until_ns);
		return c->state;
	}
	c->since_ns = until_ns;
	c->wished_ns = until_ns + c->duration_ns;
	return c->state = CAPTURE_RUNNING;
}

uint64_t capture_rest_ns(const struct capture *c, uint64_t now_ns)
{
	return c->wished_ns > now_ns ? c->wished_ns - now_ns : 0;
}

int capture_finish(struct capture *c, struct capture_result *ret)
{
	struct capture_result result = {
		.since_ns = c->since_ns,
		.duration_ns = c->until_ns - c->since_ns,
		.n_lost = c->n_lost,
		.n_unfolded = c->n_unfolded,
		.unfolded_value = c->unfolded_value,
	};

	c->report = calloc(c->n_parts ? c->n_parts : 1, sizeof(*c->report));
	if (!c->report)
		return -ENOMEM;
	for (size_t i = 0; i < c->n_parts; i++) {
		struct capture_part *part = &c->parts[i];

		if (part->entity->left_out || !selection_has(&c->selection, part->entity))
			continue;
		if (labels_copy(&part->entity->labels, &part->labels))
			return -ENOMEM;
		c->report[result.n_parts++] = (struct cpu_report_part){
			.fold = part->fold, .labels = &part->labels, .off_cpu = c->off_cpu};
		result.n += part->n;
		result.value += part->value;
	}
	for (size_t i = 0; i < c->n_parts; i++) {
		entity_unref(c->parts[i].entity);
		c->parts[i].entity = NULL;
	}
	result.parts = c->report;
	*ret = result;
	return 0;
}

void capture_settle(struct capture *c)
{
	for (size_t i = 0; i < c->n_parts; i++)
		fold_settle(c->parts[i].fold);
}
