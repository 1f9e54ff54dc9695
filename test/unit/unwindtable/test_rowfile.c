// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/line_reader.h"
#include "base/root.h"
#include "support/allocfail.h"
#include "support/ehimage.h"
#include "support/tree.h"
#include "unwindtable/compile.h"
#include "unwind/rowtext.h"

DEFINE_CLEANUP(struct elffile *, elffile_freep, elffile_free);
DEFINE_CLEANUP(struct rows *, rows_freep, rows_free);

#define TEXT	 0x1000
#define TEXT_END 0x9000
#define LEAF	 "cfa=rsp+8 fp=same ra=cfa-8"
#define PUSHED	 "cfa=rsp+16 fp=cfa-16 ra=cfa-8"

/* ---------------------------------------------------------------- lines */

struct file_row {
	const char *name;
	const char *text;
	const char *rows; /* "VADDR RULE;" each */
	uint64_t n_rows;
	uint64_t n_bad;
	uint64_t bad_line; /* the first one's */
	enum rowfile_line why;
};

static const struct file_row file_rows[] = {
	{"empty", "", "", 0, 0, 0, 0},
	{"a row", "1040 1051 " LEAF "\n", "1040 " LEAF ";1051 gap;", 1, 0, 0, 0},
	{"no newline, carriage return, blanks, 0x", " \t0x1040  0X1051\t" LEAF " \r",
	 "1040 " LEAF ";1051 gap;", 1, 0, 0, 0},
	{"comments and empty lines", "# 1\n\n  # 1000 1001 stop\n1040 1051 stop # why\n",
	 "1040 stop;1051 gap;", 1, 0, 0, 0},
	{"one follows the other", "1040 1041 " LEAF "\n1041 1051 " PUSHED "\n",
	 "1040 " LEAF ";1041 " PUSHED ";1051 gap;", 2, 0, 0, 0},
	{"backwards", "1041 1051 " PUSHED "\n1040 1041 " LEAF "\n",
	 "1040 " LEAF ";1041 " PUSHED ";1051 gap;", 2, 0, 0, 0},
	{"the later one holds", "1040 1080 " LEAF "\n1050 1060 stop\n",
	 "1040 " LEAF ";1050 stop;1060 " LEAF ";1080 gap;", 2, 0, 0, 0},
	{"a gap", "1040 1080 " LEAF "\n1050 1060 gap\n",
	 "1040 " LEAF ";1050 gap;1060 " LEAF ";1080 gap;", 2, 0, 0, 0},
	{"each word",
	 "1000 1001 frame\n1001 1002 signal\n1002 1003 stop\n"
	 "1003 1004 unsupported=cfa_register\n",
	 "1000 frame;1001 signal;1002 stop;1003 unsupported=cfa_register;1004 gap;", 4, 0, 0, 0},
	{"all of the code", "1000 9000 frame\n", "1000 frame;9000 gap;", 1, 0, 0, 0},
	{"one byte more", "1000 9001 frame\n", "", 0, 1, 1, ROWFILE_OUTSIDE},
	{"one byte before", "\nfff 1001 frame\n", "", 0, 1, 2, ROWFILE_OUTSIDE},
	{"empty range", "1040 1040 frame\n", "", 0, 1, 1, ROWFILE_EMPTY},
	{"end before start", "1041 1040 frame\n", "", 0, 1, 1, ROWFILE_EMPTY},
	{"the largest range", "0 ffffffffffffffff frame\n", "", 0, 1, 1, ROWFILE_OUTSIDE},
	{"one address", "1040 frame\n", "", 0, 1, 1, ROWFILE_ADDRESSES},
	{"only addresses", "1040 1041\n", "", 0, 1, 1, ROWFILE_RULE},
	{"an address of 65 bits", "10400000000000000 1041 frame", "", 0, 1, 1, ROWFILE_ADDRESSES},
	{"not hexadecimal", "1040 104g frame", "", 0, 1, 1, ROWFILE_ADDRESSES},
	{"0x alone", "0x 1041 frame", "", 0, 1, 1, ROWFILE_ADDRESSES},
	{"words", "build-id abc", "", 0, 1, 1, ROWFILE_ADDRESSES},
	{"other machine", "1040 1041 cfa=sp+8 fp=same ra=x30", "", 0, 1, 1, ROWFILE_RULE},
	{"no rule", "1040 1041 rsp+8", "", 0, 1, 1, ROWFILE_RULE},
	{"no fp", "1040 1041 cfa=rsp+8 ra=cfa-8", "", 0, 1, 1, ROWFILE_FP},
	{"no ra", "1040 1041 cfa=rsp+8 fp=same", "", 0, 1, 1, ROWFILE_RA},
	{"more", "1040 1041 " LEAF " rbx=cfa-16", "", 0, 1, 1, ROWFILE_REST},
	{"the good ones are used", "x\n1040 1041 " LEAF "\ny\n1041 1042 stop\n1042 1043\n",
	 "1040 " LEAF ";1041 stop;1042 gap;", 2, 3, 1, ROWFILE_ADDRESSES},
};

