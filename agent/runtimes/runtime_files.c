// SPDX-License-Identifier: Apache-2.0
#include "runtimes/runtime_files.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/file_id.h"
#include "base/hash.h"
#include "base/nsec.h"
#include "base/work_budget.h"
#include "elf/elffile.h"
#include "procmap/image.h"
#include "procmap/mapped.h"
#include "procmap/maps.h"

/* The work on one file: the symbol tables of a library of 500 MB are some 40 MB. */
#define PROBE_UNITS   (1ull << 30)
#define PROBE_CPU_NS  (2 * NSEC_PER_SEC)
/* The work on all files of a process. */
#define SEARCH_UNITS  (2ull << 30)
#define SEARCH_CPU_NS (3 * NSEC_PER_SEC)

struct entry {
	struct file_id id;
	int outcome;
	void *image; /* owned; NULL with RUNTIME_FILES_ABSENT */
	UT_hash_handle hh;
};

struct runtime_files {
	const struct runtime_probe *probe;
	struct entry *by_id;
	uint64_t n_probed;
};

static void entry_free(struct entry *e)
{
	if (!e)
		return;
	free(e->image);
	free(e);
}

DEFINE_CLEANUP(struct entry *, entry_freep, entry_free);

static void image_unrefp(struct image **image)
{
	image_unref(*image);
}

static void forget_all(struct runtime_files *files)
{
	struct entry *e, *next;

	HASH_ITER(hh, files->by_id, e, next) {
		HASH_DEL(files->by_id, e);
		entry_free(e);
	}
}

/* ---------------------------------------------------------------- one file */

/* *@ret is NULL for files of another kind than ELFFILE_OK. 0 or -errno. */
static int open_elf(int path_fd, struct elffile **ret)
{
	_cleanup_(close_fdp) int fd = -1;
	int r = mapped_open(path_fd, &fd);

	if (!r)
		r = elffile_open(fd, ret);
	if (!r)
		fd = -1; /* taken */
	return r < 0 ? r : 0;
}

/* An outcome of the probe; without @file there is no runtime. -errno. */
static int probe(const struct runtime_probe *by, const struct elffile *file,
		 struct work_budget *job, void *ret)
{
	_cleanup_(elffile_freep) struct elffile *of_job = NULL, *limited = NULL;
	struct work_budget work;
	int r;

	if (!file)
		return RUNTIME_FILES_ABSENT;
	work_budget_init(&work, PROBE_UNITS, PROBE_CPU_NS, NULL);
	r = elffile_budgeted(file, job, &of_job);
	if (!r)
		r = elffile_budgeted(of_job, &work, &limited);
	return r ? r : by->probe(limited, ret);
}

static int entry_new(const struct runtime_probe *by, const struct file_id *id,
		     const struct elffile *file, struct work_budget *job, struct entry **ret)
{
	_cleanup_(entry_freep) struct entry *e = calloc(1, sizeof(*e));

	if (e)
		e->image = calloc(1, by->bytes);
	if (!e || !e->image)
		return -ENOMEM;
	e->id = *id;
	e->outcome = probe(by, file, job, e->image);
	if (e->outcome < 0 || job->end)
		return e->outcome < 0 ? e->outcome : by->malformed;
	if (e->outcome == RUNTIME_FILES_ABSENT) {
		free(e->image);
		e->image = NULL;
	}
	*ret = take_ptr(e);
	return 0;
}

static int add(struct runtime_files *files, const struct file_id *id, const struct elffile *file,
	       struct work_budget *job, struct entry **ret)
{
	_cleanup_(entry_freep) struct entry *e = NULL;
	bool hash_oom = false;
	int r;

	files->n_probed++;
	r = entry_new(files->probe, id, file, job, &e);
	if (r)
		return r;
	if (HASH_COUNT(files->by_id) >= RUNTIME_FILES_MAX)
		forget_all(files);
	HASH_ADD(hh, files->by_id, id, sizeof(e->id), e);
	if (hash_oom)
		return -ENOMEM;
	*ret = take_ptr(e);
	return 0;
}

/* An outcome of the probe, with *@ret_image for a file with the runtime. */
static int get(struct runtime_files *files, int path_fd, struct work_budget *job,
	       const void **ret_image)
{
	_cleanup_(elffile_freep) struct elffile *file = NULL;
	struct file_id id;
	struct entry *e;
	struct stat st;
	int r;

	if (fstat(path_fd, &st) < 0)
		return RUNTIME_FILES_ABSENT;
	id = file_id_of_stat(&st);
	HASH_FIND(hh, files->by_id, &id, sizeof(id), e);
	if (!e) {
		r = open_elf(path_fd, &file);
		if (!r)
			r = add(files, &id, file, job, &e);
		if (r)
			return r == -ENOMEM ? r : RUNTIME_FILES_ABSENT;
	}
	*ret_image = e->image;
	return e->outcome;
}

/* ---------------------------------------------------------------- the files of a process */

/* The files that were met, by the mapping of each that is the nearest to the file's beginning. */
struct search {
	struct runtime_files *files;
	const struct root *proc;
	struct work_budget work;
	runtime_file_fn fn;
	void *ctx;
	const struct maps_entry *met[RUNTIME_FILES_TRIED];
	size_t n_met;
};

