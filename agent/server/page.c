// SPDX-License-Identifier: Apache-2.0
#include "server/page.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/labels.h"
#include "base/nsec.h"
#include "base/vec.h"
#include "server/html.h"
#include "server/ui.h"

/* Rows rendered for choosing the visible rows; the store's ceiling of profiles is equal. Reached:
 * the page says how many are left out. */
#define PAGE_ROWS_MAX	    65536
/* Bytes of those rows. Reached: the page says how many are left out. */
#define PAGE_ROWS_BYTES_MAX (32u << 20)

/* A table's rendered rows, before sorting. */
struct row {
	uint64_t key;
	size_t start, len; /* in rows.text */
};

struct rows {
	struct buf text;
	struct row *items;
	size_t n, cap;
	size_t n_over;	/* rows beyond the limits */
	size_t show;	/* number of visible rows */
	uint64_t scale; /* value of a full bar */
	bool no_cpu;	/* CPU profiles are not recorded */
	const char *id; /* entity of these profiles */
	int error;
};

static void rows_deinit(struct rows *rows)
{
	buf_deinit(&rows->text);
	free(rows->items);
}

/* Add the text rendered since @start as a row. */
static void rows_add(struct rows *rows, uint64_t key, size_t start, int error)
{
	int r = error ? error
		      : vec_grow(&rows->items, &rows->cap, rows->n + 1, sizeof(*rows->items),
				 PAGE_ROWS_MAX);

	if (r == 0) {
		rows->items[rows->n++] = (struct row){key, start, rows->text.len - start};
		return;
	}
	rows->text.len = start;
	if (r > 0)
		rows->n_over++;
	else
		rows->error = r;
}

/* The largest key first; equal keys in order of arrival. */
static int row_order(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? 1 : -1;
	return x->start < y->start ? -1 : x->start > y->start;
}

static size_t rows_shown(const struct rows *rows)
{
	return rows->n < rows->show ? rows->n : rows->show;
}

static size_t rows_left_out(const struct rows *rows)
{
	return rows->n - rows_shown(rows) + rows->n_over;
}

static void put_rows(struct html *h, struct rows *rows)
{
	if (rows->n)
		qsort(rows->items, rows->n, sizeof(*rows->items), row_order);
	for (size_t i = 0; i < rows_shown(rows) && !h->error; i++)
		h->error = buf_append(h->b, rows->text.data + rows->items[i].start,
				      rows->items[i].len);
}

static void put_head(struct html *h, const char *node, const char *title)
{
	html_raw(h, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
		    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">"
		    "<meta name=\"color-scheme\" content=\"light dark\"><title>");
	html_text(h, title);
	html_raw(h, " · podprof</title><link rel=\"icon\" href=\"/assets/icon.svg\">"
		    "<link rel=\"stylesheet\" href=\"/assets/podprof.css\">"
		    "<script src=\"/assets/podprof.js\" defer></script>"
		    "<script src=\"/assets/flametree.js\" defer></script>"
		    "<script src=\"/assets/flame.js\" defer></script></head>\n<body>"
		    "<header><a class=\"brand\" href=\"/\">podprof</a><span class=\"node\">");
	html_text(h, node);
	html_raw(h, "</span><nav><a href=\"/metrics\">Metrics</a> "
		    "<a href=\"/-/ready\">Health</a></nav></header>\n<main>");
}

static void put_foot(struct html *h)
{
	html_raw(h, "</main></body></html>\n");
}

/* ---------------------------------------------------------------- overview */

/* Whether a label repeats @name, the page's head or the kind, which has the runtime beside it. */
static bool is_said(const struct label *label, const char *name, const char *runtime)
{
	static const char *const parts[] = {"namespace", "pod", "container", "service_name",
					    "comm"};

	for (size_t i = 0; i < array_size(parts); i++)
		if (strcmp(label->name, parts[i]) == 0)
			return strstr(name, label->value) != NULL;
	if (strcmp(label->name, "runtime") == 0)
		return strcmp(label->value, runtime) == 0;
	/* "level" is in the column of kinds */
	return strcmp(label->name, "node") == 0 || strcmp(label->name, "level") == 0;
}

/* @name: "" shows the labels of the name, too. */
static void put_labels(struct html *h, const struct ui_entity *o, const char *name)
{
	const struct labels *labels = o->labels;

	for (size_t i = 0; i < labels->n; i++) {
		if (is_said(&labels->items[i], name, o->runtime))
			continue;
		html_raw(h, "<span class=\"label\"><i>");
		html_text(h, labels->items[i].name);
		html_raw(h, "</i>");
		html_text(h, labels->items[i].value);
		html_raw(h, "</span> ");
	}
}

