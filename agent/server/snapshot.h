/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_SERVER_SNAPSHOT_H
#define PODPROF_SERVER_SNAPSHOT_H

/* A page's data as values: copied from a ui_source on the loop, rendered on the HTTP worker. */

struct ui_data;
struct ui_snapshot;
struct ui_source;

/* Bytes of the strings of a page. Reached: 500. */
#define UI_SNAPSHOT_BYTES_MAX (32u << 20)
/* Entities and profiles of a page. Reached: the others are missing from the page. */
#define UI_SNAPSHOT_ITEMS_MAX 65536

/* The data of the page of all entities (@id NULL), or of the page of one entity; still empty. @ui
 * is borrowed. 0 or -errno. */
int ui_snapshot_new(const struct ui_source *ui, const char *id, struct ui_snapshot **ret);
/* Copies a part of the data. UI_MORE, 0, UI_GONE, BUF_FULL, -errno. */
int ui_snapshot_step(struct ui_snapshot *s);
void ui_snapshot_free(struct ui_snapshot *s);
/* The whole copy, borrowed. */
const struct ui_data *ui_snapshot_get(const struct ui_snapshot *s);

#endif
