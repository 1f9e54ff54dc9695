// SPDX-License-Identifier: Apache-2.0
/* Files are opened on a thread, and a file system without an answer blocks nobody else. The hook
 * stands for the file system. */
#include "support/test.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/loop.h"
#include "base/nsec.h"
#include "base/root.h"
#include "discovery/pid.h"
#include "procmap/address_space.h"
#include "procmap/images.h"
#include "procmap/maps.h"
#include "procmap/opener.h"
#include "procmap/process_history.h"
#include "support/metrics.h"
#include "support/threads.h"
#include "support/tree.h"

/* Limit of a thread in the tests with blocked files: more than any open takes on a loaded machine.
 */
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
	_Atomic uint64_t inode; /* of the blocking file; 0: none */
	_Atomic uint64_t pid;	/* of the blocking list; 0: none */
	int opened;
	bool (*until)(struct bench *b);
};

/* Hooks that have waited. Read after the end of their threads, it orders all that they did before,
 * also for ThreadSanitizer. */
static _Atomic unsigned int n_returned;

static void hook(void *ctx, uint64_t pid, const struct maps_entry *entry)
{
	struct bench *b = ctx;

	if (entry ? entry->inode != b->inode : pid != b->pid)
		return;
	b->blocked++;
	sem_wait(&b->gate);
	n_returned++;
}

static void on_opened(void *ctx, uint64_t pid)
{
	struct bench *b = ctx;

	b->opened += pid == b->self.pid;
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

	b->inode = b->pid = 0;
	for (int i = 0; i < b->blocked + 2; i++) /* each thread may be about to wait */
		sem_post(&b->gate);
	address_space_cache_free(b->cache);
	tree_deinit(&b->tree);
	loop_remove(b->tick);
	loop_free(b->loop);
	root_deinit(&b->proc);
	threads_wait(); /* an abandoned thread may be in the hook still */
	(void)atomic_load(&n_returned);
	free(b);
	return 0;
}

/* With its mappings. */
static struct address_space *get_who(struct bench *b, const struct address_space_who *who)
{
	struct address_space *space = NULL;

	assert_int_equal(address_space_cache_get(b->cache, who, &space), 0);
	while (address_space_reading(space)) {
		address_space_cache_wait(b->cache, NSEC_PER_SEC);
		assert_int_equal(address_space_cache_get(b->cache, who, &space), 0);
	}
	return space;
}

static struct address_space *get(struct bench *b, uint64_t owner)
{
	const struct address_space_who who = {
		.pid = b->self, .exec_id = ADDRESS_SPACE_EXEC_ANY, .owner = owner};

	return get_who(b, &who);
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

/* The thread opens the perf map with the list, so that it can be read after the process's end. */
static void test_perf_map(void **state)
{
	char *jit = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct bench *b = *state;
	struct frame frame;
	char path[64], byte;
	FILE *map;

	assert_true(jit != MAP_FAILED);
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	map = fopen(path, "we");
	assert_non_null(map);
	fputs("1000 10 f\n", map);
	fclose(map);
	(void)get(b, 1);
	run_until(b, all_opened);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(
		address_space_resolve(b->cache, get(b, 1), (uint64_t)(uintptr_t)jit, &frame), 0);
	assert_int_equal(frame.image->kind, IMAGE_ANON);
	assert_true(image_perf_map(frame.image) >= 0);
	assert_int_equal(pread(image_perf_map(frame.image), &byte, 1, 0), 1);
	image_unref(frame.image);
	munmap(jit, 4096);
}

/* The name and the protection of a mapped file; whether it is the process's jitdump. */
struct jitdump_row {
	const char *name;
	const char *file; /* %d: the pid */
	int prot;
	bool is_jitdump;
};

static const struct jitdump_row jitdump_rows[] = {
	{"its own", "jit-%d.dump", PROT_READ | PROT_EXEC, true},
	{"its parent's", "jit-1.dump", PROT_READ | PROT_EXEC, true},
	{"no code", "jit-%d.dump", PROT_READ, false},
	{"another name", "jit-%d.dum", PROT_READ | PROT_EXEC, false},
	{"no number", "jit-%dx.dump", PROT_READ | PROT_EXEC, false},
};

/* The thread opens the jitdump with the list, by the mapping: the file may be deleted. */
static void test_jitdump(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(jitdump_rows); i++) {
		const struct jitdump_row *row = &jitdump_rows[i];
		char name[32], byte = 0;
		struct frame frame;
		struct bench *b;
		char *jit, *dump;
		void *own;
		int fd;

		row_begin(row->name);
		assert_int_equal(setup(&own), 0);
		b = own;
		// NOLINTNEXTLINE(clang-diagnostic-format-nonliteral): of the rows
		snprintf(name, sizeof(name), row->file, (int)getpid());
		tree_write(b->tree.fd, name, "JITDUMP");
		fd = openat(b->tree.fd, name, O_RDONLY | O_CLOEXEC);
		dump = mmap(NULL, 4096, row->prot, MAP_PRIVATE, fd, 0);
		jit = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		assert_true(dump != MAP_FAILED && jit != MAP_FAILED);
		close(fd);
		assert_int_equal(unlinkat(b->tree.fd, name, 0), 0);
		(void)get(b, 1);
		run_until(b, all_opened);
		assert_int_equal(address_space_resolve(b->cache, get(b, 1),
						       (uint64_t)(uintptr_t)jit, &frame),
				 0);
		assert_int_equal(frame.image->kind, IMAGE_ANON);
		fd = image_jitdump(frame.image);
		assert_int_equal(fd >= 0, row->is_jitdump);
		if (fd >= 0) {
			assert_int_equal(pread(fd, &byte, 1, 0), 1);
			assert_int_equal(byte, 'J');
		}
		image_unref(frame.image);
		munmap(jit, 4096);
		munmap(dump, 4096);
		assert_int_equal(teardown(&own), 0);
	}
}