static void put_excluded(struct html *h, const struct ui_entity *o)
{
	if (!o->excluded)
		return;
	html_raw(h, "<span class=\"label\"><i>excluded</i>");
	html_text(h, o->excluded);
	html_raw(h, "</span> ");
}

/* "2 files of process 7: /mnt/a", "5 files of 3 processes, such as 7: /mnt/a" */
static void put_slow_files(struct html *h, const struct ui_slow *slow)
{
	html_printf(h, "<span class=\"label\"><i>no answer from the file system</i>%zu file%s of ",
		    slow->n_files, slow->n_files == 1 ? "" : "s");
	if (slow->n_processes == 1)
		html_printf(h, "process %" PRIu64 ": ", slow->pid);
	else
		html_printf(h, "%zu processes, such as %" PRIu64 ": ", slow->n_processes,
			    slow->pid);
	html_text(h, slow->path);
	html_raw(h, "</span> ");
}

static void put_slow(struct html *h, const struct ui_slow *slow)
{
	if (slow->path)
		put_slow_files(h, slow);
	if (!slow->n_lists)
		return;
	html_raw(h, "<span class=\"label\"><i>no answer from the list of mappings</i>");
	if (slow->n_lists == 1)
		html_printf(h, "process %" PRIu64 "</span> ", slow->list_pid);
	else
		html_printf(h, "%zu processes, such as %" PRIu64 "</span> ", slow->n_lists,
			    slow->list_pid);
}

/* An excluded entity has numbers only of a window in which it was profiled. */
static void put_cpu(struct html *h, const struct ui_entity *o, const struct rows *rows)
{
	if (o->excluded && !o->samples) {
		html_raw(h, "<td data-v=\"0\"><span class=\"state\">excluded</span></td>"
			    "<td data-v=\"0\" class=\"dim\">–</td>");
		return;
	}
	if (rows->no_cpu && !o->samples) {
		html_raw(h, "<td data-v=\"0\" class=\"dim\">–</td>"
			    "<td data-v=\"0\" class=\"dim\">–</td>");
		return;
	}
	html_printf(h,
		    "<td data-v=\"%" PRIu64 "\"><meter max=\"%" PRIu64 "\" value=\"%" PRIu64
		    "\"></meter> ",
		    o->cpu_ns, rows->scale, o->cpu_ns);
	html_duration(h, o->cpu_ns);
	html_printf(h, "</td><td data-v=\"%" PRIu64 "\">%" PRIu64 "</td>", o->samples, o->samples);
}

static void put_go(struct html *h, const struct ui_entity *o)
{
	if (!o->go_state) {
		html_raw(h, "<td data-v=\"0\" class=\"dim\">–</td>");
		return;
	}
	html_printf(h, "<td data-v=\"%" PRIu64 "\">", o->go_inuse_bytes);
	if (strcmp(o->go_state, "ok") == 0) {
		html_bytes(h, o->go_inuse_bytes);
	} else {
		html_raw(h, "<span class=\"state\">");
		html_text(h, o->go_state);
		html_raw(h, "</span>");
	}
	html_raw(h, " <small class=\"dim\">");
	html_text(h, o->go_version ? o->go_version : "");
	html_raw(h, "</small></td>");
}

static void put_kind(struct html *h, const struct ui_entity *o)
{
	html_raw(h, "<td>");
	html_text(h, o->kind);
	if (*o->runtime) {
		html_raw(h, " <small class=\"dim\">");
		html_text(h, o->runtime);
		html_raw(h, "</small>");
	}
	html_raw(h, "</td>");
}

/* On a node that builds programs, hundreds of programs have profiles of earlier windows only. The
 * page's script folds these rows. */
static bool is_past(const struct ui_entity *o)
{
	return strcmp(o->kind, "process") == 0 && !o->samples && !o->excluded && !o->go_state;
}

static void on_entity(void *arg, const struct ui_entity *o)
{
	struct rows *rows = arg;
	struct html h = {.b = &rows->text};
	size_t start = rows->text.len;

	html_raw(&h, is_past(o) ? "<tr class=\"past\">" : "<tr>");
	html_raw(&h, "<th scope=\"row\"><a href=\"/entity/");
	html_text(&h, o->id);
	html_raw(&h, "\">");
	html_text(&h, o->name);
	html_raw(&h, "</a><div class=\"labels\">");
	put_labels(&h, o, o->name);
	put_excluded(&h, o);
	put_slow(&h, &o->slow);
	html_raw(&h, "</div></th>");
	put_kind(&h, o);
	put_cpu(&h, o, rows);
	put_go(&h, o);
	html_printf(&h, "<td data-v=\"%zu\">%zu</td></tr>\n", o->n_profiles, o->n_profiles);
	rows_add(rows, o->cpu_ns, start, h.error);
}

