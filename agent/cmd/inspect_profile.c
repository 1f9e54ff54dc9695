// SPDX-License-Identifier: Apache-2.0
/*
 * Shows any pprof file. The contents are foreign; the reader has checked the numbers.
 *
 * For people: single fields on top, then labels and mappings, then the functions with the largest
 * values. Texts come from the profiled process, so control characters are replaced before the
 * output. Values have google/pprof's units and steps.
 *
 * For scripts (--json): addresses are strings in hex, since JSON's readers have 53 bits for a
 * number. Only the list of functions is shortened, on request. Both forms are printed from the same
 * JSON object: text groups labels, scales values and leaves out unset fields.
 */
#include "cmd/inspect.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/nsec.h"
#include "base/root.h"
#include "base/vec.h"
#include "cmd/cmd.h"
#include "cmd/cmdline.h"
#include "cmd/view.h"
#include "pprof/flame.h"
#include "pprof/reader.h"
#include "pprof/tables.h"
#include "pprof/unnamed.h"

/* Bytes of a profile's file. A profile of a whole large cluster is some tens of MB. Reached: an
 * error says so. */
#define FILE_BYTES_MAX	   (64u << 20)
/* Bytes of a profile after decompression in `inspect profile`. Reached: an error says so. */
#define MESSAGE_BYTES_MAX  (256u << 20)
/* Different (key, value) pairs looked at. Reached: the output says so. */
#define LABELS_SEEN_MAX	   100000
#define TOP_DEFAULT	   20
/* Distinct values shown of a label; the total number is shown, too. */
#define LABEL_VALUES_SHOWN 10

static const char help[] =
	"usage: podprof inspect profile [--json] [--sample-type TYPE] [--top N] FILE|-\n"
	"\n"
	"Shows the contents of a pprof file: sample types with totals, the top functions (flat: "
	"the\n"
	"function alone; cum: with its callees), labels, mappings, comments, and the images with\n"
	"unnamed functions, with the share of their samples and the reason. FILE comes from\n"
	"podprof, Go or any other writer, gzipped or not; '-' reads standard input.\n"
	"\n"
	"  --sample-type TYPE  sample type of the totals (\"cpu\", \"inuse_space\"); default: the\n"
	"                      profile's default type, or its last type\n"
	"  --top N             show N functions (20); 0 shows all\n"
	"  --json              one JSON object: sample_types, default_sample_type, period_type,\n"
	"                      period, time_ns, duration_ns, samples, locations, functions,\n"
	"                      sample_type, total, top {flat, cum}, labels, mappings, comments,\n"
	"                      doc_url, unnamed: [{share, reason, path}], images with unnamed\n"
	"                      functions\n"
	"  --help              this text\n";

struct options {
	bool json;
	const char *type;
	uint64_t top;
	const char *file;
};

/* A distinct label: of a text or, with @str 0, of a number. Strings are indexes. */
struct profile_label {
	uint32_t key, str, unit;
	int64_t num;
	size_t n_samples; /* samples with this label */
};

/**
 * struct profile_view - all printed data; borrows
 * @flat, @cum: functions in either order, @n_functions of them are shown
 * @labels:     sorted, labels of a key are adjacent
 */
struct profile_view {
	const struct pprof_tables *t;
	const struct flame *flame;
	struct flame_function *flat, *cum;
	size_t n_functions;
	struct profile_label *labels;
	size_t n_labels;
};

/* ---------------------------------------------------------------- labels */

static int pair_order(const void *a, const void *b, void *ctx)
{
	const struct profile_label *x = a, *y = b;
	const char **strings = ctx;
	int order = strcmp(strings[x->key], strings[y->key]);

	if (!order)
		order = strcmp(strings[x->str], strings[y->str]);
	if (!order)
		order = x->num < y->num ? -1 : x->num > y->num;
	return order ? order : strcmp(strings[x->unit], strings[y->unit]);
}

