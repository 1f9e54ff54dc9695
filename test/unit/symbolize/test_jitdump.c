// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/work_budget.h"
#include "support/allocfail.h"
#include "support/jitmake.h"
#include "symbolize/codetable.h"
#include "symbolize/jitdump.h"

struct dump {
	struct jitdump *j;
	uint64_t events[JITDUMP_EVENT_MAX];
	int fd;
};

static void open_dump(struct dump *d)
{
	memset(d->events, 0, sizeof(d->events));
	d->fd = memfd_create("dump", MFD_CLOEXEC);
	assert_true(d->fd >= 0);
	assert_int_equal(jitdump_new(d->events, &d->j), 0);
}

static void close_dump(struct dump *d)
{
	jitdump_free(d->j);
	close(d->fd);
}

static void append_bytes(const struct dump *d, const char *bytes, size_t n)
{
	assert_true(lseek(d->fd, 0, SEEK_END) >= 0);
	assert_int_equal(write(d->fd, bytes, n), n);
}

/* Empties @b. */
static void append(const struct dump *d, struct buf *b)
{
	append_bytes(d, b->data, b->len);
	buf_reset(b);
}

static int read_dump(struct dump *d)
{
	struct work_budget work;

	work_budget_init(&work, UINT64_MAX, UINT64_MAX / 2, NULL);
	return jitdump_read(d->j, d->fd, &work);
}

static void check(const struct dump *d, uint64_t pc, const char *want)
{
	struct jitdump_place place;
	const bool found = jitdump_find(d->j, pc, &place);

	assert_int_equal(found, want != NULL);
	if (found)
		assert_string_equal(place.function, want);
}

static void check_line(const struct dump *d, uint64_t pc, const char *file, uint32_t line)
{
	struct jitdump_place place;

	assert_true(jitdump_find(d->j, pc, &place));
	assert_string_equal(place.file, file);
	assert_int_equal(place.line, line);
}

/* ---------------------------------------------------------------- records */

#define STEPS_MAX   6
#define LOOKUPS_MAX 6

/* A load has a name, and a move has @from. */
struct step {
	uint64_t from;
	uint64_t start;
	uint64_t size;
	const char *name;
};

struct row {
	const char *name;
	struct step steps[STEPS_MAX]; /* up to a size of 0 without a name */
	size_t n_invalid;
	struct {
		uint64_t pc;
		const char *want;
	} lookups[LOOKUPS_MAX]; /* up to a pc of 0 */
};

static const struct row rows[] = {
	{"one function",
	 {{0, 0x1000, 16, "f"}},
	 0,
	 {{0xfff, NULL}, {0x1000, "f"}, {0x100f, "f"}, {0x1010, NULL}}},
	{"blanks in the name",
	 {{0, 0x1000, 16, "JS:*f /a b.js:1:2"}},
	 0,
	 {{0x1000, "JS:*f /a b.js:1:2"}}},
	{"the newest wins",
	 {{0, 0x1000, 16, "old"}, {0, 0x1008, 16, "new"}},
	 0,
	 {{0x1007, "old"}, {0x1008, "new"}, {0x1017, "new"}}},
	{"moved", /* the old place keeps the name: its code may still run */
	 {{0, 0x1000, 16, "f"}, {0x1000, 0x2000, 16, NULL}},
	 0,
	 {{0x1000, "f"}, {0x2000, "f"}, {0x200f, "f"}, {0x2010, NULL}}},
	{"moved, and replaced",
	 {{0, 0x1000, 16, "f"}, {0x1000, 0x2000, 16, NULL}, {0, 0x1000, 16, "g"}},
	 0,
	 {{0x1000, "g"}, {0x2000, "f"}}},
	{"moved over itself",
	 {{0, 0x1000, 16, "f"}, {0x1000, 0x1008, 16, NULL}},
	 0,
	 {{0x1000, "f"}, {0x1017, "f"}}},
	{"moved twice",
	 {{0, 0x1000, 16, "f"}, {0x1000, 0x2000, 16, NULL}, {0x2000, 0x3000, 16, NULL}},
	 0,
	 {{0x3000, "f"}}},
	{"an unknown function moves", {{0x1000, 0x2000, 16, NULL}}, 1, {{0x2000, NULL}}},
	{"no size", {{0, 0x1000, 0, "f"}}, 1, {{0x1000, NULL}}},
	{"no name", {{0, 0x1000, 16, ""}}, 1, {{0x1000, NULL}}},
	{"the largest size", {{0, 0x1000, UINT32_MAX, "f"}}, 0, {{0x100000ffe, "f"}}},
	{"one byte more", {{0, 0x1000, UINT32_MAX + 1ull, "f"}}, 1, {{0x1000, NULL}}},
	{"the kernel's half", {{0, 0xffffffff81000000, 16, "f"}}, 1, {{0xffffffff81000000, NULL}}},
	{"no record", {{0}}, 0, {{0x1000, NULL}}},
};

