// SPDX-License-Identifier: Apache-2.0
/*
 * podprof's unwind rows of a program or library: their number, and the omissions with reasons; or
 * the rows themselves.
 */
#include "cmd/inspect.h"

#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cmd/cmd.h"
#include "cmd/cmdline.h"
#include "cmd/view.h"
#include "unwind/rowtext.h"
#include "unwindtable/compile.h"
#include "unwindtable/table.h"

struct options {
	bool json;
	bool rows;
	bool lookup;
	uint64_t vaddr; /* with lookup */
	const char *file;
	const char *proc_root;
	pid_t pid; /* 0: a file */
};

struct image_rows {
	struct elffile *file;
	enum cfi_machine machine;
	struct ehframe_stats stats;
	char build_id[ELFFILE_BUILD_ID_TEXT];
	struct rows *rows;
	struct table *table; /* NULL without rows, or with too many rows for one table */
};

/* Number of rows by kind. */
struct census {
	uint64_t by_cfa[UNWIND_CFA_MAX];
	uint64_t unsupported[UNSUPPORTED_MAX];
};

static const char help[] =
	"usage: podprof inspect unwind FILE [--rows | --lookup VADDR] [--json]\n"
	"       podprof inspect unwind --pid PID [--lookup PC] [--json]\n"
	"\n"
	"Shows how podprof finds callers in a program or library by its unwind tables: the "
	"numbers\n"
	"of functions, rows and skipped entries, with reasons.\n"
	"\n"
	"  --rows   show the rows instead, one a line, ascending:\n"
	"           START END cfa=rsp+8 fp=same ra=cfa-8\n"
	"           START and END are ELF virtual addresses in hex, END exclusive. cfa, the stack\n"
	"           pointer before the call, is REG+N, plt10, plt11 or deref(REG+N)+M. fp, the\n"
	"           caller's frame pointer, is same, cfa-N or deref(REG+N). ra, the return\n"
	"           address, is cfa-N or a register. Instead of the three: gap (no description of\n"
	"           this code), stop (no caller), signal (the kernel's signal frame), frame (the\n"
	"           frame pointer's record), unsupported=REASON\n"
	"  --lookup VADDR   show one row: the result of the packed table, as in the kernel's\n"
	"           walker, for this ELF virtual address (hex)\n"
	"  --pid PID   show the kernel walker's data of a process: the executable mappings, each\n"
	"           with the bias of its ELF addresses, the number of its image, the part of the\n"
	"           image that the table covers, and the number of frames seen there. If no\n"
	"           podprof runs, or it has no sample of the process, the data is computed and "
	"the\n"
	"           output says so. With --lookup, show the row at that address of the process\n"
	"  --proc-root PATH   mount point of procfs (/proc)\n"
	"  --json   JSON: one object, or one per row: {\"start\",\"end\",\"rule\"}\n"
	"  --help   this text\n";

static void image_rows_deinit(struct image_rows *image)
{
	table_free(image->table);
	rows_free(image->rows);
	elffile_free(image->file);
}

static int open_file(const char *path, struct elffile **ret)
{
	_cleanup_(close_fdp) int fd = -1;
	int r;

	if (cmdline_open_elf("inspect unwind", path, &fd))
		return CMD_FAILED;
	r = elffile_open(fd, ret);
	if (r)
		return cmdline_not_elf("inspect unwind", path, r);
	fd = -1; /* the elffile's now */
	return CMD_DONE;
}

static int compile(const struct options *o, struct image_rows *image)
{
	const char *path = o->file;
	int r = open_file(path, &image->file);

	if (r)
		return r;
	elffile_build_id_text(image->file, image->build_id);
	image->machine = elffile_machine(image->file) == EM_AARCH64 ? CFI_ARM64 : CFI_X86_64;
	r = compile_image(image->file, &image->stats, &image->rows);
	if (r == -ENOSPC)
		cmd_error("inspect unwind: %s has more rows than podprof's limit for one file (%u)",
			  path, ROWS_MAX);
	else if (r == ELFFILE_ABANDONED)
		cmd_error("inspect unwind: no rows of %s: the file takes too much work; podprof "
			  "walks its code by frame pointers",
			  path);
	else if (r)
		cmd_error("inspect unwind: no rows of %s: %s; give a linked program or library of "
			  "x86-64 or AArch64",
			  path, r < 0 ? strerror(-r) : elffile_outcome_name(r));
	if (!r && table_pack(image->rows, &image->table) < 0) {
		cmd_error("inspect unwind: out of memory");
		r = -ENOMEM;
	}
	return r ? CMD_FAILED : CMD_DONE;
}

