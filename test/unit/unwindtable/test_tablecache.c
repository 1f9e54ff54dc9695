// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "support/allocfail.h"
#include "support/ehimage.h"
#include "support/tree.h"
#include "unwindtable/contents.h"
#include "unwindtable/tablecache.h"

DEFINE_CLEANUP(struct rows *, rows_freep, rows_free);
DEFINE_CLEANUP(struct table *, table_freep, table_free);
DEFINE_CLEANUP(struct tablecache *, tablecache_freep, tablecache_free);

#define MANY (1u << 20)

struct bench {
	struct tree tree;
	char dir[128];
	struct tablecache *cache;
	void *bytes;
	size_t n_bytes;
	struct elffile *image;
	uint8_t text[256];
};

/* Images differ by a byte of their code. */
static void be_image(struct bench *b, uint8_t number)
{
	struct ehimage image = {.text = b->text, .n_text = sizeof(b->text)};

	elffile_free(b->image);
	free(b->bytes);
	b->text[0] = number;
	b->bytes = ehimage_build(&image, &b->n_bytes);
	assert_non_null(b->bytes);
	assert_int_equal(elffile_open_memory(b->bytes, b->n_bytes, &b->image), 0);
}

static int open_as(struct bench *b, uint64_t max_bytes, const char *maker)
{
	const struct tablecache_opts opts = {b->dir, max_bytes, maker};

	tablecache_free(b->cache);
	b->cache = NULL;
	return tablecache_open(&opts, &b->cache);
}

static int setup(void **state)
{
	struct bench *b = calloc(1, sizeof(*b));

	assert_non_null(b);
	tree_init(&b->tree);
	snprintf(b->dir, sizeof(b->dir), "%s/a/cache", b->tree.path);
	be_image(b, 0);
	*state = b;
	return open_as(b, MANY, "me");
}

static int teardown(void **state)
{
	struct bench *b = *state;

	tablecache_free(b->cache);
	elffile_free(b->image);
	free(b->bytes);
	tree_deinit(&b->tree);
	free(b);
	return 0;
}

/* @n rows of functions that are all different. */
static struct table *table_of(uint32_t n)
{
	_cleanup_(rows_freep) struct rows *rows = NULL;
	struct table *table = NULL;

	assert_int_equal(rows_new(0x1000, 0x1000 + 16ull * n, &rows), 0);
	assert_int_equal(rows_begin(rows, ROWS_EH_FRAME, 0x1000, 0x1000 + 16ull * n), 0);
	for (uint32_t i = 0; i < n; i++) {
		struct unwind_rule rule = {.cfa = UNWIND_CFA_REG,
					   .cfa_reg = 7,
					   .cfa_off = (int32_t)(i % 97 * 8),
					   .ra_off = -8};

		assert_int_equal(rows_add(rows, 0x1000 + 16ull * i, &rule), 0);
	}
	assert_int_equal(rows_end(rows), 0);
	assert_int_equal(rows_finish(rows), 0);
	assert_int_equal(table_pack(rows, &table), 0);
	return table;
}

static int get(struct bench *b, struct tablecache_key *key)
{
	_cleanup_(table_freep) struct table *table = NULL;

	return tablecache_get(b->cache, b->image, key, &table);
}

/* What the worker does. */
static int get_or_put(struct bench *b, uint32_t n)
{
	_cleanup_(table_freep) struct table *table = table_of(n);
	struct tablecache_key key;
	int r = get(b, &key);

	return r > 0 ? tablecache_put(b->cache, b->image, &key, table) : r;
}

static struct tablecache_stats stats(const struct bench *b)
{
	return tablecache_stats(b->cache);
}

/* The path of the table of the image that it is. */
static const char *path_of(struct bench *b, char ret[256])
{
	struct tablecache_key key;

	assert_true(get(b, &key) >= 0);
	snprintf(ret, 256, "%s/%s", b->dir, key.name);
	return ret;
}

/* ---------------------------------------------------------------- as it should be */

