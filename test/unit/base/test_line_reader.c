// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <string.h>
#include <sys/mman.h>

#include "base/buf.h"
#include "base/line_reader.h"

struct row {
	const char *name;
	const char *head;
	size_t n_filler; /* this many 'f' between the two */
	const char *tail;
	const char *want; /* the lines, each with ';' at the end, fillers as one '*' */
	size_t n_skipped;
	int stop_after; /* lines; 0: never */
};

static const struct row rows[] = {
	{"empty", "", 0, "", "", 0, 0},
	{"one, unended", "a", 0, "", "a;", 0, 0},
	{"two", "a\nb\n", 0, "", "a;b;", 0, 0},
	{"empty lines", "\n\na", 0, "", ";;a;", 0, 0},
	{"stop", "a\nb\nc\n", 0, "", "a;b;", 0, 2},
	{"longest", "a\n", LINE_READER_MAX - 1, "\nb\n", "a;*;b;", 0, 0},
	{"one longer", "a\n", LINE_READER_MAX, "\nb\n", "a;b;", 1, 0},
	{"much longer", "a\n", 5 * LINE_READER_MAX + 7, "\nb\nc", "a;b;c;", 1, 0},
	{"too long, unended", "a\n", 2 * LINE_READER_MAX, "", "a;", 1, 0},
	{"across the window", "a\n", LINE_READER_MAX - 4, "\nbcdef\ng\n", "a;*;bcdef;g;", 0, 0},
};

struct seen {
	struct buf text;
	int n;
	int stop_after;
};

static int see(void *ctx, struct strview line)
{
	struct seen *seen = ctx;

	if (strview_starts(&line, "ff"))
		line = strview_of("*");
	assert_int_equal(buf_append(&seen->text, line.p, strview_len(&line)), 0);
	assert_int_equal(buf_puts(&seen->text, ";"), 0);
	return ++seen->n == seen->stop_after ? 42 : 0;
}

static int make_file(const struct row *row)
{
	int fd = memfd_create("lines", MFD_CLOEXEC);
	FILE *f = fdopen(dup(fd), "w");

	assert_non_null(f);
	fputs(row->head, f);
	for (size_t i = 0; i < row->n_filler; i++)
		fputc('f', f);
	fputs(row->tail, f);
	fclose(f);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	return fd;
}

static void test_rows(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		struct seen seen = {.text = BUF_INIT(4096), .stop_after = rows[i].stop_after};
		int fd = make_file(&rows[i]);
		size_t n_skipped = 42;

		row_begin(rows[i].name);
		assert_int_equal(line_reader_read(fd, see, &seen, &n_skipped),
				 rows[i].stop_after ? 42 : 0);
		assert_string_equal(seen.text.data ? seen.text.data : "", rows[i].want);
		assert_int_equal(n_skipped, rows[i].n_skipped);
		close(fd);
		buf_deinit(&seen.text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