/* ---------------------------------------------------------------- the rows */

/* The last row, the gap behind all code, has no end and is not shown. A library has a million rows:
 * all of them are printed from one object. */
static int print_rows(const struct options *o, const struct image_rows *image)
{
	json_t *start = view_hex(0), *end = view_hex(0), *rule = json_string("");
	json_t *object = json_pack("{s:o, s:o, s:o}", "start", start, "end", end, "rule", rule);
	size_t n = rows_count(image->rows);
	int r = object ? 0 : -ENOMEM;

	for (size_t i = 0; i + 1 < n && !r; i++) {
		struct row row = rows_at(image->rows, i);
		char text[ROWTEXT_MAX];

		rowtext_print(image->machine, rows_rule(image->rows, row.rule), text);
		r = view_set_hex(start, row.vaddr);
		if (!r)
			r = view_set_hex(end, rows_at(image->rows, i + 1).vaddr);
		if (!r && json_string_set_nocheck(rule, text))
			r = -ENOMEM;
		if (!r)
			r = view_print(json_incref(object), o->json, "{start:x} {end:x} {rule}\n");
	}
	json_decref(object);
	return r;
}

/* The walker's lookup; a gap without a row. */
static int print_lookup(const struct options *o, const struct image_rows *image)
{
	struct unwind_rule rule = {0};
	char text[ROWTEXT_MAX];

	if (image->table)
		(void)table_lookup(image->table, o->vaddr, &rule);
	rowtext_print(image->machine, &rule, text);
	return view_print(json_pack("{s:o, s:s}", "vaddr", view_hex(o->vaddr), "rule", text),
			  o->json, "{vaddr:x} {rule}\n");
}

/* ---------------------------------------------------------------- the numbers */

static void take_census(const struct rows *rows, struct census *ret)
{
	*ret = (struct census){0};
	for (size_t i = 0; i < rows_count(rows); i++) {
		const struct unwind_rule *rule = rows_rule(rows, rows_at(rows, i).rule);

		ret->by_cfa[rule->cfa]++;
		if (rule->cfa == UNWIND_CFA_UNSUPPORTED)
			ret->unsupported[rule->cfa_off]++;
	}
}

static const char *const cfa_names[UNWIND_CFA_MAX] = {
	[UNWIND_CFA_GAP] = "gap",	[UNWIND_CFA_REG] = "register",
	[UNWIND_CFA_PLT] = "plt",	[UNWIND_CFA_DEREF] = "deref",
	[UNWIND_CFA_FP] = "frame",	[UNWIND_CFA_SIGNAL] = "signal",
	[UNWIND_CFA_STOP] = "stop",	[UNWIND_CFA_UNSUPPORTED] = "unsupported",
	[UNWIND_CFA_SWITCH] = "switch", [UNWIND_CFA_GO_CGO] = "cgo",
	[UNWIND_CFA_GO_CURG] = "curg",
};

static json_t *counts(const char *(*name)(unsigned int i), const uint64_t *items, unsigned int n)
{
	json_t *object = json_object();

	for (unsigned int i = 0; i < n; i++)
		if (items[i] &&
		    json_object_set_new(object, name(i), json_integer((json_int_t)items[i])))
			return object; /* without memory, json_pack() fails too */
	return object;
}

static const char *cfa_name(unsigned int i)
{
	return cfa_names[i];
}

static const char *unsupported_name(unsigned int i)
{
	return rows_unsupported_name((int32_t)i);
}