/* The distinct labels, sorted, with numbers of samples. */
static int collect_labels(struct profile_view *v)
{
	const struct pprof_tables *t = v->t;
	size_t cap = 0, n = 0, kept = 0;

	for (size_t i = 0; i < t->n_samples; i++) {
		for (size_t j = 0; j < t->samples[i].n_labels; j++) {
			const struct pprof_label_row *row = &t->samples[i].labels[j];
			int r = vec_grow(&v->labels, &cap, n + 1, sizeof(*v->labels),
					 LABELS_SEEN_MAX);

			if (r < 0)
				return r;
			if (r > 0)
				goto full;
			v->labels[n++] =
				(struct profile_label){row->key, row->str, row->unit, row->num, 1};
		}
	}
full:
	if (n)
		qsort_r(v->labels, n, sizeof(*v->labels), pair_order, t->strings);
	for (size_t i = 0; i < n; i++) {
		if (kept && !pair_order(&v->labels[kept - 1], &v->labels[i], t->strings))
			v->labels[kept - 1].n_samples++;
		else
			v->labels[kept++] = v->labels[i];
	}
	v->n_labels = kept;
	return 0;
}

/* ---------------------------------------------------------------- the object */

static json_t *json_of(const struct pprof_tables *t, uint32_t string)
{
	return json_string(t->strings[string]);
}

static json_t *json_types(const struct pprof_tables *t)
{
	json_t *list = json_array();

	for (size_t i = 0; i < t->n_types; i++)
		json_array_append_new(list, json_pack("{s:o, s:o, s:I}", "type",
						      json_of(t, t->types[i].type), "unit",
						      json_of(t, t->types[i].unit), "total",
						      (json_int_t)tables_total(t, i)));
	return list;
}

static json_t *json_top(const struct flame_function *list, size_t n)
{
	json_t *top = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(top, json_pack("{s:s, s:I, s:I}", "function", list[i].name,
						     "flat", (json_int_t)list[i].flat, "cum",
						     (json_int_t)list[i].cum));
	return top;
}

static json_t *json_labels(const struct profile_view *v)
{
	const struct pprof_tables *t = v->t;
	json_t *list = json_array();

	for (size_t i = 0; i < v->n_labels; i++) {
		const struct profile_label *pair = &v->labels[i];
		json_t *label = json_pack("{s:o, s:I}", "key", json_of(t, pair->key), "samples",
					  (json_int_t)pair->n_samples);

		if (pair->str)
			json_object_set_new(label, "value", json_of(t, pair->str));
		else
			json_object_set_new(label, "number", json_integer(pair->num));
		if (pair->unit)
			json_object_set_new(label, "unit", json_of(t, pair->unit));
		json_array_append_new(list, label);
	}
	return list;
}

static json_t *json_mappings(const struct pprof_tables *t)
{
	json_t *list = json_array();

	for (size_t i = 0; i < t->n_mappings; i++) {
		const struct pprof_mapping_row *m = &t->mappings[i];

		json_array_append_new(
			list,
			json_pack("{s:o, s:o, s:o, s:o, s:o, s:b, s:b, s:b, s:b}", "start",
				  view_hex(m->start), "limit", view_hex(m->limit), "offset",
				  view_hex(m->offset), "path", json_of(t, m->path), "build_id",
				  json_of(t, m->build_id), "has_functions", m->has_functions,
				  "has_filenames", m->has_filenames, "has_line_numbers",
				  m->has_line_numbers, "has_inline_frames", m->has_inline_frames));
	}
	return list;
}

static json_t *json_comments(const struct pprof_tables *t)
{
	json_t *list = json_array();

	for (size_t i = 0; i < t->n_comments; i++)
		json_array_append_new(list, json_of(t, t->comments[i]));
	return list;
}

static json_t *json_unnamed(const struct pprof_tables *t)
{
	json_t *list = json_array();
	struct unnamed u;

	for (size_t i = 0; i < t->n_comments; i++)
		if (unnamed_parse(t->strings[t->comments[i]], &u))
			json_array_append_new(
				list, json_pack("{s:f, s:s%, s:s%}", "share", u.per_mille / 1000.0,
						"reason", u.reason.p, strview_len(&u.reason),
						"path", u.path.p, strview_len(&u.path)));
	return list;
}

