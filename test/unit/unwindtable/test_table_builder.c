// SPDX-License-Identifier: Apache-2.0
/* The order and priority of making tables; the kernel is an array here. */
#include "support/test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/loop.h"
#include "procmap/image.h"
#include "support/ehimage.h"
#include "support/stalldir.h"
#include "support/threads.h"
#include "unwindtable/table_builder.h"
#include "unwindtable/tables.h"

#define SLABS  4
#define IMAGES 4

static char stalled_path[] = "/tmp/podprof-test-builder-XXXXXX";
static struct stalldir *stalled;

struct bench {
	struct table_exe exes[TABLE_EXES];
	struct table_use uses[TABLE_EXES];
	struct unwind_rule rules[TABLE_RULES];
	struct table_rule_run rule_runs[TABLE_RULE_RUNS];
	struct table_page table_pages[SLABS * TABLE_SLAB_PAGES];
	struct tables *tables;
	struct loop *loop;
	struct table_builder *builder;
	struct image *images[IMAGES];
	uint16_t numbers[IMAGES];
	uint16_t ready[IMAGES];
	size_t n_ready;
	size_t n_wanted;
};

static int make(void *ctx, uint32_t number)
{
	(void)ctx;
	return number < SLABS ? 0 : -ENOMEM;
}

static struct table_page *map(void *ctx, uint32_t number, uint32_t first, uint32_t n)
{
	struct bench *b = ctx;

	(void)n;
	return &b->table_pages[(size_t)number * TABLE_SLAB_PAGES + first];
}

static void unmap(void *ctx, struct table_page *mem, uint32_t n)
{
	(void)ctx;
	(void)mem;
	(void)n;
}

static void on_ready(void *ctx, uint16_t number)
{
	struct bench *b = ctx;

	assert_in_range(b->n_ready, 0, IMAGES - 1);
	b->ready[b->n_ready++] = number;
	if (b->n_ready == b->n_wanted)
		loop_stop(b->loop);
}

/* An ELF file without rows: known only after reading, like any other result. @size: 0, or larger
 * than the file. */
static struct image *image_in(int fd, off_t size)
{
	static const uint8_t no_entry[4];
	const struct ehimage file = {
		.build_id = "same", .debug_frame = no_entry, .n_debug_frame = sizeof(no_entry)};
	int elf;
	struct image *image = NULL;
	void *bytes;
	size_t n;

	bytes = ehimage_build(&file, &n);
	assert_non_null(bytes);
	assert_int_equal(write(fd, bytes, n), n);
	if (size)
		assert_int_equal(pwrite(fd, "", 1, size - 1), 1);
	free(bytes);
	assert_int_equal(image_new_file(fd, "/image", &image, &elf), 0);
	assert_non_null(image->file);
	return image;
}

static struct image *new_image_of(off_t size)
{
	return image_in(memfd_create("test_table_builder", MFD_CLOEXEC), size);
}

static struct image *new_image(void)
{
	return new_image_of(0);
}

static int setup(void **state)
{
	struct bench *b = calloc(1, sizeof(*b));
	struct tables_opts tables = {.budget_bytes = (size_t)1 << 20};
	struct table_builder_opts builder = {.ready = on_ready, .ctx = b};

	assert_non_null(b);
	*state = b;
	tables.memory = (struct tables_memory){
		b->exes, b->uses, b->rules, b->rule_runs, {b, make, map, unmap}};
	assert_int_equal(tables_new(&tables, &b->tables), 0);
	assert_int_equal(loop_new(&b->loop), 0);
	builder.tables = b->tables;
	builder.loop = b->loop;
	assert_int_equal(table_builder_new(&builder, &b->builder), 0);
	for (int i = 0; i < IMAGES; i++) {
		b->images[i] = new_image();
		b->numbers[i] = table_builder_number(b->builder, b->images[i]);
		assert_int_not_equal(b->numbers[i], 0);
	}
	return 0;
}

static int teardown(void **state)
{
	struct bench *b = *state;

	table_builder_free(b->builder);
	for (int i = 0; i < IMAGES; i++)
		image_unref(b->images[i]);
	loop_free(b->loop);
	tables_free(b->tables);
	free(b);
	return 0;
}

static void want(struct bench *b, int image, int times)
{
	for (int i = 0; i < times; i++)
		table_builder_want(b->builder, b->images[image]);
}