static json_t *summary(const struct image_rows *image, const struct census *census)
{
	return json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o}", "build_id",
			 image->build_id, "bytes", (json_int_t)image->stats.bytes, "functions",
			 (json_int_t)image->stats.fdes, "rows", (json_int_t)rows_count(image->rows),
			 "rules", (json_int_t)rows_n_rules(image->rows), "bytes_packed",
			 (json_int_t)(image->table ? image->table->n_bytes : 0), "rows_by_kind",
			 counts(cfa_name, census->by_cfa, UNWIND_CFA_MAX), "unsupported",
			 counts(unsupported_name, census->unsupported, UNSUPPORTED_MAX), "skipped",
			 counts(ehframe_skip_name, image->stats.skipped, EHFRAME_SKIP_MAX));
}

/* Equal names occur in several objects, so the text has @what in front. */
static void print_counts(const char *what, json_t *counts)
{
	const char *name;
	json_t *n;

	json_object_foreach(counts, name, n)
		printf("%s %-*s %12" JSON_INTEGER_FORMAT "\n", what, 28 - (int)strlen(what), name,
		       json_integer_value(n));
}

static int print_summary(const struct options *o, const struct image_rows *image)
{
	struct census census;
	json_t *all;

	take_census(image->rows, &census);
	all = summary(image, &census);
	if (o->json || !all)
		return cmd_print_json(all);
	view_print_text(all, "build id                      {build_id|none}\n"
			     "bytes                         {bytes:12}\n"
			     "functions                     {functions:12}\n"
			     "rows                          {rows:12}\n"
			     "rules                         {rules:12}\n"
			     "bytes packed                  {bytes_packed:12}\n");
	print_counts("rows", json_object_get(all, "rows_by_kind"));
	print_counts("unsupported", json_object_get(all, "unsupported"));
	print_counts("skipped", json_object_get(all, "skipped"));
	json_decref(all);
	return 0;
}

/* ---------------------------------------------------------------- the command */

static int run(const struct options *o)
{
	_cleanup_(image_rows_deinit) struct image_rows image = {0};
	int r = compile(o, &image);

	if (r)
		return r;
	if (o->rows)
		r = print_rows(o, &image);
	else if (o->lookup)
		r = print_lookup(o, &image);
	else
		r = print_summary(o, &image);
	if (r)
		cmd_error("inspect unwind: out of memory");
	return cmdline_finish("inspect unwind", r ? CMD_FAILED : CMD_DONE);
}

/* True to go on; else *@ret_exit is the status to leave with. */
static bool parse_options(int argc, char **argv, struct options *o, int *ret_exit)
{
	const struct cmdline_option options[] = {
		{.name = "json", .given = &o->json},
		{.name = "rows", .given = &o->rows},
		{.name = "lookup", .address = &o->vaddr, .given = &o->lookup},
		{.name = "pid", .pid = &o->pid},
		{.name = "proc-root", .string = &o->proc_root},
	};
	struct cmdline line = {
		.command = "inspect unwind",
		.help = help,
		.options = options,
		.n_options = array_size(options),
	};

	if (!cmdline_parse(&line, argc, argv, ret_exit))
		return false;
	if (o->pid && (line.n_operands || o->rows))
		*ret_exit = cmdline_usage(&line, o->rows ? "--rows needs a file"
							 : "give a file or --pid, not both");
	else if (!o->pid && !line.n_operands)
		*ret_exit = cmdline_usage(&line, "give a program or library, or --pid");
	else if (line.n_operands > 1)
		*ret_exit =
			cmdline_usage(&line, "give one file; unexpected '%s'", line.operands[1]);
	else
		o->file = line.operands[0];
	return *ret_exit == CMD_DONE;
}

int inspect_unwind(int argc, char **argv)
{
	struct options o = {.proc_root = "/proc"};
	int status;

	if (!parse_options(argc, argv, &o, &status))
		return status;
	if (o.pid)
		return inspect_unwind_pid(&(struct inspect_unwind_pid){.pid = o.pid,
								       .json = o.json,
								       .lookup = o.lookup,
								       .pc = o.vaddr,
								       .proc_root = o.proc_root});
	return run(&o);
}