/* Over all entities. @scale: of a full bar, which is the largest entity's share, and at least one
 * CPU. @is_new: nothing has a sample or a profile. */
struct whole {
	uint64_t scale;
	bool is_new;
	size_t n, n_excluded;
};

static void on_entity_whole(void *arg, const struct ui_entity *o)
{
	struct whole *whole = arg;

	if (o->cpu_ns > whole->scale)
		whole->scale = o->cpu_ns;
	if (o->samples || o->n_profiles)
		whole->is_new = false;
	whole->n++;
	whole->n_excluded += o->excluded != NULL;
}

/* The window of the numbers. It ends a moment after its time: to a tenth of a second. */
static uint64_t last_window_ns(const struct ui_data *ui)
{
	const uint64_t tenth = NSEC_PER_SEC / 10, ns = ui->last_window_ns;

	if (!ns)
		return ui->window_ns;
	return ns < NSEC_PER_SEC ? ns : (ns + tenth / 2) / tenth * tenth;
}

/* "CPU time of the last 60 s window; 12 listed, 1 left out." */
static void put_summary(struct html *h, const struct ui_data *ui, const struct rows *rows,
			const struct whole *whole)
{
	html_raw(h, "<p class=\"dim\" id=\"summary\">");
	if (ui->off.cpu) {
		html_text(h, ui->off.cpu);
	} else if (whole->n && whole->n_excluded == whole->n && whole->is_new) {
		html_raw(h, "No profiles: everything here is excluded from profiling");
	} else if (whole->is_new) {
		html_raw(h, "No profiles yet. The first ones appear after the first window");
	} else {
		html_raw(h, "CPU time of the last ");
		html_duration(h, last_window_ns(ui));
		html_raw(h, " window");
	}
	html_printf(h, "; %zu listed", rows_shown(rows));
	if (rows_left_out(rows))
		html_printf(h, ", %zu left out", rows_left_out(rows));
	html_raw(h, ".");
	if (ui->off.store) {
		html_raw(h, " ");
		html_text(h, ui->off.store);
		html_raw(h, ".");
	}
	html_raw(h, "</p>\n");
}

static void put_overview(struct html *h, const struct ui_data *ui, struct rows *rows,
			 const struct whole *whole)
{
	put_head(h, ui->node, ui->node);
	html_raw(h, "<div class=\"bar\"><h1>Containers and services</h1>"
		    "<input type=\"search\" id=\"filter\" placeholder=\"Filter by name or label\" "
		    "aria-label=\"Filter by name or label\" hidden></div>");
	put_summary(h, ui, rows, whole);
	html_raw(h, "<div class=\"scroll\"><table id=\"entities\"><thead><tr>"
		    "<th scope=\"col\">Name</th><th scope=\"col\">Kind</th>"
		    "<th scope=\"col\" aria-sort=\"descending\">CPU time</th>"
		    "<th scope=\"col\">Samples</th><th scope=\"col\">Go heap in use</th>"
		    "<th scope=\"col\">Profiles</th></tr></thead>\n<tbody>");
	put_rows(h, rows);
	html_raw(h, "</tbody></table></div><p><button type=\"button\" id=\"past\" hidden>"
		    "</button></p>");
	html_raw(h, rows->n ? "<p class=\"empty\" id=\"none\" hidden>"
			    : "<p class=\"empty\" id=\"none\">");
	html_raw(h, "Nothing to profile yet.</p>");
	put_foot(h);
}

int page_overview(const struct ui_data *ui, struct buf *ret)
{
	_cleanup_(rows_deinit) struct rows rows = {.text = BUF_INIT(PAGE_ROWS_BYTES_MAX),
						   .show = UI_ENTITIES_MAX,
						   .no_cpu = ui->off.cpu};
	struct whole whole = {.scale = last_window_ns(ui), .is_new = true};
	struct html h = {.b = ret};

	ui->entities(ui->ctx, on_entity_whole, &whole);
	rows.scale = whole.scale;
	ui->entities(ui->ctx, on_entity, &rows);
	if (rows.error)
		return rows.error;
	put_overview(&h, ui, &rows, &whole);
	return h.error;
}

/* ---- one entity */