/* The first table starts at once. Next comes the table that most stacks lack, not the one requested
 * first. */
static void test_most_missed(void **state)
{
	struct bench *b = *state;

	b->n_wanted = IMAGES;
	want(b, 0, 1);
	want(b, 1, 1);
	want(b, 2, 3);
	want(b, 3, 2);
	assert_int_equal(table_builder_pending(b->builder), IMAGES);
	assert_int_equal(loop_run(b->loop), 0);
	assert_int_equal(b->ready[0], b->numbers[0]);
	assert_int_equal(b->ready[1], b->numbers[2]);
	assert_int_equal(b->ready[2], b->numbers[3]);
	assert_int_equal(b->ready[3], b->numbers[1]);
	assert_int_equal(table_builder_pending(b->builder), 0);
}

/* A stack that no dump completes counts as many. */
static void test_hurry(void **state)
{
	struct bench *b = *state;

	b->n_wanted = IMAGES;
	table_builder_hurry(b->builder, b->numbers[3]);	 /* not wanted */
	table_builder_hurry(b->builder, TABLE_EXES - 1); /* unknown */
	want(b, 0, 1);
	want(b, 1, TABLE_BUILDER_HURRY);
	want(b, 2, 1);
	want(b, 3, 2);
	table_builder_hurry(b->builder, b->numbers[2]);
	assert_int_equal(table_builder_pending(b->builder), IMAGES);
	assert_int_equal(loop_run(b->loop), 0);
	assert_int_equal(b->ready[0], b->numbers[0]);
	assert_int_equal(b->ready[1], b->numbers[2]);
	assert_int_equal(b->ready[2], b->numbers[1]);
	assert_int_equal(b->ready[3], b->numbers[3]);
}

/* A large file, of which the server of its file system has yet to answer the reads of the table. */
static struct image *new_slow_image(void)
{
	char path[64];
	struct image *image;
	int fd;