/* Maps a jitdump that begins with @mark, and looks the code @jit of the program @exec_id up. The
 * caller owns the image. */
static struct image *image_with_dump(struct bench *b, char mark, uint64_t exec_id, const char *jit,
				     void **ret_dump)
{
	const struct address_space_who who = {.pid = b->self, .exec_id = exec_id, .owner = 1};
	const char text[] = {mark, 0};
	struct frame frame;
	char name[32];
	int fd;

	snprintf(name, sizeof(name), "jit-%d.dump", (int)getpid());
	tree_write(b->tree.fd, name, text);
	fd = openat(b->tree.fd, name, O_RDONLY | O_CLOEXEC);
	*ret_dump = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	assert_true(*ret_dump != MAP_FAILED);
	close(fd);
	assert_int_equal(unlinkat(b->tree.fd, name, 0), 0);
	(void)get_who(b, &who);
	run_until(b, all_opened);
	assert_int_equal(
		address_space_resolve(b->cache, get_who(b, &who), (uint64_t)(uintptr_t)jit, &frame),
		0);
	return frame.image;
}

/* Each program of a process has its own jitdump, and its own names. */
static void test_jitdump_after_exec(void **state)
{
	char *jit = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct image *images[2];
	struct bench *b = *state;
	void *dump;

	assert_true(jit != MAP_FAILED);
	for (uint64_t i = 0; i < 2; i++) {
		const char mark = (char)('A' + i);
		char byte = 0;

		images[i] = image_with_dump(b, mark, 1 + i, jit, &dump);
		assert_int_equal(pread(image_jitdump(images[i]), &byte, 1, 0), 1);
		assert_int_equal(byte, mark);
		munmap(dump, 4096);
	}
	assert_false(file_id_equal(&images[0]->id, &images[1]->id));
	image_unref(images[0]);
	image_unref(images[1]);
	munmap(jit, 4096);
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
	space = get_who(b, &who);
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
	assert_true(address_space_version(space) == version); /* the addresses were right */
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

struct slow_seen {
	size_t n_processes;
	uint64_t pid;
	uint64_t owner;
	size_t n_files;
	bool list;
	char path[4096];
};

static void on_slow(void *ctx, const struct address_space_slow *slow)
{
	struct slow_seen *seen = ctx;

	seen->n_processes++;
	seen->pid = slow->pid;
	seen->owner = slow->owner;
	seen->n_files = slow->n_files;
	seen->list = slow->list;
	snprintf(seen->path, sizeof(seen->path), "%s", slow->path ? slow->path : "");
}

static struct slow_seen slow_files(const struct bench *b)
{
	struct slow_seen seen = {0};

	address_space_cache_slow(b->cache, on_slow, &seen);
	return seen;
}

/* A file blocks the thread: all other files are opened, and the blocking file has the outcome
 * "slow" until its cooldown ends. */
static void test_blocked(void **state)
{
	const void *other_pc = (const void *)&test_blocked;
	struct bench *b = *state;
	struct frame slow, other, again;
	struct slow_seen seen;
	struct stat st;
	char *at = map_file(b, 1, &st);

	b->inode = st.st_ino;
	slow = resolve(b, at + 5);
	assert_int_equal(slow_files(b).n_processes, 0);
	other = resolve(b, other_pc);
	run_until(b, is_counted_hung);
	assert_int_equal(b->blocked, 1);
	assert_non_null(frame_settle(&other).image->file);
	assert_ptr_equal(frame_settle(&slow).image, slow.image);
	assert_int_equal(frame_settle(&slow).vaddr, 5);
	assert_int_equal(metric(b, "podprof_file_threads_blocked", ""), 1);
	assert_int_equal(metric(b, "podprof_images", "slow"), 1);
	assert_int_equal(metric(b, "podprof_resolved_pcs", "slow"), 1);
	seen = slow_files(b);
	assert_int_equal(seen.n_processes, 1);
	assert_int_equal(seen.n_files, 1);
	assert_string_equal(seen.path, slow.image->path);
	assert_true(seen.pid == (uint64_t)getpid() && !seen.list);
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

/* Without a sample, a limited number of files of a process is opened; files with samples always
 * are. */
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

/* ---------------------------------------------------------------- mapping lists */

/* A process that waits, with the mappings of the test. */
static struct pid_id start_child(struct bench *b, pid_t *ret)
{
	struct pid_id id;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		pause();
		_exit(0);
	}
	assert_int_equal(pid_read(&b->proc, pid, &id), 0);
	*ret = pid;
	return id;
}

static void end_child(pid_t pid)
{
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* An event of the process with that id, in the file of @st. */
static void send_event(struct bench *b, enum process_event_kind what, const struct pid_id *id,
		       uint64_t start, const struct stat *st)
{
	struct process_event event = {.what = what,
				      .pid = (uint32_t)id->pid,
				      .tid = (uint32_t)id->pid + (what == PROCESS_EVENT_MAP),
				      .time_ns = nsec_boot()};

	if (what == PROCESS_EVENT_BIRTH)
		event.time_ns = pid_ns_of_ticks(id->start_ticks) + 1;
	event.map = (struct maps_entry){.start = start,
					.limit = start + 4096,
					.device = st->st_dev,
					.inode = st->st_ino,
					.kind = MAPS_FILE};
	event.name = "/a";
	address_space_cache_event(b->cache, &event);
}

/* Without a sample, the files of a process that cannot be read are opened as well: the files in
 * events before the first look, and the file in a later event of a thread that outlived the leader.
 */
static void test_ahead_of_events(void **state)
{
	struct bench *b = *state;
	struct address_space_who who = {.exec_id = ADDRESS_SPACE_EXEC_ANY, .owner = 1};
	char *at[2];
	struct stat st[2];
	pid_t child;

	who.pid = start_child(b, &child);
	end_child(child);
	for (int i = 0; i < 2; i++)
		at[i] = map_file(b, i, &st[i]);
	send_event(b, PROCESS_EVENT_BIRTH, &who.pid, 0, &st[0]);
	send_event(b, PROCESS_EVENT_EXEC, &who.pid, 0, &st[0]);
	send_event(b, PROCESS_EVENT_MAP, &who.pid, 0x10000, &st[0]);
	send_event(b, PROCESS_EVENT_EXIT, &who.pid, 0, &st[0]);
	assert_true(address_space_gone(get_who(b, &who)));
	assert_int_equal(address_space_cache_opening(b->cache), 1);
	run_until(b, all_opened);
	send_event(b, PROCESS_EVENT_MAP, &who.pid, 0x20000, &st[1]);
	(void)get_who(b, &who);
	assert_int_equal(address_space_cache_opening(b->cache), 1);
	run_until(b, all_opened);
	for (int i = 0; i < 2; i++)
		munmap(at[i], 4096);
}

static bool is_blocked(struct bench *b)
{
	return b->blocked > 0;
}

static bool is_list_given_up(struct bench *b)
{
	return metric(b, "podprof_mapping_list_reads", "hung") > 0;
}

static bool has_list_returned(struct bench *b)
{
	return metric(b, "podprof_mapping_list_threads_blocked", "") == 0;
}

/* The list of one process blocks the thread: lists of other processes are read, and the list of
 * this process after it answers. */
static void test_list_blocked(void **state)
{
	struct bench *b = *state;
	struct address_space_who who = {.exec_id = ADDRESS_SPACE_EXEC_ANY, .owner = 2};
	struct address_space *space;
	struct slow_seen seen;
	struct frame frame;
	pid_t child;
	size_t n;

	who.pid = start_child(b, &child);
	b->pid = (uint64_t)child;
	assert_int_equal(address_space_cache_get(b->cache, &who, &space), 0);
	assert_true(address_space_reading(space));
	assert_true(address_space_opening(space));
	assert_true(address_space_version(space) == 0);
	run_until(b, is_blocked);
	assert_int_equal(address_space_cache_get(b->cache, &who, &space), 0); /* the loop goes on */
	assert_true(address_space_reading(space));

	address_space_mappings(get(b, 1), &n); /* behind it */
	assert_true(n > 0);
	assert_true(is_list_given_up(b));
	assert_int_equal(address_space_cache_get(b->cache, &who, &space), 0);
	assert_false(address_space_reading(space));
	assert_int_equal(
		address_space_resolve(b->cache, space, (uint64_t)(uintptr_t)&start_child, &frame),
		0);
	assert_int_equal(frame.image->kind, IMAGE_UNKNOWN);
	image_unref(frame.image);
	assert_int_equal(metric(b, "podprof_resolved_pcs", "slow"), 1);
	seen = slow_files(b);
	assert_int_equal(seen.n_processes, 1);
	assert_true(seen.list && !seen.n_files && !seen.path[0]);
	assert_true(seen.pid == (uint64_t)child && seen.owner == 2);
	assert_int_equal(metric(b, "podprof_mapping_list_threads_blocked", ""), 1);
	assert_int_equal(b->blocked, 1);

	b->pid = 0;
	sem_post(&b->gate);
	b->blocked = 0;
	run_until(b, has_list_returned);
	do {
		(void)get_who(b, &who);
		address_space_mappings(get_who(b, &who), &n);
	} while (!n);
	assert_int_equal(slow_files(b).n_processes, 0);
	end_child(child);
}

struct late_exec {
	struct bench *b;
	struct process_event event;
	int n; /* deliveries so far */
};

/* The event is there when the list has been read. */
static void catch_up(void *ctx)
{
	struct late_exec *late = ctx;

	if (late->n++ == 0)
		address_space_cache_event(late->b->cache, &late->event);
}

/* All events before the end of the read are known before the list is used: the list is not that of
 * the program that the process has left. */
static void test_list_of_another_program(void **state)
{
	struct bench *b = *state;
	struct late_exec late = {.b = b};
	struct address_space_who who = {.exec_id = 0, .owner = 2};
	struct process_event birth = {.what = PROCESS_EVENT_BIRTH};
	struct address_space *space;
	pid_t child;
	size_t n;

	who.pid = start_child(b, &child);
	who.start_ns = pid_ns_of_ticks(who.pid.start_ticks) + 1;
	birth.pid = birth.tid = (uint32_t)child;
	birth.time_ns = who.start_ns + 1;
	address_space_cache_event(b->cache, &birth);
	late.event = birth;
	late.event.what = PROCESS_EVENT_EXEC;
	late.event.time_ns = nsec_boot();
	address_space_cache_between(b->cache, late.event.time_ns, UINT64_MAX);
	assert_int_equal(address_space_cache_get(b->cache, &who, &space), 0);
	assert_true(address_space_reading(space));
	address_space_cache_follow(b->cache, catch_up, &late);
	space = get_who(b, &who);
	assert_true(late.n > 0);
	assert_true(address_space_gone(space));
	address_space_mappings(space, &n);
	assert_int_equal(n, 0);
	who.exec_id = 1;
	address_space_mappings(get_who(b, &who), &n);
	assert_true(n > 0);
	end_child(child);
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

static void block(void *ctx, uint64_t pid, const struct maps_entry *entry)
{
	struct line *l = ctx;

	(void)pid;
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

/* Open a blocking file of @owner on @device; wait until the opener gives up. */
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

/* Lets the @n blocked threads go on. */
static void return_all(struct line *l, unsigned int n)
{
	while (n--)
		sem_post(&l->gate);
	while (opener_n_blocked(l->opener))
		usleep(1000);
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
	/* the first failure counts against the file system, not against the owner */
	assert_int_equal(opener_refuses(l.opener, 2, 100, &until_ns), OPENER_ORIGIN);
	assert_int_equal(opener_refuses(l.opener, 1, 101, &until_ns), OPENER_OK);
	/* another file system of the same owner */
	open_blocking(&l, 1, 101);
	assert_int_equal(opener_refuses(l.opener, 1, 102, &until_ns), OPENER_OWNER);
	assert_int_equal(opener_refuses(l.opener, 2, 102, &until_ns), OPENER_OK);
	assert_int_equal(opener_n_blocked(l.opener), 2);

	/* a thread that comes back ends the first cooldown of its file system */
	return_all(&l, 2);
	assert_int_equal(opener_refuses(l.opener, 2, 100, &until_ns), OPENER_OK);
	assert_int_equal(opener_refuses(l.opener, 1, 102, &until_ns), OPENER_OWNER);
	assert_true(until_ns > nsec_monotonic());

	/* the number may belong to another file system by now, except for a blocked thread */
	open_blocking(&l, 1, 100);
	assert_int_equal(opener_refuses(l.opener, 2, 100, &until_ns), OPENER_ORIGIN);
	return_all(&l, 1);
	assert_int_equal(opener_refuses(l.opener, 1, 100, &until_ns), OPENER_ORIGIN);
	assert_int_equal(opener_refuses(l.opener, 2, 100, &until_ns), OPENER_OK);

	/* a second owner is a first failure again, a third one is a file system of many owners */
	open_blocking(&l, 2, 100);
	return_all(&l, 1);
	assert_int_equal(opener_refuses(l.opener, 3, 100, &until_ns), OPENER_OK);
	open_blocking(&l, 3, 100);
	return_all(&l, 1);
	assert_int_equal(opener_refuses(l.opener, 2, 100, &until_ns), OPENER_ORIGIN);
	assert_int_equal(opener_refuses(l.opener, 4, 100, &until_ns), OPENER_ORIGIN);

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

/* Three processes with many files do not use up the images: a program started later has all names.
 */
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

/* A container with many processes evicts processes of the same container, not of another container.
 */
static void test_space_shares(void **state)
{
	struct bench *b = *state;
	struct address_space_who who = {.pid = b->self};
	uint64_t version;

	who.owner = 2;
	who.exec_id = MANY;
	version = address_space_version(get_who(b, &who));
	who.owner = 1;
	for (who.exec_id = 0; who.exec_id < MANY; who.exec_id++)
		(void)get_who(b, &who);
	assert_true(metric(b, "podprof_address_spaces_dropped", "processes") +
			    metric(b, "podprof_address_spaces_dropped", "mappings") >
		    0);
	who.owner = 2;
	assert_true(address_space_version(get_who(b, &who)) == version);
	who.owner = 1;
	who.exec_id = 0;
	assert_true(address_space_version(get_who(b, &who)) > version + MANY); /* was dropped */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_opened_later, setup, teardown),
		cmocka_unit_test_setup_teardown(test_perf_map, setup, teardown),
		cmocka_unit_test(test_jitdump),
		cmocka_unit_test_setup_teardown(test_jitdump_after_exec, setup, teardown),
		cmocka_unit_test_setup_teardown(test_same_as_here, setup, teardown),
		cmocka_unit_test_setup_teardown(test_guess, setup, teardown),
		cmocka_unit_test_setup_teardown(test_blocked, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ahead, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ahead_of_events, setup, teardown),
		cmocka_unit_test_setup_teardown(test_list_blocked, setup, teardown),
		cmocka_unit_test_setup_teardown(test_list_of_another_program, setup, teardown),
		cmocka_unit_test_setup_teardown(test_blame, setup, teardown),
		cmocka_unit_test_setup_teardown(test_image_shares, setup, teardown),
		cmocka_unit_test_setup_teardown(test_space_shares, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