static void make_row(const struct row *row, struct buf *b)
{
	const struct jitmake_header header = jitmake_this();

	jitmake_header(b, &header);
	for (size_t i = 0; i < STEPS_MAX; i++) {
		const struct step *s = &row->steps[i];

		if (s->from)
			jitmake_move(b, s->from, s->start, s->size);
		else if (s->name)
			jitmake_load(b, s->start, s->size, s->name, i * 10);
		jitmake_record(b, JITMAKE_UNWINDING, 20, "abcd", 4);
	}
	jitmake_record(b, JITMAKE_CLOSE, 16, "", 0);
}

/* At once, and byte by byte. */
static void test_rows(void **state)
{
	struct buf b = BUF_INIT(1u << 20);

	(void)state;
	for (size_t i = 0; i < array_size(rows) * 2; i++) {
		const struct row *row = &rows[i / 2];
		struct dump d;

		row_begin(row->name);
		buf_reset(&b);
		make_row(row, &b);
		open_dump(&d);
		for (size_t k = 0; k < b.len; k += i % 2 ? 1 : b.len) {
			append_bytes(&d, b.data + k, i % 2 ? 1 : b.len);
			assert_int_equal(read_dump(&d), 0);
		}
		for (size_t k = 0; k < LOOKUPS_MAX && row->lookups[k].pc; k++)
			check(&d, row->lookups[k].pc, row->lookups[k].want);
		assert_int_equal(d.events[JITDUMP_REPLACED], 0);
		assert_int_equal(d.events[JITDUMP_INVALID_RECORD], row->n_invalid);
		close_dump(&d);
	}
	buf_deinit(&b);
}

/* ---------------------------------------------------------------- headers */

#define NO_MACHINE UINT32_MAX

struct header_row {
	const char *name;
	struct jitmake_header header; /* 0: this machine's */
	enum jitdump_event event;     /* of the refusal; or JITDUMP_READ */
};

static const struct header_row header_rows[] = {
	{"of this machine", {0}, JITDUMP_READ},
	{"a longer header", {.size = 48}, JITDUMP_READ},
	{"a shorter header", {.size = 39}, JITDUMP_NO_DUMP},
	{"another version", {.version = 2}, JITDUMP_NO_DUMP},
	{"an ELF file", {.magic = 0x464c457f}, JITDUMP_NO_DUMP},
	{"the other byte order", {.magic = 0x4454694a}, JITDUMP_OTHER_MACHINE},
	{"32 bits", {.machine = 3}, JITDUMP_OTHER_MACHINE},
	{"no processor", {.machine = NO_MACHINE}, JITDUMP_READ}, /* as CPython 3.13 */
};

static void test_headers(void **state)
{
	struct buf b = BUF_INIT(1u << 20);

	(void)state;
	for (size_t i = 0; i < array_size(header_rows); i++) {
		const struct header_row *row = &header_rows[i];
		struct jitmake_header header = jitmake_this();
		struct dump d;

		row_begin(row->name);
		header.magic = row->header.magic ? row->header.magic : header.magic;
		header.version = row->header.version ? row->header.version : header.version;
		header.size = row->header.size ? row->header.size : header.size;
		header.machine = row->header.machine ? row->header.machine : header.machine;
		if (header.machine == NO_MACHINE)
			header.machine = 0;
		open_dump(&d);
		jitmake_header(&b, &header);
		jitmake_load(&b, 0x1000, 16, "f", 0);
		append(&d, &b);
		assert_int_equal(read_dump(&d), 0);
		/* a refused file is not read again, however it grows */
		jitmake_load(&b, 0x2000, 16, "g", 0);
		append(&d, &b);
		assert_int_equal(read_dump(&d), 0);
		assert_int_equal(d.events[row->event], row->event == JITDUMP_READ ? 2 : 1);
		check(&d, 0x1000, row->event == JITDUMP_READ ? "f" : NULL);
		check(&d, 0x2000, row->event == JITDUMP_READ ? "g" : NULL);
		/* another file in its place is */
		assert_int_equal(ftruncate(d.fd, 0), 0);
		header = jitmake_this();
		jitmake_header(&b, &header);
		jitmake_load(&b, 0x3000, 16, "h", 0);
		append(&d, &b);
		assert_int_equal(read_dump(&d), 0);
		check(&d, 0x3000, "h");
		check(&d, 0x1000, NULL);
		assert_int_equal(d.events[JITDUMP_REPLACED], 1);
		close_dump(&d);
	}
	buf_deinit(&b);
}

