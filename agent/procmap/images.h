/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_PROCMAP_IMAGES_H
#define PODPROF_PROCMAP_IMAGES_H

/* All images of the node. Only this module makes images, so equal files share an image. */

#include <stddef.h>
#include <stdint.h>

#include "procmap/image.h"
#include "procmap/maps.h"

struct metric_sink;
struct root;
struct images;

/* @proc is borrowed and must outlive the table. */
int images_new(const struct root *proc, struct images **ret);
void images_free(struct images *table);

/**
 * images_of_entry() - the image behind a mapping of a living process
 * @pid: the process whose directory in /proc is used (struct maps, via_pid)
 * @ret: owns a reference; always set on 0. An unopened file also has a name and numbers
 *
 * Return: 0 or -errno.
 */
int images_of_entry(struct images *table, uint64_t pid, const struct maps_entry *entry,
		    struct image **ret);

/**
 * images_of_record() - the image behind a mapping of a process that may have ended
 * @entry: from the kernel's event about the mapping
 * @pids:  processes that are likely to have the same root, if they live; 0 is none
 *
 * A file with a known device and inode needs no process. Any other file is opened by its path below
 * the root of one of @pids.
 */
int images_of_record(struct images *table, const struct maps_entry *entry, const uint64_t *pids,
		     size_t n_pids, struct image **ret);

/* The shared images of their kinds. Borrowed. */
struct image *images_kernel(const struct images *table);
struct image *images_vdso(const struct images *table);
struct image *images_unknown(const struct images *table);
/* Stands for every file above the limit of images; of kind IMAGE_UNKNOWN. */
struct image *images_full(const struct images *table);

/* Drops images without references. */
void images_sweep(struct images *table);
/* A metric_collect_fn: podprof_images by state. */
void images_collect(void *images, struct metric_sink *sink);
size_t images_bytes(const struct images *table);

#endif
