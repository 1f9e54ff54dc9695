// SPDX-License-Identifier: Apache-2.0
/* Files are opened on a thread, and a file system without an answer blocks nobody else. The hook
 * stands for the file system. */
#include "support/test.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/loop.h"
#include "base/nsec.h"
#include "base/root.h"
#include "discovery/pid.h"
#include "procmap/address_space.h"
#include "procmap/images.h"
#include "procmap/maps.h"
#include "procmap/opener.h"
#include "procmap/share.h"
#include "support/metrics.h"
#include "support/tree.h"

/* Of a thread in the tests of blocked ones: any open takes less on a loaded machine. */
#define STUCK_NS      (1 * NSEC_PER_SEC)
/* More than the thread's queue, and more than are opened ahead. */
#define FILES	      (ADDRESS_AHEAD + 100)
#define ADDRESS_AHEAD 256

struct bench {
	struct root proc;
	struct loop *loop;
	struct loop_source *tick;
	struct address_space_cache *cache;
	struct pid_id self;
	struct tree tree;
	sem_t gate;		/* the hook waits here */
	_Atomic int blocked;	/* hooks that wait, or have waited */
	_Atomic uint64_t inode; /* of the file that blocks; 0: none does */
	int opened;
	bool (*until)(struct bench *b);
};

static void hook(void *ctx, const struct maps_entry *entry)
{
	struct bench *b = ctx;

	if (entry->inode != b->inode)
		return;
	b->blocked++;
	sem_wait(&b->gate);
}

static void on_opened(void *ctx, uint64_t pid)
{
	struct bench *b = ctx;

	assert_true(pid == b->self.pid);
	b->opened++;
}

static void on_tick(void *ctx)
{
	struct bench *b = ctx;

	if (b->until(b))
		loop_stop(b->loop);
}

static void run_until(struct bench *b, bool (*until)(struct bench *b))
{
	b->until = until;
	assert_int_equal(loop_arm(b->tick, NSEC_PER_MSEC, NSEC_PER_MSEC), 0);
	assert_int_equal(loop_run(b->loop), 0);
	assert_int_equal(loop_disarm(b->tick), 0);
}

static bool all_opened(struct bench *b)
{
	return address_space_cache_opening(b->cache) == 0;
}

static int setup(void **state)
{
	struct bench *b = calloc(1, sizeof(*b));
	struct address_space_files files = {
		.opened = on_opened, .ctx = b, .stuck_ns = STUCK_NS, .hook = hook, .hook_ctx = b};

	assert_non_null(b);
	sem_init(&b->gate, 0, 0);
	assert_int_equal(root_open("/proc", &b->proc), 0);
	assert_int_equal(loop_new(&b->loop), 0);
	assert_int_equal(loop_add_timer(b->loop, on_tick, b, &b->tick), 0);
	assert_int_equal(pid_read(&b->proc, getpid(), &b->self), 0);
	assert_int_equal(address_space_cache_new(&b->proc, &b->cache), 0);
	files.loop = b->loop;
	assert_int_equal(address_space_cache_open_behind(b->cache, &files), 0);
	tree_init(&b->tree);
	*state = b;
	return 0;
}

static int teardown(void **state)
{
	struct bench *b = *state;

	for (int i = 0; i < b->blocked; i++)
		sem_post(&b->gate);
	address_space_cache_free(b->cache);
	tree_deinit(&b->tree);
	loop_remove(b->tick);
	loop_free(b->loop);
	root_deinit(&b->proc);
	free(b); /* an abandoned thread has returned from the hook, or will not use it again */
	return 0;
}

static struct address_space *get(struct bench *b, uint64_t owner)
{
	const struct address_space_who who = {
		.pid = b->self, .exec_id = ADDRESS_SPACE_EXEC_ANY, .owner = owner};
	struct address_space *space = NULL;

	assert_int_equal(address_space_cache_get(b->cache, &who, &space), 0);
	return space;
}

