/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_SERVER_PAGE_H
#define PODPROF_SERVER_PAGE_H

/* The HTML pages, complete without a script but for the flame graph. */

struct buf;
struct ui_data;

/* Each appends to @ret: 0, BUF_FULL, -ENOMEM. */
int page_overview(const struct ui_data *ui, struct buf *ret);
/* Also UI_GONE. */
int page_entity(const struct ui_data *ui, const char *id, struct buf *ret);
/* In place of one of the others: @title and the reason. */
int page_failure(const char *node, const char *title, const char *why, struct buf *ret);

#endif
