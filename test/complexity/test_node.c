// SPDX-License-Identifier: Apache-2.0
/* What the kernel tells of processes and cgroups: agent/procmap, agent/discovery. */
#include "support/test.h"

#include <string.h>

#include "base/buf.h"
#include "base/loop.h"
#include "base/nsec.h"
#include "base/root.h"
#include "base/strview.h"
#include "complexity/count.h"
#include "complexity/growth.h"
#include "discovery/cgroup.h"
#include "discovery/cgroupdir.h"
#include "discovery/unit.h"
#include "procmap/address_space.h"
#include "procmap/images.h"
#include "procmap/maps.h"
#include "procmap/process_history.h"

/* ---------------------------------------------------------------- mappings */

static uint64_t run_maps(struct buf *text)
{
	struct maps maps = {.n = 0};
	uint64_t before = count_now();

	assert_int_equal(maps_parse(text->data, text->len, &maps), 0);
	before = count_now() - before;
	maps_deinit(&maps);
	buf_deinit(text);
	return before;
}

/* Paths of newlines, which the kernel escapes. */
static uint64_t maps_newlines(size_t n)
{
	struct buf text = BUF_INIT(64u << 20);

	for (size_t i = 0; i < n; i++) {
		assert_int_equal(
			buf_printf(&text, "%zx-%zx r-xp 0 08:01 7 /", i << 12, (i + 1) << 12), 0);
		for (size_t k = 0; k < 255; k++)
			assert_int_equal(buf_puts(&text, "\\012"), 0);
		assert_int_equal(buf_puts(&text, "\n"), 0);
	}
	return run_maps(&text);
}

/* Each lies before the one before, as with a process that maps and unmaps during the read. */
static uint64_t maps_backwards(size_t n)
{
	struct buf text = BUF_INIT(64u << 20);

	for (size_t i = n; i-- > 0;)
		assert_int_equal(buf_printf(&text, "%zx-%zx r-xp 0 08:01 7 /a\n", i << 12,
					    (2 * n - i) << 12),
				 0);
	return run_maps(&text);
}

/* The events of a process, each about another file, over a long list. */
static uint64_t history_maps(size_t n)
{
	struct process_event event = {.what = PROCESS_EVENT_BIRTH, .pid = 7, .tid = 7, .ppid = 6};
	struct buf text = BUF_INIT(64u << 20);
	struct process_history *history;
	struct maps maps = {.n = 0};
	char name[32];
	uint64_t before;

	for (size_t i = 0; i < n; i++)
		assert_int_equal(
			buf_printf(&text, "%zx-%zx r-xp 0 08:01 7 /a\n", i << 12, (i + 1) << 12),
			0);
	assert_int_equal(maps_parse(text.data, text.len, &maps), 0);
	assert_int_equal(process_history_new(&history), 0);
	event.name = "";
	assert_true(process_history_add(history, &event));
	before = count_now();
	for (size_t i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "/b%zu", i);
		event.what = PROCESS_EVENT_MAP;
		event.time_ns = i + 1;
		event.name = name;
		event.map = (struct maps_entry){.start = (n - 1 - i) << 12,
						.limit = ((n - i) << 12) + 16,
						.device = 8,
						.inode = 7};
		assert_true(process_history_add(history, &event));
	}
	assert_int_equal(history_record_add_maps(process_history_find(history, 7, 0), 0, 0,
						 UINT64_MAX, &maps),
			 0);
	before = count_now() - before;
	process_history_free(history);
	maps_deinit(&maps);
	buf_deinit(&text);
	return before;
}

/* Processes that map files with long names, above the ceiling of memory. */
static uint64_t history_bytes(size_t n)
{
	enum { NAME = 4000, MAPS = 8 };
	struct process_event event = {.ppid = 6};
	struct process_history *history;
	char name[NAME + 1];
	uint64_t before;

	memset(name, 'x', NAME);
	name[NAME] = '\0';
	event.name = name;
	assert_int_equal(process_history_new(&history), 0);
	before = count_now();
	for (size_t i = 0; i < n * MAPS; i++) {
		event.pid = event.tid = (uint32_t)(i / MAPS) + 10;
		event.time_ns = i + 1;
		event.what = i % MAPS ? PROCESS_EVENT_MAP : PROCESS_EVENT_BIRTH;
		event.map = (struct maps_entry){
			.start = i << 12, .limit = (i + 1) << 12, .device = 8, .inode = i};
		assert_true(process_history_add(history, &event));
	}
	before = count_now() - before;
	process_history_free(history);
	return before;
}