static void test_there_and_back(void **state)
{
	_cleanup_(table_freep) struct table *table = table_of(500), *back = NULL;
	struct bench *b = *state;
	struct tablecache_key key;
	struct stat st;
	char path[256];

	assert_int_equal(tablecache_get(b->cache, b->image, &key, &back), TABLECACHE_MISS);
	assert_int_equal(tablecache_put(b->cache, b->image, &key, table), 0);
	assert_int_equal(tablecache_get(b->cache, b->image, &key, &back), 0);
	assert_int_equal(back->n_bytes, table->n_bytes);
	assert_memory_equal(back->table_image, table->table_image, table->n_bytes);
	assert_int_equal(stat(path_of(b, path), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(stat(b->dir, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(stats(b).n_files, 1);
	assert_int_equal(stats(b).reads[TABLECACHE_MISS], 1);
	assert_int_equal(stats(b).writes[TABLECACHE_OK], 1);
}

/* The next start finds it, another program does not, and puts its own in its place. */
static void test_next_start(void **state)
{
	struct bench *b = *state;
	struct tablecache_key key;

	assert_int_equal(get_or_put(b, 500), 0);
	assert_int_equal(open_as(b, MANY, "me"), 0);
	assert_int_equal(stats(b).n_files, 1);
	assert_int_equal(get(b, &key), 0);
	assert_int_equal(open_as(b, MANY, "somebody"), 0);
	assert_int_equal(get(b, &key), TABLECACHE_FOREIGN);
	assert_int_equal(get(b, &key), TABLECACHE_MISS);
	assert_int_equal(get_or_put(b, 500), 0);
	assert_int_equal(get(b, &key), 0);
	assert_int_equal(stats(b).n_files, 1);
	/* by the build id of this very program */
	assert_int_equal(open_as(b, MANY, NULL), 0);
	assert_int_equal(get(b, &key), TABLECACHE_FOREIGN);
	assert_int_equal(get_or_put(b, 500), 0);
	assert_int_equal(open_as(b, MANY, NULL), 0);
	assert_int_equal(get(b, &key), 0);
}

/* Every byte that rows are made of counts, whatever the build id says. */
static void test_contents(void **state)
{
	static const struct digest_key secret = {{0x9e3779b97f4a7c15, 0xbf58476d1ce4e5b9, 3, 4}};
	uint8_t eh_frame[64] = {0}, debug_frame[64] = {0};
	struct bench *b = *state;
	struct ehimage image = {.eh_frame = eh_frame,
				.n_eh_frame = sizeof(eh_frame),
				.debug_frame = debug_frame,
				.n_debug_frame = sizeof(debug_frame),
				.text = b->text,
				.n_text = sizeof(b->text)};
	uint8_t *const changed[] = {NULL, &eh_frame[63], &debug_frame[0], &b->text[255]};
	uint64_t seen[10], n_seen = 0;

	for (size_t i = 0; i < 2 * array_size(changed); i++) {
		struct elffile *file;
		size_t n;
		void *bytes;

		if (changed[i / 2])
			(*changed[i / 2])++;
		image.no_sections = i % 2;
		bytes = ehimage_build(&image, &n);
		assert_non_null(bytes);
		assert_int_equal(elffile_open_memory(bytes, n, &file), 0);
		assert_int_equal(contents_digest(file, &secret, &seen[n_seen]), 0);
		for (size_t k = 0; k < n_seen; k++)
			assert_int_not_equal(seen[k], seen[n_seen]);
		n_seen++;
		elffile_free(file);
		free(bytes);
	}
}

/* An image that is another one by the time that its table is made. */
static void test_changed(void **state)
{
	_cleanup_(table_freep) struct table *table = table_of(50), *none = NULL;
	struct bench *b = *state;
	struct elffile *image = NULL;
	struct tablecache_key key;
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/image", b->tree.path);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0755);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, b->bytes, b->n_bytes), b->n_bytes);
	assert_int_equal(elffile_open(fd, &image), 0);
	assert_int_equal(tablecache_get(b->cache, image, &key, &none), TABLECACHE_MISS);
	key.changed_ns--; /* the clock of files stands still for milliseconds */
	assert_int_equal(tablecache_put(b->cache, image, &key, table), TABLECACHE_CHANGED);
	assert_int_equal(stats(b).n_files, 0);
	key.changed_ns++;
	assert_int_equal(tablecache_put(b->cache, image, &key, table), 0);
	elffile_free(image);
}

/* ---------------------------------------------------------------- what is wrong with a file */

static void damage(const char *path, off_t at)
{
	_cleanup_(close_fdp) int fd = open(path, O_RDWR | O_CLOEXEC);
	char byte;

	assert_int_equal(pread(fd, &byte, 1, at), 1);
	byte ^= 1;
	assert_int_equal(pwrite(fd, &byte, 1, at), 1);
}

static void cut(const char *path, off_t n)
{
	assert_int_equal(truncate(path, n), 0);
}

static void test_damaged(void **state)
{
	static const struct {
		const char *name;
		void (*spoil)(const char *path, off_t at);
		off_t at;
	} rows[] = {
		{"first byte", damage, 0}, {"in the middle", damage, 300}, {"cut", cut, 200},
		{"empty", cut, 0},	   {"longer", cut, 100000},
	};
	struct bench *b = *state;
	struct tablecache_key key;
	char path[256];

	path_of(b, path);
	for (size_t i = 0; i < array_size(rows); i++) {
		row_begin(rows[i].name);
		assert_int_equal(get_or_put(b, 500), 0);
		rows[i].spoil(path, rows[i].at);
		assert_int_equal(get(b, &key), TABLECACHE_DAMAGED);
		assert_int_equal(access(path, F_OK), -1);
		assert_int_equal(stats(b).n_files, 0);
	}
	assert_int_equal(stats(b).reads[TABLECACHE_DAMAGED], array_size(rows));
}

/* Whole, and of another machine: its secret is another one. */
static void test_from_elsewhere(void **state)
{
	struct bench *b = *state;
	struct tablecache_key key;
	char path[256], secret[256];

	assert_int_equal(get_or_put(b, 500), 0);
	snprintf(secret, sizeof(secret), "%s/secret", b->dir);
	cut(secret, 31);
	assert_int_equal(open_as(b, MANY, "me"), 0);
	assert_int_equal(stats(b).n_files, 1);
	assert_int_equal(get(b, &key), TABLECACHE_MISS); /* its name is another one, too */
	assert_int_equal(get_or_put(b, 500), 0);
	assert_int_equal(open_as(b, MANY, "me"), 0);
	assert_int_equal(get(b, &key), 0);
	assert_int_equal(unlink(path_of(b, path)), 0);
	assert_int_equal(stats(b).n_files, 2);
	assert_int_equal(get(b, &key), TABLECACHE_MISS);
	assert_int_equal(stats(b).n_files, 1);
}

/* In the place of a table: a link to one, a FIFO, a directory. */
static void test_no_file(void **state)
{
	struct bench *b = *state;
	struct tablecache_key key;
	char path[256], moved[256];

	assert_int_equal(get_or_put(b, 500), 0);
	path_of(b, path);
	snprintf(moved, sizeof(moved), "%s/moved", b->tree.path);
	assert_int_equal(rename(path, moved), 0);
	assert_int_equal(symlink(moved, path), 0);
	assert_int_equal(get(b, &key), TABLECACHE_UNREADABLE);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(get(b, &key), TABLECACHE_UNREADABLE);
	assert_int_equal(get_or_put(b, 500), 0); /* takes its place */
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(get_or_put(b, 500), TABLECACHE_FAILED);
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(rename(moved, path), 0);
	assert_int_equal(chown(path, 12345, 0), 0);
	assert_int_equal(get(b, &key), TABLECACHE_UNREADABLE);
}

/* ---------------------------------------------------------------- the directory */

static void test_unsafe(void **state)
{
	struct bench *b = *state;
	char link[96];

	assert_int_equal(chmod(b->dir, 0720), 0);
	assert_int_equal(open_as(b, MANY, "me"), TABLECACHE_UNSAFE);
	assert_int_equal(chmod(b->dir, 0702), 0);
	assert_int_equal(open_as(b, MANY, "me"), TABLECACHE_UNSAFE);
	assert_int_equal(chmod(b->dir, 0755), 0);
	assert_int_equal(open_as(b, MANY, "me"), 0);
	assert_int_equal(chown(b->dir, 12345, 0), 0);
	assert_int_equal(open_as(b, MANY, "me"), TABLECACHE_UNSAFE);
	assert_int_equal(chown(b->dir, 0, 0), 0);
	snprintf(link, sizeof(link), "%s/link", b->tree.path);
	assert_int_equal(symlink(b->dir, link), 0);
	snprintf(b->dir, sizeof(b->dir), "%s", link);
	assert_int_equal(open_as(b, MANY, "me"), TABLECACHE_FAILED);
}

static void test_busy(void **state)
{
	struct bench *b = *state;
	const struct tablecache_opts opts = {b->dir, MANY, "me"};
	struct tablecache *other = NULL;

	assert_int_equal(tablecache_open(&opts, &other), TABLECACHE_BUSY);
}

/* Only what is named like ours goes. */
static void test_others_files(void **state)
{
	struct bench *b = *state;
	char path[256];

	snprintf(path, sizeof(path), "%s/.new-x", b->dir);
	assert_int_equal(close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600)), 0);
	snprintf(path, sizeof(path), "%s/notes.txt", b->dir);
	assert_int_equal(close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600)), 0);
	assert_int_equal(get_or_put(b, 50), 0);
	assert_int_equal(open_as(b, 4096, "me"), 0);
	be_image(b, 1);
	assert_int_equal(get_or_put(b, 50), 0);
	assert_int_equal(stats(b).n_files, 1);
	assert_int_equal(stats(b).removed, 1);
	assert_int_equal(access(path, F_OK), 0);
	snprintf(path, sizeof(path), "%s/.new-x", b->dir);
	assert_int_equal(access(path, F_OK), -1);
}

