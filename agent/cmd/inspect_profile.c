// SPDX-License-Identifier: Apache-2.0
/* A pprof file, ours or anybody's, for people (text) and scripts (--json). Everything in it is
 * foreign; the reader has checked the numbers. */
#include "cmd/inspect_profile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/root.h"
#include "base/vec.h"
#include "cmd/cmd.h"
#include "cmd/cmdline.h"
#include "cmd/inspect.h"
#include "pprof/reader.h"

/* A profile of a whole large cluster is some tens of MB. More is an error that says so. Reached: an
 * error says so. */
#define FILE_BYTES_MAX	  (64u << 20)
/* Bytes of a profile after decompression in `inspect profile`. Reached: an error says so. */
#define MESSAGE_BYTES_MAX (256u << 20)
/* Different (key, value) pairs looked at. Reached: the output says so. */
#define LABELS_SEEN_MAX	  100000
#define TOP_DEFAULT	  20

static const char help[] =
	"usage: podprof inspect profile [--json] [--sample-type TYPE] [--top N] FILE|-\n\n"
	"What a pprof file holds: sample types with their totals, the functions that used the\n"
	"most (flat: themselves; cum: with all they call), labels, mappings and comments. FILE is\n"
	"gzipped or not, from podprof, Go or any other writer; '-' reads standard input.\n\n"
	"  --sample-type TYPE  count this one (\"cpu\", \"inuse_space\"); otherwise the one that "
	"the\n"
	"                      profile names as its default, or the last\n"
	"  --top N             show N functions (20); 0 shows all\n"
	"  --json              one JSON object: sample_types, default_sample_type, period_type,\n"
	"                      period, time_ns, duration_ns, samples, locations, functions,\n"
	"                      sample_type, total, top {flat, cum}, labels, mappings, comments\n"
	"  --help              this text\n";

struct options {
	bool json;
	const char *type;
	uint64_t top;
	const char *file;
};

/* ---- labels */

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

/* Each different label, sorted, with the number of samples that have it. */
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

/* ---- the command */

DEFINE_CLEANUP(struct reader *, reader_freep, reader_free);
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
		if (o->json)
			r = inspect_profile_json(&v);
		else
			inspect_profile_text(&v);
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
		cmd_error("inspect profile: %s is not a profile that can be read: %s; give a pprof "
			  "file (protobuf, gzipped or not)",
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
		cmd_error("inspect profile: out of memory with %s; try a shorter profile", o->file);
		return CMD_FAILED;
	}
	return CMD_DONE;
}

/* Opened like this a FIFO or a terminal works, too: it is the user's own choice. */
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
			  r < 0 ? strerror(-r) : root_outcome_name(r));
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
