// SPDX-License-Identifier: Apache-2.0
/*
 * Copying a label set into one arena costs a tenth of rendering it. The names of kinds and states
 * are constants but are copied too, because the source does not promise that.
 */
#include "server/snapshot.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/labels.h"
#include "base/nsec.h"
#include "base/vec.h"
#include "server/ui.h"

/* @listing: NULL after its end; @id: NULL for all entities */
struct ui_snapshot {
	const struct ui_source *from;
	struct ui_listing *listing;
	char *id;
	struct ui_data data;
	struct arena arena;
	struct ui_entity *entities;
	size_t n_entities, entities_cap;
	struct ui_profile *profiles;
	size_t n_profiles, profiles_cap;
	int error;
};

/* ---------------------------------------------------------------- copying */

/* NULL for NULL, and after an error. */
static const char *copy_text(struct ui_snapshot *s, const char *text)
{
	size_t n = text ? strlen(text) + 1 : 0;
	char *copy = NULL;

	if (!text || s->error)
		return NULL;
	s->error = arena_alloc(&s->arena, n, &copy);
	return s->error ? NULL : memcpy(copy, text, n);
}

static const struct labels *copy_labels(struct ui_snapshot *s, const struct labels *from)
{
	struct labels *copy = NULL;

	if (!s->error)
		s->error = arena_alloc(&s->arena, sizeof(*copy), &copy);
	if (!s->error)
		s->error = arena_array(&s->arena, from->n, sizeof(struct label), &copy->items);
	for (size_t i = 0; !s->error && i < from->n; i++) {
		/* struct labels has no form with constant strings; nobody writes to the copy */
		copy->items[i].name = (char *)copy_text(s, from->items[i].name);
		copy->items[i].value = (char *)copy_text(s, from->items[i].value);
		copy->n = i + 1;
	}
	return copy;
}

static void copy_entity(void *arg, const struct ui_entity *entity)
{
	struct ui_snapshot *s = arg;
	struct ui_entity copy = *entity;
	int r = s->error ? 1
			 : vec_grow(&s->entities, &s->entities_cap, s->n_entities + 1,
				    sizeof(*s->entities), UI_SNAPSHOT_ITEMS_MAX);

	if (r < 0)
		s->error = r;
	if (r)
		return;
	copy.id = copy_text(s, entity->id);
	copy.name = copy_text(s, entity->name);
	copy.kind = copy_text(s, entity->kind);
	copy.runtime = copy_text(s, entity->runtime);
	copy.labels = copy_labels(s, entity->labels);
	copy.excluded = copy_text(s, entity->excluded);
	copy.slow.path = copy_text(s, entity->slow.path);
	copy.go_state = copy_text(s, entity->go_state);
	copy.go_version = copy_text(s, entity->go_version);
	if (!s->error)
		s->entities[s->n_entities++] = copy;
}

static void copy_profile(void *arg, const struct ui_profile *profile)
{
	struct ui_snapshot *s = arg;
	struct ui_profile copy = *profile;
	int r = s->error ? 1
			 : vec_grow(&s->profiles, &s->profiles_cap, s->n_profiles + 1,
				    sizeof(*s->profiles), UI_SNAPSHOT_ITEMS_MAX);

	if (r < 0)
		s->error = r;
	if (r)
		return;
	copy.kind = copy_text(s, profile->kind);
	if (!s->error)
		s->profiles[s->n_profiles++] = copy;
}

/* ---------------------------------------------------------------- the copy as a source */

static void give_entities(void *ctx, ui_entity_fn fn, void *arg)
{
	const struct ui_snapshot *s = ctx;

	for (size_t i = 0; i < s->n_entities; i++)
		fn(arg, &s->entities[i]);
}

/* A snapshot for one entity has that one. */
static int give_entity(void *ctx, const char *id, ui_entity_fn fn, void *arg)
{
	(void)id;
	give_entities(ctx, fn, arg);
	return 0;
}

static void give_profiles(void *ctx, const char *entity, ui_profile_fn fn, void *arg)
{
	const struct ui_snapshot *s = ctx;

	(void)entity;
	for (size_t i = 0; i < s->n_profiles; i++)
		fn(arg, &s->profiles[i]);
}

DEFINE_CLEANUP(struct ui_snapshot *, ui_snapshot_freep, ui_snapshot_free);

int ui_snapshot_new(const struct ui_source *ui, const char *id, struct ui_snapshot **ret)
{
	_cleanup_(ui_snapshot_freep) struct ui_snapshot *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->from = ui;
	arena_init(&s->arena, UI_SNAPSHOT_BYTES_MAX);
	s->data = (struct ui_data){
		.ctx = s,
		.node = ui->node,
		.now_ns = nsec_wall(),
		.window_ns = ui->window_ns,
		.last_window_ns = ui->last_window_ns,
		.off = ui->off,
		.entities = give_entities,
		.entity = give_entity,
		.profiles = give_profiles,
	};
	s->id = id ? strdup(id) : NULL;
	if (id && !s->id)
		return -ENOMEM;
	r = ui->list(ui->ctx, id, &s->listing);
	if (!r)
		*ret = take_ptr(s);
	return r;
}

int ui_snapshot_step(struct ui_snapshot *s)
{
	int r = s->from->list_step(s->listing, copy_entity, s);

	if (r == UI_MORE && !s->error)
		return UI_MORE;
	s->from->list_free(take_ptr(s->listing));
	if (!r && s->id)
		s->from->profiles(s->from->ctx, s->id, copy_profile, s);
	if (s->error)
		return s->error < 0 ? s->error : BUF_FULL;
	return r;
}

void ui_snapshot_free(struct ui_snapshot *s)
{
	if (!s)
		return;
	s->from->list_free(s->listing);
	arena_deinit(&s->arena);
	free(s->entities);
	free(s->profiles);
	free(s->id);
	free(s);
}

const struct ui_data *ui_snapshot_get(const struct ui_snapshot *s)
{
	return &s->data;
}