static struct frame resolve(struct bench *b, const void *pc)
{
	struct frame frame = {0};

	assert_int_equal(
		address_space_resolve(b->cache, get(b, 1), (uint64_t)(uintptr_t)pc, &frame), 0);
	return frame;
}

static uint64_t metric(struct bench *b, const char *family, const char *label)
{
	return metrics_get(address_space_cache_collect, b->cache, family, label);
}

static void test_opened_later(void **state)
{
	const void *pc = (const void *)&test_opened_later;
	struct bench *b = *state;
	struct frame early, settled, late;
	uint64_t version;
	Dl_info info;

	assert_true(dladdr(pc, &info) != 0);
	early = resolve(b, pc);
	version = address_space_version(get(b, 1));
	assert_non_null(early.image->opening);
	assert_null(early.image->file);
	assert_string_equal(image_name(early.image), "test_opener");
	assert_true(address_space_opening(get(b, 1)));
	assert_int_equal(metric(b, "podprof_resolved_pcs", "file"), 0);
	settled = frame_settle(&early); /* as a file that cannot be read: by offset */
	assert_ptr_equal(settled.image, early.image);
	assert_true(settled.vaddr != early.vaddr);

	run_until(b, all_opened);
	assert_true(b->opened > 0);
	assert_false(address_space_opening(get(b, 1)));
	assert_true(address_space_version(get(b, 1)) != version);
	settled = frame_settle(&early);
	assert_non_null(settled.image->file);
	assert_true(settled.vaddr == (uint64_t)((uintptr_t)pc - (uintptr_t)info.dli_fbase));
	late = resolve(b, pc);
	assert_ptr_equal(late.image, settled.image); /* one place, before and after */
	assert_true(late.vaddr == settled.vaddr);
	assert_int_equal(metric(b, "podprof_resolved_pcs", "file"), 2);
	assert_int_equal(metric(b, "podprof_images", "opening"), 0);
	image_unref(early.image);
	image_unref(late.image);
}

/* The images are as without a thread, those of anonymous memory too. */
static void test_same_as_here(void **state)
{
	const struct address_space_mapping *here, *there;
	struct bench *b = *state;
	struct address_space_cache *cache;
	struct address_space_who who = {.pid = b->self, .exec_id = ADDRESS_SPACE_EXEC_ANY};
	struct address_space *space;
	size_t n_here, n_there;

	(void)get(b, 1);
	run_until(b, all_opened);
	assert_int_equal(address_space_cache_new(&b->proc, &cache), 0);
	assert_int_equal(address_space_cache_get(cache, &who, &space), 0);
	here = address_space_mappings(space, &n_here);
	there = address_space_mappings(get(b, 1), &n_there);
	assert_int_equal(n_here, n_there);
	for (size_t i = 0; i < n_here; i++) {
		assert_int_equal(here[i].image->kind, there[i].image->kind);
		assert_string_equal(here[i].image->path, there[i].image->path);
		assert_string_equal(here[i].image->build_id, there[i].image->build_id);
		assert_true(!here[i].image->file == !there[i].image->file);
	}
	address_space_cache_free(cache);
}

/* A process of known files is unwound at once, and named when its files are open. */
static void test_guess(void **state)
{
	struct bench *b = *state;
	const struct address_space_mapping *items;
	struct address_space_who who = {.pid = b->self, .exec_id = 1, .owner = 1};
	struct address_space *space;
	uint64_t version;
	size_t n;

	(void)get(b, 1);
	run_until(b, all_opened);
	assert_int_equal(address_space_cache_get(b->cache, &who, &space), 0);
	assert_true(address_space_cache_opening(b->cache) > 0);
	assert_false(address_space_opening(space));
	items = address_space_mappings(space, &n);
	for (size_t i = 0; i < n; i++) {
		assert_non_null(image_to_unwind(items[i].image));
		if (items[i].inode)
			assert_non_null(items[i].image->opening);
	}
	version = address_space_version(space);
	run_until(b, all_opened);
	assert_true(address_space_version(space) == version); /* they were right */
	items = address_space_mappings(space, &n);
	for (size_t i = 0; i < n; i++)
		assert_null(items[i].image->opening);
}