/* The file's name describes the profile, so downloads in one folder are distinguishable. */
static void on_profile(void *arg, const struct ui_profile *p)
{
	struct rows *rows = arg;
	struct html h = {.b = &rows->text};
	size_t start = rows->text.len;
	uint64_t from_ms = p->start_ns / NSEC_PER_MSEC;

	html_raw(&h, "<tr><th scope=\"row\"><a href=\"/entity/");
	html_text(&h, rows->id);
	html_raw(&h, "?kind=");
	html_text(&h, p->kind);
	html_printf(&h, "&amp;from=%" PRIu64 "&amp;until=%" PRIu64 "\"><time>", from_ms,
		    from_ms + 1);
	html_time(&h, p->start_ns);
	html_raw(&h, "</time></a></th><td>");
	html_text(&h, p->kind);
	html_raw(&h, "</td><td>");
	html_duration(&h, p->duration_ns);
	html_raw(&h, "</td><td>");
	html_bytes(&h, p->bytes);
	html_printf(&h,
		    "</td><td><a download href=\"/profile/%" PRIu64 ".pb.gz\">.pb.gz</a>"
		    "</td></tr>\n",
		    p->id);
	rows_add(rows, p->start_ns, start, h.error);
}

struct entity_head {
	struct html *h;
	const struct ui_data *ui;
};

static void on_entity_head(void *arg, const struct ui_entity *o)
{
	const struct entity_head *head = arg;
	struct html *h = head->h;

	put_head(h, head->ui->node, o->name);
	html_raw(h, "<h1>");
	html_text(h, o->name);
	html_raw(h, "</h1><p class=\"labels\"><span class=\"label\">");
	html_text(h, o->kind);
	html_raw(h, *o->runtime ? ", " : "");
	html_text(h, o->runtime);
	html_raw(h, "</span> ");
	put_labels(h, o, "");
	put_excluded(h, o);
	put_slow(h, &o->slow);
	if (o->go_state) {
		html_raw(h, "<span class=\"label\"><i>Go heap</i>");
		html_text(h, o->go_state);
		html_raw(h, "</span>");
	}
	html_raw(h, "</p>\n");
}

static void put_profiles(struct html *h, struct rows *rows, const char *no_store)
{
	html_raw(h, "<h2>Profiles</h2><p class=\"dim\">");
	if (no_store)
		html_text(h, no_store);
	else
		html_printf(h, "%zu stored; times are UTC", rows->n + rows->n_over);
	if (rows_left_out(rows))
		html_printf(h, "; the newest %zu are listed", rows_shown(rows));
	html_raw(h, ".</p><div class=\"scroll tall\"><table id=\"profiles\"><thead><tr>"
		    "<th scope=\"col\">Start</th><th scope=\"col\">Kind</th>"
		    "<th scope=\"col\">Length</th><th scope=\"col\">Size</th>"
		    "<th scope=\"col\">File</th></tr></thead>\n<tbody>");
	put_rows(h, rows);
	html_raw(h, "</tbody></table></div>");
}

static void put_reason(struct html *h, const char *attribute, const char *why)
{
	if (!why)
		return;
	html_printf(h, "\" data-no-%s=\"", attribute);
	html_text(h, why);
	html_raw(h, ".");
}

/* Filled by flame.js. */
static void put_flame(struct html *h, const char *id, const struct ui_data *ui)
{
	const struct ui_off *off = &ui->off;
	const uint64_t now_ms = ui->now_ns / NSEC_PER_MSEC;
	const uint64_t window_ms = ui->window_ns / NSEC_PER_MSEC;

	html_printf(h,
		    "<section id=\"flame\" data-now-ms=\"%" PRIu64 "\" data-window-ms=\"%" PRIu64
		    "\" data-entity=\"",
		    now_ms, window_ms);
	html_text(h, id);
	put_reason(h, "cpu", off->cpu);
	put_reason(h, "offcpu", off->off_cpu);
	put_reason(h, "go", off->go);
	put_reason(h, "store", off->store);
	html_raw(h, "\"><noscript><p class=\"empty\">The flame graph needs JavaScript. The files "
		    "below open in <code>go tool pprof</code>.</p></noscript></section>\n");
}

int page_entity(const struct ui_data *ui, const char *id, struct buf *ret)
{
	_cleanup_(rows_deinit) struct rows rows = {
		.text = BUF_INIT(PAGE_ROWS_BYTES_MAX), .show = UI_PROFILES_MAX, .id = id};
	struct html h = {.b = ret};
	struct entity_head head = {&h, ui};
	int r;

	r = ui->entity(ui->ctx, id, on_entity_head, &head);
	if (r)
		return r;
	ui->profiles(ui->ctx, id, on_profile, &rows);
	if (rows.error)
		return rows.error;
	put_flame(&h, id, ui);
	put_profiles(&h, &rows, ui->off.store);
	put_foot(&h);
	return h.error;
}

/* ---- a failure */

int page_failure(const char *node, const char *title, const char *why, struct buf *ret)
{
	struct html h = {.b = ret};

	put_head(&h, node, title);
	html_raw(&h, "<h1>");
	html_text(&h, title);
	html_raw(&h, "</h1><p>");
	html_text(&h, why);
	html_raw(&h, "</p><p><a href=\"/\">All containers and services</a></p>");
	put_foot(&h);
	return h.error;
}
