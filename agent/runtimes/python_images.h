/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_RUNTIMES_PYTHON_IMAGES_H
#define PODPROF_RUNTIMES_PYTHON_IMAGES_H

/*
 * A cache of probed files by identity, so that a file is probed once for all processes. Most files
 * have no interpreter; the cache remembers nothing else of these files. For one thread.
 */

#include "base/cleanup.h"
#include "runtimes/python_image.h"

struct python_images;
struct work_budget;

/* Files remembered, 100 bytes each and 500 more for an interpreter. Reached: the cache is emptied.
 */
#define PYTHON_IMAGES_MAX 16384

/* 0 or -ENOMEM. */
int python_images_new(struct python_images **ret);
void python_images_free(struct python_images *images);
DEFINE_CLEANUP(struct python_images *, python_images_freep, python_images_free);

/**
 * python_images_get() - probe a file
 * @path_fd: names the file (O_PATH is enough); stays the caller's
 * @job:     of the process; charged for this file. An image is not remembered if it ends
 * @ret:     borrowed until the next call; set with PYTHON_OK, else only its release may be known
 *
 * Reading the file may block. A file that cannot be opened now is PYTHON_ABSENT, and not
 * remembered.
 *
 * Return: an outcome of python_image_probe().
 */
int python_images_get(struct python_images *images, int path_fd, struct work_budget *job,
		      const struct python_image **ret);

/* Files probed since the beginning. */
uint64_t python_images_probed(const struct python_images *images);

#endif