/* ---------------------------------------------------------------- how much */

static bool has(struct bench *b, uint8_t number)
{
	struct tablecache_key key;

	be_image(b, number);
	return get(b, &key) == 0;
}

/* Room for four of them: the least recently used goes, in this run and in the next. */
static void test_least_used(void **state)
{
	struct bench *b = *state;

	assert_int_equal(open_as(b, 4 * 4096, "me"), 0);
	for (uint8_t i = 1; i <= 4; i++) {
		be_image(b, i);
		assert_int_equal(get_or_put(b, 50), 0);
	}
	assert_true(has(b, 1));
	be_image(b, 5);
	assert_int_equal(get_or_put(b, 50), 0);
	assert_false(has(b, 2));
	assert_true(has(b, 3));
	assert_int_equal(stats(b).bytes, 4 * 4096);
	assert_int_equal(open_as(b, 3 * 4096, "me"), 0);
	assert_int_equal(stats(b).n_files, 3);
	assert_false(has(b, 4)); /* the one that was not asked for */
	assert_true(has(b, 1));
	assert_true(has(b, 5));
	assert_true(has(b, 3));
	be_image(b, 6);
	assert_int_equal(get_or_put(b, 100000), TABLECACHE_TOO_LARGE);
	assert_int_equal(stats(b).n_files, 3);
}

