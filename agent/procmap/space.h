/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_PROCMAP_SPACE_H
#define PODPROF_PROCMAP_SPACE_H

/*
 * The address space of one target: its executable mappings, each with its image, and the step from
 * a run-time pc to (image, vaddr). space_cache keeps them for the targets that were sampled, and is
 * the only one that makes images, so that equal files are one image on the node.
 */

#include <stddef.h>
#include <stdint.h>

#include "discovery/pid.h"
#include "procmap/image.h"

struct metric_sink;
struct root;
struct space_cache;

/* @proc is borrowed and must outlive the cache. */
int space_cache_new(const struct root *proc, struct space_cache **ret);
void space_cache_free(struct space_cache *cache);

/**
 * space_cache_resolve() - what the target has at @pc
 * @ret: always set on 0; owns a reference to the image
 *
 * The first call for a target reads its mappings; a pc outside all known executable mappings reads
 * them again, at most once a second for each target. Whatever cannot be found is the shared
 * IMAGE_UNKNOWN image with @pc as vaddr: that is an outcome, counted, and not an error.
 *
 * Return: 0 or -ENOMEM.
 */
int space_cache_resolve(struct space_cache *cache, const struct pid_id *id, uint64_t pc,
			struct frame *ret);
/* The kernel's image with @pc as vaddr; owns a reference. */
void space_cache_kernel(struct space_cache *cache, uint64_t pc, struct frame *ret);

/* Forget a target's mappings (it did exec or exit). */
void space_cache_invalidate(struct space_cache *cache, const struct pid_id *id);
/* Once a window: drop targets that are gone or were not asked for since two calls ago, and images
 * that nobody refers to. */
void space_cache_sweep(struct space_cache *cache);
/* A metric_collect_fn: podprof_images by state, podprof_resolved_pcs by outcome. */
void space_cache_collect(void *cache, struct metric_sink *sink);
/* Memory held, for podprof_cache_bytes. */
size_t space_cache_bytes(const struct space_cache *cache);

#endif
