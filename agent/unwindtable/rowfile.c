// SPDX-License-Identifier: Apache-2.0
/*
 * A file is looked for by name when its image is compiled: there is no list of the folder to keep
 * true, and however many files are in it, an image costs one open. What the user writes is trusted
 * to be meant, not to be right: each line is checked and stands for itself.
 *
 * Lines are in no order that matters to us. Those of `inspect unwind --rows` follow each other, and
 * so cost no more than the rows that they were printed from.
 */
#include "unwindtable/rowfile.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/line_reader.h"
#include "base/nsec.h"
#include "base/root.h"
#include "elf/elffile.h"
#include "unwind/rowtext.h"

struct reader {
	enum cfi_machine machine;
	struct rows *rows;
	struct rowfile_report *report;
	uint64_t n_lines;  /* given to us, this one with them */
	size_t n_too_long; /* passed over before this one */
	size_t n_told;	   /* of those */
};

/* ---------------------------------------------------------------- a line */

static void tell(struct reader *rd, uint64_t line, enum rowfile_line why)
{
	struct rowfile_report *report = rd->report;

	if (report->n_bad < ROWFILE_BAD_MAX)
		report->bad[report->n_bad] = (struct rowfile_bad){.line = line, .why = why};
	report->n_bad++;
}

static enum rowfile_line why_no_rule(enum rowtext_part part)
{
	switch (part) {
	case ROWTEXT_FP:
		return ROWFILE_FP;
	case ROWTEXT_RA:
		return ROWFILE_RA;
	case ROWTEXT_REST:
		return ROWFILE_REST;
	default:
		return ROWFILE_RULE;
	}
}

/* Without the comment, and the blanks at both ends. */
static struct strview strip(struct strview line)
{
	const char *comment = memchr(line.p, '#', strview_len(&line));

	if (comment)
		line.end = comment;
	strview_skip_blanks(&line);
	while (line.end > line.p && strchr(" \t\r", line.end[-1]))
		line.end--;
	return line;
}

static bool address(struct strview *t, uint64_t *ret)
{
	const char *was = t->p;

	strview_skip_blanks(t);
	if (strview_prefix(t, "0x") || strview_prefix(t, "0X"))
		was = t->p;
	if (!strview_u64(t, 16, ret))
		return false;
	return t->p > was && (strview_empty(t) || *t->p == ' ' || *t->p == '\t');
}

static enum rowfile_line parse(enum cfi_machine machine, struct strview t, uint64_t *ret_start,
			       uint64_t *ret_end, struct unwind_rule *ret_rule)
{
	enum rowtext_part part;

	t = strip(t);
	if (strview_empty(&t))
		return ROWFILE_NOTHING;
	if (!address(&t, ret_start) || !address(&t, ret_end))
		return ROWFILE_ADDRESSES;
	if (*ret_end <= *ret_start)
		return ROWFILE_EMPTY;
	strview_skip_blanks(&t);
	part = rowtext_read(machine, t, ret_rule);
	return part ? why_no_rule(part) : ROWFILE_ROW;
}

/* 0, an outcome of rows.h, -ENOMEM. */
static int add_row(struct rows *rows, uint64_t start, uint64_t end, const struct unwind_rule *rule)
{
	int r = rows_begin(rows, ROWS_USER, start, end);

	if (r)
		return r;
	r = rows_add(rows, start, rule);
	if (!r)
		return rows_end(rows);
	rows_drop(rows);
	return r;
}

/* Each line that was too long and stood before this one. */
static void tell_too_long(struct reader *rd)
{
	for (; rd->n_told < rd->n_too_long; rd->n_told++)
		tell(rd, rd->n_lines + rd->n_told, ROWFILE_LONG);
}

static int take_line(void *ctx, struct strview line)
{
	struct reader *rd = ctx;
	struct unwind_rule rule = {0};
	enum rowfile_line what;
	uint64_t start, end;
	int r;

	rd->n_lines++;
	tell_too_long(rd);
	what = parse(rd->machine, line, &start, &end, &rule);
	if (what == ROWFILE_NOTHING)
		return 0;
	if (what == ROWFILE_ROW) {
		r = add_row(rd->rows, start, end, &rule);
		if (r < 0)
			return r;
		what = r == ROWS_OUTSIDE ? ROWFILE_OUTSIDE : r ? ROWFILE_FULL : ROWFILE_ROW;
	}
	if (what == ROWFILE_ROW)
		rd->report->n_rows++;
	else
		tell(rd, rd->n_lines + rd->n_too_long, what);
	return what == ROWFILE_FULL ? ROWFILE_FULL : 0;
}