static bool same_file(const struct maps_entry *a, const struct maps_entry *b)
{
	return a->inode == b->inode && a->device == b->device;
}

/* A process may map a part of a file once more: V8 does so with its builtins, often below the
 * loader's mapping. The loader's one begins with the segment, so it comes first in the file, and
 * the bias is its. */
static void meet(struct search *s, const struct maps_entry *e)
{
	for (size_t i = s->n_met; i-- > 0;) {
		if (!same_file(s->met[i], e))
			continue;
		if (e->offset < s->met[i]->offset)
			s->met[i] = e;
		return;
	}
	if (s->n_met < RUNTIME_FILES_TRIED)
		s->met[s->n_met++] = e;
}

/* The bias of the file @path_fd at its mapping. */
static int find_bias(const struct search *s, int path_fd, const struct maps_entry *e, uint64_t *ret)
{
	_cleanup_(image_unrefp) struct image *image = NULL;
	_cleanup_(close_fdp) int fd = -1;
	int elf, r = mapped_open(path_fd, &fd);

	if (r)
		return r < 0 ? r : s->files->probe->gone;
	r = image_new_file(fd, e->path, &image, &elf);
	if (r)
		return r;
	fd = -1; /* taken */
	return image_bias(image, e->start, e->limit - e->start, e->offset, ret)
		       ? 0
		       : s->files->probe->malformed;
}

static int look_at(struct search *s, uint64_t via_pid, const struct maps_entry *e)
{
	struct runtime_file file = {.path = e->path};
	_cleanup_(close_fdp) int fd = -1;
	int r = mapped_find(s->proc, via_pid, e, &fd);

	if (r)
		return r < 0 ? r : RUNTIME_FILES_ABSENT;
	file.outcome = get(s->files, fd, &s->work, &file.image);
	if (file.outcome < 0 || file.outcome == RUNTIME_FILES_ABSENT)
		return file.outcome;
	if (!file.outcome)
		file.outcome = find_bias(s, fd, e, &file.bias);
	return file.outcome < 0 ? file.outcome : s->fn(s->ctx, &file);
}

static int look_at_all(struct search *s, const struct maps *maps)
{
	int found = RUNTIME_FILES_ABSENT;

	for (size_t i = 0; i < maps->n; i++)
		if (maps->items[i].kind == MAPS_FILE)
			meet(s, &maps->items[i]);
	for (size_t i = 0; i < s->n_met; i++) {
		int r;

		if (s->work.end)
			return found == RUNTIME_FILES_ABSENT ? s->files->probe->malformed : found;
		r = look_at(s, maps->via_pid, s->met[i]);
		if (r == RUNTIME_FILES_ABSENT)
			continue;
		found = r;
		if (r <= 0)
			break;
	}
	return found;
}

static int outcome_of_maps(const struct runtime_probe *by, int r)
{
	switch (r) {
	case MAPS_GONE:
		return by->gone;
	case MAPS_DENIED:
		return by->denied;
	default:
		return r <= 0 ? r : by->malformed;
	}
}

int runtime_files_search(struct runtime_files *files, const struct root *proc,
			 const struct pid_id *id, runtime_file_fn fn, void *ctx)
{
	struct search s = {.files = files, .proc = proc, .fn = fn, .ctx = ctx};
	struct maps maps = {.only_prot = MAPS_X};
	int r = outcome_of_maps(files->probe, maps_read(proc, id, &maps));

	work_budget_init(&s.work, SEARCH_UNITS, SEARCH_CPU_NS, NULL);
	if (!r)
		r = look_at_all(&s, &maps);
	maps_deinit(&maps);
	return r;
}

/* ---------------------------------------------------------------- life */

int runtime_files_new(const struct runtime_probe *probe, struct runtime_files **ret)
{
	*ret = calloc(1, sizeof(**ret));
	if (!*ret)
		return -ENOMEM;
	(*ret)->probe = probe;
	return 0;
}

void runtime_files_free(struct runtime_files *files)
{
	if (!files)
		return;
	forget_all(files);
	free(files);
}

bool runtime_files_examine(struct runtime_files *files, struct image *const *images, size_t n)
{
	struct work_budget work;
	size_t n_lacking = 0;
	struct entry *e;

	work_budget_init(&work, SEARCH_UNITS, SEARCH_CPU_NS, NULL);
	for (size_t i = 0; i < n && !work.end; i++) {
		HASH_FIND(hh, files->by_id, &images[i]->id, sizeof(images[i]->id), e);
		if (!e && add(files, &images[i]->id, images[i]->file, &work, &e))
			continue;
		if (e->outcome != RUNTIME_FILES_ABSENT)
			return false;
		n_lacking++;
	}
	return n && n_lacking == n;
}

bool runtime_files_lack(const struct runtime_files *files, const struct file_id *id)
{
	const struct entry *e;

	HASH_FIND(hh, files->by_id, id, sizeof(*id), e);
	return e && e->outcome == RUNTIME_FILES_ABSENT;
}

const void *runtime_files_image(const struct runtime_files *files, const struct file_id *id)
{
	const struct entry *e;

	HASH_FIND(hh, files->by_id, id, sizeof(*id), e);
	return e && !e->outcome ? e->image : NULL;
}

uint64_t runtime_files_probed(const struct runtime_files *files)
{
	return files->n_probed;
}
