// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "support/allocfail.h"
#include "unwindtable/tablefile.h"

DEFINE_CLEANUP(struct rows *, rows_freep, rows_free);
DEFINE_CLEANUP(struct table *, table_freep, table_free);

#define TEXT 0x1000

static const struct digest_key secret = {{11, 22, 33, 44}};
static const struct tablefile_id id = {.contents = 0x1234, .maker = 0x5678};

/* Prologues, which are rule runs, and @n_rules rules between them: long ids if they are many. */
static struct table *table_of(uint32_t n, uint32_t n_rules)
{
	_cleanup_(rows_freep) struct rows *rows = NULL;
	struct table *table = NULL;
	uint64_t end = TEXT + 32 * (uint64_t)n;

	assert_int_equal(rows_new(TEXT, end, &rows), 0);
	assert_int_equal(rows_begin(rows, ROWS_EH_FRAME, TEXT, end), 0);
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t k = 0; k < 4; k++) {
			struct unwind_rule rule = {.cfa = UNWIND_CFA_REG,
						   .cfa_reg = UNWIND_X86_SP,
						   .cfa_off = (int32_t)(8 + 8 * k),
						   .ra_off = -8};

			if (k == 3)
				rule.cfa_off = (int32_t)(1000 + i % n_rules);
			assert_int_equal(rows_add(rows, TEXT + 32 * (uint64_t)i + 2 * k, &rule), 0);
		}
	assert_int_equal(rows_end(rows), 0);
	assert_int_equal(rows_finish(rows), 0);
	assert_int_equal(table_pack(rows, &table), 0);
	return table;
}

static void write_file(const struct table *table, struct buf *ret)
{
	assert_int_equal(tablefile_write(table, &id, &secret, ret), 0);
}

static void sign(struct buf *file)
{
	uint64_t digest;
	struct digest d;

	digest_init(&d, &secret);
	digest_add(&d, file->data, file->len - sizeof(digest));
	digest = digest_end(&d);
	memcpy(file->data + file->len - sizeof(digest), &digest, sizeof(digest));
}

/* A table that comes back is thrown away. */
static int read_file(const struct buf *file)
{
	_cleanup_(table_freep) struct table *table = NULL;

	return tablefile_read(file->data, file->len, &id, &secret, &table);
}

static void assert_same(const struct table *a, const struct table *b)
{
	assert_memory_equal(&a->exe, &b->exe, sizeof(a->exe));
	assert_int_equal(a->n_bytes, b->n_bytes);
	assert_memory_equal(a->table_image, b->table_image, a->n_bytes);
	assert_int_equal(a->n_ids, b->n_ids);
	assert_int_equal(a->n_rules, b->n_rules);
	assert_memory_equal(a->rules, b->rules, a->n_rules * sizeof(*a->rules));
	assert_int_equal(a->n_rule_runs, b->n_rule_runs);
	assert_memory_equal(a->rule_runs, b->rule_runs, a->n_rule_runs * sizeof(*a->rule_runs));
	assert_int_equal(a->n_rows, b->n_rows);
	assert_int_equal(a->n_cut, b->n_cut);
}

static void test_there_and_back(void **state)
{
	static const struct {
		const char *name;
		uint32_t n, n_rules;
	} rows[] = {
		{"one function", 1, 1},
		{"rule runs", 60, 3},
		{"long ids", 5000, 900},
		{"pages", 20000, 30},
	};

	for (size_t i = 0; i < array_size(rows); i++) {
		_cleanup_(buf_deinit) struct buf file = BUF_INIT(TABLEFILE_BYTES_MAX);
		_cleanup_(table_freep) struct table *table = NULL, *back = NULL;

		row_begin(rows[i].name);
		table = table_of(rows[i].n, rows[i].n_rules);
		write_file(table, &file);
		assert_int_equal(tablefile_read(file.data, file.len, &id, &secret, &back), 0);
		assert_same(table, back);
	}
}

/* Every kind of rule that there is. */
static void test_all_rules(void **state)
{
	_cleanup_(buf_deinit) struct buf file = BUF_INIT(TABLEFILE_BYTES_MAX);
	_cleanup_(table_freep) struct table *table = NULL, *back = NULL;
	_cleanup_(rows_freep) struct rows *rows = NULL;
	uint64_t vaddr = TEXT;

	assert_int_equal(rows_new(TEXT, TEXT + 0x1000, &rows), 0);
	assert_int_equal(rows_begin(rows, ROWS_EH_FRAME, TEXT, TEXT + 0x1000), 0);
	for (int cfa = 1; cfa < UNWIND_CFA_MAX; cfa++)
		for (int fp = 0; fp < UNWIND_FP_MAX; fp++)
			for (int ra = 0; ra < UNWIND_RA_MAX; ra++, vaddr += 3) {
				struct unwind_rule rule = {
					.cfa = (uint8_t)cfa,
					.fp = (uint8_t)fp,
					.ra = (uint8_t)ra,
				};

				assert_int_equal(rows_add(rows, vaddr, &rule), 0);
			}
	assert_int_equal(rows_end(rows), 0);
	assert_int_equal(rows_finish(rows), 0);
	assert_int_equal(table_pack(rows, &table), 0);
	write_file(table, &file);
	assert_int_equal(tablefile_read(file.data, file.len, &id, &secret, &back), 0);
	assert_same(table, back);
}