static int file_of(const char *text, size_t n)
{
	int fd = memfd_create("rows", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, n), n);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	return fd;
}

static void read_text(const char *text, size_t n, struct rows *rows, struct rowfile_report *ret)
{
	int fd = file_of(text, n);

	*ret = (struct rowfile_report){0};
	assert_int_equal(rowfile_read(fd, CFI_X86_64, rows, ret), 0);
	assert_int_equal(ret->opened, 0);
	close(fd);
}

static void print_rows(const struct rows *rows, char *ret, size_t size)
{
	size_t n = 0;

	ret[0] = '\0';
	for (size_t i = 0; i < rows_count(rows); i++) {
		struct row row = rows_at(rows, i);
		char text[ROWTEXT_MAX];

		n += (size_t)snprintf(ret + n, size - n, "%llx %s;", (unsigned long long)row.vaddr,
				      rowtext_print(CFI_X86_64, rows_rule(rows, row.rule), text));
		assert_true(n < size);
	}
}

static void test_lines(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(file_rows); i++) {
		const struct file_row *row = &file_rows[i];
		_cleanup_(rows_freep) struct rows *rows = NULL;
		struct rowfile_report report;
		char text[1024];

		row_begin(row->name);
		assert_int_equal(rows_new(TEXT, TEXT_END, &rows), 0);
		read_text(row->text, strlen(row->text), rows, &report);
		assert_int_equal(rows_finish(rows), 0);
		print_rows(rows, text, sizeof(text));
		assert_string_equal(text, row->rows);
		assert_int_equal(report.n_rows, row->n_rows);
		assert_int_equal(report.n_bad, row->n_bad);
		assert_int_equal(report.bad[0].line, row->bad_line);
		assert_int_equal(report.bad[0].why, row->why);
	}
}

/* The first ones are told, all are counted. */
static void test_many_bad(void **state)
{
	_cleanup_(rows_freep) struct rows *rows = NULL;
	struct rowfile_report report;
	char text[3 * (ROWFILE_BAD_MAX + 5) + 1] = "";

	(void)state;
	for (size_t i = 0; i < ROWFILE_BAD_MAX + 5; i++)
		strcat(text, "x\n\n");
	assert_int_equal(rows_new(TEXT, TEXT_END, &rows), 0);
	read_text(text, strlen(text), rows, &report);
	assert_int_equal(report.n_bad, ROWFILE_BAD_MAX + 5);
	for (size_t i = 0; i < ROWFILE_BAD_MAX; i++)
		assert_int_equal(report.bad[i].line, 2 * i + 1);
}

/* Lines keep their numbers where one is too long. */
static void test_long(void **state)
{
	static char text[3 * LINE_READER_MAX + 100];
	_cleanup_(rows_freep) struct rows *rows = NULL;
	struct rowfile_report report;
	size_t n = (size_t)sprintf(text, "1040 1041 stop\n");

	(void)state;
	for (int i = 0; i < 2; i++) {
		memset(text + n, ' ', LINE_READER_MAX);
		n += LINE_READER_MAX;
		text[n++] = '\n';
	}
	n += (size_t)sprintf(text + n, "bad\n");
	memset(text + n, ' ', LINE_READER_MAX);
	n += LINE_READER_MAX;
	assert_int_equal(rows_new(TEXT, TEXT_END, &rows), 0);
	read_text(text, n, rows, &report);
	assert_int_equal(report.n_rows, 1);
	assert_int_equal(report.n_bad, 4);
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(report.bad[i].line, i + 2);
		assert_int_equal(report.bad[i].why, i == 2 ? ROWFILE_ADDRESSES : ROWFILE_LONG);
	}
}