/* ---------------------------------------------------------------- lines */

struct lines_row {
	const char *name;
	uint64_t of;		      /* the function is at 0x1000 */
	struct jitmake_line lines[4]; /* up to a line of 0 */
	struct {
		uint64_t pc;
		const char *file;
		uint32_t line;
	} lookups[5]; /* up to a pc of 0 */
};

static const struct lines_row lines_rows[] = {
	{"one file",
	 0x1000,
	 {{0x1004, 10, "a.js"}, {0x1008, 9, NULL}, {0x1050, 300, "a.js"}},
	 {{0x1003, "a.js", 0},
	  {0x1004, "a.js", 10},
	  {0x1008, "a.js", 9},
	  {0x104f, "a.js", 9},
	  {0x1050, "a.js", 300}}},
	{"code of another file is inlined",
	 0x1000,
	 {{0x1000, 10, "a.js"}, {0x1010, 7, "b.js"}, {0x1020, 8, NULL}, {0x1030, 11, "a.js"}},
	 {{0x1010, "a.js", 10}, {0x1020, "a.js", 10}, {0x1030, "a.js", 11}}},
	{"backwards", /* the later entry is left out */
	 0x1000,
	 {{0x1010, 10, "a.js"}, {0x1000, 7, NULL}},
	 {{0x1000, "a.js", 0}, {0x1010, "a.js", 10}}},
	{"of another function", 0x2000, {{0x1000, 10, "a.js"}}, {{0x1000, "", 0}}},
	{"no entries", 0x1000, {{0}}, {{0x1000, "", 0}}},
	{"the largest numbers",
	 0x1000,
	 {{0x1000, UINT32_MAX, "a.js"}, {0x1010, 1, NULL}},
	 {{0x1000, "a.js", UINT32_MAX}, {0x1010, "a.js", 1}}},
	{"a file name from freed memory", /* as V8 */
	 0x1000,
	 {{0x1004, 10, "\x1f>\x03"}, {0x1008, 9, NULL}},
	 {{0x1004, "", 0}}},
	{"beyond the function",
	 0x1000,
	 {{0x1004, 10, "a.js"}, {0x1141, 9, NULL}},
	 {{0x1004, "", 0}}},
	{"behind the function", /* still good with the header of an ELF file */
	 0x1000,
	 {{0x1004, 10, "a.js"}, {0x1140, 9, NULL}},
	 {{0x1004, "a.js", 10}}},
	{"with the header of an ELF file", /* as V8 writes them */
	 0x1000,
	 {{0x1040, 10, "a.js"}, {0x1048, 11, NULL}, {0x1138, 12, NULL}},
	 {{0x1000, "a.js", 10}, {0x1007, "a.js", 10}, {0x1008, "a.js", 11}, {0x10f8, "a.js", 12}}},
};

static void make_lines(const struct lines_row *row, struct buf *b)
{
	const struct jitmake_header header = jitmake_this();
	size_t n = 0;

	while (n < array_size(row->lines) && row->lines[n].line)
		n++;
	jitmake_header(b, &header);
	jitmake_lines(b, row->of, row->lines, n);
	jitmake_load(b, 0x1000, 256, "f", 100);
	jitmake_load(b, 0x3000, 256, "without_lines", 100);
}

static void test_lines(void **state)
{
	struct buf b = BUF_INIT(1u << 20);

	(void)state;
	for (size_t i = 0; i < array_size(lines_rows); i++) {
		const struct lines_row *row = &lines_rows[i];
		struct dump d;

		row_begin(row->name);
		make_lines(row, &b);
		open_dump(&d);
		append(&d, &b);
		assert_int_equal(read_dump(&d), 0);
		for (size_t k = 0; k < array_size(row->lookups) && row->lookups[k].pc; k++)
			check_line(&d, row->lookups[k].pc, row->lookups[k].file,
				   row->lookups[k].line);
		check_line(&d, 0x3000, "", 0);
		close_dump(&d);
	}
	buf_deinit(&b);
}