/* Processes that have the pid of one after the other, and samples of them. */
static uint64_t history_pid(size_t n)
{
	struct process_event event = {.pid = 7, .tid = 7, .ppid = 6, .name = ""};
	struct process_history *history;
	uint64_t before;

	assert_int_equal(process_history_new(&history), 0);
	before = count_now();
	for (size_t i = 0; i < n; i++) {
		event.time_ns = (i + 1) * NSEC_PER_MSEC;
		event.what = PROCESS_EVENT_BIRTH;
		assert_true(process_history_add(history, &event));
		assert_non_null(process_history_find(history, 7, event.time_ns - 1));
		event.what = PROCESS_EVENT_EXIT;
		assert_true(process_history_add(history, &event));
	}
	process_history_sweep(history, UINT64_MAX);
	before = count_now() - before;
	process_history_free(history);
	return before;
}

/* ---------------------------------------------------------------- images */

/* Files to be closed, behind as many of a file system that does not answer. */
static uint64_t images_silent(size_t n)
{
	static const uint64_t silent = 2;
	const struct images_way way = {.via_pid = 0};
	struct root proc = ROOT_INIT;
	struct images *images;
	struct image *image;
	uint64_t before;

	assert_int_equal(root_open("/proc", &proc), 0);
	assert_int_equal(images_new(&proc, &images), 0);
	for (size_t i = 0; i < 2 * n; i++) {
		const struct maps_entry entry = {.start = i << 12,
						 .limit = (i + 1) << 12,
						 .device = 1 + i / n,
						 .inode = i + 1,
						 .prot = MAPS_X,
						 .kind = MAPS_FILE,
						 .path = "/f"};

		assert_int_equal(images_of_record(images, &way, &entry, &image), 0);
		assert_ptr_not_equal(image, images_full(images));
		image_unref(image);
	}
	images_evict_unused(images);
	before = count_now();
	while ((image = images_take_unused(images, &silent, 1)))
		image_unref(image);
	before = count_now() - before;
	images_unref(images);
	root_deinit(&proc);
	return before;
}

/* ---------------------------------------------------------------- address spaces */

/* Samples of @n processes, of @n_owners containers; 0: of no known one. */
static void sample_processes(struct address_space_cache *cache, size_t n, size_t n_owners)
{
	struct address_space *space;

	for (size_t i = 0; i < n; i++) {
		const struct address_space_who who = {.pid = {.pid = i + 1, .start_ticks = i + 1},
						      .start_ns = i + 1,
						      .exec_id = 1,
						      .owner = n_owners ? 1 + i % n_owners : 0};

		assert_int_equal(address_space_cache_get(cache, &who, &space), 0);
	}
}

/* Processes that have ended before their samples, of @n_owners containers. With @n above 8192, the
 * ceiling, the owner with the most gives way. */
static uint64_t run_spaces(size_t n, size_t n_owners)
{
	struct address_space_cache *cache;
	struct root proc = ROOT_INIT;
	uint64_t before;

	assert_int_equal(root_open("/sys", &proc), 0); /* has no processes */
	assert_int_equal(address_space_cache_new(&proc, &cache), 0);
	before = count_now();
	sample_processes(cache, n, n_owners);
	before = count_now() - before;
	address_space_cache_free(cache);
	root_deinit(&proc);
	return before;
}

/* Above the share of a container. */
static uint64_t spaces_of_one(size_t n)
{
	return run_spaces(n, 1);
}

static uint64_t spaces_of_many(size_t n)
{
	return run_spaces(n, n);
}

/* Processes of as many containers, whose mapping lists a thread reads. */
static uint64_t spaces_of_lists(size_t n)
{
	struct address_space_files files = {.loop = NULL};
	struct address_space_cache *cache;
	struct root proc = ROOT_INIT;
	uint64_t before;

	assert_int_equal(root_open("/sys", &proc), 0);
	assert_int_equal(address_space_cache_new(&proc, &cache), 0);
	assert_int_equal(loop_new(&files.loop), 0);
	assert_int_equal(address_space_cache_open_behind(cache, &files), 0);
	before = count_now();
	sample_processes(cache, n, n);
	while (address_space_cache_opening(cache))
		address_space_cache_wait(cache, NSEC_PER_SEC);
	before = count_now() - before;
	address_space_cache_free(cache);
	loop_free(files.loop);
	root_deinit(&proc);
	return before;
}

/* Sampled processes older than the events, which then execute another program. */
static uint64_t spaces_execute(size_t n)
{
	struct address_space_cache *cache;
	struct root proc = ROOT_INIT;
	uint64_t before;

	assert_int_equal(root_open("/sys", &proc), 0);
	assert_int_equal(address_space_cache_new(&proc, &cache), 0);
	before = count_now();
	sample_processes(cache, n, 0);
	for (size_t i = 0; i < n; i++) {
		const struct process_event event = {.what = PROCESS_EVENT_EXEC,
						    .pid = (uint32_t)i + 1,
						    .tid = (uint32_t)i + 1,
						    .time_ns = i + 1,
						    .name = ""};

		address_space_cache_event(cache, &event);
	}
	before = count_now() - before;
	address_space_cache_free(cache);
	root_deinit(&proc);
	return before;
}

/* ---------------------------------------------------------------- cgroups */