/* The rows that there is room for are used. */
static void test_full(void **state)
{
	static const struct unwind_rule rules[2] = {{.cfa = UNWIND_CFA_STOP},
						    {.cfa = UNWIND_CFA_FP}};
	_cleanup_(rows_freep) struct rows *rows = NULL;
	struct rowfile_report report;
	char text[20 * 32] = "";
	size_t n = 0;

	(void)state;
	for (int i = 0; i < 20; i++)
		n += (size_t)sprintf(text + n, "%x %x %s\n", 0x1000 + i, 0x1001 + i,
				     i % 2 ? "stop" : "frame");
	assert_int_equal(rows_new(TEXT, (uint64_t)2 * ROWS_MAX, &rows), 0);
	assert_int_equal(rows_begin(rows, ROWS_EH_FRAME, TEXT, (uint64_t)2 * ROWS_MAX), 0);
	for (uint64_t i = 0; i + 8 < ROWS_MAX; i++)
		assert_int_equal(rows_add(rows, TEXT + i, &rules[i % 2]), 0);
	assert_int_equal(rows_end(rows), 0);
	read_text(text, n, rows, &report);
	assert_true(report.n_rows < 8);
	assert_int_equal(report.n_bad, 1);
	assert_int_equal(report.bad[0].line, report.n_rows + 1);
	assert_int_equal(report.bad[0].why, ROWFILE_FULL);
}

/* ---------------------------------------------------------------- files */

#define BUILD_ID      "\x01\xab\xff"
#define BUILD_ID_TEXT "01abff"

static void image_with(const char *build_id, void **ret_bytes, struct elffile **ret)
{
	struct ehimage image = {.build_id = build_id};
	size_t n;

	*ret_bytes = ehimage_build(&image, &n);
	assert_non_null(*ret_bytes);
	assert_int_equal(elffile_open_memory(*ret_bytes, n, ret), 0);
}

static void add(const char *dir, const char *build_id, struct rowfile_report *ret)
{
	_cleanup_(elffile_freep) struct elffile *file = NULL;
	_cleanup_(rows_freep) struct rows *rows = NULL;
	_cleanup_(freep) void *bytes = NULL;
	struct compile_opts opts = {.rows_dir = dir, .rowfile = ret};
	struct ehframe_stats stats;

	image_with(build_id, &bytes, &file);
	assert_int_equal(compile_image(file, &opts, &stats, &rows), 0);
	assert_int_equal(rows_count(rows), ret->n_rows ? 2 : 0);
}

static void test_by_name(void **state)
{
	struct rowfile_report report;
	struct rowfile_id none = {0}, id;
	struct tree tree;

	(void)state;
	tree_init(&tree);
	add(tree.path, BUILD_ID, &report);
	assert_false(rowfile_exists(&report));
	assert_true(rowfile_good(&report));
	tree_write(tree.fd, BUILD_ID_TEXT ".rows", "10000 10010 stop\nx\n");
	add(tree.path, BUILD_ID, &report);
	assert_true(rowfile_exists(&report));
	assert_false(rowfile_good(&report));
	assert_int_equal(report.n_rows, 1);
	assert_int_equal(report.n_bad, 1);
	id = rowfile_find(tree.path, BUILD_ID_TEXT);
	assert_true(rowfile_id_equal(&id, &report.id));
	/* of another, of none, in another folder, in none */
	add(tree.path, "\x01\xab\xfe", &report);
	assert_false(rowfile_exists(&report));
	add(tree.path, NULL, &report);
	assert_false(rowfile_exists(&report));
	add("/does/not/exist", BUILD_ID, &report);
	assert_false(rowfile_exists(&report));
	add(NULL, BUILD_ID, &report);
	assert_false(rowfile_exists(&report));
	/* an image without build id has no file, whatever there is */
	tree_write(tree.fd, ".rows", "10000 10010 stop\n");
	add(tree.path, NULL, &report);
	assert_false(rowfile_exists(&report));
	id = rowfile_find(tree.path, "");
	assert_true(rowfile_id_equal(&id, &none));
	tree_deinit(&tree);
}