/* The lines of a moved function, and of one whose first half is replaced. */
static void test_lines_elsewhere(void **state)
{
	const struct jitmake_line lines[] = {{0x1000, 10, "a.js"}, {0x1010, 11, NULL}};
	const struct jitmake_header header = jitmake_this();
	struct buf b = BUF_INIT(1u << 20);
	struct dump d;

	(void)state;
	open_dump(&d);
	jitmake_header(&b, &header);
	jitmake_lines(&b, 0x1000, lines, array_size(lines));
	jitmake_load(&b, 0x1000, 32, "f", 0);
	jitmake_load(&b, 0x1000, 8, "g", 0);
	jitmake_move(&b, 0x1008, 0x2008, 24);
	append(&d, &b);
	assert_int_equal(read_dump(&d), 0);
	check(&d, 0x1000, "g");
	check_line(&d, 0x1008, "a.js", 10);
	check_line(&d, 0x1010, "a.js", 11);
	check_line(&d, 0x2008, "a.js", 10);
	check_line(&d, 0x2010, "a.js", 11);
	close_dump(&d);
	buf_deinit(&b);
}

/* More lines than are looked at, with the longest name. */
static void test_many_lines(void **state)
{
	enum { LINES = 10000 };
	const struct jitmake_header header = jitmake_this();
	struct jitmake_line *lines = calloc(LINES, sizeof(*lines));
	struct buf b = BUF_INIT(4u << 20);
	char name[2 * CODE_TABLE_NAME_MAX];
	struct jitdump_place place;
	struct dump d;

	(void)state;
	assert_non_null(lines);
	for (uint32_t i = 0; i < LINES; i++)
		lines[i] = (struct jitmake_line){0x1000 + i, i + 1, i ? NULL : "a.js"};
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	open_dump(&d);
	jitmake_header(&b, &header);
	jitmake_lines(&b, 0x1000, lines, LINES);
	jitmake_load(&b, 0x1000, LINES, name, 1u << 20);
	jitmake_load(&b, 0x8000, 16, "g", 0);
	append(&d, &b);
	assert_int_equal(read_dump(&d), 0);
	assert_true(jitdump_find(d.j, 0x1100, &place));
	assert_int_equal(strlen(place.function), CODE_TABLE_NAME_MAX);
	assert_int_equal(place.line, 0x101);
	check_line(&d, 0x1000 + LINES - 1, "a.js", 1 + (JITDUMP_RECORD_MAX - 32 - 21) / 18);
	check(&d, 0x8000, "g");
	free(lines);
	close_dump(&d);
	buf_deinit(&b);
}

/* ---------------------------------------------------------------- files */

/* Zeros are not written yet; a length below the head's leads nowhere. */
static void test_lengths(void **state)
{
	const struct jitmake_header header = jitmake_this();
	struct buf b = BUF_INIT(1u << 20);

	(void)state;
	for (uint32_t length = 0; length < 16; length++) {
		struct dump d;
		off_t end;

		open_dump(&d);
		jitmake_header(&b, &header);
		jitmake_load(&b, 0x1000, 16, "f", 0);
		append(&d, &b);
		end = lseek(d.fd, 0, SEEK_CUR);
		jitmake_record(&b, 0, length, b.data, 0);
		append(&d, &b);
		assert_int_equal(read_dump(&d), 0);
		check(&d, 0x1000, "f");
		assert_int_equal(d.events[JITDUMP_BROKEN], length > 0);
		assert_int_equal(ftruncate(d.fd, end), 0);
		jitmake_load(&b, 0x2000, 16, "g", 0);
		append(&d, &b);
		assert_int_equal(read_dump(&d), 0);
		check(&d, 0x2000, length ? NULL : "g");
		assert_int_equal(d.events[JITDUMP_BROKEN], length > 0);
		close_dump(&d);
	}
	buf_deinit(&b);
}

/* 10 GB of code in three records are not read, and take no memory. */
static void test_large_file(void **state)
{
	const struct jitmake_header header = jitmake_this();
	struct buf b = BUF_INIT(1u << 20);
	struct dump d;

	(void)state;
	open_dump(&d);
	jitmake_header(&b, &header);
	append(&d, &b);
	for (uint64_t i = 1; i <= 3; i++) {
		const uint32_t length = 0xd0000000;
		off_t at = lseek(d.fd, 0, SEEK_END);

		jitmake_load(&b, i * 0x1000, 16, "f", 0);
		memcpy(b.data + 4, &length, sizeof(length));
		append(&d, &b);
		assert_int_equal(ftruncate(d.fd, at + length), 0);
	}
	assert_int_equal(read_dump(&d), 0);
	for (uint64_t i = 1; i <= 3; i++)
		check(&d, i * 0x1000, "f");
	assert_int_equal(d.events[JITDUMP_CUT], 0);
	assert_true(jitdump_bytes(d.j) < 4096);
	close_dump(&d);
	buf_deinit(&b);
}

