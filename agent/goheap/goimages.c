// SPDX-License-Identifier: Apache-2.0
/*
 * The cache holds no file open: a node has some ten thousand files mapped as code.
 *
 * A file is read once, but a container can map files faster than they are read: a sparse file of
 * 256 MiB takes half a second of CPU, and changing a file's mode makes it another file. So the
 * files of one container have a budget, without which the other containers would have no profiles.
 */
#include "goheap/goimages.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/file_id.h"
#include "base/hash.h"
#include "base/work_budget.h"
#include "elf/elffile.h"
#include "procmap/mapped.h"

/* Files remembered, 150 bytes each and 850 more for Go's. Reached: a file is read anew for each
 * process. */
#define GOIMAGES_MAX 16384

struct entry {
	struct goimage image;	     /* borrows @file; the key is its id */
	struct goruntime_file *file; /* owned; NULL for a file without Go */
	unsigned int round;	     /* of the last request */
	UT_hash_handle hh;
};

struct goimages {
	struct entry *by_id;
	struct entry *last; /* an entry without room in the table; freed by the next call */
	size_t n_go;
	unsigned int round;
	uint64_t n_looks;
	uint64_t spent; /* units of work since goimages_begin() */
	size_t n_files; /* the same of files */
};

static void entry_free(struct entry *e)
{
	if (!e)
		return;
	free(e->file);
	free(e);
}

DEFINE_CLEANUP(struct entry *, entry_freep, entry_free);

static void forget_last(struct goimages *images)
{
	entry_free(images->last);
	images->last = NULL;
}

/* Measures the work, without a limit: goruntime_file_read() has one. */
int goimages_read(struct goimages *images, const struct elffile *ef, struct goruntime_file *ret)
{
	_cleanup_(elffile_freep) struct elffile *metered = NULL;
	struct work_budget work;
	int r;

	if (images->spent >= GOIMAGES_WORK)
		return GORUNTIME_TOO_LARGE;
	work_budget_init(&work, UINT64_MAX, 0, NULL);
	work.cpu_ns = UINT64_MAX;
	r = elffile_budgeted(ef, &work, &metered);
	if (!r)
		r = goruntime_file_read(metered, ret);
	images->spent += work.spent;
	return r;
}

/* 0 or -errno. */
static int look(struct goimages *images, int path_fd, struct goimage *image,
		struct goruntime_file *ret)
{
	_cleanup_(elffile_freep) struct elffile *ef = NULL;
	_cleanup_(close_fdp) int fd = -1;
	struct elffile_section section;
	int r = mapped_open(path_fd, &fd);

	if (!r)
		r = elffile_open(fd, &ef);
	if (r)
		return r < 0 ? r : 0;
	fd = -1; /* taken */
	r = goimages_read(images, ef, ret);
	if (r < 0)
		return r;
	image->state = (enum goruntime_state)r;
	image->machine = elffile_machine(ef);
	image->is_bare = r == GORUNTIME_NO_RUNTIME && elffile_section_at(ef, 1, &section) != 0;
	return 0;
}

/* 0 or -errno. Files that cannot be read now are not remembered. */
static int entry_new(struct goimages *images, const struct file_id *id, int path_fd,
		     struct entry **ret)
{
	_cleanup_(entry_freep) struct entry *e = calloc(1, sizeof(*e));
	struct goruntime_file file;
	int r;

	if (!e)
		return -ENOMEM;
	e->image = (struct goimage){.id = *id, .state = GORUNTIME_NO_RUNTIME};
	r = look(images, path_fd, &e->image, &file);
	if (r)
		return r;
	if (e->image.state == GORUNTIME_OK || e->image.state == GORUNTIME_UNKNOWN_LAYOUT) {
		e->file = malloc(sizeof(file));
		if (!e->file)
			return -ENOMEM;
		*e->file = file;
		e->image.file = e->file;
	}
	*ret = take_ptr(e);
	return 0;
}

static void drop(struct goimages *images, struct entry *e)
{
	images->n_go -= e->file != NULL;
	HASH_DEL(images->by_id, e);
	entry_free(e);
}

/* Takes @e on success: into the table or, without room there, until the next call. */
static int keep(struct goimages *images, struct entry *e)
{
	bool hash_oom = false;

	if (HASH_COUNT(images->by_id) >= GOIMAGES_MAX) {
		images->last = e;
		return 0;
	}
	HASH_ADD(hh, images->by_id, image.id, sizeof(e->image.id), e);
	if (hash_oom)
		return -ENOMEM;
	images->n_go += e->file != NULL;
	return 0;
}

/* Read a file and keep the result; *@ret is borrowed. */
static int look_and_keep(struct goimages *images, const struct file_id *id, int path_fd,
			 struct entry **ret)
{
	_cleanup_(entry_freep) struct entry *e = NULL;
	int r;

	images->n_looks++;
	r = entry_new(images, id, path_fd, &e);
	if (!r)
		r = keep(images, e);
	if (!r)
		*ret = take_ptr(e);
	return r;
}

int goimages_get(struct goimages *images, int path_fd, const struct goimage **ret)
{
	struct file_id id;
	struct stat st;
	struct entry *e;
	int r;

	forget_last(images);
	if (fstat(path_fd, &st) < 0)
		return GORUNTIME_NO_RUNTIME;
	id = file_id_of_stat(&st);
	HASH_FIND(hh, images->by_id, &id, sizeof(id), e);
	if (!e && images->spent >= GOIMAGES_WORK)
		return GORUNTIME_TOO_LARGE;
	if (!e) {
		r = look_and_keep(images, &id, path_fd, &e);
		if (r)
			return r == -ENOMEM ? r : GORUNTIME_NO_RUNTIME;
	}
	e->round = images->round;
	*ret = &e->image;
	return 0;
}

void goimages_begin(struct goimages *images)
{
	images->spent = 0;
	images->n_files = 0;
}

void goimages_count(struct goimages *images)
{
	images->n_files++;
}

bool goimages_full(const struct goimages *images)
{
	return images->n_files >= GOIMAGES_FILES_MAX;
}

void goimages_sweep(struct goimages *images)
{
	struct entry *e, *next;

	forget_last(images);
	images->round++;
	HASH_ITER(hh, images->by_id, e, next)
		if (images->round - e->round > GOIMAGES_KEEP_ROUNDS)
			drop(images, e);
}

int goimages_new(struct goimages **ret)
{
	*ret = calloc(1, sizeof(**ret));
	return *ret ? 0 : -ENOMEM;
}

void goimages_free(struct goimages *images)
{
	struct entry *e, *next;

	if (!images)
		return;
	forget_last(images);
	HASH_ITER(hh, images->by_id, e, next)
		drop(images, e);
	free(images);
}

size_t goimages_bytes(const struct goimages *images)
{
	return sizeof(*images) + HASH_COUNT(images->by_id) * sizeof(struct entry) +
	       images->n_go * sizeof(struct goruntime_file) + HASH_OVERHEAD(hh, images->by_id);
}

uint64_t goimages_looks(const struct goimages *images)
{
	return images->n_looks;
}