/* A file system of @size bytes in our own mount namespace, which goes with the process. */
static void mount_small(const struct bench *b, const char *size)
{
	char options[64];

	snprintf(options, sizeof(options), "size=%s,mode=0700", size);
	assert_int_equal(unshare(CLONE_NEWNS), 0);
	assert_int_equal(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
	assert_int_equal(mount("tmpfs", b->dir, "tmpfs", 0, options), 0);
}

static void test_full_disk(void **state)
{
	struct bench *b = *state;
	struct tablecache_key key;

	mount_small(b, "64k");
	assert_int_equal(open_as(b, MANY, "me"), 0);
	for (uint8_t i = 0; i < 20; i++) {
		be_image(b, i);
		(void)get_or_put(b, 1500);
	}
	assert_true(stats(b).writes[TABLECACHE_OK] >= 5);
	assert_int_equal(stats(b).writes[TABLECACHE_OK] + stats(b).writes[TABLECACHE_DISK_FULL],
			 20);
	assert_true(stats(b).writes[TABLECACHE_DISK_FULL] >= 5);
	be_image(b, 0);
	assert_int_equal(get(b, &key), 0);
	tablecache_free(b->cache);
	b->cache = NULL;
	assert_int_equal(umount(b->dir), 0);
}

static void test_read_only(void **state)
{
	struct bench *b = *state;
	struct tablecache_key key;

	mount_small(b, "64k");
	assert_int_equal(open_as(b, MANY, "me"), 0);
	assert_int_equal(get_or_put(b, 50), 0);
	assert_int_equal(mount(NULL, b->dir, NULL, MS_REMOUNT | MS_RDONLY, NULL), 0);
	assert_int_equal(get(b, &key), 0);
	be_image(b, 1);
	assert_int_equal(get_or_put(b, 50), TABLECACHE_READ_ONLY);
	assert_int_equal(open_as(b, MANY, "me"), 0); /* still of use */
	be_image(b, 0);
	assert_int_equal(get(b, &key), 0);
	tablecache_free(b->cache);
	b->cache = NULL;
	assert_int_equal(umount(b->dir), 0);
}

/* ---------------------------------------------------------------- no memory */

static int open_once(void *ctx)
{
	return open_as(ctx, MANY, "me");
}

static int use_once(void *ctx)
{
	_cleanup_(table_freep) struct table *back = NULL;
	struct bench *b = ctx;
	struct tablecache_key key;
	int r = tablecache_get(b->cache, b->image, &key, &back);

	return r < 0 ? r : 0;
}

static void test_no_memory(void **state)
{
	struct bench *b = *state;

	for (uint8_t i = 0; i < 3; i++) {
		be_image(b, i);
		assert_int_equal(get_or_put(b, 50), 0);
	}
	allocfail_survive(open_once, b);
	assert_int_equal(open_as(b, MANY, "me"), 0);
	allocfail_survive(use_once, b);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_there_and_back), TEST(test_next_start), TEST(test_contents),
		TEST(test_changed),	   TEST(test_damaged),	  TEST(test_from_elsewhere),
		TEST(test_no_file),	   TEST(test_unsafe),	  TEST(test_busy),
		TEST(test_others_files),   TEST(test_least_used), TEST(test_full_disk),
		TEST(test_read_only),	   TEST(test_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
