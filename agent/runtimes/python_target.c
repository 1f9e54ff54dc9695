// SPDX-License-Identifier: Apache-2.0
#include "runtimes/python_target.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/nsec.h"
#include "base/work_budget.h"
#include "elf/elffile.h"
#include "procmap/image.h"
#include "procmap/mapped.h"
#include "procmap/maps.h"
#include "procmap/memory.h"
#include "runtimes/python_images.h"
#include "runtimes/python_process.h"

/* The work on all files of a process. */
#define TARGET_UNITS  (2ull << 30)
#define TARGET_CPU_NS (3 * NSEC_PER_SEC)

static void image_unrefp(struct image **image)
{
	image_unref(*image);
}

static bool same_file(const struct maps_entry *a, const struct maps_entry *b)
{
	return a->inode == b->inode && a->device == b->device;
}

/* The files of a process that were met, by the first mapping of each. */
struct search {
	struct python_images *images;
	const struct root *proc;
	struct memory *memory;
	struct python_threads *threads;
	struct work_budget work;
	const struct maps_entry *files[PYTHON_TARGET_FILES_MAX];
	size_t n_files;
};

/* Whether the file of @e is new. */
static bool add_file(struct search *s, const struct maps_entry *e)
{
	for (size_t i = s->n_files; i-- > 0;)
		if (same_file(s->files[i], e))
			return false;
	s->files[s->n_files++] = e;
	return true;
}

/* The bias of the file @path_fd at its mapping. PYTHON_ODD if no segment has the mapping. */
static int find_bias(int path_fd, const struct maps_entry *e, uint64_t *ret)
{
	_cleanup_(image_unrefp) struct image *image = NULL;
	_cleanup_(close_fdp) int fd = -1;
	int elf, r = mapped_open(path_fd, &fd);

	if (r)
		return r < 0 ? r : PYTHON_GONE;
	r = image_new_file(fd, e->path, &image, &elf);
	if (r)
		return r;
	fd = -1; /* taken */
	return image_bias(image, e->start, e->limit - e->start, e->offset, ret) ? 0 : PYTHON_ODD;
}

/* The interpreter in the file of @e, if it has one. */
static int look_at(struct search *s, uint64_t via_pid, const struct maps_entry *e,
		   struct python_target *ret)
{
	_cleanup_(close_fdp) int fd = -1;
	const struct python_image *image;
	int r = mapped_find(s->proc, via_pid, e, &fd);

	if (r)
		return r < 0 ? r : PYTHON_ABSENT;
	r = python_images_get(s->images, fd, &s->work, &image);
	if (r < 0 || r == PYTHON_ABSENT)
		return r;
	ret->image = *image;
	snprintf(ret->path, sizeof(ret->path), "%s", e->path);
	if (!r)
		r = find_bias(fd, e, &ret->bias);
	if (!r)
		r = python_process_attach(s->memory, image, ret->bias, &ret->process, s->threads);
	return r;
}

static int outcome_of_maps(int r)
{
	switch (r) {
	case MAPS_GONE:
		return PYTHON_GONE;
	case MAPS_DENIED:
		return PYTHON_DENIED;
	default:
		return r <= 0 ? r : PYTHON_MALFORMED;
	}
}

static int look_at_all(struct search *s, const struct maps *maps, struct python_target *ret)
{
	int found = PYTHON_ABSENT;

	for (size_t i = 0; i < maps->n && s->n_files < PYTHON_TARGET_FILES_MAX; i++) {
		struct python_target target = {0};
		int r;

		if (maps->items[i].kind != MAPS_FILE || !add_file(s, &maps->items[i]))
			continue;
		if (s->work.end)
			return found == PYTHON_ABSENT ? PYTHON_MALFORMED : found;
		r = look_at(s, maps->via_pid, &maps->items[i], &target);
		if (r == PYTHON_ABSENT)
			continue;
		if (r <= 0 || found == PYTHON_ABSENT)
			*ret = target;
		found = r;
		if (r <= 0)
			break;
	}
	return found;
}

int python_target_find(struct python_images *images, const struct root *proc,
		       const struct pid_id *id, struct memory *m, struct python_target *ret,
		       struct python_threads *ret_threads)
{
	_cleanup_(freep) struct python_threads *own = malloc(sizeof(*own));
	struct search s = {.images = images,
			   .proc = proc,
			   .memory = m,
			   .threads = ret_threads ? ret_threads : own};
	struct maps maps = {.only_prot = MAPS_X};
	int r = own ? outcome_of_maps(maps_read(proc, id, &maps)) : -ENOMEM, gone;

	*ret = (struct python_target){0};
	work_budget_init(&s.work, TARGET_UNITS, TARGET_CPU_NS, NULL);
	if (!r)
		r = look_at_all(&s, &maps, ret);
	maps_deinit(&maps);
	if (r < 0)
		return r;
	gone = python_outcome_of_memory(memory_check(m));
	return gone ? gone : r;
}