/* NULL without memory. */
static json_t *json_of_profile(const struct profile_view *v)
{
	const struct pprof_tables *t = v->t;

	return json_pack(
		"{s:o, s:o, s:{s:o, s:o}, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:I, s:{s:o, s:o}, "
		"s:o, s:o, s:o, s:o, s:o}",
		"sample_types", json_types(t), "default_sample_type", json_of(t, t->default_type),
		"period_type", "type", json_of(t, t->period_type.type), "unit",
		json_of(t, t->period_type.unit), "period", (json_int_t)t->period, "time_ns",
		(json_int_t)t->time_ns, "duration_ns", (json_int_t)t->duration_ns, "samples",
		(json_int_t)t->n_samples, "locations", (json_int_t)t->n_locations, "functions",
		(json_int_t)t->n_functions, "sample_type", flame_type(v->flame), "total",
		(json_int_t)flame_total(v->flame), "top", "flat", json_top(v->flat, v->n_functions),
		"cum", json_top(v->cum, v->n_functions), "labels", json_labels(v), "mappings",
		json_mappings(t), "comments", json_comments(t), "doc_url", json_of(t, t->doc_url),
		"unnamed", json_unnamed(t));
}

/* ---------------------------------------------------------------- text */

struct scale {
	const char *unit; /* of the profile */
	double factor;	  /* to the first step */
	double step;
	const char *names[6];
};

/* 12345678 nanoseconds as 12.35ms. */
static void format_value(int64_t value, const char *unit, char *ret, size_t n)
{
	static const struct scale scales[] = {
		{"nanoseconds", 1, 1000, {"ns", "us", "ms", "s"}},
		{"microseconds", 1, 1000, {"us", "ms", "s"}},
		{"milliseconds", 1, 1000, {"ms", "s"}},
		{"bytes", 1, 1024, {"B", "KiB", "MiB", "GiB", "TiB"}},
	};
	double scaled = (double)value;
	size_t at = 0;

	for (size_t i = 0; i < array_size(scales); i++) {
		if (strcmp(unit, scales[i].unit) != 0)
			continue;
		while (scales[i].names[at + 1] &&
		       (scaled >= scales[i].step || scaled <= -scales[i].step)) {
			scaled /= scales[i].step;
			at++;
		}
		snprintf(ret, n, at ? "%.2f%s" : "%.0f%s", scaled, scales[i].names[at]);
		return;
	}
	snprintf(ret, n, "%" PRId64, value);
}

static double percent(int64_t value, int64_t total)
{
	return total ? 100.0 * (double)value / (double)total : 0;
}

static int64_t number_of(const json_t *object, const char *key)
{
	return json_integer_value(json_object_get(object, key));
}

/* The first line of a group has its title. */
static void print_margin(size_t i, const char *title)
{
	printf("%-12s", i ? "" : title);
}

static void print_types(const json_t *root, size_t shown)
{
	const json_t *type;
	char value[64];
	size_t i;

	json_array_foreach(json_object_get(root, "sample_types"), i, type) {
		format_value(number_of(type, "total"),
			     json_string_value(json_object_get(type, "unit")), value,
			     sizeof(value));
		print_margin(i, "types");
		view_print_text(type, "{type|}/{unit|}");
		printf(" %s%s\n", value, i == shown ? " (default)" : "");
	}
}

static void print_time(const json_t *root)
{
	const int64_t time_ns = number_of(root, "time_ns");
	time_t seconds = (time_t)(time_ns / (int64_t)NSEC_PER_SEC);
	char text[64], duration[64];
	struct tm tm;

	format_value(number_of(root, "duration_ns"), "nanoseconds", duration, sizeof(duration));
	if (time_ns > 0 && gmtime_r(&seconds, &tm) &&
	    strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm))
		printf("time        %s, for %s\n", text, duration);
	else
		printf("time        not set, for %s\n", duration);
}

static void print_head(const json_t *root, size_t shown)
{
	const json_t *comment;
	struct unnamed unnamed;
	size_t i;

	print_time(root);
	view_print_text(root, "period      {period} ");
	view_print_text(json_object_get(root, "period_type"), "{type|}/{unit|}\n");
	print_types(root, shown);
	view_print_text(root, "stacks      {samples}, at {locations} locations in {functions} "
			      "functions\n");
	json_array_foreach(json_object_get(root, "comments"), i, comment) {
		if (unnamed_parse(json_string_value(comment), &unnamed))
			continue;
		fputs("comment     ", stdout);
		cmd_print(json_string_value(comment));
		putchar('\n');
	}
}