/* Whatever happens to a file. */
static void test_damaged(void **state)
{
	_cleanup_(buf_deinit) struct buf file = BUF_INIT(TABLEFILE_BYTES_MAX);
	_cleanup_(table_freep) struct table *table = table_of(60, 3), *back = NULL;
	struct digest_key other = secret;
	size_t whole;

	write_file(table, &file);
	whole = file.len;
	for (size_t i = 0; i < whole; i++) {
		file.data[i] ^= 0x10;
		assert_int_equal(read_file(&file), TABLEFILE_DAMAGED);
		file.data[i] ^= 0x10;
		file.len = i;
		assert_int_equal(read_file(&file), TABLEFILE_DAMAGED);
		file.len = whole;
	}
	assert_int_equal(buf_puts(&file, "more"), 0);
	assert_int_equal(read_file(&file), TABLEFILE_DAMAGED);
	other.words[1]++;
	assert_int_equal(tablefile_read(file.data, whole, &id, &other, &back), TABLEFILE_DAMAGED);
	assert_int_equal(tablefile_read(file.data, whole, &id, &secret, &back), 0);
}

static void test_foreign(void **state)
{
	static const struct tablefile_id ids[] = {{0x1234, 0x5679}, {0x1235, 0x5678}};
	_cleanup_(buf_deinit) struct buf file = BUF_INIT(TABLEFILE_BYTES_MAX);
	_cleanup_(table_freep) struct table *table = table_of(60, 3), *back = NULL;

	write_file(table, &file);
	for (size_t i = 0; i < array_size(ids); i++)
		assert_int_equal(tablefile_read(file.data, file.len, &ids[i], &secret, &back),
				 TABLEFILE_FOREIGN);
	file.data[8]++; /* the form */
	sign(&file);
	assert_int_equal(read_file(&file), TABLEFILE_FOREIGN);
	file.data[0]++; /* the magic */
	sign(&file);
	assert_int_equal(read_file(&file), TABLEFILE_DAMAGED);
}

/* Files that say they are whole: every byte of the head, the rules and the rule runs made the
 * largest, and every second one of the ids and groups. What is taken never leads outside itself. */
static void test_lies(void **state)
{
	_cleanup_(buf_deinit) struct buf file = BUF_INIT(TABLEFILE_BYTES_MAX);
	_cleanup_(table_freep) struct table *table = table_of(60, 3);
	size_t refused = 0;

	write_file(table, &file);
	for (size_t i = 0; i + sizeof(uint64_t) < file.len; i++) {
		_cleanup_(table_freep) struct table *back = NULL;
		char was = file.data[i];
		int r;

		file.data[i] = (char)0xff;
		sign(&file);
		r = tablefile_read(file.data, file.len, &id, &secret, &back);
		refused += r != 0;
		for (uint64_t at = 0; !r && at < 4096; at++) {
			struct unwind_rule rule;

			assert_int_not_equal(table_lookup(back, TEXT + at, &rule), TABLE_TORN);
		}
		file.data[i] = was;
	}
	assert_true(refused > 200);
}

static int read_once(void *ctx)
{
	return read_file(ctx);
}

static int write_once(void *ctx)
{
	_cleanup_(buf_deinit) struct buf file = BUF_INIT(TABLEFILE_BYTES_MAX);

	return tablefile_write(ctx, &id, &secret, &file);
}

static void test_no_memory(void **state)
{
	_cleanup_(buf_deinit) struct buf file = BUF_INIT(TABLEFILE_BYTES_MAX),
					 small = BUF_INIT(400);
	_cleanup_(table_freep) struct table *table = table_of(60, 3);

	write_file(table, &file);
	allocfail_each(read_once, &file);
	allocfail_each(write_once, table);
	assert_int_equal(tablefile_write(table, &id, &secret, &small), BUF_FULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_there_and_back), cmocka_unit_test(test_all_rules),
		cmocka_unit_test(test_damaged),	       cmocka_unit_test(test_foreign),
		cmocka_unit_test(test_lies),	       cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