/* Records without code up to the ceiling of one read, and the rest with the next. */
static void test_cut(void **state)
{
	const struct jitmake_header header = jitmake_this();
	struct buf b = BUF_INIT(2 * JITDUMP_READ_MAX);
	struct dump d;

	(void)state;
	open_dump(&d);
	jitmake_header(&b, &header);
	while (b.len < JITDUMP_READ_MAX)
		jitmake_load(&b, 0x1000, 16, "f", 1000);
	jitmake_load(&b, 0x2000, 16, "last", 0);
	append(&d, &b);
	assert_int_equal(read_dump(&d), 0);
	assert_int_equal(d.events[JITDUMP_CUT], 1);
	check(&d, 0x1000, "f");
	check(&d, 0x2000, NULL);
	assert_int_equal(read_dump(&d), 0);
	assert_int_equal(d.events[JITDUMP_CUT], 1);
	check(&d, 0x2000, "last");
	close_dump(&d);
	buf_deinit(&b);
}

/* A function beyond the ceiling. */
static void test_full(void **state)
{
	const struct jitmake_header header = jitmake_this();
	struct buf b = BUF_INIT(64u << 20);
	struct dump d;

	(void)state;
	open_dump(&d);
	jitmake_header(&b, &header);
	for (uint64_t i = 0; i <= CODE_TABLE_RANGES_MAX; i++)
		jitmake_load(&b, (i + 1) * 16, 16, "f", 0);
	append(&d, &b);
	assert_int_equal(read_dump(&d), 0);
	assert_int_equal(d.events[JITDUMP_FULL], 1);
	check(&d, 16, "f");
	check(&d, (CODE_TABLE_RANGES_MAX + 1) * 16, NULL);
	close_dump(&d);

	buf_deinit(&b);
}

/* Each place of a function that moves and moves has the name; sorting has a ceiling. */
static void test_moves(void **state)
{
	enum { MOVES = 100 * JITDUMP_RECENT_MAX };
	const struct jitmake_header header = jitmake_this();
	struct buf b = BUF_INIT(64u << 20);
	struct dump d;

	(void)state;
	open_dump(&d);
	jitmake_header(&b, &header);
	jitmake_load(&b, 16, 16, "f", 0);
	for (uint64_t i = 1; i < MOVES; i++)
		jitmake_move(&b, i * 16, (i + 1) * 16, 16);
	append(&d, &b);
	do
		assert_int_equal(read_dump(&d), 0);
	while (jitdump_n(d.j) < MOVES);
	check(&d, MOVES * 16ull, "f");
	check(&d, 16, "f");
	assert_true(d.events[JITDUMP_CUT] > 0);
	assert_int_equal(d.events[JITDUMP_CUT] + 1, d.events[JITDUMP_READ]);
	close_dump(&d);
	buf_deinit(&b);
}

/* ---------------------------------------------------------------- memory */

static int read_once(void *ctx)
{
	struct dump d = {.fd = ((struct dump *)ctx)->fd};
	int r = jitdump_new(d.events, &d.j);

	if (!r)
		r = read_dump(&d);
	if (!r)
		check(&d, 0x2000, "f");
	if (!r)
		check_line(&d, 0x2000, "a.js", 10);
	jitdump_free(d.j);
	return r;
}

static void test_allocation_failures(void **state)
{
	const struct jitmake_line line = {0x1000, 10, "a.js"};
	const struct jitmake_header header = jitmake_this();
	struct buf b = BUF_INIT(1u << 20);
	struct dump d;

	(void)state;
	open_dump(&d);
	jitmake_header(&b, &header);
	jitmake_lines(&b, 0x1000, &line, 1);
	jitmake_load(&b, 0x1000, 16, "f", 0);
	jitmake_move(&b, 0x1000, 0x2000, 16);
	append(&d, &b);
	allocfail_each(read_once, &d);
	close_dump(&d);
	buf_deinit(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_headers),
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_lines_elsewhere),
		cmocka_unit_test(test_many_lines),
		cmocka_unit_test(test_lengths),
		cmocka_unit_test(test_large_file),
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_full),
		cmocka_unit_test(test_moves),
		cmocka_unit_test(test_allocation_failures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