static uint64_t run_cgroup(struct buf *text)
{
	struct strview t = strview_of_bytes(text->data, text->len);
	uint64_t before = count_now();
	struct cgroup_id id;
	struct unit unit;

	cgroup_parse(t, &id);
	(void)!unit_of_path(t, &unit);
	(void)!unit_of_proc(t, &unit);
	before = count_now() - before;
	buf_deinit(text);
	return before;
}

/* Containers inside containers, each in a pod of its own. */
static uint64_t cgroup_nested(size_t n)
{
	struct buf text = BUF_INIT(64u << 20);

	for (size_t i = 0; i < n; i++)
		assert_int_equal(
			buf_printf(&text,
				   "/kubepods-burstable-pod%08zx_0000_0000_0000_000000000000.slice"
				   "/cri-containerd-%064zx.scope",
				   i, i),
			0);
	return run_cgroup(&text);
}

/* One directory whose name has all words of the kubelet's. */
static uint64_t cgroup_words(size_t n)
{
	struct buf text = BUF_INIT(64u << 20);

	assert_int_equal(buf_puts(&text, "/kubepods"), 0);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(buf_puts(&text, "-kubepods-burstable-pod"), 0);
	assert_int_equal(buf_puts(&text, ".slice/user@1000.service/a.service"), 0);
	return run_cgroup(&text);
}

/* Hierarchies without an end. */
static uint64_t cgroup_lines(size_t n)
{
	struct buf text = BUF_INIT(64u << 20);

	for (size_t i = 0; i < n; i++)
		assert_int_equal(buf_printf(&text, "%zu:a%zu:/docker/%064zx\n", i + 1, i, i), 0);
	return run_cgroup(&text);
}

/* A container's directories beside each other, seen twice, and removed. */
static uint64_t cgroupdir_children(size_t n)
{
	struct cgroupdir_table t = {.grace_ns = UINT64_MAX};
	struct hierarchy_child child = {.name = "", .id = 1};
	struct cgroupdir *root, *container, *dir;
	char name[80];
	uint64_t before;

	assert_int_equal(cgroupdir_see(&t, HIERARCHY_V2, NULL, &child, &root), 0);
	snprintf(name, sizeof(name), "docker-%064x.scope", 7);
	child = (struct hierarchy_child){.name = name, .id = 2};
	assert_int_equal(cgroupdir_see(&t, HIERARCHY_V2, root, &child, &container), 0);
	before = count_now();
	for (size_t i = 0; i < 2 * n; i++) {
		snprintf(name, sizeof(name), "%060zu", i % n);
		child.id = 3 + i % n;
		assert_int_equal(cgroupdir_see(&t, HIERARCHY_V2, container, &child, &dir), 0);
	}
	cgroupdir_remove(&t, container);
	cgroupdir_deinit(&t);
	return count_now() - before;
}

/* The names of events about a container's directories. */
static uint64_t cgroupdir_names(size_t n)
{
	struct cgroupdir_table t = {.grace_ns = UINT64_MAX};
	struct hierarchy_child child = {.name = "", .id = 1};
	struct cgroupdir *root, *dir;
	char name[32];
	uint64_t before;

	assert_int_equal(cgroupdir_see(&t, HIERARCHY_V2, NULL, &child, &root), 0);
	before = count_now();
	for (size_t i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "%zu", i);
		child = (struct hierarchy_child){.name = name, .id = 2 + i};
		assert_int_equal(cgroupdir_see(&t, HIERARCHY_V2, root, &child, &dir), 0);
	}
	for (size_t i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "%zu", i);
		assert_non_null(cgroupdir_child(&t, root, name));
	}
	before = count_now() - before;
	cgroupdir_deinit(&t);
	return before;
}

static const struct growth rows[] = {
	{"maps: paths of newlines", maps_newlines, 512, GROWS},
	{"maps: mappings backwards", maps_backwards, 4096, GROWS},
	{"process_history: mappings of a process", history_maps, 1024, GROWS},
	{"process_history: long names of files", history_bytes, 1024, GROWS},
	{"process_history: processes of one pid", history_pid, 1024, GROWS},
	{"images: files of a silent file system", images_silent, 256, GROWS},
	{"space_mappings: processes of a container", spaces_of_one, 2048, GROWS},
	{"space_mappings: containers, above the ceiling", spaces_of_many, 2048, GROWS},
	{"space_threads: lists of as many containers", spaces_of_lists, 1024, GROWS},
	{"space_history: execs of older processes", spaces_execute, 1024, GROWS},
	{"cgroup: containers in containers", cgroup_nested, 64, GROWS},
	{"cgroup: words of one name", cgroup_words, 512, GROWS},
	{"cgroup: hierarchies", cgroup_lines, 256, GROWS},
	{"cgroupdir: directories of a container", cgroupdir_children, 256, GROWS},
	{"cgroupdir: names of directories", cgroupdir_names, 1024, GROWS},
};

int main(void)
{
	return growth_main(rows, array_size(rows));
}
