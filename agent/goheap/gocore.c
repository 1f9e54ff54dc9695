// SPDX-License-Identifier: Apache-2.0
/*
 * A core names the mapped files by path, without a number that identifies a file. So podprof
 * compares the first bytes of a file with the core, because a core contains the first page of each
 * ELF file with the headers and the build id, unless /proc/PID/coredump_filter excludes the page.
 * Without that page, goruntime_check() still compares the runtime's own description with the file.
 *
 * Paths are untrusted: podprof opens only regular files, below the given directory. A core may have
 * 65,000 mappings and paths. A hash table finds the file of each mapping once, and a file has the
 * list of its mappings.
 */
#include "goheap/gocore.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/root.h"
#include "procmap/image.h"

/* Compared bytes at the beginning of a file. Fewer than CHECK_BYTES_LEAST prove nothing, because
 * ELF's own header is as long. */
#define CHECK_BYTES	  4096
#define CHECK_BYTES_LEAST 64

/* No further mapping of a file. */
#define NONE SIZE_MAX

/* A file with code. */
struct core_file {
	const char *path; /* the core's */
	struct image *image;
	enum gocore_file_state state;
	size_t first; /* mapping */
	UT_hash_handle hh;
};

/* One for each mapping of the core. */
struct core_mapping {
	struct core_file *file; /* NULL: without code, or beyond GOCORE_FILES_MAX */
	size_t next;		/* mapping of the file, by address */
};

struct gocore {
	struct corefile *core;
	struct core_file files[GOCORE_FILES_MAX];
	size_t n_files;
	struct core_file *by_path;
	struct core_mapping *mappings;
	struct image *unknown; /* for addresses outside of all files */
};

DEFINE_CLEANUP(struct gocore *, gocore_freep, gocore_free);

void gocore_free(struct gocore *core)
{
	if (!core)
		return;
	HASH_CLEAR(hh, core->by_path);
	for (size_t i = 0; i < core->n_files; i++)
		image_unref(core->files[i].image);
	free(core->mappings);
	image_unref(core->unknown);
	corefile_free(core->core);
	free(core);
}

/* ---------------------------------------------------------------- files */

/* Whether the first bytes in the core differ from the file's. */
static bool is_other(struct gocore *core, const struct core_file *file, const struct image *image)
{
	uint8_t theirs[CHECK_BYTES], ours[CHECK_BYTES];
	size_t n_mappings, n = 0;
	const struct corefile_mapping *m = corefile_mappings(core->core, &n_mappings);

	for (size_t i = file->first; i != NONE; i = core->mappings[i].next) {
		if (m[i].offset != 0)
			continue;
		if (memory_read_some(corefile_memory(core->core), m[i].start, theirs,
				     sizeof(theirs), &n) ||
		    n < CHECK_BYTES_LEAST)
			continue;
		if (image->id.size < n || elffile_read(image->file, 0, ours, n) ||
		    memcmp(theirs, ours, n) != 0)
			return true;
	}
	return false;
}

/* 0, also if the file is missing; 1 if it is a different file; -errno. */
static int try_file(struct gocore *core, const struct root *root, const char *path,
		    struct core_file *file)
{
	_cleanup_(close_fdp) int fd = -1;
	struct image *image;
	int r, elf;

	r = root_open_file(root, path, &fd);
	if (r)
		return r == -ENOMEM ? r : 0;
	r = image_new_file(fd, file->path, &image, &elf);
	if (r)
		return r;
	fd = -1;
	if (image->file && !is_other(core, file, image)) {
		file->image = image;
		file->state = GOCORE_FILE_OK;
		return 0;
	}
	image_unref(image);
	return 1;
}

/* Open a file. A file that cannot be opened has a name only, as in a live process. */
static int open_file(struct gocore *core, const struct gocore_opts *opts, struct core_file *file)
{
	const struct root here = {.fd = AT_FDCWD};
	const char *path = file->path;
	int r;

	while (*path == '/')
		path++;
	r = *path ? try_file(core, opts->sysroot, path, file) : 0;
	if (r > 0)
		file->state = GOCORE_FILE_OTHER;
	if (r >= 0 && !file->image && opts->executable)
		r = try_file(core, &here, opts->executable, file);
	if (r < 0 || file->image)
		return r < 0 ? r : 0;
	return image_new(IMAGE_FILE, file->path, &file->image);
}

static struct core_file *find_file(const struct gocore *core, const char *path)
{
	struct core_file *file;

	HASH_FIND_STR(core->by_path, path, file);
	return file;
}

/* The files with code, by address. */
static int list_files(struct gocore *core, const struct corefile_mapping *m, size_t n)
{
	for (size_t i = 0; i < n && core->n_files < GOCORE_FILES_MAX; i++) {
		struct core_file *file = &core->files[core->n_files];
		bool hash_oom = false;

		if (!m[i].code || find_file(core, m[i].path))
			continue;
		*file = (struct core_file){
			.path = m[i].path, .state = GOCORE_FILE_MISSING, .first = NONE};
		HASH_ADD_KEYPTR(hh, core->by_path, file->path, strlen(file->path), file);
		if (hash_oom)
			return -ENOMEM;
		core->n_files++;
	}
	return 0;
}