int rowfile_read(int fd, enum cfi_machine machine, struct rows *rows, struct rowfile_report *ret)
{
	struct reader rd = {.machine = machine, .rows = rows, .report = ret};
	int r = line_reader_read(fd, take_line, &rd, &rd.n_too_long);

	if (r == ROWFILE_FULL)
		return 0;
	if (r == -ENOMEM)
		return r;
	rd.n_lines++;
	tell_too_long(&rd);
	ret->opened = r;
	return 0;
}

/* ---------------------------------------------------------------- a file */

char *rowfile_path(const char *dir, const char *build_id)
{
	char *path;

	return asprintf(&path, "%s/%s.rows", dir, build_id) < 0 ? NULL : path;
}

static struct rowfile_id id_of(const struct stat *st)
{
	return (struct rowfile_id){
		.device = st->st_dev,
		.inode = st->st_ino,
		.size = (uint64_t)st->st_size,
		.mtime_ns =
			(uint64_t)st->st_mtim.tv_sec * NSEC_PER_SEC + (uint64_t)st->st_mtim.tv_nsec,
	};
}

bool rowfile_id_equal(const struct rowfile_id *a, const struct rowfile_id *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

bool rowfile_exists(const struct rowfile_report *report)
{
	return report->id.inode || report->opened;
}

bool rowfile_good(const struct rowfile_report *report)
{
	return !report->opened && !report->n_bad;
}

struct rowfile_id rowfile_find(const char *dir, const char *build_id)
{
	_cleanup_(freep) char *path = rowfile_path(dir, build_id);
	struct rowfile_id none = {0};
	struct stat st;

	return path && *build_id && stat(path, &st) == 0 ? id_of(&st) : none;
}

/* As procmap/image.h writes it. */
static void build_id_text(const struct elffile *image, char ret[2 * ELFFILE_BUILD_ID_MAX + 1])
{
	uint8_t id[ELFFILE_BUILD_ID_MAX];
	size_t n = 0;

	if (elffile_build_id(image, id, &n))
		n = 0;
	for (size_t i = 0; i < n; i++)
		snprintf(ret + 2 * i, 3, "%02x", id[i]);
	ret[2 * n] = '\0';
}

static int read_file(int fd, const struct elffile *image, struct rows *rows,
		     struct rowfile_report *report)
{
	enum cfi_machine machine = elffile_machine(image) == EM_AARCH64 ? CFI_ARM64 : CFI_X86_64;
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	report->id = id_of(&st);
	if (report->id.size > ROWFILE_BYTES_MAX) {
		report->opened = ROOT_TOO_LARGE;
		return 0;
	}
	return rowfile_read(fd, machine, rows, report);
}

int rowfile_add(const char *dir, const struct elffile *image, struct rows *rows,
		struct rowfile_report *ret)
{
	char build_id[2 * ELFFILE_BUILD_ID_MAX + 1];
	const struct root here = {.fd = AT_FDCWD};
	_cleanup_(freep) char *path = NULL;
	_cleanup_(close_fdp) int fd = -1;
	int r;

	*ret = (struct rowfile_report){0};
	build_id_text(image, build_id);
	if (!*build_id)
		return 0;
	path = rowfile_path(dir, build_id);
	if (!path)
		return -ENOMEM;
	r = root_open_file(&here, path, &fd);
	if (r) {
		ret->opened = r == ROOT_GONE ? 0 : r;
		return 0;
	}
	return read_file(fd, image, rows, ret);
}

/* ---------------------------------------------------------------- for people */

const char *rowfile_line_text(enum rowfile_line line)
{
	static const char *const texts[ROWFILE_LINE_MAX] = {
		[ROWFILE_ROW] = "a row",
		[ROWFILE_NOTHING] = "nothing",
		[ROWFILE_ADDRESSES] = "it must begin with START END, two hexadecimal addresses",
		[ROWFILE_EMPTY] = "END must be above START",
		[ROWFILE_RULE] = "the rule must begin with cfa=, or be gap, stop, signal or frame",
		[ROWFILE_FP] = "behind cfa= must follow fp=same, fp=cfa-N or fp=deref(REG+N)",
		[ROWFILE_RA] = "behind fp= must follow ra=cfa-N or ra=REG",
		[ROWFILE_REST] = "there is more on the line than a row",
		[ROWFILE_OUTSIDE] = "these are not virtual addresses of the file's code",
		[ROWFILE_LONG] = "the line is too long",
		[ROWFILE_FULL] = "there are more rows than podprof holds of one file",
	};

	return (unsigned int)line < ROWFILE_LINE_MAX ? texts[line] : "unknown";
}

const char *rowfile_opened_text(int opened)
{
	switch (opened) {
	case ROOT_DENIED:
		return "not permitted";
	case ROOT_NOT_FILE:
		return "not a file";
	case ROOT_TOO_LARGE:
		return "too large";
	default:
		return opened < 0 ? strerror(-opened) : root_outcome_name(opened);
	}
}