/* ---------------------------------------------------------------- files of our own */

/* Maps a new file "@i" with code. */
static char *map_file(struct bench *b, int i, struct stat *ret)
{
	char name[32];
	char *at;
	int fd;

	snprintf(name, sizeof(name), "%d", i);
	fd = openat(b->tree.fd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 4096), 0);
	assert_int_equal(fstat(fd, ret), 0);
	at = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	assert_true(at != MAP_FAILED);
	close(fd);
	return at;
}

static bool is_counted_hung(struct bench *b)
{
	return metric(b, "podprof_file_opens", "hung") > 0 && all_opened(b);
}

static bool has_returned(struct bench *b)
{
	return metric(b, "podprof_file_threads_blocked", "") == 0;
}

/* One file blocks the thread: all others are opened, and it is slow until it may be tried again. */
static void test_blocked(void **state)
{
	const void *other_pc = (const void *)&test_blocked;
	struct bench *b = *state;
	struct frame slow, other, again;
	struct stat st;
	char *at = map_file(b, 1, &st);

	b->inode = st.st_ino;
	slow = resolve(b, at + 5);
	other = resolve(b, other_pc);
	run_until(b, is_counted_hung);
	assert_int_equal(b->blocked, 1);
	assert_non_null(frame_settle(&other).image->file);
	assert_ptr_equal(frame_settle(&slow).image, slow.image);
	assert_int_equal(frame_settle(&slow).vaddr, 5);
	assert_int_equal(metric(b, "podprof_file_threads_blocked", ""), 1);
	assert_int_equal(metric(b, "podprof_images", "slow"), 1);
	assert_int_equal(metric(b, "podprof_resolved_pcs", "slow"), 1);
	again = resolve(b, at + 6);
	assert_int_equal(metric(b, "podprof_resolved_pcs", "slow"), 2);
	assert_int_equal(b->blocked, 1); /* not asked again */

	b->inode = 0;
	sem_post(&b->gate);
	b->blocked = 0;
	run_until(b, has_returned);
	image_unref(slow.image);
	image_unref(other.image);
	image_unref(again.image);
	munmap(at, 4096);
}

/* Without a sample, only so many files of a process are opened; with one, each. */
static void test_ahead(void **state)
{
	struct bench *b = *state;
	char *at[FILES];
	struct frame frame;
	struct stat st;
	uint64_t n;

	for (int i = 0; i < FILES; i++)
		at[i] = map_file(b, i, &st);
	(void)get(b, 1);
	run_until(b, all_opened);
	n = metric(b, "podprof_file_opens", "ok") + metric(b, "podprof_file_opens", "unreadable");
	assert_int_equal(n, ADDRESS_AHEAD);
	for (int i = 0; i < FILES; i++) {
		frame = resolve(b, at[i]);
		image_unref(frame.image);
	}
	run_until(b, all_opened);
	for (int i = 0; i < FILES; i++) {
		frame = resolve(b, at[i]);
		assert_null(frame.image->opening);
		image_unref(frame.image);
		munmap(at[i], 4096);
	}
	assert_int_equal(metric(b, "podprof_resolved_pcs", "no_elf"), 2 * FILES);
}

/* ---------------------------------------------------------------- who is blamed */

struct line {
	struct loop *loop;
	struct loop_source *tick;
	struct images *images;
	struct opener *opener;
	sem_t gate;
	size_t n_done;
	size_t n_slow;
	size_t n_wanted;
};

static void block(void *ctx, const struct maps_entry *entry)
{
	struct line *l = ctx;

	if (entry->inode == 13)
		sem_wait(&l->gate);
}