/* Number of adjacent labels from @i with the same key. */
static size_t same_key(const json_t *labels, size_t i)
{
	const json_t *key = json_object_get(json_array_get(labels, i), "key");
	size_t n = 1;

	while (json_equal(json_object_get(json_array_get(labels, i + n), "key"), key))
		n++;
	return n;
}

static void print_labels(const json_t *labels)
{
	for (size_t i = 0, n; i < json_array_size(labels); i += n) {
		n = same_key(labels, i);
		print_margin(i, "labels");
		view_print_text(json_array_get(labels, i), "{key|}:");
		for (size_t j = 0; j < n && j < LABEL_VALUES_SHOWN; j++)
			view_print_text(json_array_get(labels, i + j),
					" {value|}{number|}{unit|} ({samples})");
		if (n > LABEL_VALUES_SHOWN)
			printf(" and %zu more", n - LABEL_VALUES_SHOWN);
		putchar('\n');
	}
}

static void print_mappings(const json_t *mappings)
{
	const json_t *mapping;
	size_t i;

	json_array_foreach(mappings, i, mapping) {
		print_margin(i, "mappings");
		view_print_text(
			mapping,
			"{start}-{limit} offset {offset} {path|}"
			"[build_id? build-id {build_id}][!has_functions? (functions without names)]"
			"\n");
	}
}

/* Samples with a function without a name, by image. */
static void print_unnamed(const json_t *list)
{
	const json_t *image;
	size_t i;

	json_array_foreach(list, i, image) {
		print_margin(i, "unnamed");
		printf("%5.1f%% ", 100 * json_real_value(json_object_get(image, "share")));
		view_print_text(image, "{path|} ({reason|})\n");
	}
}

static void print_top(const json_t *root, const char *unit, const char *order, const char *list)
{
	const int64_t total = number_of(root, "total");
	const json_t *function;
	char flat[64], cum[64];
	size_t i;

	view_print_text(root, "\n{sample_type|}");
	printf(" by %s value\n%12s %7s %12s %7s  function\n", order, "flat", "", "cum", "");
	json_array_foreach(json_object_get(json_object_get(root, "top"), list), i, function) {
		format_value(number_of(function, "flat"), unit, flat, sizeof(flat));
		format_value(number_of(function, "cum"), unit, cum, sizeof(cum));
		printf("%12s %6.2f%% %12s %6.2f%%  ", flat,
		       percent(number_of(function, "flat"), total), cum,
		       percent(number_of(function, "cum"), total));
		view_print_text(function, "{function|}\n");
	}
}

static void print_text(const struct profile_view *v, const json_t *root)
{
	const char *unit = flame_unit(v->flame);
	size_t shown = 0;

	(void)tables_type(v->t, NULL, &shown);
	print_head(root, shown);
	print_labels(json_object_get(root, "labels"));
	print_mappings(json_object_get(root, "mappings"));
	print_unnamed(json_object_get(root, "unnamed"));
	if (!v->n_functions)
		return;
	print_top(root, unit, "flat", "flat");
	print_top(root, unit, "cumulative", "cum");
}

static int print(const struct profile_view *v, bool json)
{
	json_t *root = json_of_profile(v);
	int r = root ? 0 : -ENOMEM;

	if (root && json)
		r = cmd_print_json_tree(json_incref(root));
	else if (root)
		print_text(v, root);
	json_decref(root);
	return r;
}

/* ---------------------------------------------------------------- the command */

DEFINE_CLEANUP(struct flame *, flame_freep, flame_free);