/* The file of each mapping, with code and without. */
static int list_mappings(struct gocore *core, const struct corefile_mapping *m, size_t n)
{
	core->mappings = calloc(n + 1, sizeof(*core->mappings));
	if (!core->mappings)
		return -ENOMEM;
	for (size_t i = n; i-- > 0;) {
		struct core_file *file = find_file(core, m[i].path);

		core->mappings[i] = (struct core_mapping){file, file ? file->first : NONE};
		if (file)
			file->first = i;
	}
	return 0;
}

/* The core reads missing bytes from @file. */
static void attach_file(struct gocore *core, const struct core_file *file)
{
	if (!file->image->file)
		return;
	for (size_t i = file->first; i != NONE; i = core->mappings[i].next)
		corefile_attach(core->core, i, file->image->file);
}

/* All files are compared with the core before the first is attached to the core. */
static int open_files(struct gocore *core, const struct gocore_opts *opts)
{
	size_t n;
	const struct corefile_mapping *m = corefile_mappings(core->core, &n);
	int r = list_files(core, m, n);

	if (!r)
		r = list_mappings(core, m, n);
	for (size_t i = 0; !r && i < core->n_files; i++)
		r = open_file(core, opts, &core->files[i]);
	for (size_t i = 0; !r && i < core->n_files; i++)
		attach_file(core, &core->files[i]);
	return r;
}

int gocore_open(const struct gocore_opts *opts, struct gocore **ret)
{
	_cleanup_(gocore_freep) struct gocore *core = calloc(1, sizeof(*core));
	int fd, r;

	if (!core)
		return -ENOMEM;
	fd = fcntl(opts->fd, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	r = corefile_open(fd, &core->core);
	if (r) {
		close(fd);
		return r;
	}
	r = image_new(IMAGE_UNKNOWN, "[unknown]", &core->unknown);
	if (!r)
		r = open_files(core, opts);
	if (r)
		return r;
	*ret = take_ptr(core);
	return 0;
}

struct memory *gocore_memory(struct gocore *core)
{
	return corefile_memory(core->core);
}

const char *gocore_file(const struct gocore *core, size_t i, enum gocore_file_state *ret_state)
{
	if (i >= core->n_files)
		return NULL;
	*ret_state = core->files[i].state;
	return core->files[i].path;
}

/* ---------------------------------------------------------------- runtimes */

/* The bias by the first mapping with code; false if no mapping fits the file. */
static bool bias_of_file(struct gocore *core, const struct core_file *file, uint64_t *ret)
{
	size_t n;
	const struct corefile_mapping *m = corefile_mappings(core->core, &n);

	for (size_t i = file->first; i != NONE; i = core->mappings[i].next)
		if (m[i].code &&
		    image_bias(file->image, m[i].start, m[i].limit - m[i].start, m[i].offset, ret))
			return true;
	return false;
}

static int read_runtime(struct gocore *core, const struct core_file *file, struct goruntime *ret)
{
	int r = goruntime_file_read(file->image->file, &ret->file);

	if (r < 0 || r == GORUNTIME_NO_RUNTIME)
		return r;
	ret->id = file->image->id;
	snprintf(ret->name, sizeof(ret->name), "%s", image_name(file->image));
	if (r == GORUNTIME_OK && !bias_of_file(core, file, &ret->bias))
		r = GORUNTIME_UNKNOWN_LAYOUT;
	if (r == GORUNTIME_OK)
		r = goruntime_check(ret, corefile_memory(core->core));
	if (r >= 0)
		ret->state = (enum goruntime_state)r;
	return r;
}

int gocore_runtimes(struct gocore *core, struct goruntimes *ret)
{
	const struct goruntime *first;

	ret->n = ret->n_left_out = 0;
	for (size_t i = 0; i < core->n_files; i++) {
		struct goruntime rt = {0};
		int r = core->files[i].image->file ? read_runtime(core, &core->files[i], &rt)
						   : GORUNTIME_NO_RUNTIME;

		if (r < 0)
			return r;
		if (r == GORUNTIME_NO_RUNTIME)
			continue;
		if (ret->n == GORUNTIMES_MAX)
			ret->n_left_out++;
		else
			ret->items[ret->n++] = rt;
	}
	first = goruntimes_first(ret);
	return first ? (int)first->state : GORUNTIME_NO_RUNTIME;
}

/* ---------------------------------------------------------------- frames */

/* The mapping that holds @pc, NONE if there is none; they ascend. */
static size_t find_mapping(const struct gocore *core, uint64_t pc)
{
	size_t low = 0, high;
	const struct corefile_mapping *m = corefile_mappings(core->core, &high);

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (m[mid].start <= pc)
			low = mid + 1;
		else
			high = mid;
	}
	return low && pc < m[low - 1].limit ? low - 1 : NONE;
}

int gocore_resolve(void *gocore, uint64_t pc, struct frame *ret)
{
	struct gocore *core = gocore;
	const size_t i = find_mapping(core, pc);
	const struct core_file *file = i != NONE ? core->mappings[i].file : NULL;
	const struct corefile_mapping *m;
	uint64_t bias;
	size_t n;

	*ret = (struct frame){image_ref(core->unknown), pc};
	if (!file)
		return 0;
	m = &corefile_mappings(core->core, &n)[i];
	if (!image_bias(file->image, m->start, m->limit - m->start, m->offset, &bias))
		bias = m->start - m->offset; /* no file: use the offset */
	image_unref(ret->image);
	*ret = (struct frame){image_ref(file->image), pc - bias};
	return 0;
}