static void on_batch(void *ctx, struct open_batch *batch)
{
	struct line *l = ctx;

	for (size_t i = 0; i < batch->n; i++)
		l->n_slow += batch->items[i].slow;
	l->n_done++;
	open_batch_free(batch);
}

static void on_line_tick(void *ctx)
{
	struct line *l = ctx;

	if (l->n_done >= l->n_wanted)
		loop_stop(l->loop);
}

/* One file of @owner on @device, which blocks; waits until it is given up. */
static void open_blocking(struct line *l, uint64_t owner, uint64_t device)
{
	struct open_batch *batch = open_batch_new();

	assert_non_null(batch);
	batch->way.owner = owner;
	assert_int_equal(image_new_opening("/x", 0, 0, &batch->items[0].image), 0);
	batch->items[0].entry = (struct maps_entry){.device = device,
						    .inode = 13,
						    .kind = MAPS_FILE,
						    .path = batch->items[0].image->path};
	batch->n = 1;
	assert_int_equal(opener_submit(l->opener, batch), 0);
	l->n_wanted = l->n_done + 1;
	assert_int_equal(loop_run(l->loop), 0);
}

static void test_blame(void **state)
{
	struct bench *b = *state;
	struct line l = {.n_done = 0};
	struct opener_opts opts = {.stuck_ns = 20 * NSEC_PER_MSEC,
				   .done = on_batch,
				   .ctx = &l,
				   .hook = block,
				   .hook_ctx = &l};
	uint64_t until_ns;

	sem_init(&l.gate, 0, 0);
	assert_int_equal(loop_new(&l.loop), 0);
	assert_int_equal(loop_add_timer(l.loop, on_line_tick, &l, &l.tick), 0);
	assert_int_equal(loop_arm(l.tick, NSEC_PER_MSEC, NSEC_PER_MSEC), 0);
	assert_int_equal(images_new(&b->proc, &l.images), 0);
	opts.loop = l.loop;
	opts.images = l.images;
	assert_int_equal(opener_new(&opts, &l.opener), 0);

	assert_int_equal(opener_refuses(l.opener, 1, 100, &until_ns), OPENER_OK);
	open_blocking(&l, 1, 100);
	assert_int_equal(l.n_slow, 1);
	/* the first time it is the file system, and not all of the owner's */
	assert_int_equal(opener_refuses(l.opener, 2, 100, &until_ns), OPENER_DEVICE);
	assert_int_equal(opener_refuses(l.opener, 1, 101, &until_ns), OPENER_OK);
	/* another file system of the same owner */
	open_blocking(&l, 1, 101);
	assert_int_equal(opener_refuses(l.opener, 1, 102, &until_ns), OPENER_OWNER);
	assert_int_equal(opener_refuses(l.opener, 2, 102, &until_ns), OPENER_OK);
	assert_int_equal(opener_n_blocked(l.opener), 2);

	/* a thread that comes back ends the first cooldown of its file system */
	sem_post(&l.gate);
	sem_post(&l.gate);
	while (opener_n_blocked(l.opener))
		usleep(1000);
	assert_int_equal(opener_refuses(l.opener, 2, 100, &until_ns), OPENER_OK);
	assert_int_equal(opener_refuses(l.opener, 1, 102, &until_ns), OPENER_OWNER);
	assert_true(until_ns > nsec_monotonic());
	open_blocking(&l, 2, 100);
	sem_post(&l.gate);
	while (opener_n_blocked(l.opener))
		usleep(1000);
	assert_int_equal(opener_refuses(l.opener, 2, 100, &until_ns), OPENER_DEVICE);

	opener_free(l.opener);
	images_unref(l.images);
	loop_remove(l.tick);
	loop_free(l.loop);
	sem_destroy(&l.gate);
}

/* ---------------------------------------------------------------- shares */

#define HOGS	     3
#define HOG_FILES    4090
#define VICTIM_FILES 300

static size_t n_named(struct bench *b, struct images *images, uint64_t owner, int first, int n,
		      struct image **ret)
{
	struct images_way way = {.likely = {b->self.pid}, .owner = owner};
	size_t named = 0;