static int show(const struct pprof_tables *t, const struct options *o)
{
	_cleanup_(flame_freep) struct flame *flame = NULL;
	_cleanup_(freep) struct flame_function *flat = NULL;
	_cleanup_(freep) struct flame_function *cum = NULL;
	struct profile_view v = {.t = t};
	int r = flame_new(&flame);

	if (!r)
		r = flame_add(flame, t, o->type);
	if (r == FLAME_NO_TYPE && (o->type || t->n_samples))
		return r;
	if (!r || r == FLAME_NO_TYPE)
		r = flame_functions(flame, FLAME_BY_FLAT, &flat, &v.n_functions);
	if (!r)
		r = flame_functions(flame, FLAME_BY_CUM, &cum, &v.n_functions);
	if (!r)
		r = collect_labels(&v);
	if (!r) {
		v.flame = flame;
		v.flat = flat;
		v.cum = cum;
		if (o->top && v.n_functions > o->top)
			v.n_functions = o->top;
		r = print(&v, o->json);
	}
	free(v.labels);
	return r;
}

static void no_type(const struct pprof_tables *t, const struct options *o)
{
	_cleanup_(buf_deinit) struct buf names = BUF_INIT(1024);

	for (size_t i = 0; i < t->n_types; i++)
		if (buf_printf(&names, "%s%s", i ? ", " : "", t->strings[t->types[i].type]))
			break;
	cmd_error("inspect profile: %s has no sample type '%s'; it has: %s", o->file, o->type,
		  names.len ? names.data : "none");
}

static int inspect_bytes(const struct buf *bytes, const struct options *o)
{
	_cleanup_(reader_freep) struct reader *rd = NULL;
	const char *why = "";
	int r;

	r = reader_new(bytes->data, bytes->len, MESSAGE_BYTES_MAX, &rd, &why);
	if (r > 0) {
		cmd_error("inspect profile: cannot parse %s: %s; give a pprof file (protobuf, "
			  "gzipped "
			  "or not)",
			  o->file, why);
		return CMD_FAILED;
	}
	if (!r)
		r = show(reader_tables(rd), o);
	if (r == FLAME_NO_TYPE) {
		no_type(reader_tables(rd), o);
		return CMD_FAILED;
	}
	if (r) {
		cmd_error("inspect profile: %s takes too much memory or work; try a shorter "
			  "profile",
			  o->file);
		return CMD_FAILED;
	}
	return CMD_DONE;
}

/* An ordinary open, so a FIFO or a terminal also works: the choice is the user's. */
static int read_input(const struct options *o, struct buf *ret)
{
	_cleanup_(close_fdp) int fd = -1;

	if (strcmp(o->file, "-") == 0)
		return root_read_fd(STDIN_FILENO, ret);
	fd = open(o->file, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	return fd < 0 ? -errno : root_read_fd(fd, ret);
}

static int inspect_input(const struct options *o)
{
	_cleanup_(buf_deinit) struct buf bytes = BUF_INIT(FILE_BYTES_MAX);
	int r = read_input(o, &bytes);

	if (r == ROOT_TOO_LARGE)
		cmd_error("inspect profile: %s is larger than %u MiB; give a shorter profile",
			  o->file, FILE_BYTES_MAX >> 20);
	else if (r)
		cmd_error("inspect profile: cannot read %s: %s; give a pprof file or '-'", o->file,
			  root_why(r));
	return r ? CMD_FAILED : inspect_bytes(&bytes, o);
}

/* True to go on; else *@ret_exit is the status to leave with. */
static bool parse_options(int argc, char **argv, struct options *o, int *ret_exit)
{
	const struct cmdline_option options[] = {
		{.name = "json", .given = &o->json},
		{.name = "sample-type", .string = &o->type},
		{.name = "top", .number = &o->top},
	};
	struct cmdline line = {
		.command = "inspect profile",
		.help = help,
		.options = options,
		.n_options = array_size(options),
	};

	if (!cmdline_parse(&line, argc, argv, ret_exit))
		return false;
	if (line.n_operands != 1) {
		*ret_exit = cmdline_usage(&line, "give one FILE or '-', not %d", line.n_operands);
		return false;
	}
	o->file = line.operands[0];
	return true;
}

int inspect_profile(int argc, char **argv)
{
	struct options options = {.top = TOP_DEFAULT};
	int status;

	if (!parse_options(argc, argv, &options, &status))
		return status;
	status = inspect_input(&options);
	return cmdline_finish("inspect profile", status);
}
