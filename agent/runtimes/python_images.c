// SPDX-License-Identifier: Apache-2.0
#include "runtimes/python_images.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/file_id.h"
#include "base/hash.h"
#include "base/nsec.h"
#include "base/work_budget.h"
#include "elf/elffile.h"
#include "procmap/mapped.h"

/* The work on one file: the symbol tables of a library of 500 MB are some 40 MB. */
#define PROBE_UNITS  (1ull << 30)
#define PROBE_CPU_NS (2 * NSEC_PER_SEC)

struct entry {
	struct file_id id;
	int outcome;
	uint16_t version;
	uint32_t release;
	struct python_image *image; /* owned; NULL unless PYTHON_OK */
	UT_hash_handle hh;
};

struct python_images {
	struct entry *by_id;
	struct python_image last; /* of an image without layout: its release */
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

static void forget_all(struct python_images *images)
{
	struct entry *e, *next;

	HASH_ITER(hh, images->by_id, e, next) {
		HASH_DEL(images->by_id, e);
		entry_free(e);
	}
}

/* An outcome of the probe; ELFFILE_ABSENT's kind of files have no interpreter. -errno. */
static int probe(int path_fd, struct work_budget *job, struct python_image *ret)
{
	_cleanup_(elffile_freep) struct elffile *file = NULL, *of_job = NULL, *limited = NULL;
	_cleanup_(close_fdp) int fd = -1;
	struct work_budget work;
	int r = mapped_open(path_fd, &fd);

	if (!r)
		r = elffile_open(fd, &file);
	if (r)
		return r < 0 ? r : PYTHON_ABSENT;
	fd = -1; /* taken */
	work_budget_init(&work, PROBE_UNITS, PROBE_CPU_NS, NULL);
	r = elffile_budgeted(file, job, &of_job);
	if (!r)
		r = elffile_budgeted(of_job, &work, &limited);
	return r ? r : python_image_probe(limited, ret);
}

static int entry_new(const struct file_id *id, int path_fd, struct work_budget *job,
		     struct entry **ret)
{
	_cleanup_(entry_freep) struct entry *e = calloc(1, sizeof(*e));
	struct python_image image = {0};

	if (!e)
		return -ENOMEM;
	e->id = *id;
	e->outcome = probe(path_fd, job, &image);
	if (e->outcome < 0 || job->end)
		return e->outcome < 0 ? e->outcome : PYTHON_MALFORMED;
	e->version = image.layout.version;
	e->release = image.layout.release;
	if (e->outcome == PYTHON_OK) {
		e->image = malloc(sizeof(image));
		if (!e->image)
			return -ENOMEM;
		*e->image = image;
	}
	*ret = take_ptr(e);
	return 0;
}

static int add(struct python_images *images, const struct file_id *id, int path_fd,
	       struct work_budget *job, struct entry **ret)
{
	_cleanup_(entry_freep) struct entry *e = NULL;
	bool hash_oom = false;
	int r;

	images->n_probed++;
	r = entry_new(id, path_fd, job, &e);
	if (r)
		return r;
	if (HASH_COUNT(images->by_id) >= PYTHON_IMAGES_MAX)
		forget_all(images);
	HASH_ADD(hh, images->by_id, id, sizeof(e->id), e);
	if (hash_oom)
		return -ENOMEM;
	*ret = take_ptr(e);
	return 0;
}

int python_images_get(struct python_images *images, int path_fd, struct work_budget *job,
		      const struct python_image **ret)
{
	struct file_id id;
	struct entry *e;
	struct stat st;
	int r;

	if (fstat(path_fd, &st) < 0)
		return PYTHON_ABSENT;
	id = file_id_of_stat(&st);
	HASH_FIND(hh, images->by_id, &id, sizeof(id), e);
	if (!e) {
		r = add(images, &id, path_fd, job, &e);
		if (r)
			return r == -ENOMEM ? r : PYTHON_ABSENT;
	}
	images->last =
		(struct python_image){.layout = {.version = e->version, .release = e->release}};
	*ret = e->image ? e->image : &images->last;
	return e->outcome;
}

int python_images_new(struct python_images **ret)
{
	*ret = calloc(1, sizeof(**ret));
	return *ret ? 0 : -ENOMEM;
}

void python_images_free(struct python_images *images)
{
	if (!images)
		return;
	forget_all(images);
	free(images);
}

uint64_t python_images_probed(const struct python_images *images)
{
	return images->n_probed;
}