	for (int i = first; i < first + n; i++) {
		char path[TREE_PATH_MAX];
		struct maps_entry entry = {.kind = MAPS_FILE, .path = path};
		struct stat st;
		int fd;

		snprintf(path, sizeof(path), "%s/%d", b->tree.path, i);
		fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		assert_true(fd >= 0);
		assert_int_equal(fstat(fd, &st), 0);
		close(fd);
		entry.device = st.st_dev;
		entry.inode = st.st_ino;
		assert_int_equal(images_of_record(images, &way, &entry, &ret[i]), 0);
		named += ret[i] != images_full(images);
	}
	return named;
}

/* Three processes of many files take not all images: a program started later has all its names. */
static void test_image_shares(void **state)
{
	const int n = HOGS * HOG_FILES + VICTIM_FILES;
	struct image **all = calloc((size_t)n, sizeof(*all));
	struct bench *b = *state;
	struct images *images;

	assert_non_null(all);
	assert_int_equal(images_new(&b->proc, &images), 0);
	for (int hog = 0; hog < HOGS; hog++) {
		size_t named =
			n_named(b, images, 1 + (uint64_t)hog, hog * HOG_FILES, HOG_FILES, all);

		assert_true(named > 500 && named < HOG_FILES);
	}
	assert_int_equal(n_named(b, images, 99, HOGS * HOG_FILES, VICTIM_FILES, all), VICTIM_FILES);
	for (int i = 0; i < n; i++)
		image_unref(all[i]);
	images_unref(images);
	free(all);
}

#define MANY 2500 /* more than a fifth of all address spaces */

/* A container of many processes evicts its own, and not another's. */
static void test_space_shares(void **state)
{
	struct bench *b = *state;
	struct address_space_who who = {.pid = b->self};
	struct address_space *space;
	uint64_t version;

	who.owner = 2;
	who.exec_id = MANY;
	assert_int_equal(address_space_cache_get(b->cache, &who, &space), 0);
	version = address_space_version(space);
	who.owner = 1;
	for (who.exec_id = 0; who.exec_id < MANY; who.exec_id++)
		assert_int_equal(address_space_cache_get(b->cache, &who, &space), 0);
	assert_true(metric(b, "podprof_address_spaces_dropped", "processes") +
			    metric(b, "podprof_address_spaces_dropped", "mappings") >
		    0);
	who.owner = 2;
	assert_int_equal(address_space_cache_get(b->cache, &who, &space), 0);
	assert_true(address_space_version(space) == version);
	who.owner = 1;
	who.exec_id = 0;
	assert_int_equal(address_space_cache_get(b->cache, &who, &space), 0);
	assert_true(address_space_version(space) > version + MANY); /* was dropped */
}

static void test_share_allows(void **state)
{
	static const struct {
		size_t max, total, own;
		bool allows;
	} rows[] = {
		{100, 0, 0, true},    {100, 24, 24, false}, {100, 19, 19, true},
		{100, 20, 20, false}, {100, 96, 0, true},   {100, 96, 1, false},
		{100, 99, 0, true},   {100, 100, 0, false}, {100, 101, 0, false},
	};

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++)
		assert_int_equal(share_allows(rows[i].max, rows[i].total, rows[i].own),
				 rows[i].allows);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_opened_later, setup, teardown),
		cmocka_unit_test_setup_teardown(test_same_as_here, setup, teardown),
		cmocka_unit_test_setup_teardown(test_guess, setup, teardown),
		cmocka_unit_test_setup_teardown(test_blocked, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ahead, setup, teardown),
		cmocka_unit_test_setup_teardown(test_blame, setup, teardown),
		cmocka_unit_test_setup_teardown(test_image_shares, setup, teardown),
		cmocka_unit_test_setup_teardown(test_space_shares, setup, teardown),
		cmocka_unit_test(test_share_allows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
