/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_UISOURCE_UILISTING_H
#define PODPROF_UISOURCE_UILISTING_H

/* The entities on the pages: the current entities, by label set, then entities with profiles in the
 * store only. */

#include "server/ui.h"

struct uisource_opts;

/**
 * uilisting_new() - begin a listing
 * @opts: borrowed until uilisting_free()
 * @only: the id of the entity to list; NULL: all
 *
 * Return: 0 or -ENOMEM.
 */
int uilisting_new(const struct uisource_opts *opts, const char *only, struct ui_listing **ret);
/* As list_step() of struct ui_source. */
int uilisting_step(struct ui_listing *l, ui_entity_fn fn, void *arg);
/* NULL is fine. */
void uilisting_free(struct ui_listing *l);

#endif