	snprintf(path, sizeof(path), "%s/image", stalled_path);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	image = image_in(fd, (off_t)32 << 20);
	assert_int_equal(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
	stalldir_stall(stalled, "read");
	return image;
}

/* Wants its table, and waits until the worker reads it. */
static uint16_t begin_slow(struct bench *b, struct image *image)
{
	const uint16_t number = table_builder_number(b->builder, image);

	assert_int_not_equal(number, 0);
	table_builder_want(b->builder, image);
	while (!stalldir_n_held(stalled))
		usleep(1000);
	return number;
}

/* A compilation gives way to the file of stacks that no dump completes, and begins again later, but
 * gives way once. */
static void test_gives_way(void **state)
{
	struct bench *b = *state;
	struct image *large[3] = {new_slow_image(), new_image_of((off_t)32 << 20),
				  new_image_of((off_t)32 << 20)};
	uint16_t numbers[3];

	numbers[0] = begin_slow(b, large[0]);
	for (int i = 1; i < 3; i++) {
		numbers[i] = table_builder_number(b->builder, large[i]);
		table_builder_want(b->builder, large[i]);
	}
	table_builder_hurry(b->builder, numbers[1]);
	stalldir_answer(stalled, 0);
	b->n_wanted = 3;
	assert_int_equal(loop_run(b->loop), 0);
	assert_int_equal(b->ready[0], numbers[1]);
	assert_int_equal(table_builder_pending(b->builder), 0);
	for (int i = 0; i < 3; i++)
		image_unref(large[i]);
}

/* Not if its own stacks are cut as well. */
static void test_goes_on(void **state)
{
	struct bench *b = *state;
	struct image *slow = new_slow_image(), *large = new_image_of((off_t)32 << 20);
	const uint16_t first = begin_slow(b, slow);

	table_builder_hurry(b->builder, first);
	table_builder_want(b->builder, large);
	table_builder_hurry(b->builder, table_builder_number(b->builder, large));
	stalldir_answer(stalled, 0);
	b->n_wanted = 1;
	assert_int_equal(loop_run(b->loop), 0);
	assert_int_equal(b->ready[0], first);
	image_unref(slow);
	image_unref(large);
}

/* Large files have a queue of their own. */
static void test_large(void **state)
{
	struct bench *b = *state;
	struct image *large = new_image_of((off_t)32 << 20);
	const uint16_t number = table_builder_number(b->builder, large);
	size_t n_large = 0;

	b->n_wanted = 3;
	table_builder_want(b->builder, large);
	want(b, 0, 1);
	want(b, 1, 1);
	assert_int_equal(table_builder_pending(b->builder), 3);
	assert_int_equal(loop_run(b->loop), 0);
	for (size_t i = 0; i < b->n_ready; i++)
		n_large += b->ready[i] == number;
	assert_int_equal(n_large, 1);
	assert_int_equal(table_builder_pending(b->builder), 0);
	image_unref(large);
}

/* A table released before its turn is not made. */
static void test_released(void **state)
{
	static const bool used[TABLE_EXES] = {0};
	struct bench *b = *state;

	b->n_wanted = 1;
	want(b, 0, 1);
	want(b, 1, 1);
	table_builder_sweep(b->builder, used, TABLE_EXES);
	assert_int_equal(table_builder_pending(b->builder), 1);
	assert_int_equal(loop_run(b->loop), 0);
	assert_int_equal(b->ready[0], b->numbers[0]);
	assert_int_equal(table_builder_pending(b->builder), 0);
}

/* The nice value of the thread with this name; 100: no such thread. */
static int nice_of(const char *thread)
{
	DIR *tasks = opendir("/proc/self/task");
	char path[300], text[1024], *end;
	struct dirent *task;
	int nice_value = 100;
	FILE *f;

	assert_non_null(tasks);
	while ((task = readdir(tasks))) {
		snprintf(path, sizeof(path), "/proc/self/task/%s/stat", task->d_name);
		f = task->d_name[0] != '.' ? fopen(path, "re") : NULL;
		if (!f)
			continue;
		text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
		(void)fclose(f);
		end = strrchr(text, ')');
		if (!end || !strstr(text, thread))
			continue;
		for (int field = 2; field < 19; field++) /* proc_pid_stat(5) */
			end = strchr(end + 1, ' ');
		nice_value = (int)strtol(end, NULL, 10);
	}
	closedir(tasks);
	return nice_value;
}

/* On a busy node stacks wait for tables, so the workers have the priority of the agent. */
static void test_priority(void **state)
{
	const int own = getpriority(PRIO_PROCESS, 0);
	struct image *large = new_image_of((off_t)32 << 20);
	struct bench *b = *state;

	assert_int_not_equal(table_builder_number(b->builder, large), 0);
	b->n_wanted = 2;
	want(b, 0, 1);
	table_builder_want(b->builder, large);
	assert_int_equal(loop_run(b->loop), 0);
	assert_int_equal(nice_of("(unwind)"), own);
	assert_int_equal(nice_of("(unwind-large)"), own);
	image_unref(large);
}

/* The end while files of both queues are compiled and others wait: no job starts another one. */
static void test_end(void **state)
{
	struct bench *b = *state;
	struct image *large = new_slow_image();

	(void)begin_slow(b, large);
	for (int i = 0; i < IMAGES; i++)
		want(b, i, 1);
	assert_int_equal(table_builder_pending(b->builder), 1 + IMAGES);
	stalldir_answer(stalled, 0);
	table_builder_free(take_ptr(b->builder));
	assert_int_equal(b->n_ready, 0);
	image_unref(large);
}

/* The end while a file does not answer: nobody is told of its table, because the other queue is
 * gone already. */
static void test_end_blocked(void **state)
{
	struct bench *b = *state;
	struct image *large = new_slow_image();

	(void)begin_slow(b, large);
	table_builder_free(take_ptr(b->builder));
	stalldir_answer(stalled, 0);
	threads_wait();
	image_unref(large);
	assert_int_equal(b->n_ready, 0);
}

static int mount(void **state)
{
	(void)state;
	stalled = mkdtemp(stalled_path) ? stalldir_new(stalled_path) : NULL;
	return !stalled;
}

static int unmount(void **state)
{
	(void)state;
	stalldir_free(stalled);
	return rmdir(stalled_path);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_most_missed), TEST(test_hurry),   TEST(test_large),
		TEST(test_gives_way),	TEST(test_goes_on), TEST(test_released),
		TEST(test_priority),	TEST(test_end),	    TEST(test_end_blocked),
	};

	return cmocka_run_group_tests(tests, mount, unmount);
}