static void test_changed(void **state)
{
	struct rowfile_id none = {0}, first, second;
	struct tree tree;

	(void)state;
	tree_init(&tree);
	first = rowfile_find(tree.path, BUILD_ID_TEXT);
	assert_true(rowfile_id_equal(&first, &none));
	tree_write(tree.fd, BUILD_ID_TEXT ".rows", "10000 10010 stop\n");
	first = rowfile_find(tree.path, BUILD_ID_TEXT);
	assert_false(rowfile_id_equal(&first, &none));
	second = rowfile_find(tree.path, BUILD_ID_TEXT);
	assert_true(rowfile_id_equal(&first, &second));
	tree_write(tree.fd, BUILD_ID_TEXT ".rows", "10000 10010 stop # 2\n");
	second = rowfile_find(tree.path, BUILD_ID_TEXT);
	assert_false(rowfile_id_equal(&first, &second));
	tree_deinit(&tree);
}

static void test_not_read(void **state)
{
	struct rowfile_report report;
	char path[TREE_PATH_MAX];
	struct tree tree;

	(void)state;
	tree_init(&tree);
	tree_mkdir(tree.fd, BUILD_ID_TEXT ".rows");
	add(tree.path, BUILD_ID, &report);
	assert_int_equal(report.opened, ROOT_NOT_FILE);
	assert_true(rowfile_exists(&report));
	assert_string_equal(rowfile_opened_text(report.opened), "not a file");
	tree_rmdir(tree.fd, BUILD_ID_TEXT ".rows");
	tree_write(tree.fd, BUILD_ID_TEXT ".rows", "10000 10010 stop\n");
	snprintf(path, sizeof(path), "%s/" BUILD_ID_TEXT ".rows", tree.path);
	assert_int_equal(truncate(path, (off_t)ROWFILE_BYTES_MAX + 1), 0);
	add(tree.path, BUILD_ID, &report);
	assert_int_equal(report.opened, ROOT_TOO_LARGE);
	assert_int_equal(report.n_rows, 0);
	tree_deinit(&tree);
}

/* The user's rows hold, whatever the file says; behind them, the file's. */
static void test_before_all(void **state)
{
	_cleanup_(rows_freep) struct rows *rows = NULL;
	struct unwind_rule leaf;
	struct rowfile_report report;
	char text[1024];

	(void)state;
	assert_true(rowtext_parse(CFI_X86_64, strview_of(LEAF), &leaf));
	assert_int_equal(rows_new(TEXT, TEXT_END, &rows), 0);
	read_text("1010 1020 stop\n1030 1040 gap\n", 29, rows, &report);
	for (int source = 0; source < ROWS_USER; source++) {
		assert_int_equal(rows_begin(rows, (enum rows_source)source, TEXT, TEXT + 0x100), 0);
		assert_int_equal(rows_add(rows, TEXT, &leaf), 0);
		assert_int_equal(rows_end(rows), 0);
	}
	assert_int_equal(rows_finish(rows), 0);
	print_rows(rows, text, sizeof(text));
	assert_string_equal(text, "1000 " LEAF ";1010 stop;1020 " LEAF ";1030 gap;1040 " LEAF
				  ";1100 gap;");
}

static int read_once(void *ctx)
{
	static const char text[] = "1040 1041 stop\nx\n1050 1051 frame\n";
	_cleanup_(rows_freep) struct rows *rows = NULL;
	struct rowfile_report report = {0};
	int fd = file_of(text, sizeof(text) - 1), r;

	(void)ctx;
	r = rows_new(TEXT, TEXT_END, &rows);
	if (!r)
		r = rowfile_read(fd, CFI_X86_64, rows, &report);
	close(fd);
	return r;
}

static void test_no_memory(void **state)
{
	(void)state;
	assert_true(allocfail_each(read_once, NULL) >= 3);
}

static void test_texts(void **state)
{
	(void)state;
	for (int i = 0; i < ROWFILE_LINE_MAX; i++)
		assert_string_not_equal(rowfile_line_text((enum rowfile_line)i), "unknown");
	assert_string_equal(rowfile_line_text(ROWFILE_LINE_MAX), "unknown");
	assert_string_equal(rowfile_opened_text(ROOT_DENIED), "not permitted");
	assert_string_equal(rowfile_opened_text(ROOT_TOO_LARGE), "too large");
	assert_string_equal(rowfile_opened_text(-EIO), strerror(EIO));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),	  cmocka_unit_test(test_many_bad),
		cmocka_unit_test(test_long),	  cmocka_unit_test(test_full),
		cmocka_unit_test(test_by_name),	  cmocka_unit_test(test_changed),
		cmocka_unit_test(test_not_read),  cmocka_unit_test(test_before_all),
		cmocka_unit_test(test_no_memory), cmocka_unit_test(test_texts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
